package diff

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestAuthRevisionDecides: snapshots of running members at different indexes are compared where their auth revisions
// show that nothing can have changed between them, and nowhere else.
func TestAuthRevisionDecides(t *testing.T) {
	member := func(kind evidence.Kind, applied, revision uint64) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Kind: kind}, AppliedMin: applied, AppliedMax: applied,
			DB: &evidence.DB{Auth: dumpdb.Auth{Revision: revision, HasRevision: true}}}
	}
	role, revision := replay.Row{Bucket: "authRoles", Key: "r"}, replay.Row{Bucket: "auth", Key: "authRevision"}
	for _, c := range []struct {
		what           string
		kind           evidence.Kind
		row            replay.Row
		early, late    uint64
		mayNot, moment bool // moment: both at one index
	}{
		{"roles, same revision", evidence.KindEndpoint, role, 5, 5, true, false},
		{"roles, changed in between", evidence.KindEndpoint, role, 5, 6, false, false},
		{"roles of backups", evidence.KindBackup, role, 5, 5, false, false},
		{"roles of backups at one index", evidence.KindBackup, role, 5, 5, true, true},
		{"lower revision later", evidence.KindEndpoint, revision, 6, 5, true, false},
		{"higher revision later", evidence.KindEndpoint, revision, 5, 6, false, false},
		{"lower revision in a later backup", evidence.KindBackup, revision, 6, 5, false, false},
		{"a lease", evidence.KindEndpoint, replay.Row{Bucket: "lease", Key: "1"}, 5, 5, false, false},
		{"auth enabled", evidence.KindEndpoint, replay.Row{Bucket: "auth", Key: "authEnabled"}, 5, 5, false, false},
	} {
		late := uint64(20)
		if c.moment {
			late = 10
		}
		r := &Result{Members: []*evidence.Member{member(c.kind, late, c.late), member(c.kind, 10, c.early)}}
		if why := r.rows(nil, Options{}).mayDiffer(c.row, 0, 1); (why == "") != c.mayNot {
			t.Errorf("%s: %q", c.what, why)
		}
		if why := r.rows(nil, Options{}).mayDiffer(c.row, 1, 0); (why == "") != c.mayNot {
			t.Errorf("%s, the other way round: %q", c.what, why)
		}
	}
}

package diff

import (
	"maps"
	"slices"
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

// TestRowsOf: the part of a row that is compared by itself has its own text; a bucket that is not small has no rows.
func TestRowsOf(t *testing.T) {
	m := with(evidence.DB{}).Members[0]
	m.DB.Leases = []dumpdb.Lease{{ID: 0x10, TTL: 60, RemainingTTL: 5}, {ID: 0x11, TTL: 30}}
	m.DB.Auth.Users = []dumpdb.User{{Name: "u", Password: []byte(hash1)}, {Name: "v"}}
	m.DB.Members = []dumpdb.Member{{ID: 0xa1, Name: "n", ClientURLs: []string{"http://b", "http://a"}},
		{ID: 0xa2, Name: "m"}, {ID: 0xa3, ClientURLs: []string{"http://c"}}}
	for _, c := range []struct {
		bucket string
		kind   RowKind
		want   map[string]string
	}{
		{"lease", TTLRow, map[string]string{"10": "TTL 60 s, remaining 5 s", "11": "TTL 30 s"}},
		{"lease", WholeRow, map[string]string{"10": "granted", "11": "granted"}},
		{"authUsers", PasswordRow, map[string]string{"u": "password hash with digest " + m.Digest([]byte(hash1)),
			"v": "no password hash"}},
		{"members", AttributesRow, map[string]string{"a1": "name n, client URLs http://a,http://b"}},
		{"key", WholeRow, nil},
	} {
		if got := RowsOf(m, c.bucket, c.kind); !maps.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.bucket, c.kind, got, c.want)
		}
	}
}

// TestRowKeys: the keys of both members, each once and in order.
func TestRowKeys(t *testing.T) {
	got := RowKeys(map[string]string{"c": "", "a": "1"}, map[string]string{"b": "", "a": "2"})
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLimits: each member that could not be compared gives one reason, in the order of the members.
func TestLimits(t *testing.T) {
	db := func(id dumpdb.ID) evidence.DB { return evidence.DB{Leases: []dumpdb.Lease{{ID: id}}} }
	r := with(db(1), db(1), db(2), db(3)).at(9, 9, 8, 7)
	b := r.rows(nil, Options{MaxRows: 5}).small(smallBucket{"lease", leaseRows})
	want := "node2 and node3 are at different indexes and no log has the entries between them; " +
		"node3 and node4 are at different indexes and no log has the entries between them"
	if b.Limits != want || !b.Equal.Certain() || b.Moved != 3 {
		t.Errorf("%q, want %q; %+v", b.Limits, want, b)
	}
}

// TestLastWrite: the revision is told only if all that have the key wrote it there, with different content.
func TestLastWrite(t *testing.T) {
	at := func(mods ...int64) []*Cell {
		var out []*Cell
		for _, m := range mods {
			var c *Cell
			if m > 0 {
				c = &Cell{Mod: m}
			}
			out = append(out, c)
		}
		return out
	}
	for _, c := range []struct {
		row  Row
		want int64
	}{
		{Row{Cells: at(5, 5, 5)}, 5}, {Row{Cells: at(0, 5, 0)}, 5}, {Row{Cells: at(5, 6)}, 0},
		{Row{Cells: at(5, 5, 6)}, 0}, {Row{Cells: at(0, 0)}, 0}, {Row{Cells: at(5, 5), SameContent: true}, 0},
	} {
		if got := c.row.LastWrite(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.row, got, c.want)
		}
	}
}

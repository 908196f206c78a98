package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// confAgainstV2 compares raft's configuration in a .snap file with the member list in the same file. Up to 3.4, both
// change with the same entries, and a server takes both at one index (etcdserver/server.go @ v3.4.0, snapshot). From
// 3.5 on, bugs and downgrades let them part. ok is false if nothing is compared.
func confAgainstV2(m *evidence.Member, s *dumplog.SnapFile) (f *Finding, ok bool) {
	if !m.Version.Has(release.TermInMeta).Excluded() || len(s.V2.Members) == 0 {
		return nil, false
	}
	var listed dumplog.ConfState
	for _, v := range s.V2.Members {
		if v.IsLearner {
			listed.Learners = append(listed.Learners, v.ID)
		} else {
			listed.Voters = append(listed.Voters, v.ID)
		}
	}
	conf := dumplog.ConfState{Voters: s.ConfState.Voters, Learners: s.ConfState.Learners}
	if sameConf(&conf, &listed) {
		return nil, true
	}
	return &Finding{Kind: KindSnapConfAltered, Severity: Error, Class: ClassSnapshotDamage,
		Members: []string{m.Label()}, At: At{Term: s.Term, Index: s.Index},
		Title: fmt.Sprintf("%s: %s names another configuration than the member list in it", m.Label(), s.File),
		Explanation: "a server writes both at one index, from the same entries. The file was altered, with a " +
			"checksum that fits: a member that starts with it counts votes of other members",
		Evidence: []Evidence{{Member: m.Label(), File: s.File, Field: "configuration against member list",
			Observed: confText(&conf), Expected: confText(&listed), Show: showLogAs(m, "--snaps")}}}, true
}

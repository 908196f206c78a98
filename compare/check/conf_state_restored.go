package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// keptConfStates compares the confStates that members of a restored cluster have kept from the backup: a restore leaves
// the row with the members of the old cluster as it is, until the next conf change. It leaves out those whose row is
// known to be wrong. ok is false if there are no two.
func (mb *Membership) keptConfStates(in *Input, wrong []Finding) (f *Finding, ok bool) {
	if in.Diff == nil || in.Diff.Find("key") == nil || in.Diff.Find("key").Equal.Excluded() {
		return nil, false // the backups may have been different ones
	}
	rows := map[string][]*evidence.Member{}
	n, cluster := 0, dumplog.ID(0)
	for _, m := range mb.Members {
		named := slices.ContainsFunc(wrong, func(f Finding) bool { return slices.Contains(f.Members, m.Label()) })
		if named || !mb.keepsConfState(m) || cluster != 0 && m.ClusterID != cluster {
			continue
		}
		cluster = m.ClusterID
		rows[confStateText(m)] = append(rows[confStateText(m)], m)
		n++
	}
	if n < 2 || len(rows) < 2 {
		return nil, n > 1
	}
	f = &Finding{Kind: KindConfStateKeptDiffers, Severity: Error, Class: ClassMembership, Undecided: true,
		Title: "meta/confState differs between members that were restored from one backup",
		Explanation: "no conf change has written the row since the restore, so all have what the backup had. It was " +
			"edited or damaged on some, which may be most of them. " + confStateUnread}
	most := slices.ContainsFunc(slices.Collect(maps.Values(rows)), func(same []*evidence.Member) bool {
		return 2*len(same) > n
	})
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		for _, m := range rows[k] {
			if most && 2*len(rows[k]) <= n {
				f.Odd = append(f.Odd, m.Label())
			}
			e := confStateEvidence(m, m)[0]
			e.Expected = "the same on all of them"
			f.Members, f.Evidence = append(f.Members, m.Label()), append(f.Evidence, e)
			if at := m.AppliedMin; f.At.Index == 0 || at < f.At.Index {
				f.At = At{Index: at, Term: mb.Members.logs().termAt(at)}
			}
		}
	}
	return f, true
}

// keepsConfState reports whether a restored member has the confState of the cluster from which the backup is: all its
// members are of that cluster, or no conf change has stored the row since. A restore with the flags of that cluster
// keeps the IDs.
func (mb *Membership) keepsConfState(m *evidence.Member) bool {
	if !m.HasDB() || !Restored(m) || m.DB.Meta.ConfState == nil || !m.Version.Follows(release.TermInMeta) {
		return false
	}
	all := confStateSize(m.DB.Meta.ConfState)
	if all == 0 {
		return false
	}
	last, _ := confStateStored(m)
	return last == 0 && len(m.WAL.Summary.Jumps) == 0 || len(mb.Members.configurations().unnamed(m)) == all
}

// confStateSize counts the members that a row names.
func confStateSize(cs *dumpdb.ConfState) int {
	return len(cs.Voters) + len(cs.Learners) + len(cs.VotersOutgoing) + len(cs.LearnersNext)
}

// confStateText is the row, whatever the order of its members.
func confStateText(m *evidence.Member) string {
	cs := m.DB.Meta.ConfState
	return fmt.Sprintf("voters %v learners %v", slices.Sorted(slices.Values(cs.Voters)),
		slices.Sorted(slices.Values(cs.Learners)))
}

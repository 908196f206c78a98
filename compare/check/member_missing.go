package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// rowWritten returns the last entry that wrote the row of a current member into bucket members, 0 when the logs do not
// show that the row must exist. Every release writes it when it applies the addition of the member and when the member
// publishes its addresses, unless the row is there. Two such entries are required, because 3.5.0 to 3.5.2 may skip one
// after a crash.
func (in *Input) rowWritten(m *evidence.Member, id dumplog.ID) uint64 {
	ms := &m.Membership
	if in.Replay == nil || in.Replay.Survey == nil || len(in.Replay.LogDiffs) > 0 || !m.ConfigurationCurrent() ||
		!slices.Contains(ms.Voters, id) && !slices.Contains(ms.Learners, id) {
		return 0
	}
	writes, last := 0, uint64(0)
	for _, c := range in.confChanges(m) {
		switch {
		case c.Change.NodeID != id || c.Index > m.Commit:
		case c.Change.Type == dumplog.ConfChangeRemoveNode:
			writes, last = 0, c.Index
		case c.Index > m.AppliedMin: // a server that has not applied it may lack the row
			return 0
		case c.Change.Member != nil && c.Change.Type != dumplog.ConfChangeUpdateNode && !c.Change.Member.IsPromote:
			writes, last = 1, c.Index
		}
	}
	published := uint64(0)
	for _, s := range in.Replay.Survey.Starts[id] {
		if s.Index > last && s.Index <= m.AppliedMin {
			writes++
			published = s.Index
		}
	}
	if published == 0 || writes < 2 {
		return 0
	}
	return published
}

// missing judges the rows that do not exist; false when the logs do not require any.
func (w *rowFindings) missing(m *evidence.Member) (checked bool) {
	if slices.Contains(m.DB.Handle.MissingBuckets(), "members") ||
		slices.ContainsFunc(m.DB.Damage, func(d *dumpdb.DamageError) bool { return d.Bucket == "members" }) {
		return false
	}
	for _, ids := range [][]dumplog.ID{m.Membership.Voters, m.Membership.Learners} {
		for _, id := range ids {
			index := w.in.rowWritten(m, id)
			checked = checked || index > 0
			if index == 0 || slices.Contains(m.Membership.Bucket, id) {
				continue
			}
			w.file(m, "row "+id.String(), Finding{Kind: KindMemberRowMissing, Severity: Error, Class: ClassMembership,
				At: At{Term: w.in.termAt(index), Index: index},
				Title: fmt.Sprintf("bucket members does not list %s, which belongs to the cluster",
					w.in.MemberName(dumpdb.ID(id))),
				Explanation: fmt.Sprintf("entry %d, in which the member published its addresses, wrote its row: the "+
					"row was removed by other means. "+
					"A server of 3.6 or later started on this database does not know the member", index)},
				Evidence{Key: Bytes(id.String()), Field: "row", Observed: "absent",
					Expected: fmt.Sprintf("present since entry %d", index)})
		}
	}
	return checked
}

// unnoted judges the removed members that a database lists neither as members nor as removed. In every release one
// transaction deletes the one row and writes the other.
func (w *rowFindings) unnoted(m *evidence.Member) (checked bool) {
	if slices.Contains(m.DB.Handle.MissingBuckets(), "members_removed") ||
		slices.ContainsFunc(m.DB.Damage, func(d *dumpdb.DamageError) bool {
			return d.Bucket == "members" ||
				d.Bucket == "members_removed"
		}) {
		return false
	}
	added := map[dumplog.ID]bool{}
	for _, c := range w.in.confChanges(m) {
		id := c.Change.NodeID
		if c.Index > m.AppliedMin {
			break
		}
		if c.Change.Member != nil {
			added[id] = true
			continue
		}
		if c.Change.Type != dumplog.ConfChangeRemoveNode || !added[id] {
			continue
		}
		checked = true
		if slices.Contains(m.DB.Removed, dumpdb.ID(id)) || slices.Contains(m.Membership.Bucket, id) {
			continue
		}
		w.file(m, "removed "+id.String(), Finding{Kind: KindRemovalNotNoted, Severity: Error, Class: ClassMembership,
			At: At{Term: c.Term, Index: c.Index},
			Title: fmt.Sprintf("bucket members_removed does not list %s, which was removed",
				w.in.MemberName(dumpdb.ID(id))),
			Explanation: fmt.Sprintf("entry %d removed the member, and this member has applied it: the row was "+
				"deleted by other means, so the ID could be added again", c.Index)},
			Evidence{Bucket: "members_removed", Key: Bytes(id.String()), Field: "row", Observed: "absent",
				Expected: fmt.Sprintf("present since entry %d", c.Index),
				Show:     showDB(m, "members_removed")})
	}
	return checked
}

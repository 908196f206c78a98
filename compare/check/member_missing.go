package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// missing judges the rows that do not exist; false when the logs do not require any.
func (w *rowFindings) missing(m *evidence.Member) (checked bool) {
	if m.RowsHidden("members") {
		return false
	}
	for _, ids := range [][]dumplog.ID{m.Membership.Voters, m.Membership.Learners} {
		for _, id := range ids {
			index := w.in.Membership().rowWritten(m, id)
			checked = checked || index > 0
			if index == 0 || slices.Contains(m.Membership.Bucket, id) {
				continue
			}
			w.file(m, "row "+id.String(), Finding{Kind: KindMemberRowMissing, Severity: Error, Class: ClassMembership,
				At: At{Term: w.in.Members.logs().termAt(index), Index: index},
				Title: fmt.Sprintf("bucket members does not list %s, which belongs to the cluster",
					w.in.Members.MemberName(dumpdb.ID(id))),
				Explanation: fmt.Sprintf("entry %d, in which the member published its addresses, wrote its row: the "+
					"row was removed by other means. A server of 3.6 or later started on this database does not "+
					"know the member", index)},
				Evidence{Key: Bytes(id.String()), Field: "row", Observed: "absent",
					Expected: fmt.Sprintf("present since entry %d", index)})
		}
	}
	return checked
}

// unnoted judges the removed members that a database lists neither as members nor as removed. In every release one
// transaction deletes the one row and writes the other.
func (w *rowFindings) unnoted(m *evidence.Member) (checked bool) {
	if m.RowsHidden("members", "members_removed") {
		return false
	}
	added := map[dumplog.ID]bool{}
	for _, c := range w.in.Membership().confChanges(m) {
		id := c.Change.NodeID
		if c.Index > m.AppliedMin {
			break
		}
		if adds(&c) {
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
				w.in.Members.MemberName(dumpdb.ID(id))),
			Explanation: fmt.Sprintf("entry %d removed the member, and this member has applied it: the row was "+
				"deleted by other means, so the ID could be added again", c.Index)},
			Evidence{Bucket: "members_removed", Key: Bytes(id.String()), Field: "row", Observed: "absent",
				Expected: fmt.Sprintf("present since entry %d", c.Index),
				Show:     showDB(m, "members_removed")})
	}
	return checked
}

// adds reports whether a conf change adds a member. An update or a promotion may name an ID that no server knows.
func adds(c *evidence.ConfEntry) bool {
	return c.Change.Member != nil && !c.Change.Member.IsPromote && c.Change.Type != dumplog.ConfChangeUpdateNode
}

// neverRemoved judges the members that a database lists as removed. Where a log holds every entry since the bootstrap
// of the cluster, an entry removed each of them, unless a server removed a zombie. No entry of this log has to have
// added a zombie: it may come from the backup of a restore.
func (w *rowFindings) neverRemoved(m *evidence.Member) (checked bool) {
	o := w.in.Membership().wholeLog(m)
	if o == nil || len(m.DB.Removed) == 0 || zombiesRemoved(w.in, m) {
		return false
	}
	removed := map[dumplog.ID]bool{}
	for _, c := range o.WAL.Conf {
		if c.Change.Type == dumplog.ConfChangeRemoveNode {
			removed[c.Change.NodeID] = true
		}
	}
	for _, id := range m.DB.Removed {
		if removed[dumplog.ID(id)] {
			continue
		}
		w.file(m, "not removed "+id.String(), Finding{Kind: KindRemovalNotInLog, Severity: Error,
			Class: ClassMembership,
			At:    At{Term: w.in.Members.logs().termAt(m.AppliedMin), Index: m.AppliedMin},
			Title: fmt.Sprintf("bucket members_removed lists %s, which no entry of the log removed",
				w.in.Members.MemberName(id)),
			Explanation: "the log holds every conf change since the founding of the cluster. The row was added by " +
				"other means, and servers refuse a member with that ID"},
			Evidence{Bucket: "members_removed", Key: Bytes(id.String()), Field: "row", Observed: "present",
				Expected: "absent", Show: showDB(m, "members_removed")})
	}
	return true
}

// noted compares the members that a database lists as removed with those of members that have applied more: no release
// takes such a row away again. A removed zombie is among the members of a server that has not removed it yet. Where the
// logs hold what is between them, M02 compares the rows.
func (w *rowFindings) noted(m *evidence.Member) (checked bool) {
	for _, o := range w.in.Members {
		if o == m || !o.HasDB() || o.ClusterID != m.ClusterID || o.AppliedMin <= m.AppliedMax || len(o.DB.Damage) > 0 ||
			w.in.Replay != nil && w.in.Replay.Covers(m.AppliedMax, o.AppliedMin) ||
			slices.Contains(o.DB.Handle.MissingBuckets(), "members_removed") || Restored(o) ||
			w.in.Membership().forcedBefore(o, o.AppliedMax) {
			continue
		}
		for _, id := range m.DB.Removed {
			checked = true
			if slices.Contains(o.DB.Removed, id) || slices.Contains(o.Membership.Bucket, dumplog.ID(id)) {
				continue
			}
			f := Finding{Kind: KindRemovalForgotten, Severity: Error, Class: ClassMembership, Undecided: true,
				At: At{Term: w.in.Members.logs().termAt(m.AppliedMin), Index: m.AppliedMin},
				Title: fmt.Sprintf("bucket members_removed lists %s, and that of a member that has applied more "+
					"does not", w.in.Members.MemberName(id)),
				Explanation: "no server takes a row of removed members away: it was added to the one database or " +
					"deleted from the other by other means"}
			key := "forgotten " + id.String()
			if w.by[key] == nil || !slices.Contains(w.by[key].Members, m.Label()) {
				w.file(m, key, f, Evidence{Bucket: "members_removed", Key: Bytes(id.String()), Field: "row",
					Observed: "present", Expected: "the same on " + o.Label(), Show: showDB(m, "members_removed")})
			}
			w.file(o, key, f, Evidence{Bucket: "members_removed", Key: Bytes(id.String()), Field: "row",
				Observed: "absent", Expected: "the same on " + m.Label(), Show: showDB(o, "members_removed")})
		}
	}
	return checked
}

// zombiesRemoved reports whether a server of the cluster may have removed zombies: without an entry of the log, it
// notes members that only its bucket had in members_removed. The rows remain after an upgrade.
func zombiesRemoved(in *Input, m *evidence.Member) bool {
	if m.Version.Minor == 0 || !m.Version.Has(release.ZombiesRemoved).Excluded() || in.Replay == nil {
		return true
	}
	return slices.ContainsFunc(in.Replay.Survey.Versions, func(v replay.VersionSet) bool {
		minor, ok := evidence.MinorOf(v.Version)
		return !ok || !release.AnyOf(minor).Has(release.ZombiesRemoved).Excluded()
	})
}

package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// lostChange is a row of bucket members that has what a conf change above the end of the member's own log gives it. The
// member had applied that entry, so its log had it.
type lostChange struct {
	m, holder *evidence.Member
	row       *dumpdb.Member
	entry     evidence.ConfEntry
}

// splitLost takes the rows out of a fact that lost entries explain. It returns the fact that remains, nil if there is
// none, and those rows.
func (mb *Membership) splitLost(s *staleRows) (rest *staleRows, lost []lostChange) {
	m := s.members[0]
	kept := s.rows[0][:0:0]
	for _, row := range s.rows[0] {
		if c, ok := mb.lostChangeOf(s.kind, m, row); ok {
			lost = append(lost, c)
		} else {
			kept = append(kept, row)
		}
	}
	if len(kept) == 0 {
		return nil, lost
	}
	return &staleRows{kind: s.kind, members: s.members, rows: [][]*dumpdb.Member{kept}}, lost
}

// lostChangeOf finds the conf change in the log of another member.
func (mb *Membership) lostChangeOf(kind Kind, m *evidence.Member, row *dumpdb.Member) (c lostChange, ok bool) {
	want := dumplog.ConfChangeAddNode // also a promotion
	switch {
	case kind == KindMemberZombie && row.IsLearner:
		want = dumplog.ConfChangeAddLearnerNode
	case kind != KindMemberZombie && kind != KindLearnerListedAsVoter:
		return c, false
	}
	for _, o := range mb.Members {
		if o == m || !o.HasLog() || o.ClusterID != m.ClusterID {
			continue
		}
		for _, e := range o.WAL.Conf {
			if e.Index > m.LastIndex() && !e.Refused && e.Change.NodeID == dumplog.ID(row.ID) && e.Change.Type == want {
				return lostChange{m, o, row, e}, true
			}
		}
	}
	return c, false
}

func (c *lostChange) finding() Finding {
	id := dumplog.ID(c.row.ID)
	return Finding{Kind: KindMemberRowAboveLog, Severity: Error, Class: ClassMemberLostData,
		Members: []string{c.m.Label()}, Facts: Facts{About: []dumplog.ID{id}},
		At: At{Term: c.entry.Term, Index: c.entry.Index},
		Title: fmt.Sprintf("%s: bucket members has what entry %d makes of member %s, its log ends at %d", c.m.Label(),
			c.entry.Index, id, c.m.LastIndex()),
		Explanation: "the member had applied that entry, and a server applies only what its log holds: the log lost " +
			"its end, or the database is newer than the log",
		Evidence: []Evidence{
			{Member: c.m.Label(), File: c.m.DB.File, Page: Uint64(c.row.Page), Bucket: "members",
				Key: Bytes(id.String()), Field: "isLearner", Observed: fmt.Sprint(c.row.IsLearner),
				Expected: fmt.Sprintf("what an entry up to %d makes of it", c.m.LastIndex()),
				Show:     showDB(c.m, "members")},
			{Member: c.holder.Label(), File: c.entry.Pos.Segment, Offset: Int64(c.entry.Pos.Offset),
				Field:    fmt.Sprintf("entry %d/%d", c.entry.Term, c.entry.Index),
				Observed: c.entry.Change.Type.String(), Show: showLog(c.holder, c.entry.Index)}}}
}

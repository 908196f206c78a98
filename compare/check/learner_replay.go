package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var learnerReplay = described(Check{
	ID:    M14,
	Needs: NeedLog,
	Run:   runLearnerReplay,
})

func runLearnerReplay(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasWAL() {
			continue
		}
		fs = append(fs, learnerChanges(m)...)
	}
	return outcome(fs, "")
}

func learnerChanges(m *evidence.Member) []Finding {
	promoted := Finding{Kind: KindPromotionReplayed, Severity: Info, Members: []string{m.Label()},
		Explanation: "a server of 3.6.0 to 3.6.3 does " +
			"not start on this; the next raft snapshot or 3.6.4 cures it"}
	added := Finding{Kind: KindLearnerReplayed, Severity: Info, Members: []string{m.Label()},
		Explanation: "a server of 3.4.0 to 3.4.13 does " +
			"not start on this with --force-new-cluster"}
	from := startPoint(m)
	for _, c := range m.WAL.Conf {
		if c.Index <= from || c.Index > m.Commit || c.Refused {
			continue
		}
		ev := Evidence{Member: m.Label(), File: c.Pos.Segment, Offset: Int64(c.Pos.Offset),
			Key:      Bytes(c.Change.NodeID.String()),
			Expected: fmt.Sprintf("a raft snapshot after it; the newest is at %d", from), Show: showLog(m, c.Index)}
		switch {
		case c.Change.Type == dumplog.ConfChangeAddLearnerNode:
			ev.Field, ev.Observed = "learner after the snapshot", "learner added at "+fmt.Sprint(c.Index)
			added.add(ev, c.Term, c.Index)
		case promotes(c) && c.Index <= m.ConsistentIndex() && bucketVoter(m, c.Change.NodeID):
			ev.Field, ev.Observed = "promotion after the snapshot",
				fmt.Sprintf("promoted at %d, a voter in bucket members", c.Index)
			promoted.add(ev, c.Term, c.Index)
		}
	}
	var fs []Finding
	if len(promoted.Evidence) > 0 {
		promoted.Title = fmt.Sprintf("%s: a start replays the promotion of a learner that bucket members already shows",
			m.Label())
		fs = append(fs, promoted)
	}
	if len(added.Evidence) > 0 {
		added.Title = fmt.Sprintf("%s: a start replays the addition of a learner", m.Label())
		fs = append(fs, added)
	}
	return fs
}

func promotes(c evidence.ConfEntry) bool {
	return c.Change.Type == dumplog.ConfChangeAddNode && c.Change.Member != nil && c.Change.Member.IsPromote
}

// bucketVoter reports whether bucket members shows the member as a voter.
func bucketVoter(m *evidence.Member, id dumplog.ID) bool {
	if m.DB == nil {
		return false
	}
	for i := range m.DB.Members {
		if dumplog.ID(m.DB.Members[i].ID) == id {
			return !m.DB.Members[i].IsLearner
		}
	}
	return false
}

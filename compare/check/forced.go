package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var forcedCluster = described(Check{
	ID:    M11,
	Needs: NeedLog,
	Run:   runForced,
})

func runForced(in *Input) Result {
	if in.Replay == nil {
		return Result{Reason: "the logs could not be replayed"}
	}
	var fs []Finding
	for i := range in.Replay.Forced {
		r := &in.Replay.Forced[i]
		fs = append(fs, in.Membership().forcedFinding(r))
		if f := forcedDrop(in, r); f != nil {
			fs = append(fs, *f)
		}
		fs = append(fs, keptLearners(in.Members, r)...)
	}
	return outcome(fs, "")
}

func (mb *Membership) forcedFinding(r *replay.Forced) Finding {
	m := mb.Members[r.Member]
	f := Finding{Kind: KindClusterForced, Severity: Info, Members: []string{m.Label()},
		At:    At{Term: r.Term, Index: r.First},
		Title: fmt.Sprintf("%s: a new cluster was forced at %d/%d", m.Label(), r.Term, r.First),
		Explanation: fmt.Sprintf("the start removed %s; what only they held is gone",
			strings.Join(hexes(r.Removed), ", ")),
		Evidence: []Evidence{{Member: m.Label(), File: r.Pos.Segment, Offset: Int64(r.Pos.Offset),
			Field:    "forced removal",
			Observed: fmt.Sprintf("entries %d..%d remove members without the ID of a request", r.First, r.Last),
			Expected: "removals that a client asked for", Show: showLog(m, r.First)}}}
	for _, o := range mb.Members {
		if o != m && slices.Contains(r.Removed, o.MemberID) && !mb.replaced(r, o) && !holdsRemovals(mb.Replay, o, r) {
			f.Severity, f.Class = Error, ClassMembership
			f.Members = append(f.Members, o.Label())
			f.Explanation = "members that the forced start removed do not know of it; they carry the same cluster ID " +
				"and would continue as the old cluster, or connect to the new one and contradict it"
			f.Evidence = append(f.Evidence, Evidence{Member: o.Label(), Field: "commit index",
				Observed: fmt.Sprint(o.Commit), Expected: "never started again", Show: showLog(o, o.Commit)})
		}
	}
	return f
}

// holdsRemovals reports whether a member's log has the removals of a forced start. It may know entries at their indexes
// to be committed that are others.
func holdsRemovals(rp *replay.Result, m *evidence.Member, r *replay.Forced) bool {
	return m.Commit >= r.Last && !(m.HasLog() && disputed(rp, r.First))
}

// disputed reports whether logs hold different committed entries at an index: what one of them says is not evidence
// against a member that holds the other.
func disputed(rp *replay.Result, index uint64) bool {
	if rp == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(rp.LogDiffs, index,
		func(d replay.LogDiff, at uint64) int { return cmp.Compare(d.Index, at) })
	return found
}

// forcedDrop: the forced start cut off entries that the database had applied. It shows in writes of those entries that
// the database holds, or in removals that it skipped.
func forcedDrop(in *Input, r *replay.Forced) *Finding {
	m := in.Members[r.Member]
	f := &Finding{Kind: KindForcedDroppedApplied, Severity: Critical, Class: ClassDataDivergence,
		Members: []string{m.Label()},
		At:      At{Term: r.Term, Index: r.First},
		Title: fmt.Sprintf("%s: the forced start cut off entries from %d on that the database had applied",
			m.Label(), r.First),
		Explanation: "the entries that took their indexes, the removals among them, were skipped as applied already; " +
			"members that joined since lack the former and have the latter"}
	for _, d := range r.Applied {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: d.Pos.Segment, Offset: Int64(d.Pos.Offset),
			Bucket: "key", Field: "dropped although applied",
			Observed: fmt.Sprintf("%d/%d %s was replaced, its write is in the database at revision %d", d.Term, d.Index,
				d.What, d.Rev), Expected: "an entry that the log still holds", Show: showRev(m, d.Rev)})
	}
	if m.HasDB() && m.ConsistentIndex() >= r.Last {
		for _, row := range m.DB.Members {
			if id := dumplog.ID(row.ID); slices.Contains(r.Removed, id) && !slices.Contains(m.DB.Removed, row.ID) &&
				!addedAfter(m, id, r.Last) {
				f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(row.Page),
					Bucket: "members", Key: Bytes(id.String()), Field: "dropped although applied",
					Observed: "in bucket members, not in members_removed",
					Expected: fmt.Sprintf("removed by the forced start at %d..%d", r.First, r.Last),
					Show:     showDB(m, "members")})
			}
		}
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	*f = in.cut(*f)
	return f
}

func addedAfter(m *evidence.Member, id dumplog.ID, index uint64) bool {
	return slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
		return c.Change.NodeID == id && c.Index > index && !c.Refused && c.Change.Type != dumplog.ConfChangeRemoveNode
	})
}

// keptLearners are learners that the cluster had before the forced start and still has.
func keptLearners(ss Sources, r *replay.Forced) []Finding {
	m := ss[r.Member]
	var fs []Finding
	for _, id := range m.Membership.Learners {
		if addedAfter(m, id, r.Last) {
			continue
		}
		fs = append(fs, Finding{Kind: KindForcedKeptLearner, Severity: Error, Class: ClassMembership,
			Members: []string{m.Label()},
			At:      At{Term: r.Term, Index: r.First},
			Title:   fmt.Sprintf("%s: learner %s survived the forced start", m.Label(), id),
			Explanation: "the forced start removed the voters only; the learner is still sent entries and blocks the " +
				"addition of another one",
			Evidence: []Evidence{{Member: m.Label(), Field: "learner kept", Key: Bytes(id.String()),
				Observed: "a learner in raft's configuration",
				Expected: fmt.Sprintf("removed at %d", r.First), Show: showLogAs(m, "--entry-type", "ConfigChange")}},
			Remedy: []Remedy{{Text: "remove the learner", Command: removeMember(id)}}})
	}
	return fs
}

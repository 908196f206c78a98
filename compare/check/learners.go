package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var learnersMove = described(Check{
	ID:    M10,
	Needs: NeedLog,
	Run:   runLearnersMove,
})

func runLearnersMove(in *Input) Result {
	top := in.Members.configurations().newest()
	if top == nil {
		return Result{Reason: "no source shows raft's configuration"}
	}
	var fs []Finding
	for _, id := range top.Membership.Learners {
		if f := in.Membership().stuckLearner(top, id); f != nil {
			fs = append(fs, *f)
		}
	}
	return outcome(fs, "")
}

func (mb *Membership) stuckLearner(top *evidence.Member, id dumplog.ID) *Finding {
	added := addedAt(top, id)
	f := &Finding{Kind: KindLearnerNeverStarted, Severity: Error, Class: ClassMembership,
		Members: []string{top.Label()}, At: added, Facts: Facts{About: []dumplog.ID{id}},
		Remedy: []Remedy{{Text: "start the learner at its peer URL, or remove it and add it again with the right one",
			Command: removeMember(id)}}}
	ev := Evidence{Member: top.Label(), Bucket: "members", Key: Bytes(id.String()),
		Show: showLogAs(top, "--entry-type", "ConfigChange")}
	own := mb.Members.byID(id)
	switch {
	case own != nil && (own.LastIndex() == 0 ||
		own.LastIndex() < added.Index): // the index of a snapshot counts: no entry may have followed it yet
		f.Members = []string{own.Label()}
		f.Title = fmt.Sprintf("learner %s holds nothing of the cluster's log", own.Label())
		f.Explanation = fmt.Sprintf("it was added at index %d, its log ends at %d, the cluster is at %d: it reaches "+
			"no leader, or is refused by them", added.Index, own.LastIndex(), top.Commit)
		f.Kind = KindLearnerNeverCaughtUp
		ev.Field, ev.Observed, ev.Expected = "learner never caught up", fmt.Sprintf("last index %d", own.LastIndex()),
			fmt.Sprintf("about %d", top.Commit)
		ev.Member, ev.Bucket, ev.Key = own.Label(), "", nil
	case own == nil && !published(mb.Replay, &top.Membership, id):
		f.Title = fmt.Sprintf("learner %s never started", id)
		f.Explanation = fmt.Sprintf("it was added at index %d with peer URLs %v and never published itself; it "+
			"cannot be promoted, and another learner cannot be added", added.Index, top.Membership.PeerURLs[id])
		ev.Field, ev.Observed, ev.Expected = "learner never started", "a learner without a name",
			"a learner that published itself"
	case own != nil && behindForPromotion(own, top) && top.Commit > own.LastIndex() && !sameCommit(own, top):
		f.Members = []string{own.Label()}
		f.Title = fmt.Sprintf("learner %s lags by %s", own.Label(),
			plural.Of(top.Commit-own.LastIndex(), "entry", "entries"))
		f.Explanation = fmt.Sprintf("its log ends at %d, the cluster is at %d; etcd promotes a learner only when it "+
			"holds nine tenths of the leader's log", own.LastIndex(), top.Commit)
		f.Kind = KindLearnerLags
		ev.Field, ev.Observed, ev.Expected = "learner lags", fmt.Sprintf("last index %d", own.LastIndex()),
			fmt.Sprintf("at least %d", top.Commit-top.Commit/10)
		ev.Member, ev.Bucket, ev.Key = own.Label(), "", nil
		if c := refusedLearner(top, own.LastIndex()); c != nil {
			f.Kind, ev.Field = KindLearnerBlocks, "learner blocks the addition of another"
			f.Explanation += fmt.Sprintf(". Servers refused to add learner %s in entry %d, because this one had not "+
				"caught up", c.Change.NodeID, c.Index)
		} else {
			f.Severity, f.Class, f.Remedy = Info, "", nil
		}
	case own == nil && refusedLearner(top, added.Index) != nil:
		f.Kind, f.Severity, f.Class, f.Remedy = KindLearnerAbsent, Warning, "", nil
		f.Title = fmt.Sprintf("learner %s is not among the sources, and servers refused to add another",
			cmp.Or(top.Membership.Names[id], id.String()))
		f.Explanation = fmt.Sprintf("entry %d was refused while this one was a learner. Its data dir shows whether it "+
			"follows the log", refusedLearner(top, added.Index).Index)
		ev.Field, ev.Observed, ev.Expected = "learner not among the sources", "no data dir of it", "its data dir"
	default:
		return nil
	}
	f.Evidence = []Evidence{ev}
	if top.Commit == added.Index && f.Severity == Error {
		f.Kind, f.Evidence[0].Field = KindLearnerJustAdded, "learner just added"
		f.Explanation += "; it was added as the last thing before the sources were copied, so it may only need time"
	}
	return f
}

// behindForPromotion follows the server's own rule (isLearnerReady: nine tenths of the leader's match index).
func behindForPromotion(own, top *evidence.Member) bool {
	return own.LastIndex() < top.Commit-top.Commit/10
}

func sameCommit(a, b *evidence.Member) bool { return a.Commit == b.Commit }

// addedAt is the last committed change that added the member; zero when the log does not hold it.
func addedAt(m *evidence.Member, id dumplog.ID) At {
	for _, c := range slices.Backward(m.WAL.Conf) {
		if c.Change.NodeID == id && c.Index <= m.Commit && !c.Refused &&
			(c.Change.Type == dumplog.ConfChangeAddLearnerNode || c.Change.Type == dumplog.ConfChangeAddNode) {
			return At{Term: c.Term, Index: c.Index}
		}
	}
	return At{}
}

// refusedLearner is the first addition of a learner above the index that servers refused, nil when there is none.
func refusedLearner(m *evidence.Member, index uint64) *evidence.ConfEntry {
	for i := range m.WAL.Conf {
		c := &m.WAL.Conf[i]
		if c.Refused && c.Index > index && c.Change.Type == dumplog.ConfChangeAddLearnerNode {
			return c
		}
	}
	return nil
}

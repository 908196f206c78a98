package check

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var sameOutcome = described(Check{
	ID:    K06,
	Needs: NeedReplay | NeedTwo,
	Run:   runSameOutcome,
})

func runSameOutcome(in *Input) Result {
	f := Finding{Kind: KindOutcomesDiffer, Severity: Critical, Class: ClassDataDivergence, Undecided: true}
	named, disputed := map[string]bool{}, false
	for _, e := range in.Replay.Events {
		if !partsWays(e) {
			continue
		}
		if f.At.Index == 0 {
			f.At = At{Term: e.Term, Index: e.Index}
		}
		disputed = disputed || e.Disputed()
		for i, o := range e.Outcomes {
			if !told(o) {
				continue
			}
			if m := in.Members[i].Label(); !named[m] {
				named[m] = true
				f.Members = append(f.Members, m)
			}
			f.Evidence = append(f.Evidence, outcomeEvidence(in, i, e, o))
		}
	}
	if len(f.Evidence) == 0 {
		return Result{Outcome: Holds}
	}
	f.Title = fmt.Sprintf("entry %d/%d had different results on different members", f.At.Term, f.At.Index)
	f.Explanation = "the evidence shows what the entry did on each member. From here on their contents and " +
		"revisions differ"
	if disputed {
		f.Explanation += ". The logs hold different entries at the same index"
	}
	return Result{Outcome: Violated, Findings: []Finding{in.cut(f)}}
}

func told(o replay.Outcome) bool {
	switch o.State {
	case replay.Applied, replay.Refused, replay.NoEffect:
		return true
	}
	return false
}

// partsWays: two members' legal outcomes differ, and no other check explains it.
func partsWays(e *replay.Event) bool {
	return e.Kind != dumplog.KindLeaseRevoke && outcomesDiffer(e)
}

// outcomesDiffer: two members' legal outcomes differ, and the auth revision is not the reason.
func outcomesDiffer(e *replay.Event) bool {
	var first *replay.Outcome
	differ := false
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		if o.State == replay.Refused && o.Reason == replay.ReasonOldAuth || o.State == replay.Missing ||
			o.State == replay.Contradicted {
			return false
		}
		if !told(*o) {
			continue
		}
		if first == nil {
			first = o
		} else if o.Sig != first.Sig {
			differ = true
		}
	}
	return differ
}

func outcomeEvidence(in *Input, i int, e *replay.Event, o replay.Outcome) Evidence {
	own := e.Version(i)
	said := []string{own.What + ":", o.State.String()}
	if o.Reason != "" {
		said = append(said, "("+string(o.Reason)+")")
	}
	if o.Rev > 0 {
		said = append(said, fmt.Sprintf("at revision %d", o.Rev))
	}
	if o.Detail != "" {
		said = append(said, o.Detail)
	}
	ev := in.inLog(Evidence{Bucket: "key", Field: fmt.Sprintf("entry %d/%d", own.Term, e.Index),
		Observed: strings.Join(said, " "), Expected: "the same on all members"}, i, e.Index)
	if len(own.Keys) > 0 {
		ev.Key = Bytes(own.Keys[0])
	}
	return ev
}

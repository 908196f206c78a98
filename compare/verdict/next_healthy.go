package verdict

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// nextTorn says what to do about sources whose files come from different moments: what the findings say, else another
// copy, and the plan, which replaces a member whose host holds exactly this.
func (ad *advice) nextTorn(add func(text string, command shell.Command)) {
	ad.nextRemedies(add)
	var torn []string
	for i := range ad.Findings {
		f := &ad.Findings[i]
		if f.Class == check.ClassTornCopy && f.Severity.Rank() >= check.Error.Rank() {
			torn = append(torn, f.Members...)
		}
	}
	if len(ad.Next) > 0 || len(torn) == 0 {
		ad.nextHealthy(add)
		return
	}
	slices.Sort(torn)
	add("copy "+plural.List(slices.Compact(torn))+" again, with its server stopped, and diagnose the new copy with "+
		"the others. If its host holds exactly this, start no server on it: the plan replaces it", ad.diagnoseAll())
	if best, rest := ad.bestAndRest(); best != "" && len(rest) > 0 {
		ad.nextPlan(add)
	}
}

// diagnoseAll is the diagnosis of all sources, with further ones if there is only one.
func (ad *advice) diagnoseAll() shell.Command {
	c := shell.Format("etcd-medic diagnose").Sources(ad.allLabels()...)
	if len(ad.Members) == 1 {
		c = c.Then(shell.Format("<OTHER_MEMBER...>"))
	}
	return c
}

func (ad *advice) nextRemedies(add func(text string, command shell.Command)) {
	for _, f := range ad.Findings {
		for _, m := range f.Remedy {
			add(m.Text, m.Command)
		}
	}
}

func (ad *advice) nextHealthy(add func(text string, command shell.Command)) {
	ad.nextRemedies(add)
	if ad.Verdict.Class == check.ClassLagging && !ad.allCollected() && ad.mayStart() {
		add("start the lagging member; it catches up by itself", none)
	}
	if ad.absentVoters() > 0 {
		add("copy the data dirs of the other members (each server stopped) and diagnose them together: what differs "+
			"between members does not show on one", shell.Format("etcd-medic diagnose {} <OTHER_MEMBER...>",
			ad.first()))
	}
	if len(ad.Next) == 0 {
		add("nothing to repair. To explore the data", ad.explore())
	}
}

// mayStart reports whether a source lags that is not an older copy of its member: no server may start on those.
func (in *Input) mayStart() bool {
	older := map[string]bool{}
	for i := range in.Findings {
		switch f := &in.Findings[i]; f.Kind {
		case check.KindLogEndsBeforeServed, check.KindVoteMissing, check.KindOlderCopy:
			for _, name := range f.Members {
				older[name] = true
			}
		}
	}
	return slices.ContainsFunc(in.Findings, func(f check.Finding) bool {
		return f.Class == check.ClassLagging &&
			slices.ContainsFunc(f.Members, func(name string) bool { return !older[name] })
	})
}

// explore is the command that lists what the first source holds: its database or, where it has none, its log.
func (in *Input) explore() shell.Command {
	if in.Members[0].HasDB() {
		return shell.Format("etcd-medic dumpdb {}", in.first())
	}
	return shell.Format("etcd-medic dumplog {}", in.first())
}

// allCollected reports whether every source was taken from a running member: none of them waits to be started.
func (in *Input) allCollected() bool {
	return !slices.ContainsFunc(in.Members, func(m *evidence.Member) bool { return !m.Source.Collected })
}

package cause

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAlteredInDatabase: one log and one database that disagree do not prove which of them was altered.
func TestAlteredInDatabase(t *testing.T) {
	wrong, right := replay.Outcome{State: replay.Contradicted, Sig: 2}, replay.Outcome{State: replay.Applied, Sig: 1}
	unknown, legal := replay.Outcome{State: replay.Unknown}, replay.Outcome{State: replay.NoEffect}
	for name, c := range map[string]struct {
		logs     []bool
		outcomes []replay.Outcome
		want     Certainty
	}{
		"one database, one log":                   {[]bool{true}, []replay.Outcome{wrong}, Strong},
		"one database, two logs":                  {[]bool{true, true}, []replay.Outcome{wrong, unknown}, Proof},
		"another database":                        {[]bool{true, false}, []replay.Outcome{wrong, right}, Proof},
		"another database without an effect":      {[]bool{true, false}, []replay.Outcome{wrong, legal}, Strong},
		"two databases, one log, a third as told": {[]bool{true, false, false}, []replay.Outcome{wrong, wrong, right}, Proof},
		"nothing contradicted":                    {[]bool{true}, []replay.Outcome{right}, Proof},
	} {
		in := &Input{Input: &check.Input{Replay: &replay.Result{
			Events: []*replay.Event{{Index: 5, Term: 2, Outcomes: c.outcomes}}}}}
		for _, log := range c.logs {
			m := &evidence.Member{Source: &evidence.Source{}}
			if log {
				m.WAL.Log, m.WAL.LastByTerm = &dumplog.Log{}, []evidence.TermEnd{{Term: 2, First: 1, Last: 9}}
			}
			in.Members = append(in.Members, m)
			in.Replay.Members = append(in.Replay.Members, &replay.MemberResult{Member: m})
		}
		if got := alteredInDatabase(in); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

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
		"one database, one log":              {[]bool{true}, []replay.Outcome{wrong}, Strong},
		"one database, two logs":             {[]bool{true, true}, []replay.Outcome{wrong, unknown}, Proof},
		"another database":                   {[]bool{true, false}, []replay.Outcome{wrong, right}, Proof},
		"another database without an effect": {[]bool{true, false}, []replay.Outcome{wrong, legal}, Strong},
		"two databases, one log, a third as told": {[]bool{true, false, false}, []replay.Outcome{wrong, wrong, right},
			Proof},
		"nothing contradicted": {[]bool{true}, []replay.Outcome{right}, Proof},
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

// TestOnlyContradicted: only values are wrong on a member if each of its outcomes that does not fit has its records in
// full, with other content.
func TestOnlyContradicted(t *testing.T) {
	wrong := replay.Outcome{State: replay.Contradicted, Sig: 2}
	noRecord, partial := wrong, wrong
	noRecord.Sig, partial.Partial = 0, true
	right := replay.Outcome{State: replay.Applied, Sig: 1}
	for name, c := range map[string]struct {
		outcomes []replay.Outcome
		want     bool
	}{
		"one value":                 {[]replay.Outcome{wrong}, true},
		"two values, others fit":    {[]replay.Outcome{right, wrong, right, wrong}, true},
		"nothing":                   {[]replay.Outcome{right}, false},
		"no outcome":                {nil, false},
		"an effect is missing":      {[]replay.Outcome{wrong, {State: replay.Missing}}, false},
		"missing before it":         {[]replay.Outcome{{State: replay.Missing}, wrong}, false},
		"applied twice":             {[]replay.Outcome{wrong, {State: replay.AppliedTwice}}, false},
		"the records are not there": {[]replay.Outcome{wrong, noRecord}, false},
		"only some of them":         {[]replay.Outcome{partial}, false},
	} {
		in := &Input{Input: &check.Input{Replay: &replay.Result{}}}
		for i, o := range c.outcomes {
			in.Replay.Events = append(in.Replay.Events, &replay.Event{Index: uint64(i) + 5,
				Outcomes: []replay.Outcome{{State: replay.Missing}, o}})
		}
		if got := onlyContradicted(in, 1); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUndecodable: a record of the member itself that is none.
func TestUndecodable(t *testing.T) {
	of := func(label string, undecodable bool) check.Finding {
		return check.Finding{Members: []string{label}, Facts: check.Facts{Undecodable: undecodable}}
	}
	for name, c := range map[string]struct {
		fs   []check.Finding
		want bool
	}{
		"its own":   {[]check.Finding{of("n2", true), of("n1", true)}, true},
		"another's": {[]check.Finding{of("n2", true)}, false},
		"decodes":   {[]check.Finding{of("n1", false)}, false}, "none": {nil, false},
	} {
		in := &Input{Findings: map[check.ID][]check.Finding{check.K04: c.fs}}
		if got := undecodable(in, "n1"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLacksRecord: a transaction of the member itself that is not complete.
func TestLacksRecord(t *testing.T) {
	in := &Input{Findings: map[check.ID][]check.Finding{check.K04: {
		{Members: []string{"n1"}, Facts: check.Facts{RecordMissing: true}}, {Members: []string{"n2"}}}}}
	for name, want := range map[string]bool{"n1": true, "n2": false, "n3": false} {
		if got := lacksRecord(in, name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOnePerLife: each entry that is missing was the last one that a process of the member applied in vain.
func TestOnePerLife(t *testing.T) {
	for name, c := range map[string]struct {
		missing []uint64
		starts  []uint64
		want    bool
	}{
		"none":                 {nil, []uint64{9}, true},
		"one":                  {[]uint64{5}, []uint64{3, 9}, true},
		"no start after it":    {[]uint64{5}, []uint64{3, 5}, false},
		"one each":             {[]uint64{5, 12}, []uint64{9, 20}, true},
		"two in one life":      {[]uint64{5, 6}, []uint64{9, 20}, false},
		"the second unstarted": {[]uint64{5, 12}, []uint64{9}, false},
	} {
		in := &Input{Input: &check.Input{Members: check.Sources{{MemberID: 7}},
			Replay: &replay.Result{Survey: &replay.Survey{
				Starts: map[dumplog.ID][]replay.Start{}}}}}
		for _, index := range c.starts {
			in.Replay.Survey.Starts[7] = append(in.Replay.Survey.Starts[7], replay.Start{Index: index})
		}
		in.Replay.Events = []*replay.Event{{Index: 4, Outcomes: []replay.Outcome{{State: replay.Applied}}}}
		for _, index := range c.missing {
			in.Replay.Events = append(in.Replay.Events, &replay.Event{Index: index,
				Outcomes: []replay.Outcome{{State: replay.Missing}}})
		}
		if got := onePerLife(in, 0); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

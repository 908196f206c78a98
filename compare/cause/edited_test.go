package cause

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestChangedOutsideLog: only findings of error or worse that name a member by its last transaction are put down to it.
func TestChangedOutsideLog(t *testing.T) {
	in := func(f check.Finding) *Input {
		f.ID = string(f.Check + "-1")
		return &Input{Input: &check.Input{}, Findings: map[check.ID][]check.Finding{f.Check: {f}}}
	}
	for _, c := range []struct {
		f    check.Finding
		want []string
	}{
		{check.Finding{Check: "L04", Severity: check.Error, Members: []string{"a"}, ByHand: []string{"a"}},
			[]string{"a"}},
		{check.Finding{Check: "K12", Severity: check.Error, Members: []string{"a", "b"}, ByHand: []string{"b"}},
			[]string{"b"}},
		{check.Finding{Check: "K01", Severity: check.Critical, Members: []string{"a"}, ByHand: []string{"a"}},
			[]string{"a"}},
		{check.Finding{Check: "L04", Severity: check.Warning, Members: []string{"a"}, ByHand: []string{"a"}}, nil},
		{check.Finding{Check: "A08", Severity: check.Error, Members: []string{"a"}}, nil},
	} {
		m := changedOutsideLog.Match(in(c.f))
		switch {
		case m == nil && c.want == nil:
		case m == nil || !slices.Equal(m.Members, c.want) || m.Certainty != Proof ||
			!slices.Equal(m.Because, []string{string(c.f.Check + "-1")}):
			t.Errorf("%+v: %+v", c.f, m)
		}
	}
}

// TestOtherRowsChanged: rows that were changed outside the log explain the live keys that differ only if they are among
// them.
func TestOtherRowsChanged(t *testing.T) {
	byHand := func(id check.ID, hand ...string) []check.Finding {
		return []check.Finding{{Check: id, ID: string(id + "-1"), Severity: check.Error,
			Class: check.ClassDataDivergence, Members: []string{"a"}, ByHand: hand}}
	}
	for name, c := range map[string]struct {
		found map[check.ID][]check.Finding
		other bool
	}{
		"a record": {map[check.ID][]check.Finding{"K12": byHand("K12", "a"), "K01": byHand("K01")}, true},
		"a record and the keys": {map[check.ID][]check.Finding{"K12": byHand("K12", "a"),
			"K01": byHand("K01", "a")}, false},
		"a record alone": {map[check.ID][]check.Finding{"K12": byHand("K12", "a")}, false},
	} {
		in := &Input{Input: &check.Input{}, Findings: c.found}
		if got := otherRows(in, RowsChangedOutsideTheLog, changedOutsideLog.Match(in)); got != c.other {
			t.Errorf("%s: %v", name, got)
		}
	}
}

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

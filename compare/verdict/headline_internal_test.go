package verdict

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestHeadlineJoinsWhatBelongsTogether: a cause is not said to be that of a first break on which it does not rest. One
// of the same class, or another cause that rests on it, is.
func TestHeadlineJoinsWhatBelongsTogether(t *testing.T) {
	break1 := check.Finding{ID: "M07-1", Check: check.M07, Class: check.ClassMembership, Severity: check.Error,
		At: check.At{Index: 5}, Title: "n1: the voters differ"}
	torn := check.Finding{ID: "W01-1", Check: check.W01, Class: check.ClassWALDamage, Severity: check.Error,
		At: check.At{Index: 90}, Title: "n1: a torn tail"}
	other := check.Finding{ID: "M02-1", Check: check.M02, Class: check.ClassMembership, Severity: check.Error,
		At: check.At{Index: 9}, Title: "n2: another list"}
	caused := func(title, because string) Cause {
		return Cause{Title: title, Certainty: "strong", Because: []string{because}}
	}
	for name, c := range map[string]struct {
		causes []Cause
		want   string
	}{
		"none":         {nil, "n1: the voters differ"},
		"its own":      {[]Cause{caused("update", "M07-1")}, "update (strong): n1: the voters differ"},
		"of the class": {[]Cause{caused("list", "M02-1")}, "list (strong): n1: the voters differ"},
		"unrelated": {[]Cause{caused("power", "W01-1")},
			"power (strong): n1: a torn tail; also n1: the voters differ"},
		"of no finding": {[]Cause{caused("power", "W09-1")}, "power (strong): n1: the voters differ"},
		"second":        {[]Cause{caused("power", "W01-1"), caused("update", "M07-1")}, "update (strong): n1: the voters differ"},
	} {
		found := []check.Finding{break1, other, torn}
		j := &judge{Input: &Input{Input: &check.Input{}, Findings: found, Causes: c.causes}}
		j.class()
		if v := j.Verdict; v.Class != check.ClassMembership || v.Summary != c.want ||
			!strings.HasSuffix(v.Summary, v.Statement) {
			t.Errorf("%s: %s, %q", name, v.Class, v.Summary)
		}
	}
}

package render

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
)

// TestInputsText: of an input without a file nothing is claimed.
func TestInputsText(t *testing.T) {
	read, empty := compare.Source{Name: "n1", Files: 3}, compare.Source{Name: "n2"}
	used := compare.Source{Name: "n3", InUse: "process 7"}
	for name, c := range map[string]struct {
		sources   []compare.Source
		unchanged bool
		want      string
	}{
		"unchanged": {[]compare.Source{read}, true, "the inputs did not change"},
		"changed":   {[]compare.Source{empty, read}, false, "NOT PROVEN that the inputs did not change"},
		"no file":   {[]compare.Source{empty}, false, "no file was read"},
		"in use":    {[]compare.Source{read, used}, true, "n3 is IN USE: process 7"},
	} {
		if got := inputsText(&compare.Report{Sources: c.sources, InputsUnchanged: c.unchanged}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

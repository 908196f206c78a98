package explain

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
)

// TestLineOf: the rules are those of the minor version that wrote the source, as far as rules are known. The only
// member is that of the only source, whatever its name.
func TestLineOf(t *testing.T) {
	wrote := func(name, version string) (m evidence.Facts) {
		m.Name = name
		if version != "" {
			m.WroteBy.Etcd = &version
		}
		return m
	}
	for name, c := range map[string]struct {
		members []evidence.Facts
		want    int
	}{
		"none":                 {nil, 6},
		"its own":              {[]evidence.Facts{wrote("n2", "3.4.x"), wrote("n1", "3.5.x")}, 5},
		"of others":            {[]evidence.Facts{wrote("n2", "3.4.x"), wrote("n3", "3.5.x")}, 6},
		"the only one":         {[]evidence.Facts{wrote("n2", "3.4.x")}, 4},
		"unknown":              {[]evidence.Facts{wrote("n1", ""), wrote("n2", "3.4.x")}, 6},
		"no version of etcd 3": {[]evidence.Facts{wrote("n1", "2.3")}, 6},
		"older than all rules": {[]evidence.Facts{wrote("n1", "3.0.x")}, preflight.Oldest},
		"newer than all rules": {[]evidence.Facts{wrote("n1", "3.99.x")}, preflight.Newest},
	} {
		if got := lineOf(evidence.Spec{Name: "n1"}, &compare.Report{Members: c.members}); got != c.want {
			t.Errorf("%s: 3.%d, want 3.%d", name, got, c.want)
		}
	}
}

// TestWanted: several topics are looked for together.
func TestWanted(t *testing.T) {
	w := wanted([]Topic{{Checks: []string{"A"}, Causes: []string{"b"}, Rules: []string{"R1"}},
		{Checks: []string{"C"}, Rules: []string{"R2"}}, {Causes: []string{"d"}}})
	if !slices.Equal(w.Checks, []string{"A", "C"}) || !slices.Equal(w.Causes, []string{"b", "d"}) ||
		!slices.Equal(w.Rules, []string{"R1", "R2"}) {
		t.Errorf("%+v", w)
	}
}

// TestRulesEndWithTheContext: rules are run for each source until the context ends, and not at all without any.
func TestRulesEndWithTheContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	specs := []evidence.Spec{{Where: t.TempDir()}}
	for _, c := range []struct {
		ctx   context.Context //nolint:containedctx // a row of the table
		rules []string
		want  error
	}{{ended, []string{"P10"}, context.Canceled}, {ended, nil, nil}, {t.Context(), []string{"P10"}, nil}} {
		on := &On{InputsUnchanged: true}
		err := on.preflight(c.ctx, c.rules, specs, &compare.Report{}, Options{})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || len(on.Rules) > 0 || !on.InputsUnchanged {
			t.Errorf("%q: %+v, %v, want %v", c.rules, on, err, c.want)
		}
	}
}

// Package rules proves that the alert rules and the dashboard in deploy/watch can be used: Prometheus' own packages
// read them, and they name metrics and labels that the program exports.
//
// It is a module of its own, so that the program does not depend on Prometheus.
package rules

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

const repo = "../.."

// exported are the metrics with their labels, as watch/testdata/metrics.txt lists them; a test of package watch
// holds that list against the registry.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for line := range strings.Lines(string(read(t, "watch/testdata/metrics.txt"))) {
		f := strings.Fields(line)
		if len(f) < 2 || strings.HasPrefix(line, "#") {
			continue
		}
		if out[f[0]] = f[2:]; f[1] != "gauge" && f[1] != "counter" {
			t.Fatalf("%q: want NAME gauge|counter LABEL ...", line)
		}
	}
	if len(out) < 10 {
		t.Fatalf("%d metrics are listed", len(out))
	}
	return out
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repo, file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRules: Prometheus reads the file without an error, every expression is over exported metrics, and no two rules
// have one name.
func TestRules(t *testing.T) {
	groups, errs := rulefmt.Parse(read(t, "deploy/watch/rules.yaml"), false)
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 {
		t.Fatal("no group of rules")
	}
	known, seen := exported(t), map[string]bool{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] {
				t.Errorf("alert %q has no name, or one that is taken", r.Alert)
			}
			seen[r.Alert] = true
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s: no severity or no summary", r.Alert)
			}
			for _, p := range problems(r.Expr, known) {
				t.Errorf("%s: %s", r.Alert, p)
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("%d rules", len(seen))
	}
}

// TestDashboard: every expression of the dashboard is one of Prometheus over exported metrics, and its legends name
// labels.
func TestDashboard(t *testing.T) {
	var d struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(read(t, "deploy/watch/dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	known, n := exported(t), 0
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: no title, or its number is taken", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			n++
			for _, e := range problems(target.Expr, known) {
				t.Errorf("%s: %s", p.Title, e)
			}
			for _, l := range legendLabels(target.LegendFormat) {
				if !slices.ContainsFunc(metricsOf(target.Expr),
					func(m string) bool { return slices.Contains(known[m], l) }) {
					t.Errorf("%s: the legend names label %s, which no metric of %s has", p.Title, l, target.Expr)
				}
			}
		}
	}
	if n < 5 || d.UID == "" || d.Title == "" {
		t.Errorf("%d expressions, uid %q, title %q", n, d.UID, d.Title)
	}
}

// TestManifests: every manifest that is shipped is YAML, each document with a kind.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repo, "deploy", "*", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if filepath.Base(f) == "rules.yaml" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for dec, n := yaml.NewDecoder(strings.NewReader(string(b))), 0; ; n++ {
			var doc struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
			}
			if err := dec.Decode(&doc); err != nil {
				if n == 0 || err.Error() != "EOF" {
					t.Errorf("%s: document %d: %v", f, n, err)
				}
				break
			}
			if doc.Kind == "" || doc.APIVersion == "" {
				t.Errorf("%s: document %d has no kind", f, n)
			}
		}
	}
}

// TestProblems: what the other tests look for is found.
func TestProblems(t *testing.T) {
	known := map[string][]string{"a_total": {"kind"}, "b": {"kind", "member"}}
	for expr, want := range map[string]string{
		"rate(a_total[5m]) > 0":         "",
		"max by (member) (b) > 0":       "",
		"rate(a_total[5m) > 0":          "parse error",
		"missing > 0":                   "missing is not exported",
		`b{other="x"} > 0`:              "b has no label other",
		"max by (other) (b) > 0":        "no metric of it has label other",
		"b - on(other) group_right() b": "no metric of it has label other",
	} {
		got := strings.Join(problems(expr, known), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// problems are what keeps an expression from working with the metrics.
func problems(expr string, known map[string][]string) (out []string) {
	e, err := parser.ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	used := map[string]bool{"job": true, "instance": true} // which Prometheus adds to every target
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			out = append(out, selector(v, known)...)
			for _, l := range known[v.Name] {
				used[l] = true
			}
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		for _, l := range grouping(n) {
			if !used[l] {
				out = append(out, "no metric of it has label "+l)
			}
		}
		return nil
	})
	return out
}

func selector(v *parser.VectorSelector, known map[string][]string) (out []string) {
	has, ok := known[v.Name]
	if !ok {
		return []string{v.Name + " is not exported"}
	}
	for _, m := range v.LabelMatchers {
		if m.Name != labels.MetricName && !slices.Contains(has, m.Name) {
			out = append(out, v.Name+" has no label "+m.Name)
		}
	}
	return out
}

func grouping(n parser.Node) []string {
	switch n := n.(type) {
	case *parser.AggregateExpr:
		return n.Grouping
	case *parser.BinaryExpr:
		if m := n.VectorMatching; m != nil {
			return append(slices.Clone(m.MatchingLabels), m.Include...)
		}
	}
	return nil
}

func metricsOf(expr string) []string {
	names := map[string]bool{}
	if e, err := parser.ParseExpr(expr); err == nil {
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				names[v.Name] = true
			}
			return nil
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// legendLabels are the {{label}} of a legend.
func legendLabels(legend string) (out []string) {
	for _, part := range strings.Split(legend, "{{")[1:] {
		name, _, _ := strings.Cut(part, "}}")
		out = append(out, strings.TrimSpace(name))
	}
	return out
}

package soak

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFaultOnWrongBaseIsNotJudged: where the undamaged members raise a false alarm, the fault proves nothing; where
// they are inconclusive, an inconclusive answer is not the fault's.
func TestFaultOnWrongBaseIsNotJudged(t *testing.T) {
	members := []Source{{Name: "a", Path: t.TempDir()}}
	damaged := []Source{{Name: "a", Path: t.TempDir()}}
	truth := Truth{Kind: "page-zero", Damaged: []string{"a"}}
	for _, tc := range []struct {
		name, base, answer     string
		wrong, judged, leftOut int
	}{
		{"sound base, missed", saysHealthy, saysHealthy, 1, 1, 0},
		{"sound base, inconclusive", saysHealthy, saysUnknown, 1, 1, 0},
		{"alarm without the fault", blamesA, saysHealthy, 0, 0, 1},
		{"inconclusive without the fault", saysUnknown, saysUnknown, 0, 1, 0},
		{"inconclusive without the fault, missed", saysUnknown, saysHealthy, 1, 1, 0},
	} {
		table := NewTable()
		r := &runner{t: t, col: &Collected{Members: members}, done: map[string]bool{}, base: map[string][]Problem{}}
		r.cfg = Config{Table: table, Diagnose: func(s []Source) *Answer {
			if s[0].Path == members[0].Path {
				return answer(t, tc.base)
			}
			return answer(t, tc.answer)
		}}
		r.judge("page-zero", damaged, truth)
		if wrong, judged := table.Wrong(); wrong != tc.wrong || judged != tc.judged || table.skipped != tc.leftOut {
			t.Errorf("%s: %d of %d wrong, %d left out", tc.name, wrong, judged, table.skipped)
		}
	}
}

func TestCaseNames(t *testing.T) {
	for _, tc := range []struct {
		want, name      string
		wanted, applied bool
	}{
		{"", "page-zero/all", true, true},
		{"page-zero/all", "page-zero/all", true, true},
		{"page-zero/all", "page-zero/node1", false, true},
		{"page-zero", "page-zero/node1", true, true},
		{"page", "page-zero/node1", true, true},
		{"lease-ttl-higher/all", "lease-ttl/all", false, false},
		{"healthy/node1", "healthy/node1+node2", false, true},
	} {
		cfg := Config{Case: tc.want}
		kind, _, _ := strings.Cut(tc.name, "/")
		if cfg.wants(tc.name) != tc.wanted || cfg.wantsKind(kind) != tc.applied {
			t.Errorf("CASE=%s: %s is judged: %t, applied: %t", tc.want, tc.name, cfg.wants(tc.name),
				cfg.wantsKind(kind))
		}
	}
}

// TestFaultsOnKeptCases applies faults to a kept history: its case without a fault is judged no more.
func TestFaultsOnKeptCases(t *testing.T) {
	root, dirs := t.TempDir(), synthetic(t, 0)
	c := Case{Seed: 3, Name: healthyKind + "/all", Shape: "lag", Line: "3.6.16",
		Truth: Truth{Kind: healthyKind, Healthy: true}}
	for i, d := range dirs {
		c.Sources = append(c.Sources, Source{Name: fmt.Sprintf("node%d", i+1), Path: d})
	}
	if err := Keep(root, c, nil, &Collected{Log: []string{"restore [--bump-revision]"}}); err != nil {
		t.Fatal(err)
	}
	table := NewTable()
	seen := 0
	Damage(t, root, Config{Case: "db-empty", Faults: 1, Table: table, Diagnose: func(s []Source) *Answer {
		for _, src := range s {
			if st, err := os.Stat(dbFile(src.Path)); err == nil && st.Size() == 0 {
				seen++
			}
		}
		return answer(t, saysHealthy)
	}})
	if wrong, judged := table.Wrong(); judged < 3 || wrong != judged || seen < judged {
		t.Errorf("%d of %d are wrong, %d damaged sources", wrong, judged, seen)
	}
}

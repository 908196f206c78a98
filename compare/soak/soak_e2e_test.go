//go:build e2e

package soak_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/soak"
)

// TestSoak runs the seeds of SOAK_SEEDS (A..B). SOAK_CASE judges only cases whose names begin so, SOAK_KEEP is where
// the sources of wrong cases go, SOAK_MEDIC is a built program to judge instead of this build's library. With SOAK_SETS
// it makes no history and judges the cases kept below that folder once more, or, with SOAK_FAULTS=N, applies up to N
// faults to copies of those without one. The table also goes to the file SOAK_OUT.
func TestSoak(t *testing.T) {
	cfg := soak.Config{Case: os.Getenv("SOAK_CASE"), Keep: os.Getenv("SOAK_KEEP"), Diagnose: soak.InProcess,
		Table: soak.NewTable()}
	if p := os.Getenv("SOAK_MEDIC"); p != "" {
		cfg.Diagnose = soak.Program(p)
	}
	sets := os.Getenv("SOAK_SETS")
	if n := os.Getenv("SOAK_FAULTS"); n != "" {
		if _, err := fmt.Sscan(n, &cfg.Faults); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case sets != "" && cfg.Faults > 0:
		soak.Damage(t, sets, cfg)
	case sets != "":
		if err := soak.Again(sets, cfg); err != nil {
			t.Fatal(err)
		}
	default:
		runSeeds(t, cfg)
	}
	t.Logf("\n%s", report(t, cfg.Table))
	wrong, judged := cfg.Table.Wrong()
	if judged == 0 {
		t.Error("no case was judged")
	}
	if wrong > 0 {
		t.Errorf("%d of %d cases are wrong", wrong, judged)
	}
}

// report returns the table, and writes it to the file SOAK_OUT, if set, so that a long run can be followed.
func report(t *testing.T, table *soak.Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Error(err)
	}
	if out := os.Getenv("SOAK_OUT"); out != "" {
		if err := os.WriteFile(out, []byte(b.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
	return b.String()
}

func runSeeds(t *testing.T, cfg soak.Config) {
	t.Helper()
	text := os.Getenv("SOAK_SEEDS")
	if text == "" {
		text = "1..3"
	}
	seeds, err := soak.ParseSeeds(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("seeds", func(t *testing.T) { // returns when all of them are done
		for _, n := range seeds {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				defer report(t, cfg.Table)
				soak.Run(t, n, cfg)
			})
		}
	})
}

//go:build e2e

package soak_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/soak"
)

// TestSoak runs the seeds of SOAK_SEEDS (A..B). SOAK_CASE judges only cases whose names begin so, SOAK_KEEP is where the sources of
// wrong cases go, SOAK_MEDIC is a built program to judge instead of this build's library. With SOAK_SETS it makes no history and judges
// the cases kept below that folder once more.
func TestSoak(t *testing.T) {
	cfg := soak.Config{Case: os.Getenv("SOAK_CASE"), Keep: os.Getenv("SOAK_KEEP"), Diagnose: soak.InProcess, Table: soak.NewTable()}
	if p := os.Getenv("SOAK_MEDIC"); p != "" {
		cfg.Diagnose = soak.Program(p)
	}
	if sets := os.Getenv("SOAK_SETS"); sets != "" {
		if err := soak.Again(sets, cfg); err != nil {
			t.Fatal(err)
		}
	} else {
		runSeeds(t, cfg)
	}
	var b strings.Builder
	if err := cfg.Table.Write(&b); err != nil {
		t.Fatal(err)
	}
	wrong, judged := cfg.Table.Wrong()
	if out := os.Getenv("SOAK_OUT"); out != "" {
		if err := os.WriteFile(out, []byte(b.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Logf("\n%s", b.String())
	if judged == 0 {
		t.Error("no case was judged")
	}
	if wrong > 0 {
		t.Errorf("%d of %d cases are wrong", wrong, judged)
	}
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
				soak.Run(t, n, cfg)
			})
		}
	})
}

//go:build e2e

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2EAdvanceLogWithEveryVoter: the log is advanced while every voter is listed and runs, before any is taken out,
// and a member that runs gives its snapshot before it is stopped, whatever the plan thinks of its data dir.
func TestE2EAdvanceLogWithEveryVoter(t *testing.T) {
	for _, version := range []string{"3.6.16", "3.7.3"} {
		for _, damaged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/damaged=%v", version, damaged), func(t *testing.T) {
				advanceLogWithEveryVoter(t, version, damaged)
			})
		}
	}
}

func advanceLogWithEveryVoter(t *testing.T, version string, damaged bool) {
	o := attending{version: version, members: 3, replace: []string{"node2"}}
	if damaged {
		o.spoil = func(copies string) { blankMetas(t, filepath.Join(copies, "node2")) }
	}
	a := o.attend(t)
	if a.p.Member("node2").Startable == damaged {
		t.Fatalf("%+v", a.p.Member("node2"))
	}
	save := savePath(a.live.Backup, a.p.Member("node2"))
	advanced, saved, fewest := 0, false, 3
	out, err := a.apply(t.Context(), Observed(Options{}, func(r Record, flushed bool) {
		if !flushed {
			return
		}
		up, voters := a.running()
		fewest = min(fewest, voters)
		switch kind := plan.StepKind(kindOf(a.p, r.Step)); {
		case kind == plan.StepAdvanceLog:
			advanced++
			if up != 3 || voters != 3 {
				t.Errorf("%s of %s: %d of %d voters run, want 3 of 3", r.State, r.Step, up, voters)
			}
		case kind == plan.StepStop && r.State == StateBegin:
			st, err := os.Stat(save)
			saved = err == nil && st.Size() > 0
		}
	}))
	if advanced < 2 || !saved || fewest != 2 {
		t.Errorf("%d records of the log's advance; node2 saved before its stop: %v; at least %d voters listed: "+
			"the test shows nothing", advanced, saved, fewest)
	}
	if out != nil {
		wantAdvance(t, out)
	}
	a.finish(out, err)
}

// wantAdvance wants that the log has come on by at least the entries that the leader is made to drop.
func wantAdvance(t *testing.T, out *Outcome) {
	t.Helper()
	for _, s := range out.Steps {
		var from, to int
		if n, _ := fmt.Sscanf(s.Detail, "raft index %d to %d", &from, &to); n == 2 {
			if to-from < 110 {
				t.Errorf("%s: %s", s.ID, s.Detail)
			}
			return
		}
	}
	t.Errorf("no step advanced the log: %+v", out.Steps)
}

// blankMetas makes a database that no server opens.
func blankMetas(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_WRONLY, 0)
	ok(t, err)
	_, err = f.WriteAt(make([]byte, 8192), 0)
	ok(t, err)
	ok(t, f.Close())
}

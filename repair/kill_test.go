package repair

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// process carries a plan out in a process of its own.
func process(t *testing.T, file string, mode Mode, out string, told map[string]bool) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	for _, r := range journalled(t, file) { // begun between the last look and the kill
		told[r.Step] = true
	}
	var stderr bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envVictim+"="+strings.Join([]string{file, string(mode), out}, "\n"))
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, &stderr
}

// journalled are the lines that say that a step begins.
func journalled(t *testing.T, file string) []Record {
	t.Helper()
	all, err := ReadJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r Record) bool { return r.State != StateBegin })
}

// killAtNext ends the process as soon as the journal tells of a step that it has not told of before; false when it ended by itself
// or had reached its goal before the kill came.
func killAtNext(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer, file string, told map[string]bool) bool {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("the process ended by itself: %v\n%s", err, stderr)
			}
			return false
		case <-time.After(2 * time.Millisecond):
		}
		for _, r := range journalled(t, file) {
			if !told[r.Step] {
				told[r.Step] = true
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				<-ended
				return !reached(t, file)
			}
		}
	}
	t.Fatal("nothing happened within a minute")
	return false
}

// reached tells whether the journal's last word is that the run reached its goal: the last steps are quick, and then there is
// nothing left to go on with.
func reached(t *testing.T, file string) bool {
	t.Helper()
	all, err := ReadJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	return all[len(all)-1].State == StateEnd
}

// TestKilledAtEveryStep kills the tool with SIGKILL as soon as it begins a step, for every step of the run, and starts it again
// each time: it goes on where it stood and reaches the goal.
func TestKilledAtEveryStep(t *testing.T) {
	for _, tc := range []struct {
		incident string
		mode     Mode
	}{{"a-auth-revision-replay", Reseed}, {"h-misconfigured-member-add", Clone}} {
		t.Run(string(tc.mode), func(t *testing.T) {
			file := savePlan(t, tc.incident, PlanOptions{})
			out := filepath.Join(t.TempDir(), "out")
			told := map[string]bool{}
			kills := 0
			for {
				cmd, stderr := process(t, file, tc.mode, out, told)
				if !killAtNext(t, cmd, stderr, file, told) {
					break
				}
				kills++
			}
			want := len(mustLoad(t, file).Way(Live).Steps) / 2 // quick steps may begin before the kill comes
			if tc.mode == Clone {
				want = 2
			}
			if kills < want {
				t.Errorf("killed %d times only", kills)
			}
			st, err := Status(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(st.Runs); n != 1 || st.Runs[0].State != "reached" || st.Runs[0].Resumed != kills {
				t.Errorf("%d runs, the first is %s and was carried on %d times; want one, reached, %d", n, st.Runs[0].State, st.Runs[0].Resumed, kills)
			}
			wantHealthy(t, out)
		})
	}
}

func mustLoad(t *testing.T, file string) *Plan {
	t.Helper()
	p, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wantHealthy diagnoses data dirs that were handed out.
func wantHealthy(t *testing.T, out string) {
	t.Helper()
	r, err := compare.Diagnose(t.Context(), specsOf(out), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Healthy == nil || !*r.Verdict.Healthy || len(r.Members) < 3 {
		t.Errorf("%d members, %s: %s", len(r.Members), r.Verdict.Class, r.Verdict.Summary)
	}
}

func specsOf(dir string) []evidence.Spec { return []evidence.Spec{{Where: dir}} }

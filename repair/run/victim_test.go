package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// envVictim holds the job of a process that carries a plan out and is killed.
const envVictim = "ETCD_MEDIC_TEST_VICTIM"

// VictimJob is what such a process does.
type VictimJob struct {
	File string
	Mode plan.Mode
	Out  string
	// Endpoints, CACert, Cert, Key and Hook reach a running cluster.
	Endpoints         []string
	CACert, Cert, Key string
	Hook              string
	// Seen, when it is not nil, makes the process stop dead at the first point of its journal that is not in it, and
	// tell that on stdout.
	Seen []string
	// Shards, when it is not 0, leaves only the points of every Shards-th step; Shard says which of them. Points of no
	// step are those of shard 0.
	Shard, Shards int
}

// mine tells whether points of that step are among those of the shard.
func (j *VictimJob) mine(step string) bool {
	if j.Shards == 0 {
		return true
	}
	number, _, _ := strings.Cut(step, "-")
	n, err := strconv.Atoi(number)
	return err == nil && n%j.Shards == j.Shard || err != nil && j.Shard == 0
}

func (j *VictimJob) command(env ...string) *exec.Cmd {
	b, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), envVictim+"="+string(b))
	return cmd
}

// point names a moment of a run: right before or right after a line of the journal is flushed.
func point(r Record, flushed bool) string {
	when := "before"
	if flushed {
		when = "after"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", when, r.State,
		strings.Join(append([]string{r.Step}, slices.Sorted(maps.Keys(r.Values))...), " ")))
}

func (j *VictimJob) options() Options {
	o := Options{AllowUpgrade: true}
	if j.Seen == nil {
		return o
	}
	return Observed(o, func(r Record, flushed bool) {
		if r.State == StateBegin && !flushed || r.State == StateEnd && flushed || !j.mine(r.Step) {
			return // nothing happened since the line before; there is nothing left to go on with
		}
		if p := point(r, flushed); !slices.Contains(j.Seen, p) {
			fmt.Println(p)
			<-make(chan struct{})
		}
	})
}

// victim ends as the command would: 0 reached, 5 refused, 6 unfinished, 1 else.
func victim(job string) int {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit then fails, as on a full disk
	var j VictimJob
	err := json.Unmarshal([]byte(job), &j)
	switch {
	case err != nil:
	case j.Mode == rehearsal:
		_, err = Rehearse(context.Background(), j.File, j.options())
	default:
		_, err = Apply(context.Background(), j.File, ApplyOptions{Mode: j.Mode, Out: j.Out, Options: j.options(),
			Live: LiveOptions{
				Endpoints: j.Endpoints, CACert: j.CACert, Cert: j.Cert, Key: j.Key, HookStop: j.Hook, HookWipe: j.Hook,
				HookStart: j.Hook}})
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	var refused *refusal.Error
	var unfinished *UnfinishedError
	switch {
	case errors.As(err, &refused):
		return 5
	case errors.As(err, &unfinished):
		return 6
	}
	return 1
}

// KillEverywhere carries a plan out and kills the process with SIGKILL at every point of its journal, each once: before
// and after each line is flushed. It returns the points. The last process ends by itself.
func KillEverywhere(t *testing.T, j VictimJob, env ...string) []string {
	t.Helper()
	j.Seen = []string{}
	for {
		cmd := j.command(env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		limit := time.AfterFunc(4*time.Minute, func() { _ = cmd.Process.Kill() })
		line, _ := bufio.NewReader(out).ReadString('\n') // no line: it ends by itself
		if line == "" {
			if err := cmd.Wait(); err != nil || !limit.Stop() {
				t.Fatalf("after %d kills the process ended by itself: %v\n%s", len(j.Seen), err, &stderr)
			}
			return j.Seen
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		limit.Stop()
		j.Seen = append(j.Seen, strings.TrimSpace(line))
		j.standsThere(t, strings.TrimSpace(line))
	}
}

// standsThere holds repair status against the point where the process was killed.
func (j *VictimJob) standsThere(t *testing.T, at string) {
	t.Helper()
	st, err := Status(j.File)
	if err != nil {
		t.Fatal(err)
	}
	if at == "before run" && len(j.Seen) == 1 {
		return // nothing was written
	}
	if len(st.Runs) != 1 || st.Runs[0].State != "interrupted" || st.AtWork {
		t.Fatalf("killed %s: status says %+v", at, st)
	}
	f := strings.Fields(at)
	want := map[string]string{"after begin": "begun", "before done": "begun", "after done": "done"}[f[0]+" "+f[1]]
	if want == "" {
		return
	}
	i := slices.IndexFunc(st.Runs[0].Steps, func(s StepResult) bool { return s.ID == f[2] })
	if i < 0 || st.Runs[0].Steps[i].State != want {
		t.Fatalf("killed %s: status says %+v of its steps", at, st.Runs[0].Steps)
	}
}

// WantEveryPoint wants that the kills hit every step when it had begun, when it was done and not yet said to be, and
// when it was.
func WantEveryPoint(t *testing.T, points, steps []string) {
	t.Helper()
	for _, s := range steps {
		for _, p := range []string{"after begin", "before done", "after done"} {
			if !slices.Contains(points, p+" "+s) {
				t.Errorf("not killed %s %s", p, s)
			}
		}
	}
	for _, p := range []string{"before run", "after run", "before end"} {
		if !slices.Contains(points, p) {
			t.Errorf("not killed %s", p)
		}
	}
	if t.Failed() {
		t.Logf("killed at %q", points)
	}
}

// WantShard is WantEveryPoint for the points of a shard.
func (j *VictimJob) WantShard(t *testing.T, points, steps []string) {
	t.Helper()
	if j.Shard > 0 {
		points = append(slices.Clone(points), "before run", "after run", "before end")
	}
	WantEveryPoint(t, points, slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return !j.mine(s) }))
}

// StepIDs are the IDs of a way's steps that the tool does itself.
func StepIDs(p *plan.Plan, mode plan.Mode) []string {
	var out []string
	for _, s := range p.Way(mode).Steps {
		if _, ok := table()[s.Kind]; ok {
			out = append(out, s.ID)
		}
	}
	return out
}

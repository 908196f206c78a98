//go:build e2e

package main_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// operator is a person at a terminal: reads what the command asks for and types an answer.
type operator struct {
	t    *testing.T
	c    *lab.Cluster
	args []string
}

// step and question end what is said before an answer is waited for.
const step, question = ", no to stop here: ", ", Enter for no: "

// sits runs the command once. answer gets everything that was said since the last answer and returns what is typed; an
// error ends the input.
func (o *operator) sits(ctx context.Context, answer func(said string) (string, error)) (code int, stdout,
	stderr string) {
	o.t.Helper()
	in, keys := io.Pipe()
	var out, screen text
	end := make(chan int, 1)
	go func() {
		end <- cli.Main(ctx, o.args, &cli.Streams{In: in, Out: &out, Err: &screen,
			Getenv: func(string) string { return "" }})
	}()
	read := 0
	for {
		select {
		case code := <-end:
			return code, out.String(), screen.String()
		case <-time.After(10 * time.Millisecond):
		}
		said := screen.String()[read:]
		if !strings.HasSuffix(said, step) && !strings.HasSuffix(said, question) {
			continue
		}
		read += len(said)
		typed, err := answer(said)
		if err != nil {
			_ = keys.Close()
			continue
		}
		if _, err := io.WriteString(keys, typed+"\n"); err != nil {
			o.t.Fatal(err)
		}
	}
}

// TestE2ELivePrompt: without hooks the command says exactly what is to be done on which host and waits. A person who
// says no, or goes away, stops it; the same command goes on where it stood.
func TestE2ELivePrompt(t *testing.T) {
	for _, line := range []string{"3.5.35", "3.6.16"} {
		t.Run(line, func(t *testing.T) { livePrompt(t, line) })
	}
}

func livePrompt(t *testing.T, line string) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	o, file := newOperator(ctx, t, line)

	for _, no := range []string{"no", ""} { // Enter alone does not begin
		code, _, stderr := o.sits(ctx, func(string) (string, error) { return no, nil })
		if code != cli.ExitRefused || !strings.Contains(stderr, "nothing was changed yet; begin?") ||
			!strings.Contains(stderr, "the operator stopped here") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		o.stands(file, "given up", "")
	}

	asked := 0
	code, _, stderr := o.sits(ctx, func(said string) (string, error) {
		if !strings.Contains(said, "stop node2 (") && !strings.Contains(said, "is not an answer") {
			return "yes", nil
		}
		asked++
		return []string{"", "what?", "no"}[asked], nil
	})
	if code != cli.ExitUnfinished || !strings.Contains(stderr, `"what?" is not an answer`) ||
		!strings.Contains(stderr, `step 05-stop-node2: the operator stopped here: answered "no"`) ||
		!strings.Contains(stderr, "the same command continues from there") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	o.stands(file, "failed", "05-stop-node2")

	code, _, stderr = o.sits(ctx, func(string) (string, error) { return "", io.EOF })
	if code != cli.ExitUnfinished || !strings.Contains(stderr, "the operator stopped here: no answer (EOF)") ||
		strings.Contains(stderr, "begin?") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	o.stands(file, "failed", "05-stop-node2")

	code, stdout, stderr := o.sits(ctx, o.does(ctx))
	if code != cli.ExitDone || !strings.Contains(stdout, "reached: every proof holds") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{"[node2] systemctl stop etcd", "[node2] mv -T /data/node2 /data/node2.before-repair",
		`ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER="node`,
		"node2=http://10.42.0.2:2380", "node1=http://10.42.0.1:2380", "then node2 must not answer at ",
		"move it, do not delete it"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not said:\n%s", want, stderr)
		}
	}
	for _, blank := range []string{"DATA_DIR", `"INITIAL_CLUSTER"`, "=INITIAL_CLUSTER"} {
		if strings.Contains(stderr, blank) {
			t.Errorf("%s is left to be filled in:\n%s", blank, stderr)
		}
	}
	o.stands(file, "reached", "")
}

// newOperator has a diverged cluster and the plan to repair it.
func newOperator(ctx context.Context, t *testing.T, line string) (*operator, string) {
	t.Helper()
	dir := t.TempDir()
	server, err := node.External(ctx, clustertest.Server(t, line))
	must(t, err)
	c, err := lab.Start(ctx, lab.Options{Dir: filepath.Join(dir, "lab"), Server: server})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, e1 := c.Write(ctx, 0, "/before/", 120)
	must(t, errors.Join(e1, c.RaiseAuth(ctx, 1, 9)))
	_, e2 := c.Write(ctx, 0, "/after/", 20)
	must(t, errors.Join(e2, c.Copies(ctx, filepath.Join(dir, "copies"))))
	p, err := plan.New(ctx, []evidence.Spec{{Where: filepath.Join(dir, "copies")}}, try.In(""), plan.Options{})
	must(t, err)
	file := filepath.Join(dir, "plan.yaml")
	must(t, p.Save(file))
	l := c.Live()
	return &operator{t: t, c: c, args: []string{"repair", "apply", file, "--mode", "live", "--endpoints",
		strings.Join(l.Endpoints, ","),
		"--cacert", l.CACert, "--cert", l.Cert, "--key", l.Key, "--data-dir", "node2=/data/node2"}}, file
}

// does what is asked for on the member's host.
func (o *operator) does(ctx context.Context) func(string) (string, error) {
	hands := o.c.Live().HostActions
	return func(said string) (string, error) {
		s := run.HostStep{Member: &plan.Member{Name: "node2"}}
		switch {
		case strings.Contains(said, "stop node2 ("):
			s.Action = "stop"
		case strings.Contains(said, "move the data dir of node2 ("):
			s.Action = "wipe"
		case strings.Contains(said, "start node2 ("):
			s.Action = "start"
			_, rest, _ := strings.Cut(said, `ETCD_INITIAL_CLUSTER="`)
			s.InitialCluster, _, _ = strings.Cut(rest, `"`)
		default:
			return "", errors.New("nothing is asked for")
		}
		must(o.t, hands(ctx, s))
		return "", nil
	}
}

// stands wants the last run in this state, and failed at this step.
func (o *operator) stands(file, state, step string) {
	o.t.Helper()
	st, err := run.Status(file)
	must(o.t, err)
	r := st.Runs[len(st.Runs)-1]
	if r.State != state || step != "" && (r.Steps[len(r.Steps)-1].ID != step ||
		r.Steps[len(r.Steps)-1].State != "failed") {
		o.t.Errorf("the run is %s at %+v, want %s at %q", r.State, r.Steps, state, step)
	}
	if _, err := os.Stat(file + ".backup.db"); state != "given up" && err != nil {
		o.t.Error(err)
	}
}

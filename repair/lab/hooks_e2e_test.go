//go:build e2e

package lab_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair"
	"github.com/etcd-medic/etcd-medic/repair/lab"
)

// hook is what an operator would write, with the test's own hands behind it: it leaves a file with what it was told, and waits for the
// answer.
const hook = `set -e; r=$(mktemp "$HANDS/tmp.XXXXXX")
echo "$ETCD_MEDIC_ACTION $ETCD_MEDIC_MEMBER_NAME $ETCD_MEDIC_INITIAL_CLUSTER_STATE $ETCD_MEDIC_INITIAL_CLUSTER" > "$r"
test -n "$ETCD_MEDIC_MEMBER_ID" && test "$ETCD_MEDIC_OLD_MEMBER_ID" != "" && test -n "$ETCD_MEDIC_PEER_URLS"
mv "$r" "$r.ask"; while [ ! -e "$r.done" ]; do sleep 0.05; done`

// serve does what hooks ask for.
func serve(ctx context.Context, t *testing.T, c *lab.Cluster, dir string) {
	hands := c.Live().Hands
	for ctx.Err() == nil {
		asks, _ := filepath.Glob(filepath.Join(dir, "*.ask"))
		for _, a := range asks {
			b, err := os.ReadFile(a)
			if err != nil {
				t.Error(err)
				return
			}
			f := strings.Fields(string(b))
			s := repair.HostStep{Action: f[0], Member: &repair.Member{Name: f[1]}}
			if len(f) == 4 && f[2] == "existing" {
				s.InitialCluster = f[3]
			}
			if err := hands(ctx, s); err != nil && ctx.Err() == nil {
				t.Errorf("%q: %v", b, err)
			}
			_ = os.Rename(a, strings.TrimSuffix(a, ".ask")+".done")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestE2ELiveKilledAtEveryStep repairs a running cluster through shell hooks by a process that is killed with SIGKILL as soon as it
// begins a step, for every step; the next one goes on.
func TestE2ELiveKilledAtEveryStep(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := lab.Start(ctx, lab.Options{Dir: filepath.Join(dir, "lab"), Server: node.Bundled()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	broken(ctx, t, c)
	copies, file, hands := filepath.Join(dir, "copies"), filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "hands")
	if err := c.Copies(ctx, copies); err != nil {
		t.Fatal(err)
	}
	p, err := repair.NewPlan(ctx, []evidence.Spec{{Where: copies}}, repair.PlanOptions{Compare: compare.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(hands, 0o700); err != nil {
		t.Fatal(err)
	}
	go serve(ctx, t, c, hands)
	w := load(ctx, t, c, p.Best.Name)
	kills := 0
	for told := map[string]bool{}; killedAtNext(t, c, file, hands, told); {
		kills++
	}
	acknowledged := w.stop()
	if want := len(p.Way(repair.Live).Steps); kills < want-1 {
		t.Errorf("killed %d times in %d steps", kills, want)
	}
	allThere(ctx, t, c, acknowledged)
	st, err := repair.Status(file)
	if err != nil || len(st.Runs) != 1 || st.Runs[0].State != "reached" {
		t.Errorf("%+v, %v", st, err)
	}
	if err := c.StopAll(ctx); err != nil {
		t.Fatal(err)
	}
	wantHealthy(t, c.DataDirs())
}

// killedAtNext starts the process and kills it at the first step that begins for the first time; false when it ended well.
func killedAtNext(t *testing.T, c *lab.Cluster, file, hands string, told map[string]bool) bool {
	t.Helper()
	o := c.Live()
	var stderr bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HANDS="+hands, envVictim+"="+strings.Join([]string{file, strings.Join(o.Endpoints, ","), o.CACert, o.Cert, o.Key, hook}, "\x1e"))
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			return false
		case <-time.After(2 * time.Millisecond):
		}
		records, err := repair.ReadJournal(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.State == repair.StateBegin && !told[r.Step] {
				told[r.Step] = true
				_ = cmd.Process.Kill()
				<-ended
				return true
			}
		}
	}
}

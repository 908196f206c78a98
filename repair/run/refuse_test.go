package run

import (
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// wantNothingBegun: what is refused leaves no scratch and no finished run behind.
func wantNothingBegun(t *testing.T, file string) {
	t.Helper()
	records, err := ReadJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.State == StateDone || r.State == StateEnd {
			t.Errorf("the journal says %s of %s", r.State, r.Step)
		}
	}
}

func TestSecondToolIsRefused(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	unlock, err := lock(file + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Rehearse(t.Context(), file, Options{})
	if got := wantRefusal(t, err); !strings.Contains(got.Reason, "another etcd-medic works with this plan") {
		t.Errorf("refused for another reason: %v", got)
	}
	st, err := Status(file)
	if err != nil || !st.AtWork {
		t.Errorf("status does not tell that someone is at work: %+v, %v", st, err)
	}
	unlock()
	wantNothingBegun(t, file)
	if st, err = Status(file); err != nil || st.AtWork {
		t.Errorf("the lock is given back, and status says someone is at work: %+v, %v", st, err)
	}
}

func TestChangedSourceIsRefused(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "h-misconfigured-member-add"))
	db := filepath.Join(dir, "node3", "member", "snap", "db")
	b, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(db, b, 0o600); err != nil {
		t.Fatal(err)
	}
	specs := []evidence.Spec{{Where: dir}}
	_, err = Rehearse(t.Context(), file, Options{Specs: specs})
	if got := wantRefusal(t, err); !strings.Contains(got.Reason, "source node3 changed") {
		t.Errorf("refused for another reason: %v", got)
	}
	_, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.Clone, Out: filepath.Join(t.TempDir(), "out"),
		Options: Options{Specs: specs}})
	wantRefusal(t, err)
	wantNothingBegun(t, file)
}

func TestOutputIsNeverOverwritten(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	out := t.TempDir()
	for _, mode := range []plan.Mode{plan.Clone, plan.Reseed} {
		_, err := Apply(t.Context(), file, ApplyOptions{Mode: mode, Out: out,
			Options: Options{AllowUpgrade: true}})
		wantRefusal(t, err)
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "someone's"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Rehearse(t.Context(), file, Options{Work: work})
	wantRefusal(t, err)
	wantNothingBegun(t, file)
}

// TestUpgradeIsRefused: data dirs that are to go back are not written by a newer line.
func TestUpgradeIsRefused(t *testing.T) {
	file := savePlan(t, "a-auth-revision-replay", plan.Options{})
	_, err := Apply(t.Context(), file, ApplyOptions{Mode: plan.Reseed, Out: filepath.Join(t.TempDir(), "out")})
	if got := wantRefusal(t, err); !strings.Contains(got.Hint, "--etcd-binary") {
		t.Errorf("refused without telling what to do: %+v", got)
	}
	wantNothingBegun(t, file)
}

// TestOccupiedPortIsRefused: without a namespace a copy with loopback peer URLs would meet whatever listens there.
func TestOccupiedPortIsRefused(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	u, err := url.Parse(mustLoad(t, file).Member("node2").PeerURLs[0])
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	_, err = Rehearse(t.Context(), file, Options{Isolation: node.Proxy})
	if got := wantRefusal(t, err); !strings.Contains(got.Reason, u.Host) {
		t.Errorf("refused for another reason: %v", got)
	}
	for _, dir := range []string{tmp, filepath.Dir(file)} {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if name := e.Name(); name != filepath.Base(file) && name != filepath.Base(file)+".lock" {
				t.Errorf("a refused isolation leaves %s", name)
			}
		}
	}
}

func TestNoRoomIsRefused(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	o := Options{room: func(string) (int64, bool) { return 10 << 20, true }}
	_, err := Rehearse(t.Context(), file, o)
	if got := wantRefusal(t, err); !strings.Contains(got.Reason, "10.0 MiB are free") {
		t.Errorf("refused for another reason: %v", got)
	}
	_, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.Clone, Out: filepath.Join(t.TempDir(), "out"),
		Options: o})
	wantRefusal(t, err)
	wantNothingBegun(t, file)
}

// TestDiskFullIsJournalled: a write that fails in the middle ends the run with the step that failed in the journal, and
// the next run goes on.
func TestDiskFullIsJournalled(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	out := filepath.Join(t.TempDir(), "out")
	job := VictimJob{File: file, Mode: plan.Clone, Out: out}
	// 16 or 32 KiB: the journal fits, a database does not
	cmd := exec.Command("sh", "-c", `ulimit -f 32; exec "$0"`, os.Args[0])
	cmd.Env = job.command().Env
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 6 || !strings.Contains(string(b), syscall.EFBIG.Error()) {
		t.Fatalf("%v, want exit code 6 for a write that failed:\n%s", err, b)
	}
	st, err := Status(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := st.Runs[0]; r.State != "failed" || r.Steps[len(r.Steps)-1].State != "failed" || len(r.Left) == 0 {
		t.Errorf("the journal says %+v", r)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("half an output has its name")
	}
	done, err := Apply(t.Context(), file, ApplyOptions{Mode: plan.Clone, Out: out})
	mustReach(t, done, err)
	if !done.Resumed {
		t.Error("the second run did not carry the first one on")
	}
	wantHealthy(t, out)
}

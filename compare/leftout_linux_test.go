package compare_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// asNobody is the environment variable by which the test starts itself as a user without rights: root reads every file.
const asNobody = "ETCD_MEDIC_TEST_DIAGNOSE"

// TestWhatIsNotReadIsNoDamage: a file of a healthy cluster that this process may not read, or that is larger than the
// bounds, is named and makes the answer open. No check is violated by it, and nothing is called damaged.
func TestWhatIsNotReadIsNoDamage(t *testing.T) {
	if file := os.Getenv(asNobody); file != "" {
		leftOut(t, file)
		return
	}
	for _, c := range []struct {
		name, files string
		spoil       func(file string) error
	}{
		{"large snapshot", "snap/*.snap", func(f string) error { return os.Truncate(f, dumplog.MaxSnapFile+1) }},
		{"snapshot without rights", "snap/*.snap", func(f string) error { return os.Chmod(f, 0) }},
		{"segment without rights", "wal/*.wal", func(f string) error { return os.Chmod(f, 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "in")
			if err := evidencetest.CopyTo(evidencetest.Incident(t, "m-healthy-3.5"), dir); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "node1", "member", c.files))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			openToAll(t, dir)
			if err := c.spoil(files[len(files)-1]); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^TestWhatIsNotReadIsNoDamage$")
			cmd.Env = append(os.Environ(), asNobody+"="+files[len(files)-1])
			cmd.Dir = "/"
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "the verdict is open") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// leftOut diagnoses the cluster of a file that is not read.
func leftOut(t *testing.T, file string) {
	t.Helper()
	part := filepath.Dir(file)
	dir := filepath.Dir(filepath.Dir(filepath.Dir(part)))
	r, err := compare.Diagnose(context.Background(), []evidence.Spec{{Where: dir}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Health != check.HealthUnknown || r.Verdict.Class != check.ClassInconclusive {
		t.Errorf("verdict %v %s: %s", r.Verdict.Health, r.Verdict.Class, r.Verdict.Summary)
	}
	named := false
	for _, f := range r.Findings {
		if f.Severity.Rank() >= check.Error.Rank() {
			t.Errorf("%s %s: %s", f.Check, f.Severity, f.Title)
		}
		named = named || f.Check == check.X02 && strings.Contains(f.Title+f.Explanation, filepath.Base(file))
	}
	if !named {
		t.Error("the file is not named")
	}
	for _, x := range r.Checks {
		affected := check.S01
		if filepath.Base(part) == "wal" {
			affected = check.W03
		}
		if x.ID == affected && x.Outcome != check.NotChecked {
			t.Errorf("%s %s", x.ID, x.Outcome)
		}
	}
	t.Log("the verdict is open:", r.Verdict.Summary)
}

// openToAll lets every user read the files below dir.
func openToAll(t *testing.T, dir string) {
	t.Helper()
	above := filepath.Dir(filepath.Dir(dir)) // the folder of the test
	err := filepath.WalkDir(above, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(p, 0o755)
		}
		return os.Chmod(p, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

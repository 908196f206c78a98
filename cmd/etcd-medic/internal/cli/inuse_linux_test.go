package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// lockEnv makes this program one that holds a lock on the file it names.
const lockEnv = "TEST_HOLD_LOCK"

// TestHoldLock is the process that TestInUse starts; in an ordinary run nothing is to be held.
func TestHoldLock(t *testing.T) {
	path := os.Getenv(lockEnv)
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = f.Close()
}

// TestInUse: while a process holds the database, preflight and diagnose name it, in the text, on stderr and in JSON;
// before and after they do not. The lock is not touched, nor is the data dir.
func TestInUse(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"))
	evidencetest.Unchanged(t, dir)
	run := func(args ...string) (string, string) {
		var out, errs bytes.Buffer
		Main(t.Context(), args, &Streams{Out: &out, Err: &errs, Width: 200, Getenv: func(string) string { return "" }})
		return out.String(), errs.String()
	}
	quiet := func() {
		t.Helper()
		if out, errs := run("preflight", dir, "--to", "3.6"); strings.Contains(out+errs, "IN USE") {
			t.Errorf("nobody has it in use: %s%s", out, errs)
		}
	}
	quiet()

	cmd := exec.Command(os.Args[0], "-test.run=^TestHoldLock$")
	cmd.Env = append(os.Environ(), lockEnv+"="+filepath.Join(dir, "member", "snap", "db"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	text, errs := run("preflight", dir, "--to", "3.6")
	if !strings.Contains(text, "IN USE") || !strings.Contains(text, "has locked db") {
		t.Errorf("preflight: %s%s", text, errs)
	}
	text, errs = run("diagnose", dir)
	if !strings.Contains(text, "is IN USE: process ") || !strings.Contains(errs, "has locked db; stop the server") {
		t.Errorf("diagnose: %s%s", text, errs)
	}
	tmp := t.TempDir()
	for _, args := range [][]string{{"extract", dir, "-o", filepath.Join(tmp, "x.jsonl")},
		{"restore", filepath.Join(dir, "member", "snap", "db"), "-o", filepath.Join(tmp, "new"), "--initial-cluster",
			"a=http://127.0.0.1:1"}, {"rebuild", "--base", dir, "--log", dir, "--to", "last", "-o",
			filepath.Join(tmp, "b.db")}, {"repair", "plan", dir, "-o", filepath.Join(tmp, "plan.yaml")},
		{"repair", "db", dir, "--rebuild", "-o", filepath.Join(tmp, "db")}} {
		if _, errs := run(args...); !strings.Contains(errs, "is in use: process ") {
			t.Errorf("%v does not say that the source is in use: %s", args, errs)
		}
	}
	text, _ = run("diagnose", dir, "-w", "json")
	var doc struct {
		Sources []struct {
			InUse string `json:"inUse"`
		} `json:"sources"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Sources) != 1 ||
		!strings.HasPrefix(doc.Sources[0].InUse, "process ") {
		t.Errorf("JSON: %+v, %v", doc, err)
	}
	_ = in.Close()
	_ = cmd.Wait()
	quiet()
}

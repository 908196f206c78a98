package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestCollectYields: the program lowers its own priority for a copy, to what --nice says.
func TestCollectYields(t *testing.T) {
	data := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	evidencetest.Unchanged(t, data)
	before := evidencetest.Niceness(0)
	for _, c := range []struct {
		flags []string
		want  int
	}{{nil, max(10, before)}, {[]string{"--nice", "15"}, max(15, before)}, {[]string{"--nice", "0"}, before}} {
		args := slices.Concat([]string{"collect", "--no-client", "--data-dir", data, "-o", "-"}, c.flags)
		p := exec.CommandContext(t.Context(), os.Args[0], args...)
		p.Env = append(os.Environ(), cliEnv+"=1")
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, out); err != nil || n == 0 {
			t.Errorf("%q: %d bytes, %v", c.flags, n, err)
		}
		// until it is waited for, an ended process keeps its entry
		if got := evidencetest.Niceness(p.Process.Pid); got != c.want {
			t.Errorf("%q: nice %d, want %d", c.flags, got, c.want)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("%q: %v", c.flags, err)
		}
	}
}

// TestOthersKeepPriority: a process that does other work too keeps its priority; a failure to lower it ends nothing.
func TestOthersKeepPriority(t *testing.T) {
	data := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	evidencetest.Unchanged(t, data)
	before := evidencetest.Niceness(0)
	var errs strings.Builder
	s := &Streams{Out: io.Discard, Err: &errs, Getenv: func(string) string { return "" }}
	collect := func(flags ...string) int {
		return Main(t.Context(), slices.Concat([]string{"collect", "--no-client", "--data-dir", data, "-o", "-"}, flags), s)
	}
	if code, now := collect(), evidencetest.Niceness(0); code != ExitDone || now != before {
		t.Errorf("exit code %d, nice %d, was %d: %s", code, now, before, &errs)
	}
	var asked []int
	s.Yield = func(nice int) error { asked = append(asked, nice); return errors.New("priority 10: refused") }
	if code := collect(); code != ExitDone || !strings.Contains(errs.String(), "priority 10: refused; continuing") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	if code := collect("--nice", "0"); code != ExitDone || !slices.Equal(asked, []int{10}) {
		t.Errorf("exit code %d, asked for %d", code, asked)
	}
}

//go:build e2e && linux

package node_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func builtProgram(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("ETCD_MEDIC_TEST_BIN"); p != "" {
		return p
	}
	return filepath.Join(evidencetest.Root(t), "bin", "etcd-medic")
}

// TestE2EBuiltInFromFile: where servers cannot be run from memory, the ones that are built in are run from a file in
// the folder for temporary files, and nothing else changes.
func TestE2EBuiltInFromFile(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.7.3"} {
		for how, files := range map[string]int{"": 0, "create": 1, "exec": 1} {
			t.Run(version+"/"+how, func(t *testing.T) {
				tmp := t.TempDir()
				cmd := exec.Command(os.Args[0], builtProgram(t), "__etcd-line", version, "--version")
				if how == "" {
					cmd = exec.Command(builtProgram(t), "__etcd-line", version, "--version")
				}
				cmd.Env = append(os.Environ(), "TMPDIR="+tmp, envNoMemory+"="+how)
				if how == "exec" {
					cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
						UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
						GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
				}
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "etcd Version: "+version) {
					t.Errorf("%v\n%s", err, out)
				}
				if left, err := filepath.Glob(filepath.Join(tmp, "etcd-"+version+"-*")); err != nil ||
					len(left) != files {
					t.Errorf("run from %q, want %d files (%v)", left, files, err)
				}
			})
		}
	}
}

// TestE2ERunFromFile brings a cluster of line 3.5 up by servers that cannot be run from memory.
func TestE2ERunFromFile(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, scratch := evidencetest.Incident(t, "l-compaction-skew"), t.TempDir()
	evidencetest.Unchanged(t, dir)
	cmd := exec.CommandContext(ctx, os.Args[0], builtProgram(t), "node", "run", "--scratch", scratch, dir, "--", "sh",
		"-c",
		`for p in /proc/[0-9]*; do readlink $p/exe; done 2>/dev/null | grep "$0"; true`, scratch)
	cmd.Env = append(os.Environ(), envNoMemory+"=create")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "/etcd-3.5.35-") != 3 {
		t.Errorf("%v; want three servers that run from a file:\n%s", err, out)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

//go:build unix

package watch

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hooked runs a shell script as hook and returns its error, the log and how long it took.
func hooked(t *testing.T, script string, timeout time.Duration) (log string, took time.Duration, err error) {
	t.Helper()
	hook := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w := watcher(renamedCluster(1), Options{Hook: hook, HookTimeout: timeout,
		Log: slog.New(slog.NewTextHandler(&text, nil))})
	begin := time.Now()
	err = w.runHook(t.Context(), &Event{Kind: "content"}, "")
	return text.String(), time.Since(begin), err
}

// TestHookIsEndedWithItsChildren: what a hook has started does not outlive its timeout.
func TestHookIsEndedWithItsChildren(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	_, took, err := hooked(t, "sleep 60 & echo $! > "+pid+"\nwait\n", time.Second)
	if err == nil || !strings.Contains(err.Error(), "still at work after 1s") || took > 10*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		if errors.Is(syscall.Kill(child, 0), syscall.ESRCH) || err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatal("the child still runs")
		}
	}
}

// TestHookThatSaysMuch: only the beginning of what a hook prints is kept.
func TestHookThatSaysMuch(t *testing.T) {
	log, _, err := hooked(t, "yes | head -c 30000000\n", time.Minute)
	if n := strings.Count(log, `y\n`); err != nil || n != maxSaid/2 {
		t.Errorf("%v, %d lines are kept, want %d", err, n, maxSaid/2)
	}
}

// TestHookThatLeavesSomethingAtWork has not failed.
func TestHookThatLeavesSomethingAtWork(t *testing.T) {
	_, took, err := hooked(t, "sleep 5 &\n", time.Minute)
	if err != nil || took > 4*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	if _, _, err := hooked(t, "sleep 5 &\nexit 3\n", time.Minute); err == nil || !strings.Contains(err.Error(), "3") {
		t.Errorf("%v", err)
	}
}

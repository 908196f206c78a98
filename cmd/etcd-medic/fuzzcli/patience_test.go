package main

import (
	"testing"
	"time"
)

// TestHangs: a program that waits without end is ended, and so is one that works without end.
func TestHangs(t *testing.T) {
	for _, script := range []string{"exec sleep 600", "while :; do :; done"} {
		o, err := run(t.Context(), "/bin/sh", t.TempDir(), []string{"-c", script}, time.Second)
		if err != nil || !o.hung {
			t.Errorf("%s: %+v, %v", script, o, err)
		}
	}
	if o, err := run(t.Context(), "/bin/sh", t.TempDir(), []string{"-c", "exit 3"}, time.Minute); err != nil || o.hung ||
		o.code != 3 {
		t.Errorf("a program that ends: %+v, %v", o, err)
	}
}

// TestBusyMachineIsNoHang: the time in which others have the processor is not that of the program.
func TestBusyMachineIsNoHang(t *testing.T) {
	for _, c := range []struct {
		passed, worked, want time.Duration
		wants                bool
	}{
		{time.Second, 0, time.Second, false}, // it sleeps
		{time.Second, 0, 0, true},            // it gets no processor
		{time.Second, 300 * time.Millisecond, 300 * time.Millisecond, true},
		{time.Second, 2 * time.Second, time.Second, true}, // with two threads
	} {
		if got := counted(c.passed, c.worked, c.wants); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpuTime is what a process that runs has worked so far, in the ticks of /proc: a hundred in a second.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), ") ") // the name may hold spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		t.Fatalf("%q", b)
	}
	var ticks int
	for _, f := range fields[11:13] { // utime and stime, see proc(5)
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

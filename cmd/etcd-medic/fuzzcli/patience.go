package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// endAfter calls end once a process has spent its patience, unless the result is called first.
func endAfter(patience time.Duration, pid int, end func()) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		worked, _ := usage(pid)
		for spent := time.Duration(0); spent < patience; {
			begin := time.Now()
			select {
			case <-ended:
				return
			case <-time.After(max(patience/240, 50*time.Millisecond)): // usage counts hundredths of a second
			}
			now, wants := usage(pid)
			spent += counted(time.Since(begin), now-worked, wants)
			worked = now
		}
		end()
	}()
	return func() {
		close(ended)
		<-done
	}
}

// counted is how much of a time counts: what it worked, of a process that wants to work, because others may have the
// machine. All of it counts for one that waits for something else.
func counted(passed, worked time.Duration, wants bool) time.Duration {
	if wants {
		return min(passed, worked)
	}
	return passed
}

// usage is how long a process has worked so far, and whether one of its threads wants a processor or the disk. Where
// the system has no /proc, it never does.
func usage(pid int) (worked time.Duration, wants bool) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is well-formed
	for _, path := range append(stats, fmt.Sprintf("/proc/%d/stat", pid)) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(b), ") ") // the name may hold spaces
		f := strings.Fields(after)
		if len(f) < 13 {
			continue
		}
		wants = wants || f[0] == "R" || f[0] == "D"
		if strings.Contains(path, "task") {
			continue
		}
		for _, ticks := range f[11:13] { // utime and stime, a hundred ticks in a second, see proc(5)
			n, err := strconv.Atoi(ticks)
			if err != nil {
				continue
			}
			worked += time.Duration(n) * time.Second / 100
		}
	}
	return worked, wants
}

package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
)

// envHolder makes this test binary start members, print their process ids and wait to be killed.
const envHolder = "NODE_TEST_HOLDER"

type holding struct {
	Dir       string
	Isolation node.Isolation
}

func hold(spec string) error {
	var h holding
	if err := json.Unmarshal([]byte(spec), &h); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := node.New(ctx, node.Options{Dir: h.Dir, Isolation: h.Isolation, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	for _, c := range trio(h.Dir, "http://10.1.2.%d:2380") {
		m, err := s.Start(ctx, c)
		if err != nil {
			return err
		}
		fmt.Println(m.Pid())
	}
	fmt.Println("started")
	select {}
}

// TestKilledToolLeavesNothing kills the program without warning: no server may stay behind.
func TestKilledToolLeavesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is no parent-death signal elsewhere
	}
	for _, iso := range isolations(t) {
		t.Run(string(iso), func(t *testing.T) {
			b, err := json.Marshal(holding{t.TempDir(), iso})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), envHolder+"="+string(b))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			for sc := bufio.NewScanner(out); sc.Scan() && sc.Text() != "started"; {
				pid, err := strconv.Atoi(sc.Text())
				if err != nil {
					t.Fatal(sc.Text())
				}
				pids = append(pids, pid)
			}
			if len(pids) != 3 || !alive(pids[0]) {
				t.Fatal("members do not run: ", pids)
			}
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for _, pid := range pids {
				for alive(pid) && ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				if alive(pid) {
					t.Errorf("process %d outlived the program", pid)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

// alive tells whether a process runs; one that only waits to be reaped does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// TestClosedSandboxLeavesNothing: Close ends everything that was started.
func TestClosedSandboxLeavesNothing(t *testing.T) {
	for _, iso := range isolations(t) {
		s := newSandbox(t, node.Options{Isolation: iso})
		ms := startAll(t, s, trio(t.TempDir(), "http://10.1.2.%d:2380"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			if _, ended := m.Exited(); !ended || alive(m.Pid()) {
				t.Errorf("%s: %s still runs", iso, m.Name())
			}
		}
	}
}

// TestStartsWithinThreeSeconds: three tiny members serve in less than three seconds of a machine that has nothing else
// to do. A split vote alone can take that long, so one of three attempts counts.
func TestStartsWithinThreeSeconds(t *testing.T) {
	var took []string
	for range 3 {
		before := slowdown(t)
		begin := time.Now()
		s := newSandbox(t, node.Options{})
		startAll(t, s, trio(t.TempDir(), "http://10.1.2.%d:2380"))
		passed := time.Since(begin)
		slow := max(before, slowdown(t))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		took = append(took, fmt.Sprintf("%v, slowed down %.1f times", passed, slow))
		if passed < time.Duration(3*slow*float64(time.Second)) {
			t.Log(took)
			return
		}
	}
	t.Errorf("starts took %v", took)
}

// slowdown is how many times longer work takes now because others use the machine, at least 1.
func slowdown(t *testing.T) float64 {
	t.Helper()
	worked := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin, at := time.Now(), worked()
	for worked()-at < 100*time.Millisecond {
	}
	return max(1, float64(time.Since(begin))/float64(worked()-at))
}

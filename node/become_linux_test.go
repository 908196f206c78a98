package node_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/node"
)

// envBecome makes this test's binary a parent, or the child of one that becomes another program from a thread that is
// not its first.
const envBecome = "ETCD_MEDIC_TEST_BECOME"

func becoming() (handled bool, code int) {
	switch os.Getenv(envBecome) {
	case "parent":
		return true, becomeParent()
	case "child":
		failed := make(chan error)
		go func() { failed <- becomeElsewhere() }()
		fmt.Fprintln(os.Stderr, "become:", <-failed)
		return true, 1
	}
	return false, 0
}

// becomeParent starts the child as the sandbox starts servers, prints its number, and waits to be killed.
func becomeParent() int {
	runtime.LockOSThread()
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envBecome+"=child")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait()
	return 1
}

// becomeElsewhere becomes sleep from another thread than the first.
func becomeElsewhere() error {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		next := make(chan error)
		go func() { next <- becomeElsewhere() }() // this goroutine holds the first thread
		return <-next
	}
	return node.Become("/bin/sleep", []string{"60"})
}

// TestBecomeEndsWithItsParent wants that a program that took the place of a child ends when the parent is killed.
func TestBecomeEndsWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envBecome+"=parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	await(t, "the child is sleep", func() bool { return strings.Contains(commandLine(pid), "60") })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // killed
	defer func() {
		if strings.Contains(commandLine(pid), "60") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	await(t, "the child has ended", func() bool { return commandLine(pid) == "" })
}

func commandLine(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // empty when only its end is left
	if err != nil {
		return ""
	}
	return string(b)
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

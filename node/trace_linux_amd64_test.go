package node_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// The tracer is this test binary run again. It starts a traced process (once more this binary), in which a seccomp
// filter stops every thread at each system call that names an address, for all processes that come from it, and notes
// the addresses.

// job is what the traced process does.
type job struct {
	Dir, URLs string
	Isolation node.Isolation
	Binary    string // an operator's own server, if any
	Dial      string // only dial this address, to prove that the tracer sees it
	// Refuse makes the kernel refuse new namespaces, as containers and some distributions do.
	Refuse bool
}

// seen is what the tracer saw: how often each address was named.
type seen map[string]int

const (
	envTracer = "NODE_TEST_TRACER"
	envTraced = "NODE_TEST_TRACED"
)

// tracing runs the tracer or the traced process if the environment says so.
func tracing() (handled bool, code int) {
	if s := os.Getenv(envTraced); s != "" {
		return true, report(traced(s))
	}
	if s := os.Getenv(envTracer); s != "" {
		got, err := tracer(s)
		_ = json.NewEncoder(os.Stdout).Encode(got)
		return true, report(err)
	}
	return false, 0
}

// trace runs a job in a traced process and returns the addresses it named.
func trace(t *testing.T, j job) seen {
	t.Helper()
	b, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envTracer+"="+string(b))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errs.String(), logs(j.Dir))
	}
	var got seen
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// logs returns the ends of all member logs below a folder.
func logs(dir string) string {
	var out strings.Builder
	names, _ := filepath.Glob(filepath.Join(dir, "*", "logs", "*.log"))
	for _, n := range names {
		b, _ := os.ReadFile(n)
		fmt.Fprintf(&out, "== %s\n%s\n", n, b[max(0, len(b)-2000):])
	}
	return out.String()
}

func traced(spec string) error {
	var j job
	if err := json.Unmarshal([]byte(spec), &j); err != nil {
		return err
	}
	if j.Refuse {
		return withoutNamespaces(j)
	}
	if err := install(addressFilter()); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if j.Dial != "" {
		if c, err := net.DialTimeout("udp", j.Dial, time.Second); err == nil { // an error if no route leads there
			return c.Close()
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	o := node.Options{Isolation: j.Isolation}
	if j.Binary != "" {
		var err error
		if o.Server, err = node.External(ctx, j.Binary); err != nil {
			return err
		}
	}
	return scenario(ctx, j.Dir, j.URLs, o)
}

// withoutNamespaces wants a refusal where a namespace is asked for, and the proxy where one would only be nice.
func withoutNamespaces(j job) error {
	if err := install(namespaceFilter()); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_, err := node.New(ctx, node.Options{Dir: j.Dir, Isolation: node.Namespace})
	var r *refusal.Error
	if !errors.As(err, &r) || r.Hint == "" {
		return fmt.Errorf("want a refusal, got %w", err)
	}
	var told string
	s, err := node.New(ctx, node.Options{Dir: j.Dir, Log: func(what string) { told += what }})
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Isolation() != node.Proxy || !strings.Contains(told, "not permitted") {
		return fmt.Errorf("isolation %s, told %q", s.Isolation(), told)
	}
	return nil
}

// tracer starts the traced process and follows it and all of its children to their end.
func tracer(spec string) (seen, error) {
	runtime.LockOSThread() // ptrace belongs to one thread
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, envTracer) })
	root, err := syscall.ForkExec(exe, []string{exe}, &syscall.ProcAttr{
		Env: append(env, envTraced+"="+spec), Files: []uintptr{0, 2, 2}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return nil, err
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(root, &ws, 0, nil); err != nil || !ws.Stopped() {
		return nil, fmt.Errorf("the traced process did not stop at its start: %v %v", ws, err)
	}
	const options = unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(root, options); err != nil {
		return nil, err
	}
	if err := syscall.PtraceCont(root, 0); err != nil {
		return nil, err
	}
	return follow(root)
}

func follow(root int) (seen, error) {
	got := seen{}
	known := map[int]bool{root: true}
	var failed error
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return got, failed
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return got, err
		case !ws.Stopped():
			delete(known, pid) // a later thread may get the same number
			if pid == root && (ws.Signaled() || ws.ExitStatus() != 0) {
				failed = fmt.Errorf("the traced process ended with status %#x", uint32(ws))
			}
			continue
		}
		deliver := 0
		switch sig := ws.StopSignal(); {
		case sig == syscall.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
			note(got, pid)
		case sig == syscall.SIGTRAP && ws.TrapCause() > 0: // a new thread or program
		case sig == syscall.SIGSTOP && !known[pid]: // the first stop of a new thread
			known[pid] = true
		default:
			deliver = int(sig)
		}
		known[pid] = true
		_ = syscall.PtraceCont(pid, deliver) // fails if it was killed meanwhile
	}
}

// note records the addresses of the system call at which a thread stands.
func note(got seen, pid int) {
	var r syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &r); err != nil {
		return // killed meanwhile: the call is not made
	}
	switch r.Orig_rax {
	case unix.SYS_CONNECT:
		got.add(address(pid, r.Rsi, r.Rdx))
	case unix.SYS_SENDTO:
		got.add(address(pid, r.R8, r.R9))
	case unix.SYS_SENDMSG:
		got.add(headerAddress(pid, r.Rsi))
	case unix.SYS_SENDMMSG:
		for i := range r.Rdx { // struct mmsghdr has 64 bytes
			got.add(headerAddress(pid, r.Rsi+64*i))
		}
	}
}

// add counts an address. An error says that the memory could not be read; that of a thread that was killed meanwhile
// does not count, since the call is not made.
func (s seen) add(addr string, err error) {
	switch {
	case errors.Is(err, unix.ESRCH):
	case err != nil:
		s[err.Error()]++
	default:
		s[addr]++
	}
}

// headerAddress reads msg_name and msg_namelen of a struct msghdr.
func headerAddress(pid int, at uint64) (string, error) {
	b := make([]byte, 16)
	if _, err := syscall.PtracePeekData(pid, uintptr(at), b); err != nil {
		return "", err
	}
	return address(pid, binary.LittleEndian.Uint64(b), uint64(binary.LittleEndian.Uint32(b[8:])))
}

// address reads a sockaddr.
func address(pid int, at, n uint64) (string, error) {
	if at == 0 || n == 0 {
		return "connected", nil
	}
	b := make([]byte, min(n, 128))
	if _, err := syscall.PtracePeekData(pid, uintptr(at), b); err != nil {
		return "", err
	}
	switch family := binary.LittleEndian.Uint16(b); family {
	case unix.AF_UNIX:
		return "unix", nil
	case unix.AF_NETLINK:
		return "netlink", nil
	case unix.AF_UNSPEC:
		return "unspecified", nil
	case unix.AF_INET:
		return netip.AddrFrom4([4]byte(b[4:8])).String(), nil
	case unix.AF_INET6:
		return netip.AddrFrom16([16]byte(b[8:24])).String(), nil
	default:
		return fmt.Sprintf("family %d", family), nil
	}
}

// TestTracerSees proves that the tracer is not blind.
func TestTracerSees(t *testing.T) {
	for _, addr := range []string{"192.0.2.7:9", "[2001:db8::7]:9"} {
		host, _, _ := net.SplitHostPort(addr)
		if got := trace(t, job{Dial: addr}); got[host] == 0 {
			t.Errorf("%s was dialled, the tracer saw %v", addr, got)
		}
	}
}

// TestWithoutNamespaces: where the kernel refuses namespaces, so does the sandbox, or it does without and says so.
func TestWithoutNamespaces(t *testing.T) {
	trace(t, job{Dir: t.TempDir(), Refuse: true})
}

// TestNothingLeaves takes a cluster through founding, auth, a second life and a reseed, for each kind of peer URL in
// each isolation, and looks at every address that any process of it names to the kernel.
func TestNothingLeaves(t *testing.T) {
	for _, iso := range isolations(t) {
		for kind, urls := range urlKinds {
			t.Run(string(iso)+"/"+strings.ReplaceAll(kind, " ", "-"), func(t *testing.T) {
				t.Parallel() // mostly waiting for elections
				got := trace(t, job{Dir: t.TempDir(), URLs: urls, Isolation: iso})
				onlyLoopback(t, got)
				if got["127.0.0.1"] < 10 {
					t.Errorf("three members cannot have talked to each other: %v", got)
				}
			})
		}
	}
}

// onlyLoopback fails the test for any address that is not of this machine's loopback.
func onlyLoopback(t *testing.T, got seen) {
	t.Helper()
	for addr := range got {
		switch addr {
		case "127.0.0.1", "unix", "netlink", "connected":
		default:
			t.Errorf("a process named %s: %v", addr, got)
		}
	}
}

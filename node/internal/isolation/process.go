package isolation

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a started program and its exit.
type process struct {
	pid    int
	exited chan struct{} // closed when it has been waited for
	exit   Exit          // valid after exited
}

// launch starts a program with a log file as its output.
func launch(l Launch) (*process, error) { return start(l, &syscall.SysProcAttr{}, nil, nil) }

// start starts a program in a new process group. Its output goes to the log, except stdout if that is given. The kernel
// kills the program when the thread that started it ends, so that thread waits until the process has ended.
func start(l Launch, attr *syscall.SysProcAttr, stdin, stdout *os.File) (*process, error) {
	log, err := os.OpenFile(l.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(l.Path, l.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = l.Env, l.Dir, log, log
	if stdin != nil {
		cmd.Stdin, cmd.Stdout = stdin, stdout
	}
	ownGroup(attr)
	cmd.SysProcAttr = dieWithParent(attr)
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.exit = exitOf(cmd.Wait(), cmd.ProcessState)
		}
		_ = log.Close()
		close(p.exited)
	}()
	return p, <-started
}

func exitOf(err error, s *os.ProcessState) Exit {
	if s == nil {
		return Exit{Code: -1, Signal: err.Error()}
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: ws.Signal().String()}
	}
	return Exit{Code: s.ExitCode()}
}

// signal signals the process group. It does nothing if the process has ended.
func (p *process) signal(s syscall.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	return signalGroup(p.pid, s)
}

// AwaitEnd waits, for at most a few seconds, until a process has ended whose parent is gone: the kernel takes a moment
// to end what it killed.
func AwaitEnd(pid int) {
	for range 500 {
		if !runs(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

package isolation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

var errNoNamespaces = errors.New("only Linux has network namespaces")

// EnvAgent names the variable that marks an agent.
const EnvAgent = "SANDBOX_AGENT"

// patience bounds how long an agent may take to set up its namespace; it needs milliseconds.
const patience = 20 * time.Second

// RunAgent is the main function of an agent. It sets up its namespace and serves a local Runtime over stdin and stdout
// until they end. Then it kills the processes it started. args is the folder for its files.
func RunAgent(args []string) int {
	if len(args) != 1 {
		return 2
	}
	srv := rpc.NewServer()
	k := &Agent{}
	k.runtime, k.err = enter(args[0])
	if err := srv.RegisterName("Agent", k); err != nil {
		return 1
	}
	srv.ServeConn(pipes{lifeline{os.NewFile(0, "requests"), k}, os.NewFile(1, "answers")})
	return 0
}

// lifeline is the pipe of requests. When it ends, all processes are killed, so that calls that wait for them return.
type lifeline struct {
	*os.File
	k *Agent
}

// Read reads requests. At their end it kills all processes.
func (l lifeline) Read(b []byte) (int, error) {
	n, err := l.File.Read(b)
	if err != nil && l.k.runtime != nil {
		_ = l.k.runtime.Close()
	}
	return n, err
}

// pipes is one connection made of two pipes.
type pipes struct {
	io.ReadCloser
	w io.WriteCloser
}

// Write sends to the agent.
func (p pipes) Write(b []byte) (int, error) { return p.w.Write(b) }

// Close closes both ends.
func (p pipes) Close() error { return errors.Join(p.ReadCloser.Close(), p.w.Close()) }

// Agent is the service of an agent process: the methods of Runtime in the form that net/rpc needs.
type Agent struct {
	runtime *local
	err     error
}

// Nothing means no arguments or no result.
type Nothing struct{}

// Hello returns a description of the Runtime, or why the namespace could not be set up.
func (k *Agent) Hello(_ Nothing, i *Info) error {
	if k.err != nil {
		return k.err
	}
	*i = k.runtime.Info()
	return nil
}

// Launch starts a process.
func (k *Agent) Launch(l Launch, pid *int) (err error) { *pid, err = k.runtime.Launch(l); return err }

// Wait waits for a process.
func (k *Agent) Wait(pid int, e *Exit) (err error) { *e, err = k.runtime.Wait(pid); return err }

// Signals is the argument of Signal.
type Signals struct{ Pid, Signal int }

// Signal signals a process group.
func (k *Agent) Signal(s Signals, _ *Nothing) error {
	return k.runtime.Signal(s.Pid, syscall.Signal(s.Signal))
}

// Routes is the argument of Map.
type Routes struct{ Target, Addr string }

// Map routes a target to an address.
func (k *Agent) Map(r Routes, _ *Nothing) error { return k.runtime.Map(r.Target, r.Addr) }

// FreePort returns a free port.
func (k *Agent) FreePort(_ Nothing, port *int) (err error) {
	*port, err = k.runtime.FreePort()
	return err
}

// ReservePort occupies an address.
func (k *Agent) ReservePort(addr string, _ *Nothing) error { return k.runtime.ReservePort(addr) }

// ReleasePort frees an address.
func (k *Agent) ReleasePort(addr string, _ *Nothing) error { return k.runtime.ReleasePort(addr) }

// Traffic returns the counts.
func (k *Agent) Traffic(_ Nothing, t *Traffic) (err error) { *t, err = k.runtime.Traffic(); return err }

// remote is a Runtime in another process.
type remote struct {
	info    Info
	process *process
	client  *rpc.Client
	once    sync.Once
}

// Namespaced starts an agent (this program with the given hidden command) in new namespaces and returns its Runtime. It
// fails if the kernel does not allow namespaces. dir is the folder for the agent's files.
func Namespaced(ctx context.Context, self, hidden, dir string) (Runtime, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	ways := namespaceAttributes()
	if len(ways) == 0 {
		return nil, errNoNamespaces
	}
	for _, a := range ways {
		r, err := startAgent(ctx, self, hidden, dir, a)
		if err == nil {
			return r, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func startAgent(ctx context.Context, self, hidden, dir string, attr *syscall.SysProcAttr) (*remote, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		_, _ = theirIn.Close(), in.Close()
		return nil, err
	}
	p, err := start(Launch{
		Path: self, Args: []string{hidden, dir}, Env: []string{"PATH=/usr/bin:/bin", EnvAgent + "=1"}, Dir: dir,
		Log: filepath.Join(dir, "agent.log"),
	}, attr, theirIn, theirOut)
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	r := &remote{process: p, client: rpc.NewClient(pipes{out, in})}
	call := r.client.Go("Agent.Hello", Nothing{}, &r.info, nil)
	select {
	case <-call.Done:
		err = call.Error
	case <-ctx.Done():
		err = fmt.Errorf("the agent in the network namespace does not answer: %w", ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Info implements Runtime.
func (r *remote) Info() Info { return r.info }

// Launch implements Runtime.
func (r *remote) Launch(l Launch) (pid int, err error) {
	err = r.client.Call("Agent.Launch", l, &pid)
	return pid, err
}

// Wait implements Runtime.
func (r *remote) Wait(pid int) (e Exit, err error) {
	err = r.client.Call("Agent.Wait", pid, &e)
	return e, err
}

// Signal implements Runtime.
func (r *remote) Signal(pid int, s syscall.Signal) error {
	return r.client.Call("Agent.Signal", Signals{pid, int(s)}, &Nothing{})
}

// Map implements Runtime.
func (r *remote) Map(target, addr string) error {
	return r.client.Call("Agent.Map", Routes{target, addr}, &Nothing{})
}

// FreePort implements Runtime.
func (r *remote) FreePort() (port int, err error) {
	err = r.client.Call("Agent.FreePort", Nothing{}, &port)
	return port, err
}

// ReservePort implements Runtime.
func (r *remote) ReservePort(addr string) error {
	return r.client.Call("Agent.ReservePort", addr, &Nothing{})
}

// ReleasePort implements Runtime.
func (r *remote) ReleasePort(addr string) error {
	return r.client.Call("Agent.ReleasePort", addr, &Nothing{})
}

// Traffic implements Runtime.
func (r *remote) Traffic() (t Traffic, err error) {
	err = r.client.Call("Agent.Traffic", Nothing{}, &t)
	return t, err
}

// Close implements Runtime. The agent ends with its pipe and kills the processes it started. If it does not end in
// time, it is killed, and the kernel kills the processes.
func (r *remote) Close() (err error) {
	r.once.Do(func() {
		err = r.client.Close()
		select {
		case <-r.process.exited:
		case <-time.After(patience):
			err = errors.Join(err, r.process.signal(syscall.SIGKILL))
			<-r.process.exited
		}
	})
	return err
}

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

var errNoNamespaces = errors.New("network namespaces are a thing of Linux")

// EnvKeeper names the variable that marks a keeper.
const EnvKeeper = "SANDBOX_KEEPER"

// patience bounds how long a keeper may take to set up its namespace: it needs milliseconds.
const patience = 20 * time.Second

// RunKeeper is the main function of a keeper: it makes its namespace usable and serves a local ground over stdin and
// stdout until they end; then it kills what it started. args is the folder for its files.
func RunKeeper(args []string) int {
	if len(args) != 1 {
		return 2
	}
	srv := rpc.NewServer()
	k := &Keeper{}
	k.ground, k.err = enter(args[0])
	if err := srv.RegisterName("Keeper", k); err != nil {
		return 1
	}
	srv.ServeConn(pipes{lifeline{os.NewFile(0, "requests"), k}, os.NewFile(1, "answers")})
	return 0
}

// lifeline is the pipe of requests. Its end is the end of all processes: calls that wait for them return only then.
type lifeline struct {
	*os.File
	k *Keeper
}

// Read reads requests; when they end, so do all processes.
func (l lifeline) Read(b []byte) (int, error) {
	n, err := l.File.Read(b)
	if err != nil && l.k.ground != nil {
		_ = l.k.ground.Close()
	}
	return n, err
}

// pipes is one connection made of two pipes.
type pipes struct {
	io.ReadCloser
	w io.WriteCloser
}

// Write sends to the keeper.
func (p pipes) Write(b []byte) (int, error) { return p.w.Write(b) }

// Close closes both ends.
func (p pipes) Close() error { return errors.Join(p.ReadCloser.Close(), p.w.Close()) }

// Keeper is the service of a keeper process: the methods of Runtime in the form that net/rpc wants.
type Keeper struct {
	ground *local
	err    error
}

// Nothing stands for no arguments and no result.
type Nothing struct{}

// Hello tells whether the namespace is ready, and describes the ground.
func (k *Keeper) Hello(_ Nothing, i *Info) error {
	if k.err != nil {
		return k.err
	}
	*i = k.ground.Info()
	return nil
}

// Launch starts a process.
func (k *Keeper) Launch(l Launch, pid *int) (err error) { *pid, err = k.ground.Launch(l); return err }

// Wait waits for a process.
func (k *Keeper) Wait(pid int, e *Exit) (err error) { *e, err = k.ground.Wait(pid); return err }

// Signals is the argument of Signal.
type Signals struct{ Pid, Signal int }

// Signal signals a process group.
func (k *Keeper) Signal(s Signals, _ *Nothing) error {
	return k.ground.Signal(s.Pid, syscall.Signal(s.Signal))
}

// Routes is the argument of Map.
type Routes struct{ Target, Addr string }

// Map leads a target to an address.
func (k *Keeper) Map(r Routes, _ *Nothing) error { return k.ground.Map(r.Target, r.Addr) }

// FreePort returns a free port.
func (k *Keeper) FreePort(_ Nothing, port *int) (err error) {
	*port, err = k.ground.FreePort()
	return err
}

// ReservePort occupies an address.
func (k *Keeper) ReservePort(addr string, _ *Nothing) error { return k.ground.ReservePort(addr) }

// ReleasePort gives an address back.
func (k *Keeper) ReleasePort(addr string, _ *Nothing) error { return k.ground.ReleasePort(addr) }

// Traffic returns the counts.
func (k *Keeper) Traffic(_ Nothing, t *Traffic) (err error) { *t, err = k.ground.Traffic(); return err }

// remote is a ground kept by another process.
type remote struct {
	info    Info
	process *process
	client  *rpc.Client
	once    sync.Once
}

// Namespaced starts a keeper (this program with the given hidden command) in namespaces of its own and returns its
// ground. It fails where the kernel allows none. dir takes the keeper's files.
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
		r, err := startKeeper(ctx, self, hidden, dir, a)
		if err == nil {
			return r, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func startKeeper(ctx context.Context, self, hidden, dir string, attr *syscall.SysProcAttr) (*remote, error) {
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
		Path: self, Args: []string{hidden, dir}, Env: []string{"PATH=/usr/bin:/bin", EnvKeeper + "=1"}, Dir: dir,
		Log: filepath.Join(dir, "keeper.log"),
	}, attr, theirIn, theirOut)
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	r := &remote{process: p, client: rpc.NewClient(pipes{out, in})}
	call := r.client.Go("Keeper.Hello", Nothing{}, &r.info, nil)
	select {
	case <-call.Done:
		err = call.Error
	case <-ctx.Done():
		err = fmt.Errorf("the keeper of the namespace does not answer: %w", ctx.Err())
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
	err = r.client.Call("Keeper.Launch", l, &pid)
	return pid, err
}

// Wait implements Runtime.
func (r *remote) Wait(pid int) (e Exit, err error) {
	err = r.client.Call("Keeper.Wait", pid, &e)
	return e, err
}

// Signal implements Runtime.
func (r *remote) Signal(pid int, s syscall.Signal) error {
	return r.client.Call("Keeper.Signal", Signals{pid, int(s)}, &Nothing{})
}

// Map implements Runtime.
func (r *remote) Map(target, addr string) error {
	return r.client.Call("Keeper.Map", Routes{target, addr}, &Nothing{})
}

// FreePort implements Runtime.
func (r *remote) FreePort() (port int, err error) {
	err = r.client.Call("Keeper.FreePort", Nothing{}, &port)
	return port, err
}

// ReservePort implements Runtime.
func (r *remote) ReservePort(addr string) error {
	return r.client.Call("Keeper.ReservePort", addr, &Nothing{})
}

// ReleasePort implements Runtime.
func (r *remote) ReleasePort(addr string) error {
	return r.client.Call("Keeper.ReleasePort", addr, &Nothing{})
}

// Traffic implements Runtime.
func (r *remote) Traffic() (t Traffic, err error) {
	err = r.client.Call("Keeper.Traffic", Nothing{}, &t)
	return t, err
}

// Close implements Runtime. The keeper ends when its pipe does, and kills what it started; if it does not within its
// time, it is killed, and the kernel kills the rest.
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

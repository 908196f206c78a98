package isolation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// local is the Runtime in this process.
type local struct {
	info     Info
	proxy    *proxy
	dns      *dns
	mu       sync.Mutex
	procs    map[int]*process
	reserved map[string]*reservedPort
	ended    bool
}

// Local returns a Runtime in this process and its network.
func Local() (Runtime, error) { return newLocal("127.0.0.1:0") }

func newLocal(dnsAddr string) (*local, error) {
	p, err := newProxy()
	if err != nil {
		return nil, err
	}
	d, err := newDNS(dnsAddr)
	if err != nil {
		p.close()
		return nil, err
	}
	return &local{
		info: Info{Proxy: p.url(), DNS: d.addr()}, proxy: p, dns: d,
		procs: map[int]*process{}, reserved: map[string]*reservedPort{},
	}, nil
}

// Info describes the isolation.
func (l *local) Info() Info { return l.info }

var errClosed = errors.New("the sandbox is closed")

// Launch implements Runtime.
func (l *local) Launch(what Launch) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return 0, errClosed
	}
	p, err := launch(what)
	if err != nil {
		return 0, err
	}
	l.procs[p.pid] = p
	return p.pid, nil
}

func (l *local) process(pid int) (*process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.procs[pid]
	if p == nil {
		return nil, fmt.Errorf("process %d was not started by this runtime", pid)
	}
	return p, nil
}

// Wait implements Runtime.
func (l *local) Wait(pid int) (Exit, error) {
	p, err := l.process(pid)
	if err != nil {
		return Exit{}, err
	}
	<-p.exited
	return p.exit, nil
}

// Signal implements Runtime.
func (l *local) Signal(pid int, s syscall.Signal) error {
	p, err := l.process(pid)
	if err != nil {
		return err
	}
	return p.signal(s)
}

// Map implements Runtime.
func (l *local) Map(target, addr string) error {
	l.proxy.set(target, addr)
	return nil
}

// lowPort and highPort bound the ports that FreePort returns. They are below the usual source ports of outgoing
// connections, which could take a port between its choice and its use.
const lowPort, highPort = 10240, 32000

// FreePort implements Runtime.
func (l *local) FreePort() (int, error) {
	var err error
	for range 100 {
		port := lowPort + rand.IntN(highPort-lowPort)
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, ln.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// Traffic implements Runtime.
func (l *local) Traffic() (Traffic, error) {
	t := Traffic{Targets: l.proxy.targets(), Names: l.dns.asked()}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.reserved {
		if n := h.refused.Load(); n > 0 {
			t.Targets = append(t.Targets, Target{Address: h.addr, Refused: n})
		}
	}
	return t, nil
}

// Close implements Runtime.
func (l *local) Close() error {
	l.mu.Lock()
	l.ended = true
	procs, reserved := l.procs, l.reserved
	l.mu.Unlock()
	var errs []error
	for _, p := range procs {
		errs = append(errs, p.signal(syscall.SIGKILL))
	}
	for _, p := range procs {
		<-p.exited
	}
	for _, h := range reserved {
		h.close()
	}
	l.proxy.close()
	l.dns.close()
	return errors.Join(errs...)
}

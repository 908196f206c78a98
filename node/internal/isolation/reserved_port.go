package isolation

import (
	"net"
	"sync"
	"sync/atomic"
)

// reservedPort occupies the loopback address of a member that is not running here. Members dial such an address
// directly, not through the proxy. Connections are counted and refused.
type reservedPort struct {
	addr     string
	refused  atomic.Int64
	mu       sync.Mutex
	listener net.Listener // nil while released
}

func (h *reservedPort) listen() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener != nil {
		return nil
	}
	ln, err := net.Listen("tcp", h.addr)
	if err != nil {
		return err
	}
	h.listener = ln
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			h.refused.Add(1)
			_ = c.Close()
		}
	}()
	return nil
}

func (h *reservedPort) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener != nil {
		_ = h.listener.Close()
		h.listener = nil
	}
}

// ReservePort implements Runtime.
func (l *local) ReservePort(addr string) error {
	l.mu.Lock()
	h := l.reserved[addr]
	if h == nil {
		h = &reservedPort{addr: addr}
		l.reserved[addr] = h
	}
	l.mu.Unlock()
	return h.listen()
}

// ReleasePort implements Runtime.
func (l *local) ReleasePort(addr string) error {
	l.mu.Lock()
	h := l.reserved[addr]
	l.mu.Unlock()
	if h != nil {
		h.close()
		h.refused.Store(0) // earlier connections were to a member that was not up yet
	}
	return nil
}

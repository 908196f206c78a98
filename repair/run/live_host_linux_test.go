package run

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// full listens at an address to which no further connection can be made, as behind a firewall that drops packets.
func full(t *testing.T) (url string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 100 {
		c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return "http://" + address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("100 connections were accepted that nothing takes")
	return ""
}

// TestNoConnectionInTime: a member at an address that takes no connection in time is not known to be down.
func TestNoConnectionInTime(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	f := serve(t, c).live()
	f.where.endpoints["node2"] = full(t)
	if f.down(t.Context(), c.r.plan.Member("node2")) {
		t.Error("a member that accepts no connection in time is said to be down")
	}
}

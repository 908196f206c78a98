package run

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestALoginThatHangsEndsWithTheRun: the end of a run ends a login at a member that accepts connections and never
// answers. The deadline of one request does not, because the next one needs the same login.
func TestALoginThatHangsEndsWithTheRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	connected := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			connected <- struct{}{}
		}
	}()
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": "http://" + l.Addr().String()})
	ctx, interrupt := context.WithCancel(t.Context())
	f.logins.ctx, f.o.User, f.o.Password = ctx, "root", "secret"
	m := f.r.plan.Member("node1")
	ended := make(chan error, 1)
	go func() {
		_, err := f.answers(ctx, m)
		ended <- err
	}()
	<-connected // the check whether anything listens
	<-connected // the login
	interrupt()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(4 * time.Second): // every limit of a login is longer
		t.Error("the end of the run does not end the login")
	}
}

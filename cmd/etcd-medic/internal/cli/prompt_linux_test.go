package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-medic/etcd-medic/repair/run"
)

// terminal is a pseudo-terminal: a person sits at the master, a command has the other side.
type terminal struct {
	t             *testing.T
	master, slave *os.File
	mu            sync.Mutex
	screen        bytes.Buffer
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, e1 := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err := errors.Join(e1, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{t: t, master: master, slave: slave}
	t.Cleanup(func() { _, _ = slave.Close(), master.Close() })
	go func() {
		b := make([]byte, 1024)
		for {
			n, err := master.Read(b)
			p.mu.Lock()
			p.screen.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *terminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// echoes tells whether the terminal shows what is typed.
func (p *terminal) echoes() bool {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

func (p *terminal) until(what string, f func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not within a minute: %s\n%s", what, p.shown())
		}
	}
}

// typed is a person who types once the terminal hides it.
func (p *terminal) typed(text string) {
	p.t.Helper()
	p.until("the question, and a terminal that shows nothing",
		func() bool { return strings.Contains(p.shown(), "password of root: ") && !p.echoes() })
	if _, err := p.master.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// asks runs login at the terminal.
func (p *terminal) asks(ctx context.Context) (*repairApplyOptions, chan error) {
	s := &Streams{In: p.slave, Err: p.slave, Getenv: func(string) string { return "" }}
	o := &repairApplyOptions{live: run.LiveOptions{User: "root"}}
	end := make(chan error, 1)
	go func() { end <- o.login(ctx, s) }()
	return o, end
}

// TestLoginHidden: a password that is typed at a terminal is not shown, and the terminal is afterwards as it was.
func TestLoginHidden(t *testing.T) {
	for _, tc := range []struct{ typed, want, fails string }{
		{"correct horse: battery\n", "correct horse: battery", ""},
		{"wrong\x15right\n", "right", ""}, // ^U begins the line anew
		{"\n", "", "is missing"},
		{"\x04right\n", "right", ""}, // ^D is not the end of anything
	} {
		p := newTerminal(t)
		o, end := p.asks(t.Context())
		p.typed(tc.typed)
		err := <-end
		var u *usageError
		if tc.fails == "" && (err != nil || o.live.Password != tc.want) {
			t.Errorf("%q: %q, %v", tc.typed, o.live.Password, err)
		}
		if tc.fails != "" && (!errors.As(err, &u) || !strings.Contains(err.Error(), tc.fails)) {
			t.Errorf("%q: %v", tc.typed, err)
		}
		p.until("the line ends", func() bool { return strings.HasSuffix(p.shown(), "\r\n") })
		if got := p.shown(); got != "password of root: \r\n" {
			t.Errorf("%q: the screen shows %q", tc.typed, got)
		}
		if !p.echoes() {
			t.Errorf("%q: the terminal shows nothing any more", tc.typed)
		}
	}
}

// TestLoginInterrupted: an interrupt ends the wait for a password and leaves a terminal that shows what is typed.
func TestLoginInterrupted(t *testing.T) {
	p := newTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, end := p.asks(ctx)
	p.typed("half")
	cancel()
	select {
	case err := <-end:
		if exitCode(err) != ExitInterrupted {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits")
	}
	if !p.echoes() {
		t.Error("the terminal shows nothing any more")
	}
	_, _ = p.master.WriteString("\n") // lets the reader go
}

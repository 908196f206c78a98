package cli

import (
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// paged are the commands with a result that may be long. Others ask, copy or run servers, so a pager would interfere.
var paged = []string{"diagnose", "inspect", "verify", "compare", "history", "dumplog", "dumpdb", "explain", "preflight",
	"plan", "status"}

// pager buffers the output of a command until it is more than a screen, then passes it to a pager.
type pager struct {
	out  io.Writer
	rows int
	// start runs the pager and returns its standard input; nil if it does not start.
	start func() (io.WriteCloser, func() error)

	mu   sync.Mutex
	kept bytes.Buffer
	in   io.WriteCloser
	wait func() error
	// direct is true if no pager is used, ended if the user has left it.
	direct, ended bool
	// stream is true for a listing, which ends with its pager. A verdict is always completed, with its exit code.
	stream bool
}

// page uses a pager for the result of a command, only for a user at a terminal: never in a pipe, never with --no-pager,
// and not for rows that arrive slowly.
func (s *Streams) page(cmd *cobra.Command) {
	follows := cmd.Flags().Lookup("follow")
	if !s.OutTTY || s.Height <= 0 || s.noPager || s.Getenv("TERM") == "dumb" || !slices.Contains(paged, cmd.Name()) ||
		follows != nil && follows.Value.String() == "true" {
		return
	}
	line := s.Getenv("PAGER")
	if line == "cat" {
		return
	}
	stream := strings.HasPrefix(cmd.Name(), "dump")
	out := s.Out
	s.pager = &pager{out: out, rows: s.Height - 1, stream: stream,
		start: func() (io.WriteCloser, func() error) { return s.startPager(out, line) }}
	s.Out = s.pager
}

// startPager runs $PAGER, or less, which shows colors and ends by itself if everything fits on the screen.
func (s *Streams) startPager(out io.Writer, line string) (io.WriteCloser, func() error) {
	run := exec.Command("less", "-FRX")
	if line != "" {
		run = exec.Command("sh", "-c", line)
	}
	run.Stdout, run.Stderr = out, s.own()
	s.display.Close() // the pager has the terminal now
	s.clearStatus()
	in, err := run.StdinPipe()
	if err != nil || run.Start() != nil {
		return nil, nil
	}
	return in, run.Wait
}

// Write implements io.Writer.
func (p *pager) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended && p.stream:
		return 0, errDown
	case p.ended:
		return len(b), nil
	case p.direct:
		return p.out.Write(b)
	case p.in != nil:
		return p.send(b)
	}
	p.kept.Write(b)
	if bytes.Count(p.kept.Bytes(), []byte("\n")) <= p.rows {
		return len(b), nil
	}
	if p.in, p.wait = p.start(); p.in == nil {
		p.direct = true
		_, err := p.out.Write(p.kept.Bytes())
		return len(b), err
	}
	_, err := p.send(p.kept.Bytes())
	return len(b), err
}

// send writes to the pager. It is not an error if the user leaves the pager early.
func (p *pager) send(b []byte) (int, error) {
	n, err := p.in.Write(b)
	if err != nil {
		if p.ended = true; p.stream {
			return n, errDown
		}
	}
	return len(b), nil
}

// close writes the rest and waits until the user leaves the pager.
func (p *pager) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		if p.direct {
			return nil
		}
		_, err := p.out.Write(p.kept.Bytes())
		return err
	}
	_ = p.in.Close()
	_ = p.wait() // it ends as the person ends it
	return nil
}

// colorForced reports whether CLICOLOR_FORCE requests colors without a terminal.
func (s *Streams) colorForced() bool {
	v := strings.TrimSpace(s.Getenv("CLICOLOR_FORCE"))
	return v != "" && v != "0"
}

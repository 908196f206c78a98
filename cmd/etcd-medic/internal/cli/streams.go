package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/internal/progress"
)

// Streams are the inputs and outputs of a command, and what is known about the terminals.
type Streams struct {
	// Out receives only the result; Err receives progress, warnings, errors and hints.
	Out, Err io.Writer
	// In is the user's keyboard; nil if there is none.
	In io.Reader
	// Stdin is piped input, for commands that accept "-".
	Stdin io.Reader
	// OutTTY and ErrTTY say whether the output is a terminal.
	OutTTY, ErrTTY bool
	// Width and Height are those of the terminal in columns and rows, 0 if unknown.
	Width, Height int
	// errWidth is the width of the terminal at Err, if it is another one.
	errWidth int
	// Patience is how long work must last before its progress is shown; 0 means the default.
	Patience time.Duration
	// Getenv reads the environment.
	Getenv func(string) string
	// Yield lowers the priority of this process until it ends; nil if the process does other work too.
	Yield func(nice int) error

	typed *bufio.Reader // of In
	// raw is the unguarded Err: for the progress line and for programs that write there themselves.
	raw io.Writer

	// orderly is true while a command runs that must be waited for after an interrupt.
	orderly atomic.Bool

	// noColor and noPager are the flags of these names.
	noColor, noPager bool
	// memory watches what this process takes, nil if it does other work, too. maxMemory is --max-memory, 0 if not set.
	memory    *memoryBound
	maxMemory int64
	pager     *pager

	mu     sync.Mutex
	status int // length of the progress line on screen
	// helpErr is why a help page could not be written.
	helpErr error
	// silent is true if only the result, warnings and errors are wanted: for programs, and with --quiet.
	silent bool
	// display shows the progress of long work on a terminal.
	display *progress.Display
}

// System returns the streams of this process.
func System() *Streams {
	bound := newMemoryBound()
	boundHeap(os.Args[1:], bound)
	s := &Streams{memory: bound,
		Out: os.Stdout, Err: os.Stderr, Stdin: os.Stdin, Getenv: os.Getenv, Yield: collect.Yield}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		s.In = os.Stdin
	}
	s.OutTTY = term.IsTerminal(int(os.Stdout.Fd()))
	s.ErrTTY = term.IsTerminal(int(os.Stderr.Fd()))
	if w, h, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		s.Width, s.Height = w, h
	}
	if w, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil {
		s.errWidth = w
	}
	return s
}

// guard makes everything written to Err safe to show: errors, hints and prompts contain names and texts from evidence.
func (s *Streams) guard() {
	if s.raw == nil {
		s.raw = s.Err
		s.Err = render.SafeWriter(s.Err)
	}
}

// own returns Err for text without external content.
func (s *Streams) own() io.Writer {
	if s.raw != nil {
		return s.raw
	}
	return s.Err
}

// Color reports whether to color the result: on a terminal, or with CLICOLOR_FORCE, but not with --no-color, NO_COLOR
// or a dumb terminal.
func (s *Streams) Color() bool {
	if s.noColor || s.Getenv("NO_COLOR") != "" {
		return false
	}
	if s.colorForced() {
		return true
	}
	return s.OutTTY && s.Getenv("TERM") != "dumb"
}

// Progress returns a function that shows the current action on one line of stderr, nil without a terminal.
func (s *Streams) Progress() func(string) {
	if !s.ErrTTY || s.silent {
		return nil
	}
	return func(what string) { s.show(what + " …") }
}

// show replaces the progress line.
func (s *Streams) show(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what = strings.NewReplacer("\n", " ", "\t", " ").Replace(render.Safe(what))
	if w := max(cmp.Or(s.errWidth, s.Width, 80), 20) - 2; len(what) > w {
		what = strings.ToValidUTF8(what[:w], "")
	}
	_, _ = fmt.Fprintf(s.own(), "\r%s\r%s", strings.Repeat(" ", s.status), what)
	s.status = len(what)
}

// showProgress shows the progress of long work on stderr, if it is a terminal and the result is not for a program.
func (s *Streams) showProgress(cmd *cobra.Command) {
	flag := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	s.silent = flag("quiet") == "true" || strings.HasPrefix(flag("write-out"), "json")
	if s.ErrTTY && !s.silent {
		cmd.SetContext(progress.With(cmd.Context(), s.display))
	}
}

// listing shows the progress of reading a file whose rows go to stdout, unless rows and progress would share a screen.
// The caller ends it.
func (s *Streams) listing(ctx context.Context, what, path string) (context.Context, *progress.Work) {
	st, err := os.Stat(path)
	if s.OutTTY || err != nil {
		return ctx, nil
	}
	return progress.Begin(ctx, what, st.Size())
}

// clearStatus removes the progress line, before a message and at the end.
func (s *Streams) clearStatus() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status > 0 {
		_, _ = fmt.Fprintf(s.own(), "\r%s\r", strings.Repeat(" ", s.status))
		s.status = 0
	}
}

package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/shell"
)

// login finds the password of --user: after its colon, in a file, in the environment, else by asking the user at the
// terminal.
func (o *repairApplyOptions) login(ctx context.Context, s *Streams) error {
	name, password, given := strings.Cut(o.live.User, ":")
	o.live.User = name
	switch {
	case name == "":
		return nil
	case o.password != "":
		b, err := os.ReadFile(o.password)
		if err != nil {
			return usagef("", "--password-file: %v", err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	case given:
	case s.Getenv("ETCD_MEDIC_PASSWORD") != "":
		password = s.Getenv("ETCD_MEDIC_PASSWORD")
	case s.In != nil:
		var err error
		if password, err = s.askPassword(ctx, "password of "+name+": "); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return usagef("--password-file FILE, or ETCD_MEDIC_PASSWORD", "no password of %s: %v", name, err)
		}
	}
	if password == "" {
		return usagef("--password-file FILE, or ETCD_MEDIC_PASSWORD", "the password of %s is missing", name)
	}
	o.live.Password = password
	return nil
}

// askPassword reads a line, hidden if the terminal supports it. An interrupt restores the terminal.
func (s *Streams) askPassword(ctx context.Context, question string) (string, error) {
	s.clearStatus()
	_, _ = fmt.Fprint(s.Err, question)
	defer func() { _, _ = fmt.Fprintln(s.Err) }()
	f, ok := s.In.(*os.File)
	if !ok {
		return s.answer(ctx, s.line)
	}
	fd := int(f.Fd()) // once: the reader stays until the process ends, and the file may be closed before
	if !term.IsTerminal(fd) {
		return s.answer(ctx, s.line)
	}
	shown, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	password, err := s.answer(ctx, func() (string, error) {
		b, err := term.ReadPassword(fd)
		return string(b), err
	})
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), term.Restore(fd, shown))
	}
	return password, err
}

// line reads what the user types. One reader serves all questions, since it may buffer more than one line.
func (s *Streams) line() (string, error) {
	if s.typed == nil {
		s.typed = bufio.NewReader(s.In)
	}
	text, err := s.typed.ReadString('\n')
	if errors.Is(err, io.EOF) && text != "" {
		err = nil
	}
	return strings.TrimSpace(text), err
}

// answers are the accepted answers. Enter alone confirms an action, but means no to a question.
var answers = map[string]bool{"y": true, "yes": true, "done": true, "ok": true, "n": false, "no": false, "stop": false,
	"q": false, "quit": false}

// lines shows each text as one line: a name with a line feed would print a line that looks like a command of ours.
func (s *Streams) lines(text ...string) {
	s.clearStatus()
	for _, t := range text {
		_, _ = fmt.Fprintln(s.Err, shell.OneLine(t))
	}
}

// prompt shows what a person has to do and waits for an answer. Everything but a yes ends with run.ErrStopped, the
// end of the input too.
func (s *Streams) prompt() func(context.Context, []string) error {
	return func(ctx context.Context, text []string) error {
		s.lines(text...)
		ask, enter := "Enter when it is done, no to stop here: ", "done"
		if strings.HasSuffix(text[len(text)-1], "?") {
			ask, enter = "yes to continue, Enter for no: ", "no"
		}
		for {
			_, _ = fmt.Fprint(s.Err, ask)
			answer, err := s.answer(ctx, s.line)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				_, _ = fmt.Fprintln(s.Err)
				return fmt.Errorf("%w: no answer (%w)", run.ErrStopped, err)
			}
			yes, known := answers[strings.ToLower(cmp.Or(answer, enter))]
			switch {
			case yes:
				return nil
			case known:
				return fmt.Errorf("%w: answered %q", run.ErrStopped, answer)
			}
			_, _ = fmt.Fprintf(s.Err, "%q is not an answer.\n", answer)
		}
	}
}

// answer waits for input until ctx ends.
func (s *Streams) answer(ctx context.Context, from func() (string, error)) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := from()
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

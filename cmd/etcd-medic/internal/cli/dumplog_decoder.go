package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
)

// streamDecoder is the user's command that decodes entries, as in etcd-dump-logs: one line of hex per entry as input,
// one line "status|decoded data" per entry as output.
type streamDecoder struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan answer
	done    chan struct{} // closed when no more answers are needed
	timeout time.Duration
	stderr  limited
	waited  bool
}

type answer struct {
	line string
	err  error
}

const (
	maxAnswer = 64 << 20
	maxStderr = 64 << 10
)

func startDecoder(ctx context.Context, command string, timeout time.Duration) (*streamDecoder, error) {
	args := strings.Fields(command)
	if len(args) == 0 {
		return nil, usagef("", "--stream-decoder names no command")
	}
	d := &streamDecoder{timeout: timeout, answers: make(chan answer), done: make(chan struct{}),
		stderr: limited{max: maxStderr}}
	d.cmd = exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the user names the command
	d.cmd.Stderr = &d.stderr
	d.cmd.WaitDelay = time.Second
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("stream decoder: %w", err)
	}
	go d.listen(out)
	return d, nil
}

func (d *streamDecoder) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 64<<10), maxAnswer)
	for {
		a := answer{err: io.EOF}
		if lines.Scan() {
			a = answer{line: lines.Text()}
		} else if lines.Err() != nil {
			a.err = lines.Err()
		}
		select {
		case d.answers <- a:
		case <-d.done:
			return
		}
		if a.err != nil {
			return
		}
	}
}

// ask sends the data of one entry and waits for the answer.
func (d *streamDecoder) ask(data []byte) (*render.Decoded, error) {
	line := append(hex.AppendEncode(make([]byte, 0, 2*len(data)+1), data), '\n')
	sent := make(chan error, 1)
	go func() {
		_, err := d.in.Write(line)
		sent <- err
	}()
	late := time.NewTimer(d.timeout)
	defer late.Stop()
	for {
		select {
		case err := <-sent:
			if err == nil {
				sent = nil
				continue
			}
			return nil, fmt.Errorf("stream decoder ended before it took an entry%s", d.end())
		case a := <-d.answers:
			if a.err != nil && !errors.Is(a.err, io.EOF) {
				return nil, fmt.Errorf("stream decoder: %w", a.err)
			}
			if a.err != nil {
				return nil, fmt.Errorf("stream decoder ended before it answered%s", d.end())
			}
			status, text, found := strings.Cut(strings.TrimSuffix(a.line, "\r"), "|")
			if !found {
				status, text = "no status in the answer", status
			}
			return &render.Decoded{Status: status, Data: text}, nil
		case <-late.C:
			_ = d.cmd.Process.Kill()
			return nil, fmt.Errorf("stream decoder gave no answer for %s (--stream-decoder-timeout)", d.timeout)
		}
	}
}

// end waits for a command that closed its output, and returns how it ended.
func (d *streamDecoder) end() string {
	d.waited = true
	close(d.done)
	_ = d.in.Close()
	said := ""
	if err := d.cmd.Wait(); err != nil {
		said = ": " + err.Error()
	}
	return said
}

// close ends the command and returns its stderr. Its exit status is an error only if nothing failed before.
func (d *streamDecoder) close(failed error) (said string, err error) {
	if !d.waited {
		close(d.done)
		_ = d.in.Close()
		late := time.AfterFunc(d.timeout, func() { _ = d.cmd.Process.Kill() })
		err = d.cmd.Wait()
		late.Stop()
	}
	if failed != nil {
		err = nil
	} else if err != nil {
		err = fmt.Errorf("stream decoder: %w", err)
	}
	return strings.TrimSpace(d.stderr.buf.String()), err
}

// limited keeps the first bytes written to it.
type limited struct {
	buf bytes.Buffer
	max int
}

// Write drops what exceeds max. It reports every byte as written, so that the decoder is not blocked.
func (l *limited) Write(p []byte) (int, error) {
	l.buf.Write(p[:min(len(p), max(l.max-l.buf.Len(), 0))])
	return len(p), nil
}

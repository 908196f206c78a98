package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// Limits of one command. They are generous, since the machine may be busy.
const (
	patience  = 2 * time.Minute
	maxMemory = 300 << 20
	maxOutput = 64 << 20
)

// commands are the commands to run on a mutated set: ALL means all sources, ONE one of them, DB the database of one,
// OUT a new path.
var commands = []string{
	"diagnose ALL -w json", "diagnose ALL -w json", "diagnose ALL", "diagnose ALL --full", "diagnose ALL --timeline",
	"diagnose ONE -w json", "inspect ONE -w json", "inspect ONE --full",
	"compare ALL -w json", "compare ALL", "compare ONE ONE --as-script", "history k ALL -w json",
	"preflight ONE --to 3.6 -w json", "verify DB -w json", "verify DB --against ONE -w json",
	"explain W04 ALL", "repair plan ALL -o OUT -w json", "report ALL -o OUT.html", "report ALL -o OUT.md",
	"dumplog ONE -w jsonl", "dumplog ONE --raw", "dumplog ONE --stats -w json",
	"dumplog ONE --lives -w fields", "dumplog ONE --snaps", "dumpdb ONE -w jsonl", "dumpdb ONE key -w jsonl",
	"dumpdb ONE authUsers", "dumpdb ONE --hashkv -w json",
	"dumpdb ONE --salvage -w jsonl", "dumpdb ONE --pages", "dumpdb ONE --free", "dumpdb ONE --kube",
	"extract ONE -o OUT", "rebuild --log ONE --to index=20 -o OUT.db",
	"rebuild --base ONE --log ONE --to last -o OUT.db", "restore DB --initial-cluster a=http://127.0.0.1:2380 -o OUT",
	"restore ONE --initial-cluster a=http://127.0.0.1:2380 -o OUT",
	"repair wal ONE -o OUT", "repair db ONE --rebuild -o OUT", "repair db ONE --previous-meta -o OUT",
	"repair meta ONE --set-consistent-index 5 -o OUT",
}

// outcome is the result of a command.
type outcome struct {
	args           []string
	stdout, stderr []byte // the first bytes
	printed        int64  // bytes on stdout
	code           int
	memory         int64
	// took is the time that passed, worked the time that the program computed.
	took, worked   time.Duration
	hung, signaled bool
}

// line returns the command on one line for the report; it is never run by a shell.
func (o *outcome) line() string { return fmt.Sprintf("%q", o.args) }

var errHung = errors.New("it does not end")

// run runs the program on a set, with tmp as scratch. One that runs longer than patience is ended and counts as hung.
// Time in which it waits for a busy machine does not count.
func run(ctx context.Context, medic, tmp string, args []string, patience time.Duration) (*outcome, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cmd := exec.CommandContext(ctx, medic, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // prints the goroutines
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bounded
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	watched, waited := peak(cmd.Process.Pid), endAfter(patience, cmd.Process.Pid, func() { end(errHung) })
	err := cmd.Wait()
	memory := watched()
	waited()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return nil, err
	}
	o := &outcome{args: args, memory: memory, stdout: stdout.b.Bytes(), stderr: stderr.b.Bytes(),
		printed: stdout.written,
		took:    time.Since(begin),
		hung:    errors.Is(context.Cause(ctx), errHung),
		worked:  cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		o.code, o.signaled = st.ExitStatus(), st.Signaled()
	}
	return o, nil
}

// peak watches the memory of a process until the result is asked for, when it has ended. The system's own account of an
// ended process (ru_maxrss) counts what its parent used when it started it.
func peak(pid int) func() int64 {
	most, end, done := int64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
				if _, after, ok := bytes.Cut(b, []byte("VmHWM:")); ok {
					var kb int64
					_, _ = fmt.Sscan(string(after[:min(len(after), 30)]), &kb) // 0 if it is not a number
					most = max(most, kb<<10)
				}
			}
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(end)
		<-done
		return most
	}
}

// bounded keeps the first bytes written to it and counts all.
type bounded struct {
	b       bytes.Buffer
	written int64
}

// Write implements io.Writer.
func (w *bounded) Write(p []byte) (int, error) {
	w.written += int64(len(p))
	if w.b.Len() < maxOutput {
		w.b.Write(p)
	}
	return len(p), nil
}

// judge returns the faults of an outcome.
func (o *outcome) judge() (wrong []string) {
	say := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	say(o.hung, "it does not end")
	say(o.signaled && !o.hung, "a signal ended it")
	say(!o.hung && !o.signaled && (o.code < 0 || o.code > 6), "exit code %d is not documented", o.code)
	say(bytes.Contains(o.stderr, []byte("defect of etcd-medic")) || bytes.Contains(o.stderr, []byte("goroutine ")),
		"panic: %s", firstLines(o.stderr, 14))
	say(o.memory > maxMemory, "%d MB of memory", o.memory>>20)
	say(len(o.stdout) >= maxOutput || len(o.stderr) >= maxOutput, "endless output")
	for _, stream := range []struct {
		name string
		b    []byte
	}{{"stdout", o.stdout}, {"stderr", o.stderr}} {
		if c, at := control(stream.b); at >= 0 {
			say(true, "control character %U on %s: %q", c, stream.name, around(stream.b, at))
		}
	}
	if at := slices.Index(o.args, "-w"); at >= 0 && strings.HasPrefix(o.args[at+1], "json") && !o.hung && !o.signaled {
		say(!documents(o.stdout), "broken JSON: %s", firstLines(o.stdout, 3))
	}
	return wrong
}

// control finds a character that a terminal may interpret: C0 except tab and newline, DEL, C1, and those that change
// the direction of text.
func control(b []byte) (c rune, at int) {
	for at := 0; at < len(b); {
		c, n := utf8.DecodeRune(b[at:])
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 && n > 1 || c >= 0x202a &&
			c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return c, at
		}
		at += n
	}
	return 0, -1
}

func around(b []byte, at int) []byte { return b[max(0, at-40):min(len(b), at+40)] }

// documents reports whether b is a sequence of complete JSON documents.
func documents(b []byte) bool {
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var v any
		if err := d.Decode(&v); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func firstLines(b []byte, n int) string {
	lines := strings.SplitN(string(b), "\n", n+1)
	s := strings.Join(lines[:min(n, len(lines))], "\n")
	return s[:min(len(s), 1500)]
}

// healthy reports whether the output of diagnose -w json calls the set healthy.
func (o *outcome) healthy() bool {
	var r struct {
		Verdict struct {
			Healthy *bool `json:"healthy"`
		} `json:"verdict"`
	}
	return json.Unmarshal(o.stdout, &r) == nil && r.Verdict.Healthy != nil && *r.Verdict.Healthy
}

// state lists every name below a folder with everything that must not change.
func state(dir string) (string, error) {
	var s strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(&s, "%q %s %d %d\n", p, st.Mode(), st.Size(), st.ModTime().UnixNano())
		return err
	})
	return s.String(), err
}

package restoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/node"
)

const stepStop = "stop"

// judge turns the result into check B09. Damage needs evidence: an answer of the server that differs from the file, or
// a server that refuses the file. If anything else stopped the drill (time, disk space, a missing server), the check
// stays open.
func (d *drill) judge(r *compare.Report) {
	bad := d.failed()
	d.res.OK = d.res.Started && d.res.Equal.Certain() && bad == nil && d.res.Refused == ""
	switch {
	case d.res.OK:
		backup.Judge(r, check.B09, check.Holds, "")
		return
	case len(d.res.Differences) == 0 && !d.refutes():
		d.res.Inconclusive = d.reason(bad)
		backup.LeaveOpen(r, check.B09, d.res.Inconclusive)
		return
	}
	m := d.m
	f := check.Finding{Kind: check.KindRestoreFails, Severity: check.Critical, Class: check.ClassBackupDamaged,
		Members: []string{m.Label()}}
	ev := check.Evidence{Member: m.Label(), File: m.DB.File, Expected: "a server that starts, holds what the file " +
		"holds, and takes a write"}
	switch {
	case len(d.res.Differences) > 0:
		f.Title = fmt.Sprintf("%s: etcd %s answers otherwise than the file holds it, %d times", m.Label(),
			d.res.Version, len(d.res.Differences)+d.res.More)
		x := d.res.Differences[0]
		ev.Field, ev.Key, ev.Observed, ev.Expected = x.What, x.Key, x.Answered, x.InBackup
	case !d.res.Started:
		f.Title = fmt.Sprintf("%s: etcd %s does not start on a restore of it", m.Label(), d.res.Version)
		ev.Field, ev.Observed = "start", d.failure.Error()
	default:
		step := "end"
		if bad != nil {
			step = bad.Step
		}
		f.Title = fmt.Sprintf("%s: the drill failed at step %q", m.Label(), step)
		ev.Field, ev.Observed = step, d.failure.Error()
	}
	f.Explanation = "a restore in a sandbox did not give back what the backup holds; the steps of the drill show how " +
		"far it came"
	f.Evidence = []check.Evidence{ev}
	for _, line := range d.res.Fatal {
		f.Evidence = append(f.Evidence, check.Evidence{Member: m.Label(), Field: "server log", Observed: line})
	}
	backup.Judge(r, check.B09, check.Violated, "", f)
}

// failed returns the first step that did not succeed. If a server has answered everything and only stops slowly, the
// backup is proven.
func (d *drill) failed() *backup.Step {
	for i := range d.res.Steps {
		s := &d.res.Steps[i]
		if !s.OK && (s.Step != stepStop || len(d.res.Fatal) > 0) {
			return s
		}
	}
	return nil
}

// reason returns why the drill proves nothing.
func (d *drill) reason(bad *backup.Step) string {
	at := ""
	if bad != nil {
		at = fmt.Sprintf(" at step %q", bad.Step)
	}
	switch {
	case d.res.Refused != "":
		return "the drill was refused: " + d.res.Refused
	case d.timedOut:
		return fmt.Sprintf("the drill ran out of time%s: %s were not enough (--drill-timeout)", at, d.o.Timeout)
	case d.noServer != nil:
		return fmt.Sprintf("etcd %s does not start here on an empty data dir either: %v", d.res.Version, d.noServer)
	case d.failure != nil:
		return fmt.Sprintf("the drill could not run to its end%s: %v", at, d.failure)
	}
	return "the drill did not come to its end"
}

// refutes reports whether the failure is due to the backup: the server said so, when it ended or in an answer.
func (d *drill) refutes() bool {
	if d.failure == nil || d.res.Refused != "" || d.noServer != nil {
		return false
	}
	if len(d.res.Fatal) > 0 {
		return !slices.ContainsFunc(d.res.Fatal, aboutSurroundings) && !d.killed()
	}
	var start *node.StartError
	if d.timedOut || !d.res.Started || errors.As(d.failure, &start) || errors.Is(d.failure, context.DeadlineExceeded) {
		return false
	}
	var refusal *contradictionError
	if errors.As(d.failure, &refusal) {
		return true
	}
	// An answer of the server; the client's own errors have no code.
	switch code := answerCode(d.failure); code {
	case codes.OK, codes.Unknown, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted,
		codes.Unimplemented, codes.Internal:
		return false
	default:
		return true
	}
}

// contradictionError is an answer of the server that contradicts the backup.
type contradictionError struct{ text string }

// Error says what the server answered and what the backup holds.
func (e *contradictionError) Error() string { return e.text }

func contradiction(format string, args ...any) error {
	return &contradictionError{fmt.Sprintf(format, args...)}
}

// answerCode returns the code of a server's answer. The client turns known answers into its own type, which has the
// code.
func answerCode(err error) codes.Code {
	var coded interface{ Code() codes.Code }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Unknown
}

// surroundings are words in fatal lines that blame the machine, not the data.
var surroundings = []string{"no space left on device", "disk quota exceeded", "cannot allocate memory", "out of memory",
	"too many open files",
	"file too large", "file descriptor limit",
	"permission denied", "address already in use", "read-only file system", "input/output error",
	"flag provided but not defined", "resource temporarily unavailable",
	"failed to create new OS thread", "exec format error"}

func aboutSurroundings(line string) bool {
	return slices.ContainsFunc(surroundings, func(s string) bool {
		return strings.Contains(strings.ToLower(line),
			strings.ToLower(s))
	})
}

// exited returns how the server's process ended, if it did.
func (d *drill) exited() (node.Exit, bool) {
	if d.mem == nil {
		return node.Exit{}, false
	}
	return d.mem.Exited()
}

// killed reports whether an external signal ended the server, as the kernel does when memory runs out.
func (d *drill) killed() bool {
	e, ended := d.exited()
	return ended && (e.Signal == syscall.SIGKILL.String() || e.Signal == syscall.SIGTERM.String())
}

// exitGrace is how long a server may take to exit after it has closed its connections.
const exitGrace = 5 * time.Second

// lastWords keeps the last messages of a server that exits. It closes its connections first, so its exit is awaited.
func (d *drill) lastWords(ctx context.Context) {
	if d.failure == nil || d.mem == nil {
		return
	}
	until := time.Now().Add(exitGrace)
	for {
		if _, ended := d.mem.Exited(); ended {
			d.res.Fatal = d.mem.FatalLines()
			return
		}
		if answerCode(d.failure) != codes.Unavailable || ctx.Err() != nil || time.Now().After(until) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

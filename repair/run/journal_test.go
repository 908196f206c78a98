package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// runsOf lists a journal as RUN MODE STATE STEP of each line.
func runsOf(t *testing.T, file string) string {
	t.Helper()
	records, err := ReadJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range records {
		line := fmt.Sprintf("%d %s %s %s", r.Run, r.Mode, r.State, strings.TrimSpace(r.Step+" "+r.Plan+" "+r.Detail))
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "; ")
}

// TestJournalRuns: a run of a mode is continued until it ends; a new one begins after that, on request, or for another
// plan, and the old one is then given up.
func TestJournalRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if r, err := ReadJournal(file); err != nil || r != nil {
		t.Errorf("no journal: %v, %v", r, err)
	}
	observed := 0
	open := func(digest string, mode plan.Mode, again bool, step string, state State) *journal {
		t.Helper()
		j, err := openJournal(file, digest, mode, again, func(_ Record, flushed bool) {
			if flushed {
				observed++
			}
		})
		if err == nil && state != "" {
			err = j.write(Record{State: state, Step: step, Values: map[string]string{"at": step}})
		}
		if err == nil {
			err = j.close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	want := ""
	expect := func(what, lines string) {
		t.Helper()
		want = strings.TrimPrefix(want+"; "+lines, "; ")
		if got := runsOf(t, file); got != want {
			t.Errorf("%s:\n%s, want\n%s", what, got, want)
		}
	}
	open("d1", plan.Live, false, "a", StateBegin)
	expect("first", "1 live run d1; 1 live begin a")
	if j := open("d1", rehearsal, false, "x", StateDone); j.resumed() || j.state("a") != "" || j.value("at") != "x" {
		t.Errorf("the rehearsal knows of the live run: %+v", j.records)
	}
	expect("another mode", "2 rehearse run d1; 2 rehearse done x")
	j := open("d1", plan.Live, false, "b", StateDone)
	expect("continued", "1 live run d1 continued; 1 live done b")
	if !j.resumed() || j.state("a") != StateBegin || j.state("b") != StateDone || j.state("x") != "" ||
		j.value("at") != "b" || j.value("none") != "" || j.doneAt("b").IsZero() || !j.doneAt("a").IsZero() {
		t.Errorf("%+v", j.records)
	}
	if j := open("d1", plan.Live, true, "", ""); j.resumed() || j.value("at") != "" {
		t.Errorf("a new run knows of the old one: %+v", j.records)
	}
	expect("again", "1 live abandon; 3 live run d1")
	open("d2", plan.Live, false, "", StateEnd)
	expect("another plan", "3 live abandon; 4 live run d2; 4 live end")
	open("d2", plan.Live, false, "c", StateNote)
	expect("after the end", "5 live run d2; 5 live note c")
	if j := open("d2", plan.Live, false, "", ""); j.state("c") != "" || j.value("at") != "c" {
		t.Errorf("a note is a state of a step: %+v", j.records)
	}
	expect("once more", "5 live run d2 continued")
	if n := strings.Count(want, ";") + 1; observed != n {
		t.Errorf("%d lines were observed, %d written", observed, n)
	}
	// A process that was killed left half a line.
	f, err := os.OpenFile(JournalPath(file), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"run":5,"mode":"live","state":"beg`)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	open("d2", plan.Live, false, "d", StateBegin)
	expect("healed", "5 live run d2 continued; 5 live begin d")
	if IsRehearsal(plan.Live) || !IsRehearsal(rehearsal) {
		t.Error("which mode is a rehearsal")
	}
	folder := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.Mkdir(JournalPath(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if j, err := openJournal(folder, "d", plan.Live, false, func(Record, bool) {}); err == nil {
		t.Errorf("a folder is a journal: %+v", j)
	}
}

// TestTransient: elections and what is about to end are worth another try, a refusal is not.
func TestTransient(t *testing.T) {
	for err, want := range map[error]bool{
		rpctypes.ErrMemberLearnerNotReady:                    true,
		rpctypes.ErrGRPCMemberNotEnoughStarted:               true,
		rpctypes.ErrNotLeader:                                true,
		rpctypes.ErrUnhealthy:                                true,
		rpctypes.ErrTooManyRequests:                          true,
		rpctypes.ErrTimeoutWaitAppliedIndex:                  true,
		rpctypes.ErrNoLeader:                                 true,
		fmt.Errorf("call: %w", context.DeadlineExceeded):     true,
		fmt.Errorf("call: %w", context.Canceled):             true,
		rpctypes.ErrGRPCNotSupportedForLearner:               true,
		status.Error(codes.Unavailable, "x"):                 true,
		status.Error(codes.DeadlineExceeded, "x"):            true,
		status.Error(codes.Canceled, "x"):                    true,
		status.Error(codes.ResourceExhausted, "x"):           true,
		errors.New("not yet"):                                true,
		rpctypes.ErrPermissionDenied:                         false,
		rpctypes.ErrGRPCMemberNotFound:                       false,
		rpctypes.ErrCorrupt:                                  false,
		status.Error(codes.InvalidArgument, "x"):             false,
		status.Error(codes.Unimplemented, "x"):               false,
		rpctypes.Error(rpctypes.ErrGRPCMemberExist):          false,
		status.Error(codes.PermissionDenied, "by the proxy"): false,
	} {
		if got := transient(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestLastBytes keeps the last kilobyte of what a hook said.
func TestLastBytes(t *testing.T) {
	var l lastBytes
	all := ""
	for i := range 300 {
		text := fmt.Sprintf("line %d\n", i)
		all += text
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		if want := all[max(0, len(all)-1024):]; string(l.b) != want {
			t.Fatalf("after %d: %q", i, l.b)
		}
	}
}

// TestCompactOf: servers say 0 or -1 where nothing was compacted.
func TestCompactOf(t *testing.T) {
	for rev, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 9: 9} {
		if got := compactOf(rev); got != want {
			t.Errorf("%d: %d", rev, got)
		}
	}
}

// TestOnlyHeldText says each thing that was found.
func TestOnlyHeldText(t *testing.T) {
	for want, o := range map[string]OnlyHeld{
		"what n acknowledged between its snapshot and its stop was not compared: why": {Member: "n", Unknown: "why"},
		"only n held 2 keys when it was stopped: a, b; saved as s; not all could be compared: why": {Member: "n", Dir: "d",
			Keys: 2, KeyNames: []check.Bytes{[]byte("a"), []byte("b")}, Script: "s", Unknown: "why"},
		"n held nothing since its copy that the cluster does not hold": {Member: "n", Dir: "d"},
		"n held nothing since its copy that the cluster does not hold; not all could be compared: why": {Member: "n",
			Dir: "d", Unknown: "why"},
	} {
		if got := o.Text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

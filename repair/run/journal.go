package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// State is the state of a step in a journal line.
type State string

// The states. A step that began and has no later line was interrupted: its done-test decides.
const (
	StateBegin   State = "begin"
	StateDone    State = "done"
	StateFailed  State = "failed"
	StateNote    State = "note"
	StateRun     State = "run"     // a run begins, or continues after an interruption
	StateEnd     State = "end"     // the run reached its goal
	StateAbandon State = "abandon" // the operator gave up the run and begins a new one
)

// Record is one line of the journal.
type Record struct {
	Time  time.Time `json:"time"`
	Run   int       `json:"run"`
	Mode  plan.Mode `json:"mode"`
	State State     `json:"state"`
	Step  string    `json:"step,omitempty"`
	// Detail is for people; Values are what later steps need, such as the ID of a new member.
	Detail  string            `json:"detail,omitempty"`
	Values  map[string]string `json:"values,omitempty"`
	Seconds float64           `json:"seconds,omitempty"`
	Plan    string            `json:"plan,omitempty"`
	// Unchanged is true for a step that failed before it changed anything.
	Unchanged bool `json:"unchanged,omitempty"`
}

// rehearsal is the mode of a rehearsal in the journal.
const rehearsal plan.Mode = "rehearse"

// IsRehearsal reports whether a run of that mode changed only scratch copies.
func IsRehearsal(m plan.Mode) bool { return m == rehearsal }

// maxJournal bounds a journal; journals for big clusters have some hundred KiB.
const maxJournal = 256 << 20

// JournalPath returns the path of a plan's journal, next to the plan.
func JournalPath(plan string) string { return plan + ".journal" }

// journal appends lines and syncs each to disk before the action that it announces.
type journal struct {
	f    *os.File
	path string
	// mu guards records: several members are asked in parallel.
	mu      sync.RWMutex
	records []Record
	run     int
	mode    plan.Mode
	now     func() time.Time
	// observe is called for each line before and after it is synced; see Options.
	observe func(r Record, flushed bool)
}

// ReadJournal returns the lines of a plan's journal; none when there is no journal. A last line that is cut off is left
// out.
func ReadJournal(plan string) ([]Record, error) {
	b, err := regular.ReadFile(JournalPath(plan), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Record
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, maxJournal) // a line may name keys, which can be long
	for sc.Scan() {
		var r Record
		if len(bytes.TrimSpace(sc.Bytes())) == 0 || json.Unmarshal(sc.Bytes(), &r) != nil {
			continue // the action that a cut off line announces did not begin
		}
		out = append(out, r)
	}
	return out, sc.Err()
}

// openJournal opens the journal for one mode. It continues the last run of that mode, unless that reached its goal, or
// again is true.
func openJournal(plan, digest string, mode plan.Mode, again bool, observe func(Record, bool)) (*journal, error) {
	records, err := ReadJournal(plan)
	if err != nil {
		return nil, err
	}
	j := &journal{path: JournalPath(plan), mode: mode, now: time.Now, observe: observe}
	open := false
	for _, r := range records {
		if j.run = max(j.run, r.Run); r.Mode != mode {
			continue
		}
		switch r.State {
		case StateRun:
			open = true
			if len(j.records) == 0 || j.records[0].Run != r.Run {
				j.records = nil
			}
		case StateEnd, StateAbandon:
			open = false
		}
		j.records = append(j.records, r)
	}
	if j.f, err = os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	return j, j.begin(digest, open, again)
}

// begin continues the open run or starts another.
func (j *journal) begin(digest string, open, again bool) error {
	if open && (again || j.records[0].Plan != digest) {
		j.run = j.records[0].Run
		if err := j.write(Record{State: StateAbandon}); err != nil {
			return err
		}
		open = false
	}
	if open {
		j.run = j.records[0].Run
		return j.write(Record{State: StateRun, Plan: digest, Detail: "continued"})
	}
	all, err := ReadJournal(trimJournal(j.path))
	if err != nil {
		return err
	}
	j.run, j.records = 1, nil
	for _, r := range all {
		j.run = max(j.run, r.Run+1)
	}
	return j.write(Record{State: StateRun, Plan: digest})
}

func trimJournal(path string) string { return path[:len(path)-len(".journal")] }

// heal ends a line that is cut off, so that the next one is separate: an earlier process was killed, or the disk was
// full for a moment.
func (j *journal) heal() error {
	st, err := j.f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := j.f.ReadAt(last, st.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = j.f.Write([]byte("\n"))
	return err
}

// write appends a line and syncs it to disk.
func (j *journal) write(r Record) error {
	r.Time, r.Run, r.Mode = j.now().UTC().Round(time.Millisecond), j.run, j.mode
	b, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	j.observe(r, false)
	if err := j.heal(); err != nil {
		return err
	}
	if _, err := j.f.Write(append(b, '\n')); err != nil {
		return err
	}
	if err := j.f.Sync(); err != nil {
		return err
	}
	if len(j.records) == 0 {
		if err := syncDir(filepath.Dir(j.path)); err != nil {
			return err
		}
	}
	j.mu.Lock()
	j.records = append(j.records, r)
	j.mu.Unlock()
	j.observe(r, true)
	return nil
}

// resumed reports whether the run began in an earlier process.
func (j *journal) resumed() bool {
	n := 0
	for _, r := range j.records {
		if r.State == StateRun {
			n++
		}
	}
	return n > 1
}

// state returns the newest state of a step, "" when it never began.
func (j *journal) state(step string) State {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var s State
	for _, r := range j.records {
		if r.Step == step && r.State != StateNote {
			s = r.State
		}
	}
	return s
}

// doneAt is when a step was last recorded as done; zero when it was not.
func (j *journal) doneAt(step string) (t time.Time) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, r := range j.records {
		if r.Step == step && r.State == StateDone {
			t = r.Time
		}
	}
	return t
}

// value returns the newest value of that name, "" when none was written.
func (j *journal) value(name string) string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	v := ""
	for _, r := range j.records {
		if x, ok := r.Values[name]; ok {
			v = x
		}
	}
	return v
}

func (j *journal) close() error { return j.f.Close() }

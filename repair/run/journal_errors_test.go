package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// plainFile is a path at which a file is, where a folder is needed.
func plainFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// folders makes folders.
func folders(t *testing.T, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// noJournal is the path of a plan at whose journal a folder is.
func noJournal(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	folders(t, JournalPath(file))
	return file
}

// closedJournal is a journal that can be written no more.
func closedJournal(t *testing.T) *journal {
	t.Helper()
	j, err := openJournal(filepath.Join(t.TempDir(), "plan.yaml"), "digest", plan.Live, false, func(Record, bool) {})
	if err == nil {
		err = j.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestJournalLineIsNotWritten: a line that cannot be encoded, written or synced is an error, and is not taken for one
// that was written.
func TestJournalLineIsNotWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(j *journal)
		want  error // nil is any
	}{
		"a time that has no form": {func(j *journal) {
			j.now = func() time.Time { return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }
		}, nil},
		"the file is closed": {func(j *journal) { _ = j.f.Close() }, fs.ErrClosed},
		"it cannot be synced": {func(j *journal) {
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = in.Close() })
			_ = j.f.Close()
			j.f = out
			go func() { _, _ = io.Copy(io.Discard, in) }()
		}, nil},
		"its folder is gone": {func(j *journal) {
			j.records, j.path = nil, filepath.Join(filepath.Dir(j.path), "gone", "plan.yaml.journal")
		}, fs.ErrNotExist},
	} {
		flushed := 0
		j, err := openJournal(filepath.Join(t.TempDir(), "plan.yaml"), "digest", plan.Live, false,
			func(_ Record, done bool) {
				if done {
					flushed++
				}
			})
		if err != nil {
			t.Fatal(err)
		}
		tc.spoil(j)
		before := len(j.records)
		err = j.write(Record{State: StateBegin, Step: "a"})
		if err == nil || !errors.Is(err, tc.want) && tc.want != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(j.records) != before || j.state("a") != "" || flushed != 1 {
			t.Errorf("%s: %d lines, %d were flushed", name, len(j.records), flushed)
		}
		_ = j.close()
	}
}

// TestJournalAfterAFullDisk: a line that a full disk cut off does not spoil the next one, and a long line can be read.
func TestJournalAfterAFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	j, err := openJournal(file, "digest", plan.Live, false, func(Record, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.f.WriteString(`{"run":1,"mode":"live","sta`); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("k", 2<<20)
	for _, r := range []Record{{State: StateNote, Values: map[string]string{"id:node3": "ab"}},
		{State: StateNote, Values: map[string]string{"only:node3": long}}} {
		if err := j.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	records, err := ReadJournal(file)
	if err != nil || len(records) != 3 || records[1].Values["id:node3"] != "ab" ||
		records[2].Values["only:node3"] != long {
		t.Errorf("%d lines, %v", len(records), err)
	}
}

// TestJournalIsNotOpened: a journal that cannot be read or made is an error.
func TestJournalIsNotOpened(t *testing.T) {
	for name, file := range map[string]string{"a folder": noJournal(t),
		"no place": filepath.Join(t.TempDir(), "gone", "plan.yaml")} {
		if j, err := openJournal(file, "digest", plan.Live, false, func(Record, bool) {}); err == nil || j != nil {
			t.Errorf("%s: %v, %v", name, j, err)
		}
	}
}

// TestJournalOfAnotherRun: a run begins only once the one before it is given up in the journal, and once all its lines
// were read again.
func TestJournalOfAnotherRun(t *testing.T) {
	j := closedJournal(t)
	if err := j.begin("digest", true, true); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("an open run is not given up: %v", err)
	}
	j.path = JournalPath(noJournal(t))
	if err := j.begin("digest", false, false); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a journal that cannot be read: %v", err)
	}
}

// TestSessionWithoutJournal: a session whose journal cannot be opened is not under way.
func TestSessionWithoutJournal(t *testing.T) {
	s := &session{plan: &plan.Plan{Digest: "digest"}, file: noJournal(t), out: &Outcome{}}
	s.o.fill()
	if err := s.journal(plan.Clone); err == nil || s.j != nil || s.out.Mode != "" {
		t.Errorf("%v, %+v", err, s.out)
	}
}

// TestFinishIsNotRecorded: a run whose end cannot be written to the journal keeps its scratch.
func TestFinishIsNotRecorded(t *testing.T) {
	s := finishing(t, plan.Reseed, holds)
	s.j = closedJournal(t)
	out, err := s.finish(nil, func() error { t.Error("the scratch is removed"); return nil })
	if !errors.Is(err, fs.ErrClosed) || out == nil {
		t.Errorf("%+v, %v", out, err)
	}
}

package check_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// logEndsAt replaces the log of a member by one that holds the first puts only, as a copy that was taken earlier than
// the database.
func logEndsAt(t *testing.T, dir string, member, puts int) {
	t.Helper()
	if err := os.RemoveAll(walOf(dir)); err != nil {
		t.Fatal(err)
	}
	s := sound()
	s.Entries = puts
	s.WriteWAL(t, walOf(dir), member)
}

// notStopped leaves the prepared segment of a server that runs.
func notStopped(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(walOf(dir), "0.tmp"), make([]byte, 512), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tornTail cuts the last record of the log.
func tornTail(t *testing.T, dir string) {
	t.Helper()
	in := dirInput(t, dir)
	segs := in.Members[0].WAL.Summary.Segments
	last := segs[len(segs)-1]
	truncate(t, filepath.Join(walOf(dir), last.Name), last.DataEnd-20)
}

func TestCopyOfARunningMember(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	logEndsAt(t, dirs[1], 1, 60)
	notStopped(t, dirs[1])
	for _, in := range []*check.Input{dirInput(t, dirs...), dirInput(t, dirs[1])} {
		f := wantFinding(t, in, "X05", []string{"node2"}, "copied while the server wrote")
		if f.Class != "torn-copy" || len(f.Evidence) != 2 {
			t.Errorf("%s %+v", f.Class, f.Evidence)
		}
		wantOutcome(t, in, "D04", check.Holds)
	}
}

func TestDatabaseAheadOfAStoppedServersLog(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	logEndsAt(t, dirs[1], 1, 60)
	in := dirInput(t, dirs...)
	wantOutcome(t, in, "X05", check.Holds)
	wantFinding(t, in, "D04", []string{"node2"})
}

func TestKilledServersAreNoTornCopies(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	for _, d := range dirs {
		notStopped(t, d)
	}
	tornTail(t, dirs[2])
	wantOutcome(t, dirInput(t, dirs...), "X05", check.Holds)
}

// What one source shows with two signs, one sign shows of another one that was not stopped in order.
func TestCopiesOfRunningMembersTogether(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	logEndsAt(t, dirs[1], 1, 60)
	notStopped(t, dirs[1])
	tornTail(t, dirs[2])
	if r := runCheck(t, dirInput(t, dirs...), "X05"); len(r.Findings) != 1 || r.Findings[0].Members[0] != "node2" {
		t.Errorf("node3 was stopped in order: %+v", r.Findings)
	}
	notStopped(t, dirs[2])
	if r := runCheck(t, dirInput(t, dirs...), "X05"); len(r.Findings) != 2 || r.Findings[1].Members[0] != "node3" {
		t.Errorf("%+v", r.Findings)
	}
}

// The logs of copies of running members end where the copies do, so a commit index beyond them proves no loss.
func TestCommitBeyondTornCopies(t *testing.T) {
	dirs := sound().Write(t, t.TempDir())
	for i := range 2 {
		logEndsAt(t, dirs[i], i, 60)
		notStopped(t, dirs[i])
	}
	f := wantFinding(t, dirInput(t, dirs...), "R07", []string{"node1", "node2"}, "copied at different moments")
	if f.Severity != check.Warning {
		t.Errorf("severity %s", f.Severity)
	}
}

// A branch page of a later transaction refers to a page that did not exist when the meta page was copied.
func TestPageOfALaterTransaction(t *testing.T) {
	s := sound()
	s.Entries, s.Value = 500, 200
	dirs := s.Write(t, t.TempDir())
	b, err := os.ReadFile(dbOf(dirs[1]))
	if err != nil {
		t.Fatal(err)
	}
	h := dirInput(t, dirs[1]).Members[0].DB.Handle
	size, next := h.PageSize(), h.Meta().HighWater
	for id := uint64(2); id < next; id++ {
		p, err := h.Page(id)
		if err != nil {
			t.Fatal(err)
		}
		if p.Type != "branch" {
			continue
		}
		const header, element, child = 16, 16, 8
		at := int(id)*size + header + (p.Count-1)*element + child
		leaf := binary.LittleEndian.Uint64(b[at:])
		page := append([]byte(nil), b[int(leaf)*size:int(leaf+1)*size]...)
		binary.LittleEndian.PutUint64(page, next)
		copy(b[int(next)*size:], page)
		binary.LittleEndian.PutUint64(b[at:], next)
		break
	}
	if err := os.WriteFile(dbOf(dirs[1]), b, 0o600); err != nil {
		t.Fatal(err)
	}
	f := wantFinding(t, dirInput(t, dirs...), "X05", []string{"node2"})
	if len(f.Evidence) != 2 || f.Evidence[1].Field != "page of a later transaction" {
		t.Errorf("%+v", f.Evidence)
	}
	// The same reference to a page that was never written is damage to one page.
	clear(b[int(next)*size : int(next+1)*size])
	if err := os.WriteFile(dbOf(dirs[1]), b, 0o600); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, dirInput(t, dirs...), "X05", check.Holds)
}

// TestSnapFolderCopiedBeforeTheLog: the record of a raft snapshot is in the log, its file and its effects on the
// database are not. That is a copy of a running member; a server starts on it.
func TestSnapFolderCopiedBeforeTheLog(t *testing.T) {
	written := func(version string) string {
		s := clustertest.NewScript(version)
		for i := range 20 {
			s.Add(clustertest.As("", 0, clustertest.PutRequest(fmt.Sprint("k", i), "v", 0)))
		}
		s.Of[1] = clustertest.ScriptMember{AppliedUntil: 10, SnapshotTaken: 15}
		return s.Write(t, t.TempDir())[1]
	}
	remove := func(dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
		if err != nil || len(files) != 1 || os.Remove(files[0]) != nil {
			t.Fatal(files, err)
		}
	}
	for name, c := range map[string]struct {
		version   string
		file, run bool
		x05, s02  check.Outcome
	}{
		"copied while it ran":             {"3.5.0", false, true, check.Violated, check.Holds},
		"the folder was put back":         {"3.5.0", false, false, check.Holds, check.Holds},
		"the database was put back":       {"3.5.0", true, true, check.Holds, check.Violated},
		"and the server stopped in order": {"3.5.0", true, false, check.Holds, check.Violated},
		"a server that uses no such file": {"3.7.0", false, true, check.Holds, check.Violated},
	} {
		dir := written(c.version)
		if !c.file {
			remove(dir)
		}
		if c.run {
			notStopped(t, dir)
		}
		in := dirInput(t, dir)
		t.Log(name)
		wantOutcome(t, in, "X05", c.x05)
		wantOutcome(t, in, "S02", c.s02)
	}
}

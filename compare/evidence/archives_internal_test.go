package evidence

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestSourceInsideArchive: ARCHIVE#PATH names a source inside a file, if no path has that name.
func TestSourceInsideArchive(t *testing.T) {
	dir := tree(t, "a.tgz", "b#c", "folder/")
	in := func(name string) string { return filepath.Join(dir, name) }
	for where, want := range map[string][2]string{
		in("a.tgz"):          {in("a.tgz"), ""},
		in("a.tgz#n1"):       {in("a.tgz"), "n1"},
		in("a.tgz#d/n1"):     {in("a.tgz"), "d/n1"},
		in("a.tgz#../x"):     {in("a.tgz#../x"), ""},
		in("a.tgz#/x"):       {in("a.tgz#/x"), ""},
		in("b#c"):            {in("b#c"), ""},
		in("folder#n1"):      {in("folder#n1"), ""},
		in("none.tgz#n1"):    {in("none.tgz#n1"), ""},
		"#n1":                {"#n1", ""},
		in("a.tgz") + "#x#y": {in("a.tgz#x#y"), ""},
	} {
		if path, inside := within(where); path != want[0] || filepath.ToSlash(inside) != want[1] {
			t.Errorf("%s: %q, %q, want %q", where, path, inside, want)
		}
	}
}

// TestUnchangedSet: the error names the source, or the archive, that changed.
func TestUnchangedSet(t *testing.T) {
	dir := tree(t, "member/snap/db", "a.tgz")
	l, err := detect(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	man, err := listFiles(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := stamp(filepath.Join(dir, "a.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Set{Members: []*Member{{Source: &Source{Name: "n0"}}, {Source: &Source{Name: "n1", Manifest: man}}},
		archives: []File{archive}}
	if err := s.Unchanged(t.Context()); err != nil {
		t.Error(err)
	}
	s.Members = s.Members[:1]
	if err := os.Chtimes(archive.Path, time.Time{}, time.Unix(9, 0)); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if err := s.Unchanged(t.Context()); !errors.As(err, &changed) || changed.File != archive.Path {
		t.Errorf("%v", err)
	}
	if err := os.Remove(archive.Path); err != nil {
		t.Fatal(err)
	}
	if err := s.Unchanged(t.Context()); !errors.As(err, &changed) {
		t.Errorf("an archive that is gone: %v", err)
	}
	s = &Set{Members: []*Member{{Source: &Source{Name: "n1", Manifest: man}}}}
	if err := s.Unchanged(t.Context()); !errors.As(err, &changed) || changed.Source != "n1" || changed.File != "a.tgz" {
		t.Errorf("%v", err)
	}
	if _, err := stamp(archive.Path); err == nil {
		t.Error("a file that is gone has a stamp")
	}
}

// TestPagesAtTheEnd: a page is recognized by its header, also where a file ends after it.
func TestPagesAtTheEnd(t *testing.T) {
	for size, want := range map[int]bool{3*4096 + 16: true, 3*4096 + 15: false, 4 * 4096: true} {
		b := make([]byte, size)
		if size >= 3*4096+10 {
			binary.LittleEndian.PutUint64(b[3*4096:], 3)
			b[3*4096+8] = 2
		}
		p := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hasBoltPages(p, int64(size)); got != want {
			t.Errorf("file of %d bytes: %t", size, got)
		}
		if got := IsDatabaseHead(b); got != (size == 4*4096) {
			t.Errorf("head of %d bytes: %t", size, got)
		}
	}
	if !hasBoltPages(filepath.Join(t.TempDir(), "none"), 9) {
		t.Error("a file that cannot be read is reported when it is opened")
	}
}

// TestConfStateIsCut: the lists of a stored configuration are bounded too, and the facts keep theirs.
func TestConfStateIsCut(t *testing.T) {
	cs := &dumpdb.ConfState{Voters: make([]dumpdb.ID, maxInList+1), Learners: make([]dumpdb.ID, maxInList+2),
		VotersOutgoing: make([]dumpdb.ID, maxInList+3), LearnersNext: make([]dumpdb.ID, maxInList+4)}
	b, err := json.Marshal(Facts{DB: &DBFacts{ConfState: cs}})
	if err != nil {
		t.Fatal(err)
	}
	var got Facts
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if c := got.DB.ConfState; got.Omitted["db.confState"] != 10 || len(c.Voters) != maxInList ||
		len(c.Learners) != maxInList || len(c.VotersOutgoing) != maxInList || len(c.LearnersNext) != maxInList {
		t.Errorf("%v", got.Omitted)
	}
	if len(cs.Voters) != maxInList+1 || len(cs.LearnersNext) != maxInList+4 {
		t.Error("the facts themselves changed")
	}
}

// TestNothingReadable: the error has the problem of each part.
func TestNothingReadable(t *testing.T) {
	m := &Member{Source: &Source{Where: "/d"}}
	m.loading().problem("wal", "/d/wal", os.ErrPermission)
	m.loading().problem("db", "/d/db", os.ErrClosed)
	err := m.loading().nothing()
	var se *SourceError
	if !errors.As(err, &se) || se.Where != "/d" || se.Found != "nothing readable" ||
		!errors.Is(err, os.ErrPermission) || !errors.Is(err, os.ErrClosed) || m.Problems[0] != (Problem{Part: "wal", File: "wal", Err: os.ErrPermission}) {
		t.Errorf("%v", err)
	}
	if want := ": wal: permission denied; db: file already closed"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%q, want it on one line", err)
	}
}

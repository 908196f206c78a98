package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func walOf(dir string) string { return filepath.Join(dir, "member", "wal") }

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(walOf(dir), "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	return names
}

func removed(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.Remove(n); err != nil {
			t.Fatal(err)
		}
	}
}

// inSegments writes the set with segments of that size, as a server built with another segment size does.
func inSegments(t *testing.T, s clustertest.Synth, size int64) []string {
	t.Helper()
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = size
	dirs := s.Write(t, t.TempDir())
	wal.SegmentSizeBytes = old
	for _, d := range dirs {
		tmp, err := filepath.Glob(filepath.Join(walOf(d), "*.tmp"))
		if err != nil {
			t.Fatal(err)
		}
		removed(t, tmp...)
	}
	return dirs
}

func many() clustertest.Synth {
	s := sound()
	s.Entries, s.Value = 380, 100
	return s
}

func TestLastSegmentMissing(t *testing.T) {
	dirs := inSegments(t, many(), 16<<10)
	names := segmentsOf(t, dirs[1])
	removed(t, names[len(names)-1])
	in := dirInput(t, dirs...)
	f := wantFinding(t, in, "W03", []string{"node2"}, "missing-segment", "was closed", "node1 and node3 hold them")
	if f.Class != "wal-damage" || f.At.Index != in.Members[1].LastIndex()+1 {
		t.Errorf("%s at %d", f.Class, f.At.Index)
	}
	// The log alone tells it where it has two segments left at least.
	wantFinding(t, dirInput(t, dirs[1]), "W03", []string{"node2"}, "was closed")
}

func TestSoundLastSegment(t *testing.T) {
	dirs := inSegments(t, many(), 16<<10)
	wantOutcome(t, dirInput(t, dirs...), "W03", check.Holds)
}

// A server that dies while it replaces a full segment leaves a closed one, and a database that does not reach beyond
// it.
func TestDiedWhileItClosedASegment(t *testing.T) {
	s := sound()
	s.Entries = 97 // with the publish entries two appends, each of which fills a segment
	dirs := inSegments(t, s, 4<<10)
	names := segmentsOf(t, dirs[1])
	removed(t, names[len(names)-1])
	in := dirInput(t, dirs...)
	m := in.Members[1]
	if last := m.WAL.Summary.Segments[len(names)-2]; last.End != "eof" || last.LastEntry != m.ConsistentIndex() {
		t.Fatalf("the last segment ends with %s at %d, the database has applied %d", last.End, last.LastEntry,
			m.ConsistentIndex())
	}
	wantOutcome(t, in, "W03", check.Holds)
	wantOutcome(t, in, "D04", check.Holds)
}

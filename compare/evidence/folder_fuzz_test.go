package evidence_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// FuzzFolder reads a data dir that is made of any bytes: log, database, snapshots and whatever else lies there. Opening
// it never panics and changes nothing, and what it returns agrees with itself.
func FuzzFolder(f *testing.F) {
	for _, s := range clustertest.BytesSeeds(f) {
		f.Add(s)
	}
	root := f.TempDir() // one per worker
	f.Fuzz(func(t *testing.T, script []byte) {
		dir := filepath.Join(root, "n")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		clustertest.WriteBytes(t, dir, script)
		before, err := evidencetest.TreeHash(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := evidence.Open(context.Background(), []evidence.Spec{{Where: dir}},
			evidence.Options{Hash: true, Deep: true})
		if err == nil {
			for _, m := range s.Members {
				agrees(t, m)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if after, err := evidencetest.TreeHash(dir); err != nil || after != before {
			t.Errorf("the data dir changed: %v", err)
		}
	})
}

// agrees checks what must hold for the facts of any member.
func agrees(t *testing.T, m *evidence.Member) {
	t.Helper()
	ms := &m.Membership
	for name, ids := range map[string]int{"voters": len(ms.Voters), "learners": len(ms.Learners),
		"removed": len(ms.Removed)} {
		if ids > 1<<20 {
			t.Errorf("%d %s", ids, name)
		}
	}
	for _, id := range ms.Voters {
		if slices.Contains(ms.Learners, id) {
			t.Errorf("%v is voter and learner", id)
		}
	}
	if m.AppliedMin > m.AppliedMax {
		t.Errorf("applied from %d to %d", m.AppliedMin, m.AppliedMax)
	}
	s := &m.WAL.Summary
	if s.FirstIndex > s.LastIndex {
		t.Errorf("a log from %d to %d", s.FirstIndex, s.LastIndex)
	}
	last := uint64(0)
	for _, c := range m.WAL.Conf {
		if c.Index <= last {
			t.Errorf("conf change %d after %d", c.Index, last)
		}
		last = c.Index
	}
	if len(m.Source.Manifest.Digest()) != 64 && len(m.Source.Manifest.Unreadable) == 0 {
		t.Errorf("digest %q", m.Source.Manifest.Digest())
	}
}

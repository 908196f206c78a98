package surgery_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// metaOf is bucket meta of a database.
func metaOf(t *testing.T, path string) dumpdb.MetaBucket {
	t.Helper()
	db, err := dumpdb.Open(path)
	ok(t, err)
	defer db.Close()
	m, err := db.MetaBucket()
	ok(t, err)
	return m
}

// TestIndexOverEmptyEntries: the index may move over entries that change nothing, in both directions, together with the
// term if the database has one. What no log shows needs consent.
func TestIndexOverEmptyEntries(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Member(0xa1, false, true)
	h.Request(2, 2, nil)
	h.Put(2, 3, clustertest.RequestID(0xa1, 1000, 3), "k", "v", true)
	h.Request(3, 4, nil)
	h.Request(4, 5, nil)
	h.Request(5, 6, nil)
	h.Put(5, 7, clustertest.RequestID(0xa1, 1000, 7), "k", "w", false)
	h.Put(5, 8, clustertest.RequestID(0xa1, 1000, 8), "k", "x", false)
	h.State(5, 0xa1, 8)
	dir := h.Close(5, 4)
	evidencetest.Unchanged(t, dir)
	noTerm := withEdits(t, dir, datadir.DropBucketKeys("meta", []byte("term")))
	set := func(n uint64) surgery.Meta { return surgery.Meta{ConsistentIndex: &n} }
	for _, c := range []struct {
		to, term uint64
		note     string
	}{{3, 2, "nothing is changed by entries 4 to 5"}, {4, 3, "nothing is changed by entry 5"},
		{6, 5, "nothing is changed by entry 6"}} {
		out, r, err := repair(t, set(c.to), dir, nil)
		ok(t, err)
		if m := metaOf(t, dbOf(out)); *m.ConsistentIndex != c.to || m.Term == nil || *m.Term != c.term ||
			!slices.Contains(r.Notes, c.note) || len(r.Did) != 2 || len(r.GivesUp) != 0 {
			t.Errorf("to %d: %+v, notes %q, did %q, gives up %q", c.to, m, r.Notes, r.Did, r.GivesUp)
		}
		out, r, err = repair(t, set(c.to), noTerm, nil)
		ok(t, err)
		if m := metaOf(t, dbOf(out)); m.Term != nil || *m.ConsistentIndex != c.to || len(r.Did) != 1 {
			t.Errorf("to %d, without a term: %+v, did %q", c.to, m, r.Did)
		}
	}
	refuses(t, set(2), dir, nil, surgery.AcceptDivergence, "of entries 3 to 5, 1 change something and the database "+
		"shows it, first 2/3 put; with the index lowered they are applied twice")
	refuses(t, set(8), dir, nil, surgery.AcceptDivergence, "of entries 6 to 8, 2 change something, first 5/7 put; "+
		"with the index raised they are never applied here")
	refuses(t, set(9), dir, nil, "", "the log ends at 8")
	refuses(t, set(4), dbOf(dir), nil, surgery.AcceptDivergence, "only 0 of the 1 entries between 5 and 5")
	refuses(t, set(9), dbOf(dir), []string{dir}, surgery.AcceptDivergence, "only 3 of the 4 entries between 6 and 9")
	out, r, err := repair(t, set(4), dbOf(dir), nil, surgery.AcceptDivergence)
	ok(t, err)
	if m := metaOf(t, out); m.Term == nil || *m.Term != 4 || *m.ConsistentIndex != 4 || len(r.Did) != 1 {
		t.Errorf("without a log the term stays: %+v, did %q", m, r.Did)
	}
	_, r, err = repair(t, set(4), dbOf(dir), []string{dir})
	if err != nil || !slices.Contains(r.Did, "meta/term is set to 3, that of entry 4") {
		t.Errorf("with a log of another source: %v, %+v", err, r)
	}
}

// TestOldestIndex: a server starts on a database at its newest raft snapshot, and on none before it.
func TestOldestIndex(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Member(0xa1, false, true)
	for i := uint64(2); i <= 8; i++ {
		h.Request(2, i, nil)
	}
	h.State(2, 0xa1, 8)
	h.Snapshot(2, 5, 0xa1)
	dir := h.Close(8, 2)
	evidencetest.Unchanged(t, dir)
	set := func(n uint64) surgery.Meta { return surgery.Meta{ConsistentIndex: &n} }
	if _, _, err := repair(t, set(5), dir, nil); err != nil {
		t.Errorf("at the raft snapshot: %v", err)
	}
	refuses(t, set(4), dir, nil, "", "the newest raft snapshot is at 5")
}

// TestCopiedParts: a result has what a server reads, and nothing else of the source: no left-overs, no foreign files.
func TestCopiedParts(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Member(0xa1, false, true)
	h.Request(2, 2, nil)
	h.State(2, 0xa1, 2)
	h.Snapshot(2, 2, 0xa1)
	dir := h.Close(2, 2)
	wal, snap := filepath.Join(dir, "member", "wal"), filepath.Join(dir, "member", "snap")
	const log, file = "0000000000000000-0000000000000000.wal", "0000000000000002-0000000000000002.snap"
	for _, path := range []string{filepath.Join(wal, "0.tmp"), filepath.Join(wal, log+".broken"),
		filepath.Join(snap, "0000000000000002-0000000000000001.snap.broken"), filepath.Join(snap, "tmp123"),
		filepath.Join(snap, "0000000000000002.snap.db"), filepath.Join(snap, "db.tmp"), filepath.Join(dir, "notes")} {
		ok(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	for _, path := range []string{filepath.Join(wal, "0000000000000009-0000000000000009.wal.old"),
		filepath.Join(snap, "0000000000000009-0000000000000009.snap")} {
		ok(t, os.Mkdir(path, 0o700))
	}
	evidencetest.Unchanged(t, dir)
	nine := uint64(9)
	const whole = "member member/snap member/snap/" + file + " member/snap/0000000000000002.snap.db member/snap/db " +
		"member/wal member/wal/" + log
	for name, c := range map[string]struct {
		change surgery.Change
		source string
		want   string
	}{
		"a data dir": {surgery.Meta{AuthRevision: &nine}, dir, whole},
		"a database": {surgery.Meta{AuthRevision: &nine}, dbOf(dir), ""},
		"made again": {surgery.DB{}, dir, whole},
	} {
		out, r, err := repair(t, c.change, c.source, nil, surgery.AcceptDivergence)
		ok(t, err)
		var got []string
		bytes := int64(0)
		ok(t, filepath.Walk(out, func(path string, info os.FileInfo, err error) error {
			if rel, _ := filepath.Rel(out, path); err == nil && rel != "." {
				got = append(got, rel)
			}
			if err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
			return err
		}))
		if strings.Join(got, " ") != c.want || r.Bytes != bytes {
			t.Errorf("%s: %q, %d bytes, said to be %d", name, got, bytes, r.Bytes)
		}
	}
}

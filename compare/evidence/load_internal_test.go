package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestIdleEntries: entries right above the commit index are idle up to the first that writes a key or does not decode.
// A lease revoke is idle, since only the key space shows what it deletes.
func TestIdleEntries(t *testing.T) {
	const a1 = 0xa1
	grant := &etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 60}}
	put := clustertest.PutRequest("k", "v", 0)
	for name, c := range map[string]struct {
		commit uint64
		after  []*etcdserverpb.InternalRaftRequest
		want   uint64
	}{
		"nothing above the commit index": {3, nil, 0},
		"a grant":                        {3, []*etcdserverpb.InternalRaftRequest{grant}, 4},
		"a revoke and a grant": {3, []*etcdserverpb.InternalRaftRequest{clustertest.RevokeRequest(7), grant},
			5},
		"a put":             {3, []*etcdserverpb.InternalRaftRequest{put, grant}, 0},
		"a grant and a put": {3, []*etcdserverpb.InternalRaftRequest{grant, put, grant}, 4},
		"a put that is committed": {4, []*etcdserverpb.InternalRaftRequest{put, grant},
			5},
		"a grant that is committed": {4, []*etcdserverpb.InternalRaftRequest{grant}, 0},
	} {
		h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
		h.Found(false, a1)
		h.Request(2, 2, nil)
		h.Request(2, 3, grant)
		for i, r := range c.after {
			h.Request(2, 4+uint64(i), r)
		}
		h.State(2, a1, c.commit)
		m, err := loadDir(t.Context(), t, h.Close(3, 2), Options{})
		if err != nil || m.WAL.IdleAfter(c.commit) != c.want {
			t.Errorf("%s: idle %v, want up to %d, %v", name, m.WAL.Idle, c.want, err)
		}
	}
}

// TestIdleBehindDamage: entries behind a damaged place are looked at too, and do not continue what is before it.
func TestIdleBehindDamage(t *testing.T) {
	const a1 = 0xa1
	grant := &etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 60}}
	h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
	h.Found(false, a1)
	h.Request(2, 2, nil)
	h.Request(2, 3, nil)
	h.Request(2, 4, grant)
	h.Request(2, 5, clustertest.PutRequest("k", "damaged", 0))
	h.Request(2, 6, grant)
	h.State(2, a1, 3)
	dir := h.Close(3, 2)
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], bytes.Replace(text, []byte("damaged"), []byte("damaGed"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := loadDir(t.Context(), t, dir, Options{})
	if err != nil || m.WAL.IdleAfter(3) != 4 || m.WAL.IdleAfter(5) != 6 {
		t.Errorf("idle %v, %v; want entry 4 and entry 6", m.WAL.Idle, err)
	}
}

// TestTermsOfALog: one term has one range, whether or not a received snapshot leaves a gap in it.
func TestTermsOfALog(t *testing.T) {
	const a1 = 0xa1
	h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
	h.Found(false, a1)
	h.Request(2, 2, nil)
	h.State(2, a1, 2)
	h.Snapshot(2, 20, a1)
	h.Request(2, 21, nil)
	h.Request(3, 22, nil)
	h.State(3, a1, 22)
	dir := h.Close(22, 3)
	for _, several := range []bool{false, true} {
		m, err := loadDir(t.Context(), t, dir, Options{several: several, sources: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.WAL.LastByTerm, []TermEnd{{1, 1, 1}, {2, 2, 21}, {3, 22, 22}}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if (m.WAL.Sums != nil) != several {
			t.Errorf("one of several sources: %t, sums %v", several, m.WAL.Sums)
		}
		if several && m.WAL.Sums.Blocks()[0].Entries()+m.WAL.Sums.Blocks()[1].Entries() != 4 {
			t.Errorf("sums %v", m.WAL.Sums.Blocks())
		}
	}
}

// TestTooLargeEntry: a log with an entry that is too large to be decoded is not examined, but a listing shows it.
func TestTooLargeEntry(t *testing.T) {
	const a1 = 0xa1
	large := &etcdserverpb.InternalRaftRequest{Txn: &etcdserverpb.TxnRequest{}}
	one := &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestRange{
		RequestRange: &etcdserverpb.RangeRequest{}}}
	for range dumplog.MaxParts + 1 {
		large.Txn.Success = append(large.Txn.Success, one)
	}
	h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
	h.Found(false, a1)
	h.Request(2, 2, large)
	h.Request(2, 3, nil)
	h.State(2, a1, 3)
	dir := h.Close(3, 2)
	var tooLarge *dumplog.TooLargeError
	m, err := loadDir(t.Context(), t, dir, Options{})
	if err != nil || m.HasWAL() || len(m.Problems) != 1 || m.Problems[0].Part != "wal" ||
		!errors.As(m.Problems[0].Err, &tooLarge) {
		t.Errorf("%v, log %t, problems %+v", err, m.HasWAL(), m.Problems)
	}
	m, err = loadDir(t.Context(), t, dir, Options{Listing: true})
	if err != nil || !m.HasWAL() || len(m.Problems) > 0 || m.WAL.Summary.LastIndex != 3 {
		t.Errorf("a listing: %v, log %t, problems %+v", err, m.HasWAL(), m.Problems)
	}
}

// TestTrailerOfADigest: the sha256 at the end of a backup is compared with the digest of the manifest, and computed
// without one.
func TestTrailerOfADigest(t *testing.T) {
	db, err := os.ReadFile(filepath.Join(handDir(t), "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(db)
	changed := append(slices.Clone(sum[:]), 0)[:len(sum)]
	changed[3] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"its own":     {slices.Concat(db, sum[:]), "match"},
		"another":     {slices.Concat(db, changed), "mismatch"},
		"none":        {db, ""},
		"of no pages": {slices.Concat(bytes.Repeat([]byte("noise"), 4096), sum[:]), "mismatch"},
	} {
		for _, hash := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "b.db")
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), []Spec{{Where: path, Backup: c.want != ""}}, Options{Hash: hash, Deep: true})
			if err != nil {
				t.Fatal(err)
			}
			d := s.Members[0].DB
			if d.Trailer.State != c.want || (d.Size == int64(len(c.content))) != (c.want != "") {
				t.Errorf("%s, hashed %t: %+v, %d bytes of %d", name, hash, d.Trailer, d.Size, len(c.content))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSourceWithoutAnything: a source of which nothing can be read is named with the reason, and the others are read.
func TestSourceWithoutAnything(t *testing.T) {
	good, bad := handDir(t), tree(t, "member/wal/")
	s, err := Open(t.Context(), []Spec{{Name: "bad", Where: bad}, {Name: "good", Where: good}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var se *SourceError
	if len(s.Members) != 1 || s.Members[0].Label() != "good" || len(s.Failed) != 1 || s.Failed[0].Spec.Name != "bad" ||
		!errors.As(s.Failed[0].Err, &se) || se.Found != "nothing readable" || se.Err == nil {
		t.Errorf("members %d, failed %+v", len(s.Members), s.Failed)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s, err := Open(t.Context(), []Spec{{Where: bad}}, Options{}); s != nil || !errors.As(err, &se) {
		t.Errorf("alone: %v, %v", s, err)
	}
	m := &Member{Source: &Source{}}
	m.loading().snaps(layout{snapFile: filepath.Join(good, "none.snap")}, Options{})
	if len(m.Problems) != 1 || m.Problems[0].Part != "snap" || m.Problems[0].File != "none.snap" || m.HasSnap() ||
		!errors.Is(m.Problems[0].Err, fs.ErrNotExist) {
		t.Errorf("a .snap file that is gone: %+v", m.Problems)
	}
}

// TestFilesThatAreNotRead: a file whose state cannot be read is unreadable, one that is gone gives no sample, and
// sources without a byte have no key for digests.
func TestFilesThatAreNotRead(t *testing.T) {
	li := &lister{ctx: t.Context(), m: &Manifest{}}
	li.add("/d/db", "member/snap/db", nil, fs.ErrPermission)
	if !slices.Equal(unreadPaths(li.m), []string{"/d/db"}) || len(li.m.Files) > 0 {
		t.Errorf("unreadable %v, files %v", li.m.Unreadable, li.m.Files)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	li = &lister{ctx: ended, m: &Manifest{}}
	if err := li.link(filepath.Join(t.TempDir(), "none"), "member/snap/db"); !errors.Is(err, context.Canceled) ||
		len(li.m.Files) != 1 {
		t.Errorf("a link, and the context has ended: %v, files %v", err, li.m.Files)
	}
	path := filepath.Join(tree(t, "f"), "f")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	man := &Manifest{Files: []File{{Path: "none", Size: 5, at: path + "-"}, {Path: "late", at: path + "-"}},
		hashing: newHashing(t.Context())}
	if b, err := sampleOf(t.Context(), man); b != nil || err != nil {
		t.Errorf("a sample of nothing: %x, %v", b, err)
	}
	if k, err := redactKey(t.Context(), man, man); k != nil || err != nil {
		t.Errorf("a key of nothing: %v, %v", k, err)
	}
	whole := &Manifest{Files: []File{{Path: "f", Size: 7, at: path}}}
	k, err := redactKey(t.Context(), man, whole)
	alone, err2 := redactKey(t.Context(), whole)
	if err := errors.Join(err, err2); err != nil || k == nil || k.Digest([]byte("v")) != alone.Digest([]byte("v")) {
		t.Errorf("a source without a byte changes the key: %v", err)
	}
	man.unread("none", fs.ErrNotExist) // found when it was opened
	if man.Digest(); !slices.Equal(unreadPaths(man), []string{"none", "late"}) {
		t.Errorf("unreadable %v", man.Unreadable)
	}
}

// TestPageHeaders: a page is known by its whole header only.
func TestPageHeaders(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(nil, 5)
	head = append(head, 2, 0, 0, 0, 0, 0, 0, 0)
	at := append(make([]byte, 5*4096), head...)
	for cut, want := range map[int]bool{0: true, 1: false, 16: false} {
		if got := isBoltPage(bytes.NewReader(at[:len(at)-cut]), 5, 4096); got != want {
			t.Errorf("without its last %d bytes: %t", cut, got)
		}
	}
}

// TestBackupsInSubfolders: a folder, as one that an archive unpacks to, may have its backups in subfolders; next to
// data dirs only those at its top count.
func TestBackupsInSubfolders(t *testing.T) {
	for want, paths := range map[string][]string{"p/x.db": {"p/x.db", "p/note"}, "p/q/x.db": {"p/q/x.db"},
		"n1": {"n1/member/", "p/x.db"}, "": {"p/q/r/x.db"}} {
		dir := tree(t, paths...)
		l, err := detect(dir, "")
		if want == "" {
			if err == nil {
				t.Errorf("%v: %+v", paths, l.nested)
			}
			continue
		}
		if err != nil || len(l.nested) != 1 || l.nested[0].Where != filepath.Join(dir, filepath.FromSlash(want)) {
			t.Errorf("%v: %+v, %v", paths, l.nested, err)
		}
	}
}

// TestFoldersWithoutOrder: data dirs are searched in folders with few entries, and links to folders are not followed.
func TestFoldersWithoutOrder(t *testing.T) {
	dir := tree(t, "n1/etcd/member/", "n1/note")
	elsewhere := tree(t, "member/")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "n1", "linked")); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]int{{mostEntries - 3, 1}, {mostEntries - 2, 0}} { // files are only added
		n, want := c[0], c[1]
		for i := range n {
			if err := os.WriteFile(filepath.Join(dir, "n1", "f"+string(rune('a'+i%26))+string(rune('a'+i/26))), nil,
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := deeper(filepath.Join(dir, "n1"), 1, isDataDirEntry); len(got) != want || want > 0 &&
			got[0].Where != filepath.Join(dir, "n1", "etcd") {
			t.Errorf("with %d other entries: %+v", n+2, got)
		}
	}
	if got := deeper(filepath.Join(dir, "none"), 1, isDataDirEntry); got != nil {
		t.Errorf("no folder: %+v", got)
	}
}

package datadir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

func smallDB(t *testing.T, edits ...Edit) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 8}.WriteDB(t, path)
	must(t, EditNew(path, edits...))
	return path
}

func smallDir() Dir {
	return Dir{MemberID: 1, ClusterID: 2, Term: 4, Index: 20, Voters: []uint64{1}, ClusterVersion: "3.5.0",
		Members: []Member{{ID: 1, Name: "one", PeerURLs: []string{"http://a:1"}, ClientURLs: []string{"http://a:2"}}}}
}

// TestNoBackup: a backup that cannot be written completely has no sum.
func TestNoBackup(t *testing.T) {
	src, dir := smallDB(t), t.TempDir()
	taken := makeFile(t, filepath.Join(dir, "taken"))
	shrink := ctxtest.Asked{Context: t.Context(), Do: func() error { return os.Truncate(src, 512) }}
	for _, c := range []struct {
		name      string
		ctx       context.Context
		path, src string
		want      error
	}{
		{"no source", t.Context(), "none", filepath.Join(dir, "none.db"), fs.ErrNotExist},
		{"over a file", t.Context(), "taken", src, fs.ErrExist},
		{"an end", ctxtest.EndingAfter(0), "ended", src, context.Canceled},
		{"a source that is cut", shrink, "cut", src, io.ErrUnexpectedEOF},
	} {
		if sum, err := writeBackup(c.ctx, filepath.Join(dir, c.path), c.src); sum != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %x, %v", c.name, sum, err)
		}
	}
	if b, err := os.ReadFile(taken); err != nil || string(b) != "x" {
		t.Errorf("the file became %q, %v", b, err)
	}
}

// TestNotCopied: a database that cannot be read, or whose check ends early, is not taken.
func TestNotCopied(t *testing.T) {
	src, dir := smallDB(t), t.TempDir()
	if err := copyFile(t.Context(), filepath.Join(dir, "a"), filepath.Join(dir, "none"), nil); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("no source: %v", err)
	}
	if err := sound(ctxtest.EndingAfter(0), src); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that ends: %v", err)
	}
}

// TestNotWritten: a data dir of which a part cannot be written does not get its name.
func TestNotWritten(t *testing.T) {
	src, root := smallDB(t), t.TempDir()
	for name, c := range map[string]struct {
		db   DBSource
		want error
	}{
		"taken": {func(ctx context.Context, path string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "taken"), 0o700), copyDB(ctx, path, src, nil, nil))
		}, ErrExists},
		"lost": {func(_ context.Context, path string) error {
			return os.RemoveAll(filepath.Join(filepath.Dir(path), "..", "wal"))
		}, fs.ErrNotExist},
	} {
		dst := filepath.Join(root, name)
		res, err := Write(t.Context(), dst, smallDir(), c.db)
		if !errors.Is(err, c.want) || res.Path != "" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if _, err := os.Lstat(filepath.Join(dst, "member")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it is there (%v)", name, err)
		}
	}
	must(t, os.Mkdir(filepath.Join(root, "member"), 0o700))
	if _, err := writeDir(t.Context(), root, smallDir(), CopyOf(src)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a folder: %v", err)
	}
}

// TestNoSet: a set of which one dir cannot be written does not get its name.
func TestNoSet(t *testing.T) {
	src, bad := smallDB(t), smallDir()
	bad.MemberID = 0
	for name, c := range map[string]struct {
		set  []NamedDir
		src  string
		want string
	}{
		"no source":     {[]NamedDir{{"a", smallDir()}}, src + "-none", "no such file"},
		"a name twice":  {[]NamedDir{{"a", smallDir()}, {"a", smallDir()}}, src, "file exists"},
		"no such start": {[]NamedDir{{"a", smallDir()}, {"b", bad}}, src, "writing the dir of b: member ID 0"},
	} {
		dst := filepath.Join(t.TempDir(), "set")
		res, err := WriteSet(t.Context(), dst, c.set, c.src, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || res.Path != "" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it is there (%v)", name, err)
		}
	}
}

// TestEditFails: an edit that cannot write says so.
func TestEditFails(t *testing.T) {
	alarm := num(num(nil, 1, 7), 2, 1)
	path := smallDB(t, PutBucketKey("alarm", alarm, nil), PutBucketKey("lease", []byte("a"), nil),
		func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketRemoved) })
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	defer func() { _ = db.Close() }() // only read
	for name, edit := range map[string]Edit{
		"a key": PutBucketKey("meta", []byte("a"), nil), "members": SetMembers(nil, nil),
		"a whole bucket": DropBucketKeys("lease"), "some keys": DropBucketKeys("lease", []byte("a")),
		"alarms": ClearAlarm(0, 0),
	} {
		if err := db.View(edit); !errors.Is(err, bolt.ErrTxNotWritable) { //nolint:staticcheck // as in edit.go
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, b := range [][]byte{{0x08}, {0x0a, 0x01, 0x01}, append(alarm[:2:2], 0x12, 0x00)} {
		if member, kind, ok := decodeAlarm(b); ok || member != 0 || kind != 0 {
			t.Errorf("%x is an alarm %d of member %d", b, kind, member)
		}
	}
}

// failing is a writer that has no room.
type failing struct{ calls int }

// Write fails.
func (w *failing) Write([]byte) (int, error) {
	w.calls++
	return 0, io.ErrShortWrite
}

// TestLogWriterEnds: after the first error nothing more is added, and the error stays.
func TestLogWriterEnds(t *testing.T) {
	w := &failing{}
	l := NewLogWriter(w, 0)
	l.Entry(&Entry{Term: 1, Index: 1, Data: make([]byte, 1<<18)})
	chain := l.Chain()
	l.Entry(&Entry{Term: 1, Index: 2, Data: []byte("x")})
	if err := l.Flush(); !errors.Is(err, io.ErrShortWrite) || l.Chain() != chain || w.calls != 1 {
		t.Errorf("%v, chain %x after %x, %d calls", err, l.Chain(), chain, w.calls)
	}
}

// TestPlanEnds: a clone that cannot be planned has no plan.
func TestPlanEnds(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "dir")
	_, err := Write(t.Context(), dst, smallDir(), CopyOf(smallDB(t), SetConsistentIndex(20)))
	must(t, err)
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dst}}, evidence.Options{})
	must(t, err)
	defer func() { _ = set.Close() }() // only read
	m, to := set.Members[0], []Target{{Name: "a", MemberID: 1}}
	keep := CloneOptions{KeepTail: true}
	if plan, err := planClone(t.Context(), m, to, keep); err != nil || len(plan.dirs) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	m.Membership.Voters = nil
	if plan, err := planClone(t.Context(), m, to, keep); plan != nil || err == nil {
		t.Errorf("no voters: %+v, %v", plan, err)
	}
	if plan, err := planClone(t.Context(), threeMembers(), to, keep); plan != nil || err == nil {
		t.Errorf("no database: %+v, %v", plan, err)
	}
}

// TestTailEnds: a log that is no longer read is no log without a tail.
func TestTailEnds(t *testing.T) {
	dirs := clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 8}.Write(t, t.TempDir())
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dirs[0]}}, evidence.Options{})
	must(t, err)
	defer func() { _ = set.Close() }() // only read
	m := set.Members[0]
	if tail, left, err := tailOf(ctxtest.EndingAfter(0), m, 20); tail != nil || left != nil ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%v, %+v, %v", tail, left, err)
	}
	to := []Target{{Name: "a", MemberID: uint64(m.MemberID)}}
	plan, err := planClone(ctxtest.EndingAfter(0), m, to, CloneOptions{KeepTail: true})
	if plan != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestSnapFileIsKnown: what only the .snap file says counts: the term, the client URLs, and the keys that get lost.
func TestSnapFileIsKnown(t *testing.T) {
	d, dst := smallDir(), filepath.Join(t.TempDir(), "dir")
	store, err := v2JSON(&d)
	must(t, err)
	d.V2Store = []byte(strings.Replace(string(store), `"Path":"/1","CreatedIndex":0,"ModifiedIndex":0,`+
		`"ExpireTime":"0001-01-01T00:00:00Z","Value":"","Children":{}`, `"Path":"/1","Children":{"x":`+
		`{"Path":"/1/x","Value":"v"}}`, 1))
	_, err = Write(t.Context(), dst, d, CopyOf(smallDB(t), SetConsistentIndex(20), SetTerm(0), SetMembers(nil, nil)))
	must(t, err, os.RemoveAll(filepath.Join(dst, "member", "wal")))
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dst}}, evidence.Options{})
	must(t, err)
	defer func() { _ = set.Close() }() // only read
	m := set.Members[0]
	if got := memberOf(m, 1); len(got.ClientURLs) != 1 || got.ClientURLs[0] != "http://a:2" {
		t.Errorf("%+v", got)
	}
	if got := memberOf(m, 5); len(got.ClientURLs) != 0 {
		t.Errorf("another member: %+v", got)
	}
	if at, other := termAt(m, 20), termAt(m, 19); at != 4 || other != 0 {
		t.Errorf("term %d at the snapshot, %d below it", at, other)
	}
	plan, err := planClone(t.Context(), m, []Target{{Name: "a", MemberID: 1, ClusterID: 2}}, CloneOptions{})
	must(t, err)
	if notes := strings.Join(plan.notes, "\n"); !strings.Contains(notes, "1 v2 keys in the raft snapshot of") {
		t.Errorf("%q", plan.notes)
	}
}

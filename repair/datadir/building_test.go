package datadir_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestBuilding: what is written below the partial folder gets the final name as a whole, or is removed.
func TestBuilding(t *testing.T) {
	src, dir := synthDB(t, 100), t.TempDir()
	backup := filepath.Join(dir, "backup.db")
	_, err := datadir.WriteBackup(t.Context(), backup, src)
	ok(t, err)
	final := filepath.Join(dir, "above", "new")
	b, err := datadir.Begin(final)
	ok(t, err)
	var busy *refusal.Error
	if _, err := datadir.Begin(final); !errors.As(err, &busy) {
		t.Errorf("a second run: %v", err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{b.Path}, parts...)...) }
	if st, err := os.Stat(b.Path); err != nil || st.Mode() != os.ModeDir|0o700 { // sticky is a folder without its mark
		t.Errorf("the folder is %v (%v)", st.Mode(), err)
	}
	before, err := b.Size()
	ok(t, err)
	ok(t, b.Mkdir(at("a", "b")))
	ok(t, b.Mkdir(at("a", "b")))
	ok(t, b.Write(at("a", "file"), []byte("text")))
	ok(t, b.Copy(t.Context(), at("c", "d", "backup"), backup))
	ok(t, b.CopyDB(t.Context(), at("e", "db"), backup, datadir.SetAuthRevision(77)))
	if err := errors.Join(b.Copy(t.Context(), at("a", "file"), backup)); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if err := b.Copy(t.Context(), at("a", "file", "x"), backup); err == nil {
		t.Error("below a file")
	}
	if err := b.CopyDB(t.Context(), at("a", "file", "x"), backup); err == nil {
		t.Error("below a file")
	}
	if err := b.Copy(t.Context(), at("none"), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Copy(ended, at("late"), backup); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	ok(t, os.Remove(at("late")))
	raw, err := os.ReadFile(backup)
	ok(t, err)
	db, err := os.Stat(at("e", "db"))
	ok(t, err)
	if n, err := b.Size(); err != nil || n != before+4+int64(len(raw))+db.Size() {
		t.Errorf("%d bytes, %v", n, err)
	}
	ok(t, b.Commit())
	b.Abandon() // of nothing
	if got, err := os.ReadFile(filepath.Join(final, "c", "d", "backup")); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("the copy differs: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(final, "a", "file")); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	h, err := dumpdb.Open(filepath.Join(final, "e", "db"))
	ok(t, err)
	defer h.Close()
	if a, err := h.Auth(); err != nil || a.Revision != 77 {
		t.Errorf("%+v, %v", a, err)
	}
	if tr, err := h.Trailer(); err != nil || tr.State != "absent" {
		t.Errorf("%+v, %v", tr, err)
	}
	gone(t, b.Path)
	left, err := os.ReadDir(final)
	if err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := datadir.Begin(final); !errors.Is(err, datadir.ErrExists) {
		t.Errorf("over the result: %v", err)
	}
}

// TestBuildingOfAFile: one file gets the final name and the rest is removed. What somebody else has put there meanwhile
// is not replaced.
func TestBuildingOfAFile(t *testing.T) {
	for _, as := range []string{"file", "folder", "abandoned", "file, taken", "folder, taken"} {
		final := filepath.Join(t.TempDir(), "new")
		b, err := datadir.Begin(final)
		ok(t, err)
		ok(t, b.Write(filepath.Join(b.Path, "one"), []byte("mine")))
		ok(t, b.Write(filepath.Join(b.Path, "two"), []byte("rest")))
		want, taken := "mine", strings.HasSuffix(as, "taken")
		if taken {
			want = "other's"
			ok(t, os.WriteFile(final, []byte(want), 0o600))
		}
		switch {
		case as == "abandoned":
		case strings.HasPrefix(as, "file"):
			err = b.CommitFile("one")
		default:
			err = b.Commit()
		}
		if errors.Is(err, datadir.ErrExists) != taken || err != nil && !taken {
			t.Errorf("%s: %v", as, err)
		}
		b.Abandon()
		gone(t, b.Path)
		got, err := os.ReadFile(final)
		switch as {
		case "abandoned":
			gone(t, final)
		case "folder":
			if got, err := os.ReadFile(filepath.Join(final, "two")); err != nil || string(got) != "rest" {
				t.Errorf("%s: %q, %v", as, got, err)
			}
		default:
			if err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", as, got, err)
			}
		}
	}
}

// small is a database with some buckets.
func small(t *testing.T, fill func(*bolt.Tx) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	ok(t, err)
	ok(t, db.Update(fill))
	ok(t, db.Close())
	return path
}

// TestEditsOfOddDatabases: buckets that are missing, and keys that are no revisions.
func TestEditsOfOddDatabases(t *testing.T) {
	rev := func(main uint64) []byte {
		return append(append(binary.BigEndian.AppendUint64(nil, main), '_'), make([]byte, 8)...)
	}
	with := func(bucket string, rows ...[]byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			for _, r := range rows {
				err = errors.Join(err, b.Put(r, []byte("v")))
			}
			return err
		}
	}
	rows := func(path, bucket string) (out string) {
		db, err := bolt.Open(path, 0o600, nil)
		ok(t, err)
		defer db.Close()
		ok(t, db.View(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(bucket))
			if b == nil {
				out = "none"
				return nil
			}
			return b.ForEach(func(k, _ []byte) error {
				if bucket == "key" {
					k = fmt.Append(nil, binary.BigEndian.Uint64(k))
				}
				out += string(k) + " "
				return nil
			})
		}))
		return out
	}
	both := func(a, b func(*bolt.Tx) error) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error { return errors.Join(a(tx), b(tx)) }
	}
	mark := func(name string, main uint64) func(*bolt.Tx) error {
		return both(with("meta"), func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte(name), rev(main))
		})
	}
	for name, c := range map[string]struct {
		fill         func(*bolt.Tx) error
		edit         datadir.Edit
		bucket, want string
		fails        string
	}{
		"no bucket to empty":   {with("x"), datadir.DropBucketKeys("lease"), "lease", "none", ""},
		"no bucket to drop of": {with("x"), datadir.DropBucketKeys("lease", []byte("a")), "lease", "none", ""},
		"some keys": {with("x", []byte("a"), []byte("b"), []byte("c")),
			datadir.DropBucketKeys("x", []byte("a"), []byte("z"), []byte("c")), "x", "b ", ""},
		"all keys":           {with("x", []byte("a"), []byte("b")), datadir.DropBucketKeys("x"), "x", "", ""},
		"a new bucket":       {with("x"), datadir.PutBucketKey("y", []byte("a"), nil), "y", "a ", ""},
		"no alarms":          {with("x"), datadir.ClearAlarm(0, 0), "alarm", "none", ""},
		"raise an empty one": {with("key"), datadir.BumpRevision(10), "key", "11 ", ""},
		"raise":              {with("key", rev(5), rev(7)), datadir.BumpRevision(1), "key", "5 7 8 ", ""},
		"raise what is marked": {both(with("key", rev(5)), mark("scheduledCompactRev", 20)),
			datadir.BumpRevision(1), "key", "5 21 ", ""},
		"raise what is dropped": {both(with("key", rev(5)), mark("finishedCompactRev", 30)),
			datadir.BumpRevision(1), "key", "5 31 ", ""},
		"an older mark": {both(with("key", rev(5)), mark("finishedCompactRev", 3)),
			datadir.BumpRevision(1), "key", "5 6 ", ""},
		"to the last": {with("key", rev(5)),
			datadir.BumpRevision(1<<63 - 6), "key", "5 9223372036854775807 ", ""},
		"above the last": {with("key", rev(5)),
			datadir.BumpRevision(1<<63 - 5), "key", "5 ", "cannot be raised"},
		"by nothing": {with("key", rev(5)), datadir.BumpRevision(0), "key", "5 ", "cannot be raised by 0"},
		"overflow": {with("key", rev(5)),
			datadir.BumpRevision(1<<64 - 3), "key", "5 ", "cannot be raised"},
		"no bucket key":     {with("x"), datadir.BumpRevision(1), "key", "none", "no bucket key"},
		"mark without keys": {with("x"), datadir.MarkCompacted(), "key", "none", "no bucket key"},
		"no revision":       {with("key", rev(5)[:16]), datadir.BumpRevision(1), "key", "5 ", "is not a revision"},
	} {
		path := small(t, c.fill)
		err := datadir.EditNew(path, c.edit)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if got := rows(path, c.bucket); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	bad := small(t, with("x"))
	ok(t, os.Truncate(bad, 100))
	if err := datadir.EditNew(bad, datadir.MarkCompacted()); err == nil {
		t.Error("no database is edited")
	}
}

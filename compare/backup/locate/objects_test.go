//go:build !lite

package locate_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/objects/objectstest"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// TestObjects finds in object storage what it finds in a folder with the same content, and reads whole objects only
// when they are opened.
func TestObjects(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	write(t, filepath.Join(dir, "etcd", "a.db"), b)
	write(t, filepath.Join(dir, "etcd", "b.db.gz"), packed(t, "gz", b))
	write(t, filepath.Join(dir, "etcd", "deep", "c.zip"), zipped(t, entry{"inner/c.db", b}))
	write(t, filepath.Join(dir, "etcd", "b0.db"), nil) // of which S3 sends no range
	write(t, filepath.Join(dir, "etcd", "note.txt"), []byte("not a backup\n"))
	write(t, filepath.Join(dir, "etcd", "d.db.part"), b)
	write(t, filepath.Join(dir, "chains", "v2", "Full-00000000-00000005-1700000000"), b)
	bucket := objectstest.Serve(t, dir)

	f := find(t, locate.Options{Scratch: t.TempDir()}, bucket.URL("etcd/"))
	same(t, labels(f), labels(find(t, locate.Options{}, filepath.Join(dir, "etcd")))...)
	if len(f.Skipped) != 2 {
		t.Errorf("skipped: %v", f.Skipped)
	}
	zip := int64(len(zipped(t, entry{"inner/c.db", b})))
	if n := bucket.Bytes.Load(); n > zip+4*64<<10+64 {
		t.Errorf("%d bytes were read to find %d backups of %d bytes", n, len(f.Items), len(b))
	}
	for _, it := range f.Items {
		got, packing := content(t, it)
		if it.Label == "b0.db" {
			got = append(got, b...)
		}
		if packing != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %d bytes, %v", it.Label, len(got), packing)
		}
	}
	write(t, filepath.Join(dir, "chains", "v2", "Incr-00000006-00000007-1700000009"), []byte("delta"))
	below := t.TempDir()
	chained, err := locate.Find(t.Context(), []evidence.Spec{{Where: bucket.URL("chains")}},
		locate.Options{Scratch: below})
	ok(t, err)
	c := chained.Items[0].Chain
	if c == nil || len(c.Deltas) != 1 || filepath.Dir(c.Deltas[0].Path) != filepath.Dir(c.Full.Path) ||
		!bytes.Equal(read(t, c.Full.Path), b) || string(read(t, c.Deltas[0].Path)) != "delta" {
		t.Errorf("a chain: %+v", c)
	}
	ok(t, chained.Close())
	if left, err := os.ReadDir(below); err != nil || len(left) > 0 {
		t.Errorf("left in scratch: %v, %v", left, err)
	}
	if f := find(t, locate.Options{Scratch: t.TempDir()}, bucket.URL("chains")); len(f.Items) != 1 ||
		f.Items[0].Chain == nil {
		t.Errorf("a chain: %+v, skipped %v", f.Items, f.Skipped)
	}
	if f := find(t, locate.Options{}, bucket.URL("etcd/a.db")); len(f.Items) != 1 || f.Items[0].Err != nil ||
		f.Items[0].FromFolder {
		t.Errorf("one object: %+v", f.Items)
	}
	if f := find(t, locate.Options{}, bucket.URL("missing")); len(f.Items) != 1 || f.Items[0].Err == nil {
		t.Errorf("nothing there: %+v", f.Items)
	}
}

// TestObjectsThatAreNoBackups: an object is skipped, refused or damaged as a file of the same content is.
func TestObjectsThatAreNoBackups(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	noise := slices.Concat(packed(t, "gz", nil)[:10], bytes.Repeat([]byte{0xff}, 50))
	for name, content := range map[string][]byte{"a.db": b, "sealed.db": []byte("Salted__12345678"),
		"cut.db.gz": noise, "cut.gz": noise, "short.db.gz": {0x1f, 0x8b, 7}, "short": {0x1f, 0x8b, 7}, "none.db": nil,
		"odd.db.zst": []byte("\x28\xb5\x2f\xfd\xff\xff\xff"), "odd.zst": []byte("\x28\xb5\x2f\xfd\xff\xff\xff"),
		"node1/member/snap/db": b, "set.tar": tarred(t, entry{"x.db", b}), "set.tar.gz": packed(t, "gz",
			tarred(t, entry{"y.db", b}))} {
		write(t, filepath.Join(dir, "k", name), content)
	}
	ok(t, os.Symlink("nowhere", filepath.Join(dir, "k", "gone.db")))
	bucket := objectstest.Serve(t, dir)
	f := find(t, locate.Options{Scratch: t.TempDir()}, bucket.URL("k"))
	same(t, labels(f), "a.db", "cut.db.gz", "gone.db", "none.db", "odd.db.zst", "sealed.db", "short.db.gz", "y.db",
		"x.db")
	for _, it := range f.Items {
		switch it.Label {
		case "sealed.db", "gone.db":
			if it.Err == nil {
				t.Errorf("%s: no error", it.Label)
			}
			if _, err := it.Open(t.Context(), t.TempDir()); !errors.Is(err, it.Err) {
				t.Errorf("%s was opened: %v", it.Label, err)
			}
		default:
			damaged := strings.HasSuffix(it.Label, ".gz") || strings.HasSuffix(it.Label, ".zst")
			if _, packing := content(t, it); (packing != nil) != damaged || it.Err != nil {
				t.Errorf("%s: %v", it.Label, packing)
			}
		}
	}
	if len(f.Skipped) != 4 || reasonOf(f, "db") != "part of a data dir: use etcd-medic inspect or diagnose" {
		t.Errorf("%+v", f.Skipped)
	}
	if f := find(t, locate.Options{}, bucket.URL("k/node1/member/snap/db")); f.Items[0].Err != nil {
		t.Errorf("a database that is named: %v", f.Items[0].Err)
	}
	write(t, filepath.Join(dir, "part", "x.db.part"), b)
	if f := find(t, locate.Options{}, bucket.URL("part/x.db.part")); f.Items[0].Err != nil {
		t.Errorf("an object that is named: %v", f.Items[0].Err)
	}
}

// TestLimitsOfObjects: object storage is listed up to a number of objects, and nothing is copied that has no room.
func TestLimitsOfObjects(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	write(t, filepath.Join(dir, "k", "a.db"), b)
	write(t, filepath.Join(dir, "k", "b.zip"), zipped(t, entry{"b.db", b}))
	bucket := objectstest.Serve(t, dir)
	locate.WithMaxFiles(t, 1)
	f := find(t, locate.Options{Scratch: t.TempDir()}, bucket.URL("k"))
	if len(f.Items) != 2 || f.Items[0].Err == nil || !strings.Contains(f.Items[0].Err.Error(), "more than 1 objects") ||
		f.Items[1].Label != "a.db" {
		t.Errorf("%+v", f.Items)
	}
	locate.WithMaxFiles(t, 10)
	for _, room := range []int64{int64(len(b)), int64(len(b)) - 1} {
		locate.WithBudget(t, room)
		to := t.TempDir()
		it := find(t, locate.Options{}, bucket.URL("k/a.db")).Items[0]
		o, err := it.Open(t.Context(), to)
		var full *scratch.RoomError
		if errors.As(err, &full) != (room < int64(len(b))) {
			t.Errorf("room of %d bytes: %v", room, err)
		}
		if o != nil {
			ok(t, o.Close())
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("left in scratch: %v, %v", left, err)
		}
	}
	locate.WithBudget(t, 10)
	f = find(t, locate.Options{Scratch: t.TempDir()}, bucket.URL("k/b.zip"))
	var full *scratch.RoomError
	if !errors.As(f.Items[0].Err, &full) {
		t.Errorf("an archive without room for it: %v", f.Items[0].Err)
	}
}

// TestChainsInShards: the files of a chain are in one shard, in object storage as in folders.
func TestChainsInShards(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		for _, name := range []string{"Full-00000000-00000005-1700000000", "Incr-00000006-00000007-1700000009"} {
			write(t, filepath.Join(dir, "chains", strconv.Itoa(i), name), good(t))
		}
	}
	for _, where := range []string{filepath.Join(dir, "chains"), objectstest.Serve(t, dir).URL("chains")} {
		found, elsewhere := 0, 0
		for i := range 3 {
			f := find(t, locate.Options{Shard: locate.Shard{Index: i, Count: 3}, Scratch: t.TempDir()}, where)
			for _, it := range f.Items {
				if it.Err != nil || it.Chain == nil || len(it.Chain.Deltas) != 1 {
					t.Errorf("shard %d: %+v", i, it)
				}
			}
			found, elsewhere = found+len(f.Items), elsewhere+f.Elsewhere
		}
		if found != 3 || elsewhere != 12 {
			t.Errorf("%d chains are found, %d files are elsewhere", found, elsewhere)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	return b
}

// TestShards wants each backup in exactly one shard, a series whole when its newest is asked for, and no error for a
// shard without any.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	for _, name := range []string{"a-2026-01-01.db", "a-2026-01-02.db", "a-2026-01-03.db", "b-2026-01-01.db",
		"b-2026-01-02.db", "x/c.db"} {
		write(t, filepath.Join(dir, name), b)
	}
	const shards = 4
	for _, o := range []locate.Options{{}, {Newest: locate.NewestOfSeries}, {Newest: locate.NewestOfFolder},
		{Shard: locate.Shard{Series: true}}} {
		var got []string
		series := map[string]int{}
		for i := range shards {
			o.Shard.Index, o.Shard.Count = i, shards
			for _, it := range find(t, o, dir).Items {
				if it.Err != nil {
					t.Errorf("shard %d: %v", i, it.Err)
				}
				got = append(got, it.Shown)
				if at, ok := series[it.Series]; ok && at != i && o.Shard.Series {
					t.Errorf("the series of %s is in the shards %d and %d", it.Shown, at, i)
				}
				series[it.Series] = i
			}
		}
		var want []string
		for _, it := range find(t, locate.Options{Newest: o.Newest}, dir).Items {
			want = append(want, it.Shown)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: shards have %v, want %v", o, got, want)
		}
	}
	for _, text := range []string{"", "1", "1/1", "-1/2", "2/2", "0/0", "a/b", "0/100001"} {
		if _, err := locate.ParseShard(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

//go:build !lite

package locate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/objects/objectstest"
)

// TestObjects finds in object storage what it finds in a folder with the same content, and reads whole objects only
// when they are opened.
func TestObjects(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	write(t, filepath.Join(dir, "etcd", "a.db"), b)
	write(t, filepath.Join(dir, "etcd", "b.db.gz"), packed(t, "gz", b))
	write(t, filepath.Join(dir, "etcd", "deep", "c.zip"), zipped(t, entry{"inner/c.db", b}))
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
		if packing != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %d bytes, %v", it.Label, len(got), packing)
		}
	}
	write(t, filepath.Join(dir, "chains", "v2", "Incr-00000006-00000007-1700000009"), []byte("delta"))
	scratch := t.TempDir()
	chained, err := locate.Find(t.Context(), []evidence.Spec{{Where: bucket.URL("chains")}},
		locate.Options{Scratch: scratch})
	ok(t, err)
	c := chained.Items[0].Chain
	if c == nil || len(c.Deltas) != 1 || filepath.Dir(c.Deltas[0].Path) != filepath.Dir(c.Full.Path) ||
		!bytes.Equal(read(t, c.Full.Path), b) || string(read(t, c.Deltas[0].Path)) != "delta" {
		t.Errorf("a chain: %+v", c)
	}
	ok(t, chained.Close())
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
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

package dumpdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func fnv64(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// smallTree is a file whose key tree has three levels.
func smallTree(t testing.TB) (string, error) {
	path := filepath.Join(t.TempDir(), "db")
	return path, writeBenchDB(path, 2000, 30000, 300)
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	fatal(t, os.WriteFile(empty, nil, 0o600))
	text := filepath.Join(dir, "text")
	fatal(t, os.WriteFile(text, bytes.Repeat([]byte("no bbolt file "), 4096), 0o600))
	stub := filepath.Join(dir, "stub")
	fatal(t, os.WriteFile(stub, bytes.Repeat([]byte{0xed}, headerSize+metaSize-1), 0o600))
	for path, want := range map[string]struct {
		kind     DamageKind
		observed string
	}{empty: {DamageTruncated, "an empty file"}, stub: {DamageTruncated, "a file of 79 B"},
		text: {DamageMeta, "meta 0: the magic is 6f626220, not ed0cdaed; meta 1: the magic is"}} {
		var d *DamageError
		if _, err := Open(path); !errors.As(err, &d) || !errors.Is(err, ErrNoMeta) || d.Kind != want.kind ||
			!strings.HasPrefix(d.Observed, want.observed) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s opens", path)
		}
	}
}

// Members at other revisions have the same content hash over the window they share.
func TestContentHashWindow(t *testing.T) {
	dir, ctx := evidencetest.Incident(t, "k-lagging-node"), context.Background()
	ahead := open(t, filepath.Join(dir, "node1/member/snap/db"))
	behind := open(t, filepath.Join(dir, "node3/member/snap/db"))
	want, err := behind.BucketHash(ctx, "key")
	fatal(t, err)
	for _, comp := range []int64{-1, 50, 91} {
		a, err := ahead.ContentHash(ctx, comp, 91)
		fatal(t, err)
		b, err := behind.ContentHash(ctx, comp, 91)
		fatal(t, err)
		if a != b || comp < 0 && a != want {
			t.Errorf("compacted at %d: %s and %s", comp, a, b)
		}
	}
	all, err := ahead.BucketHash(ctx, "key")
	fatal(t, err)
	if all == want {
		t.Error("the hash does not see the records above")
	}
	if _, err := behind.ContentHash(ctx, -1, 92); !errors.Is(err, ErrFutureRev) {
		t.Error(err)
	}
	skew := open(t, filepath.Join(evidencetest.Incident(t, "l-compaction-skew"), "node1/member/snap/db"))
	if _, err := skew.ContentHash(ctx, 570, 0); !errors.Is(err, ErrCompacted) {
		t.Error(err)
	}
}

func TestIteratorsStopEarly(t *testing.T) {
	path, err := smallTree(t)
	fatal(t, err)
	db := open(t, path)
	count := func(n *int) bool { *n++; return *n < 3 }
	n := [4]int{}
	for range db.Rows("key") {
		if !count(&n[0]) {
			break
		}
	}
	for range db.SalvageRevisions(context.Background()) {
		if !count(&n[1]) {
			break
		}
	}
	for range db.Pages(context.Background()) {
		if !count(&n[2]) {
			break
		}
	}
	for range db.Query(context.Background(), Query{Live: true}) {
		if !count(&n[3]) {
			break
		}
	}
	if n != [4]int{3, 3, 3, 3} {
		t.Error(n)
	}
}

// Readers do not disturb each other.
func TestConcurrentReaders(t *testing.T) {
	path, err := smallTree(t)
	fatal(t, err)
	db := open(t, path)
	want, err := db.Inspect(context.Background())
	fatal(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := db.Inspect(context.Background())
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("%v %s", err, cmp.Diff(want, got))
			}
			n := int64(0)
			for range db.Revisions() {
				n++
			}
			if n != want.KV.Revisions {
				t.Errorf("%d rows", n)
			}
		})
	}
	wg.Wait()
}

// RevisionsFrom gives the tail of Revisions at every start.
func TestRevisionsFrom(t *testing.T) {
	path, err := smallTree(t)
	fatal(t, err)
	db := open(t, path)
	for _, from := range []int64{0, 2, 3, 999, 15000, 30000, 30001, 30002} {
		want := max(2, from)
		for r, err := range db.RevisionsFrom(Rev{Main: from}) {
			fatal(t, err)
			if r.Main != want {
				t.Fatalf("from %d: %s, want %d", from, r.Rev, want)
			}
			want++
		}
		if want != max(30002, from) {
			t.Errorf("from %d ends before %d", from, want)
		}
	}
}

// shrinking is a file that somebody cuts while it is read.
type shrinking struct {
	b    []byte
	left int
}

func (s *shrinking) ReadAt(p []byte, off int64) (int, error) {
	if s.left--; s.left < 0 && off >= 8192 {
		return 0, io.EOF
	}
	return bytes.NewReader(s.b).ReadAt(p, off)
}

func TestFileCutWhileRead(t *testing.T) {
	b := lineBytes(t)["l-compaction-skew/node2"]
	for left := range 20 {
		db, err := NewReader(&shrinking{b, left + 2}, int64(len(b)))
		fatal(t, err)
		rows, damage := 0, 0
		for _, err := range db.Rows("key") {
			if err != nil {
				damage++
			} else {
				rows++
			}
		}
		if rows < 488 && damage == 0 {
			t.Errorf("%d rows and no damage", rows)
		}
	}
}

func TestCRCJoin(t *testing.T) {
	b := make([]byte, 3000)
	for i := range b {
		b[i] = byte(i * 7)
	}
	for _, cut := range []int{0, 1, 3, 17, 1024, 2999, 3000} {
		var a, z crcSum
		a.write(b[:cut])
		z.write(b[cut:])
		a.join(z)
		if want := crc32.Checksum(b, castagnoli); a.sum != want || a.n != 3000 {
			t.Errorf("cut at %d: %08x, want %08x", cut, a.sum, want)
		}
	}
}

// Inspecting a file takes memory for its keys, not for its values.
func TestMemoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	fatal(t, writeBenchDB(path, 2000, 20000, 8000))
	db := open(t, path)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	in, err := db.Inspect(context.Background())
	fatal(t, err)
	runtime.ReadMemStats(&after)
	if in.KV.Bytes < 150<<20 {
		t.Fatalf("the file holds only %d bytes", in.KV.Bytes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
		t.Errorf("%d bytes allocated for %d bytes of records", grown, in.KV.Bytes)
	}
}

func TestParseKube(t *testing.T) {
	field := func(b []byte, num protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
	}
	meta := field(field(nil, 1, []byte("web-0")), 3, []byte("prod"))
	typeMeta := field(field(nil, 1, []byte("apps/v1")), 2, []byte("Deployment"))
	object := field(field(nil, 1, meta), 2, []byte("spec"))
	proto := append([]byte("k8s\x00"), field(field(nil, 1, typeMeta), 2, object)...)
	for _, c := range []struct {
		value string
		want  string
	}{
		{string(proto), "protobuf apps/v1 Deployment prod web-0 "},
		{`{"apiVersion":"a/v1","kind":"K","metadata":{"name":"n","namespace":"ns"}}`, "json a/v1 K ns n "},
		{"k8s:enc:aescbc:v1:key1:\x00\x01:", "encrypted     aescbc:v1:key1"},
		{"k8s:enc:kms:v2:vault:\xff", "encrypted     kms:v2:vault"},
		{"k8s:enc:kms:v2:vault", "encrypted     "},
		{"k8s\x00\xff", ""},
		{`{"kind":"K"}`, ""},
		{"plain", ""},
		{"", ""},
	} {
		o, ok := ParseKube([]byte(c.value))
		got := fmt.Sprintf("%s %s %s %s %s %s", o.Encoding, o.APIVersion, o.Kind, o.Namespace, o.Name, o.Provider)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q: %q %v, want %q", c.value, got, ok, c.want)
		}
	}
}

// TestParseKubeManager: the manager is the one that wrote last; an entry without a name or with a time that is none
// never wins over one with, and damage in the list leaves the object its name.
func TestParseKubeManager(t *testing.T) {
	field := func(b []byte, num protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
	}
	entry := func(manager string, seconds int64) []byte {
		at := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(seconds))
		return field(field(nil, 1, []byte(manager)), 4, at)
	}
	object := func(entries ...[]byte) string {
		meta := field(field(nil, 1, []byte("web-0")), 3, []byte("prod"))
		for _, e := range entries {
			meta = field(meta, 17, e)
		}
		unknown := field(field(nil, 1, field(field(nil, 1, []byte("v1")), 2, []byte("Pod"))), 2, field(nil, 1, meta))
		return "k8s\x00" + string(unknown)
	}
	for _, c := range []struct{ value, want string }{
		{object(), "Pod web-0 "},
		{object(entry("kubelet", 20), entry("kube-scheduler", 10)), "Pod web-0 kubelet"},
		{object(entry("kube-scheduler", 10), entry("kubelet", 20)), "Pod web-0 kubelet"},
		{object(entry("kubectl", 10), entry("", 99)), "Pod web-0 kubectl"},
		{object(entry("kubectl", 10), []byte{0xff}), "Pod web-0 kubectl"},
		{object(entry(strings.Repeat("x", 200), 10)), "Pod web-0 "},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","managedFields":[{"manager":"a","time":"2026-01-02T03:04:05Z"},{"manager":"b","time":7}]}}`, "Pod web-0 a"},
	} {
		o, ok := ParseKube([]byte(c.value))
		if got := o.Kind + " " + o.Name + " " + o.Manager; !ok || got != c.want {
			t.Errorf("%q: %q, want %q", c.value, got, c.want)
		}
	}
}

// A nested bucket whose root is the page it stands in: the walk ends and names it.
func TestNestedCycleEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	fatal(t, err)
	fatal(t, ref.Update(func(tx *bbolt.Tx) error {
		top, err := tx.CreateBucket([]byte("top"))
		fatal(t, err)
		for i := range 30 {
			fatal(t, top.Put(fmt.Appendf(nil, "row %d", i), make([]byte, 100)))
		}
		_, err = top.CreateBucket([]byte("self"))
		return err
	}))
	fatal(t, ref.Close())
	b, err := os.ReadFile(path)
	fatal(t, err)
	db := open(t, path)
	nested, ok := db.find("top/self")
	if !ok || !nested.Inline {
		t.Fatal("no nested bucket")
	}
	le.PutUint64(b[nested.Offset-bucketHeader:], nested.Page) // the element now leads to its own page
	hostile, err := NewReader(bytes.NewReader(b), int64(len(b)))
	fatal(t, err)
	r, err := hostile.Check(context.Background())
	fatal(t, err)
	if len(r.Damage) != 1 || r.Damage[0].Kind != DamageDoubleUse || r.Damage[0].Bucket != "top/self" {
		t.Errorf("%v", r.Damage)
	}
}

// TestNestedBuckets: a bucket inside of others is found by its path, and only there; damage next to it hides nothing
// else and ends nothing.
func TestNestedBuckets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: 4096})
	fatal(t, err)
	fatal(t, ref.Update(func(tx *bbolt.Tx) error {
		top, err := tx.CreateBucket([]byte("top"))
		fatal(t, err)
		for i := range 100 {
			fatal(t, top.Put(fmt.Appendf(nil, "row %02d", i), make([]byte, 100)))
		}
		in, err := top.CreateBucket([]byte("row 50 in"))
		fatal(t, err)
		inner, err := in.CreateBucket([]byte("inner"))
		fatal(t, err)
		return inner.Put([]byte("k"), []byte("v"))
	}))
	fatal(t, ref.Close())
	db := open(t, path)
	for name, want := range map[string]int{"top": 101, "top/row 50 in": 1, "top/row 50 in/inner": 1, "top/inner": 0,
		"top/row 50": 0, "none": 0, "none/inner": 0, "none/row 50 in/inner": 0, "top/none/inner": 0} {
		n := 0
		for _, err := range db.Rows(name) {
			fatal(t, err)
			n++
		}
		if n != want {
			t.Errorf("%s: %d rows, want %d", name, n, want)
		}
	}
	nested, ok := db.find("top/row 50 in")
	if !ok {
		t.Fatal("no nested bucket")
	}
	b, err := os.ReadFile(path)
	fatal(t, err)
	clear(b[nested.Page*4096 : (nested.Page+1)*4096])
	hurt, err := NewReader(bytes.NewReader(b), int64(len(b)))
	fatal(t, err)
	if _, ok := hurt.find("top/row 50 in"); ok {
		t.Error("a bucket of a page that was zeroed is found")
	}
	if _, ok := hurt.find("top"); !ok {
		t.Error("the bucket with that page is not found")
	}
}

// TestTooManyKeysOfOneHash: keys that no part separates are an error, never a result of some of them.
func TestTooManyKeysOfOneHash(t *testing.T) {
	db := made(t, "put 2.0 k v\nput 3.0 l v")
	db.maxKeys = -1 // one key is too many
	st, err := db.KVStats(t.Context())
	if st != nil || err == nil || !strings.Contains(err.Error(), "keys of one hash") {
		t.Errorf("%+v, %v", st, err)
	}
}

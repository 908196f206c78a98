package chain_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func TestParseName(t *testing.T) {
	s, ok := chain.ParseName("/store/v2/Incr-00001235-00001890-1518434143.gz.final")
	if !ok || s.Full || s.Start != 1235 || s.Last != 1890 || s.Created.Unix() != 1518434143 || s.Suffix != ".gz" {
		t.Errorf("%+v %v", s, ok)
	}
	for _, bad := range []string{"Full-1-2-3", "Incr-00000010-00000009-1518434143",
		"Full-00000000-00000010-1518434143.xz", "xFull-00000000-00000010-1518434143",
		"Full-99999999999999999999-00000010-1",
		"Incr-00000001-9999999999999999999-1518434143", "Full-00000000-00000010-1518434143.gz.tmp"} {
		if s, ok := chain.ParseName(bad); ok {
			t.Errorf("%s: %+v", bad, s)
		}
	}
}

// databases returns a member that was stopped early and one that went on, of one cluster that was never compacted.
func databases(t *testing.T) (old, now string) {
	t.Helper()
	dir := evidencetest.Incident(t, "k-lagging-node")
	return filepath.Join(dir, "node3", "member", "snap", "db"), filepath.Join(dir, "node1", "member", "snap", "db")
}

// store writes a full snapshot named by the revision given and deltas that end at the revisions given; it returns the
// files.
func store(t *testing.T, suffix string, named int64, ends ...int64) (dir string, files []string) {
	t.Helper()
	old, now := databases(t)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir(), Suffix: suffix}
	files = append(files, c.Full(old, named))
	from := named + 1
	for _, end := range ends {
		files = append(files, c.Delta(chaintest.Events(t, now, from, end)))
		from = end + 1
	}
	return c.Dir, files
}

func verify(t *testing.T, dir string) *chain.Report {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []chain.Snapshot
	for _, e := range entries {
		s, ok := chain.ParseName(filepath.Join(dir, e.Name()))
		if !ok {
			t.Fatal(e.Name())
		}
		all = append(all, s)
	}
	chains, _ := chain.Group(all)
	c := chains[len(chains)-1]
	r, err := c.Full.Open()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "full.db")
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close(), os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	got, err := c.Verify(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func revision(t *testing.T, path string) int64 {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rev, err := db.CurrentRev()
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// TestSoundChain: in every compression, also where the first delta repeats what the full snapshot holds already.
func TestSoundChain(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	for _, suffix := range []string{"", ".gz", ".zlib", ".Z"} {
		for _, named := range []int64{base, base - 3} {
			dir, _ := store(t, suffix, named, base+20, base+21, top)
			r := verify(t, dir)
			if !r.Serves() || r.Revision != top || r.FullRevision != base || len(r.Deltas) != 3 || r.LastNamed != top {
				t.Errorf("%q, named %d of %d: %+v", suffix, named, base, r)
			}
		}
	}
}

// TestBrokenChains breaks a chain in each way and wants the fault, the revision up to which it serves, and no more.
func TestBrokenChains(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	middle := base + 20
	rewrite := func(change func(c *chaintest.Chain, events []*clientv3.Event) []*clientv3.Event) func(*testing.T,
		string, []string) {
		return func(t *testing.T, dir string, files []string) {
			t.Helper()
			events := chaintest.Events(t, now, middle+1, top)
			c := &chaintest.Chain{TB: t, Dir: dir, Time: 1_700_000_002}
			if err := os.Remove(files[2]); err != nil {
				t.Fatal(err)
			}
			c.DeltaAs(middle+1, top, change(c, events))
		}
	}
	for _, tc := range []struct {
		name   string
		spoil  func(t *testing.T, dir string, files []string)
		kind   chain.FaultKind
		serves int64
		text   string
	}{
		{"a delta is missing", func(t *testing.T, _ string, f []string) { remove(t, f[1]) }, chain.Gap, base,
			"are in no file"},
		{"one byte of a delta", func(t *testing.T, _ string, f []string) { flip(t, f[2], 200) }, chain.Damaged, middle,
			"is damaged"},
		{"a delta is cut", func(t *testing.T, _ string, f []string) { cut(t, f[2], 2) }, chain.Damaged, middle,
			"is damaged"},
		{"the sum is cut", func(t *testing.T, _ string, f []string) { cut(t, f[2], 0) }, chain.Damaged, middle,
			"is damaged"},
		{"an empty delta", func(t *testing.T, _ string, f []string) { write(t, f[2], nil) }, chain.Damaged, middle,
			"is damaged"},
		{"zeros", func(t *testing.T, _ string, f []string) { write(t, f[2], make([]byte, 5000)) }, chain.Damaged,
			middle, "is damaged"},
		{"a revision without event", rewrite(func(_ *chaintest.Chain, e []*clientv3.Event) []*clientv3.Event {
			return slices.DeleteFunc(e, func(e *clientv3.Event) bool { return e.Kv.ModRevision == middle+5 })
		}), chain.Gap, middle, "have no event"},
		{"another version", rewrite(func(_ *chaintest.Chain, e []*clientv3.Event) []*clientv3.Event {
			i := slices.IndexFunc(e, func(e *clientv3.Event) bool { return e.Kv.Version > 0 })
			e[i].Kv.Version += 3
			return e
		}), chain.Mismatch, 0, "needs"},
		{"out of order", rewrite(func(_ *chaintest.Chain, e []*clientv3.Event) []*clientv3.Event {
			e[4], e[5] = e[5], e[4]
			return e
		}), chain.Mismatch, middle, "follows"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, files := store(t, "", base, middle, top)
			tc.spoil(t, dir, files)
			r := verify(t, dir)
			if r.Serves() || !slices.ContainsFunc(r.Faults,
				func(f chain.Fault) bool { return f.Kind == tc.kind && strings.Contains(f.Text, tc.text) }) {
				t.Fatalf("%+v", r)
			}
			if tc.serves != 0 && r.Revision != tc.serves || r.Revision >= top {
				t.Errorf("serves up to %d, want %d", r.Revision, tc.serves)
			}
			if f := r.Faults[0]; tc.text == "have no event" && (f.First != middle+5 || f.Last != middle+5) {
				t.Errorf("missing are %d to %d, want %d alone", f.First, f.Last, middle+5)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	b := read(t, path)
	b[at] ^= 1
	write(t, path, b)
}

// cut takes the sum off, and some bytes more.
func cut(t *testing.T, path string, more int) {
	t.Helper()
	b := read(t, path)
	write(t, path, b[:len(b)-sha256.Size-more])
}

// TestForeignFull: deltas of another cluster do not apply, although the revisions fit.
func TestForeignFull(t *testing.T) {
	_, now := databases(t)
	other := filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
	base := revision(t, other)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	top := revision(t, now)
	c.Full(other, base)
	events := chaintest.Events(t, now, 2, top)
	for _, e := range events { // the same changes at revisions that follow
		e.Kv.ModRevision += base - 1
		if e.Kv.CreateRevision > 0 {
			e.Kv.CreateRevision += base - 1
		}
	}
	_, events = chaintest.Split(events, base+30)
	for _, e := range events {
		e.Kv.ModRevision -= 30
	}
	c.Delta(events)
	if r := verify(t, c.Dir); r.Serves() {
		t.Errorf("%+v", r)
	}
}

func TestGroup(t *testing.T) {
	var all []chain.Snapshot
	// The delta up to 50 was taken at the time of the full snapshot, which includes it.
	for _, n := range []string{"Incr-00000051-00000060-1700000006", "Full-00000000-00000050-1700000005",
		"Incr-00000021-00000050-1700000005", "Full-00000000-00000020-1700000003",
		"Incr-00000011-00000020-1700000002"} {
		s, ok := chain.ParseName(n)
		if !ok {
			t.Fatal(n)
		}
		all = append(all, s)
	}
	chains, orphans := chain.Group(all)
	if len(chains) != 2 || len(chains[0].Deltas) != 1 || len(chains[1].Deltas) != 1 || chains[1].Last() != 60 ||
		len(orphans) != 1 {
		t.Errorf("%+v %+v", chains, orphans)
	}
}

// TestEvents: every event comes out, and each once when deltas repeat.
func TestEvents(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir(), Suffix: ".gz"}
	want := chaintest.Events(t, now, base+1, top)
	first, rest := chaintest.Split(want, base+10)
	names := []string{c.Full(old, base), c.Delta(first), c.Delta(append(slices.Clone(first[3:]), rest...))}
	var all []chain.Snapshot
	for _, n := range names {
		s, _ := chain.ParseName(n)
		all = append(all, s)
	}
	chains, _ := chain.Group(all)
	n := 0
	for e, err := range chains[0].Events(t.Context(), base) {
		if err != nil {
			t.Fatal(err)
		}
		if w := want[n].Kv; !bytes.Equal(e.Key, w.Key) || e.ModRevision != w.ModRevision ||
			!bytes.Equal(e.Value, w.Value) || e.Delete != (want[n].Type == 1) {
			t.Fatalf("event %d: %+v, want %+v", n, e, w)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d of %d events", n, len(want))
	}
	if f := chains[0].Order(); len(f) != 1 || f[0].Kind != chain.Overlap {
		t.Errorf("%+v", f)
	}
}

// FuzzEvents: no content panics, and what ends without an error fits its sum.
func FuzzEvents(f *testing.F) {
	for _, body := range []string{"[]", `[{"etcdEvent":{"type":1,"kv":{"key":"YQ==","mod_revision":3}},"time":"2024-01-01T00:00:00Z"}]`, "[{}]", "{", "null"} {
		sum := sha256.Sum256([]byte(body))
		f.Add(append([]byte(body), sum[:]...))
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var last error
		for _, err := range chain.Events(bytes.NewReader(b)) {
			last = err
		}
		if last != nil {
			return
		}
		if len(b) < sha256.Size {
			t.Fatal("too short, and no error")
		}
		body := b[:len(b)-sha256.Size]
		if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
			t.Fatalf("%q does not fit its sum", b)
		}
	})
}

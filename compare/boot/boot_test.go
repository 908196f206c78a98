package boot_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/release"
)

// spoiled is one thing that is done to a sound data dir, and what must be said of it.
type spoiled struct {
	name   string
	spoil  func(testing.TB, string)
	starts release.Answer
	mends  bool
	torn   bool
	forgot bool
	// snapshots asks for a data dir with raft snapshots, skip names releases on which the case is another one.
	snapshots bool
	skip      string
}

// table is every kind of damage that was called the end of a data dir, with what a real server makes of it.
// TestBundledServer and TestE2EServers start servers on each.
func table() []spoiled {
	return []spoiled{
		{name: "sound", spoil: func(testing.TB, string) {}, starts: release.Yes},
		{name: "sound with snapshots", spoil: func(testing.TB, string) {}, starts: release.Yes, snapshots: true},
		{name: "unfinished record at the end", spoil: addTorn, starts: release.Yes, mends: true, torn: true},
		{name: "unfinished record at the end, with snapshots", spoil: addTorn, starts: release.Yes, mends: true,
			torn: true, snapshots: true},
		{name: "end cut inside a record that was committed", spoil: cutRecords(3), starts: release.Yes, mends: true,
			forgot: true},
		{name: "length word of a committed record is zero, what follows is intact", spoil: zeroLength(3),
			starts: release.Yes, mends: true, forgot: true},
		{name: "flipped bit in the middle of the log", spoil: flipInLog, starts: release.No},
		{name: "one damaged meta page", spoil: spoilMeta(1), starts: release.Yes, mends: true},
		{name: "entry that is not a request", spoil: breakEntry(3), starts: release.No},
		{name: "entry that is not a request below the snapshot", spoil: breakEntry(100), starts: release.Yes,
			snapshots: true},
		{name: "both meta pages damaged", spoil: func(tb testing.TB,
			dir string) {
			spoilMeta(0)(tb, dir)
			spoilMeta(1)(tb, dir)
		}, starts: release.No},
		{name: "one value altered", spoil: alterValue, starts: release.Yes},
		{name: "value that does not decode", spoil: breakValue, starts: release.No},
		{name: "leaf page overwritten", spoil: overwriteLeaf, starts: release.No},
		{name: "newest snap file damaged", spoil: breakSnap(1), starts: release.Yes, mends: true, snapshots: true,
			skip: "3.7"},
		{name: "all snap files damaged", spoil: breakSnap(99), starts: release.Yes, mends: true, snapshots: true,
			skip: "3.7"},
		{name: "database missing", spoil: removeDB, starts: release.Yes, mends: true},
		{name: "database empty", spoil: emptyDB, starts: release.Yes, mends: true},
		{name: "database empty, with snapshots", spoil: emptyDB, starts: release.No, snapshots: true},
		{name: "database missing, with snapshots", spoil: removeDB, starts: release.No, snapshots: true},
		{name: "database older than the snapshot", spoil: lowerIndex, starts: release.No, snapshots: true},
	}
}

func check(tb testing.TB, c *spoiled, dir string) boot.Answer {
	tb.Helper()
	set, err := evidence.Open(tb.Context(), []evidence.Spec{{Name: "node1", Where: dir}}, evidence.Options{Deep: true})
	must(tb, err)
	defer func() { must(tb, set.Close()) }()
	if len(set.Members) != 1 {
		tb.Fatalf("%d members, failed %v", len(set.Members), set.Failed)
	}
	f := set.Members[0].Facts()
	if f.WAL != nil {
		r, err := replay.Run(tb.Context(), set.Members, replay.Options{})
		must(tb, err)
		f.WAL.AddDamage(r.UndecodableDamage(0))
	}
	a := boot.Of(&f)
	if a.Starts != c.starts || (a.Why == "") != a.Starts.Certain() {
		tb.Errorf("starts %s (%s), want %s", a.Starts, a.Why, c.starts)
	}
	if (len(a.Mends) > 0) != c.mends || (a.Torn != nil) != c.torn || (a.Forgot != nil) != c.forgot {
		tb.Errorf("mends %q, torn %v, forgot %v; want %v, %v, %v", a.Mends, a.Torn, a.Forgot, c.mends, c.torn, c.forgot)
	}
	return a
}

// TestBundledServer starts the server that this program brings on a copy of each spoiled data dir.
func TestBundledServer(t *testing.T) {
	for _, c := range table() {
		if c.snapshots {
			continue // TestE2EServers has them: what is written here holds no v2 store
		}
		t.Run(c.name, func(t *testing.T) {
			dir := clustertest.Synth{Members: 1, Entries: 200, Keys: 20, Value: 100}.Write(t, t.TempDir())[0]
			c.spoil(t, dir)
			a := check(t, &c, dir)
			said, started := serve(t, node.Bundled(), evidencetest.Copy(t, dir), "http://127.0.0.1:2380",
				"http://127.0.0.1:2379")
			if started != a.Starts.Certain() {
				t.Errorf("foretold %s (%s), the server starts: %v\n%s", a.Starts, a.Why, started, tail(said))
			}
		})
	}
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

func serve(t *testing.T, server node.Server, dir, peer, client string) (string, bool) {
	t.Helper()
	box, err := node.New(t.Context(), node.Options{Dir: filepath.Join(t.TempDir(), "box"), Server: server,
		UnsafeNoFsync: true})
	must(t, err)
	defer func() { must(t, box.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := box.Start(ctx, node.MemberConfig{Name: "node1", DataDir: dir, PeerURLs: []string{peer},
		ClientURLs: []string{client}, InitialCluster: "node1=" + peer})
	must(t, err)
	err = m.Ready(ctx)
	if ctx.Err() != nil {
		t.Fatal("the server neither served nor ended within a minute")
	}
	b, rerr := os.ReadFile(m.LogFile())
	must(t, rerr)
	return string(b), err == nil
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func only(tb testing.TB, dir, pattern string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "member", pattern))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no file %s: %v", pattern, err)
	}
	slices.Sort(files)
	return files
}

func writeAt(tb testing.TB, file string, off int64, b []byte) {
	tb.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	must(tb, err)
	_, err = f.WriteAt(b, off)
	must(tb, errors.Join(err, f.Close()))
}

// records are the places of the entries of the last segment.
func entries(tb testing.TB, dir string) (file string, at []int64, end int64) {
	tb.Helper()
	folder := filepath.Join(dir, "member", "wal")
	l, err := dumplog.Open(folder)
	must(tb, err)
	s, err := l.Scan(tb.Context())
	must(tb, err)
	last := s.Segments[len(s.Segments)-1]
	for r, err := range l.RecordsOf(tb.Context(), s) {
		must(tb, err)
		if r.Segment == last.Name && r.Type == dumplog.RecordEntry {
			at = append(at, r.Offset)
		}
	}
	return filepath.Join(folder, last.Name), at, last.DataEnd
}

// addTorn begins a record behind the last one: a length word and a part of its bytes, the rest zeros as preallocated.
func addTorn(tb testing.TB, dir string) {
	tb.Helper()
	file, _, end := entries(tb, dir)
	st, err := os.Stat(file)
	must(tb, err)
	if st.Size() < end+4096 {
		must(tb, os.Truncate(file, end+4096))
	}
	b := binary.LittleEndian.AppendUint64(nil, 2000)
	writeAt(tb, file, end, append(b, 0x08, 0x02, 0x10, 0x81, 0x01, 0x1a, 0xc0, 0x0f, 0x01, 0x02))
}

// cutRecords ends the log in the middle of the nth last entry.
func cutRecords(n int) func(testing.TB, string) {
	return func(tb testing.TB, dir string) {
		tb.Helper()
		file, at, _ := entries(tb, dir)
		must(tb, os.Truncate(file, at[len(at)-n]+16))
	}
}

// zeroLength zeroes the length word of a record, the N-th from the end.
func zeroLength(n int) func(testing.TB, string) {
	return func(tb testing.TB, dir string) {
		tb.Helper()
		file, at, _ := entries(tb, dir)
		writeAt(tb, file, at[len(at)-n], make([]byte, 8))
	}
}

// breakEntry makes the data of a put no protobuf message, with a checksum that fits. It is the put that is n entries
// from the end, or the next one.
func breakEntry(n int) func(testing.TB, string) {
	return func(tb testing.TB, dir string) {
		tb.Helper()
		_, at, _ := entries(tb, dir)
		seen, done := 0, false
		casetest.RewriteLog(tb, dir, func(rec *walpb.Record) {
			var e raftpb.Entry
			if rec.Type != 2 {
				return
			}
			must(tb, e.Unmarshal(rec.Data))
			if seen++; done || seen < len(at)-n || e.Type != raftpb.EntryNormal || len(e.Data) == 0 {
				return
			}
			e.Data[len(e.Data)-1], done = 0xff, true
			e.Data = append(e.Data, 0xff)
			var err error
			rec.Data, err = e.Marshal()
			must(tb, err)
		})
		if !done {
			tb.Fatal("no put to alter")
		}
	}
}

func flipInLog(tb testing.TB, dir string) {
	tb.Helper()
	file, at, _ := entries(tb, dir)
	b := make([]byte, 1)
	f, err := os.Open(file)
	must(tb, err)
	_, err = f.ReadAt(b, at[len(at)/2]+40)
	must(tb, errors.Join(err, f.Close()))
	writeAt(tb, file, at[len(at)/2]+40, []byte{b[0] ^ 4})
}

func spoilMeta(page int64) func(testing.TB, string) {
	return func(tb testing.TB, dir string) {
		writeAt(tb, only(tb, dir, "snap/db")[0], page*int64(os.Getpagesize())+40, []byte{0xee, 0xee})
	}
}

// edit changes the last record of bucket key.
func edit(tb testing.TB, dir string, change func(b *bbolt.Bucket, key, value []byte) error) {
	tb.Helper()
	db, err := bbolt.Open(only(tb, dir, "snap/db")[0], 0o600, &bbolt.Options{NoFreelistSync: true})
	must(tb, err)
	must(tb, db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		k, v := b.Cursor().Last()
		return change(b, slices.Clone(k), slices.Clone(v))
	}))
	must(tb, db.Close())
}

func alterValue(tb testing.TB, dir string) {
	edit(tb, dir, func(b *bbolt.Bucket, k, v []byte) error {
		v[len(v)-1] ^= 1
		return b.Put(k, v)
	})
}

func breakValue(tb testing.TB, dir string) {
	edit(tb, dir, func(b *bbolt.Bucket, k, _ []byte) error { return b.Put(k, []byte{0xff, 0xff, 0xff}) })
}

// overwriteLeaf spoils the header of a page that bucket key needs.
func overwriteLeaf(tb testing.TB, dir string) {
	tb.Helper()
	file := only(tb, dir, "snap/db")[0]
	page := uint64(0)
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	must(tb, err)
	must(tb, db.View(func(tx *bbolt.Tx) error {
		page = uint64(tx.Bucket([]byte("key")).Root())
		return nil
	}))
	must(tb, db.Close())
	if page == 0 {
		tb.Fatal("bucket key has no page of its own")
	}
	writeAt(tb, file, int64(page)*int64(os.Getpagesize()), slices.Repeat([]byte{0xa5}, 64))
}

// breakSnap damages the newest n snapshot files.
func breakSnap(n int) func(testing.TB, string) {
	return func(tb testing.TB, dir string) {
		tb.Helper()
		files := only(tb, dir, "snap/*.snap")
		for i := range min(n, len(files)) {
			writeAt(tb, files[len(files)-1-i], 20, []byte{0xee, 0xee})
		}
	}
}

func removeDB(tb testing.TB, dir string) { must(tb, os.Remove(only(tb, dir, "snap/db")[0])) }

func emptyDB(tb testing.TB, dir string) { must(tb, os.Truncate(only(tb, dir, "snap/db")[0], 0)) }

func lowerIndex(tb testing.TB, dir string) {
	tb.Helper()
	db, err := bbolt.Open(only(tb, dir, "snap/db")[0], 0o600, &bbolt.Options{NoFreelistSync: true})
	must(tb, err)
	must(tb, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, 3))
	}))
	must(tb, db.Close())
}

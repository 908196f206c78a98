package surgery_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// etcdHash is the hash that etcd's own store gives for a db, on a copy.
func etcdHash(t *testing.T, db string) (hash uint32, rev int64) {
	t.Helper()
	be := backend.NewDefaultBackend(zap.NewNop(), evidencetest.Copy(t, db))
	s := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	h, rev, err := s.HashStorage().HashByRev(0)
	ok(t, err)
	s.Close()
	ok(t, be.Close())
	return h.Hash, rev
}

func dbOf(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

func rewrite(t *testing.T, file string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	ok(t, err)
	ok(t, os.WriteFile(file, change(b), 0o600))
}

// TestDBIsWholeAgain damages a database and lets the other member complete it: etcd's hash is then that of the sound
// one.
func TestDBIsWholeAgain(t *testing.T) {
	dirs := clustertest.Synth{Members: 2, Entries: 1500, Keys: 100, Value: 64}.Write(t, t.TempDir())
	evidencetest.Unchanged(t, dirs...)
	want, rev := etcdHash(t, dbOf(dirs[0]))
	db, err := dumpdb.Open(dbOf(dirs[0]))
	ok(t, err)
	leaves := leafPages(t, db)
	root := db.Meta().Root
	ok(t, db.Close())
	page := func(id uint64, v byte) damage {
		return func(b []byte) []byte {
			copy(b[id*4096:], bytes.Repeat([]byte{v}, 4096))
			return b
		}
	}
	for _, c := range []struct {
		name  string
		do    damage
		alone bool // whether the file alone is enough
		meta  bool // whether bucket meta is gone
	}{
		{"a page in the middle", page(leaves[len(leaves)/2], 0xee), false, false},
		{"the first page of keys", page(leaves[0], 0), false, false},
		{"the last page of keys", page(leaves[len(leaves)-1], 0), false, false},
		{"both metas", func(b []byte) []byte { return page(0, 0x11)(page(1, 0x22)(b)) }, false, true},
		{"the root", page(root, 0x33), false, true},
		{"cut short", func(b []byte) []byte { return b[:len(b)*2/3&^4095] }, false, true},
		{"nothing", func(b []byte) []byte { return b }, true, false},
	} {
		dir := evidencetest.Copy(t, dirs[0])
		rewrite(t, dbOf(dir), c.do)
		evidencetest.Unchanged(t, dir)
		// The file alone: nothing shows what was lost, unless nothing was.
		var refused *refusal.Error
		var source *evidence.SourceError
		out, _, err := repair(t, surgery.DB{}, dbOf(dir), nil)
		if c.alone && err != nil || err != nil && !errors.As(err, &refused) && !errors.As(err, &source) {
			t.Errorf("%s, file alone: %v", c.name, err)
		}
		if err == nil {
			if got, _ := etcdHash(t, out); got != want {
				t.Errorf("%s, file alone: hash %d, want %d", c.name, got, want)
			}
		}
		// With its own log, and with another member.
		for _, with := range [][]string{nil, dirs[1:]} {
			out, r, err := repair(t, surgery.DB{}, dir, with)
			if errors.As(err, &refused) && c.meta {
				continue // without a consistent index nothing tells how far to go
			}
			if err != nil {
				t.Errorf("%s, with %d others: %v", c.name, len(with), err)
				continue
			}
			if got, at := etcdHash(t, dbOf(out)); got != want || at != rev || r.After.Class != "healthy" {
				t.Errorf("%s, with %d others: hash %d at %d, want %d at %d; %+v", c.name, len(with), got, at, want, rev,
					r)
			}
		}
	}
}

func leafPages(t *testing.T, db *dumpdb.DB) (ids []uint64) {
	t.Helper()
	for p, err := range db.Pages(context.Background()) {
		ok(t, err)
		if p.Bucket == "key" && p.Type == "leaf" && p.State == dumpdb.PageReachable {
			ids = append(ids, p.Page)
		}
	}
	if len(ids) < 5 {
		t.Fatalf("leaf pages %v", ids)
	}
	// Pages in the order of their keys: rows say it.
	var order []uint64
	for r, err := range db.Rows("key") {
		ok(t, err)
		if len(order) == 0 || order[len(order)-1] != r.Page {
			order = append(order, r.Page)
		}
	}
	return order
}

// TestDBFromBranchPages: leaves that a damaged branch page led to are found again, and contiguous revisions prove them
// complete.
func TestDBFromBranchPages(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 3000, Keys: 100, Value: 64}.Write(t, t.TempDir())[0]
	want, _ := etcdHash(t, dbOf(dir))
	db, err := dumpdb.Open(dbOf(dir))
	ok(t, err)
	var branch uint64
	for p, err := range db.Pages(context.Background()) {
		ok(t, err)
		if p.Bucket == "key" && p.Type == "branch" && p.State == dumpdb.PageReachable {
			branch = p.Page
		}
	}
	ok(t, db.Close())
	if branch == 0 {
		t.Fatal("no branch page")
	}
	rewrite(t, dbOf(dir), func(b []byte) []byte { copy(b[branch*4096:], make([]byte, 4096)); return b })
	// What damage took has an open end, so the file alone does not prove it; the log does.
	var refused *refusal.Error
	if _, _, err := repair(t, surgery.DB{}, dbOf(dir), nil); !errors.As(err, &refused) ||
		refused.Flag != surgery.AcceptLostRevisions {
		t.Errorf("file alone: %v", err)
	}
	out, r, err := repair(t, surgery.DB{}, dir, nil)
	ok(t, err)
	if got, _ := etcdHash(t, dbOf(out)); got != want || r.After.Class != "healthy" {
		t.Errorf("hash %d, want %d: %+v", got, want, r)
	}
}

func TestPreviousMeta(t *testing.T) {
	src := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 300, Keys: 10, Value: 64}.WriteDB(t, src)
	ok(t, datadir.EditNew(src, datadir.SetAuthRevision(9)))
	ok(t, datadir.EditNew(src, datadir.SetConsistentIndex(500), datadir.DropBucketKeys("auth")))
	evidencetest.Unchanged(t, src)
	out, r, err := repair(t, surgery.DB{Previous: true}, src, nil)
	ok(t, err)
	b, err := bolt.Open(evidencetest.Copy(t, out), 0o600, nil)
	ok(t, err)
	defer b.Close()
	ok(t, b.View(func(tx *bolt.Tx) error {
		if v := tx.Bucket([]byte("auth")).Get([]byte("authRevision")); !bytes.Equal(v, []byte{0, 0, 0, 0, 0, 0, 0, 9}) {
			t.Errorf("auth revision %x", v)
		}
		if v := tx.Bucket([]byte("meta")).Get([]byte("consistent_index")); !bytes.Equal(v,
			[]byte{0, 0, 0, 0, 0, 0, 1, 45}) {
			t.Errorf("consistent index %x", v)
		}
		return nil
	}))
	if !slices.Contains(r.GivesUp, "the effect of entries 302 to 500, until the server applies it again from its log") {
		t.Errorf("gives up %v", r.GivesUp)
	}
}

// TestDamagedMeta: bbolt falls back on the other meta page by itself; afterwards both are valid and say the same.
func TestDamagedMeta(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 300, Keys: 10, Value: 64}.Write(t, t.TempDir())[0]
	ok(t, datadir.EditNew(dbOf(dir), datadir.SetAuthRevision(9)))
	ok(t, datadir.EditNew(dbOf(dir), datadir.SetAuthRevision(10)))
	db, err := dumpdb.Open(dbOf(dir))
	ok(t, err)
	offset := db.Meta().Offset
	ok(t, db.Close())
	rewrite(t, dbOf(dir), func(b []byte) []byte { b[offset+30] ^= 0xff; return b })
	out, r, err := repair(t, surgery.DB{Previous: true}, dir, nil)
	ok(t, err)
	db, err = dumpdb.Open(dbOf(out))
	ok(t, err)
	defer db.Close()
	a, err := db.Auth()
	if err != nil || a.Revision != 9 || !db.Metas()[0].Valid || !db.Metas()[1].Valid ||
		!slices.Contains(r.Cured, "D01") {
		t.Errorf("auth revision %d, %v, metas %+v; %+v", a.Revision, err, db.Metas(), r)
	}
}

// TestBackupStaysABackup: a rebuilt backup has a trailer that fits.
func TestBackupStaysABackup(t *testing.T) {
	src := filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db")
	evidencetest.Unchanged(t, src)
	out, r, err := repair(t, surgery.DB{}, src, nil)
	ok(t, err)
	db, err := dumpdb.Open(out)
	ok(t, err)
	defer db.Close()
	tr, err := db.Trailer()
	if err != nil || tr.State != "match" || r.Kind != "backup" {
		t.Errorf("trailer %+v, %v; %+v", tr, err, r)
	}
	if want := int64(db.Meta().HighWater)*int64(db.PageSize()) + 32; db.Size() != want {
		t.Errorf("%d bytes, want %d, as snapshot save writes it", db.Size(), want)
	}
}

// TestMissingBucketIsLost: a file shows nothing of the rows of a bucket that it lacks, so they are lost.
func TestMissingBucketIsLost(t *testing.T) {
	without := func(name string) string {
		out := evidencetest.Copy(t, dbOf(filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")))
		ok(t, datadir.EditNew(out, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(name)) }))
		ok(t, datadir.EditNew(out, datadir.PutBucketKey("other", []byte("k"), nil)))
		return out
	}
	for _, name := range []string{"auth", "authUsers", "members_removed"} {
		refuses(t, surgery.DB{}, without(name), nil, surgery.AcceptDivergence, "bucket "+name+" is missing")
	}
	_, r, err := repair(t, surgery.DB{}, without("auth"), nil, surgery.AcceptDivergence)
	if err != nil || !slices.Contains(r.GivesUp, "a part of bucket auth: 0 rows could be read") {
		t.Errorf("%v, %+v", err, r)
	}
	if _, _, err := repair(t, surgery.DB{}, without("key"), nil); err == nil ||
		!strings.Contains(err.Error(), "all records of bucket key are in no page") {
		t.Errorf("without bucket key: %v", err)
	}
}

// TestIncidents runs on real damage.
func TestIncidents(t *testing.T) {
	pages := evidencetest.Incident(t, "f-bbolt-page-corruption")
	torn := evidencetest.Incident(t, "e-torn-wal-tail")
	evidencetest.Unchanged(t, pages, torn)
	n := func(root, name string) string { return filepath.Join(root, name) }
	out, r, err := repair(t, surgery.DB{}, n(pages, "node1"), []string{n(pages, "node2"), n(pages, "node3")})
	ok(t, err)
	want, _ := etcdHash(t, dbOf(n(pages, "node2")))
	if got, _ := etcdHash(t, dbOf(out)); got != want || r.Before.Class != "db-damage" || r.After.Class != "healthy" ||
		!slices.Contains(r.Cured, "D02") {
		t.Errorf("hash %d, want %d: %+v", got, want, r)
	}
	out, r, err = repair(t, surgery.DB{}, n(pages, "node1"), nil)
	ok(t, err)
	if got, _ := etcdHash(t, dbOf(out)); got != want || r.After.Class != "healthy" || len(r.GivesUp) != 0 {
		t.Errorf("from its own log: hash %d, want %d: %+v", got, want, r)
	}
	_, r, err = repair(t, surgery.WAL{}, n(torn, "node2"), []string{n(torn, "node1"), n(torn, "node3")})
	ok(t, err)
	if r.Before.Class != "wal-damage" || r.After.Class != "healthy" || len(r.GivesUp) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestDBSweep spoils one page after the other of real databases, compacted ones among them: the result holds what was
// there, or the repair is refused; keys never go silently.
func TestDBSweep(t *testing.T) {
	whole, refusals := 0, 0
	for _, incident := range []string{"l-compaction-skew", "m-healthy-3.7"} {
		root := filepath.Join(evidencetest.Incident(t, incident), "node1")
		peer := filepath.Join(evidencetest.Incident(t, incident), "node2")
		db, err := dumpdb.Open(dbOf(root))
		ok(t, err)
		var pages []uint64
		for p, err := range db.Pages(context.Background()) {
			ok(t, err)
			if p.State == dumpdb.PageReachable {
				pages = append(pages, p.Page)
			}
		}
		want, err := db.HashKV(context.Background(), 0)
		ok(t, err)
		ok(t, db.Close())
		for i := 0; i < len(pages); i += max(1, len(pages)/3) {
			dir := evidencetest.Copy(t, root)
			rewrite(t, dbOf(dir), zeros(int(pages[i])*4096+16, 2000))
			for _, with := range [][]string{nil, {peer}} {
				out, r, err := repair(t, surgery.DB{}, dir, with)
				var refused *refusal.Error
				if errors.As(err, &refused) {
					refusals++
					continue
				}
				ok(t, err)
				whole++
				db, err := dumpdb.Open(dbOf(out))
				ok(t, err)
				if got, err := db.HashKV(context.Background(), 0); err != nil || got != want {
					t.Errorf("%s, page %d, with %d others: %+v, %v, want %+v; %+v", incident, pages[i], len(with), got,
						err, want, r)
				}
				ok(t, db.Close())
			}
		}
	}
	if whole < 3 {
		t.Errorf("%d repaired, %d refused", whole, refusals)
	}
}

// TestBackupIsNotCertified: what is rebuilt of a backup whose trailer does not fit has no trailer. Its bytes have
// changed since it was saved, here those of a value, and a new sum would prove them.
func TestBackupIsNotCertified(t *testing.T) {
	src := filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")
	evidencetest.Unchanged(t, src)
	out, r, err := repair(t, surgery.DB{}, src, nil)
	ok(t, err)
	db, err := dumpdb.Open(out)
	ok(t, err)
	defer db.Close()
	tr, err := db.Trailer()
	if err != nil || tr.State != "absent" {
		t.Errorf("trailer %+v, %v", tr, err)
	}
	if r.After.Class != "backup-unverifiable" || len(r.GivesUp) != 1 || !r.Unchanged || len(r.Cured) != 0 {
		t.Errorf("%+v", r)
	}
}

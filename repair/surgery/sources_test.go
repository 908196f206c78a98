package surgery_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// TestSources: which sources a repair takes, and where its result may be.
func TestSources(t *testing.T) {
	root := evidencetest.Incident(t, "m-healthy-3.6")
	evidencetest.Unchanged(t, root)
	node := filepath.Join(root, "node1")
	snaps, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1", "member", "snap", "*.snap"))
	ok(t, err)
	if len(snaps) == 0 {
		t.Fatal("no .snap file")
	}
	exists := t.TempDir()
	auth := uint64(9)
	for name, c := range map[string]struct {
		c      surgery.Change
		source string
		out    string
		says   string
	}{
		"a set":             {surgery.WAL{}, root, "", "holds several members"},
		"no source":         {surgery.WAL{}, filepath.Join(root, "none"), "", "none"},
		"a .snap file":      {surgery.WAL{}, snaps[0], "", "a source of kind snap"},
		"no database":       {surgery.DB{}, filepath.Join(node, "member", "wal"), "", "has no database"},
		"no earlier one":    {surgery.DB{Previous: true}, filepath.Join(node, "member", "wal"), "", "has no database"},
		"no meta":           {surgery.Meta{AuthRevision: &auth}, filepath.Join(node, "member", "wal"), "", "has no database"},
		"no log":            {surgery.WAL{}, dbOf(node), "", "has no log"},
		"no .snap files":    {surgery.Meta{DropV2: true}, dbOf(node), "", "has no .snap files"},
		"nothing to change": {surgery.Meta{}, node, "", "nothing would change"},
		"over a folder":     {surgery.DB{}, node, exists, "already exists"},
		"into the source":   {surgery.DB{}, node, filepath.Join(node, "new"), "is inside the source"},
	} {
		o := surgery.Options{Source: spec(c.source), Out: c.out}
		if o.Out == "" {
			o.Out = filepath.Join(t.TempDir(), "new")
		}
		_, err := surgery.Run(t.Context(), o, c.c)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(o.Out + "*"); c.out == "" && len(left) > 0 {
			t.Errorf("%s: left behind %v", name, left)
		}
	}
}

// TestSinglePartStays: a WAL folder and a db file keep their form.
func TestSinglePartStays(t *testing.T) {
	l := writeLogs(t)
	wal := filepath.Join(evidencetest.Copy(t, l.dirs[0]), "member", "wal")
	segments, err := filepath.Glob(filepath.Join(wal, "*.wal"))
	ok(t, err)
	rewrite(t, segments[1], zeros(3000, 100))
	evidencetest.Unchanged(t, wal)
	out, r, err := repair(t, surgery.WAL{}, wal, l.dirs[1:])
	ok(t, err)
	made, err := filepath.Glob(filepath.Join(out, "*.wal"))
	if err != nil || len(made) == 0 || r.Kind != evidence.KindWAL || len(r.Did) == 0 {
		t.Errorf("%v, %v, %+v", made, err, r)
	}
	if _, err := os.Stat(filepath.Join(out, "member")); err == nil {
		t.Error("a WAL folder became a data dir")
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{spec(out)}, evidence.Options{})
	ok(t, err)
	defer set.Close()
	if m := set.Members[0]; m.LastIndex() != l.ents[len(l.ents)-1].Index || len(m.WAL.Summary.Damage) > 0 {
		t.Errorf("the log ends at %d: %+v", m.LastIndex(), m.WAL.Summary.Damage)
	}
	auth := uint64(77)
	out, r, err = repair(t, surgery.Meta{AuthRevision: &auth}, dbOf(l.dirs[0]), nil, surgery.AcceptDivergence)
	ok(t, err)
	db, err := dumpdb.Open(out)
	ok(t, err)
	defer db.Close()
	if a, err := db.Auth(); err != nil || a.Revision != 77 || r.Kind != evidence.KindDB {
		t.Errorf("%+v, %v, %+v", a, err, r)
	}
}

// TestAuthRevisionOfOthers: where the log does not tell the auth revision, all other members have to have it.
func TestAuthRevisionOfOthers(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 3, Value: 10}.Write(t, t.TempDir())
	file := func(name string, member int, revision uint64) string {
		path := filepath.Join(t.TempDir(), name)
		ok(t, datadir.CopyDB(t.Context(), path, dbOf(dirs[member]), datadir.SetAuthRevision(revision)))
		evidencetest.Unchanged(t, path)
		return path
	}
	source, nine, eight, alike := file("a", 0, 5), file("b", 1, 9), file("c", 2, 8), file("c", 2, 9)
	to := uint64(9)
	set := surgery.Meta{AuthRevision: &to}
	_, r, err := repair(t, set, source, []string{nine, alike})
	ok(t, err)
	if !slices.Contains(r.Notes, "the other members have 9 too") ||
		!slices.Contains(r.Did, "auth/authRevision is set from 5 to 9") {
		t.Errorf("%+v", r)
	}
	refuses(t, set, source, []string{nine, eight}, surgery.AcceptDivergence, "do not agree on 9")
	refuses(t, set, source, []string{eight}, surgery.AcceptDivergence, "do not agree on 9")
	refuses(t, set, source, nil, surgery.AcceptDivergence, "do not agree on 9")
	five := uint64(5)
	refuses(t, surgery.Meta{AuthRevision: &five}, source, nil, "", "is 5 already")
}

// TestStorageVersionIsRaised: a server of 3.6 takes a database only with the term and the ConfState that 3.5 writes.
func TestStorageVersionIsRaised(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 10}.Write(t, t.TempDir())[0]
	conf, term := datadir.SetConfState([]uint64{1}, nil), datadir.SetTerm(2)
	at := func(cluster string, edits ...datadir.Edit) string {
		return withEdits(t, dir, append(edits, datadir.SetClusterVersion(cluster), datadir.SetStorageVersion(""))...)
	}
	version := "3.6.0"
	set := surgery.Meta{StorageVersion: &version}
	out, _, err := repair(t, set, at("3.6.0", conf, term), nil)
	ok(t, err)
	db, err := dumpdb.Open(dbOf(out))
	ok(t, err)
	defer db.Close()
	if m, err := db.MetaBucket(); err != nil || m.StorageVersion != version {
		t.Errorf("%+v, %v", m, err)
	}
	refuses(t, set, at("3.6.0", term, datadir.SetConfState(nil, nil)), nil, "", "without meta/term and meta/confState")
	refuses(t, set, at("3.6.0", conf, datadir.SetTerm(0)), nil, "", "without meta/term and meta/confState")
	refuses(t, set, at("3.5.0", conf, term), nil, "", "do not start on storage version 3.6.0")
	refuses(t, set, at("3.7.0", conf, term), nil, surgery.AcceptDivergence, "servers of an older line")
}

// rows fills a bucket so far that it has pages of its own.
func rows(t *testing.T, bucket string, from, n int) datadir.Edit {
	t.Helper()
	return func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		for i := from; i < from+n; i++ {
			id := binary.BigEndian.AppendUint64(nil, uint64(i))
			value := append([]byte{8}, binary.AppendUvarint(nil, uint64(i))...)
			err = errors.Join(err, b.Put(id, append(value, 16, 100)))
		}
		return err
	}
}

// pagesOf are the pages of a bucket of the newest transaction.
func pagesOf(t *testing.T, path, bucket string) (ids []uint64) {
	t.Helper()
	db, err := dumpdb.Open(path)
	ok(t, err)
	defer db.Close()
	for p, err := range db.Pages(t.Context()) {
		ok(t, err)
		if p.Bucket == bucket && p.State == dumpdb.PageReachable {
			ids = append(ids, p.Page)
		}
	}
	if len(ids) == 0 {
		t.Fatalf("bucket %s has no pages", bucket)
	}
	return ids
}

// TestDamagedSmallBucket: the rows come from the transaction before, else from the log. Without both a part is given
// up, and without a consistent index the database.
func TestDamagedSmallBucket(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 200, Keys: 10, Value: 30}.Write(t, t.TempDir())[0]
	touch := datadir.PutBucketKey("other", []byte("k"), nil)
	damaged := func(bucket string, edits ...datadir.Edit) string {
		out := evidencetest.Copy(t, dir)
		for _, e := range edits {
			ok(t, datadir.EditNew(dbOf(out), e))
		}
		pages := pagesOf(t, dbOf(out), bucket)
		rewrite(t, dbOf(out), func(b []byte) []byte {
			for _, p := range pages {
				clear(b[p*4096+16 : (p+1)*4096])
			}
			return b
		})
		evidencetest.Unchanged(t, out)
		return out
	}
	has := func(list []string, text string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, text) })
	}
	leases := func(path string) int {
		db, err := dumpdb.Open(path)
		ok(t, err)
		defer db.Close()
		list, err := db.Leases()
		ok(t, err)
		return len(list)
	}
	last := damaged("lease", rows(t, "lease", 1, 100), rows(t, "lease", 101, 1))
	out, r, err := repair(t, surgery.DB{}, dbOf(last), nil)
	ok(t, err)
	if n := leases(out); n != 100 || !has(r.GivesUp, "what the last transaction changed in bucket lease") {
		t.Errorf("%d leases, %q", n, r.GivesUp)
	}
	both := damaged("lease", rows(t, "lease", 1, 100), touch, touch)
	out, r, err = repair(t, surgery.DB{}, both, nil)
	ok(t, err)
	if n := leases(dbOf(out)); n != 0 || !has(r.Did, "bucket lease is what a replay of the log gives") ||
		r.After.Health != check.Healthy {
		t.Errorf("%d leases, did %q, after %+v", n, r.Did, r.After)
	}
	refuses(t, surgery.DB{}, dbOf(both), nil, surgery.AcceptDivergence, "bucket lease is damaged, and the previous")
	_, r, err = repair(t, surgery.DB{}, dbOf(both), nil, surgery.AcceptDivergence)
	if err != nil || !has(r.GivesUp, "a part of bucket lease: 0 rows could be read") {
		t.Errorf("%v, %+v", err, r)
	}
	meta := damaged("meta", rows(t, "meta", 1, 300), touch, touch)
	refuses(t, surgery.DB{}, dbOf(meta), nil, "", "consistent index of")
	// Buckets that etcd does not know stay, as far as they can be read.
	out, r, err = repair(t, surgery.DB{}, dbOf(damaged("lease", rows(t, "zzz", 1, 100), rows(t, "lease", 1, 100),
		rows(t, "lease", 101, 1))), nil)
	ok(t, err)
	db, err := dumpdb.Open(out)
	ok(t, err)
	defer db.Close()
	n := 0
	for _, err := range db.Rows("zzz") {
		ok(t, err)
		n++
	}
	if n != 100 || has(r.GivesUp, "zzz") {
		t.Errorf("%d rows of bucket zzz, %q", n, r.GivesUp)
	}
	_, r, err = repair(t, surgery.DB{}, dbOf(damaged("zzz", rows(t, "zzz", 1, 100), touch, touch)), nil)
	if err != nil || !has(r.GivesUp, "a part of bucket zzz, which etcd does not use") {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestNoPreviousTransaction: the one before is older than the first applied entry.
func TestNoPreviousTransaction(t *testing.T) {
	var refused *refusal.Error
	path := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 10}.WriteDB(t, path)
	ok(t, datadir.EditNew(path, datadir.DropBucketKeys("meta", []byte("consistent_index"))))
	ok(t, datadir.EditNew(path, datadir.SetConsistentIndex(21)))
	if _, _, err := repair(t, surgery.DB{Previous: true}, path, nil); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "older than the first applied entry") {
		t.Errorf("no index before: %v", err)
	}
}

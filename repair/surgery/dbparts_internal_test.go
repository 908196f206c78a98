package surgery

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// transactions writes a database at an entry whose revisions up to a last one have 1 to 6 records, so that pages end
// inside of them.
func transactions(t *testing.T, path string, index uint64, last int64) {
	t.Helper()
	var rows []pair
	for rev := int64(2); rev <= last; rev++ {
		for sub := range rev%6 + 1 {
			at := dumpdb.Rev{Main: rev, Sub: sub}
			v, err := (&mvccpb.KeyValue{Key: []byte("k" + at.String()), Value: bytes.Repeat([]byte{'v'}, 900),
				ModRevision: rev, CreateRevision: rev, Version: 1}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, pair{at.Bytes(), v})
		}
	}
	all := map[string][]pair{"key": rows,
		"meta": {{[]byte("consistent_index"), binary.BigEndian.AppendUint64(nil, index)}}}
	for _, name := range smallBuckets[1:] {
		all[name] = nil
	}
	buckets(t, path, all)
}

// TestRecordsOfTransactions: a page may hold the last records of a transaction, whose other records are in the page
// before. Every revision is found without it, and nothing in the file shows the loss. An older copy of the cluster
// shows no loss either where it does not reach the page.
func TestRecordsOfTransactions(t *testing.T) {
	dir := t.TempDir()
	whole, older := filepath.Join(dir, "whole.db"), filepath.Join(dir, "older.db")
	transactions(t, whole, 40, 31)
	transactions(t, older, 20, 16)
	file, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	want, err := db.HashKV(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var pages []uint64
	for r, err := range db.Rows("key") {
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(pages, r.Page) {
			pages = append(pages, r.Page)
		}
	}
	results := map[string]int{}
	for _, p := range pages {
		bad := filepath.Join(t.TempDir(), "bad.db")
		damaged := slices.Clone(file)
		copy(damaged[int(p)*db.PageSize():], make([]byte, db.PageSize()))
		if err := os.WriteFile(bad, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, with := range []string{"", older, whole} {
			o := Options{Source: evidence.Spec{Where: bad}, Out: filepath.Join(t.TempDir(), "new.db")}
			if with != "" {
				o.With = []evidence.Spec{{Where: with}}
			}
			r, err := Run(t.Context(), o, DB{})
			var refused *refusal.Error
			if errors.As(err, &refused) && with != whole {
				results["refused with "+filepath.Base(with)]++
				if refused.Flag != AcceptLostRevisions {
					t.Errorf("page %d with %q: %v", p, with, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("page %d with %q: %v", p, with, err)
				continue
			}
			made, err := dumpdb.Open(o.Out)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := made.HashKV(t.Context(), 0); err != nil || got != want {
				t.Errorf("page %d with %q: %+v, %v, want %+v; %+v", p, with, got, err, want, r)
			}
			if err := made.Close(); err != nil {
				t.Fatal(err)
			}
			results["whole with "+filepath.Base(with)]++
		}
	}
	if results["whole with whole.db"] != len(pages) || results["whole with older.db"] < 3 ||
		results["refused with older.db"] < 3 {
		t.Errorf("%d pages: %v", len(pages), results)
	}
}

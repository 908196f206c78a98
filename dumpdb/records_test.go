package dumpdb

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// hashedRow is one record; hashedFrom is the compact revision of the database that holds it.
type hashedRow struct {
	rev   Rev
	key   string
	value string
	del   bool
	// counts is true for what the content hash looks at.
	counts bool
}

const hashedFrom = 6

// hashesOf writes the rows to a new database in the order given and returns both hashes.
func hashesOf(t *testing.T, rows []hashedRow, order func(int) int) (records, content string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	bolt, err := bbolt.Open(path, 0o600, nil)
	fatal(t, err)
	for i := range rows {
		r := rows[order(i)]
		fatal(t, bolt.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			meta, err := tx.CreateBucketIfNotExists([]byte("meta"))
			if err != nil {
				return err
			}
			kv := mvccpb.KeyValue{Key: []byte(r.key), Value: []byte(r.value), ModRevision: r.rev.Main,
				CreateRevision: r.rev.Main, Version: 1}
			at := r.rev.Bytes()
			if r.del {
				kv, at = mvccpb.KeyValue{Key: []byte(r.key), Value: []byte(r.value)}, append(at, 't')
			}
			data, err := kv.Marshal()
			if err != nil {
				return err
			}
			if err := meta.Put([]byte("scheduledCompactRev"), Rev{Main: hashedFrom}.Bytes()); err != nil {
				return err
			}
			return b.Put(at, data)
		}))
	}
	fatal(t, bolt.Close())
	in, err := open(t, path).Inspect(context.Background())
	fatal(t, err)
	return in.RecordsHash, in.Hashes["key"]
}

// TestRecordsHash: the hash of all records sees a change of any of them, also of those that a compaction would remove,
// and the content hash of those that count only; how the rows came into the file changes neither.
func TestRecordsHash(t *testing.T) {
	rows := []hashedRow{
		{rev: Rev{Main: 2}, key: "a", value: "1"},
		{rev: Rev{Main: 3}, key: "a", value: "2", counts: true},
		{rev: Rev{Main: 4}, key: "b", value: "1"},
		{rev: Rev{Main: 5}, key: "b", del: true},
		{rev: Rev{Main: 6}, key: "c", value: "1", counts: true},
		{rev: Rev{Main: 7}, key: "c", value: "2", counts: true},
		{rev: Rev{Main: 8}, key: "c", del: true, counts: true},
	}
	forward := func(i int) int { return i }
	records, content := hashesOf(t, rows, forward)
	if records == "" || content == "" || records == content {
		t.Fatalf("hash of the records %q, of the content %q", records, content)
	}
	if r, c := hashesOf(t, rows, func(i int) int { return len(rows) - 1 - i }); r != records || c != content {
		t.Error("the order of writing changes a hash")
	}
	for i, r := range rows {
		changed := append([]hashedRow(nil), rows...)
		changed[i].value += "x"
		rec, con := hashesOf(t, changed, forward)
		if rec == records {
			t.Errorf("a change of %v does not show in the hash of the records", r.rev)
		}
		if (con == content) == r.counts {
			t.Errorf("a change of %v shows in the content hash: %v, want %v", r.rev, con != content, r.counts)
		}
		if rec, _ = hashesOf(t, append(append([]hashedRow(nil), rows[:i]...), rows[i+1:]...), forward); rec == records {
			t.Errorf("the lack of %v does not show in the hash of the records", r.rev)
		}
	}
}

// TestHashUntil: the content hash at every revision back to the compact one, by taking off what lies above, is what
// reading up to there gives.
func TestHashUntil(t *testing.T) {
	ctx, hashes := context.Background(), 0
	for _, name := range []string{"k-lagging-node", "l-compaction-skew"} {
		paths, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, name), "node*", "member", "snap", "db"))
		fatal(t, err)
		for _, path := range paths {
			db := open(t, path)
			in, err := db.Inspect(ctx)
			fatal(t, err)
			seen := map[string]bool{}
			for rev := max(1, in.KV.CompactRev); rev <= in.KV.CurrentRev; rev++ {
				want, err := db.ContentHash(ctx, -1, rev)
				fatal(t, err)
				got, err := in.Content.HashUntil(ctx, db, rev)
				fatal(t, err)
				if got != want {
					t.Errorf("%s: revision %d: %s, want %s", path, rev, got, want)
				}
				seen[got] = true
			}
			hashes += len(seen)
			if _, err := in.Content.HashUntil(ctx, db, in.KV.CurrentRev+1); !errors.Is(err, ErrFutureRev) {
				t.Error(err)
			}
			if _, err := in.Content.HashUntil(ctx, db, in.KV.CompactRev-1); !errors.Is(err, ErrCompacted) {
				t.Error(err)
			}
		}
	}
	if hashes < 300 {
		t.Errorf("%d hashes", hashes)
	}
}

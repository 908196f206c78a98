package extract_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// grant puts a lease into a closed database.
func grant(t testing.TB, path string, id uint64, ttl int64) {
	t.Helper()
	b, err := (&leasepb.Lease{ID: int64(id), TTL: ttl}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	putRow(t, path, "lease", binary.BigEndian.AppendUint64(nil, id), b)
}

// putRow puts a row into a bucket of a closed database.
func putRow(t testing.TB, path, bucket string, key, value []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, value) })
	if err != nil {
		t.Fatal(err)
	}
}

// damaged is a copy of a database with a page zeroed, a page header made random, the end cut off, or the meta pages and
// another one zeroed.
func damaged(raw []byte, i int, rnd *rand.Rand) []byte {
	b := append([]byte{}, raw...)
	page := (2 + rnd.IntN(len(b)/4096-2)) * 4096
	switch i % 4 {
	case 0:
		clear(b[page : page+4096])
	case 1:
		for j := range 16 {
			b[page+j] = byte(rnd.Uint32())
		}
	case 2:
		b = b[:len(b)*(i+1)/49]
	case 3:
		clear(b[:8192])
		clear(b[page : page+4096])
	}
	return b
}

// TestDamageIsTold destroys pages, bytes and tails: either the extract is what it was, or it says that something is
// lost. A key that it does give has a value that some record of it really had.
func TestDamageIsTold(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	states := history(t, path, 400)
	had := map[[2]string]bool{}
	for _, state := range states {
		for _, k := range state {
			had[[2]string{k.Key, k.Value}] = true
		}
	}
	good := filepath.Join(dir, "good")
	run(t, path, extract.Options{Format: extract.JSONL, Out: good})
	want := lines(t, good)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	same, told := 0, 0
	for i := range 48 {
		b := damaged(raw, i, rnd)
		bad := filepath.Join(dir, "bad")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, o := range []extract.Options{{Format: extract.JSONL}, {Format: extract.JSONL, Salvage: true},
			{Format: extract.Backup}} {
			o.Out = filepath.Join(t.TempDir(), "out")
			res, err := extract.Run(context.Background(), bad, o)
			if err != nil {
				if i%4 != 2 {
					t.Fatalf("damage %d: %v", i, err)
				}
				told++ // too short for any page: no database at all
				continue
			}
			if res.Short() {
				told++
			} else {
				same++
			}
			if o.Format != extract.JSONL || res.Empty() {
				continue
			}
			got := lines(t, o.Out)
			if !res.Short() {
				if d := cmp.Diff(want, got, noOrigin); d != "" {
					t.Fatalf("damage %d is not told:\n%s", i, d)
				}
			}
			for _, l := range got {
				if !had[[2]string{string(l.Key), string(l.Value)}] {
					t.Fatalf("damage %d: %q never had the value given", i, l.Key)
				}
			}
		}
	}
	if same == 0 || told == 0 {
		t.Errorf("%d without effect, %d told: the sweep shows nothing", same, told)
	}
}

// TestSalvage gets all records of leaves that no longer say which page they are.
func TestSalvage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	history(t, path, 400)
	good, out := filepath.Join(dir, "good"), filepath.Join(dir, "out")
	run(t, path, extract.Options{Format: extract.JSONL, Out: good})
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var leaf int64
	for p, err := range db.Pages(context.Background()) {
		if err == nil && p.Bucket == "key" && p.Type == "leaf" {
			leaf = p.Offset
		}
	}
	_ = db.Close()
	b, err := os.ReadFile(path)
	if err != nil || leaf == 0 {
		t.Fatal(err, leaf)
	}
	b[leaf+3] ^= 0x40
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := run(t, path, extract.Options{Format: extract.JSONL})
	salvaged := run(t, path, extract.Options{Format: extract.JSONL, Salvage: true, Out: out})
	// Not their numbers of keys: without the leaf keys are missing, and others live whose tombstone was in it.
	if !plain.Short() || len(plain.Lost.Damage) == 0 || salvaged.Salvaged == 0 || !salvaged.Short() {
		t.Errorf("plain %+v\nsalvaged %+v", plain, salvaged)
	}
	if d := cmp.Diff(lines(t, good), lines(t, out), noOrigin); d != "" {
		t.Errorf("(-good +salvaged)\n%s", d)
	}
	backup := filepath.Join(dir, "backup")
	soundBackup(t, backup, run(t, path, extract.Options{Format: extract.Backup, Salvage: true, Out: backup}))
}

var noOrigin = cmpopts.IgnoreFields(line{}, "Origin")

// TestNoMeta reads a file whose meta pages are both damaged from its other pages, and reports that once.
func TestNoMeta(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 60)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw[:8192])
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var last int64
	for rev := range states {
		last = max(last, rev)
	}
	for _, o := range []extract.Options{{Format: extract.JSONL}, {Format: extract.JSONL, History: true},
		{Format: extract.Backup}} {
		res := run(t, path, o)
		if len(res.Lost.Damage) != 1 || !res.Short() || len(res.Notes) != 1 || res.CompactRevision != -1 ||
			res.Revision != last || res.Salvaged != res.Records || res.Empty() {
			t.Errorf("%s, history %v: %+v", o.Format, o.History, res)
		}
	}
}

// TestOddRows: a record that does not decode is counted and left out, one without a key is the mark of a restore, and
// a lease that does not decode is damage. A sum that does not fit is said.
func TestOddRows(t *testing.T) {
	path := smallDB(t)
	at := func(main int64) []byte { return dumpdb.Rev{Main: main}.Bytes() }
	putRow(t, path, "key", at(7), []byte("\x0a\x01a\xff"))
	putRow(t, path, "key", at(8), nil)
	putRow(t, path, "lease", []byte("short"), nil)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	for trailer, c := range map[string]struct {
		sum  []byte
		want string
	}{"none": {}, "match": {sum: sum[:]}, "mismatch": {make([]byte, 32), "mismatch"}} {
		if err := os.WriteFile(path, append(b[:len(b):len(b)], c.sum...), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, o := range []extract.Options{{Format: extract.JSONL}, {Format: extract.Backup},
			{Format: extract.JSONL, History: true}} {
			records := int64(3)
			if o.History {
				records = 5
			}
			res := run(t, path, o)
			if res.Lost.Undecodable != 1 || res.Records != records || res.Revision != 8 ||
				res.Lost.Trailer != c.want || len(res.Lost.Damage) != 1 || res.Lost.Damage[0].Bucket != "lease" ||
				res.Leases.Unknown != 1 {
				t.Errorf("%s, %s, history %v: %+v", trailer, o.Format, o.History, res)
			}
		}
	}
}

// TestBackupOfDamagedSmallBucket: rows that can be read are carried, and the others are said to be lost.
func TestBackupOfDamagedSmallBucket(t *testing.T) {
	path := smallDB(t)
	for id := range uint64(200) {
		grant(t, path, 0x1000+id, 500)
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var leaf uint64
	for row, err := range db.Rows("lease") {
		if err != nil {
			t.Fatal(err)
		}
		leaf = row.Page
	}
	size := int64(db.PageSize())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[int64(leaf)*size : (int64(leaf)+1)*size])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	res := run(t, path, extract.Options{Format: extract.Backup, Out: out})
	soundBackup(t, out, res)
	leases := 0
	for _, row := range smallRows(t, out) {
		if strings.HasPrefix(row, "lease/") {
			leases++
		}
	}
	if len(res.Lost.Damage) != 1 || res.Lost.Damage[0].Bucket != "lease" || leases == 0 || leases > 199 ||
		res.Keys != 3 {
		t.Errorf("%d leases, %+v", leases, res)
	}
}

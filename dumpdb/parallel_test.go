package dumpdb

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// The parallel walk gives what the sequential one gives, on a tree high enough to be shared out.
func TestOracleParallel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	fatal(t, writeBenchDB(path, 3000, 40000, 300))
	db := open(t, path)
	b, _ := db.find("key")
	r := db.reader()
	if depth := r.leafDepth(b.Root); depth < 2 {
		t.Fatalf("the tree has only %d levels", depth+1)
	}
	ctx := context.Background()
	sum := func() (*Inspection, HashKV) {
		in, err := db.Inspect(ctx)
		fatal(t, err)
		h, err := db.HashKV(ctx, 20000)
		fatal(t, err)
		return in, h
	}
	in, h := sum()
	var seqIn *Inspection
	var seqH HashKV
	onOneCore(func() { seqIn, seqH = sum() })
	if diff := cmp.Diff(seqIn, in); diff != "" || h != seqH {
		t.Errorf("parallel differs: %s %v %v", diff, h, seqH)
	}
	cur, err := db.CurrentRev()
	fatal(t, err)
	want := hashOracle(t, evidencetest.Copy(t, path), []int64{0, 20000, cur})
	if want[20000] != h || want[0] != in.HashKV || in.HashKV.Rev != cur {
		t.Errorf("server %v, ours %v %v", want, in.HashKV, h)
	}
	if in.KV.Revisions != 40000 || in.KV.LiveKeys != 3000 || len(in.KV.Violations) > 0 {
		t.Errorf("%+v", in.KV)
	}
}

// Damage in a big tree gives the same report on one core and on all, and only the rows below the bad page are missing.
func TestOracleParallelDamage(t *testing.T) {
	path, err := smallTree(t)
	fatal(t, err)
	sound, err := os.ReadFile(path)
	fatal(t, err)
	whole, err := open(t, path).Inspect(context.Background())
	fatal(t, err)
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 25 {
		b := bytes.Clone(sound)
		page := 2 + rnd.IntN(int(whole.Pages.Pages)-2)
		clear(b[page*4096 : page*4096+1+rnd.IntN(4095)])
		db, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		many, err := db.Inspect(context.Background())
		fatal(t, err)
		var one *Inspection
		onOneCore(func() { one, err = db.Inspect(context.Background()) })
		fatal(t, err)
		same := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
		if diff := cmp.Diff(one, many, same); diff != "" {
			t.Errorf("page %d zeroed: %s", page, diff)
		}
		if one.KV.Revisions < whole.KV.Revisions &&
			(len(one.Pages.Damage) == 0 || one.KVErr == nil || one.HashErr == nil) {
			t.Errorf("page %d zeroed: %d of %d records and %v", page, one.KV.Revisions, whole.KV.Revisions,
				one.Pages.Damage)
		}
		found := int64(0)
		for _, err := range db.SalvageRevisions(context.Background()) {
			if err == nil {
				found++
			}
		}
		if found < one.KV.Revisions {
			t.Errorf("page %d zeroed: salvage finds %d records, the tree has %d", page, found, one.KV.Revisions)
		}
	}
}

// TestNewest: on one core and on all, each key that is asked for comes with its newest record that counts, in the
// newest part that has any record of it.
func TestNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	fatal(t, writeBenchDB(path, 3000, 40000, 300))
	db := open(t, path)
	keys, want := map[string]struct{}{"/none": {}}, map[string]int64{}
	even := func(r *Revision) (int64, bool) { return r.KV.Version, r.KV.Version%2 == 0 }
	last, err := db.lastRev()
	fatal(t, err)
	part := func(r *Revision) int {
		switch {
		case r.Main >= last-last/32:
			return 2
		case r.Main >= last-last/4:
			return 1
		}
		return 0
	}
	n, at := 0, map[string]int{}
	for r, err := range db.Revisions() {
		fatal(t, err)
		key := string(r.KV.Key)
		if n++; n <= 3000 && n%7 == 0 {
			keys[key] = struct{}{}
		}
		if _, ok := keys[key]; !ok {
			continue
		}
		if at[key] != part(&r) {
			delete(want, key)
		}
		if at[key] = part(&r); r.KV.Version%2 == 0 {
			want[key] = r.KV.Version
		}
	}
	many, err := Newest(t.Context(), db, keys, even)
	fatal(t, err)
	var one map[string]int64
	onOneCore(func() { one, err = Newest(t.Context(), db, keys, even) })
	fatal(t, err)
	if len(want) < 300 || len(want) == len(keys) || !cmp.Equal(many, want) || !cmp.Equal(one, want) {
		t.Errorf("%d keys on all cores, %d on one, want %d", len(many), len(one), len(want))
	}
	newest := map[string]int64{}
	for _, from := range []int64{last, last - last/8, last / 2, 2} { // in every part that is read
		for r, err := range db.RevisionsBetween(Rev{Main: from}, Rev{Main: from + 1}) {
			fatal(t, err)
			newest[string(r.KV.Key)] = 0
		}
	}
	for r := range db.Revisions() {
		if _, ok := newest[string(r.KV.Key)]; ok {
			newest[string(r.KV.Key)] = r.Main
		}
	}
	for key, rev := range newest {
		got, err := Newest(t.Context(), db, map[string]struct{}{key: {}}, func(r *Revision) (int64, bool) {
			return r.Main, true
		})
		fatal(t, err)
		if got[key] != rev {
			t.Errorf("%s is at %d, want %d", key, got[key], rev)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Newest(ended, db, keys, even); err == nil {
		t.Error("an ended context gives no error")
	}
}

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
	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// keyFacts is all that is found out key by key.
type keyFacts struct {
	Inspection *Inspection
	Stats      *KVStats
	Hash       HashKV
	Content    string
	Salvaged   map[Origin]int
	Errs       []string
}

// keyFactsOf reads a database with passes that keep up to maxKeys keys.
func keyFactsOf(t *testing.T, db *DB, maxKeys int) keyFacts {
	t.Helper()
	db.maxKeys = maxKeys
	ctx := context.Background()
	f := keyFacts{Salvaged: map[Origin]int{}}
	errs := make([]error, 4)
	f.Inspection, errs[0] = db.Inspect(ctx)
	f.Stats, errs[1] = db.KVStats(ctx)
	rev, comp := f.Stats.CurrentRev, max(f.Stats.CompactRev, 0)
	f.Hash, errs[2] = db.HashKV(ctx, comp+(rev-comp)/2)
	f.Content, errs[3] = db.ContentHash(ctx, comp+(rev-comp)/3, rev-(rev-comp)/3)
	for r, err := range db.SalvageRevisions(ctx) {
		if err == nil {
			f.Salvaged[r.Origin]++
		}
	}
	for _, err := range errs {
		f.Errs = append(f.Errs, fmt.Sprint(err))
	}
	return f
}

// sameInParts wants the same facts of a database when a pass keeps this part of its keys only.
func sameInParts(t *testing.T, db *DB, parts ...int64) keyFacts {
	t.Helper()
	want := keyFactsOf(t, db, 0)
	same := cmp.Options{cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
		cmp.AllowUnexported(Content{}, sums{})}
	for _, n := range parts {
		bound := int(max(2, want.Stats.LiveKeys/n)) // a key can be kept twice
		if diff := cmp.Diff(want, keyFactsOf(t, db, bound), same); diff != "" {
			t.Errorf("%d keys in a pass: %s", bound, diff)
		}
	}
	return want
}

// TestKeysInParts: a bucket with more keys than a pass keeps is read in parts, with the same result.
func TestKeysInParts(t *testing.T) {
	for _, s := range sources(t) {
		t.Run(s.name(), func(t *testing.T) { sameInParts(t, open(t, s.path), 3) })
	}
}

// TestKeysInPartsOfDamage: the same with a damaged page in a tree that is high enough for a parallel walk.
func TestKeysInPartsOfDamage(t *testing.T) {
	path, err := smallTree(t)
	fatal(t, err)
	sound, err := os.ReadFile(path)
	fatal(t, err)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3 {
		b := bytes.Clone(sound)
		page := 2 + rnd.IntN(len(b)/4096-2)
		clear(b[page*4096 : page*4096+1+rnd.IntN(4095)])
		db, err := NewReader(bytes.NewReader(b), int64(len(b)))
		fatal(t, err)
		sameInParts(t, db, 2)
	}
}

// TestImpossibleKeysInParts: random records, nearly all of which break an invariant. A map is the measure for the
// numbers of keys.
func TestImpossibleKeysInParts(t *testing.T) {
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(7, seed))
		path := filepath.Join(t.TempDir(), "db")
		comp := rnd.Int64N(300)
		live := map[string]bool{}
		superseded, strays := int64(0), int64(0)
		writeRandomRecords(t, path, rnd, comp, func(r randomRecord) {
			switch {
			case live[r.key] && r.main <= comp:
				superseded++
			case r.tombstone && r.main < comp && !live[r.key]:
				strays++
			}
			live[r.key] = !r.tombstone
		})
		got := sameInParts(t, open(t, path), 20, 2)
		n := int64(0)
		for _, l := range live {
			if l {
				n++
			}
		}
		if s := got.Stats; s.LiveKeys != n || s.Superseded != superseded || s.Strays != strays ||
			len(s.Violations) == 0 {
			t.Errorf("%d live keys, %d superseded, %d strays, %d violations; want %d, %d, %d, some", s.LiveKeys,
				s.Superseded, s.Strays, len(s.Violations), n, superseded, strays)
		}
		if n := got.Salvaged[OriginLive]; int64(n) != got.Stats.LiveKeys {
			t.Errorf("%d live records are salvaged, of %d", n, got.Stats.LiveKeys)
		}
	}
}

type randomRecord struct {
	main      int64
	key       string
	tombstone bool
}

// writeRandomRecords writes a database of records of few keys, compacted at a revision, and names each.
func writeRandomRecords(t *testing.T, path string, rnd *rand.Rand, comp int64, each func(randomRecord)) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	fatal(t, err)
	fatal(t, db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket([]byte("meta"))
		fatal(t, err)
		fatal(t, meta.Put([]byte("finishedCompactRev"), Rev{Main: comp}.Bytes()))
		b, err := tx.CreateBucket([]byte("key"))
		fatal(t, err)
		for main := int64(2); main < 600; main += 1 + rnd.Int64N(2) {
			for sub := range 1 + rnd.Int64N(3) {
				r := randomRecord{main, fmt.Sprint("k", rnd.IntN(60)), rnd.IntN(4) == 0}
				each(r)
				name := Rev{Main: main, Sub: sub}.Bytes()
				value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), r.key)
				if r.tombstone {
					name = append(name, 't')
				} else {
					for n, v := range []uint64{1 + rnd.Uint64N(uint64(main)), uint64(main), 1 + rnd.Uint64N(3)} {
						value = protowire.AppendVarint(protowire.AppendTag(value, protowire.Number(n+2),
							protowire.VarintType), v)
					}
					value = protowire.AppendVarint(protowire.AppendTag(value, 6, protowire.VarintType), rnd.Uint64N(3))
				}
				fatal(t, b.Put(name, value))
			}
		}
		return nil
	}))
	fatal(t, db.Close())
}

// TestMoreViolationsThanListed: keys without their lease never displace a broken history.
func TestMoreViolationsThanListed(t *testing.T) {
	s := newStatsSink(nil, 0, nil, true)
	keys := &keyResult{}
	for i := range int64(maxViolations + 5) {
		keys.leases.add(Violation{Rev: Rev{Main: i + 1}, Rule: RuleLease})
	}
	keys.chains.add(Violation{Rev: Rev{Main: 1 << 40}, Rule: "version-chain"})
	if st := s.finish(keys); !st.Impossible() || len(st.Violations) != maxViolations || st.MoreViolations != 6 {
		t.Errorf("impossible %v, %d listed, %d more", st.Impossible(), len(st.Violations), st.MoreViolations)
	}
}

package soak

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// oldFaults alter records at or below the compact revision, several records at once, the mark of a tombstone and the
// compaction marks.
var oldFaults = []Fault{
	{Name: "kv-old-version", Apply: alterOld("version", func(kv *mvccpb.KeyValue) { kv.Version += 2 })},
	{Name: "kv-old-create-revision", Apply: alterOld("create revision",
		func(kv *mvccpb.KeyValue) { kv.CreateRevision-- })},
	{Name: "kv-old-lease", Apply: alterOld("lease", func(kv *mvccpb.KeyValue) { kv.Lease ^= 0x1234 })},
	{Name: "kv-old-key-renamed", Apply: alterOld("key", func(kv *mvccpb.KeyValue) { kv.Key = append(kv.Key, 'x') })},
	{Name: "kv-old-key-added", Apply: addOld},
	{Name: "kv-old-superseded-added", Apply: addSuperseded},
	{Name: "kv-tombstone-unmarked", Apply: unmarkTombstone},
	{Name: "kv-live-marked", Apply: markLive},
	{Name: "kv-run-dropped", Apply: dropRun},
	{Name: "kv-bit-flipped", Apply: flipRecord},
	{Name: "compaction-marks-lowered", Apply: lowerMarks(5)},
	{Name: "compaction-marks-dropped", Apply: lowerMarks(0)},
}

// alterOld alters a live record at or below the compact revision.
func alterOld(what string, alter func(kv *mvccpb.KeyValue)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, ks, err := find(f, func(r *record, k *keyspace) bool {
			return r.live && r.main <= k.compact && len(r.kv.Value) > 0
		})
		if err != nil {
			return nil, err
		}
		effect, kv := kvEffect(f, what+" altered", &r, ks), r.kv
		alter(&kv)
		return effect, editDB(f.Dir, r.put(marshal(kv)))
	}
}

// freeBelow returns the highest revision below one at or below the compact revision that no record has.
func freeBelow(ks *keyspace, below int64) int64 {
	used := map[int64]bool{}
	for _, r := range ks.records {
		used[r.main] = true
	}
	for n := min(below, ks.compact+1) - 1; n > 1; n-- {
		if !used[n] {
			return n
		}
	}
	return 0
}

// addOld adds a live key at a revision of which a compaction has removed all records.
func addOld(f *Victim) (*Effect, error) {
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, err
	}
	n := freeBelow(ks, ks.compact+1)
	if n == 0 {
		return nil, errNotHere
	}
	kv := mvccpb.KeyValue{Key: []byte("/app/never-written"), Value: []byte("without an author"), CreateRevision: n,
		ModRevision: n, Version: 1}
	return &Effect{What: fmt.Sprintf("a live key added at revision %d, compacted at %d", n, ks.compact),
			Classes: contentClasses, Alone: f.fromStart(),
			Witness: func(dir string) bool {
				other, err := readKeyspace(dir)
				return err == nil && other.last >= ks.last && other.compact <= ks.last
			}},
		editDB(f.Dir, row{"key", revision(n, 0, false), ""}.put(marshal(kv)))
}

// addSuperseded adds a former record of a live key that the finished compaction would have removed.
func addSuperseded(f *Victim) (*Effect, error) {
	if number(f.Dir, "finishedCompactRev") != number(f.Dir, "scheduledCompactRev") {
		return nil, errNotHere
	}
	r, ks, err := find(f, func(r *record, k *keyspace) bool {
		return r.live && r.main <= k.compact && r.kv.Version > 1 && freeBelow(k, r.main) >= r.kv.CreateRevision
	})
	if err != nil {
		return nil, err
	}
	n, kv := freeBelow(ks, r.main), r.kv
	kv.ModRevision, kv.Version = n, r.kv.Version-1
	return &Effect{What: fmt.Sprintf("a superseded record of %s added at revision %d, compacted at %d", r.kv.Key, n,
			ks.compact), Classes: contentClasses, Alone: true},
		editDB(f.Dir, row{"key", revision(n, 0, false), ""}.put(marshal(kv)))
}

// unmarkTombstone takes the mark off the key of a tombstone, which makes it a put of nothing.
func unmarkTombstone(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool { return r.tombstone && r.main > k.compact })
	if err != nil {
		return nil, err
	}
	effect := kvEffect(f, "mark of the tombstone taken off", &r, ks)
	effect.Alone = true // its revisions and version are 0
	return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
		if err := r.drop()(tx); err != nil {
			return err
		}
		return row{"key", r.key[:17], ""}.put(r.value)(tx)
	})
}

// markLive makes a put a tombstone by its key alone.
func markLive(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool {
		return r.live && r.main > k.compact && len(r.kv.Value) > 0
	})
	if err != nil {
		return nil, err
	}
	effect := kvEffect(f, "marked as tombstone", &r, ks)
	effect.Alone = true // a tombstone holds nothing but its key
	return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
		if err := r.drop()(tx); err != nil {
			return err
		}
		return row{"key", r.key + "t", ""}.put(r.value)(tx)
	})
}

// dropRun drops all records of three revisions in a row.
func dropRun(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool { return r.main > k.compact && r.main+3 < k.last })
	if err != nil {
		return nil, err
	}
	list := ks.sel(func(o *record) bool { return o.main >= r.main && o.main < r.main+3 })
	effect := kvEffect(f, fmt.Sprintf("%d records dropped", len(list)), &r, ks)
	effect.Alone = true // above the compact revision every revision has a record
	return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
		for _, r := range list {
			if err := r.drop()(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// flipRecord flips any bit of any record that a compaction leaves: of its key, its numbers, its value.
func flipRecord(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool {
		return (r.live || r.main > k.compact) && len(r.value) > 16
	})
	if err != nil {
		return nil, err
	}
	b := []byte(r.value)
	at := f.Rng.IntN(len(b))
	b[at] ^= 1 << f.Rng.IntN(8)
	effect := kvEffect(f, fmt.Sprintf("a bit of byte %d of the record flipped", at), &r, ks)
	var kv mvccpb.KeyValue
	if kv.Unmarshal(b) == nil && marshal(kv) == r.value {
		return nil, errNotHere // a field that is never read
	}
	effect.Alone = f.fromStart()
	return effect, editDB(f.Dir, r.put(string(b)))
}

// lowerMarks lowers the compaction marks, or drops them with 0: then revisions are missing that no compaction removed.
func lowerMarks(by int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		ks, err := readKeyspace(f.Dir)
		if err != nil {
			return nil, err
		}
		done := number(f.Dir, "finishedCompactRev")
		if done <= by+1 || done != number(f.Dir, "scheduledCompactRev") {
			return nil, errNotHere
		}
		to, used := int64(0), map[int64]bool{}
		if by > 0 {
			to = done - by
		}
		for _, r := range ks.records {
			used[r.main] = true
		}
		gone := false
		for n := max(2, to+1); n < done; n++ {
			gone = gone || !used[n]
		}
		effect := &Effect{What: fmt.Sprintf("compaction marks at %d instead of %d", to, done), Alone: gone, Open: !gone,
			MayShareBest: !gone, Classes: contentClasses}
		return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
			for _, key := range []string{"scheduledCompactRev", "finishedCompactRev"} {
				do := row{"meta", key, ""}.put(revision(to, 0, false))
				if by == 0 {
					do = row{"meta", key, ""}.drop()
				}
				if err := do(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

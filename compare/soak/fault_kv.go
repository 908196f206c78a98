package soak

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// kvFaults alter records of the key space.
var kvFaults = []Fault{
	{Name: "kv-live-value", Apply: alterValue(liveAboveCompact)},
	{Name: "kv-old-live-value", Apply: alterValue(liveBelowCompact)},
	{Name: "kv-superseded-value", Apply: alterValue(supersededAboveCompact)},
	{Name: "kv-live-dropped", Apply: dropRecord(liveAboveCompact)},
	{Name: "kv-old-live-dropped", Apply: dropRecord(liveBelowCompact)},
	{Name: "kv-superseded-dropped", Apply: dropRecord(supersededAboveCompact)},
	{Name: "kv-tombstone-dropped", Apply: dropRecord(func(r *record, k *keyspace) bool {
		return r.tombstone && r.main > k.compact
	})},
	{Name: "kv-record-added", Apply: addRecord},
	{Name: "kv-create-revision", Apply: alterKV("create revision", func(kv *mvccpb.KeyValue) { kv.CreateRevision-- })},
	{Name: "kv-mod-revision", Apply: alterKV("mod revision", func(kv *mvccpb.KeyValue) { kv.ModRevision-- })},
	{Name: "kv-version", Apply: alterKV("version", func(kv *mvccpb.KeyValue) { kv.Version++ })},
	{Name: "kv-lease", Apply: alterKV("lease", func(kv *mvccpb.KeyValue) { kv.Lease ^= 0x1234 })},
	{Name: "kv-key-renamed", Apply: alterKV("key", func(kv *mvccpb.KeyValue) { kv.Key = append(kv.Key, 'x') })},
	{Name: "kv-value-emptied", Apply: alterKV("value", func(kv *mvccpb.KeyValue) { kv.Value = nil })},
	{Name: "kv-record-garbled", Apply: garbleRecord},
	{Name: "kv-revision-moved", Apply: moveRevision},
	{Name: "kv-values-swapped", Apply: swapValues},
	{Name: "kv-newest-dropped", Apply: dropNewest},
	{Name: "kv-live-tombstoned", Apply: addTombstone},
}

func liveAboveCompact(r *record, k *keyspace) bool { return r.live && r.main > k.compact }

func liveBelowCompact(r *record, k *keyspace) bool { return r.live && r.main <= k.compact }

func supersededAboveCompact(r *record, k *keyspace) bool {
	return !r.live && !r.tombstone && r.main > k.compact
}

// find draws a record that fits. Values of a few bytes are left alone: an altered one may be another legal value.
func find(f *Victim, fits func(*record, *keyspace) bool) (record, *keyspace, error) {
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return record{}, nil, err
	}
	list := ks.sel(func(r *record) bool { return fits(r, ks) })
	if len(list) == 0 {
		return record{}, nil, errNotHere
	}
	return list[f.Rng.IntN(len(list))], ks, nil
}

// kvEffect is the effect of altering one record: the log shows it where it puts that value, a member of the same
// release shows it that holds the record and is as far. Where a client puts one value often, the puts of the log are
// those of the newest records.
func kvEffect(f *Victim, what string, r *record, ks *keyspace) *Effect {
	alike := ks.sel(func(o *record) bool {
		return o.main >= r.main && bytes.Equal(o.kv.Key, r.kv.Key) && bytes.Equal(o.kv.Value, r.kv.Value)
	})
	return &Effect{What: fmt.Sprintf("%s of revision %d.%d (%s)", what, r.main, r.sub, r.kv.Key),
		Classes: contentClasses,
		Alone: f.fromStart() ||
			r.main > ks.compact && logPuts(f.Dir, string(r.kv.Key), string(r.kv.Value)) >= max(1, len(alike)),
		Witness: func(dir string) bool { return r.holds(dir) && reaches(dir, ks.last) }}
}

// reaches reports whether a database is at that revision or above.
func reaches(dir string, last int64) bool {
	ks, err := readKeyspace(dir)
	return err == nil && ks.last >= last
}

func alterValue(fits func(*record, *keyspace) bool) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, ks, err := find(f, func(r *record, k *keyspace) bool { return len(r.kv.Value) > 6 && fits(r, k) })
		if err != nil {
			return nil, err
		}
		effect, kv := kvEffect(f, "value altered", &r, ks), r.kv
		kv.Value = append([]byte{}, kv.Value...)
		kv.Value[len(kv.Value)-1] ^= 1
		return effect, editDB(f.Dir, r.put(marshal(kv)))
	}
}

func dropRecord(fits func(*record, *keyspace) bool) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, ks, err := find(f, fits)
		if err != nil {
			return nil, err
		}
		effect := kvEffect(f, "record dropped", &r, ks)
		if r.main > ks.compact {
			// Above the compact revision every main revision has a record, unless it was the newest.
			alone := len(ks.sel(func(o *record) bool { return o.main == r.main })) == 1 && r.main < ks.last
			effect.Alone = effect.Alone || alone
		}
		return effect, editDB(f.Dir, r.drop())
	}
}

// dropNewest drops all records of the newest revision.
func dropNewest(f *Victim) (*Effect, error) {
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, err
	}
	list := ks.sel(func(r *record) bool { return r.main == ks.last && r.main > ks.compact })
	if len(list) == 0 {
		return nil, errNotHere
	}
	effect := kvEffect(f, "all records dropped", &list[0], ks)
	return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
		for _, r := range list {
			if err := r.drop()(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

func alterKV(what string, alter func(*mvccpb.KeyValue)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, ks, err := find(f, func(r *record, k *keyspace) bool {
			return r.live && r.main > k.compact &&
				len(r.kv.Value) > 0
		})
		if err != nil {
			return nil, err
		}
		effect, kv := kvEffect(f, what+" altered", &r, ks), r.kv
		alter(&kv)
		return effect, editDB(f.Dir, r.put(marshal(kv)))
	}
}

func garbleRecord(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool { return r.live })
	if err != nil {
		return nil, err
	}
	effect := kvEffect(f, "record garbled", &r, ks)
	effect.Alone = true
	return effect, editDB(f.Dir, r.put("\x0a\xff"+r.value))
}

// addRecord adds a revision above the newest, as a write that only this member took.
func addRecord(f *Victim) (*Effect, error) {
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, err
	}
	if ks.last == 0 {
		return nil, errNotHere
	}
	kv := mvccpb.KeyValue{Key: []byte("/app/extra"), Value: []byte("no entry wrote it"), CreateRevision: ks.last + 1,
		ModRevision: ks.last + 1, Version: 1}
	r := row{"key", revision(ks.last+1, 0, false), ""}
	return &Effect{What: fmt.Sprintf("revision %d added", ks.last+1), Classes: contentClasses, Alone: f.fromStart(),
		Witness: func(dir string) bool {
			return reaches(dir, ks.last) && number(dir, "consistent_index") >= number(f.Dir, "consistent_index")
		}}, editDB(f.Dir, r.put(marshal(kv)))
}

// addTombstone deletes a live key at a revision above the newest.
func addTombstone(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool { return r.live })
	if err != nil {
		return nil, err
	}
	t := row{"key", revision(ks.last+1, 0, true), ""}
	return &Effect{What: fmt.Sprintf("%s deleted at revision %d", r.kv.Key, ks.last+1), Classes: contentClasses,
		Alone: f.fromStart(),
		Witness: func(dir string) bool {
			return r.holds(dir) && reaches(dir, ks.last) && number(dir, "consistent_index") >= number(f.Dir,
				"consistent_index")
		}}, editDB(f.Dir, t.put(marshal(mvccpb.KeyValue{Key: r.kv.Key})))
}

// moveRevision gives the record of one revision another number.
func moveRevision(f *Victim) (*Effect, error) {
	r, ks, err := find(f, func(r *record, k *keyspace) bool { return r.live && r.main > k.compact })
	if err != nil {
		return nil, err
	}
	effect := kvEffect(f, "revision of the record altered", &r, ks)
	effect.Alone = true // what the record says of itself contradicts its place
	return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
		if err := r.drop()(tx); err != nil {
			return err
		}
		return row{"key", revision(ks.last+3, r.sub, false), ""}.put(r.value)(tx)
	})
}

// swapValues exchanges the values of two live keys.
func swapValues(f *Victim) (*Effect, error) {
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, err
	}
	list := ks.sel(func(r *record) bool { return r.live && r.main > ks.compact && len(r.kv.Value) > 0 })
	if len(list) < 2 {
		return nil, errNotHere
	}
	f.Rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	a, b := list[0], list[1]
	if string(a.kv.Value) == string(b.kv.Value) {
		return nil, errNotHere
	}
	effect := kvEffect(f, fmt.Sprintf("value exchanged with revision %d", b.main), &a, ks)
	ka, kb := a.kv, b.kv
	ka.Value, kb.Value = kb.Value, ka.Value
	return effect, editDB(f.Dir, func(tx *bolt.Tx) error {
		if err := a.put(marshal(ka))(tx); err != nil {
			return err
		}
		return b.put(marshal(kb))(tx)
	})
}

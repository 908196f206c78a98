package soak

import (
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/release"
)

// alterEntry alters the value in a put whose record the database holds.
func alterEntry(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, err
	}
	places, list := entries(segs)
	var fit []int
	for i := range list {
		if ks.wrote(&list[i]) && list[i].Index <= uint64(number(f.Dir, "consistent_index")) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return nil, errNotHere
	}
	i := fit[f.Rng.IntN(len(fit))]
	e, r := list[i], request(&list[i])
	r.Put.Value[len(r.Put.Value)-1] ^= 1
	if e.Data, err = r.Marshal(); err != nil {
		return nil, err
	}
	if err := setEntry(segs, places[i], e); err != nil {
		return nil, err
	}
	effect := &Effect{What: fmt.Sprintf("the value in entry %d altered", e.Index), Alone: true, Classes: entryClasses}
	return effect, writeLog(segs)
}

func setEntry(segs []segment, p at, e raftpb.Entry) error {
	b, err := e.Marshal()
	if err != nil {
		return err
	}
	p.of(segs).data = b
	return nil
}

// dropEntry removes an entry and gives all later ones the index before.
func dropEntry(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	places, list := entries(segs)
	from := max(len(list)/2, len(list)-12)
	if from < 2 || from >= len(list)-2 || places[from].seg != len(segs)-1 || places[from].rec < 5 {
		return nil, errNotHere
	}
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, err
	}
	gone, shown := list[from].Index, ks.wrote(&list[from])
	for i := from + 1; i < len(list); i++ {
		e := list[i]
		e.Index--
		if err := setEntry(segs, places[i], e); err != nil {
			return nil, err
		}
	}
	s := &segs[places[from].seg]
	s.records = slices.Delete(slices.Clone(s.records), places[from].rec, places[from].rec+1)
	if err := writeLog(segs); err != nil {
		return nil, err
	}
	_, end := logBounds(f.Dir)
	// A crash of a single member of an old release can leave the database ahead of the log.
	ahead := (len(f.Others) > 0 || release.Of(f.Line).Has(release.SyncBeforeApply).Certain()) &&
		uint64(number(f.Dir, "consistent_index")) > end
	return &Effect{What: fmt.Sprintf("entry %d dropped, later ones renumbered", gone),
		Classes: append([]string{"member-lost-data", "torn-copy"}, entryClasses...),
		Alone:   ahead || shown && gone <= uint64(number(f.Dir, "consistent_index")), Inconclusive: true,
		Witness: func(dir string) bool {
			first, last := logBounds(dir)
			return first <= gone && last > gone
		}}, nil
}

// entryTerm raises the term of an entry above that of the entries after it, which raft never writes.
func entryTerm(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	places, list := entries(segs)
	if len(list) < 6 {
		return nil, errNotHere
	}
	i := len(list)/2 + f.Rng.IntN(len(list)/4)
	e := list[i]
	e.Term += 9
	if err := setEntry(segs, places[i], e); err != nil {
		return nil, err
	}
	return &Effect{What: fmt.Sprintf("term of entry %d raised", e.Index), Alone: true,
		Classes: append([]string{"member-lost-data"}, entryClasses...)}, writeLog(segs)
}

// alterState alters the newest HardState.
func alterState(what string, alter func(h *raftpb.HardState, end *raftpb.Entry)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		p, ok := last(segs, recState)
		if !ok {
			return nil, errNotHere
		}
		var h raftpb.HardState
		if err := h.Unmarshal(p.of(segs).data); err != nil {
			return nil, err
		}
		_, list := entries(segs)
		if len(list) == 0 {
			return nil, errNotHere
		}
		was, end := h, list[len(list)-1]
		alter(&h, &end)
		if h == was || h.Term == 0 {
			return nil, errNotHere
		}
		if p.of(segs).data, err = h.Marshal(); err != nil {
			return nil, err
		}
		effect := &Effect{What: "HardState: " + what, Alone: true, MayShareBest: true,
			Classes: append([]string{"membership", "latent-divergence"}, logClasses...)}
		if h.Vote != was.Vote && h.Term > end.Term {
			// Of an election that no entry followed: who was a candidate in it can have been added after this log ends.
			effect.Alone, effect.WithAll = false, true
		}
		return effect, writeLog(segs)
	}
}

// alterSnapshotRecord alters the newest snapshot record, so that no .snap file fits it.
func alterSnapshotRecord(alter func(*walpb.Snapshot)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		p, ok := last(segs, recSnapshot)
		if !ok {
			return nil, errNotHere
		}
		var s walpb.Snapshot
		if err := s.Unmarshal(p.of(segs).data); err != nil {
			return nil, err
		}
		if s.Index == 0 { // the record every log begins with
			return nil, errNotHere
		}
		alter(&s)
		if p.of(segs).data, err = s.Marshal(); err != nil {
			return nil, err
		}
		return &Effect{What: fmt.Sprintf("newest snapshot record says %d/%d", s.Term, s.Index), Alone: true,
			MayShareBest: true, Classes: snapClasses}, writeLog(segs)
	}
}

// alterMetadata alters the identity in every segment.
func alterMetadata(alter func(*etcdserverpb.Metadata), alone bool) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		for i := range segs {
			for k := range segs[i].records {
				r := &segs[i].records[k]
				var m etcdserverpb.Metadata
				if r.typ != recMetadata || m.Unmarshal(r.data) != nil {
					continue
				}
				alter(&m)
				if r.data, err = m.Marshal(); err != nil {
					return nil, err
				}
			}
		}
		return &Effect{What: "identity in the log altered", Alone: alone, MayShareBest: true,
			Witness: func(dir string) bool { _, ok := metadata(dir); return ok },
			Classes: append([]string{"foreign-cluster", "membership"}, logClasses...)}, writeLog(segs)
	}
}

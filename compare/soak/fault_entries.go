package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// entryFaults rewrite entries and records in further ways, with a checksum chain that fits.
var entryFaults = []Fault{
	{Name: "entry-key", Apply: rewriteEntry("key", func(e *raftpb.Entry) error {
		r := request(e)
		r.Put.Key = append(slices.Clone(r.Put.Key), 'x')
		b, err := r.Marshal()
		e.Data = b
		return err
	})},
	{Name: "entry-emptied", Apply: rewriteEntry("data", func(e *raftpb.Entry) error { e.Data = nil; return nil })},
	{Name: "entry-undecodable", Apply: rewriteEntry("request", func(e *raftpb.Entry) error {
		e.Data = slices.Clone(e.Data)
		e.Data[len(e.Data)-1] |= 0x80 // a varint that does not end
		e.Data = append(e.Data, 0xff)
		return nil
	})},
	{Name: "entry-duplicated", Apply: duplicateEntry},
	{Name: "entries-exchanged", Apply: exchangeEntries},
	{Name: "entry-gap", Apply: gapEntry},
	{Name: "entry-header", Apply: alterHeader},
	{Name: "entries-forged", Apply: forgeTail},
	{Name: "state-commit-lower", Apply: lowerCommit},
	{Name: "state-term-higher", Apply: raiseTerm},
	{Name: "state-dropped", Apply: dropStates},
	{Name: "wal-tail-garbage", Apply: garbageTail},
	{Name: "wal-segments-exchanged", Apply: exchangeSegments},
	{Name: "wal-segment-of-other", Apply: foreignSegment},
	{Name: "wal-segment-repeated", Apply: repeatSegment},
	{Name: "wal-sum-record", Apply: alterSumRecord},
}

// applied are the places of the puts whose records the database holds above the compact revision.
func applied(f *Victim) (segs []segment, places []at, list []raftpb.Entry, fit []int, err error) {
	if segs, err = readLog(f.Dir); err != nil {
		return nil, nil, nil, nil, err
	}
	ks, err := readKeyspace(f.Dir)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	places, list = entries(segs)
	for i := range list {
		if ks.wrote(&list[i]) && list[i].Index <= uint64(number(f.Dir, "consistent_index")) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		err = errNotHere
	}
	return segs, places, list, fit, err
}

// rewriteEntry alters a put whose record the database holds.
func rewriteEntry(what string, alter func(*raftpb.Entry) error) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, places, list, fit, err := applied(f)
		if err != nil {
			return nil, err
		}
		i := fit[f.Rng.IntN(len(fit))]
		e := list[i]
		if err := alter(&e); err != nil {
			return nil, err
		}
		if err := setEntry(segs, places[i], e); err != nil {
			return nil, err
		}
		return &Effect{What: fmt.Sprintf("the %s of entry %d altered", what, e.Index), Alone: true,
			Classes: entryClasses}, writeLog(segs)
	}
}

// duplicateEntry writes a put twice and gives all later entries the index after.
func duplicateEntry(f *Victim) (*Effect, error) {
	segs, places, list, fit, err := applied(f)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(fit, func(i int) bool { return i >= len(list)-25 && i < len(list)-3 })
	if n < 0 {
		return nil, errNotHere
	}
	i := fit[n]
	twice := list[i]
	for k := i; k < len(list); k++ {
		e := list[k]
		e.Index++
		if err := setEntry(segs, places[k], e); err != nil {
			return nil, err
		}
	}
	b, err := twice.Marshal()
	if err != nil {
		return nil, err
	}
	s := &segs[places[i].seg]
	s.records = slices.Insert(slices.Clone(s.records), places[i].rec, walRecord{typ: recEntry, data: b})
	// One of the last entries that the database holds is now above its index.
	return &Effect{What: fmt.Sprintf("entry %d is there twice, later ones renumbered", twice.Index), Alone: true,
		Inconclusive: true, Classes: append([]string{"member-lost-data", "torn-copy"}, entryClasses...)}, writeLog(segs)
}

// exchangeEntries exchanges what two puts of the log write, next to each other among those that the database shows.
func exchangeEntries(f *Victim) (*Effect, error) {
	segs, places, list, fit, err := applied(f)
	if err != nil {
		return nil, err
	}
	if len(fit) < 2 {
		return nil, errNotHere
	}
	n := f.Rng.IntN(len(fit) - 1)
	a, b := list[fit[n]], list[fit[n+1]]
	a.Data, b.Data = b.Data, a.Data
	if err := setEntry(segs, places[fit[n]], a); err != nil {
		return nil, err
	}
	if err := setEntry(segs, places[fit[n+1]], b); err != nil {
		return nil, err
	}
	return &Effect{What: fmt.Sprintf("entries %d and %d exchanged", a.Index, b.Index), Alone: true,
		Classes: entryClasses}, writeLog(segs)
}

// gapEntry removes an entry without renumbering the later ones.
func gapEntry(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	places, list := entries(segs)
	i := len(list) - 3 - f.Rng.IntN(10)
	if i < 2 || places[i].rec < 5 {
		return nil, errNotHere
	}
	s := &segs[places[i].seg]
	s.records = slices.Delete(slices.Clone(s.records), places[i].rec, places[i].rec+1)
	return &Effect{What: fmt.Sprintf("entry %d dropped", list[i].Index), Alone: true, Classes: logClasses},
		writeLog(segs)
}

// alterHeader alters the auth revision that the proposer stamped on an applied put.
func alterHeader(f *Victim) (*Effect, error) {
	segs, places, list, fit, err := applied(f)
	if err != nil {
		return nil, err
	}
	fit = slices.DeleteFunc(fit, func(i int) bool {
		r := request(&list[i])
		return r.Header == nil || r.Header.AuthRevision == 0
	})
	if len(fit) == 0 {
		return nil, errNotHere
	}
	i := fit[f.Rng.IntN(len(fit))]
	e, r := list[i], request(&list[i])
	r.Header.AuthRevision += 4
	if e.Data, err = r.Marshal(); err != nil {
		return nil, err
	}
	if err := setEntry(segs, places[i], e); err != nil {
		return nil, err
	}
	return &Effect{What: fmt.Sprintf("the auth revision stamped on entry %d raised", e.Index), Classes: entryClasses,
			MayShareBest: true, Witness: func(dir string) bool {
				return holdsEntry(dir, int64(e.Index),
					int64(e.Term))
			}},
		writeLog(segs)
}

// forgeTail adds two entries to the end of the log that were never committed, as a leader that fell has.
func forgeTail(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	_, list := entries(segs)
	if len(list) == 0 {
		return nil, errNotHere
	}
	end := list[len(list)-1]
	s := &segs[len(segs)-1]
	for n := range 2 {
		b, err := (&raftpb.Entry{Term: end.Term, Index: end.Index + 1 + uint64(n)}).Marshal()
		if err != nil {
			return nil, err
		}
		s.records = append(s.records, walRecord{typ: recEntry, data: b})
	}
	return &Effect{What: fmt.Sprintf("2 empty entries after entry %d", end.Index), Open: true, MayShareBest: true,
		Inconclusive: true}, writeLog(segs)
}

// lowerCommit takes back the commit index of the newest HardState, below that of one before it.
func lowerCommit(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	before, count := uint64(0), 0
	p, ok := last(segs, recState)
	for i, s := range segs {
		for k, r := range s.records {
			var h raftpb.HardState
			if r.typ == recState && h.Unmarshal(r.data) == nil && (at{i, k}) != p {
				before, count = max(before, h.Commit), count+1
			}
		}
	}
	if !ok || count < 2 || before < 8 {
		return nil, errNotHere
	}
	return alterState("commit below an earlier one",
		func(h *raftpb.HardState, _ *raftpb.Entry) { h.Commit = before - 4 })(f)
}

// raiseTerm notes a higher term, as after elections without a winner.
func raiseTerm(f *Victim) (*Effect, error) {
	effect, err := alterState("a higher term", func(h *raftpb.HardState, _ *raftpb.Entry) {
		h.Term, h.Vote = h.Term+5,
			0
	})(f)
	if err == nil {
		effect.Alone, effect.WithAll, effect.Open, effect.Inconclusive = false, false, true, true
	}
	return effect, err
}

// dropStates removes every HardState: no server writes entries without one.
func dropStates(f *Victim) (*Effect, error) {
	effect, err := dropRecords("HardStates", recState)(f)
	if err == nil {
		effect.Classes = append(effect.Classes, "latent-divergence")
	}
	return effect, err
}

// dropRecords removes all records of a type, without which no server writes a log.
func dropRecords(what string, typ int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		gone := 0
		for i := range segs {
			n := len(segs[i].records)
			segs[i].records = slices.DeleteFunc(slices.Clone(segs[i].records),
				func(r walRecord) bool { return r.typ == typ })
			gone += n - len(segs[i].records)
		}
		if gone == 0 {
			return nil, errNotHere
		}
		return &Effect{What: fmt.Sprintf("%d %s dropped", gone, what), Alone: true, MayShareBest: true,
			Classes: append([]string{"membership", "snapshot-damage"}, logClasses...)}, writeLog(segs)
	}
}

// garbageTail writes bytes that are not a record after the last one.
func garbageTail(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	s := segs[len(segs)-1]
	if len(s.records) == 0 {
		return nil, errNotHere
	}
	end := s.records[len(s.records)-1].to
	if end+64 > s.size {
		return nil, errNotHere
	}
	b := make([]byte, 40)
	for i := range b {
		b[i] = byte(1 + f.Rng.IntN(255))
	}
	b[7] = 0 // a length that fits into no file
	return &Effect{What: fmt.Sprintf("40 random bytes after the last record, at %d", end), Alone: true,
		MayShareBest: true, Classes: logClasses}, writeAt(s.file, end, b)
}

// exchangeSegments exchanges the content of two neighbours.
func exchangeSegments(f *Victim) (*Effect, error) {
	files, err := segmentFiles(f.Dir)
	if err != nil {
		return nil, err
	}
	if len(files) < 3 {
		return nil, errNotHere
	}
	i := f.Rng.IntN(len(files) - 2)
	aside := files[i] + ".aside"
	for _, step := range [][2]string{{files[i], aside}, {files[i+1], files[i]}, {aside, files[i+1]}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			return nil, err
		}
	}
	return &Effect{What: fmt.Sprintf("segments %d and %d exchanged", i+1, i+2), Alone: true, Classes: logClasses}, nil
}

// foreignSegment puts the segment of another member in the place of the one with the same name.
func foreignSegment(f *Victim) (*Effect, error) {
	files, err := segmentFiles(f.Dir)
	if err != nil {
		return nil, err
	}
	for _, other := range f.Others {
		for _, file := range files {
			from := filepath.Join(other, "member", "wal", filepath.Base(file))
			if _, err := os.Stat(from); err != nil || nodeID(other) == nodeID(f.Dir) || len(files) < 2 {
				continue
			}
			return &Effect{What: filepath.Base(file) + " of another member", Alone: true,
				Classes: append([]string{"membership", "foreign-cluster"}, logClasses...)}, replace(file, from)
		}
	}
	return nil, errNotHere
}

// repeatSegment copies the last segment to the name of the next one.
func repeatSegment(f *Victim) (*Effect, error) {
	files, err := segmentFiles(f.Dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errNotHere
	}
	file := files[len(files)-1]
	var seq, index uint64
	if _, err := fmt.Sscanf(filepath.Base(file), "%016x-%016x.wal", &seq, &index); err != nil {
		return nil, err
	}
	_, end := logBounds(f.Dir)
	to := filepath.Join(filepath.Dir(file), fmt.Sprintf("%016x-%016x.wal", seq+1, end+1))
	return &Effect{What: "a copy of the last segment as " + filepath.Base(to), Alone: true, MayShareBest: true,
		Classes: logClasses}, replace(to, file)
}

// alterSumRecord alters the checksum record that a segment other than the first begins with.
func alterSumRecord(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	if len(segs) < 2 {
		return nil, errNotHere
	}
	s := segs[1+f.Rng.IntN(len(segs)-1)]
	if len(s.records) == 0 || s.records[0].typ != recCRC {
		return nil, errNotHere
	}
	b, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	at := s.records[0].from + 8 + 3 // {1 type, 2 crc}: a byte of the sum
	return &Effect{What: "the sum that " + filepath.Base(s.file) + " begins with altered", Alone: true,
		MayShareBest: true, Classes: logClasses}, writeAt(s.file, at, []byte{b[at] ^ 1})
}

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/release"
)

// logFaults damage files of the log.
var logFaults = []Fault{
	{Name: "wal-flipped", Apply: flipLog},
	{Name: "wal-torn-tail", Apply: tearTail},
	{Name: "wal-tail-cut-file", Apply: cutTail},
	{Name: "wal-tail-lost", Apply: loseTail},
	{Name: "wal-middle-zeroed", Apply: zeroMiddle},
	{Name: "wal-first-segment-gone", Apply: dropSegment(false, func(int) int { return 0 })},
	{Name: "wal-middle-segment-gone", Apply: dropSegment(true, func(n int) int { return n / 2 })},
	{Name: "wal-last-segment-gone", Apply: dropSegment(false, func(n int) int { return n - 1 })},
	{Name: "wal-first-half-gone", Apply: dropHalf(false)},
	{Name: "wal-last-half-gone", Apply: dropHalf(true)},
	{Name: "wal-renamed", Apply: renameSegment},
	{Name: "wal-empty-segment", Apply: emptySegment},
	{Name: "wal-missing", Apply: func(f *Victim) (*Effect, error) {
		return &Effect{What: "the log is missing", Alone: true, Inconclusive: true, Classes: logClasses},
			os.RemoveAll(filepath.Join(f.Dir, "member", "wal"))
	}},
	{Name: "snap-flipped", Apply: flipSnap},
	{Name: "snap-newest-gone", Apply: dropSnaps(1)},
	{Name: "snap-all-gone", Apply: dropSnaps(100)},
}

// recordFaults rewrite records with a checksum chain that fits, as a tampered or wrongly written log has.
var recordFaults = []Fault{
	{Name: "entry-value", Apply: alterEntry},
	{Name: "entry-dropped", Apply: dropEntry},
	{Name: "entry-term", Apply: entryTerm},
	{Name: "state-vote", Apply: alterState("vote for an unknown ID",
		func(h *raftpb.HardState, _ *raftpb.Entry) { h.Vote = 0x7e57ab1e })},
	{Name: "state-term-lower", Apply: alterState("term below that of the last entry",
		func(h *raftpb.HardState, end *raftpb.Entry) { h.Term = end.Term - 1 })},
	{Name: "state-commit-ahead", Apply: alterState("commit beyond the log",
		func(h *raftpb.HardState, end *raftpb.Entry) { h.Commit = end.Index + 50 })},
	{Name: "wal-snapshot-index", Apply: alterSnapshotRecord(func(s *walpb.Snapshot) { s.Index++ })},
	{Name: "wal-snapshot-term", Apply: alterSnapshotRecord(func(s *walpb.Snapshot) { s.Term++ })},
	{Name: "wal-snapshots-dropped", Apply: dropRecords("snapshot records", recSnapshot)},
	{Name: "wal-identity-dropped", Apply: dropRecords("records of the identity", recMetadata)},
	{Name: "wal-node-id", Apply: alterMetadata(func(m *etcdserverpb.Metadata) { m.NodeID ^= 0x55 }, true)},
	{Name: "wal-cluster-id", Apply: alterMetadata(func(m *etcdserverpb.Metadata) { m.ClusterID ^= 0x55 }, false)},
}

// flipLog flips a bit of an entry that is not the last one.
func flipLog(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	places, _ := entries(segs)
	var fit []at
	for _, p := range places[:max(0, len(places)-2)] {
		if len(p.of(segs).data) > 40 {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return nil, errNotHere
	}
	p := fit[f.Rng.IntN(len(fit))]
	r := p.of(segs)
	offset := r.from + (r.to-r.from)/2
	return &Effect{What: fmt.Sprintf("bit flipped in %s at %d", filepath.Base(segs[p.seg].file), offset), Alone: true,
		Classes: []string{"wal-damage"}}, flip(segs[p.seg].file, offset)
}

// lastEntry returns the last record of the log if it is an entry that fills more than one sector's rest.
func lastEntry(segs []segment) (file string, r walRecord, ok bool) {
	p, ok := last(segs, recEntry)
	if !ok {
		return "", walRecord{}, false
	}
	return segs[p.seg].file, *p.of(segs), p.seg == len(segs)-1
}

// endAfter says what a log that ends at an index proves: lost entries, if the database is ahead.
func endAfter(f *Victim, what string, classes []string) *Effect {
	_, end := logBounds(f.Dir)
	index := uint64(number(f.Dir, "consistent_index"))
	if !release.Of(f.Line).Has(release.IndexWithEveryEntry).Certain() {
		// Its index does not show how far the database is: leases, users and members that lost entries changed differ.
		classes = append(slices.Clone(classes), "latent-divergence")
	}
	return &Effect{What: fmt.Sprintf("%s: the log ends at %d, the database at %d", what, end, index), Classes: classes,
		Alone: index > end,
		Open:  index <= end, MayShareBest: index <= end, Inconclusive: true}
}

// tearTail overwrites the second half of the last entry and all after it with zeros.
func tearTail(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	file, r, ok := lastEntry(segs)
	if !ok || r.to-r.from < 40 {
		return nil, errNotHere
	}
	s := segs[len(segs)-1]
	end := s.records[len(s.records)-1].to
	from := r.from + 16
	return &Effect{What: fmt.Sprintf("last entry torn at %d", from), Alone: true, Classes: logClasses},
		writeAt(file, from, make([]byte, end-from))
}

// cutTail cuts the file off inside the last entry.
func cutTail(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	file, r, ok := lastEntry(segs)
	if !ok || r.to-r.from < 40 {
		return nil, errNotHere
	}
	return &Effect{What: fmt.Sprintf("file cut off at %d, inside the last entry", r.from+24), Alone: true,
		Classes: logClasses}, os.Truncate(file, r.from+24)
}

// loseTail removes the last records at a record border, as lost writes do.
func loseTail(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	s := segs[len(segs)-1]
	n := len(s.records) - 3 - f.Rng.IntN(8)
	if n < 4 {
		return nil, errNotHere
	}
	from, end := s.records[n].from, s.records[len(s.records)-1].to
	if err := writeAt(s.file, from, make([]byte, end-from)); err != nil {
		return nil, err
	}
	return endAfter(f, fmt.Sprintf("%d last records lost", len(s.records)-n), logClasses), nil
}

// zeroMiddle blanks whole records in the middle of the last segment.
func zeroMiddle(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	s := segs[len(segs)-1]
	n := len(s.records) / 2
	if n < 4 || n+2 >= len(s.records)-3 {
		return nil, errNotHere
	}
	from, to := s.records[n].from, s.records[n+2].from
	return &Effect{What: fmt.Sprintf("bytes %d to %d of the last segment are zeros", from, to), Alone: true,
		Classes: logClasses}, writeAt(s.file, from, make([]byte, to-from))
}

// dropSegment deletes one segment. The first may go if a server starts from the next one: then it is what a purge does.
func dropSegment(middle bool, which func(n int) int) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		n := which(len(segs))
		if len(segs) < 2 || middle && len(segs) < 3 {
			return nil, errNotHere
		}
		what := fmt.Sprintf("segment %d of %d deleted", n+1, len(segs))
		rest := slices.Delete(slices.Clone(segs), n, n+1)
		if err := os.Remove(segs[n].file); err != nil {
			return nil, err
		}
		return missing(f, what, n, len(segs), rest), nil
	}
}

// missing says what the loss of segments from one end or the middle means.
func missing(f *Victim, what string, n, of int, rest []segment) *Effect {
	switch {
	case n == 0:
		_, list := entries(rest)
		files, err := snapFiles(f.Dir)
		legal := err == nil && len(list) > 0 && slices.ContainsFunc(files, func(file string) bool {
			at := snapIndex(file) // a server reads from the last segment whose name is not above it
			return list[0].Index <= at+1 && firstOf(rest[0].file) <= at && holdsSnapshotRecord(rest, at)
		})
		e := &Effect{What: what, Alone: !legal, Benign: legal,
			Classes: append([]string{"snapshot-damage"}, logClasses...)}
		if legal {
			e.What += ", which a purge does as well"
		}
		return e
	case n == of-1:
		return endAfter(f, what, logClasses)
	}
	return &Effect{What: what, Alone: true, Classes: logClasses}
}

// holdsSnapshotRecord reports whether the log has the record of that raft snapshot, from which a server reads it.
func holdsSnapshotRecord(segs []segment, index uint64) bool {
	for _, s := range segs {
		for _, r := range s.records {
			var sn walpb.Snapshot
			if r.typ == recSnapshot && sn.Unmarshal(r.data) == nil && sn.Index == index && index > 0 {
				return true
			}
		}
	}
	return false
}

// dropHalf deletes the first or the last half of the segments.
func dropHalf(end bool) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		half := len(segs) / 2
		if half < 2 {
			return nil, errNotHere
		}
		gone, rest, n := segs[:half], segs[half:], 0
		if end {
			gone, rest, n = segs[half:], segs[:half], len(segs)-1
		}
		for _, s := range gone {
			if err := os.Remove(s.file); err != nil {
				return nil, err
			}
		}
		return missing(f, fmt.Sprintf("%d of %d segments deleted", len(gone), len(segs)), n, len(segs), rest), nil
	}
}

// renameSegment gives a segment the name of another index.
func renameSegment(f *Victim) (*Effect, error) {
	files, err := segmentFiles(f.Dir)
	if err != nil {
		return nil, err
	}
	if len(files) < 2 {
		return nil, errNotHere
	}
	file := files[1+f.Rng.IntN(len(files)-1)]
	var seq, index uint64
	if _, err := fmt.Sscanf(filepath.Base(file), "%016x-%016x.wal", &seq, &index); err != nil {
		return nil, err
	}
	to := filepath.Join(filepath.Dir(file), fmt.Sprintf("%016x-%016x.wal", seq, index+3))
	return &Effect{What: filepath.Base(file) + " renamed to " + filepath.Base(to), Alone: true, MayShareBest: true,
		Classes: logClasses}, os.Rename(file, to)
}

// emptySegment leaves a segment other than the first with nothing but zeros.
func emptySegment(f *Victim) (*Effect, error) {
	segs, err := readLog(f.Dir)
	if err != nil {
		return nil, err
	}
	if len(segs) < 3 {
		return nil, errNotHere
	}
	s := segs[1+f.Rng.IntN(len(segs)-2)]
	return &Effect{What: filepath.Base(s.file) + " is all zeros", Alone: true, Classes: logClasses},
		writeSparse(s.file, nil, s.size)
}

func flipSnap(f *Victim) (*Effect, error) {
	file, err := newestSnapFile(f.Dir)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return &Effect{What: "bit flipped in " + filepath.Base(file), Alone: true, MayShareBest: true,
		Classes: snapClasses}, flip(file, st.Size()/2)
}

// dropSnaps deletes the newest snapshot files.
func dropSnaps(n int) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		files, err := snapFiles(f.Dir)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, errNotHere
		}
		gone := files[max(0, len(files)-n):]
		// As long as the log reaches back to an older one, a server starts from that: a warning says enough. Newer ones
		// read no .snap file.
		first, _ := logBounds(f.Dir)
		usable := len(files) > n && first <= snapIndex(files[len(files)-n-1])+1 || first == 1 ||
			release.Of(f.Line).Has(release.SnapFileUnused).Certain()
		for _, file := range gone {
			if err := os.Remove(file); err != nil {
				return nil, err
			}
		}
		return &Effect{What: fmt.Sprintf("the newest %d of %d .snap files deleted", len(gone), len(files)),
			Alone: !usable, Open: usable, MayShareBest: true, Classes: snapClasses}, nil
	}
}

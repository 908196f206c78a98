package dumplog

// CommitAhead is a HardState that commits entries which the log only holds after it. A member commits what its log
// holds (raft, log.go, commitTo), and stores entries before the HardState that commits them (etcd, wal.go, Save, 3.0 to
// 3.8). So entries before that place were removed from the log, and the later ones renumbered.
type CommitAhead struct {
	Pos
	// Commit is the commit index of the HardState, Last the entry that the log ends with before it.
	Commit, Last uint64
}

const (
	// maxCommitAheads bounds what is listed of a hostile log.
	maxCommitAheads = 100
	// keptEntries is how many entries a leader keeps at least, up to 3.4, when it compacts its raft log
	// (etcdserver/server.go, DefaultSnapshotCatchUpEntries).
	keptEntries = 5000
)

// aheadWatch finds CommitAhead in one segment, or around the begin of one. A snapshot that the member receives commits
// entries that the log never holds, in 3.3 with a HardState before the snapshot's record: the next entry then follows
// the snapshot.
type aheadWatch struct {
	// last is the last entry, or the received snapshot after it; 0 before the first entry and after lost records. term
	// is that of the entry, 0 for a snapshot, and held the last HardState.
	last, term uint64
	held       HardState
	open       CommitAhead
	found      []CommitAhead
	// removed are the entries that the log ended with where the record of a snapshot follows that the member took
	// itself, so that it held the entries up to that one.
	removed []uint64
	// short is the last entry before the record of a snapshot within its term, as long as no HardState shows that this
	// is still the term; 0 for none.
	short uint64
	// head are the records up to the first entry, bounded. A watch that comes from the segment before takes them too.
	// begun is true after the first entry and after lost records.
	head  []func(w *aheadWatch)
	begun bool
}

// maxHead bounds the records at the begin of a segment that are kept.
const maxHead = 64

// note remembers a record at the begin of the segment.
func (w *aheadWatch) note(record func(w *aheadWatch)) {
	if !w.begun && len(w.head) < maxHead {
		w.head = append(w.head, record)
	}
}

// over continues the watch of the segments before with the begin of the next one, of which own is the watch. It returns
// what it finds there, and the watch for the segments after that.
func (w aheadWatch) over(own *aheadWatch) (found, next aheadWatch) {
	w.found, w.removed, w.head, w.begun = nil, nil, nil, true
	for _, record := range own.head {
		record(&w)
	}
	if own.begun {
		return w, *own
	}
	return w, w
}

func (w *aheadWatch) state(h HardState, pos Pos) {
	w.note(func(w *aheadWatch) { w.state(h, pos) })
	if h == w.held {
		return // a new segment begins with the last HardState (wal.go, cut)
	}
	if w.short > 0 && h.Term == w.held.Term {
		w.remove(w.short)
	}
	w.short, w.held = 0, h
	switch {
	case w.last == 0 || h.Commit <= w.last:
		w.open = CommitAhead{}
	case w.open.Commit == 0:
		w.open = CommitAhead{Pos: pos, Commit: h.Commit, Last: w.last}
	}
}

func (w *aheadWatch) remove(last uint64) {
	if len(w.removed) < maxCommitAheads {
		w.removed = append(w.removed, last)
	}
}

// snapshot takes the record of a snapshot. Servers from 3.5 on, which store the configuration in it, write that of a
// received snapshot before the HardState that commits it (server/etcdserver/raft.go): with a HardState before it, the
// log held the entries. Up to 3.4, a leader sends one only to a member that lacks entries which it has compacted. It
// has every entry of its term but those, and it keeps the last 5,000: a member with an entry of that term that lacks
// fewer was sent the entries.
func (w *aheadWatch) snapshot(term, index uint64, configured bool) {
	w.note(func(w *aheadWatch) { w.snapshot(term, index, configured) })
	switch {
	case configured && w.open.Commit > 0 && index >= w.open.Commit:
		w.remove(w.open.Last)
	case !configured && w.last > 0 && index > w.last && index-w.last < keptEntries && w.term > 0 && w.term == term &&
		w.held.Term == term:
		w.short = w.last
	}
	if w.last > 0 && index > w.last {
		w.last, w.term = index, 0
	}
	if index >= w.open.Commit {
		w.open = CommitAhead{}
	}
}

func (w *aheadWatch) entry(term, index uint64) {
	w.note(func(w *aheadWatch) { w.entry(term, index) })
	w.begun = true
	if w.open.Commit > 0 && index == w.open.Last+1 && len(w.found) < maxCommitAheads {
		w.found = append(w.found, w.open)
	}
	w.last, w.term, w.open = index, term, CommitAhead{}
}

// lost forgets the end of the log, because records were lost.
func (w *aheadWatch) lost() {
	w.note((*aheadWatch).lost)
	w.begun, w.last, w.open = true, 0, CommitAhead{}
}

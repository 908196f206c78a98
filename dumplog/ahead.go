package dumplog

// CommitAhead is a HardState that commits entries which the log only holds after it. A member commits what its log
// holds (raft, log.go, commitTo), and stores entries before the HardState that commits them (etcd, wal.go, Save, 3.0 to
// 3.8). So entries before that place were removed from the log, and the later ones renumbered.
type CommitAhead struct {
	Pos
	// Commit is the commit index of the HardState, Last the entry that the log ends with before it.
	Commit, Last uint64
}

// maxCommitAheads bounds what is listed of a hostile log.
const maxCommitAheads = 100

// aheadWatch finds CommitAhead in one segment. A snapshot that the member receives commits entries that the log never
// holds, in 3.3 with a HardState before the snapshot's record: the next entry then follows the snapshot.
type aheadWatch struct {
	// last is the last entry, or the received snapshot after it; 0 before the first entry and after lost records.
	last  uint64
	open  CommitAhead
	found []CommitAhead
	// removed are the entries that the log ended with where a HardState commits further and the record of a snapshot
	// follows that 3.5 or later wrote.
	removed []uint64
}

func (w *aheadWatch) state(h HardState, pos Pos) {
	switch {
	case w.last == 0 || h.Commit <= w.last:
		w.open = CommitAhead{}
	case w.open.Commit == 0:
		w.open = CommitAhead{Pos: pos, Commit: h.Commit, Last: w.last}
	}
}

// snapshot takes the record of a snapshot. Servers from 3.5 on, which store the configuration in it, write that of a
// received snapshot before the HardState that commits it (server/etcdserver/raft.go): with a HardState before it, the
// log held the entries.
func (w *aheadWatch) snapshot(index uint64, configured bool) {
	if configured && w.open.Commit > 0 && index >= w.open.Commit && len(w.removed) < maxCommitAheads {
		w.removed = append(w.removed, w.open.Last)
	}
	if w.last > 0 {
		w.last = max(w.last, index)
	}
	if index >= w.open.Commit {
		w.open = CommitAhead{}
	}
}

func (w *aheadWatch) entry(index uint64) {
	if w.open.Commit > 0 && index == w.open.Last+1 && len(w.found) < maxCommitAheads {
		w.found = append(w.found, w.open)
	}
	w.last, w.open = index, CommitAhead{}
}

// lost forgets the end of the log, because records were lost.
func (w *aheadWatch) lost() { w.last, w.open = 0, CommitAhead{} }

package dumplog

// startMarks derives from the first records of a log how the member was created.
//
// A bootstrap writes one ConfChangeAddNode per initial member at term 1 and then HardState{term 1, vote 0, commit n}. A
// restore does the same with a vote. A joining member has no entries before its first HardState, or only entries of the
// leader, whose term and commit do not fit (server/etcdserver/bootstrap.go, etcdutl/snapshot/v3_snapshot.go, 3.3 to
// 3.8).
type startMarks struct {
	adds  uint64
	other bool
	kind  StartKind
}

func (s *startMarks) add(it *item) {
	if s.kind != "" {
		return
	}
	switch it.rec.Type {
	case RecordEntry:
		e := &it.head
		cc, _ := decodeConfChange(e.data)
		if e.typ == EntryConfChange && e.term == 1 && e.index == s.adds+1 && cc.Type == ConfChangeAddNode && !s.other {
			s.adds++
		} else {
			s.other = true
		}
	case RecordSnapshot:
		// With its first HardState removed, the record of the snapshot that a restore makes at once remains.
		r, _ := DecodeSnapshotRecord(it.rec.Data)
		if s.adds > 0 && !s.other && r.Term == 1 && r.Index == s.adds {
			s.kind = StartRestore
		}
	case RecordState:
		h, _ := DecodeHardState(it.rec.Data)
		switch {
		case s.adds == 0 || s.other || h.Term != 1 || h.Commit != s.adds:
			s.kind = StartJoin
		case h.Vote != 0:
			s.kind = StartRestore
		default:
			s.kind = StartBootstrap
		}
	}
}

// isForced reports whether --force-new-cluster wrote a conf change: a removal without ID and context, or, after those,
// the addition of the member itself without ID. A change that a client requested has the ID of its request
// (server/storage/util.go, CreateConfigChangeEnts).
func isForced(data []byte) (removes, adds bool) {
	cc, err := decodeConfChange(data)
	if err != nil || cc.ID != 0 {
		return false, false
	}
	return cc.Type == ConfChangeRemoveNode && len(cc.Context) == 0, cc.Type == ConfChangeAddNode
}

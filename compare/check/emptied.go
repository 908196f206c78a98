package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// emptiedEntries are the findings about entries of a log whose data was removed.
func (in *Input) emptiedEntries(m *evidence.Member) []Finding {
	if in.Replay == nil {
		return nil
	}
	var list []replay.Emptied
	for _, e := range in.Replay.Emptied {
		if in.Members[e.Member] == m {
			list = append(list, e)
		}
	}
	return placeFindings(list, func(replay.Emptied) string { return "" },
		func(e replay.Emptied) Finding { return entryEmptied(m, e) }, emptiedRanges)
}

func entryEmptied(m *evidence.Member, e replay.Emptied) Finding {
	return Finding{Kind: KindEntryEmptied, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Term: e.Term, Index: e.Index},
		Title: fmt.Sprintf("%s: the data of entry %d was removed", m.Label(), e.Index),
		Explanation: fmt.Sprintf("raft writes an entry without data where a leader begins its term, and in the place "+
			"of a conf change that comes before the one before it was applied. Entry %d is the last to wait for. The "+
			"HardStates show that it and later entries were committed before this one was proposed. The CRC chain "+
			"holds, so the log was rewritten. etcd does not notice", e.Pending),
		Evidence: []Evidence{{Member: m.Label(), File: e.Segment, Offset: Int64(e.Offset),
			Field: fmt.Sprintf("entry %d", e.Index), Observed: "no data", Expected: "a request or a conf change",
			Show: showLog(m, e.Index)},
			{Member: m.Label(), File: e.Segment, Field: fmt.Sprintf("HardStates before entry %d", e.Index),
				Observed: fmt.Sprintf("commit entry %d and later ones", e.Pending), Show: showLogAs(m, "--raw")}}}
}

// emptiedRanges says where the entries are.
func emptiedRanges(es []replay.Emptied) string {
	return fmt.Sprintf("from entry %d to entry %d", es[0].Index, es[len(es)-1].Index)
}

package replay

import (
	"context"
	"math/bits"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

const (
	// doubtBit is the lowest bit of a consistent index that is looked at: a smaller step beyond the log is a lost tail
	// as well as a flip.
	doubtBit = 6
	// absurd is how far beyond all logs no cluster gets: at a thousand entries a second it is 136 years.
	absurd = 1 << 32
	// idleTimes is how much longer than the idle end of the log a lost tail without any effect would have to be to be
	// disbelieved.
	idleTimes = 4
)

// RunWithPlausibleIndex is Run for members of which one may have a consistent index that cannot be true: beyond its
// own log, and without a trace of what came behind the log in its database. Taken at its word, such an index proves
// entries committed that nobody has, and accuses the others. The index that the database fits is believed instead
// (evidence.Member.OverrideConsistentIndex) when the replay with it explains the database.
func RunWithPlausibleIndex(ctx context.Context, members []*evidence.Member, o Options) (*Result, error) {
	r, err := Run(ctx, members, o)
	if err != nil {
		return nil, err
	}
	doubted := false
	for _, m := range members {
		if index := r.instead(m); index != 0 {
			m.OverrideConsistentIndex(index)
			doubted = true
		}
	}
	if !doubted {
		return r, nil
	}
	again, err := Run(ctx, members, o)
	if err != nil {
		return nil, err
	}
	back := false
	for _, mr := range again.Members {
		if m := mr.Member; m.HasIndexOverride() && !mr.ends() && !beyondReason(m) {
			m.OverrideConsistentIndex(0) // the database holds what came behind the log: the log has lost it
			back = true
		}
	}
	if back {
		return Run(ctx, members, o)
	}
	return again, nil
}

// instead returns the index that the member's stored consistent index was probably made from, 0 when the stored one may
// be true.
func (r *Result) instead(m *evidence.Member) uint64 {
	stored, last := m.StoredIndex(), m.LastIndex()
	if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged || !m.HasLog() || stored <= last || m.HasIndexOverride() {
		return 0
	}
	from := cleared(stored, last)
	if from < lowestIndex(m) {
		from = 0
	}
	if beyondReason(m) {
		if from == 0 {
			return last
		}
		return from
	}
	s := &m.WAL.Summary
	if from == 0 || stored-from < 1<<doubtBit || len(s.Damage) > 0 || s.MaxCommit > last || r.Survey == nil {
		return 0
	}
	if stored <= r.Last {
		if r.Survey.KeyWrite(last+1, stored) == 0 {
			return 0
		}
		return from
	}
	if r.Survey.LastChange == 0 || stored-max(last, r.Last) < idleTimes*(r.Last-min(r.Last, r.Survey.LastChange)+1) {
		return 0
	}
	return from
}

// lowestIndex is the lowest consistent index that a sound database beside the member's log can have: what the log no
// longer holds was applied before it was purged, and a server takes a raft snapshot of what it has applied.
func lowestIndex(m *evidence.Member) (index uint64) {
	s := &m.WAL.Summary
	if s.FirstIndex > 0 {
		index = s.FirstIndex - 1
	}
	for i := range s.Snapshots {
		index = max(index, s.Snapshots[i].Index)
	}
	return index
}

// beyondReason tells an index that no log of this cluster can ever have reached.
func beyondReason(m *evidence.Member) bool {
	return m.StoredIndex() > m.LastIndex() && m.StoredIndex()-m.LastIndex() >= absurd
}

// cleared is the index with one bit less that lies within the log, the highest there is; 0 when no single bit does it.
func cleared(stored, last uint64) (index uint64) {
	for rest := stored; rest != 0; rest &= rest - 1 {
		if x := stored &^ (1 << bits.TrailingZeros64(rest)); x <= last {
			index = max(index, x)
		}
	}
	return index
}

// ends tells whether the member's database is what the log up to its consistent index made, and holds nothing after it.
func (r *MemberResult) ends() bool {
	return r.Checked && r.Ahead == nil && r.AuthAhead == nil &&
		len(r.Extra)+r.Counts[Missing]+r.Counts[Contradicted]+r.BelowCount == 0
}

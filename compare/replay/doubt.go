package replay

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

const (
	// doubtBit is the lowest bit of a consistent index that is considered: a smaller step beyond the log can be a lost
	// tail as well as a flip.
	doubtBit = 6
	// absurd is a distance beyond all logs that no cluster reaches: a thousand entries a second take 136 years for it.
	absurd = 1 << 32
	// idleTimes is the limit for a lost tail without any effect, as a multiple of the idle end of the log. A longer one
	// is not plausible.
	idleTimes = 4
)

// RunWithPlausibleIndex is Run for members of which one may have an implausible consistent index: beyond its own log,
// and with no trace of later entries in its database. If it were used, it would prove that entries are committed that
// no member has, and accuse the others. The replay uses the index that fits the database instead
// (evidence.Member.OverrideConsistentIndex) if it then explains the database.
//
// It also knows members whose small buckets are further than the consistent index: what the entries between change is
// then expected neither to be there nor to be missing.
func RunWithPlausibleIndex(ctx context.Context, members []*evidence.Member, o Options) (*Result, error) {
	for _, m := range members {
		m.AppliedBeyond(0)
	}
	r, err := runWithIndex(ctx, members, o)
	if err != nil || !slices.ContainsFunc(r.Members, func(m *MemberResult) bool { return m.RowsAhead != nil }) {
		return r, err
	}
	for _, m := range r.Members {
		if m.RowsAhead != nil {
			m.Member.AppliedBeyond(m.RowsAhead.To)
		}
	}
	again, err := Run(ctx, members, o)
	if err != nil {
		return nil, err
	}
	for i, m := range again.Members {
		m.RowsAhead = r.Members[i].RowsAhead
		m.Ahead = cmp.Or(r.Members[i].Ahead, m.Ahead)
	}
	return again, nil
}

// runWithIndex is Run with the consistent indexes that fit the databases.
func runWithIndex(ctx context.Context, members []*evidence.Member, o Options) (*Result, error) {
	r, err := Run(ctx, members, o)
	if err != nil {
		return nil, err
	}
	doubts := r.doubts(members)
	for !r.TooLarge {
		tried := false
		for _, d := range doubts {
			if !d.settled {
				d.member.OverrideConsistentIndex(d.candidates[0])
				d.candidates = d.candidates[1:]
				tried = true
			}
		}
		if !tried {
			return r, nil
		}
		if r, err = Run(ctx, members, o); err != nil {
			return nil, err
		}
		for _, mr := range r.Members {
			if d := doubts[mr.Member]; d != nil {
				d.settled = len(d.candidates) == 0 || mr.ends() && !mr.mayHaveIdled(r.Last)
			}
		}
	}
	return r, nil
}

// doubt is a member whose stored consistent index is implausible, with the indexes to use instead that were not tried
// yet: the first that explains the database is right, and the last is used if none does.
type doubt struct {
	member     *evidence.Member
	candidates []uint64
	settled    bool
}

// doubts returns the members with an implausible consistent index.
func (r *Result) doubts(members []*evidence.Member) map[*evidence.Member]*doubt {
	out := map[*evidence.Member]*doubt{}
	for _, m := range members {
		index := r.instead(m, members)
		if index == 0 {
			continue
		}
		d := &doubt{member: m, candidates: []uint64{index}}
		// Entries of the log that are not known to be committed may not have been applied
		if commit := m.WAL.Summary.MaxCommit; commit >= lowestIndex(m) && commit < index {
			d.candidates = append(d.candidates, commit)
		}
		last := uint64(0) // the stored one: the database has the effects of later entries, which the log has lost
		if beyondReason(m) || m.DatabaseOfAnotherCluster(members) {
			last = index
		}
		d.candidates = append(d.candidates, last)
		out[m] = d
	}
	return out
}

// instead returns the index that the member's stored consistent index was probably made from, 0 when the stored one may
// be true: the same without one bit, or the end of the log where no majority can have had more.
func (r *Result) instead(m *evidence.Member, members []*evidence.Member) uint64 {
	stored, last := m.StoredIndex(), m.LastIndex()
	if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged || !m.HasLog() || stored <= last || m.HasIndexOverride() {
		return 0
	}
	if m.DatabaseOfAnotherCluster(members) {
		return last
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
	if from != 0 && stored-from < 1<<doubtBit {
		from = 0
	}
	if from == 0 && stored > r.Last && stored-last >= 1<<doubtBit && m.NeverCommitted(members) {
		from = last
	}
	if from == 0 || len(s.Damage) > 0 || s.MaxCommit > last || r.Survey == nil || len(m.DB.Alarms) > 0 {
		return 0 // under an alarm, any number of entries has no effect
	}
	if s.FirstIndex > 1 && m.CurrentRevision() > int64(from)+1 {
		return 0 // an entry makes one revision at most, unless the cluster began with those of a backup
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

// lowestIndex returns the lowest consistent index that a sound database with the member's log can have. Purged entries
// were applied before, and a server takes a raft snapshot of applied entries only.
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

// beyondReason reports an index that no log of this cluster can ever have reached.
func beyondReason(m *evidence.Member) bool {
	return m.StoredIndex() > m.LastIndex() && m.StoredIndex()-m.LastIndex() >= absurd
}

// cleared returns the highest index within the log that differs from the stored one by one cleared bit; 0 if there is
// none.
func cleared(stored, last uint64) (index uint64) {
	for rest := stored; rest != 0; rest &= rest - 1 {
		if x := stored &^ (1 << bits.TrailingZeros64(rest)); x <= last {
			index = max(index, x)
		}
	}
	return index
}

// mayHaveIdled reports whether the entries that the logs have lost below the stored index may have had no effect. The
// last ones before them had none, and the database then ends with them as well.
func (r *MemberResult) mayHaveIdled(last uint64) bool {
	m := r.Member
	end := max(m.LastIndex(), last)
	if m.StoredIndex() <= end || beyondReason(m) {
		return false
	}
	idle := m.ConsistentIndex() - min(m.ConsistentIndex(), max(r.LastWrite, r.BaseIndex))
	return m.StoredIndex()-end < idleTimes*(idle+1)
}

// ends reports whether the member's database is what the log up to its consistent index made, and holds nothing after
// it. If no record belongs to an entry, nothing shows that the end of the log made the end of the database.
func (r *MemberResult) ends() bool {
	return r.Checked && r.Writes > 0 && r.LastWrite > 0 && r.Ahead == nil && r.RowsAhead == nil &&
		len(r.Extra)+r.Counts[Missing]+r.Counts[Contradicted]+r.BelowCount == 0
}

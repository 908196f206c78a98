package rebuild

import (
	"context"
	"math"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// decide resolves a step whose outcome depends on the unknown patch release. It uses the outcome in the members'
// databases. If no database shows this entry, the step stays uncertain and follows the last entry with the same rule.
func (e *engine) decide(ctx context.Context, m *replay.Machine, st *replay.Step) error {
	if st.Rule == nil || st.Sure {
		return nil
	}
	with, ok1 := m.Version().Narrow(st.Rule, true)
	without, ok2 := m.Version().Narrow(st.Rule, false)
	if !ok1 || !ok2 {
		return nil
	}
	yes, no := m.PrepareAs(st.Entry, with), m.PrepareAs(st.Entry, without)
	follows, shown := e.witness(&yes, &no, m.Revision()+1)
	until := uint64(0)
	if shown && (follows == (yes.Writes() > 0)) {
		// The records exist. But a later entry may have written them: servers propose refused requests again.
		writes := &yes
		if no.Writes() > 0 {
			writes = &no
		}
		var err error
		if until, err = e.otherWriter(ctx, m, writes); err != nil {
			return err
		}
	}
	leaning, known := e.leaning[st.Rule]
	switch {
	case shown && until == 0:
		e.leaning[st.Rule] = follows
	case shown:
		// A history with a skipped entry asks twice.
		if n := len(e.unsettled); n == 0 || e.unsettled[n-1].Index != st.Entry.Index {
			e.unsettled = append(e.unsettled, unsettled{line(&st.Entry), until})
		}
		if known {
			follows = leaning
		}
	case known:
		follows = leaning
		yes.Sure, no.Sure = false, false
	default:
		return nil
	}
	if follows {
		*st = yes
	} else {
		*st = no
	}
	return nil
}

// unsettled is an entry that only one of two histories executes, until another entry at until has the same effect. From
// there on both are equal.
type unsettled struct {
	EntryLine
	until uint64
}

// maxLookAhead bounds how many entries are searched for another writer of the same records.
const maxLookAhead = 200_000

// otherWriter returns the entry that would have written the same records if this one did not. 0 means none, so this one
// did. After the returned entry the two histories are equal; math.MaxUint64 means that they may always differ.
func (e *engine) otherWriter(ctx context.Context, m *replay.Machine, writes *replay.Step) (uint64, error) {
	alone := m.Clone()
	until, looked := uint64(0), 0
	end := uint64(0)
	for _, x := range e.b.members {
		end = max(end, x.AppliedMax)
	}
	for x, err := range replay.LogFrom(ctx, e.b.logs, writes.Entry.Index+1) {
		if err != nil {
			return 0, err
		}
		if looked++; looked > maxLookAhead || x.Err != nil {
			return math.MaxUint64, nil
		}
		if x.Index > end {
			break
		}
		st := alone.Prepare(x)
		if !st.Sure && st.Rule != nil {
			for _, follows := range []bool{true, false} {
				if v, ok := alone.Version().Narrow(st.Rule, follows); ok {
					if as := alone.PrepareAs(x, v); as.SameRecords(writes) {
						until = x.Index
					} else if as.Writes() == 0 {
						st = as
					}
				}
			}
		}
		switch {
		case st.SameRecords(writes):
			return settles(writes, x.Index), nil
		case st.Writes() > 0:
			return settles(writes, until), nil
		case x.Req.Compaction != nil || x.Req.LeaseGrant != nil && writes.Entry.Req.LeaseRevoke != nil &&
			x.Req.LeaseGrant.ID == writes.Entry.Req.LeaseRevoke.ID:
			// They have different outcomes in the two histories.
			if until > 0 {
				return math.MaxUint64, nil
			}
		}
		alone.Apply(st)
	}
	return settles(writes, until), nil
}

// settles returns until for a lease revoke: the lease is gone after either entry, and the second revoke finds nothing.
// Other requests would take effect twice.
func settles(writes *replay.Step, until uint64) uint64 {
	if until > 0 && writes.Entry.Req.LeaseRevoke == nil {
		return math.MaxUint64
	}
	return until
}

// leftOpen counts the entries at which two histories still differ at the end.
func (e *engine) leftOpen() {
	res := e.b.res
	for _, u := range e.unsettled {
		if u.until <= e.at.Index {
			continue
		}
		res.Unsettled++
		res.DoubtfulCount++
		if len(res.Doubtful) < maxListed {
			u.Why = "a later entry of the same effect may have written what the members' databases show; patch " +
				"releases differ here, --etcd names one"
			res.Doubtful = append(res.Doubtful, u.EntryLine)
		}
	}
}

// witness asks the members' databases which of two steps was executed: one writes, the other does not.
func (e *engine) witness(yes, no *replay.Step, rev int64) (follows, shown bool) {
	writes := yes
	if no.Writes() > 0 {
		writes = no
	}
	if yes.Writes() > 0 && no.Writes() > 0 || writes.Writes() == 0 {
		return false, false
	}
	wrote := map[bool]bool{}
	for _, m := range e.b.members {
		if did, ok := wroteAt(m, writes, rev); ok {
			wrote[did] = true
		}
	}
	if len(wrote) != 1 {
		return false, false // no database shows it, or they disagree
	}
	return wrote[true] == (writes == yes), true
}

// wroteAt reports whether the records of a revision are those of the step; ok is false if the database does not show
// that revision.
func wroteAt(m *evidence.Member, st *replay.Step, rev int64) (did, ok bool) {
	if !m.HasDB() || m.DB.KVDamaged || m.DB.Meta.CompactRev() >= rev {
		return false, false
	}
	n := 0
	for r, err := range m.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: rev}, dumpdb.Rev{Main: rev + 1}) {
		switch {
		case err != nil || r.Err != nil:
			return false, false
		case !st.Touches(string(r.KV.Key)):
			return false, true
		}
		n++
	}
	return n == st.Writes(), n > 0 || m.AppliedMin >= st.Entry.Index
}

// leanings are the rules that an entry showed to be followed, or not.
type leanings map[*release.Rule]bool

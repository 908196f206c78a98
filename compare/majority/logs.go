package majority

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxPlaces is how many damaged places and gaps a log may have: one with more proves nothing.
const maxPlaces = 1000

// counts reports whether a log counts for the majority: it shows the current term of its member, as far as the log
// reaches, and nothing in it contradicts raft.
func counts(m *evidence.Member) bool {
	s := &m.WAL.Summary
	if !readable(m) || s.HardState == nil || len(m.WAL.LastByTerm) == 0 || len(s.OddVotes) > 0 ||
		len(s.CommitFalls) > 0 {
		return false
	}
	for _, d := range s.Damage {
		// A HardState of a newer term may be lost there. An unfinished record at the end never took effect.
		if after(d.Pos, s.HardStatePos) && d.OnStart != dumplog.StartCuts {
			return false
		}
	}
	f := m.Facts()
	return boot.EndsWhole(&f)
}

// readable reports whether the order of the records of a log is that in which the member wrote them.
func readable(m *evidence.Member) bool {
	s := &m.WAL.Summary
	return !s.Unmarked && len(s.Damage)+len(s.Jumps) <= maxPlaces &&
		!slices.ContainsFunc(s.Damage, func(d *dumplog.DamageError) bool {
			switch d.Kind {
			case dumplog.DamageMixed, dumplog.DamageChain, dumplog.DamageName, dumplog.DamageTermOrder,
				dumplog.DamageIndexGap, dumplog.DamageMarks:
				return true
			}
			return false
		})
}

// after reports whether a place in a log comes after another one. Names of segments begin with their number.
func after(a, b dumplog.Pos) bool {
	return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Offset, b.Offset)) > 0
}

// span is a range of raft indexes, both included.
type span struct{ from, to uint64 }

// lacks returns the parts of a span that a log does not hold.
func lacks(m *evidence.Member, of span) (out []span) {
	s := &m.WAL.Summary
	add := func(from, to uint64) {
		if from, to = max(from, of.from), min(to, of.to); from <= to {
			out = append(out, span{from, to})
		}
	}
	if s.FirstIndex > 0 {
		add(0, s.FirstIndex-1)
	}
	for _, j := range s.Jumps {
		add(j.From, j.To)
	}
	for _, d := range s.Damage {
		switch {
		case d.LostFrom == 0:
		case d.LostTo == 0:
			add(d.LostFrom, of.to)
		default:
			add(d.LostFrom, d.LostTo)
		}
	}
	add(s.LastIndex+1, of.to)
	return out
}

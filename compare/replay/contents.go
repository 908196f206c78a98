package replay

import (
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// putContents are keys with values that entries of the log put, each with the first of its entries. They show whether
// a backup holds anything of this log.
type putContents struct {
	first map[uint64]uint64
	// again are the contents that a later entry puts, too, each with the last one; kept are keys of which an entry
	// keeps the value.
	again map[uint64]uint64
	kept  map[uint64]bool
	// certain are the indexes of puts that wrote a revision each, in order, unless mayRefuse is true: then auth or an
	// alarm may have refused some.
	certain   []uint64
	mayRefuse bool
	// full is true if there were too many.
	full bool
	// puts are the entries that put something new, in order; stamped those of them that a database refuses if its auth
	// differs.
	puts, stamped []uint64
	// missing are the spans of entries that no log holds, once the survey has read all. alarmed then returns those at
	// which an alarm was on, or may have been, as the entries after an index show it.
	missing gaps
	alarmed func(above uint64) gaps
}

// maxContents bounds the contents that are kept, newestRevisions the revisions of a backup among which its newest puts
// are looked for.
const (
	maxContents     = 1 << 20
	newestRevisions = 4096
	newestPuts      = 4
)

// manyPuts is how many puts of a log cannot all have been refused where no alarm is on.
const manyPuts = 8

// newPutContents is nil where no source may be a backup from before a restore.
func newPutContents(r *Result) *putContents {
	backup := slices.ContainsFunc(r.Members,
		func(x *MemberResult) bool { return !x.Member.HasWAL() && x.Member.HasDB() })
	if !backup || r.bootstrapped() {
		return nil
	}
	return newContents()
}

func newContents() *putContents {
	return &putContents{first: map[uint64]uint64{}, again: map[uint64]uint64{}, kept: map[uint64]bool{},
		alarmed: func(uint64) gaps { return nil }}
}

// anyLease is in the place of the lease that a put keeps.
const anyLease = -1

// contentOf identifies what a put leaves.
func contentOf(key, value []byte, lease int64) uint64 {
	return xxh3.HashSeed(key, apply.SumOf(value)^uint64(lease)*0x9e3779b97f4a7c15)
}

// entriesOf returns the first and the last entry that can have put a record, 0 if none can.
func (pc *putContents) entriesOf(rec *dumpdb.Revision) (first, last uint64) {
	for _, lease := range []int64{rec.KV.Lease, anyLease} {
		c := contentOf(rec.KV.Key, rec.KV.Value, lease)
		at, ok := pc.first[c]
		if !ok {
			continue
		}
		if first == 0 || at < first {
			first = at
		}
		last = max(last, at, pc.again[c])
	}
	return first, last
}

func (pc *putContents) note(it *item) {
	if pc == nil || pc.full {
		return
	}
	pc.mayRefuse = pc.mayRefuse || it.req.Header.AuthRevision > 0 || it.req.Kind.ChangesAuth() ||
		it.req.Alarm != nil && apply.ChangesAlarms(it.req.Alarm)
	if PlainPut(it.req) && len(it.others) == 0 {
		pc.certain = append(pc.certain, it.entry.Index)
	}
	puts := false
	it.req.EachOp(func(op dumplog.RequestOp) {
		switch {
		case op.Put == nil:
			return
		case op.Put.IgnoreValue:
			pc.kept[xxh3.Hash(op.Put.Key)] = true
			return
		}
		lease := op.Put.Lease
		if op.Put.IgnoreLease {
			lease = anyLease
		}
		c := contentOf(op.Put.Key, op.Put.Value, lease)
		if _, have := pc.first[c]; have {
			pc.again[c] = it.entry.Index
		} else {
			pc.first[c], puts = it.entry.Index, true
		}
	})
	switch {
	case !puts:
	case it.req.Header.AuthRevision > 0:
		pc.stamped = append(pc.stamped, it.entry.Index)
	default:
		pc.puts = append(pc.puts, it.entry.Index)
	}
	pc.full = max(len(pc.first), len(pc.certain), len(pc.kept)) >= maxContents
}

// end notes the entries that no log holds, and those that an alarm may have refused: all puts of a long log.
func (pc *putContents) end(s *Survey, r *Result) {
	if pc == nil {
		return
	}
	pc.missing = r.Gaps
	var databases []dumpdb.Alarm
	for _, x := range r.Members {
		if x.Member.HasDB() {
			databases = append(databases, x.Member.DB.Alarms...)
		}
	}
	pc.alarmed = func(above uint64) gaps { return newAlarmLog(s, above+1, databases).spans() }
}

// manyBetween reports whether there are many puts above an index up to another that no alarm can have refused.
func (pc *putContents) manyBetween(above, index uint64) bool {
	return pc.countBetween(above, index, pc.puts, pc.stamped) >= manyPuts
}

// mayRefuseAll reports whether the member that made a backup may have refused most puts of the log up to its index: one
// with another auth revision refuses those that carry one.
func (pc *putContents) mayRefuseAll(m *evidence.Member) bool {
	above := pc.missing.lastUpTo(m.AppliedMax)
	return len(pc.stamped) > 0 && pc.countBetween(above, m.AppliedMin, pc.puts) < manyPuts
}

// countBetween counts the entries above an index up to another at which no alarm can have been on, up to manyPuts. No
// entry between them is missing.
func (pc *putContents) countBetween(above, index uint64, lists ...[]uint64) (n int) {
	alarmed := pc.alarmed(above)
	for _, entries := range lists {
		from, _ := slices.BinarySearch(entries, above+1)
		for _, entry := range entries[from:] {
			if entry > index || n >= manyPuts {
				break
			}
			if !alarmed.has(entry) {
				n++
			}
		}
	}
	return n
}

// wroteUpTo is how many revisions the entries up to the index of a database have written at least.
func (pc *putContents) wroteUpTo(m *evidence.Member) int64 {
	if pc.mayRefuse || m.DB.Auth.Enabled || len(m.DB.Alarms) > 0 {
		return 0
	}
	n, _ := slices.BinarySearch(pc.certain, m.AppliedMin+1)
	return int64(n)
}

// writtenUpTo returns a revision that the log had written at an index or before, as the puts of a data dir above
// another revision show it: only entries up to the index put what it holds there. It is 0 if none does, or if later
// entries are in no log.
func (pc *putContents) writtenUpTo(index uint64, dir *evidence.Member, above int64) int64 {
	if pc == nil || pc.full || pc.missing.lastUpTo(math.MaxUint64) > index {
		return 0
	}
	last := dir.DB.KV.LastRev.Main
	for rec, err := range dir.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: above + 1},
		dumpdb.Rev{Main: min(last, above+newestRevisions) + 1}) {
		if err != nil {
			return 0
		}
		if rec.Tombstone || rec.Err != nil || pc.kept[xxh3.Hash(rec.KV.Key)] {
			continue
		}
		if _, last := pc.entriesOf(&rec); last > 0 && last <= index {
			return rec.Rev.Main
		}
	}
	return 0
}

// noneOf reports whether no entry up to the index of a database can have made any of its newest puts, although there
// are many that put something after the last entries that no log holds. A database to which one entry wrote a put has
// it among them. Those up to the compact revision count as far as the entries that certainly wrote a revision reach
// down: the log wrote these too.
func (pc *putContents) noneOf(m *evidence.Member) bool {
	return pc != nil && pc.noneAbove(m, min(m.CompactRevision(), m.DB.KV.LastRev.Main-pc.wroteUpTo(m)))
}

// fewOfNewest reports whether at most so many of the newest puts that are left, whatever is compacted, are the log's.
// They may be from before the log, so this proves nothing by itself.
func (pc *putContents) fewOfNewest(m *evidence.Member, most int) bool {
	made, enough := pc.madeAbove(m, 0)
	return enough && made <= most
}

func (pc *putContents) noneAbove(m *evidence.Member, rev int64) bool {
	made, enough := pc.madeAbove(m, rev)
	return enough && made == 0
}

// madeAbove counts the newest puts of a database above a revision that entries up to its index can have made. It is
// false if there are too few, or too few puts in the log.
func (pc *putContents) madeAbove(m *evidence.Member, rev int64) (n int, enough bool) {
	if pc == nil || pc.full {
		return 0, false
	}
	above := pc.missing.lastUpTo(m.AppliedMax)
	if above >= m.AppliedMin || !pc.manyBetween(above, m.AppliedMin) {
		return 0, false
	}
	last := m.DB.KV.LastRev.Main
	from := max(rev+1, last-newestRevisions, 1)
	var made [newestPuts]bool
	puts := 0
	for rec, err := range m.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: from}, dumpdb.Rev{Main: last + 1}) {
		switch {
		case err != nil:
			return 0, false
		case rec.Tombstone || rec.Err != nil:
			continue
		}
		first, _ := pc.entriesOf(&rec)
		made[puts%newestPuts] = first > 0 && first <= m.AppliedMax
		puts++
	}
	for _, is := range made {
		if is {
			n++
		}
	}
	return n, puts >= newestPuts
}

package replay

import (
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// putContents are keys with values that entries of the log put, each with the first of its entries. They show whether a
// backup holds anything of this log.
type putContents struct {
	first map[uint64]uint64
	// certain are the indexes of puts that wrote a revision each, in order, unless mayRefuse is true: then auth or an
	// alarm may have refused some.
	certain   []uint64
	mayRefuse bool
	// full is true if there were too many.
	full bool
}

// maxContents bounds the contents that are kept, newestRevisions the revisions of a backup among which its newest puts
// are looked for.
const (
	maxContents     = 1 << 20
	newestRevisions = 4096
	newestPuts      = 4
)

// manyPuts is how many puts of a log cannot all have been refused.
const manyPuts = 8

// newPutContents is nil where no source may be a backup from before a restore.
func newPutContents(r *Result) *putContents {
	backup := slices.ContainsFunc(r.Members,
		func(x *MemberResult) bool { return !x.Member.HasWAL() && x.Member.HasDB() })
	if !backup || r.bootstrapped() {
		return nil
	}
	return &putContents{first: map[uint64]uint64{}}
}

func contentOf(key, value []byte) uint64 { return xxh3.HashSeed(key, apply.SumOf(value)) }

func (pc *putContents) note(it *item) {
	if pc == nil || pc.full {
		return
	}
	pc.mayRefuse = pc.mayRefuse || it.req.Header.AuthRevision > 0 || it.req.Kind.ChangesAuth() ||
		it.req.Alarm != nil && it.req.Alarm.Action != 0
	if PlainPut(it.req) && len(it.others) == 0 {
		pc.certain = append(pc.certain, it.entry.Index)
	}
	it.req.EachOp(func(op dumplog.RequestOp) {
		if op.Put == nil || op.Put.IgnoreValue {
			return
		}
		c := contentOf(op.Put.Key, op.Put.Value)
		if _, have := pc.first[c]; !have {
			pc.first[c] = it.entry.Index
		}
	})
	pc.full = max(len(pc.first), len(pc.certain)) >= maxContents
}

func (pc *putContents) manyUpTo(index uint64) bool {
	n := 0
	for _, first := range pc.first {
		if first <= index {
			n++
		}
		if n >= manyPuts {
			return true
		}
	}
	return false
}

// wroteUpTo is how many revisions the entries up to the index of a database have written at least.
func (pc *putContents) wroteUpTo(m *evidence.Member) int64 {
	if pc.mayRefuse || m.DB.Auth.Enabled || len(m.DB.Alarms) > 0 {
		return 0
	}
	n, _ := slices.BinarySearch(pc.certain, m.AppliedMin+1)
	return int64(n)
}

// noneOf reports whether no entry up to the index of a database can have made any of its newest puts, although there
// are many that put something. A database to which one entry wrote a put has it among them. Those up to the compact
// revision count as far as the entries that certainly wrote a revision reach down: the log wrote these too.
func (pc *putContents) noneOf(m *evidence.Member) bool {
	if pc == nil || pc.full || !pc.manyUpTo(m.AppliedMin) {
		return false
	}
	last := m.DB.KV.LastRev.Main
	from := max(min(m.CompactRevision(), last-pc.wroteUpTo(m))+1, last-newestRevisions, 1)
	var made [newestPuts]bool
	puts := 0
	for rec, err := range m.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: from}, dumpdb.Rev{Main: last + 1}) {
		switch {
		case err != nil:
			return false
		case rec.Tombstone || rec.Err != nil:
			continue
		}
		index, ok := pc.first[contentOf(rec.KV.Key, rec.KV.Value)]
		made[puts%newestPuts] = ok && index <= m.AppliedMax
		puts++
	}
	return puts >= newestPuts && !slices.Contains(made[:], true)
}

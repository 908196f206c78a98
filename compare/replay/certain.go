package replay

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Where a log does not reach back to the first entry, some of what it says about keys below the compact revision is
// certain all the same: a plain put writes in every state of the key space, and a key that no later entry names keeps
// its value.

// certainPut is a put whose record must still be there at the place where log and database meet.
type certainPut struct {
	index uint64
	vhash uint64
}

// maxCertain bounds the puts that are remembered.
const maxCertain = 1_000_000

// remember takes in an entry before the place where log and database meet.
func (s *sim) remember(it *item) {
	if !s.whole || !s.alwaysWrites() {
		return
	}
	if mayWrite(it.req) {
		s.lastWriter = nil
		if plainPut(it.req) {
			s.lastWriter = &apply.Key{Name: string(it.req.Put.Key), Entry: it.entry.Index, Mod: s.meet.rev,
				Sum: apply.SumOf(it.req.Put.Value)}
		}
	}
	if plainPut(it.req) && len(s.certain) < maxCertain {
		if s.certain == nil {
			s.certain = map[string]certainPut{}
		}
		s.certain[string(it.req.Put.Key)] = certainPut{it.entry.Index, apply.SumOf(it.req.Put.Value)}
		return
	}
	it.req.EachOp(func(op dumplog.RequestOp) {
		switch {
		case op.Put != nil:
			delete(s.certain, string(op.Put.Key))
		case op.DeleteRange != nil && len(op.DeleteRange.RangeEnd) == 0:
			delete(s.certain, string(op.DeleteRange.Key))
		case op.DeleteRange != nil:
			for k := range s.certain {
				if apply.InRange(k, op.DeleteRange.Key, op.DeleteRange.RangeEnd) {
					delete(s.certain, k)
				}
			}
		}
	})
}

// recall compares what is certain with the keys that the database had at the place.
func (s *sim) recall() {
	for _, k := range sortedKeys(s.certain) {
		want, got := s.certain[k], s.Keys.Get(k)
		if got != nil && got.Sum == want.vhash && got.Lease == 0 {
			continue
		}
		d := BelowDiff{Key: k, Index: want.index, Expected: textOf(&apply.Key{Sum: want.vhash, Loose: true}),
			Observed: "absent"}
		if got != nil {
			d.Rev, d.Observed = got.Mod, textOf(got)
		}
		s.below(d)
	}
	s.certain = nil
	s.recallLast()
}

// recallLast looks for the record of the last entry before the place: where that must have written, it made the
// revision of the place.
func (s *sim) recallLast() {
	w := s.lastWriter
	s.lastWriter = nil
	if w == nil || s.meet.rev <= s.floor() {
		return
	}
	if got := s.Keys.Get(w.Name); got != nil && got.Sum == w.Sum && got.Mod != s.meet.rev {
		s.below(BelowDiff{Key: w.Name, Index: w.Entry, Rev: got.Mod,
			Expected: fmt.Sprintf("revision %d, the last one up to that entry", s.meet.rev),
			Observed: fmt.Sprintf("revision %d", got.Mod)})
	}
}

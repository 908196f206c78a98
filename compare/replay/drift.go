package replay

import "github.com/etcd-medic/etcd-medic/compare/apply"

// In unreadable pages a model counts revisions by what the entries should have written. An uncertain entry may have
// written one or none. So the records after the pages can belong to entries before or after the entry at that count.

// drift notes an entry whose records, if it wrote any, are on unreadable pages. here is true if its revision is known
// to be that of the next records.
func (s *sim) drift(it *item, p apply.Effect, here bool) {
	if s.adrift == 0 && !here && !p.Sure && (p.MayWrite || len(p.Writes) > 0) {
		s.adrift = it.entry.Index
	}
}

// realign decides about records after unreadable pages that are not this entry's. If entries since the pages began can
// have written them and the following ones, the records are theirs, and nothing was executed twice. Else the entry is
// not judged: its writer comes later, or is in the pages.
func (s *sim) realign(it *item, ahead []*item) Outcome {
	index, from := it.entry.Index, s.adrift
	if s.searches < maxSearches {
		starts := s.runStarts(s.cur.peek(0), index)
		for i := len(starts) - 1; i >= 0 && starts[i] >= from; i-- {
			if run, n := s.follow(starts[i], index, s.fitsOneOf(it, ahead)); n > 0 {
				s.takeRun(&run, n)
				s.adrift = 0
				return s.match(it, s.Evaluate(it.req), ahead)
			}
		}
		s.searches++
	}
	return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
}

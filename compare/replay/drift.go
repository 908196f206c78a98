package replay

import "github.com/etcd-medic/etcd-medic/compare/apply"

// In unreadable pages a model counts revisions by what the entries should have written. An uncertain entry may have
// written one or none. So the records after the pages can belong to entries before or after the entry at that count.

// drift notes an entry whose records, if it wrote any, are on unreadable pages. here is true if its revision is known
// to be that of the next records.
func (ma *matcher) drift(it *item, p apply.Effect, here bool) {
	if ma.adrift == 0 && !here && !p.Sure && (p.MayWrite || len(p.Writes) > 0) {
		ma.adrift = it.entry.Index
	}
}

// realign decides about records after unreadable pages that are not this entry's. If entries since the pages began can
// have written them and the following ones, the records are theirs, and nothing was executed twice. Else the entry is
// not judged: its writer comes later, or is in the pages.
func (ma *matcher) realign(it *item, ahead []*item) Outcome {
	index, from := it.entry.Index, ma.adrift
	if ma.searches < maxSearches {
		starts := ma.runStarts(ma.cur.peek(0), index)
		for i := len(starts) - 1; i >= 0 && starts[i] >= from; i-- {
			if run, n := ma.follow(starts[i], index, ma.fitsOneOf(it, ahead)); n > 0 {
				ma.takeRun(&run, n)
				ma.adrift = 0
				return ma.match(it, ma.Evaluate(it.req), ahead)
			}
		}
		ma.searches++
	}
	return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
}

package replay

import (
	"fmt"
	"slices"
)

// On one member there are records that fit an entry, and on the others the entry had no effect. If the next entry that
// must have written has no records on that member, and its own on the others, at the revision of the first, then what
// the member has at that revision is what is left of the second entry's records. So who lacks the effect of the first
// one is counted when the next event is known.

// wait keeps an event whose effect the next one may explain, and counts who lacks the effect of any other one.
func (w *walker) wait(ev *Event) {
	w.settle(ev)
	if slices.ContainsFunc(ev.Outcomes, func(o Outcome) bool { return o.State == NoEffect }) {
		w.waiting = ev
		return
	}
	w.lacking(ev)
}

// settle counts who lacks the effect of the event before another one, nil for the end.
func (w *walker) settle(next *Event) {
	ev := w.waiting
	w.waiting = nil
	if ev == nil || next != nil && w.leftOver(ev, next) {
		return
	}
	w.lacking(ev)
}

// leftOver corrects both events, and drops the first one, if the records that fit an entry on some members are what is
// left of those of the next one.
func (w *walker) leftOver(ev, next *Event) bool {
	rev, without := int64(0), false
	for i, o := range ev.Outcomes {
		n := next.Outcomes[i]
		switch {
		case o.State == Applied && n.State == Missing && (rev == 0 || rev == o.Rev):
			rev = o.Rev
		case o.State == NoEffect && n.State == Applied:
			without = true
		case o.State != NotApplied && o.State != OutsideHistory && o.State != Unknown:
			return false
		}
	}
	if rev == 0 || !without || slices.ContainsFunc(next.Outcomes, func(o Outcome) bool {
		return o.State == Applied && o.Rev != rev
	}) {
		return false
	}
	for i := range ev.Outcomes {
		if ev.Outcomes[i].State != Applied {
			continue
		}
		next.Outcomes[i] = Outcome{State: Contradicted, Rev: rev,
			Detail: fmt.Sprintf("some of its records at revision %d are missing", rev)}
		ev.Outcomes[i] = Outcome{State: NoEffect, Open: true, Detail: mayHaveNone}
		if w.reps[i] == i {
			c := &w.r.Members[i].Counts
			c[Applied]--
			c[NoEffect]++
			c[Missing]--
			c[Contradicted]++
		}
	}
	w.r.EventCount--
	w.r.Events = slices.DeleteFunc(w.r.Events, func(e *Event) bool { return e == ev })
	return true
}

// mayHaveNone is the detail of an entry without effect where the rules allow one as well.
const mayHaveNone = "the rules allow both outcomes"

package render

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// diagnosisScreen is the screen of diagnose.
type diagnosisScreen struct{ reportScreen }

// write writes the answer for one terminal of 80 columns and 24 rows: what is wrong, which member to keep, and what to
// type next.
func (p diagnosisScreen) write() {
	p.verdict()
	p.keep()
	p.members()
	p.firstBreak()
	p.doNow()
	p.more()
	verdictSection{p.page}.lastLine(p.r)
}

// keep says which member to keep and what choosing it gives up.
func (p diagnosisScreen) keep() {
	b := p.r.Best
	if !choice(p.r) {
		return
	}
	p.line("")
	switch len(b.Members) {
	case 0:
		p.hanging("KEEP   ", "undecided: "+strings.TrimPrefix(b.Why, "content cannot decide: "), p.room.wrong)
		return
	case 1:
		p.hanging("KEEP   ", b.Members[0]+": "+whyOf(b, b.Members[0]), p.room.wrong)
	default:
		said := ", equally good: " + eachOf(b, b.Members[0])
		if b.Undecided != "" {
			said = ", undecided: " + b.Undecided
		}
		p.hanging("KEEP   ", strings.Join(b.Members, " or ")+said, p.room.wrong)
	}
	p.hanging("LOSES  ", losesText(&b.Lost), p.room.wrong)
}

// choice reports whether it matters which member is kept.
func choice(r *compare.Report) bool {
	bad := r.Verdict.Health == check.Unhealthy
	return r.Best != nil && len(r.Best.Ranking) > 1 && (bad || len(r.Best.Members) < len(r.Best.Ranking))
}

// whyOf returns the reason to keep a member.
func whyOf(b *compare.Best, member string) string {
	for _, row := range b.Ranking {
		if row.Member == member && len(row.Reasons) > 0 {
			return strings.Join(row.Reasons, "; ")
		}
	}
	return b.Why
}

// eachOf says of several members what is said of one.
func eachOf(b *compare.Best, member string) string {
	if slices.ContainsFunc(b.Ranking, func(r compare.Rank) bool { return r.Member == member && r.HoldsAll }) {
		return "each " + whyOf(b, member)
	}
	return whyOf(b, member)
}

// lostUnseen says why lost entries are not listed.
const lostUnseen = ", and no log at hand holds all of them"

func losesText(l *compare.Lost) string {
	switch none := l.None(); {
	case none && len(l.Unproven) == 0:
		return l.String()
	case none:
		return "nothing that is known" + l.Condition() + ". Not proven: " + strings.Join(l.Unproven, "; ")
	case !l.Shown():
		return l.String() + lostUnseen
	}
	return l.String() + "; --full lists them"
}

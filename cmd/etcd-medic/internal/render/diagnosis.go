package render

import (
	"github.com/etcd-medic/etcd-medic/compare"
)

// diagnosisPage is the text of diagnose.
type diagnosisPage struct{ *page }

// write writes the page for an operator in a hurry: one screen, or with Full everything. The verdict comes first,
// the next command last.
func (d diagnosisPage) write(r *compare.Report) {
	p := d.page
	if p.o.Quiet {
		verdictSection{p}.lastLine(r)
		return
	}
	if !p.o.Full {
		p.onScreen(func(s screen) { diagnosisScreen{reportScreen{s, r}}.write() })
		return
	}
	p.setSources(r)
	verdictSection{p}.write(&r.Verdict)
	p.unused(r.Sources)
	membersSection{p}.write(r)
	verdictSection{p}.firstBreak(r.Verdict.FirstBreak)
	causesSection{p, namedCause(r)}.write(r.Causes)
	findingsSection{p, r.Next}.write(r.Findings)
	confirmationSection{p}.write(r.Confirm)
	bestSection{p}.write(r.Best)
	checksSection{p}.write(r.Checks, false)
	if p.o.Timeline {
		lanesSection{p}.write(r)
		timelineSection{p}.write(r.Timeline)
	}
	p.unchanged(r)
	nextSection{p}.write(r.Next)
	verdictSection{p}.lastLine(r)
}

package render

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// reportScreen is the screen of a report: what those of diagnose, inspect and verify have in common.
type reportScreen struct {
	screen
	r *compare.Report
}

// verdict writes what is wrong, first on the screen, and which inputs could not be used.
func (p reportScreen) verdict() {
	p.setSources(p.r)
	p.sentence(verdictSection{p.page}.word(&p.r.Verdict)+": ", verdictSentence(p.r), p.room.wrong)
	p.unused(p.r.Sources)
}

// doNow shows the first commands: those of this program that repair, else those that inspect, else those to type by
// hand.
func (p reportScreen) doNow() {
	next := p.r.Next
	if len(next) == 0 {
		return
	}
	p.line("")
	kind := byHand
	for i := range next {
		kind = max(kind, kindOf(&next[i]))
	}
	head := p.paint("DO NOW", text.Bold)
	if next[0].Command.IsZero() {
		p.clauses(head+" ", next[0].Text, p.room.sentence)
	} else {
		p.line("%s", head)
	}
	shown := 0
	for i := range next {
		if n := &next[i]; kindOf(n) == kind && !n.Command.IsZero() && shown < screenCommands {
			if shown++; shown <= p.room.texts {
				p.clauses("  ", n.Text, p.room.sentence)
			}
			p.command("    ", n.Command)
		}
	}
}

// stepKind is the kind of a step of a report; a higher one is shown first.
type stepKind int

const (
	nothing stepKind = iota
	byHand
	looks
	repairs
)

func kindOf(n *compare.Next) stepKind {
	words := n.Command.Program()
	switch {
	case len(words) == 0:
		return nothing
	case n.ByHand:
		return byHand
	case n.Gathers:
		return repairs
	case words[0] != "etcd-medic" || len(words) == 1:
		return byHand
	case slices.Contains([]string{"repair", "rebuild", "restore", "extract"}, words[1]):
		return repairs
	}
	return looks
}

// more names what the screen leaves out.
func (p reportScreen) more() {
	open, all := 0, len(p.r.Checks)
	for _, c := range p.r.Checks {
		if c.Outcome != check.Holds && c.Outcome != check.Violated {
			open++
		}
	}
	p.clauses("MORE   ", fmt.Sprintf("--full: %s, %d checks, %d not made; %s",
		plural.Of(len(p.r.Findings), "finding", "findings"), all, open, inputsText(p.r)), 1)
}

// inputsText reports whether the evidence is unchanged.
func inputsText(r *compare.Report) string {
	files := 0
	for _, s := range r.Sources {
		if s.InUse != "" {
			return clean(s.Name) + " is IN USE: " + clean(s.InUse)
		}
		files += s.Files
	}
	switch {
	case files == 0:
		return "no file was read"
	case r.InputsUnchanged:
		return "the inputs did not change"
	}
	return "NOT PROVEN that the inputs did not change"
}

// screenCommands is the maximum number of commands under DO NOW.
const screenCommands = 3

// worst lists the first findings that are more than information.
func (p reportScreen) worst(all []check.Finding) {
	shown, left := 0, 0
	for i := range all {
		f := &all[i]
		switch {
		case f.Severity.Rank() < check.Warning.Rank():
		case shown == screenFindings-p.room.fewer:
			left++
		default:
			if shown++; shown == 1 {
				p.line("")
			}
			p.clauses(fmt.Sprintf("%s %s ", clean(f.ID), p.severity(f.Severity)), f.Title, p.room.sentence)
		}
	}
	if left > 0 {
		p.line("… and %s, see --full", plural.Of(left, "more finding", "more findings"))
	}
}

// screenFindings is the maximum number of findings on the screen of inspect, worst first.
const screenFindings = 4

package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// diagnosis writes the page for an operator in a hurry: one screen, or with Full everything. The verdict comes first,
// the next command last.
func (p *page) diagnosis(r *compare.Report) {
	if p.o.Quiet {
		p.line("%s", p.verdictLine(r))
		return
	}
	if !p.o.Full {
		p.onScreen(func(p *page) { p.screen(r) })
		return
	}
	p.place(r)
	p.verdict(&r.Verdict)
	p.badSources(r.Sources)
	p.memberTable(r)
	p.firstBreak(r.Verdict.FirstBreak)
	p.causes(r.Causes)
	p.findings(r.Findings)
	p.confirmation(r.Confirm)
	p.best(r.Best)
	p.checks(r.Checks, false)
	if p.o.Timeline {
		p.lanes(r)
		p.timeline(r.Timeline)
	}
	p.inputs(r)
	p.next(r.Next)
	p.line("%s", p.verdictLine(r))
}

func (p *page) verdict(v *compare.Verdict) {
	health, color := "inconclusive", text.FgYellow
	switch v.Health {
	case check.Healthy:
		health, color = "healthy", text.FgGreen
	case check.Unhealthy:
		health, color = "NOT HEALTHY", text.FgRed
	}
	line := p.paint(health, color, text.Bold)
	if string(v.Class) != health {
		line += ": " + string(v.Class)
	}
	if v.Cause != nil {
		line += ", cause " + string(*v.Cause)
	}
	if v.Certainty != nil {
		line += " (" + string(*v.Certainty) + ")"
	}
	p.line("%s", line)
	p.text("", v.Summary)
}

// badSources lists the inputs that could not be used, so that the rest is not mistaken for everything.
func (p *page) badSources(sources []compare.Source) {
	for _, s := range sources {
		if s.Error != "" {
			p.text("!! ", s.Name+" was not used: "+s.Error)
		}
	}
}

func (p *page) firstBreak(b *compare.FirstBreak) {
	if b == nil {
		return
	}
	p.line("")
	where := breakPlace(b)
	at := string(b.Check) + " on " + plural.List(b.Member)
	if len(where) > 0 {
		at += ": " + strings.Join(where, ", ")
	}
	head := p.paint("FIRST BREAK", text.Bold) + "  "
	p.text(head, at)
	p.text(strings.Repeat(" ", columns(head)), "observed "+b.Observed+"; expected "+b.Expected)
}

// breakPlace returns where the first violation is: index, revision and bucket.
func breakPlace(b *compare.FirstBreak) (where []string) {
	if b.Index > 0 {
		where = append(where, "entry "+termIndex(b.Term, b.Index))
	}
	if b.Revision != nil {
		where = append(where, "revision "+revision(b.Revision))
	}
	if b.Bucket != "" {
		where = append(where, "bucket "+b.Bucket)
	}
	if len(b.Key) > 0 {
		where = append(where, "key "+quoted(b.Key))
	}
	return where
}

// causes writes the main causes in full, and additional ones in one line each.
func (p *page) causes(causes []compare.Cause) {
	shown := 0
	for _, c := range causes {
		if c.Secondary {
			continue
		}
		if shown++; shown == 1 {
			p.section("causes")
		} else {
			p.line("")
		}
		p.cause(&c)
	}
	if shown == len(causes) {
		return
	}
	p.section("also found")
	for _, c := range causes {
		if c.Secondary {
			p.text("  ", fmt.Sprintf("%s (%s): %s; because of %s", c.ID, c.Certainty, c.Title,
				strings.Join(c.Because, ", ")))
			p.command("    $ ", shell.Format("etcd-medic explain {}", c.ID))
		}
	}
}

func (p *page) cause(c *compare.Cause) {
	title := ": " + c.Title
	if p.named != nil && p.named.ID == c.ID { // the page starts with its title
		title = ""
	}
	p.text("  ", fmt.Sprintf("%s (%s)%s", c.ID, c.Certainty, title))
	p.pairs("    ",
		[2]string{"because of", strings.Join(ranges(c.Because), ", ") + onWhom(c.Members)},
		[2]string{"refuted by", c.RefutedBy},
		[2]string{"affected", release.Text(c.Affected)},
		[2]string{"fixed in", release.Text(c.FixedIn)},
		[2]string{"recovery", c.Recovery},
		[2]string{"loss", c.Loss},
		[2]string{"see", strings.Join(c.Refs, " ")})
}

func onWhom(members []string) string {
	if len(members) == 0 {
		return ""
	}
	return " on " + plural.List(members)
}

func (p *page) next(next []compare.Next) {
	if len(next) == 0 {
		return
	}
	p.section("next")
	n, hands := 0, false
	for i := range next {
		if hands = hands || next[i].ByHand; next[i].ByHand {
			continue
		}
		n++
		p.text(fmt.Sprintf("  %d. ", n), next[i].Text)
		p.command("     $ ", next[i].Command)
	}
	if hands {
		p.byHand(next)
	}
}

// byHand writes the way without this program. It is separate, since its steps must be done completely or not at all.
func (p *page) byHand(next []compare.Next) {
	p.section("by hand instead, one member at a time")
	for i := 0; i < len(next); {
		if !next[i].ByHand {
			i++
			continue
		}
		text, to := next[i].Text, i+1
		for m := next[i].Member; m != "" && to < len(next) && next[to].Member == m; to++ {
			text += "; " + strings.TrimPrefix(next[to].Text, m+": ")
		}
		p.text("  ", text)
		for ; i < to; i++ {
			p.command("    $ ", next[i].Command)
		}
	}
}

// checks counts outcomes and lists the checks that do not hold; with all, every check gets a line.
func (p *page) checks(checks []compare.CheckOutcome, all bool) {
	if len(checks) == 0 {
		return
	}
	p.section("checks")
	var holds, violated, open []compare.CheckOutcome
	for _, c := range checks {
		switch c.Outcome {
		case check.Holds:
			holds = append(holds, c)
		case check.Violated:
			violated = append(violated, c)
		default: // the zero value too: an unchecked item is never reported as healthy
			open = append(open, c)
		}
	}
	var ids []string
	for _, c := range violated {
		ids = append(ids, string(c.ID))
	}
	names := ""
	if len(ids) > 0 && !all {
		names = " (" + strings.Join(ids, " ") + ")"
	}
	p.text("  ", fmt.Sprintf("%d hold, %d violated%s, %d could not be checked", len(holds), len(violated), names,
		len(open)))
	for _, c := range violated {
		if all {
			p.text("  "+pad(string(c.ID), 5)+" violated     ", c.Title)
		}
	}
	ofBackup := func(c compare.CheckOutcome) bool { return c.ID.OfBackups() }
	p.notChecked(open, !slices.ContainsFunc(holds, ofBackup) && !slices.ContainsFunc(violated, ofBackup))
	if all {
		for _, c := range holds {
			p.text("  "+pad(string(c.ID), 5)+" holds        ", c.Title)
		}
	}
}

// notChecked lists the checks that were not made, grouped by reason. forBackups is true if no check of backups was
// made.
func (p *page) notChecked(open []compare.CheckOutcome, forBackups bool) {
	var reasons []string
	ids := map[string][]string{}
	for _, c := range open {
		if forBackups && c.ID.OfBackups() {
			continue
		}
		if ids[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		ids[c.Reason] = append(ids[c.Reason], string(c.ID))
	}
	var said []string
	for _, r := range reasons {
		said = append(said, strings.Join(ids[r], " ")+": "+r)
	}
	if forBackups && slices.ContainsFunc(open,
		func(c compare.CheckOutcome) bool { return c.ID.OfBackups() }) {
		said = append(said, "B01 to B09: for backups (etcd-medic verify)")
	}
	if len(said) > 0 {
		p.text("  not checked  ", strings.Join(said, "; "))
	}
}

func pad(s string, n int) string { return fmt.Sprintf("%-*s", n, s) }

func termIndex(term, index uint64) string {
	if term == 0 && index > 0 {
		return strconv.FormatUint(index, 10)
	}
	return fmt.Sprintf("%d/%d", term, index)
}

func revision(r *check.Rev) string { return fmt.Sprintf("%d.%d", r.Main, r.Sub) }

func quoted(b check.Bytes) string { return strconv.Quote(string(b)) }

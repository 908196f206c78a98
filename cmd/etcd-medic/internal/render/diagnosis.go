package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/shell"
)

// diagnosis is the page for three in the morning: one screen, or with Full everything, the verdict first, the next command last.
func (p *page) diagnosis(r *compare.Report) {
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
}

func (p *page) verdict(v *compare.Verdict) {
	health := "inconclusive"
	color := text.FgYellow
	if v.Healthy != nil {
		health, color = "NOT HEALTHY", text.FgRed
		if *v.Healthy {
			health, color = "healthy", text.FgGreen
		}
	}
	line := p.paint(health, color, text.Bold)
	if v.Class != health {
		line += ": " + v.Class
	}
	if v.Cause != nil {
		line += ", cause " + *v.Cause
	}
	if v.Certainty != nil {
		line += " (" + *v.Certainty + ")"
	}
	p.line("%s", line)
	p.text("", v.Summary)
}

// badSources names the inputs that could not be used, so that nobody takes the rest for everything.
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
	p.section("first break")
	where := []string{}
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
	p.pairs("  ",
		[2]string{"check", b.Check},
		[2]string{"member", strings.Join(b.Member, ", ")},
		[2]string{"where", strings.Join(where, ", ")},
		[2]string{"expected", b.Expected},
		[2]string{"observed", b.Observed})
}

// causes shows what the verdict rests on in full, and in a line each what explains something beside it.
func (p *page) causes(causes []compare.Cause) {
	shown := 0
	for _, c := range causes {
		if c.Aside {
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
	p.section("beside it")
	for _, c := range causes {
		if c.Aside {
			p.text("  ", fmt.Sprintf("%s (%s): %s; because of %s", c.ID, c.Certainty, c.Title, strings.Join(c.Because, ", ")))
			p.command("    $ ", shell.Format("etcd-medic explain {}", c.ID))
		}
	}
}

func (p *page) cause(c *compare.Cause) {
	p.text("  ", fmt.Sprintf("%s (%s): %s", c.ID, c.Certainty, c.Title))
	p.pairs("    ",
		[2]string{"because of", strings.Join(c.Because, ", ")},
		[2]string{"members", strings.Join(c.Members, ", ")},
		[2]string{"refuted by", c.RefutedBy},
		[2]string{"affected", strings.Join(c.Affected, "; ")},
		[2]string{"fixed in", strings.Join(c.FixedIn, "; ")},
		[2]string{"recovery", c.Recovery},
		[2]string{"loss", c.Loss},
		[2]string{"see", strings.Join(c.Refs, " ")})
}

func (p *page) next(next []compare.Next) {
	if len(next) == 0 {
		return
	}
	p.section("next")
	for i, n := range next {
		p.text(fmt.Sprintf("  %d. ", i+1), n.Text)
		p.command("     $ ", n.Command)
	}
}

// checks counts outcomes and names what does not hold; with all, every check gets a line.
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
		default: // the zero value too: what was not checked never reads as fine
			open = append(open, c)
		}
	}
	p.line("  %d hold, %d violated, %d could not be checked", len(holds), len(violated), len(open))
	for _, c := range violated {
		p.text("  "+pad(c.ID, 5)+" violated     ", c.Title)
	}
	p.notChecked(open)
	if all {
		for _, c := range holds {
			p.text("  "+pad(c.ID, 5)+" holds        ", c.Title)
		}
	}
}

// notChecked names the checks that share a reason together.
func (p *page) notChecked(open []compare.CheckOutcome) {
	var reasons []string
	ids := map[string][]string{}
	for _, c := range open {
		if ids[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		ids[c.Reason] = append(ids[c.Reason], c.ID)
	}
	for _, r := range reasons {
		p.text("  not checked  ", strings.Join(ids[r], " ")+": "+r)
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

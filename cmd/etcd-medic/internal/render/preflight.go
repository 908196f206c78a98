package render

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// Preflight writes the document of preflight.
func Preflight(w io.Writer, f Format, r *preflight.Result, o Options) error {
	return document(w, f, r, o, func(p *page) { preflightPage{p}.write(r) })
}

// preflightPage is the text of preflight.
type preflightPage struct{ *page }

// write writes the answer first, then what stops the server and the other violated rules.
func (p preflightPage) write(r *preflight.Result) {
	from := ""
	if r.From != "" {
		from = ", written by etcd " + r.From
	}
	switch {
	case r.Boots == release.Unknown:
		p.line("%s: %s on etcd %s%s", clean(r.Source.Name), p.paint("unknown", text.FgYellow, text.Bold), r.To,
			from)
	case r.Boots.Certain():
		p.line("%s: %s on etcd %s%s", clean(r.Source.Name), p.paint("boots", text.FgGreen, text.Bold), r.To, from)
	default:
		p.line("%s: %s on etcd %s%s", clean(r.Source.Name), p.paint("DOES NOT BOOT", text.FgRed, text.Bold), r.To, from)
	}
	for i := range r.Rules {
		if o := &r.Rules[i]; o.Outcome == check.Violated {
			p.outcome(o, o.Rule == r.Stops)
		}
	}
	p.section("rules")
	for i := range r.Rules {
		o := &r.Rules[i]
		says := o.Title
		if o.Outcome == check.NotChecked {
			says += ": " + o.Says
		}
		p.text("  "+pad(o.Rule, 5)+pad(string(o.Outcome), 13), says)
	}
	p.section("inputs")
	unchanged := "unchanged"
	if !r.InputsUnchanged {
		unchanged = p.paint("CHANGED", text.FgRed, text.Bold)
	}
	p.line("  %s, %s, opened read-only and %s while they were read", plural.Of(r.Source.Files, "file", "files"),
		plural.Size(r.Source.Bytes), unchanged)
	if r.Source.InUse != "" {
		p.text("  "+p.paint("IN USE", text.FgRed, text.Bold)+"  ", r.Source.InUse+": what was read may be torn; stop "+
			"the server or take a copy that can be trusted, and run again")
	}
	if len(r.Ready) > 0 {
		p.section("next")
		for i, s := range r.Ready {
			p.text("  "+pad(string(rune('1'+i))+".", 3), s)
		}
	}
}

func (p preflightPage) outcome(o *preflight.Outcome, first bool) {
	head := map[preflight.Level]string{preflight.Stops: "stops it", preflight.Warns: "warning",
		preflight.Changes: "changes"}[o.Level]
	if first {
		head = "the first check that stops it"
	}
	p.section(head)
	p.text("  "+o.Rule+"  ", "does not hold: "+o.Title)
	p.text("    ", o.Says)
	p.text("    etcd says: ", o.Server)
	for i := range o.Evidence {
		if i == p.o.maxEvidence() {
			p.line("    … and %d more, see -w json", len(o.Evidence)-i)
			break
		}
		p.text("    - ", evidenceText(&o.Evidence[i], ""))
	}
	if len(o.Evidence) > 0 {
		p.command("    $ ", o.Evidence[0].Show)
	}
}

package mdreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
)

// WriteChecklist writes a plan as a list of tasks.
func WriteChecklist(w io.Writer, c *render.Checklist) error {
	p := &sheet{}
	p.line("# etcd-medic: repair plan, %s", words(c.Way))
	p.line("")
	p.line("%s", words(c.Summary))
	p.line("")
	p.line("* Keep: **%s**. %s", words(c.Keep), words(c.KeepWhy))
	p.line("* Gives up: **%s**", words(c.Loses))
	for _, u := range c.Unproven {
		p.line("* Not proven: %s", words(u))
	}
	p.line("* Way: **%s**. %s", words(c.Way), words(c.WayWhy))
	p.line("* State: **%s**, %d of %d steps done", words(c.State), c.Ticked(), len(c.Steps))
	list(p, "Know before the first step", c.Cautions)
	commands(p, "Save first", c.Save)
	p.line("")
	p.line("## Steps")
	for i := range c.Steps {
		p.step(i+1, &c.Steps[i])
	}
	commands(p, "Next", c.Next)
	list(p, "Other ways", c.Other)
	p.line("")
	p.line("Plan %s (an integrity check, not a signature), made by %s %s.", words(c.Digest), words(c.Tool),
		words(c.Version))
	_, err := w.Write(p.b.Bytes())
	return err
}

func (p *sheet) step(n int, s *render.ChecklistStep) {
	tick, state := " ", ""
	if s.State == "done" {
		tick = "x"
	}
	if s.State != "" {
		state = fmt.Sprintf(" (%s %s, %.1f s)", words(s.State), render.When(s.At), s.Seconds)
	}
	p.line("")
	p.line("- [%s] **%d. %s**%s", tick, n, words(s.Title), state)
	for _, row := range [][2]string{{"journal", s.Detail}, {"only when", s.Precondition}, {"effect", s.Effect},
		{"undo", s.Undo}, {"done when", s.Until}} {
		if row[1] != "" {
			p.line("  - %s: %s", row[0], words(row[1]))
		}
	}
	for _, b := range s.Commands {
		where := ""
		if b.On != "" {
			where = " on " + words(b.On)
		}
		if b.Note != "" {
			p.line("  - by hand%s: %s", where, words(b.Note))
		}
		if b.Run != "" {
			p.line("  - by hand%s:", where)
			p.line("")
			p.line("        %s", strings.ReplaceAll(render.Clean(b.Run), "\n", " "))
		}
	}
}

func list(p *sheet, title string, rows []string) {
	if len(rows) == 0 {
		return
	}
	p.line("")
	p.line("## %s", title)
	p.line("")
	for _, r := range rows {
		p.line("* %s", words(r))
	}
}

func commands(p *sheet, title string, rows []string) {
	if len(rows) == 0 {
		return
	}
	p.line("")
	p.line("## %s", title)
	p.line("")
	for _, r := range rows {
		p.line("    %s", strings.ReplaceAll(render.Clean(r), "\n", " "))
	}
}

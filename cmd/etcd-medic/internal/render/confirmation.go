package render

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
)

// confirmationSection writes the second opinion of diagnose --confirm.
type confirmationSection struct{ *page }

// write writes the second opinion of a real server: one line per member, and the differences of a refuted one.
func (p confirmationSection) write(c *compare.Confirmation) {
	if c == nil {
		return
	}
	p.section("second opinion")
	if c.Reason != "" {
		p.text("  ", "not possible: "+c.Reason)
		p.notes(c)
		return
	}
	p.text("  ", confirmRun(c))
	wide := 0
	for i := range c.Members {
		wide = max(wide, text.StringWidthWithoutEscSequences(clean(c.Members[i].Member)))
	}
	for i := range c.Members {
		m := &c.Members[i]
		name := clean(m.Member)
		p.text("  "+name+strings.Repeat(" ", wide-text.StringWidthWithoutEscSequences(name))+"  "+
			p.status(m.Status)+"  ", confirmReason(m))
		p.differences(m)
	}
	p.notes(c)
}

// confirmRun describes which server executed which log.
func confirmRun(c *compare.Confirmation) string {
	from := "from the first entry of the cluster on"
	if b := c.Base; b != nil && b.Source != "" {
		from = fmt.Sprintf("from entry %d on, starting with the database of %s", b.Index+1, b.Source)
	}
	return fmt.Sprintf("etcd %s (%s) executed the committed log %s, %.1f s", c.Server, c.Origin, from, c.Seconds)
}

func (p confirmationSection) status(s compare.ConfirmStatus) string {
	word := pad(strings.ReplaceAll(string(s), "-", " "), 12)
	switch s {
	case compare.Confirmed:
		return p.paint(word, text.FgGreen)
	case compare.Refuted:
		return p.paint(word, text.FgRed, text.Bold)
	}
	return p.paint(word, text.FgYellow)
}

func confirmReason(m *compare.ConfirmedMember) string {
	if m.Index == 0 {
		return m.Reason
	}
	return fmt.Sprintf("at entry %d, revision %d: %s", m.Index, m.Revision, m.Reason)
}

// differences lists the differences, the first differing revision and the entry that may explain it.
func (p confirmationSection) differences(m *compare.ConfirmedMember) {
	if f := m.First; f != nil {
		s := fmt.Sprintf("first differing revision %d", f.Revision)
		if f.Index > 0 {
			s += fmt.Sprintf(", made by entry %s: %s", termIndex(f.Term, f.Index), f.What)
		}
		p.text("    ", s)
	}
	for i, d := range m.Differences {
		if i == p.o.MaxEvidence {
			break
		}
		where := "bucket " + d.Bucket + ", key " + quoted(d.Key)
		if d.Revision != nil {
			where += ", revision " + revision(d.Revision)
		}
		p.text("    ", where)
		p.pairs("      ", [2]string{"observed", d.Observed}, [2]string{"expected", d.Expected})
	}
	if more := m.More + len(m.Differences) - min(len(m.Differences), p.o.MaxEvidence); more > 0 {
		p.line("    and %d more", more)
	}
	for _, l := range m.LeftOut {
		p.text("    left out: ", l)
	}
}

func (p confirmationSection) notes(c *compare.Confirmation) {
	for _, n := range c.Notes {
		p.text("  note: ", n)
	}
	for _, l := range c.Sandbox {
		p.text("  sandbox: ", l)
	}
}

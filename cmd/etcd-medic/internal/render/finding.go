package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// findingsSection writes what is wrong, one paragraph for each fact.
type findingsSection struct {
	*page
	// upcoming are the steps at the end of the page, which are not repeated as remedies.
	upcoming []compare.Next
}

func (p findingsSection) write(all []check.Finding) {
	if len(all) == 0 {
		return
	}
	p.section("findings")
	for i, g := range grouped(all) {
		if i > 0 && g.findings[0].Severity != check.Info {
			p.line("")
		}
		p.group(g)
	}
}

// commonExpected returns the expectation common to all rows, "" if they differ or are few.
func commonExpected(e []check.Evidence) string {
	if len(e) == 0 {
		return ""
	}
	for i := range e {
		if e[i].Expected != e[0].Expected {
			return ""
		}
	}
	return e[0].Expected
}

func evidenceText(e *check.Evidence, common string) string {
	s := strings.Join(evidencePlace(e), " ")
	if e.Object != nil {
		s += " (" + e.Object.String() + ")"
	}
	if e.Observed != "" {
		s += ": " + e.Observed
	}
	if e.Expected != "" && e.Expected != common {
		s += " (expected " + e.Expected + ")"
	}
	return s
}

func evidencePlace(e *check.Evidence) []string {
	var at []string
	add := func(s string) {
		if s != "" {
			at = append(at, s)
		}
	}
	add(e.Member)
	if e.File != "" {
		file := e.File
		if e.Offset != nil {
			file += "@0x" + strconv.FormatInt(*e.Offset, 16)
		}
		if e.Length > 0 {
			file += fmt.Sprintf("(%d)", e.Length)
		}
		add(file)
	}
	if e.Page != nil {
		add(fmt.Sprintf("page %d", *e.Page))
	}
	switch {
	case len(e.Key) > 0 && e.Bucket != "" && e.Bucket != "key":
		add(e.Bucket + "/" + strings.Trim(quoted(e.Key), `"`))
	case len(e.Key) > 0:
		add("key " + quoted(e.Key))
	case e.Bucket != "":
		add("bucket " + e.Bucket)
	}
	if e.Field != string(e.Key) {
		add(e.Field)
	}
	return at
}

func (p findingsSection) group(g *factGroup) {
	f := g.findings[0]
	head := fmt.Sprintf("  %s  %s  ", clean(g.ids()), p.severity(f.Severity))
	p.wrapped(head, "    ", g.title()+g.where(), math.MaxInt)
	p.text("    ", f.Explanation)
	p.evidence(g)
	for _, r := range g.remedies() {
		if p.isNext(&r) {
			continue
		}
		p.text("    remedy: ", r.Text)
		p.command("      $ ", r.Command)
		p.pairs("      ", [2]string{"risk", r.Risk}, [2]string{"only if", r.Precondition})
	}
}

// evidence writes the first lines and the command for the first of them; -w json has all.
func (p findingsSection) evidence(g *factGroup) {
	lines, omitted := evidenceLines(g)
	if len(lines) == 0 {
		return
	}
	if common := g.expected(); common != "" {
		p.text("    expected ", common)
	}
	shown := min(len(lines), p.o.maxEvidence())
	for _, l := range lines[:shown] {
		p.text("    - ", l.text())
	}
	if n := len(lines) - shown + omitted; n > 0 {
		p.line("    … and %d more, see -w json", n)
	}
	p.command("    $ ", g.findings[0].Evidence[0].Show)
}

// isNext reports whether a remedy is repeated at the end of the page, and so need not be shown here.
func (p findingsSection) isNext(r *check.Remedy) bool {
	return r.Risk == "" && r.Precondition == "" &&
		slices.ContainsFunc(p.upcoming, func(n compare.Next) bool {
			return n.Text == r.Text && n.Command.Equal(r.Command)
		})
}

package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

func (p *page) findings(all []check.Finding) {
	if len(all) == 0 {
		return
	}
	p.section("findings")
	for i := range all {
		if i > 0 {
			p.line("")
		}
		p.finding(&all[i])
	}
}

func (p *page) finding(f *check.Finding) {
	head := fmt.Sprintf("  %s  %s  ", f.ID, p.severity(f.Severity))
	p.text(head, f.Title)
	at := []string{}
	if f.At.Index > 0 {
		at = append(at, "entry "+termIndex(f.At.Term, f.At.Index))
	}
	if f.At.Revision != nil {
		at = append(at, "revision "+revision(f.At.Revision))
	}
	p.pairs("    ", [2]string{"members", strings.Join(f.Members, ", ")}, [2]string{"at", strings.Join(at, ", ")})
	p.text("    ", f.Explanation)
	p.evidence(f)
	for _, r := range f.Remedy {
		p.text("    remedy: ", r.Text)
		p.command("      $ ", r.Command)
		p.pairs("      ", [2]string{"risk", r.Risk}, [2]string{"only if", r.Precondition})
	}
}

// evidence shows the first rows and the command for the first of them: the others differ in their place only, and -w json
// has them all. What every row was expected to be is said once.
func (p *page) evidence(f *check.Finding) {
	shown := min(len(f.Evidence), p.o.maxEvidence())
	if shown == 0 {
		return
	}
	head := "    evidence:"
	common := commonExpected(f.Evidence)
	if common != "" {
		head = "    evidence, expected " + common + ":"
	}
	p.line("%s", clean(head))
	for i := range shown {
		p.text("    - ", evidenceText(&f.Evidence[i], common))
	}
	if more := len(f.Evidence) - shown + f.More; more > 0 {
		p.line("    … and %d more, see -w json", more)
	}
	p.command("    $ ", f.Evidence[0].Show)
}

// commonExpected is what all rows expect, "" when they differ or are few.
func commonExpected(e []check.Evidence) string {
	for i := range e {
		if e[i].Expected != e[0].Expected {
			return ""
		}
	}
	return e[0].Expected
}

func evidenceText(e *check.Evidence, common string) string {
	s := strings.Join(evidencePlace(e), " ")
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

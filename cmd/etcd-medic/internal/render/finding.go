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
	for i, g := range grouped(all) {
		if i > 0 && g.findings[0].Severity != check.Info {
			p.line("")
		}
		p.fact(g)
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

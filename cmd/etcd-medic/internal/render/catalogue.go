package render

import (
	"io"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
)

const notDetected = "These are known to happen, but data dirs do not show them: diagnose reports the damage without " +
	"naming them."

// Catalogue lists all checks, causes and rules by code and title, and the causes that are known but not detected.
func Catalogue(w io.Writer, checks []check.Check, causes []cause.Cause, undetected []cause.Known,
	rules []preflight.Rule, o Options) error {
	p := newPage(w, o)
	p.line("checks:")
	for _, c := range checks {
		p.text("  "+pad(string(c.ID), 6), c.Title)
	}
	p.line("")
	p.line("causes:")
	for _, c := range causes {
		p.text("  "+string(c.ID)+"  ", c.Title)
	}
	p.line("")
	p.line("known, but not detected:")
	for _, k := range undetected {
		p.text("  "+string(k.ID)+"  ", k.Title)
	}
	p.line("")
	p.line("rules of preflight:")
	for _, r := range rules {
		p.text("  "+pad(r.ID, 6), r.Title)
	}
	return p.flush()
}

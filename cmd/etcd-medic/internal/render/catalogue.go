package render

import (
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/release"
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

func causeFacts(c cause.Cause) [][2]string {
	return [][2]string{
		{"affected", release.Text(c.Affected)},
		{"fixed in", release.Text(c.FixedIn)},
		{"look-alikes", c.LookAlikes},
		{"recovery", c.Recovery},
		{"loss", c.Loss},
		{"see", strings.Join(c.Refs, " ")},
	}
}

// prose writes paragraphs, wrapped to the page.
func (p *page) prose(doc string) {
	for _, para := range paragraphs(doc) {
		p.line("")
		p.text("", para)
	}
}

func paragraphs(doc string) []string {
	var out []string
	for _, para := range strings.Split(strings.TrimSpace(doc), "\n\n") {
		if para = strings.Join(strings.Fields(para), " "); para != "" {
			out = append(out, para)
		}
	}
	return out
}

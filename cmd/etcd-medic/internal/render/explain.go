package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/explain"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// Explanation writes the meaning of codes and log lines, and what sources say about them.
func Explanation(w io.Writer, f Format, a *explain.Answer, o Options) error {
	return document(w, f, a, o, func(p *page) {
		for i := range a.Topics {
			if i > 0 {
				p.line("")
			}
			explanationPage{p}.topic(&a.Topics[i])
		}
		if a.On != nil {
			explanationPage{p}.onSources(a.On)
		}
	})
}

// explanationPage is the text of explain.
type explanationPage struct{ *page }

func (p explanationPage) topic(t *explain.Topic) {
	switch {
	case t.Known != nil:
		p.text(t.ID+"  ", t.Title)
		p.prose("Known, but not detected: " + t.Text + ".")
	case t.Cause != nil:
		p.text(t.ID+"  ", t.Title)
		p.prose(t.Text)
		p.line("")
		for _, kv := range causeFacts(*t.Cause) {
			p.pairs("", kv)
		}
	case t.Rule != nil:
		p.text(t.ID+"  ", t.Title+" (preflight, etcd "+linesOf(t.Rule)+")")
		p.prose(t.Text)
	case t.Message != nil:
		p.message(t)
	default:
		p.text(t.ID+"  ", t.Title)
		p.prose(t.Text)
	}
}

func linesOf(r *preflight.Rule) string {
	lines := r.Lines()
	first, last := lines[0], lines[len(lines)-1]
	switch last {
	case preflight.Newest:
		return fmt.Sprintf("3.%d and later", first)
	case first:
		return fmt.Sprintf("3.%d", first)
	}
	return fmt.Sprintf("3.%d to 3.%d", first, last)
}

func (p explanationPage) message(t *explain.Topic) {
	p.text(t.ID+"  ", t.Title)
	if t.Line != "" {
		line := []rune(t.Line)
		if len(line) > 300 {
			line = append(line[:300], '…')
		}
		p.text("  the line   ", string(line))
	}
	var values []string
	for _, k := range slices.Sorted(maps.Keys(t.Values)) {
		values = append(values, k+" "+t.Values[k])
	}
	count := ""
	if t.Count > 1 {
		count = plural.Of(t.Count, "time", "times")
	}
	p.pairs("  ",
		[2]string{"values", strings.Join(values, ", ")},
		[2]string{"said", count},
		[2]string{"on disk", t.OnDisk},
		[2]string{"versions", t.Versions},
		[2]string{"causes", strings.Join(t.Causes, ", ")},
		[2]string{"checks", strings.Join(append(slices.Clone(t.Checks), t.Rules...), ", ")})
	for i, d := range t.Do {
		p.text(fmt.Sprintf("  %d. ", i+1), d)
	}
}

// onSources writes what the diagnosis of the sources says about the topics.
func (p explanationPage) onSources(on *explain.On) {
	p.section("on these sources")
	p.unused(on.Sources)
	if !on.Shown {
		p.line("  nothing of it is seen here")
	}
	p.text("  diagnosis: ", string(on.Verdict.Class)+": "+on.Verdict.Summary)
	for _, c := range on.Causes {
		p.text(fmt.Sprintf("  cause %s (%s): ", c.ID, c.Certainty), c.Title+" ["+strings.Join(c.Members, ", ")+"]")
	}
	for _, c := range on.Checks {
		says := c.Title
		if c.Reason != "" {
			says += ": " + c.Reason
		}
		p.text("  "+pad(string(c.ID), 5)+pad(string(c.Outcome), 13), says)
	}
	for _, r := range on.Rules {
		says := r.Title
		if r.Says != "" {
			says += ": " + r.Says
		}
		p.text("  "+pad(r.Rule, 5)+pad(string(r.Outcome.Outcome), 13),
			fmt.Sprintf("%s on etcd %s: %s", r.Source, r.To, says))
	}
	if len(on.Findings) > 0 {
		findingsSection{page: p.page}.write(on.Findings)
	}
}

// prose writes paragraphs, wrapped to the page.
func (p explanationPage) prose(doc string) {
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

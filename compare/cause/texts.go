package cause

import (
	"embed"

	"github.com/etcd-medic/etcd-medic/internal/prose"
)

// proseFiles holds prose/ID.md for each cause: what it is, what it affects, what to do and what that costs.
//
//go:embed prose/*.md
var proseFiles embed.FS

var texts, errTexts = prose.Load(proseFiles, "prose",
	"affected", "fixed in", "look-alikes", "recovery", "loss", "see")

// described gives a cause its texts.
func described(c Cause) Cause {
	t := texts[string(c.ID)]
	c.Title, c.Doc = t.Title, t.Doc
	c.Affected, c.FixedIn, c.Refs = t.Facts["affected"], t.Facts["fixed in"], t.Facts["see"]
	c.LookAlikes, c.Recovery, c.Loss = t.Fact("look-alikes"), t.Fact("recovery"), t.Fact("loss")
	if match := c.Match; match != nil {
		c.Match = func(in *Input) *Match {
			m := match(in)
			if m != nil {
				m.Members, m.Because = once(m.Members), once(m.Because)
			}
			return m
		}
	}
	return c
}

// once keeps the first of equal names: several findings may be about one member, and one finding about several.
func once(names []string) []string {
	out, seen := make([]string, 0, len(names)), make(map[string]bool, len(names))
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

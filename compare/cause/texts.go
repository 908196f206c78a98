package cause

import (
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/prose"
	"github.com/etcd-medic/etcd-medic/release"
)

// proseFiles holds prose/ID.md for each cause: what it is, what it affects, what to do and what that costs.
//
//go:embed prose/*.md
var proseFiles embed.FS

var texts, errTexts = prose.Load(proseFiles, "prose",
	"affected", "fixed in", "look-alikes", "recovery", "loss", "see")

// affected are the releases with the defect of each cause, for matchers, which cannot ask the list that they are in. It
// is complete before main begins: diagnoses that run side by side only read it.
var affected = map[ID][]release.Range{}

// described gives a cause its texts and the file of the caller, which defines it.
func described(c Cause) Cause {
	if _, file, _, ok := runtime.Caller(1); ok {
		c.File = filepath.Base(file)
	}
	t := texts[string(c.ID)]
	c.Title, c.Doc = t.Title, t.Doc
	c.Affected, c.FixedIn, c.Refs = ranges(c.ID, t.Facts["affected"]), ranges(c.ID, t.Facts["fixed in"]), t.Facts["see"]
	affected[c.ID] = c.Affected
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

// ranges reads the releases in the facts of a cause.
func ranges(id ID, facts []string) []release.Range {
	out := make([]release.Range, 0, len(facts))
	for _, f := range facts {
		r, err := rangeOf(f)
		if err != nil {
			errTexts = errors.Join(errTexts, fmt.Errorf("%s: %w", id, err))
		}
		out = append(out, r)
	}
	return out
}

// rangeOf reads the range in a fact. "rule ID" are the releases that follow a rule of the release table, "not rule ID"
// those that do not, so that the text cannot contradict the table that the matchers use.
func rangeOf(fact string) (release.Range, error) {
	name, note, _ := strings.Cut(fact, " (")
	positive, isNot := strings.CutPrefix(name, "not ")
	id, isRule := strings.CutPrefix(positive, "rule ")
	if !isRule {
		return release.ParseRange(fact)
	}
	rule := release.ByID(id)
	if rule == nil {
		return release.Range{}, fmt.Errorf("%q names no rule of the release table", fact)
	}
	r := release.Range{In: rule.In, Note: strings.TrimSuffix(note, ")")}
	if isNot {
		r.In = rule.In.Not()
	}
	return r, nil
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

// mayAffect reports whether the version that wrote a member is known, and one of its releases has the defect of a
// cause.
func mayAffect(id ID, m *evidence.Member) bool {
	wrote := m.Version.Named()
	return wrote.Known() && release.Include(affected[id], wrote).Possible()
}

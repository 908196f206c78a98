package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// verdict names the class: that of the first break in history among the findings that are errors or worse.
func (c *collected) verdict(r *Report) {
	breaks := breaking(r.Findings)
	if len(breaks) == 0 {
		c.healthy(r)
		return
	}
	first := breaks[0]
	if d := explainedByDamage(first, breaks); d != nil {
		first = d
	}
	class := first.Class
	if class == "latent-divergence" && anyClass(breaks, "data-divergence") {
		// The control state broke first, but contents differ already: the class says what is, firstBreak what began it.
		class = "data-divergence"
	}
	switch {
	case class == "data-divergence" && len(c.in.Members) == 1 && !refusedByRule(first):
		class = "db-damage"
	case class == "db-damage" && first.Check == "K04" && len(c.in.Members) > 1 && !check.Undecodable(*first) &&
		shownByOthers(first, breaks):
		class = "data-divergence" // pages and rows are sound: what the file holds is another content than the others'
	}
	v := &r.Verdict
	v.Class, v.Healthy = class, ptr(false)
	v.FirstBreak = c.firstBreak(first)
	if !c.isBackup() {
		r.causeOfFirst(first)
	}
	if k := r.leading(); k != nil {
		v.Cause, v.Certainty = &k.ID, &k.Certainty
	}
	v.Summary = summary(r, first)
}

// causeOfFirst puts a cause that rests on the first break in front when the leading one explains something else, such
// as damage to another member: the headline then names one trouble, not two.
func (r *Report) causeOfFirst(first *check.Finding) {
	sameClass := map[string]bool{}
	for i := range r.Findings {
		sameClass[r.Findings[i].ID] = r.Findings[i].Class == first.Class
	}
	if k := r.leading(); k == nil || slices.ContainsFunc(k.Because,
		func(id string) bool { return id == first.ID || sameClass[id] }) {
		return
	}
	at := slices.IndexFunc(r.Causes, func(k Cause) bool { return !k.Secondary && slices.Contains(k.Because, first.ID) })
	if at > 0 {
		k := r.Causes[at]
		r.Causes = slices.Insert(slices.Delete(r.Causes, at, at+1), 0, k)
	}
}

// refusedByRule: the member's database is what its server made of the log, by a rule that worked on a wrong counter.
// That is no damage to the file, though a single source shows it.
func refusedByRule(f *check.Finding) bool { return f.Check == "A02" || f.Check == "A04" }

// breaking returns the findings that decide the verdict, first in history first.
func breaking(fs []check.Finding) []*check.Finding {
	var out []*check.Finding
	for i := range fs {
		if fs[i].Class != "" && fs[i].Severity.Rank() >= check.Error.Rank() {
			out = append(out, &fs[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *check.Finding) int {
		return cmp.Or(cmp.Compare(history(a), history(b)), cmp.Compare(rankOfCheck(a, fs), rankOfCheck(b, fs)),
			cmp.Compare(len(a.Members), len(b.Members)), slices.Compare(sorted(a.Members), sorted(b.Members)))
	})
	return out
}

// rankOfCheck is where the first finding of the same check stands: findings of one check are in the order of the
// arguments, on which the verdict must not depend.
func rankOfCheck(f *check.Finding, fs []check.Finding) int {
	return slices.IndexFunc(fs, func(o check.Finding) bool { return o.Check == f.Check })
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// contentChecks compare what databases hold; damage to one of the files explains what they find.
var contentChecks = map[string]bool{"K01": true, "K02": true, "K03": true, "K06": true, "M02": true, "M03": true,
	"L01": true, "L03": true, "L09": true, "A03": true, "A08": true, "A09": true, "L04": true, "M15": true, "M16": true,
	"M17": true, "K12": true}

// stateChecks are about what a member says of itself; a database with unreadable pages says what the pages that are
// left say.
var stateChecks = map[string]bool{"C02": true, "C03": true, "C04": true, "S02": true, "K04": true, "L02": true}

// explainedByDamage: a content difference that involves a member whose file itself contradicts its own structure is
// that damage. Damage has no raft index, so history alone would put it last.
func explainedByDamage(first *check.Finding, breaks []*check.Finding) *check.Finding {
	if !contentChecks[first.Check] && !stateChecks[first.Check] {
		return nil
	}
	for _, b := range breaks {
		if stateChecks[first.Check] && b.Check != "D02" {
			continue
		}
		if (b.Class == "db-damage" || b.Check == "X05") && len(b.Members) == 1 &&
			slices.Contains(first.Members, b.Members[0]) {
			return b
		}
	}
	return nil
}

// shownByOthers tells whether what a member's history contradicts is a difference from the log or from other members as
// well.
func shownByOthers(first *check.Finding, breaks []*check.Finding) bool {
	return slices.ContainsFunc(breaks, func(f *check.Finding) bool {
		return f.Class == "data-divergence" && contentChecks[f.Check] && slices.Contains(f.Members, first.Members[0])
	})
}

func anyClass(fs []*check.Finding, class string) bool {
	for _, f := range fs {
		if f.Class == class {
			return true
		}
	}
	return false
}

func (c *collected) firstBreak(f *check.Finding) *FirstBreak {
	b := &FirstBreak{Check: f.Check, Member: f.Members, Term: f.At.Term, Index: f.At.Index, Revision: f.At.Revision}
	if len(f.Evidence) == 0 {
		return b
	}
	e := f.Evidence[0]
	b.Bucket, b.Key, b.Expected, b.Observed = e.Bucket, e.Key, e.Expected, e.Observed
	if f.Check == "A01" {
		b.Member, b.Observed = c.beyondLog(f), observedByMember(f)
	}
	return b
}

// beyondLog names the members whose auth revision the log does not give; all of the finding's when the log cannot
// tell.
func (c *collected) beyondLog(f *check.Finding) []string {
	var out []string
	if c.in.Replay != nil {
		for i, m := range c.in.Replay.Members {
			if m.Checked && m.AuthKnown && (len(m.Jumps) > 0 || m.Unexplained != 0) {
				out = append(out, c.in.Members[i].Label())
			}
		}
	}
	if len(out) == 0 {
		return f.Members
	}
	return out
}

func observedByMember(f *check.Finding) string {
	var parts []string
	for _, e := range f.Evidence {
		parts = append(parts, e.Member+" "+e.Observed)
	}
	return strings.Join(parts, ", ")
}

func summary(r *Report, first *check.Finding) string {
	s := first.Title
	if k := r.leading(); k != nil {
		s = fmt.Sprintf("%s (%s): %s", k.Title, k.Certainty, first.Title)
	}
	return s
}

// consequence says in the summary what each member lacks and which to keep, where contents differ.
func consequence(r *Report) string {
	if r.Verdict.Healthy == nil || *r.Verdict.Healthy || r.Best == nil || len(r.Best.Members) == 0 {
		return ""
	}
	s := ""
	for _, row := range r.Best.Ranking {
		if n := row.Lacks.CommittedEntries; n > 0 {
			s += fmt.Sprintf("; %s is missing %s", row.Member, count(n, "committed write", "committed writes"))
		}
	}
	if n := len(r.Best.Members); n > 0 && n < len(r.Best.Ranking) {
		s += "; best: " + strings.Join(r.Best.Members, ", ")
	}
	return s
}

// count says a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

package compare

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
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
	case class == "db-damage" && first.Check == "K04" && len(c.in.Members) > 1 && !check.Undecodable(*first) && shownByOthers(first, breaks):
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

// causeOfFirst puts a cause that rests on the first break in front when the leading one explains something else, such as damage to
// another member: the headline then names one trouble, not two.
func (r *Report) causeOfFirst(first *check.Finding) {
	sameClass := map[string]bool{}
	for i := range r.Findings {
		sameClass[r.Findings[i].ID] = r.Findings[i].Class == first.Class
	}
	if k := r.leading(); k == nil || slices.ContainsFunc(k.Because, func(id string) bool { return id == first.ID || sameClass[id] }) {
		return
	}
	at := slices.IndexFunc(r.Causes, func(k Cause) bool { return !k.Aside && slices.Contains(k.Because, first.ID) })
	if at > 0 {
		k := r.Causes[at]
		r.Causes = slices.Insert(slices.Delete(r.Causes, at, at+1), 0, k)
	}
}

// refusedByRule: the member's database is what its server made of the log, by a rule that worked on a wrong counter. That is no damage
// to the file, though a single source shows it.
func refusedByRule(f *check.Finding) bool { return f.Check == "A02" || f.Check == "A04" }

// breaking returns the findings that decide the verdict, first in history first.
func breaking(fs []check.Finding) []*check.Finding {
	var out []*check.Finding
	for i := range fs {
		if fs[i].Class != "" && fs[i].Severity.Rank() >= check.Error.Rank() {
			out = append(out, &fs[i])
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return history(out[i]) < history(out[j]) })
	return out
}

// contentChecks compare what databases hold; damage to one of the files explains what they find.
var contentChecks = map[string]bool{"K01": true, "K02": true, "K03": true, "K06": true, "M02": true, "M03": true, "L01": true, "L03": true, "L09": true, "A03": true, "M15": true}

// stateChecks are about what a member says of itself; a database with unreadable pages says what the pages that are left say.
var stateChecks = map[string]bool{"C02": true, "C03": true, "C04": true, "S02": true, "K04": true, "L02": true}

// explainedByDamage: a content difference that involves a member whose file itself contradicts its own structure is that
// damage. Damage has no raft index, so history alone would put it last.
func explainedByDamage(first *check.Finding, breaks []*check.Finding) *check.Finding {
	if !contentChecks[first.Check] && !stateChecks[first.Check] {
		return nil
	}
	for _, b := range breaks {
		if stateChecks[first.Check] && b.Check != "D02" {
			continue
		}
		if (b.Class == "db-damage" || b.Check == "X05") && len(b.Members) == 1 && slices.Contains(first.Members, b.Members[0]) {
			return b
		}
	}
	return nil
}

// shownByOthers tells whether what a member's history contradicts is a difference from the log or from other members as well.
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

// beyondLog names the members whose auth revision the log does not give; all of the finding's when the log can not tell.
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
			s += fmt.Sprintf("; %s lacks the effect of %s", row.Member, count(n, "committed entry", "committed entries"))
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

// needed are the checks without which "nothing found" means nothing.
var needed = map[string]bool{"W01": true, "D02": true, "K03": true, "K01": true, "R01": true}

// healthy decides between the healthy classes, or inconclusive when a needed check could not be made.
func (c *collected) healthy(r *Report) {
	v := &r.Verdict
	if why := c.inconclusive(r); why != "" {
		v.Class, v.Summary = "inconclusive", "nothing wrong was found, but "+why
		return
	}
	v.Healthy = ptr(true)
	switch {
	case has(r.Findings, "lagging"):
		v.Class, v.Summary = "lagging", "members differ only by how far they have applied"
	case has(r.Findings, "uncommitted-tail"):
		v.Class, v.Summary = "uncommitted-tail", "logs differ only above what is committed"
	case c.freshlyRestored():
		v.Class, v.Summary = "freshly-restored", "written by a restore and not started yet"
	case c.compactionSkew():
		v.Class, v.Summary = "compaction-skew", "compaction progress or page layout differ, content does not"
	default:
		v.Class, v.Summary = "healthy", "nothing beyond what differs normally"
		if n := c.absentVoters(); n > 0 {
			v.Summary = fmt.Sprintf("nothing is wrong with this member by itself; whether it agrees with the other %s only beside them can be said", count(n, "voter", "voters"))
			if c.foundingOnly() {
				v.Summary += ". It holds nothing but the founding of the cluster: it is new, or its data dir was wiped"
			}
		}
	}
	for _, f := range r.Findings {
		if f.Severity == check.Warning {
			v.Summary += "; " + f.Title
		}
	}
}

// absentVoters counts the voters beside the one member that was given; 0 when several were, or it is alone in its cluster.
func (c *collected) absentVoters() int {
	if len(c.in.Members) != 1 || c.in.Members[0].Source.Kind != evidence.KindDataDir {
		return 0
	}
	return max(len(c.in.Members[0].Membership.Voters)-1, 0)
}

// foundingOnly tells whether the one member's log holds the conf changes of its bootstrap and nothing else.
func (c *collected) foundingOnly() bool {
	m := c.in.Members[0]
	return m.HasLog() && m.WAL.Summary.LastIndex == check.Founded(m)
}

func has(fs []check.Finding, class string) bool {
	for _, f := range fs {
		if f.Class == class {
			return true
		}
	}
	return false
}

// inconclusive says which needed check could not be made although the sources call for it.
func (c *collected) inconclusive(r *Report) string {
	if n := len(c.set.Failed); n > 0 {
		return fmt.Sprintf("%d of the sources could not be read", n)
	}
	for _, f := range r.Findings {
		if f.Class == "inconclusive" {
			return f.Title
		}
	}
	for _, k := range r.Checks {
		if k.Outcome != check.NotChecked || !needed[k.ID] || c.notCalledFor(k.ID) {
			continue
		}
		return fmt.Sprintf("check %s (%s) could not be made: %s", k.ID, k.Title, k.Reason)
	}
	return ""
}

// notCalledFor: a single source needs no comparison, a backup has no log, and logs alone no database.
func (c *collected) notCalledFor(id string) bool {
	logs, dbs, entries := 0, 0, 0
	for _, m := range c.in.Members {
		if m.WAL != nil {
			logs++
		}
		if m.HasLog() {
			entries++ // a data dir that was cloned from a database has a log that begins behind it, without entries
		}
		if m.DB != nil {
			dbs++
		}
	}
	switch id {
	case "W01", "K03":
		return logs == 0 || id == "K03" && (dbs == 0 || entries == 0)
	case "D02":
		return dbs == 0
	case "K01":
		return len(c.in.Members) < 2 || dbs < 2
	case "R01":
		return entries < 2
	}
	return false
}

func (c *collected) freshlyRestored() bool {
	for _, m := range c.in.Members {
		if m.WAL == nil || m.WAL.Summary.Start != dumplog.StartRestore || m.WAL.Summary.LastIndex != uint64(len(m.WAL.Conf)) {
			return false
		}
	}
	return true
}

// compactionSkew: an unfinished compaction, or marks that differ between members.
func (c *collected) compactionSkew() bool {
	marks := map[string]bool{}
	for _, m := range c.in.Members {
		if !m.HasDB() {
			continue
		}
		s, f := m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact
		if s != nil && (f == nil || f.Main < s.Main) {
			return true
		}
		marks[fmt.Sprint(m.CompactRevision())] = true
	}
	return len(marks) > 1
}

// Package verdict says what the findings mean for the whole: the class and the first break, the cause that leads, which
// member is best, what keeping it loses, and what to do next.
//
// It judges facts, effects, findings and causes. It reads no file and knows neither the report nor who shows it.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Input is what a verdict is made of.
type Input struct {
	// Input holds the facts, the replay and the comparison; the last two are nil when sources of different clusters are
	// mixed.
	*check.Input
	Findings []check.Finding
	Checks   []CheckOutcome
	// Causes are the entries of the catalogue that fit, in its order.
	Causes []Cause
	// Facts are those of the members, in the same order.
	Facts []evidence.Facts
	// Unread are the sources that could not be used.
	Unread []Unread
	// Mixed is true when sources belong to different clusters: replay and comparison then make no sense.
	Mixed bool
	// Backup is true when the one source is a backup.
	Backup bool
	// Keep is the label of the member that will be kept whatever its rank, "" for the best.
	Keep string
	// WrongRecords bounds the listed records of the kept member that are proven wrong; 0 means MaxWrongRecords.
	WrongRecords int
}

// Unread is a source that could not be used.
type Unread struct{ Name, Error string }

// Answer is what the verdict says.
type Answer struct {
	Verdict Verdict
	// Causes are those of the input, with the verdict's own cause first.
	Causes []Cause
	// Best is nil when there is nothing to choose between.
	Best *Best
	Next []Next
}

// judge is one judgement in the making.
type judge struct {
	*Input
	ranking *ranking
	Verdict Verdict
	Best    *Best
}

// Judge says what the findings mean.
func Judge(in *Input) *Answer {
	own := *in
	own.Causes = slices.Clone(in.Causes)
	j := &judge{Input: &own, ranking: &ranking{&own}}
	j.backupCauseFirst()
	j.class()
	if !j.Mixed {
		j.Best = j.ranking.rank()
		j.consequence()
	}
	j.backupClass()
	ad := &advice{Input: &own, ranking: j.ranking, Verdict: j.Verdict, Best: j.Best, Next: []Next{}}
	ad.next()
	return &Answer{Verdict: j.Verdict, Causes: j.Causes, Best: j.Best, Next: ad.Next}
}

// leading is the cause that the verdict names, nil when none fits.
func (j *judge) leading() *Cause {
	if len(j.Causes) == 0 || j.Causes[0].Secondary {
		return nil
	}
	return &j.Causes[0]
}

// sourceNames are the names of all sources.
func (in *Input) sourceNames() []string {
	out := in.allLabels()
	for _, s := range in.Unread {
		out = append(out, s.Name)
	}
	return out
}

// class names the class: that of the first break in history among the findings that are errors or worse.
func (j *judge) class() {
	breaks := breaking(j.Findings)
	if len(breaks) == 0 {
		(&health{Input: j.Input, Verdict: &j.Verdict}).healthy()
		return
	}
	first := breaks[0]
	if m := mixedClusters(breaks); j.Mixed && m != nil {
		first = m // nothing was compared, and no repair can be planned of several clusters
	} else if d := explainedByDamage(first, breaks); d != nil {
		first = d
	}
	class := first.Class
	if class == check.ClassLatentDivergence && anyClass(breaks, check.ClassDataDivergence) {
		// The control state broke first, but contents differ already: the class names the present state, firstBreak how
		// it began.
		class = check.ClassDataDivergence
	}
	switch {
	case class == check.ClassDataDivergence && len(j.Members) == 1 && !refusedByRule(first):
		class = check.ClassDBDamage
	case class == check.ClassDBDamage && first.Check == check.K04 && len(j.Members) > 1 && !first.Facts.Undecodable &&
		shownByOthers(first, breaks):
		// pages and rows are sound: the file holds other content than the other members
		class = check.ClassDataDivergence
	}
	v := &j.Verdict
	v.Class, v.Health = class, class.Health()
	v.FirstBreak = j.firstBreak(first)
	if !j.Backup {
		j.causeOfFirst(first)
	}
	v.Statement, v.Summary = first.Title, first.Title
	if k := j.leading(); k != nil {
		v.Cause, v.Certainty = &k.ID, &k.Certainty
		if basis := j.basis(k, first); basis != nil {
			v.Statement = basis.Title + "; also " + first.Title
		}
		v.Summary = fmt.Sprintf("%s (%s): %s", k.Title, k.Certainty, v.Statement)
	}
}

// mixedClusters is the finding of M01 to begin with: that the sources are of several clusters, else that a cluster ID
// was altered, nil if there is none.
func mixedClusters(breaks []*check.Finding) *check.Finding {
	var first *check.Finding
	for _, f := range breaks {
		if f.Check == check.M01 && (first == nil || first.Class != f.Class && f.Class == check.ClassForeignCluster) {
			first = f
		}
	}
	return first
}

// basis is the finding that a cause rests on if the cause does not explain the first break, else nil: a headline does
// not join a cause with something that it does not explain.
func (j *judge) basis(k *Cause, first *check.Finding) *check.Finding {
	if len(k.Because) == 0 || j.explains(k, first) {
		return nil
	}
	at := slices.IndexFunc(j.Findings, func(f check.Finding) bool { return f.ID == k.Because[0] })
	if at < 0 {
		return nil
	}
	return &j.Findings[at]
}

// explains reports whether a cause rests on a finding, or on one of the same class.
func (j *judge) explains(k *Cause, f *check.Finding) bool {
	return slices.ContainsFunc(j.Findings, func(o check.Finding) bool {
		return (o.ID == f.ID || o.Class == f.Class) && slices.Contains(k.Because, o.ID)
	})
}

// causeOfFirst puts a cause that rests on the first break in front when the leading one explains something else, such
// as damage to another member: the headline then names one problem, not two.
func (j *judge) causeOfFirst(first *check.Finding) {
	if k := j.leading(); k == nil || j.explains(k, first) {
		return
	}
	at := slices.IndexFunc(j.Causes, func(k Cause) bool { return !k.Secondary && slices.Contains(k.Because, first.ID) })
	if at > 0 {
		k := j.Causes[at]
		j.Causes = slices.Insert(slices.Delete(j.Causes, at, at+1), 0, k)
	}
}

// refusedByRule: the member's server applied the log with a rule that used a wrong counter. The file itself is not
// damaged, although a single source shows the finding.
func refusedByRule(f *check.Finding) bool { return f.Check == check.A02 || f.Check == check.A04 }

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

// rankOfCheck is the position of the first finding of the same check. Findings of one check are in the order of the
// arguments, on which the verdict must not depend.
func rankOfCheck(f *check.Finding, fs []check.Finding) int {
	return slices.IndexFunc(fs, func(o check.Finding) bool { return o.Check == f.Check })
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// contentChecks compare what databases hold; damage to one of the files explains what they find.
var contentChecks = map[check.ID]bool{check.K01: true, check.K02: true, check.K03: true, check.K06: true,
	check.M02: true, check.M03: true,
	check.L01: true, check.L03: true, check.L09: true, check.A03: true, check.A08: true, check.A09: true,
	check.L04: true, check.M15: true, check.M16: true,
	check.M17: true, check.K12: true}

// stateChecks are about what a member stores about itself; a database with unreadable pages shows only the pages that
// remain.
var stateChecks = map[check.ID]bool{check.C02: true, check.C03: true, check.C04: true, check.S02: true, check.K04: true,
	check.L02: true}

// explainedByDamage: a content difference is damage if it involves a member whose file contradicts its own structure,
// and so is whatever is found in a damaged backup alone. Damage has no raft index, so history alone would put it last.
func explainedByDamage(first *check.Finding, breaks []*check.Finding) *check.Finding {
	for _, b := range breaks {
		if b.Is(check.KindGapForeign, check.KindIndexForeign) && slices.Contains(first.Members, b.Members[0]) {
			return b // its content is that of another cluster
		}
	}
	if b := usedAsDB(first, breaks); b != nil {
		return b // the content is from another time
	}
	if b := tornWith(first, breaks); b != nil {
		return b
	}
	content, state := contentChecks[first.Check], stateChecks[first.Check]
	ofOne := len(first.Members) == 1 && first.Class != check.ClassForeignCluster
	var found *check.Finding
	for _, b := range breaks {
		ofBackup := b.Class == check.ClassBackupDamaged && ofOne
		if !content && !ofBackup && (!state || b.Check != check.D02) {
			continue
		}
		damaged := b.Class == check.ClassDBDamage || b.Class == check.ClassBackupDamaged || b.Check == check.X05
		if !damaged || len(b.Members) != 1 || !slices.Contains(first.Members, b.Members[0]) {
			continue
		}
		if found == nil || b.Class == check.ClassBackupDamaged && found.Class != check.ClassBackupDamaged {
			found = b // the sum of a whole backup explains what its records contradict
		}
	}
	return found
}

// tornWith is the finding that a source was copied while its server wrote, if that explains what is wrong with this
// source: pages, the end of its log, segments that were purged or began meanwhile, a database ahead of the log.
func tornWith(first *check.Finding, breaks []*check.Finding) *check.Finding {
	if len(first.Members) != 1 || !first.OfCopy() {
		return nil
	}
	at := slices.IndexFunc(breaks, func(b *check.Finding) bool {
		return b.Kind == check.KindCopyTorn && slices.Equal(b.Members, first.Members)
	})
	if at < 0 {
		return nil
	}
	return breaks[at]
}

// usedAsDB is the finding that a backup is in the place of a database, if that holds for all members that another one
// about their databases names.
func usedAsDB(first *check.Finding, breaks []*check.Finding) (found *check.Finding) {
	if !strings.ContainsAny(string(first.Check[:1]), "ACDKLM") {
		return nil
	}
	for _, name := range first.Members {
		at := slices.IndexFunc(breaks, func(b *check.Finding) bool {
			return b.Kind == check.KindBackupUsedAsDB && slices.Contains(b.Members, name)
		})
		if at < 0 {
			return nil
		}
		if found == nil {
			found = breaks[at]
		}
	}
	return found
}

// shownByOthers reports whether a contradiction in a member's history is also a difference from the log or from other
// members.
func shownByOthers(first *check.Finding, breaks []*check.Finding) bool {
	return slices.ContainsFunc(breaks, func(f *check.Finding) bool {
		return f.Class == check.ClassDataDivergence && contentChecks[f.Check] &&
			slices.Contains(f.Members, first.Members[0])
	})
}

func anyClass(fs []*check.Finding, class check.Class) bool {
	for _, f := range fs {
		if f.Class == class {
			return true
		}
	}
	return false
}

func (j *judge) firstBreak(f *check.Finding) *FirstBreak {
	b := &FirstBreak{Check: f.Check, Member: f.Members, Term: f.At.Term, Index: f.At.Index, Revision: f.At.Revision}
	if len(f.Evidence) == 0 {
		return b
	}
	e := f.Evidence[0]
	b.Bucket, b.Key, b.Expected, b.Observed = e.Bucket, e.Key, e.Expected, e.Observed
	if f.Check == check.A01 {
		b.Member, b.Observed = j.beyondLog(f), observedByMember(f)
	}
	return b
}

// beyondLog names the members whose auth revision does not result from the log, or all members of the finding when the
// log cannot decide.
func (j *judge) beyondLog(f *check.Finding) []string {
	var out []string
	if j.Replay != nil {
		for i, m := range j.Replay.Members {
			if m.Checked && m.AuthOff() {
				out = append(out, j.Members[i].Label())
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

// surplusText counts writes of a member that its cluster does not have.
func surplusText(n int) string { return plural.Of(n, "write too many", "writes too many") }

// consequence adds to the summary what each member lacks and which to keep, where contents differ.
func (j *judge) consequence() {
	v := &j.Verdict
	if v.Health != check.Unhealthy || j.Best == nil || len(j.Best.Members) == 0 {
		return
	}
	for _, row := range j.Best.Ranking {
		if n := row.Lacks.CommittedEntries; n > 0 {
			v.Add(fmt.Sprintf("; %s is missing %s", row.Member, plural.Of(n, "committed write", "committed writes")))
		}
		if row.Surplus > 0 {
			v.Add(fmt.Sprintf("; %s holds %s", row.Member, surplusText(row.Surplus)))
		}
	}
	if len(j.Best.Members) < len(j.Best.Ranking) {
		v.Problem = v.Summary
		v.Summary += "; best: " + strings.Join(j.Best.Members, ", ")
	}
}

// history is the finding's place on the raft-index axis; unknown places come last.
func history(f *check.Finding) uint64 {
	if f.At.Index == 0 {
		return 1<<64 - 1
	}
	return f.At.Index
}

// SortFindings puts the gravest first, then history's order, then the order of the checks.
func SortFindings(fs []check.Finding) {
	slices.SortStableFunc(fs, func(a, b check.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(history(&a), history(&b)))
	})
}

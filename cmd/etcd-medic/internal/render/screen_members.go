package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// screenMembers are shown on the screen; a larger set has its rows in the full text.
const screenMembers = 7

// members writes a row for each member: what an operator compares first, and what is wrong with the member.
func (p diagnosisScreen) members() {
	r := p.r
	if len(r.Members) == 0 {
		return
	}
	p.line("")
	wrong := accusedBy(r.Findings, len(r.Members))
	head := []string{"MEMBER", "ETCD", "LOG END", "APPLIED", "REVISION", "AUTH", "KEYS", "WHAT IS WRONG"}
	var rows [][]string
	var short []string
	for i := range r.Members[:min(len(r.Members), screenMembers)] {
		m := &r.Members[i]
		row := []string{brief(clean(m.Name), 16), orDash(m.WroteBy.Etcd), "-", num0(m.AppliedIndex), "-", "-", "-",
			wrongWith(m, r.Best, wrong[m.Name])}
		if w := m.WAL; w != nil && w.LastIndex > 0 {
			row[2] = termIndex(w.LastTerm, w.LastIndex)
		}
		if d := m.DB; d != nil {
			row[4], row[6] = d.RevisionText(), d.KeysText()
		}
		if a := m.Auth; a != nil {
			row[5] = authText(a)
		}
		rows = append(rows, row)
		short = append(short, wrongInShort(wrong[m.Name]))
	}
	equal := leaveOutEqual(head, rows, p.o.width())
	p.rows(head, rows, short)
	if len(equal) > 0 && p.room.equal {
		p.hanging("on all: ", strings.Join(equal, ", "), 1)
	}
	if n := len(r.Members) - screenMembers; n > 0 {
		p.line("… and %s, see --full", plural.Of(n, "more member", "more members"))
	}
	p.apart()
}

// apart names the sources that were compared with nothing, such as a backup from before a restore.
func (p diagnosisScreen) apart() {
	isMember := func(name string) bool {
		return slices.ContainsFunc(p.r.Members, func(m evidence.Facts) bool { return m.Name == name })
	}
	for i := range p.r.Findings {
		if f := &p.r.Findings[i]; len(f.Members) > 0 && !slices.ContainsFunc(f.Members, isMember) &&
			(f.Kind == check.KindBackupBeforeRestore || f.Kind == check.KindBackupUnrelated) {
			p.hanging("APART  ", fmt.Sprintf("%s (%s)", f.Title, f.ID), p.room.sentence)
		}
	}
}

// accusedBy returns, by member, the findings that name it, worst first, without comparisons that name all members.
func accusedBy(all []check.Finding, members int) map[string][]*check.Finding {
	out := map[string][]*check.Finding{}
	for i := range all {
		f := &all[i]
		if f.Severity.Rank() < check.Warning.Rank() || len(f.Members) == members && members > 1 && !f.Each {
			continue
		}
		for _, m := range f.Members {
			out[m] = append(out[m], f)
		}
	}
	return out
}

// wrongWith summarises how a member differs from the others, and names the findings to look up.
func wrongWith(m *evidence.Facts, best *compare.Best, findings []*check.Finding) string {
	s := state(m, best)
	if len(findings) == 0 {
		if n := behind(m.Name, best); n > 0 && s == "-" {
			return "lags by " + plural.Of(n, "entry", "entries")
		}
		return s
	}
	if s == "-" {
		s = titleFor(findings[0], m.Name)
	}
	return firstIDs(findings) + ": " + s
}

// wrongInShort names the first finding, and says in a few words what it states.
func wrongInShort(findings []*check.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	return findings[0].ID + more(len(findings)-1) + ": " + findings[0].Kind.Text()
}

// firstIDs are the numbers of the first findings, and how many more there are.
func firstIDs(findings []*check.Finding) string {
	var ids []string
	for _, f := range findings[:min(len(findings), 3)] {
		ids = append(ids, f.ID)
	}
	return strings.Join(ids, " ") + more(len(findings)-3)
}

// titleFor returns the title of a finding in the row of a member, which needs no name there.
func titleFor(f *check.Finding, member string) string {
	s := strings.TrimSuffix(f.Title, ", wrong on "+member)
	for _, before := range []string{plural.List(f.Members) + ": ", member + ": ", member + " ", member + "'s ",
		"learner " + member + " "} {
		if rest, ok := strings.CutPrefix(s, before); ok && rest != "" {
			return rest
		}
	}
	return s
}

// behind returns how many committed entries a member has not got yet.
func behind(member string, best *compare.Best) int {
	if best == nil {
		return 0
	}
	for i := range best.Ranking {
		if best.Ranking[i].Member == member {
			return best.Ranking[i].Behind
		}
	}
	return 0
}

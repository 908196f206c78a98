package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// memberTable writes one line per member with the facts that an operator compares first.
func (p *page) memberTable(r *compare.Report) {
	if len(r.Members) == 0 {
		return
	}
	p.section("members")
	head := []string{"member", "id", "etcd", "log end", "commit", "applied", "revision", "compact", "auth rev", "keys",
		"state"}
	var rows [][]string
	for i := range r.Members {
		m := &r.Members[i]
		row := []string{m.Name, hexID(uint64(m.MemberID)), orDash(m.WroteBy.Etcd), "-", num0(m.Commit),
			num0(m.AppliedIndex), "-", "-", "-", "-", state(m, r.Best)}
		if w := m.WAL; w != nil && w.LastIndex > 0 {
			row[3] = termIndex(w.LastTerm, w.LastIndex)
		}
		if d := m.DB; d != nil {
			row[6], row[7], row[9] = ptr(d.CurrentRevision), compactText(d.CompactRevision), ptr(d.Keys)
		}
		if a := m.Auth; a != nil {
			row[8] = authText(a)
		}
		rows = append(rows, row)
	}
	p.table("  ", head, rows)
}

// state lists how the source differs from a complete, undamaged one without alarms.
func state(m *evidence.Facts, best *compare.Best) string {
	var s []string
	if n := lacks(m.Name, best); n > 0 {
		s = append(s, "missing "+plural.Of(n, "write", "writes"))
	}
	for _, x := range m.Missing {
		s = append(s, "no "+x)
	}
	if w := m.WAL; w != nil && len(w.Damage) > 0 {
		s = append(s, damagedText("log", w.Damage[0].Kind, len(w.Damage)+w.DamageOmitted))
	}
	for _, f := range m.Snapshots {
		if f.Damage != nil {
			s = append(s, damagedText("snapshot file", f.Damage.Kind, 1))
		}
	}
	if d := m.DB; d != nil && len(d.Damage) > 0 {
		s = append(s, damagedText("database", d.Damage[0].Kind, len(d.Damage)+d.DamageOmitted))
	}
	for _, a := range m.Alarms {
		s = append(s, "alarm "+a.Alarm)
	}
	for _, x := range m.Problems {
		s = append(s, x.Part+" unreadable")
	}
	if len(s) == 0 {
		return "-"
	}
	return strings.Join(s, ", ")
}

// damagedText names what is damaged, how at the first of so many places.
func damagedText(what, kind string, places int) string {
	return fmt.Sprintf("%s damaged (%s)", what, kind+more(places-1))
}

func lacks(member string, best *compare.Best) int {
	if best == nil {
		return 0
	}
	for _, r := range best.Ranking {
		if r.Member == member {
			return r.Lacks.CommittedEntries
		}
	}
	return 0
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" +%d", n)
}

func authText(a *evidence.AuthFacts) string {
	if !a.Enabled {
		return strconv.FormatUint(a.Revision, 10) + " (off)"
	}
	return strconv.FormatUint(a.Revision, 10)
}

func (p *page) best(b *compare.Best) {
	if b == nil || len(b.Ranking) == 1 && b.Lost.None() {
		return // with one source there is no choice
	}
	p.section("best member")
	if len(b.Members) == 0 {
		p.text("  undecided: ", b.Why)
	}
	p.ranking(b.Ranking)
	for _, g := range sameStanding(b) {
		p.text("  ", g.title(b)+tail(g.reason()))
	}
	if b.Undecided != "" {
		p.text("  ", "Content cannot decide between them: "+b.Undecided+".")
	}
	if len(b.Members) > 0 {
		p.lost(b.Members[0], &b.Lost)
	}
}

// ranking writes a table of what members lack and what only they have, if there is anything to count.
func (p *page) ranking(ranking []compare.Rank) {
	var rows [][]string
	any := false
	for _, r := range ranking {
		usable := "yes"
		if !r.Usable {
			usable = "no"
		}
		any = any || !r.Usable || r.Lacks.CommittedEntries+r.Lacks.Keys+r.Unique.CommittedEntries+r.Unique.Keys > 0
		rows = append(rows, []string{r.Member, usable, counted(&r, r.Lacks.CommittedEntries),
			counted(&r, r.Lacks.Keys), counted(&r, r.Unique.CommittedEntries), counted(&r, r.Unique.Keys)})
	}
	if any {
		p.table("  ", []string{"member", "usable", "lacks entries", "lacks keys", "alone has entries",
			"alone has keys"}, rows)
	}
}

// counted returns a number of writes or keys. Zero says nothing about a member that cannot serve, or whose content was
// not compared as a whole.
func counted(r *compare.Rank, n int) string {
	if n == 0 && (!r.HoldsAll && r.Lacks.CommittedEntries == 0 || !r.Usable) {
		return "-"
	}
	return strconv.Itoa(n)
}

// standing is the reason for the rank of members, stated once for all members with the same reason.
type standing struct {
	names []string
	best  bool
	why   string
	// holdsAll is true if why begins with what each of them holds.
	holdsAll bool
}

// reason says of several members what is said of one.
func (s *standing) reason() string {
	if s.holdsAll && len(s.names) > 1 {
		return "each " + s.why
	}
	return s.why
}

// title names the members.
func (s *standing) title(b *compare.Best) string {
	switch {
	case s.best && b.Undecided != "":
		return plural.List(s.names)
	case s.best && len(b.Members) > 1:
		return plural.List(s.names) + ", equally good"
	case s.best:
		return s.names[0] + ", the best"
	}
	return plural.List(s.names)
}

// sameStanding groups members with the same reasons, and omits the findings that name a member.
func sameStanding(b *compare.Best) (out []*standing) {
	for _, r := range b.Ranking {
		s := &standing{names: []string{r.Member}, best: slices.Contains(b.Members, r.Member), holdsAll: r.HoldsAll,
			why: strings.Join(r.OtherReasons(), "; ")}
		at := slices.IndexFunc(out, func(o *standing) bool { return o.best == s.best && o.why == s.why })
		switch {
		case at >= 0:
			out[at].names = append(out[at].names, r.Member)
		case s.why != "" || s.best:
			out = append(out, s)
		}
	}
	return out
}

func (p *page) lost(member string, l *compare.Lost) {
	switch none := l.None(); {
	case none && len(l.Unproven) == 0:
		p.text("  ", fmt.Sprintf("Choosing %s loses %s.", member, l))
		return
	case none:
		p.text("  ", fmt.Sprintf("No entry is known that choosing %s loses%s. That it loses none is not proven: %s.",
			member, l.Condition(), strings.Join(l.Unproven, "; ")))
		return
	}
	p.line("  Choosing %s loses %s:", member, l)
	shown := min(len(l.Entries), p.o.maxEvidence())
	for _, e := range l.Entries[:shown] {
		where := "held by " + strings.Join(e.HeldBy, ", ")
		if len(e.HeldBy) == 0 {
			where = "in the log only"
		}
		p.text("  - ", fmt.Sprintf("entry %s %s, %s", termIndex(e.Term, e.Index), e.What, where))
	}
	if n := l.CommittedEntries - l.AfterEnd - shown; n > 0 {
		p.line("  … and %d more, see -w json", n)
	}
	p.lostRecords(&l.Records)
	p.command("  $ ", l.Command)
}

// lostRecords lists the records that are proven wrong on the kept member.
func (p *page) lostRecords(r *compare.LostRecords) {
	shown := min(len(r.Rows), p.o.maxEvidence())
	for i := range r.Rows[:shown] {
		x := &r.Rows[i]
		where := "held by " + strings.Join(x.HeldBy, ", ")
		if len(x.HeldBy) == 0 {
			where = "held by no source for certain"
		}
		p.text("  - ", fmt.Sprintf("revision %d.%d, key %s: %s; right is %s, %s (%s)", x.Revision.Main, x.Revision.Sub,
			quoted(x.Key), x.Kept, x.Expected, where, x.Why))
	}
	if n := r.Count - shown; n > 0 {
		said := "see -w json"
		if r.Count > len(r.Rows) {
			said += fmt.Sprintf(" for the first %d", len(r.Rows))
		}
		p.line("  … and %d more records, %s", n, said)
	}
}

func hexID(id uint64) string {
	if id == 0 {
		return "-"
	}
	return strconv.FormatUint(id, 16)
}

func orDash(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
}

func num0(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

func ptr[T int64 | uint64](n *T) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// compactText shows -1, never compacted, as a dash.
func compactText(n *int64) string {
	if n == nil || *n < 0 {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

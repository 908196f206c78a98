package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// bestSection writes which member is the best one to keep, and what keeping it loses.
type bestSection struct{ *page }

func (p bestSection) write(b *compare.Best) {
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
func (p bestSection) ranking(ranking []compare.Rank) {
	var rows [][]string
	any := false
	for _, r := range ranking {
		usable := "yes"
		if !r.Usable {
			usable = "no"
		}
		any = any || !r.Usable || r.Lacks != compare.Count{} || r.Surplus > 0 || r.Unique != compare.Count{}
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
	if n == 0 && (!r.HoldsAll && r.Lacks.CommittedEntries+r.Surplus == 0 || !r.Usable) {
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

func (p bestSection) lost(member string, l *compare.Lost) {
	switch none := l.None(); {
	case none && len(l.Unproven) == 0:
		p.text("  ", fmt.Sprintf("Choosing %s loses %s.", member, l))
		return
	case none:
		p.text("  ", fmt.Sprintf("No entry is known that choosing %s loses%s. That it loses none is not proven: %s.",
			member, l.Condition(), strings.Join(l.Unproven, "; ")))
		return
	case !l.Shown():
		p.text("  ", fmt.Sprintf("Choosing %s loses %s%s.", member, l, lostUnseen))
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
	if n := l.CommittedEntries - l.AfterEnd - l.Parted - shown; n > 0 {
		p.line("  … and %d more, see -w json", n)
	}
	p.lostRecords(&l.Records)
	p.command("  $ ", l.Command)
}

// lostRecords lists the records that are proven wrong on the kept member.
func (p bestSection) lostRecords(r *compare.LostRecords) {
	shown := min(len(r.Rows), p.o.maxEvidence())
	for i := range r.Rows[:shown] {
		x := &r.Rows[i]
		where := "held by " + strings.Join(x.HeldBy, ", ")
		if len(x.HeldBy) == 0 {
			where = "held by no database for certain"
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

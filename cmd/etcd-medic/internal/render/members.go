package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// membersSection writes the table of members.
type membersSection struct{ *page }

// write writes one line per member with the facts that an operator compares first.
func (p membersSection) write(r *compare.Report) {
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
			row[6], row[7], row[9] = d.RevisionText(), compactText(d.CompactRevision), d.KeysText()
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
	missing, surplus := wrongEffects(m.Name, best)
	if missing > 0 {
		s = append(s, "missing "+plural.Of(missing, "write", "writes"))
	}
	if surplus > 0 {
		s = append(s, plural.Of(surplus, "write too many", "writes too many"))
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

// wrongEffects returns how many committed writes a member lacks, and how many of its writes must not be.
func wrongEffects(member string, best *compare.Best) (missing, surplus int) {
	if best == nil {
		return 0, 0
	}
	for _, r := range best.Ranking {
		if r.Member == member {
			return r.Lacks.CommittedEntries, r.Surplus
		}
	}
	return 0, 0
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

package htmlreport

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// card is one member.
type card struct {
	N     int
	Name  string
	Tags  []tag
	Rows  []fact
	Notes []string
}

type tag struct{ Text, Tone string }

type fact struct {
	Name, Value string
	// Off is true if it differs from the value according to the log.
	Off bool
}

func (v *view) cards(r *compare.Report) {
	for i := range r.Members {
		m := &r.Members[i]
		c := card{N: i, Name: text(m.Name)}
		if r.Best != nil && slices.Contains(r.Best.Members, m.Name) && len(r.Members) > 1 {
			c.Tags = append(c.Tags, tag{"keep", "good"})
		}
		l := v.lane(m.Name)
		c.facts(m, l, v.sound(i))
		c.state(m, r.Best)
		if len(c.Tags) == 0 && len(r.Members) > 1 && r.Best != nil &&
			slices.ContainsFunc(r.Best.Ranking, func(x compare.Rank) bool { return x.Member == m.Name && !x.Usable }) {
			c.Tags = append(c.Tags, tag{"not usable", "bad"})
		}
		v.Members = append(v.Members, c)
		e := ends{Name: text(m.Name), Revision: "–", Auth: "–", Consistent: "–", Lacks: "–"}
		if m.DB != nil && m.DB.CurrentRevision != nil {
			e.Revision = m.DB.RevisionText()
		}
		if m.DB != nil && m.DB.ConsistentIndex != nil {
			e.Consistent = strconv.FormatUint(*m.DB.ConsistentIndex, 10)
		}
		if m.Auth != nil {
			e.Auth = strconv.FormatUint(m.Auth.Revision, 10)
		}
		if l != nil && l.Why == "" {
			e.Lacks = strconv.Itoa(l.Lacks)
		}
		v.Ends = append(v.Ends, e)
	}
}

// lane is the member's lane on the timeline, nil without one.
func (v *view) lane(name string) *timeline.Lane {
	if v.d.Timeline == nil {
		return nil
	}
	for i := range v.d.Timeline.Lanes {
		if v.d.Timeline.Lanes[i].Member == name {
			return &v.d.Timeline.Lanes[i]
		}
	}
	return nil
}

func (c *card) row(name, value string, off bool) {
	if value != "" {
		c.Rows = append(c.Rows, fact{Name: name, Value: text(value), Off: off})
	}
}

// facts are the cells that an operator compares first.
func (c *card) facts(m *evidence.Facts, l *timeline.Lane, sound *evidence.Facts) {
	c.row("member ID", m.MemberID.String(), false)
	if m.WroteBy.Etcd != nil {
		c.row("written by etcd", *m.WroteBy.Etcd, false)
	}
	if w := m.WAL; w != nil && w.LastIndex > 0 {
		c.row("log", fmt.Sprintf("%d to %s", w.FirstIndex, termIndex(w.LastTerm, w.LastIndex)), false)
	} else {
		c.row("log", "none", false)
	}
	c.row("commit", strconv.FormatUint(m.Commit, 10), false)
	c.row("applied", strconv.FormatUint(m.AppliedIndex, 10), false)
	if d := m.DB; d != nil {
		if d.CurrentRevision != nil {
			c.against("revision", d, d.EndUnread, sound,
				func(x *evidence.DBFacts) *int64 { return x.CurrentRevision })
		}
		if d.CompactRevision != nil && *d.CompactRevision > 0 {
			c.row("compacted to", strconv.FormatInt(*d.CompactRevision, 10), false)
		}
		if d.Keys != nil {
			c.against("keys", d, d.Partial, sound, func(x *evidence.DBFacts) *int64 { return x.Keys })
		}
		c.row("database", bytesText(d.Size), false)
	} else {
		c.row("database", "none", false)
	}
	if a := m.Auth; a != nil {
		s, off := strconv.FormatUint(a.Revision, 10), false
		if l != nil && l.AuthExpected != nil && *l.AuthExpected != a.Revision {
			s, off = fmt.Sprintf("%d, the log gives %d", a.Revision, *l.AuthExpected), true
		}
		c.row("auth revision", s, off)
		if !a.Enabled {
			c.row("auth", "disabled", false)
		}
	}
	if l != nil && l.Lacks > 0 {
		c.row("lacks", lacksText(l), true)
	}
	if l != nil && l.Surplus > 0 {
		c.row("has too many", plural.Of(l.Surplus, "write", "writes"), true)
	}
	if len(m.Leases) > 0 {
		c.row("leases", strconv.Itoa(len(m.Leases)), false)
	}
}

// against adds a number, marked if it differs from that of a member that agrees with the log.
func (c *card) against(name string, d *evidence.DBFacts, unsure bool, sound *evidence.Facts,
	of func(*evidence.DBFacts) *int64) {
	have := *of(d)
	s := strconv.FormatInt(have, 10)
	if unsure {
		s += " can be read"
	}
	if sound != nil {
		if want := of(sound.DB); want != nil && *want != have {
			c.row(name, fmt.Sprintf("%s, the log gives %d", s, *want), true)
			return
		}
	}
	c.row(name, s, false)
}

// sound returns a member that has applied as much as the given one and whose undamaged database has every effect that
// the log promises. Its numbers are those according to the log. It returns nil if there is none, or if the given member
// is such a member.
func (v *view) sound(at int) *evidence.Facts {
	members := v.d.Report.Members
	m, own := &members[at], v.lane(members[at].Name)
	if own == nil || own.Why != "" || own.Lacks+own.Surplus == 0 && (m.DB == nil || len(m.DB.Damage) == 0) {
		return nil
	}
	for i := range members {
		x := &members[i]
		l := v.lane(x.Name)
		if l != nil && l.Why == "" && l.Lacks+l.Surplus == 0 && l.JudgedTo >= m.AppliedIndex &&
			x.AppliedIndex == m.AppliedIndex &&
			x.DB != nil && len(x.DB.Damage) == 0 {
			return x
		}
	}
	return nil
}

func lacksText(l *timeline.Lane) string {
	s := plural.Of(l.Lacks, "entry", "entries")
	if l.FirstLack > 0 && l.Surplus == 0 {
		s += fmt.Sprintf(", the first %d", l.FirstLack)
	}
	return s
}

// state lists how the member differs from a complete, undamaged one.
func (c *card) state(m *evidence.Facts, best *compare.Best) {
	add := func(s string) { c.Notes = append(c.Notes, text(s)) }
	for _, x := range m.Missing {
		add("no " + x)
	}
	if m.WAL != nil && len(m.WAL.Damage) > 0 {
		c.Tags = append(c.Tags, tag{"log damaged", "bad"})
		for _, d := range m.WAL.Damage[:min(len(m.WAL.Damage), 3)] {
			add("log: " + d.Detail)
		}
	}
	for _, s := range m.Snapshots {
		if s.Damage != nil {
			c.Tags = append(c.Tags, tag{"snapshot damaged", "bad"})
			add(s.File + ": " + s.Damage.Detail)
		}
	}
	if m.DB != nil && len(m.DB.Damage) > 0 {
		c.Tags = append(c.Tags, tag{"database damaged", "bad"})
		for _, d := range m.DB.Damage[:min(len(m.DB.Damage), 3)] {
			add("database: " + d.Detail)
		}
	}
	for _, a := range m.Alarms {
		c.Tags = append(c.Tags, tag{"alarm " + text(a.Alarm), "bad"})
	}
	for _, p := range m.Problems {
		add(p.Part + ": " + p.Error)
	}
	if best == nil {
		return
	}
	for _, r := range best.Ranking {
		if r.Member != m.Name {
			continue
		}
		for _, why := range r.Reasons {
			add(upper(why))
		}
	}
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

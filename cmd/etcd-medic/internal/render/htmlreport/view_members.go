package htmlreport

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
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
	// Off is true when it differs from what the log gives.
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
		c.facts(m, l)
		c.state(m, r.Best)
		if len(c.Tags) == 0 && len(r.Members) > 1 && r.Best != nil &&
			slices.ContainsFunc(r.Best.Ranking, func(x compare.Rank) bool { return x.Member == m.Name && !x.Usable }) {
			c.Tags = append(c.Tags, tag{"not usable", "bad"})
		}
		v.Members = append(v.Members, c)
		e := ends{Name: text(m.Name), Revision: "–", Auth: "–", Consistent: "–", Lacks: "–"}
		if m.DB != nil && m.DB.CurrentRevision != nil {
			e.Revision = strconv.FormatInt(*m.DB.CurrentRevision, 10)
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
func (c *card) facts(m *evidence.Facts, l *timeline.Lane) {
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
			c.row("revision", strconv.FormatInt(*d.CurrentRevision, 10), l != nil && l.Lacks > 0)
		}
		if d.CompactRevision != nil && *d.CompactRevision > 0 {
			c.row("compacted to", strconv.FormatInt(*d.CompactRevision, 10), false)
		}
		if d.Keys != nil {
			c.row("keys", strconv.FormatInt(*d.Keys, 10), l != nil && l.Lacks > 0)
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
	if len(m.Leases) > 0 {
		c.row("leases", strconv.Itoa(len(m.Leases)), false)
	}
}

func lacksText(l *timeline.Lane) string {
	s := count(l.Lacks, "entry", "entries")
	if l.FirstLack > 0 {
		s += fmt.Sprintf(", the first %d", l.FirstLack)
	}
	return s
}

// state lists what sets the member apart from a complete, undamaged one.
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

// authView is users against roles, and what differs between members.
type authView struct {
	Note  string
	Roles []string
	Users []userRow
	Perms []permRow
}

type userRow struct {
	Name  string
	Cells []authCell
}

type authCell struct {
	Text string
	Off  bool
}

type permRow struct {
	Name  string
	Lines []string
	Off   bool
}

// maxUsers bounds the table of users, maxRoles its columns.
const (
	maxUsers = 500
	maxRoles = 30
)

// auth compares users and roles of all members that hold them.
func (v *view) auth(r *compare.Report) {
	var members []*evidence.Facts
	users, roles := map[string]bool{}, map[string]bool{}
	for i := range r.Members {
		m := &r.Members[i]
		if m.Auth == nil {
			continue
		}
		members = append(members, m)
		for u := range m.Auth.Users {
			users[u] = true
		}
		for x := range m.Auth.Roles {
			roles[x] = true
		}
	}
	if len(users)+len(roles) == 0 {
		return
	}
	a := &authView{Note: "Marked cells differ between members."}
	names := slices.Sorted(maps.Keys(roles))
	if len(names) > maxRoles {
		a.Note += fmt.Sprintf(" %d more roles are left out.", len(names)-maxRoles)
		names = names[:maxRoles]
	}
	for _, x := range names {
		a.Roles = append(a.Roles, text(x))
		a.Perms = append(a.Perms, permissions(members, x))
	}
	list := slices.Sorted(maps.Keys(users))
	if len(list) > maxUsers {
		a.Note += fmt.Sprintf(" %d more users are left out.", len(list)-maxUsers)
		list = list[:maxUsers]
	}
	for _, u := range list {
		row := userRow{Name: text(u)}
		for _, x := range names {
			row.Cells = append(row.Cells, granted(members, u, x))
		}
		a.Users = append(a.Users, row)
	}
	v.Auth = a
}

// granted says on which members a user has a role.
func granted(members []*evidence.Facts, user, role string) authCell {
	var on, not []string
	for _, m := range members {
		if slices.Contains(m.Auth.Users[user], role) {
			on = append(on, m.Name)
		} else {
			not = append(not, m.Name)
		}
	}
	switch {
	case len(on) == 0:
		return authCell{}
	case len(not) == 0:
		return authCell{Text: "✓"}
	}
	return authCell{Text: text("only on " + strings.Join(on, ", ")), Off: true}
}

func permissions(members []*evidence.Facts, role string) permRow {
	row := permRow{Name: text(role)}
	by := map[string][]string{}
	var order []string
	for _, m := range members {
		perms, ok := m.Auth.Roles[role]
		s := strings.Join(perms, "\n")
		if !ok {
			s = "the role does not exist"
		}
		if by[s] == nil {
			order = append(order, s)
		}
		by[s] = append(by[s], m.Name)
	}
	row.Off = len(order) > 1
	for _, s := range order {
		if row.Off {
			row.Lines = append(row.Lines, text(strings.Join(by[s], ", ")+":"))
		}
		for _, l := range strings.Split(s, "\n") {
			if l != "" {
				row.Lines = append(row.Lines, text(l))
			}
		}
	}
	return row
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

package evidence

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestPartedAt: what others committed otherwise was never applied; entries that they do not hold, or know nothing of,
// may have been.
func TestPartedAt(t *testing.T) {
	member := func(id dumplog.ID, commit uint64, terms ...dumplog.TermRange) *Member {
		m := &Member{MemberID: id, ClusterID: 1, Commit: commit}
		m.WAL.Log = &dumplog.Log{}
		for _, x := range terms {
			m.WAL.LastByTerm = append(m.WAL.LastByTerm, TermEnd(x))
		}
		m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = terms[0].First, terms[len(terms)-1].Last
		return m
	}
	terms := func(last7, last8 uint64) []dumplog.TermRange {
		return []dumplog.TermRange{{Term: 7, First: 1, Last: last7}, {Term: 8, First: last7 + 1, Last: last8}}
	}
	with := func(m *Member, change func(m *Member)) *Member {
		change(m)
		return m
	}
	fallen := member(1, 78, dumplog.TermRange{Term: 7, First: 1, Last: 83})
	for name, c := range map[string]struct {
		other *Member
		want  uint64
	}{
		"others went on":            {member(2, 86, terms(80, 86)...), 81},
		"from the next entry on":    {member(2, 86, terms(78, 86)...), 79},
		"they agree":                {member(2, 86, dumplog.TermRange{Term: 7, First: 1, Last: 86}), 0},
		"not known to be committed": {member(2, 80, terms(80, 86)...), 0},
		"their log begins later":    {member(2, 90, dumplog.TermRange{Term: 8, First: 85, Last: 90}), 0},
		"a copy of itself":          {member(1, 86, terms(80, 86)...), 0},
		"just at the end":           {member(2, 81, terms(80, 86)...), 81},
		"at the end of its log":     {member(2, 86, terms(82, 86)...), 83},
		"after the end of its log":  {member(2, 86, terms(83, 86)...), 0},
		"as far as it":              {member(2, 78, terms(70, 86)...), 0},
		"of another cluster": {with(member(2, 86, terms(80, 86)...), func(m *Member) { m.ClusterID = 2 }),
			0},
		"without a log": {with(member(2, 86, terms(80, 86)...), func(m *Member) { m.WAL.Log = nil }), 0},
	} {
		if got := partedAt(fallen, []*Member{fallen, c.other}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	early, late := member(2, 86, terms(80, 86)...), member(3, 86, terms(81, 86)...)
	for _, others := range [][]*Member{{early, late, fallen}, {late, early, fallen}} {
		if got := partedAt(fallen, others); got != 81 {
			t.Errorf("of two others the earlier entry: %d, want 81", got)
		}
	}
	without := with(member(1, 78, terms(80, 86)...), func(m *Member) { m.WAL.Log = nil })
	if got := partedAt(without, []*Member{early}); got != 0 {
		t.Errorf("without a log of its own: %d", got)
	}
}

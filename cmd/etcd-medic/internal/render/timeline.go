package render

import (
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// timelineSection writes the table of the timeline.
type timelineSection struct{ *page }

// write writes the events on one axis of raft indexes.
func (p timelineSection) write(moments []timeline.Moment) {
	if len(moments) == 0 {
		return
	}
	p.section("timeline")
	rows := [][]string{}
	for _, m := range moments {
		what := m.What
		for i := range m.Objects {
			what += "; " + m.Objects[i].String()
		}
		rows = append(rows, []string{termIndex(m.Term, m.Index), m.Kind, strings.Join(m.Members, ", "), what})
	}
	p.table("  ", []string{"entry", "what", "member", "detail"}, rows)
}

package compare

import (
	"fmt"
	"sort"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// timeline puts terms, starts, conf changes, compactions, alarms, snapshots, jumps of auth revisions and the first
// divergence of each member on one axis.
func (c *collected) timeline() []timeline.Moment {
	out := []timeline.Moment{}
	rp := c.in.Replay
	if rp == nil || rp.Survey == nil {
		return out
	}
	names, refused := c.names(), c.refused()
	for _, m := range rp.Survey.Marks {
		x := timeline.Moment{Term: m.Term, Index: m.Index, Kind: m.Kind, What: m.What, Members: []string{},
			Refused: m.Kind == "conf-change" && refused[m.Index]}
		if m.Member != 0 {
			x.Members = append(x.Members, nameOr(names, m.Member))
		}
		out = append(out, x)
	}
	for i, m := range c.in.Members {
		if m.HasWAL() {
			for _, s := range m.WAL.Summary.Snapshots {
				if s.Index > 0 {
					out = append(out, timeline.Moment{Term: s.Term, Index: s.Index, Kind: "snapshot",
						Members: []string{m.Label()}, What: "raft snapshot in the log"})
				}
			}
			if m.WAL.Summary.LastIndex > 0 {
				out = append(out, timeline.Moment{Term: m.WAL.Summary.LastTerm, Index: m.WAL.Summary.LastIndex,
					Kind:    "end",
					Members: []string{m.Label()}, What: fmt.Sprintf("the log ends, commit %d", m.Commit)})
			}
		}
		out = append(out, moments(m.Label(), rp.Members[i], i, rp.Events)...)
		out = append(out, c.logMoments(m)...)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Index < out[j].Index })
	return out
}

// refused are the indexes of the conf changes that every server refuses.
func (c *collected) refused() map[uint64]bool {
	out := map[uint64]bool{}
	for _, m := range c.in.Members {
		for i := range m.WAL.Conf {
			if x := &m.WAL.Conf[i]; x.Refused {
				out[x.Index] = true
			}
		}
	}
	return out
}

// keysOf are the keys that the entry of a divergence writes, nil for every other moment.
func (c *collected) keysOf(m *timeline.Moment) []string {
	if m.Kind != "divergence" {
		return nil
	}
	for _, e := range c.in.Replay.Events {
		if e.Index == m.Index && e.Term == m.Term {
			return e.Keys
		}
	}
	return nil
}

// moments are the jumps and the first divergence of one member.
func moments(label string, r *replay.MemberResult, pos int, events []*replay.Event) []timeline.Moment {
	var out []timeline.Moment
	for _, j := range r.Jumps {
		out = append(out, timeline.Moment{Index: j.Index, Kind: "auth-revision-jump", Members: []string{label},
			What: fmt.Sprintf("the auth revision rose by %d: auth entries %d..%d were applied a second time", j.Extra,
				j.From, j.To)})
	}
	for _, e := range events {
		for _, l := range e.Lacking {
			if l == pos {
				o := e.Outcomes[pos]
				return append(out, timeline.Moment{Term: e.Term, Index: e.Index, Kind: "divergence",
					Members: []string{label},
					What: fmt.Sprintf("first entry whose effect is missing: %s (%s)", e.What,
						strings.TrimSpace(fmt.Sprintf("%s %s", o.State, o.Reason)))})
			}
		}
	}
	return out
}

// names maps member IDs to labels, else to the names of the member lists.
func (c *collected) names() map[dumplog.ID]string {
	out := map[dumplog.ID]string{}
	for _, m := range c.in.Members {
		for id, n := range m.Membership.Names {
			out[id] = n
		}
	}
	for _, m := range c.in.Members {
		if m.MemberID != 0 {
			out[m.MemberID] = m.Label()
		}
	}
	return out
}

func nameOr(names map[dumplog.ID]string, id dumplog.ID) string {
	if n := names[id]; n != "" {
		return n
	}
	return id.String()
}

package compare

import (
	"fmt"
	"sort"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Moment is one line of the timeline: what happened at a raft index, on one axis for all members.
type Moment struct {
	Term  uint64 `json:"term,omitempty"`
	Index uint64 `json:"index"`
	// Kind is term, start, conf-change, compaction, alarm, auth, version, snapshot, auth-revision-jump, divergence or
	// end.
	Kind string `json:"kind"`
	// Members are those concerned; empty means the cluster.
	Members []string `json:"members"`
	What    string   `json:"what"`
	// Objects are those of Kubernetes that the entry of a divergence writes.
	Objects []check.Object `json:"objects,omitempty"`
	keys    []string
}

// timeline puts terms, starts, conf changes, compactions, alarms, snapshots, jumps of auth revisions and the first
// divergence of each member on one axis.
func (c *collected) timeline() []Moment {
	out := []Moment{}
	rp := c.in.Replay
	if rp == nil || rp.Survey == nil {
		return out
	}
	names := c.names()
	for _, m := range rp.Survey.Marks {
		x := Moment{Term: m.Term, Index: m.Index, Kind: m.Kind, What: m.What, Members: []string{}}
		if m.Member != 0 {
			x.Members = append(x.Members, nameOr(names, m.Member))
		}
		out = append(out, x)
	}
	for i, m := range c.in.Members {
		if m.HasWAL() {
			for _, s := range m.WAL.Summary.Snapshots {
				if s.Index > 0 {
					out = append(out, Moment{Term: s.Term, Index: s.Index, Kind: "snapshot",
						Members: []string{m.Label()}, What: "raft snapshot in the log"})
				}
			}
			if m.WAL.Summary.LastIndex > 0 {
				out = append(out, Moment{Term: m.WAL.Summary.LastTerm, Index: m.WAL.Summary.LastIndex, Kind: "end",
					Members: []string{m.Label()}, What: fmt.Sprintf("the log ends, commit %d", m.Commit)})
			}
		}
		out = append(out, moments(m.Label(), rp.Members[i], i, rp.Events)...)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Index < out[j].Index })
	return out
}

// moments are the jumps and the first divergence of one member.
func moments(label string, r *replay.MemberResult, pos int, events []*replay.Event) []Moment {
	var out []Moment
	for _, j := range r.Jumps {
		out = append(out, Moment{Index: j.Index, Kind: "auth-revision-jump", Members: []string{label},
			What: fmt.Sprintf("the auth revision rose by %d: auth entries %d..%d were applied a second time", j.Extra,
				j.From, j.To)})
	}
	for _, e := range events {
		for _, l := range e.Lacking {
			if l == pos {
				o := e.Outcomes[pos]
				return append(out, Moment{Term: e.Term, Index: e.Index, Kind: "divergence", Members: []string{label},
					What: fmt.Sprintf("first entry whose effect it lacks: %s (%s %s)", e.What, o.State, o.Reason),
					keys: e.Keys})
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

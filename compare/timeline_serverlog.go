package compare

import (
	"fmt"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// maxLogMoments bounds the lines of one server's log among the moments.
const maxLogMoments = 20

// logMoments are the problems that the log of the member's server names, the first line of each: at the entry that it
// names, or at the start of the process that wrote it.
func (c *collected) logMoments(m *evidence.Member) (out []timeline.Moment) {
	j := c.in.ServerLogs[m.Label()]
	if j == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range j.Events {
		e := &j.Events[i]
		if !e.Problem || seen[e.ID] || len(out) == maxLogMoments {
			continue
		}
		seen[e.ID] = true
		out = append(out, timeline.Moment{Term: e.Term, Index: c.indexOf(m, e), Kind: timeline.KindLog,
			Members: []string{m.Label()}, What: lineText(e)})
	}
	return out
}

// lineText names a line of a server's log by its meaning, number and time; explain has the rest.
func lineText(e *serverlog.Event) string {
	s := fmt.Sprintf("server log, line %d: %s", e.Line, e.ID)
	if !e.Time.IsZero() {
		s += " at " + e.Time.UTC().Format(time.RFC3339)
	}
	return s
}

// indexOf returns the entry that a line names, if a log holds it, else the last start of the member before the line.
func (c *collected) indexOf(m *evidence.Member, e *serverlog.Event) uint64 {
	rp := c.in.Replay
	if e.Index > 0 && e.Index <= rp.Last {
		return max(e.Index, rp.First)
	}
	index := rp.First
	for _, s := range rp.Survey.Starts[m.MemberID] {
		if !replay.StartTime(s.ID).After(e.Time) {
			index = max(index, s.Index)
		}
	}
	return index
}

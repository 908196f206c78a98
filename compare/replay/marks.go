package replay

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Mark is one event of the merged log that a timeline shows.
type Mark struct {
	Term, Index uint64
	// Kind is term, start, conf-change, compaction, alarm, auth or version.
	Kind string
	// What says it on one line.
	What string
	// Member is the member concerned, 0 when the whole cluster is.
	Member dumplog.ID
	// Corrupt is true where an alarm CORRUPT was raised.
	Corrupt bool
}

// maxMarks bounds the timeline of a hostile or very long log.
const maxMarks = 20000

// mark records the entry if a timeline shows it.
func (s *Survey) mark(it *item) {
	m := Mark{Term: it.entry.Term, Index: it.entry.Index}
	r := it.req
	switch {
	case r.Kind == dumplog.KindEmpty:
		m.Kind, m.What = "term", fmt.Sprintf("a leader of term %d begins", m.Term)
	case r.Publishes() != nil:
		id := requestID(r)
		m.Kind, m.Member = "start", r.Publishes().MemberID
		m.What = fmt.Sprintf("published after a start (process began %s)", StartTime(id).Format("2006-01-02T15:04:05Z"))
	case r.ConfChange != nil:
		m.Kind, m.Member, m.What = "conf-change", r.ConfChange.NodeID, s.describe(r)
	case r.Compaction != nil:
		m.Kind, m.What = "compaction", s.describe(r)
	case r.Alarm != nil && apply.ChangesAlarms(r.Alarm):
		m.Kind, m.Member, m.What = "alarm", r.Alarm.MemberID, s.describe(r)
		m.Corrupt = r.Alarm.Action == 1 && r.Alarm.Alarm == apply.AlarmCorrupt
	case r.Kind == dumplog.KindAuthEnable, r.Kind == dumplog.KindAuthDisable:
		m.Kind, m.What = "auth", s.describe(r)
	case r.ClusterVer != nil, r.Downgrade != nil, setsVersion(r.V2):
		m.Kind, m.What = "version", s.describe(r)
	default:
		return
	}
	if len(s.Marks) >= maxMarks {
		s.MarksLeftOut++
		return
	}
	s.Marks = append(s.Marks, m)
}

// setsVersion recognises the cluster version as proposers up to 3.5 write it.
func setsVersion(v *dumplog.V2Request) bool {
	if v == nil {
		return false
	}
	_, ok := v.ClusterVersion()
	return ok
}

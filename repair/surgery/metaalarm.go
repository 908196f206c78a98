package surgery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// AlarmRef names alarms: those of one member, of one kind (1 NOSPACE, 2 CORRUPT) or of every kind (0).
type AlarmRef struct {
	Member dumplog.ID
	Kind   int32
}

// ParseAlarm reads MEMBER-ID or MEMBER-ID:NOSPACE. Servers use member 0 if they do not know which member is wrong.
func ParseAlarm(s string) (AlarmRef, error) {
	id, kind, named := strings.Cut(s, ":")
	m, err := dumplog.ParseID(id)
	if err != nil {
		return AlarmRef{}, fmt.Errorf("%q is not a member ID", id)
	}
	a := AlarmRef{Member: m}
	switch {
	case !named:
	case strings.EqualFold(kind, "NOSPACE"):
		a.Kind = 1
	case strings.EqualFold(kind, "CORRUPT"):
		a.Kind = 2
	default:
		return a, fmt.Errorf("%q is not an alarm (want NOSPACE or CORRUPT)", kind)
	}
	return a, nil
}

// clearAlarms clears alarms. An alarm affects every applied entry, so a member that lacks an alarm of the others
// diverges.
func clearAlarms(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	var edits []datadir.Edit
	m := w.source()
	for _, a := range c.ClearAlarms {
		fits := func(x dumpdb.Alarm) bool {
			return dumplog.ID(x.MemberID) == a.Member && (a.Kind == 0 || x.Type == a.Kind)
		}
		if !slices.ContainsFunc(m.DB.Alarms, fits) {
			return nil, refusef("see etcd-medic dumpdb SOURCE alarm", "no such alarm of member %s", a.Member)
		}
		edits = append(edits, datadir.ClearAlarmOf(uint64(a.Member), a.Kind))
		w.did("the alarm of member %s is cleared", a.Member)
		w.givesUp("the alarm of member %s: writes that it refused are accepted again", a.Member)
		if err := w.alarmOthers(a, fits); err != nil {
			return nil, err
		}
	}
	return edits, nil
}

// alarmOthers requires that every other voter is given and does not have the alarm.
func (w *work) alarmOthers(a AlarmRef, fits func(dumpdb.Alarm) bool) error {
	m := w.source()
	clean := map[dumplog.ID]bool{m.MemberID: true}
	for _, p := range w.peers() {
		if !p.HasDB() {
			continue
		}
		if slices.ContainsFunc(p.DB.Alarms, fits) {
			return w.need(AcceptDivergence, "while the cluster runs: etcdctl alarm disarm; else clear it in the dirs "+
				"of all members", fmt.Sprintf("%s has the alarm of member %s too: the members would treat the same "+
				"entries differently", p.Label(), a.Member))
		}
		clean[p.MemberID] = true
	}
	voters := m.Membership.Voters
	if !m.Membership.RaftKnown {
		voters = m.Membership.Bucket
	}
	for _, id := range voters {
		if !clean[id] {
			return w.need(AcceptDivergence, "name the other members with --with; while the cluster runs: etcdctl "+
				"alarm disarm", fmt.Sprintf("member %s may have the alarm too: the members would treat the same "+
				"entries differently", id))
		}
	}
	return nil
}

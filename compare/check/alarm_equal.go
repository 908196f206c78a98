package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

var alarmsEqual = described(Check{
	ID:    M17,
	Needs: NeedDB,
	Run:   runAlarmsEqual,
})

func runAlarmsEqual(in *Input) Result {
	r := Result{Reason: "one source, and its log holds no entry about alarms"}
	if in.Diff != nil && len(in.Members) > 1 {
		r = in.stateEqual(ClassLatentDivergence, nil, "alarm")
	}
	if len(r.Findings) > 0 || in.Replay == nil || in.Replay.Survey == nil {
		return r
	}
	alarms := in.Replay.Survey.Alarms()
	slices.SortFunc(alarms, func(a, b replay.AlarmState) int { return cmp.Compare(a.Index, b.Index) })
	var fs []Finding
	checked := false
	for _, a := range alarms {
		f := Finding{Kind: KindAlarmAgainstLog, Severity: Error, Class: ClassLatentDivergence,
			At: At{Term: in.termAt(a.Index), Index: a.Index}}
		for _, m := range in.Members {
			if !m.HasDB() || a.Index > m.AppliedMin {
				continue
			}
			checked = true
			if e := alarmAgainst(m, a); e != nil {
				f.Members = append(f.Members, m.Label())
				f.Evidence = append(f.Evidence, *e)
			}
		}
		if len(f.Evidence) > 0 {
			f.Title = fmt.Sprintf("alarm %s of %s is not as the log left it", evidence.AlarmName(a.Type),
				in.MemberName(a.Member))
			f.Explanation = fmt.Sprintf("entry %d is the last about it; rows of bucket alarm were changed by other means", a.Index)
			fs = append(fs, in.cut(f))
		}
	}
	if checked && len(in.Members) == 1 {
		r = Result{}
	}
	if len(fs) > 0 || checked {
		return outcome(fs, r.Reason)
	}
	return r
}

// alarmAgainst compares the member's row with the last entry about the alarm, nil when they agree.
func alarmAgainst(m *evidence.Member, a replay.AlarmState) *Evidence {
	raised := slices.ContainsFunc(m.DB.Alarms,
		func(x dumpdb.Alarm) bool { return uint64(x.MemberID) == uint64(a.Member) && x.Type == a.Type })
	if raised == a.Raised {
		return nil
	}
	e := &Evidence{Member: m.Label(), File: m.DB.File, Bucket: "alarm", Key: Bytes(a.Member.String()),
		Field: evidence.AlarmName(a.Type), Observed: "absent",
		Expected: fmt.Sprintf("raised by entry %d", a.Index), Show: showLog(m, a.Index)}
	if raised {
		e.Observed, e.Expected = "raised", fmt.Sprintf("disarmed by entry %d", a.Index)
	}
	return e
}

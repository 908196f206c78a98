package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

var alarmsEqual = described(Check{
	ID:    M17,
	Needs: NeedDB,
	Run:   runAlarmsEqual,
})

func runAlarmsEqual(in *Input) Result {
	r := Result{Reason: "one source, and its log holds no entry about alarms"}
	if in.Diff != nil && len(in.Members) > 1 {
		r = in.contents().stateEqual(ClassLatentDivergence, nil, "alarm")
	}
	if len(r.Findings) > 0 || in.Replay == nil || in.Replay.Survey == nil {
		return r
	}
	alarms := in.Replay.Survey.Alarms()
	slices.SortFunc(alarms, func(a, b replay.AlarmState) int { return cmp.Compare(a.Index, b.Index) })
	wrong, checked := alarmsAgainst(in.Members, in.Replay, alarms)
	fs := placeFindings(wrong, func(f Finding) string { return fmt.Sprintf("%q", f.Members) },
		func(f Finding) Finding { return f }, indexRanges)
	for i := range fs {
		fs[i] = in.cut(fs[i])
	}
	switch {
	case len(in.Members) > 1:
	case checked:
		r = Result{}
	case len(alarms) > 0:
		r.Reason = "the logs do not hold all entries after those about alarms"
	}
	if len(fs) > 0 || checked {
		return outcome(fs, r.Reason)
	}
	return r
}

// alarmsAgainst compares the members' rows with what the log says last about each alarm; checked is true if any could
// be compared.
func alarmsAgainst(ss Sources, rp *replay.Result, alarms []replay.AlarmState) (wrong []Finding, checked bool) {
	type alarm struct {
		member uint64
		typ    int32
	}
	raised := make([]map[alarm]bool, len(ss))
	for i, m := range ss {
		if !m.HasDB() {
			continue
		}
		raised[i] = make(map[alarm]bool, len(m.DB.Alarms))
		for _, a := range m.DB.Alarms {
			raised[i][alarm{uint64(a.MemberID), a.Type}] = true
		}
	}
	for _, a := range alarms {
		f := Finding{Kind: KindAlarmAgainstLog, Severity: Error, Class: ClassLatentDivergence,
			At: At{Term: ss.logs().termAt(a.Index), Index: a.Index}}
		for i, m := range ss {
			if !m.HasDB() || a.Index > m.AppliedMin || !rp.Covers(a.Index, m.AppliedMin) {
				continue
			}
			checked = true
			if raised[i][alarm{uint64(a.Member), a.Type}] != a.Raised {
				f.Members = append(f.Members, m.Label())
				f.Evidence = append(f.Evidence, alarmAgainst(m, a))
			}
		}
		if len(f.Evidence) > 0 {
			f.Title = fmt.Sprintf("alarm %s of %s is not as the log left it", evidence.AlarmName(a.Type),
				ss.MemberName(a.Member))
			f.Explanation = fmt.Sprintf("entry %d is the last about it; rows of bucket alarm were changed by other "+
				"means", a.Index)
			wrong = append(wrong, f)
		}
	}
	return wrong, checked
}

// indexRanges says at which entries findings are.
func indexRanges(fs []Finding) string {
	indexes := make([][2]uint64, 0, len(fs))
	for _, f := range fs {
		indexes = append(indexes, [2]uint64{f.At.Index, f.At.Index})
	}
	return "of entries " + rangesText(indexes)
}

// alarmAgainst is the evidence of a member whose row differs from the last entry about the alarm.
func alarmAgainst(m *evidence.Member, a replay.AlarmState) Evidence {
	e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: "alarm", Key: Bytes(a.Member.String()),
		Field: evidence.AlarmName(a.Type), Observed: "absent",
		Expected: fmt.Sprintf("raised by entry %d", a.Index), Show: showLog(m, a.Index)}
	if !a.Raised {
		e.Observed, e.Expected = "raised", fmt.Sprintf("disarmed by entry %d", a.Index)
	}
	return e
}

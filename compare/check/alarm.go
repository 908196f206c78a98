package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var alarmMembers = described(Check{
	ID:    K08,
	Needs: NeedDB,
	Run:   runAlarmMembers,
})

func runAlarmMembers(in *Input) Result {
	var fs []Finding
	unknown := ""
	for _, m := range in.Members {
		if !m.HasDB() || len(m.DB.Alarms) == 0 {
			continue
		}
		known := configured(m)
		if len(known) == 0 {
			unknown = m.Label() + ": no member list to compare its alarms with"
			continue
		}
		f := Finding{Kind: KindAlarmOfNoMember, Severity: Warning, Members: []string{m.Label()}}
		show, members := showDB(m, "alarm"), make(map[dumplog.ID]bool, len(known))
		for _, id := range known {
			members[id] = true
		}
		for _, a := range m.DB.Alarms {
			id := dumplog.ID(a.MemberID)
			if id == 0 || members[id] {
				continue
			}
			if f.Facts.About = append(f.Facts.About, id); len(f.Facts.About) > max(maxPlaces, in.MaxRows) {
				f.More++
				continue
			}
			f.Title = fmt.Sprintf("%s: alarm %s is raised for %s, which is not a member", m.Label(),
				evidence.AlarmName(a.Type), id)
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(a.Page),
				Bucket: "alarm", Key: Bytes(id.String()), Field: evidence.AlarmName(a.Type),
				Observed: "raised for " + id.String(), Expected: "one of " + idList(known), Show: show})
			f.Remedy = []Remedy{{Text: "disarm it by its member ID, once no member is over quota or damaged",
				Command: shell.Format("etcdctl alarm disarm"), Risk: "disarms all alarms"}}
		}
		if len(f.Evidence) > 0 {
			f.Explanation = "the member was removed, or the database was restored, while the alarm was on; nothing " +
				"clears it by itself"
			if f.More > 0 {
				f.Title = fmt.Sprintf("%s: %d alarms are raised for IDs of no known member", m.Label(),
					len(f.Facts.About))
			}
			fs = append(fs, f)
		}
	}
	return outcome(fs, unknown)
}

// configured lists the members of the source's own configuration: raft's where it is known, else bucket members.
func configured(m *evidence.Member) []dumplog.ID {
	ms := &m.Membership
	if ms.RaftKnown && len(ms.Voters) > 0 {
		return append(slices.Clone(ms.Voters), ms.Learners...)
	}
	return ms.Bucket
}

// idList names the first members of a list, and how many more there are.
func idList(ids []dumplog.ID) string {
	var out []string
	for _, id := range ids[:min(len(ids), maxPlaces)] {
		out = append(out, id.String())
	}
	if more := len(ids) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

var corruptAlarmTrue = described(Check{
	ID:    K09,
	Needs: NeedDB,
	Run:   runCorruptAlarmTrue,
})

func runCorruptAlarmTrue(in *Input) Result {
	blamed, rows := corruptAlarms(in.Members)
	if len(rows) == 0 {
		return Result{Outcome: Holds}
	}
	wrong, why := membersAgainstLog(in)
	if why != "" {
		return Result{Reason: why}
	}
	f := Finding{Kind: KindCorruptAlarmUnfounded, Severity: Warning, Evidence: rows, At: alarmIndex(in.Replay)}
	for _, e := range rows {
		f.Members = appendNew(f.Members, e.Member)
	}
	switch {
	case len(wrong) == 0:
		f.Title = "a CORRUPT alarm is raised, and the keys of all members are equal"
		f.Explanation = "no member contradicts the log or the others at the common index: the alarm was false, or " +
			"what it found is overwritten since"
	case len(blamed) > 0 && !slices.ContainsFunc(wrong, func(m string) bool { return blamed[m] }):
		f.Kind = KindCorruptAlarmNamesOther
		f.Title = fmt.Sprintf("the CORRUPT alarm names %s, the comparison %s", firstNames(blamed),
			strings.Join(wrong, ", "))
		f.Explanation = "the alarm names the member whose hash differed from the leader's, and the leader itself is " +
			"the wrong one"
	default:
		return Result{Outcome: Holds}
	}
	return Result{Outcome: Violated, Findings: []Finding{in.cut(f)}}
}

// firstNames joins the first of many names in order, and says how many more there are.
func firstNames(names map[string]bool) string {
	sorted := sortedGroup(names)
	s := strings.Join(sorted[:min(len(sorted), maxPlaces)], ", ")
	if more := len(sorted) - maxPlaces; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// corruptAlarms returns the members that CORRUPT alarms name, and the rows.
func corruptAlarms(ss Sources) (blamed map[string]bool, rows []Evidence) {
	blamed = map[string]bool{}
	for _, m := range ss {
		if !m.HasDB() {
			continue
		}
		show := showDB(m, "alarm")
		for _, a := range m.DB.Alarms {
			if a.Type != alarmCorrupt {
				continue
			}
			name := ss.MemberName(a.MemberID)
			if a.MemberID == 0 {
				name = "no member"
			} else {
				blamed[name] = true
			}
			rows = append(rows, Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(a.Page), Bucket: "alarm",
				Key: Bytes(a.MemberID.String()), Field: "CORRUPT",
				Observed: "names " + name, Expected: "the member whose content is wrong, or no alarm", Show: show})
		}
	}
	return blamed, rows
}

const alarmCorrupt = 2

// membersAgainstLog are those whose database contradicts the log or lacks what the log requires. If that cannot be
// decided, the text says why.
func membersAgainstLog(in *Input) (wrong []string, why string) {
	if in.Diff == nil || in.Replay == nil {
		return nil, "needs the logs and databases of two members or more"
	}
	keys := in.Diff.Find("key")
	if keys == nil || keys.Equal == release.Unknown {
		return nil, "the keys of the members could not be compared"
	}
	for i, r := range in.Replay.Members {
		if len(in.Members) > 0 && in.Diff.TookPart("key", i) && r.Checked &&
			(r.Lacks+r.Surplus > 0 || r.FirstBad() != nil || len(r.Extra) > 0) {
			wrong = append(wrong, in.Members[i].Label())
		}
	}
	if r := in.Diff.Records; r != nil && r.Equal.Excluded() {
		// the hash of a server covers superseded records too
		for _, m := range in.contents().recordsFinding(r).Members {
			wrong = appendNew(wrong, m)
		}
	}
	if keys.Equal.Excluded() && len(wrong) == 0 {
		return nil, "the keys differ, and the log does not tell which member is wrong"
	}
	return wrong, ""
}

// alarmIndex is the last entry about alarms in the log.
func alarmIndex(rp *replay.Result) At {
	var at At
	if rp == nil || rp.Survey == nil {
		return at
	}
	for _, k := range rp.Survey.Marks {
		if k.Kind == "alarm" {
			at = At{Term: k.Term, Index: k.Index}
		}
	}
	return at
}

package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// shiftedLogs makes findings of logs whose entries are renumbered.
type shiftedLogs struct{ *Input }

func (in *Input) shiftedLogs() shiftedLogs { return shiftedLogs{in} }

// finding is about logs in which entries are missing, or were added, and the later ones renumbered.
func (in shiftedLogs) finding(s *replay.Shift) Finding {
	names := in.Members.labelsOf(s.Short)
	what := fmt.Sprintf("entry %d is", s.Index)
	if s.Missing > 1 {
		what = fmt.Sprintf("entries %d..%d are", s.Index, s.Index+uint64(s.Missing)-1)
	}
	f := Finding{Kind: KindEntriesRenumbered, Severity: Critical, Class: ClassWALDamage, Members: names,
		At: At{Term: in.Members.logs().termAt(s.Index), Index: s.Index},
		Title: fmt.Sprintf("%s: %s missing in the log, and the later ones are renumbered", strings.Join(names, ", "),
			what),
		Explanation: fmt.Sprintf("what follows is the same in the logs of %s, under indexes higher by %d. A leader "+
			"gives an entry its index once and no member changes it. "+
			"The CRC chain holds, so the log was rewritten. It is not used from there on",
			strings.Join(in.Members.labelsOf(in.wholeOf(s)), ", "), s.Missing)}
	switch {
	case s.Added:
		in.makeAdded(s, &f)
		return in.cut(f)
	case s.Proven:
		f.Explanation += ". The log ends before what the member has committed or applied"
	case s.Ahead:
		f.Explanation += ". Its HardStates commit more than it holds before them"
	case s.Fitting:
		f.Explanation += ". The databases agree with the other log"
	}
	in.addEvidence(s.Short, s.Instead, s.What, s, &f)
	in.addEvidence(s.Long, s.What, s.What, s, &f)
	f.Evidence[0].Field = fieldAltered
	return in.cut(f)
}

// wholeOf are the members with the long logs, without those whose logs are renumbered elsewhere.
func (in shiftedLogs) wholeOf(s *replay.Shift) []int {
	return slices.DeleteFunc(slices.Clone(s.Long), func(i int) bool {
		return slices.ContainsFunc(in.Replay.Shifts, func(o *replay.Shift) bool {
			return o != s && slices.Contains(o.Altered(), i)
		})
	})
}

// makeAdded makes the finding one about logs to which entries were added.
func (in shiftedLogs) makeAdded(s *replay.Shift, f *Finding) {
	ss := in.Members
	f.Members = ss.labelsOf(s.Long)
	what := fmt.Sprintf("entry %d was", s.Index)
	if s.Missing > 1 {
		what = fmt.Sprintf("entries %d..%d were", s.Index, s.Index+uint64(s.Missing)-1)
	}
	f.Title = fmt.Sprintf("%s: %s added to the log, and the later ones are renumbered", strings.Join(f.Members, ", "),
		what)
	why := "most logs do not hold it"
	if s.Fitting {
		why = "the databases agree with the other log"
	}
	if s.Repeated {
		why = "the same request is in the log before it, and a request has one entry"
	}
	f.Explanation = fmt.Sprintf("what follows is the same in the logs of %s, under indexes lower by %d; %s. "+
		"The CRC chain holds, so the log was rewritten. It is not used from there on",
		strings.Join(ss.labelsOf(s.Short), ", "),
		s.Missing, why)
	in.addEvidence(s.Long, s.What, s.Instead, s, f)
	in.addEvidence(s.Short, s.Instead, s.Instead, s, f)
	f.Evidence[0].Field = fieldAltered
}

// repeated is the finding about a request that a log holds twice, where no other log shows what it should hold.
func (in shiftedLogs) repeated(m *evidence.Member) []Finding {
	if in.Replay == nil || len(in.Replay.Shifts) != 1 || len(in.Replay.Shifts[0].Short) > 0 {
		return nil
	}
	s := in.Replay.Shifts[0]
	at := slices.IndexFunc(s.Long, func(i int) bool { return in.Members[i] == m })
	if at < 0 {
		return nil
	}
	what := fmt.Sprintf("entry %d was", s.Index)
	if s.Missing > 1 {
		what = fmt.Sprintf("entries %d..%d were", s.Index, s.Index+uint64(s.Missing)-1)
	}
	f := Finding{Kind: KindRequestRepeated, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Term: m.WAL.TermAt(s.Index), Index: s.Index},
		Title: fmt.Sprintf("%s: %s added to the log, and the later ones are renumbered", m.Label(), what),
		Explanation: "the same request, with the same ID, is in the log before it, and a request has one entry. The " +
			"CRC chain holds, so the log was rewritten. It is not used from there on"}
	if m.WAL.TermAt(s.Index) > 0 {
		f.Evidence = append(f.Evidence, in.entryEvidence(s.Long[at], s.Index, s.What, s.Instead))
	}
	return []Finding{f}
}

func (in shiftedLogs) addEvidence(members []int, observed, expected string, s *replay.Shift, f *Finding) {
	for _, i := range members {
		m := in.Members[i]
		if m.WAL.TermAt(s.Index) == 0 {
			continue // purged there
		}
		f.Evidence = append(f.Evidence, in.entryEvidence(i, s.Index, observed, expected))
	}
}

// renumbered reports whether the member's log numbers an entry wrongly because entries before it are missing or were
// added.
func (in shiftedLogs) renumbered(m *evidence.Member, index uint64) bool {
	return in.Replay != nil && slices.ContainsFunc(in.Replay.Shifts, func(s *replay.Shift) bool {
		return index >= s.Index && slices.ContainsFunc(s.Altered(), func(i int) bool { return in.Members[i] == m })
	})
}

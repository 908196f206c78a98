package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// shiftFinding is about logs in which entries are missing and the later ones renumbered.
func (in *Input) shiftFinding(s *replay.Shift) Finding {
	names := in.labelsOf(s.Short)
	what := fmt.Sprintf("entry %d is", s.Index)
	if s.Missing > 1 {
		what = fmt.Sprintf("entries %d..%d are", s.Index, s.Index+uint64(s.Missing)-1)
	}
	f := Finding{Kind: KindEntriesRenumbered, Severity: Critical, Class: ClassWALDamage, Members: names,
		At: At{Term: in.termAt(s.Index), Index: s.Index},
		Title: fmt.Sprintf("%s: %s missing in the log, and the later ones are renumbered", strings.Join(names, ", "),
			what),
		Explanation: fmt.Sprintf("what follows is the same in the logs of %s, under indexes higher by %d. A leader "+
			"gives an entry its index once and no member changes it. "+
			"The CRC chain holds, so the log was rewritten. It is not used from there on",
			strings.Join(in.labelsOf(s.Long), ", "), s.Missing)}
	if s.Proven {
		f.Explanation += ". The log ends before what the member has committed or applied"
	}
	for _, i := range s.Short {
		m := in.Members[i]
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: fmt.Sprintf("entry %d", s.Index),
			Observed: s.Instead, Expected: s.What, Show: showLog(m, s.Index)})
	}
	for _, i := range s.Long {
		m := in.Members[i]
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Field: fmt.Sprintf("entry %d", s.Index),
			Observed: s.What, Expected: s.What, Show: showLog(m, s.Index)})
	}
	f.Evidence[0].Field = fieldAltered
	return in.cut(f)
}

// renumbered reports whether the member's log numbers an entry wrongly because entries before it are missing.
func (in *Input) renumbered(m *evidence.Member, index uint64) bool {
	if in.Replay == nil || in.Replay.Shift == nil || index < in.Replay.Shift.Index {
		return false
	}
	return slices.ContainsFunc(in.Replay.Shift.Short, func(i int) bool { return in.Members[i] == m })
}

package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/shell"
)

var serverLogsFit = described(Check{
	ID:       G01,
	OnDemand: true,
	Run:      runServerLogs,
})

func runServerLogs(in *Input) Result {
	if len(in.ServerLogs) == 0 {
		return Result{Reason: "no server log was given (--server-log)"}
	}
	var fs []Finding
	for _, m := range in.Members {
		j := in.ServerLogs[m.Label()]
		if j == nil {
			continue
		}
		if f := otherMembersLog(m, j); f != nil {
			fs = append(fs, *f)
			continue
		}
		for _, f := range []*Finding{wentBack(m, j), endsBefore(m, j), problemLines(m, j)} {
			if f != nil {
				fs = append(fs, in.cut(*f))
			}
		}
	}
	return outcome(fs, "")
}

// otherMembersLog returns a finding if only servers with other member IDs wrote the log.
func otherMembersLog(m *evidence.Member, j *serverlog.Journal) *Finding {
	if m.MemberID == 0 || len(j.Members) == 0 || slices.Contains(j.Members, m.MemberID.String()) {
		return nil
	}
	return &Finding{Kind: KindServerLogOfOther, Severity: Warning, Members: []string{m.Label()},
		Title: fmt.Sprintf("the server log given for %s was written by member %s", m.Label(), j.Members[0]),
		Explanation: "nothing was concluded from it: give the log of the server that wrote these files, or name the " +
			"right source",
		Evidence: []Evidence{{Member: m.Label(), Field: "member ID", Observed: j.Members[0],
			Expected: m.MemberID.String()}}}
}

// wentBack returns a finding for a restart at a commit index below a raft snapshot that the member had saved. Saving
// one syncs everything before it to disk.
func wentBack(m *evidence.Member, j *serverlog.Journal) *Finding {
	f := Finding{Kind: KindServerLogWentBack, Severity: Warning, Members: []string{m.Label()}}
	var saved *serverlog.Event
	for i := range j.Events {
		e := &j.Events[i]
		switch e.ID {
		case serverlog.EventStart:
			saved = nil // a new, empty data dir
		case serverlog.EventSnapshot:
			if saved == nil || e.Index > saved.Index {
				saved = e
			}
		case serverlog.EventRestart:
			if saved != nil && e.Index > 0 && e.Index < saved.Index && len(j.Members) == 1 {
				f.add(Evidence{Member: m.Label(), Field: fmt.Sprintf("line %d of its server's log, %s", e.Line,
					stamp(e.Time)), Observed: fmt.Sprintf("restarts at commit index %d", e.Index),
					Expected: fmt.Sprintf("%d or more: the raft snapshot that line %d saved", saved.Index, saved.Line)},
					0, e.Index)
				saved = nil
			}
		}
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	f.Title = fmt.Sprintf("the data dir of %s went back in time at a restart, by its server's log", m.Label())
	f.Explanation = "an older copy was put in place, or the disk lost writes that it had confirmed; entries that the " +
		"member had acknowledged may be gone, and its vote may have been given twice"
	return &f
}

// endsBefore returns a finding if the files end before an entry that they once held according to the log.
func endsBefore(m *evidence.Member, j *serverlog.Journal) *Finding {
	last := max(m.LastIndex(), m.AppliedMax, m.Commit)
	var high *serverlog.Event
	for i := range j.Events {
		e := &j.Events[i]
		if (e.ID == serverlog.EventSnapshot || e.ID == serverlog.EventRestart || e.ID == serverlog.EventReceived) &&
			(high == nil || e.Index > high.Index) {
			high = e
		}
	}
	if high == nil || high.Index <= last {
		return nil
	}
	return &Finding{Kind: KindServerLogGoesFurther, Severity: Info, Members: []string{m.Label()}, At: At{Index: last},
		Title: fmt.Sprintf("the files of %s end at entry %d, its server's log names entry %d", m.Label(), last,
			high.Index),
		Explanation: "the files were copied before the line was written, or the member has lost the end of its log " +
			"since",
		Evidence: []Evidence{{Member: m.Label(), Field: fmt.Sprintf("line %d of its server's log, %s", high.Line,
			stamp(high.Time)), Observed: fmt.Sprintf("%s at entry %d", high.ID, high.Index),
			Expected: fmt.Sprintf("at most %d, the last entry of the files", last)}}}
}

// problemLines lists the known error lines and panics.
func problemLines(m *evidence.Member, j *serverlog.Journal) *Finding {
	f := Finding{Kind: KindServerLogErrors, Severity: Info, Members: []string{m.Label()}}
	for _, e := range j.Events {
		if e.Problem {
			f.Evidence = append(f.Evidence, Evidence{Member: m.Label(),
				Field: fmt.Sprintf("line %d of its server's log, %s", e.Line, stamp(e.Time)), Observed: e.ID,
				Expected: fmt.Sprintf("none; checks that show it: %v", e.Checks),
				Show:     shell.Format("etcd-medic explain {}", e.ID)})
		}
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	f.Title = fmt.Sprintf("the server of %s wrote %d known error lines", m.Label(), len(f.Evidence))
	f.Explanation = "what they mean, which state on disk leads to them and what to do: etcd-medic explain ID"
	return &f
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "without a time"
	}
	return t.Format(time.RFC3339)
}

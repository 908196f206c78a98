package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// logChecks are the checks that compare a database with the log up to its consistent index.
var logChecks = []check.ID{check.K03, check.C03, check.D05}

// replayLogs replays the logs of the sources on the backup, unless the records differ already. Both are opened again as
// one set: how far a backup of 3.4 or older has applied the log shows only next to the log. A backup of another cluster
// or log, and one beyond the end of the log, contradict nothing.
func (a *Against) replayLogs(ctx context.Context, m *evidence.Member, sources []*evidence.Member, o Options) error {
	logs := slices.ContainsFunc(sources, func(s *evidence.Member) bool { return s.HasLog() })
	if !logs || evidence.IsEndpoint(m.Source.Where) || slices.ContainsFunc(a.Compared, func(c Compared) bool {
		return c.apart || c.SameHistory == check.Violated
	}) {
		return nil
	}
	d := o.Options
	d.Backup, d.Look, d.Study, d.Confirm, d.NoDigests, d.ServerLogs = false, nil, nil, nil, true, nil
	specs := append([]evidence.Spec{{Name: m.Label(), Where: m.Source.Where, Backup: true}}, o.Against...)
	r, err := compare.Diagnose(ctx, specs, d)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.unreplayed = "the logs could not be replayed on the backup: " + err.Error()
		return nil
	}
	for _, src := range r.Sources {
		if src.Error != "" {
			a.unreplayed = fmt.Sprintf("the logs could not be replayed on the backup: %s: %s", src.Name, src.Error)
			return nil
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if slices.Contains(logChecks, f.Check) && f.Severity.Rank() >= check.Error.Rank() && len(f.Members) == 1 &&
			f.Members[0] == r.Sources[0].Name {
			a.contradictions = append(a.contradictions, logFinding(m, sources, f))
		}
	}
	return nil
}

// logFinding returns the finding for a backup that contradicts the log of the sources.
func logFinding(m *evidence.Member, sources []*evidence.Member, f *check.Finding) check.Finding {
	names := []string{}
	for _, s := range sources {
		if s.HasLog() {
			names = append(names, s.Label())
		}
	}
	title := f.Title
	title = strings.Replace(strings.TrimPrefix(title, m.Label()+": "), m.Label()+"'s ", "its ", 1)
	out := check.Finding{Kind: check.KindBackupAgainstLog, Severity: check.Error, Class: check.ClassDataDivergence,
		Members: append([]string{m.Label()}, names...), At: f.At,
		Title: fmt.Sprintf("%s contradicts the log of %s: %s", m.Label(), strings.Join(names, ", "), title),
		Explanation: fmt.Sprintf("the log has the entries up to the consistent index of the backup, and the backup "+
			"does not hold what they did: it was altered, or the member it was taken from had diverged. Check %s "+
			"says: %s", f.Check, f.Explanation),
		Evidence: f.Evidence}
	if f.Check == check.C03 { // a backup rebuilt from deltas keeps the index of the full one
		out.Severity, out.Class = check.Warning, ""
		out.Explanation = "the consistent index is too low for the content: the backup was rebuilt from delta " +
			"snapshots, or its index was altered. A restore replaces the index; start no server on the file itself"
	}
	return out
}

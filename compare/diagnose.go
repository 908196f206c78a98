// Package compare runs checks on the facts of several members and sorts their findings. It names the first break, the
// cause and the best member, and returns one Report.
//
// Data moves one way: sources, facts, replay and content comparison, checks, causes, ranking, report. Checks judge,
// renderers (package render of the command) only show.
package compare

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
	"github.com/etcd-medic/etcd-medic/internal/progress"
)

// Options tune a run.
type Options struct {
	// Version is the tool's version, for the report.
	Version string
	// Values puts the values of keys into the report; without it the report has their length and digest.
	Values bool
	// MaxRows bounds the evidence rows per finding and the diff rows per bucket; 0 means 50.
	MaxRows int
	// Places is how many differing keys of a comparison can be listed later; see diff.Options.
	Places int
	// Backup treats a source that is a file as a backup, whatever it looks like. It is for one source: hashes that only
	// a comparison needs are not computed, and the class of the verdict is one of a backup.
	Backup bool
	// NoDigests leaves out the sha256 of the sources, which is a third of the work, when no output shows it.
	NoDigests bool
	// Look, if set, gets the one source and its report before the source is closed, and may add to the report.
	Look func(ctx context.Context, m *evidence.Member, r *Report) error
	// ServerLogs are the logs of the servers, by the name of the source.
	ServerLogs map[string]*serverlog.Journal
	// Study, if set, gets everything the report was made of before the sources are closed, for documents that show more
	// of it.
	Study func(ctx context.Context, in *check.Input, r *Report) error
	// Confirm, if set, asks a real server for a second opinion about all sources; see Confirmation.
	Confirm Confirmer
	// Progress, if set, is called with the name of each part of the work when it begins.
	Progress func(what string)
	// Access is how sources that are endpoints are reached.
	Access evidence.Access
	// Keep, if set, is the label of the member that will be kept whatever its rank: the losses in the report are those
	// of keeping it.
	Keep string
	// WrongRecords bounds the listed records of the kept member that are proven wrong; 0 means MaxWrongRecords.
	WrongRecords int
	// ReplayBytes bounds the memory that the keys of a replay take; 0 means memory.Replay.
	ReplayBytes int64
}

const defaultMaxRows = 50

func (o *Options) fill() {
	if o.MaxRows == 0 {
		o.MaxRows = defaultMaxRows
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// Diagnose reads all sources and returns the report. The error is non-nil only when no source could be used, or the
// context ended; damage and contradictions are in the report.
func Diagnose(ctx context.Context, specs []evidence.Spec, o Options) (*Report, error) {
	o.fill()
	for i := range specs {
		specs[i].Backup = specs[i].Backup || o.Backup
	}
	set, err := evidence.Open(ctx, specs, evidence.Options{Hash: !o.NoDigests, List: true, HashLater: true, Deep: true,
		NoHashes: o.Backup, Progress: o.Progress, Access: o.Access})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	c := &collected{set: set, o: o, single: len(set.Members) == 1 && len(set.Failed) == 0}
	if err := c.gather(ctx); err != nil {
		return nil, err
	}
	if err := set.Digests(); err != nil {
		return nil, err
	}
	r := c.report()
	r.InputsUnchanged = true // unless a source is found to have changed, here or by Look
	if err := ctx.Err(); err != nil {
		return nil, err // checks that were ended say nothing
	}
	if o.Look != nil && len(set.Members) == 1 {
		if err := o.Look(ctx, set.Members[0], r); err != nil {
			return nil, err
		}
	}
	if err := c.confirm(ctx, r); err != nil {
		return nil, err
	}
	if o.Study != nil {
		if err := o.Study(ctx, c.in, r); err != nil {
			return nil, err
		}
	}
	if err := set.Unchanged(ctx); err != nil {
		r.InputsUnchanged = false
		r.noteChanged(err)
	}
	return r, nil
}

// Inspect is Diagnose for one source: facts and the checks that need no other member; Best is nil.
func Inspect(ctx context.Context, spec evidence.Spec, o Options) (*Report, error) {
	r, err := Diagnose(ctx, []evidence.Spec{spec}, o)
	if r != nil {
		r.Best = nil
	}
	return r, err
}

// collected is what one run has gathered before it judges.
type collected struct {
	set    *evidence.Set
	o      Options
	single bool
	in     *check.Input
	// mixed is true when sources belong to different clusters: replay and comparison then make no sense.
	mixed bool
}

func (c *collected) gather(ctx context.Context) error {
	members := c.set.Members
	c.in = &check.Input{Ctx: ctx, Members: members, MaxRows: c.o.MaxRows, Single: c.single, ServerLogs: c.o.ServerLogs}
	for name := range c.o.ServerLogs {
		if !slices.ContainsFunc(members, func(m *evidence.Member) bool { return m.Label() == name }) {
			return fmt.Errorf("server log of %s: no source that could be read has this name", name)
		}
	}
	if err := c.setEarlierApart(ctx); err != nil {
		return err
	}
	members = c.in.Members
	c.mixed = clusters(members) > 1 || slices.ContainsFunc(members,
		func(m *evidence.Member) bool { return evidence.OfAnotherCluster(members, m) })
	if c.mixed {
		return nil
	}
	if err := c.replay(ctx); err != nil {
		return err
	}
	if members = c.in.Members; len(members) < 2 {
		return nil
	}
	c.o.Progress("comparing buckets")
	var err error
	c.in.Diff, err = diff.Run(ctx, members, c.in.Replay, diff.Options{MaxRows: c.o.MaxRows, Places: c.o.Places,
		Values: c.o.Values})
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	return nil
}

// replay replays the log on all members that remain when backups of another log are set apart.
func (c *collected) replay(ctx context.Context) error {
	c.o.Progress("replaying the log")
	for {
		counting, work := progress.Begin(ctx, "replaying the log", 0)
		var err error
		c.in.Replay, err = replay.RunWithPlausibleIndex(counting, c.in.Members,
			replay.Options{MaxBytes: c.o.ReplayBytes})
		work.End()
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		if apart, err := c.setUnwrittenApart(ctx); err != nil || !apart {
			return err
		}
	}
}

func clusters(members []*evidence.Member) int {
	ids := map[uint64]bool{}
	for _, m := range members {
		if m.ClusterID != 0 {
			ids[uint64(m.ClusterID)] = true
		}
	}
	return len(ids)
}

// report judges and assembles.
func (c *collected) report() *Report {
	r := &Report{SchemaVersion: SchemaVersion, Tool: Tool{Name: "etcd-medic", Version: c.o.Version}, Causes: []Cause{},
		Members: []evidence.Facts{}, Findings: []check.Finding{}, Checks: []CheckOutcome{}, Next: []Next{}}
	r.sources(c.set, c.o)
	for i, m := range c.in.Members {
		f := m.Facts()
		if f.WAL != nil && c.in.Replay != nil {
			f.WAL.AddDamage(c.in.Replay.UndecodableDamage(i))
		}
		r.Members = append(r.Members, f)
	}
	byCheck := c.runChecks(r)
	c.matchCauses(r, byCheck)
	a := verdict.Judge(c.verdictInput(r))
	r.Verdict, r.Causes, r.Best, r.Next = a.Verdict, a.Causes, a.Best, a.Next
	c.backup(r)
	r.Timeline = c.timeline()
	c.nameObjects(r)
	verdict.SortFindings(r.Findings)
	return r
}

// verdictInput is what the verdict is made of.
func (c *collected) verdictInput(r *Report) *verdict.Input {
	in := &verdict.Input{Input: c.in, Findings: r.Findings, Checks: r.Checks, Causes: r.Causes, Facts: r.Members,
		Mixed: c.mixed, Backup: c.isBackup(), Keep: c.o.Keep,
		WrongRecords: c.o.WrongRecords}
	for _, s := range r.Sources {
		if s.Error != "" {
			in.Unread = append(in.Unread, verdict.Unread{Name: s.Name, Error: s.Error})
		}
	}
	return in
}

func (r *Report) sources(set *evidence.Set, o Options) {
	for _, m := range set.Members {
		s := Source{Name: m.Label(), Kind: m.Source.Kind, Where: set.Argument(m.Source), InUse: m.Source.InUse}
		if man := m.Source.Manifest; man != nil {
			s.Files, s.Bytes = len(man.Files), man.Bytes
			if !o.NoDigests {
				s.SHA256 = man.Digest()
			}
		}
		r.Sources = append(r.Sources, s)
	}
	for _, f := range set.Failed {
		name := f.Spec.Name
		if name == "" {
			name = f.Spec.Where
		}
		r.Sources = append(r.Sources, Source{Name: name, Error: f.Err.Error()})
	}
}

// runChecks runs the list and numbers the findings.
func (c *collected) runChecks(r *Report) map[check.ID][]check.Finding {
	byCheck := map[check.ID][]check.Finding{}
	for _, ck := range check.All() {
		if ck.OnDemand && (ck.ID != check.G01 || len(c.o.ServerLogs) == 0) || c.in.Context().Err() != nil {
			continue
		}
		out := CheckOutcome{ID: ck.ID, Title: ck.Title}
		res := c.withEarlier(&ck, c.run(&ck))
		out.Outcome, out.Reason = res.Outcome, res.Reason
		if out.Outcome == "" {
			out.Outcome = check.NotChecked
		}
		for i, f := range check.Grouped(res.Findings) {
			f.Check, f.ID = ck.ID, fmt.Sprintf("%s-%d", ck.ID, i+1)
			c.in.Members.Reachable(&f)
			byCheck[ck.ID] = append(byCheck[ck.ID], f)
			r.Findings = append(r.Findings, f)
		}
		r.Checks = append(r.Checks, out)
	}
	return byCheck
}

// run runs a check, or says why the sources do not suffice for it.
func (c *collected) run(ck *check.Check) check.Result {
	if reason, ok := ck.Applies(c.in); !ok {
		return check.Result{Outcome: check.NotChecked, Reason: reason}
	}
	if c.mixed && ck.Needs&(check.NeedReplay|check.NeedTwo) != 0 && ck.ID != check.M01 && ck.ID != check.X01 {
		return check.Result{Outcome: check.NotChecked, Reason: "the sources belong to different clusters"}
	}
	return ck.Run(c.in)
}

func (c *collected) matchCauses(r *Report, byCheck map[check.ID][]check.Finding) {
	in := &cause.Input{Input: c.in, Findings: byCheck}
	for _, k := range cause.All() {
		if in.Context().Err() != nil {
			return
		}
		m := k.Match(in)
		if m == nil {
			continue
		}
		r.Causes = append(r.Causes, Cause{ID: k.ID, Title: k.Title, Certainty: m.Certainty, Members: m.Members,
			Because:   m.Because,
			RefutedBy: m.RefutedBy, Affected: orNone(k.Affected), FixedIn: orNone(k.FixedIn), Refs: orNone(k.Refs),
			Recovery: k.Recovery, Loss: k.Loss, Secondary: m.Secondary})
	}
	sort.SliceStable(r.Causes, func(i, j int) bool { return !r.Causes[i].Secondary && r.Causes[j].Secondary })
}

func orNone[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// noteChanged turns a source that changed under the reader into a finding: nothing else in the report can be trusted
// then.
func (r *Report) noteChanged(err error) {
	r.Findings = append([]check.Finding{{Kind: check.KindSourceChanged, ID: "X00-1", Check: check.X00,
		Severity: check.Critical, Members: []string{},
		Title:       "a source changed while it was read",
		Explanation: r.whoWrites(err), Evidence: []check.Evidence{{Field: "size or modification time",
			Observed: "changed", Expected: "a copy that no process writes to"}}}}, r.Findings...)
	r.Verdict = Verdict{Class: check.ClassTornCopy, Health: check.Unhealthy,
		Summary: "a source changed while it was read; copy " +
			"the stopped member's data dir and run again"}
}

// whoWrites is what changed, and who had the files in use.
func (r *Report) whoWrites(err error) string {
	text := err.Error()
	for _, s := range r.Sources {
		if s.InUse != "" {
			text += fmt.Sprintf("; %s: %s", s.Name, s.InUse)
		}
	}
	return text
}

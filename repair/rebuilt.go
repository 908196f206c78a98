package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Rebuilt is a database that was made in scratch when the plan was made, from a backup and the logs of the members. It
// holds what is proven committed, where no data dir is usable.
type Rebuilt struct {
	// Base is the backup that the logs lead on from, "" where they reach back to the first entry; Logs are the members
	// whose logs were used.
	Base string   `json:"base,omitempty"`
	Logs []string `json:"logs"`
	// Index and Term are the last entry that was executed, Keys counts the keys, Bytes is the size of the file.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	Keys  int64  `json:"keys"`
	Bytes int64  `json:"bytes"`
	// Lost are committed entries that no log holds, with all that follows them; nil when there are none.
	Lost *boot.Range `json:"lost,omitempty"`
	// Promise is what the database holds; rehearsal and application prove the same of theirs.
	Promise *Promise `json:"promise"`
	// made are the facts of the database.
	made *evidence.Facts
}

// tryRebuild makes the database where a restore would be planned else: no data dir is usable, and none can be mended.
// The result that comes furthest counts; nil when there is none.
func tryRebuild(ctx context.Context, r *compare.Report, specs []evidence.Spec, o *PlanOptions) (best *Rebuilt,
	err error) {
	pl := newPlanner(r, specs, *o)
	if pl.refuse() != nil || pl.choose() != nil || pl.p.Mode != Restore || pl.fromMended() {
		return nil, nil
	}
	set, err := evidence.Open(ctx, specs, evidence.Options{NoHashes: true, Access: o.Compare.Access,
		Progress: o.Compare.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // only read
	logs := logsOf(set)
	if len(logs) == 0 {
		return nil, nil
	}
	scratch, err := os.MkdirTemp(o.Scratch, "etcd-medic-plan-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // a try of this run
	for i, base := range append(basesOf(set), evidence.Spec{}) {
		x, err := rebuiltFrom(ctx, base, logs, filepath.Join(scratch, fmt.Sprint(i)), o.Compare)
		if err == nil {
			x.Lost = lostAbove(r, x)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && (best == nil || x.Index > best.Index) &&
			!slices.ContainsFunc(set.Members, func(m *evidence.Member) bool {
				// a restore gives as much
				return m.HasDB() && m.Source.Kind != evidence.KindDataDir && m.ConsistentIndex() >= x.Index
			}) {
			best = x
		}
	}
	return best, nil
}

// lostAbove are the committed entries that the sources know of, and that the database does not hold.
func lostAbove(r *compare.Report, x *Rebuilt) *boot.Range {
	known := x.Index
	for i := range r.Members {
		f := &r.Members[i]
		if !slices.Contains(x.Logs, f.Name) {
			continue
		}
		known = max(known, f.Commit)
		for _, s := range f.Snapshots {
			if s.Damage == nil {
				known = max(known, s.Index)
			}
		}
	}
	if known == x.Index {
		return nil
	}
	return &boot.Range{From: x.Index + 1, To: known}
}

// logsOf are the logs of the cluster that has most of them.
func logsOf(set *evidence.Set) []*evidence.Member {
	by := map[dumplog.ID][]*evidence.Member{}
	most := dumplog.ID(0)
	for _, m := range set.Members {
		if m.HasLog() && m.ClusterID != 0 {
			by[m.ClusterID] = append(by[m.ClusterID], m)
			if len(by[m.ClusterID]) > len(by[most]) {
				most = m.ClusterID
			}
		}
	}
	return by[most]
}

// basesOf are the backups and databases, the newest first.
func basesOf(set *evidence.Set) []evidence.Spec {
	var found []*evidence.Member
	for _, m := range set.Members {
		if m.HasDB() && (m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindDB) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b *evidence.Member) int {
		return cmp.Compare(b.ConsistentIndex(),
			a.ConsistentIndex())
	})
	var out []evidence.Spec
	for _, m := range found {
		out = append(out, evidence.Spec{Name: m.Label(), Where: m.Source.Parts().DB})
	}
	return out
}

// rebuiltFrom makes the database in dir, which it creates, up to the last entry that is proven committed. It is no
// result when the diagnosis finds errors in it, or the outcome of entries is not settled.
func rebuiltFrom(ctx context.Context, base evidence.Spec, logs []*evidence.Member, dir string,
	o compare.Options) (*Rebuilt, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	x := &Rebuilt{Base: base.Name}
	version := release.Version{}
	var specs []evidence.Spec
	for _, m := range logs {
		x.Logs = append(x.Logs, m.Label())
		specs = append(specs, evidence.Spec{Name: m.Label(), Where: m.Source.Parts().WAL})
		version = version.Newer(m.Version.Release())
	}
	file := filepath.Join(dir, "rebuilt.db")
	how := rebuild.Options{Base: base, Logs: specs, To: rebuild.Target{Last: true}, Out: file, Version: version,
		Progress: o.Progress}
	res, err := rebuild.Run(ctx, how)
	var gap *rebuild.RefusedError
	// what no log holds is lost, what lies before it is not
	if errors.As(err, &gap) && len(gap.Missing) > 0 && gap.Missing[0].From > 1 {
		how.To = rebuild.Target{Index: gap.Missing[0].From - 1}
		res, err = rebuild.Run(ctx, how)
	}
	if err != nil {
		return nil, err
	}
	if res.Unsettled > 0 || res.DoubtfulCount > 0 && !res.Equal() {
		return nil, fmt.Errorf("the outcome of %d entries is not settled", max(res.Unsettled, res.DoubtfulCount))
	}
	r, err := compare.Inspect(ctx, evidence.Spec{Name: "rebuilt", Where: file, Backup: true}, o)
	if err != nil {
		return nil, err
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Severity.Rank() >= check.Error.Rank() {
			return nil, errors.New(f.Title)
		}
	}
	x.made = &r.Members[0]
	x.Index, x.Term, x.Keys, x.Promise = res.To.Index, res.To.Term, res.Keys, promiseOf(x.made)
	x.Promise.AppliedIndex, x.Promise.LastIndex, x.Bytes = res.To.Index, res.To.Index, x.made.DB.Size
	return x, nil
}

// fromRebuilt plans on the rebuilt database: every member gets it, under its own ID. Nothing is planned when it is
// false.
func (pl *planner) fromRebuilt() bool {
	x := pl.o.rebuilt
	if x == nil || x.made == nil {
		return false
	}
	var owner *evidence.Facts
	for _, l := range x.Logs {
		if f := pl.facts(l); pl.isDataDir(f) && f.MemberID != 0 && (owner == nil || f.Commit > owner.Commit) {
			owner = f
		}
	}
	if owner == nil {
		return false
	}
	kept, made := *pl.p, *owner
	made.DB, made.Auth, made.Alarms, made.AppliedIndex, made.ClusterVersion = x.made.DB, x.made.Auth, x.made.Alarms,
		x.Index, x.made.ClusterVersion
	made.Membership.Members, made.Membership.PeerURLs = x.made.Membership.Members, x.made.Membership.PeerURLs
	pl.restoring = true
	pl.p.Mode, pl.p.Why, pl.p.Rebuilt = "", "", x
	pl.setBestFacts(owner.Name, "content", fmt.Sprintf("no data dir is usable; the logs of %s give a database up to entry %d",
		strings.Join(x.Logs, ", "), x.Index), &made)
	pl.cluster()
	if err := pl.members(); err != nil || pl.unclonable() != "" {
		*pl.p, pl.restoring, pl.best, pl.ref = kept, false, nil, nil
		clear(pl.used)
		return false
	}
	for i := range pl.p.Members {
		if m := &pl.p.Members[i]; m.Action == Best || m.Action == Replace || m.Action == Keep || m.Action == Start {
			m.Action, m.Why = RebuildIt, "it gets the rebuilt database"
		}
	}
	return true
}

// rebuildWay is the way that gives every member the rebuilt database.
func (pl *planner) rebuildWay() Way {
	x := pl.p.Rebuilt
	b := &builder{p: pl.p}
	from := "the logs of " + strings.Join(x.Logs, ", ")
	cmd := shell.Format("etcd-medic rebuild")
	if x.Base != "" {
		from = x.Base + " and " + from
		cmd = cmd.With("--base", shell.FillFor("COPY_OF", x.Base))
	}
	for _, l := range x.Logs {
		cmd = cmd.With("--log", shell.FillFor("COPY_OF", l))
	}
	b.add(Step{Kind: StepRebuild, Member: pl.p.Best.Name, Title: "rebuild the database from " + from +
		", and write new data dirs with it",
		Precondition: "the sources are unchanged; the output folder is empty and has room",
		Effect: fmt.Sprintf("OUT/NAME for every member: its own member ID, the cluster ID, the database after "+
			"entry %d: revision %d, %s", x.Index, x.Promise.Revision, count(int(x.Keys), "key", "keys")),
		Undo: "remove OUT", Done: "every OUT/NAME is complete (it gets its name when it is flushed to disk)",
		ByHand: []Command{typed("etcd-medic", cmd.Then(shell.Format("--to last -o rebuilt.db"))),
			note("there is no etcd tool that keeps the IDs; by hand restore all members from rebuilt.db, which " +
				"begins a new cluster")}})
	b.add(Step{Kind: StepProve, Title: "start copies of the new data dirs in a sandbox and compare",
		Precondition: "a server that opens them is at hand",
		Effect:       "none on the new data dirs", Undo: "none needed",
		Done:   "all members serve and hold what the plan says",
		ByHand: byHandVerify(b.p)})
	b.install(false)
	return Way{Mode: Rebuild, Possible: true, Steps: b.steps,
		Why: fmt.Sprintf("all members are stopped for it; %s give a database up to entry %d, revision %d, as was "+
			"tried; member and cluster IDs stay", from, x.Index, x.Promise.Revision)}
}

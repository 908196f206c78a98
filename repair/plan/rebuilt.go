package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Rebuilt is a database that was made in scratch when the plan was made, from a backup or the best member's database
// and the logs of the members. It holds everything that is proven to be committed, if no data dir that is usable does.
type Rebuilt struct {
	// Base is the backup or member from whose database the logs continue, "" if they reach back to the first entry.
	// Logs are the members whose logs were used.
	Base string `json:"base,omitempty"`
	// Continues is true where Base is the best member, which is usable and lacks committed entries that logs hold.
	Continues bool     `json:"continues,omitempty"`
	Logs      []string `json:"logs"`
	// Index and Term are the last entry that was executed, Keys counts the keys, Bytes is the size of the file.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	Keys  int64  `json:"keys"`
	Bytes int64  `json:"bytes"`
	// ByMajority says how the last entries are known to be committed, if no source shows it.
	ByMajority string `json:"byMajority,omitempty"`
	// Lost are committed entries that no log holds, with all that follows them; nil when there are none.
	Lost *boot.Range `json:"lost,omitempty"`
	// Promise is what the database holds; rehearsal and application prove the same for theirs.
	Promise *Promise `json:"promise"`
	// made are the facts of the database.
	made *evidence.Facts
}

// tryRebuild makes the database if otherwise a restore would be planned: no data dir is usable, and none can be mended.
// It is also made if the plan would give up entries that the best member lacks and that logs hold. The result with the
// highest index counts; nil when there is none.
func tryRebuild(ctx context.Context, r *compare.Report, specs []evidence.Spec, scratch Scratch,
	o *Options) (best *Rebuilt, err error) {
	pl := newPlanner(r, specs, *o)
	if scratch == nil || pl.refuse() != nil || pl.choose() != nil {
		return nil, nil
	}
	behind := ""
	switch {
	case pl.p.Mode != Restore:
		if !givesUpLogged(r, specs, o) {
			return nil, nil
		}
		behind = pl.p.Best.Name
	case pl.fromMended():
		return nil, nil
	}
	set, err := evidence.Open(ctx, specs, evidence.Options{NoHashes: true, Access: o.Compare.Access,
		Progress: o.Compare.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // only read
	logs, bases := LogsOf(set, behind), append(BasesOf(set), evidence.Spec{})
	if behind != "" {
		bases = []evidence.Spec{BaseNamed(set, behind)}
	}
	if len(logs) == 0 || behind != "" && bases[0].Where == "" {
		return nil, nil
	}
	trials, err := scratch()
	if err != nil {
		return nil, err
	}
	defer trials.Close()
	for _, base := range bases {
		x, err := rebuildFrom(ctx, RebuildJob{Base: base, Logs: logs, Progress: o.Compare.Progress}, trials, r, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && (best == nil || x.Index > best.Index) && !heldAnyway(r, set, behind, x.Index) {
			best, x.Continues = x, behind != ""
		}
	}
	return best, set.Unchanged(ctx)
}

// givesUpLogged reports whether a plan would give up entries which the best member lacks, though logs hold them. A plan
// that asks for voters first does not, nor does a live repair of a member that gets them from the others' servers.
func givesUpLogged(r *compare.Report, specs []evidence.Spec, o *Options) bool {
	if r.Best == nil || r.Best.Lost.Awaited+r.Best.Lost.AfterEnd == 0 {
		return false
	}
	p, err := From(r, specs, *o)
	return err != nil || p.Mode == ForceNewCluster || p.Mode == Clone ||
		p.Mode == Live && (r.Best.Lost.AfterEnd > 0 || r.Best.Lost.FromLogs)
}

// heldAnyway reports whether a source holds as much as a rebuilt database without any work. Continued databases must
// have entries that the best member has neither applied nor in its log. Backups that the report set apart count another
// log.
func heldAnyway(r *compare.Report, set *evidence.Set, continued string, index uint64) bool {
	compared := labels(r)
	return slices.ContainsFunc(set.Members, func(m *evidence.Member) bool {
		if continued != "" {
			return m.Label() == continued && max(m.ConsistentIndex(), m.Commit) >= index
		}
		// a restore yields as much
		return m.HasDB() && m.Source.Kind != evidence.KindDataDir && m.ConsistentIndex() >= index &&
			slices.Contains(compared, m.Label()) && !evidence.OfAnotherCluster(set.Members, m)
	})
}

func rebuildFrom(
	ctx context.Context, j RebuildJob, trials Trials, r *compare.Report, o *Options,
) (x *Rebuilt, err error) {
	err = trials.Rebuild(ctx, j, func(f *RebuiltFile) (err error) {
		x, err = Inspected(ctx, &j, f, o.Compare)
		return err
	})
	if err == nil {
		x.Lost = lostAbove(r, x.Index, x.Logs)
	}
	return x, err
}

// lostAbove are the committed entries above an index that some sources show.
func lostAbove(r *compare.Report, index uint64, names []string) *boot.Range {
	known := index
	for i := range r.Members {
		f := &r.Members[i]
		if !slices.Contains(names, f.Name) {
			continue
		}
		known = max(known, f.Commit, hardCommit(f))
		for _, s := range f.Snapshots {
			if s.Damage == nil {
				known = max(known, s.Index)
			}
		}
	}
	if known == index {
		return nil
	}
	return &boot.Range{From: index + 1, To: known}
}

// LogsOf are the logs of the cluster of a source, else of the cluster with most of them.
func LogsOf(set *evidence.Set, of string) []*evidence.Member {
	by := map[dumplog.ID][]*evidence.Member{}
	kept, most := dumplog.ID(0), dumplog.ID(0)
	for _, m := range set.Members {
		if m.Label() == of {
			kept = m.ClusterID
		}
		if m.HasLog() && m.ClusterID != 0 {
			by[m.ClusterID] = append(by[m.ClusterID], m)
			if len(by[m.ClusterID]) > len(by[most]) {
				most = m.ClusterID
			}
		}
	}
	if kept != 0 {
		return by[kept]
	}
	return by[most]
}

// BasesOf are the backups and databases, the newest first. The index of one that was taken before the cluster was
// restored is of another log.
func BasesOf(set *evidence.Set) []evidence.Spec {
	var found []*evidence.Member
	for _, m := range set.Members {
		if m.HasDB() && (m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindDB) &&
			!evidence.OfAnotherCluster(set.Members, m) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b *evidence.Member) int {
		return cmp.Compare(b.ConsistentIndex(),
			a.ConsistentIndex())
	})
	var out []evidence.Spec
	for _, m := range found {
		out = append(out, baseOf(m))
	}
	return out
}

// BaseNamed is the database of a source as a base, without a place if there is none.
func BaseNamed(set *evidence.Set, label string) evidence.Spec {
	for _, m := range set.Members {
		if m.HasDB() && m.Label() == label {
			return baseOf(m)
		}
	}
	return evidence.Spec{}
}

func baseOf(m *evidence.Member) evidence.Spec {
	return evidence.Spec{Name: m.Label(), Where: m.Source.Parts().DB}
}

// Inspected returns the promise of a rebuilt database. It is an error if its diagnosis finds errors.
func Inspected(ctx context.Context, j *RebuildJob, f *RebuiltFile, o compare.Options) (*Rebuilt, error) {
	r, err := compare.Inspect(ctx, evidence.Spec{Name: "rebuilt", Where: f.Path, Backup: true}, o)
	if err != nil {
		return nil, err
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Severity.Rank() >= check.Error.Rank() {
			return nil, errors.New(f.Title)
		}
	}
	x := &Rebuilt{Base: j.Base.Name, ByMajority: f.ByMajority, made: &r.Members[0]}
	for _, m := range j.Logs {
		x.Logs = append(x.Logs, m.Label())
	}
	x.Index, x.Term, x.Keys, x.Promise = f.Index, f.Term, f.Keys, promiseOf(x.made)
	x.Promise.AppliedIndex, x.Promise.LastIndex, x.Bytes = f.Index, f.Index, x.made.DB.Size
	return x, nil
}

// fromRebuilt plans with the rebuilt database: every member gets it, under its own ID. If they cannot, the mode stays
// Restore, and ungiven says why. Voters of which nothing was said are asked for first.
func (pl *planner) fromRebuilt() error {
	x := pl.o.rebuilt
	if x == nil || x.made == nil {
		return nil
	}
	var owner *evidence.Facts
	for _, l := range x.Logs {
		if f := pl.facts(l); pl.isDataDir(f) && f.MemberID != 0 && (owner == nil || f.Commit > owner.Commit) {
			owner = f
		}
	}
	if owner == nil {
		pl.restoreFrom(x, "the logs do not show of which members they are")
		return nil
	}
	kept, made, label, by := *pl.p, *owner, owner.Name, "content"
	why := "no data dir is usable; the logs of " + strings.Join(x.Logs, ", ")
	if x.Continues {
		label, by, made = x.Base, pl.p.Best.By, *pl.facts(x.Base)
		made.Membership = owner.Membership // the newest
		why = x.Base + " is the best source and lacks committed entries; its database and the logs of " +
			strings.Join(x.Logs, ", ")
	}
	made.DB, made.Auth, made.Alarms, made.AppliedIndex, made.ClusterVersion = x.made.DB, x.made.Auth, x.made.Alarms,
		x.Index, x.made.ClusterVersion
	made.Membership.Members, made.Membership.PeerURLs = x.made.Membership.Members, x.made.Membership.PeerURLs
	pl.restoring = true
	pl.p.Mode, pl.p.Why, pl.p.Rebuilt = "", "", x
	why = fmt.Sprintf("%s give a database up to entry %d", why, x.Index)
	if x.ByMajority != "" {
		why += "; " + x.ByMajority
	}
	pl.setBestFacts(label, by, why, &made)
	pl.cluster()
	why, err := pl.ungivable()
	if err != nil {
		return err
	}
	if why != "" {
		*pl.p, pl.restoring, pl.best, pl.ref = kept, false, nil, nil
		clear(pl.used)
		pl.restoreFrom(x, why)
		return nil
	}
	for i := range pl.p.Members {
		if m := &pl.p.Members[i]; m.Action == Best || m.Action == Replace || m.Action == Keep || m.Action == Start {
			m.Action, m.Why = RebuildIt, "it gets the rebuilt database"
		}
	}
	return nil
}

// ungivable lists the members, and says why they cannot all get the rebuilt database, "" when they can.
func (pl *planner) ungivable() (string, error) {
	switch err := pl.members(); {
	case pl.p.Member(pl.p.Best.Name) == nil:
		return pl.p.Best.Name + " is not a member of the newest configuration", nil
	case err != nil:
		return "", err
	}
	why := pl.unclonable()
	if unseen := pl.unseenVoters(); why != "" && len(unseen) > 0 {
		return "", pl.ask("%s give a database up to entry %d for all members, and nothing is known about %s",
			pl.p.Rebuilt.from(), pl.p.Rebuilt.Index, strings.Join(MemberNames(unseen), ", "))
	}
	return why, nil
}

// restoreFrom plans a restore from the rebuilt database, which holds more than any backup.
func (pl *planner) restoreFrom(x *Rebuilt, why string) {
	pl.p.Rebuilt, pl.ungiven = x, why
}

// lost is the number of committed entries that the database lacks and no log holds.
func (x *Rebuilt) lost() int {
	if x == nil || x.Lost == nil {
		return 0
	}
	return int(x.Lost.To - x.Lost.From + 1)
}

// lostText says which committed entries are lost.
func (x *Rebuilt) lostText() string {
	return fmt.Sprintf("%s were committed, and no log among the sources holds all of them: they are lost, with all "+
		"that came after them", x.Lost)
}

// from names the sources of the database.
func (x *Rebuilt) from() string {
	logs := "the logs of " + strings.Join(x.Logs, ", ")
	switch {
	case x.Base == "":
		return logs
	case x.Continues:
		return "the database of " + x.Base + " and " + logs
	default:
		return x.Base + " and " + logs
	}
}

// command makes the database by hand, from copies.
func (x *Rebuilt) command() Command {
	cmd := shell.Format("etcd-medic rebuild")
	if x.Base != "" {
		cmd = cmd.With("--base", shell.FillFor("COPY_OF", x.Base))
	}
	for _, l := range x.Logs {
		cmd = cmd.With("--log", shell.FillFor("COPY_OF", l))
	}
	return Typed("etcd-medic", cmd.Then(shell.Format("--to last -o {}", rebuiltFile)))
}

// rebuiltFile is the name of the database in commands.
const rebuiltFile = "rebuilt.db"

// rebuildWay is the procedure that gives every member the rebuilt database.
func (pr *procedures) rebuildWay() Way {
	x := pr.p.Rebuilt
	return Way{Mode: Rebuild, Possible: true, Steps: (&builder{p: pr.p, way: Rebuild}).rebuild(),
		Why: fmt.Sprintf("all members are stopped for it; %s give a database up to entry %d, revision %d, as was "+
			"tried; member and cluster IDs stay", x.from(), x.Index, x.Promise.Revision)}
}

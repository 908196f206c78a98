package check

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Need is what a check needs to say anything.
type Need uint8

// What a check can need.
const (
	NeedLog    Need = 1 << iota // a log of at least one member
	NeedDB                      // a db of at least one member
	NeedTwo                     // two members or more
	NeedReplay                  // log and db of at least one member
)

// Input is what checks judge. Replay and Diff are nil when there was nothing to replay or compare.
type Input struct {
	Members Sources
	Replay  *replay.Result
	Diff    *diff.Result
	// Earlier are backups from before the cluster was restored. They are not among Members.
	Earlier []Earlier
	// MaxRows bounds evidence rows per finding; the rest is counted.
	MaxRows int
	// ServerLogs are what the servers' own logs say, by the member's label.
	ServerLogs map[string]*serverlog.Journal
	// Single is true when one source is inspected alone: checks that need several then say so.
	Single bool
	// Ctx ends checks that read; nil means that nothing ends them.
	Ctx     context.Context //nolint:containedctx // an input lives for one run
	earlier earlierStates
	// refuted keeps what recordsRefute found, by index.
	refuted map[uint64]refutation
}

// needsTwo is why a check that compares sources says nothing of one.
const needsTwo = "needs two sources or more"

// Context is the context for checks and causes that read.
func (in *Input) Context() context.Context {
	if in.Ctx == nil {
		return context.Background()
	}
	return in.Ctx
}

// Membership returns what logs and configurations say about who was a member.
func (in *Input) Membership() *Membership { return &Membership{Members: in.Members, Replay: in.Replay} }

func (in *Input) provenance() *provenance { return &provenance{Members: in.Members, Replay: in.Replay} }

func (in *Input) rowWitnesses() *rowWitnesses {
	return &rowWitnesses{Members: in.Members, Replay: in.Replay, Diff: in.Diff, ctx: in.Context(), earlier: &in.earlier}
}

func (in *Input) compactRequests() *compactRequests {
	return &compactRequests{Members: in.Members, Replay: in.Replay, ctx: in.Context()}
}

// Check is one invariant.
type Check struct {
	// ID is the family letter and a number: W log, S snapshot file, D database file, K key-value, A auth, L lease,
	// M membership, R raft, B backup, X copy.
	ID ID
	// Title states what must hold.
	Title string
	// Doc says what must hold, why it matters, when it is normal, and for which etcd versions.
	Doc   string
	Needs Need
	// OnDemand checks are in a report only when they were asked for.
	OnDemand bool
	// File is the name of the source file in this package that defines it, for docs/CHECKS.md.
	File string
	Run  func(*Input) Result
}

// Applies says whether the input holds what the check needs; the text is the reason when it does not.
func (c *Check) Applies(in *Input) (string, bool) {
	logs, dbs := 0, 0
	for _, m := range in.Members {
		if m.HasWAL() {
			logs++
		}
		if m.HasDB() {
			dbs++
		}
	}
	switch {
	case c.Needs&NeedTwo != 0 && len(in.Members) < 2:
		return needsTwo, false
	case c.Needs&NeedLog != 0 && logs == 0:
		return "no source brought a WAL", false
	case c.Needs&NeedDB != 0 && dbs == 0:
		return "no source brought a database that opens", false
	case c.Needs&NeedReplay != 0 && (in.Replay == nil || in.Replay.First == 0 || dbs == 0):
		return "needs a WAL and a database to replay", false
	}
	return "", true
}

// outcome is violated when a finding is a warning or worse, and holds when there are only notes.
func outcome(fs []Finding, notChecked string) Result {
	r := Result{Outcome: Holds, Findings: fs, Reason: notChecked}
	for _, f := range fs {
		if f.Severity.Rank() >= Warning.Rank() {
			r.Outcome = Violated
		}
	}
	if r.Outcome == Holds && notChecked != "" {
		r.Outcome = NotChecked
	}
	return r
}

// cut bounds evidence to MaxRows and counts the rest.
func (in *Input) cut(f Finding) Finding {
	if n := in.MaxRows; n > 0 && len(f.Evidence) > n {
		f.More += len(f.Evidence) - n
		f.Evidence = f.Evidence[:n]
	}
	return f
}

// add adds evidence up to MaxRows and counts the rest: a row that is not shown is not made.
func (in *Input) add(f *Finding, e func() Evidence) {
	if in.MaxRows > 0 && len(f.Evidence) >= in.MaxRows {
		f.More++
		return
	}
	f.Evidence = append(f.Evidence, e())
}

// showLog shows an entry of a member's log; of one that brought no log, what its database holds.
func showLog(m *evidence.Member, index uint64) shell.Command {
	if !m.HasWAL() {
		return showDB(m)
	}
	return shell.Format("etcd-medic dumplog {} --index {}", shell.Source(m.Label()), index)
}

// inLog adds to evidence where a member's log holds an entry. Where it does not hold it, the command shows the log of
// one that does.
func (in *Input) inLog(ev Evidence, pos int, index uint64) Evidence {
	ev.Member, ev.Show = in.Members[pos].Label(), showLog(in.Members[pos], index)
	if at := in.Replay.Position(in.Context(), pos, index); at.Segment != "" {
		ev.File, ev.Offset = at.Segment, Int64(at.Offset)
	} else if i := in.holder(index); i >= 0 {
		ev.Show = showLog(in.Members[i], index)
	}
	return ev
}

// inSomeLog is inLog for the first member whose log holds the entry.
func (in *Input) inSomeLog(ev Evidence, index uint64) Evidence {
	if i := in.holder(index); i >= 0 {
		return in.inLog(ev, i, index)
	}
	return ev
}

// holder is the position of the first member whose log holds an entry at an index, -1 for none.
func (in *Input) holder(index uint64) int {
	for i := range in.Members {
		if in.Replay.Position(in.Context(), i, index).Segment != "" {
			return i
		}
	}
	return -1
}

// showLogAs shows a member's log with a flag of dumplog.
func showLogAs(m *evidence.Member, flags ...any) shell.Command {
	return shell.Format("etcd-medic dumplog {}", shell.Source(m.Label())).With(flags...)
}

// showDB shows a part of a member's database: arguments of dumpdb. For a bucket that does not exist it lists the
// buckets.
func showDB(m *evidence.Member, args ...any) shell.Command {
	if m.HasDB() && len(args) > 0 {
		if bucket, ok := args[0].(string); ok && slices.Contains(m.DB.Handle.MissingBuckets(), bucket) {
			args = nil
		}
	}
	return shell.Format("etcd-medic dumpdb {}", shell.Source(m.Label())).With(args...)
}

// showRev shows the records of a revision, compacted or not.
func showRev(m *evidence.Member, rev int64) shell.Command {
	return showDB(m, "key", "--from-rev", rev, "--to-rev", rev)
}

// removeMember is the command that removes a member from the cluster.
func removeMember(id fmt.Stringer) shell.Command { return shell.Format("etcdctl member remove {}", id) }

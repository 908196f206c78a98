package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// OpenEnd is what cannot be known if a majority of the voters is lost: they may have committed entries that no source
// has.
type OpenEnd struct {
	// Voters are those voters: lost, not given, or with a log that cannot be trusted.
	Voters []string `json:"voters"`
	// CommittedTo is the last entry that is known to be committed, LogTo the last entry in the log of a source. Nothing
	// is known above.
	CommittedTo uint64 `json:"committedTo"`
	LogTo       uint64 `json:"logTo"`
	// Revision is that of the kept member. Clients may have seen higher ones; the difference is unknown.
	Revision int64 `json:"revision"`
	// Undecided are entries in the kept member's log that it does not know to be committed, though they may have been
	// acknowledged. A forced start drops them. It is nil when there are none.
	Undecided *boot.Range `json:"undecided,omitempty"`
	// BumpRevision is a raise to a revision that the lost members cannot have reached.
	BumpRevision int64 `json:"bumpRevision"`
}

// leastBump is more than a server writes in a week; the documentation of etcd advises it.
const leastBump = 1_000_000_000

// bump is a raise of the revision above all that clients may have seen: at least as many revisions as the cluster has
// ever written.
func bump(revision int64) int64 {
	n := int64(leastBump)
	for n < revision && n <= 1<<61 {
		n *= 2
	}
	return n
}

// openEnd says what a lost majority may have committed; nil if every committed entry is in the log of a source.
func (lo *losses) openEnd() *OpenEnd {
	o := &OpenEnd{CommittedTo: lo.best.Commit, Revision: lo.p.Best.Revision, BumpRevision: lo.p.bumpRevision()}
	known := uint64(0)
	for i := range lo.p.Members {
		m := &lo.p.Members[i]
		if m.Learner || !slices.Contains(lo.ref.Membership.Voters, m.ID) || lo.dead[m.ID] {
			continue
		}
		f := lo.ownSource(m.ID)
		if f != nil {
			known = max(known, hardCommit(f))
		}
		if f == nil || f.WAL == nil || m.Obstacle == ObstacleForgot || !boot.EndsWhole(f) {
			o.Voters = append(o.Voters, m.Name)
			continue
		}
		o.CommittedTo, o.LogTo = max(o.CommittedTo, f.Commit), max(o.LogTo, f.WAL.LastIndex)
	}
	if len(o.Voters) < lo.p.Cluster.Quorum {
		return nil
	}
	o.LogTo = max(o.LogTo, o.CommittedTo)
	o.CommittedTo = max(o.CommittedTo, known)
	if lo.p.Rebuilt == nil { // else see undecidedOfRebuilt
		o.Undecided = lo.undecided()
	}
	return o
}

// hardCommit is the commit index in the HardState of a source, 0 without one. Unlike Facts.Commit it may be above the
// end of a log that has lost its last entries: etcd writes entries before the HardState that commits them.
func hardCommit(f *evidence.Facts) uint64 {
	if f.WAL == nil || f.WAL.HardState == nil {
		return 0
	}
	return f.WAL.HardState.Commit
}

// bumpRevision raises the revision above all that the members and their clients can have seen.
func (p *Plan) bumpRevision() int64 {
	rev := p.Best.Revision
	for i := range p.Members {
		rev = max(rev, p.Members[i].Revision)
	}
	return bump(rev)
}

// undecided are the entries that the kept member does not know to be committed.
func (lo *losses) undecided() *boot.Range {
	w := lo.best.WAL
	if w == nil {
		return nil
	}
	known := lo.best.AppliedIndex
	if w.HardState != nil {
		known = max(known, w.HardState.Commit)
	}
	if known >= w.LastIndex {
		return nil
	}
	return &boot.Range{From: known + 1, To: w.LastIndex}
}

// openEndCautions say what cannot be known, and what watchers need because of it.
func (lo *losses) openEndCautions() []string {
	o := lo.p.Lost.Open
	switch {
	case lo.p.Mode == MendFiles && len(lo.o.Gone) == 0: // no member is lost there
		return lo.unsureCautions()
	case o == nil && lo.p.Mode == ForceNewCluster:
		return []string{lo.bumpCaution()}
	case o == nil:
		return nil
	}
	out := []string{fmt.Sprintf("%s can have committed more than any source shows: entries up to %d are known to be "+
		"committed, the logs among the sources end with %d, and nothing shows how far the lost members were. What "+
		"they acknowledged above that is lost, and cannot be listed", strings.Join(o.Voters, ", "), o.CommittedTo,
		o.LogTo)}
	if o.Undecided != nil {
		out = append(out, fmt.Sprintf("%s of %s may have been acknowledged, though it does not know them to be "+
			"committed; a forced start drops them: save them first", *o.Undecided, lo.p.Best.Name))
	}
	return append(out, lo.bumpCaution())
}

// unsureMends are the voters whose logs are mended although their own ends are lost, if the whole logs of the others
// are fewer than a majority. Nothing shows what they acknowledged above the end of those logs.
func (ro *roster) unsureMends() []string {
	var out []string
	if ro.p.Lost.Open == nil {
		return nil
	}
	for _, m := range ro.p.ToMend() {
		if f := ro.ownSource(m.ID); !m.Learner && f != nil && !boot.EndsWhole(f) {
			out = append(out, m.Name)
		}
	}
	return out
}

// mendLoses says what is given up by mending.
func (ro *roster) mendLoses() string {
	unsure := ro.unsureMends()
	switch {
	case len(unsure) > 0:
	case ro.p.Lost.CommittedEntries > 0:
		return "without giving up anything else"
	default:
		return "without giving anything up"
	}
	return "up to the end of the logs among the sources (whether " + strings.Join(unsure, ", ") +
		" had acknowledged more is not known)"
}

func (lo *losses) unsureCautions() []string {
	unsure := lo.unsureMends()
	if len(unsure) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s may have acknowledged entries above %d, where the logs among the sources end. "+
		"Only the logs of other voters can hold them: give their data dirs too, and plan again. If a majority runs "+
		"without such entries, they are lost", strings.Join(unsure, ", "), lo.p.Lost.Open.LogTo)}
}

func (lo *losses) bumpCaution() string {
	how := "when the cluster runs, save a snapshot and restore all members from it with"
	if lo.p.Mode == Restore {
		how = "restore with"
	}
	return fmt.Sprintf("revision %d is known; clients that watch (Kubernetes, leader elections) may have seen higher "+
		"ones, would miss every change up to there, and would treat other changes as known: %s --bump-revision %d "+
		"--mark-compacted",
		lo.p.Best.Revision, how, lo.p.bumpRevision())
}

// saveUndecided is the command that writes out the entries that a forced start drops.
func (lo *losses) saveUndecided() {
	o := lo.p.Lost.Open
	if o == nil || o.Undecided == nil {
		return
	}
	for _, src := range lo.named() {
		if src.Name == lo.p.Best.Name {
			lo.p.Lost.save(lo.dumpEntries(src, o.Undecided.From, o.Undecided.To).Then(
				shell.Format("> undecided-entries.jsonl")))
		}
	}
}

package datadir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Target is one member that gets a clone and keeps its identity.
type Target struct {
	// Name is the folder below the destination.
	Name string
	// MemberID and ClusterID are those of the member's own WAL metadata; a ClusterID of 0 means that of the best
	// member.
	MemberID, ClusterID uint64
	// Term is the highest term that the member has seen, 0 if unknown.
	Term uint64
}

// TargetOf returns the target for a source, named like the source.
func TargetOf(m *evidence.Member) (Target, error) {
	t := Target{Name: m.Label(), MemberID: uint64(m.MemberID), ClusterID: uint64(m.ClusterID), Term: SeenTerm(m)}
	if t.MemberID == 0 {
		return t, fmt.Errorf("%s: no member ID can be read from its log; name the member by its ID", m.Label())
	}
	return t, nil
}

// SeenTerm returns the highest term in a member's log, snapshots and database.
func SeenTerm(m *evidence.Member) (term uint64) {
	if m.HasWAL() {
		s := &m.WAL.Summary
		term = s.LastTerm
		if s.HardState != nil {
			term = max(term, s.HardState.Term)
		}
		for i := range s.Snapshots {
			term = max(term, s.Snapshots[i].Term)
		}
	}
	if m.DB != nil && m.DB.Meta.Term != nil {
		term = max(term, *m.DB.Meta.Term)
	}
	return term
}

// CloneOptions tune Clone.
type CloneOptions struct {
	// KeepTail copies committed entries after the consistent index into the new logs, as far as all clones apply them
	// alike. Without it the log ends at the consistent index. Result.Notes describe it.
	KeepTail bool
	// Commit is the highest index that other members prove committed; 0 means the index that the best member itself
	// proves.
	Commit uint64
	// Term is the term of the entry at the consistent index, if the database alone does not show it; otherwise 0.
	Term uint64
	// Edits are applied to the database before it is copied to the members.
	Edits []Edit
	// Progress, if set, is called with the bytes copied and their total.
	Progress func(done, total int64)
	// Ready, if set, is asked before the dirs get their names: an error leaves nothing.
	Ready func(context.Context) error
}

// Clone writes new data dirs for all targets below dst, which must not exist. Each has the best member's database.
// Cluster ID, member IDs, names, URLs, auth, revision and index numbering are kept, and with KeepTail the log after the
// consistent index. All members must be stopped and all dirs replaced together: next to an old dir, a cloned one is a
// member that lost its log.
//
// best may be a data dir or a backup of the cluster. A *refusal.Error says why it cannot be cloned.
func Clone(ctx context.Context, best *evidence.Member, targets []Target, dst string, o CloneOptions) (Result, error) {
	plan, err := planClone(ctx, best, targets, o)
	if err != nil {
		return Result{}, err
	}
	set := make([]NamedDir, len(targets))
	for i := range targets {
		set[i] = NamedDir{targets[i].Name, plan.dirs[i]}
	}
	res, err := WriteSet(ctx, dst, set, best.Source.Parts().DB, slices.Concat(plan.edits, o.Edits), o.Progress,
		o.Ready)
	if err != nil {
		return Result{}, fmt.Errorf("cloning %s: %w", best.Label(), err)
	}
	res.Notes = plan.notes
	return res, nil
}

func refusef(format string, args ...any) error { return refusal.New("", format, args...) }

type clonePlan struct {
	dirs  []Dir
	edits []Edit
	notes []string
}

// appliedAt returns the term and index of the best database, or why it cannot be cloned.
func appliedAt(best *evidence.Member, known uint64) (term, index uint64, err error) {
	if best.DB == nil || best.DB.Handle == nil {
		return 0, 0, refusef("%s has no database that opens", best.Label())
	}
	if index = best.ConsistentIndex(); index == 0 {
		return 0, 0, refusef("the database of %s has no consistent index, so its position in the log is unknown",
			best.Label())
	}
	if s := newestSnapshot(best); s > index {
		return 0, 0, refusef("the database of %s is at index %d, its raft snapshot at %d: it is older than its "+
			"own log says", best.Label(), index, s)
	}
	if term = max(known, termAt(best, index)); term == 0 {
		return 0, 0, refusef("the term of entry %d is not known: the database of %s stores none and its log does not "+
			"hold the entry", index, best.Label())
	}
	return term, index, nil
}

func planClone(ctx context.Context, best *evidence.Member, targets []Target, o CloneOptions) (*clonePlan, error) {
	if len(targets) == 0 {
		return nil, errors.New("no targets")
	}
	term, index, err := appliedAt(best, o.Term)
	if err != nil {
		return nil, err
	}
	view, err := viewOf(best)
	if err != nil {
		return nil, err
	}
	view.dropAbsentLearners(targets)
	plan := &clonePlan{notes: view.notes}
	if view.differs {
		plan.edits = append(plan.edits, SetMembers(view.members, view.removed))
	}
	if f := best.NewestSnap(); f != nil && f.V2 != nil && len(f.V2.UserKeys) > 0 {
		plan.notes = append(plan.notes, fmt.Sprintf("%d v2 keys in the raft snapshot of %s are not carried over",
			len(f.V2.UserKeys), best.Label()))
	}
	var tail []Entry
	why := ""
	if o.KeepTail {
		var left *LeftOut
		if tail, left, err = tailOf(ctx, best, max(best.Commit, o.Commit)); err != nil {
			return nil, err
		}
		if left != nil {
			why = left.Why
		}
	}
	plan.notes = append(plan.notes, tailNote(best, len(tail), why)...)
	ids, hard, err := checkTargets(targets, SeenTerm(best))
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		d, err := view.dir(best, t)
		if err != nil {
			return nil, err
		}
		d.Term, d.Index, d.HardTerm = term, index, hard+1
		d.Entries, d.Commit = tail, index+uint64(len(tail))
		plan.dirs = append(plan.dirs, d)
	}
	for _, id := range slices.Concat(view.voters, view.learners) {
		if !ids[id] {
			plan.notes = append(plan.notes, fmt.Sprintf("member %x gets no dir; it must not start on its old one", id))
		}
	}
	return plan, nil
}

// checkTargets refuses targets that cannot form one cluster. It returns their IDs and the highest term that they or
// best have seen.
func checkTargets(targets []Target, seen uint64) (ids map[uint64]bool, term uint64, err error) {
	names, ids := map[string]bool{}, map[uint64]bool{}
	for _, t := range targets {
		if t.Name == "" || filepath.Base(t.Name) != t.Name || t.Name == "." || t.Name == ".." || names[t.Name] ||
			ids[t.MemberID] {
			return nil, 0, fmt.Errorf("target %q (member %x): names must be plain and different, IDs different", t.Name,
				t.MemberID)
		}
		names[t.Name], ids[t.MemberID] = true, true
		seen = max(seen, t.Term)
	}
	return ids, seen, nil
}

// dir returns the common content of all targets' dirs, with the target's identity.
func (v *view) dir(best *evidence.Member, t Target) (Dir, error) {
	cluster := uint64(best.ClusterID)
	if cluster == 0 {
		cluster = t.ClusterID
	}
	switch {
	case t.ClusterID != 0 && t.ClusterID != cluster:
		return Dir{}, refusef("%s is of cluster %x, %s of cluster %x", t.Name, t.ClusterID, best.Label(), cluster)
	case has(v.removed, t.MemberID):
		return Dir{}, refusef("%s (member %x) was removed from the cluster: its ID cannot be used again", t.Name,
			t.MemberID)
	case !has(v.voters, t.MemberID) && !has(v.learners, t.MemberID):
		return Dir{}, refusef("%s (member %x) is not a member of the cluster that %s knows it", t.Name, t.MemberID,
			best.Label())
	}
	return Dir{MemberID: t.MemberID, ClusterID: cluster, Voters: v.voters, Learners: v.learners, Members: v.members,
		Removed:        v.removed,
		ClusterVersion: best.DB.Cluster.Version, Minor: best.Version.Minor}, nil
}

func newestSnapshot(m *evidence.Member) (index uint64) {
	if !m.HasWAL() {
		return 0
	}
	for i := range m.WAL.Summary.Snapshots {
		if s := &m.WAL.Summary.Snapshots[i]; s.Index <= m.WAL.Summary.MaxCommit {
			index = max(index, s.Index)
		}
	}
	return index
}

// termAt returns the term of the entry at index: from the log, from a snapshot at that index, or, since 3.5, from the
// database.
func termAt(m *evidence.Member, index uint64) uint64 {
	if m.HasWAL() {
		s := &m.WAL.Summary
		if t := s.TermAt(index); t > 0 {
			return t
		}
		for i := range s.Snapshots {
			if s.Snapshots[i].Index == index {
				return s.Snapshots[i].Term
			}
		}
	}
	if f := m.NewestSnap(); f != nil && f.Index == index {
		return f.Term
	}
	if m.DB != nil && m.DB.Meta.Term != nil {
		return *m.DB.Meta.Term
	}
	return 0
}

func idsOf(ids []dumplog.ID) []uint64 {
	out := make([]uint64, len(ids))
	for i, id := range ids {
		out[i] = uint64(id)
	}
	return out
}

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// cloning is a run that writes new data dirs: Clone or Rebuild.
type cloning struct{ *session }

// apply writes new data dirs for all members and proves them on copies.
func (s cloning) apply(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	if err := s.fresh(o.Out, o.Mode, s.plan.Way(o.Mode).Steps[0].ID); err != nil {
		return nil, err
	}
	work := s.o.Work
	if work == "" {
		work = o.Out + ".work"
	}
	err := s.writeAndProve(ctx, o.Mode, o.Mode, o.Out, work)
	s.dirs(o.Out, err)
	return s.finish(err, s.emptied(work))
}

// rehearse writes the data dirs of a procedure to scratch and proves them.
func (s cloning) rehearse(ctx context.Context, way plan.Mode, work string) error {
	dir, err := scratch.Dir(filepath.Dir(absolute(work)), "etcd-medic-rehearse-")
	if err != nil {
		return err
	}
	return errors.Join(s.writeAndProve(ctx, rehearsal, way, filepath.Join(dir, "out"), work), scratch.Remove(dir))
}

// writeAndProve writes the data dirs of a procedure, Clone or Rebuild, to out and proves them.
func (s cloning) writeAndProve(ctx context.Context, mode, way plan.Mode, out, work string) error {
	set, err := s.sources(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // only read
	server, err := s.server(ctx, set, false)
	if err != nil {
		return err
	}
	s.out.Raises = "" // the clones keep their versions; only the copies that prove them are opened
	if err := s.checkRoom(out, way, set); err != nil {
		return err
	}
	if err := s.freshWork(work); err != nil {
		return err
	}
	if err := s.journal(mode); err != nil {
		return err
	}
	s.out.Way, s.out.Server = way, server.String()
	return s.steps(ctx, mode, way, out, work, set, server)
}

func (s cloning) checkRoom(out string, way plan.Mode, set *evidence.Set) error {
	if way == plan.Rebuild {
		return copies.Enough(out, plan.CloneNeeds(1+len(s.plan.CloneTargets()), s.plan.Rebuilt.Bytes), s.o.room,
			otherPlace)
	}
	best := memberLabelled(set, s.plan.Best.Name)
	if best == nil || best.DB == nil || best.DB.Handle == nil {
		return refusal.New("plan again", "the database of %s cannot be read any more", s.plan.Best.Name)
	}
	return copies.Enough(out, plan.CloneNeeds(len(s.plan.CloneTargets()), best.DB.Handle.Size()), s.o.room, otherPlace)
}

// memberLabelled returns the source with a label, nil if there is none.
func memberLabelled(set *evidence.Set, label string) *evidence.Member {
	for _, m := range set.Members {
		if m.Label() == label {
			return m
		}
	}
	return nil
}

// steps makes the clones, then starts copies of them.
func (s cloning) steps(ctx context.Context, run, mode plan.Mode, out, work string, set *evidence.Set,
	server node.Server) error {
	way := s.plan.Way(mode)
	st := &sandboxHost{dir: absolute(work), say: s.o.Progress, runs: map[string]*node.Member{},
		clients: map[*node.Member]*clientv3.Client{}, patience: 2 * time.Minute}
	r := newRunner(s.state(), st, s.o.limits)
	r.sandbox, r.write, r.clones = true, true, true
	if err := r.note(way.Steps[0].ID, "out", absolute(out)); err != nil {
		return r.unfinished(way.Steps[0].ID, err)
	}
	once := s.phase
	if _, there := os.Lstat(out); run == rehearsal || there != nil {
		once = s.always // a rehearsal removes the result of an earlier process; others may write to another folder now
	}
	err := once(ctx, r, way.Steps[0], func() (string, error) { return s.make(ctx, mode, out, set) })
	if err != nil {
		return err
	}
	return s.always(ctx, r, way.Steps[1], func() (string, error) {
		if mode == plan.Clone {
			if err := s.proveTail(ctx, set); err != nil {
				return "", err
			}
		}
		return s.prove(ctx, r, st, out, server)
	})
}

func (s cloning) make(ctx context.Context, mode plan.Mode, out string, set *evidence.Set) (string, error) {
	if _, err := os.Lstat(out); err == nil {
		// made by an earlier process that was killed right after: out gets its name when it is complete
		return "they are there", nil
	}
	targets := s.targets(set)
	if mode == plan.Rebuild {
		return s.makeRebuilt(ctx, out, set, targets)
	}
	// Entries that are committed after the best database were acknowledged: the clones execute them as the member would
	// have.
	o := datadir.CloneOptions{KeepTail: true, Ready: set.Unchanged, Commit: s.committed(set)}
	return s.write(ctx, memberLabelled(set, s.plan.Best.Name), targets, out, o)
}

// committed is the highest index that a source of the cluster proves committed.
func (s cloning) committed(set *evidence.Set) (commit uint64) {
	for _, m := range set.Members {
		if m.ClusterID == s.plan.Cluster.ID || m.ClusterID == 0 {
			commit = max(commit, m.Commit)
		}
	}
	return commit
}

// proveTail requires that the new data dirs have the committed entries that the best member's database lacks and its
// log holds, unless the plan lists as many as lost.
func (s cloning) proveTail(ctx context.Context, set *evidence.Set) error {
	best := s.plan.Best.Name
	left, err := datadir.LeftOutOf(ctx, memberLabelled(set, best), s.committed(set))
	if err != nil {
		return err
	}
	what := "the new data dirs have every committed entry of the log of " + best
	switch {
	case left == nil:
		s.out.prove(what, holds, "")
	case left.Writes > s.plan.Lost.CommittedEntries:
		s.out.prove(what, violated, fmt.Sprintf("entries %d to %d are not in them, %s of keys or leases among them: "+
			"%s. A server that starts on the data dir of %s executes them: see the other ways of the plan", left.From,
			left.To, plural.Of(left.Writes, "write", "writes"), left.Why, best))
	default:
		s.out.prove(what, notChecked, fmt.Sprintf("entries %d to %d are not in them: %s", left.From, left.To,
			left.Why))
	}
	return nil
}

// targets are the members that get a data dir.
func (s cloning) targets(set *evidence.Set) []datadir.Target {
	var targets []datadir.Target
	for _, m := range s.plan.CloneTargets() {
		t := datadir.Target{MemberID: uint64(m.ID), ClusterID: uint64(s.plan.Cluster.ID)}
		if src := memberLabelled(set, m.Source); src != nil {
			if seen, err := datadir.TargetOf(src); err == nil {
				t.Term = seen.Term
			}
		}
		t.Name = m.Folder()
		targets = append(targets, t)
	}
	return targets
}

// makeRebuilt makes the database again, as when the plan was made, and writes the data dirs with it.
func (s cloning) makeRebuilt(ctx context.Context, out string, set *evidence.Set, targets []datadir.Target) (string,
	error) {
	x := s.plan.Rebuilt
	dir, err := scratch.Dir(filepath.Dir(absolute(out)), "etcd-medic-rebuild-")
	if err != nil {
		return "", err
	}
	defer func() { _ = scratch.Remove(dir) }() // the data dirs have copies
	o := compare.Options{Version: s.o.Version, Progress: s.o.Progress}
	job := plan.RebuildJob{Base: plan.BaseNamed(set, x.Base), Logs: plan.LogsOf(set, x.Base), Progress: o.Progress}
	file, err := try.Rebuild(ctx, job, filepath.Join(dir, "rebuilt.db"))
	if err != nil {
		return "", err
	}
	made, err := plan.Inspected(ctx, &job, file, o)
	if err != nil {
		return "", err
	}
	if *made.Promise != *x.Promise {
		return "", fmt.Errorf("the rebuilt database is another one than the plan says: %+v, not %+v", *made.Promise,
			*x.Promise)
	}
	db, err := evidence.Open(ctx, []evidence.Spec{{Name: "rebuilt", Where: file.Path}},
		evidence.Options{NoHashes: true})
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }() // only read
	return s.write(ctx, db.Members[0], targets, out, datadir.CloneOptions{Term: x.Term, Ready: set.Unchanged})
}

func (s cloning) write(ctx context.Context, best *evidence.Member, targets []datadir.Target, out string,
	o datadir.CloneOptions) (string, error) {
	for _, a := range s.plan.Cluster.Alarms {
		if a.Alarm == "CORRUPT" {
			o.Edits = append(o.Edits, datadir.ClearAlarm(uint64(a.MemberID), alarmCorrupt))
		}
	}
	begin := time.Now()
	res, err := datadir.Clone(ctx, best, targets, out, o)
	if err != nil {
		return "", err
	}
	s.out.Notes = append(s.out.Notes, res.Notes...)
	return fmt.Sprintf("%d data dirs, %s, %.0f MiB/s", len(res.Dirs), plural.Size(res.Bytes),
		float64(res.Bytes>>20)/max(time.Since(begin).Seconds(), 0.001)), nil
}

// alarmCorrupt is the encoding of etcdserverpb.AlarmType_CORRUPT in bucket alarm.
const alarmCorrupt = 2

// prove starts copies of the new data dirs and compares the dirs themselves with the best member.
func (s cloning) prove(ctx context.Context, r *runner, st *sandboxHost, out string, server node.Server) (string,
	error) {
	if err := os.RemoveAll(st.dir); err != nil { // an earlier run's scratch; freshWork looked at it
		return "", err
	}
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(st.dir, markFile), []byte(s.plan.Digest+"\n"), 0o600); err != nil {
		return "", err
	}
	var specs []evidence.Spec
	for _, m := range r.present() {
		dir := filepath.Join(out, m.Folder())
		for _, part := range []string{"wal", "snap"} {
			if err := copies.Folder(ctx, filepath.Join(dir, "member", part),
				filepath.Join(st.dataDir(m), "member", part)); err != nil {
				return "", err
			}
		}
		specs = append(specs, evidence.Spec{Name: m.Name, Where: dir})
	}
	if err := s.start(ctx, r, st, server); err != nil {
		return "", err
	}
	return dirsProof(s).of(ctx, specs)
}

func (s cloning) start(ctx context.Context, r *runner, st *sandboxHost, server node.Server) error {
	box, err := node.New(ctx, node.Options{Dir: filepath.Join(st.dir, "sandbox"), Server: server,
		Isolation: s.o.Isolation, Auth: s.plan.Cluster.Auth,
		UnsafeNoFsync: true, KnownPeers: s.knownPeers(), Log: s.o.Progress})
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }() // the copies are thrown away
	st.box = box
	for _, m := range r.present() {
		if err := st.start(ctx, m, startHow{}); err != nil {
			return err
		}
	}
	for _, m := range r.present() {
		if err := st.ready(ctx, m); err != nil {
			return err
		}
	}
	_, err = doVerify(ctx, r, nil)
	s.out.Isolation = box.Proof().Lines()
	return err
}

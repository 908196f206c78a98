package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// ApplyOptions say how a plan is applied.
type ApplyOptions struct {
	RunOptions
	// Mode is Clone, Reseed or Live.
	Mode Mode
	// Out is the folder for the new data dirs of Clone and Reseed; it must not exist.
	Out string
	// Live says how the running cluster is reached.
	Live LiveOptions
}

// Apply carries a plan out: into new data dirs, or against the running cluster. A *RefusedError means that nothing was begun, an
// *UnfinishedError that the journal tells how far it came; the same call goes on from there.
func Apply(ctx context.Context, file string, o ApplyOptions) (*Outcome, error) {
	s, err := open(file, o.RunOptions)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.plan.Mode == RehearseOnly {
		return nil, refusedf("bring what is missing and plan again", "this plan may only be rehearsed: %s", s.plan.Why)
	}
	way := s.plan.Way(o.Mode)
	switch {
	case way == nil:
		return nil, refusedf("see the ways in the plan", "the plan has no way %s", o.Mode)
	case !way.Possible:
		return nil, refusedf("see the other ways in the plan", "%s is not possible: %s", o.Mode, way.Why)
	}
	switch o.Mode {
	case Clone:
		return s.clone(ctx, o)
	case Reseed:
		return s.reseed(ctx, o)
	case Live:
		return s.live(ctx, o)
	}
	return nil, refusedf("follow the commands under byHand in the plan", "%s is done by hand", o.Mode)
}

// fresh refuses an output folder that is there already, unless this very plan has just made it.
func (s *session) fresh(out string, mode Mode, step string) error {
	if out == "" {
		return refusedf("-o DIR", "the folder for the new data dirs is missing")
	}
	if _, err := os.Lstat(out); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if s.o.Again {
		return refusedf("name another folder with -o", "%s exists; nothing is overwritten", out)
	}
	records, err := ReadJournal(s.file)
	if err != nil {
		return err
	}
	var ended *Record
	for _, r := range slices.Backward(records) {
		switch {
		case r.Mode != mode:
		case ended == nil && r.State == StateEnd:
			ended = &r
		case r.State == StateEnd || r.State == StateAbandon:
			return refusedf("name another folder with -o", "%s exists; nothing is overwritten", out)
		case r.Step == step && r.Values["out"] == absolute(out) && ended == nil:
			return nil
		case r.Step == step && r.Values["out"] == absolute(out):
			return refusedf("use the data dirs, or name another folder with -o", "%s holds what this plan's run %d handed out; it reached its goal at %s, nothing is left to do",
				out, ended.Run, ended.Time.Format(time.RFC3339))
		}
	}
	return refusedf("name another folder with -o", "%s exists; nothing is overwritten", out)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

const (
	stepCompare = "91-compare"
	stepHandOut = "92-hand-out"
)

// reseed does the rehearsal's steps and hands the data dirs out.
func (s *session) reseed(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	if err := s.fresh(o.Out, Reseed, stepHandOut); err != nil {
		return nil, err
	}
	work := s.o.Work
	if work == "" {
		work = o.Out + ".work"
	}
	var err error
	if _, there := os.Lstat(o.Out); there == nil {
		err = s.handedOut(ctx, o.Out)
	} else if err = s.sandboxed(ctx, Reseed, work, false); err == nil && s.out.provenWell() {
		err = s.handOut(ctx, work, o.Out)
	}
	return s.finish(err, func() error {
		if s.o.Keep {
			return nil
		}
		return os.RemoveAll(work) // scratch of this run
	})
}

// handedOut ends a run whose process was killed between handing the data dirs out and saying so. What it had proved it took with it.
func (s *session) handedOut(ctx context.Context, out string) error {
	if err := s.journal(Reseed); err != nil {
		return err
	}
	s.out.Way = s.plan.Way(Reseed).Uses
	r := &runner{plan: s.plan, j: s.j, out: s.out, say: s.o.Progress}
	var specs []evidence.Spec
	for _, m := range r.present() {
		specs = append(specs, evidence.Spec{Name: m.Name, Where: filepath.Join(out, fileName(m.ServerName()))})
	}
	err := s.always(ctx, r, Step{ID: stepCompare, Title: "compare the data dirs"}, func() (string, error) { return s.proveSpecs(ctx, specs) })
	if err != nil || !s.out.provenWell() {
		return err
	}
	return s.handOut(ctx, "", out)
}

// handOut flushes what the servers wrote without fsync and gives it its place, in one rename.
func (s *session) handOut(ctx context.Context, work, out string) error {
	members := filepath.Join(work, "members")
	r := &runner{plan: s.plan, j: s.j, out: s.out, say: s.o.Progress}
	step := Step{ID: stepHandOut, Title: "hand the data dirs out"}
	if err := r.note(step.ID, "out", absolute(out)); err != nil {
		return r.unfinished(step.ID, err)
	}
	err := s.always(ctx, r, step, func() (string, error) {
		if _, err := os.Lstat(out); err == nil {
			return "they are there", nil // renamed by an earlier process that was killed right after
		}
		if err := syncTree(members); err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(absolute(out)), 0o755); err != nil {
			return "", err
		}
		if err := os.Rename(members, out); err != nil {
			return "", fmt.Errorf("%w (put --work on the same file system as -o)", err)
		}
		return "", syncDir(filepath.Dir(absolute(out)))
	})
	s.dirs(out)
	return err
}

func (s *session) dirs(out string) {
	s.out.Dirs = map[string]string{}
	for i := range s.plan.Members {
		m := &s.plan.Members[i]
		if dir := filepath.Join(out, m.folder()); m.Action != Remove && m.Action != Retire {
			if _, err := os.Stat(dir); err == nil {
				s.out.Dirs[m.Name] = dir
			}
		}
	}
}

// clone writes new data dirs for all members and proves them on copies.
func (s *session) clone(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	way := s.plan.Way(Clone)
	made := way.Steps[0]
	if err := s.fresh(o.Out, Clone, made.ID); err != nil {
		return nil, err
	}
	set, err := s.sources(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // only read
	server, err := s.server(ctx, set)
	if err != nil {
		return nil, AsRefusal(err)
	}
	s.out.Raises = "" // the clones keep their versions; only the copies that prove them are opened
	if err := s.cloneRoom(o.Out, set); err != nil {
		return nil, err
	}
	work := s.o.Work
	if work == "" {
		work = o.Out + ".work"
	}
	if err := s.freshWork(work); err != nil {
		return nil, err
	}
	if err := s.journal(Clone); err != nil {
		return nil, err
	}
	s.out.Way, s.out.Server = Clone, server.String()
	err = s.cloneSteps(ctx, o.Out, work, set, server)
	s.dirs(o.Out)
	return s.finish(err, func() error {
		if s.o.Keep {
			return nil
		}
		return os.RemoveAll(work) // scratch of this run
	})
}

func (s *session) cloneRoom(out string, set *evidence.Set) error {
	best := s.evidenceOf(set, s.plan.Best.Name)
	if best == nil || best.DB == nil || best.DB.Handle == nil {
		return refusedf("plan again", "the database of %s can not be read any more", s.plan.Best.Name)
	}
	b := &builder{p: s.plan}
	return enough(out, int64(len(b.targets()))*(2*best.DB.Handle.Size()+walRoom), s.o.room)
}

func (s *session) evidenceOf(set *evidence.Set, label string) *evidence.Member {
	for _, m := range set.Members {
		if m.Label() == label {
			return m
		}
	}
	return nil
}

// cloneSteps makes the clones, then starts copies of them.
func (s *session) cloneSteps(ctx context.Context, out, work string, set *evidence.Set, server node.Server) error {
	way := s.plan.Way(Clone)
	st := &stage{dir: absolute(work), say: s.o.Progress, runs: map[string]*node.Member{}, clients: map[*node.Member]*clientv3.Client{}, patience: 2 * time.Minute}
	r := &runner{plan: s.plan, j: s.j, host: st, out: s.out, limits: s.o.limits, say: s.o.Progress, sandbox: true, write: true, clones: true}
	if err := r.note(way.Steps[0].ID, "out", absolute(out)); err != nil {
		return r.unfinished(way.Steps[0].ID, err)
	}
	err := s.phase(ctx, r, way.Steps[0], func() (string, error) { return s.makeClones(ctx, out, set) })
	if err != nil {
		return err
	}
	return s.always(ctx, r, way.Steps[1], func() (string, error) { return s.proveClones(ctx, r, st, out, server) })
}

func (s *session) makeClones(ctx context.Context, out string, set *evidence.Set) (string, error) {
	if _, err := os.Lstat(out); err == nil {
		return "they are there", nil // made by an earlier process that was killed right after: out gets its name when it is complete
	}
	best := s.evidenceOf(set, s.plan.Best.Name)
	b := &builder{p: s.plan}
	var targets []datadir.Target
	for _, m := range b.targets() {
		t := datadir.Target{MemberID: uint64(m.ID), ClusterID: uint64(s.plan.Cluster.ID)}
		if src := s.evidenceOf(set, m.Source); src != nil {
			if seen, err := datadir.TargetOf(src); err == nil {
				t.Term = seen.Term
			}
		}
		t.Name = m.folder()
		targets = append(targets, t)
	}
	// What is committed behind the best database was acknowledged: the clones execute it as the member would have.
	o := datadir.CloneOptions{KeepTail: true}
	for _, m := range set.Members {
		o.Commit = max(o.Commit, m.Commit)
	}
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
	return fmt.Sprintf("%d data dirs, %d MiB, %.0f MiB/s", len(res.Dirs), res.Bytes>>20, float64(res.Bytes>>20)/max(time.Since(begin).Seconds(), 0.001)), nil
}

// alarmCorrupt is etcdserverpb.AlarmType_CORRUPT as it stands in bucket alarm.
const alarmCorrupt = 2

// proveClones starts copies of the new data dirs and holds the dirs themselves against the best member.
func (s *session) proveClones(ctx context.Context, r *runner, st *stage, out string, server node.Server) (string, error) {
	if err := os.RemoveAll(st.dir); err != nil { // an earlier run's scratch; freshWork looked at it
		return "", err
	}
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return "", err
	}
	if err := writeNew(filepath.Join(st.dir, markFile), []byte(s.plan.Digest+"\n")); err != nil {
		return "", err
	}
	var specs []evidence.Spec
	for _, m := range r.present() {
		dir := filepath.Join(out, m.folder())
		for _, part := range []string{"wal", "snap"} {
			if err := copies.Folder(ctx, filepath.Join(dir, "member", part), filepath.Join(st.dataDir(m), "member", part)); err != nil {
				return "", err
			}
		}
		specs = append(specs, evidence.Spec{Name: m.Name, Where: dir})
	}
	if err := s.startClones(ctx, r, st, server); err != nil {
		return "", err
	}
	return s.proveSpecs(ctx, specs)
}

func (s *session) startClones(ctx context.Context, r *runner, st *stage, server node.Server) error {
	box, err := node.New(ctx, node.Options{Dir: filepath.Join(st.dir, "sandbox"), Server: server, Isolation: s.o.Isolation, Auth: s.plan.Cluster.Auth,
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

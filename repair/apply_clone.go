package repair

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

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
	return enough(out, cloneNeeds(len(b.targets()), best.DB.Handle.Size()), s.o.room)
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

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// mendFiles is a run that writes mended data dirs.
type mendFiles struct{ *session }

// apply writes mended data dirs next to the old ones and proves them on copies.
func (s mendFiles) apply(ctx context.Context, o ApplyOptions) (*Outcome, error) {
	if err := s.fresh(o.Out, plan.MendFiles, s.plan.Way(plan.MendFiles).Steps[0].ID); err != nil {
		return nil, err
	}
	work := s.o.Work
	if work == "" {
		work = o.Out + ".work"
	}
	err := s.writeAndProve(ctx, plan.MendFiles, absolute(o.Out), work)
	s.listDirs(o.Out, err)
	return s.finish(err, s.emptied(work))
}

// mending is one run of MendFiles.
type mending struct {
	s   *session
	r   *runner
	st  *sandboxHost
	set *evidence.Set
	// specs name the sources, out is the folder for the mended data dirs.
	specs map[string]evidence.Spec
	out   string
	// throwAway is true for a rehearsal: then the mended data dirs are in scratch, and every process makes them again.
	throwAway bool
	server    node.Server
}

// writeAndProve makes the mended data dirs in out and proves them with copies below work. A rehearsal has out in work.
func (s mendFiles) writeAndProve(ctx context.Context, mode plan.Mode, out, work string) error {
	set, err := s.sources(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // only read
	server, err := s.server(ctx, set, true)
	if err != nil {
		return err
	}
	s.out.Raises = "" // only copies are opened
	if err := s.beginOnCopies(ctx, mode, work, s.needs(set), server); err != nil {
		return err
	}
	s.out.Way, s.out.Server = plan.MendFiles, server.String()
	st := &sandboxHost{dir: absolute(work), say: s.o.Progress, runs: map[string]*node.Member{},
		clients: map[*node.Member]*clientv3.Client{}, patience: 2 * time.Minute}
	r := newRunner(s.state(), st, s.o.limits)
	r.sandbox, r.write, r.clones = true, true, true
	m := &mending{s: s.session, r: r, st: st, set: set, specs: plan.SpecsOf(set), out: out,
		throwAway: mode == rehearsal, server: server}
	return m.steps(ctx)
}

// needs is the room for the mended data dirs, for files between two repairs, and for the copies that prove them.
func (s mendFiles) needs(set *evidence.Set) (n int64) {
	for _, m := range set.Members {
		p := s.bySource(m.Label())
		switch {
		case p == nil:
		case slices.Contains(s.plan.ToMend(), p):
			n += 3*m.Source.Manifest.Bytes + plan.WALRoom
		case slices.Contains(s.plan.BesideMended(), p):
			n += m.Source.Manifest.Bytes + plan.WALRoom
		}
	}
	return n
}

func (m *mending) steps(ctx context.Context) error {
	way := m.s.plan.Way(plan.MendFiles)
	if err := m.r.note(way.Steps[0].ID, "out", m.out); err != nil {
		return m.r.unfinished(way.Steps[0].ID, err)
	}
	if err := m.clean(); err != nil {
		return m.r.unfinished(way.Steps[0].ID, err)
	}
	if err := os.MkdirAll(m.out, 0o700); err != nil {
		return m.r.unfinished(way.Steps[0].ID, err)
	}
	for _, step := range way.Steps {
		var err error
		mended := m.s.plan.Member(step.Member)
		switch {
		case step.Kind == plan.StepMend && (m.throwAway || !m.isThere(mended)):
			err = m.s.always(ctx, m.r, step, func() (string, error) { return m.makeDir(ctx, &step) })
		case step.Kind == plan.StepMend:
			err = m.s.phase(ctx, m.r, step, func() (string, error) { return m.makeDir(ctx, &step) })
		case step.Kind == plan.StepProve:
			err = m.s.always(ctx, m.r, step, func() (string, error) { return m.prove(ctx) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clean empties the scratch of earlier processes; freshWork looked at it.
func (m *mending) clean() error {
	if err := os.RemoveAll(m.st.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(m.st.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.st.dir, markFile), []byte(m.s.plan.Digest+"\n"), 0o600)
}

// isThere reports whether the data dir of a member was made already.
func (m *mending) isThere(p *plan.Member) bool {
	_, err := os.Lstat(m.dir(p))
	return err == nil
}

func (m *mending) dir(p *plan.Member) string { return filepath.Join(m.out, p.Folder()) }

// makeDir makes the repairs that were tried when the plan was made.
func (m *mending) makeDir(ctx context.Context, step *plan.Step) (string, error) {
	p := m.s.plan.Member(step.Member)
	if m.isThere(p) {
		// made by an earlier process that was killed right after: it gets its name when it is complete
		return "it is there", nil
	}
	x := m.s.plan.MendOf(p.Source)
	job := plan.MendJob{Source: m.specs[p.Source], Base: m.specs[x.Base], Repairs: x.Repairs,
		Compare: compare.Options{Version: m.s.o.Version, Progress: m.s.o.Progress}}
	for _, w := range x.With {
		job.Peers = append(job.Peers, m.specs[w])
	}
	did, err := try.Mend(ctx, job, m.dir(p), m.st.dir)
	if err != nil {
		return "", err
	}
	if err := m.set.Unchanged(ctx); err != nil {
		return "", errors.Join(err, os.RemoveAll(m.dir(p))) // no longer made of the plan's sources
	}
	return strings.Join(did, "; "), nil
}

// prove starts copies of the mended data dirs and compares the dirs themselves with the promises of the plan.
func (m *mending) prove(ctx context.Context) (string, error) {
	for _, p := range m.s.plan.ToMend() {
		if err := m.kept(ctx, p); err != nil {
			return "", err
		}
	}
	class, err := m.diagnose(ctx)
	if err != nil || !m.s.out.provenWell() {
		return class, err
	}
	if err := os.RemoveAll(filepath.Join(m.st.dir, "members")); err != nil { // of a run that was killed
		return "", err
	}
	if m.majority() {
		return class, m.together(ctx)
	}
	for _, p := range m.s.plan.ToMend() {
		if err := m.alone(ctx, p); err != nil {
			return "", err
		}
	}
	return class, nil
}

// kept compares one mended data dir with the promise of the plan.
func (m *mending) kept(ctx context.Context, p *plan.Member) error {
	x := m.s.plan.MendOf(p.Source)
	what := fmt.Sprintf("the mended data dir of %s holds what the plan says", p.Name)
	parts, err := evidence.Locate(ctx, evidence.Spec{Name: p.Name, Where: m.dir(p)})
	if err != nil {
		return err
	}
	defer func() { _ = parts.Close() }() // only read
	db, err := dumpdb.Open(parts.DB)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	h, err := db.HashKV(ctx, x.Promise.Revision)
	rev := int64(0)
	if err == nil {
		rev, err = db.CurrentRev()
	}
	switch {
	case err != nil:
		return err
	case rev != x.Promise.Revision || h.Hash != x.Promise.HashKV || h.CompactRev != x.Promise.Compact:
		m.s.out.prove(what, violated, fmt.Sprintf("HashKV is %d at revision %d, compacted at %d; the plan says %d at "+
			"%d, compacted at %d",
			h.Hash, rev, h.CompactRev, x.Promise.HashKV, x.Promise.Revision, x.Promise.Compact))
	default:
		m.s.out.prove(what, holds, fmt.Sprintf("HashKV %d at revision %d", h.Hash, rev))
	}
	return nil
}

// diagnose diagnoses the mended data dirs together with those of the members that remain.
func (m *mending) diagnose(ctx context.Context) (class string, err error) {
	var specs []evidence.Spec
	made := map[string]bool{}
	for _, p := range m.s.plan.ToMend() {
		made[p.Name] = true
		specs = append(specs, evidence.Spec{Name: p.Name, Where: m.dir(p)})
	}
	for _, p := range m.s.plan.BesideMended() {
		spec := m.specs[p.Source]
		spec.Name = p.Name
		specs = append(specs, spec)
	}
	report, err := compare.Diagnose(ctx, specs, compare.Options{Version: m.s.o.Version, Progress: m.s.o.Progress})
	if err == nil {
		err = m.set.Unchanged(ctx)
	}
	if err != nil {
		return "", err
	}
	const what = "diagnose finds no damage in the mended data dirs and no difference to the other members"
	var bad []string
	for i := range report.Findings {
		f := &report.Findings[i]
		if plan.Breaks(f) && f.Class != check.ClassMembership &&
			slices.ContainsFunc(f.Members, func(n string) bool { return made[n] }) {
			bad = append(bad, f.ID+": "+f.Title)
		}
	}
	for i := range report.Members {
		if db := report.Members[i].DB; db != nil {
			m.s.out.Bytes = max(m.s.out.Bytes, db.Size)
		}
	}
	if len(bad) > 0 {
		m.s.out.prove(what, violated, strings.Join(bad, "; "))
		return string(report.Verdict.Class), nil
	}
	m.s.out.prove(what, holds, string(report.Verdict.Class))
	if report.Verdict.Health != check.Healthy {
		m.s.out.Notes = append(m.s.out.Notes, "with the mended data dirs the diagnosis is: "+report.Verdict.Summary)
	}
	return string(report.Verdict.Class), nil
}

// majority reports whether the mended members and those that remain are a majority.
func (m *mending) majority() bool {
	voters := 0
	for _, p := range m.there() {
		if !p.Learner {
			voters++
		}
	}
	return voters >= m.s.plan.Cluster.Quorum
}

func (m *mending) there() []*plan.Member {
	return slices.Concat(m.s.plan.ToMend(), m.s.plan.BesideMended())
}

// copyDir makes the copy that a server runs on.
func (m *mending) copyDir(ctx context.Context, p *plan.Member) error {
	if src := memberLabelled(m.set, p.Source); !slices.Contains(m.s.plan.ToMend(), p) {
		return copies.DataDir(ctx, src, m.st.dataDir(p))
	}
	for _, part := range []string{"wal", "snap"} {
		if err := copies.Folder(ctx, filepath.Join(m.dir(p), "member", part),
			filepath.Join(m.st.dataDir(p), "member", part)); err != nil {
			return err
		}
	}
	return nil
}

// sandbox runs f in a separate sandbox.
func (m *mending) sandbox(ctx context.Context, f func() error) error {
	s := m.s
	dir := filepath.Join(m.st.dir, "sandbox")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	box, err := node.New(ctx, node.Options{Dir: dir, Server: m.server, Isolation: s.o.Isolation,
		Auth:          s.plan.Cluster.Auth,
		UnsafeNoFsync: true, KnownPeers: s.knownPeers(), Log: s.o.Progress})
	if err != nil {
		return err
	}
	m.st.box = box
	m.st.runs, m.st.clients = map[string]*node.Member{}, map[*node.Member]*clientv3.Client{}
	err = f()
	s.out.Isolation = box.Proof().Lines()
	return errors.Join(err, box.Close()) // the copies are thrown away
}

// together starts copies of all present members, as the cluster will.
func (m *mending) together(ctx context.Context) error {
	kept := *m.s.plan // the kept member may be replaced later
	m.r.plan, m.r.some = &kept, nil
	for _, p := range m.there() {
		m.r.some = append(m.r.some, kept.Member(p.Name))
		if err := m.copyDir(ctx, p); err != nil {
			return err
		}
	}
	if !slices.Contains(m.r.some, m.r.best()) || m.r.best().Learner {
		kept.Best.Name = m.r.some[0].Name
	}
	return m.sandbox(ctx, func() error {
		for _, p := range m.r.some {
			if err := m.st.start(ctx, p, startHow{}); err != nil {
				return err
			}
		}
		for _, p := range m.r.some {
			if err := m.st.ready(ctx, p); err != nil {
				return err
			}
		}
		_, err := doVerify(ctx, m.r, nil)
		return err
	})
}

// alone starts a copy of one mended data dir alone: too few members are among the sources for a majority.
func (m *mending) alone(ctx context.Context, p *plan.Member) error {
	if err := m.copyDir(ctx, p); err != nil {
		return err
	}
	x := m.s.plan.MendOf(p.Source)
	kept := *m.s.plan
	kept.Best.Name = p.Name
	m.r.plan, m.r.some = &kept, []*plan.Member{kept.Member(p.Name)}
	return m.sandbox(ctx, func() error {
		if _, err := doForceNew(ctx, m.r, nil); err != nil {
			return err
		}
		what := fmt.Sprintf("a server starts on a copy of the mended data dir of %s, alone with --force-new-cluster, "+
			"and serves what the plan says", p.Name)
		h, err := m.r.hash(ctx, m.r.best(), x.Promise.Revision)
		switch {
		case err != nil:
			m.s.out.prove(what, notChecked, err.Error())
		case h.Hash != x.Promise.HashKV && compactOf(h.CompactRevision) == compactOf(x.Promise.Compact):
			m.s.out.prove(what, violated, fmt.Sprintf("HashKV is %d at revision %d, the plan says %d", h.Hash,
				x.Promise.Revision, x.Promise.HashKV))
		case h.Hash != x.Promise.HashKV:
			m.s.out.prove(what, notChecked, fmt.Sprintf("the server is compacted at %d", h.CompactRevision))
		default:
			m.s.out.prove(what, holds, fmt.Sprintf("HashKV %d at revision %d", h.Hash, x.Promise.Revision))
		}
		return nil
	})
}

// compactOf has one name for "never compacted".
func compactOf(rev int64) int64 { return max(rev, 0) }

// listDirs says where the mended data dirs are and, if nothing failed, how to put them in place.
func (s mendFiles) listDirs(out string, failed error) {
	s.out.Dirs = map[string]string{}
	for _, p := range s.plan.ToMend() {
		dir := filepath.Join(out, p.Folder())
		if _, err := os.Stat(dir); err == nil {
			s.out.Dirs[p.Name] = dir
		}
	}
	if failed == nil && s.out.provenWell() {
		s.install(plan.MendFiles, out)
	}
}

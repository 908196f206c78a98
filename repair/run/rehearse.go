package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// Rehearse does a plan to scratch copies in a sandbox and proves the result. A *refusal.Error means that nothing was
// done, an *UnfinishedError that it stopped at a step that the journal shows.
func Rehearse(ctx context.Context, file string, o Options) (*Outcome, error) {
	s, err := open(file, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	work := s.o.Work
	if work == "" {
		work = file + ".work"
	}
	if err := s.outside(work); err != nil {
		return nil, err
	}
	switch mode := s.rehearsed(); mode {
	case plan.MendFiles:
		err = mendFiles{s}.writeAndProve(ctx, rehearsal, filepath.Join(absolute(work), "mended"), work)
	case plan.Rebuild, plan.Clone:
		err = cloning{s}.rehearse(ctx, mode, work)
	case plan.Reseed:
		err = sandboxRun{s}.do(ctx, rehearsal, work, "")
	default:
		err = s.nothingToTry()
	}
	return s.finish(err, s.emptied(work))
}

// rehearsed is the way that is tried: the requested one, else the plan's; "" if that is not possible.
func (s *session) rehearsed() plan.Mode {
	asked := s.o.Rehearse
	if asked == "" {
		return s.plan.Tried()
	}
	if reseed := s.plan.Way(plan.Reseed); reseed != nil && reseed.Possible &&
		(asked == plan.Reseed || asked == reseed.Uses) {
		return plan.Reseed
	}
	if w := s.plan.Way(asked); w != nil && w.Possible &&
		(asked == plan.MendFiles || asked == plan.Rebuild || asked == plan.Clone) {
		return asked
	}
	return ""
}

// nothingToTry refuses a rehearsal.
func (s *session) nothingToTry() error {
	if s.o.Rehearse != "" {
		return refusal.New("see the ways in the plan", "the plan has no way %s that is possible", s.o.Rehearse)
	}
	return refusal.New("see the steps of the plan", "a plan to %s has no steps that could be tried on copies",
		s.plan.Mode)
}

// sandboxRun is a run of steps on copies in a sandbox: a rehearsal, or the first part of reseeding.
type sandboxRun struct{ *session }

// do does the way's steps to copies below work. The copies are left there, stopped. out is where they are published
// after that, "" if they are thrown away.
func (s sandboxRun) do(ctx context.Context, mode plan.Mode, work, out string) error {
	throwAway := out == ""
	way := s.plan.Way(plan.Reseed)
	if way == nil || !way.Possible {
		return s.nothingToTry()
	}
	steps := s.plan.Way(way.Uses)
	work = absolute(work) // servers run in another folder
	set, err := s.sources(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // only read
	server, err := s.server(ctx, set, true)
	if err != nil {
		return err
	}
	if err := s.checkMendsRows(server.Version, steps); err != nil {
		return err
	}
	if err := s.checkUpgrade(throwAway); err != nil {
		return err
	}
	if err := s.beginOnCopies(ctx, mode, work, s.needs(set), server); err != nil {
		return err
	}
	if err := s.noteCommand(out); err != nil {
		return err
	}
	s.out.Way, s.out.Server = way.Uses, server.String()
	st := &sandboxHost{dir: work, say: s.o.Progress, runs: map[string]*node.Member{},
		clients: map[*node.Member]*clientv3.Client{}, catchUp: 1, patience: 2 * time.Minute}
	st.logs = s.logEnds(set)
	r := newRunner(s.state(), st, s.o.limits)
	r.steps, r.backup = steps.Steps, filepath.Join(work, "backup.db")
	r.sandbox, r.guarded, r.write = true, way.Uses == plan.Live, throwAway
	r.noops = sandboxFillers(server.Version)
	if release.Exact(server.Version.Minor, server.Version.Patch).Has(release.LogTrimmedOften).Excluded() {
		st.snapshotCount = 100
	}
	return s.play(ctx, r, st, set, server)
}

// noteCommand records what the command that continues a reseed needs.
func (s sandboxRun) noteCommand(out string) error {
	if out == "" {
		return nil
	}
	values := map[string]string{"out": absolute(out)}
	if s.o.EtcdBinary != "" {
		values["binary"] = absolute(s.o.EtcdBinary)
	}
	return s.j.write(Record{State: StateNote, Values: values})
}

// play copies the sources, starts the sandbox, does the steps, and compares the resulting data dirs.
func (s sandboxRun) play(ctx context.Context, r *runner, st *sandboxHost, set *evidence.Set, server node.Server) error {
	err := s.phase(ctx, r, copyStep, func() (string, error) { return s.copySources(ctx, st, set) })
	if err != nil {
		return err
	}
	box, err := node.New(ctx, node.Options{Dir: filepath.Join(st.dir, "sandbox"), Server: server,
		Isolation: s.o.Isolation, Auth: s.plan.Cluster.Auth,
		UnsafeNoFsync: true, KnownPeers: s.knownPeers(), Log: s.o.Progress})
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }() // the processes are gone or killed by now
	st.box = box
	err = s.begin(ctx, r, st)
	if err == nil {
		err = r.run(ctx)
	}
	s.out.Isolation = box.Proof().Lines()
	if err != nil {
		return err
	}
	if err := s.always(ctx, r, endStep, func() (string, error) {
		return "",
			st.end(ctx, s.plan, r.write)
	}); err != nil {
		return err
	}
	return s.always(ctx, r, compareStep, func() (string, error) { return dirsProof(s).ofSandbox(ctx, r, st) })
}

// beginOnCopies opens the journal once there is room for the copies, a folder for them, and isolation for the servers
// that run on them.
func (s *session) beginOnCopies(ctx context.Context, mode plan.Mode, work string, need int64,
	server node.Server,
) error {
	if err := copies.Enough(work, need, s.o.room, otherPlace); err != nil {
		return err
	}
	if err := s.freshWork(work); err != nil {
		return err
	}
	if err := s.tryIsolation(ctx, server); err != nil {
		return err
	}
	if err := s.overIfGone(mode, work); err != nil {
		return err
	}
	if err := s.journal(mode); err != nil {
		return err
	}
	return s.state().note("", "work", absolute(work))
}

// overIfGone starts an interrupted run from its first step when its copies are not in the scratch folder any more:
// that was removed, or is another one now.
func (s *session) overIfGone(mode plan.Mode, work string) error {
	records, err := ReadJournal(s.file)
	if err != nil || s.o.Again {
		return err
	}
	copied, was := false, ""
	for _, r := range records {
		switch {
		case r.Mode != mode:
		case r.State == StateEnd || r.State == StateAbandon:
			copied, was = false, ""
		case r.State == StateDone && r.Step == copyStep.ID:
			copied = true
		case r.Values["work"] != "":
			was = r.Values["work"]
		}
	}
	if _, err := os.Lstat(filepath.Join(work, markFile)); !copied || err == nil {
		return nil
	}
	s.o.Again = true
	text := "the copies of the interrupted run are not in " + absolute(work) + ": it starts from its first step"
	if was != "" && was != absolute(work) {
		text += "; what it left in " + was + " can be removed"
	}
	s.out.Notes = append(s.out.Notes, text)
	return nil
}

// tryIsolation checks, before anything is copied, that this machine can isolate servers as requested. So a refusal
// leaves neither copies nor a journal.
func (s *session) tryIsolation(ctx context.Context, server node.Server) error {
	dir, err := scratch.Dir("", "etcd-medic-isolation-")
	if err != nil {
		return err
	}
	box, err := node.New(ctx, node.Options{Dir: dir, Server: server, Isolation: s.o.Isolation,
		KnownPeers: s.knownPeers()})
	if err == nil {
		err = box.Close()
	}
	return errors.Join(err, scratch.Remove(dir))
}

// begin brings the sandbox to the state of the journal.
func (s sandboxRun) begin(ctx context.Context, r *runner, st *sandboxHost) error {
	return s.always(ctx, r, bootStep, func() (string, error) {
		notes, err := st.up(ctx, r, s.out.Way)
		s.out.Notes = append(s.out.Notes, notes...)
		if err != nil || !r.running(ctx, r.best()) {
			return "", err
		}
		return "", r.sameCluster(ctx)
	})
}

// phase is a step of the rehearsal itself; it is not done again once it is done.
func (s *session) phase(ctx context.Context, r *runner, step plan.Step, f func() (string, error)) error {
	if s.j.state(step.ID) == StateDone {
		s.out.add(StepResult{ID: step.ID, Title: step.Title, State: "done before"})
		return nil
	}
	return s.always(ctx, r, step, f)
}

// always is a phase that every process does again.
func (s *session) always(ctx context.Context, r *runner, step plan.Step, f func() (string, error)) error {
	return r.between(ctx, &step, func() (string, string, error) {
		detail, err := f()
		return "done", detail, err
	})
}

// markFile marks a scratch folder of this program.
const markFile = "etcd-medic-scratch"

// copySources makes a new scratch folder and copies every source into it.
func (s sandboxRun) copySources(ctx context.Context, st *sandboxHost, set *evidence.Set) (string, error) {
	if err := os.RemoveAll(st.dir); err != nil { // an earlier run's scratch; freshWork looked at it
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(st.dir, "members"), 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(st.dir, markFile), []byte(s.plan.Digest+"\n"), 0o600); err != nil {
		return "", err
	}
	var bytes int64
	for _, m := range set.Members {
		p := s.bySource(m.Label())
		if p == nil || !p.Startable {
			continue // no server is started on it; the original shows its state
		}
		if err := copies.DataDir(ctx, m, st.dataDir(p)); err != nil {
			return "", err
		}
		bytes += m.Source.Manifest.Bytes
	}
	if err := set.Unchanged(ctx); err != nil {
		return "", err
	}
	return plural.Size(bytes), nil
}

// The steps that a sandbox adds to those of a plan.
var (
	copyStep    = plan.Step{ID: "00-copy", Title: "copy the data dirs to scratch"}
	bootStep    = plan.Step{ID: "01-start", Title: "start the copies"}
	endStep     = plan.Step{ID: "90-stop", Title: "stop the members"}
	compareStep = plan.Step{ID: stepCompare, Title: "compare the data dirs"}
	handOutStep = plan.Step{ID: stepHandOut, Title: "hand the data dirs out"}
)

// checkMendsRows refuses a server that does not mend the rows for which the procedure restarts members.
func (s sandboxRun) checkMendsRows(v node.Version, way *plan.Way) error {
	rule := s.plan.RestartRule()
	if rule == nil || !slices.ContainsFunc(way.Steps, func(x plan.Step) bool { return x.Kind == plan.StepStart }) ||
		!v.Release().Has(rule).Excluded() {
		return nil
	}
	return refusal.New("name a server that does with --etcd-binary: "+s.plan.RestartOn(),
		"etcd %s does not mend bucket members when it starts, and the plan has members restarted for that", v)
}

// checkUpgrade refuses to publish data dirs that the cluster's own servers cannot open any more.
func (s sandboxRun) checkUpgrade(throwAway bool) error {
	if throwAway || s.o.AllowUpgrade || s.out.Raises == "" {
		return nil
	}
	return refusal.New("name the cluster's own server with --etcd-binary, use --mode clone, which leaves versions as "+
		"they are, or accept it with --allow-upgrade", "%s", s.out.Raises)
}

// needs is how much room the copies of all members, their successors and a backup take at most.
func (s sandboxRun) needs(set *evidence.Set) int64 {
	var sources, db int64
	for _, m := range set.Members {
		if s.started(m.Label()) {
			sources += m.Source.Manifest.Bytes
		}
		if m.Label() == s.plan.Best.Name && m.DB != nil && m.DB.Handle != nil {
			db = m.DB.Handle.Size()
		}
	}
	rejoin := 0
	for i := range s.plan.Members {
		if p := &s.plan.Members[i]; p.Rejoins() || p.Action == plan.StandIn {
			rejoin++
		}
	}
	return plan.SandboxNeeds(sources, db, rejoin)
}

// sandboxFillers is how many proposals make a server in the sandbox drop the start of its in-memory log: a little more
// than a hundred entries with its flags. Servers without a flag for the entries after a snapshot keep 5,000 of them.
func sandboxFillers(v node.Version) int {
	if !v.CanSetCatchup() {
		return 5_000 + 250
	}
	return 250
}

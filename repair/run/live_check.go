package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/copies"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// liveCheck compares the running cluster with the plan, before the first step.
type liveCheck struct {
	*liveHost
	// woken is true once members were started because there was no leader.
	woken bool
	// server is what the best member runs.
	server release.Version
}

// preflight compares the running cluster with the plan and reports what an operator should know. Nothing has been
// changed yet, unless an earlier run is continued.
func (f *liveCheck) preflight(ctx context.Context, resumed bool, room func(string) (int64, bool)) error {
	if err := f.meet(ctx, resumed); err != nil {
		return err
	}
	if err := f.check(ctx, resumed); err != nil {
		return err
	}
	if err := f.isRoot(ctx); err != nil {
		return err
	}
	if !resumed {
		if err := f.noDowngrade(ctx); err != nil {
			return err
		}
		if err := f.room(ctx, room); err != nil {
			return err
		}
	}
	notes, err := f.moved(ctx)
	if err != nil {
		return err
	}
	f.r.out.Notes = append(f.r.out.Notes, notes...)
	for _, n := range notes {
		f.o.Notice(n)
	}
	if f.woken {
		return nil
	}
	return f.confirm(ctx, resumed)
}

// confirm asks a person whether to begin.
func (f *liveCheck) confirm(ctx context.Context, resumed bool) error {
	if !f.o.prompted() || resumed {
		return nil
	}
	text := append([]string{fmt.Sprintf("repair of cluster %s: keep %s, %s", f.r.plan.Cluster.ID, f.r.plan.Best.Name,
		f.r.plan.Why)}, "nothing was changed yet; begin?")
	if err := f.o.Prompt(ctx, text); errors.Is(err, ErrStopped) {
		return refusal.New("the same command asks again", "%v before the first step", err)
	} else if err != nil {
		return err
	}
	return nil
}

const planAgain = "this is another cluster, or it changed since its data dirs were copied: copy again and plan again"

// meet finds the members and makes sure that they are those of the plan. Without a quorum the cluster cannot list its
// members, and restarted servers do not answer. In that case meet first runs the plan's steps that start members on
// their own data dirs. All checks come before any other step.
func (f *liveCheck) meet(ctx context.Context, resumed bool) error {
	led, err := f.checkLeaderAndRevision(ctx)
	if err != nil && !errors.Is(err, errNoAnswer) {
		return err
	}
	if resumed && err == nil {
		if err := f.findAdded(ctx); err != nil {
			return err
		}
	}
	if led && !f.waitsForAdded(ctx, resumed) {
		return nil
	}
	for i := range f.r.steps {
		s := &f.r.steps[i]
		added := resumed && f.addedVoter(s)
		if s.Kind != plan.StepStart && !added || f.r.j.state(s.ID) == StateDone {
			continue
		}
		if !f.woken {
			which := "members that are down are started on their own data dirs"
			if added {
				which = "a member that was added, and votes already, is started"
			}
			n := "the cluster has no leader now: " + which + " first; everything is checked after that, before " +
				"anything else is done"
			f.r.out.Notes = append(f.r.out.Notes, n)
			f.o.Notice(n)
			if err := f.confirm(ctx, resumed); err != nil {
				return err
			}
			f.woken = true
		}
		if err := f.r.step(ctx, s); err != nil {
			return err
		}
	}
	if f.woken {
		_, err = f.checkLeaderAndRevision(ctx)
	}
	return err
}

// findAdded records members that an earlier process added without recording that: it was killed before the answer.
func (f *liveCheck) findAdded(ctx context.Context) error {
	for i := range f.r.steps {
		s := &f.r.steps[i]
		if state := f.r.j.state(s.ID); s.Kind != plan.StepAdd || state == "" || state == StateDone {
			continue
		}
		if _, err := f.r.addedIn(f.r.listWithVoter(ctx, f.r.of(s)), s); err != nil {
			return err
		}
	}
	return nil
}

// addedVoter reports whether a step starts a member that votes already.
func (f *liveCheck) addedVoter(s *plan.Step) bool {
	return f.r.makesMajority(s) && f.r.j.value("initial:"+f.r.of(s).Name) != ""
}

// waitsForAdded reports whether the majority lacks a member that was added and never started. For some time after that
// the leader does not notice.
func (f *liveCheck) waitsForAdded(ctx context.Context, resumed bool) bool {
	for i := range f.r.steps {
		if s := &f.r.steps[i]; resumed && f.addedVoter(s) && f.r.j.state(s.ID) != StateDone {
			return !f.r.rule(ctx, aMajority, "", nil).allowed
		}
	}
	return false
}

// checkLeaderAndRevision compares the best member's cluster and revision with the plan and reports whether it knows a
// leader.
func (f *liveCheck) checkLeaderAndRevision(ctx context.Context) (led bool, err error) {
	if err := f.where.locate(ctx); err != nil {
		return false, err
	}
	p := f.r.plan
	goal, err := f.r.goal(ctx)
	if err != nil {
		return false, err
	}
	if id := goal.Header.GetClusterId(); id != uint64(p.Cluster.ID) {
		return false, refusal.New(planAgain, "the running cluster is %x, the plan is for %s", id, p.Cluster.ID)
	}
	if rev := goal.Header.GetRevision(); rev < p.Best.Revision {
		return false, refusal.New(planAgain, "%s is at revision %d, in the plan at %d", p.Best.Name, rev,
			p.Best.Revision)
	}
	f.server = release.Of(goal.Version)
	return goal.Leader != 0, nil
}

// check compares the members of the running cluster with the plan.
func (f *liveCheck) check(ctx context.Context, resumed bool) error {
	list, err := f.r.list(ctx)
	if err != nil {
		return f.unlisted(ctx, err)
	}
	p := f.r.plan
	known := map[uint64]bool{}
	for i := range p.Members {
		m := &p.Members[i]
		known[uint64(m.ID)], known[f.r.idOf(m)] = true, true
		listed := find(list, uint64(m.ID)) != nil || find(list, f.r.idOf(m)) != nil
		if !resumed && !listed && m.Action != plan.Retire && m.Action != plan.Join && m.Action != plan.StandIn &&
			!m.Zombie() {
			return refusal.New(planAgain, "member %s (%s) of the plan is not listed", m.Name, m.ID)
		}
	}
	for _, m := range list {
		if pm := f.r.byID(m.GetID()); pm != nil && len(m.GetClientURLs()) > 0 {
			f.where.listed[pm.Name] = m.GetClientURLs()[0]
			if err := f.where.ownPlace(pm); err != nil {
				return err
			}
		}
		if err := f.comesBack(m.GetID()); err != nil {
			return err
		}
		mine := resumed && slices.ContainsFunc(p.Members,
			func(pm plan.Member) bool { return byPeerURL(list, pm.PeerURLs) == m })
		if !known[m.GetID()] && !mine {
			hint := planAgain
			if resumed {
				hint = f.r.ifUnwanted(m) + "; else " + strings.TrimPrefix(f.r.orBack(), "; ") + " or forward by " +
					"hand, and then plan again from new copies"
			}
			return refusal.New(hint, "the running cluster has a member %s that the plan does not know",
				dumplog.ID(m.GetID()))
		}
	}
	return nil
}

// unlisted refuses a cluster that does not list its members. It names the voters that a majority lacks, and how they
// are started, if that is why.
func (f *liveCheck) unlisted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := f.r.rule(ctx, aMajority, "", nil)
	if now.allowed || len(now.missing) == 0 {
		return refusal.New("check --endpoints and the credentials; the cluster needs a leader",
			"the running cluster does not list its members: %v", err)
	}
	var how []string
	for _, line := range now.bringBack(f.r.plan) {
		how = append(how, strings.TrimSpace(line))
	}
	return refusal.New(strings.ReplaceAll(strings.Join(how, "; "), ":; ", ": ")+"; then run the same command again",
		"the running cluster does not list its members, because %s", now.waits())
}

// comesBack refuses a cluster whose servers list a zombie because they were upgraded, since the data dirs were copied,
// to a release that builds its member list from the database.
func (f *liveCheck) comesBack(id uint64) error {
	m, p := f.r.byID(id), f.r.plan
	if m == nil || !m.Zombie() || p.Removable(m) || !f.server.Above(release.AnyOf(p.Cluster.Minor)) {
		return nil
	}
	return refusal.New("copy the data dirs again and plan again; etcd-medic repair apply PLAN --mode clone on new "+
		"copies removes it, and so does etcd-medic repair meta DATA_DIR --members-from-raft, one stopped member "+
		"after the other", "the servers run etcd %s, which lists %s since bucket members does; no start of theirs "+
		"drops it",
		f.server, m.ID)
}

// isRoot makes a request that only root may make, so that insufficient credentials are found before the first step. The
// answer is not used.
func (f *liveCheck) isRoot(ctx context.Context) error {
	err := f.r.until(ctx, f.r.limits.step, "list of users", func(ctx context.Context) error {
		return f.r.ask(ctx, f.r.best(), func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserList(ctx)
			return err
		})
	})
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return refusal.New("--user of a user with role root and its password, or --cert and --key with CN=root",
		"the credentials do not allow the steps of a repair: %v", err)
}

// noDowngrade refuses to remove members while a downgrade is enabled, as servers from 3.6 on report. It lowers the
// cluster version, and a server without data then refuses to join (server/etcdserver/cluster_util.go,
// allowedVersionRange). It does not end while a member is not started.
func (f *liveCheck) noDowngrade(ctx context.Context) error {
	if !slices.ContainsFunc(f.r.plan.Members, func(m plan.Member) bool { return m.Rejoins() }) {
		return nil
	}
	st, err := f.r.goal(ctx)
	if err != nil || !st.DowngradeInfo.GetEnabled() {
		return err
	}
	return refusal.New("finish it first, or cancel it: "+f.r.etcdctl(shell.Format("downgrade cancel")),
		"a downgrade to %s is enabled: a server without data refuses to join then", st.DowngradeInfo.GetTargetVersion())
}

// room checks that there is space for the snapshots, and that their files do not exist.
func (f *liveCheck) room(ctx context.Context, room func(string) (int64, bool)) error {
	var need int64
	for i := range f.r.steps {
		s := &f.r.steps[i]
		if s.Kind != plan.StepBackup && (s.Kind != plan.StepSave || f.o.SkipSaves) {
			continue
		}
		m := f.r.of(s)
		path := f.r.backup
		if s.Kind == plan.StepSave {
			path = savePath(f.r.backup, m)
		}
		if _, err := os.Lstat(path); err == nil {
			return refusal.New("move it away, or name another file with --backup", "%s exists; nothing is overwritten",
				path)
		}
		if st, err := f.answers(ctx, m); err == nil {
			need += st.DbSize
		}
	}
	return copies.Enough(f.r.backup, need, room, "free some, or name a file elsewhere with --backup")
}

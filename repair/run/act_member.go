package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

func doStart(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	if !r.running(ctx, m) {
		if err := r.host.start(ctx, m, startHow{}); err != nil {
			return "", err
		}
	}
	if err := r.host.ready(ctx, m); err != nil {
		return "", err
	}
	return "", r.mendedRows(ctx, m)
}

func stopped(ctx context.Context, r *runner, s *plan.Step) (bool, error) {
	m := r.of(s)
	if !r.sandbox && m.Action == plan.Retire && len(m.ClientURLs) == 0 {
		return false, nil // it does not answer: the host has to do it
	}
	return r.host.refuses(ctx, m), nil
}

func doStop(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	return "", r.host.stop(ctx, r.of(s))
}

// removed reports whether the old ID is no longer in the member list.
func removed(ctx context.Context, r *runner, s *plan.Step) (bool, error) {
	list, err := r.list(ctx)
	return err == nil && find(list, uint64(r.of(s).ID)) == nil, err
}

func doRemove(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	err := r.until(ctx, r.limits.step, "member remove "+m.ID.String(), func(ctx context.Context) error {
		return r.ask(ctx, r.best(), func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberRemove(ctx, uint64(m.ID))
			if sameError(err, rpctypes.ErrMemberNotFound) {
				return nil // an earlier attempt was answered too late
			}
			return err
		})
	})
	if err != nil {
		return "", err
	}
	gone, err := removed(ctx, r, s)
	if err == nil && !gone {
		err = fmt.Errorf("%s is still listed", m.ID)
	}
	if err != nil {
		return "", err
	}
	return "", r.left.keepRemoved(ctx, s, m)
}

func doSetAside(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	if !r.host.down(ctx, m) {
		return "", fmt.Errorf("%s runs: its data dir stays where it is", m.Name)
	}
	before, after := r.left.oldDirs(m)
	if err := r.left.keepOnly(ctx, s, m, before, false); err != nil {
		return "", err
	}
	where, err := r.moveAside(ctx, m, before, isOldDir(m))
	if err != nil {
		return "", err
	}
	if err := r.left.keepOnly(ctx, s, m, after, true); err != nil {
		return "", err
	}
	r.noteDeleted(ctx, m, after)
	if where == "" {
		return "", ctx.Err()
	}
	return "now " + where, nil
}

// added reports whether the member is listed under a new ID, and records that ID.
func added(ctx context.Context, r *runner, s *plan.Step) (bool, error) {
	list, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	return r.addedIn(list, s)
}

// addedIn is added for a given member list. What the member is started with is recorded too: one that votes at once may
// be what the majority lacks until it runs.
func (r *runner) addedIn(list []*etcdserverpb.Member, s *plan.Step) (bool, error) {
	m := r.of(s)
	now := joined(list, m)
	if now == nil {
		return false, nil
	}
	if err := r.note(s.ID, "id:"+m.Name, hexID(now.GetID())); err != nil {
		return false, err
	}
	return true, r.note(s.ID, "initial:"+m.Name, initialCluster(list, now.GetID(), m.ServerName()))
}

// joined finds a member that was added, nil when its peer URLs are not listed or are those of its old ID.
func joined(list []*etcdserverpb.Member, m *plan.Member) *etcdserverpb.Member {
	now := byPeerURL(list, m.PeerURLs)
	if now.GetID() == uint64(m.ID) && m.Action != plan.Join {
		return nil
	}
	return now
}

// listWithVoter returns the member list if it has a member that votes at once and was added by a call that got no
// answer. Servers that do not know learners list the members without a majority, which may wait for that member.
func (r *runner) listWithVoter(ctx context.Context, m *plan.Member) []*etcdserverpb.Member {
	if r.plan.Cluster.KnowsLearners() {
		return nil
	}
	list, err := r.listOf(ctx, r.best(), true)
	if err != nil || joined(list, m) == nil {
		return nil
	}
	return list
}

func doAdd(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	if len(m.PeerURLs) == 0 {
		return "", fmt.Errorf("no peer URL of %s is known", m.Name)
	}
	if err := r.noOtherLearner(ctx, m); err != nil {
		return "", err
	}
	first, err := r.makeRoom(ctx, s, m)
	if err != nil {
		return "", err
	}
	list, err := r.addMember(ctx, m)
	if err == nil && list == nil {
		list, err = r.list(ctx)
	}
	if err != nil {
		return "", err
	}
	if ok, err := r.addedIn(list, s); err != nil || !ok {
		return "", errors.Join(err, fmt.Errorf("%s is not listed under a new ID", m.Name))
	}
	return first + "new ID " + dumplog.ID(r.idOf(m)).String(), nil
}

// addMember adds a member and returns the member list after that, nil where the answer does not have it.
func (r *runner) addMember(ctx context.Context, m *plan.Member) (list []*etcdserverpb.Member, err error) {
	err = r.until(ctx, r.limits.step, "member add "+strings.Join(m.PeerURLs, ","), func(ctx context.Context) error {
		return r.ask(ctx, r.best(), func(ctx context.Context, c *clientv3.Client) error {
			add := c.MemberAddAsLearner
			if !r.plan.Cluster.KnowsLearners() {
				add = c.MemberAdd
			}
			resp, err := add(ctx, m.PeerURLs)
			switch {
			case err == nil:
				list = resp.Members
				return nil
			case sameError(err, rpctypes.ErrPeerURLExist):
				return nil // an earlier attempt was answered too late
			}
			if list = r.listWithVoter(ctx, m); list != nil {
				return nil // the same
			}
			if r.guarded && sameError(err, rpctypes.ErrUnhealthy) && !r.rule(ctx, everyVoter, "", nil).allowed {
				return permanent{errNotConnected}
			}
			return err
		})
	})
	return list, err
}

func doStartEmpty(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	if r.running(ctx, m) {
		return "", nil
	}
	if err := r.startsEmpty(ctx, m); err != nil {
		return "", err
	}
	if initial := r.j.value("initial:" + m.Name); initial != "" && r.makesMajority(s) &&
		!r.rule(ctx, aMajority, "", nil).allowed {
		return "", r.host.start(ctx, m, startHow{empty: true, initialCluster: initial})
	}
	if err := r.ensureLeader(ctx, s); err != nil {
		return "", err
	}
	list, err := r.list(ctx)
	if err != nil {
		return "", err
	}
	initial := initialCluster(list, r.idOf(m), m.ServerName())
	if err := r.note(s.ID, "initial:"+m.Name, initial); err != nil {
		return "", err
	}
	return "", r.host.start(ctx, m, startHow{empty: true, initialCluster: initial})
}

// makesMajority reports whether a step starts a member that votes already: without learners it does so as soon as it is
// added. Of two voters that is the vote that the majority lacks.
func (r *runner) makesMajority(s *plan.Step) bool {
	return s.Kind == plan.StepStartEmpty && !r.plan.Cluster.KnowsLearners()
}

// initialCluster is the flag --initial-cluster for a member that joins: all listed members, itself under its own name.
func initialCluster(list []*etcdserverpb.Member, id uint64, name string) string {
	var parts []string
	for _, m := range list {
		n := m.GetName()
		if m.GetID() == id {
			n = name
		}
		for _, u := range m.GetPeerURLs() {
			parts = append(parts, n+"="+u)
		}
	}
	return strings.Join(parts, ",")
}

func promoted(ctx context.Context, r *runner, s *plan.Step) (bool, error) {
	list, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	m := find(list, r.idOf(r.of(s)))
	if m == nil {
		err := cmp.Or(r.unlisted(ctx, r.of(s)), fmt.Errorf("%s (%x) is not listed", s.Member, r.idOf(r.of(s))))
		return false, r.joinsAgain(r.of(s), err)
	}
	// A voter that was promoted in an earlier process still has to prove its content.
	return !m.GetIsLearner() && r.j.value("promoted:"+s.Member) != "", nil
}

func doPromote(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	id := r.idOf(m)
	err := r.until(ctx, r.limits.step, "member promote "+hexID(id), func(ctx context.Context) error {
		return r.ask(ctx, r.best(), func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberPromote(ctx, id)
			if sameError(err, rpctypes.ErrMemberNotLearner) {
				return nil
			}
			return err
		})
	})
	if err != nil {
		return "", err
	}
	if err := r.linearizable(ctx, m); err != nil {
		return "", err
	}
	detail, err := r.sameHash(ctx, []*plan.Member{r.best(), m})
	if err != nil {
		return "", err
	}
	return detail, r.note(s.ID, "promoted:"+m.Name, "yes")
}

// doForceNew makes the best member a cluster of one.
func doForceNew(ctx context.Context, r *runner, _ *plan.Step) (string, error) {
	best := r.best()
	if r.running(ctx, best) {
		if err := r.host.stop(ctx, best); err != nil {
			return "", err
		}
	}
	for _, how := range []startHow{{forceNew: true}, {}} {
		if err := r.host.start(ctx, best, how); err != nil {
			return "", err
		}
		if err := r.host.ready(ctx, best); err != nil {
			return "", err
		}
		if how.forceNew {
			if err := r.host.stop(ctx, best); err != nil {
				return "", err
			}
		}
	}
	list, err := r.list(ctx)
	if err == nil && (len(list) != 1 || list[0].GetID() != uint64(best.ID)) {
		err = fmt.Errorf("%d members are listed, want %s alone", len(list), best.ID)
	}
	return "", err
}

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// doWait waits until the new member holds the leader's database. A learner answers Status and serializable reads only,
// so before the promotion it is compared with the best member by applied index, revision and number of keys. HashKV
// follows with the promotion.
func doWait(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	if err := r.ensureLeader(ctx, s); err != nil {
		return "", err
	}
	if err := r.unlisted(ctx, m); err != nil {
		return "", r.joinsAgain(m, err)
	}
	stop := r.keepAwake(ctx)
	defer stop()
	if err := r.startAgain(ctx, m); err != nil {
		return "", err
	}
	detail, err := r.holdsAll(ctx, m)
	if errors.Is(err, errTokensOff) {
		if err = r.enableTokens(ctx, s, m); err == nil {
			detail, err = r.holdsAll(ctx, m)
		}
	}
	return detail, r.joinsAgain(m, err)
}

// joinsAgain records that a member has to be added once more if it was removed since: the next run begins there.
func (r *runner) joinsAgain(m *plan.Member, err error) error {
	if !errors.Is(err, errUnlisted) {
		return err
	}
	for _, kind := range []plan.StepKind{plan.StepSetAside, plan.StepAdd, plan.StepStartEmpty} {
		if s := r.stepOf(kind, m.Name); s != nil {
			err = errors.Join(err, r.j.write(Record{State: StateFailed, Step: s.ID, Detail: errUnlisted.Error()}))
		}
	}
	// what abort says must not name them
	return errors.Join(err, r.note("", "id:"+m.Name, ""), r.note("", "initial:"+m.Name, ""))
}

// errUnlisted ends the wait for a member that joined and was removed since.
var errUnlisted = errors.New("the cluster lists a new member no more, someone has removed it")

// unlisted returns an error if the cluster lists a member no more that this run has added. It says nothing if the
// cluster does not answer now.
func (cl *cluster) unlisted(ctx context.Context, m *plan.Member) error {
	id := cl.idOf(m)
	if id == uint64(m.ID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cl.limits.call)
	defer cancel()
	var list []*etcdserverpb.Member
	err := cl.ask(ctx, cl.queryMember(), func(ctx context.Context, c *clientv3.Client) error {
		resp, err := c.MemberList(ctx)
		if err == nil {
			list = resp.Members
		}
		return err
	})
	if err != nil || find(list, id) != nil {
		return nil //nolint:nilerr // the wait itself says what does not answer
	}
	return permanent{fmt.Errorf("%w: %s (%s). The same command adds it once more; is someone else at work?",
		errUnlisted, m.Name, hexID(id))}
}

// holdsAll waits until a started member has what the best member has now.
func (r *runner) holdsAll(ctx context.Context, m *plan.Member) (string, error) {
	wait, cancel := context.WithTimeout(ctx, r.limits.transfer)
	defer cancel()
	if err := r.host.ready(wait, m); err != nil {
		return "", err
	}
	goal, err := r.goal(ctx)
	if err != nil {
		return "", err
	}
	detail, err := r.catchUp(ctx, m, goal)
	if err != nil {
		return "", err
	}
	return detail, r.sameCount(ctx, m, goal.Header.GetRevision())
}

// startAgain starts a new member whose process ended since its start step. A member that this run has started may need
// time to open its port. The run waits for it and does not start it a second time.
func (r *runner) startAgain(ctx context.Context, m *plan.Member) error {
	if r.running(ctx, m) || !r.sandbox && r.startedNow(m) {
		return nil
	}
	if err := r.startsEmpty(ctx, m); err != nil {
		return err
	}
	initial := r.j.value("initial:" + m.Name)
	if list, unconfirmed, err := r.listNow(ctx); err == nil && unconfirmed == "" && find(list, r.idOf(m)) != nil {
		initial = initialCluster(list, r.idOf(m), m.ServerName()) // someone may have changed it since
	}
	return r.host.start(ctx, m, startHow{empty: true, initialCluster: initial})
}

// catchUp waits until a member has applied what the best member had at goal, as long as it moves.
func (r *runner) catchUp(ctx context.Context, m *plan.Member, goal *clientv3.StatusResponse) (detail string,
	err error) {
	var last uint64
	moved, tokens := time.Now(), r.watchTokens(m)
	err = r.until(ctx, r.limits.transfer, m.Name+" catches up", func(ctx context.Context) error {
		st, err := r.status(ctx, m)
		if err = tokens.look(err); err != nil {
			return err
		}
		if st.RaftAppliedIndex != last {
			last, moved = st.RaftAppliedIndex, time.Now()
		}
		if time.Since(moved) > r.limits.step {
			return never("it stays at applied index %d, %s is at %d", last, r.best().Name, goal.RaftAppliedIndex)
		}
		if st.RaftAppliedIndex < goal.RaftAppliedIndex {
			return fmt.Errorf("applied %d of %d", st.RaftAppliedIndex, goal.RaftAppliedIndex)
		}
		if st.Header.GetRevision() < goal.Header.GetRevision() {
			return never("it has applied entry %d and is at revision %d; %s is at %d: it was sent the log and not "+
				"the database, and the log leads to another state",
				st.RaftAppliedIndex, st.Header.GetRevision(), r.best().Name, goal.Header.GetRevision())
		}
		detail = fmt.Sprintf("applied %d, revision %d, database %s", st.RaftAppliedIndex, st.Header.GetRevision(),
			plural.Size(st.DbSize))
		r.out.Bytes = max(r.out.Bytes, st.DbSize)
		return nil
	})
	return detail, err
}

// errHashes says that contents differ: the repair stops.
var errHashes = errors.New("the members do not hold the same")

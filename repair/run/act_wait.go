package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	return detail, err
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
	return r.host.start(ctx, m, startHow{empty: true, initialCluster: r.j.value("initial:" + m.Name)})
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
		detail = fmt.Sprintf("applied %d, revision %d, database %d MiB", st.RaftAppliedIndex, st.Header.GetRevision(),
			st.DbSize>>20)
		r.out.Bytes = max(r.out.Bytes, st.DbSize)
		return nil
	})
	return detail, err
}

// errHashes says that contents differ: the repair stops.
var errHashes = errors.New("the members do not hold the same")

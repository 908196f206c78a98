package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	if r.host.running(ctx, m) || !r.sandbox && r.startedNow(m) {
		return nil
	}
	return r.host.start(ctx, m, startHow{empty: true, initialCluster: r.j.value("initial:" + m.Name)})
}

// startedNow reports whether this run, not an earlier one, did the step that starts a new member.
func (r *runner) startedNow(m *plan.Member) bool {
	st := r.stepOf(plan.StepStartEmpty, m.Name)
	return st != nil && slices.ContainsFunc(r.out.Steps, func(d StepResult) bool {
		return d.ID == st.ID && d.State == "done"
	})
}

// catchUp waits until a member has applied what the best member had at goal, as long as it moves.
func (r *runner) catchUp(ctx context.Context, m *plan.Member, goal *clientv3.StatusResponse) (detail string,
	err error) {
	var last uint64
	moved := time.Now()
	err = r.until(ctx, r.limits.transfer, m.Name+" catches up", func(ctx context.Context) error {
		st, err := r.status(ctx, m)
		if err != nil {
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

// goal is the present state of the best member.
func (r *runner) goal(ctx context.Context) (*clientv3.StatusResponse, error) {
	var st *clientv3.StatusResponse
	err := r.until(ctx, r.limits.step, "status of "+r.best().Name, func(ctx context.Context) (err error) {
		st, err = r.status(ctx, r.best())
		return err
	})
	return st, err
}

// sameCount compares how many keys both hold at one revision.
func (r *runner) sameCount(ctx context.Context, m *plan.Member, rev int64) error {
	var counts [2]int64
	for i, who := range []*plan.Member{r.best(), m} {
		err := r.until(ctx, r.limits.step, "number of keys on "+who.Name, func(ctx context.Context) error {
			return r.ask(ctx, who, func(ctx context.Context, c *clientv3.Client) error {
				resp, err := c.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(rev), clientv3.WithCountOnly(),
					clientv3.WithSerializable())
				if err == nil {
					counts[i] = resp.Count
				}
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	if counts[0] != counts[1] {
		return fmt.Errorf("at revision %d %s holds %d keys and %s %d", rev, r.best().Name, counts[0], m.Name, counts[1])
	}
	return nil
}

// errHashes says that contents differ: the repair stops.
var errHashes = errors.New("the members do not hold the same")

// sameHash compares HashKV of members at the highest revision that all of them have.
func (r *runner) sameHash(ctx context.Context, members []*plan.Member) (string, error) {
	var detail string
	err := r.until(ctx, r.limits.step, "HashKV", func(ctx context.Context) error {
		rev := int64(0)
		for _, m := range members {
			st, err := r.status(ctx, m)
			if err != nil {
				return err
			}
			if n := st.Header.GetRevision(); rev == 0 || n < rev {
				rev = n
			}
		}
		var first *clientv3.HashKVResponse
		for _, m := range members {
			h, err := r.hash(ctx, m, rev)
			if err != nil {
				return err
			}
			if first == nil {
				first = h
			}
			if h.CompactRevision != first.CompactRevision {
				return fmt.Errorf("%s is compacted at %d, %s at %d", members[0].Name, first.CompactRevision, m.Name,
					h.CompactRevision)
			}
			if h.Hash != first.Hash {
				return permanent{fmt.Errorf("%w: at revision %d HashKV is %d on %s and %d on %s", errHashes, rev,
					first.Hash, members[0].Name, h.Hash, m.Name)}
			}
		}
		detail = fmt.Sprintf("HashKV %d at revision %d", first.Hash, rev)
		return nil
	})
	return detail, err
}

func (r *runner) hash(ctx context.Context, m *plan.Member, rev int64) (*clientv3.HashKVResponse, error) {
	c, endpoint, err := r.host.client(m)
	if err != nil {
		return nil, err
	}
	return c.HashKV(ctx, endpoint, rev)
}

package run

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// leads reports whether the best member leads.
func leads(ctx context.Context, r *runner, _ *plan.Step) (bool, error) {
	var lead bool
	err := r.until(ctx, r.limits.step, "status of "+r.best().Name, func(ctx context.Context) error {
		st, err := r.status(ctx, r.best())
		if err == nil && st.Leader == 0 {
			return errors.New("no leader yet")
		}
		lead = err == nil && st.Leader == st.Header.GetMemberId()
		return err
	})
	return lead, err
}

// doMoveLeader asks the leader to hand over; other members answer that they do not lead.
func doMoveLeader(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	best := r.best()
	from := ""
	err := r.until(ctx, r.limits.step, "move-leader", func(ctx context.Context) error {
		st, err := r.status(ctx, best)
		if err != nil {
			return err
		}
		id := st.Header.GetMemberId()
		if st.Leader == id {
			return nil
		}
		l := r.byID(st.Leader)
		if l == nil {
			return fmt.Errorf("the leader %x is not at hand", st.Leader)
		}
		from = l.Name
		err = r.ask(ctx, l, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MoveLeader(ctx, id)
			return err
		})
		switch {
		case refusesUs(err):
			return never("%s leads, and refuses the login (%w): stop it until another member leads, start it again, "+
				"and run the same command", l.Name, err)
		case err != nil:
			return err
		}
		return errors.New("moved, not yet seen by " + best.Name)
	})
	if err != nil || from == "" {
		return "", err
	}
	return "from " + from, nil
}

// ensureLeader moves the leadership back if it has changed: the leader sends its database to new members.
func (r *runner) ensureLeader(ctx context.Context, s *plan.Step) error {
	ok, err := leads(ctx, r, s)
	if err != nil || ok {
		return err
	}
	_, err = doMoveLeader(ctx, r, s)
	return err
}

// fillerBatch is how many proposals are under way at once.
const fillerBatch = 16

// doAdvanceLog proposes alarm lists: they go through raft and change neither revision nor hash.
func doAdvanceLog(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	if err := r.ensureLeader(ctx, s); err != nil {
		return "", err
	}
	if r.noops == 0 {
		return "not needed: the log no longer starts at index 1", nil
	}
	before, err := r.raftIndex(ctx)
	if err != nil {
		return "", err
	}
	for sent := 0; sent < r.noops; sent += fillerBatch {
		errs := make(chan error, fillerBatch)
		for range fillerBatch {
			go func() { errs <- r.noop(ctx) }()
		}
		for range fillerBatch {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return "", err
		}
	}
	after, err := r.raftIndex(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("raft index %d to %d", before, after), nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// errTokensOff ends a wait for a new member that refuses every token. Servers with the defect TokensStopAtSnapshot do
// so once they have received a database with auth, until their next start.
var errTokensOff = errors.New("it refuses every token")

// tokenWatch tracks since when a member gives no answer but that it refuses a token, or none before the time limit: a
// client that logs in by itself tries other tokens until then.
type tokenWatch struct {
	limit   time.Duration // zero: it is not tracked
	since   time.Time
	refuses func() bool // finds out whether tokens are the reason
}

// watchTokens is for a new member that can have the defect, and that was not restarted for it.
func (cl *cluster) watchTokens(m *plan.Member) tokenWatch {
	if cl.sandbox || !cl.mayStopTokens() || cl.j.value(restartedFor(m)) != "" {
		return tokenWatch{}
	}
	return tokenWatch{limit: cl.limits.tokens, refuses: func() bool { return cl.host.refusesTokens(m) }}
}

func restartedFor(m *plan.Member) string { return "restarted:" + m.Name }

// look returns the error of a request, or errTokensOff if tokens have been refused for too long.
func (w *tokenWatch) look(err error) error {
	switch {
	case !sameError(err, rpctypes.ErrInvalidAuthToken) && !errors.Is(err, context.DeadlineExceeded):
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = time.Now()
	case w.limit > 0 && time.Since(w.since) > w.limit:
		if w.refuses() {
			return permanent{errTokensOff}
		}
		w.since = time.Now()
	}
	return err
}

// mayStopTokens reports whether servers of the cluster can have the defect.
func (s *runState) mayStopTokens() bool {
	return s.plan.Cluster.Has(release.TokensStopAtSnapshot).Possible()
}

// refusesTokens says what the defect does.
func refusesTokens() string {
	return fmt.Sprintf("refuses every token, as servers of %s do once they have received a database with auth",
		release.TokensStopAtSnapshot.In)
}

// enableTokens restarts a new member that refuses every token, once, if the cluster can do without it.
func (r *runner) enableTokens(ctx context.Context, s *plan.Step, m *plan.Member) error {
	why := m.Name + " " + refusesTokens()
	if now := r.count(ctx).mayStop(m.Name, r.idOf(m), true); !now.allowed {
		return fmt.Errorf("%s: restart it, and run the same command again; that is not done here because %s", why,
			now.waits())
	}
	if err := r.note(s.ID, restartedFor(m), time.Now().UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	r.notice(why + ": it is restarted once")
	if err := r.host.stop(ctx, m); err != nil {
		return err
	}
	return r.host.start(ctx, m, startHow{})
}

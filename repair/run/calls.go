package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// transient reports whether trying again may help: elections, strict reconfiguration checks that require connected
// members, learners that still catch up.
func transient(err error) bool {
	for _, e := range []error{rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrMemberNotEnoughStarted,
		rpctypes.ErrNotLeader,
		rpctypes.ErrUnhealthy, rpctypes.ErrTooManyRequests, rpctypes.ErrTimeoutWaitAppliedIndex} {
		if sameError(err, e) {
			return true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	if strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)) {
		return true // promoted, but it does not know that yet
	}
	code := status.Code(err)
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		code = e.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled:
		return true
	case codes.Unknown: // ours, "not yet"; a server's own unknown errors are not of that type
		return !errors.As(err, &e)
	}
	return false
}

// sameError compares by message: clients of each release wrap server errors differently.
func sameError(err, e error) bool {
	return err != nil && (errors.Is(err, e) || rpctypes.Error(err).Error() == rpctypes.Error(e).Error())
}

// ask calls f with a client of m.
func (r *runner) ask(ctx context.Context, m *plan.Member, f func(ctx context.Context, c *clientv3.Client) error) error {
	c, _, err := r.host.client(m)
	if err != nil {
		return err
	}
	return f(ctx, c)
}

func (r *runner) status(ctx context.Context, m *plan.Member) (*clientv3.StatusResponse, error) {
	c, endpoint, err := r.host.client(m)
	if err != nil {
		return nil, err
	}
	return c.Status(ctx, endpoint)
}

// queryMember is the member that is asked about the cluster: the best one, or a voter if that is a learner, which
// answers few requests.
func (r *runner) queryMember() *plan.Member {
	best := r.best()
	if best.Learner {
		for _, m := range r.present() {
			if !m.Learner {
				return m
			}
		}
	}
	return best
}

// list returns the member list, linearized.
func (r *runner) list(ctx context.Context) ([]*etcdserverpb.Member, error) {
	var out []*etcdserverpb.Member
	err := r.until(ctx, r.limits.step, "member list", func(ctx context.Context) error {
		return r.ask(ctx, r.queryMember(), func(ctx context.Context, c *clientv3.Client) error {
			l, err := c.MemberList(ctx)
			if err == nil {
				out = l.Members
			}
			return err
		})
	})
	return out, err
}

// sameCluster makes sure that the servers run the given cluster, and did not bootstrap a new one.
func (r *runner) sameCluster(ctx context.Context) error {
	st, err := r.goal(ctx)
	if err != nil {
		return err
	}
	if id := st.Header.GetClusterId(); id != uint64(r.plan.Cluster.ID) {
		return fmt.Errorf("%s serves cluster %x, the plan is for %s", r.best().Name, id, r.plan.Cluster.ID)
	}
	return nil
}

// idOf is the present ID of a member: the one assigned when it was added again, else that of the plan.
func (r *runner) idOf(m *plan.Member) uint64 {
	if v := r.j.value("id:" + m.Name); v != "" {
		var id dumplog.ID
		if id.UnmarshalText([]byte(v)) == nil {
			return uint64(id)
		}
	}
	return uint64(m.ID)
}

func find(list []*etcdserverpb.Member, id uint64) *etcdserverpb.Member {
	for _, m := range list {
		if m.GetID() == id {
			return m
		}
	}
	return nil
}

// byPeerURL finds a member with one of these peer URLs.
func byPeerURL(list []*etcdserverpb.Member, urls []string) *etcdserverpb.Member {
	for _, m := range list {
		for _, u := range m.GetPeerURLs() {
			if slices.Contains(urls, u) {
				return m
			}
		}
	}
	return nil
}

func hexID(id uint64) string { return fmt.Sprintf("%x", id) }

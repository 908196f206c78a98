package run

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// cluster asks the members for what they hold.
type cluster struct {
	*runState
	host   host
	limits limits
	// sandbox is true when the members are copies.
	sandbox bool
	// clones is true when the members are clones: a voter that never started is still listed.
	clones bool
	// some are the present members, nil for all that the plan keeps.
	some []*plan.Member
}

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

// refusesUs reports whether a server answered and refuses the user, as it does once auth was turned on or the password
// was changed. Waiting does not change that.
func refusesUs(err error) bool {
	for _, e := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound,
		rpctypes.ErrPermissionDenied} {
		if sameError(err, e) {
			return true
		}
	}
	return false
}

// sameError compares by message: clients of each release wrap server errors differently.
func sameError(err, e error) bool {
	return err != nil && (errors.Is(err, e) || rpctypes.Error(err).Error() == rpctypes.Error(e).Error())
}

// running reports whether a member serves, as far as its host knows.
func (cl *cluster) running(ctx context.Context, m *plan.Member) bool {
	return cl.host.serves(ctx, m) == nil
}

// silence says why a member is not asked further, given what its host says of it.
func (cl *cluster) silence(m *plan.Member, why error) string {
	switch {
	case refusesUs(why):
		return "it refuses the login: " + why.Error()
	case cl.mayStopTokens() && sameError(why, rpctypes.ErrInvalidAuthToken):
		return "it " + refusesTokens() + ", until they are restarted"
	}
	text := "it does not answer"
	if at := cl.host.place(m); at != "" {
		text += " at " + at
	}
	if badCertificate(why) {
		text += ": " + why.Error()
	}
	return text
}

// badCertificate reports whether one side refused the other's certificate, as it does once that has expired.
func badCertificate(err error) bool {
	_, ours := errors.AsType[*tls.CertificateVerificationError](err)
	theirs, is := errors.AsType[*net.OpError](err)
	return ours || is && theirs.Op == "remote error"
}

// ask calls f with a client of m.
func (cl *cluster) ask(ctx context.Context, m *plan.Member,
	f func(ctx context.Context, c *clientv3.Client) error) error {
	c, _, err := cl.host.client(m)
	if err != nil {
		return err
	}
	return cl.tokenChecked(m, f(ctx, c))
}

// tokenChecked forgets the client of m when its token is refused, and marks the error as worth another try. A token can
// be valid for only a few seconds, and the client of a learner cannot renew its own.
func (cl *cluster) tokenChecked(m *plan.Member, err error) error {
	if !sameError(err, rpctypes.ErrInvalidAuthToken) && !sameError(err, rpctypes.ErrAuthOldRevision) {
		return err
	}
	cl.host.forget(m)
	return notYet{err}
}

func (cl *cluster) status(ctx context.Context, m *plan.Member) (*clientv3.StatusResponse, error) {
	c, endpoint, err := cl.host.client(m)
	if err != nil {
		return nil, err
	}
	st, err := c.Status(ctx, endpoint)
	return st, cl.tokenChecked(m, err)
}

// queryMember is the member that is asked about the cluster: the best one, or a voter if that is a learner, which
// answers few requests.
func (cl *cluster) queryMember() *plan.Member {
	best := cl.best()
	if best.Learner {
		for _, m := range cl.present() {
			if !m.Learner {
				return m
			}
		}
	}
	return best
}

// list returns the member list, linearized.
func (cl *cluster) list(ctx context.Context) ([]*etcdserverpb.Member, error) {
	var out []*etcdserverpb.Member
	err := cl.until(ctx, cl.limits.step, "member list", func(ctx context.Context) error {
		return cl.ask(ctx, cl.queryMember(), func(ctx context.Context, c *clientv3.Client) error {
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
func (cl *cluster) sameCluster(ctx context.Context) error {
	st, err := cl.goal(ctx)
	if err != nil {
		return err
	}
	if id := st.Header.GetClusterId(); id != uint64(cl.plan.Cluster.ID) {
		return fmt.Errorf("%s serves cluster %x, the plan is for %s", cl.best().Name, id, cl.plan.Cluster.ID)
	}
	return nil
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

// until retries f until it succeeds, the limit is reached or the error is permanent.
func (cl *cluster) until(ctx context.Context, limit time.Duration, what string,
	f func(ctx context.Context) error) error {
	end := time.Now().Add(limit)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	defer progress.Wait(ctx, what).End()
	var before error
	for {
		call, done := context.WithTimeout(ctx, cl.limits.call)
		err := f(call)
		done()
		// An error caused by the time limit itself says nothing. A connection may notice the limit before ctx does.
		if err != nil && before != nil && (ctx.Err() != nil || !time.Now().Before(end)) {
			err = before
		}
		before = err
		var p permanent
		switch {
		case err == nil:
			return nil
		case errors.As(err, &p):
			return fmt.Errorf("%s: %w", what, p.err)
		case !transient(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) { // its cause may be a signal
				return ctx.Err()
			}
			return fmt.Errorf("%s: not within %v: %w", what, limit, err)
		case <-time.After(cl.limits.poll):
		}
	}
}

// present are the members that the cluster must have at the end of the repair.
func (cl *cluster) present() []*plan.Member {
	if cl.some != nil {
		return cl.some
	}
	var out []*plan.Member
	for i := range cl.plan.Members {
		m := &cl.plan.Members[i]
		if cl.clones && m.Action == plan.StandIn || !cl.clones && m.Standby != "" {
			continue // clones keep the members, else one takes the place of the other
		}
		if m.Action != plan.Remove && m.Action != plan.Retire &&
			(m.Source != "" || m.Action != plan.Keep || !cl.sandbox) {
			out = append(out, m)
		}
	}
	return out
}

// goal is the present state of the best member.
func (cl *cluster) goal(ctx context.Context) (*clientv3.StatusResponse, error) {
	var st *clientv3.StatusResponse
	err := cl.until(ctx, cl.limits.step, "status of "+cl.best().Name, func(ctx context.Context) (err error) {
		st, err = cl.status(ctx, cl.best())
		return err
	})
	return st, err
}

func (cl *cluster) raftIndex(ctx context.Context) (uint64, error) {
	var index uint64
	err := cl.until(ctx, cl.limits.step, "status of "+cl.best().Name, func(ctx context.Context) error {
		st, err := cl.status(ctx, cl.best())
		if err == nil {
			index = st.RaftIndex
		}
		return err
	})
	return index, err
}

func (cl *cluster) noop(ctx context.Context) error {
	return cl.until(ctx, cl.limits.step, "alarm list", func(ctx context.Context) error {
		return cl.ask(ctx, cl.best(), func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.AlarmList(ctx)
			return err
		})
	})
}

// keepAwake proposes something every half second until stop is called: a learner that got a snapshot with an index
// above 5,000 counts its applied index only with the next entry, and refuses everything until then.
func (cl *cluster) keepAwake(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			// one that gets lost must not keep the next from being sent
			call, end := context.WithTimeout(ctx, cl.limits.call)
			_ = cl.ask(call, cl.best(), func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.AlarmList(ctx)
				return err
			})
			end()
			select {
			case <-ctx.Done():
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// linearizable reads through a member with the consent of the leader, which proves that it takes part in the cluster.
func (cl *cluster) linearizable(ctx context.Context, m *plan.Member) error {
	return cl.until(ctx, cl.limits.step, "linearizable read through "+m.Name, func(ctx context.Context) error {
		return cl.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Get(ctx, "etcd-medic", clientv3.WithCountOnly())
			return err
		})
	})
}

// noOtherLearner: servers refuse a second learner, and a learner that this run did not add means that someone else
// changes the cluster. m is the member that is added: it may be there already when a call got no answer.
func (cl *cluster) noOtherLearner(ctx context.Context, m *plan.Member) error {
	list, err := cl.list(ctx)
	if err != nil {
		return err
	}
	mine := joined(list, m)
	for _, l := range list {
		if l.GetIsLearner() && l != mine {
			return ifUntouched(mine == nil, fmt.Errorf("member %x is a learner already, and not one of this step: is "+
				"someone else at work? %s", l.GetID(), cl.ifUnwanted(l)))
		}
	}
	return nil
}

// ifUnwanted says what to do about a member that someone else has added.
func (cl *cluster) ifUnwanted(m *etcdserverpb.Member) string {
	return fmt.Sprintf("if %s (%s) is not wanted: %s, and run the same command again", hexID(m.GetID()),
		strings.Join(m.GetPeerURLs(), ", "), cl.etcdctl(shell.Format("member remove {}", hexID(m.GetID()))))
}

// etcdctl is a command for the best member, at the URL where this run reaches it.
func (cl *cluster) etcdctl(args shell.Command) string {
	best := *cl.best()
	if e := cl.host.place(&best); e != "" {
		best.ClientURLs = []string{e}
	}
	return plan.Etcdctl(&best).Then(args).String()
}

// mendedRows requires a server that mends bucket members if the plan restarts the member for that.
func (cl *cluster) mendedRows(ctx context.Context, m *plan.Member) error {
	rule := cl.plan.RestartRule()
	if rule == nil || m.RestartOn == "" {
		return nil
	}
	st, err := cl.status(ctx, m)
	if err != nil {
		return err
	}
	v, err := release.Parse(st.Version)
	if err != nil || !v.Has(rule).Excluded() {
		return nil // an unknown version may be one that does
	}
	return fmt.Errorf("%s runs on etcd %s, which does not mend bucket members when it starts: stop it, put %s in its "+
		"place, start it, and run the same command again", m.Name, st.Version, m.RestartOn)
}

func (cl *cluster) hash(ctx context.Context, m *plan.Member, rev int64) (*clientv3.HashKVResponse, error) {
	c, endpoint, err := cl.host.client(m)
	if err != nil {
		return nil, err
	}
	return c.HashKV(ctx, endpoint, rev)
}

// sameHash compares HashKV of members at the highest revision that all of them have.
func (cl *cluster) sameHash(ctx context.Context, members []*plan.Member) (string, error) {
	var detail string
	err := cl.until(ctx, cl.limits.step, "HashKV", func(ctx context.Context) error {
		rev := int64(0)
		for _, m := range members {
			st, err := cl.status(ctx, m)
			if err != nil {
				return err
			}
			if n := st.Header.GetRevision(); rev == 0 || n < rev {
				rev = n
			}
		}
		var first *clientv3.HashKVResponse
		for _, m := range members {
			h, err := cl.hash(ctx, m, rev)
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

// sameCount compares how many keys both hold at one revision.
func (cl *cluster) sameCount(ctx context.Context, m *plan.Member, rev int64) error {
	var counts [2]int64
	for i, who := range []*plan.Member{cl.best(), m} {
		var tokens tokenWatch
		if who == m {
			tokens = cl.watchTokens(m)
		}
		err := cl.until(ctx, cl.limits.step, "number of keys on "+who.Name, func(ctx context.Context) error {
			return tokens.look(cl.ask(ctx, who, func(ctx context.Context, c *clientv3.Client) error {
				resp, err := c.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(rev), clientv3.WithCountOnly(),
					clientv3.WithSerializable())
				if err == nil {
					counts[i] = resp.Count
				}
				return err
			}))
		})
		if err != nil {
			return err
		}
	}
	if counts[0] != counts[1] {
		return fmt.Errorf("at revision %d %s holds %d keys and %s %d", rev, cl.best().Name, counts[0], m.Name,
			counts[1])
	}
	return nil
}

func (cl *cluster) serializable(ctx context.Context, m *plan.Member, key string) (kv *mvccpb.KeyValue, err error) {
	resp, err := cl.serializably(ctx, m, key)
	if err == nil && len(resp.Kvs) > 0 {
		kv = resp.Kvs[0]
	}
	return kv, err
}

// serializably reads from the member's own database.
func (cl *cluster) serializably(ctx context.Context, m *plan.Member, key string,
	opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	opts = append(opts, clientv3.WithSerializable())
	err = cl.until(ctx, cl.limits.step, "read from "+m.Name, func(ctx context.Context) error {
		return cl.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) (err error) {
			resp, err = c.Get(ctx, key, opts...)
			return err
		})
	})
	return resp, err
}

package watch

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// client is a running member at one endpoint. It connects on first use, and again after a failed login.
type client struct {
	endpoint string
	// page requests a page from the endpoint over HTTP; nil if it has no address.
	page    func(ctx context.Context, path string) ([]byte, error)
	dial    func(ctx context.Context) (*clientv3.Client, error)
	because func(context.Context, error) error // finds out why the endpoint does not answer
	cli     *clientv3.Client
	turn    chan struct{}
	// made counts connections.
	made atomic.Int64
}

// Join returns a member that uses dial to connect. name replaces the endpoint.
func Join(name string, dial func(context.Context) (*clientv3.Client, error)) Member {
	return &client{endpoint: name, dial: dial, turn: make(chan struct{}, 1),
		because: func(_ context.Context, err error) error { return err }}
}

// Connect returns members for endpoints. It does not connect yet: every round tries again if a member is down.
func Connect(endpoints []string, access evidence.Access) []Member {
	var out []Member
	for _, e := range endpoints {
		c := &client{endpoint: e, turn: make(chan struct{}, 1)}
		own := access
		own.Connected = func() { c.made.Add(1) }
		c.page = func(ctx context.Context, path string) ([]byte, error) { return own.Get(ctx, e, path, maxMetrics) }
		c.dial = func(ctx context.Context) (*clientv3.Client, error) {
			if err := own.Probe(ctx, e); err != nil { // a member that is down does not hold up the round
				return nil, err
			}
			return own.Dial(ctx, []string{e})
		}
		c.because = func(ctx context.Context, err error) error { return own.Because(ctx, []string{e}, err) }
		out = append(out, c)
	}
	return out
}

// Endpoint implements Member.
func (c *client) Endpoint() string { return c.endpoint }

// Because implements Member.
func (c *client) Because(ctx context.Context, err error) error { return c.because(ctx, err) }

// Connections implements Member.
func (c *client) Connections() int64 { return c.made.Load() }

// maintenance asks the member over the connection that the client has. By itself the client makes a connection for
// every status and every hash, whose handshakes cost more than the answers.
func maintenance(cli *clientv3.Client) clientv3.Maintenance {
	conn := cli.ActiveConnection()
	return clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(cli, conn), cli)
}

// get returns the client and connects if necessary.
func (c *client) get(ctx context.Context) (*clientv3.Client, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if c.cli == nil {
		cli, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.cli = cli
	}
	return c.cli, nil
}

// Close implements Member. It waits for a connection that is being made.
func (c *client) Close() error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.cli == nil {
		return nil
	}
	err := c.cli.Close()
	c.cli = nil
	return err
}

// failed closes the connection, so that the next question logs in: a restarted server knows no token of before, and one
// of 3.4, which gives its status without a login, refuses the client in everything else for ever. What the member
// itself answers leaves the connection as it is.
func (c *client) failed(err error) error {
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) && slices.Contains(answers, answer.Code()) {
		return err
	}
	_ = c.Close()
	return err
}

// answers are the codes of what a member says to a question that it took: the revision is compacted or not reached, the
// user may not ask, or a learner does not know.
var answers = []codes.Code{codes.OutOfRange, codes.PermissionDenied, codes.FailedPrecondition, codes.Unimplemented}

// Status implements Member.
func (c *client) Status(ctx context.Context) (Status, error) {
	cli, err := c.get(ctx)
	if err != nil {
		return Status{}, err
	}
	r, err := maintenance(cli).Status(ctx, c.endpoint)
	if err != nil {
		return Status{}, c.failed(err)
	}
	return Status{ID: r.Header.GetMemberId(), Cluster: r.Header.GetClusterId(), Version: r.Version,
		Revision: r.Header.GetRevision(), Applied: r.RaftAppliedIndex, Term: r.RaftTerm,
		Leader: r.Leader, Learner: r.IsLearner, DBSize: r.DbSize, InUse: r.DbSizeInUse, Errors: r.Errors}, nil
}

// HashKV implements Member.
func (c *client) HashKV(ctx context.Context, revision int64) (Hash, error) {
	cli, err := c.get(ctx)
	if err != nil {
		return Hash{}, err
	}
	r, err := maintenance(cli).HashKV(ctx, c.endpoint, revision)
	if err != nil {
		return Hash{}, c.failed(err)
	}
	return Hash{Hash: r.Hash, Compact: r.CompactRevision}, nil
}

// Keys implements Member. It reads from the member itself, without the leader.
func (c *client) Keys(ctx context.Context, revision int64) (int64, error) {
	cli, err := c.get(ctx)
	if err != nil {
		return 0, err
	}
	r, err := cli.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly(), clientv3.WithSerializable(),
		clientv3.WithRev(revision))
	if err != nil {
		return 0, c.failed(err)
	}
	return r.Count, nil
}

// AuthStatus implements Member.
func (c *client) AuthStatus(ctx context.Context) (Auth, error) {
	cli, err := c.get(ctx)
	if err != nil {
		return Auth{}, err
	}
	r, err := cli.AuthStatus(ctx)
	if err != nil {
		return Auth{}, c.failed(err)
	}
	return Auth{Enabled: r.Enabled, Revision: r.AuthRevision}, nil
}

// Alarms implements Member.
func (c *client) Alarms(ctx context.Context) (map[uint64][]string, error) {
	cli, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	r, err := cli.AlarmList(ctx)
	if err != nil {
		return nil, c.failed(err)
	}
	out := map[uint64][]string{}
	for _, a := range r.Alarms {
		out[a.MemberID] = append(out[a.MemberID], a.Alarm.String())
	}
	return out, nil
}

// Names implements Member. A member without a leader answers, too (3.5 and later).
func (c *client) Names(ctx context.Context) (map[uint64]string, error) {
	cli, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	r, err := cli.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, c.failed(err)
	}
	out := map[uint64]string{}
	for _, m := range r.Members {
		out[m.ID] = m.Name
	}
	return out, nil
}

var errNoAddress = errors.New("the member has no address")

// Metrics implements Member.
func (c *client) Metrics(ctx context.Context) ([]byte, error) {
	if c.page == nil {
		return nil, errNoAddress
	}
	return c.page(ctx, "/metrics")
}

// AuthBucket streams the member's database to scratch and reads users, roles and the auth revision from it.
func (c *client) AuthBucket(ctx context.Context) (Auth, error) {
	dir, err := scratch.Dir("", "etcd-medic-watch-")
	if err != nil {
		return Auth{}, err
	}
	file := filepath.Join(dir, "db")
	a, err := c.authOf(ctx, file)
	return a, errors.Join(err, scratch.Remove(dir))
}

func (c *client) authOf(ctx context.Context, file string) (Auth, error) {
	if err := c.Save(ctx, file); err != nil {
		return Auth{}, err
	}
	db, err := dumpdb.OpenContext(ctx, file)
	if err != nil {
		return Auth{}, err
	}
	defer func() { _ = db.Close() }()
	return authIn(db)
}

// Save writes the member's snapshot to a new file, if there is enough room.
func (c *client) Save(ctx context.Context, file string) error {
	cli, err := c.get(ctx)
	if err != nil {
		return err
	}
	r, err := cli.SnapshotWithVersion(ctx)
	if err != nil {
		return c.failed(err)
	}
	defer func() { _ = r.Snapshot.Close() }()
	//nolint:forbidigo // a new file, in scratch or in the folder for evidence
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	allowed := scratch.Budget(filepath.Dir(file))
	n, err := io.Copy(f, io.LimitReader(r.Snapshot, allowed))
	if err == nil && n == allowed {
		err = &scratch.RoomError{Dir: filepath.Dir(file), Allowed: allowed}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(file)) //nolint:forbidigo // our own, incomplete file
	}
	return nil
}

// digest returns a digest of rows in any order.
func digest(rows []string) uint64 {
	slices.Sort(rows)
	h := fnv.New64a()
	for _, r := range rows {
		_, _ = h.Write([]byte(r))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

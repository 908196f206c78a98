//go:build e2e

package replay_test

import (
	"context"
	crand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/release"
)

// streamTime is how long the requests of one stream may take, streamRequests how many there are at most.
const (
	streamTime     = 9 * time.Second
	streamRequests = 1500
)

// stream proposes random requests of all kinds to a cluster and notes what it shows on the way. Most requests are
// legal, some are not; an error of the server is one of the outcomes.
type stream struct {
	t       *testing.T
	c       *clustertest.Cluster
	conns   []*grpc.ClientConn
	rnd     *rand.Rand
	version release.Version
	single  bool
	// tokens are what users logged in with last, and before: a JWT keeps the auth revision of its login.
	tokens map[string][]string
	jwt    bool
	leases []int64
	// revisions are the current revision by applied index, backups files by applied index.
	revisions map[uint64]int64
	backups   map[uint64]string
	learners  []uint64
	// alarmed is true while an alarm is on, changed once auth was changed after the last logins.
	alarmed, changed bool
	// applied is the index that all members had applied before they stopped.
	applied uint64
	// dense is true where a backup is saved at every index, plain where nobody uses auth.
	dense, plain bool
	// raised is the alarm that is on, self the ID of a cluster's only member.
	raised pb.AlarmType
	self   uint64
}

// jwtFlags are the flags of servers with JWT, which stamp requests with the auth revision of the login.
func jwtFlags(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	key, err := rsa.GenerateKey(crand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"pub": {Type: "PUBLIC KEY", Bytes: public},
		"priv": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--auth-token", fmt.Sprintf("jwt,pub-key=%s,priv-key=%s,sign-method=RS256",
		filepath.Join(dir, "pub"), filepath.Join(dir, "priv"))}
}

// as is the context of a request by a user; "" is nobody. Now and then an older token of the user is used: rarely up to
// 3.4, where a server proposes a request again and again that an old auth revision refuses.
func (s *stream) as(user string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	old := 3
	if !s.version.Has(release.IndexWithEveryEntry).Certain() {
		old = 60
	}
	list := s.tokens[user]
	if len(list) == 0 {
		return ctx, cancel
	}
	token := list[len(list)-1]
	if len(list) > 1 && s.rnd.IntN(old) == 0 {
		token = list[len(list)-2]
	}
	return metadata.AppendToOutgoingContext(ctx, "token", token), cancel
}

// conn is a connection to any member. It repeats no request, as those of the client library do.
func (s *stream) conn() *grpc.ClientConn { return s.conns[s.rnd.IntN(len(s.conns))] }

// try makes a request of which the server may make what it wants.
func (s *stream) try(user string, call func(ctx context.Context, cli *grpc.ClientConn) error) error {
	ctx, cancel := s.as(user)
	defer cancel()
	return call(ctx, s.conn())
}

func (s *stream) login(user string) error {
	return s.try("", func(ctx context.Context, cli *grpc.ClientConn) error {
		r, err := pb.NewAuthClient(cli).Authenticate(ctx, &pb.AuthenticateRequest{Name: user, Password: "secret"})
		if err == nil {
			s.tokens[user] = append(s.tokens[user], r.Token)
		}
		return err
	})
}

func (s *stream) key() []byte {
	return fmt.Appendf(nil, "%s/%02d", []string{"a", "b", "c"}[s.rnd.IntN(3)], s.rnd.IntN(12))
}

func (s *stream) span() (key, end []byte) {
	switch s.rnd.IntN(6) {
	case 0:
		return []byte("a/"), []byte("a0")
	case 1:
		return []byte("b/"), []byte("\x00")
	case 2:
		return []byte("c/05"), []byte("b/")
	}
	return s.key(), nil
}

func (s *stream) lease() int64 {
	if len(s.leases) == 0 || s.rnd.IntN(3) > 0 {
		return 0
	}
	return s.leases[s.rnd.IntN(len(s.leases))]
}

func (s *stream) put() *pb.PutRequest {
	p := &pb.PutRequest{Key: s.key(), Lease: s.lease(), PrevKv: s.rnd.IntN(4) == 0}
	switch s.rnd.IntN(8) {
	case 0:
		p.IgnoreValue = true
	case 1:
		p.IgnoreLease, p.Lease, p.Value = true, 0, s.value()
	default:
		p.Value = s.value()
	}
	return p
}

func (s *stream) value() []byte { return fmt.Appendf(nil, "v%03d", s.rnd.IntN(200)) }

func (s *stream) remove() *pb.DeleteRangeRequest {
	d := &pb.DeleteRangeRequest{PrevKv: s.rnd.IntN(4) == 0}
	d.Key, d.RangeEnd = s.span()
	return d
}

func (s *stream) compare() *pb.Compare {
	c := &pb.Compare{Key: s.key(), Result: pb.Compare_CompareResult(s.rnd.IntN(4)),
		Target: pb.Compare_CompareTarget(s.rnd.IntN(5))}
	n := int64(s.rnd.IntN(8))
	switch c.Target {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: n}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: n * 30}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: n * 30}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: s.value()}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: s.lease()}
	}
	if s.rnd.IntN(4) == 0 {
		c.Key, c.RangeEnd = []byte("a/"), []byte("a0")
	}
	return c
}

// txn puts no key twice, which the API refuses. Ranges that only the proposer's member checks are left to clusters of
// one member.
func (s *stream) txn(depth int, used map[string]bool) *pb.TxnRequest {
	t := &pb.TxnRequest{}
	for range s.rnd.IntN(3) {
		t.Compare = append(t.Compare, s.compare())
	}
	for i := range 2 {
		var ops []*pb.RequestOp
		for range s.rnd.IntN(3) {
			switch n := s.rnd.IntN(8); {
			case n == 0 && depth < 2:
				ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: s.txn(depth+1, used)}})
			case n == 1:
				ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: fmt.Appendf(nil, "d/%02d", s.rnd.IntN(5))}}})
			case n == 2 && (s.single || s.version.Has(release.TxnRangesKept).Certain()):
				r := &pb.RangeRequest{Key: s.key()}
				if s.rnd.IntN(3) == 0 {
					r.Revision = int64(s.rnd.IntN(500) - 50)
				}
				ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}})
			default:
				p := s.put()
				if used[string(p.Key)] {
					continue
				}
				used[string(p.Key)] = true
				ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: p}})
			}
		}
		if i == 0 {
			t.Success = ops
		} else {
			t.Failure = ops
		}
	}
	return t
}

// request proposes one random request.
func (s *stream) request() {
	user := []string{"", "root", "root", "root", "app", "app", "guest"}[s.rnd.IntN(7)]
	if s.plain {
		user = ""
	}
	_ = s.try(user, func(ctx context.Context, cli *grpc.ClientConn) error {
		kv, leases := pb.NewKVClient(cli), pb.NewLeaseClient(cli)
		switch n := s.rnd.IntN(100); {
		case n < 30:
			_, err := kv.Put(ctx, s.put())
			return err
		case n < 40:
			_, err := kv.DeleteRange(ctx, s.remove())
			return err
		case n < 62:
			_, err := kv.Txn(ctx, s.txn(0, map[string]bool{}))
			return err
		case n < 65:
			_, err := kv.Compact(ctx, &pb.CompactionRequest{Revision: int64(s.rnd.IntN(400))})
			return err
		case n < 75:
			r, err := leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(s.rnd.IntN(50)),
				TTL: int64(1 + s.rnd.IntN(4)*100)})
			if err == nil {
				s.leases = append(s.leases, r.ID)
			}
			return err
		case n < 80:
			if len(s.leases) == 0 {
				return nil
			}
			_, err := leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: s.leases[s.rnd.IntN(len(s.leases))]})
			return err
		case n < 81 || s.alarmed && n < 90:
			return s.alarm(ctx, cli)
		case n < 86:
			return s.member(ctx, cli)
		}
		if s.plain {
			return nil
		}
		return s.auth(ctx, cli)
	})
	// logins are slow on 3.3
	if s.changed && s.rnd.IntN(3) > 0 && (s.version.Has(release.Learners).Certain() || s.rnd.IntN(4) == 0) {
		s.loginAll()
	}
}

func (s *stream) alarm(ctx context.Context, cli *grpc.ClientConn) error {
	// Before AlarmKeepsChecks an alarm takes the checks of permission away, and no file shows since when.
	if !s.plain && !s.version.Has(release.AlarmKeepsChecks).Certain() {
		return nil
	}
	if !s.alarmed {
		s.raised = pb.AlarmType_NOSPACE
		if s.plain && s.rnd.IntN(3) == 0 {
			s.raised = pb.AlarmType_CORRUPT
		}
	}
	r := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: s.raised}
	if s.alarmed {
		r.Action = pb.AlarmRequest_DEACTIVATE
	}
	_, err := pb.NewMaintenanceClient(cli).Alarm(ctx, r)
	if err == nil {
		s.alarmed = !s.alarmed
	}
	return err
}

// ownURL gives the only member of a cluster another peer URL, which nobody needs, or one that a learner has.
func (s *stream) ownURL(ctx context.Context, cli *grpc.ClientConn) error {
	members := pb.NewClusterClient(cli)
	if s.self == 0 {
		r, err := members.MemberList(ctx, &pb.MemberListRequest{})
		if err != nil || len(r.Members) != 1 {
			return err
		}
		s.self = r.Members[0].ID
	}
	_, err := members.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: s.self,
		PeerURLs: []string{fmt.Sprintf("http://127.0.0.1:%d", 1+s.rnd.IntN(9))}})
	return err
}

// member adds, updates and removes learners, which need not run.
func (s *stream) member(ctx context.Context, cli *grpc.ClientConn) error {
	if s.dense && s.rnd.IntN(4) == 0 {
		return s.ownURL(ctx, cli)
	}
	if !s.version.Has(release.Learners).Certain() {
		return nil
	}
	members := pb.NewClusterClient(cli)
	url := fmt.Sprintf("http://127.0.0.1:%d", 1+s.rnd.IntN(4))
	switch s.rnd.IntN(4) {
	case 0, 1:
		r, err := members.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{url}, IsLearner: true})
		if err == nil {
			s.learners = append(s.learners, r.Member.ID)
		}
		return err
	case 2:
		if n := len(s.learners); n > 0 && s.version.Has(release.UpdateKeepsLearner).Certain() {
			_, err := members.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: s.learners[n-1], PeerURLs: []string{url}})
			return err
		}
	}
	id := uint64(77)
	if n := len(s.learners); n > 0 && s.rnd.IntN(4) > 0 {
		id = s.learners[n-1]
	}
	_, err := members.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
	return err
}

func (s *stream) auth(ctx context.Context, cli *grpc.ClientConn) error {
	auth := pb.NewAuthClient(cli)
	user, role := []string{"app", "guest", "root"}[s.rnd.IntN(3)],
		[]string{"reader", "writer", "root", "none"}[s.rnd.IntN(4)]
	perm := &authpb.Permission{PermType: authpb.Permission_Type(s.rnd.IntN(3))}
	perm.Key, perm.RangeEnd = s.span()
	var err error
	switch s.rnd.IntN(12) {
	case 0:
		_, err = auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
	case 1:
		if s.rnd.IntN(3) == 0 {
			_, err = auth.AuthDisable(ctx, &pb.AuthDisableRequest{})
		}
	case 2:
		_, err = auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: user, Password: "secret",
			Options: &authpb.UserAddOptions{}})
	case 3:
		_, err = auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: user, Role: role})
	case 4:
		_, err = auth.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{Name: user, Role: role})
	case 5:
		_, err = auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: role})
	case 6:
		_, err = auth.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{Role: role, Key: perm.Key,
			RangeEnd: perm.RangeEnd})
	case 7:
		if s.rnd.IntN(3) == 0 {
			_, err = auth.RoleDelete(ctx, &pb.AuthRoleDeleteRequest{Role: role})
		}
	case 8:
		if s.rnd.IntN(3) == 0 {
			_, err = auth.UserChangePassword(ctx, &pb.AuthUserChangePasswordRequest{Name: user, Password: "secret"})
		}
	default:
		_, err = auth.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: perm})
	}
	s.changed = s.changed || err == nil
	return err
}

// begin founds users and roles, so that most requests of the stream pass.
func (s *stream) begin() {
	auth := func(call func(ctx context.Context, a pb.AuthClient) error) {
		err := s.try("", func(ctx context.Context,
			cli *grpc.ClientConn) error {
			return call(ctx, pb.NewAuthClient(cli))
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for _, u := range []string{"root", "app", "guest"} {
		auth(func(ctx context.Context, a pb.AuthClient) error {
			_, err := a.UserAdd(ctx, &pb.AuthUserAddRequest{Name: u, Password: "secret",
				Options: &authpb.UserAddOptions{}})
			return err
		})
	}
	for _, x := range [][2]string{{"root", "root"}, {"app", "writer"}, {"guest", "reader"}} {
		user, role := x[0], x[1]
		auth(func(ctx context.Context, a pb.AuthClient) error {
			if _, err := a.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: role}); err != nil {
				return err
			}
			_, err := a.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: user, Role: role})
			return err
		})
	}
	for i, p := range []*authpb.Permission{{PermType: authpb.READWRITE, Key: []byte("a/"), RangeEnd: []byte("c0")},
		{Key: []byte("a/"), RangeEnd: []byte("\x00")}} {
		auth(func(ctx context.Context, a pb.AuthClient) error {
			_, err := a.RoleGrantPermission(ctx,
				&pb.AuthRoleGrantPermissionRequest{Name: []string{"writer", "reader"}[i], Perm: p})
			return err
		})
	}
	auth(func(ctx context.Context, a pb.AuthClient) error {
		_, err := a.AuthEnable(ctx, &pb.AuthEnableRequest{})
		return err
	})
	s.loginAll()
}

// staleLease is the lease of a revoke by root with an old auth revision.
const staleLease = 4711

// staleRevoke has root revoke a lease with a token from before a change of auth, as a server does whose lease expired
// before.
func (s *stream) staleRevoke() {
	old := s.tokens["root"]
	must := func(token string, call func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := call(metadata.AppendToOutgoingContext(ctx, "token", token)); err != nil {
			s.t.Fatal(err)
		}
	}
	leases := pb.NewLeaseClient(s.conns[0])
	must(old[0], func(ctx context.Context) error {
		_, err := leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: staleLease, TTL: 600})
		return err
	})
	must(old[0], func(ctx context.Context) error {
		_, err := pb.NewKVClient(s.conns[0]).Put(ctx, &pb.PutRequest{Key: []byte("e/stale"), Lease: staleLease})
		return err
	})
	must(old[0], func(ctx context.Context) error {
		_, err := pb.NewAuthClient(s.conns[0]).RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: "none"})
		return err
	})
	// Releases that refuse it propose it again until the time is up.
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, _ = leases.LeaseRevoke(metadata.AppendToOutgoingContext(ctx, "token", old[0]),
		&pb.LeaseRevokeRequest{ID: staleLease})
	s.loginAll()
}

// look notes the revision at the applied index, where nothing moves while it is read, and saves a backup when asked.
func (s *stream) look(save bool) {
	ctx, cancel := s.as("root")
	defer cancel()
	cli := s.conns[0]
	at := func() (uint64, int64, bool) {
		r, err := pb.NewMaintenanceClient(cli).Status(ctx, &pb.StatusRequest{})
		if err != nil { // without a token where auth is off
			r, err = pb.NewMaintenanceClient(cli).Status(context.Background(), &pb.StatusRequest{})
		}
		if err != nil {
			return 0, 0, false
		}
		if !s.version.Has(release.Learners).Certain() { // 3.3 does not tell the applied index
			return r.RaftIndex, r.Header.Revision, s.single
		}
		return r.RaftAppliedIndex, r.Header.Revision, r.RaftAppliedIndex == r.RaftIndex
	}
	index, rev, ok := at()
	file := ""
	if ok && save {
		file = filepath.Join(s.t.TempDir(), fmt.Sprintf("backup-%d.db", index))
		if err := s.snapshot(cli, file); err != nil {
			file = ""
		}
	}
	again, same, ok2 := at()
	if !ok || !ok2 || again != index || same != rev {
		return
	}
	s.revisions[index] = rev
	if file != "" {
		s.backups[index] = file
	}
}

func (s *stream) snapshot(cli *grpc.ClientConn, file string) error {
	ctx, cancel := s.as("root")
	defer cancel()
	r, err := pb.NewMaintenanceClient(cli).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		part, err := r.Recv()
		if err == io.EOF {
			return f.Close()
		}
		if err != nil {
			return err
		}
		if _, err := f.Write(part.Blob); err != nil {
			return err
		}
	}
}

func (s *stream) loginAll() {
	s.changed = false
	for _, u := range []string{"root", "app", "guest"} {
		_ = s.login(u)
	}
}

// restore logs everybody in, and gives app its rights back.
func (s *stream) restore() {
	s.loginAll()
	_ = s.try("root", func(ctx context.Context, cli *grpc.ClientConn) error {
		auth := pb.NewAuthClient(cli)
		_, err1 := auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: "writer"})
		_, err2 := auth.RoleGrantPermission(ctx,
			&pb.AuthRoleGrantPermissionRequest{Name: "writer",
				Perm: &authpb.Permission{PermType: authpb.READWRITE, Key: []byte("a/"), RangeEnd: []byte("c0")}})
		_, err3 := auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: "app", Role: "writer"})
		_, err4 := auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
		return errors.Join(err1, err2, err3, err4)
	})
}

// end turns auth off, so that the cluster can be asked.
func (s *stream) end() {
	s.c.WaitUntil("auth is off", func(ctx context.Context) error {
		switch err := s.login("root"); {
		case err != nil && strings.Contains(err.Error(), "not enabled"):
			return nil
		case err != nil:
			return err
		}
		list := s.tokens["root"]
		ctx = metadata.AppendToOutgoingContext(ctx, "token", list[len(list)-1])
		_, err := pb.NewAuthClient(s.conns[0]).AuthDisable(ctx, &pb.AuthDisableRequest{})
		return err
	})
}

// run proposes requests until time or number is used up, and stops the cluster.
func (s *stream) run() {
	for i := range s.c.Size() {
		conn, err := grpc.NewClient(strings.TrimPrefix(s.c.Endpoint(i), "http://"),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			s.t.Fatal(err)
		}
		defer conn.Close()
		s.conns = append(s.conns, conn)
	}
	end := time.Now().Add(streamTime)
	if !s.plain {
		s.begin()
	}
	if s.jwt {
		s.staleRevoke()
	}
	for i := range streamRequests {
		if time.Now().After(end) {
			break
		}
		if i%50 == 49 && !s.plain {
			s.restore()
		}
		s.request()
		s.look(s.dense || i%250 == 249)
	}
	s.end()
	s.applied, _ = s.c.WaitEqual()
	s.c.StopAll()
}

package extract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/lease"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// server runs an etcd in this process, on loopback and free ports.
func server(t testing.TB) *clientv3.Client {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = filepath.Join(t.TempDir(), "data"), "error", true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = free, free
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("the server does not come up")
	}
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + e.Clients[0].Addr().String()},
		DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

// source is a database with plain keys, one with a lease and one whose lease is gone.
func source(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	s.Put([]byte("a"), []byte("1"), 0)
	s.Put([]byte("b"), []byte("2"), 0)
	s.Put([]byte("c"), []byte("\x00\xff"), 0)
	s.Put([]byte("leased"), []byte("l"), 0x77)
	s.Put([]byte("orphan"), []byte("o"), 0x99)
	done()
	grant(t, path, 0x77, 500)
	return path
}

func TestToCluster(t *testing.T) {
	path, cli, ctx := source(t), server(t), context.Background()
	put := func(k, v string) {
		if _, err := cli.Put(ctx, k, v); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "1")
	put("b", "other")
	to := func(o extract.Options, write bool) *extract.Result {
		t.Helper()
		res, err := extract.ToCluster(ctx, path, o, extract.Target{Client: cli, Write: write})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	counts := func(what string, c *extract.ClusterCopy, absent, equal, different, written, kept, leases int64) {
		t.Helper()
		if c.Absent != absent || c.Equal != equal || c.Different != different || c.Written != written ||
			c.Kept != kept || c.LeasesGranted != leases || c.Failed+c.Conflicts > 0 {
			t.Errorf("%s: %+v", what, c)
		}
	}
	before, _ := cli.Get(ctx, "a")
	dry := to(extract.Options{}, false)
	counts("dry run", dry.Cluster, 3, 1, 1, 0, 0, 0)
	if after, _ := cli.Get(ctx, "a"); after.Header.Revision != before.Header.Revision || !dry.Cluster.DryRun {
		t.Error("the dry run wrote")
	}
	counts("absent", to(extract.Options{OnlyIfAbsent: true}, true).Cluster, 3, 1, 1, 3, 1, 1)
	if r, _ := cli.Get(ctx, "b"); string(r.Kvs[0].Value) != "other" {
		t.Error("b was overwritten")
	}
	counts("overwrite", to(extract.Options{}, true).Cluster, 0, 4, 1, 1, 0, 0)
	counts("again", to(extract.Options{}, true).Cluster, 0, 5, 0, 0, 0, 0)
	r, err := cli.Get(ctx, "leased")
	if err != nil || r.Kvs[0].Lease != 0x77 {
		t.Errorf("%+v %v", r, err)
	}
	if l, err := cli.TimeToLive(ctx, 0x77); err != nil || l.GrantedTTL != 500 {
		t.Errorf("%+v %v", l, err)
	}
	if r, _ := cli.Get(ctx, "orphan"); r.Kvs[0].Lease != 0 {
		t.Errorf("%+v", r)
	}
	if u := dry.Leases; u.Keys != 2 || u.Leases != 2 || u.Unknown != 1 {
		t.Errorf("%+v", u)
	}
}

// TestConflict lets somebody else write between the look and the write.
func TestConflict(t *testing.T) {
	path, cli, ctx := source(t), server(t), context.Background()
	kv := &meddler{KV: cli.KV, key: "b"}
	cli.KV = kv
	res, err := extract.ToCluster(ctx, path, extract.Options{}, extract.Target{Client: cli, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Cluster; c.Conflicts != 1 || c.Written != 4 || string(c.ConflictKeys[0]) != "b" || !res.Short() {
		t.Errorf("%+v", c)
	}
	if r, _ := kv.KV.Get(ctx, "b"); string(r.Kvs[0].Value) != "mine" {
		t.Errorf("%+v", r)
	}
}

// meddler writes a key right after the first transaction, which is the look.
type meddler struct {
	clientv3.KV
	key  string
	done bool
}

type meddling struct {
	clientv3.Txn
	m   *meddler
	ctx context.Context
}

func (m *meddler) Txn(ctx context.Context) clientv3.Txn { return &meddling{m.KV.Txn(ctx), m, ctx} }

func (x *meddling) If(c ...clientv3.Cmp) clientv3.Txn  { x.Txn = x.Txn.If(c...); return x }
func (x *meddling) Then(o ...clientv3.Op) clientv3.Txn { x.Txn = x.Txn.Then(o...); return x }

func (x *meddling) Commit() (*clientv3.TxnResponse, error) {
	r, err := x.Txn.Commit()
	if err == nil && !x.m.done {
		x.m.done = true
		_, err = x.m.KV.Put(x.ctx, x.m.key, "mine")
	}
	return r, err
}

// counting counts transactions, and refuses those that would put a key.
type counting struct {
	clientv3.KV
	reads, writes int
	refuse        string
	// refused is called with the number of writes when one is refused.
	refused func(writes int)
}

type counted struct {
	clientv3.Txn
	k    *counting
	puts bool
	keys []string
}

func (k *counting) Txn(ctx context.Context) clientv3.Txn { return &counted{Txn: k.KV.Txn(ctx), k: k} }

func (x *counted) If(c ...clientv3.Cmp) clientv3.Txn { x.Txn = x.Txn.If(c...); return x }

func (x *counted) Then(o ...clientv3.Op) clientv3.Txn {
	for _, op := range o {
		x.puts = x.puts || op.IsPut()
		x.keys = append(x.keys, string(op.KeyBytes()))
	}
	x.Txn = x.Txn.Then(o...)
	return x
}

func (x *counted) Commit() (*clientv3.TxnResponse, error) {
	if !x.puts {
		x.k.reads++
		return x.Txn.Commit()
	}
	x.k.writes++
	for _, k := range x.keys {
		if x.k.refuse != "" && strings.HasPrefix(k, x.k.refuse) {
			if x.k.refused != nil {
				x.k.refused(x.k.writes)
			}
			return nil, errors.New("refused")
		}
	}
	return x.Txn.Commit()
}

// TestBatches: up to 100 keys and 1 MiB go in one request.
func TestBatches(t *testing.T) {
	cli := server(t)
	kv := &counting{KV: cli.KV}
	cli.KV = kv
	for name, c := range map[string]struct{ keys, size, requests int }{
		"a": {100, 1, 1}, "b": {101, 1, 2}, "c": {4, 1<<19 - 2, 2}, "d": {5, 1<<18 - 3, 1},
	} {
		path := filepath.Join(t.TempDir(), "db")
		s, done := store(t, path)
		for i := range c.keys {
			s.Put(fmt.Appendf(nil, "%s%d", name, i), bytes.Repeat([]byte{'v'}, c.size), 0)
		}
		done()
		kv.reads, kv.writes = 0, 0
		res, err := extract.ToCluster(t.Context(), path, extract.Options{}, extract.Target{Client: cli, Write: true})
		if err != nil || kv.reads != c.requests || kv.writes != c.requests || res.Cluster.Written != int64(c.keys) {
			t.Errorf("%s: %v, %d reads, %d writes, %+v", name, err, kv.reads, kv.writes, res.Cluster)
		}
	}
}

// TestRefusedKeys: keys that the cluster refuses are counted, the first with the reason, and the others are written. A
// key whose lease cannot be granted is not written, since it would never expire.
func TestRefusedKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	for i := range 25 {
		s.Put(fmt.Appendf(nil, "bad%d", i), []byte("v"), 0)
	}
	for key, lease := range map[string]lease.LeaseID{"good": 0, "short": 0x50, "exists": 0x51, "again": 0x51,
		"too long": 0x52, "too long too": 0x52} {
		s.Put([]byte(key), []byte("v"), lease)
	}
	done()
	grant(t, path, 0x50, 0)
	grant(t, path, 0x51, 500)
	grant(t, path, 0x52, 9_000_000_001) // above lease.MaxLeaseTTL
	cli := server(t)
	api := etcdserverpb.NewLeaseClient(cli.ActiveConnection())
	if _, err := api.LeaseGrant(t.Context(), &etcdserverpb.LeaseGrantRequest{ID: 0x51, TTL: 100}); err != nil {
		t.Fatal(err)
	}
	cli.KV = &counting{KV: cli.KV, refuse: "bad"}
	sel := extract.Selection{Keys: [][]byte{[]byte("absent")}, From: []byte{0}}
	res, err := extract.ToCluster(t.Context(), path, extract.Options{Select: sel},
		extract.Target{Client: cli, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	c := res.Cluster
	if c.Failed != 27 || c.Written != 4 || c.LeasesGranted != 1 || c.Absent != 31 || c.Conflicts != 0 ||
		len(c.Errors) != 20 || !strings.HasPrefix(c.Errors[0], `"too long": lease 52: `) ||
		c.Errors[2] != `"bad0": refused` || c.ClusterID == "" || c.Revision != 1 || !res.Short() {
		t.Errorf("%+v", c)
	}
	if len(res.Lost.NotFound) != 1 {
		t.Errorf("%+v", res.Lost)
	}
	for id, ttl := range map[clientv3.LeaseID]int64{0x50: 1, 0x51: 100, 0x52: 0} {
		l, err := cli.TimeToLive(t.Context(), id)
		if err != nil || id != 0x50 && l.GrantedTTL != ttl {
			t.Errorf("lease %x: %+v, %v", id, l, err)
		}
	}
}

// denying is the maintenance of a server that refuses to show its status.
type denying struct{ clientv3.Maintenance }

func (denying) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return nil, rpctypes.ErrPermissionDenied
}

// TestStatusRefused: the target's revision and ID are then those of the first answer.
func TestStatusRefused(t *testing.T) {
	cli := server(t)
	st, err := cli.Status(t.Context(), cli.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	cli.Maintenance = denying{}
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	for i := range 101 { // two requests
		s.Put(fmt.Append(nil, i), nil, 0)
	}
	done()
	res, err := extract.ToCluster(t.Context(), path, extract.Options{}, extract.Target{Client: cli, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Cluster; c.ClusterID != fmt.Sprintf("%x", st.Header.ClusterId) || c.Revision != 1 || c.Written != 101 {
		t.Errorf("%+v", c)
	}
}

// TestCopyEnds: when the caller gives up between two writes, that is the result, and no key is said to be refused.
func TestCopyEnds(t *testing.T) {
	path, cli := source(t), server(t)
	for n := 1; n <= 3; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		kv := &counting{KV: cli.KV, refuse: "a", refused: func(writes int) {
			if writes == n {
				cancel()
			}
		}}
		to := *cli
		to.KV = kv
		res, err := extract.ToCluster(ctx, path, extract.Options{}, extract.Target{Client: &to, Write: true})
		if done := n == 3; done != (err == nil) || !done && !errors.Is(err, context.Canceled) || kv.writes > 6 {
			t.Errorf("ended at write %d: %d writes, %+v, %v", n, kv.writes, res, err)
		}
		cancel()
	}
}

// TestUnreachable: a refusal is an answer, after which the keys are read; a server without a leader gives none. Nothing
// is read where the context ends first.
func TestUnreachable(t *testing.T) {
	to := func(ctx context.Context, l net.Listener) error {
		cli, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + l.Addr().String()},
			Logger: zap.NewNop(), MaxUnaryRetries: 2}) // a hundred take about as long as an answer is waited for
		if err != nil {
			t.Fatal(err)
		}
		defer cli.Close()
		_, err = extract.ToCluster(ctx, smallDB(t), extract.Options{}, extract.Target{Client: cli})
		return err
	}
	for answer, want := range map[error]string{
		rpctypes.ErrGRPCPermissionDenied:             "reading the target: etcdserver: permission denied",
		rpctypes.ErrGRPCNoLeader:                     "gives no answer: etcdserver: no leader",
		status.Error(codes.Unimplemented, "no etcd"): "gives no answer: rpc error: code = Unimplemented",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return answer }))
		go func() { _ = s.Serve(l) }() // ends with Stop
		if err := to(t.Context(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", answer, err)
		}
		s.Stop()
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := to(ctx, silent); err != context.DeadlineExceeded {
		t.Errorf("no answer: %v", err)
	}
	o := extract.Options{History: true}
	if _, err := extract.ToCluster(t.Context(), smallDB(t), o, extract.Target{}); err == nil {
		t.Error("a history goes to no cluster")
	}
	if _, err := extract.ToCluster(t.Context(), t.TempDir(), extract.Options{}, extract.Target{}); err == nil {
		t.Error("a folder is no database")
	}
}

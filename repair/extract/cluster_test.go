package extract_test

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

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

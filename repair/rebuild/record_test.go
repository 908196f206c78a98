package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// kv is a key as a server shows it.
type kv struct {
	Key, Value           string
	Create, Mod, Version int64
	Lease                int64
}

// point is what a server held after one operation.
type point struct {
	index     uint64
	rev       int64
	hash      uint32
	compacted int64
	keys      []kv
}

// recorder drives a server and takes down what it holds after every operation.
type recorder struct {
	t      *testing.T
	e      *embed.Etcd
	dir    string
	cli    *clientv3.Client
	points []point
	closed sync.Once
}

func record(t *testing.T) *recorder {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = filepath.Join(t.TempDir(), "node1"), "error", true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.BcryptCost = 4
	cfg.InitialClusterToken = cfg.Dir // else two tests' clusters have the same ID
	cfg.AuthToken = "simple"
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = free, free
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{t: t, e: e, dir: cfg.Dir}
	t.Cleanup(func() { r.closed.Do(e.Close) })
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("the server does not come up")
	}
	r.cli = r.login("", "")
	return r
}

func (r *recorder) login(user, password string) *clientv3.Client {
	r.t.Helper()
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + r.e.Clients[0].Addr().String()},
		DialTimeout: 10 * time.Second, Username: user, Password: password, Logger: zap.NewNop()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = cli.Close() })
	return cli
}

func ctx() context.Context { return context.Background() }

// do runs one operation, which may fail on purpose, and takes down what the server then holds.
func (r *recorder) do(op func(*clientv3.Client) error) {
	r.t.Helper()
	if err := op(r.cli); err != nil {
		r.t.Fatal(err)
	}
	r.look()
}

func (r *recorder) look() {
	r.t.Helper()
	// The client is answered a moment before the applied index moves.
	end := time.Now().Add(10 * time.Second)
	for ; r.e.Server.AppliedIndex() != r.e.Server.CommittedIndex(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("the applied index does not reach the committed one")
		}
	}
	p := point{index: r.e.Server.AppliedIndex()}
	got, err := r.e.Server.KV().Range(ctx(), []byte{0}, []byte{}, mvcc.RangeOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	p.rev = got.Rev
	for _, k := range got.KVs {
		p.keys = append(p.keys, kv{string(k.Key), string(k.Value), k.CreateRevision, k.ModRevision, k.Version, k.Lease})
	}
	h, _, err := r.e.Server.KV().HashStorage().HashByRev(0)
	if err != nil {
		r.t.Fatal(err)
	}
	p.hash, p.compacted = h.Hash, h.CompactRevision
	r.points = append(r.points, p)
}

// stop ends the server and returns a copy of its data dir.
func (r *recorder) stop() string {
	r.closed.Do(r.e.Close)
	return evidencetest.Copy(r.t, r.dir)
}

func must[T any](_ T, err error) error { return err }

// denied wants an operation to be refused.
func denied[T any](v T, err error) error {
	if err == nil {
		return fmt.Errorf("not refused: %v", v)
	}
	return nil
}

// busy is a history with every kind of request that changes something, and many that must not.
func busy(r *recorder) {
	put := func(k, v string, o ...clientv3.OpOption) {
		r.do(func(c *clientv3.Client) error { return must(c.Put(ctx(), k, v, o...)) })
	}
	for i := range 12 {
		put(fmt.Sprintf("k%02d", i), fmt.Sprint(i))
	}
	put("bin\x00\xff", "\x01\x02")
	put("k03", "again")
	put("k03", "", clientv3.WithIgnoreValue())
	r.do(func(c *clientv3.Client) error { return must(c.Delete(ctx(), "k05")) })
	r.do(func(c *clientv3.Client) error { return must(c.Delete(ctx(), "none")) })
	r.do(func(c *clientv3.Client) error { return must(c.Delete(ctx(), "k06", clientv3.WithRange("k09"))) })
	leases(r, put)
	txns(r)
	alarms(r)
	r.do(func(c *clientv3.Client) error { return must(c.Compact(ctx(), 15, clientv3.WithCompactPhysical())) })
	r.do(func(c *clientv3.Client) error { return denied(c.Compact(ctx(), 3)) })
	r.do(func(c *clientv3.Client) error {
		return must(c.MemberAddAsLearner(ctx(), []string{"http://127.0.0.1:1"}))
	})
	r.do(func(c *clientv3.Client) error {
		l, err := c.MemberList(ctx())
		if err != nil {
			return err
		}
		for _, m := range l.Members {
			if m.IsLearner {
				if err := must(c.MemberUpdate(ctx(), m.ID, []string{"http://127.0.0.1:2"})); err != nil {
					return err
				}
				return must(c.MemberRemove(ctx(), m.ID))
			}
		}
		return errors.New("no learner")
	})
	auth(r)
	put("after", "all")
	r.do(func(c *clientv3.Client) error { return must(c.Compact(ctx(), 26, clientv3.WithCompactPhysical())) })
	put("after", "compaction")
}

func leases(r *recorder, put func(string, string, ...clientv3.OpOption)) {
	var id, other clientv3.LeaseID
	r.do(func(c *clientv3.Client) error {
		g, err := c.Grant(ctx(), 1000)
		if err == nil {
			id = g.ID
		}
		return err
	})
	r.do(func(c *clientv3.Client) error {
		g, err := c.Grant(ctx(), 1)
		if err == nil {
			other = g.ID
		}
		return err
	})
	put("leased/a", "1", clientv3.WithLease(id))
	put("leased/b", "2", clientv3.WithLease(id))
	put("leased/c", "3", clientv3.WithLease(other))
	put("leased/c", "4")
	put("leased/b", "5", clientv3.WithIgnoreLease())
	r.do(func(c *clientv3.Client) error { return denied(c.Put(ctx(), "x", "y", clientv3.WithLease(12345))) })
	r.do(func(c *clientv3.Client) error { return must(c.Revoke(ctx(), id)) })
}

// alarms raises NOSPACE, under which writes are refused in the log, and clears it.
func alarms(r *recorder) {
	raise := func(c *clientv3.Client, a etcdserverpb.AlarmRequest_AlarmAction) error {
		return must(etcdserverpb.NewMaintenanceClient(c.ActiveConnection()).Alarm(ctx(), &etcdserverpb.AlarmRequest{
			Action: a, MemberID: uint64(r.e.Server.MemberID()), Alarm: etcdserverpb.AlarmType_NOSPACE}))
	}
	r.do(func(c *clientv3.Client) error { return raise(c, etcdserverpb.AlarmRequest_ACTIVATE) })
	r.do(func(c *clientv3.Client) error { return denied(c.Put(ctx(), "full", "x")) })
	r.do(func(c *clientv3.Client) error { return denied(c.Grant(ctx(), 100)) })
	r.do(func(c *clientv3.Client) error { return must(c.Delete(ctx(), "k11")) })
	r.do(func(c *clientv3.Client) error { return denied(c.Txn(ctx()).Then(clientv3.OpPut("full", "x")).Commit()) })
	r.do(func(c *clientv3.Client) error { return must(c.Txn(ctx()).Then(clientv3.OpDelete("k10")).Commit()) })
	r.do(func(c *clientv3.Client) error { return raise(c, etcdserverpb.AlarmRequest_DEACTIVATE) })
	r.do(func(c *clientv3.Client) error { return must(c.Grant(ctx(), 100)) })
}

func txns(r *recorder) {
	txn := func(cmp []clientv3.Cmp, then, otherwise []clientv3.Op) {
		r.do(func(c *clientv3.Client) error {
			return must(c.Txn(ctx()).If(cmp...).Then(then...).Else(otherwise...).Commit())
		})
	}
	both := []clientv3.Op{clientv3.OpPut("t1", "x"), clientv3.OpDelete("k0", clientv3.WithPrefix()),
		clientv3.OpPut("t2", "y")}
	txn([]clientv3.Cmp{clientv3.Compare(clientv3.Value("k01"), ">", "0")},
		[]clientv3.Op{clientv3.OpPut("t0", "greater")}, []clientv3.Op{clientv3.OpPut("t0", "not")})
	txn([]clientv3.Cmp{clientv3.Compare(clientv3.Value("k01"), "<", "0")}, []clientv3.Op{clientv3.OpPut("t0", "less")},
		nil)
	txn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision("t1"), "=", 0)}, both, nil)
	txn([]clientv3.Cmp{clientv3.Compare(clientv3.Version("t1"), "!=", 1)}, both, []clientv3.Op{clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.Value("t"), "!=", "z").WithPrefix()},
		[]clientv3.Op{clientv3.OpPut("nested", "1"), clientv3.OpGet("t1")}, nil)})
}

func auth(r *recorder) {
	steps := []func(*clientv3.Client) error{
		func(c *clientv3.Client) error { return must(c.UserAdd(ctx(), "root", "rootpw")) },
		func(c *clientv3.Client) error { return must(c.RoleAdd(ctx(), "root")) },
		func(c *clientv3.Client) error { return must(c.UserGrantRole(ctx(), "root", "root")) },
		func(c *clientv3.Client) error { return must(c.UserAdd(ctx(), "app", "apppw")) },
		func(c *clientv3.Client) error {
			return must(c.UserAddWithOptions(ctx(), "cert", "", &clientv3.UserAddOptions{NoPassword: true}))
		},
		func(c *clientv3.Client) error { return must(c.RoleAdd(ctx(), "writer")) },
		func(c *clientv3.Client) error {
			return must(c.RoleGrantPermission(ctx(), "writer", "app/", "app0",
				clientv3.PermissionType(clientv3.PermReadWrite)))
		},
		func(c *clientv3.Client) error {
			return must(c.RoleGrantPermission(ctx(), "writer", "app/", "app/x",
				clientv3.PermissionType(clientv3.PermRead)))
		},
		func(c *clientv3.Client) error { return must(c.UserGrantRole(ctx(), "app", "writer")) },
		func(c *clientv3.Client) error { return must(c.UserGrantRole(ctx(), "cert", "writer")) },
		func(c *clientv3.Client) error { return must(c.UserChangePassword(ctx(), "app", "newpw")) },
		func(c *clientv3.Client) error { return denied(c.UserAdd(ctx(), "app", "x")) },
		func(c *clientv3.Client) error { return must(c.AuthEnable(ctx())) },
	}
	for _, s := range steps {
		r.do(s)
	}
	app := r.login("app", "newpw")
	r.cli = r.login("root", "rootpw")
	r.do(func(*clientv3.Client) error { return must(app.Put(ctx(), "app/1", "mine")) })
	r.do(func(*clientv3.Client) error { return denied(app.Put(ctx(), "other", "not mine")) })
	r.do(func(*clientv3.Client) error { return denied(app.Delete(ctx(), "k", clientv3.WithPrefix())) })
	r.do(func(*clientv3.Client) error {
		return denied(app.Txn(ctx()).Then(clientv3.OpPut("app/2", "x"), clientv3.OpPut("other", "x")).Commit())
	})
	r.do(func(c *clientv3.Client) error { return must(c.RoleRevokePermission(ctx(), "writer", "app/", "app/x")) })
	r.do(func(c *clientv3.Client) error { return must(c.UserDelete(ctx(), "cert")) })
	r.do(func(c *clientv3.Client) error { return must(c.RoleAdd(ctx(), "gone")) })
	r.do(func(c *clientv3.Client) error { return must(c.UserGrantRole(ctx(), "app", "gone")) })
	r.do(func(c *clientv3.Client) error { return must(c.RoleDelete(ctx(), "gone")) })
}

func run(t *testing.T, o rebuild.Options) (*rebuild.Result, error) {
	t.Helper()
	if o.Out == "" {
		o.Out = filepath.Join(t.TempDir(), "out.db")
	}
	res, err := rebuild.Run(ctx(), o)
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Out), ".etcd-medic*"))
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if _, serr := os.Stat(o.Out); (serr == nil) != (err == nil) {
		t.Errorf("error %v, output %v", err, serr)
	}
	return res, err
}

// held is the state of a rebuilt backup, which must be sound in every way.
func held(t *testing.T, path string, holes bool) (keys []kv) {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if tr, err := db.Trailer(); err != nil || tr.State != "match" {
		t.Errorf("trailer %+v %v", tr, err)
	}
	st, err := db.KVStats(ctx())
	if err != nil || len(st.Violations) > 0 && !holes {
		t.Errorf("%v %+v", err, st.Violations)
	}
	for rev, err := range db.Query(ctx(), dumpdb.Query{Live: true}) {
		if err != nil || rev.Err != nil {
			t.Fatal(err, rev.Err)
		}
		k := rev.KV
		keys = append(keys, kv{string(k.Key), string(k.Value), k.CreateRevision, k.ModRevision, k.Version, k.Lease})
	}
	return keys
}

//go:build e2e

package compare_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

type scenarioStep func(s *scenario, args []string)

// scenarioSteps act on the running cluster.
var scenarioSteps = map[string]scenarioStep{
	"cluster": (*scenario).start,
	"auth":    func(s *scenario, _ []string) { s.enableAuth() },
	"login":   (*scenario).login,
	"crash":   eachNode(func(s *scenario, i int) { s.c.Kill(i) }),
	// kill waits until what was applied is in the database: servers commit it ten times a second.
	"kill": eachNode(func(s *scenario, i int) {
		time.Sleep(300 * time.Millisecond)
		s.c.Kill(i)
	}),
	"stop":    eachNode(func(s *scenario, i int) { s.c.Stop(i) }),
	"restart": eachNode(func(s *scenario, i int) { s.c.Restart(i) }),
	"process": eachNode(func(s *scenario, i int) { s.c.StartProcess(i) }),
	"serving": eachNode(func(s *scenario, i int) { s.c.WaitServing(i) }),
	"exits":   eachNode(func(s *scenario, i int) { s.c.WaitExit(i) }),
	"pause":   eachNode(func(s *scenario, i int) { s.c.Pause(i) }),
	"resume":  eachNode(func(s *scenario, i int) { s.c.Resume(i) }),
	// founded waits until the member has begun a log of its own.
	"founded": eachNode(func(s *scenario, i int) {
		s.c.WaitUntil("a log is there", func(context.Context) error {
			if segs, err := filepath.Glob(filepath.Join(s.c.DataDir(i), "member", "wal", "*.wal")); err != nil ||
				len(segs) == 0 {
				return fmt.Errorf("no segment (%v)", err)
			}
			return nil
		})
	}),
	"wipe":     eachNode(func(s *scenario, i int) { s.c.Wipe(i) }),
	"lead":     eachNode(func(s *scenario, i int) { s.lead(i) }),
	"leader":   func(s *scenario, _ []string) { s.c.Leader() },
	"applied":  func(s *scenario, _ []string) { s.c.WaitApplied() },
	"equal":    func(s *scenario, _ []string) { s.c.WaitEqual() },
	"put":      (*scenario).put,
	"over":     (*scenario).overwrite,
	"load":     (*scenario).load,
	"del":      (*scenario).del,
	"delrange": (*scenario).delRange,
	"cas":      (*scenario).compareAndSwap,
	"grant": authOps(func(s *scenario, ctx context.Context,
		cli *clientv3.Client) error {
		return s.grantOne(ctx, cli)
	}),
	"passwd": authOps(func(s *scenario, ctx context.Context, cli *clientv3.Client) error {
		_, err := cli.UserChangePassword(ctx, "app", fmt.Sprint("app secret ", s.next()))
		return err
	}),
	"userpair": authOps(func(s *scenario, ctx context.Context, cli *clientv3.Client) error {
		if _, err := cli.UserAdd(ctx, "temp", "temp secret"); err != nil {
			return err
		}
		_, err := cli.UserDelete(ctx, "temp")
		return err
	}),
	"role": authOps(func(s *scenario, ctx context.Context, cli *clientv3.Client) error {
		_, err := cli.RoleAdd(ctx, fmt.Sprint("role", s.next()))
		return err
	}),
	"compact":   (*scenario).compact,
	"defrag":    eachNode(func(s *scenario, i int) { s.defrag(i) }),
	"collect":   (*scenario).collect,
	"diagnose":  (*scenario).diagnose,
	"add":       (*scenario).add,
	"promote":   (*scenario).promote,
	"remove":    eachNode(func(s *scenario, i int) { s.c.Remove(i) }),
	"deadvoter": (*scenario).deadVoter,
	"backup":    (*scenario).takeBackup,
	"keepdb":    eachNode((*scenario).keepDB),
	"restore34": (*scenario).restore34,
	"restore":   func(s *scenario, _ []string) { s.restore() },
	"sleep": func(s *scenario, args []string) {
		time.Sleep(time.Duration(s.number(args, 0, 1)) * time.Millisecond)
	},
	"leases":  (*scenario).leaseWork,
	"txns":    (*scenario).txnWork,
	"denied":  (*scenario).denied,
	"fill":    (*scenario).fill,
	"disarm":  (*scenario).disarm,
	"refused": (*scenario).refused,
	"badtxn":  (*scenario).badTxn,
	"v2":      (*scenario).v2,
}

func eachNode(do func(s *scenario, i int)) scenarioStep {
	return func(s *scenario, args []string) {
		for _, a := range args {
			do(s, s.node(a))
		}
	}
}

// authOps repeats an auth operation COUNT times through NODE.
func authOps(do func(*scenario, context.Context, *clientv3.Client) error) scenarioStep {
	return func(s *scenario, args []string) {
		ctx, cancel := s.context()
		defer cancel()
		cli := s.c.Client(s.node(args[0]))
		for range s.number(args, 1, 1) {
			s.must(do(s, ctx, cli))
		}
	}
}

func (s *scenario) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.Context(), 2*clustertest.Patience)
}

func (s *scenario) next() int { s.counter++; return s.counter }

// start starts the cluster: number of members, then snapshot-count=N, catchup=N (entries kept behind a snapshot) or
// flags of the server.
func (s *scenario) start(args []string) {
	o := clustertest.Options{}
	for _, a := range args[1:] {
		if n, ok := strings.CutPrefix(a, "snapshot-count="); ok {
			o.SnapshotCount = s.number([]string{n}, 0, 0)
			continue
		}
		if n, ok := strings.CutPrefix(a, "catchup="); ok {
			a = "--experimental-snapshot-catchup-entries=" + n
			if s.version >= "3.7" {
				a = "--snapshot-catchup-entries=" + n
			}
		}
		o.Args = append(o.Args, a)
	}
	s.c = clustertest.Start(s.T, clustertest.Server(s.T, s.version), s.number(args, 0, 3), o)
}

func (s *scenario) enableAuth() {
	ctx, cancel := s.context()
	defer cancel()
	cli := s.c.Client(0)
	for _, step := range []func() error{
		func() error { _, err := cli.RoleAdd(ctx, "root"); return err },
		func() error { _, err := cli.UserAdd(ctx, "root", "root secret"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := cli.RoleAdd(ctx, "app"); return err },
		func() error { _, err := cli.UserAdd(ctx, "app", "app secret"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "app", "app"); return err },
		func() error { return grant(ctx, cli, "/app/") },
		func() error { _, err := cli.AuthEnable(ctx); return err },
	} {
		s.must(step())
	}
	s.c.Login("root", "root secret")
	for i := range s.c.Size() {
		s.c.Client(i)
	}
}

func grant(ctx context.Context, cli *clientv3.Client, prefix string) error {
	_, err := cli.RoleGrantPermission(ctx, "app", prefix, clientv3.GetPrefixRangeEnd(prefix),
		clientv3.PermissionType(clientv3.PermReadWrite))
	return err
}

func (s *scenario) grantOne(ctx context.Context, cli *clientv3.Client) error {
	return grant(ctx, cli, fmt.Sprintf("/extra/%d/", s.next()))
}

// login makes the following steps use the user's clients.
func (s *scenario) login(args []string) {
	if args[0] == "none" {
		s.c.Login("", "")
		return
	}
	s.c.Login(args[0], args[0]+" secret")
}

// compact compacts through NODE at BACK revisions below its current one.
func (s *scenario) compact(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	cli := s.c.Client(s.node(args[0]))
	r, err := cli.Get(ctx, "x", clientv3.WithSerializable())
	s.must(err)
	var opts []clientv3.CompactOption
	if len(args) < 3 {
		opts = append(opts, clientv3.WithCompactPhysical())
	}
	_, err = cli.Compact(ctx, r.Header.Revision-int64(s.number(args, 1, 0)), opts...)
	s.must(err)
}

func (s *scenario) defrag(i int) {
	ctx, cancel := s.context()
	defer cancel()
	_, err := s.c.Client(i).Defragment(ctx, s.c.Endpoint(i))
	s.must(err)
}

// add adds a member that starts empty; "learner" as a learner.
func (s *scenario) add(args []string) {
	i := s.c.Add(len(args) > 0 && args[0] == "learner")
	s.Logf("added %s", s.c.Name(i))
}

// promote makes the learner NODE a voter, as soon as it is ready.
func (s *scenario) promote(args []string) {
	id := s.memberID(s.node(args[0]))
	s.c.WaitUntil("the learner is ready", func(ctx context.Context) error {
		_, err := s.c.Client(0).MemberPromote(ctx, id)
		return err
	})
}

func (s *scenario) memberID(i int) uint64 {
	ctx, cancel := s.context()
	defer cancel()
	l, err := s.c.Client(0).MemberList(ctx)
	s.must(err)
	for _, m := range l.Members {
		if len(m.PeerURLs) > 0 && m.PeerURLs[0] == s.c.PeerURL(i) {
			return m.ID
		}
	}
	s.Fatalf("%s: %s is no member", s.line, s.c.Name(i))
	return 0
}

// deadVoter adds a voter at an address where nothing listens.
func (s *scenario) deadVoter(args []string) {
	s.c.WaitUntil("the voter is added", func(ctx context.Context) error {
		_, err := s.c.Client(s.node(args[0])).MemberAdd(ctx, []string{"http://127.63.1.1:1"})
		return err
	})
}

// lead makes NODE the leader.
func (s *scenario) lead(i int) {
	s.c.WaitUntil("the leader has moved", func(ctx context.Context) error {
		now := s.c.Leader()
		if now == i {
			return nil
		}
		_, err := s.c.Client(now).MoveLeader(ctx, s.memberID(i))
		if err == nil {
			err = fmt.Errorf("asked %s to hand over", s.c.Name(now))
		}
		return err
	})
}

// takeBackup saves a snapshot through NODE.
func (s *scenario) takeBackup(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	r, err := s.c.Client(s.node(args[0])).Snapshot(ctx)
	s.must(err)
	defer func() { _ = r.Close() }()
	s.backup = filepath.Join(s.TempDir(), "backup.db")
	f, err := os.Create(s.backup)
	s.must(err)
	_, err = io.Copy(f, r)
	s.must(err)
	s.must(f.Close())
}

// restore stops the cluster and gives every member a data dir that etcdutl makes of the backup; the members do not run
// then.
func (s *scenario) restore() {
	s.c.StopAll()
	var initial []string
	for i := range s.c.Size() {
		initial = append(initial, s.c.Name(i)+"="+s.c.PeerURL(i))
	}
	for i := range s.c.Size() {
		s.c.Wipe(i)
		tool := strings.Replace(clustertest.Server(s.T, s.version), "etcd-"+s.version, "etcdutl-"+s.version[:3], 1)
		out, err := exec.CommandContext(s.Context(), tool, "snapshot", "restore", s.backup, "--name", s.c.Name(i),
			"--data-dir", s.c.DataDir(i),
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", "clustertest",
			"--initial-advertise-peer-urls", s.c.PeerURL(i)).CombinedOutput()
		if err != nil {
			s.Fatalf("%s: %v\n%s", s.line, err, out)
		}
	}
}

//go:build e2e

package compare_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// memberSteps are what operators do to members and data dirs.
var memberSteps = map[string]scenarioStep{
	// tryput NODE PREFIX COUNT puts keys that need not go through: a member that is cut off only writes them into its
	// log.
	"tryput": (*scenario).tryPut,
	// force NODE starts the stopped member with --force-new-cluster and waits until it serves.
	"force": eachNode(func(s *scenario, i int) {
		s.c.StartOnce(i, "--force-new-cluster")
		s.c.WaitServing(i)
	}),
	// unflushed NODE writes through it until it has applied more than the commit index says that it has on disk. That
	// is how it mostly is: the commit index alone is not flushed. But it goes with an entry when both come at once.
	"unflushed": eachNode((*scenario).unflushed),
	// use NODE VERSION changes the binary for its next start.
	"use": func(s *scenario, args []string) { s.c.Use(s.node(args[0]), clustertest.Server(s.T, args[1])) },
	// vacant NODE [learner] adds, through NODE, a member at an address where nothing listens.
	"vacant": (*scenario).vacant,
	// save NODE NAME saves a snapshot under a name.
	"save": func(s *scenario, args []string) {
		s.takeBackup(args)
		s.saved(args[1], s.backup)
	},
	// restoreas NODE NAME [all|one] [TOKEN] gives the stopped member a data dir restored from the named snapshot, as a
	// member of a cluster of all or of itself alone.
	"restoreas": (*scenario).restoreAs,
	"stopall":   func(s *scenario, _ []string) { s.c.StopAll() },
	// copy NODE NAME copies the data dir as it is now, running or not, to be diagnosed under that name.
	"copy": func(s *scenario, args []string) {
		s.dirs[args[1]] = evidencetest.Copy(s.T, s.c.DataDir(s.node(args[0])))
	},
	// take NODE NAME gives the stopped member a copy of what was copied under that name.
	"take": func(s *scenario, args []string) {
		i := s.node(args[0])
		s.c.Wipe(i)
		s.must(os.Rename(evidencetest.Copy(s.T, s.dirs[args[1]]), s.c.DataDir(i)))
	},
	// opened NODE starts the stopped member and kills it as soon as it has written to its files.
	"opened": eachNode(func(s *scenario, i int) {
		db := filepath.Join(s.c.DataDir(i), "member", "snap", "db")
		written := func() time.Time {
			st, err := os.Stat(db)
			s.must(err)
			return st.ModTime()
		}
		before := written()
		s.c.StartProcess(i)
		for end := time.Now().Add(clustertest.Patience); !written().After(before); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				s.Fatal("the member writes nothing")
			}
		}
		s.c.Kill(i)
	}),
	// rmwal NODE deletes the log of the stopped member.
	"rmwal": eachNode(func(s *scenario, i int) {
		s.must(os.RemoveAll(filepath.Join(s.c.DataDir(i), "member",
			"wal")))
	}),
	// rmdb NAME deletes the database of a copy, rmsnap NAME its .snap files.
	"rmdb": func(s *scenario, args []string) { s.must(os.Remove(s.dbFile(args[0]))) },
	"rmsnap": func(s *scenario, args []string) {
		files, err := filepath.Glob(filepath.Join(s.dirs[args[0]], "member", "snap", "*.snap"))
		s.must(err)
		for _, f := range files {
			s.must(os.Remove(f))
		}
	},
	// backupasdb NAME SAVED puts a saved snapshot in the place of the copy's database.
	"backupasdb": func(s *scenario, args []string) {
		b, err := os.ReadFile(filepath.Join(s.savedDir(), args[1]))
		s.must(err)
		s.must(os.WriteFile(s.dbFile(args[0]), b, 0o600))
	},
	// twin NODE starts a second process on a copy of the stopped member's data dir at other addresses; it becomes the
	// next node.
	"twin": eachNode(func(s *scenario, i int) { s.Logf("the twin is %s", s.c.Name(s.c.Twin(i))) }),
}

func (s *scenario) tryPut(args []string) {
	cli := s.c.Client(s.node(args[0]))
	for range s.number(args, 2, 1) {
		ctx, cancel := context.WithTimeout(s.Context(), 300*time.Millisecond)
		_, err := cli.Put(ctx, fmt.Sprintf("%s%03d", args[1], s.next()), "perhaps")
		cancel()
		s.Logf("%s: %v", s.line, err)
	}
}

func (s *scenario) saved(name, file string) {
	s.must(os.MkdirAll(s.savedDir(), 0o700))
	s.must(os.Rename(file, filepath.Join(s.savedDir(), name)))
}

func (s *scenario) savedDir() string { return filepath.Join(filepath.Dir(s.c.DataDir(0)), "saved") }

const vacantURL = "http://127.63.1.2:1"

func (s *scenario) vacant(args []string) {
	ctx, cancel := s.context()
	defer cancel()
	cli := s.c.Client(s.node(args[0]))
	add := cli.MemberAdd
	if len(args) > 1 {
		add = cli.MemberAddAsLearner
	}
	s.c.WaitUntil("the member is accepted", func(context.Context) error {
		_, err := add(ctx, []string{vacantURL})
		return err
	})
}

func (s *scenario) restoreAs(args []string) {
	i := s.node(args[0])
	own := s.c.Name(i) + "=" + s.c.PeerURL(i)
	initial, token := []string{}, "clustertest"
	for k := range s.c.Size() {
		initial = append(initial, s.c.Name(k)+"="+s.c.PeerURL(k))
	}
	if len(args) > 2 && args[2] == "one" {
		initial = []string{own}
	}
	if len(args) > 3 {
		token = args[3]
	}
	s.c.Wipe(i)
	tool := filepath.Join(filepath.Dir(clustertest.Server(s.T, s.version)), "etcdutl-"+s.version[:3])
	if s.version < "3.6" {
		tool = filepath.Join(filepath.Dir(tool), "etcdutl-3.6")
	}
	out, err := exec.CommandContext(s.Context(), tool, "snapshot", "restore", filepath.Join(s.savedDir(), args[1]),
		"--name", s.c.Name(i), "--data-dir", s.c.DataDir(i),
		"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", token,
		"--initial-advertise-peer-urls", s.c.PeerURL(i)).CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", s.line, err, out)
	}
}

func (s *scenario) unflushed(i int) {
	for range 20 {
		s.c.Put(i, fmt.Sprintf("/app/k%02d", s.next()%10), "written by unflushed")
		s.c.WaitApplied()
		time.Sleep(300 * time.Millisecond) // the database is committed ten times a second
		l, err := dumplog.Open(filepath.Join(s.c.DataDir(i), "member", "wal"))
		s.must(err)
		sum, err := l.Scan(s.Context())
		s.must(err)
		s.must(l.Close())
		if sum.HardState.Commit < sum.LastIndex {
			return
		}
	}
	s.Fatal("the commit index was on disk each time")
}

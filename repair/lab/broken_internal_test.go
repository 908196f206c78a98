package lab

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// short is the path of a program that ends at once, in a folder that goes with the test.
func short(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(program)
	path := filepath.Join(t.TempDir(), "server")
	if err := errors.Join(err, os.WriteFile(path, b, 0o700)); err != nil {
		t.Fatal(err)
	}
	return path
}

// ending is a cluster with one member, whose server ends at once.
func ending(t *testing.T, server string) *Cluster {
	t.Helper()
	dir := t.TempDir()
	box, err := node.New(t.Context(), node.Options{Dir: filepath.Join(dir, "sandbox"), Server: node.Server{Path: server}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{o: Options{Dir: dir}, box: box, members: make([]*node.Member, 1),
		configs: []node.MemberConfig{{Name: "node1", DataDir: filepath.Join(dir, "data", "node1"),
			PeerURLs: []string{"http://10.42.0.1:2380"}, ClientURLs: []string{"http://10.42.0.1:2379"}}}}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.launch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := wait(t.Context(), "the end", func() bool { return ended(c.members[0]) }); err != nil {
		t.Fatal(err)
	}
	return c
}

func notStarted(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "start node1: ")
}

// TestNoStart: a cluster whose servers cannot be started is an error, and so is one in a folder that exists.
func TestNoStart(t *testing.T) {
	dir := t.TempDir()
	missing := Options{Dir: filepath.Join(dir, "lab"), Server: node.Server{Path: filepath.Join(dir, "none")}}
	if c, err := Start(t.Context(), missing); c != nil || !notStarted(err) {
		t.Errorf("no server: %v, %v", c, err)
	}
	if c, err := Start(t.Context(), Options{Dir: dir}); c != nil || !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a folder: %v, %v", c, err)
	}
}

// TestStoryFails: a database that cannot be changed as the story tells is an error.
func TestStoryFails(t *testing.T) {
	server := short(t)
	c := ending(t, server)
	db := filepath.Join(c.configs[0].DataDir, "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	drop := func() error { return c.DropWrites(t.Context(), 0, 1) }
	flip := func() error { return c.FlipValue(t.Context(), 0) }
	for name, change := range map[string]func() error{"drop": drop, "flip": flip} {
		if err := change(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, no database: %v", name, err)
		}
	}
	clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 8}.WriteDB(t, db)
	full := errors.New("full")
	if err := c.edited(t.Context(), 0, func(string) (datadir.Edit, error) {
		return func(*bolt.Tx) error { return full }, nil
	}); !errors.Is(err, full) {
		t.Errorf("an edit that fails: %v", err)
	}
	if err := flip(); err == nil || errors.Is(err, fs.ErrNotExist) { // the server ends and is never ready
		t.Errorf("a server that ends: %v", err)
	}
	if err := os.Remove(server); err != nil {
		t.Fatal(err)
	}
	was := c.members[0]
	for name, change := range map[string]func() error{"drop": drop, "flip": flip,
		"start": func() error { return c.StartAll(t.Context()) }} {
		if err := change(); !notStarted(err) {
			t.Errorf("%s, no server: %v", name, err)
		}
		if c.members[0] != was {
			t.Errorf("%s: the member that has ended is not kept", name)
		}
	}
	if err := os.Truncate(db, 0); err != nil {
		t.Fatal(err)
	}
	b, err := bolt.Open(db, 0o600, nil)
	if err == nil {
		err = errors.Join(b.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("key"))
			return err
		}), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := flip(); err == nil || err.Error() != "no key has a value" {
		t.Errorf("no value: %v", err)
	}
}

// TestLoseDirFails: a data dir that cannot be moved away is an error, and the member may serve clients.
func TestLoseDirFails(t *testing.T) {
	server := short(t)
	c := ending(t, server)
	if err := os.RemoveAll(c.configs[0].DataDir); err != nil {
		t.Fatal(err)
	}
	if err := c.LoseDir(t.Context(), 0); !errors.Is(err, fs.ErrNotExist) || c.down[0] {
		t.Errorf("no data dir: %v, %t", err, c.down[0])
	}
	if err := errors.Join(os.MkdirAll(c.configs[0].DataDir, 0o700), os.Remove(server)); err != nil {
		t.Fatal(err)
	}
	if err := c.LoseDir(t.Context(), 0); !notStarted(err) || !c.down[0] {
		t.Errorf("no server: %v, %t", err, c.down[0])
	}
}

// TestWaitEnds: what does not come to pass is an error that names it.
func TestWaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ctx, "rain", func() bool { return false }); !errors.Is(err, context.Canceled) ||
		!strings.HasPrefix(err.Error(), "waiting for rain") {
		t.Error(err)
	}
}

//go:build e2e

package datadir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestE2ECloneStarts clones a cluster of each line from one member and starts the clones: with servers of the line
// itself and with newer ones that refuse the old dirs or take the members from another place.
func TestE2ECloneStarts(t *testing.T) {
	for _, c := range []struct{ wrote, runs string }{
		{"3.3.18", "3.3.18"}, {"3.4.3", "3.4.3"}, {"3.5.0", "3.5.0"}, {"3.5.35", "3.5.35"}, {"3.6.16", "3.6.16"},
		{"3.7.3", "3.7.3"},
		{"3.3.18", "3.6.16"}, {"3.4.3", "3.5.35"}, {"3.5.35", "3.7.3"}, {"3.4.3", "3.7.3"},
	} {
		t.Run(c.wrote+"-"+c.runs, func(t *testing.T) {
			t.Parallel()
			cloneAndStart(t, c.wrote, c.runs)
		})
	}
}

func cloneAndStart(t *testing.T, wrote, runs string) {
	c := clustertest.Start(t, clustertest.Server(t, wrote), 3, clustertest.Options{})
	for i := range 60 {
		c.Put(i%3, fmt.Sprintf("k%02d", i%20), strings.Repeat("v", i))
	}
	rev := c.Delete(0, "k03")
	c.WaitEqual()
	hash, _ := c.HashKV(1, rev)
	ids := memberIDs(t, c)
	dirs := sourceDirs(c)
	set := openSet(t, dirs...)
	dst := filepath.Join(t.TempDir(), "clone")
	res, err := datadir.Clone(context.Background(), set.Members[1], targets(t, set), dst, datadir.CloneOptions{})
	ok(t, err)
	startFrom(t, c, dst, runs)
	for i := range 3 {
		if got, _ := c.HashKV(i, rev); got != hash {
			t.Errorf("member %d: hash %d at revision %d, was %d", i, got, rev, hash)
		}
	}
	if d := cmp.Diff(ids, memberIDs(t, c)); d != "" {
		t.Errorf("members: %s", d)
	}
	if next := c.Put(2, "after", "clone"); next != rev+1 {
		t.Errorf("first revision after the clone is %d, want %d (%v)", next, rev+1, res.Notes)
	}
	c.WaitEqual()
	for i := range 3 {
		c.Restart(i)
	}
	c.Put(1, "after", "restart")
	c.WaitEqual()
}

// TestE2ECloneOfCrashed kills all members, so that databases lack the last writes, and clones with the tail of the log:
// nothing that was acknowledged is lost.
func TestE2ECloneOfCrashed(t *testing.T) {
	for _, version := range []string{"3.4.3", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{})
			for i := range 100 {
				c.Put(0, fmt.Sprintf("k%02d", i%20), strings.Repeat("v", i))
			}
			c.WaitApplied()
			// databases are committed ten times a second: each has an index, if not the last one
			time.Sleep(300 * time.Millisecond)
			rev := c.Put(0, "last", "acknowledged")
			for i := range 3 {
				c.Kill(i)
			}
			dirs := sourceDirs(c)
			set := openSet(t, dirs...)
			best, commit := set.Members[0], uint64(0)
			for _, m := range set.Members {
				if commit = max(commit, m.Commit); m.LastIndex() > best.LastIndex() {
					best = m
				}
			}
			dst := filepath.Join(t.TempDir(), "clone")
			res, err := datadir.Clone(context.Background(), best, targets(t, set), dst,
				datadir.CloneOptions{KeepTail: true, Commit: commit})
			ok(t, err)
			last := best.LastIndex()
			startFrom(t, c, dst, version)
			got, err := c.Client(1).Get(context.Background(), "last")
			ok(t, err)
			// The commit index of the put may not have reached a disk: then it is not proved committed, and the note
			// says so.
			kept := uint64(res.Dirs[0].Entries) + res.Dirs[0].Index
			if len(got.Kvs) != 1 && kept >= last || len(got.Kvs) == 1 && got.Kvs[0].ModRevision != rev {
				t.Errorf("%d keys at %d, want it at %d; kept up to %d of %d: %v", len(got.Kvs), got.Header.Revision,
					rev, kept, last, res.Notes)
			}
			c.Put(2, "after", "clone")
			c.WaitEqual()
		})
	}
}

func sourceDirs(c *clustertest.Cluster) (dirs []string) {
	for _, s := range c.Sources() {
		_, dir, _ := strings.Cut(s, "=")
		dirs = append(dirs, dir)
	}
	return dirs
}

// startFrom replaces the data dirs of all members by those below dst and starts them with servers of another version.
func startFrom(t *testing.T, c *clustertest.Cluster, dst, version string) {
	t.Helper()
	for i := range c.Size() {
		ok(t, os.Rename(c.DataDir(i), c.DataDir(i)+".before"))
		ok(t, os.Rename(filepath.Join(dst, c.Name(i)), c.DataDir(i)))
		c.Use(i, clustertest.Server(t, version))
		c.StartProcess(i)
	}
	for i := range c.Size() {
		c.WaitServing(i)
	}
}

func memberIDs(t *testing.T, c *clustertest.Cluster) (out []string) {
	t.Helper()
	r, err := c.Client(0).MemberList(context.Background())
	ok(t, err)
	for _, m := range r.Members {
		out = append(out, fmt.Sprintf("%x %s %v %v", m.ID, m.Name, m.PeerURLs, m.ClientURLs))
	}
	slices.Sort(out)
	return out
}

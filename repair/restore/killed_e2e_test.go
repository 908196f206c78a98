//go:build e2e

package restore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
	"github.com/etcd-medic/etcd-medic/repair/restore"
)

// TestE2ERestoreKilled restores from the data dir of a server that was killed right after it had acknowledged writes,
// whose database lacks them, and starts real servers on the result: they hold every acknowledged key.
func TestE2ERestoreKilled(t *testing.T) {
	for _, version := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 1, clustertest.Options{})
			for i := range 200 {
				c.Put(0, fmt.Sprintf("k%03d", i%150), fmt.Sprint(i))
			}
			c.Delete(0, "k007")
			want, _ := contents(t, c)
			c.Kill(0)
			dir := evidencetest.Copy(t, c.DataDir(0))
			o := restore.Options{Backup: spec(dir), Out: filepath.Join(t.TempDir(), "new"), Unproven: true}
			o.Plan.Token = "another"
			o.Plan.Members = []restore.PlanMember{{Name: c.Name(0), PeerURLs: []string{c.PeerURL(0)}}}
			r, err := restore.Run(context.Background(), o)
			ok(t, err)
			if r.Behind() || r.Log == nil {
				t.Errorf("%+v", r.Log)
			}
			t.Logf("%d entries were in the log alone", r.Log.Executed)
			ok(t, os.Rename(c.DataDir(0), c.DataDir(0)+".before"))
			ok(t, os.Rename(filepath.Join(o.Out, c.Name(0)), c.DataDir(0)))
			c.StartProcess(0)
			c.WaitServing(0)
			got, _ := contents(t, c)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-acknowledged +restored): %s", d)
			}
		})
	}
}

// TestE2ERestoredClusterLosesItsDatabase: a restored cluster's log has entry 1, but the keys of the backup are in no
// entry. So the log alone gives no database; with the same restore as its base it gives every acknowledged key.
func TestE2ERestoredClusterLosesItsDatabase(t *testing.T) {
	for _, version := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 1, clustertest.Options{})
			for i := range 50 {
				c.Put(0, fmt.Sprintf("k%03d", i), fmt.Sprint(i))
			}
			o := restore.Options{Backup: spec(snapshotOf(t, c)), Out: filepath.Join(t.TempDir(), "new"), Bump: new(uint64)}
			o.LowRevision = true
			o.Plan.Token = "another"
			o.Plan.Members = []restore.PlanMember{{Name: c.Name(0), PeerURLs: []string{c.PeerURL(0)}}}
			_, err := restore.Run(context.Background(), o)
			ok(t, err)
			again := evidencetest.Copy(t, filepath.Join(o.Out, c.Name(0)))
			c.Stop(0)
			ok(t, os.Rename(c.DataDir(0), c.DataDir(0)+".before"))
			ok(t, os.Rename(filepath.Join(o.Out, c.Name(0)), c.DataDir(0)))
			c.StartProcess(0)
			c.WaitServing(0)
			for i := range 50 {
				c.Put(0, fmt.Sprintf("k%03d", 30+i), fmt.Sprint("later ", i))
			}
			want, _ := contents(t, c)
			c.Kill(0)
			ok(t, os.Remove(filepath.Join(c.DataDir(0), "member", "snap", "db")))
			job := rebuild.Options{Logs: []evidence.Spec{spec(c.DataDir(0))}, To: rebuild.Target{Last: true},
				Out: filepath.Join(t.TempDir(), "out.db")}
			if _, err := rebuild.Run(context.Background(), job); err == nil ||
				!strings.Contains(err.Error(), "begins with a restore") {
				t.Fatalf("from the log alone: %v", err)
			}
			job.Base = spec(again)
			job.DBOut = filepath.Join(t.TempDir(), "db")
			r, err := rebuild.Run(context.Background(), job)
			ok(t, err)
			if int(r.Keys) != len(want) {
				t.Errorf("%d keys of %d", r.Keys, len(want))
			}
			ok(t, os.Rename(job.DBOut, filepath.Join(c.DataDir(0), "member", "snap", "db")))
			c.StartProcess(0)
			c.WaitServing(0)
			got, _ := contents(t, c)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-acknowledged +rebuilt): %s", d)
			}
		})
	}
}

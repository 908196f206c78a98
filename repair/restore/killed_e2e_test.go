//go:build e2e

package restore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
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

//go:build e2e

package restoretest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/restoretest"
)

// TestE2EBackupsOfRunningServers takes a backup of a running cluster of each line, writes on, and wants every layer of
// it to hold, its lag to be told exactly, and a drill with the line's own server to give everything back.
func TestE2EBackupsOfRunningServers(t *testing.T) {
	for _, line := range append(slices.Clone(clustertest.OldLines), clustertest.Lines...) {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			server := clustertest.Server(t, line)
			c := clustertest.Start(t, server, 3, clustertest.Options{SnapshotCount: 50})
			cli := c.Client(0)
			for i := range 60 {
				c.Put(i%3, fmt.Sprintf("/app/%02d", i%20), fmt.Sprint("value ", i))
			}
			c.Delete(0, "/app/03")
			lease, err := cli.Grant(t.Context(), 3600)
			if err != nil {
				t.Fatal(err)
			}
			c.Put(1, "/leased", "x", clientv3.WithLease(lease.ID))
			_, rev := c.WaitEqual()
			if _, err := cli.Compact(t.Context(), rev-20, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
			path := save(t, cli)
			for i := range 7 {
				c.Put(0, fmt.Sprintf("/later/%d", i), "new")
			}
			c.Delete(0, "/app/05")
			if _, err := cli.UserAdd(t.Context(), "later", "secret"); err != nil {
				t.Fatal(err)
			}
			// the last one raises the revision, by which all are known to have executed both
			if _, err := cli.Revoke(t.Context(), lease.ID); err != nil {
				t.Fatal(err)
			}
			c.WaitEqual()
			evidencetest.Unchanged(t, path)
			r, err := backup.Verify(t.Context(), evidence.Spec{Where: path}, backup.Options{
				Against: []evidence.Spec{{Name: "live", Where: c.Endpoint(1)}},
				Drill: func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
					return restoretest.Run(ctx, m, r, restoretest.Options{Dir: t.TempDir(), EtcdBinary: server})
				}})
			if err != nil {
				t.Fatal(err)
			}
			judge(t, r, line)
		})
	}
}

func judge(t *testing.T, r *compare.Report, line string) {
	t.Helper()
	if r.Verdict.Class != "backup-good" {
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	}
	for _, l := range r.Backup.Layers {
		if l.Outcome != check.Holds {
			t.Errorf("layer %+v", l)
		}
	}
	if a := r.Backup.Against.(*backup.Against).Compared[0]; a.RevisionsBehind != 9 || a.Missing != 7 || a.Extra != 2 ||
		a.Differ != 0 || a.SameHistory != check.Holds {
		t.Errorf("against %+v", a)
	} else {
		for _, bucket := range []string{"lease", "authUsers"} {
			if !slices.ContainsFunc(a.State, func(s backup.StateRow) bool { return s.Bucket == bucket }) {
				t.Errorf("no row of bucket %s in %+v (%s)", bucket, a.State, a.Text())
			}
		}
	}
	d := r.Backup.Drill.(*backup.Drill)
	if !d.Started || d.Version != line || !d.Equal.Certain() || d.Keys != 20 || outcome(r) != check.Holds {
		t.Errorf("drill %+v, B09 %s", d, outcome(r))
	}
}

// save does what etcdctl snapshot save does. The trailer comes from the server; where it does not send one (older
// lines), the file is as etcdctl of that line would have left it.
func save(t *testing.T, cli *clientv3.Client) string {
	t.Helper()
	rd, err := cli.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(rd)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(b[:len(b)-32]); !bytes.Equal(sum[:], b[len(b)-32:]) {
		t.Fatalf("the server sent no trailer behind %d bytes", len(b))
	}
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

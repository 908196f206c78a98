//go:build e2e

package restore_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/restore"
)

// TestE2ERestoreStarts saves a backup of a running cluster of each line, goes on writing, loses the cluster, restores
// all members from the backup with the old data dirs as survivors, and starts real servers on the result.
func TestE2ERestoreStarts(t *testing.T) {
	for _, c := range []struct{ wrote, runs string }{
		{"3.3.18", "3.3.18"}, {"3.3.18", "3.6.16"}, {"3.4.3", "3.4.3"}, {"3.4.3", "3.5.35"}, {"3.5.0", "3.5.35"},
		{"3.5.35", "3.5.35"}, {"3.5.35", "3.6.16"}, {"3.6.16", "3.6.16"}, {"3.6.16", "3.7.3"}, {"3.7.3", "3.7.3"},
	} {
		t.Run(c.wrote+"-"+c.runs, func(t *testing.T) {
			t.Parallel()
			restoreAndStart(t, c.wrote, c.runs)
		})
	}
}

func restoreAndStart(t *testing.T, wrote, runs string) {
	c := clustertest.Start(t, clustertest.Server(t, wrote), 3, clustertest.Options{})
	for i := range 50 {
		c.Put(i%3, fmt.Sprintf("k%02d", i%20), fmt.Sprint(i))
	}
	c.Delete(1, "k05")
	c.WaitEqual()
	kept, rev := contents(t, c)
	saved := snapshotOf(t, c)
	for range 30 {
		c.Put(0, "later", "lost")
	}
	before := memberSet(t, c)
	var o restore.Options
	for _, s := range c.Sources() {
		sp, err := evidence.ParseSpec(s)
		ok(t, err)
		o.Surviving = append(o.Surviving, sp)
	}
	o.Backup, o.Out, o.Reserve = spec(saved), filepath.Join(t.TempDir(), "new"), 500
	o.Plan.Token = "another"
	for i := range 3 {
		o.Plan.Members = append(o.Plan.Members, restore.PlanMember{Name: c.Name(i), PeerURLs: []string{c.PeerURL(i)}})
	}
	r, err := restore.Run(context.Background(), o)
	ok(t, err)
	if r.Revision.Backup != rev || r.Revision.NewestSeen < rev+30 || r.Revision.GivenUp != 30 ||
		r.After.Class != "freshly-restored" {
		t.Errorf("report %+v", r)
	}
	for i := range 3 {
		ok(t, os.Rename(c.DataDir(i), c.DataDir(i)+".before"))
		ok(t, os.Rename(filepath.Join(o.Out, c.Name(i)), c.DataDir(i)))
		c.Use(i, clustertest.Server(t, runs))
		c.StartProcess(i)
	}
	for i := range 3 {
		c.WaitServing(i)
	}
	got, at := contents(t, c)
	if d := cmp.Diff(kept, got); d != "" || at != r.Revision.Start {
		t.Errorf("at revision %d, want %d: %s", at, r.Revision.Start, d)
	}
	after := memberSet(t, c)
	for _, m := range r.Members {
		if !slices.Contains(after, m.MemberID.String()) || slices.Contains(before, m.MemberID.String()) {
			t.Errorf("member %s is not in %v or was in %v", m.MemberID, after, before)
		}
	}
	if len(after) != 3 {
		t.Errorf("members %v", after)
	}
	c.Put(2, "k00", "again")
	c.WaitEqual()
	for i := range 3 {
		c.Restart(i)
	}
	c.Put(1, "k01", "again")
	c.WaitEqual()
}

func contents(t *testing.T, c *clustertest.Cluster) (out []string, rev int64) {
	t.Helper()
	r, err := c.Client(0).Get(context.Background(), "k", clientv3.WithPrefix())
	ok(t, err)
	for _, kv := range r.Kvs {
		out = append(out, fmt.Sprintf("%s=%s create %d mod %d version %d", kv.Key, kv.Value, kv.CreateRevision,
			kv.ModRevision, kv.Version))
	}
	return out, r.Header.Revision
}

func memberSet(t *testing.T, c *clustertest.Cluster) (out []string) {
	t.Helper()
	r, err := c.Client(0).MemberList(context.Background())
	ok(t, err)
	for _, m := range r.Members {
		out = append(out, fmt.Sprintf("%x", m.ID))
	}
	return out
}

func snapshotOf(t *testing.T, c *clustertest.Cluster) string {
	t.Helper()
	r, err := c.Client(0).Snapshot(context.Background())
	ok(t, err)
	path := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(path)
	ok(t, err)
	_, err = io.Copy(f, r)
	ok(t, err)
	ok(t, f.Close())
	ok(t, r.Close())
	return path
}

// TestE2ERestoreAsEtcdutl: with the same names, URLs and token the log is that of etcdutl, record by record.
func TestE2ERestoreAsEtcdutl(t *testing.T) {
	src := good(t)
	out := filepath.Join(t.TempDir(), "new")
	zero := uint64(0)
	p := three(t)
	p.Token = "tok"
	_, err := restore.Run(context.Background(), restore.Options{Backup: spec(src), Plan: p, Out: out, Bump: &zero})
	ok(t, err)
	for _, tool := range []string{"etcdutl-3.6", "etcdutl-3.7"} {
		theirs := filepath.Join(t.TempDir(), "theirs")
		cmd := exec.Command(filepath.Join(evidencetest.Root(t), ".tools", "bin", tool), "snapshot", "restore", src,
			"--data-dir", theirs, "--name", "n2",
			"--initial-cluster", "n1=http://10.0.0.1:2380,n2=http://10.0.0.2:2380,n3=http://10.0.0.3:2380",
			"--initial-cluster-token", "tok", "--initial-advertise-peer-urls", "http://10.0.0.2:2380")
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", tool, err, b)
		}
		if d := cmp.Diff(records(t, theirs), records(t, filepath.Join(out, "n2"))); d != "" {
			t.Errorf("%s (-theirs +ours): %s", tool, d)
		}
	}
}

// records are the records of a log in words; payloads by their meaning, since encoders differ in how they write zeros.
func records(t *testing.T, dir string) (out []string) {
	t.Helper()
	l, err := dumplog.Open(filepath.Join(dir, "member", "wal"))
	ok(t, err)
	defer l.Close()
	for r, err := range l.Records(context.Background()) {
		ok(t, err)
		s := r.Type.String()
		switch r.Type {
		case dumplog.RecordMetadata:
			m, err := dumplog.DecodeMetadata(r.Data)
			ok(t, err)
			s += fmt.Sprintf(" %+v", m)
		case dumplog.RecordState:
			m, err := dumplog.DecodeHardState(r.Data)
			ok(t, err)
			s += fmt.Sprintf(" %+v", m)
		case dumplog.RecordSnapshot:
			m, err := dumplog.DecodeSnapshotRecord(r.Data)
			ok(t, err)
			s += fmt.Sprintf(" %d/%d %v", m.Term, m.Index, m.ConfState)
		case dumplog.RecordEntry:
			e, err := r.Entry()
			ok(t, err)
			req, err := e.Decode()
			ok(t, err)
			s += fmt.Sprintf(" %d/%d %s", e.Term, e.Index, req.Describe(dumplog.DescribeOptions{Values: true}))
		}
		out = append(out, s)
	}
	return out
}

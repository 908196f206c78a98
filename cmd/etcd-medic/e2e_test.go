//go:build e2e

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestE2EHealthyCluster writes all kinds of requests to a real cluster of each line, restarts members, stops it and
// diagnoses the copied data dirs with the built program: whatever a healthy cluster leaves behind must not be called
// broken.
func TestE2EHealthyCluster(t *testing.T) {
	for _, version := range clustertest.Lines {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // mostly waiting for elections
			c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{SnapshotCount: 50})
			work(t, c)
			sources := c.Sources()
			for _, s := range sources {
				_, dir, _ := strings.Cut(s, "=")
				evidencetest.Unchanged(t, dir)
			}
			diagnoseHealthy(t, sources)
		})
	}
}

// work leaves every common kind of entry in the log, on both sides of a snapshot, a compaction and a restart.
func work(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*clustertest.Patience)
	defer cancel()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range 60 {
		c.Put(i%3, fmt.Sprintf("/app/%02d", i%20), fmt.Sprint("value ", i))
	}
	c.Delete(1, "/app/03")
	c.Delete(2, "/app/1", clientv3.WithPrefix())
	c.Delete(2, "/never/there")
	exists := []clientv3.Cmp{clientv3.Compare(clientv3.Version("/app/00"), ">", 0)}
	swap := []clientv3.Op{clientv3.OpPut("/txn/a", "1"), clientv3.OpPut("/txn/b", "2"), clientv3.OpDelete("/app/04"),
		clientv3.OpGet("/app/00")}
	for i := range 3 {
		_, held := c.Txn(i, exists, swap, nil)
		if !held {
			t.Fatal("the compare must hold")
		}
	}
	c.Txn(0, []clientv3.Cmp{clientv3.Compare(clientv3.Version("/app/00"), "=", 0)}, swap,
		[]clientv3.Op{clientv3.OpGet("/app/00")})

	cli := c.Client(0)
	long, err := cli.Grant(ctx, 3600)
	must("grant", err)
	c.Put(1, "/lease/kept", "x", clientv3.WithLease(long.ID))
	short, err := cli.Grant(ctx, 3600)
	must("grant", err)
	c.Put(1, "/lease/revoked", "x", clientv3.WithLease(short.ID))
	_, err = cli.Revoke(ctx, short.ID)
	must("revoke", err)

	_, revision := c.WaitEqual()
	_, err = cli.Compact(ctx, revision-10, clientv3.WithCompactPhysical())
	must("compact", err)

	auth(ctx, t, cli)
	c.Login("root", "root secret")
	for i := range 60 {
		c.Put(i%3, fmt.Sprintf("/app/%02d", i%20), fmt.Sprint("later value ", i))
	}
	c.Login("alice", "alice secret")
	c.Put(2, "/app/alice", "hers")
	if _, err := c.Client(2).Put(ctx, "/other", "not hers"); err == nil {
		t.Fatal("a write beyond alice's permission went through")
	}
	c.WaitEqual()
	for i := range c.Size() {
		c.Restart(i)
		c.Leader()
		c.Put(i, "/app/after-restart", fmt.Sprint(i))
	}
	c.WaitEqual()
}

// auth makes a role, two users and enables auth.
func auth(ctx context.Context, t *testing.T, cli *clientv3.Client) {
	t.Helper()
	steps := []func() error{
		func() error { _, err := cli.RoleAdd(ctx, "root"); return err },
		func() error { _, err := cli.UserAdd(ctx, "root", "root secret"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := cli.RoleAdd(ctx, "writers"); return err },
		func() error {
			_, err := cli.RoleGrantPermission(ctx, "writers", "/app/", clientv3.GetPrefixRangeEnd("/app/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := cli.UserAdd(ctx, "alice", "alice secret"); return err },
		func() error { _, err := cli.UserGrantRole(ctx, "alice", "writers"); return err },
		func() error { _, err := cli.AuthEnable(ctx); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("auth step %d: %v", i, err)
		}
	}
}

// diagnoseHealthy runs the program and wants exit code 0 and a healthy verdict. A member that was stopped first may
// lag.
func diagnoseHealthy(t *testing.T, sources []string) {
	t.Helper()
	program := os.Getenv("ETCD_MEDIC_TEST_BIN")
	if program == "" {
		program = filepath.Join(evidencetest.Root(t), "bin", "etcd-medic")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"diagnose", "-w", "json"}, sources...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", program, err)
	}
	var doc struct {
		Verdict struct {
			Healthy        *bool
			Class, Summary string
		}
		Members  []json.RawMessage
		Findings []struct{ ID, Severity, Title string }
	}
	if uerr := json.Unmarshal(stdout.Bytes(), &doc); uerr != nil {
		t.Fatalf("stdout is no JSON document (%v; %v):\n%s\n%s", uerr, err, stdout.String(), stderr.String())
	}
	if err != nil || doc.Verdict.Healthy == nil || !*doc.Verdict.Healthy ||
		!slices.Contains([]string{"healthy", "lagging", "uncommitted-tail"}, doc.Verdict.Class) {
		t.Errorf("%v; verdict %s: %s\nfindings %+v\n%s", err, doc.Verdict.Class, doc.Verdict.Summary, doc.Findings,
			stderr.String())
	}
	if len(doc.Members) != len(sources) {
		t.Errorf("%d members reported of %d", len(doc.Members), len(sources))
	}
}

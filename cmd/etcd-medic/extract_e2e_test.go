//go:build e2e

package main_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestE2EExtractIntoCluster puts deleted keys back from a copied data dir into a cluster with client certificates and
// auth: refused without credentials, with a user who may not write told key by key, and done with root's.
func TestE2EExtractIntoCluster(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.6.16"} {
		t.Run(version, func(t *testing.T) { extractIntoCluster(t, version) })
	}
}

func extractIntoCluster(t *testing.T, version string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r := newRig(t, clustertest.Server(t, version), true)
	r.enableAuth(ctx)
	r.write(ctx, 0, "/app/", 40)
	r.host("stop", "node3")
	source := evidencetest.Copy(t, filepath.Join(r.dir, "hosts", "node3", "data"))
	evidencetest.Unchanged(t, source)
	r.host("start", "node3")
	r.serving()
	c := r.client(0, r.root)
	_, err := c.Delete(ctx, "/app/", clientv3.WithPrefix())
	must(t, err)
	_, err = c.Put(ctx, "/app/007", "written since")
	must(t, err)
	_, err = c.UserAdd(ctx, "reader", r.secret)
	must(t, err)
	_, err = c.RoleAdd(ctx, "reads")
	must(t, err)
	_, err = c.RoleGrantPermission(ctx, "reads", "/app/", clientv3.GetPrefixRangeEnd("/app/"),
		clientv3.PermissionType(clientv3.PermRead))
	must(t, err)
	_, err = c.UserGrantRole(ctx, "reader", "reads")
	must(t, err)

	extract := []string{"extract", source, "--prefix", "/app/", "--only-if-absent", "--to-endpoints",
		strings.Join(r.clients, ",")}
	tls := slices.Concat(extract, []string{"--cacert", r.pem("ca"), "--cert", r.pem("operator"), "--key",
		r.pem("operator-key")})
	as := func(user, password string) []string { return []string{"ETCD_MEDIC_USER=" + user + ":" + password} }
	fails := func(code int, env, args []string, want string) {
		t.Helper()
		stdout, stderr := r.medic(code, env, args...)
		if all := stdout + stderr; !strings.Contains(all, want) || strings.Contains(all, r.secret) ||
			strings.Contains(all, "guess") {
			t.Errorf("%q is not said, or a password is:\n%s", want, all)
		}
		if n := r.keys(ctx, "/app/"); n != 1 {
			t.Errorf("%d keys after %v", n, args)
		}
	}
	// nobody vouches for the servers
	fails(1, as("root", r.secret), extract, "certificate")
	// the certificate names nobody with a role
	fails(1, nil, slices.Concat(tls, []string{"--write"}), "permission denied")
	fails(1, as("root", "guess"), slices.Concat(tls, []string{"--write"}), "authentication") // a wrong password
	fails(3, as("reader", r.secret), slices.Concat(tls, []string{"--write"}), "permission denied")
	fails(0, as("root", r.secret), tls, "39") // a dry run

	stdout, stderr := r.medic(0, as("root", r.secret), slices.Concat(tls, []string{"--write"})...)
	if strings.Contains(stdout+stderr, r.secret) {
		t.Errorf("the password is shown:\n%s%s", stdout, stderr)
	}
	if n := r.keys(ctx, "/app/"); n != 40 {
		t.Errorf("%d keys are there, want 40\n%s%s", n, stdout, stderr)
	}
	if got, err := c.Get(ctx, "/app/007"); err != nil || string(got.Kvs[0].Value) != "written since" {
		t.Errorf("a key that was there was overwritten: %v %v", got, err)
	}
}

// keys counts what is below a prefix, read through each member in turn.
func (r *rig) keys(ctx context.Context, prefix string) int64 {
	r.t.Helper()
	var n int64
	for i := range r.names {
		got, err := r.client(i, r.root).Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		must(r.t, err)
		n = max(n, got.Count)
	}
	return n
}

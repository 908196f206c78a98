//go:build e2e

package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// rig is a cluster as an operator has one: servers with https for clients and peers, auth on, started and stopped by
// shell scripts on their hosts, each a folder hosts/NAME here. Nothing of the tool's own sandbox is in it.
type rig struct {
	t            *testing.T
	dir          string
	names        []string
	clients      []string // URLs
	root, secret string
	clientCert   bool // servers want a client certificate
	ca           *clustertest.Authority
}

const (
	startScript = `#!/bin/sh
set -e
h="$RIG/hosts/$1"; . "$h/env"
if [ -e "$h/pid" ] && kill -0 "$(cat "$h/pid")" 2>/dev/null; then exit 0; fi
initial="$INITIAL"; state=new
if [ -n "$ETCD_MEDIC_INITIAL_CLUSTER" ]; then initial="$ETCD_MEDIC_INITIAL_CLUSTER"; state="$ETCD_MEDIC_INITIAL_CLUSTER_STATE"; fi
printf 'INITIAL=%s\nPEER=%s\nCLIENT=%s\n' "'$initial'" "$PEER" "$CLIENT" > "$h/env"
cd "$h"
env -i PATH="$PATH" "$ETCD_BINARY" --name "$1" --data-dir "$h/data" --listen-peer-urls "$PEER" --initial-advertise-peer-urls "$PEER" \
  --listen-client-urls "$CLIENT" --advertise-client-urls "$CLIENT" --initial-cluster "$initial" --initial-cluster-state "$state" \
  --initial-cluster-token rig --snapshot-count 50 --logger zap --unsafe-no-fsync $AUTH_TOKEN \
  --cert-file "$RIG/tls/server.pem" --key-file "$RIG/tls/server-key.pem" $CLIENT_CERT_AUTH \
  --peer-trusted-ca-file "$RIG/tls/ca.pem" --peer-cert-file "$RIG/tls/server.pem" --peer-key-file "$RIG/tls/server-key.pem" --peer-client-cert-auth >> "$h/log" 2>&1 &
pid=$!
echo $pid > "$h/pid"
(while kill -0 $RIG_OWNER 2>/dev/null; do sleep 2; kill -0 $pid 2>/dev/null || exit 0; done; kill -9 $pid) > /dev/null 2>&1 &
`
	stopScript = `#!/bin/sh
h="$RIG/hosts/$1"; [ -e "$h/pid" ] || exit 0
p=$(cat "$h/pid"); kill "$p" 2>/dev/null
n=0; while kill -0 "$p" 2>/dev/null && [ $n -lt 80 ]; do sleep 0.1; n=$((n+1)); done
kill -9 "$p" 2>/dev/null; rm -f "$h/pid"
`
	wipeScript = `#!/bin/sh
h="$RIG/hosts/$1"; [ -e "$h/data.before-repair" ] || mv "$h/data" "$h/data.before-repair"
echo "moved; environment:"; env
`
)

// hooks writes the scripts of the hosts and names their folder in the environment of the program.
func (r *rig) hooks(start string) {
	r.t.Helper()
	for _, d := range []string{"tls", "bin", "hosts"} {
		must(r.t, os.Mkdir(filepath.Join(r.dir, d), 0o700))
	}
	for name, text := range map[string]string{"start": start, "stop": stopScript, "wipe": wipeScript} {
		must(r.t, os.WriteFile(filepath.Join(r.dir, "bin", name), []byte(text), 0o700))
	}
	r.t.Setenv("RIG", r.dir)
	r.t.Setenv("RIG_OWNER", strconv.Itoa(os.Getpid()))
}

func newRig(t *testing.T, binary string, clientCert bool) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), root: "root", secret: "correct horse battery", clientCert: clientCert}
	r.hooks(startScript)
	r.certificates()
	t.Setenv("ETCD_BINARY", binary)
	auth := ""
	if clientCert {
		auth = "--client-cert-auth --trusted-ca-file " + r.pem("ca")
	}
	t.Setenv("CLIENT_CERT_AUTH", auth)
	if os.Getenv("JWT_TTL") != "" {
		t.Setenv("AUTH_TOKEN", fmt.Sprintf("--auth-token jwt,pub-key=%s,priv-key=%s,sign-method=ES256,ttl=%s",
			r.pem("server"), r.pem("server-key"), os.Getenv("JWT_TTL")))
	}
	t.Cleanup(r.end)
	var initial []string
	var peers []string
	for i := range 3 {
		name := fmt.Sprintf("node%d", i+1)
		r.names, r.clients, peers = append(r.names, name), append(r.clients, "https://"+free(t)),
			append(peers, "https://"+free(t))
		initial = append(initial, name+"="+peers[i])
	}
	for i, name := range r.names {
		host := filepath.Join(r.dir, "hosts", name)
		must(t, os.Mkdir(host, 0o700))
		must(t, os.WriteFile(filepath.Join(host, "env"),
			fmt.Appendf(nil, "INITIAL='%s'\nPEER=%s\nCLIENT=%s\n", strings.Join(initial, ","), peers[i], r.clients[i]),
			0o600))
	}
	r.all("start")
	r.serving()
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// host runs one of the operator's scripts.
func (r *rig) host(script, name string) {
	r.t.Helper()
	if out, err := exec.Command(filepath.Join(r.dir, "bin", script), name).CombinedOutput(); err != nil {
		r.t.Fatalf("%s %s: %v\n%s", script, name, err, out)
	}
}

func (r *rig) all(script string) {
	r.t.Helper()
	for _, n := range r.names {
		r.host(script, n)
	}
}

// end kills what still runs, by the ids that the scripts left.
func (r *rig) end() {
	for _, n := range r.names {
		b, err := os.ReadFile(filepath.Join(r.dir, "hosts", n, "pid"))
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && bad == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if log, err := os.ReadFile(filepath.Join(r.dir, "hosts", n, "log")); err == nil && r.t.Failed() {
			r.t.Logf("last lines of %s:\n%s", n, log[max(0, len(log)-2500):])
		}
	}
}

// certificates makes a CA, a certificate for servers and peers, one of an operator and one of root.
func (r *rig) certificates() {
	r.ca = clustertest.NewAuthority(r.t, filepath.Join(r.dir, "tls"))
	r.ca.Issue("server", net.IPv4(127, 0, 0, 1))
	r.ca.Issue("operator")
	r.ca.Issue("root")
}

func (r *rig) pem(name string) string { return r.ca.File(name) }

// client returns a client of one member; user "" does not log in. A login is a proposal that a loaded machine can delay.
func (r *rig) client(i int, user string) *clientv3.Client {
	r.t.Helper()
	cfg := clientv3.Config{Endpoints: []string{r.clients[i]}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
		TLS: r.ca.Client("operator")}
	if user != "" {
		cfg.Username, cfg.Password = user, r.secret
	}
	var c *clientv3.Client
	r.eventually("a client of "+r.names[i]+" is logged in", func(context.Context) (err error) {
		c, err = clientv3.New(cfg)
		return err
	})
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// serving waits until every member knows a leader. It does not log in.
func (r *rig) serving() {
	r.t.Helper()
	for i := range r.names {
		r.eventually(r.names[i]+" serves", func(ctx context.Context) error {
			st, err := r.client(i, "").Status(ctx, r.clients[i])
			if err != nil && strings.Contains(err.Error(), "user name is empty") || err == nil && st.Leader != 0 {
				return nil
			}
			return errors.Join(err, errors.New("no leader yet"))
		})
	}
}

func (r *rig) eventually(what string, f func(ctx context.Context) error) {
	r.t.Helper()
	for deadline := time.Now().Add(clustertest.Patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: %v", what, err)
		}
	}
}

// medic runs the program and wants an exit code.
func (r *rig) medic(code int, env []string, args ...string) (stdout, stderr string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(r.t), args...)
	cmd.Env = append(os.Environ(), env...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		r.t.Fatalf("%v: exit code %d, want %d (%v)\n%s%s", args, got, code, err, &o, &e)
	}
	return o.String(), e.String()
}

// built is the program that `make build` made.
func built(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("ETCD_MEDIC_TEST_BIN"); program != "" {
		return program
	}
	return filepath.Join(evidencetest.Root(t), "bin", "etcd-medic")
}

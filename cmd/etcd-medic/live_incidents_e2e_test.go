//go:build e2e

package main_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// liveIncident is a shipped incident whose cluster runs again, each member on the addresses that its data names, and is
// repaired while it runs.
type liveIncident struct {
	name string
	// lines are the servers that run it, after what it is repaired with where that is another one.
	lines []string
	first map[string]string
	// hosts are the members by the last byte of the address on which they listen; down are those that do not run.
	hosts map[string]int
	down  string
	net   string
	// auth needs a client certificate of root; plan are further flags of the plan.
	auth bool
	plan []string
	// best is the member that is kept, stay are those that serve at the end, with the same content.
	best string
	stay []string
	// saved are members whose snapshot must be there, since they ran until they were taken out.
	saved []string
	// refused is what a line's refusal says.
	refused map[string]string
}

func liveIncidents() []liveIncident {
	three := map[string]int{"node1": 1, "node2": 2, "node3": 3}
	return []liveIncident{
		{name: "f2-empty-db", lines: []string{"3.5.35", "3.6.16"}, hosts: three, down: "node3", net: "127.106.0.",
			best: "node1", stay: []string{"node1", "node2", "node3"}},
		{name: "e3-wal-missing-last-segment", lines: []string{"3.6.16", "3.7.3"}, hosts: three, net: "127.99.0.",
			best: "node2", stay: []string{"node1", "node2", "node3"}, saved: []string{"node1"}},
		{name: "i-stuck-learner", lines: []string{"3.6.16", "3.7.3"}, net: "127.131.0.", down: "node4",
			hosts: map[string]int{"node1": 1, "node2": 2, "node3": 3, "node4": 4}, best: "node1",
			stay: []string{"node1", "node2", "node3"}},
		{name: "o-restored-set-wrong-same-flags", lines: []string{"3.5.35", "3.6.16"}, net: "127.174.0.",
			hosts: map[string]int{"r3": 1, "r1": 11, "r2": 12}, auth: true, plan: []string{"--best", "r3"},
			best: "r3", stay: []string{"r3"}, saved: []string{"r1", "r2"}},
		{name: "g-zombie-members", lines: []string{"3.5.35", "3.6.16"}, first: map[string]string{"3.5.35": "3.5.0"},
			hosts: map[string]int{"m1": 1, "m2": 2, "m3": 3}, net: "127.112.0.", best: "m1",
			stay:    []string{"m1", "m2", "m3"},
			refused: map[string]string{"3.6.16": "--members-from-raft"}},
	}
}

// TestE2ELiveIncidents: the clusters of the incidents of people's operations and of lost files run again and are
// repaired by the built program through an operator's hooks, while writes go on. etcd's own tools confirm the result.
func TestE2ELiveIncidents(t *testing.T) {
	for _, tc := range liveIncidents() {
		for _, line := range tc.lines {
			t.Run(tc.name+"/"+line, func(t *testing.T) {
				r := startIncident(t, &tc, line)
				plan := filepath.Join(r.dir, "plan.yaml")
				r.medic(0, nil, append([]string{"repair", "plan", evidencetest.Incident(t, tc.name), "-o", plan},
					tc.plan...)...)
				t.Setenv("ETCD_BINARY", clustertest.Server(t, line)) // what hooks start from now on
				r.repaired(plan)
			})
		}
	}
}

// incidentRig runs the members of an incident.
type incidentRig struct {
	*rig
	tc   *liveIncident
	line string
}

// The scripts know a host by the data dir on it: members may have one name.
const (
	incidentStart = `#!/bin/sh
set -e
h="$RIG/hosts/$1"; . "$h/env"
if [ -e "$h/pid" ] && kill -0 "$(cat "$h/pid")" 2>/dev/null; then exit 0; fi
set --
[ -z "$ETCD_MEDIC_INITIAL_CLUSTER" ] ||
  set -- --initial-cluster "$ETCD_MEDIC_INITIAL_CLUSTER" --initial-cluster-state existing
if [ -n "$RIG_TLS" ]; then
  set -- "$@" --cert-file "$RIG/tls/server.pem" --key-file "$RIG/tls/server-key.pem" --client-cert-auth \
    --trusted-ca-file "$RIG/tls/ca.pem"
fi
cd "$h"
env -i PATH="$PATH" "$ETCD_BINARY" --name "$NAME" --data-dir "$h/data" --listen-peer-urls "$PEER" \
  --initial-advertise-peer-urls "$ADVERTISED" --listen-client-urls "$CLIENT" --advertise-client-urls "$CLIENT" \
  --logger zap --unsafe-no-fsync "$@" >> "$h/log" 2>&1 &
pid=$!
echo $pid > "$h/pid"
(while kill -0 $RIG_OWNER 2>/dev/null; do sleep 2; kill -0 $pid 2>/dev/null || exit 0; done
  kill -9 $pid) > /dev/null 2>&1 &
`
	onItsHost = `"$RIG/bin/%s" "$(basename "$(dirname "$ETCD_MEDIC_DATA_DIR")")"`
)

// startIncident copies the data dirs and starts the members that ran.
func startIncident(t *testing.T, tc *liveIncident, line string) *incidentRig {
	t.Helper()
	r := &incidentRig{rig: &rig{t: t, dir: t.TempDir()}, tc: tc, line: line}
	r.hooks(incidentStart)
	r.certify()
	t.Setenv("RIG_TLS", map[bool]string{true: "yes"}[tc.auth])
	binary := clustertest.Server(t, line)
	if first := tc.first[line]; first != "" {
		binary = clustertest.Server(t, first)
	}
	t.Setenv("ETCD_BINARY", binary)
	t.Cleanup(r.end)
	from := evidencetest.Incident(t, tc.name)
	for name := range tc.hosts {
		r.names = append(r.names, name)
		host := filepath.Join(r.dir, "hosts", name)
		must(t, os.MkdirAll(filepath.Join(host, "data"), 0o700))
		must(t, os.CopyFS(filepath.Join(host, "data"), os.DirFS(filepath.Join(from, name))))
		must(t, os.WriteFile(filepath.Join(host, "env"), []byte(r.environment(name)), 0o600))
		if name != tc.down {
			r.host("start", name)
		}
	}
	for name := range tc.hosts {
		if name != tc.down {
			r.answers(name)
		}
	}
	return r
}

func (r *incidentRig) address(name string, port int) string {
	scheme := "http"
	if r.tc.auth && port == 2379 {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s%d:%d", scheme, r.tc.net, r.tc.hosts[name], port)
}

// environment is what the start script knows of a host. Of a set that was restored with the flags of one member, all
// have its name and say its address.
func (r *incidentRig) environment(name string) string {
	server, advertised := name, r.address(name, 2380)
	if r.tc.auth {
		server, advertised = "infra0", r.address("r3", 2380)
	}
	return fmt.Sprintf("NAME=%s\nPEER=%s\nCLIENT=%s\nADVERTISED=%s\n", server, r.address(name, 2380),
		r.address(name, 2379), advertised)
}

// certify makes the certificates, with the addresses of this incident.
func (r *incidentRig) certify() {
	r.t.Helper()
	r.certificates()
	var hosts []net.IP
	for _, n := range r.tc.hosts {
		hosts = append(hosts, net.ParseIP(r.tc.net+strconv.Itoa(n)))
	}
	r.ca.Issue("server", hosts...)
}

// dial returns a client of one member.
func (r *incidentRig) dial(name string) *clientv3.Client {
	r.t.Helper()
	cfg := clientv3.Config{Endpoints: []string{r.address(name, 2379)}, DialTimeout: 10 * time.Second,
		Logger: zap.NewNop()}
	if r.tc.auth {
		cert, err := tls.LoadX509KeyPair(r.pem("root"), r.pem("root-key"))
		must(r.t, err)
		b, err := os.ReadFile(r.pem("ca"))
		must(r.t, err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(b)
		cfg.TLS = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	c, err := clientv3.New(cfg)
	must(r.t, err)
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answers waits until a member knows a leader.
func (r *incidentRig) answers(name string) {
	r.t.Helper()
	c := r.dial(name)
	r.eventually(name+" serves", func(ctx context.Context) error {
		st, err := c.Status(ctx, r.address(name, 2379))
		if err == nil && st.Leader == 0 {
			err = fmt.Errorf("%s knows no leader", name)
		}
		return err
	})
}

// repaired carries the plan out while writes go on, and wants every acknowledged one on every member that stays.
func (r *incidentRig) repaired(plan string) {
	r.t.Helper()
	var endpoints []string
	args := []string{"repair", "apply", plan, "--mode", "live", "--hook-stop", fmt.Sprintf(onItsHost, "stop"),
		"--hook-wipe", fmt.Sprintf(onItsHost, "wipe"), "--hook-start", fmt.Sprintf(onItsHost, "start")}
	for _, name := range r.names {
		endpoints = append(endpoints, name+"="+r.address(name, 2379))
		args = append(args, "--data-dir", name+"="+filepath.Join(r.dir, "hosts", name, "data"))
	}
	args = append(args, "--endpoints", strings.Join(endpoints, ","))
	if r.tc.auth {
		args = append(args, "--cacert", r.pem("ca"), "--cert", r.pem("root"), "--key", r.pem("root-key"))
	}
	if says := r.tc.refused[r.line]; says != "" {
		if _, stderr := r.medic(5, nil, args...); !strings.Contains(stderr, says) {
			r.t.Errorf("the refusal does not say %q: %s", says, stderr)
		}
		return
	}
	w := r.writes()
	stdout, stderr := r.medic(0, nil, args...)
	keys := w.stop()
	if !strings.Contains(stdout, "reached: every proof holds") {
		r.t.Errorf("%s%s", stdout, stderr)
	}
	for _, name := range r.tc.saved {
		r.medic(0, nil, "verify", plan+".backup."+name+".db")
	}
	r.holds(keys)
	r.confirmed()
}

// writes puts keys through the member that is kept, until it is stopped.
func (r *incidentRig) writes() *load {
	return startLoad(r.t, r.dial(r.tc.best), 10*time.Millisecond)
}

// holds wants every acknowledged write on every member that stays.
func (r *incidentRig) holds(keys []string) {
	r.t.Helper()
	if len(keys) < 10 {
		r.t.Errorf("only %d writes were acknowledged meanwhile", len(keys))
	}
	for _, name := range r.tc.stay {
		resp, err := r.dial(name).Get(r.t.Context(), "/load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		must(r.t, err)
		have := map[string]bool{}
		for _, kv := range resp.Kvs {
			have[string(kv.Key)] = true
		}
		for _, k := range keys {
			if !have[k] {
				r.t.Errorf("%s lacks %s, of %d acknowledged writes", name, k, len(keys))
				break
			}
		}
	}
}

// confirmed asks etcdctl whether the members that stay hold the same, and the diagnosis whether their data dirs are
// healthy.
func (r *incidentRig) confirmed() {
	r.t.Helper()
	st, err := r.dial(r.tc.best).Get(r.t.Context(), "/load/", clientv3.WithCountOnly())
	must(r.t, err)
	hashes := map[uint32]string{}
	var dirs []string
	for _, name := range r.tc.stay {
		args := []string{"endpoint", "hashkv", "--endpoints", r.address(name, 2379), "-w", "json", "--rev",
			strconv.FormatInt(st.Header.Revision, 10), "--cacert", r.pem("ca"), "--cert", r.pem("root"), "--key",
			r.pem("root-key")}
		if !r.tc.auth {
			args = args[:8]
		}
		var out []byte
		r.eventually("etcdctl endpoint hashkv of "+name, func(ctx context.Context) (err error) {
			ctl := filepath.Join(filepath.Dir(clustertest.Server(r.t, r.line)), "etcdctl-3.6")
			out, err = exec.CommandContext(ctx, ctl, args...).Output()
			return err
		})
		var said []struct{ HashKV struct{ Hash uint32 } }
		if err := json.Unmarshal(out, &said); err != nil || len(said) != 1 {
			r.t.Fatalf("%v: %s", err, out)
		}
		hashes[said[0].HashKV.Hash] = name
		dirs = append(dirs, name+"="+filepath.Join(r.dir, "hosts", name, "data"))
	}
	if len(hashes) != 1 {
		r.t.Errorf("etcdctl endpoint hashkv: %v", hashes)
	}
	for _, name := range r.names {
		r.host("stop", name)
	}
	r.medic(0, nil, append([]string{"diagnose"}, dirs...)...)
}

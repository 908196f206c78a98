//go:build e2e

package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// TestE2ELiveApply repairs running clusters with the built program and an operator's shell scripts: https for clients
// and peers, auth on, writes going on. On each line the operator proves who he is in another way.
func TestE2ELiveApply(t *testing.T) {
	for _, tc := range []struct {
		version    string
		clientCert bool
		login      func(r *rig) (env, flags []string)
	}{
		{"3.5.35", true, func(r *rig) (env, flags []string) { // a certificate to get in, a password to be root
			file := filepath.Join(r.dir, "password")
			must(r.t, os.WriteFile(file, []byte(r.secret+"\n"), 0o600))
			return nil, []string{"--cert", r.pem("operator"), "--key", r.pem("operator-key"), "--user", r.root,
				"--password-file", file}
		}},
		{"3.6.16", false, func(r *rig) (env, flags []string) { // a password alone
			return []string{"ETCD_MEDIC_PASSWORD=" + r.secret}, []string{"--user", r.root}
		}},
		{"3.7.3", true, func(r *rig) (env, flags []string) { // a certificate of root, no password
			return nil, []string{"--cert", r.pem("root"), "--key", r.pem("root-key")}
		}},
	} {
		t.Run(tc.version, func(t *testing.T) {
			r := newRig(t, clustertest.Server(t, tc.version), tc.clientCert)
			plan := r.diverge()
			env, flags := tc.login(r)
			r.refusedBefore(plan, env, flags)
			w := r.load(0)
			stdout, stderr := r.medic(0, env, r.apply(plan, flags)...)
			acknowledged := w.stop()
			t.Logf("the screen:\n%s%s", stdout, stderr)
			if !strings.Contains(stdout, "reached: every proof holds") {
				t.Error(stdout)
			}
			if !strings.Contains(stderr, "note: node1 went from revision") ||
				!strings.Contains(stderr, "it accepted nothing that node1 lacks") {
				t.Errorf("what moved since the copies is not told:\n%s", stderr)
			}
			r.allThere(acknowledged)
			r.healthyNow()
			r.kept(plan, stdout, stderr)
		})
	}
}

// enableAuth makes a user root and turns auth on.
func (r *rig) enableAuth(ctx context.Context) {
	r.t.Helper()
	c := r.client(0, "")
	_, e1 := c.UserAdd(ctx, r.root, r.secret)
	_, e2 := c.RoleAdd(ctx, "root")
	if e2 != nil && strings.Contains(e2.Error(), "already") {
		e2 = nil
	}
	_, e3 := c.UserGrantRole(ctx, r.root, "root")
	_, e4 := c.AuthEnable(ctx)
	must(r.t, errors.Join(e1, e2, e3, e4))
}

// diverge enables auth, makes node2 drop what comes through the others, and plans the repair from copies.
func (r *rig) diverge() (plan string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	r.enableAuth(ctx)
	r.write(ctx, 0, "/before/", 70)
	st, err := r.client(0, r.root).AuthStatus(ctx)
	must(r.t, err)
	r.host("stop", "node2")
	must(r.t, datadir.EditNew(filepath.Join(r.dir, "hosts", "node2", "data", "member", "snap", "db"),
		datadir.SetAuthRevision(st.AuthRevision+9)))
	r.host("start", "node2")
	r.serving()
	for i := range r.names {
		r.write(ctx, i, fmt.Sprintf("/through%d/", i+1), 20)
	}
	r.all("stop")
	copies := filepath.Join(r.dir, "copies")
	for _, n := range r.names {
		must(r.t, os.MkdirAll(filepath.Join(copies, n), 0o700))
		must(r.t, os.CopyFS(filepath.Join(copies, n), os.DirFS(filepath.Join(r.dir, "hosts", n, "data"))))
	}
	evidencetest.Unchanged(r.t, copies)
	r.all("start")
	r.serving()
	plan = filepath.Join(r.dir, "plan.yaml")
	stdout, _ := r.medic(0, nil, "repair", "plan", copies, "-o", plan)
	if !strings.Contains(stdout, "node2") || !strings.Contains(stdout, "replace") {
		r.t.Fatal(stdout)
	}
	return plan
}

func (r *rig) write(ctx context.Context, i int, prefix string, n int) {
	r.t.Helper()
	c := r.client(i, r.root)
	for k := range n {
		r.eventually("a write through "+r.names[i], func(context.Context) error {
			_, err := c.Put(ctx, fmt.Sprintf("%s%03d", prefix, k), "value")
			return err
		})
	}
}

func (r *rig) apply(plan string, flags []string) []string {
	return append([]string{"repair", "apply", plan, "--mode", "live", "--endpoints", strings.Join(r.clients, ","),
		"--cacert", r.pem("ca"),
		"--hook-stop", `"$RIG/bin/stop" "$ETCD_MEDIC_MEMBER_NAME"`, "--hook-wipe",
		`"$RIG/bin/wipe" "$ETCD_MEDIC_MEMBER_NAME"`,
		"--hook-start", `"$RIG/bin/start" "$ETCD_MEDIC_MEMBER_NAME"`}, flags...)
}

// refusedBefore: nobody there, no or wrong credentials, no trust: exit code 5, and nothing is begun.
func (r *rig) refusedBefore(plan string, env, flags []string) {
	r.t.Helper()
	live := []string{"repair", "apply", plan, "--mode", "live", "--endpoints", strings.Join(r.clients, ",")}
	if _, stderr := r.medic(5, env, append(append(live, "--cacert", r.pem("ca")),
		flags...)...); !strings.Contains(stderr, "a person or hooks have to stop members") {
		r.t.Error(stderr)
	}
	wrong := filepath.Join(r.dir, "wrong")
	must(r.t, os.WriteFile(wrong, []byte("guess"), 0o600))
	if len(env) > 0 {
		r.medic(2, nil, r.apply(plan, flags)...) // nobody is there to be asked for a password
	}
	for _, bad := range [][]string{
		{"--cert", r.pem("operator"), "--key", r.pem("operator-key"), "--user", r.root, "--password-file", wrong},
		{"--cert", r.pem("operator"), "--key", r.pem("operator-key")},
	} {
		if _, stderr := r.medic(5, nil, r.apply(plan, bad)...); !strings.Contains(stderr, "credentials") ||
			strings.Contains(stderr, "guess") {
			r.t.Errorf("%v: %s", bad, stderr)
		}
	}
	stdout, _ := r.medic(0, nil, "repair", "status", plan)
	if strings.Contains(stdout, "done") || strings.Contains(stdout, "begun") {
		r.t.Errorf("something was begun:\n%s", stdout)
	}
}

type load struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	keys   []string
}

// load writes through a member until it is stopped.
func (r *rig) load(i int) *load {
	return startLoad(r.t, r.client(i, r.root), 3*time.Millisecond)
}

// startLoad writes through a client, with a pause after each write, until it is stopped.
func startLoad(t *testing.T, c *clientv3.Client, pause time.Duration) *load {
	ctx, cancel := context.WithCancel(t.Context())
	w := &load{cancel: cancel}
	w.wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			key := fmt.Sprintf("/load/%06d", n)
			// A server loses what is proposed while the leader moves, and answers that after seven seconds; others can
			// be written meanwhile.
			call, done := context.WithTimeout(ctx, time.Second)
			if _, err := c.Put(call, key, "x"); err == nil {
				w.keys = append(w.keys, key)
			} else if ctx.Err() == nil {
				t.Logf("write %d: %v", n, err)
			}
			done()
			time.Sleep(pause)
		}
	})
	return w
}

func (w *load) stop() []string {
	w.cancel()
	w.wg.Wait()
	return w.keys
}

func (r *rig) allThere(keys []string) {
	r.t.Helper()
	r.t.Logf("%d writes were acknowledged meanwhile", len(keys))
	if len(keys) < 50 {
		r.t.Errorf("only %d writes were acknowledged meanwhile", len(keys))
	}
	for i := range r.names {
		c, missing := r.client(i, r.root), 0
		for _, k := range keys {
			resp, err := c.Get(r.t.Context(), k)
			must(r.t, err)
			if len(resp.Kvs) != 1 {
				missing++
			}
		}
		if missing > 0 {
			r.t.Errorf("%s lacks %d of %d acknowledged writes", r.names[i], missing, len(keys))
		}
	}
}

func (r *rig) healthyNow() {
	r.t.Helper()
	r.all("stop")
	args := []string{"diagnose"}
	for _, n := range r.names {
		args = append(args, n+"="+filepath.Join(r.dir, "hosts", n, "data"))
	}
	r.medic(0, nil, args...)
}

// kept: snapshots of the best member and of the one that was taken out, and its data dir; the password is nowhere.
func (r *rig) kept(plan, stdout, stderr string) {
	r.t.Helper()
	for _, f := range []string{plan + ".backup.db", plan + ".backup.node2.db"} {
		r.medic(0, nil, "verify", f)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "hosts", "node2", "data.before-repair", "member")); err != nil {
		r.t.Error(err)
	}
	hooks, err := os.ReadFile(plan + ".hooks.log")
	must(r.t, err)
	journal, err := os.ReadFile(plan + ".journal")
	must(r.t, err)
	if !strings.Contains(string(hooks), "ETCD_MEDIC_ACTION=wipe") {
		r.t.Errorf("what the hook said is not kept: %s", hooks)
	}
	for what, text := range map[string]string{"hooks log": string(hooks), "journal": string(journal), "stdout": stdout,
		"stderr": stderr} {
		if strings.Contains(text, r.secret) {
			r.t.Errorf("the password is in the %s", what)
		}
	}
}

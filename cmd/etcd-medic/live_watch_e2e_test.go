//go:build e2e

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// busy writes through one member until the returned function is called.
func (r *rig) busy(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	cli := r.client(0, r.root)
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_, _ = cli.Put(ctx, fmt.Sprintf("/busy/%d", n%40), fmt.Sprint(n))
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// TestE2ELiveSecured: collect, watch and diagnose --endpoints on clusters with client certificates, auth and load.
// Certificates come from flags, the endpoint and the login from the variables of etcdctl, or the other way round.
// Without a login, and with a wrong CA, every command says why it failed and does nothing.
func TestE2ELiveSecured(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			r := newRig(t, clustertest.Server(t, line), true)
			r.enableAuth(ctx)
			r.write(ctx, 0, "/app/", 60)
			defer r.busy(ctx)()
			tls := []string{"--cacert", r.pem("ca"), "--cert", r.pem("operator"), "--key", r.pem("operator-key")}
			login := []string{"ETCD_MEDIC_USER=" + r.root + ":" + r.secret}
			all := strings.Join(r.clients, ",")

			out, _ := r.medic(0, login, append([]string{"diagnose", "--endpoints", all, "-w", "json"}, tls...)...)
			r.wantHealthy("endpoints", out, true)

			var copies []string
			for i, name := range r.names {
				file := filepath.Join(t.TempDir(), name+".tar.zst")
				out, _ := r.medic(0, append([]string{"ETCDCTL_CACERT=" + r.pem("ca"), "ETCDCTL_CERT=" +
					r.pem("operator"),
					"ETCDCTL_KEY=" + r.pem("operator-key")}, login...),
					"collect", "--endpoints", r.clients[i], "--data-dir", filepath.Join(r.dir, "hosts", name, "data"),
					"-o",
					file)
				if !strings.Contains(out, "database and log come from the same member") {
					t.Errorf("collect of %s does not prove its parts:\n%s", name, out)
				}
				copies = append(copies, file)
			}
			out, _ = r.medic(0, nil, append([]string{"diagnose", "-w", "json"}, copies...)...)
			r.wantHealthy("copies", out, false)

			out, _ = r.medic(0, append([]string{"ETCDCTL_ENDPOINTS=" + all}, login...),
				append([]string{"watch", "--once", "--ask-timeout", "60s"}, tls...)...)
			if !strings.Contains(out, "all 3 members agree") {
				t.Errorf("watch --once:\n%s", out)
			}
			out, _ = r.medic(0, login, append([]string{"watch", "--once", "--ask-timeout", "60s", "--cluster",
				"--endpoints",
				r.clients[1], "-w", "json"}, tls...)...)
			for _, u := range r.clients {
				if !strings.Contains(out, u) {
					t.Errorf("--cluster leaves out %s:\n%s", u, out)
				}
			}
			r.refusals(all, tls, login)
		})
	}
}

// wantHealthy reads a diagnosis: healthy, and without logs one line that says what only they would prove.
func (r *rig) wantHealthy(what, out string, unproven bool) {
	r.t.Helper()
	var doc struct {
		Verdict struct {
			Healthy        *bool
			Class, Summary string
		}
		Findings []struct{ Check, Severity, Title string }
	}
	must(r.t, json.Unmarshal([]byte(out), &doc))
	v := doc.Verdict
	if v.Healthy == nil || !*v.Healthy || strings.Contains(v.Summary,
		"Not proven: no source has a log") != unproven {
		r.t.Errorf("%s: %s: %s; %+v", what, v.Class, v.Summary, doc.Findings)
	}
}

// refusals are runs that cannot reach the members: they say why, and no password is in what they say.
func (r *rig) refusals(all string, tls, login []string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "none.tar.zst")
	collect := []string{"collect", "--data-dir", filepath.Join(r.dir, "hosts", r.names[0], "data"), "--endpoints",
		r.clients[0], "-o", file}
	for _, c := range []struct {
		code int
		env  []string
		args []string
		want string
	}{
		{1, nil, append(append([]string{}, collect...), tls...), "does not send a snapshot (with auth enabled: see --user"},
		{1, login, collect, "certificate"},
		{1, []string{"ETCD_MEDIC_USER=root:guess"}, append(append([]string{}, collect...), tls...),
			"authentication failed"},
		{4, login, []string{"watch", "--once", "--ask-timeout", "5s", "--endpoints", all}, "does not answer"},
	} {
		stdout, stderr := r.medic(c.code, c.env, c.args...)
		text := stdout + stderr
		if !strings.Contains(text, c.want) || strings.Contains(text, "guess") || strings.Contains(text, r.secret) {
			r.t.Errorf("%v: %q is not said, or a password is:\n%s", c.args, c.want, text)
		}
	}
}

// TestE2ELabWatch: the whole way in one command. Watch raises what the story breaks, before a write is lost; copies of
// the running members lead to the cause; after the repair it is quiet again.
func TestE2ELabWatch(t *testing.T) {
	for story, kind := range map[string]string{"auth": "auth", "index": "revision", "value": "hash"} {
		t.Run(story, func(t *testing.T) {
			out := medic(t, 0, "lab", "--story", story, "--watch")
			at := 0
			for _, want := range []string{"etcd-medic watch: the members agree", "etcd-medic watch raises " + kind +
				" after",
				"acknowledged. What the members say of themselves", "etcd-medic collect of node3 while it runs",
				"etcd-medic diagnose of copies", "etcd-medic repair plan: keep node", "replace node2",
				"etcd-medic repair apply --mode live, against the running cluster: reached",
				"etcd-medic watch: what it raised is over", "etcd-medic diagnose of the stopped members: healthy"} {
				n := strings.Index(out[at:], want)
				if n < 0 {
					t.Fatalf("%q does not come where it should:\n%s", want, out)
				}
				at += n
			}
		})
	}
	medic(t, 2, "lab", "--story", "wiped", "--watch")
}

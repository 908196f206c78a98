//go:build e2e

package compare_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2EEndpointsMixed: snapshots of running members together with the data dir of a stopped one, with a collected
// copy, and with an endpoint at which nothing runs. As long as the members hold the same, none of it is a difference;
// an altered value of the stopped member is named. What is missing is said, soon.
func TestE2EEndpointsMixed(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{TLS: true,
				Args: []string{"--heartbeat-interval=200", "--election-timeout=2000", "--bcrypt-cost=4"}})
			o := compare.Options{Access: evidence.Access{User: c.EnableAuth()}}
			o.Access.CACert, o.Access.Cert, o.Access.Key = c.Certificates()
			for n := range 30 {
				c.Put(0, fmt.Sprintf("k%d", n), "soundvalue")
			}
			c.WaitEqual()
			spec := func(i int, where string) evidence.Spec { return evidence.Spec{Name: c.Name(i), Where: where} }
			one, two := spec(0, c.Endpoint(0)), spec(1, c.Endpoint(1))
			stop := writing(c)
			defer func() { stop() }()

			copied := filepath.Join(t.TempDir(), "node3.tar.zst")
			if _, err := collect.Run(t.Context(), collect.Options{DataDir: c.DataDir(2),
				Endpoints: []string{c.Endpoint(2)}, Access: o.Access, Out: copied}); err != nil {
				t.Fatal(err)
			}
			mixedWant(t, o, check.Healthy, one, two, spec(2, copied))

			begun := time.Now()
			r := mixedWant(t, o, check.HealthUnknown, one, two, spec(2, silentURL(t)))
			if took := time.Since(begun); took > 10*time.Second+clustertest.Patience/10 {
				t.Errorf("with one endpoint dead it took %v", took)
			}
			if s := r.Sources[2]; s.Error == "" || !strings.Contains(s.Error, "refused") {
				t.Errorf("the dead endpoint is not named: %+v", s)
			}
			if len(r.Best.Lost.Unproven) != 2 {
				t.Errorf("without logs and a source, best claims to lose nothing: %q", r.Best.Lost.Unproven)
			}

			c.Stop(2)
			c.Put(0, "written", "after node3 was stopped")
			r = mixedWant(t, o, check.Healthy, one, two, spec(2, c.DataDir(2)))
			if slices.Contains(r.Best.Members, c.Name(2)) || len(r.Best.Lost.Unproven) == 0 ||
				!strings.Contains(r.Verdict.Summary, "are in no log") {
				t.Errorf("a member that lags behind all logs is best, or nothing is unproven: %s; %+v, %q",
					r.Verdict.Summary, r.Best, r.Best.Lost.Unproven)
			}
			stop()
			stop = func() {}
			file := filepath.Join(c.DataDir(2), "member", "snap", "db")
			sound, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := rewrite(file, replaced("key", "soundvalue", "otherthing")); err != nil {
				t.Fatal(err)
			}
			r = mixedWant(t, o, check.Unhealthy, one, two, spec(2, c.DataDir(2)))
			if r.Best == nil || slices.Contains(r.Best.Members, c.Name(2)) {
				t.Errorf("best of an altered node3: %+v", r.Best)
			}
			if err := os.WriteFile(file, sound, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// silentURL is the URL of an address at which nothing listens.
func silentURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "https://" + l.Addr().String()
}

// mixedWant diagnoses sources of several kinds and wants that health.
func mixedWant(t *testing.T, o compare.Options, want check.Health, specs ...evidence.Spec) *compare.Report {
	t.Helper()
	r, err := compare.Diagnose(t.Context(), specs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v: %s: %s; best %+v", specs[2].Where, r.Verdict.Class, r.Verdict.Summary, r.Best)
	for _, f := range r.Findings {
		t.Logf("%s %s: %s", f.Severity, f.Check, f.Title)
	}
	if r.Verdict.Health != want {
		t.Errorf("%v: %s: %s", specs[2].Where, r.Verdict.Class, r.Verdict.Summary)
	}
	return r
}

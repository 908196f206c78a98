//go:build e2e

package compare_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2EEndpoints reads running members by their maintenance snapshot, with and without a data dir beside them.
func TestE2EEndpoints(t *testing.T) {
	for _, line := range clustertest.Lines {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{})
			for range 20 {
				c.Put(0, "k", "v")
			}
			c.WaitEqual()
			var specs []evidence.Spec
			for i := range c.Size() {
				specs = append(specs, evidence.Spec{Name: c.Name(i), Where: c.Endpoint(i)})
			}
			d, err := compare.Compare(context.Background(), specs, compare.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if key := d.Buckets[0]; !key.Equal.Certain() || key.Compared != 1 ||
				d.Sources[0].Kind != evidence.KindEndpoint {
				t.Errorf("%+v from %+v", key, d.Sources)
			}
			r := diagnose(t, specs[:1])
			if r.Verdict.Health != check.Healthy {
				t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
			}
		})
	}
}

// TestE2EEndpointsBusy reads members that are written to: their snapshots are of different moments.
func TestE2EEndpointsBusy(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.6.16"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3,
				clustertest.Options{Args: []string{"--heartbeat-interval=200", "--election-timeout=2000"}})
			cli := c.Client(0)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for n := 0; ctx.Err() == nil; n++ {
					_, _ = cli.Put(ctx, fmt.Sprintf("k%d", n%50), fmt.Sprint(n))
					time.Sleep(2 * time.Millisecond)
				}
			}()
			time.Sleep(time.Second)
			var specs []evidence.Spec
			for i := range c.Size() {
				specs = append(specs, evidence.Spec{Name: c.Name(i), Where: c.Endpoint(i)})
			}
			r := diagnose(t, specs)
			cancel()
			<-done
			if r.Verdict.Health != check.Healthy {
				t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
			}
			if !strings.Contains(r.Verdict.Summary, "Not proven: no source has a log") {
				t.Errorf("what logs would prove is not said: %s", r.Verdict.Summary)
			}
			if r.Best == nil || len(r.Best.Lost.Unproven) == 0 {
				t.Errorf("best claims to lose nothing: %+v", r.Best)
			}
		})
	}
}

// TestE2EEndpointsDiffer: an altered value, and auth entries applied twice, show in snapshots alone. No member is
// called one that loses nothing.
func TestE2EEndpointsDiffer(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.6.16"} {
		t.Run(version, func(t *testing.T) { endpointsDiffer(t, version) })
	}
}

func endpointsDiffer(t *testing.T, version string) {
	slow := clustertest.Options{Args: []string{"--heartbeat-interval=200", "--election-timeout=2000"}}
	c := clustertest.Start(t, clustertest.Server(t, version), 3, slow)
	for n := range 20 {
		c.Put(0, fmt.Sprintf("k%d", n), "soundvalue")
	}
	c.WaitEqual()
	c.Stop(2)
	db, err := bbolt.Open(filepath.Join(c.DataDir(2), "member", "snap", "db"), 0o600,
		&bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		k, v := b.Cursor().Last()
		return b.Put(bytes.Clone(k), bytes.Replace(v, []byte("soundvalue"), []byte("otherthing"), 1))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	c.StartProcess(2)
	c.WaitServing(2)
	var specs []evidence.Spec
	for i := range c.Size() {
		specs = append(specs, evidence.Spec{Name: c.Name(i), Where: c.Endpoint(i)})
	}
	r := diagnose(t, specs)
	if r.Verdict.Health != check.Unhealthy {
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	}
	if r.Best == nil || len(r.Best.Lost.Unproven) == 0 {
		t.Errorf("best claims to lose nothing: %+v", r.Best)
	}
	t.Logf("%s: %s; %+v", r.Verdict.Class, r.Verdict.Summary, r.Best)
}

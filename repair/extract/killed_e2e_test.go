//go:build e2e

package extract_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/extract"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestE2EKilled kills servers with SIGKILL right after they have acknowledged writes, which their databases do not hold
// yet. An extract has all acknowledged keys, or says how many entries it lacks.
func TestE2EKilled(t *testing.T) {
	for _, version := range []string{"3.4.3", "3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		for _, size := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s-%d", version, size), func(t *testing.T) {
				t.Parallel()
				c := clustertest.Start(t, clustertest.Server(t, version), size, clustertest.Options{})
				fill(t, c)
				l, err := c.Client(0).Grant(context.Background(), 5000)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 60 {
					c.Put(i%size, fmt.Sprintf("/late/%03d", i), fmt.Sprintf("late %d", i), clientv3.WithLease(l.ID))
				}
				c.Delete(0, "/late/003")
				want := map[string]string{}
				for k, v := range acknowledged(t, c) {
					want[k] = v
				}
				for i := range size {
					c.Kill(i)
				}
				var specs []evidence.Spec
				for i := range size {
					specs = append(specs, evidence.Spec{Name: c.Name(i), Where: evidencetest.Copy(t, c.DataDir(i))})
				}
				behind := 0
				for i := range specs {
					behind += fromKilled(t, rebuild.CatchUpOptions{Source: specs[i]}, want, size == 1)
				}
				fromKilled(t, rebuild.CatchUpOptions{Source: specs[0], Logs: specs[1:]}, want, size == 1)
				t.Logf("%d entries were in logs alone", behind)
			})
		}
	}
}

// TestE2EKilledBeforeTheFirstCommit kills servers that have acknowledged writes and have not written any to their
// database: each database holds empty buckets, and an extract has every key of the log.
func TestE2EKilledBeforeTheFirstCommit(t *testing.T) {
	for _, version := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 1, clustertest.Options{
				Args: []string{"--backend-batch-interval", "1h", "--backend-batch-limit", "1000000"}})
			for i := range 300 {
				c.Put(0, fmt.Sprintf("k%03d", i%250), fmt.Sprint(i))
			}
			want := acknowledged(t, c)
			c.Kill(0)
			o := rebuild.CatchUpOptions{
				Source: evidence.Spec{Name: c.Name(0), Where: evidencetest.Copy(t, c.DataDir(0))}}
			if n := fromKilled(t, o, want, true); n < 300 {
				t.Errorf("%d entries were in the log alone: the server has written to its database", n)
			}
		})
	}
}

func acknowledged(t *testing.T, c *clustertest.Cluster) map[string]string {
	t.Helper()
	r, err := c.Client(0).Get(context.Background(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, k := range r.Kvs {
		out[string(k.Key)] = fmt.Sprintf("%q mod %d lease %v", k.Value, k.ModRevision, k.Lease != 0)
	}
	return out
}

// written are bytes as JSON lines have them.
type written struct{ Text, Base64 string }

func (w written) bytes(t *testing.T) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(w.Base64)
	if err != nil {
		t.Fatal(err)
	}
	return w.Text + string(b)
}

// fromKilled wants all keys, or as many entries counted as missing as keys are; whole wants all keys in any case.
func fromKilled(t *testing.T, o rebuild.CatchUpOptions, want map[string]string, whole bool) int {
	t.Helper()
	up, err := rebuild.CatchUp(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = up.Close() }()
	if up.Doubtful > 0 || up.Missing > 0 || whole && !up.Whole() {
		t.Errorf("%s: %v", o.Source.Name, up.Says())
	}
	var out bytes.Buffer
	run(t, up.DB, extract.Options{Format: extract.JSONL, Stream: &out})
	got := map[string]string{}
	for s := bufio.NewScanner(&out); s.Scan(); {
		var rec struct {
			Key, Value  written
			ModRevision int64
			Lease       string
		}
		if err := json.Unmarshal(s.Bytes(), &rec); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		got[rec.Key.bytes(t)] = fmt.Sprintf("%q mod %d lease %v", rec.Value.bytes(t), rec.ModRevision, rec.Lease != "")
	}
	lacks := 0
	for k, v := range want {
		if got[k] != v {
			lacks++
		}
	}
	if up.Whole() {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-served +extracted): %s", o.Source.Name, d)
		}
	} else if int64(lacks) > up.Unproven {
		t.Errorf("%s: %d keys are missing, %d entries counted", o.Source.Name, lacks, up.Unproven)
	}
	return int(up.Executed + up.Unproven)
}

package rebuild_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// TestEveryIndex rebuilds at every index that a recorded server stood at, from nothing and from a base in the middle:
// revision, keys and HashKV are those that the server had there.
func TestEveryIndex(t *testing.T) {
	r := record(t)
	busy(r)
	dir := r.stop()
	before, err := evidencetest.TreeHash(dir)
	if err != nil {
		t.Fatal(err)
	}
	middle := filepath.Join(t.TempDir(), "middle.db")
	half := r.points[len(r.points)/2].index
	if _, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Index: half},
		Out: middle}); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, p := range r.points {
		for _, base := range []string{"", middle} {
			if base != "" && p.index < half {
				continue
			}
			out := filepath.Join(t.TempDir(), "out.db")
			res, err := run(t, rebuild.Options{Base: evidence.Spec{Where: base}, Logs: []evidence.Spec{{Where: dir}},
				To: rebuild.Target{Index: p.index}, Out: out})
			if err != nil {
				t.Fatalf("index %d: %v", p.index, err)
			}
			got := held(t, out, false)
			if d := cmp.Diff(p.keys, got); d != "" || res.To.Revision != p.rev || res.HashKV != p.hash ||
				res.To.CompactRevision != p.compacted || res.DoubtfulCount > 0 {
				t.Fatalf("index %d from %q: %+v, server had revision %d compact %d hash %d (-server +rebuilt)\n%s",
					p.index, base, res, p.rev, p.compacted, p.hash, d)
			}
			checked++
		}
	}
	if checked < 60 {
		t.Errorf("only %d points", checked)
	}
	if after, err := evidencetest.TreeHash(dir); err != nil || after != before {
		t.Error("the data dir was changed")
	}
	last, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Last: true}})
	if err != nil {
		t.Fatal(err)
	}
	if !last.Equal() || last.Differs() {
		t.Errorf("%+v", last.Verified)
	}
	for _, b := range last.Verified[0].Buckets {
		if !b.Equal.Certain() {
			t.Errorf("bucket %s: %+v", b.Bucket, b)
		}
	}
}

func TestTargets(t *testing.T) {
	r := record(t)
	busy(r)
	dir := r.stop()
	logs := []evidence.Spec{{Where: dir}}
	mid := r.points[20]
	res, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Revision: mid.rev}})
	if err != nil || res.To.Revision != mid.rev || res.HashKV != mid.hash {
		t.Errorf("revision %d: %+v %v", mid.rev, res, err)
	}
	out := filepath.Join(t.TempDir(), "out.db")
	res, err = run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Before: []byte("k06")}, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, k := range held(t, out, false) {
		found = found || k.Key == "k06" && k.Value == "6"
	}
	if !found {
		t.Errorf("k06 is not there just before its deletion: %+v", res)
	}
	for name, to := range map[string]rebuild.Target{
		"beyond all times": {Time: time.Now().Add(time.Hour)},
		"beyond commit":    {Index: 100000}, "beyond revision": {Revision: 100000},
		"unknown key": {Before: []byte("never")},
	} {
		var refused *refusal.Error
		if _, err := run(t, rebuild.Options{Logs: logs, To: to}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	res, err = run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Time: time.Now().Add(-10 * time.Hour)}})
	if err != nil || res.To.Index > 5 {
		t.Errorf("before the first request: %+v %v", res, err)
	}
}

// TestTime stops at the renewal of a Kubernetes lease that is later than the time asked for.
func TestTime(t *testing.T) {
	r := record(t)
	noon := time.Now().UTC().Truncate(time.Second)
	for i := range 5 {
		at := noon.Add(time.Duration(i) * 10 * time.Second).Format("2006-01-02T15:04:05.000000Z")
		r.do(func(c *clientv3.Client) error {
			return must(c.Put(ctx(), "/registry/leases/kube-node-lease/n1",
				`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"`+at+`"}}`))
		})
		r.do(func(c *clientv3.Client) error { return must(c.Put(ctx(), "k", fmt.Sprint(i))) })
	}
	dir := r.stop()
	for i := range 4 {
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}},
			To: rebuild.Target{Time: noon.Add(time.Duration(i)*10*time.Second + 3*time.Second)}})
		if want := r.points[2*i+1]; err != nil || res.To.Index != want.index || res.HashKV != want.hash ||
			len(res.Notes) == 0 {
			t.Errorf("%d: %+v %v, want index %d", i, res, err, want.index)
		}
	}
	if _, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}},
		To: rebuild.Target{Time: noon.Add(time.Minute)}}); err == nil {
		t.Error("a time that no entry passes is taken")
	}
}

// TestTimeOfCloseMarks stops at the very entry that shows a later time, however close it is to the one before and
// whatever it shows it with.
func TestTimeOfCloseMarks(t *testing.T) {
	r := record(t)
	noon := time.Now().UTC().Truncate(time.Second).Add(time.Hour) // later than what request IDs show
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * 100 * time.Millisecond) }
	for i := range 30 {
		when := at(i).Format("2006-01-02T15:04:05.000000Z")
		value := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"` + when + `"}}`
		if i%2 == 1 {
			value = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"time":"` + when + `"}]}}`
		}
		r.do(func(c *clientv3.Client) error {
			return must(c.Put(ctx(), fmt.Sprintf("/registry/leases/n/%d", i), value))
		})
	}
	dir := r.stop()
	for i := range 29 {
		for _, past := range []time.Duration{0, 50 * time.Millisecond} {
			res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}},
				To: rebuild.Target{Time: at(i).Add(past)}})
			if want := r.points[i]; err != nil || res.To.Index != want.index || res.HashKV != want.hash {
				t.Errorf("%d and %v: index %d, want %d: %v", i, past, res.To.Index, want.index, err)
			}
		}
	}
}

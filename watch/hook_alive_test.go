package watch

import (
	"testing"
	"time"
)

// TestAliveWhileAHookRuns: rounds wait for a hook, which is no reason to end the watch.
func TestAliveWhileAHookRuns(t *testing.T) {
	w := watcher(renamedCluster(1), Options{Interval: time.Second, Timeout: time.Second, HookTimeout: time.Hour})
	w.setHook(true)
	w.last = w.last.Add(-time.Minute)
	if !w.Alive() {
		t.Error("a watch whose hook runs is said to be dead")
	}
	w.last = w.last.Add(-2 * time.Hour)
	if w.Alive() {
		t.Error("a hook that is not ended at its timeout goes unnoticed")
	}
	if w.setHook(false); !w.Alive() {
		t.Error("after the hook the watch is said to be dead")
	}
}

// TestMetricsOfARenamedMember: no value stays under a name that the member at an endpoint had before.
func TestMetricsOfARenamedMember(t *testing.T) {
	m, keys := NewMetrics(), int64(3)
	for _, name := range []string{"http://a:1", "node1"} {
		m.round(&Round{Members: []Seen{{Endpoint: "http://a:1", Name: name, Auth: &Auth{Revision: 4}, Keys: &keys}}},
			nil, nil)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, v := range f.GetMetric() {
			for _, l := range v.GetLabel() {
				if l.GetName() == "member" && l.GetValue() != "node1" {
					t.Errorf("%s has a value of member %s", f.GetName(), l.GetValue())
				}
			}
		}
	}
}

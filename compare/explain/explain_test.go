package explain_test

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/explain"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// TestEveryCodeIsExplained: each check, cause, rule and message has its topic under its own ID, with words.
func TestEveryCodeIsExplained(t *testing.T) {
	want := map[string]string{}
	for _, c := range check.All() {
		want[string(c.ID)] = "check"
	}
	for _, k := range cause.All() {
		want[string(k.ID)] = "cause"
	}
	for _, k := range cause.Undetected() {
		want[string(k.ID)] = "known-cause"
	}
	for _, r := range preflight.Rules() {
		want[r.ID] = "rule"
	}
	for _, m := range serverlog.All() {
		want[m.ID] = "message"
	}
	for id, kind := range want {
		got, ok := explain.Code(id)
		if !ok || got.ID != id || got.Kind != kind || got.Title == "" || got.Text == "" {
			t.Errorf("%s: %+v, want a %s", id, got, kind)
		}
	}
	if _, ok := explain.Code("Z99"); ok {
		t.Error("Z99 is explained")
	}
	if got, ok := explain.Code("a01-2"); !ok || got.ID != "A01" {
		t.Errorf("a finding leads to %+v", got)
	}
}

// TestOnSources: the message that each incident's server writes is seen on its dirs, and not on those of a healthy
// cluster.
func TestOnSources(t *testing.T) {
	for _, c := range []struct {
		incident, line string
		cause          string
		rules          int
	}{
		{"d-wiped-member", "tocommit(208) is out of range [lastIndex(3)]", "wiped-member-rejoined-same-id", 0},
		{"f-bbolt-page-corruption", "panic: assertion failed: Page expected to be: 7, but self identifies as 1",
			"bbolt-page-damage", 3},
		{"a-auth-revision-replay", "auth: revision in header is old", "auth-revision-replay", 0},
	} {
		topics := explain.Messages(serverlog.Scan(c.line))
		if len(topics) != 1 {
			t.Fatalf("%s: %d topics", c.line, len(topics))
		}
		on := look(t, topics, c.incident)
		if !on.Shown || len(on.Causes) != 1 || string(on.Causes[0].ID) != c.cause || len(on.Findings) == 0 ||
			len(on.Checks) == 0 || len(on.Rules) != c.rules {
			t.Errorf("%s: shown %v, causes %+v, %d findings, %d rules", c.incident, on.Shown, on.Causes,
				len(on.Findings), len(on.Rules))
		}
		if healthy := look(t, topics, "m-healthy-3.5"); healthy.Shown || len(healthy.Causes) > 0 {
			t.Errorf("%s is seen on a healthy cluster: %+v", c.line, healthy)
		}
	}
}

func look(t *testing.T, topics []explain.Topic, incident string) *explain.On {
	t.Helper()
	dir := evidencetest.Incident(t, incident)
	evidencetest.Unchanged(t, dir)
	var specs []evidence.Spec
	for _, n := range []string{"node1", "node2", "node3"} {
		specs = append(specs, evidence.Spec{Name: n, Where: filepath.Join(dir, n)})
	}
	on, err := explain.Look(t.Context(), topics, specs, explain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// TestLookAtNothing: without a source that can be read there is nothing to explain.
func TestLookAtNothing(t *testing.T) {
	specs := []evidence.Spec{{Where: filepath.Join(t.TempDir(), "none")}}
	if on, err := explain.Look(t.Context(), nil, specs, explain.Options{}); err == nil || on != nil {
		t.Errorf("%+v, %v", on, err)
	}
}

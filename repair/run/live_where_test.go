package run

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// whereOf is a live host of n members of which those with an endpoint in answered say who they are.
func whereOf(t *testing.T, n int, endpoints []string, answered map[string]string) *liveHost {
	t.Helper()
	p := fakePlan(t, n, "node2")
	j, err := openJournal(filepath.Join(t.TempDir(), "plan.yaml"), "digest", plan.Live, false, func(Record, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	f := newLiveHost(t.Context(), &LiveOptions{Endpoints: endpoints}, "")
	f.runBy(newRunner(&runState{plan: p, j: j, out: &Outcome{}, say: func(string) {}, live: f.o}, f, defaultLimits()))
	if err := f.where.named(); err != nil {
		t.Fatal(err)
	}
	for name, e := range answered {
		f.where.endpoints[name] = e
	}
	if err := f.where.assign(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEndpointsOfMembersThatAreDown: what --endpoints says counts, not what an old data dir has.
func TestEndpointsOfMembersThatAreDown(t *testing.T) {
	for _, tc := range []struct {
		name      string
		endpoints []string
		answered  map[string]string
		want      [3]string // "" is one of those that are left over
	}{
		{"the one that is left", []string{"http://a:1", "http://b:1", "http://c:1"},
			map[string]string{"node1": "http://a:1", "node3": "http://c:1"},
			[3]string{"http://a:1", "http://b:1", "http://c:1"}},
		{"two are left", []string{"http://a:1", "http://b:1", "http://c:1"}, map[string]string{"node1": "http://a:1"},
			[3]string{"http://a:1", "", ""}},
		{"they are named", []string{"http://a:1", "node3=http://b:1", "node2=http://c:1"},
			map[string]string{"node1": "http://a:1"}, [3]string{"http://a:1", "http://c:1", "http://b:1"}},
		{"on the hosts of their peer URLs", []string{"http://node1:1", "http://node3:1", "http://node2:1"},
			map[string]string{"node1": "http://node1:1"},
			[3]string{"http://node1:1", "http://node2:1", "http://node3:1"}},
		{"as they advertise", []string{"http://a:1", "http://node3:2379", "http://c:1"},
			map[string]string{"node1": "http://a:1"}, [3]string{"http://a:1", "http://c:1", "http://node3:2379"}},
		{"only one is given", []string{"http://a:1"}, map[string]string{"node1": "http://a:1"},
			[3]string{"http://a:1", "http://node2:2379", "http://node3:2379"}},
		{"two on one host", []string{"http://a:1", "http://node2:1", "http://node2:2"},
			map[string]string{"node1": "http://a:1"}, [3]string{"http://a:1", "", ""}},
	} {
		f := whereOf(t, 3, tc.endpoints, tc.answered)
		for i, want := range tc.want {
			m := &f.r.plan.Members[i]
			if got := f.where.endpoint(m); got != want || want == "" && !strings.Contains(f.place(m), " or ") {
				t.Errorf("%s: %s is at %q (%q), want %q", tc.name, m.Name, got, f.place(m), want)
			}
		}
	}
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": "http://a:1"})
	f.where.listed["node2"] = "http://listed:1"
	if e := f.where.endpoint(f.r.plan.Member("node2")); e != "http://listed:1" {
		t.Errorf("%s, want what the running cluster lists", e)
	}
	f.o.Endpoints = []string{"node7=http://a:1"}
	var refused *refusal.Error
	if err := f.where.named(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "no member node7") {
		t.Error(err)
	}
}

// TestDownWithoutEndpoint: a member whose endpoint is not known is certainly down only when nothing listens at any that
// may be its.
func TestDownWithoutEndpoint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	open, closed := fmt.Sprintf("http://%s", l.Addr()), fmt.Sprintf("http://%s", gone.Addr())
	f := whereOf(t, 4, []string{"http://a:1", closed, closed + "/"}, map[string]string{"node1": "http://a:1"})
	if !f.down(t.Context(), f.r.plan.Member("node2")) || f.serves(t.Context(), f.r.plan.Member("node2")) == nil {
		t.Error("nothing listens, and node2 is not down")
	}
	if !f.refuses(t.Context(), f.r.plan.Member("node2")) {
		t.Error("nothing listens, and no connection is refused")
	}
	f = whereOf(t, 4, []string{"http://a:1", closed, open}, map[string]string{"node1": "http://a:1"})
	if f.down(t.Context(), f.r.plan.Member("node2")) {
		t.Error("something listens that may be node2")
	}
}

// TestEndpointOfAnotherMember: a client URL at which another member answers is not that of the member that advertises
// it. Old data dirs of a member show the URL of the one that took its place.
func TestEndpointOfAnotherMember(t *testing.T) {
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": "http://a:1"})
	m := f.r.plan.Member("node2")
	m.ClientURLs, f.where.listed["node2"] = []string{"http://a:1"}, "http://a:1"
	if e := f.where.endpoint(m); e != "" {
		t.Errorf("node2 is at %s", e)
	}
	wantRefusal(t, f.where.ownPlace(m))
	m.ClientURLs = []string{"http://a:1", "http://b:1"}
	if e := f.where.endpoint(m); e != "http://b:1" || f.where.ownPlace(m) != nil {
		t.Errorf("node2 is at %q, want its second URL", e)
	}
	m.ClientURLs = []string{"http://a:1"}
	for _, action := range []plan.Action{plan.Retire, plan.Replace} {
		if m.Action = action; (f.where.endpoint(m) == "") != (action == plan.Replace) {
			t.Errorf("%s: node2 is at %q", action, f.where.endpoint(m))
		}
	}
}

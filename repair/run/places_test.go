package run

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestNamedEndpoints: an endpoint may be given with the name of its member, with the name of its server, or with its
// ID. A URL that has an equals sign names none.
func TestNamedEndpoints(t *testing.T) {
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": "http://a:1"})
	f.r.plan.Member("node2").NodeName = "infra2"
	f.o.Endpoints = []string{"infra2=http://b:1", "3=http://c:1", "http://d:1/?x=1"}
	if err := f.where.named(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"http://b:1", "http://c:1", "http://d:1/?x=1"} {
		if f.o.Endpoints[i] != want {
			t.Errorf("endpoint %d is %s, want %s", i, f.o.Endpoints[i], want)
		}
	}
	for e, want := range map[string]string{"http://b:1": "node2", "http://c:1": "node3", "http://d:1/?x=1": ""} {
		if f.where.given[e] != want {
			t.Errorf("%s is that of %q, want %q", e, f.where.given[e], want)
		}
	}
}

// TestNoLoginAnywhere: a password that is refused is no reason to wait for members or to start some, as one that does
// not answer is.
func TestNoLoginAnywhere(t *testing.T) {
	refuses := &authServer{refuses: rpctypes.ErrGRPCAuthFailed}
	silent := listenedBefore(t)
	for name, tc := range map[string]struct {
		endpoints []string
		want      string
	}{
		"a login is refused":          {[]string{refuses.listen(t)}, "no endpoint says which member it is: "},
		"one is refused, one is down": {[]string{silent, refuses.listen(t)}, "no endpoint says which member it is: "},
		"nothing listens":             {[]string{silent}, errNoAnswer.Error() + ": " + silent},
	} {
		f := whereOf(t, 3, nil, map[string]string{"node1": "http://a:1"})
		f.o.Endpoints, f.o.User, f.o.Password = tc.endpoints, "root", "wrong"
		t.Cleanup(f.logins.close)
		err := f.where.locate(t.Context())
		if r := wantRefusal(t, err); !strings.HasPrefix(r.Reason, tc.want) || strings.Contains(r.Reason, "\n") {
			t.Errorf("%s: %q, want %q", name, r.Reason, tc.want)
		}
	}
}

// listenedBefore is the URL of a port at which nothing listens any more.
func listenedBefore(t *testing.T) string {
	t.Helper()
	c := newFake(t, fakePlan(t, 1))
	c.set(1, false)
	return serve(t, c).urls["node1"]
}

// TestEndpointOfASharedID: a member that stays has an endpoint before a retired one with its ID, wherever it is listed
// in the plan. A standby that has not joined has none, although a server without an ID answers.
func TestEndpointOfASharedID(t *testing.T) {
	for _, retired := range []string{"node2", "node3"} {
		c := newFake(t, fakePlan(t, 4))
		c.r.limits = hasty
		s := serve(t, c)
		for _, name := range []string{"node2", "node3"} {
			c.r.plan.Member(name).ID = 3
		}
		c.r.plan.Member(retired).Action = plan.Retire
		c.r.plan.Member("node4").ID = 0
		s.stop("node4")
		c.set(0, true)
		s.start("node4", 0)
		f := s.live(s.endpoints("node1", "node3", "node4")...)
		if err := f.where.locate(t.Context()); err != nil {
			t.Fatal(err)
		}
		stays := map[string]string{"node2": "node3", "node3": "node2"}[retired]
		for name, want := range map[string]string{"node1": s.urls["node1"], stays: s.urls["node3"], retired: "",
			"node4": ""} {
			if got := f.where.endpoints[name]; got != want {
				t.Errorf("%s is retired: %s is at %q, want %q", retired, name, got, want)
			}
		}
	}
}

// TestInstructions: a person reads which member to work on, what is known of its host, and what is looked at
// afterwards.
func TestInstructions(t *testing.T) {
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": "http://a:1"})
	f.o.DataDirs = map[string]string{"node2": "/var/lib/etcd2"}
	m := f.r.plan.Member("node2")
	if err := f.r.note("", "id:node2", "77"); err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct{ title, then string }{
		"stop": {"stop node2 (77), one of:", "then node2 must not answer at http://node2:2379 any more"},
		"wipe": {"move the data dir of node2 (77) aside, one of:", "move it, do not delete it; an empty data dir " +
			"must be left, or none. A copy of it at " + AsidePath(f.plan, m) + " here is compared for what only it holds"},
		"start": {"start node2 (77), one of:", "then member 77 must answer at http://node2:2379"},
	} {
		hand := []plan.Command{{With: "etcdctl", Run: "etcdctl member list"},
			{With: "note", Note: "the data dir is DATA_DIR"}}
		text := f.instructions(m, what, hand, "")
		if text[0] != tc.title || text[len(text)-1] != tc.then || len(text) != 3 ||
			!strings.Contains(text[1], "the data dir is /var/lib/etcd2") {
			t.Errorf("%s: %q", what, text)
		}
	}
	for initial, lines := range map[string]int{"node2=http://node2:2380": 2, "node 2=http://node2:2380": 3} {
		text := f.instructions(m, "start", nil, initial)
		if len(text) != lines || lines == 3 && text[1] != "  INITIAL_CLUSTER is "+initial {
			t.Errorf("%s: %q", initial, text)
		}
	}
}

package copies

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
)

// TestNeedCountsWhoWrote: dirs of 3.5 with the cluster version of 3.4, as a restore by an old tool leaves them, stay
// where they are on a server of 3.5, and an older one must not open them.
func TestNeedCountsWhoWrote(t *testing.T) {
	m := &evidence.Member{DB: &evidence.DB{Cluster: dumpdb.Cluster{Version: "3.4.0"}},
		Version: evidence.Version{Minor: 5}}
	n, err := NeedOf(t.Context(), []*evidence.Member{m}, func(*evidence.Member) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if s := n.Raises(node.Version{Major: 3, Minor: 5, Patch: 35}); s != "" {
		t.Errorf("a server of 3.5 raises dirs that 3.5 wrote: %s", s)
	}
	if n.Raises(node.Version{Major: 3, Minor: 6}) == "" {
		t.Error("a server of 3.6 raises nothing")
	}
	if _, ok := n.Opens(node.Version{Major: 3, Minor: 4, Patch: 3}); ok {
		t.Error("a server of 3.4 may open dirs that 3.5 wrote")
	}
}

// TestNeedOfSeveral: the newest version that any member has counts, in any order.
func TestNeedOfSeveral(t *testing.T) {
	m := func(storage, cluster string, minor int) *evidence.Member {
		return &evidence.Member{DB: &evidence.DB{Meta: dumpdb.MetaBucket{StorageVersion: storage},
			Cluster: dumpdb.Cluster{Version: cluster}}, Version: evidence.Version{Minor: minor}}
	}
	a, b, c := m("3.6.0", "3.6.0", 7), m("", "3.7.0", 6), &evidence.Member{}
	want := node.Need{Storage: node.Version{Major: 3, Minor: 6}, Cluster: node.Version{Major: 3, Minor: 7},
		Written: node.Version{Major: 3, Minor: 7}}
	for _, order := range [][]*evidence.Member{{a, b, c}, {c, b, a}, {b, a}} {
		n, err := NeedOf(t.Context(), order, func(*evidence.Member) bool { return true })
		if err != nil || n != want {
			t.Errorf("%+v, %v", n, err)
		}
	}
}

// TestOfMembership: servers write their attributes and the cluster version through the v2 store; anything else is a
// user's.
func TestOfMembership(t *testing.T) {
	const attr, value = "/0/members/1f/attributes", `{"name":"n","clientURLs":["http://127.0.0.1:1"]}`
	for _, c := range []struct {
		r    dumplog.V2Request
		want bool
	}{
		{dumplog.V2Request{Method: "PUT", Path: attr, Val: value}, true},
		{dumplog.V2Request{Method: "PUT", Path: "/0/version", Val: "3.4.0"}, true},
		{dumplog.V2Request{Method: "DELETE", Path: "/0/version"}, false},
		{dumplog.V2Request{Method: "PUT", Path: "/1/key", Val: "v"}, false},
	} {
		if got := ofMembership(&c.r); got != c.want {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
}

// TestMemberConfig: name and peer URLs are those of the newest list, else of the member's own; client URLs are from a
// database that has them.
func TestMemberConfig(t *testing.T) {
	one := func(name, peer, client string) *evidence.Member {
		m := &evidence.Member{MemberID: 7, Source: &evidence.Source{Name: "label"}}
		if name != "" {
			m.Membership.Names = map[dumplog.ID]string{7: name}
		}
		if peer != "" {
			m.Membership.PeerURLs = map[dumplog.ID][]string{7: {peer}}
		}
		if client != "" {
			m.DB = &evidence.DB{Members: []dumpdb.Member{{ID: 6, ClientURLs: []string{"other"}},
				{ID: 7, ClientURLs: []string{client}}}}
		}
		return m
	}
	for _, c := range []struct {
		own, newest *evidence.Member
		want        string
	}{
		{one("own", "p1", "c1"), one("new", "p2", "c2"), "new p2 c2"},
		{one("own", "p1", "c1"), one("", "", ""), "own p1 c1"},
		{one("", "p1", ""), one("", "", "c2"), "label p1 c2"},
		{one("own", "", ""), one("", "p2", ""), "own p2 "},
		{one("own", "", "c1"), one("new", "", "c2"), "refused"},
	} {
		m, err := member(c.own, c.newest)
		got := m.Config.Name + " " + strings.Join(m.Config.PeerURLs, ",") + " " + strings.Join(m.Config.ClientURLs, ",")
		if err != nil {
			got = "refused"
		}
		if got != c.want || err == nil && m.Source != c.own {
			t.Errorf("%s, want %s: %v", got, c.want, err)
		}
	}
}

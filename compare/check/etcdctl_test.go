package check_test

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestAtEndpoint: a command of etcdctl is sent to the newest member that serves clients, never to a learner or to the
// member that it removes, with the flags to log in.
func TestAtEndpoint(t *testing.T) {
	source := func(id uint64, index uint64, auth bool, rows ...dumpdb.Member) *evidence.Member {
		m := &evidence.Member{MemberID: dumplog.ID(id), DB: &evidence.DB{Members: rows}}
		m.DB.Auth.Enabled = auth
		m.DB.Meta.ConsistentIndex = &index
		return m
	}
	row := func(id uint64, learner bool, urls ...string) dumpdb.Member {
		return dumpdb.Member{ID: dumpdb.ID(id), ClientURLs: urls, IsLearner: learner}
	}
	a, b, c := row(0xa, false, "http://a:2379"), row(0xb, false, "https://b:2379"), row(0xc, true, "http://c:2379")
	old, young := source(0xa, 5, false, a), source(0xb, 9, true, a, b, c)
	learner := source(0xc, 99, false, c)
	disarm, remove := shell.Format("etcdctl alarm disarm"), shell.Format("etcdctl member remove {}", "b")
	for _, k := range []struct {
		name string
		ss   check.Sources
		c    shell.Command
		want string
	}{
		{"the newest", check.Sources{old, young}, disarm, "etcdctl --endpoints https://b:2379 --cacert CA.crt --cert " +
			"CLIENT.crt --key CLIENT.key --user root alarm disarm"},
		{"another than the member", check.Sources{old, young}, remove,
			"etcdctl --endpoints http://a:2379 --user root member remove b"},
		{"no learner", check.Sources{learner, old}, disarm, "etcdctl --endpoints http://a:2379 alarm disarm"},
		{"nothing known", check.Sources{learner}, disarm, "etcdctl --endpoints CLIENT_URL alarm disarm"},
		{"given", check.Sources{old}, shell.Format("etcdctl --endpoints http://x:1 alarm disarm"),
			"etcdctl --endpoints http://x:1 alarm disarm"},
		{"another program", check.Sources{old}, shell.Format("etcd-medic dumpdb x"), "etcd-medic dumpdb x"},
		{"none", check.Sources{old}, shell.Command{}, ""},
	} {
		if got := k.ss.AtEndpoint(k.c).String(); got != k.want {
			t.Errorf("%s: %s, want %s", k.name, got, k.want)
		}
	}
}

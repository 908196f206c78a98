package apply_test

import (
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/apply"
)

// TestNewIDs compares the recipes with etcd's.
func TestNewIDs(t *testing.T) {
	var ids []uint64
	for _, urls := range [][]string{{"http://b:1", "http://a:1"}, {"http://c:1"}, {"http://d:1"}} {
		u, err := types.NewURLs(urls)
		if err != nil {
			t.Fatal(err)
		}
		id := apply.NewMemberID(urls, "token")
		if want := uint64(membership.NewMember("x", u, "token", nil).ID); id != want {
			t.Errorf("member %v: %x, etcd %x", urls, id, want)
		}
		ids = append(ids, id)
	}
	um, err := types.NewURLsMap("x=http://b:1,x=http://a:1,y=http://c:1,z=http://d:1")
	if err != nil {
		t.Fatal(err)
	}
	cl, err := membership.NewClusterFromURLsMap(zap.NewNop(), "token", um)
	if err != nil {
		t.Fatal(err)
	}
	if got := apply.NewClusterID(ids); got != uint64(cl.ID()) {
		t.Errorf("cluster %x, etcd %x", got, uint64(cl.ID()))
	}
}

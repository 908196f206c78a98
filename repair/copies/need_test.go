package copies

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
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

package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAdds: servers refuse the update, promotion or removal of an ID that they do not know, as one with a typing error.
// Below the oldest snapshot of a purged log nothing tells whether they did, so only an addition shows that the ID was a
// member.
func TestAdds(t *testing.T) {
	for _, c := range []struct {
		kind    dumplog.ConfChangeType
		promote bool
		want    bool
	}{
		{dumplog.ConfChangeAddNode, false, true},
		{dumplog.ConfChangeAddLearnerNode, false, true},
		{dumplog.ConfChangeAddNode, true, false},
		{dumplog.ConfChangeUpdateNode, false, false},
	} {
		e := evidence.ConfEntry{Change: dumplog.ConfChange{Type: c.kind, NodeID: 0x3039,
			Member: &dumplog.MemberContext{IsPromote: c.promote}}}
		if got := adds(&e); got != c.want {
			t.Errorf("%v, promote %v: %v", c.kind, c.promote, got)
		}
	}
	if adds(&evidence.ConfEntry{Change: dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode}}) {
		t.Error("a removal adds")
	}
}

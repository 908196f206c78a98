package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestStaleRowsAreInNoOrder: a finding about rows of several members is at the lowest conf change that a log shows,
// whatever the order of the members, and one whose log shows none.
func TestStaleRowsAreInNoOrder(t *testing.T) {
	member := func(index ...uint64) *evidence.Member {
		m := &evidence.Member{Source: &evidence.Source{Name: "node"}, Commit: 50, DB: &evidence.DB{}}
		for _, i := range index {
			m.WAL.Conf = append(m.WAL.Conf, evidence.ConfEntry{Index: i,
				Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 1}})
		}
		return m
	}
	row := []*dumpdb.Member{{ID: 7}}
	early, late, purged := member(3), member(3, 9), member()
	for i, order := range [][]*evidence.Member{{early, late, purged}, {purged, late, early}, {late, purged, early},
		{early, purged, late}} {
		s := staleRows{kind: KindMemberZombie, members: order, rows: [][]*dumpdb.Member{row, row, row}}
		if f := s.finding(); f.At.Index != 3 {
			t.Errorf("order %d: at entry %d", i, f.At.Index)
		}
	}
}

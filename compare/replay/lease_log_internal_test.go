package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

func checkpointOf(id, remaining int64) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
		Checkpoints: []dumplog.LeaseCheckpoint{{ID: id, RemainingTTL: remaining}}}}
}

// TestAddLeases: a lease that no model knows is compared with its grant in the log, if the server made its ID. That no
// checkpoint set its remaining TTL is known if the log holds every entry since, in one version.
func TestAddLeases(t *testing.T) {
	const id = 1<<20 - 1
	grant, other := grantOf(id, 60, 1<<20), grantOf(id, 60, 1<<30)
	fact := func(stored int64, never bool) []LeaseFact {
		return []LeaseFact{{ID: id, Term: 3, Index: 20, Asked: 60, Stored: 60, StoredRemaining: stored,
			NeverAsked: never}}
	}
	disputed := itemAt(22, put("k", "1"))
	disputed.others = map[int]*item{1: itemAt(22, put("k", "2"))}
	for name, c := range map[string]struct {
		log     []*item
		stored  int64
		applied uint64
		known   []LeaseFact
		want    []LeaseFact
	}{
		"no remaining TTL":          {log: []*item{itemAt(20, grant)}, want: fact(0, false)},
		"one that nothing sets":     {log: []*item{itemAt(20, grant)}, stored: 5, want: fact(5, true)},
		"one that a checkpoint set": {log: []*item{itemAt(20, grant), itemAt(21, checkpointOf(id, 5))}, stored: 5, want: fact(5, false)},
		"a checkpoint of another TTL": {log: []*item{itemAt(20, grant), itemAt(21, checkpointOf(id, 6))}, stored: 5,
			want: fact(5, true)},
		"a checkpoint of another lease": {log: []*item{itemAt(20, grant), itemAt(21, checkpointOf(7, 5))}, stored: 5,
			want: fact(5, true)},
		"an entry that does not decode": {log: []*item{itemAt(20, grant), itemAt(21, &dumplog.Request{}).unknown()},
			stored: 5, want: fact(5, false)},
		"one before the grant": {log: []*item{itemAt(19, &dumplog.Request{}).unknown(), itemAt(20, grant)}, stored: 5,
			want: fact(5, true)},
		"entries that no log has":   {log: []*item{itemAt(20, grant), itemAt(22, put("k", "1"))}, stored: 5, want: fact(5, false)},
		"two versions of an entry":  {log: []*item{itemAt(20, grant), itemAt(21, put("k", "1")), disputed}, stored: 5, want: fact(5, false)},
		"more was applied":          {log: []*item{itemAt(20, grant)}, stored: 5, applied: 31, want: fact(5, false)},
		"a client chose the ID":     {log: []*item{itemAt(20, other)}, stored: 5},
		"it was granted once more":  {log: []*item{itemAt(20, grant), itemAt(21, other)}, stored: 5},
		"the grant is in no log":    {log: []*item{itemAt(20, put("k", "1"))}, stored: 5},
		"the model knows the lease": {log: []*item{itemAt(20, grant)}, stored: 5, known: fact(5, false), want: fact(5, false)},
	} {
		r := &Result{Last: 30, Survey: &Survey{}}
		for _, it := range c.log {
			r.Survey.leases.note(it)
		}
		rows := []dumpdb.Lease{{ID: id, TTL: 60, RemainingTTL: c.stored}}
		m := &evidence.Member{AppliedMax: max(c.applied, 30), DB: &evidence.DB{Handle: &dumpdb.DB{}, Leases: rows}}
		r.Members = []*MemberResult{{Member: &evidence.Member{}}, {Member: m, Leases: c.known}}
		if r.addLeases(); !slices.Equal(r.Members[1].Leases, c.want) {
			t.Errorf("%s: %+v, want %+v", name, r.Members[1].Leases, c.want)
		}
	}
}

// TestCheckpointsAreBounded: a checkpoint that is not kept may be of any lease.
func TestCheckpointsAreBounded(t *testing.T) {
	checkpoints := func(n int64) (r dumplog.Request) {
		r.LeaseCheckpoint = &dumplog.LeaseCheckpointRequest{}
		for i := range n {
			r.LeaseCheckpoint.Checkpoints = append(r.LeaseCheckpoint.Checkpoints,
				dumplog.LeaseCheckpoint{ID: i, RemainingTTL: 5})
		}
		return r
	}
	for n, unread := range map[int64]uint64{maxLeaseOps: 0, maxLeaseOps + 1: 1} {
		r := checkpoints(n)
		var ll leaseLog
		ll.note(itemAt(1, &r))
		if len(ll.checkpoints) != maxLeaseOps || ll.unread != unread {
			t.Errorf("%d checkpoints: %d kept, those at %d not read", n, len(ll.checkpoints), ll.unread)
		}
	}
}

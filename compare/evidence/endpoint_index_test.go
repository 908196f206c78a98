package evidence

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestAlignRunning: snapshots are compared at an index only if what they hold is exactly the content at that index.
func TestAlignRunning(t *testing.T) {
	type said struct{ stored, applied, committed uint64 }
	for name, c := range map[string]struct {
		server string
		said   []said
		want   []uint64
	}{
		"stored indexes lag behind entries without effect": {"3.6.16",
			[]said{{98, 100, 100}, {100, 100, 100}, {95, 100, 100}}, []uint64{100, 100, 100}},
		"one member has applied more without effect": {"3.5.35",
			[]said{{98, 100, 101}, {98, 101, 101}, {98, 100, 101}}, []uint64{100, 100, 100}},
		"one member has applied more with effect": {"3.6.16",
			[]said{{98, 100, 102}, {102, 102, 102}, {99, 100, 102}}, []uint64{100, 102, 100}},
		"a snapshot holds more than its member had applied before": {"3.6.16",
			[]said{{105, 100, 105}, {104, 105, 105}, {105, 105, 105}}, []uint64{105, 105, 105}},
		"a member says nothing":   {"3.6.16", []said{{98, 0, 0}, {98, 100, 100}}, []uint64{98, 98}},
		"no member says anything": {"3.6.16", []said{{98, 0, 0}, {99, 0, 0}}, []uint64{98, 99}},
		"no stored index":         {"3.6.16", []said{{0, 100, 100}, {98, 100, 100}}, []uint64{0, 100}},
		"old servers with nothing left to apply": {"3.4.23",
			[]said{{60, 100, 100}, {90, 100, 100}}, []uint64{100, 100}},
		"an old server that stores every index":    {"3.4.23", []said{{100, 100, 100}}, []uint64{100}},
		"an old server that stores an index early": {"3.4.23", []said{{101, 100, 100}}, []uint64{0}},
		"two that meet at an index": {"3.6.16",
			[]said{{98, 100, 100}, {100, 105, 105}, {101, 105, 105}}, []uint64{100, 100, 105}},
		"the highest is first": {"3.6.16",
			[]said{{101, 105, 105}, {100, 105, 105}, {98, 100, 100}}, []uint64{105, 100, 100}},
		"an old server that keeps applying": {"3.4.23",
			[]said{{60, 100, 101}, {90, 100, 100}}, []uint64{0, 100}},
		"an index that is stored before the effect": {"3.5.0",
			[]said{{60, 100, 101}, {60, 100, 100}}, []uint64{0, 100}},
		"an unknown server": {"", []said{{60, 100, 101}, {60, 100, 100}}, []uint64{0, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			var members []*Member
			for _, s := range c.said {
				m := &Member{DB: &DB{}, Source: &Source{running: &running{server: release.Of(c.server),
					applied: s.applied, committed: s.committed}}}
				if s.stored > 0 {
					m.DB.Meta = dumpdb.MetaBucket{ConsistentIndex: &s.stored}
				}
				members = append(members, m)
			}
			alignRunning(members)
			var got []uint64
			for _, m := range members {
				got = append(got, m.exactIndex)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("compared at %d, want %d", got, c.want)
			}
		})
	}
}

// TestAlignRunningApart: indexes of two clusters say nothing of each other, and other sources keep theirs.
func TestAlignRunningApart(t *testing.T) {
	stored, server := uint64(90), release.Of("3.6.16")
	meta := dumpdb.MetaBucket{ConsistentIndex: &stored}
	a := &Member{DB: &DB{Meta: meta}, Source: &Source{running: &running{cluster: 1, server: server, applied: 100}}}
	b := &Member{DB: &DB{Meta: meta}, Source: &Source{running: &running{cluster: 2, server: server, applied: 95}}}
	c := &Member{DB: &DB{Meta: meta}, Source: &Source{Kind: KindDataDir}}
	reachOfBackups([]*Member{a, b, c})
	if a.AppliedMin != 100 || b.AppliedMin != 95 || c.AppliedMin != 90 || a.AppliedMax != 100 || a.Commit != 100 {
		t.Errorf("applied %d to %d, %d, %d, committed %d", a.AppliedMin, a.AppliedMax, b.AppliedMin, c.AppliedMin,
			a.Commit)
	}
}

// TestSnapshotMayHoldMore: a snapshot may hold more than its indexes show if its member kept applying; an index that
// replaces the stored one is kept.
func TestSnapshotMayHoldMore(t *testing.T) {
	stored := uint64(90)
	meta := dumpdb.MetaBucket{ConsistentIndex: &stored}
	old := &Member{DB: &DB{Meta: meta}, Source: &Source{running: &running{server: release.Of("3.4.23"), applied: 95,
		committed: 96}}}
	other := &Member{DB: &DB{Meta: meta}, Source: &Source{}}
	overridden := &Member{DB: &DB{Meta: meta}, exactIndex: 95, indexOverride: 80, Source: &Source{running: &running{
		server: release.Of("3.6.16"), applied: 95}}}
	alignRunning([]*Member{old, other, overridden})
	if !old.MayHoldMore() || other.MayHoldMore() || overridden.exactIndex != 0 {
		t.Errorf("%v, %v, %d", old.MayHoldMore(), other.MayHoldMore(), overridden.exactIndex)
	}
}

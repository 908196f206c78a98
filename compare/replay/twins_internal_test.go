package replay

import (
	"reflect"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestTake: a member that shares another's replay has its results as copies, so that what is added to the results of
// one does not reach the other. What comparing members showed stays its own.
func TestTake(t *testing.T) {
	from := &MemberResult{Member: &evidence.Member{}, Checked: true, To: 9, Lacks: 1, Unique: 2, LacksAcked: 3,
		LacksKeys: map[string]struct{}{"x": {}}, firstBad: &Event{}, Jumps: make([]Jump, 1), Extra: make([]int64, 1),
		Reruns: make([]Stretch, 1), StateDiffs: make([]StateDiff, 1), Leases: make([]LeaseFact, 1),
		Kept: make([]KeptLease, 1), Beyond: make([]Beyond, 1), Shut: make([]ShutSpan, 1), Below: make([]BelowDiff, 1),
		LeaseFaults: make([]LeaseFault, 1), Repeats: map[int64]LeaseRepeat{7: {}}}
	from.Curve.Points = make([]Point, 1)
	own := &evidence.Member{}
	m := &MemberResult{Member: own, Lacks: 4, Surplus: 7, Unique: 5, LacksAcked: 6,
		UniqueKeys: map[string]struct{}{"y": {}}}
	m.take(from)
	if m.Member != own || m.firstBad != nil || m.Lacks != 4 || m.Surplus != 7 || m.Unique != 5 || m.LacksAcked != 6 ||
		m.LacksKeys != nil || len(m.UniqueKeys) != 1 {
		t.Errorf("its own results are %+v", m)
	}
	if !m.Checked || m.To != 9 {
		t.Errorf("the other's results are %+v", m)
	}
	if len(m.Curve.Points) != 1 || &m.Curve.Points[0] == &from.Curve.Points[0] {
		t.Errorf("points of the curve: %d, or they are shared", len(m.Curve.Points))
	}
	for _, name := range []string{"Jumps", "Extra", "Reruns", "StateDiffs", "Leases", "Kept", "Beyond", "Shut", "Below",
		"LeaseFaults", "Repeats"} {
		theirs := reflect.ValueOf(from).Elem().FieldByName(name)
		ours := reflect.ValueOf(m).Elem().FieldByName(name)
		if ours.Len() != 1 || ours.Pointer() == theirs.Pointer() {
			t.Errorf("%s: %d, shared: %t", name, ours.Len(), ours.Pointer() == theirs.Pointer())
		}
	}
}

package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestEveryKindIsDone: the table of this package and that of package plan have a row for the same kinds; what a host
// does has a function, and what others do has none.
func TestEveryKindIsDone(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(table())), plan.StepKinds(); !slices.Equal(got, want) {
		t.Errorf("rows for %q, a plan has %q", got, want)
	}
	for k, a := range table() {
		if (a.by == aHost) != (a.run != nil) || a.by != aHost && (a.done != nil || a.needs != noVoters) {
			t.Errorf("%s is done by %d, with a function: %v", k, a.by, a.run != nil)
		}
		// What must not be done while voters are missing is what takes one away or changes the list.
		takes := []plan.StepKind{plan.StepStop, plan.StepRemove, plan.StepAdd}
		if slices.Contains(takes, k) != (a.needs == theOthers) {
			t.Errorf("%s asks %d of the voters", k, a.needs)
		}
	}
}

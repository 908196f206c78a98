package replay

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestMovedEntry: an entry of an older process that was moved in the only log that holds it shows no second process:
// the database has its record in another place.
func TestMovedEntry(t *testing.T) {
	begun := uint64(1763000000000)
	newer := begun + 9000
	log := func(t *testing.T, id uint64, value, at4 string) string {
		h := clustertest.NewHand(t, t.TempDir(), clustertest.HandName(id), id, 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Publish(2, 3, 0xa1, clustertest.RequestID(0xa1, begun, 1))
		h.Put(2, 4, clustertest.RequestID(0xa1, newer, 2), "b", "of the newer", false)
		h.Revision("k", at4)
		h.Publish(2, 5, 0xa1, clustertest.RequestID(0xa1, newer, 1))
		for i := range uint64(10) {
			h.Put(2, 6+i, clustertest.RequestID(0xa1, newer, 3+i), fmt.Sprintf("a%d", i), "1", true)
		}
		h.Put(2, 16, clustertest.RequestID(0xa1, begun, 2), "k", value, false)
		h.Revision("b", "of the newer")
		h.Put(2, 17, clustertest.RequestID(0xa1, newer, 20), "c", "1", true)
		h.State(2, 0xa1, 17)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		return h.Close(17, 2)
	}
	for name, c := range map[string]struct {
		dirs []string
		want int
	}{
		"moved":              {[]string{log(t, 0xa1, "of the older", "of the older")}, 0},
		"its value is alone": {[]string{log(t, 0xa1, "another", "of the older")}, 1},
		"no value":           {[]string{log(t, 0xa1, "", "")}, 1},
		"two logs hold it": {[]string{log(t, 0xa1, "of the older", "of the older"),
			log(t, 0xa2, "of the older", "of the older")}, 1},
	} {
		if r := run(t, open(t, c.dirs...), Options{}); len(r.Overlaps) != c.want {
			t.Errorf("%s: %+v, want %d", name, r.Overlaps, c.want)
		}
	}
}

// TestStrangeRevisions: those that no entry explains and those with other records than their entry's, up to a bound.
func TestStrangeRevisions(t *testing.T) {
	r := &Result{Members: []*MemberResult{{Extra: []int64{4, 9}}, {}}, Events: []*Event{
		{Index: 5, Outcomes: []Outcome{{State: Contradicted, Rev: 6}, {State: Applied, Rev: 6}}},
		{Index: 6, Outcomes: []Outcome{{State: Contradicted, Rev: 7}, {State: Contradicted, Rev: 7}}},
		{Index: 7, Outcomes: []Outcome{{State: Missing, Rev: 8}, {State: Contradicted}}}}}
	for pos, want := range []string{"[4 9 7]", "[7]"} {
		if got := fmt.Sprint(r.strange(pos, 5)); got != want {
			t.Errorf("member %d: %s, want %s", pos, got, want)
		}
	}
	r.Members[1].Extra = make([]int64, 2*maxMoved)
	if n := len(r.strange(1, 0)); n != maxMoved {
		t.Errorf("%d", n)
	}
}

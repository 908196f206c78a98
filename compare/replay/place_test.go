package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// restoredTwice writes two members of a cluster that was restored from a backup with ten revisions, and that then had
// eight puts, a restart of the second member and two more puts, all with values that the keys already had. What the
// databases hold after the backup is given as numbers of the puts.
func restoredTwice(t *testing.T, backups [2]int, executed [2][]int) (dirs []string) {
	t.Helper()
	ids := []uint64{0xa1, 0xa2}
	key := func(n int) string { return fmt.Sprintf("k%d", n%4) }
	for i, id := range ids {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
		h.Found(true, ids...)
		h.Request(2, 3, nil)
		for j := range backups[i] {
			h.Revision(key(j), "v")
		}
		at := uint64(4)
		publish := func(m uint64, n uint64) {
			h.Publish(2, at, m, clustertest.RequestID(m, 1763000000000, n))
			at++
		}
		publish(0xa1, 1)
		publish(0xa2, 1)
		for n := 1; n <= 10; n++ {
			if n == 9 {
				publish(0xa2, 1<<7)
			}
			h.Put(2, at, clustertest.RequestID(0xa1, 1763000000000, uint64(10+n)), key(n), "v", false)
			at++
		}
		for _, n := range executed[i] {
			h.Revision(key(n), "v")
		}
		h.State(2, 0xa1, at-1)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		dirs = append(dirs, h.Close(at-1, 2))
	}
	return dirs
}

// TestFromOneBackup: a restored member that executed a part of its log twice began where the others did, although its
// newest records alone fit a backup with more in it. One whose older records no entry wrote did not.
func TestFromOneBackup(t *testing.T) {
	once := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	twice := slices.Concat(once[:8], once)
	for name, c := range map[string]struct {
		backups  [2]int
		executed [2][]int
		base     int64
		reruns   int
	}{
		"executed once":       {[2]int{10, 10}, [2][]int{once, once}, 11, 0},
		"executed twice":      {[2]int{10, 10}, [2][]int{once, twice}, 11, 1},
		"of a younger backup": {[2]int{10, 17}, [2][]int{once, once}, 18, 0},
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			dirs := restoredTwice(t, c.backups, c.executed)
			r := run(t, open(t, dirs[order[0]], dirs[order[1]]), Options{Each: true})
			m := r.Members[order[1]]
			if m.BaseRevision != c.base || len(m.Reruns) != c.reruns || m.unexplained() > 0 {
				t.Errorf("%s: %s, executed twice %v", name, told(m), m.Reruns)
			}
			if o := r.Members[order[0]]; o.BaseRevision != 11 || len(o.Reruns) > 0 {
				t.Errorf("%s: the other one %s", name, told(o))
			}
		}
	}
}

// TestPlaceThatIsKept: a place that contradicts a certain log is kept if another one explains no more of the database.
func TestPlaceThatIsKept(t *testing.T) {
	whole := from1(20)
	set := open(t, handLogs(t, whole, whole, whole)...)
	r := run(t, set, Options{Each: true})
	want := told(r.Members[1])
	r.Members[1].misplaced = true
	if err := replace(t.Context(), r, Options{Each: true}); err != nil {
		t.Fatal(err)
	}
	if got := told(r.Members[1]); got != want || r.Members[1].misplaced || len(r.late) > 0 {
		t.Errorf("%s, %v; want %s", got, r.late, want)
	}
	if m := r.Members[0]; m.Counts[Applied] != len(whole) {
		t.Errorf("another member has %d entries applied", m.Counts[Applied])
	}
}

package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// noEffect is added to the number of a request without a record in the database.
const noEffect = 1000

// handLogs writes a member for each list of puts, whose log holds them from index 5 on; one number is one request. The
// databases hold each request once, and end with the log.
func handLogs(t *testing.T, logs ...[]uint64) (dirs []string) {
	t.Helper()
	ids := []uint64{0xa1, 0xa2, 0xa3}[:len(logs)]
	for i, puts := range logs {
		dirs = append(dirs, handLog(t, i, ids, puts, func(h *clustertest.Hand, last uint64) string {
			h.State(2, 0xa1, last)
			return h.Close(last, 2)
		}))
	}
	return dirs
}

// handLog writes one member; end is called with the index of its last entry.
func handLog(t *testing.T, i int, ids, puts []uint64, end func(h *clustertest.Hand, last uint64) string) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), ids[i], 0xc1)
	h.Found(false, ids...)
	h.Request(2, uint64(len(ids)+1), nil)
	at := uint64(len(ids) + 2)
	for j, n := range puts {
		h.Put(2, at, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v",
			n < noEffect && !slices.Contains(puts[:j], n))
		at++
	}
	for _, id := range ids {
		h.Member(id, false, true)
	}
	return end(h, at-1)
}

// TestShiftBeforeASnapshot: two of three logs lack an entry, and end one before the snapshot that their members took.
// They are not right because they are more.
func TestShiftBeforeASnapshot(t *testing.T) {
	whole := from1(20)
	lacking := slices.Delete(slices.Clone(whole), 8, 9)
	last := uint64(4 + len(whole))
	var dirs []string
	for i, puts := range [][]uint64{whole, lacking, lacking} {
		dirs = append(dirs, handLog(t, i, []uint64{0xa1, 0xa2, 0xa3}, puts, func(h *clustertest.Hand, _ uint64) string {
			h.State(2, 0xa1, last)
			h.Snapshot(2, last, 0xa1, 0xa2, 0xa3)
			return h.Close(last, 2)
		}))
	}
	s := theShift(run(t, open(t, dirs...), Options{}))
	if s == nil || !s.Proven || s.Added || !slices.Equal(s.Altered(), []int{1, 2}) {
		t.Errorf("%+v", s)
	}
}

// TestShiftWithAHighIndex: one log holds a request twice, and the database of another member has an index above the end
// of its log. The request that is there twice was added all the same.
func TestShiftWithAHighIndex(t *testing.T) {
	var dirs []string
	ids := []uint64{0xa1, 0xa2, 0xa3}
	for i, puts := range [][]uint64{from1(20), again(0), from1(20)} {
		dirs = append(dirs, handLog(t, i, ids, puts, func(h *clustertest.Hand, last uint64) string {
			h.State(2, 0xa1, last)
			if i == 0 {
				last++
			}
			return h.Close(last, 2)
		}))
	}
	s := theShift(run(t, open(t, dirs...), Options{}))
	if s == nil || s.Proven || !s.Added || !s.Repeated || !slices.Equal(s.Altered(), []int{1}) {
		t.Errorf("%+v", s)
	}
}

// from1 are the requests 1 to n.
func from1(n uint64) (all []uint64) {
	for i := uint64(1); i <= n; i++ {
		all = append(all, i)
	}
	return all
}

// again are requests of which one is there twice, with n between.
func again(n int) []uint64 { return slices.Insert(from1(20), 8+n, 8) }

// TestShiftByTheLogs: which logs were altered, where some of them have entries that the others lack. A request stands
// in a log once; else most logs decide. Two logs of which each agrees with its database decide nothing.
func TestShiftByTheLogs(t *testing.T) {
	whole := from1(20)
	twice := slices.Insert(slices.Clone(whole), 8, 8)
	twoTwice := slices.Insert(slices.Clone(whole), 8, 7, 8)
	other := slices.Insert(slices.Clone(whole), 8, 77)
	lacking := slices.Delete(slices.Clone(whole), 8, 9)
	for name, c := range map[string]struct {
		logs            [][]uint64
		index           uint64
		missing         int
		altered         []int
		added, repeated bool
	}{
		"one lacks an entry": {[][]uint64{whole, lacking, whole}, 13, 1, []int{1}, false, false},
		"one lacks eight entries": {[][]uint64{whole, slices.Delete(slices.Clone(whole), 8, 16), whole}, 13, 8, []int{1},
			false, false},
		"one lacks nine entries": {[][]uint64{whole, slices.Delete(slices.Clone(whole), 8, 17), whole}, 0, 0, nil, false,
			false},
		"one has another entry":            {[][]uint64{whole, whole, other}, 13, 1, []int{2}, true, false},
		"one has an entry twice":           {[][]uint64{twice, whole, whole}, 13, 1, []int{0}, true, true},
		"most have an entry twice":         {[][]uint64{twice, whole, twice}, 13, 1, []int{0, 2}, true, true},
		"most have two entries twice":      {[][]uint64{twoTwice, whole, twoTwice}, 13, 2, []int{0, 2}, true, true},
		"one of two has an entry twice":    {[][]uint64{whole, twice}, 12, 1, []int{1}, true, true},
		"the only log has an entry twice":  {[][]uint64{twice}, 11, 1, []int{0}, true, true},
		"all have an entry twice":          {[][]uint64{twice, twice, twice}, 13, 1, []int{0, 1, 2}, true, true},
		"all have two entries twice":       {[][]uint64{twoTwice, twoTwice}, 12, 2, []int{0, 1}, true, true},
		"all have an entry twice, apart":   {[][]uint64{again(1), again(1)}, 13, 1, []int{0, 1}, true, true},
		"an entry that is too far away":    {[][]uint64{again(8), again(8)}, 0, 0, nil, false, false},
		"each of two agrees with its log":  {[][]uint64{whole, lacking}, 12, 1, nil, false, false},
		"no entries follow the difference": {[][]uint64{from1(9), append(from1(8), 77, 78), from1(9)}, 0, 0, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := theShift(run(t, open(t, handLogs(t, c.logs...)...), Options{}))
			if c.altered == nil {
				if s != nil {
					t.Errorf("%+v, want none", s)
				}
				return
			}
			if s == nil {
				t.Fatal("not found")
			}
			if s.Index != c.index || s.Missing != c.missing || !slices.Equal(s.Altered(), c.altered) ||
				s.Added != c.added || s.Repeated != c.repeated {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestTwoShifts: two of three logs lack an entry, each another one.
func TestTwoShifts(t *testing.T) {
	whole := from1(20)
	last := uint64(4 + len(whole))
	var dirs []string
	for i, puts := range [][]uint64{slices.Delete(from1(20), 8, 9), whole, slices.Delete(from1(20), 11, 12)} {
		dirs = append(dirs, handLog(t, i, []uint64{0xa1, 0xa2, 0xa3}, puts, func(h *clustertest.Hand, _ uint64) string {
			h.State(2, 0xa1, last)
			return h.Close(last, 2)
		}))
	}
	r := run(t, open(t, dirs...), Options{})
	if len(r.Shifts) != 2 || !slices.Equal(r.Shifts[0].Altered(), []int{0}) || r.Shifts[0].Index != 13 ||
		!slices.Equal(r.Shifts[1].Altered(), []int{2}) || r.Shifts[1].Index != 16 || !r.Shifts[1].Proven {
		t.Errorf("%+v", r.Shifts)
	}
	if m := r.Members[1]; m.Lacks > 0 || len(m.Extra) > 0 || len(r.LogDiffs) > 0 {
		t.Errorf("the sound member lacks %d entries, has %d more, and %d entries differ", m.Lacks, len(m.Extra),
			len(r.LogDiffs))
	}
}

// TestTwoAdded: two of three logs hold an entry twice, each another one. From the second on, these two are equal.
func TestTwoAdded(t *testing.T) {
	logs := [][]uint64{slices.Insert(from1(20), 8, 8), slices.Insert(from1(21), 9, 9), from1(20)}
	r := run(t, open(t, handLogs(t, logs...)...), Options{})
	if len(r.Shifts) != 2 {
		t.Fatalf("%+v", r.Shifts)
	}
	for i, s := range r.Shifts {
		if !slices.Equal(s.Altered(), []int{i}) || s.Index != uint64(13+i) || !s.Added || !s.Repeated {
			t.Errorf("%+v", s)
		}
	}
	if m := r.Members[2]; m.Lacks > 0 || len(m.Extra) > 0 || len(r.LogDiffs) > 0 {
		t.Errorf("the sound member lacks %d entries, has %d more, and %d entries differ", m.Lacks, len(m.Extra),
			len(r.LogDiffs))
	}
}

// TestShiftAfterAnAlteredEntry: another log differs in one entry before the one that a log holds twice.
func TestShiftAfterAnAlteredEntry(t *testing.T) {
	altered := from1(20)
	altered[2] = 77
	r := run(t, open(t, handLogs(t, slices.Insert(from1(20), 8, 8), altered, from1(20))...), Options{})
	if s := theShift(r); s == nil || !slices.Equal(s.Altered(), []int{0}) || s.Index != 13 || !s.Repeated {
		t.Errorf("%+v", r.Shifts)
	}
	for _, m := range r.Members[2:] {
		if m.Lacks > 0 || len(m.Extra) > 0 {
			t.Errorf("a sound member lacks %d entries, and has %d more", m.Lacks, len(m.Extra))
		}
	}
}

// theShift is the only shift, nil if there is none.
func theShift(r *Result) *Shift {
	if len(r.Shifts) != 1 {
		return nil
	}
	return r.Shifts[0]
}

// TestShiftByTheDatabases: of two logs one has an entry more, and nothing in the logs shows which is right. Neither
// database has its effect, so it was added.
func TestShiftByTheDatabases(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		logs := [][]uint64{from1(20), slices.Insert(from1(20), 8, noEffect+77)}
		s := theShift(run(t, open(t, handLogs(t, logs[order[0]], logs[order[1]])...), Options{}))
		if s == nil || !s.Fitting || !s.Added || s.Proven || s.Index != 12 ||
			!slices.Equal(s.Altered(), []int{order[1]}) {
			t.Errorf("%+v", s)
		}
	}
}

// TestRunsTwice: a process of a member proposes again after a newer one of it has started.
func TestRunsTwice(t *testing.T) {
	begun := uint64(1763000000000)
	newer := begun + 9000
	for _, c := range []struct {
		starts []uint64 // of the processes that proposed the puts
		want   int
	}{{[]uint64{begun, newer, begun, newer}, 1}, {[]uint64{newer, newer, newer, newer}, 0}} {
		h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
		h.Found(false, 0xa1)
		h.Request(2, 2, nil)
		h.Publish(2, 3, 0xa1, clustertest.RequestID(0xa1, begun, 1))
		h.Publish(2, 4, 0xa1, clustertest.RequestID(0xa1, begun+9000, 1))
		for i, start := range c.starts {
			h.Put(2, uint64(5+i), clustertest.RequestID(0xa1, start, uint64(10+i)), "a", "1", true)
		}
		h.State(2, 0xa1, 8)
		h.Member(0xa1, false, true)
		r := run(t, open(t, h.Close(8, 2)), Options{})
		if len(r.Overlaps) != c.want || c.want > 0 && r.Overlaps[0].Member != 0xa1 {
			t.Errorf("%v: %+v", c.starts, r.Overlaps)
		}
	}
}

// TestOverlapOfAlteredEntries: where another log has an entry of the same term with another request ID, one of the two
// was altered, and neither shows a process.
func TestOverlapOfAlteredEntries(t *testing.T) {
	begun := uint64(1763000000000)
	newer := begun + 9000
	for name, c := range map[string]struct {
		starts [2]uint64 // of the processes that proposed the second of four puts, by log
		want   int
	}{"in one log": {[2]uint64{begun, newer}, 0}, "in both": {[2]uint64{begun, begun}, 1},
		"in none": {[2]uint64{newer, newer}, 0}} {
		dirs := []string{}
		for n, id := range []uint64{0xa1, 0xa2} {
			h := clustertest.NewHand(t, t.TempDir(), clustertest.HandName(id), id, 0xc1)
			h.Found(false, 0xa1, 0xa2)
			h.Publish(2, 3, 0xa1, clustertest.RequestID(0xa1, begun, 1))
			h.Publish(2, 4, 0xa1, clustertest.RequestID(0xa1, newer, 1))
			for i, start := range []uint64{newer, c.starts[n], newer, newer} {
				h.Put(2, uint64(5+i), clustertest.RequestID(0xa1, start, uint64(10+i)), "a", "1", true)
			}
			h.State(2, 0xa1, 8)
			h.Member(0xa1, false, true)
			h.Member(0xa2, false, true)
			dirs = append(dirs, h.Close(8, 2))
		}
		if r := run(t, open(t, dirs...), Options{}); len(r.Overlaps) != c.want {
			t.Errorf("%s: %+v", name, r.Overlaps)
		}
	}
}

// TestLogAsFarAsNeeded: who reads the merged log may end anywhere.
func TestLogAsFarAsNeeded(t *testing.T) {
	members := open(t, handLogs(t, from1(20), from1(18))...).Members
	for _, limit := range []int{1, 5, 22} {
		n := 0
		for e, err := range Log(t.Context(), members) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; e.Index != uint64(n) {
				t.Errorf("entry %d is number %d", e.Index, n)
			}
			if n == limit {
				break
			}
		}
		if n != limit {
			t.Errorf("%d entries of %d", n, limit)
		}
	}
	if (&Result{}).anyMember() != nil {
		t.Error("a member of none")
	}
}

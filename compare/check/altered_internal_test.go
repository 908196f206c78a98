package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestEmptied: the log with an entry without data is the altered one if another log holds a request there.
func TestEmptied(t *testing.T) {
	request := dumplog.Header{ID: 9}
	for name, c := range map[string]struct {
		headers []dumplog.Header
		emptied []bool
		want    []int
	}{
		"a request, and none":   {[]dumplog.Header{request, {}}, []bool{false, true}, []int{2}},
		"none in most logs":     {[]dumplog.Header{{}, request}, []bool{true, false}, []int{0, 1}},
		"the term begins there": {[]dumplog.Header{request, {}}, []bool{false, false}, nil},
		"no log has a request":  {[]dumplog.Header{{}, {}}, []bool{false, true}, nil},
	} {
		d := replay.LogDiff{Versions: [][]int{{0, 1}, {2}}, Headers: c.headers, Emptied: c.emptied}
		if got := emptied([]replay.LogDiff{d}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestCopiesDiffer: it matters whether two data dirs of one member hold different entries, in no order.
func TestCopiesDiffer(t *testing.T) {
	ss := Sources{}
	for _, id := range []dumplog.ID{7, 8, 8, 9} {
		ss = append(ss, &evidence.Member{MemberID: id})
	}
	for _, c := range []struct {
		versions [][]int
		want     bool
	}{
		{[][]int{{0, 1}, {3}}, false}, {[][]int{{1, 2}, {0}}, false}, {[][]int{{0}, {2, 1}}, false},
		{[][]int{{0, 1}, {2}}, true}, {[][]int{{2}, {0, 1, 3}}, true}, {[][]int{{0}, {1}, {2}}, true},
	} {
		if got := copiesDiffer(ss, c.versions); got != c.want {
			t.Errorf("%v: %t, want %t", c.versions, got, c.want)
		}
	}
}

// TestRevisionRefutes: a version of an entry is refuted if all databases with it have another revision than their logs
// give after the entry, and a database with another version contradicts nothing. The number of logs is no matter.
func TestRevisionRefutes(t *testing.T) {
	sound := func() *replay.MemberResult { return &replay.MemberResult{Checked: true} }
	off := func(index uint64) *replay.MemberResult {
		return &replay.MemberResult{Checked: true, BelowCount: 1, Below: []replay.BelowDiff{{Index: index}}}
	}
	key := sound()
	key.BelowCount, key.Below = 1, []replay.BelowDiff{{Key: "/a", Index: 30}}
	missing, extra := sound(), sound()
	missing.Counts[replay.Missing], extra.Extra = 1, []int64{7}
	two := [][]int{{1, 2}, {0}}
	for name, c := range map[string]struct {
		votes   [][]int
		members []*replay.MemberResult
		want    []int
	}{
		"two against one that fits":   {two, []*replay.MemberResult{sound(), off(30), off(30)}, []int{1, 2}},
		"at the entry":                {two, []*replay.MemberResult{sound(), off(20), off(20)}, []int{1, 2}},
		"before the entry":            {two, []*replay.MemberResult{sound(), off(19), off(19)}, nil},
		"one of two":                  {two, []*replay.MemberResult{sound(), off(30), sound()}, nil},
		"a key and no revision":       {two, []*replay.MemberResult{sound(), key, key}, nil},
		"the third is off as well":    {two, []*replay.MemberResult{off(30), off(30), off(30)}, nil},
		"the third lacks a write":     {two, []*replay.MemberResult{missing, off(30), off(30)}, nil},
		"the third has one more":      {two, []*replay.MemberResult{extra, off(30), off(30)}, nil},
		"the third was not compared":  {two, []*replay.MemberResult{{}, off(30), off(30)}, nil},
		"one, and two fit":            {two, []*replay.MemberResult{off(30), sound(), sound()}, []int{0}},
		"each has a version, one off": {[][]int{{0}, {1}, {2}}, []*replay.MemberResult{sound(), off(30), sound()}, []int{1}},
	} {
		in := &Input{Replay: &replay.Result{Members: c.members}}
		if got := in.alteredLogs().revisionRefutes(c.votes, 20); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestRenumbered: entries are renumbered in the altered logs, from the first missing or added one to the end.
func TestRenumbered(t *testing.T) {
	missing := &replay.Shift{Index: 9, Missing: 1, Short: []int{0}, Long: []int{1}}
	added := &replay.Shift{Index: 9, Missing: 1, Short: []int{0}, Long: []int{1}, Added: true}
	for name, c := range map[string]struct {
		shifts     []*replay.Shift
		index      uint64
		first, two bool
	}{
		"none":          {nil, 9, false, false},
		"before it":     {[]*replay.Shift{missing}, 8, false, false},
		"at it":         {[]*replay.Shift{missing}, 9, true, false},
		"after it":      {[]*replay.Shift{missing}, 99, true, false},
		"one was added": {[]*replay.Shift{added}, 9, false, true},
		"both":          {[]*replay.Shift{missing, added}, 10, true, true},
	} {
		in := &Input{Members: Sources{member("n1"), member("n2")}, Replay: &replay.Result{Shifts: c.shifts}}
		for i, want := range []bool{c.first, c.two} {
			if got := in.shiftedLogs().renumbered(in.Members[i], c.index); got != want {
				t.Errorf("%s: %s: %t", name, in.Members[i].Label(), got)
			}
		}
	}
	in := &Input{Members: Sources{member("n1")}}
	if in.shiftedLogs().renumbered(in.Members[0], 9) {
		t.Error("logs that were not compared")
	}
}

// TestRenumberedInWords: what proves that entries are missing is said, and a log that was purged is no evidence.
func TestRenumberedInWords(t *testing.T) {
	for says, s := range map[string]replay.Shift{
		"The log ends before what the member has committed or applied": {Proven: true, Ahead: true},
		"Its HardStates commit more than it holds before them":         {Ahead: true, Fitting: true},
		"The databases agree with the other log":                       {Fitting: true},
	} {
		in := &Input{Members: Sources{withLog(member("n1"), 20), withLog(member("n2"), 21), withLog(member("n3"), 21)},
			Replay: &replay.Result{}, MaxRows: 20}
		for i, m := range in.Members {
			m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: uint64(1 + 9*(i/2)), Last: m.LastIndex()}}
		}
		s.Index, s.Missing, s.Short, s.Long, s.What, s.Instead = 9, 1, []int{0}, []int{1, 2}, "put /a", "put /b"
		f := in.shiftedLogs().finding(&s)
		var of []string
		for _, e := range f.Evidence {
			of = append(of, e.Member+": "+e.Observed+", not "+e.Expected)
		}
		if !strings.HasSuffix(f.Explanation, ". "+says) ||
			!slices.Equal(of, []string{"n1: put /b, not put /a", "n2: put /a, not put /a"}) {
			t.Errorf("%q, %q", f.Explanation, of)
		}
	}
}

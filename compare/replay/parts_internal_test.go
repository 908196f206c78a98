package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestStretchOfALog: a log holds every entry from one on up to the next snapshot that bridges a gap.
func TestStretchOfALog(t *testing.T) {
	s := &dumplog.Summary{FirstIndex: 5, LastIndex: 40, Jumps: []dumplog.Jump{{From: 11, To: 19}, {From: 31, To: 35}}}
	for index, want := range map[uint64][2]uint64{1: {5, 10}, 5: {5, 10}, 10: {10, 10}, 11: {20, 30}, 19: {20, 30},
		20: {20, 30}, 30: {30, 30}, 31: {36, 40}, 35: {36, 40}, 36: {36, 40}, 40: {40, 40}} {
		first := firstAfter(s, index)
		if end := endOfStretch(s, first); first != want[0] || end != want[1] {
			t.Errorf("from %d: %d to %d, want %v", index, first, end, want)
		}
	}
}

// TestLowerPlaces: a member may have begun where the lowest did if it was started again and began at the same index.
func TestLowerPlaces(t *testing.T) {
	of := func(id dumplog.ID, index uint64, revision int64) *MemberResult {
		return &MemberResult{Member: &evidence.Member{MemberID: id}, Checked: true, BaseIndex: index,
			BaseRevision: revision}
	}
	unchecked := of(1, 3, 5)
	unchecked.Checked = false
	for name, c := range map[string]struct {
		members []*MemberResult
		want    map[int]place
	}{
		"one higher":                  {[]*MemberResult{of(1, 3, 10), of(2, 3, 14)}, map[int]place{1: {index: 3, rev: 10}}},
		"the higher one first":        {[]*MemberResult{of(2, 3, 14), of(1, 3, 10)}, map[int]place{0: {index: 3, rev: 10}}},
		"equal":                       {[]*MemberResult{of(1, 3, 10), of(2, 3, 10)}, nil},
		"at another index":            {[]*MemberResult{of(1, 3, 10), of(2, 4, 14)}, nil},
		"started once":                {[]*MemberResult{of(1, 3, 10), of(3, 3, 14)}, nil},
		"the lowest was not replayed": {[]*MemberResult{unchecked, of(2, 3, 14)}, nil},
		"the lowest has no revision":  {[]*MemberResult{of(1, 3, 0), of(2, 3, 14)}, nil},
		"the higher was not replayed": {[]*MemberResult{of(4, 3, 2), unchecked}, nil},
		"no member":                   {nil, nil},
	} {
		starts := map[dumplog.ID][]Start{1: make([]Start, 2), 2: make([]Start, 2), 3: make([]Start, 1)}
		r := &Result{Members: c.members, Survey: &Survey{Starts: starts}}
		if got := lowerPlaces(r); !maps.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestKeptOps: what is remembered of the operations of a transaction, which is not all where it holds another one.
func TestKeptOps(t *testing.T) {
	put := dumplog.RequestOp{Put: &dumplog.PutRequest{Key: []byte("a"), Value: []byte("1"), Lease: 7}}
	kept := dumplog.RequestOp{Put: &dumplog.PutRequest{Key: []byte("b"), IgnoreValue: true}}
	del := dumplog.RequestOp{DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte("c"), RangeEnd: []byte("d")}}
	txn := dumplog.RequestOp{Txn: &dumplog.TxnRequest{}}
	for name, c := range map[string]struct {
		ops   []dumplog.RequestOp
		want  string
		plain bool
	}{
		"none":       {nil, "", true},
		"one each":   {[]dumplog.RequestOp{put, kept, del}, "a:true:7 b:false:0 c-d", true},
		"one nested": {[]dumplog.RequestOp{put, txn}, "a:true:7", false},
		"a range":    {[]dumplog.RequestOp{{Range: &dumplog.RangeRequest{}}}, "", true},
	} {
		out, plain := keptOps(c.ops)
		var got []string
		for _, k := range out {
			if k.put {
				got = append(got, fmt.Sprintf("%s:%t:%d", k.key, k.valued, k.lease))
				continue
			}
			got = append(got, fmt.Sprintf("%s-%s", k.key, k.end))
		}
		if s := strings.Join(got, " "); s != c.want || plain != c.plain {
			t.Errorf("%s: %q %t, want %q %t", name, s, plain, c.want, c.plain)
		}
	}
}

// TestDropped: of entries at one index that were replaced, the last counts.
func TestDropped(t *testing.T) {
	f, m := &Forced{}, &evidence.Member{Source: &evidence.Source{}}
	for _, e := range []dumplog.Entry{{Index: 5, Term: 1}, {Index: 6, Term: 1}, {Index: 5, Term: 2}} {
		f.drop(&e, m)
	}
	var got []string
	for _, d := range f.Dropped {
		got = append(got, fmt.Sprintf("%d/%d", d.Term, d.Index))
	}
	if want := []string{"1/6", "2/5"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNoteRepeat: the first request that the log holds twice, with those that follow it in the same distance.
func TestNoteRepeat(t *testing.T) {
	for name, c := range map[string]struct {
		ids  []uint64
		want string
	}{
		"none":                {[]uint64{1, 2, 3}, ""},
		"at once":             {[]uint64{1, 2, 2, 3}, "3 1 1"},
		"apart":               {[]uint64{1, 2, 3, 1, 4}, "4 3 1"},
		"two in a row":        {[]uint64{1, 2, 1, 2, 3}, "3 2 2"},
		"more than the first": {[]uint64{1, 2, 1, 2, 1}, "3 2 2"},
		"another later":       {[]uint64{1, 1, 2, 3, 2}, "2 1 1"},
		"entries of leaders":  {[]uint64{0, 0, 0}, ""},
		"at the bound":        {[]uint64{1, 2, 3, 4, 5, 6, 7, 8, 1}, "9 8 1"},
		"too far apart":       {[]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1}, ""},
	} {
		s := &Survey{describe: func(*dumplog.Request) string { return "" }}
		for i, id := range c.ids {
			r := put("k", fmt.Sprint(id))
			r.Header.ID = dumplog.RequestID(id)
			it := itemAt(uint64(i+1), r)
			it.entry.Data = []byte{byte(id)}
			s.noteRepeat(it)
		}
		got := ""
		if s.repeat != nil {
			got = fmt.Sprint(s.repeat.index, " ", s.repeat.distance, " ", s.repeat.length)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestCommonLevel: the highest index at which no member has an effect outstanding, with the revisions there.
func TestCommonLevel(t *testing.T) {
	for name, c := range map[string]struct {
		open [2]uint64 // the first entry that is not applied, 0 if there is none
		to   uint64
		want uint64
		revs [2]int64
	}{
		"all applied":       {[2]uint64{}, 14, 13, [2]int64{103, 203}},
		"up to the end":     {[2]uint64{}, 12, 12, [2]int64{102, 202}},
		"one has not all":   {[2]uint64{0, 13}, 14, 12, [2]int64{102, 202}},
		"both have not all": {[2]uint64{12, 13}, 14, 11, [2]int64{101, 201}},
		"the first is open": {[2]uint64{11, 0}, 14, 10, [2]int64{}},
		"nothing above it":  {[2]uint64{}, 10, 10, [2]int64{}},
	} {
		a, b := newBench(t, 4, -1).sim, newBench(t, 4, -1).sim
		l := &level{from: 10, to: c.to, sims: []*sim{a, b}, open: make([]uint64, 2)}
		r := &Result{Common: 10, Members: []*MemberResult{{}, {}}}
		for index := uint64(9); index <= 13; index++ {
			a.Revision, b.Revision = int64(index+90), int64(index+190)
			outcomes := make([]Outcome, 2)
			for i, from := range c.open {
				if from > 0 && index >= from {
					outcomes[i].State = NotApplied
				}
			}
			l.note(index, outcomes)
		}
		l.note(15, make([]Outcome, 2)) // after a gap
		l.settle(r)
		if revs := [2]int64{r.Members[0].RevisionAt, r.Members[1].RevisionAt}; r.KeyCommon != c.want || revs != c.revs {
			t.Errorf("%s: %d, %v; want %d, %v", name, r.KeyCommon, revs, c.want, c.revs)
		}
	}
}

// TestForcedRuns: removals without a request, one after the other in one term, are of one forced start.
func TestForcedRuns(t *testing.T) {
	removal := func(index, term uint64, id dumplog.ID, change func(c *dumplog.ConfChange)) evidence.ConfEntry {
		c := dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: id}
		if change != nil {
			change(&c)
		}
		return evidence.ConfEntry{Index: index, Term: term, Change: c}
	}
	conf := []evidence.ConfEntry{removal(4, 2, 1, nil), removal(5, 2, 2, nil), removal(7, 2, 3, nil), removal(8, 3, 4,
		nil),
		removal(9, 3, 5, func(c *dumplog.ConfChange) { c.ID = 9 }),
		removal(10, 3, 6, func(c *dumplog.ConfChange) { c.Type = dumplog.ConfChangeAddNode }),
		removal(11, 3, 7, func(c *dumplog.ConfChange) { c.Context = []byte("{}") })}
	var got []string
	for _, f := range forcedRuns(conf, 2) {
		got = append(got, fmt.Sprint(f.Member, " ", f.Term, " ", f.First, "-", f.Last, " ", f.Removed))
	}
	if want := []string{"2 2 4-5 [1 2]", "2 2 7-7 [3]", "2 3 8-8 [4]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w := &evidence.WAL{}
	w.Summary.Segments = []dumplog.Segment{{Name: "b.wal"}, {Name: "a.wal"}}
	pos := func(segment string, offset int64) dumplog.Pos { return dumplog.Pos{Segment: segment, Offset: offset} }
	order := []dumplog.Pos{pos("b.wal", 5), pos("b.wal", 9), pos("a.wal", 1), pos("a.wal", 7)}
	for i := range order {
		for j := range order {
			if before(w, order[i], order[j]) != (i < j) {
				t.Errorf("%v before %v: %t", order[i], order[j], i >= j)
			}
		}
	}
}

// TestJoinedReruns: a stretch that was cut is joined with its continuation, and has the last restart before its end.
func TestJoinedReruns(t *testing.T) {
	for name, c := range map[string]struct {
		next Stretch
		want int
	}{
		"its continuation":   {Stretch{From: 13, To: 15, First: 23, Last: 25}, 1},
		"other revisions":    {Stretch{From: 13, To: 15, First: 24, Last: 25}, 2},
		"the same entries":   {Stretch{From: 12, To: 15, First: 23, Last: 25}, 2},
		"of another restart": {Stretch{From: 13, To: 40, First: 23, Last: 25}, 2},
	} {
		ma := newBench(t, 6, -1).sim.matcher
		ma.auth.restarts = []restart{{index: 9}, {index: 14, received: true}, {index: 30}, {index: 50}}
		ma.addRerun(Stretch{From: 10, To: 12, First: 20, Last: 22, Before: 13})
		ma.addRerun(c.next)
		list := ma.res.Reruns
		if len(list) != c.want || list[0].Restart != 30 || c.want == 1 && (list[0].To != 15 || list[0].Last != 25) {
			t.Errorf("%s: %+v", name, list)
		}
	}
	ma := newBench(t, 6, -1).sim.matcher
	ma.m.AppliedMax = 50
	ma.addRerun(Stretch{From: 10, To: 12, Before: 50})
	ma.addRerun(Stretch{From: 20, To: 22, Before: 51})
	if list := ma.res.Reruns; list[0].Before != 50 || list[1].Before != 0 || list[1].Restart != 0 {
		t.Errorf("%+v", list)
	}
	if n := (&Stretch{First: 20, Last: 22}).Revisions(); n != 3 {
		t.Errorf("%d revisions", n)
	}
}

// TestLostEntries: entries that the member applied after the end of its log made a revision each at most.
func TestLostEntries(t *testing.T) {
	for _, c := range []struct {
		applied, end uint64
		want         int64
	}{{10, 0, 0}, {10, 10, 0}, {10, 12, 0}, {12, 10, 2}} {
		lv := &logView{m: &evidence.Member{AppliedMin: c.applied}, logEnd: c.end}
		if got := lv.lost(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestRevokesOfGroup: a lease can have had the deleted keys unless one of them is known to have another one.
func TestRevokesOfGroup(t *testing.T) {
	g := groupOf(tomb(5, 0, "a"), tomb(5, 1, "b"))
	for _, c := range []struct {
		leases map[string]int64
		want   bool
	}{{nil, true}, {map[string]int64{"a": 7}, true}, {map[string]int64{"a": 7, "b": 7}, true},
		{map[string]int64{"a": 7, "b": 8}, false}, {map[string]int64{"b": 0}, false}, {map[string]int64{"c": 8},
			true}} {
		if got := revokes(7, g, c.leases); got != c.want {
			t.Errorf("%v: %t", c.leases, got)
		}
	}
}

// TestCertainOps: what operations say of keys that were certainly executed, or maybe.
func TestCertainOps(t *testing.T) {
	put := func(key string, sum uint64) keptOp {
		return keptOp{key: []byte(key), put: true, valued: true, sum: sum}
	}
	del := func(key, end string) keptOp { return keptOp{key: []byte(key), end: []byte(end)} }
	unvalued := put("a", 0)
	unvalued.valued = false
	text := func(c *certainty) string {
		var out []string
		for _, k := range slices.Sorted(maps.Keys(c.keys)) {
			x := c.keys[k]
			out = append(out, fmt.Sprint(k, " ", x.index, " ", x.sum, " ", x.gone))
		}
		return strings.Join(out, ", ")
	}
	for name, c := range map[string]struct {
		ops   []keptOp
		maybe bool // of the last one
		want  string
	}{
		"a put":                       {[]keptOp{put("a", 4)}, false, "a 1 4 false"},
		"a put, maybe":                {[]keptOp{put("a", 4), put("a", 5)}, true, ""},
		"a put of another, maybe":     {[]keptOp{put("a", 4), put("b", 5)}, true, "a 1 4 false"},
		"a put that keeps a value":    {[]keptOp{put("a", 4), unvalued}, false, ""},
		"a delete":                    {[]keptOp{put("a", 4), del("a", "")}, false, "a 2 0 true"},
		"a delete, maybe":             {[]keptOp{put("a", 4), del("a", "")}, true, ""},
		"a delete, and maybe another": {[]keptOp{del("a", ""), del("a", "")}, true, "a 1 0 true"},
		"a range": {[]keptOp{put("a", 4), put("c", 5), del("a", "c")}, false,
			"a 3 0 true, c 2 5 false"},
		"a range, maybe":                {[]keptOp{put("a", 4), put("c", 5), del("a", "c")}, true, "c 2 5 false"},
		"a range over a deleted, maybe": {[]keptOp{del("a", ""), put("b", 5), del("a", "c")}, true, "a 1 0 true"},
	} {
		cert := &certainty{keys: map[string]certainKey{}, put: map[string]uint64{}}
		for i, op := range c.ops {
			if c.maybe && i == len(c.ops)-1 {
				cert.maybe(op, uint64(i+1))
			} else {
				cert.took(op, uint64(i+1))
			}
		}
		if got := text(cert); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	full := &certainty{keys: map[string]certainKey{"a": {index: 1}}, put: map[string]uint64{}, full: true,
		ranges: make([]deletedRange, 1)}
	full.took(put("a", 4), 2)
	full.took(put("b", 4), 3)
	if got := text(full); got != "a 2 4 false" || full.ranges != nil || len(full.put) > 0 {
		t.Errorf("full: %q, %v, %v", got, full.ranges, full.put)
	}
	many := &certainty{keys: map[string]certainKey{}, put: map[string]uint64{}}
	for i := range maxDeletedRanges + 2 {
		many.took(del(fmt.Sprint(i), "z"), uint64(i))
	}
	if len(many.ranges) != maxDeletedRanges || many.ranges[0].index != 2 {
		t.Errorf("%d ranges from %d", len(many.ranges), many.ranges[0].index)
	}
}

// TestKeysOfRequests: the keys that a request names, a handful at most, and the revisions that its ranges ask for.
func TestKeysOfRequests(t *testing.T) {
	inner := txn(nil, []dumplog.RequestOp{putOp("c", "1")}, []dumplog.RequestOp{delOp("d", "")})
	outer := txn(nil, []dumplog.RequestOp{putOp("a", "1"), {Txn: inner.Txn}}, []dumplog.RequestOp{delOp("b", "z"),
		{Range: &dumplog.RangeRequest{Key: []byte("r"), Revision: 5}}, {Range: &dumplog.RangeRequest{Revision: 0}},
		{Range: &dumplog.RangeRequest{Revision: -1}}}) // compacted, once anything is
	for want, r := range map[string]*dumplog.Request{"a c d b": outer, "k": put("k", "v"), "x": del("x", "y"),
		"": revoke(7)} {
		if got := strings.Join(keysOf(r), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := rangeRevisions(outer.Txn); !slices.Equal(got, []int64{5, -1}) || rangeRevisions(nil) != nil {
		t.Errorf("%v", got)
	}
	var ops []dumplog.RequestOp
	for i := range 30 {
		ops = append(ops, putOp(fmt.Sprint("k", i), "1"))
	}
	if got := keysOf(txn(nil, ops, nil)); len(got) != 16 {
		t.Errorf("%d keys", len(got))
	}
}

// TestPositionOfAnEntry: where a member's own log holds an entry; of events it was found before, and the number of
// other questions is bounded.
func TestPositionOfAnEntry(t *testing.T) {
	dirs := handLogs(t, from1(20), from1(12))
	r := run(t, open(t, dirs...), Options{})
	first := r.Position(t.Context(), 0, 7)
	if first.Segment == "" || r.Position(t.Context(), 0, 8).Offset <= first.Offset || r.Position(t.Context(), 1,
		20).Segment != "" {
		t.Errorf("%+v", first)
	}
	if got := r.Position(t.Context(), 9, 7); got != (dumplog.Pos{}) {
		t.Errorf("of no member: %+v", got)
	}
	r.positions = map[int]map[uint64]dumplog.Pos{0: {7: {Segment: "known"}}}
	if got := r.Position(t.Context(), 0, 7); got.Segment != "known" {
		t.Errorf("%+v", got)
	}
	r.Events = []*Event{{Index: 9}, {Index: 11}}
	for index, event := range map[uint64]bool{8: false, 9: true, 10: false, 11: true} {
		if r.eventAt(index) != event || (r.Position(t.Context(), 0, index).Segment == "") != event {
			t.Errorf("event at %d: %t", index, !event)
		}
	}
	r.looked.Store(maxPositions - 1)
	if r.Position(t.Context(), 0, 8).Segment == "" || r.Position(t.Context(), 0, 8).Segment != "" {
		t.Error("the number of questions is not bounded")
	}
	n := 0
	for e, err := range r.Entries(t.Context()) {
		if n++; err != nil || e.Index != uint64(n) || e.Describe() == "" {
			t.Errorf("entry %d: %v, %v", n, e.Index, err)
		}
	}
	if n != int(r.Last) {
		t.Errorf("%d of %d entries", n, r.Last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n = 0
	for _, err := range r.Entries(ctx) {
		if n++; err == nil {
			t.Error("an entry after the context ended")
		}
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
}

// TestDoubtsThatHold: entries are doubted if two databases without any other fault contradict them with records in
// their place.
func TestDoubtsThatHold(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(r *Result)
		explained int
		inPlace   bool
	}{
		"two":                   {func(*Result) {}, 2, true},
		"one has another fault": {func(r *Result) { r.Members[1].Extra = []int64{4} }, 1, true},
		"one ran twice":         {func(r *Result) { r.Members[1].Reruns = make([]Stretch, 1) }, 1, true},
		"one has no record":     {func(r *Result) { r.Members[1].unknownWrites = nil }, 2, false},
		"records elsewhere":     {func(r *Result) { r.Members[1].unknownWrites = []uint64{8} }, 2, false},
		"none against it":       {func(r *Result) { r.Doubted[0].Against = nil }, 0, false},
		"two logs hold it":      {func(r *Result) { r.Doubted[0].Logs = []int{0, 1} }, 2, false},
		"two logs, and three databases": {func(r *Result) {
			r.Doubted[0].Logs, r.Doubted[0].Against = []int{0, 1}, []int{0, 1, 2}
		}, 3, true},
		"nothing is doubted": {func(r *Result) { r.Doubted = nil }, 0, true},
	} {
		r := &Result{Doubted: []Doubted{{Index: 7, Logs: []int{0}, Against: []int{1, 2}}}}
		for range 3 {
			r.Members = append(r.Members, &MemberResult{unknownWrites: []uint64{7}})
		}
		c.change(r)
		before := &Result{Members: []*MemberResult{{}, {}, {}}}
		if n, in := r.explained(), r.inPlaceOfDoubted(before); n != c.explained || in != c.inPlace {
			t.Errorf("%s: %d explained, in place %t", name, n, in)
		}
	}
	compacted := &Result{Doubted: []Doubted{{Index: 7, Against: []int{0, 1}}},
		Members: []*MemberResult{{unknownWrites: []uint64{7}}, {}}}
	for _, surplus := range []bool{false, true} { // a revision more than the log makes
		if in := compacted.inPlaceOfDoubted(&Result{Members: []*MemberResult{{}, {surplus: surplus}}}); in != surplus {
			t.Errorf("a member that compacted, a revision more %t: in place %t", surplus, in)
		}
	}
	// The models begin after the entry; before, the records at its revision were others.
	held := func(o Outcome) *Result {
		out := []Outcome{{State: Contradicted, Rev: 4}, o}
		return &Result{Members: []*MemberResult{{}, {}}, Events: []*Event{{Index: 6, Outcomes: make([]Outcome, 2)},
			{Index: 7, Outcomes: out}}}
	}
	for name, c := range map[string]struct {
		base   uint64
		before *Result
		want   bool
	}{
		"after it":                     {7, held(Outcome{State: Contradicted, Rev: 4}), true},
		"one begins at it":             {6, held(Outcome{State: Contradicted, Rev: 4}), false},
		"one had no record":            {7, held(Outcome{State: Missing}), false},
		"one had none at the revision": {7, held(Outcome{State: Contradicted}), false},
		"one had those of the entry":   {7, held(Outcome{State: Applied, Rev: 4}), false},
	} {
		r := &Result{Doubted: []Doubted{{Index: 7, Against: []int{0, 1}}},
			Members: []*MemberResult{{BaseIndex: 8}, {BaseIndex: c.base}}}
		if in := r.inPlaceOfDoubted(c.before); in != c.want {
			t.Errorf("%s: in place %t", name, in)
		}
	}
	of := func(faults ...int) *Result {
		r := &Result{}
		for _, n := range faults {
			r.Members = append(r.Members, &MemberResult{Extra: make([]int64, n)})
		}
		return r
	}
	for _, c := range []struct {
		now, before []int
		want        []int
	}{{[]int{0, 0, 1}, []int{1, 2, 1}, []int{0, 1}}, {[]int{0, 0, 2}, []int{1, 2, 1}, nil}, {[]int{1}, []int{1}, nil}} {
		if got := explainsMore(of(c.now...), of(c.before...)); !slices.Equal(got, c.want) {
			t.Errorf("%v after %v: %v", c.now, c.before, got)
		}
	}
	m := &MemberResult{Extra: make([]int64, 1), Reruns: make([]Stretch, 2), StateDiffs: make([]StateDiff, 3),
		BelowCount: 4}
	m.Counts[Missing], m.Counts[Contradicted], m.Counts[AppliedTwice] = 5, 6, 7
	if m.faults() != 28 || m.unexplained() != 23 {
		t.Errorf("%d faults, %d unexplained", m.faults(), m.unexplained())
	}
	e := &Event{Term: 2, What: "own", Keys: []string{"a"}, versions: map[int]Version{1: {Term: 3, What: "other"}}}
	if v := e.Version(1); v.What != "other" || e.Version(0).What != "own" || e.Version(0).Term != 2 || !e.Disputed() {
		t.Errorf("%+v", v)
	}
}

package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// entryOf is an entry with a put by the request of this number; 0 is the empty entry of a leader, and a number below 0
// one that does not decode.
func entryOf(t *testing.T, index uint64, request int) dumplog.Entry {
	t.Helper()
	e := dumplog.Entry{Term: 2, Index: index}
	switch {
	case request < 0:
		e.Data = []byte{0x0a, 0x7f, byte(request)}
	case request > 0:
		data, err := (&etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: uint64(request)},
			Put: &etcdserverpb.PutRequest{Key: fmt.Append(nil, "k", request)}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		e.Data = data
	}
	return e
}

func entriesOf(t *testing.T, requests ...int) (out []dumplog.Entry) {
	t.Helper()
	for i, r := range requests {
		out = append(out, entryOf(t, uint64(i+5), r))
	}
	return out
}

// TestAlikeTails: two tails are alike up to the end of the shorter one if two entries with content are in both; empty
// entries of leaders show nothing.
func TestAlikeTails(t *testing.T) {
	for _, c := range []struct {
		a, b []int
		n    int
		ok   bool
	}{
		{[]int{1, 2}, []int{1, 2}, 2, true}, {[]int{1, 2, 3}, []int{1, 2}, 2, true}, {[]int{1}, []int{1}, 1, false},
		{[]int{1, 0, 0}, []int{1, 0, 0}, 1, false}, {[]int{1, 0, 2}, []int{1, 0, 2}, 2, true},
		{[]int{1, 2, 3}, []int{1, 2, 4}, 0, false}, {nil, []int{1, 2}, 0, false},
	} {
		if n, ok := alike(entriesOf(t, c.a...), entriesOf(t, c.b...)); n != c.n || ok != c.ok {
			t.Errorf("%v, %v: %d, %t; want %d, %t", c.a, c.b, n, ok, c.n, c.ok)
		}
	}
	for _, c := range []struct {
		list []int
		want bool
	}{{nil, false}, {[]int{0, 0}, false}, {[]int{0, 1}, true}, {[]int{1, 0}, true}} {
		if got := hasContent(entriesOf(t, c.list...)); got != c.want {
			t.Errorf("content in %v: %t", c.list, got)
		}
	}
}

// TestShiftOfABeginning: the first entry of a leader is missed where others of its term follow. Where a term is begun
// by another entry, an empty one shows nothing.
func TestShiftOfABeginning(t *testing.T) {
	for _, c := range []struct {
		term uint64
		want bool
	}{{2, true}, {1, false}} {
		long := entriesOf(t, 0, 1, 2, 3)
		short := entriesOf(t, 1, 2, 3)
		long[0].Term = c.term
		if got := missedIn(short, long, 1); got != c.want {
			t.Errorf("term %d: %t", c.term, got)
		}
	}
	if long := entriesOf(t, 9, 1, 2, 3); !missedIn(entriesOf(t, 1, 2, 3), long, 1) || missedIn(nil, long, 1) ||
		missedIn(entriesOf(t, 1, 2, 3), long, 4) || missedIn(entriesOf(t, 1, 5, 3), long, 1) {
		t.Error("a request that is missing is no shift, or something else is one")
	}
}

// TestSameRequests: entries are the same requests only if they are requests of clients and equal one by one.
func TestSameRequests(t *testing.T) {
	for _, c := range []struct {
		a, b []int
		want bool
	}{
		{[]int{1}, []int{1}, true}, {[]int{1, 2}, []int{1, 2}, true}, {[]int{1, 2}, []int{1, 3}, false},
		{[]int{2, 1}, []int{3, 1}, false}, {[]int{0}, []int{0}, false}, {[]int{1, 0}, []int{1, 0}, false},
		{[]int{-1}, []int{-1}, false},
	} {
		if got := sameRequests(entriesOf(t, c.a...), entriesOf(t, c.b...)); got != c.want {
			t.Errorf("%v, %v: %t", c.a, c.b, got)
		}
	}
}

// TestEndsEarly: a log ends early if its member has committed or applied more than it has, or exactly as much more as
// entries are missing in it although a snapshot is beyond.
func TestEndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		last, commit, saved, stored, snapshot uint64
		lost                                  int
		want                                  bool
	}{
		"whole":                          {last: 9, commit: 9, saved: 9, stored: 9},
		"committed more":                 {last: 9, commit: 10, want: true},
		"its log says more":              {last: 9, commit: 9, saved: 10, want: true},
		"applied more":                   {last: 9, stored: 10, want: true},
		"more is in its snapshot":        {last: 9, commit: 10, snapshot: 10},
		"renumbered before it":           {last: 9, commit: 10, snapshot: 10, lost: 1, want: true},
		"two are missing, one is lost":   {last: 9, commit: 11, snapshot: 11, lost: 1},
		"one is missing, two are lost":   {last: 9, commit: 10, snapshot: 10, lost: 2},
		"none is lost, and all is known": {last: 9, commit: 9, snapshot: 9, lost: 1},
	} {
		m := &evidence.Member{Commit: c.commit, DB: &evidence.DB{}, WAL: evidence.WAL{Log: &dumplog.Log{}}}
		m.DB.Meta.ConsistentIndex = &c.stored
		m.DB.Handle = &dumpdb.DB{}
		s := &m.WAL.Summary
		s.LastIndex, s.MaxCommit = c.last, c.saved
		if c.snapshot > 0 {
			s.Snapshots = []dumplog.SnapshotRecord{{Index: c.snapshot}}
		}
		sound := &evidence.Member{Commit: 3, WAL: evidence.WAL{Log: &dumplog.Log{}}}
		sound.WAL.Summary.LastIndex = 9
		r := &Result{Members: []*MemberResult{{Member: sound}, {Member: m}}}
		if got := r.endsEarly([]int{1}, c.lost); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		if got := r.endsEarly([]int{0, 1}, c.lost); got != c.want {
			t.Errorf("%s, after another: %t, want %t", name, got, c.want)
		}
		if r.endsEarly([]int{0}, 0) || r.endsEarly(nil, c.lost) {
			t.Errorf("%s: another log ends early", name)
		}
	}
}

// TestSideOfACommitAhead: of two logs the one whose HardStates commit more than it holds before them lacks entries. If
// both do, or that was further up, it shows nothing.
func TestSideOfACommitAhead(t *testing.T) {
	for name, c := range map[string]struct {
		short, long []dumplog.CommitAhead
		want        bool
	}{
		"none":             {},
		"in the short log": {short: []dumplog.CommitAhead{{Commit: 9, Last: 8}}, want: true},
		"further up":       {short: []dumplog.CommitAhead{{Commit: 8, Last: 7}}},
		"in the long log":  {long: []dumplog.CommitAhead{{Commit: 9, Last: 8}}},
		"in both": {short: []dumplog.CommitAhead{{Commit: 9, Last: 8}},
			long: []dumplog.CommitAhead{{Commit: 9, Last: 8}}},
	} {
		member := func(aheads []dumplog.CommitAhead) *MemberResult {
			m := &evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{}}}
			m.WAL.Summary.LastIndex, m.WAL.Summary.CommitAheads = 20, aheads
			return &MemberResult{Member: m}
		}
		r := &Result{Members: []*MemberResult{member(c.short), member(c.long)}}
		s := &Shift{Index: 9, Missing: 1, Short: []int{0}, Long: []int{1}}
		known, err := r.side(t.Context(), s, nil)
		if err != nil || known != c.want || s.Ahead != c.want || s.Added {
			t.Errorf("%s: known %t, %+v, %v", name, known, s, err)
		}
	}
}

// TestFirstDiff: the lowest index at which logs differ, be it of one term or of two.
func TestFirstDiff(t *testing.T) {
	at := func(indexes ...uint64) (out []LogDiff) {
		for _, i := range indexes {
			out = append(out, LogDiff{Index: i})
		}
		return out
	}
	for _, c := range []struct {
		diffs, same []LogDiff
		want        uint64
	}{{nil, nil, 0}, {at(5, 6), nil, 5}, {nil, at(4), 4}, {at(5), at(4, 9), 4}, {at(3), at(4), 3}} {
		d := firstDiff(&Result{LogDiffs: c.diffs, SameTerm: c.same})
		if (d == nil) != (c.want == 0) || d != nil && d.Index != c.want {
			t.Errorf("%v, %v: %+v, want %d", c.diffs, c.same, d, c.want)
		}
	}
}

// TestPartings: the places at which logs begin to differ, each of other members.
func TestPartings(t *testing.T) {
	at := func(index uint64, versions ...[]int) LogDiff { return LogDiff{Index: index, Versions: versions} }
	one, other, three := [][]int{{0, 2}, {1}}, [][]int{{1, 2}, {0}}, [][]int{{0}, {1}, {2}}
	var many []LogDiff
	for i := range uint64(2 * maxPartings) {
		many = append(many, at(20+i, []int{int(i)}, []int{100}))
	}
	for name, c := range map[string]struct {
		diffs, same []LogDiff
		want        []uint64
	}{
		"none":                    {nil, nil, nil},
		"one place":               {[]LogDiff{at(5, one...), at(6, one...)}, nil, []uint64{5}},
		"the versions turned":     {[]LogDiff{at(5, one...), at(6, []int{1}, []int{0, 2})}, nil, []uint64{5}},
		"two, of one term first":  {[]LogDiff{at(9, one...)}, []LogDiff{at(5, other...)}, []uint64{5, 9}},
		"two, and the first goes": {[]LogDiff{at(5, one...), at(6, other...), at(7, one...)}, nil, []uint64{5, 6}},
		"three versions":          {[]LogDiff{at(5, three...), at(6, one...)}, nil, []uint64{5, 6}},
		"both at one index":       {[]LogDiff{at(5, one...)}, []LogDiff{at(5, one...)}, []uint64{5}},
		"too many":                {many, nil, []uint64{20, 21, 22, 23, 24, 25, 26, 27}},
	} {
		var got []uint64
		for _, d := range partings(&Result{LogDiffs: c.diffs, SameTerm: c.same}) {
			got = append(got, d.Index)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestDescribeEntry: an entry that does not decode is named by its place only.
func TestDescribeEntry(t *testing.T) {
	r := &Result{Members: []*MemberResult{{Member: &evidence.Member{}}}}
	bad, good := entryOf(t, 7, -1), entryOf(t, 8, 5)
	if got := r.describeEntry(&bad); got != "2/7" {
		t.Errorf("%q", got)
	}
	if got := r.describeEntry(&good); !strings.HasPrefix(got, "2/8 ") || !strings.Contains(got, `"k5"`) {
		t.Errorf("%q", got)
	}
}

// TestContradictions: everything of the databases that contradicts the log counts.
func TestContradictions(t *testing.T) {
	m := &MemberResult{Extra: []int64{1, 2}, StateDiffs: make([]StateDiff, 3), Lacks: 4, Surplus: 500, BelowCount: 30}
	m.Counts[Missing], m.Counts[Contradicted], m.Counts[Applied] = 5, 6, 100
	if got := (&Result{Members: []*MemberResult{m, {Lacks: 1}}}).contradictions(); got != 551 {
		t.Errorf("%d, want 51", got)
	}
}

// TestNoteConflict: logs conflict at an index if two entries there are committed, each in a log that has it. The list
// is bounded.
func TestNoteConflict(t *testing.T) {
	item9 := func() *item {
		e := dumplog.Entry{Term: 2, Index: 9}
		other := &item{entry: dumplog.Entry{Term: 3, Index: 9}, req: &dumplog.Request{}, holders: []int{1}}
		return &item{entry: e, req: &dumplog.Request{}, holders: []int{0, 2}, others: map[int]*item{1: other}}
	}
	for name, c := range map[string]struct {
		commits [3]uint64
		by      []int
	}{
		"all":                       {[3]uint64{9, 9, 9}, []int{0, 1, 2}},
		"one of each":               {[3]uint64{9, 10, 8}, []int{0, 1}},
		"the other of each":         {[3]uint64{0, 9, 9}, []int{1, 2}},
		"one version":               {[3]uint64{9, 8, 9}, nil},
		"the other version":         {[3]uint64{8, 9, 8}, nil},
		"none":                      {[3]uint64{8, 8, 8}, nil},
		"one that is not committed": {[3]uint64{9, 8, 8}, nil},
	} {
		r := &Result{}
		for _, commit := range c.commits {
			r.Members = append(r.Members, &MemberResult{Member: &evidence.Member{Commit: commit}})
		}
		r.noteConflict(&item{entry: dumplog.Entry{Index: 8}, holders: []int{0, 1, 2}})
		r.noteConflict(item9())
		if len(r.LogDiffs) != min(len(c.by), 1) {
			t.Errorf("%s: %+v", name, r.LogDiffs)
			continue
		}
		if c.by == nil {
			continue
		}
		d := r.LogDiffs[0]
		if d.Index != 9 || !slices.Equal(slices.Sorted(maps.Keys(d.By)), c.by) || len(d.Versions) != 2 {
			t.Errorf("%s: %+v", name, d)
		}
		for range maxLogDiffs {
			r.noteConflict(item9())
		}
		if len(r.LogDiffs) != maxLogDiffs || r.DiffsComplete() {
			t.Errorf("%s: %d are kept", name, len(r.LogDiffs))
		}
	}
	if !(&Result{LogDiffs: make([]LogDiff, maxLogDiffs-1), SameTerm: make([]LogDiff, maxSameTerm-1)}).DiffsComplete() ||
		(&Result{SameTerm: make([]LogDiff, maxSameTerm)}).DiffsComplete() {
		t.Error("a list that is full is complete, or one that is not is not")
	}
}

// TestDiffWithin: the first index of a span at which logs differ. Beyond a full list, none is known to be equal.
func TestDiffWithin(t *testing.T) {
	r := &Result{LogDiffs: []LogDiff{{Index: 5}, {Index: 9}}}
	full := &Result{LogDiffs: make([]LogDiff, maxLogDiffs)}
	for i := range full.LogDiffs {
		full.LogDiffs[i].Index = uint64(i + 10)
	}
	end := uint64(maxLogDiffs + 9)
	for _, c := range []struct {
		r              *Result
		from, to, want uint64
	}{
		{r, 0, 4, 0}, {r, 0, 5, 5}, {r, 5, 8, 0}, {r, 4, 20, 5}, {r, 5, 20, 9}, {r, 9, 20, 0}, {&Result{}, 0, 9, 0},
		{full, 0, 9, 0}, {full, end - 1, end, end}, {full, end, end, 0}, {full, end, end + 3, end + 1},
		{full, end + 7, end + 9, end + 8},
	} {
		if got := c.r.DiffWithin(c.from, c.to); got != c.want {
			t.Errorf("%d..%d: %d, want %d", c.from, c.to, got, c.want)
		}
	}
}

// TestNoteSameTerm: two entries of one term at one index are recorded with their holders, committed or not; the
// removals of a forced start are not.
func TestNoteSameTerm(t *testing.T) {
	version := func(term uint64, data string, holders ...int) *item {
		return &item{entry: dumplog.Entry{Term: term, Index: 9, Data: []byte(data)}, req: &dumplog.Request{},
			holders: holders}
	}
	forced := version(2, "f", 1)
	forced.req.ConfChange = &dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: 0xa1}
	for name, c := range map[string]struct {
		it     *item
		others []*item
		by     []int
	}{
		"one version":         {version(2, "a", 0, 1, 2), nil, nil},
		"two terms":           {version(2, "a", 0, 2), []*item{version(3, "b", 1)}, nil},
		"one term":            {version(2, "a", 0, 2), []*item{version(2, "b", 1)}, []int{0, 1, 2}},
		"one term of three":   {version(3, "a", 0), []*item{version(2, "b", 1), version(2, "c", 2)}, []int{1, 2}},
		"a forced removal":    {version(2, "a", 0, 2), []*item{forced}, nil},
		"and two of one term": {version(2, "a", 0), []*item{forced, version(2, "c", 2)}, []int{0, 2}},
	} {
		c.it.others = map[int]*item{}
		for _, o := range c.others {
			for _, h := range o.holders {
				c.it.others[h] = o
			}
		}
		m := &MemberResult{Member: &evidence.Member{}}
		r := &Result{Members: []*MemberResult{m, m, m}}
		for range maxSameTerm + 1 {
			r.noteSameTerm(c.it)
		}
		if c.by == nil {
			if len(r.SameTerm) > 0 {
				t.Errorf("%s: %+v", name, r.SameTerm[0])
			}
			continue
		}
		if len(r.SameTerm) != maxSameTerm {
			t.Errorf("%s: %d are kept", name, len(r.SameTerm))
			continue
		}
		d := r.SameTerm[0]
		if d.Index != 9 || !slices.Equal(slices.Sorted(maps.Keys(d.By)), c.by) || len(d.Versions) < 2 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestDescribeVersion: entries that read alike are distinguished by their request, else by their bytes.
func TestDescribeVersion(t *testing.T) {
	r := &Result{Members: []*MemberResult{{Member: &evidence.Member{}}}}
	of := func(term uint64, id dumplog.RequestID, data, key string) *item {
		req := put(key, "")
		req.Header.ID = id
		return &item{entry: dumplog.Entry{Term: term, Index: 9, Data: []byte(data)}, req: req}
	}
	own, stamped := of(2, 5, "own", "k"), of(2, 5, "x", "k")
	stamped.req.Header.AuthRevision = 7
	for name, c := range map[string]struct {
		others []*item
		tail   string
	}{
		"alone":                         {nil, ""},
		"another request":               {[]*item{of(2, 6, "x", "k")}, " request=5"},
		"another request of another":    {[]*item{of(2, 6, "x", "other")}, ""},
		"another term":                  {[]*item{of(3, 6, "x", "k")}, ""},
		"the same request, other bytes": {[]*item{of(2, 5, "x", "k")}, " entry=<len 3 digest "},
		"both":                          {[]*item{of(2, 6, "x", "k"), of(2, 5, "x", "k")}, " entry=<len 3 digest "},
		"another auth revision":         {[]*item{stamped}, " authRevision=0"},
		"that and other bytes":          {[]*item{stamped, of(2, 5, "x", "k")}, " entry=<len 3 digest "},
		"both, the other way round":     {[]*item{of(2, 5, "x", "k"), of(2, 6, "x", "k")}, " entry=<len 3 digest "},
	} {
		got := r.describeVersion(own, append([]*item{own}, c.others...))
		plain := "2/9 " + r.describe(own.req)
		if !strings.HasPrefix(got, plain+c.tail) || c.tail == "" && got != plain {
			t.Errorf("%s: %q, want %q", name, got, plain+c.tail)
		}
	}
}

// TestAnyLogShowsARepetition: which of the long logs comes first does not decide whether the entry is in them twice.
func TestAnyLogShowsARepetition(t *testing.T) {
	twice := open(t, handLogs(t, again(0))...).Members[0] // 10 and 11 are one request
	surplus, err := tailOf(t.Context(), twice, 11)
	if err != nil {
		t.Fatal(err)
	}
	from11 := open(t, handLogs(t, from1(20))...).Members[0]
	from11.WAL.Summary.FirstIndex, from11.WAL.Summary.LastIndex = 11, 99 // it has nothing before, and ends last
	for _, long := range [][]int{{1, 2}, {2, 1}} {
		r := &Result{Members: []*MemberResult{{Member: from11}, {Member: twice}, {Member: from11}}}
		s := &Shift{Index: 11, Missing: 1, Short: []int{0}, Long: long}
		if known, err := r.side(t.Context(), s, surplus[:1]); err != nil || !known || !s.Added || !s.Repeated {
			t.Errorf("logs %v: known %v, %+v, %v", long, known, s, err)
		}
		s = &Shift{Index: 17, Missing: 1, Long: long}
		if err := r.repeatedBefore(t.Context(), s); err != nil || !s.Repeated || s.Index != 11 {
			t.Errorf("logs %v, before it: %+v, %v", long, s, err)
		}
	}
}

// TestRepeatedBefore: an entry that a log holds twice before the index at which another one, which was purged, begins
// to differ.
func TestRepeatedBefore(t *testing.T) {
	twice := open(t, handLogs(t, again(0))...).Members[0]                         // 10 and 11 are one request
	both := open(t, handLogs(t, slices.Insert(from1(20), 8, 7, 8))...).Members[0] // 11 and 12 are 9 and 10
	for name, c := range map[string]struct {
		m       *evidence.Member
		index   uint64
		missing int
		want    uint64
	}{
		"before it":              {twice, 17, 1, 11},
		"right before it":        {twice, 12, 1, 11},
		"not before it":          {twice, 11, 1, 0},
		"two entries":            {twice, 17, 2, 0},
		"two of two entries":     {both, 17, 2, 11},
		"two, right before it":   {both, 13, 2, 11},
		"two, one is not before": {both, 12, 2, 0},
	} {
		s := &Shift{Index: c.index, Missing: c.missing, Long: []int{0}}
		r := &Result{Members: []*MemberResult{{Member: c.m}}}
		if err := r.repeatedBefore(t.Context(), s); err != nil || s.Repeated != (c.want > 0) ||
			c.want > 0 && (s.Index != c.want || s.Instead == "" ||
				!strings.HasPrefix(s.What, fmt.Sprintf("2/%d ", c.want))) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if c.want > 0 {
			surplus, err := tailOf(t.Context(), c.m, c.want)
			if err != nil {
				t.Fatal(err)
			}
			for n, want := range map[int]bool{0: false, c.missing: true, c.missing + 1: false} {
				if got, err := requestTwice(t.Context(), c.m, c.want, surplus[:n]); err != nil || got != want {
					t.Errorf("%s: %d entries are there before: %t, %v", name, n, got, err)
				}
			}
		}
	}
}

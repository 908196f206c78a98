package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// editedPut is a put of a with a change.
func editedPut(change func(r *dumplog.Request)) *dumplog.Request {
	r := put("a", "1")
	change(r)
	return r
}

// TestConditions: a put may be without effect where it depends on its key, its lease, or a user.
func TestConditions(t *testing.T) {
	granted := map[int64]bool{7: true}
	for name, c := range map[string]struct {
		r                        *dumplog.Request
		conditional, plain, with bool
	}{
		"a put":         {put("a", "1"), false, true, false},
		"any value":     {editedPut(func(r *dumplog.Request) { r.Put.IgnoreValue = true }), true, false, false},
		"any lease":     {editedPut(func(r *dumplog.Request) { r.Put.IgnoreLease = true }), true, false, false},
		"a lease":       {editedPut(func(r *dumplog.Request) { r.Put.Lease = 8 }), true, false, false},
		"a new lease":   {editedPut(func(r *dumplog.Request) { r.Put.Lease = 7 }), true, false, true},
		"a user":        {editedPut(func(r *dumplog.Request) { r.Header.Username = "app" }), true, true, false},
		"a delete":      {del("a", ""), true, false, false},
		"a transaction": {txn(nil, []dumplog.RequestOp{putOp("a", "1")}, nil), true, false, false},
		"a new lease, any value": {editedPut(func(r *dumplog.Request) { r.Put.Lease, r.Put.IgnoreValue = 7, true }), true,
			false, false},
		"a new lease, any lease": {editedPut(func(r *dumplog.Request) { r.Put.Lease, r.Put.IgnoreLease = 7, true }), true,
			false, false},
		"a new lease, a user": {editedPut(func(r *dumplog.Request) { r.Put.Lease, r.Header.Username = 7, "app" }), true,
			false, false},
	} {
		if got := conditional(c.r); got != c.conditional {
			t.Errorf("%s: conditional %t", name, got)
		}
		if got := PlainPut(c.r); got != c.plain {
			t.Errorf("%s: plain %t", name, got)
		}
		if got := putsWith(c.r, granted); got != c.with {
			t.Errorf("%s: with a lease just granted %t", name, got)
		}
	}
}

// TestWritesAfter: a transaction writes after a group if that holds what all its compares ask for.
func TestWritesAfter(t *testing.T) {
	g, gone := groupOf(rec(9, 0, "a", "1"), rec(9, 1, "b", "1")), groupOf(tomb(9, 0, "a"))
	ops := []dumplog.RequestOp{putOp("c", "1")}
	ranged, unequal, version := cmpMod("a", 9), cmpMod("a", 9), cmpMod("a", 9)
	ranged[0].RangeEnd, unequal[0].Result, version[0].Target = []byte("b"), apply.ResultNotEqual, apply.TargetVersion
	for name, c := range map[string]struct {
		r    *dumplog.Request
		g    *group
		want bool
	}{
		"its revision":          {txn(cmpMod("a", 9), ops, nil), g, true},
		"another revision":      {txn(cmpMod("a", 8), ops, nil), g, false},
		"both of its keys":      {txn(append(cmpMod("a", 9), cmpMod("b", 9)...), ops, nil), g, true},
		"a key of another":      {txn(append(cmpMod("a", 9), cmpMod("x", 9)...), ops, nil), g, false},
		"a range":               {txn(ranged, ops, nil), g, false},
		"not its revision":      {txn(unequal, ops, nil), g, false},
		"a version":             {txn(version, ops, nil), g, false},
		"a deleted key":         {txn(cmpMod("a", 0), ops, nil), gone, true},
		"a deleted key, not so": {txn(cmpMod("a", 9), ops, nil), gone, false},
		"no compare":            {txn(nil, ops, nil), g, false},
		"no put":                {txn(cmpMod("a", 9), []dumplog.RequestOp{delOp("a", "")}, nil), g, false},
		"a put":                 {put("a", "1"), g, false},
	} {
		if got := writesAfter(c.r, c.g); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStandsOn: a key can have had a mod revision before another one unless the records between show another state.
func TestStandsOn(t *testing.T) {
	b := &backwards{groups: []*group{groupOf(rec(5, 0, "a", "1")), groupOf(rec(6, 0, "b", "1")), groupOf(tomb(7, 0, "a")),
		groupOf(rec(8, 0, "c", "1"))}}
	for _, c := range []struct {
		key         string
		mod, before int64
		want        bool
	}{
		{"a", 5, 7, true}, {"a", 4, 7, false}, {"a", 0, 8, true}, {"a", 5, 8, false}, {"a", 0, 9, true}, {"b", 6, 9, true},
		{"b", 7, 9, false}, {"b", 5, 6, false}, {"b", 4, 6, true}, {"c", 8, 8, true}, {"c", 8, 9, true}, {"x", 8, 9, false},
		{"x", 8, 8, true}, {"x", 4, 9, true}, {"x", 0, 9, true},
	} {
		if got := b.standsOn(c.key, c.mod, c.before); got != c.want {
			t.Errorf("%s at %d before %d: %t", c.key, c.mod, c.before, got)
		}
	}
}

// TestEndsBefore: three of the newest revisions that are, in order, those of entries before the last one that must have
// written show that its own records were lost.
func TestEndsBefore(t *testing.T) {
	before := itemsOf(put("a", "1"), put("b", "1"), put("x", "1"), put("c", "1"), put("d", "1"))
	of := func(keys ...string) (out []*group) {
		for i, k := range keys {
			out = append(out, groupOf(rec(int64(5+i), 0, k, "1")))
		}
		return out
	}
	holed := of("b", "c", "d")
	holed[1].hole = true
	apart := of("b", "c", "d")
	apart[2].main = 9
	for name, c := range map[string]struct {
		groups []*group
		want   bool
	}{
		"three":                       {of("b", "c", "d"), true},
		"with one between":            {of("a", "b", "c"), true},
		"others before them":          {of("z", "b", "c", "d"), true},
		"two":                         {of("c", "d"), false},
		"in another order":            {of("c", "b", "d"), false},
		"another one is the newest":   {of("b", "c", "d", "z"), false},
		"one twice":                   {of("b", "d", "d"), false},
		"none":                        {nil, false},
		"unreadable pages between":    {holed, false},
		"not one after the other":     {apart, false},
		"deletes show nothing":        {[]*group{groupOf(rec(5, 0, "b", "1")), groupOf(rec(6, 0, "c", "1")), groupOf(tomb(7, 0, "d"))}, false},
		"three, and a delete between": {[]*group{groupOf(rec(5, 0, "a", "1")), groupOf(rec(6, 0, "b", "1")), groupOf(tomb(7, 0, "y")), groupOf(rec(8, 0, "d", "1"))}, true},
	} {
		items := before
		if name == "three, and a delete between" {
			items = itemsOf(put("a", "1"), put("b", "1"), del("y", ""), put("d", "1"))
		}
		if name == "deletes show nothing" {
			items = itemsOf(put("b", "1"), put("c", "1"), del("d", ""))
		}
		if got := endsBefore(c.groups, items); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWrittenAhead: the newest revisions are of entries above the consistent index if two of them can be of no others.
func TestWrittenAhead(t *testing.T) {
	number := map[string]int{"k": 1, "l": 2, "b": 3, "c": 4, "d": 5, "z": 9}
	entry := func(index uint64, key string) *item { // with its data: it is decoded again
		e := entryOf(t, index, number[key])
		r, err := e.Decode()
		if err != nil {
			t.Fatal(err)
		}
		return &item{entry: e, req: r}
	}
	last := entry(2, "l")
	known := []*item{entry(1, "k"), last}
	of := func(keys ...string) (out []*group) {
		for i, k := range keys {
			out = append(out, groupOf(rec(int64(10-len(keys)+i+1), 0, fmt.Sprint("k", number[k]), "")))
		}
		return out
	}
	holed, apart := of("l", "c", "d"), of("l", "c", "d")
	holed[1].hole, apart[1].main = true, 7
	for name, c := range map[string]struct {
		groups []*group
		want   int64
	}{
		"two":                           {of("l", "c", "d"), 2},
		"one":                           {of("l", "d"), 0},
		"three":                         {of("l", "b", "c", "d"), 3},
		"two, and one of either":        {of("l", "k", "c", "d"), 2},
		"one of either between":         {of("l", "c", "k", "d"), 3},
		"one, and one of either":        {of("l", "k", "d"), 0},
		"the last known is the newest":  {of("c", "d", "l"), 0},
		"up to one that no entry wrote": {of("b", "z", "c", "d"), 2},
		"unreadable pages":              {holed, 0},
		"a revision is missing":         {apart, 0},
		"in another order":              {of("l", "d", "c"), 0},
	} {
		b := newBench(t, 6, -1)
		for i, key := range []string{"k", "l", "b", "c", "k", "d"} {
			b.items = append(b.items, entry(uint64(i+1), key))
		}
		b.sim.past, b.sim.logEnd = pastItems(b), 6
		if name == "two, and one of either" {
			b.items[2] = entry(3, "k")
		}
		b.sim.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 10}}
		if got := b.sim.writtenAhead(c.groups, known, b.sim.above(t.Context(), 2), last); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestAheadOfConditions: where no entry up to the index must have written, only transactions above it count that name
// the revision which their key had.
func TestAheadOfConditions(t *testing.T) {
	lines := []casetest.Line{{Verb: "script", Rest: "3.5.0"}}
	for _, step := range []string{`key:"a" value:"0"`, `key:"b" value:"0"`, `key:"a" value:"1"`, `key:"b" value:"1"`} {
		lines = append(lines, casetest.Line{Verb: "step", Rest: "put:<" + step + ">"})
	}
	m := casetest.Open(t, casetest.Build(t, lines), evidence.Options{Deep: true}).Members[0]
	guarded := func(key string, mod int64) *dumplog.Request {
		return txn(cmpMod(key, mod), []dumplog.RequestOp{putOp(key, "1")}, nil)
	}
	for name, c := range map[string]struct {
		reqs []*dumplog.Request
		want int64
	}{
		"two name it":         {[]*dumplog.Request{guarded("a", 2), guarded("b", 3)}, 2},
		"one names it":        {[]*dumplog.Request{guarded("a", 2), guarded("b", 0)}, 0},
		"another revision":    {[]*dumplog.Request{guarded("a", 3), guarded("b", 3)}, 0},
		"one without compare": {[]*dumplog.Request{put("a", "1"), guarded("b", 3)}, 0},
		"a later revision":    {[]*dumplog.Request{guarded("a", 2), guarded("b", 5)}, 0},
	} {
		b := newBench(t, 4, -1).log(c.reqs...)
		b.sim.m.DB = m.DB
		groups := slices.Collect(b.sim.groups(4, 5))
		if len(groups) != 2 {
			t.Fatalf("%d groups", len(groups))
		}
		if got := b.sim.writtenAhead(groups, nil, b.items, nil); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestReads: the records of a database are read where an entry of a window may have written them, or where a compare or
// a revoke asks for their key.
func TestReads(t *testing.T) {
	type rr struct {
		first bool
		key   string
		del   bool
	}
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		rows []rr
		want string
	}{
		"a put": {[]*dumplog.Request{put("a", "1")}, []rr{{true, "a", false}, {false, "x", false}, {true, "x", false},
			{false, "a", false}, {true, "a", true}}, "[true true false false true]"},
		"a range":  {[]*dumplog.Request{del("a", "c")}, []rr{{true, "x", false}}, "[true]"},
		"a guard":  {[]*dumplog.Request{txn(cmpMod("g", 2), []dumplog.RequestOp{putOp("a", "1")}, nil)}, []rr{{true, "g", false}, {true, "x", true}}, "[true false]"},
		"a revoke": {[]*dumplog.Request{revoke(7)}, []rr{{true, "x", true}, {true, "x", false}}, "[true true]"},
		"nothing":  {nil, []rr{{true, "x", true}}, "[false]"},
	} {
		reads := newWindow(c.log...).reads()
		var got []bool
		for _, r := range c.rows {
			got = append(got, reads(r.first, []byte(r.key), r.del))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestServed: the first request of a client that each process proposed after it had published itself.
func TestServed(t *testing.T) {
	of := func(start, n uint64) RequestID { return RequestID(1<<48 | start<<8 | n) }
	publish := func(id RequestID) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindClusterMemberAttrSet, Header: dumplog.Header{ID: id},
			MemberAttr: &dumplog.ClusterMemberAttrSet{MemberID: 1}}
	}
	by := func(id RequestID, r *dumplog.Request) *dumplog.Request {
		r.Header.ID = id
		return r
	}
	begin := publish(of(5000, 1))
	if begin.Publishes() == nil {
		t.Fatal("no publish entry")
	}
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		want []uint64
	}{
		"a put":                         {[]*dumplog.Request{begin, by(of(5000, 2), put("a", "1"))}, []uint64{2}},
		"the first of two":              {[]*dumplog.Request{begin, by(of(5000, 2), put("a", "1")), by(of(5000, 3), put("a", "1"))}, []uint64{2}},
		"a delete":                      {[]*dumplog.Request{begin, by(of(5000, 2), del("a", ""))}, []uint64{2}},
		"a grant":                       {[]*dumplog.Request{begin, by(of(5000, 2), grantOf(7, 60, 0))}, []uint64{2}},
		"a revoke is no client's":       {[]*dumplog.Request{begin, by(of(5000, 2), revoke(7)), by(of(5000, 3), put("a", "1"))}, []uint64{3}},
		"before it published":           {[]*dumplog.Request{by(of(5000, 2), put("a", "1"))}, nil},
		"of an older process":           {[]*dumplog.Request{begin, by(of(4999, 2), put("a", "1"))}, nil},
		"without a request ID":          {[]*dumplog.Request{begin, put("a", "1")}, nil},
		"two processes":                 {[]*dumplog.Request{begin, by(of(5000, 2), put("a", "1")), publish(of(9000, 1)), by(of(9000, 2), put("a", "1"))}, []uint64{2, 4}},
		"a process that published last": {[]*dumplog.Request{begin, publish(of(9000, 1)), by(of(9000, 2), put("a", "1"))}, []uint64{3}},
	} {
		s := &Survey{serving: map[uint16]*serving{}, Served: map[dumplog.ID][]Served{},
			prefixes: map[uint16]dumplog.ID{}, describe: func(*dumplog.Request) string { return "w" }}
		s.learn(1)
		for i, r := range c.log {
			s.noteServed(itemAt(uint64(i+1), r))
		}
		var got []uint64
		for _, x := range s.Served[1] {
			got = append(got, x.Index)
			if x.What != "w" || x.Publish == 0 || x.Publish >= x.Index {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTrace: a member's curve has the revision where the database shows what an entry did, and ends where it does not.
func TestTrace(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *sim)
		kind   dumplog.Kind
		state  State
		want   []Point
	}{
		"applied":                 {nil, dumplog.KindPut, Applied, []Point{{5, 7, 1, 3}, {9, 8, 1, 3}}},
		"missing":                 {nil, dumplog.KindPut, Missing, []Point{{5, 7, 1, 3}, {9, 8, 1, 3}}},
		"not applied":             {nil, dumplog.KindPut, NotApplied, []Point{{5, 7, 1, 3}}},
		"before the place":        {func(s *sim) { s.met = false }, dumplog.KindPut, Applied, []Point{{5, 7, 1, 3}}},
		"a write, not known":      {nil, dumplog.KindPut, OutsideHistory, []Point{{5, 7, 1, 3}, {9, 0, 1, 0}}},
		"another, not known":      {nil, dumplog.KindLeaseGrant, OutsideHistory, []Point{{5, 7, 1, 3}}},
		"not judged":              {nil, dumplog.KindPut, Unknown, []Point{{5, 7, 1, 3}, {9, 0, 1, 0}}},
		"not known, at the start": {func(s *sim) { s.res.Curve = Curve{} }, dumplog.KindPut, OutsideHistory, nil},
		"users are not known":     {func(s *sim) { s.Auth.Known = false }, dumplog.KindPut, Applied, []Point{{5, 7, 1, 3}, {9, 8, 0, 3}}},
	} {
		s := newBench(t, 4, -1).sim
		s.Auth.Known, s.Auth.Revision, s.saved, s.Revision, s.now = true, 1, 3, 8, 9
		s.res.Curve.note(Point{5, 7, 1, 3})
		if c.change != nil {
			c.change(s)
		}
		if s.trace(c.kind, Outcome{State: c.state}); !slices.Equal(s.res.Curve.Points, c.want) {
			t.Errorf("%s: %+v, want %+v", name, s.res.Curve.Points, c.want)
		}
	}
}

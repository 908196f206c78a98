package replay

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// itemsOf are entries from index 1 on.
func itemsOf(reqs ...*dumplog.Request) (out []*item) {
	for i, r := range reqs {
		out = append(out, &item{entry: dumplog.Entry{Term: 1, Index: uint64(i + 1)}, req: r})
	}
	return out
}

// groupOf are the records of one revision.
func groupOf(rows ...row) *group {
	g := &group{main: rows[0].rev.Main}
	for _, r := range rows {
		g.records = append(g.records, r.record)
	}
	return g
}

func newWindow(reqs ...*dumplog.Request) *window {
	s := &logView{m: &evidence.Member{DB: &evidence.DB{}}}
	w := &window{s: s, items: itemsOf(reqs...), writes: 1, byKey: map[string][]int{}, byLease: map[int64][]int{},
		guards: map[string]struct{}{}, lease: map[string]int64{}, mod: map[string]int64{}}
	w.groups = make([]int, len(w.items))
	for i, it := range w.items {
		w.index(i, it.req)
	}
	return w
}

func revoke(id int64) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: id}}
}

func leased(main int64, key, value string, lease int64) row {
	r := rec(main, 0, key, value)
	r.lease = lease
	return r
}

func nested(req *dumplog.Request) []dumplog.RequestOp { return []dumplog.RequestOp{{Txn: req.Txn}} }

// TestWriter: an entry is matched with a group only where no other of the window can have written it.
func TestWriter(t *testing.T) {
	puts := func(keys ...string) (out []dumplog.RequestOp) {
		for _, k := range keys {
			out = append(out, putOp(k, "1"))
		}
		return out
	}
	for name, c := range map[string]struct {
		log     []*dumplog.Request
		before  []*group
		group   *group
		who     int
		several bool
	}{
		"a put": {log: []*dumplog.Request{put("a", "1"), put("b", "1")},
			group: groupOf(rec(5, 0, "b", "1")), who: 1},
		"another value": {log: []*dumplog.Request{put("a", "1"), put("b", "1")},
			group: groupOf(rec(5, 0, "b", "2")), who: -1},
		"two alike": {log: []*dumplog.Request{put("b", "1"), put("b", "1")},
			group: groupOf(rec(5, 0, "b", "1")), who: -1, several: true},
		"a delete": {log: []*dumplog.Request{del("a", ""), del("b", "")},
			group: groupOf(tomb(5, 0, "a")), who: 0},
		"a range of keys": {log: []*dumplog.Request{del("a", "c"), del("x", "")},
			group: groupOf(tomb(5, 0, "a"), tomb(5, 1, "b")), who: 0},
		"a range, or a delete": {log: []*dumplog.Request{del("a", "c"), del("b", "")},
			group: groupOf(tomb(5, 0, "b")), who: -1, several: true},
		"a lease of nobody knows": {log: []*dumplog.Request{revoke(7)}, group: groupOf(tomb(5, 0, "a")), who: 0},
		"two leases of nobody knows": {log: []*dumplog.Request{revoke(7), revoke(8)}, group: groupOf(tomb(5, 0, "a")),
			who: -1, several: true},
		"the lease that the key has": {log: []*dumplog.Request{revoke(7), revoke(8)},
			before: []*group{groupOf(leased(4, "a", "1", 8))}, group: groupOf(tomb(5, 0, "a")), who: 1},
		"a lease that the key lost": {log: []*dumplog.Request{revoke(7)},
			before: []*group{groupOf(leased(3, "a", "1", 7)), groupOf(rec(4, 0, "a", "1"))},
			group:  groupOf(tomb(5, 0, "a")), who: -1},
		"a lease before the delete": {log: []*dumplog.Request{revoke(7), revoke(8)},
			before: []*group{groupOf(leased(3, "a", "1", 7)), groupOf(tomb(4, 0, "a"))},
			group:  groupOf(tomb(5, 0, "a")), who: -1, several: true},
		"a revoke writes no value": {log: []*dumplog.Request{revoke(7)}, group: groupOf(rec(5, 0, "a", "1")),
			who: -1},
		"a transaction": {log: []*dumplog.Request{txn(nil, puts("a", "b"), nil)},
			group: groupOf(rec(5, 0, "a", "1"), rec(5, 1, "b", "1")), who: 0},
		"a transaction, cut": {log: []*dumplog.Request{txn(nil, puts("a", "b"), nil)},
			group: groupOf(rec(5, 0, "a", "1")), who: -1},
		"its other branch": {log: []*dumplog.Request{txn(cmpMod("a", 2), puts("a"), puts("b"))},
			group: groupOf(rec(5, 0, "b", "1")), who: 0},
		"a range in a transaction": {log: []*dumplog.Request{txn(nil, []dumplog.RequestOp{delOp("a", "c")}, nil)},
			group: groupOf(tomb(5, 0, "b")), who: 0},
		"a delete in a transaction": {log: []*dumplog.Request{txn(nil, []dumplog.RequestOp{delOp("b", "")}, nil)},
			group: groupOf(tomb(5, 0, "b")), who: 0},
		"one key twice": {log: []*dumplog.Request{txn(cmpMod("a", 2), puts("a"), puts("a"))},
			before: []*group{groupOf(rec(2, 0, "a", "0"))}, group: groupOf(rec(5, 0, "a", "1")), who: 0},
		"a transaction in it": {log: []*dumplog.Request{txn(nil, nested(txn(nil, puts("z"), nil)), nil)},
			group: groupOf(rec(5, 0, "z", "1")), who: 0},
		"the guard names the record": {log: []*dumplog.Request{txn(cmpMod("a", 3), puts("a"), nil),
			txn(cmpMod("a", 4), puts("a"), nil)}, before: []*group{groupOf(rec(4, 0, "a", "0"))},
			group: groupOf(rec(5, 0, "a", "1")), who: 1},
		"the guard names the future": {log: []*dumplog.Request{txn(cmpMod("a", 5), puts("a"), nil),
			txn(cmpMod("a", 4), puts("a"), nil)}, group: groupOf(rec(5, 0, "a", "1")), who: 1},
		"the guard names an old one": {log: []*dumplog.Request{txn(cmpMod("a", 3), puts("a"), nil)},
			before: []*group{groupOf(rec(4, 0, "a", "0"))}, group: groupOf(rec(5, 0, "a", "1")), who: -1},
		"a deleted key has no record": {log: []*dumplog.Request{txn(cmpMod("a", 3), puts("a"), nil),
			txn(cmpMod("a", 0), puts("a"), nil)},
			before: []*group{groupOf(rec(3, 0, "a", "0")), groupOf(tomb(4, 0, "a"))},
			group:  groupOf(rec(5, 0, "a", "1")), who: 1},
		"a guard that fails writes": {log: []*dumplog.Request{txn(cmpMod("a", 3), puts("b"), puts("a"))},
			before: []*group{groupOf(rec(4, 0, "a", "0"))}, group: groupOf(rec(5, 0, "a", "1")), who: 0},
		"a guard of a range": {log: []*dumplog.Request{txn([]dumplog.Compare{{Target: apply.TargetMod,
			Result: apply.ResultEqual, Key: []byte("a"), RangeEnd: []byte("c"), Num: 3}}, puts("a"), nil)},
			before: []*group{groupOf(rec(4, 0, "a", "0"))}, group: groupOf(rec(5, 0, "a", "1")), who: 0},
		"a guard that is no equality": {log: []*dumplog.Request{txn([]dumplog.Compare{{Target: apply.TargetMod,
			Result: apply.ResultGreater, Key: []byte("a"), Num: 3}}, puts("a"), nil)},
			before: []*group{groupOf(rec(4, 0, "a", "0"))}, group: groupOf(rec(5, 0, "a", "1")), who: 0},
		"a guard on the creation": {log: []*dumplog.Request{txn([]dumplog.Compare{{Target: apply.TargetCreate,
			Result: apply.ResultEqual, Key: []byte("a"), Num: 3}}, puts("a"), nil)},
			before: []*group{groupOf(record3(4, 3, 2, "a", "0"))}, group: groupOf(record3(5, 3, 3, "a", "1")), who: 0},
		"a guard on another creation": {log: []*dumplog.Request{txn(createIs("a", 3), puts("a"), nil)},
			before: []*group{groupOf(rec(4, 0, "a", "0"))}, group: groupOf(record3(5, 4, 2, "a", "1")), who: -1},
		"a guard on another creation, and another branch": {log: []*dumplog.Request{txn(createIs("a", 3), puts("a"),
			puts("a"))}, group: groupOf(record3(5, 4, 2, "a", "1")), who: 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(c.log...)
			for _, g := range c.before {
				w.learn(g)
			}
			if who, several := w.writer(c.group); who != c.who || several != c.several {
				t.Errorf("writer %d, several %v; want %d, %v", who, several, c.who, c.several)
			}
		})
	}
}

// TestStrong: what fits by a value that a twin before could not have brought proves a place, the rest does not.
func TestStrong(t *testing.T) {
	a := []dumplog.RequestOp{putOp("a", "1")}
	g := groupOf(rec(5, 0, "a", "1"))
	guard := func(target dumplog.CompareTarget, result dumplog.CompareResult, n int64) *dumplog.Request {
		return txn([]dumplog.Compare{{Target: target, Result: result, Key: []byte("a"), Num: n}}, a, nil)
	}
	ranged := guard(apply.TargetMod, apply.ResultEqual, 4)
	ranged.Txn.Compare[0].RangeEnd = []byte("b")
	keepsValue, keepsLease := put("a", ""), put("a", "1")
	keepsValue.Put.IgnoreValue, keepsLease.Put.IgnoreLease = true, true
	second := txn(append(cmpMod("other", 2), cmpMod("a", 4)...), a, nil)
	for name, c := range map[string]struct {
		req  *dumplog.Request
		g    *group
		want bool
	}{
		"a put":                      {put("a", "1"), g, true},
		"a put that keeps the value": {keepsValue, g, false},
		"a put that keeps the lease": {keepsLease, g, false},
		"a delete":                   {del("a", ""), groupOf(tomb(5, 0, "a")), false},
		"a revoke":                   {revoke(7), groupOf(tomb(5, 0, "a")), false},
		"puts without condition":     {txn(nil, a, nil), g, true},
		"a put that keeps the value without condition": {txn(nil, []dumplog.RequestOp{{Put: keepsValue.Put}}, nil), g,
			false},
		"one that keeps the lease without condition": {txn(nil, []dumplog.RequestOp{{Put: keepsLease.Put}}, nil), g, false},
		"a nested transaction without condition":     {txn(nil, nested(txn(nil, a, nil)), nil), g, false},
		"deletes without condition": {txn(nil, []dumplog.RequestOp{delOp("a", "")}, nil),
			groupOf(tomb(5, 0, "a")), false},
		"both without condition": {txn(nil, append(slices.Clone(a), delOp("b", "")), nil),
			groupOf(rec(5, 0, "a", "1"), tomb(5, 1, "b")), false},
		"the revision that it had":        {guard(apply.TargetMod, apply.ResultEqual, 4), g, true},
		"another revision":                {guard(apply.TargetMod, apply.ResultEqual, 3), g, false},
		"no revision":                     {guard(apply.TargetMod, apply.ResultEqual, 0), g, false},
		"not this revision":               {guard(apply.TargetMod, apply.ResultNotEqual, 4), g, false},
		"the revision of a range":         {ranged, g, false},
		"its creation":                    {guard(apply.TargetCreate, apply.ResultEqual, 4), g, false},
		"its version":                     {guard(apply.TargetVersion, apply.ResultEqual, 4), g, false},
		"the second of two guards":        {second, g, true},
		"a key of which nothing is known": {txn(cmpMod("z", 4), a, nil), g, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(c.req)
			w.learn(groupOf(rec(4, 0, "a", "0")))
			if got := w.strong(c.req, c.g); got != c.want {
				t.Errorf("strong %v, want %v", got, c.want)
			}
		})
	}
}

// TestChain: of pairs that contradict each other the longest run counts: in order, and not more revisions than entries
// apart.
func TestChain(t *testing.T) {
	for name, c := range map[string]struct{ pairs, want []pair }{
		"none": {},
		"one":  {[]pair{{0, 5, true}}, []pair{{0, 5, true}}},
		"all": {[]pair{{0, 5, false}, {1, 6, true}, {3, 7, true}},
			[]pair{{0, 5, false}, {1, 6, true}, {3, 7, true}}},
		"one out of order": {[]pair{{0, 5, true}, {1, 9, true}, {2, 6, true}, {3, 7, true}},
			[]pair{{0, 5, true}, {2, 6, true}, {3, 7, true}}},
		"the first is of before": {[]pair{{0, 2, true}, {1, 8, true}, {2, 9, true}},
			[]pair{{1, 8, true}, {2, 9, true}}},
		"as many as entries": {[]pair{{0, 5, true}, {3, 8, true}}, []pair{{0, 5, true}, {3, 8, true}}},
		"more than entries": {[]pair{{0, 4, true}, {3, 8, true}, {4, 9, true}},
			[]pair{{3, 8, true}, {4, 9, true}}},
		"one revision, two of it": {[]pair{{0, 5, true}, {1, 5, true}, {2, 6, true}},
			[]pair{{0, 5, true}, {2, 6, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &window{pairs: c.pairs}
			if w.chain(); !slices.Equal(w.pairs, c.want) {
				t.Errorf("%v, want %v", w.pairs, c.want)
			}
		})
	}
}

// TestFirst: the place lies before the first certain pair; where nothing lies before the window, before the first pair.
func TestFirst(t *testing.T) {
	pairs := []pair{{1, 6, false}, {2, 8, true}, {3, 9, true}}
	w := &window{items: itemsOf(put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")), writes: 11, pairs: pairs}
	if at, ok := w.first(); !ok || at != (place{index: 2, rev: 7, writes: 12}) {
		t.Errorf("%+v %v, want before the certain one", at, ok)
	}
	w.whole = true
	if at, ok := w.first(); !ok || at != (place{index: 1, rev: 5, writes: 11}) {
		t.Errorf("%+v %v, want before the first", at, ok)
	}
	w.whole, w.pairs = false, pairs[:1]
	if at, ok := w.first(); ok {
		t.Errorf("%+v is certain", at)
	}
}

// byRoot is a request of user root at an auth revision, authAt a member with auth on at one.
func byRoot(r *dumplog.Request, revision uint64) *dumplog.Request {
	r.Header = dumplog.Header{Username: apply.Root, AuthRevision: revision}
	return r
}

func authAt(revision uint64) func(*window) {
	return func(w *window) {
		w.s.m.DB.Auth = dumpdb.Auth{Enabled: true, HasRevision: true, Revision: revision}
	}
}

// TestLost: only a put that must have written, and whose record must still be there, shows that log and database do not
// belong together.
func TestLost(t *testing.T) {
	with := func(edit func(*dumplog.Request)) *dumplog.Request {
		r := put("a", "1")
		edit(r)
		return r
	}
	for name, c := range map[string]struct {
		req  *dumplog.Request
		edit func(*window)
		want bool
	}{
		"a put":                {req: put("a", "1"), want: true},
		"its record is there":  {req: put("a", "1"), edit: func(w *window) { w.groups[1] = 1 }},
		"another one is there": {req: put("a", "1"), edit: func(w *window) { w.pairs = []pair{{0, 5, true}} }},
		"it may be compacted":  {req: put("a", "1"), edit: func(w *window) { w.dense = 2 }},
		"auth is on":           {req: put("a", "1"), edit: func(w *window) { w.s.m.DB.Auth.Enabled = true }},
		"auth was on":          {req: put("a", "1"), edit: func(w *window) { w.s.m.DB.Auth.Revision = 2 }},
		"auth was never on": {req: put("a", "1"), edit: func(w *window) { w.s.m.DB.Auth.Revision = 1 },
			want: true},
		"an alarm was on": {req: put("a", "1"), edit: func(w *window) { mayAlarm(w.s, 2, 2) }},
		"an alarm is on later": {req: put("a", "1"), edit: func(w *window) { mayAlarm(w.s, 3, 9) },
			want: true},
		"a lease":                      {req: with(func(r *dumplog.Request) { r.Put.Lease = 7 })},
		"the lease that it had":        {req: with(func(r *dumplog.Request) { r.Put.IgnoreLease = true })},
		"the value that it had":        {req: with(func(r *dumplog.Request) { r.Put.IgnoreValue = true })},
		"a user":                       {req: with(func(r *dumplog.Request) { r.Header.AuthRevision = 3 })},
		"root, auth is on":             {req: byRoot(put("a", "1"), 7), edit: authAt(7), want: true},
		"root, a higher auth revision": {req: byRoot(put("a", "1"), 8), edit: authAt(7), want: true},
		"root, an old auth revision":   {req: byRoot(put("a", "1"), 6), edit: authAt(7)},
		"root, and a received snapshot": {req: byRoot(put("a", "1"), 7), edit: func(w *window) {
			authAt(7)(w)
			w.s.m.WAL = jumped(2)
		}},
		"root, and a snapshot received before": {req: byRoot(put("a", "1"), 7), edit: func(w *window) {
			authAt(7)(w)
			w.s.m.WAL = jumped(1)
		}, want: true},
		"another user, auth is on": {req: with(func(r *dumplog.Request) {
			r.Header = dumplog.Header{Username: "app", AuthRevision: 7}
		}), edit: authAt(7)},
		"a delete":      {req: del("a", "")},
		"a transaction": {req: txn(nil, []dumplog.RequestOp{putOp("a", "1")}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(del("x", ""), c.req)
			w.dense = 1
			if c.edit != nil {
				c.edit(w)
			}
			if got := w.lost(); got != c.want {
				t.Errorf("lost %v, want %v", got, c.want)
			}
		})
	}
}

// TestCountedBack: from the end of a log each put that always writes takes one revision away, up to an entry that may
// have had no effect.
func TestCountedBack(t *testing.T) {
	a, b, maybe := put("a", "1"), put("b", "1"), del("c", "")
	for name, c := range map[string]struct {
		log    []*dumplog.Request
		dense  int
		edit   func(*window)
		writes int64
		want   place
		ok     bool
	}{
		"puts":              {log: []*dumplog.Request{a, b}, writes: 12, want: place{index: 0, rev: 18, writes: 10}, ok: true},
		"a delete first":    {log: []*dumplog.Request{maybe, a, b}, writes: 13, want: place{index: 1, rev: 18, writes: 11}, ok: true},
		"a delete between":  {log: []*dumplog.Request{a, maybe, b}, writes: 13, want: place{index: 2, rev: 19, writes: 12}, ok: true},
		"a delete last":     {log: []*dumplog.Request{a, b, maybe}, writes: 13, want: place{index: 9, rev: 20, writes: 13}},
		"may be compacted":  {log: []*dumplog.Request{a, b}, dense: 1, writes: 12, want: place{index: 1, rev: 19, writes: 11}, ok: true},
		"not up to the end": {log: []*dumplog.Request{a, b}, writes: 13, want: place{index: 9, rev: 20, writes: 13}},
		"may be refused": {log: []*dumplog.Request{a, b}, writes: 12, want: place{index: 1, rev: 19, writes: 11}, ok: true,
			edit: func(w *window) { mayAlarm(w.s, 1, 1) }},
	} {
		w := newWindow(c.log...)
		w.writes, w.dense = 11, c.dense
		if c.edit != nil {
			c.edit(w)
		}
		if at, ok := w.counted(place{index: 9, rev: 20, writes: c.writes}); at != c.want || ok != c.ok {
			t.Errorf("%s: %+v %t", name, at, ok)
		}
	}
}

// TestWritersFrom: entries that may write are found by their number, as far as they were counted.
func TestWritersFrom(t *testing.T) {
	b := newBench(t, 6, -1).log(put("a", "1"), grantOf(7, 60, 0), put("b", "1"), put("c", "1"), put("d", "1"))
	b.sim.past = pastItems(b)
	for _, c := range []struct {
		until    uint64
		from, to int64
		want     []uint64
	}{{5, 1, 4, []uint64{1, 3, 4, 5}}, {5, 2, 3, []uint64{3, 4}}, {4, 2, 9, []uint64{3, 4}}, {5, 5, 9, nil},
		{5, markEvery + 1, markEvery + 2, nil}} {
		w := &writers{marks: []uint64{1}}
		w.until = c.until
		var got []uint64
		for _, it := range b.sim.writersFrom(t.Context(), w, c.from, c.to) {
			got = append(got, it.entry.Index)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestGroupsOfADatabase: the records of a span of revisions, one revision at a time, as long as the caller asks for
// them.
func TestGroupsOfADatabase(t *testing.T) {
	dirs := handLogs(t, from1(9)) // revisions 2 to 10
	drop(5)(t, filepath.Join(dirs[0], "member"))
	m := open(t, dirs[0]).Members[0]
	lv := &logView{m: m}
	for _, c := range []struct {
		from, to int64
		limit    int
		want     []int64
	}{{3, 6, 9, []int64{3, 4, 6}}, {2, 4, 1, []int64{2}}, {2, 4, 2, []int64{2, 3}}, {9, 20, 9, []int64{9, 10}},
		{11, 20, 9, nil}} {
		var got []int64
		for g := range lv.groups(c.from, c.to) {
			if got = append(got, g.main); len(got) == c.limit {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for name, c := range map[string]struct {
		key string
		at  dumpdb.Rev
		met bool
		ok  bool
	}{
		"its record":              {"k3", dumpdb.Rev{Main: 4}, true, true},
		"another key":             {"k4", dumpdb.Rev{Main: 4}, true, false},
		"no record":               {"k4", dumpdb.Rev{Main: 5}, true, false},
		"no record of that place": {"k3", dumpdb.Rev{Main: 4, Sub: 1}, true, false},
		"before the place":        {"k3", dumpdb.Rev{Main: 4}, false, false},
	} {
		su := &subject{logView: lv, met: c.met}
		if value, ok := su.readValue(c.key, c.at); ok != c.ok || ok && string(value) != "v" {
			t.Errorf("%s: %q %t", name, value, ok)
		}
	}
}

// TestAfterRecords: what comes after the last entry that can have written a record is above it. Records that cannot be
// read, or that no entry of the window wrote, show nothing.
func TestAfterRecords(t *testing.T) {
	w := newWindow(put("a", "1"), del("b", ""), put("c", "1"), del("b", ""), put("a", "1"), put("d", "1"))
	unread := groupOf(rec(6, 0, "c", "1"))
	unread.records[0].unread = true
	hole := groupOf(rec(7, 0, "d", "1"))
	hole.hole = true
	for name, c := range map[string]struct {
		groups []*group
		want   int
	}{
		"none":              {nil, 6},
		"one writer":        {[]*group{groupOf(rec(5, 0, "c", "1"))}, 3},
		"the last of two":   {[]*group{groupOf(tomb(5, 0, "b"))}, 4},
		"the lowest":        {[]*group{groupOf(rec(5, 0, "a", "1")), groupOf(tomb(6, 0, "b"))}, 4},
		"of no entry":       {[]*group{groupOf(rec(5, 0, "c", "2")), groupOf(rec(6, 0, "a", "1"))}, 5},
		"not read":          {[]*group{unread, groupOf(rec(7, 0, "a", "1"))}, 5},
		"after a lost part": {[]*group{groupOf(rec(5, 0, "c", "1")), hole}, 6},
	} {
		if got := w.afterRecords(slices.Values(c.groups)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

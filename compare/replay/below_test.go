package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/redact"
	"github.com/etcd-medic/etcd-medic/release"
)

// newBelow is a model with the whole log and a database compacted at its revision of the place.
func newBelow(t *testing.T, meet place, rows ...row) *bench {
	t.Helper()
	b := newBench(t, 6, meet.rev, rows...)
	b.sim.met, b.sim.meet, b.sim.fromStart, b.sim.logEnd = false, meet, true, 100
	return b
}

func record3(main, create, version int64, key, value string) row {
	r := rec(main, 0, key, value)
	r.create, r.version = create, version
	return r
}

// certainSim is a model before the place, all records up to which could be read.
func certainSim() *sim {
	s := simOf(&subject{logView: &logView{m: &evidence.Member{DB: &evidence.DB{}}}, res: &MemberResult{},
		Model: apply.NewModel(release.Version{})})
	s.below.whole = true
	return s
}

// TestBelow: at or below the compact revision entries are not judged one by one; where the model meets the database,
// the keys are compared.
func TestBelow(t *testing.T) {
	history := func() []*dumplog.Request {
		return []*dumplog.Request{put("a", "1"), put("b", "1"), put("a", "2"), put("gone", "1"), del("gone", ""),
			put("late", "1")}
	}
	outside := []string{"outside-history", "outside-history", "outside-history", "outside-history", "outside-history",
		"applied"}
	for name, c := range map[string]struct {
		rows []row
		want []BelowDiff
	}{
		"holds": {rows: []row{rec(3, 0, "b", "1"), record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")}},
		"a live key is lost": {rows: []row{record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "b", Index: 2}}},
		"another value": {rows: []row{rec(3, 0, "b", "X"), record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "b", Index: 2, Rev: 3}}},
		"another place in the transaction": {
			rows: []row{rec(3, 1, "b", "1"), record3(4, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "b", Index: 2, Rev: 3}}},
		"another revision": {rows: []row{rec(3, 0, "b", "1"), record3(5, 2, 2, "a", "2"), rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "a", Index: 3, Rev: 5}}},
		"a deleted key lives on": {rows: []row{rec(3, 0, "b", "1"), record3(4, 2, 2, "a", "2"), rec(5, 0, "gone", "1"),
			rec(7, 0, "late", "1")},
			want: []BelowDiff{{Key: "gone", Index: 5, Rev: 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBelow(t, place{index: 5, rev: 6}, c.rows...).log(history()...)
			b.want(outside...)
			got := slices.Clone(b.sim.res.Below)
			for i := range got {
				if w := got[i].Wrote.Main; (w == 0) != (got[i].Expected == "absent") ||
					w > 0 && !strings.HasPrefix(got[i].Expected, fmt.Sprint("mod ", w)) {
					t.Errorf("written at %d: %s", w, got[i].Expected)
				}
				got[i].Expected, got[i].Observed, got[i].Wrote = "", "", dumpdb.Rev{}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("differences %+v, want %+v", b.sim.res.Below, c.want)
			}
		})
	}
}

// TestBelowHidesValues: two values have different digests under the key of the sources, not by a hash that anyone
// can compute.
func TestBelowHidesValues(t *testing.T) {
	texts := map[string]bool{}
	for _, secret := range []string{"one", "another"} {
		b := newBelow(t, place{index: 1, rev: 2}, rec(2, 0, "a", "X")).log(put("a", "1"))
		b.sim.m.Redact = redact.New([]byte(secret))
		b.run()
		b.sim.below.arrive()
		if n := len(b.sim.res.Below); n != 1 {
			t.Fatalf("%d differences", n)
		}
		d := b.sim.res.Below[0]
		texts[d.Expected], texts[d.Observed] = true, true
		for text, value := range map[string]string{d.Expected: "1", d.Observed: "X"} {
			if strings.Contains(text, fmt.Sprintf("%x", apply.SumOf([]byte(value)))) {
				t.Errorf("%q shows the plain hash of its value", text)
			}
		}
	}
	if len(texts) != 4 {
		t.Errorf("with two keys: %q", slices.Sorted(maps.Keys(texts)))
	}
}

// TestBelowUncertain: an entry whose outcome the log alone does not tell makes the keys that it names, and the
// revisions after it, uncertain, and nothing else.
func TestBelowUncertain(t *testing.T) {
	b := newBelow(t, place{index: 4, rev: 5}, rec(2, 0, "a", deep+"1"), rec(4, 0, "c", "1"), rec(5, 0, "d", "X")).
		log(put("a", deep+"1"), txn(valueLess("a"), []dumplog.RequestOp{putOp("b", "1")}, nil), put("c", "1"),
			put("d", "1"))
	b.run()
	b.sim.below.arrive()
	if got := b.sim.res.Below; len(got) != 1 || got[0].Key != "d" {
		t.Errorf("differences %+v, want one in d: b may be there or not, a and c are as the log says", got)
	}
}

// TestBelowRevision: a database whose revision is not the one that the log gives has lost or added an effect that is
// compacted away.
func TestBelowRevision(t *testing.T) {
	b := newBelow(t, place{index: 2, rev: 4}, rec(2, 0, "a", "1"), rec(4, 0, "b", "1")).log(put("a", "1"),
		put("b", "1"))
	b.run()
	b.sim.below.arrive()
	if got := b.sim.res.Below; len(got) != 1 || got[0].Key != "" || got[0].Expected != "revision 3" ||
		got[0].Observed != "revision 4" {
		t.Errorf("differences %+v, want the revision", got)
	}
}

// TestBelowWithoutEffect: below the place an entry without effect makes no revision, and is not judged.
func TestBelowWithoutEffect(t *testing.T) {
	newBelow(t, place{index: 4, rev: 3}, rec(2, 0, "a", "1"), rec(3, 0, "b", "1"), rec(4, 0, "c", "1")).
		log(put("a", "1"), del("none", ""), txn(cmpMod("a", 7), []dumplog.RequestOp{putOp("a", "2")}, nil),
			put("b", "1"), put("c", "1")).
		want("outside-history", "outside-history", "outside-history", "outside-history", "applied")
}

// TestBelowUndecoded: what an entry that does not decode wrote is not known, so the log no longer tells the keys.
func TestBelowUndecoded(t *testing.T) {
	for _, bad := range []int{-1, 0, 1} {
		b := newBelow(t, place{index: 2, rev: 4}, rec(4, 0, "b", "1"), rec(5, 0, "c", "1")).
			log(put("a", "1"), put("b", "1"), put("c", "1"))
		want := []string{"outside-history", "outside-history", "applied"}
		if bad >= 0 {
			b.items[bad].err = errDoubted
			b.items[bad].req = &dumplog.Request{}
		}
		b.want(want...)
		if told := b.sim.res.BelowCount > 0; told != (bad < 0) || b.sim.res.surplus != (bad < 0) {
			t.Errorf("entry %d does not decode: %d differences, more revisions than the log makes: %t", bad+1,
				b.sim.res.BelowCount, b.sim.res.surplus)
		}
	}
}

// TestBelowValues: below the place a value is compared by how it begins, as far as that tells.
func TestBelowValues(t *testing.T) {
	for name, c := range map[string]struct {
		value  string
		result dumplog.CompareResult
		with   string
		sure   bool
		wrote  bool
	}{
		"less":                      {"1", apply.ResultLess, "5", true, true},
		"not less":                  {"7", apply.ResultLess, "5", true, false},
		"greater":                   {"7", apply.ResultGreater, "5", true, true},
		"not greater":               {"1", apply.ResultGreater, "5", true, false},
		"shorter":                   {"5", apply.ResultLess, "50", true, true},
		"empty":                     {"", apply.ResultLess, "5", true, true},
		"greater than nothing":      {"5", apply.ResultGreater, "", true, true},
		"equal is not less":         {"5", apply.ResultLess, "5", true, false},
		"long, decided early":       {"1" + deep, apply.ResultLess, "5", true, true},
		"long, and the other short": {deep + "1", apply.ResultGreater, deep, true, true},
		"long, decided too late":    {deep + "1", apply.ResultLess, deep + "5", false, false},
		"long and equal":            {deep + "1", apply.ResultLess, deep + "1", true, false},
		"full, and the other long":  {deep, apply.ResultLess, deep + "1", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			when := []dumplog.Compare{{Target: apply.TargetValue, Result: c.result, Key: []byte("a"),
				Value: []byte(c.with)}}
			b := newBelow(t, place{index: 9, rev: 9}).log(put("a", c.value))
			b.run()
			p := b.sim.Evaluate(txn(when, []dumplog.RequestOp{putOp("b", "1")}, nil))
			if p.Sure != c.sure || p.Sure && (len(p.Writes) == 1) != c.wrote {
				t.Errorf("sure %t with %d writes, want %t, %t", p.Sure, len(p.Writes), c.sure, c.wrote)
			}
		})
	}
}

// TestBelowIgnoreValue: a put that leaves the value as it is leaves what is known of it.
func TestBelowIgnoreValue(t *testing.T) {
	keep := put("a", "")
	keep.Put.IgnoreValue = true
	b := newBelow(t, place{index: 9, rev: 9}).log(put("a", "1"), keep)
	b.run()
	if k := b.sim.Keys.Get("a"); k == nil || k.Head != "1" || !k.Whole || k.Version != 2 {
		t.Errorf("the key is %+v, want what it held before, in version 2", k)
	}
}

// deep is how values begin that differ further on than the model keeps of them.
var deep = strings.Repeat("v", 64)

// valueLess is a compare of which the model does not know the outcome.
func valueLess(key string) []dumplog.Compare {
	return []dumplog.Compare{{Target: apply.TargetValue, Result: apply.ResultLess, Key: []byte(key),
		Value: []byte(deep + "5")}}
}

func versionIs(key string, n int64) []dumplog.Compare {
	return []dumplog.Compare{{Target: apply.TargetVersion, Result: apply.ResultEqual, Key: []byte(key), Num: n}}
}

func createIs(key string, n int64) []dumplog.Compare {
	return []dumplog.Compare{{Target: apply.TargetCreate, Result: apply.ResultEqual, Key: []byte(key), Num: n}}
}

// TestBelowWhatMayHaveHappened: a key that an entry may have written stays uncertain in what the entry may have
// changed, until a later entry makes it certain again.
func TestBelowWhatMayHaveHappened(t *testing.T) {
	maybe := txn(valueLess("a"), []dumplog.RequestOp{putOp("b", "1")}, nil)
	a := rec(2, 0, "a", deep+"1")
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		rows []row
		want []string
	}{
		"it did not":           {log: []*dumplog.Request{maybe}, rows: []row{a}},
		"it did":               {log: []*dumplog.Request{maybe}, rows: []row{a, rec(3, 0, "b", "1")}},
		"a put, first version": {log: []*dumplog.Request{maybe, put("b", "2")}, rows: []row{a, rec(3, 0, "b", "2")}},
		"a put, second version": {log: []*dumplog.Request{maybe, put("b", "2")},
			rows: []row{a, record3(4, 3, 2, "b", "2")}},
		"a put, another value": {log: []*dumplog.Request{maybe, put("b", "2")},
			rows: []row{a, rec(3, 0, "b", "X")}, want: []string{"b"}},
		"a put, and it is not there": {log: []*dumplog.Request{maybe, put("b", "2")}, rows: []row{a},
			want: []string{"b"}},
		"a put, and it has a lease": {log: []*dumplog.Request{maybe, put("b", "2")},
			rows: []row{a, leased(3, "b", "2", 7)}, want: []string{"b"}},
		"a condition on its version, true": {log: []*dumplog.Request{maybe, put("b", "2"),
			txn(versionIs("b", 2), []dumplog.RequestOp{putOp("c", "1")}, nil)},
			rows: []row{a, record3(4, 3, 2, "b", "2"), rec(5, 0, "c", "1")}},
		"a condition on its version, false": {log: []*dumplog.Request{maybe, put("b", "2"),
			txn(versionIs("b", 2), []dumplog.RequestOp{putOp("c", "1")}, nil)},
			rows: []row{a, rec(3, 0, "b", "2")}},
		"a condition on another version": {log: []*dumplog.Request{maybe,
			txn(versionIs("a", 1), []dumplog.RequestOp{putOp("c", "1")}, nil)}, rows: []row{a}, want: []string{"c"}},
		"a condition on another revision": {log: []*dumplog.Request{maybe,
			txn(cmpMod("a", 2), []dumplog.RequestOp{putOp("c", "1")}, nil)}, rows: []row{a}, want: []string{"c"}},
		"a condition on its revision": {log: []*dumplog.Request{maybe, put("b", "2"),
			txn(cmpMod("b", 3), []dumplog.RequestOp{putOp("c", "1")}, nil)},
			rows: []row{a, rec(3, 0, "b", "2")}},
		"gone, and there again": {log: []*dumplog.Request{maybe, put("b", "2"), del("b", ""), put("b", "3"),
			txn(versionIs("b", 1), []dumplog.RequestOp{putOp("c", "1")}, nil)},
			rows: []row{a, rec(5, 0, "b", "3")}, want: []string{"c"}},
		"deleted, perhaps": {log: []*dumplog.Request{maybe, del("b", "")}, rows: []row{a, rec(3, 0, "b", "1")}},
		"a range with it":  {log: []*dumplog.Request{maybe, del("a", "c")}, rows: []row{a}},
		"what may be deleted": {log: []*dumplog.Request{txn(valueLess("a"), []dumplog.RequestOp{delOp("a", "b")},
			nil)}, rows: nil},
		"what may be deleted, not": {log: []*dumplog.Request{txn(valueLess("a"), []dumplog.RequestOp{delOp("a", "b")},
			nil)}, rows: []row{a}},
		"what cannot be deleted": {log: []*dumplog.Request{txn(valueLess("a"), []dumplog.RequestOp{delOp("b", "c")},
			nil)}, rows: nil, want: []string{"a"}},
		"a key that nobody wrote": {log: []*dumplog.Request{maybe}, rows: []row{a, rec(3, 0, "z", "1")},
			want: []string{"z"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := append([]*dumplog.Request{put("a", deep+"1")}, c.log...)
			b := newBelow(t, place{index: uint64(len(log)), rev: 9}, c.rows...).log(log...)
			b.run()
			b.sim.below.arrive()
			var got []string
			for _, d := range b.sim.res.Below {
				got = append(got, d.Key)
			}
			if !slices.Equal(got, c.want) || b.sim.res.BelowCount != len(c.want) {
				t.Errorf("differences %+v, want %q", b.sim.res.Below, c.want)
			}
		})
	}
}

// TestBelowIsNotCompared: where a part of the records, or the log up to the place, cannot be read, absence tells
// nothing.
func TestBelowIsNotCompared(t *testing.T) {
	bad := rec(3, 0, "b", "1")
	bad.bad = true
	for name, c := range map[string]struct {
		rows []row
		edit func(*sim)
		want int
	}{
		"all read":            {rows: []row{rec(3, 0, "b", "1")}, want: 1},
		"a hole":              {rows: []row{{hole: true}, rec(3, 0, "b", "1")}},
		"a record":            {rows: []row{bad}},
		"a log that ends":     {rows: []row{rec(3, 0, "b", "1")}, edit: func(s *sim) { s.logEnd = 1 }},
		"a log to the place":  {rows: []row{rec(3, 0, "b", "1")}, edit: func(s *sim) { s.logEnd = 2 }, want: 1},
		"a log without start": {rows: []row{rec(3, 0, "b", "1")}, edit: func(s *sim) { s.fromStart = false }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBelow(t, place{index: 2, rev: 3}, c.rows...).log(put("a", deep+"1"), put("b", "1"))
			if c.edit != nil {
				c.edit(b.sim)
			}
			b.run()
			b.sim.below.arrive()
			if got := b.sim.res.BelowCount; got != c.want {
				t.Errorf("differences %+v, want %d", b.sim.res.Below, c.want)
			}
			if s := b.sim; !s.met || s.Revision != 3 || s.Keys.Get("b") == nil || s.res.To != 2 {
				t.Errorf("after the place: met %v, revision %d", s.met, s.Revision)
			}
		})
	}
}

// TestEarly: where the prediction is certain up to the compact revision, the database takes over there, above what is
// compacted every entry is judged.
func TestEarly(t *testing.T) {
	rows := []row{record3(4, 2, 2, "a", "2"), rec(5, 0, "c", "1"), rec(6, 0, "d", "1")}
	history := []*dumplog.Request{put("a", deep+"1"), put("b", "1"),
		txn(nil, []dumplog.RequestOp{putOp("a", "2"), delOp("b", "")}, nil), put("c", "1"), put("d", "1")}
	b := newBelow(t, place{index: 5, rev: 6}, rows...)
	b.sim.LastCompact, b.sim.compacted = 4, 4
	b.log(history...).want("outside-history", "outside-history", "outside-history", "applied", "applied")
	if s := b.sim; s.meet.index != 3 || s.meet.rev != 4 || s.res.BaseIndex != 3 || s.res.BaseRevision != 4 ||
		s.res.BelowCount != 0 {
		t.Errorf("the place is %+v, %+v", s.meet, s.res.Below)
	}
	unsure := slices.Clone(history)
	unsure[1] = txn(valueLess("a"), []dumplog.RequestOp{putOp("b", "1")}, nil)
	b = newBelow(t, place{index: 5, rev: 6}, rows...)
	b.sim.LastCompact, b.sim.compacted = 4, 4
	b.log(unsure...).want("outside-history", "outside-history", "outside-history", "outside-history", "outside-history")
	if b.sim.met || b.sim.meet.index != 5 {
		t.Errorf("the place is %+v, and the revision was not certain", b.sim.meet)
	}
}

// TestLeaseOfAnUncertainRevoke: where a revoke may have been refused, or executed, the lease is neither missed nor too
// many, and what is put on it later is uncertain.
func TestLeaseOfAnUncertainRevoke(t *testing.T) {
	revoked := &item{entry: dumplog.Entry{Index: 5}, req: revoke(7)}
	for name, c := range map[string]struct {
		p      apply.Effect
		repeat bool
		gone   bool
		unsure bool
	}{
		"executed":              {p: apply.Effect{Result: apply.Applied, Sure: true}, gone: true},
		"executed, keys unsure": {p: apply.Effect{Result: apply.Applied}, gone: true},
		"refused":               {p: apply.Effect{Result: apply.Refused, Sure: true}},
		"refused, perhaps":      {p: apply.Effect{Result: apply.Refused}, unsure: true},
		"executed, rights may be others": {p: apply.Effect{Result: apply.Applied, Sure: true}, repeat: true,
			unsure: true},
	} {
		for _, stored := range []bool{true, false} {
			b := newBelow(t, place{index: 10, rev: 10})
			s := b.sim
			s.Leases[7] = &apply.Lease{TTL: 60}
			s.m.DB = &evidence.DB{}
			s.auth.plain = &authPlan{start: 17}
			s.m.DB.Auth.Revision = 17
			if c.repeat {
				s.Auth, s.Version, s.m.DB.Auth.Revision = rooted(), release.Exact(4, 3), 18
			}
			if stored {
				s.m.DB.Leases = []dumpdb.Lease{{ID: 7, TTL: 60}}
			}
			s.below.foreseeRevoke(revoked, c.p)
			l := s.Leases[7]
			if gone, unsure := l == nil, l != nil && l.Unsure; gone != c.gone || unsure != c.unsure {
				t.Errorf("%s: gone %v unsure %v", name, gone, unsure)
			}
			if has := s.HasLease(7); (has == release.Unknown) != c.unsure || has.Excluded() != c.gone {
				t.Errorf("%s: the lease is there for a put: %s", name, has)
			}
			s.leases.finishLeases()
			if want := !c.unsure && stored == c.gone; len(s.res.StateDiffs) > 0 != want {
				t.Errorf("%s, stored %v: %+v", name, stored, s.res.StateDiffs)
			}
		}
	}
}

// TestCertain: a put that always writes has its record at the place, unless a later entry names its key.
func TestCertain(t *testing.T) {
	onLease := func(lease int64) *dumplog.Request {
		r := put("a", deep+"1")
		r.Put.Lease = lease
		return r
	}
	held := func(granted uint64) func(*sim) {
		return func(s *sim) {
			s.m.DB.Leases = []dumpdb.Lease{{ID: 7}}
			s.grantedAt = func(int64) (uint64, bool) { return granted, true }
		}
	}
	later := func(r ...*dumplog.Request) []*dumplog.Request {
		return append([]*dumplog.Request{put("a", deep+"1"), put("c", "1")}, r...)
	}
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		edit func(*sim)
		want []string
	}{
		"puts":                {log: later(), want: []string{"a", "c"}},
		"a delete":            {log: later(del("a", "")), want: []string{"c"}},
		"a delete of another": {log: later(del("b", "")), want: []string{"a", "c"}},
		"a range":             {log: later(del("a", "b")), want: []string{"c"}},
		"a range of all":      {log: later(del("a", "d")), want: nil},
		"a transaction": {log: later(txn(cmpMod("a", 2), []dumplog.RequestOp{putOp("a", "2")}, nil)),
			want: []string{"c"}},
		"its other branch": {log: later(txn(cmpMod("a", 2), nil, []dumplog.RequestOp{delOp("c", "")})),
			want: []string{"a"}},
		"a transaction in it": {log: later(txn(nil, nested(txn(nil, []dumplog.RequestOp{delOp("a", "b")}, nil)),
			nil)), want: []string{"c"}},
		"a put on a lease":      {log: later(onLease(7)), want: []string{"c"}},
		"on one that is held":   {log: later(onLease(7)), edit: held(0), want: []string{"a", "c"}},
		"on one granted before": {log: later(onLease(7)), edit: held(2), want: []string{"a", "c"}},
		"on one granted later":  {log: later(onLease(7)), edit: held(4), want: []string{"c"}},
		"on another":            {log: later(onLease(8)), edit: held(0), want: []string{"c"}},
		"a plain transaction": {log: later(txn(nil, []dumplog.RequestOp{putOp("b", "2"), delOp("c", "")}, nil)),
			want: []string{"a", "b"}},
		"a revoke":               {log: later(revoke(7)), want: []string{"a", "c"}},
		"a put after the delete": {log: later(del("a", ""), put("a", "2")), want: []string{"a", "c"}},
		"an alarm":               {log: later(), edit: func(s *sim) { mayAlarm(s.logView, 1, 9) }},
		"an alarm, then none":    {log: later(), edit: func(s *sim) { mayAlarm(s.logView, 1, 1) }, want: []string{"c"}},
		"no space": {log: later(del("c", ""), put("a", "2")), edit: func(s *sim) { noSpace(s.logView, 3) },
			want: []string{"a"}},
		"an entry that does not decode": {log: later(nil, put("d", "1")), want: []string{"d"}},
		"records not read":              {log: later(), edit: func(s *sim) { s.below.whole = false }},
	} {
		t.Run(name, func(t *testing.T) {
			s := certainSim()
			s.grantedAt = func(int64) (uint64, bool) { return 0, true }
			if c.edit != nil {
				c.edit(s)
			}
			for _, it := range itemsOf(c.log...) {
				if it.req == nil {
					it.req, it.err = &dumplog.Request{}, errDoubted
				}
				s.below.remember(it)
			}
			var got []string
			if s.below.certain != nil {
				s.below.certain.learnAll(s.below.certain.waiting, nil, nil)
				got = slices.DeleteFunc(sortedKeys(s.below.certain.keys),
					func(k string) bool { return s.below.certain.keys[k].gone })
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("certain %q, want %q", got, c.want)
			}
			if s.below.certain != nil {
				s.below.certain.waiting = nil
			}
			if s.below.recall(); len(s.res.Below) != len(c.want) || s.below.certain != nil {
				t.Errorf("nothing of it is there: %+v", s.res.Below)
			}
		})
	}
	s := certainSim()
	for _, it := range itemsOf(put("same", "1"), put("value", "1"), put("lease", "1"), put("absent", "1"),
		put("same", "2")) {
		s.below.remember(it)
	}
	for _, r := range []row{rec(5, 0, "same", "2"), rec(6, 0, "value", "X"), leased(7, "lease", "1", 9),
		rec(8, 0, "other", "1")} {
		absorb(s.Keys, &r.record)
	}
	s.below.recall()
	got := slices.Clone(s.res.Below)
	for i := range got {
		if got[i].Expected == "" || (got[i].Observed == "absent") != (got[i].Key == "absent") {
			t.Errorf("%+v", got[i])
		}
		got[i].Expected, got[i].Observed = "", ""
	}
	if want := []BelowDiff{{Key: "absent", Index: 4}, {Key: "lease", Index: 3, Rev: 7},
		{Key: "value", Index: 2, Rev: 6}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCertainlyGone: what the log deletes, and no later entry puts, is not there at the place.
func TestCertainlyGone(t *testing.T) {
	maybe := txn(cmpMod("x", 2), []dumplog.RequestOp{putOp("b", "9")}, nil)
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		want []BelowDiff
	}{
		"a key":       {log: []*dumplog.Request{del("b", "")}, want: []BelowDiff{{Key: "b", Index: 1, Rev: 6}}},
		"another key": {log: []*dumplog.Request{del("z", "")}},
		"a range":     {log: []*dumplog.Request{del("b", "c")}, want: []BelowDiff{{Key: "b", Index: 1, Rev: 6}}},
		"a range and puts": {log: []*dumplog.Request{del("a", "d"), put("a", "1"), put("c", "1")},
			want: []BelowDiff{{Key: "b", Index: 1, Rev: 6}}},
		"a range, and perhaps a put": {log: []*dumplog.Request{del("b", "c"), maybe}},
		"perhaps a put before": {log: []*dumplog.Request{maybe, del("b", "c")},
			want: []BelowDiff{{Key: "b", Index: 2, Rev: 6}}},
		"perhaps a delete": {log: []*dumplog.Request{txn(cmpMod("x", 2), []dumplog.RequestOp{delOp("b", "")},
			nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := certainSim()
			for _, it := range itemsOf(c.log...) {
				s.below.remember(it)
			}
			for _, r := range []row{rec(5, 0, "a", "1"), rec(6, 0, "b", "1"), rec(7, 0, "c", "1")} {
				absorb(s.Keys, &r.record)
			}
			s.below.recall()
			got := slices.Clone(s.res.Below)
			for i := range got {
				got[i].Expected, got[i].Observed = "", ""
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestBelowRefused: where users and roles are known since the first entry, a refusal on which all releases agree is
// certain below the place too, unless an alarm or a received snapshot may have changed what the server checked.
func TestBelowRefused(t *testing.T) {
	denied := put("b", "1")
	denied.Header = dumplog.Header{Username: "nobody", AuthRevision: 5}
	for name, c := range map[string]struct {
		spoil func(s *sim)
		want  bool
	}{
		"certain":              {func(*sim) {}, true},
		"users unknown":        {func(s *sim) { s.Auth.Known = false }, false},
		"an alarm, perhaps":    {func(s *sim) { s.AlarmsUnsure = true }, false},
		"a received snapshot":  {func(s *sim) { s.m.WAL = jumped(1) }, false},
		"one that comes later": {func(s *sim) { s.m.WAL = jumped(9) }, true},
		"an unknown beginning": {func(s *sim) { s.StateKnown = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBelow(t, place{index: 4, rev: 9}, rec(3, 0, "b", "1")).log(put("a", "1"), denied)
			b.sim.Version = release.AnyOf(4)
			b.sim.Auth = rooted()
			b.sim.Auth.Known, b.sim.Auth.Revision = true, 5
			b.items[0].req.Header = dumplog.Header{Username: apply.Root, AuthRevision: 5}
			b.sim.m.DB = &evidence.DB{}
			b.sim.m.DB.Auth.Revision = 5
			b.sim.auth.plain = planAuth(nil, b.sim.Auth.Clone())
			c.spoil(b.sim)
			b.run()
			if p := b.sim.Keys.Get("b"); (p == nil) != (c.want) {
				t.Errorf("b is %+v in the model, certain that it was refused: %v", p, c.want)
			}
		})
	}
}

func jumped(to uint64) evidence.WAL {
	return evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{Jumps: []dumplog.Jump{{From: to, To: to}}}}
}

// TestPagesAtThePlace: where unreadable pages may hold revisions up to the place at which log and database meet, the
// keys there are not known, and none of them is said to be gone.
func TestPagesAtThePlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  []row
		below int
	}{
		{"all records can be read", []row{record3(2, 2, 1, "a", "1"), rec(5, 0, "c", "1")}, 1},
		{"pages across the place", []row{record3(2, 2, 1, "a", "1"), {hole: true}, rec(5, 0, "c", "1")}, 0},
		{"pages to the end", []row{record3(2, 2, 1, "a", "1"), {hole: true}}, 0},
	} {
		b := newBelow(t, place{index: 2, rev: 3}, c.rows...)
		b.log(put("a", "1"), put("b", "1"), put("z", "1"))
		b.run()
		if !b.sim.met {
			b.sim.below.arrive()
		}
		if got := b.sim.res.BelowCount; got != c.below {
			t.Errorf("%s: %d keys differ, want %d", c.name, got, c.below)
		}
		if known := b.sim.below.whole; known != (c.below > 0) {
			t.Errorf("%s: the keys are known: %v", c.name, known)
		}
	}
}

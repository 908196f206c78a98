package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestCounted: between live records below the compact revision the revisions are counted. As many as there are entries
// that must write leave no effect to the others, as many as there are entries leave none out.
func TestCounted(t *testing.T) {
	guarded := func(key, value string) *dumplog.Request {
		return txn(cmpMod("x", 2), []dumplog.RequestOp{putOp(key, value)}, nil)
	}
	log := func(between ...*dumplog.Request) []*dumplog.Request {
		return slices.Concat([]*dumplog.Request{put("a", "1"), put("b", "1")}, between,
			[]*dumplog.Request{put("c", "1")})
	}
	kept := func(key string) *dumplog.Request {
		r := put(key, "")
		r.Put.IgnoreValue = true
		return r
	}
	have := func(rows ...row) []row { return append([]row{rec(5, 0, "a", "1")}, rows...) }
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		have []row
		at   int64 // the revision of the place
		want []string
	}{
		"no revision for the delete": {log: log(txn(cmpMod("x", 2), []dumplog.RequestOp{delOp("b", "")}, nil)),
			have: have(rec(7, 0, "c", "1")), at: 7, want: []string{"b"}},
		"a revision for the delete": {log: log(txn(cmpMod("x", 2), []dumplog.RequestOp{delOp("b", "")}, nil)),
			have: have(rec(8, 0, "c", "1")), at: 8},
		"a guarded put was executed": {log: log(guarded("b", "2")),
			have: have(rec(6, 0, "b", "1"), rec(8, 0, "c", "1")), at: 8, want: []string{"b"}},
		"a guarded put was not executed": {log: log(guarded("b", "2")),
			have: have(rec(6, 0, "b", "1"), rec(7, 0, "c", "1")), at: 7},
		"one of two guarded puts was executed": {log: log(guarded("b", "2"), guarded("b", "3")),
			have: have(rec(8, 0, "c", "1")), at: 8},
		"up to the place": {log: append(log(), guarded("c", "2")), have: have(rec(6, 0, "b", "1"), rec(7, 0, "c", "1")),
			at: 8, want: []string{"c"}},
		"both branches write": {log: log(txn(cmpMod("x", 2), []dumplog.RequestOp{delOp("b", "")},
			[]dumplog.RequestOp{putOp("b", "3")})), have: have(rec(8, 0, "c", "1")), at: 8},
		"records in another order than the log": {log: log(guarded("b", "2")),
			have: []row{rec(9, 0, "a", "1"), rec(7, 0, "c", "1")}, at: 9},
		"more revisions than entries": {log: log(), have: have(rec(9, 0, "c", "1")), at: 9, want: []string{"b"}},
		"content that two entries can have written": {log: log(put("c", "1"), guarded("b", "2"), guarded("b", "3")),
			have: have(rec(9, 0, "c", "1")), at: 9},
		"a put that keeps a value": {log: log(kept("b"), guarded("d", "2")),
			have: have(rec(7, 0, "b", "1"), rec(9, 0, "c", "1")), at: 9, want: []string{"d"}},
		"a guarded put of an older content": {log: slices.Insert(log(txn(cmpMod("x", 2), []dumplog.RequestOp{delOp("b", "")},
			nil)), 1, guarded("z", "1")), have: []row{rec(3, 0, "z", "1"), rec(5, 0, "a", "1"), rec(7, 0, "c", "1")}, at: 7,
			want: []string{"b"}},
		"a revoke of its lease": {log: log(revoke(7)), have: have(rec(6, 0, "b", "1"), rec(7, 0, "c", "1")), at: 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := certainSim()
			s.meet, s.grantedAt = place{rev: c.at}, func(int64) (uint64, bool) { return 0, true }
			for _, it := range itemsOf(c.log...) {
				s.below.remember(it)
			}
			for _, r := range c.have {
				absorb(s.Keys, &r.record)
			}
			s.below.lastWriter = nil
			s.below.recall()
			var got []string
			for _, d := range s.res.Below {
				got = append(got, d.Key)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("contradicted: %q, want %q: %+v", got, c.want, s.res.Below)
			}
		})
	}
}

// TestCountedIsBounded: of entries before the place only the last ones are kept to be counted. What those before them
// say for certain is not lost.
func TestCountedIsBounded(t *testing.T) {
	s := certainSim()
	s.grantedAt = func(int64) (uint64, bool) { return 0, true }
	for i := range uint64(2 * maxCounted) {
		s.below.remember(itemAt(i+1, put(fmt.Sprint("k", i), "1")))
	}
	waiting := s.below.certain.waiting
	if len(waiting) != maxCounted || waiting[0].index != maxCounted+1 {
		t.Errorf("%d entries from %d on", len(waiting), waiting[0].index)
	}
	s.below.lastWriter = nil
	if s.below.recall(); s.res.BelowCount != 2*maxCounted {
		t.Errorf("%d of %d keys are missing", s.res.BelowCount, 2*maxCounted)
	}
}

// TestKeep: the operations of an entry are known where only one of its branches can write. Those of one that writes in
// every state of the key space are certain.
func TestKeep(t *testing.T) {
	a, b, read := putOp("a", "1"), putOp("b", "1"), dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("r")}}
	guarded := func(success, failure []dumplog.RequestOp) *dumplog.Request {
		return txn(cmpMod("x", 2), success, failure)
	}
	onLease := put("a", "1")
	onLease.Put.Lease = 9
	ops := func(all ...dumplog.RequestOp) []dumplog.RequestOp { return all }
	inner := nested(txn(nil, ops(b), nil))
	for name, c := range map[string]struct {
		req                 *dumplog.Request
		ops, all            []string
		known, sure, writes bool
		revoke              int64
	}{
		"a put": {req: put("a", "1"), ops: []string{"a"}, all: []string{"a"}, known: true, sure: true,
			writes: true},
		"a delete":          {req: del("a", ""), ops: []string{"a"}, all: []string{"a"}, known: true, sure: true},
		"a put on no lease": {req: onLease, ops: []string{"a"}, all: []string{"a"}, known: true},
		"a revoke":          {req: revoke(7), revoke: 7},
		"if it succeeds":    {req: guarded(ops(a), ops(read)), ops: []string{"a"}, all: []string{"a"}, known: true},
		"if it fails":       {req: guarded(ops(read), ops(b)), ops: []string{"b"}, all: []string{"b"}, known: true},
		"in both branches":  {req: guarded(ops(a), ops(b)), all: []string{"a", "b"}},
		"with another in it": {req: guarded(append(ops(a), inner...), nil), ops: []string{"a"},
			all: []string{"a", "b"}},
	} {
		s := certainSim()
		s.grantedAt = func(int64) (uint64, bool) { return 0, true }
		k := s.below.keep(itemAt(5, c.req))
		keys := func(ops []keptOp) (out []string) {
			for _, op := range ops {
				out = append(out, string(op.key))
			}
			return out
		}
		if got := keys(k.ops); !slices.Equal(got, c.ops) || k.known != c.known {
			t.Errorf("%s: %q, known %t, want %q, %t", name, got, k.known, c.ops, c.known)
		}
		if got := keys(k.all); !slices.Equal(got, c.all) || k.index != 5 || k.sure != c.sure ||
			k.writes != c.writes || k.revoke != c.revoke {
			t.Errorf("%s: all are %q, want %q: %+v", name, got, c.all, k)
		}
	}
}

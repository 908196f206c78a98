package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAlarmsAt: the alarms after an entry, that entry included.
func TestAlarmsAt(t *testing.T) {
	k, other := apply.Alarm{Member: 1, Type: 1}, apply.Alarm{Member: 2, Type: 1}
	a := &alarmLog{changes: []alarmChange{{index: 10, alarm: k, on: true}, {index: 20, alarm: k}},
		always: []apply.Alarm{other}}
	for index, want := range map[uint64][2]int{9: {1, 1}, 10: {2, 0}, 19: {2, 0}, 20: {1, 0}} {
		on, open := a.at(index)
		if len(on) != want[0] || len(open) != want[1] {
			t.Errorf("after %d: %v, %v", index, on, open)
		}
	}
	a.fromStart = true
	if on, open := a.at(9); len(on) != 1 || len(open) != 0 {
		t.Errorf("with a log from the start: %v, %v", on, open)
	}
}

// TestStaleRights: releases that kept their permissions over a received snapshot use those from before it, until auth
// changes.
func TestStaleRights(t *testing.T) {
	ri := newBench(t, 4, -1).sim.rights
	ri.Auth = rooted()
	ri.skipped = []gap{{10, 12}}
	at := func(index uint64, r *dumplog.Request) { ri.rememberRights(itemAt(index, r)) }
	if at(9, put("k", "v")); ri.stale != nil {
		t.Error("before the snapshot")
	}
	if at(10, put("k", "v")); ri.stale == nil || ri.staleFrom != 0 {
		t.Error("the rights are not kept at the first entry that the snapshot replaced")
	}
	before := ri.stale
	if at(12, put("k", "v")); ri.stale != before || ri.staleFrom != 0 {
		t.Error("other rights are kept within the snapshot")
	}
	if at(13, put("k", "v")); ri.staleFrom != 13 || ri.stale != before {
		t.Errorf("after the snapshot: from %d", ri.staleFrom)
	}
	ri.Auth = rooted()
	ri.Auth.Users["app"] = &apply.User{Roles: []string{apply.Root}} // as the snapshot has it
	by := func(user string, rev uint64) *dumplog.Request {
		r := put("k", "v")
		r.Header = dumplog.Header{Username: user, AuthRevision: rev}
		return r
	}
	if !ri.staleRefuses(by("app", 1)) || ri.staleRefuses(by(apply.Root, 1)) || ri.staleRefuses(by("app", 0)) ||
		ri.Auth.Users["app"] == nil {
		t.Error("the rights from before the snapshot refuse only a user that they do not have")
	}
	if ri.Auth.Known = false; ri.staleRefuses(by("app", 1)) {
		t.Error("refused although users are not known")
	}
	ri.Auth.Known, ri.staleFrom = true, 0
	if ri.staleRefuses(by("app", 1)) {
		t.Error("refused within the snapshot")
	}
	ri.staleFrom = 13
	if at(14, authOf(dumplog.KindAuthUserGet, "u", "")); ri.stale == nil {
		t.Error("a read of users renews the rights")
	}
	if at(15, authOf(dumplog.KindAuthRoleAdd, "", "r")); ri.stale != nil || ri.staleFrom != 0 {
		t.Error("a change of auth does not renew the rights")
	}
}

// TestEatIsBounded: past the bounds of steps and of depth anything is possible.
func TestEatIsBounded(t *testing.T) {
	no := func([]record) bool { return false }
	for _, c := range []struct {
		steps, depth int
		want         bool
	}{{0, 0, true}, {1, 0, false}, {1, apply.MaxTxnDepth, false}, {1, apply.MaxTxnDepth + 1, true}} {
		if got := (&eater{steps: c.steps}).eat(nil, nil, c.depth, no); got != c.want {
			t.Errorf("%d steps left at depth %d: %t", c.steps, c.depth, got)
		}
	}
}

// TestNames: a request names the first record's key by a put of it or a delete over it, in any branch.
func TestNames(t *testing.T) {
	bad := groupOf(rec(5, 0, "x", "1"))
	bad.records[0].bad = true
	put5, tomb5 := groupOf(rec(5, 0, "b", "1")), groupOf(tomb(5, 0, "b"))
	for name, c := range map[string]struct {
		r    *dumplog.Request
		g    *group
		want bool
	}{
		"a put":               {put("b", "other"), put5, true},
		"a put of another":    {put("a", "1"), put5, false},
		"a put, a tombstone":  {put("b", "1"), tomb5, false},
		"a delete":            {del("b", ""), tomb5, true},
		"a delete of another": {del("a", ""), tomb5, false},
		"a range over it":     {del("a", "c"), tomb5, true},
		"a range before it":   {del("a", "b"), tomb5, false},
		"a delete, a put":     {del("b", ""), put5, false},
		"the other branch":    {txn(cmpMod("a", 2), nil, []dumplog.RequestOp{putOp("b", "2")}), put5, true},
		"neither branch":      {txn(cmpMod("b", 2), []dumplog.RequestOp{putOp("a", "2")}, nil), put5, false},
		"a record of any key": {put("a", "1"), bad, true},
		"a revoke names none": {revoke(7), tomb5, false},
	} {
		if got := names(c.r, c.g); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestPartOfWrites: records that are the first of a transaction's, or some of them, each at its place.
func TestPartOfWrites(t *testing.T) {
	w := func(key string, del bool) apply.Write {
		return apply.Write{Key: key, Delete: del, Sum: apply.SumOf([]byte("1"))}
	}
	ws := []apply.Write{w("a", false), w("b", true), w("c", false)}
	for name, c := range map[string]struct {
		g                    *group
		first, part, matches bool
		names, keys          bool
	}{
		"all": {g: groupOf(rec(5, 0, "a", "1"), tomb(5, 1, "b"), rec(5, 2, "c", "1")), part: true,
			matches: true, names: true, keys: true},
		"the first":       {g: groupOf(rec(5, 0, "a", "1")), first: true, part: true},
		"the first two":   {g: groupOf(rec(5, 0, "a", "1"), tomb(5, 1, "b")), first: true, part: true},
		"the last":        {g: groupOf(rec(5, 2, "c", "1")), part: true},
		"at other places": {g: groupOf(rec(5, 1, "a", "1"))},
		"another value":   {g: groupOf(rec(5, 0, "a", "2")), part: true},
		"all, another value": {g: groupOf(rec(5, 0, "a", "2"), tomb(5, 1, "b"), rec(5, 2, "c", "1")), part: true,
			names: true, keys: true},
		"all, a put for a delete": {g: groupOf(rec(5, 0, "a", "1"), rec(5, 1, "b", "1"), rec(5, 2, "c", "1")),
			names: true},
		"all, another key": {g: groupOf(rec(5, 0, "a", "1"), tomb(5, 1, "x"), rec(5, 2, "c", "1"))},
		"all, another lease": {g: groupOf(leased(5, "a", "1", 7), tomb(5, 1, "b"), rec(5, 2, "c", "1")),
			part: true, names: true, keys: true},
		"all, one place off": {g: groupOf(rec(5, 1, "a", "1"), tomb(5, 2, "b"), rec(5, 3, "c", "1")),
			names: true, keys: true},
		"one more": {g: groupOf(rec(5, 3, "d", "1"))},
	} {
		if got := firstFew(ws, c.g); got != c.first {
			t.Errorf("%s: the first few %t", name, got)
		}
		if got := partOf(ws, c.g); got != c.part {
			t.Errorf("%s: a part %t", name, got)
		}
		if got := matches(ws, c.g); got != c.matches {
			t.Errorf("%s: matches %t", name, got)
		}
		if n, k := sameNames(ws, c.g), sameKeys(ws, c.g); n != c.names || k != c.keys {
			t.Errorf("%s: same names %t, same keys %t", name, n, k)
		}
	}
	torn := groupOf(rec(5, 0, "a", "1"), tomb(5, 1, "b"), rec(5, 2, "c", "1"))
	torn.records[2].bad = true
	if matches(ws, torn) {
		t.Error("a record that does not decode matches")
	}
}

// TestInPlace: of records in the place of an entry's own the model takes what the entry wrote, where the records are
// some of those at their places or none that it could write; else it takes the records.
func TestInPlace(t *testing.T) {
	sum := func(v string) uint64 { return apply.SumOf([]byte(v)) }
	write := func(key, v string) apply.Write { return apply.Write{Key: key, Sum: sum(v)} }
	choice := txn(cmpMod("x", 2), []dumplog.RequestOp{putOp("a", "1")}, []dumplog.RequestOp{putOp("b", "1")})
	for name, c := range map[string]struct {
		r    *dumplog.Request
		p    apply.Effect
		g    *group
		key  string // with this value
		want uint64
	}{
		"another value": {put("a", "1"), apply.Effect{Sure: true, Writes: []apply.Write{write("a", "1")}},
			groupOf(rec(2, 0, "a", "9")), "a", sum("1")},
		"another key": {put("a", "1"), apply.Effect{Sure: true, Writes: []apply.Write{write("a", "1")}},
			groupOf(rec(2, 0, "z", "9")), "a", sum("1")},
		"the other branch": {choice, apply.Effect{Sure: true, Writes: []apply.Write{write("a", "1")}}, groupOf(rec(2,
			0, "b", "1")), "b", sum("1")},
		"not sure": {put("a", "1"), apply.Effect{Writes: []apply.Write{write("a", "1")}}, groupOf(rec(2, 0,
			"a", "9")), "a", sum("9")},
		"sure of no effect": {put("a", "1"), apply.Effect{Sure: true}, groupOf(rec(2, 0, "a", "9")), "a", sum("9")},
	} {
		b := newBench(t, 6, -1, rec(2, 0, "a", "1"))
		b.sim.cur.peek(0)
		o := b.sim.matcher.inPlace(itemAt(5, c.r), c.p, c.g)
		k := b.sim.Keys.Get(c.key)
		if o.State != Contradicted || o.Rev != 2 || b.sim.Revision != 2 || k == nil || k.Sum != c.want || k.Mod != 2 {
			t.Errorf("%s: %+v, %+v", name, o, k)
		}
		if b.sim.cur.peek(0) != nil {
			t.Errorf("%s: the records are still there", name)
		}
	}
}

// TestStateBefore: what a record shows of the version and the creation that its key had before.
func TestStateBefore(t *testing.T) {
	torn := groupOf(record3(9, 4, 3, "a", "1"))
	torn.records[0].bad = true
	g := groupOf(record3(9, 4, 3, "a", "1"))
	for name, c := range map[string]struct {
		target     dumplog.CompareTarget
		num        int64
		g          *group
		told, fits bool
	}{
		"the version":        {apply.TargetVersion, 2, g, true, true},
		"its own version":    {apply.TargetVersion, 3, g, true, false},
		"the creation":       {apply.TargetCreate, 4, g, true, true},
		"another creation":   {apply.TargetCreate, 3, g, true, false},
		"no creation":        {apply.TargetCreate, 0, g, true, false},
		"no creation, a new": {apply.TargetCreate, 0, groupOf(rec(9, 0, "a", "1")), true, true},
		"no version, a new":  {apply.TargetVersion, 0, groupOf(rec(9, 0, "a", "1")), true, true},
		"a value":            {apply.TargetValue, 2, g, false, false},
		"another key":        {apply.TargetVersion, 2, groupOf(record3(9, 4, 3, "b", "1")), false, false},
		"a tombstone":        {apply.TargetVersion, 2, groupOf(tomb(9, 0, "a")), false, false},
		"a torn record":      {apply.TargetVersion, 2, torn, false, false},
	} {
		told, fits := stateBefore(&dumplog.Compare{Target: c.target, Key: []byte("a"), Num: c.num}, c.g)
		if told != c.told || fits != c.fits {
			t.Errorf("%s: %t, %t", name, told, fits)
		}
	}
}

// TestTelling: an entry that fits its records by a value, or by the state that its key had, shows more than a key.
func TestTelling(t *testing.T) {
	ops := []dumplog.RequestOp{putOp("a", "1")}
	is := func(target dumplog.CompareTarget, result dumplog.CompareResult, n int64) *dumplog.Request {
		return txn([]dumplog.Compare{{Target: target, Result: result, Key: []byte("a"), Num: n}}, ops, nil)
	}
	ranged := is(apply.TargetMod, apply.ResultEqual, 6)
	ranged.Txn.Compare[0].RangeEnd = []byte("c")
	kept := putOp("a", "")
	kept.Put.IgnoreValue = true
	g, fresh := groupOf(record3(9, 4, 3, "a", "1")), groupOf(rec(9, 0, "a", "1"))
	for name, c := range map[string]struct {
		r       *dumplog.Request
		g       *group
		created bool
		want    bool
	}{
		"a put":                  {put("a", "1"), g, false, true},
		"a delete":               {del("a", ""), groupOf(tomb(9, 0, "a")), false, false},
		"puts without condition": {txn(nil, ops, nil), g, false, true},
		"with a delete": {txn(nil, ops, nil), groupOf(rec(9, 0, "a", "1"), tomb(9, 1, "b")), false,
			false},
		"a put that keeps the value": {txn(nil, []dumplog.RequestOp{kept}, nil), g, false, false},
		"the same, with a nested transaction": {txn(nil, append(nested(txn(nil, []dumplog.RequestOp{putOp("b", "1")},
			nil)), kept), nil), g, false, false},
		"the same, and the value in a branch that is never executed": {txn(nil, []dumplog.RequestOp{kept}, ops), g, false,
			false},
		"a nested put":              {txn(nil, nested(txn(nil, ops, nil)), nil), g, false, true},
		"the revision that it had":  {is(apply.TargetMod, apply.ResultEqual, 6), g, false, true},
		"another revision":          {is(apply.TargetMod, apply.ResultEqual, 7), g, false, false},
		"a revision without record": {is(apply.TargetMod, apply.ResultEqual, 8), g, false, false},
		"not that revision":         {is(apply.TargetMod, apply.ResultNotEqual, 6), g, false, false},
		"of a range":                {ranged, g, false, false},
		"a compacted revision":      {is(apply.TargetMod, apply.ResultEqual, 5), g, false, true},
		"a compacted one, a first":  {is(apply.TargetMod, apply.ResultEqual, 5), fresh, false, false},
		"the version that it had":   {is(apply.TargetVersion, apply.ResultEqual, 2), g, false, true},
		"another version":           {is(apply.TargetVersion, apply.ResultEqual, 3), g, false, false},
		"the version of another key": {is(apply.TargetVersion, apply.ResultEqual, 2), groupOf(record3(9, 4, 3, "b",
			"1")), false, false},
		"a new key":                     {is(apply.TargetMod, apply.ResultEqual, 0), fresh, true, true},
		"a new key, which tells little": {is(apply.TargetMod, apply.ResultEqual, 0), fresh, false, false},
		"a key that is not new":         {is(apply.TargetMod, apply.ResultEqual, 0), g, true, false},
		"a new key by its version":      {is(apply.TargetVersion, apply.ResultEqual, 0), fresh, true, true},
	} {
		lv := &logView{compacted: 5}
		b := &backwards{s: lv, groups: []*group{groupOf(record3(6, 4, 2, "a", "0")), groupOf(rec(7, 0, "b", "0")), c.g}}
		if got := b.telling(c.r, c.g, c.created); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestBranches: a transaction without a condition has no other branch, one whose compare holds for no key only that.
func TestBranches(t *testing.T) {
	a, b := []dumplog.RequestOp{putOp("a", "1")}, []dumplog.RequestOp{putOp("b", "1")}
	never := []dumplog.Compare{{Target: apply.TargetVersion, Result: apply.ResultLess, Key: []byte("a")}}
	for name, c := range map[string]struct {
		compare        []dumplog.Compare
		first, another bool
	}{
		"no condition":            {nil, true, false},
		"a condition":             {cmpMod("a", 4), true, true},
		"one that is never given": {never, false, true},
	} {
		for nest, r := range map[string]*dumplog.Request{"": txn(c.compare, a, b),
			", nested": txn(nil, nested(txn(c.compare, a, b)), nil)} {
			first, another := couldWrite(r, groupOf(rec(5, 0, "a", "1"))), couldWrite(r, groupOf(rec(5, 0, "b", "1")))
			if first != c.first || another != c.another || !mayWrite(r) {
				t.Errorf("%s%s: %t, %t", name, nest, first, another)
			}
		}
	}
}

// TestEatPut: a put fits a record of its key, value and lease; one that keeps the value or the lease only a record of
// a key that was there before.
func TestEatPut(t *testing.T) {
	with := func(change func(p *dumplog.PutRequest)) *dumplog.PutRequest {
		p := put("a", "1").Put
		change(p)
		return p
	}
	first, second := rec(5, 0, "a", "1").record, record3(5, 4, 2, "a", "1").record
	withLease := leased(5, "a", "1", 7).record
	withLease.version = 2
	for name, c := range map[string]struct {
		p    *dumplog.PutRequest
		r    record
		want bool
	}{
		"the same":      {put("a", "1").Put, first, true},
		"another value": {put("a", "2").Put, first, false},
		"another key":   {put("b", "1").Put, first, false},
		"a tombstone":   {put("a", "1").Put, tomb(5, 0, "a").record, false},
		"another lease": {put("a", "1").Put, withLease, false},
		"its lease":     {with(func(p *dumplog.PutRequest) { p.Lease = 7 }), withLease, true},
		"any value": {with(func(p *dumplog.PutRequest) { p.Value, p.IgnoreValue = nil, true }),
			second, true},
		"any value, a first version": {with(func(p *dumplog.PutRequest) { p.Value, p.IgnoreValue = nil, true }),
			first, false},
		"any value, another lease": {with(func(p *dumplog.PutRequest) { p.Value, p.IgnoreValue = nil, true }),
			withLease, false},
		"any lease":                  {with(func(p *dumplog.PutRequest) { p.IgnoreLease = true }), withLease, true},
		"any lease, a first version": {with(func(p *dumplog.PutRequest) { p.IgnoreLease = true }), first, false},
		"any lease, another value": {with(func(p *dumplog.PutRequest) { p.Value, p.IgnoreLease = nil, true }),
			withLease, false},
	} {
		rest, ok := eatPut(c.p, []record{c.r, first})
		if ok != c.want || len(rest) != 2 && !ok || ok && len(rest) != 1 {
			t.Errorf("%s: %t, %d left", name, ok, len(rest))
		}
	}
	if rest, ok := eatPut(put("a", "1").Put, nil); ok || len(rest) > 0 {
		t.Error("a put fits no record")
	}
	if rest := eatDelete(del("a", "c").DeleteRange, []record{tomb(5, 0, "a").record, tomb(5, 1, "b").record,
		tomb(5, 2, "c").record}); len(rest) != 1 {
		t.Errorf("%d left of a range", len(rest))
	}
	sigs := map[uint64]bool{}
	for _, g := range []*group{groupOf(rec(5, 0, "a", "1")), groupOf(rec(5, 0, "a", "2")), groupOf(rec(5, 0, "b", "1")),
		groupOf(tomb(5, 0, "a")), groupOf(leased(5, "a", "1", 7)), groupOf(rec(5, 0, "a", "1"), rec(5, 1, "b", "1"))} {
		sigs[g.sig()] = true
	}
	if len(sigs) != 6 || sigs[0] || groupOf(rec(5, 0, "a", "1")).sig() != groupOf(record3(9, 4, 3, "a", "1")).sig() {
		t.Errorf("%d signatures of six effects", len(sigs))
	}
}

// TestMisplaced: a log that leads to another revision than the database has at the place contradicts the place if its
// revision is below the compact one.
func TestMisplaced(t *testing.T) {
	for revision, want := range map[int64]bool{4: true, 5: false, 6: false} {
		s := newBench(t, 6, 5).sim
		s.Revision, s.meet = revision, place{index: 9, rev: 7}
		s.below.compareBelow(apply.NewKeys())
		if s.res.misplaced != want || s.res.BelowCount != 1 || s.res.Below[0].Index != 9 {
			t.Errorf("revision %d: %t, %+v", revision, s.res.misplaced, s.res.Below)
		}
	}
	s := newBench(t, 6, 5).sim
	s.Revision, s.meet = 7, place{index: 9, rev: 7}
	if s.below.compareBelow(apply.NewKeys()); s.res.misplaced || s.res.BelowCount > 0 {
		t.Errorf("the revision of the place: %+v", s.res)
	}
}

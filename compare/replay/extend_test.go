package replay

import (
	"iter"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestWalk: a place moves down the log over entries that fit their records, to before one that fits by more than a key.
func TestWalk(t *testing.T) {
	a := func(value string) []dumplog.RequestOp { return []dumplog.RequestOp{putOp("a", value)} }
	full := []*group{groupOf(rec(6, 0, "a", "1")), groupOf(rec(7, 0, "b", "1")), groupOf(rec(8, 0, "c", "1")),
		groupOf(rec(9, 0, "d", "1"))}
	holed := []*group{full[0], full[1], {main: 8, records: full[2].records, hole: true}, full[3]}
	changed := func(n int, g *group) []*group {
		out := append([]*group{}, full...)
		out[n] = g
		return out
	}
	guard := func(key string, n int64, value string) *dumplog.Request {
		return txn(cmpMod(key, n), []dumplog.RequestOp{putOp(key, value)}, nil)
	}
	leasedPut := func(key string, lease int64) *dumplog.Request {
		r := put(key, "1")
		r.Put.Lease = lease
		return r
	}
	deleteIf := func(key string, mod int64) *dumplog.Request {
		return txn(cmpMod(key, mod), []dumplog.RequestOp{delOp(key, "")}, nil)
	}
	all := []*dumplog.Request{put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")}
	for name, c := range map[string]struct {
		log    []*dumplog.Request
		groups []*group
		alarm  bool
		// floor is the compact revision, index and rev are where the place comes to, from the last index and revision
		// 9.
		floor, rev int64
		index      uint64
	}{
		"all":                          {log: all, groups: full, floor: 5, index: 0, rev: 5},
		"down to the compact revision": {log: all, groups: full, floor: 7, index: 2, rev: 7},
		"an altered record": {log: all, groups: changed(2, groupOf(rec(8, 0, "c", "X"))), floor: 5, index: 0,
			rev: 5},
		"an altered record at the end": {log: all, groups: changed(3, groupOf(rec(9, 0, "d", "X"))), floor: 5, index: 0,
			rev: 5},
		"an altered record, and it is not known that puts write": {log: all,
			groups: changed(2, groupOf(rec(8, 0, "c", "X"))), alarm: true, floor: 5, index: 0, rev: 5},
		"a revision that no entry wrote": {log: []*dumplog.Request{all[0], all[1], all[3]},
			groups: full, floor: 5, index: 0, rev: 5},
		"more than two that no entry wrote": {log: []*dumplog.Request{put("z", "1"), all[3]},
			groups: append([]*group{groupOf(rec(5, 0, "z", "1"))}, full...),
			floor:  4, index: 1, rev: 8},
		"a record that cannot be read": {log: all, groups: holed, floor: 5, index: 0, rev: 5},
		"entries without effect": {log: []*dumplog.Request{all[0], del("none", ""), all[1], del("none", ""),
			all[2], all[3], del("none", "")}, groups: full, floor: 5, index: 0, rev: 5},
		"a delete is not told by its key": {log: []*dumplog.Request{del("a", ""), all[1], all[2], all[3]},
			groups: changed(0, groupOf(tomb(6, 0, "a"))), floor: 5, index: 1, rev: 6},
		"a delete between": {log: []*dumplog.Request{all[0], del("b", ""), all[2], all[3]},
			groups: changed(1, groupOf(tomb(7, 0, "b"))), floor: 5, index: 0, rev: 5},
		"a delete is not looked for below": {log: []*dumplog.Request{put("z", "1"), del("b", ""), all[3]},
			groups: append([]*group{groupOf(rec(4, 0, "z", "1"))}, changed(1, groupOf(tomb(7, 0, "b")))...),
			alarm:  true, floor: 3, index: 2, rev: 8},
		"deletes only": {log: []*dumplog.Request{del("a", ""), del("b", "")},
			groups: []*group{groupOf(tomb(8, 0, "a")), groupOf(tomb(9, 0, "b"))}, floor: 7, index: 2, rev: 9},
		"a transaction without condition": {log: []*dumplog.Request{txn(nil, a("1"), nil)},
			groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 0, rev: 8},
		"deletes in one": {log: []*dumplog.Request{txn(nil, []dumplog.RequestOp{delOp("a", "")},
			nil)}, groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 1, rev: 9},
		"a guard on a record that is there": {log: []*dumplog.Request{guard("a", 8, "2")},
			groups: []*group{groupOf(rec(8, 0, "a", "1")), groupOf(record3(9, 8, 2, "a", "2"))}, floor: 7, index: 0,
			rev: 8},
		"a guard on a record of another key": {log: []*dumplog.Request{guard("a", 8, "2")},
			groups: []*group{groupOf(rec(8, 0, "b", "1")), groupOf(record3(9, 5, 2, "a", "2"))}, floor: 7, index: 1,
			rev: 9},
		"a guard on a tombstone": {log: []*dumplog.Request{guard("a", 8, "2")},
			groups: []*group{groupOf(tomb(8, 0, "a")), groupOf(rec(9, 0, "a", "2"))}, floor: 7, index: 1, rev: 9},
		"a guard on what is compacted": {log: []*dumplog.Request{guard("a", 8, "2")},
			groups: []*group{groupOf(record3(9, 8, 2, "a", "2"))}, floor: 8, index: 0, rev: 8},
		"a guard on what was not there": {log: []*dumplog.Request{guard("a", 8, "2")},
			groups: []*group{groupOf(rec(9, 0, "a", "2"))}, floor: 8, index: 1, rev: 9},
		"a guard on a key that is new": {log: []*dumplog.Request{guard("a", 0, "1")},
			groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 0, rev: 8},
		"a guard on a key that was there": {log: []*dumplog.Request{guard("a", 0, "1")},
			groups: []*group{groupOf(record3(9, 5, 2, "a", "1"))}, floor: 8, index: 1, rev: 9},
		"a guard on a key that it deletes": {log: []*dumplog.Request{txn(cmpMod("a", 8),
			[]dumplog.RequestOp{delOp("a", "")}, nil)}, groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 0,
			rev: 8},
		"a guard on another key, new": {log: []*dumplog.Request{txn(cmpMod("x", 0), a("1"), nil)},
			groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 1, rev: 9},
		"a guard on another key that is gone": {log: []*dumplog.Request{txn(cmpMod("x", 0),
			[]dumplog.RequestOp{delOp("x", "")}, nil)}, groups: []*group{groupOf(tomb(9, 0, "x"))}, floor: 8, index: 1,
			rev: 9},
		"a guard on the version": {log: []*dumplog.Request{txn(versionIs("a", 2), a("1"), nil)},
			groups: []*group{groupOf(record3(9, 5, 3, "a", "1"))}, floor: 8, index: 0, rev: 8},
		"a guard on another version": {log: []*dumplog.Request{txn(versionIs("a", 3), a("1"), nil)},
			groups: []*group{groupOf(record3(9, 5, 3, "a", "1"))}, floor: 8, index: 1, rev: 9},
		"a guard on the version of what it deletes": {log: []*dumplog.Request{txn(versionIs("a", 2),
			[]dumplog.RequestOp{delOp("a", "")}, nil)}, groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 1,
			rev: 9},
		"two that put the same, the revision before is compacted": {log: []*dumplog.Request{txn(nil, a("1"), nil),
			txn(cmpMod("x", 3), a("1"), nil)}, groups: []*group{groupOf(record3(9, 5, 3, "a", "1"))}, floor: 8, index: 2,
			rev: 9},
		"two that put the same, the key is new": {log: []*dumplog.Request{txn(nil, a("1"), nil),
			txn(cmpMod("x", 3), a("1"), nil)}, groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 0, rev: 8},
		"two that put the same, the revision before is another's": {log: []*dumplog.Request{txn(nil, a("1"), nil),
			txn(cmpMod("x", 3), a("1"), nil)}, groups: []*group{groupOf(rec(8, 0, "b", "1")),
			groupOf(record3(9, 5, 3, "a", "1"))}, floor: 7, index: 0, rev: 8},
		"a put that keeps the value, and a record of its key below": {log: []*dumplog.Request{put("a", "1"),
			del("b", ""), {Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte("a"), IgnoreValue: true}}},
			groups: []*group{groupOf(record3(8, 5, 2, "a", "1")), groupOf(tomb(9, 0, "b"))}, floor: 7, index: 0, rev: 7},
		"a transaction that keeps the value": {log: []*dumplog.Request{txn(nil, []dumplog.RequestOp{{
			Put: &dumplog.PutRequest{Key: []byte("a"), IgnoreValue: true}}}, nil)},
			groups: []*group{groupOf(record3(9, 5, 2, "a", "1"))}, floor: 8, index: 1, rev: 9},
		"a guard on the create revision": {log: []*dumplog.Request{txn(createIs("a", 5), a("1"), nil)},
			groups: []*group{groupOf(record3(9, 5, 3, "a", "1"))}, floor: 8, index: 0, rev: 8},
		"a guard on another create revision": {log: []*dumplog.Request{txn(createIs("a", 6), a("1"), nil)},
			groups: []*group{groupOf(record3(9, 5, 3, "a", "1"))}, floor: 8, index: 1, rev: 9},
		"a guard that the key is new": {log: []*dumplog.Request{txn(createIs("a", 0), a("1"), nil)},
			groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 0, rev: 8},
		"a guard that the key is new, after a put of it": {log: []*dumplog.Request{put("a", "1"),
			txn(createIs("a", 0), a("1"), nil), all[1]}, groups: []*group{groupOf(rec(8, 0, "a", "1")),
			groupOf(rec(9, 0, "b", "1"))}, floor: 7, index: 0, rev: 7},
		"a guard that no revision is there, after a put of it": {log: []*dumplog.Request{put("a", "1"),
			guard("a", 0, "1"), all[1]}, groups: []*group{groupOf(rec(8, 0, "a", "1")),
			groupOf(rec(9, 0, "b", "1"))}, floor: 7, index: 0, rev: 7},
		// Of two entries like it the first one wrote.
		"a new key that an earlier entry made": {log: []*dumplog.Request{txn(createIs("a", 0), a("1"), nil), all[1],
			txn(createIs("a", 0), a("1"), nil), all[2]}, groups: []*group{groupOf(rec(7, 0, "a", "1")),
			groupOf(rec(8, 0, "b", "1")), groupOf(rec(9, 0, "c", "1"))}, floor: 6, index: 0, rev: 6},
		"a delete that a new key follows, without a revoke": {log: []*dumplog.Request{deleteIf("a", 5),
			guard("a", 0, "1")}, groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 2, rev: 9},
		"a delete, and a new key that is there": {log: []*dumplog.Request{deleteIf("a", 5), guard("a", 0, "1")},
			groups: []*group{groupOf(tomb(8, 0, "a")), groupOf(rec(9, 0, "a", "1"))}, floor: 7, index: 0, rev: 7},
		"two deletes, and a new key between": {log: []*dumplog.Request{deleteIf("a", 5), guard("a", 0, "1"),
			deleteIf("a", 6)}, groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 2, rev: 8},
		// A put that nothing can refuse wrote the record that names its key, although it holds something else.
		"the only record is altered": {log: []*dumplog.Request{all[0]}, groups: []*group{groupOf(rec(9, 0, "a", "X"))},
			floor: 8, index: 0, rev: 8},
		"the only record is altered, and it is not known that puts write": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(rec(9, 0, "a", "X"))}, alarm: true, floor: 8, index: 1, rev: 9},
		"the only record is of another key": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(rec(9, 0, "b", "X"))}, floor: 8, index: 1, rev: 9},
		"the only record has the value under another key": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(rec(9, 0, "b", "1"))}, floor: 8, index: 0, rev: 8},
		"it has the value under another key, and it is not known that puts write": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(rec(9, 0, "b", "1"))}, alarm: true, floor: 8, index: 1, rev: 9},
		"the only records have the value under other keys": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(rec(9, 0, "b", "1"), rec(9, 1, "c", "1"))}, floor: 8, index: 1, rev: 9},
		"the tombstone of another key": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(tomb(9, 0, "b"))}, floor: 8, index: 1, rev: 9},
		"no value under another key": {log: []*dumplog.Request{put("a", "")},
			groups: []*group{groupOf(rec(9, 0, "b", ""))}, floor: 8, index: 1, rev: 9},
		"the value under another key, and its own below": {log: []*dumplog.Request{all[0]},
			groups: []*group{groupOf(rec(5, 0, "a", "1")), groupOf(rec(6, 0, "b", "1")), groupOf(rec(7, 0, "c", "1")),
				groupOf(rec(8, 0, "d", "1")), groupOf(rec(9, 0, "e", "1"))}, floor: 4, index: 1, rev: 9},
		"the value under another key, after a guess": {log: []*dumplog.Request{all[0], del("c", "")},
			groups: []*group{groupOf(rec(8, 0, "b", "1")), groupOf(tomb(9, 0, "c"))}, floor: 7, index: 0, rev: 7},
		"an altered record, and an entry that may have written it": {log: []*dumplog.Request{all[0],
			guard("a", 3, "2")}, groups: []*group{groupOf(rec(9, 0, "a", "X"))}, floor: 8, index: 2, rev: 9},
		"the record before a delete is altered": {log: []*dumplog.Request{all[0], del("a", "")},
			groups: []*group{groupOf(rec(8, 0, "a", "X")), groupOf(tomb(9, 0, "a"))}, floor: 7, index: 0, rev: 7},
		"the record before a delete is altered, and another delete is between": {
			log:    []*dumplog.Request{all[0], del("b", ""), del("a", "")},
			groups: []*group{groupOf(rec(8, 0, "a", "X")), groupOf(tomb(9, 0, "a"))}, floor: 7, index: 0, rev: 7},
		"the record before two deletes is altered": {
			log:    []*dumplog.Request{all[0], del("b", ""), del("a", "")},
			groups: []*group{groupOf(rec(7, 0, "a", "X")), groupOf(tomb(8, 0, "b")), groupOf(tomb(9, 0, "a"))},
			floor:  6, index: 0, rev: 6},
		"two altered records": {log: all[:2], groups: []*group{groupOf(rec(8, 0, "a", "X")),
			groupOf(rec(9, 0, "b", "X"))}, floor: 7, index: 0, rev: 7},
		"the record before a delete of the key is another's": {log: []*dumplog.Request{all[0], del("a", "")},
			groups: []*group{groupOf(rec(8, 0, "x", "X")), groupOf(tomb(9, 0, "a"))}, floor: 7, index: 0, rev: 7},
		"the record before a delete of two keys is another's": {log: []*dumplog.Request{all[0], del("a", "c")},
			groups: []*group{groupOf(rec(8, 0, "x", "X")), groupOf(tomb(9, 0, "a"), tomb(9, 1, "b"))}, floor: 7,
			index: 0, rev: 7},
		"the record before a delete is another's, and it is not known that puts write": {
			log:    []*dumplog.Request{all[0], del("a", "")},
			groups: []*group{groupOf(rec(8, 0, "x", "X")), groupOf(tomb(9, 0, "a"))}, alarm: true, floor: 7, index: 2,
			rev: 9},
		"the record before a delete is another's, and a delete without effect is between": {
			log:    []*dumplog.Request{all[0], del("b", ""), del("a", "")},
			groups: []*group{groupOf(rec(8, 0, "x", "X")), groupOf(tomb(9, 0, "a"))}, floor: 7, index: 3, rev: 9},
		"the record before one that may be the put's is another's": {log: []*dumplog.Request{all[0],
			txn(cmpMod("z", 0), []dumplog.RequestOp{putOp("b", "1")}, nil)}, groups: []*group{groupOf(rec(8, 0, "x", "X")),
			groupOf(record3(9, 5, 2, "b", "1"))}, floor: 7, index: 2, rev: 9},
		// A revoke fits any tombstone. Its lease on the key says more, and so does a delete before it, unless what
		// comes between would have written on top of that.
		"a revoke of a lease that was put on the key": {log: []*dumplog.Request{leasedPut("a", 7), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 1, rev: 8},
		"a revoke of another lease": {log: []*dumplog.Request{leasedPut("a", 8), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 2, rev: 9},
		"a revoke of the lease before the last": {log: []*dumplog.Request{leasedPut("a", 7), txn(cmpMod("x", 3),
			[]dumplog.RequestOp{putOp("b", "1")}, a("1")), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 3, rev: 9},
		"a delete, and a revoke without effect": {log: []*dumplog.Request{deleteIf("a", 5), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 0, rev: 8},
		"a delete that a new key follows": {log: []*dumplog.Request{deleteIf("a", 5), guard("a", 0, "1"), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 3, rev: 9},
		"a delete that another guard follows": {log: []*dumplog.Request{deleteIf("a", 5), guard("a", 4, "1"), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 0, rev: 8},
		"a delete that a new key of another name follows": {log: []*dumplog.Request{deleteIf("a", 5), guard("b", 0, "1"),
			revoke(7)}, groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 0, rev: 8},
		"a delete that a delete follows": {log: []*dumplog.Request{deleteIf("a", 5), deleteIf("a", 0), revoke(7)},
			groups: []*group{groupOf(tomb(9, 0, "a"))}, floor: 8, index: 0, rev: 8},
		"a guard that is no equality": {log: []*dumplog.Request{txn([]dumplog.Compare{{Target: apply.TargetMod,
			Result: apply.ResultLess, Key: []byte("a"), Num: 0}}, a("1"), nil)},
			groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 1, rev: 9},
		"a guard on a range": {log: []*dumplog.Request{txn([]dumplog.Compare{{Target: apply.TargetMod,
			Result: apply.ResultEqual, Key: []byte("a"), RangeEnd: []byte("c")}}, a("1"), nil)},
			groups: []*group{groupOf(rec(9, 0, "a", "1"))}, floor: 8, index: 1, rev: 9},
	} {
		t.Run(name, func(t *testing.T) {
			s := &logView{m: &evidence.Member{DB: &evidence.DB{}}, compacted: c.floor}
			if c.alarm {
				mayAlarm(s, 0, 9)
			}
			n := int64(len(c.log))
			end := place{index: uint64(n), rev: 9, writes: n}
			b := &backwards{s: s, items: itemsOf(c.log...), groups: c.groups, rev: 9, from: 1, best: end}
			moved := b.walk()
			if want := (place{index: c.index, rev: c.rev, writes: int64(c.index)}); b.best != want {
				t.Errorf("%+v, want %+v", b.best, want)
			}
			if want := c.index < end.index; moved != want {
				t.Errorf("moved %v, want %v", moved, want)
			}
		})
	}
}

// TestWalkPastRoot: a put of root was not refused if a later entry with no higher auth revision took effect.
func TestWalkPastRoot(t *testing.T) {
	by := func(r *dumplog.Request, user string, rev uint64) *dumplog.Request {
		r.Header = dumplog.Header{Username: user, AuthRevision: rev}
		return r
	}
	received := []dumplog.Jump{{From: 1, To: 4}}
	for name, c := range map[string]struct {
		first, later *dumplog.Request
		jumps        []dumplog.Jump
		alarm        bool
		index        uint64
	}{
		"as high":                   {by(put("a", "1"), "root", 15), by(put("b", "1"), "root", 15), nil, false, 0},
		"higher":                    {by(put("a", "1"), "root", 16), by(put("b", "1"), "app", 15), nil, false, 0},
		"lower":                     {by(put("a", "1"), "root", 14), by(put("b", "1"), "root", 15), nil, false, 1},
		"another user":              {by(put("a", "1"), "app", 15), by(put("b", "1"), "root", 15), nil, false, 1},
		"the later one has no user": {by(put("a", "1"), "root", 15), put("b", "1"), nil, false, 1},
		"a snapshot in between":     {by(put("a", "1"), "root", 15), by(put("b", "1"), "root", 15), received, false, 1},
		"an alarm":                  {by(put("a", "1"), "root", 15), by(put("b", "1"), "root", 15), nil, true, 1},
	} {
		m := &evidence.Member{DB: &evidence.DB{}}
		m.DB.Auth.Enabled, m.DB.Auth.Revision, m.DB.Auth.HasRevision = true, 20, true
		m.WAL.Log, m.WAL.Summary.Jumps = &dumplog.Log{}, c.jumps
		s := &logView{m: m, compacted: 7}
		if c.alarm {
			mayAlarm(s, 0, 9)
		}
		b := &backwards{s: s, items: itemsOf(c.first, c.later), rev: 9, from: 1,
			best:   place{index: 2, rev: 9, writes: 2},
			groups: []*group{groupOf(rec(8, 0, "a", "X")), groupOf(rec(9, 0, "b", "1"))}}
		if b.walk(); b.best.index != c.index {
			t.Errorf("%s: %+v", name, b.best)
		}
	}
}

// TestWalkToTheFirstOfEqual: of equal transactions that create a key the first one did, unless it may have been refused
// where the later one was not.
func TestWalkToTheFirstOfEqual(t *testing.T) {
	creates := func(user string, rev uint64) *dumplog.Request {
		r := txn(versionIs("k", 0), []dumplog.RequestOp{putOp("k", "1")}, nil)
		r.Header = dumplog.Header{Username: user, AuthRevision: rev}
		return r
	}
	for name, c := range map[string]struct {
		first, later *dumplog.Request
		authOff      bool
		index        uint64
	}{
		"one user":             {creates("app", 9), creates("app", 9), false, 0},
		"another user":         {creates("app", 9), creates("root", 9), false, 2},
		"at another revision":  {creates("app", 8), creates("app", 9), false, 2},
		"without auth":         {creates("", 0), creates("", 0), true, 0},
		"of root, not refused": {creates("root", 9), creates("app", 9), false, 2},
	} {
		m := &evidence.Member{DB: &evidence.DB{}}
		m.DB.Auth.Enabled, m.DB.Auth.Revision, m.DB.Auth.HasRevision = !c.authOff, 20, true
		b := &backwards{s: &logView{m: m, compacted: 7}, items: itemsOf(c.first, c.later), rev: 9, from: 1,
			best: place{index: 2, rev: 9, writes: 2}, groups: []*group{groupOf(rec(9, 0, "k", "1"))}}
		if b.walk(); b.best.index != c.index {
			t.Errorf("%s: %+v", name, b.best)
		}
	}
}

// TestWalkPastKept: a put that keeps the value of its key wrote the newest revision that is left, if that puts the key:
// without an effect it would have come after it. So the put before it wrote the revision before, whatever that holds.
func TestWalkPastKept(t *testing.T) {
	kept := func(key string) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte(key), IgnoreValue: true}}
	}
	again := groupOf(record3(9, 8, 2, "k", "1"))
	gone := rec(9, 0, "k", "")
	gone.del = true
	for name, c := range map[string]struct {
		later *dumplog.Request
		group *group
		alarm bool
		index uint64
	}{
		"the same key":   {kept("k"), again, false, 0},
		"another key":    {kept("other"), again, false, 0}, // only the put can have written the newest
		"a deleted key":  {kept("k"), groupOf(gone), false, 2},
		"an alarm":       {kept("k"), again, true, 2},
		"a value it has": {put("k", "1"), again, false, 0},
	} {
		s := &logView{m: &evidence.Member{DB: &evidence.DB{}}, compacted: 7}
		if c.alarm {
			mayAlarm(s, 0, 9)
		}
		b := &backwards{s: s, items: itemsOf(put("k", "altered"), c.later), rev: 9, from: 1,
			best: place{index: 2, rev: 9, writes: 2}, groups: []*group{groupOf(rec(8, 0, "k", "1")), c.group}}
		if b.walk(); b.best.index != c.index {
			t.Errorf("%s: %+v", name, b.best)
		}
	}
}

// TestWalkBeginsAtThePlace: entries above the place are not looked at.
func TestWalkBeginsAtThePlace(t *testing.T) {
	b := &backwards{s: &logView{m: &evidence.Member{DB: &evidence.DB{}}, compacted: 7},
		items:  itemsOf(put("a", "1"), put("b", "1")),
		groups: []*group{groupOf(rec(8, 0, "a", "1")), groupOf(rec(9, 0, "b", "1"))}, rev: 8, from: 5,
		best: place{index: 1, rev: 8, writes: 5}}
	if !b.walk() || b.best != (place{index: 0, rev: 7, writes: 4}) {
		t.Errorf("%+v", b.best)
	}
}

// TestStampAboveAPlace: the entry right above the place says which auth revision the member had, if its record shows
// that it wrote.
func TestStampAboveAPlace(t *testing.T) {
	s := newStory("3.5.0")
	s.put("a", "1") // revision 2
	s.put("b", "1") // revision 3
	s.grant(5)
	s.wrote(putRequest("c", "1", 5), "c") // revision 4
	m := open(t, s.Write(t, t.TempDir())...).Members[0]
	by := func(r *pb.InternalRaftRequest) *pb.InternalRaftRequest {
		r.Header = &pb.RequestHeader{ID: 1, Username: "app", AuthRevision: 9}
		return r
	}
	guarded := &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("b"), Value: []byte("1")}}}}}}
	for name, c := range map[string]struct {
		above *pb.InternalRaftRequest
		rev   int64
		stamp uint64
	}{
		"it wrote":        {by(putRequest("b", "1", 0)), 2, 9},
		"another content": {by(putRequest("b", "2", 0)), 2, 0},
		"not a put":       {by(guarded), 2, 0},
		"under a lease":   {by(putRequest("c", "1", 5)), 3, 9},
		"another lease":   {by(putRequest("c", "1", 6)), 3, 0},
		"no user":         {putRequest("b", "1", 0), 2, 0},
	} {
		w := &writers{appliedRange: appliedRange{min: 100, until: 100}}
		var items []*item
		for i, r := range []*pb.InternalRaftRequest{putRequest("a", "1", 0), c.above} {
			data, err := r.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			it := (&item{entry: dumplog.Entry{Index: uint64(i + 1), Data: data}}).keep()
			items = append(items, it)
			w.note(it)
		}
		lv := &logView{m: m, past: func(from uint64) iter.Seq2[*item, error] {
			return func(yield func(*item, error) bool) {
				for _, it := range items {
					if it.entry.Index >= from && !yield(it, nil) {
						return
					}
				}
			}
		}}
		if b := lv.newBackwards(t.Context(), w, place{index: 1, rev: c.rev, writes: 1}); b.stamp != c.stamp {
			t.Errorf("%s: %d, want %d", name, b.stamp, c.stamp)
		}
	}
}

// TestWriters: the entries of the last stretch without a gap are counted, up to where the member stands, with a mark
// every so many.
func TestWriters(t *testing.T) {
	note := func(w *writers, index uint64, r *dumplog.Request) {
		w.note(&item{entry: dumplog.Entry{Index: index}, req: r})
	}
	w := &writers{appliedRange: appliedRange{min: 15, until: 20}}
	for i := uint64(5); i <= 8; i++ {
		note(w, i, put("a", "1"))
	}
	note(w, 12, put("a", "1")) // behind a gap that the member has applied past
	note(w, 13, del("a", ""))
	note(w, 14, &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 1}})
	note(w, 15, txn(nil, nil, nil))
	note(w, 20, put("a", "1")) // behind one that it may not have
	note(w, 21, put("a", "1")) // above where it stands
	if w.first != 12 || w.last != 20 || w.total != 3 || len(w.marks) != 1 || w.marks[0] != 12 {
		t.Errorf("%+v", w)
	}
	w = &writers{appliedRange: appliedRange{min: 15, until: 20}}
	note(w, 5, put("a", "1"))
	note(w, 15, put("a", "1")) // the gap ends below where the member certainly stands
	if w.first != 15 || w.total != 1 {
		t.Errorf("a gap up to where it stands: %+v", w)
	}
	w = &writers{appliedRange: appliedRange{min: 13, until: 20}}
	note(w, 5, put("a", "1"))
	note(w, 16, put("a", "1"))
	if w.first != 5 || w.total != 2 {
		t.Errorf("a gap above where it certainly stands: %+v", w)
	}
	w = &writers{appliedRange: appliedRange{min: 1, until: 5000}}
	for i := uint64(1); i <= 3*markEvery; i++ {
		note(w, 2*i, put("a", "1"))
		note(w, 2*i+1, txn(nil, nil, nil))
	}
	if w.total != 3*markEvery || len(w.marks) != 3 || w.marks[1] != 2*(markEvery+1) || w.marks[2] != 2*(2*markEvery+1) {
		t.Errorf("%d in %v", w.total, w.marks)
	}
}

// TestFloor: the record of revision 1 does not exist.
func TestFloor(t *testing.T) {
	for compact, want := range map[int64]int64{-1: 1, 0: 1, 1: 1, 2: 2, 50: 50} {
		if got := (&logView{compacted: compact}).floor(); got != want {
			t.Errorf("compacted at %d: %d, want %d", compact, got, want)
		}
	}
}

package replay

import (
	"errors"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLastOnes: where entries with an open outcome are as many as the last revisions, and each can have written its own
// or names its key, a record that does not fit was altered. Otherwise the outcome stays open.
func TestLastOnes(t *testing.T) {
	// A range of a future revision fails: whether the rest of the transaction is executed then, the database decides.
	open := func(op dumplog.RequestOp) *dumplog.Request {
		return txn(nil, []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte("a"), Revision: 99}}, op}, nil)
	}
	putB, putC, delC := open(putOp("b", "1")), open(putOp("c", "1")), open(delOp("a", ""))
	first := rec(2, 0, "a", "1")
	for name, c := range map[string]struct {
		rows []row
		log  []*dumplog.Request
		edit func(*bench)
		want []string
	}{
		"the first is altered": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "1")},
			log: []*dumplog.Request{putB, putC}, want: []string{"contradicted", "applied"}},
		"the last is altered": {rows: []row{first, rec(3, 0, "b", "1"), rec(4, 0, "c", "X")},
			log: []*dumplog.Request{putB, putC}, want: []string{"applied", "no-effect"}},
		"exchanged, and a delete": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "X"), tomb(5, 0, "a")},
			log: []*dumplog.Request{putB, putC, delC}, want: []string{"contradicted", "contradicted", "applied"}},
		"none fits": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "X")},
			log: []*dumplog.Request{putB, putC}, want: []string{"no-effect", "no-effect"}},
		"of another key": {rows: []row{first, rec(3, 0, "d", "X"), rec(4, 0, "c", "1")},
			log: []*dumplog.Request{putB, putC}, want: []string{"no-effect", "no-effect"}},
		"fewer revisions": {rows: []row{first, rec(3, 0, "b", "X")}, log: []*dumplog.Request{putB, putC},
			want: []string{"no-effect", "no-effect"}},
		"more revisions": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "1"), rec(5, 0, "d", "1")},
			log: []*dumplog.Request{putB, putC}, want: []string{"no-effect", "no-effect"}},
		"one that writes no key between": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "1")},
			log:  []*dumplog.Request{putB, {Kind: dumplog.KindCompaction}, putC},
			want: []string{"contradicted", "no-effect", "applied"}},
		"not known to be applied": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "1")},
			log: []*dumplog.Request{putB, putC}, edit: func(b *bench) { b.sim.m.AppliedMin = 2 },
			want: []string{"no-effect", "no-effect"}},
		"one does not decode": {rows: []row{first, rec(3, 0, "b", "X"), rec(4, 0, "c", "1")},
			log:  []*dumplog.Request{putB, putC, {}},
			edit: func(b *bench) { b.items[3].err = errors.New("damaged") },
			want: []string{"no-effect", "no-effect", "outside-history"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 6, -1, c.rows...).log(append([]*dumplog.Request{put("a", "1")}, c.log...)...)
			if c.edit != nil {
				c.edit(b)
			}
			b.T = t
			b.want(append([]string{"applied"}, c.want...)...)
		})
	}
	many := make([]*item, lookahead)
	for i := range many {
		many[i] = &item{req: &dumplog.Request{Kind: dumplog.KindCompaction}}
	}
	b := newBench(t, 6, -1, rec(2, 0, "b", "1"))
	if !b.sim.matcher.lastOnes(&item{req: putB}, many[1:]) || b.sim.matcher.lastOnes(&item{req: putB}, many) {
		t.Error("more entries may follow only where as many were read as are looked at")
	}
	if apply.WritesKeys(dumplog.KindCompaction) {
		t.Error("a compaction writes keys")
	}
}

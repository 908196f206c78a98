package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestUnsure: where the log does not tell whether an entry wrote, the records after it do.
func TestUnsure(t *testing.T) {
	a, b := rec(2, 0, "a", "1"), rec(3, 0, "b", "1")
	again := record3(4, 3, 2, "b", "1")
	op := []dumplog.RequestOp{putOp("b", "1")}
	maybe, otherwise := txn(valueLess("a"), op, nil), txn(valueLess("a"), nil, op)
	fresh := txn(cmpMod("b", 0), op, nil)
	grant := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7, TTL: 60}}
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		rows []row
		min  uint64
		want []string
	}{
		"it wrote": {log: []*dumplog.Request{maybe, put("c", "1")},
			rows: []row{b, rec(4, 0, "c", "1")}, want: []string{"applied", "applied"}},
		"it did not": {log: []*dumplog.Request{maybe, put("c", "1")},
			rows: []row{rec(3, 0, "c", "1")}, want: []string{"no-effect", "applied"}},
		"both have": {log: []*dumplog.Request{maybe, put("b", "1")}, rows: []row{b, again},
			want: []string{"applied", "applied"}},
		"a delete after it": {log: []*dumplog.Request{maybe, del("none", ""), grant, put("c", "1")},
			rows: []row{b, rec(4, 0, "c", "1")}, want: []string{"applied", "no-effect", "applied", "applied"}},
		"its other branch, a put has it": {log: []*dumplog.Request{otherwise, put("b", "1")}, rows: []row{b},
			want: []string{"no-effect", "applied"}},
		"its other branch, both": {log: []*dumplog.Request{otherwise, put("b", "1")}, rows: []row{b, again},
			want: []string{"applied", "applied"}},
		"its other branch": {log: []*dumplog.Request{otherwise, put("c", "1")},
			rows: []row{b, rec(4, 0, "c", "1")}, want: []string{"applied", "applied"}},
		// Both fit as well: the guess of the rules counts.
		"a transaction has the same record": {log: []*dumplog.Request{maybe, fresh}, rows: []row{b},
			want: []string{"applied", "no-effect"}},
		"its other branch, a transaction has it": {log: []*dumplog.Request{otherwise, fresh}, rows: []row{b},
			want: []string{"no-effect", "applied"}},
		"a put that the member may not have come to": {log: []*dumplog.Request{maybe, put("b", "1")},
			rows: []row{b}, min: 2, want: []string{"applied", "not-applied"}},
		"above what the member certainly has, no record": {log: []*dumplog.Request{maybe, put("c", "1")}, min: 1,
			want: []string{"not-applied", "not-applied"}},
		"above it, and its record is there": {log: []*dumplog.Request{maybe}, rows: []row{b}, min: 1,
			want: []string{"applied"}},
		"above it, its other branch, no record": {log: []*dumplog.Request{otherwise}, min: 1,
			want: []string{"not-applied"}},
		"two that may have, one record, a put takes none": {log: []*dumplog.Request{maybe, maybe, put("c", "1")},
			rows: []row{b, rec(4, 0, "c", "1")}, want: []string{"applied", "no-effect", "applied"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 6, -1, append([]row{a}, c.rows...)...).log(append([]*dumplog.Request{put("a", "1")},
				c.log...)...)
			if c.min > 0 {
				b.sim.m.AppliedMin = c.min
			}
			b.want(append([]string{"applied"}, c.want...)...)
			if len(b.sim.res.Extra) > 0 {
				t.Errorf("extra %v", b.sim.res.Extra)
			}
		})
	}
}

// TestUnsureAltered: of entries that may have had no effect, those whose records were altered are found, although few
// sound records are between them.
func TestUnsureAltered(t *testing.T) {
	maybe := func(key string) *dumplog.Request {
		return txn(valueLess("a"), []dumplog.RequestOp{putOp(key, "1")}, nil)
	}
	newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "X"), rec(4, 0, "c", "1"), rec(5, 0, "d", "1"),
		rec(6, 0, "e", "X"), rec(7, 0, "f", "1"), rec(8, 0, "g", "1"), rec(9, 0, "i", "1")).
		log(put("a", "1"), maybe("b"), maybe("c"), maybe("d"), maybe("e"), maybe("f"), maybe("g"), maybe("i"),
			maybe("h")).
		want("applied", "contradicted", "applied", "applied", "contradicted", "applied", "applied", "applied",
			"no-effect")
	// A record that a later entry wrote was not altered, and is not given to another one of its key.
	again := maybe("e")
	again.Txn.Success[0].Put.Value = []byte("2")
	newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "X"), rec(4, 0, "c", "1"), rec(5, 0, "d", "1"),
		rec(6, 0, "e", "2"), rec(7, 0, "f", "1")).
		log(put("a", "1"), maybe("b"), maybe("c"), maybe("d"), maybe("e"), again, maybe("f"), maybe("h")).
		want("applied", "contradicted", "applied", "applied", "no-effect", "applied", "applied", "no-effect")
}

// TestAlarmsUnsure: where it is not known which alarms were on, a put that is not there may have been refused, and one
// that is there was not.
func TestAlarmsUnsure(t *testing.T) {
	b := newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "c", "1")).
		log(put("a", "1"), put("b", "1"), txn(nil, []dumplog.RequestOp{putOp("b", "1")}, nil), del("a", ""),
			put("c", "1"))
	b.sim.AlarmsUnsure = true
	b.want("applied", "no-effect", "no-effect", "no-effect", "applied")
}

package replay

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// perhaps puts a key if a compare holds of which the model does not know the outcome, otherwise puts it if not.
func perhaps(key string) *dumplog.Request {
	return txn(valueLess("a"), []dumplog.RequestOp{putOp(key, "1")}, nil)
}

func otherwise(key string) *dumplog.Request {
	return txn(valueLess("a"), nil, []dumplog.RequestOp{putOp(key, "1")})
}

// always puts a key in a transaction without conditions.
func always(key string) *dumplog.Request { return txn(nil, []dumplog.RequestOp{putOp(key, "1")}, nil) }

// TestUncertainWriters: records in the place of an entry that may have had no effect are its own if it can have written
// them, altered ones of it if they name its key and what follows fits, and else of no entry.
func TestUncertainWriters(t *testing.T) {
	either := txn(valueLess("a"), []dumplog.RequestOp{putOp("b", "1")}, []dumplog.RequestOp{putOp("c", "1")})
	def := []*dumplog.Request{perhaps("d"), perhaps("e"), perhaps("f")}
	hidden := func(b *bench) { b.sim.KeysKnown = false }
	four := append(slices.Clone(def), perhaps("g"))
	strayFirst := func(value string) []row {
		return []row{rec(3, 0, "z", value), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1"),
			rec(7, 0, "g", "1")}
	}
	undecoded := rec(3, 0, "", "")
	undecoded.bad = true
	allApplied := []string{"applied", "applied", "applied", "applied"}
	noneApplied := []string{"no-effect", "no-effect", "no-effect", "no-effect"}
	for name, c := range map[string]struct {
		log   []*dumplog.Request
		rows  []row
		edit  func(*bench)
		want  []string
		extra []int64
	}{
		"one branch":       {log: []*dumplog.Request{either}, rows: []row{rec(3, 0, "b", "1")}, want: []string{"applied"}},
		"the other branch": {log: []*dumplog.Request{either}, rows: []row{rec(3, 0, "c", "1")}, want: []string{"applied"}},
		"the branch of no effect is likelier, and the record altered": {
			log:  append([]*dumplog.Request{otherwise("b")}, def...),
			rows: []row{rec(3, 0, "b", "X"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want: []string{"contradicted", "applied", "applied", "applied"}},
		"the same, and the keys are not known": {
			log:  append([]*dumplog.Request{otherwise("b")}, def...),
			rows: []row{rec(3, 0, "b", "X"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")}, edit: hidden,
			want:  []string{"outside-history", "outside-history", "outside-history", "outside-history"},
			extra: []int64{3, 4, 5, 6}},
		"a record that a later one may have written": {log: []*dumplog.Request{perhaps("b"), perhaps("b")},
			rows: []row{rec(3, 0, "b", "1")}, want: []string{"applied", "no-effect"}},
		"a record that a later one must have written": {log: []*dumplog.Request{perhaps("b"), always("b")},
			rows: []row{rec(3, 0, "b", "1")}, want: []string{"no-effect", "applied"}},
		"a record, and one that a later one must have written": {log: []*dumplog.Request{perhaps("b"), always("b")},
			rows: []row{rec(3, 0, "b", "1"), record3(4, 3, 2, "b", "1")}, want: []string{"applied", "applied"}},
		"a record that a later one wrote with another value": {
			log:  []*dumplog.Request{perhaps("b"), txn(nil, []dumplog.RequestOp{putOp("b", "2")}, nil)},
			rows: []row{rec(3, 0, "b", "1"), record3(4, 3, 2, "b", "2")}, want: []string{"applied", "applied"}},
		"no record, the keys are not known": {log: []*dumplog.Request{perhaps("b")}, edit: hidden,
			want: []string{"outside-history"}},
		"no record, no effect likelier, the keys are not known": {log: []*dumplog.Request{otherwise("b")}, edit: hidden,
			want: []string{"outside-history"}},
		"a record of a key that the next entry names": {
			log:  append([]*dumplog.Request{perhaps("b"), perhaps("z")}, def...),
			rows: []row{rec(3, 0, "z", "X"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want: []string{"no-effect", "contradicted", "applied", "applied", "applied"}},
		"a record that no entry names": {
			log:   append([]*dumplog.Request{perhaps("b"), perhaps("c")}, def...),
			rows:  []row{rec(3, 0, "z", "X"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want:  []string{"no-effect", "no-effect", "applied", "applied", "applied"},
			extra: []int64{3}},
		"a record that no entry names, then those of all entries": {log: four, rows: strayFirst("X"), want: allApplied,
			extra: []int64{3}},
		"the same, and the first one's outcome is likelier without effect": {
			log: append([]*dumplog.Request{otherwise("d")}, four[1:]...), rows: strayFirst("X"), want: allApplied,
			extra: []int64{3}},
		"the same, and fewer entries": {log: four[:3], rows: strayFirst("X")[:4], want: noneApplied[:3],
			extra: []int64{3, 4, 5, 6}},
		"the same, and the last entry wrote it": {log: append(slices.Clone(four), perhaps("z")), rows: strayFirst("1"),
			want: append(slices.Clone(noneApplied), "applied"), extra: []int64{4, 5, 6, 7}},
		"the same, and the keys are hidden": {log: four, rows: strayFirst("X"), edit: hidden,
			want:  []string{"outside-history", "outside-history", "outside-history", "outside-history"},
			extra: []int64{3, 4, 5, 6, 7}},
		"the same, and a revision is not there": {log: four, rows: slices.Delete(strayFirst("X"), 1, 2),
			want: []string{"contradicted", "applied", "applied", "applied"}, extra: []int64{3}},
		"an altered record, and the first one's record is that of a later entry": {
			log:  []*dumplog.Request{otherwise("d"), put("z", "1"), put("d", "1"), put("e", "1"), put("f", "1")},
			rows: []row{rec(3, 0, "z", "X"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want: []string{"no-effect", "contradicted", "applied", "applied", "applied"}},
		"a record that does not decode, and one entry may have written it": {
			log:  append([]*dumplog.Request{otherwise("b")}, def...),
			rows: []row{undecoded, rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want: []string{"contradicted", "applied", "applied", "applied"}},
		"the same, and the next but one may have as well": {
			log: append([]*dumplog.Request{otherwise("b"), {Kind: dumplog.KindAlarm, Alarm: &dumplog.AlarmRequest{}},
				perhaps("c")}, def...),
			rows: []row{undecoded, rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want: []string{"no-effect", "applied", "contradicted", "applied", "applied", "applied"}},
		"a record that an entry far ahead names": {
			log:   slices.Concat([]*dumplog.Request{perhaps("b"), perhaps("c")}, def, []*dumplog.Request{perhaps("z")}),
			rows:  []row{rec(3, 0, "z", "X"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1"), rec(6, 0, "f", "1")},
			want:  []string{"no-effect", "no-effect", "applied", "applied", "applied", "no-effect"},
			extra: []int64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 6, -1, append([]row{rec(2, 0, "a", "1")}, c.rows...)...).
				log(append([]*dumplog.Request{put("a", "1")}, c.log...)...)
			if c.edit != nil {
				c.edit(b)
			}
			b.want(append([]string{"applied"}, c.want...)...)
			for g := b.sim.cur.take(); g != nil; g = b.sim.cur.take() {
				b.sim.matcher.extra(g)
			}
			if !slices.Equal(b.sim.res.Extra, c.extra) {
				t.Errorf("extra %v, want %v", b.sim.res.Extra, c.extra)
			}
		})
	}
}

// TestStrayBefore: no entry wrote the next records where an entry can have written those after them, and what follows
// fits better then.
func TestStrayBefore(t *testing.T) {
	z, d, e := rec(3, 0, "z", "1"), rec(4, 0, "d", "1"), rec(5, 0, "e", "1")
	sure := []*dumplog.Request{put("e", "1")}
	unsure := []*dumplog.Request{perhaps("e"), perhaps("f"), perhaps("g")}
	more := []row{z, d, e, rec(6, 0, "f", "1"), rec(7, 0, "g", "1")}
	for name, c := range map[string]struct {
		rows  []row
		ahead []*dumplog.Request
		edit  func(b *bench)
		want  bool
	}{
		"one must have written":    {rows: []row{z, d, e}, ahead: sure, want: true},
		"three may have written":   {rows: more, ahead: unsure, want: true},
		"two may have written":     {rows: more, ahead: unsure[:2]},
		"nothing is ahead":         {rows: []row{z, d, e}},
		"nothing follows":          {rows: []row{z}, ahead: sure},
		"unreadable pages between": {rows: []row{z, {hole: true}, d, e}, ahead: sure},
		"a revision between":       {rows: []row{z, rec(5, 0, "d", "1"), rec(6, 0, "e", "1")}, ahead: sure},
		"the keys are not known": {rows: []row{z, d, e}, ahead: sure,
			edit: func(b *bench) { b.sim.KeysKnown = false }},
		"the next one does not decode": {rows: []row{z, d, e}, ahead: sure,
			edit: func(b *bench) { b.items[1].err = errDoubted }},
		"it can have written the first": {rows: []row{rec(3, 0, "d", "1"), record3(4, 3, 2, "d", "1"), e},
			ahead: sure},
		"it cannot have written the second": {rows: []row{z, rec(4, 0, "y", "1"), e}, ahead: sure},
		"one ahead can have written the first": {rows: []row{z, d, e},
			ahead: []*dumplog.Request{put("e", "1"), perhaps("z")}},
	} {
		b := newBench(t, 6, -1, c.rows...).log(append([]*dumplog.Request{perhaps("d")}, c.ahead...)...)
		if c.edit != nil {
			c.edit(b)
		}
		if got := b.sim.matcher.strayBefore(b.items[0], b.items[1:]); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOthersMayHave: an entry ahead may have written the records, if it comes before the one that can have written
// those after them.
func TestOthersMayHave(t *testing.T) {
	rows := []row{rec(3, 0, "z", "1"), rec(4, 0, "d", "1")}
	never := txn([]dumplog.Compare{{Key: []byte("a"), Target: apply.TargetVersion, Result: apply.ResultEqual, Num: 9}},
		[]dumplog.RequestOp{putOp("c", "1")}, nil)
	for name, c := range map[string]struct {
		rows  []row
		ahead []*dumplog.Request
		edit  func(b *bench)
		want  bool
	}{
		"none is ahead":                      {rows: rows},
		"one that may":                       {rows: rows, ahead: []*dumplog.Request{perhaps("c")}, want: true},
		"one that must":                      {rows: rows, ahead: []*dumplog.Request{put("c", "1")}, want: true},
		"one that cannot":                    {rows: rows, ahead: []*dumplog.Request{never}},
		"one that may after one that cannot": {rows: rows, ahead: []*dumplog.Request{never, perhaps("c")}, want: true},
		"the one that wrote the next":        {rows: rows, ahead: []*dumplog.Request{perhaps("d"), perhaps("c")}},
		"nothing follows":                    {rows: rows[:1], ahead: []*dumplog.Request{perhaps("d")}, want: true},
		"unreadable pages follow":            {rows: []row{rows[0], {hole: true}}, ahead: []*dumplog.Request{perhaps("d")}, want: true},
		"no writer of keys": {rows: rows, ahead: []*dumplog.Request{{Kind: dumplog.KindAlarm,
			Alarm: &dumplog.AlarmRequest{}}}},
		"it does not decode": {rows: rows, ahead: []*dumplog.Request{{}}, want: true,
			edit: func(b *bench) { b.items[1].err = errDoubted }},
		"it was not applied": {rows: rows, ahead: []*dumplog.Request{perhaps("c")},
			edit: func(b *bench) { b.sim.m.AppliedMin = b.items[0].entry.Index }},
	} {
		b := newBench(t, 6, -1, c.rows...).log(append([]*dumplog.Request{perhaps("b")}, c.ahead...)...)
		b.sim.Keys.Write([]apply.Write{{Key: "a"}}, apply.Key{Mod: 2}) // with a value that is not known
		if c.edit != nil {
			c.edit(b)
		}
		if got := b.sim.matcher.othersMayHave(b.items[1:]); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOldRevision: records of a revision that the model already has are of no entry.
func TestOldRevision(t *testing.T) {
	b := newBench(t, 6, -1, rec(1, 0, "z", "1"), rec(2, 0, "a", "1")).log(put("a", "1"))
	if b.want("applied"); !slices.Equal(b.sim.res.Extra, []int64{1}) || b.sim.Revision != 2 {
		t.Errorf("extra %v, revision %d", b.sim.res.Extra, b.sim.Revision)
	}
}

// TestUndecodedWriter: the next records are those of an entry that does not decode where the entries after it fit the
// records after them better, or none of them can have written any.
func TestUndecodedWriter(t *testing.T) {
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		rows []row
		want []string
		took bool
	}{
		"no record": {want: []string{"no-effect"}},
		"a later revision": {log: []*dumplog.Request{put("c", "1")}, rows: []row{rec(4, 0, "c", "1")},
			want: []string{"no-effect", "contradicted"}},
		"a later revision, nothing after it": {rows: []row{rec(4, 0, "z", "1")}, want: []string{"no-effect"}},
		"nothing after it":                   {rows: []row{rec(3, 0, "z", "1")}, want: []string{"outside-history"}, took: true},
		"a put after it has the record": {log: []*dumplog.Request{put("c", "1")}, rows: []row{rec(3, 0, "c", "1")},
			want: []string{"no-effect", "applied"}},
		"a put after it has the next record": {log: []*dumplog.Request{put("c", "1")},
			rows: []row{rec(3, 0, "z", "1"), rec(4, 0, "c", "1")}, want: []string{"outside-history", "applied"}, took: true},
		"an entry after it may have the record": {log: []*dumplog.Request{perhaps("c")}, rows: []row{rec(3, 0, "c", "1")},
			want: []string{"no-effect", "applied"}},
		"an entry after it may have either record": {log: []*dumplog.Request{perhaps("c")},
			rows: []row{rec(3, 0, "c", "1"), record3(4, 3, 2, "c", "1")}, want: []string{"no-effect", "applied"}},
		"an entry after it may have the next record": {log: []*dumplog.Request{perhaps("c")},
			rows: []row{rec(3, 0, "z", "1"), rec(4, 0, "c", "1")}, want: []string{"outside-history", "applied"}, took: true},
		"an entry after it has neither": {log: []*dumplog.Request{perhaps("c")}, rows: []row{rec(3, 0, "z", "1")},
			want: []string{"outside-history", "no-effect"}, took: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 6, -1, append([]row{rec(2, 0, "a", "1")}, c.rows...)...).
				log(append([]*dumplog.Request{put("a", "1"), {}}, c.log...)...)
			b.items[1].err = errDoubted
			b.want(append([]string{"applied"}, c.want...)...)
			if took := slices.Equal(b.sim.res.unknownWrites, []uint64{2}); took != c.took {
				t.Errorf("entries with unknown writes: %v", b.sim.res.unknownWrites)
			}
			if k := b.sim.Keys.Get("z"); c.took != (k != nil) || k != nil && k.Mod != 3 {
				t.Errorf("the key is %+v", k)
			}
		})
	}
}

// TestPartOfATransaction: of the records of a transaction only the first ones are there. Those of a delete are not told
// apart from other records of the same keys.
func TestPartOfATransaction(t *testing.T) {
	both := []dumplog.RequestOp{putOp("b", "1"), putOp("c", "1")}
	for name, c := range map[string]struct {
		r       *dumplog.Request
		row     row
		partial bool
		left    string // a key that the model has afterwards
	}{
		"the first put":     {txn(nil, both, nil), rec(4, 0, "b", "1"), true, "b"},
		"the second put":    {txn(nil, both, nil), rec(4, 1, "c", "1"), false, "c"},
		"another value":     {txn(nil, both, nil), rec(4, 0, "b", "X"), false, "c"},
		"the first deleted": {del("a", "b"), tomb(4, 0, "a"), false, "x"},
	} {
		b := newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "a1", "1"), c.row).
			log(put("a", "1"), put("a1", "1"), c.r)
		b.sim.Keys.Write([]apply.Write{{Key: "x"}}, apply.Key{Mod: 1})
		var o Outcome
		for i, it := range b.items {
			o = b.sim.step(it, b.items[i+1:])
		}
		if o.State != Contradicted || o.Partial != c.partial || o.Rev != 4 || b.sim.Keys.Get(c.left) == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestDeletedUnseen: of the tombstones of a delete one is not there. The record was lost, also where a later entry can
// have written what is left, if the key was gone afterwards.
func TestDeletedUnseen(t *testing.T) {
	again := record3(5, 2, 2, "b", "2")
	for name, c := range map[string]struct {
		rows []row
		want string
	}{
		"created again":     {[]row{rec(5, 0, "b", "2")}, "contradicted"},
		"it lived on":       {[]row{again}, "missing"},
		"deleted later":     {[]row{tomb(5, 0, "b")}, "missing"},
		"not written again": {nil, "missing"},
	} {
		later := []*dumplog.Request{del("a", ""), put("b", "2")}
		if name == "deleted later" {
			later[1] = del("b", "")
		}
		b := newBench(t, 6, -1, append([]row{rec(2, 0, "a", "1"), rec(3, 0, "b", "1"), tomb(4, 0, "a")}, c.rows...)...).
			log(append([]*dumplog.Request{put("a", "1"), put("b", "1"), del("a", "c")}, later...)...)
		if got := b.run(); got[2] != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRestartBeforeItsPublishEntry: a write that only the auth revision after a restart refuses is refused although the
// publish entry of the restart comes later.
func TestRestartBeforeItsPublishEntry(t *testing.T) {
	for name, c := range map[string]struct {
		stamp uint64 // of the write without a record
		from  uint64 // the last proposal of the process before
		want  string
	}{
		"refused after the restart": {17, 1, "refused: old auth revision"},
		"stamped after it":          {20, 1, "missing"},
		"before the restart":        {17, 2, "missing"},
	} {
		b := newBench(t, 4, -1, rec(2, 0, "a", "1"), rec(3, 0, "c", "1")).
			log(byRoot(put("a", "1"), 17), byRoot(put("b", "1"), c.stamp), byRoot(put("c", "1"), 20))
		b.sim.m.DB = &evidence.DB{Handle: &dumpdb.DB{}, Auth: dumpdb.Auth{Revision: 17, HasRevision: true}}
		aw := b.sim.auth
		aw.Auth = rooted()
		aw.Auth.Revision, aw.plain = 17, &authPlan{start: 17}
		aw.restarts, aw.stamps = []restart{{index: 5, from: c.from}}, []Stamp{{Index: 6, AuthRevision: 20}}
		t.Log(name)
		b.want("applied", c.want, "applied")
	}
}

// TestAuthAtMost: a put of a user that took effect shows that the member's auth revision was not above the one stamped,
// where permissions were checked.
func TestAuthAtMost(t *testing.T) {
	first := byRoot(put("a", "1"), 17)
	for name, c := range map[string]struct {
		r    *dumplog.Request
		row  row
		edit func(*bench)
		want uint64
	}{
		"a put":              {r: byRoot(put("b", "1"), 18), row: rec(3, 0, "b", "1"), want: 2},
		"no user":            {r: put("b", "1"), row: rec(3, 0, "b", "1"), want: 1},
		"a delete":           {r: byRoot(del("a", ""), 18), row: tomb(3, 0, "a"), want: 1},
		"without effect":     {r: byRoot(del("x", ""), 18), row: rec(3, 0, "b", "1"), want: 1},
		"without its record": {r: byRoot(put("b", "1"), 18), row: rec(4, 0, "c", "1"), want: 1},
		"no user, but an auth revision": {r: &dumplog.Request{Kind: dumplog.KindPut, Put: put("b", "1").Put,
			Header: dumplog.Header{AuthRevision: 18}}, row: rec(3, 0, "b", "1"), want: 1,
			edit: func(b *bench) { b.sim.Auth.Enabled = false }},
		"no auth revision": {r: byRoot(put("b", "1"), 0), row: rec(3, 0, "b", "1"), want: 1,
			edit: func(b *bench) { b.sim.Auth.Enabled = false }},
	} {
		b := newBench(t, 5, -1, rec(2, 0, "a", "1"), c.row).log(first, c.r)
		b.sim.Auth, b.sim.auth.plain = rooted(), &authPlan{start: 17}
		b.sim.Auth.Revision = 17
		if c.edit != nil {
			c.edit(b)
		}
		b.run()
		want := Stamp{Index: c.want, AuthRevision: 16 + c.want}
		if got := b.sim.res.AuthAtMost; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	b := newBench(t, 5, -1, rec(2, 0, "a", "1")).log(first)
	b.sim.Auth, b.sim.auth.plain, b.sim.AlarmsUnsure = rooted(), &authPlan{start: 17}, true
	b.sim.Auth.Revision = 17
	if b.run(); b.sim.res.AuthAtMost.Index != 0 {
		t.Errorf("an alarm may have disabled the checks: %+v", b.sim.res.AuthAtMost)
	}
}

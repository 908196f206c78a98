package replay

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// bench is a model over hand-made records of bucket key and a hand-made log.
type bench struct {
	*testing.T
	sim   *sim
	items []*item
}

// newBench makes a model of a member of the given minor line whose database holds the records; compact is its compact
// revision.
func newBench(t *testing.T, minor int, compact int64, rows ...row) *bench {
	t.Helper()
	b := &bench{T: t}
	lv := &logView{m: &evidence.Member{AppliedMin: 1000, AppliedMax: 1000}, compacted: compact}
	b.sim = simOf(&subject{logView: lv, Model: apply.NewModel(release.AnyOf(minor)), res: &MemberResult{},
		touched: map[string]bool{}, met: true, cur: &cursor{rows: startPrefetch(slices.Values(rows), nil)}})
	b.sim.LastCompact = compact
	t.Cleanup(b.sim.cur.stop)
	return b
}

func (b *bench) log(reqs ...*dumplog.Request) *bench {
	for _, r := range reqs {
		b.items = append(b.items, &item{entry: dumplog.Entry{Term: 1, Index: uint64(len(b.items) + 1)}, req: r})
	}
	return b
}

// run replays the log and returns the outcomes as text.
func (b *bench) run() []string {
	var out []string
	for i, it := range b.items {
		o := b.sim.step(it, b.items[i+1:])
		s := o.State.String()
		if o.Reason != ReasonNone {
			s += ": " + string(o.Reason)
		}
		if o.Against {
			s += ", against the rules"
		}
		if o.excluded {
			s += ", by the keys"
		}
		out = append(out, s)
	}
	return out
}

func (b *bench) want(want ...string) {
	b.Helper()
	if got := b.run(); !slices.Equal(got, want) {
		b.Errorf("outcomes %q, want %q", got, want)
	}
}

func rec(main, sub int64, key, value string) row {
	return row{record: record{rev: dumpdb.Rev{Main: main, Sub: sub}, key: key, create: main, version: 1,
		vhash: apply.SumOf([]byte(value))}}
}

func tomb(main, sub int64, key string) row {
	return row{record: record{rev: dumpdb.Rev{Main: main, Sub: sub}, key: key, del: true}}
}

func put(key, value string) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte(key), Value: []byte(value)}}
}

func del(key, end string) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindDeleteRange,
		DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}
}

func txn(c []dumplog.Compare, success, failure []dumplog.RequestOp) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindTxn,
		Txn: &dumplog.TxnRequest{Compare: c, Success: success, Failure: failure}}
}

func putOp(key, value string) dumplog.RequestOp { return dumplog.RequestOp{Put: put(key, value).Put} }

func delOp(key, end string) dumplog.RequestOp {
	return dumplog.RequestOp{DeleteRange: del(key, end).DeleteRange}
}

func cmpMod(key string, mod int64) []dumplog.Compare {
	return []dumplog.Compare{{Target: apply.TargetMod, Result: apply.ResultEqual, Key: []byte(key), Num: mod}}
}

func TestInOrder(t *testing.T) {
	newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "2"), tomb(4, 0, "a"), tomb(4, 1, "b")).
		log(put("a", "1"), put("b", "2"), del("x", ""), del("a", "c"), del("a", "c")).
		want("applied", "applied", "no-effect", "applied", "no-effect")
}

// TestResync: after a difference the model follows the database, so that one lost write does not make every later look
// wrong.
func TestResync(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "c", "3"), rec(4, 0, "d", "4")).
			log(put("a", "1"), put("b", "2"), put("c", "3"), put("d", "4")).
			want("applied", "missing", "applied", "applied")
	})
	t.Run("missing at the end", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1")).log(put("a", "1"), put("b", "2")).want("applied", "missing")
	})
	t.Run("extra", func(t *testing.T) {
		b := newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "ghost", "?"), rec(4, 0, "b", "2"), rec(5, 0, "c", "3")).
			log(put("a", "1"), put("b", "2"), put("c", "3"))
		b.want("applied", "applied", "applied")
		if !slices.Equal(b.sim.res.Extra, []int64{3}) {
			t.Errorf("extra revisions %v, want 3", b.sim.res.Extra)
		}
	})
	t.Run("another value", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "X"), rec(4, 0, "c", "3")).
			log(put("a", "1"), put("b", "2"), put("c", "3")).
			want("applied", "contradicted", "applied")
	})
	t.Run("another key", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "z", "2"), rec(4, 0, "c", "3")).
			log(put("a", "1"), put("b", "2"), put("c", "3")).
			want("applied", "contradicted", "applied")
	})
	t.Run("revision gone", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(4, 0, "c", "3")).
			log(put("a", "1"), put("b", "2"), put("c", "3")).
			want("applied", "contradicted", "applied")
	})
	t.Run("behind an unreadable page", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), row{hole: true}, rec(4, 0, "c", "3")).
			log(put("a", "1"), put("b", "2"), put("c", "3")).
			want("applied", "outside-history", "applied")
	})
	t.Run("above what the database certainly holds", func(t *testing.T) {
		b := newBench(t, 4, -1, rec(2, 0, "a", "1")).log(put("a", "1"), put("b", "2"))
		b.sim.m.AppliedMin = 1
		b.want("applied", "not-applied")
	})
}

func TestTxn(t *testing.T) {
	base := []row{rec(2, 0, "a", "m")}
	for name, c := range map[string]struct {
		req  *dumplog.Request
		rows []row
		want string
	}{
		"success": {txn(cmpMod("a", 2), []dumplog.RequestOp{putOp("b", "1"), delOp("a", "")}, nil),
			[]row{rec(3, 0, "b", "1"), tomb(3, 1, "a")}, "applied"},
		"failure branch": {txn(cmpMod("a", 7), nil, []dumplog.RequestOp{putOp("else", "1")}),
			[]row{rec(3, 0, "else", "1")}, "applied"},
		"nothing to do": {txn(cmpMod("a", 7), []dumplog.RequestOp{putOp("b", "1")}, nil), nil, "no-effect"},
		"own write": {txn(nil, []dumplog.RequestOp{putOp("p1", "1"), delOp("p", "q")}, nil),
			[]row{rec(3, 0, "p1", "1"), tomb(3, 1, "p1")}, "applied"},
		"missing value": {txn([]dumplog.Compare{{Target: apply.TargetValue, Result: apply.ResultNotEqual,
			Key: []byte("none"), Value: []byte("x")}}, []dumplog.RequestOp{putOp("yes", "1")},
			[]dumplog.RequestOp{putOp("no", "1")}), []row{rec(3, 0, "no", "1")}, "applied"},
		"missing version": {txn([]dumplog.Compare{{Target: apply.TargetVersion, Result: apply.ResultEqual,
			Key: []byte("none")}}, []dumplog.RequestOp{putOp("yes", "1")}, nil), []row{rec(3, 0, "yes", "1")},
			"applied"},
		"nested decided before writes": {txn(nil,
			[]dumplog.RequestOp{putOp("a", "new"),
				{Txn: txn(cmpMod("a", 2), []dumplog.RequestOp{putOp("in", "1")}, nil).Txn}}, nil),
			[]row{rec(3, 0, "a", "new"), rec(3, 1, "in", "1")}, "applied"},
		"lease unknown": {txn(nil, []dumplog.RequestOp{{Put: &dumplog.PutRequest{Key: []byte("l"), Lease: 9}}}, nil),
			nil, "refused: lease not found"},
		"range of the future, 3.7": {txn(nil,
			[]dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte("a"), Revision: 99}}, putOp("b", "1")}, nil),
			nil,
			"refused: future revision"},
	} {
		t.Run(name, func(t *testing.T) {
			newBench(t, 7, -1, append(slices.Clone(base), c.rows...)...).log(put("a", "m"), c.req).want("applied",
				c.want)
		})
	}
}

// TestAgainstTheRules: records in the place of an entry that certainly has no effect are distinguished from those of
// one that may have had it.
func TestAgainstTheRules(t *testing.T) {
	guarded := txn(cmpMod("a", 7), []dumplog.RequestOp{putOp("b", "1")}, nil)
	rows := []row{rec(2, 0, "a", "m"), rec(3, 0, "b", "1")}
	newBench(t, 6, -1, rows...).log(put("a", "m"), guarded).want("applied",
		"applied, against the rules, by the keys")
	leased, record := put("b", "1"), rec(3, 0, "b", "1")
	leased.Put.Lease, record.lease = 9, 9 // which was not granted
	newBench(t, 6, -1, rec(2, 0, "a", "m"), record).log(put("a", "m"), leased).want("applied",
		"applied, against the rules")
	b := newBench(t, 6, -1, rows...).log(put("a", "m"), guarded)
	b.sim.KeysKnown = false
	b.want("applied", "applied")
}

// TestKeysDecide: where it is not known whether an entry was refused, the keys may still show that records are not its
// own, if an entry after it can have written them. Otherwise it wrote them.
func TestKeysDecide(t *testing.T) {
	rows := []row{rec(2, 0, "a", "m"), rec(3, 0, "b", "m"), tomb(4, 0, "a")}
	for name, c := range map[string]struct {
		req  *dumplog.Request
		want []string
	}{
		"its guard does not hold": {txn(cmpMod("a", 7), []dumplog.RequestOp{delOp("a", "c")}, nil),
			[]string{"applied", "applied", "no-effect", "applied"}},
		"it would delete more": {del("a", "c"), []string{"applied", "applied", "no-effect", "applied"}},
		"it fits as well":      {del("a", ""), []string{"applied", "applied", "applied", "no-effect"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 6, -1, rows...).log(put("a", "m"), put("b", "m"), c.req, del("a", ""))
			b.sim.AlarmsUnsure = true
			b.want(c.want...)
		})
	}
	b := newBench(t, 6, -1, rows...).log(put("a", "m"), put("b", "m"), txn(cmpMod("a", 7),
		[]dumplog.RequestOp{delOp("a", "c")}, nil))
	b.sim.AlarmsUnsure = true
	b.want("applied", "applied", "applied")
}

// TestRecordsOfLostEntries: the records in the place of an entry without effect are of one that the log has lost, where
// its revision is among the last ones that those may have made.
func TestRecordsOfLostEntries(t *testing.T) {
	guarded := txn(cmpMod("a", 7), []dumplog.RequestOp{putOp("b", "1")}, nil)
	rows := []row{rec(2, 0, "a", "m"), rec(3, 0, "b", "1")}
	for name, c := range map[string]struct {
		applied uint64
		newest  int64
		want    string
	}{
		"one is lost":                         {3, 3, "no-effect"},
		"none is lost":                        {2, 3, "applied, against the rules, by the keys"},
		"those that are lost made later ones": {3, 4, "applied, against the rules, by the keys"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 6, -1, rows...).log(put("a", "m"), guarded)
			b.sim.logEnd, b.sim.m.AppliedMin, b.sim.m.AppliedMax = 2, c.applied, c.applied
			b.sim.m.DB = &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: c.newest}}
			b.want("applied", c.want)
		})
	}
}

// TestStrippedRange: up to 3.6 a range that fails is dropped where no client waits, so the database decides.
func TestStrippedRange(t *testing.T) {
	req := txn(nil, []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte("a"), Revision: 99}},
		putOp("b", "1")}, nil)
	newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "1")).log(put("a", "1"), req).want("applied", "applied")
	newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "c", "1")).log(put("a", "1"), req, put("c", "1")).want("applied",
		"no-effect", "applied")
}

func TestLeases(t *testing.T) {
	grant := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7, TTL: 60}}
	revoke := &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: 7}}
	with := func(key string) *dumplog.Request { r := put(key, "v"); r.Put.Lease = 7; return r }
	held := func(main int64, key string) row { r := rec(main, 0, key, "v"); r.lease = 7; return r }
	newBench(t, 6, -1, held(2, "b"), held(3, "a"), tomb(4, 0, "a"), tomb(4, 1, "b"), rec(5, 0, "c", "3")).
		log(with("early"), grant, grant, with("b"), with("a"), revoke, revoke, with("late"), put("c", "3")).
		want("refused: lease not found", "applied", "refused: lease already exists", "applied", "applied", "applied",
			"refused: lease not found",
			"refused: lease not found", "applied")
}

func TestAlarms(t *testing.T) {
	alarm := func(action int32) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindAlarm,
			Alarm: &dumplog.AlarmRequest{Action: action, MemberID: 1, Alarm: apply.AlarmNoSpace}}
	}
	newBench(t, 6, -1, rec(2, 0, "a", "1"), tomb(3, 0, "a"), rec(4, 0, "b", "2")).
		log(put("a", "1"), alarm(1), put("x", "1"), txn(nil, []dumplog.RequestOp{putOp("x", "1")}, nil), del("a", ""),
			alarm(2), put("b", "2")).
		want("applied", "applied", "refused: NOSPACE alarm", "refused: NOSPACE alarm", "applied", "applied", "applied")
}

// rooted is auth that is on, with user and role root.
func rooted() *apply.Auth {
	a := apply.NewAuth(release.AnyOf(4))
	a.Enabled, a.Users[apply.Root] = true, &apply.User{Roles: []string{apply.Root}}
	return a
}

// TestRevokeByOldRoot: a lease that expired before auth was changed is revoked by root with the auth revision from
// then. Releases differ, so the database decides, also where the next entry deletes another key.
func TestRevokeByOldRoot(t *testing.T) {
	by := func(r *dumplog.Request, rev uint64) *dumplog.Request {
		r.Header = dumplog.Header{Username: apply.Root, AuthRevision: rev}
		return r
	}
	grant := &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 7, TTL: 60}}
	leased := func() *dumplog.Request {
		r := by(put("a", "v"), 17)
		r.Put.Lease = 7
		return r
	}
	revoke := func() *dumplog.Request {
		return by(&dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: 7}}, 16)
	}
	first := rec(2, 0, "a", "v")
	first.lease = 7
	for name, c := range map[string]struct {
		version release.Version
		rows    []row
		want    string
	}{
		"unknown, applied": {release.AnyOf(4), []row{first, tomb(3, 0, "a"), rec(4, 0, "b", "v")}, "applied"},
		"unknown, refused": {release.AnyOf(4), []row{first, rec(3, 0, "b", "v")}, "refused: old auth revision"},
		"3.4.23":           {release.Exact(4, 23), []row{first, rec(3, 0, "b", "v")}, "refused: old auth revision"},
		"3.5.10":           {release.Exact(5, 10), []row{first, tomb(3, 0, "a"), rec(4, 0, "b", "v")}, "applied"},
		"3.5.10, missing":  {release.Exact(5, 10), []row{first, rec(3, 0, "b", "v")}, "missing"},
	} {
		b := newBench(t, 4, -1, c.rows...).log(grant, leased(), revoke(), by(put("b", "v"), 17))
		b.sim.Auth, b.sim.Version = rooted(), c.version
		b.sim.Auth.Revision, b.sim.Auth.Version = 17, c.version
		t.Log(name)
		b.want("applied", "applied", c.want, "applied")
		if b.sim.Auth.Revision != 17 {
			t.Errorf("%s: the auth revision is taken for %d", name, b.sim.Auth.Revision)
		}
	}
}

// TestOldAuthRevision: a write stamped below the member's auth revision is refused; when it stands in the database
// after all, the model's number was too high and is corrected.
func TestOldAuthRevision(t *testing.T) {
	stamped := func(key string, rev uint64) *dumplog.Request {
		r := put(key, "v")
		r.Header = dumplog.Header{Username: "root", AuthRevision: rev}
		return r
	}
	b := newBench(t, 4, -1, rec(2, 0, "b", "v"), rec(3, 0, "d", "v")).log(stamped("a", 12), stamped("b", 17),
		stamped("c", 16), stamped("d", 17))
	b.sim.Auth = rooted()
	b.sim.Auth.Revision = 17
	b.want("refused: old auth revision", "applied", "refused: old auth revision", "applied")

	b = newBench(t, 4, -1, rec(2, 0, "a", "v"), rec(3, 0, "b", "v")).log(stamped("a", 12), stamped("b", 12))
	b.sim.Auth = rooted()
	b.sim.Auth.Revision = 17
	b.sim.res.Jumps = []Jump{{Extra: 9}}
	b.want("applied", "applied")
	if got := fmt.Sprint(b.sim.Auth.Revision, b.sim.res.Jumps[0].Extra); got != "12 4" {
		t.Errorf("auth revision and rise %s, want 12 4", got)
	}
}

// TestRisesOfSeveralRestarts: without stamps between them each restart takes what it can explain, the last one the
// rest.
func TestRisesOfSeveralRestarts(t *testing.T) {
	s := simOf(&subject{logView: &logView{m: &evidence.Member{DB: &evidence.DB{}}}, res: &MemberResult{}})
	s.auth.plain, s.auth.restarts = &authPlan{start: 10}, []restart{{index: 20}, {index: 30}, {index: 40}}
	s.m.DB.Auth.Revision = 10 + 5 + 5 + 2
	for i, want := range []int64{5, 5, 2} {
		got := s.auth.authDelta(&s.auth.restarts[i], 5)
		if got != want {
			t.Errorf("restart %d takes %d, want %d", i+1, got, want)
		}
		s.res.Jumps = append(s.res.Jumps, Jump{Extra: uint64(got)})
	}
	// Its own stamps in a life say exactly how far it had risen.
	s.res.Jumps, s.auth.stamps = nil, []Stamp{{Index: 25, AuthRevision: 13}}
	if got := s.auth.authDelta(&s.auth.restarts[0], 5); got != 3 {
		t.Errorf("with a stamp of 13 the first takes %d, want 3", got)
	}
}

// TestDeletesBehindHole: behind a page that cannot be read, deletes that any revoke or range may have made prove
// nothing about the one that they are given to; records that a value identifies do.
func TestDeletesBehindHole(t *testing.T) {
	revoked := &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: 7}}
	rows := func(last row) []row { return []row{rec(2, 0, "a", "1"), {hole: true}, rec(4, 0, "c", "3"), last} }
	hidden := func() []*dumplog.Request { return []*dumplog.Request{put("a", "1"), put("b", "2"), put("c", "3")} }
	newBench(t, 6, -1, rows(tomb(5, 0, "x"))...).log(append(hidden(), revoked)...).
		want("applied", "outside-history", "applied", "outside-history")
	newBench(t, 6, -1, rows(tomb(5, 0, "x"))...).log(append(hidden(), del("x", "z"))...).
		want("applied", "outside-history", "applied", "outside-history")
	newBench(t, 6, -1, rows(rec(5, 0, "d", "1"))...).log(append(hidden(),
		txn(cmpMod("x", 3), []dumplog.RequestOp{putOp("d", "1")}, nil))...).
		want("applied", "outside-history", "applied", "applied")
	// Without a hole the same deletes are what the log says.
	newBench(t, 6, -1, rec(2, 0, "x", "1"), tomb(3, 0, "x")).log(put("x", "1"), del("x", "z")).want("applied",
		"applied")
}

// TestUnsureInPages: an entry in unreadable pages of which it is not known whether it wrote makes the count of
// revisions uncertain. Records after the pages that entries before wrote are not written twice, and those of entries
// after are not taken from them.
func TestUnsureInPages(t *testing.T) {
	ifX := func(key string) *dumplog.Request {
		return txn(cmpMod("x", 2), []dumplog.RequestOp{putOp(key, "1")}, nil)
	}
	rows := []row{{hole: true}, rec(4, 0, "b", "1"), rec(5, 0, "c", "1"), rec(6, 0, "d", "1")}
	// The transaction may have written the hidden revision 3, and then b is not what a restart repeated.
	b := newBench(t, 4, -1, rows...)
	b.sim.auth.restarts, b.sim.past = []restart{{index: 3}}, pastItems(b)
	b.log(put("a", "1"), ifX("q"), put("b", "1"), put("c", "1"), put("d", "1")).
		want("outside-history", "outside-history", "outside-history", "applied", "applied")
	if x := b.sim.res; len(x.Reruns)+len(x.Extra) > 0 {
		t.Errorf("records are said to be written twice: %v, or by nothing: %v", x.Reruns, x.Extra)
	}
	// Where the count is certain, records that an entry before wrote are none that the log explains.
	b = newBench(t, 4, -1, rows...)
	b.log(put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")).
		want("outside-history", "outside-history", "applied", "applied")
	if got := b.sim.res.Extra; !slices.Equal(got, []int64{4}) {
		t.Errorf("revisions that nothing explains: %v, want 4", got)
	}
	// Records that nothing explains say nothing of the entry whose revision they may not have.
	b = newBench(t, 4, -1, row{hole: true}, rec(4, 0, "zz", "1"))
	b.sim.past = pastItems(b)
	b.log(put("a", "1"), ifX("q"), put("b", "1"), put("c", "1")).
		want("outside-history", "outside-history", "outside-history", "outside-history")
	newBench(t, 4, -1, row{hole: true}, rec(4, 0, "zz", "1")).log(put("a", "1"), put("q", "1"), put("c", "1")).
		want("outside-history", "outside-history", "contradicted")
}

// pastItems yields the log of a bench from an index on.
func pastItems(b *bench) func(from uint64) iter.Seq2[*item, error] {
	return func(from uint64) iter.Seq2[*item, error] {
		return func(yield func(*item, error) bool) {
			for _, it := range b.items {
				if it.entry.Index >= from && !yield(it, nil) {
					return
				}
			}
		}
	}
}

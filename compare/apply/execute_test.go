package apply

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

func TestExecute(t *testing.T) {
	compaction := func(rev int64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindCompaction, Compaction: &dumplog.CompactionRequest{Revision: rev}}
	}
	grant := func(id, ttl int64) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: id, TTL: ttl}}
	}
	raise := func(action int32) *dumplog.Request {
		return &dumplog.Request{Kind: dumplog.KindAlarm,
			Alarm: &dumplog.AlarmRequest{Action: action, Alarm: AlarmNoSpace, MemberID: 1}}
	}
	for name, c := range map[string]struct {
		r      *dumplog.Request
		edit   func(*Model)
		result Result
		reason Reason
		after  string
	}{
		"compaction":            {r: compaction(7), result: Applied, after: "compact 7, leases 2, alarms 0, auth 1"},
		"compacted before":      {r: compaction(4), result: Refused, reason: ReasonCompacted},
		"future compaction":     {r: compaction(10), result: Refused, reason: ReasonFuture},
		"compaction at CORRUPT": {r: compaction(7), edit: alarm(AlarmCorrupt), result: Refused, reason: ReasonCorrupt},
		"compaction at NOSPACE": {r: compaction(7), edit: alarm(AlarmNoSpace), result: Applied,
			after: "compact 7, leases 2, alarms 1, auth 1"},
		"grant":                {r: grant(9, 60), result: Applied, after: "compact 4, leases 3, alarms 0, auth 1"},
		"grant without an ID":  {r: grant(0, 60), result: Refused, reason: ReasonInvalid},
		"grant of one there":   {r: grant(7, 60), result: Refused, reason: ReasonLeaseExists},
		"grant, perhaps there": {r: grant(7, 60), edit: stateUnknown, result: Applied},
		"grant at NOSPACE":     {r: grant(9, 60), edit: alarm(AlarmNoSpace), result: Refused, reason: ReasonNoSpace},
		"raise an alarm": {r: raise(alarmActivate), result: Applied,
			after: "compact 4, leases 2, alarms 1, auth 1"},
		"raise it twice": {r: raise(alarmActivate), edit: alarm(AlarmNoSpace), result: NoEffect},
		"clear an alarm": {r: raise(alarmDeactivate), edit: alarm(AlarmNoSpace), result: Applied,
			after: "compact 4, leases 2, alarms 0, auth 1"},
		"clear none": {r: raise(alarmDeactivate), result: NoEffect},
		"add a user": {r: authOp(dumplog.KindAuthUserAdd, "u", ""), result: Applied,
			after: "compact 4, leases 2, alarms 0, auth 2"},
		"add a user twice": {r: authOp(dumplog.KindAuthUserAdd, "u", ""),
			edit: func(m *Model) { m.Auth.Users["u"] = &User{} }, result: Refused, reason: ReasonInvalid},
		"disable what is off": {r: authOp(dumplog.KindAuthDisable, "", ""), result: NoEffect},
		"enable without root": {r: authOp(dumplog.KindAuthEnable, "", ""), result: Refused, reason: ReasonInvalid},
		"enable": {r: authOp(dumplog.KindAuthEnable, "", ""),
			edit: func(m *Model) { m.Auth.Users["root"] = &User{Roles: []string{"root"}} }, result: Applied},
		"an empty entry": {r: &dumplog.Request{Kind: dumplog.KindEmpty}, result: NoEffect},
		"a request without auth": {r: &dumplog.Request{Kind: dumplog.KindAuthUserAdd}, result: Refused,
			reason: ReasonInvalid},
	} {
		m := modelOf("3.5")
		if c.edit != nil {
			c.edit(m)
		}
		before := stateText(m)
		result, reason := m.Execute(c.r, 2, 33)
		if result != c.result || reason != c.reason {
			t.Errorf("%s: %d %q, want %d %q", name, result, reason, c.result, c.reason)
		}
		want := c.after
		if want == "" && result != Applied {
			want = before
		}
		if got := stateText(m); want != "" && got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func stateText(m *Model) string {
	return fmt.Sprintf("compact %d, leases %d, alarms %d, auth %d", m.Compact, len(m.Leases), len(m.Alarms),
		m.Auth.Revision)
}

// TestLeaseLife: a lease knows its grant and its last checkpoint; one that is not there is passed over.
func TestLeaseLife(t *testing.T) {
	m := modelOf("3.5")
	m.Execute(&dumplog.Request{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 9, TTL: 60}}, 2,
		33)
	m.Execute(&dumplog.Request{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
		Checkpoints: []dumplog.LeaseCheckpoint{{ID: 9, RemainingTTL: 20}, {ID: 99, RemainingTTL: 1}}}}, 2, 34)
	if l := m.Leases[9]; *l != (Lease{TTL: 60, Remaining: 20, Term: 2, Granted: 33, Checkpoint: 34}) ||
		m.Leases[99] != nil {
		t.Errorf("%+v", l)
	}
	r := revokeRequest(9)
	if m.Take(r, m.Evaluate(r)); m.Leases[9] != nil || m.Revision != 9 {
		t.Errorf("the lease is still there, or a revoke without keys made revision %d", m.Revision)
	}
}

// TestTake: records of one revision, counted by key.
func TestTake(t *testing.T) {
	m := modelOf("3.5")
	r := txnRequest(txn(opPut("a", "1"), opDelete("b", ""), opPut("c", "2", onLease(7)), opPut("b", "3")))
	got := m.Take(r, m.Evaluate(r))
	want := []Key{{Name: "a", Create: 2, Mod: 10, Version: 4, Sum: SumOf([]byte("1"))}, {Name: "b"},
		{Name: "c", Create: 10, Mod: 10, Sub: 2, Version: 1, Lease: 7, Sum: SumOf([]byte("2"))},
		{Name: "b", Create: 10, Mod: 10, Sub: 3, Version: 1, Sum: SumOf([]byte("3"))}}
	if fmt.Sprint(got) != fmt.Sprint(want) || m.Revision != 10 {
		t.Errorf("revision %d\n%+v, want\n%+v", m.Revision, got, want)
	}
	if m.Keys.Attached(7, "a") || !m.Keys.Attached(7, "c") || m.Keys.CountOfLease(7) != 1 {
		t.Errorf("keys of lease 7: %v", m.Keys.OfLease(7))
	}
	alarm(AlarmNoSpace)(m)
	copied := m.Clone()
	delete(m.Alarms, Alarm{1, AlarmNoSpace})
	if len(copied.Alarms) != 1 {
		t.Error("the copy has no alarm")
	}
	r = deleteRequest("\x00", "\x00")
	m.Take(r, m.Evaluate(r))
	if m.Keys.Len() != 0 || copied.Keys.Len() != 4 || copied.Revision != 10 || copied.Keys.CountOfLease(7) != 1 ||
		m.Keys.CountOfLease(7) != 0 {
		t.Errorf("%d keys are left, the copy has %d", m.Keys.Len(), copied.Keys.Len())
	}
	for _, r := range []*dumplog.Request{putRequest("c", "1", onLease(99)), deleteRequest("c", "")} {
		if keys := m.Take(r, m.Evaluate(r)); keys != nil || m.Revision != 11 {
			t.Errorf("%s wrote %v", r.Kind, keys)
		}
	}
	delete(copied.Leases, 7)
	copied.Alarms[Alarm{1, AlarmNoSpace}] = struct{}{}
	if m.Leases[7] == nil || len(m.Alarms) != 0 {
		t.Error("the copy shares leases or alarms")
	}
}

// TestPredictedKeys: what is kept of values where no records follow, and how uncertainty is handed on.
func TestPredictedKeys(t *testing.T) {
	k := NewKeys()
	k.Forget("u")
	k.Put(Key{Name: "l", Loose: true, Create: 3, Version: 2})
	if k.Unsure() != 1 {
		t.Fatalf("%d unsure keys", k.Unsure())
	}
	long := make([]byte, maxHead+1)
	k.Write([]Write{{Key: "u", Value: []byte("1")}, {Key: "l", Value: long}, {Key: "n", Value: []byte("2")},
		{Key: "n", From: Rev{3, 0}}}, Key{Mod: 8, Entry: 5})
	if u := k.Get("u"); k.Unsure() != 0 || !u.Uncounted || !u.Loose || u.Unsure || u.Head != "1" || !u.Whole ||
		u.Entry != 5 {
		t.Errorf("a put makes an unsure key certain, except for its version and creation: %+v", k.Get("u"))
	}
	if l := k.Get("l"); !l.Loose || l.Uncounted || l.Create != 3 || l.Version != 3 || l.Whole ||
		len(l.Head) != maxHead {
		t.Errorf("%+v", l)
	}
	if n := k.Get("n"); n.Loose || n.Version != 2 || n.Head != "2" || !n.Whole {
		t.Errorf("a put that leaves the value leaves what is known of it: %+v", n)
	}
	k.Write([]Write{{Key: "o", From: Rev{3, 0}}, {Key: "n"}}, Key{Mod: 9, Entry: 6, Loose: true})
	if o := k.Get("o"); o.Whole || o.Head != "" || !o.Loose || !k.Get("n").Loose {
		t.Errorf("%+v", o)
	}
	k.Forget("o")
	if k.Remove("o"); k.Unsure() != 0 || k.Get("o") != nil {
		t.Error("a key that is removed is certain again")
	}
}

// TestRelation: the kept start of a value decides a compare wherever the values differ in it, or the other is not
// longer.
func TestRelation(t *testing.T) {
	whole := Key{Head: "mm", Whole: true}
	cut := Key{Head: "mm"}
	for _, c := range []struct {
		of    Key
		other string
		diff  int
		known bool
	}{
		{whole, "mm", 0, true}, {whole, "m", 1, true}, {whole, "mmm", -1, true}, {whole, "", 1, true},
		{cut, "mm", 1, true}, {cut, "m", 1, true}, {cut, "ml", 1, true}, {cut, "n", -1, true},
		{cut, "mna", -1, true}, {cut, "mmm", 0, false}, {cut, "", 1, true},
		{Key{}, "", 0, false}, {Key{}, "m", 0, false},
	} {
		if diff, known := c.of.relation([]byte(c.other)); diff != c.diff || known != c.known {
			t.Errorf("%q (whole %t) and %q: %d, %t; want %d, %t", c.of.Head, c.of.Whole, c.other, diff, known, c.diff,
				c.known)
		}
	}
}

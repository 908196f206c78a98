package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// modelOf is a model at revision 9, compacted at 4, with keys a (mod 5, on lease 7), b and d and the leases 7 and 8.
func modelOf(version string) *Model {
	m := NewModel(release.Of(version))
	m.Revision, m.Compact = 9, 4
	for _, k := range []Key{
		{Name: "a", Create: 2, Mod: 5, Version: 3, Lease: 7, Sum: SumOf([]byte("va")), Head: "va", Whole: true},
		{Name: "b", Create: 3, Mod: 3, Version: 1, Sum: SumOf([]byte("vb")), Head: "vb", Whole: true},
		{Name: "d", Create: 6, Mod: 6, Sub: 1, Version: 1, Lease: 8, Sum: SumOf([]byte("vd")), Head: "vd", Whole: true},
	} {
		m.Keys.Put(k)
	}
	m.Leases[7], m.Leases[8] = &Lease{TTL: 60}, &Lease{TTL: 60}
	return &m
}

// told is an effect as text: result or reason, then what is written; "?" at the end where it is not certain.
func told(e Effect) string {
	out := []string{[]string{"nothing", "applied", "refused"}[e.Result]}
	if e.Reason != ReasonNone {
		out = append(out, string(e.Reason))
	}
	for _, w := range e.Writes {
		switch {
		case w.Delete:
			out = append(out, "-"+w.Key)
		case w.From != Rev{}:
			out = append(out, fmt.Sprintf("%s=@%d.%d/%d", w.Key, w.From.Main, w.From.Sub, w.Lease))
		default:
			out = append(out, fmt.Sprintf("%s=%s/%d", w.Key, w.Value, w.Lease))
		}
	}
	if e.Rule != nil {
		out = append(out, "by "+e.Rule.ID)
	}
	if !e.Sure {
		out = append(out, "?")
	}
	return strings.Join(out, " ")
}

func putRequest(key, value string, edit ...func(*dumplog.PutRequest)) *dumplog.Request {
	p := &dumplog.PutRequest{Key: []byte(key), Value: []byte(value)}
	for _, f := range edit {
		f(p)
	}
	return &dumplog.Request{Kind: dumplog.KindPut, Put: p}
}

func onLease(id int64) func(*dumplog.PutRequest) { return func(p *dumplog.PutRequest) { p.Lease = id } }
func ignoreValue(p *dumplog.PutRequest)          { p.IgnoreValue = true }
func ignoreLease(p *dumplog.PutRequest)          { p.IgnoreLease = true }
func prevKV(p *dumplog.PutRequest)               { p.PrevKV = true }

func deleteRequest(key, end string) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindDeleteRange,
		DeleteRange: &dumplog.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end), PrevKV: true}}
}

func revokeRequest(id int64) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindLeaseRevoke, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: id}}
}

func txnRequest(t *dumplog.TxnRequest) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindTxn, Txn: t}
}

type evaluation struct {
	r    *dumplog.Request
	edit func(*Model)
	want string
}

func (c *evaluation) run(t *testing.T, name, version string) {
	t.Helper()
	m := modelOf(version)
	if c.edit != nil {
		c.edit(m)
	}
	before := describe(m)
	if got := told(m.Evaluate(c.r)); got != c.want {
		t.Errorf("%s: %s, want %s", name, got, c.want)
	}
	if after := describe(m); after != before {
		t.Errorf("%s: evaluating changed the model from %s to %s", name, before, after)
	}
}

// describe is the model as text.
func describe(m *Model) string {
	out := []string{fmt.Sprint(m.Revision, m.Compact, len(m.Leases), len(m.Alarms), m.Auth.Revision)}
	m.Keys.All(func(k *Key) bool {
		out = append(out, fmt.Sprint(*k))
		return true
	})
	return strings.Join(out, " ")
}

func stateUnknown(m *Model) { m.StateKnown = false }
func keysUnknown(m *Model)  { m.KeysKnown = false }
func unsureKey(name string) func(*Model) {
	return func(m *Model) { m.Keys.Forget(name) }
}
func alarm(typ int32) func(*Model) {
	return func(m *Model) { m.Alarms[Alarm{1, typ}] = struct{}{} }
}

func TestPut(t *testing.T) {
	for name, c := range map[string]evaluation{
		"new key":                          {r: putRequest("c", "1"), want: "applied c=1/0"},
		"a key that is there":              {r: putRequest("a", "1"), want: "applied a=1/0"},
		"empty value":                      {r: putRequest("a", ""), want: "applied a=/0"},
		"empty key, which the API refuses": {r: putRequest("", "1"), want: "applied =1/0"},
		"prev_kv":                          {r: putRequest("c", "1", prevKV), want: "applied c=1/0"},
		"lease":                            {r: putRequest("c", "1", onLease(7)), want: "applied c=1/7"},
		"no lease":                         {r: putRequest("c", "1", onLease(9)), want: "refused lease not found"},
		"lease, perhaps": {r: putRequest("c", "1", onLease(9)), edit: stateUnknown,
			want: "applied c=1/9 ?"},
		"lease that may be revoked": {r: putRequest("c", "1", onLease(7)),
			edit: func(m *Model) { m.Leases[7].Unsure = true }, want: "applied c=1/7 ?"},
		"ignore_value": {r: putRequest("d", "", ignoreValue), want: "applied d=@6.1/0"},
		"ignore_value with a lease": {r: putRequest("d", "", ignoreValue, onLease(7)),
			want: "applied d=@6.1/7"},
		"ignore_lease": {r: putRequest("a", "1", ignoreLease), want: "applied a=1/7"},
		"ignore both": {r: putRequest("a", "", ignoreValue, ignoreLease),
			want: "applied a=@5.0/7"},
		"ignore_value, no key": {r: putRequest("c", "", ignoreValue), want: "refused key not found"},
		"ignore_lease, no key": {r: putRequest("c", "1", ignoreLease), want: "refused key not found"},
		"ignore_value, no key and no lease": {r: putRequest("c", "", ignoreValue, onLease(9)),
			want: "refused lease not found"},
		"ignore_value, no key, lease unsure": {r: putRequest("c", "", ignoreValue, onLease(9)), edit: stateUnknown,
			want: "refused key not found"},
		"ignore_value, perhaps no key": {r: putRequest("c", "", ignoreValue), edit: keysUnknown,
			want: "refused key not found ?"},
		"ignore_value of an unsure key": {r: putRequest("a", "", ignoreValue), edit: unsureKey("a"),
			want: "applied a=/0 ?"},
		"plain put on an unsure key": {r: putRequest("a", "1"), edit: unsureKey("a"), want: "applied a=1/0"},
		"plain put, keys unknown":    {r: putRequest("a", "1"), edit: keysUnknown, want: "applied a=1/0"},
		"NOSPACE": {r: putRequest("a", "1"), edit: alarm(AlarmNoSpace),
			want: "refused NOSPACE alarm"},
		"NOSPACE, state unknown": {r: putRequest("a", "1"),
			edit: func(m *Model) { stateUnknown(m); alarm(AlarmNoSpace)(m) }, want: "refused NOSPACE alarm ?"},
		"CORRUPT": {r: putRequest("a", "1"), edit: alarm(AlarmCorrupt),
			want: "refused CORRUPT alarm"},
		"alarms not known": {r: putRequest("a", "1"), edit: func(m *Model) { m.AlarmsUnsure = true },
			want: "applied a=1/0 ?"},
	} {
		c.run(t, name, "3.5")
	}
	if e := modelOf("3.5").Evaluate(putRequest("a", "1")); !e.MayWrite || e.Writes[0].Sum != SumOf([]byte("1")) {
		t.Errorf("a put may write, and its record has the hash of the value: %+v", e)
	}
}

// TestForgottenLease: leases with a negative ID are not loaded at a start up to 3.4.19 and 3.5.2.
func TestForgottenLease(t *testing.T) {
	for version, want := range map[string]string{"3.3": "applied c=1/-5 ?", "3.4.19": "applied c=1/-5 ?",
		"3.4.20": "applied c=1/-5", "3.5": "applied c=1/-5 ?",
		"3.5.3": "applied c=1/-5", "3.6": "applied c=1/-5", "": "applied c=1/-5 ?"} {
		c := evaluation{r: putRequest("c", "1", onLease(-5)), edit: func(m *Model) { m.Leases[-5] = &Lease{} },
			want: want}
		c.run(t, version, version)
		c.r = putRequest("a", "", onLease(-5), ignoreValue)
		c.want = strings.Replace(want, "c=1", "a=@5.0", 1)
		c.run(t, version+" with ignore_value", version)
		c.r = revokeRequest(-5)
		c.want = strings.Replace(want, " c=1/-5", "", 1)
		c.run(t, version+" revoke", version)
		c.edit, c.want = nil, "refused lease not found"
		if strings.Contains(want, "?") {
			c.want += " ?"
		}
		c.run(t, version+" revoke of none", version)
	}
}

func TestDelete(t *testing.T) {
	for name, c := range map[string]evaluation{
		"one key":          {r: deleteRequest("a", ""), want: "applied -a"},
		"no key":           {r: deleteRequest("c", ""), want: "nothing"},
		"a range":          {r: deleteRequest("a", "c"), want: "applied -a -b"},
		"a range without":  {r: deleteRequest("e", "f"), want: "nothing"},
		"an empty range":   {r: deleteRequest("d", "a"), want: "nothing"},
		"from a key on":    {r: deleteRequest("b", "\x00"), want: "applied -b -d"},
		"all":              {r: deleteRequest("\x00", "\x00"), want: "applied -a -b -d"},
		"an unsure key":    {r: deleteRequest("a", "c"), edit: unsureKey("b"), want: "applied -a -b ?"},
		"beside an unsure": {r: deleteRequest("d", ""), edit: unsureKey("b"), want: "applied -d"},
		"keys unknown":     {r: deleteRequest("c", ""), edit: keysUnknown, want: "nothing ?"},
		"at NOSPACE":       {r: deleteRequest("a", ""), edit: alarm(AlarmNoSpace), want: "applied -a"},
		"at CORRUPT":       {r: deleteRequest("a", ""), edit: alarm(AlarmCorrupt), want: "refused CORRUPT alarm"},
		"alarms not known": {r: deleteRequest("a", ""), edit: func(m *Model) { m.AlarmsUnsure = true },
			want: "applied -a ?"},
		"revisions unknown": {r: deleteRequest("a", ""), edit: func(m *Model) { m.Loose = true }, want: "applied -a"},
	} {
		c.run(t, name, "3.5")
	}
}

func TestRevoke(t *testing.T) {
	for name, c := range map[string]evaluation{
		"a lease with a key": {r: revokeRequest(7), want: "applied -a"},
		"keys in order": {r: revokeRequest(7), edit: func(m *Model) { m.Keys.Put(Key{Name: "B", Lease: 7}) },
			want: "applied -B -a"},
		"without keys":      {r: revokeRequest(7), edit: func(m *Model) { m.Keys.Remove("a") }, want: "applied"},
		"no lease":          {r: revokeRequest(9), want: "refused lease not found"},
		"no lease, perhaps": {r: revokeRequest(9), edit: stateUnknown, want: "applied ?"},
		"a lease, perhaps": {r: revokeRequest(7), edit: func(m *Model) { m.Leases[7].Unsure = true },
			want: "applied -a ?"},
		"a key unsure":          {r: revokeRequest(7), edit: unsureKey("b"), want: "applied -a ?"},
		"keys unknown":          {r: revokeRequest(7), edit: keysUnknown, want: "applied -a ?"},
		"NOSPACE does not stop": {r: revokeRequest(7), edit: alarm(AlarmNoSpace), want: "applied -a"},
		"CORRUPT does":          {r: revokeRequest(7), edit: alarm(AlarmCorrupt), want: "refused CORRUPT alarm"},
	} {
		c.run(t, name, "3.5")
	}
}

// TestTwoAlarms: up to 3.5 it is not certain which of two alarms is in force, also after one was cleared.
func TestTwoAlarms(t *testing.T) {
	change := func(m *Model, action, typ int32) {
		m.Alarm(&dumplog.AlarmRequest{Action: action, MemberID: 5, Alarm: typ})
	}
	both := func(m *Model) {
		change(m, alarmActivate, AlarmCorrupt)
		change(m, alarmActivate, AlarmNoSpace)
	}
	one := func(m *Model) { both(m); change(m, alarmDeactivate, AlarmCorrupt) }
	again := func(m *Model) {
		one(m)
		change(m, alarmDeactivate, AlarmNoSpace)
		change(m, alarmActivate, AlarmNoSpace)
	}
	for name, c := range map[string]evaluation{
		"one of two":      {r: putRequest("a", "1"), edit: one, want: "refused NOSPACE alarm ?"},
		"and then afresh": {r: putRequest("a", "1"), edit: again, want: "refused NOSPACE alarm"},
	} {
		c.run(t, name, "3.5")
	}
	for version, want := range map[string]string{"3.4": "refused CORRUPT alarm ?", "3.5.17": "refused CORRUPT alarm ?",
		"3.6": "refused CORRUPT alarm", "": "refused CORRUPT alarm ?"} {
		c := evaluation{r: putRequest("a", "1"), edit: both, want: want}
		c.run(t, version, version)
	}
}

// TestAuthOfRequests: what users may do, and how certain that is.
func TestAuthOfRequests(t *testing.T) {
	authOn := func(m *Model) {
		v := m.Version
		m.Auth = rooted(t)
		m.Auth.Version = v
	}
	with := func(h dumplog.Header, r *dumplog.Request) *dumplog.Request { r.Header = h; return r }
	old := dumplog.Header{Username: "app", AuthRevision: 7}
	for name, c := range map[string]evaluation{
		"with permission": {r: with(app, putRequest("/app/x", "1")), edit: authOn,
			want: "applied /app/x=1/0"},
		"without": {r: with(app, putRequest("x", "1")), edit: authOn,
			want: "refused permission denied ?"},
		"root":           {r: with(root, putRequest("x", "1")), edit: authOn, want: "applied x=1/0"},
		"without a user": {r: putRequest("x", "1"), edit: authOn, want: "refused user name is empty ?"},
		"old auth revision": {r: with(old, putRequest("/app/x", "1")), edit: authOn,
			want: "refused old auth revision"},
		"old, at an alarm": {r: with(old, deleteRequest("/app/x", "")),
			edit: func(m *Model) { authOn(m); alarm(AlarmNoSpace)(m) }, want: "refused old auth revision ?"},
		"auth not known": {r: with(app, putRequest("/app/x", "1")),
			edit: func(m *Model) { authOn(m); m.Auth.Known = false }, want: "applied /app/x=1/0 ?"},
		"auth not known, none used": {r: putRequest("x", "1"), edit: func(m *Model) { m.Auth.Known = false },
			want: "applied x=1/0"},
		"auth not known, delete": {r: with(app, deleteRequest("a", "")),
			edit: func(m *Model) { m.Auth.Known = false }, want: "applied -a ?"},
		"denied delete": {r: with(app, deleteRequest("a", "")), edit: authOn,
			want: "refused permission denied ?"},
		"denied compare": {r: with(app,
			txnRequest(&dumplog.TxnRequest{Compare: []dumplog.Compare{{Key: []byte("a")}}})), edit: authOn,
			want: "refused permission denied ?"},
		"revoke by root": {r: with(oldRoot, revokeRequest(7)), edit: authOn,
			want: "refused old auth revision by lease-check-skips-root ?"},
		"revoke without permission": {r: with(app, revokeRequest(7)), edit: authOn,
			want: "refused permission denied ?"},
		"nested txn, perhaps denied": {r: with(app, txnRequest(txn(nested(put("a", 0, false))))), edit: authOn,
			want: "refused permission denied by nested-txn-permission ?"},
	} {
		c.run(t, name, "3.5")
	}
	for version, want := range map[string]string{"3.4.26": "refused old auth revision", "3.4.27": "applied -a",
		"3.5.9": "refused old auth revision", "3.5.10": "applied -a"} {
		c := evaluation{r: with(oldRoot, revokeRequest(7)), edit: authOn, want: want}
		c.run(t, "revoke by root on "+version, version)
	}
	atAlarm := evaluation{r: with(old, deleteRequest("/app/x", "")),
		edit: func(m *Model) { authOn(m); alarm(AlarmNoSpace)(m) }, want: "refused old auth revision"}
	atAlarm.run(t, "3.6 checks permissions at an alarm", "3.6")
	for version, plain := range map[string]bool{"3.6.8": false, "3.6.9": true, "3.6": false} {
		m := modelOf(version)
		authOn(m)
		if e := m.Evaluate(with(app, txnRequest(txn(nested(put("a", 0, false)))))); e.Plain != plain {
			t.Errorf("%s: a refusal on which all releases agree: %v", version, e.Plain)
		}
	}
}

// TestOtherRequests: what writes no key says so.
func TestOtherRequests(t *testing.T) {
	for _, r := range []*dumplog.Request{{Kind: dumplog.KindEmpty},
		{Kind: dumplog.KindRange, Range: &dumplog.RangeRequest{}},
		{Kind: dumplog.KindLeaseGrant, LeaseGrant: &dumplog.LeaseGrantRequest{ID: 1}}, {Kind: dumplog.KindPut},
		{Kind: dumplog.KindLeaseGrant, LeaseRevoke: &dumplog.LeaseRevokeRequest{ID: 1}},
		{Kind: dumplog.KindRange, Put: &dumplog.PutRequest{}, DeleteRange: &dumplog.DeleteRangeRequest{}},
		{Kind: dumplog.KindRange, Txn: &dumplog.TxnRequest{}}, {Kind: dumplog.KindLeaseRevoke}} {
		if e := modelOf("3.5").Evaluate(r); e.MayWrite || !e.Sure || e.Result != NoEffect {
			t.Errorf("%s: %+v", r.Kind, e)
		}
	}
	var kinds []dumplog.Kind
	for _, k := range []dumplog.Kind{dumplog.KindPut, dumplog.KindDeleteRange, dumplog.KindTxn, dumplog.KindLeaseRevoke,
		dumplog.KindLeaseGrant, dumplog.KindCompaction, dumplog.KindAlarm} {
		if WritesKeys(k) {
			kinds = append(kinds, k)
		}
	}
	if !slices.Equal(kinds, []dumplog.Kind{dumplog.KindPut, dumplog.KindDeleteRange, dumplog.KindTxn,
		dumplog.KindLeaseRevoke}) {
		t.Errorf("requests that write keys: %v", kinds)
	}
}

package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

func opPut(key, value string, edit ...func(*dumplog.PutRequest)) dumplog.RequestOp {
	return dumplog.RequestOp{Put: putRequest(key, value, edit...).Put}
}

func opDelete(key, end string) dumplog.RequestOp {
	return dumplog.RequestOp{DeleteRange: deleteRequest(key, end).DeleteRange}
}

func opRange(rev int64) dumplog.RequestOp {
	return dumplog.RequestOp{Range: &dumplog.RangeRequest{Key: []byte("a"), Revision: rev}}
}

func when(target dumplog.CompareTarget, result dumplog.CompareResult, key string, num int64) dumplog.Compare {
	return dumplog.Compare{Target: target, Result: result, Key: []byte(key), Num: num}
}

func valueIs(result dumplog.CompareResult, key, value string) dumplog.Compare {
	return dumplog.Compare{Target: TargetValue, Result: result, Key: []byte(key), Value: []byte(value)}
}

func over(c dumplog.Compare, end string) dumplog.Compare {
	c.RangeEnd = []byte(end)
	return c
}

// branches is a transaction that writes yes where the compares hold, and no where not.
func branches(cs ...dumplog.Compare) *dumplog.TxnRequest {
	return &dumplog.TxnRequest{Compare: cs, Success: []dumplog.RequestOp{opPut("yes", "1")},
		Failure: []dumplog.RequestOp{opPut("no", "1")}}
}

// branch is which of both was taken; "?" where that is not certain.
func branch(m *Model, t *dumplog.TxnRequest) string {
	e := m.Evaluate(txnRequest(t))
	out := "-"
	if len(e.Writes) == 1 {
		out = e.Writes[0].Key
	}
	if !e.Sure {
		out += "?"
	}
	return out
}

// TestCompares: every target with every result, on a key whose number is below, equal and above, on one that is not
// there, and on one of which nothing is known.
func TestCompares(t *testing.T) {
	results := []dumplog.CompareResult{ResultEqual, ResultGreater, ResultLess, ResultNotEqual}
	have := map[dumplog.CompareTarget]int64{TargetVersion: 3, TargetCreate: 2, TargetMod: 5, TargetLease: 7}
	for target, n := range have {
		for i, result := range results {
			for with, want := range map[int64]string{n - 1: "no yes no yes", n: "yes no no no",
				n + 1: "no no yes yes"} {
				m := modelOf("3.5")
				if got := branch(m, branches(when(target, result, "a", with))); got != strings.Fields(want)[i] {
					t.Errorf("target %d result %d: %d with %d: %s", target, result, n, with, got)
				}
				m.Keys.Forget("a")
				if got := branch(m, branches(when(target, result, "a", with))); !strings.HasSuffix(got, "?") {
					t.Errorf("target %d result %d of an unknown key: %s", target, result, got)
				}
			}
			for with, want := range map[int64]string{-1: "no yes no yes", 0: "yes no no no", 1: "no no yes yes"} {
				if got := branch(modelOf("3.5"),
					branches(when(target, result, "c", with))); got != strings.Fields(want)[i] {
					t.Errorf("target %d result %d: absent with %d: %s", target, result, with, got)
				}
			}
		}
	}
	for i, result := range results {
		for with, want := range map[string]string{"v": "no yes no yes", "va": "yes no no no", "vb": "no no yes yes",
			"": "no yes no yes"} {
			if got := branch(modelOf("3.5"), branches(valueIs(result, "a", with))); got != strings.Fields(want)[i] {
				t.Errorf("value result %d with %q: %s", result, with, got)
			}
			if got := branch(modelOf("3.5"), branches(valueIs(result, "c", with))); got != "no" {
				t.Errorf("value result %d of an absent key with %q: %s", result, with, got)
			}
		}
	}
}

// TestComparesOfUnknownParts: a key that exists, of which the revisions, the version or the value are not known.
func TestComparesOfUnknownParts(t *testing.T) {
	for name, c := range map[string]struct {
		key     Key
		compare dumplog.Compare
		want    string
	}{
		"mod of a loose key":    {Key{Loose: true, Mod: 5}, when(TargetMod, ResultEqual, "k", 5), "yes?"},
		"create of a loose key": {Key{Loose: true, Create: 5}, when(TargetCreate, ResultLess, "k", 5), "no?"},
		"version of a loose key": {Key{Loose: true, Version: 2}, when(TargetVersion, ResultEqual, "k", 2),
			"yes"},
		"version of an uncounted key": {Key{Uncounted: true, Version: 2}, when(TargetVersion, ResultEqual, "k", 2),
			"yes?"},
		"mod of an uncounted key":      {Key{Uncounted: true, Mod: 2}, when(TargetMod, ResultEqual, "k", 2), "yes"},
		"a loose key is there":         {Key{Loose: true}, when(TargetMod, ResultEqual, "k", 0), "no"},
		"a loose key is above nothing": {Key{Loose: true}, when(TargetCreate, ResultGreater, "k", 0), "yes"},
		"a loose key is not below":     {Key{Loose: true}, when(TargetCreate, ResultLess, "k", 0), "no"},
		"a loose key is not nothing":   {Key{Loose: true}, when(TargetMod, ResultNotEqual, "k", 0), "yes"},
		"an uncounted key is there":    {Key{Uncounted: true}, when(TargetVersion, ResultEqual, "k", 0), "no"},
		"an unsure key may not be there": {Key{Unsure: true, Loose: true}, when(TargetMod, ResultEqual, "k", 0),
			"yes?"},
		"lease of a loose key":         {Key{Loose: true, Lease: 7}, when(TargetLease, ResultEqual, "k", 7), "yes"},
		"lease of an unsure key":       {Key{Unsure: true}, when(TargetLease, ResultEqual, "k", 0), "yes?"},
		"value by its hash":            {Key{Sum: SumOf([]byte("x"))}, valueIs(ResultEqual, "k", "x"), "yes"},
		"value by its hash, another":   {Key{Sum: SumOf([]byte("x"))}, valueIs(ResultNotEqual, "k", "y"), "yes"},
		"order of a value by its hash": {Key{Sum: SumOf([]byte("x"))}, valueIs(ResultLess, "k", "y"), "yes?"},
		"order of an equal value":      {Key{Sum: SumOf([]byte("x"))}, valueIs(ResultLess, "k", "x"), "no"},
		"value of an unsure key":       {Key{Unsure: true}, valueIs(ResultEqual, "k", "x"), "no?"},
	} {
		m := modelOf("3.5")
		c.key.Name = "k"
		m.Keys.Put(c.key)
		if got := branch(m, branches(c.compare)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestValueFromDatabase: where the bytes can be read they decide.
func TestValueFromDatabase(t *testing.T) {
	m := modelOf("3.5")
	m.Keys.Put(Key{Name: "k", Mod: 6, Sub: 2, Sum: SumOf([]byte("x"))})
	var asked []string
	m.Value = func(key string, at Rev) ([]byte, bool) {
		asked = append(asked, fmt.Sprint(key, at))
		return []byte("x"), key == "k"
	}
	if got := branch(m, branches(valueIs(ResultGreater, "k", "y"))); got != "no" {
		t.Errorf("x > y: %s", got)
	}
	if len(asked) != 1 || asked[0] != "k{6 2}" {
		t.Errorf("asked for %v", asked)
	}
}

// TestValueFromDatabaseAltered: bytes that are not those that the request wrote decide nothing.
func TestValueFromDatabaseAltered(t *testing.T) {
	m := modelOf("3.5")
	m.Keys.Put(Key{Name: "k", Mod: 6, Sum: SumOf([]byte("x"))})
	m.Value = func(string, Rev) ([]byte, bool) { return []byte("z"), true }
	for want, result := range map[string]dumplog.CompareResult{"yes?": ResultGreater, "no": ResultEqual} {
		if got := branch(m, branches(valueIs(result, "k", "y"))); got != want {
			t.Errorf("z in the place of x, compare %d with y: %s, want %s", result, got, want)
		}
	}
}

func TestSeveralCompares(t *testing.T) {
	holds, fails := when(TargetMod, ResultEqual, "a", 5), when(TargetMod, ResultEqual, "a", 4)
	unknown := when(TargetMod, ResultEqual, "u", 1)
	for name, c := range map[string]struct {
		compares []dumplog.Compare
		want     string
	}{
		"none":                       {nil, "yes"},
		"all hold":                   {[]dumplog.Compare{holds, holds}, "yes"},
		"one fails":                  {[]dumplog.Compare{holds, fails}, "no"},
		"one unknown":                {[]dumplog.Compare{holds, unknown}, "no?"},
		"an unknown and a failure":   {[]dumplog.Compare{unknown, fails}, "no"},
		"a failure and an unknown":   {[]dumplog.Compare{fails, unknown}, "no"},
		"a range that holds":         {[]dumplog.Compare{over(when(TargetCreate, ResultLess, "a", 4), "c")}, "yes"},
		"a range where one does not": {[]dumplog.Compare{over(when(TargetCreate, ResultLess, "a", 4), "e")}, "no"},
		"an empty range":             {[]dumplog.Compare{over(when(TargetCreate, ResultEqual, "e", 0), "f")}, "yes"},
		"an empty range of values":   {[]dumplog.Compare{over(valueIs(ResultNotEqual, "e", ""), "f")}, "no"},
		"a range from a key on": {[]dumplog.Compare{over(when(TargetVersion, ResultEqual, "b", 1), "\x00")},
			"no?"},
		"a range of unknown keys": {[]dumplog.Compare{over(when(TargetMod, ResultEqual, "u", 0), "v")}, "yes?"},
		"unknown, and one fails":  {[]dumplog.Compare{over(when(TargetMod, ResultLess, "d", 6), "v")}, "no"},
		"a result of no meaning":  {[]dumplog.Compare{when(TargetMod, 9, "a", 4)}, "yes"},
	} {
		m := modelOf("3.5")
		m.Keys.Forget("u")
		if got := branch(m, branches(c.compares...)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestTxn: what the operations of the chosen branch write, later ones seeing earlier ones.
func TestTxn(t *testing.T) {
	inner := func(ops ...dumplog.RequestOp) dumplog.RequestOp {
		return dumplog.RequestOp{Txn: &dumplog.TxnRequest{Success: ops}}
	}
	for name, c := range map[string]evaluation{
		"nothing":    {r: txnRequest(txn()), want: "nothing"},
		"reads only": {r: txnRequest(txn(opRange(0))), want: "nothing"},
		"in order": {r: txnRequest(txn(opPut("z", "1"), opDelete("a", ""), opPut("c", "2"))),
			want: "applied z=1/0 -a c=2/0"},
		"delete of nothing": {r: txnRequest(txn(opDelete("c", ""))), want: "nothing"},
		"delete sees a put": {r: txnRequest(txn(opPut("c", "1"), opDelete("b", "d"))),
			want: "applied c=1/0 -b -c"},
		"delete once": {r: txnRequest(txn(opDelete("a", ""), opDelete("a", "c"))),
			want: "applied -a -b"},
		"put after a delete": {r: txnRequest(txn(opDelete("a", ""), opPut("a", "1"))),
			want: "applied -a a=1/0"},
		"a key twice, API refuses": {r: txnRequest(txn(opPut("c", "1"), opPut("c", "2"))),
			want: "applied c=1/0 c=2/0"},
		"ignore_value sees a put": {r: txnRequest(txn(opPut("a", "1"), inner(opPut("a", "", ignoreValue)))),
			want: "applied a=1/0 a=1/0"},
		"ignore_lease sees a put": {r: txnRequest(txn(opPut("a", "1", onLease(8)),
			inner(opPut("a", "2", ignoreLease)))), want: "applied a=1/8 a=2/8"},
		"nested": {r: txnRequest(txn(opPut("x", "1"),
			inner(opPut("y", "1"), inner(opPut("z", "1"))))), want: "applied x=1/0 y=1/0 z=1/0"},
		"no lease refuses all": {r: txnRequest(txn(opPut("x", "1"), opPut("y", "1", onLease(9)))),
			want: "refused lease not found"},
		"no key refuses all": {r: txnRequest(txn(opPut("x", "1"), opPut("c", "", ignoreValue))),
			want: "refused key not found"},
		"a nested refusal refuses all": {r: txnRequest(txn(opPut("x", "1"), inner(opPut("y", "1", onLease(9))))),
			want: "refused lease not found"},
		"other branch is not looked at": {r: txnRequest(&dumplog.TxnRequest{Success: []dumplog.RequestOp{opPut("x",
			"1")}, Failure: []dumplog.RequestOp{opPut("y", "1", onLease(9))}}), want: "applied x=1/0"},
		"a lease, perhaps": {r: txnRequest(txn(opPut("x", "1", onLease(9)))), edit: stateUnknown,
			want: "applied x=1/9 ?"},
		"keys unknown": {r: txnRequest(txn(opPut("x", "1"))), edit: keysUnknown,
			want: "applied x=1/0 ?"},
		"delete of an unsure key": {r: txnRequest(txn(opDelete("a", "c"))), edit: unsureKey("b"),
			want: "applied -a -b ?"},
		"delete of an unsure key, put": {r: txnRequest(txn(opPut("b", "1"), opDelete("b", ""))), edit: unsureKey("b"),
			want: "applied b=1/0 -b"},
		"NOSPACE": {r: txnRequest(txn(opPut("x", "1"))), edit: alarm(AlarmNoSpace),
			want: "refused NOSPACE alarm"},
		"NOSPACE, no puts": {r: txnRequest(txn(opDelete("a", ""))), edit: alarm(AlarmNoSpace),
			want: "applied -a"},
	} {
		c.run(t, name, "3.5")
	}
	// Compares of nested transactions see the state before, not what was written.
	guarded := txn(opPut("c", "1"), dumplog.RequestOp{Txn: branches(when(TargetVersion, ResultEqual, "c", 0))})
	c := evaluation{r: txnRequest(guarded), want: "applied c=1/0 yes=1/0"}
	c.run(t, "compare of a nested transaction", "3.5")
}

// TestDeepTxn: nesting without end stays bounded, and is then not certain.
func TestDeepTxn(t *testing.T) {
	deep := opPut("x", "1")
	for range MaxTxnDepth + 2 {
		deep = dumplog.RequestOp{Txn: txn(deep)}
	}
	if e := modelOf("3.5").Evaluate(txnRequest(txn(deep))); e.Sure || len(e.Writes) != 0 {
		t.Errorf("%+v", e)
	}
}

// TestTxnRanges: a range at a revision out of reach refuses the transaction, where the member still has it.
func TestTxnRanges(t *testing.T) {
	const put = "applied x=1/0"
	for name, c := range map[string]struct {
		rev    int64
		nested bool
		waits  release.Answer
		v      string
		edit   func(*Model)
		want   string
	}{
		"now":                   {rev: 0, waits: release.Yes, want: put},
		"the current revision":  {rev: 9, waits: release.Yes, want: put},
		"the compact revision":  {rev: 4, waits: release.Yes, want: put},
		"future":                {rev: 10, waits: release.Yes, want: "refused future revision"},
		"compacted":             {rev: 3, waits: release.Yes, want: "refused revision compacted"},
		"below zero, compacted": {rev: -1, waits: release.Yes, want: "refused revision compacted"},
		"below zero":            {rev: -1, waits: release.Yes, edit: func(m *Model) { m.Compact = -1 }, want: put},
		"dropped, future":       {rev: 10, waits: release.No, want: put + " ?"},
		"perhaps dropped":       {rev: 3, waits: release.Unknown, want: put + " ?"},
		"nested, never dropped": {rev: 10, nested: true, waits: release.No, want: "refused future revision"},
		"3.7 drops none":        {rev: 10, waits: release.No, v: "3.7", want: "refused future revision"},
		"dropped, within reach": {rev: 5, waits: release.No, want: put},
		"compactions not known": {rev: 5, waits: release.Yes,
			edit: func(m *Model) { stateUnknown(m); m.LastCompact = 6 }, want: put + " ?"},
		"above every compaction": {rev: 6, waits: release.Yes,
			edit: func(m *Model) { stateUnknown(m); m.LastCompact = 6 }, want: put},
		"revisions not counted": {rev: 10, waits: release.Yes, edit: func(m *Model) { m.Loose = true },
			want: "refused future revision ?"},
		"now, revisions not counted": {rev: 0, waits: release.Yes, edit: func(m *Model) { m.Loose = true }, want: put},
	} {
		op := opRange(c.rev)
		if c.nested {
			op = dumplog.RequestOp{Txn: txn(op)}
		}
		e := evaluation{r: txnRequest(txn(op, opPut("x", "1"))), want: c.want, edit: func(m *Model) {
			m.ClientWaits = c.waits
			if c.edit != nil {
				c.edit(m)
			}
		}}
		if c.v == "" {
			c.v = "3.6"
		}
		e.run(t, name, c.v)
	}
}

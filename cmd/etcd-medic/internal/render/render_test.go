package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// hostile are bytes as a damaged or malicious file may hold them.
var hostile = [][]byte{
	nil, []byte("/plain"), []byte("a\"b\\c"), {0, 1, 2, 0xff}, []byte("\x1b[2Jx"), []byte("über"), []byte("\xff\xfe"),
	[]byte("a\u202eb"), []byte("a\u2028b"), []byte("�"), []byte("\x7f"),
}

// TestBytesAgree: rows and documents write bytes in the same form.
func TestBytesAgree(t *testing.T) {
	for _, b := range hostile {
		want, err := json.Marshal(check.Bytes(b))
		if err != nil {
			t.Fatal(err)
		}
		var g, w any
		if err := json.Unmarshal(appendJSONBytes(nil, b), &g); err != nil {
			t.Errorf("%q: %v", b, err)
		}
		if err := json.Unmarshal(want, &w); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(w, g); d != "" {
			t.Errorf("%q (-document +row):\n%s", b, d)
		}
	}
}

func rows() []Row {
	perm := &dumplog.Permission{Type: 2, Key: []byte("/a"), RangeEnd: []byte("/b")}
	yes := true
	reqs := []*dumplog.Request{
		{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: hostile[3], Value: hostile[4], Lease: -2, PrevKV: true}},
		{Kind: dumplog.KindTxn, Txn: &dumplog.TxnRequest{
			Compare: []dumplog.Compare{{Key: hostile[2], Target: 3, Value: []byte("secret value")},
				{Target: 4, Num: 255}, {Result: 9, Target: 9}},
			Success: []dumplog.RequestOp{{Put: &dumplog.PutRequest{Key: hostile[5]}}, {Txn: &dumplog.TxnRequest{}}, {}},
			Failure: []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: hostile[6], Limit: 3}},
				{DeleteRange: &dumplog.DeleteRangeRequest{RangeEnd: []byte{0}}}},
		}},
		{Kind: dumplog.KindAuthUserAdd, Auth: &dumplog.AuthRequest{User: "u\x1b", Password: "hunter2",
			HashedPassword: "hunter2", SimpleToken: "hunter2", Perm: perm, Key: []byte("k")}},
		{Kind: dumplog.KindLeaseCheckpoint, LeaseCheckpoint: &dumplog.LeaseCheckpointRequest{
			Checkpoints: []dumplog.LeaseCheckpoint{{ID: 1, RemainingTTL: 2}, {}}}},
		{Kind: dumplog.KindConfChangeV2, ConfChangeV2: &dumplog.ConfChangeV2{
			Changes: []dumplog.ConfChangeSingle{{Type: 7, NodeID: 1}}, Context: hostile[3]}},
		{Kind: dumplog.KindV2, V2: &dumplog.V2Request{Method: "PUT", Path: "/0/x\n", Val: "v", PrevExist: &yes}},
		{Kind: dumplog.KindUnknown, Unknown: []dumplog.UnknownField{{Path: "put", Num: 99, Wire: 2,
			Raw: []byte("hunter2")}}},
	}
	var out []Row
	for _, r := range reqs {
		e := &dumplog.Entry{Pos: dumplog.Pos{Segment: "s\n.wal", Offset: 1 << 40}, Len: 8, Term: 1, Index: 1 << 63,
			Data: []byte("hunter2"), Overwritten: true}
		out = append(out, &LogEntry{Entry: e, Request: r, DecodeErr: errors.New("cut\x1boff"), Proposer: "n|m",
			Uncommitted: true})
	}
	rec := &dumplog.Record{Type: 99, Data: []byte("hunter2"), CRC: dumplog.CRCMismatch}
	dmg := &dumplog.DamageError{Kind: dumplog.DamageCRC, Len: 3, LostFrom: 1, LostTo: 2, Server: "refuses",
		Err: errors.New("x\ny")}
	dbDmg := &dumpdb.DamageError{Kind: dumpdb.DamagePage, FirstKey: hostile[3], Expected: "a", Observed: "b",
		Err: errors.New("x\ny")}
	return append(out,
		&LogRecord{Record: rec, Err: errors.New("no type")}, &LogRecord{Record: rec, Raw: true},
		LogSegment{dumplog.Segment{Name: "s\x1b"}}, LogDamage{dmg}, DBDamage{dbDmg},
		KeyRow{Revision: &dumpdb.Revision{KV: dumpdb.KeyValue{Key: hostile[3], Value: hostile[4]},
			Err: errors.New("bad"), Raw: []byte("a value")}},
		DBRow{Row: &dumpdb.Row{Key: hostile[7], Value: []byte("hunter2")}},
		UserRow{dumpdb.User{Name: "a b", Password: []byte("hunter2")}},
		RoleRow{dumpdb.Role{Name: "", Perms: []dumpdb.Permission{{Key: hostile[3]}}}},
		MemberRow{Member: dumpdb.Member{Name: "x\ty"}},
		MetaPage{dumpdb.Meta{Freelist: ^uint64(0), Problem: "magic"}}, DBFact{Bucket: "meta", Name: "n", Text: "a b"})
}

func write(t *testing.T, f Format, o Options, rows ...Row) string {
	t.Helper()
	var b bytes.Buffer
	s := NewStream(&b, f, Head{Source: "n\"1", SourceKind: "data-dir"}, o)
	for _, r := range rows {
		if err := s.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStreams: whatever a row holds, each format stays well-formed, one line per row, free of control characters and
// secrets.
func TestStreams(t *testing.T) {
	all := rows()
	for _, f := range Formats() {
		got := write(t, Format(f), Options{}, all...)
		if strings.Contains(got, "hunter2") || strings.Contains(write(t, Format(f), Options{Values: true}, all...),
			"hunter2") {
			t.Errorf("%s shows a secret that was not asked for", f)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("%s holds a control character: %q", f, got[max(0, i-40):i+1])
		}
	}
	if n := strings.Count(write(t, Table, Options{}, all...), "\n"); n != len(all) {
		t.Errorf("%d lines for %d rows", n, len(all))
	}
	for line := range strings.Lines(write(t, JSONL, Options{}, all...)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	var doc struct {
		SchemaVersion int
		Source        struct{ Name string }
		Rows          []map[string]any
	}
	for _, n := range []int{0, 1, len(all)} {
		if err := json.Unmarshal([]byte(write(t, JSON, Options{}, all[:n]...)), &doc); err != nil ||
			len(doc.Rows) != n || doc.SchemaVersion != compare.SchemaVersion || doc.Source.Name != `n"1` {
			t.Errorf("%d rows: %v, %d rows read", n, err, len(doc.Rows))
		}
	}
}

// TestCutShort: a document that an error ends must not read as whole.
func TestCutShort(t *testing.T) {
	var b bytes.Buffer
	boom := errors.New("boom")
	s := NewStream(&b, JSON, Head{}, Options{})
	if err := s.Write(DBFact{Bucket: "meta", Name: "n"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(boom); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	if b.Len() == 0 || json.Valid(b.Bytes()) {
		t.Errorf("reads as whole: %s", b.String())
	}
}

// full refuses each write with an error of its own, as a file does.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestWriteErrorOnce: the error of a write is reported once, however much is left to write after it.
func TestWriteErrorOnce(t *testing.T) {
	for _, o := range []Options{{}, {Columns: true}} {
		s := NewStream(full{}, Table, Head{}, o)
		var err error
		for err == nil {
			err = s.Write(DBFact{Bucket: "meta", Name: strings.Repeat("n", 999)})
		}
		if err = s.Close(err); strings.Count(err.Error(), "no space") != 1 {
			t.Errorf("columns %t: %q", o.Columns, err)
		}
	}
}

// TestSecretsAndValues: what is asked for is shown, and only that.
func TestSecretsAndValues(t *testing.T) {
	put := &LogEntry{Entry: &dumplog.Entry{},
		Request: &dumplog.Request{Kind: dumplog.KindPut,
			Put: &dumplog.PutRequest{Key: []byte("k"), Value: []byte("the-value")}}}
	user := UserRow{dumpdb.User{Name: "u", Password: []byte("the-hash")}}
	for _, f := range Formats() {
		for _, tc := range []struct {
			o           Options
			value, hash bool
		}{{Options{}, false, false}, {Options{Values: true}, true, false}, {Options{Secrets: true}, false, true}} {
			got := write(t, Format(f), tc.o, put, user)
			if strings.Contains(got, "the-value") != tc.value || strings.Contains(got, "the-hash") != tc.hash {
				t.Errorf("%s %+v:\n%s", f, tc.o, got)
			}
		}
	}
}

func TestFlatten(t *testing.T) {
	var b bytes.Buffer
	in := `{"a":1,"b":{"c":"x\ny","d":[true,null,{}],"e":[]},"f":18446744073709551615}`
	want := `"a" : 1
"b.c" : "x\ny"
"b.d[0]" : true
"b.d[1]" : null
"b.d[2]" : {}
"b.e" : []
"f" : 18446744073709551615
`
	if err := flatten(&b, []byte(in)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDiagnosisPage draws a report with everything in it and looks at what must be there, and in which order.
func TestDiagnosisPage(t *testing.T) {
	id, sure := cause.ID("a-cause"), cause.Proof
	off := int64(0x1a0)
	f := check.Finding{ID: "A01-1", Check: "A01", Severity: check.Critical, Members: []string{"n1"},
		Title: "title \x1b[31mred", At: check.At{Term: 3, Index: 1043}, More: 30,
		Remedy: []check.Remedy{{Text: "do it", Command: shell.Format("etcdctl x"), Risk: "some",
			Precondition: "quorum"}}}
	for range 9 {
		f.Evidence = append(f.Evidence, check.Evidence{Member: "n1", File: "f.wal", Offset: &off, Length: 88,
			Bucket: "key", Key: check.Bytes("/k"), Observed: "2", Expected: "1",
			Show: shell.Format("etcd-medic dumplog {} --index 1043", shell.Source("n1"))})
	}
	r := &compare.Report{
		Sources: []compare.Source{{Name: "n9", Error: "nothing at this path"}},
		Verdict: compare.Verdict{Health: check.Unhealthy, Class: "data-divergence", Cause: &id, Certainty: &sure,
			Summary: "in short", FirstBreak: &compare.FirstBreak{Check: "A01", Member: []string{"n1"}, Index: 1043,
				Term: 3, Expected: "1", Observed: "2"}},
		Causes:   []compare.Cause{{ID: "a-cause", Title: "why", Certainty: "proof", RefutedBy: "this"}},
		Findings: []check.Finding{f},
		Best: &compare.Best{Members: []string{"n1"}, Why: "most",
			Ranking: []compare.Rank{{Member: "n1", Usable: true, Lacks: compare.Count{CommittedEntries: 5}}},
			Lost: compare.Lost{CommittedEntries: 7, Keys: 6,
				Entries: []compare.LostEntry{{Term: 3, Index: 9, What: "put", HeldBy: []string{"n2"}}},
				Command: shell.Format("etcd-medic export")}},
		Checks: []compare.CheckOutcome{{ID: "A01", Title: "t", Outcome: check.Violated},
			{ID: "A02", Outcome: check.Holds}, {ID: "A03", Outcome: check.NotChecked, Reason: "no log"},
			{ID: "A04", Reason: "no log"}},
		Next: []compare.Next{{Text: "first", Command: shell.Format("etcd-medic next")}, {Text: "second"}},
	}
	var b bytes.Buffer
	if err := Diagnosis(&b, Table, r, Options{Full: true}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	at := 0
	for _, want := range []string{
		"NOT HEALTHY: data-divergence, cause a-cause (proof)\nin short\n", "!! n9 was not used: nothing at this path",
		"FIRST BREAK", "entry 3/1043", "CAUSES", "refuted by  this",
		"FINDINGS", "A01-1  critical  title \\u001b[31mred", "    expected 1\n", `- n1 f.wal@0x1a0(88) key "/k": 2`,
		"… and 30 more", "$ etcd-medic dumplog n1 --index 1043", "remedy: do it", "$ etcdctl x",
		"BEST MEMBER", "Choosing n1 loses 7 committed writes on 6 keys:", "entry 3/9 put, held by n2", "… and 6 more",
		"$ etcd-medic export",
		"CHECKS", "1 hold, 1 violated (A01), 2 could not be checked", "not checked  A03 A04: no log", "NEXT",
		"1. first", "$ etcd-medic next", "2. second",
	} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing or out of order in\n%s", want, page)
		}
		at += i
	}
	if strings.Contains(page, "\x1b") {
		t.Error("the page holds an escape character of a finding")
	}
	for l := range strings.Lines(page) {
		if n := len([]rune(l)); n > 101 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// TestUnseenLoss: entries that no log holds are counted, and no list of them is promised.
func TestUnseenLoss(t *testing.T) {
	r := &compare.Report{Verdict: compare.Verdict{Health: check.Unhealthy},
		Best: &compare.Best{Members: []string{"n1"}, Ranking: []compare.Rank{{Member: "n1", Usable: true}, {Member: "n2"}},
			Lost: compare.Lost{CommittedEntries: 7, AfterEnd: 7}}}
	for full, want := range map[bool]string{
		true:  "  Choosing n1 loses the last 7 committed entries, and no log at hand holds all of them.\n",
		false: "LOSES  the last 7 committed entries, and no log at hand holds all of them\n",
	} {
		var b bytes.Buffer
		if err := Diagnosis(&b, Table, r, Options{Full: full}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	for _, l := range []compare.Lost{{Entries: []compare.LostEntry{{}}}, {Command: shell.Format("etcd-medic")},
		{Records: compare.LostRecords{Rows: make([]compare.LostRecord, 1)}}} {
		if !l.Shown() {
			t.Errorf("not shown: %+v", l)
		}
	}
}

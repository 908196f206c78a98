package diff_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestCases: each case in testdata/cases builds a set of sources and says what comparing them gives. README.md there
// has the words.
func TestCases(t *testing.T) {
	for _, c := range casetest.Read(t, "testdata/cases/*.txt") {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			if len(c.Wants) == 0 {
				t.Error("nothing is wanted")
			}
			r := compared(t, casetest.Build(t, c.Lines))
			for _, line := range c.Wants {
				r.check(t, line)
			}
		})
	}
}

// result is a comparison of a case.
type result struct{ *diff.Result }

func compared(t *testing.T, sources []casetest.Source) result {
	t.Helper()
	set := casetest.Open(t, sources, evidence.Options{})
	rp, err := replay.Run(t.Context(), set.Members, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := diff.Run(t.Context(), set.Members, rp, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result{r}
}

// check compares the result with one line "want ...".
func (r result) check(t *testing.T, line casetest.Line) {
	t.Helper()
	words := line.Words(t)
	switch what, words := words[0], words[1:]; what {
	case "continues":
		older, newer := r.member(t, words[0]), r.member(t, words[1])
		n, differs, err := diff.Continues(t.Context(), older, newer)
		have := strconv.Itoa(n)
		if differs {
			have = "differs"
		}
		equal(t, line, have, words[2])
		if err != nil {
			t.Error(err)
		}
	case "records":
		r.checkRecords(t, line, words)
	case "record":
		r.checkRecord(t, line, words)
	case "apart":
		var apart []string
		x, err := r.RecordsApart(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Rows {
			apart = append(apart, strconv.FormatInt(x.Rows[i].Rev.Main, 10))
		}
		equal(t, line, strings.Join(apart, " "), strings.Join(words, " "))
	case "keys":
		r.checkKeys(t, line, words)
	case "key":
		r.checkKey(t, line, words)
	case "password":
		r.checkPassword(t, line, words)
	case "bucket":
		r.checkBucket(t, line, words)
	case "row":
		r.checkRow(t, line, words)
	default:
		t.Fatalf("line %d: nothing is called %q", line.No, what)
	}
}

func equal(t *testing.T, line casetest.Line, have, want string) {
	t.Helper()
	if have != want {
		t.Errorf("line %d: %s: have %q, want %q", line.No, line.Rest, have, want)
	}
}

func (r result) member(t *testing.T, name string) *evidence.Member {
	t.Helper()
	i := slices.IndexFunc(r.Members, func(m *evidence.Member) bool { return m.Label() == name })
	if i < 0 {
		t.Fatalf("no source is called %s", name)
	}
	return r.Members[i]
}

// names are the labels of members, by position.
func (r result) names(at []int) string {
	var out []string
	for _, i := range at {
		out = append(out, r.Members[i].Label())
	}
	return strings.Join(out, " ")
}

// outcome is "equal", "unknown" or "differ N".
func outcome(certain, excluded bool, differ int) string {
	switch {
	case certain:
		return "equal"
	case excluded:
		return "differ " + strconv.Itoa(differ)
	}
	return "unknown"
}

func (r result) checkRecords(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	x := r.Records
	if x == nil {
		t.Fatalf("line %d: the records were not compared", line.No)
	}
	equal(t, line, outcome(x.Equal.Certain(), x.Equal.Excluded(), x.Differ), strings.Join(words, " "))
	if len(x.Rows) != x.Differ || (x.Reason == "") != (words[0] != "unknown") {
		t.Errorf("line %d: %d rows, %q", line.No, len(x.Rows), x.Reason)
	}
	if x.Differ < 2 {
		return
	}
	few, err := r.CompareRecords(context.Background(), diff.Options{MaxRows: 1})
	if err != nil || len(few.Rows) != 1 || few.Differ != x.Differ {
		t.Errorf("line %d: one row was asked for: %+v, %v", line.No, few, err)
	}
}

func (r result) checkRecord(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	i := slices.IndexFunc(r.Records.Rows, func(x diff.RecordRow) bool {
		return strconv.FormatInt(x.Rev.Main, 10) == words[0]
	})
	if i < 0 {
		t.Fatalf("line %d: no such record differs: %+v", line.No, r.Records.Rows)
	}
	row := &r.Records.Rows[i]
	equal(t, line, string(row.Key), words[1])
	equal(t, line, r.names(row.Odd(row.At)), strings.Join(words[2:], " "))
	var again []string
	err := r.EachRecord(t.Context(), row.Rev.Main, func(x *diff.RecordRow) { again = append(again, string(x.Key)) })
	if err != nil || !slices.Equal(again, words[1:2]) {
		t.Errorf("line %d: read again: %q, %v", line.No, again, err)
	}
}

func (r result) checkKeys(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	b, reason := r.Find("key"), ""
	if words[0] == "unknown" {
		words, reason = words[:1], words[1]
	}
	equal(t, line, outcome(b.Equal.Certain(), b.Equal.Excluded(), b.Differ), strings.Join(words, " "))
	if (b.Reason == "") != (reason == "") || !strings.Contains(b.Reason, reason) {
		t.Errorf("line %d: %q", line.No, b.Reason)
	}
}

func (r result) checkKey(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	b := r.Find("key")
	i := slices.IndexFunc(b.Rows, func(x diff.Row) bool { return string(x.Key) == words[0] })
	if i < 0 {
		t.Fatalf("line %d: no such key differs: %+v", line.No, b.Rows)
	}
	if b.Rows[i].SameContent != (len(words) > 1) {
		t.Errorf("line %d: same content %t", line.No, b.Rows[i].SameContent)
	}
	same := 0
	for _, row := range b.Rows {
		if row.SameContent {
			same++
		}
	}
	equal(t, line, strconv.Itoa(b.SameContent), strconv.Itoa(same))
}

func (r result) checkPassword(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	i := slices.IndexFunc(r.Passwords, func(p diff.Password) bool { return p.User == words[0] })
	if i < 0 {
		t.Fatalf("line %d: the hashes of that user do not differ: %+v", line.No, r.Passwords)
	}
	p := r.Passwords[i]
	if p.Legal != (words[1] == "legal") || p.Legal != (p.Why == "") {
		t.Errorf("line %d: %+v", line.No, p)
	}
	equal(t, line, r.names(p.Wrong), strings.Join(words[2:], " "))
}

// checkBucket reads "NAME OUTCOME [because TEXT]".
func (r result) checkBucket(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	b, text := r.Find(words[0]), ""
	if at := slices.Index(words, "because"); at > 0 {
		words, text = words[:at], words[at+1]
	}
	if b == nil {
		t.Fatalf("line %d: the bucket was not compared", line.No)
	}
	equal(t, line, outcome(b.Equal.Certain(), b.Equal.Excluded(), b.Differ), strings.Join(words[1:], " "))
	why := b.Reason + b.Limits
	if (why == "") != (text == "") || !strings.Contains(why, text) || (b.Moved > 0) != (text != "") {
		t.Errorf("line %d: moved %d, reason %q, limits %q", line.No, b.Moved, b.Reason, b.Limits)
	}
	if b.Equal == release.Unknown && b.Limits != "" || b.Equal.Certain() && b.Reason != "" {
		t.Errorf("line %d: reason %q, limits %q", line.No, b.Reason, b.Limits)
	}
}

// checkRow reads "BUCKET KEY have [NODE...] without [NODE...]": who has the row that differs, and whose cannot be
// compared.
func (r result) checkRow(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	b := r.Find(words[0])
	i := slices.IndexFunc(b.Rows, func(x diff.Row) bool { return string(x.Key) == words[1] })
	if i < 0 {
		t.Fatalf("line %d: no such row differs: %+v", line.No, b.Rows)
	}
	row, out := &b.Rows[i], []int{}
	var have []int
	for n, c := range row.Cells {
		if c != nil {
			have = append(have, n)
		}
	}
	for n := range r.Members {
		if !slices.Contains(r.Compared(row), n) {
			out = append(out, n)
		}
	}
	text := "have " + r.names(have)
	if len(out) > 0 {
		text += " without " + r.names(out)
	}
	equal(t, line, text, strings.Join(words[2:], " "))
}

// TestRecordsThatCannotBeRead: a page that can no longer be read when the records are compared ends the comparison. It
// never makes them equal.
func TestRecordsThatCannotBeRead(t *testing.T) {
	r := compared(t, casetest.Build(t, []casetest.Line{{Verb: "hands", Rest: "a1 a2"}, {Verb: "elect"},
		{Verb: "puts", Rest: "200"}, {Verb: "close", Rest: "node1"}, {Verb: "puts", Rest: "1"},
		{Verb: "zeroleaf", Rest: "node2"}}))
	r.Members[1].DB.KVDamaged = false
	if x, err := r.CompareRecords(t.Context(), diff.Options{}); err == nil || x != nil {
		t.Errorf("records %+v, %v, want an error", x, err)
	}
}

// TestCanceled: a comparison that the caller gives up ends with the context's error, never with a result.
func TestCanceled(t *testing.T) {
	r := compared(t, casetest.Build(t, []casetest.Line{{Verb: "hands", Rest: "a1 a2"}, {Verb: "elect"},
		{Verb: "puts", Rest: "20"}, {Verb: "delete", Rest: "node2 key rev:2"}}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if x, err := diff.Run(ctx, r.Members, nil, diff.Options{}); !errors.Is(err, context.Canceled) || x != nil {
		t.Errorf("keys: %+v, %v", x, err)
	}
	if x, err := r.CompareRecords(ctx, diff.Options{}); !errors.Is(err, context.Canceled) || x != nil {
		t.Errorf("records: %+v, %v", x, err)
	}
	err := r.EachRecord(ctx, 0, func(x *diff.RecordRow) { t.Errorf("record %v of a comparison that ended", x.Rev) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("each record: %v", err)
	}
	if n, _, err := diff.Continues(ctx, r.Members[0], r.Members[1]); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("continues: %d, %v", n, err)
	}
}

package redact

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/shell"
)

// learned is a redactor that has looked the keys up in a report with these summaries.
func learned(keys []string, texts ...string) (*Redactor, *dossier.Dossier) {
	d := &dossier.Dossier{Report: &compare.Report{}}
	for _, s := range texts {
		d.Report.Next = append(d.Report.Next, compare.Next{Text: s})
	}
	r := New(Hashed, []byte("salt"))
	f := newFinder(d)
	for _, k := range keys {
		f.key([]byte(k))
	}
	for text, key := range f.found {
		r.words = append(r.words, word{text: text, with: r.Key(key), name: isName(text)})
	}
	slices.SortFunc(r.words, func(a, b word) int { return strings.Compare(a.text, b.text) })
	return r, d
}

// TestText: keys go out of texts however they are written, longest first, and what only looks like one stays.
func TestText(t *testing.T) {
	long := "/big/" + strings.Repeat("K", 9000)
	keys := []string{"/a", "/a/b", "foo", "42", "key", "/it's here", "/odd\x00\u202e", "/with space/x", long, "-n",
		"ü/ö", "/cut/kept"}
	r := New(Hashed, []byte("salt"))
	for text, want := range map[string]string{
		`put key="/a/b" and "/a"`:       `put key="{/a/b}" and "{/a}"`,
		`put "/a/c", "/a/`:              `put "{/a}/c", "{/a}/`,
		`/a/b/c differs, /ab too`:       `{/a/b}/c differs, /ab too`,
		`put key="foo", food and foo`:   `put key="{foo}", food and foo`,
		`entry 42 of key="42"`:          `entry 42 of key="{42}"`,
		`bucket key, key "key"`:         `bucket key, key "{key}"`,
		`history '/it'\''s here' node1`: `history '{/it's here}' node1`,
		`row /odd\x00\u202e is absent`:  `row {/odd` + "\x00\u202e" + `} is absent`,
		"row /cut/k… is absent":         "row {/cut/kept} is absent",
		`of /with space/x only`:         `of {/with space/x} only`,
		`put key="` + long[:100] + `…`:  `put key="{` + long + `}`,
		`the value is <len 5 sha256 0123456789abcdef>`: `the value is <len 5 sha256 ` + r.Digest("0123456789abcdef") +
			`>`,
		`holds digest 0123456789abcdef`: `holds digest ` + r.Digest("0123456789abcdef"),
		`öü/ö and "ü/ö"`:                `ö{ü/ö} and "{ü/ö}"`,
	} {
		got, _ := learned(keys, text)
		for _, k := range keys {
			want = strings.ReplaceAll(want, "{"+k+"}", r.Key(k))
		}
		if s := got.Text(text); s != want {
			t.Errorf("%.200q becomes\n%.300q, want\n%.300q", text, s, want)
		}
	}
}

// TestCommand: arguments are redacted, the program and sources are not.
func TestCommand(t *testing.T) {
	cmd := shell.Format("etcd-medic history {} --prefix {}", "foo", "/a/b").Sources("node1")
	r, d := learned([]string{"foo", "/a/b", "history", "node1"}, "foo /a/b history")
	d.Report.Next = append(d.Report.Next, compare.Next{Command: cmd})
	d.Report.Verdict.FirstBreak = &compare.FirstBreak{Key: check.Bytes("/a/b")}
	d.Report.Members = []evidence.Facts{{Auth: &evidence.AuthFacts{Roles: map[string][]string{"foo": {`READ "/a/b"`}}}}}
	d.Differences = []dossier.Difference{{Bucket: "auth", Reason: `row "/a/b"`, Objects: map[int]string{0: "Pod foo"}}}
	r.Apply(d)
	if got := d.Report.Members[0].Auth.Roles["foo"]; len(got) != 1 || got[0] != `READ "`+r.Key("/a/b")+`"` ||
		d.Differences[0].Reason != `row "`+r.Key("/a/b")+`"` || d.Differences[0].Objects[0] != "Pod foo" {
		t.Errorf("roles %q, %+v", got, d.Differences[0])
	}
	want := shell.Format("etcd-medic history {} --prefix {}", r.Key("foo"), r.Key("/a/b")).Sources("node1").String()
	if got := d.Report.Next[1].Command.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := string(d.Report.Verdict.FirstBreak.Key); got != r.Key("/a/b") {
		t.Errorf("the first break names %q", got)
	}
}

// TestWordsOfAProgram: a sub-command stays even if a key has its name. What follows a command of two words is data.
func TestWordsOfAProgram(t *testing.T) {
	for want, cmd := range map[string]shell.Command{"etcd-medic repair plan": shell.Format("etcd-medic repair plan"),
		"etcd-medic node start":    shell.Format("etcd-medic node start"),
		"etcd-medic member remove": shell.Format("etcd-medic member remove"),
		"etcd-medic history '{}'":  shell.Format("etcd-medic history plan"),
		"etcd-medic plan":          shell.Format("etcd-medic plan"), "etcdctl": shell.Format("etcdctl")} {
		r, d := learned([]string{"plan", "start", "remove", "repair", "etcdctl"}, "plan start remove repair etcdctl")
		d.Report.Next = []compare.Next{{Command: cmd}}
		r.Apply(d)
		want = strings.Replace(want, "{}", r.Key("plan"), 1)
		if got := d.Report.Next[0].Command.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestApply: paths of sources go in each mode, sources are given by their names, hashes of buckets become keyed, and
// the names of objects stay only where keys do.
func TestApply(t *testing.T) {
	said := map[string]bool{}
	for _, mode := range []Mode{Clear, Prefix, Hashed} {
		r := New(mode, []byte("salt"))
		hashes := map[string]string{"key": "abc", "lease": ""}
		d := &dossier.Dossier{Report: &compare.Report{Given: []string{"/var/a", "/var/b"},
			Sources: []compare.Source{{Name: "node1", Where: "/var/a"}, {Name: "node2", Where: "/var/b"}},
			Members: []evidence.Facts{{}, {DB: &evidence.DBFacts{Hashes: hashes}}},
			Verdict: compare.Verdict{FirstBreak: &compare.FirstBreak{Key: check.Bytes("/k")}}},
			Timeline:    &timeline.Timeline{Events: []timeline.Event{{Keys: []string{"/a"}}}},
			Differences: []dossier.Difference{{Bucket: "auth", Cells: []dossier.Cells{{SHA: []string{"abc"}}}}}}
		d.Report.Findings = []check.Finding{{Evidence: []check.Evidence{{
			Object: &evidence.Object{Kind: "Pod", Namespace: "default", Name: "web"}}}}}
		r.Apply(d)
		if s := d.Report.Sources; s[0].Where != "" || s[1].Where != "" ||
			!slices.Equal(d.Report.Given, []string{"node1", "node2"}) {
			t.Errorf("%s: %+v, given %q", mode, s, d.Report.Given)
		}
		if h := d.Report.Members[1].DB.Hashes; h["key"] != r.Digest("abc") || h["lease"] != "" ||
			d.Differences[0].Cells[0].SHA[0] != r.Digest("abc") {
			t.Errorf("%s: %q, %q", mode, h, d.Differences[0].Cells[0].SHA)
		}
		if keys := d.Timeline.Events[0].Keys; keys[0] != r.Key("/a") {
			t.Errorf("%s: keys %q", mode, keys)
		}
		if o := d.Report.Findings[0].Evidence[0].Object; o.Kind != "Pod" || (o.Name != "") != (mode == Clear) ||
			(o.Namespace != "") != (mode == Clear) {
			t.Errorf("%s: %+v", mode, o)
		}
		if d.Redaction == "" || said[d.Redaction] ||
			strings.Contains(d.Redaction, "Kubernetes objects") == (mode == Clear) {
			t.Errorf("%s: %s", mode, d.Redaction)
		}
		said[d.Redaction] = true
	}
}

// TestLearnEnds: a source without files has no keys, and a run that ends while keys are searched is an error.
func TestLearnEnds(t *testing.T) {
	_, d := learned(nil, "/app/x")
	empty := &evidence.Member{Source: &evidence.Source{Name: "node9"}}
	r := New(Hashed, nil)
	if err := r.Learn(ctxtest.EndingAfter(0), []*evidence.Member{empty}, d); err != nil || !r.labels["node9"] ||
		len(r.words) > 0 {
		t.Errorf("%v, %+v", err, r)
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: filepath.Join(evidencetest.Incident(t,
		"a-auth-revision-replay"), "node1")}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	m := set.Members[0]
	m.DB.Auth.Roles = append(m.DB.Auth.Roles, dumpdb.Role{Perms: []dumpdb.Permission{{Key: []byte("/perm/a"),
		RangeEnd: []byte("/perm/b")}}})
	_, d = learned(nil, "/perm/a /perm/b")
	if err := r.Learn(t.Context(), []*evidence.Member{m}, d); err != nil || len(r.words) != 2 {
		t.Errorf("%v, %+v", err, r.words)
	}
	onlyLog, onlyDB := &evidence.Member{Source: m.Source, WAL: m.WAL}, &evidence.Member{Source: m.Source, DB: m.DB}
	for name, m := range map[string]*evidence.Member{"log": onlyLog, "database": onlyDB} {
		for n := range int64(2) {
			err := New(Hashed, nil).Learn(ctxtest.EndingAfter(n), []*evidence.Member{m}, d)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, after %d: %v", name, n, err)
			}
		}
		if err := New(Clear, nil).Learn(ctxtest.EndingAfter(0), []*evidence.Member{m}, d); err != nil {
			t.Errorf("%s, in clear: %v", name, err)
		}
	}
}

// TestKeysOfRequests: every key and range end that an entry names is searched, also those of branches of transactions.
func TestKeysOfRequests(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	op := dumplog.RequestOp{Txn: &dumplog.TxnRequest{
		Compare: []dumplog.Compare{{Key: b("/cmp"), RangeEnd: b("/cmpend")}},
		Success: []dumplog.RequestOp{{Put: &dumplog.PutRequest{Key: b("/put")}}},
		Failure: []dumplog.RequestOp{{DeleteRange: &dumplog.DeleteRangeRequest{Key: b("/del"), RangeEnd: b("/delend")}},
			{Range: &dumplog.RangeRequest{Key: b("/get"), RangeEnd: b("/getend")}}}}}
	requests := []dumplog.Request{{Txn: op.Txn}, {Auth: &dumplog.AuthRequest{Key: b("/auth"), RangeEnd: b("/authend")}},
		{Auth: &dumplog.AuthRequest{Perm: &dumplog.Permission{Key: b("/perm"), RangeEnd: b("/permend")}}}}
	var texts []string
	for _, k := range strings.Fields("cmp cmpend put del delend get getend auth authend perm permend") {
		texts = append(texts, "/"+k)
	}
	_, d := learned(nil, texts...)
	f := newFinder(d)
	for i := range requests {
		f.request(&requests[i])
	}
	for _, k := range texts {
		if f.found[k] != k {
			t.Errorf("%s is not searched", k)
		}
	}
}

// TestKeyOfAReport: a field that is a key is searched like a text, and stays as it is meanwhile. What is in no text is
// not looked up.
func TestKeyOfAReport(t *testing.T) {
	d := &dossier.Dossier{Report: &compare.Report{Verdict: compare.Verdict{FirstBreak: &compare.FirstBreak{
		Key: check.Bytes("/here")}, Summary: "twice"}, Next: []compare.Next{{Text: "twice"}}}}
	f := newFinder(d)
	f.key([]byte("/here"))
	for _, k := range []string{"/absent", "", "\x00"} {
		f.key([]byte(k))
	}
	if d.Report.Verdict.Summary != "twice" || d.Report.Next[0].Text != "twice" {
		t.Errorf("a text that is there twice: %+v", d.Report)
	}
	if k := d.Report.Verdict.FirstBreak.Key; f.found["/here"] != "/here" || len(f.found) != 1 || string(k) != "/here" {
		t.Errorf("found %q, the report has %q", f.found, k)
	}
}

// TestNames: letters, digits and underscores make words. Names have a few signs more.
func TestNames(t *testing.T) {
	for s, want := range map[string][2]bool{"azAZ09_": {true, true}, ".- :": {false, true}, "/`{@[;,": {false, false}} {
		for i := range len(s) {
			if isWordByte(s[i]) != want[0] || isName(s[i:i+1]) != want[1] {
				t.Errorf("%q: word %t, name %t", s[i], isWordByte(s[i]), isName(s[i:i+1]))
			}
		}
	}
}

// TestObjects: which object of Kubernetes is meant goes with the keys, its kind stays.
func TestObjects(t *testing.T) {
	type named struct{ Kind, Namespace, Name string }
	type holder struct {
		Objects []*named
		Name    string
	}
	for _, nameless := range []bool{false, true} {
		x := &holder{Objects: []*named{{"Pod", "default", "web-0"}}, Name: "node1"}
		each(reflect.ValueOf(x), visitor{text: func(s string) string { return s }, nameless: nameless})
		if kept := x.Objects[0].Namespace+x.Objects[0].Name != ""; kept == nameless || x.Objects[0].Kind != "Pod" ||
			x.Name != "node1" {
			t.Errorf("nameless %v: %+v", nameless, x.Objects[0])
		}
	}
}

// TestTextsOfMaps: the values of maps are texts, their keys are not.
func TestTextsOfMaps(t *testing.T) {
	m := map[string]string{"k": "v", "other": ""}
	each(reflect.ValueOf(&m), visitor{text: func(s string) string { return "<" + s + ">" }})
	if len(m) != 2 || m["k"] != "<v>" || m["other"] != "" {
		t.Errorf("%q", m)
	}
}

// TestParseMode: the three modes have names, and no other.
func TestParseMode(t *testing.T) {
	for _, mode := range []Mode{Clear, Prefix, Hashed} {
		if got, err := ParseMode(string(mode)); got != mode || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
	}
	for _, name := range []string{"", "Clear", "none"} {
		if got, err := ParseMode(name); got != "" || err == nil {
			t.Errorf("%q is mode %q", name, got)
		}
	}
}

// TestColumns: fields that are whole keys are replaced, and lines of server logs are left out.
func TestColumns(t *testing.T) {
	for _, mode := range []Mode{Clear, Hashed} {
		r := New(mode, []byte("salt"))
		d := &dossier.Dossier{Report: &compare.Report{}, Timeline: &timeline.Timeline{Notes: []timeline.Note{{Line: "line"}},
			Events: []timeline.Event{{Keys: []string{"/a", "/b"}}}},
			Storage: []dossier.Storage{{Prefixes: []dossier.Prefix{{Name: "/c/"}, {Name: "/d/", Rest: true}}}}}
		r.columns(d) // no member is best
		d.Report.Best = &compare.Best{}
		l := &d.Report.Best.Lost
		l.KeyNames = []check.Bytes{check.Bytes("/e"), check.Bytes("/f")}
		l.Records.Rows = []verdict.LostRecord{{Key: check.Bytes("/g")}}
		d.Timeline.Notes, d.Timeline.Events[0].Keys = []timeline.Note{{Line: "line"}}, []string{"/a", "/b"}
		d.Storage[0].Prefixes[0].Name = "/c/"
		r.columns(d)
		line := "line"
		if mode != Clear {
			line = ""
		}
		if keys := d.Timeline.Events[0].Keys; keys[0] != r.Key("/a") || keys[1] != r.Key("/b") ||
			d.Timeline.Notes[0].Line != line || d.Storage[0].Prefixes[0].Name != r.KeyPrefix("/c/") ||
			d.Storage[0].Prefixes[1].Name != "/d/" {
			t.Errorf("%s: %+v, %+v", mode, d.Timeline, d.Storage)
		}
		if string(l.KeyNames[0]) != r.Key("/e") || string(l.KeyNames[1]) != r.Key("/f") ||
			string(l.Records.Rows[0].Key) != r.Key("/g") {
			t.Errorf("%s: %+v", mode, l)
		}
	}
}

// TestRowsOfDifference: replaced keys share beginnings as keys do, never a part of a character, and objects of
// Kubernetes lose their names.
func TestRowsOfDifference(t *testing.T) {
	keys := []string{"/\u00e8/a/x", "/\u00e8/a/y", "/\u00e9/a/x"}
	of := func(bucket string) *dossier.Difference {
		d := &dossier.Difference{Bucket: bucket, Shared: []int{0, 6, 1}, Objects: map[int]string{0: "Pod default/web"},
			Cells: []dossier.Cells{{SHA: []string{"abc", "", "="}}}}
		for n, k := range keys {
			d.Rest = append(d.Rest, k[d.Shared[n]:])
		}
		return d
	}
	r := New(Prefix, []byte("salt"))
	d, key := of("key"), ""
	r.difference(d)
	for n, k := range keys {
		key = key[:d.Shared[n]] + d.Rest[n]
		if key != r.Key(k) || !utf8.ValidString(d.Rest[n]) {
			t.Errorf("row %d: %q, want %q", n, key, r.Key(k))
		}
	}
	if d.Shared[1] < len("/\u00e8/a/") || d.Shared[2] != 1 || d.Objects[0] != "Pod" ||
		d.Cells[0].SHA[0] != r.Digest("abc") {
		t.Errorf("%+v", d)
	}
	same := &dossier.Difference{Bucket: "key", Shared: []int{0, 10, 0}, Rest: []string{`\x80/a/b/c`, "", `\x80/a/b/c`}}
	r.difference(same)
	if k := r.Key("\x80/a/b/c"); same.Rest[0] != k || same.Rest[1] != "" || same.Shared[1] != len(k) ||
		same.Rest[2] != "" || same.Shared[0] != 0 {
		t.Errorf("equal rows: %q, shared %v", same.Rest, same.Shared)
	}
	for name, c := range map[string]struct {
		r *Redactor
		d *dossier.Difference
	}{"another bucket": {r, of("alarm")}, "clear": {New(Clear, nil), of("key")}} {
		before := slices.Clone(c.d.Rest)
		if c.r.difference(c.d); !slices.Equal(c.d.Rest, before) || c.d.Objects[0] != "Pod default/web" {
			t.Errorf("%s: %+v", name, c.d)
		}
	}
}

// TestBounded: a key stands by itself in a text, and one that could be a word is marked as data.
func TestBounded(t *testing.T) {
	for _, c := range []struct {
		text, key string
		name      bool
		want      bool
	}{
		{"key /a/b is", "/a/b", false, true}, {"/a/b", "/a/b", false, true}, {"key /a/bc", "/a/b", false, false},
		{"key /a/b/c", "/a/b", false, true}, {"xa/b", "a/b", false, false}, {"x/a/b", "/a/b", false, true},
		{"key a/b", "a/b", false, true}, {"a/b/", "a/b/", false, true}, {"a/b/c", "a/b/", false, true},
		{"key=lock", "lock", true, true}, {`key "lock"`, "lock", true, true}, {"key 'lock'", "lock", true, true},
		{"the lock is", "lock", true, false}, {"lock", "lock", true, true}, {"lock is", "lock", true, false},
		{"key=locks", "lock", true, false}, {"key=lock", "lock", false, true},
	} {
		if got := bounded(c.text, strings.Index(c.text, c.key), &word{text: c.key, name: c.name}); got != c.want {
			t.Errorf("%q in %q: %t", c.key, c.text, got)
		}
	}
}

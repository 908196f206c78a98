package redact

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
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
		"ü/ö"}
	r := New(Hashed, []byte("salt"))
	for text, want := range map[string]string{
		`put key="/a/b" and "/a"`:       `put key="{/a/b}" and "{/a}"`,
		`/a/b/c differs, /ab too`:       `{/a/b}/c differs, /ab too`,
		`put key="foo", food and foo`:   `put key="{foo}", food and foo`,
		`entry 42 of key="42"`:          `entry 42 of key="{42}"`,
		`bucket key, key "key"`:         `bucket key, key "{key}"`,
		`history '/it'\''s here' node1`: `history '{/it's here}' node1`,
		`row /odd\x00\u202e is absent`:  `row {/odd` + "\x00\u202e" + `} is absent`,
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
	r.Apply(d)
	want := shell.Format("etcd-medic history {} --prefix {}", r.Key("foo"), r.Key("/a/b")).Sources("node1").String()
	if got := d.Report.Next[1].Command.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := string(d.Report.Verdict.FirstBreak.Key); got != r.Key("/a/b") {
		t.Errorf("the first break names %q", got)
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

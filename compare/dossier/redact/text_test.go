package redact

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
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

package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// tableOf is what a terminal of so many columns shows of rows.
func tableOf(t *testing.T, width int, rows ...Row) string {
	t.Helper()
	var b bytes.Buffer
	s := NewStream(&b, Table, Head{}, Options{Columns: true, Width: width})
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

func memberRow(name, url string) Row {
	return MemberRow{Member: dumpdb.Member{ID: 0xabc, Name: name, PeerURLs: []string{url}}}
}

// TestTablesFit: every line fits the terminal whatever is in the cells; what is cut or left out is said at the end.
func TestTablesFit(t *testing.T) {
	long := strings.Repeat("漢字-and-words-", 40)
	for _, width := range []int{40, 80, 120, 200} {
		got := tableOf(t, width, memberRow("node1", "http://127.0.0.1:2380"), memberRow(long, "http://127.0.0.1:2380"),
			memberRow("node\x1b[2J\x1f\x1e\n", long))
		for l := range strings.Lines(got) {
			if n := text.StringWidthWithoutEscSequences(strings.TrimRight(l, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, l)
			}
		}
		said := strings.Join(strings.Fields(got), " ")
		if !strings.Contains(said, "long cells are cut (…)") || !strings.Contains(said, "-w lines shows everything") {
			t.Errorf("nothing says that cells are cut:\n%s", got)
		}
		if strings.ContainsAny(got, "\x1b\x1d\x1e\x1f") || !strings.HasPrefix(got, "ID ") {
			t.Errorf("%q", got)
		}
	}
}

// TestTableGroups: a header stands once for the rows of one kind; columns keep their width from group to group and grow
// where they must; rows of another kind have a header of their own.
func TestTableGroups(t *testing.T) {
	var rows []Row
	for range 3 * tableGroup {
		rows = append(rows, memberRow("node1", "http://a:2380"))
	}
	rows = append(rows, DBFact{Bucket: "meta", Name: "term", Num: 7})
	got := tableOf(t, 120, rows...)
	if n := strings.Count(got, "PEER URLS"); n != 1 {
		t.Errorf("%d headers for rows of one width", n)
	}
	if !strings.HasSuffix(got, "\n\nNAME  VALUE\nterm      7\n") {
		t.Errorf("the second table: %q", got[len(got)-60:])
	}
	if n := strings.Count(got, "node1"); n != 3*tableGroup {
		t.Errorf("%d rows", n)
	}
	wider := tableOf(t, 120, append(rows[:tableGroup:tableGroup], memberRow("a-longer-name", "http://a:2380"))...)
	if n := strings.Count(wider, "PEER URLS"); n != 2 {
		t.Errorf("%d headers where a column has to grow", n)
	}
}

// TestLinesStay: in a pipe, and with -w lines on a terminal, rows are lines as before.
func TestLinesStay(t *testing.T) {
	row := memberRow("node1", "http://a:2380")
	want := string(row.Line(nil, Options{})) + "\n"
	for _, c := range []struct {
		f Format
		o Options
	}{{Table, Options{}}, {Plain, Options{}}, {Plain, Options{Columns: true, Width: 80}}} {
		var b bytes.Buffer
		s := NewStream(&b, c.f, Head{}, c.o)
		if err := s.Close(s.Write(row)); err != nil || b.String() != want {
			t.Errorf("%+v: %v %q, want %q", c, err, b.String(), want)
		}
	}
}

package render

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

func TestHanging(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"short", 1, "KEEP   short\n"},
		{strings.Repeat("word ", 30), 1, "KEEP   " + strings.TrimSpace(strings.Repeat("word ", 14)) + " …\n"},
		{"two\nlines  and\x1b[31m red", 1, "KEEP   two lines and\\u001b[31m red\n"},
	} {
		var b bytes.Buffer
		p := screen{page: newPage(&b, Options{Width: 80})}
		p.hanging("KEEP   ", c.s, c.most)
		if err := p.flush(); err != nil || b.String() != c.want {
			t.Errorf("%q, want %q (%v)", b.String(), c.want, err)
		}
		for line := range strings.Lines(b.String()) {
			if len([]rune(line)) > 81 {
				t.Errorf("%d columns: %q", len([]rune(line)), line)
			}
		}
	}
}

// TestSentencesEndWhole: a text that is too long ends after a sentence or a clause, and is cut only without one.
func TestSentencesEndWhole(t *testing.T) {
	pad := strings.Repeat("x", 37) + " " // the narrowest screen has 80 columns
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{pad + "keep every data dir, start none: if both meet, one is lost", 1,
			pad + "keep every data dir, start none …"},
		{pad + "one clause; two clauses; and a third one that is long", 1, pad + "one clause; two clauses …"},
		{pad + "the first. then a clause: with more words that take " + pad + "the second. and more words", 2,
			pad + "the first. then a clause: with more\n   words that take " + pad + "the second …"},
		{"early: " + pad + "and then words without any end that go on", 1,
			"early: " + pad + "and then words without any …"},
		{pad + "it fits as a whole.", 1, pad + "it fits as a whole."},
	} {
		var b bytes.Buffer
		p := screen{page: newPage(&b, Options{Width: 80})}
		p.hanging("DO ", c.s, c.most)
		if err := p.flush(); err != nil || b.String() != "DO "+c.want+"\n" {
			t.Errorf("%q, want %q (%v)", b.String(), c.want, err)
		}
	}
}

// TestVerdictLineFits: the last line names whom to keep in full; the class goes before the cause does.
func TestVerdictLineFits(t *testing.T) {
	id := cause.ID("rows-changed-outside-the-log")
	r := &compare.Report{Verdict: compare.Verdict{Health: check.Unhealthy, Class: "latent-divergence", Cause: &id},
		Best: &compare.Best{Ranking: make([]compare.Rank, 3)}}
	p := verdictSection{newPage(io.Discard, Options{Width: 80})}
	for _, c := range []struct {
		best []string
		want string
	}{
		{[]string{"n1", "n3"}, "latent-divergence, rows-changed-outside-the-log; keep n1 or n3"},
		{[]string{"node1", "node3"}, "rows-changed-outside-the-log; keep node1 or node3"},
		{[]string{"etcd-control-plane-1", "etcd-control-plane-2"},
			"keep etcd-control-plane-1 or etcd-control-plane-2"},
		{[]string{strings.Repeat("x", 90)}, "keep " + strings.Repeat("x", 61) + "…"},
	} {
		r.Best.Members = c.best
		if got := p.inShort(r); got != "NOT HEALTHY: "+c.want || columns(got) > 80 {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestEqualColumnsMakeRoom: columns that say the same of all members give way to what is wrong, and only as far as that
// needs room; what they say is kept in words.
func TestEqualColumnsMakeRoom(t *testing.T) {
	head := []string{"MEMBER", "ETCD", "LOG END", "APPLIED", "REVISION", "AUTH", "KEYS", "WHAT IS WRONG"}
	for _, c := range []struct {
		wrong string
		width int
		said  []string
	}{
		{"-", 80, nil},
		{"K03-1: missing 1 write of many", 80, []string{"etcd 3.5.x"}},
		{strings.Repeat("long ", 20), 80, []string{"etcd 3.5.x", "auth 4", "applied 7"}},
		{strings.Repeat("long ", 20), 140, nil},
	} {
		rows := [][]string{{"node1", "3.5.x", "2/9", "7", "150", "4", "114", "-"},
			{"node2", "3.5.x", "2/8", "7", "151", "4", "113", c.wrong}}
		if said := leaveOutEqual(head, rows, c.width); !slices.Equal(said, c.said) {
			t.Errorf("%.20s on %d: %q, want %q", c.wrong, c.width, said, c.said)
		}
	}
	one := [][]string{{"backup.db", "3.5.x", "-", "7", "150", "4", "114", strings.Repeat("long ", 20)}}
	if said := leaveOutEqual(head, one, 80); said != nil {
		t.Errorf("one member has nothing in common with others: %q", said)
	}
}

// TestRowsSayWhatIsWrong: a row has the numbers of its findings and what is wrong in words, without the member's name.
func TestRowsSayWhatIsWrong(t *testing.T) {
	best := &compare.Best{Ranking: []compare.Rank{{Member: "n3", Behind: 58}}}
	finding := func(title string, members ...string) *check.Finding {
		return &check.Finding{ID: "M04-1", Title: title, Members: members}
	}
	for _, c := range []struct {
		name     string
		findings []*check.Finding
		want     string
	}{
		{"n1", []*check.Finding{finding("n1 lost its data", "n1")}, "M04-1: lost its data"},
		{"n1", []*check.Finding{finding("n1: entry 3 was altered", "n1")}, "M04-1: entry 3 was altered"},
		{"n1", []*check.Finding{finding("1 row differs, wrong on n1", "n1")}, "M04-1: 1 row differs"},
		{"n1", []*check.Finding{finding("n1 and n2: member 5 is unknown", "n1", "n2"), finding("x", "n1")},
			"M04-1 M04-1: member 5 is unknown"},
		{"n3", nil, "lags by 58 entries"}, {"n2", nil, "-"},
	} {
		if got := wrongWith(&evidence.Facts{Name: c.name}, best, c.findings); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCellsEndWhole: a cell loses clauses at its end, takes a shorter text, and is cut only without both. Numbers of
// findings alone say nothing.
func TestCellsEndWhole(t *testing.T) {
	const head = "node1   2/9    "
	for _, c := range []struct {
		s, short string
		lines    int
		want     string
	}{
		{"lost its data: its log holds 3 entries only, the cluster is at 208, far above", "", 1, "lost its data"},
		{"replace: missing 43 writes (43 of them acknowledged); named by A02-1, A04-1", "", 1,
			"replace: missing 43 writes (43 of them acknowledged)"},
		{"M07-1 M03-1: members 1a491d6aa0606200, 48b9c2c2063da82d and 9050305c4cf64640 are there", "M07-1 +1: zombies",
			1, "M07-1 +1: zombies"},
		{"M07-1 M03-1: members 1a491d6aa0606200, 48b9c2c2063da82d and 9050305c4cf64640 are there", "", 1,
			"M07-1 M03-1: members 1a491d6aa0606200, 48b9c2c2063da82d and 9050…"},
		{"M08-1: is the data dir of member dde5219258918779, which was removed by hand", "", 2,
			"M08-1: is the data dir of member dde5219258918779, which was\n" + strings.Repeat(" ", len(head)) +
				"removed by hand"},
	} {
		var b bytes.Buffer
		p := screen{page: newPage(&b, Options{Width: 80})}
		p.room.cell = c.lines
		p.inCell(head, c.s, []string{c.short})
		if err := p.flush(); err != nil || b.String() != head+c.want+"\n" {
			t.Errorf("%q, want %q (%v)", b.String(), c.want, err)
		}
	}
}

// TestRowsFor: as many lines are counted as are written.
func TestRowsFor(t *testing.T) {
	for n := range 60 {
		s := strings.TrimSpace(strings.Repeat(strings.Repeat("w", 1+n%9)+" ", n+1))
		var b bytes.Buffer
		p := newPage(&b, Options{Width: 80})
		p.wrapped("", "", s, 100)
		if err := p.flush(); err != nil || bytes.Count(b.Bytes(), []byte("\n")) != rowsFor(s, 80) {
			t.Errorf("%d lines are counted of\n%s%v", rowsFor(s, 80), b.String(), err)
		}
	}
}

// TestRoomsShrink: the last room is the smallest, and no room shows more sentences than the first.
func TestRoomsShrink(t *testing.T) {
	first, last := rooms[0], rooms[len(rooms)-1]
	for i, r := range rooms {
		if r.wrong > first.wrong || r.sentence > first.sentence || r.cell > first.cell || r.wrong < last.wrong ||
			r.cell < last.cell || r.fewer > last.fewer || r.pairs > last.pairs || r.wrong < r.sentence {
			t.Errorf("room %d: %+v", i, r)
		}
	}
}

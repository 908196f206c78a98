package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// TestLanes: every kind of range and mark has its sign, the graver one wins a column, and lines fit the width.
func TestLanes(t *testing.T) {
	tl := &timeline.Timeline{First: 1, Last: 40,
		Terms: []timeline.Term{{Term: 2, Span: timeline.Span{From: 1, To: 20}, Leader: "n1", Elected: true},
			{Term: 3, Span: timeline.Span{From: 21, To: 40}, Leader: "n2"}},
		Lanes: []timeline.Lane{
			{Member: "n1", LogFrom: 11, LogTo: 40, Applied: 35, Purged: []timeline.Span{{From: 1, To: 10}}},
			{Member: "n2", LogFrom: 1, LogTo: 30, Applied: 30, Skipped: []timeline.Span{{From: 5, To: 8}},
				Damaged: []timeline.Span{{From: 28, To: 30}}, Hidden: []timeline.Span{{From: 12, To: 13}}},
		},
		Marks: []timeline.Moment{{Index: 3, Kind: "conf-change"},
			{Index: 6, Kind: "conf-change", Refused: true}, {Index: 12, Kind: "start", Members: []string{"n1"}},
			{Index: 20, Kind: "auth-revision-jump", Members: []string{"n1"}},
			{Index: 22, Kind: "divergence", Members: []string{"n1"}}},
		Events: []timeline.Event{{Index: 22, Lacking: []int{0}}, {Index: 24, Lacking: []int{0}},
			{Index: 29, Lacking: []int{1}}}}
	want := []string{
		"entry  1                  20                 40",
		"term   |2 n1               |3",
		"log    ..c..r..................................",
		"n1     //////////=>=======^=X=x===========-----",
		"n2     ====~~~~===##==============###",
		"                          ! first break 20",
		"",
		"= applied   - in the log only   / not in the log",
		"~ skipped by snapshot   > start",
		"^ auth revision jumps   X first missing effect",
		"x missing effects   # damaged or missing",
		"c conf change   r refused conf change",
	}
	got := Lanes(tl, 20, 50)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(- want, + got)\n%s", diff)
	}
	for _, width := range []int{0, 10, 47, 200} {
		for _, l := range Lanes(tl, 40, width) {
			if len(l) > max(width, 60) {
				t.Errorf("width %d: %q", width, l)
			}
		}
	}
	if Lanes(nil, 0, 100) != nil {
		t.Error("no timeline, and yet a drawing")
	}
}

// TestLanesOfLongLog: a log far longer than the line is drawn within it.
func TestLanesOfLongLog(t *testing.T) {
	tl := &timeline.Timeline{First: 1 << 40, Last: 1<<40 + 1<<30,
		Lanes: []timeline.Lane{{Member: strings.Repeat("long", 20), LogFrom: 1 << 40, LogTo: 1<<40 + 1<<30,
			Applied: 1<<40 + 1<<29}}}
	for _, l := range Lanes(tl, 1<<40+1<<30, 100) {
		if n := len([]rune(l)); n > 100 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// TestLanesNameObjects: below the lanes stands what the first missing entry of a member writes.
func TestLanesNameObjects(t *testing.T) {
	r := &compare.Report{Timeline: []timeline.Moment{
		{Term: 2, Index: 81, Kind: "divergence", Members: []string{"node2"}, Objects: []evidence.Object{
			{Kind: "Deployment", Namespace: "shop", Name: "web", Manager: "kubectl"},
			{Kind: "Node", Name: "a\x1b[2J"}}},
		{Term: 2, Index: 82, Kind: "divergence", Members: []string{"node3"}},
	}}
	line := &timeline.Timeline{First: 1, Last: 100, Lanes: []timeline.Lane{{Member: "node2"}}}
	var b bytes.Buffer
	p := newPage(&b, Options{Lanes: line, Width: 100})
	lanesSection{p}.write(r)
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	const want = "  X 2/81 on node2: Deployment shop/web, written by kubectl; Node a"
	if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "node3") ||
		strings.Contains(b.String(), "\x1b") {
		t.Errorf("%q", b.String())
	}
}

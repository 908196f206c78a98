//go:build browser

package htmlreport

import (
	"fmt"
	"math"
	"testing"

	"github.com/chromedp/chromedp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestBrowserHead: the head says what is wrong, whom to keep and how sure that is, each command has a button that
// copies it, and what is lost leads to its list.
func TestBrowserHead(t *testing.T) {
	b := open(t, eachLacks(t), 1440, 900, false)
	if s := b.text(`document.querySelector("#verdict").innerText`); s == "" || b.eval(`(() => {
		const s = document.querySelector("#verdict").innerText.toLowerCase();
		return ["keep", "loses", "first break", "what would refute this"].every((w) => s.includes(w));
	})()`) != true {
		t.Errorf("the head says %q", s)
	}
	if n := b.eval(`document.querySelectorAll("#do code").length`); n == float64(0) ||
		n != b.eval(`document.querySelectorAll("#do code + button.copy").length`) {
		t.Errorf("%v commands, not each with a button", n)
	}
	if b.eval(`document.querySelectorAll("#verdict a[href='#lost']").length`) == float64(0) {
		t.Fatal("no link to the list of what is lost")
	}
	b.run(chromedp.Click("#verdict a[href='#lost']", chromedp.ByQuery))
	b.waitFor("the list of what is lost", `(() => {
		const r = document.getElementById("lost").getBoundingClientRect();
		return r.top >= 0 && r.top < innerHeight;
	})()`)
	b.quiet()
}

// eachLacks are three members, of which each lacks a write that the others hold.
func eachLacks(t *testing.T) *dossier.Dossier {
	t.Helper()
	script := clustertest.NewScript("3.5.0")
	for i := range script.Members {
		script.Start(i)
	}
	for i := range 12 {
		step := clustertest.Step{Req: &etcdserverpb.InternalRaftRequest{
			Put: &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "/k%d", i), Value: []byte("v")}}}
		if i%4 == 3 {
			step.Skip = []int{i / 4}
		}
		script.Add(step)
	}
	return collect(t, script.Write(t, t.TempDir())...)
}

// TestBrowserCards: cells of members are red by the log. Each of three auth revisions differs from the others, and the
// one that the log gives is not red.
func TestBrowserCards(t *testing.T) {
	b := open(t, incident(t, "a-auth-revision-replay"), 1440, 900, false)
	red := b.numbers(`[...document.querySelectorAll(".card")].map((c) => c.querySelectorAll("dd.off").length)`)
	if len(red) != 3 || red[0] == 0 || red[1] == 0 || red[2] != 0 {
		t.Errorf("red cells of the members: %v", red)
	}
	if s := b.text(`getComputedStyle(document.querySelector("dd.off")).color`); s ==
		b.text(`getComputedStyle(document.querySelector("dd:not(.off)")).color`) {
		t.Errorf("a red cell has the color %s, as others", s)
	}
	b.quiet()
}

// TestBrowserMap: the boxes of the map are as large as what they stand for, fill it, and do not overlap.
func TestBrowserMap(t *testing.T) {
	b := open(t, incident(t, "m-healthy-3.6"), 1440, 900, false)
	b.eval(`document.getElementById("f-map").scrollIntoView()`)
	boxes := b.numbers(`[...document.querySelectorAll("#f-map > div")].map((d) => d.clientWidth * d.clientHeight)`)
	sizes := b.numbers(`JSON.parse(document.getElementById("data").textContent).storage.find((s) => s.prefixes).prefixes
		.map((p) => p.bytes).filter((n) => n > 0).sort((x, y) => y - x)`)
	all := b.number(`document.getElementById("f-map").clientWidth * document.getElementById("f-map").clientHeight`)
	var area, bytes float64
	for i := range sizes {
		area, bytes = area+boxes[i], bytes+sizes[i]
	}
	if len(boxes) != len(sizes) || len(boxes) < 3 || math.Abs(area/all-1) > 0.1 {
		t.Fatalf("%d boxes for %d prefixes fill %.2f of the map", len(boxes), len(sizes), area/all)
	}
	for i := range sizes {
		if math.Abs(boxes[i]/area-sizes[i]/bytes) > 0.02 {
			t.Errorf("box %d has %.3f of the area for %.3f of the bytes", i, boxes[i]/area, sizes[i]/bytes)
		}
	}
	b.quiet()
}

// TestBrowserPages: the strip of a database has red cells where pages are damaged, and the others have none.
func TestBrowserPages(t *testing.T) {
	b := drawn(t, "f-bbolt-page-corruption")
	b.eval(`document.getElementById("f-strips").scrollIntoView()`)
	members := b.number(`document.querySelectorAll("#f-strips canvas").length`)
	for n := range int(members) {
		damaged := b.number(`JSON.parse(document.getElementById("data").textContent).storage[%d].damaged.length`, n)
		b.eval(fmt.Sprintf(`document.querySelectorAll("#f-strips canvas")[%d].id = "strip%d"`, n, n))
		size := b.numbers(`(() => { const c = document.getElementById("strip%d"); return [c.clientWidth, c.clientHeight]; })()`, n)
		red := b.number(`share("#strip%d", [0, 0, %g, %g], "red")`, n, size[0], size[1])
		if (red > 0.001) != (damaged > 0) {
			t.Errorf("member %d has %g damaged pages, and %.4f of its strip is red", n, damaged, red)
		}
	}
	if members != 3 {
		t.Errorf("%g strips", members)
	}
	b.quiet()
}

// TestBrowserMarks: compactions, alarms, snapshots, starts and switches of auth have their sign on the merged log or on
// a lane.
func TestBrowserMarks(t *testing.T) {
	colors := map[string]string{"compaction": "m1", "alarm": "red", "snapshot": "m4", "start": "green", "auth": "amber"}
	b := drawn(t, "m-healthy-3.6")
	for kind, color := range colors {
		var at []struct {
			Index float64
			Lane  float64
		}
		b.run(chromedp.Evaluate(fmt.Sprintf(`(() => {
			const t = JSON.parse(document.getElementById("data").textContent).timeline;
			return t.marks.filter((m) => m.kind === %q).map((m) => ({Index: m.index,
				Lane: (m.members || []).length ? t.lanes.findIndex((l) => l.member === m.members[0]) : -1}));
		})()`, kind), &at))
		if len(at) == 0 {
			t.Errorf("%s: no mark", kind)
			continue
		}
		most := 0.0
		for _, m := range at {
			y := marksY
			if m.Lane >= 0 {
				y = barAt - 10 + laneHeight*m.Lane
			}
			most = max(most, b.number(`share("#tl", [%g, %g, 12, 12], %q)`, b.x(m.Index)-6, y-6, color))
		}
		if most < 0.08 {
			t.Errorf("%s: at most %.3f of the place of a mark is drawn", kind, most)
		}
	}
	b.quiet()
}

// TestBrowserMembership: a bar is drawn for as long as raft counts the member, full for a voter and hatched for a
// learner.
func TestBrowserMembership(t *testing.T) {
	b := drawn(t, "i-stuck-learner")
	var rows []struct {
		ID    string `json:"id"`
		Spans []struct {
			From float64 `json:"from"`
			To   float64 `json:"to"`
			What string  `json:"what"`
		} `json:"spans"`
	}
	b.run(chromedp.Evaluate(`JSON.parse(document.getElementById("data").textContent).timeline.history`, &rows))
	b.eval(`document.getElementById("ms").scrollIntoView()`)
	learners, voters := 0, 0
	for n, m := range rows {
		lane := int(b.number(`JSON.parse(document.getElementById("data").textContent).timeline.lanes.findIndex((l) => l.id === %q)`,
			m.ID))
		if lane < 0 {
			continue
		}
		for _, s := range m.Spans {
			x0, x1 := b.x(s.From-0.5)+2, b.x(s.To+0.5)-2
			if x1-x0 < 40 {
				continue
			}
			box := fmt.Sprintf(`"#ms", [%g, %d, %g, 12], "m%d"`, x0, 44+30*n+9, x1-x0, lane)
			lines := b.number(`slanted(%s)`, box)
			if s.What == "learner" {
				learners++
				if lines < math.Floor((x1-x0-12)/7)-3 {
					t.Errorf("the learner in row %d has %g lines on %g pixels", n, lines, x1-x0)
				}
				continue
			}
			voters++
			if lines > 2 {
				t.Errorf("the voter in row %d is hatched", n)
			}
		}
	}
	if learners == 0 || voters == 0 {
		t.Errorf("%d bars of learners, %d of voters", learners, voters)
	}
	b.quiet()
}

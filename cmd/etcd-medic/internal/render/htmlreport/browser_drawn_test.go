//go:build browser

package htmlreport

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// inkScript looks at the pixels of drawings. A box is left, top, width and height.
const inkScript = `(() => {
const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const pixels = (canvas, x, y, w, h) => { const r = devicePixelRatio; copy.canvas.width = canvas.width; copy.canvas.height = canvas.height; copy.drawImage(canvas, 0, 0); return copy.getImageData(Math.round(x * r), Math.round(y * r), Math.max(1, Math.round(w * r)), Math.max(1, Math.round(h * r))); };
const rgb = (name) => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); c.fillRect(0, 0, 1, 1); return c.getImageData(0, 0, 1, 1).data; };
const ink = (p, x, y, c, d) => { const i = (y * p.width + x) * 4; return p.data[i + 3] > 100 && [0, 1, 2].every((k) => Math.abs(p.data[i + k] - c[k]) <= d); };
// share is how much of a box has a color.
window.share = (sel, box, name) => { const p = pixels(document.querySelector(sel), ...box), c = rgb(name); let n = 0; for (let y = 0; y < p.height; y++) for (let x = 0; x < p.width; x++) if (ink(p, x, y, c, 40)) n++; return n / p.width / p.height; };
// slanted is how many lines of a color cross a box from its lower to its upper edge, to the right, with room between.
window.slanted = (sel, box, name) => { const p = pixels(document.querySelector(sel), ...box), c = rgb(name), seen = new Map(); let n = 0;
  for (let i = 0; i < p.data.length; i += 4) { const s = p.data.slice(i, i + 3).join(); seen.set(s, (seen.get(s) || 0) + 1); }
  const ground = [...seen].sort((a, b) => b[1] - a[1])[0][0].split(",").map(Number), far = [0, 1, 2].map((k) => c[k] - ground[k]), len = Math.hypot(...far);
  if (len < 20) return 0;
  const inked = (x, y) => { const d = [0, 1, 2].map((k) => p.data[(y * p.width + x) * 4 + k] - ground[k]), part = (d[0] * far[0] + d[1] * far[1] + d[2] * far[2]) / len / len; return part > 0.3 && Math.hypot(...d.map((v, k) => v - part * far[k])) < 25; };
  const line = (x) => { let all = 0; for (let k = 0; k < p.height; k++) if (inked(x + k, p.height - 1 - k)) all++; return all / p.height; };
  for (let x = 0; x + 3 + p.height <= p.width; x++) if (line(x) >= 0.8 && line(x + 3) < 0.3) { n++; x += 3; }
  return n; };
// redLine is where the dashed line of the first break crosses a box, as a part of its width; below 0 if nowhere.
window.redLine = (sel, box) => { const p = pixels(document.querySelector(sel), ...box), red = (i) => p.data[i + 3] > 100 && p.data[i] - p.data[i + 1] > 60 && Math.abs(p.data[i + 1] - p.data[i + 2]) < 20; let sum = 0, cols = 0;
  for (let x = 0; x < p.width; x++) { let n = 0; for (let y = 0; y < p.height; y++) if (red((y * p.width + x) * 4)) n++; if (n > p.height * 0.35) { sum += x + 0.5; cols++; } }
  return cols ? sum / cols / p.width : -1; };
// level is the middle of the rows in which a box has a color; below 0 if in none.
window.level = (sel, box, name) => { const p = pixels(document.querySelector(sel), ...box), c = rgb(name); let lo = -1, hi = -1;
  for (let y = 0; y < p.height; y++) for (let x = 0; x < p.width; x++) if (ink(p, x, y, c, 40)) { if (lo < 0) lo = y; hi = y; break; }
  return (lo + hi) / 2; };
// plot is the box of a chart's drawing on its canvas.
window.plot = (id) => { const o = document.querySelector("#" + id + " .u-over").getBoundingClientRect(), c = document.querySelector("#" + id + " canvas").getBoundingClientRect(); return [o.left - c.left, o.top - c.top, o.width, o.height]; };
})()`

// The measures of timeline.js and scale.js.
const (
	gutter, rightEdge = 150.0, 16.0
	laneHeight, barAt = 50.0, 146.0 // barAt is the top of the first member's bar
	barHeight, marksY = 16.0, 79.0  // marksY is the middle of marks on the merged log
	logAt, logHeight  = 72.0, 46.0
)

// drawn opens the page of an incident, with the functions of inkScript.
func drawn(t *testing.T, name string) *tab {
	t.Helper()
	b := open(t, incident(t, name), 1440, 900, false)
	b.run(chromedp.Evaluate(inkScript, nil))
	return b
}

func (b *tab) number(format string, args ...any) float64 {
	b.t.Helper()
	var f float64
	b.run(chromedp.Evaluate(fmt.Sprintf(format, args...), &f))
	return f
}

func (b *tab) numbers(format string, args ...any) []float64 {
	b.t.Helper()
	var f []float64
	b.run(chromedp.Evaluate(fmt.Sprintf(format, args...), &f))
	return f
}

// x is where an index stands on the whole timeline.
func (b *tab) x(index float64) float64 {
	b.t.Helper()
	ends := b.numbers(`(() => { const t = JSON.parse(document.getElementById("data").textContent).timeline; return [t.first - 0.5, t.last + 0.5, document.getElementById("tl").getBoundingClientRect().width]; })()`)
	return gutter + (ends[2]-gutter-rightEdge)*(index-ends[0])/(ends[1]-ends[0])
}

// TestBrowserRanges: purged ranges, those of a received snapshot and those that damage hides are hatched on the lane of
// their member, damaged and lost ones are red, and the same place of another lane, and the rest of the lane, is not.
func TestBrowserRanges(t *testing.T) {
	for _, c := range []struct {
		incident string
		// lane is the one with the range, free one without; -1 is the merged log.
		lane, free int
		from, to   float64
		color      string
		solid      bool
	}{
		{"t-lagging-with-log-gap", 1, 0, 1, 729, "hatch", false},
		{"t-lagging-with-log-gap", 2, 0, 1, 729, "hatch", false},
		{"t-lagging-with-log-gap", -1, 0, 730, 1732, "hatch", false},
		{"i-stuck-learner", 3, 0, 1, 69, "m4", false},
		{"f-bbolt-page-corruption", 0, 1, 129, 155, "red", false},
		{"f-bbolt-page-corruption", 0, 1, 298, 313, "red", false},
		{"e3-wal-missing-last-segment", 0, 1, 324, 515, "red", true},
		{"e-torn-wal-tail", 1, 0, 142, 142, "red", true},
	} {
		b := drawn(t, c.incident)
		box := func(lane int, from, to float64) string {
			top, height := barAt+laneHeight*float64(lane), barHeight
			if lane < 0 {
				top, height = logAt+14, logHeight-14
			}
			x0, x1 := b.x(from-0.5)+1, b.x(to+0.5)-1
			return fmt.Sprintf(`"#tl", [%g, %g, %g, %g], %q`, x0, top+2, x1-x0, height-4, c.color)
		}
		of := func(lane int, from, to float64) float64 {
			if c.solid {
				return b.number(`share(%s)`, box(lane, from, to))
			}
			return b.number(`slanted(%s)`, box(lane, from, to))
		}
		want := 0.9
		if !c.solid {
			want = math.Floor((b.x(c.to+0.5)-b.x(c.from-0.5)-12)/7) - 2
		}
		if got := of(c.lane, c.from, c.to); want < 0.5 || got < want {
			t.Errorf("%s, entries %g to %g of lane %d: %g, want %g", c.incident, c.from, c.to, c.lane, got, want)
		}
		if got := of(c.free, c.from, c.to); got > want/4 {
			t.Errorf("%s, entries %g to %g of lane %d: %g without such a range", c.incident, c.from, c.to, c.free, got)
		}
		b.quiet()
	}
}

// TestBrowserRefusedChange: a conf change that every server refuses is crossed out in red, on the merged log and above
// the membership; others are not.
func TestBrowserRefusedChange(t *testing.T) {
	b := drawn(t, "i-stuck-learner")
	var changes []struct {
		Index   float64 `json:"index"`
		Refused bool    `json:"refused"`
	}
	b.run(chromedp.Evaluate(`JSON.parse(document.getElementById("data").textContent).timeline.marks.filter((m) => m.kind === "conf-change")`, &changes))
	refused := 0
	for _, c := range changes {
		if c.Refused {
			refused++
		}
		for canvas, y := range map[string]float64{"#tl": marksY, "#ms": 42} {
			crossed := true
			for _, d := range []float64{-5, 0, 5} {
				crossed = crossed && b.number(`share(%q, [%g, %g, 3, 3], "red")`, canvas, b.x(c.Index)+d-1, y-d-1) > 0.2
			}
			if crossed != c.Refused {
				t.Errorf("%s: the conf change at entry %g is crossed out: %t, refused: %t", canvas, c.Index, crossed,
					c.Refused)
			}
		}
	}
	if refused == 0 || refused == len(changes) {
		t.Errorf("%d of %d conf changes are refused", refused, len(changes))
	}
	b.quiet()
}

var curves = []string{"c-auth", "c-index", "c-rev", "c-miss"}

// breaks is where the first break stands on the timeline and on every curve, as a part of their width.
func (b *tab) breaks() []float64 {
	b.t.Helper()
	out := []float64{b.number(`redLine("#tl", [%g, 20, document.getElementById("tl").getBoundingClientRect().width - %g, 24])`,
		gutter, gutter+rightEdge)}
	for _, id := range curves {
		out = append(out, b.number(`redLine("#%s canvas", plot(%q))`, id, id))
	}
	return out
}

// level is the height at which the curve of a member crosses a stretch of the plot, from its top.
func (b *tab) level(member int, from, to float64) float64 {
	b.t.Helper()
	return b.number(`(() => { const [x, y, w, h] = plot("c-auth"); return level("#c-auth canvas", [x + w * %g, y, w * %g, h], "m%d"); })()`,
		from, to-from, member)
}

// TestBrowserCurvesFollow: whatever moves the timeline moves the curves along, to the same place.
func TestBrowserCurvesFollow(t *testing.T) {
	b := drawn(t, "a-auth-revision-replay")
	click := func(id string) func() { return func() { b.run(chromedp.Click("#"+id, chromedp.ByID)) } }
	last := []float64{-1}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"at first", func() {}},
		{"jump", click("tl-break")},
		{"to the right", click("tl-right")},
		{"zoom out", click("tl-out")},
		{"zoom in", click("tl-in")},
		{"key", func() {
			b.eval(`document.getElementById("tl").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true}))`)
		}},
		{"wheel", func() {
			b.eval(`(() => { const c = document.getElementById("tl"), r = c.getBoundingClientRect(); c.dispatchEvent(new WheelEvent("wheel", {ctrlKey: true, deltaY: -100, clientX: r.left + 300, clientY: r.top + 100, bubbles: true, cancelable: true})); })()`)
		}},
		{"by time", click("tl-time")},
		{"all", click("tl-all")},
	} {
		step.do()
		b.run(chromedp.Evaluate(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`, nil, awaited))
		at := b.breaks()
		if at[0] < 0 || math.Abs(at[0]-last[0]) < 0.01 {
			t.Errorf("%s: the first break stands at %.3f of the timeline, before at %.3f", step.what, at[0], last[0])
		}
		for n, f := range at[1:] {
			if math.Abs(f-at[0]) > 0.01 {
				t.Errorf("%s: the first break stands at %.3f of the timeline and at %.3f of %s", step.what, at[0], f,
					curves[n])
			}
		}
		last = at
	}
	b.quiet()
}

// TestBrowserStairs: the auth revisions of three members are one line up to the restart, and three stairs after it.
func TestBrowserStairs(t *testing.T) {
	b := drawn(t, "a-auth-revision-replay")
	levels := func(from, to float64) []float64 {
		return []float64{b.level(0, from, to), b.level(1, from, to), b.level(2, from, to)}
	}
	if at := levels(0.30, 0.36); slices.Min(at) < 0 || slices.Max(at)-slices.Min(at) > 2 {
		t.Errorf("before the restart the lines are at %v", at)
	}
	if at := levels(0.85, 0.95); at[0] < 0 || at[1]-at[0] < 15 || at[2]-at[1] < 15 {
		t.Errorf("at the end the lines are at %v", at)
	}
	b.run(chromedp.Click("#tl-break", chromedp.ByID))
	b.waitFor("the curve", `redLine("#c-auth canvas", plot("c-auth")) > 0.49`)
	at := b.breaks()[1]
	if before := levels(at-0.06, at-0.02); slices.Min(before) < 0 || slices.Max(before)-slices.Min(before) > 2 {
		t.Errorf("next to the first break the lines are at %v", before)
	}
	if after := levels(at+0.03, at+0.07); after[0] < 0 || after[1]-after[0] < 15 || math.Abs(after[2]-after[1]) > 2 {
		t.Errorf("after the restart of the first member the lines are at %v", after)
	}
	b.quiet()
}

// drag presses the mouse at a place of an element, moves it and releases it.
func (b *tab) drag(sel string, x, y, dx float64) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.querySelector(%q).scrollIntoView({block: "center"})`, sel))
	r := b.numbers(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.left, r.top]; })()`, sel)
	x, y = x+r[0], y+r[1]
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		for _, e := range []*input.DispatchMouseEventParams{
			input.DispatchMouseEvent(input.MousePressed, x, y).WithButton(input.Left).WithButtons(1).WithClickCount(1),
			input.DispatchMouseEvent(input.MouseMoved, x+dx/2, y).WithButton(input.Left).WithButtons(1),
			input.DispatchMouseEvent(input.MouseMoved, x+dx, y).WithButton(input.Left).WithButtons(1),
			input.DispatchMouseEvent(input.MouseReleased, x+dx, y).WithButton(input.Left).WithClickCount(1),
		} {
			if err := e.Do(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestBrowserDrag: the mouse drags the timeline by as much as it moves, and opens no entry; on the overview it moves
// the window, and on a curve it selects a range.
func TestBrowserDrag(t *testing.T) {
	b := drawn(t, "a-auth-revision-replay")
	inner := b.number(`document.getElementById("tl").getBoundingClientRect().width`) - gutter - rightEdge
	b.run(chromedp.Click("#tl-break", chromedp.ByID), chromedp.Click("#tl-panel .x", chromedp.ByQuery))
	for _, dx := range []float64{120, -250} {
		before := b.breaks()[0]
		b.drag("#tl", 600, 150, dx)
		if moved := (b.breaks()[0] - before) * inner; math.Abs(moved-dx) > 3 {
			t.Errorf("dragged by %g, the first break moved by %.1f", dx, moved)
		}
		if b.eval(`document.getElementById("tl-panel").hidden`) != true {
			t.Error("dragging opens an entry")
		}
	}
	b.drag("#tl-over", gutter+inner*0.9, 15, -inner*0.6)
	if s := b.text(`document.getElementById("tl-range").textContent`); s != "entries 32 to 72" {
		t.Errorf("the overview moves the window to %q", s)
	}
	b.run(chromedp.Click("#tl-all", chromedp.ByID))
	w := b.numbers(`plot("c-auth")`)[2]
	b.drag("#c-auth .u-over", w*0.25, 60, w*0.5)
	if s := b.text(`document.getElementById("tl-range").textContent`); s != "entries 44 to 128" {
		t.Errorf("a range of a quarter to three quarters of 171 entries is %q", s)
	}
	b.quiet()
}

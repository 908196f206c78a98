// Curves on the axis of the timeline.
const charts = [];

// joined puts the members' curves on one list of indexes; which is 1 for the revision, 2 for the auth revision, 3 for the consistent index.
const PER = 4;
function joined(which) {
  const all = new Set();
  T.lanes.forEach((l) => { for (let n = 0; n < l.curve.length; n += PER) all.add(l.curve[n]); });
  T.lanes.forEach((l) => { if (l.curve.length && l.judgedTo) all.add(l.judgedTo); });
  const xs = [...all].sort((a, b) => a - b), at = new Map(xs.map((x, n) => [x, n]));
  const rows = T.lanes.map((l) => {
    const ys = new Array(xs.length).fill(null), c = l.curve, end = c.length ? at.get(l.judgedTo) : -1;
    // From a point without a revision on nothing is known of it, nor of the consistent index.
    const value = (n) => c[n + which] || (which === 2 ? undefined : null);
    let have = null, next = 0;
    for (let n = 0; n <= end; n++) {
      if (next < c.length && c[next] === xs[n]) { const v = value(next); if (v !== undefined) have = v; next += PER; }
      ys[n] = have;
    }
    if (which === 3 && c.length && c[c.length - 1]) ys[end] = l.applied;
    return ys;
  });
  return [xs, rows];
}

// chart makes one drawing that follows the window, and moves it when a range is drawn with the mouse.
function chart(id, xs, rows, series, min) {
  const box = $(id);
  const known = new Set(rows.flatMap((r) => r.filter((v) => v !== null)));
  if (known.size < 2 || !rows.some((r) => r.some((v) => v))) {
    const name = box.querySelector("h3").textContent;
    const what = id === "c-miss" ? "none; no member lacks an effect that the log promises" : known.size ? num([...known][0]) + " on every member wherever it is known" : "not known anywhere in this log";
    $("c-notes").append(el("li", "", name + ": " + what + "."));
    box.remove();
    return;
  }
  const make = () => {
    const axis = { stroke: color("muted"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: "11px system-ui, sans-serif" };
    const hook = { setSelect: [(u) => { if (u.select.width > 4) { setView(indexAt(u.posToVal(u.select.left, "x")), indexAt(u.posToVal(u.select.left + u.select.width, "x"))); u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false); } }],
      draw: [(u) => { if (!D.break) return; const x = u.valToPos(axisOf(D.break), "x", true), r = u.bbox; if (x < r.left || x > r.left + r.width) return; const g = u.ctx; g.save(); g.strokeStyle = color("red"); g.lineWidth = 1.5 * devicePixelRatio; g.setLineDash([6, 5]); g.beginPath(); g.moveTo(x, r.top); g.lineTo(x, r.top + r.height); g.stroke(); g.restore(); }] };
    return new uPlot({ width: Math.max(260, box.clientWidth), height: 230, hooks: hook, legend: { show: true, live: true }, cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: false, range: () => [axisOf(view.a), axisOf(view.b)] }, y: { range: (u, lo, hi) => { if (lo === null) return [0, 1]; const d = Math.max(1, hi - lo) * 0.08; return [min === 0 ? 0 : lo - d, hi + d]; } } },
      axes: [{ ...axis, space: 90, values: (u, t) => t.map((v) => tickText(v, t.length > 1 ? t[1] - t[0] : 1)) }, { ...axis, size: 62, values: (u, t) => t.map((v) => (Number.isInteger(v) ? num(v) : "")) }],
      series: [{ label: "entry", value: (u, v) => (v === null ? "–" : num(Math.round(indexAt(v)))) }, ...series()] }, [xs.map(axisOf), ...rows], box);
  };
  let u = make();
  const again = () => { u.destroy(); u = make(); };
  charts.push({ again, follow: () => u.setScale("x", { min: axisOf(view.a), max: axisOf(view.b) }), size: () => u.setSize({ width: Math.max(260, box.clientWidth), height: 230 }) });
}

function drawCurves() {
  const lines = () => T.lanes.map((l, i) => ({ label: plain(l.member), stroke: palette(i), width: 2.2, dash: i % 3 === 1 ? [8, 3] : i % 3 === 2 ? [3, 3] : [], paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, spanGaps: false, value: (u, v) => (v === null ? "–" : num(v)) }));
  const [xr, rev] = joined(1), [xa, auth] = joined(2);
  chart("c-auth", xa, auth, lines);
  chart("c-rev", xr, rev, lines);
  // Where every entry moves the index, it rises between the points too; elsewhere it stands until the next write of a key.
  const [xc, cons] = joined(3), always = T.lanes.map((l) => { for (let n = 0; n < l.curve.length; n += PER) if (l.curve[n + 1] && l.curve[n + 3] !== l.curve[n]) return false; return true; });
  chart("c-index", xc, cons, () => lines().map((s, i) => (always[i] ? { ...s, paths: uPlot.paths.linear() } : s)));
  const d = T.density, xs = d.counts[0].map((_, b) => d.from + b * d.step);
  const bars = (label, stroke) => ({ label, stroke, fill: stroke + "55", width: 1.2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (u, v) => (v === null ? "–" : num(v)) });
  // How many entries are missing in each stretch of the log, and none from its end on.
  const per = Math.ceil(xs.length / 60), few = (r) => [...Array.from({ length: Math.ceil(r.length / per) }, (_, n) => r.slice(n * per, n * per + per).reduce((a, v) => a + v, 0)), 0];
  const starts = [...xs.filter((_, n) => n % per === 0), d.from + Math.ceil(xs.length / per) * per * d.step];
  if (per * d.step > 1) $("c-miss").querySelector("h3").textContent = "Missing entries in each " + num(per * d.step) + " of the log";
  chart("c-miss", starts, d.lacking.map(few), () => T.lanes.map((l, i) => bars(plain(l.member), palette(i))), 0);
  view.listeners.push((mode) => charts.forEach((c) => (mode ? c.again() : c.follow())));
  redraws.push(() => charts.forEach((c) => c.again()));
}

// drawMembership draws who was a member when.
function drawMembership() {
  const c = $("ms"), rowH = 30, h = TOP + T.history.length * rowH + 6, [g, w] = fit(c, h);
  drawAxis(g, w, h);
  T.history.forEach((m, n) => {
    const y = TOP + n * rowH, lane = T.lanes.findIndex((l) => l.id === m.id), tint = lane < 0 ? color("muted") : palette(lane);
    label(g, m.name, y + 19, true, tint);
    for (const s of m.spans) {
      const [x, len] = span(s, w);
      if (len <= 0) continue;
      if (s.what === "learner") { hatch(g, x, y + 6, len, 18, tint); g.strokeStyle = tint; g.strokeRect(x + 0.5, y + 6.5, len - 1, 17); } else { g.globalAlpha = 0.75; g.fillStyle = tint; g.fillRect(x, y + 6, len, 18); g.globalAlpha = 1; }
    }
  });
  for (const m of marks) if (m.kind === "conf-change" && m.index >= view.a && m.index <= view.b) glyph(g, m.kind, X(m.index, w), TOP - 2, m.refused);
  drawBreak(g, w, h);
}

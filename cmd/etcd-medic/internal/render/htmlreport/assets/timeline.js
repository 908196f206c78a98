// The timeline: terms, the merged log, and a lane for each member.
const KINDS = [
  ["divergence", "first missing effect"], ["auth-revision-jump", "auth revision jumps"], ["start", "start"], ["conf-change", "conf change"], ["snapshot", "snapshot"],
  ["compaction", "compaction"], ["alarm", "alarm"], ["auth", "auth on or off"], ["auth-entry", "auth entry"], ["version", "cluster version"], ["log", "line of a server's log"],
];
const hiddenKinds = new Set();
const marks = [];
if (T) {
  for (const m of T.marks) if (m.kind !== "term" && m.kind !== "end") marks.push(m);
  T.entries.index.forEach((i, n) => {
    const k = T.entries.kinds[T.entries.kind[n]];
    if (k.startsWith("auth_") && k !== "auth_enable" && k !== "auth_disable") marks.push({ index: i, term: T.entries.term[n], kind: "auth-entry", what: T.entries.what[n] });
  });
  for (const n of T.notes || []) {
    const index = n.index || (hasTime && n.unix ? entryAtTime(n.unix) : 0);
    if (index) marks.push({ index, kind: "log", members: [n.member], what: n.id + ": " + n.line });
  }
  marks.sort((a, b) => a.index - b.index);
}
function entryAtTime(unix) {
  let at = T.first;
  for (const t of times) if (t.unix <= unix) at = t.index;
  return at;
}
const TOP = 44, TERM_H = 20, LOG_H = 46, LANE_H = 50;
const laneTop = (n) => TOP + TERM_H + 8 + LOG_H + 8 + n * LANE_H;
const tlHeight = () => laneTop(T.lanes.length) + 6;

// glyph draws the sign of a mark.
function glyph(g, kind, x, y, refused) {
  const c = { divergence: "red", "auth-revision-jump": "red", alarm: "red", "conf-change": "m3", snapshot: "m4", compaction: "m1", start: "green", auth: "amber", "auth-entry": "amber", version: "muted", log: "m5" }[kind] || "muted";
  g.save();
  g.fillStyle = g.strokeStyle = color(c);
  g.lineWidth = 2;
  g.beginPath();
  switch (kind) {
    case "divergence": g.moveTo(x - 5, y - 5); g.lineTo(x + 5, y + 5); g.moveTo(x + 5, y - 5); g.lineTo(x - 5, y + 5); g.stroke(); break;
    case "auth-revision-jump": g.moveTo(x, y - 7); g.lineTo(x + 6, y); g.lineTo(x + 2, y); g.lineTo(x + 2, y + 6); g.lineTo(x - 2, y + 6); g.lineTo(x - 2, y); g.lineTo(x - 6, y); g.fill(); break;
    case "start": g.moveTo(x - 4, y - 5); g.lineTo(x + 5, y); g.lineTo(x - 4, y + 5); g.fill(); break;
    case "conf-change": g.moveTo(x, y - 6); g.lineTo(x + 6, y); g.lineTo(x, y + 6); g.lineTo(x - 6, y); g.closePath();
      if (refused) { g.stroke(); g.beginPath(); g.moveTo(x - 7, y + 7); g.lineTo(x + 7, y - 7); g.strokeStyle = color("red"); g.stroke(); } else g.fill();
      break;
    case "snapshot": g.rect(x - 4, y - 4, 8, 8); g.fill(); break;
    case "compaction": g.moveTo(x - 6, y - 4); g.lineTo(x + 6, y - 4); g.lineTo(x, y + 5); g.fill(); break;
    case "alarm": g.rect(x - 1.5, y - 6, 3, 8); g.rect(x - 1.5, y + 4, 3, 3); g.fill(); break;
    case "auth": g.arc(x, y, 4.5, 0, 7); g.stroke(); break;
    case "auth-entry": g.arc(x, y, 2.2, 0, 7); g.fill(); break;
    case "log": g.rect(x - 5, y - 4, 10, 1.6); g.rect(x - 5, y - 0.8, 10, 1.6); g.rect(x - 5, y + 2.4, 7, 1.6); g.fill(); break;
    default: g.arc(x, y, 3.5, 0, 7); g.fill();
  }
  g.restore();
}

// hatch fills a box with slanted lines.
function hatch(g, x, y, w, h, c) {
  if (w <= 0) return;
  g.save();
  g.beginPath();
  g.rect(x, y, w, h);
  g.clip();
  g.strokeStyle = c;
  g.lineWidth = 1;
  g.beginPath();
  for (let d = Math.floor(x / 7) * 7 - h; d < x + w; d += 7) { g.moveTo(d, y + h); g.lineTo(d + h, y); }
  g.stroke();
  g.restore();
}

// span is the box of a range of indexes, cut to the drawing.
function span(s, w) {
  const x0 = clamp(X(s.from - 0.5, w), GUTTER, w - RIGHT), x1 = clamp(X(s.to + 0.5, w), GUTTER, w - RIGHT);
  return [x0, Math.max(x1 - x0, s.to + 0.5 >= view.a && s.from - 0.5 <= view.b ? 1 : 0)];
}

function label(g, text, y, bold, c) {
  g.font = (bold ? "600 " : "") + "12.5px system-ui, sans-serif";
  g.fillStyle = c || color("text");
  let s = plain(text);
  while (s.length > 4 && g.measureText(s).width > GUTTER - 22) s = s.slice(0, -2) + "…";
  g.fillText(s, 12, y);
}

function drawAxis(g, w, h) {
  const [list, step] = ticks(w);
  g.font = "11px system-ui, sans-serif";
  for (const t of list) {
    const fa = axisOf(view.a), x = GUTTER + (w - GUTTER - RIGHT) * (t - fa) / Math.max(1e-9, axisOf(view.b) - fa);
    g.strokeStyle = color("line");
    g.lineWidth = 1;
    g.beginPath(); g.moveTo(Math.round(x) + 0.5, TOP - 6); g.lineTo(Math.round(x) + 0.5, h); g.stroke();
    const s = tickText(t, step), half = g.measureText(s).width / 2;
    g.fillStyle = color("muted");
    if (x - half >= GUTTER - 20 && x + half <= w) g.fillText(s, x - half, TOP - 12);
  }
  label(g, view.time ? "time (UTC)" : "raft index", TOP - 12, false, color("muted"));
}

function drawTerms(g, w) {
  label(g, "terms", TOP + 14, false, color("muted"));
  T.terms.forEach((t, n) => {
    const [x, len] = span(t, w);
    if (len <= 0) return;
    g.fillStyle = color(n % 2 ? "band-b" : "band-a");
    g.fillRect(x, TOP, len, TERM_H);
    if (n) { g.fillStyle = color("muted"); g.fillRect(x, TOP, 1, TERM_H); }
    const s = plain("term " + t.term + (t.leader ? ", " + t.leader + (t.elected ? "" : "?") : ""));
    g.font = "11.5px system-ui, sans-serif";
    g.fillStyle = color("text");
    if (g.measureText(s).width < len - 10) g.fillText(s, x + 6, TOP + 14);
    else if (g.measureText(t.term).width < len - 6) g.fillText(t.term, x + 3, TOP + 14);
  });
}

const entryWidth = (w) => (w - GUTTER - RIGHT) / Math.max(1, view.b - view.a);
const classOf = (kind) => (/^(put|delete_range|range|txn|compaction)$/.test(kind) ? 0 : /^lease/.test(kind) ? 1 : /^auth/.test(kind) ? 2 : 3);

// drawLog draws the merged log: single entries where there is room, else how many of each kind.
function drawLog(g, w) {
  const y = TOP + TERM_H + 8, base = y + LOG_H;
  label(g, "merged log", y + 18, true);
  label(g, num(T.gaps.reduce((n, g) => n - (g.to - g.from + 1), T.last - T.first + 1)) + " entries", y + 34, false, color("muted"));
  g.fillStyle = color("card");
  g.fillRect(GUTTER, y, w - GUTTER - RIGHT, LOG_H);
  for (const s of T.gaps) { const [x, len] = span(s, w); hatch(g, x, y, len, LOG_H, color("hatch")); }
  if (!view.time && entryWidth(w) >= 2) {
    eachListed((n, i) => {
      const x = X(i - 0.5, w), len = Math.max(1, X(i + 0.5, w) - x - (entryWidth(w) > 5 ? 1 : 0));
      const k = classOf(T.entries.kinds[T.entries.kind[n]]);
      g.fillStyle = color("k" + k);
      g.fillRect(x, y + 14, len, LOG_H - 14);
    });
    return;
  }
  const d = T.density, first = Math.max(0, Math.floor((view.a - d.from) / d.step)), last = Math.min(d.counts[0].length - 1, Math.ceil((view.b - d.from) / d.step));
  const cols = new Map();
  for (let b = first; b <= last; b++) {
    const i = d.from + b * d.step, x = Math.floor(clamp(X(i - 0.5, w), GUTTER, w - RIGHT)), x1 = Math.max(x + 1, Math.floor(clamp(X(i + d.step - 0.5, w), GUTTER, w - RIGHT)));
    const c = cols.get(x) || { len: 1, n: [0, 0, 0, 0], bins: 0 };
    d.counts.forEach((row, k) => { c.n[k] += row[b]; });
    c.len = Math.max(c.len, x1 - x); c.bins++;
    cols.set(x, c);
  }
  let most = 0.001;
  for (const c of cols.values()) most = Math.max(most, (c.n[0] + c.n[1] + c.n[2] + c.n[3]) / c.bins);
  for (const [x, c] of cols) {
    let top = base;
    c.n.forEach((n, k) => {
      if (!n) return;
      const h = (LOG_H - 14) * n / c.bins / most;
      g.fillStyle = color("k" + k);
      g.fillRect(x, top - h, c.len, h);
      top -= h;
    });
  }
}

// eachListed visits the listed entries in the window.
function eachListed(use) {
  const idx = T.entries.index;
  let lo = 0, hi = idx.length;
  while (lo < hi) { const m = (lo + hi) >> 1; if (idx[m] < view.a) lo = m + 1; else hi = m; }
  for (let n = lo; n < idx.length && idx[n] <= view.b; n++) use(n, idx[n]);
}

function drawLane(g, w, n) {
  const l = T.lanes[n], y = laneTop(n), barY = y + 20, barH = 16;
  g.fillStyle = color(n % 2 ? "band-a" : "sunk");
  g.fillRect(0, y, w, LANE_H - 2);
  label(g, l.member, y + 20, true, palette(n));
  label(g, l.lacks ? "lacks " + num(l.lacks) : l.why ? "not replayed" : "applied " + num(l.applied), y + 36, false, l.lacks ? color("red") : color("muted"));
  for (const s of l.purged) { const [x, len] = span({ from: Math.max(s.from, T.first - 1), to: s.to }, w); hatch(g, x, barY, len, barH, color("hatch")); }
  if (l.logTo) {
    const [x, len] = span({ from: l.logFrom, to: l.logTo }, w);
    g.fillStyle = color("grey-bg");
    g.fillRect(x, barY, len, barH);
  }
  // What the database has applied, cut into processes.
  const lives = l.lives.length ? l.lives : [{ from: T.first, to: Math.max(l.applied, l.logTo) }];
  const start = l.logFrom || T.first;
  lives.forEach((p, i) => {
    const from = i ? p.from : Math.min(p.from, start), to = Math.min(i < lives.length - 1 ? p.to : Math.max(p.to, l.applied), l.applied);
    if (to < Math.max(from, start)) return;
    const [x, len] = span({ from: Math.max(from, start), to }, w);
    g.fillStyle = color(i % 2 ? "lane-alt" : "lane");
    g.fillRect(x, barY, len, barH);
    if (i && p.from >= view.a && p.from <= view.b) { g.fillStyle = color("green"); g.fillRect(X(p.from - 0.5, w) - 1, barY - 3, 2, barH + 6); }
  });
  for (const s of l.skipped) { const [x, len] = span(s, w); g.fillStyle = color("sunk"); g.fillRect(x, barY, len, barH); hatch(g, x, barY, len, barH, color("m4")); }
  for (const s of l.hidden) { const [x, len] = span(s, w); g.fillStyle = color("red-bg"); g.fillRect(x, barY, len, barH); hatch(g, x, barY, len, barH, color("red")); }
  for (const s of l.damaged) { const [x, len] = span(s, w); g.fillStyle = color("red"); g.fillRect(x, barY - 2, Math.max(len, 3), barH + 4); }
  drawLacking(g, w, n, barY + barH + 2);
  if (l.commit >= view.a && l.commit <= view.b) { g.fillStyle = color("muted"); g.fillRect(X(l.commit + 0.5, w) - 1, barY - 2, 1.5, barH + 4); }
}

// drawLacking draws below a lane where the member lacks effects.
function drawLacking(g, w, n, y) {
  g.fillStyle = color("red");
  if (entryWidth(w) >= 2 || T.density.step === 1) {
    for (const e of T.events) if (e.lacking.includes(n) && e.index >= view.a && e.index <= view.b) {
      const x = X(e.index - 0.5, w);
      g.fillRect(x, y, Math.max(1.5, X(e.index + 0.5, w) - x - (entryWidth(w) > 5 ? 1 : 0)), 7);
    }
    return;
  }
  const d = T.density;
  d.lacking[n].forEach((c, b) => {
    if (!c) return;
    const [x, len] = span({ from: d.from + b * d.step, to: d.from + (b + 1) * d.step - 1 }, w);
    if (len > 0) { g.globalAlpha = Math.max(0.35, Math.min(1, c / d.step * 4)); g.fillRect(x, y, Math.max(1.5, len), 7); g.globalAlpha = 1; }
  });
}

// drawMarks draws signs of marks: those of a member on its lane, others on the merged log. It remembers where, for the mouse.
let placed = [];
function drawMarks(g, w) {
  placed = [];
  const last = new Map();
  for (const m of marks) {
    if (m.index < view.a || m.index > view.b || hiddenKinds.has(m.kind)) continue;
    const x = X(m.index, w);
    const rows = (m.members || []).map((n) => T.lanes.findIndex((l) => l.member === n)).filter((n) => n >= 0);
    if (!rows.length || m.kind === "conf-change") rows.push(-1);
    for (const r of rows) {
      if (r >= 0 && m.kind === "conf-change") continue;
      const y = r < 0 ? TOP + TERM_H + 15 : laneTop(r) + 10, slot = r + m.kind;
      if (x - (last.has(slot) ? last.get(slot) : -99) >= 4) { glyph(g, m.kind, x, y, m.refused); last.set(slot, x); }
      placed.push({ x, y, row: r, mark: m });
    }
  }
}

function drawBreak(g, w, h) {
  const i = D.break;
  if (!i || i < view.a || i > view.b) return;
  const x = Math.round(X(i, w)) + 0.5;
  g.strokeStyle = g.fillStyle = color("red");
  g.lineWidth = 1.5;
  g.setLineDash([5, 4]);
  g.beginPath(); g.moveTo(x, 4); g.lineTo(x, h); g.stroke();
  g.setLineDash([]);
  g.font = "600 11px system-ui, sans-serif";
  const s = "first break " + num(i), len = g.measureText(s).width + 12, left = x + len > w - 2;
  g.fillRect(left ? x - len : x, 2, len, 16);
  g.fillStyle = color("card");
  g.fillText(s, (left ? x - len : x) + 6, 14);
}

let selected = 0;
function drawTimeline() {
  const h = tlHeight(), [g, w] = fit($("tl"), h);
  drawAxis(g, w, h);
  drawTerms(g, w);
  drawLog(g, w);
  T.lanes.forEach((_, n) => drawLane(g, w, n));
  g.save();
  g.beginPath(); g.rect(GUTTER - 7, 0, w - GUTTER + 7, h); g.clip();
  drawMarks(g, w);
  if (selected >= view.a && selected <= view.b) {
    const x = X(selected - 0.5, w), len = Math.max(2, X(selected + 0.5, w) - x);
    g.strokeStyle = color("accent"); g.lineWidth = 1.5;
    g.strokeRect(x, TOP, len, h - TOP - 4);
  }
  g.restore();
  drawBreak(g, w, h);
  drawOverview();
  $("tl-range").textContent = "entries " + num(Math.ceil(view.a)) + " to " + num(Math.floor(view.b));
}

function drawOverview() {
  const h = 30, [g, w] = fit($("tl-over"), h), inner = w - GUTTER - RIGHT, d = T.density, all = T.last - T.first + 1;
  label(g, "whole log", 20, false, color("muted"));
  const at = (i) => GUTTER + inner * (i - T.first + 0.5) / all;
  let most = 1;
  const sums = d.counts[0].map((_, b) => { const s = d.counts.reduce((a, row) => a + row[b], 0); most = Math.max(most, s); return s; });
  g.fillStyle = color("hatch");
  sums.forEach((s, b) => { const x = at(d.from + b * d.step - 0.5), x1 = at(d.from + (b + 1) * d.step - 0.5), hh = 20 * s / most; g.fillRect(x, h - 4 - hh, Math.max(0.7, Math.min(x1, w - RIGHT) - x), hh); });
  g.fillStyle = color("red");
  d.lacking.forEach((row) => row.forEach((c, b) => { if (c) g.fillRect(at(d.from + b * d.step - 0.5), h - 4, Math.max(1, inner * d.step / all), 3); }));
  if (D.break) g.fillRect(at(D.break) - 1, 0, 2, h);
  g.fillStyle = color("accent");
  g.globalAlpha = 0.16;
  const x0 = at(view.a), x1 = at(view.b);
  g.fillRect(x0, 1, Math.max(3, x1 - x0), h - 2);
  g.globalAlpha = 1;
  g.strokeStyle = color("accent");
  g.strokeRect(x0 + 0.5, 1.5, Math.max(3, x1 - x0) - 1, h - 3);
}

// What fills the files: a map of prefixes, strips of pages, and log segments.

// squares lays boxes out so that they are as square as can be, larger first.
function squares(list, x, y, w, h, out) {
  let total = list.reduce((s, i) => s + i.size, 0);
  while (list.length && total > 0 && w > 0 && h > 0) {
    const side = Math.min(w, h), area = w * h;
    let row = [], sum = 0, worst = Infinity;
    for (const item of list) {
      const s = sum + item.size, thick = s / total * area / side, first = row.length ? row[0].size : item.size;
      const ratio = Math.max(...[first, item.size].map((v) => { const len = v / s * side; return Math.max(len / thick, thick / len); }));
      if (ratio > worst) break;
      row.push(item); sum = s; worst = ratio;
    }
    const thick = sum / total * area / side;
    let at = 0;
    for (const item of row) {
      const len = item.size / sum * side;
      out.push(w <= h ? [item, x + at, y, len, thick] : [item, x, y + at, thick, len]);
      at += len;
    }
    if (w <= h) { y += thick; h -= thick; } else { x += thick; w -= thick; }
    list = list.slice(row.length);
    total -= sum;
  }
}

// shared is the folder that all names are in, "" when there is none.
function shared(names) {
  let at = names[0].lastIndexOf("/") + 1;
  while (at > 0 && !names.every((n) => n.startsWith(names[0].slice(0, at)))) at = names[0].lastIndexOf("/", at - 2) + 1;
  return at > 1 ? names[0].slice(0, at) : "";
}

function drawMap() {
  const box = $("f-map"), s = D.storage.find((x) => x.prefixes);
  if (!box || !s) return;
  clear(box);
  box.style.height = clamp(s.prefixes.length * 44, 44, 240) + "px";
  const list = s.prefixes.filter((p) => p.bytes > 0).map((p) => ({ p, size: p.bytes })).sort((a, b) => b.size - a.size), out = [];
  squares(list, 0, 0, box.clientWidth, box.clientHeight, out);
  const paths = list.map((i) => i.p.name).filter((n) => n.includes("/")), folder = paths.length > 1 ? shared(paths) : "";
  $("f-under").textContent = folder ? "Names are under " + folder : "";
  const tints = doc.documentElement.dataset.theme === "dark" ? ["#2f4f86", "#7a4324", "#21593a", "#5b3680", "#1c5c69", "#7a2a55"] : ["#2f5fb8", "#9c5122", "#22704a", "#6c42a0", "#1f7382", "#98316a"];
  out.forEach(([item, x, y, w, h], n) => {
    const p = item.p, d = el("div", "", "");
    if (w > 40 && h > 22) d.append(el("span", "", folder && p.name.startsWith(folder) ? p.name.slice(folder.length) || p.name : p.name));
    if (w > 40 && h > 38) d.append(el("small", "", bytesText(p.bytes)));
    Object.assign(d.style, { left: x + "px", top: y + "px", width: w + "px", height: h + "px", background: tints[n % tints.length] });
    const dead = p.bytes ? Math.round(100 * (1 - p.liveBytes / p.bytes)) : 0;
    d.addEventListener("mousemove", (ev) => showTip(ev, [p.name, num(p.keys) + " keys, " + num(p.revisions) + " revisions", bytesText(p.bytes) + ", of it " + dead + " % history"]));
    d.addEventListener("mouseleave", hideTip);
    box.append(d);
  });
}

const PAGE_COLORS = { meta: "m4", reachable: "k0", overflow: "accent", freelist: "m3", free: "hatch", lost: "amber" };

// strips draws a cell for a run of pages, coloured by what most of them are; damage wins.
function wireStrips() {
  const box = $("f-strips");
  if (!box) return;
  const legend = el("div", "legend");
  for (const [state, c] of [...Object.entries(PAGE_COLORS), ["damaged", "red"]]) { const i = el("i"); redraws.push(() => { i.style.background = color(c); }); legend.append(el("span", "key", null, i, doc.createTextNode(state))); }
  box.append(legend);
  for (const s of D.storage) {
    const canvas = el("canvas"), wrap = el("div", "strip", null, el("div", "muted", s.member + ": " + num(s.pages - s.beyond) + " pages of " + bytesText(s.pageSize) + (s.beyond ? " (and " + num(s.beyond) + " beyond the high-water mark)" : "") + (s.perCell > 1 ? ", " + s.perCell + " in each cell" : "") + (s.damaged.length ? ", " + s.damaged.length + " damaged" : "") + (s.note ? ", " + s.note : "")), canvas);
    box.append(wrap);
    const hurt = new Set(s.damaged.map((p) => Math.floor(p / s.perCell)));
    const size = () => { const cols = Math.max(10, Math.min(s.cells.length, Math.floor(wrap.clientWidth / 9))); return [cols, Math.min(26, wrap.clientWidth / cols)]; };
    const draw = () => {
      const [cols, cw] = size(), rows = Math.ceil(s.cells.length / cols), [g] = fit(canvas, Math.max(1, rows) * 12, Math.ceil(cols * cw));
      s.cells.forEach((c, n) => {
        let best = -1;
        c.forEach((v, k) => { if (v > 0 && (best < 0 || v > c[best])) best = k; });
        const lost = s.states.indexOf("lost");
        g.fillStyle = color(hurt.has(n) ? "red" : c[lost] ? "amber" : best < 0 ? "sunk" : PAGE_COLORS[s.states[best]] || "muted");
        g.fillRect((n % cols) * cw, Math.floor(n / cols) * 12, Math.max(1, cw - 0.8), 11);
      });
    };
    redraws.push(draw);
    canvas.addEventListener("mousemove", (ev) => {
      const [cols, cw] = size(), r = canvas.getBoundingClientRect(), n = Math.floor((ev.clientY - r.top) / 12) * cols + Math.floor((ev.clientX - r.left) / cw), c = s.cells[n];
      if (!c) { hideTip(); return; }
      const from = n * s.perCell, to = Math.min(s.pages, from + s.perCell) - 1;
      showTip(ev, ["pages " + num(from) + (to > from ? " to " + num(to) : ""), s.states.map((x, k) => (c[k] ? c[k] + " " + x : "")).filter(Boolean).join(", "), s.owner[n] >= 0 ? "mostly bucket " + s.buckets[s.owner[n]] : "no bucket", s.spans[n][0] ? "revisions " + num(s.spans[n][0]) + " to " + num(s.spans[n][1]) : "", hurt.has(n) ? "damaged" : ""].filter(Boolean));
    });
    canvas.addEventListener("mouseleave", hideTip);
  }
}

function wireSegments() {
  const box = $("f-segs");
  D.segments.forEach((list, m) => {
    if (!list.length) return;
    const row = el("div", "segs"), total = list.reduce((s, x) => s + x.data, 0) || 1, files = list.filter((x) => !x.lost).length;
    for (const s of list) {
      const range = s.first ? num(s.first) + " – " + num(s.last) : "no entries";
      const e = el("span", s.lost ? "lost" : s.bad ? "bad" : "", null, list.length < 9 ? el("em", "", s.lost ? "lost: " + range : range + ", " + bytesText(s.data)) : null);
      e.style.flex = Math.max(s.lost ? 0.12 : 0.004, s.data / total) + " 1 0";
      e.addEventListener("mousemove", (ev) => showTip(ev, s.lost ? ["missing", "entries " + num(s.first) + " to " + num(s.last)] : [s.name, s.first ? "entries " + num(s.first) + " to " + num(s.last) : "no entries", bytesText(s.data) + " written" + (s.size > s.data ? ", file of " + bytesText(s.size) : ""), s.bad ? "damaged" : ""].filter(Boolean)));
      e.addEventListener("mouseleave", hideTip);
      row.append(e);
    }
    box.append(el("div", "strip", null, el("div", "muted", D.members[m] + ": " + files + (files === 1 ? " segment" : " segments") + ", wide by what is written" + (list.some((x) => x.bad) ? "; red is damaged" : "") + (files < list.length ? "; hatched is lost" : "")), row));
  });
}

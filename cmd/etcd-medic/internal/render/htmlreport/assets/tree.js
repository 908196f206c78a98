// The tree of differing keys: only the rows in sight are in the document, so that a hundred thousand of them stay fluid.
const ROW = 26;
const tree = { root: null, flat: [], open: new Set(), filter: "", content: false, sel: -1, pool: new Map() };

// unpack gives every bucket its full keys.
function unpack() {
  for (const b of D.differences) {
    let key = "";
    b.keys = b.rest.map((r, n) => (key = key.slice(0, cut(key, b.shared[n])) + r));
  }
}
// cut turns a length in bytes of UTF-8 into one of JavaScript's text.
function cut(s, bytes) {
  let n = 0, at = 0;
  while (at < bytes && n < s.length) {
    const c = s.codePointAt(n);
    at += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    n += c > 0xffff ? 2 : 1;
  }
  return n;
}

// parts cuts a key at its slashes, which stay with what stands before them.
const parts = (key) => key.match(/^\/[^/]*\/?|[^/]+\/?|\/+/g) || [key];

// build makes the tree of the rows that pass the filter; chains with one child are joined.
function build() {
  const want = tree.filter.toLowerCase();
  const root = { name: "", path: "", kids: new Map(), count: 0, row: -1, depth: -1 };
  D.differences.forEach((b, bi) => {
    const top = { name: b.bucket, path: b.bucket + "\u0000", kids: new Map(), count: 0, row: -1, bucket: bi };
    b.keys.forEach((key, n) => {
      if (tree.content && b.same[n]) return;
      const obj = (b.objects && b.objects[n]) || "";
      if (want && !key.toLowerCase().includes(want) && !obj.toLowerCase().includes(want) && !b.bucket.includes(want)) return;
      let at = top;
      at.count++;
      const list = parts(key);
      list.forEach((p, i) => {
        const leaf = i === list.length - 1, id = leaf ? p + "\u0000" + n : p;
        let next = at.kids.get(id);
        if (!next) { next = { name: p, path: at.path + id + "\u0001", kids: new Map(), count: 0, row: -1, bucket: bi }; at.kids.set(id, next); }
        next.count++;
        if (leaf) next.row = n;
        at = next;
      });
    });
    if (top.count) { root.kids.set(b.bucket, join(top)); root.count += top.count; }
  });
  tree.root = root;
}
function join(node) {
  for (const [id, k] of node.kids) node.kids.set(id, join(k));
  if (node.kids.size === 1 && node.row < 0 && node.path.indexOf("\u0000") !== node.path.length - 1) {
    const only = node.kids.values().next().value;
    if (only.row < 0) { only.name = node.name + only.name; return only; }
  }
  return node;
}

// flatten lists what is open, top down.
function flatten() {
  tree.flat = [];
  const walk = (node, depth) => {
    node.depth = depth;
    if (depth >= 0) tree.flat.push(node);
    if (depth < 0 || tree.open.has(node.path)) for (const k of node.kids.values()) walk(k, depth + 1);
  };
  walk(tree.root, -1);
  const rows = $("d-rows");
  rows.style.height = tree.flat.length * ROW + "px";
  $("d-tree").style.height = clamp(tree.flat.length, 3, 18) * ROW + 16 + "px";
  for (const r of tree.pool.values()) r.remove();
  tree.pool.clear();
  $("d-count").textContent = num(tree.root.count) + (tree.root.count === 1 ? " row" : " rows");
  paint();
}

// openSome opens what is small enough to look at, from the top.
function openSome(budget) {
  let left = budget;
  const queue = [...tree.root.kids.values()];
  while (queue.length) {
    const n = queue.shift();
    if (n.row >= 0 || n.kids.size > left) continue;
    left -= n.kids.size;
    tree.open.add(n.path);
    queue.push(...n.kids.values());
  }
}

const digestOf = (b, n, i) => { let s = ""; for (let k = 0; k <= i; k++) { const d = b.cells[k].sha && b.cells[k].sha[n]; if (d && d !== "=") s = d; } return b.cells[i].mod && b.cells[i].mod[n] ? s : ""; };

// cellText is one member's version of a row in short, and a class that is the same for the same content.
function cellText(b, n, i) {
  const c = b.cells[i];
  if (c.text) return c.text[n] ? [c.text[n], "v" + Math.max(0, [...new Set(b.cells.map((x) => x.text[n]).filter(Boolean))].indexOf(c.text[n]) % 5)] : ["absent", "absent"];
  if (!c.mod || !c.mod[n]) return ["absent", "absent"];
  const mine = digestOf(b, n, i) + c.lease[n], all = [];
  b.cells.forEach((_, k) => { const d = digestOf(b, n, k) + b.cells[k].lease[n]; if (b.cells[k].mod[n] && !all.includes(d)) all.push(d); });
  return ["mod " + c.mod[n] + " · v" + c.version[n] + " · " + c.len[n] + " B", "v" + all.indexOf(mine) % 5];
}
const columns = () => "minmax(280px, 1fr) repeat(" + D.members.length + ", minmax(120px, 190px))";

// paint puts the rows in sight into the document.
function paint() {
  const box = $("d-tree"), first = Math.max(0, Math.floor(box.scrollTop / ROW) - 6), last = Math.min(tree.flat.length - 1, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 6);
  for (const [n, r] of tree.pool) if (n < first || n > last) { r.remove(); tree.pool.delete(n); }
  for (let n = first; n <= last; n++) {
    if (tree.pool.has(n)) continue;
    const r = rowOf(tree.flat[n], n);
    tree.pool.set(n, r);
    $("d-rows").append(r);
  }
}
function rowOf(node, n) {
  const leaf = node.row >= 0, b = D.differences[node.bucket], r = el("div", "trow" + (n === tree.sel ? " sel" : ""));
  r.style.top = n * ROW + "px";
  r.style.gridTemplateColumns = columns();
  r.setAttribute("role", "treeitem");
  r.setAttribute("aria-level", node.depth + 1);
  r.id = "d-row-" + n;
  const name = el("span", "mono", null);
  name.style.paddingLeft = node.depth * 16 + "px";
  const obj = leaf && b.objects && b.objects[node.row];
  if (leaf) name.append(doc.createTextNode("   " + plain(node.name)), obj ? el("span", "n", "  " + obj) : "");
  else {
    r.setAttribute("aria-expanded", tree.open.has(node.path));
    name.append(doc.createTextNode((tree.open.has(node.path) ? "▾ " : "▸ ") + plain(node.depth === 0 ? "bucket " + node.name : node.name) + " "), el("span", "n", num(node.count)));
  }
  name.title = leaf ? plain(b.keys[node.row]) : "";
  r.append(name);
  if (leaf) b.members.forEach((_, i) => { const [t, cls] = cellText(b, node.row, i); r.append(el("span", "cell " + cls, t)); });
  r.addEventListener("click", () => { choose(n); act(node); });
  return r;
}
function act(node) {
  if (node.row >= 0) { openRow(node); return; }
  if (!tree.open.delete(node.path)) tree.open.add(node.path);
  flatten();
}
function choose(n) {
  const was = tree.pool.get(tree.sel);
  if (was) was.classList.remove("sel");
  tree.sel = clamp(n, 0, tree.flat.length - 1);
  const box = $("d-tree"), top = tree.sel * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
  paint();
  const r = tree.pool.get(tree.sel);
  if (r) { r.classList.add("sel"); box.setAttribute("aria-activedescendant", r.id); }
}

// openRow shows every member's version of a row and the command that follows the key.
function openRow(node) {
  const b = D.differences[node.bucket], n = node.row, p = $("d-panel"), body = el("tbody");
  clear(p);
  p.hidden = false;
  const x = el("button", "x", "Close");
  x.type = "button";
  x.addEventListener("click", () => { p.hidden = true; });
  p.append(x, el("h3", "mono", b.keys[n]));
  if (b.objects && b.objects[n]) p.append(el("p", "muted", b.objects[n]));
  const key = b.bucket === "key", heads = key ? ["Member", "Mod revision", "Create revision", "Version", "Lease", "Value"] : ["Member", "Content"];
  b.members.forEach((m, i) => {
    const c = b.cells[i], tr = el("tr", "", null, el("td", "", m));
    const out = (c.out || []).includes(n);
    if (!key) tr.append(el("td", c.text[n] ? "" : "no", (c.text[n] || "absent") + (out ? " (cannot be compared)" : "")));
    else if (!c.mod[n]) { const td = el("td", "no", out ? "cannot be compared" : "absent"); td.colSpan = 5; tr.append(td); }
    else tr.append(el("td", "", c.mod[n]), el("td", "", c.create[n]), el("td", "", c.version[n]), el("td", "", c.lease[n] || "–"), el("td", "mono", c.len[n] + " bytes, digest " + digestOf(b, n, i)));
    body.append(tr);
  });
  p.append(el("table", "", null, el("thead", "", null, el("tr", "", null, ...heads.map((h) => el("th", "", h)))), body));
  const k = key && shellKey(b.keys[n]);
  if (k) p.append(command("etcd-medic history " + k + " " + D.sources));
}

// wireTree reads the rows, which stand in the page apart from everything else: it is called when they come into sight.
function wireTree() {
  D.differences = JSON.parse($("rows").textContent);
  unpack();
  build();
  openSome(400);
  const head = $("d-head");
  head.style.gridTemplateColumns = columns();
  head.append(el("span", "", "key"), ...D.members.map((m, i) => { const s = el("span", "", m); const tint = () => { s.style.color = palette(i); }; redraws.push(tint); tint(); return s; }));
  flatten();
  const box = $("d-tree");
  let pending = false;
  box.addEventListener("scroll", () => { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; paint(); }); } });
  let timer = 0;
  const again = () => { build(); tree.open.clear(); openSome(tree.filter ? 2000 : 400); tree.sel = -1; box.scrollTop = 0; flatten(); };
  $("d-filter").addEventListener("input", (ev) => { clearTimeout(timer); timer = setTimeout(() => { tree.filter = ev.target.value; again(); }, 120); });
  $("d-content").addEventListener("change", (ev) => { tree.content = ev.target.checked; again(); });
  $("d-open").addEventListener("click", () => { openSome(Infinity); flatten(); });
  $("d-close").addEventListener("click", () => { tree.open.clear(); box.scrollTop = 0; flatten(); });
  box.addEventListener("keydown", (ev) => {
    const n = tree.flat[tree.sel], step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[ev.key];
    if (step) choose(Math.max(0, tree.sel + step));
    else if (ev.key === "Home") choose(0);
    else if (ev.key === "End") choose(tree.flat.length - 1);
    else if (n && (ev.key === "Enter" || ev.key === " ")) act(n);
    else if (n && ev.key === "ArrowRight" && n.row < 0 && !tree.open.has(n.path)) act(n);
    else if (n && ev.key === "ArrowLeft" && n.row < 0 && tree.open.has(n.path)) act(n);
    else return;
    ev.preventDefault();
  });
}

// What the mouse and the keyboard do on the timeline, and the panel that says what each member did with an entry.
const lookup = (index) => {
  const idx = T ? T.entries.index : [];
  let lo = 0, hi = idx.length - 1;
  while (lo <= hi) { const m = (lo + hi) >> 1; if (idx[m] === index) return m; if (idx[m] < index) lo = m + 1; else hi = m - 1; }
  return -1;
};
const events = new Map(T ? T.events.map((e) => [e.index, e]) : []);
const termAt = (i) => T.terms.find((t) => t.from <= i && i <= t.to);
const when = (i) => (hasTime && i >= times[0].index && i <= times[times.length - 1].index ? "about " + new Date(timeOf(i)).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "");

// nearest is the entry under the mouse: a mark within reach, else the closest event, else the index itself.
function nearest(x, y, w) {
  let best = null, far = 9;
  for (const p of placed) { const d = Math.hypot(p.x - x, p.y - y); if (d < far) { far = d; best = p.mark; } }
  if (best) return [best.index, best];
  const index = Math.round(clamp(indexOfX(x, w), T.first, T.last));
  if (entryWidth(w) < 3) {
    let close = 4, at = index;
    for (const e of T.events) { const d = Math.abs(X(e.index, w) - x); if (d < close) { close = d; at = e.index; } }
    return [at, null];
  }
  return [index, null];
}

// describe says an entry in lines.
function describe(index, mark) {
  const t = termAt(index), n = lookup(index), lines = ["Entry " + num(index) + (t ? ", term " + t.term : "")];
  if (n >= 0) lines.push(T.entries.what[n]);
  else if (events.has(index)) lines.push(events.get(index).what);
  for (const m of marks) if (m.index === index && (!mark || m !== mark) && m.kind !== "auth-entry") lines.push(m.kind + ((m.members || []).length ? " " + m.members.join(", ") : "") + ": " + m.what);
  if (mark && mark.kind !== "auth-entry") lines.splice(1, 0, mark.kind + ((mark.members || []).length ? " " + mark.members.join(", ") : "") + (mark.refused ? " (refused by every server)" : "") + ": " + mark.what);
  const e = events.get(index);
  if (e) e.outcomes.forEach((o, i) => lines.push(T.lanes[i].member + ": " + outcomeText(o)));
  const at = when(index);
  if (at) lines.push(at);
  return lines.slice(0, 12).map((l) => (l.length > 260 ? l.slice(0, 260) + "…" : l));
}
const outcomeText = (o) => o.state + (o.reason ? " (" + o.reason + ")" : "") + (o.rev ? " at revision " + o.rev : "");

// outcomeOf is what a member did with an entry that is no event.
function outcomeOf(l, index) {
  if (l.why) return ["not replayed", l.why];
  if (index > l.appliedMax) return ["not applied", "the member has applied up to " + num(l.applied)];
  if (!l.judgedFrom || index < l.judgedFrom) return ["not judged", "before the first entry that its database can be compared with"];
  if (l.hidden.some((s) => s.from <= index && index <= s.to)) return ["not known", "the database does not show what these entries did: pages of it cannot be read"];
  if (index > l.judgedTo) return ["not judged", "after the last entry that was replayed"];
  if (T.eventCount > T.events.length && T.events.length && index > T.events[T.events.length - 1].index) return ["not listed", "only the first " + num(T.events.length) + " of " + num(T.eventCount) + " events are on this page"];
  return ["as the log gives", "nothing speaks against it"];
}

// openEntry fills the panel.
function openEntry(index) {
  selected = index;
  const p = $("tl-panel"), e = events.get(index), n = lookup(index), t = termAt(index);
  clear(p);
  p.hidden = false;
  const x = el("button", "x", "Close");
  x.type = "button";
  x.addEventListener("click", () => { p.hidden = true; selected = 0; drawTimeline(); });
  p.append(x, el("h3", "", "Entry " + num(index) + (t ? ", term " + t.term + (t.leader ? " (leader " + t.leader + (t.elected ? ")" : ", probably)") : "") : "")));
  p.append(el("p", "mono", n >= 0 ? T.entries.what[n] : e ? e.what : "This page does not list the entry; see the command below."));
  const facts = [];
  if (e && e.proposer) facts.push("proposed by " + e.proposer);
  if (e && e.user) facts.push("user " + e.user);
  if (e && e.headerAuth) facts.push("auth revision of the proposer " + e.headerAuth);
  if (e) facts.push(e.acked ? "the client was told that it succeeded" : "not shown that the client was told of success");
  if (when(index)) facts.push(when(index));
  if (facts.length) p.append(el("p", "muted", facts.join(" · ")));
  for (const m of marks) if (m.index === index && m.kind !== "auth-entry") p.append(el("p", "", m.kind + ((m.members || []).length ? ", " + m.members.join(", ") : "") + ": " + m.what + (m.refused ? " (refused by every server)" : "")));
  const body = el("tbody");
  T.lanes.forEach((l, i) => {
    const o = e && e.outcomes[i];
    const [state, why] = o ? [o.state + (o.reason ? " (" + o.reason + ")" : ""), [o.detail, o.auth ? "own auth revision " + o.auth : ""].filter(Boolean).join("; ")] : outcomeOf(l, index);
    body.append(el("tr", "", null, el("td", "", l.member), el("td", e && e.lacking.includes(i) ? "no" : "", state), el("td", "", o && o.rev ? o.rev : ""), el("td", "", why)));
  });
  p.append(el("table", "", null, el("thead", "", null, el("tr", "", null, el("th", "", "Member"), el("th", "", "What it did"), el("th", "", "Revision"), el("th", "", "Why"))), body));
  p.append(command("etcd-medic dumplog " + (D.sources.split(" ").length === 1 ? D.sources : holder(index)) + " --index " + index));
  const k = e && e.keys && shellKey(e.keys[0]);
  if (k) p.append(command("etcd-medic history " + k + " " + D.sources));
  drawTimeline();
}

// step opens the entry before or after the one that is open, and moves the window along.
function step(by) {
  const to = clamp((selected || Math.round((view.a + view.b) / 2) - by) + by, T.first, T.last), half = (view.b - view.a) / 2;
  if (to < view.a || to > view.b) setView(to - half, to + half);
  openEntry(to);
}

// holder names a source whose log has the entry.
function holder(index) {
  const l = T.lanes.findIndex((x) => x.logFrom && x.logFrom <= index && index <= x.logTo);
  return D.args[Math.max(0, l)];
}

function wireTimeline() {
  const c = $("tl");
  let from = null, moved = false;
  const at = (ev) => { const r = c.getBoundingClientRect(); return [ev.clientX - r.left, ev.clientY - r.top, r.width]; };
  c.addEventListener("pointerdown", (ev) => { from = { x: at(ev)[0], a: view.a, b: view.b }; moved = false; c.setPointerCapture(ev.pointerId); c.classList.add("drag"); });
  c.addEventListener("pointermove", (ev) => {
    const [x, y, w] = at(ev);
    if (from) {
      if (Math.abs(x - from.x) > 3) moved = true;
      if (!moved) return;
      hideTip();
      const d = (x - from.x) / (w - GUTTER - RIGHT) * (from.b - from.a);
      setView(from.a - d, from.b - d);
      return;
    }
    if (x < GUTTER - 6) { hideTip(); return; }
    const [i, m] = nearest(x, y, w);
    showTip(ev, describe(i, m));
  });
  const end = (ev) => {
    c.classList.remove("drag");
    if (from && !moved && ev.type === "pointerup") { const [x, y, w] = at(ev); if (x >= GUTTER - 6) openEntry(nearest(x, y, w)[0]); }
    from = null;
  };
  c.addEventListener("pointerup", end);
  c.addEventListener("pointercancel", end);
  c.addEventListener("pointerleave", hideTip);
  c.addEventListener("wheel", (ev) => {
    const [x, , w] = at(ev);
    if (ev.ctrlKey || ev.metaKey) { ev.preventDefault(); zoom(ev.deltaY > 0 ? 1.25 : 0.8, indexOfX(Math.max(GUTTER, x), w)); }
    else if (ev.shiftKey || Math.abs(ev.deltaX) > Math.abs(ev.deltaY)) { ev.preventDefault(); pan((ev.deltaX || ev.deltaY) / w); }
  }, { passive: false });
  const o = $("tl-over");
  const center = (ev) => { const r = o.getBoundingClientRect(), i = T.first + (T.last - T.first) * clamp((ev.clientX - r.left - GUTTER) / (r.width - GUTTER - RIGHT), 0, 1), half = (view.b - view.a) / 2; setView(i - half, i + half); };
  o.addEventListener("pointerdown", (ev) => { o.setPointerCapture(ev.pointerId); center(ev); });
  o.addEventListener("pointermove", (ev) => { if (ev.buttons) center(ev); });
  const keys = { "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), Home: showAll, b: () => D.break && jump(D.break),
    Enter: () => openEntry(selected || Math.round((view.a + view.b) / 2)), " ": () => keys.Enter() };
  const steps = { ArrowLeft: () => step(-1), ArrowRight: () => step(1) };
  for (const e of [c, o]) e.addEventListener("keydown", (ev) => { const f = !ev.ctrlKey && !ev.metaKey && (ev.shiftKey && steps[ev.key] || keys[ev.key]); if (f) { ev.preventDefault(); f(); } });
  wireButtons();
}

function wireButtons() {
  const on = (id, f) => $(id).addEventListener("click", f);
  on("tl-all", showAll); on("tl-in", () => zoom(0.6)); on("tl-out", () => zoom(1.6)); on("tl-left", () => pan(-0.3)); on("tl-right", () => pan(0.3));
  $("tl-break").disabled = !D.break;
  if (!D.break) $("tl-break").title = "No first break at an entry of the log";
  const toBreak = () => { jump(D.break); openEntry(D.break); };
  on("tl-break", toBreak);
  if ($("jump-top")) on("jump-top", toBreak);
  const mode = (time) => { view.time = time; $("tl-time").setAttribute("aria-pressed", time); $("tl-index").setAttribute("aria-pressed", !time); view.listeners.forEach((f) => f(true)); };
  $("tl-time").disabled = !hasTime;
  if (!hasTime) $("tl-time").title = "Nothing in the log tells the time of entries";
  on("tl-index", () => mode(false)); on("tl-time", () => mode(true));
  const legend = $("tl-legend"), there = new Set(marks.map((m) => m.kind));
  for (const [kind, name] of KINDS) {
    if (!there.has(kind)) continue;
    const c = el("canvas"), b = el("button", "", null, c, doc.createTextNode(name));
    b.type = "button";
    b.dataset.kind = kind;
    b.setAttribute("aria-pressed", "true");
    b.addEventListener("click", () => {
      const off = !hiddenKinds.delete(kind) && hiddenKinds.add(kind);
      b.setAttribute("aria-pressed", !off);
      drawTimeline();
    });
    legend.append(b);
    redraws.push(() => { c.width = c.height = 28; const g = c.getContext("2d"); g.scale(2, 2); glyph(g, kind, 7, 7); });
  }
  // Only what this timeline shows: ranges that a snapshot replaced, and entries whose effect damage hides.
  const some = (what) => T.lanes.some((l) => l[what].length);
  const keys = [["keys", "k0"], ["leases", "k1"], ["auth", "k2"], ["other", "k3"], ["applied", "lane"], ["in the log only", "grey-bg"], ["purged", "hatch", true]];
  if (some("skipped")) keys.push(["received in a snapshot", "m4", true]);
  if (some("hidden")) keys.push(["effect hidden by damage", "red", true]);
  keys.push(["damaged or missing", "red"]);
  for (const [name, c, slanted] of keys) {
    const i = el("i");
    legend.append(el("span", "key", null, i, doc.createTextNode(name)));
    redraws.push(() => { i.style.background = slanted ? "repeating-linear-gradient(135deg, " + color(c) + " 0 1px, transparent 1px 4px)" : color(c); });
  }
  if (marks.some((m) => m.refused)) {
    const c = el("canvas");
    legend.append(el("span", "key", null, c, doc.createTextNode("refused by every server")));
    redraws.push(() => { c.width = c.height = 28; const g = c.getContext("2d"); g.scale(2, 2); glyph(g, "conf-change", 7, 7, true); });
  }
}

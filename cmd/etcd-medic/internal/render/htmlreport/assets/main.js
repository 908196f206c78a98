// Start: theme, copy buttons, and the drawings.
function theme(dark) {
  doc.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
  redrawAll();
}
// whenNear calls a function once, when an element comes close to the window.
function whenNear(e, use) {
  const o = new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) { o.disconnect(); use(); } }, { rootMargin: "600px" });
  o.observe(e);
}
function start() {
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  theme(prefers.matches);
  doc.documentElement.classList.add("ready");
  let chosen = false;
  $("theme").addEventListener("click", () => { chosen = true; theme(doc.documentElement.dataset.theme !== "dark"); });
  prefers.addEventListener("change", () => { if (!chosen) theme(prefers.matches); });
  for (const b of doc.querySelectorAll(".cmd .copy")) b.addEventListener("click", () => copy(b.parentElement.querySelector("code").textContent, b));
  doc.querySelectorAll("article.card").forEach((c, n) => redraws.push(() => { c.style.borderTopColor = palette(n); }));
  if (T) {
    redraws.push(drawTimeline);
    view.a = T.first - 0.5;
    view.b = T.last + 0.5;
    view.listeners.push(drawTimeline);
    wireTimeline();
    if ($("ms")) { redraws.push(drawMembership); view.listeners.push(drawMembership); }
    drawCurves();
  }
  if ($("d-tree")) whenNear($("differences"), wireTree);
  redraws.push(drawMap);
  wireStrips();
  wireSegments();
  redrawAll();
  let pending = 0;
  window.addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(() => { redrawAll(); if (tree.root) paint(); }, 80); });
  let before = false;
  window.addEventListener("beforeprint", () => { before = doc.documentElement.dataset.theme === "dark"; theme(false); for (const d of doc.querySelectorAll("#verdict details, #members details")) d.open = true; });
  window.addEventListener("afterprint", () => theme(before));
  doc.documentElement.dataset.loaded = "yes";
}
start();

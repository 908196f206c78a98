// The axis that timeline, curves and membership share: a window of indexes, shown by index or by time.
const GUTTER = 150, RIGHT = 16;
const view = { a: 0, b: 1, time: false, listeners: [] };
const times = T ? T.times : [];
const hasTime = times.length > 1 && times[times.length - 1].unix > times[0].unix;

// timeOf is the time of an entry between the points that the log tells, in milliseconds. Entries of one millisecond stay apart.
function timeOf(i) {
  if (!times.length) return i;
  let lo = 0, hi = times.length - 1;
  if (i <= times[0].index) return times[0].unix + (i - times[0].index) * 0.01;
  if (i >= times[hi].index) return times[hi].unix + (i - times[hi].index) * 0.01;
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1;
    if (times[mid].index <= i) lo = mid; else hi = mid;
  }
  const p = times[lo], q = times[hi], d = q.index - p.index;
  return d <= 0 ? q.unix : p.unix + (q.unix - p.unix) * (i - p.index) / d + (i - p.index) * 0.0001;
}
const axisOf = (i) => (view.time ? timeOf(i) : i);

// indexAt is the inverse of axisOf.
function indexAt(x) {
  if (!view.time) return x;
  let lo = T.first - 2, hi = T.last + 2;
  for (let n = 0; n < 60; n++) {
    const mid = (lo + hi) / 2;
    if (timeOf(mid) < x) lo = mid; else hi = mid;
  }
  return lo;
}

// X is the place of an index on a drawing of that width.
function X(i, w) {
  const fa = axisOf(view.a), fb = axisOf(view.b);
  return GUTTER + (w - GUTTER - RIGHT) * (axisOf(i) - fa) / Math.max(1e-9, fb - fa);
}
function indexOfX(x, w) {
  const fa = axisOf(view.a), fb = axisOf(view.b);
  return indexAt(fa + (fb - fa) * (x - GUTTER) / Math.max(1, w - GUTTER - RIGHT));
}

// setView moves the window, within the log and not below a few entries.
function setView(a, b) {
  const lo = T.first - 0.5, hi = T.last + 0.5, width = clamp(b - a, Math.min(8, hi - lo), hi - lo);
  const mid = (a + b) / 2;
  view.a = clamp(mid - width / 2, lo, hi - width);
  view.b = view.a + width;
  view.listeners.forEach((f) => f());
}
const showAll = () => setView(T.first - 0.5, T.last + 0.5);

// zoom makes the window wider or narrower around an index.
function zoom(factor, at) {
  const mid = at === undefined ? (view.a + view.b) / 2 : at;
  setView(mid - (mid - view.a) * factor, mid + (view.b - mid) * factor);
}
const pan = (part) => setView(view.a + (view.b - view.a) * part, view.b + (view.b - view.a) * part);

// jump shows an index with its surroundings.
function jump(index) {
  const half = Math.max(20, Math.min(60, (T.last - T.first) / 12));
  setView(index - half, index + half);
}

// ticks are round places on the axis.
function ticks(w) {
  const fa = axisOf(view.a), fb = axisOf(view.b), want = Math.max(2, Math.floor((w - GUTTER) / 110));
  const raw = (fb - fa) / want;
  let step;
  if (view.time) {
    step = [1, 5, 10, 50, 100, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 108e5, 216e5, 864e5, 6048e5, 2592e6].find((s) => s >= raw) || 31536e6;
  } else {
    const p = 10 ** Math.floor(Math.log10(Math.max(1, raw)));
    step = Math.max(1, [1, 2, 5, 10].map((m) => m * p).find((s) => s >= raw));
  }
  const out = [];
  for (let t = Math.ceil(fa / step) * step; t <= fb && out.length < 200; t += step) out.push(t);
  return [out, step];
}
function tickText(t, step) {
  if (!view.time) return num(t);
  const s = new Date(t).toISOString();
  if (step >= 864e5) return s.slice(0, 10);
  if (step >= 6e4) return s.slice(5, 16).replace("T", " ");
  return step >= 1000 ? s.slice(11, 19) : s.slice(11, 23);
}

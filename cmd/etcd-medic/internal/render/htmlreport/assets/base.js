// What all parts of the page share. Text from the sources gets into the document by textContent alone.
const doc = document;
const $ = (id) => doc.getElementById(id);
const D = JSON.parse($("data").textContent);
const T = D.timeline;

// plain shows control characters and marks that turn the direction of text as escapes.
const plain = (s) => String(s).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffd]/g,
  (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// el makes an element with text and children.
function el(tag, cls, text, ...kids) {
  const e = doc.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined && text !== null) e.textContent = plain(text);
  for (const k of kids) if (k) e.append(k);
  return e;
}
const clear = (e) => { while (e.firstChild) e.firstChild.remove(); };
const color = (name) => getComputedStyle(doc.documentElement).getPropertyValue("--" + name).trim();
const palette = (i) => color("m" + (i % 7));
const num = (n) => Number(n).toLocaleString("en-US");
const clamp = (v, lo, hi) => Math.min(hi, Math.max(lo, v));
const redraws = [];
const redrawAll = () => redraws.forEach((f) => f());

// bytesText says a size.
function bytesText(n) {
  for (const [u, s] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) if (n >= s) return (n / s).toFixed(1) + " " + u;
  return n + " B";
}

// fit sizes a canvas to its box and the screen's pixels, and returns its context.
function fit(canvas, height, width) {
  const w = width || canvas.parentElement.clientWidth, r = window.devicePixelRatio || 1;
  if (width) canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  if (canvas.width !== Math.round(w * r) || canvas.height !== Math.round(height * r)) {
    canvas.width = Math.round(w * r);
    canvas.height = Math.round(height * r);
  }
  const g = canvas.getContext("2d");
  g.setTransform(r, 0, 0, r, 0, 0);
  g.clearRect(0, 0, w, height);
  return [g, w];
}

// copy puts text on the clipboard, also where the page came from a file and the browser keeps the clipboard from it.
async function copy(text, button) {
  let ok = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = doc.body.appendChild(doc.createElement("textarea"));
    area.value = text;
    area.select();
    ok = doc.execCommand("copy");
    area.remove();
  }
  const was = button.textContent;
  button.textContent = ok ? "Copied" : "Press Ctrl+C";
  setTimeout(() => { button.textContent = was; }, 1500);
}

// command is a line with a button that copies it.
function command(line) {
  const b = el("button", "copy", "Copy");
  b.type = "button";
  b.addEventListener("click", () => copy(line, b));
  return el("div", "cmd", null, el("code", "", line), b);
}

// keyBytes undoes the escapes of a key.
function keyBytes(escaped) {
  const out = [], text = new TextEncoder(), short = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11, "\\": 92, '"': 34 };
  for (const m of escaped.matchAll(/\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})|\\(.)|([^\\]+)/gs)) {
    if (m[1]) out.push(parseInt(m[1], 16));
    else if (m[2] || m[3]) out.push(...text.encode(String.fromCodePoint(parseInt(m[2] || m[3], 16))));
    else if (m[4]) out.push(short[m[4]]);
    else out.push(...text.encode(m[5]));
  }
  return out;
}

// shellKey quotes an escaped key for a POSIX shell; it returns "" for a key that one line cannot hold.
function shellKey(escaped) {
  if (/… <len \d+ sha256 /.test(escaped)) return "";
  const bytes = keyBytes(escaped);
  if (bytes.includes(0) || !bytes.length || bytes[bytes.length - 1] === 10) return "";
  const dash = bytes[0] === 45 ? "-- " : "";
  if (/^[a-z0-9@%+:,./_-]+$/.test(escaped)) return dash + escaped;
  if (!/\\[^\\"]/.test(escaped.replace(/\\\\/g, ""))) return dash + "'" + escaped.replace(/\\(["\\])/g, "$1").replace(/'/g, "'\\''") + "'";
  const octal = bytes.map((b) => ((b >= 97 && b <= 122) || (b >= 47 && b <= 57) ? String.fromCharCode(b) : "\\" + b.toString(8).padStart(3, "0")));
  return dash + "\"$(printf '" + octal.join("") + "')\"";
}

// tooltip follows the mouse.
const tip = doc.body.appendChild(el("div", "tip"));
tip.hidden = true;
function showTip(ev, lines) {
  clear(tip);
  lines.forEach((l, i) => tip.append(el(i ? "div" : "b", i ? "muted" : "", l)));
  tip.hidden = false;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = clamp(ev.clientX + 14, 4, window.innerWidth - w - 8) + "px";
  tip.style.top = (ev.clientY + 18 + h > window.innerHeight ? Math.max(4, ev.clientY - h - 12) : ev.clientY + 18) + "px";
}
const hideTip = () => { tip.hidden = true; };

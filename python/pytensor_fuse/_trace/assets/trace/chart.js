// The flame chart: DATA.bars as rectangles, one of which can be chosen and zoomed to.
//
// A bar is [name, depth, start, width, kind, details]; start and width are seconds.

const ROW = 19;
const AXIS = 20;
const SVG = "http://www.w3.org/2000/svg";
export const bars = DATA.bars.map(([name, depth, start, width, kind, details]) => ({
  name, depth, start, width, kind, details, lower: name.toLowerCase(),
}));
const deepest = bars.reduce((most, bar) => Math.max(most, bar.depth), 0);
const chart = document.getElementById("chart");
const details = document.getElementById("details");
const hint = details.textContent;
const svg = document.createElementNS(SVG, "svg");
chart.append(svg);

let view = { start: 0, width: DATA.width };
let chosen = null;
let wanted = "";

export const duration = (seconds) =>
  seconds >= 1 ? `${seconds.toFixed(2)} s`
    : seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(1)} ms`
      : `${(seconds * 1e6).toFixed(0)} us`;

// Marks the bars whose names contain a text, given in lower case.
export function mark(text) {
  wanted = text;
  chart.classList.toggle("searching", wanted !== "");
  draw();
}

export function choose(bar) {
  chosen = bar;
  show(bar);
  if (bar) zoom(bar.start - bar.width * 0.02, bar.width * 1.04);
  else zoom(0, DATA.width);
}

export function draw() {
  const width = chart.clientWidth;
  const height = AXIS + (deepest + 1) * ROW + 4;
  const parts = document.createDocumentFragment();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  if (view.width > 0) drawAxis(parts, width, height);
  const end = view.start + view.width;
  for (const bar of bars) {
    if (bar.start > end || bar.start + bar.width < view.start) continue;
    const scale = width / view.width;
    const left = Math.max(0, (bar.start - view.start) * scale);
    const right = Math.min(width, (bar.start + bar.width - view.start) * scale);
    // Bars below a third of a pixel are invisible, and there may be thousands.
    if (right - left < 0.33) continue;
    const classes = [`k-${bar.kind}`];
    if (bar === chosen) classes.push("chosen");
    if (wanted && bar.lower.includes(wanted)) classes.push("found");
    const top = AXIS + bar.depth * ROW;
    const shape = element("rect", {
      x: left, y: top, width: right - left, height: ROW - 1, class: classes.join(" "), rx: 2,
    });
    shape.bar = bar;
    parts.append(shape);
    const room = Math.floor((right - left - 6) / 6.2);
    if (room >= 3) {
      const label = bar.name.length > room ? `${bar.name.slice(0, room - 1)}\u2026` : bar.name;
      parts.append(element("text", { x: left + 4, y: top + 13 }, label));
    }
  }
  svg.replaceChildren(parts);
}

function drawAxis(parts, width, height) {
  const by = step();
  for (let n = Math.ceil(view.start / by); n * by <= view.start + view.width; n += 1) {
    const x = ((n * by - view.start) / view.width) * width;
    parts.append(element("line", { x1: x, x2: x, y1: AXIS - 4, y2: height }));
    parts.append(element("text", { x: x + 3, y: 12, class: "k-axis" }, duration(n * by)));
  }
}

// A step of 1, 2 or 5 times a power of ten, for about eight ticks on the axis.
function step() {
  const rough = view.width / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
}

function element(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function show(bar) {
  details.replaceChildren();
  if (!bar) {
    details.textContent = hint;
    return;
  }
  const name = document.createElement("b");
  name.textContent = bar.name;
  const share = ((bar.width / DATA.width) * 100).toFixed(1);
  details.append(name, ` \u2014 ${duration(bar.width)}, ${share} % of all\n`, bar.details);
}

function zoom(start, width) {
  const limited = Math.min(DATA.width, Math.max(width, DATA.width * 1e-6));
  view = { start: Math.min(Math.max(0, start), DATA.width - limited), width: limited };
  draw();
}

svg.addEventListener("click", (event) => {
  if (event.target.bar) choose(event.target.bar);
});
svg.addEventListener("mouseover", (event) => {
  if (event.target.bar) show(event.target.bar);
});
svg.addEventListener("mouseleave", () => show(chosen));
chart.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const at = view.start + (event.offsetX / chart.clientWidth) * view.width;
  const width = view.width * (event.deltaY > 0 ? 1.25 : 0.8);
  zoom(at - (event.offsetX / chart.clientWidth) * width, width);
}, { passive: false });
addEventListener("resize", draw);

"use strict";
// Draws DATA.boxes as a flame chart, and lets the tables of the page be sorted and searched.
// A box is [name, depth, start, width, kind, details]; start and width are seconds.
(() => {
  const ROW = 19;
  const AXIS = 20;
  const SVG = "http://www.w3.org/2000/svg";
  const boxes = DATA.boxes.map(([name, depth, start, width, kind, details]) => ({
    name, depth, start, width, kind, details, lower: name.toLowerCase(),
  }));
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
  const chart = document.getElementById("chart");
  const details = document.getElementById("details");
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const hint = details.textContent;
  const svg = document.createElementNS(SVG, "svg");
  chart.append(svg);

  let view = { start: 0, width: DATA.width };
  let chosen = null;
  let wanted = "";

  const duration = (seconds) =>
    seconds >= 1 ? `${seconds.toFixed(2)} s`
      : seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(1)} ms`
        : `${(seconds * 1e6).toFixed(0)} us`;

  const element = (kind, attributes, text) => {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // A step of 1, 2 or 5 times a power of ten that puts about eight ticks on the axis.
  const step = () => {
    const rough = view.width / 8;
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  };

  const drawAxis = (parts, width, height) => {
    const by = step();
    for (let n = Math.ceil(view.start / by); n * by <= view.start + view.width; n += 1) {
      const x = ((n * by - view.start) / view.width) * width;
      parts.append(element("line", { x1: x, x2: x, y1: AXIS - 4, y2: height }));
      parts.append(element("text", { x: x + 3, y: 12, class: "k-axis" }, duration(n * by)));
    }
  };

  const draw = () => {
    const width = chart.clientWidth;
    const height = AXIS + (depth + 1) * ROW + 4;
    const parts = document.createDocumentFragment();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    if (view.width > 0) drawAxis(parts, width, height);
    const end = view.start + view.width;
    for (const box of boxes) {
      if (box.start > end || box.start + box.width < view.start) continue;
      const scale = width / view.width;
      const left = Math.max(0, (box.start - view.start) * scale);
      const right = Math.min(width, (box.start + box.width - view.start) * scale);
      // Below a third of a pixel nothing can be seen, and there may be thousands.
      if (right - left < 0.33) continue;
      const classes = [`k-${box.kind}`];
      if (box === chosen) classes.push("chosen");
      if (wanted && box.lower.includes(wanted)) classes.push("found");
      const top = AXIS + box.depth * ROW;
      const shape = element("rect", {
        x: left, y: top, width: right - left, height: ROW - 1, class: classes.join(" "), rx: 2,
      });
      shape.box = box;
      parts.append(shape);
      const room = Math.floor((right - left - 6) / 6.2);
      if (room >= 3) {
        const label = box.name.length > room ? `${box.name.slice(0, room - 1)}\u2026` : box.name;
        parts.append(element("text", { x: left + 4, y: top + 13 }, label));
      }
    }
    svg.replaceChildren(parts);
  };

  const show = (box) => {
    details.replaceChildren();
    if (!box) {
      details.textContent = hint;
      return;
    }
    const name = document.createElement("b");
    name.textContent = box.name;
    const share = ((box.width / DATA.width) * 100).toFixed(1);
    details.append(name, ` \u2014 ${duration(box.width)}, ${share} % of all\n`, box.details);
  };

  const zoom = (start, width) => {
    const limited = Math.min(DATA.width, Math.max(width, DATA.width * 1e-6));
    view = { start: Math.min(Math.max(0, start), DATA.width - limited), width: limited };
    draw();
  };

  const choose = (box) => {
    chosen = box;
    show(box);
    if (box) zoom(box.start - box.width * 0.02, box.width * 1.04);
    else zoom(0, DATA.width);
  };

  svg.addEventListener("click", (event) => {
    if (event.target.box) choose(event.target.box);
  });
  svg.addEventListener("mouseover", (event) => {
    if (event.target.box) show(event.target.box);
  });
  svg.addEventListener("mouseleave", () => show(chosen));
  chart.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = view.start + (event.offsetX / chart.clientWidth) * view.width;
    const width = view.width * (event.deltaY > 0 ? 1.25 : 0.8);
    zoom(at - (event.offsetX / chart.clientWidth) * width, width);
  }, { passive: false });
  document.getElementById("whole").addEventListener("click", () => choose(null));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(null);
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    }
  });

  const rows = [...document.querySelectorAll("table.sorted tbody tr")];
  search.addEventListener("input", () => {
    wanted = search.value.trim().toLowerCase();
    chart.classList.toggle("searching", wanted !== "");
    const matching = boxes.filter((box) => wanted && box.lower.includes(wanted));
    // What is within another that matches is not counted again.
    const outer = matching.filter((box) => !matching.some((other) =>
      other.depth < box.depth && other.start <= box.start + 1e-9
      && other.start + other.width >= box.start + box.width - 1e-9));
    const sum = outer.reduce((total, box) => total + box.width, 0);
    found.textContent = wanted ? `${matching.length} boxes, ${duration(sum)}` : "";
    for (const row of rows) {
      row.hidden = wanted !== "" && !row.cells[0].textContent.toLowerCase().includes(wanted);
    }
    draw();
  });

  const sortBy = (table, column, heading) => {
    const falling = heading.getAttribute("aria-sort") !== "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const value = (row) => {
      const cell = row.cells[column];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    const sorted = [...table.tBodies[0].rows].sort((first, second) => {
      const [a, b] = [value(first), value(second)];
      const order = a < b ? -1 : a > b ? 1 : 0;
      return falling ? -order : order;
    });
    table.tBodies[0].append(...sorted);
  };
  for (const table of document.querySelectorAll("table.sorted")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      heading.classList.add("sortable");
      heading.tabIndex = 0;
      heading.addEventListener("click", () => sortBy(table, column, heading));
      heading.addEventListener("keydown", (event) => {
        if (event.key === "Enter") sortBy(table, column, heading);
      });
    });
  }

  window.addEventListener("resize", draw);
  draw();
})();

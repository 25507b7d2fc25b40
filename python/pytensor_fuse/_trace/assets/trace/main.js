// The page of a trace: a flame chart and tables with a common search field.
import { bars, choose, draw, duration, mark } from "./chart.js";
import { showRows } from "./tables.js";

const search = document.getElementById("search");
const found = document.getElementById("found");

search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  const matching = bars.filter((bar) => wanted && bar.lower.includes(wanted));
  // Bars within another match are not counted again.
  const outer = matching.filter((bar) => !matching.some((other) =>
    other.depth < bar.depth && other.start <= bar.start + 1e-9
    && other.start + other.width >= bar.start + bar.width - 1e-9));
  const sum = outer.reduce((total, bar) => total + bar.width, 0);
  found.textContent = wanted ? `${matching.length} boxes, ${duration(sum)}` : "";
  showRows(wanted);
  mark(wanted);
});
document.getElementById("whole").addEventListener("click", () => choose(null));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose(null);
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});

draw();

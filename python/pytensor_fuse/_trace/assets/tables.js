// Tables of a trace: sorted by a click on a heading, and filtered by names that contain a text.

const rows = [...document.querySelectorAll("table.sorted tbody tr")];

const search = document.getElementById("search");

search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  for (const row of rows) {
    row.hidden = wanted !== "" && !row.cells[0].textContent.toLowerCase().includes(wanted);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});

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

function sortBy(table, column, heading) {
  const falling = heading.getAttribute("aria-sort") !== "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const value = (row) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const sorted = [...table.tBodies[0].rows];
  sorted.sort((first, second) => {
    const [a, b] = [value(first), value(second)];
    const order = a < b ? -1 : a > b ? 1 : 0;
    return falling ? -order : order;
  });
  table.tBodies[0].append(...sorted);
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th button").forEach((button, k) => button.addEventListener("click", () => {
    const th = button.parentElement, body = table.tBodies[0];
    const down = th.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = row => row.cells[k].dataset.value ?? row.cells[k].textContent;
    const compare = (a, b) => (isNaN(value(a)) || isNaN(value(b))) ? value(a).localeCompare(value(b)) : value(a) - value(b);
    [...body.rows].sort((a, b) => down ? compare(b, a) : compare(a, b)).forEach(row => body.append(row));
  }));
}

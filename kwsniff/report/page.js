"use strict";
// Sorts and filters tables, and opens proofs for links and on paper. Without it the page has all it says.
(() => {
  const FEW = 8; // rows of a table that needs no filter

  function valueOf(row, column) {
    const cell = row.cells[column];
    const text = cell.textContent.trim();
    return "value" in cell.dataset ? Number(cell.dataset.value) : /^-?[0-9]+$/.test(text) ? Number(text) : text;
  }

  function compare(one, other) {
    if (one === "" || other === "") return (one === "") - (other === ""); // what is empty comes last
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sort(table, heading) {
    const column = heading.cellIndex;
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, column), row]);
    rows.sort(([one], [other]) => {
      const order = compare(one, other);
      return descending && one !== "" && other !== "" ? -order : order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  function addButtons(table) {
    for (const heading of table.tHead.rows[0].cells) {
      if (!heading.textContent.trim()) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }
  }

  function addFilter(table) {
    const box = table.closest(".scroll");
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "filter rows";
    input.setAttribute("aria-label", `Filter rows: ${box.getAttribute("aria-label")}`);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    box.before(input);
  }

  for (const table of document.querySelectorAll(".scroll table")) {
    const rows = table.tBodies[0].rows.length;
    if (rows > 1) addButtons(table);
    if (rows > FEW) addFilter(table);
  }

  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const proof = target && target.querySelector("details.proof");
    if (proof) proof.open = true;
  }

  // On paper a drawing that goes over the edge of a page is cut off there: A4 that lies, at the style's zoom.
  const TALLEST = 540;
  const ZOOM = 0.42;
  function fit(onPaper) {
    for (const each of document.querySelectorAll(".chart")) {
      each.style.zoom = onPaper ? Math.min(ZOOM, TALLEST / each.offsetHeight) : "";
    }
  }

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
    fit(true);
  });
  window.addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
    fit(false);
  });
  window.addEventListener("hashchange", openTarget);
  openTarget();
})();

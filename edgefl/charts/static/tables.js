/* Sorts <table class="sortable"> by a click on a heading, or by Enter and Space on it: the headings become buttons.
 * A cell is sorted by its data-v if it has one, otherwise by its text; cells without a value come last either way. */
"use strict";

(() => {
  const ORDER = new Intl.Collator("en", { numeric: true });

  /**
   * @param {HTMLTableRowElement} row
   * @param {number} column
   */
  function keyOf(row, column) {
    const cell = row.cells[column];
    if (cell.classList.contains("number")) {
      return "v" in cell.dataset ? Number(cell.dataset.v) : null;
    }
    return cell.textContent;
  }

  /**
   * @param {string | number} one
   * @param {string | number} other
   */
  function compare(one, other) {
    return typeof one === "number" ? one - Number(other) : ORDER.compare(one, String(other));
  }

  /**
   * @param {HTMLTableElement} table
   * @param {number} column
   * @param {number} direction
   */
  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => ({ row, key: keyOf(row, column) }));
    rows.sort((one, other) => {
      if (one.key === null || other.key === null) {
        return Number(one.key === null) - Number(other.key === null);
      }
      return direction * compare(one.key, other.key);
    });
    body.append(...rows.map((one) => one.row));
  }

  /** @param {HTMLTableElement} table */
  function prepare(table) {
    const heads = Array.from(table.tHead?.rows[0].cells ?? []);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        // Numbers start with the largest, words with the first.
        const first = head.classList.contains("number") ? "descending" : "ascending";
        const second = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? second : first;
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        sort(table, column, order === "ascending" ? 1 : -1);
      });
    });
  }

  /** @type {NodeListOf<HTMLTableElement>} */
  const tables = document.querySelectorAll("table.sortable");
  tables.forEach(prepare);
})();

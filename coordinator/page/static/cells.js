/* The cells of long tables. `Column` in types.d.ts says what a column is. */

import { element, setAttribute, setText } from "./dom.js";

/**
 * Makes the heading of a column.
 * @template Row
 * @param {Column<Row>} column
 */
export function heading(column) {
  const content = column.unsorted ? column.title : element("button", { type: "button" }, column.title);
  return element("th", { scope: "col", "data-column": column.name, class: column.number ? "number" : null }, content);
}

/**
 * Makes an empty cell for a column; the first one of a row is its heading.
 * @template Row
 * @param {Column<Row>} column
 * @param {number} place
 */
export function cell(column, place) {
  const made = element(place === 0 ? "th" : "td", {
    scope: place === 0 ? "row" : null,
    "data-column": column.name,
    class: column.number ? "number" : null,
  });
  made.append(...(column.make ? column.make() : []));
  return made;
}

/**
 * Writes a row into a cell.
 * @template Row
 * @param {HTMLTableCellElement} place
 * @param {Column<Row>} column
 * @param {Row} row
 */
export function fill(place, column, row) {
  if (column.fill) {
    column.fill(place, row);
  } else {
    setText(place, column.text?.(row) ?? "");
  }
  if (column.hint) {
    setAttribute(place, "title", column.hint(row));
  }
}

/** Makes a row that takes the height of many rows that are not in the document. */
export function spacer() {
  const cell = element("td");
  return { line: element("tr", { class: "space", "aria-hidden": "true" }, cell), cell };
}

/**
 * Sets the height of a spacer.
 * @param {ReturnType<typeof spacer>} space
 * @param {number} pixels
 */
export function setHeight({ line, cell }, pixels) {
  line.hidden = pixels === 0;
  cell.style.height = `${pixels}px`;
}

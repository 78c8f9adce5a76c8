/* The cells of long tables.
 *
 * A column is {name, title, width, value(row), text(row)}, and where it needs them:
 *   number      aligned to the right, largest first
 *   make()      what a new cell holds, and fill(cell, row), which writes into it; else text(row) is the cell
 *   hint(row)   what is said when the pointer rests on it
 *   ticks       its text changes with time alone
 *   unsorted    has no order */

import { element, setAttribute, setText } from "./dom.js";

export function heading(column) {
  const content = column.unsorted ? column.title : element("button", { type: "button" }, column.title);
  return element("th", { scope: "col", "data-column": column.name, class: column.number ? "number" : null }, content);
}

export function cell(column, place) {
  const made = element(place === 0 ? "th" : "td", {
    scope: place === 0 ? "row" : null,
    "data-column": column.name,
    class: column.number ? "number" : null,
  });
  made.append(...(column.make ? column.make() : []));
  return made;
}

export function fill(place, column, row) {
  if (column.fill) {
    column.fill(place, row);
  } else {
    setText(place, column.text(row));
  }
  if (column.hint) {
    setAttribute(place, "title", column.hint(row));
  }
}

/* A row that is as tall as many that are not there. */
export function spacer() {
  return element("tr", { class: "space", "aria-hidden": "true" }, element("td"));
}

export function setHeight(line, pixels) {
  line.hidden = pixels === 0;
  line.firstChild.style.height = `${pixels}px`;
}

/* A table of any length: only the visible rows are in the document, between two empty rows as tall as all the others.
 * A press on a heading sorts it; arrow keys move from row to row.
 *
 * A row may have a `stamp` that changes when anything in the row does: then it is written again only if that is new. */

import { cell, fill, heading, setHeight, spacer } from "./cells.js";
import { beforePaint, element, setAttribute } from "./dom.js";

const BESIDE = 5; // rows beyond the visible ones, above and below

/**
 * @template {LongTableRow} Row
 */
export class VirtualTable {
  #table;
  #scroller;
  #key;
  #attribute;
  /** @type {Column<Row>[]} */
  #columns = [];
  /** @type {Row[]} */
  #rows = [];
  /** @type {SortOrder} */
  #order;
  #head = element("tr");
  #widths = element("colgroup");
  #body = element("tbody");
  #above = spacer();
  #below = spacer();
  /** @type {Map<string, HTMLTableRowElement>} */
  #shown = new Map();
  /** @type {HTMLTableRowElement[]} */
  #spare = [];
  /**
   * What is written in a line.
   * @type {WeakMap<HTMLTableRowElement, {row: Row, stamp: number | undefined}>}
   */
  #held = new WeakMap();
  #height = 0; // of a row
  #room = 0; // height of the visible part
  #top = 0; // how far it is scrolled

  /**
   * @param {HTMLTableElement} table
   * @param {TableOptions<Row>} options
   */
  constructor(table, { columns, key, attribute, sort, label }) {
    this.#table = table;
    this.#scroller = /** @type {HTMLElement} */ (table.parentElement);
    this.#key = key;
    this.#attribute = attribute;
    this.#order = sort;
    table.setAttribute("aria-label", label);
    table.append(this.#widths, element("thead", {}, this.#head), this.#body);
    this.#body.append(this.#above.line, this.#below.line);
    this.setColumns(columns);
    this.#watchScroller();
    this.#head.addEventListener("click", (event) => this.#pressed(event));
    this.#body.addEventListener("keydown", (event) => this.#moved(event));
  }

  /** Keeps the scroll position and the height: reading them after a change would compute the layout twice. */
  #watchScroller() {
    const moved = beforePaint(() => {
      this.#top = this.#scroller.scrollTop;
      this.paint();
    });
    this.#scroller.addEventListener("scroll", moved, { passive: true });
    new ResizeObserver(() => {
      this.#room = this.#scroller.clientHeight;
      this.paint();
    }).observe(this.#scroller);
  }

  /** @param {Column<Row>[]} columns */
  setColumns(columns) {
    this.#columns = columns;
    this.#widths.replaceChildren(
      ...columns.map((column) => {
        const made = element("col");
        made.style.width = `${column.width}px`;
        return made;
      }),
    );
    this.#table.style.minWidth = `${columns.reduce((sum, column) => sum + column.width, 0)}px`;
    this.#head.replaceChildren(...columns.map((column) => heading(column)));
    this.#head.setAttribute("aria-rowindex", "1");
    for (const spare of [this.#above, this.#below]) {
      spare.cell.colSpan = columns.length;
    }
    this.#shown.forEach((row) => row.remove());
    this.#shown.clear();
    this.#spare = [];
    this.#height = 0;
    this.#markOrder();
  }

  /** @param {Row[]} rows */
  setRows(rows) {
    this.#rows = rows;
    this.#sort();
    this.paint();
  }

  toTop() {
    if (this.#top !== 0) {
      this.#scroller.scrollTop = 0;
      this.#top = 0;
    }
  }

  /** Writes what changes with time alone, in the visible rows. */
  tick() {
    for (const [place, column] of this.#columns.entries()) {
      if (column.ticks) {
        this.#shown.forEach((line) => {
          const held = this.#held.get(line);
          if (held !== undefined) {
            fill(line.cells[place], column, held.row);
          }
        });
      }
    }
  }

  paint() {
    if (this.#room === 0) {
      return; // not visible
    }
    this.#height ||= parseFloat(getComputedStyle(this.#table).getPropertyValue("--row")) || 34;
    const [first, last] = this.#span();
    const wanted = this.#rows.slice(first, last);
    const focused = this.#focusedKey();
    this.#dropAllBut(new Set(wanted.map(this.#key)));
    let next = this.#above.line.nextSibling;
    wanted.forEach((row, place) => {
      const line = this.#line(row);
      setAttribute(line, "aria-rowindex", String(first + place + 2));
      if (line === next) {
        next = line.nextSibling;
      } else {
        this.#body.insertBefore(line, next);
      }
    });
    setHeight(this.#above, first * this.#height);
    setHeight(this.#below, (this.#rows.length - last) * this.#height);
    setAttribute(this.#table, "aria-rowcount", String(this.#rows.length + 1));
    this.#spare.length = Math.min(this.#spare.length, wanted.length);
    this.#keepFocus(focused);
  }

  #span() {
    const first = Math.max(0, Math.floor(this.#top / this.#height) - BESIDE);
    const seen = Math.ceil(this.#room / this.#height) + 2 * BESIDE;
    const begin = Math.min(first, Math.max(0, this.#rows.length - seen));
    return [begin, Math.min(this.#rows.length, begin + seen)];
  }

  /**
   * Keeps unneeded lines for other rows: writing into them is cheaper than making new ones.
   * @param {Set<string>} keys
   */
  #dropAllBut(keys) {
    for (const [key, line] of this.#shown) {
      if (!keys.has(key)) {
        line.remove();
        this.#shown.delete(key);
        this.#spare.push(line);
      }
    }
  }

  /** @param {Row} row */
  #line(row) {
    const key = this.#key(row);
    const line = this.#shown.get(key) ?? this.#newLine(key);
    const held = this.#held.get(line);
    if (held?.row !== row || held.stamp !== row.stamp || row.stamp === undefined) {
      this.#columns.forEach((column, place) => fill(line.cells[place], column, row));
      this.#held.set(line, { row, stamp: row.stamp });
    }
    return line;
  }

  /** @param {string} key */
  #newLine(key) {
    const line = this.#spare.pop() ?? element("tr", {}, ...this.#columns.map((column, place) => cell(column, place)));
    line.setAttribute(this.#attribute, key);
    this.#shown.set(key, line);
    return line;
  }

  /* Order */

  /** @param {Event} event */
  #pressed(event) {
    const target = /** @type {Element} */ (event.target);
    const name = target.closest("th")?.dataset.column;
    const column = this.#columns.find((one) => one.name === name);
    if (name === undefined || !column || !target.closest("button")) {
      return;
    }
    const first = Boolean(column.number); // numbers start with the largest, words with the first
    const descending = this.#order.column === name ? !this.#order.descending : first;
    this.#order = { column: name, descending };
    this.#markOrder();
    this.toTop();
    this.setRows(this.#rows);
  }

  #markOrder() {
    for (const head of this.#head.cells) {
      const here = head.dataset.column === this.#order.column;
      setAttribute(head, "aria-sort", here ? (this.#order.descending ? "descending" : "ascending") : null);
    }
  }

  #sort() {
    const column = this.#columns.find((one) => one.name === this.#order.column) ?? this.#columns[0];
    this.#rows = sorted(this.#rows, column.value, this.#order.descending);
  }

  /* Keys */

  #focusedKey() {
    const focused = document.activeElement;
    const line = focused !== null && this.#body.contains(focused) ? focused.closest("tr") : null;
    return line === null ? null : line.getAttribute(this.#attribute);
  }

  /** @param {string | null} key */
  #keepFocus(key) {
    if (key !== null && !this.#body.contains(document.activeElement)) {
      const target = this.#target(key) ?? this.#scroller;
      target.focus({ preventScroll: true });
    }
  }

  /**
   * What takes the focus in a row.
   * @param {string} key
   * @returns {HTMLElement | null | undefined}
   */
  #target(key) {
    return this.#shown.get(key)?.querySelector("a, button");
  }

  /** @param {KeyboardEvent} event */
  #moved(event) {
    const far = Math.max(1, Math.floor(this.#room / this.#height) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: far, PageUp: -far, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    const key = this.#focusedKey();
    if (step === undefined || key === null || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    event.preventDefault();
    const from = this.#rows.findIndex((row) => this.#key(row) === key);
    const place = Math.min(this.#rows.length - 1, Math.max(0, from + step));
    const top = place * this.#height;
    const room = this.#room - this.#head.offsetHeight - this.#height;
    this.#scroller.scrollTop = Math.min(top, Math.max(this.#scroller.scrollTop, top - room));
    this.#top = this.#scroller.scrollTop;
    this.paint();
    this.#target(this.#key(this.#rows[place]))?.focus({ preventScroll: true });
  }
}

/**
 * Sorts rows by a value; those without one come last in either direction. Equal ones keep their order.
 * @template Row
 * @param {Row[]} rows
 * @param {(row: Row) => string | number | null | undefined} value
 * @param {boolean} descending
 */
export function sorted(rows, value, descending) {
  const direction = descending ? -1 : 1;
  const marked = rows.map((row) => ({ row, value: value(row) ?? null }));
  marked.sort((one, other) => {
    if (one.value === null || other.value === null) {
      return Number(one.value === null) - Number(other.value === null);
    }
    return one.value < other.value ? -direction : one.value > other.value ? direction : 0;
  });
  return marked.map((one) => one.row);
}

/* What every view does to the document. Text is always inserted as text: nothing here reads markup. */

import { Problem } from "./api.js";

/** @typedef {string | number | boolean | null | undefined} Attribute */

/**
 * The element of the page that has an id.
 * @template {string} Id
 * @param {Id} id
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no element #${id}`);
  }
  return /** @type {Id extends keyof PageElements ? PageElements[Id] : HTMLElement} */ (found);
}

/**
 * The first element below `place` that has a tag, such as "button".
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {ParentNode} place
 * @param {Tag} tag
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function find(place, tag) {
  const found = place.querySelector(tag);
  if (found === null) {
    throw new Error(`the page has no <${tag}> there`);
  }
  return found;
}

/**
 * Makes an element. Attributes that are null, undefined or false are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, Attribute>} [attributes]
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) {
      made.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, String(value));
    }
  }
  made.append(...children);
  return made;
}

/**
 * Writes a text only if it is new: a page that repaints often should not recompute its layout for nothing.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/**
 * Writes an attribute only if it is new; null removes it.
 * @param {Element} node
 * @param {string} name
 * @param {string | null} value
 */
export function setAttribute(node, name, value) {
  if (value === null) {
    node.removeAttribute(name);
  } else if (node.getAttribute(name) !== value) {
    node.setAttribute(name, value);
  }
}

/**
 * Shows a problem and what to do about it in a live region; null removes it.
 * @param {Element} place
 * @param {unknown} problem
 */
export function showProblem(place, problem) {
  if (problem === null) {
    place.replaceChildren();
    return;
  }
  const message = problem instanceof Error ? problem.message : String(problem);
  const fix = problem instanceof Problem && problem.fix ? [element("br"), problem.fix] : [];
  place.replaceChildren(element("p", { class: "notice" }, element("strong", {}, message), ...fix));
}

/**
 * Returns a function that runs `work` once before the next frame, however often it is called. A hidden page draws no
 * frames.
 * @param {() => void} work
 */
export function beforePaint(work) {
  let asked = false;
  return () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        work();
      });
    }
  };
}

/**
 * Returns a function that runs `work` once, `wait` milliseconds after its first call: further calls do not delay it.
 * @param {() => void} work
 * @param {number} wait
 */
export function later(work, wait) {
  let asked = false;
  return () => {
    if (!asked) {
      asked = true;
      setTimeout(() => {
        asked = false;
        work();
      }, wait);
    }
  };
}

/** @type {WeakMap<Element, string>} */
const written = new WeakMap();

/**
 * Writes a list again only if something in it is new: a reader may have selected its text.
 * @template Row
 * @param {Element} place
 * @param {Row[]} rows
 * @param {(row: Row) => Node[]} make
 */
function writeRows(place, rows, make) {
  const text = JSON.stringify(rows);
  if (written.get(place) !== text) {
    written.set(place, text);
    place.replaceChildren(...rows.map((row) => element("div", {}, ...make(row))));
  }
}

/**
 * Shows names and values as a list.
 * @param {Element} place
 * @param {[name: string, value: string][]} rows
 */
export function pairs(place, rows) {
  writeRows(place, rows, ([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
}

/**
 * Shows figures in large type: a name, a value, a note.
 * @param {Element} place
 * @param {[name: string, value: string, note?: string][]} rows
 */
export function tiles(place, rows) {
  writeRows(place, rows, ([name, value, note]) => [
    element("dt", {}, name),
    element("dd", { class: "value" }, value),
    element("dd", { class: "note" }, note ?? ""),
  ]);
}

/* The columns of the long tables that more than one view needs, and those of the fleet. */

import * as clock from "./clock.js";
import { element, setAttribute, setText } from "./dom.js";
import { STATES } from "./devices.js";
import { BEYOND, ago, count, joules, moment, ordinary, ratioOf } from "./formatting.js";
import { roundNumber, seconds, share, size, times } from "./formatting.js";

/**
 * Reads a property of a row.
 * @template {string} Name
 * @param {Name} name
 * @returns {<Value>(row: {[Key in Name]: Value}) => Value}
 */
export const of = (name) => (row) => row[name];

/**
 * A column of plain values.
 * @template Row
 * @template {string | number | null | undefined} Value
 * @param {string} name
 * @param {string} title
 * @param {number} width
 * @param {(value: Value) => string} text
 * @param {(row: Row) => Value} value
 * @param {Partial<Column<Row>>} [more]
 * @returns {Column<Row>}
 */
export function plain(name, title, width, text, value, more = {}) {
  return { name, title, width, value, text: (row) => text(value(row)), ...more };
}

/**
 * A column of numbers that rows have under the column's own name.
 * @template {string} Name
 * @param {Name} name
 * @param {string} title
 * @param {number} width
 * @param {(value: Maybe) => string} text
 * @returns {Column<{[Key in Name]: number | null}>}
 */
export function amount(name, title, width, text) {
  return plain(name, title, width, text, of(name), { number: true });
}

/**
 * A column of measured values, with the ratio to what was predicted: '12.3 ms (1.1x)'.
 * @template Row
 * @param {string} name
 * @param {string} title
 * @param {number} width
 * @param {(value: Maybe) => string} say
 * @param {(row: Row) => number | null} value
 * @param {(row: Row) => number | null} predicted
 * @returns {Column<Row>}
 */
export function measured(name, title, width, say, value, predicted) {
  return {
    name,
    title,
    width,
    number: true,
    value,
    make: () => [element("span", { class: "mark" }), element("span"), element("span", { class: "ratio" })],
    fill(cell, row) {
      const ratio = ratioOf(value(row), predicted(row));
      const beyond = ratio !== null && ratio > BEYOND;
      setText(cell.children[0], beyond ? "▲ " : "");
      setText(cell.children[1], say(value(row)));
      setText(cell.children[2], ratio === null ? "" : ` (${times(ratio)})`);
      setAttribute(cell, "data-beyond", beyond ? "" : null);
      setAttribute(cell, "title", comparison(say, value(row), predicted(row)));
    },
  };
}

/**
 * 'measured 12.3 ms, 1.1x of the predicted 11.2 ms'.
 * @param {(value: Maybe) => string} say
 * @param {Maybe} value
 * @param {Maybe} predicted
 */
export function comparison(say, value, predicted) {
  const ratio = ratioOf(value, predicted);
  if (ratio === null) {
    return value === null || value === undefined ? null : `measured ${say(value)}, nothing predicted`;
  }
  return `measured ${say(value)}, ${times(ratio)} of the predicted ${say(predicted)}`;
}

/**
 * A column of moments, as ages that go on.
 * @template {string} Name
 * @param {Name} name
 * @param {string} title
 * @param {number} width
 * @returns {Column<{[Key in Name]: number | null}>}
 */
export function age(name, title, width) {
  return {
    name,
    title,
    width,
    number: true,
    ticks: true,
    value: (row) => row[name],
    text: (row) => ago(row[name], clock.now()),
    hint: (row) => (row[name] ? moment(row[name]) : null),
  };
}

/**
 * A column of states, as badges.
 * @param {number} width
 * @param {string[] | null} [order] the states in order; without it they are sorted by name
 * @returns {Column<{state: string}>}
 */
export function state(width, order = null) {
  return {
    name: "state",
    title: "State",
    width,
    value: (row) => (order === null ? row.state : order.indexOf(row.state)),
    make: () => [element("span", { class: "badge" })],
    fill(cell, row) {
      const badge = cell.children[0];
      setText(badge, row.state);
      setAttribute(badge, "data-state", row.state);
    },
  };
}

/**
 * A column of texts from elsewhere: cut if they are long, whole when the pointer rests on them.
 * @template Row
 * @param {string} name
 * @param {string} title
 * @param {number} width
 * @param {(row: Row) => string | null} text
 * @returns {Column<Row>}
 */
export function words(name, title, width, text) {
  return { name, title, width, value: text, text: (row) => text(row) ?? "", hint: text };
}

/** @type {Column<DeviceRow>} */
const DEVICE = {
  name: "id",
  title: "Device",
  width: 164,
  value: (row) => row.order,
  make: () => [element("a", { class: "device" }), element("span", { class: "below" })],
  fill(cell, row) {
    const [link, below] = cell.children;
    setText(link, row.id);
    setText(below, row.class ?? "");
    setAttribute(link, "href", `#/device/${encodeURIComponent(row.id)}`);
    setAttribute(cell, "title", row.id);
  },
};

const SEEN = age("seen_at", "Seen", 92);
const STEP = measured("step_seconds", "Step time", 142, seconds, of("step_seconds"), of("predicted_step_seconds"));

/** @type {Column<DeviceRow>[]} */
export const FLEET = [
  DEVICE,
  words("class", "Class", 140, of("class")),
  words("engine", "Engine", 152, of("engine")),
  state(124, STATES),
  words("why", "Why", 214, of("why")),
  SEEN,
  plain("round", "Round", 70, roundNumber, of("round"), { number: true }),
  amount("kept", "Kept", 74, share),
  amount("trained", "Trained", 78, share),
  words("rung", "Rung", 168, of("rung")),
  STEP,
  amount("round_seconds", "Round time", 96, seconds),
  measured("peak_bytes", "Peak memory", 150, size, of("peak_bytes"), of("predicted_peak_bytes")),
  measured("joules", "Energy", 134, joules, of("joules"), of("predicted_joules")),
  words("energy_label", "Energy is", 142, of("energy_label")),
  amount("down_bytes", "Down", 84, size),
  amount("up_bytes", "Up", 84, size),
  words("heat", "Heat", 150, of("heat")),
  amount("accuracy", "Own accuracy", 116, share),
  amount("loss", "Loss", 70, ordinary),
  amount("done", "Done", 64, count),
  amount("failed", "Failed", 68, count),
  amount("samples", "Samples", 80, count),
];

/**
 * On a phone the class is below the name.
 * @type {Column<DeviceRow>[]}
 */
export const FLEET_NARROW = [
  { ...DEVICE, width: 88 },
  { ...FLEET[3], width: 99 },
  { ...SEEN, width: 74 },
  { ...STEP, title: "Step", width: 72 },
];

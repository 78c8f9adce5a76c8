/* The fleet as data: one object per device, changed in place, in the order of their names, and the text that a filter
 * searches. */

export const STATES = ["idle", "asked", "training", "uploading", "refused", "gone"];

let stamp = 0; // shared by all fleets: a row of one federation is never mistaken for that of another

export class Devices {
  /** @type {string[]} */
  #columns = [];
  /** @type {Map<string, DeviceRow>} */
  #rows = new Map();

  /**
   * How many devices are in each state.
   * @type {Record<string, number>}
   */
  counts = {};

  get size() {
    return this.#rows.size;
  }

  /** @param {string | null} id */
  get(id) {
    return id === null ? undefined : this.#rows.get(id);
  }

  /** @param {FleetChange} fleet a whole one */
  replace({ columns, rows }) {
    this.#columns = columns ?? [];
    this.#rows = new Map();
    this.change({ rows });
  }

  /** @param {FleetChange} fleet what is new in it */
  change({ rows = [], gone = [] }) {
    for (const values of rows) {
      this.#take(values);
    }
    for (const id of gone) {
      this.#rows.delete(id);
    }
    this.#count();
  }

  /**
   * Devices in a state (null: in any) whose text contains every word.
   * @param {string[]} words
   * @param {string | null} state
   */
  matching(words, state) {
    const found = [];
    for (const row of this.#rows.values()) {
      if ((state === null || row.state === state) && words.every((word) => row.search.includes(word))) {
        found.push(row);
      }
    }
    return found;
  }

  /** @param {unknown[]} values in the order of the columns */
  #take(values) {
    const id = String(values[this.#columns.indexOf("id")]);
    const row = this.#rows.get(id) ?? /** @type {DeviceRow} */ ({ order: naturalOrder(id) });
    this.#rows.set(id, row);
    const fields = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (row));
    this.#columns.forEach((name, place) => {
      fields[name] = values[place];
    });
    row.search = [row.id, row.class, row.engine, row.rung, row.state, row.why].join("\n").toLowerCase();
    row.stamp = stamp += 1;
  }

  #count() {
    this.counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const row of this.#rows.values()) {
      this.counts[row.state] = (this.counts[row.state] ?? 0) + 1;
    }
  }
}

/**
 * A text that sorts 'device-9' before 'device-10'. A collator would be too slow: ten thousand rows are sorted on every
 * change.
 * @param {string} text
 */
function naturalOrder(text) {
  return text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}

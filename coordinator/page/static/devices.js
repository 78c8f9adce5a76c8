/* The fleet as data: one object a device, changed in place, and the text that a filter looks through. */

export const STATES = ["idle", "asked", "training", "uploading", "refused", "gone"];

let stamp = 0; // of all fleets: a row of one federation is never taken for that of another

export class Devices {
  #columns = [];
  #rows = new Map();

  /* How many there are in each state. */
  counts = {};

  get size() {
    return this.#rows.size;
  }

  get(id) {
    return this.#rows.get(id);
  }

  replace({ columns, rows }) {
    this.#columns = columns;
    this.#rows = new Map();
    this.change({ rows });
  }

  change({ rows = [], gone = [] }) {
    for (const values of rows) {
      this.#take(values);
    }
    for (const id of gone) {
      this.#rows.delete(id);
    }
    this.#count();
  }

  /* Devices in a state (null: in any) whose text holds every word. */
  matching(words, state) {
    const found = [];
    for (const row of this.#rows.values()) {
      if ((state === null || row.state === state) && words.every((word) => row.search.includes(word))) {
        found.push(row);
      }
    }
    return found;
  }

  #take(values) {
    const id = values[this.#columns.indexOf("id")];
    let row = this.#rows.get(id);
    if (row === undefined) {
      row = { order: naturalOrder(id) };
      this.#rows.set(id, row);
    }
    this.#columns.forEach((name, place) => {
      row[name] = values[place];
    });
    row.search = [row.id, row.class, row.state, row.why].join("\n").toLowerCase();
    row.stamp = stamp += 1;
  }

  #count() {
    this.counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const row of this.#rows.values()) {
      this.counts[row.state] = (this.counts[row.state] ?? 0) + 1;
    }
  }
}

/* A text that sorts 'device-9' before 'device-10', without a collator: ten thousand rows are sorted on every change. */
function naturalOrder(text) {
  return text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}

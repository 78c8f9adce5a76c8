/* The fleet: how many devices are in each state, and one row for each device. */

import { FLEET, FLEET_NARROW } from "./columns.js";
import { STATES } from "./devices.js";
import { beforePaint, byId, element, later, setAttribute, setText } from "./dom.js";
import { VirtualTable } from "./virtual_table.js";
import { capital, count, plural, wholeSeconds } from "./formatting.js";

const NARROW = window.matchMedia("(max-width: 640px)");

export class FleetView {
  title = "Fleet";
  heading = byId("fleet-heading");
  #app;
  #table;
  /** @type {string[]} */
  #words = [];
  /** @type {string | null} */
  #state = null;
  /** @type {Map<string | null, {button: HTMLElement, number: HTMLElement}>} */
  #buttons = new Map();
  #repaint = beforePaint(() => this.#paint());
  #say = later(() => setText(byId("fleet-said"), byId("fleet-count").textContent ?? ""), 600);

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
    this.#table = new VirtualTable(byId("fleet"), {
      columns: NARROW.matches ? FLEET_NARROW : FLEET,
      key: (row) => row.id,
      attribute: "data-device",
      sort: { column: "id", descending: false },
      label: "Devices",
    });
    this.#makeButtons();
    NARROW.addEventListener("change", () => {
      this.#table.setColumns(NARROW.matches ? FLEET_NARROW : FLEET);
      this.#repaint();
    });
    byId("filter").addEventListener("input", () => this.#filter());
    byId("filter-clear").addEventListener("click", () => this.#clear());
  }

  open() {
    this.#paint();
  }

  /** @param {Set<string>} news */
  update(news) {
    if (news.has("fleet") || news.has("federation")) {
      this.#repaint();
    }
  }

  tick() {
    this.#table.tick();
  }

  close() {}

  /** Forgets what the reader searched for: it means nothing in another federation. */
  reset() {
    byId("filter").value = "";
    this.#words = [];
    this.#state = null;
    this.#table.setRows([]);
    this.#table.toTop();
  }

  #makeButtons() {
    for (const state of [null, ...STATES]) {
      const number = element("span", { class: "of" });
      const name = state ?? "all";
      const button = element("button", { type: "button", "data-state": name }, capital(name), " ", number);
      button.addEventListener("click", () => {
        this.#state = this.#state === state ? null : state;
        this.#filter();
      });
      this.#buttons.set(state, { button, number });
      byId("state-filter").append(button);
    }
  }

  #filter() {
    this.#words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.#table.toTop();
    this.#paint();
    this.#say();
  }

  #clear() {
    byId("filter").value = "";
    this.#state = null;
    this.#filter();
    byId("filter").focus();
  }

  #paint() {
    const { devices, known } = this.#app.standing;
    const empty = known && devices.size === 0;
    byId("fleet-empty").hidden = !empty;
    byId("fleet-there").hidden = empty || !known;
    this.#paintTiles();
    this.#paintButtons();
    const found = devices.matching(this.#words, this.#state);
    setText(byId("fleet-count"), `${count(found.length)} of ${plural(devices.size, "device")}`);
    byId("fleet-none").hidden = found.length > 0;
    byId("fleet-scroll").hidden = found.length === 0;
    byId("fleet-note").hidden = found.length === 0;
    this.#table.setRows(found);
  }

  #paintTiles() {
    const { devices, federation } = this.#app.standing;
    const of = devices.counts;
    const within = federation?.settings?.selection?.available_within;
    /** @type {Record<string, [number: number, note: string]>} */
    const tiles = {
      there: [devices.size - (of.gone ?? 0), `of ${plural(devices.size, "device")}`],
      training: [of.training ?? 0, `${count(of.asked ?? 0)} asked, ${count(of.uploading ?? 0)} uploading`],
      refused: [of.refused ?? 0, "said no to their last task"],
      gone: [of.gone ?? 0, within ? `not heard of for ${wholeSeconds(within)}` : "not heard of"],
    };
    for (const [name, [number, note]] of Object.entries(tiles)) {
      document.querySelectorAll(`[data-tile=${name}]`).forEach((place) => setText(place, count(number)));
      document.querySelectorAll(`[data-note=${name}]`).forEach((place) => setText(place, note));
    }
  }

  #paintButtons() {
    const { devices } = this.#app.standing;
    this.#buttons.forEach(({ button, number }, state) => {
      setText(number, count(state === null ? devices.size : (devices.counts[state] ?? 0)));
      setAttribute(button, "aria-pressed", String(this.#state === state));
    });
  }
}

/* One device: its state, its profile, its plan, and how each of its tasks went. */

import { ask, federationPath, statusOf } from "./api.js";
import { exportDevice, revokeDevice } from "./actions.js";
import { comparison, measured, of, plain, state, words } from "./columns.js";
import * as clock from "./clock.js";
import { beforePaint, byId, element, later, pairs, setAttribute, setText, showProblem, tiles } from "./dom.js";
import { Figures } from "./figures.js";
import { VirtualTable } from "./virtual_table.js";
import { flat, planRows, profileRows } from "./profile.js";
import { BEYOND, ago, count, joules, moment, ordinary, plural } from "./formatting.js";
import { ratioOf, roundNumber, seconds, share, size, times } from "./formatting.js";

const number = { number: true };

/** @typedef {(value: Maybe) => string} Say */

/** @type {Column<TaskRow>[]} */
const TASKS = [
  plain("round", "Round", 70, roundNumber, of("round")),
  state(108),
  plain("created_at", "Made", 160, moment, of("created_at")),
  plain("kept", "Kept", 74, share, of("kept"), number),
  plain("trained", "Trained", 78, share, of("trained"), number),
  words("rung", "Rung", 168, of("rung")),
  measured("step_seconds", "Step time", 142, seconds, of("step_seconds"), of("predicted_step_seconds")),
  plain("round_seconds", "Round time", 96, seconds, of("round_seconds"), number),
  measured("peak_bytes", "Peak memory", 150, size, of("peak_bytes"), of("predicted_peak_bytes")),
  measured("joules", "Energy", 134, joules, of("joules"), of("predicted_joules")),
  words("energy_label", "Energy is", 142, of("energy_label")),
  plain("down_bytes", "Down", 84, size, of("down_bytes"), number),
  plain("up_bytes", "Up", 84, size, of("up_bytes"), number),
  words("heat", "Heat", 150, of("heat")),
  plain("accuracy", "Own accuracy", 116, share, of("accuracy"), number),
  plain("loss", "Loss", 70, ordinary, of("loss"), number),
  plain("samples", "Samples", 80, count, of("samples"), number),
  words("refusal", "Refused because", 260, refusalOf),
];

export class DeviceView {
  title = "Device";
  heading = byId("device-heading");
  #app;
  /** @type {string | null} */
  #id = null;
  /** @type {DevicePage | null} */
  #page = null;
  #figures = new Figures(byId("device-charts"));
  #table = new VirtualTable(byId("tasks"), {
    columns: TASKS,
    key: (row) => row.id,
    attribute: "data-task",
    sort: { column: "created_at", descending: true },
    label: "Tasks of this device",
  });
  /** @type {string | null} */
  #fetchedAt = null;
  #repaint = beforePaint(() => this.#paintNow());
  #refetch = later(() => this.#fetch(), 1500);

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
  }

  /** @param {string | null} id */
  open(id) {
    if (id !== this.#id) {
      this.#figures.release();
      this.#page = null;
      byId("device-actions").replaceChildren();
    }
    this.#id = id;
    this.title = id ?? "";
    setText(this.heading, this.title);
    byId("device-body").hidden = this.#page === null;
    showProblem(byId("device-problem"), null);
    this.#paintNow();
    this.#fetch();
  }

  /** @param {Set<string>} news */
  update(news) {
    if (!news.has("fleet")) {
      return;
    }
    this.#repaint();
    // A task was handed out, or has ended.
    if (this.#where() !== this.#fetchedAt) {
      this.#refetch();
    }
  }

  tick() {
    this.#paintNow();
  }

  close() {
    this.#id = null;
    this.#page = null;
    this.#figures.release();
  }

  reset() {}

  /** The state of its tasks: what was fetched is out of date when this changes. */
  #where() {
    const row = this.#app.standing.devices.get(this.#id);
    return row ? [row.round, row.state, row.done, row.failed].join() : "";
  }

  async #fetch() {
    const { standing } = this.#app;
    const id = this.#id;
    if (id === null || !standing.known) {
      return;
    }
    this.#fetchedAt = this.#where();
    try {
      /** @type {DevicePage} */
      const page = await ask(federationPath(standing.name, "devices", id, "page"));
      if (id === this.#id && standing === this.#app.standing) {
        this.#page = page;
        this.#show(page);
      }
    } catch (error) {
      if (statusOf(error) === 0) {
        this.#fetchedAt = null; // fetched again with the next news
      }
      if (id === this.#id && !this.#app.failed(error)) {
        byId("device-body").hidden = this.#page === null || statusOf(error) === 404;
        showProblem(byId("device-problem"), error);
      }
    }
  }

  /** @param {DevicePage} page */
  #show({ device, plan, tasks, charts }) {
    byId("device-body").hidden = false;
    showProblem(byId("device-problem"), null);
    pairs(byId("device-profile"), profileRows(device));
    pairs(byId("device-profile-all"), flat(device.profile));
    byId("device-no-plan").hidden = plan !== null;
    byId("device-plan-details").hidden = plan === null;
    pairs(byId("device-plan"), plan === null ? [] : planRows(plan));
    pairs(byId("device-plan-all"), plan === null ? [] : flat(plan));
    byId("tasks-none").hidden = tasks.length > 0;
    byId("tasks-scroll").hidden = tasks.length === 0;
    this.#paintActions(device.state === "revoked");
    this.#paintNow();
    this.#table.setRows(tasks);
    this.#figures.show(charts);
  }

  /** Paints what the stream reports, and what changes with time. */
  #paintNow() {
    const device = this.#page?.device;
    const row = this.#app.standing.devices.get(this.#id);
    const revoked = device?.state === "revoked";
    const how = revoked ? "revoked" : (row?.state ?? device?.state ?? "");
    setText(byId("device-state"), how);
    setAttribute(byId("device-state"), "data-state", how);
    byId("device-state").hidden = how === "";
    setText(byId("device-about"), about(row, device, how));
    setText(byId("device-why"), row?.why ?? "");
    byId("device-why").hidden = !row?.why;
    tiles(byId("device-tiles"), row ? figuresOf(row) : []);
  }

  /** @param {boolean} revoked */
  #paintActions(revoked) {
    const place = byId("device-actions");
    const id = this.#id;
    if (this.#app.role !== "admin" || revoked || id === null) {
      place.replaceChildren();
    } else if (place.children.length === 0) {
      const save = element("button", { type: "button", "data-action": "export" }, "Export its part");
      const revoke = element("button", { type: "button", class: "danger", "data-action": "revoke" }, "Revoke");
      save.addEventListener("click", () => exportDevice(this.#app, id));
      revoke.addEventListener("click", () => revokeDevice(this.#app, id));
      place.append(save, revoke);
    }
  }
}

/** @param {TaskRow} row */
function refusalOf(row) {
  return row.refusal && `${row.refusal.reason}: ${row.refusal.message}`;
}

/**
 * @param {DeviceRow | undefined} row
 * @param {DeviceInfo | undefined} device
 * @param {string} how
 */
function about(row, device, how) {
  if (device?.state === "revoked") {
    return `Revoked at ${moment(device.revoked_at)}, last seen at ${moment(device.seen_at)}.`;
  }
  if (!row) {
    return "";
  }
  const what = [row.class ?? "Device", row.engine].filter(Boolean).join(", ");
  return `${what}. Seen ${ago(row.seen_at, clock.now())}, ${how} since ${moment(row.since)}.`;
}

/**
 * @param {DeviceRow} row
 * @returns {[name: string, value: string, note: string][]}
 */
function figuresOf(row) {
  return [
    against("Step time", seconds, row.step_seconds, row.predicted_step_seconds),
    ["Round time", seconds(row.round_seconds), "the whole task, loading included"],
    against("Peak memory", size, row.peak_bytes, row.predicted_peak_bytes),
    against(row.energy_label ? `Energy, ${row.energy_label}` : "Energy", joules, row.joules, row.predicted_joules),
    ["Part of the model", share(row.kept), `kept; ${share(row.trained)} trained${row.rung ? `; rung ${row.rung}` : ""}`],
    ["Own accuracy", share(row.accuracy), `loss ${ordinary(row.loss)}; ${plural(row.samples ?? 0, "sample")}`],
    ["Traffic of a task", size(row.up_bytes), `up; ${size(row.down_bytes)} down`],
    ["Tasks done", count(row.done), `${count(row.failed)} failed`],
  ];
}

/**
 * A measured value beside the predicted one.
 * @param {string} name
 * @param {Say} say
 * @param {Maybe} value
 * @param {Maybe} predicted
 * @returns {[name: string, value: string, note: string]}
 */
function against(name, say, value, predicted) {
  const ratio = ratioOf(value, predicted);
  if (ratio === null) {
    return [name, say(value), comparison(say, value, predicted) === null ? "not measured yet" : "nothing predicted"];
  }
  const mark = ratio > BEYOND ? "▲ " : "";
  return [name, `${mark}${say(value)}`, `${times(ratio)} of predicted (${say(predicted)})`];
}

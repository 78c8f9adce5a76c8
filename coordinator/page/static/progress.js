/* The latest round: a bar and counts of how far its devices are, and how long it stays open. */

import * as clock from "./clock.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { ago, count, moment, wholeSeconds } from "./formatting.js";

/**
 * In the order of the bar: first what is done, last what is lost.
 * @type {[name: ProgressPart, title: string][]}
 */
const PARTS = [
  ["arrived", "Arrived"],
  ["uploading", "Uploading"],
  ["training", "Training"],
  ["waiting", "Asked"],
  ["late", "Late"],
  ["refused", "Refused"],
  ["missing", "Missing"],
];

export class Progress {
  /** @type {Map<ProgressPart, HTMLElement>} */
  #segments = new Map();
  /** @type {Map<ProgressPart | "selected", HTMLElement>} */
  #numbers = new Map();
  /** @type {ProgressInfo & {paused: boolean} | null} */
  #shown = null;

  constructor() {
    for (const [name] of PARTS) {
      const segment = element("div", { "data-part": name });
      this.#segments.set(name, segment);
      byId("progress-bar").append(segment);
    }
    /** @type {[name: ProgressPart | "selected", title: string][]} */
    const counts = [["selected", "Selected"], ...PARTS];
    for (const [name, title] of counts) {
      const number = element("dd", { "data-progress": name });
      this.#numbers.set(name, number);
      const swatch = name === "selected" ? [] : [element("span", { class: "dot", "data-part": name })];
      byId("progress-counts").append(element("div", {}, element("dt", {}, ...swatch, title), number));
    }
  }

  /**
   * @param {ProgressInfo} progress
   * @param {boolean} paused
   */
  show(progress, paused) {
    this.#shown = { ...progress, paused };
    for (const [name, number] of this.#numbers) {
      setText(number, count(progress[name]));
    }
    for (const [name, segment] of this.#segments) {
      segment.style.flexGrow = String(progress[name]);
      segment.hidden = progress[name] === 0;
    }
    // The personal round needs no updates.
    const wanted = progress.personal ? "" : ` of ${count(progress.wanted)}`;
    setText(byId("updates"), `${count(progress.arrived)}${wanted}`);
    setAttribute(byId("progress"), "data-state", progress.state);
    this.tick();
  }

  tick() {
    if (this.#shown === null) {
      return;
    }
    const { state, paused, opened_at: opened, deadline_at: deadline, closed_because: because } = this.#shown;
    const now = clock.now();
    setText(byId("opened"), ago(opened, now));
    setAttribute(byId("opened"), "title", moment(opened));
    if (state !== "open") {
      setText(byId("countdown-label"), "Closed");
      setText(byId("countdown"), because ?? (state === "closed" ? "updates are combined" : "done"));
    } else {
      const left = deadline - now;
      setText(byId("countdown-label"), left > 0 ? "Closes in" : "Deadline");
      const over = paused ? "over; waits to be resumed" : "over, closing";
      setText(byId("countdown"), left > 0 ? wholeSeconds(Math.ceil(left)) : over);
    }
    setAttribute(byId("countdown"), "title", `Deadline: ${moment(deadline)}`);
  }
}

/* The latest round as a bar of who is where, in numbers, and how long it stays open. */

import * as clock from "./clock.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { ago, count, moment, wholeSeconds } from "./words.js";

/* In the order of the bar: what is done first, what is lost last. */
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
  #segments = new Map();
  #numbers = new Map();
  #shown = null;

  constructor() {
    for (const [name] of PARTS) {
      const segment = element("div", { "data-part": name });
      this.#segments.set(name, segment);
      byId("progress-bar").append(segment);
    }
    for (const [name, title] of [["selected", "Selected"], ...PARTS]) {
      const number = element("dd", { "data-progress": name });
      this.#numbers.set(name, number);
      const swatch = name === "selected" ? [] : [element("span", { class: "dot", "data-part": name })];
      byId("progress-counts").append(element("div", {}, element("dt", {}, ...swatch, title), number));
    }
  }

  show(progress, paused) {
    this.#shown = { ...progress, paused };
    for (const [name, number] of this.#numbers) {
      setText(number, count(progress[name]));
    }
    for (const [name, segment] of this.#segments) {
      segment.style.flexGrow = String(progress[name]);
      segment.hidden = progress[name] === 0;
    }
    // The round in which devices make the model their own wants nobody's update.
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

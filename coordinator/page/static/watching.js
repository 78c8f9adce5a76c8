/* Whether the page is up to date. When the coordinator falls silent, the page says since when, dims what it shows, and
 * stops its clock. */

import * as clock from "./clock.js";
import { byId, setAttribute, setText } from "./dom.js";
import { moment, plural } from "./formatting.js";

export class Watching {
  stale = false;
  /** @type {number | null} */
  #next = null;

  /** @param {() => void} tryNow */
  constructor(tryNow) {
    byId("try-now").addEventListener("click", tryNow);
  }

  begin() {
    this.#show("connecting", "Connecting", null);
  }

  live() {
    this.#show("live", "Live", null);
  }

  /** @param {number | null} since in ms since 1970, or null if the coordinator never answered */
  silent(since) {
    clock.stop();
    const when = since === null ? null : moment(since / 1000);
    const says = when === null
      ? "The coordinator does not answer."
      : `Not live: the coordinator was last heard at ${when}. What is shown is as it was then.`;
    this.#show("stale", when === null ? "No answer" : `Stale since ${when}`, says);
  }

  /** @param {number | null} at when the next attempt will be, in ms since 1970; null while one is under way */
  trying(at) {
    this.#next = at;
    this.tick();
  }

  tick() {
    if (!this.stale) {
      return;
    }
    const left = this.#next === null ? 0 : Math.ceil((this.#next - Date.now()) / 1000);
    setText(byId("banner-next"), left > 0 ? `Trying again in ${plural(left, "second")}.` : "Trying now.");
  }

  /**
   * @param {string} state
   * @param {string} words
   * @param {string | null} banner
   */
  #show(state, words, banner) {
    this.stale = state === "stale";
    setAttribute(byId("live"), "data-state", state);
    setText(byId("live"), words);
    byId("banner").hidden = banner === null;
    setText(byId("banner-text"), banner ?? "");
    document.body.dataset.live = state; // page.css dims what is out of date
    this.tick();
  }
}

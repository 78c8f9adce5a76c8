/* Whether what is shown is so now. When the coordinator is not heard any more, the page says since when, dims what it
 * shows, and lets its clock stand still. */

import * as clock from "./clock.js";
import { byId, setAttribute, setText } from "./dom.js";
import { moment, plural } from "./words.js";

export class Watching {
  stale = false;
  #next = null;

  constructor(tryNow) {
    byId("try-now").addEventListener("click", tryNow);
  }

  begin() {
    this.#show("connecting", "Connecting", null);
  }

  live() {
    this.#show("live", "Live", null);
  }

  /* `since` in ms since 1970, or null if the coordinator was never heard. */
  silent(since) {
    clock.stop();
    const when = since === null ? null : moment(since / 1000);
    const says = when === null
      ? "The coordinator does not answer."
      : `Not live: the coordinator was last heard at ${when}. What is shown is as it was then.`;
    this.#show("stale", when === null ? "No answer" : `Stale since ${when}`, says);
  }

  /* When the next try will be, in ms since 1970; null while one is under way. */
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

  #show(state, words, banner) {
    this.stale = state === "stale";
    setAttribute(byId("live"), "data-state", state);
    setText(byId("live"), words);
    byId("banner").hidden = banner === null;
    setText(byId("banner-text"), banner ?? "");
    document.body.dataset.live = state; // what is old looks old: see page.css
    this.tick();
  }
}

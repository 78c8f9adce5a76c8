/* The top of the page: which federation, its state, and what can be done with it. */

import { actionsFor } from "./actions.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { roundTitle } from "./rounds.js";
import { count, plural, share } from "./formatting.js";

/**
 * @param {FederationInfo} federation
 * @returns {string}
 */
function accuracyText({ accuracy, judged_fraction: judged }) {
  if (accuracy === null) {
    return "Accuracy not known yet";
  }
  const part = judged === null || judged >= 1 ? "" : ` with ${share(judged)} of its parameters`;
  return `Accuracy ${share(accuracy)}${part}`;
}

export class Header {
  #app;
  #names = "";
  #offered = "";
  #quiet = 0;

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
    byId("menu-button").addEventListener("click", () => this.#menu(Boolean(byId("menu-list").hidden)));
    byId("sign-out").addEventListener("click", () => app.signOut());
    document.addEventListener("click", (event) => {
      if (!byId("menu").contains(/** @type {Node} */ (event.target))) {
        this.#menu(false);
      }
    });
    byId("menu").addEventListener("keydown", (event) => this.#key(event));
    byId("menu").addEventListener("focusout", (event) => {
      const next = /** @type {Node | null} */ (event.relatedTarget);
      if (next && !byId("menu").contains(next)) {
        this.#menu(false);
      }
    });
  }

  /**
   * Shows the federation's name, or a chooser if there are several.
   * @param {string[]} names
   * @param {string} chosen
   */
  setNames(names, chosen) {
    const place = byId("federation-name");
    const now = [...names, chosen].join("\n");
    if (now === this.#names) {
      return;
    }
    this.#names = now;
    if (names.length < 2) {
      place.replaceChildren(chosen);
      return;
    }
    const chooser = element("select", { id: "chooser", "aria-label": "Federation" });
    chooser.append(...names.map((name) => element("option", { value: name, selected: name === chosen }, name)));
    chooser.addEventListener("change", () => this.#app.turnTo(chooser.value));
    place.replaceChildren(chooser);
  }

  update() {
    const { federation, progress, devices, known } = this.#app.standing;
    byId("facts").hidden = !known;
    byId("federation-state").hidden = !known;
    byId("menu").hidden = !known || this.#app.role !== "admin";
    byId("reason").hidden = !federation?.reason;
    if (federation === null) {
      return;
    }
    setText(byId("federation-state"), federation.state);
    setAttribute(byId("federation-state"), "data-state", federation.state);
    setText(byId("reason"), federation.reason ?? "");
    const gone = devices.counts.gone ?? 0;
    const { rounds } = federation;
    const facts = {
      round: progress === null ? `No round yet of ${count(rounds)}` : roundTitle(progress, rounds),
      devices: `${plural(devices.size - gone, "device")} there, ${count(gone)} gone`,
      accuracy: accuracyText(federation),
      method: `${federation.strategy}, ${federation.model}`,
    };
    for (const [name, text] of Object.entries(facts)) {
      byId("facts").querySelectorAll(`[data-fact=${name}]`).forEach((place) => setText(place, text));
    }
    this.#offer(federation);
  }

  /**
   * Shows a message for a while, such as that an action is done.
   * @param {string} text
   */
  say(text) {
    const place = byId("said");
    place.hidden = false;
    setText(place, text);
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      place.hidden = true;
      setText(place, "");
    }, 8000);
  }

  /** @param {FederationInfo} federation */
  #offer(federation) {
    const now = `${federation.name}\n${federation.state}`;
    if (now === this.#offered) {
      return; // the menu may be open
    }
    this.#offered = now;
    byId("menu-list").replaceChildren(
      ...actionsFor(this.#app, federation).map(([name, words, press]) => {
        const button = element("button", { type: "button", "data-action": name }, words);
        button.addEventListener("click", () => {
          this.#menu(false);
          byId("menu-button").focus(); // where the focus comes back to when the dialog closes
          press();
        });
        return element("li", {}, button);
      }),
    );
  }

  /** @param {boolean} open */
  #menu(open) {
    byId("menu-list").hidden = !open;
    setAttribute(byId("menu-button"), "aria-expanded", String(open));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const list = byId("menu-list");
    if (event.key === "Escape" && !list.hidden) {
      this.#menu(false);
      byId("menu-button").focus();
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.#menu(true);
      const buttons = [...list.querySelectorAll("button")];
      const from = buttons.findIndex((button) => button === document.activeElement);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const place = from < 0 ? (step > 0 ? 0 : buttons.length - 1) : (from + step + buttons.length) % buttons.length;
      buttons[place].focus();
    }
  }
}

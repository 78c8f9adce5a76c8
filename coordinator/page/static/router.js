/* Which view is shown: the part of the address after '#/'. */

import { byId, setAttribute } from "./dom.js";

const FIRST = "fleet";

export class Router {
  #views;
  #app;
  /** @type {string | null} */
  #name = null;
  /** @type {string | null} */
  #argument = null;

  /**
   * @param {App} app
   * @param {Record<string, View>} views
   */
  constructor(app, views) {
    this.#app = app;
    this.#views = views;
    window.addEventListener("hashchange", () => this.#app.ready && this.#changed(true));
    // The hash is the address of the view, so this link cannot move the focus as usual.
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      byId("content").focus();
    });
  }

  get view() {
    return this.#name === null ? null : this.#views[this.#name];
  }

  /** @param {string} name */
  go(name) {
    location.hash = `#/${name}`;
  }

  /** Shows the view that the address names. */
  start() {
    this.stop();
    this.#changed(false);
  }

  stop() {
    this.view?.close();
    for (const name of Object.keys(this.#views)) {
      byId(`view-${name}`).hidden = true;
    }
    this.#name = null;
    this.#argument = null;
  }

  /** Writes the title of the tab: it tells an operator with many tabs whether this one is still live. */
  title() {
    const parts = [this.view?.title, this.#app.standing?.name, "EdgeFL"].filter(Boolean);
    const title = `${this.#app.stale ? "Not live: " : ""}${parts.join(" · ")}`;
    if (document.title !== title) {
      document.title = title;
    }
  }

  /** @param {boolean} byReader */
  #changed(byReader) {
    const [name, argument] = parsed(location.hash, this.#views, this.#app.role);
    if (name === this.#name && argument === this.#argument) {
      return;
    }
    if (name !== this.#name) {
      this.stop();
    }
    this.#name = name;
    this.#argument = argument;
    byId(`view-${name}`).hidden = false;
    for (const link of document.querySelectorAll("nav a")) {
      const view = link.getAttribute("data-view");
      const here = view === name || (name === "device" && view === "fleet");
      setAttribute(link, "aria-current", here ? (name === "device" ? "true" : "page") : null);
    }
    const view = this.#views[name];
    view.open(argument);
    this.title();
    if (byReader) {
      window.scrollTo(0, 0);
      view.heading.focus({ preventScroll: true });
    }
  }
}

/**
 * @param {string} hash
 * @param {Record<string, View>} views
 * @param {string | null} role
 * @returns {[name: string, argument: string | null]}
 */
function parsed(hash, views, role) {
  const [, name, ...rest] = hash.split("/");
  if (!Object.hasOwn(views, name ?? "") || (name === "keys" && role !== "admin")) {
    return [FIRST, null];
  }
  if (name !== "device") {
    return [name, null];
  }
  return rest.length ? [name, decoded(rest.join("/"))] : [FIRST, null];
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

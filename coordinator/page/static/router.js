/* Which view is on show: the part of the address after '#/'. */

import { byId, setAttribute } from "./dom.js";

const FIRST = "fleet";

export class Router {
  #views;
  #app;
  #name = null;
  #argument = null;

  constructor(app, views) {
    this.#app = app;
    this.#views = views;
    window.addEventListener("hashchange", () => this.#app.ready && this.#changed(true));
    // The address of the view is in the hash, so this link moves the focus by itself.
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      byId("content").focus();
    });
  }

  get view() {
    return this.#name === null ? null : this.#views[this.#name];
  }

  go(name) {
    location.hash = `#/${name}`;
  }

  /* Shows the view that the address names. */
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

  /* The title of the tab: an operator with many of them sees there whether this one is still live. */
  title() {
    const parts = [this.view?.title, this.#app.standing?.name, "EdgeFL"].filter(Boolean);
    const title = `${this.#app.stale ? "Not live: " : ""}${parts.join(" · ")}`;
    if (document.title !== title) {
      document.title = title;
    }
  }

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
      const here = link.dataset.view === name || (name === "device" && link.dataset.view === "fleet");
      setAttribute(link, "aria-current", here ? (name === "device" ? "true" : "page") : null);
    }
    this.view.open(argument);
    this.title();
    if (byReader) {
      window.scrollTo(0, 0);
      this.view.heading.focus({ preventScroll: true });
    }
  }
}

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

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

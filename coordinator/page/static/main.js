/* Puts the page together: session, federation, stream, views. The imported modules do the work; this one connects
 * them. */

import { Problem, ask, federationPath, statusOf } from "./api.js";
import * as clock from "./clock.js";
import { DeviceView } from "./device.js";
import { closeDialog } from "./dialogs.js";
import { byId, setText } from "./dom.js";
import { useLibrary } from "./figures.js";
import { FleetView } from "./fleet.js";
import { Header } from "./header.js";
import { KeysView } from "./keys.js";
import { Live } from "./live.js";
import { MasksView } from "./masks.js";
import { Router } from "./router.js";
import { RoundsView } from "./rounds.js";
import { Session, showScreen } from "./session.js";
import { Standing } from "./standing.js";
import { Watching } from "./watching.js";

const CHOSEN = "edgefl-federation";
const LOOK_AGAIN = 5000; // ms, while there is no federation
const LOOK_FOR_MORE = 60_000; // ms, while one is shown

/** @implements {App} */
class Page {
  standing = new Standing(null);
  ready = false;
  /** @type {Live | null} */
  #live = null;
  #looking = 0;
  #session = new Session((session) => this.#begin(session));
  #watching = new Watching(() => this.#live?.tryNow());
  #header = new Header(this);
  #views = {
    fleet: new FleetView(this),
    rounds: new RoundsView(this),
    masks: new MasksView(this),
    device: new DeviceView(this),
    keys: new KeysView(this),
  };
  #router = new Router(this, this.#views);

  constructor() {
    setInterval(() => this.#tick(), 1000);
    window.addEventListener("online", () => this.#live?.tryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.#live?.tryNow());
    byId("none-sign-out").addEventListener("click", () => this.signOut());
    this.#session.start();
  }

  get role() {
    return this.#session.role;
  }

  get stale() {
    return this.#watching.stale;
  }

  /* What views and actions ask of the page */

  /** @param {string} view */
  go(view) {
    this.#router.go(view);
  }

  /**
   * Takes the state of the federation from the answer to an action, without waiting for the stream.
   * @param {FederationInfo} federation
   */
  learn(federation) {
    if (federation.name === this.standing.name) {
      this.#hear("change", { now: clock.now(), federation });
    }
  }

  /** @param {string} text */
  say(text) {
    this.#header.say(text);
  }

  /** @param {unknown} [problem] */
  signOut(problem = null) {
    this.#leave();
    this.#session.end(problem);
  }

  /**
   * Handles the errors that are the same for every view: no answer, which the banner shows, or a token that is no
   * longer valid. Returns whether it handled the error.
   * @param {unknown} error
   */
  failed(error) {
    if (!(error instanceof Problem)) {
      throw error;
    }
    if (error.status === 401) {
      this.signOut(error);
    }
    return error.status === 401 || error.status === 0;
  }

  /**
   * Shows another federation, and its fleet instead of a device of this one.
   * @param {string} name
   */
  turnTo(name) {
    if (location.hash.startsWith("#/device/")) {
      history.replaceState(null, "", "#/fleet");
    }
    this.choose(name);
  }

  /** @param {string} name */
  choose(name) {
    this.#live?.close();
    sessionStorage.setItem(CHOSEN, name);
    this.standing = new Standing(name);
    Object.values(this.#views).forEach((view) => view.reset());
    this.#watching.begin();
    this.#header.update();
    showScreen(null);
    this.ready = false;
    this.#router.stop();
    this.#live = new Live(federationPath(name, "live"), {
      hear: (kind, data) => this.#hear(kind, data),
      live: () => this.#watching.live(),
      stale: (since) => this.#wentStale(since),
      trying: (at) => this.#watching.trying(at),
      refused: (problem) => this.#refused(problem),
    });
  }

  /* Beginning and end */

  /** @param {SessionInfo} session */
  async #begin(session) {
    useLibrary(session);
    document.body.dataset.role = session.role;
    const role = session.role === "admin" ? "" : "You look as a viewer: you can change nothing. ";
    setText(byId("version"), `EdgeFL ${session.version}. ${role}This page asks no other host for anything.`);
    for (const one of document.querySelectorAll("[data-view=keys], [data-admin]")) {
      if (one.parentElement !== null) {
        one.parentElement.hidden = session.role !== "admin";
      }
    }
    await this.#look();
  }

  /** Asks which federations there are, now and from time to time. */
  async #look() {
    clearTimeout(this.#looking);
    /** @type {{federations: FederationInfo[]}} */
    const { federations } = await ask("/v1/federations");
    const names = federations.map((one) => one.name);
    if (names.length === 0) {
      this.#leave();
      showScreen("none");
      document.title = "No federation yet · EdgeFL";
    } else {
      const liked = [this.standing.name, sessionStorage.getItem(CHOSEN), firstOf(federations)];
      const chosen = liked.find((name) => name !== null && names.includes(name)) ?? names[0];
      this.#header.setNames(names, chosen);
      if (chosen !== this.standing.name) {
        this.choose(chosen);
      }
    }
    this.#lookAgain(names.length === 0 ? LOOK_AGAIN : LOOK_FOR_MORE);
  }

  /** @param {number} wait in ms */
  #lookAgain(wait) {
    clearTimeout(this.#looking);
    this.#looking = setTimeout(() => {
      this.#look().catch((error) => {
        if (statusOf(error) === 401) {
          this.signOut(error);
        } else {
          this.#lookAgain(LOOK_AGAIN);
        }
      });
    }, wait);
  }

  #leave() {
    delete document.body.dataset.live;
    clearTimeout(this.#looking);
    this.#live?.close();
    this.#live = null;
    this.ready = false;
    this.#router.stop();
    this.standing = new Standing(null);
    Object.values(this.#views).forEach((view) => view.reset()); // nothing of it stays in the document
    closeDialog();
  }

  /* The stream */

  /**
   * @param {string} kind
   * @param {LiveData} data
   */
  #hear(kind, data) {
    clock.heard(data.now);
    const news = this.standing.take(kind, data);
    if (news.size === 0) {
      return;
    }
    this.#header.update();
    if (this.ready) {
      this.#router.view?.update(news);
    } else if (this.standing.known) {
      this.ready = true;
      this.#router.start();
    }
    this.#router.title();
  }

  /** @param {number | null} since */
  #wentStale(since) {
    this.#watching.silent(since);
    this.#router.title();
  }

  /**
   * The token is no longer valid, or the federation does not exist: the session finds out which.
   * @param {Problem} problem
   */
  #refused(problem) {
    if (problem.refused) {
      this.signOut(problem);
      return;
    }
    this.#leave();
    this.#session.start();
  }

  #tick() {
    this.#watching.tick();
    if (this.ready && !document.hidden && !this.stale) {
      this.#router.view?.tick();
    }
  }
}

/**
 * The federation to begin with: one that runs, or the newest.
 * @param {FederationInfo[]} federations
 */
function firstOf(federations) {
  const newest = [...federations].sort((one, other) => other.created_at - one.created_at);
  return (newest.find((one) => one.state === "running") ?? newest[0]).name;
}

new Page();

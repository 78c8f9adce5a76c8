/* The session: asks for a token once, and knows what it allows. */

import { Problem, ask, hasToken, keepToken } from "./api.js";
import { byId, find, setText, showProblem } from "./dom.js";

const SCREENS = ["wait", "sign-in", "none"];
const AGAIN = 3000; // ms

/**
 * Shows one of the screens that stand alone, or the federation (null).
 * @param {string | null} name
 */
export function showScreen(name) {
  for (const one of SCREENS) {
    byId(`screen-${one}`).hidden = one !== name;
  }
  byId("top").hidden = name !== null;
  byId("foot").hidden = name !== null;
  document.body.dataset.screen = name ?? "federation";
}

export class Session {
  /** @type {SessionInfo["role"] | null} */
  role = null;
  #begun;
  #retry = 0;

  /** @param {(session: SessionInfo) => Promise<void>} begun called once the token is known to be valid */
  constructor(begun) {
    this.#begun = begun;
    byId("sign-in").addEventListener("submit", (event) => this.#submitted(event));
  }

  /** Continues with the token that was kept, or asks for one. */
  async start() {
    if (!hasToken()) {
      this.askFor(null);
      return;
    }
    showScreen("wait");
    try {
      await this.#check();
    } catch (error) {
      if (error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500)) {
        setText(byId("wait-text"), `${error.message} It is asked again every few seconds.`);
        this.#retry = setTimeout(() => this.start(), AGAIN);
      } else {
        this.end(error);
      }
    }
  }

  /**
   * Forgets the token, and asks for one.
   * @param {unknown} [problem] the reason
   */
  end(problem = null) {
    keepToken(null);
    this.role = null;
    this.askFor(problem);
  }

  /** @param {unknown} problem */
  askFor(problem) {
    clearTimeout(this.#retry);
    showScreen("sign-in");
    document.title = "Sign in · EdgeFL";
    showProblem(byId("sign-in-problem"), problem);
    byId("token").value = "";
    byId("token").focus();
  }

  async #check() {
    /** @type {SessionInfo} */
    const session = await ask("/v1/session");
    this.role = session.role;
    await this.#begun(session);
  }

  /** @param {Event} event */
  async #submitted(event) {
    event.preventDefault();
    const button = find(byId("sign-in"), "button");
    const token = byId("token").value.trim();
    // A header cannot carry other characters, and no token has them.
    keepToken(/^[\x21-\x7e]+$/.test(token) ? token : "-");
    button.disabled = true;
    try {
      await this.#check();
      showProblem(byId("sign-in-problem"), null);
      byId("token").value = "";
    } catch (error) {
      keepToken(null);
      showProblem(byId("sign-in-problem"), error);
      byId("token").select();
    } finally {
      button.disabled = false;
    }
  }
}

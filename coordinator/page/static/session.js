/* Who looks: asks for a token once, and tells what it is good for. */

import { ask, hasToken, keepToken } from "./api.js";
import { byId, setText, showProblem } from "./dom.js";

const SCREENS = ["wait", "sign-in", "none"];
const AGAIN = 3000; // ms

/* Shows one of the screens that stand alone, or the federation (null). */
export function showScreen(name) {
  for (const one of SCREENS) {
    byId(`screen-${one}`).hidden = one !== name;
  }
  byId("top").hidden = name !== null;
  byId("foot").hidden = name !== null;
  document.body.dataset.screen = name ?? "federation";
}

export class Session {
  role = null;
  #begun;
  #retry = 0;

  /* `begun(session)` is called once the token is known to be good. */
  constructor(begun) {
    this.#begun = begun;
    byId("sign-in").addEventListener("submit", (event) => this.#submitted(event));
  }

  /* Goes on with the token that is kept, or asks for one. */
  async start() {
    if (!hasToken()) {
      this.askFor(null);
      return;
    }
    showScreen("wait");
    try {
      await this.#check();
    } catch (error) {
      if (error.status === 0 || error.status === 429 || error.status >= 500) {
        setText(byId("wait-text"), `${error.message} It is asked again every few seconds.`);
        this.#retry = setTimeout(() => this.start(), AGAIN);
      } else {
        this.end(error);
      }
    }
  }

  /* Forgets the token, and asks for one; `problem` says why. */
  end(problem = null) {
    keepToken(null);
    this.role = null;
    this.askFor(problem);
  }

  askFor(problem) {
    clearTimeout(this.#retry);
    showScreen("sign-in");
    document.title = "Sign in · EdgeFL";
    showProblem(byId("sign-in-problem"), problem);
    byId("token").value = "";
    byId("token").focus();
  }

  async #check() {
    const session = await ask("/v1/session");
    this.role = session.role;
    await this.#begun(session);
  }

  async #submitted(event) {
    event.preventDefault();
    const button = byId("sign-in").querySelector("button");
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

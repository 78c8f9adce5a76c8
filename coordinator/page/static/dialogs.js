/* The dialog for everything that an operator confirms: it says what will happen, does it, and stays open with the
 * reason if that fails. Escape and Cancel close it, and the focus returns to where it was. */

import { byId, element, showProblem } from "./dom.js";
import { Problem } from "./api.js";

/**
 * @typedef {object} Question
 * @property {string} name marks the dialog
 * @property {string} title
 * @property {string[]} says paragraphs
 * @property {Node[]} [fields] elements of the form
 * @property {string} [verb] the text of the button
 * @property {boolean} [danger] whether it cannot be undone
 * @property {() => boolean} [ready] whether it can be confirmed now
 * @property {(() => Promise<void>) | null} [go] does it; without it the only button closes the dialog
 */

const dialog = byId("dialog");
/** @type {{ready: () => boolean, go: (() => Promise<void>) | null} | null} */
let current = null;

/** @param {Question} question */
export function confirm({ name, title, says, fields = [], verb, danger = false, ready = () => true, go = null }) {
  current = { ready, go };
  dialog.dataset.confirm = name;
  byId("dialog-heading").textContent = title;
  byId("dialog-says").replaceChildren(...says.map((text) => element("p", {}, text)));
  byId("dialog-fields").replaceChildren(...fields);
  showProblem(byId("dialog-problem"), null);
  const button = byId("dialog-go");
  button.hidden = go === null;
  button.textContent = verb ?? "";
  button.className = danger ? "danger" : "strong";
  byId("dialog-cancel").textContent = go === null ? "Close" : "Cancel";
  check();
  dialog.showModal();
  // Enter must not confirm by accident what cannot be undone.
  /** @type {HTMLElement | null} */
  const first = byId("dialog-fields").querySelector("input, select, button");
  (first ?? (danger || go === null ? byId("dialog-cancel") : button)).focus();
}

function check() {
  byId("dialog-go").disabled = current === null || !current.ready();
}

/** @param {Event} event */
async function submitted(event) {
  event.preventDefault();
  const mine = current;
  if (mine === null || mine.go === null || !mine.ready() || dialog.dataset.busy) {
    return;
  }
  dialog.dataset.busy = "true";
  byId("dialog-go").disabled = true;
  try {
    await mine.go();
    if (current === mine) {
      dialog.close();
    }
  } catch (error) {
    if (current === mine) {
      problemInDialog(error instanceof Problem ? error : new Problem(0, "The page failed at this.", ""));
    }
  } finally {
    delete dialog.dataset.busy;
    check();
  }
}

/** @param {Problem} error */
export function problemInDialog(error) {
  showProblem(byId("dialog-problem"), error);
}

export function closeDialog() {
  dialog.close();
}

byId("dialog-form").addEventListener("submit", submitted);
byId("dialog-form").addEventListener("input", check);
byId("dialog-cancel").addEventListener("click", closeDialog);
dialog.addEventListener("close", () => {
  current = null;
  byId("dialog-fields").replaceChildren();
});

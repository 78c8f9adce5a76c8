/* One dialog for everything that an operator confirms: it says what will happen, does it, and stays open with the
 * reason if that fails. Escape and Cancel close it, and the focus goes back to where it was. */

import { byId, element, showProblem } from "./dom.js";
import { Problem } from "./api.js";

const dialog = byId("dialog");
let current = null;

/* `name` marks the dialog; `says` are paragraphs; `fields` are elements of the form; `ready()` tells whether it can be
 * confirmed; `go()` does it. Without `go` there is only a button that closes. */
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
  // What cannot be undone is not where Enter falls by itself.
  const first = byId("dialog-fields").querySelector("input, select, button");
  (first ?? (danger || go === null ? byId("dialog-cancel") : button)).focus();
}

function check() {
  byId("dialog-go").disabled = current === null || !current.ready();
}

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

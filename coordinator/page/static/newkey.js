/* A new join key, which the coordinator shows only once: its pairing code, the command for a device, and the key. */

import { byId, element } from "./dom.js";

const ONCE = "Whoever has it can join until it is used up, over or revoked. It cannot be shown again.";

/**
 * @param {HTMLElement} place
 * @param {NewKeyInfo} made
 */
export function showNewKey(place, made) {
  const done = element("button", { type: "button", id: "key-hide" }, "I have it, hide it");
  done.addEventListener("click", () => {
    place.replaceChildren();
    byId("key-label").focus();
  });
  const heading = element("h3", { tabindex: "-1" }, "The new key, shown this once");
  place.replaceChildren(
    element(
      "div",
      { class: "panel made" },
      element(
        "div",
        {},
        heading,
        copied("Scan the code, or open this on the device", "pairing-uri", made.uri),
        copied("Or run this on the device, with --data for its samples", "join-line", made.join),
        copied("Or the key alone", "new-key", made.key),
        element("p", { class: "hint" }, ONCE),
        done,
      ),
      ...pictures(made),
    ),
  );
  heading.focus();
}

/** @param {NewKeyInfo} made */
function pictures(made) {
  return [
    ...picture("qr", made.qr, "For any device", "The pairing code of this key, as a QR code"),
    ...picture("app-qr", made.app_qr, "For the Android app", "The same for the Android app, as a QR code"),
  ];
}

/**
 * @param {string} id
 * @param {string | null} code
 * @param {string} title
 * @param {string} alt
 */
function picture(id, code, title, alt) {
  if (!code) {
    return [];
  }
  const source = `data:image/svg+xml,${encodeURIComponent(code)}`;
  const image = element("img", { id, src: source, alt, width: "240", height: "240" });
  return [element("figure", { class: "code" }, image, element("figcaption", {}, title))];
}

/**
 * Makes a text with a button that copies it.
 * @param {string} title
 * @param {string} id
 * @param {string} text
 */
function copied(title, id, text) {
  const shown = element("code", { id }, text);
  const button = element("button", { type: "button", "data-copy": id }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copy(shown, text)) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => (button.textContent = "Copy"), 3000);
  });
  return element("div", { class: "copied" }, element("span", {}, title), shown, button);
}

/**
 * Copies a text. A page over plain HTTP has no clipboard: then it selects the text, for the reader to copy.
 * @param {Node} shown
 * @param {string} text
 */
async function copy(shown, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    window.getSelection()?.selectAllChildren(shown);
    return false;
  }
}

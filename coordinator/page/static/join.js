/* The page that a pairing code opens: a link that hands the code to the Android app. The code stays in this page: it is
   sent nowhere. */

import { byId } from "./dom.js";

const MOST_CHARACTERS = 2048;
/* One field of a pairing URI, as docs/protocol.md has it. */
const FIELD = /^[a-z][a-z0-9_]{0,31}=(?:[A-Za-z0-9._~:/!$'()*,;@?-]|%[0-9A-Fa-f]{2})+$/;
const KEY = /^key=edgefl-key-[A-Za-z0-9_-]{1,128}$/;

/**
 * Returns the form of a pairing URI that opens the app, or null if the address of this page is not a pairing URI.
 * @param {URL} address
 */
function appUri(address) {
  const fields = address.hash.slice(1).split("&");
  const page = address.origin + address.pathname;
  const valid =
    fields.every((field) => FIELD.test(field) && !field.startsWith("url=")) &&
    fields.some((field) => KEY.test(field));
  if (!valid || address.href.length > MOST_CHARACTERS || !page.endsWith("/join")) {
    return null;
  }
  const url = encodeURIComponent(page.slice(0, -"/join".length));
  return `edgefl://join?url=${url}&${fields.join("&")}`;
}

function show() {
  const uri = appUri(new URL(window.location.href));
  const link = byId("open-app");
  link.toggleAttribute("hidden", uri === null);
  byId("no-code").toggleAttribute("hidden", uri !== null);
  link.setAttribute("href", uri ?? "");
}

window.addEventListener("hashchange", show);
show();

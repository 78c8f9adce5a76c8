/* Join keys: make one, list them, revoke them. */

import { Problem, ask, federationPath, statusOf } from "./api.js";
import { revokeKey } from "./actions.js";
import * as clock from "./clock.js";
import { of, plain, state } from "./columns.js";
import { byId, element, find, later, showProblem } from "./dom.js";
import { VirtualTable } from "./virtual_table.js";
import { showNewKey } from "./newkey.js";
import { count, moment } from "./formatting.js";

/** @type {Column<KeyRow>[]} */
const COLUMNS = [
  plain("label", "Label", 200, (/** @type {string} */ label) => label || "no label", of("label")),
  state(96),
  { name: "uses", title: "Devices", width: 110, number: true, value: (row) => row.uses, text: usesOf },
  plain("created_at", "Made", 170, moment, of("created_at")),
  plain("expires_at", "Good until", 170, goodUntil, of("expires_at")),
  plain("id", "Id", 170, String, of("id")),
  {
    name: "revoke",
    title: "Revoke",
    width: 90,
    unsorted: true,
    value: () => null,
    make: () => [element("button", { type: "button", class: "small", "data-action": "revoke-key" }, "Revoke")],
    fill(cell, row) {
      const button = find(cell, "button");
      button.hidden = row.state === "revoked";
      button.setAttribute("aria-label", `Revoke the key ${row.label || row.id}`);
    },
  },
];

export class KeysView {
  title = "Join keys";
  heading = byId("keys-heading");
  #app;
  #isOpen = false;
  /** @type {Map<string, KeyRow>} */
  #keys = new Map();
  #refetch = later(() => this.#fetch(), 2000);
  #table = new VirtualTable(byId("keys"), {
    columns: COLUMNS,
    key: (row) => row.id,
    attribute: "data-key",
    sort: { column: "created_at", descending: true },
    label: "Join keys",
  });

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
    byId("key-form").addEventListener("submit", (event) => this.#make(event));
    byId("keys").addEventListener("click", (event) => {
      const pressed = /** @type {Element} */ (event.target).closest("[data-action=revoke-key]");
      const key = this.#keys.get(pressed?.closest("tr")?.dataset.key ?? "");
      if (key) {
        revokeKey(this.#app, key, () => this.#fetch());
      }
    });
  }

  open() {
    this.#isOpen = true;
    this.#fetch();
  }

  /**
   * A device that joins uses a key.
   * @param {Set<string>} news
   */
  update(news) {
    if (news.has("federation")) {
      this.#refetch();
    }
  }

  tick() {}

  close() {
    this.#isOpen = false;
    byId("key-made").replaceChildren();
  }

  reset() {
    byId("key-made").replaceChildren();
  }

  /** @param {Event} event */
  async #make(event) {
    event.preventDefault();
    const { standing } = this.#app;
    const button = find(byId("key-form"), "button"); // the only one, which submits
    const uses = byId("key-uses").value;
    const expires = byId("key-expires").value;
    button.disabled = true;
    try {
      const body = {
        label: byId("key-label").value.trim(),
        most_uses: uses === "" ? null : Number(uses),
        expires_seconds: expires === "" ? null : Number(expires),
        address: location.origin,
      };
      /** @type {NewKeyInfo} */
      const made = await ask(federationPath(standing.name, "keys"), { method: "POST", body });
      showProblem(byId("key-problem"), null);
      byId("key-label").value = "";
      if (this.#isOpen && standing === this.#app.standing) {
        showNewKey(byId("key-made"), made);
      }
      await this.#fetch();
    } catch (error) {
      if (!this.#app.failed(error)) {
        showProblem(byId("key-problem"), error);
      } else if (statusOf(error) === 0) {
        const said = "No answer came, so it is not known whether a key was made.";
        showProblem(byId("key-problem"), new Problem(0, said, "If the list has one that you never saw, revoke it."));
      }
    } finally {
      button.disabled = false;
    }
  }

  async #fetch() {
    const { standing } = this.#app;
    if (!this.#isOpen || !standing.known) {
      return;
    }
    try {
      const { keys } = await ask(federationPath(standing.name, "keys"));
      if (this.#isOpen && standing === this.#app.standing) {
        showProblem(byId("keys-problem"), null);
        this.#show(keys);
      }
    } catch (error) {
      if (!this.#app.failed(error)) {
        showProblem(byId("keys-problem"), error);
      }
    }
  }

  /** @param {KeyInfo[]} keys */
  #show(keys) {
    this.#keys = new Map(keys.map((key) => [key.id, { ...key, state: stateOf(key) }]));
    byId("keys-none").hidden = keys.length > 0;
    byId("keys-scroll").hidden = keys.length === 0;
    this.#table.setRows([...this.#keys.values()]);
  }
}

/** @param {KeyInfo} key */
function stateOf(key) {
  if (key.revoked_at !== null) {
    return "revoked";
  }
  if (key.expires_at !== null && key.expires_at <= clock.now()) {
    return "expired";
  }
  return key.most_uses !== null && key.uses >= key.most_uses ? "used up" : "good";
}

/** @param {number | null} at */
function goodUntil(at) {
  return at === null ? "revoked" : moment(at);
}

/** @param {KeyInfo} key */
function usesOf(key) {
  return key.most_uses === null ? count(key.uses) : `${count(key.uses)} of ${count(key.most_uses)}`;
}

/* Join keys: make one, see which there are, revoke them. */

import { Problem, ask, federationPath } from "./api.js";
import { revokeKey } from "./actions.js";
import * as clock from "./clock.js";
import { plain, state } from "./columns.js";
import { byId, element, later, showProblem } from "./dom.js";
import { LongTable } from "./longtable.js";
import { showNewKey } from "./newkey.js";
import { count, moment } from "./words.js";

export class KeysView {
  title = "Join keys";
  heading = byId("keys-heading");
  #app;
  #isOpen = false;
  #keys = new Map();
  #refetch = later(() => this.#fetch(), 2000);
  #table = new LongTable(byId("keys"), {
    columns: this.#columns(),
    key: (row) => row.id,
    attribute: "data-key",
    sort: { column: "created_at", descending: true },
    label: "Join keys",
  });

  constructor(app) {
    this.#app = app;
    byId("key-form").addEventListener("submit", (event) => this.#make(event));
    byId("keys").addEventListener("click", (event) => {
      const line = event.target.closest("[data-action=revoke-key]")?.closest("tr");
      if (line) {
        revokeKey(this.#app, this.#keys.get(line.dataset.key), () => this.#fetch());
      }
    });
  }

  open() {
    this.#isOpen = true;
    this.#fetch();
  }

  /* A device that joins uses a key. */
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

  #columns() {
    return [
      plain("label", "Label", 200, (label) => label || "no label", (row) => row.label),
      state(96),
      { name: "uses", title: "Devices", width: 110, number: true, value: (row) => row.uses, text: usesOf },
      plain("created_at", "Made", 170, moment, (row) => row.created_at),
      plain("expires_at", "Good until", 170, (at) => (at === null ? "revoked" : moment(at)), (row) => row.expires_at),
      plain("id", "Id", 170, (id) => id, (row) => row.id),
      {
        name: "revoke",
        title: "Revoke",
        width: 90,
        unsorted: true,
        value: () => null,
        make: () => [element("button", { type: "button", class: "small", "data-action": "revoke-key" }, "Revoke")],
        fill(cell, row) {
          cell.firstChild.hidden = row.state === "revoked";
          cell.firstChild.setAttribute("aria-label", `Revoke the key ${row.label || row.id}`);
        },
      },
    ];
  }

  async #make(event) {
    event.preventDefault();
    const { standing } = this.#app;
    const button = byId("key-form").querySelector("[type=submit]");
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
      } else if (error.status === 0) {
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

  #show(keys) {
    this.#keys = new Map(keys.map((key) => [key.id, { ...key, state: stateOf(key) }]));
    byId("keys-none").hidden = keys.length > 0;
    byId("keys-scroll").hidden = keys.length === 0;
    this.#table.setRows([...this.#keys.values()]);
  }
}

function stateOf(key) {
  if (key.revoked_at !== null) {
    return "revoked";
  }
  if (key.expires_at !== null && key.expires_at <= clock.now()) {
    return "expired";
  }
  return key.most_uses !== null && key.uses >= key.most_uses ? "used up" : "good";
}

function usesOf(key) {
  return key.most_uses === null ? count(key.uses) : `${count(key.uses)} of ${count(key.most_uses)}`;
}

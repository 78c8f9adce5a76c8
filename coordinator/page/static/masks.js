/* Which part of the model each device trains, in the latest round. */

import { ask, federationPath } from "./api.js";
import { byId, element, later, setText, showProblem, tiles } from "./dom.js";
import { Figures } from "./figures.js";
import { plural, roundNumber } from "./formatting.js";

export class MasksView {
  title = "Masks";
  heading = byId("masks-heading");
  #app;
  #figures = new Figures(byId("masks-charts"));
  #isOpen = false;
  /** @type {number | null} */
  #round = null;
  #refetch = later(() => this.#fetch(), 400);

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
  }

  open() {
    this.#isOpen = true;
    this.#fetch();
  }

  /** @param {Set<string>} news */
  update(news) {
    const other = news.has("progress") && (this.#app.standing.progress?.round ?? null) !== this.#round;
    if (other || news.has("rounds")) {
      this.#refetch(); // the planner's figures come shortly after a round opens
    }
  }

  tick() {}

  close() {
    this.#isOpen = false;
    this.#figures.release();
  }

  reset() {
    this.#figures.release();
  }

  async #fetch() {
    const { standing } = this.#app;
    if (!this.#isOpen || !standing.known) {
      return;
    }
    this.#round = standing.progress?.round ?? null;
    try {
      /** @type {MasksInfo} */
      const masks = await ask(federationPath(standing.name, "masks"));
      if (this.#isOpen && standing === this.#app.standing) {
        showProblem(byId("masks-problem"), null);
        this.#show(masks);
      }
    } catch (error) {
      this.#round = null; // fetched again with the next news
      if (!this.#app.failed(error)) {
        showProblem(byId("masks-problem"), error);
      }
    }
  }

  /** @param {MasksInfo} masks */
  #show({ round, devices, plan, notes, charts }) {
    const none = round === null;
    setText(this.heading, none ? "Masks" : `Masks of round ${roundNumber(round)}`);
    setText(
      byId("masks-hint"),
      none
        ? "No round yet. When one opens, this shows which part of the model each device trains."
        : `Which part of the model each of ${plural(devices, "device")} trains.`,
    );
    tiles(byId("masks-plan"), plan);
    byId("masks-plan").hidden = plan.length === 0;
    byId("masks-notes").replaceChildren(...notes.map((note) => element("p", { class: "notice" }, note)));
    this.#figures.show(charts);
  }
}

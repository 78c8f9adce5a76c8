/* The rounds: the latest one live, curves over all of them, and a table. */

import { ask, federationPath } from "./api.js";
import { amount, plain, state, words } from "./columns.js";
import { beforePaint, byId, later, setText, showProblem } from "./dom.js";
import { Figures } from "./figures.js";
import { VirtualTable } from "./virtual_table.js";
import { Progress } from "./progress.js";
import { count, joules, ordinary, roundNumber, seconds, share, size } from "./formatting.js";

/** @typedef {RoundInfo & {name: string, updates: number | null, took: number | null}} RoundRow */

/**
 * @param {string} name
 * @returns {(row: RoundRow) => number | null}
 */
const report = (name) => (row) => row.report?.[name] ?? null;
const number = { number: true };

/** @type {Column<RoundRow>[]} */
const COLUMNS = [
  { name: "number", title: "Round", width: 84, value: (row) => row.number, text: (row) => row.name },
  state(92),
  plain("updates", "Updates", 80, count, (/** @type {RoundRow} */ row) => row.updates, number),
  plain("accuracy", "Accuracy", 86, share, report("accuracy"), number),
  plain("judged_fraction", "Judged part", 104, share, report("judged_fraction"), number),
  plain("test_loss", "Loss", 74, ordinary, report("test_loss"), number),
  plain("device_accuracy", "Own accuracy", 118, share, report("device_accuracy"), number),
  plain("loss", "Training loss", 114, ordinary, report("loss"), number),
  plain("down_bytes", "Down", 84, size, report("down_bytes"), number),
  plain("up_bytes", "Up", 84, size, report("up_bytes"), number),
  plain("joules", "Energy", 84, joules, report("joules"), number),
  amount("took", "Took", 96, seconds),
  words("closed_because", "Closed because", 160, (row) => row.closed_because),
];

/** @type {Record<string, string>} */
const NEXT = {
  created: "Start the federation: the first round opens when enough devices are there.",
  running: "The first round opens when enough devices are there.",
  paused: "Resume the federation: the first round opens when enough devices are there.",
};

export class RoundsView {
  title = "Rounds";
  heading = byId("rounds-heading");
  #app;
  #progress = new Progress();
  #figures = new Figures(byId("rounds-charts"));
  #table = new VirtualTable(byId("rounds"), {
    columns: COLUMNS,
    key: (row) => String(row.number),
    attribute: "data-round",
    sort: { column: "number", descending: true },
    label: "Rounds",
  });
  #isOpen = false;
  #done = -1;
  #repaint = beforePaint(() => this.#paint());
  #refetch = later(() => this.#fetch(), 400);

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
  }

  open() {
    this.#isOpen = true;
    this.#paint();
    this.#fetch();
  }

  /** @param {Set<string>} news */
  update(news) {
    this.#repaint();
    if (news.has("rounds") && this.#app.standing.roundsDone !== this.#done) {
      this.#refetch();
    }
  }

  tick() {
    this.#progress.tick();
  }

  close() {
    this.#isOpen = false;
    this.#figures.release();
  }

  reset() {
    this.#figures.release();
  }

  async #fetch() {
    const { standing } = this.#app;
    this.#done = standing.roundsDone;
    if (!this.#isOpen || this.#done === 0) {
      return;
    }
    try {
      const { charts } = await ask(federationPath(standing.name, "charts"));
      if (this.#isOpen && standing === this.#app.standing) {
        showProblem(byId("rounds-problem"), null);
        this.#figures.show(charts);
      }
    } catch (error) {
      this.#done = -1; // fetched again with the next news
      if (!this.#app.failed(error)) {
        showProblem(byId("rounds-problem"), error);
      }
    }
  }

  #paint() {
    const { rounds, progress, federation } = this.#app.standing;
    if (federation === null) {
      return;
    }
    const empty = rounds.size === 0;
    byId("rounds-empty").hidden = !empty;
    byId("rounds-there").hidden = empty;
    setText(byId("rounds-next"), NEXT[federation.state] ?? "It ended before a round was opened.");
    setText(this.heading, progress === null ? "Rounds" : roundTitle(progress, federation.rounds));
    if (progress !== null) {
      this.#progress.show(progress, federation.state === "paused");
    }
    this.#table.setRows([...rounds.values()].map((round) => rowOf(round, federation, progress)));
  }
}

/**
 * 'Round 7 of 40', or the one after the last.
 * @param {ProgressInfo} progress
 * @param {number} rounds
 */
export function roundTitle(progress, rounds) {
  return progress.personal ? "Personal round" : `Round ${roundNumber(progress.round)} of ${count(rounds)}`;
}

/**
 * @param {RoundInfo} round
 * @param {FederationInfo} federation
 * @param {ProgressInfo | null} progress
 * @returns {RoundRow}
 */
function rowOf(round, federation, progress) {
  const end = round.closed_at ?? round.done_at;
  const latest = progress !== null && progress.round === round.number;
  return {
    ...round,
    name: round.number >= federation.rounds ? "personal" : roundNumber(round.number),
    updates: round.report?.updates ?? (latest ? progress.arrived : null),
    took: end === null ? null : end - round.opened_at,
  };
}

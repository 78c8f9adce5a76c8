/* The state of a federation as the coordinator has sent it: a snapshot, and the changes since. */

import { Devices } from "./devices.js";

export class Standing {
  /** @type {FederationInfo | null} */
  federation = null;
  /** @type {ProgressInfo | null} */
  progress = null;
  /** @type {Map<number, RoundInfo>} */
  rounds = new Map();
  devices = new Devices();

  /** @param {string | null} name */
  constructor(name) {
    this.name = name;
  }

  get known() {
    return this.federation !== null;
  }

  /**
   * Takes an event; returns the names of what is new.
   * @param {string} kind
   * @param {LiveData} data
   * @returns {Set<string>}
   */
  take(kind, data) {
    if (kind !== "snapshot" && kind !== "change") {
      return new Set();
    }
    const news = new Set(["federation", "progress", "rounds", "fleet"].filter((name) => name in data));
    if (data.federation !== undefined) {
      this.federation = data.federation;
    }
    if (data.progress !== undefined) {
      this.progress = data.progress;
    }
    if (data.rounds !== undefined) {
      this.#takeRounds(kind, data.rounds);
    }
    if (data.fleet !== undefined) {
      if (kind === "snapshot") {
        this.devices.replace(data.fleet);
      } else {
        this.devices.change(data.fleet);
      }
    }
    return news;
  }

  /** How many rounds are done: charts are out of date when this changes. */
  get roundsDone() {
    let done = 0;
    this.rounds.forEach((round) => (done += Number(round.state === "done")));
    return done;
  }

  /**
   * @param {string} kind
   * @param {RoundInfo[]} rounds
   */
  #takeRounds(kind, rounds) {
    if (kind === "snapshot") {
      this.rounds = new Map();
    }
    for (const round of rounds) {
      this.rounds.set(round.number, round);
    }
  }
}

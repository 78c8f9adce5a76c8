/* Where a federation stands, as far as the coordinator has told: a snapshot, and the changes since. */

import { Devices } from "./devices.js";

export class Standing {
  federation = null;
  progress = null;
  rounds = new Map();
  devices = new Devices();

  constructor(name) {
    this.name = name;
  }

  get known() {
    return this.federation !== null;
  }

  /* Takes an event; returns the names of what is new. */
  take(kind, data) {
    if (kind !== "snapshot" && kind !== "change") {
      return new Set();
    }
    const news = new Set(["federation", "progress", "rounds", "fleet"].filter((name) => name in data));
    if (news.has("federation")) {
      this.federation = data.federation;
    }
    if (news.has("progress")) {
      this.progress = data.progress;
    }
    if (news.has("rounds")) {
      this.#takeRounds(kind, data.rounds);
    }
    if (news.has("fleet")) {
      if (kind === "snapshot") {
        this.devices.replace(data.fleet);
      } else {
        this.devices.change(data.fleet);
      }
    }
    return news;
  }

  /* How many rounds are done: charts are old when this changes. */
  get roundsDone() {
    let done = 0;
    this.rounds.forEach((round) => (done += round.state === "done"));
    return done;
  }

  #takeRounds(kind, rounds) {
    if (kind === "snapshot") {
      this.rounds = new Map();
    }
    for (const round of rounds) {
      this.rounds.set(round.number, round);
    }
  }
}

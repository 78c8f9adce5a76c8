/* The coordinator's clock. Ages and countdowns follow it, not the clock of the reader's machine. It stands still while
 * the coordinator does not answer: what is shown is as it was then. */

let ahead = 0;
/** @type {number | null} */
let lastHeard = null;
let still = false;

/**
 * Takes the time that the coordinator sent.
 * @param {number | undefined} now
 */
export function heard(now) {
  if (typeof now === "number") {
    ahead = now - Date.now() / 1000;
    lastHeard = now;
  }
  still = false;
}

export function stop() {
  still = true;
}

export function now() {
  return still && lastHeard !== null ? lastHeard : Date.now() / 1000 + ahead;
}

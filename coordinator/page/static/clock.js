/* The coordinator's clock. Ages and countdowns go by it, not by the clock of who looks. While the coordinator is not
 * heard, it stands still: what is shown is as it was then. */

let ahead = 0;
let lastHeard = null;
let still = false;

/* The coordinator says what time it is. */
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

/* Numbers and times as people read them; a dash for a missing one. Gives the same texts as edgefl/values/formatting.py. */

export const NONE = "-";
export const BEYOND = 1.5; // times the predicted value: anything above is marked

const GROUPED = new Intl.NumberFormat("en");
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
const DECIMAL = ["p", "n", "µ", "m", "", "k", "M", "G", "T"];
const NO_PREFIX = 4;
/** @type {[unit: string, seconds: number][]} */
const UNITS = [["s", 1], ["min", 60], ["h", 3600], ["d", 86400]];

/**
 * @param {Maybe} value
 * @returns {value is null | undefined}
 */
const missing = (value) => value === null || value === undefined || !Number.isFinite(value);

/** @param {number} value */
function threeDigits(value) {
  const size = Math.abs(value);
  return size >= 100 && size < 1e6 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/**
 * @param {number} value
 * @param {string} unit
 * @param {string[]} prefixes
 * @param {number} base
 * @param {number} start
 */
function scaled(value, unit, prefixes, base, start) {
  let step = start;
  while (Number(threeDigits(value)) >= base && step + 1 < prefixes.length) {
    value /= base;
    step += 1;
  }
  while (Number(threeDigits(value)) > 0 && Number(threeDigits(value)) < 1 && step > 0) {
    value *= base;
    step -= 1;
  }
  return `${threeDigits(value)} ${prefixes[step]}${unit}`;
}

/** @param {Maybe} value */
export const count = (value) => (missing(value) ? NONE : GROUPED.format(value));
/** @param {Maybe} value */
export const share = (value) => (missing(value) ? NONE : `${(100 * value).toFixed(1)} %`);
/** @param {Maybe} value */
export const ordinary = (value) => (missing(value) ? NONE : threeDigits(value));
/** @param {Maybe} value */
export const size = (value) => (missing(value) ? NONE : scaled(value, "B", BINARY, 1024, 0));
/** @param {Maybe} value */
export const rate = (value) => (missing(value) ? NONE : scaled(value, "B/s", BINARY, 1024, 0));
/** @param {Maybe} value */
export const joules = (value) => (missing(value) ? NONE : scaled(value, "J", DECIMAL, 1000, NO_PREFIX));
/** @param {Maybe} value */
export const watts = (value) => (missing(value) ? NONE : scaled(value, "W", DECIMAL, 1000, NO_PREFIX));
/**
 * @param {number} number
 * @param {string} word
 */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/**
 * '12.3 ms', '4.5 s', '2 min 5 s', '3 h 20 min', '2 d 4 h'.
 * @param {Maybe} value
 */
export function seconds(value) {
  if (missing(value)) {
    return NONE;
  }
  if (value < 59.95) {
    return scaled(value, "s", DECIMAL.slice(0, NO_PREFIX + 1), 1000, NO_PREFIX);
  }
  /** @type {[major: string, minor: string, small: number, ratio: number]} */
  const [major, minor, small, ratio] =
    Math.round(value) < 3600 ? ["min", "s", 1, 60] : value < 86370 ? ["h", "min", 60, 60] : ["d", "h", 3600, 24];
  const parts = Math.round(value / small);
  const rest = parts % ratio;
  return `${GROUPED.format(Math.floor(parts / ratio))} ${major}${rest ? ` ${rest} ${minor}` : ""}`;
}

/**
 * Whole seconds, for countdowns.
 * @param {number} value
 */
export const wholeSeconds = (value) => seconds(Math.max(0, Math.round(value)));

/**
 * 'now', '12 s ago', '3 min ago', '2 d ago': one unit, so that columns do not flicker.
 * @param {Maybe} then
 * @param {number} now
 */
export function ago(then, now) {
  if (missing(then)) {
    return NONE;
  }
  const passed = Math.max(0, Math.floor(now - then));
  if (passed < 1) {
    return "now";
  }
  const [unit, each] = UNITS.findLast(([, size]) => passed >= size) ?? UNITS[0];
  return `${GROUPED.format(Math.floor(passed / each))} ${unit} ago`;
}

/**
 * The time of day, with the date if it is not today.
 * @param {Maybe} then
 */
export function moment(then) {
  if (missing(then)) {
    return NONE;
  }
  const date = new Date(1000 * then);
  const time = TIME.format(date);
  return date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)}, ${time}`;
}

/**
 * Measured divided by predicted; null if one of them is missing.
 * @param {Maybe} measured
 * @param {Maybe} predicted
 */
export function ratioOf(measured, predicted) {
  return missing(measured) || missing(predicted) || predicted <= 0 ? null : measured / predicted;
}

/**
 * '1.1x'.
 * @param {number} ratio
 */
export function times(ratio) {
  const said = ratio >= 10 ? threeDigits(ratio) : ratio >= 0.1 ? ratio.toFixed(1) : Number(ratio.toPrecision(1));
  return `${said}x`;
}

/**
 * The coordinator counts rounds from 0, people count them from 1.
 * @param {Maybe} number
 */
export const roundNumber = (number) => (missing(number) ? NONE : count(number + 1));

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

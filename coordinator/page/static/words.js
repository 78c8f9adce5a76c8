/* Numbers and times as people read them; a dash where there is none. Says the same as edgefl/charts/words.py. */

export const NONE = "-";
export const BEYOND = 1.5; // times what was predicted: from here on a value is marked

const GROUPED = new Intl.NumberFormat("en");
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
const DECIMAL = ["p", "n", "µ", "m", "", "k", "M", "G", "T"];
const NO_PREFIX = 4;
const UNITS = [["s", 1], ["min", 60], ["h", 3600], ["d", 86400]];

const missing = (value) => value === null || value === undefined || !Number.isFinite(value);

function threeDigits(value) {
  const size = Math.abs(value);
  return size >= 100 && size < 1e6 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

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

export const count = (value) => (missing(value) ? NONE : GROUPED.format(value));
export const share = (value) => (missing(value) ? NONE : `${(100 * value).toFixed(1)} %`);
export const ordinary = (value) => (missing(value) ? NONE : threeDigits(value));
export const size = (value) => (missing(value) ? NONE : scaled(value, "B", BINARY, 1024, 0));
export const rate = (value) => (missing(value) ? NONE : scaled(value, "B/s", BINARY, 1024, 0));
export const joules = (value) => (missing(value) ? NONE : scaled(value, "J", DECIMAL, 1000, NO_PREFIX));
export const watts = (value) => (missing(value) ? NONE : scaled(value, "W", DECIMAL, 1000, NO_PREFIX));
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/* '12.3 ms', '4.5 s', '2 min 5 s', '3 h 20 min', '2 d 4 h'. */
export function seconds(value) {
  if (missing(value)) {
    return NONE;
  }
  if (value < 59.95) {
    return scaled(value, "s", DECIMAL.slice(0, NO_PREFIX + 1), 1000, NO_PREFIX);
  }
  const [major, minor, small, ratio] =
    Math.round(value) < 3600 ? ["min", "s", 1, 60] : value < 86370 ? ["h", "min", 60, 60] : ["d", "h", 3600, 24];
  const parts = Math.round(value / small);
  const rest = parts % ratio;
  return `${GROUPED.format(Math.floor(parts / ratio))} ${major}${rest ? ` ${rest} ${minor}` : ""}`;
}

/* Whole seconds, for what is counted down. */
export const wholeSeconds = (value) => seconds(Math.max(0, Math.round(value)));

/* 'now', '12 s ago', '3 min ago', '2 d ago': one unit, so that columns are calm. */
export function ago(then, now) {
  if (missing(then)) {
    return NONE;
  }
  const passed = Math.max(0, Math.floor(now - then));
  if (passed < 1) {
    return "now";
  }
  const [unit, each] = UNITS.findLast(([, size]) => passed >= size);
  return `${GROUPED.format(Math.floor(passed / each))} ${unit} ago`;
}

/* The time of day, with the day where it is not today. */
export function moment(then) {
  if (missing(then)) {
    return NONE;
  }
  const date = new Date(1000 * then);
  const time = TIME.format(date);
  return date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)}, ${time}`;
}

/* Measured by predicted; null where one of them is not known. */
export function ratioOf(measured, predicted) {
  return missing(measured) || missing(predicted) || predicted <= 0 ? null : measured / predicted;
}

/* '1.1x'. */
export function times(ratio) {
  const said = ratio >= 10 ? threeDigits(ratio) : ratio >= 0.1 ? ratio.toFixed(1) : Number(ratio.toPrecision(1));
  return `${said}x`;
}

/* Rounds are counted from 0 by the coordinator and from 1 by people. */
export const roundNumber = (number) => (missing(number) ? NONE : count(number + 1));

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

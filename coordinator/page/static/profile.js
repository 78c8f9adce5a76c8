/* A device's profile and its plan, as names and values. */

import { NONE, count, joules, moment, rate, seconds, share, size, watts } from "./formatting.js";

/** @typedef {[name: string, value: string | number | null | undefined]} Pair */

/** @param {unknown} value */
const degrees = (value) => (typeof value === "number" ? `${value.toFixed(1)} °C` : NONE);
/** @param {unknown} value */
const text = (value) => (value === null || value === undefined ? NONE : String(value));

/** @param {DeviceInfo} device */
export function profileRows(device) {
  const { profile } = device;
  const machine = profile.machine ?? {};
  return known([
    ["Name", profile.device_name],
    ["System", [machine.system, machine.architecture].filter(Boolean).join(", ")],
    ["Cores", text(machine.cores)],
    ["Engine", profile.engine && `${profile.engine}, ${text(profile.threads)} threads`],
    ["Memory", `${size(profile.memory_free_bytes)} free of ${size(profile.memory_total_bytes)}`],
    ["Storage", `${size(profile.storage_free_bytes)} free`],
    ["Network", `${rate(profile.download_bytes_per_second)} down, ${rate(profile.upload_bytes_per_second)} up`],
    ["Power", powerOf(profile.power)],
    ["Temperature", degrees(profile.temperature_celsius)],
    ["Step times", profile.cost && `${share(profile.cost.relative_error)} typical error of a prediction`],
    ["Measured", when(profile.measured_at)],
    ["Software", device.software],
    ...capabilityRows(device.capabilities),
    ["Left out", device.left_out],
    ["Joined", moment(device.enrolled_at)],
    ["Join key", device.key],
    ["Revoked", device.revoked_at === null ? null : moment(device.revoked_at)],
  ]);
}

/**
 * @param {CapabilitiesInfo | null | undefined} capabilities
 * @returns {Pair[]}
 */
function capabilityRows(capabilities) {
  if (!capabilities) {
    return [];
  }
  const { client, engines = [], rules = [], codecs = [], batch_sizes: sizes } = capabilities;
  return [
    ["Client", `${client.name} ${client.version}, ${capabilities.platform}`],
    ["Engines", engines.map((engine) => `${engine.name} ${engine.version} (${engine.format})`).join(", ") || "none"],
    ["Rules", rules.join(", ") || "none"],
    ["Codecs", codecs.join(", ") || "none"],
    ["Batch sizes", sizes ? sizes.join(", ") : "any"],
  ];
}

/** @param {DeviceProfileInfo["power"]} power */
function powerOf(power) {
  if (!power) {
    return "not known";
  }
  return `${watts(power.busy_watts)} busy, ${watts(power.idle_watts)} idle; ${power.source}, ${power.provenance}`;
}

/** @param {PlanInfo} plan */
export function planRows(plan) {
  const { work = {}, rule = {}, predicted } = plan;
  return known([
    ["Round", count(plan.round + 1)],
    ["Rule", rule.name],
    ...Object.entries(rule.settings ?? {}).map(([name, value]) => /** @type {Pair} */ ([spaced(name), text(value)])),
    ["Passes", text(work.epochs)],
    ["Batch", `${text(work.batch_size)} samples`],
    ["Most steps", work.most_steps === null || work.most_steps === undefined ? "no limit" : count(work.most_steps)],
    ["Deadline", `${seconds(plan.deadline_seconds)} after it gets the task`],
    ["Predicted time", predicted && seconds(predicted.seconds)],
    ["Predicted memory", predicted && size(predicted.peak_bytes)],
    ["Predicted energy", predicted && joules(predicted.joules)],
  ]);
}

/**
 * Everything in a JSON document: 'cost.overhead_seconds', '0.0012'.
 * @param {unknown} value
 * @param {string} [path]
 * @returns {[name: string, value: string][]}
 */
export function flat(value, path = "") {
  if (value !== null && typeof value === "object" && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, one]) => flat(one, path ? `${path}.${name}` : name));
  }
  return [[path, typeof value === "object" ? JSON.stringify(value) : String(value)]];
}

/**
 * The rows that have a value.
 * @param {Pair[]} rows
 * @returns {[name: string, value: string][]}
 */
function known(rows) {
  const there = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return there.map(([name, value]) => [name, String(value)]);
}

/** @param {string} stamp */
function when(stamp) {
  const parsed = Date.parse(stamp);
  return Number.isNaN(parsed) ? text(stamp) : moment(parsed / 1000);
}

/** @param {string} name */
function spaced(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

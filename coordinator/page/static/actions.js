/* What an administrator can do: each action opens a dialog that says what will happen. The coordinator checks the
 * token. */

import { ask, download, federationPath, Problem } from "./api.js";
import * as clock from "./clock.js";
import { confirm, problemInDialog } from "./dialogs.js";
import { element, setText } from "./dom.js";
import { moment, seconds } from "./formatting.js";

/** @typedef {"start" | "pause" | "resume" | "abort"} Move */
/** @typedef {[format: string, title: string, note: string, path: string]} ModelFile */

/** @type {Record<string, Move[]>} */
const MOVES = { created: ["start", "abort"], running: ["pause", "abort"], paused: ["resume", "abort"] };

/** @type {Record<Move, {verb: string, says: string[], done: string, danger?: boolean}>} */
const WORDS = {
  start: {
    verb: "Start",
    says: ["The first round opens as soon as enough devices are there. They get their tasks and begin to train."],
    done: "started",
  },
  pause: {
    verb: "Pause",
    says: ["No new round opens and no further device gets a task. Devices that have one finish it, and it counts."],
    done: "paused",
  },
  resume: { verb: "Resume", says: ["Rounds go on where they stopped."], done: "running again" },
  abort: {
    verb: "Abort",
    danger: true,
    says: [
      "The federation ends for good. Tasks under way are given up, and it cannot be resumed.",
      "The model stays as it is now and can still be exported.",
    ],
    done: "aborted",
  },
};

/**
 * The entries of the menu.
 * @param {App} app
 * @param {FederationInfo} federation
 * @returns {ActionEntry[]}
 */
export function actionsFor(app, federation) {
  const moves = MOVES[federation.state] ?? [];
  /** @type {(verb: Move) => ActionEntry} */
  const entry = (verb) => [verb, WORDS[verb].verb, () => move(app, verb)];
  /** @type {ActionEntry[]} */
  const deadline = moves.length ? [["deadline", "Change the deadline", () => changeDeadline(app)]] : [];
  return [
    ...moves.filter((verb) => verb !== "abort").map(entry),
    ...deadline,
    ["export", "Export", () => exportModel(app)],
    ["keys", "Let devices join", () => app.go("keys")],
    ...moves.filter((verb) => verb === "abort").map(entry),
  ];
}

/**
 * @param {App} app
 * @param {Move} verb
 */
function move(app, verb) {
  const { name } = app.standing;
  const { verb: word, says, danger, done } = WORDS[verb];
  const reason = element("input", { type: "text", id: "dialog-reason", maxlength: "200", autocomplete: "off" });
  const typed = element("input", { type: "text", id: "dialog-name", autocomplete: "off", spellcheck: "false" });
  const fields = [field(reason, "Reason, if you like")];
  if (verb === "abort") {
    fields.unshift(field(typed, `Type the federation's name to go on: ${name}`));
  }
  confirm({
    name: verb,
    title: `${word} ${name}?`,
    says,
    fields,
    verb: word,
    danger,
    ready: () => verb !== "abort" || typed.value.trim() === name,
    async go() {
      const body = { reason: reason.value.trim() || null };
      app.learn(await ask(federationPath(name, verb), { method: "POST", body }));
      app.say(`${name} is ${done}.`);
    },
  });
}

/** @param {App} app */
function changeDeadline(app) {
  const { name, federation, progress } = app.standing;
  const now = federation?.settings?.rounds?.deadline ?? null;
  const unit = now !== null && now % 60 === 0 ? 60 : 1;
  const number = element("input", { type: "number", id: "dialog-seconds", min: "0", step: "any", required: true });
  const units = element("select", { id: "dialog-unit", "aria-label": "Unit" });
  /** @type {[size: number, word: string][]} */
  const choices = [[1, "seconds"], [60, "minutes"], [3600, "hours"]];
  for (const [size, word] of choices) {
    units.append(element("option", { value: size, selected: size === unit }, word));
  }
  number.value = now === null ? "" : String(now / unit);
  const wanted = () => Number(number.value) * Number(units.value);
  const effect = element("p", { class: "hint", role: "status" });
  const show = () => setText(effect, deadlineEffect(progress, wanted(), now));
  number.addEventListener("input", show);
  units.addEventListener("input", show);
  show();
  confirm({
    name: "deadline",
    title: "Change the deadline of rounds",
    says: [
      now === null ? "" : `A round now closes ${seconds(now)} after it opens.`,
      "The new deadline holds for the open round and for all that follow.",
      "Devices that have their task already were told the old one.",
    ].filter(Boolean),
    fields: [field(number, "A round closes after", units), effect],
    verb: "Change",
    ready: () => wanted() >= 1,
    async go() {
      app.learn(await ask(federationPath(name, "deadline"), { method: "PUT", body: { seconds: wanted() } }));
      app.say(`Rounds now close ${seconds(wanted())} after they open.`);
    },
  });
}

/**
 * @param {ProgressInfo | null} progress
 * @param {number} wanted in seconds
 * @param {number | null} now in seconds
 */
function deadlineEffect(progress, wanted, now) {
  if (!(wanted >= 1)) {
    return "A deadline is at least a second.";
  }
  if (progress?.state !== "open" || now === null) {
    return "No round is open: the next one has it.";
  }
  const closes = progress.deadline_at + wanted - now; // a round in its second attempt started again
  return closes <= clock.now() ? "The open round closes at once." : `The open round closes at ${moment(closes)}.`;
}

const FORMATS = [
  ["onnx", "Model to predict with", "ONNX"],
  ["weights", "Weights", "as EdgeFL sends them"],
  ["mask", "Mask", "which channels are kept"],
];

/**
 * @param {string} path
 * @returns {ModelFile[]}
 */
function modelFiles(path) {
  return FORMATS.map(([format, title, note]) => [format, title, note, `${path}?format=${format}`]);
}

/** @param {App} app */
function exportModel(app) {
  const { name } = app.standing;
  const files = modelFiles(federationPath(name, "model"));
  files.push(["telemetry", "What every task cost", "a table, CSV", `${federationPath(name, "telemetry")}?format=csv`]);
  const says = "The newest global model, and what was measured. A file is made when you ask for it.";
  showFiles(`Export from ${name}`, says, files);
}

/**
 * @param {App} app
 * @param {string} id
 */
export function exportDevice(app, id) {
  const path = federationPath(app.standing.name, "devices", id, "model");
  showFiles(`Export the part of ${id}`, "The part of the newest model that this device has.", modelFiles(path));
}

/**
 * @param {string} title
 * @param {string} says
 * @param {ModelFile[]} files
 */
function showFiles(title, says, files) {
  const rows = files.map(([name, words, note, path]) => {
    const button = element("button", { type: "button", "data-export": name }, "Save");
    button.addEventListener("click", () => save(button, path));
    return element("li", {}, element("span", {}, words, element("small", {}, note)), button);
  });
  confirm({ name: "export", title, says: [says], fields: [element("ul", { class: "files" }, ...rows)] });
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} path
 */
async function save(button, path) {
  button.disabled = true;
  setText(button, "Making it");
  try {
    await download(path);
    setText(button, "Saved");
  } catch (error) {
    setText(button, "Save");
    problemInDialog(error instanceof Problem ? error : new Problem(0, "The file broke off.", "Try again."));
  } finally {
    button.disabled = false;
  }
}

/**
 * @param {App} app
 * @param {string} id
 */
export function revokeDevice(app, id) {
  const { name } = app.standing;
  confirm({
    name: "revoke",
    title: `Revoke ${id}?`,
    says: [
      "Its token is good no longer, and its open task is given up. Updates that counted already stay in the model.",
      "To come back it has to join again, with a join key.",
    ],
    verb: "Revoke",
    danger: true,
    async go() {
      await ask(federationPath(name, "devices", id), { method: "DELETE" });
      app.say(`${id} is revoked.`);
      app.go("fleet");
    },
  });
}

/**
 * @param {App} app
 * @param {KeyInfo} key
 * @param {() => Promise<void>} done
 */
export function revokeKey(app, key, done) {
  const { name } = app.standing;
  confirm({
    name: "revoke-key",
    title: `Revoke the key ${key.label || key.id}?`,
    says: ["It lets no further device in. Devices that it let in stay."],
    verb: "Revoke",
    danger: true,
    async go() {
      await ask(federationPath(name, "keys", key.id), { method: "DELETE" });
      app.say("The key is revoked.");
      await done();
    },
  });
}

/**
 * @param {HTMLElement} input
 * @param {string} label
 * @param {...Node} more
 */
function field(input, label, ...more) {
  return element("p", { class: "field" }, element("label", { for: input.id }, label), input, ...more);
}

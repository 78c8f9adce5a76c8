/* The stream of changes in a federation: read with fetch, so that the token can be sent, and reopened whenever it
 * fails, ends or falls silent. Every connection begins with a whole snapshot, so nothing is replayed. */

import { Problem, request } from "./api.js";

const SILENCE = 6000; // ms without data after which the page counts as stale
const WAITS = [500, 1000, 2000, 4000]; // ms before each further attempt

export class Live {
  #path;
  #listener;
  #closed = false;
  #tries = 0;
  /** @type {number | null} */
  #heardAt = null;
  #begunAt = 0;
  #connected = false;
  /** @type {AbortController | null} */
  #abort = null;
  #retry = 0;
  #watch = 0;

  /**
   * @param {string} path
   * @param {LiveListener} listener
   */
  constructor(path, listener) {
    this.#path = path;
    this.#listener = listener;
    this.#connect();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#watch);
    this.#abort?.abort();
  }

  tryNow() {
    if (!this.#closed && !this.#connected) {
      this.#tries = 0;
      clearTimeout(this.#retry);
      this.#abort?.abort();
      this.#connect();
    }
  }

  async #connect() {
    const abort = new AbortController();
    this.#abort = abort;
    this.#begunAt = Date.now();
    this.#listener.trying(null);
    this.#watchSilence();
    /** @type {unknown} */
    let problem = null;
    try {
      const response = await request(this.#path, { signal: abort.signal });
      const body = /** @type {NonNullable<Response["body"]>} */ (response.body);
      for await (const event of events(body, () => this.#note())) {
        if (abort.signal.aborted) {
          return;
        }
        this.#hear(event);
      }
    } catch (error) {
      problem = error;
    }
    // A connection that was abandoned already has a successor.
    if (this.#abort === abort && !this.#closed) {
      this.#lost(problem);
    }
  }

  #note() {
    this.#heardAt = Date.now();
  }

  /** @param {{kind: string, data: LiveData}} event */
  #hear({ kind, data }) {
    if (!this.#connected) {
      this.#connected = true;
      this.#tries = 0;
      this.#listener.live();
    }
    try {
      this.#listener.hear(kind, data);
    } catch (error) {
      console.error(error); // an error in this page, not in the coordinator: the connection is fine
    }
  }

  /** @param {unknown} problem */
  #lost(problem) {
    this.#connected = false;
    clearTimeout(this.#watch);
    if (problem instanceof Problem && (problem.refused || problem.status === 404)) {
      this.close();
      this.#listener.refused(problem);
      return;
    }
    this.#listener.stale(this.#heardAt);
    const wait = WAITS[Math.min(this.#tries, WAITS.length - 1)] * (0.75 + Math.random() / 2);
    this.#tries += 1;
    this.#retry = setTimeout(() => this.#connect(), wait);
    this.#listener.trying(Date.now() + wait);
  }

  /** Checks for silence with one timer. Timers of a hidden page run late, and must not raise a false alarm. */
  #watchSilence() {
    clearTimeout(this.#watch);
    const silent = Date.now() - Math.max(this.#heardAt ?? 0, this.#begunAt);
    if (silent >= SILENCE) {
      const abort = this.#abort;
      this.#abort = null;
      abort?.abort();
      this.#lost(null);
      return;
    }
    this.#watch = setTimeout(() => this.#watchSilence(), Math.min(SILENCE, SILENCE - silent + 10));
  }
}

/**
 * Yields the events of a text/event-stream; calls `note` for every chunk.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @param {() => void} note
 */
async function* events(body, note) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      note();
      const from = Math.max(0, text.length - 1);
      text += value.replaceAll("\r", "");
      for (let end = text.indexOf("\n\n", from); end >= 0; end = text.indexOf("\n\n")) {
        const event = parsed(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== null) {
          yield event;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} block */
function parsed(block) {
  let kind = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) {
      kind = line.slice(6).trim();
    } else if (line.startsWith("data:")) {
      data.push(line.slice(5));
    }
  }
  if (data.length === 0) {
    return kind === "message" ? null : { kind, data: {} };
  }
  return { kind, data: JSON.parse(data.join("\n")) };
}

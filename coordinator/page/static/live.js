/* The stream of what changes in a federation: read with fetch, so that the token can be sent, and opened again by
 * itself whenever it fails, ends or falls silent. Every connection begins with a whole snapshot, so nothing is
 * replayed. */

import { request } from "./api.js";

const SILENCE = 6000; // ms without a word after which what is shown counts as stale
const WAITS = [500, 1000, 2000, 4000]; // ms before each further try

/* Calls, of `listener`:
 *   hear(kind, data)  an event;
 *   live()            after the first event of a connection, before it is heard;
 *   stale(since)      no word any more: since when, in ms since 1970, or null if there never was one;
 *   trying(at)        when the next try will be, or null while one is under way;
 *   refused(problem)  the token is not good, or there is no such federation: the stream stays closed. */
export class Live {
  #path;
  #listener;
  #closed = false;
  #tries = 0;
  #heardAt = null;
  #begunAt = 0;
  #connected = false;
  #abort = null;
  #retry = 0;
  #watch = 0;

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
    let problem = null;
    try {
      const response = await request(this.#path, { signal: abort.signal });
      for await (const event of events(response.body, () => this.#note())) {
        if (abort.signal.aborted) {
          return;
        }
        this.#hear(event);
      }
    } catch (error) {
      problem = error;
    }
    // A connection that was given up already has a successor.
    if (this.#abort === abort && !this.#closed) {
      this.#lost(problem);
    }
  }

  #note() {
    this.#heardAt = Date.now();
  }

  #hear({ kind, data }) {
    if (!this.#connected) {
      this.#connected = true;
      this.#tries = 0;
      this.#listener.live();
    }
    try {
      this.#listener.hear(kind, data);
    } catch (error) {
      console.error(error); // a mistake of this page, and not the coordinator's: the connection is good
    }
  }

  #lost(problem) {
    const status = problem?.status ?? 0;
    this.#connected = false;
    clearTimeout(this.#watch);
    if (status === 401 || status === 403 || status === 404) {
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

  /* One timer that looks when the silence would be over: timers of a hidden page are late, and must not cry wolf. */
  #watchSilence() {
    clearTimeout(this.#watch);
    const silent = Date.now() - Math.max(this.#heardAt ?? 0, this.#begunAt);
    if (silent >= SILENCE) {
      const abort = this.#abort;
      this.#abort = null;
      abort.abort();
      this.#lost(null);
      return;
    }
    this.#watch = setTimeout(() => this.#watchSilence(), Math.min(SILENCE, SILENCE - silent + 10));
  }
}

/* Gives the events of a text/event-stream; `note` is called for every piece that comes. */
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

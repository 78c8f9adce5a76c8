/* Requests to the coordinator, with the token. A failure is thrown as a `Problem`, in the coordinator's words. */

/** @typedef {{method?: string, body?: unknown, signal?: AbortSignal}} RequestOptions */

const STORED = "edgefl-token";
let token = sessionStorage.getItem(STORED);

/** What went wrong, and what to do about it. Status 0: no answer came. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} fix
   */
  constructor(status, message, fix) {
    super(message);
    this.name = "Problem";
    this.status = status;
    this.fix = fix;
  }

  /** Whether the token is not valid here, so that asking again does not help. */
  get refused() {
    return this.status === 401 || this.status === 403;
  }
}

export const hasToken = () => token !== null;

/**
 * The status of a problem; -1 for any other error.
 * @param {unknown} error
 */
export const statusOf = (error) => (error instanceof Problem ? error.status : -1);

/**
 * Keeps a token for as long as the tab is open; null forgets it.
 * @param {string | null} text
 */
export function keepToken(text) {
  token = text;
  if (text === null) {
    sessionStorage.removeItem(STORED);
  } else {
    sessionStorage.setItem(STORED, text);
  }
}

/**
 * The path of a federation, or of something in it.
 * @param {string | null} name
 * @param {...string} rest
 */
export function federationPath(name, ...rest) {
  return ["/v1/federations", ...[String(name), ...rest].map(encodeURIComponent)].join("/");
}

/**
 * Sends a request; returns the response if it is a success, with its body still to be read.
 * @param {string} path
 * @param {RequestOptions} [options]
 */
export async function request(path, { method = "GET", body, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  const written = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers, signal, cache: "no-store", body: written });
  } catch (error) {
    if (isAbort(error)) {
      throw error;
    }
    throw new Problem(0, "The coordinator does not answer.", "See that it runs, and try again.");
  }
  if (!response.ok) {
    throw await problemOf(response);
  }
  return response;
}

/**
 * Sends a request; returns the JSON of its answer, or null if the answer is empty.
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<any>}
 */
export async function ask(path, options) {
  const response = await request(path, options);
  try {
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    if (isAbort(error)) {
      throw error;
    }
    throw new Problem(0, "The coordinator's answer broke off.", "Try again.");
  }
}

/** @param {unknown} error */
function isAbort(error) {
  return error instanceof Error && error.name === "AbortError";
}

/** @param {Response} response */
async function problemOf(response) {
  const said = await response.json().then(
    (body) => body.error,
    () => null,
  );
  const wait = response.status === 429 ? response.headers.get("Retry-After") : null;
  const fix = [said?.fix, wait && `Try again in ${wait} s.`].filter(Boolean).join(" ");
  return new Problem(response.status, sentence(said?.problem ?? `The coordinator answered ${response.status}.`), fix);
}

/** @param {string} text */
function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/**
 * Saves a file. A link cannot do this, because it cannot send the token.
 * @param {string} path
 */
export async function download(path) {
  const response = await request(path);
  const name = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name ? name[1] : "edgefl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/* Asks the coordinator, with the token. What is no success is thrown as a `Problem`, with the coordinator's words. */

const STORED = "edgefl-token";
let token = sessionStorage.getItem(STORED);

/* What went wrong, and what to do about it. Status 0: nobody answered. */
export class Problem extends Error {
  constructor(status, message, fix) {
    super(message);
    this.name = "Problem";
    this.status = status;
    this.fix = fix;
  }

  /* Whether the token is not good here, so that asking again does not help. */
  get refused() {
    return this.status === 401 || this.status === 403;
  }
}

export const hasToken = () => token !== null;

export function keepToken(text) {
  token = text;
  if (text === null) {
    sessionStorage.removeItem(STORED);
  } else {
    sessionStorage.setItem(STORED, text);
  }
}

export function federationPath(name, ...rest) {
  return ["/v1/federations", ...[name, ...rest].map(encodeURIComponent)].join("/");
}

/* A request whose answer is a success; the body is still to be read. */
export async function request(path, { method = "GET", body, signal } = {}) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, { method, headers, signal, cache: "no-store", body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Problem(0, "The coordinator does not answer.", "See that it runs, and try again.");
  }
  if (!response.ok) {
    throw await problemOf(response);
  }
  return response;
}

export async function ask(path, options) {
  const response = await request(path, options);
  try {
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Problem(0, "The coordinator's answer broke off.", "Try again.");
  }
}

async function problemOf(response) {
  const said = await response.json().then(
    (body) => body.error,
    () => null,
  );
  const wait = response.status === 429 ? response.headers.get("Retry-After") : null;
  const fix = [said?.fix, wait && `Try again in ${wait} s.`].filter(Boolean).join(" ");
  return new Problem(response.status, sentence(said?.problem ?? `The coordinator answered ${response.status}.`), fix);
}

function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/* Saves a file: a link cannot send the token. */
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

// The requests of the dashboard to the curator. The token stays in this tab.

const TOKEN = "priorveil-token"; // in sessionStorage: forgotten when the tab is closed

/** The token is unknown or no longer valid. */
export class SignedOut extends Error {}

/** The curator did not answer. */
export class Unreachable extends Error {
  constructor() {
    super("The curator cannot be reached. Try again.");
  }
}

/** The curator refused a request; `problem` is its problem document. */
export class Refused extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(problem.detail ?? `The curator answered ${status}.`);
    this.problem = problem;
  }
}

/** @type {{ secret: string | null, role: string } | null} */
let holder = null; // whose token it is

/** Whether this browser lets the page keep a token: it may block the data of all sites. */
export function keepsTokens() {
  try {
    return sessionStorage.length >= 0;
  } catch {
    return false;
  }
}

export const signedIn = () => sessionStorage.getItem(TOKEN) !== null;
/** @param {string} token */
export const signIn = (token) => sessionStorage.setItem(TOKEN, token);
export const forget = () => sessionStorage.removeItem(TOKEN);

/**
 * The response to a request; if there is none, or it is an error, that is thrown.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN) ?? "";
  if (!/^[!-~]+$/.test(token)) throw new SignedOut(); // no header can carry it, and no curator has it
  const headers = { ...options.headers, authorization: `Bearer ${token}` };
  const response = await fetch(`/v1${path}`, { ...options, headers, cache: "no-store" }).catch((error) => {
    throw error instanceof TypeError ? new Unreachable() : error; // otherwise the page has cancelled it
  });
  if (response.status === 401) throw new SignedOut();
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})));
  return response;
}

/** @param {string} path @returns {Promise<any>} */
export const read = async (path) => (await ask(path)).json();

/** Whether the token opens everything; the curator decides, the pages only leave out what it would refuse. */
export async function isAdmin() {
  const secret = sessionStorage.getItem(TOKEN);
  if (holder?.secret !== secret) holder = { secret, role: (await read("/token")).role };
  return holder.role === "admin";
}

/** @param {string} path @returns {Promise<any>} */
export const remove = async (path) => (await ask(path, { method: "DELETE" })).json();
/** @param {string} path @param {BodyInit} [body] @returns {Promise<any>} */
export const send = async (path, body) => (await ask(path, { method: "POST", body })).json();

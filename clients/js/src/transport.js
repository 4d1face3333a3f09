// Requests to a curator, which are tried again while it is busy or the network fails.

import { parseJson } from "./documents.js";
import { NotSent, ReportRefused } from "./errors.js";
/** @import { Json } from "./documents.js" */

const ATTEMPTS = 5;
const FIRST_WAIT = 0.5; // seconds; each later wait is twice as long
const LONGEST_WAIT = 30;
const BUSY = new Set([408, 425, 429, 500, 502, 503, 504, 507]);
const LONGEST_TIMER = 2 ** 31 - 1; // milliseconds; longer ones ring at once
const LARGEST_CAMPAIGN = 64 << 20; // bytes
const LARGEST_RECEIPT = 64 << 10;

/**
 * The answer to a request. Its text is read only where the status is 200, and is null where it is too long.
 *
 * @typedef {{ status: number | string, kind: string, retryAfter: string, text: string | null }} Reply
 */

/** Sends requests with a timeout in seconds, and waits between attempts. */
export class Transport {
  #fetch;
  #wait;
  #timeout;

  /** @param {typeof globalThis.fetch} fetch @param {(seconds: number) => Promise<unknown>} wait @param {number} timeout */
  constructor(fetch, wait, timeout) {
    this.#fetch = fetch;
    this.#wait = wait;
    this.#timeout = timeout;
  }

  /** The text of the campaign at an address. @param {string} url */
  async download(url) {
    const reply = await this.#send(url, LARGEST_CAMPAIGN, { headers: { accept: "application/json" } });
    /** @param {string} why */
    const refuse = (why) => new ReportRefused(why, undefined, "campaign");
    if (reply.status !== 200 || !reply.kind.startsWith("application/json"))
      throw refuse(`there is no campaign at this address (${reply.status})`);
    if (reply.text === null)
      throw refuse(`the campaign at this address cannot be read: it is longer than ${LARGEST_CAMPAIGN} bytes`);
    return reply.text;
  }

  /**
   * What the curator answers to a document that is posted to it; an empty object if that is not JSON.
   *
   * @param {string} url
   * @param {Json} document
   * @returns {Promise<Json>}
   */
  async post(url, document) {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify(document);
    const reply = await this.#send(url, LARGEST_RECEIPT, {
      method: "POST",
      headers,
      body,
      referrerPolicy: "no-referrer",
    });
    if (reply.status !== 200) throw new ReportRefused(`the curator answered ${reply.status}`);
    return (reply.text === null ? null : parseJson(reply.text)) ?? {};
  }

  /** @param {string} url @param {number} limit @param {RequestInit} request */
  async #send(url, limit, request) {
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.#sendOnce(url, limit, request);
      if (reply !== null && !BUSY.has(Number(reply.status))) return reply;
      if (attempt === ATTEMPTS) {
        throw new NotSent(reply === null ? "the curator cannot be reached" : `the curator is busy (${reply.status})`);
      }
      const asked = Number(reply?.retryAfter) || 0;
      const pause = FIRST_WAIT * 2 ** (attempt - 1) * (0.5 + Math.random() / 2); // not all devices at once
      await this.#wait(Math.min(LONGEST_WAIT, Math.max(asked, pause)));
    }
  }

  /**
   * One reply, with a text of at most `limit` bytes; null where the connection fails or breaks off. No redirect is followed: a
   * report is for the curator that the address names.
   *
   * @param {string} url
   * @param {number} limit
   * @param {RequestInit} request
   * @returns {Promise<Reply | null>}
   */
  async #sendOnce(url, limit, request) {
    const signal = AbortSignal.timeout(Math.min(1000 * this.#timeout, LONGEST_TIMER));
    const headers = { ...request.headers, "accept-encoding": "identity" }; // Node asks so; browsers choose themselves
    try {
      const response = await this.#fetch(url, { ...request, headers, credentials: "omit", redirect: "manual", signal });
      const status = response.status || "with a redirect"; // browsers do not tell which
      const [kind, retryAfter] = ["content-type", "retry-after"].map((name) => response.headers.get(name) ?? "");
      if (status !== 200) await response.body?.cancel();
      return { status, kind, retryAfter, text: status === 200 ? await readText(response, limit) : null };
    } catch {
      // Another attempt would take as long.
      if (signal.aborted) throw new NotSent(`the curator did not answer within ${this.#timeout} seconds`);
      return null;
    }
  }
}

/**
 * The body of a response; null if it is longer than `limit` bytes, of which the rest is not read, or unpacked.
 *
 * @param {Response} response
 * @param {number} limit
 */
async function readText(response, limit) {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  for (;;) {
    const read = await reader?.read();
    if (reader === undefined || read === undefined || read.done) return text + decoder.decode();
    size += read.value.length;
    if (size > limit) {
      await reader.cancel();
      return null;
    }
    text += decoder.decode(read.value, { stream: true });
  }
}

// Documents: their one text, their id, and a copy that nobody can change.

import { PriorveilError, need } from "./errors.js";
/** @typedef {any} Json A value of JSON that nothing is known about yet. */
/** @typedef {{ readonly [name: string]: Json }} JsonDocument */

/**
 * The one text of a document: keys sorted by code point, no spaces. Numbers are whole and below 2**53; longer ones
 * and real ones are strings in every document.
 *
 * @param {Json} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.keys(value).sort(byCodePoint);
    return `{${members.map((key) => `${quoteText(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  if (typeof value === "string") return quoteText(value);
  if (typeof value === "number") {
    need(Number.isSafeInteger(value), "document", "numbers should be whole and below 2**53");
    return String(value);
  }
  need(value === null || typeof value === "boolean", "document", `a ${typeof value} is not JSON`);
  return String(value);
}

/** @param {string} text */
function quoteText(text) {
  need(!/\p{Surrogate}/u.test(text), "document", "half a surrogate pair is not text");
  return JSON.stringify(text);
}

/**
 * Python sorts strings by code point; JavaScript's own order, by UTF-16 unit, differs beyond U+FFFF.
 *
 * @param {string} a
 * @param {string} b
 */
function byCodePoint(a, b) {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    const apart = Number(left[i].codePointAt(0)) - Number(right[i].codePointAt(0));
    if (apart !== 0) return apart;
  }
  return left.length - right.length;
}

/** The SHA-256 of a document's canonical text, without its own `id`, in hexadecimal. @param {JsonDocument} document */
export async function contentId(document) {
  need(globalThis.crypto?.subtle, "crypto", "Web Crypto is missing: serve the page over HTTPS");
  const { id: _, ...content } = document;
  const digest = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(content)));
  return hex(new Uint8Array(digest));
}

/** @param {Uint8Array} bytes */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The whole number whose bytes, the lowest first, these hexadecimal digits are. @param {string} digits */
export function littleEndianNumber(digits) {
  const bytes = digits.match(/../g) ?? [];
  return bytes.reduceRight((total, byte) => (total << 8n) | BigInt(`0x${byte}`), 0n);
}

/** @param {JsonDocument} document @param {string} [expected] */
export async function checkId(document, expected) {
  const found = await contentId(document);
  need(document.id === found, "id", "the id does not match the content: it was changed");
  need(expected === undefined || expected === found, "id", "this is another document than the one asked for");
  return found;
}

/** A document, from its text or as it is. @param {string | JsonDocument} given @returns {JsonDocument} */
export function parseDocument(given) {
  /** @type {Json} */
  let document = given;
  if (typeof given === "string") {
    let plain = false;
    try {
      document = JSON.parse(given);
      plain = !/\.|[0-9][eE]/.test(given.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, ""));
    } catch {
      throw new PriorveilError("file", "not JSON");
    }
    need(plain, "file", "whole numbers should be written as such"); // 1, not 1.0: one id is for one text
  }
  need(document !== null && typeof document === "object" && !Array.isArray(document), "file", "not a document");
  return document;
}

/** The value of a text in JSON; null if it is not JSON. @param {string} text @returns {any} */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const DEEPEST = 32; // more levels than any document has

/**
 * A copy that nobody can change after it was checked.
 *
 * @template T
 * @param {T} value
 * @param {number} [level]
 * @returns {T}
 */
export function deepFreeze(value, level = 0) {
  if (value === null || typeof value !== "object") return value;
  need(level < DEEPEST, "file", "nested too deeply");
  /** @type {any} */
  const copy = Array.isArray(value)
    ? value.map((member) => deepFreeze(member, level + 1))
    : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, deepFreeze(v, level + 1)]));
  return Object.freeze(copy);
}

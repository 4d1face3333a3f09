// Random words of 64 bits, and exact draws from them.

import { hex } from "./documents.js";
import { need } from "./errors.js";
/** @typedef {(count: number) => bigint[]} Source Gives the next `count` uniform words of 64 bits. */

export const WORD = 1n << 64n; // how many words there are
export const TOTAL_BITS = 62n;
export const TOTAL = 1n << TOTAL_BITS; // what every row of a table adds up to
export const MASK = WORD - 1n;
export const LARGEST_REPORT = 1n << 53n; // whole numbers from here on would be rounded

/**
 * Random words from the operating system, by Web Crypto: the only source whose reports are private.
 *
 * @param {number} count
 */
export function systemWords(count) {
  const bytes = new Uint8Array(8 * count);
  for (let start = 0; start < bytes.length; start += 65536) {
    globalThis.crypto.getRandomValues(bytes.subarray(start, start + 65536));
  }
  return littleEndian(bytes);
}

/**
 * A source that reads given bytes once from front to back: for test vectors, never for real answers.
 *
 * @param {Uint8Array} bytes
 * @returns {Source}
 */
export function wordsFrom(bytes) {
  let used = 0;
  return (count) => {
    need(used + 8 * count <= bytes.length, "bytes", "used up: eight are needed for every word");
    used += 8 * count;
    return littleEndian(bytes.subarray(used - 8 * count, used));
  };
}

/** @param {Uint8Array} bytes */
function littleEndian(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigUint64(8 * i, true));
}

/**
 * A source that reads kept words from the front, and keeps what it draws beyond them: the same value makes the same report.
 *
 * @param {bigint[]} words
 * @param {Source} [source]
 * @returns {Source}
 */
export function keptWords(words, source = systemWords) {
  let used = 0;
  return (count) => {
    while (words.length < used + count) words.push(...source(1));
    used += count;
    return words.slice(used - count, used);
  };
}

/** A new report id: 16 random bytes, in hexadecimal. */
export function freshId() {
  return hex(globalThis.crypto.getRandomValues(new Uint8Array(16)));
}

/**
 * The number of partial sums of a row that are at most the draw.
 *
 * @param {readonly bigint[]} row
 * @param {bigint} word
 */
export function scan(row, word) {
  const draw = word >> (64n - TOTAL_BITS);
  let [partial, report] = [0n, 0];
  for (const weight of row) {
    partial += weight;
    report += partial <= draw ? 1 : 0;
  }
  return report;
}

export const STEP = 0x9e3779b97f4a7c15n;

/** Stafford's thirteenth variant of the SplitMix64 finaliser. @param {bigint} word */
export function mix(word) {
  let z = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

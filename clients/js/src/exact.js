// Exact numbers: a fraction is [numerator, denominator], and its denominator is above zero.

/** @typedef {[bigint, bigint]} Fraction */
/** @typedef {Fraction | null} Ratio Null is infinite. */

/** @type {Fraction} */
export const ONE = [1n, 1n];
const PLACES = 320n; // binary places of an enclosure of e**level
const MOST_LEVEL = 1000; // larger levels are compared with this one, which is stricter

/** @type {(list: readonly bigint[]) => bigint} */
export const sum = (list) => list.reduce((a, b) => a + b, 0n);

/** `a / b`, rounded up. @type {(a: bigint, b: bigint) => bigint} */
export const ceil = (a, b) => (a + b - 1n) / b;

/** @type {(a: Fraction, b: Fraction) => boolean} */
export const less = (a, b) => a[0] * b[1] < b[0] * a[1];

/** @type {(list: readonly Fraction[]) => Fraction} */
export const least = (list) => list.reduce((a, b) => (less(b, a) ? b : a));

/** @type {(list: readonly Fraction[]) => Fraction} */
export const most = (list) => list.reduce((a, b) => (less(a, b) ? b : a));

/** @type {(list: readonly bigint[]) => bigint} */
export const smallest = (list) => list.reduce((a, b) => (b < a ? b : a));

/** @type {(list: readonly bigint[]) => bigint} */
export const largest = (list) => list.reduce((a, b) => (a < b ? b : a));

/** `a / b`. @type {(a: Fraction, b: Fraction) => Fraction} */
export const over = (a, b) => [a[0] * b[1], a[1] * b[0]];

/** @type {(ratio: Fraction) => Ratio} */
export const inverse = ([n, d]) => (n === 0n ? null : [d, n]);

/** @type {(a: readonly bigint[], b: readonly bigint[]) => bigint} */
export const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0n);

/** @type {(rows: readonly (readonly bigint[])[]) => bigint[][]} */
export const transpose = (rows) => rows[0].map((_, y) => rows.map((row) => row[y]));

/** Zero, and the sums of the first one, two, ... of a list. @param {readonly bigint[]} list */
export function partialSums(list) {
  const sums = [0n];
  for (const [i, value] of list.entries()) sums.push(sums[i] + value);
  return sums;
}

/** A float as the fraction it is. @param {number} value @returns {Fraction} */
export function exactFraction(value) {
  let [scaled, denominator] = [value, 1n];
  while (!Number.isInteger(scaled)) [scaled, denominator] = [scaled * 2, denominator * 2n];
  return [BigInt(scaled), denominator];
}

/**
 * Fractions proven to lie below and above `e**level`, for a level of zero or more.
 *
 * @param {number} level
 * @returns {[Fraction, Fraction]}
 */
export function expBounds(level) {
  if (level === 0) return [ONE, ONE];
  const [n, d] = exactFraction(Math.min(level, MOST_LEVEL));
  const halvings = BigInt(n / d).toString(2).length + 8;
  const low = (n << PLACES) / (d << BigInt(halvings));
  let [below, above] = [series(low, 0n), series(low + 1n, 1n)];
  for (let i = 0; i < halvings; i += 1) {
    [below, above] = [(below * below) >> PLACES, ((above * above) >> PLACES) + 1n];
  }
  return [
    [below, 1n << PLACES],
    [above, 1n << PLACES],
  ];
}

/**
 * `e**t` in fixed point for small `t`: every term rounded down, or with `up` one unit more and two for the rest.
 *
 * @param {bigint} t
 * @param {bigint} up
 */
function series(t, up) {
  let [total, term] = [0n, 1n << PLACES];
  for (let i = 1n; term > 1n; i += 1n) {
    total += term;
    term = ((term * t) >> PLACES) / i + up;
  }
  return total + 3n * up;
}

/** @param {Ratio} ratio @param {number} level */
export const atMostExp = (ratio, level) => level === Infinity || (ratio !== null && !less(expBounds(level)[0], ratio));

/**
 * Whether a level is the logarithm of a ratio, rounded up to a float and no further; null is an infinite ratio.
 *
 * @param {number} level
 * @param {Ratio} ratio
 */
export function isLevel(level, ratio) {
  if (ratio === null || level === Infinity) return ratio === null && level === Infinity;
  return atMostExp(ratio, level) && (level === 0 || !atMostExp(ratio, floatBelow(level)));
}

/** The next float towards zero, of a positive one. @param {number} value */
function floatBelow(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigUint64(0, view.getBigUint64(0) - 1n);
  return view.getFloat64(0);
}

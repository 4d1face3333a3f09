// Priors and secrets: what is known about values, and what is protected instead of them.

import { namesOf } from "./domains.js";
import { need } from "./errors.js";
import { exactFraction, largest, smallest, sum } from "./exact.js";
import { notNegative } from "./fields.js";
/** @import { Json } from "./documents.js" */

/**
 * The priors that the certificate is about, where they can be listed; else null.
 *
 * @param {Json} prior
 * @param {number} size
 * @returns {bigint[][] | null}
 */
export function readPriors(prior, size) {
  if (prior.kind === "fixed") return [readWeights(prior.weights, size)];
  if (prior.kind === "finite")
    return prior.members.map((/** @type {string[]} */ weights) => readWeights(weights, size));
  if (prior.kind === "interval") checkInterval(prior, size);
  else {
    readWeights(prior.weights, size);
    need(notNegative(prior.radius, "prior.radius") <= 1, "prior.radius", "should be at most one");
  }
  return null;
}

/** A prior as positive whole numbers without a common divisor. @param {string[]} list @param {number} size */
function readWeights(list, size) {
  const weights = list.map(BigInt);
  need(weights.length === size, "prior.weights", "should be one for each value");
  need(weights.reduce(commonDivisor) === 1n, "prior.weights", "should have no common divisor");
  need(sum(weights) < smallest(weights) << 1075n, "prior.weights", "a value is less likely than any float");
  return weights;
}

/**
 * The probabilities of the one prior of a plan; null where it has a set of priors.
 *
 * @param {Json} prior
 * @returns {readonly number[] | null}
 */
export function probabilities({ kind, weights }) {
  if (kind !== "fixed") return null;
  /** @type {bigint[]} */
  const exact = weights.map(BigInt);
  const total = sum(exact);
  const shift = BigInt(Math.max(0, total.toString(2).length - 1000)); // larger whole numbers are no floats
  return Object.freeze(exact.map((weight) => Number(weight >> shift) / Number(total >> shift)));
}

/** @param {bigint} a @param {bigint} b */
function commonDivisor(a, b) {
  let [n, rest] = [a, b];
  while (rest > 0n) [n, rest] = [rest, n % rest];
  return n;
}

/**
 * Ends from zero to one, none of them crossed, with some prior between them.
 *
 * @param {Json} prior
 * @param {number} size
 */
function checkInterval({ lower, upper }, size) {
  const [low, high] = [lower, upper].map((ends) => shares(ends, size, "prior"));
  const ends = low.numbers.every((a, x) => a <= high.numbers[x] && high.numbers[x] > 0 && high.numbers[x] <= 1);
  need(ends, "prior", "should have ends from zero to one, the lower first");
  const between = low.total <= low.one && high.total >= high.one;
  need(between, "prior", "should have a prior between its ends");
}

/**
 * The rows of all scenarios as integers over one power of two each; null where the value itself is the secret.
 *
 * @param {Json} secret
 * @param {number} size
 * @returns {bigint[][] | null}
 */
export function readSecret(secret, size) {
  if (secret === null) return null;
  return secret.flatMap((/** @type {Json} */ { labels, rows }) => {
    const count = namesOf(labels, "secret.labels").length;
    need(rows.length === count, "secret.rows", "should have a row for each secret");
    return rows.map((/** @type {string[]} */ row) => distribution(row, size));
  });
}

/** A row that adds up to one, up to the rounding of floats. @param {string[]} row @param {number} size */
function distribution(row, size) {
  const { integers, total, one } = shares(row, size, "secret.rows");
  const off = total > one ? total - one : one - total;
  need(off << 46n <= one, "secret.rows", "should add up to one");
  return integers;
}

/**
 * Finite numbers, zero or more, as floats and as integers over `one`, exactly.
 *
 * @param {string[]} row
 * @param {number} size
 * @param {string} field
 */
function shares(row, size, field) {
  need(row.length === size, field, "should have a number for each value");
  const numbers = row.map((text) => notNegative(text, field));
  need(numbers.every(Number.isFinite), field, "should be finite numbers");
  const fractions = numbers.map(exactFraction);
  const one = largest(fractions.map(([, d]) => d)); // powers of two
  const integers = fractions.map(([n, d]) => n * (one / d));
  return { numbers, integers, total: sum(integers), one };
}

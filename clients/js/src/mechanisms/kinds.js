// The kinds of mechanisms. Each samples one value, scores a report, and states the exact extremes of its law.
//
// Some are proven for LIP or LDP of the value itself only (`ofValue`), some for one prior
// only (`onePrior`).

import { need } from "../errors.js";
import { Arc, Orders } from "./arcs.js";
import { Subset, Unary } from "./bits.js";
import { PooledHash } from "./hashing.js";
import { Grouped, Table } from "./tables.js";
/** @import { Fraction, Ratio } from "../exact.js" */
/** @import { Json, JsonDocument } from "../documents.js" */

/**
 * The exact extremes of a law over all reports: how far one moves belief down and up, and the largest ratio of its
 * probabilities for two values.
 *
 * @typedef {{ lowest: Fraction, highest: Fraction, ldp: Ratio }} Lifts
 */

/** @typedef {number | string} Report A whole number, or a row of bits as little-endian hexadecimal. */

/**
 * @typedef {object} Mechanism
 * @property {number} size how many values there are
 * @property {number} draws how many random words a report takes
 * @property {number} [outputs] how many reports there are, where they are whole numbers
 * @property {number} [width] how many words a report has, where it is a row of bits
 * @property {(code: number, words: bigint[]) => Report} sample the report of a value
 * @property {(report: any) => number[]} likelihoods how likely each value makes this report, up to a factor
 * @property {(report: unknown) => boolean} accepts whether it can make this report
 * @property {(priors: bigint[][], secret: bigint[][] | null) => Lifts} lifts
 */

/** @typedef {(new (parameters: any) => Mechanism) & { ofValue?: boolean, onePrior?: boolean }} MechanismKind */

/** @type {Record<string, MechanismKind>} */
const MECHANISMS = {
  table: Table,
  grouped: Grouped,
  arc: Arc,
  orders: Orders,
  unary: Unary,
  subset: Subset,
  hashing: PooledHash,
};

export const PROVEN = ["LIP", "LDP"]; // the notions whose budget is proven here; for all others, LDP is

/**
 * The sampler of a plan, if it can be certified for what the plan promises.
 *
 * @param {JsonDocument} document
 * @param {number} size
 */
export function readMechanism({ mechanism: parameters, prior, secret, notion }, size) {
  const { kind } = parameters;
  need(Object.hasOwn(MECHANISMS, kind), "mechanism", "of an unknown kind");
  const made = MECHANISMS[kind];
  const mechanism = new made(parameters);
  need(mechanism.size === size, "mechanism", "for another number of values than the plan has");
  const plain = secret === null && PROVEN.includes(notion.name);
  need(plain || !made.ofValue, "mechanism", `${kind} is certified for LIP or LDP of the value itself`);
  need(prior.kind === "fixed" || !made.onePrior, "mechanism", `${kind} is certified for one prior`);
  return mechanism;
}

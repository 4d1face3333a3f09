// Mechanisms that are a table: a row of whole weights for each value.

import { need } from "../errors.js";
import { ONE, dot, largest, least, most, over, smallest, sum, transpose } from "../exact.js";
import { TOTAL, TOTAL_BITS, scan } from "../randomness.js";
/** @import { Fraction, Ratio } from "../exact.js" */
/** @import { Lifts, Mechanism } from "./kinds.js" */

/** One row of integer weights per value; one word per report, its upper 62 bits are the draw. */
export class Table {
  /** @param {{ weights: string[][] }} parameters */
  constructor({ weights }) {
    this.weights = weights.map((row) => row.map(BigInt));
    this.outputs = this.weights[0].length;
    /** @param {bigint[]} row */
    const good = (row) => row.length === this.outputs && sum(row) === TOTAL;
    need(this.weights.every(good), "mechanism.weights", `rows should add up to 2**${TOTAL_BITS}`);
    need(
      transpose(this.weights).every((c) => sum(c) > 0n),
      "mechanism.weights",
      "an output never happens",
    );
    this.size = this.weights.length;
    this.draws = 1;
  }

  /** @type {Mechanism["sample"]} */
  sample(code, [word]) {
    return scan(this.weights[code], word);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return this.weights.map((row) => Number(row[report]) / Number(TOTAL));
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts(priors, secret) {
    return tableLifts(this.weights, priors, secret);
  }
}

/** A table whose rows are shared: value `x` is reported by row `rows[x]`. */
export class Grouped {
  static ofValue = true;
  static onePrior = true;

  /** @param {{ weights: string[][], rows: number[] }} parameters */
  constructor(parameters) {
    this.table = new Table(parameters);
    this.rows = parameters.rows;
    const used = new Set(this.rows);
    const good = used.size === this.table.size && this.rows.every((g) => g < used.size);
    need(good, "mechanism.rows", "should use every row of the table, and no other");
    this.size = this.rows.length;
    this.outputs = this.table.outputs;
    this.draws = 1;
  }

  /** @type {Mechanism["sample"]} */
  sample(code, words) {
    return this.table.sample(this.rows[code], words);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    const each = this.table.likelihoods(report);
    return this.rows.map((group) => each[group]);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts([prior]) {
    return this.table.lifts([massOf(this.rows, prior, this.table.size)], null);
  }
}

/** Whether a report is one of a mechanism's outputs. @param {{ outputs: number }} mechanism @param {unknown} report */
export function isOutput({ outputs }, report) {
  return typeof report === "number" && Number.isSafeInteger(report) && report >= 0 && report < outputs;
}

/**
 * The mass of every group: `groups[x]` is the group of value `x`.
 *
 * @param {readonly number[]} groups
 * @param {readonly bigint[]} weights
 * @param {number} count
 * @returns {bigint[]}
 */
export function massOf(groups, weights, count) {
  const masses = Array(count).fill(0n);
  groups.forEach((group, x) => {
    masses[group] += weights[x];
  });
  return masses;
}

/**
 * The exact extremes of a table: the lift of the secret (without one, of the value itself), and the ratio in a column.
 *
 * @param {bigint[][]} rows
 * @param {bigint[][]} priors
 * @param {bigint[][] | null} secret
 * @returns {Lifts}
 */
export function tableLifts(rows, priors, secret) {
  /** @type {Lifts} */
  const found = { lowest: ONE, highest: ONE, ldp: ONE };
  for (const column of transpose(rows)) {
    /** @type {Fraction[]} */
    const chances = secret ? secret.map((t) => [dot(t, column), sum(t)]) : column.map((w) => [w, 1n]);
    const [bottom, top] = [least(chances), most(chances)];
    for (const prior of priors) {
      /** @type {Fraction} */
      const mean = [dot(prior, column), sum(prior)];
      found.lowest = least([found.lowest, over(bottom, mean)]);
      found.highest = most([found.highest, over(top, mean)]);
    }
    found.ldp = widest(found.ldp, largest(column), smallest(column));
  }
  return found;
}

/** @type {(ratio: Ratio, top: bigint, bottom: bigint) => Ratio} */
const widest = (ratio, top, bottom) => (ratio === null || bottom === 0n ? null : most([ratio, [top, bottom]]));

// Mechanisms that hash the value first, by a function from a public pool.

import { need } from "../errors.js";
import { least, most, sum, transpose } from "../exact.js";
import { isOutput, massOf, tableLifts } from "./tables.js";
import { MASK, STEP, TOTAL, WORD, mix, scan } from "../randomness.js";
/** @import { Fraction } from "../exact.js" */
/** @import { Mechanism } from "./kinds.js" */

/** A public pool of hash functions: two words, the first picks the seed, the second goes to the table of its groups. */
export class PooledHash {
  static ofValue = true;
  static onePrior = true;

  /** @param {{ weights: string[], seeds: string[], groups: number[][], fresh: string }} parameters */
  constructor({ weights, seeds, groups, fresh }) {
    this.weights = weights.map(BigInt);
    this.seeds = seeds.map(BigInt);
    const count = this.seeds.length;
    need((count & (count - 1)) === 0, "mechanism.seeds", "should be a power of two of them");
    need(
      this.seeds.every((s) => s < WORD),
      "mechanism.seeds",
      "should be below 2**64",
    );
    need(groups.length === count, "mechanism.groups", "should have a row for each seed");
    this.groups = groups;
    this.bins = groups[0].length;
    const good = groups.every((row) => row.length === this.bins && row.every((g) => g < this.bins));
    need(good, "mechanism.groups", "should be rows of groups, fewer than bins");
    this.fresh = BigInt(fresh);
    need(this.fresh < TOTAL, "mechanism.fresh", "should be below 2**62");
    this.size = this.weights.length;
    this.reported = this.groups.flat().reduce((a, b) => Math.max(a, b)) + 1;
    this.outputs = count * this.reported;
    this.draws = 2;
  }

  /** The group of every value under a seed. @param {number} i */
  #groupsOf(i) {
    const [a, b] = coefficients(this.seeds[i]);
    return this.weights.map((_, x) => this.groups[i][hashBin(a, b, x, this.bins)]);
  }

  /**
   * The truth, or with probability `fresh / 2**62` a draw from the prior: the row of a group under a seed.
   *
   * @param {number[]} assigned
   */
  #table(assigned) {
    const masses = massOf(assigned, this.weights, this.reported);
    const total = sum(masses);
    const common = masses.map((mass) => (this.fresh * mass) / total);
    const rest = TOTAL - sum(common);
    return common.map((_, b) => common.map((w, y) => (b === y ? w + rest : w)));
  }

  /** @type {Mechanism["sample"]} */
  sample(code, [pick, word]) {
    const i = Number(pick & BigInt(this.seeds.length - 1));
    const assigned = this.#groupsOf(i);
    return i * this.reported + scan(this.#table(assigned)[assigned[code]], word);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    const assigned = this.#groupsOf(Math.floor(report / this.reported));
    const table = this.#table(assigned);
    return assigned.map((group) => Number(table[group][report % this.reported]) / Number(TOTAL) / this.seeds.length);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts([prior]) {
    const found = this.seeds.map((_, i) => this.#seedLifts(i, prior));
    const ratios = found.map((f) => f.ldp);
    const ldp = ratios.includes(null) ? null : most(/** @type {Fraction[]} */ (ratios));
    return { lowest: least(found.map((f) => f.lowest)), highest: most(found.map((f) => f.highest)), ldp };
  }

  /**
   * The seed is public, so each is a channel of its own, on the groups that hold some value.
   *
   * @param {number} i
   * @param {bigint[]} prior
   */
  #seedLifts(i, prior) {
    const assigned = this.#groupsOf(i);
    const masses = massOf(assigned, prior, this.reported);
    const filled = masses.map((_, g) => g).filter((g) => masses[g] > 0n);
    const table = this.#table(assigned);
    const rows = filled.map((g) => table[g]);
    const columns = transpose(rows).filter((column) => sum(column) > 0n);
    return tableLifts(transpose(columns), [filled.map((g) => masses[g])], null);
  }
}

/** @param {bigint} seed */
function coefficients(seed) {
  const first = (seed + STEP) & MASK;
  return [mix(first), mix((first + STEP) & MASK)];
}

/** @param {bigint} a @param {bigint} b @param {number} x @param {number} bins */
const hashBin = (a, b, x, bins) => Number(((((a * BigInt(x) + b) & MASK) >> 32n) * BigInt(bins)) >> 32n);

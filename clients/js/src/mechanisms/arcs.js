// Mechanisms on a circle: reports are places, and values are arcs of it.

import { need } from "../errors.js";
import { ceil, largest, partialSums, smallest, sum } from "../exact.js";
import { LARGEST_REPORT, MASK, STEP, WORD, mix } from "../randomness.js";
import { isOutput } from "./tables.js";
/** @import { Fraction } from "../exact.js" */
/** @import { Lifts, Mechanism } from "./kinds.js" */

/** @typedef {{ start: string, window: string, keep: string, lengths: string[], owners: number[], bits: number }} ArcParameters */

/**
 * One order of an arc mechanism: segments of a line, the last of them bent into a circle. Three words: the coin, the place
 * and the shift; see the Python module `priorveil.mechanisms.arc.line`, which describes the sampler, and `arc.certificate`,
 * which proves it.
 */
class ArcLine {
  /** @param {ArcParameters} parameters @param {number[]} circle */
  constructor(parameters, circle) {
    this.start = BigInt(parameters.start);
    this.window = BigInt(parameters.window);
    this.keep = BigInt(parameters.keep);
    this.lengths = parameters.lengths.map(BigInt);
    this.order = [...parameters.owners, ...circle];
    this.heavy = parameters.owners.length;
    this.bits = BigInt(parameters.bits);
    this.size = this.lengths.length;
    this.#checkOrder();
    this.places = 1n << this.bits;
    this.edges = partialSums(this.order.map((x) => this.lengths[x]));
    /** @type {bigint[]} */
    this.starts = Array(this.size);
    this.order.forEach((x, rank) => {
      this.starts[x] = this.edges[rank];
    });
    this.circumference = this.places - this.start;
    this.#checkCircle();
    this.outputs = this.heavy + Number(this.circumference);
    this.draws = 3;
  }

  #checkOrder() {
    const { order, size, lengths } = this;
    need(sum(lengths) === 1n << this.bits, "mechanism.lengths", "should fill the line");
    const permutation = order.length === size && new Set(order).size === size && order.every((x) => x < size);
    need(permutation, "mechanism.circle", "should have the values that are not owners, each once");
  }

  #checkCircle() {
    const { heavy, size } = this;
    const lends = heavy > 0 && heavy < size && this.edges[heavy - 1] < this.start && this.start < this.edges[heavy];
    need(
      this.start === this.edges[heavy] || lends,
      "mechanism.start",
      "the circle begins in or after the last heavy segment",
    );
    const fits =
      this.circumference === 0n ? this.window === 0n : this.window >= 1n && this.window <= this.circumference;
    need(fits, "mechanism.window", "should fit the circle");
    need(this.keep < WORD, "mechanism.keep", "should be below 2**64");
    need(BigInt(heavy) + this.circumference < LARGEST_REPORT, "mechanism.bits", "reports must stay below 2**53");
  }

  /** @param {number} code @param {bigint[]} words */
  sample(code, [coin, place, shift]) {
    const own = this.starts[code] + ((place * this.lengths[code]) >> 64n);
    const fresh = place >> (64n - this.bits);
    const t = coin < this.keep ? own : fresh;
    let moved = t - this.start - ((shift * this.window) >> 64n);
    if (moved < 0n) moved += this.circumference;
    return t < this.start ? this.#owner(t) : this.heavy + Number(moved);
  }

  /** @param {bigint} t */
  #owner(t) {
    return this.edges.slice(1, this.heavy).filter((edge) => edge <= t).length;
  }

  /** How many places an owned output has: all of its segment, unless the last one lends. @param {number} rank */
  #ownPlaces(rank) {
    return (rank === this.heavy - 1 ? this.start : this.edges[rank + 1]) - this.edges[rank];
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    const [keep, places] = [Number(this.keep) / Number(WORD), Number(this.places)];
    const owned = report < this.heavy;
    const size = owned ? Number(this.#ownPlaces(report)) : 1;
    return this.lengths.map((length, x) => {
      const chance = owned ? (x === this.order[report] ? size / Number(length) : 0) : this.#circleChance(x, report);
      return ((1 - keep) * size) / places + keep * chance;
    });
  }

  /**
   * The chance that value `x`, if it is used, ends on this place of the circle: its places within the window, over both.
   *
   * @param {number} x
   * @param {number} report
   */
  #circleChance(x, report) {
    const [from, length] = [BigInt(report - this.heavy), this.lengths[x]];
    const [first, last] = [largest([this.starts[x] - this.start, 0n]), this.starts[x] + length - this.start];
    let inside = overlap(from, from + this.window, first, last);
    inside += overlap(from - this.circumference, from - this.circumference + this.window, first, last);
    return Number(inside) / (Number(length) * Number(this.window));
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts([prior]) {
    return this.liftsOf(prior, false);
  }

  /**
   * In the order of this line, or in every order of the values on its circle.
   *
   * @param {bigint[]} prior
   * @param {boolean} everyOrder
   * @returns {Lifts}
   */
  liftsOf(prior, everyOrder) {
    const { boost, low, high } = this.#terms(prior, everyOrder);
    const [used, fresh] = [this.keep, WORD - this.keep];
    const one = 1n << ARC_PLACES;
    const ceilings = boost.map((top, i) => ceil((fresh * one + used * top) << ARC_PLACES, fresh * one + used * low[i]));
    /** @type {Fraction} */
    const ldp = [fresh * one + used * largest(boost), fresh * one];
    return { lowest: [fresh * one, fresh * one + used * largest(high)], highest: [largest(ceilings), one], ldp };
  }

  /**
   * Bounds of the largest and of the mean chance of each owned output and of the circle, in units of its size.
   *
   * @param {bigint[]} prior
   * @param {boolean} everyOrder
   */
  #terms(prior, everyOrder) {
    const n = this.order.map((x) => prior[x]);
    const [total, M] = [sum(n), this.places];
    const owned = this.order.slice(0, this.heavy).map((_, rank) => this.#ownTerms(rank, n[rank], total));
    const terms = this.circumference === 0n ? owned : [...owned, this.#circleTerms(n, total, M, everyOrder)];
    return { boost: terms.map((t) => t.boost), low: terms.map((t) => t.low), high: terms.map((t) => t.high) };
  }

  /** @param {number} rank @param {bigint} weight @param {bigint} total */
  #ownTerms(rank, weight, total) {
    const size = this.#ownPlaces(rank);
    const own = ceil(size * WORD, this.edges[rank + 1] - this.edges[rank]);
    const top = own * (this.places << ARC_PLACES);
    const [mean, scale] = [top * weight, size * WORD * total];
    return { boost: ceil(top, size * WORD), low: mean / scale, high: ceil(mean, scale) };
  }

  /** @param {bigint[]} n @param {bigint} total @param {bigint} M @param {boolean} everyOrder */
  #circleTerms(n, total, M, everyOrder) {
    const first = this.heavy - (this.start < this.edges[this.heavy] ? 1 : 0);
    const drift = partialSums(n)
      .map((b, i) => b * M - this.edges[i] * total)
      .slice(first);
    // All over M * total * WORD: the window's share, and how far the mass of any window can be from it.
    const scale = M * total * WORD;
    const share = this.window * total * WORD;
    const steps = drift.slice(1).map((d, i) => largest([d - drift[i], drift[i] - d]));
    const moved = everyOrder ? sum(steps) : largest(drift) - smallest(drift);
    const slack = 2n * (moved * WORD + M * total);
    const [down, up] = [largest([share - slack, 0n]), smallest([share + slack, scale])];
    const [floor, roof] = [(WORD / this.window) * M, ceil(WORD, this.window) * M];
    return {
      boost: ceil(roof << ARC_PLACES, WORD),
      low: ((floor * down) << ARC_PLACES) / (WORD * scale),
      high: ceil((roof * up) << ARC_PLACES, WORD * scale),
    };
  }
}

const ARC_PLACES = 128n;

/** @param {bigint} from @param {bigint} to @param {bigint} first @param {bigint} last */
function overlap(from, to, first, last) {
  const inside = smallest([to, last]) - largest([from, first]);
  return inside > 0n ? inside : 0n;
}

/** Arcs of a circle in one public order. */
export class Arc extends ArcLine {
  static ofValue = true;
  static onePrior = true;

  /** @param {ArcParameters & { circle: number[] }} parameters */
  constructor(parameters) {
    super(parameters, parameters.circle);
  }
}

/**
 * Arcs of a circle in many public orders. A report takes one more word, the first, which picks the order; see the Python
 * modules `priorveil.mechanisms.arc.orders`, and `arc.line`, which says how orders are made of seeds and multipliers.
 */
export class Orders {
  static ofValue = true;
  static onePrior = true;
  draws = 4;

  /** @param {Omit<ArcParameters, "start"> & { count: number }} parameters */
  constructor(parameters) {
    const { lengths, owners, count } = parameters;
    this.size = lengths.length;
    need(
      owners.every((x) => x < this.size),
      "mechanism.owners",
      "should be codes of values",
    );
    const own = new Set(owners);
    this.light = Array.from({ length: this.size }, (_, x) => x).filter((x) => !own.has(x));
    need(this.light.length > 0, "mechanism.owners", "should leave some values for the circle");
    need((count & (count - 1)) === 0, "mechanism.count", "should be a power of two");
    this.count = count;
    this.prime = primeAbove(this.light.length);
    this.span = 2 ** parameters.bits;
    need(count * this.span <= Number(LARGEST_REPORT), "mechanism.bits", "reports must stay below 2**53");
    const start = sum(owners.map((x) => BigInt(lengths[x])));
    this.parameters = { ...parameters, start: String(start) };
    this.base = new ArcLine(this.parameters, this.light); // checks the segments, the window and the coin
    this.outputs = (count - 1) * this.span + this.base.outputs;
  }

  /**
   * The line with its circle in order `i`: shuffled by a seed, then sorted by multiples of the ranks.
   *
   * @param {number} i
   */
  #line(i) {
    const half = Math.max(1, Math.floor(this.prime / 2));
    const [seed, at] = [Math.floor(i / half), i % half];
    const left = Math.min(half, this.count - seed * half);
    const multiplier = 1 + Math.floor(((2 * at + 1) * half) / (2 * left));
    const keyed = this.light.map((x) => ({ x, key: shuffleKey(seed, x) }));
    keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.x - b.x));
    const placed = keyed.map(({ x }, rank) => ({ x, place: (multiplier * (rank + 1)) % this.prime }));
    const circle = placed.sort((a, b) => a.place - b.place).map(({ x }) => x);
    return new ArcLine(this.parameters, circle);
  }

  /** @type {Mechanism["sample"]} */
  sample(code, words) {
    const i = Number(words[0] & BigInt(this.count - 1));
    return i * this.span + this.#line(i).sample(code, words.slice(1));
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return this.#line(Math.floor(report / this.span))
      .likelihoods(report % this.span)
      .map((chance) => chance / this.count);
  }

  /** Each order has its own places. @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report) && this.base.accepts(Number(report) % this.span);
  }

  /**
   * The order is public and drawn without looking at the value, and the bounds hold for every order.
   *
   * @type {Mechanism["lifts"]}
   */
  lifts([prior]) {
    return this.base.liftsOf(prior, true);
  }
}

/** @param {number} n */
function primeAbove(n) {
  /** @param {number} p */
  const divided = (p) => {
    for (let q = 2; q * q <= p; q += 1) if (p % q === 0) return true;
    return false;
  };
  let p = Math.max(2, n + 1);
  while (divided(p)) p += 1;
  return p;
}

/** @param {number} seed @param {number} x */
const shuffleKey = (seed, x) => mix((BigInt(seed) + BigInt(x + 1) * STEP) & MASK);

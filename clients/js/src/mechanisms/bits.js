// Mechanisms whose report is a row of bits, one for each value.

import { hex, littleEndianNumber } from "../documents.js";
import { need } from "../errors.js";
import { ONE, least, less, most, smallest, sum } from "../exact.js";
import { TOTAL, WORD } from "../randomness.js";
/** @import { Fraction } from "../exact.js" */
/** @import { Mechanism } from "./kinds.js" */

/** A row of bits, one of them set, each flipped at random: `noise_bits` words for every 64 bits, then one. */
export class Unary {
  static ofValue = true;

  /** @param {{ masses: string[], noise: number, noise_bits: number, drop: string }} parameters */
  constructor({ masses, noise, noise_bits: noiseBits, drop }) {
    this.noise = BigInt(noise);
    need(this.noise < 1n << BigInt(noiseBits), "mechanism.noise", "should be below 2**noise_bits");
    this.drop = BigInt(drop);
    need(this.drop > 0n && this.drop < TOTAL, "mechanism.drop", "should be below 2**62");
    this.noiseBits = noiseBits;
    this.size = checkMasses(masses).length;
    this.width = Math.ceil(this.size / 64);
    this.draws = this.width * noiseBits + 1;
    /** @type {Fraction} */
    this.odds = [((1n << BigInt(noiseBits)) - this.noise) * (TOTAL - this.drop), this.noise * this.drop];
    need(!less(this.odds, ONE), "mechanism.drop", "a set bit must favour its value");
  }

  /** The words of the report as little-endian hexadecimal. @type {Mechanism["sample"]} */
  sample(code, words) {
    let bits = 0n;
    for (let block = 0; block < this.width; block += 1) {
      bits |= this.#mixNoise(words.slice(block * this.noiseBits, (block + 1) * this.noiseBits)) << BigInt(64 * block);
    }
    bits &= (1n << BigInt(this.size)) - 1n;
    const kept = words[words.length - 1] >> 2n < TOTAL - this.drop ? 1n : 0n;
    const place = BigInt(code);
    bits = (bits & ~(1n << place)) | (kept << place);
    return hex(Uint8Array.from({ length: 8 * this.width }, (_, i) => Number((bits >> BigInt(8 * i)) & 255n)));
  }

  /** @param {bigint[]} levels */
  #mixNoise(levels) {
    return levels.reduce((bits, word, level) => ((this.noise >> BigInt(level)) & 1n ? bits | word : bits & word), 0n);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return bitLikelihoods(this, report);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return setBits(this, report) !== null;
  }

  /** @type {Mechanism["lifts"]} */
  lifts(priors) {
    const [R, D] = this.odds;
    const [p, total] = least(priors.map((prior) => [smallest(prior), sum(prior)]));
    const shift = (R - D) * p; // over D * total
    return { lowest: [D * total, R * total - shift], highest: [R * total, D * total + shift], ldp: this.odds };
  }
}

/**
 * A set of values as a row of bits. It holds the value with probability `keep / 2**62`; the rest is a uniform subset of the
 * other values, by Floyd's algorithm: one word for the value, then one for each member. See `priorveil.mechanisms.subset`.
 */
export class Subset {
  static ofValue = true;

  /** @param {{ masses: string[], subset_size: number, keep: string }} parameters */
  constructor({ masses, subset_size: count, keep }) {
    this.size = checkMasses(masses).length;
    need(count < this.size, "mechanism.subset_size", "should be 1 to d - 1");
    this.keep = BigInt(keep);
    need(this.keep > 0n && this.keep < TOTAL, "mechanism.keep", "should be below 2**62");
    this.members = count;
    this.width = Math.ceil(this.size / 64);
    this.draws = 1 + count;
    /** @type {Fraction} */
    this.odds = [this.keep * BigInt(this.size - count), (TOTAL - this.keep) * BigInt(count)];
    need(!less(this.odds, ONE), "mechanism.keep", "a set must favour its values");
  }

  /**
   * The words of the report as little-endian hexadecimal. A word that would make a draw uneven gives the first values.
   *
   * @type {Mechanism["sample"]}
   */
  sample(code, words) {
    const bytes = new Uint8Array(8 * this.width);
    /** @param {number} value */
    const add = (value) => {
      bytes[value >> 3] |= 1 << (value & 7);
    };
    /** @param {number} candidate */
    const other = (candidate) => candidate + (candidate >= code ? 1 : 0); // candidates leave the value out
    let even = true;
    for (let place = 0; place < this.members; place += 1) {
      const [word, bound] = [words[1 + place], BigInt(this.size - this.members + place)];
      even &&= word < WORD - (WORD % bound);
      const drawn = other(Number(word % bound));
      const held = (bytes[drawn >> 3] >> (drawn & 7)) & 1;
      const own = place === 0 && words[0] >> 2n < this.keep;
      add(own ? code : held ? other(Number(bound) - 1) : drawn);
    }
    if (!even) {
      bytes.fill(0);
      for (let value = 0; value < this.members; value += 1) add(value);
    }
    return hex(bytes);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return bitLikelihoods(this, report);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return setBits(this, report) === this.members;
  }

  /** @type {Mechanism["lifts"]} */
  lifts(priors) {
    const [R, D] = this.odds;
    const masses = priors.map((prior) => {
      const ordered = [...prior].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      return [sum(ordered.slice(0, this.members)), sum(ordered.slice(-this.members)), sum(prior)];
    });
    const [light, lightTotal] = least(masses.map(([first, , total]) => [first, total]));
    const [heavy, heavyTotal] = most(masses.map(([, last, total]) => [last, total]));
    return {
      lowest: [D * heavyTotal, D * heavyTotal + (R - D) * heavy],
      highest: [R * lightTotal, D * lightTotal + (R - D) * light],
      ldp: this.odds,
    };
  }
}

/** The prior that scores reports of bits. @param {string[]} masses */
function checkMasses(masses) {
  const listed = masses.map(BigInt);
  need(listed.length > 1 && sum(listed) <= TOTAL, "mechanism.masses", "should add up to at most 2**62");
  return listed;
}

/**
 * How likely a report of bits is for each value, up to a factor: a set bit favours its value by the odds.
 *
 * @param {{ odds: Fraction, size: number }} mechanism
 * @param {string} report
 */
function bitLikelihoods({ odds, size }, report) {
  const ratio = Number(odds[0]) / Number(odds[1]);
  /** @param {number} i */
  const byte = (i) => parseInt(report.slice(2 * i, 2 * i + 2), 16);
  return Array.from({ length: size }, (_, x) => ((byte(x >> 3) >> (x & 7)) & 1 ? ratio : 1));
}

/**
 * How many bits of a report are set; null if it is not a row of bits for these values.
 *
 * @param {{ width: number, size: number }} mechanism
 * @param {unknown} report
 */
function setBits({ width, size }, report) {
  if (typeof report !== "string" || report.length !== 16 * width || !/^[0-9a-f]+$/.test(report)) return null;
  const bits = littleEndianNumber(report);
  return bits >> BigInt(size) === 0n ? bits.toString(2).replaceAll("0", "").length : null;
}

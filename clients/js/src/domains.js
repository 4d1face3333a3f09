// Domains: what a value may be, and which code it has.

import { need } from "./errors.js";
import { exactFraction } from "./exact.js";
import { real } from "./fields.js";
import { WORD } from "./randomness.js";
import { AMBIGUOUS, BLANKS, LARGEST_NUMBER, SEPARATED, truthKey, valueKey, withDecimalPoints } from "./values.js";
/** @import { Json } from "./documents.js" */
/** @import { Source } from "./randomness.js" */

/** @typedef {string | number | readonly (string | number)[]} Label A label of a value; of several attributes, a level of each. */
/** @typedef {string | number | bigint | boolean | readonly (string | number | bigint | boolean)[]} Value What a person may answer. */

/**
 * A grid, to whose points numbers are rounded at random, keeping their mean; or cells between edges. `bounds` are the points or
 * the edges, increasing. `outside` says whether a number outside the range is refused, or counted at the nearest end.
 *
 * @typedef {{ readonly kind: "grid" | "cells", readonly bounds: readonly number[], readonly outside: "refuse" | "ends" }} Numbers
 */

/**
 * One of several attributes. `numbers` says how a number becomes a level; it is null where levels are labels.
 *
 * @typedef {{ readonly name: string, readonly labels: readonly (string | number)[], readonly numbers: Numbers | null }} Attribute
 */

/**
 * @typedef {object} Domain
 * @property {readonly Label[]} labels
 * @property {Numbers | null} numbers
 * @property {readonly Attribute[] | null} attributes
 * @property {boolean} refusesNumbers whether some number is outside the range and refused
 * @property {number} draws how many random words a code takes
 * @property {(value: unknown, source: Source) => number} code
 */

/** Words and numbers, or lists of them: a value is the label that has the same key. */
class Labels {
  /** @type {Map<string, number>} */
  #codes = new Map();

  /** @param {readonly Label[]} labels @param {string} field */
  constructor(labels, field) {
    this.labels = labels;
    /** @type {Numbers | null} */
    this.numbers = null;
    /** @type {readonly Attribute[] | null} */
    this.attributes = null;
    /** @type {false} */
    this.rounds = false;
    this.draws = 0;
    this.refusesNumbers = false;
    labels.forEach((label, code) => {
      const key = valueKey(label);
      need(typeof key === "string", field, "an empty text means a missing value");
      for (const own of [key, truthKey(key)]) {
        if (own === undefined) continue;
        need(!this.#codes.has(own), field, "values cannot tell two of the labels apart");
        this.#codes.set(own, code);
      }
    });
  }

  /** @type {Domain["code"]} */
  code(value) {
    const key = valueKey(value);
    need(key !== null, "value", "it is missing");
    const code = this.#codes.get(key ?? "") ?? this.#codes.get(valueKey(withDecimalPoints(value)) ?? "");
    need(code !== undefined, "value", "not one of this plan's labels");
    return code;
  }
}

/** Numbers: points of a grid, to which they are rounded at random, or cells between edges. */
export class NumberDomain {
  /** @param {Json} document @param {string} field */
  constructor({ kind, outside, ...given }, field) {
    /** @type {string[]} */
    const texts = given[NUMBERS[/** @type {Numbers["kind"]} */ (kind)]];
    /** @type {readonly number[]} */
    const bounds = Object.freeze(texts.map((text) => real(text, field)));
    /** @param {number} v @param {number} i */
    const sound = (v, i) => Math.abs(v) <= LARGEST_NUMBER && !Object.is(v, -0) && (i === 0 || v > bounds[i - 1]);
    need(bounds.every(sound), field, "should be increasing numbers");
    const text = bounds.map(edgeText);
    const last = text.length - 2;
    const cells = text.slice(1).map((end, i) => `[${text[i]}, ${end}${i === last ? "]" : ")"}`);
    /** @type {readonly (string | number)[]} */
    this.labels = kind === "grid" ? bounds : Object.freeze(cells);
    /** @type {Numbers} */
    this.numbers = Object.freeze({ kind, bounds, outside });
    /** @type {readonly Attribute[] | null} */
    this.attributes = null;
    this.rounds = kind === "grid";
    this.draws = this.rounds ? 1 : 0;
    this.refusesNumbers = outside === "refuse";
  }

  /** The number that a value is, moved to the nearest end if it is outside the range. @param {unknown} value */
  read(value) {
    const plain = withDecimalPoints(value);
    const key = valueKey(plain);
    need(key !== null, "value", "it is missing");
    const infinite = value === Infinity || value === -Infinity;
    const isNumber = key?.startsWith("number ") || infinite;
    const separated = typeof value === "string" && SEPARATED.test(value.replace(BLANKS, ""));
    need(isNumber, "value", separated ? AMBIGUOUS : "should be a number");
    const { bounds } = this.numbers;
    const number = Number(plain);
    const [first, last] = [bounds[0], bounds[bounds.length - 1]];
    const inside = number >= first && number <= last;
    need(inside || !this.refusesNumbers, "value", "outside the range of this plan");
    return Math.min(Math.max(number, first), last);
  }

  /** @type {Domain["code"]} */
  code(value, source) {
    const x = this.read(value);
    const { bounds } = this.numbers;
    const lower = cellOf(bounds, x);
    return this.rounds && roundsUp(x, bounds[lower], bounds[lower + 1], source) ? lower + 1 : lower;
  }
}

const EDGE_DIGITS = 12;

/**
 * An edge as it stands in the label of a cell, with as many digits as Python gives it: 0.3 for 0.1 + 0.2.
 *
 * @param {number} value
 */
function edgeText(value) {
  const [digits, exponent] = value.toExponential(EDGE_DIGITS - 1).split("e");
  const power = Number(exponent);
  /** @param {string} text */
  const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < EDGE_DIGITS) return short(value.toFixed(EDGE_DIGITS - 1 - power));
  return `${short(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** @type {{ grid: string, cells: string }} */
const NUMBERS = { grid: "points", cells: "edges" };

/**
 * The cell of a number in the range; a number on an edge belongs to the cell above it, the last to the last.
 *
 * @param {readonly number[]} bounds
 * @param {number} x
 */
const cellOf = (bounds, x) => Math.min(bounds.filter((v) => v <= x).length, bounds.length - 1) - 1;

/** Several attributes: a value has a level of each, and a number is rounded between the points that its group has. */
class Joint {
  /** @type {(Labels | NumberDomain)[]} */
  #parts;

  /** By the positions of the levels. @type {Map<string, number>} */
  #codes = new Map();

  /** The positions of the points that each group has of each attribute, increasing. @type {Map<string, number[][]>} */
  #points = new Map();

  /** @param {Json} document @param {string} field */
  constructor({ attributes, cells }, field) {
    /** @type {string[]} */
    const names = attributes.map((/** @type {Json} */ { name }) => name);
    need(new Set(names).size === names.length, field, "should have different names");
    this.#parts = attributes.map((/** @type {Json} */ { levels }) => readDomain(levels, field));
    /** @type {Map<string, Set<number>[]>} */
    const groups = new Map();
    cells.forEach((/** @type {number[]} */ cell, /** @type {number} */ code) => this.#add(cell, code, groups, field));
    this.#checkGroups(groups, field);
    for (const [group, points] of groups) this.#points.set(group, points.map(sorted));
    /** @type {readonly Attribute[]} */
    this.attributes = Object.freeze(
      this.#parts.map(({ labels, numbers }, i) =>
        Object.freeze({ name: names[i], labels: /** @type {Attribute["labels"]} */ (labels), numbers }),
      ),
    );
    /** @type {(cell: number[]) => Label} */
    const label = (cell) => Object.freeze(cell.map((at, i) => this.attributes[i].labels[at]));
    this.labels = Object.freeze(cells.map(label));
    /** @type {Numbers | null} */
    this.numbers = null;
    this.draws = this.#parts.reduce((total, part) => total + part.draws, 0);
    this.refusesNumbers = this.#parts.some((part) => part.refusesNumbers);
  }

  /** @param {readonly number[]} places */
  #group = (places) => places.map((at, i) => (this.#parts[i].rounds ? "" : at)).join();

  /** @param {number[]} cell @param {number} code @param {Map<string, Set<number>[]>} groups @param {string} field */
  #add(cell, code, groups, field) {
    /** @type {(at: number, i: number) => boolean} */
    const inside = (at, i) => at < this.#parts[i].labels.length;
    const fits = cell.length === this.#parts.length && cell.every(inside);
    need(fits, field, "a cell should have the position of a level of each attribute");
    this.#codes.set(cell.join(), code);
    const group = this.#group(cell);
    const points = groups.get(group) ?? this.#parts.map(() => new Set());
    groups.set(group, points);
    points.forEach((own, i) => own.add(cell[i]));
  }

  /**
   * Every level of a name occurs, in order; and every number of the range can be rounded in every group.
   *
   * @param {Map<string, Set<number>[]>} groups
   * @param {string} field
   */
  #checkGroups(groups, field) {
    this.#parts.forEach((part, i) => {
      if (part.numbers !== null) return;
      const order = [...new Set([...this.#codes.keys()].map((cell) => Number(cell.split(",")[i])))];
      const whole = order.length === part.labels.length && order.every((at, place) => at === place);
      need(whole, field, "the levels should be those of the cells, in their order");
    });
    let size = 0;
    for (const points of groups.values()) {
      this.#parts.forEach((part, i) => {
        const ends = !part.rounds || (points[i].has(0) && points[i].has(part.labels.length - 1));
        need(ends, field, "a group lacks an end of the grid");
      });
      size += points.reduce((product, own) => product * own.size, 1);
    }
    need(size === this.#codes.size, field, "a group lacks points of the grid");
  }

  /** @type {Domain["code"]} */
  code(value, source) {
    need(value !== null && value !== undefined, "value", "it is missing");
    const fits = Array.isArray(value) && value.length === this.#parts.length;
    need(fits, "value", "should be a list with a level of each attribute");
    const levels = this.#parts.map((part, i) => (part.rounds ? part.read(value[i]) : part.code(value[i], source)));
    const points = this.#points.get(this.#group(levels));
    need(points !== undefined, "value", "a combination that this plan leaves out");
    const places = levels.map((level, i) => {
      const { rounds, numbers } = this.#parts[i];
      if (!rounds) return level;
      const own = points[i].map((at) => numbers.bounds[at]);
      const lower = cellOf(own, level);
      return points[i][roundsUp(level, own[lower], own[lower + 1], source) ? lower + 1 : lower];
    });
    return /** @type {number} */ (this.#codes.get(places.join()));
  }
}

/** @param {Set<number>} positions */
const sorted = (positions) => [...positions].sort((a, b) => a - b);

/**
 * The domain of a document: a list of labels, the numbers of a grid or of cells, or several attributes.
 *
 * @param {Json} given
 * @param {string} field
 * @returns {Domain}
 */
export function readDomain(given, field) {
  if (Array.isArray(given)) return new Labels(namesOf(given, field), field);
  return given.kind === "joint" ? new Joint(given, field) : new NumberDomain(given, field);
}

/**
 * True with probability exactly `(x - low) / (high - low)`: a uniform number is drawn a word at a time until it differs from that
 * fraction. One word nearly always suffices.
 *
 * @param {number} x
 * @param {number} low
 * @param {number} high
 * @param {Source} source
 */
function roundsUp(x, low, high, source) {
  const [[xn, xd], [ln, ld], [hn, hd]] = [x, low, high].map(exactFraction);
  const denominator = (hn * ld - ln * hd) * xd;
  let rest = (xn * ld - ln * xd) * hd;
  for (;;) {
    const [word] = source(1);
    const whole = (rest * WORD) / denominator;
    rest = (rest * WORD) % denominator;
    if (word !== whole || rest === 0n) return word < whole;
  }
}

/**
 * Labels are texts, numbers, or lists of these; one that is not a whole number is written {"number": text}.
 *
 * @param {Json} labels
 * @param {string} field
 * @returns {readonly Label[]}
 */
export function namesOf(labels, field) {
  /** @param {Json} l @returns {string | number} */
  const level = (l) => {
    if (typeof l === "string" || typeof l === "number") return l;
    const number = real(l.number, field);
    need(Number.isFinite(number), field, "should be finite");
    return number;
  };
  return Object.freeze(
    labels.map((/** @type {Json} */ l) => (Array.isArray(l) ? Object.freeze(l.map(level)) : level(l))),
  );
}

/**
 * priorveil: answer a campaign without giving the answer away. For browsers and Node, with no dependencies.
 *
 * A plan is a public document with integers wherever a sampler or a certificate looks. This module checks that it is what its
 * id says, proves its certificate again in exact arithmetic, and samples exactly the law that was proven, from the same
 * 64-bit words in the same order as the Python package: the same plan, bytes and value give the same report.
 */

const TOTAL_BITS = 62n;
const TOTAL = 1n << TOTAL_BITS; // what every row of a table adds up to
const WORD = 1n << 64n; // how many words there are
const MASK = WORD - 1n;
const LARGEST_REPORT = 1n << 53n; // whole numbers from here on would be rounded

/** Something that must not be trusted, or cannot be done; `field` names the part of the document or the argument. */
export class PriorveilError extends Error {
  constructor(field, message) {
    super(printable(`${field}: ${message}`)); // it may quote a document
    this.name = "PriorveilError";
    this.field = field;
  }
}

/** The curator answered and did not accept the report, or has no such campaign; `reason` says why. */
export class ReportRefused extends PriorveilError {
  constructor(reason, message = reason, field = "report") {
    super(field, message);
    this.name = "ReportRefused";
    this.reason = reason;
  }
}

/** The report could not be delivered for now. It is kept, and sending again sends the same report. */
export class NotSent extends PriorveilError {
  constructor(message) {
    super("network", message);
    this.name = "NotSent";
  }
}

/** With this answer, what this device has sent to the curator would tell more than its limit allows. Nothing was drawn or sent. */
export class BudgetExceeded extends PriorveilError {
  constructor(level, limit) {
    const told = level === Infinity ? "no bound is known for" : `LDP ${level.toPrecision(4)} would be reached by`;
    super("limit", `${told} all answers of this device to this curator; its limit is ${limit}`);
    this.name = "BudgetExceeded";
    this.level = level;
    this.limit = limit;
  }
}

const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu; // what Python calls so: control characters, marks of direction, unusual spaces

/** A text with everything escaped that could change how a terminal or a page shows the text around it. */
function printable(text) {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

function need(holds, field, message) {
  if (!holds) throw new PriorveilError(field, message);
}

// -- documents -----------------------------------------------------------------------------------------------------

/**
 * The one text of a document: keys sorted by code point, no spaces. Numbers are whole and below 2**53; longer ones
 * and real ones are strings in every document.
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

function quoteText(text) {
  need(!/\p{Surrogate}/u.test(text), "document", "half a surrogate pair is not text");
  return JSON.stringify(text);
}

/** Python sorts strings by code point; JavaScript's own order, by UTF-16 unit, differs beyond U+FFFF. */
function byCodePoint(a, b) {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    const apart = left[i].codePointAt(0) - right[i].codePointAt(0);
    if (apart !== 0) return apart;
  }
  return left.length - right.length;
}

/** The SHA-256 of a document's canonical text, without its own `id`, in hexadecimal. */
export async function contentId(document) {
  need(globalThis.crypto?.subtle, "crypto", "Web Crypto is missing: serve the page over HTTPS");
  const { id: _, ...content } = document;
  const digest = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(content)));
  return hex(new Uint8Array(digest));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function checkId(document, expected) {
  const found = await contentId(document);
  need(document.id === found, "id", "the id does not match the content: it was changed");
  need(expected === undefined || expected === found, "id", "this is another document than the one asked for");
  return found;
}

const MOST_DIGITS = 4300; // longer whole numbers are not read by Python either

/** Refuse anything that is not an object with exactly these fields. */
function checkFields(object, names, field) {
  need(object !== null && typeof object === "object" && !Array.isArray(object), field || "file", "should be an object");
  const place = (name) => (field ? `${field}.${name}` : name);
  for (const name of names) need(Object.hasOwn(object, name), place(name), "is missing");
  for (const name of Object.keys(object)) need(names.includes(name), place(name), "is not known here");
}

const hasKind = (table, kind) => typeof kind === "string" && Object.hasOwn(table, kind);

/** A whole number, zero or more, from the text that stands for it in a document. */
function whole(text, field) {
  const good = typeof text === "string" && text.length <= MOST_DIGITS && /^(0|[1-9][0-9]*)$/.test(text);
  need(good, field, "should be a whole number, zero or more, as text");
  return BigInt(text);
}

function wholes(list, field) {
  need(Array.isArray(list) && list.length > 0, field, "should be a list of whole numbers");
  return list.map((text) => whole(text, field));
}

/** A short whole number, zero or more, which is a number in the document. */
function index(number, field) {
  need(Number.isSafeInteger(number) && number >= 0, field, "should be a whole number, zero or more");
  return number;
}

/** A real number from its text, which has one spelling only. */
function real(text, field) {
  const value = text === "inf" ? Infinity : typeof text === "string" ? Number(text) : NaN;
  need(!Number.isNaN(value) && numberText(value) === text, field, "should be a number, as Python spells it");
  return value;
}

function notNegative(text, field) {
  const value = real(text, field);
  need(value >= 0, field, "should be a number, zero or more");
  return value;
}

/** The shortest text that reads back to the same float, as Python writes it. */
function numberText(value) {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [, first, rest, power] = Math.abs(value).toExponential().match(/^(\d)\.?(\d*)e([+-]\d+)$/);
  const [digits, exponent] = [first + rest, Number(power)];
  if (exponent < -4 || exponent >= 16) {
    const shown = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${first}${rest && `.${rest}`}e${exponent < 0 ? "-" : "+"}${shown}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${sign}${digits.slice(0, exponent + 1).padEnd(exponent + 1, "0")}.${digits.slice(exponent + 1) || "0"}`;
}

// -- randomness ----------------------------------------------------------------------------------------------------

/** Random words from the operating system, by Web Crypto: the only source whose reports are private. */
export function systemWords(count) {
  const bytes = new Uint8Array(8 * count);
  for (let start = 0; start < bytes.length; start += 65536) {
    globalThis.crypto.getRandomValues(bytes.subarray(start, start + 65536));
  }
  return littleEndian(bytes);
}

/** A source that reads given bytes once from front to back: for test vectors, never for real answers. */
export function wordsFrom(bytes) {
  let used = 0;
  return (count) => {
    need(used + 8 * count <= bytes.length, "bytes", "used up: eight are needed for every word");
    used += 8 * count;
    return littleEndian(bytes.subarray(used - 8 * count, used));
  };
}

function littleEndian(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigUint64(8 * i, true));
}

/** A new report id: 16 random bytes, in hexadecimal. */
export function freshId() {
  return hex(globalThis.crypto.getRandomValues(new Uint8Array(16)));
}

// -- exact numbers: a fraction is [numerator, denominator], the denominator above zero ------------------------------------

const ONE = [1n, 1n];
const PLACES = 320n; // binary places of an enclosure of e**level
const MOST_LEVEL = 1000; // larger levels are compared with this one, which is stricter

const sum = (list) => list.reduce((a, b) => a + b, 0n);
const ceil = (a, b) => (a + b - 1n) / b;
const less = (a, b) => a[0] * b[1] < b[0] * a[1];
const least = (list) => list.reduce((a, b) => (less(b, a) ? b : a));
const most = (list) => list.reduce((a, b) => (less(a, b) ? b : a));
const smallest = (list) => list.reduce((a, b) => (b < a ? b : a));
const largest = (list) => list.reduce((a, b) => (a < b ? b : a));

/** A float as the fraction it is. */
function exactFraction(value) {
  let [scaled, denominator] = [value, 1n];
  while (!Number.isInteger(scaled)) [scaled, denominator] = [scaled * 2, denominator * 2n];
  return [BigInt(scaled), denominator];
}

/** Fractions proven to lie below and above `e**level`, for a level of zero or more. */
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

/** `e**t` in fixed point for small `t`: every term rounded down, or with `up` one unit more and two for the rest. */
function series(t, up) {
  let [total, term] = [0n, 1n << PLACES];
  for (let i = 1n; term > 1n; i += 1n) {
    total += term;
    term = ((term * t) >> PLACES) / i + up;
  }
  return total + 3n * up;
}

const atMostExp = (ratio, level) => level === Infinity || (ratio !== null && !less(expBounds(level)[0], ratio));
const inverse = ([n, d]) => (n === 0n ? null : [d, n]);

/** Whether a level is the logarithm of a ratio, rounded up to a float and no further; null is an infinite ratio. */
function isLevel(level, ratio) {
  if (ratio === null || level === Infinity) return ratio === null && level === Infinity;
  return atMostExp(ratio, level) && (level === 0 || !atMostExp(ratio, floatBelow(level)));
}

/** The next float towards zero, of a positive one. */
function floatBelow(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigUint64(0, view.getBigUint64(0) - 1n);
  return view.getFloat64(0);
}

// -- mechanisms: each samples one value, scores a report, and states the exact extremes of its law ------------------------
// `fields` are those of its document. Some are proven for LIP or LDP of the value itself only (`ofValue`), some for one prior
// only (`onePrior`).

/** One row of integer weights per value; one word per report, its upper 62 bits are the draw. */
class Table {
  static fields = ["bits", "weights"];

  constructor({ bits, weights }) {
    need(bits === Number(TOTAL_BITS), "mechanism.bits", `rows add up to 2**${TOTAL_BITS}`);
    need(Array.isArray(weights) && weights.length > 0, "mechanism.weights", "should be a matrix");
    this.weights = weights.map((row) => wholes(row, "mechanism.weights"));
    this.outputs = this.weights[0].length;
    const good = (row) => row.length === this.outputs && row.every((w) => w >= 0n) && sum(row) === TOTAL;
    need(this.weights.every(good), "mechanism.weights", `rows should add up to 2**${TOTAL_BITS}`);
    need(
      transpose(this.weights).every((c) => sum(c) > 0n),
      "mechanism.weights",
      "an output never happens",
    );
    this.size = this.weights.length;
    this.draws = 1;
  }

  sample(code, [word]) {
    return scan(this.weights[code], word);
  }

  likelihoods(report) {
    return this.weights.map((row) => Number(row[report]) / Number(TOTAL));
  }

  lifts(priors, secret) {
    return tableLifts(this.weights, priors, secret);
  }
}

/** A table whose rows are shared: value `x` is reported by row `rows[x]`. */
class Grouped {
  static fields = ["bits", "weights", "rows"];
  static ofValue = true;
  static onePrior = true;

  constructor(parameters) {
    this.table = new Table(parameters);
    this.rows = parameters.rows;
    const used = Array.isArray(this.rows) && new Set(this.rows);
    const good =
      used && used.size === this.table.size && this.rows.every((g) => Number.isInteger(g) && g >= 0 && g < used.size);
    need(good, "mechanism.rows", "should use every row of the table, and no other");
    this.size = this.rows.length;
    this.outputs = this.table.outputs;
    this.draws = 1;
  }

  sample(code, words) {
    return this.table.sample(this.rows[code], words);
  }

  likelihoods(report) {
    const each = this.table.likelihoods(report);
    return this.rows.map((group) => each[group]);
  }

  lifts([prior]) {
    return this.table.lifts([massOf(this.rows, prior, this.table.size)], null);
  }
}

/** The mass of every group: `groups[x]` is the group of value `x`. */
function massOf(groups, weights, count) {
  const masses = Array(count).fill(0n);
  groups.forEach((group, x) => {
    masses[group] += weights[x];
  });
  return masses;
}

/** The number of partial sums of a row that are at most the draw. */
function scan(row, word) {
  const draw = word >> (64n - TOTAL_BITS);
  let [partial, report] = [0n, 0];
  for (const weight of row) {
    partial += weight;
    report += partial <= draw ? 1 : 0;
  }
  return report;
}

const transpose = (rows) => rows[0].map((_, y) => rows.map((row) => row[y]));
const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0n);

/** The exact extremes of a table: the lift of the secret (without one, of the value itself), and the ratio in a column. */
function tableLifts(rows, priors, secret) {
  const found = { lowest: ONE, highest: ONE, ldp: ONE };
  for (const column of transpose(rows)) {
    const chances = secret ? secret.map((t) => [dot(t, column), sum(t)]) : column.map((w) => [w, 1n]);
    const [bottom, top] = [least(chances), most(chances)];
    for (const prior of priors) {
      const mean = [dot(prior, column), sum(prior)];
      found.lowest = least([found.lowest, over(bottom, mean)]);
      found.highest = most([found.highest, over(top, mean)]);
    }
    found.ldp = widest(found.ldp, largest(column), smallest(column));
  }
  return found;
}

const over = (a, b) => [a[0] * b[1], a[1] * b[0]];
const widest = (ratio, top, bottom) => (ratio === null || bottom === 0n ? null : most([ratio, [top, bottom]]));

/**
 * One order of an arc mechanism: segments of a line, the last of them bent into a circle. Three words: the coin, the place
 * and the shift; see the Python module `priorveil.mechanisms.arc.line`, which describes the sampler, and `arc.certificate`,
 * which proves it.
 */
class ArcLine {
  constructor(parameters, circle) {
    for (const name of ["start", "window", "keep"]) this[name] = whole(parameters[name], `mechanism.${name}`);
    this.lengths = wholes(parameters.lengths, "mechanism.lengths");
    this.order = [...parameters.owners, ...circle];
    this.heavy = parameters.owners.length;
    this.bits = BigInt(index(parameters.bits, "mechanism.bits"));
    this.size = this.lengths.length;
    this.#check();
    this.outputs = this.heavy + Number(this.circumference);
  }

  #check() {
    const { order, heavy, size, lengths } = this;
    const field = (name) => `mechanism.${name}`;
    need(this.bits > 0n && this.bits <= 52n, field("bits"), "the line has at most 2**52 places");
    this.places = 1n << this.bits;
    need(lengths.every((n) => n >= 1n) && sum(lengths) === this.places, field("lengths"), "should fill the line");
    const permutation = order.length === size && new Set(order).size === size;
    need(
      permutation && order.every((x) => Number.isInteger(x) && x >= 0 && x < size),
      field("circle"),
      "should have the values that are not owners, each once",
    );
    this.edges = [0n];
    for (const x of order) this.edges.push(this.edges.at(-1) + lengths[x]);
    this.starts = Array(size);
    order.forEach((x, rank) => {
      this.starts[x] = this.edges[rank];
    });
    const lends = heavy > 0 && heavy < size && this.edges[heavy - 1] < this.start && this.start < this.edges[heavy];
    need(
      this.start === this.edges[heavy] || lends,
      field("start"),
      "the circle begins in or after the last heavy segment",
    );
    this.circumference = this.places - this.start;
    const fits =
      this.circumference === 0n ? this.window === 0n : this.window >= 1n && this.window <= this.circumference;
    need(fits, field("window"), "should fit the circle");
    need(this.keep >= 0n && this.keep < WORD, field("keep"), "should be below 2**64");
    need(BigInt(heavy) + this.circumference < LARGEST_REPORT, field("bits"), "reports must stay below 2**53");
  }

  sample(code, [coin, place, shift]) {
    const own = this.starts[code] + ((place * this.lengths[code]) >> 64n);
    const fresh = place >> (64n - this.bits);
    const t = coin < this.keep ? own : fresh;
    let moved = t - this.start - ((shift * this.window) >> 64n);
    if (moved < 0n) moved += this.circumference;
    return t < this.start ? this.#owner(t) : this.heavy + Number(moved);
  }

  #owner(t) {
    return this.edges.slice(1, this.heavy).filter((edge) => edge <= t).length;
  }

  /** How many places an owned output has: all of its segment, unless the last one lends. */
  #ownPlaces(rank) {
    return (rank === this.heavy - 1 ? this.start : this.edges[rank + 1]) - this.edges[rank];
  }

  likelihoods(report) {
    const [keep, places] = [Number(this.keep) / Number(WORD), Number(this.places)];
    const owned = report < this.heavy;
    const size = owned ? Number(this.#ownPlaces(report)) : 1;
    return this.lengths.map((length, x) => {
      const chance = owned ? (x === this.order[report] ? size / Number(length) : 0) : this.#circleChance(x, report);
      return ((1 - keep) * size) / places + keep * chance;
    });
  }

  /** The chance that value `x`, if it is used, ends on this place of the circle: its places within the window, over both. */
  #circleChance(x, report) {
    const [from, length] = [BigInt(report - this.heavy), this.lengths[x]];
    const [first, last] = [largest([this.starts[x] - this.start, 0n]), this.starts[x] + length - this.start];
    let inside = overlap(from, from + this.window, first, last);
    inside += overlap(from - this.circumference, from - this.circumference + this.window, first, last);
    return Number(inside) / (Number(length) * Number(this.window));
  }

  /** In the order of this line, or in every order of the values on its circle. */
  lifts([prior], everyOrder = false) {
    const { boost, low, high } = this.#terms(prior, everyOrder);
    const [used, fresh] = [this.keep, WORD - this.keep];
    const one = 1n << ARC_PLACES;
    const ceilings = boost.map((top, i) => ceil((fresh * one + used * top) << ARC_PLACES, fresh * one + used * low[i]));
    const ldp = [fresh * one + used * largest(boost), fresh * one];
    return { lowest: [fresh * one, fresh * one + used * largest(high)], highest: [largest(ceilings), one], ldp };
  }

  /** Bounds of the largest and of the mean chance of each owned output and of the circle, in units of its size. */
  #terms(prior, everyOrder) {
    const n = this.order.map((x) => prior[x]);
    const [total, M] = [sum(n), this.places];
    const owned = this.order.slice(0, this.heavy).map((_, rank) => this.#ownTerms(rank, n[rank], total));
    const terms = this.circumference === 0n ? owned : [...owned, this.#circleTerms(n, total, M, everyOrder)];
    return { boost: terms.map((t) => t.boost), low: terms.map((t) => t.low), high: terms.map((t) => t.high) };
  }

  #ownTerms(rank, weight, total) {
    const size = this.#ownPlaces(rank);
    const own = ceil(size * WORD, this.edges[rank + 1] - this.edges[rank]);
    const top = own * (this.places << ARC_PLACES);
    const [mean, scale] = [top * weight, size * WORD * total];
    return { boost: ceil(top, size * WORD), low: mean / scale, high: ceil(mean, scale) };
  }

  #circleTerms(n, total, M, everyOrder) {
    const first = this.heavy - (this.start < this.edges[this.heavy] ? 1 : 0);
    const before = [0n];
    for (const weight of n) before.push(before.at(-1) + weight);
    const drift = before.map((b, i) => b * M - this.edges[i] * total).slice(first);
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

function overlap(from, to, first, last) {
  const inside = smallest([to, last]) - largest([from, first]);
  return inside > 0n ? inside : 0n;
}

/** Arcs of a circle in one public order. */
class Arc extends ArcLine {
  static ofValue = true;
  static onePrior = true;
  static fields = ["bits", "lengths", "owners", "circle", "start", "window", "keep"];

  constructor(parameters) {
    checkSegments(parameters);
    need(Array.isArray(parameters.circle), "mechanism.circle", "should be a list of codes");
    super(parameters, parameters.circle);
    this.draws = 3;
  }
}

function checkSegments({ lengths, owners }) {
  need(Array.isArray(lengths), "mechanism.lengths", "should be a list of whole numbers");
  const codes = Array.isArray(owners) && owners.every((x) => Number.isInteger(x) && x >= 0 && x < lengths.length);
  need(codes && new Set(owners).size === owners.length, "mechanism.owners", "should be codes of values, each once");
}

/**
 * Arcs of a circle in many public orders. A report takes one more word, the first, which picks the order; see the Python
 * modules `priorveil.mechanisms.arc.orders`, and `arc.line`, which says how orders are made of seeds and multipliers.
 */
class Orders {
  static ofValue = true;
  static onePrior = true;
  static fields = ["bits", "lengths", "owners", "count", "window", "keep"];
  draws = 4;

  constructor(parameters) {
    checkSegments(parameters);
    const { lengths, owners, count } = parameters;
    this.size = lengths.length;
    const own = new Set(owners);
    this.light = Array.from({ length: this.size }, (_, x) => x).filter((x) => !own.has(x));
    need(this.light.length > 0, "mechanism.owners", "should leave some values for the circle");
    need(
      Number.isInteger(count) && count >= 1 && count <= MOST_ORDERS && (count & (count - 1)) === 0,
      "mechanism.count",
      "should be a power of two",
    );
    this.count = count;
    this.prime = primeAbove(this.light.length);
    this.span = 2 ** index(parameters.bits, "mechanism.bits");
    need(count * this.span <= Number(LARGEST_REPORT), "mechanism.bits", "reports must stay below 2**53");
    const start = sum(owners.map((x) => whole(lengths[x], "mechanism.lengths")));
    this.parameters = { ...parameters, start: String(start) };
    this.base = new ArcLine(this.parameters, this.light); // checks the segments, the window and the coin
    this.outputs = (count - 1) * this.span + this.base.outputs;
  }

  /** The line with its circle in order `i`: shuffled by a seed, then sorted by multiples of the ranks. */
  #line(i) {
    const half = Math.max(1, Math.floor(this.prime / 2));
    const [seed, at] = [Math.floor(i / half), i % half];
    const left = Math.min(half, this.count - seed * half);
    const multiplier = 1 + Math.floor(((2 * at + 1) * half) / (2 * left));
    const keys = new Map(this.light.map((x) => [x, shuffleKey(seed, x)]));
    const shuffled = [...this.light].sort((x, y) =>
      keys.get(x) < keys.get(y) ? -1 : keys.get(x) > keys.get(y) ? 1 : x - y,
    );
    const place = shuffled.map((x, rank) => [(multiplier * (rank + 1)) % this.prime, x]);
    const circle = place.sort((a, b) => a[0] - b[0]).map(([, x]) => x);
    return new ArcLine(this.parameters, circle);
  }

  sample(code, words) {
    const i = Number(words[0] & BigInt(this.count - 1));
    return i * this.span + this.#line(i).sample(code, words.slice(1));
  }

  likelihoods(report) {
    return this.#line(Math.floor(report / this.span))
      .likelihoods(report % this.span)
      .map((chance) => chance / this.count);
  }

  /** The order is public and drawn without looking at the value, and the bounds hold for every order. */
  lifts(priors) {
    return this.base.lifts(priors, true);
  }
}

const MOST_ORDERS = 1 << 16;

function primeAbove(n) {
  const divided = (p) => {
    for (let q = 2; q * q <= p; q += 1) if (p % q === 0) return true;
    return false;
  };
  let p = Math.max(2, n + 1);
  while (divided(p)) p += 1;
  return p;
}

const shuffleKey = (seed, x) => mix((BigInt(seed) + BigInt(x + 1) * STEP) & MASK);

/** A row of bits, one of them set, each flipped at random: `noise_bits` words for every 64 bits, then one. */
class Unary {
  static fields = ["masses", "noise", "noise_bits", "drop"];
  static ofValue = true;

  constructor({ masses, noise, noise_bits: noiseBits, drop }) {
    need(Number.isInteger(noiseBits) && noiseBits >= 1 && noiseBits <= 62, "mechanism.noise_bits", "should be 1 to 62");
    this.noise = BigInt(index(noise, "mechanism.noise"));
    need(this.noise > 0n && this.noise < 1n << BigInt(noiseBits), "mechanism.noise", "should be below 2**noise_bits");
    this.drop = whole(drop, "mechanism.drop");
    need(this.drop > 0n && this.drop < TOTAL, "mechanism.drop", "should be below 2**62");
    this.noiseBits = noiseBits;
    this.size = checkMasses(masses).length;
    this.width = Math.ceil(this.size / 64);
    this.draws = this.width * noiseBits + 1;
    this.odds = [((1n << BigInt(noiseBits)) - this.noise) * (TOTAL - this.drop), this.noise * this.drop];
    need(!less(this.odds, ONE), "mechanism.drop", "a set bit must favour its value");
  }

  /** The words of the report as little-endian hexadecimal. */
  sample(code, words) {
    let bits = 0n;
    for (let block = 0; block < this.width; block += 1) {
      bits |= this.#mixNoise(words.slice(block * this.noiseBits, (block + 1) * this.noiseBits)) << BigInt(64 * block);
    }
    bits &= (1n << BigInt(this.size)) - 1n;
    const kept = words.at(-1) >> 2n < TOTAL - this.drop ? 1n : 0n;
    const place = BigInt(code);
    bits = (bits & ~(1n << place)) | (kept << place);
    return hex(Uint8Array.from({ length: 8 * this.width }, (_, i) => Number((bits >> BigInt(8 * i)) & 255n)));
  }

  #mixNoise(levels) {
    return levels.reduce((bits, word, level) => ((this.noise >> BigInt(level)) & 1n ? bits | word : bits & word), 0n);
  }

  likelihoods(report) {
    return bitLikelihoods(this, report);
  }

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
class Subset {
  static fields = ["masses", "subset_size", "keep"];
  static ofValue = true;

  constructor({ masses, subset_size: count, keep }) {
    this.size = checkMasses(masses).length;
    need(Number.isInteger(count) && count >= 1 && count < this.size, "mechanism.subset_size", "should be 1 to d - 1");
    this.keep = whole(keep, "mechanism.keep");
    need(this.keep > 0n && this.keep < TOTAL, "mechanism.keep", "should be below 2**62");
    this.members = count;
    this.width = Math.ceil(this.size / 64);
    this.draws = 1 + count;
    this.odds = [this.keep * BigInt(this.size - count), (TOTAL - this.keep) * BigInt(count)];
    need(!less(this.odds, ONE), "mechanism.keep", "a set must favour its values");
  }

  /** The words of the report as little-endian hexadecimal. A word that would make a draw uneven gives the first values. */
  sample(code, words) {
    const bytes = new Uint8Array(8 * this.width);
    const add = (value) => {
      bytes[value >> 3] |= 1 << (value & 7);
    };
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

  likelihoods(report) {
    return bitLikelihoods(this, report);
  }

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

/** The prior that scores reports of bits: positive integers. */
function checkMasses(masses) {
  const listed = wholes(masses, "mechanism.masses");
  need(
    listed.length > 1 && listed.every((m) => m >= 1n) && sum(listed) <= TOTAL,
    "mechanism.masses",
    "should be positive",
  );
  return listed;
}

/** How likely a report of bits is for each value, up to a factor: a set bit favours its value by the odds. */
function bitLikelihoods({ odds, size }, report) {
  const ratio = Number(odds[0]) / Number(odds[1]);
  const byte = (i) => parseInt(report.slice(2 * i, 2 * i + 2), 16);
  return Array.from({ length: size }, (_, x) => ((byte(x >> 3) >> (x & 7)) & 1 ? ratio : 1));
}

/** A public pool of hash functions: two words, the first picks the seed, the second goes to the table of its groups. */
class PooledHash {
  static fields = ["weights", "seeds", "groups", "fresh"];
  static ofValue = true;
  static onePrior = true;

  constructor({ weights, seeds, groups, fresh }) {
    this.weights = wholes(weights, "mechanism.weights");
    need(
      this.weights.every((w) => w >= 1n),
      "mechanism.weights",
      "should be positive",
    );
    this.seeds = wholes(seeds, "mechanism.seeds");
    const count = this.seeds.length;
    need((count & (count - 1)) === 0, "mechanism.seeds", "should be a power of two of them");
    need(
      this.seeds.every((s) => s >= 0n && s < WORD),
      "mechanism.seeds",
      "should be below 2**64",
    );
    this.#checkGroups(groups, count);
    this.fresh = whole(fresh, "mechanism.fresh");
    need(this.fresh >= 0n && this.fresh < TOTAL, "mechanism.fresh", "should be below 2**62");
    this.size = this.weights.length;
    this.reported = groups.flat().reduce((a, b) => Math.max(a, b)) + 1;
    this.outputs = count * this.reported;
    this.draws = 2;
  }

  #checkGroups(groups, count) {
    need(Array.isArray(groups) && groups.length === count, "mechanism.groups", "should have a row for each seed");
    this.bins = groups[0]?.length;
    const good = (row) =>
      Array.isArray(row) &&
      row.length === this.bins &&
      row.every((g) => Number.isInteger(g) && g >= 0 && g < this.bins);
    need(this.bins > 0 && groups.every(good), "mechanism.groups", "should be rows of whole numbers");
    this.groups = groups;
  }

  /** The group of every value under a seed. */
  #groupsOf(i) {
    const [a, b] = coefficients(this.seeds[i]);
    return this.weights.map((_, x) => this.groups[i][hashBin(a, b, x, this.bins)]);
  }

  /** The truth, or with probability `fresh / 2**62` a draw from the prior: the row of a group under a seed. */
  #table(assigned) {
    const masses = massOf(assigned, this.weights, this.reported);
    const total = sum(masses);
    const common = masses.map((mass) => (this.fresh * mass) / total);
    const rest = TOTAL - sum(common);
    return common.map((_, b) => common.map((w, y) => (b === y ? w + rest : w)));
  }

  sample(code, [pick, word]) {
    const i = Number(pick & BigInt(this.seeds.length - 1));
    const assigned = this.#groupsOf(i);
    return i * this.reported + scan(this.#table(assigned)[assigned[code]], word);
  }

  likelihoods(report) {
    const assigned = this.#groupsOf(Math.floor(report / this.reported));
    const table = this.#table(assigned);
    return assigned.map((group) => Number(table[group][report % this.reported]) / Number(TOTAL) / this.seeds.length);
  }

  lifts([prior]) {
    const found = this.seeds.map((_, i) => this.#seedLifts(i, prior));
    const ratios = found.map((f) => f.ldp);
    const ldp = ratios.includes(null) ? null : most(ratios);
    return { lowest: least(found.map((f) => f.lowest)), highest: most(found.map((f) => f.highest)), ldp };
  }

  /** The seed is public, so each is a channel of its own, on the groups that hold some value. */
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

/** Stafford's thirteenth variant of the SplitMix64 finaliser. */
function mix(word) {
  let z = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

const STEP = 0x9e3779b97f4a7c15n;

function coefficients(seed) {
  const first = (seed + STEP) & MASK;
  return [mix(first), mix((first + STEP) & MASK)];
}

const hashBin = (a, b, x, bins) => Number(((((a * BigInt(x) + b) & MASK) >> 32n) * BigInt(bins)) >> 32n);

const MECHANISMS = {
  table: Table,
  grouped: Grouped,
  arc: Arc,
  orders: Orders,
  unary: Unary,
  subset: Subset,
  hashing: PooledHash,
};

// -- plans ---------------------------------------------------------------------------------------------------------

/**
 * A plan that was checked. Made by `readPlan` only.
 *
 * `levels` are the proven ones, in natural logarithms: `lip` of what `protects` names ("value" or "secret") under the prior, and
 * `ldp` of the value itself whatever is known. `proof` is "budget" where the whole certificate was proven again, and "ldp"
 * where only that level could be; `lip` is then `ldp`, which implies it. `priorAssumed` says that nobody knows the prior: `lip`
 * then holds only if it is right. `outputs` is how many reports a table can make, from 0 on; null for other mechanisms. `numbers` is
 * null, or says how a number becomes a value; `attributes` is null, or has the name, the labels and the numbers of each attribute.
 */
class Plan {
  #mechanism;
  #domain;

  constructor(document, domain, mechanism, proven) {
    this.#mechanism = mechanism;
    this.#domain = domain;
    this.document = document;
    this.id = document.id;
    this.labels = domain.labels;
    this.numbers = domain.numbers;
    this.attributes = domain.attributes;
    this.refusesNumbers = domain.refusesNumbers;
    this.kind = document.mechanism.kind;
    this.draws = mechanism.draws + domain.draws;
    this.words = mechanism.width ?? 1;
    this.reportsBits = mechanism.width !== undefined;
    this.outputs = mechanism instanceof Table || mechanism instanceof Grouped ? mechanism.outputs : null;
    this.prior = probabilities(document.prior);
    this.priorAssumed = document.prior.assumed === true;
    this.protects = document.secret === null ? "value" : "secret";
    Object.assign(this, proven);
    Object.freeze(this);
  }

  /** The code of a value: that of its label, of its cell, or of a point next to it that is drawn at random. */
  code(value, source = systemWords) {
    return this.#domain.code(value, source); // the value itself stays out of messages
  }

  /** The report of one value as it is written in JSON. `source(count)` gives words; leave it out for real answers. */
  privatize(value, source = systemWords) {
    const code = this.code(value, source);
    return this.#mechanism.sample(code, source(this.#mechanism.draws));
  }

  /** For every value how likely it would have made this report, up to one factor common to all. */
  likelihoods(report) {
    need(this.accepts(report), "report", "this plan cannot have made it");
    return this.#mechanism.likelihoods(report);
  }

  /**
   * For every value its share of the people who send this report, if values are as common as the prior says; all equally
   * common where there is no single prior.
   */
  posterior(report) {
    const joint = this.likelihoods(report).map((chance, x) => chance * (this.prior?.[x] ?? 1));
    const total = joint.reduce((a, b) => a + b);
    return joint.map((mass) => mass / total);
  }

  /** Whether this plan can have made a report. */
  accepts(report) {
    const { outputs, width, size, members, base, span } = this.#mechanism;
    if (width === undefined) {
      const inside = Number.isSafeInteger(report) && report >= 0 && report < outputs;
      return inside && (base === undefined || report % span < base.outputs); // each order has its own places
    }
    if (typeof report !== "string" || report.length !== 16 * width || !/^[0-9a-f]+$/.test(report)) return false;
    const bits = report.match(/../g).reduceRight((total, byte) => (total << 8n) | BigInt(`0x${byte}`), 0n);
    const ones = bits.toString(2).replaceAll("0", "").length;
    return bits >> BigInt(size) === 0n && (members === undefined || ones === members);
  }
}

const PLAN = [
  ..."id format version labels prior secret budget notion query mechanism certificate".split(" "),
  ..."expected_mse lower_bound no_report method why".split(" "),
];

/** Read a plan from its document or text: check its id, prove its certificate again, or refuse it with the field. */
export async function readPlan(given, { id } = {}) {
  const document = deepFreeze(parseDocument(given));
  need(document.format === "priorveil-plan", "format", "not a plan");
  need(document.version === 1, "version", "not known here; this client reads 1");
  checkFields(document, Object.hasOwn(document, "reading_prior") ? [...PLAN, "reading_prior"] : PLAN, "");
  const domain = readDomain(document.labels, "labels");
  await checkId(document, id);
  checkWords(document);
  nameOf(document.query, "query"); // a device samples; what is asked matters to those who read the reports
  const size = domain.labels.length;
  checkReadingPrior(document, size);
  const mechanism = readMechanism(document, size);
  return new Plan(document, domain, mechanism, proveCertificate(document, size, mechanism));
}

// -- domains: what a value may be, and which code it has; the table in docs/values.md has the rule ----------------------

const BLANKS = /^[ \t\r\n]+|[ \t\r\n]+$/g;
const NUMBER = /^([+-]?)(?:([0-9]{1,40})(?:\.([0-9]{0,40}))?|\.([0-9]{1,40}))(?:e([+-]?[0-9]{1,3}))?$/i;
// A comma before exactly three digits may be a decimal mark or stand between thousands, except after a zero.
const DECIMAL_COMMA = /^([+-]?(?:[0-9]*(?=,(?![0-9]{3}(?![0-9])))|0*)),([0-9]+(?:e[+-]?[0-9]+)?)$/i;
const SEPARATED = /^[+-]?[0-9]+(?:[.,'’ \u00a0\u202f\u066c_][0-9]+)+$/;
const AMBIGUOUS = "an ambiguous number: write 1234.5 or 1234,5, without separators of thousands";
const LARGEST_NUMBER = 1e100;

/** What decides which label a value is: the same text for equal values; null if it is missing, undefined if it is no label. */
function valueKey(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return null;
  if (typeof value === "boolean") return `truth ${value}`;
  if (typeof value === "number" || typeof value === "bigint") return decimalKey(String(value));
  if (Array.isArray(value)) {
    const keys = value.map(valueKey);
    return keys.includes(null) ? null : keys.includes(undefined) ? undefined : JSON.stringify(keys);
  }
  if (typeof value !== "string") return undefined;
  const text = value.replace(BLANKS, "");
  return text === "" ? null : (decimalKey(text) ?? `text ${text}`);
}

/** A number with a point for its decimal comma; any other text as it is. */
const decimalPoint = (text) => text.replace(DECIMAL_COMMA, "$1.$2");

/** A value with a point for a decimal comma, where a number is expected; a text such as a list of codes has none. */
function withDecimalPoints(value) {
  if (Array.isArray(value)) return value.map(withDecimalPoints);
  return typeof value === "string" ? decimalPoint(value.replace(BLANKS, "")) : value;
}

/**
 * The number that a person typed, with a point or a comma as its decimal mark; an error with the field "value" if it is none.
 *
 * In a document a point is a decimal mark. People write points between thousands too, so a point or a comma before exactly
 * three digits is refused here, except after a zero.
 */
export function readNumber(typed) {
  const text = withLatinDigits(String(typed)).replace(BLANKS, "");
  const plain = decimalPoint(text);
  const swapped = text.replace(/[.,]/g, (mark) => (mark === "." ? "," : "."));
  const unclear = /^[+-]?[0-9]+\.[0-9]+$/.test(text) && decimalPoint(swapped) === swapped;
  const key = unclear ? undefined : decimalKey(plain);
  need(key !== undefined, "value", unclear || SEPARATED.test(text) ? AMBIGUOUS : "should be a number");
  return Number(plain);
}

/** Arabic and Persian digits, and the Arabic decimal mark and minus, as Latin ones. */
function withLatinDigits(text) {
  const digits = text.replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => String(digit.codePointAt(0) & 15));
  const plain = digits.replace(/[\u200e\u200f\u061c]/g, "").replaceAll("\u2212", "-");
  // This mark stands only before decimals, so 1.234 is not ambiguous here: with another zero it is not taken for thousands.
  return plain.replace(/^([+-]?[0-9]+)\u066b([0-9]+)$/, (_, whole, part) => `${whole}.${part}0`);
}

/** A decimal number without the zeros around its digits; undefined if the text is none. */
function decimalKey(text) {
  const match = NUMBER.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", part = "", only = "", exponent = "0"] = match;
  const digits = (whole + part + only).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  const power = Number(exponent) - part.length - only.length + digits.length - short.length;
  return short === "" ? "number 0" : `number ${sign === "-" ? "-" : ""}${short}e${power}`;
}

/** The truth value that a label takes besides its own key. */
function truthKey(key) {
  const word = key.toLowerCase();
  if (word === "text true" || key === "number 1e0") return "truth true";
  return word === "text false" || key === "number 0" ? "truth false" : undefined;
}

/** Words and numbers, or lists of them: a value is the label that has the same key. */
class Labels {
  #codes = new Map();

  constructor(labels, field) {
    Object.assign(this, { labels, numbers: null, attributes: null, draws: 0, refusesNumbers: false });
    labels.forEach((label, code) => {
      const key = valueKey(label);
      need(key !== null, field, "an empty text means a missing value");
      for (const own of [key, truthKey(key)].filter((k) => k !== undefined)) {
        need(!this.#codes.has(own), field, "values cannot tell two of the labels apart");
        this.#codes.set(own, code);
      }
    });
  }

  code(value) {
    const key = valueKey(value);
    need(key !== null, "value", "it is missing");
    const code = this.#codes.get(key) ?? this.#codes.get(valueKey(withDecimalPoints(value)));
    need(code !== undefined, "value", "not one of this plan's labels");
    return code;
  }
}

/** Numbers: points of a grid, to which they are rounded at random, or cells between edges. */
class NumberDomain {
  constructor({ kind, outside, ...given }, field) {
    need(["refuse", "ends"].includes(outside), `${field}.outside`, "should be refuse or ends");
    const texts = given[NUMBERS[kind]];
    need(Array.isArray(texts), field, "should be a list of numbers");
    const bounds = Object.freeze(texts.map((text) => real(text, field)));
    const sound = (v, i) => Math.abs(v) <= LARGEST_NUMBER && !Object.is(v, -0) && (i === 0 || v > bounds[i - 1]);
    need(bounds.length > 1 && bounds.every(sound), field, "should be two or more increasing numbers");
    const text = bounds.map(edgeText);
    const last = text.length - 2;
    const cells = text.slice(1).map((end, i) => `[${text[i]}, ${end}${i === last ? "]" : ")"}`);
    this.labels = kind === "grid" ? bounds : Object.freeze(cells);
    this.numbers = Object.freeze({ kind, bounds, outside });
    this.attributes = null;
    this.rounds = kind === "grid";
    this.draws = this.rounds ? 1 : 0;
    this.refusesNumbers = outside === "refuse";
  }

  /** The number that a value is, moved to the nearest end if it is outside the range. */
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
    const inside = number >= bounds[0] && number <= bounds.at(-1);
    need(inside || !this.refusesNumbers, "value", "outside the range of this plan");
    return Math.min(Math.max(number, bounds[0]), bounds.at(-1));
  }

  code(value, source) {
    const x = this.read(value);
    const { bounds } = this.numbers;
    const lower = cellOf(bounds, x);
    return this.rounds && roundsUp(x, bounds[lower], bounds[lower + 1], source) ? lower + 1 : lower;
  }
}

const EDGE_DIGITS = 12;

/** An edge as it stands in the label of a cell, with as many digits as Python gives it: 0.3 for 0.1 + 0.2. */
function edgeText(value) {
  const [digits, exponent] = value.toExponential(EDGE_DIGITS - 1).split("e");
  const power = Number(exponent);
  const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < EDGE_DIGITS) return short(value.toFixed(EDGE_DIGITS - 1 - power));
  return `${short(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

const NUMBERS = { grid: "points", cells: "edges" };

/** The cell of a number in the range; a number on an edge belongs to the cell above it, the last to the last. */
const cellOf = (bounds, x) => Math.min(bounds.filter((v) => v <= x).length, bounds.length - 1) - 1;

/** Several attributes: a value has a level of each, and a number is rounded between the points that its group has. */
class Joint {
  #parts;
  #codes = new Map(); // by the positions of the levels
  #points = new Map(); // of each group, for each attribute: the positions of its points

  constructor({ attributes, cells }, field) {
    need(Array.isArray(attributes) && attributes.length > 0, field, "should have attributes");
    for (const part of attributes) checkFields(part, ["name", "levels"], field);
    const names = attributes.map(({ name }) => name);
    const named = names.every((name) => typeof name === "string") && new Set(names).size === names.length;
    need(named, field, "should have different names");
    this.#parts = attributes.map(({ levels }) => readDomain(levels, field));
    const flat = this.#parts.every((part) => part.attributes === null && !part.labels.some(Array.isArray));
    need(flat, field, "a level should be a name or a number");
    need(Array.isArray(cells) && cells.length > 0, field, "should have cells");
    cells.forEach((cell, code) => this.#add(cell, code, field));
    this.#checkGroups(field);
    this.labels = Object.freeze(cells.map((cell) => Object.freeze(cell.map((at, i) => this.#parts[i].labels[at]))));
    this.numbers = null;
    this.attributes = Object.freeze(
      this.#parts.map(({ labels, numbers }, i) => Object.freeze({ name: names[i], labels, numbers })),
    );
    this.draws = this.#parts.reduce((total, part) => total + part.draws, 0);
    this.refusesNumbers = this.#parts.some((part) => part.refusesNumbers);
  }

  #group = (places) => places.map((at, i) => (this.#parts[i].rounds ? "" : at)).join();

  #add(cell, code, field) {
    const fits = Array.isArray(cell) && cell.length === this.#parts.length;
    const inside = (at, i) => Number.isSafeInteger(at) && at >= 0 && at < this.#parts[i].labels.length;
    need(fits && cell.every(inside) && !this.#codes.has(cell.join()), field, "should have different cells");
    this.#codes.set(cell.join(), code);
    const group = this.#group(cell);
    if (!this.#points.has(group)) this.#points.set(group, cell.map(() => new Set()));
    cell.forEach((at, i) => this.#points.get(group)[i].add(at));
  }

  /** Every level of a name occurs, in order; and every number of the range can be rounded in every group. */
  #checkGroups(field) {
    this.#parts.forEach((part, i) => {
      if (part.numbers !== null) return;
      const order = [...new Set([...this.#codes.keys()].map((cell) => Number(cell.split(",")[i])))];
      const whole = order.length === part.labels.length && order.every((at, place) => at === place);
      need(whole, field, "the levels should be those of the cells, in their order");
    });
    let size = 0;
    for (const [group, points] of this.#points) {
      this.#parts.forEach((part, i) => {
        const ends = !part.rounds || (points[i].has(0) && points[i].has(part.labels.length - 1));
        need(ends, field, "a group lacks an end of the grid");
      });
      size += points.reduce((product, own) => product * own.size, 1);
      this.#points.set(group, points.map((own) => [...own].sort((a, b) => a - b)));
    }
    need(size === this.#codes.size, field, "a group lacks points of the grid");
  }

  code(value, source) {
    need(value !== null && value !== undefined, "value", "it is missing");
    const fits = Array.isArray(value) && value.length === this.#parts.length;
    need(fits, "value", "should be a list with a level of each attribute");
    const levels = this.#parts.map((part, i) => (part.rounds ? part.read(value[i]) : part.code(value[i], source)));
    const points = this.#points.get(this.#group(levels));
    need(points !== undefined, "value", "a combination that this plan leaves out");
    const places = levels.map((level, i) => {
      if (!this.#parts[i].rounds) return level;
      const own = points[i].map((at) => this.#parts[i].labels[at]);
      const lower = cellOf(own, level);
      return points[i][roundsUp(level, own[lower], own[lower + 1], source) ? lower + 1 : lower];
    });
    return this.#codes.get(places.join());
  }
}

/** The domain of a document: a list of labels, the numbers of a grid or of cells, or several attributes. */
function readDomain(given, field) {
  if (Array.isArray(given)) return new Labels(namesOf(given, field), field);
  const kind = given?.kind;
  const joint = kind === "joint";
  need(joint || hasKind(NUMBERS, kind), field, "should be different names, numbers of a grid or of cells, or attributes");
  checkFields(given, joint ? ["kind", "attributes", "cells"] : ["kind", NUMBERS[kind], "outside"], field);
  return joint ? new Joint(given, field) : new NumberDomain(given, field);
}

/**
 * True with probability exactly `(x - low) / (high - low)`: a uniform number is drawn a word at a time until it differs from that
 * fraction. One word nearly always suffices.
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

/** Labels are texts, numbers, or lists of these; one that is not a whole number is written {"number": text}. */
function namesOf(labels, field) {
  const level = (l) => {
    if (typeof l === "string" || Number.isSafeInteger(l)) return l;
    checkFields(l, ["number"], field);
    const number = real(l.number, field);
    need(Number.isFinite(number), field, "should be finite");
    return number;
  };
  const good = Array.isArray(labels) && labels.length > 0 && new Set(labels.map(canonical)).size === labels.length;
  need(good && !labels.some((l) => l?.length === 0 && l !== ""), field, "should be different names");
  return Object.freeze(labels.map((l) => (Array.isArray(l) ? Object.freeze(l.map(level)) : level(l))));
}

/** What says nothing about privacy has to be sound, too: of the errors, their order. */
function checkWords({ method, why, ...document }) {
  need(typeof method === "string" && method !== "", "method", "should be a name");
  need(typeof why === "string", "why", "should be a text");
  const [bound, error, none] = ["lower_bound", "expected_mse", "no_report"].map((name) => real(document[name], name));
  const atMost = (a, b) => a <= b * (1 + 1e-9) + 1e-12;
  need(atMost(bound, error), "lower_bound", "lies above the expected error");
  need(error >= 0 && atMost(error, none), "expected_mse", "should lie between zero and the error without reports");
}

function nameOf(part, field) {
  const named = part !== null && typeof part === "object" && typeof part.name === "string" && part.name !== "";
  need(named, field, "should have a name");
  return part.name;
}

/** The sampler of a plan, if it can be certified for what the plan promises. */
function readMechanism({ mechanism: parameters, prior, secret, notion }, size) {
  const kind = parameters?.kind;
  need(hasKind(MECHANISMS, kind), "mechanism", "of an unknown kind");
  const made = MECHANISMS[kind];
  checkFields(parameters, ["kind", ...made.fields], "mechanism");
  const mechanism = new made(parameters);
  need(mechanism.size === size, "mechanism", "for another number of values than the plan has");
  const plain = secret === null && PROVEN.includes(notion?.name);
  need(plain || !made.ofValue, "mechanism", `${kind} is certified for LIP or LDP of the value itself`);
  need(prior?.kind === "fixed" || !made.onePrior, "mechanism", `${kind} is certified for one prior`);
  return mechanism;
}

/** A document, from its text or as it is. */
function parseDocument(given) {
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

const DEEPEST = 32; // more levels than any document has

/** A copy that nobody can change after it was checked. */
function deepFreeze(value, level = 0) {
  if (value === null || typeof value !== "object") return value;
  need(level < DEEPEST, "file", "nested too deeply");
  const copy = Array.isArray(value)
    ? value.map((member) => deepFreeze(member, level + 1))
    : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, deepFreeze(v, level + 1)]));
  return Object.freeze(copy);
}

const PROVEN = ["LIP", "LDP"]; // the notions whose budget is proven here; for all others, LDP is
const LARGEST_LEVEL = 700; // of a budget: beyond it only infinity, which promises nothing and says so

/**
 * The levels that could be proven: all that the certificate states, or LDP alone; an error if one of them is not as stated,
 * or the budget is broken.
 */
function proveCertificate(document, size, mechanism) {
  const { lower, upper } = readBudget(document.budget);
  const [priors, secret] = [readPriors(document.prior, size), readSecret(document.secret, size)];
  const notion = readNotion(document.notion);
  const { lipLower, lipUpper, ldp, level } = readCertificate(document.certificate, notion);
  const found = mechanism.lifts(priors ?? [Array(size).fill(1n)], priors && secret);
  const wrong = "the mechanism has another level than this: do not run it";
  need(isLevel(ldp, found.ldp), "certificate.ldp", wrong);
  if (priors) {
    need(isLevel(lipLower, inverse(found.lowest)), "certificate.lip_lower", wrong);
    need(isLevel(lipUpper, found.highest), "certificate.lip_upper", wrong);
  }
  const lip = Math.max(lipLower, lipUpper);
  need(level === ({ LIP: lip, LDP: ldp }[notion] ?? level), "certificate.level", wrong);
  const down = notion !== "LIP" || !priors || atMostExp(inverse(found.lowest), lower);
  const up = notion !== "LIP" || !priors || atMostExp(found.highest, upper);
  const apart = notion !== "LDP" || atMostExp(found.ldp, Math.min(lower, upper));
  need(down && up && apart, "certificate", "the mechanism leaks more than its budget: do not run it");
  if (priors && PROVEN.includes(notion)) return { levels: { lip, lipLower, lipUpper, ldp }, proof: "budget" };
  need(ldp < Infinity, "certificate", "this client cannot prove what it states; use the Python client");
  return { levels: { lip: ldp, lipLower: ldp, lipUpper: ldp, ldp }, proof: "ldp" };
}

/** How far belief may move; without a limit on one side at least, nothing would be promised. */
function readBudget(budget) {
  checkFields(budget, ["lower", "upper"], "budget");
  const [lower, upper] = ["lower", "upper"].map((side) => notNegative(budget[side], `budget.${side}`));
  const sides = [lower, upper].filter((side) => side < Infinity);
  need(sides.length > 0, "budget", "should have a finite side: it promises nothing");
  need(Math.max(...sides) <= LARGEST_LEVEL, "budget", `should be at most ${LARGEST_LEVEL}: it promises nothing`);
  return { lower, upper };
}

function readCertificate(certificate, notion) {
  checkFields(certificate, ["notion", "lip_lower", "lip_upper", "ldp", "level"], "certificate");
  need(certificate.notion === notion, "certificate.notion", "is not that of the plan");
  const stated = (name) => notNegative(certificate[name], `certificate.${name}`);
  const [lipLower, lipUpper, ldp, level] = ["lip_lower", "lip_upper", "ldp", "level"].map(stated);
  return { lipLower, lipUpper, ldp, level };
}

/** The notion's name. Of notions that are not proven here, the other fields are not read. */
function readNotion(notion) {
  const name = nameOf(notion, "notion");
  if (PROVEN.includes(name)) checkFields(notion, ["name"], "notion");
  return name;
}

const PRIORS = { fixed: ["weights"], finite: ["members"], interval: ["lower", "upper"], ball: ["weights", "radius"] };
const MAY_BE_ASSUMED = ["fixed", "finite", "ball"];

/** The priors that the certificate is about, where they can be listed; else null. */
function readPriors(prior, size) {
  need(hasKind(PRIORS, prior?.kind), "prior", "of an unknown kind");
  const assumed = MAY_BE_ASSUMED.includes(prior.kind) && Object.hasOwn(prior, "assumed");
  checkFields(prior, ["kind", ...PRIORS[prior.kind], ...(assumed ? ["assumed"] : [])], "prior");
  need(!assumed || prior.assumed === true, "prior.assumed", "should be true, or left out");
  if (prior.kind === "fixed") return [readWeights(prior.weights, size)];
  if (prior.kind === "finite") {
    need(Array.isArray(prior.members) && prior.members.length > 0, "prior.members", "should have a member");
    return prior.members.map((weights) => readWeights(weights, size));
  }
  if (prior.kind === "interval") checkInterval(prior, size);
  else {
    readWeights(prior.weights, size);
    need(notNegative(prior.radius, "prior.radius") <= 1, "prior.radius", "should be at most one");
  }
  return null;
}

const NEAR_SET = 1e-6; // how far outside a set a prior may lie that was computed from its members

/**
 * The prior that reports are read with, in plans for sets of priors; a device does not use it.
 *
 * Of a list of priors each probability has to lie between theirs.
 */
function checkReadingPrior({ prior, reading_prior: reading }, size) {
  if (reading === undefined) return;
  need(prior?.kind !== "fixed", "reading_prior", "belongs to a set of priors");
  need(reading?.kind === "fixed", "reading_prior", "should be one prior");
  readPriors(reading, size);
  readPriors(prior, size);
  const p = probabilities(reading);
  const between = (low, high) => p.every((share, x) => share >= low[x] - NEAR_SET && share <= high[x] + NEAR_SET);
  const inside = {
    finite({ members }) {
      const shares = members.map((weights) => probabilities({ kind: "fixed", weights }));
      const ends = (end) => p.map((_, x) => end(...shares.map((each) => each[x])));
      return between(ends(Math.min), ends(Math.max));
    },
    interval: ({ lower, upper }) => between(lower.map(Number), upper.map(Number)),
    ball({ weights, radius }) {
      const middle = probabilities({ kind: "fixed", weights });
      const distance = p.reduce((total, share, x) => total + Math.abs(share - middle[x]) / 2, 0);
      return distance <= Number(radius) + NEAR_SET;
    },
  };
  need(inside[prior.kind](prior), "reading_prior", "does not lie in the set of priors");
}

/** A prior as positive whole numbers without a common divisor. */
function readWeights(list, size) {
  const weights = wholes(list, "prior.weights");
  const positive = weights.length === size && weights.every((w) => w >= 1n);
  need(positive, "prior.weights", "should be positive, one for each value");
  need(weights.reduce(commonDivisor) === 1n, "prior.weights", "should have no common divisor");
  need(sum(weights) < smallest(weights) << 1075n, "prior.weights", "a value is less likely than any float");
  return weights;
}

/** The probabilities of the one prior of a plan; null where it has a set of priors. */
function probabilities({ kind, weights }) {
  if (kind !== "fixed") return null;
  const exact = weights.map(BigInt);
  const total = sum(exact);
  const shift = BigInt(Math.max(0, total.toString(2).length - 1000)); // larger whole numbers are no floats
  return Object.freeze(exact.map((weight) => Number(weight >> shift) / Number(total >> shift)));
}

function commonDivisor(a, b) {
  let [n, rest] = [a, b];
  while (rest > 0n) [n, rest] = [rest, n % rest];
  return n;
}

/** Ends from zero to one, none of them crossed, with some prior between them. */
function checkInterval({ lower, upper }, size) {
  const [low, high] = [lower, upper].map((ends) => shares(ends, size, "prior"));
  const ends = low.numbers.every((a, x) => a <= high.numbers[x] && high.numbers[x] > 0 && high.numbers[x] <= 1);
  need(ends, "prior", "should have ends from zero to one, the lower first");
  const between = low.total <= low.one && high.total >= high.one;
  need(between, "prior", "should have a prior between its ends");
}

/** The rows of all scenarios as integers over one power of two each; null where the value itself is the secret. */
function readSecret(secret, size) {
  if (secret === null) return null;
  need(Array.isArray(secret) && secret.length > 0, "secret", "should be a list of scenarios");
  return secret.flatMap((scenario) => {
    checkFields(scenario, ["labels", "rows"], "secret");
    const { rows } = scenario;
    const labels = namesOf(scenario.labels, "secret.labels");
    need(Array.isArray(rows) && rows.length === labels.length, "secret.rows", "should have a row for each secret");
    return rows.map((row) => distribution(row, size));
  });
}

/** A row that adds up to one, up to the rounding of floats. */
function distribution(row, size) {
  const { integers, total, one } = shares(row, size, "secret.rows");
  const off = total > one ? total - one : one - total;
  need(off << 46n <= one, "secret.rows", "should add up to one");
  return integers;
}

/** Finite numbers, zero or more, as floats and as integers over `one`, exactly. */
function shares(row, size, field) {
  need(Array.isArray(row) && row.length === size, field, "should have a number for each value");
  const numbers = row.map((text) => notNegative(text, field));
  need(numbers.every(Number.isFinite), field, "should be finite numbers");
  const fractions = numbers.map(exactFraction);
  const one = largest(fractions.map(([, d]) => d)); // powers of two
  const integers = fractions.map(([n, d]) => n * (one / d));
  return { numbers, integers, total: sum(integers), one };
}

// -- forms: what leaves the device ---------------------------------------------------------------------------------

const SHARE_BITS = 20n; // the shares of a slot's parts add up to 2**20, so that a part is drawn exactly

/** One report of a submission: about the attributes of its only part, or of the part that this device has drawn. */
class Slot {
  #weights;

  constructor(parts) {
    this.parts = Object.freeze(parts);
    this.#weights = parts.map(({ share }) => BigInt(share) << (TOTAL_BITS - SHARE_BITS));
    this.drawn = parts.length > 1;
    this.width = (this.drawn ? 1 : 0) + Math.max(...parts.map(({ plan }) => plan.words));
    Object.freeze(this);
  }

  /** The position of a part, by its share. It takes no random word where there is only one part. */
  draw(source = systemWords) {
    return this.drawn ? scan(this.#weights, source(1)[0]) : 0;
  }

  /** The report about a part as hexadecimal, of the same length for every part and value. */
  privatize(values, at, source = systemWords) {
    const { attributes, plan } = this.parts[at];
    const levels = attributes.map((name) => {
      need(values.has(name), "answers", `there is none for ${name}`);
      return values.get(name);
    });
    const report = plan.privatize(plan.attributes === null ? levels[0] : levels, source);
    const packed = typeof report === "string" ? report : wordText(report);
    return `${this.drawn ? wordText(at) : ""}${packed}`.padEnd(16 * this.width, "0");
  }

  /** The position of the part and its report, from their hexadecimal; null if this slot cannot have made them. */
  unpack(text) {
    const at = this.drawn ? wordNumber(text.slice(0, 16)) : 0;
    if (at === null || at >= this.parts.length) return null;
    const { plan } = this.parts[at];
    const rest = this.drawn ? text.slice(16) : text;
    const [own, padding] = [rest.slice(0, 16 * plan.words), rest.slice(16 * plan.words)];
    const report = plan.reportsBits ? own : wordNumber(own);
    return plan.accepts(report) && /^0*$/.test(padding) ? { at, report } : null;
  }
}

/** A whole number as the hexadecimal of one little-endian word. */
function wordText(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number), true);
  return hex(bytes);
}

/** The whole number of a word in hexadecimal; null if it is too large for a number. */
function wordNumber(text) {
  const value = text.match(/../g).reduceRight((total, byte) => (total << 8n) | BigInt(`0x${byte}`), 0n);
  return value < LARGEST_REPORT ? Number(value) : null;
}

/**
 * What the people of a cohort send: one report for each slot. Made by `readForm` and `readCampaign` only.
 *
 * `levels` are those of a whole submission, about any answer and all of them together, whatever they have to do with each other.
 */
class Form {
  constructor(id, slots) {
    this.id = id;
    this.slots = Object.freeze(slots);
    this.parts = Object.freeze(slots.flatMap((slot) => slot.parts));
    this.attributes = Object.freeze([...new Set(this.parts.flatMap((part) => part.attributes))]);
    this.width = slots.reduce((total, slot) => total + slot.width, 0);
    this.levels = Object.freeze(submissionLevels(slots));
    Object.freeze(this);
  }

  /** For each slot the position of a part, drawn at random. */
  draw(source = systemWords) {
    return this.slots.map((slot) => slot.draw(source));
  }

  /** The parts that a draw has chosen, one for each slot. */
  drawnParts(draw) {
    need(this.fitsDraw(draw), "draw", "should have the position of a part for each slot");
    return this.slots.map((slot, i) => slot.parts[draw[i]]);
  }

  /** Whether these are positions of parts, one for each slot. */
  fitsDraw(draw) {
    const inside = (at, i) => Number.isInteger(at) && at >= 0 && at < this.slots[i].parts.length;
    return Array.isArray(draw) && draw.length === this.slots.length && draw.every(inside);
  }

  /** The submission of one person: `values` has a level for each attribute of the drawn parts. */
  privatize(values, draw, source = systemWords) {
    this.drawnParts(draw);
    return this.slots.map((slot, i) => slot.privatize(values, draw[i], source)).join("");
  }

  /** The part and its report for each slot of a submission; null if this form cannot have made it. */
  unpack(report) {
    if (typeof report !== "string" || report.length !== 16 * this.width || !/^[0-9a-f]+$/.test(report)) return null;
    let start = 0;
    const reports = this.slots.map((slot) => {
      start += 16 * slot.width;
      return slot.unpack(report.slice(start - 16 * slot.width, start));
    });
    return reports.includes(null) ? null : reports;
  }

  /** Whether this form can have made a submission. */
  accepts(report) {
    return this.unpack(report) !== null;
  }
}

/**
 * What a whole submission tells about all answers together, and so about each of them, whatever they have to do with each
 * other. One report has the largest levels of its parts; a part counts with its LDP level if its prior is only assumed. The LDP
 * levels of several reports add up, whatever anyone knows.
 */
function submissionLevels(slots) {
  const each = slots.map(({ parts }) => {
    const largest = (name) => Math.max(...parts.map(({ plan }) => plan.levels[plan.priorAssumed ? "ldp" : name]));
    return { lip: largest("lip"), lipLower: largest("lipLower"), lipUpper: largest("lipUpper"), ldp: largest("ldp") };
  });
  if (each.length === 1) return each[0];
  const ldp = each.reduce((total, level) => total + level.ldp, 0);
  return { lip: ldp, lipLower: ldp, lipUpper: ldp, ldp };
}

/** Read a form from its document: check its id and every plan in it, or refuse it with the field. */
export async function readForm(given, { id } = {}) {
  const document = deepFreeze(parseDocument(given));
  need(document.format === "priorveil-form", "format", "not a form");
  need(document.version === 1, "version", "not known here; this client reads 1");
  checkFields(document, ["id", "format", "version", "slots"], "");
  need(Array.isArray(document.slots) && document.slots.length > 0, "slots", "should have a slot");
  for (const parts of document.slots) {
    need(Array.isArray(parts) && parts.length > 0, "slots", "a slot should have a part");
    for (const part of parts) checkFields(part, ["attributes", "share", "plan"], "slots");
  }
  const names = document.slots.map((parts) => parts.map((part) => ({ ...part, plan: part.plan?.id ?? null })));
  await checkId({ id: document.id, slots: names }, id);
  const slots = await Promise.all(document.slots.map(readSlot));
  const parts = slots.flatMap((slot) => slot.parts);
  const alone = parts.length === 1 || parts.every(({ plan }) => plan.protects === "value" && plan.levels.ldp < Infinity);
  need(alone, "slots", "a plan that protects a secret, or has no LDP level, should be the only part");
  const asked = parts.map(({ attributes }) => canonical(attributes));
  need(new Set(asked).size === asked.length, "slots", "two parts have the same attributes");
  return new Form(document.id, slots);
}

async function readSlot(listed) {
  const parts = await Promise.all(
    listed.map(async ({ attributes, share, plan: document }) => {
      const plan = await readPlan(document);
      const named = Array.isArray(attributes) && attributes.every((name) => typeof name === "string" && name !== "");
      const own = plan.attributes?.map(({ name }) => name);
      const fits = named && (own ? canonical(own) === canonical(attributes) : attributes.length === 1);
      need(fits, "slots.attributes", "should be those of the plan, or one name");
      need(own || !plan.labels.some(Array.isArray), "slots.attributes", "the values of the plan have no names");
      need(Number.isSafeInteger(share) && share > 0, "slots.share", "should be a whole number above zero");
      return Object.freeze({ attributes, share, plan });
    }),
  );
  const total = parts.reduce((sum, { share }) => sum + share, 0);
  need(total === Number(1n << SHARE_BITS), "slots.share", `should add up to 2**${SHARE_BITS} in a slot`);
  return new Slot(parts);
}

// -- campaigns -----------------------------------------------------------------------------------------------------

export const NOT_ASKED = "not asked"; // the level of a question that earlier answers skip
const [YES, NO] = ["yes", "no"]; // the levels of an option of "tick all that apply"

/** One question: a choice, several choices, or a number. Made by `readCampaign` only. */
class Question {
  #codes = new Map(); // the options by the key of their code
  #ranges;

  constructor(document) {
    for (const name of ["name", "kind", "text", "hint", "unit", "options"]) this[name] = document[name];
    this.askedIf = Object.freeze(new Map(Object.entries(document.asked_if)));
    for (const { code } of this.options) this.#codes.set(valueKey(code), code);
    this.#ranges =
      document.edges.length > 0
        ? new NumberDomain({ kind: "cells", edges: document.edges, outside: "ends" }, "questions.edges")
        : null;
    this.ranges = this.#ranges?.numbers ?? null;
    this.attributes = Object.freeze(
      this.kind === "choices" ? this.options.map(({ code }) => `${this.name}/${code}`) : [this.name],
    );
    Object.freeze(this);
  }

  /** Whether it is asked after these answers: a code for each question, or null for one that was skipped. */
  isAsked(answers) {
    return [...this.askedIf].every(([gate, codes]) => codes.includes(answers.get(gate)));
  }

  /** The answer as a code, a list of codes, a number or the label of its range; an error if it is none, without showing it. */
  read(answer) {
    if (this.kind === "number") return this.#readNumber(answer);
    if (this.kind === "choice") return this.#codeOf(answer);
    const listed = answer instanceof Set ? [...answer] : answer;
    need(Array.isArray(listed), this.#field, "should be a list of the codes of its options, empty if none applies");
    const chosen = new Set(listed.map((code) => this.#codeOf(code)));
    return this.options.map(({ code }) => code).filter((code) => chosen.has(code));
  }

  get #field() {
    return `answers.${this.name}`;
  }

  #codeOf(answer) {
    const code = Array.isArray(answer) ? undefined : this.#codes.get(valueKey(answer) ?? "");
    need(code !== undefined, this.#field, "should be the code of one of its options");
    return code;
  }

  #readNumber(answer) {
    const key = typeof answer === "boolean" ? undefined : valueKey(withDecimalPoints(answer));
    const good = answer === Infinity || answer === -Infinity || key?.startsWith("number ");
    need(good && !Array.isArray(answer), this.#field, "should be a number");
    return this.#ranges === null ? answer : this.#ranges.labels[this.#ranges.code(answer)];
  }

  /** The level of each attribute, from an answer that was read; null for a question that was skipped. */
  levels(answer) {
    if (answer === null) return this.attributes.map((name) => [name, NOT_ASKED]);
    if (this.kind !== "choices") return [[this.name, answer]];
    return this.options.map(({ code }, i) => [this.attributes[i], answer.includes(code) ? YES : NO]);
  }

  /** Refuse a plan whose values of an attribute are others than an answer can give. */
  checkDomain({ labels, numbers }, refusesNumbers) {
    const number = this.kind === "number" && this.#ranges === null;
    const listed = { number: () => this.#ranges.labels, choice: () => this.options.map(({ code }) => code), choices: () => [YES, NO] };
    const expected = number ? [] : [...listed[this.kind](), ...(this.askedIf.size > 0 ? [NOT_ASKED] : [])];
    const keys = new Set(labels.map(valueKey));
    const same = keys.size === expected.length && expected.every((level) => keys.has(valueKey(level)));
    need(number ? numbers !== null : numbers === null && same, "cohorts", `the values of ${this.name} are not those of its plan`);
    need(!number || !refusesNumbers, "cohorts", "should count numbers outside the range at the ends: silence would reveal them");
  }
}

/** The questions that give some attributes, and those that decide whether they are asked, in order. */
function questionsFor(questions, attributes) {
  const needed = new Set();
  for (const question of [...questions].reverse()) {
    const own = question.attributes.some((name) => attributes.includes(name));
    if (!own && !needed.has(question.name)) continue;
    needed.add(question.name);
    for (const gate of question.askedIf.keys()) needed.add(gate);
  }
  return questions.filter(({ name }) => needed.has(name));
}

/**
 * Questions, and a checked form for each cohort. Made by `readCampaign` only.
 *
 * `promise` has for each cohort what a whole submission tells about any answer: `lip` under the priors, `ldp` for any prior.
 */
class Campaign {
  #questions;

  constructor(document, questions, forms) {
    this.document = document;
    this.forms = forms;
    for (const name of ["id", "title", "description", "purpose", "contact", "languages", "admission"])
      this[name] = document[name];
    this.questions = Object.freeze(questions);
    this.promise = Object.freeze(Object.fromEntries(Object.entries(forms).map(([name, form]) => [name, form.levels])));
    this.#questions = new Map(questions.map((question) => [question.name, question]));
    this.askedBy = document.asked_by;
    this.smallestCount = document.smallest_count;
    this.mostReports = document.most_reports;
    this.limit = document.limit === null ? null : Number(document.limit);
    this.cohorts = Object.freeze(Object.keys(forms));
    [this.opens, this.closes, this.keepUntil] = TIMES.map((name) =>
      document[name] === null ? null : new Date(document[name]),
    );
    Object.freeze(this);
  }

  /** "not yet open", "open" or "closed" by this clock. */
  state(now = new Date()) {
    if (this.opens !== null && now < this.opens) return "not yet open";
    return this.closes !== null && now >= this.closes ? "closed" : "open";
  }

  /** The form of a cohort; the name may be left out where there is only one. */
  formFor(cohort) {
    const name = cohort === undefined && this.cohorts.length === 1 ? this.cohorts[0] : cohort;
    need(Object.hasOwn(this.forms, name ?? ""), "cohort", `choose one of ${this.cohorts.join(", ")}`);
    return this.forms[name];
  }

  /**
   * A draw for each form, by its id, all from the same random words: so a device draws once, and whoever corrects a wrong cohort
   * is asked what was drawn before, where the forms have the same shares.
   */
  drawForms(source = systemWords) {
    const words = [];
    return Object.fromEntries(Object.values(this.forms).map((form) => [form.id, form.draw(keptWords(words, source))]));
  }

  /** The questions to show for a draw, in order: those of the drawn parts, and those that decide whether they are asked. */
  questionsToAsk(cohort, draw) {
    return questionsFor(this.questions, this.formFor(cohort).drawnParts(draw).flatMap((part) => part.attributes));
  }

  /** Of these questions, the ones that are asked after the answers so far; each answer is a code, codes or a number. */
  questionsAsked(questions, answers) {
    const read = this.#readAnswers(questions, answers, () => undefined);
    return questions.filter(({ name }) => read.get(name) !== null);
  }

  /**
   * A level for each attribute of these questions, from answers by the name of the question. The answer to a question that is
   * skipped is ignored. An answer that is none is an error that does not show it.
   */
  attributeValues(answers, questions = this.questions) {
    const missing = ({ name }) => {
      throw new PriorveilError(`answers.${name}`, "is missing");
    };
    const read = this.#readAnswers(questions, answers, missing);
    return new Map(questions.flatMap((question) => question.levels(read.get(question.name))));
  }

  /**
   * Refuse a wrong answer to any question, also to one that is not drawn or skipped; null is no answer. A client calls this first,
   * so that a mistake of an app does not show for some people only.
   */
  checkAnswers(answers) {
    this.#checkNames(answers);
    for (const question of this.questions) {
      const given = Object.hasOwn(answers, question.name) ? answers[question.name] : null;
      if (given !== null && given !== undefined) question.read(given);
    }
  }

  #checkNames(answers) {
    const object = answers !== null && typeof answers === "object" && !Array.isArray(answers);
    need(object, "answers", "should be an object with an answer for each question, by its name");
    for (const name of Object.keys(answers)) need(this.#questions.has(name), `answers.${name}`, "is not a question here");
  }

  #readAnswers(questions, answers, missing) {
    this.#checkNames(answers);
    const read = new Map();
    for (const question of questions) {
      const { name } = question;
      const given = Object.hasOwn(answers, name) ? answers[name] : undefined;
      if (!question.isAsked(read)) read.set(name, null);
      else read.set(name, given === undefined ? missing(question) : question.read(given));
    }
    return read;
  }
}

const TIMES = ["opens", "closes", "keep_until"]; // may be null
const CAMPAIGN = [
  ..."id format version title description languages questions cohorts".split(" "),
  ..."smallest_count admission most_reports limit contact asked_by purpose".split(" "),
  ...TIMES,
];
const QUESTION = ["name", "kind", "text", "hint", "unit", "options", "asked_if", "edges"];
const LEAST_OPTIONS = { choice: 2, choices: 1, number: 0 };
const ADMISSIONS = ["open", "invitation"];
const LONGEST_TEXT = 2000;
const LONGEST_CODE = 200;
const EDGE_BLANK = /^[\s\x1c-\x1f\x85]|[\s\x1c-\x1f\x85]$/;

/** Read a campaign from its document or text: check its id and every plan in it, or refuse it with the field. */
export async function readCampaign(given, { id } = {}) {
  const document = deepFreeze(parseDocument(given));
  need(document.format === "priorveil-campaign", "format", "not a campaign");
  need(document.version === 2, "version", "not known here; this client reads 2");
  checkFields(document, CAMPAIGN, "");
  await checkId(document, id);
  checkCampaign(document);
  const questions = readQuestions(document);
  const entries = Object.entries(document.cohorts);
  const forms = await Promise.all(entries.map(async ([name, form]) => [name, await readForm(form)]));
  for (const [, form] of forms) checkForm(form, questions);
  const reported = forms.map(([, { attributes }]) => canonical([...attributes].sort()));
  need(new Set(reported).size === 1, "cohorts", "should all be asked about the same attributes");
  const used = questionsFor(questions, forms[0][1].attributes);
  need(used.length === questions.length, "questions", "one of them has an answer that no form uses");
  need(new Set(forms.map(([, form]) => form.id)).size === forms.length, "cohorts", "two cohorts share a form");
  return new Campaign(document, questions, Object.freeze(Object.fromEntries(forms)));
}

/** The plans of a form are about attributes of the questions, and have the values that answers give. */
function checkForm({ parts, attributes }, questions) {
  const owner = new Map(questions.flatMap((question) => question.attributes.map((name) => [name, question])));
  for (const name of attributes) need(owner.has(name), "cohorts", `no question has the attribute ${name}`);
  for (const { attributes: names, plan } of parts)
    names.forEach((name, i) => owner.get(name).checkDomain((plan.attributes ?? [plan])[i], plan.refusesNumbers));
}

function checkCampaign(document) {
  const { cohorts, opens, closes, keep_until: kept, smallest_count: count, most_reports: most, languages } = document;
  const tag = (text) => typeof text === "string" && /^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{1,8}){0,3}$/.test(text);
  const tags = Array.isArray(languages) && languages.length > 0 && languages.every(tag);
  const different = tags && new Set(languages.map((text) => text.toLowerCase())).size === languages.length;
  need(different, "languages", "should be tags such as en or pt-BR, each once");
  checkTexts(document.title, "title", languages);
  for (const name of ["description", "asked_by", "purpose"]) checkTexts(document[name], name, languages, true);
  checkText(document.contact, "contact", true);
  need(Number.isSafeInteger(count) && count >= 0, "smallest_count", "should be a whole number");
  need(most === null || (Number.isSafeInteger(most) && most > 0), "most_reports", "should be a whole number above zero");
  const limit = document.limit === null ? 1 : real(document.limit, "limit");
  need(limit > 0 && limit < Infinity, "limit", "should be a number above zero");
  need(ADMISSIONS.includes(document.admission), "admission", `should be one of ${ADMISSIONS.join(", ")}`);
  const some = cohorts !== null && typeof cohorts === "object" && !Array.isArray(cohorts) && Object.keys(cohorts);
  need(some && some.length > 0, "cohorts", "should have a form");
  for (const name of some) checkText(name, "cohorts");
  for (const name of TIMES) checkTime(document[name], name);
  need(opens === null || closes === null || opens < closes, "closes", "should be after it opens");
  need(kept === null || (closes !== null && closes < kept), "keep_until", "should be after it closes");
}

function readQuestions({ questions, languages }) {
  need(Array.isArray(questions) && questions.length > 0, "questions", "should have a question");
  const earlier = new Map();
  for (const document of questions) {
    checkQuestion(document, languages);
    need(!earlier.has(document.name), "questions.name", "two questions have the same");
    for (const [gate, codes] of Object.entries(document.asked_if)) {
      const question = earlier.get(gate);
      need(question?.kind === "choice", "questions.asked_if", "should name an earlier question with one choice");
      const options = question.options.map(({ code }) => code);
      const some = Array.isArray(codes) && codes.length > 0 && codes.every((code) => options.includes(code));
      need(some, "questions.asked_if", "should have some of the options of that question");
    }
    earlier.set(document.name, new Question(document));
  }
  return [...earlier.values()];
}

function checkQuestion(document, languages) {
  checkFields(document, QUESTION, "questions");
  const { name, kind, options, asked_if: gates, edges } = document;
  const named = typeof name === "string" && /^[\p{L}\p{N}_-]{1,200}$/u.test(name);
  need(named, "questions.name", "should be letters, digits, _ and -");
  need(hasKind(LEAST_OPTIONS, kind), "questions.kind", "should be choice, choices or number");
  checkTexts(document.text, "questions.text", languages);
  for (const text of ["hint", "unit"]) checkTexts(document[text], `questions.${text}`, languages, true);
  const enough = Array.isArray(options) && options.length >= LEAST_OPTIONS[kind] && (kind !== "number" || options.length === 0);
  need(enough, "questions.options", "should be as many as the question needs");
  const keys = new Set([valueKey(NOT_ASKED)]);
  for (const option of options) {
    checkFields(option, ["code", "text"], "questions.options");
    const { code } = option;
    const plain = typeof code === "string" && Array.from(code).length <= LONGEST_CODE && !EDGE_BLANK.test(code);
    const key = plain ? valueKey(code) : null;
    need(key !== null && !keys.has(key), "questions.options", "should have different codes, and not 'not asked'");
    keys.add(key);
    checkTexts(option.text, "questions.options", languages);
  }
  for (const language of languages) {
    const texts = new Set(options.map(({ text }) => text[language].trim().toLowerCase()));
    need(texts.size === options.length, "questions.options", "two have the same text in a language");
  }
  const object = gates !== null && typeof gates === "object" && !Array.isArray(gates);
  need(object, "questions.asked_if", "should be an object");
  need(Array.isArray(edges) && (kind === "number" || edges.length === 0), "questions.edges", "belong to a number");
  const conditional = kind === "number" && Object.keys(gates).length > 0;
  need(!conditional || edges.length > 0, "questions.edges", "are needed where a number is not always asked");
}

/** A text in every language; one that may be empty is then an empty object. */
function checkTexts(texts, field, languages, empty = false) {
  if (empty && canonical(texts ?? null) === "{}") return;
  checkFields(texts, languages, field);
  for (const language of languages) checkText(texts[language], field);
}

function checkText(text, field, empty = false) {
  need(typeof text === "string" && Array.from(text).length <= LONGEST_TEXT, field, `up to ${LONGEST_TEXT} characters`);
  need(empty || /[^\s\x1c-\x1f\x85]/.test(text), field, "should not be empty");
}

/** A time, in the one spelling it has, or null. */
function checkTime(text, field) {
  if (text === null) return;
  const good = typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && !text.startsWith("0000");
  const time = new Date(good ? text : NaN);
  const same = !Number.isNaN(time.valueOf()) && time.toISOString() === text.replace("Z", ".000Z");
  need(same, field, "times should look like 2026-01-31T12:00:00Z");
}

// -- the client ----------------------------------------------------------------------------------------------------

const ATTEMPTS = 5;
const FIRST_WAIT = 0.5; // seconds; each later wait is twice as long
const LONGEST_WAIT = 30;
const BUSY = new Set([408, 425, 429, 500, 502, 503, 504, 507]);
const LONGEST_REQUEST = 120; // seconds, to the last byte of the answer
const LONGEST_TIMER = 2 ** 31 - 1; // milliseconds; longer ones ring at once
const LARGEST_CAMPAIGN = 64 << 20; // bytes
const LARGEST_RECEIPT = 64 << 10;
const LONGEST_REASON = 80;

/** The LDP level that all answers of a device to one curator may reach together, unless it is told otherwise. */
export const DEFAULT_LIMIT = 10;

/**
 * Answers one campaign, once. `url` is the campaign's address; `fetch`, `storage` and `wait` may be replaced; `timeout` is
 * how many seconds a request may take. `code` is that of an invitation; the link of an invitation has it after `#`. `limit` is
 * the LDP level that all answers of this device to the same curator may reach; a campaign may lower it.
 *
 * `begin` draws which questions are asked, where the form asks each person about a part of them, and remembers the draw before
 * anything is shown. `answer` draws the submission and remembers it before it is sent, and from then on it is the answer: asked
 * again, the client sends the same submission, so that nobody learns more, and nobody can try until they like what is sent. Where
 * nothing can be remembered, nothing is sent. Answers and random words are never stored: random words and a report together
 * reveal the answers.
 */
export class Client {
  #campaign;
  #storage;
  #fetch;
  #wait;
  #timeout;
  #limit;
  #code;
  #codeIsFree = false;

  constructor(url, options = {}) {
    const { fetch = globalThis.fetch, storage = deviceStorage(), wait = sleep, timeout = LONGEST_REQUEST } = options;
    const [address, fragment = ""] = String(url).split("#");
    const code = options.code ?? new URLSearchParams(fragment).get("code");
    need(code === null || isCode(code), "code", "should be the 32 hexadecimal digits of an invitation");
    this.#code = code;
    need(typeof timeout === "number" && timeout > 0, "timeout", "should be a number of seconds, above zero");
    const { limit = DEFAULT_LIMIT } = options;
    need(typeof limit === "number" && limit > 0, "limit", "should be a number above zero");
    this.#limit = limit;
    // The page that people answer on stands for its campaign.
    this.url = address.replace(/\/+$/, "").replace(/\/answer\/([0-9a-f]{64})([/?].*)?$/, "/v1/campaigns/$1");
    this.#timeout = timeout;
    this.#fetch = (...request) => fetch(...request);
    this.#storage = storage;
    this.#wait = wait;
  }

  /** The campaign, fetched once and checked: also that it is the one named by the address. */
  async campaign() {
    if (this.#campaign === undefined) {
      const id = this.url.match(/\/([0-9a-f]{64})$/)?.[1];
      need(id, "url", "should be a campaign's address, which ends in its id of 64 hexadecimal digits");
      this.#campaign = await readCampaign(await this.#download(), { id });
    }
    return this.#campaign;
  }

  /** Whether a first answer can be sent: the campaign needs no invitation, or the code of this client can still be used. */
  async invited() {
    const { admission } = await this.campaign();
    if (admission === "open" || this.#codeIsFree) return true;
    if (this.#code === null) return false;
    const { free } = await this.#ask("invitation", { code: this.#code });
    if (typeof free !== "boolean") throw new NotSent(FOREIGN);
    this.#codeIsFree = free;
    return free;
  }

  /** What is remembered: the submission in the form in which it leaves, and whether it was delivered; or null. */
  async remembered() {
    const { id, forms } = await this.campaign();
    const text = await this.#useStorage("getItem", keyOf(id));
    if ((text ?? null) === null) return null;
    const record = readRecord(text);
    const form = Object.values(forms).find((f) => f.id === record.form);
    need(form?.accepts(record.report), "storage", UNREADABLE);
    return record;
  }

  /**
   * For each slot of the cohort's form the position of the part that this device is asked about: drawn once for all cohorts, and
   * remembered before it is returned. Raises `BudgetExceeded` if answering would pass the limit of the device or the campaign.
   */
  async begin(cohort) {
    const campaign = await this.campaign();
    const form = campaign.formFor(cohort);
    const sent = await this.remembered();
    if (sent !== null) return drawOf(campaign, sent);
    await this.#checkLimit(campaign, form);
    if (!form.slots.some((slot) => slot.drawn)) return form.draw();
    const key = `priorveil:draw:${campaign.id}`;
    return inTurn(key, async () => {
      const earlier = await this.#useStorage("getItem", key);
      if ((earlier ?? null) === null) await this.#add(key, JSON.stringify(campaign.drawForms()));
      const draw = parseJson((await this.#useStorage("getItem", key)) ?? "null")?.[form.id];
      need(form.fitsDraw(draw), "storage", UNREADABLE);
      return draw;
    });
  }

  /** Check these answers and the limit, as `answer` does. No report is drawn: that is done when it is sent. */
  async prepare(answers, cohort) {
    if ((await this.remembered()) === null) await this.#valuesToReport(answers, cohort);
  }

  /**
   * Perturb the answers here, remember the submission, and send it; the receipt says whether it is a replay. `answers` has an
   * answer for each question, by its name; of a campaign with one question it may be the answer itself.
   */
  async answer(answers, cohort) {
    const campaign = await this.campaign();
    return inTurn(keyOf(campaign.id), async () => {
      const before = await this.remembered();
      if (before?.withdrawn) throw new ReportRefused("withdrawn");
      if (before === null && !(await this.invited())) throw new ReportRefused("no invitation");
      const { kept, replayed } = before === null ? await this.#storeFirst(answers, cohort) : { kept: before, replayed: true };
      await this.#deliverOnce(kept);
      return { report: wireReport(kept), replayed };
    });
  }

  /** Send the remembered report, if there is one and it was not delivered; true if nothing is left to send. */
  async deliver() {
    const { id } = await this.campaign();
    return inTurn(keyOf(id), async () => {
      const known = await this.remembered();
      if (known?.withdrawn) throw new ReportRefused("withdrawn");
      if (known !== null) await this.#deliverOnce(known);
      return known !== null;
    });
  }

  /**
   * Remove the report of an earlier answer from the curator; true if it was there. It stays remembered and is never sent again:
   * as `withdrawn` before the curator is asked, and as `removed` when it has confirmed that. Once results are published the
   * curator removes no report: then it throws ReportRefused, and nothing changes.
   */
  async withdraw() {
    const { id } = await this.campaign();
    return inTurn(keyOf(id), async () => {
      const known = await this.remembered();
      need(known !== null, "storage", "there is no answer to withdraw");
      await this.#note(known, { withdrawn: true });
      return this.#remove(known);
    });
  }

  /** Ask the curator to remove a report that is remembered as withdrawn; true if it was there. */
  async #remove(known) {
    let removed;
    try {
      ({ removed } = await this.#ask("withdrawals", { report_ids: [known.report_id] }));
    } catch (error) {
      if (error instanceof ReportRefused) await this.#note(known, { withdrawn: known.withdrawn }); // the curator keeps the report
      throw error;
    }
    if (typeof removed !== "number") throw new NotSent(FOREIGN);
    try {
      await this.#note(known, { removed: true });
    } catch {
      // It is removed, and still remembered as withdrawn: all that can follow is the same request again.
    }
    return removed > 0;
  }

  /** A level for each attribute that a report is drawn about, and the draw. */
  async #valuesToReport(given, cohort) {
    const campaign = await this.campaign();
    const draw = await this.begin(cohort);
    const answers = answersBy(campaign, given);
    campaign.checkAnswers(answers);
    return { draw, values: campaign.attributeValues(answers, campaign.questionsToAsk(cohort, draw)) };
  }

  /** Raise `BudgetExceeded` if this form and all that was answered to this curator before pass the limit. */
  async #checkLimit({ id, limit }, form) {
    const { origin } = new URL(this.url);
    const keys = (await this.#useStorage("keys")).filter((key) => ANSWERED.test(key) && key !== keyOf(id));
    const records = [];
    for (const key of keys) {
      const text = await this.#useStorage("getItem", key);
      if ((text ?? null) !== null) records.push(readRecord(text));
    }
    const spent = records.filter((record) => record.origin === origin).map(({ ldp }) => real(ldp, "storage"));
    const level = spent.reduce((total, earlier) => total + earlier, spentBy(form));
    const most = Math.min(this.#limit, limit ?? Infinity);
    // A level without bound is its device's only answer to a curator, whatever the limit.
    if (level === Infinity ? spent.length > 0 : level > most) throw new BudgetExceeded(level, most);
  }

  /** Draw a first submission and remember it. What the storage then holds is the answer: that of another tab, if it came first. */
  async #storeFirst(answers, cohort) {
    const { draw, values } = await this.#valuesToReport(answers, cohort);
    const form = this.#campaign.formFor(cohort);
    const report_id = freshId();
    const drawn = { report_id, form: form.id, report: form.privatize(values, draw) };
    const text = JSON.stringify({ ...drawn, origin: new URL(this.url).origin, ldp: numberText(spentBy(form)), delivered: false });
    await this.#exclusively(async () => {
      await this.#checkLimit(this.#campaign, form); // another tab may have answered another campaign meanwhile
      if ((await this.remembered()) === null) await this.#add(keyOf(this.#campaign.id), text);
    });
    const kept = await this.remembered();
    need(kept !== null, "storage", `what was written is not there. ${UNSENT}`);
    return { kept, replayed: kept.report_id !== report_id };
  }

  /** Remember changes of a submission as it is remembered now: another tab may have withdrawn or delivered it meanwhile. */
  #note(known, changes) {
    return this.#exclusively(async () => {
      const now = { ...known, ...(await this.remembered()), ...changes };
      await this.#useStorage("setItem", keyOf(this.#campaign.id), JSON.stringify(now));
      return now;
    });
  }

  /** Run alone among the tabs and programs that share the storage, so that two campaigns answered at once are both counted. */
  #exclusively(work) {
    return typeof this.#storage?.lock === "function" ? this.#useStorage("lock", work) : inTurn("priorveil", work);
  }

  /** Store a text unless the key has one; a storage that cannot tell is told to store it. */
  #add(key, text) {
    return this.#useStorage(typeof this.#storage?.addItem === "function" ? "addItem" : "setItem", key, text);
  }

  async #deliverOnce(known) {
    if (known.delivered) return;
    await this.#send(wireReport(known));
    let now = known;
    try {
      now = await this.#note(known, { delivered: true, removed: undefined });
    } catch {
      // It has arrived and is still remembered: all that can follow is the same report again, which is not counted.
    }
    if (!now.withdrawn) return;
    await this.#remove(known); // the withdrawal may have arrived before the report
    throw new ReportRefused("withdrawn");
  }

  /** Call the storage; where there is none, or it fails, raise an error of our own. */
  async #useStorage(verb, ...given) {
    const usable = ["getItem", "setItem", "keys"].every((name) => typeof this.#storage?.[name] === "function");
    need(usable, "storage", `there is nowhere to remember the report. ${UNSENT} ${ADVICE}`);
    try {
      const result = await this.#storage[verb](...given);
      return verb === "keys" ? [...result] : result;
    } catch (error) {
      if (error instanceof PriorveilError) throw error; // what was done under the lock has failed
      const why = typeof error?.code === "string" ? error.code : error?.name; // its message may quote what was to be written
      const done = verb === "getItem" || verb === "keys" ? "looked up" : "remembered";
      throw new PriorveilError("storage", `the report cannot be ${done} (${why}). ${UNSENT}`);
    }
  }

  async #download() {
    const answer = await this.#fetchWithRetries(this.url, LARGEST_CAMPAIGN, { headers: { accept: "application/json" } });
    const refuse = (why) => new ReportRefused(why, undefined, "campaign");
    if (answer.status !== 200 || !answer.kind.startsWith("application/json"))
      throw refuse(`there is no campaign at this address (${answer.status})`);
    if (answer.text === null)
      throw refuse(`the campaign at this address cannot be read: it is longer than ${LARGEST_CAMPAIGN} bytes`);
    return answer.text;
  }

  async #send(report) {
    const needsCode = this.#campaign.admission === "invitation" && this.#code !== null;
    const receipt = await this.#ask("reports", needsCode ? { ...report, code: this.#code } : report);
    const refusals = Array.isArray(receipt?.refused) ? receipt.refused : null;
    if (receipt?.accepted === 1 && refusals?.length === 0) return;
    const reason = refusals?.length === 1 ? refusals[0]?.reason : undefined;
    if (typeof reason !== "string") throw new NotSent(FOREIGN);
    throw new ReportRefused(printable(reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON)}...`));
  }

  /** What the curator answers to a document that is posted to it. */
  async #ask(path, document) {
    const headers = { "content-type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify(document), referrerPolicy: "no-referrer" };
    const { status, text } = await this.#fetchWithRetries(`${this.url}/${path}`, LARGEST_RECEIPT, request);
    if (status !== 200) throw new ReportRefused(`the curator answered ${status}`);
    return parseJson(text) ?? {};
  }

  /** The answer to a request, which is tried again while the network or the curator is busy. */
  async #fetchWithRetries(url, limit, request) {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#fetchOnce(url, limit, request);
      if (answer !== null && !BUSY.has(answer.status)) return answer;
      if (attempt === ATTEMPTS) {
        throw new NotSent(
          answer === null ? "the curator cannot be reached" : `the curator is busy (${answer.status})`,
        );
      }
      const asked = Number(answer?.retryAfter) || 0;
      const pause = FIRST_WAIT * 2 ** (attempt - 1) * (0.5 + Math.random() / 2); // not all devices at once
      await this.#wait(Math.min(LONGEST_WAIT, Math.max(asked, pause)));
    }
  }

  /**
   * One answer; null where the connection fails or breaks off. Its text is read only where the status is 200, and is null where
   * it is longer than `limit` bytes. No redirect is followed: a report is for the curator that the address names.
   */
  async #fetchOnce(url, limit, request) {
    const signal = AbortSignal.timeout(Math.min(1000 * this.#timeout, LONGEST_TIMER));
    const headers = { ...request.headers, "accept-encoding": "identity" }; // Node asks so; browsers choose themselves
    try {
      const response = await this.#fetch(url, { ...request, headers, credentials: "omit", redirect: "manual", signal });
      const status = response.status || "with a redirect"; // browsers do not tell which
      const [kind, retryAfter] = ["content-type", "retry-after"].map((name) => response.headers.get(name) ?? "");
      if (status !== 200) await response.body?.cancel();
      return { status, kind, retryAfter, text: status === 200 ? await readText(response, limit) : null };
    } catch {
      // Another attempt would take as long.
      if (signal.aborted) throw new NotSent(`the curator did not answer within ${this.#timeout} seconds`);
      return null;
    }
  }
}

/** The body of a response; null if it is longer than `limit` bytes, of which the rest is not read, or unpacked. */
async function readText(response, limit) {
  const [reader, decoder] = [response.body?.getReader(), new TextDecoder()];
  let [text, size] = ["", 0];
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** A source that reads kept words from the front, and keeps what it draws beyond them: the same value makes the same report. */
function keptWords(words, source = systemWords) {
  let used = 0;
  return (count) => {
    while (words.length < used + count) words.push(...source(1));
    used += count;
    return words.slice(used - count, used);
  };
}

const FOREIGN = "the response did not come from a curator"; // a hotel's sign-in page, say
const isCode = (code) => typeof code === "string" && /^[0-9a-f]{32}$/i.test(code);

/** The value of a text in JSON; null if it is not JSON. */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The submission exactly as it is sent. */
const wireReport = ({ report_id, form, report }) => Object.freeze({ report_id, form, report });

/** Answers by question; of a campaign with one question the answer may stand alone. */
function answersBy({ questions }, given) {
  const byName = given !== null && typeof given === "object" && !Array.isArray(given) && !(given instanceof Set);
  return byName || questions.length > 1 ? given : { [questions[0].name]: given };
}

/** What a form takes of a device's limit: its LDP level; a plan for a latent secret is not about that, and has no bound. */
const spentBy = ({ parts, levels }) => (parts.some(({ plan }) => plan.protects === "secret") ? Infinity : levels.ldp);

/** The part of each slot that a submission is about. */
function drawOf({ forms }, { form: id, report }) {
  const form = Object.values(forms).find((f) => f.id === id);
  return form.unpack(report).map(({ at }) => at);
}

/** A record that cannot be read is an error: a second answer could reveal more than one submission does. */
function readRecord(text) {
  const record = parseJson(text);
  const level = record?.ldp === "inf" ? Infinity : Number(record?.ldp);
  const texts = ["report_id", "form", "report", "origin", "ldp"].every((name) => typeof record?.[name] === "string");
  need(texts && level >= 0, "storage", UNREADABLE);
  return Object.freeze(record);
}

const UNREADABLE = "what was remembered cannot be read; clear it to answer again";
const LONGEST_LOCK = 60_000; // milliseconds; programs hold it for a few
const ANSWERED = /^priorveil:[0-9a-f]{64}$/; // the keys of submissions
const sleep = (seconds) =>
  new Promise((done) => {
    setTimeout(done, 1000 * seconds);
  });

const keyOf = (id) => `priorveil:${id}`;

const UNSENT = "Nothing was sent: without a memory, answering again would send another report and tell more.";
const ADVICE =
  "Let the browser store this site's data, or give a `storage`; in Node, one from FileStorage.open(folder).";

/** The browser's memory; null where there is none, or the browser refuses it. */
function deviceStorage() {
  try {
    return globalThis.indexedDB ? databaseStorage : null;
  } catch {
    return null; // a browser that blocks storage may throw on touching it
  }
}

const REPORTS = "reports"; // the one table of the database

/** IndexedDB, whose transactions are ordered across tabs and workers: of several first reports one stands, and all see it. */
const databaseStorage = {
  async keys() {
    return (await transact("readonly", (reports) => reports.getAllKeys())).result;
  },

  async getItem(key) {
    return (await transact("readonly", (reports) => reports.get(key))).result ?? null;
  },

  async setItem(key, text) {
    await transact("readwrite", (reports) => reports.put(text, key));
  },

  async addItem(key, text) {
    await transact("readwrite", (reports) => {
      const adding = reports.add(text, key);
      adding.onerror = (event) => {
        if (adding.error.name === "ConstraintError") event.preventDefault(); // one is there and stays: not a failure
      };
      return adding;
    });
  },

  lock(work) {
    const locks = globalThis.navigator?.locks;
    return locks ? locks.request("priorveil", work) : inTurn("priorveil", work);
  },
};

/**
 * A request whose transaction has succeeded and is on the disk. The database is opened for this request only: so no tab
 * blocks its deletion, or goes on with a database that was deleted.
 */
async function transact(mode, act) {
  const database = await openDatabase();
  try {
    return await new Promise((done, failed) => {
      const transaction = database.transaction(REPORTS, mode, { durability: "strict" });
      const request = act(transaction.objectStore(REPORTS));
      transaction.oncomplete = () => done(request);
      transaction.onabort = () => failed(transaction.error);
    });
  } finally {
    database.close();
  }
}

function openDatabase() {
  return new Promise((done, failed) => {
    const request = globalThis.indexedDB.open("priorveil", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(REPORTS);
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}

/**
 * Remembers in a folder: the storage for Node. Made by `FileStorage.open`.
 *
 * Each campaign has one file, which only its owner can read. It is on the disk before anything is sent. It is complete or
 * absent: a draft is written first and then renamed. Several programs of one machine may share the folder: the first report of
 * a campaign stands, and they add to it one after the other.
 */
export class FileStorage {
  #fs;
  #host;

  constructor(folder, fs, host) {
    need(fs, "folder", "use `await FileStorage.open(folder)`");
    this.folder = folder;
    this.#fs = fs;
    this.#host = host;
  }

  /** The storage of a folder, which is created if it is missing. */
  static async open(folder) {
    need(typeof folder === "string" && folder !== "", "folder", "should be the name of a folder");
    const modules = [import("node:fs"), import("node:path"), import("node:os")];
    const [fs, { resolve }, { hostname }] = await Promise.all(modules);
    const absolute = resolve(folder); // the working directory may change later
    try {
      fs.mkdirSync(absolute, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new PriorveilError("folder", `it cannot be created, or is a file (${error.code})`);
    }
    return new FileStorage(absolute, fs, hostname());
  }

  /** The keys of all texts in the folder. */
  keys() {
    const names = this.#fs.readdirSync(this.folder).filter((name) => name.endsWith(".json") && !name.startsWith("."));
    return names.map((name) => decodeURIComponent(name.slice(0, -".json".length)));
  }

  /** The text under a key, or null if there is none. A file that cannot be read is an error, not a missing one. */
  getItem(key) {
    try {
      return this.#fs.readFileSync(this.#path(key), "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw error;
    }
  }

  /** Store a text, instead of what was there. */
  setItem(key, text) {
    this.#write(text, (draft) => this.#fs.renameSync(draft, this.#path(key)));
  }

  /** Store a text unless the key has one. Linking a file is atomic: only one of several programs succeeds. */
  addItem(key, text) {
    this.#write(text, (draft) => {
      try {
        this.#fs.linkSync(draft, this.#path(key));
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
      }
    });
  }

  /**
   * Run alone among the programs of this machine that share the folder; Windows has no such lock.
   *
   * The lock is the folder `.lock` with one file in it, named after its program. A folder can be renamed to an empty one only,
   * so one program succeeds. The file of a program that has died is removed: no other has its name.
   */
  async lock(work) {
    if (globalThis.process.platform === "win32") return inTurn("priorveil", work);
    const [fs, lock, mine] = [this.#fs, `${this.folder}/.lock`, `${globalThis.process.pid}.${freshId()}.${this.#host}`];
    const own = `${this.folder}/.${mine}`;
    try {
      fs.mkdirSync(own, { mode: 0o700 });
      fs.writeFileSync(`${own}/${mine}`, "");
      for (const end = Date.now() + 2 * LONGEST_LOCK; !this.#rename(own, lock); await sleep(0.02 * Math.random())) {
        for (const name of fs.readdirSync(lock)) if (this.#isDead(lock, name)) fs.rmSync(`${lock}/${name}`, { force: true });
        need(Date.now() < end, "storage", `another program holds ${lock}: delete it if there is none. ${UNSENT}`);
      }
      return await work();
    } finally {
      fs.rmSync(`${lock}/${mine}`, { force: true });
      fs.rmSync(own, { recursive: true, force: true });
    }
  }

  /** Whether a folder could be renamed; false if there is one with a file in it. */
  #rename(from, to) {
    try {
      this.#fs.renameSync(from, to);
      return true;
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST"].includes(error.code)) throw error;
      return false;
    }
  }

  /** Whether the program of a lock has ended; one of another machine or container is given a minute. */
  #isDead(lock, name) {
    const { process } = globalThis;
    const [pid, , ...host] = name.split(".");
    const age = Date.now() - (this.#fs.statSync(`${lock}/${name}`, { throwIfNoEntry: false })?.mtimeMs ?? Infinity);
    if (host.join(".") !== this.#host) return age > LONGEST_LOCK;
    if (Number(pid) === process.pid) return age > 1000 * process.uptime(); // a container starts again with the same number
    try {
      process.kill(Number(pid), 0); // sends nothing
      return false;
    } catch (error) {
      return error.code === "ESRCH";
    }
  }

  #path(key) {
    return `${this.folder}/${encodeURIComponent(key)}.json`;
  }

  #write(text, publish) {
    const draft = `${this.folder}/.${freshId()}.part`;
    try {
      this.#sync(draft, "wx", (file) => this.#fs.writeFileSync(file, text));
      publish(draft);
    } finally {
      this.#fs.rmSync(draft, { force: true });
    }
    if (globalThis.process.platform !== "win32") this.#sync(this.folder, "r"); // Windows cannot open a folder
  }

  /** Open a file or a folder, write to it, and wait until it is on the disk. */
  #sync(path, flags, write = () => {}) {
    const file = this.#fs.openSync(path, flags, 0o600);
    try {
      write(file);
      this.#fs.fsyncSync(file);
    } finally {
      this.#fs.closeSync(file);
    }
  }
}

const turns = new Map();

/** One after the other among the clients of this program; tabs and other programs are kept apart by the storage. */
function inTurn(name, work) {
  const turn = (turns.get(name) ?? Promise.resolve()).then(work);
  const over = turn.then(
    () => {},
    () => {},
  );
  turns.set(name, over);
  over.then(() => {
    if (turns.get(name) === over) turns.delete(name);
  });
  return turn;
}

// Forms: what leaves the device.

import { canonical, checkId, hex, littleEndianNumber } from "./documents.js";
import { need } from "./errors.js";
import { readPlan } from "./plans.js";
import { LARGEST_REPORT, TOTAL_BITS, scan, systemWords } from "./randomness.js";
import { readDocument } from "./structure.js";
/** @import { Levels } from "./certificates.js" */
/** @import { Json, JsonDocument } from "./documents.js" */
/** @import { Value } from "./domains.js" */
/** @import { Report } from "./mechanisms/kinds.js" */
/** @import { Plan } from "./plans.js" */
/** @import { Source } from "./randomness.js" */

/**
 * A plan about some attributes, and how many of 2**20 people are asked about it.
 *
 * @typedef {{ readonly attributes: readonly string[], readonly share: number, readonly plan: Plan }} Part
 */

const SHARE_BITS = 20n; // the shares of a slot's parts add up to 2**20, so that a part is drawn exactly

/** One report of a submission: about the attributes of its only part, or of the part that this device has drawn. */
class Slot {
  #weights;

  /** @param {Part[]} parts */
  constructor(parts) {
    this.parts = Object.freeze(parts);
    this.#weights = parts.map(({ share }) => BigInt(share) << (TOTAL_BITS - SHARE_BITS));
    this.drawn = parts.length > 1;
    this.width = (this.drawn ? 1 : 0) + Math.max(...parts.map(({ plan }) => plan.words));
    Object.freeze(this);
  }

  /**
   * The position of a part, by its share. It takes no random word where there is only one part.
   *
   * @param {Source} [source]
   */
  draw(source = systemWords) {
    return this.drawn ? scan(this.#weights, source(1)[0]) : 0;
  }

  /**
   * The report about a part as hexadecimal, of the same length for every part and value.
   *
   * @param {ReadonlyMap<string, Value>} values
   * @param {number} at
   * @param {Source} [source]
   */
  privatize(values, at, source = systemWords) {
    const { attributes, plan } = this.parts[at];
    const levels = attributes.map((name) => {
      const level = values.get(name);
      need(level !== undefined, "answers", `there is none for ${name}`);
      return level;
    });
    const value = plan.attributes === null ? levels[0] : /** @type {Value} */ (levels);
    const report = plan.privatize(value, source);
    const packed = typeof report === "string" ? report : wordText(report);
    return `${this.drawn ? wordText(at) : ""}${packed}`.padEnd(16 * this.width, "0");
  }

  /**
   * The position of the part and its report, from their hexadecimal; null if this slot cannot have made them.
   *
   * @param {string} text
   * @returns {{ readonly at: number, readonly report: Report } | null}
   */
  unpack(text) {
    const at = this.drawn ? wordNumber(text.slice(0, 16)) : 0;
    if (at === null || at >= this.parts.length) return null;
    const { plan } = this.parts[at];
    const rest = this.drawn ? text.slice(16) : text;
    const [own, padding] = [rest.slice(0, 16 * plan.words), rest.slice(16 * plan.words)];
    const report = plan.reportsBits ? own : wordNumber(own);
    return report !== null && plan.accepts(report) && /^0*$/.test(padding) ? { at, report } : null;
  }
}

/** A whole number as the hexadecimal of one little-endian word. @param {number} number */
function wordText(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number), true);
  return hex(bytes);
}

/** The whole number of a word in hexadecimal; null if it is too large for a number. @param {string} text */
function wordNumber(text) {
  const value = littleEndianNumber(text);
  return value < LARGEST_REPORT ? Number(value) : null;
}

/**
 * What the people of a cohort send: one report for each slot. Made by `readForm` and `readCampaign` only.
 *
 * `levels` are those of a whole submission, about any answer and all of them together, whatever they have to do with each other.
 */
export class Form {
  /** @param {string} id @param {readonly Slot[]} slots */
  constructor(id, slots) {
    this.id = id;
    this.slots = Object.freeze(slots);
    this.parts = Object.freeze(slots.flatMap((slot) => slot.parts));
    this.attributes = Object.freeze([...new Set(this.parts.flatMap((part) => part.attributes))]);
    this.width = slots.reduce((total, slot) => total + slot.width, 0);
    this.levels = Object.freeze(submissionLevels(slots));
    Object.freeze(this);
  }

  /** For each slot the position of a part, drawn at random. @param {Source} [source] */
  draw(source = systemWords) {
    return this.slots.map((slot) => slot.draw(source));
  }

  /** The parts that a draw has chosen, one for each slot. @param {readonly number[]} draw */
  drawnParts(draw) {
    need(this.fitsDraw(draw), "draw", "should have the position of a part for each slot");
    return this.slots.map((slot, i) => slot.parts[draw[i]]);
  }

  /** Whether these are positions of parts, one for each slot. @param {unknown} draw */
  fitsDraw(draw) {
    /** @type {(at: number, i: number) => boolean} */
    const inside = (at, i) => Number.isInteger(at) && at >= 0 && at < this.slots[i].parts.length;
    return Array.isArray(draw) && draw.length === this.slots.length && draw.every(inside);
  }

  /**
   * The submission of one person: `values` has a level for each attribute of the drawn parts.
   *
   * @param {ReadonlyMap<string, Value>} values
   * @param {readonly number[]} draw
   * @param {Source} [source]
   */
  privatize(values, draw, source = systemWords) {
    this.drawnParts(draw);
    return this.slots.map((slot, i) => slot.privatize(values, draw[i], source)).join("");
  }

  /**
   * The part and its report for each slot of a submission; null if this form cannot have made it.
   *
   * @param {unknown} report
   * @returns {{ readonly at: number, readonly report: Report }[] | null}
   */
  unpack(report) {
    if (typeof report !== "string" || report.length !== 16 * this.width || !/^[0-9a-f]+$/.test(report)) return null;
    let start = 0;
    const reports = this.slots.map((slot) => {
      start += 16 * slot.width;
      return slot.unpack(report.slice(start - 16 * slot.width, start));
    });
    return reports.every((each) => each !== null) ? reports : null;
  }

  /** Whether this form can have made a submission. @param {unknown} report */
  accepts(report) {
    return this.unpack(report) !== null;
  }
}

/**
 * What a whole submission tells about all answers together, and so about each of them, whatever they have to do with each
 * other. One report has the largest levels of its parts; a part counts with its LDP level if its prior is only assumed. The LDP
 * levels of several reports add up, whatever anyone knows.
 *
 * @param {readonly Slot[]} slots
 * @returns {Levels}
 */
function submissionLevels(slots) {
  const each = slots.map(({ parts }) => {
    /** @param {keyof Levels} name */
    const largest = (name) => Math.max(...parts.map(({ plan }) => plan.levels[plan.priorAssumed ? "ldp" : name]));
    return { lip: largest("lip"), lipLower: largest("lipLower"), lipUpper: largest("lipUpper"), ldp: largest("ldp") };
  });
  if (each.length === 1) return each[0];
  const ldp = each.reduce((total, level) => total + level.ldp, 0);
  return { lip: ldp, lipLower: ldp, lipUpper: ldp, ldp };
}

/**
 * Read a form from its document: check its id and every plan in it, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export async function readForm(given, { id } = {}) {
  const document = readDocument(given, "FormDocument");
  const names = document.slots.map((/** @type {Json[]} */ parts) =>
    parts.map((part) => ({ ...part, plan: part.plan.id ?? null })),
  );
  await checkId({ id: document.id, slots: names }, id);
  const slots = await Promise.all(document.slots.map(readSlot));
  const parts = slots.flatMap((slot) => slot.parts);
  const alone =
    parts.length === 1 || parts.every(({ plan }) => plan.protects === "value" && plan.levels.ldp < Infinity);
  need(alone, "slots", "a plan that protects a secret, or has no LDP level, should be the only part");
  const asked = parts.map(({ attributes }) => canonical(attributes));
  need(new Set(asked).size === asked.length, "slots", "two parts have the same attributes");
  return new Form(document.id, slots);
}

/** @param {Json} listed */
async function readSlot(listed) {
  const parts = await Promise.all(
    listed.map(async (/** @type {Json} */ { attributes, share, plan: document }) => {
      const plan = await readPlan(document);
      const own = plan.attributes?.map(({ name }) => name);
      const fits = own ? canonical(own) === canonical(attributes) : attributes.length === 1;
      need(fits, "slots.attributes", "should be those of the plan, or one name");
      need(own || !plan.labels.some(Array.isArray), "slots.attributes", "the values of the plan have no names");
      return Object.freeze({ attributes, share, plan });
    }),
  );
  const total = parts.reduce((sum, { share }) => sum + share, 0);
  need(total === Number(1n << SHARE_BITS), "slots.share", `should add up to 2**${SHARE_BITS} in a slot`);
  return new Slot(parts);
}

// What a caller may have to handle.

/** Something that must not be trusted, or cannot be done; `field` names the part of the document or the argument. */
export class PriorveilError extends Error {
  /** @param {string} field @param {string} message */
  constructor(field, message) {
    super(printable(`${field}: ${message}`)); // it may quote a document
    this.name = "PriorveilError";
    /** @readonly @type {string} */
    this.field = field;
  }
}

/** The curator answered and did not accept the report, or has no such campaign; `reason` says why. */
export class ReportRefused extends PriorveilError {
  /** @param {string} reason @param {string} [message] @param {string} [field] */
  constructor(reason, message = reason, field = "report") {
    super(field, message);
    this.name = "ReportRefused";
    /** @readonly @type {string} */
    this.reason = reason;
  }
}

/** The report could not be delivered for now. It is kept, and sending again sends the same report. */
export class NotSent extends PriorveilError {
  /** @param {string} message */
  constructor(message) {
    super("network", message);
    this.name = "NotSent";
  }
}

/** With this answer, what this device has sent to the curator would tell more than its limit allows. Nothing was drawn or sent. */
export class BudgetExceeded extends PriorveilError {
  /** @param {number} level @param {number} limit */
  constructor(level, limit) {
    const told = level === Infinity ? "no bound is known for" : `LDP ${level.toPrecision(4)} would be reached by`;
    super("limit", `${told} all answers of this device to this curator; its limit is ${limit}`);
    this.name = "BudgetExceeded";
    /** The LDP level that all answers together would have. @readonly @type {number} */
    this.level = level;
    /** @readonly @type {number} */
    this.limit = limit;
  }
}

const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu; // what Python calls so: control characters, marks of direction, unusual spaces

/**
 * A text with everything escaped that could change how a terminal or a page shows the text around it.
 *
 * @param {string} text
 */
export function printable(text) {
  return text.replace(UNPRINTABLE, (character) => `\\u{${Number(character.codePointAt(0)).toString(16)}}`);
}

/** @param {unknown} holds @param {string} field @param {string} message @returns {asserts holds} */
export function need(holds, field, message) {
  if (!holds) throw new PriorveilError(field, message);
}

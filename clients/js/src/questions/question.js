// Questions: what every kind of question has in common.

import { need } from "../errors.js";
import { checkTexts } from "../fields.js";
import { valueKey } from "../values.js";
/** @import { Json } from "../documents.js" */
/** @import { Domain, Label, Numbers, Value } from "../domains.js" */

/** @typedef {{ readonly [language: string]: string }} Texts A text by language; empty where it was not given. */
/** @typedef {string | number | bigint | readonly string[] | ReadonlySet<string>} Answer A code, the codes of several, or a number. */
/** @typedef {{ readonly [question: string]: Answer }} Answers An answer for each question that is asked, by its name. */
/** @typedef {string | number | bigint | string[] | null} Read An answer that was read; null for a question that was skipped. */

export const NOT_ASKED = "not asked"; // the level of a question that earlier answers skip

/** One question. Each kind is a subclass; made by `readCampaign` only. */
export class Question {
  /** The codes after which other questions may be asked; none if no question may depend on this one. @type {readonly string[]} */
  gateCodes = [];
  /** What counts as an answer where nothing is chosen or typed; undefined if nothing does. @type {Answer | undefined} */
  emptyAnswer = undefined;
  /** The ranges that a number is put into; null where there are none. @type {Numbers | null} */
  ranges = null;

  /** @param {Json} document */
  constructor(document) {
    /** @type {string} */
    this.name = document.name;
    /** @type {string} */
    this.kind = document.kind;
    /** @type {Texts} */
    this.text = document.text;
    /** @type {Texts} */
    this.hint = document.hint;
    /** @type {Texts} */
    this.unit = document.unit;
    /** @type {readonly { readonly code: string, readonly text: Texts }[]} */
    this.options = document.options;
    /** The earlier questions, and the codes after which this one is asked. @type {ReadonlyMap<string, readonly string[]>} */
    this.askedIf = new Map(Object.entries(document.asked_if));
    /** The attributes that an answer gives. @type {readonly string[]} */
    this.attributes = Object.freeze([this.name]);
  }

  /**
   * Refuse a document that breaks a rule of its kind.
   *
   * @param {Json} document
   * @param {readonly string[]} languages
   */
  check({ name, text, hint, unit }, languages) {
    need(/^[\p{L}\p{N}_-]+$/u.test(name), "questions.name", "should be letters, digits, _ and -");
    checkTexts(text, "questions.text", languages);
    checkTexts(hint, "questions.hint", languages, true);
    checkTexts(unit, "questions.unit", languages, true);
  }

  /**
   * Whether it is asked after these answers: a code for each question, or null for one that was skipped.
   *
   * @param {ReadonlyMap<string, Read>} answers
   */
  isAsked(answers) {
    return [...this.askedIf].every(([gate, codes]) => codes.includes(/** @type {string} */ (answers.get(gate))));
  }

  /** The code of the option that an attribute is about; null if it is about the whole question. @param {string} attribute */
  optionOf(attribute) {
    return attribute === this.name ? null : attribute.slice(this.name.length + 1);
  }

  /**
   * The answer as a code, a list of codes, a number or the label of its range; an error if it is none, without showing it.
   *
   * @abstract
   * @param {unknown} _answer
   * @returns {NonNullable<Read>}
   */
  read(_answer) {
    throw new TypeError(`questions of kind ${this.kind} do not say how they are read`);
  }

  /**
   * The level of each attribute, from an answer that was read; null for a question that was skipped.
   *
   * @param {Read} answer
   * @returns {[string, Value][]}
   */
  levels(answer) {
    return this.attributes.map((name) => [name, answer === null ? NOT_ASKED : this.levelOf(name, answer)]);
  }

  /** @protected @param {string} _attribute @param {NonNullable<Read>} answer @returns {Value} */
  levelOf(_attribute, answer) {
    return /** @type {Value} */ (answer);
  }

  /**
   * Refuse a plan whose values of an attribute are others than an answer can give.
   *
   * @param {Pick<Domain, "labels" | "numbers">} domain
   * @param {boolean} _refusesNumbers
   */
  checkDomain({ labels, numbers }, _refusesNumbers) {
    const expected = [...this.ownLevels, ...(this.askedIf.size > 0 ? [NOT_ASKED] : [])];
    const keys = new Set(labels.map(valueKey));
    const same = keys.size === expected.length && expected.every((level) => keys.has(valueKey(level)));
    need(numbers === null && same, "cohorts", `the values of ${this.name} are not those of its plan`);
  }

  /** The levels of each attribute, except "not asked". @protected @returns {readonly Label[]} */
  get ownLevels() {
    return [];
  }

  /**
   * Refuse an answer, without showing it.
   *
   * @protected
   * @template T
   * @param {T | undefined | false | null} good
   * @param {string} problem
   * @returns {T}
   */
  need(good, problem) {
    need(good !== undefined && good !== false, `answers.${this.name}`, problem);
    return /** @type {T} */ (good);
  }
}

// Questions with options: a choice of one of them, or "tick all that apply".

import { need } from "../errors.js";
import { checkTexts } from "../fields.js";
import { valueKey } from "../values.js";
import { NOT_ASKED, Question } from "./question.js";
/** @import { Json } from "../documents.js" */
/** @import { Label, Value } from "../domains.js" */
/** @import { Answer, Read } from "./question.js" */

const [YES, NO] = ["yes", "no"]; // the levels of an option of "tick all that apply"
const EDGE_BLANK = /^[\s\x1c-\x1f\x85]|[\s\x1c-\x1f\x85]$/;

/** What both kinds share: rules of options, and codes as answers. */
class QuestionWithOptions extends Question {
  leastOptions = 1;

  /** The options by the key of their code. @type {Map<string | null | undefined, string>} */
  #codes;

  /** @param {Json} document */
  constructor(document) {
    super(document);
    this.#codes = new Map(this.options.map(({ code }) => [valueKey(code), code]));
  }

  /** @param {Json} document @param {readonly string[]} languages */
  check(document, languages) {
    super.check(document, languages);
    const { options, edges } = document;
    need(options.length >= this.leastOptions, "questions.options", `should be at least ${this.leastOptions}`);
    const keys = new Set([valueKey(NOT_ASKED)]);
    for (const option of options) {
      const { code } = option;
      const key = EDGE_BLANK.test(code) ? null : valueKey(code);
      need(key !== null && !keys.has(key), "questions.options", "should have different codes, and not 'not asked'");
      keys.add(key);
      checkTexts(option.text, "questions.options", languages);
    }
    for (const language of languages) {
      const texts = new Set(options.map((/** @type {Json} */ { text }) => text[language].trim().toLowerCase()));
      need(texts.size === options.length, "questions.options", "two have the same text in a language");
    }
    need(edges.length === 0, "questions.edges", "belong to a number");
  }

  /** @protected @param {unknown} answer @returns {string} */
  codeOf(answer) {
    const code = Array.isArray(answer) ? undefined : this.#codes.get(valueKey(answer) ?? "");
    return this.need(code, "should be the code of one of its options");
  }
}

/** A choice of one option. */
export class SingleChoice extends QuestionWithOptions {
  leastOptions = 2;

  /** @param {Json} document */
  constructor(document) {
    super(document);
    this.gateCodes = this.options.map(({ code }) => code);
    Object.freeze(this);
  }

  /** @param {unknown} answer */
  read(answer) {
    return this.codeOf(answer);
  }

  /** @returns {readonly Label[]} */
  get ownLevels() {
    return this.gateCodes;
  }
}

/** Any number of options. Each is an attribute, with the levels yes and no. */
export class MultipleChoice extends QuestionWithOptions {
  /** @param {Json} document */
  constructor(document) {
    super(document);
    /** @type {Answer} */
    this.emptyAnswer = [];
    this.attributes = Object.freeze(this.options.map(({ code }) => `${this.name}/${code}`));
    Object.freeze(this);
  }

  /** @param {unknown} answer */
  read(answer) {
    const listed = answer instanceof Set ? [...answer] : answer;
    const codes = this.need(
      Array.isArray(listed) && listed,
      "should be a list of the codes of its options, empty if none applies",
    );
    const chosen = new Set(codes.map((code) => this.codeOf(code)));
    return this.options.map(({ code }) => code).filter((code) => chosen.has(code));
  }

  /** @param {string} attribute @param {NonNullable<Read>} answer @returns {Value} */
  levelOf(attribute, answer) {
    return /** @type {string[]} */ (answer).includes(this.optionOf(attribute) ?? "") ? YES : NO;
  }

  /** @returns {readonly Label[]} */
  get ownLevels() {
    return [YES, NO];
  }
}

// The answers of one person, for as long as the page is open: which question comes next, and what is missing. Nothing is stored.

import { readNumber } from "/static/priorveil.js";
/** @import { Campaign, Part, Question } from "/static/priorveil.js" */

/** One person's way through a campaign: the cohort, the questions that this device asks, and true answers to them. */
export class Interview {
  #answers = noEntries();
  #typed = noEntries(); // numbers as they were typed
  #unread = noEntries(); // the keys of the texts that say why one cannot be read

  /** @param {Campaign} campaign */
  constructor(campaign) {
    this.campaign = campaign;
    /** @type {string | undefined} */
    this.cohort = campaign.cohorts.length === 1 ? campaign.cohorts[0] : undefined;
    /** Those of the form that this device sends reports about. @type {readonly Part[]} */
    this.parts = [];
    /** @type {readonly Question[]} */
    this.questions = [];
  }

  get form() {
    return this.campaign.formFor(this.cohort);
  }

  /** By the name of the question. */
  get answers() {
    return this.#answers;
  }

  /** Ask the questions of the parts that a draw has chosen; null is a preview, which draws nothing and asks them all. */
  ask(/** @type {readonly number[] | null} */ draw) {
    this.parts = draw === null ? this.form.parts : this.form.drawnParts(draw);
    this.questions = draw === null ? this.campaign.questions : this.campaign.questionsToAsk(this.cohort, draw);
  }

  /** The questions that are asked after the answers so far. */
  get asked() {
    return this.campaign.questionsAsked(this.questions, this.#answers);
  }

  /** The question before this one; undefined if there is none. @param {Question} question */
  before(question) {
    const at = this.questions.indexOf(question);
    return this.asked.filter((other) => this.questions.indexOf(other) < at).at(-1);
  }

  /**
   * The question after this one, or, on the way back to what will be sent, the first without an answer; undefined at the end.
   *
   * @param {Question} question
   * @param {boolean} toReview
   */
  after(question, toReview) {
    const at = this.questions.indexOf(question);
    if (toReview) return this.asked.find(({ name }) => this.#answers[name] === undefined);
    return this.asked.find((other) => this.questions.indexOf(other) > at);
  }

  /** Answer with the code of an option, or with those of several; undefined takes the answer back. */
  choose(/** @type {Question} */ { name }, /** @type {string | string[] | undefined} */ codes) {
    this.#answers[name] = codes;
  }

  /** Answer with a number as it is typed. Where it cannot be read, there is no answer. */
  type(/** @type {Question} */ { name }, /** @type {string} */ text) {
    this.#typed[name] = text;
    const { value, problem } = readTyped(text);
    [this.#answers[name], this.#unread[name]] = [value, problem];
  }

  /** What was typed, or an empty text. */
  typed(/** @type {Question} */ { name }) {
    return this.#typed[name] ?? "";
  }

  /**
   * The key of the text that says why there is no answer, `missing` if none was given; null if there is one. No tick is an answer, too.
   *
   * @param {Question} question
   * @param {string} missing
   */
  problem({ name, emptyAnswer }, missing) {
    this.#answers[name] ??= emptyAnswer;
    return this.#answers[name] === undefined ? (this.#unread[name] ?? missing) : null;
  }

  /** Forget every answer. */
  forget() {
    [this.#answers, this.#typed, this.#unread] = [noEntries(), noEntries(), noEntries()];
  }

  /** Whether a report is sent about a question itself; if not, it decides what is asked, and other reports tell something about it. */
  isReported(/** @type {Question} */ question) {
    return this.parts.some(({ attributes }) => attributes.some((name) => question.attributes.includes(name)));
  }

  /** The questions that a part is about. */
  questionsOf(/** @type {Pick<Part, "attributes">} */ { attributes }) {
    return this.campaign.questions.filter((question) => question.attributes.some((name) => attributes.includes(name)));
  }

  /** The bounds of the ranges that a number is put into; numbers outside count as the ends. Undefined where there are none. */
  bounds(/** @type {Question} */ { name, ranges }) {
    const part = this.form.parts.find(({ attributes }) => attributes.includes(name));
    const numbers = part && (part.plan.attributes?.[part.attributes.indexOf(name)] ?? part.plan).numbers;
    return (ranges ?? numbers)?.bounds;
  }

  /** The number that the answer to a question counts as: the answer itself, or the nearest end. */
  countsAs(/** @type {Question} */ question) {
    const answer = Number(this.#answers[question.name]);
    const bounds = this.bounds(question);
    return bounds === undefined ? answer : Math.min(Math.max(answer, bounds[0]), bounds[bounds.length - 1]);
  }
}

/** An object without entries, also for a question with the name "constructor". @returns {Record<string, any>} */
function noEntries() {
  return Object.create(null);
}

/** The number that was typed, or the key of the text that says what is wrong with it. @param {string} text */
function readTyped(text) {
  try {
    return { value: readNumber(text) };
  } catch (error) {
    if (text.trim() === "") return {};
    return { problem: error.message.includes("ambiguous") ? "ambiguousNumber" : "notANumber" };
  }
}

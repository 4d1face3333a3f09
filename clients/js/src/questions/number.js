// Questions about a number, as it is or in ranges.

import { NumberDomain } from "../domains.js";
import { need } from "../errors.js";
import { systemWords } from "../randomness.js";
import { valueKey, withDecimalPoints } from "../values.js";
import { Question } from "./question.js";
/** @import { Json } from "../documents.js" */
/** @import { Domain, Label } from "../domains.js" */
/** @import { Read } from "./question.js" */

/** A number. Edges put answers into ranges; without them its plan rounds or sorts it. */
export class NumberQuestion extends Question {
  #ranges;

  /** @param {Json} document */
  constructor(document) {
    super(document);
    const cells = { kind: "cells", edges: document.edges, outside: "ends" };
    this.#ranges = document.edges.length > 0 ? new NumberDomain(cells, "questions.edges") : null;
    this.ranges = this.#ranges?.numbers ?? null;
    Object.freeze(this);
  }

  /** @param {Json} document @param {readonly string[]} languages */
  check(document, languages) {
    super.check(document, languages);
    const { options, asked_if: gates, edges } = document;
    need(options.length === 0, "questions.options", "belong to a choice");
    const always = Object.keys(gates).length === 0;
    need(always || edges.length > 0, "questions.edges", "are needed where a number is not always asked");
  }

  /** @param {unknown} answer @returns {NonNullable<Read>} */
  read(answer) {
    const key = typeof answer === "boolean" ? undefined : valueKey(withDecimalPoints(answer));
    const good = answer === Infinity || answer === -Infinity || key?.startsWith("number ");
    this.need(good && !Array.isArray(answer), "should be a number");
    if (this.#ranges === null) return /** @type {number} */ (answer);
    return /** @type {string} */ (this.#ranges.labels[this.#ranges.code(answer, systemWords)]);
  }

  /** @param {Pick<Domain, "labels" | "numbers">} domain @param {boolean} refusesNumbers */
  checkDomain(domain, refusesNumbers) {
    if (this.#ranges !== null) return super.checkDomain(domain, refusesNumbers);
    need(domain.numbers !== null, "cohorts", `the values of ${this.name} are not those of its plan`);
    const advice = "should count numbers outside the range at the ends: silence would reveal them";
    return need(!refusesNumbers, "cohorts", advice);
  }

  /** @returns {readonly Label[]} */
  get ownLevels() {
    return this.#ranges?.labels ?? [];
  }
}

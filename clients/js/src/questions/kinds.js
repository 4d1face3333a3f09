// The kinds of questions, and the questions of a campaign.

import { need } from "../errors.js";
import { MultipleChoice, SingleChoice } from "./choices.js";
import { NumberQuestion } from "./number.js";
/** @import { Json, JsonDocument } from "../documents.js" */
/** @import { Question } from "./question.js" */

/** @type {Record<string, new (document: Json) => Question>} */
const QUESTION_KINDS = { choice: SingleChoice, choices: MultipleChoice, number: NumberQuestion };

/** @param {JsonDocument} document @returns {Question[]} */
export function readQuestions({ questions, languages }) {
  /** @type {Map<string, Question>} */
  const earlier = new Map();
  for (const document of questions) {
    const { kind } = document;
    need(Object.hasOwn(QUESTION_KINDS, kind), "questions.kind", "is not known here");
    const question = new QUESTION_KINDS[kind](document);
    question.check(document, languages);
    need(!earlier.has(question.name), "questions.name", "two questions have the same");
    for (const [gate, codes] of question.askedIf) {
      const known = earlier.get(gate)?.gateCodes ?? [];
      need(known.length > 0, "questions.asked_if", "should name an earlier question with one choice");
      const some = codes.every((code) => known.includes(code));
      need(some, "questions.asked_if", "should have options of that question");
    }
    earlier.set(question.name, question);
  }
  return [...earlier.values()];
}

/**
 * The questions that give some attributes, and those that decide whether they are asked, in order.
 *
 * @param {readonly Question[]} questions
 * @param {readonly string[]} attributes
 */
export function questionsFor(questions, attributes) {
  /** @type {Set<string>} */
  const needed = new Set();
  for (const question of [...questions].reverse()) {
    const own = question.attributes.some((name) => attributes.includes(name));
    if (!own && !needed.has(question.name)) continue;
    needed.add(question.name);
    for (const gate of question.askedIf.keys()) needed.add(gate);
  }
  return questions.filter(({ name }) => needed.has(name));
}

// Campaigns: questions, and a form for each cohort.

import { DEFINITIONS } from "./definitions.js";
import { canonical, checkId } from "./documents.js";
import { PriorveilError, need } from "./errors.js";
import { checkText, checkTexts, checkTime, real } from "./fields.js";
import { readForm } from "./forms.js";
import { questionsFor, readQuestions } from "./questions/kinds.js";
import { keptWords, systemWords } from "./randomness.js";
import { readDocument } from "./structure.js";
/** @import { Json, JsonDocument } from "./documents.js" */
/** @import { Value } from "./domains.js" */
/** @import { Form } from "./forms.js" */
/** @import { Answers, Question, Read, Texts } from "./questions/question.js" */
/** @import { Source } from "./randomness.js" */

/**
 * Questions, and a checked form for each cohort. Made by `readCampaign` only.
 *
 * `promise` has for each cohort what a whole submission tells about any answer: `lip` under the priors, `ldp` for any prior.
 */
export class Campaign {
  #questions;

  /**
   * @param {JsonDocument} document
   * @param {readonly Question[]} questions
   * @param {Readonly<Record<string, Form>>} forms
   */
  constructor(document, questions, forms) {
    this.document = document;
    this.forms = forms;
    /** @type {string} */
    this.id = document.id;
    /** @type {Texts} */
    this.title = document.title;
    /** @type {Texts} */
    this.description = document.description;
    /** @type {Texts} */
    this.askedBy = document.asked_by;
    /** @type {Texts} */
    this.purpose = document.purpose;
    /** @type {string} */
    this.contact = document.contact;
    /** The languages of all texts, the default first. @type {readonly string[]} */
    this.languages = document.languages;
    /** Whether everybody may answer, or a report needs the single-use code of an invitation. @type {"open" | "invitation"} */
    this.admission = document.admission;
    this.questions = Object.freeze(questions);
    this.promise = Object.freeze(Object.fromEntries(Object.entries(forms).map(([name, form]) => [name, form.levels])));
    this.#questions = new Map(questions.map((question) => [question.name, question]));
    /** @type {number} */
    this.smallestCount = document.smallest_count;
    /** No more reports than these are taken; null for no limit. @type {number | null} */
    this.mostReports = document.most_reports;
    /** How many people will probably answer; null if nobody knows. @type {number | null} */
    this.expectedPeople = document.expected_people;
    /** The LDP level to which the campaign lowers the limit of devices; null if it does not. */
    this.limit = document.limit === null ? null : Number(document.limit);
    this.cohorts = Object.freeze(Object.keys(forms));
    const [opens, closes, keepUntil] = TIMES.map((name) => (document[name] === null ? null : new Date(document[name])));
    this.opens = opens;
    this.closes = closes;
    /** When the reports are deleted; null if that is not decided. */
    this.keepUntil = keepUntil;
    Object.freeze(this);
  }

  /**
   * "not yet open", "open" or "closed" by this clock.
   *
   * @param {Date} [now]
   * @returns {"not yet open" | "open" | "closed"}
   */
  state(now = new Date()) {
    if (this.opens !== null && now < this.opens) return "not yet open";
    return this.closes !== null && now >= this.closes ? "closed" : "open";
  }

  /** The form of a cohort; the name may be left out where there is only one. @param {string} [cohort] */
  formFor(cohort) {
    const name = cohort === undefined && this.cohorts.length === 1 ? this.cohorts[0] : (cohort ?? "");
    need(Object.hasOwn(this.forms, name), "cohort", `choose one of ${this.cohorts.join(", ")}`);
    return this.forms[name];
  }

  /**
   * A draw for each form, by its id, all from the same random words: so a device draws once, and whoever corrects a wrong cohort
   * is asked what was drawn before, where the forms have the same shares.
   *
   * @param {Source} [source]
   * @returns {Record<string, number[]>}
   */
  drawForms(source = systemWords) {
    /** @type {bigint[]} */
    const words = [];
    return Object.fromEntries(Object.values(this.forms).map((form) => [form.id, form.draw(keptWords(words, source))]));
  }

  /**
   * The questions to show for a draw, in order: those of the drawn parts, and those that decide whether they are asked.
   *
   * @param {string | undefined} cohort
   * @param {readonly number[]} draw
   */
  questionsToAsk(cohort, draw) {
    return questionsFor(
      this.questions,
      this.formFor(cohort)
        .drawnParts(draw)
        .flatMap((part) => part.attributes),
    );
  }

  /**
   * Those of these questions that are asked after the answers so far; each answer is a code, codes or a number.
   *
   * @param {readonly Question[]} questions
   * @param {Answers} answers
   */
  questionsAsked(questions, answers) {
    const read = this.#readAnswers(questions, answers, () => undefined);
    return questions.filter(({ name }) => read.get(name) !== null);
  }

  /**
   * A level for each attribute of these questions, from answers by the name of the question. The answer to a question that is
   * skipped is ignored. An answer that is none is an error that does not show it.
   *
   * @param {Answers} answers
   * @param {readonly Question[]} [questions]
   * @returns {Map<string, Value>}
   */
  attributeValues(answers, questions = this.questions) {
    /** @param {Question} question @returns {never} */
    const missing = ({ name }) => {
      throw new PriorveilError(`answers.${name}`, "is missing");
    };
    const read = this.#readAnswers(questions, answers, missing);
    return new Map(questions.flatMap((question) => question.levels(read.get(question.name) ?? null)));
  }

  /**
   * Refuse a wrong answer to any question, also to one that is not drawn or skipped; null is no answer. A client calls this first,
   * so that a mistake of an app does not show for some people only.
   *
   * @param {Answers} answers
   */
  checkAnswers(answers) {
    this.#checkNames(answers);
    for (const question of this.questions) {
      const given = Object.hasOwn(answers, question.name) ? answers[question.name] : null;
      if (given !== null && given !== undefined) question.read(given);
    }
  }

  /** @param {Answers} answers */
  #checkNames(answers) {
    const object = answers !== null && typeof answers === "object" && !Array.isArray(answers);
    need(object, "answers", "should be an object with an answer for each question, by its name");
    for (const name of Object.keys(answers))
      need(this.#questions.has(name), `answers.${name}`, "is not a question here");
  }

  /**
   * @template M
   * @param {readonly Question[]} questions
   * @param {Answers} answers
   * @param {(question: Question) => M} missing what to read where there is no answer
   * @returns {Map<string, Read | M>}
   */
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

const TEXTS = Object.keys(DEFINITIONS.CampaignTexts.properties);
const TIMES = ["opens", "closes", "keep_until"]; // may be null

/**
 * Read a campaign from its document or text: check its id and every plan in it, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export async function readCampaign(given, { id } = {}) {
  const document = readDocument(given, "CampaignDocument");
  await checkId(document, id);
  checkCampaign(document);
  const questions = readQuestions(document);
  /** @type {[string, Json][]} */
  const entries = Object.entries(document.cohorts);
  const read = entries.map(async ([name, form]) => /** @type {const} */ ([name, await readForm(form)]));
  const forms = await Promise.all(read);
  for (const [, form] of forms) checkForm(form, questions);
  const reported = forms.map(([, { attributes }]) => canonical([...attributes].sort()));
  need(new Set(reported).size === 1, "cohorts", "should all be asked about the same attributes");
  const used = questionsFor(questions, forms[0][1].attributes);
  need(used.length === questions.length, "questions", "one of them has an answer that no form uses");
  need(new Set(forms.map(([, form]) => form.id)).size === forms.length, "cohorts", "two cohorts share a form");
  return new Campaign(document, questions, Object.freeze(Object.fromEntries(forms)));
}

/**
 * The plans of a form are about attributes of the questions, and have the values that answers give.
 *
 * @param {Form} form
 * @param {readonly Question[]} questions
 */
function checkForm({ parts, attributes }, questions) {
  const owner = new Map(questions.flatMap((question) => question.attributes.map((name) => [name, question])));
  for (const name of attributes) need(owner.has(name), "cohorts", `no question has the attribute ${name}`);
  for (const { attributes: names, plan } of parts)
    names.forEach((name, i) => owner.get(name)?.checkDomain((plan.attributes ?? [plan])[i], plan.refusesNumbers));
}

/** @param {JsonDocument} document */
function checkCampaign(document) {
  const { cohorts, opens, closes, keep_until: kept, languages } = document;
  const different = new Set(languages.map((/** @type {string} */ tag) => tag.toLowerCase())).size === languages.length;
  need(different, "languages", "should be tags such as en or pt-BR, each once");
  for (const name of TEXTS) checkTexts(document[name], name, languages, name !== "title");
  const limit = document.limit === null ? 1 : real(document.limit, "limit");
  need(limit > 0 && limit < Infinity, "limit", "should be a number above zero");
  for (const name of Object.keys(cohorts)) checkText(name, "cohorts");
  for (const name of TIMES) checkTime(document[name], name);
  need(opens === null || closes === null || opens < closes, "closes", "should be after it opens");
  need(kept === null || (closes !== null && closes < kept), "keep_until", "should be after it closes");
}

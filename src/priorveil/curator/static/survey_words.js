// The texts of a campaign in one language, and answers in its words.

import { el } from "/static/dom.js";
import { bestLanguage, direction, markLanguage } from "/static/language.js";

const NOT_ASKED = "not asked"; // the level of a question that earlier answers skip
const TICKED = "yes"; // the level of an option of "tick all that apply"
const UP_TO = /^(below|up to) (\S+)$/; // the label of a cumulative share of a number

/** The words of a survey for a reader who speaks through `speak`, with the texts in the language nearest to `tag`. */
export class SurveyWords {
  #survey;
  #speak;
  #language;

  constructor(survey, speak, tag) {
    this.#survey = survey;
    this.#speak = speak;
    this.#language = bestLanguage([tag, speak.language], survey.languages) ?? survey.languages[0];
  }

  // -- texts -------------------------------------------------------------------------------------------------------------

  own(texts) {
    return texts[this.#language] ?? "";
  }

  marked(text) {
    return markLanguage(this.#language, text);
  }

  /** A text of the survey within a text of the page, if it is written in the other direction. */
  isolated(text) {
    return direction(this.#language) === this.#speak.direction ? text : `\u2068${text}\u2069`;
  }

  separate(parts) {
    return parts.flatMap((part, i) => (i > 0 ? [this.#speak.say("comma"), part] : [part]));
  }

  // -- questions ---------------------------------------------------------------------------------------------------------

  questionAbout(attribute) {
    return this.#survey.questions.find(({ attributes }) => attributes.includes(attribute));
  }

  /** The code of the option that an attribute is about; null unless its question is "tick all that apply". */
  optionOf(attribute) {
    const { name } = this.questionAbout(attribute);
    return attribute === name ? null : attribute.slice(name.length + 1);
  }

  optionText(attribute) {
    return this.own(this.questionAbout(attribute).options[this.optionOf(attribute)]);
  }

  /** The text of the question that gives an attribute, and of the option if it is "tick all that apply". */
  nameOf(attribute) {
    const text = this.own(this.questionAbout(attribute).text);
    return this.optionOf(attribute) === null ? text : `${text} ${this.optionText(attribute)}`;
  }

  /** A text with the unit of the number that an attribute is; without a unit if the attribute is null. */
  withUnit(text, attribute) {
    const unit = attribute === null ? "" : this.own(this.questionAbout(attribute).unit);
    return unit ? `${text} (${unit})` : text;
  }

  /** The question that gives a number, with its unit. */
  numberName(attribute) {
    return this.withUnit(this.nameOf(attribute), attribute);
  }

  /** The questions that attributes are about, with the option if only one of "tick all that apply" is meant. */
  titleOf(attributes) {
    const questions = [...new Set(attributes.map((attribute) => this.questionAbout(attribute)))];
    return questions
      .map((question) => {
        const its = attributes.filter((attribute) => question.attributes.includes(attribute));
        return its.length === 1 ? this.nameOf(its[0]) : this.own(question.text);
      })
      .join(" × ");
  }

  // -- answers -----------------------------------------------------------------------------------------------------------

  /** Levels by attribute, as a list with the name and the levels of each question. */
  answersOf(levels) {
    const answers = new Map();
    for (const [attribute, level] of Object.entries(levels)) {
      const { name } = this.questionAbout(attribute);
      answers.set(name, { ...answers.get(name), [attribute]: level });
    }
    return [...answers];
  }

  /** An element for each answer. */
  answersWords(answers) {
    return answers.map((answer) => el("span", {}, ...this.#answerWords(answer)));
  }

  /** What the levels of one question say. */
  #answerWords([name, levels]) {
    const question = this.#survey.questions.find((one) => one.name === name);
    const [attributes, values] = [Object.keys(levels), Object.values(levels)];
    if (values.includes(NOT_ASKED)) return [this.#speak.say("notAsked")];
    if (question.attributes[0] === name) return this.#levelWords(question, values[0]);
    const isWhole = attributes.length === question.attributes.length;
    const shown = isWhole ? attributes.filter((attribute) => levels[attribute] === TICKED) : attributes;
    const text = (attribute) => {
      const option = this.marked(this.optionText(attribute));
      return levels[attribute] === TICKED ? option : el("span", {}, option, ": ", this.#speak.say("no"));
    };
    return shown.length > 0 ? this.separate(shown.map(text)) : [this.#speak.say("noneTicked")];
  }

  #levelWords(question, level) {
    if (level in question.options) return [this.marked(this.own(question.options[level]))];
    return [this.#speak.range(level) ?? el("bdi", {}, level)];
  }

  /** Whether levels say only that an option was not ticked: the share of those who did tick it says it too. */
  isSpare(levels) {
    return this.answersOf(levels).some(([, its]) => {
      const [[attribute, level], ...others] = Object.entries(its);
      return others.length === 0 && this.optionOf(attribute) !== null && level !== TICKED;
    });
  }

  /** The label of a statistic that is about no single answer, such as a cumulative share. */
  statisticWords(label) {
    const [, side, edge] = UP_TO.exec(label) ?? [];
    if (!Number.isFinite(Number(edge))) return el("bdi", { lang: "en" }, label);
    return this.#speak.say(side === "below" ? "belowNumber" : "upToNumber", {
      number: this.#speak.exact(Number(edge)),
    });
  }
}

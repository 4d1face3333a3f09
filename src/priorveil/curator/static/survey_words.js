// The texts of a campaign in one language, and answers in its words.

import { el } from "/static/dom.js";
import { bestLanguage, direction, markLanguage } from "/static/language.js";

const NOT_ASKED = "not asked"; // the level of a question that earlier answers skip
const TICKED = "yes"; // the level of an option of "tick all that apply"
const RANGE = /^\[(.+), (.+)[\])]$/; // the level of a number in a range
const UP_TO = /^(below|up to) (\S+)$/; // the label of a cumulative share of a number

/** The words of a survey for a reader who speaks through `speak`, with the texts in the language nearest to `tag`. */
export function surveyWords(survey, speak, tag) {
  const language = bestLanguage([tag, speak.language], survey.languages) ?? survey.languages[0];
  const own = (texts) => texts[language] ?? "";
  const marked = (text) => markLanguage(language, text);

  /** A text of the survey within a text of the page, if it is written in the other direction. */
  const isolated = (text) => (direction(language) === speak.direction ? text : `\u2068${text}\u2069`);
  const separate = (parts) => parts.flatMap((part, i) => (i > 0 ? [speak.say("comma"), part] : [part]));

  const questionAbout = (attribute) => survey.questions.find(({ attributes }) => attributes.includes(attribute));

  /** The code of the option that an attribute is about; null unless its question is "tick all that apply". */
  function optionOf(attribute) {
    const { name } = questionAbout(attribute);
    return attribute === name ? null : attribute.slice(name.length + 1);
  }

  const optionText = (attribute) => own(questionAbout(attribute).options[optionOf(attribute)]);

  /** The text of the question that gives an attribute, and of the option if it is "tick all that apply". */
  function nameOf(attribute) {
    const text = own(questionAbout(attribute).text);
    return optionOf(attribute) === null ? text : `${text} ${optionText(attribute)}`;
  }

  /** A text with the unit of the number that an attribute is; without a unit if the attribute is null. */
  function withUnit(text, attribute) {
    const unit = attribute === null ? "" : own(questionAbout(attribute).unit);
    return unit ? `${text} (${unit})` : text;
  }

  /** The questions that attributes are about, with the option if only one of "tick all that apply" is meant. */
  function titleOf(attributes) {
    const questions = [...new Set(attributes.map(questionAbout))];
    return questions
      .map((question) => {
        const its = attributes.filter((attribute) => question.attributes.includes(attribute));
        return its.length === 1 ? nameOf(its[0]) : own(question.text);
      })
      .join(" × ");
  }

  /** Levels by attribute, as a list with the name and the levels of each question. */
  function answersOf(levels) {
    const answers = new Map();
    for (const [attribute, level] of Object.entries(levels)) {
      const { name } = questionAbout(attribute);
      answers.set(name, { ...answers.get(name), [attribute]: level });
    }
    return [...answers];
  }

  /** What the levels of one question say. */
  function answerWords([name, levels]) {
    const question = survey.questions.find((one) => one.name === name);
    const [attributes, values] = [Object.keys(levels), Object.values(levels)];
    if (values.includes(NOT_ASKED)) return [speak.say("notAsked")];
    if (question.attributes[0] === name) return levelWords(question, values[0]);
    const isWhole = attributes.length === question.attributes.length;
    const shown = isWhole ? attributes.filter((attribute) => levels[attribute] === TICKED) : attributes;
    const text = (attribute) =>
      levels[attribute] === TICKED
        ? marked(optionText(attribute))
        : el("span", {}, marked(optionText(attribute)), ": ", speak.say("no"));
    return shown.length > 0 ? separate(shown.map(text)) : [speak.say("noneTicked")];
  }

  function levelWords(question, level) {
    if (level in question.options) return [marked(own(question.options[level]))];
    const ends = RANGE.exec(level)
      ?.slice(1)
      .map((end) => speak.exact(Number(end)));
    return [ends ? speak.say("between", { from: ends[0], to: ends[1] }) : el("bdi", {}, level)];
  }

  return Object.freeze({
    own,
    marked,
    isolated,
    separate,
    questionAbout,
    optionOf,
    optionText,
    nameOf,
    withUnit,
    titleOf,
    answersOf,

    /** The label of a statistic that is about no single answer, such as a cumulative share. */
    statisticWords(label) {
      const [, side, edge] = UP_TO.exec(label) ?? [];
      if (!Number.isFinite(Number(edge))) return el("bdi", { lang: "en" }, label);
      return speak.say(side === "below" ? "belowNumber" : "upToNumber", { number: speak.exact(Number(edge)) });
    },

    /** An element for each answer. */
    answersWords: (answers) => answers.map((answer) => el("span", {}, ...answerWords(answer))),

    /** The question that gives a number, with its unit. */
    numberName: (attribute) => withUnit(nameOf(attribute), attribute),

    /** Whether levels say only that an option was not ticked: the share of those who did tick it says it too. */
    isSpare: (levels) =>
      answersOf(levels).some(
        ([, its]) =>
          Object.keys(its).length === 1 && optionOf(Object.keys(its)[0]) !== null && Object.values(its)[0] !== TICKED,
      ),
  });
}

// What each kind of question looks like on the answer page: its field, and its answer.

import { clearComplaint, hasText, own, ownText, say, speak } from "/static/answer_page.js";
import { MANY } from "/static/disclosure.js";
import { el } from "/static/dom.js";
/** @import { Plan, Question } from "/static/priorveil.js" */
/** @import { Interview } from "/static/interview.js" */

/**
 * @typedef {object} KindPage
 * @property {(interview: Interview, question: Question) => any} field where people answer
 * @property {(interview: Interview, question: Question) => any} answer what they answered
 * @property {(question: Question, plan: Plan, code: number) => any} level the name of a value of its plan
 * @property {string} missing the key of the text for people who give no answer
 */

/** @type {Record<string, KindPage>} */
const KINDS = {
  choice: {
    field: (interview, question) => (question.options.length > MANY ? optionList : optionButtons)(interview, question),
    answer: chosenOptions,
    level: optionText,
    missing: "chooseOne",
  },
  choices: {
    field: (interview, question) => optionButtons(interview, question, true),
    answer: chosenOptions,
    level: optionText,
    missing: "chooseOne",
  },
  number: { field: numberField, answer: countedNumber, level: numberText, missing: "enterNumber" },
};

/** The page of a question's kind. @param {Question} question */
export const pageOf = (question) => KINDS[question.kind];

/** The ids of what describes a field. @param {Question} question @param {(string | false | undefined)[]} more */
const descriptionIds = (question, ...more) =>
  [hasText(question.hint) && "question-hint", ...more, "answer-problem"].filter(Boolean).join(" ");

/** @param {Interview} interview @param {Question} question @param {boolean} [several] */
function optionButtons(interview, question, several = false) {
  const chosen = [interview.answers[question.name] ?? []].flat();
  const onchange = (/** @type {any} */ event) => {
    const boxes = [...event.currentTarget.querySelectorAll("input:checked")];
    const codes = boxes.map((box) => question.options[box.value].code);
    interview.choose(question, several ? codes : codes[0]);
    clearComplaint();
  };
  const choices = question.options.map(({ code, text }, i) =>
    el(
      "label",
      { class: "choice" },
      el("input", {
        type: several ? "checkbox" : "radio",
        name: "answer",
        value: i,
        checked: chosen.includes(code),
        autocomplete: "off",
      }),
      own(text),
    ),
  );
  const role = several ? "group" : "radiogroup";
  return el(
    "fieldset",
    {
      role,
      "aria-labelledby": "heading",
      "aria-describedby": descriptionIds(question, several && "several-hint"),
      onchange,
    },
    several && el("p", { class: "hint", id: "several-hint" }, say("tickAll")),
    ...choices,
  );
}

/** @param {Interview} interview @param {Question} question */
function optionList(interview, question) {
  const onchange = (/** @type {any} */ event) => {
    interview.choose(question, question.options[event.target.value]?.code);
    clearComplaint();
  };
  const options = question.options.map(({ code, text }, i) =>
    el("option", { value: i, selected: interview.answers[question.name] === code, dir: "auto" }, ownText(text)),
  );
  return el(
    "label",
    { class: "field" },
    say("yourAnswer"),
    el(
      "select",
      { name: "answer", autocomplete: "off", "aria-describedby": descriptionIds(question), onchange },
      el("option", { value: "" }, say("choose")),
      ...options,
    ),
  );
}

/** @param {Interview} interview @param {Question} question */
function numberField(interview, question) {
  const bounds = interview.bounds(question);
  const range = bounds && { from: speak.number(bounds[0]), to: speak.number(bounds[bounds.length - 1]) };
  const oninput = (/** @type {any} */ event) => {
    interview.type(question, event.target.value);
    clearComplaint();
  };
  // Not of type number: browsers drop a comma that is not the decimal mark of their language, and 12,5 becomes 125.
  const inputmode = bounds && bounds[0] >= 0 ? "decimal" : "text"; // some keyboards for decimals have no minus
  const input = el("input", {
    type: "text",
    inputmode,
    autocomplete: "off",
    spellcheck: "false",
    name: "answer",
    dir: "ltr",
    "aria-describedby": descriptionIds(question, range && "range-hint"),
    value: interview.typed(question),
    oninput,
  });
  const unit = hasText(question.unit) && el("span", { class: "unit" }, own(question.unit));
  return [
    el(
      "label",
      { class: "field number" },
      el("span", {}, say("yourAnswer")),
      el("span", { class: "entry" }, input, unit),
    ),
    range && el("p", { class: "hint", id: "range-hint" }, say("range", range)),
  ];
}

/** @param {Interview} interview @param {Question} question */
function chosenOptions(interview, question) {
  const codes = [interview.answers[question.name]].flat();
  const chosen = question.options.filter(({ code }) => codes.includes(code));
  if (chosen.length === 0) return say("noneTicked");
  return chosen.flatMap(({ text }, i) => (i > 0 ? [", ", own(text)] : [own(text)]));
}

/** A number, and what it counts as where that is not the same. @param {Interview} interview @param {Question} question */
function countedNumber(interview, question) {
  const [answer, end] = [interview.answers[question.name], interview.countsAs(question)];
  const number = speak.exact(answer);
  const counted = end === answer ? number : say("countsAs", { number, end: speak.exact(end) });
  return [counted, hasText(question.unit) && [" ", own(question.unit)]];
}

/** @param {Question} question @param {Plan} plan @param {number} code */
function optionText({ options }, { labels }, code) {
  const option = options.find((o) => o.code === String(labels[code]));
  return option ? ownText(option.text) : String(labels[code]);
}

/** A point, or a range. @param {Question} _question @param {Plan} plan @param {number} code */
function numberText(_question, { labels }, code) {
  return speak.range(labels[code]) ?? say("near", { number: speak.exact(labels[code]) });
}

// The part of the form with the questions.

import { el } from "/static/dom.js";
import { freeName, gateOf, gatesFor, newQuestion } from "/static/survey_draft.js";
import { KINDS, kindOf, optionsOf } from "/static/survey_kinds.js";
import { priorPart } from "/static/survey_priors.js";
/** @import { SurveyForm } from "/static/survey_form.js" */

const TITLES = Object.entries(KINDS).map(([kind, { title }]) => [kind, title]);

/** @param {SurveyForm} form */
export function questionsPart(form) {
  const { draft } = form;
  const add = () => {
    const question = newQuestion(freeName(draft));
    draft.questions.push(question);
    form.draw(`${question.key}-text-${draft.languages[0]}`);
  };
  const advice = "All questions share one budget: every extra question makes all results less precise, so ask few.";
  const button = el("button", { type: "button", class: "plain", id: "add-question", onclick: add }, "Add a question");
  return [
    el("h2", { id: "questions-title" }, "Questions"),
    el("p", { class: "quiet" }, advice),
    draft.questions.map((question, at) => card(form, question, at)),
    el("div", { class: "actions" }, button),
  ];
}

/** @param {SurveyForm} form */
function move(form, question, by) {
  const { questions } = form.draft;
  const from = questions.indexOf(question);
  questions.splice(from, 1);
  questions.splice(from + by, 0, question);
  form.draw(`${question.key}-title`);
}

/** @param {SurveyForm} form */
function remove(form, question) {
  const { draft } = form;
  draft.questions = draft.questions.filter((other) => other !== question);
  askAlways(draft, question.key);
  for (const group of draft.groups) group.questions = group.questions.filter((key) => key !== question.key);
  form.draw("add-question");
}

/** Ask always what depended on a question that has gone or has other answers now. */
function askAlways(draft, key) {
  for (const other of draft.questions) if (other.gate === key) [other.gate, other.gateOptions] = ["", []];
}

/** @param {SurveyForm} form */
function card(form, question, at) {
  const { draft } = form;
  const { key } = question;
  const number = `question ${at + 1}`;
  const count = draft.questions.length;
  const setKind = (kind) => {
    question.kind = kind;
    askAlways(draft, key);
  };
  return el(
    "section",
    { class: "card", id: key, "aria-labelledby": `${key}-title` },
    el(
      "div",
      { class: "card-head" },
      el("h3", { id: `${key}-title`, tabindex: "-1" }, `Question ${at + 1}`),
      form.button(`${key}-up`, "Up", `Move ${number} up`, () => move(form, question, -1), at === 0),
      form.button(`${key}-down`, "Down", `Move ${number} down`, () => move(form, question, 1), at === count - 1),
      form.button(`${key}-remove`, "Remove", `Remove ${number}`, () => remove(form, question), count === 1),
    ),
    form.texts(`${key}-text`, "Question", question, "text"),
    form.select(`${key}-kind`, "Kind of answer", TITLES, question.kind, setKind),
    kindOf(question).fields(form, question, number),
    gatesFor(draft, question).length > 0 && conditionFields(form, question),
    form.groupOf(question)
      ? el(
          "p",
          { class: "quiet" },
          "Say below how common its answers are, with the questions that it is designed together with.",
        )
      : priorPart(form, question, [question], `How common are the answers to ${number}?`),
    moreFields(form, question, number),
  );
}

/** What is rarely needed. @param {SurveyForm} form */
function moreFields(form, question, number) {
  const { key } = question;
  const name = "Names it in results and files: letters, digits, _ and -.";
  const weight = "At 2, its precision counts twice when the budget is divided.";
  return form.fold(
    `${key}-more`,
    `More about ${number}`,
    form.texts(`${key}-hint`, "Explanation", question, "hint", "Shown below the question."),
    form.textField(`${key}-name`, "Short name", question, "name", { class: "medium", spellcheck: "false" }, name),
    !form.groupOf(question) &&
      form.numberField(`${key}-weight`, "Weight", question, "weight", { min: "0", placeholder: "1" }, weight),
    kindOf(question).moreFields(form, question),
  );
}

/** After which answers to an earlier question it is asked. @param {SurveyForm} form */
function conditionFields(form, question) {
  const { draft } = form;
  const titles = gatesFor(draft, question).map((other) => {
    const text = other.text[draft.languages[0]] || other.name;
    return [other.key, `only after certain answers to ${draft.questions.indexOf(other) + 1}. ${text}`];
  });
  const gate = gateOf(draft, question);
  const choose = (key) => {
    [question.gate, question.gateOptions] = [key, []];
  };
  const id = `${question.key}-gate`;
  return [
    form.select(id, "Asked", [["", "always"], ...titles], gate?.key ?? "", choose),
    gate && gateOptions(form, question, gate),
  ];
}

/** @param {SurveyForm} form */
function gateOptions(form, question, gate) {
  const { languages } = form.draft;
  const id = `${question.key}-asked_if`;
  const toggle = (key) => (event) => {
    const others = question.gateOptions.filter((other) => other !== key);
    question.gateOptions = event.target.checked ? [...others, key] : others;
    form.changed(id);
  };
  const box = ({ option }) => {
    const text = el("bdi", {}, kindOf(gate).optionText(gate, option, languages));
    const chosen = question.gateOptions.includes(option.key);
    return form.check(`${question.key}-after-${option.key}`, text, chosen, toggle(option.key));
  };
  const note = "Every device sends a scrambled report, so nobody can be sure whether it was asked.";
  return el(
    "fieldset",
    { class: "checks", id },
    el("legend", {}, "After which answers?"),
    ...optionsOf(gate, languages).map(box),
    el("p", { class: "hint quiet" }, note),
  );
}

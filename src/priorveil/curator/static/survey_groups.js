// The part of the form with the questions that are designed together.

import { el } from "/static/dom.js";
import { groupQueries, groupQuestions, newGroup } from "/static/survey_draft.js";
import { kindOf } from "/static/survey_kinds.js";
import { priorPart } from "/static/survey_priors.js";
/** @import { SurveyForm } from "/static/survey_form.js" */

/** @param {SurveyForm} form */
export function groupsPart(form) {
  const { draft } = form;
  if (draft.questions.length < 2) return null;
  const add = () => {
    const group = newGroup();
    draft.groups.push(group);
    form.draw(`${group.key}-title`);
  };
  const purpose =
    "For a table of two questions, an average by group, or shares within a group: these questions share one report.";
  return form.fold(
    "together",
    "Questions designed together",
    el("p", {}, purpose),
    draft.groups.map((group, at) => card(form, group, at)),
    el("div", { class: "actions tight" }, form.button("add-group", "Design questions together", null, add)),
  );
}

/** @param {SurveyForm} form */
function card(form, group, at) {
  const { draft } = form;
  const { key } = group;
  const remove = () => {
    draft.groups = draft.groups.filter((other) => other !== group);
    form.draw("add-group");
  };
  const toggle = (question) => (event) => {
    const others = group.questions.filter((other) => other !== question);
    group.questions = event.target.checked ? [...others, question] : others;
    form.draw();
  };
  const box = (question) => {
    const text = question.text[draft.languages[0]] || question.name;
    const words = el("bdi", {}, `${draft.questions.indexOf(question) + 1}. ${text}`);
    const isIn = group.questions.includes(question.key);
    return form.check(`${key}-with-${question.key}`, words, isIn, toggle(question.key));
  };
  const ask = (query) => {
    group.query = query;
  };
  const joining = draft.questions.filter((question) => kindOf(question).joins);
  const questions = groupQuestions(draft, group);
  return el(
    "section",
    { class: "card", "aria-labelledby": `${key}-title` },
    el(
      "div",
      { class: "card-head" },
      el("h3", { id: `${key}-title`, tabindex: "-1" }, `Together ${at + 1}`),
      form.button(`${key}-remove`, "Remove", `Remove together ${at + 1}`, remove),
    ),
    el(
      "fieldset",
      { class: "checks", id: `${key}-questions` },
      el("legend", {}, "Which questions?"),
      ...joining.map(box),
    ),
    form.select(`${key}-query`, "What do you want to know?", groupQueries(draft, group), group.query, ask),
    priorPart(form, group, questions, "How common are the combinations of answers?"),
  );
}

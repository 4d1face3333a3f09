// The part of the form about what is known: nothing, shares that are typed, or a table.

import { el } from "/static/dom.js";
import { hasShares, isOfPeople, readTable, requireColumns } from "/static/prior_table.js";
import { columnOf } from "/static/survey_draft.js";
import { kindOf } from "/static/survey_kinds.js";
/** @import { SurveyForm } from "/static/survey_form.js" */

const UNKNOWN =
  "Then nothing is assumed: the protection holds no matter what anyone knows or believes (LDP). That is safe, but needs more people. Even rough shares, from a census or a similar town, would help. They shape the noise, never the result.";
/** @type {[string, string, (form: SurveyForm, owner: any, questions: any[]) => any][]} */
const WAYS = [
  ["unknown", "I do not know", () => el("p", { class: "hint quiet" }, UNKNOWN)],
  ["typed", "I type the shares", typedShares],
  ["table", "I have a table", tableFields],
];

/**
 * What is known about the answers to a question, or to several together: their group owns it then.
 *
 * @param {SurveyForm} form
 */
export function priorPart(form, owner, questions, title) {
  const id = `${owner.key}-prior`;
  const offered = questions.length === 1 ? WAYS : WAYS.filter(([way]) => way !== "typed");
  const radio = ([way, words, details]) => {
    const choose = () => {
      owner.prior = way;
      form.changed(id);
      form.draw();
    };
    const isChosen = owner.prior === way;
    return [
      form.check(`${id}-${way}`, words, isChosen, choose, { type: "radio", name: id, value: way }),
      isChosen && el("div", { class: "inner" }, details(form, owner, questions)),
    ];
  };
  return el("fieldset", { class: "checks", id }, el("legend", {}, title), ...offered.map(radio));
}

/** @param {SurveyForm} form */
function typedShares(form, question) {
  const { key } = question;
  const kind = kindOf(question);
  const sum = el("p", { class: "hint quiet", id: `${key}-sum`, "aria-live": "polite" });
  const add = () => {
    const total = kind.shareOwners(question).reduce((part, { share }) => part + Number(share), 0);
    sum.textContent = kind.totalText(Math.round(1e6 * total) / 1e6);
  };
  const percent = (id, words, owner) => {
    const number = { type: "number", step: "any", min: "0", max: "100", class: "short" };
    const control = form.input(id, owner, "share", number);
    control.addEventListener("input", add);
    return form.field(words, control);
  };
  add();
  const asked = form.isConditional(question) && "Give the shares among the people who are asked.";
  return el(
    "div",
    { class: "shares" },
    kind.shareFields(form, question, percent),
    sum,
    asked && el("p", { class: "hint quiet" }, asked),
  );
}

/** @param {SurveyForm} form */
function tableFields(form, owner, questions) {
  const id = `${owner.key}-table`;
  const load = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    form.changed(id);
    owner.table = null;
    try {
      const table = readTable(file.name, await file.text());
      requireColumns(
        table,
        questions.map((question) => columnOf(form.draft, question)),
      );
      owner.table = table;
    } catch (error) {
      return form.complain(id, error.message);
    }
    form.draw(id);
  };
  const publish = (event) => {
    owner.public = event.target.checked;
    form.changed(`${owner.key}-prior`);
  };
  const names = questions.map(({ name }) => name.trim()).join(", ");
  const columns = questions.length === 1 ? "A CSV with a column of answers" : `A CSV with the columns ${names}`;
  const accept = ".csv,.tsv,.txt,text/csv";
  return [
    form.field(
      "Table",
      el("input", { type: "file", id, accept, onchange: load, "aria-describedby": `${id}-hint` }),
      `${columns} and a column share or count; or with a row for each person, which is counted here: only the counts are sent.`,
    ),
    owner.table && el("p", { id: `${id}-read` }, tableSummary(owner.table)),
    owner.table &&
      !hasShares(owner.table) &&
      form.check(
        `${owner.key}-public`,
        "This table is already public. Otherwise answers of fewer than ten people are refused, and shares are rounded.",
        owner.public,
        publish,
      ),
  ];
}

function tableSummary(table) {
  const rows = `${table.rows.length.toLocaleString("en")} ${table.rows.length === 1 ? "row" : "rows"}`;
  const what = isOfPeople(table)
    ? `${rows}, one for each person`
    : `${rows} of ${hasShares(table) ? "shares" : "counts"}`;
  return [el("strong", {}, el("bdi", {}, table.name)), `: ${what}.`];
}

// What a survey promises and how precise it will be: the part of the page below "Check".

import { el, scrolling } from "/static/dom.js";

/** @typedef {{ heading: string, sentences: string[] }} Passage */
/** @typedef {{ promise: Passage, precision: Passage, budget: Passage, table: Table }} Words */
/** @typedef {{ heads: string[], rows: string[][], note: string }} Table */

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * The check that the curator made; `campaign` is the document of the campaign.
 *
 * @param {{ check: { epsilon: number, left_out: string[] }, words: Words, remarks: string[] }} checked
 * @param {any} campaign
 * @param {string} [file] the name of the file that was checked
 */
export function checkParts({ check, words, remarks }, campaign, file) {
  return [
    el("h2", { tabindex: "-1", id: "checked-title" }, "What this survey does"),
    summary(campaign, `${check.epsilon}`, file),
    ...remarks.map((remark) => el("p", { class: "warning" }, `${capital(remark)}.`)),
    ...leftOutList(check.left_out),
    ...passage(words.promise),
    ...passage(words.precision),
    ...precision(words.table, campaign),
    ...passage(words.budget),
  ];
}

/** @param {Passage} passage */
const passage = ({ heading, sentences }) => [
  el("h3", {}, heading),
  ...sentences.map((sentence) => el("p", {}, sentence)),
];

/**
 * Which survey this is about; `level` says what all answers of a person tell.
 *
 * @param {any} campaign
 * @param {string | null} level
 * @param {string} [file]
 */
export function summary({ title, questions, languages }, level, file) {
  const lines = [
    ["File", file],
    ["Title", languages && title?.[languages[0]]],
    ["Questions", questions && `${questions.length}`],
    ["Epsilon", level],
  ];
  return el(
    "dl",
    { class: "introduction", id: "summary" },
    ...lines.map(([name, text]) => text && el("div", {}, el("dt", {}, name), el("dd", {}, el("bdi", {}, text)))),
  );
}

/** @param {string[]} leftOut */
const leftOutList = (leftOut) =>
  leftOut.length === 0
    ? []
    : [
        el("p", { class: "warning" }, "The campaign differs from this file:"),
        el("ul", { id: "left-out" }, ...leftOut.map((words) => el("li", {}, words))),
      ];

/** @param {Table} table @param {any} campaign */
function precision({ heads, rows, note }, { questions, languages }) {
  /** @param {number} i */
  const figure = (i) => (i >= 2 ? "figure" : null);
  const texts = new Map(questions.map(({ name, text }) => [name, text[languages[0]]]));
  /** @param {string} names */
  const textsOf = (names) => names.split(" x ").map((name) => texts.get(name.split("/")[0]));
  /** @param {string} names */
  const question = (names) => [el("bdi", {}, textsOf(names).join(" + ")), el("small", {}, names)];
  /** @param {string} cell @param {number} i */
  const cellOf = (cell, i) =>
    i === 0 ? el("th", { scope: "row" }, ...question(cell)) : el("td", { class: figure(i) }, cell);
  const head = heads.map((words, i) => el("th", { scope: "col", class: figure(i) }, words));
  const body = rows.map((row) => el("tr", {}, ...row.map(cellOf)));
  const table = el("table", { id: "precision" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
  return [scrolling("Precision", table), el("p", { class: "quiet" }, note)];
}

// What the report about one question reveals, in figures of a hundred people.

import { paragraph, phrase, quiet, say, speak } from "/static/answer_page.js";
import { pageOf } from "/static/answer_kinds.js";
import { answeredBetween, codeOf, outOfHundred, reportsOf } from "/static/disclosure.js";
import { el } from "/static/dom.js";
/** @import { Part } from "/static/priorveil.js" */
/** @import { Interview } from "/static/interview.js" */

/** How many of 100 people who send each report answered the same. @param {Interview} interview @param {Part} part */
export function crowd(interview, part) {
  const { plan } = part;
  const [reports, code] = [reportsOf(plan), codeOf(interview, part)];
  const count = inWords(plan.prior?.[code] ?? NaN);
  return el(
    "figure",
    {},
    reports.length > 0 ? eachReport(interview, part, code, reports) : anyReport(interview, part, code),
    paragraph(interview.campaign.cohorts.length > 1 ? "crowdGroup" : "crowdAll", { count }),
    quiet("crowdAssumes"),
  );
}

/**
 * Every report: how often it is drawn for this answer, and how many of 100 people who send it gave that answer.
 *
 * @param {Interview} interview
 * @param {Part} part
 * @param {number} code
 * @param {number[]} reports
 */
function eachReport(interview, part, code, reports) {
  const { plan } = part;
  const row = (/** @type {number} */ report) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, say("reportCode", { code: report })),
      el("td", { class: "figure" }, speak.percent(plan.likelihoods(report)[code])),
      el("td", { class: "figure" }, inWords(plan.posterior(report)[code])),
    );
  const column = (/** @type {string} */ key) => el("th", { scope: "col", class: "figure" }, say(key));
  return el(
    "table",
    { class: "reports" },
    el("caption", {}, ...phrase("eachReport", { answer: quoted(interview, part, code) })),
    el(
      "thead",
      {},
      el("tr", {}, el("th", { scope: "col" }, say("oneReport")), column("drawnFor"), column("sameAnswer")),
    ),
    el("tbody", {}, ...reports.map(row)),
  );
}

/**
 * What holds for each of many reports: between how many of 100 people who send it gave this answer.
 *
 * @param {Interview} interview
 * @param {Part} part
 * @param {number} code
 */
function anyReport(interview, part, code) {
  const { least, most } = answeredBetween(part.plan, code);
  return paragraph("anyReport", {
    least: speak.number(least),
    most: speak.number(most),
    answer: quoted(interview, part, code),
  });
}

/** The name of one of the answers of a part about one question. @param {Interview} interview @param {Part} part @param {number} code */
function quoted(interview, part, code) {
  const [question] = interview.questionsOf(part);
  const answer = el("bdi", {}, pageOf(question).level(question, part.plan, code));
  return el("span", {}, ...phrase("quotedAnswer", { answer }));
}

/** @param {number} share */
function inWords(share) {
  const { count, key } = outOfHundred(share);
  return key === null ? speak.number(count) : say(key, { count: speak.number(count) });
}

// What the report about one question reveals, in figures of a hundred people.

import { ownText, paragraph, phrase, quiet, say, speak } from "/static/answer_page.js";
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

/** @param {Interview} interview @param {Part} part @param {number} code */
const quoted = (interview, part, code) =>
  el("span", {}, ...phrase("quotedAnswer", { answer: el("bdi", {}, nameOf(interview, part, code)) }));

/** The name of one of the answers of a part about one question. @param {Interview} interview @param {Part} part @param {number} code */
function nameOf({ campaign }, { attributes: [name], plan }, code) {
  const { numbers, labels } = plan;
  if (numbers?.kind === "grid") return say("near", { number: speak.exact(numbers.bounds[code]) });
  const question = campaign.questions.find((q) => q.name === name);
  const bounds = (numbers ?? question?.ranges)?.bounds;
  if (bounds) return say("between", { from: speak.exact(bounds[code]), to: speak.exact(bounds[code + 1]) });
  const option = question?.options.find((o) => o.code === String(labels[code]));
  return option ? ownText(option.text) : String(labels[code]);
}

/** @param {number} share */
function inWords(share) {
  const { count, key } = outOfHundred(share);
  return key === null ? speak.number(count) : say(key, { count: speak.number(count) });
}

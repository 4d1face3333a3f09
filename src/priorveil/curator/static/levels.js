// The privacy levels of a campaign: what they mean, and a table for people who know what they are.

import { el, scrolling } from "/static/dom.js";

/**
 * How likely an answer can be after a submission, at most, if it was `before` likely: `likely_afterwards` in words/surveys.py. Without
 * a design its LDP level is not known, but the bounds of LIP imply one.
 */
export const likelyAfterwards = (before, lipLower, lipUpper, ldp = lipLower + lipUpper) =>
  Math.min(
    before * Math.exp(lipUpper),
    1 - (1 - before) * Math.exp(-lipLower),
    1 / (1 + (1 - before) / before / Math.exp(ldp)),
  );

/** What everything that a person sends reveals at most: name, factor, and when it holds. LIP only where it says more than LDP. */
export function promiseFacts({ cohorts }, speak) {
  const { say } = speak;
  const [lip, ldp] = ["lip", "ldp"].map((name) => Math.max(...cohorts.map(({ levels }) => levels[name] ?? Infinity)));
  const odds = Number.isFinite(ldp)
    ? [say("oddsChange"), speak.factor(ldp), say("whateverIsKnown")]
    : [say("oddsUnbounded"), say("byAnyFactor"), say("canRuleOut")];
  return lip < ldp ? [[say("probabilityChanges"), speak.factor(lip), say("ifAsExpected")], odds] : [odds];
}

/** LDP and LIP of a whole submission, for each cohort. */
export function levelTable({ cohorts }, speak) {
  const level = (number) => (number === null ? speak.say("infinite") : speak.level(number));
  const rows = cohorts.map(({ cohort, levels, identifiable }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("bdi", {}, cohort)),
      ...["ldp", "lip_lower", "lip_upper"].map((name) => el("td", { class: "figure" }, level(levels[name]))),
      el("td", { class: "figure" }, identifiable ? "yes" : "no"),
    ),
  );
  return scrolling(
    "Privacy levels",
    el(
      "table",
      {},
      el(
        "caption",
        {},
        "Levels of a whole submission (natural logarithms, rounded up). LIP is smaller than LDP only for a single report whose " +
          "prior is known. The LDP levels of several reports add up.",
      ),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "Cohort"),
          el("th", { scope: "col", class: "figure" }, "LDP"),
          el("th", { scope: "col", class: "figure" }, "LIP, down"),
          el("th", { scope: "col", class: "figure" }, "LIP, up"),
          el("th", { scope: "col", class: "figure" }, "Results need no prior"),
        ),
      ),
      el("tbody", {}, ...rows),
    ),
  );
}

/** What the published totals of each cohort tell about one person, for people who know what epsilon and delta are. */
export const totalsLevels = ({ cohorts }, speak) =>
  cohorts
    .filter(({ totals }) => totals)
    .map(({ cohort, totals: { epsilon, delta, people } }) =>
      el(
        "p",
        { class: "quiet" },
        cohorts.length > 1 && el("strong", {}, el("bdi", {}, cohort), ": "),
        speak.say("totalsLevel", {
          epsilon: speak.number(epsilon, { maximumSignificantDigits: 3, roundingMode: "ceil" }),
          delta: speak.number(delta, { notation: "scientific" }),
          people: speak.number(people),
        }),
      ),
    );

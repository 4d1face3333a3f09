// What reports reveal: figures, and the keys of the texts that say it.

import { likelyAfterwards } from "/static/levels.js";
/** @import { Campaign, Form, Levels, Part, Plan } from "/static/priorveil.js" */
/** @import { Interview } from "/static/interview.js" */

export const MANY = 20; // reports or answers beyond which they are not listed one by one
const LIKELY = 0.1; // an answer that is so likely before is the example of what a level means

/**
 * How well answers are hidden, up to each level. From 3 on a belief of 50 % can become one of 97 %: `campaign check` warns.
 *
 * @type {[number, string][]}
 */
const GRADES = [
  [1, "seenNo"],
  [2, "seenPartly"],
  [2.999, "seenHardly"],
  [Infinity, "seenWeak"],
];

/** How well a level hides answers: `lip` is LDP where nobody knows how common they are. @param {{ lip: number }} levels */
export const gradeOf = ({ lip }) => GRADES.filter(([most]) => lip <= most)[0][1];

/** What the scrambling does not protect; null where every submission can come from every answer. @param {Form} form */
export function exposure({ parts, levels }) {
  if (parts.some(({ plan }) => plan.protects === "secret")) return "exposedSecret";
  return levels.ldp < Infinity ? null : "exposedInPart";
}

/** What others could see of the answers, whatever the cohort: by the highest level. @param {Pick<Campaign, "forms" | "promise">} campaign */
export function seenByOthers({ forms, promise }) {
  const exposed = Object.values(forms).map(exposure).find(Boolean) ?? null;
  const most = (/** @type {"lip" | "ldp"} */ name) => Math.max(...Object.values(promise).map((levels) => levels[name]));
  const levels = { lip: most("lip"), ldp: most("ldp") };
  return { exposed, seen: exposed ? "seenPerhaps" : gradeOf(levels), levels };
}

/** What a level means for the belief in one answer: how likely it is before and, rounded up, afterwards. */
export function beliefs(/** @type {{ lip: number, ldp: number }} */ { lip, ldp }) {
  const after = Math.ceil(1000 * likelyAfterwards(LIKELY, lip, lip, ldp) - 1e-9) / 1000;
  return { before: LIKELY, after };
}

/**
 * What a whole submission reveals about any answer, under the prior and under any prior: keys of texts, each with its level, whether
 * that is little protection, and the key of the text that names the levels.
 */
export function promises(/** @type {Interview} */ { campaign, form, cohort }) {
  const { lip, ldp } = campaign.promise[/** @type {string} */ (cohort)];
  const several = form.attributes.length > 1;
  /** @type {[string, number]} */
  const known = [several ? "promiseKnownSeveral" : "promiseKnown", lip];
  /** @type {[string, number]} */
  const any = [several ? "promiseAnySeveral" : "promiseAny", ldp];
  const weak = gradeOf({ lip }) === "seenWeak";
  return lip < ldp ? { texts: [known, any], weak, levels: "levels" } : { texts: [any], weak, levels: "levelsAny" };
}

/** How many reports are sent about which questions; a preview has all of them, because it draws none. */
export function reportsSent(/** @type {Interview} */ { form, parts }, /** @type {boolean} */ isPreview) {
  if (isPreview && form.slots.some((slot) => slot.drawn)) return form.slots.length === 1 ? "previewOne" : "previewSome";
  return parts.length > 1 ? "reportsAre" : "reportIs";
}

/** The reports that a plan can make, if they are few enough to be listed; otherwise none. @param {Plan} plan */
export const reportsOf = ({ outputs }) => (outputs !== null && outputs <= MANY ? [...Array(outputs).keys()] : []);

/**
 * Whether figures of a hundred people may be shown: for a report about one question, whose answers are known to be so common, which
 * no other report is about, and which no other question is linked to, by a condition or by design.
 *
 * @param {Interview} interview
 * @param {Part} part
 */
export function showsCrowd(interview, { attributes, plan }) {
  const [question] = interview.questionsOf({ attributes });
  const isGate = interview.campaign.questions.some(({ askedIf }) => askedIf.has(question.name));
  const once = interview.parts.filter((part) => part.attributes.includes(attributes[0])).length === 1;
  const single = attributes.length === 1 && question.attributes.length === 1 && once;
  const known = plan.prior !== null && !plan.priorAssumed && plan.protects === "value";
  return single && known && !isGate && question.askedIf.size === 0;
}

/**
 * The code of the answer to the only question of a part; of a number on a grid, that of the nearest point.
 *
 * @param {Interview} interview
 * @param {Part} part
 */
export function codeOf({ campaign, answers, questions }, { attributes: [name], plan }) {
  const level = campaign.attributeValues(answers, questions).get(name);
  if (plan.numbers?.kind !== "grid") return plan.code(/** @type {string} */ (level));
  const distances = plan.numbers.bounds.map((point) => Math.abs(point - Number(level)));
  return distances.indexOf(Math.min(...distances));
}

/** Between how many of 100 people who send the same report gave the answer with this code. */
export function answeredBetween(/** @type {Plan} */ { prior, levels }, /** @type {number} */ code) {
  const before = prior === null ? NaN : prior[code];
  const { lipLower, lipUpper, ldp } = levels;
  return {
    least: Math.floor(100 * before * Math.exp(-lipLower)),
    most: Math.ceil(100 * likelyAfterwards(before, lipLower, lipUpper, ldp)),
  };
}

/** A share as a count of 100 people, and the key of its text: shares that round to nobody or to everybody are neither. */
export function outOfHundred(/** @type {number} */ share) {
  const count = Math.round(100 * share);
  if (share === 0 || share === 1) return { count, key: null };
  if (share < 0.005) return { count, key: "fewerThanOne" };
  return { count, key: share > 0.995 ? "moreThan99" : "about" };
}

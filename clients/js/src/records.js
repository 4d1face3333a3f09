// What a device remembers of a submission.

import { parseJson } from "./documents.js";
import { need } from "./errors.js";
/** @import { Campaign } from "./campaigns.js" */
/** @import { Form } from "./forms.js" */
/** @import { Answer, Answers } from "./questions/question.js" */

/**
 * Exactly what leaves the device: `report` has as many hexadecimal digits for everybody with this form.
 *
 * @typedef {{ readonly report_id: string, readonly form: string, readonly report: string }} Leaving
 */

/**
 * A submission as it is stored: with the curator's origin and the LDP level, which count against the limit. `removed` says that the
 * curator has confirmed the withdrawal.
 *
 * @typedef {Leaving & {
 *   readonly origin: string, readonly ldp: string, readonly delivered: boolean,
 *   readonly withdrawn?: true, readonly removed?: true,
 * }} Remembered
 */

export const UNREADABLE = "what was remembered cannot be read; clear it to answer again";

/**
 * A record that cannot be read is an error: a second answer could reveal more than one submission does.
 *
 * @param {string} text
 * @returns {Remembered}
 */
export function readRecord(text) {
  const record = parseJson(text);
  const level = record?.ldp === "inf" ? Infinity : Number(record?.ldp);
  const texts = ["report_id", "form", "report", "origin", "ldp"].every((name) => typeof record?.[name] === "string");
  need(texts && level >= 0, "storage", UNREADABLE);
  return Object.freeze(record);
}

/** The submission exactly as it is sent. @param {Leaving} record @returns {Leaving} */
export const wireReport = ({ report_id, form, report }) => Object.freeze({ report_id, form, report });

/** The part of each slot that a submission is about. @param {Campaign} campaign @param {Leaving} record */
export function drawOf({ forms }, { form: id, report }) {
  const reports = Object.values(forms)
    .find((form) => form.id === id)
    ?.unpack(report);
  need(reports, "storage", UNREADABLE);
  return reports.map(({ at }) => at);
}

/**
 * How much of a device's limit a form uses: its LDP level, which is infinite for a plan for a latent secret.
 *
 * @param {Form} form
 */
export const ldpCost = ({ parts, levels }) =>
  parts.some(({ plan }) => plan.protects === "secret") ? Infinity : levels.ldp;

/**
 * Answers by question; of a campaign with one question the answer may stand alone.
 *
 * @param {Campaign} campaign
 * @param {Answers | Answer} given
 * @returns {Answers}
 */
export function answersBy({ questions }, given) {
  const byName = given !== null && typeof given === "object" && !Array.isArray(given) && !(given instanceof Set);
  return byName || questions.length > 1
    ? /** @type {Answers} */ (given)
    : { [questions[0].name]: /** @type {Answer} */ (given) };
}

/** @param {string} id */
export const keyOf = (id) => `priorveil:${id}`;
export const ANSWERED = /^priorveil:[0-9a-f]{64}$/; // the keys of submissions

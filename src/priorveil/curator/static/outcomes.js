// What the page shows next: which step a visit begins with, and what is said when something fails.

import { BudgetExceeded, NotSent, PriorveilError, ReportRefused } from "/static/priorveil.js";
/** @import { Remembered } from "/static/priorveil.js" */

const REFUSALS = { full: "refusedFull", "no invitation": "refusedInvitation" };
// The clock of the server may be wrong, and a closed survey may open again: these are not final.
const SHUT = { closed: "shutClosed", "not yet open": "shutNotYetOpen" };

/** @type {Record<string, string[]>} */
const BROKEN = {
  campaign: ["unknownTitle", "unknown"],
  url: ["unknownTitle", "unknown"],
  crypto: ["secureTitle", "secure"],
  storage: ["storageTitle", "storage", "storageAdvice"],
};

/** @typedef {{ state: string, leans_on_prior: boolean, published?: boolean }} Status */

/**
 * The step that a visit begins with, before an invitation is asked for.
 *
 * @param {Status} status whether the curator takes reports now
 * @param {Remembered | null} known what this browser remembers
 */
export function firstStep({ state }, known) {
  if (known?.removed) return "withdrawn";
  if (known?.delivered || known?.withdrawn) return "thanks";
  const mayBeStored = state === "full" && known !== null; // a full survey takes no new report
  if (state !== "open" && !mayBeStored) return "shut";
  return known === null ? "start" : "undelivered";
}

/** Why a report that was not taken is kept; null if that is not what an error says. @param {unknown} error */
export function whyKept(error) {
  if (error instanceof NotSent) return "notDelivered";
  return error instanceof ReportRefused ? entry(SHUT, error.reason) : null;
}

/** The key of the text about a report that was refused for good; null if there is none for this reason. @param {string} reason */
export const whyRefused = (reason) => entry(REFUSALS, reason);

/** @param {Record<string, string>} table @param {string} name */
const entry = (table, name) => (Object.hasOwn(table, name) ? table[name] : null);

/**
 * The keys of a title, a text and maybe an advice about an error. `asked` is the LDP level of one answer to the survey: if it alone is
 * above the limit, the browser is not to blame.
 *
 * @param {unknown} error
 * @param {number} asked
 */
export function failure(error, asked) {
  if (error instanceof NotSent) return ["noConnectionTitle", "noConnection"];
  if (error instanceof BudgetExceeded)
    return asked < Infinity && asked > error.limit
      ? ["tooMuchTitle", "tooMuch", "tooMuchAdvice"]
      : ["limitTitle", "limit", "limitAdvice"];
  if (!(error instanceof PriorveilError)) return ["failedTitle", "failed"];
  return Object.hasOwn(BROKEN, error.field) ? BROKEN[error.field] : ["untrustedTitle", "untrusted"];
}

// Certificates: every level that a plan states is proven again, or the plan is refused.

import { need } from "./errors.js";
import { atMostExp, inverse, isLevel } from "./exact.js";
import { checkFields, notNegative } from "./fields.js";
import { PROVEN } from "./mechanisms/kinds.js";
import { readPriors, readSecret } from "./priors.js";
/** @import { Json, JsonDocument } from "./documents.js" */
/** @import { Mechanism } from "./mechanisms/kinds.js" */

/**
 * Proven levels, in natural logarithms: `lip`, the larger of `lipLower` and `lipUpper`, of what the plan protects under the
 * prior; `ldp` of the value itself, whatever is known.
 *
 * @typedef {{ readonly lip: number, readonly lipLower: number, readonly lipUpper: number, readonly ldp: number }} Levels
 */

const LARGEST_LEVEL = 700; // of a budget: beyond it only infinity, which promises nothing and says so

/**
 * The levels that could be proven: all that the certificate states, or LDP alone; an error if one of them is not as stated,
 * or the budget is broken.
 *
 * @param {JsonDocument} document
 * @param {number} size
 * @param {Mechanism} mechanism
 * @returns {{ levels: Levels, proof: "budget" | "ldp" }}
 */
export function proveCertificate(document, size, mechanism) {
  const { lower, upper } = readBudget(document.budget);
  const [priors, secret] = [readPriors(document.prior, size), readSecret(document.secret, size)];
  const notion = readNotion(document.notion);
  const { lipLower, lipUpper, ldp, level } = readCertificate(document.certificate, notion);
  const found = mechanism.lifts(priors ?? [Array(size).fill(1n)], priors && secret);
  const wrong = "the mechanism has another level than this: do not run it";
  need(isLevel(ldp, found.ldp), "certificate.ldp", wrong);
  if (priors) {
    need(isLevel(lipLower, inverse(found.lowest)), "certificate.lip_lower", wrong);
    need(isLevel(lipUpper, found.highest), "certificate.lip_upper", wrong);
  }
  const lip = Math.max(lipLower, lipUpper);
  need(level === ({ LIP: lip, LDP: ldp }[notion] ?? level), "certificate.level", wrong);
  const down = notion !== "LIP" || !priors || atMostExp(inverse(found.lowest), lower);
  const up = notion !== "LIP" || !priors || atMostExp(found.highest, upper);
  const apart = notion !== "LDP" || atMostExp(found.ldp, Math.min(lower, upper));
  need(down && up && apart, "certificate", "the mechanism leaks more than its budget: do not run it");
  if (priors && PROVEN.includes(notion)) return { levels: { lip, lipLower, lipUpper, ldp }, proof: "budget" };
  need(ldp < Infinity, "certificate", "this client cannot prove what it states; use the Python client");
  return { levels: { lip: ldp, lipLower: ldp, lipUpper: ldp, ldp }, proof: "ldp" };
}

/** How far belief may move; without a limit on one side at least, nothing would be promised. @param {Json} budget */
function readBudget(budget) {
  const [lower, upper] = ["lower", "upper"].map((side) => notNegative(budget[side], `budget.${side}`));
  const sides = [lower, upper].filter((side) => side < Infinity);
  need(sides.length > 0, "budget", "should have a finite side: it promises nothing");
  need(Math.max(...sides) <= LARGEST_LEVEL, "budget", `should be at most ${LARGEST_LEVEL}: it promises nothing`);
  return { lower, upper };
}

/** @param {Json} certificate @param {string} notion */
function readCertificate(certificate, notion) {
  need(certificate.notion === notion, "certificate.notion", "is not that of the plan");
  /** @param {string} name */
  const stated = (name) => notNegative(certificate[name], `certificate.${name}`);
  const [lipLower, lipUpper, ldp, level] = ["lip_lower", "lip_upper", "ldp", "level"].map(stated);
  return { lipLower, lipUpper, ldp, level };
}

/** The notion's name. The other fields are read only for the notions that are proven here. @param {Json} notion @returns {string} */
function readNotion(notion) {
  const { name } = notion;
  if (PROVEN.includes(name)) checkFields(notion, ["name"], "notion");
  return name;
}

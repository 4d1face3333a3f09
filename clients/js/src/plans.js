// Plans.

import { proveCertificate } from "./certificates.js";
import { checkId } from "./documents.js";
import { readDomain } from "./domains.js";
import { need } from "./errors.js";
import { real } from "./fields.js";
import { readMechanism } from "./mechanisms/kinds.js";
import { Grouped, Table } from "./mechanisms/tables.js";
import { probabilities } from "./priors.js";
import { systemWords } from "./randomness.js";
import { readDocument } from "./structure.js";
/** @import { Levels } from "./certificates.js" */
/** @import { JsonDocument } from "./documents.js" */
/** @import { Domain, Value } from "./domains.js" */
/** @import { Mechanism, Report } from "./mechanisms/kinds.js" */
/** @import { Source } from "./randomness.js" */

/**
 * A plan that was checked. Made by `readPlan` only.
 *
 * `levels` are the proven ones, in natural logarithms: `lip` of what `protects` names ("value" or "secret") under the prior, and
 * `ldp` of the value itself whatever is known. `proof` is "budget" where the whole certificate was proven again, and "ldp"
 * where only that level could be; `lip` is then `ldp`, which implies it. `priorAssumed` says that nobody knows the prior: `lip`
 * then holds only if it is right. `outputs` is how many reports a table can make, from 0 on; null for other mechanisms. `numbers` is
 * null, or says how a number becomes a value; `attributes` is null, or has the name, the labels and the numbers of each attribute.
 */
export class Plan {
  #mechanism;
  #domain;

  /**
   * @param {JsonDocument} document
   * @param {Domain} domain
   * @param {Mechanism} mechanism
   * @param {{ levels: Levels, proof: "budget" | "ldp" }} proven
   */
  constructor(document, domain, mechanism, proven) {
    this.#mechanism = mechanism;
    this.#domain = domain;
    this.document = document;
    /** @type {string} */
    this.id = document.id;
    this.labels = domain.labels;
    this.numbers = domain.numbers;
    this.attributes = domain.attributes;
    this.refusesNumbers = domain.refusesNumbers;
    /** @type {"table" | "grouped" | "arc" | "orders" | "unary" | "subset" | "hashing"} */
    this.kind = document.mechanism.kind;
    this.draws = mechanism.draws + domain.draws;
    this.words = mechanism.width ?? 1;
    this.reportsBits = mechanism.width !== undefined;
    this.outputs = mechanism instanceof Table || mechanism instanceof Grouped ? mechanism.outputs : null;
    this.prior = probabilities(document.prior);
    this.priorAssumed = document.prior.assumed === true;
    this.protects = document.secret === null ? /** @type {const} */ ("value") : /** @type {const} */ ("secret");
    this.levels = proven.levels;
    this.proof = proven.proof;
    Object.freeze(this);
  }

  /**
   * The code of a value: that of its label, of its cell, or of a point next to it that is drawn at random.
   *
   * @param {Value} value
   * @param {Source} [source]
   */
  code(value, source = systemWords) {
    return this.#domain.code(value, source); // the value itself stays out of messages
  }

  /**
   * The report of one value as it is written in JSON. `source(count)` gives words; leave it out for real answers.
   *
   * @param {Value} value
   * @param {Source} [source]
   * @returns {Report}
   */
  privatize(value, source = systemWords) {
    const code = this.code(value, source);
    return this.#mechanism.sample(code, source(this.#mechanism.draws));
  }

  /**
   * For every value how likely it would have made this report, up to one factor common to all.
   *
   * @param {Report} report
   */
  likelihoods(report) {
    need(this.accepts(report), "report", "this plan cannot have made it");
    return this.#mechanism.likelihoods(report);
  }

  /**
   * For every value its share of the people who send this report, if values are as common as the prior says; all equally
   * common where there is no single prior.
   *
   * @param {Report} report
   */
  posterior(report) {
    const joint = this.likelihoods(report).map((chance, x) => chance * (this.prior?.[x] ?? 1));
    const total = joint.reduce((a, b) => a + b);
    return joint.map((mass) => mass / total);
  }

  /** Whether this plan can have made a report. @param {unknown} report */
  accepts(report) {
    return this.#mechanism.accepts(report);
  }
}

/**
 * Read a plan from its document or text: check its id, prove its certificate again, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export async function readPlan(given, { id } = {}) {
  const document = readDocument(given, "PlanDocument");
  const domain = readDomain(document.labels, "labels");
  await checkId(document, id);
  checkErrors(document);
  const size = domain.labels.length;
  const mechanism = readMechanism(document, size);
  return new Plan(document, domain, mechanism, proveCertificate(document, size, mechanism));
}

/** The errors say nothing about privacy, but have to be in order. @param {JsonDocument} document */
function checkErrors(document) {
  const [bound, error, none] = ["lower_bound", "expected_mse", "no_report"].map((name) => real(document[name], name));
  /** @type {(a: number, b: number) => boolean} */
  const atMost = (a, b) => a <= b * (1 + 1e-9) + 1e-12;
  need(atMost(bound, error), "lower_bound", "lies above the expected error");
  need(error >= 0 && atMost(error, none), "expected_mse", "should lie between zero and the error without reports");
}

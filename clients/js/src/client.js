// The client of one campaign.

import { readCampaign } from "./campaigns.js";
import { parseJson } from "./documents.js";
import { BudgetExceeded, NotSent, ReportRefused, need, printable } from "./errors.js";
import { numberText, real } from "./fields.js";
import { Memory } from "./memory.js";
import { freshId } from "./randomness.js";
import { ANSWERED, UNREADABLE, answersBy, drawOf, keyOf, readRecord, ldpCost, wireReport } from "./records.js";
import { UNSENT, deviceStorage } from "./storage.js";
import { Transport } from "./transport.js";
import { inTurn, sleep } from "./turns.js";
/** @import { Campaign } from "./campaigns.js" */
/** @import { Json } from "./documents.js" */
/** @import { Form } from "./forms.js" */
/** @import { Answer, Answers } from "./questions/question.js" */
/** @import { Leaving, Remembered } from "./records.js" */
/** @import { ReportStorage } from "./storage.js" */

const LONGEST_REQUEST = 120; // seconds, to the last byte of the answer
const LONGEST_REASON = 80;
const FOREIGN = "the response did not come from a curator"; // a hotel's sign-in page, say

/** The LDP level that all answers of a device to one curator may reach together, unless it is told otherwise. */
export const DEFAULT_LIMIT = 10;

/**
 * `storage` is the browser's IndexedDB if not given. Where there is none, a client shows the campaign and answers nothing. `timeout`
 * is how many seconds a request may take, to the last byte of its answer. `code` is that of an invitation, if the campaign needs one
 * and it is not in the link. `limit` is the LDP level that all answers of this device to the same curator may reach.
 *
 * @typedef {object} ClientOptions
 * @property {typeof globalThis.fetch} [fetch]
 * @property {ReportStorage | null} [storage]
 * @property {(seconds: number) => Promise<unknown>} [wait]
 * @property {number} [timeout]
 * @property {string} [code]
 * @property {number} [limit]
 */

/**
 * Answers one campaign, once. `url` is the campaign's address; `fetch`, `storage` and `wait` may be replaced; `timeout` is
 * how many seconds a request may take. `code` is that of an invitation; the link of an invitation has it after `#`. `limit` is
 * the LDP level that all answers of this device to the same curator may reach; a campaign may lower it.
 *
 * `begin` draws which questions are asked, where the form asks each person about a part of them, and remembers the draw before
 * anything is shown. `answer` draws the submission and remembers it before it is sent, and from then on it is the answer: asked
 * again, the client sends the same submission, so that nobody learns more, and nobody can try until they like what is sent. Where
 * nothing can be remembered, nothing is sent. Answers and random words are never stored: random words and a report together
 * reveal the answers.
 */
export class Client {
  /** @type {Campaign | undefined} */
  #campaign;
  #memory;
  #transport;
  #limit;
  #code;
  #codeIsFree = false;

  /** @param {string | URL} url @param {ClientOptions} [options] */
  constructor(url, options = {}) {
    const { fetch = globalThis.fetch, storage = deviceStorage(), wait = sleep, timeout = LONGEST_REQUEST } = options;
    const [address, fragment = ""] = String(url).split("#");
    const code = options.code ?? new URLSearchParams(fragment).get("code");
    need(code === null || isCode(code), "code", "should be the 32 hexadecimal digits of an invitation");
    this.#code = code;
    need(typeof timeout === "number" && timeout > 0, "timeout", "should be a number of seconds, above zero");
    const { limit = DEFAULT_LIMIT } = options;
    need(typeof limit === "number" && limit > 0, "limit", "should be a number above zero");
    this.#limit = limit;
    // The page that people answer on stands for its campaign.
    this.url = address.replace(/\/+$/, "").replace(/\/answer\/([0-9a-f]{64})([/?].*)?$/, "/v1/campaigns/$1");
    this.#memory = new Memory(storage);
    this.#transport = new Transport((...request) => fetch(...request), wait, timeout);
  }

  /** The campaign, fetched once and checked: also that it is the one named by the address. */
  async campaign() {
    if (this.#campaign === undefined) {
      const id = this.url.match(/\/([0-9a-f]{64})$/)?.[1];
      need(id, "url", "should be a campaign's address, which ends in its id of 64 hexadecimal digits");
      this.#campaign = await readCampaign(await this.#transport.download(this.url), { id });
    }
    return this.#campaign;
  }

  /** Whether a first answer can be sent: the campaign needs no invitation, or the code of this client can still be used. */
  async invited() {
    const { admission } = await this.campaign();
    if (admission === "open" || this.#codeIsFree) return true;
    if (this.#code === null) return false;
    const { free } = await this.#ask("invitation", { code: this.#code });
    if (typeof free !== "boolean") throw new NotSent(FOREIGN);
    this.#codeIsFree = free;
    return free;
  }

  /** What is remembered: the submission in the form in which it leaves, and whether it was delivered; or null. */
  async remembered() {
    const { id, forms } = await this.campaign();
    const text = await this.#memory.get(keyOf(id));
    if (text === null) return null;
    const record = readRecord(text);
    const form = Object.values(forms).find((f) => f.id === record.form);
    need(form?.accepts(record.report), "storage", UNREADABLE);
    return record;
  }

  /**
   * For each slot of the cohort's form the position of the part that this device is asked about: drawn once for all cohorts, and
   * remembered before it is returned. Raises `BudgetExceeded` if answering would pass the limit of the device or the campaign.
   *
   * @param {string} [cohort]
   * @returns {Promise<number[]>}
   */
  async begin(cohort) {
    const campaign = await this.campaign();
    const form = campaign.formFor(cohort);
    const sent = await this.remembered();
    if (sent !== null) return drawOf(campaign, sent);
    await this.#checkLimit(campaign, form);
    if (!form.slots.some((slot) => slot.drawn)) return form.draw();
    const key = `priorveil:draw:${campaign.id}`;
    return inTurn(key, async () => {
      if ((await this.#memory.get(key)) === null) await this.#memory.add(key, JSON.stringify(campaign.drawForms()));
      const draw = parseJson((await this.#memory.get(key)) ?? "null")?.[form.id];
      need(form.fitsDraw(draw), "storage", UNREADABLE);
      return draw;
    });
  }

  /** Raise `BudgetExceeded` if the limit of the device or the campaign allows no answer, whatever the cohort. Draws nothing. */
  async checkLimit() {
    const campaign = await this.campaign();
    const checks = campaign.cohorts.map((cohort) => this.#checkLimit(campaign, campaign.formFor(cohort)));
    await Promise.any(checks).catch(({ errors }) => Promise.reject(errors[0]));
  }

  /**
   * Check these answers and the limit, as `answer` does. No report is drawn: that is done when it is sent.
   *
   * @param {Answers | Answer} answers
   * @param {string} [cohort]
   */
  async prepare(answers, cohort) {
    if ((await this.remembered()) === null) await this.#valuesToReport(answers, cohort);
  }

  /**
   * Perturb the answers here, remember the submission, and send it; the receipt says whether it is a replay. `answers` has an
   * answer for each question, by its name; of a campaign with one question it may be the answer itself.
   *
   * @param {Answers | Answer} answers
   * @param {string} [cohort]
   * @returns {Promise<{ report: Leaving, replayed: boolean }>}
   */
  async answer(answers, cohort) {
    const campaign = await this.campaign();
    return inTurn(keyOf(campaign.id), async () => {
      const before = await this.remembered();
      if (before?.withdrawn) throw new ReportRefused("withdrawn");
      if (before === null && !(await this.invited())) throw new ReportRefused("no invitation");
      const { kept, replayed } =
        before === null ? await this.#storeFirst(answers, cohort) : { kept: before, replayed: true };
      await this.#deliverOnce(kept);
      return { report: wireReport(kept), replayed };
    });
  }

  /** Send the remembered report, if there is one and it was not delivered; true if nothing is left to send. */
  async deliver() {
    const { id } = await this.campaign();
    return inTurn(keyOf(id), async () => {
      const known = await this.remembered();
      if (known?.withdrawn) throw new ReportRefused("withdrawn");
      if (known !== null) await this.#deliverOnce(known);
      return known !== null;
    });
  }

  /**
   * Remove the report of an earlier answer from the curator; true if it was there. It stays remembered and is never sent again:
   * as `withdrawn` before the curator is asked, and as `removed` when it has confirmed that. Once results are published the
   * curator removes no report: then it throws ReportRefused, and nothing changes.
   */
  async withdraw() {
    const { id } = await this.campaign();
    return inTurn(keyOf(id), async () => {
      const known = await this.remembered();
      need(known !== null, "storage", "there is no answer to withdraw");
      await this.#note(known, { withdrawn: true });
      return this.#remove(known);
    });
  }

  /**
   * Ask the curator to remove a report that is remembered as withdrawn; true if it was there.
   *
   * @param {Remembered} known
   * @returns {Promise<boolean>}
   */
  async #remove(known) {
    const { removed } = await this.#ask("withdrawals", { report_ids: [known.report_id] }).catch(async (error) => {
      if (error instanceof ReportRefused) await this.#note(known, { withdrawn: known.withdrawn }); // the curator keeps the report
      throw error;
    });
    if (typeof removed !== "number") throw new NotSent(FOREIGN);
    try {
      await this.#note(known, { removed: true });
    } catch {
      // It is removed, and still remembered as withdrawn: all that can follow is the same request again.
    }
    return removed > 0;
  }

  /**
   * A level for each attribute that a report is drawn about, and the draw.
   *
   * @param {Answers | Answer} given
   * @param {string} [cohort]
   */
  async #valuesToReport(given, cohort) {
    const campaign = await this.campaign();
    const draw = await this.begin(cohort);
    const answers = answersBy(campaign, given);
    campaign.checkAnswers(answers);
    return { draw, values: campaign.attributeValues(answers, campaign.questionsToAsk(cohort, draw)) };
  }

  /**
   * Raise `BudgetExceeded` if this form and all that was answered to this curator before pass the limit.
   *
   * @param {Campaign} campaign
   * @param {Form} form
   */
  async #checkLimit({ id, limit }, form) {
    const { origin } = new URL(this.url);
    const keys = (await this.#memory.keys()).filter((key) => ANSWERED.test(key) && key !== keyOf(id));
    const records = [];
    for (const key of keys) {
      const text = await this.#memory.get(key);
      if (text !== null) records.push(readRecord(text));
    }
    const spent = records.filter((record) => record.origin === origin).map(({ ldp }) => real(ldp, "storage"));
    const level = spent.reduce((total, earlier) => total + earlier, ldpCost(form));
    const most = Math.min(this.#limit, limit ?? Infinity);
    // A level without bound is its device's only answer to a curator, whatever the limit.
    if (level === Infinity ? spent.length > 0 : level > most) throw new BudgetExceeded(level, most);
  }

  /**
   * Draw a first submission and remember it. What the storage then holds is the answer: that of another tab, if it came first.
   *
   * @param {Answers | Answer} answers
   * @param {string} [cohort]
   */
  async #storeFirst(answers, cohort) {
    const campaign = await this.campaign();
    const { draw, values } = await this.#valuesToReport(answers, cohort);
    const form = campaign.formFor(cohort);
    const report_id = freshId();
    const drawn = { report_id, form: form.id, report: form.privatize(values, draw) };
    const level = { origin: new URL(this.url).origin, ldp: numberText(ldpCost(form)) };
    const text = JSON.stringify({ ...drawn, ...level, delivered: false });
    await this.#memory.exclusively(async () => {
      await this.#checkLimit(campaign, form); // another tab may have answered another campaign meanwhile
      if ((await this.remembered()) === null) await this.#memory.add(keyOf(campaign.id), text);
    });
    const kept = await this.remembered();
    need(kept !== null, "storage", `what was written is not there. ${UNSENT}`);
    return { kept, replayed: kept.report_id !== report_id };
  }

  /**
   * Remember changes of a submission as it is remembered now: another tab may have withdrawn or delivered it meanwhile.
   *
   * @param {Remembered} known
   * @param {Partial<Remembered>} changes
   * @returns {Promise<Remembered>}
   */
  async #note(known, changes) {
    const { id } = await this.campaign();
    return this.#memory.exclusively(async () => {
      const now = { ...known, ...(await this.remembered()), ...changes };
      await this.#memory.set(keyOf(id), JSON.stringify(now));
      return now;
    });
  }

  /** @param {Remembered} known */
  async #deliverOnce(known) {
    if (known.delivered) return;
    await this.#send(wireReport(known));
    let now = known;
    try {
      now = await this.#note(known, { delivered: true, removed: undefined });
    } catch {
      // It has arrived and is still remembered: all that can follow is the same report again, which is not counted.
    }
    if (!now.withdrawn) return;
    await this.#remove(known); // the withdrawal may have arrived before the report
    throw new ReportRefused("withdrawn");
  }

  /** @param {Leaving} report */
  async #send(report) {
    const { admission } = await this.campaign();
    const needsCode = admission === "invitation" && this.#code !== null;
    const receipt = await this.#ask("reports", needsCode ? { ...report, code: this.#code } : report);
    const refusals = Array.isArray(receipt?.refused) ? receipt.refused : null;
    if (receipt?.accepted === 1 && refusals?.length === 0) return;
    const reason = refusals?.length === 1 ? refusals[0]?.reason : undefined;
    if (typeof reason !== "string") throw new NotSent(FOREIGN);
    throw new ReportRefused(
      printable(reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON)}...`),
    );
  }

  /** What the curator answers to a document that is posted to it. @param {string} path @param {Json} document */
  #ask(path, document) {
    return this.#transport.post(`${this.url}/${path}`, document);
  }
}

/** @param {unknown} code */
const isCode = (code) => typeof code === "string" && /^[0-9a-f]{32}$/i.test(code);

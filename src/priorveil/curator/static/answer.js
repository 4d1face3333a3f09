// The respondent's page: who asks and why, one question at a time, what will be sent, send. Nothing is requested between loading
// and sending, and answers stay in the memory of this page.

import { pageOf } from "/static/answer_kinds.js";
import { chooseLanguage, complain, ownText, paragraph, say, show, speak } from "/static/answer_page.js";
import { drawQuestion } from "/static/answer_question.js";
import {
  drawBroken,
  drawNotSent,
  drawPreviewEnd,
  drawRefused,
  drawShut,
  drawThanks,
  drawWithdrawn,
  showSending,
} from "/static/answer_receipt.js";
import { drawReview } from "/static/answer_review.js";
import { drawInvitation, drawStart } from "/static/answer_start.js";
import { el } from "/static/dom.js";
import { Interview } from "/static/interview.js";
import { firstStep, whyKept } from "/static/outcomes.js";
import { Client, ReportRefused, readCampaign } from "/static/priorveil.js";
/** @import { Campaign, Question } from "/static/priorveil.js" */
/** @import { Sent } from "/static/answer_receipt.js" */
/** @import { Status } from "/static/outcomes.js" */

const STATUS_WAIT = 20_000; // milliseconds
const PREVIEW = "priorveil-preview"; // in sessionStorage: the document of a campaign that is not stored yet

const about = /** @type {HTMLElement} */ (document.querySelector("#about"));
const preview = /** @type {HTMLElement} */ (document.querySelector("#preview"));

const id = /** @type {string} */ (location.pathname.split("/").at(-1));
const isCode = (/** @type {string | null} */ text) => /^[0-9a-f]{32}$/i.test(text ?? "");
const isPreview = () => location.hash === "#preview";

/** Made when the page is loaded, and again when a code is typed in. @type {Client} */
let client;

/** Null until the campaign is there. @type {Interview | null} */
let interview = null;

/** Whether the curator takes reports now. @type {Status} */
let status;

// -- loading ---------------------------------------------------------------------------------------------------------

async function begin(code = keptCode()) {
  chooseLanguages();
  if (isPreview()) return beginPreview();
  keepCode(code);
  client = new Client(`${location.origin}/v1/campaigns/${id}`, code !== null && isCode(code) ? { code } : {});
  const campaign = await client.campaign();
  status = await currentStatus(campaign);
  interview = new Interview(campaign); // with its status: a language may be chosen meanwhile, which draws what is there
  chooseLanguages();
  const known = await client.remembered();
  const step = firstStep(status, known);
  if (step === "withdrawn") return show(drawWithdrawn);
  if (step === "thanks" && known !== null) return showThanks(known, true);
  if (step === "shut") return show(() => drawShut(campaign, status, known !== null));
  if (step === "undelivered") return showNotSent("notDelivered");
  await client.checkLimit();
  if (!(await client.invited())) return showInvitation(code);
  return showStart();
}

const CODE = `priorveil-code:${id}`; // in sessionStorage, which a reload does not empty

/** The code in the link, or the one that this tab keeps. The link loses it: addresses and histories are seen by others. */
function keptCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code ?? ofTab(() => sessionStorage.getItem(CODE));
}

/** Keep the code of an invitation in this tab until the report has arrived. @param {string | null} code */
function keepCode(code) {
  ofTab(() => (code !== null && isCode(code) ? sessionStorage.setItem(CODE, code) : sessionStorage.removeItem(CODE)));
}

/** Ask the storage of this tab; null where the browser refuses that. @template T @param {() => T} ask */
function ofTab(ask) {
  try {
    return ask();
  } catch {
    return null;
  }
}

/** A look at the page for the people who make a campaign: nothing is drawn, remembered or sent. */
async function beginPreview() {
  const kept = sessionStorage.getItem(PREVIEW);
  const mine = kept !== null && JSON.parse(kept).id === id;
  const campaign = mine
    ? await readCampaign(kept, { id })
    : await new Client(`${location.origin}/v1/campaigns/${id}`).campaign();
  status = { state: "open", leans_on_prior: false };
  interview = new Interview(campaign);
  chooseLanguages();
  preview.hidden = false;
  return showStart();
}

/** Whether the curator takes reports now; it may have closed early. Without an answer, by our own clock. @param {Campaign} campaign */
function currentStatus(campaign) {
  /** @type {RequestInit} */
  const request = { credentials: "omit", signal: AbortSignal.timeout(STATUS_WAIT) };
  const byClock = { state: campaign.state(), leans_on_prior: false };
  return fetch(`${client.url}/status`, request)
    .then((response) => (response.ok ? response.json() : byClock))
    .catch(() => byClock); // it may also break off
}

const chooseLanguages = () => chooseLanguage(interview?.campaign.languages ?? null, sayAbout);

/** The title of the page, and what is said below every step. */
function sayAbout() {
  document.title = interview === null ? say("documentTitle") : ownText(interview.campaign.title);
  preview.replaceChildren(say("preview"));
  if (interview === null) return;
  const { closes, keepUntil, mostReports, admission, contact } = interview.campaign;
  const lines = [
    closes && status.state !== "closed" && paragraph("takenUntil", { time: speak.moment(closes) }),
    keepUntil && paragraph("deletedAt", { time: speak.moment(keepUntil) }),
    mostReports && paragraph("atMostReports", { count: speak.number(mostReports) }),
    admission === "invitation" && paragraph("onlyInvited"),
    status.leans_on_prior && paragraph("leansOnPrior"),
    contact && paragraph("contact", { contact: el("bdi", {}, contact) }),
  ];
  about.replaceChildren(...lines.filter((line) => line instanceof Node));
  about.hidden = !about.hasChildNodes();
}

// -- from step to step -------------------------------------------------------------------------------------------------

/** The interview, which every step after loading has. */
function present() {
  if (interview === null) throw new Error("the campaign is not loaded");
  return interview;
}

/** Say first what is wrong with the code that was given. @param {string | null} code */
function showInvitation(code) {
  const problem = code === null ? null : isCode(code) ? "invitationUsed" : "invitationWrong";
  show(() => drawInvitation(problem, (typed) => begin(typed).catch(showBroken)));
}

function showStart() {
  show(() => drawStart(present(), (entry) => start(entry).catch(showBroken)));
}

/** Draw which questions are asked, remember that, and show the first one. @param {HTMLFormElement} entry */
async function start(entry) {
  const { cohort } = present();
  const list = entry.querySelector("select");
  if (cohort === undefined && list !== null) return complain(list, "cohort", say("chooseOne"));
  if (!isPreview()) navigator.storage?.persist?.().catch(() => {}); // the browser may refuse; then it keeps what it keeps
  present().ask(isPreview() ? null : await client.begin(cohort));
  return showQuestion(present().questions[0]);
}

/** @param {Question} question @param {boolean} [toReview] */
function showQuestion(question, toReview = false) {
  const back = () => {
    const before = present().before(question);
    return before === undefined ? showStart() : showQuestion(before);
  };
  show(() => drawQuestion(present(), question, (entry) => next(question, entry, toReview), back));
}

/** Go on to the next question that is asked, or to the end. @param {Question} question @param {HTMLFormElement} entry @param {boolean} toReview */
function next(question, entry, toReview) {
  const problem = present().problem(question, pageOf(question).missing);
  const target = /** @type {HTMLElement} */ (entry.querySelector("input, select"));
  const example = speak.number(1234.5, { useGrouping: false });
  if (problem !== null) return complain(target, "answer", say(problem, { example }));
  const following = present().after(question, toReview);
  return following === undefined ? showReview() : showQuestion(following, toReview);
}

function showReview() {
  const change = (/** @type {Question} */ question) => showQuestion(question, true);
  const back = () => showQuestion(present().asked[present().asked.length - 1]);
  show(() => drawReview(present(), isPreview(), { send: deliver, change, back }));
}

// -- sending -----------------------------------------------------------------------------------------------------------

/** @param {HTMLButtonElement} button */
function deliver(button) {
  if (isPreview()) return show(() => drawPreviewEnd(showStart));
  return sending(button, async () => {
    const { answers, cohort } = present();
    const { report, replayed } = await client.answer(answers, cohort);
    present().forget(); // nothing needs them any more
    showThanks(report, replayed); // another tab may have been first
  });
}

/** Run with the button disabled; a report that did not arrive is kept, and can be sent again. */
async function sending(/** @type {HTMLButtonElement} */ button, /** @type {() => Promise<void>} */ send) {
  showSending(button);
  try {
    await send();
  } catch (error) {
    const why = whyKept(error);
    if (why !== null) showNotSent(why);
    else if (error instanceof ReportRefused) showRefused(error);
    else showBroken(error);
  }
}

/** @param {Sent} report @param {boolean} before */
function showThanks(report, before) {
  keepCode(null);
  const withdraw = async () => {
    await client.withdraw();
    show(drawWithdrawn);
  };
  show(() => drawThanks(report, before, withdraw, showBroken));
}

/** @param {string} why */
function showNotSent(why) {
  const again = async () => {
    if (!(await client.deliver())) return begin(); // what was kept is gone: its data was cleared meanwhile
    const report = await client.remembered();
    return report === null ? begin() : showThanks(report, false);
  };
  show(() => drawNotSent(why, (button) => sending(button, again)));
}

/** @param {ReportRefused} error */
function showRefused({ reason }) {
  if (reason === "withdrawn") return begin().catch(showBroken); // in another tab
  return show(() => drawRefused(reason));
}

/** @param {unknown} error */
function showBroken(error) {
  const promise = interview?.campaign.promise ?? {};
  const asked = promise[interview?.cohort ?? ""]?.ldp ?? Math.min(...Object.values(promise).map(({ ldp }) => ldp));
  show(() => drawBroken(error, asked));
}

window.addEventListener("hashchange", () => begin().catch(showBroken)); // the link of another invitation, in the same tab
begin().catch(showBroken);

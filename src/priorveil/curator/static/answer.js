// The respondent's page: who asks and why, one question at a time, what will be sent, send. Nothing is requested between loading
// and sending, and answers stay in the memory of this page.

import { BudgetExceeded, Client, NotSent, PriorveilError, ReportRefused, readCampaign, readNumber } from "/static/priorveil.js";
import { closeButton, openDialog } from "/static/dialogs.js";
import { el, scrolling } from "/static/dom.js";
import { OWN_LANGUAGES, bestLanguage, markLanguage, offerLanguages, speakOnPage, speaker } from "/static/language.js";
import { likelyAfterwards } from "/static/levels.js";

const MANY = 20; // options beyond which a list to pick from is easier than buttons
const LIKELY = 0.1; // an answer that is so likely before is the example of what a level means
// How well answers are hidden, up to each level. Above 3 a belief of 50 % can become one of more than 97 %: `campaign check` warns.
const GRADES = [
  [1, "seenNo"],
  [2, "seenPartly"],
  [3, "seenHardly"],
  [Infinity, "seenWeak"],
];
const REFUSALS = { full: "refusedFull", "no invitation": "refusedInvitation" };
// The clock of the server may be wrong, and a closed survey may open again: these are not final.
const SHUT = { closed: "shutClosed", "not yet open": "shutNotYetOpen" };
const STATUS_WAIT = 20_000; // milliseconds
const PREVIEW = "priorveil-preview"; // in sessionStorage: the document of a campaign that is not stored yet

const main = document.querySelector("main");
const heading = document.querySelector("h1");
const progress = document.querySelector("#progress");
const stage = document.querySelector("#stage");
const about = document.querySelector("#about");
const news = document.querySelector("#news");
const languages = document.querySelector("#language");

const id = location.pathname.split("/").at(-1);
const isCode = (text) => /^[0-9a-f]{32}$/i.test(text ?? "");
const isPreview = () => location.hash === "#preview";
const noEntries = () => Object.create(null); // a question may have the name "constructor"

let client; // made when the page is loaded, and again when a code is typed in
let speak = speaker("en");
let pickedLanguage = null; // from the list, by the person; it stays while more languages are offered
let step = () => {}; // draws the present step again, in another language
let campaign = null;
let status = null;
let cohort; // the name of the person's group
let parts = []; // those of the form that this device sends reports about
let questions = []; // those that this device asks
let answers = noEntries(); // true answers, by question: they are never stored
let typed = noEntries(); // numbers as they were typed

// -- the page --------------------------------------------------------------------------------------------------------

/** Draw one step, and put the focus on its heading, so that a screen reader begins there. */
function show(draw) {
  step = draw;
  draw();
  heading.focus();
  window.scrollTo(0, 0);
}

/** Put a heading and content on the page; `title` is a text or an element. */
function put(title, ...content) {
  heading.replaceChildren(title);
  progress.hidden = true;
  stage.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  news.textContent = "";
}

const say = (key, values) => speak.say(key, values);
const phrase = (key, values) => speak.phrase(key, values);
const paragraph = (key, values) => el("p", {}, ...phrase(key, values));
const quiet = (key, values) => el("p", { class: "quiet" }, ...phrase(key, values));
const actions = (...buttons) => el("div", { class: "actions" }, ...buttons);
const warning = (...text) => el("p", { class: "warning", role: "alert" }, ...text);
const fold = (title, ...content) => el("details", {}, el("summary", {}, title), ...content);
const line = (name, ...content) => el("div", {}, el("dt", {}, name), el("dd", {}, ...content));
const plainButton = (text, onclick, attributes = {}) =>
  el("button", { type: "button", class: "plain", onclick, ...attributes }, text);

/** The language of the campaign's own texts. */
const campaignLanguage = () => bestLanguage([languages.value, speak.language], campaign.languages) ?? campaign.languages[0];

const inCampaignLanguage = (text) => markLanguage(campaignLanguage(), text);

/** One of the campaign's texts, marked with its language; empty if it was not given. */
const own = (texts) => (hasText(texts) ? inCampaignLanguage(ownText(texts)) : "");

const ownText = (texts) => texts[campaignLanguage()] ?? "";
const hasText = (texts) => Object.keys(texts).length > 0;

/** Offer the languages of the campaign, and speak the one that the person picked, or that fits the person best. */
function chooseLanguage() {
  const wanted = [pickedLanguage ?? [], navigator.languages].flat();
  useLanguage(offerLanguages(languages, campaign?.languages ?? OWN_LANGUAGES, wanted));
}

function useLanguage(tag) {
  speak = speakOnPage(tag);
  document.title = campaign === null ? say("documentTitle") : ownText(campaign.title);
  showAbout();
}

languages.addEventListener("change", () => {
  pickedLanguage = languages.value;
  useLanguage(pickedLanguage);
  step();
});

// -- loading ---------------------------------------------------------------------------------------------------------

async function begin(code = keptCode()) {
  chooseLanguage();
  if (isPreview()) return beginPreview();
  keepCode(code);
  client = new Client(`${location.origin}/v1/campaigns/${id}`, isCode(code) ? { code } : {});
  const loaded = await client.campaign();
  status = await currentStatus(loaded);
  campaign = loaded; // with its status: a language may be chosen meanwhile, which draws what is there
  cohort = campaign.cohorts.length === 1 ? campaign.cohorts[0] : undefined;
  chooseLanguage();
  const known = await client.remembered();
  if (known?.removed) return show(drawWithdrawn);
  if (known?.delivered || known?.withdrawn) return show(() => drawThanks(known, true));
  const mayBeStored = status.state === "full" && known !== null; // a full survey takes no new report
  if (status.state !== "open" && !mayBeStored) return show(() => drawShut(known !== null));
  if (known !== null) return show(() => drawNotSent("notDelivered"));
  if (!(await client.invited())) return show(() => drawInvitation(code));
  return show(drawStart);
}

const CODE = `priorveil-code:${id}`; // in sessionStorage, which a reload does not empty

/** The code in the link, or the one that this tab keeps. The link loses it: addresses and histories are seen by others. */
function keptCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code ?? ofTab("getItem", CODE);
}

/** Keep the code of an invitation in this tab until the report has arrived. */
const keepCode = (code) => (isCode(code) ? ofTab("setItem", CODE, code) : ofTab("removeItem", CODE));

/** Ask the storage of this tab; null where the browser refuses that. */
function ofTab(verb, ...given) {
  try {
    return sessionStorage[verb](...given) ?? null;
  } catch {
    return null;
  }
}

/** A look at the page for the people who make a campaign: nothing is drawn, remembered or sent. */
async function beginPreview() {
  const kept = sessionStorage.getItem(PREVIEW);
  const mine = kept !== null && JSON.parse(kept).id === id;
  status = { state: "open", leans_on_prior: false };
  campaign = mine ? await readCampaign(kept, { id }) : await new Client(`${location.origin}/v1/campaigns/${id}`).campaign();
  cohort = campaign.cohorts.length === 1 ? campaign.cohorts[0] : undefined;
  chooseLanguage();
  document.querySelector("#preview").hidden = false;
  return show(drawStart);
}

/** Whether the curator takes reports now; it may have closed early. Without an answer, by our own clock. */
function currentStatus(loaded) {
  const request = { credentials: "omit", signal: AbortSignal.timeout(STATUS_WAIT) };
  const byClock = { state: loaded.state(), leans_on_prior: false };
  return fetch(`${client.url}/status`, request)
    .then((response) => (response.ok ? response.json() : byClock))
    .catch(() => byClock); // it may also break off
}

function showAbout() {
  document.querySelector("#preview").replaceChildren(say("preview"));
  if (campaign === null) return;
  const lines = [
    campaign.closes && status.state !== "closed" && paragraph("takenUntil", { time: speak.moment(campaign.closes) }),
    campaign.keepUntil && paragraph("deletedAt", { time: speak.moment(campaign.keepUntil) }),
    campaign.mostReports && paragraph("atMostReports", { count: speak.number(campaign.mostReports) }),
    campaign.admission === "invitation" && paragraph("onlyInvited"),
    status.leans_on_prior && paragraph("leansOnPrior"),
    campaign.contact && paragraph("contact", { contact: el("bdi", {}, campaign.contact) }),
  ];
  about.replaceChildren(...lines.filter(Boolean));
  about.hidden = !about.hasChildNodes();
}

/** Ask for the code of an invitation; say first what is wrong with the one that was given. */
function drawInvitation(code) {
  const field = el("input", { type: "text", name: "code", autocomplete: "off", spellcheck: "false", required: true });
  const onsubmit = (event) => {
    event.preventDefault();
    begin(field.value.replace(/[\s-]/g, "")).catch(showBroken);
  };
  put(
    say("invitationTitle"),
    code === null ? paragraph("invitationNeeded") : warning(say(isCode(code) ? "invitationUsed" : "invitationWrong"), " ", say("onlyCodeSent")),
    el("form", { onsubmit }, el("label", { class: "field" }, say("invitationCode"), field), actions(submit("continue"))),
  );
}

const submit = (key) => el("button", { type: "submit" }, say(key));

// -- before the first question ---------------------------------------------------------------------------------------

/** Everything that a person should know before answering. */
function drawStart() {
  const several = campaign.cohorts.length > 1;
  const onsubmit = (event) => {
    event.preventDefault();
    start(event.target).catch(showBroken);
  };
  put(
    own(campaign.title),
    hasText(campaign.description) && el("p", {}, own(campaign.description)),
    el(
      "dl",
      { class: "introduction" },
      line(say("whoAsks"), hasText(campaign.askedBy) ? own(campaign.askedBy) : say("whoAsksDefault", { host: location.host })),
      line(say("why"), hasText(campaign.purpose) ? own(campaign.purpose) : say("whyDefault")),
      line(say("yourAnswers"), say("scrambledHere")),
    ),
    consequences(),
    el(
      "form",
      { onsubmit, autocomplete: "off", novalidate: true },
      several && cohortPicker(),
      Object.values(campaign.forms).some(({ slots }) => slots.some((slot) => slot.drawn)) && quiet("someDrawn"),
      actions(submit("start")),
      quiet("nothingSentYet"),
    ),
  );
}

/** What others could see, in one table: the same scrambled report, whoever they are. The words follow from the highest level. */
function consequences() {
  const exposed = Object.values(campaign.forms).map(exposure).find(Boolean);
  const most = (name) => Math.max(...Object.values(campaign.promise).map((levels) => levels[name])); // of all cohorts
  const levels = { lip: most("lip"), ldp: most("ldp") };
  const seen = exposed ? "seenPerhaps" : gradeOf(levels);
  const row = (key) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, say(key)),
      el("td", {}, say(seen)),
      el("td", {}, say("seenReport")),
    );
  const column = (key) => el("th", { scope: "col" }, say(key));
  return [
    el(
      "table",
      { class: "consequences" },
      el("caption", {}, say("whoCouldSee")),
      el("thead", {}, el("tr", {}, column("who"), column("yourAnswers"), column("theReport"))),
      el("tbody", {}, ...["asker", "thief", "employer", "court"].map(row)),
    ),
    exposed ? warning(say(exposed))
    : seen === "seenWeak" ? warning(say("weakScrambling"))
    : [paragraph("neverLeave"), likelier(levels)],
    quiet("notProtected"),
  ];
}

/** How well a level hides answers: `lip` is LDP where nobody knows how common they are. */
const gradeOf = ({ lip }) => GRADES.find(([most]) => lip <= most)[1];

/** What a level means for the belief in one answer. */
function likelier({ lip, ldp }) {
  const after = Math.ceil(1000 * likelyAfterwards(LIKELY, lip, lip, ldp) - 1e-9) / 1000;
  const share = (value) => speak.number(value, { style: "percent", maximumFractionDigits: 1 });
  return paragraph("likelier", { before: share(LIKELY), after: share(after) });
}

/** What the scrambling does not protect; null where every submission can come from every answer. */
function exposure({ parts, levels }) {
  if (parts.some(({ plan }) => plan.protects === "secret")) return "exposedSecret";
  return levels.ldp < Infinity ? null : "exposedInPart";
}

function cohortPicker() {
  const options = campaign.cohorts.map((name) => el("option", { value: name, selected: name === cohort, dir: "auto" }, name));
  const onchange = (event) => {
    cohort = event.target.value || undefined;
  };
  return [
    el(
      "label",
      { class: "field" },
      say("yourGroup"),
      el(
        "select",
        { name: "cohort", autocomplete: "off", "aria-describedby": "cohort-hint cohort-problem", onchange },
        el("option", { value: "" }, say("choose")),
        ...options,
      ),
    ),
    el("p", { class: "hint", id: "cohort-hint" }, say("groupHint")),
    problemPlace("cohort"),
  ];
}

/** Draw which questions are asked, remember that, and show the first one. */
async function start(entry) {
  if (cohort === undefined) return complain(entry.querySelector("select"), "cohort", say("chooseOne"));
  const form = campaign.formFor(cohort);
  if (isPreview()) {
    parts = form.parts; // nothing is drawn: all questions are shown
    questions = campaign.questions;
  } else {
    navigator.storage?.persist?.().catch(() => {}); // the browser may refuse; then it keeps what it keeps
    const draw = await client.begin(cohort);
    parts = form.drawnParts(draw);
    questions = campaign.questionsToAsk(cohort, draw);
  }
  return show(() => drawQuestion(questions[0]));
}

// -- one question at a time ------------------------------------------------------------------------------------------

/** The questions that are asked after the answers so far. */
const questionsAsked = () => campaign.questionsAsked(questions, answers);

function drawQuestion(question, toReview = false) {
  const at = questions.indexOf(question);
  const onsubmit = (event) => {
    event.preventDefault();
    next(question, event.target, toReview);
  };
  const back = () => {
    const before = questionsAsked().filter((other) => questions.indexOf(other) < at).at(-1);
    show(before ? () => drawQuestion(before) : drawStart);
  };
  put(
    own(question.text),
    hasText(question.hint) && el("p", { class: "hint", id: "question-hint" }, own(question.hint)),
    !isReported(question) && quiet("noOwnReport"),
    el(
      "form",
      { onsubmit, autocomplete: "off", novalidate: true },
      problemPlace("answer"),
      field(question),
      actions(submit("continue"), plainButton(say("back"), back)),
    ),
  );
  showProgress(at);
}

function showProgress(at) {
  const text = say("progress", { at: speak.number(at + 1), of: speak.number(questions.length) });
  progress.replaceChildren(
    el("span", {}, text),
    el("progress", { value: at, max: questions.length, "aria-hidden": "true" }),
  );
  progress.hidden = false;
}

/** Whether a report is sent about a question itself; if not, it decides what is asked, and other reports tell something about it. */
const isReported = (question) => parts.some(({ attributes }) => attributes.some((name) => question.attributes.includes(name)));

const descriptionIds = (question, ...more) => [hasText(question.hint) && "question-hint", ...more, "answer-problem"].filter(Boolean).join(" ");

function field(question) {
  if (question.kind === "number") return numberField(question);
  if (question.kind === "choice" && question.options.length > MANY) return optionList(question);
  return optionButtons(question);
}

function optionButtons(question) {
  const several = question.kind === "choices";
  const { name } = question;
  const isChosen = (code) => (several ? (answers[name] ?? []).includes(code) : answers[name] === code);
  const onchange = (event) => {
    const boxes = [...event.currentTarget.querySelectorAll("input:checked")].map((box) => question.options[box.value].code);
    answers[name] = several ? boxes : boxes[0];
    clearComplaint();
  };
  const choices = question.options.map(({ code, text }, i) =>
    el(
      "label",
      { class: "choice" },
      el("input", { type: several ? "checkbox" : "radio", name: "answer", value: i, checked: isChosen(code), autocomplete: "off" }),
      own(text),
    ),
  );
  const role = several ? "group" : "radiogroup";
  return el(
    "fieldset",
    { role, "aria-labelledby": "heading", "aria-describedby": descriptionIds(question, several && "several-hint"), onchange },
    several && el("p", { class: "hint", id: "several-hint" }, say("tickAll")),
    ...choices,
  );
}

function optionList(question) {
  const onchange = (event) => {
    const chosen = question.options[event.target.value];
    answers[question.name] = chosen?.code;
    clearComplaint();
  };
  const options = question.options.map(({ code, text }, i) =>
    el("option", { value: i, selected: answers[question.name] === code, dir: "auto" }, ownText(text)),
  );
  return el(
    "label",
    { class: "field" },
    say("yourAnswer"),
    el(
      "select",
      { name: "answer", autocomplete: "off", "aria-describedby": descriptionIds(question), onchange },
      el("option", { value: "" }, say("choose")),
      ...options,
    ),
  );
}

function numberField(question) {
  const bounds = boundsOf(question);
  const range = bounds && { from: speak.number(bounds[0]), to: speak.number(bounds.at(-1)) };
  const oninput = (event) => {
    typed[question.name] = event.target.value;
    const { value, problem } = readTyped(event.target.value);
    answers[question.name] = problem ? undefined : value;
    clearComplaint();
  };
  // Not of type number: browsers drop a comma that is not the decimal mark of their language, and 12,5 becomes 125.
  const inputmode = bounds && bounds[0] >= 0 ? "decimal" : "text"; // some keyboards for decimals have no minus
  const input = el("input", {
    type: "text",
    inputmode,
    autocomplete: "off",
    spellcheck: "false",
    name: "answer",
    dir: "ltr",
    "aria-describedby": descriptionIds(question, range && "range-hint"),
    value: typed[question.name] ?? "",
    oninput,
  });
  const unit = hasText(question.unit) && el("span", { class: "unit" }, own(question.unit));
  return [
    el("label", { class: "field number" }, el("span", {}, say("yourAnswer")), el("span", { class: "entry" }, input, unit)),
    range && el("p", { class: "hint", id: "range-hint" }, say("range", range)),
  ];
}

/** The bounds of the ranges that a number is put into; numbers outside count as the ends. Undefined where there are none. */
function boundsOf({ name, ranges }) {
  const part = campaign.formFor(cohort).parts.find(({ attributes }) => attributes.includes(name));
  const numbers = part && (part.plan.attributes?.[part.attributes.indexOf(name)] ?? part.plan).numbers;
  return (ranges ?? numbers)?.bounds;
}

/** The number that was typed, or what is wrong with it. */
function readTyped(text) {
  try {
    return { value: readNumber(text) };
  } catch (error) {
    if (text.trim() === "") return { problem: "enterNumber" };
    return { problem: error.message.includes("ambiguous") ? "ambiguousNumber" : "notANumber" };
  }
}

const problemPlace = (name) => el("p", { class: "problem", id: `${name}-problem`, role: "alert" });

/** Say what is wrong beside the field, and go there: a long list must not leave the words out of view. */
function complain(target, name, text) {
  const place = document.querySelector(`#${name}-problem`);
  place.textContent = text;
  target.setAttribute("aria-invalid", "true");
  target.focus({ preventScroll: true });
  place.scrollIntoView({ block: "center" });
}

function clearComplaint() {
  for (const place of document.querySelectorAll(".problem")) place.textContent = "";
  for (const target of document.querySelectorAll("[aria-invalid]")) target.removeAttribute("aria-invalid");
}

/** Go on to the next question that is asked, or to the end. */
function next(question, entry, toReview) {
  if (question.kind === "choices") answers[question.name] ??= [];
  if (answers[question.name] === undefined) {
    const key = question.kind === "number" ? (readTyped(typed[question.name] ?? "").problem ?? "enterNumber") : "chooseOne";
    return complain(entry.querySelector("input, select"), "answer", say(key, { example: speak.number(1234.5, { useGrouping: false }) }));
  }
  const isAnswered = ({ name }) => answers[name] !== undefined;
  const later = questionsAsked().filter((other) => questions.indexOf(other) > questions.indexOf(question));
  const following = toReview ? questionsAsked().find((other) => !isAnswered(other)) : later[0];
  if (following !== undefined) return show(() => drawQuestion(following, toReview));
  return show(drawReview);
}

// -- everything that will be sent ------------------------------------------------------------------------------------

/** What may be sent, and what that reveals. The report is drawn when it is sent, so that nobody can try until they like it. */
function drawReview() {
  const form = campaign.formFor(cohort);
  const send = el("button", { type: "button", onclick: () => deliver(send) }, say("send"));
  const last = questionsAsked().at(-1);
  const figures = parts.map((part) => showsCrowd(part) && crowd(part));
  const alone = form.parts.length === 1;
  put(
    say("reviewTitle"),
    el("h2", {}, say("answersStay")),
    el("dl", { class: "answers" }, ...questions.map(answerLine)),
    el("h2", {}, say("whatIsSent")),
    leaving(form),
    el("h2", {}, say("whatItTells")),
    promise(form),
    alone && figures[0],
    el("div", { class: "actions edge" }, send, plainButton(say("back"), () => show(() => drawQuestion(last)))),
    !alone && figures.map((figure, i) => figure && fold(aloneTitle(parts[i]), figure, quiet("notThePromise"))),
    details(form),
  );
}

const aloneTitle = (part) => el("span", {}, ...phrase("reportAlone", { question: inCampaignLanguage(topic(part)) }));

/** A question, its answer, and a button to change it. */
function answerLine(question) {
  const change = plainButton(say("change"), () => show(() => drawQuestion(question, true)), {
    "aria-label": say("changeAnswer", { question: ownText(question.text) }),
  });
  const content = questionsAsked().includes(question) ? [answerText(question), change] : [el("em", {}, say("notAsked"))];
  return line(own(question.text), ...content, !isReported(question) && el("small", {}, say("toldByOthers")));
}

function answerText(question) {
  const answer = answers[question.name];
  if (question.kind === "number")
    return el("span", {}, countedNumber(question, answer), hasText(question.unit) && [" ", own(question.unit)]);
  const chosen = question.options.filter(({ code }) => [answer].flat().includes(code));
  if (chosen.length === 0) return el("span", {}, say("noneTicked"));
  return el("span", {}, ...chosen.flatMap(({ text }, i) => (i > 0 ? [", ", own(text)] : [own(text)])));
}

/** A number, and what it counts as where that is not the same. */
function countedNumber(question, answer) {
  const bounds = boundsOf(question) ?? [-Infinity, Infinity];
  const end = Math.min(Math.max(answer, bounds[0]), bounds.at(-1));
  return end === answer ? speak.exact(answer) : say("countsAs", { number: speak.exact(answer), end: speak.exact(end) });
}

/** The questions that a part is about. */
const questionsOf = ({ attributes }) => campaign.questions.filter((q) => q.attributes.some((name) => attributes.includes(name)));

/** The texts of a part's questions; if it is about some options of "tick all that apply", with those. */
function topic(part) {
  const texts = questionsOf(part).map((question) => {
    const options = question.options.filter(({ code }) => part.attributes.includes(`${question.name}/${code}`));
    const some = question.kind === "choices" && options.length < question.options.length;
    return some ? `${ownText(question.text)} ${options.map(({ text }) => ownText(text)).join(", ")}` : ownText(question.text);
  });
  return texts.join(" + ");
}

/** The reports that a plan can make, if they are few enough to be listed; otherwise none. */
const reportsOf = ({ outputs }) => (outputs !== null && outputs <= MANY ? [...Array(outputs).keys()] : []);

/** Everything that leaves this device, in words. */
function leaving(form) {
  const scrambled = parts.map(({ attributes, plan }, i) => {
    const { length } = reportsOf(plan);
    return line(
      inCampaignLanguage(topic({ attributes })),
      el("em", {}, length > 0 ? say("oneOfCodes", { count: speak.number(length) }) : say("someCode")),
      !isPreview() && form.slots[i].drawn && el("small", {}, " ", say("drawnQuestion")),
    );
  });
  return [
    paragraph(reportsText(form)),
    el(
      "dl",
      { class: "leaving" },
      ...scrambled,
      campaign.cohorts.length > 1 && line(say("yourGroup"), el("bdi", {}, cohort), el("small", {}, " ", say("sentAsItIs"))),
      line(say("randomNumber"), say("randomNumberWhy")),
      campaign.admission === "invitation" && line(say("invitationCode"), say("invitationWhy")),
    ),
    questions.some((question) => !questionsAsked().includes(question)) && paragraph("skippedToo"),
  ];
}

/** How many reports are sent about which questions; a preview has all of them, because it draws none. */
function reportsText({ slots }) {
  if (isPreview() && slots.some((slot) => slot.drawn)) return slots.length === 1 ? "previewOne" : "previewSome";
  return parts.length > 1 ? "reportsAre" : "reportIs";
}

/** What the whole submission reveals about any answer: under the prior, and under any prior. */
function promise(form) {
  const { lip, ldp } = campaign.promise[cohort];
  const exposed = exposure(form);
  if (exposed) return warning(say(exposed));
  const weak = gradeOf({ lip }) === "seenWeak";
  const several = form.attributes.length > 1;
  const factor = (level) => el("strong", {}, speak.factor(level));
  return el(
    "div",
    { class: "promise" },
    lip < ldp && paragraph(several ? "promiseKnownSeveral" : "promiseKnown", { factor: factor(lip) }),
    paragraph(several ? "promiseAnySeveral" : "promiseAny", { factor: factor(ldp) }),
    weak ? warning(say("weakScrambling")) : paragraph("provesNothing"),
  );
}

/**
 * Whether figures of a hundred people may be shown: for a report about one question, whose answers are known to be so common, which
 * no other report is about, and which no other question is linked to, by a condition or by design.
 */
function showsCrowd({ attributes, plan }) {
  const [question] = questionsOf({ attributes });
  const isGate = campaign.questions.some(({ askedIf }) => askedIf.has(question.name));
  const once = parts.filter((part) => part.attributes.includes(attributes[0])).length === 1;
  const single = attributes.length === 1 && question.attributes.length === 1 && once;
  const known = plan.prior !== null && !plan.priorAssumed && plan.protects === "value";
  return single && known && !isGate && question.askedIf.size === 0;
}

/** What the reports about a question reveal: of 100 people who send each, how many answered the same. */
function crowd(part) {
  const { plan } = part;
  const [reports, code] = [reportsOf(plan), codeOf(part)];
  const before = plan.prior[code];
  const everybody = paragraph(campaign.cohorts.length > 1 ? "crowdGroup" : "crowdAll", { count: inWords(before) });
  return el(
    "figure",
    {},
    reports.length > 0 ? eachReport(part, code, reports) : anyReport(part, code),
    everybody,
    quiet("crowdAssumes"),
    reports.length > 0 && plan.labels.length <= MANY && fold(say("allAnswers"), comparison(part, reports)),
  );
}

/** Every report: how often it is drawn for this answer, and how many of 100 people who send it gave that answer. */
function eachReport(part, code, reports) {
  const { plan } = part;
  const row = (report) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, say("reportCode", { code: report })),
      el("td", { class: "figure" }, speak.percent(plan.likelihoods(report)[code])),
      el("td", { class: "figure" }, inWords(plan.posterior(report)[code])),
    );
  const column = (key) => el("th", { scope: "col", class: "figure" }, say(key));
  return el(
    "table",
    { class: "reports" },
    el("caption", {}, ...phrase("eachReport", { answer: quoted(part, code) })),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("oneReport")), column("drawnFor"), column("sameAnswer"))),
    el("tbody", {}, ...reports.map(row)),
  );
}

/** What holds for each of many reports: between how many of 100 people who send it gave this answer. */
function anyReport(part, code) {
  const { lipLower, lipUpper, ldp } = part.plan.levels;
  const before = part.plan.prior[code];
  return paragraph("anyReport", {
    least: speak.number(Math.floor(100 * before * Math.exp(-lipLower))),
    most: speak.number(Math.ceil(100 * likelyAfterwards(before, lipLower, lipUpper, ldp))),
    answer: quoted(part, code),
  });
}

const quoted = (part, code) => el("span", {}, "“", el("bdi", {}, nameOf(part, code)), "”");

/** The code of the answer to the only question of a part; of a number on a grid, that of the nearest point. */
function codeOf({ attributes: [name], plan }) {
  const level = campaign.attributeValues(answers, questions).get(name);
  if (plan.numbers?.kind !== "grid") return plan.code(level);
  const distances = plan.labels.map((point) => Math.abs(point - level));
  return distances.indexOf(Math.min(...distances));
}

/** The name of one of the answers of a part about one question. */
function nameOf({ attributes: [name], plan }, code) {
  const { numbers, labels } = plan;
  if (numbers?.kind === "grid") return say("near", { number: speak.exact(labels[code]) });
  const question = campaign.questions.find((q) => q.name === name);
  const bounds = (numbers ?? question.ranges)?.bounds;
  if (bounds) return say("between", { from: speak.exact(bounds[code]), to: speak.exact(bounds[code + 1]) });
  const option = question.options.find((o) => o.code === String(labels[code]));
  return option ? ownText(option.text) : String(labels[code]);
}

/** A share as a count of 100 people: shares that round to nobody or to everybody are neither. */
function inWords(share) {
  const count = speak.number(Math.round(100 * share));
  if (share === 0 || share === 1) return count;
  if (share < 0.005) return say("fewerThanOne");
  return share > 0.995 ? say("moreThan99") : say("about", { count });
}

/** Each answer among all people and among those who send each report. */
function comparison(part, reports) {
  const { plan } = part;
  const columns = [plan.prior, ...reports.map((report) => plan.posterior(report))];
  const heads = [say("amongAll"), ...reports.map((report) => say("reportCode", { code: report }))];
  const rows = plan.labels.map((_, x) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("bdi", {}, nameOf(part, x))),
      ...columns.map((shares) => el("td", { class: "figure" }, speak.percent(shares[x]))),
    ),
  );
  const table = el(
    "table",
    { class: "comparison" },
    el("caption", {}, say("crowdAssumes")),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, say("answer")), ...heads.map((head) => el("th", { scope: "col", class: "figure" }, head)))),
    el("tbody", {}, ...rows),
  );
  return scrolling(say("allAnswers"), table);
}

/** The exact text that was sent. */
const exactText = ({ report_id, form, report }, attributes) =>
  el("pre", { tabindex: "0", dir: "ltr", ...attributes }, JSON.stringify({ report_id, form, report }));

function details(form) {
  const { lip, ldp } = campaign.promise[cohort];
  const values = { lip: speak.level(lip), ldp: speak.level(ldp) };
  return fold(
    say("curious"),
    paragraph("checked"),
    paragraph(lip < ldp ? "levels" : "levelsAny", values),
    paragraph("campaignId", { id: el("code", {}, campaign.id) }),
    paragraph("formId", { id: el("code", {}, form.id) }),
  );
}

// -- sending -----------------------------------------------------------------------------------------------------------

async function deliver(button) {
  if (isPreview()) return show(() => put(say("previewEnd"), paragraph("previewNothing"), actions(plainButton(say("again"), () => show(drawStart)))));
  return working(button, async () => {
    const { report, replayed } = await client.answer(answers, cohort);
    [answers, typed] = [noEntries(), noEntries()]; // nothing needs them any more
    show(() => drawThanks(report, replayed)); // another tab may have been first
  });
}

/** Run with the button disabled; a report that did not arrive is kept, and can be sent again. */
async function working(button, send) {
  button.disabled = true;
  button.textContent = news.textContent = say("sending");
  try {
    await send();
  } catch (error) {
    if (error instanceof NotSent) show(() => drawNotSent("notDelivered"));
    else if (Object.hasOwn(SHUT, error.reason ?? "")) show(() => drawNotSent(SHUT[error.reason]));
    else if (error instanceof ReportRefused) showRefused(error);
    else showBroken(error);
  }
}

/** The receipt, once the report has arrived; only now is it shown. */
function drawThanks(report, before) {
  keepCode(null);
  put(
    say(before ? "answeredTitle" : "thanksTitle"),
    paragraph(before ? "answered" : "thanks"),
    paragraph("remembersSent"),
    fold(say("whatWasSent"), exactText(report, { id: "sent", "aria-label": say("exactText") }), paragraph("everythingExplained")),
    withdrawal(report),
  );
}

/** The receipt: the id of the submission, with which it can be withdrawn. */
function withdrawal(report) {
  const problem = el("div", {}, report.withdrawn && warning(say("withdrawFailed"))); // remembered, and not confirmed by the server
  const withdraw = async () => {
    button.disabled = true;
    try {
      await client.withdraw();
      show(drawWithdrawn);
    } catch (error) {
      const published = error instanceof ReportRefused && error.reason.endsWith(" 409");
      if (!published && !(error instanceof NotSent)) return showBroken(error);
      button.disabled = published;
      problem.replaceChildren(warning(say(published ? "withdrawTooLate" : "withdrawFailed")));
    }
  };
  const confirm = () => {
    const yes = () => {
      dialog.close(); // before the page changes, as the focus goes back to the button
      withdraw();
    };
    const dialog = openDialog(say("withdrawTitle"), [
      paragraph("withdrawAsk"),
      actions(el("button", { type: "button", onclick: yes }, say("withdrawYes")), closeButton(say("withdrawNo"), { class: "plain", autofocus: true })),
    ]);
  };
  const button = plainButton(say("withdraw"), confirm);
  const receipt = fold(
    say("receiptTitle"),
    paragraph("receipt", { id: el("code", { id: "receipt" }, report.report_id) }),
    paragraph("receiptExplained"),
    problem,
    actions(button),
  );
  receipt.open = report.withdrawn === true;
  return receipt;
}

function drawWithdrawn() {
  put(say("withdrawnTitle"), paragraph("withdrawn"), paragraph("withdrawnRemembered"));
}

function drawNotSent(why) {
  const again = async () => {
    if (!(await client.deliver())) return begin(); // what was kept is gone: its data was cleared meanwhile
    const report = await client.remembered();
    return show(() => drawThanks(report, false));
  };
  const button = el("button", { type: "button", onclick: () => working(button, again) }, say("tryAgain"));
  put(say("notSentTitle"), warning(say(why), " ", say("keptHere")), actions(button));
}

function showRefused(error) {
  if (error.reason === "withdrawn") return begin().catch(showBroken); // in another tab
  const why = () => (Object.hasOwn(REFUSALS, error.reason) ? say(REFUSALS[error.reason]) : say("refusedOther", { reason: error.reason }));
  return show(() => put(say("refusedTitle"), warning(why()), paragraph("nothingCounted")));
}

function drawShut(isKept) {
  const opens = campaign.opens && speak.moment(campaign.opens);
  const end = { closed: "closed", full: "refusedFull" }[status.state];
  const when = end ? paragraph(end) : opens ? paragraph("opensAt", { time: opens }) : paragraph("notYetOpen");
  const results = status.published && el("p", {}, el("a", { href: `/published/${id}` }, say("publishedResults")));
  put(own(campaign.title), when, results, isKept && paragraph("keptForLater"));
}

// -- what went wrong ---------------------------------------------------------------------------------------------------

const BROKEN = {
  campaign: ["unknownTitle", "unknown"],
  url: ["unknownTitle", "unknown"],
  crypto: ["secureTitle", "secure"],
  storage: ["storageTitle", "storage", "storageAdvice"],
};

function showBroken(error) {
  const why = fold(say("whyFold"), el("p", { lang: "en", dir: "ltr" }, error instanceof PriorveilError ? error.message : String(error)));
  const asked = campaign?.promise[cohort]?.ldp ?? 0;
  const [title, text, advice] =
    error instanceof NotSent ? ["noConnectionTitle", "noConnection"]
    : error instanceof BudgetExceeded && asked < Infinity && asked > error.limit ? ["tooMuchTitle", "tooMuch", "tooMuchAdvice"]
    : error instanceof BudgetExceeded ? ["limitTitle", "limit", "limitAdvice"]
    : !(error instanceof PriorveilError) ? ["failedTitle", "failed"]
    : (BROKEN[error.field] ?? ["untrustedTitle", "untrusted"]);
  show(() => put(say(title), warning(say(text)), advice && paragraph(advice), !(error instanceof NotSent) && why));
}

window.addEventListener("hashchange", () => begin().catch(showBroken)); // the link of another invitation, in the same tab
begin().catch(showBroken);

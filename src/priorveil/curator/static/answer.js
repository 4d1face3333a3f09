// The respondent's page: learn who asks and why, choose, see what will be sent, send. Nothing is sent before the last step.

import { Client, NotSent, PriorveilError, ReportRefused, readNumber } from "/static/priorveil.js";
import { el, factor, labelText, moment, number, percent } from "/static/dom.js";

const HOW_TO_WRITE = "Write 1234, 1234.5 or 1234,5, without separators of thousands.";
const MANY = 20; // answers beyond which a list to pick from is easier than buttons
const LONGEST_CODE = 32; // characters; the fold-out has all of them
const NAMED = 3; // other answers that are named below the picture
const FIGURE = "a2.4 2.4 0 1 0 4.8 0a2.4 2.4 0 1 0 -4.8 0zm-1.6 12v-4.4a4 4 0 0 1 8 0v4.4z"; // a head and shoulders, as a path
const REFUSALS = {
  full: "This question has all the answers that it takes.",
  "no invitation": "Your invitation cannot be used: it has been used meanwhile, or its code is not known.",
};
// The clock of the server may be wrong, and a closed question may open again: these are not final.
const SHUT = {
  closed: "The server says that this question is closed.",
  "not yet open": "The server says that this question is not open yet.",
};
const STATUS_WAIT = 20_000; // milliseconds

const main = document.querySelector("main");
const heading = document.querySelector("h1");
const stage = document.querySelector("#stage");
const about = document.querySelector("#about");
const news = document.querySelector("#news");

const id = location.pathname.split("/").at(-1);
let client; // made when the page is loaded, and again when a code is typed in

/** Put one step on the page, and the focus on its heading, so that a screen reader begins there. */
function show(title, ...content) {
  heading.textContent = title;
  stage.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  news.textContent = "";
  heading.focus();
}

const actions = (...buttons) => el("div", { class: "actions" }, ...buttons);
const warning = (...text) => el("p", { class: "warning", role: "alert" }, ...text);

async function begin(code = codeInLink()) {
  client = new Client(`${location.origin}/v1/campaigns/${id}`, isCode(code) ? { code } : {});
  const campaign = await client.campaign();
  document.title = campaign.question;
  const status = await currentStatus(campaign);
  showAbout(campaign, status);
  const known = await client.remembered();
  if (known?.withdrawn) return showWithdrawn();
  if (known?.delivered) return showThanks(campaign, known, true);
  if (status.state !== "open") return showShut(campaign, status.state, known !== null);
  if (known !== null) return showNotSent(campaign);
  if (!(await client.invited())) return showInvitation(code);
  return showQuestion(campaign);
}

const codeInLink = () => new URLSearchParams(location.hash.slice(1)).get("code");
const isCode = (text) => /^[0-9a-f]{32}$/i.test(text ?? "");

/** Ask for the code of an invitation; say first what is wrong with the one that was given. */
function showInvitation(code) {
  const field = el("input", { type: "text", name: "code", autocomplete: "off", spellcheck: "false", required: true });
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        begin(field.value.replace(/[\s-]/g, "")).catch(showBroken);
      },
    },
    el("label", { class: "field" }, "Code of your invitation", field),
    actions(el("button", { type: "submit" }, "Continue")),
  );
  show(
    "You need an invitation",
    code === null
      ? el("p", {}, "Only people with an invitation can answer this question. Its code has 32 letters and digits.")
      : warning(
          isCode(code)
            ? "This invitation cannot be used: it has been used already, or its code is not known. "
            : "This is not the code of an invitation: it has 32 letters and digits, without spaces. ",
          "Nothing was sent but the code.",
        ),
    form,
  );
}

/** Whether the curator takes reports now; it may have closed early. Without an answer, by our own clock. */
async function currentStatus(campaign) {
  const request = { credentials: "omit", signal: AbortSignal.timeout(STATUS_WAIT) };
  const told = await fetch(`${client.url}/status`, request)
    .then((response) => (response.ok ? response.json() : null))
    .catch(() => null); // it may also break off
  return told ?? { state: campaign.state(), leans_on_prior: false };
}

function showAbout(campaign, status) {
  const lines = [
    campaign.closes && status.state !== "closed" && el("p", {}, `Answers are taken until ${moment(campaign.closes)}.`),
    campaign.keepUntil && el("p", {}, `The scrambled answers are deleted ${moment(campaign.keepUntil)}.`),
    campaign.mostReports &&
      el("p", {}, `No more than ${campaign.mostReports.toLocaleString("en")} answers are taken.`),
    campaign.admission === "invitation" && el("p", {}, "Only people with an invitation can answer, each once."),
    status.leans_on_prior &&
      el(
        "p",
        {},
        "The results of this question lean on what was assumed before it was asked, and not only on the answers.",
      ),
    campaign.contact && el("p", {}, "Contact: ", el("bdi", {}, campaign.contact)),
  ];
  about.replaceChildren(...lines.filter(Boolean));
  about.hidden = !about.hasChildNodes();
}

// -- choosing --------------------------------------------------------------------------------------------------------

/** Everything that a person should know before answering comes before the question. */
function showQuestion(campaign, chosen = {}) {
  const several = campaign.cohorts.length > 1;
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        review(campaign, form).catch(showBroken);
      },
    },
    several && picker("cohort", "Your group", campaign.cohorts, chosen.cohort, "Not scrambled: it is sent as it is."),
    el("h2", { id: "question", dir: "auto" }, campaign.question),
    answerFields(campaign, chosen),
    actions(el("button", { type: "submit" }, "Continue")),
    el("p", { class: "quiet" }, "Nothing is sent yet. The next step shows what will be sent."),
  );
  show("A question for you", introduction(campaign), form);
}

/** Who asks, why, and what happens to the answer. */
function introduction({ askedBy, purpose, plans }) {
  const risk = Object.values(plans).map(exposure).find(Boolean);
  return el(
    "dl",
    { class: "introduction" },
    line("Who asks", el("bdi", {}, askedBy || `The people who run ${location.host}`)),
    line("Why", el("bdi", {}, purpose || "To learn how common each answer is")),
    line(
      "Your answer",
      "It is scrambled on this device before it is sent. ",
      risk ?? "Nobody else sees which answer you choose.",
    ),
  );
}

/** What the scrambling does not protect, in words; null where every report can come from every answer. */
function exposure({ protects, levels }) {
  if (protects === "secret")
    return "That protects a secret behind your answer, not the answer itself: what is sent can give the answer away.";
  return levels.ldp < Infinity
    ? null
    : "That protects your answer only in part: what is sent can rule out other answers.";
}

const line = (name, ...content) => el("div", {}, el("dt", {}, name), el("dd", {}, ...content));

/** A field for a number, the answers to choose from, or a field for each attribute if one of them is a number. */
function answerFields(campaign, { code, value }) {
  const { labels, numbers } = campaign;
  if (hasFields(campaign))
    return campaign.attributes.map((part, i) =>
      part.numbers === null
        ? picker(`answer-${i}`, part.name, part.labels, part.labels.indexOf(value?.[i]))
        : numberField(`answer-${i}`, part.name, part.numbers.bounds, value?.[i]),
    );
  if (numbers !== null) return numberField("answer", "Your answer", numbers.bounds, value);
  return labels.length > MANY ? picker("answer", "Your answer", labels, code) : buttons(labels, code);
}

const hasFields = ({ attributes }) => attributes?.some(({ numbers }) => numbers !== null) ?? false;

function numberField(name, title, bounds, value) {
  const range = `A number from ${bounds[0]} to ${bounds.at(-1)}. A number outside this range counts as the nearer end.`;
  // Not of type number: browsers drop a comma that is not the decimal mark of their language, and 12,5 becomes 125.
  const inputmode = bounds[0] < 0 ? "text" : "decimal"; // some keyboards for decimals have no minus
  const attributes = { type: "text", inputmode, autocomplete: "off", name, required: true };
  const field = el("input", {
    ...attributes,
    "aria-describedby": `${name}-hint`,
    value: value === undefined ? "" : typedAgain(value),
    oninput: () => field.setCustomValidity(problemWith(field.value)),
  });
  return [
    el("label", { class: "field" }, title, field),
    el("p", { class: "hint", id: `${name}-hint` }, range),
  ];
}

/** What is wrong with a number as it was typed, in a sentence; empty if nothing is, or nothing was typed. */
function problemWith(typed) {
  try {
    if (typed.trim() !== "") readNumber(typed);
    return "";
  } catch (error) {
    return `This is ${error.message.includes("ambiguous") ? "ambiguous" : "not a number"}. ${HOW_TO_WRITE}`;
  }
}

/** A number as a person may type it: 1.234 would be ambiguous, 1.2340 is not. */
const typedAgain = (value) => (problemWith(String(value)) ? `${value}0` : String(value));

function buttons(labels, code) {
  const choices = labels.map((label, i) =>
    el(
      "label",
      { class: "choice" },
      el("input", { type: "radio", name: "answer", value: i, required: true, checked: i === code }),
      el("bdi", {}, labelText(label)),
    ),
  );
  return el("fieldset", { "aria-labelledby": "question" }, ...choices);
}

function picker(name, title, labels, code, hint) {
  const options = labels.map((label, i) =>
    el("option", { value: i, selected: i === code, dir: "auto" }, labelText(label)),
  );
  const described = hint && `${name}-hint`;
  return [
    el(
      "label",
      { class: "field" },
      title,
      el(
        "select",
        { name, required: true, "aria-describedby": described },
        el("option", { value: "" }, "Choose…"),
        ...options,
      ),
    ),
    hint && el("p", { class: "hint", id: described }, hint),
  ];
}

async function review(campaign, form) {
  const data = new FormData(form);
  const cohort = data.get("cohort") === null ? 0 : Number(data.get("cohort"));
  const chosen = ({ labels, numbers }, name) => (numbers === null ? labels[data.get(name)] : readNumber(data.get(name)));
  const value = hasFields(campaign)
    ? campaign.attributes.map((part, i) => chosen(part, `answer-${i}`))
    : chosen(campaign, "answer");
  const group = campaign.cohorts[cohort];
  const [report, plan] = [await client.prepare(value, group), campaign.planFor(group)];
  showReview(campaign, plan, report, { value, code: nearestCode(plan, value), cohort });
}

/** The code of an answer; of a number on a grid, that of the point next to it. */
function nearestCode(plan, value) {
  const drawn = plan.code(value); // right but for the points of grids
  const onGrid = (plan.attributes ?? [plan]).map(({ numbers }) => numbers?.kind === "grid");
  const [given, own] = [[value].flat(), [plan.labels[drawn]].flat()];
  const distance = (label) =>
    [label]
      .flat()
      .reduce((sum, level, i) => sum + (onGrid[i] ? Math.abs(level - given[i]) : level === own[i] ? 0 : Infinity), 0);
  const distances = plan.labels.map(distance);
  return distances.indexOf(Math.min(...distances));
}

/** The name of an answer. */
function nameOf(plan, code) {
  const levels = [plan.labels[code]].flat();
  const parts = plan.attributes ?? [plan];
  return levels
    .map((level, i) => `${parts[i]?.numbers?.kind === "grid" ? "near " : ""}${labelText(level)}`)
    .join(", ");
}

// -- seeing what leaves ------------------------------------------------------------------------------------------------

function showReview(campaign, plan, report, chosen) {
  const send = el("button", { type: "button", onclick: () => deliver(campaign, plan, chosen, send) }, "Send");
  const back = el(
    "button",
    { type: "button", class: "plain", onclick: () => showQuestion(campaign, chosen) },
    "Change my answer",
  );
  const [shares, several] = [plan.posterior(report.report), campaign.cohorts.length > 1];
  show(
    "Your answer is scrambled",
    el(
      "dl",
      { class: "leaving" },
      line("You chose", el("bdi", {}, labelText(chosen.value))),
      line(
        "What is sent",
        el("code", { class: "report" }, shortened(String(report.report))),
        exposure(plan) === null && el("small", {}, " a code that stands for no single answer"),
      ),
      several &&
        line(
          "Your group",
          el("bdi", {}, campaign.cohorts[chosen.cohort]),
          el("small", {}, " sent as it is, not scrambled"),
        ),
    ),
    knowsShares(plan) ? crowd(plan, shares, chosen.code, several) : noCrowd(plan),
    actions(send, back),
    everything(report),
    details(campaign, plan, shares),
  );
}

const shortened = (code) => (code.length > LONGEST_CODE ? `${code.slice(0, LONGEST_CODE)}…` : code);

/** Whether it is known how common the answers are. A prior that was only assumed, or a set of priors, gives no figures of people. */
const knowsShares = ({ prior, priorAssumed }) => prior !== null && !priorAssumed;

/** What the report tells about this person where nobody knows how common the answers are: what holds for everybody. */
function noCrowd(plan) {
  const { ldp } = plan.levels;
  return el(
    "figure",
    {},
    ldp < Infinity &&
      el(
        "p",
        {},
        `Take any two answers. What is sent makes one at most ${factor(ldp)} times likelier, compared with the other, than it was ` +
          "before, whatever is known about you.",
      ),
    nothingProven(plan),
  );
}

const nothingProven = (plan) =>
  exposure(plan) === null
    ? el("p", {}, "Whatever you choose, this device may send exactly this. It never proves what you chose.")
    : warning("Your answer is scrambled. ", exposure(plan));

/** What the report tells about this person: of 100 people who send it, how many chose the same, and what the others chose. */
function crowd(plan, shares, code, several) {
  const counts = outOf100(shares);
  const label = (x) => ["“", el("bdi", {}, nameOf(plan, x)), "”"];
  const others = [...counts.keys()].filter((x) => x !== code).sort((a, b) => shares[b] - shares[a]);
  const named = others.slice(0, others.length > NAMED + 1 ? NAMED : NAMED + 1);
  const rest = others.slice(named.length);
  const parts = named.map((x) => [inWords(shares[x], counts[x]), " ", label(x)]);
  if (rest.length > 0) {
    const share = rest.reduce((total, x) => total + shares[x], 0);
    const count = rest.reduce((total, x) => total + counts[x], 0);
    parts.push([inWords(share, count), " something else"]);
  }
  return el(
    "figure",
    {},
    el(
      "figcaption",
      {},
      "Of 100 people who send this, ",
      el("strong", {}, inWords(shares[code], counts[code], "about "), " answered ", label(code)),
      ", as you did.",
    ),
    people(counts[code]),
    others.length > 0 &&
      el("p", {}, "The others answered: ", ...parts.flatMap((part, i) => (i > 0 ? [", ", part] : [part])), "."),
    el(
      "p",
      {},
      `Of 100 people in ${several ? "your group" : "general"}, `,
      inWords(plan.prior[code], outOf100(plan.prior)[code], "about "),
      " would answer as you did.",
    ),
    nothingProven(plan),
  );
}

/** A count of 100 people in words: shares that round to nobody or to everybody are neither. */
function inWords(share, count, word = "") {
  if (share === 0 || share === 1) return String(count);
  if (share < 0.005) return "fewer than 1";
  return share > 0.995 ? "more than 99" : `${word}${count}`;
}

/** Shares as whole numbers that add up to 100: the largest remainders are rounded up. */
function outOf100(shares) {
  const counts = shares.map((share) => Math.floor(100 * share));
  const missing = 100 - counts.reduce((a, b) => a + b, 0);
  const byRemainder = [...shares.keys()].sort((a, b) => 100 * shares[b] - counts[b] - (100 * shares[a] - counts[a]));
  for (const x of byRemainder.slice(0, missing)) counts[x] += 1;
  return counts;
}

/** A hundred little figures, the first `count` of them filled. */
function people(count) {
  const place = (i) => `M${(i % 20) * 11 + 3.1} ${Math.floor(i / 20) * 18 + 4}`;
  const figures = Array.from({ length: 100 }, (_, i) => place(i) + FIGURE);
  return el(
    "svg",
    { class: "people", viewBox: "0 0 220 90", role: "img", "aria-label": `A hundred figures, ${count} of them filled` },
    el("path", { class: "other", d: figures.slice(count).join("") }),
    el("path", { class: "same", d: figures.slice(0, count).join("") }),
  );
}

function everything(report) {
  return el(
    "details",
    {},
    el("summary", {}, "Everything that is sent"),
    el("pre", { id: "leaving", tabindex: "0", "aria-label": "The exact text" }, JSON.stringify(report)),
    el(
      "p",
      {},
      "The report is the scrambled answer. The id is random and used only once, so that the report is counted once. The plan names " +
        "the public rules of the scrambling, and with them your group if there are several. The server keeps these three and " +
        "nothing else. If you have an invitation, its code is sent with them. The server deletes the code, and does not keep which answer it came " +
        "with. As with any page, your network address is seen while you are connected; it is not kept.",
    ),
  );
}

function details(campaign, plan, shares) {
  const { lip, ldp } = plan.levels;
  const whole = plan.proof === "budget" ? "the plan's certificate" : "the level for any prior knowledge";
  return el(
    "details",
    {},
    el("summary", {}, "For the curious"),
    knowsShares(plan) && plan.labels.length <= MANY && comparison(plan, shares),
    ldp < Infinity &&
      el(
        "p",
        {},
        `Take any two answers. The report changes how many times likelier one is than the other by a factor of ${factor(ldp)} at most, whatever is known about you already.`,
      ),
    lip < ldp &&
      el(
        "p",
        {},
        plan.priorAssumed ? "The plan assumes how common the answers are; nobody knows it. Only if that is right: for " : "For ",
        `someone who knows only what is generally known, it changes the belief in any ${plan.protects === "secret" ? "secret behind the answer" : "answer"} by a factor of ${factor(lip)} at most.`,
      ),
    el(
      "p",
      {},
      `This device checked that the question and its plan are what their ids say, and proved ${whole} again.`,
    ),
    el(
      "p",
      {},
      plan.priorAssumed
        ? `Local differential privacy ${number(ldp)}; local information privacy ${number(lip)}, only if the assumed prior is right `
        : `Local information privacy ${number(lip)}, local differential privacy ${number(ldp)} `,
      "(natural logarithms of the factors above).",
    ),
    el("p", {}, "Campaign ", el("code", {}, campaign.id)),
    el("p", {}, "Plan ", el("code", {}, plan.id)),
  );
}

/** Each answer among all people and among those who send this report. */
function comparison(plan, shares) {
  const rows = shares.map((share, x) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("bdi", {}, nameOf(plan, x))),
      el("td", { class: "figure" }, percent(plan.prior[x])),
      el("td", { class: "figure" }, percent(share)),
    ),
  );
  const column = (text) => el("th", { scope: "col", class: "figure" }, text);
  return el(
    "table",
    { class: "comparison" },
    el("caption", {}, "If answers are as common as the plan says"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Answer"),
        column("Among all people"),
        column("Among those who send this"),
      ),
    ),
    el("tbody", {}, ...rows),
  );
}

// -- sending -----------------------------------------------------------------------------------------------------------

async function deliver(campaign, plan, chosen, button) {
  await working(
    button,
    async () => {
      const { report, replayed } = await client.answer(chosen.value, campaign.cohorts[chosen.cohort]);
      showThanks(campaign, report, replayed); // another tab may have been first
    },
    campaign,
  );
}

/** Run with the button disabled; a report that did not arrive is kept, and can be sent again. */
async function working(button, send, campaign) {
  button.disabled = true;
  button.textContent = news.textContent = "Sending…";
  try {
    await send();
  } catch (error) {
    if (error instanceof NotSent) showNotSent(campaign);
    else if (Object.hasOwn(SHUT, error.reason ?? "")) showNotSent(campaign, SHUT[error.reason]);
    else if (error instanceof ReportRefused) showRefused(error);
    else showBroken(error);
  }
}

function showThanks(campaign, report, before) {
  show(
    before ? "You have answered this question" : "Thank you",
    el(
      "p",
      {},
      before
        ? "A scrambled answer from this browser has arrived. Answering again would only send the same, so there is nothing more to do."
        : "Your scrambled answer has arrived.",
    ),
    el(
      "p",
      {},
      "This browser remembers what was sent, not what you chose. If you are asked again here, it sends the same, so that nobody learns more about you.",
    ),
    el(
      "details",
      {},
      el("summary", {}, "What was sent"),
      el(
        "pre",
        { tabindex: "0", "aria-label": "The exact text that was sent" },
        JSON.stringify({ report_id: report.report_id, plan: report.plan, report: report.report }),
      ),
    ),
    withdrawal(report),
  );
}

/** The receipt: the id of the report, with which it can be withdrawn. */
function withdrawal(report) {
  const button = el(
    "button",
    {
      type: "button",
      class: "plain",
      onclick: async () => {
        button.disabled = true;
        try {
          await client.withdraw();
          showWithdrawn();
        } catch (error) {
          if (!(error instanceof NotSent)) return showBroken(error);
          button.disabled = false;
          problem.replaceChildren(warning("The server could not be reached, so your answer is still there. Please try again."));
        }
      },
    },
    "Withdraw my answer",
  );
  const problem = el("div", {});
  return el(
    "details",
    {},
    el("summary", {}, "Your receipt, and how to withdraw"),
    el("p", {}, "The id of what was sent is ", el("code", { id: "receipt" }, report.report_id), "."),
    el(
      "p",
      {},
      "Only you know it. Whoever has it can have your scrambled answer removed: from the server and from the counts, not from results that were " +
        "seen before. This browser will not send an answer to this question again.",
    ),
    problem,
    actions(button),
  );
}

function showWithdrawn() {
  show(
    "Your answer is withdrawn",
    el("p", {}, "The server has removed it, and it is not counted any more."),
    el("p", {}, "This browser remembers what was sent, so that it does not send another answer from which more could be learnt."),
  );
}

function showNotSent(campaign, why = "Your scrambled answer could not be delivered.") {
  const button = el(
    "button",
    {
      type: "button",
      onclick: () =>
        working(
          button,
          async () => {
            if (!(await client.deliver())) return begin(); // what was kept is gone: its data was cleared meanwhile
            return showThanks(campaign, await client.remembered(), false);
          },
          campaign,
        ),
    },
    "Try again",
  );
  show(
    "Not sent yet",
    warning(`${why} Your scrambled answer is kept in this browser, and trying again sends the same.`),
    actions(button),
  );
}

function showRefused(error) {
  if (error.reason === "withdrawn") return showWithdrawn();
  return show(
    "Your answer was not accepted",
    warning(REFUSALS[error.reason] ?? `The server refused it: ${error.reason}.`),
    el("p", {}, "Nothing was counted."),
  );
}

function showShut(campaign, state, kept) {
  const when =
    state === "closed"
      ? "This question is closed. Thank you for your interest."
      : `This question is not open yet${campaign.opens ? `. It opens ${moment(campaign.opens)}` : ""}.`;
  show(
    campaign.question,
    el("p", {}, when),
    kept && el("p", {}, "Your scrambled answer has not arrived. It is kept in this browser: load this page again later."),
  );
}

function showBroken(error) {
  if (error instanceof NotSent)
    return show("No connection", warning("The question could not be fetched. Please try again later."));
  if (error.field === "campaign" || error.field === "url")
    return show("There is no such question", el("p", {}, "Please check the link that you were given."));
  if (error.field === "crypto")
    return show(
      "This page needs a secure connection",
      warning("Browsers allow the checks and the scrambling over https only. Nothing was sent."),
    );
  if (error.field === "storage")
    return show(
      "You cannot answer in this browser",
      warning(
        "A scrambled answer is sent only once this browser remembers it: a second, different one would tell more about you. " +
          "The page could not store it here, or not read what is stored, so nothing was sent.",
      ),
      el("p", {}, "Let your browser store data of this site (cookies and site data), or open the link in another one."),
      el("details", {}, el("summary", {}, "Why"), el("p", {}, error.message)),
    );
  if (!(error instanceof PriorveilError))
    return show(
      "This page has failed",
      warning(
        "Something unexpected happened. Please load the page again, or open the link in another browser.",
      ),
      el("details", {}, el("summary", {}, "Why"), el("p", {}, String(error))),
    );
  return show(
    "This question cannot be trusted",
    warning("It does not pass the checks of this page, so nothing was sent."),
    el("details", {}, el("summary", {}, "Why"), el("p", {}, error.message)),
  );
}

window.addEventListener("hashchange", () => begin().catch(showBroken)); // the link of another invitation, in the same tab
begin().catch(showBroken);

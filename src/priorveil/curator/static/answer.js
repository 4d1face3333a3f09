// The respondent's page: choose, see exactly what would leave, send. Nothing is sent before the last step.

import { Client, PriorveilError, ReportRefused, Undelivered } from "/static/priorveil.js";
import { el, factor, moment, number, percent } from "/static/dom.js";

const MANY = 20; // answers beyond which a list to pick from is easier than buttons
const STATUS_WAIT = 20_000; // milliseconds

const main = document.querySelector("main");
const heading = document.querySelector("#question");
const stage = document.querySelector("#stage");
const about = document.querySelector("#about");
const news = document.querySelector("#news");

const id = location.pathname.split("/").at(-1);
const client = new Client(`${location.origin}/v1/campaigns/${id}`);

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

async function begin() {
  const campaign = await client.campaign();
  document.title = campaign.question;
  const status = await currentStatus(campaign);
  showAbout(campaign, status);
  const known = await client.remembered();
  if (known?.delivered) return showThanks(campaign, known, true);
  if (status.state !== "open") return showShut(campaign, status.state);
  if (known !== null) return showUndelivered(campaign);
  return showQuestion(campaign);
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
    campaign.closes &&
      status.state !== "closed" &&
      el("p", {}, `Answers are taken until ${moment(campaign.closes)}.`),
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

function showQuestion(campaign, chosen = {}) {
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        review(campaign, form).catch(showBroken);
      },
    },
    campaign.cohorts.length > 1 && picker("cohort", "Your group", campaign.cohorts, chosen.cohort),
    campaign.labels.length > MANY
      ? picker("answer", "Your answer", campaign.labels, chosen.code)
      : buttons(campaign.labels, chosen.code),
    actions(el("button", { type: "submit" }, "Continue")),
    el("p", { class: "quiet" }, "Nothing is sent yet. On the next step you see exactly what would leave this device."),
  );
  show(campaign.question, form);
}

function buttons(labels, code) {
  const choices = labels.map((label, i) =>
    el(
      "label",
      { class: "choice" },
      el("input", { type: "radio", name: "answer", value: i, required: true, checked: i === code }),
      el("bdi", {}, String(label)),
    ),
  );
  return el("fieldset", { "aria-labelledby": "question" }, ...choices);
}

function picker(name, title, labels, code) {
  const options = labels.map((label, i) => el("option", { value: i, selected: i === code, dir: "auto" }, String(label)));
  return el(
    "label",
    { class: "field" },
    title,
    el("select", { name, required: true }, el("option", { value: "" }, "Choose…"), ...options),
  );
}

async function review(campaign, form) {
  const data = new FormData(form);
  const code = Number(data.get("answer"));
  const cohort = data.get("cohort") === null ? 0 : Number(data.get("cohort"));
  const [value, group] = [campaign.labels[code], campaign.cohorts[cohort]];
  const report = await client.prepare(value, group);
  showReview(campaign, campaign.planFor(group), report, { code, cohort });
}

// -- seeing what leaves ------------------------------------------------------------------------------------------------

function showReview(campaign, plan, report, chosen) {
  const send = el(
    "button",
    { type: "button", onclick: () => deliver(campaign, plan, chosen, send) },
    "Send this report",
  );
  const back = el(
    "button",
    { type: "button", class: "plain", onclick: () => showQuestion(campaign, chosen) },
    "Change my answer",
  );
  show(
    "Before anything leaves",
    promise(plan),
    sent(report, campaign.cohorts.length > 1 ? campaign.cohorts[chosen.cohort] : null),
    likely(plan, report.report),
    actions(send, back),
    details(campaign, plan),
  );
}

/** How deniable a report is, in words, and only what was proven on this device. */
function promise(plan) {
  const { lip, ldp } = plan.levels;
  if (ldp === Infinity) {
    return warning(
      "What is protected here is a secret behind your answer, not the answer itself: some reports can come from one " +
        `answer only. A report changes what can be believed about the secret by a factor of ${factor(lip)} at most.`,
    );
  }
  const odds = el("strong", {}, `a factor of ${factor(ldp)}`);
  return el(
    "div",
    { class: "promise" },
    el(
      "p",
      {},
      "Your answer was perturbed on this device. Whatever you answered, this report could have come from any answer; it moves the odds " +
        "between any two answers by at most ",
      odds,
      ", whatever is known about you already.",
    ),
    lip < ldp &&
      el(
        "p",
        {},
        `For someone who knows only what is generally known, it changes the belief in any ${plan.protects === "secret" ? "secret behind the answer" : "answer"} by a factor of ${factor(lip)} at most.`,
      ),
  );
}

/** All that leaves. A plan belongs to one group: where there are several, it tells the group as it is. */
function sent(report, group) {
  const line = (name, value, look) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, look ? el("span", { class: look }, value) : el("code", {}, value)));
  return [
    el("h2", {}, "This is all that will be sent"),
    el(
      "dl",
      { class: "leaving" },
      line("Report", String(report.report), String(report.report).length < 20 && "report"),
      line("Random id", report.id),
      line("Plan", report.plan),
    ),
    el(
      "p",
      { class: "quiet" },
      "The id is made for this report alone; the plan names the public rules by which it was perturbed. The curator's software keeps these three lines and nothing " +
        "else, no network address either; as with any page, your address is seen while you are connected.",
    ),
    group !== null &&
      el(
        "p",
        { id: "group" },
        "The plan also tells your group, ",
        el("strong", {}, el("bdi", {}, String(group))),
        ": that is not perturbed. Only your answer is.",
      ),
    el(
      "details",
      {},
      el("summary", {}, "The exact text"),
      el("pre", { id: "leaving", tabindex: "0", "aria-label": "The report" }, JSON.stringify(report)),
    ),
  ];
}

/** For every answer, how readily it would have made this very report: the evidence that this report is. */
function likely(plan, report) {
  const each = plan.likelihoods(report);
  const top = Math.max(...each);
  const caption =
    "How readily each answer makes this very report, compared with the answer that makes it most readily.";
  if (each.length > MANY) {
    const possible = each.filter((chance) => chance > 0);
    const least = percent(Math.min(...possible) / top, 1);
    return [
      el("h2", {}, "What it could mean"),
      el(
        "p",
        {},
        `${number(possible.length)} of the ${number(each.length)} answers can make this report; the one that makes it least readily does so ${least} as readily as the one that makes it most readily.`,
      ),
    ];
  }
  const rows = each.map((chance, x) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("bdi", {}, String(plan.labels[x]))),
      el("td", { class: "picture" }, bar(chance / top)),
      el("td", { class: "figure" }, percent(chance / top, 0)),
    ),
  );
  return [
    el("h2", {}, "What it could mean"),
    el(
      "table",
      { class: "likely" },
      el("caption", {}, caption),
      el(
        "thead",
        { class: "unseen" },
        el("tr", {}, el("th", { scope: "col" }, "Answer"), el("td", {}), el("th", { scope: "col" }, "How readily")),
      ),
      el("tbody", {}, ...rows),
    ),
  ];
}

const bar = (share) =>
  el(
    "svg",
    { "aria-hidden": "true" },
    el("rect", { class: "track", x: 0, y: "30%", width: "100%", height: "40%", rx: 3 }),
    el("rect", { class: "told", x: 0, y: "30%", width: `${100 * share}%`, height: "40%", rx: 3 }),
  );

function details(campaign, plan) {
  const proven =
    plan.proof === "budget"
      ? "This device checked that the question and its plan are what their ids say, and proved the plan's certificate again."
      : "This device checked that the question and its plan are what their ids say, and proved the level for any prior knowledge again.";
  return el(
    "details",
    {},
    el("summary", {}, "How this was checked"),
    el("p", {}, proven),
    el(
      "p",
      {},
      `Local information privacy ${number(plan.levels.lip)}, local differential privacy ${number(plan.levels.ldp)} (natural logarithms of the factors above).`,
    ),
    el("p", {}, "Campaign ", el("code", {}, campaign.id)),
    el("p", {}, "Plan ", el("code", {}, plan.id)),
  );
}

// -- sending -----------------------------------------------------------------------------------------------------------

async function deliver(campaign, plan, chosen, button) {
  await working(
    button,
    async () => {
      const { report, replayed } = await client.answer(campaign.labels[chosen.code], campaign.cohorts[chosen.cohort]);
      showThanks(campaign, report, replayed); // another tab may have been first
    },
    campaign,
  );
}

/** Run while the button is off; a report that did not arrive is kept, and offered again. */
async function working(button, send, campaign) {
  button.disabled = true;
  button.textContent = news.textContent = "Sending…";
  try {
    await send();
  } catch (error) {
    if (error instanceof ReportRefused) showRefused(error);
    else if (error instanceof Undelivered) showUndelivered(campaign);
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
        ? "A report from this browser has arrived. Answering again would only send the same report, so there is nothing more to do."
        : "Your report has arrived.",
    ),
    el(
      "p",
      {},
      "This browser remembers the report, not your answer. Should you be asked again here, it sends the same report, so that nobody learns more about you.",
    ),
    el(
      "details",
      {},
      el("summary", {}, "What was sent"),
      el(
        "pre",
        { tabindex: "0", "aria-label": "The report that was sent" },
        JSON.stringify({ id: report.id, plan: report.plan, report: report.report }),
      ),
    ),
  );
}

function showUndelivered(campaign) {
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
    warning("Your report could not be delivered. It is kept in this browser, and trying again sends the same report."),
    actions(button),
  );
}

function showRefused(error) {
  show(
    "The report was not taken",
    warning(`The curator refused it: ${error.reason}.`),
    el("p", {}, "Nothing was counted."),
  );
}

function showShut(campaign, state) {
  const when =
    state === "closed"
      ? "This question is closed. Thank you for your interest."
      : `This question is not open yet${campaign.opens ? `. It opens ${moment(campaign.opens)}` : ""}.`;
  show(campaign.question, el("p", {}, when));
}

function showBroken(error) {
  if (error instanceof Undelivered)
    return show("No connection", warning("The question could not be fetched. Please try again later."));
  if (error.field === "campaign" || error.field === "url")
    return show("There is no such question", el("p", {}, "Please check the link that you were given."));
  if (error.field === "crypto")
    return show(
      "This page needs a secure connection",
      warning("Browsers let a page check and perturb only over https. Nothing was sent."),
    );
  if (error.field === "storage")
    return show(
      "You cannot answer in this browser",
      warning(
        "A report is sent only once this browser remembers it: a second, different one would tell more about you. " +
          "The page could not store it here, or not read what is stored, so nothing was sent.",
      ),
      el("p", {}, "Let your browser store data of this site (cookies and site data), or open the link in another one."),
      el("details", {}, el("summary", {}, "Why"), el("p", {}, error.message)),
    );
  if (!(error instanceof PriorveilError))
    return show(
      "This page has failed",
      warning("Something happened that was not foreseen. Please load the page again, or open the link in another browser."),
      el("details", {}, el("summary", {}, "Why"), el("p", {}, String(error))),
    );
  return show(
    "This question cannot be trusted",
    warning("It does not pass the checks of this page, so nothing was sent."),
    el("details", {}, el("summary", {}, "Why"), el("p", {}, error.message)),
  );
}

begin().catch(showBroken);

// The curator's dashboard: sign in, choose a campaign, watch its estimates.

import { badge, campaignList, closing, sharing } from "/static/campaigns.js";
import { SignedOut, ask, forget, read, signIn, signedIn } from "/static/curator.js";
import { el, factor, number } from "/static/dom.js";
import { histogram, widest } from "/static/histogram.js";

const EVERY = 4000; // milliseconds between looks at the counts
const METHODS = {
  auto: "chosen by the query",
  unbiased: "unbiased",
  mmse: "mmse (trusts the prior)",
  mle: "most likely distribution",
};

const main = document.querySelector("#main");
const news = document.querySelector("#news");
const leave = document.querySelector("#leave");
let openCampaign = null; // the campaign on the page: { id, method, cohort, lastText, timer }
let again = 0; // the timer of a list that could not be read

leave.addEventListener("click", () => signOut());
addEventListener("hashchange", () => route());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && openCampaign) refresh(openCampaign);
});

const say = (text) => {
  news.textContent = text;
};

function put(...content) {
  main.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.querySelector("h1")?.focus();
}

function route() {
  stop();
  const id = location.hash.slice(1);
  leave.hidden = !signedIn();
  if (leave.hidden) return showSignIn();
  return showErrors(() => (/^[0-9a-f]{64}$/.test(id) ? watch(id) : showCampaigns()));
}

/** Run; an invalid token leads back to signing in, any other error is shown. */
async function showErrors(run) {
  try {
    await run();
  } catch (error) {
    if (error instanceof SignedOut) signOut("This token is not known here.");
    else trouble(error);
  }
}

function trouble(error) {
  const text = error instanceof TypeError ? "The curator cannot be reached; trying again." : error.message;
  let box = main.querySelector("#trouble");
  if (box === null) main.prepend((box = el("p", { id: "trouble", class: "warning", role: "alert" })));
  if (box.textContent !== text) box.textContent = text;
  if (openCampaign?.lastText === null) main.querySelector("#question").textContent = "Nothing to show yet";
}

function signOut(why) {
  forget();
  stop();
  leave.hidden = true;
  showSignIn(why);
}

function stop() {
  clearTimeout(openCampaign?.timer);
  clearTimeout(again);
  openCampaign = null;
}

// -- signing in and choosing -------------------------------------------------------------------------------------------

function showSignIn(why) {
  document.title = "Dashboard · priorveil";
  const field = el("input", {
    type: "password",
    name: "token",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "kept",
  });
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        signIn(field.value.trim());
        route();
      },
    },
    el("label", { class: "field" }, "Curator token", field),
    el("p", { id: "kept", class: "quiet" }, "It is kept in this tab only and forgotten when the tab is closed."),
    el("button", { type: "submit" }, "Sign in"),
  );
  put(el("h1", { tabindex: "-1" }, "Sign in"), why && el("p", { class: "warning", role: "alert" }, why), form);
  field.focus();
}

/** The list of campaigns. The old page is cleared at once, and a list that cannot be read is fetched again. */
async function showCampaigns() {
  document.title = "Campaigns · priorveil";
  put(el("h1", { tabindex: "-1" }, "Campaigns"), el("p", {}, "One moment…"));
  await listed(location.hash);
}

async function listed(place) {
  try {
    const list = await campaignList(showErrors, say);
    if (location.hash === place && signedIn()) put(list);
  } catch (error) {
    if (location.hash !== place) return;
    again = setTimeout(() => showErrors(() => listed(place)), EVERY);
    throw error;
  }
}

// -- watching one campaign -----------------------------------------------------------------------------------------------

async function watch(id) {
  openCampaign = { id, method: "auto", cohort: "", lastText: null, timer: 0 };
  put(
    el("p", {}, el("a", { href: "#" }, "All campaigns")),
    el("h1", { tabindex: "-1", id: "question", dir: "auto" }, "One moment…"),
    el("div", { id: "live" }),
  );
  await refresh(openCampaign);
}

/** Look again, and again later while this campaign is on the page and the page can be seen. */
async function refresh(view) {
  clearTimeout(view.timer);
  await showErrors(async () => {
    const [estimates, counters] = await Promise.all([
      read(`/${view.id}/estimates?method=${view.method}`),
      read(`/${view.id}/counters`),
    ]);
    if (openCampaign !== view) return;
    main.querySelector("#trouble")?.remove();
    draw(view, estimates, counters);
  });
  if (openCampaign === view && !document.hidden) view.timer = setTimeout(() => refresh(view), EVERY);
}

function draw(view, estimates, counters) {
  const text = JSON.stringify([estimates, counters, view.method, view.cohort]);
  if (text === view.lastText) return;
  const fresh = view.lastText === null;
  view.lastText = text;
  const focused = document.activeElement?.id;
  const came = `${number(estimates.reports)} ${estimates.reports === 1 ? "report" : "reports"}`;
  document.title = `${came} · ${estimates.question}`;
  main.querySelector("#question").textContent = estimates.question;
  main.querySelector("#live").replaceChildren(...sections(view, estimates, counters).flat(Infinity).filter(Boolean));
  if (focused) document.getElementById(focused)?.focus();
  if (!fresh) say(came);
}

function sections(view, estimates, counters) {
  const several = estimates.cohorts.length > 1;
  const all = several
    ? estimates.total && { ...estimates.total, prior: mixed(estimates.cohorts), cohort: "all" }
    : null;
  const chosen = estimates.cohorts.find((c) => c.cohort === view.cohort) ?? (several ? all : estimates.cohorts[0]);
  const leans = view.method === "auto" ? estimates.leans_on_prior : view.method === "mmse";
  const shown = estimates.cohorts.filter((c) => view.cohort === "" || c === chosen);
  return [
    warnings(shown, several, leans),
    facts(estimates, counters),
    controls(view, estimates, several),
    chosen === null || chosen.withheld ? withheld(estimates) : results(estimates, chosen),
    planned(shown, several),
    privacy(estimates),
    refused(counters),
    sharing(view.id, estimates.state, say),
    downloads(view),
    estimates.state !== "closed" && closing(view.id, showErrors, () => refresh(view)),
  ];
}

/** The prior of everyone together, by how many of each cohort reported. */
function mixed(cohorts) {
  const total = cohorts.reduce((n, c) => n + c.reports, 0);
  return cohorts[0].prior.map((_, x) =>
    cohorts.reduce((sum, c) => sum + (c.prior[x] * c.reports) / Math.max(total, 1), 0),
  );
}

/** What must be known before a number is read: a prior that the reports contradict, or one that nothing corrects. */
function warnings(cohorts, several, leans) {
  const contradicted = cohorts
    .filter((c) => c.warning)
    .map((c) => el("p", { class: "warning" }, several && el("strong", {}, el("bdi", {}, c.cohort), ": "), c.warning));
  if (contradicted.length > 0 || !leans) return contradicted;
  const text = "These estimates lean on the prior: more reports do not correct a wrong one.";
  return el("p", { class: "warning" }, text);
}

function facts(estimates, counters) {
  const lost = Object.values(counters.refused).reduce((a, b) => a + b, 0);
  const worst = (name) => Math.max(...estimates.cohorts.map((c) => c.privacy[name] ?? Infinity));
  const fact = (name, value, note) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
  return el(
    "dl",
    { class: "facts" },
    fact("Reports", el("span", { id: "reports" }, number(estimates.reports)), badge(estimates.state)),
    fact("Refused", number(lost)),
    fact("Privacy (LIP)", level(worst("lip")), `a belief moves by a factor of ${factor(worst("lip"))} at most`),
    fact("Privacy (LDP)", level(worst("ldp")), `whatever is known: a factor of ${factor(worst("ldp"))} at most`),
  );
}

const level = (value) => (value === Infinity ? "none" : (Math.ceil(value * 1000 - 1e-6) / 1000).toLocaleString("en")); // rounded up

/** The available methods: where reports alone do not determine the answer, only those that trust the prior. */
function methods({ cohorts }) {
  const free = cohorts.every((c) => c.identifiable);
  return Object.entries(METHODS).filter(([name]) => free || name === "auto" || name === "mmse");
}

function controls(view, estimates, several) {
  const select = (id, title, options, current, change) =>
    el(
      "label",
      { class: "field" },
      title,
      el(
        "select",
        {
          id,
          onchange: (event) => {
            change(event.target.value);
            refresh(view);
          },
        },
        ...options.map(([value, text]) => el("option", { value, selected: value === current }, text)),
      ),
    );
  return el(
    "div",
    { class: "controls" },
    select("method", "Method", methods(estimates), view.method, (value) => {
      view.method = value;
    }),
    several &&
      select(
        "cohort",
        "Cohort",
        [["", "all together"], ...estimates.cohorts.map((c) => [c.cohort, c.cohort])],
        view.cohort,
        (value) => {
          view.cohort = value;
        },
      ),
  );
}

function withheld(estimates) {
  return [
    el("h2", {}, "Estimates"),
    el(
      "p",
      { id: "withheld" },
      `Withheld: this campaign promises to show no estimate from fewer than ${number(estimates.smallest_count)} reports${estimates.cohorts.length > 1 ? " of a cohort" : ""}.`,
    ),
  ];
}

function results(estimates, chosen) {
  const { statistic } = estimates.cohorts[0].precision;
  return [
    el("h2", {}, "Estimates"),
    histogram(chosen, estimates.level, statistic),
    !chosen.warning && el("p", { id: "reached" }, reached(estimates.level, chosen, statistic)),
    ...chosen.notes.map((note) => el("p", { class: "quiet" }, note)),
  ];
}

/** How precise the answer is now. */
function reached(level, chosen, statistic) {
  const leans = !["unbiased", "mle"].includes(chosen.method);
  const each = statistic === "average per person" ? "the average per person" : `every ${statistic}`;
  const better = chosen.labels.length > 1 ? " or better" : "";
  const among = leans ? " among these people" : "";
  const width = `±${widest(chosen, statistic)}${better} (${number(100 * level)} %)`;
  return `With these ${number(chosen.reports)} reports ${each}${among} is known to ${width}${leans ? ", if the prior is right" : ""}.`;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

/** How precise the plan makes the answer, for a round number of people. */
function planned(cohorts, several) {
  const lines = cohorts.map(({ cohort, precision }) =>
    el("p", {}, several && el("strong", {}, el("bdi", {}, cohort), ": "), sentence(precision.text)),
  );
  return [el("h2", {}, "What the plan promises"), ...lines];
}

function privacy(estimates) {
  const rows = estimates.cohorts.map((c) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("bdi", {}, c.cohort)),
      ...["lip_lower", "lip_upper", "ldp"].map((name) =>
        el("td", { class: "figure" }, level(c.privacy[name] ?? Infinity)),
      ),
      el("td", { class: "figure" }, c.identifiable ? "yes" : "no"),
    ),
  );
  return [
    el("h2", {}, "Privacy"),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Privacy levels" },
      el(
        "table",
        {},
        el("caption", {}, "Certified levels, natural logarithms, rounded up"),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "Cohort"),
            el("th", { scope: "col", class: "figure" }, "LIP, down"),
            el("th", { scope: "col", class: "figure" }, "LIP, up"),
            el("th", { scope: "col", class: "figure" }, "LDP"),
            el("th", { scope: "col", class: "figure" }, "Readable without the prior"),
          ),
        ),
        el("tbody", {}, ...rows),
      ),
    ),
  ];
}

function refused({ refused: reasons }) {
  const entries = Object.entries(reasons);
  if (entries.length === 0) return [el("h2", {}, "Refused reports"), el("p", {}, "None.")];
  const rows = entries.map(([reason, count]) =>
    el("tr", {}, el("th", { scope: "row" }, reason), el("td", { class: "figure" }, number(count))),
  );
  return [
    el("h2", {}, "Refused reports"),
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, el("th", { scope: "col" }, "Reason"), el("th", { scope: "col", class: "figure" }, "Reports")),
      ),
      el("tbody", {}, ...rows),
    ),
  ];
}

function downloads(view) {
  const button = el(
    "button",
    { type: "button", id: "download", class: "plain", onclick: () => showErrors(() => download(view, button)) },
    "Download reports (Parquet)",
  );
  return [
    el("h2", {}, "Keep"),
    el("p", {}, "Every report as it arrived, with its id and cohort."),
    el("div", { class: "actions" }, button),
  ];
}

async function download(view, button) {
  button.disabled = true;
  try {
    const url = URL.createObjectURL(await (await ask(`/${view.id}/reports`)).blob());
    el("a", { href: url, download: `${view.id.slice(0, 12)}.parquet` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  } finally {
    button.disabled = false;
  }
}

route();

// The curator's dashboard: sign in, choose a campaign, watch its estimates.

import { badge, campaignList, ending, publishedLink, publishing, sharing } from "/static/campaigns.js";
import { SignedOut, Unreachable, ask, forget, isAdmin, keepsTokens, read, signIn, signedIn } from "/static/curator.js";
import { reportsByDay } from "/static/daily_counts.js";
import { el, number, reportsText, saveFile } from "/static/dom.js";
import { estimateTables, inBlocks, joinDisplays } from "/static/histogram.js";
import { levelTable } from "/static/levels.js";
import { newSurvey } from "/static/new_survey.js";
import { recordTable } from "/static/records.js";
import { madeWhen, noResults, releasing, withoutResults } from "/static/stored_results.js";
import { tokenPage } from "/static/tokens.js";

const EVERY = 4000; // milliseconds between looks at the counts

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
  if (!keepsTokens()) return showNoStorage();
  const id = location.hash.slice(1);
  leave.hidden = !signedIn();
  if (leave.hidden) return showSignIn();
  if (/^[0-9a-f]{64}$/.test(id)) return showErrors(() => watch(id));
  if (id === "new") return showErrors(() => showPage("New survey", () => newSurvey(showErrors, say)));
  if (id === "records") return showErrors(() => showPage("Records", recordTable));
  if (id === "tokens") return showErrors(() => showPage("Tokens", () => tokenPage(showErrors, route)));
  return showErrors(() => showPage("Campaigns", () => campaignList(say)));
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
  const text = error instanceof Unreachable ? "The curator cannot be reached; trying again." : error.message;
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

function showNoStorage() {
  const advice = "Let your browser store data of this site (cookies and site data), or open the dashboard in another browser.";
  put(
    el("h1", { tabindex: "-1" }, "You cannot sign in with this browser"),
    el("p", { class: "warning", role: "alert" }, "The dashboard keeps your token in this tab until you close it, and this browser does not let it."),
    el("p", {}, advice),
  );
}

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

/** A page with a list. The old page is cleared at once, and a list that cannot be read is fetched again. */
async function showPage(title, load) {
  document.title = `${title} · priorveil`;
  put(el("h1", { tabindex: "-1" }, title), el("p", {}, "One moment…"));
  await showList(location.hash, load);
}

async function showList(place, load) {
  try {
    const list = await load();
    if (location.hash === place && signedIn()) put(list);
  } catch (error) {
    if (location.hash !== place) return;
    again = setTimeout(() => showErrors(() => showList(place, load)), EVERY);
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
    const admin = await isAdmin();
    const waiting = admin ? null : await withoutResults(view.id);
    if (openCampaign !== view) return;
    if (waiting) return draw(view, waiting.title, waiting.state, waiting, () => noResults(waiting));
    const [estimates, counters, { warnings }] = await Promise.all([
      read(`/campaigns/${view.id}/estimates?method=${view.method}`),
      read(`/campaigns/${view.id}/counters`),
      read(`/campaigns/${view.id}/status`),
    ]);
    const counted = admin && estimates.admission === "invitation";
    const { free } = counted ? await read(`/campaigns/${view.id}/invitations`) : { free: null };
    if (openCampaign !== view) return;
    const content = [estimates, counters, free, view.method, view.cohort];
    draw(view, estimates.title, reportsText(estimates.reports), content, () => sections(view, estimates, { ...counters, free, warnings }, admin));
  });
  if (openCampaign === view && !document.hidden) view.timer = setTimeout(() => refresh(view), EVERY);
}

/** Draw a campaign, unless the page shows this content already; the `summary` is said in a few words. */
function draw(view, title, summary, content, drawn) {
  main.querySelector("#trouble")?.remove();
  const text = JSON.stringify(content);
  if (text === view.lastText) return;
  const fresh = view.lastText === null;
  view.lastText = text;
  const focused = document.activeElement?.id;
  document.title = `${summary} · ${title}`;
  main.querySelector("#question").textContent = title;
  const unfolded = [...main.querySelectorAll("#live details[open]")].map(({ id }) => id);
  main.querySelector("#live").replaceChildren(...drawn().flat(Infinity).filter(Boolean));
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus();
  if (!fresh) say(summary);
}

function sections(view, estimates, counters, admin) {
  const several = estimates.cohorts.length > 1;
  const shown = estimates.results.map((result) => ({ ...result, ...selectEstimate(result, view.cohort, several) }));
  const blocks = inBlocks(shown);
  return [
    counters.warnings.map((text) => el("p", { class: "warning" }, text)),
    contradictions(shown.flatMap((result) => result.cohorts), several, estimates.caution),
    estimates.not_for_publication && el("p", { class: "draft", id: "draft" }, estimates.not_for_publication),
    !admin && madeWhen(estimates),
    facts(estimates, counters),
    controls(view, estimates, several),
    blocks.map((block, place) => results(block, estimates, blocks.length > 1, place)),
    planPromises(blocks, several),
    privacy(estimates),
    reportsByDay(counters.by_day),
    refusedReports(counters),
    sharing(view.id, estimates, counters.free, showErrors, () => refresh(view), say),
    downloads(view, estimates, admin),
    admin && releasing(view.id, estimates, showErrors, () => refresh(view)),
    publishing(view.id, estimates, admin, showErrors, () => refresh(view)),
    admin && ending(view.id, estimates, showErrors, () => refresh(view), () => {
      location.hash = "";
    }),
  ];
}

/** The estimate to show of a result, null if it is withheld; and the cohorts that it is about. */
function selectEstimate({ cohorts, total }, name, several) {
  const cohort = cohorts.find((c) => c.cohort === name);
  const chosen = cohort ?? (several ? total : cohorts[0]);
  return { chosen: chosen?.withheld ? null : chosen, cohorts: cohort ? [cohort] : cohorts };
}

/** What must be known before a number is read: a prior that the reports contradict, or one that nothing corrects. */
function contradictions(cohorts, several, caution) {
  const contradicted = cohorts.filter((c) => c.warning).map((c) => about([several && c.cohort], c.warning, "warning"));
  return contradicted.length > 0 ? contradicted : caution && el("p", { class: "warning" }, caution);
}

/** A sentence after the names of what it is about, such as a cohort; false and null are no names. */
const about = (names, text, kind = null) =>
  el("p", { class: kind }, ...names.filter(Boolean).map((name) => el("strong", {}, el("bdi", {}, name), ": ")), text);

/** The state of a campaign, with the way to its sheet once its results are published. */
const stateOf = ({ campaign, state, not_for_publication: draft }) =>
  draft === null ? [badge("published"), " ", publishedLink(campaign)] : badge(state);

function facts(estimates, counters) {
  const lost = Object.values(counters.refused).reduce((a, b) => a + b, 0);
  const fact = (name, value, note) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
  return el(
    "dl",
    { class: "facts" },
    fact("Reports", el("span", { id: "reports" }, number(estimates.reports)), stateOf(estimates)),
    fact("Refused", number(lost)),
    ...estimates.facts.map(({ name, text, note }) => fact(name, text, note)),
  );
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
    select(
      "method",
      "Method",
      estimates.methods.map(({ method, title }) => [method, title]),
      view.method,
      (value) => {
        view.method = value;
      },
    ),
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

/** A block of results under its title, or under a general one where there is only one; a margin is a part of its table. */
function results(block, { withheld_because: reason }, several, place) {
  const suffix = place === 0 ? "" : `-${place + 1}`;
  const [{ title, unit, margin_of: table }] = block;
  const [shown, withheld] = [block.filter(({ chosen }) => chosen), block.filter(({ chosen }) => !chosen)];
  const precision = shown.length === 1 && !shown[0].chosen.warning && el("p", { id: `reached${suffix}` }, shown[0].chosen.display.precision);
  return [
    el(table === null ? "h2" : "h3", { dir: "auto" }, several ? title : "Estimates", unit && ` (${unit})`),
    shown.length > 0 && estimateTables(joinDisplays(shown.map(({ chosen }) => chosen.display)), suffix, precision),
    withheld.length > 0 &&
      el("div", { id: `withheld${suffix}` }, ...(shown.length > 0 ? withheld.map(({ option }) => about([option], reason)) : [about([], reason)])),
    shown.length > 0 &&
      el(
        "details",
        { id: `notes${suffix}` },
        el("summary", {}, "Method and checks"),
        ...shown.flatMap(({ option, chosen: { display, warning, notes } }) => [
          shown.length > 1 && about([option], warning ?? display.precision),
          ...notes.map((note) => el("p", { class: "quiet" }, note)),
        ]),
      ),
  ];
}

/** How precise the plans make the answers, for a round number of people; a margin has no plan of its own. */
function planPromises(blocks, several) {
  const plans = blocks.filter(([{ margin_of: table }]) => table === null);
  return [
    el("h2", {}, "What the plan promises"),
    ...plans.flatMap((block) => [
      plans.length > 1 && el("h3", { dir: "auto" }, block[0].title, block[0].unit && ` (${block[0].unit})`),
      ...block.flatMap(({ option, cohorts }) => cohorts.map((c) => about([option, several && c.cohort], c.promise))),
    ]),
  ];
}

function privacy(estimates) {
  return [
    el("h2", {}, "Privacy"),
    el(
      "details",
      { id: "levels" },
      el("summary", {}, "Privacy levels (LIP and LDP)"),
      levelTable(estimates),
    ),
  ];
}

function refusedReports({ refused: reasons }) {
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

function downloads(view, { not_for_publication: draft }, admin) {
  const { id, method } = view;
  const results = `${id.slice(0, 12)}-${draft === null ? "results" : "not-for-publication"}`;
  const button = (name, path, file, words) => {
    const made = el(
      "button",
      { type: "button", id: name, class: "plain", onclick: () => showErrors(() => download(made, `/campaigns/${id}/${path}`, file)) },
      words,
    );
    return made;
  };
  return [
    el("h2", {}, "Keep"),
    el("p", {}, "The results as on this page, by the method chosen above."),
    el(
      "div",
      { class: "actions" },
      button("results-csv", `estimates?method=${method}&format=csv`, `${results}.csv`, "Download results (CSV)"),
      button("results-json", `estimates?method=${method}`, `${results}.json`, "Download results (JSON)"),
    ),
    admin && el("p", {}, "Every report as it arrived, with its id and the form that made it."),
    admin &&
      el(
        "div",
        { class: "actions" },
        button("download", "reports?format=parquet", `${id.slice(0, 12)}.parquet`, "Download reports (Parquet)"),
        button("download-csv", "reports?format=csv", `${id.slice(0, 12)}.csv`, "Download reports (CSV)"),
        button("download-json", "reports?format=json", `${id.slice(0, 12)}.json`, "Download reports (JSON)"),
      ),
  ];
}

async function download(button, path, file) {
  button.disabled = true;
  try {
    saveFile(file, await (await ask(path)).blob());
  } finally {
    button.disabled = false;
  }
}

route();

// The curator's dashboard: sign in, choose a campaign, watch its estimates.

import { badge, campaignList, ending, publishedLink, publishing, sharing } from "/static/campaigns.js";
import { SignedOut, Unreachable, ask, forget, isAdmin, keepsTokens, read, signIn, signedIn } from "/static/curator.js";
import { reportsByDay } from "/static/daily_counts.js";
import { el, number, reportsText, saveFile } from "/static/dom.js";
import { blockTitle, figureTables, inBlocks } from "/static/figures.js";
import { speaker } from "/static/language.js";
import { levelTable, promiseFacts } from "/static/levels.js";
import { newSurvey } from "/static/new_survey.js";
import { sentence } from "/static/notes.js";
import { recordTable } from "/static/records.js";
import { madeWhen, noResults, releasing, withoutResults } from "/static/stored_results.js";
import { SurveyWords } from "/static/survey_words.js";
import { tokenPage } from "/static/tokens.js";

const EVERY = 4000; // milliseconds between looks at the counts
const METHODS = { auto: "methodAuto", mmse: "methodMmse", unbiased: "methodUnbiased", mle: "methodMle" };
const WITHHELD = { "few reports": "withheldFew", "a part is withheld": "withheldPart", "other forms": "withheldForms" };
const speak = speaker("en");
const say = speak.say;

/** @param {string} selector @returns {HTMLElement} */
const place = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));

const main = place("#main");
const news = place("#news");
const leave = place("#leave");
/** The campaign on the page. @type {{ id: string, method: string, cohort: string, lastText: string | null, timer: any } | null} */
let openCampaign = null;
let again = 0; // the timer of a list that could not be read

leave.addEventListener("click", () => signOut());
addEventListener("hashchange", () => route());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && openCampaign) refresh(openCampaign);
});

const announce = (text) => {
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
  if (id === "new") return showErrors(() => showPage("New survey", () => newSurvey(showErrors, announce)));
  if (id === "records") return showErrors(() => showPage("Records", recordTable));
  if (id === "tokens") return showErrors(() => showPage("Tokens", () => tokenPage(showErrors, route)));
  return showErrors(() => showPage("Campaigns", () => campaignList(announce)));
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
  if (box === null) {
    box = el("p", { id: "trouble", class: "warning", role: "alert" });
    main.prepend(box);
  }
  if (box.textContent !== text) box.textContent = text;
  if (openCampaign?.lastText === null) place("#question").textContent = "Nothing to show yet";
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
  const advice =
    "Let your browser store data of this site (cookies and site data), or open the dashboard in another browser.";
  put(
    el("h1", { tabindex: "-1" }, "You cannot sign in with this browser"),
    el(
      "p",
      { class: "warning", role: "alert" },
      "The dashboard keeps your token in this tab until you close it, and this browser does not let it.",
    ),
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
  const { method } = view;
  await showErrors(async () => {
    const admin = await isAdmin();
    const waiting = admin ? null : await withoutResults(view.id);
    if (openCampaign !== view) return;
    if (waiting) return draw(view, waiting.title, waiting.state, waiting, () => noResults(waiting));
    const [estimates, counters, { warnings }] = await Promise.all([
      read(`/campaigns/${view.id}/estimates?method=${method}`),
      read(`/campaigns/${view.id}/counters`),
      read(`/campaigns/${view.id}/status`),
    ]);
    const counted = admin && estimates.survey.admission === "invitation";
    const { free } = counted ? await read(`/campaigns/${view.id}/invitations`) : { free: null };
    if (openCampaign !== view || view.method !== method) return; // another method was chosen meanwhile
    const content = [estimates, counters, free, method, view.cohort];
    const words = new SurveyWords(estimates.survey, speak, estimates.survey.languages[0]);
    draw(view, words.own(estimates.survey.title), reportsText(estimates.result.reports), content, () =>
      sections(view, estimates, { ...counters, free, warnings }, admin, words),
    );
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
  place("#question").textContent = title;
  const unfolded = [...main.querySelectorAll("#live details[open]")].map(({ id }) => id);
  place("#live").replaceChildren(...drawn().flat(Infinity).filter(Boolean));
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus();
  if (!fresh) announce(summary);
}

function sections(view, estimates, counters, admin, words) {
  const { result } = estimates;
  const several = result.cohorts.length > 1;
  const shown = result.findings.filter(({ cohort }) => cohort === view.cohort);
  const blocks = inBlocks(shown, words);
  return [
    counters.warnings.map((text) => el("p", { class: "warning" }, text)),
    contradictions(
      several && view.cohort === "" ? result.findings.filter(({ cohort }) => cohort !== "") : shown,
      words,
    ),
    !estimates.published && el("p", { class: "draft", id: "draft" }, say("notForPublication")),
    !admin && madeWhen(estimates),
    facts(estimates, counters),
    controls(view, estimates, several),
    blocks.map((block, place) => findings(block, result, words, blocks.length > 1, place)),
    planPromises(result.findings, several, words),
    privacy(result),
    reportsByDay(counters.by_day),
    refusedReports(counters),
    sharing(view.id, estimates, counters.free, showErrors, () => refresh(view), announce),
    downloads(view, estimates, admin),
    admin && releasing(view.id, estimates, showErrors, () => refresh(view)),
    publishing(view.id, estimates, admin, showErrors, () => refresh(view)),
    admin &&
      ending(
        view.id,
        estimates,
        showErrors,
        () => refresh(view),
        () => {
          location.hash = "";
        },
      ),
  ];
}

/** What must be known before a number is read: a prior that the reports contradict, or one that nothing corrects. */
function contradictions(findings, words) {
  const read = findings.filter(({ figures, margin_of }) => figures && !margin_of); // a margin repeats its table
  const several = new Set(read.map(({ attributes }) => attributes.join())).size > 1;
  const contradicted = read.filter(({ figures }) => figures.warning);
  const warnings = contradicted.map(({ attributes, cohort, figures }) =>
    about([several && words.titleOf(attributes), cohort], sentence(figures.warning, speak), "warning"),
  );
  if (warnings.length > 0) return warnings;
  return read.some(({ figures }) => figures.leans_on_prior) && el("p", { class: "warning" }, say("leaning"));
}

/** A sentence after the names of what it is about, such as a cohort; false and null are no names. */
const about = (names, text, kind = "") =>
  el(
    "p",
    { class: kind || null },
    ...names.filter(Boolean).map((name) => el("strong", {}, el("bdi", {}, name), ": ")),
    text,
  );

/** The state of a campaign, with the way to its sheet once its results are published. */
const stateOf = ({ result, state, published }) =>
  published ? [badge("published"), " ", publishedLink(result.id)] : badge(state);

function facts(estimates, counters) {
  const lost = Object.values(counters.refused).reduce((a, b) => a + b, 0);
  const fact = (name, value, note) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
  return el(
    "dl",
    { class: "facts" },
    fact("Reports", el("span", { id: "reports" }, number(estimates.result.reports)), stateOf(estimates)),
    fact("Refused", number(lost)),
    promiseFacts(estimates.result, speak).map(([name, value, note]) => fact(name, value, note)),
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
      estimates.methods.map((method) => [method, say(METHODS[method])]),
      view.method,
      (value) => {
        view.method = value;
      },
    ),
    several &&
      select(
        "cohort",
        "Cohort",
        [["", "all together"], ...estimates.result.cohorts.map(({ cohort }) => [cohort, cohort])],
        view.cohort,
        (value) => {
          view.cohort = value;
        },
      ),
  );
}

/** A block of findings under its title, or under a general one where there is only one; a margin is a part of its table. */
function findings(block, { confidence, smallest_count: least }, words, several, place) {
  const suffix = place === 0 ? "" : `-${place + 1}`;
  const [shown, withheld] = [block.filter(({ figures }) => figures), block.filter(({ figures }) => !figures)];
  const precision =
    shown.length === 1 &&
    !shown[0].figures.warning &&
    el("p", { id: `reached${suffix}` }, sentence(shown[0].figures.reached, speak));
  const reason = ({ withheld: code }) => say(WITHHELD[code], { count: number(least) });
  return [
    el(block[0].margin_of === null ? "h2" : "h3", { dir: "auto" }, several ? blockTitle(block, words) : "Estimates"),
    shown.length > 0 && figureTables(shown, suffix, precision, words, speak, confidence),
    withheld.length > 0 &&
      el(
        "div",
        { id: `withheld${suffix}` },
        shown.length > 0
          ? withheld.map((found) => about([optionName(found, words)], reason(found)))
          : [...new Set(withheld.map(reason))].map((text) => el("p", {}, text)),
      ),
    shown.length > 0 &&
      el(
        "details",
        { id: `notes${suffix}` },
        el("summary", {}, "Method and checks"),
        shown.map((found) => [
          shown.length > 1 &&
            about([optionName(found, words)], sentence(found.figures.warning ?? found.figures.reached, speak)),
          found.figures.notes.map((note) => el("p", { class: "quiet" }, sentence(note, speak))),
        ]),
      ),
  ];
}

const optionName = ({ attributes }, words) => words.optionOf(attributes[0]) !== null && words.optionText(attributes[0]);

/** How precise the plans make the answers, for a round number of people; a margin has no plan of its own. */
function planPromises(findings, several, words) {
  const blocks = inBlocks(
    findings.filter(({ promised }) => promised),
    words,
  );
  return [
    el("h2", {}, "What the plan promises"),
    blocks.map((block) => [
      blocks.length > 1 && el("h3", { dir: "auto" }, blockTitle(block, words)),
      block.map((found) => about([optionName(found, words), several && found.cohort], sentence(found.promised, speak))),
    ]),
  ];
}

function privacy(result) {
  return [
    el("h2", {}, "Privacy"),
    el("details", { id: "levels" }, el("summary", {}, "Privacy levels (LIP and LDP)"), levelTable(result, speak)),
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

function downloads(view, { published }, admin) {
  const { id, method } = view;
  const results = `${id.slice(0, 12)}-${published ? "results" : "not-for-publication"}`;
  const button = (name, path, file, words) => {
    const made = el(
      "button",
      {
        type: "button",
        id: name,
        class: "plain",
        onclick: () => showErrors(() => download(made, `/campaigns/${id}/${path}`, file)),
      },
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

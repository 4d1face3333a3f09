// The page of one campaign on the dashboard: what must be known first, estimates, what was promised, and what can be done.

import { badge, ending, publishedLink, publishing, sharing } from "/static/campaigns.js";
import { ask } from "/static/curator.js";
import { reportsByDay } from "/static/daily_counts.js";
import { el, number, saveFile } from "/static/dom.js";
import { blockTitle, figureTables, inBlocks } from "/static/figures.js";
import { speaker } from "/static/language.js";
import { levelTable, promiseFacts } from "/static/levels.js";
import { sentence, sentences } from "/static/notes.js";
import { madeWhen, releasing } from "/static/stored_results.js";

const METHODS = { auto: "methodAuto", mmse: "methodMmse", unbiased: "methodUnbiased", mle: "methodMle" };
const WITHHELD = { "few reports": "withheldFew", "a part is withheld": "withheldPart", "other forms": "withheldForms" };
const speak = speaker("en");
const say = speak.say;

/**
 * The parts of the page; `view` has the id, and the method and the cohort that are chosen. `showErrors` runs what may fail, `changed`
 * looks again, `announce` tells a screen reader.
 */
export function campaignParts(view, estimates, counters, admin, words, { showErrors, changed, announce }) {
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
    controls(view, estimates, several, changed),
    blocks.map((block, place) => findings(block, result, words, blocks.length > 1, place)),
    planPromises(result.findings, several, words),
    privacy(result),
    reportsByDay(counters.by_day),
    refusedReports(counters),
    sharing(view.id, estimates, counters.free, showErrors, changed, announce),
    downloads(view, estimates, admin, showErrors),
    admin && releasing(view.id, estimates, showErrors, changed),
    publishing(view.id, estimates, admin, showErrors, changed),
    admin &&
      ending(view.id, estimates, showErrors, changed, () => {
        location.hash = "";
      }),
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
  return sentences(
    read.map(({ figures }) => figures.leaning),
    speak,
  ).map((text) => el("p", { class: "warning" }, text));
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

function controls(view, estimates, several, changed) {
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
            changed();
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

const optionName = ({ attributes }, words) =>
  attributes.length === 1 && words.optionOf(attributes[0]) !== null && words.optionText(attributes[0]);

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

function downloads(view, { published }, admin, showErrors) {
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

// The sheet of published results: the figures, how they came about, what was promised, and what they do not say. It speaks the language
// of the reader; the campaign's own texts are in as many languages as it gives. All of them are in one document.

import { gradeOf } from "/static/disclosure.js";
import { el } from "/static/dom.js";
import { blockTitle, confidenceText, figureTables, inBlocks } from "/static/figures.js";
import { groupBy } from "/static/histogram.js";
import { OWN_LANGUAGES, bestLanguage, offerLanguages, speakOnPage, speaker } from "/static/language.js";
import { levelTable, totalsLevels } from "/static/levels.js";
import { sentences } from "/static/notes.js";
import { SurveyWords } from "/static/survey_words.js";

const english = speaker("en"); // of the part for statisticians

const main = /** @type {HTMLElement} */ (document.querySelector("#main"));
const languages = /** @type {HTMLSelectElement} */ (document.querySelector("#language"));
const id = /** @type {string} */ (location.pathname.split("/").at(-1));
const source = `/v1/campaigns/${encodeURIComponent(id)}/publication`;

let speak = speaker("en");
/** The published document; null until it is there. @type {any} */
let publication = null;

/** The texts of the survey, in the language of the reader. @type {any} */
let words = null;
let draw = () => {}; // draws the page again, in another language
/** The language that the reader has picked, maybe before the document came. @type {string | null} */
let picked = null;

const put = (...content) => main.replaceChildren(...content.flat(Infinity).filter(Boolean));
const say = (key, values) => speak.say(key, values);
const paragraph = (key, values) => el("p", {}, ...speak.phrase(key, values));
const section = (key, ...content) => el("section", {}, el("h2", {}, say(key)), ...content);

async function show() {
  chooseLanguage();
  const response = await fetch(source);
  if (!response.ok) {
    const { detail } = await response.json().catch(() => ({}));
    draw = () =>
      put(
        el("h1", {}, say("noResultsTitle")),
        el("p", {}, say("serverSays"), " ", el("bdi", { lang: "en" }, `${detail ?? response.status}`)),
      );
  } else {
    publication = await response.json();
    chooseLanguage();
    draw = () => put(...sheet());
  }
  draw();
}

/** Offer the languages of this page, in which its figures can be read, and those of the survey. */
function chooseLanguage() {
  const survey = publication?.survey.languages ?? [];
  const others = survey.filter((tag) => bestLanguage([tag], OWN_LANGUAGES) === undefined);
  const wanted = [picked ?? [], navigator.languages, survey].flat();
  useLanguage(offerLanguages(languages, [...OWN_LANGUAGES, ...others], wanted));
}

function useLanguage(tag) {
  speak = speakOnPage(tag);
  if (publication) words = new SurveyWords(publication.survey, speak, tag);
  document.title = words === null ? say("sheetTitle") : `${say("sheetTitle")} · ${words.own(publication.survey.title)}`;
}

languages.addEventListener("change", () => {
  picked = languages.value;
  useLanguage(picked);
  draw();
});

/** What the public is shown of a finding; undefined if it is withheld. */
const shownOf = ({ figures, public: possible }) => possible ?? figures ?? undefined;

// -- the sheet -----------------------------------------------------------------------------------------------------------

function sheet() {
  const { findings } = publication.result;
  const shown = findings.map(shownOf).filter(Boolean);
  const leanings = shown.some((figures) => figures.warning) ? [] : shown.map((figures) => figures.leaning);
  return [
    el("h1", {}, words.marked(words.own(publication.survey.title))),
    introduction(),
    sentences(leanings, speak).map((text) => el("p", { class: "warning" }, text)),
    el("div", { class: "results" }, ...blocksOf(findings).map(figures)),
    el(
      "div",
      { class: "remarks" },
      section("howTitle", ...method(shown)),
      section("promisedTitle", ...promise()),
      totals(),
      section("mindTitle", ...limits()),
    ),
    statistics(),
    printedSource(),
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", onclick: () => print() }, say("print")),
      el(
        "a",
        { class: "button plain", href: `${source}?format=csv`, download: `${id.slice(0, 12)}-results.csv` },
        say("computingFigures"),
      ),
      el("a", { class: "button plain", href: source, download: `${id.slice(0, 12)}-results.json` }, say("allFigures")),
    ),
  ];
}

/** What a printed sheet can be checked against: its address, which has the id of the campaign. */
const printedSource = () =>
  el(
    "p",
    { class: "printed" },
    ...speak.phrase("sheetAddress", {
      address: el("bdi", {}, `${location.origin}/published/${publication.result.id}`),
    }),
  );

function introduction() {
  const { published, survey, result } = publication;
  const { contact } = survey;
  const text = (texts) => words.own(texts) && words.marked(words.own(texts));
  /** @type {[string, any][]} */
  const lines = [
    ["askedBy", text(survey.asked_by)],
    ["purpose", text(survey.purpose)],
    [
      "contactName",
      contact && el("bdi", {}, ...contact.split(/(?<=@)/).flatMap((part, i) => (i > 0 ? [el("wbr"), part] : [part]))),
    ],
    ["reportCount", speak.number(result.reports)],
    ["publishedOn", el("time", { datetime: published }, speak.moment(new Date(published)))],
  ];
  const line = ([key, value]) => value && el("div", {}, el("dt", {}, say(key)), el("dd", {}, value));
  return el("dl", { class: "introduction" }, ...lines.map(line));
}

/** The findings in blocks: those of all cohorts about the same, and of the options of "tick all that apply" together. */
function blocksOf(findings) {
  const tables = groupBy(findings, ({ attributes, margin_of: table }) => [attributes, table]);
  return inBlocks(
    tables.map(([first]) => first),
    words,
  ).map((block) =>
    block.flatMap(({ attributes, margin_of: table }) =>
      findings.filter((found) => `${found.attributes}` === `${attributes}` && `${found.margin_of}` === `${table}`),
    ),
  );
}

/** A block: all people together, then each cohort if there are several. A margin is a part of its table. */
function figures(block, place) {
  const cohorts = publication.result.cohorts.map(({ cohort }) => cohort);
  const several = cohorts.length > 1;
  const { margin_of: table } = block[0];
  /** @type {["h2", "h3"] | ["h3", "h4"]} */
  const [head, subhead] = table === null ? ["h2", "h3"] : ["h3", "h4"];
  const parts = (several ? ["", ...cohorts] : [""])
    .map((cohort) => ({ cohort, findings: block.filter((found) => found.cohort === cohort) }))
    .filter(({ cohort, findings }) => findings.some((found) => !several || cohort !== "" || shownOf(found)));
  return el(
    "section",
    {},
    el(head, {}, words.marked(blockTitle(block, words))),
    ...parts.map(({ cohort, findings }, n) => [
      several && el(subhead, {}, cohort === "" ? say("everyone") : el("bdi", {}, cohort)),
      figure(findings, `-${place}-${n}`),
      table === null && reportsAbout(findings),
    ]),
  );
}

/** The figures of a block, and which of its options are withheld. */
function figure(findings, suffix) {
  const { confidence, smallest_count: least } = publication.result;
  const shown = findings.filter(shownOf).map((found) => ({ ...found, figures: shownOf(found) }));
  const text = say("withheldFew", { count: speak.number(least) });
  if (shown.length === 0) return el("p", {}, text);
  const withheld = findings
    .filter((found) => !shownOf(found))
    .map(({ attributes }) => words.marked(words.optionText(attributes[0])));
  const isContradicted = shown.some((found) => found.figures.warning);
  return [
    isContradicted && el("p", { class: "warning" }, say("contradicted")),
    figureTables(shown, suffix, isContradicted ? null : precision(shown), words, speak, confidence),
    withheld.length > 0 && el("p", {}, el("strong", {}, ...words.separate(withheld), ": "), text),
  ];
}

/** How many reports there are about a block; options of one question may have different numbers. */
function reportsAbout(findings) {
  const counts = findings.map(({ reports }) => reports);
  const [least, most] = [Math.min(...counts), Math.max(...counts)].map((count) => speak.number(count));
  return el(
    "p",
    { class: "quiet" },
    say("reportsAbout", { count: least === most ? least : say("between", { from: least, to: most }) }),
  );
}

/** How precise shares are, if their intervals say anything; other numbers have intervals of their own. */
function precision(shown) {
  const widths = shown.map(({ figures }) => figures.half_width);
  if (shown.some(({ figures }) => figures.statistic !== "share") || widths.includes(null)) return null;
  if (Math.max(...widths) >= 0.5) return null;
  const points = speak.number(100 * Math.max(...widths), { maximumSignificantDigits: 2, roundingMode: "ceil" });
  const confidence = confidenceText(speak, publication.result.confidence);
  return el("p", { class: "quiet" }, say("preciseShares", { points, confidence }));
}

function method(shown) {
  const rows = shown.flatMap(({ tables }) => tables.flatMap((table) => table.rows));
  const drawn = drawnText();
  const methods = new Set(shown.map((figures) => figures.method));
  return [
    paragraph("how"),
    methods.has("mle") && paragraph("possible"),
    methods.has("mmse") && paragraph("alsoExpected"),
    drawn && paragraph(drawn),
    rows.some((row) => row.expected !== null) && paragraph("priorColumn", { prior: say("prior") }),
  ].filter(Boolean);
}

/** What to say if questions were drawn for each person: a submission has fewer reports than there are parts of the form. */
function drawnText() {
  const { cohorts, findings } = publication.result;
  const parts = findings.filter((found) => found.margin_of === null);
  const counts = cohorts.map(({ cohort, reports }) => {
    const own = parts.filter((part) => part.cohort === (cohorts.length > 1 ? cohort : ""));
    return { sent: sum(own.map((part) => part.reports)), all: own.length * reports, reports };
  });
  if (counts.every(({ sent, all }) => sent === all)) return null;
  return counts.every(({ sent, reports }) => sent === reports) ? "drawnOne" : "drawnSome";
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function promise() {
  const { cohorts } = publication.result;
  const most = (name) => Math.max(...cohorts.map(({ levels }) => levels[name] ?? Infinity));
  const [lip, ldp] = [most("lip"), most("ldp")];
  const factor = (value) => el("strong", {}, speak.factor(value));
  return [
    lip < ldp && paragraph("promisedKnown", { factor: factor(lip) }),
    Number.isFinite(ldp) ? paragraph("promisedAny", { factor: factor(ldp) }) : paragraph("promisedInPart"),
    gradeOf({ lip }) === "seenWeak" && el("p", { class: "warning" }, say("promisedLittle")),
  ].filter(Boolean);
}

/** What the totals tell about one person, of the cohort of which they tell most; nothing where it cannot be said. */
function totals() {
  const every = publication.result.cohorts.map((cohort) => cohort.totals).filter(Boolean);
  if (every.length === 0) return null;
  const most = every.reduce((worst, one) => (one.epsilon > worst.epsilon ? one : worst));
  const beliefs = every.flatMap((one) => one.beliefs);
  const change = ({ before, after }) => Math.abs(Math.log(after / before));
  const share = speak.number(most.colluding, { style: "percent", maximumFractionDigits: 1 });
  return section(
    "totalsTitle",
    paragraph("totalsAny", {
      factor: el("strong", {}, speak.factor(most.epsilon)),
      odds: speak.number(Math.round(1 / most.delta)),
    }),
    ...beliefs
      .sort((one, other) => change(other) - change(one))
      .slice(0, 1)
      .map(belief),
    paragraph("totalsUnless", { share }),
  );
}

function belief({ attributes, label, before, after }) {
  const levels = Object.fromEntries(attributes.map((attribute, i) => [attribute, label[i]]));
  return paragraph("totalsBelief", {
    question: el("span", {}, words.marked(words.titleOf(attributes))),
    answer: el("span", {}, ...words.separate(words.answersWords(words.answersOf(levels)))),
    before: speak.percent(before),
    after: speak.percent(after),
  });
}

function limits() {
  const { result, survey } = publication;
  const { smallest_count: least } = result;
  const { admission, most_reports: most } = survey;
  return [
    paragraph(admission === "invitation" ? "admittedInvited" : "admittedOpen"),
    most !== null && paragraph("atMostReports", { count: speak.number(most) }),
    paragraph("aboutPeople"),
    least > 1 && paragraph("nothingBelow", { count: speak.number(least) }),
    paragraph("madeOnce"),
  ].filter(Boolean);
}

/** For statisticians, in English: levels, the method of each figure, and how the reports fit the prior; each sentence once. */
function statistics() {
  const { result } = publication;
  const several = result.cohorts.length > 1;
  const shown = result.findings.filter((found) => shownOf(found) && (!several || found.cohort !== ""));
  const said = shown.flatMap((found) =>
    sentences(shownOf(found).notes, english).map((text) => ({ text, about: nameOf(found, several) })),
  );
  const notes = groupBy(said, ({ text }) => text).map((same) => {
    const names = same.length < shown.length ? same.map(({ about }) => about) : [];
    return el(
      "p",
      { class: "quiet" },
      names.length > 0 && el("strong", {}, ...words.separate(names), ": "),
      same[0].text,
    );
  });
  return el(
    "details",
    {},
    el("summary", {}, say("statisticians")),
    el("div", { lang: "en", dir: "ltr" }, levelTable(result, english), ...totalsLevels(result, english), ...notes),
    paragraph("campaignId", { id: el("code", {}, result.id) }),
  );
}

/** What a finding is about. */
const nameOf = ({ attributes, cohort }, several) =>
  el("span", {}, words.marked(words.titleOf(attributes)), several && el("bdi", {}, ` (${cohort})`));

show().catch(() => {
  draw = () => put(el("h1", {}, say("notLoadedTitle")), paragraph("notLoaded"));
  draw();
});

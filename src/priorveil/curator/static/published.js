// The sheet of published results: the figures, how they came about, what was promised, and what they do not say. It speaks the language
// of the reader; the campaign's own texts are in as many languages as it gives. All of them are in one document.

import { el } from "/static/dom.js";
import { estimateTables, inBlocks, joinDisplays } from "/static/histogram.js";
import { OWN_LANGUAGES, bestLanguage, direction, markLanguage, offerLanguages, speakOnPage, speaker } from "/static/language.js";
import { levelTable } from "/static/levels.js";

const HEADS = { answer: "answer", ticked: "ticked", "ticked set": "tickedSet", quantity: "quantity" }; // of the labels of a table

const main = document.querySelector("#main");
const languages = document.querySelector("#language");
const id = location.pathname.split("/").at(-1);
const source = `/v1/campaigns/${encodeURIComponent(id)}/publication`;

let speak = speaker("en");
let publication = null;
let draw = () => {}; // draws the page again, in another language

const put = (...content) => main.replaceChildren(...content.flat(Infinity).filter(Boolean));
const say = (key, values) => speak.say(key, values);
const paragraph = (key, values) => el("p", {}, ...speak.phrase(key, values));
const section = (key, ...content) => el("section", {}, el("h2", {}, say(key)), ...content);

async function show() {
  chooseLanguage();
  const response = await fetch(source);
  if (!response.ok) {
    const { detail } = await response.json().catch(() => ({}));
    draw = () => put(el("h1", {}, say("noResultsTitle")), el("p", {}, say("serverSays"), " ", el("bdi", { lang: "en" }, `${detail ?? response.status}`)));
  } else {
    publication = await response.json();
    chooseLanguage();
    draw = () => put(...sheet());
  }
  draw();
}

/** Offer the languages of this page, in which its figures can be read, and those of the survey. */
function chooseLanguage() {
  const survey = publication?.languages ?? [];
  const others = survey.filter((tag) => bestLanguage([tag], OWN_LANGUAGES) === undefined);
  useLanguage(offerLanguages(languages, [...OWN_LANGUAGES, ...others], [...navigator.languages, ...survey]));
}

function useLanguage(tag) {
  speak = speakOnPage(tag);
  document.title = publication === null ? say("sheetTitle") : `${say("sheetTitle")} · ${ownText(publication.title)}`;
}

languages.addEventListener("change", () => {
  useLanguage(languages.value);
  draw();
});

// -- the campaign's own texts ------------------------------------------------------------------------------------------

const campaignLanguage = () => bestLanguage([languages.value, speak.language], publication.languages) ?? publication.languages[0];
const ownText = (texts) => texts[campaignLanguage()] ?? "";

const inCampaignLanguage = (text) => markLanguage(campaignLanguage(), text);

/** The same within a text of this page, if it is written in the other direction. */
const isolated = (text) => (direction(campaignLanguage()) === speak.direction ? text : `\u2068${text}\u2069`);

const questionNamed = (name) => publication.questions.find((question) => question.name === name);

/** A question; of "tick all that apply" with the option that it is about. */
function subjectText({ question: name, option }) {
  const question = questionNamed(name);
  return option === null ? ownText(question.text) : `${ownText(question.text)} ${ownText(question.options[option])}`;
}

const questionAbout = (attribute) => publication.questions.find(({ attributes }) => attributes.includes(attribute));

/** The question that gives an attribute; of "tick all that apply" with the option. */
function nameOf(attribute) {
  const { name, kind } = questionAbout(attribute);
  return subjectText({ question: name, option: kind === "choices" ? attribute.slice(name.length + 1) : null });
}

const titleOf = ({ subjects }) => subjects.map(subjectText).join(" × ");

const withUnit = (text, question) => {
  const unit = ownText(question?.unit ?? {});
  return unit ? `${text} (${unit})` : text;
};

/** The question that gives a number, with its unit. */
const numberName = (attribute) => withUnit(nameOf(attribute), questionNamed(attribute));

/** What a label says about one question, in words. */
function answerWords({ question: name, options, unticked, range, level, asked }) {
  const question = questionNamed(name);
  if (!asked) return [say("notAsked")];
  if (range !== null) return [say("between", { from: speak.exact(range[0]), to: speak.exact(range[1]) })];
  if (level !== null) return [el("bdi", {}, level)];
  const text = (code) => inCampaignLanguage(ownText(question.options[code]));
  const named = options.map((code) => (unticked.includes(code) ? el("span", {}, text(code), ": ", say("no")) : text(code)));
  return named.length > 0 ? separate(named) : [say("noneTicked")];
}

/** An element for each answer. */
const answersWords = (answers) => answers.map((answer) => el("span", {}, ...answerWords(answer)));

const separate = (parts) => parts.flatMap((part, i) => (i > 0 ? [say("comma"), part] : [part]));

// -- the sheet -----------------------------------------------------------------------------------------------------------

function sheet() {
  const { results: estimates } = publication;
  const cohorts = estimates.results.flatMap((result) => result.cohorts);
  const leans = estimates.caution && !cohorts.some((cohort) => cohort.warning);
  return [
    el("h1", {}, inCampaignLanguage(ownText(publication.title))),
    introduction(),
    leans && el("p", { class: "warning" }, say("leansOnPrior")),
    el("div", { class: "results" }, ...inBlocks(estimates.results).map(figures)),
    el(
      "div",
      { class: "remarks" },
      section("howTitle", ...method(cohorts.filter((cohort) => !cohort.withheld))),
      section("promisedTitle", ...promise()),
      section("mindTitle", ...limits()),
    ),
    statistics(),
    printedSource(),
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", onclick: () => print() }, say("print")),
      el("a", { class: "button plain", href: `${source}?format=csv`, download: `${id.slice(0, 12)}-results.csv` }, say("computingFigures")),
      el("a", { class: "button plain", href: source, download: `${id.slice(0, 12)}-results.json` }, say("allFigures")),
    ),
  ];
}

/** What a printed sheet can be checked against: its address, which has the id of the campaign. */
const printedSource = () =>
  el("p", { class: "printed" }, ...speak.phrase("sheetAddress", { address: el("bdi", {}, `${location.origin}/published/${publication.results.campaign}`) }));

function introduction() {
  const { asked_by: who, purpose, contact, published, results: estimates } = publication;
  const lines = [
    ["askedBy", ownText(who) && inCampaignLanguage(ownText(who))],
    ["purpose", ownText(purpose) && inCampaignLanguage(ownText(purpose))],
    ["contactName", contact && el("bdi", {}, ...contact.split(/(?<=@)/).flatMap((part, i) => (i > 0 ? [el("wbr"), part] : [part])))],
    ["reportCount", speak.number(estimates.reports)],
    ["publishedOn", el("time", { datetime: published }, speak.moment(new Date(published)))],
  ];
  const line = ([key, value]) => value && el("div", {}, el("dt", {}, say(key)), el("dd", {}, value));
  return el("dl", { class: "introduction" }, ...lines.map(line));
}

/** A block of results: all people together, then each cohort if there are several. A margin is a part of its table. */
function figures(block, place) {
  const cohorts = publication.results.cohorts.map(({ cohort }) => cohort);
  const several = cohorts.length > 1;
  const [{ subjects, option, measured, margin_of: table }] = block;
  const [head, subhead] = table === null ? ["h2", "h3"] : ["h3", "h4"];
  const title = option === null ? titleOf(block[0]) : subjectText({ ...subjects[0], option: null });
  const partOf = (result, cohort) => (cohort === null ? result.total : result.cohorts.find((part) => part.cohort === cohort));
  const parts = (several ? [null, ...cohorts] : cohorts)
    .map((cohort) => ({ cohort, results: block.map((result) => ({ subjects: result.subjects, part: partOf(result, cohort) ?? null })) }))
    .filter(({ results }) => results.some(({ part }) => part !== null));
  return el(
    "section",
    {},
    el(head, {}, inCampaignLanguage(withUnit(title, questionNamed(measured)))),
    ...parts.map(({ cohort, results }, n) => [
      several && el(subhead, {}, cohort === null ? say("everyone") : el("bdi", {}, cohort)),
      figure(results, `-${place}-${n}`),
      table === null && reportsAbout(results),
    ]),
  );
}

/** The estimates of a block, and which of its options are withheld. */
function figure(results, suffix) {
  const isShown = ({ part }) => part !== null && !part.withheld;
  const shown = results.filter(isShown).map(({ part }) => part);
  const text = say("withheldFew", { count: speak.number(publication.results.smallest_count) });
  if (shown.length === 0) return el("p", {}, text);
  const withheld = results.filter((result) => !isShown(result)).map(({ subjects: [{ question, option }] }) => inCampaignLanguage(ownText(questionNamed(question).options[option])));
  const display = joinDisplays(shown.map((part) => part.display));
  const isContradicted = shown.some((part) => part.warning);
  return [
    isContradicted && el("p", { class: "warning" }, say("contradicted")),
    estimateTables(display, suffix, isContradicted ? null : precision(display), inLanguage(shown[0])),
    withheld.length > 0 && el("p", {}, el("strong", {}, ...separate(withheld), ": "), text),
  ];
}

/** How many reports there are about a block; options of one question may have different numbers. */
function reportsAbout(results) {
  const counts = results.filter(({ part }) => part !== null).map(({ part }) => part.reports);
  const [least, most] = [Math.min(...counts), Math.max(...counts)].map((count) => speak.number(count));
  return el("p", { class: "quiet" }, say("reportsAbout", { count: least === most ? least : say("between", { from: least, to: most }) }));
}

/** How precise shares are; other numbers have intervals of their own. */
function precision({ shares, rows }) {
  if (!shares || rows.length === 0 || rows.some(isUntold)) return null;
  const half = Math.max(...rows.flatMap(({ value, lower, upper }) => [value - (lower ?? 0), (upper ?? 1) - value]));
  const points = speak.number(100 * half, { maximumSignificantDigits: 2, roundingMode: "ceil" });
  return el("p", { class: "quiet" }, say("preciseShares", { points, level: level() }));
}

/** Whether an interval has every possible number: it has no ends. */
const isUntold = ({ lower, upper }) => lower === null && upper === null;

const level = () => speak.number(publication.results.level, { style: "percent", maximumFractionDigits: 1 });

/** How this page writes the tables of an estimate. */
const inLanguage = ({ labels, people }) => ({
  words: {
    picture: say("picture"),
    estimate: say("estimate"),
    interval: say("interval"),
    prior: say("prior"),
    numbers: say("numbers"),
    group: say("group"),
  },
  comma: say("comma"),
  head: ({ label_kind: kind, averages_of: number }) =>
    number === null ? say(HEADS[kind]) : say("averageHead", { question: isolated(numberName(number)) }),
  interval: () => say("intervalHead", { level: level() }),
  groupTitle: ({ shares, of, by }) =>
    by.length === 0
      ? say("sharesOfAsked", { question: isolated(ownText(questionAbout(of).text)) })
      : say(shares ? "sharesOf" : "averageOf", {
          question: isolated(shares ? nameOf(of) : numberName(of)),
          groups: isolated(by.map(nameOf).join(" × ")),
        }),
  labels: ({ answers, name }) => (answers.length > 0 ? answersWords(answers) : [statisticName(name, people)]),
  value: (row) => speak.like(row.value, row.value_text),
  ends({ lower, upper, value_text: text }) {
    const [from, to] = [speak.like(lower, text), speak.like(upper, text)];
    return lower === null ? say("atMost", { number: to }) : upper === null ? say("atLeast", { number: from }) : say("between", { from, to });
  },
  untold: (row) => isUntold(row) && say("cannotBeTold"),
  expected: (row) => (row.expected === null ? "" : speak.like(row.expected, row.expected_text)),
  people: ({ people: count }) => say(speak.isOne(count) ? "onePerson" : "people", { count: speak.number(count) }),
  leftOut: ({ left_out: left, rows }) =>
    left && say("someOf", { count: speak.number(rows.length), all: speak.number(labels.length) }),
  percent: (share, places) => speak.number(share, { style: "percent", ...decimals(places) }),
  amount: (value, places) => speak.number(value, decimals(places)),
});

const decimals = (places) => ({ minimumFractionDigits: places, maximumFractionDigits: places });

/** The name of a statistic that is not an answer, of so many people; one that the campaign's makers have named stays as it is. */
function statisticName(name, people) {
  const quantile = /^quantile ([\d.]+)$/.exec(name);
  if (quantile) return say("quantile", { share: speak.number(Number(quantile[1]), { style: "percent" }) });
  if (/^Total of [\d,]+ people$/.test(name)) return say("totalOf", { count: speak.number(Math.round(people)) });
  const mean = /^mean (.+)$/.exec(name);
  if (mean) return say("averageHead", { question: isolated(numberName(mean[1])) });
  if (name === "Everyone") return say("everyone");
  if (name === "Average per person" || name === "mean") return say("averagePerPerson");
  return el("bdi", { lang: "en" }, name);
}

function method(shown) {
  const hasPrior = shown.some(({ display }) => [...display.rows, ...display.numbers].some((row) => row.expected !== null));
  const drawn = drawnText();
  const methods = new Set(shown.map((part) => part.method));
  return [
    paragraph("how"),
    methods.has("mle") && paragraph("possible"),
    methods.has("mmse") && paragraph("alsoExpected"),
    drawn && paragraph(drawn),
    hasPrior && paragraph("priorColumn", { prior: say("prior") }),
  ].filter(Boolean);
}

/** What to say if questions were drawn for each person: a submission has fewer reports than there are parts of the form. */
function drawnText() {
  const { cohorts, results } = publication.results;
  const parts = results.filter((result) => result.margin_of === null).flatMap((result) => result.cohorts);
  const counts = cohorts.map(({ cohort, reports }) => {
    const own = parts.filter((part) => part.cohort === cohort);
    return { sent: sum(own.map((part) => part.reports)), all: own.length * reports, reports };
  });
  if (counts.every(({ sent, all }) => sent === all)) return null;
  return counts.every(({ sent, reports }) => sent === reports) ? "drawnOne" : "drawnSome";
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function promise() {
  const { cohorts } = publication.results;
  const most = (name) => Math.max(...cohorts.map((cohort) => cohort.privacy[name] ?? Infinity));
  const [lip, ldp] = [most("lip"), most("ldp")];
  const factor = (value) => el("strong", {}, speak.factor(value));
  return [
    lip < ldp && paragraph("promisedKnown", { factor: factor(lip) }),
    Number.isFinite(ldp) ? paragraph("promisedAny", { factor: factor(ldp) }) : paragraph("promisedInPart"),
  ].filter(Boolean);
}

function limits() {
  const { smallest_count: least, admission } = publication.results;
  const most = publication.most_reports;
  return [
    paragraph(admission === "invitation" ? "admittedInvited" : "admittedOpen"),
    most !== null && paragraph("atMostReports", { count: speak.number(most) }),
    paragraph("aboutPeople"),
    least > 1 && paragraph("nothingBelow", { count: speak.number(least) }),
    paragraph("madeOnce"),
  ].filter(Boolean);
}

/** For statisticians, in English: levels, the method of each figure, and how the reports fit the prior. */
function statistics() {
  const { results: estimates } = publication;
  const several = estimates.cohorts.length > 1;
  const notes = estimates.results.flatMap((result) =>
    result.cohorts
      .filter((part) => !part.withheld)
      .map((part) => {
        const name = el("strong", {}, inCampaignLanguage(titleOf(result)), several && el("bdi", {}, ` (${part.cohort})`));
        return el("p", { class: "quiet" }, name, " ", part.notes.join(" "));
      }),
  );
  return el(
    "details",
    {},
    el("summary", {}, say("statisticians")),
    el("div", { lang: "en", dir: "ltr" }, levelTable(estimates), ...notes),
    paragraph("campaignId", { id: el("code", {}, estimates.campaign) }),
  );
}

show().catch(() => {
  draw = () => put(el("h1", {}, say("notLoadedTitle")), paragraph("notLoaded"));
  draw();
});

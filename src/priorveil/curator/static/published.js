// The sheet of published results: the figures, how they came about, what was promised, and what they do not say. It speaks the language
// of the reader; the campaign's own texts are in as many languages as it gives. All of them are in one document.

import { el } from "/static/dom.js";
import { estimateTables, inBlocks, joinDisplays } from "/static/histogram.js";
import { bestLanguage, direction, nameOfLanguage, offeredLanguages, speaker } from "/static/language.js";
import { levelTable } from "/static/levels.js";

const NOT_ASKED = "not asked"; // the level of a question that was skipped
const RANGE = /^[[(](-?[\d.e+-]+), (-?[\d.e+-]+)[\])]$/; // the name of a range of numbers

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
  offerLanguages([]);
  const response = await fetch(source);
  if (!response.ok) {
    const { detail } = await response.json().catch(() => ({}));
    draw = () => put(el("h1", {}, say("noResultsTitle")), el("p", {}, say("serverSays"), " ", el("bdi", { lang: "en" }, `${detail ?? response.status}`)));
  } else {
    publication = await response.json();
    offerLanguages(publication.languages);
    draw = () => put(...sheet());
  }
  draw();
}

function offerLanguages(campaign) {
  const offered = offeredLanguages(campaign);
  const chosen = bestLanguage(navigator.languages, offered) ?? campaign[0] ?? "en";
  const option = (tag) => el("option", { value: tag, lang: tag, dir: direction(tag), selected: tag === chosen }, nameOfLanguage(tag));
  languages.replaceChildren(...offered.map(option));
  useLanguage(chosen);
}

function useLanguage(tag) {
  speak = speaker(tag, navigator.languages);
  document.documentElement.lang = speak.language;
  document.documentElement.dir = speak.direction;
  document.querySelector("#language-name").textContent = say("language");
  document.title = publication === null ? say("sheetTitle") : `${say("sheetTitle")} · ${ownText(publication.title)}`;
}

languages.addEventListener("change", () => {
  useLanguage(languages.value);
  draw();
});

// -- the campaign's own texts ------------------------------------------------------------------------------------------

const campaignLanguage = () => bestLanguage([languages.value, speak.language], publication.languages) ?? publication.languages[0];
const ownText = (texts) => texts[campaignLanguage()] ?? "";

/** A text of the campaign, marked with its language. That may be wrong: what begins from right to left is written so. */
function marked(text, tag = "bdi") {
  const language = campaignLanguage();
  return el(tag, { lang: language, dir: direction(language) === "rtl" ? "rtl" : "auto" }, text);
}

const questionOf = (attribute) =>
  publication.questions.find(({ name, kind }) => (kind === "choices" ? attribute.startsWith(`${name}/`) : attribute === name));

const optionOf = (question, attribute) => question.options[attribute.slice(question.name.length + 1)];

/** The question that gives an attribute; of "tick all that apply" with the option. */
function nameOf(attribute) {
  const question = questionOf(attribute);
  const text = ownText(question.text);
  return question.kind === "choices" ? `${text} ${ownText(optionOf(question, attribute))}` : text;
}

/** The questions of a result; one of "tick all that apply" has its option with it, if it is the only one. */
function titleOf({ attributes }) {
  const isShared = (attribute) => attributes.filter((other) => questionOf(other) === questionOf(attribute)).length > 1;
  const names = attributes.map((attribute) => (isShared(attribute) ? ownText(questionOf(attribute).text) : nameOf(attribute)));
  return [...new Set(names)].join(" × ");
}

const withUnit = (text, unit) => (unit ? `${text} (${unit})` : text);

/** The question that gives a number, with its unit. */
const numberName = (attribute) => withUnit(nameOf(attribute), ownText(questionOf(attribute).unit));

/** The unit of the only number of a result, if it has one. */
function unitOf({ questions, unit }) {
  const numbers = publication.questions.filter(({ name, kind }) => kind === "number" && questions.includes(name));
  return unit && numbers.length === 1 ? ownText(numbers[0].unit) : "";
}

/** The level of a choice or a number, in words. */
function levelWords(attribute, level) {
  const question = questionOf(attribute);
  if (question.kind === "choice" && level in question.options) return marked(ownText(question.options[level]));
  if (level === NOT_ASKED) return say("notAsked");
  const range = RANGE.exec(level);
  return range ? say("between", { from: speak.exact(Number(range[1])), to: speak.exact(Number(range[2])) }) : el("bdi", {}, level);
}

/** Levels by attribute, in words: an element for each question. A level of null stands for everybody who was asked. */
const levelsWords = (levels) =>
  [...new Set(Object.keys(levels).map(questionOf))].map((question) => {
    const own = Object.keys(levels).filter((attribute) => questionOf(attribute) === question);
    if (own.some((attribute) => levels[attribute] === null)) return el("span", {}, marked(ownText(question.text)));
    return el("span", {}, ...(question.kind === "choices" ? tickedWords(question, own, levels) : [levelWords(own[0], levels[own[0]])]));
  });

/** Of "tick all that apply" the options that were ticked, or what is known of some of them. */
function tickedWords(question, attributes, levels) {
  if (attributes.some((attribute) => levels[attribute] === NOT_ASKED)) return [say("notAsked")];
  const option = (attribute) => marked(ownText(optionOf(question, attribute)));
  const ticked = attributes.filter((attribute) => levels[attribute] === "yes");
  if (attributes.length < Object.keys(question.options).length)
    return joined(attributes.map((attribute) => (ticked.includes(attribute) ? option(attribute) : el("span", {}, option(attribute), ": ", say("no")))));
  return ticked.length > 0 ? joined(ticked.map(option)) : [say("noneTicked")];
}

const joined = (parts, comma = say("comma")) => parts.flatMap((part, i) => (i > 0 ? [comma, part] : [part]));

// -- the sheet -----------------------------------------------------------------------------------------------------------

function sheet() {
  const { results: estimates } = publication;
  const cohorts = estimates.results.flatMap((result) => result.cohorts);
  const leans = estimates.caution && !cohorts.some((cohort) => cohort.warning);
  return [
    el("h1", {}, marked(ownText(publication.title))),
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
    ["askedBy", ownText(who) && marked(ownText(who))],
    ["purpose", ownText(purpose) && marked(ownText(purpose))],
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
  const [{ attributes, questions, option, margin_of: table }] = block;
  const ticked = option !== null ? "ticked" : attributes.length > 1 && questions.length === 1 ? "tickedSet" : null;
  const [head, subhead] = table === null ? ["h2", "h3"] : ["h3", "h4"];
  const title = option === null ? titleOf(block[0]) : ownText(questionOf(block[0].attributes[0]).text);
  const partOf = (result, cohort) => (cohort === null ? result.total : result.cohorts.find((part) => part.cohort === cohort));
  const parts = (several ? [null, ...cohorts] : cohorts)
    .map((cohort) => ({ cohort, results: block.map((result) => ({ attributes: result.attributes, part: partOf(result, cohort) ?? null })) }))
    .filter(({ results }) => results.some(({ part }) => part !== null));
  return el(
    "section",
    {},
    el(head, {}, marked(withUnit(title, unitOf(block[0])))),
    ...parts.map(({ cohort, results }, n) => [
      several && el(subhead, {}, cohort === null ? say("everyone") : el("bdi", {}, cohort)),
      figure(results, ticked, `-${place}-${n}`),
      table === null && reportsAbout(results),
    ]),
  );
}

/** The estimates of a block, and which of its options are withheld; `ticked` is the head of "tick all that apply". */
function figure(results, ticked, suffix) {
  const isShown = ({ part }) => part !== null && !part.withheld;
  const shown = results.filter(isShown).map(({ part }) => part);
  const text = say("withheldFew", { count: speak.number(publication.results.smallest_count) });
  if (shown.length === 0) return el("p", {}, text);
  const withheld = results.filter((result) => !isShown(result)).map(({ attributes: [attribute] }) => levelsWords({ [attribute]: "yes" }));
  const display = joinDisplays(shown.map((part) => part.display));
  const isContradicted = shown.some((part) => part.warning);
  return [
    isContradicted && el("p", { class: "warning" }, say("contradicted")),
    estimateTables(display, suffix, inLanguage(shown[0], ticked)),
    withheld.length > 0 && el("p", {}, el("strong", {}, ...joined(withheld), ": "), text),
    !isContradicted && precision(display),
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
  if (!shares || rows.length === 0 || rows.some(({ lower, upper }) => lower === null || upper === null)) return null;
  const half = Math.max(...rows.map(({ lower, upper }) => (upper - lower) / 2));
  const points = speak.number(100 * half, { maximumSignificantDigits: 2, roundingMode: "ceil" });
  return el("p", { class: "quiet" }, say("preciseShares", { points, level: level() }));
}

const level = () => speak.number(publication.results.level, { style: "percent", maximumFractionDigits: 1 });

/** How this page writes a table of estimates. */
const inLanguage = ({ labels, withheld_groups: groups }, ticked) => ({
  words: {
    picture: say("picture"),
    estimate: say("estimate"),
    interval: say("interval"),
    prior: say("prior"),
    numbers: say("numbers"),
    group: say("group"),
  },
  comma: say("comma"),
  head: ({ shares, averages_of: number }) =>
    number === null ? say(ticked ?? (shares ? "answer" : "quantity")) : say("averageHead", { question: numberName(number) }),
  interval: () => say("intervalHead", { level: level() }),
  groupTitle: ({ shares, of, by }) =>
    by.length === 0
      ? say("sharesOfAsked", { question: ownText(questionOf(of).text) })
      : say(shares ? "sharesOf" : "averageOf", { question: shares ? nameOf(of) : numberName(of), groups: by.map(nameOf).join(" × ") }),
  labels: (row) => (row.words.length > 0 ? levelsWords(row.levels) : [statisticName(row.name)]),
  value: (row) => speak.like(row.value, row.value_text),
  ends: ({ lower, upper, value_text: text }) =>
    lower === null || upper === null
      ? say("notBounded")
      : say("between", { from: speak.like(lower, text), to: speak.like(upper, text) }),
  expected: (row) => (row.expected === null ? "" : speak.like(row.expected, row.expected_text)),
  people: (row) => peopleText(row.people_text),
  leftOut: ({ left_out: left, rows }) =>
    left && say("largestOf", { count: speak.number(rows.length), all: speak.number(labels.length) }),
  withheld: ({ withheld }) => withheld && el("span", {}, ...speak.phrase("withheldGroups", withheldValues(groups))),
  percent: (share, places) => speak.number(share, { style: "percent", ...decimals(places) }),
  amount: (value, places) => speak.number(value, decimals(places)),
});

const decimals = (places) => ({ minimumFractionDigits: places, maximumFractionDigits: places });

const withheldValues = (groups) => ({
  groups: el("span", {}, ...joined(groups.map((group) => el("span", {}, ...joined(levelsWords(group)))), "; ")),
  count: speak.number(publication.results.smallest_count),
});

/** A number of people; the curator writes it in English. */
function peopleText(text) {
  const count = Number(text.replace(/[^\d-]/g, ""));
  return say(speak.isOne(count) ? "onePerson" : "people", { count: speak.number(count) });
}

/** The name of a statistic that is not an answer; one that the campaign's makers have named stays as it is. */
function statisticName(name) {
  const quantile = /^quantile ([\d.]+)$/.exec(name);
  if (quantile) return say("quantile", { share: speak.number(Number(quantile[1]), { style: "percent" }) });
  const total = /^Total of ([\d,]+) people$/.exec(name);
  if (total) return say("totalOf", { count: speak.number(Number(total[1].replaceAll(",", ""))) });
  const mean = /^mean (.+)$/.exec(name);
  if (mean) return say("averageHead", { question: numberName(mean[1]) });
  if (name === "Everyone") return say("everyone");
  if (name === "Average per person" || name === "mean") return say("averagePerPerson");
  return el("bdi", { lang: "en" }, name);
}

function method(shown) {
  const hasPrior = shown.some(({ display }) => [...display.rows, ...display.numbers].some((row) => row.expected !== null));
  const drawn = drawnText();
  return [paragraph("how"), drawn && paragraph(drawn), hasPrior && paragraph("priorColumn", { prior: say("prior") })].filter(Boolean);
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
        const name = el("strong", {}, marked(titleOf(result)), several && el("bdi", {}, ` (${part.cohort})`));
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

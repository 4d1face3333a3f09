// The figures of a result document as tables with pictures, in the words of the survey and in the language of the page.

import { el } from "/static/dom.js";
import { estimateTables, groupBy } from "/static/histogram.js";

const MOST = 200; // rows of a table
/** The tables below the answer, by kind: their pictures, bars of shares or points of numbers, and the keys of their titles. */
const GROUPED = {
  average: { picture: "points", title: "averageOf" },
  "share within": { picture: "bars", title: "sharesOf" },
  "share among": { picture: "bars", title: "sharesOfAsked" },
};
const DIGITS = 5; // of a number whose interval does not say how many are worth showing

/** The findings in blocks: the options of one question "tick all that apply" stand together, every other finding alone. */
export const inBlocks = (findings, words) =>
  groupBy(findings, ({ attributes, margin_of: table }) =>
    isOption(attributes, words) ? [words.questionAbout(attributes[0]).name, table] : [attributes, table],
  );

const isOption = (attributes, words) => attributes.length === 1 && words.optionOf(attributes[0]) !== null;

/** The questions of a block, with the unit of their numbers; of options the question that they belong to. */
export function blockTitle(block, words) {
  const { attributes } = block[0];
  const question = isOption(attributes, words) && words.questionAbout(attributes[0]);
  const title = question ? words.own(question.text) : words.titleOf(attributes);
  return words.withUnit(title, block.map(measuredIn).find(Boolean) ?? null);
}

/**
 * The tables of a block of findings with figures; those of options have a row each. `precision` is a sentence below the first table.
 */
export function figureTables(block, suffix, precision, words, speak, confidence) {
  const page = pageIn(words, speak, confidence);
  const [first, ...others] = block.map((found) => display(found, words, speak));
  const groups = [first, ...others].flatMap((one) => one.groups);
  const joined = {
    ...first,
    rows: [first, ...others].flatMap(({ rows }) => rows),
    groups:
      others.length > 0 && groups.length > 0 ? [{ ...groups[0], rows: groups.flatMap(({ rows }) => rows) }] : groups,
  };
  return estimateTables(joined, suffix, precision, page);
}

/** The attribute that the numbers of a finding are; null if they are not about one. */
const measuredIn = ({ attributes, figures }) =>
  answerAverage(figures)?.of ?? (attributes.length === 1 ? attributes[0] : null);

const answerAverage = (figures) =>
  figures?.statistic === "average of a group" ? figures.tables.find(({ kind }) => kind === "average") : undefined;

/** What a finding shows: the rows of its first table and its picture, the mean or quantiles of numbers, and tables of groups. */
function display(found, words, speak) {
  const { attributes, figures } = found;
  const byKind = (kind) => figures.tables.filter((table) => table.kind === kind);
  const average = answerAverage(figures);
  const people = byKind("people");
  const head = headOf(attributes, figures, average, words, speak);
  const rowsOf = (table) => tableRows(table, figures, words).filter(({ levels }) => !words.isSpare(levels));
  const first = people.length > 0 ? people : average ? [average] : [];
  const rows = first.length > 0 ? first.flatMap(rowsOf) : amounts(found, words, speak);
  const everyone = average ? byKind("mean").filter(({ of }) => of === average.of) : [];
  const numbers = [...byKind("mean").filter((table) => !everyone.includes(table)), ...byKind("quantile")];
  const all = first.length > 0 ? first.flatMap((table) => table.rows).length : rows.length;
  return {
    head,
    picture: people.length > 0 ? "bars" : average ? "points" : null,
    rows: [...rows, ...everyone.flatMap((table) => named(table, figures, words, () => [speak.say("everyone")]))],
    selection: all > MOST ? speak.say("someOf", { count: speak.number(MOST), all: speak.number(all) }) : null,
    numbers: numbers.flatMap((table) =>
      named(table, figures, words, (row) => [numberLabel(found, table, row, words, speak)]),
    ),
    groups: figures.tables
      .filter((table) => table.kind in GROUPED && table !== average)
      .map((table) => groupTable(table, rowsOf(table), attributes, head, words, speak)),
  };
}

function headOf(attributes, { statistic }, average, words, speak) {
  if (average) return speak.say("averageHead", { question: words.isolated(words.numberName(average.of)) });
  if (isOption(attributes, words)) return speak.say("ticked");
  if (attributes.length > 1 && new Set(attributes.map((attribute) => words.questionAbout(attribute))).size === 1)
    return speak.say("tickedSet");
  return speak.say(statistic === "share" ? "answer" : "quantity");
}

/** The rows of a table as they are drawn: all, or those that the prior expects most if the page has no room for all. */
function tableRows(table, { people }, words) {
  const isCount = table.kind === "people";
  const places = table.rows.length <= MOST ? null : table.shown_first.slice(0, MOST);
  const rows = places === null || places.length === 0 ? table.rows.slice(0, MOST) : places.map((at) => table.rows[at]);
  return rows.map((row) => {
    const levels = Object.fromEntries(table.attributes.map((attribute, i) => [attribute, row.label[i]]));
    const scale = (number) => (number === null ? null : isCount ? number / people : number);
    const isKnown = row.least !== null && row.least === row.most;
    return {
      levels,
      answers: words.answersOf(levels),
      label: table.attributes.length > 0 ? null : row.label.join(", "),
      value: scale(row.value),
      lower: !isKnown && row.low === row.least ? null : scale(row.low),
      upper: !isKnown && row.high === row.most ? null : scale(row.high),
      expected: scale(row.expected),
      isShare: isCount || table.kind.startsWith("share"),
      decimals: row.decimals,
      people: isCount ? Math.round(row.value) : null,
    };
  });
}

/** The rows of a table under other labels. */
const named = (table, figures, words, labelOf) =>
  tableRows(table, figures, words).map((row) => ({ ...row, answers: [], label: labelOf(row) }));

/** Sums over people: each per person, and in total. */
function amounts({ figures }, words, speak) {
  const total = speak.say("totalOf", { count: speak.number(Math.round(figures.people)) });
  const [averages, totals] = [
    ["per person", speak.say("averagePerPerson")],
    ["total", total],
  ].map(([kind, name]) =>
    figures.tables
      .filter((table) => table.kind === kind)
      .flatMap((table) => tableRows(table, figures, words))
      .map((row) => ({
        ...row,
        label: figures.statistic === "statistic" && row.label ? [bdi(row.label), ", ", name] : [name],
      })),
  );
  return averages.length > 0 ? averages.flatMap((row, i) => [row, totals[i]]) : totals;
}

const bdi = (text) => el("bdi", { lang: "en" }, text);

function numberLabel({ attributes }, table, { label }, words, speak) {
  if (table.kind === "quantile")
    return speak.say("quantile", { share: speak.number(Number(label), { style: "percent" }) });
  if (attributes.length === 1) return speak.say("averagePerPerson");
  return speak.say("averageHead", { question: words.isolated(words.numberName(table.of)) });
}

/** A table of groups under its title; if there are none, that of the people who were asked. */
function groupTable({ kind, of, by }, rows, attributes, head, words, speak) {
  const { picture, title } = GROUPED[kind];
  if (by.length === 0) {
    const question = words.isolated(words.own(words.questionAbout(attributes[0]).text));
    return { rows, head, picture, title: speak.say(title, { question }) };
  }
  const question = words.isolated(picture === "bars" ? words.nameOf(of) : words.numberName(of));
  const groups = words.isolated(by.map((attribute) => words.nameOf(attribute)).join(" × "));
  return { rows, head: speak.say("group"), picture, title: speak.say(title, { question, groups }) };
}

/** How a page writes the tables. */
function pageIn(words, speak, confidence) {
  const say = speak.say;
  const percent = (share, places) => speak.number(share, { style: "percent", ...exactly(places) });
  const amount = (value, places) => speak.number(value, places === null ? readable(value) : exactly(places));
  const text = (number, { isShare, decimals }) =>
    number === null ? "–" : (isShare ? percent : amount)(number, decimals);
  return {
    words: {
      picture: say("picture"),
      estimate: say("estimate"),
      interval: say("intervalHead", { confidence: confidenceText(speak, confidence) }),
      prior: say("prior"),
      numbers: say("numbers"),
    },
    separate: (parts) => words.separate(parts),
    labels: ({ answers, label }) =>
      answers.length > 0 ? words.answersWords(answers) : Array.isArray(label) ? label : [words.statisticWords(label)],
    value: (row) => text(row.value, row),
    ends(row) {
      const [from, to] = [text(row.lower, row), text(row.upper, row)];
      if (row.lower === null) return say("atMost", { number: to });
      return row.upper === null ? say("atLeast", { number: from }) : say("between", { from, to });
    },
    untold: ({ lower, upper }) => (lower === null && upper === null ? say("cannotBeTold") : null),
    expected: (row) => (row.expected === null ? "" : text(row.expected, row)),
    people: ({ people: count }) => say(speak.isOne(count) ? "onePerson" : "people", { count: speak.number(count) }),
    percent,
    amount,
  };
}

const exactly = (places) => ({ minimumFractionDigits: places, maximumFractionDigits: places });

const readable = (value) =>
  Math.abs(value) >= 10 ** (DIGITS - 1) ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: DIGITS };

/** A confidence, in percent. */
export const confidenceText = (speak, confidence) =>
  speak.number(confidence, { style: "percent", maximumFractionDigits: 1 });

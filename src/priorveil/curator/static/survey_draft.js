// A survey while it is written: what the form holds, and the document that the curator reads. The document has the keys of a survey
// in TOML, so that the command line reads it too.

import { newKey } from "/static/form_keys.js";
import { neededRows } from "/static/prior_table.js";
import { KINDS, kindOf, optionsOf } from "/static/survey_kinds.js";
import { numberOf } from "/static/survey_number.js";

/** What people read about the survey, with the words of its field; those that are rarely needed are folded away. */
export const ABOUT = [
  { name: "title", words: "Title" },
  { name: "asked_by", words: "Who asks", hint: "People read this first, such as: The works council." },
  { name: "purpose", words: "Why", hint: "What the answers will be used for." },
  { name: "description", words: "Description", folded: true },
];
export const TEXTS = ABOUT.map(({ name }) => name);
const TIMES = ["opens", "closes", "keep_until"];
const NUMBERS = ["epsilon", "smallest_count", "most_reports"];

// -- what the form holds -----------------------------------------------------------------------------------------------

/** @returns {any} */
export function newDraft() {
  const texts = Object.fromEntries(TEXTS.map((name) => [name, {}]));
  const blank = Object.fromEntries([...TIMES, ...NUMBERS, "contact"].map((name) => [name, ""]));
  return {
    ...texts,
    ...blank,
    languages: ["en"],
    epsilon: "1",
    admission: "open",
    questions: [newQuestion("q1")],
    groups: [],
  };
}

/** What is known about the answers: nothing, shares that are typed, or a table. */
const newPrior = () => ({ prior: "unknown", table: null, public: false });

/** A question keeps what was written for every kind, in case somebody changes it twice. */
export function newQuestion(name) {
  const blanks = Object.values(KINDS).map((kind) => kind.blank());
  const texts = { text: {}, hint: {}, unit: {} };
  const condition = { gate: "", gateOptions: [] };
  return Object.assign(
    { key: newKey(), name, kind: "yes-no", weight: "", ...texts, ...condition },
    ...blanks,
    newPrior(),
  );
}

export const newGroup = () => ({ key: newKey(), questions: [], query: "table", ...newPrior() });

/** A name that no other question has. */
export function freeName(draft) {
  let number = draft.questions.length + 1;
  while (draft.questions.some(({ name }) => name === `q${number}`)) number += 1;
  return `q${number}`;
}

/** The earlier questions that a question may depend on. */
export function gatesFor(draft, question) {
  const earlier = draft.questions.slice(0, draft.questions.indexOf(question));
  return earlier.filter((other) => kindOf(other).isGate);
}

/** The earlier question that decides whether a question is asked; undefined if it is always asked. */
export const gateOf = (draft, question) => gatesFor(draft, question).find(({ key }) => key === question.gate);

export const groupOf = (draft, question) => draft.groups.find(({ questions }) => questions.includes(question.key));

/** The questions of a group, in their order. */
export const groupQuestions = (draft, group) => draft.questions.filter(({ key }) => group.questions.includes(key));

/** What can be asked about questions that are designed together: a table, or about one of them by the others, with words. */
export function groupQueries(draft, group) {
  const questions = groupQuestions(draft, group);
  const table = ["table", "A table of all combinations"];
  if (questions.length < 2) return [table];
  const possible = questions.filter((question) => kindOf(question).canBeAskedAbout(question));
  return [table, ...possible.map((question) => [question.key, queryWords(draft, question, questions)])];
}

function queryWords(draft, question, questions) {
  const numbered = (each) => `question ${draft.questions.indexOf(each) + 1}`;
  const others = questions.filter((other) => other !== question).map(numbered);
  return `The ${kindOf(question).statistic.words} ${numbered(question)}, by ${others.join(" and ")}`;
}

/** The query about one of these questions, as a survey in a file has it. */
function queryAbout(question, questions) {
  const others = questions.filter((other) => other !== question).map(({ name }) => name.trim());
  return `${kindOf(question).statistic.query} of ${question.name.trim()} by ${others.join(", ")}`;
}

// -- the document ------------------------------------------------------------------------------------------------------

/** The survey as the curator and the command line read it. */
export function toDocument(draft) {
  const { languages } = draft;
  const tables = {};
  const document = { languages: [...languages], title: allOf(draft.title, languages) };
  for (const name of TEXTS.slice(1)) addTexts(document, name, draft[name], languages);
  for (const name of NUMBERS) if (draft[name] !== "") document[name] = numberOf(draft[name]);
  for (const name of TIMES) if (draft[name]) document[name] = inUtc(draft[name]);
  if (draft.contact.trim()) document.contact = draft.contact.trim();
  if (draft.admission !== "open") document.admission = draft.admission;
  document.question = draft.questions.map((question) => questionDocument(draft, question, tables));
  if (draft.groups.length > 0) document.together = draft.groups.map((group) => groupDocument(draft, group, tables));
  if (Object.keys(tables).length > 0) document.tables = tables;
  return document;
}

function questionDocument(draft, question, tables) {
  const { languages } = draft;
  const kind = kindOf(question);
  const document = { name: question.name.trim(), text: allOf(question.text, languages), kind: question.kind };
  addTexts(document, "hint", question.hint, languages);
  Object.assign(
    document,
    kind.document(question, languages, (texts) => allOf(texts, languages)),
  );
  const gate = gateOf(draft, question);
  if (gate) {
    const codes = optionsOf(gate, languages).filter(({ option }) => question.gateOptions.includes(option.key));
    document.asked_if = { [gate.name.trim()]: codes.map(({ code }) => code) };
  }
  if (groupOf(draft, question)) return document; // how it is designed is said there
  const query = kind.query(question, gate);
  if (query !== null) document.query = query;
  if (question.weight !== "") document.weight = numberOf(question.weight);
  document.prior = priorDocument(draft, question, [question], tables);
  return document;
}

function groupDocument(draft, group, tables) {
  const questions = groupQuestions(draft, group);
  const isOffered = groupQueries(draft, group).some(([key]) => key === group.query);
  const asked = isOffered && questions.find(({ key }) => key === group.query);
  return {
    questions: questions.map(({ name }) => name.trim()),
    query: asked ? queryAbout(asked, questions) : "table",
    prior: priorDocument(draft, group, questions, tables),
  };
}

function priorDocument(draft, owner, questions, tables) {
  if (owner.prior === "typed") return kindOf(owner).shares(owner, draft.languages);
  if (owner.prior !== "table" || owner.table === null) return owner.prior === "table" ? { sheet: "" } : "unknown";
  const rows = neededRows(
    owner.table,
    questions.map((question) => columnOf(draft, question)),
  );
  let name = owner.table.name;
  for (let number = 2; name in tables; number += 1) name = `${owner.table.name} (${number})`;
  tables[name] = rows;
  return { sheet: name, ...(owner.public && { public: true }) };
}

/** How a table calls a question and its options: by name and code, or by their texts. */
export function columnOf(draft, question) {
  const kind = kindOf(question);
  const codes = new Map();
  for (const { option, code } of optionsOf(question, draft.languages)) {
    codes.set(kind.optionText(question, option, draft.languages).toLowerCase(), code);
    codes.set(code.toLowerCase(), code);
  }
  return { name: question.name.trim(), kind, codes };
}

const allOf = (texts, languages) => Object.fromEntries(languages.map((tag) => [tag, (texts[tag] ?? "").trim()]));

function addTexts(document, name, texts, languages) {
  const all = allOf(texts, languages);
  if (Object.values(all).some(Boolean)) document[name] = all;
}

function inUtc(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? local : date.toISOString().replace(".000", "");
}

function inLocalTime(time) {
  const date = new Date(time);
  return new Date(date.getTime() - 60_000 * date.getTimezoneOffset()).toISOString().slice(0, 16);
}

// -- back into the form ------------------------------------------------------------------------------------------------

/** The draft of a document that this form has written; null if it holds anything that the form does not show. */
export function toDraft(document) {
  try {
    const draft = readDocument(document);
    return sorted(toDocument(draft)) === sorted(document) ? draft : null;
  } catch {
    return null; // a part of it has another shape
  }
}

/** A text that is the same for documents that hold the same. Options and rows keep their order. */
const sorted = (value) =>
  JSON.stringify(value, (name, part) =>
    part?.constructor === Object && name !== "options" ? Object.fromEntries(Object.entries(part).sort()) : part,
  );

function readDocument(document) {
  const draft = newDraft();
  draft.languages = [...document.languages];
  for (const name of TEXTS) draft[name] = { ...document[name] };
  for (const name of NUMBERS) draft[name] = String(document[name] ?? "");
  for (const name of TIMES) draft[name] = document[name] ? inLocalTime(document[name]) : "";
  draft.contact = document.contact ?? "";
  draft.admission = document.admission ?? "open";
  draft.questions = [];
  for (const entry of document.question) draft.questions.push(readQuestion(draft, entry, document.tables));
  const named = (name) => draft.questions.find((question) => question.name === name);
  draft.groups = (document.together ?? []).map((entry) => {
    const about = /^(?:mean|shares) of (\S+) by /.exec(entry.query);
    const group = {
      ...newGroup(),
      questions: entry.questions.map((name) => named(name).key),
      query: about ? named(about[1]).key : "table",
    };
    readPrior(group, entry.prior, document.tables);
    return group;
  });
  return draft;
}

function readQuestion(draft, entry, tables) {
  const question = newQuestion(entry.name);
  question.kind = entry.kind;
  for (const name of ["text", "hint", "unit"]) question[name] = { ...entry[name] };
  kindOf(question).read(question, entry);
  question.weight = String(entry.weight ?? "");
  const [[gateName, codes] = []] = Object.entries(entry.asked_if ?? {});
  const gate = draft.questions.find(({ name }) => name === gateName);
  if (gate) {
    question.gate = gate.key;
    question.gateOptions = optionsOf(gate, draft.languages)
      .filter(({ code }) => codes.includes(code))
      .map(({ option }) => option.key);
  }
  readPrior(question, entry.prior ?? "unknown", tables, draft.languages);
  return question;
}

function readPrior(owner, prior, tables, languages) {
  if (prior === "unknown") return;
  if (!("sheet" in prior)) {
    owner.prior = "typed";
    return kindOf(owner).readShares(owner, prior, languages);
  }
  owner.prior = "table";
  owner.public = prior.public ?? false;
  if (prior.sheet === "") return;
  const rows = tables[prior.sheet];
  owner.table = { name: prior.sheet, columns: Object.keys(rows[0]), rows: rows.map(Object.values) };
}

// A survey while it is written: what the form holds, and the document that the curator reads. The document has the keys of a survey
// in TOML, so that the command line reads it too.

import { neededRows } from "/static/prior_table.js";

const WORDS = {
  en: ["Yes", "No", "I prefer not to say"],
  de: ["Ja", "Nein", "Keine Angabe"],
  fr: ["Oui", "Non", "Je préfère ne pas répondre"],
  es: ["Sí", "No", "Prefiero no responder"],
  ar: ["نعم", "لا", "أفضّل عدم الإجابة"],
};
const TEXTS = ["title", "description", "asked_by", "purpose"];
const TIMES = ["opens", "closes", "keep_until"];
const NUMBERS = ["epsilon", "smallest_count", "most_reports"];

let made = 0;
const newKey = () => `k${(made += 1)}`; // of questions and options, which move and are renamed

// -- what the form holds -----------------------------------------------------------------------------------------------

export function newDraft() {
  const texts = Object.fromEntries(TEXTS.map((name) => [name, {}]));
  const blank = Object.fromEntries([...TIMES, ...NUMBERS, "contact"].map((name) => [name, ""]));
  return { ...texts, ...blank, languages: ["en"], epsilon: "1", admission: "open", questions: [newQuestion("q1")], groups: [] };
}

export const newOption = (code = "", text = {}, share = "") => ({ key: newKey(), code, text, share });
export const newRange = (from = "", to = "", share = "") => ({ from, to, share });

/** What is known about the answers: nothing, shares that are typed, or a table. */
const newPrior = () => ({ prior: "unknown", table: null, public: false });

export function newQuestion(name) {
  const lists = { yesNo: [newOption("yes"), newOption("no")], options: [newOption(), newOption()], ranges: [newRange(), newRange()] };
  const texts = { text: {}, hint: {}, unit: {} };
  return { key: newKey(), name, kind: "yes-no", ...texts, ...lists, ...newPrior(), gate: "", gateOptions: [], from: "", to: "", query: "mean", weight: "" };
}

export const newGroup = () => ({ key: newKey(), questions: [], query: "table", ...newPrior() });

/** A name that no other question has. */
export function freeName(draft) {
  let number = draft.questions.length + 1;
  while (draft.questions.some(({ name }) => name === `q${number}`)) number += 1;
  return `q${number}`;
}

/** The options of a question, with their codes: those that were typed, or short forms of the texts. */
export function optionsOf(question, languages) {
  if (question.kind === "number") return [];
  if (question.kind === "yes-no") return question.yesNo.map((option) => ({ option, code: option.code }));
  const codes = new Set();
  return question.options.map((option, place) => {
    const base = option.code.trim() || shortForm(option.text[languages[0]]) || `option_${place + 1}`;
    let code = base;
    for (let number = 2; !option.code.trim() && codes.has(code); number += 1) code = `${base}_${number}`;
    codes.add(code);
    return { option, code };
  });
}

const shortForm = (text = "") =>
  text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 30);

/** What people read for an option: yes and no have words of their own in some languages. */
export function optionText(question, option, languages) {
  const [language] = languages;
  const place = question.yesNo.indexOf(option);
  if (question.kind === "yes-no") return wordsOf(language)?.[place] ?? option.code;
  return option.text[language]?.trim() || `Option ${question.options.indexOf(option) + 1}`;
}

const wordsOf = (language) => WORDS[language.toLowerCase().split("-")[0]];
const wordIn = (languages, place) => Object.fromEntries(languages.map((tag) => [tag, wordsOf(tag)?.[place] ?? ""]));

/** Add the option not to say; a yes-no question becomes a choice. */
export function addRefusal(question, languages) {
  if (question.kind === "yes-no") {
    question.kind = "choice";
    question.options = question.yesNo.map((option, place) => ({ ...option, text: wordIn(languages, place) }));
    question.yesNo = [newOption("yes"), newOption("no")];
  }
  question.options.push(newOption("no_answer", wordIn(languages, 2)));
}

export const hasRefusal = (question) => question.kind !== "yes-no" && question.options.some(({ code }) => code === "no_answer");

/** The earlier questions that a question may depend on. */
export function gatesFor(draft, question) {
  const earlier = draft.questions.slice(0, draft.questions.indexOf(question));
  return earlier.filter(({ kind }) => kind === "choice" || kind === "yes-no");
}

export const groupOf = (draft, question) => draft.groups.find(({ questions }) => questions.includes(question.key));

/** The questions of a group, in their order. */
export const groupQuestions = (draft, group) => draft.questions.filter(({ key }) => group.questions.includes(key));

/** What can be asked about questions that are designed together: a table, or about one of them by the others, with words. */
export function groupQueries(draft, group) {
  const questions = groupQuestions(draft, group);
  const table = ["table", "A table of all combinations"];
  if (questions.length < 2) return [table];
  const possible = questions.filter(({ kind, gate }) => kind !== "number" || gate === "");
  return [table, ...possible.map((question) => [question.key, queryWords(draft, question, questions)])];
}

function queryWords(draft, question, questions) {
  const numbered = (each) => `question ${draft.questions.indexOf(each) + 1}`;
  const others = questions.filter((other) => other !== question).map(numbered);
  return `The ${question.kind === "number" ? "average of" : "answers to"} ${numbered(question)}, by ${others.join(" and ")}`;
}

/** The query about one of these questions, as a survey in a file has it. */
function queryAbout(question, questions) {
  const others = questions.filter((other) => other !== question).map(({ name }) => name.trim());
  return `${question.kind === "number" ? "mean" : "shares"} of ${question.name.trim()} by ${others.join(", ")}`;
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
  const document = { name: question.name.trim(), text: allOf(question.text, languages), kind: question.kind };
  addTexts(document, "hint", question.hint, languages);
  if (question.kind === "number") {
    if (question.from !== "" || question.to !== "") document.range = [numberOf(question.from), numberOf(question.to)];
    addTexts(document, "unit", question.unit, languages);
  } else if (question.kind !== "yes-no") {
    document.options = Object.fromEntries(
      optionsOf(question, languages).map(({ option, code }) => [code, allOf(option.text, languages)]),
    );
  }
  const gate = gatesFor(draft, question).find(({ key }) => key === question.gate);
  if (gate) {
    const codes = optionsOf(gate, languages).filter(({ option }) => question.gateOptions.includes(option.key));
    document.asked_if = { [gate.name.trim()]: codes.map(({ code }) => code) };
  }
  if (groupOf(draft, question)) return document; // how it is designed is said there
  if (question.kind === "number" && !gate) document.query = question.query;
  if (question.weight !== "") document.weight = numberOf(question.weight);
  document.prior = priorDocument(draft, question, [question], tables);
  return document;
}

function groupDocument(draft, group, tables) {
  const questions = groupQuestions(draft, group);
  const isOffered = groupQueries(draft, group).some(([key]) => key === group.query);
  const subject = isOffered && questions.find(({ key }) => key === group.query);
  return {
    questions: questions.map(({ name }) => name.trim()),
    query: subject ? queryAbout(subject, questions) : "table",
    prior: priorDocument(draft, group, questions, tables),
  };
}

function priorDocument(draft, owner, questions, tables) {
  if (owner.prior === "typed" && owner.kind === "number") {
    const given = owner.ranges.filter(({ from, to, share }) => from !== "" || to !== "" || share !== "");
    return Object.fromEntries(given.map(({ from, to, share }) => [`${from} to ${to}`, shareOf(share)]));
  }
  if (owner.prior === "typed") {
    const given = optionsOf(owner, draft.languages).filter(({ option }) => option.share !== "");
    return Object.fromEntries(given.map(({ option, code }) => [code, shareOf(option.share)]));
  }
  if (owner.prior !== "table" || owner.table === null) return owner.prior === "table" ? { sheet: "" } : "unknown";
  const rows = neededRows(owner.table, questions.map((question) => columnOf(draft, question)));
  let name = owner.table.name;
  for (let number = 2; name in tables; number += 1) name = `${owner.table.name} (${number})`;
  tables[name] = rows;
  return { sheet: name, ...(owner.public && { public: true }) };
}

/** How a table calls a question and its options: by name and code, or by their texts. */
function columnOf(draft, question) {
  const codes = new Map();
  for (const { option, code } of optionsOf(question, draft.languages)) {
    codes.set(optionText(question, option, draft.languages).toLowerCase(), code);
    codes.set(code.toLowerCase(), code);
  }
  return { name: question.name.trim(), kind: question.kind, codes };
}

const allOf = (texts, languages) => Object.fromEntries(languages.map((tag) => [tag, (texts[tag] ?? "").trim()]));

function addTexts(document, name, texts, languages) {
  const all = allOf(texts, languages);
  if (Object.values(all).some(Boolean)) document[name] = all;
}

const numberOf = (text) => (text === "" || Number.isNaN(Number(text)) ? text : Number(text));
const shareOf = (percent) => (percent === "" ? "" : Number((Number(percent) / 100).toPrecision(12)));
const percentOf = (share) => String(Number((100 * share).toPrecision(12)));

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
    const group = { ...newGroup(), questions: entry.questions.map((name) => named(name).key), query: about ? named(about[1]).key : "table" };
    readPrior(group, entry.prior, document.tables);
    return group;
  });
  return draft;
}

function readQuestion(draft, entry, tables) {
  const question = newQuestion(entry.name);
  question.kind = entry.kind;
  for (const name of ["text", "hint", "unit"]) question[name] = { ...entry[name] };
  if (entry.options) question.options = Object.entries(entry.options).map(([code, text]) => newOption(code, { ...text }));
  [question.from, question.to] = (entry.range ?? ["", ""]).map(String);
  question.query = entry.query ?? "mean";
  question.weight = String(entry.weight ?? "");
  const [[gateName, codes] = []] = Object.entries(entry.asked_if ?? {});
  const gate = draft.questions.find(({ name }) => name === gateName);
  if (gate) {
    question.gate = gate.key;
    question.gateOptions = optionsOf(gate, draft.languages).filter(({ code }) => codes.includes(code)).map(({ option }) => option.key);
  }
  readPrior(question, entry.prior ?? "unknown", tables);
  return question;
}

function readPrior(owner, prior, tables) {
  if (prior === "unknown") return;
  owner.prior = "sheet" in prior ? "table" : "typed";
  if ("sheet" in prior) {
    const rows = tables[prior.sheet];
    owner.table = prior.sheet === "" ? null : { name: prior.sheet, columns: Object.keys(rows[0]), rows: rows.map(Object.values) };
    owner.public = prior.public ?? false;
  } else if (owner.kind === "number") {
    owner.ranges = Object.entries(prior).map(([range, share]) => newRange(...range.split(" to "), percentOf(share)));
  } else {
    const options = owner.kind === "yes-no" ? owner.yesNo : owner.options;
    for (const option of options) if (option.code in prior) option.share = percentOf(prior[option.code]);
  }
}

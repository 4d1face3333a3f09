// The survey form without a page: the document of a draft, the draft of a document, and what leaves the browser.
import assert from "node:assert/strict";
import { test } from "node:test";

import { readTable } from "/static/prior_table.js";
import { newDraft, newQuestion, toDocument, toDraft } from "/static/survey_draft.js";
import { KINDS } from "/static/survey_kinds.js";

/** A draft with a question of this kind. */
function draftOf(kind) {
  const draft = newDraft();
  const question = Object.assign(draft.questions[0], { kind, text: { en: "What?" } });
  draft.title = { en: "T" };
  question.options.forEach((option, place) => Object.assign(option, { code: `c${place}`, text: { en: `${place}` } }));
  return { draft, question };
}

for (const [kind, { title }] of Object.entries(KINDS))
  test(`${title}: a document can be written again`, () => {
    const { draft, question } = draftOf(kind);
    question.prior = "typed";
    const owners = KINDS[kind].shareOwners(question);
    owners.forEach((owner, place) => Object.assign(owner, { from: `${place}`, to: `${place + 1}`, share: "50" }));
    const document = toDocument(draft);
    assert.deepEqual(Object.values(document.question[0].prior), [0.5, 0.5]);
    assert.deepEqual(toDocument(toDraft(document)), document);
    assert.equal(toDraft({ ...document, weight: 2 }), null, "the form does not show it");
  });

test("only a choice decides what is asked, and a number that is not always asked has no query", () => {
  const { draft } = draftOf("choice");
  const number = Object.assign(newQuestion("n"), { kind: "number", gate: draft.questions[0].key });
  draft.questions.push(number);
  assert.deepEqual(Object.keys(toDocument(draft).question[1].asked_if), ["q1"]);
  assert.equal(toDocument(draft).question[1].query, undefined);
  draft.questions[0].kind = "choices";
  assert.equal(toDocument(draft).question[1].asked_if, undefined);
  assert.equal(toDocument(draft).question[1].query, "mean");
});

test("what people wrote is not sent, also if the kind is changed after their table was chosen", () => {
  const { draft, question } = draftOf("choice");
  question.prior = "table";
  question.table = readTable("people.csv", "q1\nc0\nc0\n1234\n");
  const rows = () => toDocument(draft).tables["people.csv"];
  assert.deepEqual(rows(), [
    { q1: "?", count: "1" },
    { q1: "c0", count: "2" },
  ]);
  question.kind = "number";
  assert.deepEqual(rows(), [{ q1: "?", count: "3" }]);
});

test("two tables of one name are kept apart", () => {
  const { draft } = draftOf("choice");
  draft.questions.push(newQuestion("q2"));
  for (const question of draft.questions) {
    question.prior = "table";
    question.table = readTable("people.csv", `${question.name}\nyes\nno\n`);
  }
  const { question, tables } = toDocument(draft);
  const names = question.map(({ prior }) => prior.sheet);
  assert.deepEqual(names, ["people.csv", "people.csv (2)"]);
  assert.deepEqual(
    names.map((name) => Object.keys(tables[name][0])[0]),
    ["q1", "q2"],
  );
});

// Several questions: forms, skip logic, the draw, and the limit of a device.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  BudgetExceeded,
  Client,
  DEFAULT_LIMIT,
  NOT_ASKED,
  PriorveilError,
  contentId,
  readCampaign,
  readForm,
  wordsFrom,
} from "#priorveil";
import { campaign, curator, form, formOf, plan, question, storage } from "../fixtures/campaigns.js";

const ALL = 2 ** 20;
const part = (attributes, name, share = ALL) => ({ attributes, share, plan: plan(name) });
const work = plan("table-distribution").labels;
const region = ["north", "south", "west"];

/** A question about work, one about hours, and one of two drawn: which region (with a gate) or which dose at which age. */
async function survey(change = {}) {
  const questions = [
    question("work", "choice", work),
    question("hours", "number"),
    question("place", "choice", region),
    question("age", "choice", ["young", "old"]),
    question("dose", "choice", ["0.5", "3"]),
  ];
  const everyone = await form(
    [part(["work"], "table-distribution")],
    [part(["hours"], "table-grid")],
    [part(["place"], "table-assumed", ALL / 4), part(["age", "dose"], "table-attributes", (3 * ALL) / 4)],
  );
  return campaign({ questions, cohorts: { everyone }, ...change });
}

const answers = { work: "None", hours: 12.5, place: "south", age: "old", dose: "3" };
/** A plan with three values, under other labels. */
async function relabelled(labels) {
  const document = { ...plan("table-assumed"), labels };
  return { ...document, id: await contentId(document) };
}

const refused = (field) => (error) => error instanceof PriorveilError && error.field.startsWith(field);

test("a submission has the same length for every draw and value", async () => {
  const read = await readCampaign(await survey());
  const own = read.formFor();
  assert.equal(own.width, 1 + 1 + 2);
  const values = read.attributeValues(answers);
  for (const draw of [
    [0, 0, 0],
    [0, 0, 1],
  ]) {
    const report = own.privatize(values, draw);
    assert.match(report, /^[0-9a-f]{64}$/);
    assert.deepEqual(
      own.unpack(report).map(({ at }) => at),
      draw,
    );
    assert.ok(own.accepts(report));
  }
});

test("what a form cannot have made is refused", async () => {
  const own = await readForm((await survey()).cohorts.everyone);
  const word = (text) => text.padEnd(16, "0");
  const [zero, one, far] = [word(""), word("01"), word("ff")];
  assert.ok(own.accepts(zero + zero + zero + zero));
  assert.ok(own.accepts(zero + zero + one + zero));
  for (const wrong of [
    zero.repeat(3),
    zero.repeat(5),
    far + zero + zero + zero,
    zero + zero + word("02") + zero,
    zero + zero + zero + far,
    zero + zero + zero + "f".repeat(16),
    zero.repeat(4).replace(/0$/, "G"),
    0,
    null,
  ])
    assert.ok(!own.accepts(wrong), wrong);
});

test("padding after a shorter report is zero", async () => {
  const own = await readForm(
    await form([part(["a"], "subset-two-words", ALL / 2), part(["b"], "table-two-answers", ALL / 2)]),
  );
  const index = "01".padEnd(16, "0");
  assert.ok(own.accepts(`${index}${"0".repeat(32)}`));
  assert.ok(!own.accepts(`${index}${"0".repeat(31)}1`));
});

test("levels: the largest of one report, LDP where its prior is assumed, and the sum of LDP levels of several", async () => {
  const levels = async (...slots) => (await readForm(await form(...slots))).levels;
  const [a, b] = ["table-distribution", "table-two-answers"];
  const lips = [a, b].map((name) =>
    Math.max(...["lip_upper", "lip_lower"].map((side) => Number(plan(name).certificate[side]))),
  );
  const ldps = [a, b].map((name) => Number(plan(name).certificate.ldp));
  const two = await levels([part(["a"], a)], [part(["b"], b)]);
  for (const side of ["lip", "lipLower", "lipUpper", "ldp"]) assert.equal(two[side], ldps[0] + ldps[1]);
  const drawn = await levels([part(["a"], a, ALL / 2), part(["b"], b, ALL / 2)]);
  assert.deepEqual([drawn.lip, drawn.ldp], [Math.max(...lips), Math.max(...ldps)]);
  const assumed = await levels([part(["a"], "table-assumed")]);
  assert.equal(assumed.lip, Number(plan("table-assumed").certificate.ldp));
});

test("a form with a wrong slot is refused with the field", async () => {
  const good = part(["work"], "table-distribution");
  for (const [field, wrong] of [
    ["slots", await form()],
    ["slots", await form([])],
    ["slots.share", await form([{ ...good, share: ALL - 1 }])],
    ["slots[0][0].share", await form([{ ...good, share: ALL + 1 }])],
    ["slots[0][1].share", await form([good, { ...good, attributes: ["b"], share: -1 }])],
    ["slots.attributes", await form([part(["a", "b"], "table-distribution")])],
    ["slots.attributes", await form([part(["dose", "age"], "table-attributes")])],
    ["slots[0][0].attributes", await form([part([], "table-distribution")])],
    ["slots", await form([part(["a"], "table-secret")], [good])],
    ["slots", await form([good], [good])],
    ["slots[0][0].note", await form([{ ...good, note: 1 }])],
    ["version", { ...(await form([good])), version: 2 }],
    ["id", { ...(await form([good])), id: "0".repeat(64) }],
  ])
    await assert.rejects(readForm(wrong), refused(field), String(field));
  assert.ok(await readForm(await form([part(["a"], "table-secret")])));
});

test("the draw follows the shares, and takes a word for each slot with several parts", async () => {
  const own = await readForm((await survey()).cohorts.everyone);
  const draw = (word) => {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, word, true);
    const source = wordsFrom(bytes);
    const drawn = own.draw(source);
    assert.throws(() => source(1), /used up/);
    return drawn;
  };
  assert.deepEqual(draw(0n), [0, 0, 0]);
  assert.deepEqual(draw((1n << 62n) - 1n), [0, 0, 0]);
  assert.deepEqual(draw(1n << 62n), [0, 0, 1]);
});

// -- skip logic ------------------------------------------------------------------------------------------------------

test("a question that is skipped is not asked on any path, and its answer does not count", async () => {
  const choices = question("ills", "choices", ["cough", "gout"], { asked_if: { smokes: ["yes"] } });
  const packs = question("packs", "number", [], { asked_if: { smokes: ["yes"] }, edges: ["0.0", "1.0", "5.0"] });
  const read = await readCampaign(
    await campaign({
      questions: [question("smokes", "choice", ["yes", "no"]), choices, packs],
      cohorts: {
        everyone: await form(
          [part(["smokes"], "table-two-answers")],
          [{ attributes: ["ills/cough"], share: ALL, plan: await relabelled(["yes", "no", NOT_ASKED]) }],
          [{ attributes: ["packs"], share: ALL, plan: await relabelled(["[0, 1)", "[1, 5]", NOT_ASKED]) }],
        ),
      },
    }),
  );
  const values = (given) => Object.fromEntries(read.attributeValues(given));
  assert.deepEqual(values({ smokes: "yes", ills: ["gout"], packs: "0,5" }), {
    smokes: "yes",
    "ills/cough": "no",
    "ills/gout": "yes",
    packs: "[0, 1)",
  });
  const skipped = { smokes: "no", "ills/cough": NOT_ASKED, "ills/gout": NOT_ASKED, packs: NOT_ASKED };
  assert.deepEqual(values({ smokes: "no" }), skipped);
  assert.deepEqual(values({ smokes: "no", ills: ["gout"], packs: 3 }), skipped);
  assert.deepEqual(values({ smokes: "yes", ills: new Set(), packs: 70 })["ills/gout"], "no");
  for (const [field, wrong] of [
    ["answers.smokes", {}],
    ["answers.smokes", { smokes: "perhaps" }],
    ["answers.ills", { smokes: "yes", packs: 1 }],
    ["answers.ills", { smokes: "yes", ills: "gout", packs: 1 }],
    ["answers.ills", { smokes: "yes", ills: ["sadness"], packs: 1 }],
    ["answers.packs", { smokes: "yes", ills: [], packs: "many" }],
    ["answers.other", { smokes: "no", other: 1 }],
    ["answers", "yes"],
  ])
    assert.throws(
      () => read.attributeValues(/** @type {any} */ (wrong)),
      (/** @type {any} */ error) => refused(field)(error) && !/perhaps|sadness|many/.test(error.message),
      String(field),
    );
});

test("the questions to ask are those of the drawn parts, and the gates that they need", async () => {
  const follow = question("place", "choice", ["north", "south"], { asked_if: { work: ["None"] } });
  const questions = [question("work", "choice", work), question("age", "choice", ["yes", "no"]), follow];
  const three = plan("table-assumed");
  const renamed = await relabelled(["north", "south", NOT_ASKED]);
  const everyone = await form([
    { attributes: ["place"], share: ALL / 2, plan: renamed },
    part(["age"], "table-two-answers", ALL / 2),
  ]);
  const read = await readCampaign(await campaign({ questions, cohorts: { everyone } }));
  const asked = (draw) => read.questionsToAsk(undefined, draw).map(({ name }) => name);
  assert.deepEqual(asked([0]), ["work", "place"]);
  assert.deepEqual(asked([1]), ["age"]);
  const shown = (given) => read.questionsAsked(read.questionsToAsk(undefined, [0]), given).map(({ name }) => name);
  assert.deepEqual(shown({ work: "None" }), ["work", "place"]);
  assert.deepEqual(shown({ work: "Private" }), ["work"]);
  const gate = await form([{ attributes: ["place"], share: ALL, plan: three }]); // without a value for "not asked"
  await assert.rejects(readCampaign(await campaign({ questions, cohorts: { everyone: gate } })), refused("cohorts"));
});

test("a question whose answer no form uses is refused", async () => {
  const questions = [question("work", "choice", work), question("idle", "choice", ["a", "b"])];
  await assert.rejects(readCampaign(await campaign({ questions })), refused("questions"));
});

test("the labels of ranges have the digits that Python gives them", async () => {
  const edges = ["0.0", "0.30000000000000004", "1234567.5", "1e+22"];
  const labels = ["[0, 0.3)", "[0.3, 1234567.5)", "[1234567.5, 1e+22]"];
  const everyone = await form([{ attributes: ["n"], share: ALL, plan: await relabelled(labels) }]);
  const questions = [question("n", "number", [], { edges })];
  const read = await readCampaign(await campaign({ questions, cohorts: { everyone } }));
  assert.equal(read.attributeValues({ n: 7 }).get("n"), labels[1]);
});

test("a question is refused with its field", async () => {
  const base = question("work", "choice", work);
  const ask = (change, more = []) => campaign({ questions: [{ ...base, ...change }, ...more] });
  const twice = [
    { code: "1", text: { en: "one" } },
    { code: "1.0", text: { en: "uno" } },
  ];
  const alike = [
    { code: "a", text: { en: "Yes" } },
    { code: "b", text: { en: " yes" } },
  ];
  const later = { asked_if: { work: ["None"] } };
  for (const [field, document] of [
    ["questions.name", await ask({ name: "two words" })],
    ["questions.name", await ask({}, [base])],
    ["questions.kind", await ask({ kind: "rating" })],
    ["questions.text.en", await ask({ text: {} })],
    ["questions.options", await ask({ options: base.options.slice(0, 1) })],
    ["questions.options", await ask({ options: twice })],
    ["questions.options", await ask({ options: alike })],
    ["questions.options", await ask({ options: [...twice.slice(1), { code: NOT_ASKED, text: { en: "x" } }] })],
    ["questions.edges", await ask({ edges: ["0.0", "1.0"] })],
    ["questions.edges", await ask({}, [question("n", "number", [], later)])],
    ["questions.asked_if", await ask(later)],
    ["questions.asked_if", await ask({}, [question("x", "choice", ["a", "b"], { asked_if: { work: ["other"] } })])],
    ["questions[1].asked_if.work", await ask({}, [question("x", "choice", ["a", "b"], { asked_if: { work: [] } })])],
    ["questions[0].note", await ask({ note: "x" })],
    ["cohorts", await ask({ name: "other" })],
  ])
    await assert.rejects(readCampaign(document), refused(field), String(field));
});

// -- the client ------------------------------------------------------------------------------------------------------

const client = (c, store, options = {}) =>
  new Client(c.url, { fetch: c.fetch, storage: store, wait: async () => {}, ...options });

test("the draw is remembered before anything is shown, and stays", async () => {
  const [c, store] = [await curator({ document: await survey() }), storage()];
  const draw = await client(c, store).begin();
  assert.equal(store.held.size, 1);
  for (let i = 0; i < 20; i += 1) assert.deepEqual(await client(c, store).begin(), draw);
  assert.equal(c.sent.length, 0);
  const { report } = await client(c, store).answer(answers);
  const own = (await readCampaign(c.served)).formFor();
  assert.deepEqual(
    own.unpack(report.report).map(({ at }) => at),
    draw,
  );
  assert.deepEqual(await client(c, store).begin(), draw);
  const full = {
    ...storage(),
    setItem: () => {
      throw new DOMException("x", "QuotaExceededError");
    },
  };
  await assert.rejects(client(c, full).begin(), refused("storage"));
  const [key] = store.held.keys();
  for (const text of [
    "{}",
    "x",
    "null",
    "[0,0,0]",
    ...[
      [0, 0],
      [0, 0, 2],
      [0, 0, -1],
    ].map((d) => JSON.stringify({ [own.id]: d })),
  ]) {
    const spoilt = storage();
    spoilt.setItem(key, text);
    await assert.rejects(client(c, spoilt).begin(), refused("storage"), text);
  }
});

test("cohorts share one draw, so that correcting a wrong one draws nothing new", async () => {
  const questions = [
    question("place", "choice", region),
    question("age", "choice", ["young", "old"]),
    question("dose", "choice", ["0.5", "3"]),
  ];
  const drawn = (share) =>
    form([part(["place"], "table-assumed", share), part(["age", "dose"], "table-attributes", ALL - share)]);
  const cohorts = { north: await drawn(ALL / 2), south: await drawn(ALL / 2 + 1), rest: await drawn(ALL - 1) };
  const c = await curator({ document: await campaign({ questions, cohorts }) });
  const seen = new Set();
  for (let i = 0; i < 40; i += 1) {
    const store = storage();
    const [north] = await client(c, store).begin("north");
    assert.deepEqual(await client(c, store).begin("south"), [north]); // but for one word in a million
    assert.deepEqual(await client(c, store).begin("rest"), [0]);
    assert.deepEqual(await client(c, store).begin("north"), [north]);
    assert.equal(store.held.size, 1);
    seen.add(north);
  }
  assert.deepEqual([...seen].sort(), [0, 1]);
});

test("trying answers out draws nothing but the questions, and no answer is stored", async () => {
  const [c, store] = [await curator({ document: await survey() }), storage()];
  const one = client(c, store);
  for (const work of ["None", "Private"]) await one.prepare({ ...answers, work });
  assert.equal(store.held.size, 1); // the draw
  assert.ok([...store.held.values()].every((text) => /^{"[0-9a-f]{64}":\[[01],[01],[01]\]}$/.test(text)));
  await one.answer(answers);
  const texts = [...store.held.values()].join();
  for (const secret of ["None", "12.5", "south", "old"]) assert.ok(!texts.includes(secret));
});

test("only the questions that are asked need an answer", async () => {
  const c = await curator({ document: await survey() });
  for (let i = 0; i < 20; i += 1) {
    const one = client(c, storage());
    const [, , drawn] = await one.begin();
    const { place, age, dose, ...rest } = answers;
    await one.prepare(drawn === 0 ? { ...rest, place } : { ...rest, age, dose });
    await assert.rejects(one.prepare(drawn === 0 ? { ...rest, age, dose } : { ...rest, place }), refused("answers."));
  }
});

/** A campaign of its own for each number, with an LDP level of two each. */
const numbered = async (i, change = {}) =>
  curator({ document: await campaign({ title: { en: `Number ${i}` }, ...change }) });

test("the levels of all campaigns of a curator add up to the limit of the device", async () => {
  const store = storage();
  const ldp = Number(plan("table-distribution").certificate.ldp);
  const most = Math.floor(DEFAULT_LIMIT / ldp);
  assert.ok(most >= 2);
  for (let i = 0; i < most; i += 1) await client(await numbered(i), store).answer("None");
  const last = await numbered(most);
  const exceeded = (error) =>
    error instanceof BudgetExceeded &&
    error.field === "limit" &&
    error.limit === DEFAULT_LIMIT &&
    error.level > DEFAULT_LIMIT;
  for (const ask of ["checkLimit", "begin", "prepare", "answer"])
    await assert.rejects(client(last, store)[ask](ask === "begin" ? undefined : "None"), exceeded);
  assert.equal(last.sent.length, 0);
  assert.equal(store.held.size, most);
  const replay = await numbered(0);
  assert.equal((await client(replay, store).answer("None")).replayed, true);
  assert.ok(await client(last, store, { limit: 100 }).answer("None"));
  const elsewhere = await curator({ document: last.served, origin: "https://other.example" });
  assert.ok(await client(elsewhere, storage()).answer("None"));
});

test("another curator's campaigns do not count, a lower limit of the campaign does", async () => {
  const store = storage();
  const ldp = Number(plan("table-distribution").certificate.ldp);
  await client(await numbered(1), store).answer("None");
  const lower = { limit: String(ldp * 1.5) };
  await assert.rejects(client(await numbered(2, lower), store).answer("None"), BudgetExceeded);
  const { served } = await numbered(2, lower);
  const elsewhere = await curator({ document: served, origin: "https://other.example" });
  assert.ok(await client(elsewhere, store).answer("None"));
  const higher = await numbered(3, { limit: "1000.0" });
  await assert.rejects(client(higher, store, { limit: ldp }).answer("None"), BudgetExceeded);
});

test("a level without bound is the only answer to its curator", async () => {
  const questions = [question("ill", "choice", ["0", "1", "2"])];
  const everyone = await formOf("ill", plan("table-secret"));
  const secret = await curator({ document: await campaign({ questions, cohorts: { everyone } }) });
  const store = storage();
  await client(secret, store).answer("1");
  for (const options of [{}, { limit: Infinity }])
    await assert.rejects(
      client(await numbered(1), store, options).answer("None"),
      (e) => e instanceof BudgetExceeded && e.level === Infinity,
    );
  assert.equal((await client(secret, store).answer("1")).replayed, true);
  const other = storage();
  await client(await numbered(1), other).answer("None");
  await assert.rejects(client(secret, other).answer("1"), BudgetExceeded);
});

test("what another campaign has stored and cannot be read stops the answer", async () => {
  const store = storage();
  store.setItem(`priorveil:${"0".repeat(64)}`, "{}");
  await assert.rejects(client(await numbered(1), store).begin(), refused("storage"));
});

test("a limit is a number above zero", () => {
  for (const limit of /** @type {any} */ ([0, -1, NaN, "5", null]))
    assert.throws(() => new Client("https://example.org", { limit }), refused("limit"));
});

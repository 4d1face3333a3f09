// The client against a curator that is a function: what leaves, what is remembered, what is tried again.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Client, PriorveilError, Refused, Undelivered, contentId, readCampaign } from "../priorveil.js";

const plan = (name) => JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), "utf8")).plan;

async function campaign(change = {}) {
  const everyone = plan("table-distribution");
  const document = {
    format: "priorveil-campaign",
    version: 1,
    question: "Where do you work?",
    labels: everyone.labels,
    cohorts: { everyone },
    opens: null,
    closes: null,
    smallest_count: 10,
    contact: "",
    ...change,
  };
  return { ...document, id: await contentId(document) };
}

/** A curator that takes what it is given; `answers` come first, each a status or a body. */
async function curator({ document, answers = [] } = {}) {
  const served = document ?? (await campaign());
  const sent = [];
  const fetch = async (url, request = {}) => {
    if (request.method !== "POST") return new Response(JSON.stringify(served));
    sent.push({ url, ...request });
    const next = answers.shift() ?? { accepted: 1, refused: [] };
    if (next === "down") throw new TypeError("fetch failed");
    return typeof next === "number" ? new Response("{}", { status: next }) : new Response(JSON.stringify(next));
  };
  return { served, sent, fetch, url: `https://example.org/v1/campaigns/${served.id}` };
}

function storage() {
  const held = new Map();
  return { held, getItem: (key) => held.get(key) ?? null, setItem: (key, text) => held.set(key, text) };
}

function client(c, store = storage()) {
  const waits = [];
  return Object.assign(
    new Client(c.url, {
      fetch: c.fetch,
      storage: store,
      wait: async (s) => {
        waits.push(s);
      },
    }),
    { waits },
  );
}

test("one report leaves, with its id, its plan and nothing else", async () => {
  const c = await curator();
  const { report, replayed } = await client(c).answer("Private");
  assert.equal(replayed, false);
  assert.equal(c.sent.length, 1);
  assert.equal(c.sent[0].url, `${c.url}/reports`);
  assert.deepEqual(JSON.parse(c.sent[0].body), report);
  assert.deepEqual(Object.keys(report).sort(), ["id", "plan", "report"]);
  assert.match(report.id, /^[0-9a-f]{32}$/);
  assert.equal(c.sent[0].credentials, "omit");
});

test("what is shown before is what is sent, and trying answers out draws no new words", async () => {
  const c = await curator();
  const one = client(c);
  const first = await one.prepare("Private");
  await one.prepare("None");
  assert.deepEqual(await one.prepare("Private"), first);
  assert.equal(c.sent.length, 0);
  assert.deepEqual((await one.answer("Private")).report, first);
});

test("asked again, it replays; the value is nowhere in the storage", async () => {
  const [c, store] = [await curator(), storage()];
  const { report } = await client(c, store).answer("Government");
  const again = await client(c, store).answer("None");
  assert.deepEqual(again, { report, replayed: true });
  assert.equal(c.sent.length, 1);
  const [text] = [...store.held.values()];
  assert.deepEqual(Object.keys(JSON.parse(text)).sort(), ["delivered", "id", "plan", "report"]);
});

test("a memory that cannot be read is not answered over", async () => {
  const [c, store] = [await curator(), storage()];
  for (const text of ["{", "null", '{"plan":"x","report":0}']) {
    store.setItem(`priorveil:${c.served.id}`, text);
    await assert.rejects(client(c, store).answer("Private"), (e) => e.field === "storage");
  }
  assert.equal(c.sent.length, 0);
});

test("an undelivered report is kept and sent again as it was", async () => {
  const [c, store] = [await curator({ answers: Array(5).fill("down") }), storage()];
  const one = client(c, store);
  await assert.rejects(one.answer("Private"), Undelivered);
  assert.equal(one.waits.length, 4);
  one.waits.forEach((seconds, i) => assert.ok(seconds >= 0.25 * 2 ** i && seconds <= 0.5 * 2 ** i));
  assert.equal((await one.remembered()).delivered, false);
  assert.equal(await client(c, store).deliver(), true);
  assert.equal(new Set(c.sent.map((request) => request.body)).size, 1);
  assert.equal((await one.remembered()).delivered, true);
});

test("a busy curator is tried again, a refusal is told", async () => {
  const busy = await curator({ answers: [503, 429] });
  await client(busy).answer("Private");
  assert.equal(busy.sent.length, 3);
  const closed = await curator({ answers: [{ accepted: 0, refused: [{ index: 0, id: null, reason: "closed" }] }] });
  await assert.rejects(client(closed).answer("Private"), (e) => e instanceof Refused && e.reason === "closed");
  const wrong = await curator({ answers: [400] });
  await assert.rejects(client(wrong).answer("Private"), Refused);
});

test("an answer that is not the curator's leaves the report undelivered", async () => {
  for (const stranger of ["<html>Welcome to our hotel</html>", [], { accepted: 1 }]) {
    const c = await curator({ answers: [stranger] });
    const store = storage();
    await assert.rejects(client(c, store).answer("Private"), Undelivered);
    assert.equal((await client(c, store).remembered()).delivered, false);
    assert.equal(await client(c, store).deliver(), true);
    assert.equal(new Set(c.sent.map((request) => request.body)).size, 1);
  }
});

test("an address without an id is not asked", async () => {
  for (const url of [
    "https://example.org/v1/campaigns",
    "https://example.org/",
    `https://example.org/x${"0".repeat(64)}`,
  ]) {
    const asked = new Client(url, { fetch: () => assert.fail("it was asked") });
    await assert.rejects(asked.campaign(), (error) => error instanceof PriorveilError && error.field === "url");
  }
});

test("a campaign that is not the one asked for, or was changed, is not answered", async () => {
  const other = await campaign({ contact: "somebody else" });
  const c = await curator();
  const swapped = { ...c, fetch: async () => new Response(JSON.stringify(other)) };
  await assert.rejects(client(swapped).answer("Private"), (e) => e.field === "id");
  const changed = await curator({ document: { ...(await campaign()), question: "How ill are you?" } });
  await assert.rejects(client(changed).answer("Private"), (e) => e.field === "id");
});

test("a campaign with a plan that leaks is not answered", async () => {
  const leaky = plan("table-distribution");
  leaky.budget = { lower: "0.5", upper: "0.5" };
  leaky.id = await contentId(leaky);
  await assert.rejects(
    readCampaign(await campaign({ cohorts: { everyone: leaky } })),
    (e) => e.field === "certificate",
  );
});

test("cohorts: each has its plan, and one must be chosen where there are several", async () => {
  const two = await readCampaign(
    await campaign({ cohorts: { north: plan("table-distribution"), south: plan("table-histogram") } }),
  );
  assert.deepEqual(two.cohorts, ["north", "south"]);
  assert.equal(two.planFor("south").id, plan("table-histogram").id);
  assert.throws(() => two.planFor(), PriorveilError);
  assert.throws(() => two.planFor("__proto__"), PriorveilError);
  const same = { north: plan("table-histogram"), south: plan("table-histogram") };
  await assert.rejects(readCampaign(await campaign({ cohorts: same })), (e) => e.field === "cohorts");
  const foreign = { north: plan("table-two-answers") };
  await assert.rejects(readCampaign(await campaign({ cohorts: foreign })), (e) => e.field === "labels");
});

test("opening and closing times are read", async () => {
  const times = { opens: "2026-01-01T00:00:00Z", closes: "2026-02-01T00:00:00Z" };
  const read = await readCampaign(await campaign(times));
  const at = (text) => read.state(new Date(text));
  assert.deepEqual(["2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"].map(at), [
    "not yet open",
    "open",
    "closed",
  ]);
  await assert.rejects(readCampaign(await campaign({ opens: "soon" })), PriorveilError);
});

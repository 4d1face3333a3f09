// The vectors that Python made: the same plan, bytes and value must give the same report.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { readCampaign, readPlan, wordsFrom } from "#priorveil";

const folder = new URL("../vectors/", import.meta.url);
const vectors = readdirSync(folder).filter((name) => name.endsWith(".json"));

test("there are vectors for every mechanism", () => {
  const kinds = new Set(vectors.map((name) => name.split("-")[0].replace(".json", "")));
  assert.deepEqual([...kinds].sort(), ["arc", "grouped", "hashing", "orders", "subset", "table", "unary"]);
});

const rounds = ({ numbers, attributes }) =>
  [{ numbers }, ...(attributes ?? [])].some((part) => part.numbers?.kind === "grid");

for (const name of vectors) {
  const { plan: document, cases, foreign } = JSON.parse(readFileSync(new URL(name, folder), "utf8"));

  test(`${name}: reports are those of Python, byte for byte`, async () => {
    const plan = await readPlan(document);
    for (const { value, randomness, report } of cases) {
      const bytes = Uint8Array.from(randomness.match(/../g), (byte) => parseInt(byte, 16));
      const source = wordsFrom(bytes);
      assert.ok(bytes.length === 8 * plan.draws || (bytes.length > 8 * plan.draws && rounds(plan))); // a tie
      assert.equal(plan.privatize(value, source), report);
      assert.throws(() => source(1), /used up/);
      assert.ok(plan.accepts(report));
    }
  });

  test(`${name}: reports that the plan cannot have made are refused`, async () => {
    const plan = await readPlan(document);
    assert.ok(foreign.length > 0);
    for (const report of foreign) {
      assert.ok(!plan.accepts(report));
      assert.throws(() => plan.likelihoods(report), /this plan cannot have made it/);
    }
  });

  test(`${name}: how likely each value made a report is what Python says`, async () => {
    const plan = await readPlan(document);
    const told = cases.filter((c) => c.likelihoods);
    assert.equal(told.length, 2);
    for (const { report, likelihoods } of told) {
      const found = plan.likelihoods(report);
      const top = Math.max(...found);
      likelihoods.forEach((expected, x) => assert.ok(Math.abs(found[x] / top - expected) < 2e-9));
      const prior = document.prior.kind === "fixed" ? document.prior.weights.map(Number) : found.map(() => 1);
      const joint = found.map((chance, x) => chance * prior[x]);
      const total = joint.reduce((a, b) => a + b);
      plan.posterior(report).forEach((share, x) => assert.ok(Math.abs(share - joint[x] / total) < 1e-12));
    }
  });

  test(`${name}: the certificate is proven again`, async () => {
    const { levels, proof } = await readPlan(document);
    const { certificate } = document;
    assert.equal(proof, ["interval", "ball"].includes(document.prior.kind) ? "ldp" : "budget");
    assert.equal(levels.ldp, certificate.ldp === "inf" ? Infinity : Number(certificate.ldp));
    if (proof === "budget") assert.equal(levels.lipUpper, Number(certificate.lip_upper));
  });
}

const campaigns = readdirSync(new URL("campaigns/", folder));

test("there are campaigns for every kind of question and slot", () =>
  assert.deepEqual(campaigns.sort(), [
    "choices.json",
    "drawn-slot.json",
    "no-joint-law.json",
    "number.json",
    "two-slots-not-asked.json",
  ]));

for (const name of campaigns) {
  const {
    campaign: document,
    levels,
    cases,
    foreign,
  } = JSON.parse(readFileSync(new URL(`campaigns/${name}`, folder), "utf8"));

  test(`${name}: submissions are those of Python, byte for byte`, async () => {
    const campaign = await readCampaign(document);
    const form = campaign.formFor();
    for (const { answers, randomness, draw, questions, levels: expected, report } of cases) {
      const source = wordsFrom(Uint8Array.from(randomness.match(/../g), (byte) => parseInt(byte, 16)));
      assert.deepEqual(form.draw(source), draw);
      const asked = campaign.questionsToAsk(undefined, draw);
      assert.deepEqual(
        asked.map((question) => question.name),
        questions,
      );
      const values = campaign.attributeValues(answers, asked);
      assert.deepEqual(Object.fromEntries(values), expected);
      assert.equal(form.privatize(values, draw, source), report);
      assert.throws(() => source(1), /used up/);
      assert.ok(form.accepts(report));
    }
    for (const report of foreign) assert.ok(!form.accepts(report), report);
  });

  test(`${name}: what a whole submission tells is what Python says`, async () => {
    const found = (await readCampaign(document)).promise.everyone;
    for (const [side, level] of Object.entries(levels)) assert.ok(Math.abs(found[side] - level) < 1e-12, side);
  });

  test(`${name}: every draw, and every path through the skip logic, sends as much`, () => {
    assert.equal(new Set(cases.map(({ report }) => report.length)).size, 1);
    const draws = new Set(cases.map(({ draw }) => String(draw)));
    assert.ok(draws.size > 1 || !document.cohorts.everyone.slots.some((parts) => parts.length > 1));
  });
}

test("draws/cohorts.json: the forms of all cohorts draw from the same words, as in Python", async () => {
  const { campaign: document, cases } = JSON.parse(readFileSync(new URL("draws/cohorts.json", folder), "utf8"));
  const campaign = await readCampaign(document);
  for (const { randomness, draws } of cases) {
    const source = wordsFrom(Uint8Array.from(randomness.match(/../g), (byte) => parseInt(byte, 16)));
    assert.deepEqual(campaign.drawForms(source), draws);
    assert.throws(() => source(1), /used up/);
  }
});

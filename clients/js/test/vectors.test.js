// The vectors that Python made: the same plan, bytes and value must give the same report.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { readPlan, wordsFrom } from "../priorveil.js";

const folder = new URL("../vectors/", import.meta.url);
const vectors = readdirSync(folder).filter((name) => name.endsWith(".json"));

test("there are vectors for every mechanism", () => {
  const kinds = new Set(vectors.map((name) => name.split("-")[0].replace(".json", "")));
  assert.deepEqual([...kinds].sort(), ["arc", "grouped", "hashing", "orders", "subset", "table", "unary"]);
});

const rounds = ({ numbers, attributes }) => [{ numbers }, ...(attributes ?? [])].some((part) => part.numbers?.kind === "grid");

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

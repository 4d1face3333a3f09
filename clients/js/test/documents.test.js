// What must not be trusted is refused, with the field that is wrong.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { PriorveilError, canonical, contentId, expBounds, readPlan } from "../priorveil.js";

const vector = (name) => JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), "utf8"));

/** A changed plan with the id that its changed content has: only the certificate can tell. */
async function forged(name, change) {
  const { plan } = vector(name);
  change(plan);
  plan.id = await contentId(plan);
  return plan;
}

const refused = (field) => (error) => error instanceof PriorveilError && error.field.startsWith(field);

/** The next float towards zero. */
function below(text) {
  const bits = new BigInt64Array(new Float64Array([Number(text)]).buffer);
  return String(new Float64Array(new BigInt64Array([bits[0] - 1n]).buffer)[0]);
}

test("the canonical text sorts keys by code point and has no spaces", () => {
  assert.equal(canonical({ b: [1, "x"], a: null }), '{"a":null,"b":[1,"x"]}');
  assert.equal(canonical({ "\u{1f300}": 1, "\uffee": 2, 10: 3, 9: 4 }), '{"10":3,"9":4,"\uffee":2,"\u{1f300}":1}');
  assert.equal(canonical("\u0001\n\u2028\u007f"), '"\\u0001\\n\u2028\u007f"');
});

test("what has no canonical text is refused", () => {
  for (const wrong of [0.5, 2 ** 53, NaN, Infinity, "\ud800", undefined]) {
    assert.throws(() => canonical({ wrong }), PriorveilError);
  }
});

test("a changed plan is not what its id says", async () => {
  const { plan } = vector("table-histogram");
  plan.why += " ";
  await assert.rejects(readPlan(plan), refused("id"));
  await assert.rejects(readPlan(vector("table-histogram").plan, { id: "0".repeat(64) }), refused("id"));
});

test("text is read as well as documents; other things are refused", async () => {
  assert.equal((await readPlan(JSON.stringify(vector("hashing").plan))).kind, "hashing");
  for (const wrong of ["{", "[]", "1", null]) await assert.rejects(readPlan(wrong), refused("file"));
  for (const [field, change] of [
    [
      "format",
      (p) => {
        p.format = "x";
      },
    ],
    [
      "version",
      (p) => {
        p.version = 2;
      },
    ],
    [
      "mechanism",
      (p) => {
        p.mechanism.kind = "constructor";
      },
    ],
    [
      "mechanism",
      (p) => {
        p.labels.push("one more");
      },
    ],
    [
      "labels",
      (p) => {
        p.labels[1] = p.labels[0];
      },
    ],
    [
      "prior",
      (p) => {
        p.prior.weights[0] = "0";
      },
    ],
    [
      "prior",
      (p) => {
        p.prior.kind = "guessed";
      },
    ],
    [
      "budget",
      (p) => {
        p.budget.lower = "nan";
      },
    ],
    [
      "secret",
      (p) => {
        p.secret = [];
      },
    ],
  ]) {
    await assert.rejects(
      forged("table-histogram", change).then((p) => readPlan(p)),
      refused(field),
    );
  }
});

test("rows that do not add up are refused", async () => {
  const change = (p) => {
    p.mechanism.weights[0][0] = String(BigInt(p.mechanism.weights[0][0]) + 1n);
  };
  await assert.rejects(
    forged("table-histogram", change).then((p) => readPlan(p)),
    refused("mechanism.weights"),
  );
});

const names = [
  "table-two-answers",
  "table-histogram",
  "table-asymmetric",
  "table-finite-set",
  "table-secret",
  "table-ldp",
  "arc-some-heavy",
  "arc-all-light",
  "arc-lending",
  "unary-one-word",
  "unary-two-words",
  "hashing",
  "grouped",
];
for (const name of names) {
  test(`${name}: a level one float too low is refused`, async () => {
    for (const level of ["lip_lower", "lip_upper", "ldp"]) {
      const { plan } = vector(name);
      if (plan.certificate[level] === "inf") continue;
      const lower = (p) => {
        p.certificate[level] = below(p.certificate[level]);
      };
      await assert.rejects(
        forged(name, lower).then((p) => readPlan(p)),
        refused("certificate"),
      );
    }
  });

  test(`${name}: a smaller budget is refused`, async () => {
    const shrink = (p) => {
      p.budget = { lower: "0.01", upper: "0.01" };
    };
    await assert.rejects(
      forged(name, shrink).then((p) => readPlan(p)),
      refused("certificate"),
    );
  });
}

test("one unit more of truth breaks a tight certificate", async () => {
  const arc = (p) => {
    p.mechanism.keep = String(BigInt(p.mechanism.keep) + 2n ** 14n);
  };
  await assert.rejects(
    forged("arc-all-light", arc).then((p) => readPlan(p)),
    refused("certificate"),
  );
  const unary = (p) => {
    p.mechanism.drop = String(BigInt(p.mechanism.drop) - 2n ** 12n);
  };
  await assert.rejects(
    forged("unary-one-word", unary).then((p) => readPlan(p)),
    refused("certificate"),
  );
});

test("e to a level lies between its bounds, which are near", () => {
  for (const level of [1e-300, 1e-19, 0.1, 1, Math.PI, 20, 600]) {
    const [[low, one], [high]] = expBounds(level);
    assert.ok(low <= high && (high - low) << 250n <= high);
    const found = Number((low << 53n) / one) / 2 ** 53;
    assert.ok(Math.abs(found / Math.exp(level) - 1) < 1e-14, `${level}: ${found}`);
  }
  const [[low, one], [high]] = expBounds(1); // the digits of e
  const digits = 27182818284590452353602874713526624977572470936999595749669676277240n;
  assert.ok(low * 10n ** 67n < (digits + 1n) * one && high * 10n ** 67n > digits * one);
});

test("a plan cannot be changed after it was checked", async () => {
  const { plan: document } = vector("table-histogram");
  const plan = await readPlan(document);
  document.mechanism.weights[0][0] = "0";
  assert.notEqual(plan.document.mechanism.weights[0][0], "0");
  assert.throws(() => {
    plan.document.labels[0] = "x";
  }, TypeError);
  assert.throws(() => {
    plan.levels = {};
  }, TypeError);
});

test("values are labels, or codes where no label is a number; an error never shows the value", async () => {
  const named = await readPlan(vector("table-histogram").plan);
  assert.equal(named.code("None"), 3);
  assert.equal(named.code(3), 3);
  for (const wrong of ["ill", 4, -1, 0.5, null, "__proto__"]) {
    assert.throws(
      () => named.code(wrong),
      (error) => refused("value")(error) && !error.message.includes("ill"),
    );
  }
  const numbered = await readPlan(vector("hashing").plan);
  assert.throws(() => numbered.code("3"), refused("value"));
});

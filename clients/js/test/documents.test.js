// What must not be trusted is refused, with the field that is wrong.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { PriorveilError, canonical, contentId, expBounds, readNumber, readPlan } from "#priorveil";

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
  "subset-one-word",
  "subset-two-words",
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

  test(`${name}: a smaller budget is refused, also on one side`, async () => {
    for (const side of ["lower", "upper"]) {
      const shrink = (p) => {
        p.budget[side] = "0.01";
      };
      await assert.rejects(
        forged(name, shrink).then((p) => readPlan(p)),
        refused("certificate"),
        side,
      );
    }
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
  const subset = (p) => {
    p.mechanism.keep = String(BigInt(p.mechanism.keep) + 2n ** 12n);
  };
  await assert.rejects(
    forged("subset-one-word", subset).then((p) => readPlan(p)),
    refused("certificate"),
  );
});

test("a bit that is always set, always noise or never left out is refused", async () => {
  const certain = String(2n ** 62n);
  /** @type {[string, string, (mechanism: any) => unknown][]} */
  const changes = [
    ["subset-one-word", "keep", () => certain],
    ["subset-one-word", "keep", () => "0"],
    ["subset-one-word", "subset_size", ({ masses }) => masses.length],
    ["unary-one-word", "drop", () => certain],
    ["unary-one-word", "drop", () => "0"],
    ["unary-one-word", "noise", ({ noise_bits: bits }) => 2 ** bits],
  ];
  for (const [name, field, value] of changes) {
    const document = await forged(name, ({ mechanism }) => {
      mechanism[field] = value(mechanism);
    });
    await assert.rejects(readPlan(document), refused(`mechanism.${field}`), `${name} ${field}`);
  }
});

test("a word that would make a subset uneven gives the first values", async () => {
  const plan = await readPlan(vector("subset-one-word").plan);
  const { masses, subset_size: count } = plan.document.mechanism;
  const bound = BigInt(masses.length - count);
  const first = 2n ** 64n - (2n ** 64n % bound); // from here on some values would be drawn more often than others
  const report = (word) => plan.privatize(plan.labels[0], (n) => [2n ** 64n - 1n, word, ...Array(n - 2).fill(0n)]);
  const values = (hex) => BigInt(`0x${hex.match(/../g).toReversed().join("")}`);
  assert.equal(values(report(first)), (1n << BigInt(count)) - 1n);
  assert.notEqual(values(report(first - 1n)), (1n << BigInt(count)) - 1n);
});

test("a set of another size is not a report of a subset plan", async () => {
  const { plan, cases } = vector("subset-one-word");
  const read = await readPlan(plan);
  assert.ok(read.accepts(cases[0].report));
  assert.ok(!read.accepts("0".repeat(16)));
  assert.ok(!read.accepts(`f${cases[0].report.slice(1)}`));
});

/** A plan on three values whose rows tell the truth but for `lie` of the weight on each of the others. */
function truthful(lie, budget, levels) {
  return (p) => {
    const [truth, other] = [String(2n ** 62n - 2n * lie), String(lie)];
    const weights = [0, 1, 2].map((x) => [0, 1, 2].map((y) => (x === y ? truth : other)));
    p.mechanism = { kind: "table", bits: 62, weights };
    p.budget = { lower: budget, upper: budget };
    p.certificate = { notion: "LIP", ...levels };
  };
}

test("a budget that promises nothing is refused, whatever the certificate says", async () => {
  const inf = { lip_lower: "inf", lip_upper: "1.203972804325936", ldp: "inf", level: "inf" };
  const far = { lip_lower: "900.0", lip_upper: "900.0", ldp: "900.0", level: "900.0" };
  for (const [lie, budget, levels] of [
    [0n, "inf", inf],
    [10n, "inf", far],
    [10n, "900.0", far],
    [10n, "700.1", far],
  ]) {
    await assert.rejects(
      forged("table-truth-or-draw", truthful(lie, budget, levels)).then((p) => readPlan(p)),
      refused("budget"),
      `${lie} ${budget}`,
    );
  }
});

test("numbers have one spelling", async () => {
  const { budget } = vector("table-histogram").plan;
  assert.equal(budget.lower, "1.0");
  const wrong = ["0x1", "1", "1.", "01.0", "+1.0", " 1.0", "1.0 ", "1.00", "1e0", "1_0.0", "Infinity", "", "-1.0"];
  for (const text of [...wrong, 1, null]) {
    const change = (p) => {
      p.budget.lower = text;
    };
    await assert.rejects(
      forged("table-histogram", change).then((p) => readPlan(p)),
      refused("budget"),
      String(text),
    );
  }
  for (const [field, change] of [
    ["mechanism.weights", (p) => (p.mechanism.weights[0][0] = `0${p.mechanism.weights[0][0]}`)],
    ["mechanism.bits", (p) => (p.mechanism.bits = "62")],
    ["prior.weights", (p) => (p.prior.weights = p.prior.weights.map((w) => String(2n * BigInt(w))))],
  ]) {
    await assert.rejects(
      forged("table-histogram", change).then((p) => readPlan(p)),
      refused(field),
    );
  }
});

test("whole numbers are written as such", async () => {
  const text = JSON.stringify(vector("table-histogram").plan);
  assert.equal((await readPlan(` ${text}\n `)).kind, "table");
  for (const other of ["62.0", "62e0", "6.2e1", "6.2E1"])
    await assert.rejects(readPlan(text.replace('"bits":62', `"bits":${other}`)), refused("file"), other);
});

test("a secret's rows are distributions", async () => {
  for (const rows of [
    [
      ["5.0", "3.0", "2.0"],
      ["50.0", "30.0", "20.0"],
    ],
    [
      ["0.9", "0.1", "0.0"],
      ["0.2", "0.3", "0.4"],
    ],
    [
      ["0.9", "0.1", "0.0"],
      ["0.0", "0.0", "0.0"],
    ],
    [
      ["inf", "0.1", "0.0"],
      ["0.2", "0.3", "0.5"],
    ],
    [["0.9", "0.1", "0.0"]],
  ]) {
    const change = (p) => {
      p.secret[0].rows = rows;
    };
    await assert.rejects(
      forged("table-secret", change).then((p) => readPlan(p)),
      refused("secret.rows"),
    );
  }
});

test("a level one float too high is refused: it is not what was proven", async () => {
  const { plan } = vector("table-histogram");
  for (const level of ["lip_lower", "lip_upper", "ldp", "level"]) {
    const above = String(Number(plan.certificate[level]) * (1 + Number.EPSILON));
    const raise = (p) => {
      p.certificate[level] = above;
    };
    await assert.rejects(
      forged("table-histogram", raise).then((p) => readPlan(p)),
      refused("certificate"),
    );
  }
});

test("what this client does not know is refused, not passed over", async () => {
  for (const [field, change] of [
    ["note", (p) => (p.note = "hello")],
    ["prior.note", (p) => (p.prior.note = 1)],
    ["mechanism.note", (p) => (p.mechanism.note = 1)],
    ["mechanism", (p) => (p.mechanism.kind = ["table"])],
    ["why", (p) => delete p.why],
    ["method", (p) => (p.method = "")],
    ["query", (p) => (p.query = { name: ["Histogram"] })],
    ["query", (p) => (p.query = "Histogram")],
    ["notion", (p) => (p.notion = { name: null })],
    ["notion.pairs", (p) => (p.notion.pairs = [[0, 1]])],
    ["certificate.notion", (p) => (p.notion = { name: "Trust" })],
    ["certificate.notion", (p) => (p.certificate.notion = "LDP")],
    ["lower_bound", (p) => (p.lower_bound = "9.0")],
    ["expected_mse", (p) => (p.expected_mse = "9.0")],
  ]) {
    await assert.rejects(
      forged("table-histogram", change).then((p) => readPlan(p)),
      refused(field),
    );
  }
});

test("a query or a notion that is not known here needs no change: the mechanism decides what is proven", async () => {
  const { plan } = vector("table-histogram");
  const asked = await readPlan(
    await forged("table-histogram", (p) => (p.query = { name: "Everything", rows: [["1.0"]] })),
  );
  assert.deepEqual([asked.proof, asked.levels.lip], ["budget", (await readPlan(plan)).levels.lip]);
  const trust = (p) => {
    p.notion = { name: "Trust", circle: ["friends"] };
    p.certificate.notion = "Trust";
  };
  const trusted = await readPlan(await forged("table-histogram", trust));
  assert.deepEqual([trusted.proof, trusted.levels.lip], ["ldp", Number(plan.certificate.ldp)]);
  const lie = (p) => {
    trust(p);
    p.certificate.ldp = "0.1";
  };
  await assert.rejects(
    forged("table-histogram", lie).then((p) => readPlan(p)),
    refused("certificate.ldp"),
  );
});

test("mechanisms are proven for what they are certified for, and for nothing else", async () => {
  const sets = (p) => {
    p.prior = { kind: "finite", members: [p.prior.weights, p.prior.weights] };
  };
  const ball = (p) => {
    p.prior = { ...p.prior, kind: "ball", radius: "0.01" };
  };
  const secret = (p) => {
    p.secret = [{ labels: [0], rows: [p.labels.map((_, x) => (x === 0 ? "1.0" : "0.0"))] }];
  };
  for (const name of ["arc-some-heavy", "orders", "hashing", "grouped"]) {
    for (const change of [sets, ball, secret]) {
      await assert.rejects(
        forged(name, change).then((p) => readPlan(p)),
        refused("mechanism"),
        name,
      );
    }
  }
});

test("what is nested too deeply is refused in our own words", async () => {
  const deep = (open, close, times) => `{"a":${open.repeat(times)}1${close.repeat(times)}}`;
  for (const times of [100, 20000]) {
    await assert.rejects(readPlan(deep("[", "]", times)), refused("file"));
    await assert.rejects(readPlan(deep('{"a":', "}", times)), refused("file"));
  }
  const round = {};
  round.round = round;
  await assert.rejects(readPlan(round), refused("file"));
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
    /** @type {any} */ (plan).levels = {};
  }, TypeError);
});

test("a value is a label and never a position; an error never shows the value", async () => {
  const named = await readPlan(vector("table-histogram").plan);
  assert.equal(named.code("None"), 3);
  for (const wrong of ["ill", 3, 0, "3", true, 0.5, null, "__proto__"]) {
    assert.throws(
      () => named.code(wrong),
      (/** @type {any} */ error) => refused("value")(error) && !error.message.includes("ill"),
    );
  }
  const numbered = await readPlan(vector("hashing").plan);
  for (const same of [3, 3n, "3", " 03.0 ", "+3", "0.3e1"]) assert.equal(numbered.code(same), 3);
  for (const wrong of /** @type {any} */ ([40, -1, 0.5, "3 4", "0x3", "", {}]))
    assert.throws(() => numbered.code(wrong), refused("value"));
});

test("a value of several attributes is a list of levels", async () => {
  const plan = await readPlan(vector("table-attributes").plan);
  assert.deepEqual(plan.labels[2], ["old", 0.5]);
  assert.equal(plan.code(["old", 0.5]), 2);
  for (const wrong of [["old"], ["old", 1], "old", ["old", 0.5, 3]]) {
    assert.throws(() => plan.code(wrong), refused("value"));
  }
});

test("cells have the position of a level of each attribute", async () => {
  const change = (name, edit) => forged(name, ({ labels }) => edit(labels));
  for (const wrong of [[0, [0]], [0], [], "00", [0, 2], [0, -1], [1, 1], null]) {
    await assert.rejects(
      readPlan(await change("table-attributes", (given) => (given.cells[0] = wrong))),
      refused("labels"),
    );
  }
  for (const name of ["dose", 3, null]) {
    await assert.rejects(
      readPlan(await change("table-attributes", (given) => (given.attributes[0].name = name))),
      refused("labels"),
    );
  }
  for (const levels of [
    [["a"], ["b"]],
    ["old", "old"],
    ["old", " old"],
    { kind: "joint", attributes: [], cells: [] },
    3,
  ]) {
    await assert.rejects(
      readPlan(await change("table-attributes", (given) => (given.attributes[0].levels = levels))),
      refused("labels"),
    );
  }
});

test("a number is rounded between the points of its group, and every group can round every number", async () => {
  const plan = await readPlan(vector("table-joint-numbers").plan);
  assert.equal(plan.attributes[1].numbers.kind, "grid");
  for (const [value, places] of [
    [
      ["young", 1, 3],
      [0, 2.5],
    ],
    [
      ["old", 1, 3],
      [0, 40],
    ],
    [["old", "-5", 1e9], [0]],
  ]) {
    for (let i = 0; i < 20; i++) assert.ok(places.includes(plan.labels[plan.code(value)][1]));
  }
  for (const wrong of [
    ["old", null, 3],
    ["old", "x", 3],
    ["other", 1, 3],
    ["old", 1, "[0, 1000)"],
  ]) {
    assert.throws(() => plan.code(wrong), refused("value"));
  }
  const lacking = await forged("table-joint-numbers", ({ labels }) => labels.cells.pop());
  await assert.rejects(readPlan(lacking), refused("labels"));
});

test("a plan says whether its prior is assumed, in one way only", async () => {
  for (const name of ["table-assumed", "table-assumed-ball"])
    assert.equal((await readPlan(vector(name).plan)).priorAssumed, true);
  assert.equal((await readPlan(vector("table-histogram").plan)).priorAssumed, false);
  for (const wrong of [false, 1, "yes", null]) {
    const plan = await forged("table-assumed", (p) => (p.prior.assumed = wrong));
    await assert.rejects(readPlan(plan), refused("prior.assumed"));
  }
  const set = await forged("table-finite-set", (p) => (p.prior.assumed = true));
  assert.equal((await readPlan(set)).priorAssumed, true);
  const interval = await forged("table-interval", (p) => (p.prior.assumed = true));
  await assert.rejects(readPlan(interval), refused("prior.assumed"));
});

test("a typed number has one decimal mark, and is refused where it is ambiguous", () => {
  const right = { "12,5": 12.5, 12.5: 12.5, " 7 ": 7, "-0,125": -0.125, 0.125: 0.125, "1,2345": 1.2345, "1e3": 1000 };
  for (const [typed, number] of Object.entries(right)) assert.equal(readNumber(typed), number);
  const arabic = { "١٢٫٥": 12.5, "١٫٢٣٤": 1.234, "۷": 7, "\u200f٤٠": 40, "\u2212٣": -3, "١٢,٥": 12.5 };
  for (const [typed, number] of Object.entries(arabic)) assert.equal(readNumber(typed), number);
  assert.throws(() => readNumber("١٬٢٣٤"), /number/);
  for (const typed of ["1,234", "1.234", "12.500", "1.234,5", "1,234.5", "1 234", "1'234", "1,5,5", "١٬٢٣٤"])
    assert.throws(() => readNumber(typed), /ambiguous number: write 1234.5 or 1234,5/);
  for (const typed of ["", "ten", "5 h", "Infinity", "0x8", "12,"])
    assert.throws(() => readNumber(typed), /should be a number/);
});

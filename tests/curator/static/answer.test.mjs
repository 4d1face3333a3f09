// The answer page without a page: what a person has answered, what reports reveal, and which step follows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
  answeredBetween,
  beliefs,
  codeOf,
  exposure,
  gradeOf,
  outOfHundred,
  promises,
  reportsOf,
  reportsSent,
  seenByOthers,
  showsCrowd,
} from "/static/disclosure.js";
import { Interview } from "/static/interview.js";
import { bestLanguage, speaker } from "/static/language.js";
import { failure, firstStep, whyKept, whyRefused } from "/static/outcomes.js";
import { BudgetExceeded, NotSent, PriorveilError, ReportRefused, readCampaign } from "/static/priorveil.js";
import { SurveyWords } from "/static/survey_words.js";
import { campaign, formOf, plan, question } from "../../../clients/js/fixtures/campaigns.js";

/** The campaign of a vector. */
const vector = (name) => {
  const place = new URL(`../../../clients/js/vectors/campaigns/${name}.json`, import.meta.url);
  return readCampaign(JSON.parse(readFileSync(place, "utf8")).campaign);
};

/** An interview about one question, with the plan of a vector. */
async function about(name, change = {}) {
  const own = plan(name);
  const codes = Array.isArray(own.labels) ? own.labels.map(String) : [];
  const asked = question("it", codes.length > 0 ? "choice" : "number", codes, change);
  const read = await readCampaign(await campaign({ questions: [asked], cohorts: { all: await formOf("it", own) } }));
  const interview = new Interview(read);
  interview.ask(read.formFor().draw());
  return interview;
}

/** An interview in which every question of the campaign is asked. */
function askedAll(read) {
  const interview = new Interview(read);
  interview.cohort ??= read.cohorts[0];
  interview.ask(null);
  return interview;
}

const named = (interview, name) => interview.questions.find((question) => question.name === name);

// -- what a person has answered ----------------------------------------------------------------------------------------

const WRITTEN = {
  "12,5": 12.5,
  12.5: 12.5,
  " 7 ": 7,
  "0,125": 0.125,
  "1,2340": 1.234,
  "\u0661\u0662\u066b\u0665": 12.5,
};

test("a number is read as people write it, and stands as it was typed", async () => {
  const interview = await about("table-grid");
  const [it] = interview.questions;
  for (const [typed, value] of Object.entries(WRITTEN)) {
    interview.type(it, typed);
    assert.deepEqual(
      [interview.answers.it, interview.typed(it), interview.problem(it, "missing")],
      [value, typed, null],
    );
  }
  interview.type(it, "12,5");
  assert.equal(speaker("de").exact(interview.answers.it), "12,5");
  assert.equal(speaker("en").exact(interview.answers.it), "12.5");
});

const UNREADABLE = {
  ...Object.fromEntries(
    ["1,234", "1.234", "1.234,5", "1 234", "\u0661\u066c\u0662\u0663\u0664"].map((typed) => [typed, "ambiguousNumber"]),
  ),
  ten: "notANumber",
  "": "missing",
};

test("a number that cannot be read for sure is no answer", async () => {
  const interview = await about("table-grid");
  const [it] = interview.questions;
  assert.equal(interview.problem(it, "missing"), "missing");
  for (const [typed, problem] of Object.entries(UNREADABLE)) {
    interview.type(it, "7");
    interview.type(it, typed);
    assert.deepEqual([interview.problem(it, "missing"), interview.answers.it], [problem, undefined]);
  }
});

test("a number outside the range counts as the end, and one inside as itself", async () => {
  const interview = await vector("number").then(askedAll);
  const hours = named(interview, "hours");
  const bounds = interview.bounds(hours);
  for (const { typed, counts } of [
    { typed: String(bounds.at(-1) + 100), counts: bounds.at(-1) },
    { typed: "-3000", counts: bounds[0] },
    { typed: String(bounds[0]), counts: bounds[0] },
    { typed: String(bounds.at(-1)), counts: bounds.at(-1) },
  ]) {
    interview.type(hours, typed);
    assert.equal(interview.countsAs(hours), counts, typed);
  }
  const packs = named(interview, "packs");
  assert.deepEqual(interview.bounds(packs), packs.ranges.bounds);
});

test("questions come one after the other; skipped ones are passed over, and missing ones asked on the way back", async () => {
  const interview = await vector("two-slots-not-asked").then(askedAll);
  const [smokes, kind] = interview.questions;
  assert.equal(interview.problem(smokes, "missing"), "missing");
  const [gate] = kind.askedIf.get("smokes");
  const other = smokes.options.find(({ code }) => code !== gate).code;
  interview.choose(smokes, other);
  assert.deepEqual(interview.asked, [smokes]);
  assert.equal(interview.after(smokes, false), undefined);
  interview.choose(smokes, gate);
  assert.equal(interview.after(smokes, false), kind);
  assert.equal(interview.after(smokes, true), kind, "it has no answer yet");
  interview.choose(kind, kind.options[0].code);
  assert.equal(interview.after(smokes, true), undefined);
  assert.deepEqual([interview.before(kind), interview.before(smokes)], [smokes, undefined]);
  interview.forget();
  assert.equal(interview.problem(smokes, "missing"), "missing");
});

test("no tick is an answer to 'tick all that apply'", async () => {
  const interview = await vector("choices").then(askedAll);
  const ills = interview.questions.find(({ kind }) => kind === "choices");
  assert.equal(interview.problem(ills, "missing"), null);
  assert.deepEqual(interview.answers[ills.name], []);
});

test("a question may have a name that every object has", async () => {
  const own = plan("table-distribution");
  const asked = question("constructor", "choice", own.labels);
  const document = await campaign({ questions: [asked], cohorts: { all: await formOf("constructor", own) } });
  const interview = askedAll(await readCampaign(document));
  const [it] = interview.questions;
  assert.equal(interview.problem(it, "missing"), "missing");
  interview.choose(it, own.labels[0]);
  assert.equal(interview.problem(it, "missing"), null);
});

test("a gate that no report is about is told by the reports about its follow-up", async () => {
  const interview = await vector("number").then(askedAll);
  const reported = interview.questions.filter((asked) => interview.isReported(asked)).map(({ name }) => name);
  assert.deepEqual(reported, ["smokes", "hours", "packs"]);
  const together = await vector("no-joint-law").then(askedAll);
  assert.ok(together.questions.every((asked) => together.isReported(asked)));
});

// -- what reports reveal -----------------------------------------------------------------------------------------------

test("figures of people are for one question with known answers, which nothing is linked to", async () => {
  const shown = async (name) => {
    const interview = await about(name);
    return showsCrowd(interview, interview.parts[0]);
  };
  assert.equal(await shown("table-distribution"), true);
  for (const name of ["table-assumed", "table-interval", "table-finite-set", "table-secret", "table-assumed-ball"])
    assert.equal(await shown(name), false, name);
  const withFigures = async (name) => {
    const interview = await vector(name).then(askedAll);
    return interview.parts.filter((part) => showsCrowd(interview, part)).map(({ attributes }) => attributes.join());
  };
  assert.deepEqual(await withFigures("two-slots-not-asked"), [], "neither a gate nor a follow-up");
  assert.deepEqual(await withFigures("choices"), [], "nor several options");
  assert.deepEqual(await withFigures("number"), ["hours"]);
  assert.deepEqual(await withFigures("drawn-slot"), ["street"]);
});

test("a question that two reports are about has no figures of people", async () => {
  const interview = await about("table-distribution");
  const [part] = interview.parts;
  interview.parts = [part, { ...part, attributes: ["it", "another"] }];
  assert.equal(showsCrowd(interview, part), false);
  const joint = await vector("no-joint-law").then(askedAll);
  assert.deepEqual(
    joint.parts.filter((each) => showsCrowd(joint, each)),
    [],
  );
});

test("what is not protected is said, and hides the words of a level", async () => {
  const secret = await about("table-secret");
  assert.equal(exposure(secret.form), "exposedSecret");
  assert.deepEqual(
    [seenByOthers(secret.campaign).seen, seenByOthers(secret.campaign).exposed],
    ["seenPerhaps", "exposedSecret"],
  );
  const other = /** @type {any} */ ({
    ...secret.form,
    parts: [...secret.form.parts, ...(await about("table-distribution")).parts],
  });
  assert.equal(exposure(other), "exposedSecret");
  const bare = /** @type {any} */ ({ parts: [{ plan: { protects: "value" } }], levels: { ldp: Infinity } });
  assert.equal(exposure(bare), "exposedInPart");
  assert.equal(exposure((await about("table-distribution")).form), null);
});

test("the words of a level change above 1, 2 and 3", () => {
  const words = { 0.5: "seenNo", 1: "seenNo", 1.01: "seenPartly", 2: "seenPartly", 2.9: "seenHardly", 3: "seenWeak" };
  for (const [lip, word] of Object.entries(words)) assert.equal(gradeOf({ lip: Number(lip) }), word);
});

test("the first page says what the highest level of all cohorts means", async () => {
  const read = await vector("number");
  const levels = read.promise[read.cohorts[0]];
  const forms = { ...read.forms, other: read.formFor() };
  const promise = { ...read.promise, other: { ...levels, lip: levels.lip + 1 } };
  assert.deepEqual(seenByOthers({ ...read, forms, promise }).levels, { lip: levels.lip + 1, ldp: levels.ldp });
});

test("beliefs and levels are rounded up: a promise must not look smaller than it is", () => {
  assert.deepEqual(beliefs({ lip: 0, ldp: 0 }), { before: 0.1, after: 0.1 });
  const { after } = beliefs({ lip: Math.log(2), ldp: Infinity });
  assert.equal(after, 0.2);
  assert.equal(beliefs({ lip: Math.log(2) + 1e-5, ldp: Infinity }).after, 0.201);
  const { level, factor } = speaker("en");
  assert.deepEqual([level(1.9061), level(1), level(0.0001)], ["1.907", "1", "0.001"]);
  assert.deepEqual([factor(1), factor(Math.log(150.2)), factor(0)], ["2.72", "151", "1"]);
  assert.match(factor(20), /^4\.9E8$/);
});

test("numbers are rounded as Python prints them", () => {
  const whole = (value) => speaker("en").number(value, { maximumFractionDigits: 0 });
  assert.deepEqual([2500.5, 2501.5, 2500.51].map(whole), ["2,500", "2,502", "2,501"]);
});

test("cumulative shares have their names in the language of the reader", () => {
  const survey = { languages: ["en"], questions: [] };
  const words = (language, label) => new SurveyWords(survey, speaker(language), language).statisticWords(label);
  assert.equal(words("en", "below 2500.5"), "below 2,500.5");
  assert.equal(words("de", "below 2500.5"), "unter 2.500,5");
  assert.equal(words("de", "up to 10000"), "bis 10.000");
});

test("the promise is that of the whole submission: under the prior only where that is known", async () => {
  const known = await about("table-distribution");
  const { lip, ldp } = known.campaign.promise.all;
  assert.ok(lip < ldp);
  assert.deepEqual(promises(known).texts, [
    ["promiseKnown", lip],
    ["promiseAny", ldp],
  ]);
  assert.equal(promises(known).weak, gradeOf({ lip }) === "seenWeak");
  const weak = /** @type {any} */ ({
    ...known,
    form: known.form,
    campaign: { promise: { all: { lip: 3.1, ldp: 4 } } },
  });
  assert.equal(promises(weak).weak, true);
  assert.equal(promises(known).levels, "levels");
  for (const name of ["table-assumed", "table-interval"]) {
    const interview = await about(name);
    assert.deepEqual(promises(interview).texts, [["promiseAny", interview.campaign.promise.all.ldp]], name);
    assert.equal(promises(interview).levels, "levelsAny");
  }
  const drawn = await vector("drawn-slot").then(askedAll);
  const levels = drawn.campaign.promise[drawn.cohort];
  assert.equal(
    levels.lip,
    Math.max(...drawn.parts.map(({ plan }) => plan.levels.lip)),
    "one report, whatever is drawn",
  );
  assert.deepEqual(promises(drawn).texts, [
    ["promiseKnownSeveral", levels.lip],
    ["promiseAnySeveral", levels.ldp],
  ]);
  const several = await vector("two-slots-not-asked").then(askedAll);
  assert.deepEqual(
    promises(several).texts.map(([key]) => key),
    ["promiseAnySeveral"],
  );
});

test("it is said how many reports are sent, and in a preview that some are drawn", async () => {
  const keys = async (name) => {
    const interview = await vector(name).then(askedAll);
    return [false, true].map((isPreview) => reportsSent(interview, isPreview));
  };
  assert.deepEqual(await keys("drawn-slot"), ["reportsAre", "previewOne"]);
  assert.deepEqual(await keys("number"), ["reportsAre", "previewSome"]);
  assert.deepEqual(await keys("choices"), ["reportsAre", "reportsAre"]);
  assert.equal(reportsSent(await about("table-distribution"), false), "reportIs");
});

test("the code of an answer is that of its label, or of the nearest point", async () => {
  const work = await about("table-distribution");
  const [it] = work.questions;
  for (const [code, { code: label }] of it.options.entries()) {
    work.choose(it, label);
    assert.equal(codeOf(work, work.parts[0]), code);
  }
  const grid = await about("table-grid");
  const { bounds } = grid.parts[0].plan.numbers;
  for (const [place, point] of bounds.entries()) {
    grid.type(grid.questions[0], String(point + (place + 1 < bounds.length ? 0.4 * (bounds[place + 1] - point) : 0)));
    assert.equal(codeOf(grid, grid.parts[0]), place);
  }
});

test("what holds for every report holds for each", async () => {
  for (const name of ["table-distribution", "table-histogram"]) {
    const { parts } = await about(name);
    const [{ plan: own }] = parts;
    assert.deepEqual(reportsOf(own), [...Array(own.outputs).keys()]);
    for (const code of own.labels.keys()) {
      const { least, most } = answeredBetween(own, code);
      for (const report of reportsOf(own)) {
        const share = 100 * own.posterior(report)[code];
        assert.ok(least <= share + 1e-9 && share <= most + 1e-9, `${name} ${code} ${report}`);
      }
    }
  }
  const bits = await about("unary-one-word");
  assert.deepEqual(reportsOf(bits.parts[0].plan), []);
});

test("a share that rounds to nobody or everybody is neither", () => {
  const said = [0, 0.004, 0.005, 0.2, 0.996, 1].map((share) => outOfHundred(share));
  assert.deepEqual(
    said.map(({ key }) => key),
    [null, "fewerThanOne", "about", "about", "moreThan99", null],
  );
  assert.deepEqual([said[0].count, said[3].count, said[5].count], [0, 20, 100]);
});

// -- which step follows ------------------------------------------------------------------------------------------------

test("the first step follows from the curator's state and what is remembered", () => {
  const [open, closed, full] = ["open", "closed", "full"].map((state) => ({ state, leans_on_prior: false }));
  const kept = { delivered: false };
  /** @type {[any, any, string][]} */
  const steps = [
    [open, null, "start"],
    [open, kept, "undelivered"],
    [open, { delivered: true }, "thanks"],
    [closed, { delivered: true }, "thanks"],
    [open, { delivered: true, withdrawn: true }, "thanks"], // the curator has not confirmed it
    [open, { delivered: true, withdrawn: true, removed: true }, "withdrawn"],
    [closed, null, "shut"],
    [closed, kept, "shut"],
    [full, null, "shut"],
    [full, kept, "undelivered"], // it may be stored already
    [{ ...closed, state: "not yet open" }, null, "shut"],
  ];
  for (const [status, known, step] of steps)
    assert.equal(firstStep(status, known), step, JSON.stringify([status, known]));
});

test("a report that may still be taken is kept, and one that is refused for good is not", () => {
  assert.equal(whyKept(new NotSent("no network")), "notDelivered");
  assert.equal(whyKept(new ReportRefused("closed")), "shutClosed");
  assert.equal(whyKept(new ReportRefused("not yet open")), "shutNotYetOpen");
  for (const error of [new ReportRefused("full"), new ReportRefused("constructor"), new TypeError("no")])
    assert.equal(whyKept(error), null);
  assert.deepEqual(["full", "no invitation", "toString", "another"].map(whyRefused), [
    "refusedFull",
    "refusedInvitation",
    null,
    null,
  ]);
});

test("a failure is called by its name: a broken network or page is not tampering", () => {
  const title = (error, asked = 0) => {
    const keys = failure(error, asked);
    assert.ok(keys.every((key) => speaker("en").say(key) !== ""));
    return keys[0];
  };
  assert.equal(title(new NotSent("broke off")), "noConnectionTitle");
  assert.equal(title(new TypeError("not foreseen")), "failedTitle");
  assert.equal(title(new PriorveilError("id", "changed")), "untrustedTitle");
  assert.equal(title(new PriorveilError("certificate.ldp", "wrong")), "untrustedTitle");
  assert.equal(title(new PriorveilError("crypto", "missing")), "secureTitle");
  assert.equal(title(new PriorveilError("storage", "full")), "storageTitle");
  assert.equal(title(new ReportRefused("none", undefined, "campaign")), "unknownTitle");
  assert.equal(title(new PriorveilError("url", "no id")), "unknownTitle");
});

test("the limit of a browser is its own, unless one answer alone is above it", () => {
  const told = (level, asked) => failure(new BudgetExceeded(level, 10), asked).map((key) => speaker("en").say(key));
  const [tooMuch, limit] = ["tooMuch", "limit"].map((name) =>
    [`${name}Title`, name, `${name}Advice`].map((key) => speaker("en").say(key)),
  );
  assert.deepEqual(told(12, 12), tooMuch);
  assert.deepEqual(told(18, 10), limit);
  assert.deepEqual(told(Infinity, Infinity), limit);
});

test("the language is the first that is wanted and offered, with any region", () => {
  const offered = ["en", "de", "pt-BR"];
  assert.equal(bestLanguage(["xx", "de-AT"], offered), "de");
  assert.equal(bestLanguage(["pt-PT", "de"], offered), "pt-BR");
  assert.equal(bestLanguage(["DE"], offered), "de");
  assert.equal(bestLanguage(["ar"], offered), undefined);
});

// The client against a curator that is a function: what leaves, what is remembered, what is tried again.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { createGzip } from "node:zlib";

import { Client, NotSent, PriorveilError, ReportRefused, contentId, readCampaign } from "#priorveil";
import { campaign, curator, form, formOf, plan, question, storage } from "../fixtures/campaigns.js";

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

test("numbers are answered, and far ones count at the ends", async () => {
  const everyone = await formOf("hours", plan("table-grid"));
  const questions = [question("hours", "number")];
  const c = await curator({ document: await campaign({ questions, cohorts: { everyone } }) });
  for (const value of [12.5, -7, 1e300, Infinity, " 12.5", 3n]) await client(c).answer(value);
  assert.equal(c.sent.length, 6);
  const one = client(c);
  for (const value of ["12.5 h", NaN, null, undefined, [3], "", true, {}])
    await assert.rejects(
      one.answer(value),
      (/** @type {any} */ error) => error.field === "answers.hours" && !error.message.includes("12.5"),
    );
});

test("a campaign that would refuse numbers outside the range is refused", async () => {
  const everyone = await formOf("hours", plan("table-cells"));
  const document = await campaign({ questions: [question("hours", "number")], cohorts: { everyone } });
  await assert.rejects(readCampaign(document), /cohorts: should count numbers/);
});

test("a wrong answer is refused whether or not its question is drawn", async () => {
  const drawn = [
    { attributes: ["work"], share: 2 ** 19, plan: plan("table-distribution") },
    { attributes: ["hours"], share: 2 ** 19, plan: plan("table-grid") },
  ];
  const work = plan("table-distribution").labels;
  const questions = [question("work", "choice", work), question("hours", "number")];
  const c = await curator({ document: await campaign({ questions, cohorts: { everyone: await form(drawn) } }) });
  const right = { work: work[0], hours: 12.5 };
  for (const [name, wrong] of [
    ["work", "Pirate"],
    ["hours", "31337 h"],
  ]) {
    const isRefused = (error) => error.field === `answers.${name}` && !error.message.includes(wrong);
    for (let i = 0; i < 8; i++) await assert.rejects(client(c).answer({ ...right, [name]: wrong }), isRefused);
  }
  assert.equal(c.sent.length, 0);
});

test("one report leaves, with its id, its form and nothing else", async () => {
  const c = await curator();
  const { report, replayed } = await client(c).answer("Private");
  assert.equal(replayed, false);
  assert.equal(c.sent.length, 1);
  assert.equal(c.sent[0].url, `${c.url}/reports`);
  assert.deepEqual(JSON.parse(c.sent[0].body), report);
  assert.deepEqual(Object.keys(report).sort(), ["form", "report", "report_id"]);
  assert.match(report.report_id, /^[0-9a-f]{32}$/);
  assert.equal(c.sent[0].credentials, "omit");
});

test("no report is drawn, remembered or shown before it is sent", async () => {
  const [c, store] = [await curator(), storage()];
  const one = client(c, store);
  for (const value of ["Private", "None", "Private"]) assert.equal(await one.prepare(value), undefined);
  await assert.rejects(one.prepare("Pirate"), (/** @type {any} */ error) => error.field === "answers.work");
  assert.deepEqual([c.sent.length, store.held.size, await one.remembered()], [0, 0, null]);
  const { report } = await one.answer("Private");
  assert.equal(await one.prepare("None"), undefined);
  assert.deepEqual(
    c.sent.map(({ body }) => JSON.parse(body)),
    [report],
  );
});

test("asked again, it replays; the value is nowhere in the storage", async () => {
  const [c, store] = [await curator(), storage()];
  const { report } = await client(c, store).answer("Government");
  const again = await client(c, store).answer("None");
  assert.deepEqual(again, { report, replayed: true });
  assert.equal(c.sent.length, 1);
  const [text] = [...store.held.values()];
  assert.deepEqual(Object.keys(JSON.parse(text)).sort(), ["delivered", "form", "ldp", "origin", "report", "report_id"]);
});

test("a memory that cannot be read is not answered over", async () => {
  const [c, store] = [await curator(), storage()];
  const [{ id }] = Object.values(c.served.cohorts);
  const sound = { report_id: "00", form: id, report: "0".repeat(16), origin: "https://example.org", ldp: "1.0" };
  const broken = [{ form: "x" }, { report: "f".repeat(16) }, { report_id: 5 }, { ldp: "much" }, { origin: null }];
  for (const text of ["{", "null", ...broken.map((change) => JSON.stringify({ ...sound, ...change }))]) {
    store.setItem(`priorveil:${c.served.id}`, text);
    await assert.rejects(client(c, store).answer("Private"), (/** @type {any} */ e) => e.field === "storage");
  }
  assert.equal(c.sent.length, 0);
});

/** Without a storage of its own, where the browser's database is what `found` gives. */
async function withDatabase(found, run) {
  Object.defineProperty(globalThis, "indexedDB", { get: found, configurable: true });
  try {
    return await run();
  } finally {
    delete globalThis.indexedDB;
  }
}

const denied = () => {
  throw new DOMException("denied", "SecurityError");
};
const unsaid = (text) => !text.includes("Private") && !text.includes('{"report_id"'); // neither the value nor the report
const forgetful = (error) =>
  error instanceof PriorveilError &&
  error.field === "storage" &&
  /Nothing was sent/.test(error.message) &&
  unsaid(error.message);

test("with nowhere to remember, the campaign is shown and nothing is sent", async () => {
  const nowhere = {
    "no storage, as in Node": () => undefined,
    "a web view without one": () => null,
    "a browser that refuses it": denied,
  };
  for (const [place, found] of Object.entries(nowhere)) {
    await withDatabase(found, async () => {
      const c = await curator();
      const one = new Client(c.url, { fetch: c.fetch });
      assert.equal((await one.campaign()).title.en, "Where do you work?");
      for (const asked of [one.prepare("Private"), one.answer("Private"), one.deliver(), one.remembered()])
        await assert.rejects(asked, (/** @type {any} */ e) => forgetful(e) && /FileStorage/.test(e.message), place);
      assert.equal(c.sent.length, 0, place);
    });
  }
});

/** A database that cannot be opened, said later. The one that works is tried where it is to be had: in a browser. */
function broken() {
  const request = { error: new DOMException("corrupt", "UnknownError") };
  setTimeout(() => request.onerror());
  return request;
}

test("a browser's database that cannot be opened stops the answer before it leaves", async () => {
  for (const open of [denied, broken]) {
    await withDatabase(
      () => ({ open }),
      async () => {
        const c = await curator();
        const one = new Client(c.url, { fetch: c.fetch });
        for (const asked of [() => one.prepare("Private"), () => one.answer("Private"), () => one.deliver()])
          await assert.rejects(
            asked(),
            (/** @type {any} */ e) => forgetful(e) && /(Security|Unknown)Error/.test(e.message),
          );
        assert.equal(c.sent.length, 0);
      },
    );
  }
});

test("a storage that fails or forgets stops the answer before it leaves", async () => {
  const full = (_key, text) => {
    throw new DOMException(`no room for ${text}`, "QuotaExceededError");
  };
  const failing = {
    full: { ...storage(), setItem: full },
    "full, by a promise": { ...storage(), setItem: async (key, text) => full(key, text) },
    forgetting: { getItem: () => null, setItem: () => {}, keys: () => [] },
    "one that cannot list": { ...storage(), keys: undefined },
    unreadable: { ...storage(), getItem: denied },
    "not a storage": new Map(),
  };
  for (const [place, store] of Object.entries(failing)) {
    const c = await curator();
    await assert.rejects(client(c, store).answer("Private"), forgetful, place);
    assert.equal(c.sent.length, 0, place);
  }
});

test("a storage that fails after the report has arrived does not call it lost", async () => {
  const [c, store] = [await curator(), storage()];
  const once = { ...store, setItem: (key, text) => (store.held.has(key) ? denied() : store.setItem(key, text)) };
  const { report } = await client(c, once).answer("Private");
  assert.deepEqual(await client(c, once).answer("None"), { report, replayed: true });
  assert.equal(new Set(c.sent.map((request) => request.body)).size, 1);
});

/** A storage that takes its time, so that others come between. */
function slow() {
  const store = storage();
  const later = (act) => (key, text) => new Promise((done) => setTimeout(() => done(act(key, text)), 1));
  return { held: store.held, getItem: later(store.getItem), setItem: later(store.setItem), keys: later(store.keys) };
}

test("asked twice at the same instant, one report leaves", async () => {
  for (const store of [storage(), slow()]) {
    const c = await curator();
    const [one, two] = [client(c, store), client(c, store)];
    const values = ["Private", "None", "Government", "Self-employed"];
    const asked = values.flatMap((value) => [one.answer(value), two.answer(value), one.deliver()]);
    /** @type {any[]} */
    const done = await Promise.all(asked);
    const receipts = done.filter((receipt) => receipt.report);
    assert.equal(new Set(receipts.map(({ report }) => JSON.stringify(report))).size, 1);
    assert.equal(receipts.filter(({ replayed }) => !replayed).length, 1);
    assert.equal(c.sent.length, 1);
  }
});

test("one that fails does not hold up the next", async () => {
  const [c, store] = [await curator({ answers: Array(5).fill("down") }), storage()];
  const [first, second] = await Promise.allSettled([
    client(c, store).answer("Private"),
    client(c, store).answer("None"),
  ]);
  assert.ok(first.status === "rejected" && first.reason instanceof NotSent);
  assert.ok(second.status === "fulfilled" && second.value.replayed);
  assert.equal(new Set(c.sent.map((request) => request.body)).size, 1);
});

test("an undelivered report is kept and sent again as it was", async () => {
  const [c, store] = [await curator({ answers: Array(5).fill("down") }), storage()];
  const one = client(c, store);
  await assert.rejects(one.answer("Private"), NotSent);
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
  const closed = await curator({
    answers: [{ accepted: 0, refused: [{ index: 0, report_id: null, reason: "closed" }] }],
  });
  await assert.rejects(client(closed).answer("Private"), (e) => e instanceof ReportRefused && e.reason === "closed");
  const wrong = await curator({ answers: [400] });
  await assert.rejects(client(wrong).answer("Private"), ReportRefused);
});

test("a curator whose clock was wrong is asked again, with the same report", async () => {
  const shut = ["closed", "not yet open"].map((reason) => ({
    accepted: 0,
    refused: [{ index: 0, report_id: null, reason }],
  }));
  const [c, store] = [await curator({ answers: [...shut] }), storage()];
  for (const { refused } of shut)
    await assert.rejects(
      client(c, store).answer("Private"),
      (e) => e instanceof ReportRefused && e.reason === refused[0].reason,
    );
  assert.equal(await client(c, store).deliver(), true);
  assert.deepEqual([c.sent.length, new Set(c.sent.map((request) => request.body)).size], [3, 1]);
});

test("an answer that is not the curator's leaves the report undelivered", async () => {
  const refusals = [null, [null], [5], [{}], [{ reason: 5 }], [{ reason: "closed" }, null], {}, "none"];
  const receipts = refusals.map((refused) => ({ accepted: 0, refused }));
  const none = { accepted: 0, refused: [] };
  for (const stranger of ["<html>Welcome to our hotel</html>", [], { accepted: 1 }, none, ...receipts]) {
    const c = await curator({ answers: [stranger] });
    const store = storage();
    await assert.rejects(client(c, store).answer("Private"), NotSent);
    assert.equal((await client(c, store).remembered()).delivered, false);
    assert.equal(await client(c, store).deliver(), true);
    assert.equal(new Set(c.sent.map((request) => request.body)).size, 1);
  }
});

/** @param {import("node:http").Server} server */
function portOf(server) {
  const address = server.address();
  return typeof address === "object" ? address?.port : address;
}

/** A curator on this machine that answers as told: `get` and `post` are given the response to write to. */
async function listening(/** @type {any} */ { get, post = () => assert.fail("nothing should be sent") }, run) {
  const served = await campaign();
  const text = JSON.stringify(served);
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json");
    if (request.method === "POST") post(response, request);
    else if (get) get(response, text);
    else response.end(text);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    return await run(`http://127.0.0.1:${portOf(server)}/v1/campaigns/${served.id}`);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

const breaking = (response, text) => {
  response.setHeader("content-length", text.length);
  response.write(text.slice(0, 10), () => response.socket.destroy());
};
const silent = () => {};
const trickling = (response) => {
  response.write("{");
  const drops = setInterval(() => response.write(" "), 20);
  response.on("close", () => clearInterval(drops));
};

test("a download that breaks off is tried again, and told as undelivered", async () => {
  let broken = 0;
  const get = (response, text) => {
    broken += 1;
    if (broken === 4) response.end(text);
    else breaking(response, text);
  };
  await listening({ get }, async (url) => {
    const waits = [];
    const options = { storage: storage(), wait: async (s) => waits.push(s) };
    assert.equal((await new Client(url, options).campaign()).title.en, "Where do you work?");
    assert.equal(waits.length, 3);
    await assert.rejects(new Client(url, options).campaign(), NotSent);
  });
});

test("a receipt that breaks off leaves the report to be sent again as it was", async () => {
  const post = (response) => breaking(response, '{"accepted":1,"refused":[]}');
  await listening({ post }, async (url) => {
    const one = new Client(url, { storage: storage(), wait: async () => {} });
    await assert.rejects(one.answer("Private"), NotSent);
    assert.equal((await one.remembered()).delivered, false);
  });
});

test("a request ends with its time, whether nothing comes or a little at a time", async () => {
  const late = (error) => error instanceof NotSent && /did not answer within 0.2 seconds/.test(error.message);
  for (const slow of [silent, trickling]) {
    await listening({ get: slow }, async (url) => {
      await assert.rejects(new Client(url, { storage: storage(), timeout: 0.2 }).campaign(), late);
    });
    await listening({ post: slow }, async (url) => {
      const store = storage();
      const waits = [];
      // The campaign may take its time: on a busy machine 0.2 seconds can pass before it is there.
      const patient = (place, request) =>
        fetch(place, request.method === "POST" ? request : { ...request, signal: null });
      const one = new Client(url, { fetch: patient, storage: store, timeout: 0.2, wait: async (s) => waits.push(s) });
      await assert.rejects(one.answer("Private"), late);
      assert.equal((await one.remembered()).delivered, false);
      assert.deepEqual(waits, []); // another attempt would take as long
    });
  }
});

/** Write 200 MiB of spaces, for as long as somebody reads; `written` counts them. */
const endless =
  (written) =>
  async (response, packed = null) => {
    const [block, out] = [Buffer.alloc(1 << 20, " "), packed ?? response];
    packed?.pipe(response);
    for (let i = 0; i < 200 && !response.destroyed; i += 1) {
      written.bytes += block.length;
      if (!out.write(block)) await Promise.race([once(out, "drain"), once(response, "close")]);
    }
    out.end();
  };

test("an endless answer is not listened to, and is not unpacked", async () => {
  const asking = (url) => new Client(url, { storage: storage(), wait: async () => {} });
  const unreadable = (error) =>
    error instanceof ReportRefused && /cannot be read: it is longer than 67108864 bytes/.test(error.message);
  for (const coding of ["identity", "gzip"]) {
    const say = (written) => (response) => {
      response.setHeader("content-encoding", coding);
      endless(written)(response, coding === "gzip" ? createGzip() : null);
    };
    const [fetched, received] = [{ bytes: 0 }, { bytes: 0 }];
    await listening({ get: say(fetched) }, (url) => assert.rejects(asking(url).campaign(), unreadable));
    await listening({ post: say(received) }, (url) => assert.rejects(asking(url).answer("Private"), NotSent));
    if (coding === "identity")
      assert.ok(fetched.bytes < 100 << 20 && received.bytes < 30 << 20, "the rest stayed where it was");
  }
});

test("a report does not follow a redirect, nor does a campaign", async () => {
  const elsewhere = [];
  const other = createServer((request, response) => {
    elsewhere.push(request.url);
    request.resume();
    response.end('{"accepted":1,"refused":[]}');
  });
  await once(other.listen(0, "127.0.0.1"), "listening");
  const away = (response) => {
    response.writeHead(307, { location: `http://127.0.0.1:${portOf(other)}/` });
    response.end();
  };
  try {
    await listening({ post: away }, async (url) => {
      const [one, store] = [(held) => new Client(url, { storage: held }), storage()];
      await assert.rejects(
        one(store).answer("Private"),
        (e) => e instanceof ReportRefused && e.reason === "the curator answered 307",
      );
      assert.equal((await one(store).remembered()).delivered, false);
    });
    await listening({ get: away }, (url) =>
      assert.rejects(
        new Client(url).campaign(),
        (/** @type {any} */ e) => e.reason === "there is no campaign at this address (307)",
      ),
    );
    assert.deepEqual(elsewhere, []);
  } finally {
    await new Promise((done) => other.close(done));
  }
});

test("no text of a curator or a document changes how an error is shown", async () => {
  const shown = (error) => !/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/.test(error.message + (error.reason ?? ""));
  for (const reason of ["\u001b[2J\u202eall is well", "line\nline", `${"x".repeat(300)}\u001b`]) {
    const c = await curator({ answers: [{ accepted: 0, refused: [{ index: 0, report_id: null, reason }] }] });
    await assert.rejects(
      client(c).answer("Private"),
      (e) => e instanceof ReportRefused && shown(e) && e.reason.length <= 100,
    );
  }
  const document = await campaign({ "\u001b[2J\u202e": 1 });
  await assert.rejects(readCampaign(document), (e) => e instanceof PriorveilError && shown(e));
});

test("a time limit is a number of seconds", () => {
  for (const timeout of /** @type {any} */ ([0, -1, NaN, "5", null]))
    assert.throws(
      () => new Client("https://example.org", { timeout }),
      (/** @type {any} */ e) => e.field === "timeout",
    );
  assert.ok(new Client("https://example.org", { timeout: Infinity }));
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

test("where there is no campaign, the curator's refusal is told", async () => {
  const { url } = await curator();
  const id = url.split("/").at(-1);
  const page = new Response("<!doctype html>", { headers: { "content-type": "text/html; charset=utf-8" } });
  const problem = new Response("{}", { status: 404, headers: { "content-type": "application/problem+json" } });
  for (const { place, response } of [
    { place: `https://example.org/answer/${id}`, response: page },
    { place: url, response: problem },
  ]) {
    const asked = new Client(place, { fetch: async () => response, storage: storage() });
    await assert.rejects(asked.answer("Private"), (error) => {
      assert.ok(error instanceof ReportRefused);
      assert.equal(error.reason, `there is no campaign at this address (${response.status})`);
      return error.field === "campaign";
    });
  }
});

test("a campaign that is not the one asked for, or was changed, is not answered", async () => {
  const other = await campaign({ contact: "somebody else" });
  const c = await curator();
  const swapped = { ...c, fetch: async () => Response.json(other) };
  await assert.rejects(client(swapped).answer("Private"), (/** @type {any} */ e) => e.field === "id");
  const changed = await curator({ document: { ...(await campaign()), title: { en: "How ill are you?" } } });
  await assert.rejects(client(changed).answer("Private"), (/** @type {any} */ e) => e.field === "id");
});

test("a campaign with a plan that leaks is not answered", async () => {
  const leaky = plan("table-distribution");
  leaky.budget = { lower: "0.5", upper: "0.5" };
  leaky.id = await contentId(leaky);
  await assert.rejects(
    readCampaign(await campaign({ cohorts: { everyone: await formOf("work", leaky) } })),
    (/** @type {any} */ e) => e.field === "certificate",
  );
});

test("cohorts: each has its form, and one must be chosen where there are several", async () => {
  const [north, south] = [
    await formOf("work", plan("table-distribution")),
    await formOf("work", plan("table-histogram")),
  ];
  const two = await readCampaign(await campaign({ cohorts: { north, south } }));
  assert.deepEqual(two.cohorts, ["north", "south"]);
  assert.equal(two.formFor("south").id, south.id);
  assert.throws(() => two.formFor(), PriorveilError);
  assert.throws(() => two.formFor("__proto__"), PriorveilError);
  await assert.rejects(
    readCampaign(await campaign({ cohorts: { north, south: north } })),
    (/** @type {any} */ e) => e.field === "cohorts",
  );
  const foreign = { north: await formOf("work", plan("table-two-answers")) };
  await assert.rejects(
    readCampaign(await campaign({ cohorts: foreign })),
    (/** @type {any} */ e) => e.field === "cohorts",
  );
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
  const written = ["2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+00:00", "0000-01-01T00:00:00Z"];
  for (const opens of ["soon", 5, ...written])
    await assert.rejects(readCampaign(await campaign({ opens })), (/** @type {any} */ e) => e.field === "opens");
  await assert.rejects(
    readCampaign(await campaign({ ...times, closes: times.opens })),
    (/** @type {any} */ e) => e.field === "closes",
  );
});

test("a campaign has its fields and no others, and texts that can be shown", async () => {
  const { contact: _, ...less } = await campaign();
  for (const [field, document] of [
    ["note", await campaign({ note: "hello" })],
    ["contact", { ...less, id: await contentId(less) }],
    ["title", await campaign({ title: { en: " \u001f\u0085" } })],
    ["title.en", await campaign({ title: { en: "x".repeat(2001) } })],
    ["title.en", await campaign({ title: {} })],
    ["title.de", await campaign({ title: { en: "x", de: "x" } })],
    ["title.de", await campaign({ languages: ["en", "de"] })],
    ["languages", await campaign({ languages: [] })],
    ["languages", await campaign({ languages: ["en", "EN"] })],
    ["contact", await campaign({ contact: 5 })],
    ["asked_by", await campaign({ asked_by: null })],
    ["purpose.en", await campaign({ purpose: { en: "x".repeat(2001) } })],
    ["limit", await campaign({ limit: 5 })],
    ["limit", await campaign({ limit: "0.0" })],
    ["cohorts", await campaign({ cohorts: [await formOf("work", plan("table-distribution"))] })],
    ["cohorts", await campaign({ cohorts: { " ": await formOf("work", plan("table-distribution")) } })],
    ["cohorts", await campaign({ cohorts: {} })],
    ["cohorts", await campaign({ cohorts: { ["x".repeat(2001)]: await formOf("work", plan("table-distribution")) } })],
    ["smallest_count", await campaign({ smallest_count: -1 })],
    ["admission", await campaign({ admission: "friends" })],
    ["most_reports", await campaign({ most_reports: 0 })],
    ["most_reports", await campaign({ most_reports: "7" })],
    ["keep_until", await campaign({ keep_until: "2027-01-01T00:00:00Z" })],
    ["keep_until", await campaign({ closes: "2027-01-01T00:00:00Z", keep_until: "2027-01-01T00:00:00Z" })],
  ])
    await assert.rejects(
      readCampaign(document),
      (e) => e instanceof PriorveilError && e.field === field,
      String(field),
    );
  assert.ok(await readCampaign(await campaign({ title: { en: "\u{1f300}".repeat(2000) } })));
});

const CODE = "00112233445566778899aabbccddeeff";

test("with an invitation, its code is checked before anything is drawn, and leaves with the report", async () => {
  const c = await curator({ document: await campaign({ admission: "invitation" }), answers: [{ free: true }] });
  c.url = `${c.url.replace("/v1/campaigns/", "/answer/")}#code=${CODE}`;
  const [store, one] = [storage(), client(c)];
  assert.equal(await one.invited(), true);
  const { report } = await one.answer("Private");
  const [asked, sent] = c.sent.map(({ url, body }) => [url, JSON.parse(body)]);
  assert.deepEqual(asked, [`https://example.org/v1/campaigns/${c.served.id}/invitation`, { code: CODE }]);
  assert.deepEqual(sent, [`https://example.org/v1/campaigns/${c.served.id}/reports`, { ...report, code: CODE }]);
  assert.ok(c.sent.every(({ url }) => !url.includes(CODE)));
  assert.ok([...store.held.values()].every((text) => !text.includes(CODE)));
});

test("without a free code nothing is drawn, remembered or sent", async () => {
  const document = await campaign({ admission: "invitation" });
  for (const { code, answers } of [
    { code: undefined, answers: [] },
    { code: CODE, answers: [{ free: false }, { free: false }] },
  ]) {
    const [c, store] = [await curator({ document, answers }), storage()];
    const one = new Client(c.url, { fetch: c.fetch, storage: store, code });
    assert.equal(await one.invited(), false);
    await assert.rejects(one.answer("Private"), (e) => e instanceof ReportRefused && e.reason === "no invitation");
    assert.equal(store.held.size, 0);
    assert.ok(c.sent.every(({ url }) => url.endsWith("/invitation")));
  }
  const c = await curator({ document, answers: [{ hello: "hotel" }] });
  await assert.rejects(new Client(c.url, { fetch: c.fetch, storage: storage(), code: CODE }).invited(), NotSent);
  for (const code of /** @type {any} */ (["", "short", `${CODE}0`, 7]))
    assert.throws(
      () => new Client(c.url, { code }),
      (e) => e instanceof PriorveilError && e.field === "code",
    );
});

test("an open campaign is not told a code", async () => {
  const c = await curator();
  const one = new Client(`${c.url}#code=${CODE}`, { fetch: c.fetch, storage: storage() });
  assert.equal(await one.invited(), true);
  const { report } = await one.answer("Private");
  assert.deepEqual(
    c.sent.map(({ body }) => JSON.parse(body)),
    [report],
  );
});

test("a report that did not arrive is sent again with its code, whether or not that is still free", async () => {
  const document = await campaign({ admission: "invitation" });
  const c = await curator({ document, answers: [{ free: true }, "down", "down", "down", "down", "down"] });
  const store = storage();
  const one = () => new Client(c.url, { fetch: c.fetch, storage: store, code: CODE, wait: async () => {} });
  await assert.rejects(one().answer("Private"), NotSent);
  const { replayed } = await one().answer("Private");
  const bodies = c.sent.filter(({ url }) => url.endsWith("/reports")).map(({ body }) => body);
  assert.ok(replayed && new Set(bodies).size === 1 && bodies.length === 6);
  assert.equal(c.sent.filter(({ url }) => url.endsWith("/invitation")).length, 1);
});

test("a withdrawn answer stays remembered and is never sent again", async () => {
  const receipt = { accepted: 1, refused: [] };
  const c = await curator({
    answers: [receipt, "down", "down", "down", "down", "down", { removed: 1 }, { removed: 0 }],
  });
  const store = storage();
  await assert.rejects(client(c, store).withdraw(), (/** @type {any} */ e) => e.field === "storage");
  const { report } = await client(c, store).answer("Private");
  await assert.rejects(client(c, store).withdraw(), NotSent);
  const withdrawn = (e) => e instanceof ReportRefused && e.reason === "withdrawn";
  await assert.rejects(client(c, store).answer("Private"), withdrawn);
  await assert.rejects(client(c, store).deliver(), withdrawn);
  const state = async () => {
    const known = await client(c, store).remembered();
    return [known.withdrawn, known.removed];
  };
  assert.deepEqual(await state(), [true, undefined], "the curator has not confirmed it");
  assert.equal(await client(c, store).withdraw(), true);
  assert.deepEqual(await state(), [true, true]);
  assert.equal(await client(c, store).withdraw(), false);
  assert.deepEqual(await state(), [true, true]);
  const { url, body } = c.sent.at(-1);
  assert.deepEqual([url, JSON.parse(body)], [`${c.url}/withdrawals`, { report_ids: [report.report_id] }]);
  assert.equal(c.sent.filter((request) => request.url.endsWith("/reports")).length, 1);
});

const ANOTHER_TAB = "../priorveil.js?another-tab"; // a module of its own

test("two programs that share a storage with a lock send one report", async () => {
  const other = await import(ANOTHER_TAB);
  const c = await curator();
  let turn = Promise.resolve();
  const shared = { ...storage(), lock: (work) => (turn = turn.then(work, work)) };
  const both = [Client, other.Client].map((Kind) => new Kind(c.url, { fetch: c.fetch, storage: shared }));
  for (const each of both) await each.campaign();
  const [one, two] = await Promise.all(both.map((each) => each.answer("Private")));
  assert.deepEqual(one.report, two.report);
});

test("a withdrawal that overtakes its report is not lost", async () => {
  const other = await import(ANOTHER_TAB); // a module of its own does not take turns with this one
  const [c, store] = [await curator({ answers: [] }), storage()];
  let [arriving, arrived] = [() => {}, () => {}];
  const reached = new Promise((done) => (arriving = () => done(null)));
  const held = new Promise((done) => (arrived = () => done(null)));
  const late = async (url, request = {}) => {
    if (url.endsWith("/reports")) {
      arriving();
      await held; // on its way
    }
    if (!url.endsWith("/withdrawals")) return c.fetch(url, request);
    c.sent.push({ url, ...request });
    const stands = c.sent.some((sent) => sent.url.endsWith("/reports"));
    if (stands && down) throw new TypeError("the network is down");
    return Response.json({ removed: stands ? 1 : 0 });
  };
  let down = true;
  const sending = new Client(c.url, { fetch: late, storage: store, wait: async () => {} }).answer("Private");
  await reached;
  const withdrawing = new other.Client(c.url, { fetch: late, storage: store });
  assert.equal(await withdrawing.withdraw(), false, "the report is not there yet");
  arrived();
  await assert.rejects(sending, NotSent);
  const asked = c.sent.map(({ url }) => url.split("/").at(-1));
  assert.deepEqual(asked.slice(0, 3), ["withdrawals", "reports", "withdrawals"]);
  const { withdrawn, removed } = await withdrawing.remembered();
  assert.deepEqual([withdrawn, removed], [true, undefined], "it stands at the curator: the page offers to try again");
  down = false;
  assert.equal(await withdrawing.withdraw(), true);
  assert.equal((await withdrawing.remembered()).removed, true);
  await assert.rejects(client(c, store).answer("Private"), (/** @type {any} */ e) => e.reason === "withdrawn");
});

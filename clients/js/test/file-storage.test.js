// The folder in which Node remembers: whole files, on the disk, and the first report of a campaign stands.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { curator, plan, storage } from "../fixtures/campaigns.js";
import { Client, DEFAULT_LIMIT, FileStorage, PriorveilError } from "#priorveil";

const KEY = `priorveil:${"0".repeat(64)}`;

/** Run with a folder that is not there yet, and clear it away. */
async function within(run) {
  const base = mkdtempSync(join(tmpdir(), "priorveil-"));
  try {
    await run(join(base, "state", "answers"));
  } finally {
    rmSync(base, { recursive: true });
  }
}

test("what is stored is found by the next program, and only its owner can read it", () =>
  within(async (folder) => {
    assert.equal((await FileStorage.open(folder)).getItem(KEY), null);
    (await FileStorage.open(folder)).setItem(KEY, "one");
    (await FileStorage.open(folder)).setItem(KEY, "two, é");
    const store = await FileStorage.open(folder);
    assert.equal(store.getItem(KEY), "two, é");
    assert.equal(store.getItem(`${KEY}1`), null);
    assert.deepEqual(store.keys(), [KEY]);
    const [name, ...others] = readdirSync(folder);
    assert.deepEqual(others, []); // no draft is left
    if (process.platform !== "win32") {
      assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
      assert.equal(statSync(folder).mode & 0o777, 0o700);
    }
  }));

test("what comes second is not added", () =>
  within(async (folder) => {
    const [one, two] = [await FileStorage.open(folder), await FileStorage.open(folder)];
    one.addItem(KEY, "first");
    two.addItem(KEY, "second");
    assert.deepEqual([one.getItem(KEY), two.getItem(KEY)], ["first", "first"]);
    assert.equal(readdirSync(folder).length, 1);
  }));

test("a key is a name in the folder, whatever is in it", () =>
  within(async (folder) => {
    const store = await FileStorage.open(join(folder, "inner"));
    for (const key of ["../x", "/x", "a/b", ".."]) {
      store.setItem(key, key);
      assert.equal(store.getItem(key), key);
    }
    assert.deepEqual(readdirSync(folder), ["inner"]);
    assert.equal(readdirSync(store.folder).length, 4);
  }));

test("what is no folder is said at once", () =>
  within(async (folder) => {
    const store = await FileStorage.open(folder);
    writeFileSync(join(folder, "file"), "");
    for (const wrong of /** @type {any} */ ([join(folder, "file"), "", undefined, 7]))
      await assert.rejects(FileStorage.open(wrong), (e) => e instanceof PriorveilError && e.field === "folder");
    rmSync(store.folder, { recursive: true });
    assert.equal(store.getItem(KEY), null);
    assert.throws(() => store.setItem(KEY, "lost"));
  }));

test("a client that starts again replays", () =>
  within(async (folder) => {
    const c = await curator();
    const receipts = [];
    for (const value of ["Private", "Private", "None"])
      receipts.push(await new Client(c.url, { fetch: c.fetch, storage: await FileStorage.open(folder) }).answer(value));
    assert.deepEqual(
      receipts.map(({ replayed }) => replayed),
      [false, true, true],
    );
    assert.deepEqual(
      c.sent.map(({ body }) => body),
      [JSON.stringify(receipts[2].report)],
    );
  }));

test("where nothing can be written, or a file cannot be read, nothing is sent", () =>
  within(async (folder) => {
    const c = await curator();
    const storage = await FileStorage.open(folder);
    rmSync(folder, { recursive: true });
    const asked = () => new Client(c.url, { fetch: c.fetch, storage }).answer("Private");
    const told = (code) => (error) => error.field === "storage" && error.message.includes(code);
    await assert.rejects(asked(), told("ENOENT"));
    await FileStorage.open(join(folder, `${encodeURIComponent(`priorveil:${c.url.split("/").at(-1)}`)}.json`)); // a folder by its name
    await assert.rejects(asked(), told("EISDIR"));
    assert.deepEqual(c.sent, []);
  }));

test("another program that comes between keeps its report, and that is the one sent", () =>
  within(async (folder) => {
    const c = await curator();
    const store = await FileStorage.open(folder);
    const { report: theirs } = await new Client(c.url, { fetch: c.fetch, storage: storage() }).answer("None");
    const record = JSON.stringify({ ...theirs, origin: "https://example.org", ldp: "1.0", delivered: false });
    const raced = {
      keys: () => store.keys(),
      getItem: (key) => store.getItem(key),
      setItem: (key, text) => store.setItem(key, text),
      async addItem(key, text) {
        (await FileStorage.open(folder)).addItem(key, record);
        store.addItem(key, text);
      },
    };
    const receipt = await new Client(c.url, { fetch: c.fetch, storage: raced }).answer("Private");
    assert.deepEqual(receipt, { report: theirs, replayed: true });
    assert.deepEqual(
      c.sent.map(({ body }) => body),
      [JSON.stringify(theirs), JSON.stringify(theirs)],
    );
  }));

test(
  "a lock of a program that has ended is taken over, and one that is held is waited for",
  { skip: process.platform === "win32" },
  () =>
    within(async (folder) => {
      const store = await FileStorage.open(folder);
      const before = new Date(Date.now() - 1000 * process.uptime() - 90_000);
      mkdirSync(join(folder, ".lock"));
      for (const left of [`${process.pid}.${"0".repeat(32)}.${hostname()}`, `1.${"0".repeat(32)}.elsewhere.example`]) {
        writeFileSync(join(folder, ".lock", left), "");
        utimesSync(join(folder, ".lock", left), before, before);
        assert.equal(await store.lock(async () => "done"), "done");
      }
      const said = [];
      const slow = store.lock(async () => {
        await new Promise((done) => setTimeout(done, 50));
        said.push("first");
      });
      await (await FileStorage.open(folder)).lock(async () => said.push("second"));
      await slow;
      assert.deepEqual(said, ["first", "second"]);
      await assert.rejects(
        store.lock(async () => assert.fail("it failed")),
        /it failed/,
      );
      assert.deepEqual(readdirSync(join(folder, ".lock")), []);
    }),
);

/** Answer a campaign of its own, once all programs are ready, and say what came of it. */
const PROGRAM = `
  import { campaign, curator } from "./fixtures/campaigns.js";
  import { Client, FileStorage } from "./priorveil.js";
  const [folder, name] = process.argv.slice(1);
  const c = await curator({ document: await campaign({ title: { en: name } }) });
  const client = new Client(c.url, { fetch: c.fetch, storage: await FileStorage.open(folder) });
  await client.campaign();
  console.log("ready");
  await new Promise((go) => process.stdin.once("data", go));
  await client.answer("None").then(() => console.log("told"), (error) => console.log(error.name));
  process.exit();
`;

test(
  "24 programs at once stay within the limit, also where one died with the lock",
  { skip: process.platform === "win32" },
  () =>
    within(async (folder) => {
      const dead = spawnSync(process.execPath, ["--version"]).pid;
      const store = await FileStorage.open(folder);
      mkdirSync(join(folder, ".lock"));
      writeFileSync(join(folder, ".lock", `${dead}.${"0".repeat(32)}.${hostname()}`), "");
      const programs = Array.from({ length: 24 }, (_, i) =>
        spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, folder, `Number ${i}`], {
          cwd: new URL("..", import.meta.url),
          stdio: ["pipe", "pipe", "inherit"],
        }),
      );
      const said = programs.map(() => "");
      programs.forEach(({ stdout }, i) => stdout.on("data", (text) => (said[i] += text)));
      await Promise.all(programs.map(({ stdout }) => once(stdout, "data")));
      const ended = programs.map((program) => once(program, "close"));
      for (const { stdin } of programs) stdin.write("go");
      await Promise.all(ended);
      const most = Math.floor(DEFAULT_LIMIT / Number(plan("table-distribution").certificate.ldp));
      const told = said.filter((text) => text === "ready\ntold\n");
      assert.equal(told.length, most);
      assert.equal(said.filter((text) => text === "ready\nBudgetExceeded\n").length, 24 - most);
      assert.equal(store.keys().length, most);
      assert.deepEqual(readdirSync(join(folder, ".lock")), []);
      assert.deepEqual(
        readdirSync(folder).filter((name) => name.startsWith(".")),
        [".lock"],
      );
    }),
);

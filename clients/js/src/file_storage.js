// Where Node remembers what was sent.

import { PriorveilError, need } from "./errors.js";
import { freshId } from "./randomness.js";
import { UNSENT } from "./storage.js";
import { inTurn, sleep } from "./turns.js";

const LONGEST_LOCK = 60_000; // milliseconds; programs hold it for a few

/**
 * Remembers in a folder: the storage for Node. Made by `FileStorage.open`.
 *
 * Each campaign has one file, which only its owner can read. It is on the disk before anything is sent. It is complete or
 * absent: a draft is written first and then renamed. Several programs of one machine may share the folder: the first report of
 * a campaign stands, and they add to it one after the other.
 */
export class FileStorage {
  #fs;
  #host;

  /** @private @param {string} folder @param {typeof import("node:fs")} fs @param {string} host */
  constructor(folder, fs, host) {
    need(fs, "folder", "use `await FileStorage.open(folder)`");
    this.folder = folder;
    this.#fs = fs;
    this.#host = host;
  }

  /** The storage of a folder, which is created if it is missing. @param {string} folder */
  static async open(folder) {
    need(typeof folder === "string" && folder !== "", "folder", "should be the name of a folder");
    const [fs, { resolve }, { hostname }] = await Promise.all([
      import("node:fs"),
      import("node:path"),
      import("node:os"),
    ]);
    const absolute = resolve(folder); // the working directory may change later
    try {
      fs.mkdirSync(absolute, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new PriorveilError("folder", `it cannot be created, or is a file (${error.code})`);
    }
    return new FileStorage(absolute, fs, hostname());
  }

  /** The keys of all texts in the folder. */
  keys() {
    const names = this.#fs.readdirSync(this.folder).filter((name) => name.endsWith(".json") && !name.startsWith("."));
    return names.map((name) => decodeURIComponent(name.slice(0, -".json".length)));
  }

  /**
   * The text under a key, or null if there is none. A file that cannot be read is an error, not a missing one.
   *
   * @param {string} key
   */
  getItem(key) {
    try {
      return this.#fs.readFileSync(this.#path(key), "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw error;
    }
  }

  /** Store a text, instead of what was there. @param {string} key @param {string} text */
  setItem(key, text) {
    this.#write(text, (draft) => this.#fs.renameSync(draft, this.#path(key)));
  }

  /**
   * Store a text unless the key has one. Linking a file is atomic: only one of several programs succeeds.
   *
   * @param {string} key
   * @param {string} text
   */
  addItem(key, text) {
    this.#write(text, (draft) => {
      try {
        this.#fs.linkSync(draft, this.#path(key));
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
      }
    });
  }

  /**
   * Run alone among the programs of this machine that share the folder; Windows has no such lock.
   *
   * The lock is the folder `.lock` with one file in it, named after its program. A folder can be renamed to an empty one only,
   * so one program succeeds. The file of a program that has died is removed: no other has its name.
   *
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async lock(work) {
    if (globalThis.process.platform === "win32") return inTurn("priorveil", work);
    const [fs, lock, mine] = [this.#fs, `${this.folder}/.lock`, `${globalThis.process.pid}.${freshId()}.${this.#host}`];
    const own = `${this.folder}/.${mine}`;
    try {
      fs.mkdirSync(own, { mode: 0o700 });
      fs.writeFileSync(`${own}/${mine}`, "");
      for (const end = Date.now() + 2 * LONGEST_LOCK; !this.#rename(own, lock); await sleep(0.02 * Math.random())) {
        for (const name of fs.readdirSync(lock))
          if (this.#isDead(lock, name)) fs.rmSync(`${lock}/${name}`, { force: true });
        need(Date.now() < end, "storage", `another program holds ${lock}: delete it if there is none. ${UNSENT}`);
      }
      return await work();
    } finally {
      fs.rmSync(`${lock}/${mine}`, { force: true });
      fs.rmSync(own, { recursive: true, force: true });
    }
  }

  /**
   * Whether a folder could be renamed; false if there is one with a file in it.
   *
   * @param {string} from
   * @param {string} to
   */
  #rename(from, to) {
    try {
      this.#fs.renameSync(from, to);
      return true;
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST"].includes(error.code)) throw error;
      return false;
    }
  }

  /**
   * Whether the program of a lock has ended; one of another machine or container is given a minute.
   *
   * @param {string} lock
   * @param {string} name
   */
  #isDead(lock, name) {
    const { process } = globalThis;
    const [pid, , ...host] = name.split(".");
    const age = Date.now() - (this.#fs.statSync(`${lock}/${name}`, { throwIfNoEntry: false })?.mtimeMs ?? Infinity);
    if (host.join(".") !== this.#host) return age > LONGEST_LOCK;
    if (Number(pid) === process.pid) return age > 1000 * process.uptime(); // a container starts again with the same number
    try {
      process.kill(Number(pid), 0); // sends nothing
      return false;
    } catch (error) {
      return error.code === "ESRCH";
    }
  }

  /** @param {string} key */
  #path(key) {
    return `${this.folder}/${encodeURIComponent(key)}.json`;
  }

  /** @param {string} text @param {(draft: string) => void} publish */
  #write(text, publish) {
    const draft = `${this.folder}/.${freshId()}.part`;
    try {
      this.#sync(draft, "wx", (file) => this.#fs.writeFileSync(file, text));
      publish(draft);
    } finally {
      this.#fs.rmSync(draft, { force: true });
    }
    if (globalThis.process.platform !== "win32") this.#sync(this.folder, "r"); // Windows cannot open a folder
  }

  /**
   * Open a file or a folder, write to it, and wait until it is on the disk.
   *
   * @param {string} path
   * @param {string} flags
   * @param {(file: number) => void} [write]
   */
  #sync(path, flags, write = () => {}) {
    const file = this.#fs.openSync(path, flags, 0o600);
    try {
      write(file);
      this.#fs.fsyncSync(file);
    } finally {
      this.#fs.closeSync(file);
    }
  }
}

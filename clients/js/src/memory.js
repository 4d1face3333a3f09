// What a client remembers on its device.

import { PriorveilError, need } from "./errors.js";
import { UNSENT } from "./storage.js";
import { inTurn } from "./turns.js";
/** @import { ReportStorage } from "./storage.js" */

const ADVICE =
  "Let the browser store this site's data, or give a `storage`; in Node, one from FileStorage.open(folder).";

/** A storage whose failures are errors of ours, which do not quote what was to be written. */
export class Memory {
  #storage;

  /** @param {ReportStorage | null} storage */
  constructor(storage) {
    this.#storage = storage;
  }

  /** The keys of all texts. */
  keys() {
    return this.#use("looked up", async (storage) => [...(await storage.keys())]);
  }

  /** The text under a key; null if there is none. @param {string} key */
  get(key) {
    return this.#use("looked up", async (storage) => (await storage.getItem(key)) ?? null);
  }

  /** Store a text, instead of what was there. @param {string} key @param {string} text */
  set(key, text) {
    return this.#use("remembered", (storage) => storage.setItem(key, text));
  }

  /** Store a text unless the key has one; a storage that cannot tell is told to store it. @param {string} key @param {string} text */
  add(key, text) {
    return this.#use("remembered", (storage) =>
      typeof storage.addItem === "function" ? storage.addItem(key, text) : storage.setItem(key, text),
    );
  }

  /**
   * Run alone among the tabs and programs that share the storage, so that two campaigns answered at once are both counted.
   *
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  exclusively(work) {
    if (typeof this.#storage?.lock !== "function") return inTurn("priorveil", work);
    return this.#use("remembered", (storage) => /** @type {Required<ReportStorage>} */ (storage).lock(work));
  }

  /**
   * @template T
   * @param {string} done what the report could not be, if this fails
   * @param {(storage: ReportStorage) => T | Promise<T>} act
   * @returns {Promise<T>}
   */
  async #use(done, act) {
    const storage = this.#storage;
    const [reads, writes, lists] = [storage?.getItem, storage?.setItem, storage?.keys];
    const usable = [reads, writes, lists].every((method) => typeof method === "function");
    need(storage && usable, "storage", `there is nowhere to remember the report. ${UNSENT} ${ADVICE}`);
    try {
      return await act(storage);
    } catch (error) {
      if (error instanceof PriorveilError) throw error; // what was done under the lock has failed
      const why = typeof error?.code === "string" ? error.code : error?.name; // its message may quote what was to be written
      throw new PriorveilError("storage", `the report cannot be ${done} (${why}). ${UNSENT}`);
    }
  }
}

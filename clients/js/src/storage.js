// Where a browser remembers what was sent.

import { inTurn } from "./turns.js";
/**
 * Where submissions and draws are remembered. Results may also be promises.
 *
 * `keys` lists all keys: those of other campaigns count against the limit. `getItem` gives the text under a key, null or undefined
 * if there is none. `setItem` stores a text, durably, instead of what was there; `addItem` unless one is there, which is needed
 * wherever several tabs or programs share a storage. `lock` runs alone among them: then they cannot exceed the limit together.
 *
 * @typedef {object} ReportStorage
 * @property {() => Iterable<string> | PromiseLike<Iterable<string>>} keys
 * @property {(key: string) => string | null | undefined | PromiseLike<string | null | undefined>} getItem
 * @property {(key: string, text: string) => unknown} setItem
 * @property {(key: string, text: string) => unknown} [addItem]
 * @property {<T>(work: () => Promise<T>) => Promise<T>} [lock]
 */

export const UNSENT = "Nothing was sent: without a memory, answering again would send another report and tell more.";

/** The browser's memory; null where there is none, or the browser refuses it. @returns {ReportStorage | null} */
export function deviceStorage() {
  try {
    return globalThis.indexedDB ? databaseStorage : null;
  } catch {
    return null; // a browser that blocks storage may throw on touching it
  }
}

const REPORTS = "reports"; // the one table of the database

/**
 * IndexedDB, whose transactions are ordered across tabs and workers: of several first reports one stands, and all see it.
 *
 * @type {Required<ReportStorage>}
 */
const databaseStorage = {
  async keys() {
    const keys = await transact("readonly", (reports) => reports.getAllKeys());
    return /** @type {string[]} */ (keys);
  },

  async getItem(key) {
    return (await transact("readonly", (reports) => reports.get(key))) ?? null;
  },

  async setItem(key, text) {
    await transact("readwrite", (reports) => reports.put(text, key));
  },

  async addItem(key, text) {
    await transact("readwrite", (reports) => {
      const adding = reports.add(text, key);
      adding.onerror = (event) => {
        if (adding.error?.name === "ConstraintError") event.preventDefault(); // one is there and stays: not a failure
      };
      return adding;
    });
  },

  lock(work) {
    const locks = globalThis.navigator?.locks;
    return locks ? locks.request("priorveil", work) : inTurn("priorveil", work);
  },
};

/**
 * The result of a request whose transaction has succeeded and is on the disk. The database is opened for this request only: so no tab
 * blocks its deletion, or goes on with a database that was deleted.
 *
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(reports: IDBObjectStore) => IDBRequest<T>} act
 * @returns {Promise<T>}
 */
async function transact(mode, act) {
  const database = await openDatabase();
  try {
    return await new Promise((done, failed) => {
      const transaction = database.transaction(REPORTS, mode, { durability: "strict" });
      const request = act(transaction.objectStore(REPORTS));
      transaction.oncomplete = () => done(request.result);
      transaction.onabort = () => failed(transaction.error);
    });
  } finally {
    database.close();
  }
}

/** @returns {Promise<IDBDatabase>} */
function openDatabase() {
  return new Promise((done, failed) => {
    const request = globalThis.indexedDB.open("priorveil", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(REPORTS);
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}

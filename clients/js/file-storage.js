/**
 * A folder that remembers reports, for the client in Node. Browsers have a storage of their own and do not need it.
 *
 * One file for each campaign, which only its owner can read. It is on the disk before anything is sent, and it is whole or not
 * there: a draft is written, and then given its name.
 */

import { randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { platform } from "node:process";

import { PriorveilError } from "./priorveil.js";

/** Remembers in a folder, made if it is not there. Several programs may share it: the first report of a campaign stands. */
export class FileStorage {
  constructor(folder) {
    if (typeof folder !== "string" || folder === "")
      throw new PriorveilError("folder", "should be the name of a folder");
    this.folder = resolve(folder); // the program may go elsewhere later
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new PriorveilError("folder", `it cannot be made, or is a file (${error.code})`);
    }
  }

  /** What is remembered, or null. Whatever else keeps a file from being read is an error, not a blank memory. */
  getItem(key) {
    try {
      return readFileSync(this.#path(key), "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw error;
    }
  }

  /** Remember, instead of what was remembered before. */
  setItem(key, text) {
    this.#put(key, text, renameSync);
  }

  /** Remember, unless something is remembered already: that stays. */
  addItem(key, text) {
    this.#put(key, text, linked);
  }

  #put(key, text, named) {
    const draft = join(this.folder, `.${randomUUID()}.part`);
    try {
      written(draft, text);
      named(draft, this.#path(key));
    } finally {
      rmSync(draft, { force: true });
    }
    synced(this.folder);
  }

  #path(key) {
    return join(this.folder, `${encodeURIComponent(key)}.json`);
  }
}

/** Give a draft its name, unless a file has it: the system makes sure that only one of many does. */
function linked(draft, path) {
  try {
    linkSync(draft, path);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
}

/** A file that only its owner can read, on the disk. */
function written(path, text) {
  const file = openSync(path, "wx", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Put the names in a folder on the disk; Windows opens no folders. */
function synced(folder) {
  if (platform === "win32") return;
  const opened = openSync(folder, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

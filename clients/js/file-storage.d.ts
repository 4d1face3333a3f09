import type { ReportStorage } from "./priorveil.js";

/** Remembers in a folder, made if it is not there. Several programs may share it: the first report of a campaign stands. */
export class FileStorage implements ReportStorage {
  constructor(folder: string);
  /** The whole path of the folder. */
  readonly folder: string;
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  addItem(key: string, text: string): void;
}

/** A label of an answer; of several attributes, a level of each. */
export type Label = string | number | readonly (string | number)[];
/** A report as it is written in JSON: a whole number, or a row of bits as little-endian hexadecimal. */
export type Report = number | string;
/** Gives the next `count` uniform 64-bit words. */
export type Source = (count: number) => bigint[];
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Document = { readonly [key: string]: Json };

/** Something that must not be trusted, or cannot be done; `field` names the part of the document or the argument. */
export class PriorveilError extends Error {
  constructor(field: string, message: string);
  readonly field: string;
}

/** The curator answered, and did not take the report, or has no such campaign; `reason` says why. */
export class ReportRefused extends PriorveilError {
  constructor(reason: string, message?: string, field?: string);
  readonly reason: string;
}

/** The report could not be delivered for now. It is kept, and sending again sends the same report. */
export class NotSent extends PriorveilError {
  constructor(message: string);
}

/** The one text of a document: keys sorted by code point, no spaces. */
export function canonical(value: Json): string;
/** The SHA-256 of a document's canonical text, without its own `id`, in hexadecimal. */
export function contentId(document: Document): Promise<string>;
/** Random words from the operating system, by Web Crypto: the only source whose reports are private. */
export function systemWords(count: number): bigint[];
/** A source that reads given bytes once: for test vectors, never for real answers. */
export function wordsFrom(bytes: Uint8Array): Source;
/** The number that a person typed, with a point or a comma as its decimal mark; an error if it is none, or ambiguous. */
export function readNumber(typed: string): number;
/** A new report id: 16 random bytes, in hexadecimal. */
export function freshId(): string;
/** Fractions, as `[numerator, denominator]`, proven to lie below and above `e**level`; for a level of zero or more. */
export function expBounds(level: number): [[bigint, bigint], [bigint, bigint]];

/** Proven levels, in natural logarithms. */
export interface Levels {
  /** The larger side of local information privacy, under the prior, of what the plan protects. */
  readonly lip: number;
  readonly lipLower: number;
  readonly lipUpper: number;
  /** Local differential privacy of the value itself, whatever is known. */
  readonly ldp: number;
}

/** A grid, to whose points numbers are rounded at random, keeping their mean; or cells between edges. */
export interface Numbers {
  readonly kind: "grid" | "cells";
  /** The points or the edges, increasing. */
  readonly bounds: readonly number[];
  /** Whether a number outside the range is refused, or counted at the nearest end. */
  readonly outside: "refuse" | "ends";
}

/** One of several attributes. */
export interface Attribute {
  readonly name: string;
  readonly labels: readonly (string | number)[];
  /** How a number becomes a level; null where levels are labels. */
  readonly numbers: Numbers | null;
}

/** What a person may answer: the table in `docs/values.md` says which label a value is. */
export type Value = string | number | bigint | boolean | readonly (string | number | bigint | boolean)[];

/** A plan that was checked; made by `readPlan`. */
export interface Plan {
  readonly id: string;
  readonly document: Document;
  readonly labels: readonly Label[];
  /** How a number becomes a value; null where values are labels. */
  readonly numbers: Numbers | null;
  /** The attributes of a value that is a list of levels; null if there is only one. */
  readonly attributes: readonly Attribute[] | null;
  /** Whether some number is outside the range of the plan and refused. */
  readonly refusesNumbers: boolean;
  readonly kind: "table" | "grouped" | "arc" | "orders" | "unary" | "subset" | "hashing";
  /** Random words that a report takes, whatever the value (for rounded numbers, one more with probability `2**-64`). */
  readonly draws: number;
  readonly levels: Levels;
  /** Whether the whole certificate was proven again, or only the LDP level, which implies the rest. */
  readonly proof: "budget" | "ldp";
  /** How common each value is known to be; null where the plan has a set of priors. */
  readonly prior: readonly number[] | null;
  /** Whether the prior was assumed and not known: `levels.lip` then holds only if it is right. */
  readonly priorAssumed: boolean;
  /** What the certificate is about: the value itself, or a secret behind it. */
  readonly protects: "value" | "secret";
  /** The code of a value: that of its label, of its cell, or of a point next to it that is drawn at random. */
  code(value: Value, source?: Source): number;
  /** The report of one value. Leave `source` out for real answers. */
  privatize(value: Value, source?: Source): Report;
  /** For every value how likely it would have made this report, up to one factor common to all. */
  likelihoods(report: Report): number[];
  /**
   * For every value its share of the people who send this report, if values are as common as the prior says; all equally
   * common where there is no single prior.
   */
  posterior(report: Report): number[];
  /** Whether this plan can have made a report. */
  accepts(report: unknown): boolean;
}

/** A question with a checked plan for each cohort; made by `readCampaign`. */
export interface Campaign {
  readonly id: string;
  readonly document: Document;
  readonly question: string;
  readonly labels: readonly Label[];
  readonly numbers: Numbers | null;
  readonly attributes: readonly Attribute[] | null;
  readonly contact: string;
  /** Who asks, and why: texts for people, which may be empty. */
  readonly askedBy: string;
  readonly purpose: string;
  readonly smallestCount: number;
  /** Whether everybody may answer, or a report needs the single-use code of an invitation. */
  readonly admission: "open" | "invitation";
  /** No more reports than these are taken; null for no limit. */
  readonly mostReports: number | null;
  readonly opens: Date | null;
  readonly closes: Date | null;
  /** When the reports are deleted; null if that is not decided. */
  readonly keepUntil: Date | null;
  readonly cohorts: readonly string[];
  readonly plans: { readonly [cohort: string]: Plan };
  /** By this clock. */
  state(now?: Date): "not yet open" | "open" | "closed";
  /** The plan of a cohort; the name may be left out where there is only one. */
  planFor(cohort?: string): Plan;
}

/** Read a plan from its document or text: check its id, prove its certificate again, or refuse it with the field. */
export function readPlan(given: string | Document, expected?: { id?: string }): Promise<Plan>;
/** Read a campaign from its document or text: check its id and every plan in it, or refuse it with the field. */
export function readCampaign(given: string | Document, expected?: { id?: string }): Promise<Campaign>;

/** Exactly what leaves the device. */
export interface Leaving {
  readonly report_id: string;
  readonly plan: string;
  readonly report: Report;
}

/** Where reports are remembered; answers may also be promises. */
export interface ReportStorage {
  /** The text under a key; null or undefined if there is none. */
  getItem(key: string): string | null | undefined | PromiseLike<string | null | undefined>;
  /** Store a text, durably, instead of what was there. */
  setItem(key: string, text: string): unknown;
  /** Store a text unless one is there; needed wherever several tabs or programs share a storage. */
  addItem?(key: string, text: string): unknown;
}

/** Remembers in a folder: the storage for Node. Several programs may share it: the first report of a campaign stands. */
export class FileStorage implements ReportStorage {
  private constructor();
  /** The storage of a folder, which is created if it is missing. */
  static open(folder: string): Promise<FileStorage>;
  /** The absolute path of the folder. */
  readonly folder: string;
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  addItem(key: string, text: string): void;
}

export interface ClientOptions {
  fetch?: typeof globalThis.fetch;
  /** The browser's IndexedDB if not given. Where there is none, a client shows the campaign and answers nothing. */
  storage?: ReportStorage;
  wait?: (seconds: number) => Promise<void>;
  /** Seconds that a request may take, to the last byte of its answer; 120 if not given. */
  timeout?: number;
  /** The code of an invitation, if the campaign needs one and it is not in the link. */
  code?: string;
}

/** Answers one campaign, once; `url` is the campaign's address. */
export class Client {
  constructor(url: string | URL, options?: ClientOptions);
  readonly url: string;
  /** The campaign, fetched once and checked: also that it is the one named by the address. */
  campaign(): Promise<Campaign>;
  /** What is remembered: the report, and whether it was delivered or withdrawn; or null. */
  remembered(): Promise<(Leaving & { readonly delivered: boolean; readonly withdrawn?: true }) | null>;
  /** Whether a first answer can be sent: the campaign needs no invitation, or the code of this client can still be used. */
  invited(): Promise<boolean>;
  /** What sending this answer would send. Nothing leaves and nothing is stored yet. */
  prepare(value: Value, cohort?: string): Promise<Leaving>;
  /** Perturb the value here, remember the report, and send it. */
  answer(value: Value, cohort?: string): Promise<{ report: Leaving; replayed: boolean }>;
  /** Send the remembered report, if there is one and it was not delivered; true if nothing is left to send. */
  deliver(): Promise<boolean>;
  /** Remove the report of an earlier answer from the curator; true if it was there. It is never sent again. */
  withdraw(): Promise<boolean>;
}

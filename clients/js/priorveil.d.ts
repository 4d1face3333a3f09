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

/** With this answer, what this device has sent to the curator would tell more than its limit allows. Nothing was drawn or sent. */
export class BudgetExceeded extends PriorveilError {
  constructor(level: number, limit: number);
  /** The LDP level that all answers together would have. */
  readonly level: number;
  readonly limit: number;
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
  /** 64-bit words of a report. */
  readonly words: number;
  /** Whether a report is a row of bits, in hexadecimal, and not a whole number. */
  readonly reportsBits: boolean;
  readonly levels: Levels;
  /** Whether the whole certificate was proven again, or only the LDP level, which implies the rest. */
  readonly proof: "budget" | "ldp";
  /** How common each value is known to be; null where the plan has a set of priors. */
  readonly prior: readonly number[] | null;
  /** Whether the prior was assumed and not known: `levels.lip` then holds only if it is right. */
  readonly priorAssumed: boolean;
  /** How many reports a table can make: the whole numbers below this. Null for other mechanisms. */
  readonly outputs: number | null;
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

/** A plan about some attributes, and how many of `2**20` people are asked about it. */
export interface Part {
  readonly attributes: readonly string[];
  readonly share: number;
  readonly plan: Plan;
}

/** One report of a submission: about its only part, or about one of several, which the device draws. */
export interface Slot {
  readonly parts: readonly Part[];
  /** Whether there are several parts. */
  readonly drawn: boolean;
  /** 64-bit words of a report. */
  readonly width: number;
}

/** What the people of a cohort send: one report for each slot; made by `readForm`. */
export interface Form {
  readonly id: string;
  readonly slots: readonly Slot[];
  readonly parts: readonly Part[];
  readonly attributes: readonly string[];
  /** 64-bit words of a submission, the same for everybody. */
  readonly width: number;
  /** What a whole submission tells about all answers together, whatever they have to do with each other. */
  readonly levels: Levels;
  /** For each slot the position of a part, drawn at random. */
  draw(source?: Source): number[];
  /** Whether these are positions of parts, one for each slot. */
  fitsDraw(draw: unknown): boolean;
  /** The parts that a draw has chosen, one for each slot. */
  drawnParts(draw: readonly number[]): Part[];
  /** The submission of one person, in hexadecimal: `values` has a level for each attribute. Leave `source` out for real answers. */
  privatize(values: ReadonlyMap<string, Value>, draw: readonly number[], source?: Source): string;
  /** The position of the part and its report for each slot; null if this form cannot have made the submission. */
  unpack(report: unknown): { readonly at: number; readonly report: Report }[] | null;
  /** Whether this form can have made a submission. */
  accepts(report: unknown): boolean;
}

/** A text by language; empty where it was not given. */
export type Texts = { readonly [language: string]: string };

/** The level of a question that earlier answers skip. */
export const NOT_ASKED: "not asked";

export interface Question {
  readonly name: string;
  readonly kind: "choice" | "choices" | "number";
  readonly text: Texts;
  readonly hint: Texts;
  readonly unit: Texts;
  readonly options: readonly { readonly code: string; readonly text: Texts }[];
  /** The earlier questions, and the codes after which this one is asked; empty: always. */
  readonly askedIf: ReadonlyMap<string, readonly string[]>;
  /** The ranges that a number is put into; null where its plan rounds or sorts it. */
  readonly ranges: Numbers | null;
  /** One, or one for each option of several choices. */
  readonly attributes: readonly string[];
}

/** An answer: the code of an option, the codes of several, or a number. */
export type Answer = string | number | bigint | readonly string[] | ReadonlySet<string>;
/** An answer for each question that is asked, by its name. */
export type Answers = { readonly [question: string]: Answer };

/** Questions, and a checked form for each cohort; made by `readCampaign`. */
export interface Campaign {
  readonly id: string;
  readonly document: Document;
  readonly title: Texts;
  readonly description: Texts;
  /** Who asks, and why: texts for people, which may be empty. */
  readonly askedBy: Texts;
  readonly purpose: Texts;
  readonly contact: string;
  /** The languages of all texts, the default first. */
  readonly languages: readonly string[];
  readonly questions: readonly Question[];
  readonly smallestCount: number;
  /** Whether everybody may answer, or a report needs the single-use code of an invitation. */
  readonly admission: "open" | "invitation";
  /** No more reports than these are taken; null for no limit. */
  readonly mostReports: number | null;
  /** The LDP level to which the campaign lowers the limit of devices; null if it does not. */
  readonly limit: number | null;
  readonly opens: Date | null;
  readonly closes: Date | null;
  /** When the reports are deleted; null if that is not decided. */
  readonly keepUntil: Date | null;
  readonly cohorts: readonly string[];
  readonly forms: { readonly [cohort: string]: Form };
  /** For each cohort what a whole submission tells about any answer: `lip` under the priors, `ldp` for any prior. */
  readonly promise: { readonly [cohort: string]: Levels };
  /** By this clock. */
  state(now?: Date): "not yet open" | "open" | "closed";
  /** The form of a cohort; the name may be left out where there is only one. */
  formFor(cohort?: string): Form;
  /** A draw for each form, by its id, all from the same random words. */
  drawForms(source?: Source): { [form: string]: number[] };
  /** The questions to show for a draw, in order: those of the drawn parts, and those that decide whether they are asked. */
  questionsToAsk(cohort: string | undefined, draw: readonly number[]): Question[];
  /** Of these questions, the ones that are asked after the answers so far. */
  questionsAsked(questions: readonly Question[], answers: Answers): Question[];
  /** A level for each attribute of these questions; the answer to a question that is skipped is ignored. */
  attributeValues(answers: Answers, questions?: readonly Question[]): Map<string, Value>;
  checkAnswers(answers: Answers): void;
}

/** Read a plan from its document or text: check its id, prove its certificate again, or refuse it with the field. */
export function readPlan(given: string | Document, expected?: { id?: string }): Promise<Plan>;
/** Read a form from its document or text: check its id and every plan in it, or refuse it with the field. */
export function readForm(given: string | Document, expected?: { id?: string }): Promise<Form>;
/** Read a campaign from its document or text: check its id and every plan in it, or refuse it with the field. */
export function readCampaign(given: string | Document, expected?: { id?: string }): Promise<Campaign>;

/** Exactly what leaves the device. */
export interface Leaving {
  readonly report_id: string;
  readonly form: string;
  /** Hexadecimal digits, as many for everybody with this form. */
  readonly report: string;
}

/** A submission as it is stored: with the curator's origin and the LDP level, which count against the limit. */
export interface Remembered extends Leaving {
  readonly origin: string;
  readonly ldp: string;
  readonly delivered: boolean;
  readonly withdrawn?: true;
  /** The curator has confirmed the withdrawal. */
  readonly removed?: true;
}

/** Where submissions and draws are remembered; results may also be promises. */
export interface ReportStorage {
  /** All keys: those of other campaigns count against the limit. */
  keys(): Iterable<string> | PromiseLike<Iterable<string>>;
  /** The text under a key; null or undefined if there is none. */
  getItem(key: string): string | null | undefined | PromiseLike<string | null | undefined>;
  /** Store a text, durably, instead of what was there. */
  setItem(key: string, text: string): unknown;
  /** Store a text unless one is there; needed wherever several tabs or programs share a storage. */
  addItem?(key: string, text: string): unknown;
  /** Run alone among the tabs or programs that share a storage: then they cannot exceed the limit together. */
  lock?<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Remembers in a folder: the storage for Node. Several programs of one machine may share it: the first report of a campaign stands,
 * and they add to it one after the other.
 */
export class FileStorage implements ReportStorage {
  private constructor();
  /** The storage of a folder, which is created if it is missing. */
  static open(folder: string): Promise<FileStorage>;
  /** The absolute path of the folder. */
  readonly folder: string;
  keys(): string[];
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  addItem(key: string, text: string): void;
  lock<T>(work: () => Promise<T>): Promise<T>;
}

/** The LDP level that all answers of a device to one curator may reach together, unless it is told otherwise. */
export const DEFAULT_LIMIT: 10;

export interface ClientOptions {
  fetch?: typeof globalThis.fetch;
  /** The browser's IndexedDB if not given. Where there is none, a client shows the campaign and answers nothing. */
  storage?: ReportStorage;
  wait?: (seconds: number) => Promise<void>;
  /** Seconds that a request may take, to the last byte of its answer; 120 if not given. */
  timeout?: number;
  /** The code of an invitation, if the campaign needs one and it is not in the link. */
  code?: string;
  /** The LDP level that all answers of this device to the same curator may reach; `DEFAULT_LIMIT` if not given. */
  limit?: number;
}

/** Answers one campaign, once; `url` is the campaign's address. */
export class Client {
  constructor(url: string | URL, options?: ClientOptions);
  readonly url: string;
  /** The campaign, fetched once and checked: also that it is the one named by the address. */
  campaign(): Promise<Campaign>;
  /** What is remembered: the submission, and whether it was delivered or withdrawn; or null. */
  remembered(): Promise<Remembered | null>;
  /** Whether a first answer can be sent: the campaign needs no invitation, or the code of this client can still be used. */
  invited(): Promise<boolean>;
  /** For each slot the part that this device is asked about: drawn once for all cohorts, and remembered before it is returned. */
  begin(cohort?: string): Promise<number[]>;
  /** Check these answers and the limit, as `answer` does. No report is drawn: that is done when it is sent. */
  prepare(answers: Answers | Answer, cohort?: string): Promise<void>;
  /** Perturb the answers here, remember the submission, and send it; one answer may stand alone where there is one question. */
  answer(answers: Answers | Answer, cohort?: string): Promise<{ report: Leaving; replayed: boolean }>;
  /** Send the remembered report, if there is one and it was not delivered; true if nothing is left to send. */
  deliver(): Promise<boolean>;
  /** Remove the report of an earlier answer from the curator; true if it was there. It is never sent again. */
  withdraw(): Promise<boolean>;
}

/**
 * priorveil: answer a campaign without giving the answer away. For browsers and Node, with no dependencies.
 *
 * A plan is a public document with integers wherever a sampler or a certificate looks. This module checks that it is what its
 * id says, proves its certificate again in exact arithmetic, and samples exactly the law that was proven, from the same
 * 64-bit words in the same order as the Python package: the same plan, bytes and value give the same report.
 */
/** Something that must not be trusted, or cannot be done; `field` names the part of the document or the argument. */
export declare class PriorveilError extends Error {
    /** @readonly @type {string} */
    field: string;
    /** @param {string} field @param {string} message */
    constructor(field: string, message: string);
}
/** The curator answered and did not accept the report, or has no such campaign; `reason` says why. */
export declare class ReportRefused extends PriorveilError {
    /** @readonly @type {string} */
    reason: string;
    /** @param {string} reason @param {string} [message] @param {string} [field] */
    constructor(reason: string, message?: string, field?: string);
}
/** The report could not be delivered for now. It is kept, and sending again sends the same report. */
export declare class NotSent extends PriorveilError {
    /** @param {string} message */
    constructor(message: string);
}
/** With this answer, what this device has sent to the curator would tell more than its limit allows. Nothing was drawn or sent. */
export declare class BudgetExceeded extends PriorveilError {
    /** The LDP level that all answers together would have. @readonly @type {number} */
    level: number;
    /** @readonly @type {number} */
    limit: number;
    /** @param {number} level @param {number} limit */
    constructor(level: number, limit: number);
}
export type Json = any;
export type JsonDocument = {
    readonly [name: string]: Json;
};
/** @typedef {any} Json A value of JSON that nothing is known about yet. */
/** @typedef {{ readonly [name: string]: Json }} JsonDocument */
/**
 * The one text of a document: keys sorted by code point, no spaces. Numbers are whole and below 2**53; longer ones
 * and real ones are strings in every document.
 *
 * @param {Json} value
 * @returns {string}
 */
export declare function canonical(value: Json): string;
/** The SHA-256 of a document's canonical text, without its own `id`, in hexadecimal. @param {JsonDocument} document */
export declare function contentId(document: JsonDocument): Promise<string>;
export type Fraction = [bigint, bigint];
export type Ratio = Fraction | null;
/**
 * Fractions proven to lie below and above `e**level`, for a level of zero or more.
 *
 * @param {number} level
 * @returns {[Fraction, Fraction]}
 */
export declare function expBounds(level: number): [Fraction, Fraction];
export type Source = (count: number) => bigint[];
/**
 * Random words from the operating system, by Web Crypto: the only source whose reports are private.
 *
 * @param {number} count
 */
export declare function systemWords(count: number): bigint[];
/**
 * A source that reads given bytes once from front to back: for test vectors, never for real answers.
 *
 * @param {Uint8Array} bytes
 * @returns {Source}
 */
export declare function wordsFrom(bytes: Uint8Array): Source;
/** A new report id: 16 random bytes, in hexadecimal. */
export declare function freshId(): string;
export type ArcParameters = {
    start: string;
    window: string;
    keep: string;
    lengths: string[];
    owners: number[];
    bits: number;
};
export type Lifts = {
    lowest: Fraction;
    highest: Fraction;
    ldp: Ratio;
};
export type Report = number | string;
export type Mechanism = {
    /**
     * how many values there are
     */
    size: number;
    /**
     * how many random words a report takes
     */
    draws: number;
    /**
     * how many reports there are, where they are whole numbers
     */
    outputs?: number;
    /**
     * how many words a report has, where it is a row of bits
     */
    width?: number;
    /**
     * the report of a value
     */
    sample: (code: number, words: bigint[]) => Report;
    /**
     * how likely each value makes this report, up to a factor
     */
    likelihoods: (report: any) => number[];
    /**
     * whether it can make this report
     */
    accepts: (report: unknown) => boolean;
    lifts: (priors: bigint[][], secret: bigint[][] | null) => Lifts;
};
export type MechanismKind = (new (parameters: any) => Mechanism) & {
    ofValue?: boolean;
    onePrior?: boolean;
};
/**
 * The number that a person typed, with a point or a comma as its decimal mark; an error with the field "value" if it is none.
 *
 * In a document a point is a decimal mark. People write points between thousands too, so a point or a comma before exactly
 * three digits is refused here, except after a zero.
 *
 * @param {unknown} typed
 */
export declare function readNumber(typed: unknown): number;
export type Label = string | number | readonly (string | number)[];
export type Value = string | number | bigint | boolean | readonly (string | number | bigint | boolean)[];
export type Numbers = {
    readonly kind: "grid" | "cells";
    readonly bounds: readonly number[];
    readonly outside: "refuse" | "ends";
};
export type Attribute = {
    readonly name: string;
    readonly labels: readonly (string | number)[];
    readonly numbers: Numbers | null;
};
export type Domain = {
    labels: readonly Label[];
    numbers: Numbers | null;
    attributes: readonly Attribute[] | null;
    /**
     * whether some number is outside the range and refused
     */
    refusesNumbers: boolean;
    /**
     * how many random words a code takes
     */
    draws: number;
    code: (value: unknown, source: Source) => number;
};
export type Levels = {
    readonly lip: number;
    readonly lipLower: number;
    readonly lipUpper: number;
    readonly ldp: number;
};
export type Schema = {
    readonly [keyword: string]: Json;
};
/**
 * A plan that was checked. Made by `readPlan` only.
 *
 * `levels` are the proven ones, in natural logarithms: `lip` of what `protects` names ("value" or "secret") under the prior, and
 * `ldp` of the value itself whatever is known. `proof` is "budget" where the whole certificate was proven again, and "ldp"
 * where only that level could be; `lip` is then `ldp`, which implies it. `priorAssumed` says that nobody knows the prior: `lip`
 * then holds only if it is right. `outputs` is how many reports a table can make, from 0 on; null for other mechanisms. `numbers` is
 * null, or says how a number becomes a value; `attributes` is null, or has the name, the labels and the numbers of each attribute.
 */
declare class Plan {
    #private;
    document: JsonDocument;
    /** @type {string} */
    id: string;
    labels: readonly Label[];
    numbers: Numbers | null;
    attributes: readonly Attribute[] | null;
    refusesNumbers: boolean;
    /** @type {"table" | "grouped" | "arc" | "orders" | "unary" | "subset" | "hashing"} */
    kind: "table" | "grouped" | "arc" | "orders" | "unary" | "subset" | "hashing";
    draws: number;
    words: number;
    reportsBits: boolean;
    outputs: number | null;
    prior: readonly number[] | null;
    priorAssumed: boolean;
    protects: "secret" | "value";
    levels: Levels;
    proof: "budget" | "ldp";
    /**
     * @param {JsonDocument} document
     * @param {Domain} domain
     * @param {Mechanism} mechanism
     * @param {{ levels: Levels, proof: "budget" | "ldp" }} proven
     */
    constructor(document: JsonDocument, domain: Domain, mechanism: Mechanism, proven: {
        levels: Levels;
        proof: "budget" | "ldp";
    });
    /**
     * The code of a value: that of its label, of its cell, or of a point next to it that is drawn at random.
     *
     * @param {Value} value
     * @param {Source} [source]
     */
    code(value: Value, source?: Source): number;
    /**
     * The report of one value as it is written in JSON. `source(count)` gives words; leave it out for real answers.
     *
     * @param {Value} value
     * @param {Source} [source]
     * @returns {Report}
     */
    privatize(value: Value, source?: Source): Report;
    /**
     * For every value how likely it would have made this report, up to one factor common to all.
     *
     * @param {Report} report
     */
    likelihoods(report: Report): number[];
    /**
     * For every value its share of the people who send this report, if values are as common as the prior says; all equally
     * common where there is no single prior.
     *
     * @param {Report} report
     */
    posterior(report: Report): number[];
    /** Whether this plan can have made a report. @param {unknown} report */
    accepts(report: unknown): boolean;
}
/**
 * Read a plan from its document or text: check its id, prove its certificate again, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export declare function readPlan(given: string | JsonDocument, { id }?: {
    id?: string;
}): Promise<Plan>;
export type Part = {
    readonly attributes: readonly string[];
    readonly share: number;
    readonly plan: Plan;
};
/** One report of a submission: about the attributes of its only part, or of the part that this device has drawn. */
declare class Slot {
    #private;
    parts: readonly Part[];
    drawn: boolean;
    width: number;
    /** @param {Part[]} parts */
    constructor(parts: Part[]);
    /**
     * The position of a part, by its share. It takes no random word where there is only one part.
     *
     * @param {Source} [source]
     */
    draw(source?: Source): number;
    /**
     * The report about a part as hexadecimal, of the same length for every part and value.
     *
     * @param {ReadonlyMap<string, Value>} values
     * @param {number} at
     * @param {Source} [source]
     */
    privatize(values: ReadonlyMap<string, Value>, at: number, source?: Source): string;
    /**
     * The position of the part and its report, from their hexadecimal; null if this slot cannot have made them.
     *
     * @param {string} text
     * @returns {{ readonly at: number, readonly report: Report } | null}
     */
    unpack(text: string): {
        readonly at: number;
        readonly report: Report;
    } | null;
}
/**
 * What the people of a cohort send: one report for each slot. Made by `readForm` and `readCampaign` only.
 *
 * `levels` are those of a whole submission, about any answer and all of them together, whatever they have to do with each other.
 */
declare class Form {
    id: string;
    slots: readonly Slot[];
    parts: readonly Part[];
    attributes: readonly string[];
    width: number;
    levels: Readonly<Levels>;
    /** @param {string} id @param {readonly Slot[]} slots */
    constructor(id: string, slots: readonly Slot[]);
    /** For each slot the position of a part, drawn at random. @param {Source} [source] */
    draw(source?: Source): number[];
    /** The parts that a draw has chosen, one for each slot. @param {readonly number[]} draw */
    drawnParts(draw: readonly number[]): Part[];
    /** Whether these are positions of parts, one for each slot. @param {unknown} draw */
    fitsDraw(draw: unknown): boolean;
    /**
     * The submission of one person: `values` has a level for each attribute of the drawn parts.
     *
     * @param {ReadonlyMap<string, Value>} values
     * @param {readonly number[]} draw
     * @param {Source} [source]
     */
    privatize(values: ReadonlyMap<string, Value>, draw: readonly number[], source?: Source): string;
    /**
     * The part and its report for each slot of a submission; null if this form cannot have made it.
     *
     * @param {unknown} report
     * @returns {{ readonly at: number, readonly report: Report }[] | null}
     */
    unpack(report: unknown): {
        readonly at: number;
        readonly report: Report;
    }[] | null;
    /** Whether this form can have made a submission. @param {unknown} report */
    accepts(report: unknown): boolean;
}
/**
 * Read a form from its document: check its id and every plan in it, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export declare function readForm(given: string | JsonDocument, { id }?: {
    id?: string;
}): Promise<Form>;
export type Texts = {
    readonly [language: string]: string;
};
export type Answer = string | number | bigint | readonly string[] | ReadonlySet<string>;
export type Answers = {
    readonly [question: string]: Answer;
};
export type Read = string | number | bigint | string[] | null;
/** @typedef {{ readonly [language: string]: string }} Texts A text by language; empty where it was not given. */
/** @typedef {string | number | bigint | readonly string[] | ReadonlySet<string>} Answer A code, the codes of several, or a number. */
/** @typedef {{ readonly [question: string]: Answer }} Answers An answer for each question that is asked, by its name. */
/** @typedef {string | number | bigint | string[] | null} Read An answer that was read; null for a question that was skipped. */
export declare const NOT_ASKED = "not asked";
/** One question. Each kind is a subclass; made by `readCampaign` only. */
declare class Question {
    /** @type {string} */
    name: string;
    /** @type {string} */
    kind: string;
    /** @type {Texts} */
    text: Texts;
    /** @type {Texts} */
    hint: Texts;
    /** @type {Texts} */
    unit: Texts;
    /** @type {readonly { readonly code: string, readonly text: Texts }[]} */
    options: readonly {
        readonly code: string;
        readonly text: Texts;
    }[];
    /** The earlier questions, and the codes after which this one is asked. @type {ReadonlyMap<string, readonly string[]>} */
    askedIf: ReadonlyMap<string, readonly string[]>;
    /** The attributes that an answer gives. @type {readonly string[]} */
    attributes: readonly string[];
    /** The codes after which other questions may be asked; none if no question may depend on this one. @type {readonly string[]} */
    gateCodes: readonly string[];
    /** What counts as an answer where nothing is chosen or typed; undefined if nothing does. @type {Answer | undefined} */
    emptyAnswer: Answer | undefined;
    /** The ranges that a number is put into; null where there are none. @type {Numbers | null} */
    ranges: Numbers | null;
    /** @param {Json} document */
    constructor(document: Json);
    /**
     * Refuse a document that breaks a rule of its kind.
     *
     * @param {Json} document
     * @param {readonly string[]} languages
     */
    check({ name, text, hint, unit }: Json, languages: readonly string[]): void;
    /**
     * Whether it is asked after these answers: a code for each question, or null for one that was skipped.
     *
     * @param {ReadonlyMap<string, Read>} answers
     */
    isAsked(answers: ReadonlyMap<string, Read>): boolean;
    /** The code of the option that an attribute is about; null if it is about the whole question. @param {string} attribute */
    optionOf(attribute: string): string | null;
    /**
     * The answer as a code, a list of codes, a number or the label of its range; an error if it is none, without showing it.
     *
     * @abstract
     * @param {unknown} _answer
     * @returns {NonNullable<Read>}
     */
    read(_answer: unknown): NonNullable<Read>;
    /**
     * The level of each attribute, from an answer that was read; null for a question that was skipped.
     *
     * @param {Read} answer
     * @returns {[string, Value][]}
     */
    levels(answer: Read): [string, Value][];
    /** @protected @param {string} _attribute @param {NonNullable<Read>} answer @returns {Value} */
    protected levelOf(_attribute: string, answer: NonNullable<Read>): Value;
    /**
     * Refuse a plan whose values of an attribute are others than an answer can give.
     *
     * @param {Pick<Domain, "labels" | "numbers">} domain
     * @param {boolean} _refusesNumbers
     */
    checkDomain({ labels, numbers }: Pick<Domain, "labels" | "numbers">, _refusesNumbers: boolean): void;
    /** The levels of each attribute, except "not asked". @protected @returns {readonly Label[]} */
    protected get ownLevels(): readonly Label[];
    /**
     * Refuse an answer, without showing it.
     *
     * @protected
     * @template T
     * @param {T | undefined | false | null} good
     * @param {string} problem
     * @returns {T}
     */
    protected need<T>(good: T | undefined | false | null, problem: string): T;
}
/**
 * Questions, and a checked form for each cohort. Made by `readCampaign` only.
 *
 * `promise` has for each cohort what a whole submission tells about any answer: `lip` under the priors, `ldp` for any prior.
 */
declare class Campaign {
    #private;
    document: JsonDocument;
    forms: Readonly<Record<string, Form>>;
    /** @type {string} */
    id: string;
    /** @type {Texts} */
    title: Texts;
    /** @type {Texts} */
    description: Texts;
    /** @type {Texts} */
    askedBy: Texts;
    /** @type {Texts} */
    purpose: Texts;
    /** @type {string} */
    contact: string;
    /** The languages of all texts, the default first. @type {readonly string[]} */
    languages: readonly string[];
    /** Whether everybody may answer, or a report needs the single-use code of an invitation. @type {"open" | "invitation"} */
    admission: "open" | "invitation";
    questions: readonly Question[];
    promise: Readonly<{
        [k: string]: Readonly<Levels>;
    }>;
    /** @type {number} */
    smallestCount: number;
    /** No more reports than these are taken; null for no limit. @type {number | null} */
    mostReports: number | null;
    /** How many people will probably answer; null if nobody knows. @type {number | null} */
    expectedPeople: number | null;
    /** The LDP level to which the campaign lowers the limit of devices; null if it does not. */
    limit: number | null;
    cohorts: readonly string[];
    opens: Date | null;
    closes: Date | null;
    /** When the reports are deleted; null if that is not decided. */
    keepUntil: Date | null;
    /**
     * @param {JsonDocument} document
     * @param {readonly Question[]} questions
     * @param {Readonly<Record<string, Form>>} forms
     */
    constructor(document: JsonDocument, questions: readonly Question[], forms: Readonly<Record<string, Form>>);
    /**
     * "not yet open", "open" or "closed" by this clock.
     *
     * @param {Date} [now]
     * @returns {"not yet open" | "open" | "closed"}
     */
    state(now?: Date): "not yet open" | "open" | "closed";
    /** The form of a cohort; the name may be left out where there is only one. @param {string} [cohort] */
    formFor(cohort?: string): Form;
    /**
     * A draw for each form, by its id, all from the same random words: so a device draws once, and whoever corrects a wrong cohort
     * is asked what was drawn before, where the forms have the same shares.
     *
     * @param {Source} [source]
     * @returns {Record<string, number[]>}
     */
    drawForms(source?: Source): Record<string, number[]>;
    /**
     * The questions to show for a draw, in order: those of the drawn parts, and those that decide whether they are asked.
     *
     * @param {string | undefined} cohort
     * @param {readonly number[]} draw
     */
    questionsToAsk(cohort: string | undefined, draw: readonly number[]): Question[];
    /**
     * Those of these questions that are asked after the answers so far; each answer is a code, codes or a number.
     *
     * @param {readonly Question[]} questions
     * @param {Answers} answers
     */
    questionsAsked(questions: readonly Question[], answers: Answers): Question[];
    /**
     * A level for each attribute of these questions, from answers by the name of the question. The answer to a question that is
     * skipped is ignored. An answer that is none is an error that does not show it.
     *
     * @param {Answers} answers
     * @param {readonly Question[]} [questions]
     * @returns {Map<string, Value>}
     */
    attributeValues(answers: Answers, questions?: readonly Question[]): Map<string, Value>;
    /**
     * Refuse a wrong answer to any question, also to one that is not drawn or skipped; null is no answer. A client calls this first,
     * so that a mistake of an app does not show for some people only.
     *
     * @param {Answers} answers
     */
    checkAnswers(answers: Answers): void;
}
/**
 * Read a campaign from its document or text: check its id and every plan in it, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export declare function readCampaign(given: string | JsonDocument, { id }?: {
    id?: string;
}): Promise<Campaign>;
export type ReportStorage = {
    keys: () => Iterable<string> | PromiseLike<Iterable<string>>;
    getItem: (key: string) => string | null | undefined | PromiseLike<string | null | undefined>;
    setItem: (key: string, text: string) => unknown;
    addItem?: (key: string, text: string) => unknown;
    lock?: <T>(work: () => Promise<T>) => Promise<T>;
};
export type Leaving = {
    readonly report_id: string;
    readonly form: string;
    readonly report: string;
};
export type Remembered = Leaving & {
    readonly origin: string;
    readonly ldp: string;
    readonly delivered: boolean;
    readonly withdrawn?: true;
    readonly removed?: true;
};
export type Reply = {
    status: number | string;
    kind: string;
    retryAfter: string;
    text: string | null;
};
/** The LDP level that all answers of a device to one curator may reach together, unless it is told otherwise. */
export declare const DEFAULT_LIMIT = 10;
export type ClientOptions = {
    fetch?: typeof globalThis.fetch;
    storage?: ReportStorage | null;
    wait?: (seconds: number) => Promise<unknown>;
    timeout?: number;
    code?: string;
    limit?: number;
};
/**
 * `storage` is the browser's IndexedDB if not given. Where there is none, a client shows the campaign and answers nothing. `timeout`
 * is how many seconds a request may take, to the last byte of its answer. `code` is that of an invitation, if the campaign needs one
 * and it is not in the link. `limit` is the LDP level that all answers of this device to the same curator may reach.
 *
 * @typedef {object} ClientOptions
 * @property {typeof globalThis.fetch} [fetch]
 * @property {ReportStorage | null} [storage]
 * @property {(seconds: number) => Promise<unknown>} [wait]
 * @property {number} [timeout]
 * @property {string} [code]
 * @property {number} [limit]
 */
/**
 * Answers one campaign, once. `url` is the campaign's address; `fetch`, `storage` and `wait` may be replaced; `timeout` is
 * how many seconds a request may take. `code` is that of an invitation; the link of an invitation has it after `#`. `limit` is
 * the LDP level that all answers of this device to the same curator may reach; a campaign may lower it.
 *
 * `begin` draws which questions are asked, where the form asks each person about a part of them, and remembers the draw before
 * anything is shown. `answer` draws the submission and remembers it before it is sent, and from then on it is the answer: asked
 * again, the client sends the same submission, so that nobody learns more, and nobody can try until they like what is sent. Where
 * nothing can be remembered, nothing is sent. Answers and random words are never stored: random words and a report together
 * reveal the answers.
 */
export declare class Client {
    #private;
    url: string;
    /** @param {string | URL} url @param {ClientOptions} [options] */
    constructor(url: string | URL, options?: ClientOptions);
    /** The campaign, fetched once and checked: also that it is the one named by the address. */
    campaign(): Promise<Campaign>;
    /** Whether a first answer can be sent: the campaign needs no invitation, or the code of this client can still be used. */
    invited(): Promise<boolean>;
    /** What is remembered: the submission in the form in which it leaves, and whether it was delivered; or null. */
    remembered(): Promise<Remembered | null>;
    /**
     * For each slot of the cohort's form the position of the part that this device is asked about: drawn once for all cohorts, and
     * remembered before it is returned. Raises `BudgetExceeded` if answering would pass the limit of the device or the campaign.
     *
     * @param {string} [cohort]
     * @returns {Promise<number[]>}
     */
    begin(cohort?: string): Promise<number[]>;
    /** Raise `BudgetExceeded` if the limit of the device or the campaign allows no answer, whatever the cohort. Draws nothing. */
    checkLimit(): Promise<void>;
    /**
     * Check these answers and the limit, as `answer` does. No report is drawn: that is done when it is sent.
     *
     * @param {Answers | Answer} answers
     * @param {string} [cohort]
     */
    prepare(answers: Answers | Answer, cohort?: string): Promise<void>;
    /**
     * Perturb the answers here, remember the submission, and send it; the receipt says whether it is a replay. `answers` has an
     * answer for each question, by its name; of a campaign with one question it may be the answer itself.
     *
     * @param {Answers | Answer} answers
     * @param {string} [cohort]
     * @returns {Promise<{ report: Leaving, replayed: boolean }>}
     */
    answer(answers: Answers | Answer, cohort?: string): Promise<{
        report: Leaving;
        replayed: boolean;
    }>;
    /** Send the remembered report, if there is one and it was not delivered; true if nothing is left to send. */
    deliver(): Promise<boolean>;
    /**
     * Remove the report of an earlier answer from the curator; true if it was there. It stays remembered and is never sent again:
     * as `withdrawn` before the curator is asked, and as `removed` when it has confirmed that. Once results are published the
     * curator removes no report: then it throws ReportRefused, and nothing changes.
     */
    withdraw(): Promise<boolean>;
}
/**
 * Remembers in a folder: the storage for Node. Made by `FileStorage.open`.
 *
 * Each campaign has one file, which only its owner can read. It is on the disk before anything is sent. It is complete or
 * absent: a draft is written first and then renamed. Several programs of one machine may share the folder: the first report of
 * a campaign stands, and they add to it one after the other.
 */
export declare class FileStorage {
    #private;
    folder: string;
    /** @private @param {string} folder @param {typeof import("node:fs")} fs @param {string} host */
    private constructor();
    /** The storage of a folder, which is created if it is missing. @param {string} folder */
    static open(folder: string): Promise<FileStorage>;
    /** The keys of all texts in the folder. */
    keys(): string[];
    /**
     * The text under a key, or null if there is none. A file that cannot be read is an error, not a missing one.
     *
     * @param {string} key
     */
    getItem(key: string): string | null;
    /** Store a text, instead of what was there. @param {string} key @param {string} text */
    setItem(key: string, text: string): void;
    /**
     * Store a text unless the key has one. Linking a file is atomic: only one of several programs succeeds.
     *
     * @param {string} key
     * @param {string} text
     */
    addItem(key: string, text: string): void;
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
    lock<T>(work: () => Promise<T>): Promise<T>;
}
export type { Plan, Slot, Form, Question, Campaign };

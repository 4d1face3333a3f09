/**
 * priorveil: answer a campaign without giving the answer away. For browsers and Node, with no dependencies.
 *
 * A plan is a public document with integers wherever a sampler or a certificate looks. This module checks that it is what its
 * id says, proves its certificate again in exact arithmetic, and samples exactly the law that was proven, from the same
 * 64-bit words in the same order as the Python package: the same plan, bytes and value give the same report.
 */
// Made from the modules in src/ by `make bundle`.

// -- definitions.js ---------------------------------------------------------------------------------------------------
// The schemas of documents, from the structs of the Python package. Made by `make bundle`.

/** @type {Record<string, any>} */
const DEFINITIONS = {
  PlanDocument: {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "format": {"enum": ["priorveil-plan"]}, "version": {"enum": [1]}, "labels": {"anyOf": [{"uniqueItems": true, "type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/NumberLevel"}]}, "minItems": 1}, {"$ref": "#/$defs/NumberLevel"}]}, "minItems": 1}, {"anyOf": [{"$ref": "#/$defs/JointDomain"}, {"$ref": "#/$defs/GridDomain"}, {"$ref": "#/$defs/CellsDomain"}], "discriminator": {"propertyName": "kind", "mapping": {"joint": "#/$defs/JointDomain", "grid": "#/$defs/GridDomain", "cells": "#/$defs/CellsDomain"}}}]}, "prior": {"anyOf": [{"$ref": "#/$defs/FixedPrior"}, {"$ref": "#/$defs/FinitePriors"}, {"$ref": "#/$defs/IntervalPriors"}, {"$ref": "#/$defs/BallPriors"}], "discriminator": {"propertyName": "kind", "mapping": {"fixed": "#/$defs/FixedPrior", "finite": "#/$defs/FinitePriors", "interval": "#/$defs/IntervalPriors", "ball": "#/$defs/BallPriors"}}}, "secret": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Scenario"}, "minItems": 1}, {"type": "null"}]}, "budget": {"$ref": "#/$defs/BudgetDocument"}, "notion": {"properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"], "type": "object"}, "query": {"properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"], "type": "object"}, "mechanism": {"anyOf": [{"$ref": "#/$defs/TableParameters"}, {"$ref": "#/$defs/GroupedParameters"}, {"$ref": "#/$defs/ArcParameters"}, {"$ref": "#/$defs/OrdersParameters"}, {"$ref": "#/$defs/UnaryParameters"}, {"$ref": "#/$defs/SubsetParameters"}, {"$ref": "#/$defs/HashingParameters"}, {"type": "object", "properties": {"kind": {"type": "string", "minLength": 1, "not": {"enum": ["table", "grouped", "arc", "orders", "unary", "subset", "hashing"]}}}, "required": ["kind"]}], "discriminator": {"propertyName": "kind", "mapping": {"table": "#/$defs/TableParameters", "grouped": "#/$defs/GroupedParameters", "arc": "#/$defs/ArcParameters", "orders": "#/$defs/OrdersParameters", "unary": "#/$defs/UnaryParameters", "subset": "#/$defs/SubsetParameters", "hashing": "#/$defs/HashingParameters"}}, "type": "object"}, "certificate": {"$ref": "#/$defs/CertificateDocument"}, "expected_mse": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "lower_bound": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "no_report": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "method": {"enum": ["arc", "closed", "columns", "given", "hashing", "subset", "unary"]}, "why": {"type": "string"}, "reading_prior": {"$ref": "#/$defs/FixedPrior"}}, "required": ["id", "format", "version", "labels", "prior", "secret", "budget", "notion", "query", "mechanism", "certificate", "expected_mse", "lower_bound", "no_report", "method", "why"], "additionalProperties": false},
  NumberLevel: {"type": "object", "properties": {"number": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}}, "required": ["number"], "additionalProperties": false},
  JointDomain: {"type": "object", "properties": {"kind": {"enum": ["joint"]}, "attributes": {"type": "array", "items": {"$ref": "#/$defs/JointAttribute"}, "minItems": 1}, "cells": {"uniqueItems": true, "type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}, "minItems": 1}}, "required": ["kind", "attributes", "cells"], "additionalProperties": false},
  JointAttribute: {"type": "object", "properties": {"name": {"type": "string"}, "levels": {"anyOf": [{"uniqueItems": true, "type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/NumberLevel"}]}, "minItems": 1}, {"anyOf": [{"$ref": "#/$defs/GridDomain"}, {"$ref": "#/$defs/CellsDomain"}], "discriminator": {"propertyName": "kind", "mapping": {"grid": "#/$defs/GridDomain", "cells": "#/$defs/CellsDomain"}}}]}}, "required": ["name", "levels"], "additionalProperties": false},
  GridDomain: {"type": "object", "properties": {"kind": {"enum": ["grid"]}, "points": {"type": "array", "items": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "minItems": 2}, "outside": {"enum": ["ends", "refuse"]}}, "required": ["kind", "points", "outside"], "additionalProperties": false},
  CellsDomain: {"type": "object", "properties": {"kind": {"enum": ["cells"]}, "edges": {"type": "array", "items": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "minItems": 2}, "outside": {"enum": ["ends", "refuse"]}}, "required": ["kind", "edges", "outside"], "additionalProperties": false},
  FixedPrior: {"type": "object", "properties": {"kind": {"enum": ["fixed"]}, "weights": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "assumed": {"enum": [true], "type": "boolean"}}, "required": ["kind", "weights"], "additionalProperties": false},
  FinitePriors: {"type": "object", "properties": {"kind": {"enum": ["finite"]}, "members": {"type": "array", "items": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "minItems": 1}, "assumed": {"enum": [true], "type": "boolean"}}, "required": ["kind", "members"], "additionalProperties": false},
  IntervalPriors: {"type": "object", "properties": {"kind": {"enum": ["interval"]}, "lower": {"type": "array", "items": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "minItems": 1}, "upper": {"type": "array", "items": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "minItems": 1}, "sample": {"$ref": "#/$defs/SampleDocument"}}, "required": ["kind", "lower", "upper"], "additionalProperties": false},
  SampleDocument: {"type": "object", "properties": {"counts": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "minItems": 1}, "delta": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}}, "required": ["counts", "delta"], "additionalProperties": false},
  BallPriors: {"type": "object", "properties": {"kind": {"enum": ["ball"]}, "weights": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "radius": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "assumed": {"enum": [true], "type": "boolean"}}, "required": ["kind", "weights", "radius"], "additionalProperties": false},
  Scenario: {"type": "object", "properties": {"labels": {"uniqueItems": true, "type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/NumberLevel"}]}, "minItems": 1}, {"$ref": "#/$defs/NumberLevel"}]}, "minItems": 1}, "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "minItems": 1}, "minItems": 1}}, "required": ["labels", "rows"], "additionalProperties": false},
  BudgetDocument: {"type": "object", "properties": {"lower": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "upper": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}}, "required": ["lower", "upper"], "additionalProperties": false},
  CertificateDocument: {"type": "object", "properties": {"notion": {"type": "string", "minLength": 1}, "lip_lower": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "lip_upper": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "ldp": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, "level": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}}, "required": ["notion", "lip_lower", "lip_upper", "ldp", "level"], "additionalProperties": false},
  FormDocument: {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "format": {"enum": ["priorveil-form"]}, "version": {"enum": [1]}, "slots": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/PartDocument"}, "minItems": 1}, "minItems": 1}}, "required": ["id", "format", "version", "slots"], "additionalProperties": false},
  PartDocument: {"type": "object", "properties": {"attributes": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}, "share": {"type": "integer", "minimum": 1, "maximum": 1048576}, "plan": {"type": "object"}}, "required": ["attributes", "share", "plan"], "additionalProperties": false},
  CampaignDocument: {"type": "object", "properties": {"title": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "description": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "asked_by": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "purpose": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "id": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "format": {"enum": ["priorveil-campaign"]}, "version": {"enum": [2]}, "languages": {"type": "array", "items": {"type": "string", "pattern": "^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{1,8}){0,3}$"}, "minItems": 1}, "questions": {"type": "array", "items": {"$ref": "#/$defs/QuestionDocument"}, "minItems": 1}, "cohorts": {"type": "object", "propertyNames": {"maxLength": 2000, "minLength": 1}, "additionalProperties": {"type": "object"}, "minProperties": 1}, "opens": {"anyOf": [{"type": "string", "pattern": "^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}, {"type": "null"}]}, "closes": {"anyOf": [{"type": "string", "pattern": "^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}, {"type": "null"}]}, "keep_until": {"anyOf": [{"type": "string", "pattern": "^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}, {"type": "null"}]}, "smallest_count": {"type": "integer", "minimum": 0, "maximum": 9007199254740991}, "admission": {"enum": ["invitation", "open"]}, "most_reports": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9007199254740991}, {"type": "null"}]}, "expected_people": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9007199254740991}, {"type": "null"}]}, "contact": {"type": "string", "maxLength": 2000}, "limit": {"anyOf": [{"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}, {"type": "null"}]}}, "required": ["title", "description", "asked_by", "purpose", "id", "format", "version", "languages", "questions", "cohorts", "opens", "closes", "keep_until", "smallest_count", "admission", "most_reports", "expected_people", "contact", "limit"], "additionalProperties": false},
  QuestionDocument: {"type": "object", "properties": {"name": {"type": "string", "maxLength": 200, "minLength": 1}, "kind": {"type": "string", "minLength": 1}, "text": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "hint": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "unit": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "options": {"type": "array", "items": {"$ref": "#/$defs/OptionDocument"}}, "asked_if": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}, "minItems": 1}}, "edges": {"type": "array", "items": {"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$"}}}, "required": ["name", "kind", "text", "hint", "unit", "options", "asked_if", "edges"], "additionalProperties": false},
  OptionDocument: {"type": "object", "properties": {"code": {"type": "string", "maxLength": 200, "minLength": 1}, "text": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}}, "required": ["code", "text"], "additionalProperties": false},
  CampaignTexts: {"type": "object", "properties": {"title": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "description": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "asked_by": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}, "purpose": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2000, "minLength": 1}}}, "required": ["title", "description", "asked_by", "purpose"], "additionalProperties": false},
  TableParameters: {"type": "object", "properties": {"kind": {"enum": ["table"]}, "bits": {"enum": [62]}, "weights": {"type": "array", "items": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "minItems": 1}, "minItems": 1}}, "required": ["kind", "bits", "weights"], "additionalProperties": false},
  GroupedParameters: {"type": "object", "properties": {"kind": {"enum": ["grouped"]}, "bits": {"enum": [62]}, "weights": {"type": "array", "items": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "minItems": 1}, "minItems": 1}, "rows": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}}, "required": ["kind", "bits", "weights", "rows"], "additionalProperties": false},
  ArcParameters: {"type": "object", "properties": {"kind": {"enum": ["arc"]}, "bits": {"type": "integer", "minimum": 1, "maximum": 52}, "lengths": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "owners": {"uniqueItems": true, "type": "array", "items": {"type": "integer", "minimum": 0}}, "circle": {"uniqueItems": true, "type": "array", "items": {"type": "integer", "minimum": 0}}, "start": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "window": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "keep": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}}, "required": ["kind", "bits", "lengths", "owners", "circle", "start", "window", "keep"], "additionalProperties": false},
  OrdersParameters: {"type": "object", "properties": {"kind": {"enum": ["orders"]}, "bits": {"type": "integer", "minimum": 1, "maximum": 52}, "lengths": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "owners": {"uniqueItems": true, "type": "array", "items": {"type": "integer", "minimum": 0}}, "count": {"type": "integer", "minimum": 1, "maximum": 65536}, "window": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "keep": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}}, "required": ["kind", "bits", "lengths", "owners", "count", "window", "keep"], "additionalProperties": false},
  UnaryParameters: {"type": "object", "properties": {"kind": {"enum": ["unary"]}, "masses": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "noise": {"type": "integer", "minimum": 1}, "noise_bits": {"type": "integer", "minimum": 1, "maximum": 62}, "drop": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}}, "required": ["kind", "masses", "noise", "noise_bits", "drop"], "additionalProperties": false},
  SubsetParameters: {"type": "object", "properties": {"kind": {"enum": ["subset"]}, "masses": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 2}, "subset_size": {"type": "integer", "minimum": 1}, "keep": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}}, "required": ["kind", "masses", "subset_size", "keep"], "additionalProperties": false},
  HashingParameters: {"type": "object", "properties": {"kind": {"enum": ["hashing"]}, "weights": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^[1-9][0-9]*$"}, "minItems": 1}, "seeds": {"type": "array", "items": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}, "minItems": 1}, "groups": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}, "minItems": 1}, "fresh": {"type": "string", "maxLength": 4300, "pattern": "^(0|[1-9][0-9]*)$"}}, "required": ["kind", "weights", "seeds", "groups", "fresh"], "additionalProperties": false},
};

// -- errors.js --------------------------------------------------------------------------------------------------------
// What a caller may have to handle.

/** Something that must not be trusted, or cannot be done; `field` names the part of the document or the argument. */
export class PriorveilError extends Error {
  /** @param {string} field @param {string} message */
  constructor(field, message) {
    super(printable(`${field}: ${message}`)); // it may quote a document
    this.name = "PriorveilError";
    /** @readonly @type {string} */
    this.field = field;
  }
}

/** The curator answered and did not accept the report, or has no such campaign; `reason` says why. */
export class ReportRefused extends PriorveilError {
  /** @param {string} reason @param {string} [message] @param {string} [field] */
  constructor(reason, message = reason, field = "report") {
    super(field, message);
    this.name = "ReportRefused";
    /** @readonly @type {string} */
    this.reason = reason;
  }
}

/** The report could not be delivered for now. It is kept, and sending again sends the same report. */
export class NotSent extends PriorveilError {
  /** @param {string} message */
  constructor(message) {
    super("network", message);
    this.name = "NotSent";
  }
}

/** With this answer, what this device has sent to the curator would tell more than its limit allows. Nothing was drawn or sent. */
export class BudgetExceeded extends PriorveilError {
  /** @param {number} level @param {number} limit */
  constructor(level, limit) {
    const told = level === Infinity ? "no bound is known for" : `LDP ${level.toPrecision(4)} would be reached by`;
    super("limit", `${told} all answers of this device to this curator; its limit is ${limit}`);
    this.name = "BudgetExceeded";
    /** The LDP level that all answers together would have. @readonly @type {number} */
    this.level = level;
    /** @readonly @type {number} */
    this.limit = limit;
  }
}

const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu; // what Python calls so: control characters, marks of direction, unusual spaces

/**
 * A text with everything escaped that could change how a terminal or a page shows the text around it.
 *
 * @param {string} text
 */
function printable(text) {
  return text.replace(UNPRINTABLE, (character) => `\\u{${Number(character.codePointAt(0)).toString(16)}}`);
}

/** @param {unknown} holds @param {string} field @param {string} message @returns {asserts holds} */
function need(holds, field, message) {
  if (!holds) throw new PriorveilError(field, message);
}

// -- documents.js -----------------------------------------------------------------------------------------------------
// Documents: their one text, their id, and a copy that nobody can change.

/** @typedef {any} Json A value of JSON that nothing is known about yet. */
/** @typedef {{ readonly [name: string]: Json }} JsonDocument */

/**
 * The one text of a document: keys sorted by code point, no spaces. Numbers are whole and below 2**53; longer ones
 * and real ones are strings in every document.
 *
 * @param {Json} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.keys(value).sort(byCodePoint);
    return `{${members.map((key) => `${quoteText(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  if (typeof value === "string") return quoteText(value);
  if (typeof value === "number") {
    need(Number.isSafeInteger(value), "document", "numbers should be whole and below 2**53");
    return String(value);
  }
  need(value === null || typeof value === "boolean", "document", `a ${typeof value} is not JSON`);
  return String(value);
}

/** @param {string} text */
function quoteText(text) {
  need(!/\p{Surrogate}/u.test(text), "document", "half a surrogate pair is not text");
  return JSON.stringify(text);
}

/**
 * Python sorts strings by code point; JavaScript's own order, by UTF-16 unit, differs beyond U+FFFF.
 *
 * @param {string} a
 * @param {string} b
 */
function byCodePoint(a, b) {
  const [left, right] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    const apart = Number(left[i].codePointAt(0)) - Number(right[i].codePointAt(0));
    if (apart !== 0) return apart;
  }
  return left.length - right.length;
}

/** The SHA-256 of a document's canonical text, without its own `id`, in hexadecimal. @param {JsonDocument} document */
export async function contentId(document) {
  need(globalThis.crypto?.subtle, "crypto", "Web Crypto is missing: serve the page over HTTPS");
  const { id: _, ...content } = document;
  const digest = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(content)));
  return hex(new Uint8Array(digest));
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The whole number whose bytes, the lowest first, these hexadecimal digits are. @param {string} digits */
function littleEndianNumber(digits) {
  const bytes = digits.match(/../g) ?? [];
  return bytes.reduceRight((total, byte) => (total << 8n) | BigInt(`0x${byte}`), 0n);
}

/** @param {JsonDocument} document @param {string} [expected] */
async function checkId(document, expected) {
  const found = await contentId(document);
  need(document.id === found, "id", "the id does not match the content: it was changed");
  need(expected === undefined || expected === found, "id", "this is another document than the one asked for");
  return found;
}

/** A document, from its text or as it is. @param {string | JsonDocument} given @returns {JsonDocument} */
function parseDocument(given) {
  /** @type {Json} */
  let document = given;
  if (typeof given === "string") {
    let plain = false;
    try {
      document = JSON.parse(given);
      plain = !/\.|[0-9][eE]/.test(given.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, ""));
    } catch {
      throw new PriorveilError("file", "not JSON");
    }
    need(plain, "file", "whole numbers should be written as such"); // 1, not 1.0: one id is for one text
  }
  need(document !== null && typeof document === "object" && !Array.isArray(document), "file", "not a document");
  return document;
}

/** The value of a text in JSON; null if it is not JSON. @param {string} text @returns {any} */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const DEEPEST = 32; // more levels than any document has

/**
 * A copy that nobody can change after it was checked.
 *
 * @template T
 * @param {T} value
 * @param {number} [level]
 * @returns {T}
 */
function deepFreeze(value, level = 0) {
  if (value === null || typeof value !== "object") return value;
  need(level < DEEPEST, "file", "nested too deeply");
  /** @type {any} */
  const copy = Array.isArray(value)
    ? value.map((member) => deepFreeze(member, level + 1))
    : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, deepFreeze(v, level + 1)]));
  return Object.freeze(copy);
}

// -- fields.js --------------------------------------------------------------------------------------------------------
// What fields of documents state, beyond their structure.


/**
 * Refuse an object that has not exactly these fields.
 *
 * @param {object} object
 * @param {readonly string[]} names
 * @param {string} field
 */
function checkFields(object, names, field) {
  for (const name of names) need(Object.hasOwn(object, name), `${field}.${name}`, "is missing");
  for (const name of Object.keys(object)) need(names.includes(name), `${field}.${name}`, "is not known here");
}

/** A real number from its text, which has one spelling only. @param {string} text @param {string} field */
function real(text, field) {
  const value = text === "inf" ? Infinity : Number(text);
  need(!Number.isNaN(value) && numberText(value) === text, field, "should be a number, as Python spells it");
  return value;
}

/** @param {string} text @param {string} field */
function notNegative(text, field) {
  const value = real(text, field);
  need(value >= 0, field, "should be a number, zero or more");
  return value;
}

/** The shortest text that reads back to the same float, as Python writes it. @param {number} value */
function numberText(value) {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [decimal, power] = Math.abs(value).toExponential().split("e");
  const [first, rest = ""] = decimal.split(".");
  const [digits, exponent] = [first + rest, Number(power)];
  if (exponent < -4 || exponent >= 16) {
    const shown = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${first}${rest && `.${rest}`}e${exponent < 0 ? "-" : "+"}${shown}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${sign}${digits.slice(0, exponent + 1).padEnd(exponent + 1, "0")}.${digits.slice(exponent + 1) || "0"}`;
}

/**
 * A text in every language; one that may be empty is then an empty object.
 *
 * @param {Readonly<Record<string, string>>} texts
 * @param {string} field
 * @param {readonly string[]} languages
 * @param {boolean} [empty]
 */
function checkTexts(texts, field, languages, empty = false) {
  if (empty && Object.keys(texts).length === 0) return;
  checkFields(texts, languages, field);
  for (const language of languages) checkText(texts[language], field);
}

/** @param {string} text @param {string} field */
function checkText(text, field) {
  need(/[^\s\x1c-\x1f\x85]/.test(text), field, "should not be empty");
}

/** A time, in the one spelling it has, or null. @param {string | null} text @param {string} field */
function checkTime(text, field) {
  if (text === null) return;
  const time = new Date(text);
  const same = !Number.isNaN(time.valueOf()) && time.toISOString() === text.replace("Z", ".000Z");
  need(same, field, "times should look like 2026-01-31T12:00:00Z");
}

// -- exact.js ---------------------------------------------------------------------------------------------------------
// Exact numbers: a fraction is [numerator, denominator], and its denominator is above zero.

/** @typedef {[bigint, bigint]} Fraction */
/** @typedef {Fraction | null} Ratio Null is infinite. */

/** @type {Fraction} */
const ONE = [1n, 1n];
const PLACES = 320n; // binary places of an enclosure of e**level
const MOST_LEVEL = 1000; // larger levels are compared with this one, which is stricter

/** @type {(list: readonly bigint[]) => bigint} */
const sum = (list) => list.reduce((a, b) => a + b, 0n);

/** `a / b`, rounded up. @type {(a: bigint, b: bigint) => bigint} */
const ceil = (a, b) => (a + b - 1n) / b;

/** @type {(a: Fraction, b: Fraction) => boolean} */
const less = (a, b) => a[0] * b[1] < b[0] * a[1];

/** @type {(list: readonly Fraction[]) => Fraction} */
const least = (list) => list.reduce((a, b) => (less(b, a) ? b : a));

/** @type {(list: readonly Fraction[]) => Fraction} */
const most = (list) => list.reduce((a, b) => (less(a, b) ? b : a));

/** @type {(list: readonly bigint[]) => bigint} */
const smallest = (list) => list.reduce((a, b) => (b < a ? b : a));

/** @type {(list: readonly bigint[]) => bigint} */
const largest = (list) => list.reduce((a, b) => (a < b ? b : a));

/** `a / b`. @type {(a: Fraction, b: Fraction) => Fraction} */
const over = (a, b) => [a[0] * b[1], a[1] * b[0]];

/** @type {(ratio: Fraction) => Ratio} */
const inverse = ([n, d]) => (n === 0n ? null : [d, n]);

/** @type {(a: readonly bigint[], b: readonly bigint[]) => bigint} */
const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0n);

/** @type {(rows: readonly (readonly bigint[])[]) => bigint[][]} */
const transpose = (rows) => rows[0].map((_, y) => rows.map((row) => row[y]));

/** Zero, and the sums of the first one, two, ... of a list. @param {readonly bigint[]} list */
function partialSums(list) {
  const sums = [0n];
  for (const [i, value] of list.entries()) sums.push(sums[i] + value);
  return sums;
}

/** A float as the fraction it is. @param {number} value @returns {Fraction} */
function exactFraction(value) {
  let [scaled, denominator] = [value, 1n];
  while (!Number.isInteger(scaled)) [scaled, denominator] = [scaled * 2, denominator * 2n];
  return [BigInt(scaled), denominator];
}

/**
 * Fractions proven to lie below and above `e**level`, for a level of zero or more.
 *
 * @param {number} level
 * @returns {[Fraction, Fraction]}
 */
export function expBounds(level) {
  if (level === 0) return [ONE, ONE];
  const [n, d] = exactFraction(Math.min(level, MOST_LEVEL));
  const halvings = BigInt(n / d).toString(2).length + 8;
  const low = (n << PLACES) / (d << BigInt(halvings));
  let [below, above] = [series(low, 0n), series(low + 1n, 1n)];
  for (let i = 0; i < halvings; i += 1) {
    [below, above] = [(below * below) >> PLACES, ((above * above) >> PLACES) + 1n];
  }
  return [
    [below, 1n << PLACES],
    [above, 1n << PLACES],
  ];
}

/**
 * `e**t` in fixed point for small `t`: every term rounded down, or with `up` one unit more and two for the rest.
 *
 * @param {bigint} t
 * @param {bigint} up
 */
function series(t, up) {
  let [total, term] = [0n, 1n << PLACES];
  for (let i = 1n; term > 1n; i += 1n) {
    total += term;
    term = ((term * t) >> PLACES) / i + up;
  }
  return total + 3n * up;
}

/** @param {Ratio} ratio @param {number} level */
const atMostExp = (ratio, level) => level === Infinity || (ratio !== null && !less(expBounds(level)[0], ratio));

/**
 * Whether a level is the logarithm of a ratio, rounded up to a float and no further; null is an infinite ratio.
 *
 * @param {number} level
 * @param {Ratio} ratio
 */
function isLevel(level, ratio) {
  if (ratio === null || level === Infinity) return ratio === null && level === Infinity;
  return atMostExp(ratio, level) && (level === 0 || !atMostExp(ratio, floatBelow(level)));
}

/** The next float towards zero, of a positive one. @param {number} value */
function floatBelow(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigUint64(0, view.getBigUint64(0) - 1n);
  return view.getFloat64(0);
}

// -- randomness.js ----------------------------------------------------------------------------------------------------
// Random words of 64 bits, and exact draws from them.

/** @typedef {(count: number) => bigint[]} Source Gives the next `count` uniform words of 64 bits. */

const WORD = 1n << 64n; // how many words there are
const TOTAL_BITS = 62n;
const TOTAL = 1n << TOTAL_BITS; // what every row of a table adds up to
const MASK = WORD - 1n;
const LARGEST_REPORT = 1n << 53n; // whole numbers from here on would be rounded

/**
 * Random words from the operating system, by Web Crypto: the only source whose reports are private.
 *
 * @param {number} count
 */
export function systemWords(count) {
  const bytes = new Uint8Array(8 * count);
  for (let start = 0; start < bytes.length; start += 65536) {
    globalThis.crypto.getRandomValues(bytes.subarray(start, start + 65536));
  }
  return littleEndian(bytes);
}

/**
 * A source that reads given bytes once from front to back: for test vectors, never for real answers.
 *
 * @param {Uint8Array} bytes
 * @returns {Source}
 */
export function wordsFrom(bytes) {
  let used = 0;
  return (count) => {
    need(used + 8 * count <= bytes.length, "bytes", "used up: eight are needed for every word");
    used += 8 * count;
    return littleEndian(bytes.subarray(used - 8 * count, used));
  };
}

/** @param {Uint8Array} bytes */
function littleEndian(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigUint64(8 * i, true));
}

/**
 * A source that reads kept words from the front, and keeps what it draws beyond them: the same value makes the same report.
 *
 * @param {bigint[]} words
 * @param {Source} [source]
 * @returns {Source}
 */
function keptWords(words, source = systemWords) {
  let used = 0;
  return (count) => {
    while (words.length < used + count) words.push(...source(1));
    used += count;
    return words.slice(used - count, used);
  };
}

/** A new report id: 16 random bytes, in hexadecimal. */
export function freshId() {
  return hex(globalThis.crypto.getRandomValues(new Uint8Array(16)));
}

/**
 * The number of partial sums of a row that are at most the draw.
 *
 * @param {readonly bigint[]} row
 * @param {bigint} word
 */
function scan(row, word) {
  const draw = word >> (64n - TOTAL_BITS);
  let [partial, report] = [0n, 0];
  for (const weight of row) {
    partial += weight;
    report += partial <= draw ? 1 : 0;
  }
  return report;
}

const STEP = 0x9e3779b97f4a7c15n;

/** Stafford's thirteenth variant of the SplitMix64 finaliser. @param {bigint} word */
function mix(word) {
  let z = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

// -- mechanisms/tables.js ---------------------------------------------------------------------------------------------
// Mechanisms that are a table: a row of whole weights for each value.


/** One row of integer weights per value; one word per report, its upper 62 bits are the draw. */
class Table {
  /** @param {{ weights: string[][] }} parameters */
  constructor({ weights }) {
    this.weights = weights.map((row) => row.map(BigInt));
    this.outputs = this.weights[0].length;
    /** @param {bigint[]} row */
    const good = (row) => row.length === this.outputs && sum(row) === TOTAL;
    need(this.weights.every(good), "mechanism.weights", `rows should add up to 2**${TOTAL_BITS}`);
    need(
      transpose(this.weights).every((c) => sum(c) > 0n),
      "mechanism.weights",
      "an output never happens",
    );
    this.size = this.weights.length;
    this.draws = 1;
  }

  /** @type {Mechanism["sample"]} */
  sample(code, [word]) {
    return scan(this.weights[code], word);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return this.weights.map((row) => Number(row[report]) / Number(TOTAL));
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts(priors, secret) {
    return tableLifts(this.weights, priors, secret);
  }
}

/** A table whose rows are shared: value `x` is reported by row `rows[x]`. */
class Grouped {
  static ofValue = true;
  static onePrior = true;

  /** @param {{ weights: string[][], rows: number[] }} parameters */
  constructor(parameters) {
    this.table = new Table(parameters);
    this.rows = parameters.rows;
    const used = new Set(this.rows);
    const good = used.size === this.table.size && this.rows.every((g) => g < used.size);
    need(good, "mechanism.rows", "should use every row of the table, and no other");
    this.size = this.rows.length;
    this.outputs = this.table.outputs;
    this.draws = 1;
  }

  /** @type {Mechanism["sample"]} */
  sample(code, words) {
    return this.table.sample(this.rows[code], words);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    const each = this.table.likelihoods(report);
    return this.rows.map((group) => each[group]);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts([prior]) {
    return this.table.lifts([massOf(this.rows, prior, this.table.size)], null);
  }
}

/** Whether a report is one of a mechanism's outputs. @param {{ outputs: number }} mechanism @param {unknown} report */
function isOutput({ outputs }, report) {
  return typeof report === "number" && Number.isSafeInteger(report) && report >= 0 && report < outputs;
}

/**
 * The mass of every group: `groups[x]` is the group of value `x`.
 *
 * @param {readonly number[]} groups
 * @param {readonly bigint[]} weights
 * @param {number} count
 * @returns {bigint[]}
 */
function massOf(groups, weights, count) {
  const masses = Array(count).fill(0n);
  groups.forEach((group, x) => {
    masses[group] += weights[x];
  });
  return masses;
}

/**
 * The exact extremes of a table: the lift of the secret (without one, of the value itself), and the ratio in a column.
 *
 * @param {bigint[][]} rows
 * @param {bigint[][]} priors
 * @param {bigint[][] | null} secret
 * @returns {Lifts}
 */
function tableLifts(rows, priors, secret) {
  /** @type {Lifts} */
  const found = { lowest: ONE, highest: ONE, ldp: ONE };
  for (const column of transpose(rows)) {
    /** @type {Fraction[]} */
    const chances = secret ? secret.map((t) => [dot(t, column), sum(t)]) : column.map((w) => [w, 1n]);
    const [bottom, top] = [least(chances), most(chances)];
    for (const prior of priors) {
      /** @type {Fraction} */
      const mean = [dot(prior, column), sum(prior)];
      found.lowest = least([found.lowest, over(bottom, mean)]);
      found.highest = most([found.highest, over(top, mean)]);
    }
    found.ldp = widest(found.ldp, largest(column), smallest(column));
  }
  return found;
}

/** @type {(ratio: Ratio, top: bigint, bottom: bigint) => Ratio} */
const widest = (ratio, top, bottom) => (ratio === null || bottom === 0n ? null : most([ratio, [top, bottom]]));

// -- mechanisms/arcs.js -----------------------------------------------------------------------------------------------
// Mechanisms on a circle: reports are places, and values are arcs of it.


/** @typedef {{ start: string, window: string, keep: string, lengths: string[], owners: number[], bits: number }} ArcParameters */

/**
 * One order of an arc mechanism: segments of a line, the last of them bent into a circle. Three words: the coin, the place
 * and the shift; see the Python module `priorveil.mechanisms.arc.line`, which describes the sampler, and `arc.certificate`,
 * which proves it.
 */
class ArcLine {
  /** @param {ArcParameters} parameters @param {number[]} circle */
  constructor(parameters, circle) {
    this.start = BigInt(parameters.start);
    this.window = BigInt(parameters.window);
    this.keep = BigInt(parameters.keep);
    this.lengths = parameters.lengths.map(BigInt);
    this.order = [...parameters.owners, ...circle];
    this.heavy = parameters.owners.length;
    this.bits = BigInt(parameters.bits);
    this.size = this.lengths.length;
    this.#checkOrder();
    this.places = 1n << this.bits;
    this.edges = partialSums(this.order.map((x) => this.lengths[x]));
    /** @type {bigint[]} */
    this.starts = Array(this.size);
    this.order.forEach((x, rank) => {
      this.starts[x] = this.edges[rank];
    });
    this.circumference = this.places - this.start;
    this.#checkCircle();
    this.outputs = this.heavy + Number(this.circumference);
    this.draws = 3;
  }

  #checkOrder() {
    const { order, size, lengths } = this;
    need(sum(lengths) === 1n << this.bits, "mechanism.lengths", "should fill the line");
    const permutation = order.length === size && new Set(order).size === size && order.every((x) => x < size);
    need(permutation, "mechanism.circle", "should have the values that are not owners, each once");
  }

  #checkCircle() {
    const { heavy, size } = this;
    const lends = heavy > 0 && heavy < size && this.edges[heavy - 1] < this.start && this.start < this.edges[heavy];
    need(
      this.start === this.edges[heavy] || lends,
      "mechanism.start",
      "the circle begins in or after the last heavy segment",
    );
    const fits =
      this.circumference === 0n ? this.window === 0n : this.window >= 1n && this.window <= this.circumference;
    need(fits, "mechanism.window", "should fit the circle");
    need(this.keep < WORD, "mechanism.keep", "should be below 2**64");
    need(BigInt(heavy) + this.circumference < LARGEST_REPORT, "mechanism.bits", "reports must stay below 2**53");
  }

  /** @param {number} code @param {bigint[]} words */
  sample(code, [coin, place, shift]) {
    const own = this.starts[code] + ((place * this.lengths[code]) >> 64n);
    const fresh = place >> (64n - this.bits);
    const t = coin < this.keep ? own : fresh;
    let moved = t - this.start - ((shift * this.window) >> 64n);
    if (moved < 0n) moved += this.circumference;
    return t < this.start ? this.#owner(t) : this.heavy + Number(moved);
  }

  /** @param {bigint} t */
  #owner(t) {
    return this.edges.slice(1, this.heavy).filter((edge) => edge <= t).length;
  }

  /** How many places an owned output has: all of its segment, unless the last one lends. @param {number} rank */
  #ownPlaces(rank) {
    return (rank === this.heavy - 1 ? this.start : this.edges[rank + 1]) - this.edges[rank];
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    const [keep, places] = [Number(this.keep) / Number(WORD), Number(this.places)];
    const owned = report < this.heavy;
    const size = owned ? Number(this.#ownPlaces(report)) : 1;
    return this.lengths.map((length, x) => {
      const chance = owned ? (x === this.order[report] ? size / Number(length) : 0) : this.#circleChance(x, report);
      return ((1 - keep) * size) / places + keep * chance;
    });
  }

  /**
   * The chance that value `x`, if it is used, ends on this place of the circle: its places within the window, over both.
   *
   * @param {number} x
   * @param {number} report
   */
  #circleChance(x, report) {
    const [from, length] = [BigInt(report - this.heavy), this.lengths[x]];
    const [first, last] = [largest([this.starts[x] - this.start, 0n]), this.starts[x] + length - this.start];
    let inside = overlap(from, from + this.window, first, last);
    inside += overlap(from - this.circumference, from - this.circumference + this.window, first, last);
    return Number(inside) / (Number(length) * Number(this.window));
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts([prior]) {
    return this.liftsOf(prior, false);
  }

  /**
   * In the order of this line, or in every order of the values on its circle.
   *
   * @param {bigint[]} prior
   * @param {boolean} everyOrder
   * @returns {Lifts}
   */
  liftsOf(prior, everyOrder) {
    const { boost, low, high } = this.#terms(prior, everyOrder);
    const [used, fresh] = [this.keep, WORD - this.keep];
    const one = 1n << ARC_PLACES;
    const ceilings = boost.map((top, i) => ceil((fresh * one + used * top) << ARC_PLACES, fresh * one + used * low[i]));
    /** @type {Fraction} */
    const ldp = [fresh * one + used * largest(boost), fresh * one];
    return { lowest: [fresh * one, fresh * one + used * largest(high)], highest: [largest(ceilings), one], ldp };
  }

  /**
   * Bounds of the largest and of the mean chance of each owned output and of the circle, in units of its size.
   *
   * @param {bigint[]} prior
   * @param {boolean} everyOrder
   */
  #terms(prior, everyOrder) {
    const n = this.order.map((x) => prior[x]);
    const [total, M] = [sum(n), this.places];
    const owned = this.order.slice(0, this.heavy).map((_, rank) => this.#ownTerms(rank, n[rank], total));
    const terms = this.circumference === 0n ? owned : [...owned, this.#circleTerms(n, total, M, everyOrder)];
    return { boost: terms.map((t) => t.boost), low: terms.map((t) => t.low), high: terms.map((t) => t.high) };
  }

  /** @param {number} rank @param {bigint} weight @param {bigint} total */
  #ownTerms(rank, weight, total) {
    const size = this.#ownPlaces(rank);
    const own = ceil(size * WORD, this.edges[rank + 1] - this.edges[rank]);
    const top = own * (this.places << ARC_PLACES);
    const [mean, scale] = [top * weight, size * WORD * total];
    return { boost: ceil(top, size * WORD), low: mean / scale, high: ceil(mean, scale) };
  }

  /** @param {bigint[]} n @param {bigint} total @param {bigint} M @param {boolean} everyOrder */
  #circleTerms(n, total, M, everyOrder) {
    const first = this.heavy - (this.start < this.edges[this.heavy] ? 1 : 0);
    const drift = partialSums(n)
      .map((b, i) => b * M - this.edges[i] * total)
      .slice(first);
    // All over M * total * WORD: the window's share, and how far the mass of any window can be from it.
    const scale = M * total * WORD;
    const share = this.window * total * WORD;
    const steps = drift.slice(1).map((d, i) => largest([d - drift[i], drift[i] - d]));
    const moved = everyOrder ? sum(steps) : largest(drift) - smallest(drift);
    const slack = 2n * (moved * WORD + M * total);
    const [down, up] = [largest([share - slack, 0n]), smallest([share + slack, scale])];
    const [floor, roof] = [(WORD / this.window) * M, ceil(WORD, this.window) * M];
    return {
      boost: ceil(roof << ARC_PLACES, WORD),
      low: ((floor * down) << ARC_PLACES) / (WORD * scale),
      high: ceil((roof * up) << ARC_PLACES, WORD * scale),
    };
  }
}

const ARC_PLACES = 128n;

/** @param {bigint} from @param {bigint} to @param {bigint} first @param {bigint} last */
function overlap(from, to, first, last) {
  const inside = smallest([to, last]) - largest([from, first]);
  return inside > 0n ? inside : 0n;
}

/** Arcs of a circle in one public order. */
class Arc extends ArcLine {
  static ofValue = true;
  static onePrior = true;

  /** @param {ArcParameters & { circle: number[] }} parameters */
  constructor(parameters) {
    super(parameters, parameters.circle);
  }
}

/**
 * Arcs of a circle in many public orders. A report takes one more word, the first, which picks the order; see the Python
 * modules `priorveil.mechanisms.arc.orders`, and `arc.line`, which says how orders are made of seeds and multipliers.
 */
class Orders {
  static ofValue = true;
  static onePrior = true;
  draws = 4;

  /** @param {Omit<ArcParameters, "start"> & { count: number }} parameters */
  constructor(parameters) {
    const { lengths, owners, count } = parameters;
    this.size = lengths.length;
    need(
      owners.every((x) => x < this.size),
      "mechanism.owners",
      "should be codes of values",
    );
    const own = new Set(owners);
    this.light = Array.from({ length: this.size }, (_, x) => x).filter((x) => !own.has(x));
    need(this.light.length > 0, "mechanism.owners", "should leave some values for the circle");
    need((count & (count - 1)) === 0, "mechanism.count", "should be a power of two");
    this.count = count;
    this.prime = primeAbove(this.light.length);
    this.span = 2 ** parameters.bits;
    need(count * this.span <= Number(LARGEST_REPORT), "mechanism.bits", "reports must stay below 2**53");
    const start = sum(owners.map((x) => BigInt(lengths[x])));
    this.parameters = { ...parameters, start: String(start) };
    this.base = new ArcLine(this.parameters, this.light); // checks the segments, the window and the coin
    this.outputs = (count - 1) * this.span + this.base.outputs;
  }

  /**
   * The line with its circle in order `i`: shuffled by a seed, then sorted by multiples of the ranks.
   *
   * @param {number} i
   */
  #line(i) {
    const half = Math.max(1, Math.floor(this.prime / 2));
    const [seed, at] = [Math.floor(i / half), i % half];
    const left = Math.min(half, this.count - seed * half);
    const multiplier = 1 + Math.floor(((2 * at + 1) * half) / (2 * left));
    const keyed = this.light.map((x) => ({ x, key: shuffleKey(seed, x) }));
    keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.x - b.x));
    const placed = keyed.map(({ x }, rank) => ({ x, place: (multiplier * (rank + 1)) % this.prime }));
    const circle = placed.sort((a, b) => a.place - b.place).map(({ x }) => x);
    return new ArcLine(this.parameters, circle);
  }

  /** @type {Mechanism["sample"]} */
  sample(code, words) {
    const i = Number(words[0] & BigInt(this.count - 1));
    return i * this.span + this.#line(i).sample(code, words.slice(1));
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return this.#line(Math.floor(report / this.span))
      .likelihoods(report % this.span)
      .map((chance) => chance / this.count);
  }

  /** Each order has its own places. @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report) && this.base.accepts(Number(report) % this.span);
  }

  /**
   * The order is public and drawn without looking at the value, and the bounds hold for every order.
   *
   * @type {Mechanism["lifts"]}
   */
  lifts([prior]) {
    return this.base.liftsOf(prior, true);
  }
}

/** @param {number} n */
function primeAbove(n) {
  /** @param {number} p */
  const divided = (p) => {
    for (let q = 2; q * q <= p; q += 1) if (p % q === 0) return true;
    return false;
  };
  let p = Math.max(2, n + 1);
  while (divided(p)) p += 1;
  return p;
}

/** @param {number} seed @param {number} x */
const shuffleKey = (seed, x) => mix((BigInt(seed) + BigInt(x + 1) * STEP) & MASK);

// -- mechanisms/bits.js -----------------------------------------------------------------------------------------------
// Mechanisms whose report is a row of bits, one for each value.


/** A row of bits, one of them set, each flipped at random: `noise_bits` words for every 64 bits, then one. */
class Unary {
  static ofValue = true;

  /** @param {{ masses: string[], noise: number, noise_bits: number, drop: string }} parameters */
  constructor({ masses, noise, noise_bits: noiseBits, drop }) {
    this.noise = BigInt(noise);
    need(this.noise < 1n << BigInt(noiseBits), "mechanism.noise", "should be below 2**noise_bits");
    this.drop = BigInt(drop);
    need(this.drop > 0n && this.drop < TOTAL, "mechanism.drop", "should be below 2**62");
    this.noiseBits = noiseBits;
    this.size = checkMasses(masses).length;
    this.width = Math.ceil(this.size / 64);
    this.draws = this.width * noiseBits + 1;
    /** @type {Fraction} */
    this.odds = [((1n << BigInt(noiseBits)) - this.noise) * (TOTAL - this.drop), this.noise * this.drop];
    need(!less(this.odds, ONE), "mechanism.drop", "a set bit must favour its value");
  }

  /** The words of the report as little-endian hexadecimal. @type {Mechanism["sample"]} */
  sample(code, words) {
    let bits = 0n;
    for (let block = 0; block < this.width; block += 1) {
      bits |= this.#mixNoise(words.slice(block * this.noiseBits, (block + 1) * this.noiseBits)) << BigInt(64 * block);
    }
    bits &= (1n << BigInt(this.size)) - 1n;
    const kept = words[words.length - 1] >> 2n < TOTAL - this.drop ? 1n : 0n;
    const place = BigInt(code);
    bits = (bits & ~(1n << place)) | (kept << place);
    return hex(Uint8Array.from({ length: 8 * this.width }, (_, i) => Number((bits >> BigInt(8 * i)) & 255n)));
  }

  /** @param {bigint[]} levels */
  #mixNoise(levels) {
    return levels.reduce((bits, word, level) => ((this.noise >> BigInt(level)) & 1n ? bits | word : bits & word), 0n);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return bitLikelihoods(this, report);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return setBits(this, report) !== null;
  }

  /** @type {Mechanism["lifts"]} */
  lifts(priors) {
    const [R, D] = this.odds;
    const [p, total] = least(priors.map((prior) => [smallest(prior), sum(prior)]));
    const shift = (R - D) * p; // over D * total
    return { lowest: [D * total, R * total - shift], highest: [R * total, D * total + shift], ldp: this.odds };
  }
}

/**
 * A set of values as a row of bits. It holds the value with probability `keep / 2**62`; the rest is a uniform subset of the
 * other values, by Floyd's algorithm: one word for the value, then one for each member. See `priorveil.mechanisms.subset`.
 */
class Subset {
  static ofValue = true;

  /** @param {{ masses: string[], subset_size: number, keep: string }} parameters */
  constructor({ masses, subset_size: count, keep }) {
    this.size = checkMasses(masses).length;
    need(count < this.size, "mechanism.subset_size", "should be 1 to d - 1");
    this.keep = BigInt(keep);
    need(this.keep > 0n && this.keep < TOTAL, "mechanism.keep", "should be below 2**62");
    this.members = count;
    this.width = Math.ceil(this.size / 64);
    this.draws = 1 + count;
    /** @type {Fraction} */
    this.odds = [this.keep * BigInt(this.size - count), (TOTAL - this.keep) * BigInt(count)];
    need(!less(this.odds, ONE), "mechanism.keep", "a set must favour its values");
  }

  /**
   * The words of the report as little-endian hexadecimal. A word that would make a draw uneven gives the first values.
   *
   * @type {Mechanism["sample"]}
   */
  sample(code, words) {
    const bytes = new Uint8Array(8 * this.width);
    /** @param {number} value */
    const add = (value) => {
      bytes[value >> 3] |= 1 << (value & 7);
    };
    /** @param {number} candidate */
    const other = (candidate) => candidate + (candidate >= code ? 1 : 0); // candidates leave the value out
    let even = true;
    for (let place = 0; place < this.members; place += 1) {
      const [word, bound] = [words[1 + place], BigInt(this.size - this.members + place)];
      even &&= word < WORD - (WORD % bound);
      const drawn = other(Number(word % bound));
      const held = (bytes[drawn >> 3] >> (drawn & 7)) & 1;
      const own = place === 0 && words[0] >> 2n < this.keep;
      add(own ? code : held ? other(Number(bound) - 1) : drawn);
    }
    if (!even) {
      bytes.fill(0);
      for (let value = 0; value < this.members; value += 1) add(value);
    }
    return hex(bytes);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    return bitLikelihoods(this, report);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return setBits(this, report) === this.members;
  }

  /** @type {Mechanism["lifts"]} */
  lifts(priors) {
    const [R, D] = this.odds;
    const masses = priors.map((prior) => {
      const ordered = [...prior].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      return [sum(ordered.slice(0, this.members)), sum(ordered.slice(-this.members)), sum(prior)];
    });
    const [light, lightTotal] = least(masses.map(([first, , total]) => [first, total]));
    const [heavy, heavyTotal] = most(masses.map(([, last, total]) => [last, total]));
    return {
      lowest: [D * heavyTotal, D * heavyTotal + (R - D) * heavy],
      highest: [R * lightTotal, D * lightTotal + (R - D) * light],
      ldp: this.odds,
    };
  }
}

/** The prior that scores reports of bits. @param {string[]} masses */
function checkMasses(masses) {
  const listed = masses.map(BigInt);
  need(listed.length > 1 && sum(listed) <= TOTAL, "mechanism.masses", "should add up to at most 2**62");
  return listed;
}

/**
 * How likely a report of bits is for each value, up to a factor: a set bit favours its value by the odds.
 *
 * @param {{ odds: Fraction, size: number }} mechanism
 * @param {string} report
 */
function bitLikelihoods({ odds, size }, report) {
  const ratio = Number(odds[0]) / Number(odds[1]);
  /** @param {number} i */
  const byte = (i) => parseInt(report.slice(2 * i, 2 * i + 2), 16);
  return Array.from({ length: size }, (_, x) => ((byte(x >> 3) >> (x & 7)) & 1 ? ratio : 1));
}

/**
 * How many bits of a report are set; null if it is not a row of bits for these values.
 *
 * @param {{ width: number, size: number }} mechanism
 * @param {unknown} report
 */
function setBits({ width, size }, report) {
  if (typeof report !== "string" || report.length !== 16 * width || !/^[0-9a-f]+$/.test(report)) return null;
  const bits = littleEndianNumber(report);
  return bits >> BigInt(size) === 0n ? bits.toString(2).replaceAll("0", "").length : null;
}

// -- mechanisms/hashing.js --------------------------------------------------------------------------------------------
// Mechanisms that hash the value first, by a function from a public pool.


/** A public pool of hash functions: two words, the first picks the seed, the second goes to the table of its groups. */
class PooledHash {
  static ofValue = true;
  static onePrior = true;

  /** @param {{ weights: string[], seeds: string[], groups: number[][], fresh: string }} parameters */
  constructor({ weights, seeds, groups, fresh }) {
    this.weights = weights.map(BigInt);
    this.seeds = seeds.map(BigInt);
    const count = this.seeds.length;
    need((count & (count - 1)) === 0, "mechanism.seeds", "should be a power of two of them");
    need(
      this.seeds.every((s) => s < WORD),
      "mechanism.seeds",
      "should be below 2**64",
    );
    need(groups.length === count, "mechanism.groups", "should have a row for each seed");
    this.groups = groups;
    this.bins = groups[0].length;
    const good = groups.every((row) => row.length === this.bins && row.every((g) => g < this.bins));
    need(good, "mechanism.groups", "should be rows of groups, fewer than bins");
    this.fresh = BigInt(fresh);
    need(this.fresh < TOTAL, "mechanism.fresh", "should be below 2**62");
    this.size = this.weights.length;
    this.reported = this.groups.flat().reduce((a, b) => Math.max(a, b)) + 1;
    this.outputs = count * this.reported;
    this.draws = 2;
  }

  /** The group of every value under a seed. @param {number} i */
  #groupsOf(i) {
    const [a, b] = coefficients(this.seeds[i]);
    return this.weights.map((_, x) => this.groups[i][hashBin(a, b, x, this.bins)]);
  }

  /**
   * The truth, or with probability `fresh / 2**62` a draw from the prior: the row of a group under a seed.
   *
   * @param {number[]} assigned
   */
  #table(assigned) {
    const masses = massOf(assigned, this.weights, this.reported);
    const total = sum(masses);
    const common = masses.map((mass) => (this.fresh * mass) / total);
    const rest = TOTAL - sum(common);
    return common.map((_, b) => common.map((w, y) => (b === y ? w + rest : w)));
  }

  /** @type {Mechanism["sample"]} */
  sample(code, [pick, word]) {
    const i = Number(pick & BigInt(this.seeds.length - 1));
    const assigned = this.#groupsOf(i);
    return i * this.reported + scan(this.#table(assigned)[assigned[code]], word);
  }

  /** @type {Mechanism["likelihoods"]} */
  likelihoods(report) {
    const assigned = this.#groupsOf(Math.floor(report / this.reported));
    const table = this.#table(assigned);
    return assigned.map((group) => Number(table[group][report % this.reported]) / Number(TOTAL) / this.seeds.length);
  }

  /** @type {Mechanism["accepts"]} */
  accepts(report) {
    return isOutput(this, report);
  }

  /** @type {Mechanism["lifts"]} */
  lifts([prior]) {
    const found = this.seeds.map((_, i) => this.#seedLifts(i, prior));
    const ratios = found.map((f) => f.ldp);
    const ldp = ratios.includes(null) ? null : most(/** @type {Fraction[]} */ (ratios));
    return { lowest: least(found.map((f) => f.lowest)), highest: most(found.map((f) => f.highest)), ldp };
  }

  /**
   * The seed is public, so each is a channel of its own, on the groups that hold some value.
   *
   * @param {number} i
   * @param {bigint[]} prior
   */
  #seedLifts(i, prior) {
    const assigned = this.#groupsOf(i);
    const masses = massOf(assigned, prior, this.reported);
    const filled = masses.map((_, g) => g).filter((g) => masses[g] > 0n);
    const table = this.#table(assigned);
    const rows = filled.map((g) => table[g]);
    const columns = transpose(rows).filter((column) => sum(column) > 0n);
    return tableLifts(transpose(columns), [filled.map((g) => masses[g])], null);
  }
}

/** @param {bigint} seed */
function coefficients(seed) {
  const first = (seed + STEP) & MASK;
  return [mix(first), mix((first + STEP) & MASK)];
}

/** @param {bigint} a @param {bigint} b @param {number} x @param {number} bins */
const hashBin = (a, b, x, bins) => Number(((((a * BigInt(x) + b) & MASK) >> 32n) * BigInt(bins)) >> 32n);

// -- mechanisms/kinds.js ----------------------------------------------------------------------------------------------
// The kinds of mechanisms. Each samples one value, scores a report, and states the exact extremes of its law.
//
// Some are proven for LIP or LDP of the value itself only (`ofValue`), some for one prior
// only (`onePrior`).


/**
 * The exact extremes of a law over all reports: how far one moves belief down and up, and the largest ratio of its
 * probabilities for two values.
 *
 * @typedef {{ lowest: Fraction, highest: Fraction, ldp: Ratio }} Lifts
 */

/** @typedef {number | string} Report A whole number, or a row of bits as little-endian hexadecimal. */

/**
 * @typedef {object} Mechanism
 * @property {number} size how many values there are
 * @property {number} draws how many random words a report takes
 * @property {number} [outputs] how many reports there are, where they are whole numbers
 * @property {number} [width] how many words a report has, where it is a row of bits
 * @property {(code: number, words: bigint[]) => Report} sample the report of a value
 * @property {(report: any) => number[]} likelihoods how likely each value makes this report, up to a factor
 * @property {(report: unknown) => boolean} accepts whether it can make this report
 * @property {(priors: bigint[][], secret: bigint[][] | null) => Lifts} lifts
 */

/** @typedef {(new (parameters: any) => Mechanism) & { ofValue?: boolean, onePrior?: boolean }} MechanismKind */

/** @type {Record<string, MechanismKind>} */
const MECHANISMS = {
  table: Table,
  grouped: Grouped,
  arc: Arc,
  orders: Orders,
  unary: Unary,
  subset: Subset,
  hashing: PooledHash,
};

const PROVEN = ["LIP", "LDP"]; // the notions whose budget is proven here; for all others, LDP is

/**
 * The sampler of a plan, if it can be certified for what the plan promises.
 *
 * @param {JsonDocument} document
 * @param {number} size
 */
function readMechanism({ mechanism: parameters, prior, secret, notion }, size) {
  const { kind } = parameters;
  need(Object.hasOwn(MECHANISMS, kind), "mechanism", "of an unknown kind");
  const made = MECHANISMS[kind];
  const mechanism = new made(parameters);
  need(mechanism.size === size, "mechanism", "for another number of values than the plan has");
  const plain = secret === null && PROVEN.includes(notion.name);
  need(plain || !made.ofValue, "mechanism", `${kind} is certified for LIP or LDP of the value itself`);
  need(prior.kind === "fixed" || !made.onePrior, "mechanism", `${kind} is certified for one prior`);
  return mechanism;
}

// -- values.js --------------------------------------------------------------------------------------------------------
// Values: which texts and numbers are the same one. docs/values.md has the rule as a table.


const BLANKS = /^[ \t\r\n]+|[ \t\r\n]+$/g;
const NUMBER = /^([+-]?)(?:([0-9]{1,40})(?:\.([0-9]{0,40}))?|\.([0-9]{1,40}))(?:e([+-]?[0-9]{1,3}))?$/i;

// A comma before exactly three digits may be a decimal mark or stand between thousands, except after a zero.
const DECIMAL_COMMA = /^([+-]?(?:[0-9]*(?=,(?![0-9]{3}(?![0-9])))|0*)),([0-9]+(?:e[+-]?[0-9]+)?)$/i;

const SEPARATED = /^[+-]?[0-9]+(?:[.,'’ \u00a0\u202f\u066c_][0-9]+)+$/;
const AMBIGUOUS = "an ambiguous number: write 1234.5 or 1234,5, without separators of thousands";
const LARGEST_NUMBER = 1e100;

/**
 * What decides which label a value is: the same text for equal values; null if it is missing, undefined if it is no label.
 *
 * @param {unknown} value
 * @returns {string | null | undefined}
 */
function valueKey(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return null;
  if (typeof value === "boolean") return `truth ${value}`;
  if (typeof value === "number" || typeof value === "bigint") return decimalKey(String(value));
  if (Array.isArray(value)) {
    const keys = value.map(valueKey);
    return keys.includes(null) ? null : keys.includes(undefined) ? undefined : JSON.stringify(keys);
  }
  if (typeof value !== "string") return undefined;
  const text = value.replace(BLANKS, "");
  return text === "" ? null : (decimalKey(text) ?? `text ${text}`);
}

/** A number with a point for its decimal comma; any other text as it is. @param {string} text */
const decimalPoint = (text) => text.replace(DECIMAL_COMMA, "$1.$2");

/**
 * A value with a point for a decimal comma, where a number is expected; a text such as a list of codes has none.
 *
 * @param {unknown} value
 * @returns {unknown}
 */
function withDecimalPoints(value) {
  if (Array.isArray(value)) return value.map(withDecimalPoints);
  return typeof value === "string" ? decimalPoint(value.replace(BLANKS, "")) : value;
}

/**
 * The number that a person typed, with a point or a comma as its decimal mark; an error with the field "value" if it is none.
 *
 * In a document a point is a decimal mark. People write points between thousands too, so a point or a comma before exactly
 * three digits is refused here, except after a zero.
 *
 * @param {unknown} typed
 */
export function readNumber(typed) {
  const text = withLatinDigits(String(typed)).replace(BLANKS, "");
  const plain = decimalPoint(text);
  const swapped = text.replace(/[.,]/g, (mark) => (mark === "." ? "," : "."));
  const unclear = /^[+-]?[0-9]+\.[0-9]+$/.test(text) && decimalPoint(swapped) === swapped;
  const key = unclear ? undefined : decimalKey(plain);
  need(key !== undefined, "value", unclear || SEPARATED.test(text) ? AMBIGUOUS : "should be a number");
  return Number(plain);
}

/** Arabic and Persian digits, and the Arabic decimal mark and minus, as Latin ones. @param {string} text */
function withLatinDigits(text) {
  const digits = text.replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => String(Number(digit.codePointAt(0)) & 15));
  const plain = digits.replace(/[\u200e\u200f\u061c]/g, "").replaceAll("\u2212", "-");
  // This mark stands only before decimals, so 1.234 is not ambiguous here: with another zero it is not taken for thousands.
  return plain.replace(/^([+-]?[0-9]+)\u066b([0-9]+)$/, (_, whole, part) => `${whole}.${part}0`);
}

/** A decimal number without the zeros around its digits; undefined if the text is none. @param {string} text */
function decimalKey(text) {
  const match = NUMBER.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", part = "", only = "", exponent = "0"] = match;
  const digits = (whole + part + only).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  const power = Number(exponent) - part.length - only.length + digits.length - short.length;
  return short === "" ? "number 0" : `number ${sign === "-" ? "-" : ""}${short}e${power}`;
}

/** The truth value that a label takes besides its own key. @param {string} key */
function truthKey(key) {
  const word = key.toLowerCase();
  if (word === "text true" || key === "number 1e0") return "truth true";
  return word === "text false" || key === "number 0" ? "truth false" : undefined;
}

// -- domains.js -------------------------------------------------------------------------------------------------------
// Domains: what a value may be, and which code it has.


/** @typedef {string | number | readonly (string | number)[]} Label A label of a value; of several attributes, a level of each. */
/** @typedef {string | number | bigint | boolean | readonly (string | number | bigint | boolean)[]} Value What a person may answer. */

/**
 * A grid, to whose points numbers are rounded at random, keeping their mean; or cells between edges. `bounds` are the points or
 * the edges, increasing. `outside` says whether a number outside the range is refused, or counted at the nearest end.
 *
 * @typedef {{ readonly kind: "grid" | "cells", readonly bounds: readonly number[], readonly outside: "refuse" | "ends" }} Numbers
 */

/**
 * One of several attributes. `numbers` says how a number becomes a level; it is null where levels are labels.
 *
 * @typedef {{ readonly name: string, readonly labels: readonly (string | number)[], readonly numbers: Numbers | null }} Attribute
 */

/**
 * @typedef {object} Domain
 * @property {readonly Label[]} labels
 * @property {Numbers | null} numbers
 * @property {readonly Attribute[] | null} attributes
 * @property {boolean} refusesNumbers whether some number is outside the range and refused
 * @property {number} draws how many random words a code takes
 * @property {(value: unknown, source: Source) => number} code
 */

/** Words and numbers, or lists of them: a value is the label that has the same key. */
class Labels {
  /** @type {Map<string, number>} */
  #codes = new Map();

  /** @param {readonly Label[]} labels @param {string} field */
  constructor(labels, field) {
    this.labels = labels;
    /** @type {Numbers | null} */
    this.numbers = null;
    /** @type {readonly Attribute[] | null} */
    this.attributes = null;
    /** @type {false} */
    this.rounds = false;
    this.draws = 0;
    this.refusesNumbers = false;
    labels.forEach((label, code) => {
      const key = valueKey(label);
      need(typeof key === "string", field, "an empty text means a missing value");
      for (const own of [key, truthKey(key)]) {
        if (own === undefined) continue;
        need(!this.#codes.has(own), field, "values cannot tell two of the labels apart");
        this.#codes.set(own, code);
      }
    });
  }

  /** @type {Domain["code"]} */
  code(value) {
    const key = valueKey(value);
    need(key !== null, "value", "it is missing");
    const code = this.#codes.get(key ?? "") ?? this.#codes.get(valueKey(withDecimalPoints(value)) ?? "");
    need(code !== undefined, "value", "not one of this plan's labels");
    return code;
  }
}

/** Numbers: points of a grid, to which they are rounded at random, or cells between edges. */
class NumberDomain {
  /** @param {Json} document @param {string} field */
  constructor({ kind, outside, ...given }, field) {
    /** @type {string[]} */
    const texts = given[NUMBERS[/** @type {Numbers["kind"]} */ (kind)]];
    /** @type {readonly number[]} */
    const bounds = Object.freeze(texts.map((text) => real(text, field)));
    /** @param {number} v @param {number} i */
    const sound = (v, i) => Math.abs(v) <= LARGEST_NUMBER && !Object.is(v, -0) && (i === 0 || v > bounds[i - 1]);
    need(bounds.every(sound), field, "should be increasing numbers");
    const text = bounds.map(edgeText);
    const last = text.length - 2;
    const cells = text.slice(1).map((end, i) => `[${text[i]}, ${end}${i === last ? "]" : ")"}`);
    /** @type {readonly (string | number)[]} */
    this.labels = kind === "grid" ? bounds : Object.freeze(cells);
    /** @type {Numbers} */
    this.numbers = Object.freeze({ kind, bounds, outside });
    /** @type {readonly Attribute[] | null} */
    this.attributes = null;
    this.rounds = kind === "grid";
    this.draws = this.rounds ? 1 : 0;
    this.refusesNumbers = outside === "refuse";
  }

  /** The number that a value is, moved to the nearest end if it is outside the range. @param {unknown} value */
  read(value) {
    const plain = withDecimalPoints(value);
    const key = valueKey(plain);
    need(key !== null, "value", "it is missing");
    const infinite = value === Infinity || value === -Infinity;
    const isNumber = key?.startsWith("number ") || infinite;
    const separated = typeof value === "string" && SEPARATED.test(value.replace(BLANKS, ""));
    need(isNumber, "value", separated ? AMBIGUOUS : "should be a number");
    const { bounds } = this.numbers;
    const number = Number(plain);
    const [first, last] = [bounds[0], bounds[bounds.length - 1]];
    const inside = number >= first && number <= last;
    need(inside || !this.refusesNumbers, "value", "outside the range of this plan");
    return Math.min(Math.max(number, first), last);
  }

  /** @type {Domain["code"]} */
  code(value, source) {
    const x = this.read(value);
    const { bounds } = this.numbers;
    const lower = cellOf(bounds, x);
    return this.rounds && roundsUp(x, bounds[lower], bounds[lower + 1], source) ? lower + 1 : lower;
  }
}

const EDGE_DIGITS = 12;

/**
 * An edge as it stands in the label of a cell, with as many digits as Python gives it: 0.3 for 0.1 + 0.2.
 *
 * @param {number} value
 */
function edgeText(value) {
  const [digits, exponent] = value.toExponential(EDGE_DIGITS - 1).split("e");
  const power = Number(exponent);
  /** @param {string} text */
  const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < EDGE_DIGITS) return short(value.toFixed(EDGE_DIGITS - 1 - power));
  return `${short(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** @type {{ grid: string, cells: string }} */
const NUMBERS = { grid: "points", cells: "edges" };

/**
 * The cell of a number in the range; a number on an edge belongs to the cell above it, the last to the last.
 *
 * @param {readonly number[]} bounds
 * @param {number} x
 */
const cellOf = (bounds, x) => Math.min(bounds.filter((v) => v <= x).length, bounds.length - 1) - 1;

/** Several attributes: a value has a level of each, and a number is rounded between the points that its group has. */
class Joint {
  /** @type {(Labels | NumberDomain)[]} */
  #parts;

  /** By the positions of the levels. @type {Map<string, number>} */
  #codes = new Map();

  /** The positions of the points that each group has of each attribute, increasing. @type {Map<string, number[][]>} */
  #points = new Map();

  /** @param {Json} document @param {string} field */
  constructor({ attributes, cells }, field) {
    /** @type {string[]} */
    const names = attributes.map((/** @type {Json} */ { name }) => name);
    need(new Set(names).size === names.length, field, "should have different names");
    this.#parts = attributes.map((/** @type {Json} */ { levels }) => readDomain(levels, field));
    /** @type {Map<string, Set<number>[]>} */
    const groups = new Map();
    cells.forEach((/** @type {number[]} */ cell, /** @type {number} */ code) => this.#add(cell, code, groups, field));
    this.#checkGroups(groups, field);
    for (const [group, points] of groups) this.#points.set(group, points.map(sorted));
    /** @type {readonly Attribute[]} */
    this.attributes = Object.freeze(
      this.#parts.map(({ labels, numbers }, i) =>
        Object.freeze({ name: names[i], labels: /** @type {Attribute["labels"]} */ (labels), numbers }),
      ),
    );
    /** @type {(cell: number[]) => Label} */
    const label = (cell) => Object.freeze(cell.map((at, i) => this.attributes[i].labels[at]));
    this.labels = Object.freeze(cells.map(label));
    /** @type {Numbers | null} */
    this.numbers = null;
    this.draws = this.#parts.reduce((total, part) => total + part.draws, 0);
    this.refusesNumbers = this.#parts.some((part) => part.refusesNumbers);
  }

  /** @param {readonly number[]} places */
  #group = (places) => places.map((at, i) => (this.#parts[i].rounds ? "" : at)).join();

  /** @param {number[]} cell @param {number} code @param {Map<string, Set<number>[]>} groups @param {string} field */
  #add(cell, code, groups, field) {
    /** @type {(at: number, i: number) => boolean} */
    const inside = (at, i) => at < this.#parts[i].labels.length;
    const fits = cell.length === this.#parts.length && cell.every(inside);
    need(fits, field, "a cell should have the position of a level of each attribute");
    this.#codes.set(cell.join(), code);
    const group = this.#group(cell);
    const points = groups.get(group) ?? this.#parts.map(() => new Set());
    groups.set(group, points);
    points.forEach((own, i) => own.add(cell[i]));
  }

  /**
   * Every level of a name occurs, in order; and every number of the range can be rounded in every group.
   *
   * @param {Map<string, Set<number>[]>} groups
   * @param {string} field
   */
  #checkGroups(groups, field) {
    this.#parts.forEach((part, i) => {
      if (part.numbers !== null) return;
      const order = [...new Set([...this.#codes.keys()].map((cell) => Number(cell.split(",")[i])))];
      const whole = order.length === part.labels.length && order.every((at, place) => at === place);
      need(whole, field, "the levels should be those of the cells, in their order");
    });
    let size = 0;
    for (const points of groups.values()) {
      this.#parts.forEach((part, i) => {
        const ends = !part.rounds || (points[i].has(0) && points[i].has(part.labels.length - 1));
        need(ends, field, "a group lacks an end of the grid");
      });
      size += points.reduce((product, own) => product * own.size, 1);
    }
    need(size === this.#codes.size, field, "a group lacks points of the grid");
  }

  /** @type {Domain["code"]} */
  code(value, source) {
    need(value !== null && value !== undefined, "value", "it is missing");
    const fits = Array.isArray(value) && value.length === this.#parts.length;
    need(fits, "value", "should be a list with a level of each attribute");
    const levels = this.#parts.map((part, i) => (part.rounds ? part.read(value[i]) : part.code(value[i], source)));
    const points = this.#points.get(this.#group(levels));
    need(points !== undefined, "value", "a combination that this plan leaves out");
    const places = levels.map((level, i) => {
      const { rounds, numbers } = this.#parts[i];
      if (!rounds) return level;
      const own = points[i].map((at) => numbers.bounds[at]);
      const lower = cellOf(own, level);
      return points[i][roundsUp(level, own[lower], own[lower + 1], source) ? lower + 1 : lower];
    });
    return /** @type {number} */ (this.#codes.get(places.join()));
  }
}

/** @param {Set<number>} positions */
const sorted = (positions) => [...positions].sort((a, b) => a - b);

/**
 * The domain of a document: a list of labels, the numbers of a grid or of cells, or several attributes.
 *
 * @param {Json} given
 * @param {string} field
 * @returns {Domain}
 */
function readDomain(given, field) {
  if (Array.isArray(given)) return new Labels(namesOf(given, field), field);
  return given.kind === "joint" ? new Joint(given, field) : new NumberDomain(given, field);
}

/**
 * True with probability exactly `(x - low) / (high - low)`: a uniform number is drawn a word at a time until it differs from that
 * fraction. One word nearly always suffices.
 *
 * @param {number} x
 * @param {number} low
 * @param {number} high
 * @param {Source} source
 */
function roundsUp(x, low, high, source) {
  const [[xn, xd], [ln, ld], [hn, hd]] = [x, low, high].map(exactFraction);
  const denominator = (hn * ld - ln * hd) * xd;
  let rest = (xn * ld - ln * xd) * hd;
  for (;;) {
    const [word] = source(1);
    const whole = (rest * WORD) / denominator;
    rest = (rest * WORD) % denominator;
    if (word !== whole || rest === 0n) return word < whole;
  }
}

/**
 * Labels are texts, numbers, or lists of these; one that is not a whole number is written {"number": text}.
 *
 * @param {Json} labels
 * @param {string} field
 * @returns {readonly Label[]}
 */
function namesOf(labels, field) {
  /** @param {Json} l @returns {string | number} */
  const level = (l) => {
    if (typeof l === "string" || typeof l === "number") return l;
    const number = real(l.number, field);
    need(Number.isFinite(number), field, "should be finite");
    return number;
  };
  return Object.freeze(
    labels.map((/** @type {Json} */ l) => (Array.isArray(l) ? Object.freeze(l.map(level)) : level(l))),
  );
}

// -- priors.js --------------------------------------------------------------------------------------------------------
// Priors and secrets: what is known about values, and what is protected instead of them.


/**
 * The priors that the certificate is about, where they can be listed; else null.
 *
 * @param {Json} prior
 * @param {number} size
 * @returns {bigint[][] | null}
 */
function readPriors(prior, size) {
  if (prior.kind === "fixed") return [readWeights(prior.weights, size)];
  if (prior.kind === "finite")
    return prior.members.map((/** @type {string[]} */ weights) => readWeights(weights, size));
  if (prior.kind === "interval") checkInterval(prior, size);
  else {
    readWeights(prior.weights, size);
    need(notNegative(prior.radius, "prior.radius") <= 1, "prior.radius", "should be at most one");
  }
  return null;
}

/** A prior as positive whole numbers without a common divisor. @param {string[]} list @param {number} size */
function readWeights(list, size) {
  const weights = list.map(BigInt);
  need(weights.length === size, "prior.weights", "should be one for each value");
  need(weights.reduce(commonDivisor) === 1n, "prior.weights", "should have no common divisor");
  need(sum(weights) < smallest(weights) << 1075n, "prior.weights", "a value is less likely than any float");
  return weights;
}

/**
 * The probabilities of the one prior of a plan; null where it has a set of priors.
 *
 * @param {Json} prior
 * @returns {readonly number[] | null}
 */
function probabilities({ kind, weights }) {
  if (kind !== "fixed") return null;
  /** @type {bigint[]} */
  const exact = weights.map(BigInt);
  const total = sum(exact);
  const shift = BigInt(Math.max(0, total.toString(2).length - 1000)); // larger whole numbers are no floats
  return Object.freeze(exact.map((weight) => Number(weight >> shift) / Number(total >> shift)));
}

/** @param {bigint} a @param {bigint} b */
function commonDivisor(a, b) {
  let [n, rest] = [a, b];
  while (rest > 0n) [n, rest] = [rest, n % rest];
  return n;
}

/**
 * Ends from zero to one, none of them crossed, with some prior between them.
 *
 * @param {Json} prior
 * @param {number} size
 */
function checkInterval({ lower, upper }, size) {
  const [low, high] = [lower, upper].map((ends) => shares(ends, size, "prior"));
  const ends = low.numbers.every((a, x) => a <= high.numbers[x] && high.numbers[x] > 0 && high.numbers[x] <= 1);
  need(ends, "prior", "should have ends from zero to one, the lower first");
  const between = low.total <= low.one && high.total >= high.one;
  need(between, "prior", "should have a prior between its ends");
}

/**
 * The rows of all scenarios as integers over one power of two each; null where the value itself is the secret.
 *
 * @param {Json} secret
 * @param {number} size
 * @returns {bigint[][] | null}
 */
function readSecret(secret, size) {
  if (secret === null) return null;
  return secret.flatMap((/** @type {Json} */ { labels, rows }) => {
    const count = namesOf(labels, "secret.labels").length;
    need(rows.length === count, "secret.rows", "should have a row for each secret");
    return rows.map((/** @type {string[]} */ row) => distribution(row, size));
  });
}

/** A row that adds up to one, up to the rounding of floats. @param {string[]} row @param {number} size */
function distribution(row, size) {
  const { integers, total, one } = shares(row, size, "secret.rows");
  const off = total > one ? total - one : one - total;
  need(off << 46n <= one, "secret.rows", "should add up to one");
  return integers;
}

/**
 * Finite numbers, zero or more, as floats and as integers over `one`, exactly.
 *
 * @param {string[]} row
 * @param {number} size
 * @param {string} field
 */
function shares(row, size, field) {
  need(row.length === size, field, "should have a number for each value");
  const numbers = row.map((text) => notNegative(text, field));
  need(numbers.every(Number.isFinite), field, "should be finite numbers");
  const fractions = numbers.map(exactFraction);
  const one = largest(fractions.map(([, d]) => d)); // powers of two
  const integers = fractions.map(([n, d]) => n * (one / d));
  return { numbers, integers, total: sum(integers), one };
}

// -- certificates.js --------------------------------------------------------------------------------------------------
// Certificates: every level that a plan states is proven again, or the plan is refused.


/**
 * Proven levels, in natural logarithms: `lip`, the larger of `lipLower` and `lipUpper`, of what the plan protects under the
 * prior; `ldp` of the value itself, whatever is known.
 *
 * @typedef {{ readonly lip: number, readonly lipLower: number, readonly lipUpper: number, readonly ldp: number }} Levels
 */

const LARGEST_LEVEL = 700; // of a budget: beyond it only infinity, which promises nothing and says so

/**
 * The levels that could be proven: all that the certificate states, or LDP alone; an error if one of them is not as stated,
 * or the budget is broken.
 *
 * @param {JsonDocument} document
 * @param {number} size
 * @param {Mechanism} mechanism
 * @returns {{ levels: Levels, proof: "budget" | "ldp" }}
 */
function proveCertificate(document, size, mechanism) {
  const { lower, upper } = readBudget(document.budget);
  const [priors, secret] = [readPriors(document.prior, size), readSecret(document.secret, size)];
  const notion = readNotion(document.notion);
  const { lipLower, lipUpper, ldp, level } = readCertificate(document.certificate, notion);
  const found = mechanism.lifts(priors ?? [Array(size).fill(1n)], priors && secret);
  const wrong = "the mechanism has another level than this: do not run it";
  need(isLevel(ldp, found.ldp), "certificate.ldp", wrong);
  if (priors) {
    need(isLevel(lipLower, inverse(found.lowest)), "certificate.lip_lower", wrong);
    need(isLevel(lipUpper, found.highest), "certificate.lip_upper", wrong);
  }
  const lip = Math.max(lipLower, lipUpper);
  need(level === ({ LIP: lip, LDP: ldp }[notion] ?? level), "certificate.level", wrong);
  const down = notion !== "LIP" || !priors || atMostExp(inverse(found.lowest), lower);
  const up = notion !== "LIP" || !priors || atMostExp(found.highest, upper);
  const apart = notion !== "LDP" || atMostExp(found.ldp, Math.min(lower, upper));
  need(down && up && apart, "certificate", "the mechanism leaks more than its budget: do not run it");
  if (priors && PROVEN.includes(notion)) return { levels: { lip, lipLower, lipUpper, ldp }, proof: "budget" };
  need(ldp < Infinity, "certificate", "this client cannot prove what it states; use the Python client");
  return { levels: { lip: ldp, lipLower: ldp, lipUpper: ldp, ldp }, proof: "ldp" };
}

/** How far belief may move; without a limit on one side at least, nothing would be promised. @param {Json} budget */
function readBudget(budget) {
  const [lower, upper] = ["lower", "upper"].map((side) => notNegative(budget[side], `budget.${side}`));
  const sides = [lower, upper].filter((side) => side < Infinity);
  need(sides.length > 0, "budget", "should have a finite side: it promises nothing");
  need(Math.max(...sides) <= LARGEST_LEVEL, "budget", `should be at most ${LARGEST_LEVEL}: it promises nothing`);
  return { lower, upper };
}

/** @param {Json} certificate @param {string} notion */
function readCertificate(certificate, notion) {
  need(certificate.notion === notion, "certificate.notion", "is not that of the plan");
  /** @param {string} name */
  const stated = (name) => notNegative(certificate[name], `certificate.${name}`);
  const [lipLower, lipUpper, ldp, level] = ["lip_lower", "lip_upper", "ldp", "level"].map(stated);
  return { lipLower, lipUpper, ldp, level };
}

/** The notion's name. The other fields are read only for the notions that are proven here. @param {Json} notion @returns {string} */
function readNotion(notion) {
  const { name } = notion;
  if (PROVEN.includes(name)) checkFields(notion, ["name"], "notion");
  return name;
}

// -- structure.js -----------------------------------------------------------------------------------------------------
// The structure of documents: which fields there are, and how they are written. What they state is proven elsewhere.


/** @typedef {{ readonly [keyword: string]: Json }} Schema The keywords of JSON Schema below, and no others. */

/** @type {(value: Json) => boolean} */
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** @type {Record<string, (value: Json) => boolean>} */
const TYPES = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  integer: Number.isSafeInteger,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

/** @type {(field: string, name: string) => string} */
const member = (field, name) => (field ? `${field}.${name}` : name);

/** Whether a value is no text, or one of at most so many characters as Python counts them. @type {(value: Json, most: number) => boolean} */
const isShort = (value, most) => typeof value !== "string" || value.length <= most || Array.from(value).length <= most;

/** @type {Map<string, RegExp>} */
const patterns = new Map();

/** @param {string} pattern */
function compiled(pattern) {
  const found = patterns.get(pattern) ?? new RegExp(pattern, "u");
  patterns.set(pattern, found);
  return found;
}

/**
 * What the keywords of a schema ask of a value; those for another type than the value's ask nothing.
 *
 * @type {Record<string, (argument: Json, value: Json, field: string, schema: Schema) => void>}
 */
const KEYWORDS = {
  $ref: (reference, value, field) => check(DEFINITIONS[reference.replace("#/$defs/", "")], value, field),
  anyOf: checkChoices,
  discriminator: () => {}, // helps anyOf to choose
  not: (schema, value, field) => need(refusal(schema, value, field) !== null, field, "should be something else"),
  type: (type, value, field) => need(TYPES[type](value), field || "file", `should be of type ${type}`),
  enum: (values, value, field) => need(values.includes(value), field, `should be ${values.join(" or ")}`),

  minLength: (least, value, field) =>
    need(typeof value !== "string" || !isShort(value, least - 1), field, `should have ${least} or more characters`),
  maxLength: (most, value, field) => need(isShort(value, most), field, `should have at most ${most} characters`),
  pattern: (pattern, value, field) =>
    need(typeof value !== "string" || compiled(pattern).test(value), field, `should match ${pattern}`),

  minimum: (least, value, field) => need(!(value < least), field, `should be at least ${least}`),
  maximum: (most, value, field) => need(!(value > most), field, `should be at most ${most}`),

  minItems: (least, value, field) =>
    need(!Array.isArray(value) || value.length >= least, field, `should have ${least} or more entries`),
  uniqueItems: (_, value, field) =>
    need(!Array.isArray(value) || new Set(value.map(canonical)).size === value.length, field, "has an entry twice"),
  items: (schema, value, field) => {
    if (Array.isArray(value)) value.forEach((entry, i) => check(schema, entry, `${field}[${i}]`));
  },

  minProperties: (least, value, field) =>
    need(!isObject(value) || Object.keys(value).length >= least, field, `should have ${least} or more members`),
  propertyNames: (schema, value, field) => {
    if (isObject(value)) for (const name of Object.keys(value)) check(schema, name, field);
  },
  required: (names, value, field) => {
    for (const name of names) need(!isObject(value) || Object.hasOwn(value, name), member(field, name), "is missing");
  },
  properties: (schemas, value, field) => {
    if (!isObject(value)) return;
    for (const [name, schema] of Object.entries(schemas))
      if (Object.hasOwn(value, name)) check(schema, value[name], member(field, name));
  },
  additionalProperties: (allowed, value, field, { properties = {} }) => {
    if (!isObject(value)) return;
    for (const name of Object.keys(value).filter((each) => !Object.hasOwn(properties, each))) {
      need(allowed !== false, member(field, name), "is not known here");
      check(allowed, value[name], member(field, name));
    }
  },
};

/** @param {Schema} schema @param {Json} value @param {string} field */
function check(schema, value, field) {
  for (const keyword in schema) KEYWORDS[keyword](schema[keyword], value, field, schema);
}

/** The error by which a schema refuses a value, or null. @param {Schema} schema @param {Json} value @param {string} field */
function refusal(schema, value, field) {
  try {
    check(schema, value, field);
    return null;
  } catch (error) {
    if (error instanceof PriorveilError) return error;
    throw error;
  }
}

/**
 * One of several schemas: the one that the value names, or any that fits. The error is that of the schema that comes farthest.
 *
 * @param {readonly Schema[]} schemas
 * @param {Json} value
 * @param {string} field
 * @param {Schema} schema
 */
function checkChoices(schemas, value, field, { discriminator }) {
  const named = isObject(value) && discriminator ? value[discriminator.propertyName] : null;
  if (typeof named === "string" && Object.hasOwn(discriminator.mapping, named)) {
    check({ $ref: discriminator.mapping[named] }, value, field);
    return;
  }
  const sameType = schemas.filter(({ type }) => type === undefined || TYPES[type](value));
  /** @type {PriorveilError | null} */
  let farthest = null;
  for (const choice of sameType.length > 0 ? sameType : schemas) {
    const error = refusal(choice, value, field);
    if (error === null) return;
    if (farthest === null || error.field.length > farthest.field.length) farthest = error;
  }
  throw farthest;
}

/**
 * A document, from its text or as it is, that nobody can change; refused if it is not as the struct of this name says.
 *
 * @param {string | JsonDocument} given
 * @param {string} name
 */
function readDocument(given, name) {
  const document = deepFreeze(parseDocument(given));
  const { format, version } = DEFINITIONS[name].properties;
  const [noun, supported] = [format.enum[0].replace("priorveil-", ""), version.enum[0]];
  need(format.enum.includes(document.format), "format", `not a ${noun}`);
  need(document.version === supported, "version", `not known here; this client reads ${supported}`);
  check(DEFINITIONS[name], document, "");
  return document;
}

// -- plans.js ---------------------------------------------------------------------------------------------------------
// Plans.


/**
 * A plan that was checked. Made by `readPlan` only.
 *
 * `levels` are the proven ones, in natural logarithms: `lip` of what `protects` names ("value" or "secret") under the prior, and
 * `ldp` of the value itself whatever is known. `proof` is "budget" where the whole certificate was proven again, and "ldp"
 * where only that level could be; `lip` is then `ldp`, which implies it. `priorAssumed` says that nobody knows the prior: `lip`
 * then holds only if it is right. `outputs` is how many reports a table can make, from 0 on; null for other mechanisms. `numbers` is
 * null, or says how a number becomes a value; `attributes` is null, or has the name, the labels and the numbers of each attribute.
 */
class Plan {
  #mechanism;
  #domain;

  /**
   * @param {JsonDocument} document
   * @param {Domain} domain
   * @param {Mechanism} mechanism
   * @param {{ levels: Levels, proof: "budget" | "ldp" }} proven
   */
  constructor(document, domain, mechanism, proven) {
    this.#mechanism = mechanism;
    this.#domain = domain;
    this.document = document;
    /** @type {string} */
    this.id = document.id;
    this.labels = domain.labels;
    this.numbers = domain.numbers;
    this.attributes = domain.attributes;
    this.refusesNumbers = domain.refusesNumbers;
    /** @type {"table" | "grouped" | "arc" | "orders" | "unary" | "subset" | "hashing"} */
    this.kind = document.mechanism.kind;
    this.draws = mechanism.draws + domain.draws;
    this.words = mechanism.width ?? 1;
    this.reportsBits = mechanism.width !== undefined;
    this.outputs = mechanism instanceof Table || mechanism instanceof Grouped ? mechanism.outputs : null;
    this.prior = probabilities(document.prior);
    this.priorAssumed = document.prior.assumed === true;
    this.protects = document.secret === null ? /** @type {const} */ ("value") : /** @type {const} */ ("secret");
    this.levels = proven.levels;
    this.proof = proven.proof;
    Object.freeze(this);
  }

  /**
   * The code of a value: that of its label, of its cell, or of a point next to it that is drawn at random.
   *
   * @param {Value} value
   * @param {Source} [source]
   */
  code(value, source = systemWords) {
    return this.#domain.code(value, source); // the value itself stays out of messages
  }

  /**
   * The report of one value as it is written in JSON. `source(count)` gives words; leave it out for real answers.
   *
   * @param {Value} value
   * @param {Source} [source]
   * @returns {Report}
   */
  privatize(value, source = systemWords) {
    const code = this.code(value, source);
    return this.#mechanism.sample(code, source(this.#mechanism.draws));
  }

  /**
   * For every value how likely it would have made this report, up to one factor common to all.
   *
   * @param {Report} report
   */
  likelihoods(report) {
    need(this.accepts(report), "report", "this plan cannot have made it");
    return this.#mechanism.likelihoods(report);
  }

  /**
   * For every value its share of the people who send this report, if values are as common as the prior says; all equally
   * common where there is no single prior.
   *
   * @param {Report} report
   */
  posterior(report) {
    const joint = this.likelihoods(report).map((chance, x) => chance * (this.prior?.[x] ?? 1));
    const total = joint.reduce((a, b) => a + b);
    return joint.map((mass) => mass / total);
  }

  /** Whether this plan can have made a report. @param {unknown} report */
  accepts(report) {
    return this.#mechanism.accepts(report);
  }
}

/**
 * Read a plan from its document or text: check its id, prove its certificate again, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export async function readPlan(given, { id } = {}) {
  const document = readDocument(given, "PlanDocument");
  const domain = readDomain(document.labels, "labels");
  await checkId(document, id);
  checkErrors(document);
  const size = domain.labels.length;
  const mechanism = readMechanism(document, size);
  return new Plan(document, domain, mechanism, proveCertificate(document, size, mechanism));
}

/** The errors say nothing about privacy, but have to be in order. @param {JsonDocument} document */
function checkErrors(document) {
  const [bound, error, none] = ["lower_bound", "expected_mse", "no_report"].map((name) => real(document[name], name));
  /** @type {(a: number, b: number) => boolean} */
  const atMost = (a, b) => a <= b * (1 + 1e-9) + 1e-12;
  need(atMost(bound, error), "lower_bound", "lies above the expected error");
  need(error >= 0 && atMost(error, none), "expected_mse", "should lie between zero and the error without reports");
}

// -- forms.js ---------------------------------------------------------------------------------------------------------
// Forms: what leaves the device.


/**
 * A plan about some attributes, and how many of 2**20 people are asked about it.
 *
 * @typedef {{ readonly attributes: readonly string[], readonly share: number, readonly plan: Plan }} Part
 */

const SHARE_BITS = 20n; // the shares of a slot's parts add up to 2**20, so that a part is drawn exactly

/** One report of a submission: about the attributes of its only part, or of the part that this device has drawn. */
class Slot {
  #weights;

  /** @param {Part[]} parts */
  constructor(parts) {
    this.parts = Object.freeze(parts);
    this.#weights = parts.map(({ share }) => BigInt(share) << (TOTAL_BITS - SHARE_BITS));
    this.drawn = parts.length > 1;
    this.width = (this.drawn ? 1 : 0) + Math.max(...parts.map(({ plan }) => plan.words));
    Object.freeze(this);
  }

  /**
   * The position of a part, by its share. It takes no random word where there is only one part.
   *
   * @param {Source} [source]
   */
  draw(source = systemWords) {
    return this.drawn ? scan(this.#weights, source(1)[0]) : 0;
  }

  /**
   * The report about a part as hexadecimal, of the same length for every part and value.
   *
   * @param {ReadonlyMap<string, Value>} values
   * @param {number} at
   * @param {Source} [source]
   */
  privatize(values, at, source = systemWords) {
    const { attributes, plan } = this.parts[at];
    const levels = attributes.map((name) => {
      const level = values.get(name);
      need(level !== undefined, "answers", `there is none for ${name}`);
      return level;
    });
    const value = plan.attributes === null ? levels[0] : /** @type {Value} */ (levels);
    const report = plan.privatize(value, source);
    const packed = typeof report === "string" ? report : wordText(report);
    return `${this.drawn ? wordText(at) : ""}${packed}`.padEnd(16 * this.width, "0");
  }

  /**
   * The position of the part and its report, from their hexadecimal; null if this slot cannot have made them.
   *
   * @param {string} text
   * @returns {{ readonly at: number, readonly report: Report } | null}
   */
  unpack(text) {
    const at = this.drawn ? wordNumber(text.slice(0, 16)) : 0;
    if (at === null || at >= this.parts.length) return null;
    const { plan } = this.parts[at];
    const rest = this.drawn ? text.slice(16) : text;
    const [own, padding] = [rest.slice(0, 16 * plan.words), rest.slice(16 * plan.words)];
    const report = plan.reportsBits ? own : wordNumber(own);
    return report !== null && plan.accepts(report) && /^0*$/.test(padding) ? { at, report } : null;
  }
}

/** A whole number as the hexadecimal of one little-endian word. @param {number} number */
function wordText(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number), true);
  return hex(bytes);
}

/** The whole number of a word in hexadecimal; null if it is too large for a number. @param {string} text */
function wordNumber(text) {
  const value = littleEndianNumber(text);
  return value < LARGEST_REPORT ? Number(value) : null;
}

/**
 * What the people of a cohort send: one report for each slot. Made by `readForm` and `readCampaign` only.
 *
 * `levels` are those of a whole submission, about any answer and all of them together, whatever they have to do with each other.
 */
class Form {
  /** @param {string} id @param {readonly Slot[]} slots */
  constructor(id, slots) {
    this.id = id;
    this.slots = Object.freeze(slots);
    this.parts = Object.freeze(slots.flatMap((slot) => slot.parts));
    this.attributes = Object.freeze([...new Set(this.parts.flatMap((part) => part.attributes))]);
    this.width = slots.reduce((total, slot) => total + slot.width, 0);
    this.levels = Object.freeze(submissionLevels(slots));
    Object.freeze(this);
  }

  /** For each slot the position of a part, drawn at random. @param {Source} [source] */
  draw(source = systemWords) {
    return this.slots.map((slot) => slot.draw(source));
  }

  /** The parts that a draw has chosen, one for each slot. @param {readonly number[]} draw */
  drawnParts(draw) {
    need(this.fitsDraw(draw), "draw", "should have the position of a part for each slot");
    return this.slots.map((slot, i) => slot.parts[draw[i]]);
  }

  /** Whether these are positions of parts, one for each slot. @param {unknown} draw */
  fitsDraw(draw) {
    /** @type {(at: number, i: number) => boolean} */
    const inside = (at, i) => Number.isInteger(at) && at >= 0 && at < this.slots[i].parts.length;
    return Array.isArray(draw) && draw.length === this.slots.length && draw.every(inside);
  }

  /**
   * The submission of one person: `values` has a level for each attribute of the drawn parts.
   *
   * @param {ReadonlyMap<string, Value>} values
   * @param {readonly number[]} draw
   * @param {Source} [source]
   */
  privatize(values, draw, source = systemWords) {
    this.drawnParts(draw);
    return this.slots.map((slot, i) => slot.privatize(values, draw[i], source)).join("");
  }

  /**
   * The part and its report for each slot of a submission; null if this form cannot have made it.
   *
   * @param {unknown} report
   * @returns {{ readonly at: number, readonly report: Report }[] | null}
   */
  unpack(report) {
    if (typeof report !== "string" || report.length !== 16 * this.width || !/^[0-9a-f]+$/.test(report)) return null;
    let start = 0;
    const reports = this.slots.map((slot) => {
      start += 16 * slot.width;
      return slot.unpack(report.slice(start - 16 * slot.width, start));
    });
    return reports.every((each) => each !== null) ? reports : null;
  }

  /** Whether this form can have made a submission. @param {unknown} report */
  accepts(report) {
    return this.unpack(report) !== null;
  }
}

/**
 * What a whole submission tells about all answers together, and so about each of them, whatever they have to do with each
 * other. One report has the largest levels of its parts; a part counts with its LDP level if its prior is only assumed. The LDP
 * levels of several reports add up, whatever anyone knows.
 *
 * @param {readonly Slot[]} slots
 * @returns {Levels}
 */
function submissionLevels(slots) {
  const each = slots.map(({ parts }) => {
    /** @param {keyof Levels} name */
    const largest = (name) => Math.max(...parts.map(({ plan }) => plan.levels[plan.priorAssumed ? "ldp" : name]));
    return { lip: largest("lip"), lipLower: largest("lipLower"), lipUpper: largest("lipUpper"), ldp: largest("ldp") };
  });
  if (each.length === 1) return each[0];
  const ldp = each.reduce((total, level) => total + level.ldp, 0);
  return { lip: ldp, lipLower: ldp, lipUpper: ldp, ldp };
}

/**
 * Read a form from its document: check its id and every plan in it, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export async function readForm(given, { id } = {}) {
  const document = readDocument(given, "FormDocument");
  const names = document.slots.map((/** @type {Json[]} */ parts) =>
    parts.map((part) => ({ ...part, plan: part.plan.id ?? null })),
  );
  await checkId({ id: document.id, slots: names }, id);
  const slots = await Promise.all(document.slots.map(readSlot));
  const parts = slots.flatMap((slot) => slot.parts);
  const alone =
    parts.length === 1 || parts.every(({ plan }) => plan.protects === "value" && plan.levels.ldp < Infinity);
  need(alone, "slots", "a plan that protects a secret, or has no LDP level, should be the only part");
  const asked = parts.map(({ attributes }) => canonical(attributes));
  need(new Set(asked).size === asked.length, "slots", "two parts have the same attributes");
  return new Form(document.id, slots);
}

/** @param {Json} listed */
async function readSlot(listed) {
  const parts = await Promise.all(
    listed.map(async (/** @type {Json} */ { attributes, share, plan: document }) => {
      const plan = await readPlan(document);
      const own = plan.attributes?.map(({ name }) => name);
      const fits = own ? canonical(own) === canonical(attributes) : attributes.length === 1;
      need(fits, "slots.attributes", "should be those of the plan, or one name");
      need(own || !plan.labels.some(Array.isArray), "slots.attributes", "the values of the plan have no names");
      return Object.freeze({ attributes, share, plan });
    }),
  );
  const total = parts.reduce((sum, { share }) => sum + share, 0);
  need(total === Number(1n << SHARE_BITS), "slots.share", `should add up to 2**${SHARE_BITS} in a slot`);
  return new Slot(parts);
}

// -- questions/question.js --------------------------------------------------------------------------------------------
// Questions: what every kind of question has in common.


/** @typedef {{ readonly [language: string]: string }} Texts A text by language; empty where it was not given. */
/** @typedef {string | number | bigint | readonly string[] | ReadonlySet<string>} Answer A code, the codes of several, or a number. */
/** @typedef {{ readonly [question: string]: Answer }} Answers An answer for each question that is asked, by its name. */
/** @typedef {string | number | bigint | string[] | null} Read An answer that was read; null for a question that was skipped. */

export const NOT_ASKED = "not asked"; // the level of a question that earlier answers skip

/** One question. Each kind is a subclass; made by `readCampaign` only. */
class Question {
  /** The codes after which other questions may be asked; none if no question may depend on this one. @type {readonly string[]} */
  gateCodes = [];
  /** What counts as an answer where nothing is chosen or typed; undefined if nothing does. @type {Answer | undefined} */
  emptyAnswer = undefined;
  /** The ranges that a number is put into; null where there are none. @type {Numbers | null} */
  ranges = null;

  /** @param {Json} document */
  constructor(document) {
    /** @type {string} */
    this.name = document.name;
    /** @type {string} */
    this.kind = document.kind;
    /** @type {Texts} */
    this.text = document.text;
    /** @type {Texts} */
    this.hint = document.hint;
    /** @type {Texts} */
    this.unit = document.unit;
    /** @type {readonly { readonly code: string, readonly text: Texts }[]} */
    this.options = document.options;
    /** The earlier questions, and the codes after which this one is asked. @type {ReadonlyMap<string, readonly string[]>} */
    this.askedIf = new Map(Object.entries(document.asked_if));
    /** The attributes that an answer gives. @type {readonly string[]} */
    this.attributes = Object.freeze([this.name]);
  }

  /**
   * Refuse a document that breaks a rule of its kind.
   *
   * @param {Json} document
   * @param {readonly string[]} languages
   */
  check({ name, text, hint, unit }, languages) {
    need(/^[\p{L}\p{N}_-]+$/u.test(name), "questions.name", "should be letters, digits, _ and -");
    checkTexts(text, "questions.text", languages);
    checkTexts(hint, "questions.hint", languages, true);
    checkTexts(unit, "questions.unit", languages, true);
  }

  /**
   * Whether it is asked after these answers: a code for each question, or null for one that was skipped.
   *
   * @param {ReadonlyMap<string, Read>} answers
   */
  isAsked(answers) {
    return [...this.askedIf].every(([gate, codes]) => codes.includes(/** @type {string} */ (answers.get(gate))));
  }

  /** The code of the option that an attribute is about; null if it is about the whole question. @param {string} attribute */
  optionOf(attribute) {
    return attribute === this.name ? null : attribute.slice(this.name.length + 1);
  }

  /**
   * The answer as a code, a list of codes, a number or the label of its range; an error if it is none, without showing it.
   *
   * @abstract
   * @param {unknown} _answer
   * @returns {NonNullable<Read>}
   */
  read(_answer) {
    throw new TypeError(`questions of kind ${this.kind} do not say how they are read`);
  }

  /**
   * The level of each attribute, from an answer that was read; null for a question that was skipped.
   *
   * @param {Read} answer
   * @returns {[string, Value][]}
   */
  levels(answer) {
    return this.attributes.map((name) => [name, answer === null ? NOT_ASKED : this.levelOf(name, answer)]);
  }

  /** @protected @param {string} _attribute @param {NonNullable<Read>} answer @returns {Value} */
  levelOf(_attribute, answer) {
    return /** @type {Value} */ (answer);
  }

  /**
   * Refuse a plan whose values of an attribute are others than an answer can give.
   *
   * @param {Pick<Domain, "labels" | "numbers">} domain
   * @param {boolean} _refusesNumbers
   */
  checkDomain({ labels, numbers }, _refusesNumbers) {
    const expected = [...this.ownLevels, ...(this.askedIf.size > 0 ? [NOT_ASKED] : [])];
    const keys = new Set(labels.map(valueKey));
    const same = keys.size === expected.length && expected.every((level) => keys.has(valueKey(level)));
    need(numbers === null && same, "cohorts", `the values of ${this.name} are not those of its plan`);
  }

  /** The levels of each attribute, except "not asked". @protected @returns {readonly Label[]} */
  get ownLevels() {
    return [];
  }

  /**
   * Refuse an answer, without showing it.
   *
   * @protected
   * @template T
   * @param {T | undefined | false | null} good
   * @param {string} problem
   * @returns {T}
   */
  need(good, problem) {
    need(good !== undefined && good !== false, `answers.${this.name}`, problem);
    return /** @type {T} */ (good);
  }
}

// -- questions/choices.js ---------------------------------------------------------------------------------------------
// Questions with options: a choice of one of them, or "tick all that apply".


const [YES, NO] = ["yes", "no"]; // the levels of an option of "tick all that apply"
const EDGE_BLANK = /^[\s\x1c-\x1f\x85]|[\s\x1c-\x1f\x85]$/;

/** What both kinds share: rules of options, and codes as answers. */
class QuestionWithOptions extends Question {
  leastOptions = 1;

  /** The options by the key of their code. @type {Map<string | null | undefined, string>} */
  #codes;

  /** @param {Json} document */
  constructor(document) {
    super(document);
    this.#codes = new Map(this.options.map(({ code }) => [valueKey(code), code]));
  }

  /** @param {Json} document @param {readonly string[]} languages */
  check(document, languages) {
    super.check(document, languages);
    const { options, edges } = document;
    need(options.length >= this.leastOptions, "questions.options", `should be at least ${this.leastOptions}`);
    const keys = new Set([valueKey(NOT_ASKED)]);
    for (const option of options) {
      const { code } = option;
      const key = EDGE_BLANK.test(code) ? null : valueKey(code);
      need(key !== null && !keys.has(key), "questions.options", "should have different codes, and not 'not asked'");
      keys.add(key);
      checkTexts(option.text, "questions.options", languages);
    }
    for (const language of languages) {
      const texts = new Set(options.map((/** @type {Json} */ { text }) => text[language].trim().toLowerCase()));
      need(texts.size === options.length, "questions.options", "two have the same text in a language");
    }
    need(edges.length === 0, "questions.edges", "belong to a number");
  }

  /** @protected @param {unknown} answer @returns {string} */
  codeOf(answer) {
    const code = Array.isArray(answer) ? undefined : this.#codes.get(valueKey(answer) ?? "");
    return this.need(code, "should be the code of one of its options");
  }
}

/** A choice of one option. */
class SingleChoice extends QuestionWithOptions {
  leastOptions = 2;

  /** @param {Json} document */
  constructor(document) {
    super(document);
    this.gateCodes = this.options.map(({ code }) => code);
    Object.freeze(this);
  }

  /** @param {unknown} answer */
  read(answer) {
    return this.codeOf(answer);
  }

  /** @returns {readonly Label[]} */
  get ownLevels() {
    return this.gateCodes;
  }
}

/** Any number of options. Each is an attribute, with the levels yes and no. */
class MultipleChoice extends QuestionWithOptions {
  /** @param {Json} document */
  constructor(document) {
    super(document);
    /** @type {Answer} */
    this.emptyAnswer = [];
    this.attributes = Object.freeze(this.options.map(({ code }) => `${this.name}/${code}`));
    Object.freeze(this);
  }

  /** @param {unknown} answer */
  read(answer) {
    const listed = answer instanceof Set ? [...answer] : answer;
    const codes = this.need(
      Array.isArray(listed) && listed,
      "should be a list of the codes of its options, empty if none applies",
    );
    const chosen = new Set(codes.map((code) => this.codeOf(code)));
    return this.options.map(({ code }) => code).filter((code) => chosen.has(code));
  }

  /** @param {string} attribute @param {NonNullable<Read>} answer @returns {Value} */
  levelOf(attribute, answer) {
    return /** @type {string[]} */ (answer).includes(this.optionOf(attribute) ?? "") ? YES : NO;
  }

  /** @returns {readonly Label[]} */
  get ownLevels() {
    return [YES, NO];
  }
}

// -- questions/number.js ----------------------------------------------------------------------------------------------
// Questions about a number, as it is or in ranges.


/** A number. Edges put answers into ranges; without them its plan rounds or sorts it. */
class NumberQuestion extends Question {
  #ranges;

  /** @param {Json} document */
  constructor(document) {
    super(document);
    const cells = { kind: "cells", edges: document.edges, outside: "ends" };
    this.#ranges = document.edges.length > 0 ? new NumberDomain(cells, "questions.edges") : null;
    this.ranges = this.#ranges?.numbers ?? null;
    Object.freeze(this);
  }

  /** @param {Json} document @param {readonly string[]} languages */
  check(document, languages) {
    super.check(document, languages);
    const { options, asked_if: gates, edges } = document;
    need(options.length === 0, "questions.options", "belong to a choice");
    const always = Object.keys(gates).length === 0;
    need(always || edges.length > 0, "questions.edges", "are needed where a number is not always asked");
  }

  /** @param {unknown} answer @returns {NonNullable<Read>} */
  read(answer) {
    const key = typeof answer === "boolean" ? undefined : valueKey(withDecimalPoints(answer));
    const good = answer === Infinity || answer === -Infinity || key?.startsWith("number ");
    this.need(good && !Array.isArray(answer), "should be a number");
    if (this.#ranges === null) return /** @type {number} */ (answer);
    return /** @type {string} */ (this.#ranges.labels[this.#ranges.code(answer, systemWords)]);
  }

  /** @param {Pick<Domain, "labels" | "numbers">} domain @param {boolean} refusesNumbers */
  checkDomain(domain, refusesNumbers) {
    if (this.#ranges !== null) return super.checkDomain(domain, refusesNumbers);
    need(domain.numbers !== null, "cohorts", `the values of ${this.name} are not those of its plan`);
    const advice = "should count numbers outside the range at the ends: silence would reveal them";
    return need(!refusesNumbers, "cohorts", advice);
  }

  /** @returns {readonly Label[]} */
  get ownLevels() {
    return this.#ranges?.labels ?? [];
  }
}

// -- questions/kinds.js -----------------------------------------------------------------------------------------------
// The kinds of questions, and the questions of a campaign.


/** @type {Record<string, new (document: Json) => Question>} */
const QUESTION_KINDS = { choice: SingleChoice, choices: MultipleChoice, number: NumberQuestion };

/** @param {JsonDocument} document @returns {Question[]} */
function readQuestions({ questions, languages }) {
  /** @type {Map<string, Question>} */
  const earlier = new Map();
  for (const document of questions) {
    const { kind } = document;
    need(Object.hasOwn(QUESTION_KINDS, kind), "questions.kind", "is not known here");
    const question = new QUESTION_KINDS[kind](document);
    question.check(document, languages);
    need(!earlier.has(question.name), "questions.name", "two questions have the same");
    for (const [gate, codes] of question.askedIf) {
      const known = earlier.get(gate)?.gateCodes ?? [];
      need(known.length > 0, "questions.asked_if", "should name an earlier question with one choice");
      const some = codes.every((code) => known.includes(code));
      need(some, "questions.asked_if", "should have options of that question");
    }
    earlier.set(question.name, question);
  }
  return [...earlier.values()];
}

/**
 * The questions that give some attributes, and those that decide whether they are asked, in order.
 *
 * @param {readonly Question[]} questions
 * @param {readonly string[]} attributes
 */
function questionsFor(questions, attributes) {
  /** @type {Set<string>} */
  const needed = new Set();
  for (const question of [...questions].reverse()) {
    const own = question.attributes.some((name) => attributes.includes(name));
    if (!own && !needed.has(question.name)) continue;
    needed.add(question.name);
    for (const gate of question.askedIf.keys()) needed.add(gate);
  }
  return questions.filter(({ name }) => needed.has(name));
}

// -- campaigns.js -----------------------------------------------------------------------------------------------------
// Campaigns: questions, and a form for each cohort.


/**
 * Questions, and a checked form for each cohort. Made by `readCampaign` only.
 *
 * `promise` has for each cohort what a whole submission tells about any answer: `lip` under the priors, `ldp` for any prior.
 */
class Campaign {
  #questions;

  /**
   * @param {JsonDocument} document
   * @param {readonly Question[]} questions
   * @param {Readonly<Record<string, Form>>} forms
   */
  constructor(document, questions, forms) {
    this.document = document;
    this.forms = forms;
    /** @type {string} */
    this.id = document.id;
    /** @type {Texts} */
    this.title = document.title;
    /** @type {Texts} */
    this.description = document.description;
    /** @type {Texts} */
    this.askedBy = document.asked_by;
    /** @type {Texts} */
    this.purpose = document.purpose;
    /** @type {string} */
    this.contact = document.contact;
    /** The languages of all texts, the default first. @type {readonly string[]} */
    this.languages = document.languages;
    /** Whether everybody may answer, or a report needs the single-use code of an invitation. @type {"open" | "invitation"} */
    this.admission = document.admission;
    this.questions = Object.freeze(questions);
    this.promise = Object.freeze(Object.fromEntries(Object.entries(forms).map(([name, form]) => [name, form.levels])));
    this.#questions = new Map(questions.map((question) => [question.name, question]));
    /** @type {number} */
    this.smallestCount = document.smallest_count;
    /** No more reports than these are taken; null for no limit. @type {number | null} */
    this.mostReports = document.most_reports;
    /** How many people will probably answer; null if nobody knows. @type {number | null} */
    this.expectedPeople = document.expected_people;
    /** The LDP level to which the campaign lowers the limit of devices; null if it does not. */
    this.limit = document.limit === null ? null : Number(document.limit);
    this.cohorts = Object.freeze(Object.keys(forms));
    const [opens, closes, keepUntil] = TIMES.map((name) => (document[name] === null ? null : new Date(document[name])));
    this.opens = opens;
    this.closes = closes;
    /** When the reports are deleted; null if that is not decided. */
    this.keepUntil = keepUntil;
    Object.freeze(this);
  }

  /**
   * "not yet open", "open" or "closed" by this clock.
   *
   * @param {Date} [now]
   * @returns {"not yet open" | "open" | "closed"}
   */
  state(now = new Date()) {
    if (this.opens !== null && now < this.opens) return "not yet open";
    return this.closes !== null && now >= this.closes ? "closed" : "open";
  }

  /** The form of a cohort; the name may be left out where there is only one. @param {string} [cohort] */
  formFor(cohort) {
    const name = cohort === undefined && this.cohorts.length === 1 ? this.cohorts[0] : (cohort ?? "");
    need(Object.hasOwn(this.forms, name), "cohort", `choose one of ${this.cohorts.join(", ")}`);
    return this.forms[name];
  }

  /**
   * A draw for each form, by its id, all from the same random words: so a device draws once, and whoever corrects a wrong cohort
   * is asked what was drawn before, where the forms have the same shares.
   *
   * @param {Source} [source]
   * @returns {Record<string, number[]>}
   */
  drawForms(source = systemWords) {
    /** @type {bigint[]} */
    const words = [];
    return Object.fromEntries(Object.values(this.forms).map((form) => [form.id, form.draw(keptWords(words, source))]));
  }

  /**
   * The questions to show for a draw, in order: those of the drawn parts, and those that decide whether they are asked.
   *
   * @param {string | undefined} cohort
   * @param {readonly number[]} draw
   */
  questionsToAsk(cohort, draw) {
    return questionsFor(
      this.questions,
      this.formFor(cohort)
        .drawnParts(draw)
        .flatMap((part) => part.attributes),
    );
  }

  /**
   * Those of these questions that are asked after the answers so far; each answer is a code, codes or a number.
   *
   * @param {readonly Question[]} questions
   * @param {Answers} answers
   */
  questionsAsked(questions, answers) {
    const read = this.#readAnswers(questions, answers, () => undefined);
    return questions.filter(({ name }) => read.get(name) !== null);
  }

  /**
   * A level for each attribute of these questions, from answers by the name of the question. The answer to a question that is
   * skipped is ignored. An answer that is none is an error that does not show it.
   *
   * @param {Answers} answers
   * @param {readonly Question[]} [questions]
   * @returns {Map<string, Value>}
   */
  attributeValues(answers, questions = this.questions) {
    /** @param {Question} question @returns {never} */
    const missing = ({ name }) => {
      throw new PriorveilError(`answers.${name}`, "is missing");
    };
    const read = this.#readAnswers(questions, answers, missing);
    return new Map(questions.flatMap((question) => question.levels(read.get(question.name) ?? null)));
  }

  /**
   * Refuse a wrong answer to any question, also to one that is not drawn or skipped; null is no answer. A client calls this first,
   * so that a mistake of an app does not show for some people only.
   *
   * @param {Answers} answers
   */
  checkAnswers(answers) {
    this.#checkNames(answers);
    for (const question of this.questions) {
      const given = Object.hasOwn(answers, question.name) ? answers[question.name] : null;
      if (given !== null && given !== undefined) question.read(given);
    }
  }

  /** @param {Answers} answers */
  #checkNames(answers) {
    const object = answers !== null && typeof answers === "object" && !Array.isArray(answers);
    need(object, "answers", "should be an object with an answer for each question, by its name");
    for (const name of Object.keys(answers))
      need(this.#questions.has(name), `answers.${name}`, "is not a question here");
  }

  /**
   * @template M
   * @param {readonly Question[]} questions
   * @param {Answers} answers
   * @param {(question: Question) => M} missing what to read where there is no answer
   * @returns {Map<string, Read | M>}
   */
  #readAnswers(questions, answers, missing) {
    this.#checkNames(answers);
    const read = new Map();
    for (const question of questions) {
      const { name } = question;
      const given = Object.hasOwn(answers, name) ? answers[name] : undefined;
      if (!question.isAsked(read)) read.set(name, null);
      else read.set(name, given === undefined ? missing(question) : question.read(given));
    }
    return read;
  }
}

const TEXTS = Object.keys(DEFINITIONS.CampaignTexts.properties);
const TIMES = ["opens", "closes", "keep_until"]; // may be null

/**
 * Read a campaign from its document or text: check its id and every plan in it, or refuse it with the field.
 *
 * @param {string | JsonDocument} given
 * @param {{ id?: string }} [expected]
 */
export async function readCampaign(given, { id } = {}) {
  const document = readDocument(given, "CampaignDocument");
  await checkId(document, id);
  checkCampaign(document);
  const questions = readQuestions(document);
  /** @type {[string, Json][]} */
  const entries = Object.entries(document.cohorts);
  const read = entries.map(async ([name, form]) => /** @type {const} */ ([name, await readForm(form)]));
  const forms = await Promise.all(read);
  for (const [, form] of forms) checkForm(form, questions);
  const reported = forms.map(([, { attributes }]) => canonical([...attributes].sort()));
  need(new Set(reported).size === 1, "cohorts", "should all be asked about the same attributes");
  const used = questionsFor(questions, forms[0][1].attributes);
  need(used.length === questions.length, "questions", "one of them has an answer that no form uses");
  need(new Set(forms.map(([, form]) => form.id)).size === forms.length, "cohorts", "two cohorts share a form");
  return new Campaign(document, questions, Object.freeze(Object.fromEntries(forms)));
}

/**
 * The plans of a form are about attributes of the questions, and have the values that answers give.
 *
 * @param {Form} form
 * @param {readonly Question[]} questions
 */
function checkForm({ parts, attributes }, questions) {
  const owner = new Map(questions.flatMap((question) => question.attributes.map((name) => [name, question])));
  for (const name of attributes) need(owner.has(name), "cohorts", `no question has the attribute ${name}`);
  for (const { attributes: names, plan } of parts)
    names.forEach((name, i) => owner.get(name)?.checkDomain((plan.attributes ?? [plan])[i], plan.refusesNumbers));
}

/** @param {JsonDocument} document */
function checkCampaign(document) {
  const { cohorts, opens, closes, keep_until: kept, languages } = document;
  const different = new Set(languages.map((/** @type {string} */ tag) => tag.toLowerCase())).size === languages.length;
  need(different, "languages", "should be tags such as en or pt-BR, each once");
  for (const name of TEXTS) checkTexts(document[name], name, languages, name !== "title");
  const limit = document.limit === null ? 1 : real(document.limit, "limit");
  need(limit > 0 && limit < Infinity, "limit", "should be a number above zero");
  for (const name of Object.keys(cohorts)) checkText(name, "cohorts");
  for (const name of TIMES) checkTime(document[name], name);
  need(opens === null || closes === null || opens < closes, "closes", "should be after it opens");
  need(kept === null || (closes !== null && closes < kept), "keep_until", "should be after it closes");
}

// -- turns.js ---------------------------------------------------------------------------------------------------------
// Turns: work that waits until earlier work is done.

/** @type {Map<string, Promise<unknown>>} */
const turns = new Map();

/**
 * One after the other among the clients of this program; tabs and other programs are kept apart by the storage.
 *
 * @template T
 * @param {string} name
 * @param {() => T | PromiseLike<T>} work
 * @returns {Promise<T>}
 */
function inTurn(name, work) {
  const turn = (turns.get(name) ?? Promise.resolve()).then(work);
  const over = turn.then(
    () => {},
    () => {},
  );
  turns.set(name, over);
  over.then(() => {
    if (turns.get(name) === over) turns.delete(name);
  });
  return turn;
}

/** @param {number} seconds @returns {Promise<void>} */
const sleep = (seconds) =>
  new Promise((done) => {
    setTimeout(done, 1000 * seconds);
  });

// -- storage.js -------------------------------------------------------------------------------------------------------
// Where a browser remembers what was sent.

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

const UNSENT = "Nothing was sent: without a memory, answering again would send another report and tell more.";

/** The browser's memory; null where there is none, or the browser refuses it. @returns {ReportStorage | null} */
function deviceStorage() {
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

// -- memory.js --------------------------------------------------------------------------------------------------------
// What a client remembers on its device.


const ADVICE =
  "Let the browser store this site's data, or give a `storage`; in Node, one from FileStorage.open(folder).";

/** A storage whose failures are errors of ours, which do not quote what was to be written. */
class Memory {
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

// -- records.js -------------------------------------------------------------------------------------------------------
// What a device remembers of a submission.


/**
 * Exactly what leaves the device: `report` has as many hexadecimal digits for everybody with this form.
 *
 * @typedef {{ readonly report_id: string, readonly form: string, readonly report: string }} Leaving
 */

/**
 * A submission as it is stored: with the curator's origin and the LDP level, which count against the limit. `removed` says that the
 * curator has confirmed the withdrawal.
 *
 * @typedef {Leaving & {
 *   readonly origin: string, readonly ldp: string, readonly delivered: boolean,
 *   readonly withdrawn?: true, readonly removed?: true,
 * }} Remembered
 */

const UNREADABLE = "what was remembered cannot be read; clear it to answer again";

/**
 * A record that cannot be read is an error: a second answer could reveal more than one submission does.
 *
 * @param {string} text
 * @returns {Remembered}
 */
function readRecord(text) {
  const record = parseJson(text);
  const level = record?.ldp === "inf" ? Infinity : Number(record?.ldp);
  const texts = ["report_id", "form", "report", "origin", "ldp"].every((name) => typeof record?.[name] === "string");
  need(texts && level >= 0, "storage", UNREADABLE);
  return Object.freeze(record);
}

/** The submission exactly as it is sent. @param {Leaving} record @returns {Leaving} */
const wireReport = ({ report_id, form, report }) => Object.freeze({ report_id, form, report });

/** The part of each slot that a submission is about. @param {Campaign} campaign @param {Leaving} record */
function drawOf({ forms }, { form: id, report }) {
  const reports = Object.values(forms)
    .find((form) => form.id === id)
    ?.unpack(report);
  need(reports, "storage", UNREADABLE);
  return reports.map(({ at }) => at);
}

/**
 * How much of a device's limit a form uses: its LDP level, which is infinite for a plan for a latent secret.
 *
 * @param {Form} form
 */
const ldpCost = ({ parts, levels }) =>
  parts.some(({ plan }) => plan.protects === "secret") ? Infinity : levels.ldp;

/**
 * Answers by question; of a campaign with one question the answer may stand alone.
 *
 * @param {Campaign} campaign
 * @param {Answers | Answer} given
 * @returns {Answers}
 */
function answersBy({ questions }, given) {
  const byName = given !== null && typeof given === "object" && !Array.isArray(given) && !(given instanceof Set);
  return byName || questions.length > 1
    ? /** @type {Answers} */ (given)
    : { [questions[0].name]: /** @type {Answer} */ (given) };
}

/** @param {string} id */
const keyOf = (id) => `priorveil:${id}`;
const ANSWERED = /^priorveil:[0-9a-f]{64}$/; // the keys of submissions

// -- transport.js -----------------------------------------------------------------------------------------------------
// Requests to a curator, which are tried again while it is busy or the network fails.


const ATTEMPTS = 5;
const FIRST_WAIT = 0.5; // seconds; each later wait is twice as long
const LONGEST_WAIT = 30;
const BUSY = new Set([408, 425, 429, 500, 502, 503, 504, 507]);
const LONGEST_TIMER = 2 ** 31 - 1; // milliseconds; longer ones ring at once
const LARGEST_CAMPAIGN = 64 << 20; // bytes
const LARGEST_RECEIPT = 64 << 10;

/**
 * The answer to a request. Its text is read only where the status is 200, and is null where it is too long.
 *
 * @typedef {{ status: number | string, kind: string, retryAfter: string, text: string | null }} Reply
 */

/** Sends requests with a timeout in seconds, and waits between attempts. */
class Transport {
  #fetch;
  #wait;
  #timeout;

  /** @param {typeof globalThis.fetch} fetch @param {(seconds: number) => Promise<unknown>} wait @param {number} timeout */
  constructor(fetch, wait, timeout) {
    this.#fetch = fetch;
    this.#wait = wait;
    this.#timeout = timeout;
  }

  /** The text of the campaign at an address. @param {string} url */
  async download(url) {
    const reply = await this.#send(url, LARGEST_CAMPAIGN, { headers: { accept: "application/json" } });
    /** @param {string} why */
    const refuse = (why) => new ReportRefused(why, undefined, "campaign");
    if (reply.status !== 200 || !reply.kind.startsWith("application/json"))
      throw refuse(`there is no campaign at this address (${reply.status})`);
    if (reply.text === null)
      throw refuse(`the campaign at this address cannot be read: it is longer than ${LARGEST_CAMPAIGN} bytes`);
    return reply.text;
  }

  /**
   * What the curator answers to a document that is posted to it; an empty object if that is not JSON.
   *
   * @param {string} url
   * @param {Json} document
   * @returns {Promise<Json>}
   */
  async post(url, document) {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify(document);
    const reply = await this.#send(url, LARGEST_RECEIPT, {
      method: "POST",
      headers,
      body,
      referrerPolicy: "no-referrer",
    });
    if (reply.status !== 200) throw new ReportRefused(`the curator answered ${reply.status}`);
    return (reply.text === null ? null : parseJson(reply.text)) ?? {};
  }

  /** @param {string} url @param {number} limit @param {RequestInit} request */
  async #send(url, limit, request) {
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.#sendOnce(url, limit, request);
      if (reply !== null && !BUSY.has(Number(reply.status))) return reply;
      if (attempt === ATTEMPTS) {
        throw new NotSent(reply === null ? "the curator cannot be reached" : `the curator is busy (${reply.status})`);
      }
      const asked = Number(reply?.retryAfter) || 0;
      const pause = FIRST_WAIT * 2 ** (attempt - 1) * (0.5 + Math.random() / 2); // not all devices at once
      await this.#wait(Math.min(LONGEST_WAIT, Math.max(asked, pause)));
    }
  }

  /**
   * One reply, with a text of at most `limit` bytes; null where the connection fails or breaks off. No redirect is followed: a
   * report is for the curator that the address names.
   *
   * @param {string} url
   * @param {number} limit
   * @param {RequestInit} request
   * @returns {Promise<Reply | null>}
   */
  async #sendOnce(url, limit, request) {
    const signal = AbortSignal.timeout(Math.min(1000 * this.#timeout, LONGEST_TIMER));
    const headers = { ...request.headers, "accept-encoding": "identity" }; // Node asks so; browsers choose themselves
    try {
      const response = await this.#fetch(url, { ...request, headers, credentials: "omit", redirect: "manual", signal });
      const status = response.status || "with a redirect"; // browsers do not tell which
      const [kind, retryAfter] = ["content-type", "retry-after"].map((name) => response.headers.get(name) ?? "");
      if (status !== 200) await response.body?.cancel();
      return { status, kind, retryAfter, text: status === 200 ? await readText(response, limit) : null };
    } catch {
      // Another attempt would take as long.
      if (signal.aborted) throw new NotSent(`the curator did not answer within ${this.#timeout} seconds`);
      return null;
    }
  }
}

/**
 * The body of a response; null if it is longer than `limit` bytes, of which the rest is not read, or unpacked.
 *
 * @param {Response} response
 * @param {number} limit
 */
async function readText(response, limit) {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  for (;;) {
    const read = await reader?.read();
    if (reader === undefined || read === undefined || read.done) return text + decoder.decode();
    size += read.value.length;
    if (size > limit) {
      await reader.cancel();
      return null;
    }
    text += decoder.decode(read.value, { stream: true });
  }
}

// -- client.js --------------------------------------------------------------------------------------------------------
// The client of one campaign.


const LONGEST_REQUEST = 120; // seconds, to the last byte of the answer
const LONGEST_REASON = 80;
const FOREIGN = "the response did not come from a curator"; // a hotel's sign-in page, say

/** The LDP level that all answers of a device to one curator may reach together, unless it is told otherwise. */
export const DEFAULT_LIMIT = 10;

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
export class Client {
  /** @type {Campaign | undefined} */
  #campaign;
  #memory;
  #transport;
  #limit;
  #code;
  #codeIsFree = false;

  /** @param {string | URL} url @param {ClientOptions} [options] */
  constructor(url, options = {}) {
    const { fetch = globalThis.fetch, storage = deviceStorage(), wait = sleep, timeout = LONGEST_REQUEST } = options;
    const [address, fragment = ""] = String(url).split("#");
    const code = options.code ?? new URLSearchParams(fragment).get("code");
    need(code === null || isCode(code), "code", "should be the 32 hexadecimal digits of an invitation");
    this.#code = code;
    need(typeof timeout === "number" && timeout > 0, "timeout", "should be a number of seconds, above zero");
    const { limit = DEFAULT_LIMIT } = options;
    need(typeof limit === "number" && limit > 0, "limit", "should be a number above zero");
    this.#limit = limit;
    // The page that people answer on stands for its campaign.
    this.url = address.replace(/\/+$/, "").replace(/\/answer\/([0-9a-f]{64})([/?].*)?$/, "/v1/campaigns/$1");
    this.#memory = new Memory(storage);
    this.#transport = new Transport((...request) => fetch(...request), wait, timeout);
  }

  /** The campaign, fetched once and checked: also that it is the one named by the address. */
  async campaign() {
    if (this.#campaign === undefined) {
      const id = this.url.match(/\/([0-9a-f]{64})$/)?.[1];
      need(id, "url", "should be a campaign's address, which ends in its id of 64 hexadecimal digits");
      this.#campaign = await readCampaign(await this.#transport.download(this.url), { id });
    }
    return this.#campaign;
  }

  /** Whether a first answer can be sent: the campaign needs no invitation, or the code of this client can still be used. */
  async invited() {
    const { admission } = await this.campaign();
    if (admission === "open" || this.#codeIsFree) return true;
    if (this.#code === null) return false;
    const { free } = await this.#ask("invitation", { code: this.#code });
    if (typeof free !== "boolean") throw new NotSent(FOREIGN);
    this.#codeIsFree = free;
    return free;
  }

  /** What is remembered: the submission in the form in which it leaves, and whether it was delivered; or null. */
  async remembered() {
    const { id, forms } = await this.campaign();
    const text = await this.#memory.get(keyOf(id));
    if (text === null) return null;
    const record = readRecord(text);
    const form = Object.values(forms).find((f) => f.id === record.form);
    need(form?.accepts(record.report), "storage", UNREADABLE);
    return record;
  }

  /**
   * For each slot of the cohort's form the position of the part that this device is asked about: drawn once for all cohorts, and
   * remembered before it is returned. Raises `BudgetExceeded` if answering would pass the limit of the device or the campaign.
   *
   * @param {string} [cohort]
   * @returns {Promise<number[]>}
   */
  async begin(cohort) {
    const campaign = await this.campaign();
    const form = campaign.formFor(cohort);
    const sent = await this.remembered();
    if (sent !== null) return drawOf(campaign, sent);
    await this.#checkLimit(campaign, form);
    if (!form.slots.some((slot) => slot.drawn)) return form.draw();
    const key = `priorveil:draw:${campaign.id}`;
    return inTurn(key, async () => {
      if ((await this.#memory.get(key)) === null) await this.#memory.add(key, JSON.stringify(campaign.drawForms()));
      const draw = parseJson((await this.#memory.get(key)) ?? "null")?.[form.id];
      need(form.fitsDraw(draw), "storage", UNREADABLE);
      return draw;
    });
  }

  /** Raise `BudgetExceeded` if the limit of the device or the campaign allows no answer, whatever the cohort. Draws nothing. */
  async checkLimit() {
    const campaign = await this.campaign();
    const checks = campaign.cohorts.map((cohort) => this.#checkLimit(campaign, campaign.formFor(cohort)));
    await Promise.any(checks).catch(({ errors }) => Promise.reject(errors[0]));
  }

  /**
   * Check these answers and the limit, as `answer` does. No report is drawn: that is done when it is sent.
   *
   * @param {Answers | Answer} answers
   * @param {string} [cohort]
   */
  async prepare(answers, cohort) {
    if ((await this.remembered()) === null) await this.#valuesToReport(answers, cohort);
  }

  /**
   * Perturb the answers here, remember the submission, and send it; the receipt says whether it is a replay. `answers` has an
   * answer for each question, by its name; of a campaign with one question it may be the answer itself.
   *
   * @param {Answers | Answer} answers
   * @param {string} [cohort]
   * @returns {Promise<{ report: Leaving, replayed: boolean }>}
   */
  async answer(answers, cohort) {
    const campaign = await this.campaign();
    return inTurn(keyOf(campaign.id), async () => {
      const before = await this.remembered();
      if (before?.withdrawn) throw new ReportRefused("withdrawn");
      if (before === null && !(await this.invited())) throw new ReportRefused("no invitation");
      const { kept, replayed } =
        before === null ? await this.#storeFirst(answers, cohort) : { kept: before, replayed: true };
      await this.#deliverOnce(kept);
      return { report: wireReport(kept), replayed };
    });
  }

  /** Send the remembered report, if there is one and it was not delivered; true if nothing is left to send. */
  async deliver() {
    const { id } = await this.campaign();
    return inTurn(keyOf(id), async () => {
      const known = await this.remembered();
      if (known?.withdrawn) throw new ReportRefused("withdrawn");
      if (known !== null) await this.#deliverOnce(known);
      return known !== null;
    });
  }

  /**
   * Remove the report of an earlier answer from the curator; true if it was there. It stays remembered and is never sent again:
   * as `withdrawn` before the curator is asked, and as `removed` when it has confirmed that. Once results are published the
   * curator removes no report: then it throws ReportRefused, and nothing changes.
   */
  async withdraw() {
    const { id } = await this.campaign();
    return inTurn(keyOf(id), async () => {
      const known = await this.remembered();
      need(known !== null, "storage", "there is no answer to withdraw");
      await this.#note(known, { withdrawn: true });
      return this.#remove(known);
    });
  }

  /**
   * Ask the curator to remove a report that is remembered as withdrawn; true if it was there.
   *
   * @param {Remembered} known
   * @returns {Promise<boolean>}
   */
  async #remove(known) {
    const { removed } = await this.#ask("withdrawals", { report_ids: [known.report_id] }).catch(async (error) => {
      if (error instanceof ReportRefused) await this.#note(known, { withdrawn: known.withdrawn }); // the curator keeps the report
      throw error;
    });
    if (typeof removed !== "number") throw new NotSent(FOREIGN);
    try {
      await this.#note(known, { removed: true });
    } catch {
      // It is removed, and still remembered as withdrawn: all that can follow is the same request again.
    }
    return removed > 0;
  }

  /**
   * A level for each attribute that a report is drawn about, and the draw.
   *
   * @param {Answers | Answer} given
   * @param {string} [cohort]
   */
  async #valuesToReport(given, cohort) {
    const campaign = await this.campaign();
    const draw = await this.begin(cohort);
    const answers = answersBy(campaign, given);
    campaign.checkAnswers(answers);
    return { draw, values: campaign.attributeValues(answers, campaign.questionsToAsk(cohort, draw)) };
  }

  /**
   * Raise `BudgetExceeded` if this form and all that was answered to this curator before pass the limit.
   *
   * @param {Campaign} campaign
   * @param {Form} form
   */
  async #checkLimit({ id, limit }, form) {
    const { origin } = new URL(this.url);
    const keys = (await this.#memory.keys()).filter((key) => ANSWERED.test(key) && key !== keyOf(id));
    const records = [];
    for (const key of keys) {
      const text = await this.#memory.get(key);
      if (text !== null) records.push(readRecord(text));
    }
    const spent = records.filter((record) => record.origin === origin).map(({ ldp }) => real(ldp, "storage"));
    const level = spent.reduce((total, earlier) => total + earlier, ldpCost(form));
    const most = Math.min(this.#limit, limit ?? Infinity);
    // A level without bound is its device's only answer to a curator, whatever the limit.
    if (level === Infinity ? spent.length > 0 : level > most) throw new BudgetExceeded(level, most);
  }

  /**
   * Draw a first submission and remember it. What the storage then holds is the answer: that of another tab, if it came first.
   *
   * @param {Answers | Answer} answers
   * @param {string} [cohort]
   */
  async #storeFirst(answers, cohort) {
    const campaign = await this.campaign();
    const { draw, values } = await this.#valuesToReport(answers, cohort);
    const form = campaign.formFor(cohort);
    const report_id = freshId();
    const drawn = { report_id, form: form.id, report: form.privatize(values, draw) };
    const level = { origin: new URL(this.url).origin, ldp: numberText(ldpCost(form)) };
    const text = JSON.stringify({ ...drawn, ...level, delivered: false });
    await this.#memory.exclusively(async () => {
      await this.#checkLimit(campaign, form); // another tab may have answered another campaign meanwhile
      if ((await this.remembered()) === null) await this.#memory.add(keyOf(campaign.id), text);
    });
    const kept = await this.remembered();
    need(kept !== null, "storage", `what was written is not there. ${UNSENT}`);
    return { kept, replayed: kept.report_id !== report_id };
  }

  /**
   * Remember changes of a submission as it is remembered now: another tab may have withdrawn or delivered it meanwhile.
   *
   * @param {Remembered} known
   * @param {Partial<Remembered>} changes
   * @returns {Promise<Remembered>}
   */
  async #note(known, changes) {
    const { id } = await this.campaign();
    return this.#memory.exclusively(async () => {
      const now = { ...known, ...(await this.remembered()), ...changes };
      await this.#memory.set(keyOf(id), JSON.stringify(now));
      return now;
    });
  }

  /** @param {Remembered} known */
  async #deliverOnce(known) {
    if (known.delivered) return;
    await this.#send(wireReport(known));
    let now = known;
    try {
      now = await this.#note(known, { delivered: true, removed: undefined });
    } catch {
      // It has arrived and is still remembered: all that can follow is the same report again, which is not counted.
    }
    if (!now.withdrawn) return;
    await this.#remove(known); // the withdrawal may have arrived before the report
    throw new ReportRefused("withdrawn");
  }

  /** @param {Leaving} report */
  async #send(report) {
    const { admission } = await this.campaign();
    const needsCode = admission === "invitation" && this.#code !== null;
    const receipt = await this.#ask("reports", needsCode ? { ...report, code: this.#code } : report);
    const refusals = Array.isArray(receipt?.refused) ? receipt.refused : null;
    if (receipt?.accepted === 1 && refusals?.length === 0) return;
    const reason = refusals?.length === 1 ? refusals[0]?.reason : undefined;
    if (typeof reason !== "string") throw new NotSent(FOREIGN);
    throw new ReportRefused(
      printable(reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON)}...`),
    );
  }

  /** What the curator answers to a document that is posted to it. @param {string} path @param {Json} document */
  #ask(path, document) {
    return this.#transport.post(`${this.url}/${path}`, document);
  }
}

/** @param {unknown} code */
const isCode = (code) => typeof code === "string" && /^[0-9a-f]{32}$/i.test(code);

// -- file_storage.js --------------------------------------------------------------------------------------------------
// Where Node remembers what was sent.


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

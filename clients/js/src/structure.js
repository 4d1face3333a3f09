// The structure of documents: which fields there are, and how they are written. What they state is proven elsewhere.

import { DEFINITIONS } from "./definitions.js";
import { canonical, deepFreeze, parseDocument } from "./documents.js";
import { PriorveilError, need } from "./errors.js";
/** @import { Json, JsonDocument } from "./documents.js" */

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
export function readDocument(given, name) {
  const document = deepFreeze(parseDocument(given));
  const { format, version } = DEFINITIONS[name].properties;
  const [noun, supported] = [format.enum[0].replace("priorveil-", ""), version.enum[0]];
  need(format.enum.includes(document.format), "format", `not a ${noun}`);
  need(document.version === supported, "version", `not known here; this client reads ${supported}`);
  check(DEFINITIONS[name], document, "");
  return document;
}

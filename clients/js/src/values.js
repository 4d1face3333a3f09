// Values: which texts and numbers are the same one. docs/values.md has the rule as a table.

import { need } from "./errors.js";

export const BLANKS = /^[ \t\r\n]+|[ \t\r\n]+$/g;
const NUMBER = /^([+-]?)(?:([0-9]{1,40})(?:\.([0-9]{0,40}))?|\.([0-9]{1,40}))(?:e([+-]?[0-9]{1,3}))?$/i;

// A comma before exactly three digits may be a decimal mark or stand between thousands, except after a zero.
const DECIMAL_COMMA = /^([+-]?(?:[0-9]*(?=,(?![0-9]{3}(?![0-9])))|0*)),([0-9]+(?:e[+-]?[0-9]+)?)$/i;

export const SEPARATED = /^[+-]?[0-9]+(?:[.,'’ \u00a0\u202f\u066c_][0-9]+)+$/;
export const AMBIGUOUS = "an ambiguous number: write 1234.5 or 1234,5, without separators of thousands";
export const LARGEST_NUMBER = 1e100;

/**
 * What decides which label a value is: the same text for equal values; null if it is missing, undefined if it is no label.
 *
 * @param {unknown} value
 * @returns {string | null | undefined}
 */
export function valueKey(value) {
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
export function withDecimalPoints(value) {
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
export function truthKey(key) {
  const word = key.toLowerCase();
  if (word === "text true" || key === "number 1e0") return "truth true";
  return word === "text false" || key === "number 0" ? "truth false" : undefined;
}

// What fields of documents state, beyond their structure.

import { need } from "./errors.js";

/**
 * Refuse an object that has not exactly these fields.
 *
 * @param {object} object
 * @param {readonly string[]} names
 * @param {string} field
 */
export function checkFields(object, names, field) {
  for (const name of names) need(Object.hasOwn(object, name), `${field}.${name}`, "is missing");
  for (const name of Object.keys(object)) need(names.includes(name), `${field}.${name}`, "is not known here");
}

/** A real number from its text, which has one spelling only. @param {string} text @param {string} field */
export function real(text, field) {
  const value = text === "inf" ? Infinity : Number(text);
  need(!Number.isNaN(value) && numberText(value) === text, field, "should be a number, as Python spells it");
  return value;
}

/** @param {string} text @param {string} field */
export function notNegative(text, field) {
  const value = real(text, field);
  need(value >= 0, field, "should be a number, zero or more");
  return value;
}

/** The shortest text that reads back to the same float, as Python writes it. @param {number} value */
export function numberText(value) {
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
export function checkTexts(texts, field, languages, empty = false) {
  if (empty && Object.keys(texts).length === 0) return;
  checkFields(texts, languages, field);
  for (const language of languages) checkText(texts[language], field);
}

/** @param {string} text @param {string} field */
export function checkText(text, field) {
  need(/[^\s\x1c-\x1f\x85]/.test(text), field, "should not be empty");
}

/** A time, in the one spelling it has, or null. @param {string | null} text @param {string} field */
export function checkTime(text, field) {
  if (text === null) return;
  const time = new Date(text);
  const same = !Number.isNaN(time.valueOf()) && time.toISOString() === text.replace("Z", ".000Z");
  need(same, field, "times should look like 2026-01-31T12:00:00Z");
}

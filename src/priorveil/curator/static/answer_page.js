// The pieces of the respondent's page: one heading, content, and texts in the language that the person picked.

import { el } from "/static/dom.js";
import { OWN_LANGUAGES, bestLanguage, markLanguage, offerLanguages, speakOnPage, speaker } from "/static/language.js";
/** @import { Texts } from "/static/priorveil.js" */

/** @param {string} selector @returns {HTMLElement} */
const place = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));

const main = place("main");
const heading = place("h1");
const progress = place("#progress");
const stage = place("#stage");
const news = place("#news");
const languages = /** @type {HTMLSelectElement} */ (place("#language"));

/** Speaks the language of the page. */
export let speak = speaker("en");

/** From the list, by the person; it stays while more languages are offered. @type {string | null} */
let pickedLanguage = null;

/** The languages of the campaign; null until it is there. @type {readonly string[] | null} */
let offered = null;

let step = () => {}; // draws the present step again, in another language
let spoken = () => {}; // says again what is not part of a step

/** Draw one step, and put the focus on its heading, so that a screen reader begins there. @param {() => void} draw */
export function show(draw) {
  step = draw;
  draw();
  heading.focus();
  window.scrollTo(0, 0);
}

/** Put a heading and content on the page; `title` is a text or an element. @param {string | Node} title @param {any[]} content */
export function put(title, ...content) {
  heading.replaceChildren(title);
  progress.hidden = true;
  stage.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  news.textContent = "";
}

/** Say how many of the questions are answered. @param {number} at @param {number} of */
export function showProgress(at, of) {
  const text = say("progress", { at: speak.number(at + 1), of: speak.number(of) });
  progress.replaceChildren(el("span", {}, text), el("progress", { value: at, max: of, "aria-hidden": "true" }));
  progress.hidden = false;
}

/** Say something to a screen reader that stays where it is. @param {string} text */
export function announce(text) {
  news.textContent = text;
}

/** @param {string} key @param {Record<string, any>} [values] @returns {string} */
export const say = (key, values) => speak.say(key, values);

/** @param {string} key @param {Record<string, any>} [values] @returns {any[]} */
export const phrase = (key, values) => speak.phrase(key, values);

/** @param {string} key @param {Record<string, any>} [values] */
export const paragraph = (key, values) => el("p", {}, ...phrase(key, values));

/** @param {string} key @param {Record<string, any>} [values] */
export const quiet = (key, values) => el("p", { class: "quiet" }, ...phrase(key, values));

/** @param {any[]} buttons */
export const actions = (...buttons) => el("div", { class: "actions" }, ...buttons);

/** @param {any[]} text */
export const warning = (...text) => el("p", { class: "warning", role: "alert" }, ...text);

/** @param {any} title @param {any[]} content */
export const fold = (title, ...content) => el("details", {}, el("summary", {}, title), ...content);

/** @param {any} name @param {any[]} content */
export const line = (name, ...content) => el("div", {}, el("dt", {}, name), el("dd", {}, ...content));

/** @param {string} key */
export const submit = (key) => el("button", { type: "submit" }, say(key));

/** @param {string} text @param {() => void} onclick @param {Record<string, string>} [attributes] */
export const plainButton = (text, onclick, attributes = {}) =>
  el("button", { type: "button", class: "plain", onclick, ...attributes }, text);

// -- what is wrong with an answer ------------------------------------------------------------------------------------

/** @param {string} name */
export const problemPlace = (name) => el("p", { class: "problem", id: `${name}-problem`, role: "alert" });

/**
 * Say what is wrong beside the field, and go there: a long list must not leave the words out of view.
 *
 * @param {HTMLElement} target
 * @param {string} name
 * @param {string} text
 */
export function complain(target, name, text) {
  const problem = place(`#${name}-problem`);
  problem.textContent = text;
  target.setAttribute("aria-invalid", "true");
  target.focus({ preventScroll: true });
  problem.scrollIntoView({ block: "center" });
}

export function clearComplaint() {
  for (const problem of document.querySelectorAll(".problem")) problem.textContent = "";
  for (const target of document.querySelectorAll("[aria-invalid]")) target.removeAttribute("aria-invalid");
}

// -- languages -------------------------------------------------------------------------------------------------------

/** The language of the campaign's own texts. @returns {string} */
const campaignLanguage = () => bestLanguage([languages.value, speak.language], offered ?? []) ?? offered?.[0] ?? "en";

/** @param {string} text */
export const inCampaignLanguage = (text) => markLanguage(campaignLanguage(), text);

/** One of the campaign's texts, marked with its language; empty if it was not given. @param {Texts} texts */
export const own = (texts) => (hasText(texts) ? inCampaignLanguage(ownText(texts)) : "");

/** @param {Texts} texts */
export const ownText = (texts) => texts[campaignLanguage()] ?? "";

/** @param {Texts} texts */
export const hasText = (texts) => Object.keys(texts).length > 0;

/**
 * Offer languages, and speak the one that the person picked, or that fits the person best; `sayAgain` says what is not part of a step.
 *
 * @param {readonly string[] | null} tags those of the campaign; null until it is there
 * @param {() => void} sayAgain
 */
export function chooseLanguage(tags, sayAgain) {
  [offered, spoken] = [tags, sayAgain];
  const wanted = [pickedLanguage ?? [], navigator.languages].flat();
  useLanguage(offerLanguages(languages, offered ?? OWN_LANGUAGES, wanted));
}

/** @param {string} tag */
function useLanguage(tag) {
  speak = speakOnPage(tag);
  spoken();
}

languages.addEventListener("change", () => {
  pickedLanguage = languages.value;
  useLanguage(pickedLanguage);
  step();
});

// The language of a page: which one, its direction, its texts, and how it writes numbers and dates.

import { el } from "/static/dom.js";

const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur", "ps", "sd", "ug", "yi", "dv", "ckb"]);
const FALLBACK = "en"; // the language that has every text
/** The texts of Python and of the pages by language and key. All languages are loaded at once: which one is read stays here.
 * @type {Record<string, Record<string, string>>} */
const TEXTS = await (await fetch("/static/texts.json")).json();
const RANGE = /^\[(.+), (.+)[\])]$/; // the label of a range of numbers
const LARGE = 1e6; // factors from here on are written with a power of ten

/** The language of a tag without its region: `pt` of `pt-BR`. @param {string} tag */
const base = (tag) => tag.toLowerCase().split("-")[0];

/**
 * The first wanted tag that is offered, as it is or with another region; undefined if none is.
 *
 * @param {readonly string[]} wanted
 * @param {readonly string[]} offered
 */
export function bestLanguage(wanted, offered) {
  for (const tag of wanted) {
    const same = offered.find((other) => other.toLowerCase() === tag.toLowerCase());
    const related = same ?? offered.find((other) => base(other) === base(tag));
    if (related !== undefined) return related;
  }
  return undefined;
}

export const direction = (tag) => (RIGHT_TO_LEFT.has(base(tag)) ? "rtl" : "ltr");

/** The name of a language in that language. */
function nameOfLanguage(tag) {
  const name = new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}

/** The languages of the pages' own texts. */
export const OWN_LANGUAGES = Object.keys(TEXTS);

/**
 * Fill a list with languages; the tag of the one that is chosen, the first wanted one that is offered.
 *
 * @param {HTMLSelectElement} list
 * @param {readonly string[]} offered
 * @param {readonly string[]} wanted
 */
export function offerLanguages(list, offered, wanted) {
  const chosen = bestLanguage(wanted, offered) ?? offered[0];
  const option = (tag) =>
    el("option", { value: tag, lang: tag, dir: direction(tag), selected: tag === chosen }, nameOfLanguage(tag));
  list.replaceChildren(...offered.map(option));
  const label = list.closest("label");
  if (label !== null) label.hidden = offered.length === 1;
  return chosen;
}

/** The speaker of a language, which the page is then in. */
export function speakOnPage(tag) {
  const speak = speaker(tag, navigator.languages);
  document.documentElement.lang = speak.language;
  document.documentElement.dir = speak.direction;
  const name = /** @type {HTMLElement} */ (document.querySelector("#language-name"));
  name.textContent = speak.say("language");
  return speak;
}

/** A text, marked with its language. That may be wrong: what begins from right to left is written so. */
export const markLanguage = (tag, text) =>
  el("bdi", { lang: tag, dir: direction(tag) === "rtl" ? "rtl" : "auto" }, text);

/**
 * Texts, numbers and dates in one language. `regions` are the tags that the browser prefers: numbers are written as in the
 * person's own region of the language.
 *
 * @param {string} language
 * @param {readonly string[]} [regions]
 */
export function speaker(language, regions = []) {
  const own = bestLanguage([language], OWN_LANGUAGES) ?? FALLBACK;
  const texts = { ...TEXTS[FALLBACK], ...TEXTS[own] }; // what only statisticians see is in English
  const locale = regions.find((tag) => base(tag) === base(own)) ?? own;
  /** Rounded as Python rounds, so that a page and a printed table show the same figure. */
  const number = (value, options = {}) => value.toLocaleString(locale, { roundingMode: "halfEven", ...options });

  /** The parts of a text, with `{name}` replaced by what `values` has for it: texts and elements. */
  const phrase = (/** @type {string} */ key, /** @type {Record<string, any>} */ values = {}) =>
    (texts[key] ?? TEXTS[FALLBACK][key])
      .split(/(\{\w+\})/)
      .map((piece) => (piece.startsWith("{") ? values[piece.slice(1, -1)] : piece));

  const say = (/** @type {string} */ key, /** @type {Record<string, any>} */ values = {}) =>
    phrase(key, values).join("");
  const exact = (value) => number(value, { maximumFractionDigits: 20 });

  return Object.freeze({
    language: own,
    direction: direction(own),
    phrase,
    /** Whether a text is in this language; otherwise it is in English, and has to be marked so. */
    has: (/** @type {string} */ key) => key in texts,
    say,
    number,
    exact,
    /** A range from its label, such as [0, 5); null if the label is none. */
    range(label) {
      const ends = RANGE.exec(label);
      return ends && say("between", { from: exact(Number(ends[1])), to: exact(Number(ends[2])) });
    },
    isOne: (count) => new Intl.PluralRules(locale).select(count) === "one",

    percent: (share) => number(share, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 }),
    moment: (date) => date.toLocaleString(locale, { dateStyle: "long", timeStyle: "short" }),

    /** A privacy level with three decimals, rounded up as in Python: a promise must not look smaller than it is. */
    level: (level) => number(Math.ceil(1000 * level - 1e-6) / 1000, { maximumFractionDigits: 3 }),

    /** A factor, rounded up. */
    factor(level) {
      const value = Math.exp(level);
      if (value >= LARGE)
        return number(value, { notation: "scientific", maximumFractionDigits: 1, roundingMode: "ceil" });
      const scale = value < 100 ? 100 : 1;
      return number(Math.ceil(value * scale) / scale, { maximumFractionDigits: 2 });
    },
  });
}

// The language of a page: which one, its direction, its texts, and how it writes numbers and dates.

import { el } from "/static/dom.js";
import { TEXTS } from "/static/texts.js";

const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur", "ps", "sd", "ug", "yi", "dv", "ckb"]);
const FALLBACK = "en";
const LARGE = 1e6; // factors from here on are written with a power of ten

/** The language of a tag without its region: `pt` of `pt-BR`. */
const base = (tag) => tag.toLowerCase().split("-")[0];

/** The first wanted tag that is offered, as it is or with another region; undefined if none is. */
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

/** Fill a list with languages; the tag of the one that is chosen, the first wanted one that is offered. */
export function offerLanguages(list, offered, wanted) {
  const chosen = bestLanguage(wanted, offered) ?? offered[0];
  const option = (tag) => el("option", { value: tag, lang: tag, dir: direction(tag), selected: tag === chosen }, nameOfLanguage(tag));
  list.replaceChildren(...offered.map(option));
  list.parentElement.hidden = offered.length === 1; // its label
  return chosen;
}

/** The speaker of a language, which the page is then in. */
export function speakOnPage(tag) {
  const speak = speaker(tag, navigator.languages);
  document.documentElement.lang = speak.language;
  document.documentElement.dir = speak.direction;
  document.querySelector("#language-name").textContent = speak.say("language");
  return speak;
}

/** A text, marked with its language. That may be wrong: what begins from right to left is written so. */
export const markLanguage = (tag, text) => el("bdi", { lang: tag, dir: direction(tag) === "rtl" ? "rtl" : "auto" }, text);

/**
 * Texts, numbers and dates in one language. `regions` are the tags that the browser prefers: numbers are written as in the
 * person's own region of the language.
 */
export function speaker(language, regions = []) {
  const own = bestLanguage([language], OWN_LANGUAGES) ?? FALLBACK;
  const texts = TEXTS[own];
  const locale = regions.find((tag) => base(tag) === base(own)) ?? own;
  const number = (value, options = {}) => value.toLocaleString(locale, options);

  /** The parts of a text, with `{name}` replaced by what `values` has for it: texts and elements. */
  const phrase = (key, values = {}) =>
    texts[key].split(/(\{\w+\})/).map((piece) => (piece.startsWith("{") ? values[piece.slice(1, -1)] : piece));

  return Object.freeze({
    language: own,
    direction: direction(own),
    phrase,
    say: (key, values) => phrase(key, values).join(""),
    number,
    exact: (value) => number(value, { maximumFractionDigits: 20 }),
    isOne: (count) => new Intl.PluralRules(locale).select(count) === "one",

    /** A number with as many decimals as an English text of it, and in percent if that is. */
    like(value, text) {
      if (value === null) return "–";
      const places = (/\.(\d+)/.exec(text)?.[1] ?? "").length;
      const style = text.endsWith("%") ? "percent" : "decimal";
      return number(value, { style, minimumFractionDigits: places, maximumFractionDigits: places });
    },

    percent: (share) => number(share, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 }),
    moment: (date) => date.toLocaleString(locale, { dateStyle: "long", timeStyle: "short" }),

    /** A privacy level with three decimals, rounded up as in Python: a promise must not look smaller than it is. */
    level: (level) => number(Math.ceil(1000 * level - 1e-6) / 1000, { maximumFractionDigits: 3 }),

    /** A factor, rounded up. */
    factor(level) {
      const value = Math.exp(level);
      if (value >= LARGE) return number(value, { notation: "scientific", maximumFractionDigits: 1, roundingMode: "ceil" });
      const scale = value < 100 ? 100 : 1;
      return number(Math.ceil(value * scale) / scale, { maximumFractionDigits: 2 });
    },
  });
}

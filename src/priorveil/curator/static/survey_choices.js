// Questions with options, while a survey is written: yes or no, one choice, tick all that apply.

import { el } from "/static/dom.js";
import { newKey } from "/static/form_keys.js";
import { OWN_LANGUAGES, bestLanguage, speaker } from "/static/language.js";
import { percentOf, shareOf, totalText } from "/static/survey_shares.js";
/** @import { SurveyForm } from "/static/survey_form.js" */

const REFUSAL = "no_answer"; // the code of the option not to say
const YES_NO = { yes: "yesOption", no: "noOption" }; // the keys of the texts, by code

export const newOption = (code = "", text = {}, share = "") => ({ key: newKey(), code, text, share });

/** A text of the catalogue in a language of the survey; empty if the catalogue lacks the language. */
const wordIn = (tag, key) => (bestLanguage([tag], OWN_LANGUAGES) === undefined ? "" : speaker(tag).say(key));
const inAll = (languages, key) => Object.fromEntries(languages.map((tag) => [tag, wordIn(tag, key)]));

const shortForm = (text = "") =>
  text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .slice(0, 30);

/** One choice of the options that are written. */
class Choice {
  title = "One choice";
  isGate = true; // other questions may depend on it
  joins = true; // it may be designed together with others
  countsPeople = true; // people in a table may be counted by it
  statistic = { query: "shares", words: "answers to" };

  // -- its document ----------------------------------------------------------------------------------------------------

  /** What a new question has for it. @returns {object} */
  blank() {
    return { options: [newOption(), newOption()] };
  }

  /** The options with their codes: those that were typed, or short forms of the texts. */
  options(question, languages) {
    const codes = new Set();
    return question.options.map((option, place) => {
      const base = option.code.trim() || shortForm(option.text[languages[0]]) || `option_${place + 1}`;
      let code = base;
      for (let number = 2; !option.code.trim() && codes.has(code); number += 1) code = `${base}_${number}`;
      codes.add(code);
      return { option, code };
    });
  }

  /** What people read for an option. */
  optionText(question, option, languages) {
    return option.text[languages[0]]?.trim() || `Option ${question.options.indexOf(option) + 1}`;
  }

  /**
   * What its document has beside the keys of every question; `allOf` gives a text in all languages.
   *
   * @returns {object}
   */
  document(question, languages, allOf) {
    const options = this.options(question, languages);
    return { options: Object.fromEntries(options.map(({ option, code }) => [code, allOf(option.text)])) };
  }

  read(question, { options }) {
    question.options = Object.entries(options).map(([code, text]) => newOption(code, { ...text }));
  }

  /** Make its options ones that can be written. */
  writeOptions(_question, _languages) {}

  /** What to learn about it, if there is a choice. */
  query() {
    return null;
  }

  canBeAskedAbout() {
    return true;
  }

  shares(question, languages) {
    const given = this.options(question, languages).filter(({ option }) => option.share !== "");
    return Object.fromEntries(given.map(({ option, code }) => [code, shareOf(option.share)]));
  }

  readShares(question, prior, languages) {
    for (const { option, code } of this.options(question, languages))
      if (code in prior) option.share = percentOf(prior[code]);
  }

  /** An entry of a table; `known` gives the code of an option. */
  entry(text, known) {
    return text === "" ? "" : known(text);
  }

  // -- its part of the form --------------------------------------------------------------------------------------------

  /** @param {SurveyForm} form @returns {Element} */
  fields(form, question, number) {
    const { key } = question;
    const first = form.draft.languages[0];
    const add = () => {
      const option = newOption();
      question.options.push(option);
      form.draw(`${option.key}-${first}`);
    };
    const remove = (option) => {
      question.options = question.options.filter((other) => other !== option);
      form.draw(`${key}-add`);
    };
    const row = (option, i) => {
      const label = `Remove option ${i + 1} of ${number}`;
      const isLast = question.options.length <= 1;
      return el(
        "div",
        { class: "option" },
        el("div", {}, form.texts(option.key, `Option ${i + 1}`, option, "text")),
        form.button(`${option.key}-remove`, "Remove", label, () => remove(option), isLast),
      );
    };
    const hasRefusal = question.options.some(({ code }) => code === REFUSAL);
    return el(
      "fieldset",
      { id: `${key}-options`, "aria-label": `Options of ${number}` },
      ...question.options.map(row),
      el(
        "div",
        { class: "actions tight" },
        form.button(`${key}-add`, "Add an option", `Add an option to ${number}`, add),
        !hasRefusal && refusalButton(form, question, number),
      ),
    );
  }

  /** Its fields among those that are rarely needed: the codes of the options. @param {SurveyForm} form */
  moreFields(form, question) {
    return this.options(question, form.draft.languages).map(({ option, code }, i) =>
      form.textField(`${option.key}-code`, `Code of option ${i + 1}`, option, "code", {
        class: "medium",
        placeholder: code,
        spellcheck: "false",
      }),
    );
  }

  /** A field for the share of each option, made by `percent`. @param {SurveyForm} form */
  shareFields(form, question, percent) {
    const { languages } = form.draft;
    return this.options(question, languages).map(({ option }) => {
      const text = el("bdi", {}, this.optionText(question, option, languages));
      return percent(`${option.key}-share`, [text, " (%)"], option);
    });
  }

  /** Where shares are typed. */
  shareOwners(question) {
    return question.options;
  }

  /** What the total of the shares says. */
  totalText(total) {
    return totalText(total);
  }
}

/** Any number of the options that are written. */
class Choices extends Choice {
  title = "Tick all that apply";
  isGate = false;
  joins = false;

  /** Codes of ticked options, with blanks or commas between them. */
  entry(text, known) {
    return text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map(known)
      .join(" ");
  }

  totalText() {
    return "The share of people who tick each option. They need not add up to 100 %.";
  }
}

/** Yes or no, in words of the curator. */
class YesNo extends Choice {
  title = "Yes or no";

  blank() {
    return { yesNo: Object.keys(YES_NO).map((code) => newOption(code)) };
  }

  options(question) {
    return question.yesNo.map((option) => ({ option, code: option.code }));
  }

  optionText(_question, option, [language]) {
    return wordIn(language, YES_NO[option.code]) || option.code;
  }

  document() {
    return {};
  }

  read() {} // its options are known

  fields(form, question, number) {
    return el("div", { class: "actions tight" }, refusalButton(form, question, number));
  }

  moreFields() {
    return [];
  }

  shareOwners(question) {
    return question.yesNo;
  }

  writeOptions(question, languages) {
    question.kind = "choice";
    question.options = question.yesNo.map((option) => ({ ...option, text: inAll(languages, YES_NO[option.code]) }));
    Object.assign(question, this.blank());
  }
}

/** Adds the option not to say. @param {SurveyForm} form */
function refusalButton(form, question, number) {
  const { languages } = form.draft;
  const add = () => {
    CHOICES[question.kind].writeOptions(question, languages);
    question.options.push(newOption(REFUSAL, inAll(languages, "refusalOption")));
    form.draw(`${question.key}-add`);
  };
  return form.button(`${question.key}-refusal`, "Add “prefer not to say”", `Add “prefer not to say” to ${number}`, add);
}

export const CHOICES = { "yes-no": new YesNo(), choice: new Choice(), choices: new Choices() };

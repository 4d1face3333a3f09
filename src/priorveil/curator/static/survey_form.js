// The form that a survey is written in. It changes the draft while somebody types, and is drawn again when its shape changes.

import { el } from "/static/dom.js";
import { direction } from "/static/language.js";
import { gateOf, groupOf } from "/static/survey_draft.js";
import { groupsPart } from "/static/survey_groups.js";
import { optionsOf } from "/static/survey_kinds.js";
import { questionsPart } from "/static/survey_questions.js";
import { aboutPart, nameOfLanguage, protectionPart, timesPart } from "/static/survey_settings.js";

/** The form of a draft; `element` is what the page shows, and `changed` is called after every change. */
export class SurveyForm {
  #changed;
  /** What is wrong with which field. @type {{ id: string, text: string } | null} */
  #problem = null;

  constructor(draft, changed) {
    this.draft = draft;
    this.element = el("div", { class: "survey" });
    this.#changed = changed;
    this.#fill();
  }

  /** Draw everything again; the focus stays where it is, or goes to `focus`. */
  draw(focus = document.activeElement?.id) {
    this.#fill();
    this.#showProblem();
    if (focus) document.getElementById(focus)?.focus();
    this.#changed();
  }

  #fill() {
    const parts = [aboutPart, questionsPart, groupsPart, protectionPart, timesPart].map((part) => part(this));
    this.element.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  }

  groupOf(question) {
    return groupOf(this.draft, question);
  }

  /** Whether a question is only asked after certain answers. */
  isConditional(question) {
    return gateOf(this.draft, question) !== undefined;
  }

  // -- pieces ----------------------------------------------------------------------------------------------------------

  /** The value of a field has changed. */
  changed(id) {
    this.#forgive(id);
    this.#changed();
  }

  /** An input that writes into `owner[name]`. */
  input(id, owner, name, attributes = {}) {
    const take = (event) => {
      owner[name] = event.target.value;
      this.changed(id);
    };
    const value = owner[name] ?? "";
    return el("input", { type: "text", autocomplete: "off", ...attributes, id, value, oninput: take, onchange: take });
  }

  field(words, control, hint = "") {
    return [
      el("label", { class: "field" }, words, control),
      hint !== "" && el("p", { class: "hint quiet", id: `${control.id}-hint` }, hint),
    ];
  }

  textField(id, words, owner, name, attributes = {}, hint = "") {
    return this.field(words, this.input(id, owner, name, attributes), hint);
  }

  numberField(id, words, owner, name, attributes = {}, hint = "") {
    const number = { type: "number", step: "any", class: "short" };
    return this.textField(id, words, owner, name, { ...number, ...attributes }, hint);
  }

  /** A text in every language. */
  texts(id, words, owner, name, hint = "") {
    const { languages } = this.draft;
    return languages.map((tag, i) => {
      const named = languages.length > 1 ? `${words} (${nameOfLanguage(tag)})` : words;
      const control = this.input(`${id}-${tag}`, owner[name], tag, { lang: tag, dir: direction(tag) });
      return this.field(named, control, i === languages.length - 1 ? hint : "");
    });
  }

  select(id, words, options, current, change, hint = "") {
    const onchange = (event) => {
      change(event.target.value);
      this.#forgive(id);
      this.draw();
    };
    const listed = options.map(([value, text]) => el("option", { value, selected: value === current }, text));
    return this.field(words, el("select", { id, onchange }, ...listed), hint);
  }

  /** A box to tick, or a button of a group that has a `name`. */
  check(id, words, checked, onchange, attributes = {}) {
    const box = el("input", { type: "checkbox", ...attributes, id, checked, onchange });
    return el("label", { class: "check" }, box, words);
  }

  button(id, words, label, onclick, disabled = false) {
    return el("button", { type: "button", class: "plain small", id, "aria-label": label, onclick, disabled }, words);
  }

  /** A fold-out that stays as it is on the page when the form is drawn again. (An event of its opening comes too late.) */
  fold(id, title, ...content) {
    const before = document.getElementById(id);
    const open = before instanceof HTMLDetailsElement && before.open;
    return el("details", { id, open }, el("summary", {}, title), ...content);
  }

  // -- what is wrong ---------------------------------------------------------------------------------------------------

  /** Show what is wrong with the field that these keys of the document lead to. */
  focusField(keys, text) {
    const id = this.#fieldIds(keys).find((each) => document.getElementById(each)) ?? "";
    this.#problem = id ? { id, text } : null;
    this.draw();
    const control = document.getElementById(id);
    const inside = control?.matches("fieldset") ? control.querySelector("input:checked, input, select") : null;
    /** @type {HTMLElement | null} */ (inside ?? control)?.focus();
  }

  /** Show what is wrong with a field. */
  complain(id, text) {
    this.#problem = { id, text };
    this.draw(id);
  }

  clearProblem() {
    this.#problem = null;
    this.draw();
  }

  /** The ids of the fields that keys of the document lead to, the nearest first. */
  #fieldIds([first, number, name, ...rest]) {
    const { questions, groups, languages } = this.draft;
    const [language] = languages;
    const owner = first === "question" ? questions[number] : first === "together" ? groups[number] : null;
    if (!owner) {
      const plain = [first, number].filter((part) => part !== undefined).join("-");
      return [plain, `${first}-${language}`, "add-question"];
    }
    const { key } = owner;
    const texts = (id, tag) => [`${id}-${tag}`, `${id}-${language}`];
    if (name === "options" && rest.length > 0) {
      const found = optionsOf(owner, languages).find(({ code }) => code === rest[0]);
      if (found) return [...texts(found.option.key, rest[1]), `${key}-options`];
    }
    return [...texts(`${key}-${name}`, rest[0]), `${key}-${name}`, `${key}-title`];
  }

  #showProblem() {
    const control = document.getElementById(this.#problem?.id ?? "");
    if (this.#problem === null || control === null) return;
    const text = el("p", { class: "problem", id: `${this.#problem.id}-problem` }, this.#problem.text);
    if (control.matches("fieldset")) (control.querySelector("legend") ?? control).after(text);
    else (control.closest("label") ?? control.closest(".card-head") ?? control).after(text);
    if (control.matches("input, select")) control.setAttribute("aria-invalid", "true");
    const described = [control.getAttribute("aria-describedby"), text.id].filter(Boolean).join(" ");
    control.setAttribute("aria-describedby", described);
    for (let above = control.closest("details"); above; above = above.parentElement?.closest("details") ?? null)
      above.open = true;
  }

  /** Take a complaint away once its field is changed. */
  #forgive(id) {
    if (this.#problem?.id !== id) return;
    document.getElementById(`${id}-problem`)?.remove();
    document.getElementById(id)?.removeAttribute("aria-invalid");
    this.#problem = null;
  }
}

// The page of a new survey: write it in a form or choose a file, check what it promises, look at it, and create the campaign.

import { JSON_TYPE, keep, usesOf } from "/static/campaign_uses.js";
import { Refused, Unreachable, isAdmin } from "/static/curator.js";
import { el, pageHead, number as readable } from "/static/dom.js";
import { readCampaign } from "/static/priorveil.js";
import { SurveyDesigner } from "/static/survey_designer.js";
import { newDraft, toDocument, toDraft } from "/static/survey_draft.js";
import { SurveyForm } from "/static/survey_form.js";
import { capital, checkParts, summary } from "/static/survey_check.js";

/** @typedef {{ message: string, problem: { keys?: (string | number)[], advice?: string } }} Mistake */

const USUAL_PEOPLE = "300"; // who will answer, if nothing else is said
/** @type {Record<string, string>} */
const TYPES = {
  toml: "application/toml",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  json: JSON_TYPE,
};

// What is written stays in this tab while other pages of the dashboard are open.
let draft = newDraft();
let people = USUAL_PEOPLE;
let saved = textOf(draft); // as it is in a file, or as it began

/** @param {any} some */
function textOf(some) {
  return JSON.stringify(toDocument(some));
}

addEventListener("beforeunload", (event) => {
  if (textOf(draft) !== saved) event.preventDefault();
});

/**
 * The page; `showErrors` runs what may fail, `say` tells a screen reader.
 *
 * @param {(act: () => any) => void} showErrors
 * @param {(text: string) => void} say
 */
export async function newSurvey(showErrors, say) {
  const head = pageHead("New survey");
  if (!(await isAdmin())) return [...head, el("p", { class: "warning" }, "This needs a token with the role admin.")];
  return [...head, ...new NewSurvey(showErrors, say).parts];
}

class NewSurvey {
  /** The file that is checked in place of the form. @type {{ name: string, check: () => any } | null} */
  #chosen = null;
  /** What was checked: the text of the draft, or null if it was a file. @type {string | null} */
  #checked = null;
  #showErrors;
  #say;
  #designer;

  #results = el("div", { id: "checked" });
  #problem = el("p", { class: "warning", role: "alert", id: "refused", hidden: true });
  #place = el("div", {}); // of the form
  #check = el("button", { type: "submit", id: "check" }, "Check");
  #save = el(
    "button",
    { type: "button", class: "plain", id: "save", onclick: () => this.#keepDraft() },
    "Save the survey as a file",
  );
  #files = el("input", {
    type: "file",
    id: "file",
    accept: ".toml,.xlsx,.json",
    "aria-describedby": "file-hint",
    onclick: ({ target }) => {
      target.value = ""; // the same file may be chosen again, after a change
    },
    onchange: ({ target }) => target.files[0] && this.#showErrors(() => this.#load(target.files[0])),
  });
  #fileName = el("bdi", {});
  #source = el(
    "div",
    { id: "chosen", hidden: true },
    el(
      "p",
      {},
      "Chosen file: ",
      el("strong", {}, this.#fileName),
      ". It is checked as it was when you chose it: choose it again after a change.",
    ),
    el(
      "div",
      { class: "actions tight" },
      el(
        "button",
        { type: "button", class: "plain", id: "back", onclick: () => this.#backToForm() },
        "Back to the form",
      ),
    ),
  );

  /** @param {(act: () => any) => void} showErrors @param {(text: string) => void} say */
  constructor(showErrors, say) {
    this.#showErrors = showErrors;
    this.#say = say;
    this.#designer = new SurveyDesigner(this.#check, say);
    this.form = this.#newForm();
    addEventListener("hashchange", () => this.#designer.cancel(), { once: true }); // nobody waits for it any more
  }

  /** What the page shows. */
  get parts() {
    return [
      el(
        "p",
        {},
        "Write the survey here, check its promise and its precision, preview the page that people see, and create the campaign.",
      ),
      this.#filePart(),
      this.#formPart(),
      this.#designer.element,
      this.#problem,
      this.#results,
    ];
  }

  #filePart() {
    return el(
      "details",
      { id: "files" },
      el("summary", {}, "I have a file already"),
      el("label", { class: "field" }, "File", this.#files),
      el(
        "p",
        { class: "quiet", id: "file-hint" },
        "A survey in TOML, an XLSForm (.xlsx), a survey that was saved here, or a campaign built by ",
        el("code", {}, "priorveil campaign build"),
        ". The curator receives the whole file, so leave out sheets with a row for each person.",
      ),
    );
  }

  #formPart() {
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#showErrors(async () => (this.#chosen === null ? this.#checkDraft() : this.#chosen.check()));
    };
    const count = el("input", {
      type: "number",
      id: "people",
      class: "short",
      min: "1",
      step: "1",
      value: people,
      placeholder: USUAL_PEOPLE,
      oninput: ({ target }) => {
        people = target.value;
      },
    });
    return el(
      "form",
      // The curator says what is wrong, in one place for all ways to write a survey.
      { novalidate: true, autocomplete: "off", onsubmit },
      this.#source,
      this.#place,
      el("h2", {}, "Check"),
      el("label", { class: "field" }, "How many people will answer?", count),
      el("div", { class: "actions" }, this.#check, this.#save),
    );
  }

  #newForm() {
    const form = new SurveyForm(draft, () => {
      this.#complain("");
      this.#markStale();
    });
    this.#place.replaceChildren(form.element);
    return form;
  }

  #complain(/** @type {string} */ text) {
    this.#problem.textContent = text;
    this.#problem.hidden = text === "";
  }

  // -- checking --------------------------------------------------------------------------------------------------------

  /**
   * Design a survey, and show what it promises.
   *
   * @param {BodyInit} body
   * @param {string} type
   * @param {(mistake: any) => void} showPlace shows a mistake where it belongs
   * @param {string | null} [draftText] null for a file
   */
  async #design(body, type, showPlace, draftText = null) {
    this.#complain("");
    this.#results.replaceChildren();
    try {
      const answer = await this.#designer.design(body, type, people || USUAL_PEOPLE);
      if (answer === null) return;
      this.#checked = draftText;
      this.#showReport(answer);
    } catch (error) {
      if (error instanceof Unreachable) return this.#complain(`${error.message} Nothing is lost.`);
      if (!(error instanceof Refused)) throw error;
      showPlace(error);
    }
  }

  #checkDraft() {
    this.form.clearProblem();
    const lists = { question: draft.questions, together: draft.groups };
    for (const [name, owners] of Object.entries(lists)) {
      const missing = owners.findIndex(({ prior, table }) => prior === "table" && table === null);
      const message = "Choose a table, or say that you do not know.";
      if (missing >= 0) return this.#showAtField({ message, problem: { keys: [name, missing, "table"] } });
    }
    const text = textOf(draft);
    return this.#design(text, JSON_TYPE, (mistake) => this.#showAtField(mistake), text);
  }

  #showAtField(/** @type {Mistake} */ { message, problem: { keys = [], advice = message } }) {
    const [list, number] = keys;
    const inList = typeof number === "number";
    const place = inList ? `${capital(String(list))} ${number + 1}: ` : "";
    const named = `${keys.slice(inList ? 2 : 0).join(" ")}: `; // the field itself shows which one it is
    const text = capital(advice.startsWith(named) ? advice.slice(named.length) : advice);
    if (keys.length > 0) this.form.focusField(keys, text);
    this.#complain(`${place}${inList ? advice : text}`);
  }

  #showReport(/** @type {any} */ answer) {
    const parts = checkParts(answer, JSON.parse(answer.campaign), this.#chosen?.name);
    this.#showCampaign(parts, answer.campaign);
    this.#say("The survey is checked.");
    this.#markStale(); // it may have changed while it was designed
  }

  /** Show a campaign that can be created; `text` is its document. @param {Element[]} parts @param {string} text */
  #showCampaign(parts, text) {
    const created = () => {
      if (this.#checked !== textOf(draft)) return;
      draft = newDraft();
      saved = textOf(draft);
    };
    const complain = (/** @type {string} */ words) => this.#complain(words);
    this.#results.replaceChildren(...parts, ...usesOf(text, { complain, showErrors: this.#showErrors, created }));
    this.#results.querySelector("h2")?.focus();
  }

  /** What was checked is not what is in the form any more. */
  #markStale() {
    const note = this.#results.querySelector("p#stale");
    if (!(note instanceof HTMLElement) || this.#checked === null) return;
    note.hidden = this.#checked === textOf(draft);
    for (const each of this.#results.querySelectorAll("button")) each.disabled = !note.hidden;
  }

  // -- files -----------------------------------------------------------------------------------------------------------

  async #load(/** @type {File} */ file) {
    this.#complain("");
    const { name } = file;
    const kind = name.toLowerCase().split(".").at(-1) ?? "";
    if (!Object.hasOwn(TYPES, kind))
      return this.#complain(`${name} was not accepted. Choose a file whose name ends in .toml, .xlsx or .json.`);
    const content = await file.arrayBuffer(); // a file that changes later cannot be read again
    const text = kind === "json" ? new TextDecoder().decode(content) : "";
    const document = parseOrNull(text);
    const isCampaign = document?.format === "priorveil-campaign";
    const read = kind !== "json" || isCampaign ? null : toDraft(document);
    if (read === null) {
      const showInFile = ({ message }) => this.#complain(`${name} was not accepted. ${message}`);
      const design = () => this.#design(content, TYPES[kind], showInFile);
      const check = isCampaign ? () => this.#showFinished(text, document) : design;
      this.#choose({ name, check });
      return check();
    }
    draft = read;
    saved = textOf(draft);
    this.#choose(null);
    this.form = this.#newForm();
    return this.#say("The survey was loaded into the form.");
  }

  /** Check this file from now on, in place of the form; null for the form. @param {{ name: string, check: () => any } | null} file */
  #choose(file) {
    this.#designer.cancel();
    this.#chosen = file;
    this.#complain("");
    this.#results.replaceChildren();
    this.#place.hidden = this.#save.hidden = file !== null;
    this.#source.hidden = file === null;
    this.#fileName.textContent = file?.name ?? "";
  }

  #backToForm() {
    this.#choose(null);
    this.#files.value = "";
    this.#place.querySelector("input")?.focus();
    this.#say("The form is checked, not the file.");
  }

  /** A campaign that was built elsewhere: it is designed already, and the curator proves its certificates again. */
  async #showFinished(/** @type {string} */ text, /** @type {any} */ document) {
    const read = await readCampaign(text).catch(() => null); // the curator says what is wrong with it
    const most = (/** @type {"lip" | "ldp"} */ name) =>
      readable(Math.max(...Object.values(read?.promise ?? {}).map((levels) => levels[name])));
    this.#checked = null;
    const level = read && `LIP ${most("lip")}, LDP ${most("ldp")}`;
    const parts = [
      el("h2", { tabindex: "-1" }, "A finished campaign"),
      summary(document, level, this.#chosen?.name),
      el("p", {}, "The curator proves its certificates again."),
    ];
    this.#showCampaign(parts, text);
  }

  #keepDraft() {
    keep("survey.json", `${JSON.stringify(toDocument(draft), null, 2)}\n`);
    saved = textOf(draft);
    this.#say("The survey is saved.");
  }
}

/** @param {string} text */
function parseOrNull(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // the curator says what is wrong with it
  }
}

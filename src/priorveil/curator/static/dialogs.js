// Dialogs: a question before something is done, and what is shown only once.

import { SignedOut } from "/static/curator.js";
import { el } from "/static/dom.js";
/** @typedef {(work: () => unknown) => void} ShowErrors Runs something, and shows the error that it raises. */

/**
 * A question before something is done. `field` has the attributes and the label of something to type in; `check` says whether that can
 * be taken, and `otherwise` what is wrong with it. `run` may return what comes after the dialog.
 *
 * @typedef {object} Question
 * @property {string} title
 * @property {string} text
 * @property {string} yes
 * @property {string} no
 * @property {(given: string) => unknown} run
 * @property {{ label: string, [attribute: string]: any }} [field]
 * @property {(given: string) => boolean} [check]
 * @property {string} [otherwise]
 */

/**
 * Open a dialog; `closed` is called after it is closed.
 *
 * @param {string} title
 * @param {any[]} content
 * @param {() => void} [closed]
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, content, closed = () => {}) {
  const dialog = el(
    "dialog",
    {
      "aria-labelledby": "dialog-title",
      onclose: () => {
        dialog.remove();
        closed();
      },
    },
    el("h2", { id: "dialog-title" }, title),
    ...content,
  );
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A button that closes the dialog that it is in. @param {string} text @param {Record<string, any>} [attributes] */
export const closeButton = (text, attributes = {}) =>
  el(
    "button",
    { type: "button", ...attributes, onclick: (/** @type {any} */ { target }) => target.closest("dialog").close() },
    text,
  );

/**
 * A button that asks first.
 *
 * @param {string} id
 * @param {string} text
 * @param {Question} question
 * @param {ShowErrors} showErrors
 */
export const confirmButton = (id, text, question, showErrors) =>
  el("button", { type: "button", class: "plain", id, onclick: () => askFirst(question, showErrors) }, text);

/**
 * Ask before something is done, and say in the same place why it is refused.
 *
 * @param {Question} question
 * @param {ShowErrors} showErrors
 */
export function askFirst({ title, text, field, check = () => true, otherwise = "", yes, no, run }, showErrors) {
  const { label, ...attributes } = field ?? { label: "" };
  const input = field && el("input", { ...attributes, autocomplete: "off", spellcheck: "false", required: true });
  const problem = el("p", { class: "warning", role: "alert", hidden: true });
  /** @param {string} why */
  const refuse = (why) => {
    problem.textContent = why;
    problem.hidden = false;
  };
  const confirm = async () => {
    const given = input?.value.trim() ?? "";
    if (input && !check(given)) return refuse(otherwise);
    /** @type {any} */
    let afterwards;
    button.disabled = true; // a second click must not do it twice
    try {
      afterwards = await run(given);
    } catch (error) {
      button.disabled = false;
      if (!(error instanceof SignedOut)) return refuse(error.message);
      dialog.close();
      throw error;
    }
    dialog.close();
    return afterwards?.();
  };
  const button = el("button", { type: "button", onclick: () => showErrors(confirm) }, yes);
  const dialog = openDialog(title, [
    el("p", {}, text),
    input && el("label", { class: "field" }, label, input),
    problem,
    el("div", { class: "actions" }, button, closeButton(no, { class: "plain", autofocus: true })),
  ]);
}

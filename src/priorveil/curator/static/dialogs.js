// Dialogs: a question before something is done, and what is shown only once.

import { SignedOut } from "/static/curator.js";
import { el } from "/static/dom.js";

/** Open a dialog; `closed` is called after it is closed. */
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

/** A button that closes the dialog that it is in. */
export const closeButton = (text, attributes = {}) =>
  el("button", { type: "button", ...attributes, onclick: ({ target }) => target.closest("dialog").close() }, text);

/** A button that asks first. */
export const confirmButton = (id, text, question, showErrors) =>
  el("button", { type: "button", class: "plain", id, onclick: () => askFirst(question, showErrors) }, text);

/** Ask before something is done, and say in the same place why it is refused. `run` may return what comes afterwards. */
export function askFirst({ title, text, field = null, check, otherwise, yes, no, run }, showErrors) {
  const { label, ...attributes } = field ?? {};
  const input = field && el("input", { ...attributes, autocomplete: "off", spellcheck: "false", required: true });
  const problem = el("p", { class: "warning", role: "alert", hidden: true });
  const refuse = (why) => {
    problem.textContent = why;
    problem.hidden = false;
  };
  const confirm = async () => {
    const given = input?.value.trim();
    if (input && !check(given)) return refuse(otherwise);
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

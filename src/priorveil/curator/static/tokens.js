// The tokens: who may sign in, a new one, and revoking one.

import { ask, read, send } from "/static/curator.js";
import { askFirst, closeButton, confirmButton, openDialog } from "/static/dialogs.js";
import { day, el, pageHead, scrolling } from "/static/dom.js";
/** @import { ShowErrors } from "/static/dialogs.js" */

/** @typedef {{ name: string, role: string, expires: string | null }} Token */

const ROLES = {
  analyst: "analyst: stored results, no reports and no changes",
  collect: "collect: sends reports of many people at once",
  admin: "admin: everything",
};

/** The page of all tokens; `changed` draws it again. @param {ShowErrors} showErrors @param {() => void} changed */
export async function tokenPage(showErrors, changed) {
  const { tokens } = await read("/tokens");
  return [
    ...pageHead("Tokens"),
    el("p", {}, "Anyone who has a token can do what its role allows. The curator stores only its hash."),
    scrolling(
      "Tokens",
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el("tr", {}, ...["Name", "Role", "Ends", "Revoke"].map((name) => el("th", { scope: "col" }, name))),
        ),
        el("tbody", {}, ...tokens.map((/** @type {Token} */ token) => row(token, showErrors, changed))),
      ),
    ),
    creation(showErrors, changed),
  ];
}

/** @param {Token} token @param {ShowErrors} showErrors @param {() => void} changed */
function row({ name, role, expires }, showErrors, changed) {
  const question = {
    title: `Revoke the token ${name}?`,
    text: "It stops working at once. This cannot be undone; a new token can have the same name.",
    yes: "Revoke it",
    no: "Keep it",
    run: () => ask(`/tokens/${encodeURIComponent(name)}`, { method: "DELETE" }).then(() => changed),
  };
  const button = confirmButton(`revoke-${name}`, "Revoke…", question, showErrors);
  button.setAttribute("aria-label", `Revoke ${name}…`);
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("bdi", {}, name)),
    el("td", {}, role),
    el("td", {}, expires ? day(expires, "UTC") : "never"),
    el("td", {}, button),
  );
}

/** @param {ShowErrors} showErrors @param {() => void} changed */
function creation(showErrors, changed) {
  const attributes = { autocomplete: "off", spellcheck: "false", required: true };
  const name = el("input", { type: "text", name: "name", ...attributes });
  const role = el(
    "select",
    { name: "role" },
    ...Object.entries(ROLES).map(([value, text]) => el("option", { value }, text)),
  );
  const ends = el("input", { type: "date", name: "expires" });
  const question = () => ({
    title: `Make the token ${name.value.trim()}?`,
    text: `Its role is ${role.value}. Its secret is shown once.`,
    yes: "Make it",
    no: "Make none",
    run: async () => {
      const expires = ends.value ? `${ends.value}T00:00:00Z` : null;
      const body = JSON.stringify({ name: name.value.trim(), role: role.value, expires });
      const { secret } = await send("/tokens", body);
      return () => showSecret(name.value.trim(), secret, changed);
    },
  });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    askFirst(question(), showErrors);
  };
  return [
    el("h2", {}, "New token"),
    el(
      "form",
      { onsubmit },
      el("label", { class: "field" }, "Name", name),
      el("label", { class: "field" }, "Role", role),
      el("label", { class: "field" }, "Expires at the beginning of this day, in UTC (leave empty for never)", ends),
      el("button", { type: "submit" }, "Make this token…"),
    ),
  ];
}

/**
 * The secret of a new token, until the dialog is closed.
 *
 * @param {string} name
 * @param {string} secret
 * @param {() => void} changed
 */
function showSecret(name, secret, changed) {
  const content = [
    el("p", {}, "It is shown only here. Give it to its holder in a safe way."),
    el(
      "label",
      { class: "field" },
      "Token",
      el("input", { type: "text", readonly: true, value: secret, spellcheck: "false" }),
    ),
    el("div", { class: "actions" }, closeButton("Done")),
  ];
  openDialog(`The token ${name}`, content, changed);
}

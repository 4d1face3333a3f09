// What can be done with a campaign that is not stored yet: look at its page, keep it as a file, create it.

import { SignedOut, send } from "/static/curator.js";
import { el, saveFile } from "/static/dom.js";

const PREVIEW = "priorveil-preview"; // in sessionStorage: the document that the answer page shows with #preview
export const JSON_TYPE = "application/json";

/** @param {string} name @param {string} text */
export const keep = (name, text) => saveFile(name, new Blob([text], { type: JSON_TYPE }));

/**
 * @param {string} text the campaign's document
 * @param {{ complain: (text: string) => void, showErrors: (act: () => Promise<void>) => void, created: () => void }} page
 */
export function usesOf(text, { complain, showErrors, created }) {
  const { id } = JSON.parse(text);
  const preview = () => {
    try {
      sessionStorage.setItem(PREVIEW, text);
    } catch {
      return complain(
        "This campaign is too large for a preview in this browser. Create it, and add #preview to its link.",
      );
    }
    // Another tab of the same origin gets a copy of what is stored; no other page can store anything there.
    return open(`/answer/${id}#preview`, "_blank");
  };
  const create = async () => {
    made.disabled = true;
    try {
      await send("/campaigns", text);
    } catch (error) {
      made.disabled = false;
      if (error instanceof SignedOut) throw error;
      return complain(`The campaign was not created. ${error.message}`);
    }
    created();
    location.hash = id;
  };
  const made = el("button", { type: "button", id: "create", onclick: () => showErrors(create) }, "Create campaign");
  /** @param {string} name @param {string} words @param {() => void} onclick */
  const plain = (name, words, onclick) => el("button", { type: "button", class: "plain", id: name, onclick }, words);
  return [
    el("p", { id: "stale", class: "warning", hidden: true }, "You have changed the survey since. Check it again."),
    el(
      "div",
      { class: "actions", id: "uses" },
      made,
      plain("preview", "Preview in a new tab", preview),
      plain("keep", "Save the campaign as a file", () => keep("campaign.json", text)),
    ),
    el(
      "p",
      { class: "quiet" },
      "The preview draws, remembers and sends nothing. After a campaign is created nobody can change a word of it.",
    ),
  ];
}

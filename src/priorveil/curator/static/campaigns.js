// The list of campaigns, a new one from its file, the link that people are given, and the end of a campaign.

import { read, remove, send } from "/static/curator.js";
import { el } from "/static/dom.js";

/** The page of all campaigns, newest first; `showErrors` runs what may fail, `say` tells a screen reader. */
export async function campaignList(showErrors, say) {
  const { campaigns } = await read("");
  return [
    el("h1", { tabindex: "-1" }, "Campaigns"),
    campaigns.length > 0
      ? el("ul", { class: "campaigns" }, ...campaigns.toReversed().map((campaign) => entry(campaign, say)))
      : el("p", {}, "There is no campaign yet."),
    creation(showErrors),
  ];
}

function entry({ id, question, state, cohorts }, say) {
  return el(
    "li",
    {},
    el("a", { class: "name", href: `#${id}`, dir: "auto" }, question),
    el(
      "p",
      { class: "quiet" },
      badge(state),
      cohorts.length > 1 && ` ${cohorts.length} cohorts ·`,
      ` id ${id.slice(0, 12)}`,
    ),
    el(
      "div",
      { class: "links" },
      el("a", { href: `/answer/${id}`, "aria-label": `Answer page of: ${question}` }, "Answer page"),
      copier(id, `Copy link of: ${question}`, say),
    ),
  );
}

/** The state of a campaign, in words and in colour. */
export const badge = (state) => el("span", { class: `badge ${state === "open" ? "on" : "off"}` }, state);

const address = (id) => `${location.origin}/answer/${id}`;

/** A button that copies the link for people; none where the browser does not let pages copy. */
function copier(id, label, say) {
  if (!navigator.clipboard) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address(id));
      say("The link is copied.");
      button.textContent = "Copied";
    } catch {
      say("The browser did not let this page copy.");
      button.textContent = "Not copied";
    }
    setTimeout(() => (button.textContent = "Copy link"), 2500);
  };
  const button = el(
    "button",
    { type: "button", class: "plain", id: `copy-${id}`, "aria-label": label, onclick: copy },
    "Copy link",
  );
  return button;
}

/** The link that people are given, and who may answer. */
export function sharing(id, { state, admission }, say) {
  return [
    el("h2", {}, "Share"),
    el(
      "p",
      {},
      state === "closed" ? "It was answered at " : "People answer at ",
      el("a", { href: `/answer/${id}` }, address(id)),
    ),
    el("p", { id: "admission" }, admission),
    state !== "closed" && el("div", { class: "actions" }, copier(id, "Copy link for people", say)),
  ];
}

// -- a new campaign ------------------------------------------------------------------------------------------------

function creation(showErrors) {
  const file = el("input", {
    type: "file",
    name: "campaign",
    accept: ".json,application/json",
    required: true,
    "aria-describedby": "made",
  });
  const problem = el("p", { class: "warning", role: "alert", hidden: true });
  const create = async () => {
    problem.hidden = true;
    try {
      const { id } = await send("", await file.files[0].text());
      location.hash = id;
    } catch (error) {
      if (error.constructor !== Error) throw error;
      problem.textContent = `This file was not accepted. ${error.message}`;
      problem.hidden = false;
    }
  };
  return [
    el("h2", {}, "New campaign"),
    el(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          showErrors(create);
        },
      },
      el("label", { class: "field" }, "Campaign file", file),
      el(
        "p",
        { class: "quiet", id: "made" },
        "A file made by ",
        el("code", {}, "priorveil campaign"),
        ", or in Python by ",
        el("code", {}, "priorveil.collect.campaign.ask(…).to_json()"),
        ". The curator proves its certificates again.",
      ),
      problem,
      el("button", { type: "submit" }, "Create campaign"),
    ),
  ];
}

// -- the end of a campaign -----------------------------------------------------------------------------------------

const DIGITS = 6; // of the id, which are typed before a campaign is deleted

/** Buttons that close, reopen or delete a campaign, once that is confirmed; `changed` and `deleted` are called when it is done. */
export function ending(id, state, showErrors, changed, deleted) {
  const closed = state === "closed";
  const button = (name, text, question) =>
    el("button", { type: "button", class: "plain", id: name, onclick: () => ask(question, showErrors) }, text);
  const closing = {
    title: "Close this campaign?",
    text: "People who answer from now on are turned away. It can be reopened until its own end.",
    yes: "Close it",
    no: "Keep it open",
    run: () => send(`/${id}/close`).then(changed),
  };
  const reopening = {
    title: "Reopen this campaign?",
    text: "People can answer again. A campaign whose own end has passed stays closed.",
    yes: "Reopen it",
    no: "Keep it closed",
    run: () => send(`/${id}/reopen`).then(changed),
  };
  const deletion = {
    title: "Delete this campaign?",
    text: "All its reports and results are deleted. This cannot be undone, and the same campaign cannot be created again.",
    typed: id.slice(0, DIGITS),
    yes: "Delete for good",
    no: "Keep it",
    run: () => remove(`/${id}`).then(deleted),
  };
  return [
    el("h2", {}, "End"),
    el("p", {}, "A closed campaign takes no more reports. Its estimates stay until it is deleted."),
    el(
      "div",
      { class: "actions" },
      closed ? button("reopen", "Reopen this campaign…", reopening) : button("close", "Close this campaign…", closing),
      button("delete", "Delete this campaign…", deletion),
    ),
  ];
}

/** Ask before something is done, and say in the same place why the curator refused it. */
function ask({ title, text, typed = null, yes, no, run }, showErrors) {
  const field =
    typed !== null && el("input", { type: "text", name: "digits", autocomplete: "off", spellcheck: "false", required: true });
  const problem = el("p", { class: "warning", role: "alert", hidden: true });
  const refuse = (why) => {
    problem.textContent = why;
    problem.hidden = false;
  };
  const confirm = async () => {
    if (field && field.value.trim().toLowerCase() !== typed) return refuse("These are not the first digits of its id.");
    try {
      await run();
    } catch (error) {
      if (error.constructor === Error) return refuse(error.message);
      dialog.close();
      throw error;
    }
    return dialog.close();
  };
  const dialog = el(
    "dialog",
    { "aria-labelledby": "sure", onclose: () => dialog.remove() },
    el("h2", { id: "sure" }, title),
    el("p", {}, text),
    field && el("label", { class: "field" }, `Type the first digits of its id, ${typed}`, field),
    problem,
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", onclick: () => showErrors(confirm) }, yes),
      el("button", { type: "button", class: "plain", autofocus: true, onclick: () => dialog.close() }, no),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

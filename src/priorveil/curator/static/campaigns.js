// The list of campaigns, the links that people are given, publication, and the end of a campaign.

import { isAdmin, read, remove, send } from "/static/curator.js";
import { closeButton, confirmButton, openDialog } from "/static/dialogs.js";
import { day, el, number, reportsText, saveFile } from "/static/dom.js";
import { speaker } from "/static/language.js";
/** @import { Question, ShowErrors } from "/static/dialogs.js" */

/** The page of all campaigns, newest first; `say` tells a screen reader. @param {(text: string) => void} say */
export async function campaignList(say) {
  const admin = await isAdmin(); // first and alone: a wrong token is tried once
  const { campaigns } = await read("/campaigns");
  return [
    el("h1", { tabindex: "-1" }, "Campaigns"),
    admin &&
      el(
        "p",
        { class: "actions" },
        el("a", { class: "button", href: "#new" }, "New survey"),
        el("a", { class: "button plain", href: "#records" }, "Records: who did what"),
        el("a", { class: "button plain", href: "#tokens" }, "Tokens: who may sign in"),
      ),
    campaigns.length > 0
      ? el(
          "ul",
          { class: "campaigns" },
          ...campaigns.toReversed().map((/** @type {any} */ campaign) => entry(campaign, say)),
        )
      : el("p", {}, "There is no campaign yet."),
  ];
}

/** @param {any} campaign an entry of the curator's list @param {(text: string) => void} say */
function entry({ id, title, state, cohorts, reports, opens, closes, closed, published }, say) {
  const dates = [["opens", opens], closed ? ["closed", closed] : ["closes", closes], ["published", published]].filter(
    ([, time]) => time,
  );
  return el(
    "li",
    {},
    el("a", { class: "name", href: `#${id}`, dir: "auto" }, title),
    el(
      "p",
      { class: "quiet" },
      badge(published && state === "closed" ? "published" : state),
      reports === null ? " no results yet ·" : ` ${reportsText(reports)} ·`,
      cohorts.length > 1 && ` ${cohorts.length} cohorts ·`,
      ...dates.flatMap(([word, time]) => [` ${word} `, day(time), " ·"]),
      ` id ${id.slice(0, 12)}`,
    ),
    el(
      "div",
      { class: "links" },
      el("a", { href: `/answer/${id}`, "aria-label": `Answer page of: ${title}` }, "Answer page"),
      published && publishedLink(id, { "aria-label": `Published results of: ${title}` }),
      copier(id, `Copy link of: ${title}`, say),
    ),
  );
}

/** The state of a campaign, in words and in colour. @param {string} state */
export const badge = (state) => el("span", { class: `badge ${state === "open" ? "on" : "off"}` }, state);

/** The way to the sheet of a published campaign. @param {string} id @param {Record<string, string>} [attributes] */
export const publishedLink = (id, attributes = {}) =>
  el("a", { href: `/published/${id}`, ...attributes }, "Published results");

/** @param {string} id */
const address = (id) => `${location.origin}/answer/${id}`;

/**
 * A button that copies the link for people; none where the browser does not let pages copy.
 *
 * @param {string} id
 * @param {string} label
 * @param {(text: string) => void} say
 */
function copier(id, label, say) {
  if (!navigator.clipboard) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address(id));
      say("The link is copied.");
      button.textContent = "Copied";
    } catch {
      say("The browser did not allow this page to copy.");
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

/**
 * The link that people are given, and who may answer; `free` counts invitations, if the token may know that.
 *
 * @param {string} id
 * @param {any} estimates
 * @param {number | null} free
 * @param {ShowErrors} showErrors
 * @param {() => void} changed
 * @param {(text: string) => void} say
 */
export function sharing(id, { state, survey }, free, showErrors, changed, say) {
  return [
    el("h2", {}, "Share"),
    el(
      "p",
      {},
      state === "closed" ? "It was answered at " : "People answer at ",
      el("a", { href: `/answer/${id}` }, address(id)),
    ),
    el("p", { id: "admission" }, state === "closed" ? pastAdmissionText(survey) : admissionText(survey)),
    free !== null && el("p", { id: "free" }, `Invitations that nobody has used yet: ${number(free)}.`),
    state !== "closed" &&
      el(
        "div",
        { class: "actions" },
        copier(id, "Copy link for people", say),
        free !== null && confirmButton("invite", "Make invitations…", invitation(id, changed), showErrors),
      ),
  ];
}

/** Who could answer, as the published page has it. @param {any} survey */
const pastAdmissionText = ({ admission }) =>
  speaker("en").say(admission === "open" ? "admittedOpen" : "admittedInvited");

/** Who may answer, and what that means for the results. @param {any} survey */
function admissionText({ admission, most_reports: most }) {
  const isOpen = admission === "open";
  const who = isOpen
    ? "Anyone who knows the address can answer, even many times: strangers can change the result."
    : "Each answer needs an invitation: a link or a code that is valid for one answer.";
  if (most === null) return who;
  const filled = isOpen ? ", and strangers can fill that up." : ".";
  return `${who} At most ${reportsText(most)} can be stored${filled}`;
}

const MOST = 10000; // invitations in one request

/** @param {string} id @param {() => void} changed @returns {Question} */
const invitation = (id, changed) => ({
  title: "Make invitations?",
  text: "Each invitation is a link that is valid for one answer.",
  field: { type: "number", name: "count", min: 1, max: MOST, label: `How many, at most ${number(MOST)}` },
  check: (count) => /^[0-9]+$/.test(count) && Number(count) >= 1 && Number(count) <= MOST,
  otherwise: `Give a number from 1 to ${number(MOST)}.`,
  yes: "Make them",
  no: "Make none",
  run: async (count) => {
    const { codes } = await send(`/campaigns/${id}/invitations`, JSON.stringify({ count: Number(count) }));
    changed();
    return () => showLinks(id, codes);
  },
});

/** The links of new invitations, until the dialog is closed. @param {string} id @param {string[]} codes */
function showLinks(id, codes) {
  const text = codes.map((code) => `${address(id)}#code=${code}\n`).join("");
  const save = () => saveFile(`invitations-${id.slice(0, 12)}.txt`, new Blob([text], { type: "text/plain" }));
  openDialog(codes.length === 1 ? "One link" : `${number(codes.length)} links`, [
    el("p", {}, "They are shown only here: the curator stores nothing but their hashes. Give each person one."),
    el("label", { class: "field" }, "Links", el("textarea", { readonly: true, rows: 6, spellcheck: "false" }, text)),
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", onclick: save }, "Save as a file"),
      closeButton("Done", { class: "plain" }),
    ),
  ]);
}

// -- the end of a campaign -----------------------------------------------------------------------------------------

const DIGITS = 6; // of the id, which are typed before a campaign is deleted

/**
 * The published results, or the button that publishes them once the campaign is closed.
 *
 * @param {string} id
 * @param {any} estimates
 * @param {boolean} admin
 * @param {ShowErrors} showErrors
 * @param {() => void} changed
 */
export function publishing(id, estimates, admin, showErrors, changed) {
  const { state, published, result } = estimates;
  /** @type {Question} */
  const publication = {
    title: "Publish these results for good?",
    text:
      `${publicationText(result)} Everybody who has the link can read them, and they never change. From then on no report can be withdrawn, and the ` +
      "campaign cannot reopen: two tables that differ by one report reveal that report.",
    yes: "Publish them",
    no: "Not now",
    run: () => send(`/campaigns/${id}/publication`).then(() => changed()),
  };
  const place = `${location.origin}/published/${id}`;
  return [
    el("h2", {}, "Publish"),
    published
      ? el("p", {}, "These results are published at ", el("a", { href: place, id: "published" }, place), ".")
      : el("p", {}, "Results are published once, on a page of their own, after the campaign has closed."),
    !published &&
      admin &&
      state === "closed" &&
      el("div", { class: "actions" }, confirmButton("publish", "Publish the results…", publication, showErrors)),
  ];
}

/** How many reports there are, and how many of the results would be withheld. @param {any} result */
export function publicationText({ reports, findings, smallest_count: least }) {
  const results = findings.filter((/** @type {any} */ found) => found.withheld !== "other forms");
  const withheld = results.filter((/** @type {any} */ found) => found.withheld).length;
  const texts = { reports: reportsText(reports), withheld, all: results.length, least: reportsText(least) };
  return speaker("en").say(withheld === 0 ? "allWouldBeShown" : "someWouldBeWithheld", texts);
}

/**
 * Buttons that close, reopen or delete a campaign, once that is confirmed; `changed` and `deleted` are called when it is done.
 *
 * @param {string} id
 * @param {any} estimates
 * @param {ShowErrors} showErrors
 * @param {() => void} changed
 * @param {() => void} deleted
 */
export function ending(id, { state, published }, showErrors, changed, deleted) {
  const closed = state === "closed";
  const canReopen = closed && !published;
  /** @type {Question} */
  const closing = {
    title: "Close this campaign?",
    text: "No more answers are accepted. You can reopen it until its closing time.",
    yes: "Close it",
    no: "Keep it open",
    run: () => send(`/campaigns/${id}/close`).then(() => changed()),
  };
  /** @type {Question} */
  const reopening = {
    title: "Reopen this campaign?",
    text: "People can answer again. A campaign whose closing time has passed stays closed.",
    yes: "Reopen it",
    no: "Keep it closed",
    run: () => send(`/campaigns/${id}/reopen`).then(() => changed()),
  };
  /** @type {Question} */
  const deletion = {
    title: "Delete this campaign?",
    text: "All its reports and results are deleted, including published ones. This cannot be undone, and the same campaign cannot be created again.",
    field: { type: "text", name: "digits", label: `Type the first digits of its id, ${id.slice(0, DIGITS)}` },
    check: (digits) => digits.toLowerCase() === id.slice(0, DIGITS),
    otherwise: "These are not the first digits of its id.",
    yes: "Delete for good",
    no: "Keep it",
    run: () => remove(`/campaigns/${id}`).then(() => deleted()),
  };
  return [
    el("h2", {}, "End"),
    el("p", {}, "A closed campaign accepts no more reports. Its estimates are kept until it is deleted."),
    el(
      "div",
      { class: "actions" },
      canReopen && confirmButton("reopen", "Reopen this campaign…", reopening, showErrors),
      !closed && confirmButton("close", "Close this campaign…", closing, showErrors),
      confirmButton("delete", "Delete this campaign…", deletion, showErrors),
    ),
  ];
}

// The records: which holder of a token did what, and when.

import { read } from "/static/curator.js";
import { el, moment, number, pageHead, scrolling } from "/static/dom.js";
/** @typedef {{ at: string, who: string, action: string, campaign: string | null, count: number | null }} Entry */

const HEADS = ["Time", "Token", "What was done", "Campaign", "Number"];

/** The page of the newest records, newest first. */
export async function recordTable() {
  const [{ records }, { campaigns }] = await Promise.all([read("/records"), read("/campaigns")]);
  const titles = new Map(campaigns.map((/** @type {any} */ { id, title }) => [id, title]));
  return [
    ...pageHead("Records"),
    el("p", {}, "What the holders of tokens did, newest first. No record has a report or its id."),
    records.length > 0 ? table(records, titles) : el("p", {}, "There is no record yet."),
  ];
}

/** @param {Entry[]} records @param {Map<string, string>} titles */
function table(records, titles) {
  /** @param {string} name */
  const head = (name) => el("th", { scope: "col", class: name === "Number" && "figure" }, name);
  return scrolling(
    "Records",
    el(
      "table",
      { class: "records" },
      el("thead", {}, el("tr", {}, ...HEADS.map(head))),
      el("tbody", {}, ...records.map((record) => row(record, titles))),
    ),
  );
}

/** @param {Entry} record @param {Map<string, string>} titles */
function row({ at, who, action, campaign, count }, titles) {
  const title = titles.get(campaign ?? "");
  return el(
    "tr",
    {},
    el("td", {}, moment(at)),
    el("td", {}, who),
    el("td", {}, action),
    // A deleted campaign has no title and no page any more.
    el("td", {}, title ? el("a", { href: `#${campaign}`, dir: "auto" }, title) : (campaign ?? "").slice(0, 12)),
    el("td", { class: "figure" }, count !== null && number(count)),
  );
}

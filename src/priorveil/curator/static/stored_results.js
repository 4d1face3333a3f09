// The results that analysts see: when they were made, what is next, and the button of an admin that releases new ones.

import { badge, publicationText } from "/static/campaigns.js";
import { read, send } from "/static/curator.js";
import { confirmButton } from "/static/dialogs.js";
import { el, moment, reportsText } from "/static/dom.js";

const WHY = {
  closed: "after the campaign closed",
  released: "when an admin released them",
  published: "for the publication",
};
const WHEN = "when an admin releases them, when the campaign closes, and at its publication";

/** The entry of a campaign in an analyst's list if it has no results; its results are made when it closes. */
export async function withoutResults(id) {
  const { campaigns } = await read("/campaigns");
  return campaigns.find((campaign) => campaign.id === id && campaign.stored === null && campaign.state !== "closed");
}

/** What an analyst sees before there are results. */
export const noResults = ({ state }) => [
  el("p", {}, badge(state)),
  el(
    "p",
    { id: "stored" },
    `There are no results yet. They are made ${WHEN}. Until then, nothing is shown of the reports.`,
  ),
];

/** For an analyst: when the results on the page were made, and when they change. */
export function madeWhen({ stored: { kind, made }, state }) {
  const since = "Reports that came or were withdrawn since are not in them.";
  const next = state === "closed" ? "The next results are made at publication." : `New results are made ${WHEN}.`;
  return el(
    "p",
    { id: "stored" },
    "These results were made on ",
    moment(made),
    `, ${WHY[kind]}. `,
    kind === "published" ? "They are final." : `${since} ${next}`,
  );
}

/** For an admin: what analysts see, and the button that releases new results. */
export function releasing(id, { stored, state, result }, showErrors, changed) {
  const release = {
    title: "Release interim results?",
    text:
      `${publicationText(result)} Analysts see the results so far, and can compare them with the last ones. ` +
      "This is refused until enough further reports have " +
      "come. A cohort or a question with too few keeps its last results.",
    yes: "Release them",
    no: "Not now",
    run: () => send(`/campaigns/${id}/release`).then(() => changed()),
  };
  return [
    el("h2", {}, "What analysts see"),
    stored === null
      ? el("p", { id: "stored" }, `No results yet. They are made ${WHEN}.`)
      : el(
          "p",
          { id: "stored" },
          `Results from ${reportsText(stored.reports)}, made on `,
          moment(stored.made),
          `, ${WHY[stored.kind]}.`,
        ),
    state !== "closed" &&
      el("div", { class: "actions" }, confirmButton("release", "Release interim results…", release, showErrors)),
  ];
}

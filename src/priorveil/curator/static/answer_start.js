// Before the first question: the code of an invitation, and everything that a person should know before answering.

import {
  actions,
  hasText,
  line,
  own,
  paragraph,
  problemPlace,
  put,
  quiet,
  say,
  speak,
  submit,
  warning,
} from "/static/answer_page.js";
import { beliefs, seenByOthers } from "/static/disclosure.js";
import { el } from "/static/dom.js";
/** @import { Campaign } from "/static/priorveil.js" */
/** @import { Interview } from "/static/interview.js" */

/**
 * Ask for the code of an invitation.
 *
 * @param {string | null} problem the key of what is wrong with the code that was given; null if none was
 * @param {(code: string) => void} enter
 */
export function drawInvitation(problem, enter) {
  const field = el("input", { type: "text", name: "code", autocomplete: "off", spellcheck: "false", required: true });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    enter(field.value.replace(/[\s-]/g, ""));
  };
  put(
    say("invitationTitle"),
    problem === null ? paragraph("invitationNeeded") : warning(say(problem), " ", say("onlyCodeSent")),
    el(
      "form",
      { onsubmit },
      el("label", { class: "field" }, say("invitationCode"), field),
      actions(submit("continue")),
    ),
  );
}

/**
 * Everything that a person should know before answering.
 *
 * @param {Interview} interview
 * @param {(entry: HTMLFormElement) => void} start
 */
export function drawStart(interview, start) {
  const { campaign } = interview;
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    start(/** @type {HTMLFormElement} */ (event.target));
  };
  put(
    own(campaign.title),
    hasText(campaign.description) && el("p", {}, own(campaign.description)),
    el(
      "dl",
      { class: "introduction" },
      line(
        say("whoAsks"),
        hasText(campaign.askedBy) ? own(campaign.askedBy) : say("whoAsksDefault", { host: location.host }),
      ),
      line(say("why"), hasText(campaign.purpose) ? own(campaign.purpose) : say("whyDefault")),
      line(say("yourAnswers"), say("scrambledHere")),
    ),
    consequences(campaign),
    el(
      "form",
      { onsubmit, autocomplete: "off", novalidate: true },
      campaign.cohorts.length > 1 && cohortPicker(interview),
      Object.values(campaign.forms).some(({ slots }) => slots.some((slot) => slot.drawn)) && quiet("someDrawn"),
      actions(submit("start")),
      quiet("nothingSentYet"),
    ),
  );
}

/** What others could see, in one table: the same scrambled report, whoever they are. @param {Campaign} campaign */
function consequences(campaign) {
  const { exposed, seen, levels } = seenByOthers(campaign);
  const row = (/** @type {string} */ key) =>
    el("tr", {}, el("th", { scope: "row" }, say(key)), el("td", {}, say(seen)), el("td", {}, say("seenReport")));
  const column = (/** @type {string} */ key) => el("th", { scope: "col" }, say(key));
  return [
    el(
      "table",
      { class: "consequences" },
      el("caption", {}, say("whoCouldSee")),
      el("thead", {}, el("tr", {}, column("who"), column("yourAnswers"), column("theReport"))),
      el("tbody", {}, ...["asker", "thief", "employer", "court"].map(row)),
    ),
    exposed
      ? warning(say(exposed))
      : seen === "seenWeak"
        ? warning(say("weakScrambling"))
        : [paragraph("neverLeave"), likelier(levels)],
    quiet("notProtected"),
  ];
}

/** What a level means for the belief in one answer. @param {{ lip: number, ldp: number }} levels */
function likelier(levels) {
  const { before, after } = beliefs(levels);
  const share = (/** @type {number} */ value) => speak.number(value, { style: "percent", maximumFractionDigits: 1 });
  return paragraph("likelier", { before: share(before), after: share(after) });
}

/** @param {Interview} interview */
function cohortPicker(interview) {
  const options = interview.campaign.cohorts.map((name) =>
    el("option", { value: name, selected: name === interview.cohort, dir: "auto" }, name),
  );
  const onchange = (/** @type {any} */ event) => {
    interview.cohort = event.target.value || undefined;
  };
  return [
    el(
      "label",
      { class: "field" },
      say("yourGroup"),
      el(
        "select",
        { name: "cohort", autocomplete: "off", "aria-describedby": "cohort-hint cohort-problem", onchange },
        el("option", { value: "" }, say("choose")),
        ...options,
      ),
    ),
    el("p", { class: "hint", id: "cohort-hint" }, say("groupHint")),
    problemPlace("cohort"),
  ];
}

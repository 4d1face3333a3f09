// The page of a new survey: write it in a form or choose a file, check what it promises, look at it, and create the campaign.

import { Refused, SignedOut, Unreachable, ask, isAdmin, send } from "/static/curator.js";
import { el, number as readable, pageHead, saveFile, scrolling } from "/static/dom.js";
import { readCampaign } from "/static/priorveil.js";
import { newDraft, toDocument, toDraft } from "/static/survey_draft.js";
import { surveyForm } from "/static/survey_form.js";

const PREVIEW = "priorveil-preview"; // in sessionStorage: the document that the answer page shows with #preview
const USUAL_PEOPLE = "300"; // who will answer, if nothing else is said
const JSON_TYPE = "application/json";
const TYPES = {
  toml: "application/toml",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  json: JSON_TYPE,
};

// What is written stays in this tab while other pages of the dashboard are open.
let draft = newDraft();
let people = USUAL_PEOPLE;
let saved = textOf(draft); // as it is in a file, or as it began

function textOf(some) {
  return JSON.stringify(toDocument(some));
}

addEventListener("beforeunload", (event) => {
  if (textOf(draft) !== saved) event.preventDefault();
});

/** The page; `showErrors` runs what may fail, `say` tells a screen reader. */
export async function newSurvey(showErrors, say) {
  const head = pageHead("New survey");
  if (!(await isAdmin())) return [...head, el("p", { class: "warning" }, "This needs a token with the role admin.")];

  let chosen = null; // the file that is checked in place of the form: its name, and a function that checks it
  let checked = null; // what was checked: the text of the draft, or null if it was a file
  let controller = null; // of the request that is under way
  addEventListener("hashchange", () => controller?.abort(), { once: true }); // nobody waits for it any more
  const results = el("div", { id: "checked" });
  const problem = el("p", { class: "warning", role: "alert", id: "refused", hidden: true });
  const waiting = el(
    "div",
    { id: "designing", class: "designing", hidden: true },
    el("p", {}, "Designing the survey. This takes some seconds."),
    el("progress", { "aria-label": "Designing" }),
    el("button", { type: "button", class: "plain", id: "cancel", onclick: () => controller.abort() }, "Cancel"),
  );
  let form = null;

  const complain = (text) => {
    problem.textContent = text;
    problem.hidden = text === "";
  };

  // -- checking ----------------------------------------------------------------------------------------------------------

  /** Design a survey, and show what it promises; `showPlace` shows an error where it belongs. `draftText` is null for a file. */
  async function check(body, type, showPlace, draftText = null) {
    controller?.abort();
    const mine = (controller = new AbortController());
    complain("");
    results.replaceChildren();
    showWaiting(true);
    say("Designing the survey.");
    try {
      const options = { method: "POST", body, headers: { "content-type": type }, signal: mine.signal };
      const response = await ask(`/surveys?people=${encodeURIComponent(people || USUAL_PEOPLE)}`, options);
      const answer = await response.json();
      checked = draftText;
      showResults(answer);
    } catch (error) {
      if (error.name === "AbortError") return mine === controller && say("The check was cancelled. Nothing is lost.");
      if (error instanceof Unreachable) return complain(`${error.message} Nothing is lost.`);
      if (!(error instanceof Refused)) throw error;
      showPlace(error);
    } finally {
      if (mine === controller) showWaiting(false);
    }
  }

  function showWaiting(on) {
    button.disabled = on;
    waiting.hidden = !on;
  }

  const checkDraft = () => {
    const missing = [...draft.questions, ...draft.groups].find(({ prior, table }) => prior === "table" && table === null);
    form.clearProblem();
    if (missing) {
      const grouped = draft.groups.indexOf(missing);
      const keys = grouped < 0 ? ["question", draft.questions.indexOf(missing), "table"] : ["together", grouped, "table"];
      return showAtField({ message: "Choose a table, or say that you do not know.", problem: { keys } });
    }
    const text = textOf(draft);
    return check(text, JSON_TYPE, showAtField, text);
  };

  function showAtField({ message, problem: { keys = [], advice = message } }) {
    const inList = Number.isInteger(keys[1]);
    const place = inList ? `${capital(keys[0])} ${keys[1] + 1}: ` : "";
    const named = `${keys.slice(inList ? 2 : 0).join(" ")}: `; // the field itself shows which one it is
    const text = capital(advice.startsWith(named) ? advice.slice(named.length) : advice);
    if (keys.length > 0) form.focusField(keys, text);
    complain(`${place}${inList ? advice : text}`);
  }

  const showInFile = (name) => (error) => complain(`${name} was not accepted. ${error.message}`);

  // -- what it promises --------------------------------------------------------------------------------------------------

  function showResults({ report, remarks, campaign }) {
    const { headings, text, table } = report;
    const section = (name) => [el("h3", {}, headings[name]), ...text[name].map((sentence) => el("p", {}, sentence))];
    results.replaceChildren(
      el("h2", { tabindex: "-1", id: "checked-title" }, "What this survey does"),
      summary(JSON.parse(campaign), `${report.epsilon}`),
      ...remarks.map((remark) => el("p", { class: "warning" }, `${capital(remark)}.`)),
      ...leftOutList(report.left_out),
      ...section("promise"),
      ...section("tells"),
      ...precision(table, JSON.parse(campaign)),
      ...section("design"),
      ...uses(campaign),
    );
    results.querySelector("h2").focus();
    say("The survey is checked.");
    markStale(); // it may have changed while it was designed
  }

  /** Which survey this is about; `level` says what all answers of a person tell. */
  function summary({ title, questions, languages }, level) {
    const lines = [
      ["File", chosen?.name],
      ["Title", languages && title?.[languages[0]]],
      ["Questions", questions && `${questions.length}`],
      ["Epsilon", level],
    ];
    const line = ([name, text]) => text && el("div", {}, el("dt", {}, name), el("dd", {}, el("bdi", {}, text)));
    return el("dl", { class: "introduction", id: "summary" }, ...lines.map(line));
  }

  const leftOutList = (leftOut) =>
    leftOut.length === 0
      ? []
      : [el("p", { class: "warning" }, "These parts of the file are left out, because a campaign cannot have them:"), el("ul", { id: "left-out" }, ...leftOut.map((words) => el("li", {}, words)))];

  function precision({ heads, rows, note }, { questions, languages }) {
    const figure = (i) => (i >= 2 ? "figure" : null);
    const texts = new Map(questions.map(({ name, text }) => [name, text[languages[0]]]));
    const textOfQuestions = (names) => names.split(" x ").map((name) => texts.get(name.split("/")[0])).join(" + ");
    const subject = (names) => [el("bdi", {}, textOfQuestions(names)), el("small", {}, names)];
    const content = scrolling(
      "Precision",
      el(
        "table",
        { id: "precision" },
        el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: figure(i) }, head)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) => (i === 0 ? el("th", { scope: "row" }, ...subject(cell)) : el("td", { class: figure(i) }, cell)))))),
      ),
    );
    return [content, el("p", { class: "quiet" }, note)];
  }

  /** What can be done with a campaign: look at its page, keep it, create it. `text` is its document. */
  function uses(text) {
    const { id } = JSON.parse(text);
    const preview = () => {
      try {
        sessionStorage.setItem(PREVIEW, text);
      } catch {
        return complain("This campaign is too large for a preview in this browser. Create it, and add #preview to its link.");
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
      if (checked === textOf(draft)) saved = textOf((draft = newDraft()));
      location.hash = id;
    };
    const made = el("button", { type: "button", id: "create", onclick: () => showErrors(create) }, "Create campaign");
    return [
      el("p", { id: "stale", class: "warning", hidden: true }, "You have changed the survey since. Check it again."),
      el(
        "div",
        { class: "actions", id: "uses" },
        made,
        el("button", { type: "button", class: "plain", id: "preview", onclick: preview }, "Preview in a new tab"),
        el("button", { type: "button", class: "plain", id: "keep", onclick: () => keep("campaign.json", text) }, "Save the campaign as a file"),
      ),
      el("p", { class: "quiet" }, "The preview draws, remembers and sends nothing. After a campaign is created nobody can change a word of it."),
    ];
  }

  /** What was checked is not what is in the form any more. */
  function markStale() {
    const note = results.querySelector("#stale");
    if (note === null || checked === null) return;
    note.hidden = checked === textOf(draft);
    for (const each of results.querySelectorAll("#uses button")) each.disabled = !note.hidden;
  }

  // -- files -------------------------------------------------------------------------------------------------------------

  async function load(file) {
    complain("");
    const { name } = file;
    const kind = name.toLowerCase().split(".").at(-1);
    if (!Object.hasOwn(TYPES, kind)) return complain(`${name} was not accepted. Choose a file whose name ends in .toml, .xlsx or .json.`);
    const content = await file.arrayBuffer(); // a file that changes later cannot be read again
    const text = kind === "json" ? new TextDecoder().decode(content) : "";
    const document = parseOrNull(text);
    const isCampaign = document?.format === "priorveil-campaign";
    const read = kind !== "json" || isCampaign ? null : toDraft(document);
    if (read === null) {
      choose({ name, check: isCampaign ? () => showCampaign(text, document) : () => check(content, TYPES[kind], showInFile(name)) });
      return chosen.check();
    }
    draft = read;
    saved = textOf(draft);
    choose(null);
    drawForm();
    return say("The survey was loaded into the form.");
  }

  /** Check this file from now on, in place of the form; null for the form. */
  function choose(file) {
    controller?.abort();
    chosen = file;
    complain("");
    results.replaceChildren();
    place.hidden = keeper.hidden = file !== null;
    source.hidden = file === null;
    source.querySelector("bdi").textContent = file?.name ?? "";
  }

  const backToForm = () => {
    choose(null);
    files.value = "";
    place.querySelector("input")?.focus();
    say("The form is checked, not the file.");
  };

  /** A campaign that was built elsewhere: it is designed already, and the curator proves its certificates again. */
  async function showCampaign(text, document) {
    const read = await readCampaign(text).catch(() => null); // the curator says what is wrong with it
    const most = (name) => readable(Math.max(...Object.values(read.promise).map((levels) => levels[name])));
    checked = null;
    results.replaceChildren(
      el("h2", { tabindex: "-1" }, "A finished campaign"),
      summary(document, read && `LIP ${most("lip")}, LDP ${most("ldp")}`),
      el("p", {}, "The curator proves its certificates again."),
      ...uses(text),
    );
    results.querySelector("h2").focus();
  }

  const files = el("input", {
    type: "file",
    id: "file",
    accept: ".toml,.xlsx,.json",
    "aria-describedby": "file-hint",
    onclick: ({ target }) => {
      target.value = ""; // the same file may be chosen again, after a change
    },
    onchange: ({ target: { files: [file] } }) => file && showErrors(() => load(file)),
  });

  const keepDraft = () => {
    keep("survey.json", `${JSON.stringify(toDocument(draft), null, 2)}\n`);
    saved = textOf(draft);
    say("The survey is saved.");
  };

  const number = el("input", { type: "number", id: "people", class: "short", min: "1", step: "1", value: people, placeholder: USUAL_PEOPLE, oninput: ({ target }) => (people = target.value) });
  const button = el("button", { type: "submit", id: "check" }, "Check");
  const keeper = el("button", { type: "button", class: "plain", id: "save", onclick: keepDraft }, "Save the survey as a file");
  const source = el(
    "div",
    { id: "chosen", hidden: true },
    el("p", {}, "Chosen file: ", el("strong", {}, el("bdi", {})), ". It is checked as it was when you chose it: choose it again after a change."),
    el("div", { class: "actions tight" }, el("button", { type: "button", class: "plain", id: "back", onclick: backToForm }, "Back to the form")),
  );
  const place = el("div", {});
  function drawForm() {
    form = surveyForm(draft, () => {
      complain("");
      markStale();
    });
    place.replaceChildren(form);
  }
  drawForm();

  return [
    ...head,
    el("p", {}, "Write the survey here, check its promise and its precision, preview the page that people see, and create the campaign."),
    el(
      "details",
      { id: "files" },
      el("summary", {}, "I have a file already"),
      el("label", { class: "field" }, "File", files),
      el(
        "p",
        { class: "quiet", id: "file-hint" },
        "A survey in TOML, an XLSForm (.xlsx), a survey that was saved here, or a campaign built by ",
        el("code", {}, "priorveil campaign build"),
        ". The curator receives the whole file, so leave out sheets with a row for each person.",
      ),
    ),
    el(
      "form",
      {
        novalidate: true, // the curator says what is wrong, in one place for all ways to write a survey
        autocomplete: "off",
        onsubmit: (event) => {
          event.preventDefault();
          showErrors(async () => (chosen === null ? checkDraft() : chosen.check()));
        },
      },
      source,
      place,
      el("h2", {}, "Check"),
      el("label", { class: "field" }, "How many people will answer?", number),
      el("div", { class: "actions" }, button, keeper),
    ),
    waiting,
    problem,
    results,
  ];
}

function parseOrNull(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // the curator says what is wrong with it
  }
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const keep = (name, text) => saveFile(name, new Blob([text], { type: JSON_TYPE }));

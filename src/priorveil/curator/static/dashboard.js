// The curator's dashboard: sign in, choose a page, watch a campaign.

import { campaignParts } from "/static/campaign_page.js";
import { campaignList } from "/static/campaigns.js";
import { SignedOut, Unreachable, forget, isAdmin, keepsTokens, read, signIn, signedIn } from "/static/curator.js";
import { el, reportsText } from "/static/dom.js";
import { speaker } from "/static/language.js";
import { newSurvey } from "/static/new_survey.js";
import { recordTable } from "/static/records.js";
import { noResults, withoutResults } from "/static/stored_results.js";
import { SurveyWords } from "/static/survey_words.js";
import { tokenPage } from "/static/tokens.js";

const EVERY = 4000; // milliseconds between looks at the counts
const speak = speaker("en");

/** @param {string} selector @returns {HTMLElement} */
const place = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));

const main = place("#main");
const news = place("#news");
const leave = place("#leave");
/** The campaign on the page. @type {{ id: string, method: string, cohort: string, lastText: string | null, timer: any } | null} */
let openCampaign = null;
let again = 0; // the timer of a list that could not be read

leave.addEventListener("click", () => signOut());
addEventListener("hashchange", () => route());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && openCampaign) refresh(openCampaign);
});

const announce = (text) => {
  news.textContent = text;
};

function put(...content) {
  main.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.querySelector("h1")?.focus();
}

function route() {
  stop();
  if (!keepsTokens()) return showNoStorage();
  const id = location.hash.slice(1);
  leave.hidden = !signedIn();
  if (leave.hidden) return showSignIn();
  if (/^[0-9a-f]{64}$/.test(id)) return showErrors(() => watch(id));
  if (id === "new") return showErrors(() => showPage("New survey", () => newSurvey(showErrors, announce)));
  if (id === "records") return showErrors(() => showPage("Records", recordTable));
  if (id === "tokens") return showErrors(() => showPage("Tokens", () => tokenPage(showErrors, route)));
  return showErrors(() => showPage("Campaigns", () => campaignList(announce)));
}

/** Run; an invalid token leads back to signing in, any other error is shown. */
async function showErrors(run) {
  try {
    await run();
  } catch (error) {
    if (error instanceof SignedOut) signOut("This token is not known here.");
    else trouble(error);
  }
}

function trouble(error) {
  const text = error instanceof Unreachable ? "The curator cannot be reached; trying again." : error.message;
  let box = main.querySelector("#trouble");
  if (box === null) {
    box = el("p", { id: "trouble", class: "warning", role: "alert" });
    main.prepend(box);
  }
  if (box.textContent !== text) box.textContent = text;
  if (openCampaign?.lastText === null) place("#question").textContent = "Nothing to show yet";
}

function signOut(why) {
  forget();
  stop();
  leave.hidden = true;
  showSignIn(why);
}

function stop() {
  clearTimeout(openCampaign?.timer);
  clearTimeout(again);
  openCampaign = null;
}

// -- signing in and choosing -------------------------------------------------------------------------------------------

function showNoStorage() {
  const advice =
    "Let your browser store data of this site (cookies and site data), or open the dashboard in another browser.";
  put(
    el("h1", { tabindex: "-1" }, "You cannot sign in with this browser"),
    el(
      "p",
      { class: "warning", role: "alert" },
      "The dashboard keeps your token in this tab until you close it, and this browser does not let it.",
    ),
    el("p", {}, advice),
  );
}

function showSignIn(why) {
  document.title = "Dashboard · priorveil";
  const field = el("input", {
    type: "password",
    name: "token",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "kept",
  });
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        signIn(field.value.trim());
        route();
      },
    },
    el("label", { class: "field" }, "Curator token", field),
    el("p", { id: "kept", class: "quiet" }, "It is kept in this tab only and forgotten when the tab is closed."),
    el("button", { type: "submit" }, "Sign in"),
  );
  put(el("h1", { tabindex: "-1" }, "Sign in"), why && el("p", { class: "warning", role: "alert" }, why), form);
  field.focus();
}

/** A page with a list. The old page is cleared at once, and a list that cannot be read is fetched again. */
async function showPage(title, load) {
  document.title = `${title} · priorveil`;
  put(el("h1", { tabindex: "-1" }, title), el("p", {}, "One moment…"));
  await showList(location.hash, load);
}

async function showList(place, load) {
  try {
    const list = await load();
    if (location.hash === place && signedIn()) put(list);
  } catch (error) {
    if (location.hash !== place) return;
    again = setTimeout(() => showErrors(() => showList(place, load)), EVERY);
    throw error;
  }
}

// -- watching one campaign -----------------------------------------------------------------------------------------------

async function watch(id) {
  openCampaign = { id, method: "auto", cohort: "", lastText: null, timer: 0 };
  put(
    el("p", {}, el("a", { href: "#" }, "All campaigns")),
    el("h1", { tabindex: "-1", id: "question", dir: "auto" }, "One moment…"),
    el("div", { id: "live" }),
  );
  await refresh(openCampaign);
}

/** Look again, and again later while this campaign is on the page and the page can be seen. */
async function refresh(view) {
  clearTimeout(view.timer);
  const { method } = view;
  await showErrors(async () => {
    const admin = await isAdmin();
    const waiting = admin ? null : await withoutResults(view.id);
    if (openCampaign !== view) return;
    if (waiting) return draw(view, waiting.title, waiting.state, waiting, () => noResults(waiting));
    const [estimates, counters, { warnings }] = await Promise.all([
      read(`/campaigns/${view.id}/estimates?method=${method}`),
      read(`/campaigns/${view.id}/counters`),
      read(`/campaigns/${view.id}/status`),
    ]);
    const counted = admin && estimates.survey.admission === "invitation";
    const { free } = counted ? await read(`/campaigns/${view.id}/invitations`) : { free: null };
    if (openCampaign !== view || view.method !== method) return; // another method was chosen meanwhile
    const content = [estimates, counters, free, method, view.cohort];
    const words = new SurveyWords(estimates.survey, speak, estimates.survey.languages[0]);
    const all = { ...counters, free, warnings };
    const use = { showErrors, changed: () => refresh(view), announce };
    draw(view, words.own(estimates.survey.title), reportsText(estimates.result.reports), content, () =>
      campaignParts(view, estimates, all, admin, words, use),
    );
  });
  if (openCampaign === view && !document.hidden) view.timer = setTimeout(() => refresh(view), EVERY);
}

/** Draw a campaign, unless the page shows this content already; the `summary` is said in a few words. */
function draw(view, title, summary, content, drawn) {
  main.querySelector("#trouble")?.remove();
  const text = JSON.stringify(content);
  if (text === view.lastText) return;
  const fresh = view.lastText === null;
  view.lastText = text;
  const focused = document.activeElement?.id;
  document.title = `${summary} · ${title}`;
  place("#question").textContent = title;
  const unfolded = [...main.querySelectorAll("#live details[open]")].map(({ id }) => id);
  place("#live").replaceChildren(...drawn().flat(Infinity).filter(Boolean));
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus();
  if (!fresh) announce(summary);
}

route();

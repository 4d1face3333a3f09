// The sheet of published results: the figures, how they came about, what was promised, and what they do not say.

import { el, factor, moment, number } from "/static/dom.js";
import { estimateTables } from "/static/histogram.js";
import { levelTable } from "/static/levels.js";

const main = document.querySelector("#main");
const id = location.pathname.split("/").at(-1);
const source = `/v1/campaigns/${encodeURIComponent(id)}/publication`;

async function show() {
  const response = await fetch(source);
  if (!response.ok) {
    const { detail } = await response.json().catch(() => ({}));
    return put(
      el("h1", {}, "There are no published results here"),
      el("p", {}, `The curator says: ${detail ?? response.status}.`),
    );
  }
  const publication = await response.json();
  document.title = `Results · ${publication.results.title}`;
  return put(...sheet(publication));
}

const put = (...content) => main.replaceChildren(...content.flat(Infinity).filter(Boolean));

function sheet(publication) {
  const { results: estimates, language } = publication;
  const own = (tag, attributes, ...text) => el(tag, { lang: language, dir: "auto", ...attributes }, ...text);
  return [
    own("h1", {}, estimates.title),
    introduction(publication, own),
    estimates.results.flatMap((result) => result.cohorts).some((cohort) => cohort.warning)
      ? null
      : estimates.caution && el("p", { class: "warning" }, estimates.caution),
    el("div", { class: "results" }, ...estimates.results.map((result, place) => figures(result, estimates, place, own))),
    el(
      "div",
      { class: "remarks" },
      el("section", {}, el("h2", {}, "How this was found out"), method(estimates)),
      el("section", {}, el("h2", {}, "What was promised to people"), promise(estimates)),
      el("section", {}, el("h2", {}, "What to keep in mind"), limits(estimates)),
    ),
    el(
      "details",
      {},
      el("summary", {}, "For statisticians: privacy levels (LIP and LDP), methods and ids"),
      levelTable(estimates),
      notes(estimates, own),
      el("p", {}, "Campaign ", el("code", {}, estimates.campaign)),
    ),
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", onclick: () => print() }, "Print"),
      el("a", { class: "button plain", href: source, download: `${id.slice(0, 12)}-results.json` }, "All figures (JSON)"),
    ),
  ];
}

function introduction({ asked_by: who, purpose, contact, published, results: estimates }, own) {
  const lines = [
    ["Asked by", who && own("span", {}, who)],
    ["Purpose", purpose && own("span", {}, purpose)],
    ["Contact", contact],
    ["Reports", number(estimates.reports)],
    ["Published", el("time", { datetime: published }, moment(new Date(published)))],
  ];
  const line = ([name, value]) => value && el("div", {}, el("dt", {}, name), el("dd", {}, value));
  return el("dl", { class: "introduction" }, ...lines.map(line));
}

/** One result: all people together, then each cohort if there are several. */
function figures({ title, unit, cohorts, total }, estimates, place, own) {
  const several = estimates.cohorts.length > 1;
  const parts = several ? [total && { ...total, cohort: "Everyone" }, ...cohorts].filter(Boolean) : cohorts;
  return el(
    "section",
    {},
    own("h2", {}, title, unit && ` (${unit})`),
    ...parts.map((part, n) => [
      several && el("h3", {}, el("bdi", {}, part.cohort)),
      part.withheld ? el("p", {}, estimates.withheld_because) : figure(part, `-${place}-${n}`),
    ]),
  );
}

const figure = ({ warning, display }, suffix) => [
  warning && el("p", { class: "warning" }, warning),
  estimateTables(display, suffix),
  !warning && el("p", { class: "quiet" }, display.precision),
];

function method({ results }) {
  const shown = results.flatMap((result) => result.cohorts.filter((cohort) => !cohort.withheld));
  const hasPrior = shown.some(({ display }) => [...display.rows, ...display.numbers].some((row) => row.expected !== null));
  const common = (shown[0]?.notes ?? []).filter((note) => shown.every((cohort) => cohort.notes.includes(note)));
  return [
    el(
      "p",
      {},
      "Each person’s device scrambled the answers at random before anything was sent. Nobody but the person ever had the ",
      "true answers. What is common among all people can be worked out from many scrambled reports, up to chance: so each ",
      "figure has an interval.",
      hasPrior && " The column “Prior” is what was expected before anybody was asked.",
    ),
    ...common.map((note) => el("p", { class: "quiet" }, note)),
  ];
}

/** The method of each figure and how the reports fit the prior, in the words of statisticians. */
function notes({ results, cohorts }, own) {
  const parts = results.flatMap(({ title, cohorts: its }) => its.map((part) => ({ title, ...part })));
  const name = ({ title, cohort }) => (cohorts.length > 1 ? `${title} (${cohort})` : title);
  return parts
    .filter((part) => !part.withheld)
    .map((part) => el("p", { class: "quiet" }, own("strong", {}, name(part)), " ", part.notes.join(" ")));
}

function promise({ cohorts, assumed_prior: assumed }) {
  const most = (name) => Math.max(...cohorts.map((cohort) => cohort.privacy[name] ?? Infinity));
  const [lip, ldp] = [most("lip"), most("ldp")];
  const times = (level) => el("strong", {}, factor(level));
  return [
    lip < ldp &&
      !assumed &&
      el(
        "p",
        {},
        "To someone who knows only how common the answers are, what a person sent makes any answer of that person seem at most ",
        times(lip),
        " times as likely as before, or as many times less likely. This holds if answers are as common as was expected.",
      ),
    Number.isFinite(ldp)
      ? el(
          "p",
          {},
          "Whatever anyone knows about a person: take any two ways to answer. What was sent makes one of them at most ",
          times(ldp),
          " times as likely, compared with the other, as it was before.",
        )
      : el("p", {}, "To someone who knows more than how common the answers are, what a person sent can rule out some answers."),
  ];
}

function limits({ smallest_count: least, admission_text: admission }) {
  return [
    el("p", {}, admission),
    el("p", {}, "The figures are about the people who took part, and about what they told their devices."),
    least > 1 && el("p", {}, `Nothing is shown that rests on fewer than ${number(least)} reports.`),
    el(
      "p",
      {},
      "These figures were made once, after the survey had closed, and do not change: two tables that differ by one report would reveal that report.",
    ),
  ];
}

show().catch(() => put(el("h1", {}, "The results cannot be loaded"), el("p", {}, "Please load this page again later.")));

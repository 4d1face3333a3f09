// Estimates as a table that is also a picture: a bar for each answer, its interval, and the prior next to it.

import { el, percent } from "/static/dom.js";

/** How a page in English writes a table of estimates: with the texts of the curator. */
const ENGLISH = Object.freeze({
  words: Object.freeze({ picture: "Picture", estimate: "Estimate", interval: "Interval", prior: "Prior", numbers: "Numbers", group: "Group" }),
  head: ({ label_head }) => label_head,
  interval: ({ interval_head }) => interval_head,
  groupTitle: ({ title, unit }) => (unit ? `${title} (${unit})` : title),
  label: (row) => el("bdi", {}, row.label),
  value: (row) => row.value_text,
  ends: (row) => row.interval_text,
  expected: (row) => row.expected_text,
  people: (row) => row.people_text,
  leftOut: ({ left_out }) => left_out,
  withheld: ({ withheld }) => withheld,
  percent,
});

/**
 * The tables of an estimate: shares with a picture, or amounts; then the mean or the quantiles of numbers, and what is known about
 * groups. `page` says it in the language of the page.
 */
export function estimateTables(display, suffix = "", page = ENGLISH) {
  const { shares, rows, numbers, groups } = display;
  const [head, interval] = [page.head(display), page.interval(display)];
  const [left, withheld] = [page.leftOut(display), page.withheld(display)];
  return [
    shares && rows.length > 0 && legend(page),
    left && el("p", { class: "quiet" }, left),
    rows.length > 0 && table(`histogram${suffix}`, rows, shares ? scaleFor(rows) : null, head, interval, page),
    numbers.length > 0 && table(`numbers${suffix}`, numbers, null, page.words.numbers, interval, page),
    ...groups
      .filter((group) => group.rows.length > 0)
      .map((group, n) => table(`group${n}${suffix}`, group.rows, null, page.words.group, interval, page, page.groupTitle(group))),
    withheld && el("p", { class: "withheld" }, withheld),
  ];
}

/** A table of estimates, with a picture where there is a scale, and what the prior expects where that is known. */
function table(id, rows, scale, label, interval, page, caption = null) {
  const { words } = page;
  const prior = rows.some((row) => row.expected !== null);
  const head = el(
    "tr",
    { role: "row" },
    heading(label),
    scale &&
      el(
        "th",
        { class: "picture", scope: "col", role: "columnheader" },
        el("span", { class: "unseen" }, words.picture),
        ruler(scale, page),
      ),
    heading(words.estimate, true),
    heading(interval, true),
    prior && heading(words.prior, true),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, page.label(row)),
      scale && el("td", { class: "picture", role: "cell" }, bar(row, scale)),
      figure(
        words.estimate,
        page.value(row),
        row.people_text && [el("br"), el("span", { class: "quiet" }, page.people(row))],
      ),
      figure(interval, page.ends(row)),
      prior && figure(words.prior, page.expected(row)),
    ),
  );
  return el(
    "table",
    { class: "histogram", id, role: "table" },
    caption && el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, head),
    el("tbody", { role: "rowgroup" }, ...body),
  );
}

const heading = (text, right = false) =>
  el("th", { scope: "col", role: "columnheader", class: right ? "figure" : null }, text);

/** A cell of numbers. On a phone rows become blocks: `name` then stands above, and roles keep it a table. */
const figure = (name, ...content) => el("td", { class: "figure", role: "cell", "data-name": name }, ...content);

/** A scale from zero (or below, where an interval goes there) to a round share, with a handful of ticks. */
function scaleFor(rows) {
  const top = Math.max(...rows.flatMap((r) => [r.upper, r.expected, r.value]), 0.01);
  const bottom = Math.min(...rows.map((r) => r.lower), 0);
  const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].find((s) => (top - bottom) / s <= 5) ?? 10;
  const [from, to] = [Math.floor(bottom / step + 1e-9) * step, Math.ceil(top / step - 1e-9) * step];
  const ticks = Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => from + i * step);
  return {
    ticks,
    at: (share) => `${(100 * (share - from)) / (to - from)}%`,
    wide: (share) => `${(100 * share) / (to - from)}%`,
    places: step < 0.01 ? 1 : 0,
  };
}

function ruler({ ticks, at, places }, page) {
  const anchor = (i) => (i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle");
  return el(
    "svg",
    { class: "scale", "aria-hidden": "true" },
    ...ticks.map((tick, i) => el("text", { x: at(tick), y: "80%", "text-anchor": anchor(i) }, page.percent(tick, places))),
  );
}

function bar({ value, lower, upper, expected }, { ticks, at, wide }) {
  const vertical = (name, x, from, to) => el("line", { class: name, x1: at(x), x2: at(x), y1: from, y2: to });
  return el(
    "svg",
    { "aria-hidden": "true" },
    ...ticks.map((tick) => vertical(Math.abs(tick) < 1e-9 ? "zero" : "grid", tick, "-40%", "140%")),
    el("rect", {
      class: "estimate",
      x: at(Math.min(value, 0)),
      y: "20%",
      width: wide(Math.abs(value)),
      height: "60%",
      rx: 2,
    }),
    vertical("before", expected, "8%", "92%"),
    el("line", { class: "spread", x1: at(lower), x2: at(upper), y1: "50%", y2: "50%" }),
    vertical("spread", lower, "36%", "64%"),
    vertical("spread", upper, "36%", "64%"),
  );
}

function legend({ words }) {
  const mark = (...shapes) => el("svg", { "aria-hidden": "true" }, ...shapes);
  return el(
    "ul",
    { class: "legend" },
    el(
      "li",
      {},
      mark(el("rect", { class: "estimate", x: 0, y: "20%", width: "100%", height: "60%", rx: 2 })),
      words.estimate,
    ),
    el(
      "li",
      {},
      mark(
        el("line", { class: "spread", x1: "5%", x2: "95%", y1: "50%", y2: "50%" }),
        el("line", { class: "spread", x1: "5%", x2: "5%", y1: "30%", y2: "70%" }),
        el("line", { class: "spread", x1: "95%", x2: "95%", y1: "30%", y2: "70%" }),
      ),
      words.interval,
    ),
    el("li", {}, mark(el("line", { class: "before", x1: "50%", x2: "50%", y1: 0, y2: "100%" })), words.prior),
  );
}

// Estimates as a table that is also a picture: a bar for each answer, its interval, and the prior next to it.

import { el, percent } from "/static/dom.js";

/** The tables of an estimate: shares with a picture, or amounts; then the mean or the quantiles of numbers. */
export function estimateTables(display, suffix = "") {
  const { shares, rows, left_out: leftOut, label_head: label, interval_head: interval, numbers } = display;
  const scale = shares ? scaleFor(rows) : null;
  return [
    shares && legend(),
    leftOut && el("p", { class: "quiet" }, leftOut),
    table(`histogram${suffix}`, rows, scale, label, interval),
    numbers.length > 0 && table(`numbers${suffix}`, numbers, null, "Numbers", interval),
  ];
}

/** A table of estimates, with a picture where there is a scale, and what the prior expects where that is known. */
function table(id, rows, scale, label, interval) {
  const prior = rows.some((row) => row.expected !== null);
  const head = el(
    "tr",
    { role: "row" },
    heading(label),
    scale &&
      el(
        "th",
        { class: "picture", scope: "col", role: "columnheader" },
        el("span", { class: "unseen" }, "Picture"),
        ruler(scale),
      ),
    heading("Estimate", true),
    heading(interval, true),
    prior && heading("Prior", true),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, el("bdi", {}, row.label)),
      scale && el("td", { class: "picture", role: "cell" }, bar(row, scale)),
      figure(
        "Estimate",
        row.value_text,
        row.people_text && [el("br"), el("span", { class: "quiet" }, row.people_text)],
      ),
      figure(interval, row.interval_text),
      prior && figure("Prior", row.expected_text),
    ),
  );
  return el(
    "table",
    { class: "histogram", id, role: "table" },
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

function ruler({ ticks, at, places }) {
  const anchor = (i) => (i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle");
  return el(
    "svg",
    { class: "scale", "aria-hidden": "true" },
    ...ticks.map((tick, i) => el("text", { x: at(tick), y: "80%", "text-anchor": anchor(i) }, percent(tick, places))),
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

function legend() {
  const mark = (...shapes) => el("svg", { "aria-hidden": "true" }, ...shapes);
  return el(
    "ul",
    { class: "legend" },
    el(
      "li",
      {},
      mark(el("rect", { class: "estimate", x: 0, y: "20%", width: "100%", height: "60%", rx: 2 })),
      "estimate",
    ),
    el(
      "li",
      {},
      mark(
        el("line", { class: "spread", x1: "5%", x2: "95%", y1: "50%", y2: "50%" }),
        el("line", { class: "spread", x1: "5%", x2: "5%", y1: "30%", y2: "70%" }),
        el("line", { class: "spread", x1: "95%", x2: "95%", y1: "30%", y2: "70%" }),
      ),
      "interval",
    ),
    el("li", {}, mark(el("line", { class: "before", x1: "50%", x2: "50%", y1: 0, y2: "100%" })), "prior"),
  );
}

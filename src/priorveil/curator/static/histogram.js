// Estimates as a table that is also a picture: a bar for each answer, its interval, and the prior next to it.

import { el, labelText, number, percent } from "/static/dom.js";

const MOST = 200; // rows on the page: the largest ones, with a note

/** The table of one cohort's estimates; `level` is that of the intervals, `statistic` what the numbers are per person. */
export function histogram(cohort, level, statistic) {
  return statistic === "share" ? shares(cohort, level) : amounts(cohort, level, statistic);
}

function shares({ labels, values, lower, upper, prior, reports }, level) {
  const all = labels.map((label, x) => ({
    label,
    prior: prior[x],
    share: values[x] / reports,
    low: lower[x] / reports,
    high: upper[x] / reports,
    people: values[x],
  }));
  const rows = all.length > MOST ? all.toSorted((a, b) => b.share - a.share).slice(0, MOST) : all;
  const [scale, interval] = [scaleFor(rows), `${number(100 * level)} % interval`];
  const head = el(
    "tr",
    { role: "row" },
    heading("Answer"),
    el(
      "th",
      { class: "picture", scope: "col", role: "columnheader" },
      el("span", { class: "unseen" }, "Picture"),
      ruler(scale),
    ),
    heading("Estimate", true),
    heading(interval, true),
    heading("Prior", true),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, el("bdi", {}, labelText(row.label))),
      el("td", { class: "picture", role: "cell" }, bar(row, scale)),
      figure(
        "Estimate",
        percent(row.share),
        el("br"),
        el("span", { class: "quiet" }, `${number(Math.round(row.people))} people`),
      ),
      figure(interval, `${points(row.low)} to ${percent(row.high)}`),
      figure("Prior", percent(row.prior)),
    ),
  );
  return [
    legend(),
    all.length > MOST && el("p", { class: "quiet" }, `The ${MOST} largest of ${number(all.length)} answers.`),
    el(
      "table",
      { class: "histogram", id: "histogram", role: "table" },
      el("thead", { role: "rowgroup" }, head),
      el("tbody", { role: "rowgroup" }, ...body),
    ),
  ];
}

/** Sums have the unit of their values: the average per person and the total of each, with as many digits as are known. */
function amounts({ labels, values, lower, upper, prior, reports }, level, statistic) {
  const row = (name, i, people) => {
    const [value, low, high] = [values[i], lower[i], upper[i]].map((total) => (total * people) / reports);
    const shown = (amount) => rounded(amount, (high - low) / 2);
    return el(
      "tr",
      { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, el("bdi", {}, name)),
      figure("Estimate", shown(value)),
      figure(interval, `${shown(low)} to ${shown(high)}`),
      figure("Prior", shown(prior[i] * people)),
    );
  };
  const interval = `${number(100 * level)} % interval`;
  const named = (label, name) =>
    statistic === "statistic" ? `${labelText(label)}, ${name}` : name[0].toUpperCase() + name.slice(1);
  const rows = labels.flatMap((label, i) => [
    row(named(label, "average per person"), i, 1),
    row(named(label, `total of ${number(reports)} people`), i, reports),
  ]);
  const head = [heading("Quantity"), heading("Estimate", true), heading(interval, true), heading("Prior", true)];
  return el(
    "table",
    { class: "histogram", id: "histogram", role: "table" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)),
    el("tbody", { role: "rowgroup" }, ...rows),
  );
}

/** The largest half width of the intervals: of a share in points, rounded up, otherwise in the unit of the values. */
export function widest({ lower, upper, reports }, statistic) {
  const half = Math.max(...upper.map((high, i) => (high - lower[i]) / 2)) / reports;
  const scaled = statistic === "share" ? 100 * half : half;
  const step = 10 ** (Math.floor(Math.log10(scaled)) - 1);
  const width = scaled > 0 ? Math.ceil((scaled / step) * (1 - 1e-12)) * step : 0;
  const unit = { share: " points", statistic: " per person" }[statistic] ?? "";
  return width.toLocaleString("en", { maximumSignificantDigits: 2 }) + unit;
}

/** An amount to the second digit of its half width. */
function rounded(amount, half) {
  const places = half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half)), 0), 12) : 0;
  return amount.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
}

const heading = (text, right = false) =>
  el("th", { scope: "col", role: "columnheader", class: right ? "figure" : null }, text);
const points = (share) => percent(share).replace(" %", "");

/** A cell of numbers. On a phone rows become blocks: `name` then stands above, and roles keep it a table. */
const figure = (name, ...content) => el("td", { class: "figure", role: "cell", "data-name": name }, ...content);

/** A scale from zero (or below, where an interval goes there) to a round share, with a handful of ticks. */
function scaleFor(rows) {
  const top = Math.max(...rows.flatMap((r) => [r.high, r.prior, r.share]), 0.01);
  const bottom = Math.min(...rows.map((r) => r.low), 0);
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

function bar({ share, low, high, prior }, { ticks, at, wide }) {
  const vertical = (name, x, from, to) => el("line", { class: name, x1: at(x), x2: at(x), y1: from, y2: to });
  return el(
    "svg",
    { "aria-hidden": "true" },
    ...ticks.map((tick) => vertical(Math.abs(tick) < 1e-9 ? "zero" : "grid", tick, "-40%", "140%")),
    el("rect", {
      class: "estimate",
      x: at(Math.min(share, 0)),
      y: "20%",
      width: wide(Math.abs(share)),
      height: "60%",
      rx: 2,
    }),
    vertical("before", prior, "8%", "92%"),
    el("line", { class: "spread", x1: at(low), x2: at(high), y1: "50%", y2: "50%" }),
    vertical("spread", low, "36%", "64%"),
    vertical("spread", high, "36%", "64%"),
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

// Estimates as tables that are also pictures: a bar for each share or a point for each average, its interval, and the prior next to it.

import { el } from "/static/dom.js";

/** Lists of the items with the same key, in the order of their first ones. */
export function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = JSON.stringify(keyOf(item));
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return [...groups.values()];
}

/**
 * The tables of an estimate: shares or averages of groups with a picture, or amounts; then the mean or the quantiles of numbers, and
 * what is known about groups. `precision` is a sentence about the first of them, `page` says all in the language of the page.
 */
export function estimateTables({ head, picture, rows, selection, numbers, groups }, suffix, precision, page) {
  const scale = picture ? scaleFor(rows, picture === "bars") : null;
  return [
    scale && legend(scale, rows, page),
    selection && el("p", { class: "quiet" }, selection),
    rows.length > 0 && table(`histogram${suffix}`, rows, scale, head, page),
    precision,
    numbers.length > 0 && table(`numbers${suffix}`, numbers, null, page.words.numbers, page),
    ...groups
      .filter((group) => group.rows.length > 0)
      .map((group, n) =>
        table(
          `group${n}${suffix}`,
          group.rows,
          scaleFor(group.rows, group.picture === "bars"),
          group.head,
          page,
          group.title,
        ),
      ),
  ];
}

/** A table of estimates, with a picture where there is a scale, and what the prior expects where that is known. */
function table(id, rows, scale, label, page, caption = null) {
  const { words } = page;
  const { interval } = words;
  const prior = hasPrior(rows);
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
  const numbersOf = (row) => [
    figure(
      words.estimate,
      page.value(row),
      row.people !== null && [el("br"), el("span", { class: "quiet" }, page.people(row))],
    ),
    figure(interval, page.ends(row)),
  ];
  const line = (row, labels) => {
    const untold = page.untold(row);
    const mark = untold || !scale ? null : scale.hasBars ? bar(row, scale) : point(row, scale);
    return el(
      "tr",
      { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, ...page.separate(labels)),
      scale && el("td", { class: "picture", role: "cell" }, picture(row, scale, mark)),
      untold
        ? el("td", { class: "figure untold", role: "cell", colspan: 2, "data-name": words.estimate }, untold)
        : numbersOf(row),
      prior && figure(words.prior, page.expected(row)),
    );
  };
  const group = ([first, ...others]) =>
    el(
      "tbody",
      { role: "rowgroup", class: "group" },
      el(
        "tr",
        { role: "row" },
        el(
          "th",
          { scope: "rowgroup", role: "rowheader", colspan: head.childElementCount },
          ...page.separate(page.labels(first).slice(0, -1)),
        ),
      ),
      ...[first, ...others].map((row) => line(row, page.labels(row).slice(-1))),
    );
  const groups = groupRows(rows);
  return el(
    "table",
    { class: "histogram", id, role: "table" },
    caption && el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, head),
    groups ? groups.map(group) : el("tbody", { role: "rowgroup" }, ...rows.map((row) => line(row, page.labels(row)))),
  );
}

const hasPrior = (rows) => rows.some((row) => row.expected !== null);

/** The rows by their answers to all questions but the last; null if they are about one question. */
const groupRows = (rows) =>
  rows.some(({ answers }) => answers.length < 2) ? null : groupBy(rows, ({ answers }) => answers.slice(0, -1));

const heading = (text, right = false) =>
  el("th", { scope: "col", role: "columnheader", class: right ? "figure" : null }, text);

/** A cell of numbers. On a phone rows become blocks: `name` then stands above, and roles keep it a table. */
const figure = (name, ...content) => el("td", { class: "figure", role: "cell", "data-name": name }, ...content);

/**
 * A scale with a handful of ticks at round numbers. That of shares has bars, from zero, up to 100 % where an interval has no upper end;
 * that of averages has points. Null if no number is known.
 */
function scaleFor(rows, hasBars) {
  const known = rows
    .flatMap(({ value, lower, upper, expected }) => [value, lower, upper, expected])
    .filter((x) => x !== null);
  if (known.length === 0) return null;
  const top = Math.max(...known, ...(hasBars ? [rows.some(({ upper }) => upper === null) ? 1 : 0.01] : []));
  const bottom = Math.min(...known, ...(hasBars ? [0] : []));
  const length = top - bottom || Math.abs(top) || 1;
  const power = Math.floor(Math.log10(length / 5));
  const steps = [1, 2, 5, 10].map((digit) => digit * 10 ** power);
  const step = steps.find((size) => length / size <= 5 + 1e-9) ?? steps[3];
  const from = Math.floor(bottom / step + 1e-9) * step;
  const to = Math.max(Math.ceil(top / step - 1e-9) * step, from + step);
  const ticks = Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => from + i * step);
  return {
    ticks,
    hasBars,
    at: (value) => `${(100 * (value - from)) / (to - from)}%`,
    wide: (value) => `${(100 * value) / (to - from)}%`,
    places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9) - (hasBars ? 2 : 0)),
  };
}

function ruler({ ticks, hasBars, at, places }, page) {
  const anchor = (i) => (i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle");
  const text = hasBars ? page.percent : page.amount;
  return el(
    "svg",
    { class: "scale", "aria-hidden": "true" },
    ...ticks.map((tick, i) => el("text", { x: at(tick), y: "80%", "text-anchor": anchor(i) }, text(tick, places))),
  );
}

const vertical = (name, x, from, to) => el("line", { class: name, x1: x, x2: x, y1: from, y2: to });

const bar = ({ value }, { at, wide }) =>
  el("rect", {
    class: "estimate",
    x: at(Math.min(value, 0)),
    y: "20%",
    width: wide(Math.abs(value)),
    height: "60%",
    rx: 2,
  });

const point = ({ value }, { at }) =>
  value !== null && el("circle", { class: "estimate point", cx: at(value), cy: "50%", r: 6 });

/** An estimate on its scale, with what the prior expects and the interval, which goes all the way on a side without an end. */
function picture({ lower, upper, expected }, { ticks, at }, estimate) {
  const [from, to] = [lower === null ? "0%" : at(lower), upper === null ? "100%" : at(upper)];
  return el(
    "svg",
    { "aria-hidden": "true" },
    ...ticks.map((tick) => vertical(Math.abs(tick) < 1e-9 ? "zero" : "grid", at(tick), "-40%", "140%")),
    estimate,
    expected !== null && vertical("before", at(expected), "8%", "92%"),
    el("line", { class: "spread", x1: from, x2: to, y1: "50%", y2: "50%" }),
    lower !== null && vertical("spread", from, "36%", "64%"),
    upper !== null && vertical("spread", to, "36%", "64%"),
  );
}

function legend({ hasBars }, rows, { words }) {
  const mark = (...shapes) => el("svg", { "aria-hidden": "true" }, ...shapes);
  const shape = hasBars
    ? el("rect", { class: "estimate", x: 0, y: "20%", width: "100%", height: "60%", rx: 2 })
    : el("circle", { class: "estimate point", cx: "50%", cy: "50%", r: 6 });
  const whiskers = [
    el("line", { class: "spread", x1: "5%", x2: "95%", y1: "50%", y2: "50%" }),
    vertical("spread", "5%", "30%", "70%"),
    vertical("spread", "95%", "30%", "70%"),
  ];
  return el(
    "ul",
    { class: "legend" },
    el("li", {}, mark(shape), words.estimate),
    el("li", {}, mark(...whiskers), words.interval),
    hasPrior(rows) && el("li", {}, mark(vertical("before", "50%", 0, "100%")), words.prior),
  );
}

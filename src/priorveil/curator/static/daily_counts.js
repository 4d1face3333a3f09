// How many reports came on each day: a picture with a bar for each day, and the numbers in a fold-out.

import { el, number } from "/static/dom.js";

const DAY = 86400000; // milliseconds
const WEEK = 7; // days for which the picture has room at least

/** @param {string | number} day */
const dayText = (day) => new Date(day).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });

/**
 * The section about days, from an object such as {"2026-11-17": 120}; nothing where no report was counted.
 *
 * @param {Record<string, number>} counts
 */
export function reportsByDay(counts) {
  const days = Object.keys(counts).sort();
  if (days.length === 0) return null;
  return [
    el("h2", {}, "Reports by day"),
    picture(days, counts),
    el(
      "details",
      { id: "days" },
      el("summary", {}, "Numbers of reports by day"),
      table(days, counts),
      el(
        "p",
        { class: "quiet" },
        "Days are in UTC. Withdrawn reports are still counted here. A crash of the curator can lose the counts of its last second.",
      ),
    ),
  ];
}

/**
 * Bars at their places in time, so that days without reports stay empty.
 *
 * @param {string[]} days
 * @param {Record<string, number>} counts
 */
function picture(days, counts) {
  const [first, last] = [Date.parse(days[0]), Date.parse(days[days.length - 1])];
  const width = 100 / Math.max((last - first) / DAY + 1, WEEK); // percent
  const most = Math.max(...Object.values(counts));
  const bars = days.map((day) => {
    const height = (100 * counts[day]) / most;
    const x = (width * (Date.parse(day) - first)) / DAY;
    return el("rect", {
      class: "estimate",
      x: `${x + 0.1 * width}%`,
      y: `${100 - height}%`,
      width: `${0.8 * width}%`,
      height: `${height}%`,
    });
  });
  const among = `${dayText(first)} to ${dayText(last)}; at most ${number(most)} on one day`;
  return el(
    "figure",
    { class: "days" },
    el(
      "svg",
      { "aria-hidden": "true" },
      ...bars,
      el("line", { class: "zero", x1: 0, x2: "100%", y1: "100%", y2: "100%" }),
    ),
    el("figcaption", { class: "quiet" }, days.length === 1 ? dayText(first) : among),
  );
}

/** @param {string[]} days @param {Record<string, number>} counts */
function table(days, counts) {
  /** @param {string} text @param {string | null} [kind] */
  const head = (text, kind = null) => el("th", { scope: "col", class: kind }, text);
  const rows = days.map((day) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("time", { datetime: day }, dayText(day))),
      el("td", { class: "figure" }, number(counts[day])),
    ),
  );
  return el(
    "table",
    {},
    el("thead", {}, el("tr", {}, head("Day"), head("Reports", "figure"))),
    el("tbody", {}, ...rows),
  );
}

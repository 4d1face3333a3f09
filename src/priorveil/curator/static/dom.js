// Small pieces of pages. Everything becomes text: nothing from a document is ever read as HTML.

/** @typedef {keyof HTMLElementTagNameMap | "svg" | "rect" | "line" | "text" | "circle"} Tag */
/** @template {Tag} T @typedef {T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : SVGElement} Made */

const SVG = "http://www.w3.org/2000/svg";
/** @type {Set<string>} */
const SHAPES = new Set(["svg", "rect", "line", "text", "circle"]);

/**
 * An element with attributes, listeners (`onclick: f`) and children; false and null attributes are left out.
 *
 * @template {Tag} T
 * @param {T} tag
 * @param {Record<string, any>} [attributes]
 * @param {any[]} children
 * @returns {Made<T>}
 */
export function el(tag, attributes = {}, ...children) {
  const node = SHAPES.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return /** @type {Made<T>} */ (/** @type {unknown} */ (node));
}

/** A number for people: three digits that matter, or all of a large one. @param {number} value */
export function number(value) {
  if (value === Infinity) return "any amount";
  const digits = Math.abs(value) >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 };
  return value.toLocaleString("en", digits);
}

/** How many reports, in words. @param {number} count */
export const reportsText = (count) => `${number(count)} ${count === 1 ? "report" : "reports"}`;

/**
 * The day of a time, in the reader's own place unless another time zone is given.
 *
 * @param {string} time
 * @param {string} [timeZone]
 */
export const day = (time, timeZone = undefined) =>
  el("time", { datetime: time }, new Date(time).toLocaleDateString(undefined, { dateStyle: "medium", timeZone }));

/** A time, in the reader's own place. @param {string} time */
export const moment = (time) =>
  el("time", { datetime: time }, new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }));

/** The head of a page of the dashboard, with the way back. @param {string} title */
export const pageHead = (title) => [
  el("p", {}, el("a", { href: "#" }, "All campaigns")),
  el("h1", { tabindex: "-1" }, title),
];

/** A table that scrolls on its own where it is too wide for the page. @param {string} name @param {Element} table */
export const scrolling = (name, table) =>
  el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table);

/** Give the person a file, as a download. @param {string} name @param {Blob} blob */
export function saveFile(name, blob) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// Small pieces that both pages use. Everything becomes text: nothing from a document is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = new Set(["svg", "rect", "line", "text", "path", "circle"]);

/** An element with attributes, listeners (`onclick: f`) and children; false and null attributes are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = SHAPES.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A number for people: three digits that matter, or all of a large one. */
export function number(value) {
  if (value === Infinity) return "any amount";
  const digits = Math.abs(value) >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 };
  return value.toLocaleString("en", digits);
}

/** A factor, rounded up: a promise must not look smaller than it is. */
export function factor(level) {
  const value = Math.exp(level);
  if (!Number.isFinite(value) || value >= 1e6) return value === Infinity ? "without bound" : value.toExponential(1);
  const scale = value < 100 ? 100 : 1;
  return (Math.ceil(value * scale) / scale).toLocaleString("en", { maximumFractionDigits: 2 });
}

/** A number with so many decimals. */
export const amount = (value, places) =>
  value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });

export const percent = (share, places = 1) => `${amount(100 * share, places)} %`;

/** The time in words of the reader's own place. */
export function moment(date) {
  return date.toLocaleString(undefined, { dateStyle: "long", timeStyle: "short" });
}

/** A label as people read it: the levels of several attributes with commas. */
export const labelText = (label) => (Array.isArray(label) ? label.join(", ") : String(label));

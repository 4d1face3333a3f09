// Notes of a result, which are codes with values, in sentences: the twin of words/notes.py. The catalogue has the texts.

const upTwo = { maximumSignificantDigits: 2, roundingMode: "ceil" };
const fixed = (places) => (value, speak) =>
  speak.number(value, { minimumFractionDigits: places, maximumFractionDigits: places });
const digits = (count) => (value, speak) => speak.number(value, { maximumSignificantDigits: count });
const label = (value) => [value].flat().join(", ");

const VALUE_TEXTS = {
  change: (share, speak) => digits(2)(100 * share, speak),
  confidence: (share, speak) => speak.number(share, { style: "percent", maximumFractionDigits: 1 }),
  errors: fixed(1),
  first: label,
  ldp: (level, speak) => speak.level(level),
  lip: (level, speak) => speak.level(level),
  p_value: (p, speak) =>
    p < 1e-4 ? `p < ${speak.number(1e-4, { maximumFractionDigits: 4 })}` : `p = ${digits(3)(p, speak)}`,
  people: (count, speak) => speak.say("people", { count: speak.number(Math.ceil(count), upTwo) }),
  second: label,
  shortfall: digits(1),
  times: fixed(1),
  width: (number, speak) => speak.number(number, upTwo),
};

/** A note as a sentence in the language of the speaker. */
export function sentence(note, speak) {
  const text = noteText(note, speak);
  return `${text.charAt(0).toLocaleUpperCase(speak.language)}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** The different sentences of notes; null is none. */
export const sentences = (notes, speak) => [
  ...new Set(notes.filter((note) => note !== null).map((note) => sentence(note, speak))),
];

/** The text of a note; its values may be notes themselves. */
function noteText({ code, values }, speak) {
  const texts = Object.entries(values).map(([name, value]) => [name, valueText(name, value, speak)]);
  return speak.say(code, Object.fromEntries(texts));
}

function valueText(name, value, speak) {
  const notes = [value].flat().filter((each) => each?.code);
  if (notes.length > 0) return notes.map((note) => noteText(note, speak)).join("; ");
  if (name in VALUE_TEXTS) return VALUE_TEXTS[name](value, speak);
  return typeof value === "number" ? speak.exact(value) : `${value}`;
}

// Questions about a number, while a survey is written.

import { el } from "/static/dom.js";
import { percentOf, shareOf, totalText } from "/static/survey_shares.js";
/** @import { SurveyForm } from "/static/survey_form.js" */

const QUERIES = [
  ["mean", "The average"],
  ["quantiles", "The median and other quantiles"],
  ["shares", "The shares of ranges"],
];

const newRange = (from = "", to = "", share = "") => ({ from, to, share });
export const numberOf = (text) => (text === "" || Number.isNaN(Number(text)) ? text : Number(text));

/** A number. */
class NumberKind {
  title = "A number";
  isGate = false;
  joins = true;
  countsPeople = false; // people's own numbers are not sent
  statistic = { query: "mean", words: "average of" };

  // -- its document ----------------------------------------------------------------------------------------------------

  blank() {
    return { ranges: [newRange(), newRange()], from: "", to: "", query: "mean" };
  }

  options() {
    return [];
  }

  document({ from, to, unit }, _languages, allOf) {
    const range = from === "" && to === "" ? {} : { range: [numberOf(from), numberOf(to)] };
    const units = allOf(unit);
    return { ...range, ...(Object.values(units).some(Boolean) && { unit: units }) };
  }

  read(question, { range = ["", ""], query = "mean" }) {
    [question.from, question.to] = range.map(String);
    question.query = query;
  }

  /** One that is not always asked is counted in ranges. */
  query(question, gate) {
    return gate ? null : question.query;
  }

  canBeAskedAbout({ gate }) {
    return gate === "";
  }

  shares({ ranges }) {
    const given = ranges.filter(({ from, to, share }) => from !== "" || to !== "" || share !== "");
    return Object.fromEntries(given.map(({ from, to, share }) => [`${from} to ${to}`, shareOf(share)]));
  }

  readShares(question, prior) {
    question.ranges = Object.entries(prior).map(([range, share]) => {
      const [from, to] = range.split(" to ");
      return newRange(from, to, percentOf(share));
    });
  }

  entry(text) {
    return text;
  }

  // -- its part of the form --------------------------------------------------------------------------------------------

  /** @param {SurveyForm} form */
  fields(form, question) {
    const { key } = question;
    const set = (value) => {
      question.query = value;
    };
    const query = form.isConditional(question)
      ? el("p", { class: "quiet" }, "A number that is not always asked is counted in ranges.")
      : form.select(`${key}-query`, "What do you want to know?", QUERIES, question.query, set);
    return [
      el(
        "div",
        { class: "row" },
        form.numberField(`${key}-range`, "From", question, "from"),
        form.numberField(`${key}-to`, "To", question, "to"),
      ),
      el("p", { class: "hint quiet" }, "Numbers outside count as the nearest end."),
      form.texts(`${key}-unit`, "Unit", question, "unit"),
      form.groupOf(question) ? null : query,
    ];
  }

  moreFields() {
    return [];
  }

  /** Ranges with their shares, whose fields `percent` makes. @param {SurveyForm} form */
  shareFields(form, question, percent) {
    const { key, ranges } = question;
    const rows = ranges.map((range, i) =>
      el(
        "div",
        { class: "row" },
        form.numberField(`${key}-from-${i}`, `Range ${i + 1} from`, range, "from"),
        form.numberField(`${key}-to-${i}`, "to", range, "to"),
        percent(`${key}-share-${i}`, "Share (%)", range),
      ),
    );
    const add = () => {
      ranges.push(newRange(ranges.at(-1)?.to ?? ""));
      form.draw(`${key}-to-${ranges.length - 1}`);
    };
    const button = form.button(`${key}-add-range`, "Add a range", null, add);
    return [...rows, el("div", { class: "actions tight" }, button)];
  }

  shareOwners(question) {
    return question.ranges;
  }

  totalText(total) {
    return totalText(total);
  }
}

export const NUMBERS = { number: new NumberKind() };

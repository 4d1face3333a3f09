// The parts of the form about the whole survey: what people read first, languages, protection, and who may answer when.

import { el } from "/static/dom.js";
import { likelyAfterwards } from "/static/levels.js";
import { ABOUT, TEXTS } from "/static/survey_draft.js";
/** @import { SurveyForm } from "/static/survey_form.js" */

const TAGS =
  "ar bg bn cs da de el en es et fa fi fr ga he hi hr hu id is it ja ko lt lv mt ms nb nl pl ps pt ro ru sk sl so sq sr sv sw ta th ti tr uk ur vi zh";
const LANGUAGES = TAGS.split(" ");
const LIKELY = 0.1; // an answer that is so likely before is the example of what epsilon means
const ALMOST_CERTAIN = 0.999; // a share above it would round up to 100 %

export const nameOfLanguage = (tag) => new Intl.DisplayNames(["en"], { type: "language" }).of(tag) ?? tag;

/** @param {SurveyForm} form */
export function aboutPart(form) {
  const { draft } = form;
  const textOf = ({ name, words, hint = "" }) => form.texts(name, words, draft, name, hint);
  const contact = "Whom people can ask: an address or a telephone number.";
  return [
    ...ABOUT.filter(({ folded }) => !folded).map(textOf),
    form.fold(
      "about",
      "Description, contact and languages",
      ...ABOUT.filter(({ folded }) => folded).map(textOf),
      form.textField("contact", "Contact", draft, "contact", {}, contact),
      languages(form),
    ),
  ];
}

/** @param {SurveyForm} form */
function languages(form) {
  const { draft } = form;
  const more = LANGUAGES.filter((tag) => !draft.languages.includes(tag)).map((tag) => [tag, nameOfLanguage(tag)]);
  more.sort(([, a], [, b]) => a.localeCompare(b, "en"));
  const replaceFirst = (tag) => {
    for (const texts of allTexts(draft)) if (!(tag in texts)) texts[tag] = texts[draft.languages[0]] ?? "";
    draft.languages[0] = tag;
  };
  const remove = (tag) => () => {
    draft.languages = draft.languages.filter((other) => other !== tag);
    form.draw("more-languages");
  };
  const [first, ...others] = draft.languages;
  const removable = (tag) => {
    const name = nameOfLanguage(tag);
    return el("li", {}, name, " ", form.button(`without-${tag}`, "Remove", `Remove ${name}`, remove(tag)));
  };
  return [
    form.select("languages", "Language", [[first, nameOfLanguage(first)], ...more], first, replaceFirst),
    others.length > 0 && el("ul", { class: "tags" }, ...others.map(removable)),
    form.select(
      "more-languages",
      "Add a language",
      [["", "Choose…"], ...more],
      "",
      (tag) => tag && draft.languages.push(tag),
      "Everything that people read is then needed in every language.",
    ),
  ];
}

const allTexts = (draft) => [
  ...TEXTS.map((name) => draft[name]),
  ...draft.questions.flatMap(({ text, hint, unit, options }) => [
    text,
    hint,
    unit,
    ...options.map((option) => option.text),
  ]),
];

/** @param {SurveyForm} form */
export function protectionPart(form) {
  const meaning = el("p", { id: "epsilon-meaning", class: "promise" });
  const explain = () => {
    meaning.textContent = meaningOf(Number(form.draft.epsilon));
  };
  const control = form.input("epsilon", form.draft, "epsilon", {
    type: "number",
    step: "0.1",
    min: "0",
    class: "short",
    "aria-describedby": "epsilon-meaning epsilon-hint",
  });
  control.addEventListener("input", explain);
  explain();
  const words = "How much everything that one person sends may reveal (epsilon)";
  const hint = "Smaller is safer, but needs more people. Usual values are 0.5 to 2.";
  return [el("h2", {}, "Protection"), form.field(words, control, hint), meaning];
}

/** What a budget means for one answer. */
function meaningOf(epsilon) {
  if (!(epsilon > 0)) return "Give a number above zero, such as 1.";
  const after = likelyAfterwards(LIKELY, epsilon, epsilon);
  const most =
    after > ALMOST_CERTAIN ? "may be almost certain" : `is at most ${Math.ceil(1000 * after - 1e-9) / 10} % likely`;
  return `At ${epsilon}, an answer that was ${100 * LIKELY} % likely ${most} after everything that a person sends, if answers are as common as you say.`;
}

/** @param {SurveyForm} form */
export function timesPart(form) {
  const { draft } = form;
  const moment = (id, words, hint = "") =>
    form.textField(id, words, draft, id, { type: "datetime-local", class: "medium" }, hint);
  const count = (id, words, placeholder) =>
    form.numberField(id, words, draft, id, { step: "1", min: "0", placeholder });
  const admissions = [
    ["open", "Everybody who has the link"],
    ["invitation", "One answer for each invitation"],
  ];
  const admit = (value) => {
    draft.admission = value;
  };
  return form.fold(
    "times",
    "When, and who may answer",
    moment("opens", "Opens"),
    moment(
      "closes",
      "Closes",
      "Times are in your own time zone. Without them, people can answer until you close the survey.",
    ),
    moment("keep_until", "Reports are deleted", "Some time after the survey has closed. Results are kept."),
    form.select("admission", "Who may answer", admissions, draft.admission, admit),
    count("smallest_count", "Show no result from fewer reports than", "100"),
    count("most_reports", "Accept no more reports than", "no limit"),
  );
}

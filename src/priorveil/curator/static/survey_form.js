// The form that a survey is written in. It changes the draft while somebody types, and is drawn again when its shape changes.

import { el } from "/static/dom.js";
import { direction } from "/static/language.js";
import { likelyAfterwards } from "/static/levels.js";
import { hasShares, isOfPeople, readTable, requireColumns } from "/static/prior_table.js";
import {
  addRefusal, freeName, gatesFor, groupOf, groupQueries, groupQuestions, hasRefusal, newGroup, newOption, newQuestion, newRange,
  optionText, optionsOf,
} from "/static/survey_draft.js";

const KINDS = [
  ["yes-no", "Yes or no"],
  ["choice", "One choice"],
  ["choices", "Tick all that apply"],
  ["number", "A number"],
];
const QUERIES = [
  ["mean", "The average"],
  ["quantiles", "The median and other quantiles"],
  ["shares", "The shares of ranges"],
];
const TAGS =
  "ar bg bn cs da de el en es et fa fi fr ga he hi hr hu id is it ja ko lt lv mt ms nb nl pl ps pt ro ru sk sl so sq sr sv sw ta th ti tr uk ur vi zh";
const LANGUAGES = TAGS.split(" ");
const LIKELY = 0.1; // an answer that is so likely before is the example of what epsilon means
const ALMOST_CERTAIN = 0.999; // a share above it would round up to 100 %

const nameOfLanguage = (tag) => new Intl.DisplayNames(["en"], { type: "language" }).of(tag) ?? tag;

/**
 * The form of a draft, as an element. `changed` is called after every change. `form.focusField(keys, text)` shows what is wrong with
 * the field that these keys of the document lead to.
 */
export function surveyForm(draft, changed) {
  const place = el("div", { class: "survey" });
  let problem = null; // what is wrong with which field: { id, text }

  /** Draw everything again; the focus stays where it is, or goes to `focus`. */
  function draw(focus = document.activeElement?.id) {
    place.replaceChildren(...parts().flat(Infinity).filter(Boolean));
    showProblem();
    if (focus) document.getElementById(focus)?.focus();
    changed();
  }

  // -- pieces ----------------------------------------------------------------------------------------------------------

  /** An input that writes into `owner[name]`. */
  function input(id, owner, name, attributes = {}) {
    const take = (event) => {
      owner[name] = event.target.value;
      forgive(id);
      changed();
    };
    return el("input", { type: "text", autocomplete: "off", ...attributes, id, value: owner[name] ?? "", oninput: take, onchange: take });
  }

  const field = (words, control, hint = null) => [
    el("label", { class: "field" }, words, control),
    hint && el("p", { class: "hint quiet", id: `${control.id}-hint` }, hint),
  ];

  const textField = (id, words, owner, name, attributes = {}, hint = null) => field(words, input(id, owner, name, attributes), hint);

  const numberField = (id, words, owner, name, attributes = {}, hint = null) =>
    field(words, input(id, owner, name, { type: "number", step: "any", class: "short", ...attributes }), hint);

  /** A text in every language. */
  const texts = (id, words, owner, name, hint = null) =>
    draft.languages.map((tag, i) => {
      const named = draft.languages.length > 1 ? `${words} (${nameOfLanguage(tag)})` : words;
      const control = input(`${id}-${tag}`, owner[name], tag, { lang: tag, dir: direction(tag) });
      return field(named, control, i === draft.languages.length - 1 ? hint : null);
    });

  const select = (id, words, options, current, change, hint = null) =>
    field(
      words,
      el(
        "select",
        {
          id,
          onchange: (event) => {
            change(event.target.value);
            forgive(id);
            draw();
          },
        },
        ...options.map(([value, text]) => el("option", { value, selected: value === current }, text)),
      ),
      hint,
    );

  const button = (id, words, label, onclick, disabled = false) =>
    el("button", { type: "button", class: "plain small", id, "aria-label": label, onclick, disabled }, words);

  /** A fold-out that stays as it is on the page when the form is drawn again. (An event of its opening comes too late.) */
  function fold(id, title, ...content) {
    const open = document.getElementById(id)?.open ?? false;
    return el("details", { id, open }, el("summary", {}, title), ...content);
  }

  // -- the whole survey ------------------------------------------------------------------------------------------------

  const parts = () => [
    texts("title", "Title", draft, "title"),
    texts("asked_by", "Who asks", draft, "asked_by", "People read this first, such as: The works council."),
    texts("purpose", "Why", draft, "purpose", "What the answers will be used for."),
    fold(
      "about",
      "Description, contact and languages",
      texts("description", "Description", draft, "description"),
      textField("contact", "Contact", draft, "contact", {}, "Whom people can ask: an address or a telephone number."),
      languages(),
    ),
    el("h2", { id: "questions-title" }, "Questions"),
    el("p", { class: "quiet" }, "All questions share one budget: every extra question makes all results less precise, so ask few."),
    draft.questions.map(questionCard),
    el("div", { class: "actions" }, el("button", { type: "button", class: "plain", id: "add-question", onclick: addQuestion }, "Add a question")),
    draft.questions.length > 1 && together(),
    el("h2", {}, "Protection"),
    protection(),
    fold("times", "When, and who may answer", times()),
  ];

  function languages() {
    const more = LANGUAGES.filter((tag) => !draft.languages.includes(tag)).map((tag) => [tag, nameOfLanguage(tag)]);
    more.sort(([, a], [, b]) => a.localeCompare(b, "en"));
    const replaceFirst = (tag) => {
      for (const texts of allTexts()) if (!(tag in texts)) texts[tag] = texts[draft.languages[0]] ?? "";
      draft.languages[0] = tag;
    };
    const [first, ...others] = draft.languages;
    return [
      select("languages", "Language", [[first, nameOfLanguage(first)], ...more], first, replaceFirst),
      others.length > 0 &&
        el(
          "ul",
          { class: "tags" },
          ...others.map((tag) =>
            el("li", {}, nameOfLanguage(tag), " ", button(`without-${tag}`, "Remove", `Remove ${nameOfLanguage(tag)}`, () => {
              draft.languages = draft.languages.filter((other) => other !== tag);
              draw("more-languages");
            })),
          ),
        ),
      select("more-languages", "Add a language", [["", "Choose…"], ...more], "", (tag) => tag && draft.languages.push(tag),
        "Everything that people read is then needed in every language."),
    ];
  }

  const allTexts = () => [
    ...["title", "description", "asked_by", "purpose"].map((name) => draft[name]),
    ...draft.questions.flatMap(({ text, hint, unit, options }) => [text, hint, unit, ...options.map((option) => option.text)]),
  ];

  function protection() {
    const meaning = el("p", { id: "epsilon-meaning", class: "promise" });
    const explain = () => {
      const epsilon = Number(draft.epsilon);
      const after = likelyAfterwards(LIKELY, epsilon, epsilon);
      const most = after > ALMOST_CERTAIN ? "may be almost certain" : `is at most ${Math.ceil(1000 * after - 1e-9) / 10} % likely`;
      meaning.textContent =
        epsilon > 0
          ? `At ${epsilon}, an answer that was ${100 * LIKELY} % likely ${most} after everything that a person sends, if answers are as common as you say.`
          : "Give a number above zero, such as 1.";
    };
    const control = input("epsilon", draft, "epsilon", { type: "number", step: "0.1", min: "0", class: "short", "aria-describedby": "epsilon-meaning epsilon-hint" });
    control.addEventListener("input", explain);
    explain();
    return [
      field("How much everything that one person sends may reveal (epsilon)", control, "Smaller is safer, but needs more people. Usual values are 0.5 to 2."),
      meaning,
    ];
  }

  function times() {
    const moment = (id, words, hint = null) => textField(id, words, draft, id, { type: "datetime-local", class: "medium" }, hint);
    const admissions = [["open", "Everybody who has the link"], ["invitation", "One answer for each invitation"]];
    const whole = { step: "1", min: "0" };
    return [
      moment("opens", "Opens"),
      moment("closes", "Closes", "Times are in your own time zone. Without them, people can answer until you close the survey."),
      moment("keep_until", "Reports are deleted", "Some time after the survey has closed. Results are kept."),
      select("admission", "Who may answer", admissions, draft.admission, (value) => (draft.admission = value)),
      numberField("smallest_count", "Show no result from fewer reports than", draft, "smallest_count", { ...whole, placeholder: "100" }),
      numberField("most_reports", "Accept no more reports than", draft, "most_reports", { ...whole, placeholder: "no limit" }),
    ];
  }

  // -- questions -------------------------------------------------------------------------------------------------------

  function addQuestion() {
    const question = newQuestion(freeName(draft));
    draft.questions.push(question);
    draw(`${question.key}-text-${draft.languages[0]}`);
  }

  function moveQuestion(question, by) {
    const from = draft.questions.indexOf(question);
    draft.questions.splice(from, 1);
    draft.questions.splice(from + by, 0, question);
    draw(`${question.key}-title`);
  }

  function removeQuestion(question) {
    draft.questions = draft.questions.filter((other) => other !== question);
    askAlways(question.key);
    for (const group of draft.groups) group.questions = group.questions.filter((key) => key !== question.key);
    draw("add-question");
  }

  /** Ask always what depended on a question that has gone or has other answers now. */
  function askAlways(key) {
    for (const other of draft.questions) if (other.gate === key) [other.gate, other.gateOptions] = ["", []];
  }

  function questionCard(question, at) {
    const { key } = question;
    const number = `question ${at + 1}`;
    const setKind = (kind) => {
      question.kind = kind;
      askAlways(key);
    };
    return el(
      "section",
      { class: "card", id: key, "aria-labelledby": `${key}-title` },
      el(
        "div",
        { class: "card-head" },
        el("h3", { id: `${key}-title`, tabindex: "-1" }, `Question ${at + 1}`),
        button(`${key}-up`, "Up", `Move ${number} up`, () => moveQuestion(question, -1), at === 0),
        button(`${key}-down`, "Down", `Move ${number} down`, () => moveQuestion(question, 1), at === draft.questions.length - 1),
        button(`${key}-remove`, "Remove", `Remove ${number}`, () => removeQuestion(question), draft.questions.length === 1),
      ),
      texts(`${key}-text`, "Question", question, "text"),
      select(`${key}-kind`, "Kind of answer", KINDS, question.kind, setKind),
      question.kind === "number" ? numberParts(question) : optionParts(question, number),
      gatesFor(draft, question).length > 0 && condition(question),
      groupOf(draft, question)
        ? el("p", { class: "quiet" }, "Say below how common its answers are, with the questions that it is designed together with.")
        : knowledge(question, [question], `How common are the answers to ${number}?`),
      fold(
        `${key}-more`,
        `More about ${number}`,
        texts(`${key}-hint`, "Explanation", question, "hint", "Shown below the question."),
        textField(`${key}-name`, "Short name", question, "name", { class: "medium", spellcheck: "false" }, "Names it in results and files: letters, digits, _ and -."),
        !groupOf(draft, question) && numberField(`${key}-weight`, "Weight", question, "weight", { min: "0", placeholder: "1" }, "At 2, its precision counts twice when the budget is divided."),
        ["choice", "choices"].includes(question.kind) && codeFields(question),
      ),
    );
  }

  function numberParts(question) {
    const { key } = question;
    const conditional = gatesFor(draft, question).some((gate) => gate.key === question.gate);
    return [
      el(
        "div",
        { class: "row" },
        numberField(`${key}-range`, "From", question, "from"),
        numberField(`${key}-to`, "To", question, "to"),
      ),
      el("p", { class: "hint quiet" }, "Numbers outside count as the nearest end."),
      texts(`${key}-unit`, "Unit", question, "unit"),
      groupOf(draft, question)
        ? null
        : conditional
          ? el("p", { class: "quiet" }, "A number that is not always asked is counted in ranges.")
          : select(`${key}-query`, "What do you want to know?", QUERIES, question.query, (value) => (question.query = value)),
    ];
  }

  function optionParts(question, number) {
    const { key } = question;
    const refusal = !hasRefusal(question) && button(`${key}-refusal`, "Add “prefer not to say”", `Add “prefer not to say” to ${number}`, () => {
      addRefusal(question, draft.languages);
      draw(`${key}-add`);
    });
    if (question.kind === "yes-no") return el("div", { class: "actions tight" }, refusal);
    const add = () => {
      const option = newOption();
      question.options.push(option);
      draw(`${option.key}-${draft.languages[0]}`);
    };
    const remove = (option) => {
      question.options = question.options.filter((other) => other !== option);
      draw(`${key}-add`);
    };
    const row = (option, i) =>
      el(
        "div",
        { class: "option" },
        el("div", {}, texts(option.key, `Option ${i + 1}`, option, "text")),
        button(`${option.key}-remove`, "Remove", `Remove option ${i + 1} of ${number}`, () => remove(option), question.options.length <= 1),
      );
    return el(
      "fieldset",
      { id: `${key}-options`, "aria-label": `Options of ${number}` },
      ...question.options.map(row),
      el("div", { class: "actions tight" }, button(`${key}-add`, "Add an option", `Add an option to ${number}`, add), refusal),
    );
  }

  const codeFields = (question) =>
    optionsOf(question, draft.languages).map(({ option, code }, i) =>
      textField(`${option.key}-code`, `Code of option ${i + 1}`, option, "code", { class: "medium", placeholder: code, spellcheck: "false" }),
    );

  function condition(question) {
    const gates = gatesFor(draft, question);
    const gate = gates.find(({ key }) => key === question.gate);
    const titles = gates.map((other) => [other.key, `${draft.questions.indexOf(other) + 1}. ${other.text[draft.languages[0]] || other.name}`]);
    const choose = (key) => ([question.gate, question.gateOptions] = [key, []]);
    const toggle = (key) => (event) => {
      question.gateOptions = event.target.checked ? [...question.gateOptions, key] : question.gateOptions.filter((other) => other !== key);
      forgive(`${question.key}-asked_if`);
      changed();
    };
    return [
      select(`${question.key}-gate`, "Asked", [["", "always"], ...titles.map(([key, text]) => [key, `only after certain answers to ${text}`])], gate?.key ?? "", choose),
      gate &&
        el(
          "fieldset",
          { class: "checks", id: `${question.key}-asked_if` },
          el("legend", {}, "After which answers?"),
          ...optionsOf(gate, draft.languages).map(({ option }) =>
            el(
              "label",
              { class: "check" },
              el("input", { type: "checkbox", id: `${question.key}-after-${option.key}`, checked: question.gateOptions.includes(option.key), onchange: toggle(option.key) }),
              el("bdi", {}, optionText(gate, option, draft.languages)),
            ),
          ),
          el("p", { class: "hint quiet" }, "Every device sends a scrambled report, so nobody can be sure whether it was asked."),
        ),
    ];
  }

  // -- what is known ---------------------------------------------------------------------------------------------------

  /** What is known about the answers to a question, or to several: nothing, shares, or a table. */
  function knowledge(owner, questions, title) {
    const id = `${owner.key}-prior`;
    const ways = [["unknown", "I do not know"], ["typed", "I type the shares"], ["table", "I have a table"]];
    const offered = questions.length === 1 ? ways : ways.filter(([way]) => way !== "typed");
    const details = { unknown, typed: () => typedShares(owner), table: () => tableFields(owner, questions) };
    const radio = ([way, words]) => [
      el(
        "label",
        { class: "check" },
        el("input", {
          type: "radio",
          name: id,
          id: `${id}-${way}`,
          value: way,
          checked: owner.prior === way,
          onchange: () => {
            owner.prior = way;
            forgive(id);
            draw();
          },
        }),
        words,
      ),
      owner.prior === way && el("div", { class: "inner" }, details[way]()),
    ];
    return el(
      "fieldset",
      { class: "checks", id },
      el("legend", {}, title),
      ...offered.map(radio),
    );
  }

  const unknown = () =>
    el(
      "p",
      { class: "hint quiet" },
      "Then nothing is assumed: the protection holds no matter what anyone knows or believes (LDP). That is safe, but needs more people. Even rough shares, from a census or a similar town, would help. They shape the noise, never the result.",
    );

  function typedShares(question) {
    const { key } = question;
    const sum = el("p", { class: "hint quiet", id: `${key}-sum`, "aria-live": "polite" });
    const several = question.kind === "choices";
    const entries = () => (question.kind === "number" ? question.ranges : optionsOf(question, draft.languages).map(({ option }) => option));
    const add = () => {
      const total = Math.round(1e6 * entries().reduce((total, { share }) => total + Number(share), 0)) / 1e6;
      sum.textContent = several
        ? "The share of people who tick each option. They need not add up to 100 %."
        : `Total: ${total} %${total === 100 ? "" : ", which should be 100 %"}.`;
    };
    const percent = (id, words, owner) => {
      const control = input(id, owner, "share", { type: "number", step: "any", min: "0", max: "100", class: "short" });
      control.addEventListener("input", add);
      return field(words, control);
    };
    add();
    const conditional = gatesFor(draft, question).some((gate) => gate.key === question.gate);
    return el(
      "div",
      { class: "shares" },
      question.kind === "number"
        ? rangeShares(question, percent)
        : optionsOf(question, draft.languages).map(({ option }) =>
            percent(`${option.key}-share`, [el("bdi", {}, optionText(question, option, draft.languages)), " (%)"], option),
          ),
      sum,
      conditional && el("p", { class: "hint quiet" }, "Give the shares among the people who are asked."),
    );
  }

  function rangeShares(question, percent) {
    const { key } = question;
    const rows = question.ranges.map((range, i) =>
      el(
        "div",
        { class: "row" },
        numberField(`${key}-from-${i}`, `Range ${i + 1} from`, range, "from"),
        numberField(`${key}-to-${i}`, "to", range, "to"),
        percent(`${key}-share-${i}`, "Share (%)", range),
      ),
    );
    const add = () => {
      question.ranges.push(newRange(question.ranges.at(-1)?.to ?? ""));
      draw(`${key}-to-${question.ranges.length - 1}`);
    };
    return [...rows, el("div", { class: "actions tight" }, button(`${key}-add-range`, "Add a range", null, add))];
  }

  function tableFields(owner, questions) {
    const id = `${owner.key}-table`;
    const refuse = (text) => {
      problem = { id, text };
      draw(id);
    };
    const load = async (event) => {
      const [file] = event.target.files;
      if (!file) return;
      forgive(id);
      owner.table = null;
      try {
        const table = readTable(file.name, await file.text());
        requireColumns(table, questions);
        owner.table = table;
      } catch (error) {
        return refuse(error.message);
      }
      draw(id);
    };
    const names = questions.map(({ name }) => name.trim()).join(", ");
    const columns = questions.length === 1 ? "A CSV with a column of answers" : `A CSV with the columns ${names}`;
    return [
      field(
        "Table",
        el("input", { type: "file", id, accept: ".csv,.tsv,.txt,text/csv", onchange: load, "aria-describedby": `${id}-hint` }),
        `${columns} and a column share or count; or with a row for each person, which is counted here: only the counts are sent.`,
      ),
      owner.table && el("p", { id: `${id}-read` }, tableSummary(owner.table)),
      owner.table &&
        !hasShares(owner.table) &&
        el(
          "label",
          { class: "check" },
          el("input", {
            type: "checkbox",
            id: `${owner.key}-public`,
            checked: owner.public,
            onchange: (event) => {
              owner.public = event.target.checked;
              forgive(`${owner.key}-prior`);
              changed();
            },
          }),
          "This table is already public. Otherwise answers of fewer than ten people are refused, and shares are rounded.",
        ),
    ];
  }

  function tableSummary(table) {
    const rows = `${table.rows.length.toLocaleString("en")} ${table.rows.length === 1 ? "row" : "rows"}`;
    const what = isOfPeople(table) ? `${rows}, one for each person` : `${rows} of ${hasShares(table) ? "shares" : "counts"}`;
    return [el("strong", {}, el("bdi", {}, table.name)), `: ${what}.`];
  }

  // -- questions designed together -------------------------------------------------------------------------------------

  function together() {
    const add = () => {
      const group = newGroup();
      draft.groups.push(group);
      draw(`${group.key}-title`);
    };
    return fold(
      "together",
      "Questions designed together",
      el("p", {}, "For a table of two questions, an average by group, or shares within a group: these questions share one report."),
      draft.groups.map(groupCard),
      el("div", { class: "actions tight" }, button("add-group", "Design questions together", null, add)),
    );
  }

  function groupCard(group, at) {
    const { key } = group;
    const remove = () => {
      draft.groups = draft.groups.filter((other) => other !== group);
      draw("add-group");
    };
    const toggle = (question) => (event) => {
      group.questions = event.target.checked ? [...group.questions, question] : group.questions.filter((other) => other !== question);
      draw();
    };
    const offered = draft.questions.filter(({ kind }) => kind !== "choices");
    const questions = groupQuestions(draft, group);
    return el(
      "section",
      { class: "card", "aria-labelledby": `${key}-title` },
      el(
        "div",
        { class: "card-head" },
        el("h3", { id: `${key}-title`, tabindex: "-1" }, `Together ${at + 1}`),
        button(`${key}-remove`, "Remove", `Remove together ${at + 1}`, remove),
      ),
      el(
        "fieldset",
        { class: "checks", id: `${key}-questions` },
        el("legend", {}, "Which questions?"),
        ...offered.map((question) =>
          el(
            "label",
            { class: "check" },
            el("input", { type: "checkbox", id: `${key}-with-${question.key}`, checked: group.questions.includes(question.key), onchange: toggle(question.key) }),
            el("bdi", {}, `${draft.questions.indexOf(question) + 1}. ${question.text[draft.languages[0]] || question.name}`),
          ),
        ),
      ),
      select(`${key}-query`, "What do you want to know?", groupQueries(draft, group), group.query, (value) => (group.query = value)),
      knowledge(group, questions, "How common are the combinations of answers?"),
    );
  }

  // -- what is wrong ---------------------------------------------------------------------------------------------------

  /** The ids of the fields that keys of the document lead to, the nearest first. */
  function fieldIds([first, number, name, ...rest]) {
    const owner = first === "question" ? draft.questions[number] : first === "together" ? draft.groups[number] : null;
    if (!owner) return [[first, number].filter((part) => part !== undefined).join("-"), `${first}-${draft.languages[0]}`, "add-question"];
    const [language] = draft.languages;
    const { key } = owner;
    const texts = (id, tag) => [`${id}-${tag}`, `${id}-${language}`];
    if (name === "options" && rest.length > 0) {
      const found = optionsOf(owner, draft.languages).find(({ code }) => code === rest[0]);
      if (found) return [...texts(found.option.key, rest[1]), `${key}-options`];
    }
    return [...texts(`${key}-${name}`, rest[0]), `${key}-${name}`, `${key}-title`];
  }

  function showProblem() {
    const control = problem && document.getElementById(problem.id);
    if (!control) return;
    const text = el("p", { class: "problem", id: `${problem.id}-problem` }, problem.text);
    if (control.matches("fieldset")) (control.querySelector("legend") ?? control).after(text);
    else (control.closest("label") ?? control.closest(".card-head") ?? control).after(text);
    if (control.matches("input, select")) control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", [control.getAttribute("aria-describedby"), text.id].filter(Boolean).join(" "));
    for (let above = control.closest("details"); above; above = above.parentElement.closest("details")) above.open = true;
  }

  /** Take a complaint away once its field is changed. */
  function forgive(id) {
    if (problem === null || problem.id !== id) return;
    document.getElementById(`${id}-problem`)?.remove();
    document.getElementById(id)?.removeAttribute("aria-invalid");
    problem = null;
  }

  place.focusField = (keys, text) => {
    const id = fieldIds(keys).find((each) => document.getElementById(each));
    problem = id ? { id, text } : null;
    draw();
    const control = id && document.getElementById(id);
    const target = control?.matches("fieldset") ? (control.querySelector("input:checked, input, select") ?? control) : control;
    target?.focus();
  };
  place.clearProblem = () => {
    problem = null;
    draw();
  };
  place.append(...parts().flat(Infinity).filter(Boolean));
  return place;
}

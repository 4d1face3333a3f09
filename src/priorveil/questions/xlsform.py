"""Surveys as XLSForms, the workbooks of ODK and Kobo: sheets `survey`, `choices` and `settings`, with columns of ours.

Questions of the types `select_one`, `select_multiple`, `integer`, `decimal` and `range` are converted, with labels
and hints in all languages, conditions (`relevant`) on earlier choices, and the range of a number from its `constraint`.
Everything else is listed. The columns `pv::...` are what a survey in TOML has keys for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from priorveil.errors import InvalidFile, plural, short_repr
from priorveil.formatting import read_number
from priorveil.questions.campaign import DETAILS, TEXTS
from priorveil.questions.expressions import (
    UnreadableCondition,
    all_of,
    read_condition,
    read_range_constraint,
)
from priorveil.questions.given_priors import COHORTS
from priorveil.questions.language_tags import language_tag
from priorveil.questions.number import NumberQuestion
from priorveil.questions.question import Question
from priorveil.questions.question_types import (
    CARRIED_OVER,
    NUMBER_TYPES,
    WHOLE_NUMBERS,
    mistyped_advice,
    read_bracket,
    read_select,
    why_left_out,
)
from priorveil.questions.survey_document import (
    Keys,
    Place,
    Places,
    Section,
    SurveyDocument,
    nearest,
)
from priorveil.questions.survey_parts import DESIGN_KEYS
from priorveil.questions.workbook import OURS, SHEETS, Cell, Row, cell_text, cell_words, read_sheets

_SURVEY_COLUMNS = (
    *("type", "name", "label", "hint", "relevant", "constraint", "parameters", "required", "disabled"),
)
_QUESTION_KEYS = (*DESIGN_KEYS, *NumberQuestion.survey_keys, "unit", "together")
_SETTINGS = tuple(sorted({"epsilon", *DETAILS} - {"languages"}))
_WORDS = ("contact", "admission")  # settings that are no numbers, whatever they look like
_QUESTION_TEXTS = {"text": "label", "hint": "hint", "unit": f"{OURS}unit"}  # the columns of texts, by key
_COHORTS = f"{OURS}cohorts"
_QUESTION_TERMS = {
    **{key: f"{OURS}{key}" for key in _QUESTION_KEYS},
    **{"text": "label", "kind": "type", "asked_if": "relevant", "range": "constraint or pv::range"},
}
_TERMS = {  # what the columns are called, by list of sections
    "": {key: f"{OURS}{key}" for key in _SETTINGS} | {"title": "form_title, pv::title"},
    "question": _QUESTION_TERMS,
    "together": {**_QUESTION_TERMS, "questions": f"{OURS}together"},
    "cohort": {"name": _COHORTS, "people": _COHORTS},
}
_TRANSLATED = ("label", "hint", f"{OURS}unit", *(f"{OURS}{key}" for key in TEXTS))
# Columns that say nothing to people: names and notes of the programs that wrote the form.
_SILENT = re.compile(r"(form_id|id_string|version|style|name|\$.*|kobo--.*|order|required_message)(::.*)?")
_REFERENCE = re.compile(r"\$\{[^}]*\}")
# HTML, **bold** and _emphasis_, # headings and [links](...), which ODK and Kobo show as formatted text.
_MARKUP = re.compile(
    r"</?[a-z][^<>]*>|(?<![\w*_])(\*\*?|__?)(?=[^\s*_]).*?(?<=[^\s*_])\1(?![\w*_])|^#{1,6}\s|\[[^]]+\]\([^)]+\)",
    re.I | re.M,
)
_RANGE = {"start": "1", "end": "10"}  # of a `range` that does not say, as in ODK
_TRUE = ("yes", "true", "true()", "1")
_NO_ANSWER = "every question needs an answer here: add an option such as “prefer not to say”"


@dataclass
class _Draft:
    """The values and places of one section of the survey."""

    values: dict[str, Any] = field(default_factory=dict)
    places: Places = field(default_factory=dict)

    def set(self, key: str, value: Any, place: Place) -> None:
        self.values[key], self.places[key,] = value, place

    def set_texts(self, key: str, texts: dict[str, str], places: Mapping[str, Place]) -> None:
        """Set a text in several languages, each with a place of its own."""
        self.set(key, texts, next(iter(places.values())))
        self.places |= {(key, tag): place for tag, place in places.items()}


@dataclass
class _XlsForm:
    """What is read from a workbook, and what is left out."""

    path: Path
    default: str = "en"
    cohorts: tuple[_Draft, ...] = ()
    left_out: list[str] = field(default_factory=list)
    questions: dict[str, Row] = field(default_factory=dict)  # the rows of those so far, by name
    conditional: set[str] = field(default_factory=set)  # the names of those that are not always asked
    options: dict[str, list[Row]] = field(default_factory=dict)  # the rows of each list of choices
    unreadable: dict[str | None, str] = field(default_factory=dict)  # what is wrong with conditions, by cell

    @property
    def cohort_names(self) -> list[str]:
        return [draft.values["name"] for draft in self.cohorts]

    def error(self, row: Row, column: str, advice: str) -> InvalidFile:
        return InvalidFile(self.path, advice, cell=row.place(column).cell)

    def leave_out(self, row: Row, column: str, words: str) -> None:
        sheet, _, cell = str(row.place(column).cell).rpartition("!")
        entry = f"sheet {sheet}, cell {cell}: {words}"
        if entry not in self.left_out:  # an option is read for every question with its list
            self.left_out.append(entry)


def read_xlsform(path: Path, content: bytes) -> SurveyDocument:
    """Read a survey from an XLSForm; what is wrong is an error with its sheet and cell."""
    form = _XlsForm(path)
    sheets = read_sheets(path, content, form.left_out)
    if "survey" not in sheets:
        advice = f"there is no sheet named survey; sheets: {', '.join(sheets) or 'none'}: an XLSForm has one"
        raise InvalidFile(path, advice)
    settings = _settings(form, sheets.get("settings", []))
    for row in sheets.get("choices", []):
        _add_option(form, row)
    drafts = list(_questions(form, sheets["survey"]))
    _refuse_unreadable_conditions(form)
    if not drafts and sheets["survey"]:
        advice = f"no row of this sheet can be asked: add one of type {', '.join(CARRIED_OVER)}"
        raise form.error(sheets["survey"][0], "type", advice)
    languages = _languages(form, [*sheets["survey"], *sheets.get("choices", [])])
    _list_columns(form, sheets)
    together = [group for _, group in drafts if group is not None]
    grouped = {name for group in together for name in group.values["questions"]}
    questions = [_without_list_prior(question, grouped) for question, _ in drafts]
    values = {"languages": list(languages), **settings.values}
    places = dict(settings.places)
    for name, section in (("question", questions), ("together", together), ("cohort", form.cohorts)):
        values[name] = [draft.values for draft in section]
        for number, draft in enumerate(section):
            places |= {(name, number, *keys): place for keys, place in draft.places.items()}
    tables = {
        name: [{column: row.text(column) for column in row.letters} for row in rows]
        for name, rows in sheets.items()
        if name not in SHEETS
    }
    document = SurveyDocument(path, values, nearest(places), tables, tuple(form.left_out), _TERMS)
    _require_columns(document, places, languages)
    return document


# -- languages -------------------------------------------------------------------------------------------------


def _language(form: _XlsForm, row: Row, column: str, name: str) -> str:
    """The tag of a language that is named as `German (de)`, `de` or `German`."""
    tag = language_tag(name)
    if tag is None:
        advice = "write the code of the language in brackets, as in English (en)"
        raise InvalidFile(form.path, f"{column}: {advice}", cell=f"{row.sheet}!{row.letters[column]}1")
    return tag


def _translations(form: _XlsForm, row: Row, column: str) -> tuple[dict[str, str], dict[str, Place]]:
    """The texts of a column in all its languages, and the place of each, also where there is none."""
    texts: dict[str, str] = {}
    places: dict[str, Place] = {}
    for name in row.letters:
        if name != column and not name.startswith(f"{column}::"):
            continue
        tag = form.default if name == column else _language(form, row, name, name[len(column) + 2 :])
        if tag in places:
            raise form.error(row, name, f"there are two columns of {column} in {tag}: remove one of them")
        places[tag] = row.place(name)
        if name in row.cells:
            texts[tag] = _text(form, row, name)
    return texts, places


def _text(form: _XlsForm, row: Row, column: str) -> str:
    """A text that people read, unchanged; one with an earlier answer in it is refused."""
    text = cell_words(row.cells[column])
    reference = _REFERENCE.search(text)
    if reference:
        advice = "an earlier answer cannot be shown in a text: write the text without it"
        raise form.error(row, column, f"{column}: {reference[0]}: {advice}")
    if _MARKUP.search(text):
        form.leave_out(row, column, "formatting (HTML or Markdown): people see its signs as they are typed")
    return text


def _languages(form: _XlsForm, rows: Sequence[Row]) -> dict[str, str]:
    """All languages that labels and hints are in, the default one first, and how the names of their columns end."""
    endings: dict[str, str] = {}
    used = {name for row in rows for name in row.cells}  # a column may be there without a single text
    for row in rows:
        for name in row.letters:
            first, separator, language = name.partition("::")
            if first in ("label", "hint") and name in used:
                tag = _language(form, row, name, language) if language else form.default
                endings.setdefault(tag, separator + language)
    default = {form.default: endings.get(form.default, "")}
    return default | endings if form.default in endings else endings or default


def _require_columns(document: SurveyDocument, places: Places, languages: Mapping[str, str]) -> None:
    """Refuse a text in some languages if another language has no column for it."""

    def require(section: Section, keys: Keys, column: str) -> None:
        for tag, ending in languages.items():
            if keys[0] in section.values and (*section.above, *keys, tag) not in places:
                advice = f"there is no text in {tag}: add the column {column}{ending}"
                raise section.error(advice, *keys, tag)

    for key in TEXTS:
        require(document.survey, (key,), f"{OURS}{key}")
    for question in document.sections("question"):
        for key, column in _QUESTION_TEXTS.items():
            require(question, (key,), column)
        for code in question.values.get("options", {}):
            require(question, ("options", code), "label")


# -- settings --------------------------------------------------------------------------------------------------


def _settings(form: _XlsForm, rows: list[Row]) -> _Draft:
    if not rows:
        advice = (
            "add a sheet settings, with the columns form_title and pv::epsilon and a row below their names"
        )
        raise InvalidFile(form.path, advice)
    row = rows[0]
    draft = _Draft(places={(): Place(cell=f"settings!A{row.number}")})
    for other in rows[1:]:
        form.leave_out(other, next(iter(other.cells)), "settings are in one row: this one is not read")
    if "default_language" in row.cells:
        name = row.text("default_language")
        tag = language_tag(name)
        if tag is None:
            raise form.error(row, "default_language", "write its code in brackets, as in English (en)")
        form.default = tag
    if _COHORTS in row.cells:
        form.cohorts = tuple(_cohorts(form, row))
    for key in TEXTS:
        texts, where = _translations(form, row, f"{OURS}{key}")
        if key == "title" and form.default not in texts and "form_title" in row.letters:
            where[form.default] = row.place("form_title")
            if "form_title" in row.cells:
                texts[form.default] = _text(form, row, "form_title")
        if texts:
            draft.set_texts(key, texts, where)
    for key in sorted({*_SETTINGS} - {*TEXTS}):
        if f"{OURS}{key}" in row.cells:
            cell = row.cells[f"{OURS}{key}"]
            value = cell if key in _WORDS else _number_or_text(cell)
            draft.set(key, value, row.place(f"{OURS}{key}"))
    return draft


def _cohorts(form: _XlsForm, row: Row) -> Iterator[_Draft]:
    """The cohorts in a cell such as `north, south` or `north = 120, south = 180`, with their numbers of people."""
    for entry in re.split(r"[,;\n]", row.text(_COHORTS)):
        name, _, people = (part.strip() for part in entry.partition("="))
        number = {"people": _number_or_text(people)} if people else {}
        yield _Draft({"name": name, **number}, {(): row.place(_COHORTS)})


# -- choices ---------------------------------------------------------------------------------------------------


def _add_option(form: _XlsForm, row: Row) -> None:
    has_code = "name" in row.cells or "value" in row.cells
    if "list_name" not in row.cells and not has_code:
        form.leave_out(row, next(iter(row.cells)), "a row without a list_name and a name")
        return
    if "list_name" not in row.cells or not has_code:
        missing = "name" if "list_name" in row.cells else "list_name"
        raise form.error(row, missing, f"an option needs its {missing}: fill it in")
    form.options.setdefault(row.text("list_name"), []).append(row)


def _code(row: Row) -> str:
    return row.text("name" if "name" in row.cells else "value")


# -- questions -------------------------------------------------------------------------------------------------


def _questions(form: _XlsForm, rows: Iterable[Row]) -> Iterator[tuple[_Draft, _Draft | None]]:
    """The section of each question, and of the questions that it is designed together with, if any."""
    around: list[tuple[Row, str]] = []  # the first rows of the groups, repeats and so on that a row is in
    optional = whole = 0
    for row in rows:
        kind = _type(row)
        bracket = read_bracket(kind)
        outer = next((sort for _, sort in around if sort != "group"), None)
        is_question = read_select(kind) is not None or kind.lower() in NUMBER_TYPES
        reason = _why_not_asked(row, kind) if is_question else why_left_out(kind)
        if row.text("disabled").lower() in _TRUE:
            form.leave_out(row, "disabled", f"{row.text('name') or kind}, which is disabled")
        elif bracket is not None and bracket.begins:
            around.append((row, bracket.sort))
            form.leave_out(row, "type", f"the {bracket.sort} {row.text('name')}{_what_is_left(bracket.sort)}")
        elif bracket is not None:
            if not around or around[-1][1] != bracket.sort:
                advice = f"there is no {bracket.sort} to end here: remove it, or add begin_{bracket.sort}"
                raise form.error(row, "type", advice)
            around.pop()
        elif outer is not None:
            form.leave_out(row, "type", f"{row.text('name') or kind}, a question of a {outer}")
        elif reason:
            form.leave_out(row, "type", f"{row.text('name') or 'a row'} of type {kind}: {reason}")
        elif is_question:
            optional += row.text("required").lower() not in _TRUE and not _ticks(kind)
            whole += kind.lower() in WHOLE_NUMBERS
            yield _question(form, row, kind, [group for group, _ in around])
        elif kind:
            raise form.error(row, "type", mistyped_advice(kind))
        elif "name" in row.cells or any(name.startswith("label") for name in row.cells):
            raise form.error(
                row, "type", "this row has no type: choose select_one LIST, select_multiple LIST or integer"
            )
    if around:
        row, sort = around[-1]
        raise form.error(row, "type", f"this {sort} has no end: add end_{sort}")
    if optional:
        form.left_out.append(f"{plural(optional, 'question')} that may be left unanswered: {_NO_ANSWER}")
    if whole:
        form.left_out.append(f"{plural(whole, 'question')} of type integer: people may type decimals, too")


def _type(row: Row) -> str:
    return " ".join(row.text("type").split())


def _ticks(kind: str) -> bool:
    """Whether a question is "tick all that apply", where ticking nothing is an answer, too."""
    select = read_select(kind)
    return select is not None and Question.by_kind[select.kind].by_option


def _why_not_asked(row: Row, kind: str) -> str:
    """Why people cannot answer a choice or a number on their own; empty if they can."""
    select, appearance = read_select(kind), row.text("appearance").lower()
    if select is not None and select.list_name.startswith("${"):
        return "its options are the answers to another question"
    if "search(" in appearance:
        return "its options are in another file"
    if select is not None and "label" in appearance.split():
        return "it is the heading of a table"
    if row.text("read_only").lower() in _TRUE:
        return "it is read-only"
    has_text = any(column.partition("::")[0] in ("label", "hint") for column in row.cells)
    if not has_text and ("calculation" in row.cells or "trigger" in row.cells):
        return "it is calculated"
    return ""


def _what_is_left(sort: str) -> str:
    """What is left out with the first row of a group, a repeat, or another set of rows."""
    if sort == "group":
        return ", except for its condition"
    reason = "a question is asked once" if sort == "repeat" else "write each question in a row of its own"
    return f" and all its questions: {reason}"


def _question(form: _XlsForm, row: Row, kind: str, groups: list[Row]) -> tuple[_Draft, _Draft | None]:
    draft = _Draft({"name": row.text("name")}, {(): row.place("type"), ("name",): row.place("name")})
    select = read_select(kind)
    for key, column in _QUESTION_TEXTS.items():
        texts, where = _translations(form, row, column)
        if texts or (where and key == "text"):
            draft.set_texts(key, texts, where)
        elif key == "text":
            draft.set(key, texts, row.place(column))
    if select is not None:
        draft.set("kind", select.kind, row.place("type"))
        if select.or_other:
            form.leave_out(row, "type", "or_other: add an option to the list, as no text can be sent")
        _add_options(form, row, select.list_name, draft)
        for column in ("constraint", "parameters"):
            if column in row.cells:
                form.leave_out(row, column, f"the {column} of a choice: all options are there")
    else:
        draft.set("kind", "number", row.place("type"))
        _add_range(form, row, draft)
    conditions = [around for around in (*groups, row) if "relevant" in around.cells]
    if conditions:
        asked_if = all_of(_condition(form, around) for around in conditions)
        draft.set("asked_if", asked_if, conditions[-1].place("relevant"))
        form.conditional.add(row.text("name"))
    _add_prior(form, row, draft)
    for key in ("query", "weight", "epsilon"):
        if f"{OURS}{key}" in row.cells:
            draft.set(key, _number_or_text(row.cells[f"{OURS}{key}"]), row.place(f"{OURS}{key}"))
    if f"{OURS}points" in row.cells:
        draft.set("points", _toml_value(form, row, f"{OURS}points"), row.place(f"{OURS}points"))
    form.questions[row.text("name")] = row
    return _split_together(row, draft)


def _split_together(row: Row, question: _Draft) -> tuple[_Draft, _Draft | None]:
    """The question, and the group with the questions that its `pv::together` names, which takes its prior and query."""
    column = f"{OURS}together"
    if column not in row.cells:
        return question, None
    others = [name for name in re.split(r"[\s,;]+", row.text(column)) if name]
    name, query = row.text("name"), str(question.values.get("query", "table"))
    if query in ("mean", "shares"):
        query = f"{query} of {name} by {', '.join(others)}"
    group: dict[str, Any] = {
        key: question.values[key] for key in ("prior", "weight", "epsilon") if key in question.values
    }
    places = {keys: place for keys, place in question.places.items() if keys[:1] != ("query",)}
    places |= {("questions",): row.place(column), ("query",): row.place(f"{OURS}query")}
    kept = {key: value for key, value in question.values.items() if key not in (*group, "query")}
    together = _Draft({**group, "questions": [*others, name], "query": query}, places)
    return _Draft(kept, question.places), together


def _without_list_prior(question: _Draft, grouped: set[str]) -> _Draft:
    """A question that is designed with others without the shares of its list, which are for other questions."""
    cell = question.places.get(("prior",), Place()).cell or ""
    if question.values["name"] not in grouped or not cell.startswith("choices!"):
        return question
    return replace(question, values={key: v for key, v in question.values.items() if key != "prior"})


def _add_options(form: _XlsForm, row: Row, name: str, draft: _Draft) -> None:
    """The options of a list, and their shares if the list has them."""
    if name not in form.options:
        lists = ", ".join(form.options)
        advice = f"the sheet choices has no list {name!r}; lists: {lists}"
        if not lists:
            advice = f"there is no sheet named choices with the list {name!r}: add it"
        raise form.error(row, "type", advice)
    rows = form.options[name]
    options: dict[str, Any] = {}
    draft.set("options", options, rows[0].place("label"))
    for option in rows:
        code = _code(option)
        if code in options:
            raise form.error(option, "name", f"the list {name} has two options {code!r}: rename one of them")
        options[code], where = _translations(form, option, "label")
        draft.places["options", code] = next(iter(where.values()), option.place("label"))
        draft.places |= {("options", code, tag): place for tag, place in where.items()}
    if any(column in row.cells for column in (f"{OURS}together", *_prior_columns(form).values())):
        return

    def shares(column: str) -> tuple[Row, Any] | None:
        given = [option for option in rows if column in option.cells]
        if given and len(given) < len(rows):
            empty = next(option for option in rows if column not in option.cells)
            raise form.error(empty, column, f"give the share of every option of {name}, or of none")
        return (given[0], {_code(o): _number_or_text(o.cells[column]) for o in rows}) if given else None

    _add_priors(form, draft, shares)


def _add_prior(form: _XlsForm, row: Row, draft: _Draft) -> None:
    """The prior in the row of a question."""

    def own_cell(column: str) -> tuple[Row, Any] | None:
        return (row, _toml_value(form, row, column)) if column in row.cells else None

    _add_priors(form, draft, own_cell)


def _add_priors(form: _XlsForm, draft: _Draft, read: Callable[[str], tuple[Row, Any] | None]) -> None:
    """The prior for everybody or for each cohort; `read` finds that of a column, and its row."""
    priors: dict[str, Any] = {}
    for cohort, column in _prior_columns(form).items():
        if (found := read(column)) is None:
            continue
        row, priors[cohort] = found
        if "" in priors and len(priors) > 1:
            raise form.error(row, column, f"give {OURS}prior for everybody, or {OURS}prior::COHORT for each")
        draft.places.setdefault(("prior",), row.place(column))
        draft.places["prior", COHORTS, cohort] = row.place(column)
    if priors:
        draft.values["prior"] = priors.get("", {COHORTS: priors})


def _prior_columns(form: _XlsForm) -> dict[str, str]:
    """The columns of priors by cohort; that for everybody is the one of ""."""
    column = f"{OURS}prior"
    return {"": column, **{name: f"{column}::{name}" for name in form.cohort_names}}


def _add_range(form: _XlsForm, row: Row, draft: _Draft) -> None:
    """The range of a number: our own column, the parameters of a `range`, or its constraint."""
    column = f"{OURS}range"
    constraint = read_range_constraint(row.text("constraint"), row.text("type").lower() in WHOLE_NUMBERS)
    parameters = dict(_RANGE) if row.text("type").lower() == "range" else {}
    parameters |= dict(re.findall(r"(\w+)\s*=\s*([^\s,;]+)", row.text("parameters").lower()))
    ends = [read_number(parameters.get(key, "")) for key in ("start", "end")]
    if column in row.cells:
        draft.set("range", _toml_value(form, row, column), row.place(column))
    elif None not in ends:
        draft.set("range", ends, row.place("parameters"))
    elif constraint is not None:
        draft.set("range", constraint, row.place("constraint"))
    if "constraint" in row.cells and constraint is None:
        form.leave_out(row, "constraint", "a constraint other than a range, such as . >= 0 and . <= 80")
    if "step" in parameters:
        form.leave_out(row, "parameters", "the step of a range: people may type any number in it")


def _number_or_text(cell: Cell) -> Any:
    number = read_number(cell) if isinstance(cell, str) else None
    if number is None:
        return cell_text(cell) if isinstance(cell, str) else cell
    return int(number) if number.is_integer() else number


def _toml_value(form: _XlsForm, row: Row, column: str) -> Any:
    """A cell with a value in the notation of TOML; the outer brackets may be left out.

    So `unknown`, `never = 0.8, daily = 0.2`, `file = "census.csv", column = "smokes"` and `0, 20, 40` are values.
    """
    text = row.text(column)
    if text == "unknown":
        return text
    has_brackets = text.startswith(("{", "[", '"'))
    for value in (f"{{{text}}}", *([text] if has_brackets else []), f"[{text}]"):
        with suppress(ValueError, RecursionError):  # broken, too many digits, nested too deeply
            return tomllib.loads(f"value = {value}")["value"]
    advice = 'write unknown, shares such as never = 0.8, daily = 0.2, or file = "census.csv"'
    if not column.startswith(f"{OURS}prior"):
        advice = "write numbers with commas between them, such as 0, 20, 40"
    raise form.error(row, column, f"{short_repr(text)} cannot be read: {advice}")


def _condition(form: _XlsForm, row: Row) -> dict[str, list[str]]:
    """The codes of earlier choices after which a row is asked; one that cannot be read is noted, and has none."""

    def other_codes(gate: str, codes: Collection[str]) -> list[str]:
        before = form.questions.get(gate)
        select = read_select(_type(before)) if before else None
        if select is None:
            raise UnreadableCondition(f"there is no choice {gate!r} before this question")
        is_answered = list(codes) == [""]  # ${gate} != '': everybody who is asked gives an answer
        if gate in form.conditional and not is_answered:
            raise UnreadableCondition(f"{gate} is not always asked: name the codes with =, instead of !=")
        return [option for option in map(_code, form.options[select.list_name]) if option not in codes]

    try:
        return read_condition(row.text("relevant"), other_codes)
    except UnreadableCondition as error:
        form.unreadable.setdefault(row.place("relevant").cell, str(error))
    except RecursionError:
        form.unreadable.setdefault(row.place("relevant").cell, "its brackets are nested too deeply")
    return {}


def _refuse_unreadable_conditions(form: _XlsForm) -> None:
    """Refuse the form for its first condition that cannot be converted, and name the cells of all others."""
    if form.unreadable:
        (cell, reason), *others = form.unreadable.items()
        cells = ", ".join(str(other).rpartition("!")[2] for other, _ in others)
        also = f"; nor can the conditions in {cells}" if cells else ""
        raise InvalidFile(
            form.path, f"relevant: this condition cannot be converted: {reason}{also}", cell=cell
        )


# -- what is left ----------------------------------------------------------------------------------------------


def _list_columns(form: _XlsForm, sheets: Mapping[str, list[Row]]) -> None:
    """List the columns whose entries are left out; refuse mistyped `pv::` columns."""
    priors = _prior_columns(form).values()
    known = {
        "survey": {*_SURVEY_COLUMNS, *(f"{OURS}{key}" for key in _QUESTION_KEYS), *priors},
        "choices": {"list_name", "name", "value", "label", *priors},
        "settings": {
            *("form_title", "default_language", _COHORTS),
            *(f"{OURS}{key}" for key in _SETTINGS),
        },
    }
    for sheet in SHEETS:
        rows = sheets.get(sheet, [])
        for column, letter in (rows[0].letters if rows else {}).items():
            translated = any(column.startswith(f"{name}::") for name in _TRANSLATED if name in known[sheet])
            if column in known[sheet] or translated or _SILENT.fullmatch(column):
                continue
            used = [row for row in rows if column in row.cells]
            if column.startswith(OURS):
                ours = ", ".join(sorted(name for name in known[sheet] if name.startswith(OURS)))
                advice = f"there is no column {column}; choose among {ours}"
                raise InvalidFile(form.path, advice, cell=f"{sheet}!{letter}1")
            if used:
                cells = plural(len(used), "cell")
                form.left_out.append(f"sheet {sheet}, column {letter} ({column}): {cells}")

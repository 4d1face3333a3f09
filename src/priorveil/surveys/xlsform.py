"""Surveys as XLSForms, the workbooks of ODK and Kobo: sheets `survey`, `choices` and `settings`, with columns of ours.

Questions of the types `select_one`, `select_multiple`, `integer`, `decimal` and `range` are carried over, with labels
and hints in all languages, conditions (`relevant`) on earlier choices, and the range of a number from its `constraint`.
Everything else is listed. The columns `pv::...` are what a survey in TOML has keys for.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from priorveil.errors import InvalidFile, needs_extra, not_text_advice, plural, short_repr
from priorveil.formatting import read_number
from priorveil.surveys.sections import Place, Section, SurveyFile

Cell = str | int | float | bool | datetime

SHEETS = ("survey", "choices", "settings")
_OURS = "pv::"
_SURVEY_COLUMNS = ("type", "name", "label", "hint", "relevant", "constraint", "parameters", "required")
_QUESTION_KEYS = ("prior", "query", "weight", "epsilon", "range", "points", "unit", "together")
_SETTINGS = ("asked_by", "purpose", "contact", "description", "title", "epsilon", "smallest_count")
_MORE_SETTINGS = ("opens", "closes", "keep_until", "admission", "most_reports", "limit")
_TRANSLATED = ("label", "hint", "pv::title", "pv::asked_by", "pv::purpose", "pv::description", "pv::unit")
# Columns that say nothing to people: names and notes of the programs that wrote the form.
_SILENT = re.compile(
    r"(form_id|id_string|version|style|name|\$.*|kobo--.*|order|required_message|bind::.*)(::.*)?"
)
_NUMBERS = ("integer", "int", "decimal", "range")
_SELECT = re.compile(
    r"(select[ _]one|select1|select[ _]multiple|select all that apply)(?: from)?\s+(\S+)(\s+or[ _]other)?",
    re.I,
)
_SELECT_ALONE = re.compile(r"(select one|select1|select multiple|select all that apply)( .*)?")
_CARRIED_OVER = ("select_one LIST", "select_multiple LIST", "integer", "decimal", "range")
# Types that XLSForm knows and that are left out, in lower case, with blanks instead of `_` and `-`.
_DEVICE_TYPES = (
    *("start", "end", "today", "deviceid", "device id", "subscriberid", "simserial", "phonenumber"),
    *("phone number", "username", "email", "audit", "imei", "start geopoint", "background audio"),
)
_PLAIN_TYPES = (
    *("text", "string", "date", "time", "datetime", "calculate", "calculation", "hidden", "acknowledge"),
    *("trigger", "geopoint", "gps", "location", "geotrace", "geoshape", "image", "photo", "audio", "video"),
    *("file", "barcode", "csv external", "xml external", "percentage"),
)
_OTHER_TYPES = re.compile(
    rf"{'|'.join(_PLAIN_TYPES)}|(rank|osm)( \S+)?|select (one|multiple) (from file|external) .+"
    r"|(begin|end) (loop|score|rank|kobomatrix)( .*)?|score row|rank level"
)
_SUGGESTED = (
    *("select one", "select multiple", "begin group", "end group", "begin repeat", "end repeat"),
    *(name for name in (*_NUMBERS, *_DEVICE_TYPES, *_PLAIN_TYPES, "note", "rank") if " " not in name),
)
_LANGUAGE = re.compile(r".*\(\s*([A-Za-z]{2,3}(?:-[A-Za-z0-9]+)*)\s*\)\s*")
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*")
_NUMBER = r"([+-]?\d+(?:\.\d+)?)"
_RANGE = re.compile(rf"\s*\.\s*>=\s*{_NUMBER}\s+and\s+\.\s*<=\s*{_NUMBER}\s*", re.I)
_EQUALS = re.compile(r"""\$\{\s*([\w.-]+)\s*\}\s*(!?=)\s*['"]?([^'"]+?)['"]?""")
_SELECTED = re.compile(
    r"""(not\s*\(\s*)?selected\s*\(\s*\$\{\s*([\w.-]+)\s*\}\s*,\s*['"]([^'"]+)['"]\s*\)\s*(\))?"""
)
_NO_ANSWER = "every question needs an answer here: add an option such as “prefer not to say”"


@dataclass(frozen=True)
class _Row:
    """A row of a sheet: its cells by column, in lower case, without empty ones; and where each of them stands."""

    sheet: str
    number: int
    cells: Mapping[str, Cell]
    letters: Mapping[str, str]

    def text(self, column: str) -> str:
        return _text(self.cells.get(column, ""))

    def place(self, column: str) -> Place:
        return Place(cell=f"{self.sheet}!{self.letters.get(column, 'A')}{self.number}")


@dataclass
class _Form:
    """What is read from a workbook, and what cannot be carried over."""

    path: Path
    default: str = "en"
    left_out: list[str] = field(default_factory=list)
    kinds: dict[str, _Row] = field(default_factory=dict)  # the rows of the questions so far, by name
    conditional: set[str] = field(default_factory=set)  # the names of those that are not always asked
    options: dict[str, list[_Row]] = field(default_factory=dict)  # the rows of each list of choices

    def error(self, row: _Row, column: str, advice: str) -> InvalidFile:
        return InvalidFile(self.path, advice, cell=row.place(column).cell)

    def leave_out(self, row: _Row, column: str, words: str) -> None:
        sheet, _, cell = str(row.place(column).cell).rpartition("!")
        self.left_out.append(f"sheet {sheet}, cell {cell}: {words}")


def read_xlsform(path: Path, content: bytes) -> SurveyFile:
    """Read the sections of a survey from an XLSForm; what is wrong is an error with its sheet and cell."""
    sheets = _sheets(path, content)
    if "survey" not in sheets:
        advice = f"there is no sheet named survey; sheets: {', '.join(sheets) or 'none'}: an XLSForm has one"
        raise InvalidFile(path, advice)
    form = _Form(path)
    settings = _settings(form, sheets.get("settings", []))
    for row in sheets.get("choices", []):
        _add_option(form, row)
    sections = list(_questions(form, sheets["survey"]))
    languages = _languages(form, [*sheets["survey"], *sheets.get("choices", [])])
    survey = Section(path, {"languages": list(languages), **settings.values}, settings.places, settings.terms)
    _list_columns(form, sheets)
    _require_translations(settings, languages)
    tables = {
        name: [{column: row.text(column) for column in row.letters} for row in rows]
        for name, rows in sheets.items()
        if name not in SHEETS
    }
    together = tuple(group for _, group in sections if group is not None)
    grouped = {name for group in together for name in group.values["questions"]}
    questions = tuple(_without_list_prior(section, grouped) for section, _ in sections)
    return SurveyFile(path, survey, questions, together, tables, tuple(form.left_out))


# -- cells -----------------------------------------------------------------------------------------------------


def _sheets(path: Path, content: bytes) -> dict[str, list[_Row]]:
    """The rows of every sheet under its first row, which has the names of the columns."""
    with needs_extra("surveys"):
        from openpyxl import load_workbook
    try:
        workbook = load_workbook(io.BytesIO(content), data_only=True)
    except MemoryError:
        raise
    except Exception as error:  # whatever reading a zip, its XML and openpyxl's own classes raise
        advice = "this is not a workbook that can be read: save it as .xlsx"
        old = content.startswith(b"\xd0")
        raise InvalidFile(path, not_text_advice(content[:4]) if old else advice) from error
    return {_sheet_title(sheet): list(_rows(path, sheet)) for sheet in workbook.worksheets}


def _sheet_title(sheet: Any) -> str:
    """The title of a sheet; those of the form may be in capital letters."""
    title: str = sheet.title.strip()
    return title.lower() if title.lower() in SHEETS else title


def _rows(path: Path, sheet: Any) -> Iterator[_Row]:
    rows = sheet.iter_rows()
    title = _sheet_title(sheet)
    heads: dict[str, str] = {}
    for cell in next(rows, ()):
        if cell.value is None or not str(cell.value).strip():
            continue
        name = _column_name(_text(cell.value), own=title in SHEETS)
        if name in heads:
            place = f"{title}!{cell.column_letter}{cell.row}"
            raise InvalidFile(path, f"another column is named {name!r}: remove one of them", cell=place)
        heads[name] = cell.column_letter
    names = {letter: name for name, letter in heads.items()}
    for cells in rows:
        filled = {
            names[cell.column_letter]: cell.value
            for cell in cells
            if cell.value is not None and _text(cell.value) and cell.column_letter in names
        }
        if filled:
            yield _Row(title, cells[0].row, filled, heads)


def _column_name(text: str, own: bool) -> str:
    """The name of a column; in sheets of the form its first part in lower case, with `::` before the language."""
    if not own:
        return text
    first, *others = [part.strip() for part in re.split(r"::?", text)]
    first = {"list name": "list_name", "caption": "label", "relevance": "relevant"}.get(
        first.lower(), first.lower()
    )
    if first == "pv" and others:
        others[0] = others[0].lower()
    if first.startswith("pv_"):  # the spelling that ODK accepts in the sheet choices, too
        first = first.replace("pv_", _OURS, 1)
    return "::".join([first, *others])


def _text(value: Any) -> str:
    """A cell as a text: 1 for the number 1.0, and typographic quotation marks as plain ones."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).strip().translate({0x201C: '"', 0x201D: '"', 0x2018: "'", 0x2019: "'", 0xA0: " "})


def _words(value: Any) -> str:
    """A cell that people read: as it is, without blanks around it."""
    return value.strip() if isinstance(value, str) else _text(value)


# -- languages -------------------------------------------------------------------------------------------------


def _language(form: _Form, row: _Row, column: str, name: str) -> str:
    """The tag of a language that is named as `German (de)` or `de`."""
    tag = _tag(name)
    if tag is None:
        advice = f"write the code of the language in brackets, such as {name} (en)"
        raise InvalidFile(form.path, f"{column}: {advice}", cell=f"{row.sheet}!{row.letters[column]}1")
    return tag


def _tag(name: str) -> str | None:
    match = _LANGUAGE.fullmatch(name)
    return match[1] if match else name if _TAG.fullmatch(name) else None


def _translations(form: _Form, row: _Row, column: str) -> tuple[dict[str, str], dict[str, Place]]:
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
            texts[tag] = _words(row.cells[name])
    return texts, places


def _languages(form: _Form, rows: Iterable[_Row]) -> dict[str, str]:
    """All languages that labels are in, the default one first, and how the names of their columns end."""
    endings: dict[str, str] = {}
    for row in rows:
        for name in row.letters:
            if name == "label" and name in row.cells:
                endings.setdefault(form.default, "")
            elif name.startswith("label::"):
                endings.setdefault(_language(form, row, name, name[7:]), name[5:])
    default = {form.default: endings.get(form.default, "")}
    return default | endings if form.default in endings else endings or default


def _require_translations(settings: Section, languages: Mapping[str, str]) -> None:
    """Refuse a text of the settings that has no column for one of the languages."""
    for key, text in settings.values.items():
        for tag, ending in languages.items():
            if isinstance(text, Mapping) and (key, tag) not in settings.places:
                raise settings.error(
                    f"there is no text in {tag}: add the column {_OURS}{key}{ending}", key, tag
                )


# -- settings --------------------------------------------------------------------------------------------------


def _settings(form: _Form, rows: list[_Row]) -> Section:
    places: dict[tuple[str, ...], Place] = {(): Place(cell="settings!A1")}
    values: dict[str, Any] = {}
    terms = {key: f"{_OURS}{key}" for key in (*_SETTINGS, *_MORE_SETTINGS)} | {
        "title": "form_title, pv::title"
    }
    if not rows:
        return Section(form.path, values, places, terms)
    row = rows[0]
    places[()] = Place(cell=f"settings!A{row.number}")
    for other in rows[1:]:
        form.leave_out(other, next(iter(other.cells)), "settings are in one row: this one is not read")
    if "default_language" in row.cells:
        name = row.text("default_language")
        tag = _tag(name)
        if tag is None:
            raise form.error(row, "default_language", f"write its code in brackets, such as {name} (en)")
        form.default = tag
    for key in ("title", "asked_by", "purpose", "description"):
        texts, where = _translations(form, row, f"{_OURS}{key}")
        if key == "title" and form.default not in texts and "form_title" in row.letters:
            where[form.default] = row.place("form_title")
            if "form_title" in row.cells:
                texts[form.default] = _words(row.cells["form_title"])
        if texts:
            values[key] = texts
            places[key,] = next(iter(where.values()))
            places |= {(key, tag): place for tag, place in where.items()}
    for key in ("contact", "epsilon", "smallest_count", *_MORE_SETTINGS):
        if f"{_OURS}{key}" in row.cells:
            cell = row.cells[f"{_OURS}{key}"]
            number = (
                read_number(cell) if isinstance(cell, str) and key not in ("contact", "admission") else None
            )
            values[key], places[key,] = cell if number is None else number, row.place(f"{_OURS}{key}")
    return Section(form.path, values, places, terms)


# -- choices ---------------------------------------------------------------------------------------------------


def _add_option(form: _Form, row: _Row) -> None:
    if "list_name" not in row.cells or ("name" not in row.cells and "value" not in row.cells):
        missing = "name" if "list_name" in row.cells else "list_name"
        raise form.error(row, missing, f"an option needs its {missing}: fill it in")
    form.options.setdefault(row.text("list_name"), []).append(row)


def _code(row: _Row) -> str:
    return row.text("name" if "name" in row.cells else "value")


# -- questions -------------------------------------------------------------------------------------------------


def _questions(form: _Form, rows: Iterable[_Row]) -> Iterator[tuple[Section, Section | None]]:
    """The section of each question, and of the questions that it is designed together with, if any."""
    conditions: list[tuple[_Row, bool]] = []  # the groups around a row, and whether they are repeats
    optional = 0
    for row in rows:
        kind = " ".join(row.text("type").split())
        word = " ".join(re.split("[ _-]+", kind.lower()))
        if word in ("begin group", "begin repeat"):
            conditions.append((row, word == "begin repeat"))
            repeated = " and all its questions: a question is asked once" if word == "begin repeat" else ""
            form.leave_out(
                row, "type", f"the {word[6:]} {row.text('name')}{repeated or ', except for its condition'}"
            )
        elif word in ("end group", "end repeat"):
            if not conditions:
                raise form.error(
                    row, "type", f"there is no group to end here: remove it, or add begin{word[3:]}"
                )
            conditions.pop()
        elif any(repeat for _, repeat in conditions):
            form.leave_out(row, "type", f"{row.text('name') or kind}, a question of a repeat")
        elif _SELECT.fullmatch(kind) or kind.lower() in _NUMBERS:
            optional += row.text("required").lower() not in ("yes", "true", "true()", "1")
            yield _question(form, row, kind, [group for group, _ in conditions])
        elif kind:
            form.leave_out(
                row, "type", f"{row.text('name') or 'a row'} of type {kind}: {_why_not(form, row, word)}"
            )
        elif "name" in row.cells or any(name.startswith("label") for name in row.cells):
            raise form.error(
                row, "type", "this row has no type: choose select_one LIST, select_multiple LIST or integer"
            )
    if conditions:
        raise form.error(conditions[-1][0], "type", "this group has no end: add a row of type end_group")
    if optional:
        form.left_out.append(f"{plural(optional, 'question')} that may be left unanswered: {_NO_ANSWER}")


def _why_not(form: _Form, row: _Row, word: str) -> str:
    """Why a question of this type is left out; a type that XLSForm does not know is refused, as it is a mistake."""
    if word in _DEVICE_TYPES:
        return "nothing about the device or the time is ever sent"
    if word == "note":
        return "put it into a hint"
    if _OTHER_TYPES.fullmatch(word):
        return "only choices and numbers can be protected"
    written = short_repr(row.text("type"))
    if _SELECT_ALONE.fullmatch(word):
        advice = "write one name of a list of choices after it, such as select_one LIST"
        raise form.error(row, "type", f"{written}: {advice}")
    without_list = word.rpartition(" ")[0]
    similar = get_close_matches(word, _SUGGESTED, 1) or get_close_matches(without_list, _SUGGESTED, 1)
    suggestion = similar[0].replace(" ", "_") if similar else ""
    advice = f"did you mean {suggestion}?" if similar else f"choose among {', '.join(_CARRIED_OVER)}"
    raise form.error(row, "type", f"{written} is not a type of XLSForm: {advice}")


def _question(form: _Form, row: _Row, kind: str, groups: list[_Row]) -> tuple[Section, Section | None]:
    values: dict[str, Any] = {"name": row.text("name")}
    places: dict[tuple[str, ...], Place] = {(): row.place("type"), ("name",): row.place("name")}
    terms = {"text": "label", "kind": "type", "asked_if": "relevant", "range": "constraint"}
    terms |= {key: f"{_OURS}{key}" for key in _QUESTION_KEYS if key != "range"}
    select = _SELECT.fullmatch(kind)
    for key, column in (("text", "label"), ("hint", "hint"), ("unit", "pv::unit")):
        texts, where = _translations(form, row, column)
        if texts or key == "text":
            values[key], places[key,] = texts, next(iter(where.values()), row.place(column))
            places |= {(key, tag): place for tag, place in where.items()}
    places["kind",] = row.place("type")
    if select is not None:
        values["kind"] = "choices" if re.match(r"select[ _](multiple|all)", kind, re.I) else "choice"
        if select[3]:
            form.leave_out(row, "type", "or_other: add an option to the list, as no text can be sent")
        _add_options(form, row, select[2], values, places)
    else:
        values["kind"] = "number"
        _add_range(form, row, values, places)
    asked_if = _conditions(form, row, groups)
    if asked_if:
        values["asked_if"], places["asked_if",] = asked_if, row.place("relevant")
        form.conditional.add(row.text("name"))
    for key in ("prior", "query", "weight", "epsilon", "points"):
        column = f"{_OURS}{key}"
        if column in row.cells:
            places[key,] = row.place(column)
            typed = key in ("prior", "points")
            values[key] = _typed(form, row, column) if typed else _number_or_text(row.cells[column])
    form.kinds[row.text("name")] = row
    return _split_together(form, row, Section(form.path, values, places, terms))


def _split_together(form: _Form, row: _Row, question: Section) -> tuple[Section, Section | None]:
    """The question, and the group with the questions that its `pv::together` names, which takes its prior and query."""
    column = f"{_OURS}together"
    if column not in row.cells:
        return question, None
    others = [name for name in re.split(r"[\s,;]+", row.text(column)) if name]
    name, query = row.text("name"), str(question.values.get("query", "table"))
    if query in ("mean", "shares"):
        query = f"{query} of {name} by {', '.join(others)}"
    group = {key: question.values[key] for key in ("prior", "weight", "epsilon") if key in question.values}
    places = {keys: place for keys, place in question.places.items() if keys[:1] != ("query",)}
    places |= {("questions",): row.place(column), ("query",): row.place(f"{_OURS}query")}
    terms = {**question.terms, "questions": column}
    kept = {key: value for key, value in question.values.items() if key not in (*group, "query")}
    section = Section(form.path, {**group, "questions": [*others, name], "query": query}, places, terms)
    return Section(form.path, kept, question.places, question.terms), section


def _without_list_prior(question: Section, grouped: set[str]) -> Section:
    """A question that is designed with others without the shares of its list, which are for other questions."""
    place = question.place("prior").cell or ""
    if question.values["name"] not in grouped or not place.startswith("choices!"):
        return question
    return replace(question, values={key: v for key, v in question.values.items() if key != "prior"})


def _add_options(
    form: _Form, row: _Row, name: str, values: dict[str, Any], places: dict[tuple[str, ...], Place]
) -> None:
    """The options of a list, and their shares if the list has them."""
    if name not in form.options:
        lists = ", ".join(form.options) or "none"
        raise form.error(row, "type", f"the sheet choices has no list {name!r}; lists: {lists}")
    rows = form.options[name]
    options: dict[str, Any] = {}
    places["options",] = rows[0].place("label")
    for option in rows:
        code = _code(option)
        if code in options:
            raise form.error(option, "name", f"the list {name} has two options {code!r}: rename one of them")
        options[code], where = _translations(form, option, "label")
        places["options", code] = next(iter(where.values()), option.place("label"))
        places |= {("options", code, tag): place for tag, place in where.items()}
    values["options"] = options
    column = f"{_OURS}prior"
    given = [option for option in rows if column in option.cells]
    if given and column not in row.cells and f"{_OURS}together" not in row.cells:
        if len(given) < len(rows):
            empty = next(option for option in rows if column not in option.cells)
            raise form.error(empty, column, f"give the share of every option of {name}, or of none")
        values["prior"] = {_code(option): _number_or_text(option.cells[column]) for option in rows}
        places["prior",] = given[0].place(column)


def _add_range(form: _Form, row: _Row, values: dict[str, Any], places: dict[tuple[str, ...], Place]) -> None:
    """The range of a number: our own column, the parameters of a `range`, or its constraint."""
    column = f"{_OURS}range"
    constraint, parameters = (
        _RANGE.fullmatch(row.text("constraint")),
        dict(_parameters(row.text("parameters"))),
    )
    if column in row.cells:
        values["range"], places["range",] = _typed(form, row, column), row.place(column)
    elif "start" in parameters and "end" in parameters:
        values["range"], places["range",] = [parameters["start"], parameters["end"]], row.place("parameters")
    elif constraint is not None:
        values["range"] = [float(constraint[1]), float(constraint[2])]
        places["range",] = row.place("constraint")
    if "constraint" in row.cells and constraint is None:
        advice = "a constraint other than a range, such as . >= 0 and . <= 80"
        form.leave_out(row, "constraint", advice)


def _parameters(text: str) -> Iterator[tuple[str, float]]:
    for name, number in re.findall(rf"(\w+)\s*=\s*{_NUMBER}", text):
        yield name.lower(), float(number)


def _number_or_text(cell: Cell) -> Any:
    if isinstance(cell, str):
        number = read_number(cell)
        return _text(cell) if number is None else number
    return cell


def _typed(form: _Form, row: _Row, column: str) -> Any:
    """A cell with a value in the notation of TOML; the outer brackets may be left out.

    So `unknown`, `never = 0.8, daily = 0.2`, `file = "census.csv", column = "smokes"` and `0, 20, 40` are values.
    """
    text = row.text(column)
    if text == "unknown":
        return text
    inner = f"{{{text}}}" if "=" in text and not text.startswith("{") else text
    inner = f"[{inner}]" if not inner.startswith(("{", "[", '"')) else inner
    try:
        return tomllib.loads(f"value = {inner}")["value"]
    except tomllib.TOMLDecodeError as error:
        advice = 'write unknown, shares such as never = 0.8, daily = 0.2, or file = "census.csv"'
        if column != f"{_OURS}prior":
            advice = "write numbers with commas between them, such as 0, 20, 40"
        raise form.error(row, column, f"{short_repr(text)} cannot be read: {advice}") from error


# -- conditions ------------------------------------------------------------------------------------------------


def _conditions(form: _Form, row: _Row, groups: Iterable[_Row]) -> dict[str, list[str]]:
    """The codes of earlier choices after which a question is asked: its own condition, and those of its groups."""
    asked_if: dict[str, list[str]] = {}
    for around in (*groups, row):
        if "relevant" not in around.cells:
            continue
        for gate, codes in _condition(form, around).items():
            before = asked_if.get(gate, codes)
            asked_if[gate] = [code for code in before if code in codes]
    return asked_if


def _condition(form: _Form, row: _Row) -> dict[str, list[str]]:
    """A condition such as `${works} = 'yes' or ${works} = 'sometimes'`, joined to others by `and`."""
    asked_if: dict[str, list[str]] = {}
    for term in _split(row.text("relevant"), "and"):
        found = [_comparison(form, row, part) for part in _split(term, "or")]
        gates = {gate for gate, _ in found}
        if len(gates) > 1:
            raise _unreadable(form, row, "with `or`, compare one question only")
        gate = gates.pop()
        codes = [code for _, some in found for code in some]
        asked_if[gate] = [code for code in asked_if.get(gate, codes) if code in codes]
    return asked_if


def _split(text: str, word: str) -> list[str]:
    """The parts of an expression around a word outside brackets, each without brackets around all of it."""
    text = _without_brackets(text)
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and re.match(rf"\s{word}\s", text[at : at + len(word) + 2], re.I):
            parts.append(text[begin:at])
            begin = at + len(word) + 2
    return [*parts, text[begin:]]


def _without_brackets(text: str) -> str:
    """An expression without blanks and brackets around all of it."""
    text = text.strip()
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing(text: str) -> int:
    """The position of the bracket that closes the first one."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return -1


def _comparison(form: _Form, row: _Row, part: str) -> tuple[str, list[str]]:
    """The question that a comparison is about, and the codes for which it holds."""
    text = _without_brackets(part)
    equals, selected = _EQUALS.fullmatch(text), _SELECTED.fullmatch(text)
    if equals is None and (selected is None or bool(selected[1]) != bool(selected[4])):
        raise _unreadable(form, row, "write ${question} = 'code', or selected(${question}, 'code')")
    gate, code = (equals[1], equals[3]) if equals else (selected[2], selected[3])  # type: ignore[index]
    negated = equals[2] == "!=" if equals else bool(selected[1])  # type: ignore[index]
    if not negated:
        return gate, [code]
    before = form.kinds.get(gate)
    select = _SELECT.fullmatch(" ".join(before.text("type").split())) if before else None
    if before is None or select is None:
        raise _unreadable(form, row, f"there is no choice {gate!r} before this question")
    if gate in form.conditional:
        raise _unreadable(form, row, f"{gate} is not always asked: name the codes with =, instead of !=")
    return gate, [option for option in map(_code, form.options[select[2]]) if option != code]


def _unreadable(form: _Form, row: _Row, advice: str) -> InvalidFile:
    return form.error(row, "relevant", f"relevant: this condition cannot be carried over: {advice}")


# -- what is left ----------------------------------------------------------------------------------------------


def _list_columns(form: _Form, sheets: Mapping[str, list[_Row]]) -> None:
    """List the columns that have entries nobody reads; refuse mistyped ones of ours."""
    known = {
        "survey": {*_SURVEY_COLUMNS, *(f"{_OURS}{key}" for key in _QUESTION_KEYS)},
        "choices": {"list_name", "name", "value", "label", f"{_OURS}prior"},
        "settings": {
            "form_title",
            "default_language",
            *(f"{_OURS}{key}" for key in (*_SETTINGS, *_MORE_SETTINGS)),
        },
    }
    for sheet in SHEETS:
        rows = sheets.get(sheet, [])
        for column, letter in (rows[0].letters if rows else {}).items():
            translated = any(column.startswith(f"{name}::") for name in _TRANSLATED if name in known[sheet])
            if column in known[sheet] or translated or _SILENT.fullmatch(column):
                continue
            used = [row for row in rows if column in row.cells]
            if column.startswith(_OURS):
                ours = ", ".join(sorted(name for name in known[sheet] if name.startswith(_OURS)))
                advice = f"there is no column {column}; choose among {ours}"
                raise InvalidFile(form.path, advice, cell=f"{sheet}!{letter}1")
            if used:
                cells = plural(len(used), "cell")
                form.left_out.append(f"sheet {sheet}, column {letter} ({column}): {cells}")

"""XLSForms, as ODK and Kobo write them: what is carried over, what is listed, and the cell of what is wrong."""

from __future__ import annotations

import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from priorveil.errors import InvalidFile
from priorveil.queries import Linear
from priorveil.questions.question import NOT_ASKED
from priorveil.questions.survey import Survey
from priorveil.questions.survey_reader import read_survey, received_survey
from refusals import raises
from sample_survey_files import CHOICES, LAST_YEAR, SETTINGS, SHEETS, SURVEY, Rows, changed, write_form


def read(folder: Path, **sheets: Rows) -> Survey:
    return read_survey(write_form(folder / "form.xlsx", **sheets))


def test_six_questions_in_two_languages(tmp_path: Path) -> None:
    survey = read(tmp_path)
    questions = {question.name: question for question in survey.questions}
    assert list(questions) == ["age", "home", "union", "active", "sleep", "worries", "overtime"]
    assert survey.details.languages == ("en", "de")
    assert survey.left_out == ("1 question of type integer: people may type decimals, too",)
    assert questions["age"].text == {"en": "How old are you?", "de": "Wie alt sind Sie?"}
    assert questions["age"].options["old"] == {"en": "40 and over", "de": "40 und darüber"}
    assert questions["sleep"].unit == {"en": "hours", "de": "Stunden"}
    assert questions["active"].asked_if == {"union": ("yes",)}
    assert questions["worries"].kind == "choices"
    assert survey.details.title == {"en": "Work", "de": "Arbeit"} and survey.epsilon == 2
    assert survey.details.asked_by == {"en": "The council", "de": "Der Rat"}


def test_what_is_designed(tmp_path: Path) -> None:
    parts = {spec.attributes: spec for spec in read(tmp_path).parts}
    assert list(parts) == [
        ("age", "home"), ("union",), ("active",), ("sleep",),
        ("worries/pay",), ("worries/boss",), ("worries/health",), ("age", "overtime"),
    ]  # fmt: skip
    table = parts["age", "home"].prior
    assert dict(zip(table.labels, table.probabilities.tolist(), strict=True))["old", "no"] == 0.4
    assert parts["active",].prior.labels == ("rarely", "weekly", NOT_ASKED)
    assert parts["active",].prior.probabilities.tolist() == pytest.approx([0.175, 0.075, 0.75])
    assert parts["sleep",].prior.labels == (0.0, 6.0, 8.0, 12.0)
    overtime = parts["age", "overtime"]
    assert overtime.query == Linear.averages(overtime.prior, "overtime", by="age") and overtime.prior.assumed


def test_a_column_without_a_language_is_in_the_default_one(tmp_path: Path) -> None:
    survey = changed(changed(SURVEY, "C1", "label"), "K1", "pv::unit")
    assert read(tmp_path, survey=survey, choices=changed(CHOICES, "C1", "Label")).details.languages == (
        "en",
        "de",
    )


def test_the_shares_of_options_may_have_the_spelling_that_odk_accepts(tmp_path: Path) -> None:
    parts = read(tmp_path, choices=changed(CHOICES, "E1", "pv_prior")).parts
    assert not parts[1].prior.assumed


def test_a_language_may_be_named_without_its_code(tmp_path: Path) -> None:
    survey = changed(changed(SURVEY, "C1", "label::english"), "D1", "label:German")
    settings = changed(SETTINGS, "D2", "English")
    assert read(tmp_path, survey=survey, settings=settings).details.languages == ("en", "de")


def test_a_language_without_a_single_text_is_no_language_of_the_survey(tmp_path: Path) -> None:
    """As in templates: the column is there, and nobody has translated anything."""
    rows = [[*SURVEY[0], "label::French (fr)", "hint::French (fr)"], *SURVEY[1:]]
    choices = [[*CHOICES[0], "label::French (fr)"], *CHOICES[1:]]
    assert read(tmp_path, survey=rows, choices=choices).details.languages == ("en", "de")


def test_a_hint_in_another_language_needs_the_label_in_it(tmp_path: Path) -> None:
    rows = changed([[*SURVEY[0], "hint::French (fr)"], *SURVEY[1:]], "M2", "En années")
    with pytest.raises(InvalidFile, match="in fr") as refused:
        read(tmp_path, survey=rows)
    assert "languages" not in str(refused.value)


@pytest.mark.parametrize(
    ("sheet", "header", "place"),
    [
        ("survey", "L1", "survey!K6"),  # the unit, which is in English only
        ("choices", "D1", "choices!C2"),
    ],
)
def test_a_text_without_a_column_in_a_language_needs_the_column(
    tmp_path: Path, sheet: str, header: str, place: str
) -> None:
    column = str(SHEETS[sheet][0][ord(header[0]) - ord("A")])
    with raises(InvalidFile, cell=place) as raised:
        read(tmp_path, **{sheet: changed(SHEETS[sheet], header, "remarks")})
    assert column in raised.value.message


@pytest.mark.parametrize(("sheet", "cell"), [("survey", "C3"), ("survey", "D3"), ("choices", "C5")])
def test_an_earlier_answer_cannot_be_shown_in_a_text(tmp_path: Path, sheet: str, cell: str) -> None:
    """People would read the name of the variable."""
    with pytest.raises(InvalidFile, match=r"\$\{age\}") as refused:
        read(tmp_path, **{sheet: changed(SHEETS[sheet], cell, "And at ${age}?")})
    assert refused.value.cell == f"{sheet}!{cell}"


@pytest.mark.parametrize(
    ("text", "is_listed"),
    [
        *(("Do you <b>really</b>?", True), ("Do you **really**?", True), ("Do you _really_?", True)),
        *(("# Work\nDo you?", True), ("See [here](https://example.org)", True), ("a<br/>b", True)),
        *(
            ("3 * 4 * 5", False),
            ("my_name and your_name", False),
            ("x < 3 > y", False),
            ("Name: ____", False),
        ),
        *(("Number # 3", False), ("Age *", False), ("[see note] (below)", False)),
    ],
)
def test_formatting_is_listed(tmp_path: Path, text: str, is_listed: bool) -> None:
    left_out = read(tmp_path, choices=changed(CHOICES, "C4", text)).left_out
    assert sum(words.startswith("sheet choices, cell C4: formatting") for words in left_out) == is_listed


def kobo() -> Rows:
    """The sheet of a form as Kobo exports it, with its own columns and rows that are no questions."""
    return [
        [
            *("type", "name", "label::English (en)", "label::Deutsch (de)", "required", "relevant", "appearance"),
            *("$autoname", "$kuid", "parameters", "calculation", "media::image", "constraint"),
        ],
        ["start", "start", None, None, None, None, None, "start", "k1"],
        ["end", "end", None, None, None, None, None, "end", "k2"],
        ["begin_group", "work", "Work", "Arbeit", None, "${union} != 'no'"],
        ["note", "hello", "Welcome", "Willkommen"],
        ["select_one yn", "union", "In a union?", "Gewerkschaft?", "true"],
        ["end_group"],
        ["begin_group", "more", "More", "Mehr", None, "selected(${union}, 'yes')"],
        ["select_one often", "active", "Active?", "Aktiv?", "false", None, "minimal", None, "k3", None, None, "a.png"],
        ["range", "mood", "Mood?", "Stimmung?", "true", None, None, None, None, "start=0 end=10 step=1"],
        ["end_group"],
        ["begin_repeat", "children", "Children", "Kinder"],
        ["integer", "child", "Age?", "Alter?", "true"],
        ["end_repeat"],
        ["text", "remarks", "Anything else?", "Sonst noch etwas?"],
        ["calculate", "sum", None, None, None, None, None, None, None, None, "1 + 1"],
        ["integer", "age", "Age?", "Alter?", "true"] + [None] * 7 + [". > 17"],
    ]  # fmt: skip


def test_what_cannot_be_carried_over_is_listed(tmp_path: Path) -> None:
    rows = changed(kobo(), "F4", None)
    rows[0].append("pv::range")
    rows[-1] = [*rows[-1], *[None] * (13 - len(rows[-1])), "18, 98"]
    survey = read(tmp_path, survey=rows)
    questions = {question.name: question for question in survey.questions}
    assert list(questions) == ["union", "active", "mood", "age"]
    assert questions["active"].asked_if == questions["mood"].asked_if == {"union": ("yes",)}
    assert questions["mood"].edges == (0, 2, 4, 6, 8, 10)
    listed = "\n".join(survey.left_out)
    for what in (
        *(
            "cell A2: start",
            "cell A3: end",
            "cell A4: the group work",
            "cell A5: hello",
            "cell A8: the group more",
        ),
        *("cell A12: the repeat children", "cell A13: child", "cell A15: remarks", "cell A16: sum"),
        *(
            "cell M17: a constraint",
            "column G (appearance)",
            "column L (media::image)",
            "column K (calculation)",
        ),
        "cell J10: the step of a range",
        "1 question that may be left unanswered",
        "1 question of type integer",
        "sheet last year: no prior names it",
    ):
        assert what in listed
    assert "kuid" not in listed and "autoname" not in listed
    assert len(survey.left_out) == 17


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "text",
            "note",
            "dateTime",
            "geopoint",
            "start-geopoint",
            "csv-external",
            "barcode",
            "phone number",
        ),
        *("rank ages", "rank of_ages", "osm building_tags", "background-geopoint", "uri:deviceid"),
        *("select_one_from_file towns.csv", "select_multiple_external ages"),
    ],
)
def test_a_known_type_that_cannot_be_protected_is_listed(tmp_path: Path, kind: str) -> None:
    survey = read(tmp_path, survey=[*SURVEY, [kind, "extra", "Extra?", "Mehr?"]])
    assert len(survey.questions) == 7 and survey.left_out[0].startswith(
        f"sheet survey, cell A9: extra of type {kind}: "
    )


@pytest.mark.parametrize(
    ("kind", "label", "column", "cell", "reason"),
    [
        (
            "select_one ${child}",
            "Who?",
            "appearance",
            None,
            "its options are the answers to another question",
        ),
        (
            "select_one yn",
            "Which?",
            "appearance",
            "minimal search('towns')",
            "its options are in another file",
        ),
        ("select_one yn", "Table", "appearance", "label", "it is the heading of a table"),
        ("integer", "Total", "read only", "yes", "it is read-only"),
        ("integer", "Total", "bind::readonly", "true()", "it is read-only"),
        ("decimal", None, "calculation", "1 + 1", "it is calculated"),
        ("decimal", None, "trigger", "${age}", "it is calculated"),
    ],
)
def test_a_question_that_people_cannot_answer_is_left_out(
    tmp_path: Path, kind: str, label: str | None, column: str, cell: str | None, reason: str
) -> None:
    rows = [[*SURVEY[0], column], *SURVEY[1:]]
    survey = read(tmp_path, survey=[*rows, [kind, "extra", label, label, *[None] * 8, cell]])
    assert f"sheet survey, cell A9: extra of type {kind}: {reason}" in survey.left_out
    assert len(survey.questions) == 7


def test_all_conditions_that_cannot_be_carried_over_are_named_at_once(tmp_path: Path) -> None:
    survey = changed(changed(SURVEY, "E5", "${sleep} > 8"), "E7", "${union} = 'yes' or ${age} = 'old'")
    with raises(InvalidFile, cell="survey!E5") as raised:
        read(tmp_path, survey=changed(survey, "E8", "${union} = 'no'"))
    assert "E7" in raised.value.message and "E8" not in raised.value.message


@pytest.mark.parametrize(("cell", "is_listed"), [("F6", True), ("F7", False)])
def test_a_question_that_may_be_left_unanswered_is_listed(tmp_path: Path, cell: str, is_listed: bool) -> None:
    """But not "tick all that apply": nothing ticked is an answer."""
    left_out = read(tmp_path, survey=changed(SURVEY, cell, "no")).left_out
    assert any("left unanswered" in words for words in left_out) == is_listed


def test_a_prior_may_be_rows_in_one_cell(tmp_path: Path) -> None:
    shares = {("young", "yes"): 0.15, ("young", "no"): 0.35, ("old", "yes"): 0.1, ("old", "no"): 0.4}
    rows = ", ".join(
        f'{{age = "{age}", home = "{home}", share = {share}}}' for (age, home), share in shares.items()
    )
    for cell in (rows, f"[{rows}]"):
        spec = read(tmp_path, survey=changed(SURVEY, "I3", cell)).parts[0]
        assert dict(zip(spec.prior.labels, spec.prior.probabilities.tolist(), strict=True)) == shares


@pytest.mark.parametrize("column", ["bind::relevant", "bind: relevant", "Relevance"])
def test_a_condition_may_be_in_a_column_with_an_older_name(tmp_path: Path, column: str) -> None:
    survey = read(tmp_path, survey=changed(SURVEY, "E1", column))
    assert survey.questions[3].asked_if == {"union": ("yes",)}


def test_columns_with_blanks_in_their_names(tmp_path: Path) -> None:
    settings = changed(changed(SETTINGS, "A1", "Form Title"), "D1", "default language")
    survey = read(tmp_path, choices=changed(CHOICES, "A1", "List Name"), settings=settings)
    assert survey.details.title == {"en": "Work", "de": "Arbeit"}


@pytest.mark.parametrize("kind", ["begin_kobomatrix", "begin loop over ages", "begin_score", "begin lgroup"])
def test_questions_that_are_asked_several_times_are_left_out(tmp_path: Path, kind: str) -> None:
    """A matrix, a loop and a score ask the questions in them for each of their rows."""
    end = kind.replace("begin", "end").partition(" over")[0]
    rows = [
        [kind, "extra", "Extra?", "Mehr?"],
        ["select_one yn", "inner", "In?", "Drin?", None, "yes"],
        [end],
    ]
    survey = read(tmp_path, survey=[*SURVEY, *rows])
    assert "inner" not in {question.name for question in survey.questions}
    listed = "\n".join(survey.left_out)
    assert " extra and all its questions: " in listed and "cell A10: inner, a question of a " in listed


@pytest.mark.parametrize(
    "kind",
    ["select one from ages", "add select one prompt using ages", "select one from ages or specify other"],
)
def test_older_spellings_of_a_choice(tmp_path: Path, kind: str) -> None:
    survey = read(tmp_path, survey=changed(SURVEY, "A2", kind))
    assert survey.questions[0].kind == "choice"
    assert any("or_other" in words for words in survey.left_out) == kind.endswith("other")


@pytest.mark.parametrize(
    ("condition", "gates"),
    [
        ("${union} = 'yes'", {"union": ("yes",)}),
        ('${ union }="yes"', {"union": ("yes",)}),
        ("${union} != 'yes'", {"union": ("no",)}),
        ("selected(${union}, 'yes')", {"union": ("yes",)}),
        ("not(selected(${union}, 'yes'))", {"union": ("no",)}),
        ("${age} = 'old' or ${age} = 'young'", {"age": ("old", "young")}),
        ("(${age} = 'old') and (${union} = 'yes')", {"age": ("old",), "union": ("yes",)}),
        (
            "${union} = 'yes' AND (${age} = 'old' OR ${age} = 'young')",
            {"union": ("yes",), "age": ("old", "young")},
        ),
        ("${age} = 'old' or ${age} = 'young' and ${age} = 'old'", {"age": ("old",)}),
        ("not(${union} = 'yes' or ${union} = 'maybe')", {"union": ("no",)}),
        ("${union} != ''", {"union": ("yes", "no")}),
        ("${union} = yes", {"union": ("yes",)}),
        ("not(${union} = 'yes') and not(${age} = 'old')", {"union": ("no",), "age": ("young",)}),
    ],
)
def test_conditions_on_earlier_choices(tmp_path: Path, condition: str, gates: dict[str, Any]) -> None:
    rows = changed(changed(SURVEY, "E5", condition), "I5", "unknown")
    assert {q.name: q for q in read(tmp_path, survey=rows).questions}["active"].asked_if == gates


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sheet", "cell", "value", "place"),
    [
        ("survey", "A2", "select_one age", "survey!A2"),
        ("survey", "B7", "my worries?", "survey!B7"),
        ("survey", "A2", "select_on ages", "survey!A2"),
        ("survey", "A2", "select_one", "survey!A2"),
        ("survey", "A2", "select_one ages often", "survey!A2"),
        ("survey", "A6", "decmal", "survey!A6"),
        ("survey", "A6", "xyz", "survey!A6"),
        ("survey", "A2", None, "survey!A2"),
        ("survey", "A2", "end_group", "survey!A2"),
        ("survey", "A2", "begin_group", "survey!A2"),
        ("survey", "B2", None, "survey!B2"),
        ("survey", "B3", "age", "survey!B3"),
        ("survey", "C2", None, "survey!C2"),
        ("survey", "D1", "label::Klingon", "survey!D1"),
        ("survey", "D1", "label::Englisch (en)", "survey!D2"),
        ("survey", "D1", "label::English (en)", "survey!D1"),
        ("survey", "E5", "${union} > 3", "survey!E5"),
        ("survey", "E5", "${union} = yes'", "survey!E5"),
        ("survey", "E5", "${union} = 'yes' or ${age} = 'old'", "survey!E5"),
        ("survey", "E5", "${age} = 'old' or ${age} = 'young' and ${union} = 'yes'", "survey!E5"),
        ("survey", "E5", "not(${age} = 'old' and ${union} = 'yes')", "survey!E5"),
        pytest.param("survey", "E5", f"{'not(' * 2000}${{age}} = 'old'{')' * 2000}", "survey!E5", id="deep"),
        ("survey", "E5", "${union} != yes or(${age} != old)", "survey!E5"),
        ("survey", "E5", "${union} != 'yes' + 'no'", "survey!E5"),
        ("survey", "E5", "${union} = ''", "survey!E5"),
        ("survey", "E5", "${unoin} = 'yes'", "survey!E5"),
        ("survey", "E5", "${unoin} != 'yes'", "survey!E5"),
        ("survey", "E5", "${union} = 'perhaps'", "survey!E5"),
        ("survey", "E8", "${active} != 'weekly'", "survey!E8"),
        ("survey", "E5", "selected(${worries}, 'pay')", "survey!E5"),
        ("survey", "G8", None, "survey!A8"),
        ("survey", "G6", ". >= 0 and . <= 10", "survey!I6"),
        ("survey", "H1", "pv::qurey", "survey!H1"),
        ("survey", "H3", "means", "survey!H3"),
        ("survey", "H6", "median", "survey!H6"),
        ("survey", "I6", '"0 to 6" = 0.2', "survey!I6"),
        ("survey", "I6", "0 to 6 = 0.2", "survey!I6"),
        pytest.param("survey", "I6", "[" * 20_000, "survey!I6", id="deep brackets"),
        pytest.param("survey", "I6", "9" * 5_000, "survey!I6", id="thousands of digits"),
        ("survey", "I3", 'sheet = "this year"', "survey!I3"),
        ("survey", "I3", 'file = "none.csv"', "survey!I3"),
        ("survey", "J3", "aeg", "survey!J3"),
        ("survey", "K6", None, "survey!K6"),
        ("survey", "A1", None, "survey!A1"),
        ("survey", "B1", "nmae", "survey!A1"),
        ("survey", "C2", "=B2", "survey!C2"),
        ("survey", "C2", datetime(2026, 2, 1), "survey!C2"),
        ("survey", "A4", "begin_group", "survey!A4"),
        ("choices", "A1", None, "choices!A1"),
        ("choices", "B2", datetime(2026, 2, 1), "choices!B2"),
        ("choices", "E4", "=1/4", "choices!E4"),
        ("choices", "C3", "#REF!", "choices!C3"),
        ("last year", "C2", "=1/4", "last year!C2"),
        ("choices", "A3", None, "choices!A3"),
        ("choices", "B3", None, "choices!B3"),
        ("choices", "B3", "young", "choices!B3"),
        ("choices", "C3", "under 40 ", "choices!C3"),
        ("choices", "D3", "Unter 40", "choices!D3"),
        ("choices", "D3", None, "choices!D3"),
        ("choices", "E5", None, "choices!E5"),
        ("choices", "E5", 0.7, "choices!E4"),
        ("choices", "E5", "most", "choices!E4"),
        ("settings", "A2", None, "settings!A2"),
        ("settings", "B2", None, "settings!B2"),
        ("settings", "D2", "Klingon", "settings!D2"),
        ("settings", "E2", "two", "settings!E2"),
        ("settings", "E2", None, "settings!A2"),
        ("settings", "F1", "pv::asked", "settings!F1"),
        ("settings", "G2", None, "settings!G2"),
        ("last year", "C2", 0.25, "survey!I3"),
        ("last year", "A2", "middle", "survey!I3"),
        ("last year", "B1", "office", "survey!I3"),
    ],
)
def test_a_mistake_is_named_by_its_cell(
    tmp_path: Path, sheet: str, cell: str, value: object, place: str
) -> None:
    with raises(InvalidFile, cell=place):
        read(tmp_path, **{sheet: changed(SHEETS[sheet], cell, value)})


def test_a_form_without_settings_is_told_to_add_them(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as refusal:
        read(tmp_path, settings=[])
    assert "add a sheet settings" in str(refusal.value) and "cell" not in str(refusal.value)


@pytest.mark.filterwarnings("error")
def test_what_a_workbook_has_for_spreadsheet_programs_alone_is_no_warning(tmp_path: Path) -> None:
    path, extended = write_form(tmp_path / "form.xlsx"), tmp_path / "extended.xlsx"
    with zipfile.ZipFile(path) as form, zipfile.ZipFile(extended, "w") as other:
        for name in form.namelist():
            extension = b'<extLst><ext uri="{0}"/></extLst></worksheet>'
            other.writestr(name, form.read(name).replace(b"</worksheet>", extension))
    assert read_survey(extended).questions


@pytest.mark.parametrize("column", ["pv::prior", "pv::prior::north"])
def test_an_unreadable_prior_gets_advice_about_priors(tmp_path: Path, column: str) -> None:
    settings = [[*SETTINGS[0], "pv::cohorts"], [*SETTINGS[1], "north, south"]]
    survey = [[*SURVEY[0], column], *([*row, None] for row in SURVEY[1:])] if "north" in column else SURVEY
    at = list(survey[0]).index(column)
    rows = changed(survey, f"{chr(ord('A') + at)}2", "never 0.8")
    with pytest.raises(InvalidFile) as refusal:
        read(tmp_path, survey=rows, settings=settings)
    assert "shares such as never = 0.8" in str(refusal.value)


def test_a_gate_in_a_conditional_group_is_not_always_asked(tmp_path: Path) -> None:
    """So "not equal" would also hold for people who were not asked."""
    rows = [list(row) for row in SURVEY]
    group = [["begin_group", "g", "G", "G", "${union} = 'yes'"], *rows[4:5], ["end_group"]]
    group[1] = changed([group[1]], "E1", None)[0]
    rows = [*rows[:4], *group, *changed(rows[5:], "E1", "${active} != 'weekly'")]
    with raises(InvalidFile, cell="survey!E8"):
        read(tmp_path, survey=rows)


def test_a_condition_of_a_group_is_named_by_the_cell_of_the_group(tmp_path: Path) -> None:
    rows = [*SURVEY[:4], ["begin_group", "g", "G", "G", "${unoin} = 'yes'"], *changed(SURVEY[4:], "E1", None)]
    with raises(InvalidFile, cell="survey!E5"):
        read(tmp_path, survey=[*rows, ["end_group"]])


@pytest.mark.parametrize("end", ["end_repeat", "end group"])
def test_a_group_and_a_repeat_have_ends_of_their_own(tmp_path: Path, end: str) -> None:
    begin = "begin group" if end == "end_repeat" else "begin_repeat"
    with raises(InvalidFile, cell="survey!A10"):
        read(tmp_path, survey=[*SURVEY, [begin, "g", "G", "G"], [end]])


@pytest.mark.parametrize(
    ("cell", "value", "listed"),
    [
        ("M2", "lost", "sheet survey, column M: 1 cell under no name in row 1"),
        ("G2", "count-selected(.) < 2", "sheet survey, cell G2: the constraint of a choice"),
        ("N2", "randomize=true", "sheet survey, cell N2: the parameters of a choice"),
        ("O2", "${age} = 'old'", "sheet survey, column O (choice_filter): 1 cell"),
        ("P2", "age", "sheet survey, column P (bind::saveTo): 1 cell"),
    ],
)
def test_nothing_is_dropped_in_silence(tmp_path: Path, cell: str, value: str, listed: str) -> None:
    rows = [[*row, *[None] * (16 - len(row))] for row in SURVEY]
    rows[0][13:] = ["parameters", "choice_filter", "bind::saveTo"]
    assert any(
        words.startswith(listed) for words in read(tmp_path, survey=changed(rows, cell, value)).left_out
    )


def test_shares_of_a_list_may_be_incomplete_where_the_question_has_its_own(tmp_path: Path) -> None:
    own = changed(changed(SURVEY, "I4", "yes = 0.1, no = 0.9"), "I5", "unknown")
    parts = read(tmp_path, survey=own, choices=changed(CHOICES, "E5", None)).parts
    assert parts[1].prior.probabilities.tolist() == [0.1, 0.9]


def test_options_can_be_asked_by_group(tmp_path: Path) -> None:
    rows = changed(changed(changed(SURVEY, "H7", "shares"), "I7", 'sheet = "worries"'), "J7", "age")
    cells = [(ticked, age) for ticked in ("", "pay", "boss", "pay boss") for age in ("young", "old")]
    table = [["worries", "age", "share"], *([ticked, age, 1 / 16] for ticked, age in cells)]
    table += [[f"{ticked} health", age, 1 / 16] for ticked, age in cells]
    parts = read(tmp_path, survey=rows, worries=table).parts
    spec = next(spec for spec in parts if "worries/pay" in spec.attributes)
    assert spec.attributes == ("age", "worries/pay", "worries/boss", "worries/health")
    tables = [("age", f"worries/{code}") for code in ("pay", "boss", "health")]
    assert spec.query == Linear.margins(spec.prior, tables, unbiased=True) and len(spec.prior) == 16


def test_a_disabled_row_is_not_asked(tmp_path: Path) -> None:
    rows = [[*row, *[None] * (13 - len(row))] for row in SURVEY]
    survey = read(tmp_path, survey=changed(changed(rows, "M1", "disabled"), "M6", "yes"))
    assert "sleep" not in {question.name for question in survey.questions}
    assert "sheet survey, cell M6: sleep, which is disabled" in survey.left_out


@pytest.mark.parametrize(
    ("kind", "constraint", "ends"),
    [
        ("decimal", ".<=12 and .>=0", (0, 12)),
        ("decimal", "(. > 0) and (. < 12)", (0, 12)),
        ("integer", ". > -1 and . < 13", (0, 12)),
        ("integer", ". >= 0 and . <= 12", (0, 12)),
    ],
)
def test_the_range_of_a_number_is_its_constraint(
    tmp_path: Path, kind: str, constraint: str, ends: tuple[int, int]
) -> None:
    rows = changed(changed(changed(SURVEY, "A6", kind), "G6", constraint), "I6", None)
    sleep = next(spec for spec in read(tmp_path, survey=rows).parts if spec.attributes == ("sleep",))
    assert sleep.prior.points is not None
    assert (sleep.prior.points[0], sleep.prior.points[-1]) == ends


@pytest.mark.parametrize(
    ("parameters", "ends"), [(None, (1, 10)), ("end=5", (1, 5)), ("start=0.5; end=7,step=2", (0.5, 7))]
)
def test_the_range_of_a_range_is_1_to_10_as_in_odk(
    tmp_path: Path, parameters: str | None, ends: tuple[float, float]
) -> None:
    rows = [
        [*SURVEY[0], "parameters"],
        *SURVEY[1:],
        ["range", "mood", "Mood?", "Laune?", *[None] * 8, parameters],
    ]
    mood = read(tmp_path, survey=rows).parts[-1]
    assert mood.attributes == ("mood",) and (mood.prior.labels[0], mood.prior.labels[-1]) == ends
    rows[-1][-1] = "start=low end=10"
    with raises(InvalidFile, cell="survey!A9"):
        read(tmp_path, survey=rows)


def test_a_condition_that_a_conditional_question_is_answered(tmp_path: Path) -> None:
    survey = read(tmp_path, survey=changed(changed(SURVEY, "E7", "${active} != ''"), "G7", None))
    assert survey.questions[5].asked_if == {"active": ("rarely", "weekly")}


def test_a_form_of_texts_has_nothing_to_ask(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="no row of this sheet can be asked") as refused:
        read(tmp_path, survey=[SURVEY[0], ["text", "remarks", "Remarks?", "Noch was?"]])
    assert refused.value.cell == "survey!A2"


def test_a_form_without_choices_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="there is no sheet named choices") as refused:
        read(tmp_path, choices=[])
    assert refused.value.cell == "survey!A2"


def test_other_sheets_are_listed_and_cannot_be_wrong(tmp_path: Path) -> None:
    """Forms have sheets of notes, entities or formulas, which nobody reads here."""
    notes = [["note", "note", None], ["=1/4", "#REF!", datetime(2026, 2, 1)]]
    left_out = read(tmp_path, notes=notes, empty=[]).left_out
    assert "sheet notes: no prior names it" in left_out
    assert not any("empty" in words or "last year" in words for words in left_out)


def test_cells_may_be_merged(tmp_path: Path) -> None:
    path = write_form(tmp_path / "form.xlsx", survey=[*SURVEY, ["note", "end", "Thank you"]])
    workbook = load_workbook(path)
    workbook["survey"].merge_cells("C9:E10")
    workbook.save(path)
    assert len(read_survey(path).questions) == 7


def test_a_remark_between_the_options_is_listed(tmp_path: Path) -> None:
    left_out = read(tmp_path, choices=[*CHOICES, [None, None, "The next lists are old"]]).left_out
    assert "sheet choices, cell C11: a row without a list_name and a name" in left_out


def test_an_old_workbook_is_saved_again_and_not_renamed(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as refused:
        read_survey(tmp_path / "form.xls")
    assert "rename" not in str(refused.value) and " file: save it as" in str(refused.value)


def test_formulas_with_values_are_read(tmp_path: Path) -> None:
    """As a spreadsheet program stores them: the formula, and the value that it had."""
    path = write_form(tmp_path / "form.xlsx", choices=changed(CHOICES, "E4", 123.5))
    with zipfile.ZipFile(path) as workbook:
        parts = {name: workbook.read(name) for name in workbook.namelist()}
    with zipfile.ZipFile(path, "w") as workbook:
        for name, part in parts.items():
            workbook.writestr(name, part.replace(b"<v>123.5</v>", b"<f>1/4</f><v>0.25</v>"))
    union = next(spec for spec in read_survey(path).parts if spec.attributes == ("union",))
    assert union.prior.probabilities.tolist() == [0.25, 0.75]


def test_a_workbook_needs_a_sheet_of_questions(tmp_path: Path) -> None:
    path = write_form(tmp_path / "form.xlsx", survey=SURVEY[:1])
    with raises(InvalidFile, path=str(path)):
        read_survey(path)
    path.write_bytes(path.read_bytes()[:100])
    with raises(InvalidFile, cell=None):
        read_survey(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0 and more")
    with raises(InvalidFile, cell=None):
        read_survey(path)


def test_a_number_in_a_cell_is_a_code(tmp_path: Path) -> None:
    """Spreadsheets turn the codes 1 and 2 into numbers."""
    choices = changed(changed(CHOICES, "B2", 1), "B3", 2.0)
    rows = [["age", "home", "share"], [1, "yes", 0.15], [1, "no", 0.35], [2, "yes", 0.1], [2, "no", 0.4]]
    survey = read(tmp_path, choices=choices, **{"last year": rows})
    assert tuple(survey.questions[0].options) == ("1", "2")
    assert survey.parts[0].prior.labels[0] == ("1", "yes")


def test_the_default_language_comes_first(tmp_path: Path) -> None:
    settings = changed(changed(SETTINGS, "D2", "Deutsch (de)"), "B1", "pv::title::English (en)")
    settings = changed(
        changed(settings, "G1", "pv::asked_by::English (en)"), "I1", "pv::purpose::English (en)"
    )
    assert read(tmp_path, settings=settings).details.languages == ("de", "en")


def test_a_table_of_people_may_be_a_sheet(tmp_path: Path) -> None:
    people = [LAST_YEAR[0][:2], *(row[:2] for row in LAST_YEAR[1:] for _ in range(20))]
    table = read(tmp_path, **{"last year": people}).parts[0].prior
    assert table.probabilities.tolist() == [0.25] * 4 and not table.assumed


def test_a_received_workbook_has_no_table_of_people(tmp_path: Path) -> None:
    """Its shares or counts may be sent; the rows of people stay where they are."""
    form = write_form(tmp_path / "form.xlsx")
    assert received_survey(form.name, form.read_bytes()).parts[0].prior.assumed is False
    people = [LAST_YEAR[0][:2], *(row[:2] for row in LAST_YEAR[1:] for _ in range(20))]
    form = write_form(tmp_path / "form.xlsx", **{"last year": people})
    with pytest.raises(InvalidFile, match="a row for each person") as refused:
        received_survey(form.name, form.read_bytes())
    assert refused.value.cell == "survey!I3" and "count" in refused.value.advice


def test_a_damaged_workbook_is_refused(tmp_path: Path) -> None:
    """Reading one raises errors of the zip, of its XML and of openpyxl; all of them are one error."""
    whole = write_form(tmp_path / "form.xlsx")
    with zipfile.ZipFile(whole) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for damaged in parts:
        with zipfile.ZipFile(tmp_path / "other.xlsx", "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content[: len(content) // 2] if name == damaged else content)
        try:
            read_survey(tmp_path / "other.xlsx")
        except InvalidFile as error:
            assert "this is not a workbook that can be read" in str(error)
        else:
            assert not damaged.startswith(("xl/workbook", "xl/worksheets"))
    content = bytearray(whole.read_bytes())
    content[len(content) // 3] ^= 255
    (tmp_path / "other.xlsx").write_bytes(content)
    with raises(InvalidFile, path=str(tmp_path / "other.xlsx")):
        read_survey(tmp_path / "other.xlsx")

"""Surveys in TOML: what they say, and the line of what is wrong."""

from __future__ import annotations

import math
import tomllib
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from priorveil.errors import InvalidFile
from priorveil.queries import Linear, Sum
from priorveil.questions.question import NOT_ASKED
from priorveil.questions.survey import Survey
from priorveil.questions.survey_document import SurveyDocument, nearest
from priorveil.questions.survey_parts import TOGETHER_KEYS
from priorveil.questions.survey_reader import read_survey, template
from priorveil.questions.survey_rules import COHORT_KEYS, QUESTION_KEYS, SURVEY_KEYS, survey_of
from priorveil.questions.toml_file import key_places
from refusals import raises
from sample_survey_files import TOML


def read(folder: Path, text: str) -> Survey:
    path = folder / "survey.toml"
    path.write_text(text, encoding="utf-8")
    return read_survey(path)


def shares(survey: Survey, attribute: str) -> dict[object, float]:
    """The prior of the part about one attribute."""
    prior = next(spec.prior for spec in survey.parts if spec.attributes == (attribute,))
    return dict(zip(prior.labels, prior.probabilities.round(6).tolist(), strict=True))


def yes_no(name: str, *lines: str) -> str:
    """The section of a question."""
    return "\n".join(["[[question]]", f'name = "{name}"', f'text = "{name}?"', 'kind = "yes-no"', *lines, ""])


KNOWN = "prior = {yes = 0.5, no = 0.5}"


def test_how_many_are_asked_follows_from_questions_designed_together(tmp_path: Path) -> None:
    asked = 'asked_if = {rents = ["yes"], damp = ["yes"]}'
    rows = [("yes", "yes", 0.3), ("yes", "no", 0.4), ("no", "yes", 0.1), ("no", "no", 0.2)]
    prior = ", ".join(f'{{rents = "{rents}", damp = "{damp}", share = {n}}}' for rents, damp, n in rows)
    together = f'[[together]]\nquestions = ["rents", "damp"]\nprior = [{prior}]\n'
    text = (
        "title = 'Homes'\nepsilon = 1.0\n" + yes_no("rents") + yes_no("damp") + yes_no("told", asked, KNOWN)
    )
    assert shares(read(tmp_path, text + together), "told") == {"yes": 0.15, "no": 0.15, NOT_ASKED: 0.7}


def test_how_many_are_asked_follows_from_the_last_of_nested_conditions(tmp_path: Path) -> None:
    """As in a group of an XLSForm: the condition of the group applies to every question in it."""
    group, both = 'asked_if = {works = ["yes"]}', 'asked_if = {works = ["yes"], overtime = ["yes"]}'
    questions = [("works", KNOWN), ("overtime", group, KNOWN), ("paid", both, KNOWN)]
    text = "title = 'Work'\nepsilon = 1.0\n" + "".join(yes_no(*each) for each in questions)
    assert shares(read(tmp_path, text), "paid") == {"yes": 0.125, "no": 0.125, NOT_ASKED: 0.75}


def test_a_survey_says_what_is_asked_and_what_is_known(tmp_path: Path) -> None:
    survey = read(tmp_path, TOML)
    assert [question.name for question in survey.questions] == ["smokes", "quit", "age"]
    assert survey.questions[0].options == {"yes": {"en": "Yes"}, "no": {"en": "No"}}
    assert survey.questions[1].asked_if == {"smokes": ("yes",)}
    assert shares(survey, "smokes") == {"yes": 0.2, "no": 0.8}
    assert survey.details.smallest_count == 50 and survey.epsilon == 1.0


def test_a_follow_up_is_not_asked_as_often_as_its_gate_says(tmp_path: Path) -> None:
    survey = read(tmp_path, TOML)
    assert shares(survey, "quit") == {"yes": 0.1, "no": 0.08, "secret": 0.02, NOT_ASKED: 0.8}


@pytest.mark.parametrize("text", ["epsilon = 1" + "0" * 5000, "title = " + "[" * 50_000])
def test_what_no_program_can_read_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFile, match="thousands of digits, or brackets are nested too deeply"):
        read(tmp_path, text)


def test_nobody_knows_an_unknown_prior(tmp_path: Path) -> None:
    age = read(tmp_path, TOML).parts[-1]
    assert age.prior.assumed and age.prior.edges is not None and age.prior.domain.outside == "ends"
    assert age.query == Linear.cumulative(age.prior, unbiased=True)


def test_texts_may_be_in_several_languages(tmp_path: Path) -> None:
    text = TOML.replace('["en"]', '["de", "en"]')
    for plain in (
        "Health",
        "The clinic",
        "To help",
        "Do you smoke?",
        "Do you want to stop?",
        "How old are you?",
    ):
        text = text.replace(f'"{plain}"', f'{{en = "{plain}", de = "{plain} (de)"}}')
    text = text.replace(
        '{yes = "Yes", no = "No", secret = "I prefer not to say"}',
        '{yes = {en = "Yes", de = "Ja"}, no = {en = "No", de = "Nein"}, secret = {en = "-", de = "nichts"}}',
    )
    survey = read(tmp_path, text)
    assert survey.details.languages == ("de", "en") and survey.details.title["de"] == "Health (de)"
    assert survey.questions[0].options["yes"] == {"de": "Ja", "en": "Yes"}


def test_a_number_is_rounded_for_its_mean_and_put_into_ranges_for_its_shares(tmp_path: Path) -> None:
    prior = '{"18 to 40" = 0.5, "40 to 98" = 0.5}'
    text = TOML.replace('prior = "unknown"', f"prior = {prior}")
    mean = read(tmp_path, text.replace("quantiles", "mean")).parts[-1]
    assert mean.prior.points is not None and mean.prior.points.tolist() == [18, 40, 98]
    assert mean.query == Sum([18, 40, 98], unbiased=True)
    assert mean.prior.probabilities.tolist() == pytest.approx([0.25, 0.5, 0.25])
    cells = read(tmp_path, text.replace("quantiles", "shares")).parts[-1]
    assert cells.prior.labels == ("[18, 40)", "[40, 98]") and not cells.prior.assumed


def test_a_number_that_is_not_always_asked_is_put_into_ranges(tmp_path: Path) -> None:
    text = TOML.replace('query = "quantiles"', 'points = [18, 40, 98]\nasked_if = {smokes = ["no"]}')
    survey = read(
        tmp_path, text.replace('prior = "unknown"', 'prior = {"18 to 40" = 0.25, "40 to 98" = 0.75}')
    )
    assert survey.questions[-1].edges == (18, 40, 98)
    assert shares(survey, "age") == {"[18, 40)": 0.2, "[40, 98]": 0.6, NOT_ASKED: 0.2}


CHOICES = """
[[question]]
name = "ill"
text = "What do you have?"
kind = "choices"
options = {flu = "The flu", cold = "A cold"}
"""


def test_shares_of_options_say_nothing_about_sets(tmp_path: Path) -> None:
    survey = read(tmp_path, TOML + CHOICES + "prior = {flu = 0.1, cold = 0.3}\n")
    flu, cold = survey.parts[-2:]
    assert (flu.attributes, cold.attributes) == (("ill/flu",), ("ill/cold",)) and flu.weight == 0.5
    assert shares(survey, "ill/flu") == {"yes": 0.1, "no": 0.9}


def test_known_sets_are_one_value(tmp_path: Path) -> None:
    joint = '{joint = {"" = 0.5, flu = 0.1, cold = 0.3, "flu cold" = 0.1}}'
    spec = read(tmp_path, TOML + CHOICES + f"prior = {joint}\n").parts[-1]
    assert spec.attributes == ("ill/flu", "ill/cold") == spec.prior.names and not spec.prior.assumed
    assert spec.query == Linear.margins(spec.prior, spec.attributes, unbiased=True)


def test_unknown_sets_are_one_value_while_they_are_few(tmp_path: Path) -> None:
    spec = read(tmp_path, TOML + CHOICES).parts[-1]
    assert spec.prior.assumed and len(spec.prior) == 4
    many = ", ".join(f'o{n} = "Option {n}"' for n in range(7))
    options = CHOICES.replace('flu = "The flu", cold = "A cold"', many)
    assert [spec.attributes for spec in read(tmp_path, TOML + options).parts[-7:]] == [
        (f"ill/o{n}",) for n in range(7)
    ]


def test_sets_that_are_not_always_asked_have_one_more_value(tmp_path: Path) -> None:
    spec = read(tmp_path, TOML + CHOICES + 'asked_if = {smokes = ["yes"]}\n').parts[-1]
    assert len(spec.prior) == 5 and (NOT_ASKED, NOT_ASKED) in spec.prior.labels


def test_a_table_of_people_is_a_prior(tmp_path: Path) -> None:
    people = ["yes,yes"] * 10 + ["yes,no"] * 20 + ["yes,secret"] * 10 + ["no,"] * 60
    (tmp_path / "people.csv").write_text("\n".join(["smokes,stop", *people]))
    text = TOML.replace("{yes = 0.2, no = 0.8}", '{file = "people.csv"}')
    text = text.replace("{yes = 0.5, no = 0.4, secret = 0.1}", '{file = "people.csv", column = "stop"}')
    survey = read(tmp_path, text)
    assert shares(survey, "smokes") == {"yes": 0.4, "no": 0.6}
    assert shares(survey, "quit") == {"yes": 0.1, "no": 0.2, "secret": 0.1, NOT_ASKED: 0.6}


def test_rare_people_are_published_only_if_they_are_public(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("\n".join(["smokes", *["yes"] * 3, *["no"] * 97]))
    text = TOML.replace("{yes = 0.2, no = 0.8}", '{file = "people.csv"}')
    with raises(InvalidFile, line=12):
        read(tmp_path, text)
    with raises(InvalidFile, line=12):  # smoothing does not hide them
        read(tmp_path, text.replace('"people.csv"', '"people.csv", smoothing = 10'))
    public = text.replace('"people.csv"', '"people.csv", public = true')
    assert shares(read(tmp_path, public), "smokes") == {"yes": 0.03, "no": 0.97}


TOGETHER = """
[[together]]
questions = ["smokes", "age"]
query = "mean of age by smokes"
"""


def test_questions_can_be_designed_together(tmp_path: Path) -> None:
    grouped = TOML.replace("prior = {yes = 0.2, no = 0.8}\n", "").replace('prior = "unknown"', "")
    grouped = grouped.replace('query = "quantiles"', "points = [18, 98]")
    rows = ", ".join(
        f'{{smokes = "{code}", age = {age}, share = {share}}}'
        for code, age, share in (("yes", 18, 0.1), ("yes", 98, 0.1), ("no", 18, 0.5), ("no", 98, 0.3))
    )
    survey = read(tmp_path, f"{grouped}{TOGETHER}prior = [{rows}]\n")
    spec = survey.parts[-1]
    assert spec.attributes == ("smokes", "age") and spec.prior.domain.grids == ("age",)
    assert spec.query == Linear.averages(spec.prior, "age", by="smokes")
    assert shares(survey, "quit")[NOT_ASKED] == 0.8  # the gate is known from the table


SETS_BY_AGE = """
[[question]]
name = "old"
text = "Are you over 40?"
kind = "yes-no"

[[together]]
questions = ["ill", "old"]
query = "shares of ill by old"
prior = {file = "people.csv"}
"""


def test_options_can_be_asked_by_group(tmp_path: Path) -> None:
    """The prior is that of sets. Asked for are the shares of each option by group, and not those of sets."""
    cells = {("", "no"): 40, ("flu", "no"): 20, ("cold", "no"): 10, ("flu cold", "no"): 10}
    cells |= {("", "yes"): 40, ("flu", "yes"): 10, ("cold", "yes"): 30, ("cold,flu", "yes"): 40}
    rows = [f'"{ticked}",{old}' for (ticked, old), count in cells.items() for _ in range(count)]
    (tmp_path / "people.csv").write_text("\n".join(["ill,old", *rows]))
    spec = read(tmp_path, TOML + CHOICES + SETS_BY_AGE).parts[-1]
    assert spec.attributes == ("old", "ill/flu", "ill/cold")
    known = dict(zip(spec.prior.labels, spec.prior.probabilities.tolist(), strict=True))
    assert known["yes", "yes", "yes"] == 0.2 and known["no", "no", "yes"] == 0.05
    tables = [("old", "ill/flu"), ("old", "ill/cold")]
    assert spec.query == Linear.margins(spec.prior, tables, unbiased=True)
    typed = ", ".join(
        f'{{ill = "{ticked}", old = "{old}", share = {n / 200}}}' for (ticked, old), n in cells.items()
    )
    same = SETS_BY_AGE.replace('{file = "people.csv"}', f"[{typed}]")
    assert read(tmp_path, TOML + CHOICES + same).parts[-1] == spec
    table = read(tmp_path, TOML + CHOICES + same.replace("shares of ill by old", "table")).parts[-1]
    assert table.attributes == ("ill/flu", "ill/cold", "old") and table.query.unbiased
    assert (
        read(tmp_path, TOML + CHOICES + SETS_BY_AGE.replace('{file = "people.csv"}', '"unknown"'))
        .parts[-1]
        .prior.assumed
    )


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("shares of ill by old", "mean of age by ill", 42),
        ('"old"]\nquery = "shares of ill by old"', '"age"]\nquery = "mean of age by ill"', 42),
        ('flu = "The flu"', ", ".join(f'o{n} = "Option {n}"' for n in range(6)), 41),
        ('{file = "people.csv"}', "{flu = 0.1, cold = 0.2}", 43),
        ('{file = "people.csv"}', '[{ill = "gout", old = "no", share = 1}]', 43),
    ],
)  # fmt: skip
def test_a_mistake_about_options_by_group_is_named_by_its_line(
    tmp_path: Path, before: str, after: str, line: int
) -> None:
    (tmp_path / "people.csv").write_text("\n".join(["ill,old", "flu,yes"]))
    text = TOML.replace('prior = "unknown"\n', "").replace('query = "quantiles"\n', "\n\n")
    with raises(InvalidFile, line=line):
        read(tmp_path, (text + CHOICES + SETS_BY_AGE).replace(before, after))


def test_a_wrong_entry_of_a_person_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("\n".join(["ill", "flu", "gout"]))
    with pytest.raises(InvalidFile) as refused:
        read(tmp_path, TOML + CHOICES + 'prior = {file = "people.csv"}\n')
    assert "gout" not in str(refused.value) and refused.value.line == 34


@pytest.mark.parametrize("weight", ["", "count", "share"])
def test_answers_of_people_that_contradict_the_skip_logic_are_not_shown(tmp_path: Path, weight: str) -> None:
    rows = {"yes,paid": 20, "yes,unpaid": 20, "no,": 59, "no,unpaid": 1}
    table = {
        "": ["overtime,how", *(row for row, number in rows.items() for _ in range(number))],
        "count": ["overtime,how,count", *(f"{row},{number}" for row, number in rows.items())],
        "share": ["overtime,how,share", *(f"{row},{number / 100}" for row, number in rows.items())],
    }
    (tmp_path / "people.csv").write_text("\n".join(table[weight]), encoding="utf-8")
    gate = 'name = "overtime"\ntext = "Overtime?"\nkind = "yes-no"\n'
    how = 'name = "how"\ntext = "How?"\noptions = {paid = "Paid", unpaid = "Unpaid"}\n'
    how += 'asked_if = {overtime = ["yes"]}\n'
    both = 'questions = ["overtime", "how"]\nprior = {file = "people.csv"}\n'
    text = f'title = "T"\nepsilon = 1\n[[question]]\n{gate}[[question]]\n{how}[[together]]\n{both}'
    (tmp_path / "survey.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFile, match="cannot happen") as refused:
        read_survey(tmp_path / "survey.toml")
    assert ("no with unpaid" in refused.value.message) == (weight == "share")


def test_codes_may_be_words_of_ours(tmp_path: Path) -> None:
    options = '{file = "File", joint = "Joint", cohorts = "Cohorts"}'
    question = f'[[question]]\nname = "tax"\ntext = "Tax?"\noptions = {options}\n'
    survey = read(tmp_path, TOML + question + "prior = {file = 0.2, joint = 0.3, cohorts = 0.5}\n")
    assert shares(survey, "tax") == {"file": 0.2, "joint": 0.3, "cohorts": 0.5}


def test_nothing_beside_the_shares_of_sets_is_left_unread(tmp_path: Path) -> None:
    joint = '{joint = {"" = 0.5, flu = 0.1, cold = 0.3, "flu cold" = 0.1}, smothing = 1}'
    with raises(InvalidFile, line=34):
        read(tmp_path, TOML + CHOICES + f"prior = {joint}\n")


def test_a_table_leaves_out_what_cannot_happen(tmp_path: Path) -> None:
    text = TOML.replace("prior = {yes = 0.2, no = 0.8}\n", "")
    text = text.replace("prior = {yes = 0.5, no = 0.4, secret = 0.1}\n", "")
    spec = read(tmp_path, text + '[[together]]\nquestions = ["smokes", "quit"]\n').parts[0]
    assert set(spec.prior.labels) == {
        ("no", NOT_ASKED),
        *(("yes", code) for code in ("yes", "no", "secret")),
    }


def test_the_template_is_a_survey(tmp_path: Path) -> None:
    survey = read(tmp_path, template("survey.toml"))
    assert len(survey.questions) == 4 and not any(spec.prior.assumed for spec in survey.parts)


def test_the_remarks_of_the_template_are_a_survey_too(tmp_path: Path) -> None:
    """What stands behind # can be used as it is, once the questions in the table have no prior of their own."""
    head, more = template("survey.toml").split("# -- more")
    lines = [line.removeprefix("# ") for line in more.splitlines()[2:] if line.startswith("# ")]
    text = "\n".join(lines).partition("\nA question")[0]
    head = head.replace("prior = {never = 0.6, sometimes = 0.3, mostly = 0.1}\n", "")
    head = head.replace("prior = {yes = 0.4, no = 0.6}\n", "")
    rows = [f"{home},{code}" for home in ("never", "sometimes", "mostly") for code in ("yes", "no")]
    (tmp_path / "last-year.csv").write_text("\n".join(["home,overtime", *rows * 20]))
    assert read(tmp_path, head + text).parts[0].attributes == ("home", "overtime")


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ('title = "Health"', 'title = "Health', 1),
        ('title = "Health"', "", None),
        ('title = "Health"', "title = 7", 1),
        ("epsilon = 1.0", "epsilon = 0", 5),
        ("epsilon = 1.0", "", None),
        ("epsilon = 1.0", "espilon = 1.0", 5),
        ("smallest_count = 50", "smallest_count = 1.5", 6),
        ("smallest_count = 50", "opens = 2026-01-01T00:00:00", 6),
        ("smallest_count = 50", "keep_until = 2026-01-01T00:00:00Z", 6),
        ("smallest_count = 50", 'admission = "friends"', 6),
        ("smallest_count = 50", "closes = 2026-01-01T00:00:00Z\nopens = 2026-01-02T00:00:00Z", 6),
        ('["en"]', '["english"]', 2),
        ('["en"]', '["en", "de"]', 1),
        ('name = "smokes"', 'name = "smokes?"', 9),
        ('name = "quit"', 'name = "smokes"', 15),
        ('text = "Do you smoke?"', 'txt = "Do you smoke?"', 10),
        ('kind = "yes-no"', 'kind = "yes or no"', 11),
        ("{yes = 0.2, no = 0.8}", "{yes = 0.2, no = 0.7}", 12),
        ("{yes = 0.2, no = 0.8}", "{yes = 0.2, maybe = 0.8}", 12),
        ("{yes = 0.2, no = 0.8}", "{yes = 0, no = 1}", 12),
        ("{yes = 0.2, no = 0.8}", "{yes = 20, no = 80}", 12),
        ("{yes = 0.2, no = 0.8}", '"often"', 12),
        ("{yes = 0.2, no = 0.8}", '{file = "none.csv"}', 12),
        ("{yes = 0.2, no = 0.8}", '{file = "none.csv", public = "no"}', 12),
        ("{yes = 0.2, no = 0.8}", '{file = "none.csv", colunm = "smokes"}', 12),
        ("{yes = 0.2, no = 0.8}", '"unknown"', 19),  # the share of "not asked" does not follow any more
        ('secret = "I prefer not to say"', 'secret = "No"', 17),
        ('{smokes = ["yes"]}', '{smokes = ["sometimes"]}', 18),
        ('{smokes = ["yes"]}', '{age = ["yes"]}', 18),
        ('{smokes = ["yes"]}', "{smokes = 1}", 18),
        ("[18, 98]", "[98, 18]", 25),
        ("[18, 98]", "[18]", 25),
        ("range = [18, 98]", "", 21),
        ("range = [18, 98]", "range = [18, 98]\npoints = [18, 50]", 26),
        ('query = "quantiles"', 'query = "median"', 26),
        ('query = "quantiles"', "epsilon = 2", 26),
        ('query = "quantiles"', "weight = -1", 26),
        ('query = "quantiles"', 'asked_if = {smokes = ["yes"]}\nquery = "mean"', 27),
        ('prior = "unknown"', 'prior = "unknown"\n[[together]]\nquestions = ["smokes", "bmi"]', 29),
        ('prior = "unknown"', '[[together]]\nquestions = ["smokes", "age"]', 12),
        ('prior = "unknown"', '[[together]]\nquestions = ["age"]', 28),
        ("[[question]]\nname = \"smokes\"", "[question]\nname = \"smokes\"", 14),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_its_line(tmp_path: Path, before: str, after: str, line: int | None) -> None:
    assert before in TOML
    with raises(InvalidFile, line=line, path=str(tmp_path / "survey.toml")):
        read(tmp_path, TOML.replace(before, after, 1))


ODD: list[Any] = [
    *(0, -1, 1.5, math.nan, math.inf, 10**400, True, "", "x", "unknown", [], [1], ["a"], [1, 0], [{}]),
    *(
        [{"share": 1}],
        {},
        {"en": 1},
        {"yes": 1},
        {"yes": "a"},
        {"joint": 1},
        {"joint": {"a": 0.5}},
        {"file": 1},
    ),
    *(
        {"file": "none.csv"},
        {"file": "none.csv", "cohort_column": 1},
        {"cohorts": {"north": "unknown"}},
        {"cohorts": {"north": "unknown", "south": {"0 to 5": 1}}},
        {"sheet": "s"},
        {"0 to 5": 1},
        {"smokes": []},
        {"none": ["yes"]},
        date(2026, 1, 1),
    ),
]


def test_a_wrong_value_of_any_key_is_never_a_crash(tmp_path: Path) -> None:
    """It is refused as a mistake in the file, or it has a meaning."""
    by_cohort = "{cohorts = {north = {yes = 0.2, no = 0.8}, south = {yes = 0.3, no = 0.7}}}"
    text = TOML.replace("{yes = 0.2, no = 0.8}", by_cohort)
    text += f'{CHOICES}[[together]]\nquestions = ["a", "h"]\nquery = "mean of h by a"\n'
    text += '[[question]]\nname = "a"\ntext = "A?"\nkind = "yes-no"\n'
    text += '[[question]]\nname = "h"\ntext = "H?"\nkind = "number"\npoints = [0, 5, 10]\n'
    values = tomllib.loads(text)
    values["cohort"] = [{"name": "north"}, {"name": "south"}]
    places = [
        (values, SURVEY_KEYS),
        (values["together"][0], TOGETHER_KEYS),
        (values["cohort"][0], COHORT_KEYS),
    ]
    places += [(question, (*QUESTION_KEYS, "options", "range", "points")) for question in values["question"]]
    refusals = 0
    for section, keys in places:
        for key, odd in product(keys, ODD):
            before = dict(section)
            section[key] = odd
            try:
                survey_of(SurveyDocument(tmp_path / "survey.toml", values, nearest({})))
            except InvalidFile:
                refusals += 1
            section.clear()
            section.update(before)
    assert refusals > 1000


def test_keys_in_long_texts_are_no_keys() -> None:
    places = key_places('a = """\nb = 1\n"""\nc = 2\n[[question]]\nd.e = 3\n')
    assert places["a",].line == 1 and places["c",].line == 4 and places["question", 0, "d", "e"].line == 6
    assert ("b",) not in places


def test_a_survey_has_a_name_that_says_what_it_is(tmp_path: Path) -> None:
    with raises(InvalidFile, path="survey.docx"):
        read_survey("survey.docx")
    (tmp_path / "survey.toml").write_bytes(b"PK\x03\x04\xff")
    with raises(InvalidFile, line=None):
        read_survey(tmp_path / "survey.toml")

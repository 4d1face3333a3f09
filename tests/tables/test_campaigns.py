"""Campaigns on tables: a column for each question in, submissions out, and results from them."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from local_server import running
from priorveil.curator.store import open_store
from priorveil.errors import InvalidInput
from priorveil.files.batches import Batch
from priorveil.plans.form import Form
from priorveil.priors.domain import LabelDomain
from priorveil.questions.campaign import Campaign, ask, ask_with
from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.question import NOT_ASKED
from priorveil.results.findings import result_of
from priorveil.results.form_estimates import PartEstimates
from priorveil.results.lines import write_lines
from priorveil.tables import estimate_table, privatize_table, tally_table
from priorveil.tables.answers import attribute_columns
from priorveil.tables.substitutes import Substitutes
from refusals import raises
from sample_surveys import QUESTIONS, always, form, health, people, plans
from terminal import done, refused, run

SURVEY = health(smallest_count=1)
NAMES = ("smokes", "ills", "hours", "packs")
PRIVATE = "31337"  # a value that no message may show


def as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The answers of people in columns, codes with blanks between them."""
    texts = [{**row, "ills": " ".join(row["ills"])} if "ills" in row else row for row in rows]
    return {name: [row.get(name) for row in texts] for name in NAMES}


def write_rows(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values(), strict=True))
    return path


def levels_of(columns: dict[str, Any], campaign: Campaign = SURVEY) -> tuple[dict[str, list[Any]], list[Any]]:
    batch = Batch(columns, len(next(iter(columns.values()))))
    levels, reasons = attribute_columns(campaign, batch, Substitutes(), Counter())
    return {name: column.tolist() for name, column in levels.items()}, reasons.tolist()


def two_cohorts() -> Campaign:
    """Two cohorts whose submissions differ in their length: one draws among questions, the other asks all."""
    of = plans()
    everything = Form((*form().slots[:1], always(("hours",), of["hours"]), always(("packs",), of["packs"])))
    return Campaign("Health", QUESTIONS, {"drawn": form(), "everything": everything})


# -- answers in columns --------------------------------------------------------------------------------------

CELLS = st.fixed_dictionaries(
    {
        "smokes": st.sampled_from(["never", "daily", " daily ", "", None, "often", "Daily"]),
        "ills": st.sampled_from(["", None, "cough", "asthma cough", "cough  cough", "measles", "cough flu"]),
        "hours": st.sampled_from(["40", "12,5", "1e9", "-3", "", None, "many", "1,234"]),
        "packs": st.sampled_from(["0.5", "1", "99", "", None, "two"]),
    }
)


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_columns_give_the_levels_of_single_people(rows: list[dict[str, Any]]) -> None:
    """The skip logic and the answers are read as from one person, who gives a list of ticked options."""
    levels, reasons = levels_of({name: [row[name] for row in rows] for name in NAMES})
    for at, row in enumerate(rows):
        answers = {**row, "ills": (row["ills"] or "").split()}
        try:
            expected = SURVEY.attribute_values(answers)
        except InvalidInput as error:
            assert reasons[at] is not None and reasons[at].split(":")[0] in str(error)
            continue
        assert reasons[at] is None
        for name, level in expected.items():
            found = levels[name][at]
            assert found == level if name != "hours" else found == float(str(level).replace(",", "."))


def test_an_answer_to_a_skipped_question_is_not_read() -> None:
    columns = {
        "smokes": ["never"] * 3,
        "ills": [None, "cough", PRIVATE],
        "hours": [1.5, 2, 3],
        "packs": [None, "3", PRIVATE],
    }
    levels, reasons = levels_of(columns)
    assert reasons == [None] * 3
    assert all(levels[name] == [NOT_ASKED] * 3 for name in ("ills/cough", "ills/asthma", "packs"))


def test_lists_and_numbers_are_ticked_options_too() -> None:
    lists = pa.array([["asthma"], [], None, ["asthma", "flu"]])
    columns = {"smokes": ["daily"] * 4, "ills": lists, "hours": ["1"] * 4, "packs": ["1"] * 4}
    levels, reasons = levels_of(columns)
    assert reasons == [None, None, "ills: missing", "ills: outside the domain"]
    assert levels["ills/asthma"][:2] == ["yes", "no"] and levels["ills/cough"][:2] == ["no", "no"]
    numbered = MultipleChoice("ills", "Which?", {"1": "Cough", "2": "Asthma"})
    joint = {(a, b): 0.25 for a in ("yes", "no") for b in ("yes", "no")}
    plan = pv.design(pv.Prior.joint(joint, names=("ills/1", "ills/2")), 1.0, pv.Distribution())
    campaign = Campaign("Ills", [numbered], {"all": Form.of(("ills/1", "ills/2"), plan)})
    levels, reasons = levels_of({"ills": pa.array([2.0, None, 1.0])}, campaign)
    assert reasons == [None] * 3 and levels["ills/2"] == ["yes", "no", "no"]


def test_codes_with_blanks_need_lists() -> None:
    question = MultipleChoice("ills", "Which?", {"a cold": "A cold"})
    plan = pv.design(pv.Prior({"yes": 0.2, "no": 0.8}), 1.0, pv.Distribution())
    campaign = Campaign("Ills", [question], {"all": Form.of("ills/a cold", plan)})
    with raises(InvalidInput, argument="column"):
        privatize_table({"ills": ["a cold"]}, campaign)
    assert privatize_table({"ills": [["a cold"], []]}, campaign).reports == 2


# -- there and back ------------------------------------------------------------------------------------------


@cache
def many_people() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The answers of 4,000 people, and their levels of all attributes."""
    rows = people(4_000, np.random.default_rng(4))
    return rows, [SURVEY.attribute_values(row) for row in rows]


def truth(values: list[dict[str, Any]], result: PartEstimates) -> list[float]:
    """The statistics of a result, counted from the levels of all people."""
    if result.attributes == ("hours",):
        return [sum(float(value["hours"]) for value in values)]
    found = Counter(tuple(value[name] for name in result.attributes) for value in values)
    labels = [label if isinstance(label, tuple) else (label,) for label in result.everybody.labels]
    return [float(found[label]) for label in labels]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_estimates_from_a_table(tmp_path: Path, kind: str) -> None:
    """Fifteen statistics within five standard errors: a false alarm in 100,000 runs; the seed is fixed."""
    rng = np.random.default_rng(4)
    rows, values = many_people()
    out = tmp_path / f"reports.{kind}"
    done = privatize_table(write_rows(tmp_path / "people.csv", as_columns(rows)), SURVEY, out=out, rng=rng)
    assert (done.reports, done.refused.total) == (4_000, 0)
    found = estimate_table(out, SURVEY)
    assert found.tallies.reports == 4_000 and found.tallies.without_id == 0
    seen = set()
    for result in (each for part in found.parts for each in (part, *part.margins())):
        expected, total = np.array(truth(values, result)), result.everybody
        assert np.all(np.abs(total.values - expected) < 5 * total.std_error), result.attributes
        assert total.values.shape == expected.shape
        seen.add(result.attributes)
    assert seen >= {("ills/cough", "ills/asthma"), ("hours",), ("packs",)}


def test_the_output_is_what_a_curator_exports(tmp_path: Path) -> None:
    columns = as_columns(people(50, np.random.default_rng(1)))
    table = privatize_table(columns, SURVEY).table
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("report_id", "fixed_size_binary[16]"),
        ("form", "dictionary<values=string, indices=int32, ordered=0>"),
        ("report", "binary"),
    ]
    privatize_table(columns, SURVEY, out=tmp_path / "r.csv")
    first, *rows = list(csv.reader((tmp_path / "r.csv").open()))
    assert first == ["report_id", "form", "report"] and len({row[0] for row in rows}) == 50
    assert {(len(id), form, len(words)) for id, form, words in rows} == {(32, form().id, 16 * form().width)}


def test_every_row_is_drawn_once_and_all_submissions_have_one_size() -> None:
    """A quarter is asked about hours: 1,000 of 4,000 within five standard deviations of 27."""
    columns = as_columns(people(4_000, np.random.default_rng(2)))
    done = privatize_table(columns, SURVEY, rng=np.random.default_rng(3))
    words = np.frombuffer(b"".join(done.table["report"].to_pylist()), "<u8").reshape(4_000, -1)
    assert words.shape[1] == form().width and form().accepts(words).all()
    assert abs(int((words[:, 1] == 0).sum()) - 1_000) < 5 * 28


def test_a_refusal_does_not_depend_on_the_draw() -> None:
    """Each of these has a wrong answer to a question that only some are drawn for."""
    wrong = {"smokes": ["daily"] * 60, "ills": ["cough"] * 60, "hours": ["x"] * 60, "packs": ["1"] * 60}
    done = privatize_table(wrong, SURVEY)
    assert done.reports == 0 and done.refused.counts == {"hours: not a number": 60}


def test_cohorts_by_a_column(tmp_path: Path) -> None:
    campaign = two_cohorts()
    columns = as_columns(people(600, np.random.default_rng(5)))
    columns["group"] = ["drawn", "everything", None] * 200
    for out in (tmp_path / "r.csv", tmp_path / "r.parquet"):
        done = privatize_table(columns, campaign, out=out, cohort="group")
        assert done.refused.counts == {"no such cohort": 200}
        found = tally_table(out, campaign)
        by_cohort = {cohort: tallies for (cohort, _), tallies in found.by.items()}
        assert by_cohort["drawn"][0].reports == 200
        assert [tally.reports for tally in by_cohort["everything"]] == [200] * 3
    with raises(InvalidInput, argument="cohort"):
        privatize_table(columns, campaign)
    with raises(InvalidInput, argument="cohort", value="group"):  # this one has no cohorts
        privatize_table(columns, SURVEY, cohort="group")


def test_answers_do_not_choose_the_cohort() -> None:
    """The form of a submission is public, so it would give the answer away."""
    priors = {"yes": pv.Prior({"yes": 0.2, "no": 0.8}), "no": pv.Prior({"yes": 0.4, "no": 0.6})}
    campaign = ask("Do you smoke?", priors)
    with raises(InvalidInput, argument="cohort", value="answer"):
        privatize_table({"answer": ["yes", "no"]}, campaign, cohort="answer")


def test_a_campaign_from_plans(tmp_path: Path, cohorts: Campaign) -> None:
    """Every kind of mechanism; labels are codes."""
    labels = [code for code in cohorts.questions[0].options]
    table = {"answer": [labels[0]] * 400, "by": [*cohorts.cohorts] * 100}
    done = privatize_table(table, cohorts, out=tmp_path / "r.parquet", cohort="by")
    found = estimate_table(tmp_path / "r.parquet", cohorts)
    assert repr(found).startswith("TableEstimates(1 result from ") and len(repr(found)) < 80
    assert done.reports == 400
    assert [n for _, n in found.only.parts.values()] == [100] * len(cohorts.cohorts)


# -- refused rows --------------------------------------------------------------------------------------------


def test_refused_rows_are_listed_by_question_and_never_shown() -> None:
    columns = {
        "smokes": ["never", PRIVATE, None, "Daily", "daily", "daily", "daily"],
        "ills": [None, None, None, None, PRIVATE, "cough", "cough"],
        "hours": ["1", "1", "1", "1", "1", PRIVATE + "x", "1"],
        "packs": [None, None, None, None, "1", "1", None],
    }
    seen: list[tuple[int, str]] = []
    done = privatize_table(columns, SURVEY, on_refused=lambda row, why: seen.append((row, why)))
    assert (
        done.refused.rows
        == tuple(seen)
        == (
            (1, "smokes: outside the domain"),
            (2, "smokes: missing"),
            (3, "smokes: another spelling of a value"),
            (4, "ills: outside the domain"),
            (5, "hours: not a number"),
            (6, "packs: missing"),
        )
    )
    assert done.reports == 1 and PRIVATE not in repr(done)


def test_a_combination_that_the_plan_leaves_out_is_refused() -> None:
    plan = pv.design(
        pv.Prior.joint({("a", "x"): 0.5, ("b", "y"): 0.5}, ("one", "two"), impossible="leave out"),
        1.0,
        pv.Distribution(),
    )
    done = privatize_table({"one": ["a", "a"], "two": ["x", "y"]}, ask_with("Both?", plan))
    assert done.refused.rows == ((1, "one x two: a combination that the plan leaves out"),)


def test_options_that_do_not_fit_a_campaign(tmp_path: Path) -> None:
    columns = as_columns(people(5, np.random.default_rng(1)))
    with raises(InvalidInput, argument="column"):
        privatize_table(columns, SURVEY, "smokes")
    with raises(InvalidInput, argument="keep"):
        privatize_table(columns, SURVEY, keep=["smokes"])
    with raises(InvalidInput, argument="column"):
        privatize_table({"smokes": ["never"]}, SURVEY)
    table = privatize_table(columns, SURVEY).table
    options: list[dict[str, Any]] = [{"prior": [0.5, 0.5]}, {"cohort": "x"}]
    for option in options:
        with raises(InvalidInput, argument=next(iter(option))):
            estimate_table(table, SURVEY, **option)


# -- substitutes ---------------------------------------------------------------------------------------------

LABELS = pv.design(pv.Prior({"yes": 0.3, "no": 0.5, "none": 0.1, "other": 0.1}), 1.0, pv.Histogram())


def test_labels_for_empty_cells_and_other_values() -> None:
    values = {"x": ["yes", None, "maybe", "YES", "  "]}
    done = privatize_table(values, LABELS, "x", missing="none", other="other")
    assert done.refused.rows == ((3, "another spelling of a value"),)
    assert done.substituted == {"missing": 2, "other": 1}
    assert privatize_table(values, LABELS, "x", missing="none").refused.total == 2
    assert privatize_table(values, LABELS, "x", other="other").refused.total == 3
    assert privatize_table(values, LABELS, "x").refused.total == 4


def test_the_labels_are_what_is_reported() -> None:
    """A plan that hides next to nothing reports the label itself."""
    plan = pv.design(pv.Prior({"yes": 0.4, "none": 0.3, "other": 0.3}), 30.0, pv.Histogram())
    values = {"x": [*["yes"] * 10, *[None] * 20, *["maybe"] * 30]}
    table = privatize_table(values, plan, "x", missing="none", other="other").table
    assert estimate_table(table, plan).everybody.values.round().tolist() == [10, 20, 30]


def test_substitutes_for_several_attributes_and_cohorts() -> None:
    cells = {(a, b): 0.25 for a in ("old", "unknown") for b in (1, 2)}
    plan = pv.design(pv.Prior.joint(cells, ("age", "dose")), 1.0, pv.Distribution())
    values = {"age": ["old", None, "young", "old"], "dose": [1, 2, 1, None], "town": ["A", "B", "A", "B"]}
    done = privatize_table(values, {"A": plan, "B": plan}, cohort="town", missing="unknown", other="unknown")
    assert done.refused.rows == ((3, "missing"),) and done.substituted == {"missing": 1, "other": 1}


def test_substitutes_of_a_campaign() -> None:
    prior = pv.Prior({"yes": 0.3, "no": 0.5, "silent": 0.2})
    of = SingleChoice("smokes", "Smoke?", options={"yes": "Yes", "no": "No", "silent": "I do not say"})
    why = MultipleChoice(
        "why", "Why?", {"fun": "Fun", "silent": "I do not say"}, asked_if={"smokes": ("yes",)}
    )
    both = {(a, b): 0.075 for a in ("yes", "no") for b in ("yes", "no")} | {(NOT_ASKED, NOT_ASKED): 0.7}
    reasons = pv.Prior.joint(both, ("why/fun", "why/silent"), impossible="leave out")
    slots = [("smokes",), ("why/fun", "why/silent")]
    forms = Form(
        tuple(
            always(names, pv.design(known, 1.0, pv.Distribution()))
            for names, known in zip(slots, (prior, reasons), strict=True)
        )
    )
    campaign = Campaign("Smoking", [of, why], {"all": forms})
    counts = Counter[str]()
    columns = {"smokes": ["yes", None, "maybe", "yes"], "why": ["fun", None, None, None]}
    levels, refused = attribute_columns(campaign, Batch(columns, 4), Substitutes("silent", "silent"), counts)
    assert refused.tolist() == [None] * 4
    assert levels["smokes"].tolist() == ["yes", "silent", "silent", "yes"]
    assert levels["why/silent"].tolist() == ["no", NOT_ASKED, NOT_ASKED, "yes"]
    assert counts == {"missing": 2, "other": 1}
    done = privatize_table(columns, campaign, missing="silent", other="silent")
    assert (done.reports, done.substituted) == (4, counts)


@pytest.mark.parametrize("argument", ["missing", "other"])
def test_a_substitute_has_to_be_a_label(argument: str) -> None:
    label: dict[str, Any] = {argument: "unheard of"}
    with raises(InvalidInput, argument=argument):
        privatize_table({"x": ["yes"]}, LABELS, "x", **label)
    with raises(InvalidInput, argument=argument):
        privatize_table(as_columns([]), SURVEY, **label)
    number = plans()["hours"]
    with raises(InvalidInput, argument=argument):
        privatize_table({"x": [1]}, number, "x", **{argument: 40})


# -- the command line ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign and the answers of 300 people."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaign.json").write_text(SURVEY.to_json())
    write_rows(tmp_path / "people.csv", as_columns(people(300, np.random.default_rng(6))))
    return tmp_path


def results_csv(campaign: Campaign, columns: dict[str, list[Any]]) -> list[dict[str, str]]:
    """The lines of `estimate --csv`."""
    Path("c.json").write_text(campaign.to_json())
    privatize_table(columns, campaign, out=Path("r.csv"), replace=True)
    return list(csv.DictReader(done("estimate", "c.json", "r.csv", "--csv").out.splitlines()))


def test_a_frame_has_the_lines_of_the_csv() -> None:
    """For every finding of a campaign; what is withheld has a line without numbers."""
    campaign = health(smallest_count=250)
    answers = as_columns(people(300, np.random.default_rng(6)))
    found = estimate_table(privatize_table(answers, campaign).table, campaign)
    write_lines(result_of(found), written := io.StringIO())
    lines = [*csv.DictReader(written.getvalue().splitlines())]
    assert any(line["statistic"].startswith("withheld") for line in lines)
    rows = found.to_frame("pyarrow").to_pylist()
    assert [{key: "" if cell is None else str(cell) for key, cell in row.items()} for row in rows] == lines


def test_results_as_csv_are_tidy(folder: Path) -> None:
    """A line says which statistic it is, from how many reports, with a column for each attribute."""
    joint = {(age, share): 0.25 for age in ("young", "old") for share in ("yes", "no")}
    table = ask("Work?", pv.Prior.joint(joint, names=("age", "share")), smallest_count=1)
    columns = {"age": ["young", "old"] * 200, "share": ["yes", "no", "no", "no"] * 100}
    lines = results_csv(table, columns)
    heads = "attributes,cohort,group,statistic,age,share (answer),reports,method,estimate,std_error,low,high,share"
    assert ",".join(lines[0]) == heads
    cells = [(line["age"], line["share (answer)"]) for line in lines if line["attributes"] == "age x share"]
    assert cells[:4] == list(joint)
    statistics = Counter((line["attributes"], line["statistic"]) for line in lines)
    assert statistics["age x share", "people"] == statistics["age x share", "share within age"] == 4
    assert statistics["age", "people"] == statistics["share", "people"] == 2 and statistics.total() == 12
    people = [line for line in lines if line["statistic"] == "people"]
    assert all(float(line["estimate"]) == pytest.approx(400 * float(line["share"])) for line in people)
    assert all(line["reports"] == "400" and line["cohort"] == "" for line in lines)
    cells = {(age, hours): 0.25 for age in ("young", "old") for hours in (0, 40)}
    averages = pv.Prior.joint(cells, ("age", "hours"), grids=("hours",), outside="ends")
    mean = ask("Hours?", averages, query=pv.Linear.averages(averages, "hours"), smallest_count=1)
    lines = results_csv(mean, {"age": ["young", "old"] * 200, "hours": [0, 40] * 200})
    assert [(line["age"], line["statistic"]) for line in lines][:3] == [
        ("young", "mean hours"),
        ("old", "mean hours"),
        ("", "mean hours"),
    ]


def test_a_margin_of_a_campaign_has_one_plot(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    run("privatize", "campaign.json", "people.csv", "-o", "reports.csv")
    options = ["--margin", "ills/cough", "--plot", "cough.svg"]
    done("estimate", "campaign.json", "reports.csv", *options)
    assert "ills/cough" in Path("cough.svg").read_text()


@pytest.fixture
def two_single(folder: Path) -> None:
    """Two questions with a report each, whose answers are far from their priors."""
    each = [SingleChoice(name, f"{name}?", options={"y": "Yes", "n": "No"}) for name in ("one", "two")]
    plan = pv.design(pv.Prior({"y": 0.5, "n": 0.5}), 1.0, pv.Distribution())
    form = Form(tuple(always((question.name,), plan) for question in each))
    campaign = Campaign("Two", each, {"everyone": form}, smallest_count=1)
    Path("single.json").write_text(campaign.to_json())
    write_rows(Path("answers.csv"), {"one": ["y"] * 1_000, "two": ["n"] * 1_000})
    done("privatize", "single.json", "answers.csv", "-o", "r.csv")


@pytest.mark.usefixtures("two_single")
def test_a_question_reported_alone_is_chosen_by_its_name() -> None:
    task = ("estimate", "single.json", "r.csv", "--csv")
    whole, chosen = (
        list(csv.DictReader(done(*task, *margin).out.splitlines())) for margin in ((), ("--margin", "two"))
    )
    assert [line["estimate"] for line in chosen] == [
        line["estimate"] for line in whole if line["attributes"] == "two"
    ]
    assert "these are: one; two" in refused(*task, "--margin", "three")


def test_labels_that_several_questions_have_are_named_once() -> None:
    domains = [LabelDomain(["yes", "no"]), LabelDomain(["yes", "no", "other"])]
    with raises(InvalidInput, argument="missing", value="silent") as raised:
        Substitutes("silent").require_known(domains)
    assert raised.value.advice.count("yes") == 1


def test_what_is_refused_is_said_without_a_value(folder: Path) -> None:
    rows = as_columns(people(20, np.random.default_rng(7)))
    rows["smokes"][3], rows["hours"][5] = PRIVATE, f"{PRIVATE[:1]},{PRIVATE[1:4]}"
    write_rows(folder / "bad.csv", rows)
    task = ["privatize", "campaign.json", "bad.csv", "-o", "r.csv", "--refused", "no.csv", "--json"]
    printed = done(*task)
    assert "the codes of smokes are never, daily" in printed.err
    assert json.loads(printed.out)["reports"] == 18
    listed = list(csv.reader((folder / "no.csv").open()))
    assert [len(line) for line in listed] == [2, 2, 2]
    assert [line[0] for line in listed[1:]] == ["4", "6"] and listed[2][1].startswith("hours: an ambiguous")
    assert PRIVATE not in printed.err + printed.out + (folder / "no.csv").read_text()


def test_labels_on_the_command_line(folder: Path) -> None:
    rows = as_columns(people(20, np.random.default_rng(7)))
    rows["smokes"][:3] = [None, "sometimes", "rarely"]
    write_rows(folder / "gaps.csv", rows)
    task = ["privatize", "campaign.json", "gaps.csv", "--missing", "never", "--other", "never", "-o"]
    printed = done(*task, "r.csv").err
    assert "counted as never: 1 empty cell\n" in printed and "counted as never: 2 other cells\n" in printed
    record = json.loads(done(*task, "r.csv", "--force", "--json").out)
    assert record["substituted"] == {"missing": 1, "other": 2}


def test_cohorts_on_the_command_line(folder: Path) -> None:
    (folder / "two.json").write_text(two_cohorts().to_json())
    rows = as_columns(people(20, np.random.default_rng(7)))
    write_rows(folder / "two.csv", {**rows, "group": ["drawn", "everything"] * 10})
    refused("privatize", "two.json", "two.csv", "-o", "r.csv")
    done("privatize", "two.json", "two.csv", "--cohort", "group", "-o", "r.csv")
    assert (folder / "r.csv").read_text().startswith("report_id,form,report\n")


# -- a curator -----------------------------------------------------------------------------------------------


async def test_a_curator_takes_the_rows_and_exports_them(tmp_path: Path) -> None:
    """The file that was made and the export of its upload are the same reports."""
    made, exported = tmp_path / "made.csv", tmp_path / "exported.parquet"
    privatize_table(as_columns(people(40, np.random.default_rng(8))), SURVEY, out=made)
    rows = list(csv.DictReader(made.open()))
    url = f"/v1/campaigns/{SURVEY.id}/reports"
    async with running(open_store(str(tmp_path / "reports.db")), SURVEY) as http:
        receipt = (await http.post(url, json={"reports": rows})).json()
        assert receipt == {"accepted": 40, "refused": []}
        exported.write_bytes((await http.get(url)).content)
    both = tally_table([made, exported], SURVEY)
    assert (both.reports, both.repeated) == (40, 40)
    assert both.by == tally_table(exported, SURVEY).by


def test_a_plan_and_its_campaign_have_the_same_tallies() -> None:
    """One way: what a table names as plans or as forms is counted by cohort and group alike."""
    prior = pv.Prior([0.5, 0.5], labels=["a", "b"])
    several = {method: pv.design(prior, 1.0, pv.Histogram(), method=method) for method in ("columns", "arc")}
    values = {
        "answer": ["a", "b", None, "z"] * 50,
        "of": [*several] * 100,
        "town": ["A", "B", "A"] * 66 + ["A"] * 2,
    }
    found = []
    for asked, column in ((several, "answer"), (ask_with("Which?", several, smallest_count=1), ())):
        made = privatize_table(
            values, asked, column, cohort="of", keep=["town"], rng=np.random.default_rng(5), ids=False
        ).table
        tallies = tally_table(made, asked, by="town")  # the ids choose the cohort
        found.append(tallies)
    assert found[0].by == found[1].by and {group for _, group in found[0].by} == {"A", "B"}
    assert found[0].reports == 100


def test_a_single_form_needs_no_column_of_ids() -> None:
    made = privatize_table(as_columns(people(20, np.random.default_rng(6))), SURVEY).table
    assert tally_table(made.drop(["form"]), SURVEY, assume_plan=True).by == tally_table(made, SURVEY).by
    with raises(InvalidInput, argument="cohort"):
        tally_table(made.drop(["form"]), two_cohorts(), assume_plan=True)

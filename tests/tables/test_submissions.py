"""Submissions in files, as a curator exports them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priorveil.cli import run
from priorveil.collect.campaign import Campaign
from priorveil.collect.results import AMONG_ASKED, results
from priorveil.errors import ForeignReport, InvalidInput
from priorveil.tables.repeats import ConflictingReports
from priorveil.tables.submissions import tally_submissions
from refusals import raises
from sample_surveys import people
from submissions import submission, submissions


@pytest.fixture(scope="module")
def exported(survey: Campaign) -> list[dict[str, Any]]:
    """The rows of an export of 500 submissions."""
    rng = np.random.default_rng(8)
    rows = [survey.attribute_values(answers) for answers in people(500, rng)]
    return submissions(survey, {name: [row[name] for row in rows] for name in rows[0]}, rng=rng)


def as_csv(rows: list[dict[str, Any]], folder: Path) -> Path:
    text = io.StringIO()
    lines = csv.DictWriter(text, ["report_id", "form", "report"])
    lines.writeheader()
    lines.writerows(rows)
    (path := folder / "export.csv").write_text(text.getvalue())
    return path


def as_parquet(rows: list[dict[str, Any]], folder: Path) -> Path:
    columns = {
        "report_id": [bytes.fromhex(row["report_id"]) for row in rows],
        "form": [row["form"] for row in rows],
        "report": [bytes.fromhex(row["report"]) for row in rows],
    }
    pq.write_table(pa.table(columns), path := folder / "export.parquet")
    return path


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_an_export_has_the_tallies_of_the_curator(
    survey: Campaign, exported: list[dict[str, Any]], tmp_path: Path, write: Any
) -> None:
    form = survey.form_for(None)
    words = np.frombuffer(bytes.fromhex("".join(row["report"] for row in exported)), "<u8")
    expected = form.tallies(form.count(words.reshape(-1, form.width)))
    found = tally_submissions(write(exported, tmp_path), survey.forms)
    assert found.by_form == {form.id: expected} and found.reports == 500
    assert found.refused.rows == () and found.repeated == found.without_id == 0


def test_repeated_submissions_count_once(
    survey: Campaign, exported: list[dict[str, Any]], tmp_path: Path
) -> None:
    once = tally_submissions(as_csv(exported, tmp_path), survey.forms)
    twice = tally_submissions(as_csv([*exported, *exported[:20]], tmp_path), survey.forms)
    assert twice.by_form == once.by_form and (twice.reports, twice.repeated) == (500, 20)
    changed = {**exported[0], "report": exported[1]["report"][:-16] + 16 * "0"}
    with pytest.raises(ConflictingReports):
        tally_submissions(as_csv([*exported, changed], tmp_path), survey.forms)


def test_what_no_form_has_made_is_left_out_and_listed(
    survey: Campaign, exported: list[dict[str, Any]], tmp_path: Path
) -> None:
    wrong = [
        submission(survey, "ff" * 8 * survey.form_for(None).width),
        submission(survey, "00"),
        submission(survey, ""),
        submission(survey) | {"form": ""},
    ]
    found = tally_submissions(as_csv([*exported, *wrong], tmp_path), survey.forms)
    assert found.reports == 500
    assert found.refused.rows == ((500, "foreign"), (501, "foreign"), (502, "missing"), (503, "missing"))


def test_submissions_of_another_campaign_are_an_error(
    campaign: Campaign, survey: Campaign, exported: list[dict[str, Any]], tmp_path: Path
) -> None:
    with raises(ForeignReport, argument="data"):
        tally_submissions(as_csv(exported, tmp_path), campaign.forms)
    with raises(InvalidInput, argument="column"):
        tally_submissions(as_csv([{**exported[0], "form": "health"}], tmp_path), survey.forms)


@pytest.mark.parametrize("kind", [[], ["--json"], ["--csv"]], ids=["tables", "json", "csv"])
def test_the_command_line_reads_an_export(
    survey: Campaign,
    exported: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: list[str],
) -> None:
    (path := tmp_path / "campaign.json").write_text(survey.to_json())
    file = as_parquet([*exported, exported[0]], tmp_path)
    assert run(["estimate", str(path), str(file), *kind]) == 0
    printed = capsys.readouterr()
    assert "1 row repeats a report" in printed.err
    expected = list(results(survey, tally_submissions(file, survey.forms).by_form))
    if kind == ["--json"]:
        found = json.loads(printed.out)["results"]
        assert [each["attributes"] for each in found] == [list(each.attributes) for each in expected]
        for each, result in zip(found, expected, strict=True):
            assert result.total is not None
            assert each["total"]["values"] == pytest.approx(result.total.estimate.values.tolist())
        of_asked = [s for s in found[-1]["total"]["statistics"] if s["name"].startswith(AMONG_ASKED)]
        assert sum(each["value"] for each in of_asked) == pytest.approx(1)
    elif kind == ["--csv"]:
        rows = list(csv.DictReader(io.StringIO(printed.out)))
        assert {row["attributes"] for row in rows} == {" x ".join(each.attributes) for each in expected}
        packs = [row for row in rows if row["attributes"] == "packs"]
        assert sum(float(row["share"]) for row in packs if row["share"]) == pytest.approx(1)
        of_asked = [float(row["estimate"]) for row in packs if row["statistic"] == AMONG_ASKED]
        assert sum(of_asked) == pytest.approx(1)
    else:
        assert all(each.title in printed.out for each in expected)
        assert printed.out.rindex(AMONG_ASKED) > printed.out.rindex(expected[-1].title)
        assert expected[0].total is not None
        note = next(n for n in expected[0].total.estimate.notes if n.startswith("Prior check: p = "))
        assert printed.out.index(note[:24]) < printed.out.rindex(expected[-1].title), (
            "it stands with its result"
        )


def test_options_that_a_campaign_answers_for_itself_are_refused(
    survey: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "campaign.json").write_text(survey.to_json())
    file = as_csv([submission(survey)], tmp_path)
    assert run(["estimate", str(path), str(file), "--by", "town"]) == 2
    assert "--by" in capsys.readouterr().err

"""Submissions in files, as a curator exports them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priorveil.cli import run
from priorveil.errors import ForeignReport, InvalidInput
from priorveil.questions.campaign import Campaign
from priorveil.results.findings import result_of
from priorveil.tables import estimate_table, tally_table
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
    found = tally_table(write(exported, tmp_path), survey)
    assert found.by == {("everyone", None): expected} and found.reports == 500
    assert found.refused.rows == () and found.repeated == found.without_id == 0


def test_what_no_form_has_made_is_left_out_and_listed(
    survey: Campaign, exported: list[dict[str, Any]], tmp_path: Path
) -> None:
    wrong = [
        submission(survey, "ff" * 8 * survey.form_for(None).width),
        submission(survey, "00"),
        submission(survey, ""),
        submission(survey) | {"form": ""},
    ]
    found = tally_table(as_csv([*exported, *wrong], tmp_path), survey)
    assert found.reports == 500
    assert found.refused.rows == ((500, "foreign"), (501, "foreign"), (502, "missing"), (503, "missing"))


def test_submissions_of_another_campaign_are_an_error(
    campaign: Campaign, survey: Campaign, exported: list[dict[str, Any]], tmp_path: Path
) -> None:
    with raises(ForeignReport, argument="data"):
        tally_table(as_csv(exported, tmp_path), campaign)
    with raises(InvalidInput, argument="column"):
        tally_table(as_csv([{**exported[0], "form": "health"}], tmp_path), survey)


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
    estimates = estimate_table(file, Campaign.from_json(path.read_text()))
    result = result_of(estimates)
    if kind == ["--json"]:
        assert json.loads(printed.out)["result"] == json.loads(msgspec.json.encode(result))
    elif kind == ["--csv"]:
        rows = list(csv.DictReader(io.StringIO(printed.out)))
        assert {row["attributes"] for row in rows} == {
            " x ".join(each.attributes) for each in result.findings
        }
        packs = [row for row in rows if row["attributes"] == "packs"]
        assert sum(float(row["share"]) for row in packs if row["share"]) == pytest.approx(1)
        of_asked = [float(row["estimate"]) for row in packs if row["statistic"] == "share among"]
        assert sum(of_asked) == pytest.approx(1)
    else:
        titles = [estimates.forms.title(found.attributes) for found in result.findings]
        assert all(title in printed.out for title in titles)
        assert titles[1] == "Which of these? Cough"
        assert printed.out.rindex("share of those asked") > printed.out.rindex(titles[-1])
        first = result.findings[0].figures
        assert first is not None
        note = next(str(note) for note in first.notes if note.code == "checkPassed")
        assert printed.out.index(note[:24]) < printed.out.rindex(titles[-1]), "it stands with its result"

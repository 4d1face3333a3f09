"""Data sets: found, verified and read correctly; a missing one raises a clear error."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from priorveil.errors import DataNotFound
from priorveil.studies import datasets


def needs(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Skip a test where a data set is not on this machine."""
    file = datasets.DATA_FILES[name].file
    there = any((folder / file).is_file() for folder in datasets.folders())
    return pytest.mark.skipif(not there, reason=f"{file} is not on this machine: set PRIORVEIL_DATA")


@pytest.fixture
def unchecked(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for data, in which any file of the right name is accepted."""
    anything = {name: replace(source, sha256=None) for name, source in datasets.DATA_FILES.items()}
    monkeypatch.setattr(datasets, "DATA_FILES", anything)
    return nowhere


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without data."""
    monkeypatch.setenv("PRIORVEIL_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "folders", lambda: (tmp_path,))
    return tmp_path


def checkin_lines(rows: list[tuple[int, str, float, float, int]]) -> bytes:
    return gzip.compress("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())


def adult_zip(data: str, test: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("adult.data", data)
        archive.writestr("adult.test", test)
    return packed.getvalue()


def person(work: str, income: str) -> str:
    return f"39, {work}, 1, Bachelors, 13, Single, Sales, Other, White, Male, 0, 0, 40, Somewhere, {income}\n"


@pytest.mark.parametrize("name", datasets.DATA_FILES)
def test_missing_data_say_where_they_are(name: str, nowhere: Path) -> None:
    with pytest.raises(DataNotFound) as caught:
        datasets.find(name)
    assert datasets.DATA_FILES[name].home in str(caught.value)


def test_the_wrong_file_is_refused(nowhere: Path) -> None:
    (nowhere / "adult.zip").write_bytes(b"something else")
    with pytest.raises(DataNotFound):
        datasets.find("adult")


def test_the_folder_of_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORVEIL_DATA", str(tmp_path))
    assert datasets.folders()[0] == tmp_path


def test_adult_reads_both_parts_and_leaves_out_junk_and_unknown_work(unchecked: Path) -> None:
    first = person("Private", "<=50K") + person("?", ">50K") + person("State-gov", ">50K")
    second = "|1x3 Cross validator\n" + person("Never-worked", "<=50K.") + person("Self-emp-inc", ">50K.")
    (unchecked / "adult.zip").write_bytes(adult_zip(first, second))
    census = datasets.adult()
    assert census.work == ("Private", "Government", "No pay", "Self-employed")
    assert census.income == ("<=50K", ">50K", "<=50K", ">50K")


def test_the_table_of_adult_has_everybody_with_all_columns(unchecked: Path) -> None:
    second = "|1x3 Cross validator\n" + person("Private", ">50K.")
    (unchecked / "adult.zip").write_bytes(adult_zip(person("?", "<=50K"), second))
    table = {name: column.tolist() for name, column in datasets.adult_table().items()}
    assert (table["part"], table["work"], table["income"]) == (
        ["data", "test"],
        ["?", "Private"],
        ["<=50K", ">50K"],
    )
    assert (table["age"], table["weight"], table["hours"], table["sex"]) == (
        [39] * 2,
        [1] * 2,
        [40] * 2,
        ["Male"] * 2,
    )


def test_acs_keeps_people_in_work(unchecked: Path) -> None:
    text = (
        "workclass,income_dollars,income_bracket\nLocal-gov,25000,20-30K\nnot-in-universe,0,<20K\n"
        "Unemployed-5y/never-worked,0,<20K\nWithout-pay,0,<20K\n"
    )
    (unchecked / "acs2018_workclass_income.csv.gz").write_bytes(gzip.compress(text.encode()))
    census = datasets.acs()
    assert (census.work, census.income) == (("Government", "No pay"), ("20-30K", "<20K"))


def test_gowalla_finds_the_latest_whatever_the_order(unchecked: Path) -> None:
    rows = [
        (7, "2010-01-01T00:00:00Z", 0.0, 0.0, 1),
        (3, "2010-03-01T00:00:00Z", 1.0, 1.0, 2),
        (7, "2010-02-01T00:00:00Z", 1.0, 0.0, 3),
        (3, "2009-03-01T00:00:00Z", 0.0, 1.0, 4),
    ]
    (unchecked / "gowalla_nyc_checkins.txt.gz").write_bytes(checkin_lines(rows))
    checkins = datasets.gowalla()
    assert checkins.user.tolist() == [3, 3, 7, 7]
    assert checkins.latest.tolist() == [False, True, False, True]
    assert checkins.latitude[checkins.latest].tolist() == [1.0, 1.0]
    assert checkins.districts(2).tolist() == [1, 3, 0, 2]
    assert not checkins.whole


def test_gowalla_prefers_the_full_file(nowhere: Path) -> None:
    rows = [(1, "2010-01-01T00:00:00Z", 0.0, 0.0, 1)]
    (nowhere / datasets.DATA_FILES["gowalla"].file).write_bytes(checkin_lines(rows))
    assert datasets.gowalla().whole


@needs("adult")
def test_adult_has_two_income_levels() -> None:
    census = datasets.adult()
    assert len(census.work) == len(census.income) == 46_043
    assert set(census.income) == set(census.brackets) == {"<=50K", ">50K"}
    assert set(census.work) == set(datasets.WORK_CLASSES)


@needs("adult")
def test_the_table_of_adult_has_two_parts() -> None:
    table = datasets.adult_table()
    assert Counter(table["part"].tolist()) == {"data": 32_561, "test": 16_281}
    assert set(table["income"]) == {"<=50K", ">50K"}
    assert table["age"].dtype == table["education_years"].dtype == np.int64


@needs("minarets")
def test_minarets_has_randomised_and_direct_answers() -> None:
    table = datasets.minarets()
    assert list(table) == ["yes", "condition", "randomized", "age", "left_right"]
    assert Counter(table["randomized"].tolist()) == {1: 1_256, -1: 365}
    assert set(table["condition"][table["randomized"] == 1]) == {1, 2}


@needs("acs")
def test_acs_has_eight_brackets() -> None:
    census = datasets.acs()
    assert len(census.work) == len(census.income) == 248_375 - 26_624 - 2_030
    assert set(census.income) == set(census.brackets)
    assert Counter(census.work)["No pay"] == 733


@needs("gowalla-nyc")
def test_gowalla_of_new_york() -> None:
    checkins = datasets.gowalla()
    if checkins.whole:
        pytest.skip("the full file is here")
    assert (len(checkins.user), int(checkins.latest.sum())) == (138_957, 7_115)
    cells = checkins.districts(36)
    assert cells.min() >= 0 and cells.max() < 36**2

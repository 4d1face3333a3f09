"""Loaders for the public data sets of the evaluation.

A loader looks for its file in the folder of the environment variable `PRIORVEIL_DATA`, in `shared/data` next to the
checkout, and in the user's cache. If the file is missing, `DataNotFound` says where to get it. These data are already
public.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.errors import DataNotFound


@dataclass(frozen=True)
class DataFile:
    """A data file: its name, home page, checksum and description.

    Without a checksum any file of that name is accepted.
    """

    file: str
    home: str
    about: str
    sha256: str | None = None


_DESCRIPTIONS = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
_MERGED_CLASSES: dict[str, list[str]] = _DESCRIPTIONS.pop("work classes")
DATA_FILES = {name: DataFile(**fields) for name, fields in _DESCRIPTIONS.items()}


Columns = dict[str, npt.NDArray[Any]]  # a table: an array for each column, by name


@dataclass(frozen=True)
class Census:
    """Work class and income of each person, both as labels, and the income brackets in order."""

    work: tuple[str, ...]
    income: tuple[str, ...]
    brackets: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CheckIns:
    """Check-ins ordered by user and time; `latest` marks each user's last one, `whole` the full data set."""

    user: Ints
    latitude: Array
    longitude: Array
    latest: Mask
    whole: bool

    def districts(self, side: int) -> Ints:
        """The district of each check-in on a grid over all of them: 0 to `side**2 - 1`, from the south-west."""
        rows, columns = (
            np.minimum(((x - x.min()) / (np.ptp(x) / side or 1.0)).astype(np.int64), side - 1)
            for x in (self.latitude, self.longitude)
        )
        return np.asarray(rows * side + columns)


WORK_CLASSES = tuple(_MERGED_CLASSES)
_CLASS_OF = {name: work for work, names in _MERGED_CLASSES.items() for name in names}

_BRACKETS = ("<20K", "20-30K", "30-40K", "40-50K", "50-60K", "60-70K", "70-80K", ">=80K")


_ADULT_COLUMNS = (
    "age", "work", "weight", "education", "education_years", "marital", "occupation", "relation", "race", "sex",
    "gain", "loss", "hours", "country", "income",
)  # fmt: skip
_ADULT_NUMBERS = ("age", "weight", "education_years", "gain", "loss", "hours")


def adult() -> Census:
    """UCI Adult: work class (merged to four) and income in two levels. Unknown work classes are left out."""
    rows = [row for _, row in _adult_rows(find("adult")) if row[1] in _CLASS_OF]
    work, income = [_CLASS_OF[row[1]] for row in rows], [row[14].rstrip(".") for row in rows]
    return Census(tuple(work), tuple(income), ("<=50K", ">50K"))


def adult_table() -> Columns:
    """UCI Adult with all its columns, for everybody: 32,561 people in the `part` "data", 16,281 in the part "test".

    `weight` is the survey's weight (fnlwgt), how many people one stands for; `hours` are worked in a week. The parts
    are a random division of one sample, of people over 16 with an income and hours of work, from the Current
    Population Survey of 1994.
    """
    rows = [[part, *row[:14], row[14].rstrip(".")] for part, row in _adult_rows(find("adult"))]
    table = dict(zip(("part", *_ADULT_COLUMNS), map(np.array, zip(*rows, strict=True)), strict=True))
    return table | {name: table[name].astype(np.int64) for name in _ADULT_NUMBERS}


def minarets() -> Columns:
    """A survey on a ban of minarets: `yes` (0 or 1), `condition`, `randomized`, `age` and `left_right` (-5 to 5).

    Where `randomized` is 1, people answered by Mangat's device: carriers say yes, others say no with probability 2/12
    in `condition` 1, and 10/12 in `condition` 2. Where it is -1, they were asked directly.
    """
    with gzip.open(find("minarets"), "rt", encoding="utf-8") as lines:
        names, *rows = csv.reader(lines)
    return dict(zip(names, np.array(rows, dtype=np.int64).T, strict=True))


def acs() -> Census:
    """American Community Survey 2018: people in work, their class (merged to four) and eight income brackets."""
    with gzip.open(find("acs"), "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["workclass"] in _CLASS_OF]
    work, income = [_CLASS_OF[row["workclass"]] for row in rows], [row["income_bracket"] for row in rows]
    return Census(tuple(work), tuple(income), _BRACKETS)


def gowalla() -> CheckIns:
    """Gowalla check-ins in SNAP's layout: the full file if it exists, otherwise those of New York City."""
    file = find("gowalla", "gowalla-nyc")
    columns = [("user", "i8"), ("time", "U20"), ("latitude", "f8"), ("longitude", "f8")]
    rows = np.loadtxt(file, columns, comments=None, delimiter="\t", usecols=range(4), ndmin=1)
    rows = rows[np.lexsort((rows["time"], rows["user"]))]
    user = rows["user"]
    latest, whole = np.append(user[1:] != user[:-1], True), file.name == DATA_FILES["gowalla"].file
    return CheckIns(user, rows["latitude"], rows["longitude"], latest, whole)


def find(*names: str) -> Path:
    """The first of these data sets whose file exists, checked against its SHA-256.

    If there is none, the error names the home page of the last one.
    """
    last = DATA_FILES[names[-1]]
    advice = "into a folder and name the folder in the environment variable PRIORVEIL_DATA"
    where = f"{last.about} is at {last.home}: put the file {last.file} {advice}"
    for source in map(DATA_FILES.__getitem__, names):
        for file in (folder / source.file for folder in folders()):
            if file.is_file():
                if source.sha256 not in (None, hashlib.sha256(file.read_bytes()).hexdigest()):
                    raise DataNotFound(f"{file} is not the right file (its SHA-256 differs); {where}")
                return file
    raise DataNotFound(f"{last.file} is not on this machine; {where}")


def folders() -> tuple[Path, ...]:
    """The folders in which data are looked for, in this order."""
    own_folder = os.environ.get("PRIORVEIL_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "priorveil"
    checkout = Path(__file__).resolve().parents[3]
    first = [Path(own_folder)] if own_folder else []
    return (*first, checkout.parent / "shared" / "data", Path(own_folder or cache))


def _adult_rows(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The rows of Adult, each with its part. The second begins with a line that has too few fields: not a record."""
    with zipfile.ZipFile(file) as archive:
        for part in ("data", "test"):
            lines = io.TextIOWrapper(archive.open(f"adult.{part}"), encoding="utf-8")
            yield from (
                (part, row)
                for row in csv.reader(lines, skipinitialspace=True)
                if len(row) == len(_ADULT_COLUMNS)
            )

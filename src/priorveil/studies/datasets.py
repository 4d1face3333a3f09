"""Public data for the evaluation: where it is, whether it is the right file, and what is in it.

A loader looks at the file it is given; else in the folder of the environment variable `PRIORVEIL_DATA`,
in `shared/data` beside the checkout, and in the user's cache; else it downloads the file from the data's own
home, where that home offers this very file, and checks its SHA-256. Where nothing helps, `DataNotFound` says
where to get it. Nothing here is private any more: these people's data were published by others.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from priorveil.errors import DataNotFound, InvalidInput

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_PATIENCE = 60  # seconds a server may be silent


@dataclass(frozen=True)
class Source:
    """A file: its name, its home, its checksum, what it is, and where the home offers it, if it does.

    Without a checksum any file of that name will do.
    """

    file: str
    home: str
    sha256: str | None
    about: str
    direct: str | None = None


SOURCES = {
    "adult": Source(
        "adult.zip",
        "https://archive.ics.uci.edu/dataset/2/adult",
        "7537312dd56c2b98035880805ce99e68183a30ee468aa5329d6df0fbb3cc21bb",
        "UCI Adult (Becker and Kohavi 1996), CC BY 4.0",
        "https://archive.ics.uci.edu/static/public/2/adult.zip",
    ),
    "gowalla": Source(
        "loc-gowalla_totalCheckins.txt.gz",
        "https://snap.stanford.edu/data/loc-Gowalla.html",
        None,
        "all Gowalla check-ins (Cho, Myers and Leskovec 2011)",
    ),
    "gowalla-nyc": Source(
        "gowalla_nyc_checkins.txt.gz",
        "https://snap.stanford.edu/data/loc-Gowalla.html",
        "2a5062fb27708ca37bb8b25b01546ad1535a29ec9d5481a0c62f01c98c276581",
        "Gowalla check-ins within New York City",
    ),
    "acs": Source(
        "acs2018_workclass_income.csv.gz",
        "https://www.census.gov/programs-surveys/acs/microdata.html",
        "bff396ee0ce40bbd625f0c2f1e2b04ca121ba345767612d2eb45606003962796",
        "American Community Survey 2018, work class and income, ages 19 to 34",
    ),
    "kosarak": Source(
        "kosarak_one_item.csv.gz",
        "http://fimi.uantwerpen.be/data/",
        "240c48c40d219fcc1a855a539d266b15e06ff60393168adecf48d7f01d222840",
        "Kosarak click stream, one item for each user",
    ),
}


@dataclass(frozen=True)
class Census:
    """Work class and income of each person, both as labels, and which survey it is."""

    work: tuple[str, ...]
    income: tuple[str, ...]
    brackets: tuple[str, ...]
    about: str

    def __len__(self) -> int:
        return len(self.work)


@dataclass(frozen=True, eq=False)
class CheckIns:
    """Check-ins ordered by user and time; `latest` marks each user's last one, `whole` the full data set."""

    user: Ints
    latitude: Floats
    longitude: Floats
    latest: npt.NDArray[np.bool_]
    whole: bool
    about: str

    def __len__(self) -> int:
        return len(self.user)

    def districts(self, side: int) -> Ints:
        """The district of each check-in on a grid over them all: 0 to `side**2 - 1`, from south-west."""
        if side < 1:
            raise InvalidInput("side", side, "give a whole number from one upwards")
        return _cells(self.latitude, side) * side + _cells(self.longitude, side)


# The work classes of both surveys, merged to the paper's four.
_MERGED = {
    "Private": "Private",
    "Private-for-profit": "Private",
    "Private-not-for-profit": "Private",
    "Self-emp-inc": "Self-employed",
    "Self-emp-not-inc": "Self-employed",
    "Federal-gov": "Government",
    "Local-gov": "Government",
    "State-gov": "Government",
    "Without-pay": "No pay",
    "Never-worked": "No pay",
}
WORK_CLASSES = ("Private", "Self-employed", "Government", "No pay")

_BRACKETS = ("<20K", "20-30K", "30-40K", "40-50K", "50-60K", "60-70K", "70-80K", ">=80K")
_LEVELS = ("<=50K", ">50K")
_NOT_IN_WORK = ("not-in-universe", "Unemployed-5y/never-worked")


def adult(path: str | Path | None = None) -> Census:
    """UCI Adult: work class (merged to four) and income, in two levels only; unknown work is left out."""
    file = find("adult", path)
    rows = [row for row in _adult_rows(file) if row[1] in _MERGED]
    return Census(
        work=tuple(_MERGED[row[1]] for row in rows),
        income=tuple(row[14].rstrip(".") for row in rows),
        brackets=_LEVELS,
        about="UCI Adult, two income levels",
    )


def acs(path: str | Path | None = None) -> Census:
    """American Community Survey 2018: people in work, their class (merged to four), eight income brackets."""
    with _text(find("acs", path)) as lines:
        rows = [row for row in csv.DictReader(lines) if row["workclass"] not in _NOT_IN_WORK]
    return Census(
        work=tuple(_MERGED[row["workclass"]] for row in rows),
        income=tuple(row["income_bracket"] for row in rows),
        brackets=_BRACKETS,
        about="American Community Survey 2018, eight income brackets",
    )


def gowalla(path: str | Path | None = None) -> CheckIns:
    """Gowalla check-ins in SNAP's layout: the full file where there is one, else those of New York City."""
    file = find("gowalla", path) if path is not None else _first_found(("gowalla", "gowalla-nyc"))
    whole = file.name == SOURCES["gowalla"].file
    read = np.loadtxt(
        file,
        delimiter="\t",
        comments=None,
        usecols=(0, 1, 2, 3),
        dtype=[("user", "i8"), ("time", "U20"), ("latitude", "f8"), ("longitude", "f8")],
    )
    ordered = np.atleast_1d(read)[np.lexsort((np.atleast_1d(read)["time"], np.atleast_1d(read)["user"]))]
    user = ordered["user"]
    return CheckIns(
        user=user,
        latitude=ordered["latitude"],
        longitude=ordered["longitude"],
        latest=np.append(user[1:] != user[:-1], True),
        whole=whole,
        about=SOURCES["gowalla" if whole else "gowalla-nyc"].about,
    )


def kosarak(path: str | Path | None = None) -> Ints:
    """Kosarak: the item of each user, a code from 0 to 127 (the 128 most frequent items)."""
    codes: Ints = np.loadtxt(find("kosarak", path), dtype=np.int64, skiprows=1)
    return codes


def find(name: str, path: str | Path | None = None) -> Path:
    """The file of a data set, checked; downloaded if need be.

    A file that is given is taken as it is. One that is found is checked against its SHA-256.
    """
    if path is not None:
        if not Path(path).is_file():
            raise DataNotFound(f"{path}: there is no such file; {_where(SOURCES[name])}")
        return Path(path)
    source = SOURCES[name]
    for folder in folders():
        if (folder / source.file).is_file():
            return _checked(folder / source.file, source)
    if source.direct is None or source.sha256 is None:
        raise DataNotFound(f"{source.file} is not on this machine; {_where(source)}")
    return _downloaded(source, _cache())


def folders() -> tuple[Path, ...]:
    """Where data are looked for, in this order."""
    given = os.environ.get("PRIORVEIL_DATA")
    checkout = Path(__file__).resolve().parents[2]
    return (*([Path(given)] if given else []), checkout.parent / "shared" / "data", _cache())


def _first_found(names: Sequence[str]) -> Path:
    """The first of several data sets that is there."""
    for name in names[:-1]:
        try:
            return find(name)
        except DataNotFound:
            continue
    return find(names[-1])


def _cache() -> Path:
    given = os.environ.get("PRIORVEIL_DATA")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "priorveil"


def _where(source: Source) -> str:
    return (
        f"{source.about} is at {source.home}: put the file {source.file} into a folder and name the folder "
        "in "
        "the environment variable PRIORVEIL_DATA"
    )


def _checked(file: Path, source: Source) -> Path:
    """The file, if its content is what it should be."""
    if source.sha256 is not None and _digest(file) != source.sha256:
        raise DataNotFound(f"{file} is not the right file (its SHA-256 differs); {_where(source)}")
    return file


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _downloaded(source: Source, folder: Path) -> Path:
    """Fetch a file into a folder: all of it and the right one, or nothing."""
    assert source.direct is not None
    draft = folder / f"{source.file}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(source.direct, timeout=_PATIENCE) as answer:
            draft.write_bytes(answer.read())
        if _digest(draft) != source.sha256:
            raise DataNotFound(
                f"{source.direct} now holds another file (its SHA-256 differs); {_where(source)}"
            )
        return draft.replace(folder / source.file)
    except OSError as error:
        raise DataNotFound(f"{source.direct} cannot be reached ({error}); {_where(source)}") from error
    finally:
        draft.unlink(missing_ok=True)


def _text(file: Path) -> io.TextIOBase:
    """The lines of a file, packed or not."""
    return gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")


def _adult_rows(file: Path) -> Iterator[list[str]]:
    """Both parts of Adult; the second begins with a line of junk, which has too few fields."""
    with zipfile.ZipFile(file) as archive:
        for part in ("adult.data", "adult.test"):
            yield from _fields(io.TextIOWrapper(archive.open(part), encoding="utf-8"))


def _fields(lines: Iterable[str]) -> Iterator[list[str]]:
    return (row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 15)


def _cells(coordinate: Floats, side: int) -> Ints:
    low, high = float(coordinate.min()), float(coordinate.max())
    width = (high - low) / side or 1.0
    return np.minimum(((coordinate - low) / width).astype(np.int64), side - 1)

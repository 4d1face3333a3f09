"""The errors that priorveil raises, and the hints that they carry.

    PriorveilError
    ├── InvalidInput          a wrong argument (also a ValueError)
    │   ├── InvalidPrior      not a probability distribution with full support
    │   ├── InvalidSecret     a secret that does not fit the prior
    │   ├── InvalidChannel    not a row-stochastic matrix
    │   ├── OutsideDomain     a value outside the plan's domain, with its row
    │   ├── ForeignReport     a report that this plan cannot have made
    │   └── InvalidFile       a file that cannot be read, with the line or cell
    ├── Infeasible            no channel, or none of this method, meets the request
    ├── CertificateError      a channel breaks the budget it was checked against
    ├── NotIdentifiable       reports alone do not determine the distribution
    ├── ResultWithheld        there are fewer reports than the campaign promises
    ├── BudgetExceeded        spending this would pass the ledger's limit
    ├── TooLarge              the result would not fit; ask for something smaller
    ├── PlanError             a plan file that cannot be trusted, with the field
    │   └── UnknownVersion    written by a newer priorveil
    ├── DataNotFound          a data set that is not on this machine
    └── MissingExtra          an optional library is not installed

A message names the argument, shows its value and says what to do. Every error carries its data as attributes.
What to do is a `Hint` where it names an argument, so that the command line can name the option instead.
Raw private values never appear in a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

NOT_SHOWN = object()  # in place of a value that cannot or must not be shown: the advice describes it
NOT_TEXT = "this is not UTF-8 text: save it as UTF-8"
_BINARY_FILES = {
    b"PK\x03\x04": "this is an Excel workbook (.xlsx) or a zip archive: save the sheet as CSV (UTF-8), or unpack it",
    b"\xd0\xcf\x11\xe0": "this is an old Excel workbook (.xls): save the sheet as CSV (UTF-8)",
    b"PAR1": "this is a Parquet file: only tables of people or reports may be Parquet",
    b"\x1f\x8b": "this file is in gzip: unpack it first",
}

_LONGEST = 80


def short_repr(value: object) -> str:
    """Return `repr(value)` on one line; the middle of a long one is left out. Dates and times are in ISO 8601.

    >>> short_repr(date(2027, 3, 1))
    '2027-03-01'
    >>> short_repr(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11... 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]'
    """
    text = value.isoformat() if isinstance(value, date | time) else " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2 - 3]}...{text[-_LONGEST // 2 :]}"


def not_text_advice(start: bytes) -> str:
    r"""What to do with a file that should be text and is not, by its first bytes.

    >>> not_text_advice(b"PK\x03\x04...")[:34]
    'this is an Excel workbook (.xlsx) '
    """
    known = (advice for magic, advice in _BINARY_FILES.items() if start.startswith(magic))
    return next(known, NOT_TEXT)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s unless the number is one.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Hint:
    """An argument to use, the values to try for it, and what that is good for.

    An `argument` without values is a function to call.

    >>> print(Hint("method", "arc", "columns"))
    use method='arc' or 'columns'
    >>> print(Hint("Prior.from_counts", purpose="for counts"))
    for counts, use Prior.from_counts
    """

    def __init__(self, argument: str, *values: object, purpose: str = "") -> None:
        self.argument = argument
        self.values = values
        self.purpose = purpose

    def advice(self, action: str) -> str:
        """Return the sentence that recommends an action."""
        return f"{self.purpose}, use {action}" if self.purpose else f"use {action}"

    def __str__(self) -> str:
        choices = " or ".join(map(repr, self.values))
        return self.advice(f"{self.argument}={choices}" if choices else self.argument)


class PriorveilError(Exception):
    """The base class of all errors that priorveil raises on purpose.

    >>> print(PriorveilError("no closed form", Hint("method", "columns")))
    no closed form; use method='columns'
    """

    def __init__(self, message: str = "", *hints: Hint) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints

    def text(self, advice: Callable[[Hint], str] = str) -> str:
        """Return the message and its hints, each in the words that `advice` finds for it."""
        return "; ".join([self.message, *map(advice, self.hints)])

    def __str__(self) -> str:
        return self.text()


class InvalidInput(PriorveilError, ValueError):
    """A wrong argument, with its value and what to do. `keys` lead to a wrong part of a question or a campaign.

    >>> print(InvalidInput("epsilon", -1, "give a number above zero"))
    epsilon = -1: give a number above zero
    >>> print(InvalidInput("values", NOT_SHOWN, "shape (2, 3); give one column"))
    values: shape (2, 3); give one column
    """

    keys: tuple[str | int, ...] = ()

    def __init__(
        self, argument: str, value: object, advice: str, *hints: Hint, keys: tuple[str, ...] = ()
    ) -> None:
        value_text = "" if value is NOT_SHOWN else f" = {short_repr(value)}"
        super().__init__(f"{argument}{value_text}: {advice}", *hints)
        self.argument = argument
        self.value = value
        self.advice = advice
        self.keys = keys


class InvalidPrior(InvalidInput):
    """Not a probability distribution with full support."""


class InvalidSecret(InvalidInput):
    """A secret that does not fit the prior."""


class InvalidChannel(InvalidInput):
    """Not a row-stochastic matrix."""


class OutsideDomain(InvalidInput):
    """A value outside the plan's domain. The error holds its row, never the value."""

    def __init__(self, row: int, domain: str, *hints: Hint) -> None:
        self.argument = "values"
        self.row = row
        self.advice = "correct or remove it before privatising"
        message = f"values[{row}] is outside the domain ({domain}): {self.advice}"
        PriorveilError.__init__(self, message, *hints)


class ForeignReport(InvalidInput):
    """A report that this plan cannot have made."""


class InvalidFile(InvalidInput):
    """A file that does not hold what it should, with its `path`, and the `line`, `cell` or `keys` that are wrong.

    >>> print(InvalidFile("prior.csv", "not a number", line=3))
    prior.csv: line 3: not a number
    >>> print(InvalidFile("form.xlsx", "not a number", cell="survey!C4"))
    form.xlsx: sheet survey, cell C4: not a number
    >>> print(InvalidFile("survey.json", "not a number", keys=("question", 1, "epsilon")))
    survey.json: question 2: not a number
    """

    def __init__(
        self,
        path: str | Path,
        advice: str,
        *hints: Hint,
        line: int | None = None,
        cell: str | None = None,
        keys: tuple[str | int, ...] = (),
    ) -> None:
        self.argument = "path"
        self.value = self.path = str(path)
        self.line, self.cell, self.keys = line, cell, keys
        self.advice = advice
        place = str(path) if line is None else f"{path}: line {line}"
        if cell is not None:
            sheet, _, name = cell.rpartition("!")
            place = f"{path}: sheet {sheet}, cell {name}"
        if keys[1:] and isinstance(keys[1], int):
            place = f"{path}: {keys[0]} {keys[1] + 1}"
        PriorveilError.__init__(self, f"{place}: {advice}", *hints)


class Infeasible(PriorveilError):
    """No channel, or none of this method, meets the request."""


class CertificateError(PriorveilError):
    """A channel breaks the budget it was checked against; `breach` says where."""

    def __init__(self, message: str, *hints: Hint, breach: object = None) -> None:
        super().__init__(message, *hints)
        self.breach = breach


class NotIdentifiable(PriorveilError):
    """Reports alone do not determine the distribution, or these `statistics`: their rows, or their names."""

    statistics: tuple[Any, ...] = ()


class ResultWithheld(PriorveilError):
    """Fewer reports than the campaign promises, or another result would give those away by subtraction."""


class BudgetExceeded(PriorveilError):
    """Spending this would pass the ledger's limit."""


class TooLarge(PriorveilError):
    """The result would not fit; ask for something smaller."""


class PlanError(PriorveilError):
    """A plan file that cannot be trusted; `field` names the wrong field, or is "file" for all of it."""

    def __init__(self, field: str, advice: str) -> None:
        super().__init__(advice if field == "file" else f"plan field {field!r}: {advice}")
        self.field = field
        self.advice = advice


class UnknownVersion(PlanError):
    """Written by a newer priorveil than this one."""


class DataNotFound(PriorveilError):
    """A data set that is not on this machine."""


def install_command(extra: str) -> str:
    """The command that installs an extra, in the way in which priorveil itself was installed.

    The metadata of an installed package say where it came from, if that was not a package index.
    """
    try:
        text = distribution("priorveil").read_text("direct_url.json")
    except PackageNotFoundError:  # it runs from a checkout that is not installed
        text = '{"dir_info": {}}'
    origin = json.loads(text) if text else {}
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {editable}'.[{extra}]' in the checkout of priorveil"
    if "url" in origin:
        scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        return f"pip install 'priorveil[{extra}] @ {scheme}{origin['url']}'"
    return f"pip install 'priorveil[{extra}]'"


class MissingExtra(PriorveilError):
    """An optional library is not installed; the message names the extra that brings it.

    >>> str(MissingExtra("matplotlib", "plot")) == f"matplotlib is not installed: {install_command('plot')}"
    True
    """

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed: {install_command(extra)}")
        self.library = library
        self.extra = extra


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Import libraries of an extra in this context: `MissingExtra` names the one that is not installed.

    >>> with needs_extra("plot"):  # doctest: +ELLIPSIS
    ...     import no_such_library.part
    Traceback (most recent call last):
    priorveil.errors.MissingExtra: no_such_library is not installed: pip install ...
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        raise MissingExtra((missing.name or extra).partition(".")[0], extra) from missing

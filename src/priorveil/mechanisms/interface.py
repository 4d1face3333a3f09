"""The interface of mechanisms: the base class that plans know, and the checks that all mechanisms share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.certify import Certificate, Lifts
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, Infeasible, InvalidInput, OutsideDomain, TooLarge
from priorveil.mechanisms.randomness import WORD, Source, Words, word_blocks
from priorveil.named_classes import class_named, enter_class
from priorveil.notions import Cone, Leakage, PriorOrSet, Secrets, leakage, leakage_bounds
from priorveil.priors import Prior

MOST_MATRIX_ENTRIES = 1 << 24  # a larger matrix is not written out: these are 128 MB of floats
MOST_MEASURED = 1 << 22  # entries of a channel whose levels are measured: that takes five times its memory
FROM_PRIVATIZE = "reports are what plan.privatize returns, never the values of people"
MEASURE_WITHOUT = Hint("plan.levels", purpose="to measure it")


class Mechanism(ABC):
    """A sampler in integers, and its exact certificate. `reading` has what a curator does with its reports.

    `kind` is its name in a plan's file, that of the class if none is stated. A subclass is known to plan files by it as
    soon as it is defined; its `parameters` have what `read` makes it from. Mechanisms are compared by identity.
    """

    by_kind: ClassVar[dict[str, type[Mechanism]]] = {}
    kind: ClassVar[str]
    averages: ClassVar[bool] = False  # whether a column of `matrix` averages over reports that differ

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" not in vars(cls):
            cls.kind = cls.__name__
        enter_class(Mechanism.by_kind, cls.kind, cls, "mechanism")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values there are."""

    @property
    def width(self) -> int:
        """How many 64-bit words a report has, if it is a row of bits; zero if it is a whole number."""
        return 0

    @property
    def outputs(self) -> int | None:
        """How many different reports there are, where they are the numbers from zero on; otherwise None."""
        return None

    @property
    def draws_per_report(self) -> int:
        """How many random words a report takes, whatever the value."""
        return 1

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The channel in floats; raises `TooLarge` where it cannot be written out."""

    @property
    def integer_rows(self) -> Ints | None:
        """The different rows of the channel, if they are a table of integers that add up to `2**62`; otherwise None."""
        return None

    @property
    def report_matrix(self) -> Array:
        """A channel whose columns say as much about a value as reports do, or nearly.

        This is `matrix`, unless that `averages` over reports.
        """
        return self.matrix

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...] | None]:
        """A channel to measure levels on, which leaks no less than the reports, and the reports of its columns.

        This is `matrix`, unless that `averages` over reports. None stands for the numbers of the columns.
        """
        return self.matrix, None

    def sample_one(self, code: int, source: Source) -> Any:
        """The report of one value."""
        report = self.sample([code], source)[0]
        return report if self.width else int(report)

    def sample(self, codes: npt.ArrayLike, source: Source) -> npt.NDArray[Any]:
        """The reports of many values, a row each."""
        rows = check_codes(codes, self.size)
        reports = self.new_reports(rows.size)
        for block, words in word_blocks(source, rows.size, self.draws_per_report):
            self.draw(rows[block], words, reports[block], rows.size)
        return reports

    @abstractmethod
    def draw(self, codes: Ints, words: Words, reports: npt.NDArray[Any], total: int) -> None:
        """Fill a block of reports for valid codes, with a row of random words each; all blocks have `total` reports."""

    def accepts(self, reports: npt.NDArray[Any]) -> Mask:
        """Which reports this mechanism can have made: by default the numbers below `outputs`."""
        return in_range(reports, self.outputs or 0)

    def report_array(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """The reports as an array of the right shape and type."""
        return report_column(reports)

    def check_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """The reports as an array; a `ForeignReport` if there is one that this mechanism cannot have made."""
        array = self.report_array(reports)
        accepted = self.accepts(array)
        if not accepted.all():
            row = int(np.argmin(accepted))
            # It is not shown: it may be a person's value that was given by mistake.
            raise ForeignReport(f"reports[{row}]", NOT_SHOWN, f"{self.allowed_reports}; {FROM_PRIVATIZE}")
        return array

    @property
    def allowed_reports(self) -> str:
        """Which reports this mechanism makes, in words."""
        if self.outputs is None:
            return "this mechanism never makes such a report"
        return f"this mechanism reports 0 to {self.outputs - 1}"

    def new_reports(self, count: int = 0) -> npt.NDArray[Any]:
        """An empty array for this many reports."""
        return np.empty((count, self.width), WORD) if self.width else np.empty(count, np.int64)

    @abstractmethod
    def lifts(self, prior: PriorOrSet, secret: Secrets, notion: Cone) -> Lifts:
        """The exact extremes of the sampled law, as integers or fractions."""

    def levels(self, prior: PriorOrSet, secret: Secrets, proven: Certificate) -> Leakage:
        """The levels under every notion: measured on the channel, or derived from the proof if that is too large."""
        try:
            matrix, reports = self.leakage_matrix
        except TooLarge:
            return leakage_bounds(proven.lip_lower, proven.lip_upper, proven.ldp, prior)
        return leakage(Channel(matrix, prior.labels, reports), prior, secret)

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The integers as JSON."""

    @classmethod
    @abstractmethod
    def read(cls, parameters: Mapping[str, Any]) -> Mechanism:
        """Read a mechanism from the parameters in its JSON document."""


def read_mechanism(document: Mapping[str, Any]) -> Mechanism:
    """Read a mechanism from its JSON document."""
    mechanism: type[Mechanism] = class_named(Mechanism.by_kind, document["kind"], "mechanism")
    return mechanism.read(document)


class NumberedReports(Mechanism):
    """A mechanism whose reports are the numbers `0 .. outputs - 1`."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many different reports there are."""

    def law(self, p: Array) -> Array:
        """`p @ matrix`: the law of the reports when the values follow `p`, or each row of it."""
        return np.asarray(p @ self.matrix)

    def columns(self, reports: Ints) -> Array:
        """The columns of the channel for some of the reports, a row for each."""
        return np.asarray(self.matrix.T[reports])


def require_writable(values: int, reports: int, most: int | None = None) -> None:
    """Raise `TooLarge` if a channel has too many entries to be written out.

    >>> require_writable(50_000, 1_000)
    Traceback (most recent call last):
    priorveil.errors.TooLarge: the channel has 50,000 x 1,000 entries, too many to write out; to measure it, use \
plan.levels
    """
    if values * reports > (most or MOST_MATRIX_ENTRIES):
        raise TooLarge(
            f"the channel has {values:,} x {reports:,} entries, too many to write out", MEASURE_WITHOUT
        )


def single_prior(prior: PriorOrSet, secret: Secrets, notion: Cone, kind: str) -> Prior:
    """The prior, for mechanisms whose exact certificate needs one prior and no secret behind the value."""
    if secret is not None or not isinstance(prior, Prior) or not notion.implies_lip:
        message = f"{kind} is certified for LIP or LDP of the value itself under one prior"
        raise Infeasible(message, Hint("method", "columns"))
    return prior


def worst_lifts(channels: Sequence[Lifts]) -> Lifts:
    """The extremes of several channels, one of which is chosen in public for each report."""
    ratios = [lifts.ldp for lifts in channels if lifts.ldp is not None]
    ratio = max(ratios) if len(ratios) == len(channels) else None
    return Lifts(
        min(lifts.lowest for lifts in channels), max(lifts.highest for lifts in channels), ratio, ratio
    )


def check_codes(codes: npt.ArrayLike, size: int) -> Ints:
    """Codes as a contiguous array of 64-bit integers, each in `0 .. size - 1`.

    >>> check_codes([0, 2], 3)
    array([0, 2])
    >>> check_codes([0, 3], 3)
    Traceback (most recent call last):
    priorveil.errors.OutsideDomain: values[1] is outside the domain (codes 0 to 2): \
correct or remove it before privatising
    """
    array = integer_column("values", codes)
    inside = in_range(array, size)
    if not inside.all():
        raise OutsideDomain(int(np.argmin(inside)), f"codes 0 to {size - 1}")
    return array


def in_range(reports: npt.NDArray[Any], outputs: int) -> Mask:
    """Which entries are numbers from 0 to `outputs - 1`.

    >>> in_range(np.array([0, 5, -1]), 3).tolist()
    [True, False, False]
    """
    # As unsigned integers, negative numbers are the largest: one comparison checks both ends.
    return np.asarray(report_column(reports).view(np.uint64) < outputs)


def report_column(reports: npt.ArrayLike) -> Ints:
    """Reports that are whole numbers, as an array."""
    return integer_column("reports", reports, f"; {FROM_PRIVATIZE}")


def integer_column(argument: str, values: npt.ArrayLike, more_advice: str = "") -> Ints:
    """A column of whole numbers as a contiguous array of 64-bit integers."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        shape = f"{array.dtype} array of shape {array.shape}"
        raise InvalidInput(argument, shape, f"give a column of integers{more_advice}")
    return np.ascontiguousarray(array, dtype=np.int64)

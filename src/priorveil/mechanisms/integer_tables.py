"""The table mechanism: one row of integer weights per value, one random word per report.

Row `x` of `W` has non-negative integers that add up to `2**62`; the report of `x` is `y` with probability
exactly `W[x, y] / 2**62`.

Randomness: one word `w` per report. Its upper 62 bits are the draw, `r = w >> 2`. To find the report, count the
cumulative weights `W[x, 0] + ... + W[x, k]` that are at most `r`: that number is the report.

A `Grouped` mechanism is a table whose rows are shared. On a large domain the best channel treats many unlikely
values alike. Then the table has a row for each group, and `rows[x]` is the row of value `x`. Reports and
randomness are those of the table. A report does not tell the values of a group apart, so within a group the
posterior is in proportion to the prior, and reports never identify the distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from priorveil.arrays import Array, Ints, own_integers
from priorveil.certify import TOTAL, Certificate, Lifts, lifts
from priorveil.errors import InvalidChannel, InvalidInput
from priorveil.mechanisms import kernels
from priorveil.mechanisms.interface import NumberedReports, require_writable, single_prior
from priorveil.mechanisms.kernels import Guide
from priorveil.mechanisms.randomness import Words
from priorveil.notions import LIP, Cone, Leakage, PriorOrSet, Secrets
from priorveil.priors import Prior

TOTAL_BITS = 62

# A guide has two entries for every output: then most draws need at most one comparison.
_GUIDE_PER_OUTPUT = 2
_GUIDE_LIMIT = 1 << 24


class TabledReports(NumberedReports):
    """A mechanism whose law is a table of integers: `weights`, a row for each value.

    Report `y` of value `x` has the probability `weights[x, y] / 2**62`, exactly: rows are non-negative integers that
    add up to `2**62`. The sampler and the certificate follow from them. A subclass has `weights` as an attribute, and
    `parameters` and `read` for files.
    """

    weights: Ints

    @cached_property
    def checked_weights(self) -> Ints:
        """The weights, checked once, as a read-only copy: reports are drawn from what is certified."""
        return _check_weights(self.weights)

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.checked_weights.shape[0])

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return int(self.checked_weights.shape[1])

    @property
    def matrix(self) -> Array:
        """The channel `Q[x, y] = Pr(y | x)` in floats."""
        return self.checked_weights / float(TOTAL)

    @property
    def integer_rows(self) -> Ints:
        """The weights."""
        return self.checked_weights

    def columns(self, reports: Ints) -> Array:
        """The columns of the channel for some of the reports, a row for each."""
        return self.checked_weights.T[reports] / float(TOTAL)

    @cached_property
    def _thresholds(self) -> Words:
        return np.cumsum(self.checked_weights, axis=1).astype(np.uint64)

    @cached_property
    def _guide(self) -> Guide:
        return make_guide(self._thresholds)

    @cached_property
    def _common_row(self) -> tuple[np.uint64, Guide] | None:
        return _shared_rows(self.checked_weights)

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes. A single report compares its draw with the whole row, whatever the value."""
        column = np.ascontiguousarray(words[:, 0])
        if total == 1:
            draws = column >> np.uint64(64 - TOTAL_BITS)
            reports[:] = np.count_nonzero(self._thresholds[codes] <= draws[:, None], axis=1)
        elif self._common_row is None:
            kernels.scan_table(codes, column, self._guide, reports, work=total)
        else:
            own, guide = self._common_row
            kernels.scan_shared(codes, column, own, guide, reports, work=total)

    def lifts(self, prior: PriorOrSet, secret: Secrets, notion: Cone) -> Lifts:
        """The exact extremes, under any prior, set of priors, secret and notion."""
        return lifts(self.checked_weights, prior, secret, notion)


@dataclass(frozen=True, eq=False)
class Table(TabledReports):
    """Report `y` for value `x` with probability `weights[x, y] / 2**62`, exactly.

    >>> coin = Table(np.array([[TOTAL // 4, 3 * TOTAL // 4], [TOTAL // 2, TOTAL // 2]]))
    >>> words, reports = np.array([[0x3F << 56], [0x40 << 56]], dtype=np.uint64), coin.new_reports(2)
    >>> coin.draw(np.zeros(2, dtype=np.int64), words, reports, total=2)
    >>> reports.tolist()
    [0, 1]
    """

    weights: Ints

    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _check_weights(self.weights))

    @property
    def checked_weights(self) -> Ints:
        """The weights, which are checked already."""
        return self.weights

    def parameters(self) -> dict[str, Any]:
        """The weights as strings: JavaScript numbers could not hold them."""
        return {"bits": TOTAL_BITS, "weights": [[str(w) for w in row] for row in self.weights.tolist()]}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Self:
        """Read a table from the parameters in its JSON document."""
        return cls(np.array([[int(w) for w in row] for row in parameters["weights"]], dtype=np.int64))


def make_guide(thresholds: Words, span_bits: int = TOTAL_BITS) -> Guide:
    """For every row and every value of a draw's leading bits, the least report that draw can give.

    Draws have at most `span_bits` bits. With two entries per output a draw needs one or two comparisons
    on average, whatever the row.

    >>> make_guide(np.array([[TOTAL // 2, TOTAL]], dtype=np.uint64)).starts
    array([[0, 0, 1, 1]], dtype=uint32)
    """
    rows, outputs = thresholds.shape
    entries = min(_GUIDE_PER_OUTPUT * outputs, max(2, _GUIDE_LIMIT // rows))
    bits = min(span_bits, max(1, (entries - 1).bit_length()))
    shift = span_bits - bits
    marks = np.arange(1 << bits, dtype=np.uint64) << np.uint64(shift)
    starts = np.stack([np.searchsorted(row, marks, side="right") for row in thresholds])
    return Guide(thresholds, np.minimum(starts, outputs - 1).astype(np.uint32), np.uint64(shift))


def _shared_rows(weights: Ints) -> tuple[np.uint64, Guide] | None:
    """The number on the diagonal and the guide of the common row, for tables of one row plus that number; else None.

    Examples are k-RR, and reporting either the truth or a draw from the prior.
    """
    size = weights.shape[0]
    if size < 3 or weights.shape[1] != size:
        return None
    common = weights[(np.arange(size) + 1) % size, np.arange(size)]
    own = TOTAL - int(common.sum())
    if not 0 <= own < TOTAL or not np.array_equal(weights, common + own * np.eye(size, dtype=np.int64)):
        return None
    # The first column is a zero: then row x of the table begins its own entry at thresholds[0, x].
    sums = np.concatenate(([0], np.cumsum(common))).astype(np.uint64)[None, :]
    guide = make_guide(sums[:, 1:], max(1, int(common.sum() - 1).bit_length()))
    return np.uint64(own), guide._replace(thresholds=sums)


def _check_weights(weights: Ints) -> Ints:
    array = own_integers("weights", weights, 2)
    if array.min() < 0 or any(sum(map(int, row)) != TOTAL for row in array):
        raise InvalidChannel("weights", array, f"give non-negative rows that add up to 2**{TOTAL_BITS}")
    if not array.any(axis=0).all():
        raise InvalidChannel("weights", array, "remove the outputs that no value ever reports")
    return array


@dataclass(frozen=True, eq=False)
class Grouped(NumberedReports):
    """Value `x` is reported by row `rows[x]` of the table.

    >>> from priorveil.certify import TOTAL
    >>> quarter = TOTAL // 4
    >>> pair = Grouped(np.array([0, 1, 1]), Table(np.array([[3 * quarter, quarter], [quarter, 3 * quarter]])))
    >>> pair.size, pair.outputs, pair.matrix[2].tolist()
    (3, 2, [0.25, 0.75])
    """

    rows: Ints
    table: Table

    kind: ClassVar[str] = "grouped"

    def __post_init__(self) -> None:
        rows = own_integers("rows", self.rows, 1)
        if not np.array_equal(np.unique(rows), np.arange(self.table.size)):
            raise InvalidInput("rows", rows, f"use each row from 0 to {self.table.size - 1}, and no other")
        object.__setattr__(self, "rows", rows)

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.rows.size)

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return self.table.outputs

    @property
    def matrix(self) -> Array:
        """The channel in floats, a row for each value; raises `TooLarge` when huge."""
        require_writable(self.size, self.outputs)
        return self.table.matrix[self.rows]

    @property
    def integer_rows(self) -> Ints:
        """The weights of the groups."""
        return self.table.weights

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes."""
        self.table.draw(self.rows[codes], words, reports, total)

    def lifts(self, prior: PriorOrSet, secret: Secrets, notion: Cone) -> Lifts:
        """The exact extremes: all values of a group have its row, so the groups' prior decides."""
        one_prior = single_prior(prior, secret, notion, self.kind)
        return self.table.lifts(self.group_prior(one_prior), None, notion)

    def levels(self, prior: PriorOrSet, secret: Secrets, proven: Certificate) -> Leakage:
        """The levels of the groups, which decide the report; DI also compares the extreme values of each group."""
        one_prior = single_prior(prior, secret, LIP(), self.kind)
        P, Q = one_prior.probabilities, self.table.matrix
        likeliest, rarest = np.zeros(len(Q)), np.ones(len(Q))
        np.maximum.at(likeliest, self.rows, P)
        np.minimum.at(rarest, self.rows, P)
        with np.errstate(divide="ignore"):
            ratios = (likeliest[:, None] * Q).max(axis=0) / (rarest[:, None] * Q).min(axis=0)
        leakage = self.table.levels(self.group_prior(one_prior), None, proven)
        return replace(leakage, di=float(np.log(ratios.max())))

    def group_prior(self, prior: Prior) -> Prior:
        """The prior of the groups, exactly."""
        sums = [0] * self.table.size
        for row, weight in zip(self.rows.tolist(), prior.weights, strict=True):
            sums[row] += weight
        return Prior.from_counts(sums)

    def law(self, p: Array) -> Array:
        """`p @ matrix`, from the masses of the groups."""
        return np.asarray(np.bincount(self.rows, p) @ self.table.matrix)

    def columns(self, reports: Ints) -> Array:
        """The columns of the channel for some of the reports, a row for each."""
        return self.table.columns(reports)[:, self.rows]

    def parameters(self) -> dict[str, Any]:
        """The row of each value, and the table."""
        return {**self.table.parameters(), "rows": self.rows.tolist()}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Grouped:
        """Read a mechanism from the parameters in its JSON document."""
        return cls(np.array(parameters["rows"], dtype=np.int64), Table.read(parameters))

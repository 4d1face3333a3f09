"""A table whose rows are shared: values of one group are reported alike.

On a large domain the best channel treats many unlikely values the same. Then the table has a row for each
group, and `rows[x]` says which is the row of value `x`. Reports and randomness are those of the table. A report
says nothing about which value of a group it was, so the posterior within a group is the prior's, and reports
never identify the distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Lifts
from priorveil.errors import InvalidInput, TooLarge
from priorveil.mechanisms.codes import Codes, checked_codes
from priorveil.mechanisms.moments import Moments, not_identifiable
from priorveil.mechanisms.prior_check import prior_check
from priorveil.mechanisms.randomness import Source, blocks
from priorveil.mechanisms.reading import Counted, one_prior
from priorveil.mechanisms.table import Integers, Table
from priorveil.notions import Known, Secrets
from priorveil.priors import Array, Prior

_MOST_ENTRIES = 1 << 26


@dataclass(frozen=True, eq=False)
class Grouped(Counted):
    """Value `x` is reported by row `rows[x]` of the table.

    >>> from priorveil.certify import TOTAL
    >>> quarter = TOTAL // 4
    >>> pair = Grouped(np.array([0, 1, 1]), Table(np.array([[3 * quarter, quarter], [quarter, 3 * quarter]])))
    >>> pair.size, pair.outputs, pair.matrix[2].tolist()
    (3, 2, [0.25, 0.75])
    """

    rows: Integers
    table: Table

    kind: ClassVar[str] = "grouped"
    draws_per_report: ClassVar[int] = 1

    def __post_init__(self) -> None:
        rows = np.array(self.rows)
        if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
            raise InvalidInput("rows", rows.shape, "give one row number for each value")
        if not np.array_equal(np.unique(rows), np.arange(self.table.size)):
            raise InvalidInput("rows", rows, f"use each row from 0 to {self.table.size - 1}, and no other")
        object.__setattr__(self, "rows", rows.astype(np.int64))
        self.rows.flags.writeable = False

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
        if self.size * self.outputs > _MOST_ENTRIES:
            raise TooLarge(
                f"{self.size} by {self.outputs} entries: the table of the groups is `mechanism.table`"
            )
        return self.table.matrix[self.rows]

    def sample_one(self, code: int, source: Source) -> int:
        """The report of one value."""
        return self.table.scan(int(self.rows[checked_codes([code], self.size)[0]]), source.words(1)[0])

    def sample(self, codes: npt.ArrayLike, source: Source) -> Codes:
        """The reports of many values."""
        values = checked_codes(codes, self.size)
        reports = np.empty(values.size, dtype=np.int64)
        for block, words in blocks(source, values.size, self.draws_per_report):
            self.table.look_up(self.rows[values[block]], words[:, 0], reports[block], values.size)
        return reports

    def accumulate(self, reports: npt.ArrayLike) -> Integers:
        """How often each report came."""
        return self.table.accumulate(reports)

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes: all values of a group have its row, so the groups' prior decides."""
        return self.table.lifts(self.grouped(one_prior(prior, secret, notion, self.kind)), None, notion)

    def grouped(self, prior: Prior) -> Prior:
        """The prior of the groups, exactly."""
        sums = [0] * self.table.size
        for row, weight in zip(self.rows.tolist(), prior.weights, strict=True):
            sums[row] += weight
        return Prior.from_counts(sums)

    def identifies(self) -> bool:
        """Only if no two values share a row."""
        return self.size == self.table.size and self.table.identifies()

    def prior_check(self, counts: Integers, prior: Array) -> float | None:
        """The p-value of the counts under the law that the prior gives them."""
        return prior_check(counts.astype(np.float64), np.bincount(self.rows, prior) @ self.table.matrix)

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The histogram, or the statistics `rows @ histogram`, by `mmse`.

        Posteriors are those of the groups, divided within a group as the prior is.
        """
        if method != "mmse":
            raise not_identifiable()
        mass = np.bincount(self.rows, prior)
        joint = mass[:, None] * self.table.matrix
        posterior, n, share = joint / joint.sum(axis=0), counts.astype(np.float64), prior / mass[self.rows]
        if rows is not None:
            by_group, squares_by_group = (
                np.stack([np.bincount(self.rows, share * row) for row in each]) for each in (rows, rows**2)
            )
            mean = by_group @ posterior
            spread = squares_by_group @ posterior - mean**2
            return Moments(mean @ n, np.maximum(spread, 0.0) @ n)
        first, second = (posterior @ n)[self.rows], (posterior**2 @ n)[self.rows]
        return Moments(share * first, share * first - share**2 * second)

    def parameters(self) -> dict[str, Any]:
        """The row of each value, and the table."""
        return {**self.table.parameters(), "rows": self.rows.tolist()}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Grouped:
        """The mechanism of these parameters."""
        return cls(np.array(parameters["rows"], dtype=np.int64), Table.read(parameters))

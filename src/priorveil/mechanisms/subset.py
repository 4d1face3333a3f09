"""Subset selection: the report is a set of `k` of the `d` values, which is likelier to hold the true one.

The set holds the true value with probability `p = keep / 2**62`. The rest of it is a uniformly random subset of the
other `d - 1` values, of size `k - 1` or `k`. A report is therefore

    R = p (d - k) / ((1 - p) k)

times likelier for a value that it holds than for any other: `R` is the LDP ratio. With `m(y)` the prior mass of a
report `y` the lifts are `R / (1 + (R - 1) m(y))` and `1 / (1 + (R - 1) m(y))`, which are extreme for the `k` rarest and
for the `k` commonest values.

Randomness: `1 + k` words, whatever the value. The first decides whether the value is held: iff `w >> 2 < keep`. The
others are Floyd's algorithm: word `j` modulo `d - 1 - k + j`, for `j = 1 .. k`, draws a candidate among the other
values in order; if it is held already, the last candidate of that range joins in its place. If the true value is held,
it takes the place of the first candidate. A word so large that its remainder would be uneven (one in `2**64 / d`) is
not drawn again: the report is then the first `k` values, whatever the true value is. Such a report carries no
information. Its probability is below `k d / 2**64`, so it can only lower the levels, and no estimate notices it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Ints
from priorveil.certify import TOTAL
from priorveil.errors import Hint, Infeasible, InvalidInput
from priorveil.mechanisms import kernels
from priorveil.mechanisms.bit_law import BitLaw, subset_law
from priorveil.mechanisms.bit_reports import BitReports
from priorveil.mechanisms.randomness import WORD, Words
from priorveil.notions import PriorOrSet


@dataclass(frozen=True, eq=False)
class Subset(BitReports):
    """Subset selection among `len(masses)` values: sets of `subset_size`, the true value in `keep / 2**62` of them.

    >>> mechanism = Subset(np.array([1, 1, 2]), subset_size=1, keep=TOTAL // 2)
    >>> mechanism.draws_per_report, mechanism.odds
    (2, Fraction(2, 1))
    """

    subset_size: int
    keep: int

    kind: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.subset_size < self.size:
            raise InvalidInput("subset_size", self.subset_size, f"give a number from 1 to {self.size - 1}")
        if not 0 < self.keep < TOTAL:
            raise InvalidInput("keep", self.keep, "give an integer above 0 and below 2**62")
        if self.odds < 1:
            raise InvalidInput(
                "keep",
                self.keep,
                "a set would hold the true value less often than any other: give a larger number",
            )

    @property
    def draws_per_report(self) -> int:
        """Random words a report takes, whatever the value."""
        return 1 + self.subset_size

    @cached_property
    def odds(self) -> Fraction:
        """`R`: how much likelier a report is for a value that it holds. Also the LDP ratio."""
        return Fraction(self.keep * (self.size - self.subset_size), (TOTAL - self.keep) * self.subset_size)

    @cached_property
    def law(self) -> BitLaw:
        """The law of a report in floats."""
        return subset_law(float(self.odds), self.size, self.subset_size)

    @cached_property
    def _draw_bounds(self) -> tuple[Words, Words]:
        """The bound of each draw, and the last word that does not make it uneven."""
        ends = range(self.size - self.subset_size, self.size)
        return np.array(ends, dtype=WORD), np.array([2**64 - 1 - 2**64 % end for end in ends], dtype=WORD)

    def draw(self, codes: Ints, words: Words, reports: Words, total: int) -> None:
        """Fill `reports` for valid codes."""
        coins = np.uint64(self.keep), *self._draw_bounds
        kernels.draw_subsets(codes, words, *coins, reports, work=total * self.draws_per_report)

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made: sets of the right size, with no bit beyond the last value."""
        sizes = np.bitwise_count(self.report_array(reports)).sum(axis=1, dtype=np.int64)
        return np.asarray(super().accepts(reports) & (sizes == self.subset_size))

    @property
    def allowed_reports(self) -> str:
        """Which bits may be set, in words."""
        return f"exactly {self.subset_size} of the first {self.size} bits have to be set"

    def extreme_masses(self, prior: PriorOrSet) -> tuple[Fraction, Fraction]:
        """The masses of the `k` rarest and of the `k` commonest values, for one prior or a finite set of priors."""
        if not prior.members:
            message = "subset is certified for one prior or a finite set of priors"
            raise Infeasible(message, Hint("method", "columns"))
        k, ordered = self.subset_size, [(sorted(member.weights), member.total) for member in prior.members]
        lightest = min(Fraction(sum(weights[:k]), total) for weights, total in ordered)
        return lightest, max(Fraction(sum(weights[-k:]), total) for weights, total in ordered)

    def parameters(self) -> dict[str, Any]:
        """The three fields; long integers as strings."""
        return super().parameters() | {"subset_size": self.subset_size, "keep": str(self.keep)}

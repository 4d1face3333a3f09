"""The table mechanism: one row of integer weights per value, one random word per report.

Row `x` of `W` has non-negative integers that add up to `2**62`; the report of `x` is `y` with probability
exactly `W[x, y] / 2**62`.

Randomness: one word `w` per report. Its upper 62 bits are the draw, `r = w >> 2`, and the report is the
number of partial sums `W[x, 0] + ... + W[x, k]` that are at most `r`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.certify import TOTAL, Certifiable, Lifts, lifts
from priorveil.errors import InvalidChannel
from priorveil.mechanisms import kernels
from priorveil.mechanisms.codes import Codes, checked_codes, checked_reports, report_counts
from priorveil.mechanisms.randomness import Source, Words, blocks
from priorveil.mechanisms.reading import Counted
from priorveil.notions import Known, Secrets

TOTAL_BITS = 62

Integers = npt.NDArray[np.int64]

# A guide has two entries for every output: then most draws need at most one comparison.
_GUIDE_PER_OUTPUT = 2
_GUIDE_LIMIT = 1 << 24


class Guide(NamedTuple):
    """Partial sums, and where among them a draw with given leading bits begins to look."""

    thresholds: Words
    starts: npt.NDArray[np.uint32]
    shift: np.uint64


@dataclass(frozen=True, eq=False)
class Table(Counted):
    """Report `y` for value `x` with probability `weights[x, y] / 2**62`, exactly.

    >>> from priorveil.mechanisms.randomness import BytesSource
    >>> coin = Table(np.array([[TOTAL // 4, 3 * TOTAL // 4], [TOTAL // 2, TOTAL // 2]]))
    >>> [coin.sample_one(0, BytesSource(bytes(7) + bytes([top]))) for top in (0x3F, 0x40)]
    [0, 1]
    """

    weights: Integers

    kind: ClassVar[str] = "table"
    draws_per_report: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked_weights(self.weights))

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.weights.shape[0])

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return int(self.weights.shape[1])

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """The channel `Q[x, y] = Pr(y | x)` in floats."""
        return self.weights / float(TOTAL)

    @cached_property
    def _thresholds(self) -> Words:
        return np.cumsum(self.weights, axis=1).astype(np.uint64)

    @cached_property
    def _guide(self) -> Guide:
        return make_guide(self._thresholds)

    @cached_property
    def _shared(self) -> _Shared | None:
        return _shared_rows(self.weights)

    def sample_one(self, code: int, source: Source) -> int:
        """The report of one value."""
        return self.scan(int(checked_codes([code], self.size)[0]), source.words(1)[0])

    def scan(self, row: int, word: np.uint64) -> int:
        """The report that a word makes of a row: all of the row is compared with the draw, whatever it is."""
        return int(np.count_nonzero(self._thresholds[row] <= word >> np.uint64(64 - TOTAL_BITS)))

    def sample(self, codes: npt.ArrayLike, source: Source) -> Codes:
        """The reports of many values."""
        rows = checked_codes(codes, self.size)
        reports = np.empty(rows.size, dtype=np.int64)
        for block, words in blocks(source, rows.size, self.draws_per_report):
            self.look_up(rows[block], words[:, 0], reports[block], rows.size)
        return reports

    def look_up(self, rows: Codes, words: Words, reports: Codes, work: int) -> None:
        """Fill `reports` for checked rows and one word each; `work` says how much there is in all."""
        words = np.ascontiguousarray(words)
        shared = self._shared
        if shared is None:
            loop = kernels.fast(kernels.scan_table, work) or scan_table
            loop(rows, words, *self._guide, reports)
        else:
            shared_loop = kernels.fast(kernels.scan_shared, work) or scan_shared
            shared_loop(rows, words, shared.own, *shared.guide, reports)

    def accumulate(self, reports: npt.ArrayLike) -> Integers:
        """How often each report came: `outputs` integers, which add up over parts."""
        return report_counts(reports, self.outputs)

    def likelihood(self, report: int) -> npt.NDArray[np.float64]:
        """`Pr(report | x)` for every value `x`: what the report says."""
        return self.matrix[:, checked_reports([report], self.outputs)[0]]

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes, under any prior, set of priors, secret and notion."""
        return lifts(self.weights, prior, secret, notion)

    def parameters(self) -> dict[str, Any]:
        """The weights as strings: JavaScript numbers could not hold them."""
        return {"bits": TOTAL_BITS, "weights": [[str(w) for w in row] for row in self.weights.tolist()]}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Table:
        """The table of these parameters."""
        if parameters["bits"] != TOTAL_BITS:
            raise InvalidChannel("bits", parameters["bits"], f"rows add up to 2**{TOTAL_BITS}")
        return cls(np.array([[int(w) for w in row] for row in parameters["weights"]], dtype=np.int64))


class _Shared(NamedTuple):
    """Rows that are one common row plus `own` on the diagonal (k-RR, and truth or a draw from the prior)."""

    own: np.uint64
    guide: Guide


def scan_table(
    rows: Codes,
    words: Words,
    thresholds: Words,
    starts: npt.NDArray[np.uint32],
    shift: np.uint64,
    reports: Codes,
) -> None:
    """The numpy twin of `kernels.scan_table`."""
    draws = words >> np.uint64(64 - TOTAL_BITS)
    found = starts[rows, (draws >> shift).astype(np.int64)].astype(np.int64)
    active = np.flatnonzero(thresholds[rows, found] <= draws)
    while active.size:
        found[active] += 1
        active = active[thresholds[rows[active], found[active]] <= draws[active]]
    reports[:] = found


def scan_shared(
    rows: Codes,
    words: Words,
    own: np.uint64,
    thresholds: Words,
    starts: npt.NDArray[np.uint32],
    shift: np.uint64,
    reports: Codes,
) -> None:
    """The numpy twin of `kernels.scan_shared`."""
    draws = words >> np.uint64(64 - TOTAL_BITS)
    begin = thresholds[0, rows]
    past = draws >= begin
    is_own = past & (draws - begin < own)
    moved = np.where(is_own, np.uint64(0), np.where(past, draws - own, draws))
    scan_table(
        np.zeros_like(rows), moved << np.uint64(64 - TOTAL_BITS), thresholds[:, 1:], starts, shift, reports
    )
    reports[is_own] = rows[is_own]


def make_guide(thresholds: Words, span_bits: int = TOTAL_BITS) -> Guide:
    """For every row and every value of a draw's leading bits, the least report that draw can give.

    Draws have at most `span_bits` bits. With two entries per output a draw needs one or two comparisons
    on average, whatever the row.

    >>> make_guide(np.array([[TOTAL // 2, TOTAL]], dtype=np.uint64)).starts
    array([[0, 0, 1, 1]], dtype=uint32)
    """
    rows, outputs = thresholds.shape
    wanted = min(_GUIDE_PER_OUTPUT * outputs, max(2, _GUIDE_LIMIT // rows))
    bits = min(span_bits, max(1, (wanted - 1).bit_length()))
    shift = span_bits - bits
    marks = np.arange(1 << bits, dtype=np.uint64) << np.uint64(shift)
    starts = np.stack([np.searchsorted(row, marks, side="right") for row in thresholds])
    return Guide(thresholds, np.minimum(starts, outputs - 1).astype(np.uint32), np.uint64(shift))


def _shared_rows(weights: Integers) -> _Shared | None:
    """The common row, if the rows agree off the diagonal and none has less on it than the common row."""
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
    return _Shared(np.uint64(own), guide._replace(thresholds=sums))


def _checked_weights(weights: Integers) -> Integers:
    array = np.asarray(weights)
    if array.ndim != 2 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidChannel("weights", f"{array.dtype} {array.shape}", "give a matrix of integers")
    if array.min() < 0 or any(sum(map(int, row)) != TOTAL for row in array):
        raise InvalidChannel("weights", array, f"give non-negative rows that add up to 2**{TOTAL_BITS}")
    if not array.any(axis=0).all():
        raise InvalidChannel("weights", array, "remove the outputs that no value ever reports")
    owned = np.array(array, dtype=np.int64)
    owned.flags.writeable = False
    return owned

"""Arcs in a public random order: a pool of circles, one of them drawn for each report.

Every order of the pool (`priorveil.mechanisms.arc_orders`) bends the same segments into another circle; all
share the window and the coin. The order is drawn without looking at the value and is part of the report, so
each order is an arc mechanism of its own, and the certificate is the worst of theirs.

**The sampler.** Four words, whatever the value is: the lowest bits of the first are the index of the order
(the pool is a power of two large), the other three go to that order's line as in
`priorveil.mechanisms.arc_line`. The report is `index * 2**bits + y` with the line's report `y`, in all
below `2**53`.

**Reading.** A tally is the tallies of all lines, side by side. Its posteriors add up. What reports alone say
is `J**-1` times the sum of their lifts, which the tally gives exactly; `J` is the information that the
orders hold on average. Neither needs the channel written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Lifts
from priorveil.errors import ForeignReport, Hint, Infeasible, InvalidInput, NotIdentifiable, TooLarge
from priorveil.mechanisms.arc_bounds import arc_lifts, fit_line, largest_keep, line_bits
from priorveil.mechanisms.arc_cells import LIMB, ArcCells, weigh_columns
from priorveil.mechanisms.arc_circles import Circles, CirclesEvidence
from priorveil.mechanisms.arc_exposed import exposed_lines
from priorveil.mechanisms.arc_line import DRAWS, ArcLine, reports_from
from priorveil.mechanisms.arc_orders import circle_orders, pair_moments, prime_above, spread_orders
from priorveil.mechanisms.arc_reading import (
    lift_moments,
    made_for,
    posterior_sums,
    posterior_variances,
    report_likelihood,
    sum_variance,
)
from priorveil.mechanisms.codes import checked_codes
from priorveil.mechanisms.likelihood import Cells, Evidence
from priorveil.mechanisms.moments import (
    Moments,
    apply_rows,
    diagonal_of,
    not_identifiable,
    posterior_moments,
    squared_rows,
)
from priorveil.mechanisms.prior_check import prior_check
from priorveil.mechanisms.randomness import Source, Words, blocks
from priorveil.mechanisms.reading import SMALL, inverted, one_prior, whole_numbers
from priorveil.notions import Known, Secrets
from priorveil.priors import Prior
from priorveil.queries import Query

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHUNK = 1 << 20
_MOST_ENTRIES = 1 << 24  # of a channel that is written out
_MOST_WORK = 1 << 38  # multiplications in a product of the channel with itself
_QUICK = 512  # values up to which the information is inverted in less than a second
_REPORT_BITS = 53
_RANK = 1e-10  # eigenvalues of the information below this are not identified


@dataclass(frozen=True, eq=False)
class ArcPool:
    """Arc mechanisms that differ in the order of the circle; `owners` have an output of their own in each.

    >>> pool = ArcPool.fit([5, 2, 2, 1], [0], 4, Fraction(37, 100), Fraction(271, 100))
    >>> [line.order.tolist() for line in pool.lines]
    [[0, 2, 1, 3], [0, 3, 2, 1], [0, 3, 1, 2], [0, 2, 3, 1]]
    >>> from priorveil.mechanisms.randomness import GeneratorSource
    >>> reports = pool.sample([0] * 500 + [3] * 100, GeneratorSource(np.random.default_rng(1)))
    >>> pool.accepts(reports).all(), int(pool.accumulate(reports)[0].sum())
    (np.True_, 600)
    """

    lengths: Ints
    owners: Ints
    seeds: Ints
    multipliers: Ints
    window: int
    keep: int
    bits: int

    kind: ClassVar[str] = "arc_pool"
    width: ClassVar[int] = 0
    draws_per_report: ClassVar[int] = 1 + DRAWS

    def __post_init__(self) -> None:
        for name in ("lengths", "owners", "seeds", "multipliers"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.int64).reshape(-1))
        count, d = self.seeds.size, self.lengths.size
        if (
            count == 0
            or count & count - 1
            or self.bits > _REPORT_BITS
            or count << self.bits > 1 << _REPORT_BITS
        ):
            raise InvalidInput("seeds", f"{count} seeds", "give a power of two, with 2**bits below 2**53")
        if self.seeds.min() < 0:
            raise InvalidInput("seeds", int(self.seeds.min()), "give whole numbers from zero on")
        if self.owners.size and not (self.owners.min() >= 0 and self.owners.max() < d):
            raise InvalidInput("owners", self.owners, "give codes of values")
        most = prime_above(self.light.size) - 1
        if self.multipliers.size != count or not np.all((self.multipliers >= 1) & (self.multipliers <= most)):
            raise InvalidInput("multipliers", self.multipliers, f"give one for each seed, from 1 to {most}")
        if self.light.size == 0:
            raise InvalidInput("owners", self.owners, "leave some values for the circle")
        _ = self.lines  # each checks itself

    @classmethod
    def fit(
        cls,
        weights: npt.ArrayLike,
        owners: npt.ArrayLike,
        count: int,
        lo_upper: Fraction,
        hi_lower: Fraction,
    ) -> ArcPool:
        """The least noisy pool of `count` orders whose certificate meets the bounds: see `arc_bounds`."""
        size, first = len(np.asarray(weights)), np.array(owners, dtype=np.int64).reshape(-1)
        light = np.setdiff1d(np.arange(size), first)
        bits = min(line_bits(lo_upper, hi_lower), _REPORT_BITS - (count - 1).bit_length())
        base = fit_line(weights, np.concatenate([first, light]), len(first), lo_upper, hi_lower, bits)
        if base.start < base.edges[base.heavy]:
            raise Infeasible(
                "the values on the circle are too unlikely for a window", Hint("method", "columns")
            )
        seeds, multipliers = spread_orders(len(light), count)
        draft = cls(base.lengths, first, seeds, multipliers, base.window, 0, bits)
        keep = min(largest_keep(line, weights, lo_upper, hi_lower) for line in draft.lines)
        return cls(base.lengths, first, seeds, multipliers, base.window, keep, bits)

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.lengths.size)

    @property
    def span(self) -> int:
        """Reports of order `i` begin at `i * span`."""
        return 1 << self.bits

    @cached_property
    def light(self) -> Ints:
        """The values on the circle, by code."""
        return np.setdiff1d(np.arange(self.size), self.owners)

    @cached_property
    def lines(self) -> tuple[ArcLine, ...]:
        """The line of every order."""
        heavy, start = int(self.owners.size), int(self.lengths[self.owners].sum())
        return tuple(
            ArcLine(
                self.lengths,
                np.concatenate([self.owners, order]),
                heavy,
                start,
                self.window,
                self.keep,
                self.bits,
            )
            for order in circle_orders(self.light, self.seeds, self.multipliers)
        )

    @cached_property
    def _starts(self) -> Ints:
        """Where the segment of each value begins, a row for each order."""
        return np.stack([line.starts for line in self.lines])

    @cached_property
    def circles(self) -> Circles:
        """The cells of every order."""
        return Circles([ArcCells(line) for line in self.lines])

    @cached_property
    def bases(self) -> tuple[Ints, Ints]:
        """The first report of every column of a tally, and where the columns of each order begin and end."""
        bases = [cells.base + i * self.span for i, cells in enumerate(self.circles.circles)]
        return np.concatenate(bases), self.circles.ends

    def parts(self, tally: npt.NDArray[Any]) -> Iterator[tuple[ArcCells, npt.NDArray[Any]]]:
        """The cells of every order with its part of an array that has a column for each cell."""
        ends = self.bases[1].tolist()
        for cells, first, last in zip(self.circles.circles, ends[:-1], ends[1:], strict=True):
            yield cells, tally[..., first:last]

    def _made_for(self, prior: Array) -> bool:
        return made_for(self.circles.circles[0], prior)

    @cached_property
    def matrix(self) -> Array:
        """The channel from values to the columns of a tally; raises `TooLarge` when huge."""
        columns = int(self.bases[1][-1])
        if self.size * columns > _MOST_ENTRIES:
            raise TooLarge(
                f"the channel has {self.size:,} by {columns:,} entries: read it in `circles.blocks()`"
            )
        return np.hstack([block for _, block in self.circles.blocks()])

    @cached_property
    def exposed(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        return exposed_lines(self.lines, self.span)

    def sample_one(self, code: int, source: Source) -> int:
        """The report of one value."""
        words = source.words(self.draws_per_report).reshape(1, -1)
        return int(self._drawn(checked_codes([code], self.size), words)[0])

    def sample(self, codes: npt.ArrayLike, source: Source) -> Ints:
        """The reports of many values."""
        rows = checked_codes(codes, self.size)
        reports = np.empty(rows.size, dtype=np.int64)
        for block, words in blocks(source, rows.size, self.draws_per_report):
            reports[block] = self._drawn(rows[block], words)
        return reports

    def _drawn(self, codes: Ints, words: Words) -> Ints:
        """The lines differ only in where a value's segment begins."""
        index = (words[:, 0] & np.uint64(len(self.lines) - 1)).astype(np.int64)
        told = reports_from(self.lines[0], self._starts[index, codes], self.lengths[codes], words[:, 1:])
        return index * self.span + told

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made."""
        inside = whole_numbers(reports, len(self.lines) * self.span)
        return inside & whole_numbers(reports & (self.span - 1), self.lines[0].outputs)

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """The tallies of all orders, side by side; see `arc_cells`. Tallies add up."""
        array, base = self._checked(reports), self.bases[0]
        tally = np.zeros((3, len(base)), dtype=np.int64)
        for first in range(0, len(array), _CHUNK):
            part = array[first : first + _CHUNK]
            column, y = np.searchsorted(base, part, side="right") - 1, part & (self.span - 1)
            tally[0] += np.bincount(column, minlength=len(base))
            np.add.at(tally[1], column, y & (1 << LIMB) - 1)
            np.add.at(tally[2], column, y >> LIMB)
        return tally

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """As `accumulate`, in floats: every report is counted as often as its weight says."""
        array, base = self._checked(reports), self.bases[0]
        column = np.searchsorted(base, array, side="right") - 1
        return weigh_columns(column, array & (self.span - 1), weights, len(base))

    def _checked(self, reports: npt.ArrayLike) -> Ints:
        array = np.asarray(reports)
        array = array.astype(np.int64) if array.size == 0 else array
        good = self.accepts(array)
        if array.ndim != 1 or not good.all():
            row = int(np.argmin(good))
            raise ForeignReport(f"reports[{row}]", array.flat[row], "no order of this pool makes it")
        return array.astype(np.int64, copy=False)

    def likelihood(self, report: int) -> Array:
        """`Pr(report | x)` for every value."""
        index, y = divmod(int(report), self.span)
        return report_likelihood(self.circles.circles[index], y) / len(self.lines)

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """Proven bounds on the lifts: the order is public, so each order is a channel of its own."""
        weights = np.array(one_prior(prior, secret, notion, self.kind).weights, dtype=object)
        found = [arc_lifts(line, weights) for line in self.lines]
        ratio = max(f.ratio for f in found if f.ratio is not None)
        return Lifts(min(f.lowest for f in found), max(f.highest for f in found), ratio, ratio)

    @cached_property
    def information(self) -> Array:
        """The Fisher information `J = E[r r']` of a report at the prior of the layout."""
        shares, window = self.lengths / self.span, self.window / self.span
        place = np.empty(self.size, dtype=np.int64)
        place[self.light] = np.arange(self.light.size)
        heavy = self.owners.size
        orders = np.stack([place[line.order[heavy:]] for line in self.lines])
        light = shares[self.light]
        told = np.diag(1 / shares)
        told[np.ix_(self.light, self.light)] = pair_moments(orders, light, window) / np.outer(
            light * window, light * window
        )
        k = self.keep / 2.0**64
        return 1 - k**2 + k**2 * told

    @cached_property
    def inverse(self) -> Array:
        """The inverse of the information; refused where reports do not identify the distribution."""
        root = np.sqrt(self.lengths / self.span)
        size, vectors = np.linalg.eigh(root[:, None] * self.information * root)
        if size[0] <= _RANK:
            raise not_identifiable()
        half = root[:, None] * vectors
        return np.asarray((half / size) @ half.T)

    def variance(self) -> float:
        """N times the variance of the distribution learnt from N reports, summed over the values."""
        shares = self.lengths / self.span
        return float(np.trace(self.inverse) - shares @ shares)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person of learning the distribution, at the prior of the layout."""
        known = query.kind == "distribution" and self._made_for(prior.probabilities)
        return self.variance() if known and self.size <= _QUICK else None

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution."""
        try:
            return bool(np.isfinite(self.inverse).all())
        except NotIdentifiable:
            return False

    def evidence(self, counts: npt.NDArray[Any]) -> Evidence:
        """The counts of the cells with the channel: written out if it is small, else as two products."""
        seen = counts[0].astype(np.float64)
        small = self.size * seen.size <= SMALL
        return Cells(seen, self.matrix) if small else CirclesEvidence(seen, self.circles)

    def prior_check(self, counts: Ints, prior: Array) -> float | None:
        """The p-value of the counts under the law that the prior gives them."""
        evidence = self.evidence(counts)
        return prior_check(evidence.counts, evidence.law(prior))

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The histogram, or the statistics `rows @ histogram`, by `mmse`, `unbiased` or `mle`."""
        if method == "mmse":
            return self._posterior(counts, prior, rows)
        if method == "unbiased":
            sums, moved = self._lift_sums(counts)
            return self._learnt(self.inverse @ sums, moved, rows, population)
        return inverted(method, self._readable(counts), prior, rows, population)

    def _readable(self, counts: npt.NDArray[Any]) -> Evidence:
        """The evidence, where a pass over the whole channel takes seconds and not hours."""
        if self.size**2 * int(self.bases[1][-1]) > _MOST_WORK:
            raise TooLarge(
                f"the channel has {self.size:,} by {int(self.bases[1][-1]):,} entries, too many to go through",
                Hint("method", "unbiased"),
                Hint("method", "mmse", purpose="under the plan's own prior"),
            )
        return self.evidence(counts)

    def _posterior(self, counts: npt.NDArray[Any], prior: Array, rows: Array | None) -> Moments:
        """Sums over the orders of posterior means and variances."""
        if not self._made_for(prior):
            return posterior_moments(self._readable(counts), prior, rows)
        mean, spread = np.zeros(self.size), np.zeros(self.size if rows is None else len(rows))
        for cells, tally in self.parts(counts):
            if tally[0].any():
                mean += posterior_sums(cells, tally, prior)
                spread += (
                    posterior_variances(cells, tally, prior)
                    if rows is None
                    else np.array([sum_variance(cells, tally, prior, row) for row in rows])
                )
        return Moments(apply_rows(rows, mean), spread)

    def _lift_sums(self, counts: npt.NDArray[Any]) -> tuple[Array, Array]:
        """`sum over reports of r`, and how far lifts were from one: `sum of (r - 1)**2`, for every value.

        The second takes reports as uniform within their cells in all of its terms. With some of them as they
        really came, their chance offsets would be blown up by `1 / P_x**2`.
        """
        own = self.lengths / self.span
        sums, moved = np.zeros((2, self.size))
        for cells, tally in self.parts(counts):
            if tally[0].any():
                sums += posterior_sums(cells, tally, own) / own
                first, second = lift_moments(cells, tally)
                moved += second - 2 * first + float(tally[0].sum())
        return sums, moved

    def _learnt(self, mean: Array, moved: Array, rows: Array | None, population: bool) -> Moments:
        """Moments of an estimate that the prior does not bias; `moved` is that of `_lift_sums`.

        Its covariance is `N J**-1` where the prior is right. Where it is wrong, the noise of a value is
        scaled by how far its lifts really were from one: `sum (r_x - 1)**2 / (N (J_xx - 1))`. Less is known
        for sure about the people than about those they were drawn from: see `estimates.unbiased_moments`.
        """
        N = float(mean.sum())
        room = np.maximum(N, 0.0) * (np.diag(self.information) - 1)
        scale = np.sqrt(np.divide(np.maximum(moved, 0.0), room, out=np.zeros_like(room), where=room > 0))
        noise = N * diagonal_of(rows, scale[:, None] * self.inverse * scale)
        answer = apply_rows(rows, mean)
        known = answer**2 / (N or 1.0) if population else apply_rows(squared_rows(rows), mean)
        return Moments(answer, np.maximum(noise - known, 0.0))

    def parameters(self) -> dict[str, Any]:
        """The segments, the names of the orders, the window and the coin, as JSON."""
        return {
            "bits": self.bits,
            "lengths": [str(n) for n in self.lengths.tolist()],
            "owners": self.owners.tolist(),
            "seeds": self.seeds.tolist(),
            "multipliers": self.multipliers.tolist(),
            "window": str(self.window),
            "keep": str(self.keep),
        }

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> ArcPool:
        """The pool of these parameters."""
        lengths = np.array([int(n) for n in parameters["lengths"]], dtype=np.int64)
        owners, seeds, multipliers = (
            np.array(parameters[name], dtype=np.int64) for name in ("owners", "seeds", "multipliers")
        )
        window, keep, bits = (int(parameters[name]) for name in ("window", "keep", "bits"))
        return cls(lengths, owners, seeds, multipliers, window, keep, bits)

"""The arc mechanism: values as arcs of a circle, a report as a window on it, in one public order or in several.

An order (`arc.line`) bends the segments of the values into a circle. All orders of a mechanism share the segments,
the values that own an output, the window and the coin. The order of a report is drawn without looking at the value
and is part of the report, so each order is a channel of its own, and the certificate (`arc.certificate`) is the
worst of theirs. Most mechanisms have a single order. A pool of many orders is for learning a distribution, because one
order estimates the fast waves around its circle badly.

**The sampler.** With one order a report takes the three words of `arc.line`. With several it takes four, whatever the
value is: the lowest bits of the first are the index of the order (their number is a power of two), the other three
go to that order's line. The report is `index * 2**bits + y` with the line's report `y`, in all below `2**53`.

**Reading.** A tally (`arc.counting`) is the tallies of all orders, side by side. Posteriors add up. What the reports of
a pool alone say is `J**-1` times the sum of their lifts, which the tally gives exactly; `J` is the information that
the orders hold on average. Neither needs the channel written out. With the value used with probability `k` the lift
of `x` at a report is `1 - k + k overlap / (l_x W)`, lengths and window as shares of the line. So `J = 1 - k**2 +
k**2 B`, where `B[x, y]` is `1 / l_x` for an owned output and, on the circle, the mean of `overlap_x overlap_y / (l_x
l_y W**2)` over the orders (`kernels.add_overlaps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Certificate, Lifts
from priorveil.errors import NOT_SHOWN, Hint, Infeasible, InvalidInput, NotIdentifiable, TooLarge
from priorveil.mechanisms import estimators, kernels
from priorveil.mechanisms.arc.certificate import arc_lifts, fit_line, largest_keep, line_bits
from priorveil.mechanisms.arc.counting import ArcCells
from priorveil.mechanisms.arc.line import (
    DRAWS,
    ArcLine,
    circle_order,
    draw_places,
    prime_above,
    spread_orders,
)
from priorveil.mechanisms.estimators import Counts, Evidence, Moments, PriorCheck, Rows, apply_rows
from priorveil.mechanisms.interface import (
    MEASURED,
    SMALL,
    Mechanism,
    in_range,
    require_writable,
    single_prior,
    worst_lifts,
)
from priorveil.mechanisms.randomness import Words
from priorveil.notions import Known, Leakage, Secrets
from priorveil.priors import Array, Ints, Prior
from priorveil.queries import Query, identifiable

_MOST_WORK = 1 << 38  # multiplications in a product of the channel with itself
_INVERTED = 1 << 20  # entries of the channel of one order, up to which it is inverted
_QUICK = 512  # values up to which the information is inverted in less than a second
_REPORT_BITS = 53


@dataclass(frozen=True, eq=False)
class Arc(Mechanism):
    """The arc mechanism in one or several orders; `names` are the seeds and multipliers of several.

    >>> from priorveil.mechanisms.randomness import GeneratorSource
    >>> arc = Arc.fit([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100))
    >>> tally = arc.accumulate(arc.sample([0] * 500 + [3] * 100, GeneratorSource(np.random.default_rng(1))))
    >>> arc.answer("mmse", tally, np.array([0.5, 0.2, 0.2, 0.1]), None, False).mean.round().tolist()
    [376.0, 88.0, 87.0, 49.0]
    """

    lines: tuple[ArcLine, ...]
    names: tuple[Ints, Ints] | None = None

    kind: ClassVar[str] = "arc"

    def __post_init__(self) -> None:
        count, line = len(self.lines), self.lines[0]
        if count & (count - 1) or count << line.bits > 1 << _REPORT_BITS:
            raise InvalidInput(
                "seeds", NOT_SHOWN, f"{count} seeds; give a power of two, with 2**bits below 2**53"
            )

    @classmethod
    def fit(
        cls, weights: npt.ArrayLike, order: npt.ArrayLike, heavy: int, lo: Fraction, hi: Fraction | None
    ) -> Arc:
        """The least noisy mechanism of one order that proves `lo <= lift <= hi`: see `fit_line`."""
        return cls((fit_line(weights, order, heavy, lo, hi),))

    @classmethod
    def fit_pool(
        cls, weights: npt.ArrayLike, owners: npt.ArrayLike, count: int, lo: Fraction, hi: Fraction
    ) -> Arc:
        """The least noisy pool of `count` orders that proves `lo <= lift <= hi`.

        >>> pool = Arc.fit_pool([5, 2, 2, 1], [0], 4, Fraction(37, 100), Fraction(271, 100))
        >>> [line.order.tolist() for line in pool.lines]
        [[0, 2, 1, 3], [0, 3, 2, 1], [0, 3, 1, 2], [0, 2, 3, 1]]
        """
        first = np.array(owners, dtype=np.int64).reshape(-1)
        light = np.setdiff1d(np.arange(np.size(weights)), first)
        bits = min(line_bits(lo, hi), _REPORT_BITS - (count - 1).bit_length())
        base = fit_line(weights, np.concatenate([first, light]), len(first), lo, hi, bits)
        if base.start < base.edges[base.heavy]:
            raise Infeasible(
                "the unlikely values together are too rare for arcs at this budget", Hint("method", "columns")
            )
        draft = cls.in_orders(replace(base, keep=0), *spread_orders(len(light), count))
        keep = min(largest_keep(line, weights, lo, hi) for line in draft.lines)
        return cls(tuple(replace(line, keep=keep) for line in draft.lines), draft.names)

    @classmethod
    def in_orders(cls, line: ArcLine, seeds: npt.ArrayLike, multipliers: npt.ArrayLike) -> Arc:
        """This line, with the values on its circle in the orders of these names."""
        names = tuple(np.array(part, dtype=np.int64).reshape(-1) for part in (seeds, multipliers))
        light = np.sort(line.order[line.heavy :])
        most = prime_above(light.size) - 1
        if names[0].size == 0 or names[0].min() < 0:
            raise InvalidInput("seeds", names[0], "give whole numbers from zero on")
        if names[1].shape != names[0].shape or not np.all((names[1] >= 1) & (names[1] <= most)):
            raise InvalidInput("multipliers", names[1], f"give one for each seed, from 1 to {most}")
        if light.size == 0:
            raise InvalidInput("owners", line.owners, "leave some values for the circle")
        orders = (circle_order(light, int(s), int(m)) for s, m in zip(*names, strict=True))
        lines = (replace(line, order=np.concatenate([line.owners, order])) for order in orders)
        return cls(tuple(lines), (names[0], names[1]))

    @property
    def line(self) -> ArcLine:
        """The first order."""
        return self.lines[0]

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.line.size

    @property
    def outputs(self) -> int | None:
        """How many reports there are; None for a pool, where they are not numbered without gaps."""
        return self.line.outputs if len(self.lines) == 1 else None

    @property
    def draws_per_report(self) -> int:
        """Random words a report takes, whatever the value."""
        return DRAWS + (len(self.lines) > 1)

    @cached_property
    def cells(self) -> ArcCells:
        """Where the reports are counted."""
        return ArcCells(self.lines)

    @property
    def matrix(self) -> Array:
        """The channel from values to the columns of a tally; raises `TooLarge` when huge.

        A cell is an average over its places, so this may leak less than the reports do: levels are measured
        on `leakage_matrix`.
        """
        return self.cells.matrix

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        require_writable(self.size, len(self.lines) * self.size, MEASURED)  # before the cells, which are more
        return self.cells.leakage_matrix

    def levels(self, prior: Known, secret: Secrets, proven: Certificate) -> Leakage:
        """The levels under every notion; the averages, MIL and MIP, are upper bounds."""
        found = super().levels(prior, secret, proven)
        return replace(found, bounds=found.bounds or ("MIL", "MIP"))

    @cached_property
    def _starts(self) -> Ints:
        """Where the segment of each value begins, a row for each order."""
        return np.stack([line.starts for line in self.lines])

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes; of several orders, the first word draws one."""
        m, last = self.line, len(self.lines) - 1
        order = (words[:, 0] & np.uint64(last)).astype(np.int64)
        begins, lengths = self._starts[order, codes], m.lengths[codes]
        t, moved = draw_places(words, begins, lengths, m.start, m.window, m.keep, m.bits, m.word)
        owner = np.searchsorted(m.edges[1 : m.heavy], t, side="right")
        reports[:] = (order << m.bits) + np.where(t < m.start, owner, m.heavy + moved)

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made."""
        inside = in_range(reports, len(self.lines) << self.line.bits)
        return inside & in_range(reports & (self.line.places - 1), self.line.outputs)

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """The tallies of all orders, side by side; see `arc.counting`."""
        return self.cells.tally(self.check_reports(reports))

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The same in floats, with every report counted as often as its weight says."""
        return self.cells.weigh(self.check_reports(reports), weights)

    def reports_in(self, counts: Counts) -> int:
        """The sum of the first row."""
        return int(counts[0].sum())

    def expected_counts(self, prior: Array, people: int) -> Array:
        """The averages of `accumulate`, for reports that are uniform within their cells."""
        return self.cells.expected_tally(people * self.cells.law(prior))

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """Proven bounds on the lifts, for LIP or LDP of the value itself."""
        weights = np.array(single_prior(prior, secret, notion, self.kind).weights, dtype=object)
        return worst_lifts([arc_lifts(line, weights) for line in self.lines])

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution.

        One order tells neighbours apart so badly that for large domains the answer is no: with 1,000 values and 10,000
        people a share would be known to ±2 at best.
        """
        if len(self.lines) == 1:
            return not self._large and identifiable(self.matrix)
        try:
            return bool(np.isfinite(self.inverse).all())
        except NotIdentifiable:
            return False

    @property
    def _large(self) -> bool:
        """Whether the channel of one order has too many entries to be inverted within a second or two."""
        return self.size * len(self.cells.base) > _INVERTED

    def evidence(self, counts: Counts) -> Evidence:
        """The counts of the columns with the channel: written out if it is small, else as two products."""
        seen = counts[0].astype(np.float64)
        small = self.size * seen.size <= SMALL
        return Evidence(seen, estimators.DenseChannel(self.matrix) if small else self.cells)

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior; for a pool at its prior, from the lifts and the information."""
        if len(self.lines) == 1 or not self.fits(prior):
            parts = estimators.split_prior(prior, len(self.cells.base))
            return estimators.cells_check(counts[0].astype(np.float64), self.cells.law(parts))
        m, N, parts = self.line, float(counts[0].sum()), estimators.split_prior(prior)
        length = m.lengths.astype(np.float64)
        length[m.order[m.heavy :]] = np.maximum(length[m.order[m.heavy :]], m.window)
        largest = m.keep_chance * np.maximum(m.places / length - 1, 1.0)
        spread = (parts > 0) @ ((np.diag(self.information) - 1) / largest**2)
        covariance = parts @ (self.information - 1) @ parts.T
        return estimators.score_check(
            parts @ (self.cells.lift_sums(counts) - N), covariance, parts.sum(axis=1), spread, N
        )

    def fits(self, prior: Array) -> bool:
        """Whether this is the prior of the layout, up to the rounding of its segments.

        Only then is a posterior linear in the place of the report within a cell.
        """
        m = self.line
        own, rounding = m.lengths / m.places, 1e-9 + (m.size + 1) / m.places
        return prior.shape == own.shape and bool(np.all(np.abs(prior - own) <= rounding))

    def answer(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None."""
        if method == "mmse" and self.fits(prior):
            sums = prior * self.cells.lift_sums(counts)
            return Moments(apply_rows(rows, sums), self.cells.posterior_variances(counts, prior, rows))
        if method != "mmse" and len(self.lines) > 1:
            linear = self._unbiased(counts, rows, population)
            if method != "mle":
                return linear
            evidence = self.evidence(counts)
            found = estimators.most_likely(evidence, prior, self.information)
            return estimators.constrained_moments(linear, found, float(evidence.counts.sum()), rows)
        if method != "mmse" and len(self.lines) == 1 and self._large:
            raise estimators.not_identifiable()
        columns = len(self.cells.base)
        if self.size**2 * columns > _MOST_WORK:
            raise TooLarge(
                f"the channel has {self.size:,} by {columns:,} entries: read reports with "
                "'mmse' under the plan's own prior, or a pool of orders with method='unbiased'"
            )
        return estimators.reports_moments(method, self.evidence(counts), prior, rows, population)

    def _unbiased(self, counts: Counts, rows: Rows, population: bool) -> Moments:
        """`J**-1` times the sum of the lifts of a pool.

        Its covariance is `N J**-1` where the prior is right. Where it is wrong, the noise of a value is scaled by how
        far its lifts were from one: `sum (r_x - 1)**2 / (N (J_xx - 1))`. That sum takes reports as uniform within their
        cells in all of its terms: with some as they really came, their chance offsets would be multiplied by
        `1 / P_x**2`.
        """
        mean = self.inverse @ self.cells.lift_sums(counts)
        first, second = self.cells.lift_moments(counts)
        moved = second - 2 * first + float(counts[0].sum())
        N = float(mean.sum())
        room = np.maximum(N, 0.0) * (np.diag(self.information) - 1)
        scale = np.sqrt(np.divide(np.maximum(moved, 0.0), room, out=np.zeros_like(room), where=room > 0))
        noise = N * estimators.diagonal_of(rows, scale[:, None] * self.inverse * scale)
        return Moments(
            apply_rows(rows, mean), np.maximum(noise - estimators.known_part(rows, mean, N, population), 0.0)
        )

    @cached_property
    def information(self) -> Array:
        """The Fisher information `J = E[r r']` of a report at the prior of the layout."""
        m, k = self.line, self.line.keep_chance
        shares, window, light = m.lengths / m.places, m.window / m.places, np.sort(m.order[m.heavy :])
        orders = np.searchsorted(light, np.stack([line.order[m.heavy :] for line in self.lines]))
        sums = np.zeros((light.size, light.size))
        kernels.add_overlaps(orders, shares[light], window, sums, work=orders.size * light.size)
        lower = np.tril(sums, -1)
        overlaps = (lower + lower.T + np.diag(np.diag(sums))) / len(self.lines)
        used = np.diag(1 / shares)
        used[np.ix_(light, light)] = overlaps / np.outer(shares[light] * window, shares[light] * window)
        return 1 - k**2 + k**2 * used

    @cached_property
    def inverse(self) -> Array:
        """The inverse of the information; refused where reports do not identify the distribution."""
        shares = self.line.lengths / self.line.places
        root = np.sqrt(shares)
        return estimators.invert_information(root[:, None] * self.information * root, shares)

    def variance(self) -> float:
        """N times the variance of the distribution learnt from N reports, summed over the values."""
        shares = self.line.lengths / self.line.places
        return float(np.trace(self.inverse) - shares @ shares)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person at the prior of the layout: the posterior variance of expected reports.

        Where the prior is right reports are uniform within their cells, so it is exact.
        """
        P = prior.probabilities
        if not self.fits(P) or query.kind in ("guess", "convex"):
            return None
        if not query.unbiased:
            variances = self.cells.posterior_variances(self.cells.law(P)[None], P, query.centred_rows(prior))
            return max(0.0, float(variances.sum()))
        learning = query.kind == "distribution" and len(self.lines) > 1
        return self.variance() if learning and self.size <= _QUICK else None

    def parameters(self) -> dict[str, Any]:
        """The line, and the values of the circle in order or the names of their orders, as JSON."""
        m = self.line
        circle = {"circle": m.order[m.heavy :].tolist()}
        if self.names is not None:
            circle = {"seeds": self.names[0].tolist(), "multipliers": self.names[1].tolist()}
        return {
            "bits": m.bits,
            "lengths": [str(n) for n in m.lengths.tolist()],
            "owners": m.owners.tolist(),
            **circle,
            "start": str(m.start),
            "window": str(m.window),
            "keep": str(m.keep),
        }

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Arc:
        """Read a mechanism from the parameters in its JSON document."""
        lengths = np.array([int(n) for n in parameters["lengths"]], dtype=np.int64)
        owners = np.array(parameters["owners"], dtype=np.int64)
        named = "seeds" in parameters
        light = np.setdiff1d(np.arange(lengths.size), owners) if named else parameters["circle"]
        order = np.concatenate([owners, np.array(light, dtype=np.int64)])
        start, window, keep, bits = (int(parameters[name]) for name in ("start", "window", "keep", "bits"))
        line = ArcLine(lengths, order, owners.size, start, window, keep, bits)
        return cls.in_orders(line, parameters["seeds"], parameters["multipliers"]) if named else cls((line,))

"""Leakage measured from samples, with confidence: what a sampler that can only be watched gives away.

A certificate is about a law written down in integers. An audit is about what comes out: draw reports for every
value, count them, and bound what the counts allow. It finds a broken sampler whoever wrote it, and it cannot
prove a good one: that is what certificates are for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput
from priorveil.mechanisms import Mechanism, Unary
from priorveil.mechanisms.randomness import as_source
from priorveil.mechanisms.reading import Counted
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Sampler = Callable[[Codes], npt.NDArray[Any]]  # from codes of values to reports
Cells = Callable[[npt.NDArray[Any]], Codes]  # from reports to their kinds

MOST_KINDS = 1 << 16  # of reports that are counted each
CELLS = 256  # kinds where reports are put together
_AT_ONCE = 1 << 18  # reports drawn at a time


@dataclass(frozen=True)
class Range:
    """A level lies between `low` and `high`."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.4f} to {self.high:.4f}"


@dataclass(frozen=True)
class Sampled:
    """What samples say of the levels: all of these ranges hold at once, with the stated confidence.

    `whole` is False where kinds of reports were put together; the samples then bound the levels from below only.
    """

    lip_lower: Range
    lip_upper: Range
    ldp: Range
    confidence: float
    samples: int
    whole: bool = True

    @property
    def lip(self) -> Range:
        """The larger side of both."""
        sides = self.lip_lower, self.lip_upper
        return Range(max(s.low for s in sides), max(s.high for s in sides))

    def refutes(self, budget: Budget) -> bool:
        """Whether the sampler breaks a LIP budget, beyond what chance explains."""
        return self.lip_lower.low > budget.lower or self.lip_upper.low > budget.upper


def sampled_leakage(
    counts: npt.ArrayLike, prior: Prior, confidence: float = 0.99, whole: bool = True
) -> Sampled:
    """Ranges for the levels of a channel of which `counts[x][y]` reports y of value x were seen.

    Every entry of the channel gets a Clopper-Pearson interval `L <= Q <= U` at `(1 - confidence) / (d K)`, so that
    all hold at once. The lift of x at y rises with its own entry and falls with the others, so it is at least
    `L_x / (P_x L_x + sum_{z != x} P_z U_z)`, and at most the same with L and U exchanged.

    >>> found = sampled_leakage([[750, 250], [250, 750]], Prior([0.5, 0.5]))
    >>> found.ldp.low < math.log(3) < found.ldp.high
    True
    """
    seen = _checked(counts, prior)
    if not 0 < confidence < 1:
        raise InvalidInput("confidence", confidence, "give a number between 0 and 1")
    low, high = _intervals(seen, (1 - confidence) / seen.size)
    P = prior.probabilities
    live = seen.sum(axis=0) > 0
    low, high = low[:, live], high[:, live]
    least = _lifts(low, high, P)
    most = _lifts(high, low, P)
    return Sampled(
        lip_lower=_range(-_log(most.min(axis=0)), -_log(least.min(axis=0)), whole),
        lip_upper=_range(_log(least.max(axis=0)), _log(most.max(axis=0)), whole),
        ldp=_range(
            _log(low.max(axis=0) / high.min(axis=0)), _log(high.max(axis=0)) - _log(low.min(axis=0)), whole
        ),
        confidence=confidence,
        samples=int(seen.sum()),
        whole=whole,
    )


def audit_plan(
    plan: Plan,
    samples: int = 100_000,
    confidence: float = 0.99,
    prior: Prior | None = None,
    rng: np.random.Generator | None = None,
) -> Sampled:
    """Run a plan's own sampler `samples` times for every value and measure what comes out, under its prior or another.

    Reports of too many kinds to count each (arcs, more than a few bits) are put together into `CELLS`: the levels of
    what is left can only be smaller.

    >>> from priorveil import Histogram, design
    >>> plan = design(Prior([0.5, 0.3, 0.2]), 1.0, Histogram())
    >>> audit_plan(plan, 20_000, rng=np.random.default_rng(1)).refutes(plan.budget)
    False
    """
    known = prior or plan.prior
    if not isinstance(known, Prior):
        raise InvalidInput("prior", known, "the plan is for a set of priors: say under which of them")
    source = as_source(rng)

    def sample(codes: Codes) -> npt.NDArray[Any]:
        return plan.mechanism.sample(codes, source)

    cells, kinds, whole = _kinds(plan.mechanism, sample)
    counts = counted(sample, plan.mechanism.size, samples, cells, kinds)
    return sampled_leakage(counts, known, confidence, whole)


def counted(sample: Sampler, values: int, samples: int, cells: Cells, kinds: int) -> Codes:
    """How often each kind of report is seen for each value, out of `samples`; `cells` says a report's kind."""
    if samples < 1:
        raise InvalidInput("samples", samples, "draw at least one report for each value")
    counts = np.zeros((values, kinds), dtype=np.int64)
    for x in range(values):
        for start in range(0, samples, _AT_ONCE):
            reports = sample(np.full(min(_AT_ONCE, samples - start), x))
            counts[x] += np.bincount(cells(reports), minlength=kinds)
    return counts


def _kinds(mechanism: Mechanism, sample: Sampler) -> tuple[Cells, int, bool]:
    """How reports are told apart: by themselves, by their first bits, or by where they fall among some others."""
    if isinstance(mechanism, Unary):
        bits = min(mechanism.size, CELLS.bit_length() - 1)
        return (
            lambda reports: (reports[:, 0] & np.uint64((1 << bits) - 1)).astype(np.int64),
            1 << bits,
            bits == mechanism.size,
        )
    if isinstance(mechanism, Counted) and mechanism.outputs <= MOST_KINDS:
        return lambda reports: reports.astype(np.int64), mechanism.outputs, True
    pilot = np.sort(sample(np.arange(_AT_ONCE) % mechanism.size))
    edges = np.unique(pilot[:: _AT_ONCE // CELLS][1:])
    return lambda reports: np.searchsorted(edges, reports, side="right"), len(edges) + 1, False


def _checked(counts: npt.ArrayLike, prior: Prior) -> Array:
    seen = np.asarray(counts, dtype=np.float64)
    if seen.ndim != 2 or len(seen) != len(prior):
        raise InvalidInput("counts", seen.shape, f"give a row of counts for each of the {len(prior)} values")
    wrong = ~((seen >= 0) & (seen == np.floor(seen)) & np.isfinite(seen))
    if wrong.any():
        raise InvalidInput("counts", float(seen[wrong][0]), "counts are whole numbers from 0 on")
    if not seen.sum(axis=1).all():
        missing = prior.labels[int(seen.sum(axis=1).argmin())]
        raise InvalidInput("counts", missing, "no reports of this value: every value needs some")
    return seen


def _intervals(seen: Array, alpha: float) -> tuple[Array, Array]:
    """Clopper and Pearson's bounds on the probability behind each count, of its row's total."""
    from scipy.special import betaincinv  # imported when used: it is slow to load

    rest = seen.sum(axis=1, keepdims=True) - seen
    with np.errstate(invalid="ignore"):
        low = np.where(seen > 0, betaincinv(np.maximum(seen, 1), rest + 1, alpha / 2), 0.0)
        high = np.where(rest > 0, betaincinv(seen + 1, np.maximum(rest, 1), 1 - alpha / 2), 1.0)
    return low, high


def _lifts(own: Array, others: Array, P: Array) -> Array:
    """The lift of each value at each report, with one bound for its own entry and another for the others."""
    rest = P @ others - P[:, None] * others
    return own / np.where(own > 0, P[:, None] * own + rest, 1.0)


def _range(low: Array, high: Array, whole: bool) -> Range:
    """The largest of some levels; none is below zero."""
    return Range(max(0.0, float(low.max())), max(0.0, float(high.max())) if whole else math.inf)


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)

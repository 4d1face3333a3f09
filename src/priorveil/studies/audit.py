"""Leakage measured from samples, with confidence, for a sampler that can only be observed from outside.

A certificate is about a law that is written down in integers. An audit is about what comes out: it draws reports for
every value, counts them, and bounds the levels that fit the counts. It finds a broken sampler in any implementation,
but it cannot prove that a sampler is right: certificates do that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.errors import InvalidInput
from priorveil.mechanisms import Mechanism
from priorveil.mechanisms.randomness import as_source
from priorveil.plans import Plan
from priorveil.priors import Budget, Label, Prior
from priorveil.priors.domain import Codes

Sampler = Callable[[Codes], npt.NDArray[Any]]  # from codes of values to reports
Classifier = Callable[[npt.NDArray[Any]], Codes]  # from reports to the numbers of their classes

_MOST_REPORTS = 1 << 16  # different reports that are counted one by one
_CLASSES = 256  # classes of reports, if they are more: more classes find smaller leaks, but need more samples
_MOST_COUNTS = 1 << 22  # counts of classes for all values together
_BATCH = 1 << 18  # reports drawn at a time


@dataclass(frozen=True)
class LevelRange:
    """A level that lies between `low` and `high`."""

    low: float
    high: float


@dataclass(frozen=True)
class SampledLeakage:
    """Ranges for the levels, from samples. All of them hold at once, with the stated confidence.

    `has_upper_bounds` is False where different reports were counted together. The samples then give lower bounds only.
    """

    lip_lower: LevelRange
    lip_upper: LevelRange
    ldp: LevelRange
    confidence: float
    samples: int
    has_upper_bounds: bool = True

    @property
    def lip(self) -> LevelRange:
        """The larger of the two sides."""
        sides = self.lip_lower, self.lip_upper
        return LevelRange(max(s.low for s in sides), max(s.high for s in sides))

    def refutes(self, budget: Budget) -> bool:
        """Whether the samples show, with the stated confidence, that the sampler breaks a LIP budget."""
        return self.lip_lower.low > budget.lower or self.lip_upper.low > budget.upper


def sampled_leakage(
    counts: npt.ArrayLike, prior: Prior, confidence: float = 0.99, has_upper_bounds: bool = True
) -> SampledLeakage:
    """Ranges for the levels of a channel, from `counts[x][y]`: how often value `x` gave report `y`.

    Every entry of the channel gets a Clopper-Pearson interval `L <= Q <= U` at `(1 - confidence) / (d K)`, so that
    all hold at once. The lift of x at y rises with its own entry and falls with the others, so it is at least
    `L_x / (P_x L_x + sum_{z != x} P_z U_z)`, and at most the same with L and U exchanged.

    >>> levels = sampled_leakage([[750, 250], [250, 750]], Prior([0.5, 0.5]))
    >>> levels.ldp.low < math.log(3) < levels.ldp.high
    True
    """
    table = _count_table(counts, prior)
    if not 0 < confidence < 1:
        raise InvalidInput("confidence", confidence, "give a number between 0 and 1")
    occurs = table.sum(axis=0) > 0
    low, high = (ends[:, occurs] for ends in _intervals(table, (1 - confidence) / table.size))
    least, most = _lifts(low, high, prior.probabilities), _lifts(high, low, prior.probabilities)
    with np.errstate(divide="ignore"):
        lower = _range(-np.log(most.min(axis=0)), -np.log(least.min(axis=0)), has_upper_bounds)
        upper = _range(np.log(least.max(axis=0)), np.log(most.max(axis=0)), has_upper_bounds)
        smallest = np.log(low.max(axis=0) / high.min(axis=0))
        ldp = _range(smallest, np.log(high.max(axis=0)) - np.log(low.min(axis=0)), has_upper_bounds)
    return SampledLeakage(lower, upper, ldp, confidence, int(table.sum()), has_upper_bounds)


def audit_plan(
    plan: Plan,
    samples: int = 100_000,
    confidence: float = 0.99,
    prior: Prior | None = None,
    rng: np.random.Generator | None = None,
) -> SampledLeakage:
    """Run a plan's own sampler `samples` times for every value and measure the leakage, under its prior or another.

    Where there are too many different reports (arcs, more than a few bits) they are counted in 256 classes. This can
    only lower the levels.

    >>> from priorveil import Histogram, design
    >>> plan = design(Prior([0.5, 0.3, 0.2]), 1.0, Histogram())
    >>> audit_plan(plan, 20_000, rng=np.random.default_rng(1)).refutes(plan.budget)
    False
    """
    one_prior = prior or plan.prior
    if not isinstance(one_prior, Prior):
        raise InvalidInput("prior", one_prior, "the plan is for a set of priors: give one of them")
    sample = partial(plan.mechanism.sample, source=as_source(rng))
    classify, classes, has_upper_bounds = _classifier(plan.mechanism, sample)
    counts = count_reports(sample, plan.mechanism.size, samples, classify, classes)
    return sampled_leakage(counts, one_prior, confidence, has_upper_bounds)


def count_reports(sample: Sampler, values: int, samples: int, classify: Classifier, classes: int) -> Codes:
    """How often each class of reports comes for each value, out of `samples`."""
    if samples < 1:
        raise InvalidInput("samples", samples, "draw at least one report for each value")
    counts = np.zeros((values, classes), dtype=np.int64)
    for x in range(values):
        for start in range(0, samples, _BATCH):
            reports = sample(np.full(min(_BATCH, samples - start), x))
            counts[x] += np.bincount(classify(reports), minlength=classes)
    return counts


def _classifier(mechanism: Mechanism, sample: Sampler) -> tuple[Classifier, int, bool]:
    """A function from reports to classes, how many there are, and whether each holds one report only.

    A class is a report, the first bits of a report, or an interval between quantiles of a pilot sample.
    """
    most = max(2, min(_CLASSES, _MOST_COUNTS // mechanism.size))
    if mechanism.width:
        bits = min(mechanism.size, most.bit_length() - 1)
        mask = np.uint64((1 << bits) - 1)
        return lambda reports: (reports[:, 0] & mask).astype(np.int64), 1 << bits, bits == mechanism.size
    if mechanism.outputs and mechanism.outputs <= min(_MOST_REPORTS, _MOST_COUNTS // mechanism.size):
        return lambda reports: reports.astype(np.int64), mechanism.outputs, True
    pilot = np.sort(sample(np.arange(_BATCH) % mechanism.size))
    edges = np.unique(pilot[:: _BATCH // most][1:])
    return lambda reports: np.searchsorted(edges, reports, side="right"), len(edges) + 1, False


def _count_table(counts: npt.ArrayLike, prior: Prior) -> Array:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(prior):
        raise InvalidInput("counts", table.shape, f"give a row of counts for each of the {len(prior)} values")
    is_no_count = ~((table >= 0) & (table == np.floor(table)) & np.isfinite(table))
    if is_no_count.any():
        raise InvalidInput(
            "counts", float(table[is_no_count][0]), "give whole numbers, none of them negative"
        )
    if not table.sum(axis=1).all():
        missing = prior.labels[int(table.sum(axis=1).argmin())]
        raise InvalidInput("counts", missing, "no reports of this value: every value needs some")
    return table


def _intervals(counts: Array, alpha: float) -> tuple[Array, Array]:
    """Clopper and Pearson's bounds on the probability behind each count, out of the total of its row."""
    from scipy.special import betaincinv  # imported here because it is slow to load

    rest = counts.sum(axis=1, keepdims=True) - counts
    with np.errstate(invalid="ignore"):
        low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), rest + 1, alpha / 2), 0.0)
        high = np.where(rest > 0, betaincinv(counts + 1, np.maximum(rest, 1), 1 - alpha / 2), 1.0)
    return low, high


def _lifts(own: Array, others: Array, P: Array) -> Array:
    """The lift of each value at each report, with one bound for its own entry and another for the others."""
    rest = P @ others - P[:, None] * others
    return own / np.where(own > 0, P[:, None] * own + rest, 1.0)


def _range(low: Array, high: Array, has_upper_bounds: bool) -> LevelRange:
    """The range of the largest of several levels; no level is below zero."""
    largest = max(0.0, float(high.max())) if has_upper_bounds else math.inf
    return LevelRange(max(0.0, float(low.max())), largest)


def observed_leakage(
    values: Sequence[Label], reports: Sequence[Hashable], prior: Prior, confidence: float = 0.99
) -> SampledLeakage:
    """Ranges for the levels, from a list of observed reports and the values that they were made from.

    >>> observed_leakage(["a", "b"] * 500, [0, 1] * 500, Prior({"a": 0.5, "b": 0.5})).lip.low > 0.5
    True
    """
    rows = {label: i for i, label in enumerate(prior.labels)}
    columns = {report: i for i, report in enumerate(dict.fromkeys(reports))}
    counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(counts, ([rows[value] for value in values], [columns[report] for report in reports]), 1)
    return sampled_leakage(counts, prior, confidence)

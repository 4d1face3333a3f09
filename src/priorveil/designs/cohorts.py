"""Cohorts: many plans at once, each with its own prior and its own budget, and one estimate over all.

In the paper every person has a prior and an epsilon of their own. `Cohorts` designs the arc mechanism for all
of them in closed form, without a loop in Python; where every value is likely enough for its budget that is
Theorem 3 of the paper, which is optimal. A row may be one person, or a cohort of people who share a prior and
a budget.

Where a few cohorts each have a plan from `design`, `priorveil.reading.combination.combine_estimates` adds their
estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, as_matrix
from priorveil.designs import arc_design
from priorveil.designs.plan_assembly import mechanism_plan
from priorveil.designs.problem import DesignProblem
from priorveil.designs.tolerances import ROUNDING
from priorveil.errors import NOT_SHOWN, CertificateError, ForeignReport, InvalidInput, InvalidPrior, plural
from priorveil.information import histogram_bound
from priorveil.mechanisms.arc.arc_batch import posteriors, row_levels, sample_batch
from priorveil.mechanisms.arc.line import DRAWS
from priorveil.mechanisms.interface import FROM_PRIVATIZE, integer_column, report_column
from priorveil.mechanisms.randomness import Source, as_source, word_blocks
from priorveil.notes import Note
from priorveil.notions import LIP
from priorveil.plans import Plan
from priorveil.priors import Budget, Label, Prior
from priorveil.priors.prior import LabelsOrDomain
from priorveil.queries import Query
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.prior_check import PriorCheck, mean_check
from priorveil.reading.rounding import most_by_correlation, most_by_steps
from priorveil.reading.tally import numbers_per_report
from priorveil.reading.tally_reading import ASSUMES, WEIGHTED

# Above rows x values x values, what rounding adds is bounded more coarsely, to stay quick.
_MOST_STEPS = 1 << 18


class Cohorts:
    """A certified arc mechanism for every row of `priors`: for one person, or for people who share a row.

    Arguments: `priors` (K, d), a distribution in each row; `epsilon`, a number or a `Budget` for everyone, or
    one number for each row (with zero, a person's report says nothing and counts as their prior);
    `query`, a `Histogram` or a `Sum`, whose estimates lean on the priors; `labels`, the names of the d values.

    `levels` are bounds, an entry for each row; a row that would break its budget is refused. They are worked
    out in floats and rest on an error analysis: every step is rounded up by a stated slack
    (`mechanisms.arc.arc_batch`). `plan(row)` is certified in exact arithmetic, as any plan is.

    `expected_mse`, `lower_bound` and `no_report` are per person, an entry for each row.

    >>> import priorveil as pv
    >>> crowd = Cohorts([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], epsilon=[1.0, 2.0], query=pv.Histogram())
    >>> (crowd.levels.lip <= [1.0, 2.0]).tolist(), crowd.privatize([0, 2]).shape
    ([True, True], (2,))
    """

    def __init__(
        self,
        priors: npt.ArrayLike,
        epsilon: float | Budget | npt.ArrayLike,
        query: Query,
        labels: LabelsOrDomain = None,
    ) -> None:
        self.priors = P = _valid_priors(priors)
        self.query = query
        self.domain = Prior(P[0], labels).domain
        if query.unbiased or not (query.asks_all_counts or query.takes_offsets):
            raise InvalidInput("query", query, "cohorts are designed for a Histogram or a Sum")
        query.require_fits(Prior(P[0]))
        rows = query.rows(Prior(P[0]))
        self._scores = None if rows is None else rows[0]
        self.lower, self.upper = _sides(epsilon, len(P))
        self.lines = arc_design.design_batch(P, self.lower, self.upper, self._scores)
        self.levels = row_levels(self.lines, P)
        broken = np.flatnonzero((self.levels.lip_lower > self.lower) | (self.levels.lip_upper > self.upper))
        if broken.size:
            row = int(broken[0])
            message = f"row {row} leaks {self.levels.lip[row]:.6g}, more than its budget"
            raise CertificateError(message, breach=row)

    def __len__(self) -> int:
        return len(self.priors)

    def __repr__(self) -> str:
        lip, size = self.levels.lip, f"{plural(len(self), 'row')} of {len(self.labels)} values"
        mean = self.expected_mse.mean()
        return f"Cohorts({size}, LIP {lip.min():.4g} to {lip.max():.4g}, mean error {mean:.4g})"

    @cached_property
    def expected_mse(self) -> Array:
        """The expected squared error per person of each row, of the integers that are sampled.

        For a sum of numbers that are rounded to a grid it includes the most that rounding can add.
        """
        return self._errors_of_values + self._rounding

    @cached_property
    def _errors_of_values(self) -> Array:
        """The errors for values as they are reported, after rounding to a grid."""
        return arc_design.expected_errors(self.lines, self.priors, self._scores)

    @cached_property
    def _rounding(self) -> Array:
        """The most that rounding to a grid adds to the error per person of each row."""
        a, P = self._scores, self.priors
        if a is None or not self.domain.rounds:
            return np.zeros(len(P))
        explained = np.maximum(self.no_report - self._errors_of_values, 0.0)
        if P.size * len(a) > _MOST_STEPS:
            return most_by_correlation(self.domain, a[None], explained)
        unit = np.ptp(a) or 1.0
        means = np.empty_like(P)  # the mean of posterior means, for people with each value
        for value, indicator in enumerate(unit * np.eye(len(a))):
            alone, both = (self._explained_variance(scores) for scores in (indicator, a + indicator))
            means[:, value] = (both - alone - explained) / (2 * unit * P[:, value])
        return most_by_steps(self.domain, a[None], means, explained)

    def _explained_variance(self, scores: Array) -> Array:
        """The variance of the posterior mean of these scores, in each row."""
        variance = (self.priors * arc_design.centre_values(self.priors, scores) ** 2).sum(axis=1)
        return np.asarray(variance - arc_design.expected_errors(self.lines, self.priors, scores))

    @cached_property
    def no_report(self) -> Array:
        """The error of each row's prior alone."""
        if self._scores is None:
            return np.asarray(1 - (self.priors**2).sum(axis=1))
        return np.asarray(
            (self.priors * arc_design.centre_values(self.priors, self._scores) ** 2).sum(axis=1)
        )

    @cached_property
    def lower_bound(self) -> Array:
        """Errors that no channel within each row's budget goes below, as in `Query.closed_form_bound`."""
        lo = np.exp(-self.lower)
        if self._scores is not None:
            return np.asarray(self.no_report * (1 - (1 - lo) ** 2))
        own = self.priors * (1 - self.priors)
        return np.maximum(0.0, histogram_bound(own, self.priors, lo[:, None], self.upper[:, None]))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values."""
        return self.domain.labels

    # -- run -----------------------------------------------------------------------------------------------

    def privatize(
        self,
        values: Any,
        rng: np.random.Generator | Source | None = None,
        rows: npt.ArrayLike | None = None,
    ) -> Ints:
        """One report for each value; `rows` says to which row each belongs (by default value i to row i)."""
        source = as_source(rng)
        codes, _ = self.domain.encode_or_refuse(values, source.words)
        row_of_report = self._row_of(rows, len(codes))
        reports = np.empty(len(codes), dtype=np.int64)
        for part, words in word_blocks(source, len(codes), DRAWS):
            reports[part] = sample_batch(self.lines, row_of_report[part], codes[part], words)
        return reports

    def plan(self, row: int) -> Plan:
        """The plan of one row, certified in exact arithmetic: for a device. It samples as the row does.

        Raises `CertificateError` if the exact certificate does not keep the row's budget.
        """
        if not 0 <= row < len(self):
            raise InvalidInput("row", row, f"rows are 0 to {len(self) - 1}")
        budget = Budget(float(self.lower[row]), float(self.upper[row]))
        problem = DesignProblem(Prior(self.priors[row], self.domain), budget, self.query, None, LIP())
        why = "arcs on a circle, designed together with the plans of others"
        try:
            expected = float(self._errors_of_values[row])
            return mechanism_plan(problem, self.lines.arc(row), expected, "arc", why)
        except CertificateError as error:
            raise CertificateError(f"row {row}: {error.message}", breach=row) from error

    # -- read ----------------------------------------------------------------------------------------------

    def estimate(
        self,
        reports: npt.ArrayLike,
        rows: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        offsets: npt.ArrayLike | None = None,
        method: EstimateMethod = "auto",
    ) -> Estimate:
        """The histogram, or the sum of `c_i a(x_i) + b_i`, over everybody: posterior means, added up (mmse).

        `weights` and `offsets`, one for each person, are the paper's `c_i` and `b_i`; with weights a histogram
        adds up the weights of the people who have each value. The variance is that of the posteriors. The prior
        check asks whether posteriors are, on average, the priors. Parts can be read one by one and put together
        by `priorveil.reading.combination.combine_estimates`.

        A `method` by name (mmse, unbiased or mle) reads the reports of each row by the plan of that row. This takes
        longer, and is meant for up to some thousand rows. The answer keeps its covariance, so contrasts, ratios and
        the like can be read from it.
        """
        column = report_column(reports)
        row_of_report = self._row_of(rows, len(column))
        foreign = np.flatnonzero((column < 0) | (column >= self.lines.outputs[row_of_report]))
        if foreign.size:
            at = int(foreign[0])
            most = int(self.lines.outputs[row_of_report[at]]) - 1
            advice = f"row {row_of_report[at]} reports 0 to {most}; {FROM_PRIVATIZE}"
            raise ForeignReport(f"reports[{at}]", NOT_SHOWN, advice)
        if offsets is not None and not self.query.takes_offsets:
            raise InvalidInput("offsets", self.query.kind, "offsets belong to a Sum")
        everyone = np.ones(len(column), dtype=bool)
        c = numbers_per_report("weights", 1.0 if weights is None else weights, everyone)
        b = numbers_per_report("offsets", 0.0 if offsets is None else offsets, everyone)
        if method != "auto":
            numbers = (None if weights is None else c, None if offsets is None else b)
            return self._by_row(column, row_of_report, numbers, method)
        origin = 0.0 if self._scores is None else float(self._scores.mean())
        a = None if self._scores is None else self._scores - origin
        posterior_excess = np.zeros(len(self.labels))
        values, variance = np.zeros((2, len(posterior_excess) if a is None else 1))
        for part in arc_design.row_slices(len(column), len(self.labels)):
            posterior, w = posteriors(self.lines, self.priors, row_of_report[part], column[part]), c[part]
            posterior_excess += (posterior - self.priors[row_of_report[part]]).sum(axis=0)
            powers = None if a is None else np.stack([a, a**2])[:, :, None]
            means, squares = (posterior, posterior) if powers is None else posterior @ powers
            values += w @ (means + origin)
            rounding = self._rounding[row_of_report[part]][:, None]
            variance += w**2 @ (np.maximum(squares - means**2, 0.0) + rounding)
        check = self._mean_check(posterior_excess, row_of_report)
        return Estimate(
            values=values + float(b.sum()),
            std_error=np.sqrt(variance),
            method="mmse",
            assumes=((ASSUMES if weights is None else WEIGHTED)["mmse"],),
            reports=len(column),
            labels=self.query.statistic_labels(self.labels),
            prior_check=check and check.p_value,
            unseen_changes=Note("unseenChangesByRow") if check and len(self.labels) > 2 else None,
            total=None if weights is None else float(c.sum()),
            histogram=a is None,
            leans_on_prior=True,
        )

    def _by_row(
        self,
        reports: Ints,
        row_of_report: Ints,
        weights_and_offsets: Sequence[Array | None],
        method: EstimateMethod,
    ) -> Estimate:
        """The estimates of the rows, added up."""
        parts = []
        for row in np.unique(row_of_report).tolist() or [0]:
            plan, in_row = self.plan(row), row_of_report == row
            weights, offsets = (None if each is None else each[in_row] for each in weights_and_offsets)
            parts.append(plan.estimate(plan.tally(reports[in_row], weights, offsets), method))
        return combine_estimates(parts)

    def _mean_check(self, posterior_excess: Array, row_of_report: Ints) -> PriorCheck | None:
        """The test that posteriors average to the priors.

        The variance is the one that each row's law implies.
        """
        people = np.bincount(row_of_report, minlength=len(self))
        used = np.flatnonzero(people)
        variance, rise, fall, masses = np.zeros((4, len(self.labels)))
        for part in arc_design.row_slices(len(used), len(self.labels)):
            rows = used[part]
            lines, P, n = self.lines.rows(rows), self.priors[rows], people[rows]
            variance += n @ (np.maximum(arc_design.posterior_step_variances(lines, P), 0.0) + ROUNDING * P**2)
            up, down = arc_design.posterior_steps(lines, P)
            rise, fall = np.maximum(rise, up.max(axis=0)), np.maximum(fall, down.max(axis=0))
            masses += n @ P
        beyond = np.sign(posterior_excess) * np.maximum(np.abs(posterior_excess) - ROUNDING * masses, 0.0)
        return mean_check(beyond, variance, rise, fall)

    def _row_of(self, rows: npt.ArrayLike | None, people: int) -> Ints:
        row_of_report = np.arange(len(self)) if rows is None else integer_column("rows", rows)
        if len(row_of_report) != people:
            advice = "give the row of each person with rows="
            raise InvalidInput(
                "rows", NOT_SHOWN, f"{len(row_of_report)} entries for {people} people; {advice}"
            )
        if people and not (row_of_report.min() >= 0 and row_of_report.max() < len(self)):
            raise InvalidInput(
                "rows", (int(row_of_report.min()), int(row_of_report.max())), f"rows are 0 to {len(self) - 1}"
            )
        return row_of_report


def _valid_priors(priors: npt.ArrayLike) -> Array:
    """The priors as a read-only matrix; an error names the first row that is not a distribution."""
    P = as_matrix("priors", priors, InvalidPrior, "cohort and a column for each value")
    wrong = ~(np.isfinite(P) & (P > 0)).all(axis=1)
    wrong |= np.abs(P.sum(axis=1) - 1) > (64 + P.shape[1]) * np.finfo(float).eps
    if wrong.any():
        row = int(np.argmax(wrong))
        advice = "a row needs positive probabilities that add up to one; smooth zeros or leave the value out"
        raise InvalidPrior(f"priors[{row}]", P[row].tolist(), advice)
    return P


def _sides(epsilon: float | Budget | npt.ArrayLike, rows: int) -> tuple[Array, Array]:
    """Both sides of each row's budget."""
    if isinstance(epsilon, Budget):
        return np.full(rows, epsilon.lower), np.full(rows, epsilon.upper)
    try:
        levels = np.broadcast_to(np.array(epsilon, dtype=np.float64), (rows,))
    except (TypeError, ValueError) as error:
        advice = f"give a number, a Budget, or {rows} numbers, one for each row"
        raise InvalidInput("epsilon", epsilon, advice) from error
    if not (np.isfinite(levels) & (levels >= 0)).all():
        raise InvalidInput("epsilon", epsilon, "give finite numbers, zero or more")
    return levels, levels

"""Linear queries: the statistics `W @ counts`, with a row of `W` for each statistic and a column for each value.

A linear query can be estimated in two ways. The prior-based estimate uses the prior in the answer, and its error is a
mean square error. The unbiased estimate uses the prior only to shape the noise, and its error is a variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, centre_rows, has_labels
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, plural, short_repr
from priorveil.information import histogram_bound, variance, variance_bound
from priorveil.priors import Budget, Domain, Label, Prior, PriorSet
from priorveil.priors.domain import NAME_ATTRIBUTES, as_label, label_from_json, label_to_json
from priorveil.priors.label_texts import first_labels, label_text
from priorveil.priors.number_files import file_errors, read_statistics
from priorveil.priors.prior import Probabilities
from priorveil.queries.matrices import (
    MATRICES,
    AverageInfluence,
    Cumulative,
    Identity,
    LogOdds,
    Margins,
    Matrix,
    Ranges,
    matrix_of,
    require_size,
)
from priorveil.queries.query import Criterion, Query, complement


class Linear(Query):
    """The statistics `W @ counts`. The error is summed over the statistics.

    Arguments: `matrix`, an array with one row for each statistic and one column for each value, or a `Matrix`;
    `names`, what the statistics are called; `unbiased`, whether the reports alone decide the answer.

    The error of a prior-based query is the mean square error, with `phi(r) = |W D r|**2` and `D = diag(P)`. The error
    of an unbiased one is `N` times the variance of the best unbiased estimator from `N` reports,
    `tr(W V S**-1 V' W')` with `S` the Fisher information in the directions `V` that sum to zero; it is infinite where
    reports do not determine the statistics.

    >>> Linear([[1, 0, 0], [1, 1, 0]]).no_report(Prior([0.2, 0.3, 0.5])).__round__(6)
    0.41
    """

    linear = True
    # What errors call the numbers, and what belongs to one value.
    _argument, _column = "matrix", "column"

    def __init__(
        self, matrix: npt.ArrayLike | Matrix, names: Iterable[Label] | None = None, unbiased: bool = False
    ) -> None:
        self.matrix = matrix if isinstance(matrix, Matrix) else matrix_of(matrix)
        self.names = None if names is None else tuple(map(as_label, names))
        if not isinstance(unbiased, bool | np.bool_):
            raise InvalidInput("unbiased", unbiased, "give True or False")
        self.unbiased = bool(unbiased)
        if self.names is not None:
            rows = len(self.names) if self.matrix.shape is None else self.matrix.shape[0]
            if not len(self.names) == len(set(self.names)) == rows:
                advice = f"give {plural(rows, 'different name')}, one for each row"
                raise InvalidInput("names", self.names, advice)
        self.asks_all_counts, self.counts_people = self.matrix.is_identity, self.matrix.counts_people
        self.takes_offsets = self.matrix.takes_offsets
        self.is_sum = self.takes_offsets and self.names is None
        self.statistic_name, self.number_by_group = self.matrix.statistic_name, self.matrix.number_by_group
        self.criterion = Criterion.VARIANCE if self.unbiased else Criterion.SQUARED_ERROR
        if self.unbiased:
            summed = "values" if self.asks_all_counts else "statistics"
            self.error_unit = f"variance per person, summed over the {summed}"

    @classmethod
    def from_file(cls, path: str | Path, prior: Prior, unbiased: bool = False) -> Linear:
        """The statistics in a CSV or JSON file: a row for each statistic, a column for each value of the prior.

        CSV: with or without a header that names the values, and with or without a first column that names the
        statistics. JSON: a list of rows. A broken file raises `InvalidFile`, which has the line.
        """
        rows, names = read_statistics(Path(path), prior.labels)
        with file_errors(path):
            return Linear(rows, names, unbiased)

    @classmethod
    def cumulative(cls, prior: Prior | PriorSet | Probabilities, unbiased: bool = False) -> Linear:
        """How many people have each value or one before it, in the order of the prior's labels.

        >>> Linear.cumulative(Prior.uniform(["a", "b"])).names
        ('up to a', 'up to b')
        >>> Linear.cumulative(Prior.cells([0, 18, 65], [0.2, 0.8])).names
        ('below 18', 'up to 65')
        """
        prior = _one_prior(prior)
        query = Linear(Cumulative(len(prior)), prior.domain.cumulative_names(), unbiased)
        query.require_fits(prior)
        return query

    @classmethod
    def ranges(cls, prior: Prior | PriorSet | Probabilities, unbiased: bool = False) -> Linear:
        """How many people have a value from one to another, for all pairs, in the order of the prior's labels.

        >>> Linear.ranges(Prior.uniform(["a", "b"])).names
        ('a', 'a to b', 'b')
        """
        prior = _one_prior(prior)
        texts = [label_text(label) for label in prior.labels]
        pairs = zip(*np.triu_indices(len(prior)), strict=True)
        names = [texts[a] if a == b else f"{texts[a]} to {texts[b]}" for a, b in pairs]
        query = Linear(Ranges(len(prior)), names, unbiased)
        query.require_fits(prior)
        return query

    @classmethod
    def margins(
        cls,
        prior: Prior | PriorSet | Probabilities,
        attributes: Iterable[str | Sequence[str]],
        unbiased: bool = False,
    ) -> Linear:
        """Margins of several attributes: how many people have each combination of the levels of some of them.

        `attributes` are the names of the attributes of each margin.

        >>> prior = Prior.joint({("a", 1): 0.2, ("a", 2): 0.3, ("b", 1): 0.1, ("b", 2): 0.4}, names=("letter", "digit"))
        >>> Linear.margins(prior, ["letter", ("letter", "digit")]).names[1:4]
        ('letter=b', 'letter=a, digit=1', 'letter=a, digit=2')
        """
        prior = _one_prior(prior)
        if prior.names is None:
            raise InvalidInput("prior", prior, "it has no names of attributes", NAME_ATTRIBUTES)
        margins = [attributes] if isinstance(attributes, str) else attributes
        tables = [(margin,) if isinstance(margin, str) else tuple(margin) for margin in margins]
        names: list[str] = []
        cells: list[tuple[int, ...]] = []
        for table in tables:
            levels, rows = prior.domain.margin(table)
            names += [", ".join(map("{}={}".format, table, cell)) for cell in levels]
            cells.append(tuple(rows.argmax(axis=0).tolist()))
        if not tables or len(set(names)) < len(names):
            raise InvalidInput("attributes", attributes, "give at least one margin, and each only once")
        return Linear(Margins(tuple(tables), tuple(cells)), names, unbiased)

    @classmethod
    def averages(
        cls, prior: Prior | PriorSet | Probabilities, number: str, by: str | Sequence[str] | None = None
    ) -> Linear:
        """The average of an attribute that is a number, by the levels of other attributes, from reports alone.

        `by` names these attributes: by default all others.

        The rows are those of `AverageInfluence`: a plan for them has the least variance of the averages if the prior is
        right, and reads them without bias for large numbers of people whatever the prior. `Estimate.averages` has the
        answer; `Estimate.values` are the sums of these rows over people, and no averages. For several cohorts make one
        query from one prior, and design the plan of every cohort for it.

        >>> cells = {("young", 0): 0.2, ("young", 40): 0.2, ("old", 0): 0.5, ("old", 40): 0.1}
        >>> prior = Prior.joint(cells, ("age", "overtime"), grids=("overtime",))
        >>> Linear.averages(prior, "overtime", by="age").title(prior)
        'mean overtime by age'
        """
        prior = _one_prior(prior)
        numbers = prior.domain.numbers(number)
        others = [name for name in prior.domain.names or () if name != number] if by is None else by
        names = (others,) if isinstance(others, str) else tuple(others)
        levels, members = group_rows(prior.domain, names)
        if np.ptp(numbers) == 0:
            raise InvalidInput("number", number, "it is the same for all values: its averages are known")
        shares = members @ prior.probabilities
        means = members @ (prior.probabilities * numbers) / shares
        groups, floats = members.argmax(axis=0).tolist(), (x.tolist() for x in (numbers, means, shares))
        matrix = AverageInfluence(number, names, tuple(groups), *map(tuple, floats))
        texts = [", ".join(map("{}={}".format, names, map(label_text, cell))) for cell in levels]
        return Linear(matrix, [*texts, *(f"people with {text}" for text in texts)], unbiased=True)

    @classmethod
    def log_odds(cls, prior: Prior | PriorSet | Probabilities, baseline: Label | None = None) -> Linear:
        """The log-odds of each value against a baseline, by default the last value: for coefficients of a regression.

        The rows are `e_j / P_j - e_b / P_b`, the derivative of the log-odds at the prior. With weak covariates the
        coefficients of a logit regression on reports have the least variance under a plan for these rows.

        >>> query = Linear.log_odds(Prior({"yes": 0.2, "perhaps": 0.1, "no": 0.7}))
        >>> query.names, query.matrix.rows.round(3).tolist()
        (('yes against no', 'perhaps against no'), [[5.0, 0.0, -1.429], [0.0, 10.0, -1.429]])
        """
        prior = _one_prior(prior)
        if len(prior) < 2:
            raise InvalidInput("prior", prior, "log-odds need two values or more")
        chosen = prior.labels[-1] if baseline is None else baseline
        if chosen not in prior.labels:
            raise InvalidInput("baseline", baseline, f"give one of the values: {first_labels(prior.labels)}")
        matrix = LogOdds(tuple(prior.probabilities.tolist()), prior.labels.index(chosen))
        names = [f"{label_text(x)} against {label_text(chosen)}" for x in prior.labels if x != chosen]
        return Linear(matrix, names, unbiased=True)

    @property
    def kind(self) -> str:
        """The name of the query for people: histogram or distribution, sum for one row, or linear."""
        if self.asks_all_counts:
            return "distribution" if self.unbiased else "histogram"
        return "sum" if self.takes_offsets else "linear"

    def title(self, prior: Prior) -> str:
        """What is asked for, in a few words.

        >>> prior = Prior.joint({("a", 1): 0.2, ("a", 2): 0.3, ("b", 1): 0.1, ("b", 2): 0.4}, names=("letter", "digit"))
        >>> Linear.margins(prior, ["letter", ("letter", "digit")]).title(prior)
        'margins (letter, letter x digit)'
        >>> Linear.cumulative(prior).title(prior), Sum([0, 1, 1, 2]).title(prior), Linear(np.eye(4)[:2]).title(prior)
        ('cumulative shares', 'sum', '2 statistics')
        >>> grid = Prior.grid([0, 10, 30], [0.3, 0.4, 0.3])
        >>> Sum(grid.points).title(grid)
        'mean'
        """
        if self.asks_all_counts:
            return self.kind
        rows = self.matrix.rows if self.takes_offsets else None
        is_mean = rows is not None and prior.points is not None and np.array_equal(rows[0], prior.points)
        return "mean" if is_mean else self.matrix.title

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(str(self.document()))

    def __repr__(self) -> str:
        if self.asks_all_counts:
            return f"{self.kind.capitalize()}()"
        return f"Linear({short_repr(self.matrix)}, {short_repr(self.names)}, unbiased={self.unbiased})"

    def rows(self, prior: Prior) -> Array | None:
        """The matrix (m, d), or None for the identity."""
        return self.matrix.rows

    def expected_answer(self, prior: Prior) -> Array:
        """The answer that the prior expects, per person: the averages of its groups if the query asks for those."""
        if self.number_by_group is None:
            return super().expected_answer(prior)
        members = group_rows(prior.domain, self.number_by_group.by)[1]
        numbers = prior.domain.numbers(self.number_by_group.number)
        return np.asarray(members @ (prior.probabilities * numbers) / (members @ prior.probabilities))

    def centred_rows(self, prior: Prior) -> Array | None:
        """The rows less their means under the prior."""
        self.require_fits(prior)
        rows = self.matrix.rows
        return None if rows is None else centre_rows(rows, prior.probabilities)[0]

    def statistic_labels(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        """The names; by default the labels of the values, `sum` for a single row, or `row 1`, `row 2`, ..."""
        rows = self.matrix.rows
        if self.names or rows is None:
            return self.names or tuple(labels)
        return ("sum",) if len(rows) == 1 else tuple(f"row {n}" for n in range(1, len(rows) + 1))

    def same_for_all(self, prior: Prior) -> bool:
        """Whether every person adds the same to the statistics."""
        rows = self.matrix.rows
        return len(prior) == 1 if rows is None else not np.ptp(rows, axis=1).any()

    def require_fits(self, prior: Prior) -> None:
        """Raise `InvalidInput` if the matrix has another number of values, or needs numbers that were not rounded."""
        self.matrix.require_exact_numbers(prior)
        size = len(self.names or prior) if self.matrix.shape is None else self.matrix.shape[1]
        if size != len(prior):
            advice = f"{plural(size, self._column)}; give {len(prior)}, one for each value of the prior"
            raise InvalidInput(self._argument, NOT_SHOWN, advice)

    def document(self) -> dict[str, Any]:
        """The query as JSON."""
        names = None if self.names is None else [label_to_json(name) for name in self.names]
        return {"name": "Linear", "matrix": self.matrix.document(), "names": names, "unbiased": self.unbiased}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Linear:
        """Read a query from its JSON document.

        >>> Linear.read(Linear([[0, 1], [2, 3]]).document()).matrix.rows.tolist()
        [[0.0, 1.0], [2.0, 3.0]]
        """
        names = None if document["names"] is None else map(label_from_json, document["names"])
        matrix = MATRICES[document["matrix"]["kind"]].read(document["matrix"])
        return Linear(matrix, names, bool(document["unbiased"]))

    def unit(self, prior: Prior) -> float:
        """A scale for errors: one for a histogram.

        It is the squared range of a single row; for several rows, twice the largest squared norm of a centred column.
        """
        rows = self.matrix.rows
        if rows is None:
            return 1.0
        W = rows - rows.mean(axis=1, keepdims=True)
        return float(np.ptp(W) ** 2 if len(W) == 1 else 2 * (W**2).sum(axis=0).max()) or 1.0

    def ceiling(self, prior: Prior) -> float:
        """The variance of the statistics of one person, summed over the rows; one for a histogram."""
        rows = self.centred_rows(prior)
        return 1.0 if rows is None else float((rows**2).sum(axis=0) @ prior.probabilities)

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`|W D (r - 1)|**2`: the spread of the posterior means around the prior mean.

        For a histogram it is `sum_x (P[x] r[x])**2`.
        """
        rows, P = self.centred_rows(prior), prior.probabilities
        return np.asarray(columns**2 @ P**2 if rows is None else (((columns * P) @ rows.T) ** 2).sum(axis=1))

    def no_report(self, prior: Prior) -> float:
        """The error of the prior alone; infinite for an unbiased query, unless its statistics are the same for all."""
        if self.unbiased:
            return 0.0 if self.same_for_all(prior) else math.inf
        return (
            _pairs_error(prior.probabilities[:, None]) if self.asks_all_counts else super().no_report(prior)
        )

    def error(self, channel: Channel, prior: Prior) -> float:
        """The error per person of a channel, at the prior."""
        self.require_fits(prior)
        prior = channel.align(prior)
        if self.unbiased:
            return variance(channel.matrix, prior.probabilities, self.centred_rows(prior))
        if not self.asks_all_counts:
            return super().error(channel, prior)
        return _pairs_error(prior.probabilities[:, None] * channel.drop_unused().matrix)

    def closed_form_bound(self, prior: Prior, budget: Budget) -> float:
        """The closed-form bound of each row, `Var (1 - (1 - lo)**2)`; for unbiased answers `Var / (1 - lo)**2`.

        A column is `lo + (1 - lo) f / P` with a distribution `f`, and no channel tells more than the truth, where `f`
        is a single value. For a histogram an output is a soft subset of mass `tau` that holds every value equally
        often: `1 - sum_x P[x]**2 (lo**2 + 2 lo (hi - lo) tau + (hi - lo)**2 tau min(1, tau / P[x]))`, written as a sum
        over the values: `max(P (1 - P) (1 - (1 - lo)**2), P (1 - P) - P**2 (1 - lo) (hi - 1))`. For a distribution it
        is that of `variance_bound`.

        >>> eps = 1.0
        >>> bound = Histogram().closed_form_bound(Prior.uniform(10), Budget(eps))
        >>> abs(bound - (1 - (math.e - 1 + 1 / math.e) / 10)) < 1e-12
        True
        >>> round(Distribution().closed_form_bound(Prior.uniform(4), Budget(math.inf, 600.0)), 9)  # of the truth itself
        0.75
        """
        P, lo = prior.probabilities, budget.lo
        signal = (1 - lo) ** 2  # the share of the variance that a report can explain
        if not self.asks_all_counts:
            return self.ceiling(prior) * (1 / signal if self.unbiased else 1 - signal)
        if self.unbiased:
            return variance_bound(P, lo, budget.hi)
        return float(histogram_bound(P * complement(P), P, lo, budget.upper))


class Histogram(Linear):
    """How many people have each value. The error is the mean square error, summed over the values.

    `phi(r) = sum_x (P[x] r[x])**2`; error `1 - sum_y lam[y] phi`. With `unbiased=True` it is `Distribution()`.

    >>> Histogram().no_report(Prior([0.2, 0.8])).__round__(6)
    0.32
    """

    def __init__(self, unbiased: bool = False) -> None:
        super().__init__(Identity(), unbiased=unbiased)


class Distribution(Histogram):
    """The distribution of the values, learnt from reports alone: the prior never biases the answer.

    The error is `N` times the variance of the best unbiased estimator from `N` reports, summed over the
    values: the inverse of the Fisher information `J = sum_y lam[y] r_y r_y'` on the simplex, which is
    `tr(J**-1) - sum_x P[x]**2` since `J P = 1`. It is infinite where reports do not identify the
    distribution.

    >>> Distribution().error(Channel.identity(2), Prior([0.2, 0.8])).__round__(6)
    0.32
    >>> Distribution() == Histogram(unbiased=True)
    True
    """

    def __init__(self) -> None:
        super().__init__(unbiased=True)


class Sum(Linear):
    """The sum over people of a number for each value. The error is the mean square error.

    Arguments: `values`, the number that each value stands for, in the order of the prior (or of the channel
    whose error is asked for); `unbiased`, whether the reports alone decide the answer.
    `phi(r) = (sum_x a[x] P[x] r[x])**2` with `a` the values, centred.

    >>> Sum(values=[0, 1]).no_report(Prior([0.2, 0.8])).__round__(6)
    0.16
    """

    _argument, _column = "values", "number"

    def __init__(self, values: Iterable[float], unbiased: bool = False) -> None:
        if has_labels(values):
            advice = "whose labels would be lost; give a list of numbers, in the order of the prior"
            raise InvalidInput("values", NOT_SHOWN, f"type {type(values).__name__}, {advice}")
        try:
            row = np.array([float(v) for v in values])
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput("values", values, "give one number for each value of the prior") from error
        super().__init__([require_size("values", row)], unbiased=unbiased)


def group_rows(domain: Domain, by: tuple[str, ...]) -> tuple[list[tuple[Any, ...]], Array]:
    """The groups of people with the same levels of these attributes, and a row for each: one where a value has them."""
    levels, members = domain.margin(by, "by")
    if any((members[:, low] != members[:, high]).any() for low, high in domain.neighbours):
        advice = "a number that is rounded at random does not form groups of people"
        raise InvalidInput("by", by, advice, Hint("cells", purpose="to group people by a number"))
    return levels, members


def _one_prior(prior: Prior | PriorSet | Probabilities) -> Prior:
    """The prior itself, the middle of a set of priors, or the prior of these probabilities."""
    return Prior.of(prior.centre if isinstance(prior, PriorSet) else prior)


def _pairs_error(joint: Array) -> float:
    """The error of a histogram as `sum_y Pr(x, y) Pr(x', y) / lam[y]` over all pairs of values: nothing cancels.

    >>> Histogram().error(Channel([[1.0], [1.0]]), Prior([1 - 1e-11, 1e-11]))
    1.99999999998e-11
    """
    later = np.cumsum(joint[::-1], axis=0)[::-1]
    pairs = (joint[:-1] * later[1:]).sum(axis=0)
    return 2 * float(np.divide(pairs, later[0], out=np.zeros_like(pairs), where=later[0] > 0).sum())

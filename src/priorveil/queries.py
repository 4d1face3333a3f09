"""Queries: what the curator wants to know, and how much a report tells about it.

Most queries are *linear*: the curator wants `W @ counts` for a matrix `W` with one row for each statistic and one
column for each value. `Histogram` is the identity, `Sum` is one row. A linear query can be estimated in two
ways. The prior-based estimate uses the prior in the answer, and its error is a mean square error. The unbiased
estimate uses the prior only to shape the noise, and its error is a variance; `Distribution` is the unbiased histogram.

A column of a channel, seen through its lift `r` (so that `P @ r = 1`), has a convex utility `phi(r)` for every
prior-based query: the expected error of a channel is a constant less `sum_y lam[y] phi(r[:, y])`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, as_matrix, centre_rows
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, TooLarge, plural, short_repr
from priorveil.formatting import number_text
from priorveil.information import hi_minus_one, histogram_bound, variance, variance_bound
from priorveil.priors import AttributeLabels, Budget, Label, Prior, PriorSet
from priorveil.priors.labels import as_label, label_from_json, label_text, label_to_json, named_levels
from priorveil.priors.prior import Probabilities

_MOST_ENTRIES = 1 << 26  # of a matrix that is written out
_MOST_AT_ONCE = 1 << 21  # of columns whose utility is computed


class LabelledRows(NamedTuple):
    """The names of statistics, and a row of weights over the `values` for each; None stands for the identity."""

    labels: Sequence[Label]
    values: Sequence[Label] = ()
    rows: Array | None = None

    def weights(self, labels: Sequence[Label], values: Sequence[Label]) -> Array:
        """The weights of these values in the statistics with these names."""
        rows, columns = ({name: at for at, name in enumerate(names)} for names in (self.labels, self.values))
        W = np.eye(len(columns)) if self.rows is None else self.rows
        return np.asarray(W[np.ix_([rows[label] for label in labels], [columns[value] for value in values])])


def require_same_statistics(argument: str, parts: Iterable[tuple[str, LabelledRows]]) -> None:
    """Refuse statistics that cannot be added up: with different names, or with different weights of the same value.

    The order of names and values does not matter. A value that only some parts have may have any weight: sums over
    different values can be added up.

    >>> parts = {cohort: LabelledRows(["sum"], labels, np.eye(1, 2)) for cohort, labels in (("A", "ab"), ("B", "ba"))}
    >>> require_same_statistics("cohorts", parts.items())
    Traceback (most recent call last):
    priorveil.errors.InvalidInput: cohorts: the statistic 'sum' has other weights in B than in A; \
use the same query, for values in the same order
    """
    (name, first), *others = parts
    for other, part in others:
        if odd := set(part.labels) ^ set(first.labels):
            label = next(label for label in (*part.labels, *first.labels) if label in odd)
            has, lacks = (name, other) if label in first.labels else (other, name)
            advice = f"they have different labels: the statistic {label!r} of {has} is missing in {lacks}"
            raise InvalidInput(argument, NOT_SHOWN, f"{advice}; use the same query and values for all")
        known = set(part.values)
        shared = [value for value in first.values if value in known]
        if not shared or (part.rows is first.rows is None and known == set(part.labels)):
            continue  # nothing to compare, or two histograms
        own, theirs = (each.weights(first.labels, shared) for each in (first, part))
        differ = ~np.isclose(own, theirs, rtol=1e-9, atol=0).all(axis=1)
        if differ.any():
            label = first.labels[int(differ.argmax())]
            advice = (
                f"the statistic {label!r} has other weights in {other} than in {name}; use the same query"
            )
            raise InvalidInput(argument, NOT_SHOWN, f"{advice}, for values in the same order")


class Query(ABC):
    """What every query answers. The defaults are those of a prior-based query about all the values.

    `linear` says whether the answer is `rows @ counts` and its error that of `Linear`, `unbiased` whether the reports
    alone decide the answer, `error_unit` what the error is, in a few words.
    """

    linear: bool = False
    unbiased: bool = False
    error_unit: str = "mean square error per person"

    @property
    def kind(self) -> str:
        """One of histogram, sum, linear, distribution, guess and convex: the key of a table of solvers."""
        return type(self).__name__.lower()

    @property
    def default_method(self) -> Literal["mmse", "unbiased"]:
        """The estimator that `method="auto"` stands for."""
        return "unbiased" if self.unbiased else "mmse"

    def title(self, prior: Prior) -> str:
        """What is asked for, in a few words."""
        return self.kind

    def rows(self, prior: Prior) -> Array | None:
        """The matrix of the statistics (m, d), or None for the identity, which is never written out."""
        return None

    def centred_rows(self, prior: Prior) -> Array | None:
        """The rows less their means under the prior: errors do not depend on the origin."""
        return None

    def statistic_labels(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        """The names of the numbers in an answer, given the labels of the values."""
        return tuple(labels)

    def counts_people(self, prior: Prior) -> bool:
        """Whether every statistic is a number of people: all its weights are zero or one."""
        rows = self.rows(prior)
        return rows is None or bool(np.isin(rows, (0.0, 1.0)).all())

    def statistics(self, prior: Prior) -> LabelledRows:
        """The numbers in an answer: their names, and their weights of the values."""
        return LabelledRows(self.statistic_labels(prior.labels), prior.labels, self.rows(prior))

    def require_fits(self, prior: Prior) -> None:
        """Raise `InvalidInput` if the query is not about the values of this prior."""
        return None

    def document(self) -> dict[str, Any]:
        """The query as JSON."""
        return {"name": self.kind.capitalize()}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Query:
        """Read a query from its JSON document."""
        return cls()

    def unit(self, prior: Prior) -> float:
        """The largest squared distance between the statistics of two values: the natural unit of errors."""
        return 1.0

    def ceiling(self, prior: Prior) -> float:
        """The error of a channel with utility zero."""
        return 1.0

    @abstractmethod
    def utility(self, columns: Array, prior: Prior) -> Array:
        """`phi` of every column: `columns` is (K, d), each row a lift `r` with `P @ r = 1`."""

    def no_report(self, prior: Prior) -> float:
        """The error of the prior alone: that of the column `r = 1`."""
        return self.ceiling(prior) - float(self.utility(np.ones((1, len(prior))), prior)[0])

    def error(self, channel: Channel, prior: Prior) -> float:
        """The expected error per person, when the curator uses the posterior."""
        live = channel.drop_unused()
        prior = live.align(prior)
        law = live.output_law(prior)
        return max(0.0, self.ceiling(prior) - float(law @ self.utility(live.lift(prior).T, prior)))

    def closed_form_bound(self, prior: Prior, budget: Budget) -> float:
        """An error that no LIP channel with this budget goes below (the secret being the value itself).

        A column is `lo + (1 - lo) f / P` with a distribution `f`, the mean over `f` of columns with a single value in
        its place. A convex utility is at most the mean of its values at those.

        >>> Convex(lambda p: p.max(axis=1)).closed_form_bound(Prior.uniform(10), Budget(1.0)).__round__(6)
        0.331091
        """
        ceiling, most = self.ceiling(prior), _corner_utility(self, prior, budget.lo)
        return max(0.0, ceiling - most - 1e-12 * (abs(ceiling) + abs(most)))


class Linear(Query):
    """The statistics `W @ counts`. The error is summed over the statistics.

    Arguments: `matrix`, an array with one row for each statistic and one column for each value, or the `kind` of a
    matrix in `MATRICES` with its arguments; `names`, what the statistics are called; `unbiased`, whether the reports
    alone decide the answer. A query and a plan file hold the kind of a matrix; its rows are written out when a solver
    or an estimate needs them, and those of the identity never.

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
        self,
        matrix: npt.ArrayLike | Mapping[str, Any],
        names: Iterable[Label] | None = None,
        unbiased: bool = False,
    ) -> None:
        self.names, self.unbiased = None if names is None else tuple(map(as_label, names)), bool(unbiased)
        self.structure = matrix if isinstance(matrix, Mapping) else _structure(matrix)
        # The size of an identity; zero fits any prior.
        self._size = len(self.names or ()) if isinstance(matrix, Mapping) else np.shape(matrix)[1]
        rows = self._size if self.matrix is None else len(self.matrix)
        if self.names is not None and not len(self.names) == len(set(self.names)) == rows:
            advice = f"give {plural(rows, 'different name')}, one for each row"
            raise InvalidInput("names", self.names, advice)
        if unbiased:
            of = "values" if self.matrix is None else "statistics"
            self.error_unit = f"variance per person, summed over the {of}"

    @cached_property
    def matrix(self) -> Array | None:
        """The rows `W`, written out; None for the identity."""
        arguments = dict(self.structure)
        rows = MATRICES[arguments.pop("kind")](**arguments)
        return None if rows is None else np.asarray(rows, dtype=np.float64)

    @classmethod
    def cumulative(cls, prior: Prior | PriorSet | Probabilities, unbiased: bool = False) -> Linear:
        """How many people have each value or one before it, in the order of the prior's labels.

        >>> Linear.cumulative(Prior.uniform(["a", "b"])).names
        ('up to a', 'up to b')
        >>> Linear.cumulative(Prior.cells([0, 18, 65], [0.2, 0.8])).names
        ('below 18', 'up to 65')
        """
        prior = _one_prior(prior)
        names, edges = [f"up to {label_text(label)}" for label in prior.labels], prior.edges
        if edges is not None:  # only the last cell holds its upper edge
            texts = list(map(number_text, edges[1:].tolist()))
            names = [*(f"below {text}" for text in texts[:-1]), f"up to {texts[-1]}"]
        query = Linear({"kind": "cumulative", "values": len(prior)}, names, unbiased)
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
        query = Linear({"kind": "ranges", "values": len(prior)}, names, unbiased)
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
        if not isinstance(prior.labels, AttributeLabels):
            hint = Hint("Prior.joint", purpose="for several attributes")
            raise InvalidInput("prior", prior, "it has no names of attributes", hint)
        names: list[str] = []
        groups: list[list[int]] = []
        for margin in [attributes] if isinstance(attributes, str) else attributes:
            kept = (margin,) if isinstance(margin, str) else tuple(margin)
            cells, rows = prior.labels.margin(kept)
            names += [", ".join(map("{}={}".format, kept, cell)) for cell in cells]
            groups.append(rows.argmax(axis=0).tolist())
        if not groups or len(set(names)) < len(names):
            raise InvalidInput("attributes", attributes, "give at least one margin, and each only once")
        return Linear({"kind": "margins", "groups": groups}, names, unbiased)

    @property
    def kind(self) -> str:
        """A histogram or distribution (the identity), a sum (one row), or linear."""
        if self.matrix is None:
            return "distribution" if self.unbiased else "histogram"
        return "sum" if len(self.matrix) == 1 else "linear"

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
        structure = self.structure["kind"]
        if structure == "margins":
            levels = (named_levels(str(name), prior.names or ()) for name in self.names or ())
            tables = list(dict.fromkeys(map(" x ".join, levels)))
            return f"margins ({', '.join(tables[:3])}{', ...' * (len(tables) > 3)})"
        if self.kind == "sum" and self.matrix is not None:
            points = prior.points
            return "mean" if points is not None and np.array_equal(self.matrix[0], points) else "sum"
        several = {"identity": self.kind, "cumulative": "cumulative shares", "ranges": "ranges"}
        return several.get(structure) or f"{len(self.statistic_labels(()))} statistics"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(str(self.document()))

    def __repr__(self) -> str:
        if self.matrix is None:
            return f"{self.kind.capitalize()}()"
        return f"Linear({short_repr(self.structure)}, {short_repr(self.names)}, unbiased={self.unbiased})"

    def rows(self, prior: Prior) -> Array | None:
        """The matrix (m, d), or None for the identity."""
        return self.matrix

    def centred_rows(self, prior: Prior) -> Array | None:
        """The rows less their means under the prior."""
        self.require_fits(prior)
        return None if self.matrix is None else centre_rows(self.matrix, prior.probabilities)[0]

    def statistic_labels(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        """The names; by default the labels of the values, `sum` for a single row, or `row 1`, `row 2`, ..."""
        if self.names or self.matrix is None:
            return self.names or tuple(labels)
        return ("sum",) if self.kind == "sum" else tuple(f"row {n}" for n in range(1, len(self.matrix) + 1))

    def require_fits(self, prior: Prior) -> None:
        """Raise `InvalidInput` if the matrix has another number of values, or needs numbers that were not rounded."""
        if self.structure["kind"] in ("cumulative", "ranges") and prior.points is not None:
            hint = Hint("Prior.cells", purpose="for shares and quantiles of numbers")
            advice = "numbers are rounded to its grid, which moves these shares"
            raise InvalidInput("prior", prior, advice, hint)
        size = self._size if self.matrix is None else self.matrix.shape[1]
        if size not in (0, len(prior)):
            advice = f"{plural(size, self._column)}; give {len(prior)}, one for each value of the prior"
            raise InvalidInput(self._argument, NOT_SHOWN, advice)

    def document(self) -> dict[str, Any]:
        """The query as JSON."""
        names = None if self.names is None else [label_to_json(name) for name in self.names]
        return {"name": "Linear", "matrix": dict(self.structure), "names": names, "unbiased": self.unbiased}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Linear:
        """Read a query from its JSON document.

        >>> Linear.read(Linear([[0, 1], [2, 3]]).document()).matrix.tolist()
        [[0.0, 1.0], [2.0, 3.0]]
        """
        names = None if document["names"] is None else map(label_from_json, document["names"])
        return Linear(document["matrix"], names, bool(document["unbiased"]))

    def unit(self, prior: Prior) -> float:
        """A scale for errors: one for a histogram.

        It is the squared range of a single row; for several rows, twice the largest squared norm of a centred column.
        """
        if self.matrix is None:
            return 1.0
        W = self.matrix - self.matrix.mean(axis=1, keepdims=True)
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
            same = len(prior) == 1 if self.matrix is None else not np.ptp(self.matrix, axis=1).any()
            return 0.0 if same else math.inf
        return _pairs_error(prior.probabilities[:, None]) if self.matrix is None else super().no_report(prior)

    def error(self, channel: Channel, prior: Prior) -> float:
        """The error per person of a channel, at the prior."""
        self.require_fits(prior)
        prior = channel.align(prior)
        if self.unbiased:
            return variance(channel.matrix, prior.probabilities, self.centred_rows(prior))
        if self.matrix is not None:
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
        kept = (1 - lo) ** 2
        if self.matrix is not None:
            return self.ceiling(prior) * (1 / kept if self.unbiased else 1 - kept)
        if self.unbiased:
            return variance_bound(P, lo, budget.hi)
        return float(histogram_bound(P * _complement(P), P, lo, budget.upper))


class Histogram(Linear):
    """How many people have each value. The error is the mean square error, summed over the values.

    `phi(r) = sum_x (P[x] r[x])**2`; error `1 - sum_y lam[y] phi`. With `unbiased=True` it is `Distribution()`.

    >>> Histogram().no_report(Prior([0.2, 0.8])).__round__(6)
    0.32
    """

    def __init__(self, unbiased: bool = False) -> None:
        super().__init__({"kind": "identity"}, unbiased=unbiased)


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
        try:
            row = np.array([float(v) for v in values])
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput("values", values, "give one number for each value of the prior") from error
        super().__init__([_require_size("values", row)], unbiased=unbiased)


@dataclass(frozen=True)
class Guess(Query):
    """Which value a person has. The error is the probability that the best guess is wrong (Hamming).

    >>> Guess().no_report(Prior([0.2, 0.8])).__round__(6)
    0.2
    """

    error_unit = "chance of a wrong guess"

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`max_x P[x] r[x]`."""
        return np.asarray((columns * prior.probabilities).max(axis=1))

    def error(self, channel: Channel, prior: Prior) -> float:
        """The mass of all values except the likeliest of each report, added up: nothing is subtracted from one.

        >>> Guess().error(Channel([[1.0], [1.0]]), Prior([1 - 1e-11, 1e-11]))
        1e-11
        """
        live = channel.drop_unused()
        joint = np.asarray(live.align(prior).probabilities[:, None] * live.matrix)
        np.put_along_axis(joint, joint.argmax(axis=0)[None], 0.0, axis=0)
        return float(joint.sum())

    def no_report(self, prior: Prior) -> float:
        """The probability that the value is not the likeliest one."""
        return float(_complement(prior.probabilities).min())

    def closed_form_bound(self, prior: Prior, budget: Budget) -> float:
        """One less the largest posterior, `max_x P[x] lo + min(P[x] (hi - lo), 1 - lo)`."""
        left = self.no_report(prior)
        return max(budget.lo * left, left - float(prior.probabilities.max() * hi_minus_one(budget.upper)))


@dataclass(frozen=True)
class Convex(Query):
    """Any convex utility of the posterior: what a curator gains from knowing `Pr(X | y)`.

    `gain` maps posteriors, an array (K, d) with a distribution in each row, to K numbers; it has to be
    convex. The error is what is lost against knowing the value itself. A gain that is seen not to be
    convex is refused.

    >>> entropy = Convex(lambda p: (p * np.log(np.maximum(p, 1e-300))).sum(axis=1))
    >>> entropy.no_report(Prior([0.5, 0.5])) == math.log(2)
    True
    """

    gain: Callable[[Array], Array]
    error_unit = "loss of gain per person"

    def ceiling(self, prior: Prior) -> float:
        """The gain when the value itself is known."""
        return _corner_utility(self, prior, 0.0)

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`gain(P * r)`."""
        return self._gains(columns * prior.probabilities)

    def require_fits(self, prior: Prior) -> None:
        """Raise `InvalidInput` if the gain lies above a chord somewhere on a fixed sample of posteriors."""
        rng, size = np.random.default_rng(0), len(prior)
        p, q = rng.dirichlet(np.ones(size), 200), rng.dirichlet(np.full(size, 0.3), 200)
        middle, ends = self._gains((p + q) / 2), (self._gains(p) + self._gains(q)) / 2
        above = middle - ends - 1e-9 * (1 + np.abs(ends))
        if (above > 0).any():
            at = ((p + q)[int(above.argmax())] / 2).round(4).tolist()
            raise InvalidInput("gain", at, "it is not convex: at this posterior it lies above a chord")

    def _gains(self, posteriors: Array) -> Array:
        gains = np.asarray(self.gain(posteriors), dtype=np.float64)
        if gains.shape != (len(posteriors),) or not np.isfinite(gains).all():
            advice = "it must give one finite number for each row of posteriors"
            raise InvalidInput("gain", gains.shape, advice)
        return gains


def _corner_utility(query: Query, prior: Prior, lo: float) -> float:
    """The utility of the value itself, reported with probability `1 - lo`, and otherwise a draw from the prior."""
    P, values = prior.probabilities, np.arange(_require_writable(len(prior), len(prior)))
    parts = np.array_split(values, -(-(len(P) ** 2) // _MOST_AT_ONCE))
    gains = [query.utility(lo + (1 - lo) * np.equal.outer(part, values) / P, prior) for part in parts]
    return float(P @ np.concatenate(gains))


def read_query(document: Mapping[str, Any]) -> Query:
    """Read a query from its JSON document. A convex gain is code, which no document carries.

    >>> read_query(Linear([[0, 1], [2, 3]], names=("a", "b")).document()).statistic_labels((0, 1))
    ('a', 'b')
    """
    read: Query = QUERIES[document["name"]].read(document)
    return read


# The queries of documents, by name.
QUERIES: dict[str, type[Any]] = {q.__name__: q for q in (Histogram, Sum, Guess, Distribution, Linear)}


def _one_prior(known: Prior | PriorSet | Probabilities) -> Prior:
    """The prior itself, the middle of a set of priors, or the prior of these probabilities."""
    return Prior.of(known.centre if isinstance(known, PriorSet) else known)


def _structure(matrix: npt.ArrayLike) -> dict[str, Any]:
    """A matrix of numbers by its kind: the identity, or its rows as the shortest texts that read back to them.

    >>> _structure([[1, 0], [0, 1]]), _structure([[0.5, 1]])
    ({'kind': 'identity'}, {'kind': 'dense', 'rows': [['0.5', '1.0']]})
    """
    W = _dense_rows(matrix)
    if len(W) > 1 and np.array_equal(W, np.eye(len(W))):
        return {"kind": "identity"}
    return {"kind": "dense", "rows": [[repr(entry) for entry in row] for row in W.tolist()]}


def _dense_rows(rows: npt.ArrayLike) -> Array:
    W = as_matrix("matrix", rows, InvalidInput, "statistic and a column for each value")
    return _require_size("matrix", W)


def _require_size(argument: str, numbers: Array) -> Array:
    """The numbers, if errors can be computed from them: fourth powers of larger ones may not fit into floats."""
    if (bad := np.argwhere(~np.isfinite(numbers))).size:
        at = tuple(bad[0])
        raise InvalidInput(
            f"{argument}[{', '.join(map(str, at))}]", float(numbers[at]), "give finite numbers"
        )
    largest = np.abs(numbers).max(initial=0.0)
    if not numbers.size or not (largest == 0 or 1e-50 <= largest <= 1e50):
        advice = "give finite numbers, one for each value, the largest between 1e-50 and 1e50 in size: use another unit"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    return numbers


def _range_rows(values: int) -> Array:
    x = np.arange(_require_writable(values, values * (values + 1) // 2))
    first, last = np.triu_indices(values)
    return np.asarray((first[:, None] <= x) & (x <= last[:, None]))


def _margin_rows(groups: Sequence[Sequence[int]]) -> Array:
    """A row for each cell of each margin, of which the groups give the cell of every value."""
    _require_writable(len(groups[0]), sum(map(max, groups)) + len(groups))
    return np.concatenate([np.equal.outer(np.arange(max(group) + 1), group) for group in groups])


def _require_writable(values: int, statistics: int) -> int:
    if values * statistics > _MOST_ENTRIES:
        size = f"{statistics:,} statistics of {values:,} values"
        raise TooLarge(f"{size} are too many to write out: ask for fewer")
    return values


# How the rows of a matrix are written out, by its kind; those of the identity never are.
MATRICES: dict[str, Callable[..., Any]] = {
    "identity": lambda: None,
    "cumulative": lambda values: np.tri(_require_writable(values, values)),
    "ranges": _range_rows,
    "margins": _margin_rows,
    "dense": _dense_rows,
}


def _pairs_error(joint: Array) -> float:
    """The error of a histogram as `sum_y Pr(x, y) Pr(x', y) / lam[y]` over all pairs of values: nothing cancels.

    >>> Histogram().error(Channel([[1.0], [1.0]]), Prior([1 - 1e-11, 1e-11]))
    1.99999999998e-11
    """
    later = np.cumsum(joint[::-1], axis=0)[::-1]
    pairs = (joint[:-1] * later[1:]).sum(axis=0)
    return 2 * float(np.divide(pairs, later[0], out=np.zeros_like(pairs), where=later[0] > 0).sum())


def _complement(P: Array) -> Array:
    """`1 - P` without cancellation: for the likeliest value, which may be nearly certain, the sum of the others.

    >>> _complement(np.array([1 - 1e-11, 1e-11]))[0]
    np.float64(1e-11)
    """
    others: Array = 1 - P
    likeliest = int(P.argmax())
    others[likeliest] = np.delete(P, likeliest).sum()
    return others

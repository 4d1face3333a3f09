"""What every query answers: what it asks for, what its error is, and how much a report tells about it.

A column of a channel, seen through its lift `r` (so that `P @ r = 1`), has a convex utility `phi(r)` for every
prior-based query: the expected error of a channel is a constant less `sum_y lam[y] phi(r[:, y])`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Literal

import numpy as np

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.errors import InvalidInput
from priorveil.named_classes import enter_class
from priorveil.priors import Budget, Label, Prior
from priorveil.queries.labelled_rows import LabelledRows
from priorveil.queries.matrices import NumberByGroup, StatisticName, require_writable

_MOST_AT_ONCE = 1 << 21  # entries of columns whose utility is computed at once: 16 MiB of floats
_SAMPLED_CHORDS = 200  # chords on which a utility is checked: more find smaller dents, and take longer
_DENT = 1e-9  # how far a utility may be off, relatively, and still be convex
_ROUNDING = 1e-12  # how far a sum of utilities may be off, relatively: a bound is lowered by this


class Criterion(Enum):
    """What the error of a query is, and so what a design makes small: the key of a table of solvers."""

    SQUARED_ERROR = "the mean square error of statistics that are estimated with the prior"
    VARIANCE = "the variance of statistics that are estimated without the prior"
    WRONG_GUESSES = "the probability that the best guess of a value is wrong"
    LOST_GAIN = "what a convex gain loses against knowing the value"


class Query(ABC):
    """What every query answers. The defaults are those of a prior-based query about all the values.

    `linear` says whether the answer is `rows @ counts` and its error that of `Linear`, `unbiased` whether the reports
    alone decide the answer, `criterion` what the error is, `error_unit` the same in a few words, and `savable` whether
    a plan with this query can be written to a file.

    `asks_all_counts` says whether the statistics are the counts of all values, and `counts_people` whether each of them
    is a number of people. `takes_offsets` says whether each person can have a number of their own that is added, which
    is so if the only statistic is a sum. `is_sum` says whether that sum has no name of its own, as in `Sum`.
    `statistic_name` is what a statistic is, divided by the number of people. `number_by_group` has the averages that
    are read from the statistics; it is None if these are the answer.

    A subclass is known to plan files by its name as soon as it is defined. If it has arguments, it defines `document`
    and `read`.
    """

    by_name: ClassVar[dict[str, type[Query]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.savable:
            return
        enter_class(Query.by_name, cls.__name__, cls, "query")

    linear: bool = False
    unbiased: bool = False
    criterion: Criterion = Criterion.LOST_GAIN
    error_unit: str = "mean square error per person"
    savable: bool = True
    asks_all_counts: bool = False
    counts_people: bool = True
    takes_offsets: bool = False
    is_sum: bool = False
    statistic_name: StatisticName = "share"
    number_by_group: NumberByGroup | None = None
    utility_argument: str = "utility"  # what errors call it

    @property
    def sums_numbers(self) -> bool:
        """Whether statistics are sums of numbers, to which rounding to a grid adds, and not shares of its points."""
        return self.statistic_name != "share"

    @property
    def kind(self) -> str:
        """The name of the query for people: histogram, sum, linear, distribution, guess or convex."""
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

    def expected_answer(self, prior: Prior) -> Array:
        """The answer that the prior expects, per person."""
        rows = self.rows(prior)
        return prior.probabilities if rows is None else np.asarray(rows @ prior.probabilities)

    def centred_rows(self, prior: Prior) -> Array | None:
        """The rows less their means under the prior: errors do not depend on the origin."""
        return None

    def statistic_labels(self, labels: Sequence[Label]) -> tuple[Label, ...]:
        """The names of the numbers in an answer, given the labels of the values."""
        return tuple(labels)

    def statistics(self, prior: Prior) -> LabelledRows:
        """The numbers in an answer: their names, and their weights of the values."""
        return LabelledRows(self.statistic_labels(prior.labels), prior.labels, self.rows(prior))

    def same_for_all(self, prior: Prior) -> bool:
        """Whether every person adds the same to the statistics, so that no report is needed."""
        return len(prior) == 1

    def require_fits(self, prior: Prior) -> None:
        """Raise `InvalidInput` if the query is not about the values of this prior, or its utility is not convex.

        A utility is refused if it lies above a chord somewhere on a fixed sample of posteriors. No bound would hold.
        """
        rng, size = np.random.default_rng(0), len(prior)
        p = rng.dirichlet(np.ones(size), _SAMPLED_CHORDS)  # anywhere
        q = rng.dirichlet(np.full(size, 0.3), _SAMPLED_CHORDS)  # nearer to the corners
        at_p, at_q, middle = (self._utilities(posteriors, prior) for posteriors in (p, q, (p + q) / 2))
        chord = (at_p + at_q) / 2
        excess = middle - chord - _DENT * (1 + np.abs(chord))
        if (excess > 0).any():
            at = ((p + q)[int(excess.argmax())] / 2).round(4).tolist()
            advice = "it is not convex: at this posterior it lies above a chord"
            raise InvalidInput(self.utility_argument, at, advice)

    def _utilities(self, posteriors: Array, prior: Prior) -> Array:
        """The utility of each row of posteriors; refused if it is not one finite number for each."""
        utilities = np.asarray(self.utility(posteriors / prior.probabilities, prior), dtype=np.float64)
        if utilities.shape != (len(posteriors),) or not np.isfinite(utilities).all():
            advice = "it must give one finite number for each row"
            raise InvalidInput(self.utility_argument, utilities.shape, advice)
        return utilities

    def document(self) -> dict[str, Any]:
        """The query as JSON."""
        return {"name": type(self).__name__}

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

        >>> from priorveil.queries import Convex
        >>> Convex(lambda p: p.max(axis=1)).closed_form_bound(Prior.uniform(10), Budget(1.0)).__round__(6)
        0.331091
        """
        ceiling, most = self.ceiling(prior), corner_utility(self, prior, budget.lo)
        return max(0.0, ceiling - most - _ROUNDING * (abs(ceiling) + abs(most)))


def corner_utility(query: Query, prior: Prior, lo: float) -> float:
    """The utility of the value itself, reported with probability `1 - lo`, and otherwise a draw from the prior."""
    require_writable(len(prior), len(prior))
    P, values = prior.probabilities, np.arange(len(prior))
    parts = np.array_split(values, -(-(len(P) ** 2) // _MOST_AT_ONCE))
    gains = [query.utility(lo + (1 - lo) * np.equal.outer(part, values) / P, prior) for part in parts]
    return float(P @ np.concatenate(gains))


def complement(P: Array) -> Array:
    """`1 - P` without cancellation: for the likeliest value, which may be nearly certain, the sum of the others.

    >>> complement(np.array([1 - 1e-11, 1e-11]))[0]
    np.float64(1e-11)
    """
    others: Array = 1 - P
    likeliest = int(P.argmax())
    others[likeliest] = np.delete(P, likeliest).sum()
    return others

"""What every mechanism offers, and how tallies are read: the one interface that plans know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Lifts
from priorveil.errors import Infeasible, InvalidInput
from priorveil.estimates import Cells, Moments, mle_moments, posterior_moments, prior_check, unbiased_moments
from priorveil.mechanisms.randomness import Source
from priorveil.notions import LDP, LIP, Known, Secrets
from priorveil.priors import Prior
from priorveil.queries import identifiable
from priorveil.tallies import Weighted

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Mechanism(Protocol):
    """A sampler in integers, its exact certificate, and how its reports are counted and read."""

    kind: ClassVar[str]

    @property
    def size(self) -> int:
        """How many values there are."""
        ...

    @property
    def draws_per_report(self) -> int:
        """Random words a report takes, whatever the value."""
        ...

    @property
    def matrix(self) -> Array:
        """The channel in floats; `TooLarge` where it cannot be written out."""
        ...

    def sample_one(self, code: int, source: Source) -> Any:
        """The report of one value."""
        ...

    def sample(self, codes: npt.ArrayLike, source: Source) -> npt.NDArray[Any]:
        """The reports of many values, a row each."""
        ...

    def accepts(self, reports: npt.NDArray[Any]) -> Mask:
        """Which reports this mechanism can have made."""
        ...

    def accumulate(self, reports: npt.ArrayLike) -> Codes:
        """The reports added up, in integers; arrays of parts add up to the array of the whole."""
        ...

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes of the sampled law."""
        ...

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution."""
        ...

    def prior_check(self, counts: Codes, prior: Array) -> float | None:
        """The p-value of the counts under the law that the prior gives them."""
        ...

    def answer(
        self, method: str, counts: Codes, prior: Array, scores: Array | None, population: bool
    ) -> Moments:
        """The histogram (or the sum of `scores`) by `mmse`, `unbiased` or `mle`."""
        ...

    def weighted(self, reports: npt.NDArray[Any], weights: Array, offsets: Array) -> Weighted:
        """What a weighted sum needs."""
        ...

    def weighted_answer(self, weighted: Weighted, prior: Array, scores: Array) -> Moments:
        """The weighted sum of posterior means."""
        ...

    def parameters(self) -> dict[str, Any]:
        """The integers as JSON."""
        ...

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Mechanism:
        """The mechanism of these parameters."""
        ...


class Counted:
    """Reading for mechanisms whose reports are numbers `0 .. outputs - 1` and whose tally counts each."""

    kind: ClassVar[str]

    @property
    def matrix(self) -> Array:
        """The channel in floats."""
        raise AssertionError("abstract")

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        raise AssertionError("abstract")

    def accepts(self, reports: npt.NDArray[Any]) -> Mask:
        """Which reports this mechanism can have made."""
        return whole_numbers(reports, self.outputs)

    def identifies(self) -> bool:
        """Whether the rows of the channel are independent."""
        return identifiable(self.matrix)

    def evidence(self, counts: Codes) -> Cells:
        """The counts with the channel that made them."""
        return Cells(counts.astype(np.float64), self.matrix)

    def prior_check(self, counts: Codes, prior: Array) -> float | None:
        """The p-value of the counts under the law that the prior gives them."""
        return prior_check(counts.astype(np.float64), prior @ self.matrix)

    def answer(
        self, method: str, counts: Codes, prior: Array, scores: Array | None, population: bool
    ) -> Moments:
        """The histogram (or the sum of `scores`) by `mmse`, `unbiased` or `mle`."""
        cells = self.evidence(counts)
        if method == "mmse":
            return posterior_moments(cells, prior, scores)
        return inverted(method, cells, prior, scores, population)

    def weighted(self, reports: npt.NDArray[Any], weights: Array, offsets: Array) -> Weighted:
        """Sums of weights and of their squares, per report."""
        linear, square = (
            np.bincount(reports, w, self.outputs).astype(np.float64, copy=False)
            for w in (weights, weights**2)
        )
        return Weighted(linear, square, float(offsets.sum()))

    def weighted_answer(self, weighted: Weighted, prior: Array, scores: Array) -> Moments:
        """`sum_i c_i E[a | y_i]`, with variance `sum_i c_i**2 Var(a | y_i)`."""
        mean = posterior_moments(Cells(weighted.weights, self.matrix), prior, scores).mean
        return Moments(mean, posterior_moments(Cells(weighted.squares, self.matrix), prior, scores).variance)


def inverted(method: str, cells: Cells, prior: Array, scores: Array | None, population: bool) -> Moments:
    """The unbiased or the most likely answer."""
    if method == "unbiased":
        return unbiased_moments(cells, prior, scores, population)
    return mle_moments(cells, prior, scores, population)


def whole_numbers(reports: npt.NDArray[Any], outputs: int) -> Mask:
    """Which entries are numbers from 0 to `outputs - 1`.

    >>> whole_numbers(np.array([0, 5, -1]), 3).tolist()
    [True, False, False]
    """
    if reports.dtype.kind not in "iu":
        raise InvalidInput("reports", f"{reports.dtype} array", "reports of this plan are whole numbers")
    return np.asarray((reports >= 0) & (reports < outputs))


def one_prior(prior: Known, secret: Secrets, notion: Certifiable, kind: str) -> Prior:
    """The prior, for mechanisms whose exact certificate is for one prior and the value itself."""
    if secret is not None or not isinstance(prior, Prior) or not isinstance(notion, LIP | LDP):
        raise Infeasible(
            f"{kind} is certified for LIP or LDP of the value itself under one prior: use method='columns'"
        )
    return prior

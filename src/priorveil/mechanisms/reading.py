"""What every mechanism offers, and how tallies are read: the one interface that plans know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Lifts
from priorveil.channels import Channel
from priorveil.errors import Infeasible, InvalidInput
from priorveil.estimates import Moments, mle_moments, posterior_moments, unbiased_moments
from priorveil.likelihoods import Cells, Evidence
from priorveil.mechanisms.codes import checked_reports
from priorveil.mechanisms.randomness import Source
from priorveil.notions import LDP, LIP, Known, Secrets
from priorveil.prior_checks import prior_check
from priorveil.priors import Prior
from priorveil.queries import Distribution, Query, identifiable
from priorveil.tallies import Weighted

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SMALL = 1 << 16  # entries of a channel that is quicker written out than not
_QUICK = 1 << 22  # entries of a channel whose error takes less than a second
_QUICK_WORK = 1 << 28  # multiplications, where the error is that of learning a distribution

WEIGHTED = {
    "mmse": "the prior is right, and right for people of every weight: the spread is that of the posterior",
    "mle": "nothing about the prior, many reports: weights multiply the log-likelihood, and the spread is the "
    "sampling noise of the reports",
}


class Mechanism(Protocol):
    """A sampler in integers, its exact certificate, and how its reports are counted and read."""

    kind: ClassVar[str]

    @property
    def size(self) -> int:
        """How many values there are."""
        ...

    @property
    def width(self) -> int:
        """How many 64-bit words a report has that is a row of bits; zero where it is a whole number."""
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

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """As `accumulate`, in floats: every report is counted as often as its weight says."""
        ...

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, scores: Array | None, population: bool
    ) -> Moments:
        """The histogram (or the sum of `scores`) by `mmse`, `unbiased` or `mle`.

        `counts` are those of `accumulate` or of `weigh`; for the latter, see `weighted_moments`. A fourth method,
        `score`, is the linear answer that mle comes to near the distribution `prior`.
        """
        ...

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person under the prior; None where it would take long to work out."""
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
    width: ClassVar[int] = 0

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

    def evidence(self, counts: npt.NDArray[Any]) -> Cells:
        """The counts with the channel that made them."""
        return Cells(counts.astype(np.float64), self.matrix)

    def prior_check(self, counts: Codes, prior: Array) -> float | None:
        """The p-value of the counts under the law that the prior gives them."""
        return prior_check(counts.astype(np.float64), prior @ self.matrix)

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, scores: Array | None, population: bool
    ) -> Moments:
        """The histogram (or the sum of `scores`) by `mmse`, `unbiased` or `mle`."""
        cells = self.evidence(counts)
        if method == "mmse":
            return posterior_moments(cells, prior, scores)
        return inverted(method, cells, prior, scores, population)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person, of the channel written out."""
        entries = len(prior) * self.outputs
        learning = isinstance(query, Distribution)
        if entries > _QUICK or (learning and entries * len(prior) > _QUICK_WORK):
            return None
        return query.error(Channel(self.matrix, prior.labels), prior)

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The sum of the weights of each report."""
        return np.bincount(checked_reports(reports, self.outputs), weights, self.outputs).astype(np.float64)


def weighted_moments(
    mechanism: Mechanism,
    method: str,
    weighted: Weighted,
    reports: int,
    prior: Array,
    scores: Array | None,
    population: bool,
) -> Moments:
    """`sum_i c_i 1{x_i = x}`, or `sum_i c_i a(x_i)` with `scores` a, for people of weight `c_i`.

    What a report adds to an mmse or unbiased answer is multiplied by its weight, and what it adds to the variance by
    the square: so the mean is that of the counts with weights, the variance that of the counts with squares.

    With `population`, `m` the share that is estimated, people are a sample: the variance is `sum_i c_i**2 (psi_i -
    m)**2`, and counts with squares give it around their own mean.

    For mle weights multiply the log-likelihood (a pseudo-likelihood: it has the right mean even if weights go with
    values). To first order it adds up the scores `psi` that are unbiased at the most likely distribution, which
    give its variance.
    """
    each = weighted.power / max(reports, 1) or 1.0
    if method == "mle":
        likely = _most_likely_weighted(mechanism, weighted, prior)
        p = likely.mean / likely.mean.sum()
        mean = weighted.total * (p if scores is None else np.array([scores @ p]))
        inside = np.maximum(p, 0.5 * weighted.power / weighted.total**2)
        squared = mechanism.answer(
            "score", weighted.squares / each, inside / inside.sum(), scores, population
        )
        found = replace(likely, mean=mean, assumes=likely.assumes or WEIGHTED["mle"])
    else:
        found = mechanism.answer(method, weighted.weights, prior, scores, population)
        found = replace(found, assumes=found.assumes or WEIGHTED.get(method))
        squared = mechanism.answer(method, weighted.squares / each, prior, scores, population)
    variance = each * squared.variance
    if population and method != "mmse" and weighted.least >= 0 < weighted.total:
        variance += each * reports * (squared.mean / reports - found.mean / weighted.total) ** 2
    return replace(found, variance=variance)


def _most_likely_weighted(mechanism: Mechanism, weighted: Weighted, prior: Array) -> Moments:
    """The most likely histogram, of as many people of equal weight as would tell the same."""
    if weighted.least < 0 or weighted.total <= 0:
        advice = "weights below zero, or all zero, have no likelihood: use 'mmse' or 'unbiased'"
        raise InvalidInput("method", "mle", advice)
    people = weighted.total**2 / weighted.power
    return mechanism.answer("mle", weighted.weights * (people / weighted.total), prior, None, False)


def inverted(
    method: str, evidence: Evidence, prior: Array, scores: Array | None, population: bool
) -> Moments:
    """The unbiased or the most likely answer; near its `prior` the first is also what the second comes to."""
    if method in ("unbiased", "score"):
        return unbiased_moments(evidence, prior, scores, population)
    return mle_moments(evidence, prior, scores, population)


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

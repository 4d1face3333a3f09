"""What every mechanism offers, and how tallies are read: the one interface that plans know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Lifts
from priorveil.channels import Channel
from priorveil.errors import Hint, Infeasible, InvalidInput
from priorveil.mechanisms.codes import checked_reports
from priorveil.mechanisms.likelihood import Cells, Evidence
from priorveil.mechanisms.moments import Moments, mle_moments, posterior_moments, unbiased_moments
from priorveil.mechanisms.prior_check import prior_check
from priorveil.mechanisms.randomness import Source
from priorveil.notions import Known, Secrets
from priorveil.priors import Prior
from priorveil.queries import Query, identifiable

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SMALL = 1 << 16  # entries of a channel that is quicker written out than not
_QUICK = 1 << 22  # entries of a channel whose error takes less than a second
_QUICK_WORK = 1 << 28  # multiplications, where the error is that of learning a distribution


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
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The histogram, or the statistics `rows @ histogram`, by `mmse`, `unbiased` or `mle`.

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
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The histogram, or the statistics `rows @ histogram`, by `mmse`, `unbiased` or `mle`."""
        cells = self.evidence(counts)
        if method == "mmse":
            return posterior_moments(cells, prior, rows)
        return inverted(method, cells, prior, rows, population)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person, of the channel written out."""
        entries = len(prior) * self.outputs
        learning = query.unbiased
        if entries > _QUICK or (learning and entries * len(prior) > _QUICK_WORK):
            return None
        return query.error(Channel(self.matrix, prior.labels), prior)

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The sum of the weights of each report."""
        return np.bincount(checked_reports(reports, self.outputs), weights, self.outputs).astype(np.float64)


def inverted(method: str, evidence: Evidence, prior: Array, rows: Array | None, population: bool) -> Moments:
    """The unbiased or the most likely answer; near its `prior` the first is also what the second comes to."""
    if method in ("unbiased", "score"):
        return unbiased_moments(evidence, prior, rows, population)
    return mle_moments(evidence, prior, rows, population)


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
    if secret is not None or not isinstance(prior, Prior) or not notion.implies_lip:
        raise Infeasible(
            f"{kind} is certified for LIP or LDP of the value itself under one prior",
            Hint("method", "columns"),
        )
    return prior

"""Readers of rows of bits: unary encoding and subsets.

The law of the bits is in `mechanisms.bit_law`. A tally has the number of reports, the sum of their base lifts, the
ones of each value, and the sum of the base lifts of the reports in which its bit is set. The base lift of a report `y`
is `1 / (1 + c m(y))`, with `m(y)` the mass of its set bits under the prior of the tally: the lift of a value whose bit
is clear. That of any value is `1 + c y_x` times as large.

* **mmse** under the prior of the tally adds up posteriors given whole reports. Under another prior it adds up
  posteriors given single bits (the paper's estimator).
* **unbiased** inverts the noise of each bit, `(ones - N q) / (p - q)`. The sum of the lifts `r_x = Pr(x | y) / P_x`
  says more: with the Fisher information `J = E[r r']` the sum over the reports of `J^-1 r` is unbiased too, since
  `E[r] = J p` whatever the distribution `p` is. It is the best unbiased estimate near the prior, and for subsets up
  to a third better if the prior is far from uniform. It needs a matrix of `d` by `d` numbers.
* **mle** maximises the likelihood of the bits as if they were reported by different people (a composite likelihood:
  consistent, and a distribution, where unbiased may be negative). To first order it is the unbiased estimate of the
  ones, projected onto the distributions in the metric `1 / (s (1 - s))`, which is the inverse of the bits' variances.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.errors import InvalidInput
from priorveil.mechanisms import Subset, Unary
from priorveil.mechanisms.bit_law import BitLaw
from priorveil.mechanisms.bit_reports import BitReports
from priorveil.mechanisms.kernels import Words32
from priorveil.mechanisms.randomness import Words
from priorveil.notes import Note
from priorveil.priors import Prior
from priorveil.queries import Criterion, Query
from priorveil.reading import bit_covariances, counting_kernels
from priorveil.reading.bit_covariances import set_chances
from priorveil.reading.linear_answers import LinearAnswer, QuadraticForm, centring_form, shrink
from priorveil.reading.moments import Counts, StatisticRows, not_identifiable
from priorveil.reading.prior_check import ScoreTest, bits_test
from priorveil.reading.reader import Reader
from priorveil.reading.shares_search import Minimum, nearest_shares

B = TypeVar("B", bound=BitReports)
Number = TypeVar("Number", np.int64, np.float64)

MOST_BY_LIFTS = 1_000  # values up to which reports are read by their lifts; the information is a dense matrix

# Base lifts are kept as integers in units of 2**-30, so that sums of parts equal the sum of the whole.
LIFT_UNIT = 1 << 30
# A count and a sum of base lifts share a 64-bit number, so that one access to memory updates both: the count is
# shifted by 46 bits, more than _MOST_SHARED base lifts can fill, and stays below 2**62.
_MOST_SHARED = (1 << 16) - 1
_SHIFT = (_MOST_SHARED * LIFT_UNIT).bit_length()
# Reports are read twice, for the base lift and to add: as many at a time as stay in the processor's cache. If a report
# is wider than a cache line, its half words are transposed first, into rows of a length that is no power of two.
_BLOCK_WORDS = 1 << 16
_MOST_IN_BLOCK = 1 << 13
_CACHE_LINE = 8  # words
_PADDING = 24
_BITS_OF_BYTES = np.arange(256)[:, None] >> np.arange(8) & 1
_BITWISE = Note("assumesOwnBits")


class BitReader(Reader[B]):
    """Reads rows of bits, under the prior of the tally (`mechanism.masses`) or any other."""

    mle_assumes: ClassVar[Note | None] = Note("assumesCompositeLikelihood")

    @property
    def law(self) -> BitLaw:
        """The law of a report in floats."""
        return self.mechanism.law

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.mechanism.size

    @cached_property
    def lift_prior(self) -> Array:
        """The prior of the tally, in floats: the one that its lifts belong to."""
        masses = self.mechanism.masses
        return np.asarray(masses / float(masses.sum()))

    def fits(self, prior: Array) -> bool:
        """Whether this is the prior of the tally."""
        return np.allclose(prior, self.lift_prior, rtol=1e-9, atol=0.0)

    # -- counting ------------------------------------------------------------------------------------------

    def count_valid(self, reports: npt.NDArray[Any], weights: Array | None = None) -> Counts:
        """What every answer needs: `[N, sum of base lifts, ones (d), sum of base lifts by set bit (d)]`.

        Lifts are in units of `2**-30`. Ones serve the bit-by-bit and the unbiased answers, lifts the posterior given
        the whole report.
        """
        if weights is not None:
            return self._weigh(reports, weights)
        ones, lifts = np.zeros((2, 2048 * self.mechanism.width), dtype=np.int64)
        step = max(1, min(_MOST_IN_BLOCK, _BLOCK_WORDS // self.mechanism.width))
        work = len(reports) * self.size
        for start in range(0, len(reports), _MOST_SHARED):
            many, both = reports[start : start + _MOST_SHARED], np.zeros_like(ones)
            for first in range(0, len(many), step):
                halves, base_lifts = self._base_lifts(many[first : first + step], work)
                counting_kernels.add_by_byte(halves, 1 << _SHIFT, base_lifts, both, work=work)
            ones += both >> _SHIFT
            lifts += both & ((1 << _SHIFT) - 1)
        by_bit = [sum_by_bit(sums, self.size) for sums in (ones, lifts)]
        return np.concatenate([[len(reports), lifts[:256].sum()], *by_bit])

    def _weigh(self, reports: Words, weights: Array) -> Array:
        weighted_lifts = weights * self._base_lifts(reports, len(reports) * self.size)[1]
        bytes_, both = reports.view(np.uint8).T, (weights, weighted_lifts)
        by_byte = [np.concatenate([np.bincount(column, w, 256) for column in bytes_]) for w in both]
        sums = [sum_by_bit(sums, self.size) for sums in by_byte]
        return np.concatenate([[weights.sum(), weighted_lifts.sum()], *sums])

    @cached_property
    def _byte_masses(self) -> tuple[Ints, float]:
        """The mass of the set bits of every byte at every place, `[256 * place + byte]`; `R - 1` per unit of mass."""
        padded = np.zeros((8 * self.mechanism.width, 8), dtype=np.int64)
        padded.reshape(-1)[: self.size] = self.mechanism.masses
        return np.asarray(padded @ _BITS_OF_BYTES.T).reshape(-1), float(
            (self.mechanism.odds - 1) / int(self.mechanism.masses.sum())
        )

    @cached_property
    def _base_lifts_by_ones(self) -> Ints | None:
        """The base lift of every number of set bits, if all values have the same mass: the number is counted faster."""
        mass = np.arange(self.size + 1) * self.mechanism.masses[0]
        lifts = np.rint(LIFT_UNIT / (1.0 + self._byte_masses[1] * mass)).astype(np.int64)
        return None if np.ptp(self.mechanism.masses) else lifts

    def _base_lifts(self, words: Words, work: int) -> tuple[Words32, Ints]:
        """The half words of the reports (reports last), and the base lifts of the reports in units of `2**-30`.

        Reports are read byte by byte: a table has the mass of every value of every byte, another one collects counts
        and lifts by value of a byte, and only at the end are bytes resolved into bits. So a report costs two steps
        for every eight values.
        """
        rows = words.view(np.uint32)[:, : -(-self.size // 32)]
        if self._base_lifts_by_ones is not None:
            # In floats, which multiply fastest.
            ones = np.bitwise_count(words) @ np.ones(self.mechanism.width)
            return rows.T, self._base_lifts_by_ones.take(ones.astype(np.int64), mode="clip")
        halves = rows.T
        if self.mechanism.width >= _CACHE_LINE:
            halves = np.empty((rows.shape[1], len(rows) + _PADDING), dtype=np.uint32)[:, : len(rows)]
            counting_kernels.transpose(rows, halves, work=work)
        lifts = np.empty(len(words), dtype=np.int64)
        counting_kernels.fill_base_lifts(halves, *self._byte_masses, float(LIFT_UNIT), lifts, work=work)
        return halves, lifts

    def people(self, counts: Counts) -> float:
        """The first entry."""
        return counts[0]  # type: ignore[no-any-return]

    def expected_counts(self, prior: Array, people: int) -> Array:
        """The average counts, where base lifts have the mean that they have under the prior of the tally.

        A base lift has the mean `1 / (1 + c share)`, and `share` times that where one bit is set.
        """
        law, lift = self.law, LIFT_UNIT / self.law.scale
        each = np.concatenate([[1.0, lift], set_chances(law, prior), np.full(self.size, law.share * lift)])
        return people * each

    # -- single reports ------------------------------------------------------------------------------------

    def _bits(self, reports: Words) -> npt.NDArray[np.uint8]:
        """The bits of the reports, a column for each value."""
        return np.unpackbits(reports.view(np.uint8), axis=1, count=self.size, bitorder="little")

    def likelihood_rows(self, reports: npt.NDArray[Any]) -> Array:
        """The odds where the bit of a value is set, and one where it is not."""
        return np.where(self._bits(reports), self.law.odds, 1.0)

    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """The histogram of each report, times the rows."""
        self._require_information()
        histograms = self.unbiased_histograms(reports)
        return histograms if rows is None else np.asarray(histograms @ rows.T)

    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """The mean squares of sums of bits, from the law of the bits."""
        self._require_information()
        return bit_covariances.ones_squares(self.law, np.eye(self.size) if rows is None else rows)

    def unbiased_histograms(self, reports: Words) -> Array:
        """What each report adds to the unbiased histogram: its bits, less what the noise adds on average."""
        return np.asarray((self._bits(reports) - self.law.q) / self.law.contrast)

    # -- answers -------------------------------------------------------------------------------------------

    @property
    def reads_whole_reports(self) -> bool:
        """Whether posteriors under the prior of the tally use whole reports, not only each value's own bit."""
        return True

    def adds_up(self, method: str, prior: Array) -> bool:
        """True, unless posteriors are those of single bits."""
        return method != "mmse" or (self.reads_whole_reports and self.fits(prior))

    def posterior_answers(self, counts: Counts, prior: Array) -> list[LinearAnswer]:
        """One answer: given whole reports under the prior of the tally, given single bits under any other."""
        parts = self.bit_counts(counts)
        if not self.adds_up("mmse", prior):
            if_set, if_clear = bit_covariances.single_bit_posteriors(self.law, prior)
            histogram = parts.ones * if_set + (parts.reports - parts.ones) * if_clear
            form = bit_covariances.bitwise_form(self.law, prior)
            return [LinearAnswer(histogram, parts.reports, (form,), _BITWISE)]
        form = bit_covariances.posterior_form(self.law, prior)
        return [LinearAnswer(prior * parts.lifts(self.law), parts.reports, (form,))]

    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The answer that inverts the noise of each bit, with the variance of the reports."""
        self._require_information()
        parts = self.bit_counts(counts)
        shares = parts.shares(self.law, prior)
        forms = bit_covariances.ones_form(self.law, shares), centring_form(shares, population)
        return LinearAnswer(parts.unbiased_histogram(self.law), parts.reports, forms)

    def _require_information(self) -> None:
        if not self.identifies():
            raise not_identifiable()

    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution under which the counts of ones are most likely."""
        return most_likely_ones(self.law, self.bit_counts(counts))

    def bit_counts(self, counts: Counts) -> BitCounts:
        """The parts of an array of counts, lifts as numbers."""
        if counts.shape != (2 * self.size + 2,):
            raise InvalidInput("counts", counts.shape, f"give the {2 * self.size + 2} numbers of a tally")
        ones, lifts = counts[2:].reshape(2, self.size).astype(np.float64)
        return BitCounts(float(counts[0]), ones, float(counts[1]) / LIFT_UNIT, lifts / LIFT_UNIT)

    # -- what is to be expected ----------------------------------------------------------------------------

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution: yes, unless they are pure noise."""
        return self.mechanism.odds > 1

    def prior_test(self, prior: Array, reports: float) -> ScoreTest | None:
        """The test of the counts of ones."""
        law = self.law
        variance = set_chances(law, prior) - law.t - 2 * law.u * prior
        factors = bit_covariances.covariance_factors(law, prior)
        return bits_test(law.contrast, variance, factors, prior, reports)

    def tested_sums(self, counts: Counts, prior: Array) -> Array:
        """The counts of ones, less their means under the prior."""
        parts = self.bit_counts(counts)
        return np.asarray(parts.ones - parts.reports * set_chances(self.law, prior))

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person of the estimate that `answer` gives."""
        P = prior.probabilities
        if query.criterion is Criterion.WRONG_GUESSES:
            return max(0.0, query.ceiling(prior) - bit_covariances.guess_gain(self.law, P))
        if not query.linear:
            return None
        rows = query.centred_rows(prior)
        if query.unbiased and rows is None:
            return self.learning_error(P)
        if query.unbiased:
            counts = self.expected_counts(P, 1)
            return float(self.answer("unbiased", counts, P, rows, population=True).variance.sum())
        form = bit_covariances.posterior_form if self.reads_whole_reports else bit_covariances.bitwise_form
        return max(0.0, float(form(self.law, P).variances(rows).sum()))

    def learning_error(self, P: Array) -> float:
        """N times the variance of the unbiased distribution, summed over the values."""
        return bit_covariances.ones_variance(self.law, P)


class UnaryReader(BitReader[Unary]):
    """Reads unary encoding."""

    reads = Unary

    def adds_up(self, method: str, prior: Array) -> bool:
        """False for the method unbiased: the numbers of set bits differ."""
        return method != "unbiased" and super().adds_up(method, prior)

    def balanced_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The unbiased answer made to add up to the reports: to first order at the prior, the most likely answer.

        With `w` in proportion to `s (1 - s)` at the prior, adding up to one, it is `n - w (sum of n - N)`, which is
        unbiased too; the noise of the bits of a report is independent, so its variances are those of weighted sums.
        """
        self._require_information()
        law, parts = self.law, self.bit_counts(counts)
        N, share, n = parts.reports, parts.shares(law, prior), parts.unbiased_histogram(law)
        noise = N * (share * law.p * (1 - law.p) + (1 - share) * law.q * (1 - law.q)) / law.contrast**2
        chances = set_chances(law, prior)
        w = chances * (1 - chances) / float((chances * (1 - chances)).sum())
        left, right = np.stack([noise, w, share]), np.stack([w, w, share])
        weights = np.array([-2.0, noise.sum(), -N * population])
        form = QuadraticForm(noise + population * N * share, left, right, weights)
        return LinearAnswer(n - w * (n.sum() - N), 1.0, (form,))


class SubsetReader(BitReader[Subset]):
    """Reads subsets: by their lifts, if there are few enough values that these say more than the ones."""

    reads = Subset

    @cached_property
    def uses_lifts(self) -> bool:
        """Whether answers use the lifts; otherwise they use the counts of ones, which then say nearly the same."""
        proper = 1 < self.mechanism.subset_size < self.size - 1
        return proper and self.size <= MOST_BY_LIFTS and bool(np.ptp(self.mechanism.masses))

    @property
    def _inverse(self) -> Array:
        """The inverse of the information of a report."""
        return _inverse_information(self.law, self.lift_prior.tobytes())

    @property
    def reads_whole_reports(self) -> bool:
        """Whether there are few enough values to compute the expected error of posteriors."""
        return self.size <= MOST_BY_LIFTS

    def unbiased_histograms(self, reports: Words) -> Array:
        """What each report adds to the unbiased histogram: `J^-1 r`, `r` its lifts, or by its bits."""
        if not self.uses_lifts:
            return super().unbiased_histograms(reports)
        likelihood = self.likelihood_rows(reports)
        lifts = likelihood / (likelihood @ self.lift_prior)[:, None]
        return np.asarray(lifts @ self._inverse)

    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """The mean squares of the scores by lifts, or by bits."""
        if not self.uses_lifts:
            return super().square_rows(prior, rows)
        self._require_information()
        through = self._inverse if rows is None else rows @ self._inverse
        return bit_covariances.lift_squares(self.law, self.lift_prior, through)

    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The sum of `J^-1 r` over the reports, `r` their lifts; or the answer from the counts of ones."""
        if not self.uses_lifts:
            return super().unbiased_answer(counts, prior, rows, population)
        self._require_information()
        parts = self.bit_counts(counts)
        shares = parts.shares(self.law, self.lift_prior)
        squares = bit_covariances.lift_form(self.law, self.lift_prior, shares)._replace(through=self._inverse)
        forms = squares, centring_form(shares, population)
        return LinearAnswer(self._inverse @ parts.lifts(self.law), parts.reports, forms)

    def learning_error(self, P: Array) -> float:
        """N times the variance of the unbiased distribution, summed over the values."""
        if not self.uses_lifts:
            return super().learning_error(P)
        return float(np.trace(np.linalg.inv(bit_covariances.subset_information(self.law, P))) - P @ P)


@lru_cache(maxsize=4)  # each has at most 8 MB; for all plans together
def _inverse_information(law: BitLaw, prior: bytes) -> Array:
    information = bit_covariances.subset_information(law, np.frombuffer(prior))
    return np.asarray(np.linalg.inv(information), dtype=np.float64)


# -- answers from the counts of bits -----------------------------------------------------------------------


class BitCounts(NamedTuple):
    """A tally of rows of bits: how many, ones per value, and the sums of base lifts (of all, and per set bit)."""

    reports: float
    ones: Array
    base_lift: float
    base_lift_if_set: Array

    def lifts(self, law: BitLaw) -> Array:
        """The sum of the lifts of every value, under the prior of the tally."""
        return np.asarray(self.base_lift + (law.odds - 1) * self.base_lift_if_set)

    def unbiased_histogram(self, law: BitLaw) -> Array:
        """`(ones - N q) / (p - q)`: the ones, less what the noise adds on average."""
        return np.asarray((self.ones - self.reports * law.q) / law.contrast)

    def shares(self, law: BitLaw, P: Array) -> Array:
        """A distribution for variances: near the unbiased one, and never so far from `P` that no noise is left."""
        N = self.reports or 1.0
        ones = shrink(self.ones, max(N, 0.0) * set_chances(law, P))
        return nearest_shares((ones / N - law.q) / law.contrast, np.ones_like(P))


def most_likely_ones(law: BitLaw, counts: BitCounts) -> Minimum:
    """The distribution that makes the counts of ones most likely, as if every bit came from another person.

    With a share `n` of ones the log-likelihood of a bit has the slope `n / s - (1 - n) / (1 - s)` in its chance `s`. At
    the maximum all slopes are one number `t`, or below it for values that nobody has. Shares fall as `t` grows, so
    bisection finds the `t` at which they add up to one.
    """
    n = counts.ones / (counts.reports or 1.0) if counts.reports else np.full(len(counts.ones), 0.5)
    q, contrast = law.q, law.contrast

    def shares(t: float) -> Array:
        # The root of `t s**2 - (t + 1) s + n` between zero and one, without cancellation.
        root = np.sqrt(np.maximum((t + 1) ** 2 - 4 * t * n, 0.0))
        chances = 2 * n / (t + 1 + root) if t > -1 else (t + 1 - root) / (2 * t)
        return np.maximum((chances - q) / contrast, 0.0)

    low, high, rounds = -2.0, 2.0, 0
    while shares(low).sum() < 1:
        low *= 2
    while shares(high).sum() > 1:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        rounds += 1
        if shares(middle).sum() > 1:
            low = middle
        else:
            high = middle
    p = shares(high) / shares(high).sum()
    chances = set_chances(law, p)
    slopes = contrast / len(p) * (n / chances - (1 - n) / (1 - chances))
    return Minimum(p, rounds, float(slopes.max() - p @ slopes))


def sum_by_bit(by_byte: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Sums by place and value of a byte, as sums over the bytes that have a bit set, for every bit."""
    return np.asarray(by_byte.reshape(-1, 256) @ _BITS_OF_BYTES.astype(by_byte.dtype)).reshape(-1)[:size]

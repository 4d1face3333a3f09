"""Reports of bits, from unary encoding and from subsets: counts, closed forms, answers and the check of the prior."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import priorveil as pv
from kernels_here import needs_numba
from priorveil.certify import TOTAL
from priorveil.errors import ForeignReport, NotIdentifiable
from priorveil.mechanisms import kernels
from priorveil.mechanisms.bit_law import subset_law, unary_law
from priorveil.mechanisms.randomness import GeneratorSource, SystemSource
from priorveil.mechanisms.unary import Unary
from priorveil.reading import bit_reader as bits_module
from priorveil.reading.bit_covariances import (
    exponential_sum,
    guess_gain,
    lift_form,
    posterior_form,
    subset_information,
)
from priorveil.reading.families import reader_of
from priorveil.reading.linear_answers import channel_inversion, channel_posteriors
from references import bitwise_gain, clearing, report_bits, subset_selection_matrix
from refusals import raises
from sample_mechanisms import sample_subset, sample_unary

# -- counting ----------------------------------------------------------------------------------------------


@needs_numba
@pytest.mark.parametrize("even", [False, True], ids=["uneven", "even"])
@pytest.mark.parametrize("size", [2, 63, 64, 65, 83, 200])
def test_compiled_and_numpy_count_alike(size: int, even: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below, at and above the size of a word."""
    unary, rng = sample_unary(size, even), np.random.default_rng(9)
    reports = unary.sample(rng.integers(0, size, 3000), GeneratorSource(rng))
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1)
    counts = reader_of(unary).count(reports)
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1 << 60)
    np.testing.assert_array_equal(counts, reader_of(unary).count(reports))


@pytest.mark.parametrize("even", [False, True], ids=["uneven", "even"])
@pytest.mark.parametrize("size", [30, 83, 130, 700])
def test_counts_and_base_lifts_are_those_of_the_definition(
    size: int, even: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written out bit by bit; the compiled loops where there are any, and blocks that end anywhere."""
    unary, rng = sample_unary(size, even), np.random.default_rng(19)
    reports = unary.sample(rng.integers(0, size, 1000), GeneratorSource(rng))
    bits = report_bits(unary, reports).astype(np.int64)
    slope = float((unary.odds - 1) / int(unary.masses.sum()))
    lifts = np.rint(bits_module.LIFT_UNIT / (1 + slope * (bits @ unary.masses))).astype(np.int64)
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1)
    monkeypatch.setattr(bits_module, "_BLOCK_WORDS", 100)
    monkeypatch.setattr(bits_module, "_MOST_SHARED", 333)
    expected = [1000, lifts.sum(), *bits.sum(axis=0), *(lifts @ bits)]
    np.testing.assert_array_equal(reader_of(unary).count(reports), expected)


def sample_reports(size: int, people: int, seed: int) -> tuple[Unary, np.ndarray, np.ndarray, np.ndarray]:
    unary, rng = sample_unary(size), np.random.default_rng(seed)
    codes = rng.choice(size, people, p=reader_of(unary).lift_prior)
    return unary, reader_of(unary).lift_prior, codes, unary.sample(codes, GeneratorSource(rng))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 500), max_size=4))
def test_tallies_of_parts_add_up_exactly(cuts: list[int]) -> None:
    unary, _, _, reports = sample_reports(70, 500, 14)
    parts = np.split(reports, sorted(cuts))
    np.testing.assert_array_equal(
        sum(reader_of(unary).count(part) for part in parts), reader_of(unary).count(reports)
    )


def test_foreign_reports_are_refused() -> None:
    unary, subset = sample_unary(70), sample_subset(70, 3)
    beyond = np.array([[0, 0], [0, 1 << 6]], dtype=np.uint64)
    for weights in (None, np.ones(2)):
        with raises(ForeignReport, argument="reports[1]"):
            reader_of(unary).count(beyond, weights)
    too_few = np.array([[0b111, 0], [0b11, 0]], dtype=np.uint64)
    with raises(ForeignReport, argument="reports[1]"):
        reader_of(subset).count(too_few)
    with raises(ForeignReport, argument="reports"):
        reader_of(unary).count(np.zeros((2, 3), dtype=np.uint64))


def test_the_advice_for_hexadecimal_reports_works() -> None:
    """JavaScript writes reports so."""
    unary = sample_unary(70)
    reports = [row.tobytes().hex() for row in unary.sample(np.arange(5), SystemSource())]
    with raises(ForeignReport, argument="reports") as caught:
        reader_of(unary).count(reports)
    words = eval(caught.value.advice.rpartition("rows by ")[2])
    assert reader_of(unary).count(words)[0] == 5


# -- closed forms ------------------------------------------------------------------------------------------


def gains_of_all_reports(
    P: np.ndarray, q01: float, R: float, values: np.ndarray
) -> tuple[float, float, float]:
    """Histogram, sum and guess gain, by listing all reports."""
    bits = np.array(list(product((0, 1), repeat=P.size)))
    noise = np.prod(np.where(bits, q01, 1 - q01), axis=1)
    likelihood = noise[:, None] * clearing(q01, R) / (1 - q01) * np.where(bits, R, 1.0)
    law = likelihood @ P
    posterior = P * likelihood / law[:, None]
    return (
        float(law @ (posterior**2).sum(axis=1)),
        float(law @ (posterior @ values) ** 2),
        float(law @ posterior.max(axis=1)),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.floats(0.001, 0.999), st.floats(0.0, 12.0), st.integers(0, 2**32))
def test_the_integral_is_the_sum_over_all_reports(size: int, q01: float, log_odds: float, seed: int) -> None:
    rng, R = np.random.default_rng(seed), float(np.exp(log_odds))
    P = rng.dirichlet(np.full(size, 0.5)) + 1e-9
    P /= P.sum()
    values = rng.normal(size=size)
    histogram, total, guess = gains_of_all_reports(P, q01, R, values)
    law = unary_law(R, q01)
    assert 1 - posterior_form(law, P).variances(None).sum() == pytest.approx(histogram, rel=1e-11)
    assert values**2 @ P - posterior_form(law, P).variances(values[None])[0] == pytest.approx(
        total, rel=1e-10, abs=1e-13
    )
    assert guess_gain(law, P) == pytest.approx(guess, rel=1e-11)
    assert bitwise_gain(P, q01, R) <= histogram + 1e-12


@given(st.floats(0.0, 28.0), st.floats(0.0, 1.0), st.sampled_from([1, 2]))
def test_powers_are_sums_of_exponentials(log_most: float, share: float, power: int) -> None:
    D = float(np.exp(log_most * share))
    nodes, weights = exponential_sum(1.0, float(np.exp(log_most)), power)
    assert D**power * float(weights @ np.exp(-nodes * D)) == pytest.approx(1, abs=3e-14 * 30 ** (power - 1))


@pytest.mark.parametrize(
    ("size", "members", "epsilon"), [(9, 3, 1.0), (10, 2, 3.0), (8, 5, 0.3), (7, 2, 7.0)]
)
def test_information_is_that_of_all_subsets(size: int, members: int, epsilon: float) -> None:
    P, odds = pv.Prior.zipf(size).probabilities, math.exp(epsilon)
    law = subset_law(odds, size, members)
    Q = subset_selection_matrix(size, epsilon, members)
    lifts = Q / (P @ Q)
    J = subset_information(law, P)
    np.testing.assert_allclose(J, lifts @ Q.T, rtol=1e-9)
    rows = np.random.default_rng(1).normal(size=(3, size))
    for x, one in enumerate(np.eye(size)):
        form, products = lift_form(law, P, one), (rows @ lifts * Q[x]) @ (rows @ lifts).T
        np.testing.assert_allclose(form.covariance(rows), products, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(form.variances(rows), np.diag(products), rtol=1e-6)


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(np.arange(6.0) ** 2), pv.Guess()])
@pytest.mark.parametrize(("members", "epsilon"), [(1, 1.0), (2, 0.2), (3, 1.0), (3, 4.0), (5, 2.0)])
def test_errors_are_those_of_the_written_out_channel(query: pv.Query, members: int, epsilon: float) -> None:
    subset = sample_subset(6, members, epsilon)
    for prior in (pv.Prior.zipf(6), pv.Prior([0.05, 0.3, 0.1, 0.2, 0.25, 0.1])):
        assert reader_of(subset).error(query, prior) == pytest.approx(
            query.error(pv.Channel(subset.matrix), prior), rel=1e-9
        )


@pytest.mark.parametrize("epsilon", [2.0, 9.0])
def test_errors_on_large_domains_are_those_of_the_estimates(epsilon: float) -> None:
    """Read bit by bit, whether larger sets are best or, at a level of nine, sets of one value."""
    prior, rng = pv.Prior.zipf(1500), np.random.default_rng(5)
    plan = pv.design(prior, epsilon, pv.Histogram(), notion=pv.LDP(), method="subset")
    assert (plan.mechanism.subset_size == 1) == (epsilon == 9.0)
    people = rng.choice(1500, 20_000, p=prior.probabilities)
    estimate = plan.estimate(plan.tally(plan.privatize(people, rng)))
    off = estimate.values - np.bincount(people, minlength=1500)
    assert float((off**2).sum()) / 20_000 == pytest.approx(plan.expected_mse, rel=0.15)


# -- answers -----------------------------------------------------------------------------------------------


def test_tallies_say_what_the_reports_say() -> None:
    unary, P, _, reports = sample_reports(83, 2000, 12)
    counts = reader_of(unary).count(reports)
    bits = report_bits(unary, reports).astype(float)
    posterior = P * np.where(bits > 0, float(unary.odds), 1.0)
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(counts[2 : 2 + unary.size], bits.sum(axis=0))
    joint = reader_of(unary).answer("mmse", counts, P, None, False).mean
    np.testing.assert_allclose(joint, posterior.sum(axis=0), rtol=1e-6)
    values = np.arange(83.0)
    weights = np.random.default_rng(13).normal(size=2000)
    answer = (
        reader_of(unary)
        .answer("mmse", reader_of(unary).count(reports, weights), P, values[None], False)
        .mean[0]
    )
    assert answer == pytest.approx(weights @ posterior @ values, rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["mmse", "other prior", "unbiased", "mle"])
def test_errors_of_unary_encoding_are_what_the_variances_say(method: str) -> None:
    """Forty campaigns of 4,000 people: the mean squared z-score is one within 14 % (4 sd of its error)."""
    rng = np.random.default_rng(16)
    unary = Unary(np.arange(10, 50), noise=3, noise_bits=3, drop=TOTAL // 5)
    P = reader_of(unary).lift_prior
    squares = []
    for _ in range(40):
        codes = rng.choice(P.size, 4000, p=P)
        counts = reader_of(unary).count(unary.sample(codes, GeneratorSource(rng)))
        prior = P * (1 + 1e-6 * np.arange(P.size)) if method == "other prior" else P
        answer = reader_of(unary).answer(
            "mmse" if method == "other prior" else method, counts, prior / prior.sum(), None, False
        )
        truth = np.bincount(codes, minlength=P.size)
        squares.append((answer.mean - truth) ** 2 / answer.variance)
    mean = np.mean(squares)
    assert mean < 1.14 and (method == "mle" or mean > 0.86)


@pytest.mark.statistical
@pytest.mark.parametrize("shift", [0.0, 1e-6])
def test_sums_have_their_variance(shift: float) -> None:
    """Three hundred campaigns: the mean squared z-score is one within 0.3 (3.7 sd of its error)."""
    rng, values = np.random.default_rng(17), np.arange(12.0) ** 2
    unary = Unary(np.arange(1, 13), noise=3, noise_bits=3, drop=TOTAL // 5)
    P = reader_of(unary).lift_prior
    prior = P * (1 + shift * np.arange(12))
    squares = []
    for _ in range(300):
        codes = rng.choice(12, 500, p=P)
        counts = reader_of(unary).count(unary.sample(codes, GeneratorSource(rng)))
        for method in ("mmse", "unbiased"):
            answer = reader_of(unary).answer(method, counts, prior / prior.sum(), values[None], False)
            squares.append((float(answer.mean[0]) - values[codes].sum()) ** 2 / float(answer.variance[0]))
    for start in (0, 1):
        assert abs(np.mean(squares[start::2]) - 1) < 0.3


@pytest.mark.parametrize("method", ["mmse", "unbiased"])
@pytest.mark.parametrize("rows", [None, np.array([[0.0, 1.0, 2.0, 5.0, 9.0, 3.0, 1.0]])])
def test_estimates_are_those_of_the_written_out_channel(method: str, rows: np.ndarray | None) -> None:
    """The tally has few numbers, but says as much as the counts of all subsets."""
    subset, rng = sample_subset(7, 3), np.random.default_rng(2)
    P = reader_of(subset).lift_prior
    reports = subset.sample(rng.choice(7, 20_000, p=P), GeneratorSource(rng))
    subsets = sorted(sum(1 << x for x in chosen) for chosen in combinations(range(7), 3))
    counts = np.array([np.count_nonzero(reports[:, 0] == y) for y in subsets], dtype=float)
    posteriors = channel_posteriors(counts, subset.matrix, P)
    inversion = channel_inversion(counts, subset.matrix, P, rows, True)
    expected = (posteriors if method == "mmse" else inversion).moments(rows)
    answer = reader_of(subset).answer(method, reader_of(subset).count(reports), P, rows, True)
    np.testing.assert_allclose(answer.mean, expected.mean, rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(answer.variance, expected.variance, rtol=0.05)


@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
def test_estimates_from_subsets_spread_as_they_say(method: str) -> None:
    """Under another prior than that of the tally, and for a sum: the closed forms from the ones."""
    subset, rng, values = sample_subset(12, 4), np.random.default_rng(21), np.arange(12.0)[None] ** 1.5
    law = np.linspace(1, 3, 12) / np.linspace(1, 3, 12).sum()
    off, spreads = [], []
    for _ in range(400):
        codes = rng.choice(12, 800, p=law)
        counts = reader_of(subset).count(subset.sample(codes, GeneratorSource(rng)))
        answer = reader_of(subset).answer(method, counts, law, values, False)
        off.append(float(answer.mean[0]) - float(values[0, codes].sum()))
        spreads.append(float(answer.variance[0]))
    z = np.array(off) / np.sqrt(np.mean(spreads))
    assert abs(z.mean()) < 4 / math.sqrt(400)
    assert 0.86 < z.std() < 1.14  # four standard errors


def test_a_report_that_says_nothing_identifies_nothing() -> None:
    silent = Unary(np.array([1, 1]), noise=1, noise_bits=1, drop=TOTAL // 2)
    reader = reader_of(silent)
    assert silent.odds == 1 and not reader.identifies()
    counts = reader.count(silent.sample([0, 1], SystemSource()))
    with pytest.raises(NotIdentifiable):
        reader.answer("unbiased", counts, np.array([0.5, 0.5]), None, False)


# -- the check of the prior --------------------------------------------------------------------------------


@pytest.mark.statistical
def test_the_prior_check_of_unary_encoding_is_uniform_and_fires() -> None:
    """P-values of 300 campaigns pass a Kolmogorov test (false alarm 1e-4); a wrong prior gives tiny ones."""
    rng = np.random.default_rng(18)
    unary = Unary(np.arange(1, 13), noise=3, noise_bits=3, drop=TOTAL // 5)
    P = reader_of(unary).lift_prior
    p_values = []
    for _ in range(300):
        counts = reader_of(unary).count(unary.sample(rng.choice(12, 800, p=P), GeneratorSource(rng)))
        p_values.append(reader_of(unary).prior_check(counts, P).p_value)
    assert kstest(p_values, "uniform").pvalue > 1e-4
    counts = reader_of(unary).count(unary.sample(rng.choice(12, 20_000, p=P[::-1]), GeneratorSource(rng)))
    assert reader_of(unary).prior_check(counts, P).p_value < 1e-6
    assert reader_of(unary).prior_check(reader_of(unary).count(unary.sample([0], SystemSource())), P) is None


def test_the_prior_check_of_subsets_is_quiet_for_the_prior_and_fires_for_another() -> None:
    subset, rng = sample_subset(12, 4), np.random.default_rng(5)
    P = reader_of(subset).lift_prior
    checks = [
        reader_of(subset).prior_check(
            reader_of(subset).count(subset.sample(rng.choice(12, 800, p=P), GeneratorSource(rng))), P
        )
        for _ in range(400)
    ]
    assert 0.006 < np.mean([check.p_value < 0.05 for check in checks if check is not None]) < 0.094
    counts = reader_of(subset).count(subset.sample(rng.choice(12, 20_000, p=P[::-1]), GeneratorSource(rng)))
    fired = reader_of(subset).prior_check(counts, P)
    assert fired is not None and fired.p_value < 1e-6

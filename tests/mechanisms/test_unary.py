"""Unary encoding: its exact law, its packed reports, and its designs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from kernels_here import needs_numba
from priorveil import LIP, Histogram
from priorveil.certify import TOTAL, Lifts, keeps_budget
from priorveil.designs.encodings import best_unary, largest_odds, unary_on_curve
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms import kernels
from priorveil.mechanisms.bit_law import unary_law
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource
from priorveil.mechanisms.unary import Unary, smallest_mass
from priorveil.priors import Budget, Prior, PriorSet
from priorveil.reading.bit_covariances import posterior_form
from priorveil.reading.families import reader_of
from references import bitwise_gain
from sample_mechanisms import sample_unary

SMALL = Unary(np.array([5, 2, 9]), noise=3, noise_bits=3, drop=TOTAL // 5)
SIZES = (2, 63, 64, 65, 83, 200)


def exact_law(unary: Unary, code: int) -> dict[int, Fraction]:
    """The probability of every report as a number, from the definition: independent bits."""
    q01, q10 = unary.flips
    law = {}
    for bits in product((0, 1), repeat=unary.size):
        chance = Fraction(1)
        for x, bit in enumerate(bits):
            one = 1 - q10 if x == code else q01
            chance *= one if bit else 1 - one
        law[sum(bit << x for x, bit in enumerate(bits))] = chance
    return law


def test_noise_has_its_probability_in_every_bit_whatever_the_words() -> None:
    """All 2**bits patterns of one bit position, counted: exactly `noise` of them set it."""
    for bits in (1, 2, 3, 5):
        patterns = np.array(list(product((0, 1), repeat=bits)), dtype=np.uint64)
        for noise in range(1, 1 << bits):
            assert int(kernels.mix_noise(patterns, noise, bits, np.uint64(1)).sum()) == noise


def test_the_law_is_exact_on_a_tiny_mechanism() -> None:
    """All words that matter, counted: three bits of three levels, and both sides of the threshold."""
    levels = np.array(list(product(range(8), repeat=3)), dtype=np.uint64)
    keep = TOTAL - SMALL.drop
    for code in range(3):
        counted: dict[int, Fraction] = {}
        for draw, share in ((keep - 1, Fraction(keep, TOTAL)), (keep, Fraction(SMALL.drop, TOTAL))):
            own = np.full((len(levels), 1), draw << 2, dtype=np.uint64)
            data = np.hstack([levels, own]).tobytes()
            for report in SMALL.sample(np.full(len(levels), code), BytesSource(data))[:, 0].tolist():
                counted[report] = counted.get(report, Fraction(0)) + share / 512
        assert counted == exact_law(SMALL, code)


def test_the_written_out_channel_is_the_law() -> None:
    Q = SMALL.matrix
    for code in range(3):
        law = exact_law(SMALL, code)
        np.testing.assert_allclose(Q[code], [float(law[y]) for y in range(8)], rtol=1e-12)
    with pytest.raises(TooLarge):
        _ = sample_unary(83).matrix


def test_extremes_are_those_of_the_whole_channel() -> None:
    prior = Prior.from_counts([5, 2, 9])
    laws = [exact_law(SMALL, code) for code in range(3)]
    P = [Fraction(5, 16), Fraction(2, 16), Fraction(9, 16)]
    lifts = [
        laws[x][y] / sum(p * law[y] for p, law in zip(P, laws, strict=True))
        for x in range(3)
        for y in laws[0]
    ]
    found = SMALL.lifts(prior, None, LIP())
    assert (found.lowest, found.highest) == (min(lifts), max(lifts))
    assert found.ldp == max(a[y] / b[y] for a in laws for b in laws for y in a)


@needs_numba
@pytest.mark.parametrize("even", [False, True], ids=["uneven", "even"])
@pytest.mark.parametrize("size", SIZES)
def test_compiled_and_numpy_agree_bit_for_bit(size: int, even: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    unary, rng = sample_unary(size, even), np.random.default_rng(9)
    codes, data = rng.integers(0, size, 3000), rng.bytes(8 * 3000 * unary.draws_per_report)
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1)
    reports = unary.sample(codes, BytesSource(data))
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1 << 60)
    np.testing.assert_array_equal(reports, unary.sample(codes, BytesSource(data)))


@pytest.mark.parametrize("size", SIZES)
def test_bulk_and_scalar_use_the_same_words(size: int) -> None:
    unary, rng = sample_unary(size), np.random.default_rng(10)
    codes, data = rng.integers(0, size, 50), rng.bytes(8 * 50 * unary.draws_per_report)
    source = BytesSource(data)
    scalar = np.array([unary.sample_one(int(x), source) for x in codes])
    np.testing.assert_array_equal(unary.sample(codes, BytesSource(data)), scalar)
    assert source.used == len(data)


@pytest.mark.statistical
def test_the_law_is_accepted_and_one_percent_off_in_one_entry_is_not() -> None:
    """Four million reports of three bits; false alarm 1e-4 for either decision."""
    reports = SMALL.sample(np.zeros(4_000_000, dtype=np.int64), GeneratorSource(np.random.default_rng(11)))
    counts = np.bincount(reports[:, 0].astype(np.int64), minlength=8)
    law = SMALL.matrix[0]
    assert chisquare(counts, counts.sum() * law).pvalue > 1e-4
    off = law.copy()
    off[np.argmax(law)] *= 1.01
    assert chisquare(counts, counts.sum() * off / off.sum()).pvalue < 1e-4


def test_parameters_read_back() -> None:
    unary = sample_unary(83)
    again = Unary.read(unary.parameters())
    data = np.random.default_rng(15).bytes(8 * 10 * unary.draws_per_report)
    np.testing.assert_array_equal(
        unary.sample(np.arange(10), BytesSource(data)), again.sample(np.arange(10), BytesSource(data))
    )
    assert again.parameters() == unary.parameters()


def test_what_is_refused() -> None:
    unary = sample_unary(70)
    beyond = np.zeros((2, 2), dtype=np.uint64)
    beyond[1, 1] = 1 << 6
    assert unary.accepts(beyond).tolist() == [True, False]
    with pytest.raises(InvalidInput):
        Unary(np.array([1, 1]), noise=4, noise_bits=2, drop=1)
    with pytest.raises(InvalidInput):
        Unary(np.array([1, 1]), noise=3, noise_bits=2, drop=TOTAL - 1)
    with pytest.raises(InvalidInput):
        Unary(np.array([1, 0]), noise=1, noise_bits=2, drop=1)
    silent = Unary(np.array([1, 1]), noise=1, noise_bits=1, drop=TOTAL // 2)
    with pytest.raises(Infeasible):
        silent.lifts(Prior([0.5, 0.5]), object(), LIP())  # type: ignore[arg-type]


# -- designs ----------------------------------------------------------------------------------------------


def best_within(prior: Prior | PriorSet, budget: Budget) -> Unary:
    """The best unary encoding for a histogram within a LIP budget."""
    odds = largest_odds(budget, smallest_mass(prior), 1 - smallest_mass(prior))
    return best_unary(prior.centre, odds, Histogram())


def test_figures_of_the_published_mechanism() -> None:
    """UE-LIP as printed (q10 = 1/2, bit by bit): 0.869 and 0.885; the best point, read jointly, is better."""
    for prior, epsilon, printed in ((Prior.uniform(83), 4.0, 0.869), (Prior.zipf(83), 2.0, 0.885)):
        design = best_within(prior, Budget(epsilon))
        R = float(largest_odds(Budget(epsilon), smallest_mass(prior), 1 - smallest_mass(prior)))
        assert 1 - bitwise_gain(prior.probabilities, 1 / (1 + R), R) == pytest.approx(printed, abs=1e-3)
        assert (reader_of(design).error(Histogram(), prior) or 1.0) < printed - 0.004


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.floats(0.05, 6.0), st.floats(0.05, 6.0), st.integers(0, 2**32))
def test_designs_keep_and_use_their_budget(size: int, lower: float, upper: float, seed: int) -> None:
    prior, budget = random_prior(size, seed), Budget(lower, upper)
    design = best_within(prior, budget)
    lifts = design.lifts(prior, None, LIP())
    assert keeps_budget(lifts, budget)
    tighter = Budget(lower * 0.999, upper * 0.999)
    assert not keeps_budget(lifts, tighter)
    P, R = prior.probabilities, float(design.odds)
    nothing, error = 1 - float(P @ P), posterior_form(design.law, P).variances(None).sum()
    for q01 in np.linspace(0.01, 0.99, 25):
        assert (
            nothing - posterior_form(unary_law(R, q01), P).variances(None).sum()
            <= (nothing - error) * 1.002 + 1e-12
        )


def random_prior(size: int, seed: int) -> Prior:
    P = np.random.default_rng(seed).dirichlet(np.ones(size)) + 1e-4
    return Prior(P / P.sum())


def test_a_set_of_priors_is_certified_for_its_rarest_value() -> None:
    members = PriorSet([Prior([0.3, 0.7]), Prior([0.9, 0.1])])
    design = best_within(members, Budget(1.0))
    R, p = design.odds, smallest_mass(members)
    lowest, highest = 1 / (R - (R - 1) * p), R / (1 + (R - 1) * p)
    assert design.lifts(members, None, LIP()) == Lifts(lowest, highest, R, R)
    assert smallest_mass(members) == min(smallest_mass(Prior([0.3, 0.7])), smallest_mass(Prior([0.9, 0.1])))
    for prior in (Prior([0.3, 0.7]), Prior([0.9, 0.1])):
        assert keeps_budget(design.lifts(prior, None, LIP()), Budget(1.0))


def test_odds_never_exceed_the_limit_and_come_close() -> None:
    for odds in (Fraction(3), Fraction(22, 7), Fraction(10**6, 3)):
        unary = unary_on_curve(np.ones(5, dtype=np.int64), 3, 4, odds)
        assert odds * (1 - Fraction(1, 2**40)) < unary.odds <= odds
    assert best_unary(Prior.uniform(50), Fraction(20), Histogram()).odds <= 20

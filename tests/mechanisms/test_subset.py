"""Subset selection: its exact law, its certificate, and its designs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import priorveil as pv
from kernels_here import needs_numba
from priorveil.certify import TOTAL
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.information import variance
from priorveil.mechanisms import Subset, kernels
from priorveil.mechanisms.randomness import BytesSource
from references import subset_selection_matrix
from sample_mechanisms import sample_subset

SIZES = [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3), (6, 5)]
LDP = pv.LDP()


def words(*numbers: int) -> BytesSource:
    return BytesSource(b"".join(number.to_bytes(8, "little") for number in numbers))


def drawn_law(subset: Subset, code: int) -> dict[int, Fraction]:
    """The law of the report of a value, by running the sampler on every draw: each remainder is equally likely."""
    bounds = range(subset.size - subset.subset_size, subset.size)
    chance = Fraction(subset.keep, TOTAL)
    law: Counter[int] = Counter()
    for coin, weight in ((0, chance), (subset.keep << 2, 1 - chance)):
        for draws in product(*(range(bound) for bound in bounds)):
            report = int(subset.sample_one(code, words(coin, *draws))[0])
            law[report] += weight / math.prod(bounds)
    return dict(law)


@pytest.mark.parametrize(("size", "members"), SIZES)
def test_the_sampled_law_is_the_certified_one_exactly(size: int, members: int) -> None:
    subset = sample_subset(size, members)
    laws = [drawn_law(subset, code) for code in range(size)]
    reports = sorted(sum(1 << x for x in chosen) for chosen in combinations(range(size), members))
    assert all(sorted(law) == reports for law in laws)
    prior = pv.Prior.from_counts([5, 3, 7, 2, 9, 4][:size])
    P = [Fraction(w, prior.total) for w in prior.weights]
    lifts = [
        law[y] / sum(p * other[y] for p, other in zip(P, laws, strict=True)) for law in laws for y in reports
    ]
    ratio = max(one[y] / other[y] for y in reports for one in laws for other in laws)
    found = subset.lifts(prior, None, LDP)
    assert (found.lowest, found.highest, found.ldp) == (min(lifts), max(lifts), ratio)
    assert found.ratio == subset.odds == ratio
    written = np.array([[float(law[y]) for y in reports] for law in laws])
    np.testing.assert_allclose(subset.matrix, written, rtol=1e-14)


def test_a_word_that_would_make_a_draw_uneven_gives_a_report_without_information() -> None:
    subset = sample_subset(6, 3)
    for coin, place in product((0, 2**64 - 1), range(3)):
        draws = [1, 2, 3]
        draws[place] = 2**64 - 1
        uneven = 2**64 % (3 + place) != 0
        reports = {int(subset.sample_one(code, words(coin, *draws))[0]) for code in range(6)}
        assert (reports == {0b111}) == uneven


@needs_numba
@pytest.mark.parametrize(("size", "members"), [(5, 2), (64, 17), (65, 1), (150, 40)])
def test_the_loop_and_its_twin_agree_bit_for_bit(size: int, members: int) -> None:
    subset, rng = sample_subset(size, members), np.random.default_rng(9)
    codes = rng.integers(0, size, 300)
    drawn = rng.integers(0, 2**64, (300, 1 + members), dtype=np.uint64)
    drawn[::7, -1] = 2**64 - 1
    bounds = np.arange(size - members, size, dtype=np.uint64)
    last = np.array([2**64 - 1 - 2**64 % int(bound) for bound in bounds], dtype=np.uint64)
    both = np.zeros((2, 300, subset.width), dtype=np.uint64)
    kernel = kernels.draw_subsets
    compiled = kernels.compile_loop(kernel.loop)
    assert compiled is not None
    compiled(codes, drawn, np.uint64(subset.keep), bounds, last, both[0])
    kernel.twin(codes, drawn, np.uint64(subset.keep), bounds, last, both[1])
    np.testing.assert_array_equal(both[0], both[1])
    assert subset.accepts(both[0]).all()


def test_foreign_reports_and_wrong_parameters_are_refused() -> None:
    subset = sample_subset(70, 3)
    good, beyond = [0b111, 0], [0b11, 1 << 20]
    reports = np.array([good, [0b11, 0], [0b1111, 0], beyond], dtype=np.uint64)
    assert subset.accepts(reports).tolist() == [True, False, False, False]
    for size, keep in ((0, TOTAL // 2), (3, TOTAL // 2), (1, 0), (1, TOTAL), (2, TOTAL // 2)):
        with pytest.raises(InvalidInput):
            Subset(np.array([1, 1, 1]), size, keep)
    with pytest.raises(TooLarge):
        _ = subset.matrix
    with pytest.raises(Infeasible):
        subset.lifts(pv.PriorSet.ball(pv.Prior.uniform(70), 0.01), None, LDP)
    again = Subset.read(subset.parameters())
    assert again.parameters() == subset.parameters()


ANCHORS = {18: 59.157, 20: 66.6344, 40: 140.067, 83: 298.372}


@pytest.mark.parametrize("size", ANCHORS)
def test_learning_under_ldp_reaches_subset_selection(size: int) -> None:
    plan = pv.design(pv.Prior.uniform(size), 1.0, pv.Distribution(), notion=LDP)
    assert plan.mechanism.kind == "subset" and plan.expected_mse == pytest.approx(ANCHORS[size], rel=1e-5)
    assert 1 - 1e-12 < plan.certificate.ldp <= 1.0
    assert pv.Plan.from_json(plan.to_json()) == plan


def oue_variance(d: int, e: float) -> float:
    """Optimised unary encoding at a uniform prior, read bit by bit; local hashing has the same to first order."""
    q01, contrast = 1 / (e + 1), 0.5 - 1 / (e + 1)
    ones = q01 + contrast / d
    return d * ones * (1 - ones) / contrast**2


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_learning_under_ldp_is_never_worse_than_what_was_published(epsilon: float) -> None:
    e = math.exp(epsilon)
    for d in [*range(2, 21), 31, 64, 100, 333, 1000]:
        best = pv.design(pv.Prior.uniform(d), epsilon, pv.Distribution(), notion=LDP).expected_mse
        sizes = range(1, d)
        chances = [e * k / (e * k + d - k) for k in sizes]
        published = [
            k * (1 - k / d) / (p - (k - p) / (d - 1)) ** 2 for k, p in zip(sizes, chances, strict=True)
        ]
        assert best <= min(*published, oue_variance(d, e)) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("shape", ["zipf", "peak"])
def test_nor_at_another_prior_with_the_best_size_for_it(shape: str, epsilon: float) -> None:
    for d in (5, 9, 13, 14):
        peak = pv.Prior([0.8, *[0.2 / (d - 1)] * (d - 1)])
        prior = pv.Prior.zipf(d) if shape == "zipf" else peak
        channels = [subset_selection_matrix(d, epsilon, k) for k in range(1, d)]
        published = min(variance(Q, prior.probabilities) for Q in channels)
        plan = pv.design(prior, epsilon, pv.Distribution(), notion=LDP)
        assert plan.expected_mse <= published * (1 + 1e-6)


def test_the_figure_of_83_equal_values() -> None:
    plan = pv.design(pv.Prior.uniform(83), 4.0, pv.Histogram(), notion=LDP, method="subset")
    assert plan.expected_mse == pytest.approx(0.833, abs=5e-4)


def test_a_histogram_of_equal_values_under_ldp_takes_subsets_too() -> None:
    plan = pv.design(pv.Prior.uniform(40), 1.0, pv.Histogram(), notion=LDP)
    unary = pv.design(pv.Prior.uniform(40), 1.0, pv.Histogram(), notion=LDP, method="unary")
    assert plan.method == "subset" and plan.expected_mse < unary.expected_mse and plan.efficiency > 0.99


@pytest.mark.parametrize("budget", [pv.Budget(1.0), pv.Budget(0.5, 2.0), pv.Budget(math.inf, 1.0)])
def test_subsets_under_lip_use_their_whole_budget(budget: pv.Budget) -> None:
    plan = pv.design(pv.Prior.zipf(20), budget, pv.Distribution(), method="subset")
    sides = (plan.certificate.lip_lower, budget.lower), (plan.certificate.lip_upper, budget.upper)
    assert all(level <= limit for level, limit in sides)
    assert any(level > limit - 1e-9 for level, limit in sides)
    assert plan.certificate.ldp > min(budget.lower, budget.upper)


def test_large_domains_are_sampled_read_and_saved() -> None:
    prior, rng = pv.Prior.zipf(5000), np.random.default_rng(4)
    plan = pv.design(prior, 2.0, pv.Distribution(), notion=LDP)
    people = rng.choice(5000, 2000, p=prior.probabilities)
    estimate = plan.estimate(plan.tally(plan.privatize(people, rng)))
    assert estimate.method == "unbiased" and estimate.values.sum() == pytest.approx(2000)
    off = estimate.values - 2000 * prior.probabilities
    assert float((off**2).sum()) / 2000 == pytest.approx(plan.expected_mse, rel=0.1)
    with pytest.raises(Infeasible):
        pv.design(pv.Prior.zipf(40), 2.0, pv.Convex(lambda p: p.max(axis=1)), notion=LDP, method="subset")


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(np.arange(60.0)), pv.Guess()])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_no_published_table_does_better(query: pv.Query, epsilon: float) -> None:
    """Randomised response and small subsets, written out."""
    prior = pv.Prior.zipf(60)
    best = pv.design(prior, epsilon, query, notion=LDP, rounds=5).expected_mse
    for members in (1, 2):
        table = pv.Channel(subset_selection_matrix(60, epsilon, members))
        assert best <= query.error(table, prior) * (1 + 1e-9)


def test_a_set_of_priors_is_certified_at_its_worst_member() -> None:
    """Each side by the definition; the first member is the worst downwards, the second one upwards."""
    members = pv.PriorSet([[0.6, 0.2, 0.1, 0.05, 0.05], [0.38, 0.3, 0.3, 0.01, 0.01], [0.2] * 5])
    mechanism = Subset(np.ones(5, dtype=np.int64), subset_size=2, keep=3 * TOTAL // 4)
    held = [[x in subset for subset in combinations(range(5), 2)] for x in range(5)]
    law = np.where(held, float(mechanism.odds), 1.0)
    lifts = [law / (prior.probabilities @ law) for prior in members.members]
    found = mechanism.lifts(members, None, pv.LIP())
    assert float(found.lowest) == pytest.approx(min(lift.min() for lift in lifts))
    assert float(found.highest) == pytest.approx(max(lift.max() for lift in lifts))

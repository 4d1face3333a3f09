"""Subset selection: its exact law, what its tallies say, how much a report tells, and its designs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import priorveil as pv
from byte_source import BytesSource
from kernels_here import needs_numba
from priorveil.certify import TOTAL
from priorveil.errors import ForeignReport, Infeasible, InvalidInput, TooLarge
from priorveil.information import variance
from priorveil.mechanisms import Subset, kernels
from priorveil.mechanisms.bit_law import subset_law
from priorveil.mechanisms.randomness import GeneratorSource
from priorveil.reading.bit_forms import scored_form, subset_information
from priorveil.reading.linear_answers import channel_answer
from priorveil.reading.readers import reader_of
from references import subset_selection_matrix
from refusals import raises

SIZES = [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3), (6, 5)]
LDP = pv.LDP()


def words(*numbers: int) -> BytesSource:
    return BytesSource(b"".join(number.to_bytes(8, "little") for number in numbers))


def mechanism(size: int, members: int, epsilon: float = 1.0) -> Subset:
    """Subset selection for a prior that falls like Zipf's."""
    odds = math.exp(epsilon)
    masses = (2.0**40 / np.arange(1, size + 1)).astype(np.int64)
    return Subset(masses, members, int(odds * members / (odds * members + size - members) * TOTAL))


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
    subset = mechanism(size, members)
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
    subset = mechanism(6, 3)
    for coin, place in product((0, 2**64 - 1), range(3)):
        draws = [1, 2, 3]
        draws[place] = 2**64 - 1
        uneven = 2**64 % (3 + place) != 0
        reports = {int(subset.sample_one(code, words(coin, *draws))[0]) for code in range(6)}
        assert (reports == {0b111}) == uneven


@needs_numba
@pytest.mark.parametrize(("size", "members"), [(5, 2), (64, 17), (65, 1), (150, 40)])
def test_the_loop_and_its_twin_agree_bit_for_bit(size: int, members: int) -> None:
    subset, rng = mechanism(size, members), np.random.default_rng(9)
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
        found, products = scored_form(law, P, one), (rows @ lifts * Q[x]) @ (rows @ lifts).T
        np.testing.assert_allclose(found.covariance(rows), products, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.variances(rows), np.diag(products), rtol=1e-6)


@pytest.mark.parametrize("method", ["mmse", "unbiased"])
@pytest.mark.parametrize("rows", [None, np.array([[0.0, 1.0, 2.0, 5.0, 9.0, 3.0, 1.0]])])
def test_estimates_are_those_of_the_written_out_channel(method: str, rows: np.ndarray | None) -> None:
    """The tally has few numbers, but says as much as the counts of all subsets."""
    subset, rng = mechanism(7, 3), np.random.default_rng(2)
    P = reader_of(subset).scoring_prior
    reports = subset.sample(rng.choice(7, 20_000, p=P), GeneratorSource(rng))
    listed = sorted(sum(1 << x for x in chosen) for chosen in combinations(range(7), 3))
    counts = np.array([np.count_nonzero(reports[:, 0] == y) for y in listed], dtype=float)
    expected = channel_answer(method, counts, subset.matrix, P, rows, True).moments(rows)
    found = reader_of(subset).answer(method, reader_of(subset).count(reports), P, rows, True)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=0.05)


@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
def test_estimates_spread_as_they_say(method: str) -> None:
    """Under another prior than that of the scores, and for a sum: the closed forms from the ones."""
    subset, rng, values = mechanism(12, 4), np.random.default_rng(21), np.arange(12.0)[None] ** 1.5
    law = np.linspace(1, 3, 12) / np.linspace(1, 3, 12).sum()
    off, spreads = [], []
    for _ in range(400):
        codes = rng.choice(12, 800, p=law)
        counts = reader_of(subset).count(subset.sample(codes, GeneratorSource(rng)))
        found = reader_of(subset).answer(method, counts, law, values, False)
        off.append(float(found.mean[0]) - float(values[0, codes].sum()))
        spreads.append(float(found.variance[0]))
    z = np.array(off) / np.sqrt(np.mean(spreads))
    assert abs(z.mean()) < 4 / math.sqrt(400)
    assert 0.86 < z.std() < 1.14  # four standard errors


def test_the_prior_check_is_quiet_for_the_prior_and_fires_for_another() -> None:
    subset, rng = mechanism(12, 4), np.random.default_rng(5)
    P = reader_of(subset).scoring_prior
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


def test_foreign_reports_and_wrong_parameters_are_refused() -> None:
    subset = mechanism(70, 3)
    good, beyond = [0b111, 0], [0b11, 1 << 20]
    reports = np.array([good, [0b11, 0], [0b1111, 0], beyond], dtype=np.uint64)
    assert subset.accepts(reports).tolist() == [True, False, False, False]
    with raises(ForeignReport, argument="reports[1]"):
        reader_of(subset).count(reports)
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


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(np.arange(6.0) ** 2), pv.Guess()])
@pytest.mark.parametrize(("members", "epsilon"), [(1, 1.0), (2, 0.2), (3, 1.0), (3, 4.0), (5, 2.0)])
def test_errors_are_those_of_the_written_out_channel(query: pv.Query, members: int, epsilon: float) -> None:
    subset = mechanism(6, members, epsilon)
    for prior in (pv.Prior.zipf(6), pv.Prior([0.05, 0.3, 0.1, 0.2, 0.25, 0.1])):
        assert reader_of(subset).error(query, prior) == pytest.approx(
            query.error(pv.Channel(subset.matrix), prior), rel=1e-9
        )


@pytest.mark.parametrize("epsilon", [2.0, 9.0])
def test_errors_on_large_domains_are_those_of_the_estimates(epsilon: float) -> None:
    """Read bit by bit, whether larger sets are best or, at a level of nine, sets of one value."""
    prior, rng = pv.Prior.zipf(1500), np.random.default_rng(5)
    plan = pv.design(prior, epsilon, pv.Histogram(), notion=LDP, method="subset")
    assert (plan.mechanism.subset_size == 1) == (epsilon == 9.0)
    people = rng.choice(1500, 20_000, p=prior.probabilities)
    estimate = plan.estimate(plan.tally(plan.privatize(people, rng)))
    off = estimate.values - np.bincount(people, minlength=1500)
    assert float((off**2).sum()) / 20_000 == pytest.approx(plan.expected_mse, rel=0.15)


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(np.arange(60.0)), pv.Guess()])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_no_published_table_does_better(query: pv.Query, epsilon: float) -> None:
    """Randomised response and small subsets, written out."""
    prior = pv.Prior.zipf(60)
    best = pv.design(prior, epsilon, query, notion=LDP).expected_mse
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

"""Arcs in many public orders: they sample, count and certify as single arcs do, and learn what they say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import priorveil as pv
from byte_source import BytesSource
from priorveil.certify import exp_above, exp_below
from priorveil.errors import Infeasible, InvalidInput, PriorveilError, TooLarge
from priorveil.information import variance, variance_bound
from priorveil.mechanisms import Arc, Orders, kernels
from priorveil.mechanisms.arc.certificate import arc_lifts
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.arc.orders import prime_above, seeds_and_multipliers
from priorveil.mechanisms.randomness import GeneratorSource
from priorveil.reading import counting_kernels, order_information, orders
from priorveil.reading.order_information import OrdersInformation, information_of
from priorveil.reading.prior_check import score_check
from priorveil.reading.readers import reader_of
from references import count_cells, likelihood
from refusals import raises


@cache
def plan(size: int = 40, epsilon: float = 1.0) -> pv.Plan:
    return pv.design(pv.Prior.zipf(size), epsilon, pv.Distribution(), method="arc")


def pool(size: int = 40, epsilon: float = 1.0) -> Orders:
    mechanism = plan(size, epsilon).mechanism
    assert isinstance(mechanism, Orders)
    return mechanism


def line(m: Orders, index: int) -> ArcLine:
    return replace(m.line, order=np.append(m.line.owners, m.circles(np.array([index]))[0]))


def lifts_of(m: Orders, reports: np.ndarray) -> np.ndarray:
    """The lifts of reports, a row each."""
    chances = np.stack([likelihood(m, report) for report in reports.tolist()])
    return np.asarray(chances / (chances @ m.shares)[:, None])


def told(m: Orders, law: np.ndarray, people: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """People drawn from a law: how many of each value, and the tally of their reports."""
    rng = np.random.default_rng(seed)
    values = rng.choice(len(law), people, p=law)
    return np.bincount(values, minlength=len(law)), reader_of(m).count(m.sample(values, GeneratorSource(rng)))


# -- orders ------------------------------------------------------------------------------------------------


def ordered(values: list[int], seed: int, multiplier: int) -> list[int]:
    """The documented rule, in plain integers."""
    step, mask, prime = 0x9E3779B97F4A7C15, (1 << 64) - 1, prime_above(len(values))

    def mixed(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    ranked = sorted(values, key=lambda x: (mixed(seed + (x + 1) * step & mask), x))
    keys = {x: multiplier * (rank + 1) % prime for rank, x in enumerate(ranked)}
    return sorted(values, key=keys.__getitem__)


@pytest.mark.parametrize(("values", "count"), [(1, 8), (2, 8), (30, 4), (30, 15), (30, 64)])
def test_orders_are_spread(values: int, count: int) -> None:
    prime = prime_above(values)
    seeds, multipliers = seeds_and_multipliers(prime, count)
    names = set(zip(seeds.tolist(), multipliers.tolist(), strict=True))
    assert len(names) == count == len(seeds)
    assert multipliers.min() >= 1
    assert multipliers.max() <= max(1, prime // 2)


@pytest.mark.parametrize("size", [5, 12, 40])
def test_a_walk_is_the_order_of_its_name(size: int) -> None:
    m = pool(size)
    light = np.setdiff1d(np.arange(size), m.line.owners)
    for index, name in enumerate(zip(*seeds_and_multipliers(prime_above(light.size), m.count), strict=True)):
        assert m.circles(np.array([index]))[0].tolist() == ordered(light.tolist(), *map(int, name))


def walks(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
    return np.array([1, 3, 4, 10, 6]), rng.integers(0, 2, 5), 11


def test_the_loops_and_their_twins_agree() -> None:
    rng = np.random.default_rng(4)
    steps, seeds, prime = walks(rng)
    lengths = np.stack([rng.permutation(np.arange(3, 12)) for _ in range(2)])
    total = int(lengths[0].sum())
    begins = np.zeros((2, 30), dtype=np.int64)
    of_order = rng.integers(0, 5, 30)
    for run, found in zip((kernels.add_segments.loop, kernels.add_segments.twin), begins, strict=True):
        run(np.arange(30) % 11, seeds[of_order], 1 + of_order, prime, lengths, found)
    assert np.array_equal(*begins)
    density = rng.normal(size=9)
    density = np.stack([density[np.argsort(np.argsort(row))] for row in lengths])
    density -= (density * lengths).sum(axis=1, keepdims=True) / total
    for window in (0.05 * total, 0.3 * total, 0.95 * total, float(total)):
        smooth = np.zeros((2, 2, 9))
        for run, found in zip(
            (counting_kernels.add_smoothed.loop, counting_kernels.add_smoothed.twin), smooth, strict=True
        ):
            run(steps, seeds, prime, lengths.astype(float), density, window, found)
        assert smooth[0] == pytest.approx(smooth[1], rel=1e-9, abs=1e-7)


@pytest.mark.parametrize(("size", "epsilon"), [(12, 2.5), (16, 1.0), (5, 0.5)])
def test_the_information_is_the_mean_of_products_of_lifts(size: int, epsilon: float) -> None:
    """Over places that are spread evenly along the line, in orders that are drawn at random."""
    m, fine = pool(size, epsilon), 8_000
    rng = np.random.default_rng(3)
    index = rng.integers(0, m.count, fine)
    places = (np.arange(fine) + 0.5) / fine * m.line.places
    t = places.astype(np.int64)
    owned = np.searchsorted(m.line.edges[1 : m.line.heavy], t, side="right")
    y = np.where(t < m.line.start, owned, m.line.heavy + t - m.line.start)
    r = lifts_of(m, (rng.permutation(index) << m.line.bits) + y)
    information = np.array([information_of(m).times(unit) for unit in np.eye(size)])
    products = r[:, :, None] * r[:, None, :]
    noise = products.std(axis=0) / math.sqrt(fine)
    assert np.all(np.abs(information - products.mean(axis=0)) <= 5 * noise + 1e-9)
    assert (noise / information).max() < 0.1
    assert information == pytest.approx(information.T, rel=1e-9)
    assert np.diag(information) == pytest.approx(1 + information_of(m).spread, rel=1e-9)
    assert information @ m.shares == pytest.approx(1.0, rel=1e-9)


# -- sampling, counting, proving -----------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), [(40, 1.0), (12, 2.5)])
def test_a_report_is_that_of_its_order(size: int, epsilon: float) -> None:
    m, rng = pool(size, epsilon), np.random.default_rng(2)
    assert m.draws_per_report == 4
    for code in range(size):
        words = rng.bytes(32)
        index = int.from_bytes(words[:8], "little") % m.count
        expected = index * m.line.places + Arc(line(m, index)).sample_one(code, BytesSource(words[8:]))
        assert m.sample_one(code, BytesSource(words)) == expected < 2**53
        assert m.sample([code], BytesSource(words)).tolist() == [expected]


def test_the_certificate_holds_in_every_order() -> None:
    """The orders of the pool, others, and the ones that put all rounding of one sign first."""
    m, prior, rng = pool(), pv.Prior.zipf(40), np.random.default_rng(1)
    found = m.lifts(prior, None, pv.LIP())
    assert exp_above(-1.0) <= found.lowest
    assert found.highest <= exp_below(1.0)
    rounding = np.array(prior.weights, dtype=float) / prior.total - m.shares
    orders = [m.circles(np.array([i]))[0] for i in range(m.count)] + [rng.permutation(40) for _ in range(50)]
    for circle in [*orders, np.argsort(rounding), np.argsort(-rounding)]:
        own = arc_lifts(replace(m.line, order=circle), prior.weights)
        assert found.lowest <= own.lowest
        assert own.highest <= found.highest
    assert plan().certificate.lip > 1 - 1e-6, "nothing of the budget is given away"


def test_more_keep_would_break_the_budget() -> None:
    m = pool()
    bold = Orders(replace(m.line, keep=m.line.keep + 2**12), m.count)
    found = bold.lifts(pv.Prior.zipf(40), None, pv.LIP())
    assert found.lowest < exp_above(-1.0) or found.highest > exp_below(1.0)


@pytest.mark.parametrize(("size", "epsilon"), [(40, 1.0), (12, 2.5)])
def test_tallies_are_sums_of_lifts_and_add_up(size: int, epsilon: float) -> None:
    m = pool(size, epsilon)
    reports = m.sample(np.arange(3000) % size, GeneratorSource(np.random.default_rng(5)))
    whole = reader_of(m).count(reports)
    k = m.line.keep_chance
    assert 3000 * (1 - k) + k * whole[1:] * reader_of(m)._lift_per_place == pytest.approx(
        lifts_of(m, reports).sum(axis=0), rel=1e-6
    )
    assert reader_of(m).people(whole) == 3000
    assert np.array_equal(whole, reader_of(m).count(reports[:700]) + reader_of(m).count(reports[700:]))
    assert not reader_of(m).count([]).any()
    weights = np.arange(3000) % 3
    assert reader_of(m).count(reports, weights.astype(float)) == pytest.approx(
        reader_of(m).count(np.repeat(reports, weights))
    )


def test_tallies_whose_sums_might_not_fit_are_refused() -> None:
    m, P = pool(), pv.Prior.zipf(40).probabilities
    tally = reader_of(m).count([0])
    tally[0] = 2**31
    with pytest.raises(TooLarge):
        reader_of(m).answer("unbiased", tally, P, None, True)


def test_foreign_reports_are_refused() -> None:
    m = pool(12, 2.5)
    outside = [-1, m.line.outputs, m.count * m.line.places]
    assert m.accepts(np.array([0, *outside])).tolist() == [True, False, False, False]
    with raises(PriorveilError, argument="reports[1]"):
        reader_of(m).count([0, outside[1]])


def test_the_matrix_is_the_law_of_the_cells() -> None:
    m = pool(12, 2.5)
    assert m.matrix.sum(axis=1) == pytest.approx(1)
    x, N = 7, 200_000
    reports = m.sample(np.full(N, x), GeneratorSource(np.random.default_rng(6)))
    counts = count_cells(m, reports)
    expected = N * m.matrix[x]
    assert ((counts - expected) ** 2 / expected).sum() < len(expected) + 5 * math.sqrt(2 * len(expected))


def test_a_plan_travels() -> None:
    again = pv.Plan.from_json(plan(12, 2.5).to_json())
    assert again.id == plan(12, 2.5).id
    assert again.mechanism.parameters() == pool(12, 2.5).parameters()
    changed = json.loads(plan(12, 2.5).to_json())
    changed["mechanism"]["count"] = 3
    with pytest.raises(PriorveilError):
        pv.Plan.from_json(json.dumps(changed))


@pytest.mark.parametrize(
    ("field", "value"),
    [("count", 3), ("count", 0), ("count", 1 << 17), ("owners", [99]), ("bits", 52), ("keep", -1)],
)
def test_parameters_that_describe_no_pool_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        Orders.read({**pool(12, 2.5).parameters(), field: value})


# -- learning ------------------------------------------------------------------------------------------------


def test_the_stated_error_is_the_information_of_fine_cells() -> None:
    """Cells average a little away, so they tell a little less."""
    m = pool()
    cells = variance(m.matrix, pv.Prior.zipf(40).probabilities)
    assert 1 <= cells / information_of(m).variance() < 1.03
    assert plan().expected_mse == information_of(m).variance()


def test_the_measured_error_is_the_stated_one() -> None:
    m, P, N = pool(), pv.Prior.zipf(40).probabilities, 4000
    errors = [
        ((reader_of(m).answer("unbiased", told(m, P, N, seed)[1], P, None, True).mean / N - P) ** 2).sum()
        for seed in range(120)
    ]
    assert N * np.mean(errors) == pytest.approx(
        information_of(m).variance(), rel=5 * np.std(errors) / np.mean(errors) / 120**0.5
    )
    assert np.std(errors) / np.mean(errors) / 120**0.5 < 0.04


@pytest.mark.parametrize("size", [40, 150])
def test_a_wrong_prior_does_not_bias(size: int) -> None:
    """In ten collections: the mean of all z**2 is within 0.8 and 1.25, four of its standard errors at 40 values."""
    m, P = pool(size), pv.Prior.zipf(size).probabilities
    truth, N, squares = P[::-1] * 0.4 + 0.6 / size, 20_000, []
    scores = np.linspace(-1, 2, size)
    for seed in range(10):
        people, tally = told(m, truth, N, seed)
        for population, right in ((True, N * truth), (False, people)):
            found = reader_of(m).answer("unbiased", tally, P, None, population)
            assert found.mean.sum() == pytest.approx(N)
            z = (found.mean - right) / np.sqrt(found.variance)
            assert abs(z).max() < 4.5
            squares.append((z**2).mean())
            total = reader_of(m).answer("unbiased", tally, P, scores[None], population)
            assert total.mean[0] == pytest.approx(scores @ found.mean)
            assert abs(total.mean[0] - scores @ right) < 4 * math.sqrt(total.variance[0])
    assert 0.8 < np.mean(squares) < 1.25


@pytest.mark.statistical
def test_intervals_hold_for_rare_values_and_few_reports() -> None:
    """Coverage in 40 collections: its standard error is 0.0025, so that a right one fails less than once in 10**6.

    Where only some of the terms of a spread took reports as uniform within their cells, it was 0.825 here, and a tenth
    of the standard errors were zero.
    """
    m, P, N = pool(150), pv.Prior.zipf(150).probabilities, 300
    inside, zero = [], 0
    for seed in range(40):
        found = reader_of(m).answer("unbiased", told(m, P, N, seed)[1], P, None, True)
        inside.append(np.abs(found.mean - N * P) <= 1.96 * np.sqrt(found.variance))
        zero += np.count_nonzero(found.variance == 0)
    assert 0.93 < np.mean(inside) < 0.97
    assert zero == 0


@pytest.mark.parametrize(
    ("weights", "epsilon", "close", "rough"),
    [
        ([1 / x for x in range(1, 101)], 1.0, 1e-3, 0.06),
        ([1 / x for x in range(1, 101)], 4.0, 1e-3, 0.06),
        ([400.0] + [1.0] * 99, 4.0, 1e-3, 0.06),
        ([400.0] + [1.0] * 99, 0.3, 1e-2, 0.06),
        ([400.0, 400.0, 200.0] + [1.0] * 97, 1.0, 1e-2, 0.12),
    ],
    ids=["zipf", "owners", "one owner", "one long arc", "two long arcs"],
)
def test_conjugate_gradients_give_what_the_inverse_gives(
    weights: list[float], epsilon: float, close: float, rough: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one value or two are so likely that others hardly share the circle; and with a few products only."""
    prior, N = pv.Prior(np.array(weights) / sum(weights)), 20_000
    m, P = pv.design(prior, epsilon, pv.Distribution(), method="arc").mechanism, prior.probabilities
    assert isinstance(m, Orders)
    _, tally = told(m, P[::-1] * 0.4 + 0.6 / 100, N, 3)
    rows = np.stack([np.linspace(-1, 2, 100), np.arange(100) < 10, np.arange(100) == 50])
    exact = [reader_of(m).answer("unbiased", tally, P, r, True) for r in (None, rows)]
    inverse, variance = information_of(m).inverse, information_of(m).variance()
    covariance = reader_of(m).covariance("unbiased", tally, P, rows, True)
    monkeypatch.setattr(order_information, "_WRITTEN_OUT", 1)
    large, products, product = Orders(m.line, m.count), [], OrdersInformation.times

    def count_product(information: OrdersInformation, v: np.ndarray) -> np.ndarray:
        products.append(v)
        return product(information, v)

    monkeypatch.setattr(OrdersInformation, "times", count_product)
    for right, r, near in zip(exact, (None, rows), (rough, 3e-3), strict=True):
        found, error = reader_of(large).answer("unbiased", tally, P, r, True), np.sqrt(right.variance)
        assert found.mean / error == pytest.approx(right.mean / error, abs=close)
        assert found.variance == pytest.approx(right.variance, rel=near)
    likely, signs = np.count_nonzero(P >= 0.25), -(-order_information._SIGNS // 100)
    assert len(products) <= 2 * (signs + len(rows)) + 8 * (2 + likely)
    scale = np.sqrt(np.diag(covariance))
    difference = reader_of(large).covariance("unbiased", tally, P, rows, True) - covariance
    assert np.abs(difference / np.outer(scale, scale)).max() < 3e-3
    assert information_of(large).variance() == pytest.approx(variance, rel=5e-3 if close == 1e-3 else 0.04)
    assert inverse is not None
    assert information_of(large).inverse_diagonal == pytest.approx(np.diag(inverse), rel=rough)


@pytest.mark.parametrize(
    ("weights", "epsilon", "near"),
    [
        ([1 / x for x in range(1, 101)], 1.0, 0.03),
        ([1 / x for x in range(1, 101)], 4.0, 0.01),
        ([0.93**x for x in range(100)], 3.0, 0.03),
        ([400.0, 400.0, 200.0] + [1.0] * 97, 1.0, 0.15),
    ],
    ids=["zipf", "owners", "falling", "two long arcs"],
)
def test_many_statistics_of_many_values_take_no_product_each(
    weights: list[float], epsilon: float, near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their variances come from the matrix nearby; the answer itself, the trace and likely values take a few."""
    prior = pv.Prior(np.array(weights) / sum(weights))
    m, P = pv.design(prior, epsilon, pv.Distribution(), method="arc").mechanism, prior.probabilities
    assert isinstance(m, Orders)
    _, tally = told(m, P, 20_000, 3)
    rows = np.tri(100)[:99]
    exact, covariance = (
        ask("unbiased", tally, P, rows, True) for ask in (reader_of(m).answer, reader_of(m).covariance)
    )
    leaning, paired = (
        ask("mmse", tally, P, rows, False) for ask in (reader_of(m).answer, reader_of(m).covariance)
    )
    monkeypatch.setattr(order_information, "_WRITTEN_OUT", 1)
    large, products, product = Orders(m.line, m.count), [], OrdersInformation.times

    def count_product(information: OrdersInformation, v: np.ndarray) -> np.ndarray:
        products.append(v)
        return product(information, v)

    assert information_of(large).variance() == pytest.approx(
        information_of(m).variance(), rel=0.04
    )  # which asks for the trace
    monkeypatch.setattr(OrdersInformation, "times", count_product)
    found = reader_of(large).answer("unbiased", tally, P, rows, True)
    assert found.variance == pytest.approx(exact.variance, rel=near)
    close = 1e-3 if near < 0.1 else 1e-2  # of a standard error
    assert found.mean == pytest.approx(exact.mean, abs=close * math.sqrt(exact.variance.max()))
    assert len(products) <= 6 + 8 * np.count_nonzero(P >= order_information._LIKELY)
    scale = np.sqrt(np.outer(exact.variance, exact.variance))
    assert (
        np.abs((reader_of(large).covariance("unbiased", tally, P, rows, True) - covariance) / scale).max()
        < near
    )
    assert reader_of(large).answer("mmse", tally, P, rows, False).variance == pytest.approx(
        leaning.variance, rel=0.03
    )
    assert reader_of(large).covariance("mmse", tally, P, rows, False) == pytest.approx(
        paired, abs=0.03 * paired.max()
    )


def test_further_statistics_of_the_same_tally_take_no_product(monkeypatch: pytest.MonkeyPatch) -> None:
    small = pool(60)
    monkeypatch.setattr(order_information, "_WRITTEN_OUT", 1)
    m, P = Orders(small.line, small.count), small.shares
    tallies = [told(m, P, 2_000, seed)[1] for seed in range(6)]
    first = [reader_of(m).answer("unbiased", tally, P, None, True).mean for tally in tallies]
    kept = first[-1].copy()
    first[-1][:] = 0.0  # whoever writes into an answer changes no other
    assert reader_of(m)._solved_histogram.cache_info().currsize == orders._KEPT
    product = OrdersInformation.times
    monkeypatch.setattr(OrdersInformation, "times", None)
    again = reader_of(m).answer("unbiased", tallies[-1], P, np.tri(60), True)
    assert again.mean == pytest.approx(np.cumsum(kept), abs=1e-9)
    monkeypatch.setattr(OrdersInformation, "times", product)
    other = reader_of(m).answer("unbiased", tallies[0] + tallies[1], P, None, True)
    assert other.mean == pytest.approx(first[0] + first[1], abs=0.1 * math.sqrt(other.variance.max()))


def test_shares_that_are_not_negative() -> None:
    m, P, N = pool(), pv.Prior.zipf(40).probabilities, 1000
    _, tally = told(m, P, N, 3)
    linear, likely = (
        reader_of(m).answer(method, tally, P, None, True).mean for method in ("unbiased", "mle")
    )
    assert linear.min() < 0 <= likely.min()
    assert likely.sum() == pytest.approx(N)
    assert ((likely / N - P) ** 2).sum() < ((linear / N - P) ** 2).sum()
    kept = likely > 0
    steps = (linear - likely)[kept] * information_of(m).spread[kept]
    assert steps == pytest.approx(steps[0]), "all move alike in the metric of the information"


def test_posteriors_are_those_of_the_arcs_together() -> None:
    m, P = pool(12, 2.5), pv.Prior.zipf(12).probabilities
    rng = np.random.default_rng(1)
    reports = m.sample(rng.choice(12, 5000, p=P), GeneratorSource(rng))
    posterior = P * lifts_of(m, reports)
    found = reader_of(m).answer("mmse", reader_of(m).count(reports), P, None, False)
    assert found.mean == pytest.approx(posterior.sum(axis=0), rel=1e-5)
    spreads = posterior * (1 - posterior)
    assert np.all(np.abs(found.variance - spreads.sum(axis=0)) < 4 * math.sqrt(5000) * spreads.std(axis=0))
    assert np.max(math.sqrt(5000) * spreads.std(axis=0) / found.variance) < 0.04
    a = np.linspace(0, 3, 12)
    total = reader_of(m).answer("mmse", reader_of(m).count(reports), P, a[None], False)
    assert total.mean == pytest.approx(posterior.sum(axis=0) @ a)
    assert total.variance == pytest.approx((posterior @ a**2 - (posterior @ a) ** 2).sum(), rel=0.05)
    with raises(TooLarge, hint="prior"):
        reader_of(m).answer("mmse", reader_of(m).count(reports), np.full(12, 1 / 12), None, False)


def test_a_wrong_prior_is_noticed() -> None:
    m, P = pool(), pv.Prior.zipf(40).probabilities
    assert reader_of(m).prior_check(told(m, P, 50_000, 1)[1], P).p_value > 0.001
    assert reader_of(m).prior_check(told(m, P[::-1], 50_000, 1)[1], P).p_value < 0.001


def test_the_prior_is_checked_as_if_the_information_were_written_out() -> None:
    m, P = pool(30), pv.Prior.zipf(30).probabilities
    _, tally = told(m, P, 5000, 3)
    information = np.array([information_of(m).times(unit) for unit in np.eye(30)])
    covariance = P[:, None] * (information - 1) * P
    total, enough = (
        P * (tally[1:] * reader_of(m)._lift_per_place - tally[0]) * m.line.keep_chance,
        np.full(30, 1.0),
    )
    quick, dense = reader_of(m).prior_check(tally, P), score_check(total, covariance, P, enough, 5000.0)
    assert quick is not None and dense is not None
    assert quick.noticeable_change == pytest.approx(dense.noticeable_change, rel=0.02)
    assert abs(quick.p_value - dense.p_value) < 0.1


# -- design --------------------------------------------------------------------------------------------------


def test_large_domains_are_learnt_near_the_bound() -> None:
    prior = pv.Prior.zipf(400)
    found = pv.design(prior, 1.0, pv.Distribution(), method="arc")
    assert found.identifiable
    assert found.certificate.lip <= 1.0
    assert found.lower_bound == pytest.approx(variance_bound(prior.probabilities, math.exp(-1), math.e))
    assert found.efficiency >= 0.95
    assert isinstance(found.mechanism, Orders)


def test_uniform_domains_too() -> None:
    found = pv.design(pv.Prior.uniform(200), 1.0, pv.Distribution(), method="arc")
    assert found.efficiency >= 0.98


@pytest.mark.parametrize(
    ("prior", "epsilon", "notion", "kind"),
    [
        (pv.Prior.uniform(5), 1.0, pv.LDP(), Infeasible),
        (pv.Prior.uniform(5), pv.Budget(1.0, math.inf), pv.LIP(), Infeasible),
        (pv.PriorSet([[0.5, 0.5], [0.4, 0.6]]), 1.0, pv.LIP(), Infeasible),
        (pv.Prior.uniform(25_000), 1.0, pv.LIP(), TooLarge),
    ],
)
def test_what_a_pool_cannot_do_is_refused(
    prior: pv.Prior, epsilon: float | pv.Budget, notion: pv.LIP | pv.LDP, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        pv.design(prior, epsilon, pv.Distribution(), notion=notion, method="arc")


def test_long_arcs_may_share_the_circle() -> None:
    """Too little would be left for a window beside owned outputs."""
    found = pv.design(pv.Prior([0.5, 0.3, 0.1, 0.1]), 1.0, pv.Distribution(), method="arc")
    assert found.identifiable
    assert found.certificate.lip <= 1.0
    assert isinstance(found.mechanism, Orders)
    assert found.mechanism.line.owners.size == 0


def test_auto_learns_large_domains_with_a_pool() -> None:
    found = pv.design(pv.Prior.zipf(320), 1.0, pv.Distribution())
    assert isinstance(found.mechanism, Orders)
    assert "unary" in found.why
    assert "subset" in found.why


def test_auto_learns_equally_likely_values_with_subsets() -> None:
    found = pv.design(pv.Prior.uniform(320), 1.0, pv.Distribution())
    assert found.method == "subset"
    assert found.efficiency >= 0.998


def test_no_count_is_certain_after_a_few_reports() -> None:
    """Intervals of ten people hold for most values, also where the prior is far off."""
    prior = pv.Prior.from_counts([round(1e6 / x) for x in range(1, 151)])
    plan = pv.design(prior, 3.0, pv.Distribution(), method="arc")
    rng, covered = np.random.default_rng(0), []
    for people in [1] * 10 + [10] * 10:
        tally = plan.tally(plan.privatize(np.full(people, 149), rng))
        found = plan.estimate(tally)
        assert found.std_error.min() > 0
        assert found.std_error**2 == pytest.approx(np.diag(found.covariance), rel=0.2)
        low, high = found.interval()
        covered.append((low <= people * (np.arange(150) == 149)) & (high >= people * (np.arange(150) == 149)))
    assert np.mean(covered) > 0.95


@pytest.mark.parametrize("method", ["unbiased", "mle", "mmse"])
def test_the_only_value_is_known(method) -> None:
    plan = pv.design(pv.Prior([1.0]), 1.0, pv.Distribution(), method="arc")
    found = plan.estimate(plan.tally(plan.privatize([0] * 5)), method)
    assert (found.values.tolist(), found.std_error.tolist()) == ([5.0], [0.0])

"""Reports of arcs in many orders: their tallies, the information they hold, and the answers from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import ForeignReport, TooLarge
from priorveil.information import variance
from priorveil.mechanisms import Orders
from priorveil.mechanisms.randomness import GeneratorSource
from priorveil.reading import counting_kernels, order_information, orders_reader
from priorveil.reading.estimate_notes import FEW_PEOPLE
from priorveil.reading.families import reader_of
from priorveil.reading.order_information import OrdersInformation, information_of
from priorveil.reading.prior_check import score_test
from references import likelihood
from refusals import raises
from sample_mechanisms import orders_plan, orders_pool


def lifts_of(m: Orders, reports: np.ndarray) -> np.ndarray:
    """The lifts of reports, a row each."""
    chances = np.stack([likelihood(m, report) for report in reports.tolist()])
    return np.asarray(chances / (chances @ m.shares)[:, None])


def draw_and_count(m: Orders, law: np.ndarray, people: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """People drawn from a law: how many of each value, and the tally of their reports."""
    rng = np.random.default_rng(seed)
    values = rng.choice(len(law), people, p=law)
    return np.bincount(values, minlength=len(law)), reader_of(m).count(m.sample(values, GeneratorSource(rng)))


# -- information -------------------------------------------------------------------------------------------


def test_the_loop_of_windows_and_its_twin_agree() -> None:
    rng = np.random.default_rng(4)
    steps, seeds = np.array([1, 3, 4, 10, 6]), rng.integers(0, 2, 5)
    lengths = np.stack([rng.permutation(np.arange(3, 12)) for _ in range(2)])
    total = int(lengths[0].sum())
    density = rng.normal(size=9)
    density = np.stack([density[np.argsort(np.argsort(row))] for row in lengths])
    density -= (density * lengths).sum(axis=1, keepdims=True) / total
    kernel = counting_kernels.add_smoothed
    for window in (0.05 * total, 0.3 * total, 0.95 * total, float(total)):
        smooth = np.zeros((2, 2, 9))
        for run, result in zip((kernel.loop, kernel.twin), smooth, strict=True):
            run(steps, seeds, 11, lengths.astype(float), density, window, result)
        assert smooth[0] == pytest.approx(smooth[1], rel=1e-9, abs=1e-7)


@pytest.mark.parametrize(("size", "epsilon"), [(12, 2.5), (16, 1.0), (5, 0.5)])
def test_the_information_is_the_mean_of_products_of_lifts(size: int, epsilon: float) -> None:
    """Over places that are spread evenly along the line, in orders that are drawn at random."""
    m, fine = orders_pool(size, epsilon), 8_000
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
    assert np.diag(information) == pytest.approx(1 + information_of(m).lift_variances, rel=1e-9)
    assert information @ m.shares == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("run", ["loop", "twin"])
@pytest.mark.parametrize(
    ("weights", "epsilon"),
    [
        ([1 / x for x in range(1, 31)], 1.0),
        ([1.0] * 5, 0.5),
        ([1.0, 1.0], 0.2),
        ([400.0, 400.0, 200.0] + [1.0] * 12, 1.0),
        ([400.0] + [1.0] * 12, 4.0),
        ([0.8**x for x in range(20)], 0.1),
    ],
    ids=["zipf", "five", "two", "two long arcs", "owners", "wide windows"],
)
def test_the_information_is_written_out_from_pairs(
    weights: list[float], epsilon: float, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = pv.design(
        pv.Prior(np.array(weights) / sum(weights)), epsilon, pv.Distribution(), method="arc"
    ).mechanism
    assert isinstance(m, Orders)
    for name in ("add_window_overlaps", "add_kinks"):
        chosen = getattr(getattr(counting_kernels, name), run)
        monkeypatch.setattr(
            counting_kernels, name, lambda *arguments, work, chosen=chosen: chosen(*arguments)
        )
    information = OrdersInformation(m)
    by_products = np.array([information.times(unit) for unit in np.eye(m.size)])
    assert information.matrix == pytest.approx(by_products, rel=1e-11)


# -- scores ------------------------------------------------------------------------------------------------


def test_scores_are_the_same_however_they_are_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few by conjugate gradients, many by the inverse, in blocks; for single statistics and for all."""
    m, P = orders_pool(150), pv.Prior.zipf(150).probabilities
    reports = m.sample(np.arange(150).repeat(2), GeneratorSource(np.random.default_rng(5)))
    rows = np.stack([np.arange(150) < 10, np.linspace(-1, 1, 150)])
    expected = np.linalg.solve(information_of(m).matrix, (lifts_of(m, reports) - 1).T).T + m.shares
    for quick in (0, 10**6):
        monkeypatch.setattr(order_information, "_ROWS_AS_QUICK", quick)
        reader = reader_of(Orders(m.line, m.count))
        assert reader.scores(reports[:1], P, None) == pytest.approx(expected[:1], abs=2e-4)
        assert reader.scores(reports, P, rows) == pytest.approx(expected @ rows.T, abs=2e-4)
    assert reader.scores(reports, P, None) == pytest.approx(expected, abs=1e-9)
    monkeypatch.setattr("priorveil.reading.reader._BLOCK_ENTRIES", 150 * 7)
    assert reader.scores(reports, P, None) == pytest.approx(expected, abs=1e-9)
    assert reader.scores(reports, P, rows) == pytest.approx(expected @ rows.T, abs=1e-9)
    assert reader.scores(reports[:0], P, None).shape == (0, 150)


def test_reports_may_be_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a statistic needs is solved for once, not for each part."""
    m, P = orders_pool(150), pv.Prior.zipf(150).probabilities
    monkeypatch.setattr(order_information, "_ROWS_AS_QUICK", 0)
    reader, products, product = reader_of(Orders(m.line, m.count)), [], OrdersInformation.times

    def count_product(information: OrdersInformation, v: np.ndarray) -> np.ndarray:
        products.append(v)
        return product(information, v)

    monkeypatch.setattr(OrdersInformation, "times", count_product)
    reports = m.sample(np.arange(150), GeneratorSource(np.random.default_rng(5)))
    whole = reader.scores(reports, P, np.linspace(-1, 1, 150)[None])
    once = len(products)
    parts = [reader.scores(reports[i : i + 50], P, np.linspace(-1, 1, 150)[None]) for i in (0, 50, 100)]
    assert np.concatenate(parts) == pytest.approx(whole) and 0 < once == len(products)


# -- counting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), [(40, 1.0), (12, 2.5)])
def test_tallies_are_sums_of_lifts_and_add_up(size: int, epsilon: float) -> None:
    m = orders_pool(size, epsilon)
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
    m, P = orders_pool(), pv.Prior.zipf(40).probabilities
    tally = reader_of(m).count([0])
    tally[0] = 2**31
    with pytest.raises(TooLarge):
        reader_of(m).answer("unbiased", tally, P, None, True)


def test_foreign_reports_are_refused() -> None:
    m = orders_pool(12, 2.5)
    for foreign in (-1, m.line.outputs, m.count * m.line.places):
        with raises(ForeignReport, argument="reports[1]"):
            reader_of(m).count([0, foreign])


# -- answers -----------------------------------------------------------------------------------------------


def test_the_stated_error_is_the_information_of_fine_cells() -> None:
    """Cells average a little away, so they tell a little less."""
    m = orders_pool()
    cells = variance(m.matrix, pv.Prior.zipf(40).probabilities)
    assert 1 <= cells / information_of(m).variance() < 1.03
    assert orders_plan().expected_mse == information_of(m).variance()


def test_the_measured_error_is_the_stated_one() -> None:
    m, P, N = orders_pool(), pv.Prior.zipf(40).probabilities, 4000
    errors = [
        (
            (reader_of(m).answer("unbiased", draw_and_count(m, P, N, seed)[1], P, None, True).mean / N - P)
            ** 2
        ).sum()
        for seed in range(120)
    ]
    assert N * np.mean(errors) == pytest.approx(
        information_of(m).variance(), rel=5 * np.std(errors) / np.mean(errors) / 120**0.5
    )
    assert np.std(errors) / np.mean(errors) / 120**0.5 < 0.04


@pytest.mark.parametrize("size", [40, 150])
def test_a_wrong_prior_does_not_bias(size: int) -> None:
    """In ten collections: the mean of all z**2 is within 0.8 and 1.25, four of its standard errors at 40 values."""
    m, P = orders_pool(size), pv.Prior.zipf(size).probabilities
    truth, N, squares = P[::-1] * 0.4 + 0.6 / size, 20_000, []
    scores = np.linspace(-1, 2, size)
    for seed in range(10):
        people, tally = draw_and_count(m, truth, N, seed)
        for population, right in ((True, N * truth), (False, people)):
            answer = reader_of(m).answer("unbiased", tally, P, None, population)
            assert answer.mean.sum() == pytest.approx(N)
            z = (answer.mean - right) / np.sqrt(answer.variance)
            assert abs(z).max() < 4.5
            squares.append((z**2).mean())
            total = reader_of(m).answer("unbiased", tally, P, scores[None], population)
            assert total.mean[0] == pytest.approx(scores @ answer.mean)
            assert abs(total.mean[0] - scores @ right) < 4 * math.sqrt(total.variance[0])
    assert 0.8 < np.mean(squares) < 1.25


@pytest.mark.statistical
def test_intervals_hold_for_rare_values_and_few_reports() -> None:
    """Coverage in 40 collections: its standard error is 0.0025, so that a right one fails less than once in 10**6.

    Where only some of the terms of a spread took reports as uniform within their cells, it was 0.825 here, and a tenth
    of the standard errors were zero.
    """
    m, P, N = orders_pool(150), pv.Prior.zipf(150).probabilities, 300
    inside, zero = [], 0
    for seed in range(40):
        answer = reader_of(m).answer("unbiased", draw_and_count(m, P, N, seed)[1], P, None, True)
        inside.append(np.abs(answer.mean - N * P) <= 1.96 * np.sqrt(answer.variance))
        zero += np.count_nonzero(answer.variance == 0)
    assert 0.93 < np.mean(inside) < 0.97
    assert zero == 0


def test_intervals_hold_for_values_that_no_drawn_report_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 32 drawn reports, as for 100,000 values: a value that none of them meets seemed to have no variance."""
    monkeypatch.setattr(orders_reader, "_MOST_DRAWN", 32)
    pool, P, N = orders_pool(150, 5.0), pv.Prior.zipf(150).probabilities, 3_000
    m = Orders(pool.line, pool.count)  # a reader of its own, which has drawn no reports before
    rare, inside = np.eye(150)[-4:], []
    for seed in range(10):
        reader, tally = reader_of(m), draw_and_count(m, P, N, seed)[1]
        answer = reader.answer("unbiased", tally, P, None, True)
        inside.append(np.abs(answer.mean - N * P) <= 1.96 * np.sqrt(answer.variance))
        known = N * information_of(m).quadratic_forms(rare) * 0.9
        assert (reader.answer("unbiased", tally, P, rare, True).variance > known).all()
        assert (np.diag(reader.covariance("unbiased", tally, P, rare, True)) > known).all()
    assert np.mean(inside) > 0.93


@pytest.mark.parametrize(("people", "coverage"), [(1, 0.924), (10, 0.960)])
def test_no_count_is_certain_after_a_few_reports(people: int, coverage: float) -> None:
    """Intervals of a few people hold for most values, also where the prior is far off.

    The note on few people says that they may miss their level. `coverage` was measured in 150 other surveys; its
    standard error in ten surveys is 0.005 to 0.007.
    """
    prior = pv.Prior.from_counts([round(1e6 / x) for x in range(1, 151)])
    plan = pv.design(prior, 3.0, pv.Distribution(), method="arc")
    rng, truth, covered = np.random.default_rng(0), people * np.eye(150)[-1], []
    for _ in range(10):
        answer = plan.estimate(plan.tally(plan.privatize(np.full(people, 149), rng)))
        assert FEW_PEOPLE in answer.notes
        assert answer.std_error.min() > 0
        assert answer.std_error**2 == pytest.approx(np.diag(answer.covariance), rel=0.2)
        low, high = answer.interval()
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered) > coverage - 0.025


@pytest.mark.parametrize("size", [40, 150])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_standard_errors_are_those_of_the_scores_where_the_prior_is_very_wrong(
    size: int, share: float
) -> None:
    """At epsilon 6, if everybody or half of the people have the value that the prior calls the rarest.

    From the information of the prior, errors were 0.37 to 3.7 times those of the scores.
    """
    prior, plan = pv.Prior.zipf(size), orders_plan(size, 6.0)
    rng, people, last = np.random.default_rng(1), 20_000, np.eye(size)[-1]
    contrasts = np.zeros((4, size))
    for row in contrasts:
        row[rng.choice(size - 1, 4, replace=False)] = [1, 1, -1, -1]
    truth = share * last + (1 - share) * prior.probabilities
    reports = plan.privatize(rng.choice(size, people, p=truth), rng, codes=True)
    scores = plan.scores(reports)
    answer = plan.estimate(plan.tally(reports))
    stated = np.array([answer.contrast(row).std_error for row in (last, *contrasts)])
    measured = (scores @ np.vstack([last, contrasts]).T).std(axis=0) * people**0.5
    assert stated[0] == pytest.approx(measured[0], rel=0.03)
    assert answer.std_error[-1] == pytest.approx(measured[0], rel=0.05)
    assert share == 1.0 or stated[1:] == pytest.approx(measured[1:], rel=0.1)  # else rare reports carry them
    assert stated.min() > 0
    assert answer.std_error.min() > 0


@pytest.mark.statistical
def test_standard_errors_of_values_that_nobody_has() -> None:
    """If everybody has another value, about a hundred of the drawn reports carry the error of each.

    It was 10 % off (root mean square) when every error was scaled to the one at the prior, which other reports carry.
    """
    plan, people = orders_plan(150, 6.0), 20_000
    assert isinstance(plan.mechanism, Orders)
    rng, values = np.random.default_rng(1), np.full(people, 149)
    answer = plan.estimate(plan.tally(plan.privatize(values, rng)))
    squares = [(plan.scores(plan.privatize(values, rng)) ** 2).mean(axis=0) for _ in range(10)]
    measured = np.sqrt(people * np.mean(squares, axis=0))
    shared = np.setdiff1d(
        plan.mechanism.circle_values, [149]
    )  # those that own places are hardly ever reported
    ratios = answer.std_error[shared] / measured[shared]
    assert np.sqrt(np.mean((ratios - 1) ** 2)) < 0.07
    assert 0.8 < ratios.min() < ratios.max() < 1.25


@pytest.mark.parametrize("method", ["unbiased", "mle", "mmse"])
def test_the_only_value_is_known(method) -> None:
    plan = pv.design(pv.Prior([1.0]), 1.0, pv.Distribution(), method="arc")
    answer = plan.estimate(plan.tally(plan.privatize([0] * 5)), method)
    assert (answer.values.tolist(), answer.std_error.tolist()) == ([5.0], [0.0])


@pytest.mark.parametrize(
    ("weights", "epsilon", "close", "rough"),
    [
        ([1 / x for x in range(1, 101)], 1.0, 1e-3, 0.02),
        ([1 / x for x in range(1, 101)], 4.0, 1e-3, 0.02),
        ([400.0] + [1.0] * 99, 4.0, 1e-3, 0.02),
        ([400.0] + [1.0] * 99, 0.3, 1e-2, 0.02),
        ([400.0, 400.0, 200.0] + [1.0] * 97, 1.0, 1e-2, 0.13),
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
    _, tally = draw_and_count(m, P[::-1] * 0.4 + 0.6 / 100, N, 3)
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
    for right, r, near in zip(exact, (None, rows), (rough, 6e-3 if close == 1e-3 else 0.015), strict=True):
        answer, error = reader_of(large).answer("unbiased", tally, P, r, True), np.sqrt(right.variance)
        assert answer.mean / error == pytest.approx(right.mean / error, abs=close)
        assert answer.variance == pytest.approx(right.variance, rel=near)
    likely, signs = np.count_nonzero(P >= 0.25), -(-order_information._SIGNS // 100)
    assert len(products) <= 2 * (signs + len(rows)) + 8 * (2 + likely)
    scale = np.sqrt(np.diag(covariance))
    difference = reader_of(large).covariance("unbiased", tally, P, rows, True) - covariance
    assert np.abs(difference / np.outer(scale, scale)).max() < (4e-3 if close == 1e-3 else 0.02)
    assert information_of(large).variance() == pytest.approx(variance, rel=5e-3 if close == 1e-3 else 0.04)
    assert inverse is not None
    assert information_of(large).inverse_diagonal == pytest.approx(np.diag(inverse), rel=rough)


@pytest.mark.parametrize(
    ("weights", "epsilon", "near"),
    [
        ([1 / x for x in range(1, 101)], 1.0, 0.045),
        ([1 / x for x in range(1, 101)], 4.0, 0.015),
        ([0.93**x for x in range(100)], 3.0, 0.03),
        ([400.0, 400.0, 200.0] + [1.0] * 97, 1.0, 0.15),
    ],
    ids=["zipf", "owners", "falling", "two long arcs"],
)
def test_many_statistics_of_many_values_take_no_product_each(
    weights: list[float], epsilon: float, near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their variances come from the matrix nearby; the answer itself, the trace and likely values take a few.

    How near they are depends on the matrix: with other seeds `near` would change by 0.002 at most.
    """
    prior = pv.Prior(np.array(weights) / sum(weights))
    m, P = pv.design(prior, epsilon, pv.Distribution(), method="arc").mechanism, prior.probabilities
    assert isinstance(m, Orders)
    _, tally = draw_and_count(m, P, 20_000, 3)
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
    answer = reader_of(large).answer("unbiased", tally, P, rows, True)
    assert answer.variance == pytest.approx(exact.variance, rel=near)
    close = 3e-3 if near < 0.1 else 1e-2  # of a standard error
    assert answer.mean == pytest.approx(exact.mean, abs=close * math.sqrt(exact.variance.max()))
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
    small = orders_pool(60)
    monkeypatch.setattr(order_information, "_WRITTEN_OUT", 1)
    m, P = Orders(small.line, small.count), small.shares
    reader = reader_of(m)
    tallies = [draw_and_count(m, P, 2_000, seed)[1] for seed in range(6)]
    first = [reader.answer("unbiased", tally, P, None, True).mean for tally in tallies]
    last = first[-1].copy()
    first[-1][:] = 0.0  # whoever writes into an answer changes no other
    assert reader._solved_histogram.cache_info().currsize == orders_reader._KEPT
    product = OrdersInformation.times
    monkeypatch.setattr(OrdersInformation, "times", None)
    again = reader.answer("unbiased", tallies[-1], P, np.tri(60), True)
    assert again.mean == pytest.approx(np.cumsum(last), abs=1e-9)
    monkeypatch.setattr(OrdersInformation, "times", product)
    other = reader.answer("unbiased", tallies[0] + tallies[1], P, None, True)
    assert other.mean == pytest.approx(first[0] + first[1], abs=0.1 * math.sqrt(other.variance.max()))


def test_shares_that_are_not_negative() -> None:
    m, P, N = orders_pool(), pv.Prior.zipf(40).probabilities, 1000
    _, tally = draw_and_count(m, P, N, 3)
    linear, likely = (
        reader_of(m).answer(method, tally, P, None, True).mean for method in ("unbiased", "mle")
    )
    assert linear.min() < 0 <= likely.min()
    assert likely.sum() == pytest.approx(N)
    assert ((likely / N - P) ** 2).sum() < ((linear / N - P) ** 2).sum()
    positive = likely > 0
    steps = (linear - likely)[positive] * information_of(m).lift_variances[positive]
    assert steps == pytest.approx(steps[0]), "all move alike in the metric of the information"


def test_posteriors_are_those_of_the_arcs_together() -> None:
    m, P = orders_pool(12, 2.5), pv.Prior.zipf(12).probabilities
    rng = np.random.default_rng(1)
    reports = m.sample(rng.choice(12, 5000, p=P), GeneratorSource(rng))
    posterior = P * lifts_of(m, reports)
    answer = reader_of(m).answer("mmse", reader_of(m).count(reports), P, None, False)
    assert answer.mean == pytest.approx(posterior.sum(axis=0), rel=1e-5)
    spreads = posterior * (1 - posterior)
    assert np.all(np.abs(answer.variance - spreads.sum(axis=0)) < 4 * math.sqrt(5000) * spreads.std(axis=0))
    assert np.max(math.sqrt(5000) * spreads.std(axis=0) / answer.variance) < 0.04
    a = np.linspace(0, 3, 12)
    total = reader_of(m).answer("mmse", reader_of(m).count(reports), P, a[None], False)
    assert total.mean == pytest.approx(posterior.sum(axis=0) @ a)
    assert total.variance == pytest.approx((posterior @ a**2 - (posterior @ a) ** 2).sum(), rel=0.05)
    with raises(TooLarge, hint="prior"):
        reader_of(m).answer("mmse", reader_of(m).count(reports), np.full(12, 1 / 12), None, False)


# -- the check of the prior --------------------------------------------------------------------------------


def test_a_wrong_prior_is_noticed() -> None:
    m, P = orders_pool(), pv.Prior.zipf(40).probabilities
    assert reader_of(m).prior_check(draw_and_count(m, P, 50_000, 1)[1], P).p_value > 0.001
    assert reader_of(m).prior_check(draw_and_count(m, P[::-1], 50_000, 1)[1], P).p_value < 0.001


def test_the_prior_is_checked_as_if_the_information_were_written_out() -> None:
    m, P = orders_pool(30), pv.Prior.zipf(30).probabilities
    _, tally = draw_and_count(m, P, 5000, 3)
    information = np.array([information_of(m).times(unit) for unit in np.eye(30)])
    covariance = P[:, None] * (information - 1) * P
    total, enough = (
        P * (tally[1:] * reader_of(m)._lift_per_place - tally[0]) * m.line.keep_chance,
        np.full(30, 1.0),
    )
    quick, test = reader_of(m).prior_check(tally, P), score_test(covariance, np.diag(P), enough, 5000.0)
    assert quick is not None and test is not None
    dense = test.check(total)
    # The least favourable pair of values differs a little from pool to pool, and the approximation has no pool.
    assert quick.noticeable_change == pytest.approx(dense.noticeable_change, rel=0.05)
    assert abs(quick.p_value - dense.p_value) < 0.1

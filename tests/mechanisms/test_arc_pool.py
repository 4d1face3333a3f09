"""A pool of arcs in public orders: it samples, counts and certifies as its arcs do, and learns what it says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import priorveil as pv
from priorveil.certify import exp_above, exp_below
from priorveil.errors import Infeasible, InvalidInput, PriorveilError, TooLarge
from priorveil.mechanisms import Arc, kernels
from priorveil.mechanisms.arc.counting import ArcCells
from priorveil.mechanisms.arc.line import circle_order, prime_above, spread_orders
from priorveil.mechanisms.estimators import (
    DenseChannel,
    Evidence,
    mle_moments,
    posterior_moments,
)
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource
from priorveil.queries import variance, variance_bound
from references import likelihood


@cache
def plan(size: int = 40, epsilon: float = 1.0) -> pv.Plan:
    return pv.design(pv.Prior.zipf(size), epsilon, pv.Distribution(), method="arc")


def pool(size: int = 40, epsilon: float = 1.0) -> Arc:
    mechanism = plan(size, epsilon).mechanism
    assert isinstance(mechanism, Arc)
    return mechanism


def arcs(m: Arc) -> list[Arc]:
    return [Arc((line,)) for line in m.lines]


def told(m: Arc, law: np.ndarray, people: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """People drawn from a law: how many of each value, and the tally of their reports."""
    rng = np.random.default_rng(seed)
    values = rng.choice(len(law), people, p=law)
    return np.bincount(values, minlength=len(law)), m.accumulate(m.sample(values, GeneratorSource(rng)))


# -- orders ------------------------------------------------------------------------------------------------


def test_the_rule_of_an_order_by_hand() -> None:
    """The documented rule, in plain integers."""
    step, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def mixed(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    values = [1, 2, 4, 5, 6, 8, 9]
    for seed, multiplier in ((0, 1), (3, 5), (2**53 - 1, 10)):
        ranked = sorted(values, key=lambda x, s=seed: (mixed(s + (x + 1) * step & mask), x))
        keys = {x: multiplier * (rank + 1) % 11 for rank, x in enumerate(ranked)}
        assert circle_order(np.array(values), seed, multiplier).tolist() == sorted(
            values, key=keys.__getitem__
        )


@pytest.mark.parametrize(("values", "count"), [(1, 8), (2, 8), (30, 4), (30, 15), (30, 64)])
def test_orders_are_spread(values: int, count: int) -> None:
    seeds, multipliers = spread_orders(values, count)
    half = max(1, prime_above(values) // 2)
    names = set(zip(seeds.tolist(), multipliers.tolist(), strict=True))
    assert len(names) == count == len(seeds)
    assert multipliers.min() >= 1
    assert multipliers.max() <= half
    for seed, multiplier in names:
        assert sorted(circle_order(np.arange(values), seed, multiplier)) == list(range(values))


def test_the_two_loops_agree() -> None:
    rng = np.random.default_rng(4)
    lengths = rng.dirichlet(np.ones(9)) * 0.8
    orders = np.array([rng.permutation(9) for _ in range(5)])
    for window in (0.05, 0.3, 0.79):
        one, other = np.zeros((9, 9)), np.zeros((9, 9))
        kernels.add_overlaps.loop(orders, lengths, window, one)
        kernels.add_overlaps.twin(orders, lengths, window, other)
        assert np.tril(one) == pytest.approx(np.tril(other), abs=1e-14)


def test_moments_are_integrals_of_overlaps() -> None:
    lengths, window = np.array([0.4, 0.1, 0.2, 0.1]), 0.3
    ends = np.concatenate([[0], np.cumsum(lengths)])
    places = (np.arange(8000) + 0.5) * 0.8 / 8000

    def inside(start: np.ndarray) -> np.ndarray:
        low, high = np.maximum(ends[:-1], start[:, None]), np.minimum(ends[1:], start[:, None] + window)
        return np.maximum(high - low, 0)

    overlaps = inside(places) + inside(places - 0.8)
    expected = overlaps.T @ overlaps * 0.8 / 8000
    found = np.zeros((4, 4))
    kernels.add_overlaps(np.arange(4)[None], lengths, window, found, work=0)
    assert found == pytest.approx(expected, abs=1e-8)


# -- sampling, counting, proving -----------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), [(40, 1.0), (12, 2.5)])
def test_a_report_is_that_of_its_order(size: int, epsilon: float) -> None:
    m, rng = pool(size, epsilon), np.random.default_rng(2)
    single = arcs(m)
    assert m.draws_per_report == 4
    for code in range(size):
        words = rng.bytes(32)
        index = int.from_bytes(words[:8], "little") % len(single)
        expected = index * m.line.places + single[index].sample_one(code, BytesSource(words[8:]))
        assert m.sample_one(code, BytesSource(words)) == expected < 2**53
        assert m.sample([code], BytesSource(words)).tolist() == [expected]


def test_the_certificate_is_the_worst_of_the_arcs() -> None:
    m, prior = pool(), pv.Prior.zipf(40)
    found = m.lifts(prior, None, pv.LIP())
    each = [arc.lifts(prior, None, pv.LIP()) for arc in arcs(m)]
    assert found.lowest == min(e.lowest for e in each) >= exp_above(-1.0)
    assert found.highest == max(e.highest for e in each) <= exp_below(1.0)
    assert found.ldp == max(e.ldp for e in each if e.ldp is not None)
    assert plan().certificate.lip > 1 - 1e-6, "nothing of the budget is given away"


def test_more_keep_would_break_the_budget() -> None:
    m = pool()
    bold = Arc(tuple(replace(line, keep=line.keep + 2**12) for line in m.lines), m.names)
    found = bold.lifts(pv.Prior.zipf(40), None, pv.LIP())
    assert found.lowest < exp_above(-1.0) or found.highest > exp_below(1.0)


def test_tallies_are_those_of_the_arcs_and_add_up() -> None:
    m = pool()
    reports = m.sample(np.arange(3000) % 40, GeneratorSource(np.random.default_rng(5)))
    whole = m.accumulate(reports)
    index, y = np.divmod(reports, m.line.places)
    assert np.array_equal(whole, np.hstack([a.accumulate(y[index == i]) for i, a in enumerate(arcs(m))]))
    assert np.array_equal(whole, m.accumulate(reports[:700]) + m.accumulate(reports[700:]))
    assert not m.accumulate([]).any()


def test_foreign_reports_are_refused() -> None:
    m = pool(12, 2.5)
    outside = [-1, m.lines[0].outputs, len(m.lines) * m.line.places]
    assert m.accepts(np.array([0, *outside])).tolist() == [True, False, False, False]
    with pytest.raises(PriorveilError, match=r"reports\[1\]"):
        m.accumulate([0, outside[1]])


def test_the_matrix_is_the_law_of_the_cells() -> None:
    m = pool(12, 2.5)
    assert m.matrix.sum(axis=1) == pytest.approx(1)
    x, N = 7, 200_000
    counts = m.accumulate(m.sample(np.full(N, x), GeneratorSource(np.random.default_rng(6))))[0]
    expected = N * m.matrix[x]
    assert ((counts - expected) ** 2 / expected).sum() < len(expected) + 5 * math.sqrt(2 * len(expected))
    evidence = m.evidence(np.zeros((3, len(expected)), dtype=np.int64))
    p, w = np.random.default_rng(7).dirichlet(np.ones(12)), np.arange(len(expected), dtype=float)
    assert evidence.channel.law(p) == pytest.approx(p @ m.matrix)
    assert evidence.channel.mean(w) == pytest.approx(m.matrix @ w)


def test_a_plan_travels() -> None:
    again = pv.Plan.from_json(plan(12, 2.5).to_json())
    assert again.id == plan(12, 2.5).id
    assert again.mechanism.parameters() == pool(12, 2.5).parameters()
    changed = json.loads(plan(12, 2.5).to_json())
    changed["mechanism"]["multipliers"][0] = 0
    with pytest.raises(PriorveilError):
        pv.Plan.from_json(json.dumps(changed))


@pytest.mark.parametrize(
    ("field", "value"),
    [("seeds", [0, 0, 1]), ("seeds", []), ("multipliers", [1]), ("owners", [99]), ("bits", 52), ("keep", -1)],
)
def test_parameters_that_describe_no_pool_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        Arc.read({**pool(12, 2.5).parameters(), field: value})


# -- learning ------------------------------------------------------------------------------------------------


def test_the_stated_error_is_the_information_of_fine_cells() -> None:
    """Cells average a little away, so they tell a little less."""
    m = pool()
    cells = variance(m.matrix, pv.Prior.zipf(40).probabilities)
    assert 1 <= cells / m.variance() < 1.03
    assert plan().expected_mse == m.variance()


def test_the_measured_error_is_the_stated_one() -> None:
    m, P, N = pool(), pv.Prior.zipf(40).probabilities, 4000
    errors = [
        ((m.answer("unbiased", told(m, P, N, seed)[1], P, None, True).mean / N - P) ** 2).sum()
        for seed in range(120)
    ]
    assert N * np.mean(errors) == pytest.approx(
        m.variance(), rel=5 * np.std(errors) / np.mean(errors) / 120**0.5
    )
    assert np.std(errors) / np.mean(errors) / 120**0.5 < 0.04


@pytest.mark.parametrize("size", [40, 150])
def test_a_wrong_prior_does_not_bias(size: int) -> None:
    m, P = pool(size), pv.Prior.zipf(size).probabilities
    truth = P[::-1] * 0.4 + 0.6 / size
    N = 100_000
    people, tally = told(m, truth, N, 9)
    for population, right in ((True, N * truth), (False, people)):
        found = m.answer("unbiased", tally, P, None, population)
        assert found.mean.sum() == pytest.approx(N)
        z = (found.mean - right) / np.sqrt(found.variance)
        assert abs(z).max() < 4.5
        assert 0.6 < (z**2).mean() < 1.5
        scores = np.linspace(-1, 2, size)
        total = m.answer("unbiased", tally, P, scores[None], population)
        assert total.mean[0] == pytest.approx(scores @ found.mean)
        assert abs(total.mean[0] - scores @ right) < 4 * math.sqrt(total.variance[0])


@pytest.mark.statistical
def test_intervals_hold_for_rare_values_and_few_reports() -> None:
    """Coverage in 40 collections: its standard error is 0.0025, so that a right one fails less than once in 10**6.

    Where only some of the terms of a spread took reports as uniform within their cells, it was 0.825 here, and a tenth
    of the standard errors were zero.
    """
    m, P, N = pool(150), pv.Prior.zipf(150).probabilities, 300
    inside, zero = [], 0
    for seed in range(40):
        found = m.answer("unbiased", told(m, P, N, seed)[1], P, None, True)
        inside.append(np.abs(found.mean - N * P) <= 1.96 * np.sqrt(found.variance))
        zero += np.count_nonzero(found.variance == 0)
    assert 0.93 < np.mean(inside) < 0.97
    assert zero == 0


def test_lifts_are_never_nearer_to_one_than_they_can_be() -> None:
    """What a tally says of `sum (r - 1)**2` is that of the reports, but for their places within cells."""
    m, P, N = pool(), pv.Prior.zipf(40).probabilities, 2000
    rng = np.random.default_rng(8)
    reports = m.sample(rng.choice(40, N, p=P), GeneratorSource(rng))
    chances = np.stack([likelihood(m, r) for r in reports.tolist()])
    lifts = chances / (chances @ (m.line.lengths / m.line.places))[:, None]

    def moved(part: np.ndarray) -> np.ndarray:
        first, second = m.cells.lift_moments(m.accumulate(part))
        return np.asarray(second - 2 * first + len(part))

    assert m.cells.lift_sums(m.accumulate(reports)) == pytest.approx(lifts.sum(axis=0), rel=1e-6)
    assert moved(reports) == pytest.approx(((lifts - 1) ** 2).sum(axis=0), rel=0.1)
    assert np.min([moved(reports[i : i + 1]) for i in range(50)]) >= 0


def test_most_likely_and_unbiased_agree() -> None:
    m, P, N = pool(12, 2.5), pv.Prior.zipf(12).probabilities, 50_000
    truth = np.full(12, 1 / 12)
    _, tally = told(m, truth, N, 3)
    likely, linear = (m.answer(method, tally, P, None, True) for method in ("mle", "unbiased"))
    assert likely.converged
    assert abs(likely.mean - linear.mean).max() < 2 * np.sqrt(linear.variance).max()
    assert abs(likely.mean - N * truth).max() < 4.5 * np.sqrt(likely.variance).max()


def test_the_channel_of_a_pool_is_not_written_out_for_mle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing out the channels of 512 orders in every round took a minute."""
    m, P = pool(12, 2.5), pv.Prior.zipf(12).probabilities
    _, tally = told(m, P, 2_000, 3)
    monkeypatch.setattr("priorveil.mechanisms.arc.SMALL", 0)
    monkeypatch.setattr(ArcCells, "blocks", lambda cells: pytest.fail("written out"))
    assert m.answer("mle", tally, P, None, True).converged


def test_posteriors_are_those_of_the_arcs_together() -> None:
    m, P = pool(12, 2.5), pv.Prior.zipf(12).probabilities
    _, tally = told(m, P, 5000, 1)
    found = m.answer("mmse", tally, P, None, False)
    parts = np.split(tally, m.cells.ends[1:-1], axis=1)
    each = [a.answer("mmse", part, P, None, False) for a, part in zip(arcs(m), parts, strict=True)]
    assert found.mean == pytest.approx(np.sum([e.mean for e in each], axis=0))
    assert found.variance == pytest.approx(np.sum([e.variance for e in each], axis=0))
    other = m.answer("mmse", tally, np.full(12, 1 / 12), None, False)
    assert other.mean.sum() == pytest.approx(5000)


def test_a_wrong_prior_is_noticed() -> None:
    m, P = pool(), pv.Prior.zipf(40).probabilities
    assert m.prior_check(told(m, P, 50_000, 1)[1], P).p_value > 0.001
    assert m.prior_check(told(m, P[::-1], 50_000, 1)[1], P).p_value < 0.001


# -- design --------------------------------------------------------------------------------------------------


def test_large_domains_are_learnt_near_the_bound() -> None:
    prior = pv.Prior.zipf(400)
    found = pv.design(prior, 1.0, pv.Distribution(), method="arc")
    assert found.identifiable
    assert found.certificate.lip <= 1.0
    assert found.lower_bound == pytest.approx(variance_bound(prior.probabilities, math.exp(-1), math.e))
    assert found.efficiency >= 0.9
    m = found.mechanism
    assert isinstance(m, Arc)


def test_uniform_domains_too() -> None:
    found = pv.design(pv.Prior.uniform(200), 1.0, pv.Distribution(), method="arc")
    assert found.efficiency >= 0.93


@pytest.mark.parametrize(
    ("prior", "epsilon", "notion", "kind"),
    [
        (pv.Prior.uniform(5), 1.0, pv.LDP(), Infeasible),
        (pv.Prior.uniform(5), pv.Budget(1.0, math.inf), pv.LIP(), Infeasible),
        (pv.PriorSet([[0.5, 0.5], [0.4, 0.6]]), 1.0, pv.LIP(), Infeasible),
        (pv.Prior.uniform(5000), 1.0, pv.LIP(), TooLarge),
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
    assert isinstance(found.mechanism, Arc)
    assert found.mechanism.line.owners.size == 0


def test_auto_learns_large_domains_with_a_pool() -> None:
    found = pv.design(pv.Prior.zipf(320), 1.0, pv.Distribution())
    assert isinstance(found.mechanism, Arc)
    assert len(found.mechanism.lines) > 1
    assert "unary" in found.why
    assert "subset" in found.why


def test_auto_learns_equally_likely_values_with_subsets() -> None:
    found = pv.design(pv.Prior.uniform(320), 1.0, pv.Distribution())
    assert found.method == "subset"
    assert found.efficiency >= 0.998


@pytest.mark.parametrize(("size", "epsilon"), [(12, 2.5), (16, 1.0), (20, 4.0), (5, 0.5)])
def test_circles_read_together_are_the_channels_of_the_arcs(size: int, epsilon: float) -> None:
    m, rng = pool(size, epsilon), np.random.default_rng(1)
    Q = np.hstack([ArcCells([line]).matrix for line in m.lines]) / len(m.lines)
    p, w = rng.dirichlet(np.ones(size)), rng.normal(size=Q.shape[1])
    assert np.hstack([block for _, block in m.cells.blocks()]) == pytest.approx(Q, abs=1e-15)
    assert [part.stop for part, _ in m.cells.blocks()] == m.cells.ends[1:].tolist()
    assert m.cells.law(p) == pytest.approx(p @ Q, abs=1e-15)
    assert m.cells.mean(w) == pytest.approx(Q @ w, abs=1e-13)


def test_a_channel_too_large_to_write_out_is_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    m, P = pool(12, 2.5), pv.Prior.zipf(12).probabilities
    _, tally = told(m, np.full(12, 1 / 12), 20_000, 3)
    whole = Evidence(tally[0].astype(float), DenseChannel(m.matrix))
    del m.cells.__dict__["matrix"]
    monkeypatch.setattr("priorveil.mechanisms.interface.MOST_ENTRIES", 1)
    monkeypatch.setattr("priorveil.mechanisms.arc.SMALL", 0)
    with pytest.raises(TooLarge, match="entries"):
        _ = m.matrix
    flat = np.full(12, 1 / 12)
    found, right = m.answer("mmse", tally, flat, None, False), posterior_moments(whole, flat)
    assert found.mean == pytest.approx(right.mean, rel=1e-6)
    assert found.variance == pytest.approx(right.variance, rel=1e-6)
    monkeypatch.setattr("priorveil.mechanisms.arc._MOST_WORK", 1)
    with pytest.raises(TooLarge, match="unbiased"):
        m.answer("mmse", tally, flat, None, False)
    monkeypatch.setattr("priorveil.mechanisms.estimators._WRITTEN_OUT", 0)
    likely, linear = (m.answer(method, tally, P, None, True) for method in ("mle", "unbiased"))
    assert likely.mean == pytest.approx(mle_moments(whole, P, None, True).mean, rel=1e-3)
    assert likely.center == pytest.approx(linear.mean) and likely.variance == pytest.approx(linear.variance)

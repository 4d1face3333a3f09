"""Arcs in many public orders: they sample and certify as single arcs do, and where they are the best design."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import priorveil as pv
from priorveil.certify import exp_above, exp_below
from priorveil.errors import Infeasible, InvalidInput, PriorveilError, TooLarge
from priorveil.information import variance_bound
from priorveil.mechanisms import Arc, Orders, kernels
from priorveil.mechanisms.arc.certificate import arc_lifts
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.arc.orders import prime_above, seeds_and_multipliers
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource
from references import count_cells
from sample_mechanisms import orders_plan, orders_pool


def line(m: Orders, index: int) -> ArcLine:
    return replace(m.line, order=np.append(m.line.owners, m.circles(np.array([index]))[0]))


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
    m = orders_pool(size)
    light = np.setdiff1d(np.arange(size), m.line.owners)
    for index, name in enumerate(zip(*seeds_and_multipliers(prime_above(light.size), m.count), strict=True)):
        assert m.circles(np.array([index]))[0].tolist() == ordered(light.tolist(), *map(int, name))


def test_the_loop_of_segments_and_its_twin_agree() -> None:
    rng = np.random.default_rng(4)
    seeds, lengths = rng.integers(0, 2, 5), np.stack([rng.permutation(np.arange(3, 12)) for _ in range(2)])
    order_of_report = rng.integers(0, 5, 30)
    begins = np.zeros((2, 30), dtype=np.int64)
    for run, result in zip((kernels.add_segments.loop, kernels.add_segments.twin), begins, strict=True):
        run(np.arange(30) % 11, seeds[order_of_report], 1 + order_of_report, 11, lengths, result)
    assert np.array_equal(*begins)


# -- sampling and proving -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), [(40, 1.0), (12, 2.5)])
def test_a_report_is_that_of_its_order(size: int, epsilon: float) -> None:
    m, rng = orders_pool(size, epsilon), np.random.default_rng(2)
    assert m.draws_per_report == 4
    for code in range(size):
        words = rng.bytes(32)
        index = int.from_bytes(words[:8], "little") % m.count
        expected = index * m.line.places + Arc(line(m, index)).sample_one(code, BytesSource(words[8:]))
        assert m.sample_one(code, BytesSource(words)) == expected < 2**53
        assert m.sample([code], BytesSource(words)).tolist() == [expected]


def test_the_certificate_holds_in_every_order() -> None:
    """The orders of the pool, others, and the ones that put all rounding of one sign first."""
    m, prior, rng = orders_pool(), pv.Prior.zipf(40), np.random.default_rng(1)
    found = m.lifts(prior, None, pv.LIP())
    assert exp_above(-1.0) <= found.lowest
    assert found.highest <= exp_below(1.0)
    rounding = np.array(prior.weights, dtype=float) / prior.total - m.shares
    orders = [m.circles(np.array([i]))[0] for i in range(m.count)] + [rng.permutation(40) for _ in range(50)]
    for circle in [*orders, np.argsort(rounding), np.argsort(-rounding)]:
        own = arc_lifts(replace(m.line, order=circle), prior.weights)
        assert found.lowest <= own.lowest
        assert own.highest <= found.highest
    assert orders_plan().certificate.lip > 1 - 1e-6, "nothing of the budget is given away"


def test_more_keep_would_break_the_budget() -> None:
    m = orders_pool()
    bold = Orders(replace(m.line, keep=m.line.keep + 2**12), m.count)
    found = bold.lifts(pv.Prior.zipf(40), None, pv.LIP())
    assert found.lowest < exp_above(-1.0) or found.highest > exp_below(1.0)


def test_foreign_reports_are_recognized() -> None:
    m = orders_pool(12, 2.5)
    outside = [-1, m.line.outputs, m.count * m.line.places]
    assert m.accepts(np.array([0, *outside])).tolist() == [True, False, False, False]


def test_the_matrix_is_the_law_of_the_cells() -> None:
    m = orders_pool(12, 2.5)
    assert m.matrix.sum(axis=1) == pytest.approx(1)
    x, N = 7, 200_000
    reports = m.sample(np.full(N, x), GeneratorSource(np.random.default_rng(6)))
    counts = count_cells(m, reports)
    expected = N * m.matrix[x]
    assert ((counts - expected) ** 2 / expected).sum() < len(expected) + 5 * math.sqrt(2 * len(expected))


def test_a_plan_travels() -> None:
    again = pv.Plan.from_json(orders_plan(12, 2.5).to_json())
    assert again.id == orders_plan(12, 2.5).id
    assert again.mechanism.parameters() == orders_pool(12, 2.5).parameters()
    changed = json.loads(orders_plan(12, 2.5).to_json())
    changed["mechanism"]["count"] = 3
    with pytest.raises(PriorveilError):
        pv.Plan.from_json(json.dumps(changed))


@pytest.mark.parametrize(
    ("field", "value"),
    [("count", 3), ("count", 0), ("count", 1 << 17), ("owners", [99]), ("bits", 52), ("keep", -1)],
)
def test_parameters_that_describe_no_pool_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        Orders.read({**orders_pool(12, 2.5).parameters(), field: value})


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

"""Hashing: the hash family, and the pool with its exact certificate."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import priorveil as pv
from kernels_here import needs_numba
from priorveil import LIP
from priorveil.certify import TOTAL, keeps_budget, lifts
from priorveil.channels import Channel
from priorveil.designs.encodings import best_pool, group_bins
from priorveil.errors import Infeasible, InvalidInput
from priorveil.mechanisms import kernels
from priorveil.mechanisms.hashing import (
    PooledHash,
    bin_masses,
    bins_of,
    exact_group_masses,
)
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource
from priorveil.priors import Budget, Prior, PriorSet
from priorveil.queries import Histogram
from sample_mechanisms import POOL


def test_the_hash_is_the_one_that_is_written_down() -> None:
    """Python integers, from the formula: any other client must give the same bins."""
    mask = (1 << 64) - 1

    def mixed(word: int) -> int:
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
        return word ^ word >> 31

    for seed in (0, 1, 12345, mask):
        a = mixed(seed + 0x9E3779B97F4A7C15 & mask)
        b = mixed(seed + 2 * 0x9E3779B97F4A7C15 & mask)
        expected = [((a * x + b & mask) >> 32) * 7 >> 32 for x in range(200)]
        assert bins_of(seed, np.arange(200), 7).tolist() == expected


@pytest.mark.statistical
def test_pairs_are_hashed_independently() -> None:
    """Over 200,000 seeds a pair falls on all 25 pairs of bins alike (chi-square, false alarm 1e-4 in all)."""
    seeds = np.arange(200_000, dtype=np.uint64)
    for x, y in ((0, 1), (0, 82), (7, 8), (31, 62), (3, 1_000_000)):
        first, second = (bins_of(seeds, np.array(value), 5) for value in (x, y))
        assert chisquare(np.bincount(5 * first + second, minlength=25)).pvalue > 2e-5


def test_masses_of_bins_are_those_of_their_values() -> None:
    weights = [3, 1, 4, 1, 5, 9, 2, 6, 2**70]
    each = np.tile(np.arange(4), (3, 1))  # every bin is a group
    for seed, row in zip((5, 6, 7), exact_group_masses([5, 6, 7], each, weights), strict=True):
        bins = bins_of(seed, np.arange(9), 4)
        assert row == [sum(w for w, b in zip(weights, bins, strict=True) if b == c) for c in range(4)]
    small = np.array(weights[:8])
    assert bin_masses([5, 6, 7], small, 4).tolist() == exact_group_masses([5, 6, 7], each, weights[:8])


def tiny_pool() -> PooledHash:
    weights = (5, 3, 4, 2, 6)
    return PooledHash(weights, np.array([3, 9]), np.array([[0, 1, 2], [1, 0, 0]]), TOTAL // 3 + 11)


def test_the_law_is_exact_at_every_threshold() -> None:
    """Around every partial sum of every table, for every seed and value."""
    pool = tiny_pool()
    for index in range(2):
        for code in range(5):
            row = pool.tables[index, pool.assignments()[index, code]].tolist()
            sums = np.cumsum([0, *row]).tolist()
            draws = sorted({e for s in sums for e in (s - 1, s) if 0 <= e < TOTAL})
            data = b"".join(
                word.to_bytes(8, "little") for draw in draws for word in ((0xABCDE0 + index), draw << 2)
            )
            expected = [
                index * pool.groups_per_seed + sum(1 for s in sums[1:] if s <= draw) for draw in draws
            ]
            assert pool.sample(np.full(len(draws), code), BytesSource(data)).tolist() == expected


def test_tables_are_truth_or_a_fresh_draw() -> None:
    pool = tiny_pool()
    fresh = pool.fresh / TOTAL
    for index, masses in enumerate(exact_group_masses(pool.seeds, pool.groups, pool.weights)):
        p = np.array(masses) / 20
        np.testing.assert_allclose(
            pool.tables[index] / TOTAL, (1 - fresh) * np.eye(3) + fresh * p, rtol=1e-12, atol=1e-15
        )


def test_extremes_are_those_of_the_channels_on_values() -> None:
    """Every seed as an integer table on all values, certified by the general code."""
    prior = Prior.zipf(30)
    rows = POOL.tables[np.arange(16)[:, None], POOL.assignments()]
    expected = [lifts(table, prior) for table in rows]
    found = POOL.lifts(prior, None, LIP())
    assert found.lowest == min(e.lowest for e in expected)
    assert found.highest == max(e.highest for e in expected)
    assert found.ldp == max(e.ldp for e in expected if e.ldp is not None)
    whole = rows.transpose(1, 0, 2).reshape(30, -1)
    np.testing.assert_allclose(POOL.matrix, whole / (16.0 * TOTAL), rtol=1e-12)


def test_a_light_group_is_found_out() -> None:
    """Proposition 3: with bins as they fall, the certificate shows more than was asked for."""
    prior, budget = Prior.zipf(30), Budget(1.0)
    fresh = int(np.exp(-1.0) * TOTAL) + (1 << 20)
    pool = PooledHash(prior.weights, np.arange(4), np.tile(np.arange(8), (4, 1)), fresh)
    assert not keeps_budget(pool.lifts(prior, None, LIP()), budget)
    with pytest.raises(Infeasible):
        pool.lifts(PriorSet([prior, prior]), None, LIP())


@needs_numba
def test_compiled_and_numpy_agree_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(20)
    codes, data = rng.integers(0, POOL.size, 20_003), rng.bytes(16 * 20_003)
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1)
    reports = POOL.sample(codes, BytesSource(data))
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1 << 60)
    np.testing.assert_array_equal(reports, POOL.sample(codes, BytesSource(data)))


def test_bulk_and_scalar_use_the_same_words() -> None:
    rng = np.random.default_rng(21)
    codes, data = rng.integers(0, POOL.size, 300), rng.bytes(16 * 300)
    source = BytesSource(data)
    reports = POOL.sample(codes, BytesSource(data))
    np.testing.assert_array_equal(reports, [POOL.sample_one(int(x), source) for x in codes])
    assert source.used == len(data)


@pytest.mark.statistical
def test_the_law_is_accepted_and_one_percent_off_in_one_entry_is_not() -> None:
    """Four million reports of a tiny pool; false alarm 1e-4 for either decision."""
    pool = tiny_pool()
    reports = pool.sample(np.full(4_000_000, 2), GeneratorSource(np.random.default_rng(22)))
    counts = np.bincount(reports, minlength=pool.outputs)
    law = pool.matrix[2]
    live = law > 0
    assert counts[~live].sum() == 0
    assert chisquare(counts[live], counts.sum() * law[live]).pvalue > 1e-4
    off = law[live].copy()
    off[np.argmax(off)] *= 1.01
    assert chisquare(counts[live], counts.sum() * off / off.sum()).pvalue < 1e-4


def test_parameters_read_back() -> None:
    again = PooledHash.read(POOL.parameters())
    assert again.parameters() == POOL.parameters()
    np.testing.assert_array_equal(again.tables, POOL.tables)


def test_what_is_refused() -> None:
    weights, groups = (1, 1, 1), np.array([[0, 1]])
    with pytest.raises(InvalidInput):
        PooledHash(weights, np.arange(3), np.tile(groups, (3, 1)), 1)
    with pytest.raises(InvalidInput):
        PooledHash(weights, np.arange(1), np.array([[0, 2]]), 1)
    with pytest.raises(InvalidInput):
        PooledHash(weights, np.arange(1), groups, TOTAL)
    with pytest.raises(InvalidInput):
        PooledHash((1, 0, 1), np.arange(1), groups, 1)


# -- designs ----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.floats(0.01, 0.5))
def test_groups_are_heavy_enough_and_complete(parts: list[float], least: float) -> None:
    total = sum(parts)
    assume(total > 0)
    masses = [part / total for part in parts]
    groups, gain = group_bins(masses, [m * m for m in masses], least)
    heavy = np.bincount(groups, masses)
    assert heavy.min() >= least * (1 - 1e-12) and len(heavy) == max(groups) + 1
    squares = np.bincount(groups, np.square(masses))
    assert gain == pytest.approx(float((squares / heavy).sum()))


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 60), st.floats(0.3, 4.0), st.integers(0, 2**32))
def test_pools_keep_their_budget_and_tell_what_they_say(size: int, epsilon: float, seed: int) -> None:
    P = np.random.default_rng(seed).dirichlet(np.ones(size)) + 1e-4
    prior, budget = Prior(P / P.sum()), Budget(epsilon)
    try:
        pool, gain = best_pool(prior, budget, seeds=8)
    except Infeasible:
        parts = np.array(list(product((0, 1), repeat=min(size, 10)))) @ prior.probabilities[:10]
        assert size <= 10 and not ((parts > budget.tau + 1e-8) & (1 - parts > budget.tau + 1e-8)).any()
        return
    assert keeps_budget(pool.lifts(prior, None, LIP()), budget)
    error = Histogram().error(Channel(pool.matrix), prior)
    assert 1 - gain == pytest.approx(error, abs=1e-9)
    assert error >= Histogram().closed_form_bound(prior, budget) - 1e-12


def test_pools_come_near_the_bound() -> None:
    """Histogram, 83 values, Zipf: at least 98 % of what the closed-form bound leaves, for eps = 2 and 4."""
    prior = Prior.zipf(83)
    nothing = Histogram().no_report(prior)
    for epsilon in (2.0, 4.0):
        _, gain = best_pool(prior, Budget(epsilon), seeds=32)
        floor = Histogram().closed_form_bound(prior, Budget(epsilon))
        assert (nothing - (1 - gain)) / (nothing - floor) > 0.975


@pytest.mark.parametrize("sides", [(1.0, math.inf), (math.inf, 1.0)])
@pytest.mark.parametrize("size", [3, 20])
def test_a_budget_with_one_side_is_kept(sides: tuple[float, float], size: int) -> None:
    """Upwards without a limit, every bin that is not empty may be a group of its own."""
    plan = pv.design(pv.Prior.zipf(size), pv.Budget(*sides), pv.Histogram(), method="hashing")
    assert plan.certificate.lip_lower <= sides[0] and plan.certificate.lip_upper <= sides[1]
    assert plan.lower_bound <= plan.expected_mse < plan.no_report

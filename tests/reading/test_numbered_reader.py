"""Reports that are the numbers of columns, from tables and from hashing: how they are counted and read."""

from __future__ import annotations

import numpy as np
import pytest

from kernels_here import needs_numba
from priorveil.certify import TOTAL
from priorveil.channels import Channel
from priorveil.errors import ForeignReport
from priorveil.mechanisms import kernels
from priorveil.mechanisms.hashing import (
    PooledHash,
)
from priorveil.mechanisms.integer_tables import Grouped, Table
from priorveil.mechanisms.randomness import (
    GeneratorSource,
)
from priorveil.priors import Prior
from priorveil.queries import Histogram
from priorveil.reading.families import reader_of
from priorveil.reading.linear_answers import channel_inversion
from refusals import raises
from sample_mechanisms import POOL

TABLE = Table(np.array([[3, 2, 2, 1], [1, 2, 2, 3], [2, 2, 2, 2]]) * (TOTAL // 8))
each_mechanism = pytest.mark.parametrize("mechanism", [TABLE, POOL], ids=["table", "hashing"])


@each_mechanism
def test_counts_of_parts_add_up(mechanism: Table | PooledHash) -> None:
    rng, reader = np.random.default_rng(6), reader_of(mechanism)
    reports = mechanism.sample(rng.integers(0, mechanism.size, 1000), GeneratorSource(rng))
    whole = reader.count(reports)
    np.testing.assert_array_equal(whole, reader.count(reports[:300]) + reader.count(reports[300:]))
    np.testing.assert_array_equal(whole, np.bincount(reports, minlength=mechanism.outputs))
    assert reader.count([]).tolist() == [0] * mechanism.outputs


@needs_numba
@each_mechanism
def test_compiled_and_numpy_count_alike(
    mechanism: Table | PooledHash, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(20)
    reports = mechanism.sample(rng.integers(0, mechanism.size, 20_003), GeneratorSource(rng))
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1)
    counts = reader_of(mechanism).count(reports)
    monkeypatch.setattr(kernels, "ENOUGH_WORK", 1 << 60)
    np.testing.assert_array_equal(counts, reader_of(mechanism).count(reports))


@each_mechanism
def test_foreign_reports_are_refused(mechanism: Table | PooledHash) -> None:
    for foreign in (mechanism.outputs, -1, 1 << 62):
        with raises(ForeignReport, argument="reports[1]"):
            reader_of(mechanism).count([0, foreign, 0])


def test_the_values_of_a_group_share_its_count_as_the_prior_says() -> None:
    table = Table(np.array([[3, 2, 2, 1], [1, 2, 2, 3]]) * (TOTAL // 8))
    counts, prior = np.array([35, 25, 25, 15]), np.array([0.4, 0.45, 0.15])
    grouped, alone = reader_of(Grouped(np.array([0, 1, 1]), table)), reader_of(table)
    rows, masses = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.4, 0.6])
    found = grouped.unbiased_answer(counts, prior, rows, True).histogram
    groups = alone.unbiased_answer(counts, masses, rows[:, :2], True).histogram
    assert found == pytest.approx(groups[[0, 1, 1]] * [1.0, 0.75, 0.25])
    likeliest = grouped.mle_distribution(counts, prior).shares
    assert likeliest == pytest.approx(
        alone.mle_distribution(counts, masses).shares[[0, 1, 1]] * [1.0, 0.75, 0.25]
    )


@pytest.mark.statistical
def test_a_rare_report_that_is_missing_by_chance_leaves_its_value_uncertain() -> None:
    """Two of a thousand people are expected to send the only report that tells the last value from the second."""
    prior, Q = np.array([0.5, 0.3, 0.2]), np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.3, 0.69, 0.01]])
    expected, without = 1_000 * prior @ Q, np.array([450.0, 550.0, 0.0])
    variances = [
        channel_inversion(counts, Q, prior, None, population=True).moments(None).variance
        for counts in (expected, without)
    ]
    assert (variances[1] > 0.25 * variances[0]).all(), "and not zero"


def test_the_expected_error_is_the_measured_one() -> None:
    """Two hundred campaigns of 500 people: the mean squared error within 5 standard errors."""
    rng, prior = np.random.default_rng(24), Prior.zipf(30)
    P, squares = prior.probabilities, []
    expected = Histogram().error(Channel(POOL.matrix), prior)
    for _ in range(200):
        codes = rng.choice(30, 500, p=P)
        counts = reader_of(POOL).count(POOL.sample(codes, GeneratorSource(rng)))
        mean = reader_of(POOL).answer("mmse", counts, P, None, False).mean
        squares.append(((mean - np.bincount(codes, minlength=30)) ** 2).sum() / 500)
    assert abs(np.mean(squares) - expected) < 5 * np.std(squares) / np.sqrt(200)

"""The prior check: Rao's score test in the directions that a change of the distribution can cause."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtri, chndtrinc
from scipy.stats import chi2, ncx2

import priorveil as pv
from priorveil.reading.prior_check import (
    DOUBTFUL,
    PriorCheck,
    bits_test,
    cells_test,
    noticed_noncentrality,
    split_prior,
)


def channel_check(counts: np.ndarray, channel: np.ndarray, prior: np.ndarray) -> PriorCheck | None:
    """The check of counts of reports, whose channel from values to reports is written out."""
    parts = split_prior(prior, len(counts))
    test = cells_test(parts @ channel, parts, float(counts.sum()))
    return test and test.check(counts)


def random_channel(seed: int, values: int, reports: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(reports), values), rng.dirichlet(np.full(values, 3.0))


@pytest.mark.parametrize(("values", "reports"), [(2, 2), (5, 40), (9, 4)])
def test_the_statistic_is_raos(values: int, reports: int) -> None:
    """`u' S**-1 u` over the vectors that sum to zero, written out (section 6 of the maths)."""
    Q, P = random_channel(values, values, reports)
    counts = np.random.default_rng(1).multinomial(5000, np.full(reports, 1 / reports)).astype(float)
    law, V = P @ Q, np.linalg.svd(np.ones((1, values)))[2][1:].T
    z = V.T @ (Q / law)
    u, S = z @ (counts - 5000 * law) / np.sqrt(5000), (z * law) @ z.T
    expected = chi2.sf(u @ np.linalg.pinv(S, rcond=1e-9) @ u, np.linalg.matrix_rank(S, tol=1e-9))
    found = channel_check(counts, Q, P)
    assert found is not None and found.p_value == pytest.approx(expected, rel=1e-6)


def test_the_noticeable_change_has_the_stated_noncentrality() -> None:
    """The least `N t^2 (e_x - e_y)' J (e_x - e_y)` over two common values that differ, and 90 % power.

    Of six values four are common. The last two of these have the same law, and are not compared.
    """
    Q, P = random_channel(3, 6, 50)[0], np.array([0.04, 0.36, 0.25, 0.05, 0.2, 0.1])
    Q[5] = Q[4]
    N, J = 4000.0, (Q / (P @ Q)) @ Q.T
    found = channel_check(N * (P @ Q), Q, P)
    assert found is not None and found.noticeable_change is not None
    least = min(J[x, x] + J[y, y] - 2 * J[x, y] for x, y in [(1, 2), (1, 4), (2, 4)])
    assert N * found.noticeable_change**2 * least == pytest.approx(noticed_noncentrality(4))


def test_no_noticeable_change_is_stated_if_common_values_share_a_block() -> None:
    """Of 200 values in 128 blocks most are merged; of three values with few reports the two rare ones are."""
    for values, stated in ((100, True), (200, False)):
        P = np.full(values, 1 / values)
        found = channel_check(100_000 * P, 0.5 * np.eye(values) + 0.5 * P, P)
        assert found is not None and (found.noticeable_change is not None) == stated
    for common, stated in ((0.94, False), (0.5, True)):
        P = np.array([common, 0.96 - common, 0.02, 0.02])
        found = channel_check(200 * P, np.eye(4), P)
        assert found is not None and (found.noticeable_change is not None) == stated


@pytest.mark.parametrize("degrees", [1, 2, 4, 19, 82, 127, 1000])
def test_the_noncentrality_gives_a_power_of_ninety_percent(degrees: int) -> None:
    noncentrality = noticed_noncentrality(degrees)
    assert noncentrality == pytest.approx(chndtrinc(chdtri(degrees, DOUBTFUL), degrees, 0.1), rel=1e-9)
    assert ncx2.sf(chi2.isf(DOUBTFUL, degrees), degrees, noncentrality) == pytest.approx(0.9, abs=1e-6)


def test_few_reports_notice_nothing() -> None:
    Q = np.array([[0.51, 0.49], [0.49, 0.51]])
    found = channel_check(np.array([10.0, 10.0]), Q, np.array([0.5, 0.5]))
    assert found is not None and found.noticeable_change is None
    assert channel_check(np.array([50.0, 50.0]), np.full((2, 2), 0.5), np.array([0.5, 0.5])) is None


@pytest.mark.parametrize("values", [2, 128, 129, 1000, 30_000])
def test_blocks_hold_all_values_in_order(values: int) -> None:
    for prior in (pv.Prior.uniform(values), pv.Prior.zipf(values)):
        P = prior.probabilities
        parts = split_prior(P)
        assert (parts.sum(axis=0) == P).all() and ((parts > 0).sum(axis=0) == 1).all()
        assert (np.diff(np.argmax(parts > 0, axis=0)) >= 0).all()
        assert len(parts) == values if values <= 128 else 20 < len(parts) <= 128
        assert values <= 128 or parts.sum(axis=1).min() > 1 / 129


def test_rare_values_are_merged_until_the_normal_law_holds_and_no_further() -> None:
    """Of a hundred truthful people half a person has the rare value; under noise half of all reports speak of it."""
    P, rare = np.array([0.995, 0.005]), np.array([0.5, 0.5])
    noise = 0.1 * np.eye(2) + 0.45
    assert channel_check(100 * P, np.eye(2), P) is None
    assert channel_check(100 * P @ noise, noise, P) is not None
    found = channel_check(10_000 * rare @ noise, noise, P)
    assert found is not None and found.p_value < DOUBTFUL
    three = channel_check(np.array([97.0, 2.0, 6.0]), np.eye(3), np.array([0.94, 0.02, 0.04]))
    two = channel_check(np.array([97.0, 8.0]), np.eye(2), np.array([0.94, 0.06]))
    assert three is not None and two is not None and three.p_value == pytest.approx(two.p_value, rel=1e-12)
    assert three.noticeable_change is None and two.noticeable_change is not None


def test_bits_are_checked_with_the_covariance_of_all_bits() -> None:
    """Against the formula of generalised least squares with the covariance written out."""
    rng = np.random.default_rng(2)
    P, shift, N = rng.dirichlet(np.full(6, 4.0)), 0.3, 2000.0
    factor = np.column_stack([shift * P, 0.1 * np.ones(6)])
    variance, excess = rng.uniform(0.2, 0.3, 6), rng.normal(0, 20, 6)
    inverse = np.linalg.inv(np.diag(variance) - factor @ factor.T)
    A = shift * np.linalg.svd(np.ones((1, 6)))[2][1:].T
    u = A.T @ inverse @ excess
    expected = chi2.sf(u @ np.linalg.solve(A.T @ inverse @ A, u) / N, 5)
    test = bits_test(shift, variance, factor, P, N)
    assert test is not None and test.check(excess).p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("reports", "directions"), [(1_000, 1), (1_000_000, 2)])
def test_a_direction_that_hangs_on_a_few_rare_reports_is_left_out(reports: int, directions: int) -> None:
    """Only a report that one in 33,000 people sends tells the last two values apart: one of it would be an alarm."""
    parts = split_prior(np.array([0.4, 0.3, 0.3]))
    Q = np.array([[0.8, 0.2, 0.0], [0.2, 0.7999, 1e-4], [0.2, 0.8, 0.0]])
    test = cells_test(parts @ Q, parts, reports)
    assert test is not None and len(test.directions) == directions

"""Closed forms: in their range they are the optimum, outside they are refused."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorveil.designs.closed_forms import binary, k_rr_matrix, rr_lip_matrix
from priorveil.designs.column_generation import best_mixture
from priorveil.designs.cones import extreme_rays
from priorveil.designs.spaces import Box
from priorveil.errors import Infeasible
from priorveil.priors.budget import window_mass
from references import binary_lip, binary_prior_set, lip_rows
from strategies import seeds

Array = npt.NDArray[np.float64]


def gain(Q: Array, P: Array, a: Array) -> float:
    """``sum_y (sum_x a_x P_x Q_xy)^2 / lam_y``."""
    return float(((a * P) @ Q) ** 2 @ (1 / (P @ Q)))


def histogram_gain(Q: Array, P: Array) -> float:
    return float(((P[:, None] * Q) ** 2 / (P @ Q)).sum())


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_theorem_3_is_optimal_in_its_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    P = rng.dirichlet(5 * np.ones(d))
    lo, hi = np.exp(-rng.uniform(0.2, 3)), np.exp(rng.uniform(0.2, 4))
    if P.min() < window_mass(lo, hi):
        with pytest.raises(Infeasible):
            rr_lip_matrix(P, lo, hi)
        return
    Q = rr_lip_matrix(P, lo, hi)
    lift = Q / (P @ Q)
    assert lift.min() >= lo - 1e-12
    assert lift.max() <= hi + 1e-12
    a = rng.normal(size=d)
    rays = Box(P, lo, hi).vertices()
    assert gain(Q, P, a) == pytest.approx(best_mixture(rays, lambda r: (r @ (a * P)) ** 2).bound, abs=1e-9)
    assert histogram_gain(Q, P) == pytest.approx(
        best_mixture(rays, lambda r: ((P * r) ** 2).sum(axis=1)).bound, abs=1e-9
    )


def test_theorem_3_ends_exactly_at_tau() -> None:
    lo, hi = np.exp(-1.0), np.exp(1.0)
    tau = 1 / (1 + np.e)
    for mass, allowed in ((tau * 1.0001, True), (tau * 0.9999, False)):
        P = np.array([mass, 1 - mass])
        with nullcontext() if allowed else pytest.raises(Infeasible):
            rr_lip_matrix(P, lo, hi)
        Q = rr_lip_matrix(P, lo)
        assert ((Q / (P @ Q)).max() <= hi) == allowed  # what it leaks decides, not the formula


@pytest.mark.parametrize(
    ("P", "eps", "leak"),
    [((0.1, 0.2, 0.7), 1.0, 1.900), ((0.025,) * 4 + (0.9,), 1.0, 3.245), ((0.2, 0.8), 0.6, 1.031)],
)
def test_theorem_3_leaks_outside_its_range(P: tuple[float, ...], eps: float, leak: float) -> None:
    prior = np.array(P)
    with pytest.raises(Infeasible):
        rr_lip_matrix(prior, np.exp(-eps), np.exp(eps))
    Q = rr_lip_matrix(prior, np.exp(-eps))  # one-sided: allowed, and the upper side is what it is
    assert np.log((Q / (prior @ Q)).max()) == pytest.approx(leak, abs=6e-4)


@given(seeds)
@settings(max_examples=80, deadline=None)
def test_binary_is_optimal_for_any_cone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98)
    P = np.array([1 - p, p])
    joint = rng.dirichlet(np.ones(3), size=2).T * P
    T = joint / joint.sum(axis=1, keepdims=True)
    A = lip_rows(P, np.exp(-rng.uniform(0.05, 2)), np.exp(rng.uniform(0.05, 2)), T)
    Q = binary(A)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, atol=1e-14)
    assert (A @ Q).min() >= -1e-12
    rays = extreme_rays(A, P)
    ends = p * rays[:, 1]
    np.testing.assert_allclose(np.sort(p * Q[1] / (P @ Q)), [ends.min(), ends.max()], atol=1e-12)
    a = rng.normal(size=2)
    for phi in (lambda r: (r @ (a * P)) ** 2, lambda r: (P * r).max(axis=1), lambda r: np.abs(r - 1) @ P):
        value = float((P @ Q) @ phi((Q / (P @ Q)).T))
        assert value == pytest.approx(best_mixture(rays, phi).bound, abs=1e-9)


def theorem_2(P: Array, T: Array, eps: float) -> Array:
    """The paper's binary channel with a latent secret, as printed."""
    e, p, up, low = np.exp(eps), P[1], T[:, 1].max(), T[:, 1].min()
    q0 = max(0.0, (up - p * e) / ((e + 1) * (up - p)), (p - low * e) / ((e + 1) * (p - low)))
    q1 = max(0.0, (1 + up * e - e - p) / ((e + 1) * (up - p)), (1 + p * e - e - low) / ((e + 1) * (p - low)))
    return np.array([[1 - q0, q0], [q1, 1 - q1]])


def test_theorem_2_is_private_but_often_not_the_best() -> None:
    rng = np.random.default_rng(7)
    worse, ratio = 0, 1.0
    for _ in range(400):
        p, eps = rng.uniform(0.05, 0.95), rng.uniform(0.1, 2)
        P = np.array([1 - p, p])
        joint = rng.uniform(size=(2, 2)) * P
        joint[1] = P - joint[0]
        T = joint / joint.sum(axis=1, keepdims=True)
        A = lip_rows(P, np.exp(-eps), np.exp(eps), T)
        printed, best = theorem_2(P, T, eps), binary(A)
        assert (A @ printed).min() > -1e-9
        left = [p * (1 - p) + p**2 - gain(Q, P, np.array([0.0, 1.0])) for Q in (printed, best)]
        assert left[1] <= left[0] + 1e-10
        if left[0] > left[1] * 1.001 + 1e-12:
            worse, ratio = worse + 1, max(ratio, left[0] / max(left[1], 1e-12))
    assert 40 < worse < 200
    assert ratio > 2


def test_proposition_1_breaks_the_budget() -> None:
    P, T = np.array([0.6, 0.4]), np.array([[0.95, 0.05], [0.25, 0.75]])
    A = lip_rows(P, np.exp(-1), np.exp(1), T)
    assert (A @ [1.0, 0.0]).min() >= 0  # symbol a meets the paper's condition
    assert (A @ [0.0, 1.0]).min() < 0  # but sending it as it is leaves "not a" alone
    assert (T @ [0.0, 1 / 0.4])[0] == pytest.approx(0.125)
    Q = binary(A)
    assert (A @ Q).min() > -1e-12
    assert Q[0, 1] > 0.01  # so a has to send it now and then, too


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.05, 3.0), seeds)
@settings(max_examples=60, deadline=None)
def test_binary_prior_set_holds_for_all_and_is_best(x: float, y: float, eps: float, seed: int) -> None:
    a, b = sorted((x, y))
    lo, hi = np.exp(-eps), np.exp(eps)
    Q = binary_prior_set(a, b, lo, hi)
    for p in np.linspace(a, b, 7):
        lam = np.array([1 - p, p]) @ Q
        assert (Q / lam).min() >= lo - 1e-9
        assert (Q / lam).max() <= hi + 1e-9
    ends = np.array([[1 - a, a], [1 - b, b]])
    A = np.vstack([lip_rows(P, lo, hi) for P in ends])
    P = 0.9 * ends.mean(axis=0) + 0.05
    best = best_mixture(extreme_rays(A, P), lambda r: (P[1] * r[:, 1]) ** 2)
    assert gain(Q, P, np.array([0.0, 1.0])) == pytest.approx(best.bound, abs=1e-9)
    published = np.array([1 - b / (b - a + hi), (1 - a) / (b - a + hi)])  # Proposition 2
    if lo <= a / max(1 - b, 1e-300) <= hi:
        np.testing.assert_allclose(Q[:, 0], published, atol=1e-9)


def test_no_prior_known_is_ldp() -> None:
    Q = binary_prior_set(0.0, 1.0, np.exp(-1.0), np.exp(1.0))
    np.testing.assert_allclose(Q, k_rr_matrix(2, 1.0), atol=1e-14)


def test_a_cone_of_constants_gives_one_output() -> None:
    np.testing.assert_array_equal(binary(np.array([[1.0, -1.0], [-1.0, 1.0]])), np.ones((2, 1)))


@given(st.floats(0.01, 0.99), st.floats(0.2, 2.0), st.floats(0.2, 3.0))
def test_two_inputs_have_the_printed_ends(p: float, lower: float, upper: float) -> None:
    lo, hi = np.exp(-lower), np.exp(upper)
    found = binary(lip_rows(np.array([1 - p, p]), lo, hi))
    np.testing.assert_allclose(found, binary_lip(p, lo, hi), atol=1e-10)


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_ldp_channels_hold_at_their_level_and_not_below(eps: float) -> None:
    for Q in (k_rr_matrix(5, eps), k_rr_matrix(2, eps)):
        np.testing.assert_allclose(Q.sum(axis=1), 1.0, atol=1e-14)
        assert np.log((Q.max(axis=0) / Q.min(axis=0)).max()) == pytest.approx(eps)

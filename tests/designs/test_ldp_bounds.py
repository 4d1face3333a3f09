"""The lower bound on learning a distribution under LDP: no channel goes below it, and it is near the best ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

import priorveil as pv
from priorveil.designs.bounds import identity_bound, ldp_histogram_bound, ldp_variance_bound
from priorveil.designs.column_generation import best_mixture
from priorveil.designs.spaces import LdpCone
from priorveil.designs.stopping import Limits
from priorveil.designs.weights import best_weights
from priorveil.information import lift_variance
from priorveil.mechanisms.bit_law import subset_law
from priorveil.reading.bit_covariances import ones_variance

LDP = pv.LDP()


def random_prior(seed: int, d: int) -> np.ndarray:
    return (
        np.random.default_rng(seed).dirichlet(np.full(d, [0.5, 1.0, 4.0][seed % 3]) + 0.05) * 0.98 + 0.02 / d
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_equal_values_are_learnt_best_by_subsets(epsilon: float) -> None:
    e = math.exp(epsilon)
    for d in [*range(2, 30), 83, 1000]:
        laws = [subset_law(e, d, k) for k in range(1, d)]
        subsets = min(ones_variance(law, np.full(d, 1 / d)) for law in laws)
        assert identity_bound(np.full(d, 1 / d), epsilon) == pytest.approx(subsets, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-6, 1e-4, 0.01, 1.0, 8.0, 40.0])
def test_rounding_never_lifts_it_above_the_least_variance(epsilon: float) -> None:
    """Subset selection in 400 bits: in floats the formula cancels, and came out 0.08 % too high at 1e-6."""
    for d in (2, 5, 20, 83, 1000):
        with ctx.workprec(400):
            e = arb(epsilon).exp()
            spreads = [(k * e**2 + d - k) * d**2 / (k * e + d - k) ** 2 - d for k in range(1, d)]
            least = [(d - 1) ** 2 / spread - identity_bound(np.full(d, 1 / d), epsilon) for spread in spreads]
            assert all(difference > 0 for difference in least)
            assert min(map(float, least)) < 1e-6 * (d - 1) ** 2 / max(map(float, spreads))


@pytest.mark.parametrize("d", [18, 20, 83])
def test_plans_for_equal_values_prove_that_they_are_optimal(d: int) -> None:
    plan = pv.design(pv.Prior.uniform(d), 1.0, pv.Distribution(), notion=LDP)
    assert plan.lower_bound <= plan.expected_mse and plan.efficiency > 1 - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_it_is_below_the_best_channel_and_near_it(seed: int) -> None:
    """The best channel of a few values is found among all columns that LDP allows."""
    rng = np.random.default_rng(seed)
    d, epsilon = int(rng.integers(4, 9)), float(rng.choice([0.3, 1.0, 2.0]))
    P = random_prior(seed, d)
    best = best_weights(P, LdpCone(P, math.exp(epsilon)).vertices(), Limits(1e-6)).value
    bound = ldp_variance_bound(P, epsilon)
    assert 0.85 * best < bound <= best


@pytest.mark.parametrize("seed", range(60))
def test_no_channel_has_a_better_histogram_than_its_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, epsilon = int(rng.integers(2, 9)), float(rng.choice([0.01, 0.3, 1.0, 2.0, 5.0]))
    prior, query = pv.Prior(random_prior(seed, d)), pv.Histogram()
    columns = LdpCone(prior.probabilities, math.exp(epsilon)).vertices()
    best = best_mixture(columns, lambda r: query.utility(r, prior)).value
    gain = query.ceiling(prior) - ldp_histogram_bound(prior.probabilities, math.exp(epsilon))
    assert best <= gain * (1 + 1e-12) <= 4 * best


def test_subset_selection_is_proven_for_histograms_of_equal_values() -> None:
    plan = pv.design(pv.Prior.uniform(83), 1.0, pv.Histogram(), notion=LDP, method="subset")
    assert plan.lower_bound <= plan.expected_mse and plan.efficiency > 0.999


@pytest.mark.parametrize("size", [20, 60, 320])
def test_histograms_under_ldp_gain_more_than_subset_selection(size: int) -> None:
    """A short search proves a bound that a longer one, or a search for the same statistics, does not go below."""
    prior, query = pv.Prior.zipf(size), pv.Histogram()
    plan = pv.design(prior, 1.0, query, notion=LDP, rounds=10)
    subsets = pv.design(prior, 1.0, query, notion=LDP, method="subset")
    assert plan.certificate.ldp <= 1.0 and plan.method == "columns"
    assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-9)
    assert plan.no_report - plan.expected_mse > 1.3 * (plan.no_report - subsets.expected_mse)
    early = pv.design(prior, 1.0, query, notion=LDP, rounds=0)
    assert early.lower_bound <= plan.expected_mse and 0.45 < plan.efficiency < 0.95


def test_a_secret_does_not_change_histograms_under_ldp() -> None:
    prior, secret = pv.Prior.zipf(40), pv.Secret([pv.Prior.zipf(40).probabilities])
    plan = pv.design(prior, 1.0, pv.Histogram(), secret, LDP, rounds=10)
    alone = pv.design(prior, 1.0, pv.Histogram(), notion=LDP, rounds=10)
    assert plan.no_report - plan.expected_mse > 0.95 * (plan.no_report - alone.expected_mse)


@pytest.mark.parametrize("seed", range(2))
def test_no_random_channel_goes_below_it(seed: int) -> None:
    """Random columns of 14 values, with the best weights: better than what is drawn at random."""
    rng, d, epsilon = np.random.default_rng(seed), 14, 1.0
    P = random_prior(seed, d)
    bound = ldp_variance_bound(P, epsilon)
    sets = rng.random((300, d)) < rng.uniform(0.15, 0.5, (300, 1))
    columns = np.where(np.vstack([np.eye(d) > 0, sets]), math.exp(epsilon), 1.0)
    found = best_weights(P, columns, Limits(1e-4))
    assert bound <= lift_variance(found.columns, found.weights)
    assert bound > 0.8 * pv.design(pv.Prior(P), epsilon, pv.Distribution(), notion=LDP).expected_mse


def test_a_level_that_protects_nearly_nothing_is_designed_all_the_same() -> None:
    for d in (4, 20):
        plan = pv.design(pv.Prior.zipf(d), 200.0, pv.Distribution(), notion=LDP, rounds=10)
        unprotected = 1 - float((plan.reference.probabilities**2).sum())
        assert plan.lower_bound <= plan.expected_mse == pytest.approx(unprotected)


@pytest.mark.parametrize(("d", "least"), [(20, 0.99), (83, 0.99)])
def test_the_efficiency_under_a_zipf_prior_is_proven(d: int, least: float) -> None:
    plan = pv.design(pv.Prior.zipf(d), 1.0, pv.Distribution(), notion=LDP)
    assert least < plan.efficiency < 1
    unary = pv.design(pv.Prior.zipf(d), 1.0, pv.Distribution(), notion=LDP, method="unary", rounds=6)
    assert 0.1 * unary.expected_mse < unary.lower_bound < plan.expected_mse


def test_a_search_that_is_stopped_still_proves_a_bound() -> None:
    P, calls = pv.Prior.zipf(20).probabilities, iter([False] * 6)
    early = ldp_variance_bound(P, 1.0, Limits(should_stop=lambda: next(calls, True)))
    assert identity_bound(P, 1.0) < early < ldp_variance_bound(P, 1.0)


def test_a_thousand_values_have_a_plan_and_a_bound_after_one_round() -> None:
    plan = pv.design(pv.Prior.zipf(1000), 1.0, pv.Distribution(), notion=LDP, rounds=1)
    assert plan.method == "subset" and 0 < plan.lower_bound < plan.expected_mse


def test_without_time_the_plan_comes_at_once() -> None:
    plan = pv.design(pv.Prior.zipf(60), 1.0, pv.Distribution(), notion=LDP, rounds=0)
    assert plan.mechanism.kind == "subset" and 0 < plan.lower_bound < plan.expected_mse
    assert (
        0
        < ldp_variance_bound(pv.Prior.zipf(60).probabilities, 1.0, Limits(should_stop=lambda: True))
        < plan.expected_mse
    )


@pytest.mark.parametrize("query", [pv.Distribution(), pv.Sum(range(16), unbiased=True)])
def test_a_secret_changes_nothing_under_ldp(query: pv.Linear) -> None:
    """LDP compares values, so a plan with a secret is as good as one without, and as much is proven of it."""
    prior = pv.Prior.zipf(16)
    given = np.random.default_rng(0).dirichlet(np.ones(3), 16)
    secret = pv.Secret.from_joint((prior.probabilities[:, None] * given).T)
    plan = pv.design(prior, 1.0, query, secret, pv.LDP(), gap=0.05)
    alone = pv.design(prior, 1.0, query, notion=pv.LDP(), gap=0.05)
    assert plan.secret == secret and plan.certificate.ldp <= 1
    assert plan.efficiency > 0.95 and plan.expected_mse < 1.05 * alone.expected_mse


def test_the_closed_form_bound_of_ldp_holds_for_any_secret() -> None:
    prior, secret = pv.Prior.zipf(40), pv.Secret([pv.Prior.zipf(40).probabilities])
    plan = pv.design(prior, 1.0, pv.Histogram(), secret, pv.LDP(), method="closed")
    assert plan.lower_bound == pytest.approx(ldp_histogram_bound(prior.probabilities, math.e))
    assert plan.lower_bound > pv.Histogram().closed_form_bound(prior, pv.Budget(1.0))

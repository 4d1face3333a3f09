"""Grids for means: the coarsest with nearly the least error of the number itself."""

from __future__ import annotations

import numpy as np
import pytest

import priorveil as pv
from priorveil.designs import design_mean
from priorveil.errors import InvalidPrior
from priorveil.priors.number_domains import Grid
from refusals import raises

RNG = np.random.default_rng(6)


def error_of_the_number(plan: pv.Plan, numbers: np.ndarray) -> float:
    """`E (x - E[point | report])**2` for equally common numbers, from first principles."""
    Q, P, points = plan.channel.matrix, plan.reference.probabilities, np.array(plan.labels)
    guess = (P * points) @ Q / (P @ Q)
    rounding = np.array([Grid(plan.labels).masses(np.array([x]), np.ones(1)) for x in numbers])
    return float(np.mean(((numbers[:, None] - guess) ** 2 * (rounding @ Q)).sum(axis=1)))


def test_the_grid_is_the_coarsest_that_loses_little() -> None:
    numbers = np.random.default_rng(4).gamma(2.0, 10.0, 3_000).clip(0, 50)
    plan = design_mean(0, 50, 1.0, sample=numbers, unbiased=False)
    chosen, errors = len(plan.labels) - 1, {}
    for steps in (2, 4, 8, 16, 32):
        prior = pv.Prior.grid(np.linspace(0, 50, steps + 1), sample=numbers)
        errors[steps] = error_of_the_number(pv.design(prior, 1.0, pv.Sum(prior.labels)), numbers)
    assert 4 <= chosen <= 16
    assert errors[chosen] <= 1.05 * min(errors.values()) < errors[2]


def test_a_sample_with_gaps_gets_a_grid_without_empty_points() -> None:
    plan = design_mean(0, 8, 1.0, sample=[0.0, 1.0, 5.0, 8.0], unbiased=False)
    assert tuple(plan.labels) == (0.0, 1.0, 5.0, 8.0)  # no number is rounded
    far = design_mean(0, 1_000, 4.0, sample=np.arange(100.0)).labels
    assert far[-1] == 1_000 and len(far) > 3  # the upper end stays, though no number is near it
    with raises(InvalidPrior, argument="probabilities"):
        design_mean(0, 8, 1.0, sample=[8.0, 8.0], unbiased=False)


@pytest.mark.parametrize(
    ("notion", "numbers", "by_hand"),
    [
        (pv.LDP(), RNG.exponential(20.0, 2_000), [0, 10, 20, 30, 40, 60, 80, 100, 200, 1_000]),
        (pv.LIP(), RNG.exponential(20.0, 2_000), [0, 5, 10, 15, 20, 30, 40, 60, 80, 1_000]),
        (pv.LIP(), RNG.uniform(0, 1_000, 2_000), np.linspace(0, 1_000, 17)),
        (
            pv.LIP(),
            np.concatenate([RNG.normal(200, 40, 1_000), RNG.normal(800, 30, 1_000)]),
            [0, 100, 150, 200, 250, 300, 700, 750, 800, 850, 900, 1_000],
        ),
    ],
)
def test_no_grid_by_hand_has_less_error(
    notion: pv.LIP | pv.LDP, numbers: np.ndarray, by_hand: list[float]
) -> None:
    """Whether numbers are skewed, equally common or in two groups, with empty parts of the range."""
    rules = {"sample": [*numbers, 1_000.0], "outside": "ends"}
    chosen = design_mean(0, 1_000, 4.0, **rules, notion=notion, gap=1e-3)
    query, prior = pv.Sum(by_hand, unbiased=True), pv.Prior.grid(by_hand, **rules)
    assert chosen.expected_mse < 1.01 * pv.design(prior, 4.0, query, notion=notion).expected_mse


def test_two_points_under_ldp_are_duchis_mechanism() -> None:
    """Its worst case at epsilon 1, 2 and 3; a prior of a spread number needs far fewer people under LIP."""
    prior = pv.Prior.grid([0, 1], [0.5, 0.5])
    found = [
        pv.design(prior, eps, pv.Sum([0, 1], unbiased=True), notion=pv.LDP()).expected_mse
        for eps in (1.0, 2.0, 3.0)
    ]
    assert found == pytest.approx([1.171, 0.431, 0.305], abs=1e-3)
    assert design_mean(0, 1, 1.0, lambda x: 1.0).expected_mse < 0.29 * found[0]


def test_the_mean_of_the_numbers_is_unbiased_with_its_stated_error() -> None:
    """4,000 surveys of 200 people each: the estimate is right on average, and its spread is the expected one."""
    rng = np.random.default_rng(8)
    numbers = rng.gamma(2.0, 10.0, 5_000).clip(0, 50)
    plan, runs, people = design_mean(0, 50, 1.0, sample=numbers), 4_000, 200
    reports = plan.privatize(rng.choice(numbers, runs * people), rng).reshape(runs, people)
    scores = np.array([plan.estimate(plan.tally([y])).values[0] for y in range(plan.mechanism.outputs)])
    means = scores[reports].mean(axis=1)
    error = np.sqrt(plan.expected_mse / people)
    assert abs(means.mean() - numbers.mean()) < 4 * error / np.sqrt(runs)
    assert means.std() == pytest.approx(error, rel=0.05)


def test_the_options_are_those_of_a_design() -> None:
    plan = design_mean(-1, 1, 2.0, lambda x: 1.0, outside="ends", unbiased=False, notion=pv.LDP())
    assert plan.certificate.notion == "LDP" and plan.certificate.ldp <= 2.0
    assert isinstance(plan.privatize(1e9), int)

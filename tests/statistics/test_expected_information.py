"""What coefficients will have for errors, against the reference, numerical derivatives and a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm

from priorveil import Distribution, Linear, Plan, Prior, design
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.statistics.expected_information import (
    Device,
    coefficient_errors,
    expected_information,
)
from priorveil.statistics.logit import logit_shares
from references.coefficients import (
    INTERCEPT_AND_SLOPE,
    LOG_ODDS_ERROR,
    PEOPLE,
    PEOPLE_WITHOUT_NOISE,
    SHARES,
    SLOPE_ERRORS,
)
from refusals import raises

HALVES = [[1.0, 0.0], [1.0, 1.0]]


def people_for(error: float) -> int:
    """How many people a slope of .5 needs for power .8, from its error with one person."""
    reach = (norm.ppf(0.975) + norm.ppf(0.8)) * error / INTERCEPT_AND_SLOPE[1]
    return math.ceil(reach**2)


def test_people_for_a_slope() -> None:
    margin = float(logit_shares(np.array([INTERCEPT_AND_SLOPE]) @ np.array(HALVES).T)[0].mean())
    plan = design(Prior([margin, 1 - margin]), 1.0, Distribution())
    assert people_for(plan.coefficient_errors(HALVES, INTERCEPT_AND_SLOPE, 1)[1]) == PEOPLE
    exact = coefficient_errors(np.eye(2), HALVES, INTERCEPT_AND_SLOPE, 1)
    assert people_for(exact[1]) == PEOPLE_WITHOUT_NOISE


def queries() -> dict[str, Linear]:
    P = np.array(SHARES)
    derivative = np.diag(P) - np.outer(P, P)
    return {
        "log_odds": Linear.log_odds(SHARES),
        "W = D": Linear(derivative[:-1], unbiased=True),
        "distribution": Distribution(),
    }


@pytest.mark.parametrize("name", SLOPE_ERRORS)
def test_log_odds_are_the_query_for_coefficients(name: str) -> None:
    prior, query = Prior(SHARES), queries()[name]
    plan = design(prior, 1.0, query)
    beta = np.array([[math.log(SHARES[0] / SHARES[2]), math.log(SHARES[1] / SHARES[2])], [0.0, 0.0]])
    errors = plan.coefficient_errors([[1.0, -0.5], [1.0, 0.5]], beta, people=1)
    assert errors.shape == beta.shape
    assert (errors[1] ** 2).sum() == pytest.approx(SLOPE_ERRORS[name], abs=0.06)
    if name == "log_odds":
        assert plan.expected_mse == pytest.approx(LOG_ODDS_ERROR, abs=1e-3)
        assert plan.efficiency > 0.999


def test_the_information_is_that_of_the_law_of_reports() -> None:
    rng = np.random.default_rng(1)
    Q, X = rng.dirichlet(np.ones(5), 3), rng.normal(size=(4, 2))
    beta = rng.normal(size=(2, 2))

    def laws(theta: np.ndarray) -> np.ndarray:
        return (logit_shares(theta.reshape(2, 2) @ X.T).T @ Q).ravel()

    slopes = approx_fprime(beta.T.ravel(), laws, 1e-7)  # one row for each person and report
    expected = (slopes.T / laws(beta.T.ravel())) @ slopes / len(X)
    found = expected_information(X.T, beta.T, [Device(np.arange(len(X)), Q.T)]) / len(X)
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_a_column_without_probability_adds_nothing() -> None:
    Q = np.array([[0.8, 0.2, 0.0], [0.3, 0.7, 0.0]])
    assert coefficient_errors(Q, HALVES, [-1.0, 0.3], 100).tolist() == pytest.approx(
        coefficient_errors(Q[:, :2], HALVES, [-1.0, 0.3], 100).tolist()
    )


def test_many_rows_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    Q, X, beta = rng.dirichlet(np.ones(4), 3), rng.normal(size=(50, 2)), rng.normal(size=(2, 2))
    whole = coefficient_errors(Q, X, beta, 10)
    monkeypatch.setattr("priorveil.statistics.expected_information._BLOCK_ENTRIES", 40)
    assert coefficient_errors(Q, X, beta, 10) == pytest.approx(whole)


def test_what_cannot_be_estimated_is_refused() -> None:
    with raises(NotIdentifiable):
        coefficient_errors(np.eye(2), [[1.0, 2.0], [1.0, 2.0]], [0.1, 0.1], 10)
    with raises(NotIdentifiable):
        coefficient_errors(np.full((2, 2), 0.5), HALVES, [0.1, 0.1], 10)


@pytest.mark.parametrize(
    ("argument", "X", "beta", "people"),
    [
        ("X", [1.0, 2.0], [0.1], 10),
        ("X", [[math.nan, 2.0]], [0.1, 0.1], 10),
        ("beta", HALVES, [0.1], 10),
        ("beta", HALVES, [0.1, math.inf], 10),
        ("people", HALVES, [0.1, 0.1], 0),
    ],
)
def test_wrong_arguments(argument: str, X: list[object], beta: list[float], people: int) -> None:
    plan = design(Prior([0.2, 0.8]), 1.0, Distribution())
    with raises(InvalidInput, argument=argument):
        plan.coefficient_errors(X, beta, people)  # type: ignore[arg-type]


def test_log_odds_against_any_value() -> None:
    prior = Prior({"a": 0.25, "b": 0.25, "c": 0.5})
    query = Linear.log_odds(prior, baseline="a")
    assert query.names == ("b against a", "c against a") and query.unbiased
    rows = query.rows(prior)
    assert rows is not None and rows.tolist() == [[-4.0, 4.0, 0.0], [-4.0, 0.0, 2.0]]
    assert (rows @ prior.probabilities).tolist() == [0.0, 0.0]
    with raises(InvalidInput, argument="baseline"):
        Linear.log_odds(prior, baseline="d")
    with raises(InvalidInput, argument="prior"):
        Linear.log_odds([1.0])


def test_log_odds_of_two_values_are_no_sum_of_numbers() -> None:
    query = Linear.log_odds(Prior([0.2, 0.8]))
    assert not query.is_sum and not query.takes_offsets and query.kind == "linear"


def test_plans_for_log_odds_are_saved(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan = design(Prior(SHARES), 1.0, Linear.log_odds(SHARES))
    plan.save(path)
    assert Plan.load(path) == plan


@pytest.mark.statistical
@pytest.mark.parametrize(("values", "epsilon"), [(2, 1.0), (3, 2.0)])
def test_errors_of_arcs_are_those_of_reports(values: int, epsilon: float) -> None:
    """The tally's counters alone would give 1.23 and 1.18 times these errors; 40,000 draws are right to about 1 %."""
    rng, P = np.random.default_rng(3), np.arange(values, 0, -1.0) / sum(range(values + 1))
    plan = design(Prior(P.tolist()), epsilon, Distribution(), method="arc")
    codes = rng.choice(values, size=40_000, p=P)
    likelihood = plan.likelihood(plan.privatize(codes, rng, codes=True))
    slopes = (P * likelihood / (likelihood @ P)[:, None] - P)[:, :-1]
    expected = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    beta = np.log(P[:-1] / P[-1])[None]
    assert plan.coefficient_errors([[1.0]], beta, 40_000)[0] == pytest.approx(expected, rel=0.04)


def test_people_and_power_of_coefficients() -> None:
    """With a plan for the shares at hand: half of the people at each end of the slope, as in the references."""
    noisy = design(Prior([0.20886, 0.79114]), 1.0, Distribution())
    X, beta = [[1.0, 0.0], [1.0, 1.0]], [-1.6, 0.5]
    people = noisy.coefficient_people(X, beta, power=0.8)
    assert people[1] == pytest.approx(PEOPLE, abs=2)
    assert noisy.coefficient_power(X, beta, int(people[1]))[1] == pytest.approx(0.8, abs=1e-3)
    assert noisy.coefficient_people(X, [-1.6, 0.0])[1] == math.inf
    assert noisy.coefficient_power(X, [-1.6, 0.0], 1_000)[1] == pytest.approx(0.05)

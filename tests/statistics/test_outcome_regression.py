"""A randomised answer as a covariate: against the reference, derivatives, known values, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime

import priorveil as pv
from priorveil.errors import DataNotFound, InvalidInput, NotIdentifiable
from priorveil.statistics.joint_likelihood import JointLikelihood
from priorveil.studies import datasets
from references.outcome_regression import MINARETS_COEFFICIENTS, MINARETS_LOGLIK, MINARETS_SIGMA
from refusals import raises

YES = pv.Prior({"yes": 0.3, "no": 0.7})
FOUR = pv.Prior({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1})


@cache
def two_values() -> pv.Plan:
    return pv.design(YES, 1.0, pv.Distribution())


def people(effect: float, n: int = 3_000, seed: int = 1) -> tuple[Any, Any, pd.DataFrame]:
    """Values, outcomes and covariates of people; the values depend on age."""
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    smokes = rng.uniform(size=n) < 1 / (1 + np.exp(0.87 - 0.4 * age))
    outcome = 3 + 0.2 * age + effect * smokes + rng.normal(size=n)
    return np.where(smokes, "yes", "no"), outcome, pd.DataFrame({"one": 1.0, "age": age})


def test_minarets() -> None:
    try:
        table = pd.DataFrame(datasets.minarets())
    except DataNotFound as error:
        pytest.skip(str(error))
    table = table[table["randomized"] == 1]
    prior = pv.Prior({"yes": 0.5, "no": 0.5})
    plans = {
        condition: pv.Plan.of([[1, 0], [says_yes, 1 - says_yes]], prior, pv.Distribution())
        for condition, says_yes in ((1, 10 / 12), (2, 2 / 12))
    }
    reports, each = np.where(table["yes"] == 1, 0, 1), [plans[condition] for condition in table["condition"]]
    X = pd.DataFrame({"one": 1.0, "age": table["age"].astype(float)})
    outcome = table["left_right"]
    fit = pv.regress_on(reports, plan=each, outcome=outcome, X=X, compliance=True, shares="constant")
    assert fit.names == ("one", "age", "yes")
    assert fit.loglik == pytest.approx(MINARETS_LOGLIK, abs=1e-4)
    assert fit.coefficients == pytest.approx(MINARETS_COEFFICIENTS, abs=1e-5)
    assert fit.sigma == pytest.approx(MINARETS_SIGMA, abs=1e-5)
    assert fit.compliance is not None and 0.6 < fit.compliance < 0.7
    other = pv.regress_on(reports, plan=each, outcome=outcome, X=X, compliance=True)
    assert other.loglik > fit.loglik  # the share may depend on age
    assert other.share_coefficients.shape == (2,) and fit.share_coefficients.shape == (1,)


@pytest.mark.parametrize(("values", "with_denials"), [(2, True), (2, False), (3, False)])
def test_slopes_and_information_are_derivatives(values: int, with_denials: bool) -> None:
    rng, n = np.random.default_rng(0), 40
    likelihood = JointLikelihood(
        rng.normal(size=(2, n)),
        rng.normal(size=(2, n)),
        rng.uniform(size=(values, n)),
        rng.normal(size=n),
        (rng.uniform(size=n) < 0.5).astype(float) if with_denials else None,
    )
    theta = rng.normal(size=likelihood.size) / 2
    slope = likelihood.value_and_slope(theta)[1]
    assert approx_fprime(theta, lambda at: likelihood.value_and_slope(at)[0]) == pytest.approx(
        slope, abs=1e-4
    )
    curvature = approx_fprime(theta, lambda at: likelihood.value_and_slope(at)[1])
    assert likelihood.information(theta) == pytest.approx(-curvature, abs=1e-3)
    assert likelihood.row_slopes(theta).sum(axis=1) == pytest.approx(slope)


def test_known_values_give_least_squares() -> None:
    """Direct answers: the values are known, and the fit is ordinary least squares."""
    values, outcome, X = people(-0.8)
    fit = pv.regress_on(
        [*values[:-1], 0], plan=[None] * (len(values) - 1) + [two_values()], outcome=outcome, X=X
    )
    design = np.column_stack([X, values == "yes"])[:-1]
    expected, rest = np.linalg.lstsq(design, outcome[:-1], rcond=None)[:2]
    assert fit.coefficients == pytest.approx(expected, abs=2e-3)
    assert fit.sigma == pytest.approx(float(np.sqrt(rest[0] / len(design))), abs=1e-3)
    assert fit.ldp == np.inf


@pytest.mark.parametrize("effect", [-0.8, 0.8, -3.0, 3.0])
def test_effects_of_either_sign_are_found(effect: float) -> None:
    values, outcome, X = people(effect)
    fit = pv.regress_on(
        two_values().privatize(values, np.random.default_rng(2)), plan=two_values(), outcome=outcome, X=X
    )
    truth = [3.0, 0.2, effect]
    assert (np.abs(fit.coefficients - truth) < 4 * fit.std_errors).all()
    assert (fit.std_errors < 0.2).all() and fit.notes == ()
    low, high = fit.interval()
    assert ((low < fit.coefficients) & (fit.coefficients < high)).all()


def test_four_values_have_effects_beside_the_last() -> None:
    rng = np.random.default_rng(3)
    codes = rng.choice(4, 10_000, p=FOUR.probabilities)
    outcome = 50_000 + 1_000 * np.array([1.0, -1.0, 0.5, 0.0])[codes] + 500 * rng.normal(size=len(codes))
    plan = pv.design(FOUR, 1.0, pv.Distribution())
    fit = pv.regress_on(plan.privatize(codes, rng, codes=True), plan=plan, outcome=outcome)
    assert fit.names == ("intercept", "a", "b", "c")
    truth = np.array([50_000, 1_000, -1_000, 500])
    assert (np.abs(fit.coefficients - truth) < 4 * fit.std_errors).all()
    assert fit.share_coefficients.shape == fit.share_std_errors.shape == (1, 3)
    assert len(fit.columns()["covariate"]) == 4 + 3


def test_the_unit_of_the_outcome_does_not_matter() -> None:
    values, outcome, X = people(-0.8, n=1_000)
    reports = two_values().privatize(values, np.random.default_rng(2))
    one, other = (pv.regress_on(reports, plan=two_values(), outcome=s * outcome, X=X) for s in (1.0, 1e6))
    assert other.coefficients / 1e6 == pytest.approx(one.coefficients, rel=1e-4)
    assert other.std_errors / 1e6 == pytest.approx(one.std_errors, rel=1e-4)
    assert other.sigma_std_error / 1e6 == pytest.approx(one.sigma_std_error, rel=1e-4)
    assert other.loglik == pytest.approx(one.loglik - 1_000 * np.log(1e6), abs=1e-3)


def test_covariates_without_a_constant() -> None:
    values, outcome, X = people(-0.8)
    groups = pd.DataFrame({"young": (X["age"] < 0).astype(float), "old": (X["age"] >= 0).astype(float)})
    fit = pv.regress_on(
        two_values().privatize(values, np.random.default_rng(2)), plan=two_values(), outcome=outcome, X=groups
    )
    assert fit.coefficients[0] == pytest.approx(2.84, abs=0.15) and fit.coefficients[1] == pytest.approx(
        3.16, abs=0.15
    )


def test_compliance_at_its_bound() -> None:
    """Where all comply the estimate is at the bound in about half of all samples."""
    values, outcome, X = people(-2.0)
    reports = two_values().privatize(values, np.random.default_rng(2))
    fits = [
        pv.regress_on(
            two_values().privatize(values, np.random.default_rng(seed)),
            plan=two_values(),
            outcome=outcome,
            X=X,
            compliance=True,
        )
        for seed in range(6)
    ]
    at_bound = [fit for fit in fits if fit.compliance == 1.0]
    assert at_bound and len(at_bound) < len(fits)
    assert at_bound[0].compliance_std_error is None and at_bound[0].compliance_interval() is None
    assert [note.code for note in at_bound[0].notes] == ["complianceAtBound"]
    without = pv.regress_on(reports, plan=two_values(), outcome=outcome, X=X)
    assert without.compliance is None


def test_the_summary() -> None:
    values, outcome, X = people(-0.8, n=1_000)
    fit = pv.regress_on(
        two_values().privatize(values, np.random.default_rng(2)), plan=two_values(), outcome=outcome, X=X
    )
    text = str(fit)
    assert text.startswith("Beside other columns, LDP 1.90")
    assert "P>|z|" in text and "share of yes" in text and "sigma" in text
    assert "<table" in fit._repr_html_() and repr(fit).startswith("OutcomeFit(")
    assert len(fit.to_frame()) == 5


def test_what_the_reports_do_not_determine() -> None:
    _, outcome, X = people(-0.8, n=200)
    three = pv.Prior({"a": 0.3, "b": 0.3, "c": 0.4})
    useless = pv.Plan.of([[0.7, 0.3], [0.3, 0.7], [0.5, 0.5]], three, pv.Histogram())
    with raises(NotIdentifiable):
        pv.regress_on([0, 1] * 100, plan=useless, outcome=outcome, X=X)


@pytest.mark.parametrize(
    ("argument", "changes"),
    [
        ("outcome", {"outcome": [1.0, 2.0]}),
        ("outcome", {"outcome": [1.0, 2.0, np.nan, 3.0]}),
        ("outcome", {"outcome": [1.0, 1.0, 1.0, 1.0]}),
        ("outcome", {"outcome": ["a", "b", "c", "d"]}),
        ("X", {"X": [[1.0], [2.0]]}),
        ("X", {"X": [[1.0]] * 4, "formula": "~ age"}),
        ("data", {"formula": "~ age"}),
        ("shares", {"shares": "probit"}),
    ],
)
def test_wrong_arguments(argument: str, changes: dict[str, Any]) -> None:
    given = {"reports": [0, 1, 1, 0], "plan": two_values(), "outcome": [1.0, 2.0, 0.5, 3.0], **changes}
    with raises(InvalidInput, argument=argument):
        pv.regress_on(**given)


def test_compliance_is_for_two_values_and_tables() -> None:
    plan = pv.design(FOUR, 1.0, pv.Distribution())
    with raises(InvalidInput, argument="compliance"):
        pv.regress_on([0, 1, 2, 3], plan=plan, outcome=[1.0, 2.0, 0.5, 3.0], compliance=True)

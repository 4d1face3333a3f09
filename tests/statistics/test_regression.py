"""Regression on reports: against other software, against the likelihood itself, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm

import priorveil as pv
from priorveil.errors import DataNotFound, InvalidInput, NotIdentifiable
from priorveil.statistics.corrected_scores import LogitScores
from priorveil.statistics.estimating_equation import EstimatingEquation
from priorveil.statistics.expected_information import Device, expected_information
from priorveil.statistics.logit import LogitLikelihood
from priorveil.statistics.maximum_search import climb
from priorveil.statistics.regression_estimates import average_effects
from priorveil.studies import datasets
from references.regression import (
    MINARETS_COEFFICIENTS,
    MINARETS_COMPLIANCE,
    MINARETS_LIKELIHOOD_RATIOS,
    MINARETS_LOGLIK,
    MINARETS_SHARE,
    MINARETS_SHARE_COMPLIANCE,
    MINARETS_SHARE_ERROR,
    MINARETS_WITHOUT_LEFT_RIGHT,
)

YES = pv.Prior({"yes": 0.3, "no": 0.7})
FOUR = pv.Prior({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1})
MODEL = "~ age * left_right"
SLOPES = {  # formulas of the model without one of its covariates
    "age": "~ left_right + age:left_right",
    "left_right": "~ age + age:left_right",
    "age:left_right": "~ age + left_right",
}


def loaded(load: Callable[[], Any]) -> Any:
    """A data set, or a skipped test where it is not on this machine."""
    try:
        return load()
    except DataNotFound as error:
        pytest.skip(str(error))


def draw(plan: pv.Plan, X: Any, coefficients: Any, seed: int) -> tuple[Any, Any]:
    """Values that follow a logit, and their reports."""
    rng = np.random.default_rng(seed)
    eta = np.column_stack([X @ np.reshape(coefficients, (X.shape[1], -1)), np.zeros(len(X))])
    shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    codes = (shares.cumsum(axis=1) < rng.uniform(size=(len(X), 1))).sum(axis=1)
    return codes, plan.privatize(codes, rng, codes=True)


@cache
def two_values(method: str = "auto") -> pv.Plan:
    return pv.design(YES, 2.0, pv.Distribution(), method=method)  # type: ignore[arg-type]


@cache
def four_values(method: str = "columns") -> pv.Plan:
    return pv.design(FOUR, 2.0, pv.Distribution(), method=method)  # type: ignore[arg-type]


@cache
def identity(prior: pv.Prior) -> pv.Plan:
    return pv.Plan.of(np.eye(len(prior)), prior, pv.Distribution())


@cache
def covariates(n: int = 2_000) -> Any:
    rng = np.random.default_rng(5)
    return np.column_stack([np.ones(n), rng.normal(size=n), rng.integers(0, 2, n)])


FOUR_TRUE = np.array([[1.0, 0.8, 0.2], [0.5, -0.4, 0.3], [-0.5, 0.2, 0.6]])


@cache
def four_fit(method: str = "columns") -> Any:
    plan = four_values(method)
    return pv.regress(draw(plan, covariates(), FOUR_TRUE, 1)[1], covariates(), plan)


# -- minarets ------------------------------------------------------------------------------------------------


@cache
def minarets() -> tuple[pd.DataFrame, Any, list[pv.Plan]]:
    """Covariates, reports and plans of the randomised rows."""
    table = pd.DataFrame(loaded(datasets.minarets))
    for name in ("age", "left_right"):
        table[name] -= table[name].mean()
    table = table[table["randomized"] == 1].reset_index(drop=True)
    prior = pv.Prior({"yes": 0.5, "no": 0.5})
    plans = {
        condition: pv.Plan.of([[1, 0], [says_yes, 1 - says_yes]], prior, pv.Distribution())
        for condition, says_yes in ((1, 10 / 12), (2, 2 / 12))
    }
    reports = np.where(table["yes"] == 1, 0, 1)
    return table, reports, [plans[int(condition)] for condition in table["condition"]]


@cache
def minarets_fit(formula: str = MODEL) -> Any:
    table, reports, plans = minarets()
    return pv.regress(reports, formula=formula, data=table, plan=plans, compliance=True)


def test_minarets_agrees_with_rrreg() -> None:
    fit = minarets_fit()
    assert fit.names == ("Intercept", "age", "left_right", "age:left_right")
    assert fit.loglik == pytest.approx(MINARETS_LOGLIK, abs=1e-3)
    np.testing.assert_allclose(fit.coefficients, MINARETS_COEFFICIENTS, atol=1e-4)
    assert fit.compliance == pytest.approx(MINARETS_COMPLIANCE, abs=1e-5)
    low, high = fit.compliance_interval()
    assert low < fit.compliance < high and fit.compliance_test().p_value < 1e-4


@pytest.mark.parametrize("left_out", SLOPES)
def test_likelihood_ratios_of_minarets(left_out: str) -> None:
    """The restricted likelihood has several maxima; a search that keeps the first is far off."""
    found = minarets_fit().likelihood_ratio(minarets_fit(SLOPES[left_out]))
    assert found.degrees == 1
    assert found.statistic == pytest.approx(MINARETS_LIKELIHOOD_RATIOS[left_out], abs=1e-3)


def test_a_second_maximum_nearby_is_a_warning() -> None:
    restricted = minarets_fit(SLOPES["left_right"])
    assert restricted.loglik == pytest.approx(MINARETS_WITHOUT_LEFT_RIGHT, abs=1e-3)
    assert [note.code for note in restricted.notes] == ["secondMaximum"]
    assert "another maximum" in str(restricted) and minarets_fit().notes == ()


def test_the_share_of_minarets() -> None:
    table, reports, plans = minarets()
    fit = pv.regress(reports, np.ones(len(table)), plans, compliance=True)
    share = fit.predict([[1.0]])
    assert share.values[0, 0] == pytest.approx(MINARETS_SHARE, abs=1e-5)
    assert share.std_error[0, 0] == pytest.approx(MINARETS_SHARE_ERROR, abs=1e-5)
    assert fit.compliance == pytest.approx(MINARETS_SHARE_COMPLIANCE, abs=1e-5)


def test_one_condition_does_not_determine_compliance() -> None:
    table, reports, plans = minarets()
    first = np.flatnonzero(table["condition"] == 1)
    with pytest.raises(NotIdentifiable, match=r"compliance|x1|finite"):
        pv.regress(reports[first], np.ones(len(first)), plans[first[0]], compliance=True)


# -- statsmodels ---------------------------------------------------------------------------------------------


@cache
def adult() -> pd.DataFrame:
    table = pd.DataFrame(loaded(datasets.adult_table))
    table = table[table["part"] == "data"].rename(columns={"education_years": "years"}).reset_index(drop=True)
    table["one"], table["male"] = 1.0, (table["sex"] == "Male").astype(float)
    return table


ADULT_X = ["one", "age", "years", "hours", "male"]


@cache
def adult_logits() -> tuple[Any, Any]:
    table = adult()
    rich = np.where(table["income"] == ">50K", "yes", "no")
    ours = pv.regress(identity(YES).privatize(rich), table[ADULT_X], identity(YES))
    return ours, sm.Logit((rich == "yes").astype(float), table[ADULT_X]).fit(disp=0)


def test_the_identity_channel_is_the_logit_of_statsmodels() -> None:
    ours, theirs = adult_logits()
    assert ours.names == tuple(ADULT_X)
    np.testing.assert_allclose(ours.coefficients, theirs.params, atol=1e-6)
    np.testing.assert_allclose(ours.std_errors, theirs.bse, atol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(ours.covariance("expected"))), theirs.bse, atol=1e-6)
    assert ours.loglik == pytest.approx(theirs.llf, abs=1e-6)


def test_robust_errors_and_those_by_clusters_are_those_of_statsmodels() -> None:
    ours, theirs = adult_logits()
    clusters = adult()["occupation"]
    g = clusters.nunique()
    codes = pd.factorize(clusters)[0]
    robust = theirs.model.fit(disp=0, cov_type="HC0")
    options = {"groups": codes, "use_correction": False}
    clustered = theirs.model.fit(disp=0, cov_type="cluster", cov_kwds=options)
    np.testing.assert_allclose(ours.with_errors("robust").std_errors, robust.bse, rtol=1e-6)
    by_cluster = ours.with_errors("robust", clusters).std_errors
    np.testing.assert_allclose(by_cluster, np.sqrt(g / (g - 1)) * clustered.bse, rtol=1e-6)


def test_plans_with_the_same_content_are_one_device() -> None:
    plan, X = two_values(), covariates(300)
    copies = [plan, pv.Plan.from_json(plan.to_json())] * 150
    fit, same = (pv.regress(np.arange(300) // 7 % 2, X, each) for each in (copies, plan))
    assert len(fit.devices) == 1 and fit.hosmer_lemeshow() == same.hosmer_lemeshow()


def test_effects_and_predictions_are_those_of_statsmodels() -> None:
    ours, theirs = adult_logits()
    effects, known = ours.marginal_effects(), theirs.get_margeff()
    assert effects.covariates == tuple(ADULT_X[1:])
    np.testing.assert_allclose(effects.values[:, 0], known.margeff, atol=1e-7)
    np.testing.assert_allclose(effects.std_error[:, 0], known.margeff_se, atol=1e-7)
    rows = adult()[ADULT_X].iloc[:5]
    predicted = theirs.get_prediction(rows).summary_frame()
    np.testing.assert_allclose(ours.predict(rows).values[:, 0], predicted["predicted"], atol=1e-7)
    np.testing.assert_allclose(ours.predict(rows).std_error[:, 0], predicted["se"], atol=1e-7)


def test_four_values_are_the_mnlogit_of_statsmodels() -> None:
    table, labels = adult(), ["Never-married", "Divorced", "Other", "Married-civ-spouse"]
    marital = table["marital"].where(table["marital"].isin(labels), "Other").to_numpy()
    plan = identity(pv.Prior(dict.fromkeys(labels, 0.25)))
    ours = pv.regress(plan.privatize(marital), table[ADULT_X], plan)
    order = [3, 0, 1, 2]  # statsmodels has its baseline first
    codes = np.array([labels.index(each) for each in marital])
    theirs = sm.MNLogit(np.argsort(order)[codes], table[ADULT_X]).fit(disp=0, maxiter=100)
    assert ours.coefficients.shape == (5, 3)
    np.testing.assert_allclose(ours.coefficients, theirs.params, atol=1e-6)
    np.testing.assert_allclose(ours.std_errors, theirs.bse, atol=1e-6)
    effects, known = ours.marginal_effects(), theirs.get_margeff()
    np.testing.assert_allclose(effects.values[:, order], known.margeff, atol=1e-7)
    np.testing.assert_allclose(effects.std_error[:, order], known.margeff_se, atol=1e-7)


def test_direct_answers_are_the_identity_channel() -> None:
    table = adult().iloc[:3_000]
    rich = np.where(table["income"] == ">50K", "yes", "no")
    reports = [*rich[:1_000], *two_values().privatize(rich[1_000:], np.random.default_rng(1)).tolist()]
    mixed = pv.regress(reports, table[ADULT_X], [None] * 1_000 + [two_values()] * 2_000)
    codes = [int(answer == "no") for answer in rich[:1_000]] + reports[1_000:]
    by_identity = pv.regress(codes, table[ADULT_X], [identity(YES)] * 1_000 + [two_values()] * 2_000)
    np.testing.assert_allclose(mixed.coefficients, by_identity.coefficients, rtol=1e-6)
    assert mixed.loglik == pytest.approx(by_identity.loglik) and mixed.ldp == np.inf


# -- the likelihood itself -----------------------------------------------------------------------------------


def slope_by_differences(function: Callable[[Any], Any], at: Any, step: float = 1e-5) -> Any:
    steps = step * np.eye(len(at))
    return np.array([(function(at + e) - function(at - e)) / (2 * step) for e in steps])


def equations() -> list[EstimatingEquation]:
    rng = np.random.default_rng(2)
    Z = np.stack([np.ones(40), rng.normal(size=40)])
    denials = rng.integers(0, 2, 40).astype(float)
    return [
        LogitLikelihood(Z, rng.uniform(0.1, 1, (3, 40))),
        LogitLikelihood(Z, rng.uniform(0.1, 1, (2, 40)), denials),
        LogitScores(Z, rng.normal(size=(2, 40)), ridge=0.5),
    ]


@pytest.mark.parametrize("which", range(3))
def test_slopes_and_information_are_the_derivatives(which: int) -> None:
    equation = equations()[which]
    theta = np.random.default_rng(3).uniform(0.2, 0.8, equation.size)
    value = slope_by_differences(lambda at: equation.value_and_slope(at)[0], theta)
    slope = slope_by_differences(lambda at: equation.value_and_slope(at)[1], theta)
    np.testing.assert_allclose(equation.value_and_slope(theta)[1], value, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(equation.information(theta), -slope, rtol=1e-6, atol=1e-6)


def test_the_slopes_of_reports_add_up() -> None:
    equation = equations()[1]
    theta = np.array([0.3, -0.2, 0.7])
    clusters = np.zeros(40, dtype=np.int64)
    slope = equation.value_and_slope(theta)[1]
    np.testing.assert_allclose(equation.outer_products(theta, clusters), np.outer(slope, slope), atol=1e-9)
    each = np.arange(40)
    np.testing.assert_allclose(equation.outer_products(theta, each), equation.outer_products(theta))


def test_expected_information_is_the_mean_over_all_reports() -> None:
    """Also with compliance, against the sum over reports, each as often as it is made."""
    table = np.array([[0.8, 0.3], [0.2, 0.7]])
    Z, theta = np.array([[1.0], [0.4]]), np.array([0.2, -0.5, 0.6])
    total = np.zeros((3, 3))
    for report in (0, 1):
        denial = np.array([float(report == 1)])
        one = LogitLikelihood(Z, table[report][:, None], denial)
        chance = np.exp(one.value_and_slope(theta)[0])
        total += chance * one.information(theta)
    found = expected_information(
        one.covariates,
        one.coefficients(theta),
        [Device(np.array([0]), table, can_deny=True)],
        float(theta[-1]),
    )
    np.testing.assert_allclose(found, total, atol=1e-12)


def test_effects_have_the_derivatives_that_errors_are_made_of() -> None:
    Z = covariates(50).T
    at = FOUR_TRUE.T.ravel()
    numeric = slope_by_differences(lambda theta: average_effects(theta.reshape(3, 3), Z)[0], at)
    slopes = average_effects(FOUR_TRUE.T.copy(), Z)[1].reshape(3, 4, 9)
    np.testing.assert_allclose(slopes, np.moveaxis(numeric, 0, -1), atol=1e-8)


def test_loglik_of_a_table_is_complete() -> None:
    fit, X = four_fit(), covariates()
    eta = np.column_stack([X @ fit.coefficients, np.zeros(len(X))])
    shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    reports = draw(four_values(), X, FOUR_TRUE, 1)[1]
    Q = four_values().channel.matrix
    assert fit.loglik == pytest.approx(float(np.log((shares * Q.T[reports]).sum(axis=1)).sum()))


@pytest.mark.parametrize("method", ["columns", "unary", "arc"])
def test_every_mechanism_gives_the_coefficients_within_their_errors(method: str) -> None:
    z = (four_fit(method).coefficients - FOUR_TRUE) / four_fit(method).std_errors
    assert np.abs(z).max() < 3.5


@pytest.mark.parametrize("seed", range(5))
def test_no_other_start_finds_a_better_maximum(seed: int) -> None:
    plan, X, rng = pv.design(FOUR, 1.0, pv.Distribution()), covariates(1_000), np.random.default_rng(seed)
    fit = pv.regress(draw(plan, X, FOUR_TRUE, seed)[1], X, plan)
    others = [climb(fit.equation, rng.normal(size=9)).value for _ in range(5)]
    assert max(others) < fit.loglik + 1e-6


def test_covariates_may_have_any_scale() -> None:
    X = covariates()
    plan, moved = two_values(), X * [1.0, 1e4, 1.0] + [0.0, 2e6, 0.0]
    reports = draw(plan, X, [-1.0, 0.7, 0.4], 4)[1]
    fit, other = pv.regress(reports, X, plan), pv.regress(reports, moved, plan)
    assert other.loglik == pytest.approx(fit.loglik, rel=1e-10)
    np.testing.assert_allclose(other.coefficients[1:] * [1e4, 1], fit.coefficients[1:], rtol=1e-6)
    np.testing.assert_allclose(other.std_errors[1:] * [1e4, 1], fit.std_errors[1:], rtol=1e-6)


# -- scores --------------------------------------------------------------------------------------------------


def test_scores_of_the_identity_are_the_logit() -> None:
    codes, X = draw(identity(FOUR), covariates(), FOUR_TRUE, 6)[0], covariates()
    by_scores = pv.regress(codes, X, identity(FOUR), method="scores")
    np.testing.assert_allclose(
        by_scores.coefficients, pv.regress(codes, X, identity(FOUR)).coefficients, atol=1e-8
    )
    assert by_scores.errors == "robust" and np.isnan(by_scores.loglik)


def test_a_statistic_is_a_logit_of_its_values() -> None:
    codes, X = draw(identity(FOUR), covariates(), FOUR_TRUE, 7)[0], covariates()
    fit = pv.regress(codes, X, identity(FOUR), statistic=["a", "c"])
    theirs = sm.Logit(np.isin(codes, [0, 2]).astype(float), X).fit(disp=0, cov_type="HC0")
    np.testing.assert_allclose(fit.coefficients, theirs.params, atol=1e-7)
    np.testing.assert_allclose(fit.std_errors, theirs.bse, atol=1e-7)


def test_a_linear_model_is_least_squares_on_the_scores() -> None:
    plan, X = pv.design(FOUR, 2.0, pv.Sum([0.0, 1.0, 2.0, 3.0], unbiased=True)), covariates()
    reports = draw(plan, X, FOUR_TRUE, 8)[1]
    fit = pv.regress(reports, X, plan, model="linear")
    theirs = sm.OLS(plan.scores(reports)[:, 0], X).fit(cov_type="HC0")
    np.testing.assert_allclose(fit.coefficients, theirs.params, atol=1e-8)
    np.testing.assert_allclose(fit.std_errors, theirs.bse, atol=1e-8)
    np.testing.assert_allclose(fit.predict(X[:4]).values[:, 0], theirs.predict(X[:4]), atol=1e-8)
    assert "Linear model of sum" in str(fit)


def test_a_statistic_needs_no_more_than_its_own_scores() -> None:
    """Two reports determine the mean of three numbers, and not their distribution."""
    prior = pv.Prior([0.4, 0.3, 0.3])
    plan = pv.Plan.of([[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]], prior, pv.Sum([0.0, 1.0, 2.0], unbiased=True))
    X = covariates(500)
    reports = np.random.default_rng(17).integers(0, 2, 500)
    fit = pv.regress(reports, X, plan, model="linear")
    np.testing.assert_allclose(fit.coefficients, np.linalg.lstsq(X, plan.scores(reports)[:, 0])[0], atol=1e-8)
    for options in ({}, {"statistic": [0]}):
        with pytest.raises(NotIdentifiable, match="do not determine"):
            pv.regress(reports, X, plan, **options)


def test_one_statistic_of_a_large_plan() -> None:
    plan = pv.design(pv.Prior.zipf(80), 2.0, pv.Distribution(), method="unary")
    X = covariates(4_000)
    rng = np.random.default_rng(9)
    first = rng.uniform(size=len(X)) < 1 / (1 + np.exp(1 - X[:, 1]))
    reports = plan.privatize(np.where(first, 0, rng.integers(1, 80, len(X))), rng)
    fit = pv.regress(reports, X, plan, statistic=0)
    assert np.abs((fit.coefficients - [-1, 1, 0]) / fit.std_errors).max() < 3.5
    line = pv.regress(reports, X, plan, model="linear", statistic=0)
    np.testing.assert_allclose(
        line.coefficients, np.linalg.lstsq(X, plan.scores(reports)[:, 0])[0], atol=1e-8
    )
    with pytest.raises(InvalidInput, match="80 values"):
        pv.regress(reports, X, plan)


# -- tests of hypotheses ----------------------------------------------------------------------------------------


def test_wald_and_likelihood_ratio_are_near_each_other() -> None:
    plan, X = two_values(), covariates(20_000)
    reports = draw(plan, X, [-1.0, 0.1, 0.05], 10)[1]
    fit = pv.regress(reports, pd.DataFrame(X, columns=["one", "dose", "male"]), plan)
    restricted = pv.regress(reports, np.ones(len(X)), plan)
    wald, ratio = fit.wald(["dose", "male"]), fit.likelihood_ratio(restricted)
    assert (wald.degrees, ratio.degrees) == (2, 2)
    assert wald.statistic == pytest.approx(ratio.statistic, rel=0.05)
    assert fit.wald("dose").statistic == pytest.approx((fit.coefficients[1] / fit.std_errors[1]) ** 2)


def test_full_compliance_is_at_the_bound() -> None:
    plans = [pv.Plan.of([[1, 0], [q, 1 - q]], YES, pv.Distribution()) for q in (0.8, 0.2)]
    X, rng = covariates(4_000)[:, :2], np.random.default_rng(11)
    carriers = rng.uniform(size=len(X)) < 1 / (1 + np.exp(-X @ [0.0, 1.0]))
    both = [plan.privatize(np.where(carriers, "yes", "no"), rng) for plan in plans]
    turn = rng.integers(0, 2, len(X))
    reports = np.where(turn == 0, *both)
    own = [plans[each] for each in turn]
    fits = [pv.regress(reports[:n], X[:n], own[:n], compliance=True) for n in (1_000, 2_000, 3_000, 4_000)]
    at_bound = [fit for fit in fits if fit.compliance == 1.0]
    inside = [fit for fit in fits if fit.compliance < 1.0]
    assert at_bound and all(fit.compliance_test().p_value > 0.01 for fit in fits)
    for fit in at_bound:
        assert fit.compliance_interval() is None and "complianceAtBound" in [note.code for note in fit.notes]
        assert fit.compliance_test().p_value == 1.0
        assert fit.covariance().shape == fit.covariance("expected").shape == (2, 2)
    for fit in inside:
        assert fit.covariance().shape == (3, 3)


def test_hosmer_lemeshow_is_that_of_the_groups() -> None:
    plan, X = two_values(), covariates(1_000)[:, :2]
    reports = draw(plan, X, [-0.5, 1.0], 12)[1]
    fit = pv.regress(reports, X, plan)
    shares = fit.predict().values[:, 0]
    chances = shares * plan.channel.matrix[0, 0] + (1 - shares) * plan.channel.matrix[1, 0]
    statistic = 0.0
    for group in np.array_split(np.argsort(shares), 10):
        expected, n = chances[group].sum(), len(group)
        statistic += ((reports[group] == 0).sum() - expected) ** 2 / (expected * (1 - expected / n))
    found = fit.hosmer_lemeshow()
    assert found.degrees == 8 and found.statistic == pytest.approx(statistic)
    two = pv.regress([*reports, *reports], np.vstack([X, X]), [plan] * 1_000 + [identity(YES)] * 1_000)
    assert two.hosmer_lemeshow().degrees == 18


@pytest.mark.statistical
def test_hosmer_lemeshow_has_its_mean_within_several_devices() -> None:
    """The mean of 100 statistics has a standard error of .75: false alarm 3 in 1,000."""
    rng, n = np.random.default_rng(21), 2_000
    channels = two_values().channel, pv.devices.forced(0.6, 0.2), pv.devices.warner(0.8)
    plans = [pv.Plan.of(channel, YES, pv.Distribution()) for channel in channels]
    X, device = np.column_stack([np.ones(n), rng.normal(size=(n, 2))]), rng.integers(0, 3, n)
    own, statistics = [plans[each] for each in device], []
    for _ in range(100):
        codes = (rng.uniform(size=n) > 1 / (1 + np.exp(0.6 - 0.7 * X[:, 1]))).astype(int)
        reports = np.choose(device, [plan.privatize(codes, rng, codes=True) for plan in plans])
        found = pv.regress(reports, X, own).hosmer_lemeshow()
        statistics.append(found.statistic)
    assert found.degrees == 28 and np.mean(statistics) == pytest.approx(28, abs=3 * 0.75)


@pytest.mark.statistical
def test_hosmer_lemeshow_finds_a_curve() -> None:
    """The chance that a right model has a p-value below 1e-4 is about that; here it is for a wrong one."""
    x = np.random.default_rng(13).uniform(-2, 2, 20_000)
    X = np.column_stack([np.ones_like(x), x, x**2])
    reports = draw(two_values(), X, [-1.5, 0.5, 1.0], 14)[1]
    assert pv.regress(reports, X[:, :2], two_values()).hosmer_lemeshow().p_value < 1e-4
    assert pv.regress(reports, X, two_values()).hosmer_lemeshow().p_value > 1e-4


# -- errors by name ----------------------------------------------------------------------------------------------


def test_errors_by_name_are_alike_where_the_model_is_right() -> None:
    plan, X = two_values(), covariates(50_000)
    fit = pv.regress(draw(plan, X, [-1.0, 0.5, 0.5], 14)[1], X, plan)
    for kind in ("expected", "outer", "robust"):
        np.testing.assert_allclose(fit.with_errors(kind).std_errors, fit.std_errors, rtol=0.05)
    assert "outer products" in str(fit.with_errors("outer"))


def test_copies_in_clusters_say_nothing_new() -> None:
    X, plan = covariates(500), two_values()
    reports = draw(plan, X, [-1.0, 0.5, 0.5], 15)[1]
    once, groups = pv.regress(reports, X, plan).with_errors("robust"), np.repeat(np.arange(500), 3)
    thrice = pv.regress(np.repeat(reports, 3), np.repeat(X, 3, axis=0), plan).with_errors("robust", groups)
    np.testing.assert_allclose(thrice.std_errors, np.sqrt(500 / 499) * once.std_errors, rtol=1e-6)


# -- covariates ---------------------------------------------------------------------------------------------------


def frames() -> list[Any]:
    x = covariates(300)
    columns = {"one": x[:, 0], "dose": x[:, 1], "male": x[:, 2].astype(bool)}
    return [pd.DataFrame(columns), pl.DataFrame(columns), columns, {k: list(v) for k, v in columns.items()}]


@pytest.mark.parametrize("which", range(4))
def test_covariates_come_from_any_table(which: int) -> None:
    table, plan = frames()[which], two_values()
    reports = draw(plan, covariates(300), [-1.0, 0.5, 0.5], 16)[1]
    fit = pv.regress(reports, table, plan)
    assert fit.names == ("one", "dose", "male")
    np.testing.assert_allclose(fit.coefficients, pv.regress(reports, covariates(300), plan).coefficients)
    by_formula = pv.regress(
        reports, formula="~ dose + male", data=frames()[0 if which > 1 else which], plan=plan
    )
    np.testing.assert_allclose(by_formula.loglik, fit.loglik)
    new = frames()[0 if which > 1 else which][:3]
    np.testing.assert_allclose(by_formula.predict(new).values, fit.predict().values[:3], rtol=1e-6)


def refused(reports: Any = None, X: Any = None, plan: Any = None, **options: Any) -> Exception:
    plan = two_values() if plan is None else plan
    X = covariates(300) if X is None and "formula" not in options else X
    reports = np.arange(300) % 2 if reports is None else reports
    with pytest.raises(pv.PriorveilError) as caught:
        pv.regress(reports, X, plan, **options)
    return caught.value


def test_wrong_arguments_are_named() -> None:
    X = covariates(300)
    gap = np.where(np.arange(300)[:, None] == 7, np.nan, X)
    assert "x1 is missing or infinite in 1 row" in str(refused(X=gap))
    assert "300 rows for 2 reports" in str(refused([0, 1]))
    assert "2 plans for 300 reports" in str(refused(plan=[two_values()] * 2))
    assert "different values" in str(refused(plan=[two_values(), four_values()] * 150))
    assert "at least one plan" in str(refused(plan=[None] * 300))
    assert "x4 follows from other columns" in str(refused(X=np.column_stack([X, X[:, 1] + 2 * X[:, 0]])))
    assert "x2 is zero" in str(refused(X=X * [1, 0, 1]))
    assert "column g does not have numbers" in str(refused(X={"g": ["a", "b"] * 150}))
    assert "either X, or formula" in str(refused(X=X, formula="~ x", data={}))
    assert "begin with ~" in str(refused(formula="y ~ x", data={"x": X[:, 1]}))
    assert pv.regress(
        np.arange(300) % 2, formula="~ np.exp(x)", data={"x": X[:, 1]}, plan=two_values()
    ).names == ("Intercept", "np.exp(x)")
    assert "nothing is not among" in str(refused(formula="~ x + nothing", data=pd.DataFrame({"x": X[:, 1]})))
    assert "entries are missing" in str(refused(formula="~ x", data=pd.DataFrame({"x": gap[:, 1]})))
    assert "choose 'logit' or 'linear'" in str(refused(model="probit"))
    assert "weights 0 and 1" in str(refused(statistic={"yes": 2.0}))
    assert "it is for two values" in str(
        refused(np.zeros(300, dtype=int), plan=four_values(), compliance=True)
    )
    answers = [*["yes"] * 298, "maybe", 0]
    assert "not one of the labels" in str(refused(answers, plan=[None] * 299 + [two_values()]))


def test_predictions_refuse_categories_that_the_fit_has_not_seen() -> None:
    towns = pd.DataFrame({"town": ["A", "B", "C"] * 100})
    reports = np.arange(300) % 5 % 2
    fit = pv.regress(reports, formula="~ town", data=towns, plan=two_values())
    assert len(fit.predict(pd.DataFrame({"town": ["C", "A"]})).values) == 2
    refused_with = {"a category in it": {"town": ["A", "D"]}, "town is not among": {"city": ["A"]}}
    for words, data in refused_with.items():
        with pytest.raises(InvalidInput, match=words):
            fit.predict(pd.DataFrame(data))


def test_a_fit_refuses_what_it_cannot_say() -> None:
    fit, linear = (
        four_fit(),
        pv.regress(np.arange(300) % 2, covariates(300), two_values(), model="linear", statistic="yes"),
    )
    for call, text in [
        (lambda: fit.covariance("exact"), "observed, expected, outer, robust"),
        (lambda: fit.covariance("observed", np.arange(2_000)), "robust"),
        (lambda: fit.with_errors("robust", [1, 2]), "one entry for each"),
        (lambda: fit.with_errors("robust", [1] * 2_000), "one cluster"),
        (lambda: fit.wald("height"), "choose from x1, x2, x3"),
        (lambda: fit.likelihood_ratio(fit), "fewer than 9"),
        (lambda: fit.hosmer_lemeshow(), "two values"),
        (lambda: fit.compliance_test(), "not estimated"),
        (lambda: fit.predict(np.ones((2, 2))), "x1, x2, x3"),
        (lambda: four_fit("unary").covariance("expected"), "too many"),
        (lambda: linear.covariance("observed"), "robust errors only"),
        (lambda: linear.marginal_effects(), "marginal effects"),
        (lambda: linear.likelihood_ratio(fit), "no likelihood"),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput, match=text):
            call()


def test_separation_names_the_covariate() -> None:
    x = np.repeat([0.0, 1.0], 150)
    codes = np.where(x == 1, 0, np.arange(300) % 2)
    error = refused(codes, {"one": np.ones(300), "treated": x}, identity(YES))
    assert isinstance(error, NotIdentifiable) and error.statistics[0] in ("treated", "one")
    assert "no finite maximum" in str(error)


def test_a_channel_that_identifies_nothing_is_refused() -> None:
    plan = pv.Plan.of([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]], pv.Prior([0.3, 0.3, 0.4]), pv.Histogram())
    error = refused(plan=plan)
    assert isinstance(error, NotIdentifiable) and "do not determine" in str(error)


def test_reports_without_scores_are_read_by_the_likelihood_alone() -> None:
    prior = pv.Prior([0.5, 0.3, 0.2])
    good = pv.Plan.of(0.6 * np.eye(3) + 0.4 / 3, prior, pv.Distribution())
    coarse = pv.Plan.of([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]], prior, pv.Histogram())
    X = np.column_stack([np.ones(8_000), np.linspace(-1, 1, 8_000)])
    truth = np.array([[0.9, 0.4], [1.0, -0.5]])
    codes, reports = draw(good, X, truth, 4)
    reports[::2] = coarse.privatize(codes[::2], np.random.default_rng(5), codes=True)
    plans = [coarse, good] * 4_000
    fit = pv.regress(reports.tolist(), X, plans)
    assert (np.abs(fit.coefficients - truth) < 3.5 * fit.std_errors).all()  # false alarm: 2 in 1,000
    error = refused(reports.tolist(), X, plans, method="scores")
    assert isinstance(error, NotIdentifiable) and "likelihood" in str(error)


# -- how it looks ---------------------------------------------------------------------------------------------------


def test_the_summary_says_the_ldp_level_first() -> None:
    lines = str(four_fit()).splitlines()
    assert lines[0].startswith("Beside other columns, LDP ")
    assert lines[1] == "Logit on 2,000 reports"
    heads = lines[4].split()
    assert heads == ["value", "covariate", "coef", "std", "err", "z", "P>|z|", "[0.025", "0.975]"]
    assert [line.split()[:2] for line in lines[5:14]] == [[v, x] for v in "abc" for x in ("x1", "x2", "x3")]
    assert repr(four_fit()) == "RegressionFit(Logit on 2,000 reports: x1, x2, x3)"


def test_everything_prints_and_shows_in_notebooks() -> None:
    fit = four_fit()
    things = [fit, fit.predict(), fit.marginal_effects(), fit.wald("x2"), minarets_fit().compliance_test()]
    for thing in things:
        assert str(thing) and thing._repr_html_().startswith('<div class="priorveil">')
    assert "20 of 2,000 rows" in str(fit.predict())
    assert "half zero" in str(minarets_fit().compliance_test())


def test_frames_have_the_numbers() -> None:
    fit = four_fit()
    table = fit.to_frame("pandas")
    assert list(table.columns) == [
        "outcome",
        "covariate",
        "coefficient",
        "std_error",
        "z",
        "p_value",
        "low",
        "high",
    ]
    np.testing.assert_allclose(table["coefficient"].to_numpy().reshape(3, 3).T, fit.coefficients)
    shares = fit.predict(covariates()[:2]).to_frame("pandas")
    assert shares["value"].tolist() == ["a", "b", "c", "d"] * 2
    assert (shares["low"] < shares["estimate"]).all() and (shares["estimate"] < shares["high"]).all()
    assert shares.groupby("row")["estimate"].sum().tolist() == pytest.approx([1.0, 1.0])
    effects = fit.marginal_effects().to_frame("pandas")
    assert effects.groupby("covariate")["effect"].sum().tolist() == pytest.approx([0.0, 0.0], abs=1e-12)


def test_intervals_widen_with_confidence() -> None:
    fit = four_fit()
    lows = [fit.interval(level)[0] for level in (0.5, 0.9, 0.99)]
    assert all((wide < narrow).all() for narrow, wide in pairwise(lows))

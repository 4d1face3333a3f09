"""Estimates from samples: weights, strata, clusters, finite populations, calibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.statistics.calibration import Calibration
from priorveil.statistics.samples import beside_columns
from references import Array
from references import samples as oracle

PRIOR = pv.Prior({"yes": 0.2, "no": 0.8})
UNRELATED = pv.Plan.of(oracle.UNRELATED, PRIOR, pv.Distribution())
JOBS = pv.design(pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2}), 1.0, pv.Distribution())
PEOPLE = 120


class Drawn:
    """A small stratified cluster sample with unequal weights, and two public columns."""

    def __init__(self, plan: pv.Plan = JOBS, people: int = PEOPLE) -> None:
        rng = np.random.default_rng(11)
        self.plan = plan
        self.strata = np.repeat(["north", "south", "west"], people // 3)
        self.clusters = np.tile(np.arange(people // 6) // 2, 6)[:people] + 100 * (self.strata == "south")
        self.weights = rng.uniform(1, 4, people)
        values = rng.choice(len(plan.labels), people, p=plan.reference.probabilities)
        self.reports = plan.privatize(values, rng, codes=True)
        self.scores = plan.scores(self.reports)
        self.ages, self.sexes = rng.choice(["young", "old"], people), rng.choice(["f", "m"], people)
        self.sizes = {stratum: 25.0 for stratum in dict.fromkeys(self.strata.tolist())}

    def estimate(self, **settings: Any) -> Any:
        given = {"weights": self.weights, "strata": self.strata, "clusters": self.clusters}
        return self.plan.estimate_sample(self.reports, **{**given, **settings})

    @property
    def margins(self) -> dict[str, Any]:
        return {
            "age": (self.ages, {"young": 160.0, "old": 140.0}),
            "sex": (self.sexes, {"f": 170.0, "m": 130.0}),
        }


DRAWN = Drawn()


# -- against figures of others, and textbook formulas ----------------------------------------------------------


@pytest.mark.parametrize("variance", ["taylor", "jackknife"])
def test_unrelated_question_in_a_finite_population(variance: Any) -> None:
    reports = [0] * 60 + [1] * 440
    found = UNRELATED.estimate_sample(reports, population=2_000, variance=variance)
    assert found["yes"].value == pytest.approx(oracle.UNRELATED_SHARE, abs=5e-7)
    assert found["yes"].std_error ** 2 == pytest.approx(oracle.UNRELATED_VARIANCE, abs=5e-10)
    assert found.between[0, 0] == pytest.approx(oracle.UNRELATED_WITHOUT_NOISE, abs=5e-10)
    totals = UNRELATED.estimate_sample(
        reports, population=2_000, variance=variance, method="horvitz-thompson"
    )
    assert totals.values == pytest.approx(2_000 * found.values)
    assert totals.std_error == pytest.approx(2_000 * found.std_error)


def test_simple_random_samples_have_the_variance_of_a_mean() -> None:
    found = JOBS.estimate_sample(DRAWN.reports)
    assert found.values == pytest.approx(DRAWN.scores.mean(axis=0))
    assert found.covariance == pytest.approx(np.cov(DRAWN.scores.T) / PEOPLE)
    assert found.degrees_of_freedom == PEOPLE - 1


@pytest.mark.parametrize("variance", ["taylor", "jackknife"])
def test_stratified_cluster_totals_are_those_of_a_textbook(variance: Any) -> None:
    found = DRAWN.estimate(method="horvitz-thompson", variance=variance)
    for place in range(3):
        design = DRAWN.weights, DRAWN.strata, DRAWN.clusters
        total, expected = oracle.stratified_total(DRAWN.scores[:, place], *design)
        assert found.values[place] == pytest.approx(total)
        if variance == "taylor":
            assert found.std_error[place] ** 2 == pytest.approx(expected)
    assert found.degrees_of_freedom == found.clusters - 3


def test_hajek_means_have_the_variance_of_their_residuals() -> None:
    found, total = DRAWN.estimate(), DRAWN.weights.sum()
    for place, value in enumerate(found.values):
        residuals = (DRAWN.scores[:, place] - value) / total
        _, expected = oracle.stratified_total(residuals, DRAWN.weights, DRAWN.strata, DRAWN.clusters)
        assert found.std_error[place] ** 2 == pytest.approx(expected)


@pytest.mark.parametrize("method", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize("margins", [None, "all"])
def test_the_jackknife_leaves_out_one_cluster_and_centres_at_the_mean(method: Any, margins: Any) -> None:
    """Written out as in R's survey: JKn replicates, `rscales` (n - 1) / n, centred at the mean of all replicates."""
    given = DRAWN.margins if margins else None
    found = DRAWN.estimate(method=method, variance="jackknife", margins=given, population=DRAWN.sizes)
    replicates, scales = [], []
    for h, c in dict.fromkeys(zip(DRAWN.strata.tolist(), DRAWN.clusters.tolist(), strict=True)):
        inside = DRAWN.strata == h
        n = len(set(DRAWN.clusters[inside].tolist()))
        weights = np.where(inside, DRAWN.weights * n / (n - 1), DRAWN.weights)
        weights[inside & (DRAWN.clusters == c)] = 0
        if margins:
            weights = oracle.raked(weights, [DRAWN.ages, DRAWN.sexes], [s for _, s in DRAWN.margins.values()])
        divisor = weights.sum() if method == "hajek" else 1.0
        replicates.append(weights @ DRAWN.scores / divisor)
        scales.append((1 - n / 25) * (n - 1) / n)
    deviations = np.array(replicates) - np.mean(replicates, axis=0)
    assert found.between == pytest.approx(deviations.T @ (np.array(scales)[:, None] * deviations))


# -- the noise -------------------------------------------------------------------------------------------------


def exact_noise(plan: pv.Plan) -> Array:
    """The covariance of the scores of people with each value, from the channel."""
    scores = plan.scores(np.arange(plan.mechanism.outputs))
    means = plan.channel.matrix @ scores
    squares = np.einsum("xy,ya,yb->xab", plan.channel.matrix, scores, scores)
    return np.asarray(squares - means[:, :, None] * means[:, None, :])


@pytest.mark.parametrize(
    "query",
    [
        pv.Distribution(),
        pv.Sum(values=[0, 1, 4], unbiased=True),
        pv.Linear([[1, 1, 0], [0, 2, 5]], unbiased=True),
    ],
    ids=["distribution", "sum", "linear"],
)
def test_the_noise_of_a_score_is_unbiased_for_every_value(query: pv.Query) -> None:
    plan = pv.Plan.of(JOBS.channel, JOBS.prior, query)
    noise, channel = plan.score_noise(np.arange(plan.mechanism.outputs)), plan.channel.matrix
    exact = exact_noise(plan)
    assert channel @ noise.each() == pytest.approx(np.diagonal(exact, axis1=1, axis2=2))
    for value, row in enumerate(channel):
        assert noise.sum(row) == pytest.approx(exact[value])


def test_a_census_has_the_variance_of_its_noise() -> None:
    found = JOBS.estimate_sample(DRAWN.reports, population=PEOPLE)
    noise = JOBS.score_noise(DRAWN.reports).each()
    assert found.between == pytest.approx(np.zeros((3, 3)))
    assert found.std_error**2 == pytest.approx(noise.sum(axis=0) / PEOPLE**2)
    assert np.diag(found.covariance) == pytest.approx(found.std_error**2)
    assert (found.std_error > 0).all()


@pytest.mark.parametrize("method", ["hajek", "horvitz-thompson"])
def test_the_noise_that_is_put_back_is_that_of_each_stratum(method: Any) -> None:
    found = DRAWN.estimate(method=method, population=DRAWN.sizes)
    noise = JOBS.score_noise(DRAWN.reports).each()
    divisor = DRAWN.weights.sum() if method == "hajek" else 1.0
    fractions = {
        h: len({*DRAWN.clusters[DRAWN.strata == h].tolist()}) / size for h, size in DRAWN.sizes.items()
    }
    share = np.array([fractions[h] for h in DRAWN.strata.tolist()])
    added = (share * (DRAWN.weights / divisor) ** 2) @ noise
    assert found.std_error**2 - np.diag(found.between) == pytest.approx(added)


def test_a_stratum_with_one_cluster_may_be_a_census() -> None:
    reports = [0, 1, 0, 1, 1]
    strata = ["a", "a", "a", "b", "b"]
    clusters = [1, 2, 2, 1, 1]
    found = UNRELATED.estimate_sample(reports, None, strata, clusters, {"a": 6, "b": 1})
    assert found.people == 3 * 3 + 2
    assert (found.std_error > 0).all()


def test_rounding_to_a_grid_is_noise_too() -> None:
    prior = pv.Prior.grid([0, 10], [0.5, 0.5])
    plan = pv.design(prior, 1.0, pv.Sum(values=[0, 10], unbiased=True))
    census = plan.estimate_sample([0, 1, 1, 0], population=4)
    points = pv.Plan.of(plan.channel, [0.5, 0.5], pv.Sum(values=[0, 10], unbiased=True))
    exact = points.estimate_sample([0, 1, 1, 0], population=4)
    assert census.std_error**2 - exact.std_error**2 == pytest.approx([25 / 4])


# -- calibration -----------------------------------------------------------------------------------------------


def test_raked_weights_have_the_margins() -> None:
    calibration = Calibration.of(DRAWN.margins, PEOPLE)
    weights = calibration.weights(DRAWN.weights)
    for column, sizes in DRAWN.margins.values():
        for level, size in sizes.items():
            assert weights[column == level].sum() == pytest.approx(size, abs=1e-8)
    columns, sizes = [DRAWN.ages, DRAWN.sexes], [sizes for _, sizes in DRAWN.margins.values()]
    assert weights == pytest.approx(oracle.raked(DRAWN.weights, columns, sizes), rel=1e-9)


def brute_force_variance(estimator: Callable[[Array], Array], weights: Array) -> Array:
    """The linearised variance of any function of the weights, from its numerical derivatives."""
    slopes = oracle.derivatives(estimator, weights)
    ones = np.ones(PEOPLE)
    return np.array(
        [oracle.stratified_total(each, ones, DRAWN.strata, DRAWN.clusters)[1] for each in slopes.T]
    )


def calibrated_mean(margins: dict[str, Any]) -> Callable[[Array], Array]:
    columns, sizes = zip(*margins.values(), strict=True)

    def mean(weights: Array) -> Array:
        own = oracle.raked(weights, columns, sizes)
        return np.asarray(own @ DRAWN.scores / own.sum())

    return mean


def test_post_stratified_variance_is_that_of_the_derivatives() -> None:
    margins = {"age": DRAWN.margins["age"]}
    expected = brute_force_variance(calibrated_mean(margins), DRAWN.weights)
    assert DRAWN.estimate(margins=margins).std_error ** 2 == pytest.approx(expected, rel=1e-6)


def test_raked_variance_is_that_of_the_derivatives() -> None:
    """Exactly where the design weights have the margins; otherwise residuals with the design weights come near."""
    mean = calibrated_mean(DRAWN.margins)
    own = oracle.raked(DRAWN.weights, [DRAWN.ages, DRAWN.sexes], [s for _, s in DRAWN.margins.values()])
    exact = DRAWN.estimate(weights=own, margins=DRAWN.margins).std_error ** 2
    assert exact == pytest.approx(brute_force_variance(mean, own), rel=1e-6)
    near = DRAWN.estimate(margins=DRAWN.margins).std_error ** 2
    assert near == pytest.approx(brute_force_variance(mean, DRAWN.weights), rel=0.02)


def test_raked_residuals_are_taken_with_design_weights() -> None:
    """Weighted least squares of the scores on the levels, written out."""
    found = DRAWN.estimate(margins=DRAWN.margins)
    own = Calibration.of(DRAWN.margins, PEOPLE).weights(DRAWN.weights)
    members = np.stack([DRAWN.ages == "young", DRAWN.ages == "old", DRAWN.sexes == "f"], axis=1).astype(float)
    root = np.sqrt(DRAWN.weights)[:, None]
    slopes = np.linalg.lstsq(root * members, root * DRAWN.scores, rcond=None)[0]
    residuals = (DRAWN.scores - members @ slopes) / own.sum()
    for place in range(3):
        _, expected = oracle.stratified_total(residuals[:, place], own, DRAWN.strata, DRAWN.clusters)
        assert found.std_error[place] ** 2 == pytest.approx(expected)


def test_raked_totals_of_equal_weights_are_those_of_r() -> None:
    """As in `svyrecvar` of R's survey, which sweeps the means of every margin out of the scores, ten times."""
    found = DRAWN.estimate(weights=np.full(PEOPLE, 2.5), margins=DRAWN.margins, method="horvitz-thompson")
    sizes = [sizes for _, sizes in DRAWN.margins.values()]
    own = oracle.raked(np.full(PEOPLE, 2.5), [DRAWN.ages, DRAWN.sexes], sizes)
    assert found.values == pytest.approx(own @ DRAWN.scores, rel=1e-8)
    for place in range(3):
        parts = own * DRAWN.scores[:, place]
        for _ in range(10):
            for column in (DRAWN.ages, DRAWN.sexes):
                for level in np.unique(column):
                    parts[column == level] -= (own * (parts / own)[column == level].mean())[column == level]
        _, expected = oracle.stratified_total(parts, np.ones(PEOPLE), DRAWN.strata, DRAWN.clusters)
        assert found.std_error[place] ** 2 == pytest.approx(expected, rel=1e-8)


# -- what it says ----------------------------------------------------------------------------------------------


def test_intervals_are_normal_or_student() -> None:
    found = DRAWN.estimate()
    low, high = found.interval(0.95)
    assert (high - low) / found.std_error / 2 == pytest.approx([1.959964] * 3)
    assert found.degrees_of_freedom == 27
    low, high = found.interval(0.95, student=True)
    assert (high - low) / found.std_error / 2 == pytest.approx([2.051831] * 3)  # of a table of t with 27


def test_the_level_beside_other_columns_comes_first() -> None:
    assert str(DRAWN.estimate()).startswith("Beside other columns, LDP ")
    assert "Beside other columns" not in str(JOBS.estimate_sample(DRAWN.reports))
    assert "LDP" in DRAWN.estimate()._repr_html_()
    assert "no level of privacy holds" in str(beside_columns(math.inf, math.inf))


def test_totals_and_sums_are_printed() -> None:
    plan = pv.Plan.of(JOBS.channel, JOBS.prior, pv.Sum(values=[0, 1, 4], unbiased=True))
    drawn = Drawn(plan)
    assert "mean" in str(drawn.estimate())
    assert "horvitz-thompson" in str(drawn.estimate(method="horvitz-thompson"))
    frame = drawn.estimate().to_frame("pandas")
    assert list(frame.columns) == ["value", "estimate", "std_error", "low", "high"]
    assert repr(drawn.estimate()).startswith("SampleEstimate(hajek, 120 reports: sum ")
    assert drawn.estimate()["sum"].value == pytest.approx(drawn.estimate().values[0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_data_frames_are_read(library: str) -> None:
    frames: Any = pytest.importorskip(library)
    columns = {"report": DRAWN.reports, "w": DRAWN.weights, "h": DRAWN.strata, "c": DRAWN.clusters}
    frame = frames.DataFrame({name: column.tolist() for name, column in columns.items()})
    found = JOBS.estimate_sample(frame["report"], frame["w"], frame["h"], frame["c"], DRAWN.sizes)
    assert found.std_error == pytest.approx(DRAWN.estimate(population=DRAWN.sizes).std_error)


@pytest.mark.parametrize("method", ["arc", "unary", "subset"])
def test_a_census_by_any_mechanism_has_the_expected_error(method: Any) -> None:
    """That of a sample from the prior, less the variance of the people drawn."""
    plan = pv.design(pv.Prior.uniform(12), 1.0, pv.Distribution(), method=method)
    values = np.arange(2_400) % 12
    census = plan.estimate_sample(
        plan.privatize(values, np.random.default_rng(3), codes=True), population=2_400
    )
    sampling = (1 / 12) * (11 / 12) / 2_400
    expected = np.sqrt(plan.std_error(2_400) ** 2 - sampling)
    assert census.std_error == pytest.approx(expected, rel=0.1)
    assert np.sqrt(np.diag(census.covariance)) == pytest.approx(census.std_error)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": [-1.0] * PEOPLE}, "weights: one is negative"),
        ({"weights": [0.0] * PEOPLE}, "weights: all are zero"),
        ({"weights": [1.0, 2.0]}, "weights: shape"),
        ({"strata": ["a"]}, "strata: it has the length 1"),
        ({"strata": [None] * PEOPLE}, "strata: some are missing"),
        ({"clusters": list(range(PEOPLE + 1))}, "clusters: it has the length 121"),
        ({"strata": ["a"] * (PEOPLE - 1) + ["b"]}, "strata: the stratum 'b' has a single cluster"),
        ({"strata": None, "clusters": [1] * PEOPLE}, "clusters: the sample has a single cluster"),
        ({"population": 500}, "population: give {stratum"),
        ({"population": {"north": 50, "south": 60}}, "population: it has no size for the stratum 'west'"),
        ({"population": {"north": 50, "south": 60, "west": 3}}, "population = 3: give a number of at least 10"),
        ({"strata": None, "population": {"north": 50}}, "population: give one number"),
        ({"method": "mean"}, "method = 'mean': choose one of hajek, horvitz-thompson"),
        ({"variance": "bootstrap"}, "variance = 'bootstrap': choose one of taylor, jackknife"),
        ({"margins": {"age": {"young": 1}}}, "margins: age: give (column"),
        ({"margins": {"age": (DRAWN.ages, {"young": 1})}}, "margins: age: the level 'old' has no size"),
        ({"margins": {"age": (DRAWN.ages, {"young": 1, "old": 0})}}, "margins: age: every size"),
        ({"margins": {"age": (DRAWN.ages, {"young": 1, "old": "many"})}}, "margins: age: every size"),
        ({"margins": {"age": (DRAWN.ages, {"young": 1, "old": 1, "other": 1})}}, "the level 'other'"),
        (
            {"margins": {"a": (DRAWN.ages, {"young": 1, "old": 1}), "s": (DRAWN.sexes, {"f": 1, "m": 2})}},
            "margins: their sizes add up to 2, 3",
        ),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        DRAWN.estimate(**settings)
    assert message in str(refused.value)


def test_contradicting_margins_are_refused() -> None:
    groups = np.where(DRAWN.ages == "young", "1", "2")
    margins = {"a": (DRAWN.ages, {"young": 1.0, "old": 2.0}), "b": (groups, {"1": 2.0, "2": 1.0})}
    with pytest.raises(InvalidInput, match="raking has not converged"):
        DRAWN.estimate(margins=margins)


def test_no_reports_are_refused() -> None:
    with pytest.raises(InvalidInput, match="there are none to estimate from"):
        JOBS.estimate_sample([])


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (pv.Histogram(), "Distribution()"),
        (pv.Sum(values=[0, 1, 2]), "unbiased=True"),
        (pv.Guess(), "Distribution()"),
    ],
    ids=["histogram", "sum", "guess"],
)
def test_leaning_queries_are_refused_and_the_unbiased_one_is_named(query: pv.Query, hint: str) -> None:
    plan = pv.design(JOBS.prior, 1.0, query)
    with pytest.raises(InvalidInput) as refused:
        plan.estimate_sample(plan.privatize(["a"] * 10, np.random.default_rng(1)))
    assert hint in str(refused.value)


def test_noise_that_reports_do_not_determine_is_refused() -> None:
    """Two reports tell the mean of three values, not the mean of their squares."""
    channel = [[0.7, 0.3], [0.5, 0.5], [0.3, 0.7]]
    plan = pv.Plan.of(channel, JOBS.prior, pv.Sum(values=[0, 1, 2], unbiased=True))
    reports = plan.privatize(["a", "b", "c", "c"], np.random.default_rng(1))
    assert plan.estimate_sample(reports).std_error[0] > 0
    with pytest.raises(NotIdentifiable, match="do not determine their own noise"):
        plan.estimate_sample(reports, population=100)

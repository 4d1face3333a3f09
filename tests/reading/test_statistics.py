"""Single statistics: what they print, what cells and grids hide, and ratios that reports do not bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import priorveil as pv
from priorveil.certify import round_rows
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.mechanisms import Table
from priorveil.reading.estimate_notes import ABOUT_CELLS, ABOUT_POINTS
from priorveil.reading.statistics import ratio_of
from priorveil.results.statistic_tables import answer_rows
from priorveil.words.notes import people_text
from priorveil.words.results import row_texts
from refusals import raises

PRIOR = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05})
EDGES = np.array([0.0, 10.0, 20.0, 50.0])
CELLS = pv.Prior.cells(EDGES, [0.3, 0.4, 0.3])
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2


def estimate_of(plan: pv.Plan, people: int, seed: int = 0, law=PRIOR.probabilities) -> pv.Estimate:
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(law), people, p=law)
    return plan.estimate(plan.tally(plan.privatize(codes, rng, codes=True)))


@pytest.fixture(scope="module")
def plan() -> pv.Plan:
    return pv.design(PRIOR, 1.0, pv.Distribution())


def test_a_statistic_prints_its_name_value_interval_method_and_people(plan: pv.Plan) -> None:
    estimate = estimate_of(plan, 4_000)
    ratio = estimate.ratio(["a"], ["a", "b"])
    low, high = ratio.interval()
    expected = f"ratio of a to a, b: {ratio.value:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    assert str(ratio) == f"{expected} (method unbiased, 4,000 people)"
    assert repr(ratio) == f"Statistic({ratio})"
    names = [estimate.mean([1, 2, 3, 4]), estimate.quantile(0.5, [1, 2, 3, 4]), estimate.contrast(["a"])]
    assert [statistic.name for statistic in names] == ["mean", "quantile 0.5", "contrast"]


def test_an_estimate_has_the_statistic_of_each_label(plan: pv.Plan) -> None:
    estimate = estimate_of(plan, 4_000)
    for chosen in (estimate, estimate.project()):
        for i, label in enumerate(chosen.labels):
            one, (low, high) = chosen[label], chosen.interval()
            assert (one.value, one.name) == (chosen.values[i], label)
            assert one.interval() == pytest.approx((low[i], high[i]))
    with raises(InvalidInput, argument="label"):
        estimate["e"]
    with pytest.raises(TypeError):
        iter(estimate)


def test_labels_may_be_numbers_tuples_and_names_of_statistics() -> None:
    numbers = pv.Prior([0.6, 0.4], [5, 2.5])
    pairs = pv.Prior.joint(
        {("x", 1): 0.3, ("x", 2): 0.2, ("y", 1): 0.4, ("y", 2): 0.1}, names=("letter", "digit")
    )
    margins = pv.Linear.margins(pairs, ["letter"])
    for prior, query, label in (
        (numbers, pv.Histogram(), 2.5),
        (pairs, pv.Histogram(), ("x", 2)),
        (pairs, margins, "letter=y"),
    ):
        estimate = estimate_of(pv.design(prior, 2.0, query), 100, law=prior.probabilities)
        assert estimate[label].value == estimate.values[estimate.labels.index(label)]
    assert estimate.margin("letter")["y"].value == pytest.approx(estimate["letter=y"].value)
    told = estimate_of(pv.design(pairs, 2.0, pv.Histogram()), 100, law=pairs.probabilities)
    for label in ("x", "x, 1", 1):
        with raises(InvalidInput, argument="label", value=label, hint="estimate.margin"):
            told[label]


# -- ratios that reports do not bound ------------------------------------------------------------------------


def test_a_ratio_that_is_not_bounded_says_how_many_people_would_bound_it(plan: pv.Plan) -> None:
    """With that many people, and shares as they are estimated, the denominator is 1.96 standard errors from zero."""
    estimates = (estimate_of(plan, 60, seed) for seed in range(20))
    ratio = next(
        r for e in estimates if e.values[3] > 0 and math.isinf((r := e.ratio(["d"], ["d"])).interval()[1])
    )
    assert "the reports do not bound this number; about" in str(ratio) and "inf" not in str(ratio)
    assert ratio.people_to_bound > 60
    assert "do not bound" in ratio._repr_html_() and "inf" not in ratio._repr_html_()
    bounded = estimate_of(plan, 4_000).ratio(["a"], ["a", "b"])
    assert bounded.people_to_bound < 4_000 and "bound" not in str(bounded)


@pytest.mark.parametrize(
    ("needed", "text"), [(1.2, "2"), (3.4, "4"), (19.2, "20"), (104.2, "110"), (12345.6, "13,000")]
)
def test_numbers_of_people_are_rounded_up_to_whole_ones(needed: float, text: str) -> None:
    assert people_text(needed) == f"{text} people"


@pytest.mark.parametrize("nobody", [[], {"a": 0}])
def test_a_ratio_may_have_nobody_on_top(plan: pv.Plan, nobody) -> None:
    ratio = estimate_of(plan, 4_000).ratio(nobody, ["b"])
    assert ratio.value == 0 and ratio.interval() == pytest.approx((0, 0))
    assert ratio.name == "ratio of no value to b"


def test_people_to_bound_is_where_the_interval_gets_ends() -> None:
    sums, covariance = np.array([[3.0, 5.0]] * 2), np.array([[9.0, 4.0], [4.0, 25.0]])
    needed = ratio_of(sums, covariance, 100).people_to_bound
    for people, has_ends in ((needed * 0.999, False), (needed * 1.001, True)):
        scale = people / 100
        assert math.isfinite(ratio_of(scale * sums, scale * covariance, 100).interval()[1]) is has_ends


# -- grids and cells -----------------------------------------------------------------------------------------


def test_shares_of_the_points_of_a_grid_carry_a_warning() -> None:
    """A number between two points counts at either; groups are not rounded, and shares of them have no warning."""
    joint = pv.Prior.joint(
        {(g, x): 0.25 for g in "ab" for x in (0, 100)}, ("group", "number"), grids=("number",)
    )
    grid = pv.Prior.grid([0, 50, 100], [0.25, 0.5, 0.25])
    rng = np.random.default_rng(1)
    estimate = (p := pv.design(grid, 3.0, pv.Histogram())).estimate(p.tally(p.privatize([25.0] * 50, rng)))
    for statistic in (estimate.ratio([100.0], [50.0, 100.0]), estimate.contrast([100.0]), estimate[100.0]):
        assert statistic.about == ABOUT_POINTS and str(ABOUT_POINTS) in str(statistic)
    assert estimate.mean().about is None
    of_groups = (p := pv.design(joint, 3.0, pv.Histogram())).estimate(
        p.tally(p.privatize([("a", 30.0)] * 50, rng))
    )
    first, second = [("a", 0), ("a", 100)], list(joint.labels)
    assert of_groups.ratio(first, second).about is None


@pytest.mark.parametrize("at", [0.0, 0.5, 0.999])
def test_the_mean_of_midpoints_holds_wherever_people_are_in_their_cells(at: float) -> None:
    """400 collections of 500 people, all at the same place of their cells: at least 95 % of the intervals hold."""
    plan, rng, held = pv.design(CELLS, 2.0, pv.Distribution()), np.random.default_rng(2), []
    low, width = EDGES[:-1], np.diff(EDGES)
    truth = CELLS.probabilities @ (low + at * width)
    for _ in range(400):
        codes = rng.choice(3, 500, p=CELLS.probabilities)
        estimate = plan.estimate(plan.tally(plan.privatize((low + at * width)[codes], rng)))
        mean = estimate.mean(MIDDLES)
        held.append(mean.interval()[0] <= truth <= mean.interval()[1])
    assert np.mean(held) > 0.906
    assert mean.bias == pytest.approx([estimate.proportions @ width / 2] * 2)
    assert np.ptp(mean.interval()) < estimate.proportions @ width + 6 * mean.std_error


def test_scores_of_cells_that_are_no_numbers_in_them_hide_nothing() -> None:
    estimate = estimate_of(pv.design(CELLS, 2.0, pv.Distribution()), 500, law=CELLS.probabilities)
    share = estimate.mean([1, 0, 0])
    assert share.bias == (0.0, 0.0)
    assert np.ptp(share.interval()) == pytest.approx(2 * 1.959964 * share.std_error)


def test_a_sum_over_cells_says_that_people_may_be_anywhere_in_them() -> None:
    estimate = estimate_of(pv.design(CELLS, 2.0, pv.Sum(MIDDLES)), 500, law=CELLS.probabilities)
    mean = estimate.mean()
    assert (
        np.ptp(mean.interval()) > np.ptp(estimate.interval()) / 500
    )  # that of the sum is about the numbers given
    assert ABOUT_CELLS in estimate.notes
    assert estimate.contrast([1]).about == estimate["sum"].about == ABOUT_CELLS
    assert mean.about is None
    scores = estimate_of(pv.design(CELLS, 2.0, pv.Sum([1, 0, 0])), 500, law=CELLS.probabilities)
    assert ABOUT_CELLS not in scores.notes and scores["sum"].about is None


def test_the_mean_of_midpoints_is_read_where_that_of_edges_is_not_determined() -> None:
    """Two reports whose chances are linear in the midpoints determine their mean, and that of no other numbers."""
    second = 0.2 + 0.6 * np.array(MIDDLES) / EDGES[-1]
    plan = pv.Plan.of(np.stack([1 - second, second], axis=1), CELLS, pv.Sum(MIDDLES, unbiased=True))
    assert not plan.identifiable
    estimate = estimate_of(plan, 50_000, law=CELLS.probabilities)
    mean, widest = estimate.mean(), float(np.diff(EDGES).max()) / 2
    assert mean.value * 50_000 == pytest.approx(estimate.values[0])
    assert mean.bias == (widest, widest)
    assert np.ptp(mean.interval()) == pytest.approx(2 * (widest + 1.959964 * mean.std_error))


def test_means_of_midpoints_allow_for_cells_beside_groups() -> None:
    """Everybody is at the lower edge: far below the middles, over all and in each group."""
    labels = [(group, cell) for group in ("young", "old") for cell in CELLS.labels]
    joint = pv.Prior.joint(
        dict(zip(labels, np.outer([0.4, 0.6], CELLS.probabilities).ravel(), strict=True)),
        ("age", "hours"),
        cells={"hours": EDGES},
    )
    rng, numbers = np.random.default_rng(5), np.tile(MIDDLES, 2)
    ages = rng.choice(["young", "old"], 4_000, p=[0.4, 0.6])
    hours = rng.choice(EDGES[:-1], 4_000, p=CELLS.probabilities)
    for query in (pv.Distribution(), pv.Sum(numbers)):
        plan = pv.design(joint, 2.0, query)
        estimate = plan.estimate(plan.tally(plan.privatize({"age": ages, "hours": hours}, rng)))
        mean = estimate.mean(numbers)
        assert mean.interval()[0] <= hours.mean() < mean.value - 6 * mean.std_error
        assert mean.interval()[1] > mean.value + mean.bias[1]
        assert (ABOUT_CELLS in estimate.notes) is estimate.is_sum
    estimate = (p := pv.design(joint, 2.0, pv.Distribution())).estimate(
        p.tally(p.privatize({"age": ages, "hours": hours}, rng))
    )
    for age, average in zip(("young", "old"), estimate.mean(numbers, by="age").statistics, strict=True):
        low, high = average.interval()
        truth = hours[ages == age].mean()
        assert low <= truth < average.value - 6 * average.std_error
        assert high > average.value + average.bias[1] > average.value
    variance = estimate.variance(numbers)
    assert variance.interval()[0] <= hours.var() <= variance.interval()[1]
    assert estimate.mean([1, 0, 0, 1, 0, 0]).bias == (0.0, 0.0)


def test_the_variance_of_midpoints_allows_for_the_width_of_cells() -> None:
    """All people at the lower edges of two cells: their variance is larger than that of the middles."""
    cells = pv.Prior.cells([0, 10, 14], [0.5, 0.5])
    plan, rng = pv.design(cells, 4.0, pv.Distribution()), np.random.default_rng(3)
    numbers = np.repeat([0.0, 13.9], 5_000)
    variance = plan.estimate(plan.tally(plan.privatize(numbers, rng))).variance([5, 12])
    assert variance.value + 6 * variance.std_error < numbers.var() < variance.interval()[1]


# -- refusals ------------------------------------------------------------------------------------------------


def test_a_refused_ratio_names_only_what_reports_do_not_determine() -> None:
    """The first two values have the same law of reports, and the others are told apart."""
    groups = np.array([0, 0, 1, 2, 3])
    channel = 0.2 / 4 + 0.8 * np.equal.outer(groups, np.arange(4))
    query = pv.Linear([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]], unbiased=True)
    designed = pv.design(pv.Prior([0.2] * 5, list("abcde")), 1.0, query)
    estimate = estimate_of(replace(designed, mechanism=Table(round_rows(channel))), 500, law=[0.2] * 5)
    assert math.isfinite(estimate.ratio(["a", "b"], ["a", "b", "c"]).value)
    with raises(NotIdentifiable) as error:
        estimate.ratio(["c", "a"], ["c", "d", "e"])
    assert error.value.statistics == ("a",)


def test_a_ratio_cut_off_at_what_is_possible_holds_as_often_as_before() -> None:
    """Wherever Fieller's interval has a possible ratio, so has the one that is cut off; and it is never empty."""
    rng, cut = np.random.default_rng(7), 0
    for _ in range(500):
        means, scale = rng.normal([20, 30], 20), rng.uniform(1, 6, 2)
        tie = rng.uniform(-0.9, 0.9)
        covariance = np.outer(scale, scale) * [[1, tie], [tie, 1]]
        nearest = np.array([[10.0, 30.0], means])  # a possible answer, beside the unbiased one
        free = ratio_of(nearest, covariance, 100)
        limited = ratio_of(nearest, covariance, 100, limits=(0.0, 1.0))
        (low, high), (least, most) = free.linear_ends(1.96), limited.linear_ends(1.96)
        assert 0 <= least <= most <= 1
        for ratio in np.linspace(0, 1, 11):
            assert least - 1e-9 <= ratio <= most + 1e-9 or not low <= ratio <= high
        cut += low > 1 or high < 0
    assert cut > 20, "some intervals would be empty"


def test_an_interval_that_reaches_to_what_is_possible_says_at_most_or_at_least(plan: pv.Plan) -> None:
    estimate = plan.estimate(plan.tally(plan.privatize(["a"] * 400, np.random.default_rng(1))), "mle")
    texts = [row_texts(row, "amount").interval for row in answer_rows(estimate)]
    assert texts[0].startswith("at least ") and texts[3].startswith("at most ")
    few = plan.estimate(plan.tally(plan.privatize(["a"], np.random.default_rng(1))), "mle")
    assert [row_texts(row, "amount").interval for row in answer_rows(few)] == ["not bounded"] * 4
    assert few.ratio(["b"], ["a", "b"]).is_unbounded() and few.ratio(["b"], ["a", "b"]).interval() == (0, 1)

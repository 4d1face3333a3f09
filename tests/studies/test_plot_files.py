"""Pictures of estimates and channels: what is in them, for few values and for many."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'priorveil[plot]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'priorveil[tables]'")

from matplotlib.axes import Axes

from priorveil.results.form_estimates import PartEstimates
from priorveil.studies import plot_files
from priorveil.tables import estimate_table
from priorveil.words.plots import curves
from priorveil.words.plots.lifts import report_order
from priorveil.words.plots.names import short_name
from priorveil.words.plots.plans import plan_layout
from priorveil.words.plots.statistics import statistics_figure
from priorveil.words.results import groups_warning


def found(d: int, groups: int = 0, query: pv.Histogram | pv.Sum | None = None) -> PartEstimates:
    prior = pv.Prior.from_counts({f"the value number {i} of many, or ${i}": d + i for i in range(d)})
    plan = pv.design(prior, 2.0, query or pv.Histogram(), method="arc" if d > 20 else "auto")
    reports = plan.privatize(np.arange(600) % d, np.random.default_rng(d), codes=True)
    table = {"report": reports, "town": [f"town {i % max(groups, 1)}" for i in range(600)]}
    return estimate_table(table, plan, by="town" if groups else None, assume_plan=True).only


def drawn(what: PartEstimates, by: str | None = None) -> object:
    """The figure, without writing it."""
    panels = list(plot_files.estimate_panels(what, by, 0.95))
    return statistics_figure(panels, plan_layout(what.plans[0]), "estimate, 95 % interval")


@pytest.mark.parametrize("d", [2, 20, 83, 1_200])
def test_every_value_is_there_with_its_interval_and_its_prior(d: int) -> None:
    what = found(d)
    figure = drawn(what)
    (first,) = figure.axes
    labels = first.get_legend_handles_labels()[1]
    assert "what the prior expects" in labels and any("95 % interval" in label for label in labels)
    ends = np.array([line[:, 0] for line in first.containers[0].lines[2][0].get_segments()])
    assert np.allclose(ends, np.column_stack(what.everybody.interval()))
    (bars,) = first.patches
    assert bars.get_data().values == pytest.approx(600 * what.plans[0].reference.probabilities)
    assert len(first.get_yticklabels()) == (d if d <= 100 else 100)


def test_what_priors_expect_is_added_up_label_by_label() -> None:
    plans = {
        name: pv.design(pv.Prior(shares, labels=list(labels)), 1.0, pv.Histogram())
        for name, shares, labels in (("A", [0.5, 0.3, 0.2], "abc"), ("B", [0.1, 0.2, 0.7], "cab"))
    }
    table = {"report": [0] * 30, "town": ["A"] * 10 + ["B"] * 20}
    what = estimate_table(table, plans, cohort="town", assume_plan=True).only
    (panel,) = plot_files.estimate_panels(what, None, 0.95)
    assert panel.numbers[3] == pytest.approx([5 + 4, 3 + 14, 2 + 2])


@pytest.mark.parametrize(("d", "groups"), [(4, 3), (4, 30), (83, 3)])
def test_each_group_has_a_panel_up_to_a_number_that_fits(d: int, groups: int) -> None:
    what = found(d, groups)
    figure = drawn(what, "town")
    titles = [place.get_title() for place in figure.axes]
    assert len(titles) == min(groups + 1, 24)
    assert titles[0] == "everybody: 600 reports" and titles[1].startswith("town = town 0: ")
    said = " ".join(plot_files.title_lines(what, "town", 200))
    assert ("the 23 largest of 30 groups by town" in said) == (groups == 30)


def test_groups_are_drawn_in_shares() -> None:
    what = found(4, 3)
    (bars,) = drawn(what, "town").axes[2].patches
    assert sum(bars.get_data().values) == pytest.approx(100)


def test_sums_are_lines_of_one_picture() -> None:
    query = pv.Sum(values=[0, 1, 2, 3])
    alone = drawn(found(4, 0, query)).axes
    assert len(alone) == 1 and alone[0].get_xlabel() == "sum"
    together = drawn(found(4, 3, query), "town").axes
    assert len(together) == 1 and together[0].get_xlabel() == "mean per person (reports in brackets)"
    names = [tick.get_text() for tick in together[0].get_yticklabels()]
    assert names == ["everybody (600)", "town 0 (200)", "town 1 (200)", "town 2 (200)"]


def test_the_prior_expects_the_sum_that_is_estimated() -> None:
    query = pv.Sum([5, 7, 9, 11])
    prior = pv.Prior([0.4, 0.3, 0.2, 0.1])
    plan = pv.design(prior, 1.0, query)
    everybody = np.repeat(np.arange(4), [400, 300, 200, 100])
    reports = plan.privatize(everybody, np.random.default_rng(1))
    what = estimate_table({"report": reports}, plan, assume_plan=True).only
    expected = next(iter(plot_files.estimate_panels(what, None, 0.95))).numbers[3]
    assert expected == pytest.approx([1000 * 7.0])
    low, high = what.everybody.interval(0.9999)
    assert low[0] < expected[0] < high[0]


def test_the_title_says_method_reports_and_level(tmp_path: Path) -> None:
    warning, first, last = plot_files.title_lines(found(2), None, 200)
    assert warning.startswith("Warning: ") and last.startswith("intervals assume the prior is right")
    assert first == "Histogram, mmse reading of 600 reports, LIP at epsilon 2"
    assert plot_files.save(plot_files.estimate_plot(found(2), None, 0.9), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


def test_an_estimate_is_shown_with_the_truth_and_the_prior() -> None:
    prior = pv.Prior({"a": 0.2, "b": 0.3, "c": 0.5})
    plan = pv.design(prior, 1.0, pv.Histogram())
    truth = np.array([200, 300, 500])
    values = np.repeat(np.arange(3), truth)
    estimate = plan.estimate(plan.tally(plan.privatize(values, np.random.default_rng(0), codes=True)))
    alone = plot_files.truth_plot([("one", estimate)], truth, plan).axes[0]
    assert alone.patches[0].get_data().values == pytest.approx(truth)
    twice = plot_files.truth_plot([("one", estimate), ("two", estimate)], truth, plan)
    for axes, unit in ((alone, 1), *((axes, 10) for axes in twice.axes)):
        drawn = {line.get_label(): line for line in axes.get_lines()}
        assert drawn["truth"].get_xdata() == pytest.approx(truth / unit)
        assert set(axes.get_legend_handles_labels()[1]) == {
            "what the prior expects", "truth", "estimate, 95 % interval",
        }  # fmt: skip


def test_names_are_short_and_no_formulas() -> None:
    assert short_name("$5 to $10") == r"\$5 to \$10"
    assert short_name("two\nlines") == "two lines"
    assert len(short_name("x" * 200)) == 30


def test_reports_are_in_the_order_of_the_value_they_raise_most() -> None:
    prior = pv.Prior([0.4, 0.3, 0.2, 0.1])
    plan = pv.design(prior, 0.5, pv.Histogram())
    lift = plan.channel.lift(prior)
    order = report_order(lift, prior.probabilities)
    most = (prior.probabilities[:, None] * (lift - 1)).round(9).argmax(axis=0)[order]
    assert sorted(order.tolist()) == list(range(lift.shape[1]))
    assert (np.diff(most) >= 0).all()


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    def files(name: str) -> list[bytes]:
        figure, axes = curves.canvas()
        curves.line(axes[0, 0], ("best", "black", "x"), [0, 1], [1, 0], bound=[0.9, 0])
        curves.legend(figure)
        paths = [tmp_path / f"{name}.{suffix}" for suffix in ("svg", "png", "pdf")]
        assert all(plot_files.save(figure, path) for path in [*paths, *paths]), (
            "the second time over the first"
        )
        return [path.read_bytes() for path in paths]

    first, second = files("first"), files("second")
    assert first == second
    assert first[0].lstrip().startswith(b"<?xml") and first[1].startswith(b"\x89PNG")
    width, height = struct.unpack(">II", first[1][16:24])
    assert (width, height) == (525, 345)


@pytest.mark.parametrize(("d", "names"), [(4, 4), (60, 30)])
def test_a_plan_is_drawn_with_its_values_and_its_error(d: int, names: int) -> None:
    plan = pv.design(pv.Prior.zipf(d), 1.0, pv.Guess(), method="columns", rounds=20)
    row = {"epsilon": 1.0, "mse": plan.expected_mse, "bound": plan.lower_bound, "ldp": float("nan")}
    beliefs, errors, precision, _ = plot_files.plan_plot(plan, [row, {**row, "epsilon": 2.0}]).axes
    assert beliefs.images[0].get_size() == plan.channel.drop_unused().shape
    assert len(beliefs.get_yticklabels()) == names
    assert errors.get_lines()[0].get_ydata().tolist() == [plan.expected_mse] * 2
    assert "10,000 people" in precision.get_title()
    legend = [text.get_text() for text in precision.get_legend().get_texts()]
    assert legend == ["what the prior expects", "95 % interval"]
    ends = np.array([line[:, 0] for line in precision.containers[0].lines[2][0].get_segments()])
    assert np.ptp(ends, axis=1) == pytest.approx(2 * 1.959964 * 100 * plan.std_error(10_000), rel=1e-6)


def plan_axes(plan: pv.Plan) -> list[Axes]:
    row = {"epsilon": 1.0, "mse": plan.expected_mse, "bound": plan.lower_bound, "ldp": float("nan")}
    return plot_files.plan_plot(plan, [row, {**row, "epsilon": 2.0}]).axes


HOURS = pv.Prior.joint(
    {
        (age, n): share
        for age in ("young", "middle", "old")
        for n, share in zip((0, 10, 20, 40), (0.2, 0.08, 0.03, 0.07 / 3), strict=True)
    },
    ("age", "overtime"),
    grids=("overtime",),
)


def test_a_plan_for_averages_is_drawn_with_those_that_the_prior_expects() -> None:
    plan = pv.design(HOURS, 1.0, pv.Linear.averages(HOURS, "overtime", by="age"))
    precision = plan_axes(plan)[2]
    names = [tick.get_text() for tick in precision.get_yticklabels()]
    assert names == ["age=young", "age=middle", "age=old"] and precision.get_xlabel() == "mean overtime"
    dots, _, (bars,) = precision.containers[0].lines
    assert dots.get_xdata() == pytest.approx(plan.query.expected_answer(plan.reference))
    ends = np.array([line[:, 0] for line in bars.get_segments()])
    assert np.ptp(ends, axis=1) == pytest.approx(2 * 1.959964 * plan.std_error(10_000)[:3], rel=1e-6)


def test_intervals_of_a_table_fit_beside_each_other_in_the_picture_of_a_plan() -> None:
    plan = pv.design(HOURS, 1.0, pv.Distribution())
    cells = plan_axes(plan)[2]
    cells.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in cells.texts]
    assert len(boxes) == len(plan.labels)
    assert max(box.width for box in boxes) < cells.get_window_extent().width / 4


def test_a_picture_names_groups_that_contradict_the_prior() -> None:
    plan = pv.design(pv.Prior([0.6, 0.3, 0.1]), 1.0, pv.Histogram())
    people = [0] * 6000 + [1] * 3000 + [2] * 1000 + [2] * 200
    table = {"report": plan.privatize(people, np.random.default_rng(1)), "town": ["A"] * 10_000 + ["B"] * 200}
    lines = list(
        plot_files.title_lines(estimate_table(table, plan, by="town", assume_plan=True).only, "town", 80)
    )
    assert f"Warning: {groups_warning('town', ['B'])}" in lines


# -- the picture that fits the query -----------------------------------------------------------------------


def estimated(prior: pv.Prior, query: pv.Linear, values: object) -> PartEstimates:
    plan = pv.design(prior, 2.0, query)
    reports = plan.privatize(values, np.random.default_rng(0))
    return estimate_table({"report": reports}, plan, assume_plan=True).only


JOINT = pv.Prior.joint(
    {("young", "yes"): 0.1, ("young", "no"): 0.3, ("old", "yes"): 0.4, ("old", "no"): 0.2},
    names=("age", "smokes"),
)


def test_a_table_of_two_attributes_is_a_map_with_shares_and_intervals() -> None:
    found = estimated(JOINT, pv.Distribution(), [*JOINT.labels] * 500)
    axes = drawn(found).axes[0]
    shares, (low, high) = 100 * found.everybody.proportions, found.everybody.interval()
    assert np.asarray(axes.images[0].get_array()).ravel() == pytest.approx(shares)
    assert [text.get_text() for text in axes.texts] == [
        f"{share:.1f} ({least:.1f} to {most:.1f})"
        for share, least, most in zip(shares, low / 20, high / 20, strict=True)
    ]
    assert axes.get_ylabel() == "age" and axes.get_xlabel().startswith("smokes")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["young", "old"]


@pytest.mark.parametrize("shape", [(40, 3), (3, 4), (5, 5), (41, 2)])
def test_a_large_table_is_a_map_with_a_colour_bar_that_marks_what_may_be_noise(
    shape: tuple[int, int],
) -> None:
    """Where intervals have no room; a cell with a cross may have the share that the prior expects."""
    cells = list(itertools.product(*map(range, shape)))
    prior = pv.Prior.joint(dict.fromkeys(cells, 1 / len(cells)), names=("a", "b"))
    people = np.append(np.arange(5_000) % len(cells), np.full(2_000, 3))
    plan = pv.design(prior, 1.0, pv.Distribution(), method="arc")
    reports = plan.privatize(people, np.random.default_rng(0), codes=True)
    # Many intervals begin at zero.
    found = estimate_table({"report": reports}, plan, assume_plan=True, method="mle").only
    axes, *bars = drawn(found).axes
    if shape in ((40, 3), (3, 4)):
        assert not bars and len(axes.texts) == len(cells) and not axes.lines
        return
    (crosses,), (bar,) = axes.lines, bars
    assert bar.get_yticklabels()[0].get_text().endswith("%") and not axes.texts
    low, high = found.everybody.interval()
    expected = [cell for cell, a, b in zip(cells, low, high, strict=True) if a <= 7_000 / len(cells) <= b]
    marked = list(zip(crosses.get_ydata(), crosses.get_xdata(), strict=True))
    assert marked == expected and cells[3] not in marked and len(marked) > len(cells) / 2
    reach = np.median(np.maximum(high - found.everybody.values, found.everybody.values - low)) / 70
    assert f"95 % interval about ± {reach:.2g}" in axes.get_xlabel() and "prior" in axes.get_xlabel()


@pytest.mark.parametrize("towns", [2, 20])
def test_pictures_of_three_attributes_name_them(towns: int) -> None:
    """A small table is a map with the last attribute across, a large one has a row for each cell."""
    cells = list(itertools.product([f"t{town}" for town in range(towns)], ["young", "old"], ["yes", "no"]))
    prior = pv.Prior.joint(dict.fromkeys(cells, 1 / len(cells)), names=("town", "age", "smokes"))
    axes = drawn(estimated(prior, pv.Distribution(), cells * 25)).axes[0]
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    if towns == 2:
        assert axes.get_ylabel() == "town, age" and axes.get_xlabel().startswith("smokes")
        assert names == ["t0, young", "t0, old", "t1, young", "t1, old"] and len(axes.texts) == 8
    else:
        assert axes.get_ylabel() == "town, age, smokes" and names[0] == "t0, young, yes"


def test_a_cell_that_cannot_happen_is_empty() -> None:
    prior = pv.Prior.joint(
        {("child", "no"): 0.5, ("adult", "yes"): 0.2, ("adult", "no"): 0.3},
        names=("age", "smokes"),
        impossible="leave out",
    )
    axes = drawn(estimated(prior, pv.Distribution(), [*prior.labels] * 333)).axes[0]
    assert sorted(text.get_text() == "" for text in axes.texts) == [False, False, False, True]
    assert axes.patch.get_hatch() and "hatched: combinations that the plan leaves out" in axes.get_xlabel()


@pytest.mark.parametrize(("columns", "named", "angle"), [(3, 3, 0), (15, 15, 30), (16, 16, 90), (42, 21, 90)])
def test_as_many_columns_of_a_map_as_fit_have_names(columns: int, named: int, angle: int) -> None:
    cells = list(itertools.product("ab", [f"column {i}" for i in range(columns)]))
    prior = pv.Prior.joint(dict.fromkeys(cells, 1 / len(cells)), names=("a", "b"))
    plan = pv.design(prior, 2.0, pv.Distribution(), method="arc")
    axes = drawn(estimate_table({"report": plan.privatize(cells)}, plan, assume_plan=True).only).axes[0]
    names = axes.get_xticklabels()
    assert len(names) == named and {name.get_rotation() for name in names} == {angle}
    assert not axes.patch.get_hatch() and "hatched" not in axes.get_xlabel()


def test_margins_are_rows_with_a_line_between_them() -> None:
    query = pv.Linear.margins(JOINT, ["age", "smokes"], unbiased=True)
    axes = drawn(estimated(JOINT, query, [*JOINT.labels] * 500)).axes[0]
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["age=young", "age=old", "smokes=yes", "smokes=no"]
    assert axes.get_ylabel() == "age, smokes"
    assert [line.get_ydata()[0] for line in axes.get_lines() if len(set(line.get_ydata())) == 1][-1] == 1.5


@pytest.mark.parametrize("numbers", [True, False])
def test_cumulative_shares_are_a_curve_with_a_band(numbers: bool) -> None:
    shares = [0.4, 0.3, 0.2, 0.1]
    prior = pv.Prior.cells([0, 10, 20, 50, 100], shares) if numbers else pv.Prior(shares, labels=list("abcd"))
    values = np.repeat([5, 15, 30, 70] if numbers else list("abcd"), [400, 300, 200, 100])
    found = estimated(prior, pv.Linear.cumulative(prior, unbiased=True), values)
    axes = drawn(found).axes[0]
    curve = next(line for line in axes.get_lines() if line.get_label() == "estimate, 95 % interval")
    assert curve.get_xdata().tolist() == ([0, 10, 20, 50, 100] if numbers else [-1, 0, 1, 2, 3])
    assert curve.get_ydata() == pytest.approx([0, *(100 * found.everybody.proportions)])
    band = axes.collections[0].get_paths()[0].vertices
    for x, low, high in zip(curve.get_xdata()[1:], *found.everybody.interval(), strict=True):
        heights = band[band[:, 0] == x, 1]
        assert np.isclose(heights, low / 10).any() and heights.max() == pytest.approx(high / 10)
        assert not numbers or heights.min() == pytest.approx(low / 10)  # a step begins below
    if not numbers:
        assert [tick.get_text() for tick in axes.get_xticklabels()] == list("abcd")
        return
    (dots,) = axes.containers
    assert dots.lines[0].get_ydata().tolist() == [25, 50, 75]
    median = found.everybody.quantile(0.5)
    assert dots.lines[0].get_xdata()[1] == median.value
    assert dots.lines[2][0].get_segments()[1][:, 0].tolist() == list(median.interval())


def test_the_mean_of_a_number_is_a_point_with_its_interval() -> None:
    prior = pv.Prior.grid([0, 50, 100], [0.2, 0.5, 0.3])
    found = estimated(prior, pv.Sum([0, 50, 100], unbiased=True), np.linspace(0, 100, 1_000))
    axes = drawn(found).axes[0]
    assert axes.get_xlabel() == "mean per person"
    (segment,) = axes.containers[0].lines[2][0].get_segments()
    low, high = found.everybody.interval()
    assert segment[:, 0] == pytest.approx([low[0] / 1_000, high[0] / 1_000])


def test_the_best_design_for_numbers_is_the_best_for_their_points() -> None:
    row = {"epsilon": 1.0, "mse": 3.0, "bound": 2.0, "ldp": 4.0}
    grid, cells = pv.Prior.grid([0, 1], [0.5, 0.5]), pv.Prior.cells([0, 1, 2], [0.5, 0.5])
    for prior, best in ((grid, "best design for these points"), (cells, "best design for these cells")):
        plan = pv.design(prior, 1.0, pv.Sum([0, 1], unbiased=True))
        errors = plot_files.plan_plot(plan, [row, {**row, "epsilon": 2.0}]).axes[1]
        assert errors.get_legend_handles_labels()[1][0] == f"{best}, its bound shaded"


def test_statistics_that_determine_no_quantiles_are_drawn_without_them() -> None:
    prior = pv.Prior.cells([0, 1, 2, 3], [0.5, 0.3, 0.2])
    found = estimated(prior, pv.Linear([[1, 0, 0], [0, 1, 1]], unbiased=True), [0.5] * 300 + [2.5] * 200)
    assert len(drawn(found).axes[0].get_yticklabels()) == 2


@pytest.mark.parametrize("groups", [0, 2])
def test_weighted_sums_are_not_people(groups: int) -> None:
    what = found(3, groups, pv.Linear([[0, 1, 5], [2, -1, 0]], unbiased=True))
    axes = drawn(what, "town" if groups else None).axes[0]
    assert axes.get_xlabel() == ("weighted sum per person" if groups else "weighted sum")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["row 1", "row 2"]
    scale = what.everybody.reports if groups else 1
    assert axes.containers[0].lines[0].get_xdata() == pytest.approx(what.everybody.values / scale)
    plan = what.plans[0]
    expected = plot_files.plan_plot(plan, [{"epsilon": 2.0, "mse": 1.0, "bound": 1.0, "ldp": 2.0}]).axes[2]
    assert expected.get_xlabel() == "weighted sum per person"


def test_a_single_row_of_a_matrix_keeps_its_name() -> None:
    prior = pv.Prior([0.5, 0.3, 0.2], labels=["a", "b", "c"])
    what = estimated(prior, pv.Linear([[0, 1, 5]], names=["score"]), ["a", "b", "c"] * 100)
    assert [tick.get_text() for tick in drawn(what).axes[0].get_yticklabels()] == ["score"]

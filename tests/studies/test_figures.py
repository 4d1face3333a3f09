"""The figures, quick: not that they run, but that what they show is so."""

from __future__ import annotations

import csv
import math
import re
import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.cli import reproduce as command
from priorveil.cli.reproduce import reproduce
from priorveil.errors import DataNotFound, InvalidInput
from priorveil.studies import published
from priorveil.studies.figures import FigureSettings, Outcome, theory
from priorveil.studies.figures.gallery import (
    FIGURES,
    FigureSection,
    describe,
    figure_names,
    write_html,
)
from priorveil.studies.figures.theory import correlated_secret
from priorveil.words.plots import curves
from priorveil.words.plots.house_style import house_style
from refusals import raises

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'priorveil[plot]'")

NAMES = list(FIGURES)
Row = dict[str, Any]


@cache
def _run(name: str) -> Outcome | DataNotFound:
    try:
        return FIGURES[name](FigureSettings(quick=True, seed=1))
    except DataNotFound as error:
        return error


def outcome(name: str) -> Outcome:
    found = _run(name)
    if isinstance(found, DataNotFound):
        pytest.skip(str(found))
    return found


def section(name: str) -> FigureSection:
    return describe(name, outcome(name))


def rows(name: str, **where: object) -> list[Row]:
    return [dict(r) for r in outcome(name).rows if all(r.get(k) == v for k, v in where.items())]


def column(name: str, key: str, **where: object) -> np.ndarray:
    return np.array([r[key] for r in rows(name, **where)], dtype=float)


def falling(numbers: np.ndarray, slack: float = 1e-9) -> bool:
    return bool((np.diff(numbers) <= slack).all())


# -- every figure ------------------------------------------------------------------------------------------


def test_twelve_figures_have_numbers_and_names() -> None:
    assert [FigureSection(name, "", ()).number for name in NAMES] == list(range(1, 13))
    listed = (command.__doc__ or "").split("Figures\n")[1].split()
    assert listed == [word for number, name in enumerate(NAMES, 1) for word in (str(number), name)]
    assert figure_names(()) == NAMES
    assert figure_names(("hamming", "2")) == ["notions", "hamming"]
    with raises(InvalidInput, argument="figure"):
        figure_names(("13",))


@pytest.mark.parametrize("name", NAMES)
def test_says_what_to_see(name: str) -> None:
    found, text = outcome(name), section(name)
    assert len(found.rows) >= 3 and len(text.caption) > 80 and len(text.remarks) >= 2 and text.claims
    words = " ".join([text.title, text.caption, *text.remarks, *(why for _, _, why in text.claims)])
    assert not re.search(
        r"\bnan\b|\binf\b|None|[{}|]", words.replace("{0, ..., 4}", "").replace("Pr(report | value)", "")
    )
    assert text.title.startswith(f"Figure {text.number}. ") and len(text.claims) == len(found.verdicts)


@pytest.mark.parametrize("name", NAMES)
def test_certified_mechanisms_keep_their_budget(name: str) -> None:
    for row in rows(name):
        if row.get("kind") not in ("certified", "best") or "epsilon" not in row:
            continue
        latent = "work_lip" if row.get("method") == "value" else "income_lip"
        level = row[latent if name == "census" else "lip"]
        if level == level:  # a method that does not apply has none
            assert level <= row["epsilon"] * (1 + 1e-12) + 1e-12, row


@pytest.mark.parametrize("name", NAMES)
def test_nothing_valid_is_below_the_bound(name: str) -> None:
    for row in rows(name):
        error = row.get("mse", row.get("expected", row.get("wrong")))
        bound = row.get("bound")
        if bound is not None and bound == bound and error == error:
            assert bound <= error + 1e-12, row


@cache
def picture(name: str) -> Any:
    with house_style():
        drawn = outcome(name).draw()
    drawn.draw_without_rendering()
    return drawn


@pytest.mark.parametrize("name", NAMES)
def test_pictures_can_be_read_in_a_column(name: str) -> None:
    """No print is smaller than six points, and none leaves the page; axes have names."""
    page, drawn = picture(name).bbox, picture(name)
    for text in drawn.findobj(lambda artist: hasattr(artist, "get_fontsize")):
        box = text.get_window_extent()
        if not text.get_text().strip() or not text.get_visible() or text.get_clip_on() or box.width == 0:
            continue
        assert text.get_fontsize() >= 6, text
        assert box.x0 >= page.x0 - 2 and box.y0 >= page.y0 - 2, text
        assert box.x1 <= page.x1 + 2 and box.y1 <= page.y1 + 2, text
    for axes in drawn.axes:
        below = axes.get_shared_x_axes().get_siblings(axes)
        assert any(other.get_xlabel() for other in below) or axes.get_xticklabels()
    assert drawn.get_size_inches()[0] <= 2.1 * curves.COLUMN


@pytest.mark.parametrize("name", ["priors", "correlation", "bounded", "domain", "hashing", "hamming"])
def test_curves_lie_within_their_axes(name: str) -> None:
    for axes in picture(name).axes:
        for line in axes.get_lines():
            points = axes.transAxes.inverted().transform(axes.transData.transform(line.get_xydata()))
            points = points[np.isfinite(points).all(axis=1)]
            assert (points > -1e-6).all() and (points < 1 + 1e-6).all(), (name, line.get_label())


@pytest.mark.parametrize("name", NAMES)
def test_labels_do_not_overlap(name: str) -> None:
    """Titles, axis names and the legend of a figure are apart from each other."""
    drawn = picture(name)
    texts = [t for axes in drawn.axes for t in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    boxes = [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
    boxes += [legend.get_window_extent() for legend in drawn.legends]
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            across = min(one.x1, other.x1) - max(one.x0, other.x0)
            up = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert across <= 1 or up <= 1, (name, one, other)


# -- the claims --------------------------------------------------------------------------------------------

REFUTED = {
    "regions": ["That corner is Theorem 3's, for every prior and ε."],
    "priors": [
        "The advantage of LIP over LDP grows as the prior becomes more skewed.",
        "As many outputs as inputs are needed (Lemma 4).",
    ],
    "correlation": ["Theorem 2 is optimal for two values."],
    "bounded": ["Proposition 2 is optimal for a binary prior in [a, b]."],
    "domain": [
        "RR-LDP lies between RR-LIP at ε and at ε/2.",
        "On small domains (fewer than 15 values) RR-LIP beats LH-LIP.",
        "That gap widens as the domain grows.",
    ],
    "hashing": ["The best hashing size is 12 to 16 bins."],
    "hamming": ["Two values, prior bounded above: BP-LIP beats LDP."],
    "gowalla": ["For large ε, RR-LIP overtakes both."],
    "census": ["The reason is that income and work class are highly correlated."],
}


@pytest.mark.parametrize("name", NAMES)
def test_which_claims_survive(name: str) -> None:
    assert [text for text, survives, _ in section(name).claims if not survives] == REFUTED.get(name, [])


# -- figure by figure --------------------------------------------------------------------------------------


def test_1_the_introduction_leaks() -> None:
    by = {r["mechanism"]: r for r in rows("introduction")}
    theorem, printed = by["LIP, Theorem 3"], by["LIP, numbers in the introduction"]
    assert theorem["lip"] == pytest.approx(1.031, abs=5e-4)
    assert printed["flips"] == pytest.approx(0.19)
    assert by["LDP"]["flips"] == pytest.approx(0.354, abs=1e-3)
    assert theorem["error"] < by["best certified LIP"]["error"] < by["LDP"]["error"]


def test_2_no_implication_is_broken() -> None:
    lip, ldp = column("notions", "lip"), column("notions", "ldp")
    assert len(lip) == 300 and (ldp >= lip - 1e-9).all() and (ldp <= 2 * lip + 1e-9).all()
    assert (column("notions", "mil") <= lip + 1e-9).all() and (column("notions", "mip") <= lip + 1e-9).all()
    assert np.allclose(column("notions", "worst_case_lip"), ldp, atol=1e-6)


def test_3_the_best_point_is_best_in_the_region() -> None:
    grid = np.linspace(0, 1, 101)
    q0, q1 = np.meshgrid(grid, grid)
    for P, epsilon in (([0.4, 0.6], 1.0), ([0.2, 0.8], 0.6)):
        prior = pv.Prior(P)
        inside = theory.binary_levels(prior, q0, q1)[0] <= epsilon + 1e-12
        (best,) = rows("regions", kind="best", epsilon=epsilon)
        (printed,) = rows("regions", kind="published", epsilon=epsilon)
        assert best["variance"] >= theory.estimate_variance(prior, q0, q1)[inside].max() - 1e-9
        level, _ = theory.binary_levels(prior, np.array(printed["q01"]), np.array(printed["q10"]))
        assert bool(level <= epsilon + 1e-12) == (epsilon == 1.0)


def test_4_published_parameters_are_those_of_the_paper() -> None:
    e = math.exp(-1)
    cells = {
        (r["value"], r["report"]): r["probability"] for r in rows("parameters", kind="published", epsilon=1.0)
    }
    assert cells[1, 0] == pytest.approx(1 - 0.9 * e) and cells[2, 0] == pytest.approx(0.1 * e)
    assert rows("parameters", kind="published", epsilon=1.0)[0]["lip"] == pytest.approx(1.900, abs=5e-4)
    errors = {r["kind"]: r["mse"] for r in rows("parameters", epsilon=3.0)}
    assert errors["published"] == pytest.approx(errors["best"]) == pytest.approx(errors["certified"])


@pytest.mark.statistical
def test_5_simulation_agrees_with_theory() -> None:
    """Sixty intervals of 99 %: more than four outside would happen once in two thousand times."""
    found = [r for r in rows("priors") if not math.isnan(r["measured"])]
    outside = [r for r in found if not r["low"] <= r["expected"] <= r["high"]]
    assert len(found) == 60 and len(outside) <= 4, outside
    assert sum(r["low"] <= 2.2 * r["expected"] <= r["high"] for r in found) <= 2


def test_5_published_joins_the_best_where_it_becomes_valid() -> None:
    for name, threshold in (("uniform", math.log(4)), ("skewed", math.log(39))):
        for printed, best in zip(
            rows("priors", prior=name, method="published-rr"),
            rows("priors", prior=name, method="best"),
            strict=True,
        ):
            if printed["epsilon"] > threshold:
                assert printed["expected"] == pytest.approx(best["expected"], rel=1e-6)
                assert printed["lip"] <= printed["epsilon"] + 1e-9
            else:
                assert printed["lip"] > printed["epsilon"] + 1e-3
                assert printed["expected"] < best["bound"]
    assert column("priors", "lip", prior="skewed", method="published-rr")[0] == pytest.approx(3.245, abs=5e-4)
    for name in ("uniform", "skewed"):
        for method in ("best", "rr", "ldp-rr", "context-free"):
            assert falling(column("priors", "expected", prior=name, method=method))


def test_6_weaker_correlation_needs_less_noise() -> None:
    for values in (5, 2):
        curves = [
            column("correlation", "mse", values=values, rho=rho, kind="best") for rho in (1.0, 0.7, 0.3)
        ]
        assert all(falling(curve, 1e-7) for curve in curves)
        assert (curves[0] >= curves[1] - 1e-7).all() and (curves[1] >= curves[2] - 1e-7).all()
    for rho in (1.0, 0.7, 0.3):
        best, printed = (
            column("correlation", "mse", values=2, rho=rho, kind=kind) for kind in ("best", "published")
        )
        leaks, asked = (
            column("correlation", key, values=2, rho=rho, kind="published") for key in ("lip", "epsilon")
        )
        assert (leaks <= asked + 1e-9).all() and (best <= printed + 1e-9).all()


def test_6_the_secret_has_the_stated_correlation() -> None:
    prior, x = pv.Prior([0.1, 0.2, 0.3, 0.4]), np.arange(4)
    for rho in (1.0, 0.7, 0.3):
        joint = prior.probabilities[:, None] * correlated_secret(prior, rho).rows
        mean = prior.probabilities @ x
        covariance = (joint * np.outer(x - mean, x - mean)).sum()
        assert covariance / (prior.probabilities @ (x - mean) ** 2) == pytest.approx(rho)


def test_7_stricter_notions_cost_more() -> None:
    lip, puffer, ldp, half, none = (
        column("bounded", "mse", case="latent", method=method)
        for method in ("bp-lip", "pufferfish", "ldp", "bp-lip-half", "none")
    )
    assert (lip <= puffer + 1e-9).all() and (puffer <= ldp + 1e-9).all() and (ldp <= none + 1e-9).all()
    assert (lip <= half + 1e-9).all()
    known = pv.PriorSet.interval([0.55, 0.15], [0.85, 0.45])
    for row in rows("bounded", case="binary", method="published"):
        channel = published.binary_bounded(0.15, 0.45, row["epsilon"]).channel
        assert row["lip"] == pytest.approx(pv.LIP().epsilon(channel, known))
        assert (row["lip"] > row["epsilon"] + 1e-9) == (math.exp(-row["epsilon"]) > 0.15 / 0.55)


def test_8_larger_domains_cost_more_and_the_best_is_best() -> None:
    best = column("domain", "expected", method="best")
    for method in ("rr", "hashing", "unary", "ldp-rr", "ldp-unary", "ldp-hashing"):
        assert (column("domain", "expected", method=method) >= best - 1e-9).all()
        assert (np.diff(column("domain", "expected", method=method)) > 0).all()
    assert (column("domain", "lip", method="published-unary") <= 1 + 1e-9).all()
    for row in rows("domain", method="published-rr"):
        least = 1 / (row["values"] * (row["values"] + 1) / 2)
        assert row["lip"] == pytest.approx(math.log(math.exp(-1) + (1 - math.exp(-1)) / least))
        assert row["expected"] < next(r["bound"] for r in rows("domain", method="best", values=row["values"]))


def test_9_only_heavy_bins_keep_the_budget() -> None:
    found = rows("hashing", method="LH-LIP, published")
    assert {r["bins"] for r in found} == set(range(1, 21))
    assert all(r["certified_lip"] <= 1 for r in found)
    assert max(r["bins"] for r in found if r["valid"]) <= 3
    for r in found:
        if r["valid"]:
            assert r["certified_mse"] == pytest.approx(r["mse"], abs=1e-6)
    (best,) = rows("hashing", method="best LIP design")
    assert all(r["certified_mse"] >= best["mse"] - 1e-9 for r in found)


def test_10_bounded_above_is_ldp_and_guesses_beat_no_report() -> None:
    lip, ldp = (column("hamming", "wrong", case="binary", method=method) for method in ("certified", "ldp"))
    assert np.allclose(lip, ldp, atol=1e-6)
    for case in ("uniform", "skewed"):
        best, none, free = (
            column("hamming", "wrong", case=case, method=method) for method in ("best", "none", "ldp-guess")
        )
        assert falling(best, 1e-7) and (best <= none + 1e-9).all() and (best <= free + 1e-9).all()
    skewed = column("hamming", "wrong", case="skewed", method="certified")
    assert skewed[0] > column("hamming", "wrong", case="skewed", method="none")[0]


def test_11_on_real_districts_trust_in_the_prior_is_dear() -> None:
    for epsilon in (1.0, 3.0, 5.0):
        by = {r["method"]: r for r in rows("gowalla", epsilon=epsilon)}
        methods = [
            w for w in ("rr", "hashing", "unary", "ldp-rr", "ldp-unary", "ldp-hashing", "none") if w in by
        ]
        assert all(by[w]["expected"] >= by["best"]["bound"] - 1e-12 for w in methods)
        assert by["best"]["low"] * 0.8 <= by["best"]["expected"] <= by["best"]["high"] * 1.25
        assert by["distribution, real districts"]["measured"] < by["best, real districts"]["measured"]
        assert by["published-rr"]["lip"] > epsilon
    assert falling(column("gowalla", "expected", method="best"))
    caption = section("gowalla").caption
    assert "New York" in caption or "whole" in caption


def test_12_income_is_cheaper_to_protect_than_work() -> None:
    for survey in ("acs", "adult"):
        best, puffer, value, ldp = (
            column("census", "mse", survey=survey, method=method)
            for method in ("best", "pufferfish", "value", "ldp-best")
        )
        assert falling(best, 1e-7)
        assert (best <= puffer + 1e-9).all() and (best <= value + 1e-9).all() and (value <= ldp + 1e-9).all()
        assert (column("census", "work_lip", survey=survey, method="published") > 2).all()
        # below this, errors come from a handful of people in the rare class, and no interval is to be trusted
        found = [r for r in rows("census", survey=survey, method="best") if r["mse"] > 0.01]
        assert sum(not r["low"] <= r["mse"] <= r["high"] for r in found) <= 1
    assert "two income levels" in section("census").caption


# -- the report and the commands ---------------------------------------------------------------------------


def test_the_report_needs_no_other_file(tmp_path: Path) -> None:
    results = [
        replace(section("introduction"), picture=b"one"),
        replace(section("regions"), picture=b"two"),
        FigureSection("gowalla", "", ("Not made: no <data>",)),
    ]
    page = write_html(results, tmp_path, "quick run").read_text(encoding="utf-8")
    assert page.count("<img ") == page.count('src="data:image/png;base64,') == 2
    assert "no &lt;data&gt;" in page and "http" not in page
    assert "Claims of the paper that survive" in page and "Claims of the paper that do not" in page
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "reproduction.py"))
    script["write_page"](results, tmp_path / "page.md", "quick run")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "01-introduction.png",
        "03-regions.png",
    }
    assert "](figures/01-introduction.png)" in text and "Not made: no <data>" in text


def test_reproduce_writes_pictures_numbers_and_a_report(tmp_path: Path) -> None:
    status = reproduce.main(
        ["1", "regions", "--quick", "--out", str(tmp_path / "out")], standalone_mode=False
    )
    assert status == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html"} | {
        f"{stem}.{end}" for stem in ("01-introduction", "03-regions") for end in ("png", "svg", "csv")
    }
    with (tmp_path / "out" / "03-regions.csv").open(encoding="utf-8") as lines:
        assert len(list(csv.DictReader(lines))) == 6
    assert (tmp_path / "out" / "03-regions.png").read_bytes().startswith(b"\x89PNG")


def test_reproduce_goes_on_without_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise DataNotFound("it is at https://example.org")

    monkeypatch.setattr("priorveil.studies.datasets.gowalla", missing)
    assert reproduce.main(["gowalla", "--quick", "--out", str(tmp_path)], standalone_mode=False) == 1
    assert "https://example.org" in capsys.readouterr().err
    assert reproduce.main(["gowalla", "1", "--quick", "--out", str(tmp_path)], standalone_mode=False) == 0


def test_a_channel_is_a_map_with_its_numbers() -> None:
    axes = curves.canvas()[1][0, 0]
    theory.draw_channel(axes, pv.Channel([[0.75, 0.25], [0.1, 0.9]]), "mine")
    assert [text.get_text() for text in axes.texts] == ["0.75", "0.25", "0.10", "0.90"]
    assert axes.get_title() == "mine"


def test_the_region_is_lip_and_holds_the_optimum() -> None:
    prior, epsilon = pv.Prior([0.2, 0.8]), 0.6
    grid = np.linspace(0.02, 0.98, 25)
    q0, q1 = np.meshgrid(grid, grid)
    lip, ldp = theory.binary_levels(prior, q0, q1)
    inside = lip <= epsilon + 1e-12
    for (i, j), value in np.ndenumerate(inside):
        channel = pv.Channel([[1 - q0[i, j], q0[i, j]], [q1[i, j], 1 - q1[i, j]]])
        assert bool(value) == pv.LIP().holds(channel, prior, epsilon + 1e-12)
        assert lip[i, j] == pytest.approx(pv.LIP().epsilon(channel, prior))
        assert ldp[i, j] == pytest.approx(pv.LDP().epsilon(channel))
        error = pv.Histogram().error(channel, prior)
        variance = theory.estimate_variance(prior, q0[i, j], q1[i, j])
        assert error == pytest.approx(2 * (0.2 * 0.8 - variance), abs=1e-12)
    best = pv.design(prior, epsilon, pv.Histogram()).expected_mse
    assert (2 * (0.16 - theory.estimate_variance(prior, q0, q1)))[inside].min() >= best - 1e-9

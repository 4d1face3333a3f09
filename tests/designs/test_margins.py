"""Margins that are drawn at random for each person: the level, the shares, the estimates and their intervals."""

from __future__ import annotations

import itertools
import math
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.designs import MarginPlans, design_margins
from priorveil.designs.margins import PARTS
from priorveil.errors import ForeignReport, InvalidInput, OutsideDomain, PlanError
from refusals import raises

SIZES = {"age": 3, "smokes": 2, "town": 4}
CELLS = np.array(list(itertools.product(*(range(n) for n in SIZES.values()))))
JOINT = np.random.default_rng(2).dirichlet(np.full(len(CELLS), 2.0))
MARGINS = [("age", "smokes"), ("smokes", "town"), ("age",)]
TRUTH = np.random.default_rng(3).dirichlet(np.full(len(CELLS), 2.0))  # the priors are wrong


def margin(names: tuple[str, ...], law: np.ndarray = JOINT) -> dict[tuple[str, ...], float]:
    """The probabilities of the cells of a margin, labels as text."""
    place = [list(SIZES).index(name) for name in names]
    found: dict[tuple[str, ...], float] = {}
    for cell, p in zip(CELLS[:, place].tolist(), law, strict=True):
        key = tuple(f"{name}{level}" for name, level in zip(names, cell, strict=True))
        found[key] = found.get(key, 0.0) + float(p)
    return found


def prior(names: tuple[str, ...]) -> pv.Prior:
    cells = margin(names)
    return (
        pv.Prior.joint(cells, names) if len(names) > 1 else pv.Prior({key[0]: p for key, p in cells.items()})
    )


def table(people: np.ndarray) -> dict[str, list[str]]:
    return {name: [f"{name}{level}" for level in CELLS[people, i]] for i, name in enumerate(SIZES)}


@pytest.fixture(scope="module")
def survey() -> MarginPlans:
    return design_margins({names: prior(names) for names in MARGINS}, 1.0)


def test_plans_for_different_notions_are_refused() -> None:
    """The level of one notion says nothing about the other: a LIP plan at 1 may have the LDP level 2."""
    ages = pv.Prior([0.3, 0.7])
    plans = {(n.name,): pv.design(ages, 1.0, pv.Distribution(), notion=n) for n in (pv.LDP(), pv.LIP())}
    with raises(InvalidInput, argument="plans"):
        MarginPlans.of(plans)


def test_the_level_is_that_of_the_channel_from_the_whole_tuple(survey: MarginPlans) -> None:
    """All reports about all margins, written out as one channel of the joint prior."""
    blocks = []
    for (names, plan), share in zip(survey.plans.items(), survey.shares, strict=True):
        place = [list(SIZES).index(name) for name in names]
        codes = np.unique(CELLS[:, place], axis=0, return_inverse=True)[1].ravel()
        blocks.append(plan.channel.matrix[codes] * share / PARTS)
    found = pv.leakage(pv.Channel(np.hstack(blocks)), pv.Prior(JOINT))
    assert found.lip == pytest.approx(survey.certificate.lip, rel=1e-9) and survey.certificate.lip <= 1
    assert found.ldp == pytest.approx(survey.certificate.ldp, rel=1e-9)


def test_no_other_shares_have_a_smaller_error(survey: MarginPlans) -> None:
    errors = np.array([plan.expected_mse for plan in survey.plans.values()])
    assert sum(survey.shares) == PARTS
    assert survey.expected_mse == pytest.approx(float(np.sqrt(errors).sum() ** 2), rel=1e-9)
    for shares in np.random.default_rng(0).dirichlet(np.ones(3), 100):
        assert survey.expected_mse <= float((errors / shares).sum())


@pytest.mark.statistical
def test_estimates_are_unbiased_and_intervals_cover(survey: MarginPlans) -> None:
    """400 surveys of 900 people: means within four standard errors; so is the coverage, with half a point of slack."""
    rng, N, runs = np.random.default_rng(4), 900, 400
    truth = {names: N * np.array(list(margin(names, TRUTH).values())) for names in MARGINS}
    errors: dict[tuple[str, ...], list[np.ndarray]] = {names: [] for names in MARGINS}
    inside = []
    for _ in range(runs):
        reports = survey.privatize(table(rng.choice(len(CELLS), N, p=TRUTH)), rng)
        for names, found in survey.estimate(survey.tally(reports)).items():
            errors[names].append(found.values - truth[names])
            low, high = found.interval(0.95)
            inside.append(((low <= truth[names]) & (truth[names] <= high)).mean())
            assert found.values.sum() == pytest.approx(N) and found.total == pytest.approx(N)
    for each in errors.values():
        assert (np.abs(np.mean(each, axis=0)) < 4 * np.std(each, axis=0) / math.sqrt(runs)).all()
    assert abs(np.mean(inside) - 0.95) < 4 * np.std(inside) / math.sqrt(len(inside)) + 0.005


def test_reports_are_pairs_and_parts_add_up(survey: MarginPlans, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    people = table(rng.integers(0, len(CELLS), 3_000))
    reports = survey.privatize(people, rng)
    asked = np.array([MARGINS.index(names) for names, _ in reports])
    expected = 3_000 * np.array(survey.shares) / PARTS
    assert ((np.bincount(asked) - expected) ** 2 / expected).sum() < 20  # chi-square, two degrees: 5e-5
    whole, halves = survey.tally(reports), [survey.tally(part) for part in (reports[:1000], reports[1000:])]
    assert whole == {names: sum(half[names] for half in halves) for names in MARGINS}
    survey.save(tmp_path / "margins.json")
    again = MarginPlans.load(tmp_path / "margins.json")
    assert again.plans == survey.plans and again.shares == survey.shares
    ours, theirs = survey.estimate(whole), again.estimate(whole)
    assert all(ours[names].values == pytest.approx(theirs[names].values) for names in MARGINS)
    assert ours["age", "smokes"].margin("smokes").values.sum() == pytest.approx(3_000)


def test_a_margin_may_have_any_mechanism_and_a_single_cell() -> None:
    priors = {("a",): pv.Prior({"x": 1.0}), ("b",): pv.Prior.uniform(["p", "q", "r"])}
    plans = {names: pv.design(known, 1.0, pv.Distribution()) for names, known in priors.items()}
    plans["b",] = pv.design(priors["b",], 1.0, pv.Distribution(), method="unary")
    mixed = MarginPlans.of(plans)
    assert min(mixed.shares) >= 1
    reports = mixed.privatize({"a": ["x"] * 50, "b": ["p"] * 50}, np.random.default_rng(1))
    assert mixed.estimate(mixed.tally(reports))["b",].values.sum() == pytest.approx(50, abs=30)


def test_a_ledger_takes_single_plans_and_points_to_the_certificate(survey: MarginPlans) -> None:
    ledger = pv.Ledger(prior(("age", "smokes")))
    for ask in (ledger.would, ledger.spend, partial(ledger.spend, replay=True)):
        with raises(InvalidInput, argument="plan"):
            ask(survey)  # type: ignore[arg-type]
    assert not ledger.spent


def test_one_person_may_give_single_values(survey: MarginPlans) -> None:
    person = {name: f"{name}0" for name in SIZES}
    ((names, report),) = survey.privatize(person, np.random.default_rng(0))
    assert survey.tally([(names, report)])[names].reports == 1
    with pytest.raises(OutsideDomain):
        survey.privatize(dict.fromkeys(SIZES, "?"))


def test_of_a_margin_that_nobody_was_asked_about_nothing_is_known(survey: MarginPlans) -> None:
    found = survey.estimate(survey.tally([(("age",), 0)] * 9))
    unknown = found["age", "smokes"]
    assert found["age",].total == 9 and np.isfinite(found["age",].std_error).all()
    assert [set(ends.tolist()) for ends in unknown.interval()] == [{-math.inf}, {math.inf}]
    for ask in (lambda: unknown.proportions, lambda: unknown.margin("age"), lambda: unknown.covariance):
        with pytest.raises(InvalidInput):
            ask()


def test_bad_input(survey: MarginPlans, tmp_path: Path) -> None:
    pair = prior(("age", "smokes"))
    leaning = pv.design([0.5, 0.3, 0.2], 1.0, pv.Histogram())
    (tmp_path / "bad.json").write_text('{"format": "priorveil-margins", "version": 1, "margins": [{}]}')
    for error, call in (
        (InvalidInput, lambda: design_margins({("smokes", "age"): pair}, 1.0)),
        (InvalidInput, lambda: design_margins({("age", "smokes"): pv.Prior([0.5, 0.5])}, 1.0)),
        (InvalidInput, lambda: design_margins({}, 1.0)),
        (InvalidInput, lambda: MarginPlans.of({("a",): leaning})),
        (InvalidInput, lambda: MarginPlans(survey.plans, (1, 2, 3))),
        (InvalidInput, lambda: survey.privatize({"age": ["age0"]})),
        (InvalidInput, lambda: survey.privatize({"age": ["age0"], "smokes": [], "town": []})),
        (OutsideDomain, lambda: survey.privatize({name: ["?"] for name in SIZES})),
        (ForeignReport, lambda: survey.tally([(("town",), 0)])),
        (PlanError, lambda: MarginPlans.load(tmp_path / "bad.json")),
    ):
        with pytest.raises(error):
            call()


def test_ctrl_c_keeps_the_best_plan_of_a_margin_and_goes_on() -> None:
    zipf, calls = pv.Prior.zipf(40), []

    def press_once(rounds: int, error: float, bound: float) -> None:
        calls.append(rounds)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)

    found = design_margins({("first",): zipf, ("second",): zipf}, 1.0, progress=press_once, rounds=14)
    first, second = (plan.expected_mse for plan in found.plans.values())
    assert found.certificate.lip <= 1 and len(calls) > 2 and second < first


def test_it_prints_the_share_of_people_asked_about_each_margin(survey: MarginPlans) -> None:
    shown = repr(survey)
    assert shown.startswith("MarginPlans(LIP 1, LDP 2; asked about: age x smokes ")
    printed = [float(part.split()[-2]) for part in shown.partition("; ")[2].rstrip(")").split(", ")]
    assert printed == pytest.approx([100 * share / PARTS for share in survey.shares], abs=0.051)

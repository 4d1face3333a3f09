"""Margins that are drawn at random for each person: the level, the shares, and what is refused."""

from __future__ import annotations

import itertools
import signal

import numpy as np
import pytest

import priorveil as pv
from priorveil.designs import design_margins
from priorveil.plans.form import SHARE_DENOMINATOR, Form

SIZES = {"age": 3, "smokes": 2, "town": 4}
CELLS = np.array(list(itertools.product(*(range(n) for n in SIZES.values()))))
JOINT = np.random.default_rng(2).dirichlet(np.full(len(CELLS), 2.0))
MARGINS = [("age", "smokes"), ("smokes", "town"), ("age",)]


def margin(names: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """The probabilities of the cells of a margin, labels as text."""
    place = [list(SIZES).index(name) for name in names]
    found: dict[tuple[str, ...], float] = {}
    for cell, p in zip(CELLS[:, place].tolist(), JOINT, strict=True):
        key = tuple(f"{name}{level}" for name, level in zip(names, cell, strict=True))
        found[key] = found.get(key, 0.0) + float(p)
    return found


def prior(names: tuple[str, ...]) -> pv.Prior:
    cells = margin(names)
    return (
        pv.Prior.joint(cells, names) if len(names) > 1 else pv.Prior({key[0]: p for key, p in cells.items()})
    )


@pytest.fixture(scope="module")
def survey() -> Form:
    return design_margins({names: prior(names) for names in MARGINS}, 1.0)


def summed_variance(form: Form) -> float:
    """N times the variance of all cells, for many people."""
    [slot] = form.slots
    pairs = zip(slot.parts, slot.shares, strict=True)
    return sum(part.plan.expected_mse * SHARE_DENOMINATOR / share for part, share in pairs)


def test_the_level_is_that_of_the_channel_from_the_whole_tuple(survey: Form) -> None:
    """All reports about all margins, written out as one channel of the joint prior."""
    [slot] = survey.slots
    blocks = []
    for part, share in zip(slot.parts, slot.shares, strict=True):
        place = [list(SIZES).index(name) for name in part.attributes]
        codes = np.unique(CELLS[:, place], axis=0, return_inverse=True)[1].ravel()
        blocks.append(part.plan.channel.matrix[codes] * share / SHARE_DENOMINATOR)
    found, stated = pv.leakage(pv.Channel(np.hstack(blocks)), pv.Prior(JOINT)), survey.levels()
    assert found.lip == pytest.approx(stated.lip, rel=1e-9) and stated.lip <= 1 < stated.ldp
    assert found.ldp == pytest.approx(stated.ldp, rel=1e-9)


def test_no_other_shares_have_a_smaller_error(survey: Form) -> None:
    errors = np.array([part.plan.expected_mse for part in survey.parts])
    assert summed_variance(survey) == pytest.approx(float(np.sqrt(errors).sum() ** 2), rel=1e-9)
    for shares in np.random.default_rng(0).dirichlet(np.ones(3), 100):
        assert summed_variance(survey) <= float((errors / shares).sum())


def test_a_margin_with_a_single_cell_is_asked_about_too() -> None:
    priors = {("a",): pv.Prior({"x": 1.0}), ("b",): pv.Prior.uniform(["p", "q", "r"])}
    mixed = design_margins(priors, 1.0)
    assert min(mixed.slots[0].shares) >= 1
    words = mixed.privatize({"a": ["x"] * 50, "b": ["p"] * 50}, rng=np.random.default_rng(1))
    found = mixed.estimate(mixed.tallies(mixed.count(words)))
    assert found["b",].values.sum() == pytest.approx(50, abs=30)


def test_ctrl_c_keeps_the_best_plan_of_a_margin_and_goes_on() -> None:
    zipf, calls = pv.Prior.zipf(40), []

    def press_once(rounds: int, error: float, bound: float) -> None:
        calls.append(rounds)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)

    found = design_margins({("first",): zipf, ("second",): zipf}, 1.0, progress=press_once, rounds=14)
    first, second = (part.plan.expected_mse for part in found.parts)
    assert found.levels().lip <= 1 and len(calls) > 2 and second < first

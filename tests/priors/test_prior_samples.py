"""Sets of priors that a sample leaves possible."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, binom

from priorveil import LIP, Distribution, Plan, Prior, PriorSet, design
from priorveil.errors import InvalidInput, PlanError
from references.prior_samples import KNOWN_PRIOR, ROWS, SHARES, TWO_LAYERS, WORST_OF_THOUSAND
from refusals import raises

TRUTH = Prior(SHARES, ["private", "self", "government", "none"])


def counts_of(people: int) -> dict[object, int]:
    return {label: round(people * p) for label, p in zip(TRUTH.labels, SHARES, strict=True)}


@pytest.mark.parametrize("counts", [(690, 110, 130, 70), (0, 100), (3, 0, 2), (1,)])
@pytest.mark.parametrize("delta", [1e-6, 0.9])
def test_the_box_is_that_of_clopper_and_pearson(counts: tuple[int, ...], delta: float) -> None:
    known, people = PriorSet.from_sample(counts, delta), sum(counts)
    low, high = known.extremes(np.eye(len(counts)))
    if len(counts) == 1:
        assert low.tolist() == high.tolist() == [1.0]
        return
    tail = delta / (2 * len(counts))
    for at, count in enumerate(counts):
        lower, upper = known.document()["lower"][at], known.document()["upper"][at]
        least = beta.ppf(tail, count, people - count + 1) if count else 0.0
        most = beta.isf(tail, count + 1, people - count) if count < people else 1.0
        assert least - 1.1e-9 <= float(lower) <= least + 1e-11
        assert most - 1e-11 <= float(upper) <= most + 1.1e-9


def test_the_box_holds_the_truth_as_often_as_it_says() -> None:
    people, delta = 40, 0.05
    boxes = [PriorSet.from_sample([k, people - k], delta).document() for k in range(people + 1)]
    for p in np.linspace(0.01, 0.99, 99):
        holds = [float(box["lower"][0]) <= p <= float(box["upper"][0]) for box in boxes]
        assert binom.pmf(np.arange(people + 1), people, p)[holds].sum() >= 1 - delta


@pytest.mark.parametrize(("people", "variance", "level"), ROWS)
def test_a_plan_for_a_sample(people: int, variance: float, level: float) -> None:
    """More people leave fewer priors, and cost less; the plan for the counts themselves breaks its level."""
    known = PriorSet.from_sample(counts_of(people))
    plan = design(known, 1.0, Distribution())
    assert plan.certificate.lip <= 1 + 1e-9
    assert Distribution().error(plan.channel, TRUTH) == pytest.approx(variance, abs=0.006)
    naive = design(TRUTH, 1.0, Distribution())
    assert naive.expected_mse == pytest.approx(KNOWN_PRIOR, abs=6e-4)
    assert LIP().epsilon(naive.channel, known) == pytest.approx(level, abs=6e-4)
    if people == 1_000:
        assert plan.expected_mse == pytest.approx(WORST_OF_THOUSAND, abs=6e-4)


def test_a_plan_remembers_its_sample(tmp_path: Path) -> None:
    known = PriorSet.from_sample({"yes": 120, "no": 880}, 1e-3)
    plan = design(known, 1.0, Distribution())
    plan.save(tmp_path / "plan.json")
    loaded = Plan.load(tmp_path / "plan.json")
    assert loaded == plan and loaded.prior == known
    assert loaded.prior.sample is not None
    assert (loaded.prior.sample.people, loaded.prior.sample.odds) == (1_000, 1_000)
    assert "a sample of 1,000 people, unless that sample was one in 1,000" in str(loaded)
    other = PriorSet.interval(known.extremes(np.eye(2))[0], known.extremes(np.eye(2))[1], ["yes", "no"])
    assert other.sample is None and "a sample of" not in str(design(other, 1.0, Distribution()))


def test_ends_of_another_sample_are_refused(tmp_path: Path) -> None:
    plan = design(PriorSet.from_sample({"yes": 120, "no": 880}), 1.0, Distribution())
    document = json.loads(plan.to_json())
    document["prior"]["sample"]["delta"] = "1e-12"
    with raises(PlanError, field="prior"):
        Plan.read(document)


@pytest.mark.parametrize("counts", [[0, 0], [1, -1], [0.5, 1], []])
def test_counts_that_are_no_sample(counts: list[float]) -> None:
    with raises(InvalidInput, argument="counts"):
        PriorSet.from_sample(counts)


def test_wrong_deltas_and_labels() -> None:
    for delta in (0.0, 1.0, float("nan")):
        with raises(InvalidInput, argument="delta"):
            PriorSet.from_sample([1, 2], delta)
    with raises(InvalidInput, argument="labels"):
        PriorSet.from_sample({"a": 1, "b": 2}, labels=["a", "b"])
    assert PriorSet.from_sample([1, 2], labels=["a", "b"]).labels == ("a", "b")


def test_two_layers_of_memory() -> None:
    """Any number of fresh reports of a remembered one stays below the level of the remembered one."""
    prior = Prior([0.5, 0.3, 0.2])
    remembered = design(prior, 2.0, Distribution()).channel.matrix
    size = remembered.shape[1]
    fresh = 0.5 * np.eye(size) + 0.5 / size
    several, levels = np.ones((size, 1)), []
    for _ in TWO_LAYERS:
        several = (several[:, :, None] * fresh[:, None, :]).reshape(size, -1)
        levels.append(LIP().epsilon(remembered @ several, prior))
    assert levels == pytest.approx(TWO_LAYERS, abs=6e-4)

"""Unbiased statistics for sets of priors: the stated error is the worst one, and no plan goes below the bound."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from enumeration import SETTINGS, random_prior, unbiased_errors_at, worst_unbiased_error
from forged_documents import identified
from priorveil.errors import PlanError
from refusals import raises

Array = np.ndarray
SPREAD_APART = [[0.1958, 0.8042], [0.0328, 0.9672]]
OPPOSITE = [[0.2249, 0.7751], [0.7913, 0.2087]]


def errors_at(plan: pv.Plan, priors: Array) -> Array:
    """N times the variance of the plan's own scores under each prior, from its definition."""
    scores = plan.scores(np.arange(plan.channel.matrix.shape[1]))
    rows = plan.query.rows(plan.reference)
    W = np.eye(len(plan.labels)) if rows is None else rows
    squares = priors @ plan.channel.matrix @ (scores**2).sum(axis=1)
    return np.asarray(squares - ((priors @ W.T) ** 2).sum(axis=1))


def priors_of(known: pv.PriorSet, rng: np.random.Generator) -> Array:
    """The members of a set; of a polytope its corners and priors between them."""
    if known.members:
        return np.array([p.probabilities for p in known.members])
    corners = known.vertices()
    return np.vstack([corners, rng.dirichlet(np.full(len(corners), 0.2), 50) @ corners])


@pytest.mark.parametrize("method", ["auto", "columns"])
@pytest.mark.parametrize(("members", "worst"), [(SPREAD_APART, 0.365335), (OPPOSITE, 0.434547)])
def test_the_error_is_that_of_the_worst_member(members: list[list[float]], worst: float, method: str) -> None:
    plan = pv.design(pv.PriorSet(members), 3.0, pv.Distribution(), method=method)
    assert plan.expected_mse == pytest.approx(worst, rel=2e-6)
    assert plan.expected_mse == pytest.approx(errors_at(plan, np.array(members)).max(), rel=1e-9)
    assert plan.expected_mse * (1 - 1e-6) <= plan.lower_bound <= plan.expected_mse


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("setting", ["LIP, finite sets of priors", "LIP, polytopes of priors"])
def test_no_prior_of_the_set_has_a_larger_error_and_no_plan_is_below_the_bound(
    setting: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    instance = SETTINGS[setting](rng)
    plan = instance.plan(unbiased=True)
    known = instance.prior
    assert isinstance(known, pv.PriorSet)
    errors = errors_at(plan, priors_of(known, rng))
    assert errors.max() <= plan.expected_mse * (1 + 1e-9)
    assert plan.lower_bound >= plan.expected_mse * (1 - 1e-6)
    # the plans that are the best ones at single priors of the set, read with scores made for those and for others
    W = instance.W / np.abs(instance.W).max()
    bound = plan.lower_bound / np.abs(instance.W).max() ** 2
    priors = priors_of(known, rng)[:6]
    for p in (*priors, priors.mean(axis=0)):
        other = pv.design(pv.Prior(p), instance.budget, plan.query, method="columns")
        allowed = plan.notion.holds(other.channel, known, instance.budget)
        for q in (p, plan.reference.probabilities):
            worst = worst_unbiased_error(other.channel.matrix, W, q, known)
            assert not allowed or worst >= bound * (1 - 1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_under_ldp_no_member_has_a_larger_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = [random_prior(rng, 4) for _ in range(3)]
    known = pv.PriorSet(members)
    plan = pv.design(known, 1.0, pv.Distribution(), notion=pv.LDP())
    priors = np.array([p.probabilities for p in members])
    assert errors_at(plan, priors).max() <= plan.expected_mse * (1 + 1e-9)
    alone = [pv.design(p, 1.0, pv.Distribution(), notion=pv.LDP()) for p in (*members, known.centre)]
    worst = [
        unbiased_errors_at(one.channel.matrix, np.eye(4), one.reference.probabilities, priors).max()
        for one in alone
    ]
    assert plan.lower_bound <= min(worst) * (1 + 1e-9)
    assert plan.expected_mse <= min(worst) * (1 + 1e-6)
    assert plan.expected_mse >= max(one.lower_bound for one in alone[:-1]) * (1 - 1e-9)


def test_the_bound_under_ldp_counts_how_far_members_are_apart() -> None:
    """Fifteen values are too many to list: the bound comes from the middle of the set, which is no member."""
    members = [pv.Prior([0.86 if x == common else 0.01 for x in range(15)]) for common in range(2)]
    asked = {"query": pv.Distribution(), "notion": pv.LDP(), "method": "columns", "rounds": 6}
    plan = pv.design(pv.PriorSet(members), 6.0, **asked)
    alone = pv.design(pv.PriorSet(members).centre, 6.0, **asked)
    priors = np.array([p.probabilities for p in members])
    assert errors_at(plan, priors).max() <= plan.expected_mse * (1 + 1e-9)
    assert plan.lower_bound <= errors_at(alone, priors).max() < alone.lower_bound


@pytest.mark.parametrize("query", [pv.Distribution(), pv.Sum([0, 1, 5], unbiased=True)])
def test_unary_encoding_states_the_worst_member_too(query: pv.Linear) -> None:
    members = [pv.Prior([0.1, 0.2, 0.7]), pv.Prior([0.6, 0.3, 0.1])]
    plan = pv.design(pv.PriorSet(members), 1.0, query, method="unary")
    reports = plan.privatize(np.repeat([0, 1, 2], 40_000), np.random.default_rng(0))
    scores = plan.scores(reports).reshape(3, 40_000, -1)
    rows = query.rows(plan.reference)
    W = np.eye(3) if rows is None else rows
    moments = (scores**2).sum(axis=2).mean(axis=1)
    errors = [p.probabilities @ moments - ((W @ p.probabilities) ** 2).sum() for p in members]
    assert max(errors) == pytest.approx(plan.expected_mse, rel=0.03)


def test_the_reading_prior_is_part_of_the_file(tmp_path: Path) -> None:
    known = pv.PriorSet([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.3, 0.4, 0.3]])
    plan = pv.design(known, 1.0, pv.Distribution())
    assert plan.reading_prior is not None and plan.reference == plan.reading_prior
    plan.save(tmp_path / "plan.json")
    again = pv.Plan.load(tmp_path / "plan.json")
    assert again == plan and again.reading_prior == plan.reading_prior
    reports = np.arange(plan.channel.matrix.shape[1])
    assert again.scores(reports) == pytest.approx(plan.scores(reports), rel=1e-12)


SETS = [
    pv.PriorSet([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.3, 0.4, 0.3]]),
    pv.PriorSet.interval([0.1, 0.2, 0.3], [0.4, 0.4, 0.6]),
    pv.PriorSet.ball([0.2, 0.3, 0.5], 0.1),
]


@pytest.mark.parametrize("query", [pv.Distribution(), pv.Histogram()], ids=lambda query: query.kind)
@pytest.mark.parametrize("known", SETS, ids=lambda known: known.kind)
def test_a_reading_prior_lies_in_the_set(known: pv.PriorSet, query: pv.Linear) -> None:
    plan = pv.design(known, 1.0, query)
    assert plan.reading_prior is not None and pv.Plan.from_json(plan.to_json()) == plan
    forged = replace(plan, reading_prior=pv.Prior([0.05, 0.9, 0.05]))
    with raises(PlanError, field="reading_prior"):
        pv.Plan.from_json(forged.to_json())


@pytest.mark.parametrize("known", SETS, ids=lambda known: known.kind)
def test_a_set_encloses_its_hull(known: pv.PriorSet) -> None:
    corners = known.vertices()
    inside = np.random.default_rng(0).dirichlet(np.ones(len(corners)), 20) @ corners
    for p in [*corners, *inside]:
        outside = p + 1.01 * (p - known.centre.probabilities)
        assert known.encloses(pv.Prior(p / p.sum()))
        if any((p == corner).all() for corner in corners) and outside.min() > 0:
            assert not known.encloses(pv.Prior(outside / outside.sum()))


def test_one_prior_has_no_reading_prior() -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Distribution())
    assert "reading_prior" not in plan.document()
    document = {**plan.document(), "reading_prior": pv.Prior([0.2, 0.3, 0.5]).document()}
    with raises(PlanError, field="reading_prior"):
        pv.Plan.from_json(json.dumps(identified(document)))

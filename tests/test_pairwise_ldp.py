"""Budgets for pairs of values: measured, designed, certified, saved; and notions that a file names but nobody knows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import priorveil as pv
from priorveil.certify import certificate, lifts
from priorveil.errors import InvalidInput, NotIdentifiable, PlanError
from priorveil.mechanisms import Table
from priorveil.words.plans import plan_facts
from refusals import raises

PRIOR = pv.Prior([0.4, 0.3, 0.2, 0.1])
LINE = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
QUERIES = [pv.Histogram(), pv.Sum(range(4)), pv.Guess(), pv.Distribution()]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_equal_distances_are_ldp(query: pv.Query) -> None:
    plans = [pv.design(PRIOR, 0.8, query, notion=n) for n in (pv.LDP(), pv.PairwiseLDP(np.ones((4, 4))))]
    ldp, pairwise = plans
    assert pairwise.expected_mse == pytest.approx(ldp.expected_mse, rel=1e-6)
    assert pairwise.certificate.level == pytest.approx(pairwise.certificate.ldp, rel=1e-12)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_plans_keep_the_budget_of_every_pair_and_can_be_saved(query: pv.Query) -> None:
    plan = pv.design(PRIOR, 0.8, query, notion=pv.PairwiseLDP(LINE))
    Q = plan.channel.matrix
    for x in range(4):
        for z in range(4):
            assert np.log(Q[x] / Q[z]).max() <= 0.8 * LINE[x, z] * (1 + 1e-12)
    assert plan.certificate.level <= 0.8
    assert plan.notion.epsilon(plan.channel) <= plan.certificate.level * (1 + 1e-12)
    assert plan.notion.holds(plan.channel, PRIOR, 0.8) and not plan.notion.holds(plan.channel, PRIOR, 0.79)
    assert plan.expected_mse < pv.design(PRIOR, 0.8, query, notion=pv.LDP()).expected_mse
    again = pv.Plan.from_json(plan.to_json())
    assert again == plan and again.notion == plan.notion


def test_the_certificate_is_exact_and_per_unit_of_distance() -> None:
    table = np.array([[8, 2], [4, 6], [1, 9]])
    prior, notion = pv.Prior([0.2, 0.3, 0.5]), pv.PairwiseLDP([[0, 1, 4], [1, 0, 2], [4, 2, 0]])
    proven = pv.certify_table(table, prior, 1.1, notion=notion)
    assert math.log(3) <= proven.level <= math.log(3) * (1 + 1e-14)  # 6 to 2, at distance one
    assert proven.ldp >= math.log(8)
    assert notion.worst(pv.Channel(table / 10))[0].secret == 1


def test_a_value_that_needs_no_protection_may_be_told() -> None:
    free = np.ones((4, 4))
    free[3] = math.inf
    plan = pv.design(PRIOR, 1.0, pv.Distribution(), notion=pv.PairwiseLDP(free))
    assert isinstance(plan.mechanism, Table)
    told = plan.channel.matrix[:3].max(axis=0) <= 1e-12
    assert told.any() and plan.channel.matrix[3, told].sum() > 0.1
    assert plan.certificate.level <= 1.0
    assert plan.expected_mse < pv.design(PRIOR, 1.0, pv.Distribution(), notion=pv.LDP()).expected_mse


def test_a_plan_says_how_many_pairs_are_free() -> None:
    free = np.ones((4, 4))
    free[3] = math.inf
    for distances, count in ((free, 3), (np.ones((4, 4)), 0)):
        plan = pv.design(PRIOR, 1.0, pv.Histogram(), notion=pv.PairwiseLDP(distances))
        assert plan.notion.free_pairs == count
        assert dict(plan_facts(plan)).get("not protected", "0").split()[0] == str(count)


@pytest.mark.parametrize("distance", [40.0, 800.0, 1e300])
def test_a_large_distance_is_hardly_a_condition(distance: float) -> None:
    far = np.ones((4, 4))
    far[3] = far[:, 3] = distance
    plan = pv.design(PRIOR, 1.0, pv.Distribution(), notion=pv.PairwiseLDP(far))
    assert plan.certificate.level <= 1.0 and pv.Plan.from_json(plan.to_json()) == plan
    assert plan.expected_mse < pv.design(PRIOR, 1.0, pv.Distribution(), notion=pv.LDP()).expected_mse


@pytest.mark.parametrize("distance", [1e-12, 5e-324])
def test_a_tiny_distance_has_an_infinite_level(distance: float) -> None:
    notion = pv.PairwiseLDP([[0, distance], [distance, 0]])
    exact = lifts(np.array([[3, 1], [1, 3]]), pv.Prior([0.5, 0.5]), notion=notion)
    assert exact.ratio is None and math.isinf(certificate(exact, notion).level)


@pytest.mark.parametrize("distance", [1e-13, 1e-9])
def test_of_two_pairs_that_imply_each_other_one_is_kept(distance: float) -> None:
    """Two values next to each other are equally far from a third: either pair follows from the other."""
    near = [[0, distance, 1], [distance, 0, 1], [1, 1, 0]]
    prior = pv.Prior([0.3, 0.3, 0.4])
    notion = pv.PairwiseLDP(near)
    assert len(notion.inequalities(pv.Budget(1.0), prior)) == (4 if distance < 1e-12 else 6)
    plan = pv.design(prior, 1.0, pv.Histogram(), notion=notion)
    assert plan.certificate.level <= 1.0 and plan.efficiency > 0.999
    Q = plan.channel.matrix
    assert Q[0] == pytest.approx(Q[1], rel=1e-6)
    with raises(NotIdentifiable) as refused:
        pv.design(
            prior, 1.0, pv.Distribution(), notion=pv.PairwiseLDP([[0, 1e-13, 1], [1e-13, 0, 1], [1, 1, 0]])
        )
    assert refused.value.statistics


def test_distances_of_other_values_are_refused() -> None:
    with raises(InvalidInput, argument="distances"):
        pv.design(PRIOR, 1.0, pv.Histogram(), notion=pv.PairwiseLDP(np.ones((3, 3))))


@pytest.mark.parametrize("field", ["notion", "query"])
def test_a_file_with_an_unknown_notion_or_query_says_so(field: str) -> None:
    plan = pv.design(PRIOR, 1.0, pv.Histogram())
    document = {**json.loads(plan.to_json()), field: {"name": "Unheard"}}
    with raises(PlanError, field=field, cause=InvalidInput):
        pv.Plan.from_json(json.dumps(document))


def utility_optimised_response(sensitive: int, size: int, epsilon: float) -> np.ndarray:
    """Utility-optimised randomised response of Murakami and Kawamoto (2019): sensitive values come first."""
    share = 1 / (sensitive + math.exp(epsilon) - 1)
    own = [(math.exp(epsilon) - 1) * share] * sensitive + [1 - sensitive * share] * (size - sensitive)
    return np.diag(own) + np.where(np.arange(size) < sensitive, share, 0.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize(
    "query", [pv.Histogram(), pv.Distribution(), pv.Guess()], ids=lambda query: query.kind
)
@pytest.mark.parametrize(("sensitive", "shares"), [(1, [0.1, 0.3, 0.6]), (2, [0.03, 0.07, 0.2, 0.3, 0.4])])
def test_the_best_plan_for_sensitive_values_is_no_worse_than_the_published_one(
    sensitive: int, shares: list[float], query: pv.Query, epsilon: float
) -> None:
    """Both keep the same budgets. With one sensitive value the published channel is the best one."""
    distances = np.ones((len(shares), len(shares)))
    distances[sensitive:] = math.inf
    notion = pv.PairwiseLDP(distances)
    published = pv.Plan.of(
        utility_optimised_response(sensitive, len(shares), epsilon), shares, query, notion=notion
    )
    best = pv.design(shares, epsilon, query, notion=notion, rounds=40)
    assert published.certificate.level == pytest.approx(epsilon, rel=1e-12)
    assert best.lower_bound <= published.expected_mse * (1 + 1e-9)
    assert best.expected_mse <= published.expected_mse * (1 + 1e-6)
    if sensitive == 1:
        assert best.lower_bound == pytest.approx(published.expected_mse, rel=1e-5)


def test_every_report_of_the_best_plan_is_protected_or_tells_one_value() -> None:
    """So it also has utility-optimised LDP, which asks for that; up to what certifying mixes in."""
    distances = np.ones((5, 5))
    distances[2:] = math.inf
    plan = pv.design([0.03, 0.07, 0.2, 0.3, 0.4], 1.0, pv.Histogram(), notion=pv.PairwiseLDP(distances))
    for column in plan.channel.matrix.T:
        told = np.count_nonzero(column > 1e-9 * column.max()) == 1 and column.argmax() >= 2
        assert told or column.max() <= math.e * column.min() * (1 + 1e-9)

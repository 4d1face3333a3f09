"""The ledger: what reports leak together, never understated, and refused where nothing sound is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import BudgetExceeded, Infeasible, InvalidInput
from priorveil.plans.ledger import JointLeakage, Ledger
from refusals import raises

TOGETHER = [pv.Histogram(), pv.Guess(), pv.Distribution()]


def plan_of(prior: pv.Prior, epsilon: float, query: object = None, **options: object) -> pv.Plan:
    return pv.design(prior, epsilon, pv.Histogram() if query is None else query, **options)


def joint_level(plans: list[pv.Plan], prior: pv.Prior) -> tuple[float, float]:
    """Both sides of the lift of all the reports together, from first principles."""
    P, Q = prior.probabilities, np.ones((len(prior), 1))
    for plan in plans:
        Q = (Q[:, :, None] * plan.channel.matrix[:, None, :]).reshape(len(P), -1)
    law = P @ Q
    lift = Q[:, law > 0] / law[law > 0]
    return -math.log(lift.min()), math.log(lift.max())


def test_a_ledger_says_what_was_spent() -> None:
    prior = pv.Prior([0.5, 0.5])
    ledger = Ledger(prior, limit=2)
    assert repr(ledger) == "Ledger(0 reports, LIP 0, LDP 0, limit: epsilon 2)"
    ledger.spend(plan_of(prior, 0.5, notion=pv.LDP()))
    assert repr(ledger) == f"Ledger(1 report, LIP {ledger.level.lip:.4g}, LDP 0.5, limit: epsilon 2)"
    assert repr(Ledger(prior, limit=pv.Budget(1, 2))).endswith("limit: lower 1, upper 2)")
    assert repr(Ledger(prior)) == "Ledger(0 reports, LIP 0, LDP 0)"


def test_levels_do_not_add_up() -> None:
    """Two reports of a 1-LIP arc channel leak 2.735 downwards: more than the sum of the two."""
    prior = pv.Prior.uniform(40)
    arc = plan_of(prior, 1.0, method="arc")
    other = pv.design(prior, 1.0, pv.Sum(np.arange(40)), method="arc")
    lower, _ = joint_level([arc, arc], prior)
    assert lower == pytest.approx(2.735, abs=0.02)
    assert lower > 2.0
    ledger = Ledger(prior)
    assert ledger.spend(arc).lip <= 1.0
    assert ledger.spend(other).lip == ledger.level.ldp == arc.certificate.ldp + other.certificate.ldp
    assert lower <= ledger.level.lip


@given(st.integers(0, 10**6), st.lists(st.sampled_from([0.3, 0.7, 1.0]), min_size=1, max_size=3, unique=True))
@settings(max_examples=15)
def test_what_is_measured_is_the_joint_channel(seed: int, levels: list[float]) -> None:
    rng = np.random.default_rng(seed)
    prior = pv.Prior(rng.dirichlet(np.ones(4)) * 0.96 + 0.01)
    plans = [plan_of(prior, eps, TOGETHER[seed % 3]) for eps in levels]
    ledger = Ledger(prior)
    for plan in plans:
        foretold = ledger.would(plan)
        assert ledger.spend(plan) == foretold
    lower, upper = joint_level(plans, prior)
    assert lower - 1e-12 <= ledger.level.lip_lower <= lower + 1e-6
    assert upper - 1e-12 <= ledger.level.lip_upper <= upper + 1e-6
    assert ledger.level.lip <= math.fsum(plan.certificate.ldp for plan in plans) + 1e-6
    assert ledger.level.lip < ledger.level.ldp


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_bound_covers_what_is_too_large_to_measure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = pv.Prior(rng.dirichlet(np.full(9, 2.0)) * 0.91 + 0.01)
    arcs = [
        plan_of(prior, eps, query, method="arc")
        for eps, query in ((0.5, pv.Histogram()), (0.9, pv.Sum(range(9))))
    ]
    ledger = Ledger(prior)
    for plan in arcs:
        ledger.spend(plan)
    lower, upper = joint_level(arcs, prior)
    assert lower <= ledger.level.lip_lower
    assert upper <= ledger.level.lip_upper
    assert ledger.level.ldp <= sum(plan.certificate.ldp for plan in arcs) + 1e-12


def test_averages_over_reports_are_never_measured() -> None:
    """The channel of arcs in many orders averages over the places of a cell, and two reports leak more than it."""
    prior = pv.Prior.uniform(4)
    plan = plan_of(prior, 1.0, pv.Distribution(), method="arc")
    assert plan.mechanism.kind == "orders"
    columns = plan.leakage_channel.matrix  # up to scale, those of single reports
    pairs = (columns[:, :, None] * columns[:, None, :]).reshape(4, -1)
    lifts = pairs / (prior.probabilities @ pairs)
    ledger = Ledger(prior)
    ledger.spend(plan)
    ledger.spend(plan)
    assert -math.log(lifts.min()) > joint_level([plan, plan], prior)[0] + 1e-3
    assert -math.log(lifts.min()) <= ledger.level.lip_lower
    assert math.log(lifts.max()) <= ledger.level.lip_upper
    assert ledger.level.lip == ledger.level.ldp


def test_repeating_an_answer_is_free() -> None:
    prior = pv.Prior([0.5, 0.3, 0.2])
    plan, ledger = plan_of(prior, 0.5), Ledger(prior, limit=0.6)
    first = ledger.spend(plan)
    assert ledger.spend(pv.Plan.from_json(plan.to_json()), replay=True) == first
    assert len(ledger.spent) == 1
    assert ledger.spent[0].plan == plan.id
    with pytest.raises(BudgetExceeded):
        ledger.spend(plan)  # a new report by the same plan is not free


def test_a_plan_that_just_meets_the_limit_is_allowed() -> None:
    """Whatever the prior and the secret are, and also when they come from a file."""
    prior, ball = pv.Prior([0.5, 0.3, 0.2]), pv.PriorSet.ball(pv.Prior([0.5, 0.3, 0.2]), 0.05)
    secret = pv.Secret([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]])
    uneven = pv.Budget(1.0, 2.0)
    plans = [
        (Ledger(pv.PriorSet.ball(prior, 0.05), limit=1.0), pv.design(ball, 1.0, pv.Histogram())),
        (Ledger(prior, secret, limit=0.1), pv.design(prior, 0.1, pv.Histogram(), secret=secret)),
        (Ledger(prior, limit=uneven), pv.design(prior, uneven, pv.Histogram(), method="arc")),
    ]
    for ledger, plan in plans:
        assert ledger.spend(pv.Plan.from_json(plan.to_json())).lip == plan.certificate.lip


def test_two_new_reports_by_the_same_plan_leak_more_than_twice_one() -> None:
    prior = pv.Prior.uniform(10)
    plan = pv.design(prior, 1.0, pv.Histogram(), method="columns")
    ledger = Ledger(prior)
    ledger.spend(plan)
    assert ledger.spend(plan).lip == pytest.approx(
        pv.LIP().epsilon(plan.channel.joint_with(plan.channel), prior), abs=1e-6
    )
    assert ledger.level.lip > 2.0


def test_nothing_is_spent_beyond_the_limit() -> None:
    prior = pv.Prior([0.5, 0.3, 0.2])
    ledger = Ledger(prior, limit=0.8)
    ledger.spend(plan_of(prior, 0.5))
    before, spent = ledger.level, ledger.spent
    with pytest.raises(BudgetExceeded):
        ledger.spend(plan_of(prior, 0.6))
    assert ledger.level == before
    assert ledger.spent == spent
    ledger.spend(plan_of(prior, 0.01))


def test_a_limit_has_two_sides() -> None:
    prior = pv.Prior([0.9, 0.1])
    plan = plan_of(prior, pv.Budget(0.2, 1.5))
    assert plan.certificate.lip_upper > 0.5
    assert Ledger(prior, limit=pv.Budget(0.2, 1.5)).spend(plan).lip_upper <= 1.5
    with pytest.raises(BudgetExceeded):
        Ledger(prior, limit=pv.Budget(1.5, 0.2)).spend(plan)


def test_a_fresh_ledger_has_spent_nothing() -> None:
    assert Ledger([0.5, 0.5]).level.lip == 0


def test_a_plan_made_for_another_prior_is_measured_under_this_one() -> None:
    even, skewed = pv.Prior([0.5, 0.5]), pv.Prior([0.99, 0.01])
    plan = plan_of(even, 0.5)
    level = Ledger(skewed).spend(plan)
    lower, upper = joint_level([plan], skewed)
    assert level.lip >= max(lower, upper)
    assert level.lip > plan.certificate.lip


def test_a_large_plan_for_another_prior_is_charged_its_ldp_level() -> None:
    prior = pv.Prior.uniform(9)
    plan = plan_of(pv.Prior.zipf(9), 0.5, method="arc")
    level = Ledger(prior).spend(plan)
    lower, upper = joint_level([plan], prior)
    assert max(lower, upper) <= level.lip <= plan.certificate.ldp


def test_a_latent_secret_is_measured() -> None:
    """`G = A xor B`: each bit alone says nothing of it, both together say everything."""
    prior = pv.Prior([0.25] * 4)  # the pairs 00, 01, 10, 11
    secret = pv.Secret([[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0]])
    first, second = (
        pv.design(prior, 0.1, pv.Sum(bit), secret=secret) for bit in ([0, 0, 1, 1], [0, 1, 0, 1])
    )
    assert first.certificate.lip < 0.1 + 1e-9
    ledger = Ledger(prior, secret)
    ledger.spend(first)
    assert ledger.would(second).lip > 5


def test_a_latent_secret_is_refused_where_it_cannot_be_measured() -> None:
    prior = pv.Prior.uniform(12)
    secret = pv.Secret(np.kron(np.eye(2), np.full(6, 1 / 6)))
    ledger = Ledger(prior, secret)
    with pytest.raises(Infeasible):
        ledger.spend(plan_of(prior, 1.0, method="arc"))
    assert ledger.spent == ()


def test_sets_of_priors() -> None:
    known = pv.PriorSet([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])
    plan = pv.design(known, 0.7, pv.Histogram())
    level = Ledger(known).spend(plan)
    for member in known.members:
        assert max(joint_level([plan], member)) <= level.lip + 1e-9
    assert level.lip <= 0.7 + 1e-6


def test_a_plan_that_was_read_from_a_file_is_the_one_that_was_written() -> None:
    """Certificates hold for the very prior and secret, whoever wrote them down."""
    rows = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    prior, secret = pv.Prior([0.4, 0.25, 0.35]), pv.Secret(rows)
    for known, latent in ((prior, secret), (prior, [secret]), (pv.PriorSet.ball(prior, 0.05), None)):
        plan = pv.Plan.from_json(pv.design(known, 1.0, pv.Histogram(), secret=latent).to_json())
        level = pv.Ledger(known, latent).spend(plan)
        assert (level.lip_lower, level.lip_upper) == (
            plan.certificate.lip_lower,
            plan.certificate.lip_upper,
        )
    other = pv.Secret([rows[0], [0.1, 0.30000000000000004, 0.6]])
    measured = pv.Ledger(prior, other).would(plan)
    assert measured.lip < measured.ldp and measured.lip_lower != plan.certificate.lip_lower


def test_a_plan_that_tells_the_value_is_refused_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the joint channel is too large to measure, and the plan, made for a secret, has no LDP level."""
    monkeypatch.setattr("priorveil.plans.ledger.MOST_EXACT_ENTRIES", 1)
    prior, rows = pv.Prior.uniform(4), [[0.26, 0.26, 0.24, 0.24], [0.24, 0.24, 0.26, 0.26]]
    plan = pv.design(prior, 1.0, pv.Histogram(), secret=pv.Secret(rows))
    assert math.isinf(plan.certificate.ldp)
    ledger = Ledger(prior, limit=1.0)
    assert ledger.would(plan).lip == math.inf
    with pytest.raises(BudgetExceeded):
        ledger.spend(plan)
    assert not ledger.spent


@pytest.mark.parametrize("sides", [(math.nan, 0.5), (0.5, math.nan), (math.inf, 0.5), (0.5, 1.5)])
def test_a_level_is_within_a_limit_only_if_it_is_known_to_be(sides: tuple[float, float]) -> None:
    assert not JointLeakage(*sides).within(pv.Budget(1.0, 1.0))
    assert JointLeakage(1.0, 0.5).within(pv.Budget(1.0, 1.0))


def test_the_order_of_the_values_changes_nothing() -> None:
    """A plan whose author wrote the answers in another order leaks the same together with the others."""
    prior, turned = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2}), pv.Prior({"c": 0.2, "a": 0.5, "b": 0.3})
    plan, other = plan_of(prior, 0.7), plan_of(turned, 0.7)
    one, two = Ledger(prior, limit=1.0), Ledger(prior, limit=1.0)
    assert one.spend(plan).lip == pytest.approx(two.spend(other).lip)
    assert one.would(plan).lip == pytest.approx(one.would(other).lip, rel=1e-6) and one.would(plan).lip > 1
    with pytest.raises(BudgetExceeded):
        one.spend(other)
    with raises(InvalidInput, argument="plan"):
        one.spend(plan_of(pv.Prior({"a": 0.5, "b": 0.3, "x": 0.2}), 0.7))


def test_numbers_rounded_afresh_never_use_the_joint_channel_of_the_grid() -> None:
    """Most people lie between the points: two reports about somebody on a point then leak the sum of both levels."""
    prior, plain = pv.Prior.grid([0, 1], [0.35, 0.65]), pv.Prior([0.35, 0.65])
    budget = pv.Budget(0.236, 0.329)
    plan = plan_of(prior, budget)
    rounding, share = np.array([[1, 0], [0, 1], [0.35, 0.65]]), 1e-6
    number = pv.Prior([0.35 * share, 0.65 * share, 1 - share])  # the grid's probabilities after rounding
    one = pv.Channel(rounding @ plan.channel.matrix)
    real, stated = pv.leakage(one.joint_with(one), number).lip, max(joint_level([plan, plan], prior))
    assert stated == pytest.approx(0.579, abs=0.001) and real == pytest.approx(0.658, abs=0.001)
    ledger, exact = Ledger(prior), Ledger(plain)
    assert ledger.spend(plan).lip == plan.certificate.lip
    level = ledger.spend(plan)
    assert real <= level.lip == 2 * plan.certificate.ldp
    for _ in range(2):
        exact.spend(plan_of(plain, budget))
    assert exact.level.lip == pytest.approx(stated, abs=1e-6), "without rounding it is measured"

"""A plan beside LDP in three comparisons, and queries over several budgets."""

from __future__ import annotations

import math

import pytest

import priorveil as pv
from priorveil.designs import design_mean
from priorveil.studies import trade_offs
from priorveil.studies.trade_offs import flat_prior_remark, ldp_plan, same_ldp_plan, same_lip_plan

PRIOR = pv.Prior([0.5, 0.3, 0.15, 0.05])


def test_three_comparisons_with_ldp() -> None:
    found = pv.compare_with_ldp(pv.design(PRIOR, 1.0, pv.Distribution()))
    rows = {row.equal: row for row in found.rows}
    assert list(rows) == ["this plan", "the same epsilon", "the same LIP level", "the same LDP level"]
    plan = rows["this plan"]
    assert (plan.error, plan.lip, plan.ldp, plan.people) == pytest.approx((3.18, 1, 2, 1), abs=5e-3)
    same = rows["the same epsilon"]
    assert (same.error, same.ldp) == pytest.approx((8.18, 1), abs=5e-3)
    assert same.people == pytest.approx(same.error / plan.error)
    same = rows["the same LDP level"]
    assert (same.error, same.lip, same.ldp) == pytest.approx((1.87, 1.72, 2), abs=5e-3)
    same = rows["the same LIP level"]
    assert plan.lip - 1e-3 <= same.lip <= plan.lip and 1 < same.ldp < 2
    assert rows["the same LDP level"].error < same.error < rows["the same epsilon"].error
    assert len(found.sentences) == 3 and all(sentence in str(found) for sentence in found.sentences)
    assert found.record()[1]["equal"] == "the same epsilon"
    frame = found.to_frame("pyarrow")
    assert frame.column_names == ["equal", "lip", "ldp", "error", "people"] and len(frame) == 4
    assert "the same LDP level" in found._repr_html_()


def test_guesses_have_no_number_of_people_and_secrets_their_own_level() -> None:
    guess = pv.compare_with_ldp(pv.design(PRIOR, 1.0, pv.Guess()))
    assert all(math.isnan(row.people) for row in guess.rows[1:]) and "the error is" in guess.sentences[0]
    secret = pv.Secret([[0.7, 0.2, 0.05, 0.05], [0.3, 0.4, 0.25, 0.05]])
    plan = pv.design(PRIOR, 0.1, pv.Histogram(), secret=secret)
    rival = same_lip_plan(plan)
    assert rival is not None
    assert pv.leakage(rival.channel, PRIOR, secret).lip <= plan.certificate.lip + 1e-9
    if math.isinf(plan.certificate.ldp):
        assert same_ldp_plan(plan) is None


def test_a_plan_for_ldp_is_not_compared_with_its_own_promise() -> None:
    comparison = pv.compare_with_ldp(pv.design(PRIOR, 1.0, pv.Distribution(), notion=pv.LDP()))
    assert {f"{row.people:.3g}" for row in comparison.rows} == {"1"}
    assert len(comparison.sentences) == 1 and "times as many" not in comparison.sentences[0]


def test_ldp_that_reveals_less_than_the_plan_is_not_said_to_reveal_more() -> None:
    """Unary encoding is far from the best: subsets with its LDP level have a smaller LIP level and a smaller error."""
    found = pv.compare_with_ldp(pv.design(pv.Prior.zipf(12), 2.0, pv.Distribution(), method="unary"))
    plan, *others = found.rows
    same = next(row for row in others if row.equal == "the same LDP level")
    assert same.lip < plan.lip
    assert f"learn less (LIP {same.lip:.3g} instead of {plan.lip:.3g})" in found.sentences[2]
    assert "learn more" not in " ".join(found.sentences)


def test_a_query_about_each_person_has_no_number_of_people() -> None:
    """More people do not make what is learnt about each of them more precise."""
    squares = pv.Convex(lambda p: (p**2).sum(axis=1))
    found = pv.compare_with_ldp(pv.design(PRIOR, 1.0, squares))
    assert len(found.rows) > 1 and all(math.isnan(row.people) for row in found.rows[1:])


def test_the_same_lip_level_of_a_secret_is_reached_or_left_out() -> None:
    """The LDP level may be many times the LIP level of the secret."""
    secret = pv.Secret([[0.7, 0.2, 0.05, 0.05], [0.3, 0.4, 0.25, 0.05]])
    plan = pv.design(PRIOR, 0.1, pv.Histogram(), secret=secret)
    rival = same_lip_plan(plan)
    assert rival is not None and rival.certificate.ldp > 4 * plan.certificate.lip
    assert pv.leakage(rival.channel, PRIOR, secret).lip == pytest.approx(plan.certificate.lip, rel=0.01)
    for epsilon in (0.5, 1.0):
        found = pv.compare_with_ldp(pv.design(PRIOR, epsilon, pv.Histogram(), secret=secret))
        rows = {row.equal: row for row in found.rows}
        same = rows.get("the same LIP level", rows["this plan"])
        assert same.lip == pytest.approx(rows["this plan"].lip, rel=0.01)


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Distribution()], ids=lambda query: query.kind)
def test_few_designs_reach_the_same_lip_level(query: pv.Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them may take seconds."""
    epsilons: list[float] = []

    def count(plan: pv.Plan, epsilon: float, seconds: float) -> pv.Plan | None:
        epsilons.append(epsilon)
        return ldp_plan(plan, epsilon, seconds)

    monkeypatch.setattr(trade_offs, "ldp_plan", count)
    plan = pv.design(pv.Prior.zipf(7), 1.0, query)
    rival = same_lip_plan(plan)
    assert rival is not None and 0.999 < rival.certificate.lip / plan.certificate.lip <= 1
    assert len(epsilons) <= 9


@pytest.mark.parametrize("budget", [pv.Budget(math.inf, 1.0), pv.Budget(1.0, math.inf)])
def test_one_sided_budgets_are_compared_where_their_levels_are_finite(budget: pv.Budget) -> None:
    plan = pv.design(PRIOR, budget, pv.Histogram())
    equal = {row.equal for row in pv.compare_with_ldp(plan).rows}
    assert ("the same LIP level" in equal) == math.isfinite(plan.certificate.lip)
    assert ("the same LDP level" in equal) == math.isfinite(plan.certificate.ldp)


def test_queries_over_budgets() -> None:
    found = pv.compare(PRIOR, {"shares": pv.Distribution(), "counts": pv.Histogram()}, [2.0, 1.0])
    assert [(row.query, row.epsilon) for row in found.rows] == [
        ("shares", 2.0), ("shares", 1.0), ("counts", 2.0), ("counts", 1.0),
    ]  # fmt: skip
    for row, plan in zip(found.rows, found.plans, strict=True):
        assert row.error == plan.expected_mse and row.lower_bound == plan.lower_bound
        assert row.lip <= row.epsilon and row.error < row.ldp_error
    assert found.to_frame("pyarrow").column("error").to_pylist() == [row.error for row in found.rows]
    assert [axes.get_title() for axes in found.plot().axes] == ["shares", "counts"]
    assert str(found).splitlines()[0].startswith("query") and found.record()[0]["query"] == "shares"
    told: list[float] = []
    alone = pv.compare(PRIOR, pv.Histogram(), [1.0], ldp=False, progress=lambda share, _: told.append(share))
    assert alone.rows[0].query == "Histogram" and math.isnan(alone.rows[0].ldp_error) and told == [0.0]
    twice = pv.compare(PRIOR, [pv.Sum([0, 1, 2, 3]), pv.Sum([3, 2, 1, 0])], [1.0], ldp=False)
    assert [row.query for row in twice.rows] == ["Sum 1", "Sum 2"]


def test_a_sharper_prior_can_make_an_average_worse_and_that_is_said() -> None:
    """Overtime from 0 to 80 hours."""
    skewed = design_mean(0, 80, 1.0, lambda hours: math.exp(-hours / 20))
    remark = flat_prior_remark(skewed)
    assert remark is not None and "±0.91 instead of ±1.2" in remark and "another promise" in remark
    level = design_mean(0, 80, 1.0).certificate.ldp
    assert ("LDP" in remark) == (skewed.certificate.ldp < level)
    flat = design_mean(0, 80, 1.0, lambda hours: 1.0)
    narrow = design_mean(0, 80, 1.0, lambda hours: math.exp(-(((hours - 40) / 4) ** 2)))
    for plan in (flat, narrow, design_mean(0, 80, 1.0), pv.design(PRIOR, 1.0, pv.Distribution())):
        assert flat_prior_remark(plan) is None

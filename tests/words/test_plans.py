"""The words of plans: the facts that every command shows, and what they say of each kind of plan."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import PlanError
from priorveil.formatting import level_at_most
from priorveil.notes import Note
from priorveil.plans.document import content_id
from priorveil.reading.tally_reading import ASSUMES
from priorveil.words.plans import ldp_fact, plan_facts, reading_title
from refusals import raises

PRIOR = pv.Prior([0.5, 0.3, 0.2])


def test_a_summary_names_what_is_asked_for_and_what_leans_on_the_prior() -> None:
    pairs = {(a, b): 0.25 for a in ("p", "q") for b in ("x", "y")}
    joint, grid = pv.Prior.joint(pairs, names=("age", "wage")), pv.Prior.grid([0, 5e5, 2e6], [0.3, 0.4, 0.3])
    for prior, query, asked in (
        (
            joint,
            pv.Linear.margins(joint, ["wage", ("age", "wage")]),
            "margins (wage, age x wage) of 4 values",
        ),
        (joint, pv.Linear.ranges(joint), "ranges of 4 values"),
        (joint, pv.Linear.cumulative(joint, unbiased=True), "cumulative shares of 4 values"),
        (grid, pv.Sum(grid.labels, unbiased=True), "mean of a number, 3 points"),
        (grid, pv.Sum([0, 1, 0]), "sum of a number, 3 points"),
        (grid, pv.Histogram(), "histogram of a number, 3 points"),
    ):
        plan = pv.design(prior, 2.0, query)
        facts = dict(plan_facts(plan))
        assert facts["asked"].startswith(f"{asked}, LIP at")
        assert repr(plan).startswith(f"Plan({asked.partition(' of ')[0]} on")
        assert ("even if the prior is wrong" in str(plan)) <= query.unbiased
        assert plan.identifiable or "no" in facts["identifies the distribution"]
        assert "e+" not in str(plan)


@pytest.mark.parametrize(
    ("query", "without_reports", "identifies"),
    [
        (
            pv.Distribution(),
            "infinite: without reports there is no unbiased estimate",
            "yes: reports alone determine it, even if the prior is wrong",
        ),
        (
            pv.Sum([0, 1, 1]),
            "0.25",
            "yes, by method unbiased; the usual estimate leans on the prior",
        ),
    ],
)
def test_facts(query: pv.Query, without_reports: str, identifies: str) -> None:
    plan = pv.design(PRIOR, 1.0, query)
    facts = dict(plan_facts(plan))
    assert facts["error without reports"] == without_reports
    assert facts["identifies the distribution"] == identifies
    assert facts["precision"] == str(plan.precision)
    assert facts["efficiency"].endswith(" % of the possible gain")


def test_identification_that_is_not_checked_is_called_assumed() -> None:
    for values, assumed in ((128, False), (129, True)):
        plan = pv.design(pv.Prior.zipf(values), 1.0, pv.Distribution(), method="arc")
        text = dict(plan_facts(plan))["identifies the distribution"]
        assert plan.identifiable and text.startswith("yes") and ("assumed" in text) == assumed


def test_an_ldp_mechanism_is_compared_by_its_share_of_the_gain() -> None:
    plan = pv.design(PRIOR, 1.0, pv.Histogram())
    rival = pv.design(PRIOR, 1.0, pv.Histogram(), notion=pv.LDP())
    name, text = ldp_fact(plan, rival)
    assert name == "the best LDP at epsilon 1"
    assert text.startswith("expected error ") and f"% of the possible gain ({rival.method})" in text
    assert ldp_fact(plan, replace(rival, lower_bound=rival.lower_bound / 2))[0] == "LDP at epsilon 1"


def test_an_assumed_prior_puts_ldp_first_wherever_a_level_is_named() -> None:
    assumed, known = (
        pv.design(pv.Prior.grid([0, 20, 80], assumed=a), 1.0, pv.Sum([0, 20, 80])) for a in (True, False)
    )
    assert assumed.certificate == known.certificate and assumed.id != known.id
    right = "only if the assumed prior is right"
    assert f"LDP {assumed.certificate.ldp:.4g}, LIP 1 {right}, error" in repr(assumed)
    assert "LIP 1, LDP" in repr(known)
    names = [name for name, _ in plan_facts(assumed)]
    assert names.index("LDP, for any prior") < names.index("LIP, certified")
    facts = dict(plan_facts(assumed))
    assert facts["prior"] == ("assumed, not known: all numbers from 0 to 80 are taken to be equally common")
    assert facts["LIP, certified"].endswith(right) and "under an assumed prior" in facts["asked"]
    assert "assumed" not in str(known)
    guess = pv.design(pv.Prior([0.2, 0.8], assumed=True), 1.0, pv.Histogram())
    assert dict(plan_facts(guess))["prior"] == "assumed, not known"
    (remark,) = guess.estimate(guess.tally([0])).remarks
    assert f"LDP at {level_at_most(guess.certificate.ldp)} holds for everybody, LIP at 1 {right}" in str(
        remark
    )


@pytest.mark.parametrize("query", [pv.Histogram(), pv.Distribution()], ids=lambda query: query.kind)
def test_a_remark_says_which_prior_of_a_set_is_used_unless_one_is_given(query: pv.Linear) -> None:
    """Reports need not fit the prior of the set that they are read at."""
    first, second = [0.0328, 0.9672], [0.1958, 0.8042]
    plan = pv.design(pv.PriorSet([first, second]), 3.0, query)
    people = (first, [66, 1_934]) if query == pv.Histogram() else (second, [392, 1_608])
    right, counts = people
    reports = plan.privatize([0] * counts[0] + [1] * counts[1], np.random.default_rng(0), codes=True)
    estimate = plan.estimate(plan.tally(reports))
    if query == pv.Histogram():
        assert estimate.prior_check > 0.01 and estimate.warning is None
        assert estimate.remarks[-1] == Note("leansOnSet") and estimate.assumes == (ASSUMES["set"],)
    else:
        assert estimate.prior_check < 1e-4
        assert estimate.remarks[-1] == Note("checkOfOneOfSet")
    given = plan.estimate(plan.tally(reports), prior=right)
    assert given.remarks == () and given.prior_check > 0.01 and given.bias is None


def test_an_assumed_prior_that_is_not_checked_has_no_remark_on_its_check() -> None:
    plan = pv.design(pv.Prior([0.2, 0.8], assumed=True), 1.0, pv.Distribution())
    estimate = plan.estimate(plan.tally([0, 1] * 50))
    assert Note("noPrior") in estimate.notes


def test_a_plan_file_says_that_its_prior_is_assumed() -> None:
    for prior in (pv.Prior.uniform(["a", "b"]), pv.PriorSet.ball(pv.Prior.uniform(["a", "b"]), 0.1)):
        plan = pv.design(prior, 1.0, pv.Histogram())
        loaded = pv.Plan.from_json(plan.to_json())
        assert loaded.prior.assumed and loaded == plan and repr(loaded) == repr(plan)
        for wrong, field in (("false", "id"), ("1", "prior"), ('"yes"', "prior")):  # one plan has one text
            changed = json.loads(plan.to_json().replace('"assumed": true', f'"assumed": {wrong}'))
            with raises(PlanError, field=field):
                pv.Plan.from_json(json.dumps(changed | {"id": content_id(changed)}))


def test_a_reading_names_the_query_the_method_and_the_budgets() -> None:
    plans = [pv.design(PRIOR, epsilon, pv.Histogram()) for epsilon in (1.0, 2.0)]
    estimate = plans[0].estimate(plans[0].tally([0]))
    assert reading_title(plans[:1], estimate) == "Histogram, mmse reading of 1 report, LIP at epsilon 1"
    assert reading_title(plans, estimate).endswith("LIP at epsilon 1 to LIP at epsilon 2")


def test_a_plan_that_nearly_reveals_the_value_says_so() -> None:
    secret = pv.Secret.from_joint([[0.5, 0.0, 0.0], [0.0, 0.3, 0.2]])
    for epsilon in (1.0, 2.9, pv.Budget(1.0, 100.0), pv.Budget(math.inf, 1.0)):
        assert "weak protection" not in dict(plan_facts(pv.design(PRIOR, epsilon, pv.Histogram())))
    assert "weak protection" in dict(plan_facts(pv.design(PRIOR, 3.0, pv.Histogram())))
    far = pv.PairwiseLDP(0.1 * np.ones((3, 3)))  # epsilon is the level of a pair at distance one
    assert "weak protection" not in dict(plan_facts(pv.design(PRIOR, 5.0, pv.Histogram(), notion=far)))
    names = [name for name, _ in plan_facts(pv.design(PRIOR, 100.0, pv.Histogram()))]
    assert names.index("weak protection") == names.index("LDP, for any prior") + 1
    for target, plan in {
        "value": pv.design(PRIOR, 5.0, pv.Histogram(), notion=pv.LDP()),
        "secret": pv.design(PRIOR, 3.5, pv.Histogram(), secret),
    }.items():
        assert f"a likely {target};" in dict(plan_facts(plan))["weak protection"]

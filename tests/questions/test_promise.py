"""What a whole submission tells, by full enumeration: never more than the campaign promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from priorveil import LDP, Channel, Distribution, Plan, Prior, design, leakage
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.questions.campaign import Campaign
from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.question import NOT_ASKED

YES_NO = {"yes": "Yes", "no": "No"}
WORKS = SingleChoice("works", "Do you work?", options=YES_NO)
PAID = SingleChoice("paid", "Is your overtime paid?", options=YES_NO, asked_if={"works": ("yes",)})
DRIVES = SingleChoice("drives", "Do you drive?", options=YES_NO)
ILLS = MultipleChoice("ills", "Which?", {"a": "A", "b": "B"})

Law = Sequence[tuple[Mapping[str, Any], float]]  # answers with their probabilities


def plan(shares: Mapping[Any, float], epsilon: float = 0.5, **more: Any) -> Plan:
    return design(Prior(dict(shares)), epsilon, Distribution(), **more)


def told(campaign: Campaign, law: Law) -> tuple[float, float]:
    """The levels of LIP and LDP of a whole submission about all answers together, under a joint law of them."""
    form = campaign.form_for(None)
    rows = []
    for answers, _ in law:
        levels, row = campaign.attribute_values(answers), np.ones(1)
        for slot in form.slots:
            reports = [
                part.plan.channel.matrix[part.plan.labels.index(_value(part, levels))]
                * share
                / SHARE_DENOMINATOR
                for part, share in zip(slot.parts, slot.shares, strict=True)
            ]
            row = np.outer(row, np.concatenate(reports)).ravel()
        rows.append(row)
    matrix, prior = np.array(rows), Prior([p for _, p in law])
    levels = leakage(Channel(matrix[:, matrix.any(axis=0)]), prior)
    return levels.lip, levels.ldp


def _value(part: Part, levels: Mapping[str, Any]) -> Any:
    values = tuple(levels[name] for name in part.attributes)
    return values if part.plan.domain.names else values[0]


def always(*parts: tuple[str, Plan]) -> Form:
    return Form(tuple(Slot((Part((name,), its_plan),)) for name, its_plan in parts))


def check(campaign: Campaign, law: Law, tight: float = 0.0) -> None:
    """No more is told than promised, and at least the share `tight` of it."""
    promise = next(iter(campaign.promise.values()))
    lip, ldp = told(campaign, law)
    assert lip <= promise.lip * (1 + 1e-9) and ldp <= promise.ldp * (1 + 1e-9)
    assert lip >= tight * promise.lip


@pytest.mark.parametrize("together", np.linspace(0.0, 0.3, 7))
def test_dependent_answers(together: float) -> None:
    """Both questions have 30 % yes; how many say yes to both is not known."""
    campaign = Campaign(
        "Habits",
        [WORKS, DRIVES],
        {"all": always(("works", plan({"yes": 0.3, "no": 0.7})), ("drives", plan({"yes": 0.3, "no": 0.7})))},
    )
    shares = {
        ("yes", "yes"): together,
        ("yes", "no"): 0.3 - together,
        ("no", "yes"): 0.3 - together,
        ("no", "no"): 0.4 + together,
    }
    law = [({"works": a, "drives": b}, p) for (a, b), p in shares.items() if p > 1e-12]
    check(campaign, law, tight=0.6 if together == 0.3 else 0.0)  # one tells the other


def overtime(works: float, paid: float, not_asked: float) -> tuple[Campaign, Law]:
    """A gate that tells 0.3 and a follow-up that tells 1.5, and the law of the answers."""
    shares = {"yes": (1 - not_asked) * paid, "no": (1 - not_asked) * (1 - paid), NOT_ASKED: not_asked}
    form = always(("works", plan({"yes": works, "no": 1 - works}, 0.3)), ("paid", plan(shares, 1.5)))
    law = [
        ({"works": "yes", "paid": "yes"}, works * paid),
        ({"works": "yes", "paid": "no"}, works * (1 - paid)),
        ({"works": "no"}, 1 - works),
    ]
    return Campaign("Overtime", [WORKS, PAID], {"all": form}), law


@pytest.mark.parametrize("paid", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("works", [0.01, 0.6, 0.99])
def test_a_follow_up_tells_about_its_gate(works: float, paid: float) -> None:
    check(*overtime(works, paid, not_asked=1 - works))


@pytest.mark.parametrize(("works", "not_asked"), [(0.01, 0.01), (0.01, 0.7), (0.6, 0.01), (0.99, 0.7)])
def test_a_follow_up_whose_prior_contradicts_its_gate(works: float, not_asked: float) -> None:
    check(*overtime(works, 0.5, not_asked))


@pytest.mark.parametrize("works", [0.01, 0.6, 0.99])
def test_one_report_about_a_gate_or_its_follow_up(works: float) -> None:
    """It has the largest level of LIP, for both answers."""
    campaign, law = overtime(works, 0.3, not_asked=1 - works)
    drawn = Form((Slot.by_weights(campaign.form_for(None).parts, [1.0, 2.0]),))
    campaign = Campaign("Overtime", campaign.questions, {"all": drawn})
    assert campaign.promise["all"].lip == pytest.approx(1.5)
    check(campaign, law, tight=0.999)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_drawn_question_beside_one_that_everybody_answers(share: float) -> None:
    paid = {"yes": 0.3, "no": 0.3, NOT_ASKED: 0.4}
    drawn = (Part(("works",), plan({"yes": 0.6, "no": 0.4})), Part(("paid",), plan(paid)))
    everybody = Slot((Part(("drives",), plan({"yes": 0.6, "no": 0.4})),))
    form = Form((everybody, Slot.by_weights(drawn, [share, 1 - share])))
    campaign = Campaign("Overtime", [WORKS, PAID, DRIVES], {"all": form})
    law = [  # who works drives
        ({"works": "yes", "paid": "yes", "drives": "yes"}, 0.3),
        ({"works": "yes", "paid": "no", "drives": "yes"}, 0.3),
        ({"works": "no", "drives": "no"}, 0.4),
    ]
    check(campaign, law)


@pytest.mark.parametrize("both", [0.0, 0.05, 0.1])
def test_options_of_which_only_shares_are_known(both: float) -> None:
    """One report for each option, of which 10 % tick each; perhaps always the same people."""
    options = [("ills/a", plan({"yes": 0.1, "no": 0.9})), ("ills/b", plan({"yes": 0.1, "no": 0.9}))]
    campaign = Campaign("Ills", [ILLS], {"all": always(*options)})
    law = [
        ({"ills": ["a", "b"]}, both),
        ({"ills": ["a"]}, 0.1 - both),
        ({"ills": ["b"]}, 0.1 - both),
        ({"ills": []}, 0.8 + both),
    ]
    check(campaign, [(answers, p) for answers, p in law if p > 1e-12])


def test_a_set_of_options_under_ldp() -> None:
    """Without any prior: the promise holds for every law of the answers."""
    sets = list(product(("yes", "no"), repeat=2))
    prior = Prior.joint({ticked: 0.25 for ticked in sets}, names=("ills/a", "ills/b"))
    whole = design(prior, 1.0, Distribution(), notion=LDP())
    campaign = Campaign("Ills", [ILLS], {"all": Form.of(("ills/a", "ills/b"), whole)})
    rng = np.random.default_rng(3)
    answers = [{"ills": [c for c, t in zip("ab", ticked, strict=True) if t == "yes"]} for ticked in sets]
    for _ in range(5):
        check_ldp = told(campaign, list(zip(answers, rng.dirichlet(np.ones(4)), strict=True)))
        assert max(check_ldp) <= campaign.promise["all"].ldp * (1 + 1e-9)

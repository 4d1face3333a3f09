"""What a whole submission tells: all answers and all submissions written out, against what forms and ledgers state."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from checks import at_most
from joint_laws import attribute_level, levels, sides, without_joint_law, worst_level
from priorveil.errors import BudgetExceeded, Infeasible, InvalidInput
from priorveil.plans.composition import measure
from priorveil.plans.form import Form, Part, Slot
from priorveil.questions.campaign import Campaign
from priorveil.questions.choices import SingleChoice
from refusals import raises


def plan_of(prior: pv.Prior, epsilon: float, query: object = None, **options: object) -> pv.Plan:
    return pv.design(prior, epsilon, query or pv.Distribution(), **options)


def split(plans: dict[str, pv.Plan]) -> Form:
    return Form(tuple(Slot((Part((name,), plan),)) for name, plan in plans.items()))


def drawn(plans: dict[str, pv.Plan]) -> Form:
    return Form((Slot.by_weights([Part((name,), plan) for name, plan in plans.items()], [1.0] * len(plans)),))


def random_plans(seed: int, count: int) -> tuple[dict[str, pv.Plan], np.random.Generator]:
    rng = np.random.default_rng(seed)
    queries = [pv.Distribution(), pv.Histogram(unbiased=True)]
    plans = {}
    for name in "abc"[:count]:
        size = int(rng.integers(2, 4))
        prior = pv.Prior(rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, [f"{name}{i}" for i in range(size)])
        plans[name] = plan_of(prior, float(rng.choice([0.3, 0.7, 1.0, 1.5])), queries[int(rng.integers(2))])
    return plans, rng


# -- the rule ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 3))
@settings(max_examples=25)
def test_no_joint_law_with_these_margins_tells_more_than_is_stated(seed: int, count: int) -> None:
    """One report has the largest level of LIP, several have the sum of LDP levels, in forms and in ledgers."""
    plans, _ = random_plans(seed, count)
    first, *others = plans
    mixed = Form((*split({first: plans[first]}).slots, *drawn({n: plans[n] for n in others}).slots))
    ldp = {name: plan.certificate.ldp for name, plan in plans.items()}
    stated = {
        drawn(plans): max(plan.certificate.lip for plan in plans.values()),
        split(plans): math.fsum(ldp.values()),
        mixed: ldp[first] + max(ldp[name] for name in others),
    }
    for form, level in stated.items():
        assert form.levels().lip == level
        assert worst_level(form, plans) <= level + 1e-9  # sums of floats
        assert pv.Ledger({name: plan.prior for name, plan in plans.items()}).spend(form) == form.levels()
    ledger = pv.Ledger({name: plan.prior for name, plan in plans.items()})
    for name, plan in plans.items():
        assert ledger.would(plan, about=name) == ledger.spend(plan, about=name)
    assert ledger.level == split(plans).levels()


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_priors_that_agree_in_pairs_may_have_no_joint_law(epsilon: float) -> None:
    """2.04 and 6.04 are told. Nothing but LDP levels adds up then, whoever states it."""
    form, law = without_joint_law(epsilon)
    real, ldp = max(levels(form, "abc", law)), math.fsum(slot.levels().ldp for slot in form.slots)
    assert 2 * epsilon < real < ldp < 2 * epsilon + 0.1
    questions = [SingleChoice(name, f"{name}?", options={"yes": "Yes", "no": "No"}) for name in "abc"]
    campaign = Campaign("Tables", questions, {"everyone": form})
    ledger = pv.Ledger({name: pv.Prior({"yes": 0.5, "no": 0.5}) for name in "abc"})
    for stated in (form.levels(), campaign.promise["everyone"], ledger.spend(form)):
        assert stated.lip == stated.ldp == ldp
    exact = pv.Ledger(pv.Prior.joint(law, tuple("abc"))).spend(form)
    assert exact.lip < exact.ldp and exact.lip == pytest.approx(real, abs=1e-6)


def test_lip_levels_do_not_add_up() -> None:
    """Two answers that always coincide, reported at 1 each, tell 2.735 together."""
    rare = 1 / (1 + math.e)
    form = split({name: plan_of(pv.Prior({"yes": rare, "no": 1 - rare}), 1.0) for name in "ab"})
    law = {("yes", "yes"): rare, ("no", "no"): 1 - rare}
    found = max(levels(form, "ab", law))
    assert found == pytest.approx(2.735, abs=1e-3) and found < form.levels().lip
    assert attribute_level(form, "ab", law, "a") == pytest.approx(found)  # and so much about a single answer


def test_levels_of_assumed_priors_are_reached_where_the_answer_is_rare() -> None:
    prior = pv.Prior.uniform(["yes", "no"])
    form = split(
        {name: plan_of(prior, epsilon, notion=pv.LDP()) for name, epsilon in (("a", 1.0), ("b", 0.5))}
    )
    rare = 1e-7
    found = max(levels(form, "ab", {("yes", "yes"): rare, ("no", "no"): 1 - rare}))
    assert form.levels().lip == form.levels().ldp == pytest.approx(1.5, abs=1e-9)
    assert 1.5 - 1e-5 < found <= form.levels().lip


def test_a_follow_up_tells_about_its_gate() -> None:
    """Reports at 1 each tell 2.66 about the gate: what one report tells is not the promise."""
    gate = plan_of(pv.Prior({"no": 0.7, "yes": 0.3}), 1.0)
    follow = plan_of(pv.Prior({"not asked": 0.7, "few": 0.15, "many": 0.15}), 1.0)
    form = split({"gate": gate, "follow": follow})
    names = ("gate", "follow")
    law = {("no", "not asked"): 0.7, ("yes", "few"): 0.15, ("yes", "many"): 0.15}
    found = attribute_level(form, names, law, "gate")
    assert found == pytest.approx(2.6587, abs=1e-3)
    assert found <= max(levels(form, names, law)) <= form.levels().lip
    ledger = pv.Ledger(pv.Prior.joint(law, names, impossible="leave out"))
    ledger.spend(gate, about="gate")
    assert ledger.spend(follow, about="follow").lip == pytest.approx(max(levels(form, names, law)), abs=1e-6)
    drawn_form = drawn({"gate": gate, "follow": follow})
    assert at_most(max(levels(drawn_form, names, law)), drawn_form.levels().lip)
    assert drawn_form.levels().lip <= 1


def test_several_choices_of_which_only_the_shares_are_known() -> None:
    """A product prior says too little: certified at 1, it leaks 1.51 if the options always coincide."""
    option = pv.Prior({"yes": 0.1, "no": 0.9})
    sets = list(itertools.product(("yes", "no"), repeat=3))
    product = {s: math.prod(0.1 if o == "yes" else 0.9 for o in s) for s in sets}
    together = {s: 0.1 if set(s) == {"yes"} else 0.9 if set(s) == {"no"} else 0.0 for s in sets}
    whole = plan_of(pv.Prior.joint(product, tuple("abc")), 1.0, pv.Histogram())
    one = Form.of(tuple("abc"), whole)
    found = max(levels(one, "abc", together))
    assert found == pytest.approx(1.506, abs=1e-3) and found > one.levels().lip
    assumed = Form.of(tuple("abc"), plan_of(pv.Prior.joint(product, tuple("abc"), assumed=True), 1.0))
    assert max(levels(assumed, "abc", together)) <= assumed.levels().lip == assumed.levels().ldp
    plans = {name: plan_of(option, 0.2) for name in "abc"}
    form = split(plans)
    assert max(levels(form, "abc", together)) <= worst_level(form, plans) <= form.levels().lip


# -- the joint channel ---------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 3))
@settings(max_examples=15)
def test_a_ledger_with_a_joint_prior_is_exact(seed: int, count: int) -> None:
    """Whether the plans have the margins of the joint prior or not."""
    plans, rng = random_plans(seed, count)
    names, cells = tuple(plans), list(itertools.product(*(plan.labels for plan in plans.values())))
    independent = [
        math.prod(p) for p in itertools.product(*(p.reference.probabilities for p in plans.values()))
    ]
    first, *others = plans
    mixed = Form((*split({first: plans[first]}).slots, *drawn({n: plans[n] for n in others}).slots))
    for shares in (independent, rng.dirichlet(np.ones(len(cells))) * 0.9 + 0.1 / len(cells)):
        law = dict(zip(cells, map(float, shares), strict=True))
        joint = pv.Prior.joint(law, names)
        for form in (split(plans), drawn(plans), mixed):
            lower, upper = levels(form, names, law)
            spent = pv.Ledger(joint).spend(form)
            assert lower - 2e-9 <= spent.lip_lower <= lower + 1e-6  # priors that differ by 1e-9 are the same
            assert upper - 2e-9 <= spent.lip_upper <= upper + 1e-6
        ledger = pv.Ledger(joint)
        for name, plan in plans.items():
            ledger.spend(plan, about=name)
        assert ledger.level.lip == pytest.approx(pv.Ledger(joint).spend(split(plans)).lip, abs=1e-6)


def test_a_plan_that_just_meets_the_limit_is_allowed_under_a_joint_prior() -> None:
    """Its prior is the margin of the ledger's, up to the rounding of sums: its certificate counts."""
    law = {
        (a, b): p * q for a, p in (("y", 0.3), ("n", 0.7)) for b, q in (("u", 0.1), ("v", 0.2), ("w", 0.7))
    }
    joint, plan = pv.Prior.joint(law, ("a", "b")), plan_of(pv.Prior({"n": 0.7, "y": 0.3}), 1.0)
    assert pv.Ledger(joint, limit=1.0).spend(plan, about="a").lip == plan.certificate.lip


def test_a_ledger_of_a_joint_prior_takes_plans_about_some_attributes_in_any_order() -> None:
    law = {("y", "u"): 0.1, ("y", "v"): 0.3, ("n", "u"): 0.4, ("n", "v"): 0.2}
    joint = pv.Prior.joint(law, ("smokes", "town"))
    turned = pv.Prior.joint({(t, s): p for (s, t), p in law.items()}, ("town", "smokes"))
    smokes = plan_of(pv.Prior({"n": 0.6, "y": 0.4}), 0.5)
    both, other = plan_of(joint, 0.7), plan_of(turned, 0.6)
    ledger = pv.Ledger(joint)
    assert ledger.spend(smokes, about=["smokes"]) == pv.Ledger(smokes.prior).spend(smokes)
    ledger.spend(both)
    ledger.spend(other)
    rows = []
    for s, t in joint.labels:
        laws = (
            smokes.channel.matrix[smokes.labels.index(s)],
            both.channel.matrix[both.labels.index((s, t))],
            other.channel.matrix[other.labels.index((t, s))],
        )
        rows.append(np.einsum("i,j,k->ijk", *laws).ravel())
    assert ledger.level.lip == pytest.approx(max(sides(np.array(rows), joint.probabilities)), abs=1e-6)
    assert [entry.plan for entry in ledger.spent] == [smokes.id, both.id, other.id]
    assert ledger.spend(other, replay=True) == ledger.level


def test_ldp_levels_of_numbers_that_are_rounded_add_up() -> None:
    hours = pv.Prior.grid([0, 20, 40], [0.3, 0.3, 0.4])
    joint = pv.Prior.joint(
        {(s, h): p * q for s, p in (("y", 0.4), ("n", 0.6)) for h, q in ((0, 0.3), (20, 0.3), (40, 0.4))},
        ("smokes", "hours"), grids={"hours": [0, 20, 40]},
    )  # fmt: skip
    smokes = plan_of(pv.Prior({"y": 0.4, "n": 0.6}), 0.5)
    number = plan_of(hours, 0.5, pv.Sum([0, 20, 40], unbiased=True))
    form = split({"smokes": smokes, "hours": number})
    assert pv.Ledger(joint).spend(form) == form.levels()


# -- what a ledger refuses ------------------------------------------------------------------------------------------


def test_a_limit_counts_all_attributes_together() -> None:
    prior = pv.Prior([0.5, 0.5])
    plan = plan_of(prior, 0.5)
    ledger = pv.Ledger({"a": prior, "b": prior}, limit=1.2)
    ledger.spend(plan, about="a")
    with pytest.raises(BudgetExceeded):
        ledger.spend(plan, about="b")
    assert len(ledger.spent) == 1 and ledger.level.lip <= 0.5


def test_what_the_prior_of_a_ledger_does_not_cover_counts_by_ldp() -> None:
    """A table beside the priors of single questions, another question, and a question drawn a second time."""
    prior = pv.Prior({"yes": 0.5, "no": 0.5})
    same = {(x, y): 0.45 if x == y else 0.05 for x in ("yes", "no") for y in ("yes", "no")}
    table, single = plan_of(pv.Prior.joint(same, ("a", "b")), 0.4), plan_of(prior, 0.4)
    ldp, one = table.certificate.ldp, single.certificate.ldp
    assert pv.Ledger({"a": prior, "b": prior}).spend(table) == pv.Ledger(prior).spend(table)
    assert pv.Ledger(prior).spend(table).lip == ldp > table.certificate.lip
    assert pv.Ledger({"a": prior}).spend(single, about="c").lip == one
    for ledger in (pv.Ledger(prior), pv.Ledger({"a": prior})):
        assert ledger.spend(single, about="a").lip == single.certificate.lip
        assert ledger.spend(single, about="c").lip == 2 * one
    form = drawn({"a": single, "b": single})
    ledger = pv.Ledger({"a": prior, "b": prior})
    assert ledger.spend(form).lip == single.certificate.lip
    assert ledger.spend(form).lip == 2 * one
    assert [entry.ldp for entry in ledger.spent] == [one, one]


def test_bad_input() -> None:
    prior, joint = (
        pv.Prior({"y": 0.5, "n": 0.5}),
        pv.Prior.joint({("y", 0): 0.5, ("n", 1): 0.5}, ("a", "b"), impossible="leave out"),
    )
    plan, pair = plan_of(prior, 1.0), plan_of(joint, 1.0)
    secret = plan_of(prior, 1.0, secret=pv.Secret([[0.6, 0.4], [0.4, 0.6]]))
    form = Form.of("a", plan)
    for argument, call in (
        ("about", lambda: pv.Ledger({"a": prior, "b": prior}).spend(plan)),
        ("about", lambda: pv.Ledger(joint).spend(pair, about="a")),
        ("about", lambda: pv.Ledger(joint).spend(form, about="a")),
        ("about", lambda: pv.Ledger(joint).spend(plan)),
        ("plan", lambda: pv.Ledger(joint).would("plan")),
        ("plan", lambda: pv.Ledger(joint).spend(plan, about="b")),
        ("plan", lambda: pv.Ledger(prior).spend(plan_of(pv.Prior({"y": 0.5, "n": 0.3, "x": 0.2}), 1.0))),
        ("replay", lambda: pv.Ledger({"a": prior}).spend(plan, replay=True)),
        ("secret", lambda: pv.Ledger({"a": prior}, secret=secret.secret)),
    ):
        with raises(InvalidInput, argument=argument):
            call()
    assert pv.Ledger({"a": prior}).spend(plan) == pv.Ledger(prior).spend(plan) == pv.Ledger(prior).spend(form)
    assert pv.Ledger({"a": prior}).spend(secret).lip == secret.certificate.ldp
    latent = pv.Ledger(joint, secret=pv.Secret([[0.6, 0.4], [0.4, 0.6]]))
    latent.spend(plan, about="a")
    with pytest.raises(Infeasible):  # many reports: too large to measure
        for _ in range(30):
            latent.spend(plan, about="a")


def test_measured_levels_are_above_those_of_the_floats() -> None:
    """By more than the rounding of floats, also where a level is zero in floats."""
    prior = pv.Prior([0.3, 0.7])
    for rows in ([[0.75, 0.25], [0.25, 0.75]], [[1.0], [1.0]]):
        channel = pv.Channel(rows)
        found, floats = measure(channel, prior), pv.leakage(channel, prior)
        for level in ("lip_lower", "lip_upper", "ldp"):
            assert 1e-10 < getattr(found, level) - getattr(floats, level) < 1e-8, level

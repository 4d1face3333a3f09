"""What a whole submission tells: all answers and all submissions written out, against what forms and ledgers state."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import priorveil as pv
from checks import at_most
from joint_laws import (
    agreeing_margins,
    attribute_level,
    joint_laws,
    levels,
    margin_rows,
    sides,
    worst_level,
)
from priorveil.errors import BudgetExceeded, Infeasible, InvalidInput
from priorveil.plans.composition import cyclic
from priorveil.plans.form import Form, Part, Slot
from refusals import raises


def plan_of(prior: pv.Prior, epsilon: float, query: object = None, **options: object) -> pv.Plan:
    return pv.design(prior, epsilon, query or pv.Distribution(), **options)


def split(plans: dict[str, pv.Plan]) -> Form:
    return Form(tuple(Slot((Part((name,), plan),)) for name, plan in plans.items()))


def drawn(plans: dict[str, pv.Plan]) -> Form:
    return Form((Slot.drawn([Part((name,), plan) for name, plan in plans.items()], [1.0] * len(plans)),))


def random_plans(seed: int, count: int) -> tuple[dict[str, pv.Plan], np.random.Generator]:
    rng = np.random.default_rng(seed)
    queries = [pv.Distribution(), pv.Histogram(unbiased=True)]
    plans = {}
    for name in "abc"[:count]:
        size = int(rng.integers(2, 4))
        prior = pv.Prior(rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, [f"{name}{i}" for i in range(size)])
        plans[name] = plan_of(prior, float(rng.choice([0.3, 0.7, 1.0, 1.5])), queries[int(rng.integers(2))])
    return plans, rng


# -- the bound ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 3))
@settings(max_examples=25)
def test_no_joint_law_with_these_margins_tells_more_than_is_stated(seed: int, count: int) -> None:
    """A slot for each question, one question for each person, and both, beside the ledger of single priors."""
    plans, rng = random_plans(seed, count)
    first, *others = plans
    mixed = Form((*split({first: plans[first]}).slots, *drawn({n: plans[n] for n in others}).slots))
    for form in (split(plans), drawn(plans), mixed):
        stated = form.levels()
        assert worst_level(form, plans, rng, 12) <= stated.lip + 1e-9  # sums of floats
        ledger = pv.Ledger({name: plan.prior for name, plan in plans.items()})
        assert ledger.spend(form).lip == pytest.approx(stated.lip, abs=1e-12)
    ledger = pv.Ledger({name: plan.prior for name, plan in plans.items()})
    for name, plan in plans.items():
        assert ledger.would(plan, about=name) == ledger.spend(plan, about=name)
    lips, ldps = ([getattr(p.certificate, side) for p in plans.values()] for side in ("lip", "ldp"))
    assert ledger.level.lip == pytest.approx(min(2 * sum(lips) - max(lips), sum(ldps)), abs=1e-12)
    assert ledger.level == split(plans).levels() and not ledger.level.exact
    assert drawn(plans).levels().lip == max(lips) and drawn(plans).levels().exact


def test_the_bound_is_nearly_reached_by_answers_that_go_together() -> None:
    """Two answers that always coincide, reported at 2 each: 98 % of the bound of 6; at 1 each 91 % of 3."""
    for epsilon, share in ((1.0, 0.911), (2.0, 0.979)):
        rare = 1 / (1 + math.exp(epsilon))
        prior = pv.Prior({"yes": rare, "no": 1 - rare})
        form = split({name: plan_of(prior, epsilon) for name in "ab"})
        law = {("yes", "yes"): rare, ("no", "no"): 1 - rare}
        found, stated = max(levels(form, "ab", law)), form.levels().lip
        assert stated == pytest.approx(3 * epsilon, abs=1e-6)
        assert share - 0.001 < found / stated < share + 0.001
        assert attribute_level(form, "ab", law, "a") == pytest.approx(
            found
        )  # and so much about a single answer


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
    assert found <= max(levels(form, names, law)) <= form.levels().lip <= 3
    joint = pv.Prior.joint(law, names, impossible="leave out")
    exact = form.levels(joint)
    assert exact.exact and exact.lip == pytest.approx(max(levels(form, names, law)), abs=1e-6)
    ledger = pv.Ledger(joint)
    ledger.spend(gate, about="gate")
    assert ledger.spend(follow, about="follow").lip == pytest.approx(exact.lip, abs=1e-6)
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
    form, rng = split(plans), np.random.default_rng(3)
    assert worst_level(form, plans, rng, 30) <= form.levels().lip
    assert max(levels(form, "abc", together)) <= form.levels().lip


def test_of_priors_that_contradict_each_other_only_ldp_levels_add_up() -> None:
    """Reports at 0.3 and 1.5 with different priors: real 3.20, while 2 sum - max would say 2.1."""
    ours, theirs = pv.Prior({"yes": 0.02, "no": 0.98}), pv.Prior({"yes": 0.8, "no": 0.2})
    first, second = plan_of(ours, 0.3), plan_of(theirs, 1.5)
    Q = np.einsum("xi,xj->xij", first.channel.matrix, second.channel.matrix).reshape(2, -1)
    found = max(max(sides(Q, p.probabilities)) for p in (ours, theirs))
    assert found > 3 > 2 * (0.3 + 1.5) - 1.5
    ldp = first.certificate.ldp + second.certificate.ldp
    ledger = pv.Ledger({"smokes": ours})
    ledger.spend(first)
    assert found <= ledger.spend(second).lip <= ldp
    assert [entry.lip for entry in ledger.spent] == [first.certificate.lip, second.certificate.ldp]
    # In a form they stand beside other attributes, since a form has one part for the same ones.
    pair = pv.Prior.joint(
        {(s, t): p * 0.5 for s, p in (("yes", 0.8), ("no", 0.2)) for t in "uv"}, ("smokes", "town")
    )
    beside = plan_of(pair, 1.5)
    form = Form((Slot((Part(("smokes",), first),)), Slot((Part(("smokes", "town"), beside),))))
    assert form.contradictory == {("smokes",), ("smokes", "town")}
    assert form.levels().lip == first.certificate.ldp + beside.certificate.ldp
    in_one_slot = Form((Slot.drawn(form.parts, (1.0, 1.0)),))
    assert in_one_slot.levels().lip == max(first.certificate.lip, beside.certificate.lip)
    assert in_one_slot.levels(unknown=[("smokes",)]).lip == max(first.certificate.ldp, beside.certificate.lip)


def pair(first: str, second: str, same: float) -> tuple[tuple[str, str], pv.Plan]:
    """A plan about two answers that are the same with this probability, and as often yes as no."""
    cells = {(x, y): (same if x == y else 1 - same) / 2 for x in ("yes", "no") for y in ("yes", "no")}
    return (first, second), plan_of(pv.Prior.joint(cells, (first, second)), 0.4)


def test_of_tables_that_overlap_in_a_circle_only_ldp_levels_add_up() -> None:
    """A is mostly B, B is mostly C, and A is mostly not C: they agree in pairs, and no joint law has all three."""
    parts = [pair("a", "b", 0.9), pair("b", "c", 0.9), pair("a", "c", 0.2)]
    form = Form(tuple(Slot((Part(*part),)) for part in parts))
    assert form.contradictory == {names for names, _ in parts}
    assert form.levels().lip == pytest.approx(sum(plan.certificate.ldp for _, plan in parts))
    chain = Form(form.slots[:2])
    assert not chain.contradictory and chain.levels().lip == pytest.approx(3 * 0.4)
    beside = Form((*form.slots, Slot((Part(*pair("c", "d", 0.7)),))))
    assert beside.contradictory == form.contradictory
    ledger = pv.Ledger({name: pv.Prior({"yes": 0.5, "no": 0.5}) for name in "abc"})
    for names, plan in parts[:2]:
        ledger.spend(Form.of(names, plan))
    assert ledger.level == chain.levels()
    assert ledger.spend(Form.of(*parts[2])) == form.levels()
    assert [entry.lip for entry in ledger.spent] == [plan.certificate.ldp for _, plan in parts]


@given(
    st.lists(st.sets(st.sampled_from("abcde"), min_size=1, max_size=3), min_size=3, max_size=5),
    st.integers(0, 99),
)
@settings(max_examples=60)
def test_margins_of_groups_without_a_circle_have_a_joint_law(groups: list[set[str]], seed: int) -> None:
    """Agreeing margins of such groups always come from one law: a linear programme finds it."""
    names = sorted({tuple(sorted(group)) for group in groups})
    kept = [group for group in names if group not in cyclic(names)]
    if kept:
        margins, rows = agreeing_margins(kept, np.random.default_rng(seed)), margin_rows("abcde", kept)
        assert linprog(np.zeros(rows.shape[1]), A_eq=rows, b_eq=margins).success


# -- the joint channel ---------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 3))
@settings(max_examples=15)
def test_with_the_joint_prior_the_level_is_exact(seed: int, count: int) -> None:
    """Measured for forms and ledgers, whether the plans have the margins of the joint prior or not."""
    plans, rng = random_plans(seed, count)
    names = tuple(plans)
    laws = [law for law in joint_laws(plans, rng, 2) if min(law.values()) > 1e-9]
    cells = list(laws[0])
    laws.append(dict(zip(cells, rng.dirichlet(np.ones(len(cells))) * 0.9 + 0.1 / len(cells), strict=True)))
    first, *others = plans
    mixed = Form((*split({first: plans[first]}).slots, *drawn({n: plans[n] for n in others}).slots))
    for law, form in itertools.product(laws, (split(plans), drawn(plans), mixed)):
        joint = pv.Prior.joint(law, names)
        lower, upper = levels(form, names, law)
        stated = form.levels(joint)
        assert stated.exact
        assert lower - 2e-9 <= stated.lip_lower <= lower + 1e-6  # priors that differ by 1e-9 are the same
        assert upper - 2e-9 <= stated.lip_upper <= upper + 1e-6
        spent = pv.Ledger(joint).spend(form)
        assert spent.lip == pytest.approx(stated.lip, abs=1e-6) and spent.exact
    joint, ledger = pv.Prior.joint(laws[-1], names), pv.Ledger(pv.Prior.joint(laws[-1], names))
    for name, plan in plans.items():
        ledger.spend(plan, about=name)
    assert ledger.level.lip == pytest.approx(split(plans).levels(joint).lip, abs=1e-6)


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


def test_numbers_that_are_rounded_get_the_bound() -> None:
    hours = pv.Prior.grid([0, 20, 40], [0.3, 0.3, 0.4])
    joint = pv.Prior.joint(
        {(s, h): p * q for s, p in (("y", 0.4), ("n", 0.6)) for h, q in ((0, 0.3), (20, 0.3), (40, 0.4))},
        ("smokes", "hours"), grids={"hours": [0, 20, 40]},
    )  # fmt: skip
    smokes = plan_of(pv.Prior({"y": 0.4, "n": 0.6}), 0.5)
    number = plan_of(hours, 0.5, pv.Sum([0, 20, 40], unbiased=True))
    form = split({"smokes": smokes, "hours": number})
    for stated in (form.levels(joint), pv.Ledger(joint).spend(form)):
        assert not stated.exact and stated.lip == pytest.approx(1.5, abs=1e-6)


# -- what a ledger refuses ------------------------------------------------------------------------------------------


def test_a_limit_counts_all_attributes_together() -> None:
    prior = pv.Prior([0.5, 0.5])
    plan = plan_of(prior, 0.5)
    ledger = pv.Ledger({"a": prior, "b": prior}, limit=1.2)
    ledger.spend(plan, about="a")
    with pytest.raises(BudgetExceeded):
        ledger.spend(plan, about="b")
    assert len(ledger.spent) == 1 and ledger.level.lip <= 0.5


def test_two_joint_priors_with_the_same_margins_contradict_each_other() -> None:
    """Both plans about the pair count with their LDP levels: only one prior can be right, and nobody knows which."""
    margins = {"a": pv.Prior({"y": 0.5, "n": 0.5}), "b": pv.Prior({"u": 0.5, "v": 0.5})}
    cells = (("y", "u"), ("y", "v"), ("n", "u"), ("n", "v"))
    near, far = (
        plan_of(pv.Prior.joint(dict(zip(cells, law, strict=True)), ("a", "b")), 0.5)
        for law in ((0.4, 0.1, 0.1, 0.4), (0.1, 0.4, 0.4, 0.1))
    )
    ledger = pv.Ledger(margins)
    assert ledger.spend(near).lip == near.certificate.lip
    ledger.spend(far)
    assert [entry.lip for entry in ledger.spent] == [near.certificate.ldp, far.certificate.ldp]


def test_the_order_of_reports_with_contradictory_priors_does_not_matter() -> None:
    """The first prior to be spent may be the wrong one. Under the second, 2.3 would be stated, and 2.6 is real."""
    margins = {"a": pv.Prior({"y": 0.35, "n": 0.65}), "b": pv.Prior({"u": 0.25, "v": 0.75})}
    cells = (("y", "u"), ("y", "v"), ("n", "u"), ("n", "v"))
    laws = ((0.245, 0.105, 0.005, 0.645), (0.005, 0.345, 0.245, 0.405))
    priors = [pv.Prior.joint(dict(zip(cells, law, strict=True)), ("a", "b")) for law in laws]
    plans = [plan_of(prior, epsilon) for prior, epsilon in zip(priors, (1.5, 0.2), strict=True)]
    Q = np.einsum("xi,xj->xij", *(plan.channel.matrix for plan in plans)).reshape(4, -1)
    real = max(sides(Q, priors[1].probabilities))
    assert real > 2 * (1.5 + plans[1].certificate.ldp) - 1.5 + 0.1
    for order in (plans, plans[::-1]):
        ledger = pv.Ledger(margins)
        for plan in order:
            ledger.spend(plan)
        assert real <= ledger.level.lip == pytest.approx(sum(plan.certificate.ldp for plan in plans))


def test_parts_that_are_drawn_at_different_times_may_contradict_each_other() -> None:
    """In one submission a slot reports about one of its parts; in two, about both."""
    near, far = ((names, plan) for names, plan in (pair("a", "b", 0.9), pair("b", "a", 0.2)))
    form = Form((Slot.drawn([Part(*near), Part(*far)], (1.0, 1.0)),))
    ledger = pv.Ledger({name: pv.Prior({"yes": 0.5, "no": 0.5}) for name in "ab"})
    assert ledger.spend(form) == form.levels() and ledger.level.lip <= 0.4
    ldp = max(part.plan.certificate.ldp for part in form.parts)
    assert ledger.spend(form).lip == pytest.approx(2 * ldp)


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
        ("plan", lambda: pv.Ledger({"a": prior}).spend(plan, about="c")),
        ("plan", lambda: pv.Ledger(joint).spend(plan)),
        ("plan", lambda: pv.Ledger(joint).would("plan")),
        ("plan", lambda: pv.Ledger(prior).would(Form((*form.slots, *Form.of("b", plan).slots)))),
        ("prior", lambda: pv.Ledger(joint).spend(plan, about="b")),
        ("replay", lambda: pv.Ledger({"a": prior}).spend(plan, replay=True)),
        ("secret", lambda: pv.Ledger({"a": prior}, secret=secret.secret)),
        ("joint", lambda: form.levels(prior)),
        ("joint", lambda: Form.of("c", plan).levels(joint)),
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

"""One budget for several questions: the costs of all ways, and what their submissions tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

import priorveil as pv
from enumeration import unbiased_error
from joint_laws import levels, worst_level
from priorveil.designs.form_design import FormDesign, PartSpec, design_form
from priorveil.plans.form import SHARE_DENOMINATOR, Form


def yes_no(share: float, **details: object) -> pv.Prior:
    return pv.Prior({"yes": share, "no": 1 - share}, **details)


def topics_of(shares: dict[str, float], **details: object) -> list[PartSpec]:
    return [PartSpec((name,), yes_no(share), pv.Distribution(), **details) for name, share in shares.items()]


def share_variance(p: float, epsilon: float) -> float:
    """The best binary plan at a LIP level: its variance relative to `p (1 - p)`, from section 4."""
    lo, hi = math.exp(-epsilon), math.exp(epsilon)
    low = max(p * lo, 1 - (1 - p) * hi)
    high = min(p * hi, 1 - (1 - p) * lo)
    chance = (p - low) / (high - low)  # of the report that makes it likelier
    yes, no = chance * high / p, chance * (1 - high) / (1 - p)
    return chance * (1 - chance) / (yes - no) ** 2 / (p * (1 - p))


def response_variance(p: float, epsilon: float) -> float:
    """Randomised response at an LDP level, relative to `p (1 - p)`."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    yes = p * keep + (1 - p) * (1 - keep)
    return yes * (1 - yes) / (2 * keep - 1) ** 2 / (p * (1 - p))


def best_split(shares: list[float], weights: list[float], epsilon: float) -> float:
    """The least cost of two reports whose LDP levels add up to the budget, by trying all on a fine grid."""
    return min(
        weights[0] * response_variance(shares[0], level)
        + weights[1] * response_variance(shares[1], epsilon - level)
        for level in np.linspace(0.001 * epsilon, 0.999 * epsilon, 1_000).tolist()
    )


def within(design: FormDesign, epsilon: float) -> None:
    for form in design.forms.values():
        assert form.levels().lip <= epsilon
    costs = {way: cost for way, cost in design.costs.items() if cost is not None}
    assert costs.keys() == design.forms.keys()
    assert costs[design.chosen] == min(costs.values())
    assert design.form is design.forms[design.chosen]


@pytest.mark.parametrize("weights", [(1.0, 1.0), (9.0, 1.0)])
@pytest.mark.parametrize("shares", [(0.3, 0.4), (0.05, 0.5), (0.1, 0.1)])
def test_a_split_costs_little_more_than_the_best_one(
    shares: tuple[float, float], weights: tuple[float, float]
) -> None:
    parts = [
        PartSpec((name,), yes_no(share), pv.Distribution(), weight)
        for name, share, weight in zip("ab", shares, weights, strict=True)
    ]
    found = design_form(parts, 1.0)
    within(found, 1.0)
    best, cost = best_split(list(shares), list(weights), 1.0), found.costs["split"]
    assert cost is not None and (1 - 1e-5) * best <= cost <= 1.02 * best


def test_the_costs_are_those_of_the_closed_forms() -> None:
    """Drawing gives each question the whole budget; its cost is the squared sum of roots."""
    shares = {"a": 0.3, "b": 0.4, "c": 0.15}
    weights = [1.0, 2.0, 5.0]
    parts = [
        PartSpec((name,), yes_no(share), pv.Distribution(), weight)
        for (name, share), weight in zip(shares.items(), weights, strict=True)
    ]
    found = design_form(parts, 1.0)
    variances = np.array([share_variance(share, 1.0) for share in shares.values()])
    assert found.costs["draw"] == pytest.approx(float(np.sqrt(weights * variances).sum() ** 2), rel=1e-6)
    drawn = np.array(found.forms["draw"].slots[0].shares) / SHARE_DENOMINATOR
    for other in np.random.default_rng(1).dirichlet(np.ones(3), 200):
        assert (weights * variances / drawn).sum() <= (weights * variances / other).sum() + 1e-6
    split = found.forms["split"]
    own = [
        part.plan.expected_mse / (2 * p * (1 - p))
        for part, p in zip(split.parts, shares.values(), strict=True)
    ]
    assert found.costs["split"] == pytest.approx(float(np.dot(weights, own)))
    assert found.costs["split"] >= sum(weights)


@pytest.mark.parametrize("seed", range(8))
def test_no_joint_law_makes_a_form_tell_more_than_the_budget(seed: int) -> None:
    rng, count = np.random.default_rng(seed), 2 + seed % 2
    parts = []
    for name in "abc"[:count]:
        size, assumed = int(rng.integers(2, 4)), bool(rng.integers(2))
        law, labels = rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, [f"{name}{i}" for i in range(size)]
        prior = pv.Prior(law, labels, assumed=assumed)
        parts.append(PartSpec((name,), prior, pv.Distribution(), float(rng.uniform(0.5, 2))))
    epsilon = float(rng.choice([0.5, 1.0, 2.0]))
    found = design_form(parts, epsilon, rounds=5)
    within(found, epsilon)
    for way in ("split", "draw"):
        plans = {part.attributes[0]: part.plan for part in found.forms[way].parts}
        assert worst_level(found.forms[way], plans) <= epsilon + 1e-9
        for spec in parts:
            notion = plans[spec.attributes[0]].notion.name
            assert notion == "LDP" or not spec.prior.assumed


def test_together_is_designed_for_the_joint_prior() -> None:
    """Its cost from the definition of the best unbiased estimates, and its level written out."""
    law = {("y", "u"): 0.3, ("y", "v"): 0.1, ("n", "u"): 0.15, ("n", "v"): 0.45}
    joint = pv.Prior.joint(law, ("smokes", "town"))
    smokes, town = pv.Prior({"y": 0.4, "n": 0.6}), pv.Prior({"u": 0.45, "v": 0.55})
    parts = [
        PartSpec(("smokes",), smokes, pv.Distribution()),
        PartSpec(("town",), town, pv.Distribution(), 2.0),
    ]
    found = design_form(parts, 1.0, joint)
    within(found, 1.0)
    together = found.forms["together"]
    assert (
        together.attributes == ("smokes", "town")
        and max(levels(together, together.attributes, law)) <= 1 + 1e-9
    )
    P, Q = np.array(list(law.values())), together.parts[0].plan.channel.matrix
    cost = 0.0
    for weight, prior, at in ((1.0, smokes, 0), (2.0, town, 1)):
        W = np.array([[cell[at] == label for cell in law] for label in prior.labels], dtype=float)
        alone = float((prior.probabilities * (1 - prior.probabilities)).sum())
        J = (Q / (P @ Q)) @ Q.T
        error = float(np.trace(W @ np.linalg.pinv(J) @ W.T) - ((W @ P) ** 2).sum())
        assert error >= 0.99 * unbiased_error(np.eye(4), W, P)
        cost += weight * error / alone
    assert found.costs["together"] == pytest.approx(cost, rel=1e-6)
    # Without the joint prior all three are possible too, under LDP.
    free = design_form(parts, 1.0)
    assert free.forms["together"].parts[0].plan.notion == pv.LDP()
    assert free.forms["together"].levels().lip <= 1


@pytest.mark.statistical
def test_simulated_surveys_have_the_stated_costs() -> None:
    """400 surveys of 1,500 people: variances are within five standard errors, of 7 % each, of what the cost says."""
    shares, weights = {"a": 0.3, "b": 0.45}, np.array([1.0, 3.0])
    parts = [
        PartSpec((name,), yes_no(share), pv.Distribution(), weight)
        for (name, share), weight in zip(shares.items(), weights.tolist(), strict=True)
    ]
    found = design_form(parts, 1.5)
    rng, N, runs = np.random.default_rng(8), 1_500, 400
    reference = np.array([share * (1 - share) for share in shares.values()])
    for way, form in found.forms.items():
        yes = []
        for _ in range(runs):
            people = {name: np.where(rng.random(N) < p, "yes", "no") for name, p in shares.items()}
            answers = form.estimate(form.tallies(form.count(form.privatize(people, rng=rng))))
            if way == "together":
                whole = answers["a", "b"]
                yes.append([whole.margin(name).values[0] / N for name in shares])
            else:
                yes.append([answers[name,].values[0] / N for name in shares])
        cost = float(weights @ (np.var(yes, axis=0) * N / reference))
        assert cost == pytest.approx(found.costs[way], rel=5 * math.sqrt(2 / runs)), way
        assert (
            np.abs(np.mean(yes, axis=0) - list(shares.values())).max()
            < 5 * np.std(yes, axis=0).max() / runs**0.5
        )


def test_means_and_tables_may_stand_side_by_side() -> None:
    hours = pv.Prior.grid([0, 20, 40], [0.3, 0.3, 0.4])
    pair = pv.Prior.joint({(a, b): 0.25 for a in ("old", "young") for b in ("no", "yes")}, ("age", "smokes"))
    parts = [
        PartSpec(("hours",), hours, pv.Sum([0, 20, 40], unbiased=True)),
        PartSpec(("age", "smokes"), pair, pv.Distribution(), epsilon=0.4),
        PartSpec(("town",), pv.Prior.uniform(["u", "v", "w"]), pv.Distribution()),
    ]
    found = design_form(parts, 1.0)
    within(found, 1.0)
    assert found.costs["together"] is None  # a number
    for form in found.forms.values():
        levels_of = {part.attributes: part.plan.certificate for part in form.parts}
        assert levels_of["age", "smokes"].lip <= 0.4
        assert levels_of["town",].ldp <= 1


def test_a_topic_that_is_held_back_leaves_the_budget_to_the_others() -> None:
    held, free = topics_of({"a": 0.3}, epsilon=0.2), topics_of({"b": 0.3, "c": 0.3})
    split = design_form([*held, *free], 1.0).forms["split"]
    assert [part.plan.certificate.ldp for part in split.parts] == pytest.approx([0.2, 0.4, 0.4])
    alone = design_form([*held, *topics_of({"b": 0.3}, epsilon=0.3)], 1.0).forms["split"]
    assert alone.levels().ldp == pytest.approx(0.5)


def test_one_topic_and_answers_that_lean_on_the_prior() -> None:
    [alone] = topics_of({"a": 0.3})
    found = design_form([alone], 1.0)
    assert found.form == Form.of("a", pv.design(alone.prior, 1.0, alone.query))
    assert found.costs["draw"] is None and found.costs["together"] is None
    leaning = [alone, PartSpec(("b",), pv.Prior([0.5, 0.3, 0.2]), pv.Histogram())]
    found = design_form(leaning, 1.0)
    within(found, 1.0)
    assert list(found.forms) == ["split"]
    assert found.costs["split"] is not None and 1 < found.costs["split"] < math.inf

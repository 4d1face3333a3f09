"""What whole submissions tell, written out: every tuple of answers with every submission, under any joint law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

import priorveil as pv
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot

Cell = tuple[object, ...]
Law = dict[Cell, float]


# -- enumeration -----------------------------------------------------------------------------------------------


def report_laws(slot: Slot, answers: dict[str, object]) -> list[float]:
    """The probability of each report of a slot, the drawn part included, for a person with these answers."""
    chances = []
    for part, share in zip(slot.parts, slot.shares, strict=True):
        own = tuple(answers[name] for name in part.attributes)
        row = part.plan.labels.index(own if len(own) > 1 else own[0])
        chances += [share / SHARE_DENOMINATOR * float(p) for p in part.plan.channel.matrix[row]]
    return chances


def submission_matrix(form: Form, names: Sequence[str], cells: Sequence[Cell]) -> np.ndarray:
    """A row for each tuple of answers: the probability of every submission, one after the other."""
    rows = []
    for cell in cells:
        answers = dict(zip(names, cell, strict=True))
        slots = [report_laws(slot, answers) for slot in form.slots]
        rows.append([math.prod(chances) for chances in itertools.product(*slots)])
    return np.array(rows)


def sides(Q: np.ndarray, P: np.ndarray) -> tuple[float, float]:
    law = P @ Q
    lift = Q[:, law > 0] / law[law > 0]
    return -math.log(lift.min()), math.log(lift.max())


def levels(form: Form, names: Sequence[str], joint: Law) -> tuple[float, float]:
    """Both sides of LIP of a whole submission, for the tuple of all answers."""
    cells = [cell for cell, p in joint.items() if p > 0]
    P = np.array([joint[cell] for cell in cells])
    return sides(submission_matrix(form, names, cells), P / P.sum())


def attribute_level(form: Form, names: Sequence[str], joint: Law, name: str) -> float:
    """The level of a whole submission for one of the answers."""
    cells = [cell for cell, p in joint.items() if p > 0]
    P, Q = np.array([joint[cell] for cell in cells]), submission_matrix(form, names, cells)
    at = list(names).index(name)
    values = sorted({cell[at] for cell in cells}, key=str)
    has = np.array([[cell[at] == value for cell in cells] for value in values]) * P
    mass = has.sum(axis=1)
    return max(sides(has @ Q / mass[:, None], mass / mass.sum()))


# -- the worst joint law ---------------------------------------------------------------------------------------


def worst_level(form: Form, plans: dict[str, pv.Plan]) -> float:
    """The most that a submission can tell under any joint law of the answers that has the priors of the plans.

    For each submission linear programmes find the least and the largest probability that it can have.
    """
    cells = list(itertools.product(*(plan.labels for plan in plans.values())))
    has = [
        [cell[at] == label for cell in cells]
        for at, plan in enumerate(plans.values())
        for label in plan.labels
    ]
    shares = np.concatenate([plan.reference.probabilities for plan in plans.values()])
    worst = 0.0
    for column in submission_matrix(form, list(plans), cells).T:
        least, largest = (
            sign * linprog(sign * column, A_eq=np.array(has, dtype=float), b_eq=shares).fun
            for sign in (1, -1)
        )
        worst = max(worst, math.log(column.max() / least), math.log(largest / column.min()))
    return worst


# -- priors that agree in pairs and have no joint law ------------------------------------------------------------


def chained(ac: float, bc: float) -> Law:
    """The law of a, b and c, each as often yes as no: a and b follow c, and are like it with these probabilities."""
    return {
        (a, b, c): (ac if a == c else 1 - ac) * (bc if b == c else 1 - bc) / 2
        for a, b, c in itertools.product(("yes", "no"), repeat=3)
    }


def without_joint_law(epsilon: float) -> tuple[Form, Law]:
    """Three slots whose priors agree in pairs and have no joint law, and a law that has most of them as margins.

    A is mostly B, B is mostly C, and the prior of A and C says that A is often not C. The table of all three, drawn
    instead of A x B, has the margins of both other slots. Under the law, what is reported about A and C at `epsilon`
    tells nearly twice that.
    """
    rare = 1e-3
    same_ac = 1 / (1 + math.exp(epsilon))

    def part(names: str, law: Law, level: float) -> Part:
        margin: Law = {}
        for cell, p in law.items():
            own = tuple(cell["abc".index(name)] for name in names)
            margin[own] = margin.get(own, 0.0) + p
        prior = pv.Prior.joint(margin, tuple(names))
        return Part(tuple(names), pv.design(prior, level, pv.Distribution(), rounds=3))

    stated, real = chained(same_ac, 1 - rare), chained(1 - rare / 10, 1 - rare)
    drawn = Slot.by_weights([part("ab", real, 0.01), part("abc", stated, 0.01)], [1.0, 1.0])
    return Form((drawn, Slot((part("bc", stated, 0.02),)), Slot((part("ac", stated, epsilon),)))), real

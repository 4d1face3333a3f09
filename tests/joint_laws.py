"""What whole submissions tell, written out: every tuple of answers with every submission, under many joint laws.

`worst_level` searches joint laws with given margins: independent ones, random ones, and those in which the answers go
together, or against each other, as much as they can for some submission.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linprog

import priorveil as pv
from priorveil.plans.form import PARTS, Form, Slot

Cell = tuple[object, ...]
Law = dict[Cell, float]


# -- enumeration -----------------------------------------------------------------------------------------------


def report_laws(slot: Slot, answers: dict[str, object]) -> list[float]:
    """The probability of each report of a slot, the drawn part included, for a person with these answers."""
    chances = []
    for part, share in zip(slot.parts, slot.shares, strict=True):
        own = tuple(answers[name] for name in part.attributes)
        row = part.plan.labels.index(own if len(own) > 1 else own[0])
        chances += [share / PARTS * float(p) for p in part.plan.channel.matrix[row]]
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


# -- joint laws ------------------------------------------------------------------------------------------------


def staircase(margins: Sequence[Sequence[float]], orders: Sequence[Sequence[int]]) -> np.ndarray:
    """The joint law that pairs the first values of all orders, then the next ones: the answers go together."""
    joint = np.zeros([len(margin) for margin in margins])
    left = [list(margin) for margin in margins]
    at = [0] * len(margins)
    while all(place < len(order) for place, order in zip(at, orders, strict=True)):
        cell = tuple(order[place] for place, order in zip(at, orders, strict=True))
        mass = min(left[i][value] for i, value in enumerate(cell))
        joint[cell] += mass
        for i, value in enumerate(cell):
            left[i][value] -= mass
            if left[i][value] <= 1e-15:
                at[i] += 1
    return joint / joint.sum()


def along(axis: int, margin: np.ndarray, count: int) -> np.ndarray:
    return margin.reshape([-1 if i == axis else 1 for i in range(count)])


def margin_of(joint: np.ndarray, axis: int) -> np.ndarray:
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i != axis))


def random_law(margins: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """A random joint law, scaled until it nearly has the margins; what is then missing is added independently."""
    joint, n = rng.gamma(0.3, size=[len(margin) for margin in margins]) + 1e-6, len(margins)
    for _ in range(30):
        for axis, margin in enumerate(margins):
            joint = joint * along(axis, margin / margin_of(joint, axis), n)
    for axis, margin in enumerate(margins):
        joint = joint * along(axis, np.minimum(1.0, margin / margin_of(joint, axis)), n)
    rest = np.ones(1)
    missing = 1 - joint.sum()
    for axis, margin in enumerate(margins):
        rest = rest * along(axis, np.maximum(margin - margin_of(joint, axis), 0.0), n)
    whole = joint + rest / missing ** (n - 1) if missing > 1e-12 else joint
    return whole / whole.sum()


def joint_laws(plans: dict[str, pv.Plan], rng: np.random.Generator, tries: int) -> Iterator[Law]:
    margins = [plan.reference.probabilities for plan in plans.values()]
    columns = [plan.channel.matrix.T for plan in plans.values()]
    apart = np.ones([len(margin) for margin in margins])
    for axis, margin in enumerate(margins):
        apart = apart * along(axis, margin, len(margins))
    laws = [apart]
    for _ in range(tries):
        laws.append(random_law(margins, rng))
        laws.append(staircase(margins, [rng.permutation(len(margin)) for margin in margins]))
        reports = [column[rng.integers(len(column))] for column in columns]
        together = staircase(margins, [np.argsort(-report) for report in reports])
        signs = rng.choice([-1, 1], len(reports))
        against = staircase(margins, [np.argsort(sign * r) for sign, r in zip(signs, reports, strict=True)])
        laws += [together, against, 0.999 * against + 0.001 * apart]
    cells = list(itertools.product(*(plan.labels for plan in plans.values())))
    for law in laws:
        yield dict(zip(cells, law.ravel().tolist(), strict=True))


def worst_level(form: Form, plans: dict[str, pv.Plan], rng: np.random.Generator, tries: int) -> float:
    return max(max(levels(form, list(plans), law)) for law in joint_laws(plans, rng, tries))


# -- margins of several answers with two values each -----------------------------------------------------------


def margin_rows(names: Sequence[str], groups: Sequence[Sequence[str]]) -> np.ndarray:
    """For every group a row for each combination of its levels: one for the tuples of all answers that have them."""
    rows = []
    for group in groups:
        places = [list(names).index(name) for name in group]
        for combination in itertools.product((0, 1), repeat=len(group)):
            tuples = itertools.product((0, 1), repeat=len(names))
            rows.append([float(tuple(each[at] for at in places) == combination) for each in tuples])
    return np.array(rows)


def agreeing_margins(groups: Sequence[Sequence[str]], rng: np.random.Generator) -> np.ndarray:
    """Random margins of the groups, one after the other, that agree where two overlap; there may be no joint law."""
    ends = np.cumsum([0, *(2 ** len(group) for group in groups)])

    def weights(at: int, names: Sequence[str]) -> np.ndarray:
        """A row for each combination of levels of some answers of a group: one for the cells that have them."""
        rows = margin_rows(groups[at], [names])
        return np.hstack(
            [np.zeros((len(rows), ends[at])), rows, np.zeros((len(rows), ends[-1] - ends[at + 1]))]
        )

    equal = [
        weights(i, shared) - weights(j, shared)
        for (i, one), (j, other) in itertools.combinations(enumerate(groups), 2)
        for shared in [sorted(set(one) & set(other))]
    ]
    totals = np.vstack([weights(at, []) for at in range(len(groups))])
    rows = np.vstack([totals, *equal])
    sums = np.concatenate([np.ones(len(totals)), np.zeros(len(rows) - len(totals))])
    solved = linprog(rng.normal(size=ends[-1]), A_eq=rows, b_eq=sums)
    assert solved.success
    return np.asarray(solved.x)

"""One budget for several questions: split over reports, one question drawn for each person, or one plan for all.

The *cost* of a form is the sum over its parts of `weight * variance`, each variance relative to that of the same
question without noise. Without noise it would be the sum of the weights.

- *split*: a report for each part, with levels of LDP that add up to the budget. A variance is about `k / eps**2`, so
  the cost is least for levels in proportion to the cube root of `weight * k`.
- *draw*: each person reports about one part, at the whole budget. With the variances `v_j` and shares `s_j` the cost
  is `sum weight_j v_j / s_j`, least for shares in proportion to `sqrt(weight_j v_j)`.
- *together*: one plan on all attributes, for the joint prior, or under LDP if there are few values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.methods import design
from priorveil.errors import InvalidInput, NotIdentifiable, TooLarge
from priorveil.notions import LDP, PriorOrSet
from priorveil.plans.composition import Names, positions
from priorveil.plans.form import SHARE_DENOMINATOR, Form, Part, Slot
from priorveil.priors import Prior
from priorveil.priors.number_domains import NumberDomain
from priorveil.queries import Distribution, Linear, Query

# Values of one plan for all parts under LDP. With more, its noise is larger than that of the other ways.
_MOST_TOGETHER = 64
_BELOW = 1 - 1e-12  # levels add up to this share of the budget: rounding in sums of floats stays below it


@dataclass(frozen=True)
class PartSpec:
    """A question, or several that are designed together, and what is asked about their attributes.

    A prior that is only assumed is designed under LDP. `epsilon` is the most that the part's own report may tell.
    """

    attributes: Names
    prior: PriorOrSet
    query: Query
    weight: float = 1.0
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise InvalidInput("weight", self.weight, "give a number above zero")
        if self.epsilon is not None and not 0 < self.epsilon < math.inf:
            raise InvalidInput("epsilon", self.epsilon, "give a number above zero, or None")

    @property
    def most(self) -> float:
        """The most that the part's own report may tell, infinite if nothing limits it but the budget."""
        return math.inf if self.epsilon is None else self.epsilon


@dataclass(frozen=True)
class FormDesign:
    """The form of each way that is possible, what they cost (None if a way is not possible), and the cheapest way."""

    forms: Mapping[str, Form]
    costs: Mapping[str, float | None]
    chosen: str

    @property
    def form(self) -> Form:
        """The form with the least cost."""
        return self.forms[self.chosen]


@dataclass(frozen=True, eq=False)
class _FormProblem:
    """The parts, the budget, and how plans are designed; a plan is designed once for each level."""

    parts: tuple[PartSpec, ...]
    epsilon: float
    joint: Prior | None
    options: Mapping[str, Any]
    designed: dict[tuple[int, float, bool], Part] = field(default_factory=dict)

    @property
    def weights(self) -> Array:
        return np.array([spec.weight for spec in self.parts])

    def part(self, at: int, epsilon: float, under_ldp: bool = False) -> Part:
        """The plan of a part at a level: under LDP if `under_ldp`, or if its prior is only assumed."""
        spec = self.parts[at]
        ldp = under_ldp or spec.prior.assumed
        level = min(epsilon, spec.most)
        if (at, level, ldp) not in self.designed:
            plan = design(spec.prior, level, spec.query, notion=LDP() if ldp else None, **self.options)
            self.designed[at, level, ldp] = Part(spec.attributes, plan)
        return self.designed[at, level, ldp]

    def cost(self, parts: Sequence[Part], shares: Sequence[float]) -> float:
        """The cost if these shares of all people report about each part."""
        return float(np.sum(self.weights * [relative_variance(part) for part in parts] / np.array(shares)))


Candidate = tuple[Form, float]


def design_form(
    parts: Sequence[PartSpec],
    epsilon: float,
    joint: Prior | None = None,
    **options: Any,
) -> FormDesign:
    """The cheapest form about all parts. A whole submission tells at most `epsilon`.

    With the `joint` prior of all attributes, one plan for all parts is designed for it. The other `options` are those
    of `design`.

    >>> import priorveil as pv
    >>> shares = {"smokes": 0.3, "drives": 0.4}
    >>> priors = {name: pv.Prior({"yes": p, "no": 1 - p}) for name, p in shares.items()}
    >>> parts = [PartSpec((name,), prior, pv.Distribution()) for name, prior in priors.items()]
    >>> best = design_form(parts, 1.0)
    >>> {way: round(cost, 1) for way, cost in best.costs.items()}  # 2 without noise
    {'split': 36.9, 'draw': 10.0, 'together': 20.4}
    >>> best.form
    Form(LIP 1, LDP 1.906; one of smokes (50.0 %), drives (50.0 %))
    """
    problem = _FormProblem(tuple(parts), epsilon, joint, options)
    _check_problem(problem)
    ways: dict[str, Callable[[_FormProblem], Candidate | None]]
    ways = {"split": _split, "draw": _draw, "together": _together}
    candidates = {way: make(problem) for way, make in ways.items()}
    costs = {way: None if candidate is None else candidate[1] for way, candidate in candidates.items()}
    forms = {way: candidate[0] for way, candidate in candidates.items() if candidate is not None}
    chosen = min(forms, key=lambda way: costs[way] or 0.0)
    return FormDesign(forms, costs, chosen)


def relative_variance(part: Part) -> float:
    """The variance of the answers of a part, or their error, relative to that of the same question without noise.

    An answer that leans on the prior is compared with the variance of the statistics, too.
    """
    plan, prior = part.plan, part.plan.reference
    alone = _variance(plan.query, prior)
    return plan.expected_mse / alone if alone > 0 else 0.0


def _variance(query: Query, prior: Prior) -> float:
    """The summed variance of the statistics of one person, as shares."""
    if not isinstance(query, Linear):
        return query.no_report(prior)
    rows, P = query.centred_rows(prior), prior.probabilities
    return float((P * (1 - P)).sum() if rows is None else (rows**2).sum(axis=0) @ P)


def _check_problem(problem: _FormProblem) -> None:
    if not problem.parts:
        raise InvalidInput("parts", (), "give at least one PartSpec")
    if not 0 < problem.epsilon < math.inf:
        raise InvalidInput("epsilon", problem.epsilon, "give a number above zero")
    attributes = {name for spec in problem.parts for name in spec.attributes}
    if problem.joint is not None and set(problem.joint.names or ()) != attributes:
        advice = f"give a joint prior of {', '.join(sorted(attributes))}"
        raise InvalidInput("joint", problem.joint.names, advice)


# -- a report for each part -------------------------------------------------------------------------------


def _split(problem: _FormProblem) -> Candidate | None:
    """The better of equal levels and levels in proportion to the variances."""
    if len(problem.parts) == 1:
        return _one_slot_each(problem, [problem.part(0, problem.epsilon)])
    equal = _levels(problem, np.ones(len(problem.parts)))
    parts = _parts(problem, equal)
    scale = [relative_variance(part) * level**2 for part, level in zip(parts, equal.tolist(), strict=True)]
    roots = np.maximum(np.cbrt(problem.weights * scale), 1e-3 * np.cbrt(np.max(problem.weights * scale)))
    uneven = _parts(problem, _levels(problem, roots))
    return min((_one_slot_each(problem, own) for own in (parts, uneven)), key=lambda found: found[1])


def _parts(problem: _FormProblem, levels: Array) -> list[Part]:
    return [problem.part(at, level, under_ldp=True) for at, level in enumerate(levels.tolist())]


def _one_slot_each(problem: _FormProblem, parts: Sequence[Part]) -> Candidate:
    return Form(tuple(Slot((part,)) for part in parts)), problem.cost(parts, [1.0] * len(parts))


def _levels(problem: _FormProblem, weights: Array) -> Array:
    """Levels in proportion to the weights that add up to the budget; none is above the most that its part may tell.

    A part that reaches its own limit leaves the rest of the budget to the others, so parts with the least room come
    first.
    """
    most, levels = np.array([spec.most for spec in problem.parts]), np.zeros(len(weights))
    left = _BELOW * problem.epsilon
    for done, at in enumerate(order := np.argsort(most / weights)):
        levels[at] = min(most[at], left * weights[at] / weights[order[done:]].sum())
        left -= levels[at]
    return levels


# -- one part for each person -----------------------------------------------------------------------------


def _draw(problem: _FormProblem) -> Candidate | None:
    """Each part at the whole budget; None where an answer leans on the prior, or there is one part only."""
    if len(problem.parts) == 1 or not all(spec.query.unbiased for spec in problem.parts):
        return None
    parts = [problem.part(at, problem.epsilon) for at in range(len(problem.parts))]
    slot = Slot.by_weights(
        parts, np.sqrt(problem.weights * [relative_variance(part) for part in parts]).tolist()
    )
    return Form((slot,)), problem.cost(parts, [share / SHARE_DENOMINATOR for share in slot.shares])


# -- one plan for all --------------------------------------------------------------------------------------


def _together(problem: _FormProblem) -> Candidate | None:
    """One plan on all attributes; None if their joint prior is not known and they have many values.

    It is designed for the margins of the parts, or for the whole table if a part asks for something else.
    """
    parts = problem.parts
    joint = problem.joint or _assumed_joint(parts)
    if len(parts) == 1 or joint is None or not all(isinstance(spec.query, Linear) for spec in parts):
        return None
    if not all(spec.query.unbiased for spec in parts) or (joint.assumed and len(joint) > _MOST_TOGETHER):
        return None
    assert joint.names is not None
    asks_counts = all(isinstance(t.query, Linear) and t.query.asks_all_counts for t in parts)
    margins = Linear.margins(joint, [spec.attributes for spec in parts], unbiased=True)
    query = margins if asks_counts else Distribution()
    notion, level = LDP() if joint.assumed else None, min(problem.epsilon, *(spec.most for spec in parts))
    try:
        plan = design(joint, level, query, notion=notion, **problem.options)
        errors = [_rows(spec, joint).error(plan.channel, joint) for spec in parts]
    except (NotIdentifiable, TooLarge):
        return None
    alone = [_variance(spec.query, spec.prior.centre) for spec in parts]
    ratios = [error / one if one > 0 else 0.0 for error, one in zip(errors, alone, strict=True)]
    cost = float(np.sum(problem.weights * ratios))
    return (Form.of(joint.names, plan), cost) if math.isfinite(cost) else None


def _assumed_joint(parts: Sequence[PartSpec]) -> Prior | None:
    """The joint prior of independent parts, which is only assumed; None for numbers and for shared attributes."""
    attributes = [name for spec in parts for name in spec.attributes]
    sizes = [len(spec.prior) for spec in parts]
    numbers = [
        spec for spec in parts if isinstance(spec.prior.domain, NumberDomain) or spec.prior.domain.rounds
    ]
    if len(set(attributes)) < len(attributes) or math.prod(sizes) > _MOST_TOGETHER or numbers:
        return None
    cells: dict[tuple[Any, ...], float] = {}
    for values in product(*(range(size) for size in sizes)):
        pairs = list(zip(parts, values, strict=True))
        levels = [_level_tuple(spec, spec.prior.labels[value]) for spec, value in pairs]
        shares = [float(spec.prior.centre.probabilities[value]) for spec, value in pairs]
        cells[tuple(chain.from_iterable(levels))] = math.prod(shares)
    return Prior.joint(cells, attributes, impossible="leave out", assumed=True)


def _level_tuple(spec: PartSpec, label: Any) -> tuple[Any, ...]:
    return label if len(spec.attributes) > 1 else (label,)


def _rows(spec: PartSpec, joint: Prior) -> Linear:
    """The statistics of a part as statistics of the joint values."""
    prior = spec.prior.centre
    rows = spec.query.rows(prior)
    own = np.eye(len(prior)) if rows is None else rows
    return Linear(own[:, positions(prior.labels, spec.attributes, joint)], unbiased=True)

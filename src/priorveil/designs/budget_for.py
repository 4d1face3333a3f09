"""The least budget that is enough: for a half width, or for the power of a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from priorveil.designs.methods import design
from priorveil.errors import Infeasible, InvalidInput
from priorveil.notions import PriorOrSet
from priorveil.plans import Plan
from priorveil.priors import Label, Prior, PriorSet
from priorveil.progress_bar import Progress, design_progress
from priorveil.queries import Query, require_query
from priorveil.statistics.planning import OneOrTwo, require_people, require_power

_LEAST, _MOST = 2.0**-10, 2.0**4  # the budgets that are tried


def budget_for(
    prior: PriorOrSet | Sequence[float],
    query: Query,
    people: int = 10_000,
    within: float | None = None,
    confidence: float = 0.95,
    *,
    worst: bool = False,
    power: float | None = None,
    statistic: Label | None = None,
    null: float = 0.0,
    truth: float | None = None,
    level: float = 0.05,
    sides: OneOrTwo = 2,
    groups: OneOrTwo = 1,
    tolerance: float = 1e-3,
    progress: Progress | bool | None = None,
    **options: Any,
) -> float:
    """The least epsilon with which this many people are enough.

    With `within`, half the width of every interval is at most that, as in `Plan.people`. With `power`, a test finds the
    `truth`, as in `Plan.power`. The plan for the epsilon that is returned is enough; it is at most `tolerance` above
    the least one, relatively, by bisection: the best variance never rises with epsilon. Each step is a design, to which
    `options` go (`notion`, `method`, `rounds`, ...). Epsilons from 1/1024 to 16 are tried.

    >>> import priorveil as pv
    >>> round(budget_for(pv.Prior([0.2, 0.8]), pv.Distribution(), people=5_800, within=0.02), 2)
    0.99
    """
    require_query(query)
    require_people(people)
    if power is not None:
        require_power(power)
    if (within is None) == (power is None):
        raise InvalidInput(
            "within", within, "give within, a half width, or power, and leave the other one out"
        )
    if not 0 < tolerance < 1:
        raise InvalidInput("tolerance", tolerance, "give a share above 0, such as 0.001")
    known = prior if isinstance(prior, PriorSet) else Prior.of(prior)
    test: dict[str, Any] = {"null": null, "truth": truth, "level": level, "sides": sides, "groups": groups}

    def is_enough(plan: Plan) -> bool:
        if within is not None:
            return plan.people(within, confidence, worst) <= people
        return plan.power(statistic, **test, people=people).power >= (power or 0.0)

    with design_progress(progress, math.inf) as on_round:
        settings = {**options, "progress": on_round or False}
        return _least_budget(lambda epsilon: is_enough(design(known, epsilon, query, **settings)), tolerance)


def _least_budget(is_enough: Callable[[float], bool], tolerance: float) -> float:
    """The least epsilon that is enough, at most `tolerance` above it, by bisection of its logarithm."""
    enough = 1.0
    while not is_enough(enough):
        enough *= 2
        if enough > _MOST:
            raise Infeasible(
                f"it is not enough at epsilon {_MOST:g} either: ask more people, or for less precision"
            )
    too_little = enough / 2
    while enough <= 1 and is_enough(too_little):
        if too_little <= _LEAST:
            return too_little
        enough, too_little = too_little, too_little / 2
    while enough > too_little * (1 + tolerance):
        middle = math.sqrt(too_little * enough)
        if is_enough(middle):
            enough = middle
        else:
            too_little = middle
    return enough

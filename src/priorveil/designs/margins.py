"""Margins of several attributes, each person asked about one of them at random: for products too large for one plan.

No joint prior is needed: the guarantee holds for every joint prior that has these margins (`plans.form`).

With `v_j` the variance of one report, summed over the cells, and shares `s_j`, the total is `sum_j v_j / (N s_j)`. It
is least for `s_j` in proportion to `sqrt(v_j)`, and then `(sum_j sqrt(v_j))**2 / N`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from priorveil.designs.methods import design
from priorveil.errors import InvalidInput
from priorveil.notions import PriorOrSet
from priorveil.plans.form import Form, Part, Slot
from priorveil.priors import Budget
from priorveil.queries import Distribution


def design_margins(
    priors: Mapping[tuple[str, ...], PriorOrSet], epsilon: float | Budget, **options: Any
) -> Form:
    """Plans for margins, from reports alone, and the shares of people to ask about each that have the least error.

    `priors` maps the names of the attributes of a margin to its prior; the `options` are those of `design`. Ctrl-C
    keeps the best plan so far of the margin at hand, and goes on with the next. The form has one slot.

    >>> from priorveil import Prior
    >>> pair = Prior.joint({("a", 0): 0.4, ("a", 1): 0.1, ("b", 0): 0.2, ("b", 1): 0.3}, names=("age", "sex"))
    >>> design_margins({("age", "sex"): pair, ("home",): Prior([0.3, 0.7], ["own", "rent"])}, epsilon=1.0)
    Form(LIP 1, LDP 2; one of age x sex (62.3 %), home (37.7 %))
    """
    if not priors:
        raise InvalidInput("priors", priors, "give the prior of at least one margin")
    parts = [
        Part(names, design(prior, epsilon, Distribution(), **options)) for names, prior in priors.items()
    ]
    return Form((Slot.by_weights(parts, [math.sqrt(part.plan.expected_mse) for part in parts]),))

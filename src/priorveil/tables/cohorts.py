"""The plans of cohorts: a public column chooses the plan of each row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, plural
from priorveil.frames import look_up
from priorveil.plans import Plan
from priorveil.priors.domain import OUTSIDE, Codes
from priorveil.queries import require_same_statistics
from priorveil.tables.batches import Batch

Plans = Plan | Mapping[Any, Plan]


def plans_by_cohort(plan: Plans, cohort: str | None) -> dict[Any, Plan]:
    """The plans by the values of the cohort column; a single plan for everybody has the key None."""
    if isinstance(plan, Plan):
        if cohort is not None:
            raise InvalidInput("cohort", cohort, "give a plan for each value of this column: {value: plan}")
        return {None: plan}
    if cohort is None or not plan:
        advice = f"{plural(len(plan), 'plan')}; name the column that chooses the plan of a row"
        raise InvalidInput("plan", NOT_SHOWN, advice, Hint("cohort", "COLUMN"))
    if len({str(key) for key in plan}) < len(plan):
        advice = "two cohort keys have the same text (such as 1 and '1'): rename one"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    if len({one.mechanism.width for one in plan.values()}) > 1:
        advice = "their reports do not fit into one column: use plans of one kind, or a table for each cohort"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    statistics = ((f"cohort {key!r}", one.query.statistics(one.reference)) for key, one in plan.items())
    require_same_statistics("plan", statistics)
    return dict(plan)


def cohort_codes(batch: Batch, cohort: str | None, plans: Collection[Any]) -> Codes:
    """The number of the cohort of every row, -2 if there is none; all have the first without a `cohort` column.

    `plans` are by cohort. Values of the column are compared with the names of cohorts as they are written.

    >>> cohort_codes(Batch({"age": ["2", "1", None, "3"]}, 4), "age", {1: None, 2: None}).tolist()
    [1, 0, -2, -2]
    """
    if cohort is None:
        return np.zeros(batch.rows, dtype=np.int64)
    index = {str(key): code for code, key in enumerate(plans)}
    return look_up(batch.columns[cohort], lambda word: index.get(str(word), OUTSIDE), OUTSIDE)

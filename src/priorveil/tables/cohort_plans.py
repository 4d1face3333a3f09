"""The plans of a table: one for everybody, or one for each value of a cohort column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, plural
from priorveil.plans import Plan
from priorveil.plans.estimate import SUM
from priorveil.plans.values import Codes
from priorveil.tables.columns import OUTSIDE_DOMAIN, Batch, look_up

Plans = Plan | Mapping[Any, Plan]

_MOST_ROWS = 1 << 19  # in a batch
_MOST_BYTES = 1 << 25  # of reports in a batch


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
    return dict(plan)


def require_same_statistics(plans: Mapping[Any, Plan]) -> None:
    """Refuse plans whose estimates cannot be added up, before any report is made.

    The order of their labels does not matter. Sums can be added up whatever their values are.
    """
    labels_of = {name: plan.query.statistic_labels(plan.labels) for name, plan in plans.items()}
    (name, first), *others = labels_of.items()
    for other, labels in others:
        if first != labels and SUM in (first, labels):
            own = other if labels == SUM else name
            advice = (
                f"the plan of cohort {own!r} is for a sum, others are not: use the same query for all cohorts"
            )
            raise InvalidInput("plan", NOT_SHOWN, advice)
        if odd := set(labels) ^ set(first):
            label = next(label for label in (*labels, *first) if label in odd)
            has, lacks = (other, name) if label in labels else (name, other)
            advice = (
                f"the value {label!r} of cohort {has!r} is missing in {lacks!r}: give all the same values"
            )
            raise InvalidInput("plan", NOT_SHOWN, advice)


def cohort_codes(batch: Batch, cohort: str | None, plans: Mapping[Any, Plan]) -> Codes:
    """The number of the plan of every row, -2 if there is none; all have the first plan without a `cohort` column.

    Values of the column are compared as they are written.

    >>> cohort_codes(Batch({"age": ["2", "1", None, "3"]}, 4), "age", {1: None, 2: None}).tolist()
    [1, 0, -2, -2]
    """
    if cohort is None:
        return np.zeros(batch.rows, dtype=np.int64)
    index = {str(key): code for code, key in enumerate(plans)}
    return look_up(batch.columns[cohort], lambda word: index.get(str(word), OUTSIDE_DOMAIN), OUTSIDE_DOMAIN)


def batch_rows(plans: Mapping[Any, Plan]) -> int:
    """Rows in a batch: many, but fewer if reports are long, so that memory stays small."""
    bytes_each = max(8 * max(plan.mechanism.width, 1) for plan in plans.values())
    return max(1, min(_MOST_ROWS, _MOST_BYTES // bytes_each))

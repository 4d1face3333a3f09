"""One plan, or a plan for each value of a public column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priorveil.errors import Hint, InvalidInput, plural
from priorveil.plans import Plan
from priorveil.plans.estimate import SUM
from priorveil.priors import Label
from priorveil.tables.arrow import pa
from priorveil.tables.columns import FOREIGN, Codes, looked_up
from priorveil.tables.wire import report_type

Plans = Plan | Mapping[Any, Plan]

_ROWS = 1 << 19
_BYTES = 1 << 25  # of reports in a batch, at most


def by_cohort(plan: Plans, cohort: str | None) -> dict[Any, Plan]:
    """The plans by the values of the cohort column; one plan for everybody stands under None."""
    if isinstance(plan, Plan):
        if cohort is not None:
            raise InvalidInput("cohort", cohort, "give a plan for each value of this column: {value: plan}")
        return {None: plan}
    if cohort is None or not plan:
        raise InvalidInput(
            "plan",
            plural(len(plan), "plan"),
            "name the column that chooses the plan of a row",
            Hint("cohort", "COLUMN"),
        )
    if len({str(key) for key in plan}) < len(plan):
        raise InvalidInput("plan", plural(len(plan), "plan"), "two of their cohorts are written alike")
    if len({report_type(one.mechanism) for one in plan.values()}) > 1:
        advice = "their reports do not fit into one column: use plans of one kind, or a table for each cohort"
        raise InvalidInput("plan", plural(len(plan), "plan"), advice)
    return dict(plan)


def require_one_answer(plans: Mapping[Any, Plan]) -> None:
    """Refuse plans whose estimates could not be added up: before anything is drawn, not after it is spent.

    The order of their labels does not matter; sums add up whatever they are sums of.
    """
    (name, first), *others = ((name, _answered(plan)) for name, plan in plans.items())
    for other, labels in others:
        if first != labels and SUM in (first, labels):
            own = other if labels == SUM else name
            advice = f"that of cohort {own!r} asks for a sum and others do not: ask the same of all"
            raise InvalidInput("plan", plural(len(plans), "plan"), advice)
        if odd := set(labels) ^ set(first):
            label = next(label for label in (*labels, *first) if label in odd)
            has, lacks = (other, name) if label in labels else (name, other)
            advice = f"the value {label!r} of cohort {has!r} is none of {lacks!r}: give all the same values"
            raise InvalidInput("plan", plural(len(plans), "plan"), advice)


def _answered(plan: Plan) -> tuple[Label, ...]:
    """The labels of the plan's estimates."""
    return plan.query.statistic_labels(plan.labels)


def cohort_codes(column: pa.Array, plans: Mapping[Any, Plan]) -> Codes:
    """Which of the plans every row has; -2 where none. Values are compared as they are written.

    >>> cohort_codes(pa.array([2, 1, None, 3]), {"1": None, "2": None}).tolist()
    [1, 0, -2, -2]
    """
    index = {str(key): code for code, key in enumerate(plans)}
    return looked_up(column, lambda word: index.get(str(word), FOREIGN), FOREIGN)


def batch_rows(plans: Mapping[Any, Plan]) -> int:
    """Rows to take at a time: many, but fewer where reports are long, so that memory stays flat."""
    bytes_each: int = max(report_type(plan.mechanism).bit_width // 8 for plan in plans.values())
    return max(1, min(_ROWS, _BYTES // bytes_each))

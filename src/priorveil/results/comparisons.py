"""The groups of a public column compared: a test of independence, and the difference of each group from the others.

Everything is computed from the groups that are shown. The others of a group are the other groups that are shown, so
no difference and no test says anything about a group that is withheld. All numbers are by method unbiased: an answer
that leans on the same prior in every group would understate differences.
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import product

import numpy as np

from priorveil.errors import NotIdentifiable, TooLarge
from priorveil.plans.composition import Names
from priorveil.priors import Label
from priorveil.reading.estimate import Estimate
from priorveil.reading.moments import joint_confidence
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally_reading import QUICK
from priorveil.results.document import Difference, DifferenceTable, GroupComparison, IndependenceTest
from priorveil.results.form_estimates import PartEstimates, group_text
from priorveil.results.statistic_tables import (
    NO_ATTRIBUTE,
    amount_decimals,
    label_cells,
    share_decimals,
    statistic_row,
)
from priorveil.statistics.comparing import by_reports_alone, p_value
from priorveil.statistics.independence import group_test


def compare_groups(part: PartEstimates, confidence: float, simultaneous: bool) -> GroupComparison | None:
    """The groups of a part that are shown, compared with each other.

    None if they are fewer than two, if the reports alone do not determine the statistics, if these are too many, or if
    the query asks for averages.
    """
    shown = {
        text: estimate
        for group, estimate in part.groups.items()
        if (text := group_text(group)) is not None and estimate.people > 0
    }
    first = next(iter(shown.values()), None)
    if first is None or len(shown) < 2 or first.number_by_group is not None or len(first.labels) > QUICK:
        return None
    with suppress(NotIdentifiable, TooLarge):
        own = {text: by_reports_alone(estimate) for text, estimate in shown.items()}
        return GroupComparison(
            attributes=part.attributes,
            margin_of=part.margin_of,
            groups=tuple(own),
            statistic=first.statistic,
            independence=_test(list(own.values())),
            tables=tuple(_difference_tables(own, part.attributes, confidence, simultaneous)),
        )
    return None


def _test(estimates: list[Estimate]) -> IndependenceTest | None:
    with suppress(TooLarge):
        found = group_test(estimates)
        return IndependenceTest(found.chi_square, found.degrees, found.p_value, found.few_people)
    return None


def _difference_tables(
    groups: dict[str, Estimate], attributes: Names, confidence: float, simultaneous: bool
) -> list[DifferenceTable]:
    """The difference of each number of each group from that of the others, in a table for each kind of label."""
    first = next(iter(groups.values()))
    order = {label: at for at, label in enumerate(first.labels)}
    found = _differences(list(groups.values()), list(order))
    tested = _distinct(found) if simultaneous else 1
    decimals = share_decimals if first.counts_people else amount_decimals
    tables: dict[Names, list[Difference]] = {}
    for (label, at), (place, group) in product(order.items(), enumerate(groups)):
        cells = label_cells(first, label)
        heads = tuple(cells)
        if heads == NO_ATTRIBUTE:
            heads = attributes if first.histogram and len(attributes) == 1 else ()
        statistic = found[place][at]
        row = statistic_row(tuple(cells.values()), statistic, joint_confidence(confidence, tested), decimals)
        tables.setdefault(heads, []).append(Difference(group, row, min(1.0, tested * p_value(statistic))))
    return [DifferenceTable(heads, tuple(rows)) for heads, rows in tables.items()]


def _distinct(found: list[list[Statistic]]) -> int:
    """How many differences there are to test: two groups, or two shares that add up, have the same with other signs."""
    values, errors = (
        np.array([[getattr(s, name) for s in row] for row in found]) for name in ("value", "std_error")
    )
    columns = int((errors > 0).any(axis=0).sum())
    if (
        columns == 2
        and values.shape[1] == 2
        and (np.abs(values.sum(axis=1)) <= 1e-6 * errors.sum(axis=1)).all()
    ):
        columns = 1
    return max(columns, 1) * (1 if len(found) == 2 else len(found))


def _differences(estimates: list[Estimate], labels: list[Label]) -> list[list[Statistic]]:
    """The difference of each number per person from that of the other groups together: a list for each group."""
    moments = [estimate.moments_in_order(tuple(labels)) for estimate in estimates]
    sums, variances = (np.array([getattr(m, name) for m in moments]) for name in ("mean", "variance"))
    people = np.array([estimate.people for estimate in estimates])[:, None]
    others = people.sum() - people
    values = sums / people - (sums.sum(axis=0) - sums) / others
    errors = np.maximum(variances / people**2 + (variances.sum(axis=0) - variances) / others**2, 0.0)
    return [
        [Statistic(value, math.sqrt(error)) for value, error in zip(row, squares, strict=True)]
        for row, squares in zip(values.tolist(), errors.tolist(), strict=True)
    ]

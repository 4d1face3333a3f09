"""The tables of a result: the answer, means and quantiles of numbers, averages by group, shares of groups.

A row ends exactly where it reaches to the limit of what is possible, and what is not finite is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product

import numpy as np
from msgspec.structs import replace

from priorveil.arrays import Array
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.notes import Note
from priorveil.plans.composition import Names
from priorveil.priors import Domain, Label
from priorveil.priors.label_texts import label_parts, label_text, named_levels
from priorveil.reading.averages import Averages
from priorveil.reading.estimate import Estimate
from priorveil.reading.estimate_data import AnswerColumns, answer_columns
from priorveil.reading.estimate_notes import prior_is_assumed, unbounded_shares
from priorveil.reading.group_means import group_shares
from priorveil.reading.moments import Ends, normal_width, open_sides
from priorveil.reading.statistics import Statistic
from priorveil.results.document import ResultRow, ResultTable

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # those that are listed
# Values; averages of more take a while, and are listed only if the query asks for them.
_MOST_AVERAGED = 2_000
_FEWEST_DECIMALS = 1  # of a share in percent
_MOST_DECIMALS = 9
NO_ATTRIBUTE = ("value",)


# -- the answer ------------------------------------------------------------------------------------------


def answer(estimate: Estimate, confidence: float = 0.95) -> AnswerColumns:
    """The averages by group if the query asks for them, and otherwise the values of the estimate."""
    return answer_columns(estimate, estimate.averages, confidence)


def answer_size(estimate: Estimate) -> int:
    """How many numbers the answer has."""
    return len(estimate.labels) if estimate.averages is None else len(estimate.averages)


def answer_rows(
    estimate: Estimate, confidence: float = 0.95, indices: Sequence[int] | None = None
) -> list[ResultRow]:
    """A row for each number of the answer, or for those with these indices."""
    whole = answer(estimate, confidence)
    expected = None if prior_is_assumed(estimate) else whole.expected
    shortest = _shortest_half_width(whole.columns)
    rows = []
    for i in range(len(whole.labels)) if indices is None else indices:
        numbers = whole.columns[:, i].tolist()
        half_width = (numbers[3] - numbers[2]) / 2
        if estimate.counts_people:
            decimals = share_decimals(half_width / estimate.people) if estimate.people > 0 else None
        else:
            decimals = amount_decimals(half_width if estimate.averages is None else shortest)
            if decimals is None:  # the interval has no ends
                decimals = amount_decimals(normal_width(confidence) * numbers[1])
        label = tuple(label_cells(estimate, whole.labels[i]).values())
        limits = float(whole.limits[0, i]), float(whole.limits[1, i])
        rows.append(_row(label, numbers, limits, decimals, None if expected is None else float(expected[i])))
    return rows


def answer_margins(estimate: Estimate, confidence: float = 0.95) -> dict[Names, list[ResultRow]]:
    """The rows of the answer by the attributes that their labels have levels of; none if they have no attribute."""
    margins: dict[Names, list[ResultRow]] = {}
    for label, row in zip(estimate.labels, answer_rows(estimate, confidence), strict=False):
        heads = tuple(label_cells(estimate, label))
        margins.setdefault(() if heads == NO_ATTRIBUTE else heads, []).append(row)
    return margins


def per_person(row: ResultRow, people: float) -> ResultRow:
    """The row with its numbers divided by so many people."""
    names = ("value", "std_error", "low", "high", "least", "most", "expected")
    scaled = {name: None if (n := getattr(row, name)) is None else n / people for name in names}
    decimals = (
        None if row.low is None or row.high is None else amount_decimals((row.high - row.low) / (2 * people))
    )
    return replace(row, **scaled, decimals=decimals)


# -- means, quantiles and groups -------------------------------------------------------------------------


def number_tables(
    estimate: Estimate, confidence: float = 0.95, attribute: str | None = None
) -> Iterator[ResultTable]:
    """The means of numbers on a grid, over all and by group, or quantiles of numbers in cells; none for other values.

    `attribute` is the name of values that are numbers themselves. There are also none if reports do not determine them,
    if there are no reports, or if the cohorts have different numbers.
    """
    domain = estimate.readings[0].prior.domain if estimate.readings else None
    if domain is None:
        return
    with suppress(NotIdentifiable, InvalidInput):
        if domain.points is not None:
            yield _mean_table(attribute, estimate.mean(domain.points.tolist()), confidence)
        elif domain.edges is not None:
            rows = tuple(statistic_row([f"{q:g}"], estimate.quantile(q), confidence) for q in QUANTILES)
            yield ResultTable("quantile", (), (), attribute, rows, ())
    for name in domain.grids:
        with suppress(NotIdentifiable, InvalidInput):
            yield _mean_table(name, estimate.mean(name), confidence)
    yield from _average_tables(estimate, domain, confidence)


def _mean_table(name: str | None, mean: Statistic, confidence: float) -> ResultTable:
    return ResultTable("mean", (), (), name, (statistic_row(["mean"], mean, confidence),), ())


def _average_tables(estimate: Estimate, domain: Domain, confidence: float) -> Iterator[ResultTable]:
    """The averages of every grid by every other attribute alone, but for those that the query asks for."""
    if len(domain) > _MOST_AVERAGED:
        return
    others = [name for name in domain.levels if name not in domain.grids]
    for number, by in product(domain.grids, others):
        if (number, (by,)) != estimate.number_by_group:
            with suppress(NotIdentifiable, InvalidInput):
                yield averages_table(estimate.mean(number, by=by), confidence)


def averages_table(averages: Averages, confidence: float = 0.95) -> ResultTable:
    """The average of each group, all to the second digit of the shortest interval, so that groups compare."""
    rows = [
        statistic_row(label_parts(label), statistic, confidence)
        for label, statistic in zip(averages.labels, averages.statistics, strict=True)
    ]
    half_widths = [(row.high - row.low) / 2 for row in rows if row.low is not None and row.high is not None]
    decimals = amount_decimals(min((width for width in half_widths if width > 0), default=math.inf))
    even = tuple(replace(row, decimals=decimals) for row in rows)
    return ResultTable("average", averages.by, averages.by, averages.number, even, ())


def shares_within(estimate: Estimate, groups: Sequence[str], confidence: float = 0.95) -> ResultTable:
    """The shares of the levels of other attributes within the groups that these attributes of a table form."""
    domain = estimate.readings[0].prior.domain
    _, members = domain.margin(groups, "within")
    others = [name for name in estimate.attributes if name not in groups]
    if not others:
        raise InvalidInput("within", list(groups), "no attribute is left whose shares to show: leave one out")
    levels, rows = domain.margin(others)
    shares = [group_shares(estimate, row, groups) for row in rows]
    cells = [
        statistic_row((*label_parts(group), *level), share.statistics[place], confidence, share_decimals)
        for place, group in enumerate(shares[0].labels)
        for level, row, share in zip(levels, rows, shares, strict=True)
        if (row * members[place]).any()  # the table has this combination
    ]
    return ResultTable("share within", (*groups, *others), tuple(groups), others[-1], tuple(cells), ())


def shares_among(
    estimate: Estimate, labels: Sequence[Label], attributes: Names, confidence: float = 0.95
) -> ResultTable:
    """The shares of these labels among the people who have one of them."""
    rows = [
        statistic_row(label_parts(label), estimate.ratio([label], labels), confidence, share_decimals)
        for label in labels
    ]
    return ResultTable("share among", attributes, (), attributes[-1], tuple(rows), ())


def unbounded_within(estimate: Estimate, groups: Sequence[str], confidence: float) -> tuple[Note, ...]:
    """Notes that the reports do not bound the shares within some groups, and how many people would; none if they do."""
    everybody = np.ones(len(estimate.readings[0].prior))
    return unbounded_shares(group_shares(estimate, everybody, groups), confidence)


def shown_first(estimate: Estimate, most: int) -> list[int]:
    """What to show, by index: all in their order; of more than `most` those that the prior expects most.

    Not the largest estimates: of many they are large by chance, and most of their intervals would miss the truth.
    Statistics that are not counts, or of which no prior is known, are shown in their order.
    """
    shown = list(range(answer_size(estimate)))
    if len(shown) > most and estimate.histogram and (expected := estimate.expected) is not None:
        shown.sort(key=lambda index: -expected[index])
    return shown[:most]


def largest_half_width(estimate: Estimate, confidence: float) -> float:
    """The largest distance from a value of the answer to an end of its interval, per person.

    An interval of an average of a group may reach further on one side. Where the estimate counts nobody in a group, the
    distance is infinite.
    """
    values, _, low, high = answer(estimate, confidence).columns
    distances = np.maximum(values - low, high - values)
    distances[np.isnan(values)] = math.inf
    half_width = float(np.max(distances, initial=0.0))
    return half_width if estimate.averages is not None else half_width / estimate.people


def statistic_row(
    label: Sequence[Label],
    statistic: Statistic,
    confidence: float = 0.95,
    decimals: Callable[[float], int | None] | None = None,
) -> ResultRow:
    """A single number as the row of a table; `decimals` are those of an amount, unless another function is given."""
    low, high = statistic.interval(confidence)
    numbers = [statistic.value, statistic.std_error, low, high]
    shown = (decimals or amount_decimals)((high - low) / 2)
    return _row(tuple(map(label_text, label)), numbers, statistic.limits, shown)


def _row(
    label: tuple[str, ...],
    numbers: Sequence[float],
    limits: Ends,
    decimals: int | None,
    expected: float | None = None,
) -> ResultRow:
    """The row of a value, its standard error and both ends."""
    value, std_error, low, high = numbers
    no_low, no_high = open_sides((low, high), limits)
    return ResultRow(
        label=label,
        value=_finite(value),
        std_error=_finite(std_error),
        low=_finite(limits[0] if no_low else low),
        high=_finite(limits[1] if no_high else high),
        least=_finite(limits[0]),
        most=_finite(limits[1]),
        expected=expected,
        decimals=decimals,
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def label_cells(estimate: Estimate, label: Label) -> dict[str, str]:
    """The level of each attribute that a label has; of other labels the text, under `value`."""
    names, parts = estimate.attributes, label_parts(label)
    if len(names) == len(parts) and (isinstance(label, tuple) or estimate.histogram):
        return dict(zip(names, map(label_text, parts), strict=True))
    return named_levels(str(label), names) or {NO_ATTRIBUTE[0]: label_text(label)}


# -- decimals --------------------------------------------------------------------------------------------


def amount_decimals(half_width: float) -> int | None:
    """How many decimals show two digits of the half width of an interval; None if that is zero or infinite.

    >>> amount_decimals(345.6), amount_decimals(0.0023), amount_decimals(0.0)
    (0, 4, None)
    """
    if not 0 < half_width < math.inf:
        return None
    return min(max(1 - math.floor(math.log10(half_width)), 0), 12)


def share_decimals(half_width: float) -> int:
    """How many decimals of a percentage show two digits of the half width, which is a share; at least one.

    >>> share_decimals(0.02), share_decimals(0.00031), share_decimals(0.0)
    (1, 3, 1)
    """
    if not 0 < half_width < 0.1:
        return _FEWEST_DECIMALS
    return max(_FEWEST_DECIMALS, min(_MOST_DECIMALS, 1 - math.floor(math.log10(100 * half_width))))


def _shortest_half_width(columns: Array) -> float:
    half_widths = (columns[3] - columns[2]) / 2
    return float(half_widths.min(initial=math.inf, where=half_widths > 0))

"""The numbers of an estimate as tables: the answer, statistics of numbers, averages by group, shares within groups.

Every table says what kind of numbers it has and which attributes its rows have levels of. `words` makes texts of them,
and results hold them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.notes import Note
from priorveil.priors import Domain, Label
from priorveil.priors.label_texts import label_parts, label_text, named_levels
from priorveil.reading.averages import Averages
from priorveil.reading.estimate import Estimate
from priorveil.reading.estimate_data import AnswerColumns, answer_columns
from priorveil.reading.estimate_notes import needs_no_prior, unbounded_shares
from priorveil.reading.group_means import group_shares
from priorveil.reading.moments import Ends, normal_width, open_sides
from priorveil.reading.statistics import Statistic

# Statistics of groups: of the number `of` in each, shares of their people, and shares of the people with some labels.
GroupKind = Literal["average", "share within", "share among"]
# Counts of people, averages of groups or other statistics that the query asks for; means and quantiles of numbers.
TableKind = Literal["answer", "numbers", GroupKind]
Unit = Literal["people", "share", "amount"]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # those that are listed
# Values; averages of more take a while, and are listed only if the query asks for them.
_MOST_AVERAGED = 2_000
_FEWEST_DECIMALS = 1  # of a share in percent
_MOST_DECIMALS = 9


@dataclass(frozen=True)
class StatisticRow:
    """A statistic: its label, a text for each column of labels, and its number with the ends of its interval.

    `expected` is what the prior expects of it, if that is known. `limits` are the least and the most that it can be;
    infinite where the method does not limit it. `decimals` is how many are worth showing, as many as show two digits of
    the half width: those of a share in percent for counts of people and shares, and None where the interval does not
    say.
    """

    label: tuple[str, ...]
    value: float
    std_error: float
    low: float
    high: float
    expected: float | None
    limits: Ends
    decimals: int | None

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """The value, its standard error and its interval."""
        return self.value, self.std_error, self.low, self.high

    def per_person(self, people: float) -> StatisticRow:
        """The row with its numbers divided by so many people."""
        value, error, low, high = (number / people for number in self.numbers)
        expected = None if self.expected is None else self.expected / people
        least, most = (limit / people for limit in self.limits)
        decimals = amount_decimals((high - low) / 2)
        return StatisticRow(self.label, value, error, low, high, expected, (least, most), decimals)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends of the interval; None on a side where it reaches to the limit of what is possible."""
        no_low, no_high = open_sides((self.low, self.high), self.limits)
        return None if no_low else self.low, None if no_high else self.high

    @property
    def is_unbounded(self) -> bool:
        """Whether the interval has every possible number."""
        return self.ends == (None, None)


@dataclass(frozen=True)
class StatisticTable:
    """Statistics of one kind, whose labels have the same columns, `heads`.

    The heads are attributes, or "value" for labels without one. A table of `numbers` has the heads "statistic" and
    "of": what each number is ("mean", "quantile"), and of which attribute or which share of people. `of` is the
    attribute that the statistics are of, and `by` has those that form groups. `people` is the number of people whose
    counts these are, or the sum of their weights; None if they are not counts of people.
    """

    kind: TableKind
    heads: tuple[str, ...]
    rows: tuple[StatisticRow, ...]
    unit: Unit
    of: str = ""
    by: tuple[str, ...] = ()
    people: float | None = None

    @property
    def quantity(self) -> str:
        """What the numbers are, as the title of their column."""
        name = "mean" if self.kind in ("answer", "average") else self.kind
        return f"{name} {self.of}" if self.of else "estimate"


def answer(estimate: Estimate, confidence: float = 0.95) -> AnswerColumns:
    """The averages by group if the query asks for them, and otherwise the values of the estimate."""
    return answer_columns(estimate, estimate.averages, confidence)


def answer_size(estimate: Estimate) -> int:
    """How many numbers the answer has."""
    return len(estimate.labels) if estimate.averages is None else len(estimate.averages)


def answer_rows(
    estimate: Estimate, confidence: float = 0.95, indices: Sequence[int] | None = None
) -> list[StatisticRow]:
    """A row for each number of the answer, or for those with these indices."""
    whole = answer(estimate, confidence)
    expected = None if needs_no_prior(estimate) else whole.expected
    shortest = _shortest_half_width(whole.columns)
    rows = []
    for i in range(len(whole.labels)) if indices is None else indices:
        value, error, low, high = whole.columns[:, i].tolist()
        half_width = (high - low) / 2
        if estimate.counts_people:
            decimals = share_decimals(half_width / estimate.people) if estimate.people > 0 else None
        else:
            decimals = amount_decimals(half_width if estimate.averages is None else shortest)
            if decimals is None:  # the interval has no ends
                decimals = amount_decimals(normal_width(confidence) * error)
        rows.append(
            StatisticRow(
                tuple(_label_cells(estimate, whole.labels[i]).values()),
                value,
                error,
                low,
                high,
                None if expected is None else float(expected[i]),
                (float(whole.limits[0, i]), float(whole.limits[1, i])),
                decimals,
            )
        )
    return rows


def answer_tables(
    estimate: Estimate, confidence: float = 0.95, indices: Sequence[int] | None = None
) -> list[StatisticTable]:
    """The answer, or the rows with these indices, as a table for each margin that they belong to."""
    margins: dict[tuple[str, ...], list[StatisticRow]] = {}
    places = range(answer_size(estimate)) if indices is None else indices
    for i, row in zip(places, answer_rows(estimate, confidence, places), strict=True):
        margins.setdefault(tuple(_label_cells(estimate, estimate.labels[i])), []).append(row)
    of = "" if estimate.number_by_group is None else estimate.number_by_group.number
    people = estimate.people if estimate.counts_people else None
    unit: Unit = "people" if estimate.counts_people else "amount"
    return [
        StatisticTable("answer", heads, tuple(rows), unit, of, people=people)
        for heads, rows in margins.items()
    ]


def number_tables(estimate: Estimate, confidence: float = 0.95) -> list[StatisticTable]:
    """The means of numbers on a grid, over all and by group, or quantiles of numbers in cells; none for other values.

    There are none either if reports do not determine them, if there are no reports, or if cohorts have other numbers.
    """
    domain = estimate.readings[0].prior.domain if estimate.readings else None
    if domain is None:
        return []
    statistics: dict[tuple[str, str], Statistic] = {}
    with suppress(NotIdentifiable, InvalidInput):
        if domain.points is not None:
            statistics = {("mean", ""): estimate.mean(domain.points.tolist())}
        elif domain.edges is not None:
            statistics = {("quantile", f"{q:g}"): estimate.quantile(q) for q in QUANTILES}
    for name in domain.grids:
        with suppress(NotIdentifiable, InvalidInput):
            statistics["mean", name] = estimate.mean(name)
    rows = [statistic_row(label, statistic, confidence) for label, statistic in statistics.items()]
    tables = [StatisticTable("numbers", ("statistic", "of"), tuple(rows), "amount")] if rows else []
    return [*tables, *_average_tables(estimate, domain, confidence)]


def _average_tables(estimate: Estimate, domain: Domain, confidence: float) -> Iterator[StatisticTable]:
    """The averages of every grid by every other attribute alone, but for those that the query asks for."""
    if len(domain) > _MOST_AVERAGED:
        return
    others = [name for name in domain.levels if name not in domain.grids]
    for number, by in product(domain.grids, others):
        if (number, (by,)) != estimate.number_by_group:
            with suppress(NotIdentifiable, InvalidInput):
                yield averages_table(estimate.mean(number, by=by), confidence)


def averages_table(averages: Averages, confidence: float = 0.95) -> StatisticTable:
    """The average of each group, all to the second digit of the shortest interval, so that groups compare."""
    rows = [
        statistic_row(label_parts(label), statistic, confidence)
        for label, statistic in zip(averages.labels, averages.statistics, strict=True)
    ]
    half_widths = ((row.high - row.low) / 2 for row in rows)
    decimals = amount_decimals(min((width for width in half_widths if width > 0), default=math.inf))
    even = tuple(replace(row, decimals=decimals) for row in rows)
    return StatisticTable("average", averages.by, even, "amount", averages.number, averages.by)


def shares_within(estimate: Estimate, groups: Sequence[str], confidence: float = 0.95) -> StatisticTable:
    """The shares of the levels of other attributes within the groups that these attributes of a table form."""
    domain = estimate.readings[0].prior.domain
    _, members = domain.margin(groups, "within")
    others = [name for name in estimate.attributes if name not in groups]
    if not others:
        raise InvalidInput("within", list(groups), "no attribute is left whose shares to show: leave one out")
    levels, rows = domain.margin(others)
    shares = [group_shares(estimate, row, groups) for row in rows]
    cells = [
        statistic_row((*label_parts(group), *level), share.statistics[place], confidence, "share")
        for place, group in enumerate(shares[0].labels)
        for level, row, share in zip(levels, rows, shares, strict=True)
        if (row * members[place]).any()  # the table has this combination
    ]
    return StatisticTable(
        "share within", (*groups, *others), tuple(cells), "share", others[-1], tuple(groups)
    )


def shares_among(
    estimate: Estimate,
    labels: Sequence[Label],
    heads: tuple[str, ...],
    confidence: float = 0.95,
) -> StatisticTable:
    """The shares of these labels among the people who have one of them."""
    rows = [
        statistic_row(label_parts(label), estimate.ratio([label], labels), confidence, "share")
        for label in labels
    ]
    return StatisticTable("share among", heads, tuple(rows), "share", heads[-1])


def unbounded_within(estimate: Estimate, groups: Sequence[str], confidence: float) -> tuple[Note, ...]:
    """That the reports do not bound the shares within some groups, and how many people would; none if they do."""
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
    label: Sequence[Label], statistic: Statistic, confidence: float = 0.95, unit: Unit = "amount"
) -> StatisticRow:
    """A single number as the row of a table."""
    low, high = statistic.interval(confidence)
    decimals = (amount_decimals if unit == "amount" else share_decimals)((high - low) / 2)
    texts = tuple(map(label_text, label))
    numbers = statistic.value, statistic.std_error, low, high
    return StatisticRow(texts, *numbers, None, statistic.limits, decimals)


def _label_cells(estimate: Estimate, label: Label) -> dict[str, str]:
    """The level of each attribute that a label has; of other labels the text, under `value`."""
    names, parts = estimate.attributes, label_parts(label)
    if len(names) == len(parts) and (isinstance(label, tuple) or estimate.histogram):
        return dict(zip(names, map(label_text, parts), strict=True))
    return named_levels(str(label), names) or {"value": label_text(label)}


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

"""The words of estimates and of precision: tables as data, with the texts of their numbers, and sentences.

Printed estimates, the command line, plots and the dashboard lay these out; none of them makes its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from priorveil import notebook_html
from priorveil.arrays import Array
from priorveil.errors import InvalidInput, NotIdentifiable, plural
from priorveil.formatting import amount_texts, p_value_text, percent, round_up, share_text
from priorveil.priors import Domain, Label
from priorveil.priors.label_texts import label_parts, label_text, named_levels
from priorveil.reading.moments import UNLIMITED, Ends, normal_width, open_sides
from priorveil.reading.prior_check import DOUBTFUL

if TYPE_CHECKING:
    from priorveil.reading.averages import Averages
    from priorveil.reading.estimate import Estimate, EstimateMethod
    from priorveil.reading.precision import Precision
    from priorveil.reading.statistics import Statistic
    from priorveil.reading.tally import Tally

NUMBERS = ("numbers",)  # the heads of the table of means and quantiles
AVERAGE = "average per person"
GROUP_AVERAGE = "average of a group"
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # those that are printed
_NOTABLE = 1.2  # a gain of mle that is worth a sentence
_MOST_SHOWN = 50  # statistics that are printed
# Values; averages of more take a while, and are printed only if the query asks for them.
_MOST_AVERAGED = 2_000
_SUMMARISED = 3  # statistics in the representation of an estimate
_LONGEST_LABEL = 60  # letters; longer ones would not leave room for the numbers
_NAMED_GROUPS = 3  # that contradict the prior
_FEW_PEOPLE = 50  # an interval that leaves fewer on one side rests on so few that its level is not reached
FEW_PEOPLE = (
    f"An interval that ends below {_FEW_PEOPLE} of the people who were asked, or begins above all but {_FEW_PEOPLE} of "
    "them, may rest on few reports, and then contains the truth less often than its level says."
)
OUTSIDE_UNBIASED = (
    "Rare values come out too common if no share is negative, and over many values this adds up: the answer is outside "
    "the interval of method unbiased. For cumulative shares, quantiles and sums of many values use that method."
)
UNBOUNDED_AVERAGE = (
    "The reports do not bound the average of a group without an interval: too few people reported to exclude that "
    "nobody belongs to it. Its average is nan where the estimate counts nobody."
)
_UNBOUNDED_SHARE = (
    "The reports do not bound the shares within a group without an interval: too few people reported to exclude that "
    "nobody belongs to it."
)
ABOUT_POINTS = (
    "Numbers were rounded at random to the points of a grid, and this is about the points, not about the numbers. "
    "For shares of numbers use Prior.cells, for their mean use mean()."
)
ABOUT_CELLS = (
    "This is the sum of one number for each cell, and its interval is about those numbers. People may be anywhere in "
    "their cells: the interval of mean() allows for that."
)
_UNBOUNDED = "not bounded"  # the text of the ends of an interval that has every possible number
METHOD_TITLES: dict[EstimateMethod, str] = {
    "auto": "the default (recommended)",
    "unbiased": "from the reports alone",
    "mmse": "from the reports and the prior",
    "mle": "most likely shares, none below zero",
}
LEANING = "These estimates lean on the prior: more reports do not correct a wrong one."
NO_CHECK = (
    "Prior check: none. Reports are too few, or say too little, or the plan is for a set of priors, or can check its "
    "own prior only."
)
NO_PRIOR = "Prior check: none. Nobody knows how common the values are, and this method does not use a prior."
RARE_CHANGES = (
    "The prior check does not look at all values one by one: a change among rare or neighbouring ones can pass, "
    "however large."
)
CHANGES_BY_ROW = (
    "The reports need not tell all values apart: the prior check never notices a change among values that they do "
    "not, however large."
)

ASSUMES = {
    "mmse": "the prior is right: the spread is that of the posterior",
    "set": "a prior of the set is right: the spread is that of the posterior under the one that reports are read at, "
    "and intervals add the largest bias under the others",
    "unbiased": "nothing about the prior: the spread is the sampling noise of the reports",
    "mle": "nothing about the prior: the intervals are those of method unbiased, within what shares can be",
}

WEIGHTED = {
    "mmse": "the prior is right, and right for people of every weight: the spread is that of the posterior",
    "mle": "nothing about the prior: weights multiply the log-likelihood, and the intervals are those of method "
    "unbiased, within what shares can be",
}

Texts = Callable[
    [tuple[float, ...], float], tuple[str, ...]
]  # of numbers, given the half width of their interval


# -- tables ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StatisticRow:
    """A statistic: its label, a text for each column of labels, and its number with the ends of its interval.

    `expected` is what the prior expects of it, if that is known. The texts are the same numbers as people read them.
    `limits` are the least and the most that it can be; infinite where the method does not limit it.
    """

    label: tuple[str, ...]
    value: float
    std_error: float
    low: float
    high: float
    expected: float | None
    value_text: str
    low_text: str
    high_text: str
    expected_text: str
    limits: Ends

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """The value, its standard error and its interval."""
        return self.value, self.std_error, self.low, self.high

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends of the interval; None on a side where it reaches to the limit of what is possible."""
        no_low, no_high = open_sides((self.low, self.high), self.limits)
        return None if no_low else self.low, None if no_high else self.high

    @property
    def is_unbounded(self) -> bool:
        """Whether the interval has every possible number."""
        return self.ends == (None, None)

    @property
    def interval_text(self) -> str:
        """The interval in a few words."""
        match self.ends:
            case None, None:
                return _UNBOUNDED
            case None, _:
                return f"at most {self.high_text}"
            case _, None:
                return f"at least {self.low_text}"
        return f"{self.low_text.removesuffix(' %')} to {self.high_text}"


@dataclass(frozen=True)
class StatisticTable:
    """Statistics whose labels have the same columns, `heads`; `quantity` says what their numbers are.

    `people` is the number of people whose counts these are, or the sum of their weights; None if they are not counts of
    people.
    """

    heads: tuple[str, ...]
    rows: tuple[StatisticRow, ...]
    quantity: str = "estimate"
    people: float | None = None

    def name_of(self, row: StatisticRow) -> str:
        """A row in one text: with the quantity and the names of the columns, if it is an average of a group."""
        if self.quantity == "estimate":
            return ", ".join(row.label)
        return ", ".join([self.quantity, *map("{}={}".format, self.heads, row.label)])


@dataclass(frozen=True)
class Description:
    """What people are told about an estimate: the lines above its figures, tables, and notes.

    `selection` says which statistics the tables show and why, None if they show all.
    """

    headlines: tuple[str, ...]
    selection: str | None
    tables: tuple[StatisticTable, ...]
    notes: tuple[str, ...]
    confidence: float

    @property
    def interval_heads(self) -> tuple[str, str]:
        """The titles of two columns with the ends of the intervals."""
        return f"{percent(self.confidence)} low", "high"


@dataclass(frozen=True)
class Answer:
    """The numbers that answer the query, one for each label; `columns` has values, standard errors, and both ends.

    `limits` has the least and the most that each can be.
    """

    labels: tuple[Label, ...]
    columns: Array
    limits: Array
    expected: Array | None


def answer(estimate: Estimate, confidence: float = 0.95) -> Answer:
    """The averages by group if the query asks for them, and otherwise the values of the estimate."""
    averages, labels, expected = estimate.averages, estimate.labels, estimate.expected
    if averages is not None:
        labels, expected = labels[: len(averages)], averages.expected
    numbers = estimate if averages is None else averages
    limits = np.outer(UNLIMITED, np.ones(len(labels))) if numbers.limits is None else numbers.limits
    return Answer(labels, _columns(numbers, confidence), limits, expected)


def _columns(numbers: Estimate | Averages, confidence: float) -> Array:
    """The values, their standard errors, and the ends of their intervals."""
    return np.stack([numbers.values, numbers.std_error, *numbers.interval(confidence)])


def describe(
    estimate: Estimate,
    confidence: float = 0.95,
    most: int = _MOST_SHOWN,
    others: Sequence[StatisticTable] | None = None,
) -> Description:
    """An estimate as people read it: a table for the values, or for each margin, and one for statistics of numbers.

    Of more than `most` statistics there are those of `shown_first`. `others` are the tables after the first ones, by
    default `number_tables`.
    """
    indices = shown_first(estimate, most)
    tables = list(_tables_by_heads(estimate, indices, value_rows(estimate, confidence, indices)))
    tables += number_tables(estimate, confidence) if others is None else others
    notes = estimate.notes
    explained = any(note.startswith(UNBOUNDED_AVERAGE) for note in notes)
    averages = [row for table in tables if table.quantity != "estimate" for row in table.rows]
    if not explained and any(row.is_unbounded for row in averages):
        notes += (UNBOUNDED_AVERAGE,)
    selection = selection_text(estimate, indices)
    return Description(headlines(estimate), selection, tuple(tables), notes, confidence)


def value_rows(
    estimate: Estimate, confidence: float = 0.95, indices: Sequence[int] | None = None
) -> list[StatisticRow]:
    """A row for each number of the answer, or for those with these indices."""
    whole = answer(estimate, confidence)
    expected = None if _needs_no_prior(estimate) else whole.expected
    texts: Texts = _count_texts if estimate.counts_people else amount_texts
    if estimate.averages is not None:
        texts = _texts_of_averages(whole.columns)
    return [
        _row(
            tuple(_label_cells(estimate, whole.labels[i]).values()),
            tuple(whole.columns[:, i].tolist()),
            None if expected is None else float(expected[i]),
            texts,
            (float(whole.limits[0, i]), float(whole.limits[1, i])),
        )
        for i in (range(len(whole.labels)) if indices is None else indices)
    ]


def number_tables(estimate: Estimate, confidence: float = 0.95) -> list[StatisticTable]:
    """The means of numbers on a grid, over all and by group, or quantiles of numbers in cells; none for other values.

    There are none either if reports do not determine them, if there are no reports, or if cohorts have other numbers.
    """
    domain = estimate.readings[0].prior.domain if estimate.readings else None
    if domain is None:
        return []
    statistics: dict[str, Statistic] = {}
    with suppress(NotIdentifiable, InvalidInput):
        if domain.points is not None:
            statistics = {"mean": estimate.mean(domain.points.tolist())}
        elif domain.edges is not None:
            statistics = {f"quantile {q:g}": estimate.quantile(q) for q in QUANTILES}
    for name in domain.grids:
        with suppress(NotIdentifiable, InvalidInput):
            statistics[f"mean {name}"] = estimate.mean(name)
    rows = [_statistic_row([name], statistic, confidence) for name, statistic in statistics.items()]
    tables = [StatisticTable(NUMBERS, tuple(rows))] if rows else []
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
    """The average of each group."""
    columns = _columns(averages, confidence)
    texts = _texts_of_averages(columns)
    rows = [
        _row(tuple(map(label_text, label_parts(label))), tuple(numbers), None, texts, statistic.limits)
        for label, numbers, statistic in zip(
            averages.labels, columns.T.tolist(), averages.statistics, strict=True
        )
    ]
    return StatisticTable(averages.by, tuple(rows), averages.title)


def shares_within(estimate: Estimate, groups: Sequence[str], confidence: float = 0.95) -> StatisticTable:
    """The shares of the levels of other attributes within the groups that these attributes of a table form."""
    domain = estimate.readings[0].prior.domain
    _, members = domain.margin(groups, "within")
    others = [name for name in estimate.attributes if name not in groups]
    if not others:
        raise InvalidInput("within", list(groups), "no attribute is left whose shares to show: leave one out")
    levels, rows = domain.margin(others)
    shares = [estimate.group_shares(row, groups) for row in rows]
    cells = [
        _statistic_row(
            (*label_parts(group), *level), share.statistics[place], confidence, _precise_share_texts
        )
        for place, group in enumerate(shares[0].labels)
        for level, row, share in zip(levels, rows, shares, strict=True)
        if (row * members[place]).any()  # the table has this combination
    ]
    return StatisticTable((*groups, *others), tuple(cells), f"share within {' x '.join(groups)}")


def shares_among(
    estimate: Estimate,
    labels: Sequence[Label],
    heads: tuple[str, ...],
    quantity: str,
    confidence: float = 0.95,
) -> StatisticTable:
    """The shares of these labels among the people who have one of them."""
    rows = [
        _statistic_row(label_parts(label), estimate.ratio([label], labels), confidence, _precise_share_texts)
        for label in labels
    ]
    return StatisticTable(heads, tuple(rows), quantity)


def averages_text(averages: Averages) -> str:
    """The averages by group with 95 % intervals, as plain text."""
    return _plain_text(describe_averages(averages))


def describe_averages(averages: Averages) -> Description:
    """The averages by group as people read them."""
    note = unbounded_note(averages)
    notes = () if note is None else (note,)
    return Description(headlines(averages.statistics[0]), None, (averages_table(averages),), notes, 0.95)


def unbounded_note(averages: Averages) -> str | None:
    """That the reports do not bound the averages of some groups, and how many people would; None if they do."""
    return _bounding_note(UNBOUNDED_AVERAGE, averages, 0.95)


def unbounded_shares_note(estimate: Estimate, groups: Sequence[str], confidence: float) -> str | None:
    """That the reports do not bound the shares within some groups, and how many people would; None if they do."""
    everybody = np.ones(len(estimate.readings[0].prior))
    return _bounding_note(_UNBOUNDED_SHARE, estimate.group_shares(everybody, groups), confidence)


def _bounding_note(text: str, averages: Averages, confidence: float) -> str | None:
    unbounded = [each for each in averages.statistics if each.is_unbounded(confidence)]
    if not unbounded:
        return None
    needed = [each.people_to_bound for each in unbounded]
    if None in needed:
        return text
    level = (normal_width(confidence) / normal_width(0.95)) ** 2
    return f"{text} About {people_text(level * max(filter(None, needed)))} would be enough."


def people_text(people: float) -> str:
    """A number of people, with two digits and rounded up.

    >>> people_text(12345.6), people_text(3.4)
    ('13,000 people', '4 people')
    """
    return f"{round_up(math.ceil(people))} people"


def number_records(estimate: Estimate, confidence: float = 0.95) -> list[dict[str, Any]]:
    """The statistics of `number_tables` as JSON."""
    return [record for table in number_tables(estimate, confidence) for record in table_records(table)]


def table_records(table: StatisticTable) -> list[dict[str, Any]]:
    """The rows of a table as JSON."""
    names = ("value", "std_error", "lower", "upper")
    return [{"name": table.name_of(row), **dict(zip(names, row.numbers, strict=True))} for row in table.rows]


def shown_first(estimate: Estimate, most: int = _MOST_SHOWN) -> list[int]:
    """What to show, by index: all in their order; of more than `most` those that the prior expects most.

    Not the largest estimates: of many they are large by chance, and most of their intervals would miss the truth.
    Statistics that are not counts, or of which no prior is known, are shown in their order.
    """
    shown = list(range(_size(estimate)))
    if len(shown) > most and estimate.histogram and (expected := estimate.expected) is not None:
        shown.sort(key=lambda index: -expected[index])
    return shown[:most]


def selection_text(estimate: Estimate, indices: Sequence[int]) -> str | None:
    """Which statistics are shown and why, in a sentence; None if all are."""
    count, size = len(indices), _size(estimate)
    if count == size:
        return None
    if list(indices) == list(range(count)):
        return f"The first {count:,} of {size:,} {'values' if estimate.histogram else 'statistics'}."
    why = "of so many estimates, the largest are large by chance"
    return f"The {count:,} of {size:,} values that the prior expects most: {why}."


def _size(estimate: Estimate) -> int:
    """How many numbers the answer has."""
    return len(estimate.labels) if estimate.averages is None else len(estimate.averages)


def per_person_table(estimate: Estimate, confidence: float, most: int) -> StatisticTable:
    """Shares of the people; statistics other than counts have a row for the average per person and one for the total.

    Of more than `most` statistics there are those of `shown_first`.
    """
    people, indices = estimate.people, shown_first(estimate, most)
    rows: list[StatisticRow] = []
    for i, row in zip(indices, value_rows(estimate, confidence, indices), strict=True):
        name = label_text(estimate.labels[i])
        if estimate.counts_people:
            rows.append(_scaled(row, people, name, _share_texts))
        elif estimate.averages is not None:
            rows.append(_scaled(row, 1, name, amount_texts))
        else:
            average, total = _average_and_total(name, people, estimate.is_sum)
            rows += [_scaled(row, people, average, amount_texts), _scaled(row, 1, total, amount_texts)]
    head = "Answer" if estimate.counts_people else "Quantity"
    if estimate.averages is not None:
        head = _quantity(estimate)
    return StatisticTable((head,), tuple(rows))


def _average_and_total(name: str, people: float, is_sum: bool) -> tuple[str, str]:
    """The names of a statistic per person and of its total; a sum needs no name of its own."""
    if is_sum:
        return "Average per person", f"Total of {people:,.0f} people"
    return f"{name}, {AVERAGE}", f"{name}, total of {people:,.0f} people"


def _scaled(row: StatisticRow, people: float, label: str, texts: Texts) -> StatisticRow:
    """The row with its numbers divided by so many people, under a label."""
    value, error, low, high = (number / people for number in row.numbers)
    expected = None if row.expected is None else row.expected / people
    least, most = (limit / people for limit in row.limits)
    return _row((label,), (value, error, low, high), expected, texts, (least, most))


def _row(
    label: tuple[str, ...], numbers: tuple[float, ...], expected: float | None, texts: Texts, limits: Ends
) -> StatisticRow:
    """A row with its texts; the numbers are those of `StatisticRow.numbers`."""
    value, error, low, high = numbers
    amounts = (value, low, high) if expected is None else (value, low, high, expected)
    value_text, low_text, high_text, *rest = texts(amounts, (high - low) / 2)
    if all(open_sides((low, high), limits)):
        low_text = high_text = _UNBOUNDED
    return StatisticRow(
        label, value, error, low, high, expected, value_text, low_text, high_text, "".join(rest), limits
    )


def _statistic_row(
    label: Sequence[Label], statistic: Statistic, confidence: float = 0.95, texts: Texts = amount_texts
) -> StatisticRow:
    numbers = statistic.value, statistic.std_error, *statistic.interval(confidence)
    return _row(tuple(map(label_text, label)), numbers, None, texts, statistic.limits)


def _texts_of_averages(columns: Array) -> Texts:
    """All averages to the second digit of the shortest interval, so that groups compare; columns as in `Answer`."""
    half_widths = (columns[3] - columns[2]) / 2
    shortest = float(half_widths.min(initial=math.inf, where=half_widths > 0))
    return lambda numbers, half_width: amount_texts(numbers, shortest)


def _count_texts(numbers: tuple[float, ...], half_width: float) -> tuple[str, ...]:
    return tuple(f"{number:,.1f}" for number in numbers)


def _share_texts(numbers: tuple[float, ...], half_width: float) -> tuple[str, ...]:
    return tuple(map(share_text, numbers))


def _precise_share_texts(numbers: tuple[float, ...], half_width: float) -> tuple[str, ...]:
    """Shares in percent, with one decimal or as many as show two digits of the half width.

    >>> _precise_share_texts((0.59649, 0.6), 0.02), _precise_share_texts((0.59649, 0.6), 0.00031)
    (('59.6 %', '60.0 %'), ('59.649 %', '60.000 %'))
    """
    if not 0 < half_width < 0.1:
        return _share_texts(numbers, half_width)
    decimals = min(9, 1 - math.floor(math.log10(100 * half_width)))
    return tuple(f"{100 * number:,.{max(1, decimals)}f} %" for number in numbers)


def _tables_by_heads(
    estimate: Estimate, indices: Sequence[int], rows: Sequence[StatisticRow]
) -> Iterator[StatisticTable]:
    """A table for each margin that the rows belong to; `indices` are those of the rows in the estimate."""
    margins: dict[tuple[str, ...], list[StatisticRow]] = {}
    for i, row in zip(indices, rows, strict=True):
        margins.setdefault(tuple(_label_cells(estimate, estimate.labels[i])), []).append(row)
    for heads, margin_rows in margins.items():
        people = estimate.people if estimate.counts_people else None
        yield StatisticTable(heads, tuple(margin_rows), _quantity(estimate), people=people)


def _quantity(estimate: Estimate) -> str:
    """What the numbers of the answer are."""
    return "estimate" if estimate.number_by_group is None else estimate.number_by_group.title


def _label_cells(estimate: Estimate, label: Label) -> dict[str, str]:
    """The level of each attribute that a label has; of other labels the text, under `value`."""
    names, parts = estimate.attributes, label_parts(label)
    if len(names) == len(parts) and (isinstance(label, tuple) or estimate.histogram):
        return dict(zip(names, map(label_text, parts), strict=True))
    return named_levels(str(label), names) or {"value": label_text(label)}


def tally_facts(tally: Tally) -> list[tuple[str, str]]:
    """How many reports were counted and refused, and for which plan."""
    facts = [("reports", f"{tally.reports:,}")]
    if tally.refused:
        facts.append(("refused", ", ".join(f"{n:,} {reason}" for reason, n in tally.refused.items())))
    if tally.weighted is not None:
        facts.append(("sum of weights", f"{tally.weighted.total:,.6g}"))
    return [*facts, ("plan", tally.plan)]


def estimate_text(estimate: Estimate) -> str:
    """The estimate as plain text."""
    return _plain_text(describe(estimate))


def estimate_summary(estimate: Estimate) -> str:
    """The method, the reports and the first figures with their intervals, in a line."""
    size = _size(estimate)
    rows = value_rows(estimate, indices=range(min(size, _SUMMARISED)))
    figures = [f"{', '.join(row.label)} {row.value_text} ({row.interval_text})" for row in rows]
    figures += [f"and {size - len(rows):,} more"] if size > len(rows) else []
    return f"Estimate({estimate.method}, {plural(estimate.reports, 'report')}: {', '.join(figures)})"


def _plain_text(description: Description) -> str:
    lines = [*description.headlines, *_selection_lines(description)]
    for table in description.tables:
        lines += text_lines(*table_cells(table, description), len(table.heads))
    return "\n".join([*lines, *description.notes])


def _selection_lines(description: Description) -> list[str]:
    return [] if description.selection is None else [f"{description.selection} All are in to_frame()."]


def table_cells(
    table: StatisticTable, description: Description
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles of the columns of a table, and the texts of its rows.

    Counts of people are shares of them with intervals, and the counts are beside them.
    """
    people = table.people or 0
    if people <= 0:  # not counts, or weights that add up to nothing
        heads = (*table.heads, table.quantity, *description.interval_heads)
        return heads, [(*row.label, row.value_text, row.low_text, row.high_text) for row in table.rows]
    heads = (*table.heads, "share", *description.interval_heads, "people")
    shares = [_scaled(row, people, "", _precise_share_texts) for row in table.rows]
    return heads, [
        (*row.label, share.value_text, share.low_text, share.high_text, row.value_text)
        for row, share in zip(table.rows, shares, strict=True)
    ]


def estimate_html(estimate: Estimate) -> str:
    """The estimate for a notebook."""
    return _html(f"Estimate from {plural(estimate.reports, 'report')}", describe(estimate))


def averages_html(averages: Averages) -> str:
    """The averages by group with 95 % intervals, for a notebook."""
    return _html(f"{averages.title} by {', '.join(averages.by)}", describe_averages(averages))


def mean_name(number: str) -> str:
    """What the mean of a number is called, by the name of the number."""
    return f"mean {number}".strip()


def statistic_text(statistic: Statistic) -> str:
    """A single number with its name and its 95 % interval, in a line below its headlines."""
    row = _statistic_row([""], statistic)
    interval = unbounded_text(statistic) if row.is_unbounded else f"95 % interval {row.interval_text}"
    people = None if statistic.people is None else f"{statistic.people:,.12g} people"
    method = f"method {statistic.method}" if statistic.method else None
    source = ", ".join(filter(None, (method, people)))
    name = f"{statistic.name}: " if statistic.name else ""
    line = f"{name}{row.value_text}, {interval}{f' ({source})' if source else ''}"
    return "\n".join([*headlines(statistic), line])


def unbounded_text(statistic: Statistic) -> str:
    """That the reports do not bound a ratio, and how many people would."""
    text = f"the reports do not bound this {statistic.name.partition(' ')[0] or 'number'}"
    needed = statistic.people_to_bound
    return text if needed is None else f"{text}; about {people_text(needed)} would"


def statistic_html(statistic: Statistic) -> str:
    """A single number with its 95 % interval, for a notebook."""
    row = _statistic_row([statistic.method], statistic)
    table = StatisticTable(("method",), (row,))
    notes = (_sentence(unbounded_text(statistic)),) if row.is_unbounded else ()
    return _html(
        statistic.name or "Statistic", Description(headlines(statistic), None, (table,), notes, 0.95)
    )


def _html(title: str, description: Description) -> str:
    parts = [notebook_html.notes(_selection_lines(description))]
    for table in description.tables:
        heads, rows = table_cells(table, description)
        parts.append(notebook_html.table(heads, rows, range(len(table.heads), len(heads))))
    notes = notebook_html.notes(description.notes)
    return notebook_html.sheet(title, notebook_html.warnings(description.headlines), *parts, notes)


def _shorten_label(label: str) -> str:
    """A label with its middle left out if it is very long: many labels differ at their ends only.

    >>> _shorten_label("strongly agree " + "or not " * 9 + "at all")
    'strongly agree or not or not or not o...or not or not at all'
    """
    end = _LONGEST_LABEL // 3
    start = _LONGEST_LABEL - end - 3
    return label if len(label) <= _LONGEST_LABEL else f"{label[:start]}...{label[-end:]}"


def text_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 1) -> list[str]:
    """The lines of a table: columns of labels on the left, where very long ones are cut, numbers on the right."""
    cells = [[*map(_shorten_label, row[:labels]), *row[labels:]] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [str.ljust] * labels + [str.rjust] * (len(heads) - labels)
    return ["  ".join(side(c, n) for side, c, n in zip(sides, row, widths, strict=True)) for row in cells]


# -- sentences -------------------------------------------------------------------------------------------


def _sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def headlines(answer: Estimate | Statistic) -> tuple[str, ...]:
    """The lines above the figures: the warning, and whether they lean on the prior."""
    warning = () if answer.warning is None else (f"Warning: {answer.warning}",)
    return (*warning, LEANING) if answer.leans_on_prior else warning


def prior_warning(estimate: Estimate) -> str | None:
    """What to do if the answer leans on a prior that the reports contradict; None if it does not."""
    if not estimate.leans_on_prior or estimate.prior_check is None or estimate.prior_check >= DOUBTFUL:
        return None
    determined = bool(estimate.readings) and all(reading.determined for reading in estimate.readings)
    if determined or estimate.unbiased_difference is not None:
        advice = "Read the reports with method unbiased, or give a better prior"
    else:
        advice = "Give a better prior, or design a plan for the query distribution"
    return (
        f"The reports contradict the prior ({p_value_text(estimate.prior_check)}), and this estimate leans on it: the "
        f"truth may be far outside the intervals. {advice}."
    )


def group_title(by: str | None, group: Hashable) -> str:
    """The name of a group of people, by the column that tells groups apart.

    >>> group_title("town", "Graz"), group_title("town", None)
    ('town = Graz', 'town = (missing)')
    """
    return f"{by} = {'(missing)' if group is None else group}"


def groups_warning(by: str | None, groups: Sequence[Hashable]) -> str | None:
    """Which groups contradict the prior; None if there are none.

    >>> groups_warning("town", ["Graz", "Linz", "Wels", "Steyr"])
    'The reports contradict the prior where town is Graz, Linz, Wels, ...'
    """
    if not groups:
        return None
    names = ", ".join(map(str, groups[:_NAMED_GROUPS])) + ", ..." * (len(groups) > _NAMED_GROUPS)
    return f"The reports contradict the prior where {by} is {names}"


def estimate_notes(estimate: Estimate) -> tuple[str, ...]:
    """The method, what it assumes, and the prior check with its limits, in a sentence or two each."""
    notes = (
        f"Method {estimate.method} assumes {estimate.assumes}.",
        _check_note(estimate),
        _grid_note(estimate),
        ABOUT_CELLS if estimate.sums_over_cells else None,
        _difference_note(estimate),
        _gain_note(estimate),
        _outside_note(estimate),
        _search_note(estimate),
        _negative_note(estimate),
        _few_people_note(estimate),
        None if estimate.averages is None else unbounded_note(estimate.averages),
    )
    return (*(note for note in notes if note is not None), *estimate.remarks)


def _needs_no_prior(estimate: Estimate) -> bool:
    """Whether a prior was only assumed, and the estimate does not use it: then it expects nothing of anybody."""
    return not estimate.leans_on_prior and any(reading.prior.assumed for reading in estimate.readings)


def _check_note(estimate: Estimate) -> str:
    if _needs_no_prior(estimate):
        return NO_PRIOR
    if estimate.prior_check is None:
        return NO_CHECK
    unseen = estimate.unseen_changes
    note = f"{unseen + ' ' if unseen else ''}Prior check: {p_value_text(estimate.prior_check)}."
    if estimate.prior_check < DOUBTFUL:
        note += (
            " The prior is wrong, or somebody manipulates the reports, or it is chance: for a right prior p is below "
            f"{DOUBTFUL} in about one of a hundred surveys."
        )
        return note if estimate.leans_on_prior else f"{note} This method does not rest on the prior."
    note += " This does not show that the prior is right."
    if estimate.noticeable_change is None:
        return note
    apart = " that reports tell apart" if unseen else ""
    return (
        f"{note} In at least about nine of ten surveys the check would detect that "
        f"{100 * estimate.noticeable_change:.2g} % of the people have moved from one common value to another{apart}; "
        "smaller changes can pass."
    )


def _grid_note(estimate: Estimate) -> str | None:
    margin = estimate.margin_attributes
    counts_points = not margin or any(set(margin) & set(r.prior.domain.grids) for r in estimate.readings)
    if not (estimate.has_grid and estimate.histogram and counts_points):
        return None
    return "The counts are those of points of a grid, after numbers were rounded at random."


def _difference_note(estimate: Estimate) -> str | None:
    if estimate.unbiased_difference is None:
        return None
    return (
        "The answer of method unbiased, which does not use the prior, is up to "
        f"{estimate.unbiased_difference:.1f} of its own standard errors away from this one."
    )


def _gain_note(estimate: Estimate) -> str | None:
    if estimate.mle_gain is None or estimate.mle_gain <= _NOTABLE:
        return None
    gain = (
        f"about {estimate.mle_gain:.1f} times less squared error than unbiased, if the prior is about right"
    )
    if estimate.method != "mle":
        return f"Method mle uses that shares are not negative and add up to one: it has {gain}."
    return (
        f"Shares are not negative and add up to one, and mle uses that: it has {gain}. On average rare values "
        "come out too common; for sums over many surveys, or many values as in a quantile, use unbiased."
    )


def _outside_note(estimate: Estimate) -> str | None:
    if estimate.limits is None or estimate.histogram:
        return None
    nearest = np.clip(estimate.interval_centre, *estimate.limits)
    beyond = np.abs(estimate.values - nearest) - 2 * estimate.std_error
    return OUTSIDE_UNBIASED if (beyond > 1e-9 * np.ptp(estimate.limits, axis=0)).any() else None


def _search_note(estimate: Estimate) -> str | None:
    if estimate.converged:
        return None
    return f"The search stopped early: the mean log-likelihood may lack {estimate.shortfall or 0:.1g}."


def _negative_note(estimate: Estimate) -> str | None:
    cut_off = estimate.limits is not None or estimate.total is not None
    if cut_off or not estimate.counts_people or not (estimate.values < 0).any():
        return None
    whole = ", even with its whole interval" if (estimate.interval()[1] < 0).any() else ""
    methods = "Method mle, or project()," if estimate.histogram else "Method mle"
    return (
        f"An unbiased estimate of a small count can be below zero{whole}: its share is near zero. {methods} "
        "gives counts that are not."
    )


def _few_people_note(estimate: Estimate) -> str | None:
    if not estimate.counts_people or estimate.people <= 0 or not estimate.reports:
        return None
    low, high = np.array(estimate.interval()) * estimate.reports / estimate.people  # of those who were asked
    few = (high < _FEW_PEOPLE) | (low > estimate.reports - _FEW_PEOPLE)
    return FEW_PEOPLE if few[estimate.std_error > 0].any() else None  # everybody is known for sure


def changes_among(alike: tuple[Label, Label] | None) -> str:
    """Which changes the prior check never notices, if reports do not identify the distribution.

    Two values may have the same law, such as these. If none are known to, other changes leave the law as it is.
    """
    if alike is None:
        return "The law of the reports need not show every change of the distribution: some can pass, however large."
    return (
        f"The reports do not tell all values apart, for instance {label_text(alike[0])} and {label_text(alike[1])}: "
        "the prior check never notices a change among those, however large."
    )


# -- precision -------------------------------------------------------------------------------------------


def precision_text(precision: Precision) -> str:
    """What is known about the population and, leaning on the prior, about these people."""
    people, statistic, confidence = f"{precision.people:,} people", precision.statistic, precision.confidence
    sentence = "reports alone do not determine the population, however many there are"
    if precision.determined is None:
        sentence = "for so many values it is not checked whether reports alone determine the population"
    if precision.determined:
        sentence = f"reports of {people} are too few to estimate the population without the prior"
    if precision.population is not None:
        under = "under one prior of the set, " if precision.of_set else ""
        sentence = f"{under}with {people} {_half_width_text(statistic, precision.population, confidence)}"
    if precision.these_people is None:
        return sentence
    leaning = _half_width_text(statistic, precision.these_people, confidence, f" among {people}")
    prior, right = ("the set", "one of its priors") if precision.of_set else ("the prior", "the prior")
    return f"{sentence}; leaning on {prior}, {leaning}, if {right} is right"


def precision_sentence(precision: Precision) -> str:
    """The same as a whole sentence."""
    return _sentence(precision_text(precision))


def reached_precision(estimate: Estimate, confidence: float) -> str:
    """How precise an estimate is: the largest distance to an end of its intervals, per person, in a sentence.

    An interval of an average of a group may reach further on one side.
    """
    values, _, low, high = answer(estimate, confidence).columns
    distances = np.maximum(values - low, high - values)
    distances[np.isnan(values)] = math.inf  # the average of a group in which nobody is counted
    half_width = float(np.max(distances, initial=0.0))
    if estimate.averages is None:
        half_width /= estimate.people
    leans = estimate.leans_on_prior
    precision = _half_width_text(
        estimate.statistic, half_width, confidence, " among these people" if leans else ""
    )
    with_reports = f"With {'this' if estimate.reports == 1 else 'these'} {plural(estimate.reports, 'report')}"
    on_set = any(reading.known for reading in estimate.readings)
    condition = f", if {'a prior of the set' if on_set else 'the prior'} is right" if leans else ""
    return f"{with_reports} {precision}{condition}."


def _half_width_text(statistic: str, half_width: float, confidence: float, among: str = "") -> str:
    each, better = ("the", "") if statistic == AVERAGE else ("every", " or better")
    if math.isinf(half_width):
        return f"not {each} {statistic}{among} is known"
    width = round_up(half_width)
    units = {"share": f"{round_up(100 * half_width)} points", AVERAGE: width, GROUP_AVERAGE: width}
    half_width_text = units.get(statistic, f"{width} per person")
    return f"{each} {statistic}{among} is known to ±{half_width_text}{better} ({percent(confidence)})"

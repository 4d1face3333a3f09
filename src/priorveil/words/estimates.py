"""The words of estimates: tables with the texts of their numbers, and the sentences around them.

Printed estimates, the command line, plots and the dashboard lay these out; none of them makes its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from priorveil.catalogue import say
from priorveil.formatting import percent, readable_number
from priorveil.notes import Note
from priorveil.reading.averages import Averages
from priorveil.reading.estimate import Estimate
from priorveil.reading.estimate_notes import LEANING, unbounded_averages
from priorveil.reading.statistic_tables import (
    StatisticRow,
    StatisticTable,
    Unit,
    answer_rows,
    answer_size,
    answer_tables,
    averages_table,
    number_tables,
    shown_first,
    statistic_row,
)
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally import Tally
from priorveil.results.document import Figures
from priorveil.words import html
from priorveil.words.notes import interval_title, people_text, reports_text, sentence
from priorveil.words.text_tables import text_lines

MOST_SHOWN = 50  # statistics that are printed
_SUMMARISED = 3  # statistics in the representation of an estimate
_NAMED_GROUPS = 3  # that contradict the prior


# -- numbers ---------------------------------------------------------------------------------------------


def number_text(number: float, unit: Unit, decimals: int | None) -> str:
    """A number of a table as people read it: with these decimals, or five digits if they are not known.

    >>> number_text(0.59649, "share", 1), number_text(12345.678, "amount", 0), number_text(2.5, "amount", None)
    ('59.6 %', '12,346', '2.5')
    """
    if unit == "people":
        return f"{number:,.1f}"
    if unit == "share":
        return f"{100 * number:,.{decimals or 1}f} %"
    return readable_number(number, 5) if decimals is None else f"{number:,.{decimals}f}"


@dataclass(frozen=True)
class RowTexts:
    """The numbers of a row as people read them."""

    value: str
    low: str
    high: str
    interval: str
    expected: str


def row_texts(row: StatisticRow, unit: Unit) -> RowTexts:
    """The texts of a row; a side where the interval reaches to the limit of what is possible has no end."""
    value, low, high, expected = (
        "" if number is None else number_text(number, unit, row.decimals)
        for number in (row.value, row.low, row.high, row.expected)
    )
    match row.ends:
        case None, None:
            unbounded = say("notBounded")
            return RowTexts(value, unbounded, unbounded, unbounded, expected)
        case None, _:
            interval = say("atMost", number=high)
        case _, None:
            interval = say("atLeast", number=low)
        case _:
            interval = say("between", **{"from": low.removesuffix(" %"), "to": high})
    return RowTexts(value, low, high, interval, expected)


# -- tables ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Description:
    """What people are told about an estimate: the lines above its figures, tables, and notes.

    `selection` says which statistics the tables show and why, None if they show all.
    """

    headlines: tuple[str, ...]
    selection: str | None
    tables: tuple[StatisticTable, ...]
    notes: tuple[Note, ...]
    confidence: float

    @property
    def interval_heads(self) -> tuple[str, str]:
        """The titles of two columns with the ends of the intervals."""
        return say("intervalLow", confidence=percent(self.confidence)), say("intervalHigh")


def describe(estimate: Estimate, confidence: float = 0.95) -> Description:
    """An estimate as people read it: a table for the values, or for each margin, and one for statistics of numbers.

    Of more than `MOST_SHOWN` statistics there are those of `shown_first`.
    """
    indices = shown_first(estimate, MOST_SHOWN)
    tables = [*answer_tables(estimate, confidence, indices), *number_tables(estimate, confidence)]
    notes = estimate.notes
    averages = [row for table in tables if table.of and table.unit == "amount" for row in table.rows]
    unbounded = Note("unboundedAverage")
    if unbounded not in notes and any(row.is_unbounded for row in averages):
        notes += (unbounded,)
    selection = selection_text(estimate, indices)
    return Description(headlines(estimate), selection, tuple(tables), notes, confidence)


def describe_averages(averages: Averages) -> Description:
    """The averages by group as people read them."""
    tables = (averages_table(averages),)
    return Description(headlines(averages.statistics[0]), None, tables, unbounded_averages(averages), 0.95)


def selection_text(estimate: Estimate, indices: Sequence[int]) -> str | None:
    """Which statistics are shown and why, in a sentence; None if all are."""
    count, size = len(indices), answer_size(estimate)
    if count == size:
        return None
    if list(indices) == list(range(count)):
        key = "firstValues" if estimate.histogram else "firstStatistics"
    else:
        key = "mostExpected"
    return say(key, count=f"{count:,}", all=f"{size:,}")


def table_cells(
    table: StatisticTable, description: Description
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles of the columns of a table, and the texts of its rows.

    Counts of people are shares of them with intervals, and the counts are beside them.
    """
    people = table.people or 0
    if people <= 0:  # not counts, or weights that add up to nothing
        rows = [(row, row_texts(row, table.unit)) for row in table.rows]
        heads = (*label_heads(table), table.quantity, *description.interval_heads)
        return heads, [(*_labels(table, row), each.value, each.low, each.high) for row, each in rows]
    heads = (*label_heads(table), say("shareHead"), *description.interval_heads, say("peopleHead"))
    cells = []
    for row in table.rows:
        share = row_texts(replace(row.per_person(people), decimals=row.decimals), "share")
        count = number_text(row.value, "people", None)
        cells.append((*row.label, share.value, share.low, share.high, count))
    return heads, cells


def label_heads(table: StatisticTable) -> tuple[str, ...]:
    """The titles of the columns of labels; statistics of numbers are named in one."""
    if table.kind == "numbers":
        return (say("numbersHead"),)
    return table.heads


def _labels(table: StatisticTable, row: StatisticRow) -> tuple[str, ...]:
    return (" ".join(row.label).strip(),) if table.kind == "numbers" else row.label


# -- text and HTML ---------------------------------------------------------------------------------------


def estimate_text(estimate: Estimate) -> str:
    """The estimate as plain text."""
    return _plain_text(describe(estimate))


def averages_text(averages: Averages) -> str:
    """The averages by group with 95 % intervals, as plain text."""
    return _plain_text(describe_averages(averages))


def estimate_summary(estimate: Estimate) -> str:
    """The method, the reports and the first figures with their intervals, in a line."""
    size = answer_size(estimate)
    unit: Unit = "people" if estimate.counts_people else "amount"
    figures = []
    for row in answer_rows(estimate, indices=range(min(size, _SUMMARISED))):
        texts = row_texts(row, unit)
        figures.append(f"{', '.join(row.label)} {texts.value} ({texts.interval})")
    figures += [say("andMore", count=f"{size - _SUMMARISED:,}")] if size > _SUMMARISED else []
    return f"Estimate({estimate.method}, {reports_text(estimate.reports)}: {', '.join(figures)})"


def _plain_text(description: Description) -> str:
    lines = [*description.headlines, *_selection_lines(description)]
    for table in description.tables:
        lines += text_lines(*table_cells(table, description), len(label_heads(table)))
    return "\n".join([*lines, *map(str, description.notes)])


def _selection_lines(description: Description) -> list[str]:
    return [] if description.selection is None else [say("allInFrame", selection=description.selection)]


def statistic_text(statistic: Statistic) -> str:
    """A single number with its name and its 95 % interval, in a line below its headlines."""
    row = statistic_row([""], statistic)
    texts = row_texts(row, "amount")
    interval = f"{interval_title(0.95)} {texts.interval}"
    value = f"{texts.value}, {unbounded_text(statistic) if row.is_unbounded else interval}"
    method = say("methodName", method=statistic.method) if statistic.method else None
    people = None if statistic.people is None else say("people", count=f"{statistic.people:,.12g}")
    source = ", ".join(filter(None, (method, people)))
    name = f"{statistic.name}: " if statistic.name else ""
    line = f"{name}{value}{f' ({source})' if source else ''}"
    return "\n".join([*headlines(statistic), line])


def unbounded_text(statistic: Statistic) -> str:
    """That the reports do not bound a ratio, and how many people would."""
    needed = statistic.people_to_bound
    if needed is None:
        return say("unboundedStatistic")
    return say("unboundedPeople", people=people_text(needed))


def estimate_html(estimate: Estimate) -> str:
    """The estimate for a notebook."""
    return _html(say("estimateTitle", reports=reports_text(estimate.reports)), describe(estimate))


def averages_html(averages: Averages) -> str:
    """The averages by group with 95 % intervals, for a notebook."""
    title = say("averagesTitle", name=averages.name, groups=", ".join(averages.by))
    return _html(title, describe_averages(averages))


def statistic_html(statistic: Statistic) -> str:
    """A single number with its 95 % interval, for a notebook."""
    row = statistic_row([statistic.method], statistic)
    table = StatisticTable("answer", (say("methodHead"),), (row,), "amount")
    above, below = headlines(statistic), [sentence(unbounded_text(statistic))] if row.is_unbounded else []
    return _html(statistic.name or say("statisticTitle"), Description(above, None, (table,), (), 0.95), below)


def tally_html(tally: Tally) -> str:
    """How many reports were counted and refused, for a notebook."""
    return html.sheet(say("tallyTitle"), html.facts(tally_facts(tally)))


def tally_facts(tally: Tally) -> list[tuple[str, str]]:
    """How many reports were counted and refused, and for which plan."""
    facts = [(say("factReports"), f"{tally.reports:,}")]
    if tally.refused:
        facts.append(
            (say("factRefused"), ", ".join(f"{n:,} {reason}" for reason, n in tally.refused.items()))
        )
    if tally.weighted is not None:
        facts.append((say("factWeights"), f"{tally.weighted.total:,.6g}"))
    return [*facts, (say("factPlan"), tally.plan)]


def _html(title: str, description: Description, more: Sequence[str] = ()) -> str:
    parts = [html.notes(_selection_lines(description))]
    for table in description.tables:
        heads, rows = table_cells(table, description)
        parts.append(html.table(heads, rows, range(len(label_heads(table)), len(heads))))
    notes = html.notes([*map(str, description.notes), *more])
    return html.sheet(title, html.warnings(description.headlines), *parts, notes)


# -- sentences -------------------------------------------------------------------------------------------


def headlines(answer: Estimate | Statistic | Figures) -> tuple[str, ...]:
    """The lines above the figures: the warning, and whether they lean on the prior."""
    about = answer.about if isinstance(answer, Statistic) else None
    warnings = [str(note) for note in (answer.warning, about) if note is not None]
    warning = (say("warning", warning=" ".join(warnings)),) if warnings else ()
    return (*warning, str(LEANING)) if answer.leans_on_prior else warning


def group_title(by: str | None, group: Hashable) -> str:
    """The name of a group of people, by the column that tells groups apart.

    >>> group_title("town", "Graz"), group_title("town", None)
    ('town = Graz', 'town = (missing)')
    """
    return say("groupTitle", by=by, group=say("groupMissing") if group is None else group)


def groups_warning(by: str | None, groups: Sequence[Hashable]) -> str | None:
    """Which groups contradict the prior; None if there are none.

    >>> groups_warning("town", ["Graz", "Linz", "Wels", "Steyr"])
    'The reports contradict the prior where town is Graz, Linz, Wels, ...'
    """
    if not groups:
        return None
    names = ", ".join(map(str, groups[:_NAMED_GROUPS])) + ", ..." * (len(groups) > _NAMED_GROUPS)
    return say("contradictedInGroups", by=by, groups=names)

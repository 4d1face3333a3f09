"""The words of results: tables of the result document with the texts of their numbers, and the lines around them."""

from __future__ import annotations

from collections.abc import Sequence

from priorveil.catalogue import say
from priorveil.formatting import percent
from priorveil.reading.statistic_tables import Unit
from priorveil.results.document import Finding, Result, ResultRow, ResultTable
from priorveil.results.lines import is_mean_of_sum, statistic_name
from priorveil.words.estimates import MOST_SHOWN, group_title, number_text

_SHARES = ("share within", "share among")
_STATISTICS = ("mean", "quantile")  # tables of statistics that stand alone


def finding_name(found: Finding, result: Result) -> str:
    """Whose reports a finding is from, in a few words; empty if that goes without saying."""
    if found.group != "":
        return group_title(result.by, found.group)
    alone = result.by is None and len(result.cohorts) == 1
    return found.cohort or ("" if alone else "everybody")


def withheld_text(found: Finding, result: Result) -> str:
    """Why a finding is withheld."""
    codes = {
        "few reports": "withheldFew",
        "a part is withheld": "withheldPart",
        "other forms": "withheldForms",
    }
    return say(codes[found.withheld or "few reports"], count=f"{result.smallest_count:,}")


def selection(table: ResultTable, most: int = MOST_SHOWN) -> tuple[tuple[ResultRow, ...], str | None]:
    """The rows to show, at most so many, and a sentence on which they are; None if they are all."""
    count = len(table.rows)
    if count <= most:
        return table.rows, None
    counts = {"count": f"{most:,}", "all": f"{count:,}"}
    if table.shown_first:
        return tuple(table.rows[at] for at in table.shown_first[:most]), say("mostExpected", **counts)
    return table.rows[:most], say("firstValues" if table.kind == "people" else "firstStatistics", **counts)


def table_cells(
    found: Finding, table: ResultTable, rows: Sequence[ResultRow], confidence: float
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles of the columns of a table, and the texts of its rows.

    Counts of people are shares of them with intervals, and the counts are beside them.
    """
    ends = say("intervalLow", confidence=percent(confidence)), say("intervalHigh")
    people = found.figures.people if found.figures and table.kind == "people" else 0.0
    labels = [_labels(found, table, row) for row in rows]
    if people <= 0:  # not counts, or weights that add up to nothing
        unit: Unit = "share" if table.kind in _SHARES else "people" if table.kind == "people" else "amount"
        heads = (*label_heads(found, table), quantity(found, table), *ends)
        return heads, [(*label, *_texts(row, unit, 1.0)) for label, row in zip(labels, rows, strict=True)]
    heads = (*label_heads(found, table), say("shareHead"), *ends, say("peopleHead"))
    return heads, [
        (*label, *_texts(row, "share", people), number_text(row.value or 0.0, "people", None))
        for label, row in zip(labels, rows, strict=True)
    ]


def label_heads(found: Finding, table: ResultTable) -> tuple[str, ...]:
    """The titles of the columns of labels."""
    return table.attributes or (say("numbersHead" if _stands_alone(found, table) else "valueHead"),)


def quantity(found: Finding, table: ResultTable) -> str:
    """What the numbers of a table are, as the title of their column."""
    if (table.by or table.kind == "per person") and not _stands_alone(found, table):
        return statistic_name(found, table, table.rows[0]) if table.attributes else table.kind
    return say("shareAmong") if table.kind == "share among" else "estimate"


def _labels(found: Finding, table: ResultTable, row: ResultRow) -> tuple[str, ...]:
    return (statistic_name(found, table, row),) if _stands_alone(found, table) else row.label


def _stands_alone(found: Finding, table: ResultTable) -> bool:
    """Whether each row is a statistic with a name of its own: a mean, which may be a sum per person, or a quantile."""
    return table.kind in _STATISTICS or is_mean_of_sum(found, table)


def _texts(row: ResultRow, unit: Unit, people: float) -> tuple[str, str, str]:
    """The value and the ends of its interval, each divided by so many people."""
    if row.is_unbounded:
        unbounded = say("notBounded")
        return _text(row.value, "nan", row, unit, people), unbounded, unbounded
    return (
        _text(row.value, "nan", row, unit, people),
        _text(row.low, "-inf", row, unit, people),
        _text(row.high, "inf", row, unit, people),
    )


def _text(number: float | None, otherwise: str, row: ResultRow, unit: Unit, people: float) -> str:
    return otherwise if number is None else number_text(number / people, unit, row.decimals)

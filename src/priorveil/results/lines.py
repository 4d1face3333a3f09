"""The result document as a table, with a line for each statistic: CSV files and data frames.

`attributes` names what a line is about, `cohort` and `group` whose reports it is from (empty: everybody), and
`statistic` what its number is: `people`, `mean`, `share within age` and so on. Each attribute has a column with the
answer that the line is about; it is empty if the line is about all answers. Then come the number of `reports`, the
`method`, the `estimate` with its standard error and interval, and numbers of people as a `share` of everybody. A
withheld result has a line that says why, such as `withheld: few reports`, and no number but that of its reports.

Published results may end with lines on what their totals tell of one person of each cohort (`results.totals`):
`totals epsilon` and `totals delta`, with the reports that a person is hidden among, and `belief before totals` and
`belief after totals` for the answer whose probability changes most.
Where groups are compared, lines for the test of independence (`independence chi-square`, and its degrees of freedom)
and for the differences of each group from the others follow, and the last column is `p_value`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any, TextIO

from priorveil.frames import Library, to_frame
from priorveil.plans.composition import Names
from priorveil.results.document import (
    Figures,
    Finding,
    GroupComparison,
    Result,
    ResultRow,
    ResultTable,
    Totals,
)

_ABOUT = ("attributes", "cohort", "group", "statistic")
_COLUMNS = (*_ABOUT, "reports", "method", "estimate", "std_error", "low", "high", "share")
_P_VALUE = "p_value"  # only where groups are compared


def columns_of(result: Result) -> dict[str, str]:
    """The column of each attribute; one with the name of another column has `(answer)` after it."""
    attributes = dict.fromkeys(name for found in result.findings for name in found.attributes)
    return {name: f"{name} (answer)" if name in (*_COLUMNS, _P_VALUE) else name for name in attributes}


def statistic_lines(result: Result) -> Iterator[dict[str, Any]]:
    """A line for each statistic, and one without numbers for what is withheld."""
    columns = columns_of(result)
    for found in result.findings:
        if found.figures is None:
            yield {**_about(found, f"withheld: {found.withheld}"), "reports": found.reports}
            continue
        for table in found.figures.tables:
            for row in table.rows:
                yield {
                    **_about(found, statistic_name(found, table, row)),
                    **_answers(columns, table.attributes, row),
                    **_numbers(found, found.figures, table, row),
                }
    for cohort in result.cohorts:
        if cohort.totals is not None:
            name = cohort.cohort if len(result.cohorts) > 1 else ""
            yield from _totals_lines(name, cohort.totals, columns)
    for compared in result.comparisons:
        yield from _comparison_lines(columns, compared)


def _comparison_lines(columns: dict[str, str], compared: GroupComparison) -> Iterator[dict[str, Any]]:
    """Two lines for the test of independence, and one for each difference."""
    names = " x ".join(compared.attributes)
    test = compared.independence
    if test is not None:
        about = {"attributes": names, "cohort": "", "group": "", "method": "unbiased"}
        chi_square = {"estimate": test.chi_square, _P_VALUE: test.p_value}
        yield {**about, "statistic": "independence chi-square", **chi_square}
        yield {**about, "statistic": "independence degrees of freedom", "estimate": test.degrees}
    for table in compared.tables:
        for each in table.rows:
            row = each.row
            name = "" if table.attributes else f" {', '.join(row.label)}"
            yield {
                **{"attributes": names, "cohort": "", "group": each.group},
                "statistic": f"difference from others{name}",
                **_answers(columns, table.attributes, row),
                **{"method": "unbiased", "estimate": row.value, "std_error": row.std_error},
                **{"low": row.low, "high": row.high, _P_VALUE: each.p_value},
            }


def heads_of(result: Result) -> list[str]:
    """The names of all columns, in order."""
    compared = [_P_VALUE] if result.comparisons else []
    return [*_ABOUT, *columns_of(result).values(), *_COLUMNS[len(_ABOUT) :], *compared]


def write_lines(result: Result, file: TextIO) -> None:
    """Write all lines as CSV; a number that is not known or has no end is empty."""
    writer = csv.DictWriter(file, heads_of(result), lineterminator="\n")
    writer.writeheader()
    writer.writerows(statistic_lines(result))


def frame_of(result: Result, library: Library | None = None) -> Any:
    """All lines as a data frame of pandas, polars or pyarrow; what is empty in CSV is missing."""
    lines = [*statistic_lines(result)]
    return to_frame({head: [line.get(head) for line in lines] for head in heads_of(result)}, library)


def statistic_name(found: Finding, table: ResultTable, row: ResultRow) -> str:
    """What the number of a row is: `people`, `quantile 0.5`, `mean hours`, `share within age`."""
    if is_mean_of_sum(found, table):
        return "mean"
    name = "mean" if table.kind == "average" else table.kind
    about = table.of if len(found.attributes) > 1 else None
    if table.kind in ("share within", "share among"):
        about = " x ".join(table.by)
    label = "" if table.attributes or row.label == (name,) else ", ".join(row.label)
    return " ".join(filter(None, (name, about, label)))


def is_mean_of_sum(found: Finding, table: ResultTable) -> bool:
    """Whether a table has the mean of a number: its sum per person."""
    return (
        table.kind == "per person"
        and found.figures is not None
        and found.figures.statistic == "average per person"
    )


def _about(found: Finding, statistic: str) -> dict[str, Any]:
    group = "(missing)" if found.group is None else found.group
    names = " x ".join(found.attributes), found.cohort, group, statistic
    return dict(zip(_ABOUT, names, strict=True))


def _totals_lines(cohort: str, totals: Totals, columns: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What the totals of a cohort tell."""
    for name, number in (("epsilon", totals.epsilon), ("delta", totals.delta)):
        line = dict(zip(_ABOUT, ("", cohort, "", f"totals {name}"), strict=True))
        yield {**line, "reports": totals.people, "estimate": number}
    for belief in totals.beliefs:
        answers = {columns[name]: level for name, level in zip(belief.attributes, belief.label, strict=True)}
        for when, share in (("before", belief.before), ("after", belief.after)):
            names = " x ".join(belief.attributes), cohort, "", f"belief {when} totals"
            yield {**dict(zip(_ABOUT, names, strict=True)), **answers, "estimate": share}


def _answers(columns: dict[str, str], attributes: Names, row: ResultRow) -> dict[str, str | None]:
    levels = dict(zip(attributes, row.label, strict=True)) if attributes else {}
    return {column: levels.get(name) for name, column in columns.items()}


def _numbers(found: Finding, figures: Figures, table: ResultTable, row: ResultRow) -> dict[str, Any]:
    people = figures.people if table.kind == "people" and row.value is not None else 0.0
    return {
        "reports": found.reports,
        "method": figures.method,
        "estimate": row.value,
        "std_error": row.std_error,
        "low": row.low,
        "high": row.high,
        "share": row.value / people if people > 0 and row.value is not None else None,
    }

"""The words of results: tables of the result document with the texts of their numbers, and the lines around them.

Printed estimates, notebooks and the command line lay these out; none of them makes its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from priorveil.catalogue import say
from priorveil.formatting import factor_at_most, p_value_text, percent, readable_number
from priorveil.reading.estimate import Estimate
from priorveil.reading.statistics import Statistic
from priorveil.results.document import (
    Belief,
    Difference,
    DifferenceTable,
    Finding,
    GroupComparison,
    IndependenceTest,
    Result,
    ResultRow,
    ResultTable,
)
from priorveil.results.lines import is_mean_of_sum, statistic_name
from priorveil.statistics.independence import Independence
from priorveil.statistics.samples import beside_columns

Unit = Literal["people", "share", "points", "amount"]

BESIDE_COLUMNS = ("besideColumns", "besideColumnsWithoutLdp")  # notes that come before the figures
_MOST_SHOWN = 50  # statistics that are printed
_NAMED_GROUPS = 3  # that contradict the prior
_SHARES = ("share within", "share among")
_STATISTICS = ("mean", "quantile")  # tables of statistics that stand alone


# -- numbers ---------------------------------------------------------------------------------------------


def figure_text(number: float, unit: Unit, decimals: int | None) -> str:
    """A number of a table as people read it: with these decimals, or five digits if they are not known.

    >>> figure_text(0.59649, "share", 1), figure_text(12345.678, "amount", 0), figure_text(2.5, "amount", None)
    ('59.6 %', '12,346', '2.5')
    >>> figure_text(-0.125, "points", 1)
    '-12.5'
    """
    if unit == "people":
        return f"{number:,.1f}"
    if unit == "share":
        return f"{100 * number:,.{decimals or 1}f} %"
    if unit == "points":
        return f"{100 * number:,.{decimals or 1}f}"
    return readable_number(number, 5) if decimals is None else f"{number:,.{decimals}f}"


@dataclass(frozen=True)
class RowTexts:
    """The numbers of a row as people read them: the value, both ends of its interval, and the interval as one text."""

    value: str
    low: str
    high: str
    interval: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """The texts of three columns."""
        return self.value, self.low, self.high


def row_texts(row: ResultRow, unit: Unit, people: float = 1.0) -> RowTexts:
    """The texts of a row, divided by so many people; its text has no end where it reaches to what is possible."""

    def text(number: float | None, otherwise: str) -> str:
        return otherwise if number is None else figure_text(number / people, unit, row.decimals)

    value, low, high = text(row.value, "nan"), text(row.low, "-inf"), text(row.high, "inf")
    if row.is_unbounded:
        unbounded = say("notBounded")
        return RowTexts(value, unbounded, unbounded, unbounded)
    match row.open_sides:
        case True, _:
            interval = say("atMost", number=high)
        case _, True:
            interval = say("atLeast", number=low)
        case _:
            interval = say("between", **{"from": low.removesuffix(" %"), "to": high})
    return RowTexts(value, low, high, interval)


# -- tables ----------------------------------------------------------------------------------------------


def selection(table: ResultTable, most: int = _MOST_SHOWN) -> tuple[tuple[ResultRow, ...], str | None]:
    """The rows to show, at most so many, and a sentence on which they are; None if they are all."""
    count = len(table.rows)
    if count <= most:
        return table.rows, None
    counts = {"count": f"{most:,}", "all": f"{count:,}"}
    if table.shown_first:
        return tuple(table.rows[at] for at in table.shown_first[:most]), say("mostExpected", **counts)
    return table.rows[:most], say("firstValues" if table.attributes else "firstStatistics", **counts)


def table_cells(
    found: Finding, table: ResultTable, rows: Sequence[ResultRow], confidence: float
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles of the columns of a table, and the texts of its rows.

    Counts of people are shares of them with intervals, and the counts are beside them.
    """
    people = found.figures.people if found.figures and table.kind == "people" else 0.0
    heads, labels = label_heads(found, table), [_labels(found, table, row) for row in rows]
    if people <= 0:  # not counts, or weights that add up to nothing
        unit: Unit = "share" if table.kind in _SHARES else "people" if table.kind == "people" else "amount"
        return number_cells(heads, _quantity(found, table), zip(labels, rows, strict=True), unit, confidence)
    columns = (*heads, say("shareHead"), *_interval_heads(confidence), say("peopleHead"))
    return columns, [
        (*label, *row_texts(row, "share", people).cells, figure_text(row.value or 0.0, "people", None))
        for label, row in zip(labels, rows, strict=True)
    ]


def number_cells(
    heads: Sequence[str],
    quantity: str,
    rows: Iterable[tuple[Sequence[str], ResultRow]],
    unit: Unit,
    confidence: float,
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles of the columns and the texts of labelled rows whose numbers are a `quantity`."""
    cells = [(*label, *row_texts(row, unit).cells) for label, row in rows]
    return (*heads, quantity, *_interval_heads(confidence)), cells


def _interval_heads(confidence: float) -> tuple[str, str]:
    return say("intervalLow", confidence=percent(confidence)), say("intervalHigh")


def label_heads(found: Finding, table: ResultTable) -> tuple[str, ...]:
    """The titles of the columns of labels."""
    return table.attributes or (say("numbersHead" if _stands_alone(found, table) else "valueHead"),)


def _quantity(found: Finding, table: ResultTable) -> str:
    """What the numbers of a table are, as the title of their column."""
    if (table.by or table.kind == "per person") and not _stands_alone(found, table):
        return statistic_name(found, table, table.rows[0]) if table.attributes else table.kind
    return say("shareAmong") if table.kind == "share among" else say("estimateHead")


def _labels(found: Finding, table: ResultTable, row: ResultRow) -> tuple[str, ...]:
    return (statistic_name(found, table, row),) if _stands_alone(found, table) else row.label


def _stands_alone(found: Finding, table: ResultTable) -> bool:
    """Whether each row is a statistic with a name of its own: a mean, which may be a sum per person, or a quantile."""
    return table.kind in _STATISTICS or is_mean_of_sum(found, table)


# -- comparisons -----------------------------------------------------------------------------------------


def independence_text(test: Independence | IndependenceTest) -> str:
    """A test of independence in a few words.

    >>> independence_text(IndependenceTest(12.345, 3, 0.0063, False))
    'chi-square 12.35 with 3 degrees of freedom, p = 0.0063'
    """
    counted = "oneDegreeOfFreedom" if test.degrees == 1 else "degreesOfFreedom"
    return say(
        "independenceTest",
        chi_square=f"{test.chi_square:,.2f}",
        degrees=say(counted, count=f"{test.degrees:,}"),
        p_value=p_value_text(test.p_value),
    )


def independence_line(compared: GroupComparison, test: IndependenceTest, result: Result) -> str:
    """The test that what is reported is independent of the group, as a line."""
    names, text = " x ".join(compared.attributes), independence_text(test)
    line = say("independenceOf", names=names, by=result.by, test=text)
    return f"{line}. {say('fewExpected')}" if test.few_people else line


def first_differences(
    table: DifferenceTable, most: int = _MOST_SHOWN
) -> tuple[tuple[Difference, ...], str | None]:
    """The differences to show, at most so many, and a sentence if they are not all."""
    if len(table.rows) <= most:
        return table.rows, None
    return table.rows[:most], say("firstStatistics", count=f"{most:,}", all=f"{len(table.rows):,}")


def difference_cells(
    compared: GroupComparison, table: DifferenceTable, rows: Sequence[Difference], result: Result
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles of the columns of differences, and the texts of their rows."""
    of_shares = compared.statistic == "share"
    quantity = say("differenceInPoints" if of_shares else "differenceHead")
    unit: Unit = "points" if of_shares else "amount"
    heads = (result.by or "", *(table.attributes or (say("valueHead"),)))
    labelled = (((each.group, *each.row.label), each.row) for each in rows)
    titles, cells = number_cells(heads, quantity, labelled, unit, result.confidence)
    return with_p_values(titles, cells, [each.p_value for each in rows])


def with_p_values(
    titles: Sequence[str], cells: Sequence[Sequence[str]], p_values: Sequence[float]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The same table with a column of p-values."""
    texts = (p_value_text(p).removeprefix("p ").removeprefix("= ") for p in p_values)
    return (*titles, say("pValueHead")), [(*row, text) for row, text in zip(cells, texts, strict=True)]


def comparison_notes(compared: GroupComparison, result: Result) -> tuple[str, ...]:
    """What to know about the intervals and p-values of differences, and which groups are compared."""
    kind = say("allDifferences" if result.simultaneous else "eachDifference")
    same = [found for found in result.findings if found.attributes == compared.attributes]
    groups = {found.group for found in same if found.group != "" and found.margin_of == compared.margin_of}
    if len(groups) == len(compared.groups):
        return (kind,)
    return kind, say("groupsCompared", count=f"{len(compared.groups):,}")


# -- sentences -------------------------------------------------------------------------------------------


def headlines(answer: Estimate | Statistic) -> tuple[str, ...]:
    """The lines above the figures: the warning, or else whether they lean on the prior."""
    about = answer.about if isinstance(answer, Statistic) else None
    warnings = [str(note) for note in (answer.warning, about) if note is not None]
    warning = (say("warning", warning=" ".join(warnings)),) if warnings else ()
    leans = answer.leaning is not None and answer.warning is None  # a warning says it already
    return (*warning, str(answer.leaning)) if leans else warning


def beside_texts(result: Result, cohort: str | None = None) -> tuple[str, ...]:
    """Which level holds beside public columns: of a sample, and of groups unless these are the cohorts of plans."""
    notes = [note for found in result.findings if found.figures is not None for note in found.figures.notes]
    if result.by is not None and result.by != cohort:
        levels = [(own.levels.ldp, own.levels.lip) for own in result.cohorts]
        ldp, lip = (
            max(math.inf if each is None else each for each in own) for own in zip(*levels, strict=True)
        )
        notes.append(beside_columns(ldp, lip))
    return tuple(dict.fromkeys(str(note) for note in notes if note.code in BESIDE_COLUMNS))


def result_headlines(findings: Sequence[Finding], result: Result) -> tuple[str, ...]:
    """The lines above the figures of findings: each warning once, with the names of those that it is about."""
    names: dict[str, list[str]] = {}
    for found in findings:
        if found.figures is not None and found.figures.warning is not None:
            names.setdefault(str(found.figures.warning), []).append(finding_name(found, result))
    warnings = ((", ".join(about), say("warning", warning=text)) for text, about in names.items())
    return tuple(f"{about}: {text}" if about else text for about, text in warnings)


def leaning_texts(result: Result) -> tuple[str, ...]:
    """That results lean on the prior, for those without a warning, each text once."""
    shown = [found.figures for found in result.findings if found.figures is not None]
    return tuple(
        dict.fromkeys(
            str(each.leaning) for each in shown if each.leaning is not None and each.warning is None
        )
    )


def totals_texts(result: Result) -> tuple[str, ...]:
    """What the published totals of a result tell about one person, of the cohort of which they tell most."""
    every = [cohort.totals for cohort in result.cohorts if cohort.totals is not None]
    if not every:
        return ()
    most = max(every, key=lambda totals: totals.epsilon)
    odds, share = f"{round(1 / most.delta):,}", f"{100 * most.colluding:g} %"
    beliefs = [belief for totals in every for belief in totals.beliefs]
    return (
        say("totalsTitle"),
        say("totalsAny", factor=factor_at_most(most.epsilon), odds=odds),
        *(_belief_text(belief) for belief in sorted(beliefs, key=_change)[-1:]),
        say("totalsUnless", share=share),
    )


def _change(belief: Belief) -> float:
    return abs(math.log(belief.after / belief.before)) if belief.after > 0 else math.inf


def _belief_text(belief: Belief) -> str:
    return say(
        "totalsBelief",
        question=" x ".join(belief.attributes),
        answer=", ".join(belief.label),
        before=figure_text(belief.before, "share", None),
        after=figure_text(belief.after, "share", None),
    )


def finding_name(found: Finding, result: Result) -> str:
    """Whose reports a finding is from, in a few words; empty if that goes without saying."""
    if found.group != "":
        return group_title(result.by, found.group)
    alone = result.by is None and len(result.cohorts) == 1
    return found.cohort or ("" if alone else say("everybody"))


def withheld_text(found: Finding, result: Result) -> str:
    """Why a finding is withheld."""
    codes = {
        "few reports": "withheldFew",
        "a part is withheld": "withheldPart",
        "other forms": "withheldForms",
    }
    return say(codes[found.withheld or "few reports"], count=f"{result.smallest_count:,}")


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

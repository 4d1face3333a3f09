"""The words of estimates, averages, single statistics, samples and tallies, as text and for notebooks.

An estimate alone is shown as a finding of a result is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from priorveil.catalogue import say
from priorveil.priors.label_texts import label_text
from priorveil.reading.averages import Averages
from priorveil.reading.estimate import Estimate
from priorveil.reading.estimate_notes import unbounded_averages
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally import Tally
from priorveil.results.document import Finding
from priorveil.results.findings import finding_of
from priorveil.results.samples import sample_finding
from priorveil.results.statistic_tables import (
    answer_rows,
    answer_size,
    averages_table,
    statistic_row,
)
from priorveil.statistics.samples import SampleEstimate
from priorveil.words import html
from priorveil.words.notes import interval_title, people_text, reports_text, sentence
from priorveil.words.results import (
    Unit,
    headlines,
    label_heads,
    number_cells,
    row_texts,
    selection,
    table_cells,
)
from priorveil.words.text_tables import TextTable

_SUMMARISED = 3  # statistics in the representation of an estimate
_CONFIDENCE = 0.95


# -- estimates -------------------------------------------------------------------------------------------


def estimate_text(estimate: Estimate) -> str:
    """The estimate as plain text."""
    found = finding_of(estimate, _CONFIDENCE)
    return _finding_text(headlines(estimate), found, _notes(found))


def estimate_html(estimate: Estimate) -> str:
    """The estimate for a notebook."""
    found = finding_of(estimate, _CONFIDENCE)
    return _finding_html(html.warnings(headlines(estimate)), found, _notes(found))


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


def _finding_text(head: Sequence[str], found: Finding, notes: Sequence[str]) -> str:
    tables = (line for which, cells in _tables(found) for line in (*which, *cells.lines()))
    return "\n".join([*head, *tables, *notes])


def _finding_html(head: str, found: Finding, notes: Sequence[str]) -> str:
    tables = [html.notes(which) + cells.html() for which, cells in _tables(found)]
    title = say("estimateTitle", reports=reports_text(found.reports))
    return html.sheet(title, head, *tables, html.notes(notes))


def _tables(found: Finding) -> Iterator[tuple[list[str], TextTable]]:
    """Each table, after a sentence on which rows it has if they are not all."""
    for table in found.figures.tables if found.figures else ():
        rows, which = selection(table)
        cells = table_cells(found, table, rows, _CONFIDENCE)
        yield (
            [] if which is None else [say("allInFrame", selection=which)],
            TextTable(len(label_heads(found, table)), *cells),
        )


def _notes(found: Finding) -> list[str]:
    return [str(note) for note in found.figures.notes] if found.figures else []


# -- averages and single statistics ----------------------------------------------------------------------


def averages_text(averages: Averages) -> str:
    """The averages by group with 95 % intervals, as plain text."""
    notes = map(str, unbounded_averages(averages))
    return "\n".join([*headlines(averages.statistics[0]), *_averages_cells(averages).lines(), *notes])


def averages_html(averages: Averages) -> str:
    """The averages by group with 95 % intervals, for a notebook."""
    title = say("averagesTitle", name=averages.name, groups=", ".join(averages.by))
    notes = html.notes(map(str, unbounded_averages(averages)))
    warnings = html.warnings(headlines(averages.statistics[0]))
    return html.sheet(title, warnings, _averages_cells(averages).html(), notes)


def _averages_cells(averages: Averages) -> TextTable:
    rows = averages_table(averages, _CONFIDENCE).rows
    labelled = ((row.label, row) for row in rows)
    cells = number_cells(averages.by, averages.name, labelled, "amount", _CONFIDENCE)
    return TextTable(len(averages.by), *cells)


def statistic_text(statistic: Statistic) -> str:
    """A single number with its name and its 95 % interval, in a line below its headlines."""
    row = statistic_row([""], statistic, _CONFIDENCE)
    texts = row_texts(row, "amount")
    interval = f"{interval_title(_CONFIDENCE)} {texts.interval}"
    value = f"{texts.value}, {unbounded_text(statistic) if row.is_unbounded else interval}"
    method = say("methodName", method=statistic.method) if statistic.method else None
    people = None if statistic.people is None else say("people", count=f"{statistic.people:,.12g}")
    source = ", ".join(filter(None, (method, people)))
    name = f"{statistic.name}: " if statistic.name else ""
    line = f"{name}{value}{f' ({source})' if source else ''}"
    return "\n".join([*headlines(statistic), line])


def unbounded_text(statistic: Statistic) -> str:
    """A sentence that the reports do not bound a ratio, and how many people would."""
    needed = statistic.people_to_bound
    if needed is None:
        return say("unboundedStatistic")
    return say("unboundedPeople", people=people_text(needed))


def statistic_html(statistic: Statistic) -> str:
    """A single number with its 95 % interval, for a notebook."""
    row = statistic_row([statistic.method], statistic, _CONFIDENCE)
    cells = number_cells((say("methodHead"),), say("estimateHead"), [(row.label, row)], "amount", _CONFIDENCE)
    unbounded = [sentence(unbounded_text(statistic))] if row.is_unbounded else []
    parts = html.warnings(headlines(statistic)), TextTable(1, *cells).html(), html.notes(unbounded)
    return html.sheet(statistic.name or say("statisticTitle"), *parts)


# -- samples ---------------------------------------------------------------------------------------------


def sample_text(estimate: SampleEstimate) -> str:
    """The estimate from a sample as plain text; the level beside other columns comes first."""
    found = sample_finding(estimate, _CONFIDENCE)
    return _finding_text(_beside(estimate), found, [*map(str, estimate.notes)])


def sample_summary(estimate: SampleEstimate) -> str:
    """The method, the reports and the first figures with their intervals, in a line."""
    figures = []
    for label in estimate.labels[:_SUMMARISED]:
        texts = row_texts(statistic_row([label], estimate[label], _CONFIDENCE), "amount")
        figures.append(f"{label_text(label)} {texts.value} ({texts.interval})")
    more = len(estimate.labels) - _SUMMARISED
    figures += [say("andMore", count=f"{more:,}")] if more > 0 else []
    return f"SampleEstimate({estimate.method}, {reports_text(estimate.reports)}: {', '.join(figures)})"


def sample_html(estimate: SampleEstimate) -> str:
    """The estimate from a sample for a notebook."""
    found = sample_finding(estimate, _CONFIDENCE)
    return _finding_html(html.notes(_beside(estimate)), found, [*map(str, estimate.notes)])


def _beside(estimate: SampleEstimate) -> list[str]:
    return [] if estimate.beside is None else [str(estimate.beside)]


# -- tallies ---------------------------------------------------------------------------------------------


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

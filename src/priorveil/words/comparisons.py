"""The words of differences, ratios and tests of independence, as text and for notebooks."""

from __future__ import annotations

from priorveil.catalogue import say
from priorveil.formatting import p_value_text
from priorveil.priors.label_texts import label_parts, label_text
from priorveil.results.statistic_tables import statistic_row
from priorveil.statistics.comparing import Comparison, ComparisonTable
from priorveil.statistics.independence import Independence
from priorveil.words import html
from priorveil.words.estimates import statistic_text
from priorveil.words.results import headlines, independence_text, number_cells, with_p_values
from priorveil.words.text_tables import TextTable

_CONFIDENCE = 0.95


def comparison_text(comparison: Comparison) -> str:
    """A difference or a ratio with its 95 % interval and its p-value."""
    return f"{statistic_text(comparison.statistic)}, {_p_value_text(comparison)}"


def comparison_html(comparison: Comparison) -> str:
    """A difference or a ratio with its 95 % interval and its p-value, for a notebook."""
    row = statistic_row([comparison.name], comparison.statistic, _CONFIDENCE)
    labelled = [((comparison.statistic.method,), row)]
    cells = number_cells((say("methodHead"),), comparison.name, labelled, "amount", _CONFIDENCE)
    parts = html.warnings(headlines(comparison.statistic)), TextTable(1, *cells).html()
    return html.sheet(comparison.name, *parts, html.notes([_p_value_text(comparison)]))


def _p_value_text(comparison: Comparison) -> str:
    if comparison.untested is not None:
        return say("noPValue", why=str(comparison.untested))
    return p_value_text(comparison.p_value)


def table_text(table: ComparisonTable) -> str:
    """The differences or ratios with 95 % intervals and p-values, as plain text."""
    head = headlines(table.comparisons[0].statistic)
    return "\n".join([*head, *_cells(table).lines(), *_untested(table)])


def table_html(table: ComparisonTable) -> str:
    """The differences or ratios with 95 % intervals and p-values, for a notebook."""
    warnings = html.warnings(headlines(table.comparisons[0].statistic))
    return html.sheet(table.name, warnings, _cells(table).html(), html.notes(_untested(table)))


def _cells(table: ComparisonTable) -> TextTable:
    labels = [tuple(map(label_text, label_parts(label))) for label in table.labels]
    width = max(map(len, labels))
    heads = (say("valueHead"), *[""] * (width - 1))
    numbered = (
        ((*label, *[""] * (width - len(label))), statistic_row(label, each.statistic, _CONFIDENCE))
        for label, each in zip(labels, table.comparisons, strict=True)
    )
    titles, cells = number_cells(heads, table.name, numbered, "amount", _CONFIDENCE)
    if table.comparisons[0].untested is not None:
        return TextTable(width, titles, cells)
    return TextTable(width, *with_p_values(titles, cells, table.p_value.tolist()))


def _untested(table: ComparisonTable) -> list[str]:
    why = table.comparisons[0].untested
    return [] if why is None else [say("noPValue", why=str(why))]


def independence_summary(test: Independence) -> str:
    """A test of independence in a line."""
    line = f"{say('independenceTitle')}: {independence_text(test)} ({say('people', count=f'{test.people:,.12g}')})"
    return f"{line}. {say('fewExpected')}" if test.few_people else line


def independence_html(test: Independence) -> str:
    """A test of independence for a notebook."""
    few = [say("fewExpected")] if test.few_people else []
    return html.sheet(say("independenceTitle"), html.notes([independence_text(test), *few]))

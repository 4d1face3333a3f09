"""Estimates and their averages as data for pictures, and the pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from priorveil.catalogue import say
from priorveil.errors import NotIdentifiable
from priorveil.priors.label_texts import label_names
from priorveil.reading.averages import Averages
from priorveil.reading.estimate import Estimate
from priorveil.results.statistic_tables import answer
from priorveil.words.notes import interval_title
from priorveil.words.plots import curves
from priorveil.words.plots.curves import Figure
from priorveil.words.plots.house_style import house_style
from priorveil.words.plots.statistics import Layout, Panel, statistics_figure
from priorveil.words.results import headlines

_LETTERS = 15  # of a title, for each inch of a figure


def estimate_layout(estimate: Estimate) -> Layout:
    """How an estimate is drawn. The counts of a margin are drawn as those of its own values."""
    prior = estimate.readings[0].prior if estimate.readings else None
    by_group = estimate.number_by_group
    if prior is None or estimate.histogram:
        names, rows = label_names(estimate.labels), None
    else:
        names, rows = label_names(prior.labels), estimate.readings[0].rows
    return Layout(
        estimate.attributes,
        names,
        rows,
        estimate.counts_people,
        None if prior is None else prior.edges,
        prior is not None and prior.points is not None,
        None if by_group is None else by_group.title,
    )


def estimate_panel(title: str, estimate: Estimate, confidence: float) -> Panel:
    """An estimate with its intervals, and the quartiles of cells of numbers. An infinite end is left out."""
    statistics = answer(estimate, confidence)
    values, _, low, high = statistics.columns
    expected = np.full(len(values), np.nan) if statistics.expected is None else statistics.expected
    numbers = np.array([values, low, high, expected])
    names = label_names(statistics.labels)
    panel = Panel(title, names, np.where(np.isfinite(numbers), numbers, np.nan), estimate.people)
    if estimate.reports and estimate.readings and estimate.readings[0].prior.edges is not None:
        with suppress(NotIdentifiable):  # some statistics of cells do not determine quantiles
            quartiles = {100 * q: estimate.quantile(q) for q in (0.25, 0.5, 0.75)}
            points = ((q, x.value, *x.interval(confidence)) for q, x in quartiles.items())
            return replace(panel, quantiles=tuple(points))
    return panel


@house_style()
def estimate_figure(estimate: Estimate, confidence: float) -> Figure:
    """An estimate against its prior, in the picture that fits its query; the title has its headlines and its method."""
    panel = estimate_panel("", estimate, confidence)
    lines = [*headlines(estimate), str(estimate.notes[0])]
    return _add_title(
        statistics_figure([panel], estimate_layout(estimate), interval_legend(confidence)), lines
    )


@house_style()
def averages_figure(averages: Averages, confidence: float) -> Figure:
    """A row for the average of each group, with its interval, and what the prior expects."""
    numbers = np.array([averages.values, *averages.interval(confidence), averages.expected])
    names = label_names(averages.labels)
    panel = Panel("", names, np.where(np.isfinite(numbers), numbers, np.nan), 1)
    layout = Layout(averages.by, names, np.eye(len(names)), False, averages=averages.name)
    figure = statistics_figure([panel], layout, interval_legend(confidence))
    figure.axes[0].set_ylabel(", ".join(averages.by))
    return _add_title(figure, headlines(averages.statistics[0]))


def interval_legend(confidence: float) -> str:
    """The legend of estimates with their intervals."""
    return say("estimateLegend", interval=interval_title(confidence))


def _add_title(figure: Figure, lines: Sequence[str]) -> Figure:
    """The figure with a title above it, and a legend below it if there is anything to tell apart."""
    width = int(figure.get_figwidth() * _LETTERS)
    title = [part for line in lines for part in textwrap.wrap(line, width)]
    figure.set_figheight(figure.get_figheight() + 0.16 * len(title))
    figure.suptitle("\n".join(title), fontsize=8)
    if len(figure.axes[0].get_legend_handles_labels()[1]) > 1:
        curves.legend(figure, figure.axes[0], columns=3)
    return figure

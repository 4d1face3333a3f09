"""The picture of how large a survey has to be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priorveil.catalogue import say
from priorveil.designs.survey_sizes import SurveySize
from priorveil.formatting import percent
from priorveil.words.planning import SizeQuestion, epsilon_text
from priorveil.words.plots import curves
from priorveil.words.plots.curves import Figure
from priorveil.words.plots.house_style import house_style

_COLOURS = ("sky", "blue", "green", "orange", "pink", "red", "black")
_FEWEST, _MOST = 100, 100_000  # people on the axis, if what is asked lies within


@house_style()
def size_figure(sizes: Sequence[SurveySize], question: SizeQuestion) -> Figure:
    """Half the width of the interval against the number of people, a curve for each budget.

    The curve is for people who follow the prior, the dots of its colour are for whatever the truth is. Thin lines show
    the half width, or the number of people, that is asked about.
    """
    from matplotlib.ticker import LogLocator

    figure, axes = curves.canvas(width=4.6, height=3.4)
    plot, percents = axes[0, 0], question.statistic == "share"
    people, scale = _people_axis(sizes, question), 100.0 if percents else 1.0
    *noisy, exact = sizes
    styles = [(size, _COLOURS[at % len(_COLOURS)]) for at, size in enumerate(noisy)]
    for size, colour in (*styles, (exact, "grey")):
        name = epsilon_text(size.epsilon)
        label = name if size is exact else say("sizePlotEpsilon", epsilon=name)
        widths = [np.array(ends) * scale for ends in zip(*_widths(size, people, question), strict=True)]
        curves.line(plot, ("certified", colour, label), people, widths[0])
        if size.worst_variance is not None:
            curves.line(plot, ("ldp", colour, ""), people, widths[1])
    if question.within is not None:
        plot.axhline(scale * question.within, color="black", linewidth=0.8, alpha=0.5)
    if question.people is not None:
        plot.axvline(question.people, color="black", linewidth=0.8, alpha=0.5)
    plot.plot([], [], label=say("sizePlotWorst"), color="black", **curves.STYLES["ldp"])
    curves.log_scale(plot, "x")
    curves.log_scale(plot, "y")
    name = say("sizePlotPoints" if percents else "sizePlotWidth", confidence=percent(question.confidence))
    plot.set(xlabel=say("sizePlotPeople"), ylabel=name, title=say("sizePlotTitle"))
    plot.set_xlim(people[0], people[-1])
    plot.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))  # longer numbers than log_scale has room for
    plot.xaxis.set_major_formatter("{x:,.0f}")
    plot.legend()
    return figure


def _widths(size: SurveySize, people: np.ndarray, question: SizeQuestion) -> list[tuple[float, float]]:
    pairs = [size.half_widths(int(number), question.confidence) for number in people]
    return [(first, first if second is None else second) for first, second in pairs]


def _people_axis(sizes: Sequence[SurveySize], question: SizeQuestion) -> np.ndarray:
    """Numbers of people, evenly on a logarithmic axis: with room around what is asked about."""
    asked = [question.people or _FEWEST]
    if question.within is not None:
        asked += [number for size in sizes for number in size.people(question.within) if number is not None]
    low, high = min(_FEWEST, *asked), max(_MOST, *asked)
    return np.unique(np.geomspace(low, 1.5 * high if high > _MOST else high, 60).round())

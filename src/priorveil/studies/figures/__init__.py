"""What every figure of the paper shares: settings, outcome, measured rows, and panels of curves.

A figure is a function from `FigureSettings` to an `Outcome`. The words around it are in `text.md`; `gallery` lists
the figures and writes them to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from priorveil.channels import Channel
from priorveil.notions import PriorOrSet, Secrets, leakage
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.queries import Histogram
from priorveil.words.plots import curves
from priorveil.words.plots.curves import ResultRecords, Style

FigureRow = dict[str, Any]


@dataclass(frozen=True)
class FigureSettings:
    """How to run a figure: `quick` (fewer points and people), and the `seed`."""

    quick: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """The result of a figure: rows of numbers, and a function that draws them.

    `verdicts` says which claims of the paper survive when the budget is kept, by their names in `text.md`; `words` are
    the numbers and words that the text has room for.
    """

    rows: ResultRecords
    draw: Callable[[], curves.Figure]
    verdicts: Mapping[str, bool]
    words: Mapping[str, Any]


def channel_row(
    channel: Channel, prior: Prior, public: PriorOrSet | None = None, secret: Secrets = None
) -> FigureRow:
    """The histogram error of a channel under the prior, and its levels under the same or what is `public` of it."""
    levels = leakage(channel, public or prior, secret)
    return {"mse": Histogram().error(channel, prior), "lip": levels.lip, "ldp": levels.ldp}


def plan_row(plan: Plan) -> FigureRow:
    """The expected error of a plan, its proven bound, and its certified levels."""
    proof = plan.certificate
    return {"mse": plan.expected_mse, "bound": plan.lower_bound, "lip": proof.lip, "ldp": proof.ldp}


def sweep(
    epsilons: Iterable[float],
    cases: Mapping[str, Callable[[float], Mapping[str, FigureRow]]],
    styles: Mapping[str, Style],
    case: str = "case",
) -> list[FigureRow]:
    """A row for each epsilon, case and method: a case is a function from epsilon to the numbers of each method.

    The kind of a method comes from its style; the column with the name of the case is called `case`.
    """
    return [
        {case: name, "epsilon": epsilon, "method": method, "kind": styles[method][0], **row}
        for epsilon in epsilons
        for name, measure in cases.items()
        for method, row in measure(epsilon).items()
    ]


def draw_pairs(
    rows: ResultRecords,
    titles: Mapping[Any, str],
    styles: Mapping[str, Style],
    leaking: Sequence[str],
    case: str = "case",
    y: str = "mse",
    level: str = "lip",
    log: bool = False,
) -> curves.Figure:
    """Two panels for each title, errors above real levels, and one legend below them all.

    `titles` has a title for each value of the column `case`; `leaking` has the methods whose level is drawn. Errors
    are the roots of the column `y`, unless that is a share of wrong guesses; with `log` their axis is logarithmic.
    """
    wide, guesses = len(titles) < 3, y == "wrong"
    figure, axes = curves.canvas(2, len(titles), curves.COLUMN if wide else 2.4, sharex=True)
    level_styles = {method: styles[method] for method in leaking}
    for (name, title), errors, levels in zip(titles.items(), *axes, strict=True):
        case_rows = [row for row in rows if row[case] == name]
        curves.method_lines(errors, case_rows, styles, y, root=not guesses)
        errors.set(title=title, ylabel=curves.WRONG_SHARE if guesses else curves.ROOT_ERROR)
        if log:
            curves.log_scale(errors)
        else:
            errors.set_ylim(0, None)
        curves.level_lines(levels, case_rows, level_styles, level)
    if not wide:  # narrow panels have room for short names, and for those of the first axes only
        for panel in axes[:, 1:].flat:
            panel.set_ylabel("")
        for panel in axes[1]:
            panel.set_xlabel("budget ε (nats)")
    curves.legend(figure, columns=3)
    return figure

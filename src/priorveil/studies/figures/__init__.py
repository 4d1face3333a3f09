"""What every figure of the paper shares: settings, outcome, claims, measured rows, and panels of curves.

`report` lists the figures and writes them to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from priorveil.channels import Channel
from priorveil.notions import Known, Secrets, leakage
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.queries import Histogram
from priorveil.studies import curves
from priorveil.studies.curves import Rows, Style

T = TypeVar("T")
# Claims of the paper: whether each survives when the budget is kept, and why where that is not plain.
Claims = Mapping[str, tuple[bool, str]]


def _silent(share: float) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Settings:
    """How to run a figure: `quick` (fewer points and people), the `seed`, and what to call with progress, 0 to 1."""

    quick: bool = False
    seed: int = 0
    progress: Callable[[float], None] = _silent

    def track(self, items: Sequence[T]) -> Iterator[T]:
        """The items, with progress after each."""
        for i, item in enumerate(items, 1):
            yield item
            self.progress(i / len(items))


@dataclass(frozen=True)
class Outcome:
    """The result of a figure: numbers, a function that draws them, remarks, claims, and a note on this run's data."""

    rows: Rows
    draw: Callable[[], curves.Figure]
    remarks: tuple[str, ...]
    claims: Claims
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """One of the paper's results: its number here, a short name, a title, and the function that runs it.

    The docstring of the function is the caption. `partial(Figure, number, name, title)` is a decorator.
    """

    number: int
    name: str
    title: str
    run: Callable[[Settings], Outcome]

    @property
    def caption(self) -> str:
        """What the picture shows."""
        return " ".join((self.run.__doc__ or "").split())


def channel_row(
    channel: Channel, prior: Prior, known: Known | None = None, secret: Secrets = None
) -> dict[str, Any]:
    """The histogram error of a channel under the prior, and its levels (under `known`, if that is given)."""
    levels = leakage(channel, known or prior, secret)
    return {"mse": Histogram().error(channel, prior), "lip": levels.lip, "ldp": levels.ldp}


def plan_row(plan: Plan) -> dict[str, Any]:
    """The expected error of a plan, its proven bound, and its certified levels."""
    proof = plan.certificate
    return {"mse": plan.expected_mse, "bound": plan.lower_bound, "lip": proof.lip, "ldp": proof.ldp}


def label_rows(
    found: Mapping[str, Mapping[str, Any]], styles: Mapping[str, Style], **shared: object
) -> list[dict[str, Any]]:
    """A row for each method: the `shared` columns, its name, its kind (from its style) and its own numbers."""
    return [{**shared, "method": m, "kind": styles[m][0], **row} for m, row in found.items()]


def draw_pairs(
    rows: Rows,
    titles: Mapping[Any, str],
    styles: Mapping[str, Style],
    leaking: Sequence[str],
    case: str = "case",
    y: str = "mse",
    level: str = "lip",
    height: float = 2.3,
    top: float | None = None,
    log: bool = False,
) -> curves.Figure:
    """Two panels for each title, errors above real levels, and one legend below them all.

    `titles` has a title for each value of the column `case`; `leaking` has the methods whose level is drawn. Errors
    are the roots of the column `y`, unless that is a share of wrong guesses; with `log` their axis is logarithmic.
    """
    wide, guesses = len(titles) < 3, y == "wrong"
    width, xlabel = (curves.COLUMN, curves.BUDGET) if wide else (2.4, "budget ε (nats)")
    figure, axes = curves.canvas(2, len(titles), width, height, sharex=True)
    shown = {method: styles[method] for method in leaking}
    for (name, title), errors, levels in zip(titles.items(), *axes, strict=True):
        curves.lines(curves.method_curves(rows, styles, y, root=not guesses, **{case: name}), errors)
        errors.set(title=title, ylabel=curves.WRONG_SHARE if guesses else curves.ROOT_ERROR)
        if log:
            curves.log_scale(errors)
        else:
            errors.set_ylim(0, None)
        curves.level_lines(curves.method_curves(rows, shown, level, **{case: name}), levels, xlabel, top)
    if not wide:  # narrow panels have room for the names of the first axes only
        for panel in axes[:, 1:].flat:
            panel.set_ylabel("")
    curves.legend(figure, columns=3)
    return figure

"""What all figures share: settings, claims and outcomes, measured rows, and panels of curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.channels import Channel
from priorveil.notions import Known, Secrets, leakage
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.queries import Histogram
from priorveil.studies import curves
from priorveil.studies.curves import Rows, Style

T = TypeVar("T")
# Claims of the paper: whether each survives when the budget is kept, and why.
Claims = Mapping[str, tuple[bool, str]]


@dataclass(frozen=True)
class Settings:
    """How to run a figure: `quick` (fewer points and people), the `seed`, and a function to report progress."""

    quick: bool = False
    seed: int = 0
    progress: Callable[[float], None] | None = None

    def report_progress(self, share: float) -> None:
        """Report progress, from 0 to 1."""
        if self.progress is not None:
            self.progress(share)

    def track(self, items: Sequence[T]) -> Iterator[T]:
        """The items, with progress after each."""
        for i, item in enumerate(items, 1):
            yield item
            self.report_progress(i / len(items))


@dataclass(frozen=True)
class Outcome:
    """The result of a figure: numbers, a function that draws them, a caption, remarks, and claims."""

    rows: Rows
    draw: Callable[[], curves.Figure]
    caption: str
    remarks: tuple[str, ...]
    claims: Claims


@dataclass(frozen=True)
class Figure:
    """One of the paper's results: its number here, a short name, a title, and the function that runs it."""

    number: int
    name: str
    title: str
    run: Callable[[Settings], Outcome]


def channel_row(
    channel: Channel, prior: Prior, known: Known | None = None, secret: Secrets = None
) -> dict[str, Any]:
    """The histogram error of a channel under the prior, and its levels (under `known`, if that is given)."""
    levels = leakage(channel, prior if known is None else known, secret)
    return {"mse": Histogram().error(channel, prior), "lip": levels.lip, "ldp": levels.ldp}


def plan_row(plan: Plan) -> dict[str, Any]:
    """The expected error of a plan, its proven bound, and its certified levels."""
    proof = plan.certificate
    return {"mse": plan.expected_mse, "bound": plan.lower_bound, "lip": proof.lip, "ldp": proof.ldp}


def method_rows(
    found: Mapping[str, Mapping[str, Any]], styles: Mapping[str, Style], **shared: object
) -> list[dict[str, Any]]:
    """A row for each method: the `shared` columns, its name, its kind (from its style) and its own numbers."""
    return [{**shared, "method": m, "kind": styles[m][0], **row} for m, row in found.items()]


def below(lower: npt.ArrayLike, upper: npt.ArrayLike, slack: float = 1e-9) -> bool:
    """Whether one curve lies nowhere above another, up to rounding."""
    return bool((np.asarray(lower) <= np.asarray(upper) + slack).all())


def panel_pairs(
    rows: Rows,
    titles: Mapping[Any, str],
    styles: Mapping[str, Style],
    leaking: Sequence[str],
    case: str = "case",
    y: str = "mse",
    level: str = "lip",
    height: float = 2.3,
    top: float | None = None,
) -> curves.Figure:
    """Two panels for each title, errors above real levels, and one legend below them all.

    `titles` has a title for each value of the column `case`; `leaking` has the methods whose level is drawn. Errors
    are the roots of the column `y`, unless that is a share of wrong guesses.
    """
    wide, guesses = len(titles) < 3, y == "wrong"
    width, xlabel = (curves.COLUMN, curves.BUDGET) if wide else (2.4, "budget ε (nats)")
    figure, axes = curves.canvas(2, len(titles), width, height, sharex=True)
    for (name, title), above, below in zip(titles.items(), *axes, strict=True):
        curves.lines(curves.method_curves(rows, styles, y, root=not guesses, **{case: name}), above)
        above.set(title=title, ylim=(0, None), ylabel=curves.WRONG_SHARE if guesses else curves.ROOT_ERROR)
        levels = curves.method_curves(
            rows, {method: styles[method] for method in leaking}, level, **{case: name}
        )
        curves.level_lines(levels, below, xlabel, top)
    if not wide:  # narrow panels have room for the names of the first axes only
        for panel in axes[:, 1:].flat:
            panel.set_ylabel("")
    curves.legend(figure, columns=3)
    return figure

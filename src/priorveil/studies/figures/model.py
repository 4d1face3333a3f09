"""What a figure is: a number, a name, and a function from settings to an outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from priorveil.studies.simulate import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

Rows = Sequence[Mapping[str, object]]
Tell = Callable[[float], None]


@dataclass(frozen=True)
class Setting:
    """How to run: `quick` (fewer points and people), the `seed`, and whom to tell the share that is done."""

    quick: bool = False
    seed: int = 0
    tell: Tell | None = None

    def done(self, share: float) -> None:
        """Report progress, from 0 to 1."""
        if self.tell is not None:
            self.tell(share)


@dataclass(frozen=True)
class Claim:
    """A qualitative claim of the paper, whether it survives once the budget is kept, and why."""

    text: str
    survives: bool
    why: str


@dataclass(frozen=True)
class Outcome:
    """What a figure found: numbers, how to draw them, a caption, what to see, and the fate of claims."""

    rows: Rows
    draw: Callable[[], Picture]
    caption: str
    see: tuple[str, ...]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One of the paper's results, by its number here, a short name, a title, and what makes it."""

    number: int
    name: str
    title: str
    run: Callable[[Setting], Outcome]


def rows_of(study: Study) -> list[dict[str, object]]:
    """A study as rows of a table."""
    return [asdict(row) for row in study.rows]


def number(row: Mapping[str, object], key: str) -> float:
    """A number of a row."""
    value = row[key]
    assert isinstance(value, int | float)
    return float(value)

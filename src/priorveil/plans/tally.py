"""Tallies: reports added up. Small, mergeable, and never a copy of the reports."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, plural

Counts = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

FORMAT = "priorveil-tally"
VERSION = 1

_SUMS = ("total", "power", "least", "offset")


@dataclass(frozen=True, eq=False)
class Weighted:
    """What weighted answers need besides the counts.

    `weights` and `squares` are the counts once more, with every report counted as often as its weight says,
    and as often as the square of its weight; `total` and `power` are the sums of both over all reports,
    `least` is the smallest weight, `offset` the sum of everybody's offset.
    """

    weights: Array
    squares: Array
    total: float
    power: float
    least: float
    offset: float

    def __add__(self, other: Weighted) -> Weighted:
        return Weighted(
            self.weights + other.weights,
            self.squares + other.squares,
            self.total + other.total,
            self.power + other.power,
            min(self.least, other.least),
            self.offset + other.offset,
        )


@dataclass(frozen=True, eq=False)
class Tally:
    """The reports of one plan, added up: `tally + tally` is the tally of all.

    `counts` is what the plan's mechanism keeps, in integers; `reports` how many were counted; `refused`
    how many were not, by reason.

    >>> a = Tally("plan", np.array([1, 2]), 3)
    >>> (a + a).counts.tolist(), (a + a).reports
    ([2, 4], 6)
    """

    plan: str
    counts: Counts
    reports: int
    refused: Mapping[str, int] = field(default_factory=dict)
    weighted: Weighted | None = None

    def __radd__(self, other: object) -> Tally:  # sum() begins with 0
        return self if other == 0 else NotImplemented

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if self.plan != other.plan:
            raise InvalidInput("tally", other.plan, f"it belongs to another plan than {self.plan}")
        if (self.weighted is None) != (other.weighted is None) and self.reports and other.reports:
            raise InvalidInput(
                "tally", other.plan, "one has weights and the other has none: tally both alike"
            )
        weighted = (
            self.weighted + other.weighted
            if self.weighted and other.weighted
            else self.weighted or other.weighted
        )
        refused = dict(Counter(self.refused) + Counter(other.refused))
        return Tally(self.plan, self.counts + other.counts, self.reports + other.reports, refused, weighted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.plan, self.reports, self.counts.tobytes()))

    def __repr__(self) -> str:
        refused = f", {sum(self.refused.values())} refused" if self.refused else ""
        return f"Tally({plural(self.reports, 'report')}{refused}, plan {self.plan[:12]})"

    def to_json(self) -> str:
        """As a JSON text; integers that JavaScript could not hold are strings."""
        fields: dict[str, object] = {
            "format": FORMAT,
            "version": VERSION,
            "plan": self.plan,
            "reports": self.reports,
            "refused": dict(sorted(self.refused.items())),
            "shape": list(self.counts.shape),
            "counts": [str(c) for c in self.counts.ravel().tolist()],
        }
        if self.weighted is not None:
            w = self.weighted
            fields["weighted"] = {
                "weights": w.weights.tolist(),
                "squares": w.squares.tolist(),
                **{name: getattr(w, name) for name in _SUMS},
            }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        >>> Tally.from_json(Tally("plan", np.array([1, 2]), 3).to_json())
        Tally(3 reports, plan plan)
        """
        try:
            read = json.loads(text)
            if read["format"] != FORMAT or read["version"] != VERSION:
                raise ValueError(f"it should be a {FORMAT} of version {VERSION}")
            counts = np.array([int(c) for c in read["counts"]], dtype=np.int64).reshape(read["shape"])
            if int(read["reports"]) < 0 or (counts < 0).any():
                raise ValueError("counts are zero or more")
            kept = _read_weighted(read["weighted"], counts.shape) if "weighted" in read else None
            return cls(str(read["plan"]), counts, int(read["reports"]), read["refused"], kept)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidInput("text", text, f"not a tally: {error}") from error


def _read_weighted(read: Mapping[str, Any], shape: tuple[int, ...]) -> Weighted:
    """The weighted counts of a text, if they are numbers in the shape of the counts."""
    weights, squares = (np.array(read[name], dtype=np.float64) for name in ("weights", "squares"))
    sums = {name: float(read[name]) for name in _SUMS}
    if weights.shape != shape or squares.shape != shape:
        raise ValueError(f"weighted counts of shape {weights.shape} beside counts of shape {shape}")
    if not all(np.isfinite(part).all() for part in (weights, squares, list(sums.values()))):
        raise ValueError("weighted counts are finite numbers")
    return Weighted(weights, squares, **sums)

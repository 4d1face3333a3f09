"""Tallies: reports added up. A tally is small, can be merged, and never holds the reports themselves."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array, Ints, Mask
from priorveil.errors import NOT_SHOWN, InvalidInput, plural
from priorveil.frames import Library, read_stream, to_frame
from priorveil.mechanisms import Mechanism
from priorveil.reading.reader import Reader

FORMAT = "priorveil-tally"
VERSION = 1

_LARGEST = 1e100  # of a weight or an offset: squares of weights still add up


@dataclass(frozen=True, eq=False)
class WeightedCounts:
    """The weighted counts of a tally.

    In `weights` every report is counted by its weight, in `squares` by the square of its weight. `total` and `power`
    are the sums of both over all reports. `least` is the smallest weight, or zero if none is negative, and `offset` is
    the sum of all offsets.
    """

    weights: Array
    squares: Array
    total: float
    power: float
    least: float
    offset: float

    @classmethod
    def of(cls, reader: Reader[Any], reports: npt.NDArray[Any], c: Array, b: Array) -> WeightedCounts:
        """The weighted counts of reports with the weights `c` and the offsets `b`."""
        counts = reader.count(reports, c), reader.count(reports, c**2)
        return cls(*counts, float(c.sum()), float(c @ c), float(c.min(initial=0.0)), float(b.sum()))

    def are_equal(self, reports: int) -> bool:
        """Whether all weights of so many reports are the same."""
        return math.isclose(self.power * reports, self.total**2, rel_tol=1e-9)

    def __add__(self, other: WeightedCounts) -> WeightedCounts:
        sums = {name: part + getattr(other, name) for name, part in vars(self).items()}
        return WeightedCounts(**{**sums, "least": min(self.least, other.least)})


@dataclass(frozen=True, eq=False)
class Tally:
    """The reports of one plan, added up: `tally + tally` is the tally of all.

    `counts` is what the plan's mechanism keeps, in integers; `reports` is the number of reports counted; `refused`
    the number of those left out, by reason.

    >>> a = Tally("plan", np.array([1, 2]), 3)
    >>> (a + a).counts.tolist(), (a + a).reports
    ([2, 4], 6)
    """

    plan: str
    counts: Ints
    reports: int
    refused: Mapping[str, int] = field(default_factory=dict)
    weighted: WeightedCounts | None = None

    def __radd__(self, other: object) -> Tally:  # sum() begins with 0
        return self if other == 0 else NotImplemented

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if self.plan != other.plan:
            raise InvalidInput(
                "tally",
                other.plan,
                f"it counts reports of another plan than {self.plan}: add tallies of one plan only",
            )
        if (self.weighted is None) != (other.weighted is None) and self.reports and other.reports:
            raise InvalidInput("tally", other.plan, "only one of the two has weights: give both or neither")
        weighted = self.weighted or other.weighted
        if self.weighted and other.weighted:
            weighted = self.weighted + other.weighted
        refused = dict(Counter(self.refused) + Counter(other.refused))
        return Tally(self.plan, self.counts + other.counts, self.reports + other.reports, refused, weighted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.plan, self.reports, self.counts.tobytes()))

    def __repr__(self) -> str:
        refused = f", {sum(self.refused.values())} refused" if self.refused else ""
        return f"Tally({plural(self.reports, 'report')}{refused}, plan {self.plan[:12]})"

    def to_frame(self, library: Library | None = None) -> Any:
        """The counters and their counts as a data frame of pandas, polars or pyarrow.

        A counter of a table plan is a report; the counters of other mechanisms are those of their reader.
        """
        counts = self.counts.ravel()
        return to_frame({"counter": np.arange(len(counts)), "count": counts}, library)

    def _repr_html_(self) -> str:
        return showing.html(self)

    def to_json(self) -> str:
        """The tally as JSON; integers that JavaScript could not hold are strings."""
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
            fields["weighted"] = {name: np.asarray(v).tolist() for name, v in vars(self.weighted).items()}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`.

        >>> Tally.from_json(Tally("plan", np.array([1, 2]), 3).to_json())
        Tally(3 reports, plan plan)
        """
        try:
            fields = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput("text", text, "not JSON: give the text of Tally.to_json") from None
        if not isinstance(fields, dict) or "format" not in fields:
            raise InvalidInput("text", text, "JSON, but not a tally: give the text of Tally.to_json")
        try:
            if fields["format"] != FORMAT or fields["version"] != VERSION:
                raise ValueError(f"it should be a {FORMAT} of version {VERSION}")
            counts = np.array([int(c) for c in fields["counts"]], dtype=np.int64).reshape(fields["shape"])
            if int(fields["reports"]) < 0 or (counts < 0).any():
                raise ValueError("counts are zero or more")
            weighted = _read_weighted(fields["weighted"], counts.shape) if "weighted" in fields else None
            return cls(str(fields["plan"]), counts, int(fields["reports"]), fields["refused"], weighted)
        except KeyError as error:
            raise InvalidInput("text", text, f"not a tally: the field {error} is missing") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput("text", text, f"not a tally: {error}") from error


def _read_weighted(fields: Mapping[str, Any], shape: tuple[int, ...]) -> WeightedCounts:
    """Read weighted counts from a JSON document; they have to be finite and in the shape of the counts."""
    weights, squares = (np.array(fields[name], dtype=np.float64) for name in ("weights", "squares"))
    sums = {name: float(fields[name]) for name in ("total", "power", "least", "offset")}
    if weights.shape != shape or squares.shape != shape:
        raise ValueError(f"weighted counts of shape {weights.shape} with counts of shape {shape}")
    if not all(np.isfinite(part).all() for part in (weights, squares, list(sums.values()))):
        raise ValueError("weighted counts are finite numbers")
    return WeightedCounts(weights, squares, **sums)


def select_reports(
    mechanism: Mechanism, reports: npt.ArrayLike, foreign: str
) -> tuple[npt.NDArray[Any], Mask, dict[str, int]]:
    """The reports to count, which rows they are, and the number of those left out, by reason."""
    if foreign not in ("raise", "count"):
        raise InvalidInput("foreign", foreign, "choose 'raise' or 'count'")
    reports = read_stream(reports)
    rows = np.asarray(reports)
    if rows.ndim == 0:
        advice = f"type {type(reports).__name__}; give a column of reports; put a single report in a list"
        raise InvalidInput("reports", NOT_SHOWN, advice)
    if rows.size == 0:  # an empty list has no shape of its own
        rows = mechanism.new_reports()
    selected = np.ones(len(rows), dtype=bool)
    refused: dict[str, int] = {}
    if isinstance(reports, np.ma.MaskedArray) and len(rows):
        selected &= ~np.ma.getmaskarray(reports).reshape(len(rows), -1).any(axis=1)
        refused["missing"] = int((~selected).sum())
    if foreign == "count":
        accepted = mechanism.accepts(rows)
        refused["foreign"] = int((selected & ~accepted).sum())
        selected &= accepted
    valid_reports = rows if selected.all() else rows[selected]
    return valid_reports, selected, {reason: n for reason, n in refused.items() if n}


def complete_reports(mechanism: Mechanism, reports: npt.ArrayLike) -> npt.NDArray[Any]:
    """The reports as an array; none may be missing."""
    valid, selected, _ = select_reports(mechanism, reports, "raise")
    if not selected.all():
        raise InvalidInput("reports", NOT_SHOWN, "some are missing: leave them out first")
    return valid


def numbers_per_report(argument: str, numbers: npt.ArrayLike, selected: Mask) -> Array:
    """One finite number for each selected report."""
    advice = f"give one number, or one for each of the {len(selected)} reports, none missing or beyond 1e100"
    try:
        array = np.asarray(read_stream(numbers), dtype=np.float64)
    except (TypeError, ValueError):  # its message shows a number
        raise InvalidInput(argument, NOT_SHOWN, f"type {type(numbers).__name__}; {advice}") from None
    if array.shape not in ((), selected.shape):
        raise InvalidInput(argument, NOT_SHOWN, f"shape {array.shape}; {advice}")
    if not (np.abs(array) <= _LARGEST).all() or np.ma.is_masked(numbers):
        raise InvalidInput(argument, NOT_SHOWN, f"one is missing or too large; {advice}")
    return np.broadcast_to(array, selected.shape)[selected]

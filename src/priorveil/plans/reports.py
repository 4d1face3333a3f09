"""Columns of reports on their way into a tally: gaps, foreign rows, and the numbers that go with each report."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput
from priorveil.mechanisms import Mechanism
from priorveil.mechanisms.randomness import BytesSource
from priorveil.mechanisms.reading import Counted
from priorveil.plans.tally import Tally

_LARGEST = 1e100  # of a weight or an offset: squares of weights still add up


def masked(reports: npt.NDArray[Any], absent: npt.NDArray[np.bool_]) -> np.ma.MaskedArray[Any, Any]:
    """Reports with the rows of missing values masked, their content wiped."""
    wiped = np.where(absent.reshape(-1, *[1] * (reports.ndim - 1)), 0, reports).astype(reports.dtype)
    mask = np.broadcast_to(absent.reshape(-1, *[1] * (reports.ndim - 1)), reports.shape)
    return np.ma.MaskedArray(wiped, mask)


def sifted(
    mechanism: Mechanism, reports: npt.ArrayLike, foreign: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_], dict[str, int]]:
    """The reports to count, which rows they are, and how many were left out for which reason."""
    if foreign not in ("raise", "count"):
        raise InvalidInput("foreign", foreign, "choose 'raise' or 'count'")
    column = reports.to_numpy() if hasattr(reports, "to_numpy") else reports
    missing = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    rows = np.asarray(column)
    if rows.ndim == 0:
        raise InvalidInput(
            "reports", type(reports).__name__, "give a column of reports; of one, a list of one"
        )
    if rows.size == 0:  # an empty list has no shape of its own: take that of the reports of nobody
        rows = _nobody(mechanism)
    chosen = np.ones(len(rows), dtype=bool)
    refused: dict[str, int] = {}
    if missing is not None:
        chosen &= ~missing.reshape(len(rows), -1).any(axis=1)
        refused["missing"] = int((~chosen).sum())
    if foreign == "count":
        known = mechanism.accepts(rows)
        refused["foreign"] = int((chosen & ~known).sum())
        chosen &= known
    kept = rows if chosen.all() else rows[chosen]
    return kept, chosen, {reason: n for reason, n in refused.items() if n}


def _nobody(mechanism: Mechanism) -> npt.NDArray[Any]:
    """The reports of nobody, in the shape that reports have."""
    return mechanism.sample(np.empty(0, dtype=np.int64), BytesSource(b""))


def require_shape(mechanism: Mechanism, tally: Tally) -> None:
    """Refuse a tally that this mechanism cannot have counted."""
    empty = mechanism.accumulate(_nobody(mechanism))
    counted = tally.counts.shape == empty.shape
    if counted and isinstance(mechanism, Counted):
        counted = int(tally.counts.sum()) == tally.reports
    if not counted:
        raise InvalidInput("tally", tally, "its counts are not those of this plan's reports")


def per_report(
    argument: str, numbers: npt.ArrayLike, chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """One finite number for each report that is counted."""
    advice = f"give one number, or one for each of the {len(chosen)} reports, none missing or beyond 1e100"
    try:
        given = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(argument, type(numbers).__name__, advice) from error
    if given.shape not in ((), chosen.shape):
        raise InvalidInput(argument, f"shape {given.shape}", advice)
    if not (np.abs(given) <= _LARGEST).all() or np.ma.is_masked(numbers):
        raise InvalidInput(argument, "not a number, or one too large", advice)
    return np.broadcast_to(given, chosen.shape)[chosen]

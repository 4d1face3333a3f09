"""Reports added up by numpy, and for large tables by scipy: a compiled loop takes longer to load than it saves.

What is counted is what the mechanism's `accumulate` counts, number by number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import Arc, Mechanism
from priorveil.mechanisms.arc_cells import tally_sorted
from priorveil.mechanisms.reading import Counted
from priorveil.plans.tally import Counts

Counter = Callable[[npt.NDArray[Any]], Counts]

_MANY_ROWS = 30_000_000  # from here on the time to load scipy's sparse matrices is well spent


def counter(mechanism: Mechanism, rows: int | None = None) -> Counter:
    """A function that adds up reports that are known to be the mechanism's own, of a table of so many rows."""
    if isinstance(mechanism, Counted):
        return partial(_numbers, mechanism.outputs)
    if isinstance(mechanism, Arc):
        return _in_buckets(mechanism) if (rows or 0) >= _MANY_ROWS else partial(tally_sorted, mechanism.cells)
    return mechanism.accumulate


def _in_buckets(arc: Arc) -> Counter:
    """Twice as fast as sorting, once scipy is loaded."""
    fast = import_module("priorveil.mechanisms.arc_buckets")
    return partial(fast.tally_in_buckets, fast.ArcBuckets(arc.cells))


def _numbers(outputs: int, reports: npt.NDArray[np.int64]) -> Counts:
    return np.bincount(reports, minlength=outputs).astype(np.int64, copy=False)

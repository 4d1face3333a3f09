"""Reports added up by numpy, which is there already: a compiled loop takes longer to load than it saves.

What is counted is what the mechanism's `accumulate` counts, number by number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import Arc, Mechanism
from priorveil.mechanisms.arc_cells import tally_sorted
from priorveil.mechanisms.reading import Counted
from priorveil.tallies import Counts

Counter = Callable[[npt.NDArray[Any]], Counts]


def counter(mechanism: Mechanism) -> Counter:
    """A function that adds up reports that are known to be the mechanism's own."""
    if isinstance(mechanism, Counted):
        return partial(_numbers, mechanism.outputs)
    if isinstance(mechanism, Arc):
        # Sorting lets other threads run meanwhile; looking up the column of each report would not.
        return partial(tally_sorted, mechanism.cells)
    return mechanism.accumulate


def _numbers(outputs: int, reports: npt.NDArray[np.int64]) -> Counts:
    return np.bincount(reports, minlength=outputs).astype(np.int64, copy=False)

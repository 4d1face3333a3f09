"""The nearest histogram without negative counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.reading.estimate_data import E
from priorveil.reading.shares_search import nearest_shares


def project(estimate: E) -> E:
    """The nearest histogram of everybody who reported, without negative counts; see `Estimate.project`."""
    if not estimate.histogram:
        advice = "only a histogram can be projected; for statistics of possible shares use method mle"
        raise InvalidInput("estimate", NOT_SHOWN, advice)
    if any(r.tally.weighted and r.tally.weighted.least < 0 for r in estimate.readings):
        advice = "some weights are negative, so counts may be negative: they cannot be projected"
        raise InvalidInput("weights", NOT_SHOWN, advice)
    ones = np.ones_like(estimate.values)
    values = estimate.people * nearest_shares(estimate.values / (estimate.people or 1.0), ones)
    return replace(
        estimate,
        values=values,
        method=estimate.method if estimate.projected else f"{estimate.method}, projected",
        projected=True,
        centre=estimate.interval_centre,
        limits=np.outer([0.0, estimate.people], ones),
    )

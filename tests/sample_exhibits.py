"""One object of every kind that notebooks show, with a label that no page may run."""

from __future__ import annotations

from typing import Any

import numpy as np

import priorveil as pv

HOSTILE = "<img src=x onerror=alert(1)> & 'co'"
PRIOR = pv.Prior({HOSTILE: 0.5, "b": 0.3, "c": 0.2})
HOURS = pv.Prior.joint(
    {("young", 0): 0.2, ("young", 40): 0.3, ("old", 0): 0.4, ("old", 40): 0.1},
    ("age", "overtime"),
    grids=("overtime",),
)


def exhibits() -> dict[str, Any]:
    """The objects by the names of their classes."""
    plan = pv.design(PRIOR, 1.0, pv.Histogram())
    people = [HOSTILE] * 500 + ["b"] * 300 + ["c"] * 200
    tally = plan.tally([*plan.privatize(people, np.random.default_rng(0)), 99], foreign="count")
    estimate = plan.estimate(tally)
    hours = pv.design(HOURS, 1.0, pv.Distribution())
    reports = hours.privatize([("young", 10.0), ("old", 30.0)] * 500, np.random.default_rng(0))
    averages = hours.estimate(hours.tally(reports)).mean("overtime", by="age")
    ledger = pv.Ledger(PRIOR, limit=3.0)
    ledger.spend(plan)
    objects = (
        PRIOR, plan.channel, plan.levels, plan, plan.certificate, tally, estimate,
        estimate.contrast({"b": 1.0}), averages, ledger,
        pv.compare(PRIOR, [pv.Histogram()], [1.0]),
        pv.compare_device(pv.devices.warner(0.75), [0.2, 0.8]), pv.dice_menu({HOSTILE: 0.2, "b": 0.8}),
    )  # fmt: skip
    return {type(each).__name__: each for each in objects}


EXHIBITS = exhibits()

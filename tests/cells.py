"""A small plan for every mechanism and query that go together, and why the others do not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import priorveil as pv
from priorveil.certify import certificate
from priorveil.mechanisms import MECHANISMS, Grouped

PRIOR = pv.Prior([0.3, 0.25, 0.2, 0.15, 0.1])
TRUTH = np.array([0.1, 0.15, 0.2, 0.25, 0.3])  # a population that the prior gets wrong
VALUES = (0.0, 1.0, 2.0, 5.0, 9.0)

QUERIES = {
    "Histogram": pv.Histogram(),
    "Sum": pv.Sum(VALUES),
    "Guess": pv.Guess(),
    "Distribution": pv.Distribution(),
}

MISSING = {
    **{
        ("hashing", q): "pools of seeds are designed for histograms and distributions"
        for q in ("Sum", "Guess")
    },
    ("grouped", "Distribution"): "values of a group are reported alike",
}

CELLS = [(kind, query) for kind in MECHANISMS for query in QUERIES if (kind, query) not in MISSING]


@cache
def cell(kind: str, query: str) -> pv.Plan:
    """The plan of a cell."""
    if kind == "grouped":
        return _grouped(QUERIES[query])
    method = "columns" if kind == "table" else kind  # arcs learn a distribution as a pool of orders
    # Seeds tell all values apart only where none is too likely to share a bin.
    prior = pv.Prior.uniform(5) if (kind, query) == ("hashing", "Distribution") else PRIOR
    plan = pv.design(prior, 1.5, QUERIES[query], method=method)  # type: ignore[arg-type]
    assert plan.mechanism.kind == kind
    return plan


def _grouped(query: pv.Histogram | pv.Sum | pv.Guess) -> pv.Plan:
    """Two groups of values, each reported alike: what designs for large domains are made of."""
    pair = pv.design([0.55, 0.45], 1.5, pv.Histogram())
    mechanism = Grouped(np.array([0, 0, 1, 1, 1]), pair.mechanism)  # type: ignore[arg-type]
    return replace(
        pair, prior=PRIOR, query=query, mechanism=mechanism, lower_bound=0.0, no_report=query.no_report(PRIOR),
        expected_mse=query.error(pv.Channel(mechanism.matrix), PRIOR),
        certificate=certificate(mechanism.lifts(PRIOR, None, pv.LIP())),
    )  # fmt: skip

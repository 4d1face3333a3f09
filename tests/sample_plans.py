"""Small plans, each designed once: named ones, and one for every mechanism and query that go together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import priorveil as pv
from priorveil.certify import certificate
from priorveil.mechanisms import MECHANISMS, Grouped

LABELS = ("a", "b", "c", "d", "e")
PRIOR = pv.Prior([0.3, 0.25, 0.2, 0.15, 0.1], LABELS)
TRUTH = np.array([0.1, 0.15, 0.2, 0.25, 0.3])  # a population that the prior gets wrong
VALUES = (0.0, 1.0, 2.0, 5.0, 9.0)

NAMES = ("columns", "closed", "arc", "unary", "subset", "hashing", "grouped", "sum", "distribution", "wide",
         "arc_pool")  # fmt: skip

QUERIES = {
    "Histogram": pv.Histogram(),
    "Sum": pv.Sum(VALUES),
    "Guess": pv.Guess(),
    "Distribution": pv.Distribution(),
}

MISSING = {
    **{
        ("hashing", q): "pools of seeds are designed for histograms" for q in ("Sum", "Guess", "Distribution")
    },
    ("subset", "Guess"): "how often a guess from a subset is right is not computed",
    ("arc", "Distribution"): "arcs learn a distribution in many orders",
    ("arc", "Guess"): "columns are the better plan for a guess, whatever the size",
    **{("orders", q): "many orders are for learning a distribution" for q in ("Histogram", "Sum", "Guess")},
    ("grouped", "Distribution"): "values of a group are reported alike",
}

PAIRS = [(kind, query) for kind in MECHANISMS for query in QUERIES if (kind, query) not in MISSING]


@cache
def named_plan(name: str) -> pv.Plan:
    """The plan of that name."""
    if name == "closed":
        return pv.design(pv.Prior.uniform(LABELS), 1.5, pv.Histogram(), method="closed")
    if name == "wide":
        return pv.design(pv.Prior.zipf(150), 1.0, pv.Histogram(), method="unary")
    if name == "sum":
        return pv.design(PRIOR, 1.5, pv.Sum(VALUES))
    if name == "arc_pool":
        return pv.design(PRIOR, 0.5, pv.Distribution(), method="arc")
    if name == "distribution":
        return pv.design(PRIOR, 1.5, pv.Distribution())
    if name == "grouped":
        return _grouped_plan(pv.Histogram())
    return pv.design(PRIOR, 1.5, pv.Histogram(), method=name)  # type: ignore[arg-type]


@cache
def pair_plan(kind: str, query: str) -> pv.Plan:
    """The plan with a mechanism of this kind for this query."""
    if kind == "grouped":
        return _grouped_plan(QUERIES[query])
    method = {"table": "columns", "orders": "arc"}.get(kind, kind)
    plan = pv.design(PRIOR, 1.5, QUERIES[query], method=method)  # type: ignore[arg-type]
    assert plan.mechanism.kind == kind
    return plan


def _grouped_plan(query: pv.Histogram | pv.Sum | pv.Guess) -> pv.Plan:
    """Two groups of values; the values of a group have the same reports, as in designs for large domains."""
    pair = pv.design([0.55, 0.45], 1.5, pv.Histogram())
    mechanism = Grouped(np.array([0, 0, 1, 1, 1]), pair.mechanism)  # type: ignore[arg-type]
    return replace(
        pair, prior=PRIOR, query=query, mechanism=mechanism, lower_bound=0.0, no_report=query.no_report(PRIOR),
        expected_mse=query.error(pv.Channel(mechanism.matrix), PRIOR),
        certificate=certificate(mechanism.lifts(PRIOR, None, pv.LIP())),
    )  # fmt: skip

"""priorveil: statistics from people who keep their data.

Each person's device perturbs its value before it leaves, using what is publicly known (a prior). The
curator estimates sums and histograms; yet no report moves the belief about anyone's secret by more than
a factor `e**eps`, up or down: local information privacy.

A *prior* says what is known; a *channel* says what is reported; a *notion* measures the channel against
the prior; `design` finds the best channel a notion allows, and returns a *plan*, certified.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from priorveil.channels import Channel
from priorveil.errors import PriorveilError
from priorveil.notions import DI, LDP, LIP, MIL, MIP, Leakage, Pufferfish, leakage
from priorveil.priors import Budget, Prior, PriorSet, Secret
from priorveil.queries import Convex, Distribution, Guess, Histogram, Sum

if TYPE_CHECKING:
    from priorveil import published as published
    from priorveil.certify import Certificate as Certificate
    from priorveil.certify import certify as certify_table
    from priorveil.cohorts import Cohorts as Cohorts
    from priorveil.designs import design as design
    from priorveil.ledger import Ledger as Ledger
    from priorveil.plans import Plan as Plan

__version__ = "0.1.0"

__all__ = [
    "DI",
    "LDP",
    "LIP",
    "MIL",
    "MIP",
    "Budget",
    "Certificate",
    "Channel",
    "Cohorts",
    "Convex",
    "Distribution",
    "Guess",
    "Histogram",
    "Leakage",
    "Ledger",
    "Plan",
    "Prior",
    "PriorSet",
    "PriorveilError",
    "Pufferfish",
    "Secret",
    "Sum",
    "certify_table",
    "design",
    "leakage",
    "published",
]

# Loaded when first used, so that `import priorveil` stays light: name -> (module, attribute).
_LATER = {
    "Certificate": ("priorveil.certify", "Certificate"),
    "Cohorts": ("priorveil.cohorts", "Cohorts"),
    "Ledger": ("priorveil.ledger", "Ledger"),
    "Plan": ("priorveil.plans", "Plan"),
    "certify_table": ("priorveil.certify", "certify"),
    "design": ("priorveil.designs", "design"),
    "published": ("priorveil.published", ""),
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'priorveil' has no attribute {name!r}")
    module, attribute = _LATER[name]
    found = import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

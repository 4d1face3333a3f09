"""priorveil: statistics from people who keep their data.

Each person's device perturbs its value before it leaves, using what is publicly known (a prior). The
curator estimates sums and histograms; yet no report moves the belief about anyone's secret by more than
a factor `e**eps`, up or down: local information privacy.

A *prior* says what is known; a *channel* says what is reported; a *notion* measures the channel against
the prior; `design` finds the best channel a notion allows, and returns a *plan*, certified.
"""

from __future__ import annotations

from priorveil import showing

TYPE_CHECKING = False  # typing's own, which takes time to load
if TYPE_CHECKING:
    from typing import Any

    from priorveil import errors
    from priorveil.certify import Certificate, certify_table
    from priorveil.channels import Channel
    from priorveil.designs import design
    from priorveil.designs.budget_for import budget_for
    from priorveil.designs.cohorts import Cohorts
    from priorveil.errors import PriorveilError
    from priorveil.mechanisms import Mechanism
    from priorveil.notions import (
        DI,
        LDP,
        LIP,
        MIL,
        MIP,
        Cone,
        Leakage,
        Notion,
        PairwiseLDP,
        Pufferfish,
        leakage,
    )
    from priorveil.plans import Plan
    from priorveil.plans.ledger import Ledger
    from priorveil.priors import Budget, Prior, PriorSet, Secret
    from priorveil.queries import Convex, Distribution, Guess, Histogram, Linear, Query, Sum
    from priorveil.statistics import devices
    from priorveil.statistics.comparing import difference, ratio
    from priorveil.statistics.dice import dice_menu
    from priorveil.statistics.independence import independence
    from priorveil.statistics.outcome_regression import regress_on
    from priorveil.statistics.regression import regress
    from priorveil.studies import published
    from priorveil.studies.device_comparison import compare_device
    from priorveil.studies.trade_offs import compare, compare_with_ldp

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
    "Cone",
    "Convex",
    "Distribution",
    "Guess",
    "Histogram",
    "Leakage",
    "Ledger",
    "Linear",
    "Mechanism",
    "Notion",
    "PairwiseLDP",
    "Plan",
    "Prior",
    "PriorSet",
    "PriorveilError",
    "Pufferfish",
    "Query",
    "Secret",
    "Sum",
    "budget_for",
    "certify_table",
    "compare",
    "compare_device",
    "compare_with_ldp",
    "design",
    "devices",
    "dice_menu",
    "difference",
    "errors",
    "independence",
    "leakage",
    "published",
    "ratio",
    "regress",
    "regress_on",
]

# The module of each name. Names are loaded when first used: `import priorveil` is light, and the command line reacts
# to ctrl-C while slow libraries are loading.
_PLACES = {
    "certify": ("Certificate", "certify_table"),
    "channels": ("Channel",),
    "designs": ("design",),
    "designs.budget_for": ("budget_for",),
    "designs.cohorts": ("Cohorts",),
    "errors": ("PriorveilError",),
    "mechanisms": ("Mechanism",),
    "notions": (
        "DI",
        "LDP",
        "LIP",
        "MIL",
        "MIP",
        "Cone",
        "Leakage",
        "Notion",
        "PairwiseLDP",
        "Pufferfish",
        "leakage",
    ),
    "plans": ("Plan",),
    "plans.ledger": ("Ledger",),
    "priors": ("Budget", "Prior", "PriorSet", "Secret"),
    "queries": ("Convex", "Distribution", "Guess", "Histogram", "Linear", "Query", "Sum"),
    "statistics.dice": ("dice_menu",),
    "studies.device_comparison": ("compare_device",),
    "statistics.outcome_regression": ("regress_on",),
    "statistics.regression": ("regress",),
    "statistics.comparing": ("difference", "ratio"),
    "statistics.independence": ("independence",),
    "studies.trade_offs": ("compare", "compare_with_ldp"),
}
_LATER = {
    **{name: (f"priorveil.{module}", name) for module, names in _PLACES.items() for name in names},
    "devices": ("priorveil.statistics.devices", ""),
    "errors": ("priorveil.errors", ""),
    "published": ("priorveil.studies.published", ""),
}


def _import(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


showing.provide(lambda: _import("priorveil.words.shown").SHOWN)


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'priorveil' has no attribute {name!r}")
    module_name, attribute = _LATER[name]
    module = _import(module_name)
    value = getattr(module, attribute) if attribute else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

"""priorveil: statistics from people who keep their data.

Each person's device perturbs its value before it leaves, using what is publicly known (a prior). The
curator estimates sums and histograms; yet no report moves the belief about anyone's secret by more than
a factor `e**eps`, up or down: local information privacy.

A *prior* says what is known; a *channel* says what is reported; a *notion* measures the channel against
the prior; `design` finds the best channel a notion allows, and returns a *plan*, certified.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own, which takes time to load
if TYPE_CHECKING:
    from priorveil import errors as errors
    from priorveil.certify import Certificate as Certificate
    from priorveil.certify import certify as certify_table
    from priorveil.channels import Channel as Channel
    from priorveil.designs import design as design
    from priorveil.designs.cohorts import Cohorts as Cohorts
    from priorveil.errors import PriorveilError as PriorveilError
    from priorveil.notions import DI as DI
    from priorveil.notions import LDP as LDP
    from priorveil.notions import LIP as LIP
    from priorveil.notions import MIL as MIL
    from priorveil.notions import MIP as MIP
    from priorveil.notions import Leakage as Leakage
    from priorveil.notions import Pufferfish as Pufferfish
    from priorveil.notions import leakage as leakage
    from priorveil.plans import Plan as Plan
    from priorveil.plans.ledger import Ledger as Ledger
    from priorveil.priors import Budget as Budget
    from priorveil.priors import Prior as Prior
    from priorveil.priors import PriorSet as PriorSet
    from priorveil.priors import Secret as Secret
    from priorveil.queries import Convex as Convex
    from priorveil.queries import Distribution as Distribution
    from priorveil.queries import Guess as Guess
    from priorveil.queries import Histogram as Histogram
    from priorveil.queries import Linear as Linear
    from priorveil.queries import Sum as Sum
    from priorveil.studies import published as published

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
    "Linear",
    "Plan",
    "Prior",
    "PriorSet",
    "PriorveilError",
    "Pufferfish",
    "Secret",
    "Sum",
    "certify_table",
    "design",
    "errors",
    "leakage",
    "published",
]

# Where the names are. All are loaded when first used: `import priorveil` is light, and the command line heeds
# ctrl-C before anything that takes long to load.
_PLACES = {
    "certify": ("Certificate",),
    "channels": ("Channel",),
    "designs": ("design",),
    "designs.cohorts": ("Cohorts",),
    "errors": ("PriorveilError",),
    "notions": ("DI", "LDP", "LIP", "MIL", "MIP", "Leakage", "Pufferfish", "leakage"),
    "plans": ("Plan",),
    "plans.ledger": ("Ledger",),
    "priors": ("Budget", "Prior", "PriorSet", "Secret"),
    "queries": ("Convex", "Distribution", "Guess", "Histogram", "Linear", "Sum"),
}
_LATER = {
    **{name: (f"priorveil.{module}", name) for module, names in _PLACES.items() for name in names},
    "errors": ("priorveil.errors", ""),
    "published": ("priorveil.studies.published", ""),
    "certify_table": ("priorveil.certify", "certify"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module 'priorveil' has no attribute {name!r}")
    module, attribute = _LATER[name]
    found = import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

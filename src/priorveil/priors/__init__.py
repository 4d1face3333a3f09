"""What is known before anyone reports: priors, sets of priors, secrets, and budgets.

A `Prior` is exact: the floats or counts it is made from are kept as integers over one total, so that a
certificate can be checked in integer arithmetic against exactly the prior that was given.
"""

from priorveil.priors.budget import Budget
from priorveil.priors.domain import Domain
from priorveil.priors.label_texts import Label
from priorveil.priors.prior import Prior
from priorveil.priors.secret import Secret
from priorveil.priors.sets import PriorSet

__all__ = ["Budget", "Prior", "PriorSet", "Secret"]
__all__ += ["Domain", "Label"]

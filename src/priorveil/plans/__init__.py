"""Plans: run a certified mechanism, add its reports up, and estimate from them."""

from priorveil.plans.document import schema as schema
from priorveil.plans.plan import Plan as Plan

__all__ = ["Plan"]

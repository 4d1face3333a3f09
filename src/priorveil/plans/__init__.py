"""Plans: run a certified mechanism, add its reports up, and read them."""

from priorveil.plans.plan import Plan as Plan
from priorveil.plans.plan import schema as schema

__all__ = ["Plan"]

"""Design: the best mechanism a budget allows, with a proof of how good it is."""

from priorveil.designs.margins import design_margins
from priorveil.designs.means import design_mean
from priorveil.designs.methods import METHODS, design

__all__ = ["METHODS", "design", "design_margins", "design_mean"]

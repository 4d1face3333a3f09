"""The figures of the paper, each as printed and as it should be. `FIGURES` lists them by number."""

from __future__ import annotations

from priorveil.errors import InvalidInput
from priorveil.studies.figures import (
    bounded,
    census,
    correlation,
    domain,
    gowalla,
    hamming,
    hashing,
    introduction,
    notions,
    parameters,
    priors,
    regions,
)
from priorveil.studies.figures.model import Claim, Figure, Outcome, Setting

__all__ = ["FIGURES", "Claim", "Figure", "Outcome", "Setting", "chosen"]

FIGURES: tuple[Figure, ...] = (
    introduction.FIGURE,
    notions.FIGURE,
    regions.FIGURE,
    parameters.FIGURE,
    priors.FIGURE,
    correlation.FIGURE,
    bounded.FIGURE,
    domain.FIGURE,
    hashing.FIGURE,
    hamming.FIGURE,
    gowalla.FIGURE,
    census.FIGURE,
)


def chosen(wanted: tuple[str, ...]) -> tuple[Figure, ...]:
    """The figures with these numbers or names, in their own order; all of them if none is named.

    >>> [figure.name for figure in chosen(("4", "regions"))]
    ['regions', 'parameters']
    """
    known = {key: figure for figure in FIGURES for key in (str(figure.number), figure.name)}
    for key in wanted:
        if key not in known:
            names = ", ".join(f"{figure.number} {figure.name}" for figure in FIGURES)
            raise InvalidInput("figure", key, f"choose by number or name: {names}")
    picked = {known[key].number for key in wanted}
    return tuple(figure for figure in FIGURES if not wanted or figure.number in picked)

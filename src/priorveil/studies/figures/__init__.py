"""The figures of the paper, each as printed and as it should be. `FIGURES` lists them by number."""

from __future__ import annotations

from priorveil.errors import InvalidInput
from priorveil.studies.figures import domain, examples, notions, priors, surveys
from priorveil.studies.figures.figure import Figure, Outcome, Settings

__all__ = ["FIGURES", "Figure", "Outcome", "Settings", "figures_named"]

_MODULES = (examples, notions, priors, domain, surveys)
FIGURES: tuple[Figure, ...] = tuple(
    sorted((figure for module in _MODULES for figure in module.FIGURES), key=lambda figure: figure.number)
)


def figures_named(names: tuple[str, ...]) -> tuple[Figure, ...]:
    """The figures with these numbers or names, in their own order; all of them if none is named.

    >>> [figure.name for figure in figures_named(("4", "regions"))]
    ['regions', 'parameters']
    """
    known = {key: figure for figure in FIGURES for key in (str(figure.number), figure.name)}
    for name in names:
        if name not in known:
            choices = ", ".join(f"{figure.number} {figure.name}" for figure in FIGURES)
            raise InvalidInput("figure", name, f"choose by number or name: {choices}")
    chosen = {known[name].number for name in names}
    return tuple(figure for figure in FIGURES if not names or figure.number in chosen)

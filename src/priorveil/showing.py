"""How objects are shown: the one road from the packages below `words` up to it.

A class that people look at holds numbers and codes; its `__str__`, `__repr__`, `_repr_html_` and `plot` ask here, in a
line each. `priorveil/__init__` says where the functions are; they are loaded when something is first shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

TYPE_CHECKING = False  # typing's own, which takes time to load
if TYPE_CHECKING:
    from typing import Any

    from matplotlib.figure import Figure as Figure
else:
    Figure = object

_places: list[Callable[[], Mapping[type, Mapping[str, Callable[..., Any]]]]] = []


def provide(functions: Callable[[], Mapping[type, Mapping[str, Callable[..., Any]]]]) -> None:
    """Say where the functions are: by class, and by the name of one of the functions below."""
    _places[:] = [functions]


def text(thing: object) -> str:
    """A thing as plain text, in one or several lines."""
    shown: str = _function(thing, "text")(thing)
    return shown


def line(thing: object) -> str:
    """A thing in a line, as a prompt shows it."""
    shown: str = _function(thing, "line")(thing)
    return shown


def html(thing: object) -> str:
    """A thing as HTML for a notebook."""
    shown: str = _function(thing, "html")(thing)
    return shown


def figure(thing: object, *arguments: object) -> Figure:
    """A thing as a matplotlib figure."""
    shown: Figure = _function(thing, "figure")(thing, *arguments)
    return shown


def page(thing: object, *arguments: object) -> str:
    """A thing as a page of HTML to print."""
    shown: str = _function(thing, "page")(thing, *arguments)
    return shown


def _function(thing: object, form: str) -> Callable[..., Any]:
    by_class = _places[0]()
    return next(by_class[each][form] for each in type(thing).__mro__ if each in by_class)

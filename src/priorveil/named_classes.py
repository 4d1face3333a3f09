"""Classes that plan files know by a name: notions, queries and mechanisms, those of users included.

A class enters the table of its base when it is defined, so importing its module is all that a reader of files needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from priorveil.errors import InvalidInput


def enter_class(by_name: dict[str, Any], name: str, cls: type, noun: str) -> None:
    """Enter a class into the table of its base; a name that another module has taken is refused."""
    namesake = by_name.get(name, cls)
    if namesake.__module__ != cls.__module__:
        raise InvalidInput(
            "class", name, f"{namesake.__module__} defines a {noun} of this name: choose another"
        )
    by_name[name] = cls  # a notebook may define its class again


def class_named(by_name: Mapping[str, Any], name: Any, noun: str) -> Any:
    """The class that a file names; an error if no imported module defines it."""
    if name not in by_name:
        listed = ", ".join(name for name, cls in by_name.items() if not inspect.isabstract(cls))
        advice = f"this {noun} is not known here: import the module that defines it (known: {listed})"
        raise InvalidInput(noun, name, advice)
    return by_name[name]


def require_own_document(cls: type, named: type, writer: str, noun: str) -> None:
    """Refuse to write an object of a class from which the file would be read as something else.

    `named` is the class that its document names, and `writer` the method that makes the document. A subclass may leave
    its document to its base if it adds nothing but another way to make the same object.
    """
    define = f"define {writer} and read" if hasattr(cls, "read") else f"define {writer}"
    if cls is not named:
        before = cls.__mro__[: cls.__mro__.index(named)] if named in cls.__mro__ else (cls,)
        if named not in cls.__mro__ or any(not name.startswith("_") for c in before for name in vars(c)):
            advice = f"a file would be read as {named.__name__}: {define} in {cls.__name__}"
            raise InvalidInput(noun, cls.__name__, advice)
        return
    maker, author = (next(c for c in cls.__mro__ if method in vars(c)) for method in ("__init__", writer))
    takes_arguments = len(inspect.signature(vars(maker)["__init__"]).parameters) > 1
    if maker is not author and issubclass(maker, author) and takes_arguments:
        advice = f"a file would not hold the arguments of {cls.__name__}: {define} in it"
        raise InvalidInput(noun, cls.__name__, advice)

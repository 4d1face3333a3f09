"""Objects whose attributes are set once, and which are compared by their content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable


class ReadOnly(ABC):
    """An object whose attributes are set once. It equals another one of its type with the same content."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in vars(self):
            raise AttributeError(f"{type(self).__name__}.{name} is read-only")
        super().__setattr__(name, value)

    @abstractmethod
    def _content(self) -> Hashable:
        """What makes two objects of this type equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

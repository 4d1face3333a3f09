"""What people should know about numbers, as codes with values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from priorveil import showing


@dataclass(frozen=True)
class Note:
    """A remark as a code with its values; `words` makes a sentence of it, which `str(note)` is.

    >>> print(Note("checkFailed", {"p_value": 0.0025}))
    Prior check: p = 0.0025.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.code)

    def __str__(self) -> str:
        return showing.text(self)

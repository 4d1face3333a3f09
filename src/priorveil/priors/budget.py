"""Budgets: by how much a report may move a belief, down and up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from priorveil.errors import Hint, InvalidInput
from priorveil.formatting import level_figure

_LARGEST = 700.0  # levels beyond this are infinite for every purpose
_POSITIVE = "give a number above zero"


@dataclass(frozen=True)
class Budget:
    """How far a report may move a belief: by at most `e**-lower` down and `e**upper` up.

    `upper` equals `lower` if not given; either may be infinite, not both.

    >>> Budget(1.0)
    Budget(lower=1.0, upper=1.0)
    """

    lower: float
    upper: float

    def __init__(self, lower: float, upper: float | None = None) -> None:
        object.__setattr__(self, "lower", _level("lower", lower))
        object.__setattr__(self, "upper", _level("upper", lower if upper is None else upper))
        if math.isinf(self.lower) and math.isinf(self.upper):
            raise InvalidInput("upper", upper, "a budget needs at least one finite side")

    @classmethod
    def of(cls, epsilon: float | Budget, argument: str = "epsilon") -> Budget:
        """The budget itself, or the symmetric one of a number; errors name the argument that it was given as."""
        if isinstance(epsilon, Budget):
            return epsilon
        _level(argument, epsilon)
        if math.isinf(epsilon):
            hint = Hint("Budget(lower, upper)", purpose="to bound one side")
            raise InvalidInput(argument, epsilon, "give a finite number", hint)
        return cls(epsilon)

    def require_positive(self) -> None:
        """Raise `InvalidInput` if no report may depend on the value: nothing can be designed then."""
        for side in ("lower", "upper"):
            if getattr(self, side) <= 0:
                argument = "epsilon" if self.symmetric else f"epsilon {side}"
                advice = f"{_POSITIVE}: at zero no report may depend on the value"
                raise InvalidInput(argument, getattr(self, side), advice)
        if self.lo >= 1 or self.hi <= 1:
            advice = "rounds to zero in floating point; use a larger epsilon"
            raise InvalidInput("epsilon", self.lower, advice)

    def __str__(self) -> str:
        both = f"lower {level_figure(self.lower)}, upper {level_figure(self.upper)}"
        return f"epsilon {level_figure(self.lower)}" if self.symmetric else both

    @property
    def lo(self) -> float:
        """The smallest lift, `e**-lower`."""
        return math.exp(-self.lower)

    @property
    def hi(self) -> float:
        """The largest lift, `e**upper`."""
        return math.exp(self.upper) if self.upper < _LARGEST else math.inf

    @property
    def smaller(self) -> float:
        """The smaller side, which notions with one level use."""
        return min(self.lower, self.upper)

    @property
    def tau(self) -> float:
        """The mass of a report's soft subset, `(1 - lo) / (hi - lo)`."""
        return float(window_mass(self.lo, self.hi))

    def document(self) -> dict[str, str]:
        """The budget as JSON."""
        return {"lower": repr(self.lower), "upper": repr(self.upper)}

    @classmethod
    def read(cls, document: Mapping[str, str]) -> Budget:
        """Read a budget from its JSON document."""
        return cls(float(document["lower"]), float(document["upper"]))

    @property
    def symmetric(self) -> bool:
        """Whether both sides are equal."""
        return self.lower == self.upper


def window_mass(lo: npt.ArrayLike, hi: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """`tau = (1 - lo) / (hi - lo)`: zero without an upper bound, one where no report may depend on the value.

    >>> float(window_mass(0.5, 2.5)), float(window_mass(0.5, math.inf)), float(window_mass(1.0, 1.0))
    (0.25, 0.0, 1.0)
    """
    lo, hi = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
    return np.asarray(np.divide(1 - lo, hi - lo, out=np.ones(np.broadcast(lo, hi).shape), where=hi > lo))


def _level(argument: str, value: float) -> float:
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number >= 0:  # also what is not a number
        raise InvalidInput(argument, value, _POSITIVE)
    if _LARGEST < number < math.inf:
        raise InvalidInput(argument, value, f"that protects nothing: give at most {_LARGEST:g}, or infinity")
    return number

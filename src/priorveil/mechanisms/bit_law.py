"""The law of reports that are rows of bits, in floats.

The bit of a value `x` is set with probability `s_x = q + (p - q) P_x`: `p` for people who have the value, `q` for
others. Two bits are both set with probability `t + u (P_x + P_z)`. A set bit makes its value likelier by the odds `R`.
With `c = R - 1`, a report `y` and `m(y)` the prior mass of its set bits,

    Pr(x | y) = P_x (1 + c y_x) / (1 + c m(y)),      Pr(y) = B(y) (1 + c m(y)) / (1 + c share),

where `B` is a law that does not depend on the value, and sets every bit with probability `share`: independent bits for
unary encoding, uniformly random subsets for subset selection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorveil.arrays import Array


@dataclass(frozen=True)
class BitLaw:
    """The law of the bits of a report, in floats: of unary encoding, or of subsets of `members` of `values` values.

    `odds` is `R`, `share` how often a bit is set under `B`, `q` the chance that the bit of a value other than the true
    one is set. The bits of two values `x` and `z` are both set with the chance `t + u (P_x + P_z)`.
    """

    odds: float
    share: float
    q: float
    t: float
    u: float
    values: int = 0
    members: int = 0

    @property
    def scale(self) -> float:
        """`1 + c share`."""
        return 1 + (self.odds - 1) * self.share

    @property
    def p(self) -> float:
        """The chance that the bit of the true value is set."""
        return self.odds * self.share / self.scale

    @property
    def contrast(self) -> float:
        """`p - q`: how much likelier a bit is set for its own value."""
        return self.p - self.q

    def first_chances(self, size: int) -> Array:
        """How often the first, second, ... of all values is the first whose bit is set, under `B`."""
        if not self.members:
            return np.asarray(self.share * (1 - self.share) ** np.arange(size))
        passed = np.arange(self.values - self.members)
        falling = np.cumprod((self.values - self.members - passed) / (self.values - 1 - passed))
        return self.share * np.concatenate([[1.0], falling])


def unary_law(odds: float, q01: float) -> BitLaw:
    """The law of unary encoding, where a clear bit is set with the chance `q01`: given the value, bits are independent.

    >>> unary_law(3.0, 0.25).p
    0.5
    """
    p = odds * q01 / (1 + (odds - 1) * q01)
    return BitLaw(odds, q01, q01, q01**2, q01 * (p - q01))


def subset_law(odds: float, values: int, members: int) -> BitLaw:
    """The law of subset selection: the other members of a set are a uniformly random subset of the other values.

    >>> subset_law(2.0, 3, 1).p
    0.5
    """
    share, k, n = members / values, members, values - 1
    p = odds * share / (1 + (odds - 1) * share)
    t = (k - 1) * (k - 2 * p) / (n * (n - 1)) if n > 1 else 0.0
    return BitLaw(odds, share, (k - p) / n, t, p * (k - 1) / n - t, values, members)

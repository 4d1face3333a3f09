"""A limit on how often an address may try tokens."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from priorveil.curator.rates import AddressRates, remember
from priorveil.curator.settings import AttemptLimits


@dataclass
class TokenAttempts:
    """Who may try a token now.

    While an address has used up its wrong attempts, a token from there is refused without looking at it. One that was
    right before, from the same address, is looked at until it is wrong: strangers cannot lock out the curator. There is
    no limit on all addresses together, with which one address could lock out all others.
    """

    limits: AttemptLimits = field(default_factory=AttemptLimits)
    clock: Callable[[], float] = time.monotonic
    _right: OrderedDict[bytes, None] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        self._wrong = AddressRates(self.limits, self.clock)

    def wait(self, address: str, token: str) -> float:
        """Seconds until this token from this address is looked at, 0 if it is now."""
        return 0.0 if self._wrong.hash(address, token) in self._right else self._wrong.wait(address)

    def add_wrong(self, address: str, token: str) -> None:
        """Count a wrong token; it may have been right before it was revoked or ended."""
        self._right.pop(self._wrong.hash(address, token), None)
        self._wrong.add(address)

    def add_right(self, address: str, token: str) -> None:
        """Remember that this token was right."""
        key = self._wrong.hash(address, token)
        self._right.pop(key, None)
        remember(self._right, key, None)

"""A limit on how often tokens may be tried, for each address and in total.

Addresses are kept in memory only, as hashes with a salt that ends with the process.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from priorveil.curator.settings import AttemptLimits

_Value = TypeVar("_Value")

_ADDRESSES = 10_000  # addresses that are remembered, those used last


@dataclass
class _Allowance:
    """Attempts that may be wrong: `burst` at once, then `rate` a second."""

    burst: float
    rate: float
    used: float = 0.0
    at: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next attempt is allowed, 0 if it is allowed now."""
        self.used = max(0.0, self.used - self.rate * (now - self.at))
        self.at = now
        return max(0.0, (self.used + 1 - self.burst) / self.rate)


@dataclass
class TokenAttempts:
    """Who may try a token now.

    While an address has used up its wrong attempts, or all addresses together theirs, a token is refused without
    looking at it. A token that was right before, from the same address, is always looked at: strangers cannot lock out
    the curator.
    """

    limits: AttemptLimits = field(default_factory=AttemptLimits)
    clock: Callable[[], float] = time.monotonic
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _addresses: OrderedDict[bytes, _Allowance] = field(default_factory=OrderedDict, repr=False)
    _right: OrderedDict[bytes, None] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        self._total = _Allowance(self.limits.total_burst, self.limits.total_rate, at=self.clock())

    def wait(self, address: str, token: str) -> float:
        """Seconds until this token from this address is looked at, 0 if it is now."""
        if self._hash(address, token) in self._right:
            return 0.0
        now = self.clock()
        mine = self._addresses.get(self._hash(address))
        return max(self._total.wait(now), mine.wait(now) if mine else 0.0)

    def add_wrong(self, address: str) -> None:
        """Count a wrong token."""
        now, key = self.clock(), self._hash(address)
        mine = self._addresses.pop(key, None) or _Allowance(self.limits.burst, self.limits.rate, at=now)
        _remember(self._addresses, key, mine)
        for allowance in (mine, self._total):
            allowance.wait(now)
            allowance.used += 1

    def add_right(self, address: str, token: str) -> None:
        """Remember that this token was right."""
        key = self._hash(address, token)
        self._right.pop(key, None)
        _remember(self._right, key, None)

    def _hash(self, address: str, token: str = "") -> bytes:
        text = f"{_network(address)} {token}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, key=self._salt, digest_size=16).digest()


def _remember(memory: OrderedDict[bytes, _Value], key: bytes, value: _Value) -> None:
    memory[key] = value
    if len(memory) > _ADDRESSES:
        memory.popitem(last=False)


def _network(address: str) -> str:
    """The address of one sender: of IPv6 the first 64 bits, since a sender has all the others.

    >>> _network("192.0.2.7"), _network("2001:db8:1:2:3:4:5:6")
    ('192.0.2.7', '2001:db8:1:2::')
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((ip, 64), strict=False).network_address)

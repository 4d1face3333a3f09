"""Limits on how often something may be done, for each address and in total.

Addresses are kept only in memory, as hashes with a salt that is lost when the process ends.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from priorveil.curator.settings import AttemptLimits, SubmissionLimits
from priorveil.errors import InvalidInput

_Value = TypeVar("_Value")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDRESSES = 10_000  # addresses that are remembered, those used last


@dataclass
class _Allowance:
    """`burst` at once, then `rate` a second."""

    burst: float
    rate: float
    used: float = 0.0
    at: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next one is allowed, 0 if it is allowed now."""
        self.used = max(0.0, self.used - self.rate * (now - self.at))
        self.at = now
        return max(0.0, (self.used + 1 - self.burst) / self.rate)


@dataclass
class AddressRates:
    """What each address, and all addresses together, have done lately. None stands for an address without a limit."""

    limits: AttemptLimits | SubmissionLimits
    clock: Callable[[], float] = time.monotonic
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _addresses: OrderedDict[bytes, _Allowance] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        self._total = _Allowance(self.limits.total_burst, self.limits.total_rate, at=self.clock())

    def wait(self, address: str | None) -> float:
        """Seconds until this address may do it again, 0 if it may now."""
        return self._wait(None if address is None else self._addresses.get(self.hash(address)))

    def add(self, address: str | None) -> None:
        """Count one more."""
        self._add(None if address is None else self._allowance(address))

    def take(self, address: str | None) -> float:
        """Count one more if it may be done now; otherwise the seconds to wait."""
        mine = None if address is None else self._allowance(address)
        wait = self._wait(mine)
        if not wait:
            self._add(mine)
        return wait

    def _allowance(self, address: str) -> _Allowance:
        """What one address may do; it then is the one remembered last."""
        key = self.hash(address)
        mine = self._addresses.pop(key, None)
        if mine is None:
            mine = _Allowance(self.limits.burst, self.limits.rate, at=self.clock())
        remember(self._addresses, key, mine)
        return mine

    def _wait(self, mine: _Allowance | None) -> float:
        now = self.clock()
        return max(self._total.wait(now), 0.0 if mine is None else mine.wait(now))

    def _add(self, mine: _Allowance | None) -> None:
        self._wait(mine)  # what was used before recovers until now
        self._total.used += 1
        if mine is not None:
            mine.used += 1

    def hash(self, address: str, more: str = "") -> bytes:
        """What is remembered of an address."""
        text = f"{_network(address)} {more}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, key=self._salt, digest_size=16).digest()


def remember(memory: OrderedDict[bytes, _Value], key: bytes, value: _Value) -> None:
    """Add an entry, and forget the oldest if there are too many."""
    memory[key] = value
    if len(memory) > _ADDRESSES:
        memory.popitem(last=False)


def _network(address: str) -> str:
    """The address of one sender: of IPv6 the first 64 bits, since a sender has all the others.

    >>> _network("192.0.2.7"), _network("2001:db8:1:2:3:4:5:6")
    ('192.0.2.7', '2001:db8:1:2::')
    """
    try:
        ip = ipaddress.IPv6Address(address) if ":" in address else None
    except ValueError:
        return address
    return address if ip is None else str(ipaddress.ip_network((ip, 64), strict=False).network_address)


def read_networks(field: str, text: str) -> list[Network]:
    """Networks, or single addresses, with commas between them.

    >>> read_networks("proxies", "127.0.0.1, 10.0.0.0/8")
    [IPv4Network('127.0.0.1/32'), IPv4Network('10.0.0.0/8')]
    """
    try:
        return [ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InvalidInput(
            field, text, "give addresses or networks such as 10.0.0.0/8, with commas"
        ) from error


def is_inside(address: str, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of the networks."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(ip in network for network in networks)


def is_this_machine(address: str) -> bool:
    """Whether an address is one of this machine itself; a socket without an address is.

    >>> [is_this_machine(address) for address in ("127.0.0.1", "::1", "", "192.0.2.1")]
    [True, True, True, False]
    """
    return address.startswith("127.") or address in ("::1", "")

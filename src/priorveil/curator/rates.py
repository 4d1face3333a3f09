"""Limits on how often something may be done, for each address or in total.

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
class Allowance:
    """A limit on a rate: `burst` at once, then `rate` a second."""

    burst: float
    rate: float
    used: float = 0.0
    at: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next one is allowed, 0 if it is allowed now."""
        self.used = max(0.0, self.used - self.rate * (now - self.at))
        self.at = now
        return max(0.0, (self.used + 1 - self.burst) / self.rate)

    def add(self, now: float) -> None:
        """Count one more, even if it was not allowed; the wait never grows beyond that after a whole burst."""
        self.wait(now)  # what was used before recovers until now
        self.used = min(self.burst, self.used + 1)


@dataclass
class AddressRates:
    """What each address has done lately."""

    limits: AttemptLimits | SubmissionLimits
    clock: Callable[[], float] = time.monotonic
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _addresses: OrderedDict[bytes, Allowance] = field(default_factory=OrderedDict, repr=False)

    def wait(self, address: str) -> float:
        """Seconds until this address may do it again, 0 if it may now."""
        known = self._addresses.get(self.hash(address))
        return 0.0 if known is None else known.wait(self.clock())

    def add(self, address: str) -> None:
        """Count one more; the address then is the one remembered last."""
        key, now = self.hash(address), self.clock()
        allowance = self._addresses.pop(key, None) or Allowance(self.limits.burst, self.limits.rate, at=now)
        allowance.add(now)
        remember(self._addresses, key, allowance)

    def hash(self, address: str, more: str = "") -> bytes:
        """What is remembered of an address."""
        text = f"{_network(address)} {more}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, key=self._salt, digest_size=16).digest()


class SubmissionRates:
    """What each address, and all addresses together, have sent lately."""

    def __init__(self, limits: SubmissionLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._addresses, self._clock = AddressRates(limits, clock), clock
        self._total = Allowance(limits.total_burst, limits.total_rate, at=clock())

    def take(self, address: str | None) -> float:
        """Count one more if it may be sent now; otherwise the seconds to wait. None is an address without a limit."""
        now = self._clock()
        wait = max(self._total.wait(now), 0.0 if address is None else self._addresses.wait(address))
        if not wait:
            self._total.add(now)
            if address is not None:
                self._addresses.add(address)
        return wait


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

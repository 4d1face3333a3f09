"""The readers, and which one reads the reports of which mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from priorveil.errors import InvalidInput
from priorveil.mechanisms import Mechanism
from priorveil.reading.arcs import ArcReader
from priorveil.reading.bits import SubsetReader, UnaryReader
from priorveil.reading.numbered import GroupedReader, HashingReader, NumberedReader
from priorveil.reading.orders import OrdersReader
from priorveil.reading.reader import Reader

# The readers that come with the package.
READERS: tuple[type[Reader[Any]], ...] = (
    NumberedReader,
    GroupedReader,
    HashingReader,
    UnaryReader,
    SubsetReader,
    ArcReader,
    OrdersReader,
)


def reader_of(mechanism: Mechanism) -> Reader[Any]:
    """The reader of a mechanism's reports: that of its class, or of its nearest base that has one."""
    return _reader_of(_ByIdentity(mechanism))


@dataclass(frozen=True, eq=False)
class _ByIdentity:
    """A key for a mechanism whose class may define an equality of its own, of arrays that have no hash."""

    mechanism: Mechanism

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.mechanism is other.mechanism

    def __hash__(self) -> int:
        return id(self.mechanism)


# A reader keeps what it computes, and a curator counts the reports of several plans in turn.
@lru_cache(maxsize=64)
def _reader_of(key: _ByIdentity) -> Reader[Any]:
    mechanism = key.mechanism
    for base in type(mechanism).__mro__:
        if base in Reader.by_mechanism:
            return Reader.by_mechanism[base](mechanism)
    advice = "no reader knows its reports: subclass NumberedReports, or define a Reader whose `reads` is this class"
    raise InvalidInput("mechanism", mechanism.kind, advice)

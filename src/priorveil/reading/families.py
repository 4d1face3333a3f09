"""The readers, and which one reads the reports of which mechanism."""

from __future__ import annotations

from typing import Any

from priorveil.errors import InvalidInput
from priorveil.mechanisms import Mechanism
from priorveil.reading.arc_reader import ArcReader
from priorveil.reading.bit_reader import SubsetReader, UnaryReader
from priorveil.reading.numbered_reader import GroupedReader, HashingReader, NumberedReader
from priorveil.reading.orders_reader import OrdersReader
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
    """A reader of a mechanism's reports: that of its class, or of its nearest base that has one."""
    for base in type(mechanism).__mro__:
        if base in Reader.by_mechanism:
            return Reader.by_mechanism[base](mechanism)
    advice = "no reader knows its reports: subclass NumberedReports, or define a Reader whose `reads` is this class"
    raise InvalidInput("mechanism", mechanism.kind, advice)

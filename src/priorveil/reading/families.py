"""The table of readers: which one reads the reports of which mechanism."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from priorveil.mechanisms import Arc, Grouped, Mechanism, Orders, PooledHash, Subset, Table, Unary
from priorveil.reading.arcs import ArcReader
from priorveil.reading.bits import SubsetReader, UnaryReader
from priorveil.reading.numbered import GroupedReader, HashingReader, TableReader
from priorveil.reading.orders import OrdersReader
from priorveil.reading.reader import Reader

READERS: dict[type[Mechanism], type[Reader[Any]]] = {
    Table: TableReader,
    Grouped: GroupedReader,
    PooledHash: HashingReader,
    Unary: UnaryReader,
    Subset: SubsetReader,
    Arc: ArcReader,
    Orders: OrdersReader,
}


# A reader keeps what it computes, and a curator counts the reports of several plans in turn.
@lru_cache(maxsize=64)
def reader_of(mechanism: Mechanism) -> Reader[Any]:
    """The reader of a mechanism's reports."""
    return READERS[type(mechanism)](mechanism)

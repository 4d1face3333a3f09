"""Mechanisms: what a device runs. Integers only, one interface, no network."""

from __future__ import annotations

from priorveil.mechanisms.arc import Arc
from priorveil.mechanisms.arc.orders import Orders
from priorveil.mechanisms.hashing import PooledHash
from priorveil.mechanisms.integer_tables import Grouped, Table, TabledReports
from priorveil.mechanisms.interface import Mechanism, NumberedReports, read_mechanism
from priorveil.mechanisms.subset import Subset
from priorveil.mechanisms.unary import Unary

__all__ = [
    "MECHANISMS",
    "Arc",
    "Grouped",
    "Mechanism",
    "NumberedReports",
    "Orders",
    "PooledHash",
    "Subset",
    "Table",
    "TabledReports",
    "Unary",
    "read_mechanism",
]

# The mechanisms that come with the package, by kind.
MECHANISMS: dict[str, type[Mechanism]] = {
    m.kind: m for m in (Table, Grouped, Arc, Orders, Unary, Subset, PooledHash)
}

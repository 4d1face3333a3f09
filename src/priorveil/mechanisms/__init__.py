"""Mechanisms: what a device runs. Integers only, one interface, no network."""

from __future__ import annotations

from priorveil.mechanisms.arc import Arc
from priorveil.mechanisms.arc_pool import ArcPool
from priorveil.mechanisms.grouped import Grouped
from priorveil.mechanisms.hashing import PooledHash
from priorveil.mechanisms.reading import Mechanism
from priorveil.mechanisms.table import Table
from priorveil.mechanisms.unary import Unary

__all__ = ["MECHANISMS", "Arc", "ArcPool", "Grouped", "Mechanism", "PooledHash", "Table", "Unary"]

MECHANISMS: dict[str, type[Mechanism]] = {
    m.kind: m for m in (Table, Grouped, Arc, ArcPool, Unary, PooledHash)
}

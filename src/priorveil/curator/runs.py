"""Keys of the eras that have ended, packed in the database: sorted rows of neighbours, some tens of keys each.

Every era leaves a run of such rows. Runs of about one size are merged in the background, a block at a time, so that
their number grows with the logarithm of the number of keys only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from priorveil.collect.wire import ID_BYTES
from priorveil.curator.keys import Keys, Mask, in_order, items

FAN_BITS = 3
FAN = 1 << FAN_BITS  # runs of one size that are merged into one of the next

SCHEMA = """
    CREATE TABLE runs (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, size bigint NOT NULL, whole boolean NOT NULL
    );
    CREATE TABLE run_keys (
        run integer NOT NULL, first uuid NOT NULL, keys bytea NOT NULL, PRIMARY KEY (run, first)
    );
    ALTER TABLE run_keys ALTER keys SET STORAGE EXTERNAL;
"""

_ROW = 64  # keys: a kilobyte, which the database keeps in its place
_ROWS_AT_ONCE = 512
_ASKED_AT_ONCE = 512  # keys; each may need a row of every run
_PAUSE = 0.02  # seconds between the blocks of a merge: who commits meanwhile comes first

_ADD = "INSERT INTO runs (size, whole) VALUES ($1, $2) RETURNING number"
_ADD_ROWS = "INSERT INTO run_keys (run, first, keys) SELECT $1, * FROM unnest($2::uuid[], $3::bytea[])"
# The row where a key would be, of the newest run that has the key; nothing for other keys.
_NEAR = """
    SELECT found.keys FROM unnest($1::uuid[]) AS asked (key) CROSS JOIN LATERAL (
        SELECT near.keys FROM (SELECT number FROM runs WHERE whole ORDER BY number DESC) AS newest CROSS JOIN LATERAL (
            SELECT keys FROM run_keys WHERE run = newest.number AND first <= asked.key ORDER BY first DESC LIMIT 1
        ) AS near WHERE position(uuid_send(asked.key) IN near.keys) > 0 LIMIT 1
    ) AS found
"""
_CUTS = """
    SELECT first FROM (
        SELECT first, row_number() OVER (ORDER BY first) AS place FROM run_keys WHERE run = ANY ($1)
    ) AS rows WHERE place % $2 = 0 ORDER BY first
"""
_LAST_BLOCK = "SELECT keys FROM run_keys WHERE run = ANY ($1) AND first >= $2"
_BLOCK = f"{_LAST_BLOCK} AND first < $3"


async def add(db: Any, keys: Keys) -> None:
    """Keep keys as a run of their own. Within a transaction."""
    run = await db.fetchval(_ADD, len(keys), True)
    await _add_rows(db, run, (await asyncio.to_thread(in_order, keys)).T)


async def hold(db: Any, keys: Keys) -> Mask:
    """Which of the keys are in a run, found in the rows where they would be."""
    found = np.zeros(len(keys), dtype=bool)
    for start in range(0, len(keys), _ASKED_AT_ONCE):
        part = keys[start : start + _ASKED_AT_ONCE]
        rows = await db.fetch(_NEAR, items(part.astype(">u8")))
        there = set(items(_unpacked(row[0] for row in rows)))
        found[start : start + len(part)] = [item in there for item in items(part)]
    return found


async def count(db: Any) -> int:
    """How many keys there are in runs."""
    return int(await db.fetchval("SELECT coalesce(sum(size), 0) FROM runs WHERE whole"))


async def merge(db: Any) -> bool:
    """Put one run in the place of several of one size; False if there are too few.

    In short transactions, outside of any; only one process at a time may do it. Until the new run is whole nobody
    looks at it, and what a merge that was given up has left is swept up by the next.
    """
    await _sweep(db)
    parts = _mergeable(await db.fetch("SELECT number, size FROM runs ORDER BY number"))
    if not parts:
        return False
    size = await db.fetchval("SELECT sum(size) FROM runs WHERE number = ANY ($1)", parts)
    run = await db.fetchval(_ADD, int(size), False)
    await _merge_rows(db, parts, run)
    swap = "UPDATE runs SET whole = (number = $1) WHERE number = $1 OR number = ANY ($2)"
    await db.execute(swap, run, parts)
    await _sweep(db)
    return True


async def _sweep(db: Any) -> None:
    """Remove runs that are not whole."""
    for row in await db.fetch("SELECT number FROM runs WHERE NOT whole"):
        await db.execute("DELETE FROM run_keys WHERE run = $1", row[0])
        await db.execute("DELETE FROM runs WHERE number = $1", row[0])


def _mergeable(runs: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers of the first runs of about one size, if there are enough of them; the smallest size first.

    >>> _mergeable((number, 100) for number in range(1, 10))
    [1, 2, 3, 4, 5, 6, 7, 8]
    """
    levels: dict[int, list[int]] = {}
    for number, size in runs:
        levels.setdefault(size.bit_length() // FAN_BITS, []).append(number)
    enough = [level for level in sorted(levels) if len(levels[level]) >= FAN]
    return levels[enough[0]][:FAN] if enough else []


async def _merge_rows(db: Any, parts: list[int], run: int) -> None:
    """The keys of all parts in order. A row's last keys may belong to the next block: they are carried over."""
    cuts = [row[0] for row in await db.fetch(_CUTS, parts, _ROWS_AT_ONCE)]
    carried = np.zeros((0, 2), dtype=np.uint64)
    for start, stop in pairwise([bytes(ID_BYTES), *cuts, None]):
        last = stop is None
        rows = await (db.fetch(_LAST_BLOCK, parts, start) if last else db.fetch(_BLOCK, parts, start, stop))
        keys = np.concatenate([carried, _unpacked(row[0] for row in rows)])
        ordered = (await asyncio.to_thread(in_order, keys)).T
        end = len(ordered) if last else _before(ordered, _unpacked([stop])[0])
        await _add_rows(db, run, ordered[:end])
        carried = ordered[end:]
        await asyncio.sleep(_PAUSE)


def _before(ordered: Keys, bound: Keys) -> int:
    """How many of the keys, which are in order, come before another."""
    high = ordered[:, 0]
    start, stop = np.searchsorted(high, bound[0]), np.searchsorted(high, bound[0], side="right")
    return int(start + np.searchsorted(ordered[start:stop, 1], bound[1]))


async def _add_rows(db: Any, run: int, ordered: Keys) -> None:
    packed = np.ascontiguousarray(ordered.astype(">u8"))
    rows = [packed[start : start + _ROW].tobytes() for start in range(0, len(packed), _ROW)]
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        await db.execute(_ADD_ROWS, run, [row[:ID_BYTES] for row in part], part)


def _unpacked(parts: Iterable[bytes]) -> Keys:
    return np.frombuffer(b"".join(parts), dtype=">u8").astype(np.uint64).reshape(-1, 2)

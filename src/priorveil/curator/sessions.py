"""The connection to PostgreSQL that writes, and all that is true for only as long as it lives.

What it knows of the database may be wrong on the next connection, which may find a database that was restored or that
took over: then all of it is asked for again, but for the ids of past eras, which say themselves if they still hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import numpy as np

from priorveil.curator import eras
from priorveil.curator.batches import Batch, gathered
from priorveil.curator.keys import Keys, Mask
from priorveil.curator.store import (
    Cells,
    Group,
    Unavailable,
    add_chunk,
    changed_chunks,
    chunk,
    counted,
    no_cells,
    only,
)

# Every statement must see what was there when it got its locks; a host that vanishes must not hold any for long.
SETTINGS = {
    "default_transaction_isolation": "read committed",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
}
_IDLE = "5s"  # within a transaction; less than our patience
# Commits done with care after one in which an id came again: who sends again seldom comes alone.
_CAREFUL = 64
_PUT = """
    WITH entries AS (
        INSERT INTO log (era, plan, ids, words)
        SELECT $1, * FROM unnest($2::integer[], $3::bytea[], $4::bytea[])
    )
    INSERT INTO tallies (plan, shard, chunk, cells)
    SELECT p, $5, n, c FROM unnest($6::integer[], $7::integer[], $8::bytea[]) AS new (p, n, c)
    ON CONFLICT (plan, shard, chunk) DO UPDATE SET cells = excluded.cells
"""
NUMBER = """
    SELECT plans.number FROM plans JOIN campaigns ON campaigns.number = plans.campaign
    WHERE campaigns.id = $1 AND plans.id = $2
"""


@dataclass(eq=False)
class Session:
    """A connection with a shard that nobody else writes to. `ended` is called when it has ended an era."""

    db: Any
    shard: int
    past: eras.Past
    longest: int
    ended: Callable[[], None]
    era: eras.Era = eras.NO_ERA
    left: int = 0  # reports until the era should end
    careful: int = 0  # commits for which ids are expected that are there already
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    cells: dict[int, Cells] = field(default_factory=dict)

    async def commit(self, groups: Sequence[Group]) -> int:
        """Store what is new, durably, and count it; return how many were new."""
        if self.left <= 0:
            await self._end_era()
        batch = gathered(groups)
        while True:
            try:
                return await self._stored(groups, batch)
            except eras.EraEnded:
                await self.follow()

    async def follow(self) -> None:
        """Get to know the current era, and those that have ended."""
        self.era = await self.past.follow(self.db)
        self.left = self.longest - await eras.size(self.db, self.era)

    async def _end_era(self) -> None:
        await eras.end(self.db, self.era)
        await self.follow()
        self.ended()

    async def _stored(self, groups: Sequence[Group], batch: Batch) -> int:
        """Write what is new in one transaction; how many reports that was."""
        new = batch.only(~await self.past.holds(self.db, batch.keys))
        changed: dict[int, Cells] = {}
        entries: list[tuple[int, bytes, bytes]] = []
        chunks: list[tuple[int, int, bytes]] = []
        async with self.db.transaction():
            new = new.only(await self._inserted(new.keys))
            for number, group in enumerate(groups):
                kept = only(group, new.places(number))
                if kept.ids:
                    plan = await self._plan_number(group)
                    delta = counted(group.mechanism, kept.words)
                    changed[plan] = await self._tally(plan, group) + delta
                    entries.append((plan, kept.ids, kept.words))
                    chunks.extend((plan, n, chunk(changed[plan], n)) for n in changed_chunks(delta))
            if entries:
                await self.db.execute(
                    _PUT, self.era.number, *_columns(entries), self.shard, *_columns(chunks)
                )
        self.cells.update(changed)
        self.left -= len(new.keys)
        return len(new.keys)

    async def _inserted(self, keys: Keys) -> Mask:
        """Which keys the current era did not have. Looks out for them only while some come again."""
        if not len(keys):
            return np.zeros(0, dtype=bool)
        new = await eras.insert(self.db, self.era, keys, self.careful > 0)
        self.careful = max(self.careful - 1, 0) if new.all() else _CAREFUL
        return new

    async def _tally(self, plan: int, group: Group) -> Cells:
        """What this shard has counted so far; read once."""
        if plan not in self.cells:
            cells = no_cells(group.mechanism)
            stored = "SELECT chunk, cells FROM tallies WHERE plan = $1 AND shard = $2"
            for row in await self.db.fetch(stored, plan, self.shard):
                add_chunk(cells, row[0], row[1])
            self.cells[plan] = cells
        return self.cells[plan]

    async def _plan_number(self, group: Group) -> int:
        key = (group.campaign, group.plan)
        if key not in self.numbers:
            found = await self.db.fetchval(NUMBER, *key)
            if found is None:
                raise Unavailable("this database does not have the campaign")
            self.numbers[key] = found
        return self.numbers[key]


async def begun(url: str, past: eras.Past, longest: int, ended: Callable[[], None]) -> Session:
    """A new session, which knows the current era and all before it."""
    settings = {**SETTINGS, "idle_in_transaction_session_timeout": _IDLE}
    db = await asyncpg.connect(url, command_timeout=60, timeout=10, server_settings=settings)
    try:
        await ids_as_bytes(db)
        await db.execute(eras.SESSION)
        shard = 0
        while not await db.fetchval("SELECT pg_try_advisory_lock($1, $2)", eras.LOCKS, shard):
            shard += 1
        session = Session(db, shard, past, longest, ended)
        await session.follow()
    except BaseException:
        db.terminate()  # or it would hold on to its shard
        raise
    return session


async def ids_as_bytes(db: Any) -> None:
    """Ids go in and out as 16 bytes; stored as uuid they compare faster and their index is smaller."""
    await db.set_type_codec("uuid", schema="pg_catalog", encoder=_same, decoder=bytes, format="binary")


def _same(value: bytes) -> bytes:
    return value


def _columns(rows: Sequence[tuple[Any, ...]]) -> Iterator[list[Any]]:
    return (list(column) for column in zip(*rows, strict=True))

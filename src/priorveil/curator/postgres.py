"""The store for more: PostgreSQL, written to by any number of processes at once.

Reports are kept in a packed log, one entry for each plan in each commit; which ids were seen is answered by `eras`.
Each writer counts into a shard of its own, held by an advisory lock for as long as its connection lives, so
that writers never wait for each other's tallies. A lost connection is made again; what it was writing is written
again, and ids that had been stored after all are not counted twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

try:
    import asyncpg
except ImportError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra("asyncpg", "postgres") from missing

from priorveil.campaigns import Campaign
from priorveil.curator import eras
from priorveil.curator.batches import Batch, gathered
from priorveil.curator.keys import Keys, Mask
from priorveil.curator.postgres_schema import migrate
from priorveil.curator.store import (
    Cells,
    Chunk,
    Group,
    Stored,
    StoreFull,
    Unavailable,
    add_chunk,
    as_cells,
    as_tally,
    changed_chunks,
    chunk,
    counted,
    no_cells,
    only,
    read_stored,
)
from priorveil.tallies import Tally

T = TypeVar("T")

_PATIENCE = 10.0  # seconds in which a lost connection should come back
_PAGE = 50  # entries of the log read at once
_CAREFUL = (
    64  # commits done with care after one in which an id came again: who sends again seldom comes alone
)
# Every statement must see what was there when it got its locks. And if we vanish within a transaction, the ids that it
# holds must not stay locked for longer than our patience.
_SESSION = """
    SET default_transaction_isolation = 'read committed';
    SET idle_in_transaction_session_timeout = '5s';
"""
_log = logging.getLogger(__name__)
_LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # asked between the server's last words and its hanging up
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby: the next connection may find the primary
    asyncpg.TransactionRollbackError,
)

_PUT = """
    WITH entries AS (
        INSERT INTO log (era, plan, ids, words)
        SELECT $1, * FROM unnest($2::integer[], $3::bytea[], $4::bytea[])
    )
    INSERT INTO tallies (plan, shard, chunk, cells)
    SELECT p, $5, n, c FROM unnest($6::integer[], $7::integer[], $8::bytea[]) AS new (p, n, c)
    ON CONFLICT (plan, shard, chunk) DO UPDATE SET cells = excluded.cells
"""
_PUT_CHUNKS = """
    INSERT INTO tallies (plan, shard, chunk, cells) SELECT $1, 0, * FROM unnest($2::integer[], $3::bytea[])
"""
_TALLY = """
    SELECT plans.id, chunk, cells FROM tallies JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE campaigns.id = $1
"""
_NUMBER = """
    SELECT plans.number FROM plans JOIN campaigns ON campaigns.number = plans.campaign
    WHERE campaigns.id = $1 AND plans.id = $2
"""
_OTHER_WRITERS = """
    SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND classid = $1::integer::oid AND datname = current_database() AND pid <> $2
"""
_ENTRIES = """
    SELECT era, log.number, plans.id, ids, words FROM log JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign
    WHERE campaigns.id = $1 AND (era, log.number) > ($2, $3) ORDER BY era, log.number LIMIT $4
"""


class PostgresStore:
    """A store in a PostgreSQL database. `era` is after how many reports a writer ends an era."""

    def __init__(self, url: str, era: int = eras.ERA) -> None:
        self._url = url
        self._longest = era
        self._pool: Any = None
        self._connection: Any = None
        self._connecting = asyncio.Lock()
        self._shard = 0
        self._careful = 0  # commits for which ids are expected that are there already
        self._past = eras.Past()
        self._era = eras.Era(0, b"")
        self._in_era = 0  # reports, as far as this writer knows
        self._merging: asyncio.Task[None] | None = None
        self._numbers: dict[tuple[str, str], int] = {}
        self._cells: dict[int, Cells] = {}

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        try:
            self._pool = await asyncpg.create_pool(
                self._url, min_size=1, max_size=4, command_timeout=60, init=_ids_as_bytes
            )
            async with self._pool.acquire() as db:
                await migrate(db)
        except _LOST as error:
            raise Unavailable(f"PostgreSQL: {error}") from error

    async def close(self) -> None:
        """Close all connections; a merge that is under way is given up, and begun anew by whoever writes next."""
        if self._merging is not None:
            self._merging.cancel()
            with suppress(asyncio.CancelledError):
                await self._merging
        if self._connection is not None:
            await self._connection.close()
        if self._pool is not None:
            await self._pool.close()

    async def ready(self) -> None:
        """Return if the database answers and the ids that it has seen are known; the first time that takes a while."""
        await self._fetch("SELECT 1")
        await _patiently(self._writer, patience=2.0)

    # -- reports ---------------------------------------------------------------------------------------------

    async def commit(self, groups: Sequence[Group]) -> int:
        """Store what is new, durably, and count it; return how many were new."""
        return await _patiently(lambda: self._commit(groups), self._drop)

    async def _commit(self, groups: Sequence[Group]) -> int:
        db = await self._writer()
        if self._in_era >= self._longest:
            await eras.end(db, self._era)
            await self._follow(db)
            self._merge_if_idle()
        batch = gathered(groups)
        while True:
            try:
                return await self._stored(db, groups, batch)
            except eras.EraEnded:
                await self._follow(db)

    async def _stored(self, db: Any, groups: Sequence[Group], batch: Batch) -> int:
        """Write what is new in one transaction; how many reports that was."""
        new = batch.only(~await self._past.holds(db, batch.keys))
        changed: dict[int, Cells] = {}
        entries: list[tuple[int, bytes, bytes]] = []
        chunks: list[tuple[int, int, bytes]] = []
        async with db.transaction():
            new = new.only(await self._inserted(db, new.keys))
            for number, group in enumerate(groups):
                kept = only(group, new.places(number))
                if kept.ids:
                    plan = await self._plan_number(db, group)
                    delta = counted(group.mechanism, kept.words)
                    changed[plan] = await self._tally(db, plan, group) + delta
                    entries.append((plan, kept.ids, kept.words))
                    chunks.extend((plan, n, chunk(changed[plan], n)) for n in changed_chunks(delta))
            if entries:
                await db.execute(_PUT, self._era.number, *_columns(entries), self._shard, *_columns(chunks))
        self._cells.update(changed)
        self._in_era += len(new.keys)
        return len(new.keys)

    async def _inserted(self, db: Any, keys: Keys) -> Mask:
        """Which keys the current era did not have. Looks out for them only while some come again."""
        if not len(keys):
            return np.zeros(0, dtype=bool)
        careful = self._careful > 0
        new = await eras.insert(db, self._era, keys, careful)
        self._careful = max(self._careful - 1, 0) if new.all() else _CAREFUL
        return new

    async def _follow(self, db: Any) -> None:
        """Get to know the current era, and those that have ended."""
        self._era = await self._past.follow(db)
        self._in_era = await eras.size(db, self._era)

    def _merge_if_idle(self) -> None:
        if self._merging is None or self._merging.done():
            self._merging = asyncio.create_task(self._merge())

    async def _merge(self) -> None:
        """Merge what can be merged. What fails is tried again when the next era ends."""
        try:
            async with self._pool.acquire() as db:
                while await eras.merge(db):
                    pass
        except (asyncpg.PostgresError, *_LOST) as error:
            _log.warning("runs of ids stay unmerged for now: %s", type(error).__name__)

    async def _tally(self, db: Any, plan: int, group: Group) -> Cells:
        """What this shard has counted so far; read once for each connection."""
        if plan not in self._cells:
            cells = no_cells(group.mechanism)
            for row in await db.fetch(
                "SELECT chunk, cells FROM tallies WHERE plan = $1 AND shard = $2", plan, self._shard
            ):
                add_chunk(cells, row[0], row[1])
            self._cells[plan] = cells
        return self._cells[plan]

    async def _plan_number(self, db: Any, group: Group) -> int:
        key = (group.campaign, group.plan)
        if key not in self._numbers:
            self._numbers[key] = await db.fetchval(_NUMBER, *key)
        return self._numbers[key]

    async def _writer(self) -> Any:
        """The connection that writes, with a shard that nobody else writes to."""
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._cells.clear()
                db = await asyncpg.connect(self._url, command_timeout=60, timeout=10)
                try:
                    await self._prepare(db)
                except BaseException:
                    db.terminate()  # or it would hold on to its shard
                    raise
                self._connection = db
            return self._connection

    async def _prepare(self, db: Any) -> None:
        await _ids_as_bytes(db)
        await db.execute(_SESSION + eras.SESSION)
        self._shard = 0
        while not await db.fetchval("SELECT pg_try_advisory_lock($1, $2)", eras.LOCKS, self._shard):
            self._shard += 1
        await self._follow(db)

    async def _drop(self) -> None:
        """Forget the connection that writes: it may have lost its shard."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None

    async def reports(self, campaign: Campaign) -> AsyncIterator[Chunk]:
        """All reports of a campaign, some entries of the log at a time."""
        last = (0, 0)
        while True:
            rows = await self._fetch(_ENTRIES, campaign.id, *last, _PAGE)
            for _, _, plan, ids, words in rows:
                yield Chunk(plan, ids, words)
            if len(rows) < _PAGE:
                return
            last = rows[-1][:2]

    async def tallies(self, campaign: Campaign) -> dict[str, Tally]:
        """What has been counted, by plan: the sum of all shards."""
        cells = {plan.id: no_cells(plan.mechanism) for plan in campaign.plans.values()}
        for plan, number, stored in await self._fetch(_TALLY, campaign.id):
            add_chunk(cells[plan], number, stored)
        return {plan: as_tally(plan, campaign.plans[plan].mechanism, found) for plan, found in cells.items()}

    async def replace_tallies(self, campaign: Campaign, tallies: Mapping[str, Tally]) -> None:
        """Put recounted tallies in the place of the stored ones, as shard 0."""
        mine = self._connection.get_server_pid() if self._connection is not None else 0
        async with self._pool.acquire() as db, db.transaction():
            if await db.fetchval(_OTHER_WRITERS, eras.LOCKS, mine):
                raise Unavailable("a service writes to this database: stop it first")
            for plan, tally in tallies.items():
                number = await db.fetchval(_NUMBER, campaign.id, plan)
                await db.execute("DELETE FROM tallies WHERE plan = $1", number)
                cells = as_cells(tally)
                numbers = changed_chunks(cells)
                await db.execute(_PUT_CHUNKS, number, numbers, [chunk(cells, n) for n in numbers])
        self._cells.clear()

    # -- campaigns -------------------------------------------------------------------------------------------

    async def add_campaign(self, campaign: Campaign) -> bool:
        """Store a campaign; False if it was there."""
        return await _patiently(lambda: self._add_campaign(campaign))

    async def _add_campaign(self, campaign: Campaign) -> bool:
        add = "INSERT INTO campaigns (id, document) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING number"
        async with self._pool.acquire() as db, db.transaction():
            number = await db.fetchval(add, campaign.id, campaign.to_json())
            if number is None:
                return False
            for plan in campaign.plans:
                await db.execute("INSERT INTO plans (campaign, id) VALUES ($1, $2)", number, plan)
        return True

    async def close_campaign(self, campaign: str, when: str) -> None:
        """Take no more reports for this campaign; the first closing counts."""
        await self._fetch("UPDATE campaigns SET closed = $1 WHERE id = $2 AND closed IS NULL", when, campaign)

    async def campaign_ids(self) -> list[tuple[str, str | None]]:
        """All campaigns, oldest first."""
        return [tuple(row) for row in await self._fetch("SELECT id, closed FROM campaigns ORDER BY number")]

    async def campaign(self, campaign: str) -> Stored | None:
        """A campaign by its id."""
        rows = await self._fetch("SELECT document, closed FROM campaigns WHERE id = $1", campaign)
        return await asyncio.to_thread(read_stored, campaign, *rows[0]) if rows else None

    # -- counters and tokens ---------------------------------------------------------------------------------

    async def refuse(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Add to the refusals."""
        add = """
            INSERT INTO refusals AS old SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
            ON CONFLICT (campaign, reason) DO UPDATE SET count = old.count + excluded.count
        """
        rows = sorted((campaign, reason, n) for (campaign, reason), n in counts.items())
        await self._fetch(add, *(list(column) for column in zip(*rows, strict=True)))

    async def refusals(self, campaign: str) -> dict[str, int]:
        """How many reports were refused, by reason."""
        rows = await self._fetch(
            "SELECT reason, count FROM refusals WHERE campaign = $1 ORDER BY 1", campaign
        )
        return {row[0]: row[1] for row in rows}

    async def add_token(self, digest: bytes) -> None:
        """Remember the SHA-256 of a curator token."""
        await self._fetch("INSERT INTO tokens VALUES ($1) ON CONFLICT DO NOTHING", digest)

    async def token_digests(self) -> list[bytes]:
        """The SHA-256 of every curator token."""
        return [row[0] for row in await self._fetch("SELECT digest FROM tokens")]

    async def _fetch(self, query: str, *arguments: object) -> list[Any]:
        """Rows, asking again if the connection was lost."""
        rows: list[Any] = await _patiently(lambda: self._pool.fetch(query, *arguments), patience=2.0)
        return rows


async def _ids_as_bytes(db: Any) -> None:
    """Ids go in and out as 16 bytes; stored as uuid they compare faster and their index is smaller."""
    await db.set_type_codec("uuid", schema="pg_catalog", encoder=_same, decoder=bytes, format="binary")


def _same(value: bytes) -> bytes:
    return value


def _columns(rows: Sequence[tuple[Any, ...]]) -> Iterator[list[Any]]:
    return (list(column) for column in zip(*rows, strict=True))


async def _patiently(
    work: Callable[[], Awaitable[T]],
    mend: Callable[[], Awaitable[None]] | None = None,
    patience: float = _PATIENCE,
) -> T:
    """Do something, again if the connection was lost, until patience ends."""
    deadline = time.monotonic() + patience
    pause = 0.05
    while True:
        try:
            return await work()
        except asyncpg.DiskFullError as error:
            raise StoreFull("the disk of the database is full") from error
        except _LOST as error:
            if mend is not None:
                await mend()
            if time.monotonic() + pause > deadline:
                raise Unavailable(f"PostgreSQL: {error}") from error
        await asyncio.sleep(pause)
        pause = min(2 * pause, 1.0)

"""The store for more: PostgreSQL, written to by any number of processes at once.

Each writer counts into a shard of its own, held by an advisory lock for as long as its connection lives, so
that writers never wait for each other. A lost connection is made again; what it was writing is written again,
and ids that had been stored after all are not counted twice.

Reports are copied in, which is three times faster than inserting them but fails as a whole if an id is there
already. Then the transaction is done again with care, and so are those that follow: who sends again seldom
comes alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

try:
    import asyncpg
except ImportError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra("asyncpg", "postgres") from missing

from priorveil.campaigns import ID_BYTES, WORD_BYTES, Campaign, words_per_report
from priorveil.curator.store import (
    Cells,
    Chunk,
    Group,
    SchemaTooNew,
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
    read_stored,
)
from priorveil.tallies import Tally

T = TypeVar("T")
Put = Callable[
    [Any, Group, int, int], Awaitable[Group]
]  # writes a group to its campaign and plan: what was new

MIGRATIONS = (
    """
    CREATE TABLE campaigns (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE,
        document text NOT NULL, closed text
    );
    CREATE TABLE plans (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        campaign integer NOT NULL REFERENCES campaigns, id text NOT NULL, UNIQUE (campaign, id)
    );
    CREATE TABLE reports (
        id uuid NOT NULL, report bytea NOT NULL, campaign integer NOT NULL, plan integer NOT NULL,
        PRIMARY KEY (id, campaign)
    );
    CREATE TABLE tallies (
        plan integer NOT NULL, shard integer NOT NULL, chunk integer NOT NULL, cells bytea NOT NULL,
        PRIMARY KEY (plan, shard, chunk)
    ) WITH (fillfactor = 50);
    CREATE TABLE refusals (
        campaign text NOT NULL, reason text NOT NULL, count bigint NOT NULL, PRIMARY KEY (campaign, reason)
    );
    CREATE TABLE tokens (digest bytea PRIMARY KEY);
    """,
)

_LOCKS = 0x7076  # the class of our advisory locks; the schema is locked as shard -1
_PATIENCE = 10.0  # seconds in which a lost connection should come back
_PAGE = 20_000  # reports read at once
_CAREFUL = 64  # commits done with care after one in which an id came again
_COLUMNS = ("id", "report", "campaign", "plan")
_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # the signature, no flags, no extension
_COPY_TAIL = b"\xff\xff"
_LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
)

_INSERT = """
    INSERT INTO reports (id, report, campaign, plan)
    SELECT new.id, new.report, $3, $4 FROM unnest($1::uuid[], $2::bytea[]) AS new (id, report)
    ON CONFLICT DO NOTHING
"""
_MINE = """
    SELECT id FROM reports
    WHERE id = ANY($1::uuid[]) AND campaign = $2 AND plan = $3 AND xmin = pg_current_xact_id()::xid
"""
_PUT_CHUNKS = """
    INSERT INTO tallies (plan, shard, chunk, cells)
    SELECT p, $1, n, c FROM unnest($2::integer[], $3::integer[], $4::bytea[]) AS new (p, n, c)
    ON CONFLICT (plan, shard, chunk) DO UPDATE SET cells = excluded.cells
"""
_TALLY = """
    SELECT plans.id, chunk, cells FROM tallies JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE campaigns.id = $1
"""
_NUMBERS = """
    SELECT campaigns.number, plans.number FROM plans JOIN campaigns ON campaigns.number = plans.campaign
    WHERE campaigns.id = $1 AND plans.id = $2
"""
_PAGE_OF_REPORTS = """
    SELECT id, report, plan FROM reports
    WHERE campaign = (SELECT number FROM campaigns WHERE campaigns.id = $1) AND reports.id {} $2
    ORDER BY reports.id LIMIT $3
"""


class PostgresStore:
    """A store in a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Any = None
        self._connection: Any = None
        self._shard = 0
        self._careful = 0  # commits for which ids are expected that are there already
        self._numbers: dict[tuple[str, str], tuple[int, int]] = {}
        self._cells: dict[int, Cells] = {}

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        try:
            self._pool = await asyncpg.create_pool(
                self._url, min_size=1, max_size=4, command_timeout=60, init=_ids_as_bytes
            )
            async with self._pool.acquire() as db:
                await _migrate(db)
        except _LOST as error:
            raise Unavailable(f"PostgreSQL: {error}") from error

    async def close(self) -> None:
        """Close all connections."""
        if self._connection is not None:
            await self._connection.close()
        if self._pool is not None:
            await self._pool.close()

    async def ready(self) -> None:
        """Return if the database answers."""
        await self._fetch("SELECT 1")

    # -- reports ---------------------------------------------------------------------------------------------

    async def commit(self, groups: Sequence[Group]) -> int:
        """Store what is new, durably, and count it; return how many were new."""
        return await _patiently(lambda: self._commit(groups), self._drop)

    async def _commit(self, groups: Sequence[Group]) -> int:
        if not self._careful:
            with contextlib.suppress(asyncpg.UniqueViolationError):
                return await self._written(groups, _copy)
        self._careful = max(self._careful - 1, 0)
        stored = await self._written(groups, _insert)
        if stored < sum(len(g.ids) for g in groups) // ID_BYTES:
            self._careful = _CAREFUL
        return stored

    async def _written(self, groups: Sequence[Group], put: Put) -> int:
        db = await self._writer()
        stored = 0
        changed: dict[int, Cells] = {}
        async with db.transaction():
            puts: list[tuple[int, int, bytes]] = []
            for group in sorted(
                groups, key=lambda g: (g.campaign, g.plan)
            ):  # one order for all writers: no deadlock
                campaign, plan = await self._plan_numbers(db, group)
                new = await put(db, group, campaign, plan)
                if not new.ids:
                    continue
                delta = counted(group.mechanism, new.words)
                changed[plan] = await self._tally(db, plan, group) + delta
                puts.extend((plan, n, chunk(changed[plan], n)) for n in changed_chunks(delta))
                stored += len(new.ids) // ID_BYTES
            if puts:
                await db.execute(
                    _PUT_CHUNKS, self._shard, *(list(column) for column in zip(*puts, strict=True))
                )
        self._cells.update(changed)
        return stored

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

    async def _plan_numbers(self, db: Any, group: Group) -> tuple[int, int]:
        key = (group.campaign, group.plan)
        if key not in self._numbers:
            self._numbers[key] = tuple(await db.fetchrow(_NUMBERS, *key))
        return self._numbers[key]

    async def _writer(self) -> Any:
        """The connection that writes, with a shard that nobody else writes to."""
        if self._connection is None or self._connection.is_closed():
            self._cells.clear()
            db = await asyncpg.connect(self._url, command_timeout=60, timeout=10)
            await _ids_as_bytes(db)
            self._shard = 0
            while not await db.fetchval("SELECT pg_try_advisory_lock($1, $2)", _LOCKS, self._shard):
                self._shard += 1
            self._connection = db
        return self._connection

    async def _drop(self) -> None:
        """Forget the connection that writes: it may have lost its shard."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None

    async def reports(self, campaign: Campaign) -> AsyncIterator[Chunk]:
        """All reports of a campaign by their ids, a page at a time."""
        plans = {row[0]: row[1] for row in await self._fetch("SELECT number, id FROM plans")}
        last, relation = bytes(ID_BYTES), ">="
        while True:
            rows = await self._fetch(_PAGE_OF_REPORTS.format(relation), campaign.id, last, _PAGE)
            for plan in dict.fromkeys(row[2] for row in rows):
                own = [row for row in rows if row[2] == plan]
                yield Chunk(plans[plan], b"".join(row[0] for row in own), b"".join(row[1] for row in own))
            if len(rows) < _PAGE:
                return
            last, relation = rows[-1][0], ">"

    async def tallies(self, campaign: Campaign) -> dict[str, Tally]:
        """What has been counted, by plan: the sum of all shards."""
        cells = {plan.id: no_cells(plan.mechanism) for plan in campaign.plans.values()}
        for plan, number, stored in await self._fetch(_TALLY, campaign.id):
            add_chunk(cells[plan], number, stored)
        return {plan: as_tally(plan, campaign.plans[plan].mechanism, found) for plan, found in cells.items()}

    async def replace_tallies(self, campaign: Campaign, tallies: Mapping[str, Tally]) -> None:
        """Put recounted tallies in the place of the stored ones, as shard 0."""
        async with self._pool.acquire() as db, db.transaction():
            for plan, tally in tallies.items():
                number = (await db.fetchrow(_NUMBERS, campaign.id, plan))[1]
                await db.execute("DELETE FROM tallies WHERE plan = $1", number)
                cells = as_cells(tally)
                numbers = changed_chunks(cells)
                parts = [chunk(cells, n) for n in numbers]
                await db.execute(_PUT_CHUNKS, 0, [number] * len(numbers), numbers, parts)
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


async def _copy(db: Any, group: Group, campaign: int, plan: int) -> Group:
    """Copy a group's reports in; fails if one of them is there already."""
    ids, words = _in_order(group)
    row = [(f"{name}_size", ">i4") for name in _COLUMNS]
    values = [("id", ids.dtype), ("report", words.dtype), ("campaign", ">i4"), ("plan", ">i4")]
    rows = np.zeros(
        len(ids),
        dtype=[("columns", ">i2"), *(field for pair in zip(row, values, strict=True) for field in pair)],
    )
    rows["columns"] = len(_COLUMNS)
    for name, column in zip(_COLUMNS, (ids, words, campaign, plan), strict=True):
        rows[name] = column
        rows[f"{name}_size"] = rows.dtype[name].itemsize
    source = io.BytesIO(_COPY_HEAD + rows.tobytes() + _COPY_TAIL)
    await db.copy_to_table("reports", source=source, columns=_COLUMNS, format="binary")
    return group


def _in_order(group: Group) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Ids and reports by the ids' leading halves: neighbours in the index are written together."""
    size = WORD_BYTES * words_per_report(group.mechanism)
    order = np.argsort(np.frombuffer(group.ids, dtype=">u8")[::2], kind="stable")
    ids = np.frombuffer(group.ids, dtype=f"V{ID_BYTES}")[order]
    return ids, np.frombuffer(group.words, dtype=f"V{size}")[order]


async def _insert(db: Any, group: Group, campaign: int, plan: int) -> Group:
    """Insert a group's reports; what was new of it is returned."""
    ids, words = (column.tolist() for column in _in_order(group))
    stored = int((await db.execute(_INSERT, ids, words, campaign, plan)).rpartition(" ")[2])
    if stored == len(ids):
        return group
    mine = {row[0] for row in await db.fetch(_MINE, ids, campaign, plan)}
    kept = {told: word for told, word in zip(reversed(ids), reversed(words), strict=True) if told in mine}
    return Group(group.campaign, group.plan, group.mechanism, b"".join(kept), b"".join(kept.values()))


async def _migrate(db: Any) -> None:
    """Bring the schema up to date, one process at a time."""
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1, -1)", _LOCKS)
        await db.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
        version = await db.fetchval("SELECT max(version) FROM schema_version") or 0
        if version > len(MIGRATIONS):
            raise SchemaTooNew(
                f"the database has schema {version}, this priorveil knows {len(MIGRATIONS)}: use a newer one"
            )
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            await db.execute(script)
            await db.execute("INSERT INTO schema_version VALUES ($1)", number)


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

"""The store for more: PostgreSQL, written to by any number of processes at once.

Each writer counts into a shard of its own, held by an advisory lock for as long as its connection lives, so
that writers never wait for each other. A lost connection is made again; what it was writing is written again,
and ids that had been stored after all are not counted twice.

Reports are copied into a table of the connection's own and inserted from there. A plain insert is twice as fast as
one that looks out for ids that are there already, but fails as a whole if one is. The failure is caught within the
database, so that nothing of it comes into the server's log; then the insert is done with care, and so are those that
follow: who sends again seldom comes alone.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from operator import itemgetter
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
Numbers = tuple[int, int]  # of a campaign and one of its plans

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
# If we vanish within a transaction, the ids that it holds must not stay locked for longer than our patience.
_SESSION = """
    SET idle_in_transaction_session_timeout = '5s';
    CREATE TEMP TABLE incoming (id uuid, report bytea, campaign integer, plan integer) ON COMMIT DELETE ROWS;
    CREATE FUNCTION pg_temp.insert_all() RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO reports (id, report, campaign, plan) SELECT id, report, campaign, plan FROM incoming;
            RETURN true;
        EXCEPTION WHEN unique_violation THEN
            RETURN false;
        END
    $$
"""
_COLUMNS = ("id", "report", "campaign", "plan")
_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # the signature, no flags, no extension
_COPY_TAIL = b"\xff\xff"
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

_INSERT_NEW = """
    INSERT INTO reports (id, report, campaign, plan) SELECT id, report, campaign, plan FROM incoming
    ON CONFLICT DO NOTHING RETURNING id, report, plan
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
_OTHER_WRITERS = """
    SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND classid = $1::integer::oid AND datname = current_database() AND pid <> $2
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
        self._numbers: dict[tuple[str, str], Numbers] = {}
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
        db = await self._writer()
        changed: dict[int, Cells] = {}
        puts: list[tuple[int, int, bytes]] = []
        stored = 0
        async with db.transaction():
            by_plan = {(await self._plan_numbers(db, group)): group for group in groups}
            own = {plan: group for (_, plan), group in by_plan.items()}
            for plan, words in (await self._inserted(db, by_plan)).items():
                group = own[plan]
                delta = counted(group.mechanism, words)
                stored += int(delta[0])
                changed[plan] = await self._tally(db, plan, group) + delta
                puts.extend((plan, n, chunk(changed[plan], n)) for n in changed_chunks(delta))
            if puts:
                await db.execute(
                    _PUT_CHUNKS, self._shard, *(list(column) for column in zip(*puts, strict=True))
                )
        self._cells.update(changed)
        return stored

    async def _inserted(self, db: Any, groups: Mapping[Numbers, Group]) -> dict[int, bytes]:
        """Insert the reports of some groups; the words of those that were new, by plan."""
        source = io.BytesIO(_COPY_HEAD + _rows(groups) + _COPY_TAIL)
        await db.copy_to_table("incoming", source=source, columns=_COLUMNS, format="binary")
        if not self._careful and await db.fetchval("SELECT pg_temp.insert_all()"):
            return {plan: group.words for (_, plan), group in groups.items()}
        stored = await db.fetch(_INSERT_NEW)
        again = len(stored) < sum(len(g.ids) for g in groups.values()) // ID_BYTES
        self._careful = _CAREFUL if again else max(self._careful - 1, 0)
        new: dict[int, list[bytes]] = {}
        for _, report, plan in stored:
            new.setdefault(plan, []).append(report)
        return {plan: b"".join(words) for plan, words in new.items()}

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

    async def _plan_numbers(self, db: Any, group: Group) -> Numbers:
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
            await db.execute(_SESSION)
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
        mine = self._connection.get_server_pid() if self._connection is not None else 0
        async with self._pool.acquire() as db, db.transaction():
            if await db.fetchval(_OTHER_WRITERS, _LOCKS, mine):
                raise Unavailable("a service writes to this database: stop it first")
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


def _rows(groups: Mapping[Numbers, Group]) -> bytes:
    """The reports of all groups in PostgreSQL's binary format, by their ids.

    One order for all writers: none waits for another that waits for it, and neighbours in the index come together.
    """
    parts = [_part(group, *numbers) for numbers, group in groups.items()]
    if len(parts) == 1:
        return parts[0].tobytes()
    whole: list[tuple[bytes, bytes]] = []
    for part in parts:
        whole.extend(zip(part["id"].tolist(), part.view(f"V{part.itemsize}").tolist(), strict=True))
    whole.sort(key=itemgetter(0))
    return b"".join(row for _, row in whole)


def _part(group: Group, campaign: int, plan: int) -> npt.NDArray[np.void]:
    """The rows of one group, in order: for each column its size and its content."""
    size = WORD_BYTES * words_per_report(group.mechanism)
    high, low = np.frombuffer(group.ids, dtype=">u8").reshape(-1, 2).T
    order = np.lexsort((low, high))
    contents = {
        "id": np.frombuffer(group.ids, dtype=f"V{ID_BYTES}")[order],
        "report": np.frombuffer(group.words, dtype=f"V{size}")[order],
        "campaign": np.full(len(order), campaign, dtype=">i4"),
        "plan": np.full(len(order), plan, dtype=">i4"),
    }
    fields: list[tuple[str, Any]] = [("columns", ">i2")]
    for name in _COLUMNS:
        fields += [(f"{name}_size", ">i4"), (name, contents[name].dtype)]
    rows = np.zeros(len(order), dtype=fields)
    rows["columns"] = len(_COLUMNS)
    for name in _COLUMNS:
        rows[f"{name}_size"] = contents[name].dtype.itemsize
        rows[name] = contents[name]
    return rows


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

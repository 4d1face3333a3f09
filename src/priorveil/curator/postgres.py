"""The store for more: PostgreSQL, written to by any number of processes at once.

Reports are kept in a packed log, one entry for each plan in each commit; which ids were seen is answered by `eras`.
Each writer counts into a shard of its own, held by an advisory lock for as long as its connection lives, so
that writers never wait for each other's tallies. A lost connection is made again; what it was writing is written
again, and ids that had been stored after all are not counted twice.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

try:
    import asyncpg
except ImportError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra("asyncpg", "postgres") from missing

from priorveil.collect.campaign import Campaign
from priorveil.curator import eras
from priorveil.curator.postgres_schema import migrate, require
from priorveil.curator.sessions import NUMBER, SETTINGS, Session, begun, ids_as_bytes
from priorveil.curator.store import (
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
    no_cells,
    read_stored,
    shown,
)
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.plans.tally import Tally

T = TypeVar("T")

_PATIENCE = 10.0  # seconds in which a lost connection should come back
_PAGE = 50  # entries of the log read at once
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
    asyncpg.LockNotAvailableError,  # the database was told to wait for locks only so long
)
_WRONG = (  # what whoever runs the database has to mend
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedTableError,
)

_PUT_CHUNKS = """
    INSERT INTO tallies (plan, shard, chunk, cells) SELECT $1, 0, * FROM unnest($2::integer[], $3::bytea[])
"""
_TALLY = """
    SELECT plans.id, chunk, cells FROM tallies JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE campaigns.id = $1
"""
_OTHER_WRITERS = """
    SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND classid = $1::integer::oid AND datname = current_database() AND pid <> $2
    AND objid::bigint < 2147483648
"""
_ENTRIES = """
    SELECT era, log.number, plans.id, ids, words FROM log JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign
    WHERE campaigns.id = $1 AND (era, log.number) > ($2, $3) ORDER BY era, log.number LIMIT $4
"""


class PostgresStore:
    """A store in a PostgreSQL database. `era` is after how many reports a writer ends an era.

    Without `create` the schema must be there, as we know it: nothing is made or brought up to date.
    """

    def __init__(self, url: str, era: int = eras.ERA, *, create: bool = True) -> None:
        self._url = url
        self._era = era
        self._create = create
        self._pool: Any = None
        self._past = eras.Past()
        self._writing = asyncio.Lock()
        self._session: Session | None = None
        self._merging: asyncio.Task[None] | None = None

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and bring the schema up to date, or without `create` see that it is."""
        try:
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=4,
                command_timeout=60,
                init=ids_as_bytes,
                server_settings=SETTINGS,
            )
            async with self._pool.acquire() as db:
                await (migrate if self._create else require)(db, shown(self._url))
        except PriorveilError:
            raise
        except (ValueError, asyncpg.ClientConfigurationError):
            # Not from this error: it would show the address.
            advice = "give postgresql://user@host:port/database"
            raise InvalidInput("store", shown(self._url), advice) from None
        except _LOST as error:
            raise Unavailable(f"PostgreSQL: {error}") from error
        except asyncpg.PostgresError as error:
            raise InvalidInput("store", shown(self._url), _advice(error, self._url)) from error

    async def close(self) -> None:
        """Close all connections; a merge that is under way is given up, and begun anew by whoever writes next."""
        if self._merging is not None:
            self._merging.cancel()
            await asyncio.wait([self._merging])
        if self._session is not None:
            await self._session.db.close()
        if self._pool is not None:
            await self._pool.close()

    async def ready(self) -> None:
        """Return if the database answers and the ids that it has seen are known; the first time that takes a while."""
        await self._fetch("SELECT 1")
        if not self._writing.locked():
            await _patiently(self._prepare, patience=2.0)

    # -- reports ---------------------------------------------------------------------------------------------

    async def commit(self, groups: Sequence[Group]) -> int:
        """Store what is new, durably, and count it; return how many were new."""
        return await _patiently(lambda: self._commit(groups))

    async def _commit(self, groups: Sequence[Group]) -> int:
        async with self._writing:
            session = await self._current_session()
            try:
                return await session.commit(groups)
            except BaseException:  # also when cancelled: nobody knows then how far it came
                self._session = None
                session.db.terminate()
                raise

    async def _prepare(self) -> None:
        async with self._writing:
            await self._current_session()

    async def _current_session(self) -> Session:
        """The connection that writes, a new one if it was lost."""
        if self._session is None or self._session.db.is_closed():
            self._session = await begun(self._url, self._past, self._era, self._merge_if_idle)
        return self._session

    def _merge_if_idle(self) -> None:
        if self._merging is None or self._merging.done():
            self._merging = asyncio.create_task(self._merge())

    async def _merge(self) -> None:
        """Merge what can be merged. What fails is tried again when the next era ends."""
        try:
            async with self._pool.acquire() as db:
                await eras.merge(db)
        except (asyncpg.PostgresError, *_LOST) as error:
            _log.warning("runs of ids stay unmerged for now: %s", type(error).__name__)

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
        await _patiently(lambda: self._replace(campaign, tallies))

    async def _replace(self, campaign: Campaign, tallies: Mapping[str, Tally]) -> None:
        mine = self._session.db.get_server_pid() if self._session is not None else 0
        async with self._pool.acquire() as db, db.transaction():
            if await db.fetchval(_OTHER_WRITERS, eras.LOCKS, mine):
                raise Unavailable("a service writes to this database: stop it first")
            for plan, tally in tallies.items():
                number = await db.fetchval(NUMBER, campaign.id, plan)
                await db.execute("DELETE FROM tallies WHERE plan = $1", number)
                cells = as_cells(tally)
                numbers = changed_chunks(cells)
                await db.execute(_PUT_CHUNKS, number, numbers, [chunk(cells, n) for n in numbers])
        if self._session is not None:
            self._session.cells.clear()

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


async def _patiently(work: Callable[[], Awaitable[T]], patience: float = _PATIENCE) -> T:
    """Do something, again if the connection was lost, until patience ends."""
    deadline = time.monotonic() + patience
    pause = 0.05
    while True:
        try:
            return await work()
        except asyncpg.DiskFullError as error:
            raise StoreFull("the disk of the database is full") from error
        except _LOST as error:
            if time.monotonic() + pause > deadline:
                raise Unavailable(f"PostgreSQL: {error}") from error
        except _WRONG as error:
            raise Unavailable(f"PostgreSQL: {error}") from error
        await asyncio.sleep(pause)
        pause = min(2 * pause, 1.0)


def _advice(error: asyncpg.PostgresError, url: str) -> str:
    """What the database said when it was opened, and what to do about it."""
    todo = "give a database of its own"
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        name = unquote(urlsplit(url).path.lstrip("/"))
        todo = f"make it with: createdb {shlex.quote(name) if name else 'NAME'}"
    elif isinstance(error, asyncpg.InvalidPasswordError):
        todo = "give the role's password, better in ~/.pgpass or PGPASSWORD than here"
    elif isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        todo = "give a role that may connect, postgresql://role@host/database"
    elif isinstance(error, asyncpg.InsufficientPrivilegeError):
        todo = "make the role the owner of the database, or grant it that"
    return f"{error}: {todo}"

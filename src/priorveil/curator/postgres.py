"""The store for heavy load: PostgreSQL, which any number of curator processes may write to at once.

One connection writes reports, a pool does everything else. A lost connection is replaced and its transaction is
sent again; reports that were stored after all are recognised by their ids and not counted twice.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import numpy as np

from priorveil.curator.settings import DEFAULTS, DatabaseLimits
from priorveil.curator.store import (
    FORM_NUMBERS,
    NO_CAMPAIGN,
    CellCounts,
    Group,
    Statements,
    Store,
    StoreFull,
    Unavailable,
    cells_as_json,
    count_cells,
)
from priorveil.errors import PriorveilError, needs_extra

with needs_extra("postgres"):
    import asyncpg

T = TypeVar("T")

_INSERT = Path(__file__).with_name("postgres.sql").read_text(encoding="utf-8")
_SCHEMA_LOCK, _WRITER_LOCK = 0x70760001, 0x70760002  # advisory locks of ours
_IN_USE = "a curator is writing to this database: stop it first"
_HAS_TABLES = "SELECT to_regclass('schema_version') IS NOT NULL"
_CAMPAIGN_LOCKS = 0x70760003  # and one for each campaign, by its number
_SHARE_CAMPAIGNS = (
    f"SELECT pg_advisory_xact_lock_shared({_CAMPAIGN_LOCKS}, number) FROM campaigns WHERE id = ANY($1)"
)

_SETTINGS = {
    "default_transaction_isolation": "read committed",  # a change waits for a concurrent one, it does not fail
    "idle_in_transaction_session_timeout": "5s",  # frees locks of a vanished host before our retries end
    "plan_cache_mode": "force_custom_plan",  # a plan that was made for an empty table is slow once it has rows
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
}
_MIGRATION_SECONDS = 86_400.0  # for one step of a migration of large tables
_CLOSE_SECONDS = 5.0  # for work under way to end
_READ_SECONDS = 2.0  # in which a lost connection should come back for a request that only reads
_LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a query between the server's last message and its closing of the connection
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby: the next connection may find the primary
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
)


class PostgresStore(Store):
    """A store in a PostgreSQL database.

    Without `create` it must have the tables already, and without `migrate` they must have the newest schema.
    """

    campaign_lock = f"SELECT pg_advisory_xact_lock({_CAMPAIGN_LOCKS}, $1)"

    def __init__(
        self,
        url: str,
        *,
        create: bool = True,
        migrate: bool = False,
        limits: DatabaseLimits = DEFAULTS.database,
    ) -> None:
        dialect = {
            "bytes": "bytea",
            "number": "integer GENERATED ALWAYS AS IDENTITY",
            "json_each": "json_each_text",
        }
        # Cells change all the time, and a new version stays on its page.
        super().__init__(url, create, options="", cell_options="WITH (fillfactor = 50)", **dialect)
        self._migrate, self._patience = migrate, limits.retry_seconds
        self._connections = limits.connections
        seconds = {"lock_timeout": limits.lock_seconds, "statement_timeout": limits.statement_seconds}
        timeouts = {name: f"{1000 * limit:.0f}ms" for name, limit in seconds.items()}
        # The server ends a slow statement; the client's own limit is for a server that is silent.
        self._options: dict[str, Any] = {
            "command_timeout": limits.statement_seconds + 10,
            "server_settings": _SETTINGS | timeouts,
        }
        self._pool: Any = None
        self._writer: Any = None
        self._writing = asyncio.Lock()

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and make the tables that are missing."""
        with self._opening_errors():
            self._pool = await asyncpg.create_pool(
                self._address, min_size=0, max_size=self._connections, **self._options
            )
            async with self._pool.acquire() as db, db.transaction():
                await self._prepare_schema(db)

    @contextmanager
    def _opening_errors(self) -> Iterator[None]:
        """Translate errors of a first connection into ours."""
        try:
            yield
        except PriorveilError:
            raise
        except (ValueError, asyncpg.ClientConfigurationError):
            # Not chained: the original error would show the address with its password.
            raise self._invalid("give postgresql://user@host:port/database") from None
        except _LOST as error:
            raise _unavailable(error) from error
        except asyncpg.PostgresError as error:
            raise self._invalid(_advice(error, self._address)) from error

    async def _prepare_schema(self, db: Any) -> None:
        """Make the tables, one process at a time. Where they exist, no right to make tables is needed."""
        await db.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        if self._create:
            await db.execute("SELECT pg_advisory_xact_lock($1)", _SCHEMA_LOCK, timeout=_MIGRATION_SECONDS)
        has_tables = await db.fetchval(_HAS_TABLES)
        version = (await db.fetchval("SELECT max(version) FROM schema_version") if has_tables else None) or 0
        self._check_version(version)
        if self._create:
            await _check_writable(db)
        if 0 < version < self._newest_version:
            await self._check_migration(db, version)
        if not has_tables:
            await db.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        for number in range(version, self._newest_version):
            await db.execute(self._migrations[number], timeout=_MIGRATION_SECONDS)
            await db.execute("INSERT INTO schema_version VALUES ($1)", number + 1)

    async def _check_migration(self, db: Any, version: int) -> None:
        """Refuse to bring the tables forward unasked, or while a curator writes to them."""
        if not self._migrate:
            problem = f"it has schema {version}, this priorveil uses {self._newest_version}"
            raise self._invalid(
                f"{problem}: stop all curators, run `priorveil backup`, then `priorveil serve --migrate`"
            )
        if not await db.fetchval("SELECT pg_try_advisory_xact_lock($1)", _WRITER_LOCK):
            raise Unavailable(_IN_USE)

    async def close(self) -> None:
        """Close all connections. Work that does not end soon is interrupted and raises `Unavailable`."""
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(self._pool.close(), self._close_writer())
        except TimeoutError:  # the pool has interrupted its own work
            if self._writer is not None:
                self._writer.terminate()

    async def _close_writer(self) -> None:
        async with self._writing:
            if self._writer is not None:
                await self._writer.close()

    async def back_up(self, file: BinaryIO) -> None:
        """Write a backup into an empty file with pg_dump; curators may go on."""
        with self._opening_errors():
            db = await asyncpg.connect(self._address, timeout=10)
            try:
                if not await db.fetchval(_HAS_TABLES):
                    self._check_version(0)
            finally:
                await db.close()
        await self._run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", output=file)

    async def restore(self, file: Path, replace: bool) -> None:
        """Fill the database from a backup with pg_restore, in one transaction.

        pg_restore replaces the tables that are in the backup. Those that an older backup does not have are dropped
        after it; a restore that was interrupted in between can be run again.
        """
        with self._opening_errors():
            db = await asyncpg.connect(self._address, timeout=10)
            try:
                has_tables = await db.fetchval(_HAS_TABLES)
                if has_tables and not replace:
                    raise self._holds_something()
                if not await db.fetchval("SELECT pg_try_advisory_lock($1)", _WRITER_LOCK):
                    raise Unavailable(_IN_USE)
                options = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
                await self._run(
                    "pg_restore", *options, *(["--clean", "--if-exists"] if has_tables else []), str(file)
                )
                version = await db.fetchval("SELECT max(version) FROM schema_version")
                for table in self._tables(self._newest_version) - self._tables(version):
                    await db.execute(f"DROP TABLE IF EXISTS {table}")
            finally:
                await db.close()

    def _tables(self, version: int) -> set[str]:
        """The tables that the migrations up to a version make."""
        return set(re.findall(r"CREATE TABLE (\w+)", " ".join(self._migrations[:version])))

    async def _run(self, program: str, *arguments: str, output: BinaryIO | None = None) -> None:
        """Run a program of PostgreSQL on this database.

        Others can see its arguments, so the password is not among them.
        """
        address, password = split_password(self._address)
        environment = os.environ | ({} if password is None else {"PGPASSWORD": password})
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                f"--dbname={address}",
                *arguments,
                env=environment,
                stdout=output or pipe,
                stderr=pipe,
            )
        except FileNotFoundError as error:
            problem = f"{program} was not found"
            raise Unavailable(f"{problem}: install the client programs of PostgreSQL") from error
        _, errors = await process.communicate()
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise Unavailable(f"{program} failed: {lines[0] if lines else process.returncode}")

    async def ready(self) -> None:
        """Store a report and roll it back."""

        async def probe() -> None:
            async with self._pool.acquire() as db:
                await _check_writable(db)
                change = db.transaction()
                await change.start()
                try:
                    await db.execute(f"SET LOCAL lock_timeout = '{_READ_SECONDS}s'")
                    for statement in self._probe():
                        await db.fetch(*statement)
                finally:
                    await change.rollback()

        await self._retry(probe, _READ_SECONDS)

    # -- reports ---------------------------------------------------------------------------------------------

    async def commit(self, groups: Sequence[Group]) -> Counter[str]:
        """Store and count the new reports in one durable transaction; return how many were new, by campaign."""
        return await self._retry(lambda: self._commit(groups))

    async def _commit(self, groups: Sequence[Group]) -> Counter[str]:
        async with self._write() as db:
            return await self._insert(db, groups)

    async def transact(self, statements: Callable[[], Statements[T]]) -> T:
        """Run a transaction; return its result when it is durable. What it computes is done in a thread."""

        async def run() -> T:
            async with self._write() as db:
                steps, rows = statements(), None
                while True:
                    statement, end = await asyncio.to_thread(_next_statement, steps, rows)
                    if statement is None:
                        result: T = end
                        return result
                    rows = await db.fetch(*statement)

        return await self._retry(run)

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[Any]:
        """A transaction on the connection that writes."""
        async with self._writing:
            db = await self._connect_writer()
            try:
                async with db.transaction():
                    yield db
            except PriorveilError:  # a refusal of ours: it is rolled back, and the connection stays sound
                raise
            except BaseException:  # also when cancelled: the state of the connection is unknown
                db.terminate()
                raise

    async def _connect_writer(self) -> Any:
        """The connection that writes. It holds a shared lock, by which `sole_writer` knows of it."""
        if self._writer is None or self._writer.is_closed():
            if self._pool.is_closing():
                raise asyncpg.InterfaceError("the store is closed")
            db = await asyncpg.connect(self._address, timeout=10, **self._options)
            try:
                await db.execute("SELECT pg_advisory_lock_shared($1)", _WRITER_LOCK)
            except BaseException:
                db.terminate()
                raise
            self._writer = db
        return self._writer

    async def _insert(self, db: Any, groups: Sequence[Group]) -> Counter[str]:
        """Insert the reports that are new, and count exactly those."""
        numbers: dict[tuple[str, str], list[int]] = {}
        by_form: dict[int, list[Group]] = {}
        numbered = []
        campaigns = sorted({group.campaign for group in groups})
        await db.execute(_SHARE_CAMPAIGNS, campaigns)  # none of them is deleted meanwhile
        for id in campaigns:
            numbers |= {(id, form): pair for form, *pair in await db.fetch(FORM_NUMBERS, id)}
        for group in groups:
            if (group.campaign, group.form.id) not in numbers:
                raise Unavailable(NO_CAMPAIGN)
            campaign, form = numbers[group.campaign, group.form.id]
            by_form.setdefault(form, []).append(group)
            numbered.append((campaign, form, group))
        inserted = await db.fetch(_INSERT, *await asyncio.to_thread(_row_columns, numbered))
        new: dict[int, list[bytes]] = {}
        for form, word in inserted:
            new.setdefault(form, []).append(word)
        cells = [(form, cells_as_json(await _count_new(by_form[form], new[form]))) for form in sorted(new)]
        await db.executemany(self.add_cells, cells)
        counts = Counter[str]()
        for form, its_words in new.items():
            counts[by_form[form][0].campaign] += len(its_words)
        return counts

    @asynccontextmanager
    async def sole_writer(self) -> AsyncIterator[None]:
        """Let nobody else store reports meanwhile; raises `Unavailable` if a curator is connected."""
        async with self._writing:
            db = await self._retry(self._connect_writer)
            if not await db.fetchval("SELECT pg_try_advisory_lock($1)", _WRITER_LOCK):
                raise Unavailable(_IN_USE)
            try:
                yield
            finally:
                unlock = "SELECT pg_advisory_unlock($1)"
                await self._retry(lambda: db.execute(unlock, _WRITER_LOCK), patience=0.0)

    # -- connections -----------------------------------------------------------------------------------------

    async def _fetch(self, statement: str, *arguments: object) -> list[Any]:
        return list(await self._retry(lambda: self._pool.fetch(statement, *arguments), _READ_SECONDS))

    async def _change(self, *statements: tuple[Any, ...]) -> list[list[Any]]:
        async def change() -> list[list[Any]]:
            async with self._pool.acquire() as db, db.transaction():
                return [await db.fetch(*statement) for statement in statements]

        return await self._retry(change)

    async def _retry(self, work: Callable[[], Awaitable[T]], patience: float | None = None) -> T:
        """Run `work`, and repeat it after a lost connection, for up to `patience` seconds."""
        deadline = time.monotonic() + (self._patience if patience is None else patience)
        pause = 0.05
        while True:
            try:
                return await work()
            except asyncpg.DiskFullError as error:
                raise StoreFull("the disk of the database is full: free some space") from error
            except _LOST as error:
                if self._pool.is_closing() or time.monotonic() + pause > deadline:
                    raise _unavailable(error) from error
            except asyncpg.PostgresError as error:  # only the administrator of the database can correct it
                raise _unavailable(error) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)


def _next_statement(steps: Statements[T], rows: list[Any] | None) -> tuple[tuple[Any, ...] | None, Any]:
    """The next statement of a transaction after these rows, or None and the result."""
    try:
        return steps.send(rows), None  # type: ignore[arg-type]
    except StopIteration as end:
        return None, end.value


def _row_columns(groups: Iterable[tuple[int, int, Group]]) -> list[list[Any]]:
    """The columns of rows to insert, from groups with the numbers of their campaigns and forms.

    Rows have the same order in all writers, to avoid deadlocks. Sorting many thousands takes long.
    """
    rows = [
        (campaign, *row, form)
        for campaign, form, group in groups
        for row in zip(*(column.tolist() for column in group.rows()), strict=True)
    ]
    rows.sort(key=itemgetter(0, 1))
    return list(map(list, zip(*rows, strict=True)))


async def _count_new(groups: Sequence[Group], new: Sequence[bytes]) -> CellCounts:
    """The cells of the tally of the new reports of one form, which came in these groups."""
    counted = [group.cells for group in groups if group.cells is not None]
    if len(counted) == len(groups) and len(new) == sum(group.size for group in groups):
        cells: CellCounts = np.sum(counted, axis=0)
        return cells
    return await asyncio.to_thread(count_cells, groups[0].form, b"".join(new))


def split_password(url: str) -> tuple[str, str | None]:
    """An address without its password, and the password.

    >>> split_password("postgresql://me:a%40b@host/db?sslmode=require")
    ('postgresql://me@host/db?sslmode=require', 'a@b')
    >>> split_password("postgresql://host/db?password=secret")
    ('postgresql://host/db', 'secret')
    """
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    name, colon, secret = user.partition(":")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    password = query.pop("password", unquote(secret) if colon else None)
    return urlunsplit(parts._replace(netloc=name + at + hosts, query=urlencode(query))), password


async def _check_writable(db: Any) -> None:
    if await db.fetchval("SHOW transaction_read_only") == "on":
        raise Unavailable("PostgreSQL: this database can only be read: give the one that can be written to")


def _unavailable(error: Exception) -> Unavailable:
    """What the database says, and what to do. Its details are left out: they may quote a row."""
    remedy = next(remedy for kind, remedy in _REMEDIES.items() if isinstance(error, kind))
    message = str(error).partition("\n")[0] or type(error).__name__
    return Unavailable(f"PostgreSQL: {message}: {remedy}")


def _advice(error: asyncpg.PostgresError, url: str) -> str:
    """What the database answered when it was opened, and what to do about it."""
    todo = next(advice for kind, advice in _ADVICE.items() if isinstance(error, kind))
    name = shlex.quote(unquote(urlsplit(url).path.lstrip("/")) or "NAME")
    return f"{error}: {todo.format(name=name)}"


_REMEDIES: dict[type[Exception], str] = {  # the first that fits
    asyncpg.InsufficientPrivilegeError: "grant the curator's role SELECT, INSERT, UPDATE and DELETE on all tables",
    asyncpg.LockNotAvailableError: "another session locks a table: find it in pg_locks, and end it",
    asyncpg.QueryCanceledError: "the database is slow, or statement_seconds is too short",
    asyncpg.ReadOnlySQLTransactionError: "give the address of the server that can be written to",
    asyncpg.DataCorruptedError: "stop the curator, restore a backup and run `priorveil recount`",
    asyncpg.IndexCorruptedError: "stop the curator, and run REINDEX or restore a backup",
    asyncpg.UndefinedTableError: "restore a backup",
    asyncpg.PostgresError: "look into the log of PostgreSQL",
    Exception: "start PostgreSQL, or look why it cannot be reached",
}
_ADVICE = {  # the first that fits
    asyncpg.InvalidCatalogNameError: "make it with: createdb {name}",
    asyncpg.InvalidPasswordError: "give the role's password, better in ~/.pgpass or PGPASSWORD than here",
    asyncpg.InvalidAuthorizationSpecificationError: "give a role that may connect, postgresql://role@host/database",
    asyncpg.InsufficientPrivilegeError: "make the role the owner of the database, or grant it that",
    asyncpg.PostgresError: "give a database of its own",
}

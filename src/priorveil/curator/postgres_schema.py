"""The schema of a PostgreSQL store, and how an older one is brought up to date."""

from __future__ import annotations

from typing import Any

from priorveil.curator import eras, runs
from priorveil.curator.store import Unavailable, refuse_schema

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
    eras.SCHEMA + runs.SCHEMA,
)

_PACKED = 50_000  # reports that are packed at once when an old schema is brought up to date


async def migrate(db: Any, store: str) -> None:
    """Bring the schema up to date, one process at a time. Where it is, no right to change it is needed."""
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1, $2)", eras.LOCKS, eras.SCHEMA_LOCK)
        version = await _version(db)
        refuse_schema(store, version, len(MIGRATIONS), create=True)
        if await db.fetchval("SHOW transaction_read_only") == "on":
            raise Unavailable(
                "PostgreSQL: this database can only be read: give the one that can be written to"
            )
        if not version:
            await db.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            await db.execute(script)
            if number == 2:
                await _pack(db)
            await db.execute("INSERT INTO schema_version VALUES ($1)", number)


async def require(db: Any, store: str) -> None:
    """Refuse a database without the schema that we know; change nothing."""
    refuse_schema(store, await _version(db), len(MIGRATIONS), create=False)


async def _version(db: Any) -> int:
    """The schema that the database has, 0 for none."""
    if await db.fetchval("SELECT to_regclass('schema_version') IS NULL"):
        return 0
    return await db.fetchval("SELECT max(version) FROM schema_version") or 0


async def _pack(db: Any) -> None:
    """Take the reports of the first schema, a row each, into the log, and end an era now and then."""
    put = "INSERT INTO log (era, plan, ids, words) SELECT max(number), $1, $2, $3 FROM eras"
    rows = "SELECT plan, id, report FROM reports"
    waiting: list[Any] = []
    await db.execute("LOCK TABLE reports IN ACCESS EXCLUSIVE MODE")  # an older process may still write to it

    async def flush() -> None:
        for plan in dict.fromkeys(row[0] for row in waiting):
            own = [row for row in waiting if row[0] == plan]
            await db.execute(put, plan, b"".join(row[1] for row in own), b"".join(row[2] for row in own))
        await eras.end(db, await eras.current(db))
        waiting.clear()

    async for row in db.cursor(rows, prefetch=1000):
        waiting.append(row)
        if len(waiting) == _PACKED:
            await flush()
    if waiting:
        await flush()
    await db.execute("DROP TABLE reports")

"""Which report ids a PostgreSQL database has seen, for ever, at a cost that hardly grows with their number.

A unique index over random ids slows down as it grows. Here it covers one *era*: some hundred thousand reports of
each writer. When an era ends its keys go into `runs`. Each writer holds a bitmap (a Bloom filter) of all eras that
have ended, and looks into the runs for the few keys that it suspects.

All of it is made from the log of reports. The index is therefore not logged by the database, and empty after a
crash: then it is filled again from the log before anything is written. An era has a mark, a random number made when
the one before it ended: who finds it knows that all before is as it was, also in a database that was restored or that
took over. While the index is in order it holds the mark of its era.

Writers share a lock while they write, so that an era ends when nobody writes to it.
"""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any, NamedTuple

import asyncpg
import numpy as np

from priorveil.collect.wire import ID_BYTES
from priorveil.curator import runs
from priorveil.curator.keys import Bitmap, Keys, Mask, as_keys, in_order, items

ERA = 1 << 17  # reports after which a writer ends the era

LOCKS = 0x7076  # the class of our advisory locks: shards from 0 on, and these
SCHEMA_LOCK, ERA_LOCK, MERGE_LOCK = -1, -2, -3

# A bitmap of 64 MiB, where one new key in 40,000 is suspected at ten million; more when it is made for more keys.
_LEAST_BITS, _MOST_BITS, _BITS_EACH = 29, 32, 16
_KEYS_AT_ONCE = 1 << 14
_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # the signature, no flags, no extension
_COPY_TAIL = b"\xff\xff"

SCHEMA = """
    CREATE TABLE eras (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mark uuid NOT NULL DEFAULT gen_random_uuid()
    );
    INSERT INTO eras DEFAULT VALUES;
    CREATE TABLE log (
        era integer NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY, plan integer NOT NULL,
        ids bytea NOT NULL, words bytea NOT NULL, PRIMARY KEY (era, number)
    );
    ALTER TABLE log ALTER ids SET STORAGE EXTERNAL;
    CREATE UNLOGGED TABLE recent (key uuid PRIMARY KEY) WITH (autovacuum_enabled = false);
"""
# For a connection that writes. Null: the era is not the one we think, or the index was lost. False: some keys may be
# there already. The failure is caught within the database, so that no key comes into the server's log.
SESSION = f"""
    CREATE TEMP TABLE incoming (key uuid) ON COMMIT DELETE ROWS;
    CREATE FUNCTION pg_temp.insert_all(known uuid, careful boolean) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock_shared({LOCKS}, {ERA_LOCK});
            IF NOT EXISTS (SELECT FROM recent WHERE key = known) THEN
                RETURN NULL;
            END IF;
            IF careful THEN
                RETURN false;
            END IF;
            BEGIN
                INSERT INTO recent (key) SELECT key FROM incoming;
            EXCEPTION WHEN unique_violation THEN
                RETURN false;
            END;
            RETURN true;
        END
    $$;
"""
_INSERT_NEW = "INSERT INTO recent (key) SELECT key FROM incoming ON CONFLICT DO NOTHING RETURNING key"
_CURRENT = "SELECT number, mark FROM eras ORDER BY number DESC LIMIT 1"
_INDEXED = f"SELECT number, mark, EXISTS (SELECT FROM recent WHERE key = mark) FROM ({_CURRENT}) AS newest"
_IDS = """
    SELECT campaigns.id, string_agg(ids, '') FROM log JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE era = $1 GROUP BY campaigns.id
"""
_NEXT = (
    "WITH next AS (INSERT INTO eras DEFAULT VALUES RETURNING mark) INSERT INTO recent SELECT mark FROM next"
)


class Era(NamedTuple):
    """One era: its number, and the mark that no other has."""

    number: int
    mark: bytes


NO_ERA = Era(0, b"")


class EraEnded(Exception):
    """The era that a writer knows is not the current one, or its index was lost: nothing was written."""


class Past:
    """What a writer knows of the eras that have ended."""

    def __init__(self) -> None:
        self._bitmap = Bitmap(_LEAST_BITS, 2)
        self._until = NO_ERA  # all before this one are in the bitmap

    async def follow(self, db: Any) -> Era:
        """The current era, its index in order, after all earlier ones have been read into the bitmap."""
        number, mark, indexed = await db.fetchrow(_INDEXED)
        while not indexed:
            await _refill(db)
            number, mark, indexed = await db.fetchrow(_INDEXED)
        every = "SELECT number, mark FROM eras WHERE number <= $1 ORDER BY number"
        eras = [Era(*row) for row in await db.fetch(every, number)]
        # If it is not among them nothing was read yet, or of another history: a backup, a standby that took over.
        if self._until not in eras:
            self._bitmap = Bitmap(_bits_for(await runs.count(db)), 2)
            self._until = eras[0]
        for era, following in pairwise(eras):
            if era.number >= self._until.number:
                self._bitmap.mark(await _keys_of(db, era.number))
                self._until = following
        return Era(number, mark)

    async def holds(self, db: Any, keys: Keys) -> Mask:
        """Which of the keys came in an era that has ended."""
        found = self._bitmap.may_hold(keys)
        found[found] = await runs.hold(db, keys[found])
        return found


def _bits_for(keys: int) -> int:
    """The bits of a bitmap, as a power of two.

    >>> _bits_for(0), _bits_for(100_000_000)
    (29, 31)
    """
    return min(max((_BITS_EACH * keys).bit_length(), _LEAST_BITS), _MOST_BITS)


async def insert(db: Any, era: Era, keys: Keys, careful: bool) -> Mask:
    """Put keys, which are in order and each there once, into the era's index; which of them are new.

    Within a transaction. A plain insert is twice as fast as one that looks out for keys that are there already, but
    fails as a whole if one is; `careful` does not try it. Raises `EraEnded`.
    """
    await db.copy_to_table("incoming", source=io.BytesIO(_copied(keys)), columns=["key"], format="binary")
    inserted = await db.fetchval("SELECT pg_temp.insert_all($1, $2)", era.mark, careful)
    if inserted is None:
        raise EraEnded
    if inserted:
        return np.ones(len(keys), dtype=bool)
    new = {row[0] for row in await db.fetch(_INSERT_NEW)}
    return np.array([item in new for item in items(keys.astype(">u8"))], dtype=bool)


async def current(db: Any) -> Era:
    """The era that reports are written to."""
    return Era(*await db.fetchrow(_CURRENT))


async def size(db: Any, era: Era) -> int:
    """How many reports an era has."""
    found = await db.fetchval("SELECT sum(length(ids)) FROM log WHERE era = $1", era.number)
    return int(found or 0) // ID_BYTES


async def end(db: Any, era: Era) -> None:
    """End an era and begin the next, unless somebody else did.

    Nothing is copied while the lock is held: a connection that hangs within a copy is not noticed by the database.
    """
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1, $2)", LOCKS, ERA_LOCK)
        if await current(db) == era:
            await runs.add(db, await _keys_of(db, era.number))
            await _empty(db)
            await db.execute(_NEXT)


async def _empty(db: Any) -> None:
    """Empty the index. While somebody reads it, a backup for instance, it takes up its space until the next time."""
    try:
        async with db.transaction():
            await db.execute("LOCK TABLE recent IN ACCESS EXCLUSIVE MODE NOWAIT")
            await db.execute("TRUNCATE recent")
    except asyncpg.LockNotAvailableError:
        await db.execute("DELETE FROM recent")


async def _refill(db: Any) -> None:
    """Make the index of the current era from the log: the database lost it in a crash, or never had it."""
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1, $2)", LOCKS, ERA_LOCK)
        number, mark, indexed = await db.fetchrow(_INDEXED)
        if indexed:
            return
        await _empty(db)
        keys = items(in_order(await _keys_of(db, number)).T.astype(">u8"))
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            add = "INSERT INTO recent SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING"
            await db.execute(add, keys[start : start + _KEYS_AT_ONCE])
        await db.execute("INSERT INTO recent VALUES ($1)", mark)


async def _keys_of(db: Any, era: int) -> Keys:
    """The keys of all reports of an era, from the log."""
    parts = [as_keys(ids, campaign) for campaign, ids in await db.fetch(_IDS, era)]
    return np.concatenate(parts) if parts else np.zeros((0, 2), dtype=np.uint64)


def _copied(keys: Keys) -> bytes:
    """Keys in PostgreSQL's binary format: the number of columns, then the size and content of the only one."""
    rows = np.zeros(len(keys), dtype=[("columns", ">i2"), ("size", ">i4"), ("key", ">u8", 2)])
    rows["columns"], rows["size"], rows["key"] = 1, ID_BYTES, keys
    return _COPY_HEAD + rows.tobytes() + _COPY_TAIL


async def merge(db: Any) -> None:
    """Merge the runs that can be merged, unless another process is at it. The lock goes with the connection's reset."""
    if await db.fetchval("SELECT pg_try_advisory_lock($1, $2)", LOCKS, MERGE_LOCK):
        while await runs.merge(db):
            pass

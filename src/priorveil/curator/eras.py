"""Which report ids a PostgreSQL database has seen, for ever, at a cost that does not grow with their number.

A unique index over random ids slows down as it grows. Here it covers one *era*: a hundred thousand reports or
a few more, whoever wrote them. When an era ends its keys become a run: rows of neighbouring keys, packed. Runs are
merged in the background, so that their number grows with the logarithm of the number of keys only. Each writer
holds a bitmap (a Bloom filter) of all eras that have ended, and looks into the runs for the few keys it suspects.

All of it is made from the log of reports. The index is therefore not logged by the database, and empty after a
crash: then it is filled again from the log before anything is written. A mark, a random number, tells an era from
any other, also from one with its number in a database that was restored or took over.

Writers share a lock while they write, so that an era ends when nobody writes to it.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.curator.keys import Bitmap, Keys, Mask, as_keys, in_order, items

ERA = 1 << 17  # reports of one writer after which it ends the era
FAN = 8  # runs of one size that are merged into one of the next
BITMAP_BITS = 29  # 64 MiB; one new key in 40,000 is suspected at ten million keys, one in 13 at a hundred

LOCKS = 0x7076  # the class of our advisory locks: shards from 0 on, and these
SCHEMA_LOCK, ERA_LOCK, MERGE_LOCK = -1, -2, -3

_BUCKET = 64  # keys in a row of a run, about: a kilobyte, which the database keeps in its place
_GROWTH = FAN.bit_length() - 1  # more bits for the buckets of a merged run
_LEAD = 31  # leading bits of a key, of which a run's buckets take the first few
_MERGED_AT_ONCE = 1 << 15  # keys
_ASKED_AT_ONCE = 512  # suspected keys; each may need a kilobyte of every run
_PAUSE = 0.02  # seconds between the blocks of a merge: who commits meanwhile comes first
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
    CREATE UNLOGGED TABLE recent_era (mark uuid NOT NULL);
    CREATE TABLE runs (number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, bits integer NOT NULL);
    CREATE TABLE run_keys (
        bits integer NOT NULL, bucket integer NOT NULL, run integer NOT NULL, keys bytea NOT NULL,
        PRIMARY KEY (bits, bucket, run)
    );
    ALTER TABLE run_keys ALTER keys SET STORAGE EXTERNAL;
"""
# For a connection that writes. Null: the era is not the one we think, or the index was lost. False: some keys may be
# there already. The failure is caught within the database, so that no key comes into the server's log.
SESSION = f"""
    CREATE TEMP TABLE incoming (key uuid) ON COMMIT DELETE ROWS;
    CREATE FUNCTION pg_temp.insert_all(known uuid, careful boolean) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock_shared({LOCKS}, {ERA_LOCK});
            IF NOT EXISTS (SELECT FROM recent_era WHERE mark = known) THEN
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
_CURRENT = """
    SELECT number, mark, EXISTS (SELECT FROM recent_era WHERE recent_era.mark = eras.mark)
    FROM eras ORDER BY number DESC LIMIT 1
"""
_IDS = """
    SELECT campaigns.id, string_agg(ids, '') FROM log JOIN plans ON plans.number = plan
    JOIN campaigns ON campaigns.number = plans.campaign WHERE era = $1 GROUP BY campaigns.id
"""
_NEXT = """
    TRUNCATE recent, recent_era;
    WITH next AS (INSERT INTO eras DEFAULT VALUES RETURNING mark) INSERT INTO recent_era SELECT mark FROM next
"""
_BUCKETS = f"""
    WITH asked AS (
        SELECT DISTINCT bits, lead >> ({_LEAD} - bits) AS bucket
        FROM unnest($1::integer[]) AS lead CROSS JOIN (SELECT DISTINCT bits FROM runs) AS levels
    )
    SELECT keys FROM asked JOIN run_keys USING (bits, bucket)
"""
_BLOCK = "SELECT keys FROM run_keys WHERE bits = $1 AND bucket >= $2 AND bucket < $3 AND run = ANY ($4)"


class Era(NamedTuple):
    """One era: its number, and the mark that no other has."""

    number: int
    mark: bytes


class EraEnded(Exception):
    """The era that a writer knows is not the current one, or its index was lost: nothing was written."""


class Past:
    """What a writer knows of the eras that have ended."""

    def __init__(self) -> None:
        self._bitmap = Bitmap(BITMAP_BITS, 2)
        self._last = Era(0, b"")

    async def follow(self, db: Any) -> Era:
        """The current era, its index in order, after all earlier ones have been read into the bitmap."""
        number, mark, indexed = await db.fetchrow(_CURRENT)
        while not indexed:
            await _refill(db)
            number, mark, indexed = await db.fetchrow(_CURRENT)
        ended = [Era(*row) for row in await db.fetch("SELECT number, mark FROM eras ORDER BY number")]
        if self._last.number and self._last not in ended:  # another history: a backup, or a standby took over
            self._bitmap, self._last = Bitmap(BITMAP_BITS, 2), Era(0, b"")
        for era in ended:
            if self._last.number < era.number < number:
                keys = await _keys_of(db, era.number)
                await asyncio.to_thread(self._bitmap.mark, keys)
                self._last = era
        return Era(number, mark)

    async def holds(self, db: Any, keys: Keys) -> Mask:
        """Which of the keys came in an era that has ended."""
        found = self._bitmap.may_hold(keys)
        suspects = np.flatnonzero(found)
        for start in range(0, suspects.size, _ASKED_AT_ONCE):
            part = suspects[start : start + _ASKED_AT_ONCE]
            found[part] = await _in_runs(db, keys[part])
        return found


# -- one era ---------------------------------------------------------------------------------------------------


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
    return Era(*(await db.fetchrow(_CURRENT))[:2])


async def size(db: Any, era: Era) -> int:
    """How many reports an era has."""
    found = await db.fetchval("SELECT sum(length(ids)) FROM log WHERE era = $1", era.number)
    return int(found or 0) // 16


async def end(db: Any, era: Era) -> None:
    """End an era and begin the next, unless somebody else just did."""
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1, $2)", LOCKS, ERA_LOCK)
        if await current(db) == era:
            await _add_run(db, await _keys_of(db, era.number))
            await db.execute(_NEXT)


async def _refill(db: Any) -> None:
    """Make the index of the current era from the log: the database lost it in a crash, or never had it."""
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1, $2)", LOCKS, ERA_LOCK)
        number, mark, indexed = await db.fetchrow(_CURRENT)
        if indexed:
            return
        await db.execute("TRUNCATE recent, recent_era")
        keys = in_order(await _keys_of(db, number)).T
        await db.copy_to_table("recent", source=io.BytesIO(_copied(keys)), columns=["key"], format="binary")
        await db.execute("INSERT INTO recent_era VALUES ($1)", mark)


async def _keys_of(db: Any, era: int) -> Keys:
    """The keys of all reports of an era, from the log."""
    parts = [as_keys(ids, campaign) for campaign, ids in await db.fetch(_IDS, era)]
    return np.concatenate(parts) if parts else np.zeros((0, 2), dtype=np.uint64)


def _copied(keys: Keys) -> bytes:
    """Keys in PostgreSQL's binary format: the number of columns, then the size and content of the only one."""
    rows = np.zeros(len(keys), dtype=[("columns", ">i2"), ("size", ">i4"), ("key", ">u8", 2)])
    rows["columns"], rows["size"], rows["key"] = 1, 16, keys
    return _COPY_HEAD + rows.tobytes() + _COPY_TAIL


# -- runs ------------------------------------------------------------------------------------------------------


async def _add_run(db: Any, keys: Keys) -> None:
    """Keep keys as a run of their own, in as many buckets as suits their number."""
    bits = min(max(round(np.log2(max(len(keys), 1) / _BUCKET)), 0), _LEAD)
    run = await db.fetchval("INSERT INTO runs (bits) VALUES ($1) RETURNING number", bits)
    await _add_buckets(db, bits, run, await asyncio.to_thread(in_order, keys))


async def _add_buckets(db: Any, bits: int, run: int, ordered: Keys) -> None:
    rows = [(bits, bucket, run, keys) for bucket, keys in _buckets(ordered, bits)]
    await db.copy_records_to_table("run_keys", records=rows, columns=["bits", "bucket", "run", "keys"])


def _buckets(ordered: Keys, bits: int) -> Iterator[tuple[int, bytes]]:
    """Keys, given as two rows in order, by their leading bits: packed, those of a bucket together."""
    packed = ordered.T.astype(">u8")
    buckets = _leads(ordered[0]) >> (_LEAD - bits)
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    for start, stop in pairwise([*starts.tolist(), len(packed)]):
        yield int(buckets[start]), packed[start:stop].tobytes()


def _leads(high: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (high >> np.uint64(64 - _LEAD)).astype(np.int64)


async def _in_runs(db: Any, keys: Keys) -> Mask:
    """Which of the keys are in a run, found in the rows where they would be."""
    rows = await db.fetch(_BUCKETS, _leads(keys[:, 0]).tolist())
    near = _unpacked(row[0] for row in rows)
    asked = np.sort(keys[:, 0])
    near = near[asked[np.searchsorted(asked, near[:, 0]).clip(max=asked.size - 1)] == near[:, 0]]
    there = set(items(near))  # ids are random: hardly any but the ones looked for
    return np.array([item in there for item in items(keys)], dtype=bool)


def _unpacked(parts: Iterator[bytes]) -> Keys:
    return np.frombuffer(b"".join(parts), dtype=">u8").astype(np.uint64).reshape(-1, 2)


async def merge(db: Any) -> bool:
    """Put one run in the place of several of one size; False if there are too few, or somebody else is at it."""
    async with db.transaction():
        if not await db.fetchval("SELECT pg_try_advisory_xact_lock($1, $2)", LOCKS, MERGE_LOCK):
            return False
        enough = (
            "SELECT bits, array_agg(number) FROM runs GROUP BY 1 HAVING count(*) >= $1 ORDER BY 1 LIMIT 1"
        )
        found = await db.fetchrow(enough, FAN)
        if found is None or found[0] + _GROWTH > _LEAD:
            return False
        bits, parts = found
        run = await db.fetchval("INSERT INTO runs (bits) VALUES ($1) RETURNING number", bits + _GROWTH)
        step = max(1, _MERGED_AT_ONCE // (_BUCKET * len(parts)))
        for start in range(0, 1 << bits, step):
            rows = await db.fetch(_BLOCK, bits, start, start + step, parts)
            ordered = await asyncio.to_thread(in_order, _unpacked(row[0] for row in rows))
            await _add_buckets(db, bits + _GROWTH, run, ordered)
            await asyncio.sleep(_PAUSE)
        await db.execute("DELETE FROM run_keys WHERE bits = $1 AND run = ANY ($2)", bits, parts)
        await db.execute("DELETE FROM runs WHERE number = ANY ($1)", parts)
    return True

"""Ids on PostgreSQL, seen once for ever: eras that end, runs that are merged, an index that a crash empties."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from postgres_server import PostgresServer

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import words_per_report
from priorveil.curator import create_app, runs
from priorveil.curator.app import Curator
from priorveil.curator.batches import gathered
from priorveil.curator.keys import Bitmap, as_keys
from priorveil.curator.postgres import PostgresStore
from priorveil.curator.postgres_schema import MIGRATIONS
from priorveil.curator.sessions import ids_as_bytes
from priorveil.curator.store import Group, Unavailable, recounted

_numbers = itertools.count()


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(f"eras{next(_numbers)}")


@asynccontextmanager
async def opened(url: str, era: int, number: int = 1) -> AsyncIterator[list[PostgresStore]]:
    stores = [PostgresStore(url, era) for _ in range(number)]
    for store in stores:
        await store.open()
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


def some(campaign: Campaign, count: int, ids: bytes | None = None) -> Group:
    plan = campaign.plan_for(None)
    ids = os.urandom(16 * count) if ids is None else ids
    return Group(campaign.id, plan.id, plan.mechanism, ids, bytes(8 * count))


async def committed(store: PostgresStore, groups: list[Group]) -> int:
    return sum([await store.commit([group]) for group in groups])


async def reports(store: PostgresStore, campaign: Campaign) -> int:
    """How many reports there are, after a recount and a look at every id."""
    tallies = await store.tallies(campaign)
    assert await recounted(store, campaign) == tallies
    ids = b"".join([chunk.ids async for chunk in store.reports(campaign)])
    every = {ids[i : i + 16] for i in range(0, len(ids), 16)}
    assert len(every) == len(ids) // 16 == sum(t.reports for t in tallies.values())
    return len(every)


async def asked(url: str, question: str) -> Any:
    db = await asyncpg.connect(url)
    try:
        return await db.fetchval(question)
    finally:
        await db.close()


async def soon(right: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(200):
        if await right():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("not within ten seconds")


def test_ids_of_many_eras_are_found(url: str, campaign: Campaign) -> None:
    """Short eras, many merges, another process that starts later, everything sent again."""
    groups = [some(campaign, 100) for _ in range(80)]

    async def run() -> None:
        async with opened(url, 100) as [store]:
            await store.add_campaign(campaign)
            assert await committed(store, groups) == 8000
            assert await committed(store, groups) == 0
            assert await asked(url, "SELECT count(*) FROM eras") == 81

            async def merged() -> bool:
                return bool(
                    await asked(url, "SELECT count(*) < 24 AND max(size) > 2000 FROM runs WHERE whole")
                )

            await committed(store, [some(campaign, 100)])
            await soon(merged)
            assert await committed(store, groups) == 0
        async with opened(url, 100) as [store]:
            assert await committed(store, groups) == 0
            mixed = [some(campaign, 100, g.ids[:800] + os.urandom(800)) for g in groups[::8]]
            assert await committed(store, mixed) == 500
            assert await reports(store, campaign) == 8600

    asyncio.run(run())


def test_writers_end_eras_under_each_other(url: str, campaign: Campaign) -> None:
    """The same reports sent to three writers at once, in different orders, while eras end all the time."""
    groups = [some(campaign, 20) for _ in range(60)]

    async def run() -> None:
        async with opened(url, 50, 3) as stores:
            await stores[0].add_campaign(campaign)
            orders = (groups, groups[::-1], groups[30:] + groups[:30])
            counts = await asyncio.gather(*map(committed, stores, orders))
            assert sum(counts) == 1200 and min(counts) > 0
            assert await asked(url, "SELECT count(*) FROM eras") > 5
            assert await reports(stores[0], campaign) == 1200

    asyncio.run(run())


def test_the_index_that_a_crash_empties_is_made_again(campaign: Campaign) -> None:
    """The database does not log the index of the current era. Nobody may write before it is there again."""
    database = PostgresServer()
    url = database.url("crashed")
    groups = [some(campaign, 30) for _ in range(10)]

    async def run() -> None:
        async with opened(url, 200, 2) as stores:
            await stores[0].add_campaign(campaign)
            assert await committed(stores[0], groups) == 300
            assert await asked(url, "SELECT count(*) FROM recent") == 91, "two eras, the second is short"
            await asyncio.to_thread(database.restart)
            assert await asked(url, "SELECT count(*) FROM recent") == 0, "as PostgreSQL promises"
            assert await asyncio.gather(*(committed(store, groups) for store in stores)) == [0, 0]
            assert await reports(stores[1], campaign) == 300
            await asyncio.to_thread(database.stop, "fast")
            await asyncio.to_thread(database.start)
            assert await asked(url, "SELECT count(*) FROM recent") == 91, (
                "nothing is lost when it stops in order"
            )
            assert await committed(stores[0], groups) == 0

    try:
        asyncio.run(run())
    finally:
        database.remove()


class Standby:
    """A copy of a database that falls behind, and then takes its place."""

    def __init__(self, url: str) -> None:
        self.name, self.server = url.rpartition("/")[2], url.rpartition("/")[0] + "/postgres"

    async def copied(self) -> None:
        await self._without_connections(f"CREATE DATABASE {self.name}_standby TEMPLATE {self.name}")

    async def takes_over(self) -> None:
        await self._without_connections(f"ALTER DATABASE {self.name} RENAME TO {self.name}_lost")
        await self._without_connections(f"ALTER DATABASE {self.name}_standby RENAME TO {self.name}")

    async def _without_connections(self, statement: str) -> None:
        admin = await asyncpg.connect(self.server)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
        for _ in range(100):  # whoever was ended comes again
            await admin.fetch(end, self.name)
            with suppress(asyncpg.ObjectInUseError):
                await admin.execute(statement)
                break
        else:
            raise AssertionError("somebody is always connected")
        await admin.close()


@pytest.mark.parametrize("lost_first", [True, False])
@pytest.mark.parametrize("shared_reports", [60, 70, 75])
def test_a_database_with_another_history_is_read_anew(
    url: str, campaign: Campaign, shared_reports: int, lost_first: bool
) -> None:
    """A standby that was behind takes over: eras of the same numbers, with other reports; one of them half the same."""
    standby = Standby(url)
    shared = [some(campaign, 5) for _ in range(shared_reports // 5)]
    lost, instead = ([some(campaign, 10) for _ in range(6)] for _ in range(2))

    async def run() -> None:
        async with opened(url, 20) as [store]:
            await store.add_campaign(campaign)
            await committed(store, shared)
            await standby.copied()
            await committed(store, lost)
            await standby.takes_over()
            async with opened(url, 20) as [other]:
                assert await committed(other, [*instead, *shared]) == 60
            again = [*lost, *instead, *shared] if lost_first else [*instead, *shared, *lost]
            assert await committed(store, again) == 60, "the reports that were lost, and no other"
            assert await committed(store, again) == 0
            assert await reports(store, campaign) == shared_reports + 120

    asyncio.run(run())


def test_a_campaign_that_was_lost_gets_no_reports(url: str, campaign: Campaign, cohorts: Campaign) -> None:
    """The standby never had it; the number of its plan may now be another campaign's."""
    standby = Standby(url)

    async def run() -> None:
        async with opened(url, 20) as [store]:
            await standby.copied()
            await store.add_campaign(campaign)
            assert await committed(store, [some(campaign, 5)]) == 5
            await standby.takes_over()
            with pytest.raises(Unavailable, match="does not have the campaign"):
                await store.commit([some(campaign, 5)])
            await store.add_campaign(cohorts)
            await store.add_campaign(campaign)
            assert await committed(store, [some(campaign, 7)]) == 7
            assert await reports(store, campaign) == 7 and await reports(store, cohorts) == 0

    asyncio.run(run())


def test_a_service_forgets_a_campaign_that_was_lost(url: str, campaign: Campaign, cohorts: Campaign) -> None:
    """So that nothing more is written for it, and what others send in the meantime does not fail with it."""
    standby = Standby(url)

    async def run() -> None:
        store = PostgresStore(url)
        app = create_app(store)
        assert isinstance(app, Curator)
        async with app.lifespan():
            await store.add_campaign(campaign)
            await standby.copied()
            await store.add_campaign(cohorts)
            assert await app.service.find(campaign.id) and await app.service.find(cohorts.id)
            await standby.takes_over()

            async def forgotten() -> bool:
                return list(app.service.live) == [campaign.id]

            await soon(forgotten)
            assert await app.service.find(cohorts.id) is None
            assert await store.commit([some(campaign, 3)]) == 3

    asyncio.run(run())


def test_a_commit_that_is_cancelled_breaks_nothing(url: str, campaign: Campaign) -> None:
    """At any moment: it is stored or not, and what is acknowledged afterwards is there for others to see."""
    chance = random.Random(7)

    async def run() -> None:
        async with opened(url, 60) as [store]:
            await store.add_campaign(campaign)
            sent = 0
            for _ in range(40):
                group = some(campaign, 10)
                task = asyncio.create_task(store.commit([group]))
                await asyncio.sleep(chance.uniform(0, 0.02))
                task.cancel()
                await asyncio.wait([task])
                assert await store.commit([group]) in (0, 10)
                sent += 10
            assert await asked(url, "SELECT sum(length(ids)) / 16 FROM log") == sent
            assert await reports(store, campaign) == sent

    asyncio.run(run())


def test_nobody_waits_for_a_backup(url: str, campaign: Campaign) -> None:
    """It reads the index, which then cannot be cut off but only be deleted from: eras end all the same."""

    async def run() -> None:
        async with opened(url, 20, 2) as [store, other]:
            await store.add_campaign(campaign)
            groups = [some(campaign, 10) for _ in range(14)]
            await store.commit([groups[0]])
            backup = await asyncpg.connect(url)
            reading = backup.transaction()
            await reading.start()
            await backup.execute("LOCK TABLE recent IN ACCESS SHARE MODE")
            for writer, group in zip((store, other) * 5, groups[1:], strict=False):
                assert await asyncio.wait_for(writer.commit([group]), 5) == 10
            assert await asked(url, "SELECT count(*) FROM eras") > 3
            await reading.rollback()
            assert await committed(other, groups) == 30
            assert await committed(store, groups) == 0
            assert await reports(store, campaign) == 140
            await backup.close()

    asyncio.run(run())


async def first_schema(url: str, campaign: Campaign | None = None) -> Any:
    """A connection to a database as the first version made it, with a campaign of one plan."""
    db = await asyncpg.connect(url)
    await db.execute(MIGRATIONS[0])
    await db.execute("CREATE TABLE schema_version (version integer NOT NULL)")
    await db.execute("INSERT INTO schema_version VALUES (1)")
    if campaign is not None:
        await db.execute(
            "INSERT INTO campaigns (id, document) VALUES ($1, $2)", campaign.id, campaign.to_json()
        )
        await db.execute("INSERT INTO plans (campaign, id) VALUES (1, $1)", campaign.plan_for(None).id)
    return db


def test_reports_of_the_first_schema_are_packed(url: str, cohorts: Campaign) -> None:
    """A row for each report, as the first version had them: counted as before, and known when they come again."""
    groups = []
    for number, name in enumerate(cohorts.cohorts):
        plan = cohorts.plan_for(name)
        words = bytes(8 * words_per_report(plan.mechanism) * (number + 3))
        groups.append(Group(cohorts.id, plan.id, plan.mechanism, os.urandom(16 * (number + 3)), words))

    async def run() -> None:
        db = await first_schema(url)
        add = "INSERT INTO campaigns (id, document) VALUES ($1, $2) RETURNING number"
        campaign = await db.fetchval(add, cohorts.id, cohorts.to_json())
        for group in groups:
            add = "INSERT INTO plans (campaign, id) VALUES ($1, $2) RETURNING number"
            plan = await db.fetchval(add, campaign, group.plan)
            size = len(group.words) // (len(group.ids) // 16)
            for i in range(len(group.ids) // 16):
                report = (
                    uuid.UUID(bytes=group.ids[16 * i : 16 * i + 16]),
                    group.words[size * i : size * i + size],
                )
                await db.execute("INSERT INTO reports VALUES ($1, $2, $3, $4)", *report, campaign, plan)
        await db.close()
        async with opened(url, 1000) as [store]:
            for plan_id, tally in (await recounted(store, cohorts)).items():
                assert tally.reports == sum(len(g.ids) // 16 for g in groups if g.plan == plan_id)
            assert await store.commit(groups) == 0
        async with opened(url, 1000) as [store]:
            assert await store.commit(groups) == 0
        assert await asked(url, "SELECT to_regclass('reports')") is None

    asyncio.run(run())


def test_the_first_schema_is_packed_in_pieces(
    url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    from priorveil.curator import postgres_schema

    monkeypatch.setattr(postgres_schema, "_PACKED", 7)

    async def run() -> None:
        db = await first_schema(url)
        await db.execute(
            "INSERT INTO campaigns (id, document) VALUES ($1, $2)", campaign.id, campaign.to_json()
        )
        await db.execute("INSERT INTO plans (campaign, id) VALUES (1, $1)", campaign.plan_for(None).id)
        await db.execute(
            "INSERT INTO reports SELECT gen_random_uuid(), $1, 1, 1 FROM generate_series(1, 24)", bytes(8)
        )
        known = b"".join(row[0].bytes for row in await db.fetch("SELECT id FROM reports"))
        await db.close()
        async with opened(url, 1000) as [store]:
            assert await store.commit([some(campaign, 24, known)]) == 0
            assert (await recounted(store, campaign))[campaign.plan_for(None).id].reports == 24
        assert await asked(url, "SELECT count(*) FROM eras") == 5

    asyncio.run(run())


def test_an_older_process_that_still_writes_is_waited_for(url: str, campaign: Campaign) -> None:
    """What it commits while the schema is brought up to date is packed as well, also if snapshots last by default."""

    async def run() -> None:
        admin = await asyncpg.connect(url)
        lasting = "SET default_transaction_isolation = 'repeatable read'"
        await admin.execute(f"ALTER DATABASE {url.rpartition('/')[2]} {lasting}")
        await admin.close()
        old = await first_schema(url)
        await old.execute(
            "INSERT INTO campaigns (id, document) VALUES ($1, $2)", campaign.id, campaign.to_json()
        )
        await old.execute("INSERT INTO plans (campaign, id) VALUES (1, $1)", campaign.plan_for(None).id)
        writing = old.transaction()
        await writing.start()
        known = uuid.uuid4()
        await old.execute("INSERT INTO reports VALUES ($1, $2, 1, 1)", known, bytes(8))
        store = PostgresStore(url)
        opening = asyncio.create_task(store.open())
        await asyncio.sleep(0.3)
        assert not opening.done()
        await writing.commit()
        await opening
        assert await store.commit([some(campaign, 1, known.bytes)]) == 0
        await store.close()
        await old.close()

    asyncio.run(run())


def test_ids_chosen_badly_on_purpose(url: str, campaign: Campaign) -> None:
    """All of them neighbours: still exact."""
    mask = as_keys(bytes(16), campaign.id)[0].astype(">u8").tobytes()
    near = [bytes(a ^ b for a, b in zip(mask, bytes(14) + i.to_bytes(2), strict=True)) for i in range(600)]
    groups = [some(campaign, 20, b"".join(near[i : i + 20])) for i in range(0, 600, 20)]

    async def run() -> None:
        async with opened(url, 50) as [store]:
            await store.add_campaign(campaign)
            assert await committed(store, groups) == 600
            assert await store.commit([some(campaign, 600, b"".join(near))]) == 0
            assert await reports(store, campaign) == 600

    asyncio.run(run())


def test_the_same_id_twice_in_one_commit(url: str, cohorts: Campaign) -> None:
    """Under two plans of one campaign: the first counts. In two campaigns it is two ids."""
    one, two = (cohorts.plan_for(name) for name in ("columns", "arc"))
    ids = os.urandom(32)
    groups = [Group(cohorts.id, p.id, p.mechanism, ids, bytes(16)) for p in (one, two)]

    async def run() -> None:
        async with opened(url, 50) as [store]:
            await store.add_campaign(cohorts)
            assert await store.commit(groups) == 2
            tallies = await store.tallies(cohorts)
            assert (tallies[one.id].reports, tallies[two.id].reports) == (2, 0)

    asyncio.run(run())
    elsewhere = groups[0]._replace(campaign="0" * 64)
    assert len(gathered([groups[0], elsewhere]).keys) == 4


def test_who_asks_whether_it_is_ready_shares_the_connection(url: str, campaign: Campaign) -> None:
    async def run() -> None:
        async with opened(url, 50, 2) as [store, other]:
            await store.add_campaign(campaign)
            await asyncio.gather(store.ready(), store.commit([some(campaign, 3)]), store.ready())
            await other.ready()
            assert [made._session and made._session.shard for made in (store, other)] == [0, 1]
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"
            assert (
                await asked(
                    url,
                    f"{held} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                )
                == 2
            )

    asyncio.run(run())


def test_a_merge_that_fails_is_told_and_tried_again(
    url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with opened(url, 10) as [store]:
            await store.add_campaign(campaign)
            with monkeypatch.context() as broken:
                broken.setattr(
                    runs,
                    "_LAST_BLOCK",
                    "SELECT $2::uuid, 1 / (count(*) - count(*)) FROM unnest($1::integer[])",
                )
                await committed(store, [some(campaign, 10) for _ in range(10)])

                async def told() -> bool:
                    return "stay unmerged" in caplog.text

                await soon(told)
            await committed(store, [some(campaign, 10) for _ in range(2)])

            async def merged() -> bool:
                return bool(await asked(url, "SELECT count(*) < 8 FROM runs WHERE whole"))

            await soon(merged)
            assert await reports(store, campaign) == 120

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())


def test_what_one_merge_does_is_all_or_nothing(url: str, campaign: Campaign) -> None:
    """A merge is given up when the store closes; the runs are as they were."""
    groups = [some(campaign, 10) for _ in range(9)]

    async def run() -> None:
        async with opened(url, 10) as [store]:
            await store.add_campaign(campaign)
            await committed(store, groups[:8])
            await committed(store, groups[8:])  # ends the eighth era, and a merge begins
            assert store._merging is not None and not store._merging.done()
        assert await asked(url, "SELECT count(*) FROM runs WHERE whole") == 8
        async with opened(url, 1000) as [store]:
            assert await committed(store, groups) == 0

    asyncio.run(run())


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=50))
def test_a_bitmap_never_forgets(chosen: list[tuple[int, int]]) -> None:
    keys = np.array(chosen, dtype=np.uint64)
    for fields in (1, 2):
        bitmap = Bitmap(12, fields)
        bitmap.mark(keys)
        assert bitmap.may_hold(keys).all()
        assert not Bitmap(12, fields).may_hold(keys).any()


def test_a_bitmap_seldom_suspects_the_innocent() -> None:
    rng = np.random.default_rng(3)
    bitmap = Bitmap(20, 2)
    bitmap.mark(rng.integers(0, 2**64, (20_000, 2), dtype=np.uint64))
    share = bitmap.may_hold(rng.integers(0, 2**64, (200_000, 2), dtype=np.uint64)).mean()
    expected = (1 - np.exp(-4 * 20_000 / 2**20)) ** 4
    assert 0.5 * expected < share < 2 * expected


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.integers(0, 60))
def test_keys_before_another(highs: list[int], bound: int) -> None:
    keys = np.array(sorted((high // 8, high % 8) for high in highs), dtype=np.uint64)
    limit = np.array([bound // 8, bound % 8], dtype=np.uint64)
    assert runs._before(keys, limit) == sum((int(a), int(b)) < (bound // 8, bound % 8) for a, b in keys)


@pytest.mark.parametrize(("row", "at_once"), [(1, 1), (3, 2), (64, 512)])
def test_merged_runs_hold_every_key_in_order(
    url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, row: int, at_once: int
) -> None:
    """Rows and blocks of any size; keys that agree in their first half; runs whose keys lie close together."""
    monkeypatch.setattr(runs, "_ROW", row)
    monkeypatch.setattr(runs, "_ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(runs, "_PAUSE", 0.0)
    rng = np.random.default_rng(row)
    wide = rng.integers(0, 2**63, (90, 2), dtype=np.uint64)
    close = np.stack([np.repeat(np.uint64(2**62), 70), rng.permutation(70).astype(np.uint64)], axis=1)

    async def run() -> None:
        async with opened(url, 20):
            pass
        db = await asyncpg.connect(url)
        await ids_as_bytes(db)
        for part in np.split(np.concatenate([wide, close]), 8):
            await runs.add(db, part)
        assert await runs.merge(db) and not await runs.merge(db)
        stored = b"".join(r[0] for r in await db.fetch("SELECT keys FROM run_keys ORDER BY run, first"))
        every = np.concatenate([wide, close])
        order = np.lexsort((every[:, 1], every[:, 0]))
        assert stored == every[order].astype(">u8").tobytes()
        assert (await runs.hold(db, every)).all() and await runs.count(db) == 160
        assert not (await runs.hold(db, every + np.uint64(100))).any()
        await db.close()

    asyncio.run(run())

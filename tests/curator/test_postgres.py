"""PostgreSQL: several writers, lost connections, standbys, missing rights, and what its log must not hold."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from patience import PATIENCE, until
from postgres_server import PostgresServer
from priorveil.curator import create_app
from priorveil.curator.admission import withdraw
from priorveil.curator.app import Curator
from priorveil.curator.maintenance import recount_store
from priorveil.curator.postgres import PostgresStore
from priorveil.curator.settings import DatabaseLimits
from priorveil.curator.store import Ended, Group, StillOpen, Unavailable
from priorveil.errors import InvalidInput
from priorveil.questions.campaign import Campaign
from refusals import raises

_numbers = itertools.count()


@asynccontextmanager
async def stores(
    url: str, campaign: Campaign, number: int = 1, port: int | None = None
) -> AsyncIterator[list[PostgresStore]]:
    through = url if port is None else re.sub(r":\d+/", f":{port}/", url)
    made = [PostgresStore(through) for _ in range(number)]
    for store in made:
        await store.open()
    await made[0].add_campaign(campaign)
    yield made
    for store in made:
        await store.close()


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(f"awkward{next(_numbers)}")


def some(campaign: Campaign, count: int, cohort: str | None = None) -> Group:
    return Group(campaign.id, campaign.form_for(cohort), os.urandom(16 * count), bytes(8 * count))


def elsewhere(url: str) -> str:
    return url.rpartition("/")[0] + "/postgres"


async def right(store: PostgresStore, campaign: Campaign, count: int) -> bool:
    tallies = await store.tallies(campaign)
    return tallies == await store.recount(campaign) and sum(t.reports for t in tallies.values()) == count


async def test_a_connection_ended_by_the_server_is_made_again(url: str, campaign: Campaign) -> None:
    """Also if the next commit comes between the server's last message and its hanging up."""
    async with stores(url, campaign) as (store,):
        admin = await asyncpg.connect(elsewhere(url))
        for _ in range(20):
            await store.commit([some(campaign, 1)])
            await admin.execute("SELECT pg_terminate_backend($1)", store._writer.get_server_pid())
            await asyncio.sleep(0)
            assert (await store.commit([some(campaign, 1)])).total() == 1
        assert await right(store, campaign, 40)
        await admin.close()


class Cable:
    """What lies between us and the database. It breaks when it sees a word; the far end does not notice."""

    def __init__(self, port: int) -> None:
        self.port, self.breaks_at = port, b""
        self.far: list[asyncio.StreamWriter] = []
        self.tasks: set[asyncio.Task[None]] = set()

    async def lay(self) -> int:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection("127.0.0.1", self.port)
        self.far.append(away)
        back = asyncio.create_task(self.carry(there, writer))
        self.tasks.add(back)
        while data := await reader.read(1 << 16):
            if self.breaks_at and self.breaks_at in data:
                self.breaks_at = b""
                writer.transport.abort()
                return
            away.write(data)
        away.close()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    async def remove(self) -> None:
        for end in self.far:
            end.transport.abort()
        for task in self.tasks:
            task.cancel()
        self.server.close()


async def test_a_transaction_that_lost_its_writer_does_not_hold_up_the_next(
    postgres: PostgresServer, url: str, campaign: Campaign
) -> None:
    cable = Cable(postgres.port)
    async with stores(url, campaign, port=await cable.lay()) as (store,):
        await store.commit([some(campaign, 1)])
        cable.breaks_at = b"COMMIT;"
        assert (await asyncio.wait_for(store.commit([some(campaign, 3)]), 30)).total() == 3
        assert await right(store, campaign, 4)
    await cable.remove()


async def test_the_log_of_the_database_holds_no_ids(
    postgres: PostgresServer, url: str, campaign: Campaign
) -> None:
    async with stores(url, campaign) as (store,):
        group = some(campaign, 5)
        assert [(await store.commit([group])).total() for _ in range(2)] == [5, 0]
        log = (postgres.data / "log").read_text()
        assert "duplicate key" not in log and not [i for i in range(5) if group.id_of(i) in log]


async def test_rows_are_sorted_beside_the_event_loop(
    url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, rows = set(), Group.rows

    def watched_rows(group: Group) -> Any:
        threads.add(threading.get_ident())
        return rows(group)

    monkeypatch.setattr(Group, "rows", watched_rows)
    async with stores(url, campaign) as (store,):
        await store.commit([some(campaign, 3)])
        assert threads and threading.get_ident() not in threads


async def test_a_refused_change_keeps_the_connection(url: str, campaign: Campaign) -> None:
    async with stores(url, campaign) as (store,):
        await store.commit([some(campaign, 1)])
        writer = store._writer.get_server_pid()
        tallies = await store.tallies(campaign)
        with raises(StillOpen):
            await store.publish(campaign, tallies, "{}", "2026-02-03T00:00:00Z", ended=False)
        assert await store.publish(campaign, tallies, "{}", "2026-02-03T00:00:00Z", ended=True)
        with raises(Ended):
            await withdraw(store, campaign, [bytes(16)])
        assert store._writer.get_server_pid() == writer


async def test_no_repair_begins_while_others_write(url: str, campaign: Campaign) -> None:
    async with stores(url, campaign, 3) as (one, two, idle):
        await one.commit([some(campaign, 2)])
        await two.commit([some(campaign, 10)])
        with raises(Unavailable, __cause__=None):  # our own check, before anything is counted
            await recount_store(url, repair=True)
        await two.commit([some(campaign, 1)])
        assert await right(idle, campaign, 13)


async def test_a_closing_is_noticed_after_a_time_as_a_standby(url: str, campaign: Campaign) -> None:
    name = url.rpartition("/")[2]
    store = PostgresStore(url)
    app = create_app(store)
    assert isinstance(app, Curator)
    admin = await asyncpg.connect(elsewhere(url))
    async with app.lifespan():
        await store.add_campaign(campaign)
        live = await app.service.campaigns.find(campaign.id)
        assert live is not None
        await admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        app.service._unsaved[campaign.id, "malformed"] += 1
        await asyncio.sleep(1.5)
        await admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        assert (await store.commit([some(campaign, 1)])).total() == 1
        other = PostgresStore(url)
        await other.open()
        await other.close_campaign(campaign.id, "2026-01-01T00:00:00Z")
        await other.close()
        await until(lambda: live.closed is not None, "the closing is noticed")
    await admin.close()


async def test_writers_with_the_same_ids_do_not_wait_for_each_other(url: str, cohorts: Campaign) -> None:
    """The same ids under two forms, exchanged between two writers: one order for all, so no deadlock."""

    def crossed(ids: list[bytes], flip: bool) -> list[Group]:
        forms = [cohorts.form_for("columns"), cohorts.form_for("arc")]
        parts = ids[::-1] if flip else ids
        return [
            Group(cohorts.id, form, part, bytes(len(part) // 2))
            for form, part in zip(forms, parts, strict=True)
        ]

    async with stores(url, cohorts, 2) as (one, two):
        for store in (one, two):
            await store.commit([some(cohorts, 1, "columns")])
        for _ in range(15):
            ids = [os.urandom(16 * 200), os.urandom(16 * 200)]
            counts = await asyncio.gather(one.commit(crossed(ids, False)), two.commit(crossed(ids, True)))
            assert sum(map(Counter.total, counts)) == 400
        assert await right(one, cohorts, 2 + 15 * 400)
        admin = await asyncpg.connect(url)
        await admin.execute("SELECT pg_stat_clear_snapshot()")
        told = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await admin.fetchval(told) == 0
        await admin.close()


async def asked(url: str, *statements: str) -> None:
    db = await asyncpg.connect(url)
    for statement in statements:
        await db.execute(statement)
    await db.close()


async def test_a_database_with_tables_of_others_is_refused(url: str) -> None:
    await asked(url, "CREATE TABLE campaigns (theirs text)")
    with raises(InvalidInput, argument="store", cause=asyncpg.DuplicateTableError):
        await PostgresStore(url).open()
    with raises(InvalidInput, argument="store", __cause__=None):
        await PostgresStore(url, create=False).open()


async def test_the_right_to_make_tables_is_needed_only_once(url: str, campaign: Campaign) -> None:
    async with stores(url, campaign) as (store,):
        await store.commit([some(campaign, 1)])
    await asked(
        url,
        "CREATE ROLE modest LOGIN",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO modest",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO modest",
    )
    async with stores(url.replace("postgres@", "modest@"), campaign) as (store,):
        assert (await store.commit([some(campaign, 2)])).total() == 2
        assert await right(store, campaign, 3)


async def test_a_database_that_can_only_be_read_is_counted_but_not_served(
    url: str, campaign: Campaign
) -> None:
    async with stores(url, campaign) as (store,):
        await store.commit([some(campaign, 3)])
    await asked(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on")
    with raises(Unavailable, __cause__=None):  # our own check
        await PostgresStore(url).open()
    reader = PostgresStore(url, create=False)
    await reader.open()
    assert await right(reader, campaign, 3)
    await reader.close()


async def test_a_role_that_was_locked_out_is_told_to_come_back(url: str, campaign: Campaign) -> None:
    """Whoever runs the database mends it, and it goes on: an answer of 503, and nothing is lost."""
    await asked(url, "CREATE ROLE locked LOGIN SUPERUSER")
    async with stores(url.replace("postgres@", "locked@"), campaign) as (store,):
        await store.commit([some(campaign, 1)])
        name = url.rpartition("/")[2]
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        await asked(elsewhere(url), "ALTER ROLE locked NOLOGIN", ended)
        with raises(Unavailable, cause=asyncpg.InvalidAuthorizationSpecificationError):
            await store.commit([some(campaign, 1)])
        await asked(elsewhere(url), "ALTER ROLE locked LOGIN")
        assert (await store.commit([some(campaign, 2)])).total() == 2
        assert await right(store, campaign, 3)


# -- several writers, and databases that lost something ------------------------------------------------------


async def committed(store: PostgresStore, groups: list[Group]) -> int:
    return sum([(await store.commit([group])).total() for group in groups])


async def test_the_same_reports_sent_to_three_writers_count_once(url: str, campaign: Campaign) -> None:
    """At the same time and in different orders."""
    groups = [some(campaign, 20) for _ in range(60)]
    everyone_wrote = asyncio.Barrier(3)  # or one that starts late would find that all is there

    async def commit_all(store: PostgresStore, groups: list[Group]) -> int:
        first = await committed(store, groups[:1])
        await everyone_wrote.wait()
        return first + await committed(store, groups[1:])

    async with stores(url, campaign, 3) as writers:
        for store in writers:  # connects
            await store.commit([some(campaign, 1)])
        orders = (groups, groups[::-1], groups[30:] + groups[:30])
        counts = await asyncio.gather(*map(commit_all, writers, orders))
        assert sum(counts) == 1200 and min(counts) >= 20
        assert await right(writers[0], campaign, 1203)


class Standby:
    """A copy of a database that falls behind, and then takes its place."""

    def __init__(self, url: str) -> None:
        self.name, self.server = url.rpartition("/")[2], elsewhere(url)

    async def copy(self) -> None:
        await self._without_connections(f"CREATE DATABASE {self.name}_standby TEMPLATE {self.name}")

    async def take_over(self) -> None:
        await self._without_connections(f"ALTER DATABASE {self.name} RENAME TO {self.name}_lost")
        await self._without_connections(f"ALTER DATABASE {self.name}_standby RENAME TO {self.name}")

    async def _without_connections(self, statement: str) -> None:
        admin = await asyncpg.connect(self.server)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
        for _ in range(100):  # a connection that was ended is made again
            await admin.fetch(end, self.name)
            with suppress(asyncpg.ObjectInUseError):
                await admin.execute(statement)
                break
        else:
            raise AssertionError("somebody is always connected")
        await admin.close()


@pytest.mark.parametrize("lost_first", [True, False])
async def test_reports_that_a_standby_had_lost_can_be_sent_again(
    url: str, campaign: Campaign, lost_first: bool
) -> None:
    """A standby that was behind takes over; another curator has written to it; everything is sent again."""
    standby = Standby(url)
    shared = [some(campaign, 5) for _ in range(12)]
    lost, instead = ([some(campaign, 10) for _ in range(6)] for _ in range(2))
    async with stores(url, campaign) as (store,):
        await committed(store, shared)
        await standby.copy()
        await committed(store, lost)
        await standby.take_over()
        async with stores(url, campaign) as (other,):
            assert await committed(other, [*instead, *shared]) == 60
        again = [*lost, *instead, *shared] if lost_first else [*instead, *shared, *lost]
        assert await committed(store, again) == 60, "the reports that were lost, and no other"
        assert await committed(store, again) == 0
        assert await right(store, campaign, 180)


async def test_a_campaign_that_was_lost_gets_no_reports(
    url: str, campaign: Campaign, cohorts: Campaign
) -> None:
    """The standby never had it; the number of its form may now belong to another campaign."""
    standby = Standby(url)
    store = PostgresStore(url)
    await store.open()
    await standby.copy()
    await store.add_campaign(campaign)
    assert (await store.commit([some(campaign, 5)])).total() == 5
    await standby.take_over()
    with raises(Unavailable, __cause__=None):  # our own check
        await store.commit([some(campaign, 5)])
    await store.add_campaign(cohorts)
    await store.add_campaign(campaign)
    assert (await store.commit([some(campaign, 7)])).total() == 7
    assert await right(store, campaign, 7) and await right(store, cohorts, 0)
    await store.close()


async def test_a_service_forgets_a_campaign_that_was_lost(
    url: str, campaign: Campaign, cohorts: Campaign
) -> None:
    """So that nothing more is written for it, and reports of other campaigns do not fail with it."""
    standby = Standby(url)
    store = PostgresStore(url)
    app = create_app(store)
    assert isinstance(app, Curator)
    async with app.lifespan():
        await store.add_campaign(campaign)
        await standby.copy()
        await store.add_campaign(cohorts)
        assert await app.service.campaigns.find(campaign.id) and await app.service.campaigns.find(cohorts.id)
        await standby.take_over()
        await until(
            lambda: list(app.service.campaigns.loaded.in_use) == [campaign.id],
            "the lost campaign is noticed",
        )
        assert await app.service.campaigns.find(cohorts.id) is None
        assert (await store.commit([some(campaign, 3)])).total() == 3


async def test_a_commit_that_is_cancelled_breaks_nothing(url: str, campaign: Campaign) -> None:
    """At any moment: it is stored or not, and what is acknowledged afterwards is there for others to see."""
    chance = random.Random(7)
    async with stores(url, campaign) as (store,):
        for _ in range(40):
            group = some(campaign, 10)
            task = asyncio.create_task(store.commit([group]))
            await asyncio.sleep(chance.uniform(0, 0.02))
            task.cancel()
            await asyncio.wait([task])
            assert (await store.commit([group])).total() in (0, 10)
        assert await right(store, campaign, 400)


async def test_a_store_closes_while_requests_wait_for_the_database(url: str, campaign: Campaign) -> None:
    """A stop that waited for them could take minutes; they end with an error, and nothing connects again."""
    patient = DatabaseLimits(lock_seconds=1e4, statement_seconds=1e4, retry_seconds=1e4)
    admin = await asyncpg.connect(url)
    store = PostgresStore(url, limits=patient)
    await store.open()
    await store.add_campaign(campaign)
    async with admin.transaction():
        await admin.execute("LOCK TABLE tallies, submissions")
        reading = asyncio.create_task(store.tallies(campaign))
        writing = asyncio.create_task(store.commit([some(campaign, 10)]))
        while await admin.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") < 2:
            await asyncio.sleep(0.02)
        await asyncio.wait_for(store.close(), PATIENCE)
        for task in (reading, writing):
            with raises(Unavailable):
                await asyncio.wait_for(task, PATIENCE)
        with raises(Unavailable):
            await store.commit([some(campaign, 10)])
    await admin.close()


async def test_nobody_waits_for_a_backup(url: str, campaign: Campaign) -> None:
    async with stores(url, campaign, 2) as (store, other):
        backup = await asyncpg.connect(url)
        reading = backup.transaction(isolation="repeatable_read")
        await reading.start()
        for table in ("campaigns", "forms", "submissions", "tallies", "refusals", "tokens"):
            await backup.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
        for writer in (store, other) * 5:
            assert (await asyncio.wait_for(writer.commit([some(campaign, 10)]), 5)).total() == 10
        await reading.rollback()
        await backup.close()
        assert await right(store, campaign, 100)


# -- sorted and partitioned tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [4, 0])
async def test_the_table_is_sorted_and_partitioned_as_documented(
    url: str, cohorts: Campaign, partitions: int
) -> None:
    """The SQL of the deployment page: afterwards everything is as before, but for the signs of the order of arrival."""
    page = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text()
    script = page.partition("```sql\n")[2].partition("```")[0]
    if not partitions:
        lines = [line for line in script.splitlines() if " PARTITION OF " not in line]
        script = "\n".join(lines).replace(" PARTITION BY HASH (report_id)", "")
    before = [[some(cohorts, 30, name) for name in ("columns", "arc")] for _ in range(4)]
    async with stores(url, cohorts) as (store,):
        for groups in before:
            assert (await store.commit(groups)).total() == 60
    db = await asyncpg.connect(url)
    assert await db.fetchval("SELECT count(DISTINCT xmin::text) FROM submissions") == 4
    await db.execute(script)
    assert await db.fetchval("SELECT count(DISTINCT xmin::text) FROM submissions") == 1
    found = await db.fetch("SELECT tableoid, report_id FROM submissions ORDER BY tableoid, ctid")
    assert found == sorted(found) and len({row[0] for row in found}) == max(partitions, 1)
    await db.close()
    async with stores(url, cohorts, 2) as (store, other):
        assert await right(store, cohorts, 240)
        assert [(await other.commit(groups)).total() for groups in before] == [0] * 4
        counts = await asyncio.gather(store.commit(before[0]), other.commit([some(cohorts, 50, "arc")]))
        assert [*map(Counter.total, counts)] == [0, 50] and await right(other, cohorts, 290)
        ids = [report[0] async for rows in store.reports(cohorts) for report in rows]
        assert ids == sorted(ids) and len(ids) == 290

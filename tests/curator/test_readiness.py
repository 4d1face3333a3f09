"""A store that fails is seen: `/readyz` says 503, the log has a line with advice, and no request hangs."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import asyncpg
import httpx
import pytest

from curator.test_api import path, reports
from local_server import running
from postgres_server import PostgresServer
from priorveil.curator.postgres import _SCHEMA_LOCK
from priorveil.curator.readiness import Readiness
from priorveil.curator.settings import DatabaseLimits
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import Store, Unavailable, open_store
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port

LIMITS = DatabaseLimits(statement_seconds=5, lock_seconds=0.5, retry_seconds=0.5, check_seconds=0.01)


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


# -- one probe for all who ask ------------------------------------------------------------------------------


async def test_a_result_is_shared_for_some_seconds() -> None:
    clock, outcomes, probes = Clock(), [None, Unavailable("gone"), None], 0

    async def probe() -> None:
        nonlocal probes
        await asyncio.sleep(0)
        outcome = outcomes[probes]
        probes += 1
        if outcome is not None:
            raise outcome

    async def states(readiness: Readiness) -> list[bool]:
        asked = await asyncio.gather(*[readiness.check() for _ in range(50)], return_exceptions=True)
        return sorted({answer is None for answer in asked})

    readiness = Readiness(probe, 5.0, clock)
    for now, ready, count in (
        (100, True, 1),
        (104.9, True, 1),
        (105, False, 2),
        (109, False, 2),
        (110, True, 3),
    ):
        clock.now = now
        assert await states(readiness) == [ready], now
        assert probes == count, now


async def test_who_leaves_does_not_end_the_probe_of_the_others() -> None:
    go, probes = asyncio.Event(), 0

    async def probe() -> None:
        nonlocal probes
        probes += 1
        await go.wait()

    readiness = Readiness(probe, 5.0, Clock())
    first, second = asyncio.create_task(readiness.check()), asyncio.create_task(readiness.check())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    go.set()
    assert await second is None and probes == 1


# -- stores that fail ---------------------------------------------------------------------------------------


async def upload(http: httpx.AsyncClient, campaign: Campaign) -> int:
    return (await http.post(path(campaign, "/reports"), json=reports(campaign, 1)[0])).status_code


async def is_ready(http: httpx.AsyncClient) -> int:
    await asyncio.sleep(2 * LIMITS.check_seconds)
    answer = await http.get("/readyz")
    assert answer.status_code == 200 or answer.headers["content-type"] == "application/problem+json"
    return answer.status_code


@asynccontextmanager
async def curator(url: str, campaign: Campaign) -> AsyncIterator[httpx.AsyncClient]:
    async with running(open_store(url, limits=LIMITS), campaign, database=LIMITS) as http:
        assert (await upload(http, campaign), await is_ready(http)) == (200, 200)
        yield http


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged about the store."""
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith("the store failed")]


def test_a_probe_leaves_nothing_behind(store_url: str, campaign: Campaign) -> None:
    async def run() -> list[object]:
        async with open_store(store_url) as store:
            await store.add_campaign(campaign)
            for _ in range(3):
                await store.ready()
            return [page async for page in store.reports(campaign)]

    assert asyncio.run(run()) == []
    if store_url.startswith("postgresql"):
        return
    with closing(sqlite3.connect(store_url)) as file:
        for table in ("submissions", "tallies"):
            assert file.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(("right", "table"), [("INSERT", "submissions"), ("UPDATE", "tallies")])
async def test_a_right_that_was_revoked(
    postgres: PostgresServer, campaign: Campaign, caplog: pytest.LogCaptureFixture, right: str, table: str
) -> None:
    name = f"revoked{free_port()}"
    owner = postgres.url(name)
    url = owner.replace("postgres@", f"{name}@")
    admin = await asyncpg.connect(owner)
    await admin.execute(f"CREATE ROLE {name} LOGIN; ALTER DATABASE {name} OWNER TO {name}")
    await admin.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
    async with curator(url, campaign) as http:
        await admin.execute(f"REVOKE {right} ON {table} FROM {name}")
        assert (await upload(http, campaign), await is_ready(http)) == (503, 503)
        assert await upload(http, campaign) == 503
        [line] = lines(caplog)
        assert f"permission denied for table {table}" in line and "grant" in line
        await admin.execute(f"GRANT {right} ON {table} TO {name}")
        assert (await is_ready(http), await upload(http, campaign)) == (200, 200)
    await admin.close()


@pytest.mark.parametrize("table", ["campaigns", "forms", "submissions", "tallies"])
async def test_a_table_that_is_locked(
    postgres: PostgresServer, campaign: Campaign, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    url = postgres.url(f"locked{free_port()}")
    admin = await asyncpg.connect(url)
    async with curator(url, campaign) as http:
        async with admin.transaction():
            await admin.execute(f"LOCK TABLE {table}")
            assert (await upload(http, campaign), await is_ready(http)) == (503, 503)
            [line] = lines(caplog)
            assert "lock" in line and "pg_locks" in line
            await admin.execute("LOCK TABLE tallies")
            estimates = await http.get(f"/v1/campaigns/{campaign.id}/estimates")
            assert estimates.status_code == 503
        assert (await is_ready(http), await upload(http, campaign)) == (200, 200)
    await admin.close()


async def test_a_statement_has_a_time_limit(postgres: PostgresServer) -> None:
    url = postgres.url(f"slow{free_port()}")
    limits = DatabaseLimits(statement_seconds=0.2, retry_seconds=0.1)
    async with open_store(url, limits=limits) as store:
        with pytest.raises(Unavailable):
            await store._fetch("SELECT pg_sleep(600)")


async def test_who_waits_for_a_migration_waits_longer_than_for_any_other_lock(
    postgres: PostgresServer,
) -> None:
    url = postgres.url(f"patient{free_port()}")
    admin = await asyncpg.connect(url)
    change = admin.transaction()
    await change.start()
    await admin.execute("SELECT pg_advisory_xact_lock($1)", _SCHEMA_LOCK)
    store = open_store(url, limits=DatabaseLimits(lock_seconds=0.01, statement_seconds=0.01))
    opening = asyncio.create_task(store.open())
    await asyncio.wait([opening], timeout=1.0)  # a hundred times the limits
    assert not opening.done()
    await change.rollback()
    await opening
    await store.close()
    await admin.close()


async def test_a_file_that_another_program_has_locked(
    tmp_path: Path, campaign: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    url = str(tmp_path / "reports.db")
    async with curator(url, campaign) as http:
        with closing(sqlite3.connect(url, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert (await is_ready(http), await upload(http, campaign)) == (503, 503)
        [line] = lines(caplog)
        assert "locked" in line
        assert (await is_ready(http), await upload(http, campaign)) == (200, 200)


@pytest.mark.parametrize("table", ["submissions", "tallies"])
async def test_pages_that_were_zeroed(
    tmp_path: Path, campaign: Campaign, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    url = str(tmp_path / "reports.db")
    async with curator(url, campaign):
        pass
    with closing(sqlite3.connect(url)) as file:
        find = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        page, size = (
            file.execute(find, [table]).fetchone()[0],
            file.execute("PRAGMA page_size").fetchone()[0],
        )
    with open(url, "r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(bytes(size))

    async with running(open_store(url, limits=LIMITS), database=LIMITS) as http:
        assert (await upload(http, campaign), await is_ready(http)) == (503, 503)
        assert await upload(http, campaign) == 503
        [line] = lines(caplog)
        assert "malformed" in line and "restore" in line


# -- what is logged -----------------------------------------------------------------------------------------


class Broken(SqliteStore):
    """A store whose transactions fail in a way that nobody thought of."""

    error: Callable[[], Exception] = RuntimeError

    async def commit(self, groups: object) -> Counter[str]:
        raise self.error()


def test_a_failure_of_any_kind_is_logged_once_and_then_at_intervals(
    tmp_path: Path, campaign: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    clock, store = Clock(), Broken(tmp_path / "a.db")

    async def run() -> None:
        async with running(store, campaign) as http:
            app = http.app  # type: ignore[attr-defined]
            app.service.failures.clock = clock
            for _ in range(3):
                assert await upload(http, campaign) == 503
            assert len(lines(caplog)) == 1 and "RuntimeError" in lines(caplog)[0]
            store.error = lambda: Unavailable("SQLite: something else")
            for _ in range(3):
                assert await upload(http, campaign) == 503
            assert len(lines(caplog)) == 2, "each kind"
            clock.now += 59
            assert await upload(http, campaign) == 503 and len(lines(caplog)) == 2
            clock.now += 1
            assert await upload(http, campaign) == 503 and len(lines(caplog)) == 3
            assert re.search(r"\b3 more\b", lines(caplog)[-1]), "those that were not logged are counted"

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())


def test_an_error_that_quotes_a_report_is_not_logged(
    tmp_path: Path, campaign: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    secret, store = os.urandom(16).hex(), Broken(tmp_path / "a.db")
    store.error = lambda: RuntimeError(f"Key (report_id)=({secret}) already exists")

    async def run(store: Store) -> None:
        async with running(store, campaign) as http:
            assert await upload(http, campaign) == 503

    asyncio.run(run(store))
    assert lines(caplog) and secret not in caplog.text

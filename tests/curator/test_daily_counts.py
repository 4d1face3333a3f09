"""Reports are counted by day, apart from the reports themselves."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from conftest import PRIOR
from curator.test_campaign_life import Curator, on
from local_server import HEADER, in_store, report, running, served
from patience import PATIENCE, wait_until
from postgres_server import PostgresServer
from priorveil.curator.maintenance import back_up_store, restore_store
from priorveil.curator.store import Store, Unavailable, open_store
from priorveil.device.wire import JSON
from priorveil.questions.campaign import Campaign, ask
from refusals import raises

EVENING = datetime(2026, 11, 17, 23, 59, 59, tzinfo=UTC)
MIDNIGHT = EVENING + timedelta(seconds=1)
FIRST, SECOND = "2026-11-17", "2026-11-18"
REFUSED = {"report_id": "0", "form": "", "report": ""}


async def by_day(curator: Curator) -> dict[str, int]:
    found: dict[str, int] = (await curator.http.get(f"{curator.place}/counters")).json()["by_day"]
    return found


async def upload_on_two_days(curator: Curator) -> None:
    """Three reports on the first day and two on the second, saved after each."""
    for now in [EVENING] * 3 + [MIDNIGHT] * 2:
        curator.set_clock(now)
        await curator.upload()
        await curator.service.refresh()


@pytest.mark.parametrize("limits", [{}, {"most_reports": 6}])
async def test_reports_are_counted_by_day(store_url: str, limits: dict[str, Any]) -> None:
    """A report that is sent again, or refused, is not counted."""
    async with on(store_url, **limits) as curator:
        assert await by_day(curator) == {}
        await upload_on_two_days(curator)
        await curator.http.post(f"{curator.place}/reports", json=REFUSED)
        known = os.urandom(16).hex()
        for _ in range(2):
            await curator.upload(known)
        assert await by_day(curator) == {FIRST: 3, SECOND: 3}, "also before it is saved"
        assert await curator.reason() == ("full" if limits else None)
        await curator.service.refresh()
        assert await by_day(curator) == {FIRST: 3, SECOND: 3 if limits else 4}


async def test_a_day_is_one_in_utc(store_url: str) -> None:
    async with on(store_url) as curator:
        curator.set_clock(datetime.fromisoformat("2026-11-17T23:30:00-05:00"))
        await curator.upload()
        assert await by_day(curator) == {SECOND: 1}


async def test_campaigns_are_counted_apart(store_url: str) -> None:
    """Although one transaction stores reports of several."""
    async with on(store_url) as curator:
        other = ask("Another?", PRIOR)
        await curator.service.store.add_campaign(other)
        second = Curator(curator.http, other)
        second.set_clock(EVENING)
        await asyncio.gather(*(each.upload() for each in (curator, second, second) * 4))
        for _ in range(2):
            assert (await by_day(curator), await by_day(second)) == ({FIRST: 4}, {FIRST: 8})
            await curator.service.refresh()


async def test_a_restart_keeps_them(store_url: str) -> None:
    """Stopping saves what was not yet saved."""
    for count in (1, 2):
        async with on(store_url) as curator:
            curator.set_clock(EVENING)
            await curator.upload()
            assert await by_day(curator) == {FIRST: count}


def test_a_killed_curator_loses_at_most_what_was_not_saved(
    store_url: str, tmp_path: Path, campaign: Campaign
) -> None:
    with served(store_url, tmp_path, campaign) as [server]:
        base = f"http://127.0.0.1:{server.port}/v1/campaigns/{campaign.id}"

        def upload() -> None:
            answer = httpx.post(
                f"{base}/reports", content=report(campaign), headers={"content-type": JSON}, timeout=PATIENCE
            )
            assert answer.json()["accepted"] == 1

        def counters() -> dict[str, Any]:
            found: dict[str, Any] = httpx.get(f"{base}/counters", headers=HEADER, timeout=PATIENCE).json()
            return found

        for _ in range(3):
            upload()
        wait_until(lambda: saved(store_url) == 3, "the count is saved")
        for _ in range(4):
            upload()
        server.kill()
        server.start()
        found = counters()
        assert found["reports"] == {"everyone": 7}, "reports are exact"
        assert 3 <= sum(found["by_day"].values()) <= 7


def saved(url: str) -> int:
    """The sum of the stored counters, read beside a curator that runs."""
    query = "SELECT sum(count) FROM daily_counts"
    if not url.startswith("postgresql"):
        with closing(sqlite3.connect(url)) as db:
            return int(db.execute(query).fetchone()[0] or 0)

    async def read() -> int:
        connection = await asyncpg.connect(url)
        try:
            return int(await connection.fetchval(query) or 0)
        finally:
            await connection.close()

    return asyncio.run(read())


async def test_counts_that_could_not_be_saved_are_saved_later(store_url: str) -> None:
    """And once: the counts of a failed transaction are not added twice."""
    async with on(store_url) as curator:
        store: Store = curator.service.store
        await store._change(("ALTER TABLE daily_counts RENAME TO elsewhere",))
        curator.set_clock(EVENING)
        await curator.upload()
        await curator.http.post(f"{curator.place}/reports", json=REFUSED)
        with raises(Unavailable):
            await curator.service.refresh()
        await store._change(("ALTER TABLE elsewhere RENAME TO daily_counts",))
        for _ in range(2):
            await curator.service.refresh()
            found = (await curator.http.get(f"{curator.place}/counters")).json()
            assert (sum(found["refused"].values()), found["by_day"]) == (1, {FIRST: 1})


async def test_a_withdrawn_report_stays_in_them(store_url: str) -> None:
    """Otherwise they would show on which day it came."""
    async with on(store_url) as curator:
        await upload_on_two_days(curator)
        known = os.urandom(16).hex()
        await curator.upload(known)
        for _ in range(2):
            assert await by_day(curator) == {FIRST: 3, SECOND: 3}
            await curator.http.post(f"{curator.place}/withdrawals", json={"report_ids": [known]})
            await curator.service.refresh()
        assert await curator.reports() == 5


async def test_they_go_with_their_campaign(store_url: str) -> None:
    """Also those that were not saved when it was deleted, or that another process saved a moment later."""
    async with on(store_url) as curator:
        await upload_on_two_days(curator)
        await curator.upload()
        store: Store = curator.service.store
        [[number]] = await store._fetch("SELECT number FROM campaigns")
        assert (await curator.http.delete(curator.place)).status_code == 200
        await curator.service.refresh()
        assert (await curator.rows())["daily_counts"] == 0
        await store._change(("INSERT INTO daily_counts VALUES ($1, $2, 1)", number, FIRST))
        await curator.service.life.delete_expired()
        assert (await curator.rows())["daily_counts"] == 0


async def test_they_stay_with_the_results_at_keep_until(store_url: str) -> None:
    async with on(
        store_url, closes=MIDNIGHT + timedelta(days=1), keep_until=MIDNIGHT + timedelta(days=2)
    ) as curator:
        curator.service.life.grace = 0
        await upload_on_two_days(curator)
        curator.set_clock(MIDNIGHT + timedelta(days=9))
        await curator.service.life.delete_expired()
        assert (await curator.rows())["submissions"] == 0
        assert await by_day(curator) == {FIRST: 3, SECOND: 2}


def test_a_backup_has_them(store_url: str, tmp_path: Path, campaign: Campaign) -> None:
    def do(work: Callable[[Store], Awaitable[None]]) -> None:
        in_store(store_url, work)

    async def add(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.add_daily_counts({(campaign.id, FIRST): 3, (campaign.id, SECOND): 2})

    async def check(store: Store) -> None:
        assert await store.daily_counts(campaign.id) == {FIRST: 3, SECOND: 2}

    do(add)
    asyncio.run(back_up_store(store_url, tmp_path / "backup"))
    do(add)
    asyncio.run(restore_store(tmp_path / "backup", store_url, replace=True))
    do(check)


# -- no row shares anything with a report of its day -------------------------------------------------------------


async def test_no_counter_of_postgres_shares_a_transaction_with_a_report(postgres: PostgresServer) -> None:
    """The counters have transactions of their own."""
    url = postgres.url("daily_xmin")
    async with on(url) as curator:
        await upload_on_two_days(curator)
        db = await asyncpg.connect(url)
        reports = {row[0] for row in await db.fetch("SELECT xmin::text FROM submissions")}
        counters = await db.fetch("SELECT xmin::text, xmax::text FROM daily_counts")
        await db.close()
        assert len(reports) == 5 and len(counters) == 2
        assert not reports & {number for row in counters for number in row}


async def test_the_counters_of_sqlite_have_no_order_of_their_own(tmp_path: Path) -> None:
    """Rows have no numbers, and lie in the order of their days, whatever the order in which they came."""
    file = tmp_path / "reports.db"
    async with on(str(file)) as curator:
        for now in (MIDNIGHT, EVENING):
            curator.set_clock(now)
            await curator.upload()
            await curator.service.refresh()
    with closing(sqlite3.connect(file)) as db:
        with pytest.raises(sqlite3.OperationalError, match="rowid"):
            db.execute("SELECT rowid FROM daily_counts")
        assert [day for (day,) in db.execute("SELECT day FROM daily_counts")] == [FIRST, SECOND]


# -- several curators on one database ---------------------------------------------------------------------


async def test_the_counts_of_two_curators_add_up(postgres: PostgresServer, campaign: Campaign) -> None:
    url = postgres.url("daily_two")
    async with (
        running(open_store(url), campaign) as one,
        running(open_store(url), campaign) as two,
    ):
        first, second = Curator(one, campaign), Curator(two, campaign)
        first.set_clock(EVENING)
        second.set_clock(MIDNIGHT)  # their clocks differ a little
        for _ in range(20):
            await asyncio.gather(first.upload(), second.upload(), second.upload())
            await asyncio.gather(first.service.refresh(), second.service.refresh())
        for curator in (first, second):
            assert await by_day(curator) == {FIRST: 20, SECOND: 40}
        second.set_clock(EVENING)
        await second.upload()
        await second.service.refresh()
        assert await by_day(first) == {FIRST: 21, SECOND: 40}
    db = await asyncpg.connect(url)
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await db.fetchval(deadlocks) == 0
    await db.close()

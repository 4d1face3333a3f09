"""A campaign closes, reopens, and is deleted: by somebody, or when its reports were kept until their time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from conftest import PRIOR
from local_server import report, running
from postgres_server import PostgresServer
from priorveil.curator.maintenance import recount_store
from priorveil.curator.postgres import PostgresStore
from priorveil.curator.store import Ended, Group, Store, Unavailable, open_store
from priorveil.questions.campaign import Campaign, ask
from refusals import raises

OPENS, CLOSES, KEPT = (datetime(2026, month, 1, tzinfo=UTC) for month in (2, 3, 4))
DAY = timedelta(days=1)
TIMES = {"opens": OPENS, "closes": CLOSES, "keep_until": KEPT}
TABLES = ("submissions", "tallies", "forms", "refusals", "invitations", "daily_counts", "results")


class Curator:
    """A curator with a clock that the test sets."""

    def __init__(self, http: httpx.AsyncClient, campaign: Campaign) -> None:
        self.http, self.campaign, self.place = http, campaign, f"/v1/campaigns/{campaign.id}"
        self.service = http.app.service  # type: ignore[attr-defined]
        self.set_clock(OPENS + DAY)

    def set_clock(self, now: datetime) -> None:
        self.service.life.clock = lambda: now

    async def upload(self, report_id: str | None = None) -> dict[str, Any]:
        body = report(self.campaign, 0, report_id)
        headers = {"content-type": "application/json"}
        answer = await self.http.post(f"{self.place}/reports", content=body, headers=headers)
        return dict(answer.json())

    async def reason(self) -> str | None:
        """Why a new report is refused, None if it is stored."""
        refused = (await self.upload())["refused"]
        return refused[0]["reason"] if refused else None

    async def reports(self) -> int:
        tallies = await self.service.store.tallies(self.campaign)
        return sum(tally.reports for tally in tallies.values())

    async def rows(self) -> dict[str, int]:
        """How many rows the tables hold."""
        counts = {t: await self.service.store._fetch(f"SELECT count(*) FROM {t}") for t in TABLES}
        return {table: found[0][0] for table, found in counts.items()}


@asynccontextmanager
async def on(url: str, **details: Any) -> AsyncIterator[Curator]:
    campaign = ask("Do you sing?", PRIOR, **{"smallest_count": 1, **details})
    async with running(open_store(url), campaign) as http:
        yield Curator(http, campaign)


async def test_a_campaign_reopens_before_its_end_and_not_after(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        assert await curator.reason() is None
        for _ in range(2):
            assert (await curator.http.post(f"{curator.place}/close")).json()["state"] == "closed"
        assert await curator.reason() == "closed"
        for _ in range(2):
            reopened = await curator.http.post(f"{curator.place}/reopen")
            assert (reopened.status_code, reopened.json()["state"]) == (200, "open")
            assert reopened.json()["closed"] is None
        await curator.service.refresh()
        assert await curator.reason() is None
        await curator.http.post(f"{curator.place}/close")
        curator.set_clock(CLOSES)
        assert (await curator.http.post(f"{curator.place}/reopen")).status_code == 409
        assert await curator.reason() == "closed"
        assert await curator.reports() == 2


async def test_the_list_has_counts_and_dates(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        other = ask("Another?", PRIOR)
        assert (await curator.http.post("/v1/campaigns", content=other.to_json())).status_code == 201
        for _ in range(3):
            await curator.upload()
        first, second = (await curator.http.get("/v1/campaigns")).json()["campaigns"]
        assert (first["reports"], second["reports"]) == (3, 0)
        assert (first["opens"], first["closes"]) == ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")
        assert second["opens"] is second["closes"] is second["published"] is None
        closed = (await curator.http.post(f"{curator.place}/close")).json()
        assert closed["reports"] == 3


async def test_the_status_of_a_limited_campaign_reads_no_tallies(store_url: str) -> None:
    async with on(store_url, most_reports=2) as curator:

        async def tallies(campaign: Campaign) -> None:
            raise AssertionError("they may have thousands of cells, and strangers ask for the status")

        curator.service.store.tallies = tallies
        for state in ("open", "open", "full"):
            assert (await curator.http.get(f"{curator.place}/status")).json()["state"] == state
            await curator.upload()


async def test_what_another_process_deleted_is_noticed(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        deleted = "2026-04-01T00:00:00Z"
        assert (await curator.http.get(f"{curator.place}/reports?format=csv")).status_code == 200
        await curator.service.store.end_campaign(curator.campaign.id, deleted, keep_results=True)
        await curator.service.refresh()
        assert (await curator.http.post(f"{curator.place}/close")).json()["deleted"] == deleted
        assert (await curator.http.get(f"{curator.place}/reports?format=csv")).status_code == 409


async def test_refusals_of_a_deleted_campaign_leave_no_row(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        curator.set_clock(CLOSES)
        assert await curator.reason() == "closed"  # counted in memory, and saved after the deletion
        assert (await curator.http.delete(curator.place)).status_code == 200
        await curator.service.refresh()
        assert set((await curator.rows()).values()) == {0}


async def test_wrong_formats_of_estimates_are_refused(store_url: str) -> None:
    async with on(store_url) as curator:
        await curator.upload()
        place = f"{curator.place}/estimates"
        answer = await curator.http.get(place, params={"format": "csv"})
        assert answer.headers["content-type"].startswith("text/csv")
        assert answer.text.startswith("attributes,cohort,group,statistic,answer,reports,method,estimate,")
        assert (await curator.http.get(place, params={"format": "xml"})).status_code == 400


async def test_other_processes_notice_a_reopened_campaign(store_url: str) -> None:
    """Only PostgreSQL has others; on SQLite the store is changed below the curator."""
    async with on(store_url) as curator:
        await curator.http.post(f"{curator.place}/close")
        await curator.service.store.reopen_campaign(curator.campaign.id)
        await curator.service.refresh()
        assert await curator.reason() is None


async def test_a_deleted_campaign_leaves_only_its_id(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priorveil.curator.store._PAGE", 2)
    async with on(store_url) as curator:
        other = ask("Another?", PRIOR)
        assert (await curator.http.post("/v1/campaigns", content=other.to_json())).status_code == 201
        empty = {**dict.fromkeys(TABLES, 0), "forms": 1}
        assert await curator.rows() == {**empty, "forms": 2}
        known = os.urandom(16).hex()
        for report_id in (known, None, None, None, None):
            await curator.upload(report_id)
        await curator.http.post(f"{curator.place}/reports", json={"report_id": "0", "form": "", "report": ""})
        await curator.service.refresh()
        rows = await curator.rows()
        assert (rows["refusals"], rows["daily_counts"]) == (1, 1)
        deleted = await curator.http.delete(curator.place)
        assert (deleted.status_code, deleted.json()["reports"]) == (200, 5)
        assert await curator.rows() == empty
        for method, rest in (("GET", ""), ("GET", "/estimates"), ("POST", "/reopen"), ("DELETE", "")):
            answer = await curator.http.request(method, curator.place + rest)
            assert answer.status_code == 404, (method, rest)
        assert (await curator.http.post(f"{curator.place}/reports", json={})).status_code == 404
        listed = (await curator.http.get("/v1/campaigns")).json()["campaigns"]
        assert [each["id"] for each in listed] == [other.id]
        again = await curator.http.post("/v1/campaigns", content=curator.campaign.to_json())
        assert again.status_code == 409
        assert await curator.rows() == empty


async def test_a_damaged_campaign_can_be_deleted(store_url: str) -> None:
    async with on(store_url) as curator:
        await curator.service.store._change(("UPDATE campaigns SET document = '{}'",))
        assert (await curator.http.get(curator.place)).status_code == 500
        assert (await curator.http.delete(curator.place)).status_code == 200
        assert (await curator.http.get(curator.place)).status_code == 404


@pytest.mark.parametrize("limits", [{}, {"most_reports": 5}])
async def test_an_interrupted_deletion_is_finished_later(store_url: str, limits: dict[str, Any]) -> None:
    async with on(store_url, **limits) as curator:
        await curator.upload()
        store: Store = curator.service.store
        assert await store.end_campaign(curator.campaign.id, "2026-02-02T00:00:00Z", False) == 1
        assert (await curator.rows())["submissions"] == 1
        assert "detail" in await curator.upload(), "it is still loaded, but the store takes nothing for it"
        await curator.service.life.delete_expired()
        assert await curator.rows() == dict.fromkeys(TABLES, 0)


async def test_reports_go_when_they_were_kept_until_their_time_and_results_stay(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        curator.service.life.grace = 0
        assert await curator.reason() is None
        estimates = (await curator.http.get(f"{curator.place}/estimates")).json()
        curator.set_clock(KEPT - timedelta(seconds=1))
        await curator.service.life.delete_expired()
        assert (await curator.rows())["submissions"] == 1
        curator.set_clock(KEPT)
        await curator.service.life.delete_expired()
        assert (await curator.rows())["submissions"] == 0
        after = (await curator.http.get(f"{curator.place}/estimates")).json()
        assert after == {**estimates, "state": "closed"}
        [listed] = (await curator.http.get("/v1/campaigns")).json()["campaigns"]
        assert listed["deleted"] == "2026-04-01T00:00:00Z"
        curator.set_clock(OPENS + DAY)  # the clock was wrong after all
        assert await curator.reason() == "closed"
        assert (await curator.http.post(f"{curator.place}/reopen")).status_code == 409
        again = await curator.http.post("/v1/campaigns", content=curator.campaign.to_json())
        assert again.status_code == 200
        assert await curator.reason() == "closed"
    recount = await recount_store(store_url, repair=True)
    assert (recount.deleted, recount.campaigns, recount.differing) == (1, 0, [])


async def test_a_clock_that_is_wrong_for_a_moment_deletes_nothing(store_url: str) -> None:
    async with on(store_url, **TIMES) as curator:
        assert await curator.reason() is None
        for now in (KEPT + DAY, OPENS + DAY, KEPT + DAY):
            curator.set_clock(now)
            await curator.service.life.delete_expired()
        curator.set_clock(OPENS + DAY)
        assert await curator.reason() is None
        assert (await curator.rows())["submissions"] == 2


async def test_a_clock_that_jumps_is_final_for_nobody(store_url: str) -> None:
    """Reports are refused while the clock is wrong, and taken when it is right again."""
    async with on(store_url, **TIMES) as curator:
        told = []
        for now in (OPENS - DAY, CLOSES + DAY, OPENS + DAY):
            curator.set_clock(now)
            told.append(await curator.reason())
        assert told == ["not yet open", "closed", None]


async def test_a_deletion_waits_for_reports_that_another_process_is_storing(postgres: PostgresServer) -> None:
    url = postgres.url("deletion")
    async with on(url) as curator, PostgresStore(url) as other:
        db = await other._connect_writer()
        form = curator.campaign.form_for(None)
        reports = Group(curator.campaign.id, form, os.urandom(16), bytes(8))
        async with db.transaction():
            assert (await other._insert(db, [reports])).total() == 1
            deletion = asyncio.create_task(curator.http.delete(curator.place))
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while not deletion.done() and (await curator.service.store._fetch(waiting))[0][0] == 0:
                await asyncio.sleep(0.01)
        assert (await deletion).json()["reports"] == 1
        assert await curator.rows() == dict.fromkeys(TABLES, 0)
        with raises(Unavailable):
            await other.commit([reports])


async def test_the_store_itself_refuses_what_has_ended(store_url: str, campaign: Campaign) -> None:
    async with open_store(store_url) as store:
        await store.add_campaign(campaign)
        assert await store.end_campaign("0" * 64, "2026-01-01T00:00:00Z", False) is None
        assert await store.end_campaign(campaign.id, "2026-01-01T00:00:00Z", True) == 0
        with raises(Ended):
            await store.reopen_campaign(campaign.id)
        assert await store.end_campaign(campaign.id, "2026-01-02T00:00:00Z", False) == 0
        with raises(Ended):
            await store.add_campaign(campaign)

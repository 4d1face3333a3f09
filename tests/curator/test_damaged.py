"""A stored campaign that was changed outside the curator: reported, never served; others are not affected."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from pathlib import Path

import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from curator.test_api import on, path, reports
from priorveil.cli import commands
from priorveil.collect.campaign import Campaign
from priorveil.curator.store import Damaged, open_store


def stored(url: str, *campaigns: Campaign) -> None:
    async def run() -> None:
        async with open_store(url) as store:
            for campaign in campaigns:
                await store.add_campaign(campaign)

    asyncio.run(run())


def overwritten(url: str, campaign: Campaign, document: str) -> None:
    """Replace the document in the campaign's row, outside the curator."""
    if not url.startswith("postgresql"):
        with sqlite3.connect(url) as file:
            file.execute("UPDATE campaigns SET document = ? WHERE id = ?", (document, campaign.id))
        file.close()
        return

    async def run() -> None:
        database = await asyncpg.connect(url)
        await database.execute("UPDATE campaigns SET document = $1 WHERE id = $2", document, campaign.id)
        await database.close()

    asyncio.run(run())


def reworded(campaign: Campaign) -> str:
    """The campaign with another question under the same id."""
    return json.dumps(json.loads(campaign.to_json()) | {"question": "Who is your Croesus?"})


def weakened(campaign: Campaign) -> str:
    """The campaign with a certificate that states too low a level."""
    read = json.loads(campaign.to_json())
    next(iter(read["cohorts"].values()))["certificate"]["ldp"] = "0.001"
    return json.dumps(read)


def another(campaign: Campaign) -> str:
    """A valid campaign with another id."""
    return Campaign("Who is your Croesus?", campaign.cohorts).to_json()


@pytest.mark.parametrize("tampered", [reworded, weakened, another, lambda _: "Croesus {"])
def test_a_tampered_document_is_not_believed(tmp_path: Path, campaign: Campaign, tampered) -> None:
    url = str(tmp_path / "reports.db")

    async def load() -> Campaign:
        async with open_store(url) as store:
            found = await store.campaign(campaign.id)
            assert found is not None
            return found.campaign

    stored(url, campaign)
    assert asyncio.run(load()) == campaign
    overwritten(url, campaign, tampered(campaign))
    with pytest.raises(Damaged, match=campaign.id[:12]) as found:
        asyncio.run(load())
    assert "Croesus" not in str(found.value) and found.value.campaign == campaign.id


def test_a_damaged_campaign_is_said_and_harms_no_other(
    store_url: str, campaign: Campaign, cohorts: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    stored(store_url, campaign, cohorts)
    overwritten(store_url, campaign, reworded(campaign))

    async def work(http: httpx.AsyncClient) -> None:
        for _ in range(2):
            for method, rest in (
                ("GET", ""),
                ("GET", "/status"),
                ("POST", "/reports"),
                ("GET", "/reports"),
                ("GET", "/estimates"),
                ("GET", "/counters"),
                ("POST", "/close"),
            ):
                answer = await http.request(method, path(campaign, rest), json={})
                assert (answer.status_code, answer.headers["content-type"]) == (
                    500,
                    "application/problem+json",
                )
                assert "damaged" in answer.json()["detail"] and "Croesus" not in answer.text
        assert (await http.get("/readyz")).status_code == 200
        listed = (await http.get("/v1/campaigns")).json()["campaigns"]
        assert [(c["id"], c["state"]) for c in listed] == [(campaign.id, "damaged"), (cohorts.id, "open")]
        sent = await http.post(path(cohorts, "/reports"), json=reports(cohorts, 1, "columns")[0])
        assert sent.json() == {"accepted": 1, "refused": []}
        assert (await http.get(path(cohorts, "/counters"))).json()["reports"]["columns"] == 1

    with caplog.at_level(logging.WARNING):
        on(store_url, work)
    told = [r.getMessage() for r in caplog.records if campaign.id[:12] in r.getMessage()]
    assert len(told) == 1 and "damaged" in told[0], "noted once, however often it is asked for"
    assert "Croesus" not in caplog.text and "Traceback" not in caplog.text


def test_a_recount_goes_past_a_damaged_campaign(
    store_url: str, campaign: Campaign, cohorts: Campaign
) -> None:
    stored(store_url, campaign, cohorts)
    overwritten(store_url, campaign, another(campaign))
    found = CliRunner().invoke(commands, ["recount", "--store", store_url], standalone_mode=False)
    assert found.exception is None and found.return_value == 1
    assert "damaged" in found.output and "Croesus" not in found.output
    assert "all other tallies agree with the reports: 1 campaign, 0 reports\n" in found.output

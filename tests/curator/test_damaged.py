"""A stored campaign that was changed outside the curator: reported, never served; others are not affected."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from curator.test_api import on, path, reports
from local_server import in_store, place
from patience import PATIENCE, run_apart
from priorveil import Prior
from priorveil.cli import commands
from priorveil.curator.admission import withdraw
from priorveil.curator.store import Damaged, Ended, Group, Store, open_store
from priorveil.curator.tokens import Token
from priorveil.questions.campaign import Campaign, CampaignOutline, ask
from refusals import raises

ROW = 308  # bytes that a small report takes in a page


def stored(url: str, *campaigns: Campaign) -> None:
    async def run() -> None:
        async with open_store(url) as store:
            for campaign in campaigns:
                await store.add_campaign(campaign)

    run_apart(run())


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

    run_apart(run())


def reworded(campaign: Campaign) -> str:
    """The campaign with another question under the same id."""
    return json.dumps(json.loads(campaign.to_json()) | {"contact": "Croesus"})


def weakened(campaign: Campaign) -> str:
    """The campaign with a certificate that states too low a level."""
    read = json.loads(campaign.to_json())
    next(iter(read["cohorts"].values()))["slots"][0][0]["plan"]["certificate"]["ldp"] = "0.001"
    return json.dumps(read)


def another(campaign: Campaign) -> str:
    """A valid campaign with another id."""
    return Campaign("Who is your Croesus?", campaign.questions, campaign.cohorts).to_json()


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


async def test_a_damaged_campaign_is_said_and_harms_no_other(
    store_url: str, campaign: Campaign, cohorts: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    stored(store_url, campaign, cohorts)
    overwritten(store_url, campaign, reworded(campaign))

    caplog.set_level(logging.WARNING)
    async with on(store_url) as http:
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


# -- exports from a store with missing reports ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv"])
async def test_an_export_without_all_reports_is_an_error(
    store_url: str, campaign: Campaign, kind: str
) -> None:
    async with on(store_url, campaign) as http:
        sent = reports(campaign, 10)
        await http.post(path(campaign, "/reports"), json={"reports": sent})
        store = http.app.service.store  # type: ignore[attr-defined]
        lost = bytes.fromhex(sent[3]["report_id"])
        await store._change(("DELETE FROM submissions WHERE report_id = $1", lost))
        answer = await http.get(path(campaign, "/reports"), params={"format": kind})
        assert (
            answer.status_code == 500 and "reports that were counted are missing" in answer.json()["detail"]
        )
        assert [record.action for record in await store.records(10)] == [], "nothing has left"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("place_of_damage", [0.02, 0.9])
async def test_an_export_from_a_damaged_file_is_not_taken_for_a_whole_one(
    tmp_path: Path,
    campaign: Campaign,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    place_of_damage: float,
) -> None:
    """At the beginning it is an error; later the connection is cut, which every client notices."""
    monkeypatch.setattr("priorveil.curator.store._PAGE_BYTES", 100 * ROW)
    file, ids = tmp_path / "reports.db", sorted(os.urandom(16) for _ in range(2000))

    async def fill(store: Store) -> None:
        await store.add_campaign(campaign)
        await store.commit([Group(campaign.id, campaign.form_for(None), b"".join(ids), bytes(8 * 2000))])

    in_store(str(file), fill)
    content = bytearray(file.read_bytes())
    page = content.index(ids[int(place_of_damage * 2000)]) // 1024 * 1024
    content[page : page + 1024] = bytes(1024)
    file.write_bytes(content)
    async with place(tmp_path, campaign) as there:
        await there.app.service.store.add_token(Token.of("secret", "anna", "admin"))
        await there.app.service.load_tokens()
        url = f"http://127.0.0.1:{there.port}{path(campaign, '/reports')}"
        async with httpx.AsyncClient(headers={"authorization": "Bearer secret"}, timeout=PATIENCE) as http:
            if place_of_damage < 0.1:
                answer = await http.get(url, params={"format": kind})
                assert answer.status_code == 503 and "cannot be read" in answer.json()["detail"]
            else:
                with pytest.raises(httpx.RemoteProtocolError):
                    await http.get(url, params={"format": kind})
    assert [campaign.id[:12] in text for text in caplog.messages if "export" in text] == [True]
    assert "Traceback" not in caplog.text


async def test_deleted_reports_are_not_exported_as_none(store_url: str, campaign: Campaign) -> None:
    async with on(store_url, campaign) as http:
        await http.post(path(campaign, "/reports"), json={"reports": reports(campaign, 3)})
        await http.app.service.life.delete(campaign.id, keep_results=True)  # type: ignore[attr-defined]
        answer = await http.get(path(campaign, "/reports"))
        assert answer.status_code == 409 and "were deleted" in answer.json()["detail"]


async def change_during_an_export(
    url: str, campaign: Campaign, change: Callable[[Store, bytes, bytes], Awaitable[object]]
) -> list[bytes]:
    """The ids that are read while something is done with the first and the last report."""
    read = list[bytes]()

    async with on(url, campaign) as http:
        await http.post(path(campaign, "/reports"), json={"reports": reports(campaign, 20)})
        service = http.app.service  # type: ignore[attr-defined]
        ids = [id async for page in service.store.reports(campaign) for id, *_ in page]
        async for page in service.reports(campaign):
            if not read:
                await change(service.store, ids[0], ids[-1])
            read.extend(id for id, *_ in page)
    return read


async def test_a_withdrawal_during_an_export_is_no_damage(
    store_url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not if a new report makes up for it in the tallies, with an id that was read past."""
    monkeypatch.setattr("priorveil.curator.store._PAGE_BYTES", 4 * ROW)

    async def replace(store: Store, first: bytes, last: bytes) -> None:
        assert await withdraw(store, campaign, [last]) == 1
        new = Group(campaign.id, campaign.form_for(None), bytes(16), bytes(8))
        assert bytes(16) < first and (await store.commit([new])).total() == 1

    read = await change_during_an_export(store_url, campaign, replace)
    assert len(read) == 19 and bytes(16) not in read


@pytest.mark.parametrize("keep_results", [True, False])
async def test_a_campaign_deleted_during_an_export_is_not_damaged_but_ended(
    store_url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, keep_results: bool
) -> None:
    monkeypatch.setattr("priorveil.curator.store._PAGE_BYTES", 4 * ROW)

    async def delete(store: Store, first: bytes, last: bytes) -> None:
        await store.end_campaign(campaign.id, "2026-01-01T00:00:00Z", keep_results)
        await store.finish_deletions()

    with raises(Ended):
        await change_during_an_export(store_url, campaign, delete)


async def test_a_list_proves_no_certificate_and_reads_each_document_once(
    store_url: str, campaign: Campaign, cohorts: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading campaigns takes seconds each; a list of hundreds must not."""
    damaged = ask("Who?", Prior({"me": 0.5, "you": 0.5}))
    stored(store_url, campaign, cohorts, damaged)
    overwritten(store_url, damaged, weakened(damaged))
    read: list[str] = []
    outline = CampaignOutline.read.__func__  # type: ignore[attr-defined]

    def count(cls: type[CampaignOutline], text: str, id: str) -> CampaignOutline:
        read.append(id)
        found: CampaignOutline = outline(cls, text, id)
        return found

    def refuse(cls: type[Campaign], text: str) -> Campaign:
        raise AssertionError("a list has proven a campaign")

    async with on(store_url) as http:
        monkeypatch.setattr(CampaignOutline, "read", classmethod(count))
        monkeypatch.setattr(Campaign, "from_json", classmethod(refuse))
        for _ in range(3):
            listed = (await http.get("/v1/campaigns")).json()["campaigns"]
            assert [(c["id"], c["state"]) for c in listed] == [
                (campaign.id, "open"),
                (cohorts.id, "open"),
                (damaged.id, "damaged"),
            ]
        assert listed[0]["title"] == campaign.text(campaign.title)
        assert listed[1]["cohorts"] == list(cohorts.cohorts)
        assert sorted(read) == sorted([campaign.id, cohorts.id, damaged.id])
